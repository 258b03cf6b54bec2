//! The golden vectors, written by the independent implementation in `scripts/oracle` from the specification. `fec`
//! must produce the same bytes, and every rule must reject its violations.

mod common;

use common::{code, expect, payload, run, scratch, shard_files, text};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden")
}

fn vectors(file: &str) -> Vec<Value> {
    let bytes = std::fs::read(golden().join(file)).expect("the golden vectors are there");
    serde_json::from_slice(&bytes).expect("they are JSON")
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

fn str_of<'a>(vector: &'a Value, field: &str) -> &'a str {
    vector[field].as_str().unwrap_or_else(|| panic!("{vector} has no {field}"))
}

/// Tells whether the command can write such meta: no entries without a meaning, and no names in containers.
fn can_be_written(vector: &Value) -> bool {
    vector["extra"].is_null() && (vector["form"] == "shards" || vector["file_name"].is_null())
}

/// The options of `encode` that produce a vector.
fn options_of(vector: &Value) -> Vec<String> {
    let of = |field: &str| vector[field].to_string();
    let mut options =
        ["-k", &of("k"), "-m", &of("m"), "--hash", str_of(vector, "hash")].map(String::from).to_vec();
    for (option, field) in [("--set-size", "set_size"), ("--group-size", "group_size")] {
        if !vector[field].is_null() {
            options.extend([option.to_owned(), of(field)]);
        }
    }
    let entries: Vec<&str> =
        vector["entries"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if !entries.is_empty() {
        options.push(format!("--payload-digest={}", entries.join(",")));
    }
    options
}

/// Encodes each vector's payload, compares root and bytes, and restores the payload.
fn encode_and_compare(vector: &Value, options: &[&str]) {
    // Bounded groups without --group-size come from pipes only.
    let is_of_pipe = vector["grouping"] == "bounded" && vector["group_size"].is_null();
    if is_of_pipe || !can_be_written(vector) {
        return;
    }
    let name = str_of(vector, "name");
    let bytes = payload(vector["seed"].as_u64().unwrap(), vector["payload_len"].as_u64().unwrap() as usize);
    let is_container = vector["form"] == "container";
    let file_name = vector["file_name"].as_str().unwrap_or("payload.bin");
    let (folder, _) = scratch(file_name, &bytes);
    let out = if is_container { "out.fec" } else { "out/" };
    let own = options_of(vector);
    let mut args = vec!["encode", "-q", "-o", out, file_name];
    args.extend(own.iter().map(String::as_str));
    args.extend(options);
    args.push("--no-sync");
    let encoded = run(folder.path(), args);
    assert_eq!(common::root(&encoded), str_of(vector, "root"), "{name}");
    let out = folder.path().join(out);
    let files = if is_container { vec![out.clone()] } else { shard_files(&out) };
    let digests: Vec<String> = files.iter().map(|f| sha256(&std::fs::read(f).unwrap())).collect();
    let expected: Vec<&str> =
        vector["digests"].as_array().unwrap().iter().map(|d| d.as_str().unwrap()).collect();
    assert_eq!(digests, expected, "{name}");
    let out = out.to_str().unwrap();
    let restored = run(folder.path(), ["decode", out, "-o", "restored", "--deep", "--no-sync"]);
    expect(&restored, 0);
    assert!(std::fs::read(folder.path().join("restored")).unwrap() == bytes, "{name}");
}

#[test]
fn every_vector_comes_out_byte_for_byte() {
    let vectors = vectors("encode.json");
    assert!(vectors.len() >= 400, "only {} vectors", vectors.len());
    for vector in &vectors {
        encode_and_compare(vector, &[]);
    }
    let written = vectors.iter().filter(|vector| can_be_written(vector)).count();
    println!("{written} of {} encodings were written and are identical", vectors.len());
}

#[test]
fn every_backend_and_thread_count_writes_the_same_bytes() {
    let vectors = vectors("encode.json");
    let names = text(&run(Path::new("."), ["encode", "--backend", "list"]).stdout);
    assert!(names.contains("scalar"), "{names}");
    for backend in names.lines() {
        for threads in ["1", "2", "4"] {
            for vector in vectors.iter().step_by(17) {
                encode_and_compare(vector, &["--backend", backend, "-j", threads]);
            }
        }
    }
}

/// Tells whether a payload surely fits a pipe's group: 48 MiB of shards, with sets of any size.
fn fits_a_group(vector: &Value) -> bool {
    let of = |field: &str| vector[field].as_u64().expect("a number");
    of("payload_len") < (24 << 20) * of("k") / (of("k") + of("m"))
}

#[test]
fn containers_from_pipes_are_those_of_the_vectors() {
    let vectors = vectors("encode.json");
    let is_of_pipe = |v: &&Value| {
        v["form"] == "container"
            && can_be_written(v)
            && v["entries"].as_array().is_none_or(Vec::is_empty)
            && (v["grouping"] == "bounded" || fits_a_group(v))
    };
    let of_pipe: Vec<&Value> = vectors.iter().filter(is_of_pipe).collect();
    assert!(of_pipe.len() > 50);
    for vector in of_pipe {
        let bytes =
            payload(vector["seed"].as_u64().unwrap(), vector["payload_len"].as_u64().unwrap() as usize);
        let args = [vec!["encode".to_owned(), "-".to_owned()], options_of(vector)].concat();
        let piped = common::pipe(Path::new("."), &args, &bytes);
        expect(&piped, 0);
        assert_eq!(sha256(&piped.stdout), vector["digests"][0].as_str().unwrap(), "{}", vector["name"]);
        let back = common::pipe(Path::new("."), ["decode", "-"], &piped.stdout);
        expect(&back, 0);
        assert!(back.stdout == bytes, "{}", vector["name"]);
    }
}

#[test]
fn raw_files_of_the_other_implementation_are_restored_and_verified() {
    let vectors = vectors("encode.json");
    let raw: Vec<&Value> = vectors.iter().filter(|v| v["path"].is_string()).collect();
    assert!(raw.len() >= 20);
    for vector in raw {
        let path = golden().join(str_of(vector, "path"));
        let path = path.to_str().unwrap();
        let (folder, _) = scratch("x", b"");
        let root = str_of(vector, "root");
        expect(&run(folder.path(), ["decode", path, "-o", "out", "--root", root]), 0);
        let bytes =
            payload(vector["seed"].as_u64().unwrap(), vector["payload_len"].as_u64().unwrap() as usize);
        assert!(std::fs::read(folder.path().join("out")).unwrap() == bytes, "{}", vector["name"]);
        expect(&run(folder.path(), ["verify", "--deep", path, "--root", root]), 0);
    }
}

/// Repairs each file of the other implementation with a byte flipped, cut short or lost, if the file survives that. The
/// result must equal the original.
#[test]
fn raw_files_of_the_other_implementation_are_repaired_bit_for_bit() {
    let vectors = vectors("encode.json");
    let mut mended = 0;
    for vector in vectors.iter().filter(|v| v["path"].is_string() && v["m"].as_u64() > Some(0)) {
        let name = str_of(vector, "name");
        let (folder, _) = scratch("x", b"");
        let read = |path: &Path| std::fs::read(path).unwrap();
        let original = golden().join(str_of(vector, "path"));
        let copy = folder.path().join("copy");
        let files = if original.is_dir() { shard_files(&original) } else { vec![original.clone()] };
        let copies: Vec<PathBuf> = match original.is_dir() {
            true => {
                std::fs::create_dir(&copy).unwrap();
                files.iter().map(|file| copy.join(file.file_name().unwrap())).collect()
            }
            false => vec![copy.clone()],
        };
        files.iter().zip(&copies).for_each(|(from, to)| {
            std::fs::copy(from, to).unwrap();
        });
        let damaged = &copies[(vector["seed"].as_u64().unwrap() % copies.len() as u64) as usize];
        let len = read(damaged).len();
        match mended % 3 {
            0 if original.is_dir() => std::fs::remove_file(damaged).unwrap(),
            1 => std::fs::OpenOptions::new()
                .write(true)
                .open(damaged)
                .unwrap()
                .set_len(len as u64 - 1)
                .unwrap(),
            _ => common::flip(damaged, len / 2),
        }
        let repair = ["repair", "copy", "--no-sync", "--root", str_of(vector, "root")];
        expect(&run(folder.path(), repair), 0);
        for (is, was) in copies.iter().zip(&files) {
            assert!(read(is) == read(was), "{name}: {}", is.display());
        }
        expect(&run(folder.path(), ["verify", "copy"]), 0);
        mended += 1;
    }
    assert!(mended >= 20, "{mended}");
}

/// Every negative vector gets the exit code of its class with a reason, and leaves nothing behind. Positive vectors,
/// for rules that demand acceptance, restore their payload.
#[test]
fn every_rule_has_a_vector_that_gets_the_right_error() {
    let vectors = vectors("errors.json");
    assert!(vectors.len() >= 200, "only {} vectors", vectors.len());
    let mut wrong = Vec::new();
    for vector in &vectors {
        let path = golden().join(str_of(vector, "path"));
        let (folder, _) = scratch("x", b"");
        let mut args = vec!["decode", path.to_str().unwrap(), "-o", "out", "--no-sync"];
        if let Some(root) = vector["root"].as_str() {
            args.extend(["--root", root]);
        }
        if vector["strict"] == true {
            args.push("--deep");
        }
        let output = run(folder.path(), args);
        let said = text(&output.stderr);
        let exit = vector["exit"].as_i64().unwrap() as i32;
        let restored = std::fs::read(folder.path().join("out")).ok();
        let expected = vector["payload_sha256"].as_str();
        let as_expected = code(&output) == exit
            && restored.as_deref().map(sha256).as_deref() == expected
            && (exit == 0 || !said.trim().is_empty())
            && !said.contains("panicked")
            && common::listing(folder.path()).len() == if exit == 0 { 2 } else { 1 };
        if !as_expected {
            wrong.push(format!("{vector}\n  got {}: {said}", code(&output)));
        }
    }
    assert!(wrong.is_empty(), "{} of {} wrong:\n{}", wrong.len(), vectors.len(), wrong.join("\n"));
    println!("{} of {} rules hold", vectors.len(), vectors.len());
}

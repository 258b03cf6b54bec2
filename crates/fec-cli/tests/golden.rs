//! Golden vectors through the command: its options, pipes and exit codes. The library's tests have all vectors
//! (fecfile/tests/encodings/golden.rs).

mod common;

use common::{code, expect, payload, run, scratch, shard_files, text};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
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

/// Each option, backend and thread count reaches the encoder.
#[test]
fn options_make_the_encodings_of_the_vectors() {
    let vectors = vectors("encode.json");
    let names = text(&run(Path::new("."), ["encode", "--backend", "list"]).stdout);
    assert!(names.contains("scalar"), "{names}");
    for vector in vectors.iter().step_by(7) {
        encode_and_compare(vector, &[]);
    }
    for backend in names.lines() {
        for (nth, threads) in ["1", "2", "4"].into_iter().enumerate() {
            for vector in vectors.iter().skip(nth).step_by(61) {
                encode_and_compare(vector, &["--backend", backend, "-j", threads]);
            }
        }
    }
}

#[test]
fn containers_from_pipes_are_those_of_the_vectors() {
    let vectors = vectors("encode.json");
    let is_of_pipe = |v: &&Value| {
        v["form"] == "container"
            && can_be_written(v)
            && v["entries"].as_array().is_none_or(Vec::is_empty)
            && v["grouping"] == "bounded"
    };
    let of_pipe: Vec<&Value> = vectors.iter().filter(is_of_pipe).collect();
    assert!(of_pipe.len() > 50);
    for vector in of_pipe.into_iter().step_by(5) {
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

/// Each class has its exit code, with a reason, and leaves nothing behind. Vectors of rules that demand acceptance
/// restore their payload.
#[test]
fn classes_have_their_exit_codes() {
    let vectors = vectors("errors.json");
    let mut wrong = Vec::new();
    let mut exits = BTreeSet::new();
    for vector in vectors.iter().step_by(5) {
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
        exits.insert(exit);
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
    assert_eq!(exits.into_iter().collect::<Vec<_>>(), [0, 2, 3, 5, 6]);
}

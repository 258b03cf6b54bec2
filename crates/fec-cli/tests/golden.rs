//! The golden vectors, which the independent implementation in `scripts/oracle.py` wrote from the
//! specification: the same bytes must come out, and every rule must reject what breaks it.

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

/// Encodes each vector's payload and compares root and bytes; then restores it.
fn encode_and_compare(vector: &Value, options: &[&str]) {
    let name = str_of(vector, "name");
    let bytes = payload(vector["seed"].as_u64().unwrap(), vector["payload_len"].as_u64().unwrap() as usize);
    let is_container = vector["form"] == "container";
    let file_name = vector["file_name"].as_str().unwrap_or("payload.bin");
    let (folder, _) = scratch(file_name, &bytes);
    let (k, m) = (vector["k"].to_string(), vector["m"].to_string());
    let out = if is_container { "out.fec" } else { "out/" };
    let mut args =
        vec!["encode", "-q", "-k", &k, "-m", &m, "--hash", str_of(vector, "hash"), "-o", out, file_name];
    let sizes: Vec<(String, String)> = [("--set-size", "set_size"), ("--group-size", "group_size")]
        .iter()
        .filter(|(_, field)| !vector[*field].is_null())
        .map(|(option, field)| (option.to_string(), vector[*field].to_string()))
        .collect();
    args.extend(sizes.iter().flat_map(|(option, size)| [option.as_str(), size.as_str()]));
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
    let restored = run(folder.path(), ["decode", out, "-o", "restored", "--no-sync"]);
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
    println!("{} of {} encodings are identical", vectors.len(), vectors.len());
}

#[test]
fn every_backend_and_thread_count_writes_the_same_bytes() {
    let vectors = vectors("encode.json");
    let help = text(&run(Path::new("."), ["encode", "x", "--backend", "?"]).stderr);
    let names = help.split("this machine has: ").nth(1).expect("the backends are listed").trim();
    for backend in names.split(", ") {
        for threads in ["1", "2", "4"] {
            for vector in vectors.iter().step_by(17) {
                encode_and_compare(vector, &["--backend", backend, "-j", threads]);
            }
        }
    }
}

#[test]
fn containers_from_pipes_are_those_from_files() {
    for vector in vectors("encode.json").iter().filter(|v| v["form"] == "container").step_by(3) {
        let bytes =
            payload(vector["seed"].as_u64().unwrap(), vector["payload_len"].as_u64().unwrap() as usize);
        let (k, m) = (vector["k"].to_string(), vector["m"].to_string());
        let mut args: Vec<String> =
            ["encode", "-", "-k", &k, "-m", &m, "--hash", str_of(vector, "hash")].map(String::from).to_vec();
        for (option, field) in [("--set-size", "set_size"), ("--group-size", "group_size")] {
            if !vector[field].is_null() {
                args.extend([option.to_owned(), vector[field].to_string()]);
            }
        }
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

/// Every negative vector gets the exit code of its class, leaves nothing behind, and says why; the
/// positive ones among them (the rule says that something must be accepted) restore their payload.
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

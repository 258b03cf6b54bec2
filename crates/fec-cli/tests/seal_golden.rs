//! The golden vectors of sealed payloads, written by the independent implementation in `scripts/oracle` from
//! the specification. Right vectors open with their keys only, and every rule refuses its violations before any byte of
//! plaintext.

mod common;

use common::{Arena, code, expect, fec, payload, pipe, text};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden")
}

/// The vectors, and an arena with their identity as `key` and another one as `other`.
fn vectors() -> (Value, Arena) {
    let bytes = fs::read(golden().join("sealed.json")).expect("the golden vectors are there");
    let vectors: Value = serde_json::from_slice(&bytes).expect("they are JSON");
    let arena = Arena::new();
    arena.write("key", vectors["identity"].as_str().expect("an identity").as_bytes());
    expect(&arena.run(["keygen", "-o", "other"]), 0);
    (vectors, arena)
}

/// Runs `fec decode` on a vector with its key.
fn decode(vectors: &Value, vector: &Value, arena: &Arena, output: &str) -> Output {
    let mut command = fec();
    let path = golden().join(vector["path"].as_str().expect("a path"));
    command.current_dir(arena.path("")).arg("decode").arg(path).args(["-o", output, "-f"]);
    if vector["passphrase"] == true {
        command.arg("--passphrase").env("FEC_PASSPHRASE", vectors["passphrase"].as_str().expect("one"));
    } else {
        command.args(["-i", "key"]);
    }
    command.output().expect("fec starts")
}

#[test]
fn what_is_right_opens() {
    let (vectors, arena) = vectors();
    let mut opened = 0;
    let right = ["valid", "again"].iter().flat_map(|list| vectors[*list].as_array().expect("a list"));
    for vector in right.filter(|vector| vector["path"].is_string()) {
        let name = vector["name"].as_str().expect("a name");
        let plain = payload(
            vector["seed"].as_u64().expect("a seed"),
            vector["payload_len"].as_u64().expect("a length") as usize,
        );
        let output = decode(&vectors, vector, &arena, "-");
        expect(&output, 0);
        assert!(output.stdout == plain, "{name}");
        expect(&decode(&vectors, vector, &arena, "out"), 0);
        assert!(fs::read(arena.path("out")).unwrap() == plain, "{name}");
        let path = golden().join(vector["path"].as_str().expect("a path"));
        let path = path.to_str().expect("text");
        // The vector has its root and can be verified without a key.
        let root = vector["root"].as_str().expect("a root");
        expect(&arena.run(["verify", path, "--deep", "--root", root]), 0);
        if vector["passphrase"] != true {
            let output = arena.run(["decode", path, "-o", "-", "-i", "key", "--root", root, "--json"]);
            expect(&output, 0);
            let output = arena.run(["decode", path, "-o", "nothing", "-i", "other"]);
            expect(&output, 5);
        }
        expect(&arena.run(["decode", path, "-o", "nothing"]), 2);
        assert!(!arena.path("nothing").exists());
        // Shard files are restored under the recorded name.
        if let Some(file_name) = vector["file_name"].as_str()
            && vector["passphrase"] != true
            && !path.ends_with(".fec")
        {
            fs::create_dir_all(arena.path("folder")).unwrap();
            expect(&arena.run(["decode", path, "-o", "folder/", "-i", "key"]), 0);
            assert!(fs::read(arena.path("folder").join(file_name)).unwrap() == plain, "{name}");
            fs::remove_dir_all(arena.path("folder")).unwrap();
        }
        opened += 1;
    }
    assert!(opened >= 11, "only {opened}");
}

#[test]
fn every_rule_refuses_what_breaks_it() {
    let (vectors, arena) = vectors();
    let errors = vectors["errors"].as_array().expect("a list");
    assert!(errors.len() >= 48, "only {}", errors.len());
    for vector in errors {
        let context = format!("{}: {}", vector["name"], vector["rule"]);
        let exit = vector["exit"].as_i64().expect("an exit code") as i32;
        for output in ["nothing", "-"] {
            let said = decode(&vectors, vector, &arena, output);
            assert_eq!(code(&said), exit, "{context}\n{}", text(&said.stderr));
            assert!(said.stdout.is_empty(), "{context}: {} bytes came out", said.stdout.len());
            assert!(!arena.path("nothing").exists(), "{context}: a file appeared");
        }
        if vector["passphrase"] != true {
            let bytes = fs::read(golden().join(vector["path"].as_str().expect("a path"))).unwrap();
            let said = pipe(&arena.path(""), ["decode", "-", "-i", "key"], &bytes);
            assert_eq!(code(&said), exit, "{context}, from a pipe\n{}", text(&said.stderr));
            assert!(said.stdout.is_empty(), "{context}: {} bytes came out of a pipe", said.stdout.len());
        }
    }
}

/// Without a key, `verify` and `repair` report the same about the copies of the seal as `decode` does with one.
#[test]
fn copies_of_the_seal_count() {
    let (vectors, arena) = vectors();
    let copies = vectors["copies"].as_array().expect("a list");
    assert!(copies.len() >= 15, "only {}", copies.len());
    for vector in copies {
        let name = vector["name"].as_str().expect("a name");
        let path = golden().join(vector["path"].as_str().expect("a path"));
        let path = path.to_str().expect("text");
        let exit = vector["verify"].as_i64().expect("a code") as i32;
        let is_lost = exit == 3;
        let output = arena.run(["verify", path, "--json"]);
        expect(&output, exit);
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(report["restorable"], !is_lost, "{name}");
        assert_eq!(
            (report["seal_places"] == 0, report["margin"]["shards"].is_null()),
            (is_lost, is_lost),
            "{name}"
        );
        expect(&pipe(&arena.path(""), ["verify"], &fs::read(path).unwrap()), exit);
        let output = decode(&vectors, vector, &arena, "-");
        expect(&output, if is_lost { 3 } else { 0 });
        assert!(is_lost || output.stdout == payload(3, 50), "{name}");
        let would = if is_lost { 3 } else { exit };
        expect(&arena.run(["repair", path, "-n"]), would);
        expect(&arena.run(["repair", path, "-o", "fixed"]), if is_lost { 3 } else { 0 });
        if exit == 1 {
            expect(&arena.run(["verify", "fixed"]), 0);
            fs::remove_file(arena.path("fixed")).unwrap();
        }
        assert!(!arena.path("fixed").exists(), "{name}");
        if is_lost {
            assert!(
                text(&arena.run(["verify", path]).stdout).contains("every copy of its seal is lost"),
                "{name}"
            );
            expect(&arena.run(["verify", path, "--need", "2"]), 3);
            // The report is the same among other files and in a table.
            let whole = golden().join("sealed/copies-all.fec");
            let output = arena.run(["verify", path, whole.to_str().expect("text")]);
            expect(&output, 3);
            assert!(text(&output.stdout).contains("every copy of the seal is lost"), "{name}");
        }
    }
}

//! The golden vectors through C: the same bytes, and the same verdicts.

use crate::calls::{Calls, Options};
use crate::vectors::{golden, payload, read, str_of};
use fec_core::Root;
use fec_core::digest::HashKind;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

fn sha256(bytes: &[u8]) -> String {
    Root(HashKind::Sha256.digest(bytes)).to_string()
}

fn number(vector: &Value, field: &str) -> u64 {
    vector[field].as_u64().unwrap_or_default()
}

fn options_of(vector: &Value) -> Options {
    Options {
        k: number(vector, "k") as u32,
        m: number(vector, "m") as u32,
        hash: u32::from(str_of(vector, "hash") == "sha256"),
        threads: 1 + number(vector, "seed") as u32 % 3,
        set_size: number(vector, "set_size"),
        group_sets: number(vector, "group_size") as u32,
        name: vector["file_name"].as_str().unwrap_or_default().as_bytes().to_vec(),
    }
}

/// Tells whether calls of C can make such an encoding: they record a name and nothing else.
fn can_be_made(vector: &Value) -> bool {
    let is_container = vector["form"] == "container";
    vector["extra"].is_null()
        && vector["entries"].as_array().is_none_or(Vec::is_empty)
        && vector["file_name"].is_null() == is_container
        && (!is_container || vector["grouping"] == "bounded")
}

#[test]
fn encodings_have_the_bytes_of_the_vectors() {
    let (mut calls, mut made) = (Calls::new(), 0);
    for vector in read("encode.json").as_array().expect("a list").iter().filter(|v| can_be_made(v)) {
        let name = str_of(vector, "name");
        let bytes = payload(number(vector, "seed"), number(vector, "payload_len") as usize);
        let encoded = calls.encode(&options_of(vector), &bytes, vector["form"] == "container");
        assert_eq!((encoded.ended.status, &*encoded.ended.why), (0, ""), "{name}");
        assert_eq!(Root(encoded.root).to_string(), str_of(vector, "root"), "{name}");
        let digests: Vec<String> = encoded.objects.iter().map(|(_, bytes)| sha256(bytes)).collect();
        let expected: Vec<&str> =
            vector["digests"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
        assert_eq!(digests, expected, "{name}");
        let objects: Vec<Vec<u8>> = encoded.objects.into_iter().map(|(_, bytes)| bytes).collect();
        let looked = calls.look(&objects, Some(encoded.root));
        assert!(looked.decoded.0.status == 0 && looked.decoded.1 == bytes, "{name}: {:?}", looked.decoded.0);
        assert_eq!(looked.verified.0.status, 0, "{name}");
        made += 1;
    }
    calls.end();
    assert!(made > 200, "only {made} vectors were made");
}

/// The files of a folder in the order of their names, or a file.
fn files_at(path: &Path) -> Vec<Vec<u8>> {
    let mut files: Vec<PathBuf> = match path.is_dir() {
        true => fs::read_dir(path).expect("a folder").map(|entry| entry.expect("an entry").path()).collect(),
        false => vec![path.to_path_buf()],
    };
    files.sort();
    files.iter().map(|file| fs::read(file).expect("a file")).collect()
}

/// Each rule of the specification, with what breaks it, has its verdict through C.
#[test]
fn broken_rules_have_the_verdicts_of_the_vectors() {
    let mut calls = Calls::new();
    let (mut wrong, mut seen) = (Vec::new(), 0);
    let vectors = read("errors.json");
    for vector in vectors.as_array().expect("a list").iter().filter(|vector| vector["strict"] != true) {
        let root = vector["root"].as_str().map(|root| root.parse::<Root>().expect("a root").0);
        let path = golden().join(str_of(vector, "path"));
        let inputs = files_at(&path);
        if path.is_dir() && inputs.len() == 1 {
            // C has no folders: a single input may have any form.
            continue;
        }
        let (ended, bytes) = calls.look(&inputs, root).decoded;
        let restored = (ended.status == 0).then(|| sha256(&bytes));
        let is_as_expected = i64::from(ended.status) == vector["exit"].as_i64().expect("an exit code")
            && restored.as_deref() == vector["payload_sha256"].as_str();
        if !is_as_expected {
            wrong.push(format!("{vector}\n  got {ended:?}"));
        }
        seen += 1;
    }
    calls.end();
    assert!(seen > 300 && wrong.is_empty(), "{} of {seen} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

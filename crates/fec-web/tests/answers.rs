//! Answers over objects in memory: the golden vectors of the independent implementation, and whatever a stranger may
//! send.

#[path = "../../fecfile/tests/vectors/mod.rs"]
mod vectors;

use fec_base::names::hex;
use fec_core::digest::HashKind;
use fec_web::{Host, Session};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::{fs, io};
use vectors::{golden, payload, read, str_of};

/// Objects in memory, and the outputs that came.
#[derive(Default)]
struct Memory {
    objects: Vec<(String, Vec<u8>)>,
    outputs: Mutex<BTreeMap<u32, Vec<u8>>>,
    /// The number of the read that fails.
    fails_at: Option<usize>,
    reads: Mutex<usize>,
}

impl Host for Memory {
    fn read(&self, object: u32, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        let mut reads = self.reads.lock().expect("a number");
        *reads += 1;
        if Some(*reads) == self.fails_at {
            return Err(io::Error::other("it cannot be read"));
        }
        let bytes = &self.objects[object as usize].1;
        let from = bytes.len().min(offset as usize);
        let len = out.len().min(bytes.len() - from);
        out[..len].copy_from_slice(&bytes[from..from + len]);
        Ok(len)
    }

    fn write(&self, output: u32, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut outputs = self.outputs.lock().expect("outputs");
        let out = outputs.entry(output).or_default();
        let end = offset as usize + bytes.len();
        out.resize(out.len().max(end), 0);
        out[offset as usize..end].copy_from_slice(bytes);
        Ok(())
    }

    fn read_back(&self, output: u32, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        let outputs = self.outputs.lock().expect("outputs");
        let bytes = outputs.get(&output).map_or(&[][..], |bytes| &bytes[..]);
        let from = bytes.len().min(offset as usize);
        let len = out.len().min(bytes.len() - from);
        out[..len].copy_from_slice(&bytes[from..from + len]);
        Ok(len)
    }

    fn progress(&self, done: u64, total: Option<u64>) {
        assert!(total.is_none_or(|total| done <= total), "{done} of {total:?}");
    }
}

/// The files at a path, as objects.
fn objects_at(path: &Path) -> Vec<(String, Vec<u8>)> {
    let of = |path: &Path| {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        (name, fs::read(path).expect("a file"))
    };
    if !path.is_dir() {
        return vec![of(path)];
    }
    let mut files: Vec<_> =
        fs::read_dir(path).expect("a folder").map(|entry| of(&entry.expect("an entry").path())).collect();
    files.sort();
    files
}

/// Asks about objects; `more` are further members. Returns the answer, and the output that it names.
fn ask(work: &str, objects: Vec<(String, Vec<u8>)>, more: Value) -> (Value, Vec<u8>) {
    let (said, mut outputs) = ask_all(work, Memory { objects, ..Memory::default() }, more);
    let named = said["restored"]["output"].as_u64().and_then(|output| outputs.remove(&(output as u32)));
    (said, named.unwrap_or_default())
}

fn ask_all(work: &str, memory: Memory, more: Value) -> (Value, BTreeMap<u32, Vec<u8>>) {
    let named: Vec<Value> =
        memory.objects.iter().map(|(name, bytes)| json!({"name": name, "size": bytes.len()})).collect();
    let mut request = json!({"do": work, "objects": named});
    let members = request.as_object_mut().expect("an object");
    members.extend(more.as_object().expect("members").clone());
    let host = Arc::new(memory);
    let said = Session::new(host.clone()).answer(request.to_string().as_bytes());
    let outputs = std::mem::take(&mut *host.outputs.lock().expect("outputs"));
    (said, outputs)
}

/// The class that stands for an exit code of the vectors.
fn class_of(exit: i64) -> &'static str {
    ["ok", "damaged", "usage", "missing", "system", "replaced", "refused"][exit as usize]
}

fn said_class(said: &Value) -> &str {
    if said["ok"] == true { "ok" } else { said["error"]["class"].as_str().expect("a class") }
}

#[test]
fn vectors_are_verified_and_restored() {
    let vectors = read("encode.json");
    let raw = vectors.as_array().expect("a list").iter().filter(|vector| vector["path"].is_string());
    let mut restored = 0;
    for vector in raw {
        let name = str_of(vector, "name");
        let objects = objects_at(&golden().join(str_of(vector, "path")));
        let root = json!({"root": str_of(vector, "root")});
        let (said, _) = ask("verify", objects.clone(), root.clone());
        assert!(said["ok"] == true && said["verified"]["is_intact"] == true, "{name}: {said}");
        assert_eq!(said["encoding"]["root"], vector["root"], "{name}");
        assert_eq!((&said["encoding"]["k"], &said["encoding"]["m"]), (&vector["k"], &vector["m"]), "{name}");
        let (said, out) = ask("restore", objects, root);
        let plain = payload(
            vector["seed"].as_u64().expect("a seed"),
            vector["payload_len"].as_u64().expect("a length") as usize,
        );
        assert!(said["ok"] == true && out == plain, "{name}: {said}");
        assert_eq!(said["restored"]["len"], plain.len(), "{name}");
        restored += 1;
    }
    assert!(restored >= 20, "{restored}");
}

#[test]
fn every_rule_refuses_its_violations() {
    let vectors = read("errors.json");
    let vectors = vectors.as_array().expect("a list").iter().filter(|vector| vector["strict"] != true);
    let mut tried = 0;
    for vector in vectors {
        let path = golden().join(str_of(vector, "path"));
        let objects = objects_at(&path);
        if path.is_dir() && objects.len() == 1 {
            // A host has no folders: a single object is of any form.
            continue;
        }
        let (said, out) = ask("restore", objects, json!({"root": vector["root"]}));
        let exit = vector["exit"].as_i64().expect("an exit code");
        assert_eq!(said_class(&said), class_of(exit), "{vector}: {said}");
        if exit == 0 {
            let digest = hex(&HashKind::Sha256.digest(&out));
            assert_eq!(Some(&*digest), vector["payload_sha256"].as_str(), "{vector}");
        }
        tried += 1;
    }
    assert!(tried >= 400, "{tried}");
}

#[test]
fn sealed_vectors_open_with_their_keys_alone() {
    let vectors = read("sealed.json");
    let keys = |vector: &Value| match vector["passphrase"] == true {
        true => json!({"passphrase": vectors["passphrase"]}),
        false => json!({"identities": vectors["identity"]}),
    };
    let list = |name: &str| vectors[name].as_array().expect("a list").clone();
    let right = [list("valid"), list("again")].concat();
    for vector in right.iter().filter(|vector| vector["path"].is_string()) {
        let objects = objects_at(&golden().join(str_of(vector, "path")));
        let len = vector["payload_len"].as_u64().expect("a length") as usize;
        let plain = payload(vector["seed"].as_u64().expect("a seed"), len);
        let (said, out) = ask("restore", objects.clone(), keys(vector));
        assert!(said["ok"] == true && out == plain, "{vector}: {said}");
        for work in ["restore", "open"] {
            let (said, out) = ask(work, objects.clone(), json!({}));
            assert!(said["ok"] == false && out.is_empty(), "{vector}: {said}");
            assert!(said["error"]["is_locked"] == true && said["encoding"]["is_sealed"] == true, "{said}");
        }
    }
    for vector in list("errors") {
        let objects = objects_at(&golden().join(str_of(&vector, "path")));
        let (said, _) = ask("restore", objects, keys(&vector));
        assert_eq!(said_class(&said), class_of(vector["exit"].as_i64().expect("a code")), "{vector}: {said}");
    }
}

/// Shards of a payload of 300,000 bytes by 5 + 4, with their names, and the root.
fn shards(plain: &[u8]) -> (Vec<(String, Vec<u8>)>, String) {
    let memory = Memory { objects: vec![("report.pdf".to_owned(), plain.to_vec())], ..Memory::default() };
    let (said, outputs) = ask_all("encode", memory, json!({"k": 5, "m": 4}));
    assert_eq!(said["ok"], true, "{said}");
    let names = said["encoded"]["names"].as_array().expect("names").iter();
    let names = names.map(|name| name.as_str().expect("a name").to_owned());
    let root = said["encoded"]["root"].as_str().expect("a root").to_owned();
    (names.zip(outputs.into_values()).collect(), root)
}

#[test]
fn any_five_of_nine_shards_restore_and_four_do_not() {
    let plain = payload(7, 300_000);
    let (shards, root) = shards(&plain);
    assert_eq!((shards.len(), &*shards[3].0), (9, "report.pdf.003.shard"));
    let some = |of: &[usize]| of.iter().map(|nth| shards[*nth].clone()).collect::<Vec<_>>();
    let (said, out) = ask("restore", some(&[1, 3, 5, 7, 8]), json!({"root": root}));
    assert!(said["ok"] == true && out == plain, "{said}");
    assert_eq!(said["restored"]["name"], "report.pdf");
    let (said, out) = ask("restore", some(&[1, 3, 5, 7]), json!({"root": root}));
    assert_eq!((said_class(&said), out.len()), ("missing", 0), "{said}");
    assert_eq!((&said["encoding"]["given"], &said["encoding"]["k"]), (&json!(4), &json!(5)), "{said}");
    let (said, _) = ask("verify", some(&[1, 3, 5, 7]), json!({}));
    assert_eq!(
        (&said["verified"]["is_restorable"], &said["verified"]["weakest"]),
        (&json!(false), &json!(4))
    );
    let mut damaged = some(&[0, 1, 2, 3, 4, 5]);
    damaged[2].1[40_000] ^= 1;
    let (said, _) = ask("verify", damaged.clone(), json!({}));
    let shard = &said["verified"]["shards"][2];
    assert!(shard["state"] == "damaged" && shard["damage"][0]["file"] == "report.pdf.002.shard", "{said}");
    let (said, out) = ask("restore", damaged, json!({"root": root}));
    assert!(said["ok"] == true && out == plain, "{said}");
    let (said, out) = ask("restore", some(&[0, 1, 2, 3, 4]), json!({"root": "ab".repeat(32)}));
    assert_eq!((said_class(&said), out.len()), ("replaced", 0), "{said}");
}

/// Short files that claim a long payload, of which only the first set can be decoded: its rows lie far apart.
#[test]
fn shards_that_claim_more_than_they_hold_get_no_room() {
    let (mut shards, _) = shards(&payload(9, 30_000_000));
    for (_, bytes) in &mut shards {
        bytes.truncate(bytes.len() / 3);
    }
    shards.truncate(5);
    let (said, outputs) = ask_all("restore", Memory { objects: shards, ..Memory::default() }, json!({}));
    assert_eq!((said_class(&said), outputs.len()), ("missing", 0), "{said}");
}

#[test]
fn parts_of_an_open_encoding_come_out_one_by_one() {
    let plain = payload(7, 300_000);
    let (shards, root) = shards(&plain);
    let objects =
        vec![shards[1].clone(), shards[4].clone(), shards[5].clone(), shards[6].clone(), shards[8].clone()];
    let named: Vec<Value> =
        objects.iter().map(|(name, bytes)| json!({"name": name, "size": bytes.len()})).collect();
    let host = Arc::new(Memory { objects, ..Memory::default() });
    let mut session = Session::new(host.clone());
    let mut ask = |request: Value| session.answer(request.to_string().as_bytes());
    let said = ask(json!({"do": "open", "objects": named, "root": root}));
    assert_eq!(said["opened"], json!({"name": "report.pdf", "len": 300_000}), "{said}");
    for (start, len) in [(0, 300_000), (0, 1), (299_999, 1), (100_000, 70_001), (300_000, 0)] {
        host.outputs.lock().expect("outputs").clear();
        let said = ask(json!({"do": "part", "start": start, "len": len}));
        assert_eq!(said["part"], json!({"start": start, "len": len}), "{said}");
        let out = host.outputs.lock().expect("outputs").remove(&0).unwrap_or_default();
        assert!(out == plain[start..start + len], "{start}");
    }
    let said = ask(json!({"do": "part", "start": 299_999, "len": 2}));
    assert_eq!(said_class(&said), "usage", "{said}");
    // A failed opening closes what was open.
    let said = ask(json!({"do": "open", "objects": named, "root": "ab".repeat(32)}));
    assert_eq!(said_class(&said), "replaced", "{said}");
    assert_eq!(said_class(&ask(json!({"do": "part", "start": 0, "len": 1}))), "usage");
}

#[test]
fn two_encodings_are_named_and_neither_is_guessed() {
    let (mut both, root) = shards(&payload(7, 300_000));
    let (others, other) = shards(&payload(8, 300_000));
    both.extend(others.into_iter().map(|(name, bytes)| (format!("other {name}"), bytes)));
    let (said, out) = ask("restore", both.clone(), json!({}));
    let mut roots = vec![root.clone(), other];
    roots.sort();
    let mut told: Vec<String> = serde_json::from_value(said["error"]["roots"].clone()).expect("roots");
    told.sort();
    assert_eq!((said_class(&said), told, out.len()), ("usage", roots, 0), "{said}");
    let (said, out) = ask("restore", both, json!({"root": root}));
    assert!(said["ok"] == true && out == payload(7, 300_000), "{said}");
}

#[test]
fn what_cannot_be_read_is_told() {
    let (shards, _) = shards(&payload(7, 300_000));
    for fails_at in 1..60 {
        let memory = Memory { objects: shards.clone(), fails_at: Some(fails_at), ..Memory::default() };
        let (said, outputs) = ask_all("restore", memory, json!({}));
        assert!(said["ok"] == false || outputs[&0] == payload(7, 300_000), "{fails_at}: {said}");
    }
}

#[test]
fn requests_that_are_not_understood_are_refused() {
    let wrong = [
        "",
        "[]",
        "{}",
        r#"{"do": "look"}"#,
        r#"{"do": "look", "objects": []}"#,
        r#"{"do": "look", "objects": [{"name": "x"}]}"#,
        r#"{"do": "look", "objects": [{"name": "x", "size": -1}]}"#,
        r#"{"do": "look", "objects": [{"name": 1, "size": 1}]}"#,
        r#"{"do": "wipe", "objects": [{"name": "x", "size": 1}]}"#,
        r#"{"do": "look", "objects": [{"name": "x", "size": 1}], "root": "abc"}"#,
        r#"{"do": "look", "objects": [{"name": "x", "size": 1}], "trust": "nonsense"}"#,
        r#"{"do": "look", "objects": [{"name": "x", "size": 1}], "identities": "nonsense"}"#,
        r#"{"do": "look", "objects": [{"name": "x", "size": 1}], "other": 1}"#,
        r#"{"do": "encode", "objects": [{"name": "x", "size": 1}], "k": 0}"#,
        r#"{"do": "encode", "objects": [{"name": "x", "size": 1}], "root": "00"}"#,
        r#"{"do": "look", "objects": [{"name": "x", "size": 1}], "k": 3}"#,
        r#"{"do": "part", "start": 0, "len": 1}"#,
        r#"{"do": "part", "start": 0}"#,
        r#"{"do": "part", "start": 0, "len": 1, "objects": []}"#,
    ];
    for request in wrong {
        let said = Session::new(Arc::new(Memory::default())).answer(request.as_bytes());
        assert_eq!(said_class(&said), "usage", "{request}: {said}");
    }
}

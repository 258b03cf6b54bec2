//! Outlines behind shard files: as the independent implementation writes them, and whatever happens to the files.

use crate::made::{POLICY, context, payload};
use crate::vectors::{read, str_of};
use fec_base::io::folder::Folder;
use fec_base::names::hex;
use fec_core::block::Code;
use fec_core::digest::HashKind;
use fec_core::format::shard_file::{HEADER_LEN, ShardHeader};
use fec_keys::sign::SecretKey;
use fecfile::payload::Options;
use fecfile::within::{Label, SpareRooms, write_in};
use fecfile::{Archive, Context, Input, Repair, Settings};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn options(vector: &Value) -> Options {
    let number = |field: &str| vector[field].as_u64().expect("a number");
    let code = Code::new(number("k") as usize, number("m") as usize).expect("a code");
    let hash = HashKind::from_number(number("hash") as u8).expect("a hash");
    Options { hash, set_size: vector["set_size"].as_u64(), outlines: true, ..Options::new(code) }
}

/// Writes the shard files of a payload into a folder; returns their paths, in order.
fn write(folder: &Path, bytes: &Vec<u8>, options: &Options, context: &Context<'_>) -> Vec<PathBuf> {
    let store = Folder::new(folder, POLICY);
    let label = Label::named(b"data").expect("a name");
    let _ = write_in(&SpareRooms::default(), bytes, &label, &store, options, context).expect("it is written");
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    files
}

/// Bytes of a shard file without annexes.
fn plain_len(file: &[u8]) -> usize {
    let header: [u8; HEADER_LEN] = *file.first_chunk().expect("a header");
    ShardHeader::parse(&header).expect("a header").encoding.layout().file_len as usize
}

fn open(folder: &Path) -> Archive {
    let input = Input::of_paths(&[folder.to_path_buf()]).expect("a folder");
    Archive::open(&input, None, &context()).expect("it is opened")
}

/// Repairs the shard files in a folder.
fn mend(folder: &Path) {
    let how = Repair { out: None, policy: POLICY, dry_run: false };
    let repaired = open(folder).repair(how, &context()).expect("it is mended");
    assert!(repaired.written);
}

#[test]
fn outlines_are_those_of_the_independent_implementation() {
    let vectors = read("outlines.json");
    for vector in vectors.as_array().expect("a list") {
        let bytes = payload(3, vector["payload_len"].as_u64().expect("a length") as usize);
        for threads in [1, 3] {
            let home = tempfile::tempdir().expect("a folder");
            let context = Context::new(Settings { sync: false, threads, ..Settings::new() });
            let files = write(home.path(), &bytes, &options(vector), &context);
            let expected = vector["annexes"].as_array().expect("a list");
            assert_eq!(files.len(), expected.len());
            for (file, expected) in files.iter().zip(expected) {
                let file = fs::read(file).expect("a file");
                let annexes = &file[plain_len(&file)..];
                assert_eq!(annexes.len() as u64, expected["len"], "{}", vector["name"]);
                let found = hex(&HashKind::Sha256.digest(annexes));
                assert_eq!(found, str_of(expected, "sha256"), "{}", vector["name"]);
            }
            let archive = open(home.path());
            assert_eq!(hex(&archive.root().expect("a root")), str_of(vector, "root"));
            assert!(archive.verify(true, &context).expect("it is verified").is_intact());
        }
    }
}

/// Files come back bit for bit: whether they are lost, or damaged in their shards, their outlines or both, and with a
/// signature behind the outlines.
#[test]
fn a_repair_gives_outlines_back() {
    let vectors = read("outlines.json");
    let signing = Some(Arc::new(SecretKey::generate().expect("a key")));
    let options = Options { signing, ..options(&vectors[1]) };
    let bytes = payload(3, 200_000);
    type Damage = fn(&mut Vec<u8>, usize);
    let damages: [(&str, Damage); 6] = [
        ("a shard", |file, plain| file[plain / 2] ^= 1),
        ("an outline", |file, plain| file[plain + 100] ^= 1),
        ("both", |file, plain| {
            file[plain / 2] ^= 1;
            file[plain + 100] ^= 1;
        }),
        ("the head of the annex", |file, plain| file[plain] ^= 1),
        ("cut in the annex", |file, plain| file.truncate(plain + 70)),
        ("cut in the shard", |file, plain| file.truncate(plain / 2)),
    ];
    for (name, damage) in damages {
        let home = tempfile::tempdir().expect("a folder");
        let files = write(home.path(), &bytes, &options, &context());
        let before: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).expect("a file")).collect();
        let mut damaged = before[1].clone();
        let plain = plain_len(&damaged);
        damage(&mut damaged, plain);
        fs::write(&files[1], &damaged).expect("it is written");
        let found = open(home.path()).verify(false, &context()).expect("it is verified");
        assert!(!found.is_intact() && found.is_restorable == Some(true), "{name}");
        mend(home.path());
        for (file, before) in files.iter().zip(&before) {
            assert!(fs::read(file).expect("a file") == *before, "{name}: {}", file.display());
        }
    }
    let home = tempfile::tempdir().expect("a folder");
    let files = write(home.path(), &bytes, &options, &context());
    let before = fs::read(&files[2]).expect("a file");
    fs::remove_file(&files[2]).expect("it is removed");
    mend(home.path());
    assert!(fs::read(&files[2]).expect("a file") == before);
}

/// Files without outlines get none.
#[test]
fn a_repair_adds_no_outlines() {
    let vectors = read("outlines.json");
    let options = Options { outlines: false, ..options(&vectors[1]) };
    let home = tempfile::tempdir().expect("a folder");
    let files = write(home.path(), &payload(3, 200_000), &options, &context());
    let before = fs::read(&files[0]).expect("a file");
    assert_eq!(before.len(), plain_len(&before));
    fs::remove_file(&files[0]).expect("it is removed");
    mend(home.path());
    assert!(fs::read(&files[0]).expect("a file") == before);
}

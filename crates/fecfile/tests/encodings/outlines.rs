//! Outlines behind shard files: as the independent implementation writes them, and whatever happens to the files.

use crate::made::{POLICY, context, payload};
use crate::vectors::{read, str_of};
use fec_base::io::ReadAt;
use fec_base::io::folder::Folder;
use fec_base::names::hex;
use fec_core::block::Code;
use fec_core::digest::HashKind;
use fec_core::format::annex;
use fec_core::format::shard_file::{HEADER_LEN, ShardHeader};
use fec_keys::sign::SecretKey;
use fecfile::payload::Options;
use fecfile::report::ShardState;
use fecfile::within::{Label, SpareRooms, write_in};
use fecfile::{Archive, Context, Destination, Input, Object, PayloadRange, Repair, Settings};
use serde_json::Value;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

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

/// A file, and the bytes that were read of it.
struct Counted(Vec<u8>, AtomicU64);

impl ReadAt for Counted {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        let rest = &self.0[self.0.len().min(offset as usize)..];
        let len = rest.len().min(out.len());
        out[..len].copy_from_slice(&rest[..len]);
        self.1.fetch_add(len as u64, Relaxed);
        Ok(len)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }
}

/// The shard files of a payload of 4 MB in sets of 10 + 4 shards of 100 KiB, with outlines.
fn counted(bytes: &Vec<u8>) -> Vec<Arc<Counted>> {
    let home = tempfile::tempdir().expect("a folder");
    let code = Code::new(10, 4).expect("a code");
    let options = Options { set_size: Some(1_000 << 10), outlines: true, ..Options::new(code) };
    let files = write(home.path(), bytes, &options, &context());
    files.iter().map(|file| Arc::new(Counted(fs::read(file).expect("a file"), AtomicU64::new(0)))).collect()
}

/// Bytes `at` of the payload of these files, the number of bytes that this read, and the number of sets that were
/// mended.
fn part(files: &[Arc<Counted>], at: Range<u64>) -> (Vec<u8>, u64, u64) {
    files.iter().for_each(|file| file.1.store(0, Relaxed));
    let object = |(nth, file): (usize, &Arc<Counted>)| Object::new(nth.to_string(), file.clone());
    let objects = files.iter().enumerate().map(|file| object(file).expect("an object")).collect();
    let archive = Archive::open(&Input::Several(objects), None, &context()).expect("it is opened");
    let (mut out, wanted) = (Vec::new(), PayloadRange { start: at.start, end: Some(at.end) });
    let restored = archive
        .restore_range(wanted, None, Destination::writer(&mut out), &context())
        .expect("it is restored");
    (out, files.iter().map(|file| file.1.load(Relaxed)).sum(), restored.outcome.mended_sets)
}

#[test]
fn a_range_reads_leaves_and_not_records() {
    let bytes = payload(3, 4_000_000);
    let files = counted(&bytes);
    for at in [0..4096, 2_000_000..2_004_096, 16_384..16_385, 3_995_904..4_000_000, 102_000..106_096] {
        let (out, read, mended) = part(&files, at.clone());
        assert!(out == bytes[at.start as usize..at.end as usize] && mended == 0, "{at:?}");
        assert!(read <= 40_000, "{at:?}: {read} bytes");
    }
    let (_, read, _) = part(&files, 0..60_000);
    assert!(read > 100 << 10, "a large part of a record takes all of it: {read}");
}

/// Each damage leaves the bytes right: they come from the whole record then, or from other shards.
#[test]
fn nothing_but_proved_leaves_comes_out() {
    type Damage = fn(&mut Vec<u8>, usize);
    let damages: [(&str, bool, Damage); 5] = [
        ("the leaf", true, |file, plain| {
            file[plain / 2..].iter_mut().take(90_000).for_each(|byte| *byte ^= 1)
        }),
        ("the outlines", false, |file, plain| file[plain + 40..].iter_mut().for_each(|byte| *byte ^= 1)),
        ("outlines of zeros", false, |file, plain| {
            let len = file.len();
            file[plain + 48..len - 32].fill(0);
        }),
        ("a file that is cut in its outlines", false, |file, plain| file.truncate(plain + 70)),
        ("outlines that are not there", false, |file, plain| file.truncate(plain)),
    ];
    let bytes = payload(3, 4_000_000);
    for (name, is_mended, damage) in damages {
        let mut files = counted(&bytes);
        let plain = plain_len(&files[0].0);
        for file in files.iter_mut().take(4) {
            damage(&mut Arc::get_mut(file).expect("one owner").0, plain);
        }
        let mut mended = 0;
        for start in (0..3_990_000).step_by(49_999) {
            let (out, _, sets) = part(&files, start..start + 4096);
            assert!(out == bytes[start as usize..start as usize + 4096], "{name}: {start}");
            mended += sets;
        }
        assert_eq!(mended > 0, is_mended, "{name}");
    }
}

/// An annex whose checksum is wrong is told as that, and with its place.
#[test]
fn a_damaged_annex_is_named() {
    let vectors = read("outlines.json");
    let home = tempfile::tempdir().expect("a folder");
    let files = write(home.path(), &payload(3, 200_000), &options(&vectors[1]), &context());
    let mut damaged = fs::read(&files[1]).expect("a file");
    let (plain, end) = (plain_len(&damaged) as u64, damaged.len() as u64);
    damaged[plain as usize + 60] ^= 1;
    fs::write(&files[1], [&damaged[..], &annex::write(1 << 31, b"behind it")].concat())
        .expect("it is written");
    let found = open(home.path()).verify(false, &context()).expect("it is verified");
    let shard = &found.found.shards[1];
    assert_eq!((shard.state, shard.intact_sets), (ShardState::Damaged, shard.sets));
    let [damage] = &shard.damage[..] else { panic!("{:?}", shard.damage) };
    assert_eq!((damage.what.as_str(), damage.bytes.len()), ("an annex damaged", 1));
    assert_eq!((damage.bytes[0].start, damage.bytes[0].end), (plain, end));
}

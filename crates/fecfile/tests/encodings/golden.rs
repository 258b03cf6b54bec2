//! The golden vectors of encodings, written by the independent implementation in `scripts/oracle` from the
//! specification. This library must produce the same bytes, and every rule must reject its violations.

use crate::vectors::{exit_of, golden, payload, read, str_of};
use fec_base::io::folder::Folder;
use fec_base::io::output::{Destination, Policy};
use fec_base::io::source::SourceFile;
use fec_base::names::hex;
use fec_core::block::Code;
use fec_core::digest::{Digest, HashKind};
use fec_core::gf256::kernel::Backend;
use fecfile::error::Place;
use fecfile::forms::Beginning;
use fecfile::payload::{Grouping, Options, PayloadDigests, Source};
use fecfile::pipe::{self, Pipe};
use fecfile::{Archive, Context, Input, PayloadRange, Repair, Result, Settings, Wish, encode};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

const POLICY: Policy = Policy::new().with_sync(false);

fn context() -> Context<'static> {
    Context::new(Settings { sync: false, ..Settings::new() })
}

fn vectors(file: &str) -> Vec<Value> {
    read(file).as_array().expect("a list").clone()
}

fn digest_of(digits: &str) -> Digest {
    let byte = |at: usize| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).expect("hexadecimal digits");
    std::array::from_fn(byte)
}

fn sha256(bytes: &[u8]) -> String {
    hex(&HashKind::Sha256.digest(bytes))
}

fn number(vector: &Value, field: &str) -> u64 {
    vector[field].as_u64().unwrap_or_else(|| panic!("{vector} has no number {field}"))
}

fn payload_of(vector: &Value) -> Vec<u8> {
    payload(number(vector, "seed"), number(vector, "payload_len") as usize)
}

/// Tells whether the library can write such meta: no entries without a meaning, and no names in containers.
fn can_be_written(vector: &Value) -> bool {
    vector["extra"].is_null() && (vector["form"] == "shards" || vector["file_name"].is_null())
}

/// The options that produce a vector.
fn options_of(vector: &Value) -> Options {
    let code = Code::new(number(vector, "k") as usize, number(vector, "m") as usize).expect("a code");
    let has = |name: &str| vector["entries"].as_array().into_iter().flatten().any(|entry| entry == name);
    Options {
        hash: match str_of(vector, "hash") {
            "sha256" => HashKind::Sha256,
            "blake3" => HashKind::Blake3,
            hash => panic!("a hash that this test does not know: {hash}"),
        },
        set_size: vector["set_size"].as_u64(),
        grouping: vector["group_size"].as_u64().map_or(Grouping::Auto, |sets| Grouping::Sets(sets as u32)),
        payload_digests: PayloadDigests { sha256: has("sha256"), blake3: has("blake3") },
        ..Options::new(code)
    }
}

/// The files of a folder in the order of their names, or a file.
fn files_at(path: &Path) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path.to_path_buf()];
    }
    let mut files: Vec<PathBuf> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn open(path: &Path, root: Option<Digest>) -> Result<Archive> {
    Archive::open(&Input::of_paths(&[path.to_path_buf()])?, root, &context())
}

/// Encodes the payload of a vector, compares root and bytes, and restores the payload.
fn encode_and_compare(vector: &Value, settings: Settings) {
    // Bounded groups without a given number of sets come from pipes only.
    let is_of_pipe = vector["grouping"] == "bounded" && vector["group_size"].is_null();
    if is_of_pipe || !can_be_written(vector) {
        return;
    }
    let name = str_of(vector, "name");
    let context = Context::new(Settings { sync: false, ..settings });
    let folder = tempfile::tempdir().expect("a scratch folder");
    let (input, out) = (folder.path().join("payload"), folder.path().join("out"));
    let bytes = payload_of(vector);
    fs::write(&input, &bytes).unwrap();
    let source = SourceFile::open(&input, &context).unwrap();
    let options = options_of(vector);
    let file_name = vector["file_name"].as_str().unwrap_or("payload.bin");
    let written = match vector["form"] == "container" {
        true => encode::to_file(Source::Payload(&source), &out, POLICY, &options, &context),
        false => {
            let store = Folder::new(out.clone(), POLICY);
            encode::to_store(&source, file_name.as_bytes(), &store, &options, &context)
        }
    };
    let written = written.unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(hex(&written.root), str_of(vector, "root"), "{name}");
    let digests: Vec<String> = files_at(&out).iter().map(|file| sha256(&fs::read(file).unwrap())).collect();
    let expected: Vec<&str> =
        vector["digests"].as_array().unwrap().iter().map(|digest| digest.as_str().unwrap()).collect();
    assert_eq!(digests, expected, "{name}");
    let mut restored = Vec::new();
    let wish = Wish { strict: true, ..Wish::default() };
    let archive = Archive::open(&Input::of_paths(&[out]).unwrap(), None, &context).unwrap();
    let done = archive.restore(Destination::writer(&mut restored), wish, &context);
    assert!(done.unwrap_or_else(|error| panic!("{name}: {error}")).is_whole(), "{name}");
    assert!(restored == bytes, "{name}");
}

#[test]
fn every_vector_comes_out_byte_for_byte() {
    let vectors = vectors("encode.json");
    assert!(vectors.len() >= 400, "only {} vectors", vectors.len());
    vectors.iter().for_each(|vector| encode_and_compare(vector, Settings::new()));
    let written = vectors.iter().filter(|vector| can_be_written(vector)).count();
    println!("{written} of {} encodings were written and are identical", vectors.len());
}

#[test]
fn every_backend_and_thread_count_writes_the_same_bytes() {
    let vectors = vectors("encode.json");
    for backend in Backend::available() {
        for threads in [1, 2, 4] {
            for vector in vectors.iter().step_by(17) {
                encode_and_compare(vector, Settings { backend, threads, ..Settings::new() });
            }
        }
    }
}

/// Tells whether a payload surely fits a pipe's group: 48 MiB of shards, with sets of any size.
fn fits_a_group(vector: &Value) -> bool {
    let of = |field: &str| number(vector, field);
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
        let name = str_of(vector, "name");
        let (bytes, mut container) = (payload_of(vector), Vec::new());
        let source = Source::Pipe(&mut &bytes[..], Place::Nowhere);
        let written =
            encode::to_writer(source, &mut container, &Place::Nowhere, &options_of(vector), &context());
        let written = written.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(sha256(&container), vector["digests"][0].as_str().unwrap(), "{name}");
        let mut back = Vec::new();
        let restored = fecfile::decode_reader(&container[..], &mut back, Some(written.root), &context());
        assert!(restored.unwrap_or_else(|error| panic!("{name}: {error}")).is_whole(), "{name}");
        assert!(back == bytes, "{name}");
    }
}

#[test]
fn raw_files_of_the_other_implementation_are_restored_and_verified() {
    let vectors = vectors("encode.json");
    let raw: Vec<&Value> = vectors.iter().filter(|vector| vector["path"].is_string()).collect();
    assert!(raw.len() >= 20);
    for vector in raw {
        let name = str_of(vector, "name");
        let root = digest_of(str_of(vector, "root"));
        let archive = open(&golden().join(str_of(vector, "path")), Some(root)).unwrap();
        let mut back = Vec::new();
        let restored = archive.restore(Destination::writer(&mut back), Wish::default(), &context()).unwrap();
        assert!(restored.is_whole() && back == payload_of(vector), "{name}");
        back.clear();
        let restored = archive
            .restore_in_order(PayloadRange::ALL, None, (&mut back, Place::Nowhere), &context())
            .unwrap();
        assert!(restored.is_whole() && back == payload_of(vector), "{name}");
        assert!(archive.verify(true, &context()).unwrap().is_intact(), "{name}");
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
        let folder = tempfile::tempdir().expect("a scratch folder");
        let original = golden().join(str_of(vector, "path"));
        let copy = folder.path().join("copy");
        let files = files_at(&original);
        let copies: Vec<PathBuf> = match original.is_dir() {
            true => {
                fs::create_dir(&copy).unwrap();
                files.iter().map(|file| copy.join(file.file_name().unwrap())).collect()
            }
            false => vec![copy.clone()],
        };
        for (from, to) in files.iter().zip(&copies) {
            fs::copy(from, to).unwrap();
        }
        let damaged = &copies[(number(vector, "seed") % copies.len() as u64) as usize];
        let mut bytes = fs::read(damaged).unwrap();
        match mended % 3 {
            0 if original.is_dir() => fs::remove_file(damaged).unwrap(),
            1 => fs::write(damaged, &bytes[..bytes.len() - 1]).unwrap(),
            _ => {
                let at = bytes.len() / 2;
                bytes[at] ^= 1;
                fs::write(damaged, bytes).unwrap();
            }
        }
        let archive = open(&copy, Some(digest_of(str_of(vector, "root")))).unwrap();
        let how = Repair { out: None, policy: POLICY, dry_run: false };
        let repaired = archive.repair(how, &context()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(repaired.written && repaired.files.len() == 1, "{name}: {:?}", repaired.files);
        drop(archive);
        for (is, was) in copies.iter().zip(&files) {
            assert!(fs::read(is).unwrap() == fs::read(was).unwrap(), "{name}: {}", is.display());
        }
        assert!(open(&copy, None).unwrap().verify(false, &context()).unwrap().is_intact(), "{name}");
        mended += 1;
    }
    assert!(mended >= 20, "{mended}");
}

/// Every negative vector gets the error of its class, and leaves nothing behind. Positive vectors, for rules that
/// demand acceptance, restore their payload.
#[test]
fn every_rule_has_a_vector_that_gets_the_right_error() {
    let vectors = vectors("errors.json");
    assert!(vectors.len() >= 500, "only {} vectors", vectors.len());
    let folder = tempfile::tempdir().expect("a scratch folder");
    let out = folder.path().join("out");
    let mut wrong = Vec::new();
    for vector in &vectors {
        let path = golden().join(str_of(vector, "path"));
        let restored = open(&path, vector["root"].as_str().map(digest_of)).and_then(|archive| {
            let opener = archive.opener(None)?;
            let wish = Wish { strict: vector["strict"] == true, opener: opener.as_ref(), ..Wish::default() };
            archive.restore(Destination::File(&out, POLICY), wish, &context())
        });
        let exit = restored.as_ref().map_or_else(|error| exit_of(error.class()), |_| 0);
        let bytes = fs::read(&out).ok();
        let is_as_expected = vector["exit"] == exit
            && bytes.as_deref().map(sha256).as_deref() == vector["payload_sha256"].as_str()
            && fs::read_dir(folder.path()).unwrap().count() == usize::from(exit == 0);
        if !is_as_expected {
            wrong
                .push(format!("{vector}\n  got {exit}: {:?}", restored.err().map(|error| error.to_string())));
        }
        let _ = fs::remove_file(&out);
    }
    assert!(wrong.is_empty(), "{} of {} wrong:\n{}", wrong.len(), vectors.len(), wrong.join("\n"));
    println!("{} of {} rules hold", vectors.len(), vectors.len());
}

/// Vectors whose containers come out otherwise from a pipe, which cannot go back.
const OTHERWISE_IN_PIPES: [&str; 15] = [
    // The first k records of a set decide.
    "c-cheat-other-choice",
    "c-cheat-other-choice-2",
    "c-cheat-cyclic",
    "c-cheat-choice-15",
    // An index behind everything leads to nothing that has gone by, and only the last group tells its root.
    "c-two-indexes-root-2",
    "c-index-alone-other-root",
    // Groups that have gone by are not waited for, and the first of a chain may be of any root.
    "c-shuffled",
    "c-group-of-other-root",
    "c-joined-root-2",
    "c-one-record-appended-its-root",
    // Shard files are no containers, and what is in them or beside them may be one.
    "c-in-shard-file",
    "c-in-shard-file-root",
    "c-behind-shard-file-root-1",
    "c-behind-shard-file-root-2",
    "c-before-shard-file-root-1",
];

/// The rules of containers hold for pipes too: the payload, or an error of the same class.
#[test]
fn rules_of_containers_hold_in_pipes() {
    let vectors = vectors("errors.json");
    let containers = vectors.iter().filter(|vector| str_of(vector, "name").starts_with("c-"));
    let mut otherwise = Vec::new();
    for vector in containers.filter(|vector| vector["strict"] != true) {
        let path = golden().join(str_of(vector, "path"));
        let mut out = Vec::new();
        let pipe = Pipe {
            input: fs::File::open(&path).expect("a vector"),
            place: Path::new("-"),
            beginning: Beginning::Other,
            wanted: vector["root"].as_str().map(digest_of),
            keys: None,
        };
        let done = pipe::restore(pipe, Destination::writer(&mut out), &context());
        let exit = done.as_ref().map_or_else(|error| exit_of(error.class()), |_| 0);
        let is_payload = Some(sha256(&out)).as_deref() == vector["payload_sha256"].as_str();
        if vector["exit"] != exit || exit == 0 && !is_payload {
            otherwise.push(str_of(vector, "name"));
        }
    }
    assert_eq!(otherwise, OTHERWISE_IN_PIPES);
}

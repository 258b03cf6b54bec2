//! The golden vectors, by the parsers and writers of this crate alone. The independent implementations in
//! `scripts/oracle` wrote them from docs/FORMAT.md. The command's tests judge whole inputs.

mod scan_work;
mod sidecars;
mod streams;

use fec_core::block::Code;
use fec_core::digest::HashKind;
use fec_core::error::{Class, FormatError};
use fec_core::format::annex::{self, AnnexHeader};
use fec_core::format::container::{GroupId, IndexHeader, MetaFrame, RecordHeader};
use fec_core::format::manifest::Manifest;
use fec_core::format::meta::Meta;
use fec_core::format::packet::{self, Body, PacketError, RowHeader};
use fec_core::format::report::{self, Control};
use fec_core::format::scan::{ScanStep, Scanner};
use fec_core::format::seal::{self, Seal, SealedKind};
use fec_core::format::sealed_packet;
use fec_core::format::shard_file::{Layout, ShardHeader, header_checks};
use fec_core::format::sidecar::catalog::{Catalog, shortened};
use fec_core::format::sidecar::extent::Extent;
use fec_core::format::sidecar::piece::{Piece, piece_head_len};
use fec_core::format::sidecar::stat::Stats;
use fec_core::gf256::kernel::Backend;
use fec_core::params::{FileGeometry, Form, GroupGeometry, default_set_size};
use fec_core::set::tree_of_shard;
use fec_core::window::{Encoder, Profile, Ratio, StreamSettings, WINDOW_LIMIT};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn golden(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(path)
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).expect("the vectors are there")
}

fn vectors(file: &str) -> Value {
    serde_json::from_slice(&read(&golden(file))).expect("they are JSON")
}

fn list(value: &Value, at_least: usize) -> &[Value] {
    let list = value.as_array().expect("a list");
    assert!(list.len() >= at_least, "there are {}", list.len());
    list
}

fn str_of<'a>(vector: &'a Value, field: &str) -> &'a str {
    vector[field].as_str().unwrap_or_else(|| panic!("{vector} has no {field}"))
}

fn number(vector: &Value, field: &str) -> u64 {
    vector[field].as_u64().unwrap_or_else(|| panic!("{vector} has no {field}"))
}

fn hex(digits: &str) -> Vec<u8> {
    (0..digits.len() / 2)
        .map(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).expect("digits"))
        .collect()
}

fn root_of(vector: &Value) -> [u8; 32] {
    hex(str_of(vector, "root")).try_into().expect("32 bytes")
}

fn class_of(error: &FormatError) -> &'static str {
    match error.class() {
        Class::Damaged => "damaged",
        Class::Invalid => "invalid",
        Class::Refused => "refused",
    }
}

/// The shard files of a folder, in order.
fn shard_files(folder: &Path) -> Vec<Vec<u8>> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    files.iter().map(|file| read(file)).collect()
}

#[test]
fn manifests() {
    for vector in list(&vectors("manifest.json"), 35) {
        let name = str_of(vector, "name");
        let bytes = hex(str_of(vector, "bytes"));
        let parsed = Manifest::parse(&bytes);
        assert_eq!(
            parsed.as_ref().err().map(class_of),
            vector["error"].as_str(),
            "{name}: {:?}",
            parsed.err()
        );
        let Ok(manifest) = parsed else { continue };
        let root = root_of(vector);
        assert_eq!((manifest.root(), manifest.to_bytes()), (root, bytes.clone()), "{name}");
        assert_eq!(Manifest::open(&root, &bytes).as_ref(), Ok(&manifest), "{name}");
        assert_eq!(manifest.segment_len, number(vector, "segment_len"));
        assert_eq!(manifest.payload_len(), number(vector, "payload_len"));
        assert_eq!(manifest.segments.len() as u64, number(vector, "segments"));
        assert_eq!(u64::from(manifest.hash.number()), number(vector, "hash"));
        let targets = list(&vector["targets"], 0);
        assert_eq!(manifest.targets.len(), targets.len());
        for (target, pair) in manifest.targets.iter().zip(targets) {
            assert_eq!((Some(&*target.url), Some(&*target.domain)), (pair[0].as_str(), pair[1].as_str()));
        }
        for segment in 0..manifest.segments.len() {
            assert_eq!(manifest.segment_start(segment), segment as u64 * number(vector, "segment_len"));
        }
        let changed = [&bytes[..], b"x"].concat();
        assert!(Manifest::open(&root, &changed).is_err() && Manifest::open(&[0; 32], &bytes).is_err());
    }
}

/// Files that the vectors only name: their lengths.
#[test]
fn lengths_of_files() {
    let mut tried = 0;
    for vector in list(&vectors("encode.json"), 400) {
        if vector["grouping"] == "bounded"
            || str_of(vector, "form") == "shards" && !vector["set_size"].is_null()
        {
            continue;
        }
        let code = Code::new(number(vector, "k") as usize, number(vector, "m") as usize).unwrap();
        let hash = if vector["hash"] == "sha256" { HashKind::Sha256 } else { HashKind::Blake3 };
        let (len, meta_len) = (number(vector, "payload_len"), number(vector, "meta_len"));
        let set_size = vector["set_size"].as_u64().unwrap_or_else(|| default_set_size(code, Some(len)));
        let whole = |form| GroupGeometry::whole(form, hash, code, set_size, len).unwrap();
        let file_len = if str_of(vector, "form") == "shards" {
            Layout::new(&whole(Form::Shards), meta_len as u32).file_len
        } else {
            let geometry = whole(Form::Container);
            let id = GroupId { geometry, root: [0; 32], before: [0; 32] };
            let file = FileGeometry::of_only(&geometry);
            let index =
                IndexHeader { geometry: file, root: [0; 32], meta_hash: [0; 32], meta_len: meta_len as u32 };
            let frame = if meta_len > 0 { MetaFrame::len_for(meta_len as usize) } else { 0 };
            frame + id.group_len() + 3 * 128 + 2 * index.body_len()
        };
        assert_eq!(file_len, number(vector, "file_len"), "{}", vector["name"]);
        tried += 1;
    }
    assert!(tried >= 280, "{tried}");
}

#[test]
fn shard_files_of_the_other_implementation() {
    let all = vectors("encode.json");
    for vector in list(&all, 400).iter().filter(|v| v["path"].is_string() && v["form"] == "shards") {
        let (name, root) = (str_of(vector, "name"), root_of(vector));
        let (k, m) = (number(vector, "k") as usize, number(vector, "m") as usize);
        let files = shard_files(&golden(str_of(vector, "path")));
        assert_eq!(files.len(), k + m);
        for (index, file) in files.iter().enumerate() {
            let first: &[u8; 192] = file.first_chunk().unwrap();
            assert_eq!(Some(first), file.last_chunk(), "{name}");
            assert!(header_checks(first));
            let header = ShardHeader::parse(first).unwrap();
            let encoding = header.encoding;
            assert_eq!((header.index as usize, encoding.root), (index, root), "{name}");
            assert_eq!(u64::from(encoding.meta_len), number(vector, "meta_len"));
            assert_eq!(encoding.geometry.payload_len(), number(vector, "payload_len"));
            let code = encoding.geometry.shape().code;
            assert_eq!((code.k(), code.m()), (k, m));
            assert_eq!(header.to_bytes(), *first);
            let layout = encoding.layout();
            assert_eq!((layout.file_len, number(vector, "file_len")), (file.len() as u64, file.len() as u64));
            for meta in layout.metas() {
                let bytes = &file[meta as usize..][..encoding.meta_len as usize];
                let meta = Meta::open(encoding.geometry.shape().hash, &encoding.meta_hash, bytes).unwrap();
                assert_eq!(meta.to_bytes(), bytes);
                assert_eq!(meta.name.as_deref(), vector["file_name"].as_str().map(str::as_bytes));
                assert_eq!(meta.seal.map(|seal| seal.len() as u64), vector["extra"]["len"].as_u64());
            }
            for set in 0..encoding.geometry.shape().sets {
                let body = &file[layout.shard(set) as usize..][..layout.shard_len as usize];
                for proof in layout.proofs(set) {
                    let proof = &file[proof as usize..][..layout.proof_len as usize];
                    let tree = tree_of_shard(&encoding.geometry, set, header.index, body, proof);
                    assert_eq!(tree, Some(encoding.tree), "{name}");
                }
            }
        }
    }
}

/// The findings of a scan, a line for each.
struct Found {
    lines: Vec<String>,
    errors: Vec<FormatError>,
    skipped: usize,
}

impl Found {
    /// Notes an error; returns its line.
    fn refuse(&mut self, thing: &str, error: FormatError) -> String {
        let line = format!("{thing}: {error}");
        self.errors.push(error);
        line
    }
}

/// Checks that a record has the right lengths and root, and is written as the same bytes.
fn check_record(header: &RecordHeader, tree: &[u8; 32], (proof, body): (&[u8], &[u8]), bytes: &[u8]) {
    let geometry = header.group.geometry;
    let expected = (header.group.record_len(), geometry.shape().shard_len);
    assert_eq!((bytes.len() as u64, body.len()), expected);
    assert_eq!(proof.len(), geometry.shape().proof_len());
    assert_eq!(geometry.root(tree, &header.group.before), header.group.root);
    let mut again = bytes[..bytes.len() - body.len()].to_vec();
    again[..128].fill(0xff);
    header.seal(&mut again);
    assert_eq!(again, bytes[..again.len()]);
}

/// Scans a whole input. The scanner gets as many bytes at a time as it asks for, and `more` beyond.
fn scan(bytes: &[u8], wanted: Option<[u8; 32]>, more: usize) -> Found {
    let mut scanner = Scanner::new(wanted);
    let mut found = Found { lines: Vec::new(), errors: Vec::new(), skipped: 0 };
    let (mut at, mut end) = (0, bytes.len().min(more));
    while at < bytes.len() {
        let window = &bytes[at..end.max(at)];
        let (drop, line) = match scanner.step(window, at + window.len() == bytes.len(), at as u64) {
            ScanStep::More(needed) => {
                assert!(needed > window.len() && end < bytes.len(), "{needed} bytes at {at}");
                end = bytes.len().min(at + needed + more);
                continue;
            }
            ScanStep::Skip(skipped) => {
                found.skipped += skipped;
                (skipped, String::new())
            }
            ScanStep::Record { header, tree, proof, body, len, drop } => {
                check_record(&header, &tree, (proof, body), &window[..len]);
                let hides = wanted.is_none_or(|wanted| wanted == header.group.root);
                assert_eq!(drop, if hides { len } else { 8 });
                let number = header.group.geometry.number();
                (drop, format!("record {} {} of group {number}", header.index, header.set))
            }
            ScanStep::Meta { frame, drop } => {
                assert_eq!(drop as u64, MetaFrame::len_for(frame.meta_len as usize));
                (drop, format!("meta of {}", frame.meta_len))
            }
            ScanStep::Index { index, drop } => {
                assert_eq!(drop as u64, 128 + index.header.body_len());
                let meta = &window[128 + 32 * index.trees.len()..][..index.header.meta_len as usize];
                assert_eq!(index.to_bytes(meta)[..drop], window[..drop]);
                (drop, format!("index {:02x?}", &index.header.root[..4]))
            }
            ScanStep::IndexHeader { header, len } => {
                let drop = scanner.index_in_vain(&header, false, at as u64, len);
                (drop, format!("index header {:02x?}", &header.root[..4]))
            }
            ScanStep::Annex { kind, data, len, drop } => {
                assert_eq!((len, drop), (64 + data.len(), 8));
                assert_eq!(annex::write(kind, data), window[..len]);
                (drop, format!("annex {kind} of {}", data.len()))
            }
            ScanStep::BadMeta { error, drop, .. } => (drop, found.refuse("bad meta", error)),
            ScanStep::Rejected { error, drop } => (drop, found.refuse("rejected", error)),
        };
        assert!(drop > 0 && drop <= window.len().max(8), "{drop} of {} are dropped", window.len());
        if !line.is_empty() {
            found.lines.push(format!("{at}: {line}"));
        }
        at += drop;
        end = end.max(at).min(bytes.len());
    }
    found
}

/// Containers are found as they were written: the frame, each record in its place, two indexes and a header.
#[test]
fn containers_of_the_other_implementation() {
    let all = vectors("encode.json");
    for vector in list(&all, 400).iter().filter(|v| v["path"].is_string() && v["form"] == "container") {
        let (name, root, meta_len) = (str_of(vector, "name"), root_of(vector), number(vector, "meta_len"));
        let bytes = read(&golden(str_of(vector, "path")));
        assert_eq!(bytes.len() as u64, number(vector, "file_len"));
        // From the index, whose length follows from the end of the file.
        let header = IndexHeader::parse(bytes.last_chunk().unwrap()).unwrap();
        assert_eq!((header.root, u64::from(header.meta_len)), (root, meta_len), "{name}");
        assert_eq!(header.geometry.payload_len(), number(vector, "payload_len"));
        let body_len = header.body_len() as usize;
        assert_eq!(
            body_len,
            (32 * header.geometry.groups() as usize + meta_len as usize).next_multiple_of(64)
        );
        let index = header.open(&bytes[bytes.len() - 128 - body_len..bytes.len() - 128]).unwrap();
        let mut expected = Vec::new();
        let mut at = 0;
        if meta_len > 0 {
            expected.push(format!("0: meta of {meta_len}"));
            at += MetaFrame::len_for(meta_len as usize);
            let frame = MetaFrame::parse(&bytes[..at as usize]).unwrap();
            assert_eq!(frame.kind, bytes[bytes.len() - 96..bytes.len() - 92]);
            let meta = &bytes[128..][..meta_len as usize];
            assert_eq!(MetaFrame::to_bytes(header.geometry.shape(), meta), bytes[..at as usize]);
        }
        for (id, _) in index.groups() {
            let shape = *id.geometry.shape();
            for (shard, set) in (0..shape.code.n()).flat_map(|i| (0..shape.sets).map(move |s| (i, s))) {
                expected.push(format!("{at}: record {shard} {set} of group {}", id.geometry.number()));
                at += id.record_len();
            }
        }
        let root_start = &root[..4];
        expected.push(format!("{at}: index {root_start:02x?}"));
        expected.push(format!("{}: index {root_start:02x?}", at as usize + 128 + body_len));
        expected.push(format!("{}: index header {root_start:02x?}", at as usize + 2 * (128 + body_len)));
        for more in [0, 1, 1 << 20] {
            let found = scan(&bytes, None, more);
            assert_eq!(found.lines, expected, "{name}, {more} bytes more");
            // Behind the magic of the last header, which nothing follows.
            assert_eq!((found.skipped, found.errors.len()), (120, 0), "{name}");
        }
        // With the root of another encoding, records hide nothing: they are all found, and their bodies are scanned.
        let other = scan(&bytes, Some([0; 32]), 0);
        assert!(expected.iter().all(|line| other.lines.contains(line)), "{name}");
    }
}

/// A rule of sections 4, 7, 8 and 9 that all copies of an object break: the parser or the scan reports it, with the
/// vector's class and no other.
#[test]
fn every_rule_rejects() {
    const SECTIONS: [&str; 6] = ["§4.1", "§7", "§8", "§9 ", "§9:", "§9.4"];
    let all = vectors("errors.json");
    let mut tried = 0;
    for vector in list(&all, 500).iter().filter(|v| v["root"].is_null()) {
        let (name, rule, class) = (str_of(vector, "name"), str_of(vector, "rule"), vector["class"].as_str());
        if !SECTIONS.iter().any(|section| rule.starts_with(section)) || rule.contains("strictly") {
            continue;
        }
        let path = golden(str_of(vector, "path"));
        let errors: Vec<FormatError> = if path.is_dir() {
            let errors = shard_files(&path).into_iter().filter_map(|file| {
                let header = match ShardHeader::parse(file.first_chunk()?) {
                    Ok(header) => header,
                    Err(error) => return Some(error),
                };
                let encoding = header.encoding;
                let [at, _] = encoding.layout().metas();
                let meta = file.get(at as usize..)?.get(..encoding.meta_len as usize)?;
                Meta::open(encoding.geometry.shape().hash, &encoding.meta_hash, meta).err()
            });
            errors.collect()
        } else {
            let bytes = read(&path);
            let (whole, piecemeal) = (scan(&bytes, None, bytes.len()), scan(&bytes, None, 0));
            assert_eq!(whole.lines, piecemeal.lines, "{name}");
            whole.errors
        };
        if let Some(class @ ("refused" | "invalid")) = class {
            let classes: Vec<&str> = errors.iter().map(class_of).collect();
            let worst = ["refused", "invalid", "damaged"].into_iter().find(|class| classes.contains(class));
            assert_eq!(worst, Some(class), "{name}, {rule}: {errors:?}");
            tried += 1;
        }
    }
    assert!(tried >= 100, "{tried}");
}

#[test]
fn seals() {
    let all = vectors("sealed.json");
    for vector in list(&all["valid"], 15).iter().chain(list(&all["again"], 3)) {
        let (bytes, age) = (hex(str_of(vector, "seal")), hex(str_of(vector, "age")));
        let seal = Seal::parse(&bytes).unwrap();
        assert_eq!((u64::from(seal.cipher), seal.age_file), (number(vector, "cipher"), &age[..]));
        assert_eq!([seal.public, seal.private].concat(), bytes);
        assert_eq!(Seal::public(seal.cipher, seal.content, &age, seal.again.as_ref()).unwrap(), seal.public);
        assert_eq!(seal.content, SealedKind::Payload);
        let name = vector["file_name"].as_str().map_or(0, |name| 3 + name.len());
        assert_eq!(seal.private.len(), (2 + name).next_multiple_of(256) + seal::TAG);
        if let Some(path) = vector["path"].as_str() {
            let path = golden(path);
            let files = if path.is_dir() { shard_files(&path) } else { vec![read(&path)] };
            let len = match ShardHeader::parse(files[0].first_chunk().unwrap()) {
                Ok(header) => header.encoding.geometry.payload_len(),
                Err(_) => IndexHeader::parse(files[0].last_chunk().unwrap()).unwrap().geometry.payload_len(),
            };
            let plain = number(vector, "payload_len");
            assert_eq!((seal::sealed_len(plain), seal::plain_len(len)), (len, Some(plain)));
        }
    }
    assert!(AnnexHeader::read(&[0; 32]).is_none() && shortened(&[7; 32]) == [7; 16]);
    assert!(RecordHeader::parse(&[0; 192]).is_err());
}

//! A payload and its encodings, and what happens to them: lost, damaged and moved shards and records.

use fec_base::io::folder::Folder;
use fec_core::block::Code;
use fec_core::digest::Digest;
use fec_core::format::container::{INDEX_MAGIC, META_MAGIC, RECORD_MAGIC, RecordHeader, record_head_len};
use fec_keys::age::{Identity, KeyKind, Keys};
use fec_keys::cipher::Cipher;
use fecfile::error::Place;
use fecfile::payload::{Grouping, Options, Source};
use fecfile::seal::{SealedTo, Sealing};
use fecfile::{Archive, Context, Input, Policy, Result, Settings, encode};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use crate::vectors::payload;

pub(crate) const POLICY: Policy = Policy::new().with_sync(false);

pub(crate) fn context() -> Context<'static> {
    Context::new(Settings { sync: false, ..Settings::new() })
}

/// 5 + 4 shards, and sets of 20 KiB: ten of them for 200,000 bytes.
pub(crate) fn options(grouping: Grouping) -> Options {
    let code = Code::new(5, 4).expect("a code");
    Options { set_size: Some(20 << 10), grouping, ..Options::new(code) }
}

/// A sealing for a new key, and the key.
pub(crate) fn sealing() -> (Arc<Sealing>, Keys) {
    let identity = Identity::generate(KeyKind::X25519).expect("a key");
    let to = SealedTo::Recipients(vec![identity.recipient()]);
    (Arc::new(Sealing { to, cipher: Cipher::best() }), Keys::Identities(vec![identity]))
}

/// A container of these bytes, and its root.
pub(crate) fn container(bytes: &[u8], options: &Options) -> (Vec<u8>, Digest) {
    let (mut out, mut input) = (Vec::new(), bytes);
    let source = Source::Pipe(&mut input, Place::Nowhere);
    let written =
        encode::to_writer(source, &mut out, &Place::Nowhere, options, &context()).expect("it is encoded");
    (out, written.root)
}

/// The parts of a container, in order. Bytes between two parts belong to the part before.
pub(crate) struct Parts {
    /// The meta frames in front.
    pub(crate) front: Vec<Vec<u8>>,
    /// Group, set and shard of each record, with its bytes.
    pub(crate) records: Vec<(u32, u32, u32, Vec<u8>)>,
    /// The index, and all behind it.
    pub(crate) index: Vec<u8>,
}

impl Parts {
    pub(crate) fn of(container: &[u8]) -> Parts {
        let is_start = |at: &usize| {
            [RECORD_MAGIC, INDEX_MAGIC, META_MAGIC].iter().any(|magic| container[*at..].starts_with(magic))
        };
        let mut starts: Vec<usize> = (0..container.len() - 8).filter(is_start).collect();
        let end = starts.iter().position(|at| container[*at..].starts_with(&INDEX_MAGIC)).expect("an index");
        let index = container[starts[end]..].to_vec();
        starts.truncate(end + 1);
        let mut parts = Parts { front: Vec::new(), records: Vec::new(), index };
        for bytes in starts.windows(2).map(|pair| &container[pair[0]..pair[1]]) {
            if bytes.starts_with(&META_MAGIC) {
                parts.front.push(bytes.to_vec());
            } else {
                let head = record_head_len(bytes.first_chunk().expect("a header"));
                let header = RecordHeader::parse(&bytes[..head]).expect("a record");
                let group = header.group.geometry.number();
                parts.records.push((group, header.set, header.index, bytes.to_vec()));
            }
        }
        parts
    }

    /// The container of the records that `keep`s wants, by group, set and shard.
    pub(crate) fn with(&self, keep: impl Fn(u32, u32, u32) -> bool) -> Vec<u8> {
        let records = self.records.iter().filter(|(group, set, shard, _)| keep(*group, *set, *shard));
        self.joined(records.map(|(.., bytes)| bytes))
    }

    /// The container of these records.
    pub(crate) fn joined<'r>(&'r self, records: impl Iterator<Item = &'r Vec<u8>>) -> Vec<u8> {
        let parts = self.front.iter().chain(records).chain([&self.index]);
        parts.flatten().copied().collect()
    }

    /// The number of groups.
    pub(crate) fn groups(&self) -> u32 {
        1 + self.records.iter().map(|(group, ..)| *group).max().expect("records")
    }
}

/// A folder with shard files of `name` in `s`.
pub(crate) fn shard_files(bytes: &[u8], options: &Options) -> (tempfile::TempDir, Digest) {
    let home = tempfile::tempdir().expect("a folder");
    let folder = Folder::new(home.path().join("s"), POLICY);
    let payload = bytes.to_vec();
    let written = encode::to_store(&payload, b"name", &folder, options, &context()).expect("shards");
    (home, written.root)
}

pub(crate) fn shard(home: &Path, index: usize) -> PathBuf {
    home.join(format!("s/name.{index:03}.shard"))
}

pub(crate) fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).expect("a file");
    bytes[at] ^= 1;
    fs::write(path, bytes).expect("it is written");
}

pub(crate) fn open(path: &Path, root: Option<Digest>) -> Result<Archive> {
    Archive::open(&Input::of_paths(&[path.to_path_buf()])?, root, &context())
}

//! The container: records one after the other, then an index (format specification, section 9).
//!
//! A record is a header, a proof and a shard; the records of a group follow each other, and a reader needs no order.
//! The index at the end lists the groups' roots and leads to the root of the whole.
//!
//! ```
//! use fec_core::block::Code;
//! use fec_core::digest::HashKind;
//! use fec_core::format::container::{GroupId, Index, RecordHeader};
//! use fec_core::format::scan::{ScanStep, Scanner};
//! use fec_core::gf256::kernel::Backend;
//! use fec_core::params::ContainerLayout;
//! use fec_core::set::{EncodedSet, Run, SetEncoder};
//!
//! // A payload of 100 bytes: one group of one set of 2 + 1 shards, and no meta.
//! let (code, hash) = (Code::new(2, 1)?, HashKind::Blake3);
//! let layout = ContainerLayout::new(hash, code, 1 << 20, None)?;
//! let geometry = layout.group(0, 100, true);
//! let mut shards = [[b'x'; 64]; 2];
//! shards[1][geometry.shard_payload(0, 1)..].fill(0);
//! let mut encoded = EncodedSet::new(geometry.shape());
//! let tree = SetEncoder::new(code, hash, Backend::best())
//!     .encode(0, &[&shards[0], &shards[1]], &mut encoded, Run::default());
//! let before = hash.digest(b"");
//! let group = GroupId { geometry, root: geometry.root(&tree, &before), before };
//!
//! // A record of its last shard. Behind the header stands the proof, then zeros up to a whole line.
//! let mut record = vec![0; group.record_head_len()];
//! encoded.write_path(2, &mut record[128..][..geometry.shape().proof_len()]);
//! RecordHeader { set: 0, index: 2, group }.seal(&mut record);
//! record.extend_from_slice(encoded.recovery().row(0));
//!
//! // Whoever scans finds it anywhere, and believes it only if it leads to the root that it names.
//! let ScanStep::Record { header, body, .. } = Scanner::new(None).step(&record, true, 0) else {
//!     panic!("it is a record");
//! };
//! assert_eq!((header.index, header.group, body), (2, group, encoded.recovery().row(0)));
//!
//! // The root of the last group is that of the whole.
//! let index = Index::new(layout.file(&geometry)?, vec![tree], &[]);
//! assert_eq!(index.header.root, group.root);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::meta::{MAX_META, Meta, check_len};
use super::{array_at, check_start, checksum, is_zero, u32_at, u64_at};
use crate::digest::{Digest, HashKind};
use crate::error::FormatError;
use crate::params::{self, FileGeometry, Form, GroupGeometry, kind_of, parse_kind};

/// The first eight bytes of a record.
pub const RECORD_MAGIC: [u8; 8] = *b"\x89fecR\r\n\x1a";
/// The first eight bytes of each copy of the index header.
pub const INDEX_MAGIC: [u8; 8] = *b"\x89fecX\r\n\x1a";
/// The first eight bytes of a meta frame.
pub const META_MAGIC: [u8; 8] = *b"\x89fecM\r\n\x1a";
/// Bytes of the header of a record, an index and a meta frame.
pub const HEADER_LEN: usize = 128;

/// A record's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    /// The set in the group.
    pub set: u32,
    /// The shard of the set.
    pub index: u32,
    /// The group that the record says it belongs to.
    pub group: GroupId,
}

/// The identity of a group of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GroupId {
    /// Pg.
    pub geometry: GroupGeometry,
    /// GR.
    pub root: Digest,
    /// H, the hash that the group follows: M for the first group, else the root of the group before.
    pub before: Digest,
}

/// Bytes of a proof in a record: whole lines.
fn padded_proof_len(k: u64, m: u64, sets: u64) -> usize {
    params::proof_len(k, m, sets).next_multiple_of(64)
}

impl GroupId {
    /// Bytes of a record up to its body.
    pub fn record_head_len(&self) -> usize {
        let shape = self.geometry.shape();
        HEADER_LEN + padded_proof_len(shape.code.k() as u64, shape.code.m() as u64, shape.sets.into())
    }

    /// Bytes of a whole record.
    pub fn record_len(&self) -> u64 {
        (self.record_head_len() + self.geometry.shape().shard_len) as u64
    }

    /// Records in the group: n·G.
    pub fn records(&self) -> u64 {
        let shape = self.geometry.shape();
        shape.code.n() as u64 * u64::from(shape.sets)
    }

    /// Bytes of the whole group.
    pub fn group_len(&self) -> u64 {
        self.records() * self.record_len()
    }

    /// The place of a record in the group: shard index outer, set inner.
    pub fn ordinal(&self, set: u32, index: u32) -> u64 {
        u64::from(index) * u64::from(self.geometry.shape().sets) + u64::from(set)
    }
}

/// Bytes of a record before its body, computed from its first 128 bytes, whatever they hold. [`RecordHeader::parse`]
/// takes that many bytes.
pub fn record_head_len(header: &[u8; HEADER_LEN]) -> usize {
    HEADER_LEN + stated_proof_len(header).next_multiple_of(64)
}

/// Bytes of the proof behind a header, whatever the numbers in that are.
fn stated_proof_len(header: &[u8]) -> usize {
    let (k, m) = (u16::from_le_bytes(array_at(header, 36)), u16::from_le_bytes(array_at(header, 38)));
    params::proof_len(k.into(), m.into(), u32_at(header, 44).into())
}

impl RecordHeader {
    /// Parses header and proof: `head` has exactly the bytes that [`record_head_len`] says.
    ///
    /// # Errors
    /// The first check of section 9 that fails, before those of the body.
    pub fn parse(head: &[u8]) -> Result<RecordHeader, FormatError> {
        check_start(head, &RECORD_MAGIC)?;
        if u32_at(head, 8) != checksum(head) {
            return Err(FormatError::Checksum("a record"));
        }
        if !is_zero(&head[12..16]) || !is_zero(&head[24..32]) {
            return Err(FormatError::Damaged("a zero field of a record"));
        }
        if !is_zero(&head[HEADER_LEN + stated_proof_len(head)..]) {
            return Err(FormatError::Damaged("the padding of a proof"));
        }
        let geometry = GroupGeometry::parse(&array_at(head, 32), Form::Container)?;
        let group = GroupId { geometry, root: array_at(head, 64), before: array_at(head, 96) };
        let (set, index) = (u32_at(head, 16), u32_at(head, 20));
        let shape = geometry.shape();
        if set >= shape.sets {
            return Err(FormatError::OutOfRange { what: "set", value: set, count: shape.sets as usize });
        }
        if index as usize >= shape.code.n() {
            return Err(FormatError::OutOfRange { what: "shard", value: index, count: shape.code.n() });
        }
        Ok(RecordHeader { set, index, group })
    }

    /// The proof field in the bytes that were parsed; `None` if its padding is not zero.
    pub fn proof<'a>(&self, head: &'a [u8]) -> Option<&'a [u8]> {
        let (proof, padding) = head[HEADER_LEN..].split_at(self.group.geometry.shape().proof_len());
        is_zero(padding).then_some(proof)
    }

    /// Tells whether the checksum of a header with its proof is right.
    pub fn is_sealed(head: &[u8]) -> bool {
        head.len() >= HEADER_LEN && u32_at(head, 8) == checksum(head)
    }

    /// Writes the header around the proof that already stands in `head`, and the checksum of both.
    ///
    /// # Panics
    /// If `head` is not [`GroupId::record_head_len`] bytes.
    pub fn seal(&self, head: &mut [u8]) {
        assert_eq!(head.len(), self.group.record_head_len());
        head[HEADER_LEN + self.group.geometry.shape().proof_len()..].fill(0);
        head[..8].copy_from_slice(&RECORD_MAGIC);
        head[12..16].fill(0);
        head[16..20].copy_from_slice(&self.set.to_le_bytes());
        head[20..24].copy_from_slice(&self.index.to_le_bytes());
        head[24..32].fill(0);
        head[32..64].copy_from_slice(&self.group.geometry.to_bytes());
        head[64..96].copy_from_slice(&self.group.root);
        head[96..128].copy_from_slice(&self.group.before);
        let sum = checksum(head);
        head[8..12].copy_from_slice(&sum.to_le_bytes());
    }
}

/// A meta frame: the meta of every encoding with this hash of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetaFrame {
    /// The first four bytes of P: version, hash, form and flags.
    pub kind: [u8; 4],
    /// M.
    pub meta_hash: Digest,
    /// Bytes of the meta.
    pub meta_len: u32,
    /// The meta.
    pub meta: Meta,
}

impl MetaFrame {
    /// Bytes of the frame, computed from its first 128 bytes, whatever they hold. [`MetaFrame::parse`] takes that many
    /// bytes.
    pub fn frame_len(header: &[u8; HEADER_LEN]) -> usize {
        let meta_len = u32_at(header, 16) as usize;
        let is_possible = (1..=MAX_META).contains(&meta_len);
        HEADER_LEN + if is_possible { meta_len.next_multiple_of(64) } else { 0 }
    }

    /// Parses a frame: `frame` has exactly the bytes that [`frame_len`](MetaFrame::frame_len) says.
    ///
    /// # Errors
    /// The first check of section 9 that fails.
    pub fn parse(frame: &[u8]) -> Result<MetaFrame, FormatError> {
        MetaFrame::open(frame).map_err(|(error, _, _)| error)
    }

    /// As [`parse`](MetaFrame::parse). The error also tells how many bytes of meta were hashed, and M if the frame is
    /// right and only its meta is wrong.
    pub(super) fn open(frame: &[u8]) -> Result<MetaFrame, (FormatError, usize, Option<Digest>)> {
        let (hash, bytes) = MetaFrame::unwrap(frame).map_err(|error| (error, 0, None))?;
        let meta_hash = array_at(frame, 64);
        if hash.digest(bytes) != meta_hash {
            return Err((FormatError::Damaged("the hash of the meta"), bytes.len(), None));
        }
        let meta = Meta::parse(bytes).map_err(|error| (error, bytes.len(), Some(meta_hash)))?;
        Ok(MetaFrame { kind: array_at(frame, 32), meta_hash, meta_len: bytes.len() as u32, meta })
    }

    /// The meta in a frame, and the hash that it names.
    fn unwrap(frame: &[u8]) -> Result<(HashKind, &[u8]), FormatError> {
        check_start(frame, &META_MAGIC)?;
        if u32_at(frame, 8) != checksum(frame) {
            return Err(FormatError::Checksum("a meta frame"));
        }
        let meta_len = u32_at(frame, 16) as usize;
        let (head, bytes) = frame.split_at(HEADER_LEN);
        let (meta, padding) = bytes.split_at(meta_len.min(bytes.len()));
        let zeros = [&head[12..16], &head[20..32], &head[36..64], &head[96..], padding];
        if !zeros.into_iter().all(is_zero) {
            return Err(FormatError::Damaged("a zero field of a meta frame"));
        }
        let hash = parse_kind(array_at(frame, 32), Form::Container, 0)?;
        check_len(meta_len)?;
        if meta_len == 0 {
            return Err(FormatError::Meta("a frame for it is empty"));
        }
        Ok((hash, meta))
    }

    /// Bytes of the frame around `meta_len` bytes of meta.
    pub fn len_for(meta_len: usize) -> u64 {
        (HEADER_LEN + meta_len.next_multiple_of(64)) as u64
    }

    /// The bytes of the frame around meta bytes.
    ///
    /// # Panics
    /// If the meta is empty or longer than [`MAX_META`].
    pub fn to_bytes(shape: &params::Shape, meta: &[u8]) -> Vec<u8> {
        assert!((1..=MAX_META).contains(&meta.len()));
        let mut frame = vec![0; HEADER_LEN + meta.len().next_multiple_of(64)];
        frame[..8].copy_from_slice(&META_MAGIC);
        frame[16..20].copy_from_slice(&(meta.len() as u32).to_le_bytes());
        frame[32..36].copy_from_slice(&kind_of(shape));
        frame[64..96].copy_from_slice(&shape.hash.digest(meta));
        frame[HEADER_LEN..][..meta.len()].copy_from_slice(meta);
        let sum = checksum(&frame);
        frame[8..12].copy_from_slice(&sum.to_le_bytes());
        frame
    }
}

/// A copy of the index header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexHeader {
    /// P.
    pub geometry: FileGeometry,
    /// R.
    pub root: Digest,
    /// M.
    pub meta_hash: Digest,
    /// Bytes of the meta.
    pub meta_len: u32,
}

/// A whole index: it leads to its root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// Its header.
    pub header: IndexHeader,
    /// X of every group.
    pub trees: Vec<Digest>,
    /// The meta.
    pub meta: Meta,
}

impl IndexHeader {
    /// Parses an index header.
    ///
    /// # Errors
    /// The first check that fails: magic, version, checksum, zero bytes, P, meta length, body length.
    pub fn parse(bytes: &[u8; HEADER_LEN]) -> Result<IndexHeader, FormatError> {
        check_start(bytes, &INDEX_MAGIC)?;
        if u32_at(bytes, 8) != checksum(bytes) {
            return Err(FormatError::Checksum("an index header"));
        }
        if !is_zero(&bytes[12..16]) || !is_zero(&bytes[28..32]) {
            return Err(FormatError::Damaged("a zero field of an index header"));
        }
        let geometry = FileGeometry::parse(&array_at(bytes, 32))?;
        let meta_len = u32_at(bytes, 24);
        check_len(meta_len as usize)?;
        let header =
            IndexHeader { geometry, root: array_at(bytes, 64), meta_hash: array_at(bytes, 96), meta_len };
        if u64_at(bytes, 16) != header.body_len() {
            return Err(FormatError::Damaged("the index body length"));
        }
        Ok(header)
    }

    /// Bytes of the index body: up to 128 GiB.
    pub fn body_len(&self) -> u64 {
        (32 * u64::from(self.geometry.groups()) + u64::from(self.meta_len)).next_multiple_of(64)
    }

    /// Checks an index body against this header.
    ///
    /// # Errors
    /// [`FormatError::Damaged`] when it does not lead to the root; a rule of meta.
    pub fn open(&self, body: &[u8]) -> Result<Index, FormatError> {
        if body.len() as u64 != self.body_len() {
            return Err(FormatError::Damaged("the index body length"));
        }
        let (trees, rest) = body.split_at(32 * self.geometry.groups() as usize);
        let (meta_bytes, padding) = rest.split_at(self.meta_len as usize);
        let trees = trees.as_chunks::<32>().0;
        let hash = self.geometry.shape().hash;
        let is_right = is_zero(padding)
            && hash.digest(meta_bytes) == self.meta_hash
            && root_of(&self.geometry, &self.meta_hash, trees) == self.root;
        if !is_right {
            return Err(FormatError::Damaged("the index body"));
        }
        Ok(Index { header: *self, trees: trees.to_vec(), meta: Meta::parse(meta_bytes)? })
    }

    fn to_bytes(self) -> [u8; HEADER_LEN] {
        let mut header = [0u8; HEADER_LEN];
        header[..8].copy_from_slice(&INDEX_MAGIC);
        header[16..24].copy_from_slice(&self.body_len().to_le_bytes());
        header[24..28].copy_from_slice(&self.meta_len.to_le_bytes());
        header[32..64].copy_from_slice(&self.geometry.to_bytes());
        header[64..96].copy_from_slice(&self.root);
        header[96..128].copy_from_slice(&self.meta_hash);
        let sum = checksum(&header);
        header[8..12].copy_from_slice(&sum.to_le_bytes());
        header
    }
}

/// The root of the last of the groups with these trees.
fn root_of(geometry: &FileGeometry, meta_hash: &Digest, trees: &[Digest]) -> Digest {
    (0..).zip(trees).fold(*meta_hash, |before, (number, tree)| geometry.group(number).root(tree, &before))
}

impl Index {
    /// The index of a finished container; computes R. `meta` are the meta bytes.
    ///
    /// # Panics
    /// If the number of trees is not the geometry's number of groups, or the meta breaks a rule.
    pub fn new(geometry: FileGeometry, trees: Vec<Digest>, meta: &[u8]) -> Index {
        assert_eq!(trees.len(), geometry.groups() as usize);
        let meta_hash = geometry.shape().hash.digest(meta);
        let root = root_of(&geometry, &meta_hash, &trees);
        let header = IndexHeader { geometry, root, meta_hash, meta_len: meta.len() as u32 };
        Index { header, trees, meta: Meta::parse(meta).expect("the writer's own meta") }
    }

    /// Header, body, header, body, header. `meta` are the meta bytes that the index was made with.
    pub fn to_bytes(&self, meta: &[u8]) -> Vec<u8> {
        let mut body = self.trees.concat();
        body.extend_from_slice(meta);
        body.resize(body.len().next_multiple_of(64), 0);
        let header = self.header.to_bytes();
        [&header[..], &body, &header, &body, &header].concat()
    }

    /// The groups that the index lists, each with its tree of sets. Cost: two node hashes for each.
    pub fn groups(&self) -> impl Iterator<Item = (GroupId, Digest)> {
        let geometry = self.header.geometry;
        let mut before = self.header.meta_hash;
        (0..).zip(&self.trees).map(move |(number, tree)| {
            let group = geometry.group(number);
            let root = group.root(tree, &before);
            let id = GroupId { geometry: group, root, before };
            before = root;
            (id, *tree)
        })
    }
}

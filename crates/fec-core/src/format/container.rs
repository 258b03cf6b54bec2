//! The container: records one after the other, then an index (format specification, section 9).
//!
//! A record is a header, a proof and a shard; the records of a group follow each other, and a reader needs no order.
//! The index at the end lists the groups' roots and leads to the root of the whole.
//!
//! ```
//! use fec_core::block::Code;
//! use fec_core::digest::HashKind;
//! use fec_core::format::container::{GroupId, Index, RecordHeader};
//! use fec_core::format::meta::Meta;
//! use fec_core::format::scan::{ScanStep, Scanner};
//! use fec_core::gf256::kernel::Backend;
//! use fec_core::params::{CONTAINER_GROUP_BYTES, ContainerLayout};
//! use fec_core::set::{EncodedSet, Run, SetEncoder};
//!
//! // A payload of 100 bytes: one group of one set of 2 + 1 shards.
//! let (code, hash) = (Code::new(2, 1)?, HashKind::Blake3);
//! let layout = ContainerLayout::new(hash, code, 128, None, CONTAINER_GROUP_BYTES)?;
//! let geometry = layout.group(0, 100, true);
//! let mut shards = [[b'x'; 64]; 2];
//! shards[1][geometry.shard_payload(0, 1)..].fill(0);
//! let mut encoded = EncodedSet::new(geometry.shape());
//! let set_root = SetEncoder::new(code, hash, Backend::best())
//!     .encode(0, &[&shards[0], &shards[1]], &mut encoded, Run::default());
//! let group = GroupId { geometry, root: geometry.root(&set_root), head: [0; 32] };
//!
//! // A record of its last shard. Behind the header stands the proof, then zeros up to a whole line.
//! let mut record = vec![0; group.record_head_len()];
//! encoded.write_path(2, &mut record[128..][..geometry.shape().proof_len()]);
//! RecordHeader { set: 0, index: 2, group }.seal(&mut record);
//! record.extend_from_slice(encoded.recovery().row(0));
//!
//! // Whoever scans finds it anywhere, and believes it only if it leads to the root that it names.
//! let mut scanner = Scanner::new(CONTAINER_GROUP_BYTES);
//! let ScanStep::Record { header, body, .. } = scanner.step(&record, true, record.len() as u64)? else {
//!     panic!("it is a record");
//! };
//! assert_eq!((header.index, header.group, body), (2, group, encoded.recovery().row(0)));
//!
//! // The index gives the root.
//! let index = Index::new(layout.file(&geometry), vec![group.root], Meta::default());
//! assert!(index.groups().eq([group]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::meta::{MAX_META, Meta};
use super::{array_at, checksum, is_zero, u32_at, u64_at};
use crate::digest::Digest;
use crate::error::FormatError;
use crate::merkle::{Frontier, ceil_log2};
use crate::params::{FileGeometry, Form, GroupGeometry};

/// The first eight bytes of a record.
pub const RECORD_MAGIC: [u8; 8] = *b"\x89fecR\r\n\x1a";
/// The first eight bytes of each copy of the index header.
pub const INDEX_MAGIC: [u8; 8] = *b"\x89fecX\r\n\x1a";
/// Bytes of a record's header and of an index header.
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

/// What tells the groups of containers apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GroupId {
    /// Pg.
    pub geometry: GroupGeometry,
    /// GR.
    pub root: Digest,
    /// The tree of the roots of the groups before it; zero for the first.
    pub head: Digest,
}

/// Bytes of a proof in a record: whole lines.
fn padded_proof_len(n: u64, sets: u64) -> usize {
    (32 * (ceil_log2(n) + ceil_log2(sets)) as usize).next_multiple_of(64)
}

impl GroupId {
    /// Bytes of a record up to its body.
    pub fn record_head_len(&self) -> usize {
        let shape = self.geometry.shape();
        HEADER_LEN + padded_proof_len(shape.code.n() as u64, shape.sets.into())
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

/// How many bytes of a record stand before its body, told from the first 128 of them whatever the
/// numbers in them are; with that many bytes [`RecordHeader::parse`] can be called.
pub fn record_head_len(header: &[u8; HEADER_LEN]) -> usize {
    let (k, m) = (u16::from_le_bytes(array_at(header, 36)), u16::from_le_bytes(array_at(header, 38)));
    HEADER_LEN + padded_proof_len(u64::from(k) + u64::from(m), u32_at(header, 44).into())
}

impl RecordHeader {
    /// Parses header and proof: `head` is exactly what [`record_head_len`] says.
    ///
    /// # Errors
    /// The first check of section 9 that fails, before those of the body.
    pub fn parse(head: &[u8], max_group: u64) -> Result<RecordHeader, FormatError> {
        if !head.starts_with(&RECORD_MAGIC) {
            return Err(FormatError::Damaged("the magic"));
        }
        if u32_at(head, 8) != checksum(head) {
            return Err(FormatError::Damaged("the checksum of a record"));
        }
        if !is_zero(&head[12..16]) || !is_zero(&head[24..32]) {
            return Err(FormatError::Damaged("a zero field of a record"));
        }
        let geometry = GroupGeometry::parse(&array_at(head, 32), max_group)?;
        let group = GroupId { geometry, root: array_at(head, 64), head: array_at(head, 96) };
        let (set, index) = (u32_at(head, 16), u32_at(head, 20));
        let shape = geometry.shape();
        if set >= shape.sets {
            return Err(FormatError::OutOfRange { what: "set", value: set, count: shape.sets as usize });
        }
        if index as usize >= shape.code.n() {
            return Err(FormatError::OutOfRange { what: "shard", value: index, count: shape.code.n() });
        }
        if geometry.number() == 0 && group.head != [0; 32] {
            return Err(FormatError::Damaged("the head of the first group"));
        }
        Ok(RecordHeader { set, index, group })
    }

    /// The proof field in the bytes that were parsed; `None` if its padding is not zero.
    pub fn proof<'a>(&self, head: &'a [u8]) -> Option<&'a [u8]> {
        let (proof, padding) = head[HEADER_LEN..].split_at(self.group.geometry.shape().proof_len());
        is_zero(padding).then_some(proof)
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
        head[96..128].copy_from_slice(&self.group.head);
        let sum = checksum(head);
        head[8..12].copy_from_slice(&sum.to_le_bytes());
    }
}

/// One copy of the index header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexHeader {
    /// P.
    pub geometry: FileGeometry,
    /// R.
    pub root: Digest,
    /// M.
    pub meta_hash: Digest,
    meta_len: usize,
}

/// A whole index: it leads to its root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// P.
    pub geometry: FileGeometry,
    /// R.
    pub root: Digest,
    /// GR of every group.
    pub group_roots: Vec<Digest>,
    /// The meta.
    pub meta: Meta,
    meta_bytes: Vec<u8>,
}

impl IndexHeader {
    /// Parses an index header.
    ///
    /// # Errors
    /// The first check that fails: magic, checksum, zero bytes, P, meta length, body length.
    pub fn parse(bytes: &[u8; HEADER_LEN], max_group: u64) -> Result<IndexHeader, FormatError> {
        if !bytes.starts_with(&INDEX_MAGIC) {
            return Err(FormatError::Damaged("the magic"));
        }
        if u32_at(bytes, 8) != checksum(bytes) {
            return Err(FormatError::Damaged("the checksum of an index header"));
        }
        if !is_zero(&bytes[12..16]) || !is_zero(&bytes[26..32]) {
            return Err(FormatError::Damaged("a zero field of an index header"));
        }
        let geometry = FileGeometry::parse(&array_at(bytes, 32), Form::Container, max_group)?;
        let meta_len = usize::from(u16::from_le_bytes(array_at(bytes, 24)));
        if meta_len > MAX_META {
            return Err(FormatError::Meta("it is longer than 350 bytes"));
        }
        let header =
            IndexHeader { geometry, root: array_at(bytes, 64), meta_hash: array_at(bytes, 96), meta_len };
        if u64_at(bytes, 16) != header.body_len() as u64 {
            return Err(FormatError::Damaged("the index body length"));
        }
        Ok(header)
    }

    /// Bytes of the index body: at most 32 MiB and a little.
    pub fn body_len(&self) -> usize {
        (32 * self.geometry.groups() as usize + self.meta_len).next_multiple_of(64)
    }

    /// Checks an index body against this header.
    ///
    /// # Errors
    /// [`FormatError::Damaged`] when it does not lead to the root; a rule of meta.
    pub fn open(&self, body: &[u8]) -> Result<Index, FormatError> {
        if body.len() != self.body_len() {
            return Err(FormatError::Damaged("the index body length"));
        }
        let (roots, rest) = body.split_at(32 * self.geometry.groups() as usize);
        let (meta_bytes, padding) = rest.split_at(self.meta_len);
        let hash = self.geometry.shape().hash;
        let mut tree = Frontier::new(hash);
        let group_roots = roots.as_chunks::<32>().0.to_vec();
        group_roots.iter().for_each(|r| tree.push(*r));
        let leads =
            tree.root().is_some_and(|t| self.geometry.root_of_meta_hash(&t, &self.meta_hash) == self.root);
        if !leads || hash.digest(meta_bytes) != self.meta_hash || !is_zero(padding) {
            return Err(FormatError::Damaged("the index body"));
        }
        let (geometry, root) = (self.geometry, self.root);
        Ok(Index {
            geometry,
            root,
            group_roots,
            meta: Meta::parse(meta_bytes)?,
            meta_bytes: meta_bytes.to_vec(),
        })
    }
}

impl Index {
    /// The index of a finished container; computes R.
    ///
    /// # Panics
    /// If the number of roots is not the geometry's number of groups.
    pub fn new(geometry: FileGeometry, group_roots: Vec<Digest>, meta: Meta) -> Index {
        assert_eq!(group_roots.len(), geometry.groups() as usize);
        let mut tree = Frontier::new(geometry.shape().hash);
        group_roots.iter().for_each(|r| tree.push(*r));
        let meta_bytes = meta.to_bytes();
        let root = geometry.root(&tree.root().expect("at least one group"), &meta_bytes);
        Index { geometry, root, group_roots, meta, meta_bytes }
    }

    /// Header, body, header, body, header.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut body = self.group_roots.concat();
        body.extend_from_slice(&self.meta_bytes);
        body.resize(body.len().next_multiple_of(64), 0);
        let mut header = [0u8; HEADER_LEN];
        header[..8].copy_from_slice(&INDEX_MAGIC);
        header[16..24].copy_from_slice(&(body.len() as u64).to_le_bytes());
        header[24..26].copy_from_slice(&(self.meta_bytes.len() as u16).to_le_bytes());
        header[32..64].copy_from_slice(&self.geometry.to_bytes());
        header[64..96].copy_from_slice(&self.root);
        header[96..128].copy_from_slice(&self.geometry.shape().hash.digest(&self.meta_bytes));
        let sum = checksum(&header);
        header[8..12].copy_from_slice(&sum.to_le_bytes());
        [&header[..], &body, &header, &body, &header].concat()
    }

    /// The groups that the index lists, with the heads they must have.
    pub fn groups(&self) -> impl Iterator<Item = GroupId> {
        let mut tree = Frontier::new(self.geometry.shape().hash);
        self.group_roots.iter().zip(0..).map(move |(root, number)| {
            let head = tree.root().unwrap_or([0; 32]);
            tree.push(*root);
            GroupId { geometry: self.geometry.group(number), root: *root, head }
        })
    }
}

//! A shard file: one shard index of every set, checkable alone against the root (format
//! specification, section 8).

use super::meta::{MAX_META, Meta};
use super::{array_at, checksum, is_zero, u32_at, u64_at};
use crate::digest::Digest;
use crate::error::FormatError;
use crate::params::{FileGeometry, Form, GroupGeometry};

/// The first eight bytes of a shard file and of its last 512 bytes.
pub const MAGIC: [u8; 8] = *b"\x89fecS\r\n\x1a";
/// Bytes of the header, which stands at both ends.
pub const HEADER_LEN: usize = 512;
const BODY_ALIGN: u64 = 4096;
const META_AT: usize = 162;

/// A shard file's header. Its fields agree with one another and with the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardHeader {
    /// Which of the n shards the file holds.
    pub index: u32,
    /// The encoding that all its shard files share.
    pub encoding: Encoding,
}

/// What all shard files of one encoding have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Encoding {
    /// P.
    pub geometry: FileGeometry,
    /// R.
    pub root: Digest,
    /// T, which is also the root of the only group.
    pub tree: Digest,
    /// The meta, as read.
    pub meta: Meta,
    /// The meta bytes, which the root binds.
    pub meta_bytes: Vec<u8>,
}

impl Encoding {
    /// The encoding with these parameters; computes R.
    pub fn new(geometry: FileGeometry, tree: Digest, meta: Meta) -> Encoding {
        let meta_bytes = meta.to_bytes();
        let root = geometry.root(&tree, &meta_bytes);
        Encoding { geometry, root, tree, meta, meta_bytes }
    }

    /// Pg of the only group.
    pub fn group(&self) -> GroupGeometry {
        self.geometry.group(0)
    }

    /// The positions in each of its shard files.
    pub fn layout(&self) -> Layout {
        Layout::new(&self.geometry)
    }
}

/// Byte positions in a shard file; all are products of header fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of one proof.
    pub proof_len: u64,
    /// Bytes of one shard.
    pub shard_len: u64,
    /// Where the first proofs start.
    pub head_proofs: u64,
    /// Bytes of all proofs.
    pub proofs_len: u64,
    /// Where the body starts.
    pub body: u64,
    /// Bytes of the body.
    pub body_len: u64,
    /// Where the second proofs start.
    pub tail_proofs: u64,
    /// Where the second header starts.
    pub tail_header: u64,
    /// Bytes of the file.
    pub file_len: u64,
}

impl Layout {
    /// The layout for a geometry.
    pub fn new(geometry: &FileGeometry) -> Layout {
        let shape = geometry.shape();
        let (sets, shard_len) = (u64::from(shape.sets), shape.shard_len as u64);
        let proof_len = shape.proof_len() as u64;
        let proofs_len = sets * proof_len;
        let head_proofs = HEADER_LEN as u64;
        let body = (head_proofs + proofs_len).next_multiple_of(BODY_ALIGN);
        let body_len = sets * shard_len;
        let tail_proofs = body + body_len;
        let tail_header = tail_proofs + proofs_len;
        let file_len = tail_header + HEADER_LEN as u64;
        Layout {
            proof_len,
            shard_len,
            head_proofs,
            proofs_len,
            body,
            body_len,
            tail_proofs,
            tail_header,
            file_len,
        }
    }

    /// Where the shard of `set` starts.
    pub fn shard(&self, set: u32) -> u64 {
        self.body + u64::from(set) * self.shard_len
    }

    /// Where the two copies of the proof of `set` start.
    pub fn proofs(&self, set: u32) -> [u64; 2] {
        let at = u64::from(set) * self.proof_len;
        [self.head_proofs + at, self.tail_proofs + at]
    }
}

/// Whether these are the first bytes of a shard file, in whatever state the rest is.
pub fn has_magic(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// Whether magic and checksum of a header are right, whatever it says: then the file that it stands in is a shard file
/// (specification, section 9.3).
pub fn header_checks(bytes: &[u8; HEADER_LEN]) -> bool {
    has_magic(bytes) && u32_at(bytes, 8) == checksum(bytes)
}

impl ShardHeader {
    /// Parses one copy of the header.
    ///
    /// # Errors
    /// The first check of section 8 that fails.
    pub fn parse(bytes: &[u8; HEADER_LEN]) -> Result<ShardHeader, FormatError> {
        if !has_magic(bytes) {
            return Err(FormatError::Damaged("the magic"));
        }
        if u32_at(bytes, 8) != checksum(bytes) {
            return Err(FormatError::Damaged("the checksum of the header"));
        }
        if !is_zero(&bytes[12..16]) || !is_zero(&bytes[20..24]) {
            return Err(FormatError::Damaged("a zero field of the header"));
        }
        let geometry = FileGeometry::parse(&array_at(bytes, 32), Form::Shards, u64::MAX)?;
        let index = u32_at(bytes, 16);
        let count = geometry.shape().code.n();
        if index as usize >= count {
            return Err(FormatError::OutOfRange { what: "shard", value: index, count });
        }
        if u64_at(bytes, 24) != Layout::new(&geometry).body_len {
            return Err(FormatError::Damaged("the body length in the header"));
        }
        let meta_len = usize::from(u16::from_le_bytes(array_at(bytes, 160)));
        if meta_len > MAX_META {
            return Err(FormatError::Meta("it is longer than 350 bytes"));
        }
        let (meta_bytes, rest) = bytes[META_AT..].split_at(meta_len);
        if !is_zero(rest) {
            return Err(FormatError::Damaged("the zero bytes after the meta"));
        }
        let (root, tree, meta_hash): (Digest, Digest, Digest) =
            (array_at(bytes, 64), array_at(bytes, 96), array_at(bytes, 128));
        if geometry.shape().hash.digest(meta_bytes) != meta_hash {
            return Err(FormatError::Damaged("the hash of the meta"));
        }
        if geometry.root_of_meta_hash(&tree, &meta_hash) != root {
            return Err(FormatError::Damaged("the root in the header"));
        }
        let meta = Meta::parse(meta_bytes)?;
        let encoding = Encoding { geometry, root, tree, meta, meta_bytes: meta_bytes.to_vec() };
        Ok(ShardHeader { index, encoding })
    }

    /// The bytes of the header; parsing them gives this header again.
    pub fn to_bytes(&self) -> [u8; HEADER_LEN] {
        let encoding = &self.encoding;
        let mut out = [0u8; HEADER_LEN];
        out[..8].copy_from_slice(&MAGIC);
        out[16..20].copy_from_slice(&self.index.to_le_bytes());
        out[24..32].copy_from_slice(&encoding.layout().body_len.to_le_bytes());
        out[32..64].copy_from_slice(&encoding.geometry.to_bytes());
        out[64..96].copy_from_slice(&encoding.root);
        out[96..128].copy_from_slice(&encoding.tree);
        let meta_hash = encoding.geometry.shape().hash.digest(&encoding.meta_bytes);
        out[128..160].copy_from_slice(&meta_hash);
        out[160..162].copy_from_slice(&(encoding.meta_bytes.len() as u16).to_le_bytes());
        out[META_AT..META_AT + encoding.meta_bytes.len()].copy_from_slice(&encoding.meta_bytes);
        let sum = checksum(&out);
        out[8..12].copy_from_slice(&sum.to_le_bytes());
        out
    }
}

//! A shard file: one shard index of every set, checkable alone against the root (format
//! specification, section 8).

use super::meta::check_len;
use super::outline::Outlines;
use super::{VERSION_AT, array_at, check_start, checksum, is_zero, u32_at, u64_at};
use crate::digest::Digest;
use crate::error::FormatError;
use crate::params::{Form, GroupGeometry};

/// The first eight bytes of both headers of a shard file.
pub const MAGIC: [u8; 8] = *b"\x89fecS\r\n\x1a";
/// Bytes of the header, which stands at both ends.
pub const HEADER_LEN: usize = 192;
/// Alignment of large bodies.
const PAGE: u64 = 4096;
/// Fewest bytes of a large body.
const LARGE_BODY: u64 = 65_536;

/// A shard file's header. Its fields agree with one another and with the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardHeader {
    /// The index of the file's shard among the n shards.
    pub index: u32,
    /// The encoding that all its shard files share.
    pub encoding: Encoding,
}

/// The properties that all shard files of an encoding share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding {
    /// Pg of the only group.
    pub geometry: GroupGeometry,
    /// R.
    pub root: Digest,
    /// X, the tree of the sets.
    pub tree: Digest,
    /// M.
    pub meta_hash: Digest,
    /// Bytes of the meta.
    pub meta_len: u32,
}

impl Encoding {
    /// The encoding with these parameters; computes R.
    ///
    /// # Panics
    /// If the meta is longer than [`MAX_META`](super::meta::MAX_META).
    pub fn new(geometry: GroupGeometry, tree: Digest, meta: &[u8]) -> Encoding {
        check_len(meta.len()).expect("the caller's meta is not too long");
        let meta_hash = geometry.shape().hash.digest(meta);
        let root = geometry.root(&tree, &meta_hash);
        Encoding { geometry, root, tree, meta_hash, meta_len: meta.len() as u32 }
    }

    /// The positions in each of its shard files.
    pub fn layout(&self) -> Layout {
        Layout::new(&self.geometry, self.meta_len)
    }

    /// Bytes of a shard file with the annexes of its [outlines](super::outline), if its shards can have outlines.
    pub fn outlined_len(&self) -> u64 {
        let outlines = Outlines::new(self.geometry.shape());
        self.layout().file_len + outlines.map_or(0, |outlines| outlines.annexes_len())
    }

    /// Tells whether its shard files have this length, with outlines or without.
    pub fn has_len(&self, len: u64) -> bool {
        len == self.layout().file_len || len == self.outlined_len()
    }
}

/// Byte positions in a shard file; all follow from header fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of the meta.
    pub meta_len: u64,
    /// Start of the first copy of the meta.
    pub head_meta: u64,
    /// Bytes of one proof.
    pub proof_len: u64,
    /// Bytes of one shard.
    pub shard_len: u64,
    /// Start of the first proofs.
    pub head_proofs: u64,
    /// Bytes of all proofs.
    pub proofs_len: u64,
    /// Start of the body.
    pub body: u64,
    /// Bytes of the body.
    pub body_len: u64,
    /// Start of the second proofs.
    pub tail_proofs: u64,
    /// Start of the second copy of the meta.
    pub tail_meta: u64,
    /// Start of the second header.
    pub tail_header: u64,
    /// Bytes of the file.
    pub file_len: u64,
}

impl Layout {
    /// The layout for a geometry with `meta_len` bytes of meta.
    pub fn new(geometry: &GroupGeometry, meta_len: u32) -> Layout {
        let shape = geometry.shape();
        let (sets, shard_len) = (u64::from(shape.sets), shape.shard_len as u64);
        let meta_len = u64::from(meta_len);
        let proof_len = shape.proof_len() as u64;
        let proofs_len = sets * proof_len;
        let head_meta = HEADER_LEN as u64;
        let head_proofs = (head_meta + meta_len).next_multiple_of(64);
        let body_len = sets * shard_len;
        let align = if body_len >= LARGE_BODY { PAGE } else { 64 };
        let body = (head_proofs + proofs_len).next_multiple_of(align);
        let tail_proofs = body + body_len;
        let tail_meta = tail_proofs + proofs_len;
        let tail_header = tail_meta + meta_len.next_multiple_of(64);
        let file_len = tail_header + HEADER_LEN as u64;
        Layout {
            meta_len,
            head_meta,
            proof_len,
            shard_len,
            head_proofs,
            proofs_len,
            body,
            body_len,
            tail_proofs,
            tail_meta,
            tail_header,
            file_len,
        }
    }

    /// Start of the shard of `set`.
    pub fn shard(&self, set: u32) -> u64 {
        self.body + u64::from(set) * self.shard_len
    }

    /// Starts of the two copies of the proof of `set`.
    pub fn proofs(&self, set: u32) -> [u64; 2] {
        let at = u64::from(set) * self.proof_len;
        [self.head_proofs + at, self.tail_proofs + at]
    }

    /// Starts of the two copies of the meta.
    pub fn metas(&self) -> [u64; 2] {
        [self.head_meta, self.tail_meta]
    }

    /// Bytes of a copy of the meta with the zeros behind it.
    pub fn padded_meta_len(&self) -> u64 {
        self.meta_len.next_multiple_of(64)
    }
}

/// Tells whether these are the first bytes of a header, whatever follows.
pub fn has_magic(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// The error for a header whose version this build does not know, from its beginning; `None` for a known version, and
/// for bytes that hold no version.
pub fn other_version(bytes: &[u8]) -> Option<FormatError> {
    (has_magic(bytes) && bytes.len() > VERSION_AT).then(|| check_start(bytes, &MAGIC).err()).flatten()
}

/// Tells whether magic and checksum of a header are right, whatever its fields say: the file is a shard file then
/// (specification, section 9.3).
pub fn header_checks(bytes: &[u8; HEADER_LEN]) -> bool {
    has_magic(bytes) && u32_at(bytes, 8) == checksum(bytes)
}

impl ShardHeader {
    /// Parses one copy of the header.
    ///
    /// # Errors
    /// The first check of section 8 that fails, before those of the meta.
    pub fn parse(bytes: &[u8; HEADER_LEN]) -> Result<ShardHeader, FormatError> {
        check_start(bytes, &MAGIC)?;
        if u32_at(bytes, 8) != checksum(bytes) {
            return Err(FormatError::Checksum("the header"));
        }
        if !is_zero(&bytes[12..16]) || !is_zero(&bytes[160..]) {
            return Err(FormatError::Damaged("a zero field of the header"));
        }
        let geometry = GroupGeometry::parse(&array_at(bytes, 32), Form::Shards)?;
        let index = u32_at(bytes, 16);
        let count = geometry.shape().code.n();
        if index as usize >= count {
            return Err(FormatError::OutOfRange { what: "shard", value: index, count });
        }
        let meta_len = u32_at(bytes, 20);
        let (root, tree, meta_hash): (Digest, Digest, Digest) =
            (array_at(bytes, 64), array_at(bytes, 96), array_at(bytes, 128));
        let encoding = Encoding { geometry, root, tree, meta_hash, meta_len };
        // This sum of header fields of 32 bits cannot overflow.
        if u64_at(bytes, 24) != encoding.layout().body_len {
            return Err(FormatError::Damaged("the body length in the header"));
        }
        check_len(meta_len as usize)?;
        if geometry.root(&tree, &meta_hash) != root {
            return Err(FormatError::Damaged("the root in the header"));
        }
        Ok(ShardHeader { index, encoding })
    }

    /// The bytes of the header; parsing them gives this header again.
    pub fn to_bytes(&self) -> [u8; HEADER_LEN] {
        let encoding = &self.encoding;
        let mut out = [0u8; HEADER_LEN];
        out[..8].copy_from_slice(&MAGIC);
        out[16..20].copy_from_slice(&self.index.to_le_bytes());
        out[20..24].copy_from_slice(&encoding.meta_len.to_le_bytes());
        out[24..32].copy_from_slice(&encoding.layout().body_len.to_le_bytes());
        out[32..64].copy_from_slice(&encoding.geometry.to_bytes());
        out[64..96].copy_from_slice(&encoding.root);
        out[96..128].copy_from_slice(&encoding.tree);
        out[128..160].copy_from_slice(&encoding.meta_hash);
        let sum = checksum(&out);
        out[8..12].copy_from_slice(&sum.to_le_bytes());
        out
    }
}

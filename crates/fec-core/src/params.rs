//! Geometry: how a payload is cut into groups, sets and shards (format specification, sections 4
//! and 5). A value of these types is always canonical: only the constructors here make one.

use crate::block::Code;
use crate::digest::{Digest, HashKind, Tag};
use crate::error::FormatError;

/// Shards are whole lines of this many bytes.
pub const LINE: u64 = 64;
/// The longest shard, in bytes.
pub const MAX_SHARD_LEN: u64 = 1 << 26;
/// The most groups of a payload.
pub const MAX_GROUPS: u64 = 1 << 20;
/// The most sets of the one group of shard files.
pub const MAX_SETS_SHARDS: u64 = 1 << 20;
/// The most sets of a container's group.
pub const MAX_SETS_CONTAINER: u64 = 65_536;
/// The most bytes that the n·G shards of a container's group may have, unless a reader accepts more.
pub const CONTAINER_GROUP_BYTES: u64 = 48 << 20;
/// The payload is shorter than this.
pub const MAX_PAYLOAD: u64 = 1 << 63;

/// Which of the two byte layouts an encoding has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// One file for each shard index.
    Shards,
    /// All shards as records, one after the other, and an index.
    Container,
}

impl Form {
    fn number(self) -> u8 {
        match self {
            Form::Shards => 1,
            Form::Container => 2,
        }
    }
}

/// What all sets of a group share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// The hash function of digests and nodes.
    pub hash: HashKind,
    /// Shard files or container.
    pub form: Form,
    /// k and m.
    pub code: Code,
    /// L, bytes of a shard: a multiple of 64.
    pub shard_len: usize,
    /// G, the sets in the group.
    pub sets: u32,
}

impl Shape {
    /// Payload bytes that the group can hold: k·G·L.
    pub fn capacity(&self) -> u64 {
        (self.code.k() as u64) * u64::from(self.sets) * (self.shard_len as u64)
    }

    /// Bytes of one set's n shards.
    pub fn set_bytes(&self) -> u64 {
        (self.code.n() as u64) * (self.shard_len as u64)
    }

    /// Bytes of the field that holds the set path of a proof.
    pub fn set_path_len(&self) -> usize {
        32 * crate::merkle::ceil_log2(self.code.n() as u64) as usize
    }

    /// Bytes of a whole proof: set path, then group path.
    pub fn proof_len(&self) -> usize {
        self.set_path_len() + 32 * crate::merkle::ceil_log2(u64::from(self.sets)) as usize
    }
}

/// P: the geometry of a whole payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileGeometry {
    shape: Shape,
    payload_len: u64,
    groups: u32,
}

/// Pg: the geometry of one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GroupGeometry {
    shape: Shape,
    payload_len: u64,
    number: u32,
    last: bool,
}

/// A geometry block whose numbers are within the limits, before the canonical rules.
struct Block {
    shape: Shape,
    flags: u8,
    payload_len: u64,
    tail: u64,
}

fn limit(what: &'static str, value: u64, limit: u64) -> Result<(), FormatError> {
    if value > limit {
        return Err(FormatError::Limit { what, value: value.into(), limit: limit.into() });
    }
    Ok(())
}

/// Reads the fields and applies rules 1 to 4 as far as P and Pg share them.
fn parse_block(
    bytes: &[u8; 32],
    form: Form,
    flags_allowed: u8,
    max_group: u64,
) -> Result<Block, FormatError> {
    let u16_at = |at: usize| u64::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    let u32_at = |at: usize| u64::from(u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes")));
    let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    if bytes[0] != 1 {
        return Err(FormatError::Version(bytes[0]));
    }
    let hash = HashKind::from_number(bytes[1]).ok_or(FormatError::Hash(bytes[1]))?;
    if bytes[2] != form.number() {
        return Err(FormatError::Form(bytes[2]));
    }
    let flags = bytes[3];
    if flags & !flags_allowed != 0 {
        return Err(FormatError::Flags(flags));
    }
    let (k, m) = (u16_at(4), u16_at(6));
    if k == 0 {
        return Err(FormatError::Limit { what: "k", value: 0, limit: 1 });
    }
    limit("k + m", k + m, 256)?;
    let code = Code::new(k as usize, m as usize).expect("k and m were checked");
    let (shard_len, sets, payload_len, tail) = (u32_at(8), u32_at(12), u64_at(16), u64_at(24));
    limit("the shard length", shard_len, MAX_SHARD_LEN)?;
    limit("the payload length", payload_len, MAX_PAYLOAD - 1)?;
    let most_sets = match form {
        Form::Shards => MAX_SETS_SHARDS,
        Form::Container => MAX_SETS_CONTAINER,
    };
    limit("the number of sets", sets, most_sets)?;
    if form == Form::Container {
        // At most 2^8 · 2^16 · 2^26: no overflow.
        limit("the size of a group", (k + m) * sets * shard_len, max_group)?;
    }
    if shard_len == 0 || shard_len % LINE != 0 {
        return Err(FormatError::NotCanonical("the shard length is not a multiple of 64"));
    }
    if sets == 0 {
        return Err(FormatError::NotCanonical("a group has no sets"));
    }
    let shape = Shape { hash, form, code, shard_len: shard_len as usize, sets: sets as u32 };
    Ok(Block { shape, flags, payload_len, tail })
}

fn write_block(shape: &Shape, flags: u8, payload_len: u64, tail: u64) -> [u8; 32] {
    let mut out = [0u8; 32];
    out[0] = 1;
    out[1] = shape.hash.number();
    out[2] = shape.form.number();
    out[3] = flags;
    out[4..6].copy_from_slice(&(shape.code.k() as u16).to_le_bytes());
    out[6..8].copy_from_slice(&(shape.code.m() as u16).to_le_bytes());
    out[8..12].copy_from_slice(&(shape.shard_len as u32).to_le_bytes());
    out[12..16].copy_from_slice(&shape.sets.to_le_bytes());
    out[16..24].copy_from_slice(&payload_len.to_le_bytes());
    out[24..32].copy_from_slice(&tail.to_le_bytes());
    out
}

/// L for `payload_len` bytes in `sets` sets: the least number of whole lines, and at least one.
fn fitting_shard_len(payload_len: u64, k: u64, sets: u64) -> u64 {
    LINE * payload_len.div_ceil(LINE * k * sets).max(1)
}

/// Rules 5 and 8: L follows from the payload and G, and there are not more sets than lines.
fn check_fit(shape: &Shape, payload_len: u64) -> Result<(), FormatError> {
    let (k, sets) = (shape.code.k() as u64, u64::from(shape.sets));
    if sets > payload_len.div_ceil(LINE * k).max(1) {
        return Err(FormatError::NotCanonical("more sets than the payload needs"));
    }
    if shape.shard_len as u64 != fitting_shard_len(payload_len, k, sets) {
        return Err(FormatError::NotCanonical("the shard length does not fit the payload length"));
    }
    Ok(())
}

impl FileGeometry {
    /// Parses P of the given form; `max_group` is the most bytes n·G·L of a container's group.
    ///
    /// # Errors
    /// The first rule of section 4.1 that is broken.
    pub fn parse(bytes: &[u8; 32], form: Form, max_group: u64) -> Result<FileGeometry, FormatError> {
        let block = parse_block(bytes, form, 0, max_group)?;
        let (shape, payload_len, groups) = (block.shape, block.payload_len, block.tail);
        limit("the number of groups", groups, MAX_GROUPS)?;
        match (groups, form) {
            (0, _) => return Err(FormatError::NotCanonical("there are no groups")),
            (1, _) => check_fit(&shape, payload_len)?,
            (_, Form::Shards) => return Err(FormatError::NotCanonical("shard files have one group")),
            (_, Form::Container) => {
                let (before, piece) = (u128::from(groups) - 1, u128::from(shape.capacity()));
                let payload = u128::from(payload_len);
                if payload <= before * piece || payload > (before + 1) * piece {
                    return Err(FormatError::NotCanonical(
                        "the number of groups does not fit the payload length",
                    ));
                }
            }
        }
        Ok(FileGeometry { shape, payload_len, groups: groups as u32 })
    }

    /// The geometry of shard files for `payload_len` bytes in sets of about `set_size` bytes.
    ///
    /// # Errors
    /// [`FormatError::Limit`] when shards or sets would pass the limits.
    pub fn shard_files(
        hash: HashKind,
        code: Code,
        set_size: u64,
        payload_len: u64,
    ) -> Result<FileGeometry, FormatError> {
        limit("the payload length", payload_len, MAX_PAYLOAD - 1)?;
        let k = code.k() as u64;
        let nominal = nominal_shard_len(code, set_size)?;
        let sets = payload_len.div_ceil(k * nominal).max(1);
        limit("the number of sets", sets, MAX_SETS_SHARDS)?;
        let shard_len = fitting_shard_len(payload_len, k, sets) as usize;
        let shape = Shape { hash, form: Form::Shards, code, shard_len, sets: sets as u32 };
        Ok(FileGeometry { shape, payload_len, groups: 1 })
    }

    /// The 32 bytes of P.
    pub fn to_bytes(&self) -> [u8; 32] {
        write_block(&self.shape, 0, self.payload_len, self.groups.into())
    }

    /// What the sets of group 0 share.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// B, the bytes of the payload.
    pub fn payload_len(&self) -> u64 {
        self.payload_len
    }

    /// N, the number of groups.
    pub fn groups(&self) -> u32 {
        self.groups
    }

    /// The geometry of group `number`, which P determines (section 4.2).
    ///
    /// # Panics
    /// If there is no such group.
    pub fn group(&self, number: u32) -> GroupGeometry {
        assert!(number < self.groups, "group {number} of {}", self.groups);
        let last = number + 1 == self.groups;
        if self.groups == 1 || !last {
            let payload_len = if last { self.payload_len } else { self.shape.capacity() };
            return GroupGeometry { shape: self.shape, payload_len, number, last };
        }
        let payload_len = self.payload_len - self.group_start(number);
        fit_last(self.shape, payload_len, number)
    }

    /// The payload offset at which group `number` starts.
    pub fn group_start(&self, number: u32) -> u64 {
        u64::from(number) * self.shape.capacity()
    }

    /// R for this geometry: `tree` is T, `meta` the meta bytes.
    pub fn root(&self, tree: &Digest, meta: &[u8]) -> Digest {
        self.root_of_meta_hash(tree, &self.shape.hash.digest(meta))
    }

    /// R for this geometry from T and M, the hash of the meta.
    pub fn root_of_meta_hash(&self, tree: &Digest, meta_hash: &Digest) -> Digest {
        let hash = self.shape.hash;
        hash.node(Tag::Root, tree, &hash.node(Tag::Param, &self.to_bytes(), meta_hash))
    }
}

/// The last of several groups: `shape` is that of the groups before it.
fn fit_last(shape: Shape, payload_len: u64, number: u32) -> GroupGeometry {
    let k = shape.code.k() as u64;
    let sets = payload_len.div_ceil(k * shape.shard_len as u64).max(1);
    let shard_len = fitting_shard_len(payload_len, k, sets) as usize;
    let shape = Shape { shard_len, sets: sets as u32, ..shape };
    GroupGeometry { shape, payload_len, number, last: true }
}

impl GroupGeometry {
    /// Parses Pg of a container record.
    ///
    /// # Errors
    /// The first rule of section 4.1 that is broken.
    pub fn parse(bytes: &[u8; 32], max_group: u64) -> Result<GroupGeometry, FormatError> {
        let block = parse_block(bytes, Form::Container, 1, max_group)?;
        let (shape, payload_len, last) = (block.shape, block.payload_len, block.flags & 1 == 1);
        limit("the group number", block.tail, MAX_GROUPS - 1)?;
        match (last, block.tail) {
            (false, _) if payload_len != shape.capacity() => {
                return Err(FormatError::NotCanonical("a group before the last is not full"));
            }
            (false, _) => {}
            (true, 1..) if payload_len == 0 => {
                return Err(FormatError::NotCanonical("the last group is empty"));
            }
            (true, _) => check_fit(&shape, payload_len)?,
        }
        Ok(GroupGeometry { shape, payload_len, number: block.tail as u32, last })
    }

    /// The 32 bytes of Pg.
    pub fn to_bytes(&self) -> [u8; 32] {
        write_block(&self.shape, u8::from(self.last), self.payload_len, self.number.into())
    }

    /// What the sets of this group share.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Payload bytes of this group.
    pub fn payload_len(&self) -> u64 {
        self.payload_len
    }

    /// g, counted from 0.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Whether the payload ends with this group.
    pub fn is_last(&self) -> bool {
        self.last
    }

    /// Where original shard `index` of set `set` starts in the group's piece of payload.
    pub fn shard_offset(&self, set: u32, index: usize) -> u64 {
        (index as u64 * u64::from(self.shape.sets) + u64::from(set)) * self.shape.shard_len as u64
    }

    /// How many of the bytes of that shard are payload; the rest is zero padding.
    pub fn shard_payload(&self, set: u32, index: usize) -> usize {
        let left = self.payload_len.saturating_sub(self.shard_offset(set, index));
        left.min(self.shape.shard_len as u64) as usize
    }

    /// GR: the group's root, from X, the root of its set roots.
    pub fn root(&self, set_tree: &Digest) -> Digest {
        self.shape.hash.node(Tag::Group, set_tree, &self.to_bytes())
    }
}

/// How a writer cuts a payload of unknown length into the groups of a container (section 4.3).
#[derive(Clone, Copy, Debug)]
pub struct ContainerLayout {
    shape: Shape,
}

impl ContainerLayout {
    /// The layout for sets of about `set_size` payload bytes; `group_sets` caps G.
    ///
    /// # Errors
    /// [`FormatError::Limit`] when one set alone passes `max_group` bytes, or a shard is too long.
    pub fn new(
        hash: HashKind,
        code: Code,
        set_size: u64,
        group_sets: Option<u32>,
        max_group: u64,
    ) -> Result<ContainerLayout, FormatError> {
        let shard_len = nominal_shard_len(code, set_size)?;
        let set_bytes = code.n() as u64 * shard_len;
        limit("the size of a set", set_bytes, max_group)?;
        let most = (CONTAINER_GROUP_BYTES / set_bytes).clamp(1, MAX_SETS_CONTAINER);
        let sets = group_sets.map_or(most, |g| u64::from(g).clamp(1, most)) as u32;
        let shape = Shape { hash, form: Form::Container, code, shard_len: shard_len as usize, sets };
        Ok(ContainerLayout { shape })
    }

    /// What every group but the last has.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// C: payload bytes of a full piece.
    pub fn piece_len(&self) -> u64 {
        self.shape.capacity()
    }

    /// The geometry of piece `number` of `payload_len` bytes.
    ///
    /// # Panics
    /// If `payload_len` is more than a piece, or less in a piece that is not the last.
    pub fn group(&self, number: u32, payload_len: u64, last: bool) -> GroupGeometry {
        assert!(payload_len <= self.piece_len() && (last || payload_len == self.piece_len()));
        if last {
            return fit_last(self.shape, payload_len, number);
        }
        GroupGeometry { shape: self.shape, payload_len, number, last }
    }

    /// P of the whole payload, from its last group.
    pub fn file(&self, last: &GroupGeometry) -> FileGeometry {
        FileGeometry::of_chain(&self.shape, last)
    }
}

impl FileGeometry {
    /// P of a chain of groups that ends with `last`; `first` is the shape of group 0.
    pub fn of_chain(first: &Shape, last: &GroupGeometry) -> FileGeometry {
        let before = u64::from(last.number) * first.capacity();
        let shape = if last.number == 0 { last.shape } else { *first };
        FileGeometry { shape, payload_len: before + last.payload_len, groups: last.number + 1 }
    }
}

/// L0 for a wanted set size.
fn nominal_shard_len(code: Code, set_size: u64) -> Result<u64, FormatError> {
    let shard_len = fitting_shard_len(set_size, code.k() as u64, 1);
    limit("the shard length", shard_len, MAX_SHARD_LEN)?;
    Ok(shard_len)
}

/// The largest power of two ≤ 4 MiB whose n shards take at most 16 MiB.
pub fn default_set_size(code: Code) -> u64 {
    let fits = |size: &u64| code.n() as u64 * fitting_shard_len(*size, code.k() as u64, 1) <= 16 << 20;
    (0..=22).rev().map(|bits| 1u64 << bits).find(fits).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(k: usize, m: usize) -> Code {
        Code::new(k, m).unwrap()
    }

    #[test]
    fn default_shapes_are_those_of_the_specification() {
        for (k, m, sets) in [(33, 67, 3), (86, 14, 10)] {
            let size = default_set_size(code(k, m));
            assert_eq!(size, 4 << 20);
            let layout =
                ContainerLayout::new(HashKind::Blake3, code(k, m), size, None, CONTAINER_GROUP_BYTES)
                    .unwrap();
            assert_eq!(layout.shape().sets, sets, "{k}+{m}");
        }
        assert_eq!(default_set_size(code(1, 255)), 65_536);
    }

    #[test]
    fn what_a_writer_picks_a_reader_accepts() {
        for (k, m) in [(1, 0), (1, 1), (2, 1), (10, 4), (33, 67), (86, 14), (200, 56), (1, 255)] {
            let k64 = k as u64;
            for set_size in [1, 64 * k64, 64 * k64 + 1, 1000 * k64] {
                for b in [0, 1, k64 - 1, k64, k64 + 1, 64 * k64 - 1, 64 * k64, 64 * k64 + 1, 99_999, 1 << 22]
                {
                    let p = FileGeometry::shard_files(HashKind::Blake3, code(k, m), set_size, b).unwrap();
                    assert_eq!(FileGeometry::parse(&p.to_bytes(), Form::Shards, 0), Ok(p));
                    for group_sets in [None, Some(1), Some(3)] {
                        let max = CONTAINER_GROUP_BYTES;
                        let layout =
                            ContainerLayout::new(HashKind::Sha256, code(k, m), set_size, group_sets, max)
                                .unwrap();
                        let piece = layout.piece_len();
                        let count = b.div_ceil(piece).max(1);
                        if count > MAX_GROUPS {
                            continue;
                        }
                        let mut last = None;
                        for g in 0..count {
                            let len = (b - g * piece).min(piece);
                            let pg = layout.group(g as u32, len, g + 1 == count);
                            assert_eq!(GroupGeometry::parse(&pg.to_bytes(), max), Ok(pg));
                            last = Some(pg);
                        }
                        let p = layout.file(&last.unwrap());
                        assert_eq!(FileGeometry::parse(&p.to_bytes(), Form::Container, max), Ok(p));
                        assert_eq!(p.group(count as u32 - 1), last.unwrap());
                        assert_eq!(p.payload_len(), b);
                    }
                }
            }
        }
    }

    #[test]
    fn lengths_to_2_64_neither_overflow_nor_pass() {
        let p = FileGeometry::shard_files(HashKind::Blake3, code(2, 1), 128, 1000).unwrap();
        for field in [8..12, 12..16, 16..24, 24..32] {
            let mut bytes = p.to_bytes();
            bytes[field.clone()].fill(0xff);
            assert!(FileGeometry::parse(&bytes, Form::Shards, u64::MAX).is_err(), "{field:?}");
            bytes[2] = 2;
            assert!(FileGeometry::parse(&bytes, Form::Container, u64::MAX).is_err(), "{field:?}");
            assert!(GroupGeometry::parse(&bytes, u64::MAX).is_err(), "{field:?}");
        }
    }
}

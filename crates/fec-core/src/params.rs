//! Geometry: how a payload is cut into groups, sets and shards (format specification, sections 4
//! and 5). A value of these types is always canonical: only the constructors here make one.

mod layout;

pub use layout::{ContainerLayout, default_set_size};

use crate::block::Code;
use crate::digest::{Digest, HashKind, Tag};
use crate::error::FormatError;
use crate::merkle::ceil_log2;

/// Shards are whole lines of this many bytes.
pub const LINE: u64 = 64;
/// The longest shard, in bytes.
pub const MAX_SHARD_LEN: u64 = 1 << 26;
/// About the shortest shard of a set that is not alone in its group, and of a group that is not the last.
pub const SHORT_SHARD: u64 = 4096;
/// The most groups of a payload, and the most sets of a group.
pub const MAX_COUNT: u64 = u32::MAX as u64;
/// The most bytes that the n·G shards of a group of bounded size have, unless a single set has more.
pub const BOUNDED_GROUP_BYTES: u64 = 48 << 20;
/// Bound of the payload, in bytes: a payload is shorter.
pub const MAX_PAYLOAD: u64 = 1 << 63;

/// Flags of a geometry block that a reader need not know.
const IGNORABLE: u8 = 0xf0;
/// The ignorable flag of payloads that are ciphertext.
const SEALED: u8 = 0x10;

/// The byte layout of an encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// A file for each shard index.
    Shards,
    /// All shards as records, one after the other, and an index.
    Container,
    /// Pieces of the metadata of a sidecar, between the recovery shards of files that stay where they are.
    Sidecar,
}

impl Form {
    fn number(self) -> u8 {
        match self {
            Form::Shards => 1,
            Form::Container => 2,
            Form::Sidecar => 3,
        }
    }

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Form::Shards => "shards",
            Form::Container => "container",
            Form::Sidecar => "sidecar",
        }
    }
}

/// The properties that all sets of a group share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// The hash function of digests and nodes.
    pub hash: HashKind,
    /// Shard files, container or sidecar.
    pub form: Form,
    /// Flags 4–7, which readers may ignore and the root binds.
    pub flags: u8,
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
        self.wide_capacity() as u64
    }

    /// The same, up to 2^66, for numbers that may belong to no payload.
    fn wide_capacity(&self) -> u128 {
        self.code.k() as u128 * u128::from(self.sets) * self.shard_len as u128
    }

    /// Bytes of one set's n shards.
    pub fn set_bytes(&self) -> u64 {
        (self.code.n() as u64) * (self.shard_len as u64)
    }

    /// Bytes of the field that holds the set path of a proof.
    pub fn set_path_len(&self) -> usize {
        set_path_len(self.code.k() as u64, self.code.m() as u64)
    }

    /// Bytes of a whole proof: set path, then group path.
    pub fn proof_len(&self) -> usize {
        proof_len(self.code.k() as u64, self.code.m() as u64, self.sets.into())
    }

    /// Tells whether the payload is ciphertext.
    pub fn is_sealed(&self) -> bool {
        self.flags & SEALED != 0
    }

    fn sealed(self) -> Shape {
        Shape { flags: self.flags | SEALED, ..self }
    }
}

fn set_path_len(k: u64, m: u64) -> usize {
    32 * (ceil_log2(k.max(m)) as usize + 1)
}

/// Bytes of a proof, whatever the numbers.
pub(crate) fn proof_len(k: u64, m: u64, sets: u64) -> usize {
    set_path_len(k, m) + 32 * ceil_log2(sets) as usize
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

/// The first four bytes of a geometry block: version, hash, form, flags. Returns the hash.
pub(crate) fn parse_kind(bytes: [u8; 4], form: Form, flags_allowed: u8) -> Result<HashKind, FormatError> {
    let [version, hash, its_form, flags] = bytes;
    if version != 1 {
        return Err(FormatError::Version(version));
    }
    let hash = HashKind::from_number(hash).ok_or(FormatError::Hash(hash))?;
    if its_form != form.number() {
        return Err(FormatError::Form(its_form));
    }
    if flags & !(flags_allowed | IGNORABLE) != 0 {
        return Err(FormatError::Flags(flags));
    }
    Ok(hash)
}

/// Version, hash, form and ignorable flags of a shape.
pub(crate) fn kind_of(shape: &Shape) -> [u8; 4] {
    [1, shape.hash.number(), shape.form.number(), shape.flags]
}

/// Reads the fields and applies rules 1 to 3 as far as P and Pg share them.
fn parse_block(bytes: &[u8; 32], form: Form, flags_allowed: u8, most: u64) -> Result<Block, FormatError> {
    let u16_at = |at: usize| u64::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    let u32_at = |at: usize| u64::from(u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes")));
    let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    let hash = parse_kind([bytes[0], bytes[1], bytes[2], bytes[3]], form, flags_allowed)?;
    let flags = bytes[3];
    let (k, m) = (u16_at(4), u16_at(6));
    if k == 0 {
        return Err(FormatError::Limit { what: "k", value: 0, limit: 1 });
    }
    limit("k + m", k + m, 256)?;
    let code = Code::new(k as usize, m as usize).expect("k and m were checked");
    let (shard_len, sets, payload_len, tail) = (u32_at(8), u32_at(12), u64_at(16), u64_at(24));
    limit("the shard length", shard_len, MAX_SHARD_LEN)?;
    limit("the payload length", payload_len, MAX_PAYLOAD - 1)?;
    limit("the number of groups", tail, most)?;
    if shard_len == 0 || shard_len % LINE != 0 {
        return Err(FormatError::NotCanonical("the shard length is not a multiple of 64"));
    }
    if sets == 0 {
        return Err(FormatError::NotCanonical("a group has no sets"));
    }
    let (shard_len, sets) = (shard_len as usize, sets as u32);
    let shape = Shape { hash, form, flags: flags & IGNORABLE, code, shard_len, sets };
    Ok(Block { shape, flags, payload_len, tail })
}

fn write_block(shape: &Shape, flags: u8, payload_len: u64, tail: u64) -> [u8; 32] {
    let mut out = [0u8; 32];
    out[..4].copy_from_slice(&kind_of(shape));
    out[3] |= flags;
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

/// Rules 4 and 7: L follows from the payload and G, and sets are not many small ones.
fn check_fit(shape: &Shape, payload_len: u64) -> Result<(), FormatError> {
    let (k, sets) = (shape.code.k() as u64, u64::from(shape.sets));
    if sets > payload_len.div_ceil(SHORT_SHARD * k).max(1) {
        return Err(FormatError::NotCanonical("more sets than the payload needs"));
    }
    if shape.shard_len as u64 != fitting_shard_len(payload_len, k, sets) {
        return Err(FormatError::NotCanonical("the shard length does not fit the payload length"));
    }
    Ok(())
}

/// Rules 5 and 6: shards of a group that is not the last are not short.
fn check_full(shape: &Shape) -> Result<(), FormatError> {
    if (shape.shard_len as u64) < SHORT_SHARD {
        return Err(FormatError::NotCanonical("the shards of a group before the last are too short"));
    }
    Ok(())
}

impl FileGeometry {
    /// Parses P of a container's index.
    ///
    /// # Errors
    /// The first rule of section 4.1 that is broken.
    pub fn parse(bytes: &[u8; 32]) -> Result<FileGeometry, FormatError> {
        let block = parse_block(bytes, Form::Container, 0, MAX_COUNT)?;
        let (shape, payload_len, groups) = (block.shape, block.payload_len, block.tail);
        match groups {
            0 => return Err(FormatError::NotCanonical("there are no groups")),
            1 => check_fit(&shape, payload_len)?,
            _ => {
                check_full(&shape)?;
                // At most 2^32 · 2^8 · 2^32 · 2^26.
                let (before, piece) = (u128::from(groups) - 1, shape.wide_capacity());
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

    /// The 32 bytes of P.
    pub fn to_bytes(&self) -> [u8; 32] {
        write_block(&self.shape, 0, self.payload_len, self.groups.into())
    }

    /// The properties that the sets of group 0 share.
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

    /// P of a payload with this group alone.
    ///
    /// # Panics
    /// If it is not the only group of its payload.
    pub fn of_only(group: &GroupGeometry) -> FileGeometry {
        assert!(group.number == 0 && group.last);
        FileGeometry { shape: group.shape, payload_len: group.payload_len, groups: 1 }
    }

    /// P of a chain of groups that ends with `last`; `first` is the shape of group 0.
    ///
    /// # Errors
    /// [`FormatError::NotCanonical`] when `last` is not the last group of the payload that the chain would hold.
    pub fn of_chain(first: &Shape, last: &GroupGeometry) -> Result<FileGeometry, FormatError> {
        if last.number == 0 {
            return Ok(FileGeometry::of_only(last));
        }
        let misfit = FormatError::NotCanonical("a group is not what the geometry of the payload implies");
        let before = u128::from(last.number) * u128::from(first.capacity()) + u128::from(last.payload_len);
        let payload_len =
            u64::try_from(before).ok().filter(|len| *len < MAX_PAYLOAD).ok_or(misfit.clone())?;
        let p = FileGeometry { shape: *first, payload_len, groups: last.number + 1 };
        let fits = last.payload_len <= first.capacity() && p.group(last.number) == *last;
        if fits { Ok(p) } else { Err(misfit) }
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
    /// Parses Pg of a shard file, a container's record or a sidecar's piece.
    ///
    /// # Errors
    /// The first rule of section 4.1 that is broken.
    pub fn parse(bytes: &[u8; 32], form: Form) -> Result<GroupGeometry, FormatError> {
        let block = parse_block(bytes, form, 1, MAX_COUNT - 1)?;
        let (shape, payload_len, last) = (block.shape, block.payload_len, block.flags & 1 == 1);
        match (last, block.tail) {
            (false, _) if u128::from(payload_len) != shape.wide_capacity() => {
                return Err(FormatError::NotCanonical("a group before the last is not full"));
            }
            (false, _) => check_full(&shape)?,
            (true, 1..) if payload_len == 0 => {
                return Err(FormatError::NotCanonical("the last group is empty"));
            }
            (true, _) => check_fit(&shape, payload_len)?,
        }
        if form != Form::Container && !(last && block.tail == 0) {
            return Err(FormatError::NotCanonical("shard files and sidecars have one group"));
        }
        Ok(GroupGeometry { shape, payload_len, number: block.tail as u32, last })
    }

    /// The only group of a payload of `payload_len` bytes, in sets of about `set_size` bytes (section 4.3).
    ///
    /// # Errors
    /// [`FormatError::SmallSet`], and [`FormatError::Limit`] when shards or sets would pass the limits.
    pub fn whole(
        form: Form,
        hash: HashKind,
        code: Code,
        set_size: u64,
        payload_len: u64,
    ) -> Result<GroupGeometry, FormatError> {
        limit("the payload length", payload_len, MAX_PAYLOAD - 1)?;
        let k = code.k() as u64;
        let nominal = nominal_shard_len(code, set_size)?;
        let sets = payload_len.div_ceil(k * nominal).max(1);
        limit("the number of sets", sets, MAX_COUNT)?;
        let shard_len = fitting_shard_len(payload_len, k, sets) as usize;
        let shape = Shape { hash, form, flags: 0, code, shard_len, sets: sets as u32 };
        Ok(GroupGeometry { shape, payload_len, number: 0, last: true })
    }

    /// The same group, of a payload that is ciphertext.
    pub fn sealed(self) -> GroupGeometry {
        GroupGeometry { shape: self.shape.sealed(), ..self }
    }

    /// The 32 bytes of Pg.
    pub fn to_bytes(&self) -> [u8; 32] {
        write_block(&self.shape, u8::from(self.last), self.payload_len, self.number.into())
    }

    /// The properties that the sets of this group share.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Payload bytes of this group.
    pub fn payload_len(&self) -> u64 {
        self.payload_len
    }

    /// The group of this shape with another number, of a payload that does not end there.
    ///
    /// # Panics
    /// If this is the payload's last group.
    pub fn with_number(&self, number: u32) -> GroupGeometry {
        assert!(!self.last, "the last group is like no other");
        GroupGeometry { number, ..*self }
    }

    /// g, counted from 0.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Tells whether the payload ends with this group.
    pub fn is_last(&self) -> bool {
        self.last
    }

    /// Offset of original shard `index` of set `set` in the group's piece of payload.
    pub fn shard_offset(&self, set: u32, index: usize) -> u64 {
        (index as u64 * u64::from(self.shape.sets) + u64::from(set)) * self.shape.shard_len as u64
    }

    /// Number of payload bytes in that shard; the rest is zero padding.
    pub fn shard_payload(&self, set: u32, index: usize) -> usize {
        let left = self.payload_len.saturating_sub(self.shard_offset(set, index));
        left.min(self.shape.shard_len as u64) as usize
    }

    /// GR: the group's root, from X, the tree of its set roots, and H, the hash that the group follows: M for the first
    /// group, else the root of the group before.
    pub fn root(&self, set_tree: &Digest, before: &Digest) -> Digest {
        let hash = self.shape.hash;
        hash.node(Tag::Group, set_tree, &hash.node(Tag::Link, &self.to_bytes(), before))
    }
}

/// L0 for a wanted set size.
fn nominal_shard_len(code: Code, set_size: u64) -> Result<u64, FormatError> {
    let shard_len = fitting_shard_len(set_size, code.k() as u64, 1);
    limit("the shard length", shard_len, MAX_SHARD_LEN)?;
    if shard_len < SHORT_SHARD {
        return Err(FormatError::SmallSet { least: SHORT_SHARD * code.k() as u64 });
    }
    Ok(shard_len)
}

#[cfg(test)]
mod tests;

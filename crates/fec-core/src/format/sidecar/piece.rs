//! The pieces that hold the metadata (section 17.4).

use crate::digest::{Digest, HashKind};
use crate::error::FormatError;
use crate::format::{array_at, check_start, checksum, is_zero, u32_at, u64_at};
use crate::params::{self, Form, GroupGeometry};

/// The first eight bytes of a piece.
pub const PIECE_MAGIC: [u8; 8] = *b"\x89fecP\r\n\x1a";
/// Bytes of the header.
pub const HEADER_LEN: usize = 128;
/// Bytes of the layout.
pub const LAYOUT_LEN: usize = 96;
/// The offset of the proof.
const PROOF_AT: usize = HEADER_LEN + LAYOUT_LEN;

/// The fields of a generation that all of its pieces repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// E of the generation before, or zeros.
    pub before: Digest,
    /// The number of the generation, from 1.
    pub generation: u64,
    /// The offset of the extent of the pieces.
    pub start: u64,
    /// Blocks of recovery shards in the extent.
    pub blocks: u64,
    /// Bytes of the catalog; as many as the payload has, if that is a difference.
    pub catalog_len: u64,
    /// Bytes of a block.
    pub block: u32,
}

impl Layout {
    /// The bytes of the layout.
    pub fn to_bytes(&self) -> [u8; LAYOUT_LEN] {
        let mut out = [0; LAYOUT_LEN];
        out[..32].copy_from_slice(&self.before);
        let numbers = [self.generation, self.start, self.blocks, self.catalog_len];
        out[32..64].as_chunks_mut().0.iter_mut().zip(numbers).for_each(|(out, n)| *out = n.to_le_bytes());
        out[64..68].copy_from_slice(&self.block.to_le_bytes());
        out
    }

    fn parse(bytes: &[u8; LAYOUT_LEN], metadata_len: u64) -> Result<Layout, FormatError> {
        let layout = Layout {
            before: array_at(bytes, 0),
            generation: u64_at(bytes, 32),
            start: u64_at(bytes, 40),
            blocks: u64_at(bytes, 48),
            catalog_len: u64_at(bytes, 56),
            block: u32_at(bytes, 64),
        };
        if !is_zero(&bytes[68..]) {
            return Err(FormatError::Damaged("a zero field of a layout"));
        }
        check_block(layout.block)?;
        let is_first = layout.before == [0; 32];
        let is_possible = (layout.generation == 1) == is_first
            && layout.generation > 0
            && (!is_first || layout.start == 0)
            && layout.catalog_len <= metadata_len;
        is_possible.then_some(layout).ok_or(NOT_POSSIBLE)
    }
}

const NOT_POSSIBLE: FormatError = FormatError::Catalog("a number of the layout is not possible");

/// Fails when a block may not have this many bytes.
pub(super) fn check_block(block: u32) -> Result<(), FormatError> {
    let is_possible = block.is_power_of_two() && (1 << 10..=1 << 20).contains(&block);
    is_possible
        .then_some(())
        .ok_or(FormatError::Catalog("a block has 1024 to 1,048,576 bytes, a power of two"))
}

/// The head of a piece: all of it but the proof and the shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The set of the metadata.
    pub set: u32,
    /// The shard of the set.
    pub index: u32,
    /// The encoding that the piece belongs to.
    pub of: Generation,
}

/// An encoding of metadata: the fields that distinguish it from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Generation {
    /// Pg of the metadata.
    pub geometry: GroupGeometry,
    /// E.
    pub root: Digest,
    /// The layout, which E binds.
    pub layout: Layout,
}

/// Bytes before the body of a piece.
fn head_len(k: u64, m: u64, sets: u64) -> usize {
    (PROOF_AT + params::proof_len(k, m, sets)).next_multiple_of(64)
}

/// The bytes of a piece before its body, computed from its first 128 bytes, whatever numbers they hold.
pub fn piece_head_len(header: &[u8; HEADER_LEN]) -> usize {
    let (k, m) = (u16::from_le_bytes(array_at(header, 36)), u16::from_le_bytes(array_at(header, 38)));
    head_len(k.into(), m.into(), u32_at(header, 44).into())
}

impl Generation {
    /// An encoding with a known tree of sets.
    pub fn new(geometry: GroupGeometry, layout: Layout, tree: &Digest) -> Generation {
        let root = geometry.root(tree, &HashKind::Blake3.digest(&layout.to_bytes()));
        Generation { geometry, root, layout }
    }

    /// Tells whether the payload is a difference to the metadata of a whole generation.
    pub fn is_difference(&self) -> bool {
        self.layout.catalog_len == self.geometry.payload_len()
    }

    /// The offset behind the extent.
    fn extent_end(&self) -> u128 {
        let Layout { start, blocks, block, .. } = self.layout;
        let pieces = u128::from(self.pieces()) * u128::from(self.piece_len());
        u128::from(start) + u128::from(blocks) * u128::from(block) + pieces
    }

    /// Tells whether X leads to E.
    pub fn is_proved_by(&self, tree: &Digest) -> bool {
        Generation::new(self.geometry, self.layout, tree).root == self.root
    }

    /// Bytes of a piece up to its body.
    pub fn head_len(&self) -> usize {
        Generation::head_len_for(&self.geometry)
    }

    /// Bytes of a piece up to its body, for metadata with this geometry.
    pub fn head_len_for(geometry: &GroupGeometry) -> usize {
        let shape = geometry.shape();
        head_len(shape.code.k() as u64, shape.code.m() as u64, shape.sets.into())
    }

    /// The number of pieces: one for each shard of each set.
    pub fn pieces(&self) -> u64 {
        self.geometry.shape().code.n() as u64 * u64::from(self.geometry.shape().sets)
    }

    /// Bytes of a piece.
    pub fn piece_len(&self) -> u64 {
        (self.head_len() + self.geometry.shape().shard_len) as u64
    }

    /// The number of the piece with shard `index` of set `set`.
    pub fn ordinal(&self, set: u32, index: u32) -> u64 {
        u64::from(index) * u64::from(self.geometry.shape().sets) + u64::from(set)
    }
}

impl Piece {
    /// Parses the head, which has exactly [`piece_head_len`] bytes.
    ///
    /// # Errors
    /// The first check of section 17.4 that fails, before those of the body.
    pub fn parse(head: &[u8]) -> Result<Piece, FormatError> {
        check_start(head, &PIECE_MAGIC)?;
        if u32_at(head, 8) != checksum(head) {
            return Err(FormatError::Checksum("a piece"));
        }
        if !is_zero(&head[12..16]) || !is_zero(&head[24..32]) {
            return Err(FormatError::Damaged("a zero field of a piece"));
        }
        let geometry = GroupGeometry::parse(&array_at(head, 32), Form::Sidecar)?;
        let shape = geometry.shape();
        if !is_zero(&head[PROOF_AT + shape.proof_len()..]) {
            return Err(FormatError::Damaged("the zeros behind the proof of a piece"));
        }
        if shape.hash != HashKind::Blake3 {
            return Err(FormatError::Hash(shape.hash.number()));
        }
        let (set, index) = (u32_at(head, 16), u32_at(head, 20));
        if set >= shape.sets {
            return Err(FormatError::OutOfRange { what: "set", value: set, count: shape.sets as usize });
        }
        if index as usize >= shape.code.n() {
            return Err(FormatError::OutOfRange { what: "shard", value: index, count: shape.code.n() });
        }
        let bytes: [u8; LAYOUT_LEN] = array_at(head, HEADER_LEN);
        if HashKind::Blake3.digest(&bytes) != array_at::<32>(head, 96) {
            return Err(FormatError::Damaged("the hash of the layout"));
        }
        let layout = Layout::parse(&bytes, geometry.payload_len())?;
        if shape.code.n() as u64 * u64::from(shape.sets) > u64::from(u32::MAX) {
            return Err(FormatError::NotCanonical("there are too many pieces"));
        }
        let of = Generation { geometry, root: array_at(head, 64), layout };
        if of.extent_end() >= 1 << 62 {
            return Err(NOT_POSSIBLE);
        }
        Ok(Piece { set, index, of })
    }

    /// The proof in the parsed bytes.
    pub fn proof<'a>(&self, head: &'a [u8]) -> &'a [u8] {
        &head[PROOF_AT..][..self.of.geometry.shape().proof_len()]
    }

    /// The place of the proof in a head that is being written.
    ///
    /// # Panics
    /// If `head` is not [`Generation::head_len`] bytes.
    pub fn proof_mut<'a>(&self, head: &'a mut [u8]) -> &'a mut [u8] {
        &mut head[PROOF_AT..][..self.of.geometry.shape().proof_len()]
    }

    /// Writes the head around the proof that already stands in it, and the checksum of both.
    ///
    /// # Panics
    /// If `head` is not [`Generation::head_len`] bytes.
    pub fn seal(&self, head: &mut [u8]) {
        assert_eq!(head.len(), self.of.head_len());
        head[PROOF_AT + self.of.geometry.shape().proof_len()..].fill(0);
        let layout = self.of.layout.to_bytes();
        head[..8].copy_from_slice(&PIECE_MAGIC);
        head[12..32].fill(0);
        head[16..20].copy_from_slice(&self.set.to_le_bytes());
        head[20..24].copy_from_slice(&self.index.to_le_bytes());
        head[32..64].copy_from_slice(&self.of.geometry.to_bytes());
        head[64..96].copy_from_slice(&self.of.root);
        head[96..128].copy_from_slice(&HashKind::Blake3.digest(&layout));
        head[HEADER_LEN..PROOF_AT].copy_from_slice(&layout);
        let sum = checksum(head);
        head[8..12].copy_from_slice(&sum.to_le_bytes());
    }
}

//! The sizes that a writer chooses (format specification, section 4.3): of sets, and of groups of a payload of unknown
//! length.

use super::{BOUNDED_GROUP_BYTES, FileGeometry, Form, GroupGeometry, Shape};
use super::{fit_last, fitting_shard_len, nominal_shard_len};
use crate::block::Code;
use crate::digest::HashKind;
use crate::error::FormatError;

/// Number of sets in a group, for payloads of known length, beyond which sets become larger by default.
const MANY_SETS: u64 = 1 << 20;
/// The groups of a bounded size into which a writer cuts a payload of unknown length (section 4.3).
#[derive(Clone, Copy, Debug)]
pub struct ContainerLayout {
    shape: Shape,
}

impl ContainerLayout {
    /// The layout for sets of about `set_size` payload bytes and groups of `group_sets` sets, by default as many as
    /// [`BOUNDED_GROUP_BYTES`] hold.
    ///
    /// # Errors
    /// [`FormatError::SmallSet`], and [`FormatError::Limit`] when a shard is too long.
    pub fn new(
        hash: HashKind,
        code: Code,
        set_size: u64,
        group_sets: Option<u32>,
    ) -> Result<ContainerLayout, FormatError> {
        let shard_len = nominal_shard_len(code, set_size)?;
        let set_bytes = code.n() as u64 * shard_len;
        let sets = group_sets.unwrap_or((BOUNDED_GROUP_BYTES / set_bytes) as u32).max(1);
        let shape =
            Shape { hash, form: Form::Container, flags: 0, code, shard_len: shard_len as usize, sets };
        Ok(ContainerLayout { shape })
    }

    /// The same layout, of a payload that is ciphertext.
    pub fn sealed(self) -> ContainerLayout {
        ContainerLayout { shape: self.shape.sealed() }
    }

    /// The shape of every group but the last.
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
    ///
    /// # Errors
    /// [`FormatError::NotCanonical`] when the payload is longer than allowed.
    pub fn file(&self, last: &GroupGeometry) -> Result<FileGeometry, FormatError> {
        FileGeometry::of_chain(&self.shape, last)
    }
}

/// The default payload bytes of a set: the largest power of two ≤ 4 MiB whose n shards take at most 16 MiB. A payload
/// of known length that would have very many sets gets larger ones.
pub fn default_set_size(code: Code, payload_len: Option<u64>) -> u64 {
    let n = code.n() as u64;
    let shard_len = |size: u64| fitting_shard_len(size, code.k() as u64, 1);
    let fits = |size: &u64| n * shard_len(*size) <= 16 << 20;
    let mut size = (0..=22).rev().map(|bits| 1u64 << bits).find(fits).unwrap_or(1);
    let has_many =
        |size| payload_len.is_some_and(|b| b.div_ceil(code.k() as u64 * shard_len(size)) > MANY_SETS);
    while has_many(size) && n * shard_len(size) <= 24 << 20 {
        size *= 2;
    }
    size
}

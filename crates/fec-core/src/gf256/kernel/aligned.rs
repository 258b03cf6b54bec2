//! Bytes that begin on a cache line.
//!
//! Kernels are right on any address and fastest on lines of their own. Safe code gets them by allocating 63
//! bytes more than it needs and starting at the first line.

use std::fmt;
use std::ops::{Deref, DerefMut};

/// Bytes of a cache line, and the unit of row lengths.
pub(crate) const LINE: usize = 64;

/// A fixed number of bytes, the first of them at an address divisible by 64.
///
/// The allocation never grows, so it never moves. There is no `Clone`: a copied vector would begin elsewhere.
pub(crate) struct AlignedBytes {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl AlignedBytes {
    /// `len` bytes of zero.
    ///
    /// # Panics
    ///
    /// When `len` is more than an allocation can hold.
    pub(crate) fn zeroed(len: usize) -> AlignedBytes {
        let bytes = vec![0; len.checked_add(LINE - 1).expect("length overflows")];
        let start = bytes.as_ptr().addr().wrapping_neg() % LINE;
        AlignedBytes { bytes, start, len }
    }
}

impl Deref for AlignedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..][..self.len]
    }
}

impl DerefMut for AlignedBytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..][..self.len]
    }
}

impl fmt::Debug for AlignedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlignedBytes").field("len", &self.len).finish_non_exhaustive()
    }
}

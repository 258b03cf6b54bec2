//! Takes everything out of the caches.

use std::hint::black_box;

/// Bytes that are read: more than the last caches of the processors that are known here hold, or a slice of theirs does
/// that one core can fill.
const LEN: usize = 96 << 20;

/// Fills all caches with its own bytes.
pub(crate) struct Evict {
    bytes: Vec<u8>,
}

impl Evict {
    pub(crate) fn new() -> Evict {
        Evict { bytes: vec![1; LEN] }
    }

    /// Reads a byte of each line, and writes it, so that no line of anybody else is left to be written back.
    pub(crate) fn all(&mut self) {
        for line in self.bytes.chunks_mut(64) {
            line[0] = line[0].wrapping_add(1);
        }
        black_box(&self.bytes);
    }
}

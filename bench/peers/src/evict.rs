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

    /// Reads a byte of each line. What others changed is written back on the way, and nothing is left to be.
    pub(crate) fn all(&self) {
        black_box(self.bytes.chunks(64).map(|line| u64::from(line[0])).sum::<u64>());
    }
}

//! Empties the caches of other bytes.

use std::hint::black_box;

/// Bytes to read: more than the last caches of the known processors hold, or more than the slice of them that one core
/// can fill.
const LEN: usize = 96 << 20;

/// Fills all caches with its own bytes.
pub(crate) struct Evict {
    bytes: Vec<u8>,
}

impl Evict {
    pub(crate) fn new() -> Evict {
        Evict { bytes: vec![1; LEN] }
    }

    /// Reads a byte of each line. Lines that others changed are written back on the way, and none is left to be
    /// written.
    pub(crate) fn all(&self) {
        black_box(self.bytes.chunks(64).map(|line| u64::from(line[0])).sum::<u64>());
    }
}

//! Interface between columns and the two ways to hash them: an engine computes the chaining values of BLAKE3's trees.

use super::hash::Digest;

/// Bytes of a chunk.
pub(super) const CHUNK: usize = 1024;

/// Two chaining values.
pub(super) type Parent = [u8; 64];

/// An engine that computes chaining values: `lanes.rs` or `subtrees.rs`.
#[derive(Debug)]
pub(super) struct HashEngine {
    /// The values of the subtrees over pieces of one length, a multiple of 64, one piece of each row. The pieces
    /// begin with chunk number `first` of their rows. If `is_whole`, they are all of the rows, and the values
    /// are their digests.
    pub(super) subtrees: fn(pieces: &[&[u8]], first: u64, is_whole: bool, out: &mut [Digest]),
    /// The values of successive blocks of one message, each 1024 times a power of two bytes, the first of which begins
    /// with chunk number `first`.
    pub(super) blocks: fn(bytes: &[u8], block: usize, first: u64, out: &mut [Digest]),
    /// The values of parents, or the digests where the parents are roots.
    pub(super) parents: fn(parents: &[&Parent], are_roots: bool, out: &mut [Digest]),
    /// The keyed hashes of messages of 64 bytes.
    pub(super) keyed: fn(key: &[u8; 32], messages: &[Parent], out: &mut [Digest]),
}

impl HashEngine {
    /// Merges `count` values of successive subtrees for each row, row after row, into one value for each row. The
    /// values are digests if `is_whole` says that the subtrees are all of the rows.
    pub(super) fn merge(&self, mut values: Vec<Digest>, mut count: usize, is_whole: bool) -> Vec<Digest> {
        while count > 1 {
            let mut pairs = Vec::with_capacity(values.len() / 2);
            for row in values.chunks_exact(count) {
                pairs.extend(row.as_flattened().as_chunks().0);
            }
            let mut merged = vec![[0; 32]; pairs.len()];
            (self.parents)(&pairs, is_whole && count == 2, &mut merged);
            if !count.is_multiple_of(2) {
                // The last of each row has no neighbour and moves up.
                let rows = merged.chunks_exact(count / 2).zip(values.chunks_exact(count));
                merged = rows.flat_map(|(row, below)| row.iter().chain(below.last())).copied().collect();
            }
            values = merged;
            count = count.div_ceil(2);
        }
        values
    }
}

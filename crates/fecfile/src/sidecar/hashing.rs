//! Digests of blocks.

use fec_core::digest::{Digest, HashKind, blocks};
use fec_core::format::sidecar::catalog::{ShortDigest, shortened};

/// The plain digests of blocks that stand one behind the other.
pub(super) fn plain_digests(bytes: &[u8], block: usize) -> Vec<ShortDigest> {
    /// Blocks that are hashed together: as many as fill the lanes of a vector, several times.
    const TOGETHER: usize = 64;
    let blocks: Vec<&[u8]> = bytes.chunks_exact(block).collect();
    let digests = blocks.chunks(TOGETHER).flat_map(|blocks| HashKind::Blake3.digests(blocks));
    digests.map(|digest| shortened(&digest)).collect()
}

/// The BLAKE3 of a file, from the values of its whole blocks and of what is behind them.
#[derive(Debug, Default)]
pub(super) struct FileTree {
    /// Of full units.
    units: Vec<Digest>,
    /// Of the blocks of the unit that is not full.
    blocks: Vec<Digest>,
}

/// Blocks of a unit, of which one value is kept.
const UNIT: usize = 64;

impl FileTree {
    /// Adds the next blocks.
    pub(super) fn push(&mut self, values: &[Digest]) {
        let mut left = values;
        while !left.is_empty() {
            if self.blocks.len() == UNIT {
                self.units.push(blocks::subtree(&self.blocks));
                self.blocks.clear();
            }
            let (now, later) = left.split_at(left.len().min(UNIT - self.blocks.len()));
            self.blocks.extend_from_slice(now);
            left = later;
        }
    }

    /// The hash. At least two values were added, blocks or the tail.
    pub(super) fn finish(mut self) -> Digest {
        if self.units.is_empty() {
            return blocks::root(&self.blocks);
        }
        self.units.push(blocks::subtree(&self.blocks));
        blocks::root(&self.units)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_any_length_has_its_hash() {
        let bytes: Vec<u8> = (0..300_000usize).map(|i| (i * 31 + i / 251) as u8).collect();
        for len in [1025, 2048, 64 * 1024, 64 * 1024 + 1, 65 * 1024, 128 * 1024, 129 * 1024 + 5, 300_000] {
            let whole = len / 1024;
            let mut values = vec![[0; 32]; whole];
            blocks::values(&bytes[..whole * 1024], 1024, 0, &mut values);
            if len % 1024 > 0 {
                values.push(blocks::tail_value(&bytes[whole * 1024..len], whole as u64 * 1024));
            }
            let mut tree = FileTree::default();
            values.chunks(7).for_each(|values| tree.push(values));
            assert_eq!(tree.finish(), HashKind::Blake3.digest(&bytes[..len]), "{len}");
        }
    }
}

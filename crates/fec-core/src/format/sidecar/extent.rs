//! The places of pieces and recovery shards (section 17.5).

/// A stretch of a sidecar: blocks of recovery shards, and pieces evenly between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extent {
    /// Offset of the extent in the sidecar.
    pub start: u64,
    /// Blocks of recovery shards.
    pub blocks: u64,
    /// Pieces, at least 2.
    pub pieces: u32,
    /// Bytes of a piece.
    pub piece_len: u32,
}

impl Extent {
    /// The number of blocks before piece `nth`.
    fn blocks_before(&self, nth: u64) -> u64 {
        (u128::from(nth) * u128::from(self.blocks) / u128::from(self.pieces - 1)) as u64
    }

    /// The number of pieces before block `nth`.
    fn pieces_before(&self, nth: u64) -> u64 {
        let gaps = u128::from(self.pieces - 1);
        ((u128::from(nth) + 1) * gaps).div_ceil(u128::from(self.blocks)) as u64
    }

    /// The offset of piece `nth`.
    pub fn piece(&self, nth: u64, block: u64) -> u64 {
        self.start + self.blocks_before(nth) * block + nth * u64::from(self.piece_len)
    }

    /// The offset of block `nth`, and the number of blocks from it up to the next piece.
    pub fn block(&self, nth: u64, block: u64) -> (u64, u64) {
        let pieces = self.pieces_before(nth);
        let at = self.start + nth * block + pieces * u64::from(self.piece_len);
        (at, self.blocks_before(pieces) - nth)
    }

    /// The pieces on either side of block `nth`, by number.
    pub fn neighbours(&self, nth: u64) -> [u64; 2] {
        let behind = self.pieces_before(nth);
        [behind - 1, behind]
    }

    /// The bytes of the extent; `None` beyond all limits.
    pub fn len(&self, block: u64) -> Option<u64> {
        let pieces = u64::from(self.pieces) * u64::from(self.piece_len);
        self.blocks.checked_mul(block)?.checked_add(pieces).filter(|len| *len < 1 << 62)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares each piece and block with the specification's formula.
    #[test]
    fn pieces_and_blocks_fill_the_extent() {
        for (blocks, pieces) in [(0, 2), (1, 2), (1, 9), (5, 2), (7, 3), (100, 128), (1000, 128), (36, 4)] {
            let (block, extent) = (1024, Extent { start: 4096, blocks, pieces, piece_len: 320 });
            let mut parts: Vec<(u64, u64)> =
                (0..pieces.into()).map(|t| (extent.piece(t, block), 320)).collect();
            for nth in 0..blocks {
                let (at, in_one_go) = extent.block(nth, block);
                let before =
                    (0..u64::from(pieces)).filter(|t| t * blocks / u64::from(pieces - 1) <= nth).count();
                assert_eq!(at, 4096 + nth * block + before as u64 * 320, "block {nth} of {extent:?}");
                assert_eq!(extent.neighbours(nth), [before as u64 - 1, before as u64]);
                assert!((1..in_one_go).all(|more| extent.block(nth + more, block).0 == at + more * block));
                assert_eq!(extent.piece(before as u64, block), at + in_one_go * block);
                parts.push((at, block));
            }
            parts.sort_unstable();
            let end = parts.iter().fold(4096, |end, (at, len)| {
                assert_eq!(*at, end, "{extent:?}");
                at + len
            });
            assert_eq!(Some(end - 4096), extent.len(block));
        }
    }
}

//! BLAKE3 of many rows of one length at a time, in pieces of columns.
//!
//! The leaves of a row's tree are its chunks of 1024 bytes, and left subtrees are always perfect (BLAKE3 specification,
//! section 2.1). A piece of 2^i chunks that begins at a multiple of its length is therefore a subtree, whatever
//! surrounds it; the last piece may be shorter. Pieces can be hashed in any order and on any thread while they are in
//! the cache, and 32 bytes for each piece and row are all that is kept.

use super::engine::{CHUNK, HashEngine};
use super::hash::Digest;
#[cfg(feature = "blake3-lanes")]
use super::lanes::ENGINE;
#[cfg(not(feature = "blake3-lanes"))]
use super::subtrees::ENGINE;

/// The tree values of rows of one length on their way to digests.
#[derive(Debug)]
pub(crate) struct Columns {
    engine: &'static HashEngine,
    rows: usize,
    len: usize,
    piece_len: usize,
    /// For each piece the values of all rows.
    values: Vec<Digest>,
}

/// A piece of the columns, to be hashed.
#[derive(Debug)]
pub(crate) struct Piece<'a> {
    engine: &'static HashEngine,
    first: u64,
    is_whole: bool,
    out: &'a mut [Digest],
}

impl Columns {
    /// For `rows` rows of `len` bytes, which is a multiple of 64 and more than 0, in pieces of `piece_len`: 1024
    /// times a power of two.
    pub(crate) fn new(rows: usize, len: usize, piece_len: usize) -> Columns {
        Columns::with_engine(&ENGINE, rows, len, piece_len)
    }

    fn with_engine(engine: &'static HashEngine, rows: usize, len: usize, piece_len: usize) -> Columns {
        assert!(len > 0 && len.is_multiple_of(64) && piece_len.is_power_of_two() && piece_len >= CHUNK);
        let values = vec![[0; 32]; rows * len.div_ceil(piece_len)];
        Columns { engine, rows, len, piece_len, values }
    }

    /// All pieces in order.
    pub(crate) fn pieces(&mut self) -> impl Iterator<Item = Piece<'_>> {
        let (engine, is_whole) = (self.engine, self.len <= self.piece_len);
        let chunks = (self.piece_len / CHUNK) as u64;
        let firsts = (0..).map(move |nth| nth * chunks);
        firsts.zip(self.values.chunks_mut(self.rows.max(1))).map(move |(first, out)| Piece {
            engine,
            first,
            is_whole,
            out,
        })
    }

    /// The digest of each row. All pieces were hashed.
    pub(crate) fn finish(self) -> Vec<Digest> {
        self.finish_keeping(None)
    }

    /// As [`finish`](Self::finish); `kept` becomes the values of the pieces, row after row, or empty if rows are a
    /// piece each.
    pub(crate) fn finish_keeping(self, mut kept: Option<&mut Vec<Digest>>) -> Vec<Digest> {
        if let Some(kept) = &mut kept {
            kept.clear();
        }
        let count = self.len.div_ceil(self.piece_len);
        if count == 1 {
            return self.values;
        }
        let of_row = |row| self.values[row..].iter().step_by(self.rows);
        let by_row: Vec<Digest> = (0..self.rows).flat_map(of_row).copied().collect();
        if let Some(kept) = kept {
            kept.extend_from_slice(&by_row);
        }
        self.engine.merge(by_row, count, true)
    }
}

impl Piece<'_> {
    /// Hashes the bytes of this piece of each row, in order.
    pub(crate) fn hash(self, rows: &[&[u8]]) {
        assert_eq!(rows.len(), self.out.len(), "one piece of each row");
        if !rows.is_empty() {
            (self.engine.subtrees)(rows, self.first, self.is_whole, self.out);
        }
    }
}

/// The digests of rows of one length that are a piece each.
pub(super) fn digests(rows: &[&[u8]]) -> Vec<Digest> {
    let mut digests = vec![[0; 32]; rows.len()];
    (ENGINE.subtrees)(rows, 0, true, &mut digests);
    digests
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::subtrees;

    fn row(len: usize, seed: usize) -> Vec<u8> {
        (0..len).map(|i| (i * 31 + i / 251 + seed * 97) as u8).collect()
    }

    fn digests(engine: &'static HashEngine, rows: &[&[u8]], piece_len: usize) -> Vec<Digest> {
        let len = rows[0].len();
        let mut columns = Columns::with_engine(engine, rows.len(), len, piece_len);
        let mut pieces: Vec<Piece> = columns.pieces().collect();
        assert_eq!(pieces.len(), len.div_ceil(piece_len));
        // The order is free: here the last piece comes first.
        for (nth, piece) in pieces.drain(..).enumerate().rev() {
            let (start, end) = (nth * piece_len, len.min((nth + 1) * piece_len));
            piece.hash(&rows.iter().map(|row| &row[start..end]).collect::<Vec<_>>());
        }
        columns.finish()
    }

    fn engines() -> impl Iterator<Item = (&'static str, &'static HashEngine)> {
        [
            #[cfg(feature = "blake3-lanes")]
            ("lanes", &crate::digest::lanes::ENGINE),
            ("subtrees", &subtrees::ENGINE),
        ]
        .into_iter()
    }

    /// Every length in blocks to 20 chunks and some beyond, and every number of rows around the numbers of lanes.
    #[test]
    fn rows_have_the_digests_that_blake3_gives_them() {
        for (name, engine) in engines() {
            for len in (64..=20 * CHUNK).step_by(64).chain([31 * CHUNK + 64, 64 * CHUNK, 127_104]) {
                let many = len % 4096 < 192 || len > 20 * CHUNK;
                for count in [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 100] {
                    if count > 3 && !many {
                        continue;
                    }
                    let rows: Vec<Vec<u8>> = (0..count).map(|seed| row(len, seed)).collect();
                    let rows: Vec<&[u8]> = rows.iter().map(Vec::as_slice).collect();
                    let expected: Vec<Digest> =
                        rows.iter().map(|row| *blake3::hash(row).as_bytes()).collect();
                    for piece_len in [CHUNK, 4 * CHUNK, 8 * CHUNK, 32 * CHUNK] {
                        let found = digests(engine, &rows, piece_len);
                        assert!(found == expected, "{name}: {count} rows of {len} bytes by {piece_len}");
                    }
                }
            }
        }
    }
}

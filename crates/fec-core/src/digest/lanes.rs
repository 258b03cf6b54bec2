//! BLAKE3 with one row in each lane of a vector.
//!
//! `blake3::hash` fills its lanes with successive chunks of one message, and leaves some of them empty at the message's
//! end. A row in each lane fills all lanes whatever the length. The interface that allows this is not documented, and
//! `fec-blake3-lanes` pins the version of `blake3` that has it. Only the feature `blake3-lanes` brings it in;
//! `subtrees.rs` takes the place of this file without.

use super::engine::{CHUNK, HashEngine, Parent};
use super::{hash::Digest, sha256};
use fec_blake3_lanes::{Counter, Lanes};

pub(super) const ENGINE: HashEngine = HashEngine { subtrees, blocks, parents, keyed };

/// The initial chaining value is that of SHA-256 (BLAKE3 specification, section 2.2).
const IV: [u32; 8] = sha256::IV;

/// Domain flags (section 2.1).
const CHUNK_START: u8 = 1;
const CHUNK_END: u8 = 2;
const PARENT: u8 = 4;
const ROOT: u8 = 8;
const KEYED_HASH: u8 = 16;

/// Most inputs that are handed over at a time: as many as the widest vectors have lanes.
const WIDEST: usize = 16;

/// This many chunks of one row use lanes about as well as sixteen rows do.
const MANY_CHUNKS: usize = 8;

fn subtrees(pieces: &[&[u8]], first: u64, is_whole: bool, out: &mut [Digest]) {
    let count = pieces[0].len().div_ceil(CHUNK);
    let mut hashing = Chunks { lanes: Lanes::detect(), first, end: CHUNK_END };
    if count == 1 {
        hashing.end |= if is_whole { ROOT } else { 0 };
        return hashing.across(pieces, 1, out);
    }
    let mut values = vec![[0; 32]; pieces.len() * count];
    // Rows that fill all lanes go across; the rest goes along the rows, if this fills more lanes.
    let lanes = hashing.lanes.count();
    let rest = pieces.len() % lanes;
    let is_along = pieces[0].len() / CHUNK >= rest.min(MANY_CHUNKS);
    let (pieces_across, pieces_along) =
        pieces.split_at(if is_along { pieces.len() - rest } else { pieces.len() });
    let (values_across, values_along) = values.split_at_mut(pieces_across.len() * count);
    hashing.across(pieces_across, count, values_across);
    for (piece, values) in pieces_along.iter().zip(values_along.chunks_exact_mut(count)) {
        hashing.along(piece, values);
    }
    out.copy_from_slice(&ENGINE.merge(values, count, is_whole));
}

fn blocks(bytes: &[u8], block: usize, first: u64, out: &mut [Digest]) {
    let mut values = vec![[0; 32]; bytes.len() / CHUNK];
    Chunks { lanes: Lanes::detect(), first, end: CHUNK_END }.along(bytes, &mut values);
    out.copy_from_slice(&ENGINE.merge(values, block / CHUNK, false));
}

fn parents(parents: &[&Parent], are_roots: bool, out: &mut [Digest]) {
    let end = if are_roots { ROOT } else { 0 };
    hash_each(Lanes::detect(), parents, 0, (PARENT, 0, end), out);
}

fn keyed(key: &[u8; 32], messages: &[Parent], out: &mut [Digest]) {
    keyed_by(Lanes::detect(), key, messages, out);
}

fn keyed_by(lanes: Lanes, key: &[u8; 32], messages: &[Parent], out: &mut [Digest]) {
    let mut words = [0; 8];
    words.iter_mut().zip(key.as_chunks().0).for_each(|(word, bytes)| *word = u32::from_le_bytes(*bytes));
    for (messages, out) in messages.chunks(WIDEST).zip(out.chunks_mut(WIDEST)) {
        let mut inputs = [&[0; 64]; WIDEST];
        inputs.iter_mut().zip(messages).for_each(|(input, message)| *input = message);
        let flags = (KEYED_HASH, CHUNK_START, CHUNK_END | ROOT);
        let inputs = &inputs[..messages.len()];
        lanes.hash_many(inputs, &words, (0, Counter::Same), flags, out.as_flattened_mut());
    }
}

/// Hashes inputs anywhere in memory, all with one counter; `flags` are those of every block, of the first and of the
/// last.
fn hash_each<const LEN: usize>(
    lanes: Lanes,
    inputs: &[&[u8; LEN]],
    counter: u64,
    (flags, start, end): (u8, u8, u8),
    out: &mut [Digest],
) {
    lanes.hash_many(inputs, &IV, (counter, Counter::Same), (flags, start, end), out.as_flattened_mut());
}

/// Hashes chunks of pieces that begin with chunk number `first`.
struct Chunks {
    lanes: Lanes,
    first: u64,
    /// The flags of a chunk's last block.
    end: u8,
}

impl Chunks {
    /// The values of all `count` chunks of all pieces, piece after piece, with a piece in each lane.
    fn across(&self, pieces: &[&[u8]], count: usize, out: &mut [Digest]) {
        for (pieces, out) in pieces.chunks(WIDEST).zip(out.chunks_mut(WIDEST * count)) {
            for nth in 0..count {
                let mut values = [[0; 32]; WIDEST];
                self.one_of_each(pieces, nth, &mut values[..pieces.len()]);
                out[nth..].iter_mut().step_by(count).zip(values).for_each(|(out, value)| *out = value);
            }
        }
    }

    /// The values of all chunks of a piece, with a chunk in each lane.
    fn along(&self, piece: &[u8], out: &mut [Digest]) {
        let (chunks, rest) = piece.as_chunks::<CHUNK>();
        let inputs: Vec<&[u8; CHUNK]> = chunks.iter().collect();
        let (out, last) = out.split_at_mut(chunks.len());
        let flags = (0, CHUNK_START, self.end);
        self.lanes.hash_many(&inputs, &IV, (self.first, Counter::Next), flags, out.as_flattened_mut());
        if !rest.is_empty() {
            self.one_of_each(&[piece], chunks.len(), last);
        }
    }

    /// The values of chunk `nth` of up to [`WIDEST`] pieces.
    fn one_of_each(&self, pieces: &[&[u8]], nth: usize, out: &mut [Digest]) {
        /// The hashing function takes the length as a constant.
        macro_rules! by_blocks {
            ($blocks:expr, $($n:literal)*) => {
                match $blocks {
                    $($n => self.of_len::<{ 64 * $n }>(pieces, nth, out),)*
                    _ => unreachable!("a chunk has 1 to 16 blocks"),
                }
            };
        }
        let len = (pieces[0].len() - nth * CHUNK).min(CHUNK);
        by_blocks!(len / 64, 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);
    }

    fn of_len<const LEN: usize>(&self, pieces: &[&[u8]], nth: usize, out: &mut [Digest]) {
        let mut inputs = [&[0; LEN]; WIDEST];
        for (input, piece) in inputs.iter_mut().zip(pieces) {
            *input = piece[nth * CHUNK..].first_chunk().expect("all pieces have one length");
        }
        let counter = self.first + nth as u64;
        hash_each(self.lanes, &inputs[..pieces.len()], counter, (0, CHUNK_START, self.end), out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::subtrees;
    use crate::guarded::Guarded;
    use fec_blake3_lanes::WHAT_TO_DO;

    /// Covers every length of a chunk in every number of lanes, and every number of chunks along a row, at any address.
    #[test]
    fn every_platform_hashes_as_the_documented_interface_does() {
        let bytes: Vec<u8> = (0..WIDEST * 7 + 20 * CHUNK).map(|i| (i * 31 + i / 251) as u8).collect();
        for lanes in Lanes::all() {
            for first in [0, 1, 1 << 33] {
                let hashing = Chunks { lanes, first, end: CHUNK_END };
                for len in (64..=CHUNK).step_by(64) {
                    for count in 1..=WIDEST {
                        let rows: Vec<&[u8]> = (0..count).map(|row| &bytes[7 * row..][..len]).collect();
                        let (mut found, mut expected) = (vec![[0; 32]; count], vec![[0; 32]; count]);
                        hashing.across(&rows, 1, &mut found);
                        (subtrees::ENGINE.subtrees)(&rows, first, false, &mut expected);
                        let place = format!("{count} rows of {len} bytes from chunk {first}, {lanes:?}");
                        assert!(found == expected, "{place}: {WHAT_TO_DO}");
                    }
                }
                for len in (CHUNK..=20 * CHUNK).step_by(CHUNK / 2) {
                    let mut found = vec![[0; 32]; len.div_ceil(CHUNK)];
                    hashing.along(&bytes[..len], &mut found);
                    for (nth, (chunk, found)) in (first..).zip(bytes[..len].chunks(CHUNK).zip(&found)) {
                        let mut expected = [[0; 32]];
                        (subtrees::ENGINE.subtrees)(&[chunk], nth, false, &mut expected);
                        assert!(*found == expected[0], "chunk {nth} of {len}, {lanes:?}: {WHAT_TO_DO}");
                    }
                }
            }
        }
    }

    /// Each row ends at an unreadable page: a load of one byte too many ends this process.
    #[test]
    fn nothing_is_loaded_from_behind_a_row() {
        let rows: Vec<Guarded> = (0..WIDEST as u8 + 7).map(|row| Guarded::new(&[row; 3 * CHUNK])).collect();
        for lanes in Lanes::all() {
            let hashing = Chunks { lanes, first: 5, end: CHUNK_END };
            for len in (64..=CHUNK).step_by(64).chain([2 * CHUNK - 64, 3 * CHUNK]) {
                for count in 1..=rows.len() {
                    let ends: Vec<&[u8]> = rows[..count].iter().map(|row| row.end(len)).collect();
                    let chunks = len.div_ceil(CHUNK);
                    hashing.across(&ends, chunks, &mut vec![[0; 32]; count * chunks]);
                }
                for row in &rows {
                    hashing.along(row.end(len), &mut vec![[0; 32]; len.div_ceil(CHUNK)]);
                }
            }
            for count in 1..=rows.len() {
                let pairs: Vec<&Parent> =
                    rows[..count].iter().map(|row| row.end(64).try_into().expect("64 bytes")).collect();
                hash_each(lanes, &pairs, 0, (PARENT, 0, ROOT), &mut vec![[0; 32]; count]);
                let messages = rows[0].end(64 * count).as_chunks().0;
                keyed_by(lanes, &[3; 32], messages, &mut vec![[0; 32]; count]);
            }
        }
    }

    #[test]
    fn keyed_hashes_are_those_of_the_documented_interface() {
        let messages: Vec<Parent> = (0..40u8).map(|i| std::array::from_fn(|at| i ^ at as u8)).collect();
        let key = std::array::from_fn(|at| 7 * at as u8);
        for lanes in Lanes::all() {
            for count in 0..=messages.len() {
                let (mut found, mut expected) = (vec![[0; 32]; count], vec![[0; 32]; count]);
                keyed_by(lanes, &key, &messages[..count], &mut found);
                (subtrees::ENGINE.keyed)(&key, &messages[..count], &mut expected);
                assert!(found == expected, "{count} messages, {lanes:?}: {WHAT_TO_DO}");
            }
        }
    }

    #[test]
    fn parents_are_those_of_the_documented_interface() {
        let values: Vec<Parent> = (0..40u8).map(|i| std::array::from_fn(|at| i ^ at as u8)).collect();
        for count in 1..=values.len() {
            let pairs: Vec<&Parent> = values[..count].iter().collect();
            for are_roots in [false, true] {
                let (mut found, mut expected) = (vec![[0; 32]; count], vec![[0; 32]; count]);
                parents(&pairs, are_roots, &mut found);
                (subtrees::ENGINE.parents)(&pairs, are_roots, &mut expected);
                assert!(found == expected, "{count} parents: {WHAT_TO_DO}");
            }
        }
    }
}

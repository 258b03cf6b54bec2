//! Rows that are hashed side by side, piece by piece.

use super::engine::Engine;
use super::standard::{BLOCK, IV, State, to_bytes};
use crate::digest::hash::Digest;

/// Rows of one length on their way to digests.
#[derive(Debug)]
pub(crate) struct Rows {
    pub(super) engine: Engine,
    pub(super) states: Vec<State>,
}

/// A share of the rows: each thread hashes the next piece of its own share.
#[derive(Debug)]
pub(crate) struct Share<'a> {
    engine: Engine,
    states: &'a mut [State],
}

impl Rows {
    /// `count` rows of which nothing was hashed yet.
    pub(crate) fn new(count: usize) -> Rows {
        Rows { engine: Engine::best(), states: vec![IV; count] }
    }

    /// All rows in order, `rows` in each share but the last.
    ///
    /// # Panics
    /// If `rows` is 0.
    pub(crate) fn shares(&mut self, rows: usize) -> impl Iterator<Item = Share<'_>> {
        let engine = self.engine;
        self.states.chunks_mut(rows).map(move |states| Share { engine, states })
    }

    /// Hashes the next piece of every row, in their order. Cost: a compression for each block of 64 bytes.
    ///
    /// # Panics
    /// If there is not one piece for each row, or if they are not of one length, a multiple of 64.
    pub(crate) fn hash(&mut self, pieces: &[&[u8]]) {
        self.engine.compress(&mut self.states, pieces);
    }

    /// The digests after `len` bytes of each row. Each row gets a block of padding (section 5.1.1).
    pub(crate) fn finish(mut self, len: usize) -> Vec<Digest> {
        let mut padding = [0; BLOCK];
        padding[0] = 0x80;
        padding[BLOCK - 8..].copy_from_slice(&(8 * len as u64).to_be_bytes());
        let pieces = vec![&padding[..]; self.states.len()];
        self.hash(&pieces);
        self.states.iter().map(to_bytes).collect()
    }
}

impl Share<'_> {
    /// Hashes the next piece of every row of the share, in their order: as [`Rows::hash`].
    pub(crate) fn hash(self, pieces: &[&[u8]]) {
        self.engine.compress(self.states, pieces);
    }
}

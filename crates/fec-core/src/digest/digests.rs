//! Digests of several messages of one length, that come in pieces.

use super::{Columns, Digest, HashKind};
use sha2::{Digest as _, Sha256};

/// Hashes several messages of one length side by side, for those who have them in pieces: of each message its first
/// [`PIECE_LEN`](Digests::PIECE_LEN) bytes, then the next, and so on.
#[derive(Debug)]
pub struct Digests {
    len: usize,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The tree values, and the number of pieces that were hashed.
    Blake3(Columns, usize),
    Sha256(Vec<Sha256>),
}

impl Digests {
    /// Bytes of each message in every piece but the last: few enough that sixteen times as many stay in the nearest
    /// caches, and enough for one message to fill the lanes of a vector.
    pub const PIECE_LEN: usize = 16 << 10;

    /// For `count` messages of `len` bytes each.
    ///
    /// # Panics
    /// If `len` is 0 or no multiple of 64.
    pub fn new(hash: HashKind, count: usize, len: usize) -> Digests {
        assert!(len > 0 && len.is_multiple_of(64), "messages of {len} bytes");
        let state = match hash {
            HashKind::Blake3 => State::Blake3(Columns::new(count, len, Digests::PIECE_LEN), 0),
            HashKind::Sha256 => State::Sha256(vec![Sha256::new(); count]),
        };
        Digests { len, state }
    }

    /// Hashes the next piece of all messages, in their order.
    ///
    /// # Panics
    /// If there are more or fewer pieces than messages, or more pieces than a message has.
    pub fn update(&mut self, pieces: &[&[u8]]) {
        match &mut self.state {
            State::Blake3(columns, done) => {
                let start = *done * Digests::PIECE_LEN;
                let expected = self.len.saturating_sub(start).min(Digests::PIECE_LEN);
                assert!(pieces.iter().all(|piece| piece.len() == expected), "a piece of each message");
                columns.pieces().nth(*done).expect("a message has no more pieces").hash(pieces);
                *done += 1;
            }
            State::Sha256(states) => {
                assert_eq!(pieces.len(), states.len(), "a piece of each message");
                states.iter_mut().zip(pieces).for_each(|(state, piece)| state.update(piece));
            }
        }
    }

    /// The digests, when all pieces were hashed.
    pub fn finish(self) -> Vec<Digest> {
        match self.state {
            State::Blake3(columns, _) => columns.finish(),
            State::Sha256(states) => states.into_iter().map(|state| state.finalize().into()).collect(),
        }
    }
}

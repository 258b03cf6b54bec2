//! Digests of several messages of one length, that come in pieces.

use super::columns::Columns;
use super::hash::{Digest, HashKind};
use sha2::{Digest as _, Sha256};

/// Hashes several messages of one length side by side, for those who have them in pieces: of each message its first
/// [`PIECE_LEN`](Digests::PIECE_LEN) bytes, then the next, and so on.
#[derive(Debug)]
pub struct Digests {
    len: usize,
    hashing: Hashing,
}

#[derive(Debug)]
enum Hashing {
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
        let hashing = match hash {
            HashKind::Blake3 => Hashing::Blake3(Columns::new(count, len, Digests::PIECE_LEN), 0),
            HashKind::Sha256 => Hashing::Sha256(vec![Sha256::new(); count]),
        };
        Digests { len, hashing }
    }

    /// Hashes the next piece of all messages, in their order.
    ///
    /// # Panics
    /// If there are more or fewer pieces than messages, or more pieces than a message has.
    pub fn update(&mut self, pieces: &[&[u8]]) {
        match &mut self.hashing {
            Hashing::Blake3(columns, done) => {
                let start = *done * Digests::PIECE_LEN;
                let expected = self.len.saturating_sub(start).min(Digests::PIECE_LEN);
                assert!(pieces.iter().all(|piece| piece.len() == expected), "a piece of each message");
                columns.pieces().nth(*done).expect("a message has no more pieces").hash(pieces);
                *done += 1;
            }
            Hashing::Sha256(states) => {
                assert_eq!(pieces.len(), states.len(), "a piece of each message");
                states.iter_mut().zip(pieces).for_each(|(state, piece)| state.update(piece));
            }
        }
    }

    /// The digests, when all pieces were hashed.
    pub fn finish(self) -> Vec<Digest> {
        match self.hashing {
            Hashing::Blake3(columns, _) => columns.finish(),
            Hashing::Sha256(states) => states.into_iter().map(|state| state.finalize().into()).collect(),
        }
    }
}

impl HashKind {
    /// The plain hash of each of several messages of one length: the same as [`digest`](HashKind::digest) of each,
    /// and with BLAKE3 faster, since a message in each lane of a vector fills it whatever the length.
    ///
    /// # Panics
    /// If the messages differ in length.
    pub fn digests(self, messages: &[&[u8]]) -> Vec<Digest> {
        let len = messages.first().map_or(0, |first| first.len());
        assert!(messages.iter().all(|message| message.len() == len), "messages of one length");
        if len == 0 || !len.is_multiple_of(64) {
            return messages.iter().map(|message| self.digest(message)).collect();
        }
        let mut digests = Digests::new(self, messages.len(), len);
        for start in (0..len).step_by(Digests::PIECE_LEN) {
            let end = len.min(start + Digests::PIECE_LEN);
            digests.update(&messages.iter().map(|message| &message[start..end]).collect::<Vec<_>>());
        }
        digests.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_together_have_the_digests_that_they_have_alone() {
        let bytes: Vec<u8> = (0..70_000u32).map(|i| (i ^ i >> 8) as u8).collect();
        for hash in [HashKind::Blake3, HashKind::Sha256] {
            for len in (0..200).chain([1023, 1024, 1025, 4096, 16_384, 16_448, 33_000, 49_216]) {
                for count in [0, 1, 2, 15, 18] {
                    let messages: Vec<&[u8]> = (0..count).map(|i| &bytes[7 * i..][..len]).collect();
                    let expected: Vec<Digest> = messages.iter().map(|message| hash.digest(message)).collect();
                    assert!(hash.digests(&messages) == expected, "{} of {count} x {len}", hash.name());
                }
            }
        }
    }
}

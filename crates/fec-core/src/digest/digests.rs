//! Digests of several messages of one length that come in pieces.

use super::columns::{self, Columns};
use super::hash::{Digest, HashKind};
use super::sha256;

/// Hashes several messages of one length side by side, in pieces. The caller hands over the first
/// [`PIECE_LEN`](Digests::PIECE_LEN) bytes of each message, then the next, and so on.
#[derive(Debug)]
pub struct Digests {
    len: usize,
    /// Bytes hashed of each message.
    done: usize,
    hashing: Hashing,
}

#[derive(Debug)]
enum Hashing {
    Blake3(Columns),
    Sha256(sha256::Rows),
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
            HashKind::Blake3 => Hashing::Blake3(Columns::new(count, len, Digests::PIECE_LEN)),
            HashKind::Sha256 => Hashing::Sha256(sha256::Rows::new(count)),
        };
        Digests { len, done: 0, hashing }
    }

    /// Hashes the next piece of all messages, in their order.
    ///
    /// # Panics
    /// If there are more or fewer pieces than messages, if a piece has the wrong length, or if all pieces were hashed
    /// already.
    pub fn update(&mut self, pieces: &[&[u8]]) {
        let len = Digests::PIECE_LEN.min(self.len - self.done);
        assert!(len > 0, "a message has no more pieces");
        assert!(pieces.iter().all(|piece| piece.len() == len), "a piece of each message");
        match &mut self.hashing {
            Hashing::Blake3(columns) => {
                let next = columns.pieces().nth(self.done / Digests::PIECE_LEN);
                next.expect("pieces were counted").hash(pieces);
            }
            Hashing::Sha256(rows) => rows.hash(pieces),
        }
        self.done += len;
    }

    /// The digests, when all pieces were hashed.
    pub fn finish(self) -> Vec<Digest> {
        match self.hashing {
            Hashing::Blake3(columns) => columns.finish(),
            Hashing::Sha256(rows) => rows.finish(self.done),
        }
    }
}

impl HashKind {
    /// The plain hash of each of several messages of one length, the same as [`digest`](HashKind::digest) of each. It
    /// is faster where the length is a multiple of 64: with a message in each lane, the vectors are full whatever the
    /// length.
    ///
    /// # Panics
    /// If the messages differ in length.
    pub fn digests(self, messages: &[&[u8]]) -> Vec<Digest> {
        let len = messages.first().map_or(0, |first| first.len());
        assert!(messages.iter().all(|message| message.len() == len), "messages of one length");
        if len == 0 || !len.is_multiple_of(64) {
            return messages.iter().map(|message| self.digest(message)).collect();
        }
        if let HashKind::Sha256 = self {
            // Only trees gain by pieces; whole messages do not.
            let mut rows = sha256::Rows::new(messages.len());
            rows.hash(messages);
            return rows.finish(len);
        }
        if len <= Digests::PIECE_LEN {
            return columns::digests(messages);
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

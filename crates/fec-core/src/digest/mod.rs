//! Digests of shards and the node function of the trees (format specification, section 3).
//!
//! A node costs one compression: BLAKE3 in keyed mode, or one SHA-256 block from an initial value
//! that no message can reach. Nodes, digests and the levels of the trees cannot be taken for one
//! another, because each level has a tag of its own.
//!
//! Many shards of one length are hashed together by [`HashKind::digests`], and the codec hashes them in pieces
//! while they are in the cache (`columns.rs`).

mod columns;
mod digests;
#[cfg(feature = "blake3-lanes")]
mod lanes;
#[cfg(any(test, not(feature = "blake3-lanes")))]
mod subtrees;

pub use digests::Digests;

pub(crate) use columns::{Columns, Piece};

/// A 32-byte hash: a digest, a node or a root.
pub type Digest = [u8; 32];

/// The hash function of an encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HashKind {
    /// BLAKE3.
    Blake3,
    /// SHA-256.
    Sha256,
}

/// The level of a tree that a node belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// A shard's digest with its set and index.
    Leaf,
    /// Two nodes of one tree.
    Node,
    /// A group's set tree with its geometry.
    Group,
    /// The payload's geometry with the hash of the meta.
    Param,
    /// The group tree with the parameters.
    Root,
}

impl Tag {
    /// The 32 ASCII bytes that enter the node function.
    pub fn bytes(self) -> &'static [u8; 32] {
        match self {
            Tag::Leaf => b"fec/1 leaf: digest, set, index  ",
            Tag::Node => b"fec/1 node: left, right         ",
            Tag::Group => b"fec/1 group: set tree, geometry ",
            Tag::Param => b"fec/1 param: geometry, meta     ",
            Tag::Root => b"fec/1 root: group tree, param   ",
        }
    }
}

/// The initial value of SHA-256 (FIPS 180-4, section 5.3.3).
const SHA256_IV: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

impl HashKind {
    /// The number of this hash in a geometry block.
    pub fn number(self) -> u8 {
        match self {
            HashKind::Blake3 => 1,
            HashKind::Sha256 => 2,
        }
    }

    /// The hash with this number.
    pub fn from_number(number: u8) -> Option<HashKind> {
        match number {
            1 => Some(HashKind::Blake3),
            2 => Some(HashKind::Sha256),
            _ => None,
        }
    }

    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            HashKind::Blake3 => "blake3",
            HashKind::Sha256 => "sha256",
        }
    }

    /// The plain hash of `bytes`: what `b3sum` or `sha256sum` prints.
    pub fn digest(self, bytes: &[u8]) -> Digest {
        match self {
            HashKind::Blake3 => *blake3::hash(bytes).as_bytes(),
            HashKind::Sha256 => {
                use sha2::Digest as _;
                sha2::Sha256::digest(bytes).into()
            }
        }
    }

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

    /// The node function N(tag, left ‖ right): one compression.
    pub fn node(self, tag: Tag, left: &Digest, right: &Digest) -> Digest {
        let mut block = [0u8; 64];
        block[..32].copy_from_slice(left);
        block[32..].copy_from_slice(right);
        match self {
            HashKind::Blake3 => *blake3::keyed_hash(tag.bytes(), &block).as_bytes(),
            HashKind::Sha256 => {
                let mut state = SHA256_IV;
                let (words, _) = tag.bytes().as_chunks::<4>();
                for (word, bytes) in state.iter_mut().zip(words) {
                    *word ^= u32::from_be_bytes(*bytes);
                }
                sha2::block_api::compress256(&mut state, &[block]);
                let mut out = [0u8; 32];
                for (bytes, word) in out.as_chunks_mut::<4>().0.iter_mut().zip(state) {
                    *bytes = word.to_be_bytes();
                }
                out
            }
        }
    }

    /// The leaf of shard `index` of set `set`, whose plain digest is `digest`.
    pub fn leaf(self, digest: &Digest, set: u32, index: u32) -> Digest {
        let mut right = [0u8; 32];
        right[..4].copy_from_slice(&set.to_le_bytes());
        right[4..8].copy_from_slice(&index.to_le_bytes());
        self.node(Tag::Leaf, digest, &right)
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

    /// The check values of the specification, section 3, made by an implementation that is not this one.
    #[test]
    fn published_check_values() {
        let rows = [
            (Tag::Leaf, "47f14ed8ec24427b", "b316e2a03520c77f"),
            (Tag::Node, "cb93fe97b2a24448", "8c83cd242cead87c"),
            (Tag::Group, "dda876e0bf4b9df9", "9ef8efb1dbffc616"),
            (Tag::Param, "5046ccf4abebd761", "ea55abd695e721f2"),
            (Tag::Root, "5682b93b24857138", "c3f964010abe9e13"),
        ];
        let hex = |d: Digest| d[..8].iter().map(|b| format!("{b:02x}")).collect::<String>();
        for (tag, blake3, sha256) in rows {
            assert_eq!(hex(HashKind::Blake3.node(tag, &[0; 32], &[0; 32])), blake3, "{tag:?}");
            assert_eq!(hex(HashKind::Sha256.node(tag, &[0; 32], &[0; 32])), sha256, "{tag:?}");
        }
    }
}

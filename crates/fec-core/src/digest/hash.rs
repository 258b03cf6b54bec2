//! The hash functions of an encoding, and how they make nodes and leaves.

use super::sha256;

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
    /// The tree of a set's originals with that of its recovery shards.
    Set,
    /// A group's geometry with what the group follows.
    Link,
    /// A group's tree of sets with its link.
    Group,
}

impl Tag {
    /// The 32 ASCII bytes that enter the node function.
    pub fn bytes(self) -> &'static [u8; 32] {
        match self {
            Tag::Leaf => b"fec/1 leaf: digest, set, index  ",
            Tag::Node => b"fec/1 node: left, right         ",
            Tag::Set => b"fec/1 set: originals, recovery  ",
            Tag::Link => b"fec/1 link: geometry, before    ",
            Tag::Group => b"fec/1 group: set tree, link     ",
        }
    }

    /// The initial value of the node function by SHA-256.
    pub(super) fn sha256_state(self) -> [u32; 8] {
        let mut state = sha256::IV;
        let (words, _) = self.bytes().as_chunks::<4>();
        state.iter_mut().zip(words).for_each(|(word, bytes)| *word ^= u32::from_be_bytes(*bytes));
        state
    }
}

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

    /// The node function N(tag, left ‖ right): one compression.
    pub fn node(self, tag: Tag, left: &Digest, right: &Digest) -> Digest {
        let mut block = [0u8; 64];
        block[..32].copy_from_slice(left);
        block[32..].copy_from_slice(right);
        let mut node = [0; 32];
        self.nodes(tag, &[block], std::slice::from_mut(&mut node));
        node
    }

    /// The leaf of shard `index` of set `set`, whose plain digest is `digest`.
    pub fn leaf(self, digest: &Digest, set: u32, index: u32) -> Digest {
        let mut right = [0u8; 32];
        right[..4].copy_from_slice(&set.to_le_bytes());
        right[4..8].copy_from_slice(&index.to_le_bytes());
        self.node(Tag::Leaf, digest, &right)
    }
}

/// A plain hash of bytes that come in pieces.
#[derive(Clone, Debug)]
pub struct PlainHasher(State);

#[derive(Clone, Debug)]
enum State {
    Blake3(Box<blake3::Hasher>),
    Sha256(sha2::Sha256),
}

impl PlainHasher {
    /// A hasher without bytes.
    pub fn new(hash: HashKind) -> PlainHasher {
        use sha2::Digest as _;
        PlainHasher(match hash {
            HashKind::Blake3 => State::Blake3(Box::default()),
            HashKind::Sha256 => State::Sha256(sha2::Sha256::new()),
        })
    }

    /// Appends bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        use sha2::Digest as _;
        match &mut self.0 {
            State::Blake3(state) => {
                state.update(bytes);
            }
            State::Sha256(state) => state.update(bytes),
        }
    }

    /// The hash, the same as [`HashKind::digest`] of all bytes at once.
    pub fn finish(self) -> Digest {
        use sha2::Digest as _;
        match self.0 {
            State::Blake3(state) => *state.finalize().as_bytes(),
            State::Sha256(state) => state.finalize().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_hash_like_the_whole() {
        let bytes: Vec<u8> = (0..10_000u32).map(|i| (i * i) as u8).collect();
        for hash in [HashKind::Blake3, HashKind::Sha256] {
            let mut hasher = PlainHasher::new(hash);
            bytes.chunks(777).for_each(|piece| hasher.update(piece));
            assert_eq!(hasher.finish(), hash.digest(&bytes));
        }
    }

    /// The check values of the specification, section 3, made by another implementation.
    #[test]
    fn published_check_values() {
        let rows = [
            (Tag::Leaf, "47f14ed8ec24427b", "b316e2a03520c77f"),
            (Tag::Node, "cb93fe97b2a24448", "8c83cd242cead87c"),
            (Tag::Set, "9061fa1ce070b018", "fab9bb1432072c6d"),
            (Tag::Link, "e3284e362b7a55aa", "ace267f98780f128"),
            (Tag::Group, "2304111eae4ad5e2", "d6b6f91501715a24"),
        ];
        let hex = |d: Digest| d[..8].iter().map(|b| format!("{b:02x}")).collect::<String>();
        for (tag, blake3, sha256) in rows {
            assert_eq!(hex(HashKind::Blake3.node(tag, &[0; 32], &[0; 32])), blake3, "{tag:?}");
            assert_eq!(hex(HashKind::Sha256.node(tag, &[0; 32], &[0; 32])), sha256, "{tag:?}");
        }
    }
}

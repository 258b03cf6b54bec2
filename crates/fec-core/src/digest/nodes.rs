//! Nodes and leaves side by side: one level of a tree at a time, whose nodes do not wait for each other.
//!
//! BLAKE3 has a node in each lane of a vector. SHA-256 goes to the engines that rows have.

use super::engine::Parent;
use super::hash::{Digest, HashKind, Tag};
#[cfg(feature = "blake3-lanes")]
use super::lanes::ENGINE;
use super::sha256;
#[cfg(not(feature = "blake3-lanes"))]
use super::subtrees::ENGINE;

/// Leaves that are made at a time: as many as the widest vectors have lanes.
const WIDEST: usize = 16;

impl HashKind {
    /// The node over each of `pairs`, which are two nodes each: the same as [`node`](HashKind::node) of each.
    ///
    /// # Panics
    /// If `out` does not have a place for each pair.
    pub(crate) fn nodes(self, tag: Tag, pairs: &[Parent], out: &mut [Digest]) {
        assert_eq!(pairs.len(), out.len(), "a node for each pair");
        #[cfg(test)]
        NODES.set(NODES.get() + pairs.len());
        match self {
            HashKind::Blake3 => (ENGINE.keyed)(tag.bytes(), pairs, out),
            HashKind::Sha256 => sha256::compress_each(&tag.sha256_state(), pairs, out),
        }
    }

    /// Appends to `out` the leaf of each of some shards of set `set`, which are given by index and plain digest: the
    /// same as [`leaf`](HashKind::leaf) of each.
    pub(crate) fn leaves(
        self,
        set: u32,
        shards: impl IntoIterator<Item = (u32, Digest)>,
        out: &mut Vec<Digest>,
    ) {
        let mut shards = shards.into_iter().peekable();
        let mut pairs = [[0; 64]; WIDEST];
        pairs.iter_mut().for_each(|pair| pair[32..36].copy_from_slice(&set.to_le_bytes()));
        while shards.peek().is_some() {
            let mut count = 0;
            for (pair, (index, digest)) in pairs.iter_mut().zip(&mut shards) {
                pair[..32].copy_from_slice(&digest);
                pair[36..40].copy_from_slice(&index.to_le_bytes());
                count += 1;
            }
            let start = out.len();
            out.resize(start + count, [0; 32]);
            self.nodes(Tag::Leaf, &pairs[..count], &mut out[start..]);
        }
    }
}

#[cfg(test)]
thread_local! {
    static NODES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The number of nodes and leaves that `work` makes, each of which is a compression.
#[cfg(test)]
pub(crate) fn nodes_of(work: impl FnOnce()) -> usize {
    NODES.set(0);
    work();
    NODES.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [HashKind; 2] = [HashKind::Blake3, HashKind::Sha256];

    /// The node function by its definition (format specification, section 3), without lanes.
    fn by_definition(hash: HashKind, tag: Tag, pair: &Parent) -> Digest {
        match hash {
            HashKind::Blake3 => *blake3::keyed_hash(tag.bytes(), pair).as_bytes(),
            HashKind::Sha256 => {
                let mut state = tag.sha256_state();
                sha2::block_api::compress256(&mut state, &[*pair]);
                sha256::to_bytes(&state)
            }
        }
    }

    #[test]
    fn nodes_side_by_side_are_those_of_the_definition() {
        let pairs: Vec<Parent> = (0..50u8).map(|i| std::array::from_fn(|at| i ^ (3 * at as u8))).collect();
        for hash in BOTH {
            for tag in [Tag::Leaf, Tag::Node, Tag::Set] {
                let expected: Vec<Digest> = pairs.iter().map(|pair| by_definition(hash, tag, pair)).collect();
                for count in (0..=pairs.len()).step_by(if cfg!(miri) { 17 } else { 1 }) {
                    let mut found = vec![[0; 32]; count];
                    hash.nodes(tag, &pairs[..count], &mut found);
                    assert!(found == expected[..count], "{count} nodes by {}", hash.name());
                }
                let [left, right] = pairs[7].as_chunks().0 else { unreachable!("two halves") };
                assert_eq!(hash.node(tag, left, right), expected[7]);
            }
        }
    }

    #[test]
    fn leaves_side_by_side_are_those_that_shards_have_alone() {
        for hash in BOTH {
            for count in (0..40).step_by(if cfg!(miri) { 13 } else { 1 }) {
                let shards: Vec<(u32, Digest)> =
                    (0..count).map(|i| (0x0001_0203 * i + 5, [i as u8; 32])).collect();
                let expected = shards.iter().map(|(index, digest)| hash.leaf(digest, 0x0a0b_0c0d, *index));
                let mut found = vec![[9; 32]];
                hash.leaves(0x0a0b_0c0d, shards.iter().copied(), &mut found);
                assert!(
                    found[0] == [9; 32] && found[1..].iter().copied().eq(expected),
                    "{count}, {}",
                    hash.name()
                );
            }
        }
    }
}

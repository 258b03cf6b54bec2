//! Binary trees of RFC 6962 shape: pairs level by level, a lone last node moves up unchanged.
//!
//! This module knows hashes and positions only: not shards, sets or files. [`Tree`] keeps all levels, for roots and
//! paths; [`climb`] follows a path from a leaf.
//!
//! ```
//! use fec_core::digest::HashKind;
//! use fec_core::merkle::{Tree, ceil_log2, climb};
//!
//! let hash = HashKind::Blake3;
//! let leaves = [[1; 32], [2; 32], [3; 32]];
//! let mut tree = Tree::new();
//! tree.leaves_mut().extend(leaves);
//! let root = tree.build(hash);
//!
//! // The path of the first of three leaves: the second leaf, then the third, which moved up alone.
//! let mut path = vec![0; 32 * ceil_log2(3) as usize];
//! tree.write_path(0, &mut path);
//! assert_eq!(path, [[2; 32], [3; 32]].concat());
//! assert_eq!(climb(hash, leaves[0], 0, 3, &path), Some(root));
//! assert_ne!(climb(hash, [9; 32], 0, 3, &path), Some(root), "another leaf leads elsewhere");
//! ```

use crate::digest::{Digest, HashKind, Tag};

/// The smallest d with 2^d ≥ `count`: the most hashes a path in a tree of `count` leaves can have.
pub fn ceil_log2(count: u64) -> u32 {
    match count {
        0 => 0,
        c => u64::BITS - (c - 1).leading_zeros(),
    }
}

/// A tree that keeps every level, so that roots and paths can be read. It is reused from set to set: after the first
/// build of a shape it does not allocate.
#[derive(Default, Debug)]
pub struct Tree {
    levels: Vec<Vec<Digest>>,
    height: usize,
}

impl Tree {
    /// An empty tree.
    pub fn new() -> Tree {
        Tree::default()
    }

    /// Clears the tree and gives the list of leaves to fill before [`Tree::build`].
    pub fn leaves_mut(&mut self) -> &mut Vec<Digest> {
        if self.levels.is_empty() {
            self.levels.push(Vec::new());
        }
        self.height = 0;
        self.levels[0].clear();
        &mut self.levels[0]
    }

    /// The leaves.
    pub fn leaves(&self) -> &[Digest] {
        self.levels.first().map_or(&[], |l| l)
    }

    /// Computes all levels and returns the root: `leaves - 1` node hashes.
    ///
    /// # Panics
    /// If there is no leaf.
    pub fn build(&mut self, hash: HashKind) -> Digest {
        assert!(!self.leaves().is_empty(), "a tree has at least one leaf");
        let mut level = 0;
        while self.levels[level].len() > 1 {
            if self.levels.len() == level + 1 {
                self.levels.push(Vec::new());
            }
            let (below, above) = self.levels.split_at_mut(level + 1);
            let (below, above) = (&below[level], &mut above[0]);
            above.clear();
            for pair in below.chunks(2) {
                above.push(match pair {
                    [left, right] => hash.node(Tag::Node, left, right),
                    lone => lone[0],
                });
            }
            level += 1;
        }
        self.height = level;
        self.root()
    }

    /// The root that [`Tree::build`] computed.
    ///
    /// # Panics
    /// If the tree was not built.
    pub fn root(&self) -> Digest {
        self.levels[self.height][0]
    }

    /// Writes the path of leaf `index` into `out`: siblings from the bottom up, 32 bytes each, the
    /// rest of `out` zero. Returns how many bytes the path has.
    ///
    /// # Panics
    /// If the tree was not built, `index` is not a leaf, or `out` is shorter than the path.
    pub fn write_path(&self, index: usize, out: &mut [u8]) -> usize {
        let mut index = index;
        let mut at = 0;
        for level in &self.levels[..self.height] {
            if let Some(sibling) = level.get(index ^ 1) {
                out[at..at + 32].copy_from_slice(sibling);
                at += 32;
            }
            index /= 2;
        }
        out[at..].fill(0);
        at
    }
}

/// The root that `leaf` at position `index` of `count` leads to along `path`, a field of 32-byte hashes. `None` if the
/// field is too short, or if bytes beyond the path are not zero.
pub fn climb(hash: HashKind, leaf: Digest, index: u64, count: u64, path: &[u8]) -> Option<Digest> {
    let (mut siblings, rest) = path.as_chunks::<32>();
    let root = climb_along(hash, leaf, index, count, &mut siblings)?;
    (rest.is_empty() && are_zero(siblings)).then_some(root)
}

/// The same along the first of `siblings`, from which the hashes of the path are taken.
pub(crate) fn climb_along(
    hash: HashKind,
    leaf: Digest,
    index: u64,
    count: u64,
    siblings: &mut &[Digest],
) -> Option<Digest> {
    if index >= count {
        return None;
    }
    let (mut node, mut index, mut last) = (leaf, index, count - 1);
    while last > 0 {
        if index % 2 == 1 || index < last {
            let (sibling, above) = siblings.split_first()?;
            *siblings = above;
            node = if index % 2 == 1 {
                hash.node(Tag::Node, sibling, &node)
            } else {
                hash.node(Tag::Node, &node, sibling)
            };
        }
        index /= 2;
        last /= 2;
    }
    Some(node)
}

/// Tells whether all of these are zero bytes.
pub(crate) fn are_zero(hashes: &[Digest]) -> bool {
    hashes.iter().all(|hash| *hash == [0; 32])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6962's own recursive definition: split at the largest power of two below the count.
    fn rfc6962(hash: HashKind, leaves: &[Digest]) -> Digest {
        match leaves {
            [leaf] => *leaf,
            _ => {
                let split = leaves.len().next_power_of_two() / 2;
                let (left, right) = leaves.split_at(split);
                hash.node(Tag::Node, &rfc6962(hash, left), &rfc6962(hash, right))
            }
        }
    }

    #[test]
    fn trees_and_paths_agree_with_the_recursive_definition() {
        for hash in [HashKind::Blake3, HashKind::Sha256] {
            let mut tree = Tree::new();
            for count in 1..=70u64 {
                let leaves: Vec<Digest> = (0..count).map(|i| [i as u8 + 1; 32]).collect();
                let expected = rfc6962(hash, &leaves);
                tree.leaves_mut().extend_from_slice(&leaves);
                assert_eq!(tree.build(hash), expected);
                let mut path = vec![0u8; 32 * ceil_log2(count) as usize];
                for index in 0..count {
                    tree.write_path(index as usize, &mut path);
                    let leaf = leaves[index as usize];
                    assert_eq!(climb(hash, leaf, index, count, &path), Some(expected));
                    assert_ne!(climb(hash, [0; 32], index, count, &path), Some(expected));
                    if count > 1 {
                        let other = (index + 1) % count;
                        assert_ne!(climb(hash, leaf, other, count, &path), Some(expected));
                        let cut = &path[..path.len() - 32];
                        assert!(climb(hash, leaf, 0, count, cut).is_none());
                    }
                    for beyond in [count, count + 1, count + index, u64::MAX] {
                        assert_eq!(climb(hash, leaf, beyond, count, &path), None, "there is no such leaf");
                    }
                    let longer = [&path[..], &[1; 32]].concat();
                    assert_eq!(climb(hash, leaf, index, count, &longer), None, "unused hashes are zero");
                }
            }
        }
    }

    #[test]
    fn nothing_leads_to_a_tree_without_leaves() {
        assert_eq!(climb(HashKind::Blake3, [1; 32], 0, 0, &[]), None);
        assert_eq!(climb(HashKind::Blake3, [1; 32], 0, 1, &[]), Some([1; 32]));
    }

    #[test]
    fn ceil_log2_of_the_edges() {
        let expected = [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (256, 8), (257, 9)];
        for (count, depth) in expected {
            assert_eq!(ceil_log2(count), depth, "{count}");
        }
    }
}

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
            above.resize(below.len().div_ceil(2), [0; 32]);
            let (pairs, lone) = below.as_flattened().as_chunks();
            let (nodes, last) = above.split_at_mut(pairs.len());
            hash.nodes(Tag::Node, pairs, nodes);
            last.as_flattened_mut().copy_from_slice(lone);
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
    let root = Climber::default().climb(hash, leaf, index, count, &mut siblings)?;
    (rest.is_empty() && are_zero(siblings)).then_some(root)
}

/// Follows one path after the other, and remembers the last. A path that meets it leads to the same root from there on
/// if the rest of both is equal, so nodes that neighbours share are hashed once.
#[derive(Debug, Default)]
pub(crate) struct Climber {
    /// Hash, number of leaves, and index of the last path.
    last: Option<(HashKind, u64, u64)>,
    /// On each level, the last path's node and its sibling: zero bytes where it has none.
    steps: Vec<[Digest; 2]>,
    root: Digest,
    /// The steps of the path that is being followed.
    next: Vec<[Digest; 2]>,
}

impl Climber {
    /// The root that `leaf` at position `index` of `count` leads to along the first of `siblings`. The hashes of the
    /// path are taken from these; `None` if there are too few.
    pub(crate) fn climb(
        &mut self,
        hash: HashKind,
        leaf: Digest,
        index: u64,
        count: u64,
        siblings: &mut &[Digest],
    ) -> Option<Digest> {
        if index >= count {
            return None;
        }
        self.next.clear();
        let (mut place, mut node) = (Place { index, last: count - 1 }, leaf);
        while place.last > 0 {
            let sibling = place.take_sibling(siblings)?;
            self.next.push([node, sibling]);
            if self.meets(hash, count, index, place.above(), siblings) {
                self.next.extend_from_slice(&self.steps[self.next.len()..]);
                node = self.root;
                break;
            }
            node = match (place.has_sibling(), place.index % 2) {
                (false, _) => node,
                (_, 1) => hash.node(Tag::Node, &sibling, &node),
                _ => hash.node(Tag::Node, &node, &sibling),
            };
            place = place.above();
        }
        std::mem::swap(&mut self.steps, &mut self.next);
        (self.last, self.root) = (Some((hash, count, index)), node);
        Some(node)
    }

    /// Tells whether the path of leaf `index` has the last path's nodes from `place` on, and takes the rest of
    /// `siblings` then.
    fn meets(&self, hash: HashKind, count: u64, index: u64, place: Place, siblings: &mut &[Digest]) -> bool {
        let level = self.next.len() - 1;
        let [node, sibling] = self.next[level];
        let is_met = match self.last {
            Some((last_hash, last_count, last)) if (last_hash, last_count) == (hash, count) => {
                match (index ^ last) >> level {
                    0 => self.steps[level] == [node, sibling],
                    1 => self.steps[level] == [sibling, node],
                    _ => false,
                }
            }
            _ => false,
        };
        if !is_met {
            return false;
        }
        let (mut rest, mut place) = (*siblings, place);
        for [_, expected] in &self.steps[level + 1..] {
            if place.take_sibling(&mut rest) != Some(*expected) {
                return false;
            }
            place = place.above();
        }
        *siblings = rest;
        true
    }
}

/// A place on a level of a tree: a node's index, and that of the level's last node.
#[derive(Clone, Copy)]
struct Place {
    index: u64,
    last: u64,
}

impl Place {
    fn has_sibling(self) -> bool {
        self.index % 2 == 1 || self.index < self.last
    }

    /// The next of `siblings`, or zero bytes if the node here has none. `None` if there are too few.
    fn take_sibling(self, siblings: &mut &[Digest]) -> Option<Digest> {
        if !self.has_sibling() {
            return Some([0; 32]);
        }
        let (sibling, above) = siblings.split_first()?;
        *siblings = above;
        Some(*sibling)
    }

    fn above(self) -> Place {
        Place { index: self.index / 2, last: self.last / 2 }
    }
}

/// Tells whether all of these are zero bytes.
pub(crate) fn are_zero(hashes: &[Digest]) -> bool {
    hashes.iter().all(|hash| *hash == [0; 32])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::nodes_of;

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

    /// The way from a leaf to the root, by the definition of a path: without lanes, and without a memory.
    fn climb_alone(hash: HashKind, leaf: Digest, index: u64, count: u64, path: &[Digest]) -> Option<Digest> {
        let (mut node, mut index, mut last, mut path) = (leaf, index, count - 1, path.iter());
        while last > 0 {
            node = match index % 2 {
                1 => hash.node(Tag::Node, path.next()?, &node),
                _ if index < last => hash.node(Tag::Node, &node, path.next()?),
                _ => node,
            };
            (index, last) = (index / 2, last / 2);
        }
        Some(node)
    }

    /// Paths in any order, of several trees in turn, some of them damaged: each leads where it leads by itself.
    #[test]
    fn a_climber_finds_the_root_that_each_path_leads_to() {
        let mut random = crate::random::SplitMix64::new(5);
        let trees =
            [(HashKind::Blake3, 1), (HashKind::Blake3, 7), (HashKind::Sha256, 7), (HashKind::Sha256, 100)];
        let trees = trees.map(|(hash, count)| {
            let mut tree = Tree::new();
            tree.leaves_mut().extend((0..count).map(|i| [i as u8; 32]));
            tree.build(hash);
            (hash, tree)
        });
        let mut climber = Climber::default();
        let rounds = if cfg!(miri) { 200 } else { 20_000u64 };
        for round in 0..rounds {
            // Many paths of a tree follow each other, mostly of near leaves.
            let (hash, tree) = &trees[(round / 50) as usize % trees.len()];
            let count = tree.leaves().len() as u64;
            let index = if random.next().is_multiple_of(2) { round % count } else { random.next() % count };
            let mut leaf = tree.leaves()[index as usize];
            let mut path = vec![[0; 32]; ceil_log2(count) as usize];
            let used = tree.write_path(index as usize, path.as_flattened_mut()) / 32;
            let fault = (random.next() % 40) as usize;
            match fault.checked_sub(1) {
                None => leaf[3] ^= 1,
                Some(at) if at < path.len() => path[at][31] ^= 1,
                Some(30) => drop(path.pop()),
                _ => {}
            }
            let expected = climb_alone(*hash, leaf, index, count, &path);
            let mut siblings = &path[..];
            assert_eq!(climber.climb(*hash, leaf, index, count, &mut siblings), expected, "{round}");
            if expected.is_some() {
                assert_eq!(siblings, &path[used..], "{round}: the hashes of the path are taken");
            }
            if fault > 31 {
                assert_eq!(expected, Some(tree.root()));
            }
        }
    }

    /// The cost of a tree, and of all its paths in order: a compression for each node.
    #[test]
    fn nodes_are_hashed_once() {
        for hash in [HashKind::Blake3, HashKind::Sha256] {
            let counts: &[u64] = if cfg!(miri) { &[1, 2, 3, 33] } else { &[1, 2, 3, 33, 67, 100, 1000] };
            for &count in counts {
                let mut tree = Tree::new();
                tree.leaves_mut().extend((0..count).map(|i| [i as u8; 32]));
                let hashed = nodes_of(|| {
                    tree.build(hash);
                });
                assert_eq!(hashed, count as usize - 1);
                let mut climber = Climber::default();
                let mut path = vec![[0; 32]; ceil_log2(count) as usize];
                let hashed = nodes_of(|| {
                    for index in 0..count {
                        tree.write_path(index as usize, path.as_flattened_mut());
                        let leaf = tree.leaves()[index as usize];
                        let root = climber.climb(hash, leaf, index, count, &mut &path[..]);
                        assert_eq!(root, Some(tree.root()));
                    }
                });
                assert_eq!(hashed, count as usize - 1, "{count} leaves");
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

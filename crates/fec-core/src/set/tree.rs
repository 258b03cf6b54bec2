//! The tree over the shards of a set: one over the originals, one over the recovery shards, and the node above both.

use crate::block::Code;
use crate::digest::{Digest, HashKind, Tag};
use crate::merkle::{Climber, Tree, are_zero};
use crate::params::Shape;

/// The trees of one set, reused from set to set.
#[derive(Debug, Default)]
pub(super) struct SetTree {
    originals: Tree,
    recovery: Tree,
    root: Digest,
}

/// The roots on the way of a set's proofs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SetRoots {
    /// O: the tree of the originals.
    pub(super) originals: Digest,
    /// SR.
    pub(super) root: Digest,
}

impl SetTree {
    /// Builds the trees from the leaves of all shards in order; returns SR.
    pub(super) fn build(
        &mut self,
        hash: HashKind,
        code: Code,
        leaves: impl Iterator<Item = Digest>,
    ) -> Digest {
        let mut leaves = leaves;
        self.originals.leaves_mut().extend(leaves.by_ref().take(code.k()));
        self.recovery.leaves_mut().extend(leaves);
        self.build_both(hash)
    }

    /// As [`build`](Self::build), from the digests of all shards of set `set` in order.
    pub(super) fn build_from_digests(
        &mut self,
        hash: HashKind,
        code: Code,
        set: u32,
        digests: Vec<Digest>,
    ) -> Digest {
        let mut shards = (0..).zip(digests);
        hash.leaves(set, shards.by_ref().take(code.k()), self.originals.leaves_mut());
        hash.leaves(set, shards, self.recovery.leaves_mut());
        self.build_both(hash)
    }

    fn build_both(&mut self, hash: HashKind) -> Digest {
        let originals = self.originals.build(hash);
        let has_recovery = !self.recovery.leaves().is_empty();
        let recovery = if has_recovery { self.recovery.build(hash) } else { [0; 32] };
        self.root = hash.node(Tag::Set, &originals, &recovery);
        self.root
    }

    /// O, from the leaves of the originals in order.
    pub(super) fn build_originals(&mut self, hash: HashKind, leaves: impl Iterator<Item = Digest>) -> Digest {
        self.originals.leaves_mut().extend(leaves);
        self.originals.build(hash)
    }

    /// SR of the last [`build`](Self::build).
    pub(super) fn root(&self) -> Digest {
        self.root
    }

    /// Writes the set path of shard `index` into `out`, whose rest becomes zero.
    ///
    /// # Panics
    /// If nothing was built, there is no such shard, or `out` is shorter.
    pub(super) fn write_path(&self, index: usize, out: &mut [u8]) {
        let k = self.originals.leaves().len();
        let has_recovery = !self.recovery.leaves().is_empty();
        let (used, other) = match index.checked_sub(k) {
            None => (self.originals.write_path(index, out), has_recovery.then_some(&self.recovery)),
            Some(index) => (self.recovery.write_path(index, out), Some(&self.originals)),
        };
        // The tree of no recovery shards is zero bytes, which `out` holds already.
        if let Some(other) = other {
            out[used..used + 32].copy_from_slice(&other.root());
        }
    }
}

/// Follows set paths, and remembers the last of each tree.
#[derive(Debug, Default)]
pub(super) struct SetClimber {
    originals: Climber,
    recovery: Climber,
    /// The hash and the trees' roots of the last set, and SR.
    last: Option<(HashKind, [Digest; 2], Digest)>,
}

impl SetClimber {
    /// The roots that a leaf leads to along a set path; `None` if the field is too short, or its unused rest not zero.
    pub(super) fn climb(&mut self, shape: &Shape, index: u32, leaf: Digest, path: &[u8]) -> Option<SetRoots> {
        let (hash, k, m) = (shape.hash, shape.code.k() as u64, shape.code.m() as u64);
        let index = u64::from(index);
        let (mut siblings, _) = path.as_chunks::<32>();
        let own = match index.checked_sub(k) {
            None => self.originals.climb(hash, leaf, index, k, &mut siblings)?,
            Some(index) => self.recovery.climb(hash, leaf, index, m, &mut siblings)?,
        };
        let (other, rest) = siblings.split_first()?;
        let (originals, recovery) = if index < k { (own, *other) } else { (*other, own) };
        let is_right = are_zero(rest) && (m > 0 || recovery == [0; 32]);
        is_right.then(|| SetRoots { originals, root: self.root(hash, [originals, recovery]) })
    }

    /// SR over the roots of both trees.
    fn root(&mut self, hash: HashKind, trees: [Digest; 2]) -> Digest {
        match self.last {
            Some((last_hash, last, root)) if (last_hash, last) == (hash, trees) => root,
            _ => {
                let root = hash.node(Tag::Set, &trees[0], &trees[1]);
                self.last = Some((hash, trees, root));
                root
            }
        }
    }
}

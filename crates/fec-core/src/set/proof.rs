//! The way from a shard to its group's tree.

use super::tree::{SetClimber, SetRoots};
use crate::digest::Digest;
use crate::merkle::{Climber, are_zero};
use crate::params::GroupGeometry;

/// Follows proofs one after the other, and hashes nodes that neighbours share once.
#[derive(Debug, Default)]
pub(super) struct ProofClimber {
    set: SetClimber,
    group: Climber,
}

impl ProofClimber {
    /// The roots that a leaf leads to along a proof: those of its set, and X.
    fn climb(
        &mut self,
        geometry: &GroupGeometry,
        set: u32,
        index: u32,
        leaf: Digest,
        proof: &[u8],
    ) -> Option<(SetRoots, Digest)> {
        let shape = geometry.shape();
        let (set_path, group_path) = proof.split_at_checked(shape.set_path_len())?;
        let roots = self.set.climb(shape, index, leaf, set_path)?;
        let (mut siblings, rest) = group_path.as_chunks::<32>();
        let tree = self.group.climb(shape.hash, roots.root, set.into(), shape.sets.into(), &mut siblings)?;
        (rest.is_empty() && are_zero(siblings)).then_some((roots, tree))
    }

    /// The roots of the set that a leaf belongs to, if the proof leads from it to X, the group's tree.
    pub(super) fn climb_to_group(
        &mut self,
        geometry: &GroupGeometry,
        group_tree: &Digest,
        (set, index): (u32, u32),
        leaf: Digest,
        proof: &[u8],
    ) -> Option<SetRoots> {
        let (roots, tree) = self.climb(geometry, set, index, leaf, proof)?;
        (tree == *group_tree).then_some(roots)
    }
}

/// X, the group's tree that `body` leads to along `proof` as shard `index` of set `set`.
///
/// Cost: one digest of the body and a few node hashes.
pub fn tree_of_shard(
    geometry: &GroupGeometry,
    set: u32,
    index: u32,
    body: &[u8],
    proof: &[u8],
) -> Option<Digest> {
    let hash = geometry.shape().hash;
    let leaf = || hash.leaf(&hash.digest(body), set, index);
    let is_long = body.len() == geometry.shape().shard_len;
    let climb = || ProofClimber::default().climb(geometry, set, index, leaf(), proof);
    is_long.then(climb).flatten().map(|(_, tree)| tree)
}

/// Tells whether `body` is shard `index` of set `set` of the group with this geometry and tree of sets.
///
/// Cost: as [`tree_of_shard`].
pub fn shard_is_proved(
    geometry: &GroupGeometry,
    group_tree: &Digest,
    set: u32,
    index: u32,
    body: &[u8],
    proof: &[u8],
) -> bool {
    tree_of_shard(geometry, set, index, body, proof) == Some(*group_tree)
}

/// Tells whether `proof` leads from a leaf to the group's tree, for bytes whose leaf was computed already.
pub fn leaf_is_proved(
    geometry: &GroupGeometry,
    group_tree: &Digest,
    set: u32,
    index: u32,
    leaf: &Digest,
    proof: &[u8],
) -> bool {
    ProofClimber::default().climb_to_group(geometry, group_tree, (set, index), *leaf, proof).is_some()
}

//! The way from a shard to its group's tree.

use super::tree::{SetRoots, climb_set};
use crate::digest::Digest;
use crate::merkle::climb;
use crate::params::GroupGeometry;

/// The roots that a leaf leads to along a proof: those of its set, and X.
fn climb_all(
    geometry: &GroupGeometry,
    set: u32,
    index: u32,
    leaf: Digest,
    proof: &[u8],
) -> Option<(SetRoots, Digest)> {
    let shape = geometry.shape();
    let (set_path, group_path) = proof.split_at_checked(shape.set_path_len())?;
    let roots = climb_set(shape, index, leaf, set_path)?;
    let tree = climb(shape.hash, roots.root, set.into(), shape.sets.into(), group_path)?;
    Some((roots, tree))
}

/// The roots of the set that a leaf belongs to, if the proof leads from it to X, the group's tree.
pub(super) fn climb_to_group(
    geometry: &GroupGeometry,
    group_tree: &Digest,
    set: u32,
    index: u32,
    leaf: Digest,
    proof: &[u8],
) -> Option<SetRoots> {
    climb_all(geometry, set, index, leaf, proof)
        .and_then(|(roots, tree)| (tree == *group_tree).then_some(roots))
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
    is_long.then(|| climb_all(geometry, set, index, leaf(), proof)).flatten().map(|(_, tree)| tree)
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
    climb_to_group(geometry, group_tree, set, index, *leaf, proof).is_some()
}

//! From a shard to its group's root.

use crate::digest::Digest;
use crate::merkle::climb;
use crate::params::GroupGeometry;

/// The root of the set that a leaf belongs to, if the proof leads from it to the group's root.
pub(super) fn climb_to_group(
    geometry: &GroupGeometry,
    group_root: &Digest,
    set: u32,
    index: u32,
    leaf: Digest,
    proof: &[u8],
) -> Option<Digest> {
    let shape = geometry.shape();
    let (set_path, group_path) = proof.split_at_checked(shape.set_path_len())?;
    let set_root = climb(shape.hash, leaf, index.into(), shape.code.n() as u64, set_path)?;
    let tree = climb(shape.hash, set_root, set.into(), shape.sets.into(), group_path)?;
    (geometry.root(&tree) == *group_root).then_some(set_root)
}

/// Whether `body` is shard `index` of set `set` of the group with this geometry and root.
///
/// Cost: one digest of the body and a few node hashes.
pub fn shard_is_proved(
    geometry: &GroupGeometry,
    group_root: &Digest,
    set: u32,
    index: u32,
    body: &[u8],
    proof: &[u8],
) -> bool {
    let hash = geometry.shape().hash;
    let leaf = hash.leaf(&hash.digest(body), set, index);
    body.len() == geometry.shape().shard_len && leaf_is_proved(geometry, group_root, set, index, &leaf, proof)
}

/// Whether `proof` leads from a leaf to the group's root: for bytes whose leaf was computed already.
pub fn leaf_is_proved(
    geometry: &GroupGeometry,
    group_root: &Digest,
    set: u32,
    index: u32,
    leaf: &Digest,
    proof: &[u8],
) -> bool {
    climb_to_group(geometry, group_root, set, index, *leaf, proof).is_some()
}

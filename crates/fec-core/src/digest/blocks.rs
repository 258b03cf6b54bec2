//! The tree of one BLAKE3 hash, block by block.
//!
//! A block has 1024 times a power of two bytes and begins at a multiple of its length. It is a subtree of the tree of
//! any message that it is part of, but not the whole of (BLAKE3 specification, section 2.1). The chaining values of a
//! file's blocks therefore tell which blocks changed, and also give the hash of the file.
//!
//! ```
//! use fec_core::digest::{HashKind, blocks};
//!
//! let file: Vec<u8> = (0..10_000u32).map(|i| (i * i) as u8).collect();
//! let (whole, tail) = file.split_at(2 * 4096);
//! let mut values = vec![[0; 32]; 2];
//! blocks::values(whole, 4096, 0, &mut values);
//! values.push(blocks::tail_value(tail, 2 * 4096));
//! assert_eq!(blocks::root(&values), HashKind::Blake3.digest(&file));
//! ```

use super::engine::{CHUNK, HashEngine};
use super::hash::Digest;
#[cfg(feature = "blake3-lanes")]
use super::lanes::ENGINE;
#[cfg(not(feature = "blake3-lanes"))]
use super::subtrees::ENGINE;
use blake3::Hasher;
use blake3::hazmat::HasherExt;

/// The least bytes of a block: a chunk of the tree.
pub const LEAST_BLOCK: usize = CHUNK;

/// Bytes of a leaf of an [outline](crate::format::outline).
pub const LEAF: usize = 16 << 10;

/// The chaining values of the blocks of `bytes`, which begin at byte `offset` of their message and are only a part of
/// it.
///
/// # Panics
/// If `block` is not 1024 times a power of two, if `bytes` are not one block for each of `out`, or if `offset` is no
/// multiple of the block.
pub fn values(bytes: &[u8], block: usize, offset: u64, out: &mut [Digest]) {
    values_by(&ENGINE, bytes, block, offset, out);
}

fn values_by(engine: &HashEngine, bytes: &[u8], block: usize, offset: u64, out: &mut [Digest]) {
    assert!(block >= CHUNK && block.is_power_of_two(), "blocks of {block} bytes");
    assert_eq!(bytes.len(), out.len() * block, "whole blocks");
    assert!(offset.is_multiple_of(block as u64), "blocks begin at multiples of their length");
    if !out.is_empty() {
        (engine.blocks)(bytes, block, offset / CHUNK as u64, out);
    }
}

/// The chaining value of the bytes behind a message's last whole block: at most a block, from byte `offset` on, and
/// only a part of the message.
///
/// # Panics
/// If `bytes` are empty, more than the subtree at `offset` can have, or `offset` is no multiple of 1024.
pub fn tail_value(bytes: &[u8], offset: u64) -> Digest {
    assert!(!bytes.is_empty() && offset.is_multiple_of(CHUNK as u64), "bytes that begin with a chunk");
    Hasher::new().set_input_offset(offset).update(bytes).finalize_non_root()
}

/// The chaining value over successive subtrees of a message. All are as large as the first, except the last, which may
/// be smaller. Their number is a power of two unless the message ends with them; together they are only a part of it.
///
/// # Panics
/// If there are none.
pub fn subtree(values: &[Digest]) -> Digest {
    assert!(!values.is_empty(), "no subtrees");
    ENGINE.merge(values.to_vec(), values.len(), false)[0]
}

/// The hash of a message whose subtrees, as in [`subtree`], are all given.
///
/// # Panics
/// If there are fewer than two.
pub fn root(values: &[Digest]) -> Digest {
    assert!(values.len() > 1, "a root has two subtrees");
    ENGINE.merge(values.to_vec(), values.len(), true)[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::subtrees;

    fn engines() -> impl Iterator<Item = &'static HashEngine> {
        [
            #[cfg(feature = "blake3-lanes")]
            &crate::digest::lanes::ENGINE,
            &subtrees::ENGINE,
        ]
        .into_iter()
    }

    #[test]
    fn blocks_lead_to_the_hash_of_the_message() {
        let bytes: Vec<u8> = (0..300_000usize).map(|i| (i * 31 + i / 251) as u8).collect();
        for engine in engines() {
            for block in [1024, 4096, 65_536] {
                for len in [1025, 2048, 4097, 8192, 8193, 12_288, 65_537, 131_072, 200_000, 300_000] {
                    if len <= block {
                        continue;
                    }
                    let (whole, tail) = bytes[..len].split_at(len / block * block);
                    let mut found = vec![[0; 32]; len / block];
                    // Two calls, the second of which begins inside.
                    let (first, second) = found.split_at_mut(len / block / 2);
                    let middle = first.len() * block;
                    values_by(engine, &whole[..middle], block, 0, first);
                    values_by(engine, &whole[middle..], block, middle as u64, second);
                    if !tail.is_empty() {
                        found.push(tail_value(tail, whole.len() as u64));
                    }
                    assert_eq!(root(&found), *blake3::hash(&bytes[..len]).as_bytes(), "{len} by {block}");
                    // The same by larger subtrees.
                    let units: Vec<Digest> = found.chunks(4).map(subtree).collect();
                    if units.len() > 1 {
                        assert_eq!(root(&units), *blake3::hash(&bytes[..len]).as_bytes(), "{len} by {block}");
                    }
                }
            }
        }
    }
}

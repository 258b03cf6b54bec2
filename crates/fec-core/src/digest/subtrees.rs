//! BLAKE3 of one row after the other, by the documented interface for parts of its tree.
//!
//! This file takes the place of `lanes.rs` where that is not built, and is tested beside it.

use super::engine::{CHUNK, HashEngine, Parent};
use super::hash::Digest;
use blake3::Hasher;
use blake3::hazmat::{HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};

pub(super) const ENGINE: HashEngine = HashEngine { subtrees, blocks, parents, keyed };

fn subtrees(pieces: &[&[u8]], first: u64, is_whole: bool, out: &mut [Digest]) {
    for (piece, out) in pieces.iter().zip(out) {
        *out = match is_whole {
            true => *blake3::hash(piece).as_bytes(),
            false => Hasher::new().set_input_offset(first * CHUNK as u64).update(piece).finalize_non_root(),
        };
    }
}

fn blocks(bytes: &[u8], block: usize, first: u64, out: &mut [Digest]) {
    let mut offset = first * CHUNK as u64;
    for (bytes, out) in bytes.chunks_exact(block).zip(out) {
        *out = Hasher::new().set_input_offset(offset).update(bytes).finalize_non_root();
        offset += block as u64;
    }
}

fn parents(parents: &[&Parent], are_roots: bool, out: &mut [Digest]) {
    for (parent, out) in parents.iter().zip(out) {
        let [left, right] = parent.as_chunks().0 else { unreachable!("a parent is two values of 32 bytes") };
        *out = match are_roots {
            true => *merge_subtrees_root(left, right, Mode::Hash).as_bytes(),
            false => merge_subtrees_non_root(left, right, Mode::Hash),
        };
    }
}

fn keyed(key: &[u8; 32], messages: &[Parent], out: &mut [Digest]) {
    for (message, out) in messages.iter().zip(out) {
        *out = *blake3::keyed_hash(key, message).as_bytes();
    }
}

//! Proves a new file whole by what was written to it.

use crate::catalog::bits::Bits;
use crate::catalog::hashing::FileTree;
use fec_core::digest::{Digest, HashKind};
use fec_core::format::sidecar::FileEntry;

/// Hashes of the written parts of a new file, which prove it whole without reading it again.
pub(crate) struct Written {
    /// The chaining values of whole blocks.
    pub(crate) values: Vec<Digest>,
    /// Blocks whose value is known.
    pub(crate) known: Bits,
    /// The bytes behind the whole blocks: their chaining value, or the file's digest if it has no whole block.
    pub(crate) tail: Option<Digest>,
}

impl Written {
    pub(crate) fn new(blocks: u64) -> Written {
        Written { values: vec![[0; 32]; blocks as usize], known: Bits::new(blocks), tail: None }
    }

    /// The BLAKE3 of the file, if all of it was written.
    pub(crate) fn digest(self, of: &FileEntry, block: u64) -> Option<Digest> {
        let is_all = self.known.count() == self.values.len() as u64;
        let has_tail = self.tail.is_some() == (of.tail_len(block) > 0);
        if !is_all || !has_tail {
            return None;
        }
        Some(match (self.values.is_empty(), self.tail) {
            (true, tail) => tail.unwrap_or_else(|| HashKind::Blake3.digest(b"")),
            (false, tail) => {
                let mut tree = FileTree::default();
                tree.push(&self.values);
                tail.iter().for_each(|tail| tree.push(&[*tail]));
                tree.finish()
            }
        })
    }
}

//! Proves a new file whole by what was written to it.

use crate::catalog::bits::Bits;
use crate::catalog::hashing::FileTree;
use fec_core::digest::{Digest, HashKind, blocks};
use fec_core::format::sidecar::FileEntry;

/// Hashes of the written parts of a new file, which prove it whole without reading it again.
pub(crate) struct Written<'a> {
    of: &'a FileEntry,
    /// For each run of the file, the number of blocks with positions before it.
    before: Vec<u64>,
    /// The chaining values of the blocks with positions.
    values: Vec<Digest>,
    /// Blocks whose value is known.
    known: Bits,
    /// The bytes behind the whole blocks: their chaining value, or the file's digest if it has no whole block.
    pub(crate) tail: Option<Digest>,
}

impl<'a> Written<'a> {
    pub(crate) fn new(of: &'a FileEntry) -> Written<'a> {
        let mut blocks = 0;
        let before = of.runs.iter().map(|run| {
            blocks += run.count;
            blocks - run.count
        });
        let before = before.collect();
        let (values, known) = (vec![[0; 32]; blocks as usize], Bits::new(blocks));
        Written { of, before, values, known, tail: None }
    }

    /// Adds successive whole blocks of a run, which begin at `offset` in the file.
    pub(crate) fn add(&mut self, bytes: &[u8], offset: u64, block: u64) {
        let nth = offset / block;
        let Some(run) = self.of.runs.partition_point(|run| run.block <= nth).checked_sub(1) else { return };
        let first = self.before[run] + nth - self.of.runs[run].block;
        let numbers = first..first + bytes.len() as u64 / block;
        let values = &mut self.values[numbers.start as usize..numbers.end as usize];
        blocks::values(bytes, block as usize, offset, values);
        numbers.for_each(|nth| self.known.set(nth));
    }

    /// The BLAKE3 of the file, if all of it was written. `check` may end that.
    pub(crate) fn digest<E>(
        self,
        block: u64,
        check: impl Fn() -> Result<(), E>,
    ) -> Result<Option<Digest>, E> {
        let is_all = self.known.count() == self.values.len() as u64;
        let has_tail = self.tail.is_some() == (self.of.tail_len(block) > 0);
        if !is_all || !has_tail {
            return Ok(None);
        }
        if FileEntry::whole_blocks(self.of.size, block) == 0 {
            return Ok(Some(self.tail.unwrap_or_else(|| HashKind::Blake3.digest(b""))));
        }
        let mut tree = FileTree::default();
        let mut values = &self.values[..];
        for (numbers, start) in self.of.parts(block) {
            if start.is_none() {
                tree.push_zeros(numbers, block, |_| check())?;
                continue;
            }
            let (now, later) = values.split_at((numbers.end - numbers.start) as usize);
            tree.push(now);
            values = later;
        }
        self.tail.iter().for_each(|tail| tree.push(&[*tail]));
        Ok(Some(tree.finish()))
    }
}

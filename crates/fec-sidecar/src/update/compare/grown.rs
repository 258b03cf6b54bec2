//! Files that grew since they were recorded: reading goes on at the old end.

use crate::catalog::hashing::FileTree;
use crate::catalog::metadata::Sidecar;
use crate::catalog::plan::add_blocks;
use fec_base::io::ReadAt;
use fec_core::digest::blocks;
use fec_core::format::sidecar::EntryKind;
use fec_core::format::sidecar::stack::Stack;
use std::fs::File;
use std::io;
use std::ops::Range;

/// The state in which the reading of a file begins.
#[derive(Default)]
pub(super) struct Start {
    /// The first block to read.
    pub(super) first: u64,
    /// The hash of all before it.
    pub(super) tree: FileTree,
    /// Blocks before it that have positions,
    pub(super) kept: Vec<Range<u64>>,
    /// and those that are zeros.
    pub(super) zeros: Vec<Range<u64>>,
}

/// The state behind all whole blocks but the last of an old file, if a file that is longer has its old end there:
/// the last whole block and the tail. `None` if it has not, or no stack was recorded.
///
/// The stack is not trusted: with the old end it has to lead to the recorded digest.
pub(super) fn grown(sidecar: &Sidecar, file: &File, of: u32) -> io::Result<Option<Start>> {
    let block = u64::from(sidecar.catalog.block);
    let EntryKind::File(old) = &sidecar.catalog.entries[of as usize].kind else { return Ok(None) };
    // The SHA-256 of a file takes all of its bytes, and has to be that of the bytes that were compared.
    let stack = sidecar.stack_of(of).filter(|_| old.sha256.is_none());
    let Some(stack) = stack else { return Ok(None) };
    let first = Stack::blocks(old, block);
    let mut end = vec![0; (old.size - first * block) as usize];
    ReadAt::read_exact_at(file, first * block, &mut end)?;
    let tree = FileTree::resumed(first, stack);
    let (last, tail) = end.split_at(block as usize);
    let mut value = [[0; 32]];
    blocks::values(last, block as usize, first * block, &mut value);
    let mut whole = tree.clone();
    whole.push(&value);
    if !tail.is_empty() {
        whole.push(&[blocks::tail_value(tail, (first + 1) * block)]);
    }
    if whole.finish() != old.blake3 {
        return Ok(None);
    }
    let mut start = Start { first, tree, ..Start::default() };
    for (numbers, position) in old.parts(block) {
        let numbers = numbers.start..numbers.end.min(first);
        add_blocks(if position.is_some() { &mut start.kept } else { &mut start.zeros }, numbers);
    }
    Ok(Some(start))
}

//! Reads, hashes and codes the sets of one group, in one pass.

mod rows;
mod small;
mod wide;

use crate::catalog::hashing::FileTree;
use crate::catalog::plan;
pub(crate) use crate::protect::coding::rows::{Coded, Coding, Put, Source, admit};
use fec_base::context::Gauge;
use fec_base::error::Result;
use fec_core::digest::{Digest, HashKind};
use fec_core::executor::into_value;
use fec_core::format::sidecar::catalog::Catalog;
use fec_core::format::sidecar::group::GroupCode;
use fec_core::format::sidecar::stack::Stack;
use fec_core::format::sidecar::{EntryKind, FileEntry};
use std::collections::BTreeMap;
use std::ops::Range;

impl Coding<'_> {
    /// A file that fails counts as zeros, and is noted: then the result is not used.
    ///
    /// # Errors
    /// Those that are not of the files.
    pub(crate) fn run(self) -> Result<Coded> {
        match self.group.code {
            GroupCode::Small(code) => small::run(&self, code)?,
            GroupCode::Wide(code) => wide::run(&self, code)?,
        }
        Ok(self.into_coded())
    }

    /// The findings of a coding that was run, or added to one that was.
    pub(crate) fn into_coded(self) -> Coded {
        into_value(self.results)
    }
}

/// Gives files their BLAKE3, which the values of blocks and tails lead to. `is_new` tells which files, beside `twins`,
/// have none. `value_of` gives the value of a position with a whole block. The stacks of these files are filled.
pub(crate) fn give_digests(
    catalog: &mut Catalog,
    twins: &BTreeMap<usize, usize>,
    value_of: &dyn Fn(u64) -> Digest,
    tails: &[Option<Digest>],
    (is_new, meter): (&dyn Fn(usize) -> bool, &Gauge<'_>),
    stacks: &mut [Stack],
) -> Result<()> {
    let block = catalog.block.into();
    let mut stacks = stacks.iter_mut().peekable();
    for (nth, (entry, tail)) in catalog.entries.iter_mut().zip(tails).enumerate() {
        if let EntryKind::File(file) = &mut entry.kind
            && is_new(nth)
            && !twins.contains_key(&nth)
        {
            while stacks.next_if(|stack| (stack.entry as usize) < nth).is_some() {}
            let stack = stacks.next_if(|stack| stack.entry as usize == nth);
            file.blake3 = digest_of(file, value_of, *tail, (block, meter), stack)?;
        }
    }
    plan::share_digests(&mut catalog.entries, twins);
    Ok(())
}

/// The BLAKE3 of a file, from its tail and the values of its whole blocks. The stack is filled.
fn digest_of(
    file: &FileEntry,
    value_of: &dyn Fn(u64) -> Digest,
    tail: Option<Digest>,
    (block, meter): (u64, &Gauge<'_>),
    mut stack: Option<&mut Stack>,
) -> Result<Digest> {
    /// Values that go into the tree at a time: many subtrees, so that these are hashed together.
    const TOGETHER: usize = 4096;
    let whole = FileEntry::whole_blocks(file.size, block);
    if whole == 0 {
        return Ok(tail.unwrap_or_else(|| HashKind::Blake3.digest(b"")));
    }
    let mut tree = FileTree::default();
    let push = |tree: &mut FileTree, (numbers, start): (Range<u64>, Option<u64>)| match start {
        Some(start) => {
            let end = start + (numbers.end - numbers.start);
            for first in (start..end).step_by(TOGETHER) {
                let values: Vec<Digest> = (first..end).take(TOGETHER).map(value_of).collect();
                tree.push(&values);
            }
            Ok(())
        }
        None => tree.push_zeros(numbers, block, |len| {
            meter.add(len);
            meter.check()
        }),
    };
    for (numbers, start) in file.parts(block) {
        let is_last = numbers.end == whole;
        let Some(stack) = stack.as_mut().filter(|_| is_last) else {
            push(&mut tree, (numbers, start))?;
            continue;
        };
        let last = start.map(|start| start + (whole - 1 - numbers.start));
        push(&mut tree, (numbers.start..whole - 1, start))?;
        stack.values = tree.clone().stack();
        push(&mut tree, (whole - 1..whole, last))?;
    }
    tail.iter().for_each(|tail| tree.push(&[*tail]));
    Ok(tree.finish())
}

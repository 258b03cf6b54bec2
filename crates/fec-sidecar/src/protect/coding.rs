//! Reads, hashes and codes the sets of one group, in one pass.

mod rows;
mod small;
mod wide;

use crate::catalog::hashing::FileTree;
use crate::catalog::plan;
pub(crate) use crate::protect::coding::rows::{Coded, Coding, Put, admit};
use fec_base::context::Gauge;
use fec_base::error::Result;
use fec_core::digest::{Digest, HashKind};
use fec_core::executor::into_value;
use fec_core::format::sidecar::catalog::Catalog;
use fec_core::format::sidecar::group::GroupCode;
use fec_core::format::sidecar::{EntryKind, FileEntry};
use std::collections::BTreeMap;

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
        Ok(into_value(self.results))
    }
}

/// Gives files their BLAKE3, which the values of blocks and tails lead to. `is_new` tells which files, beside `twins`,
/// have none. Values begin at position `first`.
pub(crate) fn give_digests(
    catalog: &mut Catalog,
    twins: &BTreeMap<usize, usize>,
    (values, first): (&[Digest], u64),
    tails: &[Option<Digest>],
    (is_new, meter): (&dyn Fn(usize) -> bool, &Gauge<'_>),
) -> Result<()> {
    let block = catalog.block.into();
    for (nth, (entry, tail)) in catalog.entries.iter_mut().zip(tails).enumerate() {
        if let EntryKind::File(file) = &mut entry.kind
            && is_new(nth)
            && !twins.contains_key(&nth)
        {
            file.blake3 = digest_of(file, (values, first), *tail, block, meter)?;
        }
    }
    plan::share_digests(&mut catalog.entries, twins);
    Ok(())
}

/// The BLAKE3 of a file, from its tail and the values of its whole blocks. Values begin at position `first`.
fn digest_of(
    file: &FileEntry,
    (values, first): (&[Digest], u64),
    tail: Option<Digest>,
    block: u64,
    meter: &Gauge<'_>,
) -> Result<Digest> {
    if FileEntry::whole_blocks(file.size, block) == 0 {
        return Ok(tail.unwrap_or_else(|| HashKind::Blake3.digest(b"")));
    }
    let mut tree = FileTree::default();
    for (numbers, start) in file.parts(block) {
        let count = (numbers.end - numbers.start) as usize;
        match start {
            Some(start) => tree.push(&values[(start - first) as usize..][..count]),
            None => tree.push_zeros(numbers, block, |len| {
                meter.add(len);
                meter.check()
            })?,
        }
    }
    tail.iter().for_each(|tail| tree.push(&[*tail]));
    Ok(tree.finish())
}

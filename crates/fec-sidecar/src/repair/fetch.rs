//! Fetches lost blocks from mirrors: those that the recovery data cannot mend, and no others.
//!
//! ```text
//! wanted ─▶ jobs: a range of a file, or the tails in a block ─▶ queue: mirrors take jobs ─▶ proved ─▶ stash
//! ```
//!
//! Each block is compared with its digest before it counts, so that a mirror can only withhold. Fetched blocks count
//! like bytes that other protected files have.

mod asked;
mod jobs;
mod lacking;
mod queue;
mod tails;
mod take;

use crate::catalog::bits::Bits;
use crate::catalog::moved::MovedSpan;
use crate::catalog::proved::proved;
use crate::catalog::stash::{Stash, path_of};
use crate::mirrors::{Fetched, Mirrors};
use crate::repair::task::{Damage, Task};
use fec_base::error::Result;
use fec_base::io::output::check_room;
use lacking::{add_lacking, wanted};
use queue::Queue;
use std::path::Path;

/// The stash of a repair.
pub(crate) struct Kept {
    stash: Stash,
    /// True if it has blocks that only another repair may want: of other files than those that were selected.
    is_of_others: bool,
}

impl Kept {
    /// Removes the stash after a repair that is done, unless another one may want it.
    pub(crate) fn end(self) {
        if !self.is_of_others {
            self.stash.end();
        }
    }
}

/// Fetches what is wanted, and counts it as found. Returns the stash, which stays until the repair is done. A dry run
/// asks nobody, and counts all as found. Without mirrors only what an interrupted repair has fetched is taken.
///
/// # Errors
/// Those of the stash; [`Cancelled`](fec_base::ErrorKind::Cancelled). A mirror that fails is no error.
pub(crate) fn fetch(task: &Task<'_>, damage: &mut Damage, mirrors: &Mirrors<'_>) -> Result<Option<Kept>> {
    let Task { sidecar, how, .. } = *task;
    let block = u64::from(sidecar.catalog.block);
    let wanted = wanted(task, damage);
    let path = path_of(sidecar.path(), mirrors.spool.as_deref(), &sidecar.root());
    let mut fetched = Fetched { wanted: wanted.count() * block, ..Fetched::default() };
    mirrors.tell(fetched.clone());
    if how.dry_run {
        if !mirrors.list.is_empty() {
            take(task, damage, (&wanted, Vec::new(), None));
        }
        return Ok(None);
    }
    let there = Stash::len_at(&path, &sidecar.root());
    let asks = fetched.wanted > 0 && !mirrors.list.is_empty();
    if there.is_none() && !asks {
        return Ok(None);
    }
    if asks {
        check_room(&path, fetched.wanted.saturating_sub(there.unwrap_or(0)))?;
    }
    let (mut stash, mut kept) = match open(task, damage, &path, &wanted) {
        // A repair that fetches nothing does without a stash that cannot be opened.
        Err(_) if !asks => return Ok(None),
        opened => opened?,
    };
    fetched.kept = kept.got.count() * block;
    let queue = Queue::new(task, damage, (&wanted, mirrors), (kept.got, &mut stash));
    let done = queue.run();
    let (got, added, of_mirrors) = queue.into_parts();
    fetched.mirrors = of_mirrors;
    fetched.lacking = (wanted.count() - got.count()) * block;
    mirrors.tell(fetched);
    for (first, count, offset) in added {
        let placed = (0..count).map(|nth| (first + nth, offset + nth * block));
        placed.for_each(|of| add_lacking(task, damage, of, &mut kept.spans));
    }
    if stash.is_empty() {
        stash.end();
        return done.map(|()| None);
    }
    done?;
    take(task, damage, (&got, kept.spans, Some(&stash)));
    Ok(Some(Kept { stash, is_of_others: kept.is_of_others && how.only.is_some() }))
}

/// Blocks that an interrupted repair has fetched.
struct Found {
    /// Positions that are wanted.
    got: Bits,
    /// The places of their bytes.
    spans: Vec<MovedSpan>,
    /// True if others are there too.
    is_of_others: bool,
}

/// Opens the stash, and finds what is wanted in it.
fn open(task: &Task<'_>, damage: &Damage, path: &Path, wanted: &Bits) -> Result<(Stash, Found)> {
    let Task { sidecar, .. } = *task;
    let (block, all) = (u64::from(sidecar.catalog.block), sidecar.catalog.positions());
    let proves = |first: u64, bytes: &[u8]| proved(sidecar, &damage.positions, first, bytes);
    let (stash, kept) = Stash::open(path, &sidecar.root(), (block, all), &proves)?;
    let mut found = Found { got: Bits::new(all), spans: Vec::new(), is_of_others: false };
    for span in kept {
        for at in (span.at..span.end()).step_by(block as usize) {
            let position = at / block;
            found.is_of_others |= !wanted.get(position);
            if wanted.get(position) && !found.got.get(position) {
                found.got.set(position);
                let offset = span.offset + (at - span.at);
                add_lacking(task, damage, (position, offset), &mut found.spans);
            }
        }
    }
    Ok((stash, found))
}

/// Counts positions as found.
fn take(task: &Task<'_>, damage: &mut Damage, (got, spans, stash): (&Bits, Vec<MovedSpan>, Option<&Stash>)) {
    let found = &mut damage.found;
    found.moved.stash = stash.map(|stash| stash.file.clone());
    found.moved.extend(spans);
    found.known.absorb(got);
    found.erased.subtract(got);
    found.margin = found.margin_of(&task.sidecar.catalog, &damage.positions);
}

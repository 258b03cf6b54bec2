//! Fetches lost blocks from mirrors: those that the recovery data cannot mend, and no others.
//!
//! ```text
//! wanted ─▶ jobs: a range of a file, or the tails in a block ─▶ queue: mirrors take jobs ─▶ proved ─▶ stash
//! ```
//!
//! Each block is compared with its digest before it counts, so that a mirror can only withhold. Fetched blocks count
//! like bytes that other protected files have.

mod jobs;
mod lacking;
mod queue;
mod tails;
mod take;

use crate::catalog::bits::Bits;
use crate::catalog::moved::MovedSpan;
use crate::catalog::proved::proved;
use crate::catalog::stash::{Stash, path_of};
use crate::repair::mirrors::{Fetched, Mirrors};
use crate::repair::task::{Damage, Task};
use fec_base::error::Result;
use fec_base::io::output::check_room;
use lacking::{add_lacking, wanted};
use queue::Queue;

/// Fetches what is wanted, and counts it as found. Returns the stash, which stays until the repair is done. A dry run
/// asks nobody, and counts all as found.
///
/// # Errors
/// Those of the stash; [`Cancelled`](fec_base::ErrorKind::Cancelled). A mirror that fails is no error.
pub(crate) fn fetch(task: &Task<'_>, damage: &mut Damage, mirrors: &Mirrors<'_>) -> Result<Option<Stash>> {
    let Task { sidecar, how, .. } = *task;
    let block = u64::from(sidecar.catalog.block);
    let wanted = wanted(task, damage);
    let path = path_of(sidecar.path(), mirrors.spool.as_deref(), &sidecar.root());
    let mut fetched = Fetched { wanted: wanted.count() * block, ..Fetched::default() };
    mirrors.tell(fetched.clone());
    if how.dry_run {
        take(task, damage, (&wanted, Vec::new(), None));
        return Ok(None);
    }
    let is_there = path.symlink_metadata().is_ok();
    if fetched.wanted == 0 && !is_there {
        return Ok(None);
    }
    let positions = &damage.positions;
    let proves = |first: u64, bytes: &[u8]| proved(sidecar, positions, first, bytes);
    let (mut stash, kept) =
        Stash::open(&path, &sidecar.root(), (block, sidecar.catalog.positions()), &proves)?;
    let mut got = Bits::new(sidecar.catalog.positions());
    let mut spans = Vec::new();
    for span in kept {
        for at in (span.at..span.end()).step_by(block as usize) {
            let position = at / block;
            if wanted.get(position) && !got.get(position) {
                got.set(position);
                let offset = span.offset + (at - span.at);
                add_lacking(task, damage, (position, offset), &mut spans);
            }
        }
    }
    fetched.kept = got.count() * block;
    check_room(&path, fetched.wanted - fetched.kept)?;
    let queue = Queue::new(task, damage, (&wanted, mirrors), (got, &mut stash));
    let done = queue.run();
    let (got, added, of_mirrors) = queue.into_parts();
    fetched.mirrors = of_mirrors;
    fetched.lacking = (wanted.count() - got.count()) * block;
    mirrors.tell(fetched);
    for (first, count, offset) in added {
        (0..count).for_each(|nth| add_lacking(task, damage, (first + nth, offset + nth * block), &mut spans));
    }
    if stash.is_empty() {
        stash.end();
        return done.map(|()| None);
    }
    done?;
    take(task, damage, (&got, spans, Some(&stash)));
    Ok(Some(stash))
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

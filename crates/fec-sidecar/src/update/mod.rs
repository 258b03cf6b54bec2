//! Updates a sidecar after files were changed: codes only the changes.
//!
//! ```text
//! compare: the fate of each file ─▶ place: unchanged bytes keep their positions ─▶ code new bytes ─▶ append
//! ```
//!
//! Nothing of the old sidecar is written over: the new recovery shards and metadata go behind it, the metadata as a
//! difference to what they were. The old ones stay valid until the new ones are on the disk, and rot cannot pass for an
//! edit. Positions whose bytes are gone are marked as lost in their sets. If a set has lost too much this way, or too
//! much of the sidecar is unused, it is written again: large groups keep their recovery shards, and small or weak ones
//! are joined. Where that would read most files, the sidecar is made anew, and every file is compared with its record.

mod append;
mod compare;
mod difference;
mod kept;
mod layout;
mod out;
mod place;
mod updated;
mod updating;

use crate::Sidecar;
use crate::catalog::journal;
use crate::catalog::metadata;
use crate::catalog::proof::Proof;
use crate::error::SidecarError;
use crate::protect::attempts::Attempts;
use crate::protect::{Found, Protect};
use compare::{Compare, Fate};
use fec_base::context::Context;
use fec_base::error::{Action, Error, Result};
use fec_base::io::output::check_absent;
use fec_base::io::temporary::{parent, remove_stale};
use fec_core::digest::Digest;
use fec_keys::sign::Trust;
use fecfile::seal::SealError;
use updated::Counts;
pub use updated::{Anew, Updated};
use updating::Update;

/// Updates the sidecar `job.output` to the present files. The sidecar must have the root `wanted`, or a signature by
/// somebody in `trust`, if either is given.
///
/// A file with its recorded size and time is not read. With a root or a signature everything is read: the root does not
/// prove the times, and the new root may be signed. With `job.policy.force`, many files may be gone.
///
/// Memory: as that of [`protect`](crate::protect::protect), for the old and the new files.
///
/// # Errors
/// [`SidecarError`], among them [`SidecarError::Rotten`] and [`SidecarError::ManyGone`]; those of the system. An error
/// leaves the sidecar as it was. A file that cannot be read, or changes each time, is part of the result, unless no
/// file can be read.
pub fn update(
    job: &Protect<'_>,
    (wanted, trust): (Option<Digest>, Option<&Trust>),
    context: &Context<'_>,
) -> Result<Updated> {
    if !job.output.exists() {
        return Err(Error::at(Action::Update, job.output, SidecarError::NothingToUpdate));
    }
    check_absent(job.output, job.policy.with_force(true))
        .map_err(|e| Error { action: Action::Update, ..e })?;
    let _lock = metadata::lock_file(job.output, Action::Update)?;
    remove_stale(parent(job.output), context.progress);
    // An attempt that failed has written behind the end of the sidecar.
    Attempts::run(true, |attempts| once(job, (wanted, trust), attempts, context))
}

/// An attempt of an update.
fn once(
    job: &Protect<'_>,
    (wanted, trust): (Option<Digest>, Option<&Trust>),
    attempts: &Attempts,
    context: &Context<'_>,
) -> Result<Updated> {
    let old = match job.keys {
        Some(keys) => Sidecar::open_sealed(job.output, (wanted, trust), keys, &context.settings)?.0,
        None if !Sidecar::starts(job.output)? && Sidecar::is_sealed(job.output)? => {
            return Err(Error::at(Action::Update, job.output, SealError::NoKey));
        }
        None => match trust {
            None => match wanted {
                Some(root) => Sidecar::open_known(job.output, root, job.known, &context.settings)?,
                None => Sidecar::open(job.output, None, &context.settings)?,
            },
            Some(trust) => Sidecar::open_signed(job.output, wanted, trust, &context.settings)?.0,
        },
    };
    // Refused before any work.
    match (old.was_sealed(), job.sealing) {
        (true, None) => return Err(Error::at(Action::Update, job.output, SealError::NobodyNamed)),
        (false, Some(_)) => return Err(Error::at(Action::Update, job.output, SealError::StaysPlain)),
        _ => {}
    }
    if let Some(newest) = old.replaced_by {
        return Err(Error::at(Action::Update, job.output, SidecarError::OtherRoot(vec![newest])));
    }
    old.check_end(job.policy.force)?;
    let displaced = Error::at(Action::Update, job.output, SidecarError::Displaced);
    let end = match old.expected_len() {
        Some(end) if end <= old.len && old.shifts.is_empty() => end,
        _ => return Err(displaced),
    };
    // A half-mended file has another time, and is no edit.
    journal::check_none(job.output, Action::Update)?;
    let job = &Protect { marks: !old.stats.marks.is_empty(), ..*job };
    let found = Found::of(job, attempts, Some(&old))?;
    let compare = Compare { old: &old, base: &found.base, tree: &found.tree, context };
    let (fates, taken) = compare.run()?;
    if old.proof() != Proof::Nothing {
        let rotten = compare.find_rotten(&fates)?;
        if !rotten.is_empty() {
            return Err(Error::at(Action::Update, job.output, SidecarError::Rotten(rotten)));
        }
    }
    check_undamaged(&compare, &fates, job)?;
    let counts = Counts::of(&compare, &fates, &taken);
    if !job.policy.force {
        counts.check(&old, job, &found.base)?;
    }
    Update { job, old: &old, end, found, fates, counts, context }.run()
}

/// Fails if an update would protect damage: that of files that rotted, and unless `-f` says otherwise that of files of
/// which nothing tells damage from an edit.
fn check_undamaged(compare: &Compare<'_>, fates: &[Fate], job: &Protect<'_>) -> Result<()> {
    let fail = |cause| Err(Error::at(Action::Update, job.output, cause));
    let traces = compare.traces(fates);
    let doubts = compare.find_damage(fates, traces)?;
    if !doubts.rotten.is_empty() {
        return fail(SidecarError::Rotten(doubts.rotten));
    }
    if job.policy.force {
        return Ok(());
    }
    if !doubts.unclear.is_empty() {
        return fail(SidecarError::RottenOrEdited(doubts.unclear));
    }
    if let Some((now, was)) = compare.find_suspect(fates, traces)? {
        let now = compare.tree.entries[now].path.to_vec();
        let was = compare.old.catalog.entries[was as usize].path.to_vec();
        return fail(SidecarError::RottenOrNew { now, was });
    }
    Ok(())
}

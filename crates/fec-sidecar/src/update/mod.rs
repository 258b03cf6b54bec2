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
mod leaving;
mod lives;
mod out;
mod place;
mod refill;
mod retire;
mod updated;
mod updating;

use crate::Sidecar;
use crate::catalog::journal;
use crate::catalog::metadata;
use crate::catalog::moved::folders_of;
use crate::catalog::policy::Policy;
use crate::catalog::proof::Proof;
use crate::catalog::seen::reason_for;
use crate::catalog::sources::Sources;
use crate::error::SidecarError;
use crate::kind;
use crate::protect::attempts::Attempts;
use crate::protect::{Found, Protect, Prune};
pub use compare::held::{Held, Why};
use compare::{Compare, Fate};
use fec_base::context::Context;
use fec_base::error::{Action, Error, Result};
use fec_base::io::output::check_absent;
use fec_base::io::temporary::{parent, remove_stale};
use fec_core::digest::Digest;
use fec_core::executor::lock;
use fec_core::format::sidecar::EntryKind;
use fec_core::format::sidecar::parts::Reason;
use fec_keys::sign::Trust;
use fecfile::seal::SealError;
use std::collections::BTreeSet;
use std::sync::Mutex;
use updated::Counts;
pub use updated::{Anew, NotRetired, Updated};
use updating::{Notes, Update};

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
/// leaves the sidecar as it was. A file that cannot be read, changes each time, or is held by the policy, is part of
/// the result, unless nothing else is left.
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
    let notes = Notes::default();
    let once = |attempts: &Attempts| once(job, (wanted, trust), (attempts, &notes), context);
    let mut updated = match Attempts::run(true, once) {
        // Nothing of what has left can be taken out.
        Err(_) if lock(&notes.not_retired).is_some() => Attempts::run(true, once)?,
        updated => updated?,
    };
    let is_nothing = updated.retired_len == 0 && updated.anew.is_none() && job.retired.is_some();
    let why = lock(&notes.not_retired).take();
    updated.not_retired = why.or_else(|| is_nothing.then_some(NotRetired::Nothing));
    updated.held = std::mem::take(&mut *lock(&notes.held)).into_iter().collect();
    updated.unchanged -= updated.held.len() as u64;
    let folders: BTreeSet<&[u8]> = updated.held.iter().flat_map(|held| folders_of(&held.path)).collect();
    let is_held = |path: &[u8]| {
        folders.contains(path) || updated.held.binary_search_by(|held| (*held.path).cmp(path)).is_ok()
    };
    updated.sidecar.kept.retain(|kept| !is_held(&kept.path));
    Ok(updated)
}

/// An attempt of an update.
fn once(
    job: &Protect<'_>,
    (wanted, trust): (Option<Digest>, Option<&Trust>),
    (attempts, notes): (&Attempts, &Notes),
    context: &Context<'_>,
) -> Result<Updated> {
    check_kept(job, attempts, &lock(&notes.held))?;
    let old = match job.keys {
        Some(keys) => Sidecar::open_sealed(job.output, (wanted, trust), keys, &context.settings)?.0,
        None if !kind::starts(job.output)? && kind::is_sealed(job.output)? => {
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
    let given_up = attempts.given_up(&old);
    if !given_up.is_empty() && !job.policy.force {
        return Err(Error::at(Action::Update, job.output, SidecarError::GivenUp(given_up)));
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
    let compare = Compare { old: &old, base: &found.base, tree: &found.tree, appends: job.appends, context };
    let (fates, taken) = compare.run()?;
    hold(job, &compare, &fates, &found, &notes.held)?;
    if old.proof() != Proof::Nothing {
        let rotten = compare.find_rotten(&fates)?;
        if !rotten.is_empty() {
            return Err(Error::at(Action::Update, job.output, SidecarError::Rotten(rotten)));
        }
    }
    let policy = Policy::of(&found.rules);
    check_undamaged(&compare, &fates, &policy, job)?;
    let counts = Counts::of(&compare, &fates, &taken, &policy);
    if !job.policy.force {
        counts.check(&old, job, &found.base)?;
    }
    let (sources, leaving) = (Sources::default(), None);
    Update { job, old: &old, end, found, fates, counts, notes, sources, leaving, context }.run()
}

/// Tells whether the owner said that what stays by the policy was pruned.
fn are_pruned(job: &Protect<'_>, old: &Sidecar) -> bool {
    job.prune == Prune::Done || old.believed_policy().is_announced
}

/// Ends an attempt that has found files to hold: the next one keeps their entries.
fn hold(
    job: &Protect<'_>,
    compare: &Compare<'_>,
    fates: &[Fate],
    found: &Found,
    held: &Mutex<BTreeSet<Held>>,
) -> Result<()> {
    if job.policy.force || found.rules.is_empty() && !job.appends {
        return Ok(());
    }
    let new = compare.find_held(fates, &Policy::of(&found.rules), are_pruned(job, compare.old))?;
    if new.is_empty() {
        return Ok(());
    }
    let is_left = |(nth, entry): (usize, &fec_core::format::sidecar::Entry)| {
        let is_held = || new.iter().any(|held| held.path == entry.path);
        matches!(entry.kind, EntryKind::File(_)) && found.tree.seen.has(nth) && !is_held()
    };
    // A record that only a root proves is not kept, and a sidecar of nothing but held files says nothing.
    let may_keep = compare.old.proof() != Proof::Root && found.tree.entries.iter().enumerate().any(is_left);
    let cause = held_error(new.iter());
    new.iter().for_each(|held| found.tree.seen.note(&held.path, Reason::Unreadable));
    lock(held).extend(new);
    let action = if may_keep { Action::Read } else { Action::Update };
    Err(Error::at(action, job.output, cause))
}

fn held_error<'a>(held: impl Iterator<Item = &'a Held> + Clone) -> SidecarError {
    let all = held.clone().map(|held| held.path.to_vec()).collect();
    match held.clone().all(|held| held.why == Why::Rewritten) {
        true => SidecarError::Rewritten(all),
        false => SidecarError::Held(all),
    }
}

/// Fails if an entry of a held file could not be kept.
fn check_kept(job: &Protect<'_>, attempts: &Attempts, held: &BTreeSet<Held>) -> Result<()> {
    match held.iter().any(|held| reason_for(&attempts.omitted, &held.path).is_some()) {
        true => Err(Error::at(Action::Update, job.output, held_error(held.iter()))),
        false => Ok(()),
    }
}

/// Fails if an update would protect damage: that of files that rotted, and unless `-f` says otherwise that of files of
/// which nothing tells damage from an edit.
fn check_undamaged(
    compare: &Compare<'_>,
    fates: &[Fate],
    policy: &Policy<'_>,
    job: &Protect<'_>,
) -> Result<()> {
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
    if let Some((now, was)) = compare.find_suspect(fates, traces, policy)? {
        let now = compare.tree.entries[now].path.to_vec();
        let was = compare.old.catalog.entries[was as usize].path.to_vec();
        return fail(SidecarError::RottenOrNew { now, was });
    }
    Ok(())
}

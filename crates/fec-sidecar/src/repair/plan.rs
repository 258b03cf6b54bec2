//! Decides what a repair writes, before anything is written.

use crate::catalog::journal::Journal;
use crate::error::SidecarError;
use crate::examine::Examined;
use crate::repair::actions::EntryAction;
use crate::repair::copy::Copy;
use crate::repair::decisions::{decide, made_in_steps};
use crate::repair::mend::Mended;
use crate::repair::task::{Damage, Task, is_denied};
use fec_base::error::{Action, Error, Result};
use fecfile::seal::SealError;
use std::collections::HashSet;
use std::io::ErrorKind as IoKind;

/// Everything that a repair is about to write.
pub(crate) struct Plan {
    pub(crate) actions: Vec<EntryAction>,
    /// Folders and symbolic links that are made, and get their times and permissions in further steps.
    pub(crate) made: HashSet<usize>,
    /// Entries that are left as somebody changed them, in order.
    left: Vec<usize>,
    pub(crate) barred: Barred,
    pub(crate) own: OwnPlan,
    /// True if a list beside the sidecar names the entries while they are written.
    pub(crate) is_listed: bool,
}

impl Plan {
    /// Decides on all entries and on the sidecar, and notes half-mended files in `journal`.
    ///
    /// # Errors
    /// Those of the base and of the list; without a partial repair also when a file cannot be written to.
    pub(crate) fn of(
        task: &Task<'_>,
        damage: &Damage,
        copy: Option<&Copy<'_>>,
        journal: &mut Journal,
    ) -> Result<Plan> {
        let Task { sidecar, base, how, context } = *task;
        let Damage { found, positions, denied } = damage;
        let begun = task.begun(positions, found);
        if how.out.is_none() {
            begun.bear_out(journal, context)?;
        }
        let (mut actions, left) = match copy {
            Some(copy) => (copy.actions(sidecar), Vec::new()),
            None => decide(sidecar, base, positions, found, how.revert, journal)?,
        };
        let barred = Barred::of(task, denied, &actions)?;
        barred.entries.iter().for_each(|entry| actions[*entry] = EntryAction::Leave);
        let made = made_in_steps(sidecar, &actions);
        let is_listed = how.out.is_none() && (actions.contains(&EntryAction::Mend) || !made.is_empty());
        if is_listed {
            begun.check(journal, &actions, &made)?;
        }
        Ok(Plan { actions, made, left, barred, own: OwnPlan::of(task, found), is_listed })
    }

    /// The result of a repair that writes everything as planned. The errors of the plan move into it.
    pub(crate) fn promise(&mut self, found: Examined) -> Mended {
        let left = std::mem::take(&mut self.left);
        let barred = &self.barred.entries;
        let is_mended = |n: &usize| left.binary_search(n).is_err() && barred.binary_search(n).is_err();
        let mended = found.entries.iter().map(|report| report.entry).filter(is_mended).collect();
        Mended {
            found,
            mended,
            left,
            failed: barred.clone(),
            is_denied: self.barred.is_denied,
            left_out: Vec::new(),
            sidecar: self.own.mends || self.own.mends_container && self.own.left.is_none(),
            sidecar_left: self.own.left.take(),
            cause: self.barred.cause.take(),
            contradiction: None,
            written: 0,
        }
    }

    /// Tells whether anything is written, other than the container of a sealed sidecar.
    pub(crate) fn has_work(&self) -> bool {
        self.own.mends || self.actions.iter().any(|action| *action != EntryAction::Leave)
    }
}

/// Entries that are left because they cannot be read or written to.
pub(crate) struct Barred {
    /// The entries, in order.
    pub(crate) entries: Vec<usize>,
    /// True if the caller lacks permission for some of them.
    is_denied: bool,
    /// Why some of them cannot be written to.
    cause: Option<Error>,
}

impl Barred {
    /// Finds the files that these actions cannot write to. `denied` has the entries that the caller may not read.
    fn of(task: &Task<'_>, denied: &[usize], actions: &[EntryAction]) -> Result<Barred> {
        let mut entries = if task.how.out.is_some() { Vec::new() } else { denied.to_vec() };
        let (closed, cause) = closed(task, actions);
        let is_denied = !entries.is_empty() || cause.as_ref().is_some_and(is_denied);
        entries.extend(closed);
        entries.sort_unstable();
        match cause {
            _ if is_denied && !task.how.partial => Err(task.not_allowed(&entries)),
            Some(error) if !task.how.partial => Err(error),
            cause => Ok(Barred { entries, is_denied, cause }),
        }
    }
}

/// Files to be mended in place that cannot be opened for writing, and the cause. Missing permission comes first.
fn closed(task: &Task<'_>, actions: &[EntryAction]) -> (Vec<usize>, Option<Error>) {
    let Task { sidecar, base, .. } = task;
    let mut closed = Vec::new();
    let mut cause: Option<Error> = None;
    for (nth, _) in actions.iter().enumerate().filter(|(_, action)| **action == EntryAction::Mend) {
        let path = &sidecar.catalog.entries[nth].path;
        let error = match base.may_write(path) {
            Ok(true) => continue,
            Ok(false) => IoKind::PermissionDenied.into(),
            Err(e) => e,
        };
        closed.push(nth);
        let error = Error::io(Action::Write, base.place(path).as_path(), error);
        if cause.is_none() || is_denied(&error) && !cause.as_ref().is_some_and(is_denied) {
            cause = Some(error);
        }
    }
    (closed, cause)
}

/// The decision on the sidecar itself.
pub(crate) struct OwnPlan {
    /// True if its recovery shards and metadata are mended.
    pub(crate) mends: bool,
    /// True if the container that it is sealed in is mended.
    pub(crate) mends_container: bool,
    /// Why a damaged sidecar is left alone.
    left: Option<Error>,
}

impl OwnPlan {
    fn of(task: &Task<'_>, found: &Examined) -> OwnPlan {
        let Task { sidecar, how, .. } = task;
        let is_damaged = how.out.is_none() && !found.sidecar_is_intact();
        let has_damage = found.recovery_damaged + found.recovery_displaced > 0
            || sidecar.pieces.intact < sidecar.pieces.all
            || !sidecar.pieces.displaced.is_empty();
        // A sealed sidecar is never written to. Its container is mended instead.
        if sidecar.sealed.is_some() {
            let lost = || Error::at(Action::Repair, sidecar.path(), SealError::BeyondContainer);
            let mends_container = how.out.is_none() && found.container_damaged;
            return OwnPlan { mends: false, mends_container, left: (is_damaged && has_damage).then(lost) };
        }
        // Newer generations are cut off only by a full revert.
        let left = match sidecar.replaced_by {
            _ if !is_damaged => None,
            Some(_) if !how.revert => {
                has_damage.then(|| Error::at(Action::Repair, sidecar.path(), SidecarError::Older))
            }
            _ => sidecar.check_end(how.revert).err(),
        };
        let mends = is_damaged && left.is_none() && (how.revert || sidecar.replaced_by.is_none());
        OwnPlan { mends, mends_container: false, left }
    }
}

//! Decides what a repair writes, before anything is written.

use crate::catalog::journal::{Closed, Journal};
use crate::error::SidecarError;
use crate::examine::{EntryReport, Examined, Selection, State};
use crate::repair::actions::EntryAction;
use crate::repair::copy::Copy;
use crate::repair::decisions::{decide, made_in_steps};
use crate::repair::mend::Mended;
use crate::repair::own_shards::Way;
use crate::repair::reach::{Reach, without_list};
use crate::repair::task::{Damage, Task, is_denied};
use fec_base::error::{Action, Error, Result};
use fec_base::io::output::check_room;
use fec_core::format::sidecar::FileEntry;
use fecfile::seal::SealError;
use std::collections::HashSet;

/// Everything that a repair is about to write.
pub(crate) struct Plan {
    pub(crate) actions: Vec<EntryAction>,
    /// Folders and symbolic links that are made, and get their times and permissions in further steps.
    pub(crate) made: HashSet<usize>,
    /// Entries that are left as somebody changed them, in order.
    left: Vec<usize>,
    pub(crate) barred: Barred,
    pub(crate) own: OwnPlan,
    /// Read-only files and folders that are made writable for the moment.
    pub(crate) closed: Closed,
    /// The folder that new files are made in first, below the base.
    pub(crate) room: Box<[u8]>,
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
        (copy, selection): (Option<&Copy<'_>>, Option<&Selection>),
        journal: &mut Journal,
    ) -> Result<Plan> {
        let Task { sidecar, base, how, context } = *task;
        let Damage { found, positions, denied } = damage;
        let begun = task.begun(positions, found);
        if how.out.is_none() {
            begun.bear_out(journal, context)?;
        }
        let (mut actions, left) = match copy {
            Some(copy) => (copy.actions(sidecar, selection), Vec::new()),
            None => decide(sidecar, base, positions, found, how.revert, journal)?,
        };
        let Reach { closed, room, barred } = reach(task, &mut actions, journal);
        let barred = Barred::of(task, denied, barred)?;
        barred.entries.iter().for_each(|entry| actions[*entry] = EntryAction::Leave);
        let made = made_in_steps(sidecar, &actions);
        let is_in_steps = actions.contains(&EntryAction::Mend) || !made.is_empty() || !closed.is_empty();
        let is_listed = how.out.is_none() && is_in_steps && journal.can_be();
        if is_listed {
            begun.check(journal, &actions, (&made, &closed))?;
        }
        Ok(Plan { actions, made, left, barred, own: OwnPlan::of(task, found), closed, room, is_listed })
    }

    /// The result of a repair that writes everything as planned. The errors of the plan move into it.
    pub(crate) fn promise(&mut self, found: Examined) -> Mended {
        let left = std::mem::take(&mut self.left);
        let barred = &self.barred.entries;
        let is_mended = |n: &usize| left.binary_search(n).is_err() && barred.binary_search(n).is_err();
        // A mode alone is left without a word.
        let is_kept = |report: &&EntryReport| {
            report.state == State::Mode && self.actions[report.entry] == EntryAction::Leave
        };
        let wrong = found.entries.iter().filter(|report| !is_kept(report)).map(|report| report.entry);
        let mended = wrong.filter(is_mended).collect();
        Mended {
            found,
            mended,
            left,
            failed: barred.clone(),
            is_denied: self.barred.is_denied,
            left_out: Vec::new(),
            sidecar: self.own.mends.is_some() || self.own.mends_container && self.own.left.is_none(),
            sidecar_left: self.own.left.take(),
            cause: self.barred.cause.take(),
            contradiction: None,
            written: 0,
        }
    }

    /// Fails when the new files clearly do not fit: files that share their bytes may be far larger than the sidecar.
    ///
    /// # Errors
    /// [`ErrorKind::NoRoom`](fec_base::ErrorKind::NoRoom).
    pub(crate) fn check_room(&self, task: &Task<'_>) -> Result<()> {
        let catalog = &task.sidecar.catalog;
        let block = u64::from(catalog.block);
        let made = catalog.files().filter(|(nth, _)| matches!(self.actions[*nth], EntryAction::Make { .. }));
        let len = |file: &FileEntry| {
            file.tail_len(block) + file.runs.iter().map(|run| run.count * block).sum::<u64>()
        };
        let need = made.fold(0, |need: u64, (_, file)| need.saturating_add(len(file)));
        let inside = task.base.place(task.base.named()).join("x");
        check_room(task.how.out.unwrap_or(&inside), need)
    }

    /// Tells whether anything is written, other than the container of a sealed sidecar.
    pub(crate) fn has_work(&self) -> bool {
        self.own.mends.is_some() || self.actions.iter().any(|action| *action != EntryAction::Leave)
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
    /// The entries in `denied`, which the caller may not read, and in `closed`, which cannot be written to. A file
    /// of somebody else keeps no other from being mended.
    fn of(task: &Task<'_>, denied: &[usize], closed: Vec<(usize, Error)>) -> Result<Barred> {
        let mut entries = if task.how.out.is_some() { Vec::new() } else { denied.to_vec() };
        let are_unread = !entries.is_empty();
        entries.extend(closed.iter().map(|(entry, _)| *entry));
        entries.sort_unstable();
        let (denied, others): (Vec<Error>, Vec<Error>) =
            closed.into_iter().map(|(_, error)| error).partition(is_denied);
        let (denied, other) = (denied.into_iter().next(), others.into_iter().next());
        match other {
            Some(error) if !task.how.partial => Err(error),
            other => {
                Ok(Barred { is_denied: are_unread || denied.is_some(), entries, cause: denied.or(other) })
            }
        }
    }
}

/// The places that these actions write to. Where no list can be written, files are replaced in place of being mended.
fn reach(task: &Task<'_>, actions: &mut [EntryAction], journal: &Journal) -> Reach {
    if task.how.out.is_some() {
        return Reach::default();
    }
    if journal.can_be() {
        return Reach::of(task.sidecar, task.base, actions, true);
    }
    let unlisted = without_list(task.sidecar, task.base, actions);
    unlisted.iter().for_each(|(entry, _)| actions[*entry] = EntryAction::Leave);
    let mut reach = Reach::of(task.sidecar, task.base, actions, false);
    reach.barred.extend(unlisted);
    reach
}

/// The decision on the sidecar itself.
pub(crate) struct OwnPlan {
    /// The way its recovery shards and metadata are mended, if they are.
    pub(crate) mends: Option<Way>,
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
            || sidecar.pieces.displaced > 0;
        // A sealed sidecar is never written to. Its container is mended instead.
        if sidecar.sealed.is_some() {
            let lost = || Error::at(Action::Repair, sidecar.path(), SealError::BeyondContainer);
            let mends_container = is_damaged && found.container_damaged;
            return OwnPlan { mends: None, mends_container, left: (is_damaged && has_damage).then(lost) };
        }
        // Newer generations are cut off only by a full revert.
        let left = match sidecar.replaced_by {
            _ if !is_damaged => None,
            Some(_) if !how.revert => {
                has_damage.then(|| Error::at(Action::Repair, sidecar.path(), SidecarError::Older))
            }
            _ => sidecar.check_end(how.revert).err(),
        };
        if !is_damaged || left.is_some() || !how.revert && sidecar.replaced_by.is_some() {
            return OwnPlan { mends: None, mends_container: false, left };
        }
        // A sidecar that may not be written keeps no file from being mended.
        let way = Way::of(sidecar, found);
        let (mends, left) = way.map_or_else(|error| (None, Some(error)), |way| (Some(way), None));
        OwnPlan { mends, mends_container: false, left }
    }
}

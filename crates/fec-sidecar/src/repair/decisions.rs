//! Decides what a repair does with each entry.

use crate::Sidecar;
use crate::catalog::journal::Journal;
use crate::catalog::moved::MovedSpan;
use crate::catalog::positions::Positions;
use crate::examine::by_stat::state_by_stat;
use crate::examine::{EntryReport, Examined, State};
use crate::repair::actions::EntryAction;
use fec_base::error::{Action, Error, Result};
use fec_base::io::base::{Base, file_type};
use fec_core::format::sidecar::EntryKind;
use rustix::fs::FileType;
use std::collections::HashSet;
use std::io;

/// The action for each entry, and the entries that are left as somebody changed them.
pub(crate) fn decide(
    sidecar: &Sidecar,
    base: &Base,
    positions: &Positions,
    found: &Examined,
    reverts: bool,
    journal: &Journal,
) -> Result<(Vec<EntryAction>, Vec<usize>)> {
    let actions = vec![EntryAction::Leave; sidecar.catalog.entries.len()];
    let (left, left_folders) = (Vec::new(), Vec::new());
    let mut decisions = Decisions { sidecar, base, found, reverts, journal, actions, left, left_folders };
    for report in &found.entries {
        decisions.decide_on(report)?;
    }
    decisions.keep_sources(positions);
    decisions.take_up_begun()?;
    decisions.follow_first_names();
    Ok((decisions.actions, decisions.left))
}

/// The facts about an entry that decide what is done with it, as far as they are known without looking at it again.
#[derive(Clone, Copy, Debug)]
struct Facts {
    state: State,
    is_file: bool,
    /// True if an interrupted repair has half mended the entry, and nobody has written to it since.
    is_begun: bool,
    /// True if changes are reverted.
    reverts: bool,
    /// True if all losses can be computed.
    is_mendable: bool,
    /// True if the policy alone makes damage of what may be an edit.
    is_by_policy: bool,
}

/// The decision on an entry that follows from [`Facts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decision {
    /// The entry is right.
    Keep,
    /// The entry stays as somebody changed it.
    KeepChange,
    /// The entry is made where nothing is.
    MakeMissing,
    /// The entry is made, and replaces what is there.
    Replace,
    /// The file is mended in place, if that can be.
    Mend,
    /// The file is mended in place, if that can be and it has no other names. Those may be anybody's.
    MendUnlessShared,
}

impl Facts {
    fn decide(self) -> Decision {
        match self.state {
            State::Intact => Decision::Keep,
            State::Mode if !self.reverts => Decision::Keep,
            State::Mode => Decision::MendUnlessShared,
            State::Moved if !self.reverts => Decision::KeepChange,
            // Whatever was pruned comes back by its name alone: then it counts as missing.
            State::Gone => Decision::KeepChange,
            State::Missing | State::Moved | State::MovedDamaged => Decision::MakeMissing,
            State::Edited | State::Changed | State::Changing | State::Shifted
                if !(self.is_begun || self.reverts && self.is_mendable) =>
            {
                Decision::KeepChange
            }
            State::Shifted => Decision::Replace,
            _ if !self.is_file => Decision::Replace,
            State::Edited | State::Changed | State::Changing if !self.is_begun => Decision::MendUnlessShared,
            State::Rotten if self.is_by_policy => Decision::MendUnlessShared,
            State::Edited | State::Changed | State::Changing | State::Rotten | State::Unreadable => {
                Decision::Mend
            }
        }
    }
}

/// The decisions so far.
struct Decisions<'a> {
    sidecar: &'a Sidecar,
    base: &'a Base,
    found: &'a Examined,
    reverts: bool,
    journal: &'a Journal,
    actions: Vec<EntryAction>,
    /// Entries that are left as somebody changed them, in order.
    left: Vec<usize>,
    /// Folders that something else has replaced and that are left so: nothing can be made in them.
    left_folders: Vec<&'a [u8]>,
}

impl Decisions<'_> {
    /// Decides what is done with an entry that is not intact. Entries come in their order.
    fn decide_on(&mut self, report: &EntryReport) -> Result<()> {
        let nth = report.entry;
        let entry = &self.sidecar.catalog.entries[nth];
        if self.is_of_left(report) || self.left_folders.iter().any(|folder| is_in(&entry.path, folder)) {
            self.left.push(nth);
            return Ok(());
        }
        let state = match report.state {
            // An entry that the caller may not read stays as it is, and is reported.
            State::Unreadable if report.is_denied() => return Ok(()),
            // A file that could not be examined at first may have been edited.
            State::Unreadable => self.state_of_unreadable(nth)?,
            state => state,
        };
        let is_begun = matches!(state, State::Edited | State::Changed | State::Shifted)
            && self.journal.has_begun(nth, self.base, &entry.path)?;
        let is_file = matches!(entry.kind, EntryKind::File(_));
        let (reverts, is_mendable) = (self.reverts, self.found.is_revertible());
        let is_by_policy = report.is_by_policy;
        let facts = Facts { state, is_file, is_begun, reverts, is_mendable, is_by_policy };
        let decision = facts.decide();
        if decision == Decision::KeepChange {
            self.left.push(nth);
            if entry.kind == EntryKind::Folder && state != State::Gone {
                self.left_folders.push(&entry.path);
            }
        }
        self.actions[nth] = action_of(decision, self.base, &entry.path);
        Ok(())
    }

    /// The state of an entry that could not be read. A state that stays unknown is an error: nothing is written then.
    fn state_of_unreadable(&self, nth: usize) -> Result<State> {
        let path = &self.sidecar.catalog.entries[nth].path;
        let found = state_by_stat(self.sidecar, self.base, nth);
        Ok(match (found.state, found.facts) {
            (State::Unreadable, _) => {
                let cause =
                    self.base.stat(path).err().unwrap_or_else(|| io::Error::from_raw_os_error(libc::EIO));
                return Err(Error::io(Action::Read, self.base.place(path).as_path(), cause));
            }
            // A file with its recorded look had wrong or unreadable bytes.
            (State::Intact, Some((facts, _))) => match self.found.traces.read(facts).state() {
                State::Rotten => State::Unreadable,
                state => state,
            },
            (state, _) => state,
        })
    }

    /// Tells whether an entry is a further name of a file that is left to somebody. If its first name was given to
    /// another file, this may be the last copy. A file that moved gets no further names either.
    fn is_of_left(&self, report: &EntryReport) -> bool {
        let EntryKind::HardLink(of) = self.sidecar.catalog.entries[report.entry].kind else { return false };
        let of = of as usize;
        let was_moved = || self.found.state(of) == State::Moved;
        self.left.binary_search(&of).is_ok() && (report.state != State::Missing || was_moved())
    }

    /// Makes files anew that are sources of others, or get bytes from elsewhere: bytes are copied from where they
    /// stand, and never from a file that is being written to. Files with a known tail in a lost block are made anew
    /// too, since only whole blocks are written in place.
    fn keep_sources(&mut self, positions: &Positions) {
        let moved = &self.found.moved;
        let block = u64::from(self.sidecar.catalog.block);
        let of_span = |span: &MovedSpan| positions.within(span.at / block..span.end().div_ceil(block));
        let from_elsewhere: HashSet<u32> = moved.found().flat_map(of_span).map(|span| span.entry).collect();
        let sources = moved.used_sources();
        for (nth, entry) in (0..).zip(&self.sidecar.catalog.entries) {
            let is_source = || sources.contains(&*entry.path);
            let has_known_tail = || match &entry.kind {
                EntryKind::File(file) if file.tail_len(block) > 0 => {
                    moved.covers(file.tail..file.tail + file.tail_len(block))
                        && self.found.erased.get(file.tail / block)
                }
                _ => false,
            };
            let action = &mut self.actions[nth as usize];
            if *action == EntryAction::Mend
                && (from_elsewhere.contains(&nth) || is_source() || has_known_tail())
            {
                *action = EntryAction::Make { replace: true };
            }
        }
    }

    /// Takes up entries that an interrupted repair has mended or made, but not yet given their time.
    fn take_up_begun(&mut self) -> Result<()> {
        for (nth, entry) in self.sidecar.catalog.entries.iter().enumerate() {
            if !self.is_intact(nth) {
                continue;
            }
            match &entry.kind {
                EntryKind::File(_) if self.journal.has_begun(nth, self.base, &entry.path)? => {
                    self.actions[nth] = EntryAction::Mend;
                }
                EntryKind::Folder | EntryKind::Symlink(_)
                    if self.journal.has_made(nth, self.sidecar, self.base) =>
                {
                    let replace = matches!(entry.kind, EntryKind::Symlink(_));
                    self.actions[nth] = EntryAction::Make { replace };
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Makes further names of files that are made anew, so that they become names of the new files.
    fn follow_first_names(&mut self) {
        for (nth, entry) in self.sidecar.catalog.entries.iter().enumerate() {
            if let EntryKind::HardLink(of) = entry.kind
                && matches!(self.actions[of as usize], EntryAction::Make { .. })
                && self.is_intact(nth)
            {
                self.actions[nth] = EntryAction::Make { replace: true };
            }
        }
    }

    /// Tells whether nothing is done with an entry so far, and nobody changed it.
    fn is_intact(&self, nth: usize) -> bool {
        self.actions[nth] == EntryAction::Leave && self.left.binary_search(&nth).is_err()
    }
}

/// The action for an entry by a decision. A file that is to be mended in place is looked at again.
fn action_of(decision: Decision, base: &Base, path: &[u8]) -> EntryAction {
    match decision {
        Decision::Keep | Decision::KeepChange => EntryAction::Leave,
        Decision::MakeMissing => EntryAction::Make { replace: false },
        Decision::MendUnlessShared if has_other_names(base, path) => EntryAction::Make { replace: true },
        Decision::Mend | Decision::MendUnlessShared if may_mend_in_place(base, path) => EntryAction::Mend,
        Decision::Mend | Decision::MendUnlessShared | Decision::Replace => {
            EntryAction::Make { replace: true }
        }
    }
}

/// Folders and symbolic links that are made, and get their times and permissions in further steps.
pub(crate) fn made_in_steps(sidecar: &Sidecar, actions: &[EntryAction]) -> HashSet<usize> {
    let entries = sidecar.catalog.entries.iter().zip(actions).enumerate();
    let made = entries.filter(|(_, (entry, action))| {
        **action != EntryAction::Leave && matches!(entry.kind, EntryKind::Folder | EntryKind::Symlink(_))
    });
    made.map(|(nth, _)| nth).collect()
}

/// Tells whether a path lies in a folder.
fn is_in(path: &[u8], folder: &[u8]) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.first() == Some(&b'/'))
}

/// Tells whether a file is mended where it is: a regular file that no process runs. A file that cannot be opened for
/// another reason is not replaced either, since it may be intact.
fn may_mend_in_place(base: &Base, path: &[u8]) -> bool {
    let is_regular = base.stat(path).is_ok_and(|stat| file_type(&stat) == FileType::RegularFile);
    let is_running = || base.write(path).is_err_and(|e| e.kind() == io::ErrorKind::ExecutableFileBusy);
    is_regular && !is_running()
}

/// Tells whether a file has, or may have, other names, in which case it is not written to.
fn has_other_names(base: &Base, path: &[u8]) -> bool {
    base.stat(path).map_or(true, |stat| stat.st_nlink > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All combinations of facts.
    fn all_facts() -> impl Iterator<Item = Facts> {
        use State::*;
        let states = [
            Intact,
            Mode,
            Rotten,
            Changed,
            Edited,
            Shifted,
            Moved,
            MovedDamaged,
            Missing,
            Gone,
            Unreadable,
            Changing,
        ];
        states.into_iter().flat_map(|state| {
            (0..32).map(move |bits| {
                let is = |bit: u32| (bits >> bit) & 1 == 1;
                Facts {
                    state,
                    is_file: is(0),
                    is_begun: is(1),
                    reverts: is(2),
                    is_mendable: is(3),
                    is_by_policy: is(4),
                }
            })
        })
    }

    #[test]
    fn each_case_has_one_decision() {
        use Decision::*;
        use State::*;
        // `None`: the fact does not count.
        type Row = (State, [Option<bool>; 5], Decision);
        const YES: Option<bool> = Some(true);
        const NO: Option<bool> = Some(false);
        #[rustfmt::skip]
        const TABLE: [Row; 37] = [
            // State, is a file, is begun, changes are reverted, losses can be computed, is damage by the policy alone.
            (Intact,     [None, None, None, None, None], Keep),
            (Mode,       [None, None, NO,   None, None], Keep),
            (Mode,       [None, None, YES,  None, None], MendUnlessShared),
            (Missing,    [None, None, None, None, None], MakeMissing),
            (MovedDamaged, [None, None, None, None, None], MakeMissing),
            (Gone,       [None, None, None, None, None], KeepChange),
            (Moved,      [None, None, NO,   None, None], KeepChange),
            (Moved,      [None, None, YES,  None, None], MakeMissing),
            (Rotten,     [YES,  None, None, None, NO], Mend),
            (Rotten,     [YES,  None, None, None, YES], MendUnlessShared),
            (Rotten,     [NO,   None, None, None, None], Replace),
            (Unreadable, [YES,  None, None, None, None], Mend),
            (Unreadable, [NO,   None, None, None, None], Replace),
            (Edited,     [None, NO,   NO,   None, None], KeepChange),
            (Edited,     [None, NO,   YES,  NO,   None], KeepChange),
            (Edited,     [YES,  NO,   YES,  YES,  None], MendUnlessShared),
            (Edited,     [NO,   NO,   YES,  YES,  None], Replace),
            (Edited,     [YES,  YES,  NO,   None, None], Mend),
            (Edited,     [YES,  YES,  YES,  None, None], Mend),
            (Edited,     [NO,   YES,  NO,   None, None], Replace),
            (Edited,     [NO,   YES,  YES,  None, None], Replace),
            (Changed,    [None, NO,   NO,   None, None], KeepChange),
            (Changed,    [None, NO,   YES,  NO,   None], KeepChange),
            (Changed,    [YES,  NO,   YES,  YES,  None], MendUnlessShared),
            (Changed,    [NO,   NO,   YES,  YES,  None], Replace),
            (Changed,    [YES,  YES,  None, None, None], Mend),
            (Changed,    [NO,   YES,  None, None, None], Replace),
            (Changing,   [None, NO,   NO,   None, None], KeepChange),
            (Changing,   [None, NO,   YES,  NO,   None], KeepChange),
            (Changing,   [YES,  NO,   YES,  YES,  None], MendUnlessShared),
            (Changing,   [NO,   NO,   YES,  YES,  None], Replace),
            (Changing,   [YES,  YES,  None, None, None], Mend),
            (Changing,   [NO,   YES,  None, None, None], Replace),
            (Shifted,    [None, NO,   NO,   None, None], KeepChange),
            (Shifted,    [None, NO,   YES,  NO,   None], KeepChange),
            (Shifted,    [None, NO,   YES,  YES,  None], Replace),
            (Shifted,    [None, YES,  None, None, None], Replace),
        ];
        for facts in all_facts() {
            let Facts { is_file, is_begun, reverts, is_mendable, is_by_policy, .. } = facts;
            let now = [is_file, is_begun, reverts, is_mendable, is_by_policy];
            let applies = |(state, wanted, _): &&Row| {
                *state == facts.state
                    && wanted.iter().zip(now).all(|(wanted, now)| wanted.is_none_or(|wanted| wanted == now))
            };
            let rows: Vec<Decision> = TABLE.iter().filter(applies).map(|(.., decision)| *decision).collect();
            assert_eq!(rows, [facts.decide()], "{facts:?}");
        }
    }
}

//! Decides what a repair does with each entry.

use crate::Sidecar;
use crate::catalog::journal::Journal;
use crate::catalog::moved::MovedSpan;
use crate::catalog::positions::Positions;
use crate::examine::by_stat::{rotten_or_edited, state_by_stat};
use crate::examine::{Examined, State};
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
    let entries = &sidecar.catalog.entries;
    let mut actions = vec![EntryAction::Leave; entries.len()];
    let mut left = Vec::new();
    // Folders that something else has replaced and that are left so: nothing can be made in them.
    let mut left_folders: Vec<&[u8]> = Vec::new();
    for report in &found.entries {
        let nth = report.entry;
        // A further name of a file whose first name somebody gave to another file may be the last copy. A file that
        // moved gets no further names either.
        let is_of_left = match entries[nth].kind {
            EntryKind::HardLink(of) => left.binary_search(&(of as usize)).is_ok_and(|_| {
                let at = found.entries.binary_search_by_key(&(of as usize), |report| report.entry);
                let was_moved = at.is_ok_and(|at| found.entries[at].state == State::Moved);
                report.state != State::Missing || was_moved
            }),
            _ => false,
        };
        if is_of_left || left_folders.iter().any(|folder| is_in(&entries[nth].path, folder)) {
            left.push(nth);
            continue;
        }
        let state = match report.state {
            // An entry that the caller may not read stays as it is, and is reported.
            State::Unreadable if report.is_denied() => continue,
            // A file that could not be examined at first may have been edited.
            State::Unreadable => state_of_unreadable(sidecar, base, nth)?,
            state => state,
        };
        let is_ours = matches!(state, State::Edited | State::Shifted)
            && journal.has_begun(nth, base, &entries[nth].path)?;
        actions[nth] = match (state, &entries[nth].kind) {
            (State::Intact, _) => EntryAction::Leave,
            (State::Missing, _) => EntryAction::Make { replace: false },
            (State::Moved, _) if !reverts => {
                left.push(nth);
                EntryAction::Leave
            }
            (State::Moved, _) => EntryAction::Make { replace: false },
            (State::Edited | State::Shifted, _) if !(is_ours || reverts && found.is_mendable()) => {
                left.push(nth);
                if entries[nth].kind == EntryKind::Folder {
                    left_folders.push(&entries[nth].path);
                }
                EntryAction::Leave
            }
            (State::Edited, EntryKind::File(_)) if !is_ours && has_other_names(base, &entries[nth].path) => {
                // A file stays as it is under its other names, which may be anybody's.
                EntryAction::Make { replace: true }
            }
            (State::Shifted, _) => EntryAction::Make { replace: true },
            (_, EntryKind::File(_)) if may_mend_in_place(base, &entries[nth].path) => EntryAction::Mend,
            _ => EntryAction::Make { replace: true },
        };
    }
    // Bytes that stand elsewhere are copied, and never from a file that is being written to.
    let moved = &found.moved;
    let block = u64::from(sidecar.catalog.block);
    let of_span = |span: &MovedSpan| positions.within(span.at / block..span.end().div_ceil(block));
    let from_elsewhere: HashSet<u32> = moved.iter().flat_map(of_span).map(|span| span.entry).collect();
    let sources = moved.used_sources();
    for (nth, entry) in (0..).zip(entries) {
        let is_source = || sources.contains(&*entry.path);
        let action = &mut actions[nth as usize];
        if *action == EntryAction::Mend && (from_elsewhere.contains(&nth) || is_source()) {
            *action = EntryAction::Make { replace: true };
        }
    }
    // Files that an interrupted repair has mended, but not yet given their time.
    for (nth, entry) in entries.iter().enumerate() {
        let is_intact = actions[nth] == EntryAction::Leave && left.binary_search(&nth).is_err();
        if !is_intact {
            continue;
        }
        match &entry.kind {
            EntryKind::File(_) if journal.has_begun(nth, base, &entry.path)? => {
                actions[nth] = EntryAction::Mend
            }
            EntryKind::Folder | EntryKind::Symlink(_) if journal.has_made(nth, sidecar, base) => {
                actions[nth] = EntryAction::Make { replace: matches!(entry.kind, EntryKind::Symlink(_)) };
            }
            _ => {}
        }
    }
    // Further names of a file that is made anew become names of the new file.
    for (nth, entry) in entries.iter().enumerate() {
        if let EntryKind::HardLink(of) = entry.kind
            && matches!(actions[of as usize], EntryAction::Make { .. })
            && actions[nth] == EntryAction::Leave
            && left.binary_search(&nth).is_err()
        {
            actions[nth] = EntryAction::Make { replace: true };
        }
    }
    Ok((actions, left))
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

/// The state of an entry that could not be read. A state that stays unknown is an error, so that nothing is written.
fn state_of_unreadable(sidecar: &Sidecar, base: &Base, nth: usize) -> Result<State> {
    let path = &sidecar.catalog.entries[nth].path;
    match state_by_stat(sidecar, base, nth).0 {
        State::Unreadable => {
            let cause = base.stat(path).err().unwrap_or_else(|| io::Error::from_raw_os_error(libc::EIO));
            Err(Error::io(Action::Read, base.place(path).as_path(), cause))
        }
        // A file with its recorded look had wrong or unreadable bytes.
        State::Intact if matches!(sidecar.catalog.entries[nth].kind, EntryKind::File(_)) => {
            Ok(match rotten_or_edited(sidecar, base, nth) {
                State::Rotten => State::Unreadable,
                state => state,
            })
        }
        state => Ok(state),
    }
}

//! Mending: what is damaged or missing of files and of their sidecar is computed, proved, and written.

use super::Sidecar;
use super::error::SidecarError;
use super::examine::{Examined, Scope, State, examine};
use super::journal::Journal;
use super::metadata;
use super::moved::MovedSpan;
use super::positions::{Any, PositionReader, Positions};
use super::rebuild::Rebuild;
use super::recovery::read_recovery;
use super::targets::{Action, Targets};
use super::undo;
use crate::context::Context;
use crate::error::{Error, ErrorKind, Result};
use crate::io::base::{Base, file_type};
use crate::io::output::{FileOut, Policy, check_absent};
use fec_core::format::sidecar::EntryKind;
use rustix::fs::FileType;
use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// How to mend.
#[derive(Clone, Copy, Debug)]
pub struct Mend<'a> {
    /// Files that were changed by somebody become what they were.
    pub revert: bool,
    /// What can be mended is, even if not all can.
    pub partial: bool,
    /// All files are written to this folder, as they were, and nothing is changed where they are.
    pub out: Option<&'a Path>,
    /// What is written over is kept before in this tar archive, which must not be there yet.
    pub undo: Option<&'a Path>,
    /// Nothing is written at all.
    pub dry_run: bool,
    /// Whether everything is on the disk before the repair ends.
    pub sync: bool,
}

/// What was mended.
#[derive(Debug)]
pub struct Mended {
    /// What was found before.
    pub found: Examined,
    /// Entries that are what they were again, or would be.
    pub mended: Vec<usize>,
    /// Entries that somebody changed, and that were left so.
    pub left: Vec<usize>,
    /// Entries that could not be mended.
    pub failed: Vec<usize>,
    /// Whether the sidecar was mended, or would be.
    pub sidecar: bool,
    /// Bytes of files that were written.
    pub written: u64,
}

/// Mends what a sidecar protects, and the sidecar.
///
/// Damaged files are mended where they are: only bytes that were computed and proved are written. A repair that was ended on
/// the way can be run again. Missing files appear when they are whole. Nothing is reached through a symbolic link below
/// `base`, and nothing outside.
///
/// # Errors
/// [`SidecarError::BeyondRepair`], and then nothing was changed; [`SidecarError::OutputNotEmpty`]; those of the system.
pub fn repair(sidecar: &Sidecar, base: &Base, how: &Mend<'_>, context: &Context<'_>) -> Result<Mended> {
    let _lock = if how.dry_run { None } else { Some(sidecar.lock("repair")?) };
    let journal = Journal::of(sidecar);
    if let Some(out) = how.out
        && std::fs::read_dir(out).is_ok_and(|mut inside| inside.next().is_some())
    {
        return Err(Error::at("write", out, SidecarError::OutputNotEmpty));
    }
    if let Some(undo) = how.undo {
        let policy = Policy { force: false, sync: false };
        check_absent(undo, policy).map_err(|e| Error { action: "keep", ..e })?;
    }
    let found = examine(sidecar, base, Scope::All, context)?;
    if !found.is_mendable() && !how.partial {
        let lost = SidecarError::BeyondRepair(found.margin.lost_bytes);
        return Err(Error::at("repair", sidecar.path(), lost));
    }
    let (actions, left) = actions(sidecar, base, &found, how, &journal);
    let wanted: Vec<usize> =
        found.entries.iter().map(|report| report.entry).filter(|n| left.binary_search(n).is_err()).collect();
    let mends_sidecar = how.out.is_none() && !found.sidecar_is_intact();
    let mut mended =
        Mended { found, mended: wanted, left, failed: Vec::new(), sidecar: mends_sidecar, written: 0 };
    let has_work = actions.iter().any(|action| *action != Action::Leave);
    if how.dry_run || !(has_work || mends_sidecar) {
        return Ok(mended);
    }
    let out = match how.out {
        Some(out) => {
            std::fs::create_dir_all(out).map_err(|e| Error::io("create", out, e))?;
            Some(Base::open(out).map_err(|e| Error::io("write", out, e))?)
        }
        None => None,
    };
    if let Some(undo) = how.undo {
        undo::keep(undo, sidecar, base, &actions, context)?;
    }
    let positions = Positions::of(&sidecar.catalog);
    let mut own = OwnShards::new(sidecar, &mended.found, mends_sidecar, context)?;
    let mut put =
        |group: usize, shard: u64, bytes: &[u8]| own.put(sidecar.recovery_place(group, shard), bytes);
    let target = out.as_ref().unwrap_or(base);
    let is_in_place = actions.contains(&Action::Mend);
    if is_in_place {
        let begun = (0..).zip(&actions).filter(|(_, action)| **action == Action::Mend).map(|(nth, _)| nth);
        journal.begin(begun)?;
    }
    let beat = || journal.beat();
    let mut targets = Targets::new(sidecar, &positions, target, actions, how.sync, &beat, &mut put);
    let mut reader = PositionReader::new(base, &sidecar.catalog, &positions, &Any).with(&mended.found.moved);
    for (nth, _) in sidecar.catalog.files() {
        if let Action::Make { .. } = targets.actions[nth] {
            targets.fill(nth as u32, &mut reader, &mended.found.erased)?;
        }
    }
    let meter = context.meter("repair", None);
    let rebuild = Rebuild {
        sidecar,
        base,
        positions: &positions,
        examined: &mended.found,
        context,
        meter: meter.as_ref(),
    };
    let wants: Vec<bool> = targets.actions.iter().map(|action| *action != Action::Leave).collect();
    let is_wanted =
        |position: u64| positions.within(position..position + 1).any(|span| wants[span.entry as usize]);
    rebuild.run(&is_wanted, mends_sidecar, &mut targets)?;
    mended.failed = targets.finish()?;
    mended.written = targets.written;
    targets.end()?;
    meter.finish();
    mended.mended.retain(|entry| !mended.failed.contains(entry));
    own.finish(sidecar, context)?;
    if is_in_place || journal.is_there() {
        journal.end();
    }
    if !mended.failed.is_empty() && !how.partial {
        let failed = mended.failed[0];
        let path = &sidecar.catalog.entries[failed].path;
        // All of a missing file was computed, and each block of it is proved.
        let is_proved = mended
            .found
            .entries
            .iter()
            .any(|report| report.entry == failed && report.state == State::Missing);
        let is_folder = || target.stat(path).is_ok_and(|stat| file_type(&stat) == FileType::Directory);
        return Err(if is_folder() {
            Error::at("repair", target.place(path).as_path(), ErrorKind::IsFolder)
        } else if is_proved {
            Error::at("repair", sidecar.path(), SidecarError::Contradiction(path.to_vec()))
        } else {
            Error::at("repair", target.place(path).as_path(), ErrorKind::Changed)
        });
    }
    Ok(mended)
}

/// What to do with each entry; and those that are left as somebody changed them.
fn actions(
    sidecar: &Sidecar,
    base: &Base,
    found: &Examined,
    how: &Mend<'_>,
    journal: &Journal,
) -> (Vec<Action>, Vec<usize>) {
    let entries = &sidecar.catalog.entries;
    let mut actions = vec![Action::Leave; entries.len()];
    let mut left = Vec::new();
    if how.out.is_some() {
        return (vec![Action::Make { replace: false }; entries.len()], left);
    }
    // Folders in whose place something else stands, and is left there: nothing can be made in them.
    let mut left_folders: Vec<&[u8]> = Vec::new();
    for report in &found.entries {
        let nth = report.entry;
        if left_folders.iter().any(|folder| is_in(&entries[nth].path, folder)) {
            left.push(nth);
            continue;
        }
        let is_ours = || journal.has_begun(nth, base, &entries[nth].path);
        actions[nth] = match (report.state, &entries[nth].kind) {
            (State::Missing, _) => Action::Make { replace: false },
            (State::Moved, _) if !how.revert => {
                left.push(nth);
                Action::Leave
            }
            (State::Moved, _) => Action::Make { replace: false },
            (State::Edited | State::Shifted, _) if !(is_ours() || how.revert && found.is_mendable()) => {
                left.push(nth);
                if entries[nth].kind == EntryKind::Folder {
                    left_folders.push(&entries[nth].path);
                }
                Action::Leave
            }
            (State::Edited, EntryKind::File(_)) if has_other_names(base, &entries[nth].path) => {
                // Under its other names, which may be anybody's, it stays as it is.
                Action::Make { replace: true }
            }
            (State::Shifted, _) => Action::Make { replace: true },
            (_, EntryKind::File(_)) if base.read(&entries[nth].path).is_ok() => Action::Mend,
            _ => Action::Make { replace: true },
        };
    }
    // What stands elsewhere is copied from there, and from nothing that is being written to.
    let moved = &found.moved;
    let positions = Positions::of(&sidecar.catalog);
    let block = u64::from(sidecar.catalog.block);
    let of_span = |span: &MovedSpan| positions.within(span.at / block..span.end().div_ceil(block));
    let from_elsewhere: HashSet<u32> = moved.iter().flat_map(of_span).map(|span| span.entry).collect();
    let sources = moved.used_sources();
    for (nth, entry) in (0..).zip(entries) {
        let is_source = || sources.contains(&*entry.path);
        let action = &mut actions[nth as usize];
        if *action == Action::Mend && (from_elsewhere.contains(&nth) || is_source()) {
            *action = Action::Make { replace: true };
        }
    }
    // What a repair that did not end has mended, and not yet given its time.
    for (nth, entry) in entries.iter().enumerate() {
        let is_intact = actions[nth] == Action::Leave && left.binary_search(&nth).is_err();
        if is_intact && matches!(entry.kind, EntryKind::File(_)) && journal.has_begun(nth, base, &entry.path)
        {
            actions[nth] = Action::Mend;
        }
    }
    // Other names of a file that is made anew become names of the new one.
    for (nth, entry) in entries.iter().enumerate() {
        if let EntryKind::HardLink(of) = entry.kind
            && matches!(actions[of as usize], Action::Make { .. })
            && actions[nth] == Action::Leave
            && left.binary_search(&nth).is_err()
        {
            actions[nth] = Action::Make { replace: true };
        }
    }
    (actions, left)
}

/// Whether a path lies in another.
fn is_in(path: &[u8], folder: &[u8]) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.first() == Some(&b'/'))
}

fn has_other_names(base: &Base, path: &[u8]) -> bool {
    base.stat(path).is_ok_and(|stat| stat.st_nlink > 1)
}

/// Recovery shards on their way back into the sidecar.
enum OwnShards {
    /// The sidecar is left as it is.
    Left,
    /// Each goes where it was.
    InPlace(File, std::path::PathBuf),
    /// The sidecar is written anew, because parts of it have moved, or it has another length.
    Anew(FileOut),
}

impl OwnShards {
    fn new(sidecar: &Sidecar, found: &Examined, mends: bool, context: &Context<'_>) -> Result<OwnShards> {
        if !mends {
            return Ok(OwnShards::Left);
        }
        let moved = found.recovery_displaced > 0 || !sidecar.shifts.is_empty();
        if moved || sidecar.expected_len() != Some(sidecar.len) {
            let policy = Policy { force: true, sync: context.settings.sync };
            let out = FileOut::create(sidecar.path(), policy)?;
            let old = sidecar.file.metadata().map(|meta| meta.permissions());
            old.and_then(|old| out.file().set_permissions(old)).map_err(|e| out.failure(e))?;
            let mut first = 0;
            let block = u64::from(sidecar.catalog.block);
            for (nth, group) in sidecar.catalog.groups.iter().enumerate() {
                let area = &sidecar.catalog.areas[group.area as usize];
                for shard in 0..group.recovery() {
                    if found.recovery_erased.get(first + shard) {
                        continue;
                    }
                    if let Some(bytes) = read_recovery(sidecar, nth, shard) {
                        out.put(area.block(group.first + shard, block).0, &bytes)?;
                    }
                }
                first += group.recovery();
            }
            return Ok(OwnShards::Anew(out));
        }
        let file = OpenOptions::new().read(true).write(true).open(sidecar.path());
        let file = file.map_err(|e| Error::io("write", sidecar.path(), e))?;
        Ok(OwnShards::InPlace(file, sidecar.path().to_path_buf()))
    }

    fn put(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        match self {
            OwnShards::Left => Ok(()),
            OwnShards::InPlace(file, path) => {
                file.write_all_at(bytes, at).map_err(|e| Error::io("write", path.as_path(), e))
            }
            OwnShards::Anew(out) => out.put(at, bytes),
        }
    }

    /// Writes the pieces of the metadata, and puts all on the disk.
    fn finish(mut self, sidecar: &Sidecar, context: &Context<'_>) -> Result<()> {
        if let OwnShards::Left = self {
            return Ok(());
        }
        let area = sidecar.catalog.areas[sidecar.catalog.areas.len() - 1];
        let of = &sidecar.of;
        metadata::write(
            sidecar.metadata(),
            of.geometry,
            of.layout,
            &area,
            &context.settings,
            |at, piece| self.put(at, piece),
        )?;
        match self {
            OwnShards::Left => Ok(()),
            OwnShards::InPlace(file, path) if context.settings.sync => {
                file.sync_all().map_err(|e| Error::io("sync", path.as_path(), e))
            }
            OwnShards::InPlace(..) => Ok(()),
            OwnShards::Anew(out) => out.commit(sidecar.expected_len().unwrap_or(sidecar.len)),
        }
    }
}

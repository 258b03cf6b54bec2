//! Repairs files and their sidecar: computes, proves and writes damaged or missing bytes.

use super::Sidecar;
use super::actions::{Action, owners};
use super::begun::Begun;
use super::by_stat::{looks_as_it_did, rotten_or_edited, state_by_stat};
use super::deep::Deep;
use super::error::SidecarError;
use super::examine::{Examined, Scope, State, examine};
use super::generations::area_of;
use super::journal::Journal;
pub use super::left_out::{LeftOut, Part};
use super::metadata;
use super::moved::MovedSpan;
use super::positions::{Any, PositionReader, Positions};
use super::rebuild::{Rebuild, Wants};
use super::recovery::{read_recovery, serving};
use super::targets::{Targets, Writing, remove_old_rooms};
use super::undo;
use crate::context::{Context, Silent};
use crate::error::{Error, ErrorKind, Result};
use crate::io::base::{Base, file_type};
use crate::io::list;
use crate::io::output::{ANYBODY, FileOut, Policy, check_absent, set_mode_if_any, write_own};
use crate::io::own::{Stands, look};
use crate::io::temporary::{parent, remove_stale};
use crate::names::hex;
use crate::seal::error::SealError;
use fec_core::format::sidecar::EntryKind;
use rustix::fs::FileType;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Options of a repair.
#[derive(Clone, Copy, Debug)]
pub struct Mend<'a> {
    /// True if files that somebody changed are reverted too.
    pub revert: bool,
    /// True if a repair goes ahead even if not everything can be mended.
    pub partial: bool,
    /// The folder that all recorded files are written to. Nothing else is changed then.
    pub out: Option<&'a Path>,
    /// A new tar archive that keeps everything that is written over.
    pub undo: Option<&'a Path>,
    /// True if nothing is written at all.
    pub dry_run: bool,
    /// True if everything is on the disk before the repair ends.
    pub sync: bool,
}

/// The result of a repair.
#[must_use = "files may be left as they are, or lost"]
#[derive(Debug)]
pub struct Mended {
    /// The findings before the repair.
    pub found: Examined,
    /// Entries that are as recorded again, or would be.
    pub mended: Vec<usize>,
    /// Entries that somebody changed, and that were left alone.
    pub left: Vec<usize>,
    /// Entries that could not be mended.
    pub failed: Vec<usize>,
    /// True if the caller lacks permission to read or write some of them.
    pub is_denied: bool,
    /// Entries, or parts of them, that the target cannot hold.
    pub left_out: Vec<LeftOut>,
    /// True if the sidecar was mended, or would be.
    pub sidecar: bool,
    /// Why a damaged sidecar was left alone.
    pub sidecar_left: Option<Error>,
    /// The contradiction of a sidecar whose recovery data does not mend. Without `partial` it is an error.
    pub contradiction: Option<Error>,
    /// Bytes of files that were written.
    pub written: u64,
}

/// Repairs the files that a sidecar protects, and the sidecar.
///
/// Damaged files are mended in place: only computed and proved bytes are written. An interrupted repair can be run
/// again. Missing files appear when they are whole. Nothing is reached through a symbolic link below `base`, and
/// nothing outside.
///
/// # Errors
/// [`SidecarError::BeyondRepair`], after which nothing was changed; [`SidecarError::NotACodeword`] and
/// [`SidecarError::Contradiction`], after which everything else that can be mended was;
/// [`SidecarError::OutputNotEmpty`]; those of the system.
pub fn repair(sidecar: &Sidecar, base: &Base, how: &Mend<'_>, context: &Context<'_>) -> Result<Mended> {
    let _lock = if how.dry_run { None } else { Some(sidecar.lock("repair")?) };
    let mut journal = Journal::of(sidecar)?;
    if !how.dry_run && how.out.is_none() {
        journal.check(sidecar, "repair")?;
    }
    let copy = how.out.map(|out| Copy::new(sidecar, out)).transpose()?;
    if !how.dry_run {
        // Interrupted repairs leave such rooms and files behind.
        remove_old_rooms(base);
        remove_stale(parent(sidecar.path()));
    }
    if let Some(undo) = how.undo {
        let policy = Policy { force: false, sync: false, permissions: ANYBODY };
        check_absent(undo, policy).map_err(|e| Error { action: "keep", ..e })?;
    }
    let mut found = examine(sidecar, base, Scope::All, context)?;
    let denied: Vec<usize> = found.denied().collect();
    if !denied.is_empty() && !how.partial {
        return Err(not_allowed(sidecar, base, &denied));
    }
    // Unreadable bytes count as lost when others are computed.
    let not_read = std::mem::take(&mut found.denied);
    found.erased.absorb(&not_read);
    if !found.is_mendable() && !how.partial {
        let lost = SidecarError::BeyondRepair(found.margin.lost_bytes);
        return Err(Error::at("repair", sidecar.path(), lost));
    }
    let positions = Positions::of(&sidecar.catalog);
    let begun = Begun { sidecar, base, positions: &positions, found: &found };
    if how.out.is_none() {
        begun.bear_out(&mut journal, context)?;
    }
    let (mut actions, left) = actions(sidecar, base, &found, how, copy.as_ref(), &journal)?;
    let mut denied = if how.out.is_some() { Vec::new() } else { denied };
    denied.extend(read_only(sidecar, base, &actions)?);
    denied.sort_unstable();
    if !denied.is_empty() && !how.partial {
        return Err(not_allowed(sidecar, base, &denied));
    }
    denied.iter().for_each(|entry| actions[*entry] = Action::Leave);
    let made = made_in_steps(sidecar, &actions);
    let is_journaled = how.out.is_none() && (actions.contains(&Action::Mend) || !made.is_empty());
    if is_journaled {
        journal.check_place()?;
    }
    let wanted: Vec<usize> =
        found.entries.iter().map(|report| report.entry).filter(|n| left.binary_search(n).is_err()).collect();
    let wanted = wanted.into_iter().filter(|n| denied.binary_search(n).is_err()).collect();
    // Newer generations are cut off only by a full revert.
    let is_damaged = how.out.is_none() && !found.sidecar_is_intact();
    let has_damage = found.recovery_damaged + found.recovery_displaced > 0
        || sidecar.pieces.intact < sidecar.pieces.all
        || !sidecar.pieces.displaced.is_empty();
    let sidecar_left = match sidecar.replaced_by {
        _ if !is_damaged => None,
        Some(_) if !how.revert => {
            has_damage.then(|| Error::at("repair", sidecar.path(), SidecarError::Older))
        }
        _ => sidecar.check_end(how.revert).err(),
    };
    let mends_sidecar = is_damaged && sidecar_left.is_none() && (how.revert || sidecar.replaced_by.is_none());
    // A sealed sidecar is never written to. Its container is mended instead.
    let cover = sidecar.sealed.as_ref().map(|(bytes, _)| bytes).filter(|_| how.out.is_none());
    let mends_cover = cover.is_some() && found.container_damaged;
    let (mends_sidecar, sidecar_left) = match &sidecar.sealed {
        None => (mends_sidecar, sidecar_left),
        Some(_) => {
            let lost = || Error::at("repair", sidecar.path(), SealError::BeyondContainer);
            (false, (is_damaged && has_damage).then(lost))
        }
    };
    let mut mended = Mended {
        found,
        mended: wanted,
        left,
        failed: denied.clone(),
        is_denied: !denied.is_empty(),
        left_out: Vec::new(),
        sidecar: mends_sidecar || mends_cover && sidecar_left.is_none(),
        sidecar_left,
        contradiction: None,
        written: 0,
    };
    let has_work = actions.iter().any(|action| *action != Action::Leave);
    if how.dry_run {
        return Ok(mended);
    }
    if let Some(bytes) = cover.filter(|_| mends_cover) {
        match bytes.mend(how.sync, false, context) {
            Ok(_) => mended.sidecar = true,
            Err(error) => {
                mended.sidecar = false;
                mended.sidecar_left.get_or_insert(error);
            }
        }
    }
    if !(has_work || mends_sidecar) {
        // The files of an interrupted repair are whole, or somebody has changed them since.
        if how.out.is_none() && journal.is_there() {
            journal.end();
        }
        return Ok(mended);
    }
    let out = copy.as_ref().map(Copy::begin).transpose()?;
    if is_journaled {
        journal.give_times_back(sidecar, base);
    }
    // The owners are noted before anything is kept or written, to detect concurrent writers from now on.
    let owners = match how.out {
        Some(_) => HashMap::new(),
        None => owners(base, sidecar, &actions, |entry, stat| {
            let nth = entry as usize;
            match (mended.found.state(nth), actions[nth]) {
                (State::Rotten, _) => !looks_as_it_did(sidecar, nth, stat) && !journal.is_own(nth, stat),
                // An interrupted repair has half mended it, and nobody has written to it since that was proved.
                (State::Edited | State::Shifted, _) if !how.revert => !journal.is_own(nth, stat),
                (State::Intact, Action::Mend) => !journal.is_own(nth, stat),
                _ => false,
            }
        }),
    };
    if let Some(undo) = how.undo {
        undo::keep(undo, sidecar, base, &actions, context)?;
    }
    let mut own = OwnShards::new(sidecar, &mut mended.found, mends_sidecar, context)?;
    let mut put = |group: usize, shard: u64, bytes: &[u8]| own.put_shard(sidecar, group, shard, bytes);
    let target = out.as_ref().unwrap_or(base);
    if is_journaled {
        let begun = Begun { sidecar, base, positions: &positions, found: &mended.found };
        if journal.begin(begun.list(&actions, made, journal.piece)?)? {
            journal.take_over(sidecar, base);
        }
    }
    let journal = journal;
    // Files whose bytes are all right need no computed bytes, wherever they are written to.
    let wants =
        |(nth, action): (usize, &Action)| *action != Action::Leave && !mended.found.has_all_bytes(nth);
    let wants: Vec<bool> = actions.iter().enumerate().map(wants).collect();
    let writing = Writing { sync: how.sync, is_copy: how.out.is_some(), wants, owners };
    let mut targets = Targets::new(sidecar, &positions, target, actions, writing, &mut put);
    targets.leave_out_long()?;
    let wants = targets.wants();
    let mut reader = PositionReader::new(base, &sidecar.catalog, &positions, &Any).with(&mended.found.moved);
    for (nth, _) in sidecar.catalog.files() {
        if let Action::Make { .. } = targets.actions[nth] {
            let found = &mended.found;
            targets.fill(nth as u32, &mut reader, (!found.has_all_bytes(nth)).then_some(&found.erased))?;
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
    let is_wanted =
        |position: u64| positions.within(position..position + 1).any(|span| wants[span.entry as usize]);
    let wants = Wants { position: &is_wanted, recovery: mends_sidecar, check: false };
    let contradiction = rebuild.run(&wants, &mut targets)?;
    let failed = targets.finish()?;
    mended.failed = [&failed[..], &denied].concat();
    mended.failed.sort_unstable();
    let is_denied = |entry: usize| mended.failed.binary_search(&entry).is_ok();
    mended.is_denied |= mended.found.denied().any(is_denied);
    mended.left_out = std::mem::take(&mut targets.left_out);
    mended.written = targets.written;
    let cause = targets.cause.take();
    targets.end()?;
    meter.finish();
    let whole = mended.left_out.iter().filter(|out| out.what == Part::Entry);
    let out: HashSet<usize> = whole.map(|out| out.entry).chain(mended.failed.iter().copied()).collect();
    mended.mended.retain(|entry| !out.contains(entry));
    let (own, contradiction) = match own {
        OwnShards::Left => (own, contradiction),
        // Coding its metadata gives other pieces, so the repair would write another sidecar.
        _ if !sidecar.is_coded_right(&context.settings)? => {
            (OwnShards::Left, contradiction.or(Some(SidecarError::NotACodeword(None))))
        }
        // The old sidecar stays, since it has everything that the new one would have.
        OwnShards::Anew(..) if contradiction.is_some() => (OwnShards::Left, contradiction),
        own => (own, contradiction),
    };
    mended.sidecar &= contradiction.is_none();
    own.finish(sidecar, context)?;
    if let Some(copy) = copy {
        copy.end();
    }
    // The list goes even after a contradiction: nothing is half mended, and another run would end the same.
    if how.out.is_none() && (is_journaled || journal.is_there()) {
        journal.end();
    }
    let contradiction = match (contradiction, &cause) {
        (None, _) if failed.is_empty() => None,
        (None, None) => contradiction_of(sidecar, base, &failed, context)?,
        // An entry may have failed because it needs one that could not be mended, as a link needs its file.
        (None, Some(_)) => contradiction_of(sidecar, base, &failed, context).unwrap_or_default(),
        (found, _) => found,
    };
    if let Some(contradiction) = contradiction {
        let contradiction = Error::at("repair", sidecar.path(), contradiction);
        if !how.partial {
            return Err(contradiction);
        }
        mended.contradiction = Some(contradiction);
    }
    if mended.failed.is_empty() || how.partial {
        return Ok(mended);
    }
    if let Some(cause) = cause {
        return Err(cause);
    }
    let path = &sidecar.catalog.entries[mended.failed[0]].path;
    let is_folder = target.stat(path).is_ok_and(|stat| file_type(&stat) == FileType::Directory);
    let kind = if is_folder { ErrorKind::IsFolder } else { ErrorKind::Changed };
    Err(Error::at("repair", target.place(path).as_path(), kind))
}

/// Tells whether the sidecar is why these files could not be mended. They are examined anew, since the repair has
/// written to them. A file that the system does not give back whole says nothing of the sidecar.
fn contradiction_of(
    sidecar: &Sidecar,
    base: &Base,
    failed: &[usize],
    context: &Context<'_>,
) -> Result<Option<SidecarError>> {
    let context = &context.silent();
    let examined = match examine(sidecar, base, Scope::All, context) {
        Ok(examined) => examined,
        Err(Error { kind: ErrorKind::Sidecar(found), .. })
            if matches!(*found, SidecarError::Contradiction(_)) =>
        {
            return Ok(Some(*found));
        }
        Err(error) => return Err(error),
    };
    if examined.entries.iter().any(|report| report.state == State::Unreadable) {
        return Ok(None);
    }
    Deep { sidecar, base, examined: &examined, context, meter: &Silent }.files(failed)
}

/// The error for entries that the caller may not read or write to.
fn not_allowed(sidecar: &Sidecar, base: &Base, entries: &[usize]) -> Error {
    let places = entries.iter().map(|nth| base.place(&sidecar.catalog.entries[*nth].path)).collect();
    Error::at("repair", sidecar.path(), ErrorKind::NotAllowed(places))
}

/// Files to be mended in place that the caller may not write to.
fn read_only(sidecar: &Sidecar, base: &Base, actions: &[Action]) -> Result<Vec<usize>> {
    let mut denied = Vec::new();
    for (nth, _) in actions.iter().enumerate().filter(|(_, action)| **action == Action::Mend) {
        let path = &sidecar.catalog.entries[nth].path;
        match base.may_write(path) {
            Ok(true) => {}
            Ok(false) => denied.push(nth),
            Err(e) => return Err(Error::io("write", base.place(path).as_path(), e)),
        }
    }
    Ok(denied)
}

/// A folder that everything is written to.
struct Copy<'a> {
    out: &'a Path,
    /// A mark in the folder until all is written, so that an interrupted repair can go on.
    mark: PathBuf,
    text: String,
    /// True if an interrupted repair of this sidecar wrote into the folder.
    is_begun: bool,
}

impl<'a> Copy<'a> {
    /// The name of the mark.
    const MARK: &'static str = ".fec-restoring";

    /// Checks that the folder can be written to.
    fn new(sidecar: &Sidecar, out: &'a Path) -> Result<Copy<'a>> {
        let mark = out.join(Copy::MARK);
        let text = format!("fec repair of {}\n", hex(&sidecar.root()));
        let is_begun = holds(&mark, &text);
        if !is_begun && list(out).is_ok_and(|inside| !inside.is_empty()) {
            return Err(Error::at("write", out, SidecarError::OutputNotEmpty));
        }
        Ok(Copy { out, mark, text, is_begun })
    }

    fn begin(&self) -> Result<Base> {
        std::fs::create_dir_all(self.out).map_err(|e| Error::io("create", self.out, e))?;
        write_own(&self.mark, &self.text, false)?;
        remove_stale(self.out);
        let base = Base::open(self.out).map_err(|e| Error::io("write", self.out, e))?;
        remove_old_rooms(&base);
        Ok(base)
    }

    /// Removes the mark after everything is written. A restored file may have replaced it.
    fn end(&self) {
        if holds(&self.mark, &self.text) {
            let _ = std::fs::remove_file(&self.mark);
        }
    }
}

/// Tells whether a file of one's own holds this text and nothing else.
fn holds(path: &Path, text: &str) -> bool {
    let Ok(Stands::Own(file, _)) = look(path) else { return false };
    let mut found = Vec::new();
    let read = file.take(text.len() as u64 + 1).read_to_end(&mut found);
    read.is_ok() && found == text.as_bytes()
}

/// The action for each entry, and the entries that are left as somebody changed them.
fn actions(
    sidecar: &Sidecar,
    base: &Base,
    found: &Examined,
    how: &Mend<'_>,
    copy: Option<&Copy<'_>>,
    journal: &Journal,
) -> Result<(Vec<Action>, Vec<usize>)> {
    let entries = &sidecar.catalog.entries;
    let mut actions = vec![Action::Leave; entries.len()];
    let mut left = Vec::new();
    if let Some(copy) = copy {
        // Existing files in the folder are those of an interrupted repair, or the mark.
        let make = |path: &[u8]| Action::Make { replace: copy.is_begun || path == Copy::MARK.as_bytes() };
        return Ok((entries.iter().map(|entry| make(&entry.path)).collect(), left));
    }
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
            (State::Intact, _) => Action::Leave,
            (State::Missing, _) => Action::Make { replace: false },
            (State::Moved, _) if !how.revert => {
                left.push(nth);
                Action::Leave
            }
            (State::Moved, _) => Action::Make { replace: false },
            (State::Edited | State::Shifted, _) if !(is_ours || how.revert && found.is_mendable()) => {
                left.push(nth);
                if entries[nth].kind == EntryKind::Folder {
                    left_folders.push(&entries[nth].path);
                }
                Action::Leave
            }
            (State::Edited, EntryKind::File(_)) if !is_ours && has_other_names(base, &entries[nth].path) => {
                // A file stays as it is under its other names, which may be anybody's.
                Action::Make { replace: true }
            }
            (State::Shifted, _) => Action::Make { replace: true },
            (_, EntryKind::File(_)) if base.read(&entries[nth].path).is_ok() => Action::Mend,
            _ => Action::Make { replace: true },
        };
    }
    // Bytes that stand elsewhere are copied, and never from a file that is being written to.
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
    // Files that an interrupted repair has mended, but not yet given their time.
    for (nth, entry) in entries.iter().enumerate() {
        let is_intact = actions[nth] == Action::Leave && left.binary_search(&nth).is_err();
        if !is_intact {
            continue;
        }
        match &entry.kind {
            EntryKind::File(_) if journal.has_begun(nth, base, &entry.path)? => actions[nth] = Action::Mend,
            EntryKind::Folder | EntryKind::Symlink(_) if journal.has_made(nth, sidecar, base) => {
                actions[nth] = Action::Make { replace: matches!(entry.kind, EntryKind::Symlink(_)) };
            }
            _ => {}
        }
    }
    // Further names of a file that is made anew become names of the new file.
    for (nth, entry) in entries.iter().enumerate() {
        if let EntryKind::HardLink(of) = entry.kind
            && matches!(actions[of as usize], Action::Make { .. })
            && actions[nth] == Action::Leave
            && left.binary_search(&nth).is_err()
        {
            actions[nth] = Action::Make { replace: true };
        }
    }
    Ok((actions, left))
}

/// Folders and symbolic links that are made, and get their times and permissions in further steps.
fn made_in_steps(sidecar: &Sidecar, actions: &[Action]) -> HashSet<usize> {
    let entries = sidecar.catalog.entries.iter().zip(actions).enumerate();
    let made = entries.filter(|(_, (entry, action))| {
        **action != Action::Leave && matches!(entry.kind, EntryKind::Folder | EntryKind::Symlink(_))
    });
    made.map(|(nth, _)| nth).collect()
}

/// Tells whether a path lies in a folder.
fn is_in(path: &[u8], folder: &[u8]) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.first() == Some(&b'/'))
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
            let cause = base.stat(path).err().unwrap_or_else(|| std::io::Error::from_raw_os_error(libc::EIO));
            Err(Error::io("read", base.place(path).as_path(), cause))
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

/// The destination of recovery shards in the sidecar.
enum OwnShards {
    /// The sidecar is left as it is.
    Left,
    /// Each shard goes to its place.
    InPlace(File, std::path::PathBuf),
    /// The sidecar is written anew, because parts of it have moved, or its length is wrong. Shards that became
    /// unreadable, by group and number there, must be computed.
    Anew(FileOut, HashSet<(usize, u64)>),
}

impl OwnShards {
    fn new(sidecar: &Sidecar, found: &mut Examined, mends: bool, context: &Context<'_>) -> Result<OwnShards> {
        if !mends {
            return Ok(OwnShards::Left);
        }
        let moved = found.recovery_displaced > 0 || !sidecar.shifts.is_empty();
        if moved || sidecar.expected_len() != Some(sidecar.len) {
            let policy = Policy { force: true, sync: context.settings.sync, permissions: ANYBODY };
            let out = FileOut::create(sidecar.path(), policy)?;
            let old = std::fs::metadata(sidecar.path()).map(|meta| meta.mode() & 0o7777);
            old.and_then(|old| set_mode_if_any(out.file(), old)).map_err(|e| out.failure(e))?;
            let mut first = 0;
            let mut owed = HashSet::new();
            let serves = serving(sidecar, &Positions::of(&sidecar.catalog));
            let block = u64::from(sidecar.catalog.block);
            for (nth, group) in sidecar.catalog.groups.iter().enumerate() {
                let area = &sidecar.catalog.areas[group.area as usize];
                for shard in 0..group.recovery() {
                    if found.recovery_erased.get(first + shard) {
                        continue;
                    }
                    match read_recovery(sidecar, nth, shard) {
                        Some(bytes) => out.put(area.block(group.first + shard, block).0, &bytes)?,
                        None if !serves.get(first + shard) => {}
                        // The examination still found this shard intact.
                        None => {
                            found.recovery_erased.set(first + shard);
                            owed.insert((nth, shard));
                        }
                    }
                }
                first += group.recovery();
            }
            return Ok(OwnShards::Anew(out, owed));
        }
        Ok(OwnShards::InPlace(sidecar.open_to_write("repair")?, sidecar.path().to_path_buf()))
    }

    /// Takes a computed recovery shard.
    fn put_shard(&mut self, sidecar: &Sidecar, group: usize, shard: u64, bytes: &[u8]) -> Result<()> {
        if let OwnShards::Anew(_, owed) = self {
            owed.remove(&(group, shard));
        }
        self.put(sidecar.recovery_place(group, shard), bytes)
    }

    fn put(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        match self {
            OwnShards::Left => Ok(()),
            OwnShards::InPlace(file, path) => {
                file.write_all_at(bytes, at).map_err(|e| Error::io("write", path.as_path(), e))
            }
            OwnShards::Anew(out, _) => out.put(at, bytes),
        }
    }

    /// Writes the pieces of the metadata, and syncs everything to the disk.
    fn finish(mut self, sidecar: &Sidecar, context: &Context<'_>) -> Result<()> {
        match &self {
            OwnShards::Left => return Ok(()),
            // The old sidecar stays, since it has the shards that could not be read just now.
            OwnShards::Anew(_, owed) if !owed.is_empty() => {
                return Err(Error::io("read", sidecar.path(), std::io::Error::from_raw_os_error(libc::EIO)));
            }
            _ => {}
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
        if let OwnShards::Anew(..) = self {
            // Earlier generations, whose areas it still has, can be opened by their roots.
            for (of, metadata) in sidecar.metadata_before(&context.settings)? {
                if let Some(area) = area_of(&of) {
                    let put = |at: u64, piece: &[u8]| self.put(at, piece);
                    metadata::write(metadata, of.geometry, of.layout, &area, &context.settings, put)?;
                }
            }
        }
        match self {
            OwnShards::Left => Ok(()),
            OwnShards::InPlace(file, path) if context.settings.sync => {
                file.sync_all().map_err(|e| Error::io("sync", path.as_path(), e))
            }
            OwnShards::InPlace(..) => Ok(()),
            OwnShards::Anew(out, _) => out.commit(sidecar.expected_len().unwrap_or(sidecar.len)),
        }
    }
}

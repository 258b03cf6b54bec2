//! Repairs files and their sidecar: computes, proves and writes damaged or missing bytes.

pub(crate) mod actions;
pub(crate) mod begun;
pub(crate) mod decisions;
pub(crate) mod left_out;
pub(crate) mod own_shards;
pub(crate) mod targets;
pub(crate) mod undo;

use crate::Sidecar;
use crate::catalog::journal::Journal;
use crate::catalog::positions::{Any, PositionReader, Positions};
use crate::error::SidecarError;
use crate::examine::by_stat::looks_as_it_did;
use crate::examine::deep::Deep;
use crate::examine::rebuild::{Rebuild, Wants};
use crate::examine::{Examined, Scope, State, examine, margin};
use crate::repair::actions::{EntryAction, owners};
use crate::repair::begun::Begun;
use crate::repair::decisions::{decide, made_in_steps};
pub use crate::repair::left_out::{LeftOut, Part};
use crate::repair::own_shards::OwnShards;
use crate::repair::targets::{Targets, Writing, remove_old_rooms};
use fec_base::context::Context;
use fec_base::error::{Action, Error, ErrorKind, Result};
use fec_base::io::base::{Base, file_type};
use fec_base::io::list;
use fec_base::io::output::{Policy, check_absent, write_own};
use fec_base::io::own::{Stands, look};
use fec_base::io::temporary::{parent, remove_stale};
use fec_base::names::hex;
use fecfile::seal::SealError;
use rustix::fs::FileType;
use std::collections::{HashMap, HashSet};
use std::fs::DirBuilder;
use std::io::{ErrorKind as IoKind, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Options of a repair.
#[derive(Clone, Copy, Debug, Default)]
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
    /// Why the first entry failed that the system would not let be written. Without `partial` it is an error.
    pub cause: Option<Error>,
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
    let _lock = if how.dry_run { None } else { Some(sidecar.lock(Action::Repair)?) };
    let mut journal = Journal::of(sidecar)?;
    if !how.dry_run && how.out.is_none() {
        journal.check(sidecar, Action::Repair)?;
    }
    let copy = how.out.map(|out| Copy::new(sidecar, out)).transpose()?;
    if !how.dry_run {
        // Interrupted repairs leave such rooms and files behind.
        remove_old_rooms(base);
        remove_stale(parent(sidecar.path()));
    }
    if let Some(undo) = how.undo {
        let policy = Policy::new().with_sync(false);
        check_absent(undo, policy).map_err(|e| Error { action: Action::Keep, ..e })?;
    }
    let mut found = examine(sidecar, base, Scope::All, context)?;
    let denied: Vec<usize> = found.denied().collect();
    if !denied.is_empty() && !how.partial {
        return Err(not_allowed(sidecar, base, &denied));
    }
    // Unreadable bytes count as lost when others are computed, so they use up recovery shards too.
    let positions = Positions::of(&sidecar.catalog);
    let not_read = std::mem::take(&mut found.denied);
    found.erased.absorb(&not_read);
    found.margin = margin(&sidecar.catalog, &positions, &found.erased, Some(&found.recovery_erased));
    if !found.is_mendable() && !how.partial {
        let lost = SidecarError::BeyondRepair(found.margin.lost_bytes);
        return Err(Error::at(Action::Repair, sidecar.path(), lost));
    }
    let begun = Begun { sidecar, base, positions: &positions, found: &found };
    if how.out.is_none() {
        begun.bear_out(&mut journal, context)?;
    }
    let (mut actions, left) = match &copy {
        Some(copy) => (copy.actions(sidecar), Vec::new()),
        None => decide(sidecar, base, &positions, &found, how.revert, &journal)?,
    };
    let mut denied = if how.out.is_some() { Vec::new() } else { denied };
    let (closed, barred) = closed(sidecar, base, &actions);
    let has_denied = !denied.is_empty() || barred.as_ref().is_some_and(is_denied);
    denied.extend(closed);
    denied.sort_unstable();
    let barred = match barred {
        barred if how.partial => barred,
        _ if has_denied => return Err(not_allowed(sidecar, base, &denied)),
        Some(error) => return Err(error),
        None => None,
    };
    denied.iter().for_each(|entry| actions[*entry] = EntryAction::Leave);
    let made = made_in_steps(sidecar, &actions);
    let is_journaled = how.out.is_none() && (actions.contains(&EntryAction::Mend) || !made.is_empty());
    if is_journaled {
        begun.check(&mut journal, &actions, &made)?;
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
            has_damage.then(|| Error::at(Action::Repair, sidecar.path(), SidecarError::Older))
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
            let lost = || Error::at(Action::Repair, sidecar.path(), SealError::BeyondContainer);
            (false, (is_damaged && has_damage).then(lost))
        }
    };
    let mut mended = Mended {
        found,
        mended: wanted,
        left,
        failed: denied.clone(),
        is_denied: has_denied,
        left_out: Vec::new(),
        sidecar: mends_sidecar || mends_cover && sidecar_left.is_none(),
        sidecar_left,
        cause: barred,
        contradiction: None,
        written: 0,
    };
    let has_work = actions.iter().any(|action| *action != EntryAction::Leave);
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
        let is_half_mended = denied.iter().any(|entry| journal.own.contains_key(entry));
        if how.out.is_none() && journal.is_there() && !is_half_mended {
            journal.end();
        }
        return Ok(mended);
    }
    let out = copy.as_ref().map(|copy| copy.begin(sidecar)).transpose()?;
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
                (State::Intact, EntryAction::Mend) => !journal.is_own(nth, stat),
                _ => false,
            }
        }),
    };
    if let Some(undo) = how.undo {
        undo::keep(undo, sidecar, base, &actions, context)?;
    }
    let mut own = OwnShards::new(sidecar, &positions, &mut mended.found, mends_sidecar, context)?;
    let mut put = |group: usize, shard: u64, bytes: &[u8]| own.put_shard(sidecar, group, shard, bytes);
    let target = out.as_ref().unwrap_or(base);
    if is_journaled {
        let begun = Begun { sidecar, base, positions: &positions, found: &mended.found };
        begun.begin(&mut journal, &actions, &made)?;
    }
    let journal = journal;
    // Files whose bytes are all right need no computed bytes, wherever they are written to.
    let wants = |(nth, action): (usize, &EntryAction)| {
        *action != EntryAction::Leave && !mended.found.has_all_bytes(nth)
    };
    let wants: Vec<bool> = actions.iter().enumerate().map(wants).collect();
    let writing = Writing { sync: how.sync, is_copy: how.out.is_some(), wants, owners };
    let mut targets = Targets::new(sidecar, &positions, target, actions, writing, &mut put);
    targets.leave_out_long()?;
    let wants = targets.wants();
    let mut reader = PositionReader::new(base, &sidecar.catalog, &positions, &Any).with(&mended.found.moved);
    for (nth, _) in sidecar.catalog.files() {
        if let EntryAction::Make { .. } = targets.actions[nth] {
            let found = &mended.found;
            targets.fill(nth as u32, &mut reader, (!found.has_all_bytes(nth)).then_some(&found.erased))?;
        }
    }
    let meter = context.meter(Action::Repair, None);
    let rebuild =
        Rebuild { sidecar, base, positions: &positions, examined: &mended.found, context, meter: &meter };
    let is_wanted =
        |position: u64| positions.within(position..position + 1).any(|span| wants[span.entry as usize]);
    let wants = Wants { position: &is_wanted, recovery: mends_sidecar, check: false };
    let contradiction = rebuild.run(&wants, &mut targets)?;
    let failed = targets.finish()?;
    mended.failed = [&failed[..], &denied].concat();
    mended.failed.sort_unstable();
    let has_failed = |entry: usize| mended.failed.binary_search(&entry).is_ok();
    mended.is_denied |= mended.found.denied().any(has_failed);
    mended.left_out = std::mem::take(&mut targets.left_out);
    mended.written = targets.written;
    let cause = targets.cause.take();
    let is_own = |entry: &usize| journal.own.contains_key(entry);
    let is_half_mended = targets.are_half_mended(&failed, is_own) || denied.iter().any(is_own);
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
    let contradiction = match (contradiction, &cause) {
        (None, _) if failed.is_empty() => None,
        (None, None) => contradiction_of(sidecar, base, &failed, context)?,
        // An entry may have failed because it needs one that could not be mended, as a link needs its file.
        (None, Some(_)) => contradiction_of(sidecar, base, &failed, context).unwrap_or_default(),
        (found, _) => found,
    };
    // By the list a later repair knows what is half mended. The list goes even after a contradiction: another run would
    // end the same.
    let is_listed = how.out.is_none() && (is_journaled || journal.is_there());
    if is_listed && (contradiction.is_some() || !is_half_mended) {
        journal.end();
    }
    if let Some(contradiction) = contradiction {
        let contradiction = Error::at(Action::Repair, sidecar.path(), contradiction);
        if !how.partial {
            return Err(contradiction);
        }
        mended.contradiction = Some(contradiction);
    }
    if mended.failed.is_empty() || how.partial {
        mended.is_denied |= cause.as_ref().is_some_and(is_denied);
        mended.cause = cause.or(mended.cause);
        return Ok(mended);
    }
    if let Some(cause) = cause {
        return Err(cause);
    }
    let path = &sidecar.catalog.entries[mended.failed[0]].path;
    let is_folder = target.stat(path).is_ok_and(|stat| file_type(&stat) == FileType::Directory);
    let kind = if is_folder { ErrorKind::IsFolder } else { ErrorKind::Changed };
    Err(Error::at(Action::Repair, target.place(path).as_path(), kind))
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
        Err(error) if matches!(error.cause(), Some(SidecarError::Contradiction(_))) => {
            return error.into_cause().map(Some);
        }
        Err(error) => return Err(error),
    };
    if examined.entries.iter().any(|report| report.state == State::Unreadable) {
        return Ok(None);
    }
    let meter = context.meter(Action::Verify, None);
    Deep { sidecar, base, examined: &examined, context, meter: &meter }.files(failed)
}

/// The error for entries that the caller may not read or write to.
fn not_allowed(sidecar: &Sidecar, base: &Base, entries: &[usize]) -> Error {
    let places = entries.iter().map(|nth| base.place(&sidecar.catalog.entries[*nth].path)).collect();
    Error::at(Action::Repair, sidecar.path(), ErrorKind::NotAllowed(places))
}

/// Files to be mended in place that cannot be opened for writing, and the cause. Missing permission comes first.
fn closed(sidecar: &Sidecar, base: &Base, actions: &[EntryAction]) -> (Vec<usize>, Option<Error>) {
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

/// Tells whether permission is missing.
fn is_denied(error: &Error) -> bool {
    matches!(&error.kind, ErrorKind::Io(cause) if cause.kind() == IoKind::PermissionDenied)
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
            return Err(Error::at(Action::Write, out, SidecarError::OutputNotEmpty));
        }
        Ok(Copy { out, mark, text, is_begun })
    }

    /// Everything is made. Existing files in the folder are those of an interrupted repair, or the mark.
    fn actions(&self, sidecar: &Sidecar) -> Vec<EntryAction> {
        let make =
            |path: &[u8]| EntryAction::Make { replace: self.is_begun || path == Copy::MARK.as_bytes() };
        sidecar.catalog.entries.iter().map(|entry| make(&entry.path)).collect()
    }

    /// A new folder is for those alone who may read the sidecar, which tells the names in it.
    fn begin(&self, sidecar: &Sidecar) -> Result<Base> {
        let anybody = Policy::new().with_sync(false);
        let made_of = |meta: std::fs::Metadata| anybody.made_of(meta.mode());
        let policy = std::fs::metadata(sidecar.path()).map_or(anybody, made_of);
        let made = DirBuilder::new().recursive(true).mode(policy.of_folder()).create(self.out);
        made.map_err(|e| Error::io(Action::Create, self.out, e))?;
        write_own(&self.mark, &self.text, false)?;
        remove_stale(self.out);
        let base = Base::open(self.out).map_err(|e| Error::io(Action::Write, self.out, e))?;
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

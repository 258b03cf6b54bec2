//! The state of entries by their stat alone, without reading any file.

use crate::catalog::fingerprint::{changed, fingerprint_of_stat};
use crate::catalog::hashing::is_whole;
use crate::examine::verdict::{Facts, Once, Record, State, Time, recorded_time, time_of, writer_of};
use crate::{Proof, Sidecar};
use fec_base::io::base::{Base, file_type};
use fec_core::format::sidecar::stat::mark;
use fec_core::format::sidecar::{EntryKind, FileEntry};
use rustix::fs::{FileType, Stat};
use std::io;

impl Sidecar {
    /// The proof of the record of a file with this stat.
    fn record(&self, stat: &Stat) -> Record {
        match self.proof {
            Proof::Nothing => Record::Believed,
            Proof::Root => Record::Unproved,
            // Rot does not alter the time of change, and an editor who keeps the time of modification cannot keep this
            // one.
            Proof::Metadata => Record::Proved { is_older: changed(stat) < self.changed },
        }
    }

    /// The mark that was recorded for an entry; zero if none was.
    pub(crate) fn recorded_mark(&self, nth: usize) -> u64 {
        self.stats.marks.get(nth).copied().unwrap_or(0)
    }

    /// Compares the time of a stat with the recorded one. A sidecar without marks is taken exactly.
    pub(crate) fn time_of(&self, nth: usize, stat: &Stat) -> Time {
        time_of(modified(stat), recorded_time(self.stats.entries[nth]), !self.stats.marks.is_empty())
    }

    /// The facts about an entry that was recorded as a regular file, as far as a stat tells: its bytes count as others.
    pub(crate) fn facts(&self, nth: usize, file: &FileEntry, stat: &Stat) -> Facts {
        Facts {
            is_file: file_type(stat) == FileType::RegularFile,
            has_size: stat.st_size as u64 == file.size,
            has_bytes: false,
            has_mode: (stat.st_mode & 0o100 != 0) == file.is_executable,
            once: Once::No,
            time: self.time_of(nth, stat),
            writer: writer_of(|| mark_of(stat), self.recorded_mark(nth)),
            record: self.record(stat),
        }
    }
}

/// The time of modification in a stat.
// The integer types differ between systems.
#[allow(clippy::unnecessary_cast)]
pub(crate) fn modified(stat: &Stat) -> (i64, u32) {
    (stat.st_mtime as i64, stat.st_mtime_nsec as u32)
}

/// The mark of a file with this stat.
// The integer types differ between systems.
#[allow(clippy::unnecessary_cast)]
pub(crate) fn mark_of(stat: &Stat) -> u64 {
    let (seconds, nanos) = changed(stat);
    mark((seconds, nanos as u32), stat.st_ino as u64)
}

/// The facts about an entry that was recorded as a file and can be looked at, and its fingerprint.
pub(crate) type Known = Option<(Facts, u64)>;

/// The finding on an entry by its stat.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByStat {
    /// The state if its bytes are right. `Edited` means another time, size or kind, whatever the bytes are.
    pub(crate) state: State,
    /// The facts about a file, and its fingerprint.
    pub(crate) facts: Known,
}

impl From<State> for ByStat {
    fn from(state: State) -> ByStat {
        ByStat { state, facts: None }
    }
}

/// The finding on an entry by its stat alone.
pub(crate) fn state_by_stat(sidecar: &Sidecar, base: &Base, nth: usize) -> ByStat {
    state_of_stat(sidecar, base, nth, base.stat(&sidecar.catalog.entries[nth].path))
}

/// The finding on an entry whose stat was taken.
pub(crate) fn state_of_stat(sidecar: &Sidecar, base: &Base, nth: usize, stat: io::Result<Stat>) -> ByStat {
    let entry = &sidecar.catalog.entries[nth];
    let stat = match stat {
        Ok(stat) => stat,
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return State::Missing.into();
        }
        Err(e) if e.raw_os_error() == Some(libc::ELOOP) => return State::Missing.into(),
        Err(_) => return State::Unreadable.into(),
    };
    let kind = file_type(&stat);
    let is_same = |is: bool| if is { State::Intact } else { State::Edited };
    match &entry.kind {
        EntryKind::Folder => is_same(kind == FileType::Directory).into(),
        EntryKind::Symlink(target) => {
            let is_same_target = || base.link_target(&entry.path).is_ok_and(|found| found == **target);
            is_same(kind == FileType::Symlink && is_same_target()).into()
        }
        EntryKind::HardLink(_) | EntryKind::File(_) if kind != FileType::RegularFile => State::Edited.into(),
        EntryKind::HardLink(of) => {
            let first = &sidecar.catalog.entries[*of as usize];
            let is_one = match (base.stat(&first.path), &first.kind) {
                (Ok(first), _) => (first.st_dev, first.st_ino) == (stat.st_dev, stat.st_ino),
                // The first name of the file is lost, so the bytes under this name decide.
                (Err(_), EntryKind::File(file)) => {
                    let found = base.read(&entry.path);
                    match found.and_then(|found| is_whole(&found, file, sidecar.catalog.block.into())) {
                        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                            return State::Unreadable.into();
                        }
                        is_whole => is_whole.unwrap_or(false),
                    }
                }
                _ => false,
            };
            match (is_one, file_of(sidecar, nth)) {
                (true, _) => State::Intact.into(),
                (false, Some(file)) => sidecar.facts(nth, file, &stat).state().into(),
                (false, None) => State::Edited.into(),
            }
        }
        EntryKind::File(file) => {
            let facts = sidecar.facts(nth, file, &stat);
            let looks_same = facts.is_file && facts.has_size && facts.time != Time::Other;
            ByStat { state: is_same(looks_same), facts: Some((facts, fingerprint_of_stat(&stat))) }
        }
    }
}

/// The file of an entry, or the one that a hard link is a name of.
fn file_of(sidecar: &Sidecar, nth: usize) -> Option<&FileEntry> {
    let entries = &sidecar.catalog.entries;
    let of = match entries[nth].kind {
        EntryKind::HardLink(of) => of as usize,
        _ => nth,
    };
    match &entries[of].kind {
        EntryKind::File(file) => Some(file),
        _ => None,
    }
}

/// Tells whether the path of a file, or of a hard link to one, still has the recorded look: a regular file with the
/// recorded size and time.
pub(crate) fn looks_as_it_did(sidecar: &Sidecar, nth: usize, stat: &Stat) -> bool {
    file_of(sidecar, nth).is_some_and(|file| {
        let facts = sidecar.facts(nth, file, stat);
        facts.is_file && facts.has_size && facts.time != Time::Other
    })
}

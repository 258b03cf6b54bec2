//! The state of entries by their stat alone, without reading any file.

use crate::catalog::hashing::is_whole;
use crate::examine::findings::State;
use crate::{Proof, Sidecar};
use fec_base::io::base::{Base, file_type};
use fec_core::format::sidecar::stat::Stat;
use fec_core::format::sidecar::{EntryKind, FileEntry};
use rustix::fs::FileType;
use std::io;

impl Sidecar {
    /// Tells whether a file with other bytes, but its recorded size and time, may have been edited as far as the proof
    /// goes. Without any proof the record is believed.
    fn may_be_edit(&self, stat: &rustix::fs::Stat) -> bool {
        // The integer types differ between systems.
        #[allow(clippy::unnecessary_cast)]
        let changed = (stat.st_ctime as i64, stat.st_ctime_nsec as i64);
        match self.proof {
            Proof::Nothing => false,
            Proof::Root => true,
            // Rot does not alter the time of change, and an editor who keeps the time of modification cannot keep this
            // one.
            Proof::Metadata => changed >= self.changed,
        }
    }
}

/// The state of a file with other bytes that has its recorded size and time. The cause may be rot, an editor who kept
/// the time, or a forged record that hides an edit.
pub(crate) fn rotten_or_edited(sidecar: &Sidecar, base: &Base, nth: usize) -> State {
    match base.stat(&sidecar.catalog.entries[nth].path) {
        Ok(stat) if sidecar.may_be_edit(&stat) => State::Edited,
        _ => State::Rotten,
    }
}

/// The state of an entry by its stat, and whether only its time or permissions differ. `Edited` means another time,
/// size or kind, whatever the bytes are.
pub(crate) fn state_by_stat(sidecar: &Sidecar, base: &Base, nth: usize) -> (State, bool) {
    let entry = &sidecar.catalog.entries[nth];
    let stat = match base.stat(&entry.path) {
        Ok(stat) => stat,
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return (State::Missing, false);
        }
        Err(e) if e.raw_os_error() == Some(libc::ELOOP) => return (State::Missing, false),
        Err(_) => return (State::Unreadable, false),
    };
    let kind = file_type(&stat);
    let is_same = |is: bool| if is { State::Intact } else { State::Edited };
    match &entry.kind {
        EntryKind::Folder => (is_same(kind == FileType::Directory), false),
        EntryKind::Symlink(target) => {
            let is_same_target = || base.link_target(&entry.path).is_ok_and(|found| found == **target);
            (is_same(kind == FileType::Symlink && is_same_target()), false)
        }
        EntryKind::HardLink(_) | EntryKind::File(_) if kind != FileType::RegularFile => {
            (State::Edited, false)
        }
        EntryKind::HardLink(of) => {
            let first = &sidecar.catalog.entries[*of as usize];
            let is_one = match (base.stat(&first.path), &first.kind) {
                (Ok(first), _) => (first.st_dev, first.st_ino) == (stat.st_dev, stat.st_ino),
                // The first name of the file is lost, so the bytes under this name decide.
                (Err(_), EntryKind::File(file)) => {
                    let found = base.read(&entry.path);
                    match found.and_then(|found| is_whole(&found, file, sidecar.catalog.block.into())) {
                        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                            return (State::Unreadable, false);
                        }
                        is_whole => is_whole.unwrap_or(false),
                    }
                }
                _ => false,
            };
            let state = match is_one {
                true => State::Intact,
                false if looks_as_it_did(sidecar, nth, &stat) && !sidecar.may_be_edit(&stat) => State::Rotten,
                false => State::Edited,
            };
            (state, false)
        }
        EntryKind::File(file) => {
            let recorded = sidecar.stats.entries[nth];
            // The integer types differ between systems.
            #[allow(clippy::unnecessary_cast)]
            let found = Stat {
                seconds: stat.st_mtime as i64,
                nanos: stat.st_mtime_nsec as u32,
                mode: (stat.st_mode & 0o7777) as u16,
            };
            (is_same(looks_as_recorded(file, &recorded, &stat)), found != recorded)
        }
    }
}

/// Tells whether a stat matches the record: a regular file with the recorded time, size and owner's right to execute.
fn looks_as_recorded(file: &FileEntry, recorded: &Stat, stat: &rustix::fs::Stat) -> bool {
    // The integer types differ between systems.
    #[allow(clippy::unnecessary_cast)]
    let time = (stat.st_mtime as i64, stat.st_mtime_nsec as u32);
    file_type(stat) == FileType::RegularFile
        && time == (recorded.seconds, recorded.nanos)
        && stat.st_size as u64 == file.size
        && (stat.st_mode & 0o100 != 0) == file.is_executable
}

/// Tells whether the path of a file, or of a hard link to one, still has the recorded look.
pub(crate) fn looks_as_it_did(sidecar: &Sidecar, nth: usize, stat: &rustix::fs::Stat) -> bool {
    let entries = &sidecar.catalog.entries;
    let of = match entries[nth].kind {
        EntryKind::HardLink(of) => of as usize,
        _ => nth,
    };
    match &entries[of].kind {
        EntryKind::File(file) => looks_as_recorded(file, &sidecar.stats.entries[nth], stat),
        _ => false,
    }
}

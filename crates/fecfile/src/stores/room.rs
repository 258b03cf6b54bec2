//! Folders for the shards of one segment: temporary, and gone however the process ends; those of processes that were killed go
//! when the next one is made.

use crate::error::{Error, Place, Result};
use crate::forms::shards::writer::file_name;
use crate::io::list;
use crate::io::temporary::{Temporary, is_of_the_dead, is_temporary};
use rustix::fs::{FlockOperation, flock};
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What a room may hold, but for temporary files and folders.
const PAYLOAD: &str = "payload";
const SHARDS: &str = "shards";
const PARTIAL: &str = "partial";

/// Permissions of a room: what is in it was perhaps nobody else's to read.
const ALONE: u32 = 0o700;

/// A folder for the shards of a segment.
#[derive(Debug)]
pub(super) struct Room {
    folder: Temporary,
    /// The folder itself, locked: others see that somebody is at it.
    _lock: File,
}

impl Room {
    /// An empty one, in this folder or in that of the system for temporary files.
    pub(super) fn new(spool: Option<&Path>) -> Result<Room> {
        let folder = spool.map_or_else(std::env::temp_dir, Path::to_path_buf);
        remove_stale(&folder);
        let create = |path: &Path| {
            DirBuilder::new().mode(ALONE).create(path)?;
            let lock = File::open(path)?;
            // A file system may be without locks: then nobody takes the room for a stale one either.
            let _ = flock(&lock, FlockOperation::NonBlockingLockExclusive);
            Ok(lock)
        };
        let made = Temporary::beside(&folder.join("segment"), create);
        let (folder, _lock) =
            made.map_err(|e| Error::io("create a temporary folder in", folder.as_path(), e))?;
        Ok(Room { folder, _lock })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The file for a payload that came through a pipe, which is not there at first.
    pub(super) fn payload(&self) -> PathBuf {
        self.folder.path().join(PAYLOAD)
    }

    /// The folder of its shard files, which is not there at first.
    pub(super) fn shards(&self) -> PathBuf {
        self.folder.path().join(SHARDS)
    }

    /// Makes the folders for shard files that come.
    pub(super) fn make_for_shards(&self) -> Result<()> {
        let make = |folder: PathBuf| DirBuilder::new().mode(ALONE).create(folder);
        let made = make(self.shards()).and_then(|()| make(self.folder.path().join(PARTIAL)));
        made.map_err(|e| Error::io("create", Place::Temporary, e))
    }

    /// The file for what has come of an object that is not whole yet.
    pub(super) fn partial(&self, index: u32, place: usize) -> PathBuf {
        self.folder.path().join(PARTIAL).join(format!("{index:03}.{place}"))
    }

    /// A shard file of an encoding whose files are named after `name`.
    pub(super) fn shard(&self, name: &[u8], index: usize) -> PathBuf {
        self.shards().join(file_name(name, index))
    }

    /// The same error in words that do not name a path nobody has heard of.
    pub(super) fn failure(error: Error) -> Error {
        Error { place: Place::Temporary, ..error }
    }
}

/// Removes the rooms of processes that were killed: whose process is gone, whose lock nobody holds, and in which there is nothing
/// but what belongs there, all of it or what another such process left of it. What cannot be removed stays, and hurts nobody.
fn remove_stale(folder: &Path) {
    let belongs = |name: &OsString| {
        name == PAYLOAD || name == SHARDS || name == PARTIAL || is_temporary(name.as_bytes())
    };
    // In a folder that all may write to anything may have taken its place meanwhile: a pipe would be waited for.
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let is_free = |path: &Path| -> io::Result<bool> {
        let lock = File::options().read(true).custom_flags(flags).open(path)?;
        let is_room = list(path)?.iter().all(belongs);
        Ok(is_room && flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok())
    };
    let names = list(folder).unwrap_or_default();
    for name in names.into_iter().filter(|name| is_of_the_dead(name.as_bytes())) {
        let path = folder.join(name);
        if fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_dir()) && is_free(&path).unwrap_or(false) {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process may be killed between any two steps of making a room, and of removing one.
    #[test]
    fn rooms_of_the_dead_go_whatever_is_left_of_them() {
        let spool = tempfile::tempdir().expect("a scratch folder");
        let mut child = std::process::Command::new("true").spawn().expect("a process");
        child.wait().expect("it ends");
        let dead = |number: u32| spool.path().join(format!(".fec-{}-{number}.tmp", child.id()));
        (0..6).for_each(|number| fs::create_dir(dead(number)).expect("a folder"));
        fs::create_dir(dead(1).join(SHARDS)).expect("a folder");
        fs::write(dead(1).join(SHARDS).join("a.000.shard"), b"bytes").expect("a file");
        fs::write(dead(2).join(PAYLOAD), b"bytes").expect("a file");
        fs::create_dir(dead(3).join(".fec-1-2.tmp")).expect("a folder");
        fs::write(dead(4).join("letter"), b"precious").expect("a file");
        rustix::fs::mknodat(rustix::fs::CWD, dead(6), rustix::fs::FileType::Fifo, 0o666.into(), 0)
            .expect("a pipe");
        let lock = File::open(dead(5)).expect("the folder");
        flock(&lock, FlockOperation::NonBlockingLockExclusive).expect("a lock");
        let room = Room::new(Some(spool.path())).expect("a room");
        let another = Room::new(Some(spool.path())).expect("a room");
        assert!(room.path().exists() && another.path().exists());
        let left: Vec<bool> = (0..6).map(|number| dead(number).exists()).collect();
        assert_eq!(left, [false, false, false, false, true, true]);
    }

    /// Whatever the process withholds from others, and it may be nothing.
    #[test]
    fn rooms_are_their_owners_alone() {
        use std::os::unix::fs::PermissionsExt;
        let spool = tempfile::tempdir().expect("a scratch folder");
        let room = Room::new(Some(spool.path())).expect("a room");
        room.make_for_shards().expect("its folders");
        for folder in [room.path(), &room.shards(), room.partial(0, 0).parent().expect("a folder")] {
            let mode = fs::metadata(folder).expect("the folder").permissions().mode() & 0o777;
            assert_eq!(mode & !0o700, 0, "{mode:o}");
        }
    }
}

//! Folders for the shards of one segment: temporary, and gone however the process ends; those of processes that were killed go
//! when the next one is made.

use crate::error::{Error, Place, Result};
use crate::forms::shards::writer::file_name;
use crate::io::temporary::{Temporary, is_of_the_dead};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// In each room there is a file of this name, which whoever works there has locked.
const LOCK: &str = "lock";

/// A folder for the shards of a segment.
#[derive(Debug)]
pub(super) struct Room {
    folder: Temporary,
    _lock: File,
}

impl Room {
    /// An empty one, in this folder or in that of the system for temporary files.
    pub(super) fn new(spool: Option<&Path>) -> Result<Room> {
        let folder = spool.map_or_else(std::env::temp_dir, Path::to_path_buf);
        remove_stale(&folder);
        let create = |path: &Path| {
            fs::create_dir(path)?;
            let lock = File::create_new(path.join(LOCK))?;
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

    /// A file in it.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The folder of its shard files, which is not there at first.
    pub(super) fn shards(&self) -> PathBuf {
        self.file("shards")
    }

    /// A shard file of an encoding that records `name`.
    pub(super) fn shard(&self, name: &[u8], index: usize) -> PathBuf {
        self.shards().join(file_name(name, index))
    }

    /// The same error in words that do not name a path nobody has heard of.
    pub(super) fn failure(error: Error) -> Error {
        Error { place: Place::Temporary, ..error }
    }
}

/// Removes the rooms of processes that were killed: whose process is gone, and whose lock nobody holds. What cannot be removed
/// stays, and hurts nobody.
fn remove_stale(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten().filter(|entry| is_of_the_dead(entry.file_name().as_bytes())) {
        let path = entry.path();
        let is_free = || -> io::Result<bool> {
            let lock = File::open(path.join(LOCK))?;
            Ok(lock.metadata()?.is_file() && flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok())
        };
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) && is_free().unwrap_or(false) {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

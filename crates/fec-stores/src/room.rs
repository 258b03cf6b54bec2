//! Temporary folders for the shards of a segment. They are removed however the process ends. Folders of killed
//! processes are removed when the next one is made.

use fec_base::error::{Action, Error, Place, Result};
use fec_base::io::list;
use fec_base::io::output::open_folder;
use fec_base::io::system::{create_folder, lock_alone};
use fec_base::io::temporary::{Temporary, is_of_the_dead, is_temporary};
use fecfile::within::file_name;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Permissions of a room: perhaps only the owner may read its contents.
const ALONE: u32 = 0o700;

/// Names that a room may hold, besides temporary files and folders.
const PAYLOAD: &str = "payload";
const SHARDS: &str = "shards";
const PARTIAL: &str = "partial";

/// A folder for the shards of a segment. Perhaps only the owner may read its contents, and so it is private.
#[derive(Debug)]
pub(super) struct Room {
    folder: Temporary,
    /// The locked folder; the lock shows other processes that it is in use.
    _lock: File,
}

impl Room {
    /// Makes an empty room in `spool`, or in the system's folder for temporary files.
    pub(super) fn new(spool: Option<&Path>) -> Result<Room> {
        let folder = spool.map_or_else(std::env::temp_dir, Path::to_path_buf);
        remove_stale(&folder);
        let create = |path: &Path| {
            create_folder(path, ALONE)?;
            let lock = open_folder(path)?;
            // A file system without locks is harmless: the check for stale rooms needs a lock too.
            let _ = lock_alone(&lock);
            Ok(lock)
        };
        let made = Temporary::beside(&folder.join("segment"), create);
        let (folder, _lock) =
            made.map_err(|e| Error::io(Action::CreateTemporaryFolderIn, folder.as_path(), e))?;
        Ok(Room { folder, _lock })
    }

    /// Path of the room.
    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Path for a payload from a pipe; there is no such file at first.
    pub(super) fn payload(&self) -> PathBuf {
        self.folder.path().join(PAYLOAD)
    }

    /// Path for the folder of shard files; there is no such folder at first.
    pub(super) fn shards(&self) -> PathBuf {
        self.folder.path().join(SHARDS)
    }

    /// Makes the folders for fetched shard files.
    pub(super) fn make_for_shards(&self) -> Result<()> {
        let partial = self.folder.path().join(PARTIAL);
        let made = create_folder(&self.shards(), ALONE).and_then(|()| create_folder(&partial, ALONE));
        made.map_err(|e| Error::io(Action::Create, Place::Temporary, e))
    }

    /// Path for the bytes of an object that is not whole yet.
    pub(super) fn partial(&self, index: u32, place: usize) -> PathBuf {
        self.folder.path().join(PARTIAL).join(format!("{index:03}.{place}"))
    }

    /// Path of a fetched shard file.
    pub(super) fn shard_of(&self, index: u32) -> PathBuf {
        self.shards().join(Room::shard_name(index))
    }

    /// Name of a fetched shard file.
    pub(super) fn shard_name(index: u32) -> String {
        format!("{index:03}.shard")
    }

    /// Path of a shard file of an encoding whose files are named after `name`.
    pub(super) fn shard(&self, name: &[u8], index: usize) -> PathBuf {
        self.shards().join(file_name(name, index))
    }

    /// The same error without the path, which the user does not know.
    pub(super) fn failure(error: Error) -> Error {
        Error { place: Place::Temporary, ..error }
    }
}

/// Removes rooms of killed processes. Such a room's process is gone, nobody holds its lock, and it contains only what a
/// room may hold, whole or in part. Rooms that cannot be removed stay and do no harm.
fn remove_stale(folder: &Path) {
    let belongs = |name: &OsString| {
        name == PAYLOAD || name == SHARDS || name == PARTIAL || is_temporary(name.as_encoded_bytes())
    };
    let is_free = |path: &Path| -> io::Result<bool> {
        // Anything may have taken its place in a folder that everybody may write to, even a pipe.
        let found = open_folder(path)?;
        let is_room = list(path)?.iter().all(belongs);
        Ok(is_room && lock_alone(&found).is_ok())
    };
    let names = list(folder).unwrap_or_default();
    for name in names.into_iter().filter(|name| is_of_the_dead(name.as_encoded_bytes())) {
        let path = folder.join(name);
        if fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_dir()) && is_free(&path).unwrap_or(false) {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process may be killed between any two steps of making or removing a room.
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
        let lock = open_folder(&dead(5)).expect("the folder");
        lock_alone(&lock).expect("a lock");
        let room = Room::new(Some(spool.path())).expect("a room");
        let another = Room::new(Some(spool.path())).expect("a room");
        assert!(room.path().exists() && another.path().exists());
        let left: Vec<bool> = (0..6).map(|number| dead(number).exists()).collect();
        assert_eq!(left, [false, false, false, false, true, true]);
    }

    /// Rooms are private whatever the umask, which may be 0.
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

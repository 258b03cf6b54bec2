//! A folder as a store.

use super::output::{FolderOut, Policy, check_room, is_mount};
use super::own::open_regular;
use super::temporary::{parent, remove_stale};
use super::{NewObjects, ReadAt, Store, list};
use crate::context::Progress;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files of a folder. New files appear together with the folder itself, which must be absent or empty; if shard
/// files may be replaced, it may also contain shard files alone. Leftovers of killed processes beside it are removed.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    policy: Policy,
}

impl Folder {
    /// The folder `path`, whether it exists or not.
    pub fn new(path: impl Into<PathBuf>, policy: Policy) -> Folder {
        Folder { path: path.into(), policy }
    }
}

impl Store for Folder {
    fn list(&self) -> io::Result<Vec<OsString>> {
        let mut names = list(&self.path)?;
        names.sort();
        Ok(names)
    }

    fn open(&self, name: &OsStr) -> io::Result<Box<dyn ReadAt>> {
        let none = || io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file");
        Ok(Box::new(open_regular(&self.path.join(name))?.ok_or_else(none)?))
    }

    fn create(
        &self,
        names: &[OsString],
        bytes: u64,
        progress: &dyn Progress,
    ) -> crate::Result<Box<dyn NewObjects>> {
        if is_mount(&self.path) {
            remove_stale(&self.path, progress);
        }
        FolderOut::check(&self.path, self.policy)?;
        check_room(&self.path, bytes)?;
        remove_stale(parent(&self.path), progress);
        Ok(Box::new(FolderOut::create(&self.path, names, self.policy)?))
    }
}

/// Opens a regular file. `None` for anything else, which is not opened, because that could block for ever.
///
/// # Errors
/// When the file is missing, or cannot be opened.
pub fn open_file(path: &Path) -> io::Result<Option<Arc<dyn ReadAt>>> {
    Ok(open_regular(path)?.map(|file| Arc::new(file) as _))
}

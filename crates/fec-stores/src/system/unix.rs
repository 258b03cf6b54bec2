//! The border on Unix.

use fec_base::io::output::OWNER_ALONE;
use rustix::fs::{FlockOperation, flock};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Permissions of a private folder.
const ALONE: u32 = 0o700;

/// An open folder, which a lock may show to other processes as in use.
#[derive(Debug)]
pub(crate) struct OpenFolder(File);

impl OpenFolder {
    /// Opens the folder at `path`, which this process has just made.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn own(path: &Path) -> io::Result<OpenFolder> {
        Ok(OpenFolder(File::open(path)?))
    }

    /// Opens the folder at `path`, which anybody may have put there. In a folder that everybody may write to, a pipe
    /// may have taken its place, and opening that would block.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn found(path: &Path) -> io::Result<OpenFolder> {
        let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
        Ok(OpenFolder(File::options().read(true).custom_flags(flags).open(path)?))
    }

    /// Locks the folder for this process, without waiting; false if another one has it, or the file system has no
    /// locks.
    pub(crate) fn lock(&self) -> bool {
        flock(&self.0, FlockOperation::NonBlockingLockExclusive).is_ok()
    }
}

/// Makes a folder for the owner alone.
///
/// # Errors
/// Those of the system.
pub(crate) fn make_private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(ALONE).create(path)
}

/// Lets files that are made with these options be read by their owner alone.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(OWNER_ALONE)
}

/// The path of a folder in a spelling that any other of the same folder has too, as far as the system's rules tell.
pub(crate) fn spelling(path: PathBuf) -> PathBuf {
    path
}

/// A place as the user writes it, without the slashes at its end.
pub(crate) fn without_end(place: &str) -> &str {
    place.trim_end_matches('/')
}

/// The path that stands behind `file://`, which begins with a slash.
pub(crate) fn path_of_url(behind: &str) -> &str {
    match without_end(behind) {
        "" => "/",
        path => path,
    }
}

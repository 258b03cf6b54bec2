//! Read-only files and folders of the user's own, which are made writable for the moment.

use super::system::unixes::{EFFECTIVE, PLACE};
use rustix::fs::{Mode, OFlags, Stat, accessat, fstat};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// The owner's right to write.
const WRITE: u32 = 0o200;

/// The answer to whether this user may write to a file or a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It may be written to.
    Free,
    /// It is the user's own, and read-only, with these permissions.
    ReadOnly(u32),
    /// It is somebody else's.
    NotYours,
}

impl Access {
    /// The access to something whose permissions do not let this user write.
    ///
    /// # Errors
    /// `PermissionDenied` if it is the user's own and not read-only, so that something else is in the way.
    pub(super) fn denied(stat: &Stat) -> io::Result<Access> {
        // The integer types differ between systems.
        #[allow(clippy::unnecessary_cast)]
        let mode = stat.st_mode as u32 & 0o7777;
        match stat.st_uid == geteuid().as_raw() {
            true if mode & WRITE == 0 => Ok(Access::ReadOnly(mode)),
            true => Err(io::ErrorKind::PermissionDenied.into()),
            false => Ok(Access::NotYours),
        }
    }
}

/// The access to an open folder.
///
/// # Errors
/// Those of the system, such as that of a file system that is read-only as a whole.
pub(super) fn access_of_folder(folder: impl AsFd) -> io::Result<Access> {
    let rights = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    match accessat(&folder, ".", rights, EFFECTIVE) {
        Err(Errno::ACCESS) => Access::denied(&fstat(folder)?),
        allowed => Ok(allowed.map(|()| Access::Free)?),
    }
}

/// The access to the folder at a path.
///
/// # Errors
/// Those of the system.
pub fn access_to(folder: &Path) -> io::Result<Access> {
    access_of_folder(rustix::fs::open(folder, PLACE, Mode::empty())?)
}

/// The access to the regular file at a path.
///
/// # Errors
/// Those of the system.
pub fn access_to_file(path: &Path) -> io::Result<Access> {
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Err(Errno::ACCESS) => Access::denied(&rustix::fs::stat(path)?),
        opened => Ok(opened.map(|_| Access::Free)?),
    }
}

/// Makes the folder at a path writable, if it is the user's own and read-only.
///
/// # Errors
/// Those of the system.
pub fn make_writable(folder: &Path) -> io::Result<Option<MadeWritable>> {
    match access_to(folder) {
        Ok(Access::ReadOnly(_)) => MadeWritable::of(File::open(folder)?),
        _ => Ok(None),
    }
}

/// An open file or folder that is writable as long as this lives.
#[derive(Debug)]
pub struct MadeWritable {
    file: File,
    mode: u32,
}

impl MadeWritable {
    /// Makes an open file or folder writable. `None` if its owner may write to it, or is somebody else.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn of(file: File) -> io::Result<Option<MadeWritable>> {
        let meta = file.metadata()?;
        let mode = meta.mode() & 0o7777;
        if meta.uid() != geteuid().as_raw() || mode & WRITE != 0 {
            return Ok(None);
        }
        file.set_permissions(Permissions::from_mode(mode | WRITE))?;
        Ok(Some(MadeWritable { file, mode }))
    }

    /// Puts back the permissions `mode` of an open file or folder that was made writable and never put back. Nothing
    /// but the owner's right to write is ever taken.
    ///
    /// # Errors
    /// Those of the system.
    pub fn put_back(file: &File, mode: u32) -> io::Result<()> {
        let now = file.metadata()?;
        let is_it = now.uid() == geteuid().as_raw() && now.mode() & 0o7777 == mode | WRITE;
        if is_it && mode & WRITE == 0 { file.set_permissions(Permissions::from_mode(mode)) } else { Ok(()) }
    }
}

impl Drop for MadeWritable {
    fn drop(&mut self) {
        // Permissions that somebody has set meanwhile are theirs.
        let _ = MadeWritable::put_back(&self.file, self.mode);
    }
}

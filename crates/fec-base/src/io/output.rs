//! Outputs: files and folders that appear under their names only when whole; and devices, FIFOs and sockets.

mod folder;

pub(crate) use super::system::is_mount;
pub use super::system::open_folder;
pub use folder::{FolderOut, is_shard_file};

use super::look::{Look, Over};
use super::own::{Stands, look, planted};
use super::temporary::{Temporary, parent};
use super::{NewObjects, list, system};
use crate::error::{Action, Error, ErrorKind, Place, Result};
use crate::program::stages::{self, Stage};
use fec_core::executor::lock;
use std::fs::{self, File, Metadata};
use std::io::{self, IoSlice, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

/// The receiver of a payload: a file that is made, or a writer that stays the caller's.
pub enum Destination<'a> {
    /// A file, which appears when it is whole.
    File(&'a Path, Policy),
    /// A writer, which gets the bytes from front to back, and its name in errors.
    Writer(&'a mut dyn Write, Place),
}

impl<'a> Destination<'a> {
    /// A writer that has no name.
    pub fn writer(out: &'a mut dyn Write) -> Destination<'a> {
        Destination::Writer(out, Place::Output)
    }
}

/// Rules for making an output.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Policy {
    /// An existing output may be replaced.
    pub force: bool,
    /// The output is on the disk, not only in the system's cache, before the operation ends.
    pub sync: bool,
    /// Permissions of new files, less those that the process's umask withholds. A replaced file's permissions are kept.
    pub permissions: u32,
}

/// [`permissions`](Policy::permissions) of an output without secrets.
pub const ANYBODY: u32 = 0o666;
/// [`permissions`](Policy::permissions) of a secret.
pub const OWNER_ALONE: u32 = 0o600;

impl Default for Policy {
    fn default() -> Policy {
        Policy::new()
    }
}

impl Policy {
    /// Replaces nothing, waits until the output is on the disk, and lets anybody read it whom the umask lets.
    pub const fn new() -> Policy {
        Policy { force: false, sync: true, permissions: ANYBODY }
    }

    /// The same policy, with or without leave to replace an existing output.
    pub const fn with_force(self, force: bool) -> Policy {
        Policy { force, ..self }
    }

    /// The same policy, with or without waiting for the disk.
    pub const fn with_sync(self, sync: bool) -> Policy {
        Policy { sync, ..self }
    }

    /// The same policy with other permissions of new files.
    pub const fn with_permissions(self, permissions: u32) -> Policy {
        Policy { permissions, ..self }
    }

    /// The policy for an output that is made of a file with these permissions: only readers of the file may read the
    /// output.
    pub fn made_of(self, mode: u32) -> Policy {
        let readers = [0o060, 0o006].into_iter().filter(|class| mode & class & 0o444 != 0);
        Policy { permissions: self.permissions & readers.fold(OWNER_ALONE, |all, class| all | class), ..self }
    }

    /// The policy for an output that is made of these files and of the files in these folders. Paths without accessible
    /// metadata change nothing.
    pub fn made_of_paths<'a>(self, paths: impl IntoIterator<Item = &'a Path>) -> Policy {
        paths.into_iter().fold(self, |policy, path| match fs::metadata(path) {
            Ok(meta) if meta.is_dir() => {
                let files = list(path).unwrap_or_default();
                let files = files.iter().filter_map(|name| fs::metadata(path.join(name)).ok());
                let policy = policy.made_of_folder(&meta);
                files
                    .filter(|meta| meta.is_file())
                    .fold(policy, |policy, meta| policy.made_of(system::mode(&meta)))
            }
            Ok(meta) if meta.is_file() => policy.made_of(system::mode(&meta)),
            _ => policy,
        })
    }

    /// The policy for an output that is made of files below a folder.
    pub fn made_of_folder(self, folder: &Metadata) -> Policy {
        // Permission to search a folder gives access to its files.
        let mode = system::mode(folder);
        self.made_of(mode | mode << 2)
    }

    /// Permissions of a new folder for the output: readers of the files may also search it.
    pub fn of_folder(self) -> u32 {
        self.permissions | self.permissions >> 2 & 0o111
    }
}

/// Tells whether `path` is an existing device, FIFO or socket. Such outputs are written from front to back.
pub fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| system::is_special(&meta))
}

/// Opens a device, FIFO or socket for writing.
///
/// # Errors
/// [`ErrorKind::NotOwn`] if another user may have put it there ([`planted`]); those of the system.
pub fn open_special(path: &Path) -> Result<File> {
    let fail = |e| Error::io(Action::Write, path, e);
    if let Some(wrong) = planted(path).map_err(fail)? {
        return Err(Error::at(Action::Write, path, ErrorKind::NotOwn(wrong)));
    }
    system::open_special(path).map_err(fail)
}

/// Fails when `path` exists and may not be replaced.
pub fn check_absent(path: &Path, policy: Policy) -> Result<()> {
    system::check_name(path).map_err(|e| Error::io(Action::Write, path, e))?;
    let refused = match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => ErrorKind::IsFolder,
        Ok(meta) if meta.is_symlink() => ErrorKind::IsSymlink,
        Ok(_) if !policy.force => ErrorKind::Exists,
        _ => return Ok(()),
    };
    Err(Error::at(Action::Write, path, refused))
}

/// Fails when the folder for `path` does not exist.
pub fn check_folder(path: &Path) -> Result<()> {
    fs::metadata(parent(path)).map(|_| ()).map_err(|e| Error::io(Action::Create, path, e))
}

/// Tells whether two paths name the same place, as far as their folders exist.
pub fn is_same(a: &Path, b: &Path) -> bool {
    let place =
        |path: &Path| fs::canonicalize(parent(path)).ok().zip(path.file_name().map(ToOwned::to_owned));
    let same_place = place(a).zip(place(b)).is_some_and(|((folder, name), (other, other_name))| {
        folder == other && system::folded(&name) == system::folded(&other_name)
    });
    same_place || system::identity(a).is_some_and(|a| Some(a) == system::identity(b))
}

/// The free bytes of the file system that a folder is on, if it counts them.
pub fn free_room(folder: &Path) -> Option<u64> {
    system::room(folder).ok().filter(|(blocks, _)| *blocks > 0).map(|(_, free)| free)
}

/// Fails early when the file system of `path` clearly has less free space than `bytes`.
pub fn check_room(path: &Path, bytes: u64) -> Result<()> {
    let Ok((blocks, free)) = system::room(parent(path)) else { return Ok(()) };
    if lacks_room(blocks, free, bytes) {
        return Err(Error::at(Action::Write, path, ErrorKind::NoRoom { needed: bytes, free }));
    }
    Ok(())
}

/// Tells whether a file system of this many blocks has less free space than `bytes`. A file system that reports no
/// blocks does not count them.
fn lacks_room(blocks: u64, free: u64, bytes: u64) -> bool {
    blocks > 0 && free < bytes
}

/// Serializes writes to a file. The system lets a single thread write at a time, and the others would spin meanwhile.
#[derive(Debug, Default)]
pub(super) struct Turn(Mutex<()>);

impl Turn {
    pub(super) fn take(&self) -> MutexGuard<'_, ()> {
        lock(&self.0)
    }
}

/// A regular file that appears under its name only when whole.
#[derive(Debug)]
pub struct FileOut {
    target: PathBuf,
    policy: Policy,
    /// The only file that may be replaced, if the caller knows it.
    known: Option<Look>,
    temporary: Temporary,
    file: File,
    turn: Turn,
}

impl FileOut {
    /// Starts a file that will be `target`. Leftovers of killed processes beside it stay:
    /// [`remove_stale`](super::temporary::remove_stale).
    pub fn create(target: &Path, policy: Policy) -> Result<FileOut> {
        check_absent(target, policy)?;
        let old = fs::symlink_metadata(target).ok().filter(|meta| meta.is_file());
        // The file is private until it has the permissions of the old file.
        let mode = if old.is_some() { OWNER_ALONE } else { policy.permissions };
        let fail = |e| Error::io(Action::Create, target, e);
        let (temporary, file) =
            Temporary::beside(target, |path| system::create_new(path, mode)).map_err(fail)?;
        if let Some(old) = old {
            if_any(system::keep_mode(&file, (target, &old))).map_err(fail)?;
        }
        // The lock shows other processes that the file is in use. Some file systems have no locks.
        let _ = system::lock_alone(&file);
        let target = target.to_path_buf();
        Ok(FileOut { target, policy, known: None, temporary, file, turn: Turn::default() })
    }

    /// Lets only the file that looks like this be replaced, and none that somebody puts in its place.
    pub fn replace_only(&mut self, known: Look) {
        self.known = Some(known);
    }

    /// The file, to write into.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Writes bytes at an offset.
    ///
    /// # Errors
    /// Those of the file.
    pub fn put(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let _turn = self.turn.take();
        system::write_all_at(&self.file, bytes, offset).map_err(|e| self.failure(e))
    }

    /// The error of a failed write to this output.
    pub fn failure(&self, cause: io::Error) -> Error {
        Error::io(Action::Write, self.target.as_path(), cause)
    }

    /// Sets the file's length, makes it durable if the policy says so, and gives it its name.
    ///
    /// # Errors
    /// [`ErrorKind::Overtaken`] if another file has the name than the one that may be replaced; those of the system.
    pub fn commit(self, len: u64) -> Result<()> {
        let FileOut { target, policy, known, temporary, file, .. } = self;
        let fail = |e: io::Error| Error::io(Action::Write, target.as_path(), e);
        file.set_len(len).map_err(fail)?;
        if policy.sync {
            let _stage = stages::enter(Stage::Sync, 0);
            system::sync(&file).map_err(fail)?;
        }
        system::close_copy(&file).map_err(fail)?;
        let over = match known {
            Some(look) => Over::Known(look),
            None if policy.force => Over::Anything,
            None => Over::Nothing,
        };
        let named = temporary.commit(|from| system::rename(from, &target, over));
        // Under its name the file is anybody's to lock.
        system::unlock(&file);
        named.map_err(|e| match e.kind() {
            io::ErrorKind::AlreadyExists if known.is_some() => {
                Error::at(Action::Write, target.as_path(), ErrorKind::Overtaken)
            }
            io::ErrorKind::AlreadyExists => check_absent(&target, policy).err().unwrap_or_else(|| fail(e)),
            _ => fail(e),
        })?;
        sync_named(&target, policy, &file)
    }
}

/// Gives a file these permissions, unless it has them already.
///
/// # Errors
/// Those of the system.
pub fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    match system::mode(&file.metadata()?) & 0o7777 {
        now if now == mode => Ok(()),
        _ => system::set_mode(file, mode),
    }
}

/// As [`set_mode`], but a file system without permissions is no error.
///
/// # Errors
/// Those of the system, except for missing support.
pub fn set_mode_if_any(file: &File, mode: u32) -> io::Result<()> {
    if_any(set_mode(file, mode))
}

/// Ignores errors that mean that a file system lacks a feature.
///
/// # Errors
/// All other errors.
pub fn if_any(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(e) if system::is_missing_feature(&e) => Ok(()),
        done => done,
    }
}

/// Makes the new name of an output durable; `of` is open on the same file system. The output stays if that fails.
fn sync_named(target: &Path, policy: Policy, of: &File) -> Result<()> {
    sync_folder(parent(target), policy, Some(of)).map_err(|error| match error.kind {
        ErrorKind::Io(cause) => Error::at(Action::Write, target, ErrorKind::NotSynced(cause)),
        _ => error,
    })
}

fn sync_folder(folder: &Path, policy: Policy, of: Option<&File>) -> Result<()> {
    if !policy.sync {
        return Ok(());
    }
    let _stage = stages::enter(Stage::Sync, 0);
    system::sync_names(folder, of).map_err(|e| Error::io(Action::Sync, folder, e))
}

/// Makes an existing file or folder durable.
///
/// # Errors
/// Those of the system.
pub fn sync(path: &Path) -> Result<()> {
    sync_folder(path, Policy::new(), None)
}

/// A file is a single object, number 0.
impl NewObjects for FileOut {
    fn write_at(&self, _object: usize, offset: u64, parts: &mut [IoSlice<'_>]) -> io::Result<()> {
        let _turn = self.turn.take();
        write_all_vectored_at(&self.file, parts, offset)
    }

    fn place(&self) -> Place {
        self.target.as_path().into()
    }

    fn read_back(&self, _object: usize, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        read_full_at(&self.file, offset, out)
    }

    fn commit(self: Box<Self>) -> Result<()> {
        let len = self.file.metadata().map_err(|e| self.failure(e))?.len();
        FileOut::commit(*self, len)
    }
}

/// Fills `out` with the bytes from `offset` on, as far as there are any; returns their number.
fn read_full_at(file: &File, offset: u64, out: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < out.len() {
        match system::read_at(file, &mut out[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}

/// Writes all of `rows` in sequence from byte `at` on. The list is used up.
fn write_all_vectored_at(file: &File, mut rows: &mut [IoSlice], mut at: u64) -> io::Result<()> {
    // Skips empty rows at the start.
    IoSlice::advance_slices(&mut rows, 0);
    while !rows.is_empty() {
        match system::write_at(file, rows, at) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                at += written as u64;
                IoSlice::advance_slices(&mut rows, written);
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Writes a small text file by the rules for any output.
pub fn write_text(path: &Path, text: &str, policy: Policy) -> Result<()> {
    if is_special(path) {
        return open_special(path)?.write_all(text.as_bytes()).map_err(|e| Error::io(Action::Write, path, e));
    }
    let out = FileOut::create(path, policy)?;
    out.put(0, text.as_bytes())?;
    out.commit(text.len() as u64)
}

/// Writes a small private text file, which may replace an older file of the same user.
///
/// # Errors
/// [`ErrorKind::NotOwn`] if anything else is there; those of the file.
pub fn write_own(path: &Path, text: &str, sync: bool) -> Result<()> {
    let out = own(path, Policy::new().with_sync(sync).with_permissions(OWNER_ALONE))?;
    // The old file's permissions are not kept.
    set_mode_if_any(out.file(), OWNER_ALONE).map_err(|e| out.failure(e))?;
    out.put(0, text.as_bytes())?;
    out.commit(text.len() as u64)
}

/// Writes a small text file for other programs to read, which may replace an older file of the same user; its
/// permissions are kept. It is whole whenever it is looked at, and need not be on the disk.
///
/// # Errors
/// [`ErrorKind::NotOwn`] if anything else is there; those of the file.
pub fn write_shown(path: &Path, text: &str) -> Result<()> {
    let out = own(path, Policy::new().with_sync(false))?;
    out.put(0, text.as_bytes())?;
    out.commit(text.len() as u64)
}

/// Starts a file that may replace an older one of the same user, and nothing else.
fn own(path: &Path, policy: Policy) -> Result<FileOut> {
    check_own(path, Action::Write)?;
    FileOut::create(path, policy.with_force(true))
}

/// Opens the user's own file for reading; `None` if there is none.
///
/// # Errors
/// [`ErrorKind::NotOwn`] if anything else is there; those of the file.
pub fn check_own(path: &Path, action: Action) -> Result<Option<(File, Metadata)>> {
    match look(path).map_err(|e| Error::io(action, path, e))? {
        Stands::Nothing => Ok(None),
        Stands::Own(file, meta) => Ok(Some((file, meta))),
        Stands::Other(wrong) => Err(Error::at(action, path, ErrorKind::NotOwn(wrong))),
    }
}

/// Writes a secret to a new file, which only its owner may read at any time.
///
/// # Errors
/// Those of the file, and that it exists.
pub fn write_secret(path: &Path, secret: &[u8]) -> Result<()> {
    let out = FileOut::create(path, Policy::new().with_permissions(OWNER_ALONE))?;
    out.put(0, secret)?;
    out.commit(secret.len() as u64)
}

#[cfg(all(test, unix))]
mod tests;

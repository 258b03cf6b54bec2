//! A folder of files as an output, which can take the place of an older one.

use super::{Policy, if_any, open_folder, read_full_at, sync_folder, sync_named, write_all_vectored_at};
use crate::error::{Action, Error, ErrorKind, Place, Result};
use crate::io::look::Over;
use crate::io::own::open_regular;
use crate::io::temporary::{Temporary, parent};
use crate::io::{NewObjects, list, remove_folder, system};
use crate::program::stages::{self, Stage};
use crate::threads::Threads;
use fec_core::executor::{Executor, into_value, lock};
use fec_core::format::shard_file;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, IoSlice, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Files synced at the same time.
const SYNCS: usize = 4;

/// A folder of files that appears under its name only when all files are whole.
#[derive(Debug)]
pub struct FolderOut {
    target: PathBuf,
    policy: Policy,
    // These are closed before the folder is removed: some file systems keep names of open files.
    files: Vec<File>,
    /// The locked folder; the lock shows other processes that it is in use.
    pub(super) lock: Option<File>,
    temporary: Temporary,
    /// A disk is mounted at the target, which can be filled and not replaced.
    is_mount: bool,
}

impl FolderOut {
    /// Starts a folder that will be `target`, with files of these names. Leftovers of killed processes beside it stay,
    /// as for a [`FileOut`](super::FileOut).
    pub fn create(target: &Path, names: &[OsString], policy: Policy) -> Result<FolderOut> {
        FolderOut::check(target, policy)?;
        let fail = |e: io::Error| Error::io(Action::Create, target, e);
        let old = fs::symlink_metadata(target).ok().filter(|meta| meta.is_dir());
        let create = |path: &Path| system::create_folder(path, policy.of_folder());
        let is_mount = old.is_some() && system::is_mount(target);
        let place = if is_mount { target.join("files") } else { target.to_path_buf() };
        let (temporary, ()) = Temporary::beside(&place, create).map_err(fail)?;
        // Some file systems have no locks.
        let lock = open_folder(temporary.path()).ok();
        if let Some(folder) = &lock {
            let _ = system::lock_alone(folder);
        }
        let keep_mode = || match &old {
            Some(old) => if_any(system::keep_mode_of_folder(temporary.path(), (target, old))),
            None => Ok(()),
        };
        if system::FILES_INHERIT {
            keep_mode().map_err(fail)?;
        }
        let mut files = Vec::with_capacity(names.len());
        for name in names {
            let path = temporary.path().join(name);
            files.push(system::create_new(&path, policy.permissions).map_err(fail)?);
        }
        // The old folder may be one in which nothing can be made.
        if !system::FILES_INHERIT {
            keep_mode().map_err(fail)?;
        }
        Ok(FolderOut { target: target.to_path_buf(), policy, temporary, files, lock, is_mount })
    }

    /// Fails when `target` exists and may not be replaced. Without `force` only an empty folder may be replaced, with
    /// it also a folder of shard files alone.
    pub fn check(target: &Path, policy: Policy) -> Result<()> {
        system::check_name(target).map_err(|e| Error::io(Action::Write, target, e))?;
        let Ok(meta) = fs::symlink_metadata(target) else { return Ok(()) };
        if !meta.is_dir() {
            return Err(Error::at(Action::Write, target, ErrorKind::NotAFolder));
        }
        for name in list(target).map_err(|e| Error::io(Action::Read, target, e))? {
            let path = target.join(name);
            if !policy.force {
                return Err(Error::at(Action::Write, target, ErrorKind::FolderNotEmpty));
            }
            // An unreadable file may be anything, so it is an error.
            if !is_shard_file(&path).map_err(|e| Error::io(Action::Read, path.as_path(), e))? {
                return Err(Error::at(Action::Replace, target, ErrorKind::NotAShardFile(path)));
            }
        }
        Ok(())
    }

    /// Makes all files durable and gives the folder its name.
    pub(super) fn commit(self) -> Result<()> {
        let FolderOut { target, policy, temporary, files, lock: lock_file, is_mount } = self;
        let fail = |e: io::Error| Error::io(Action::Write, target.as_path(), e);
        if policy.sync {
            let _stage = stages::enter(Stage::Sync, 0);
            let first_error = Mutex::new(None);
            // Waiting for a disk uses no processor time, so these threads do not count against the caller's.
            Threads(SYNCS).run(files.len(), &|i| {
                if let Err(e) = system::sync(&files[i]) {
                    lock(&first_error).get_or_insert(e);
                }
            });
            if let Some(e) = into_value(first_error) {
                return Err(fail(e));
            }
        }
        files.into_iter().try_for_each(system::close).map_err(fail)?;
        sync_folder(temporary.path(), policy, lock_file.as_ref())?;
        if is_mount {
            temporary.commit(|from| fill(from, &target, policy)).map_err(fail)?;
            return sync_folder(&target, policy, None);
        }
        FolderOut::check(&target, policy)?;
        temporary.commit(|from| replace_folder(from, &target, policy, lock_file.as_ref())).map_err(fail)?;
        lock_file.iter().for_each(system::unlock);
        match &lock_file {
            Some(of) => sync_named(&target, policy, of),
            None => sync_folder(parent(&target), policy, None),
        }
    }
}

impl NewObjects for FolderOut {
    fn write_at(&self, object: usize, offset: u64, parts: &mut [IoSlice<'_>]) -> io::Result<()> {
        write_all_vectored_at(&self.files[object], parts, offset)
    }

    fn place(&self) -> Place {
        self.target.as_path().into()
    }

    fn read_back(&self, object: usize, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        read_full_at(&self.files[object], offset, out)
    }

    fn commit(self: Box<Self>) -> Result<()> {
        FolderOut::commit(*self)
    }
}

/// Moves the files of a folder to the folder that it lies in. Each is whole when it appears. With `force`, shard files
/// that were there are removed afterwards: the new ones are enough by then.
fn fill(from: &Path, to: &Path, policy: Policy) -> io::Result<()> {
    let (new, there) = (list(from)?, list(to)?);
    let over = if policy.force { Over::Anything } else { Over::Nothing };
    system::move_files(&new, from, to, over)?;
    for old in there.iter().filter(|name| policy.force && !new.contains(name)).map(|name| to.join(name)) {
        if is_shard_file(&old)? {
            fs::remove_file(old)?;
        }
    }
    fs::remove_dir(from)
}

/// Renames a folder into place. With `force` an old folder is removed afterwards, once the new name is durable:
/// otherwise a loss of power could bring back the old name without its contents.
pub(super) fn replace_folder(from: &Path, to: &Path, policy: Policy, of: Option<&File>) -> io::Result<()> {
    match system::rename_folder(from, to) {
        // Without `force` the folder was empty when checked, so newer files in it are not ours.
        Err(e) if policy.force && e.kind() == io::ErrorKind::DirectoryNotEmpty => {
            let exchange = || system::exchange(from, to).map_err(cannot_exchange);
            exchange()?;
            // Under the temporary name no other process finds the folder, so this check sees exactly the files to be
            // removed.
            let checked = FolderOut::check(from, policy).map_err(|_| e);
            let synced = checked.and_then(|()| match sync_folder(parent(to), policy, of) {
                Err(Error { kind: ErrorKind::Io(cause), .. }) => Err(cause),
                other => other.map_err(|error| io::Error::other(error.to_string())),
            });
            if let Err(e) = synced {
                exchange()?;
                return Err(e);
            }
            remove_folder(from)
        }
        other => other,
    }
}

/// The error of an exchange of two folders. A file system that cannot exchange them in a single step cannot replace a
/// folder safely.
fn cannot_exchange(e: io::Error) -> io::Error {
    if !system::is_lacking(&e) {
        return e;
    }
    io::Error::new(
        io::ErrorKind::Unsupported,
        "this file system cannot exchange two folders, so the old one stays: remove it first, or choose another name",
    )
}

/// Tells whether `path` is a file that starts like a shard file.
///
/// # Errors
/// When the file is missing, or cannot be read.
pub fn is_shard_file(path: &Path) -> io::Result<bool> {
    let mut magic = [0u8; 8];
    if !fs::symlink_metadata(path)?.is_file() {
        return Ok(false);
    }
    let Some(mut file) = open_regular(path)? else { return Ok(false) };
    match file.read_exact(&mut magic) {
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| shard_file::has_magic(&magic)),
    }
}

//! Nothing partial stays behind: temporary files and folders are removed when they are dropped. A program that ends by
//! a signal or a panic drops nothing: its own handlers may call [`remove_all`] or [`try_remove_all`].

use fec_core::executor::lock;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, TryLockError};

static PENDING: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn pending() -> MutexGuard<'static, Vec<PathBuf>> {
    lock(&PENDING)
}

fn remove(path: &Path) {
    /// Other threads may go on making files in a folder while it is emptied: at most as many as there are shards.
    const ATTEMPTS: usize = 300;
    let is_dir = fs::symlink_metadata(path).is_ok_and(|m| m.is_dir());
    for _ in 0..ATTEMPTS {
        let removed = if is_dir { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        // Nothing can be done about another failure, and the operation's own error is the one to show.
        match removed {
            Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty => {}
            _ => return,
        }
    }
}

/// A temporary path, removed unless [`Temporary::commit`] turned it into the real thing.
#[derive(Debug)]
pub struct Temporary {
    path: PathBuf,
}

impl Temporary {
    /// Makes a path next to `target` and has `create` make the file or folder there. The list is
    /// locked until the name is in it, so that a signal at any moment finds all that exists.
    pub fn beside<T>(target: &Path, create: impl Fn(&Path) -> io::Result<T>) -> io::Result<(Temporary, T)> {
        let folder = parent(target);
        let mut attempt = 0u32;
        loop {
            let path = folder.join(format!(".fec-{}-{attempt}.tmp", std::process::id()));
            let mut list = pending();
            match create(&path) {
                Ok(made) => {
                    list.push(path.clone());
                    return Ok((Temporary { path }, made));
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists && attempt < 1000 => attempt += 1,
                Err(e) => return Err(e),
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `rename`, and takes the path off the list, so that [`remove_all`] cannot come between the two.
    pub fn commit<T>(self, rename: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
        let mut list = pending();
        let done = rename(&self.path)?;
        list.retain(|p| *p != self.path);
        Ok(done)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let mut list = pending();
        if list.contains(&self.path) {
            remove(&self.path);
            list.retain(|p| *p != self.path);
        }
    }
}

/// The folder that holds `path`.
pub fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Removes all that is temporary in this process, then calls `end`, which should end it: until then nothing is created or
/// renamed any more.
pub fn remove_all(end: impl FnOnce()) {
    let list = pending();
    list.iter().for_each(|path| remove(path));
    end();
}

/// [`remove_all`] for a thread that may hold the list itself, as one that panics may. False: the list is locked, and
/// nothing was removed.
pub fn try_remove_all() -> bool {
    let list = match PENDING.try_lock() {
        Err(TryLockError::WouldBlock) => return false,
        Err(TryLockError::Poisoned(list)) => list.into_inner(),
        Ok(list) => list,
    };
    list.iter().for_each(|path| remove(path));
    true
}

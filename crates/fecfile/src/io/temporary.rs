//! Nothing partial stays behind: temporary files and folders are removed when they are dropped, and what was appended to a
//! file is cut off again. A program that ends by a signal or a panic drops nothing: its own handlers may call
//! [`remove_all`] or [`try_remove_all`].

use fec_core::executor::lock;
use rustix::fs::{FlockOperation, flock};
use rustix::process::Pid;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

static PENDING: Mutex<Vec<Pending>> = Mutex::new(Vec::new());

/// What is undone unless it is committed.
#[derive(Debug)]
enum Pending {
    /// A path is removed.
    Path(PathBuf),
    /// A file gets this length.
    Length(Arc<File>, u64),
}

impl Pending {
    fn undo(&self) {
        match self {
            Pending::Path(path) => remove(path),
            // As with a path: the operation's own error is the one to show.
            Pending::Length(file, len) => drop(file.set_len(*len)),
        }
    }

    fn path(&self) -> Option<&Path> {
        match self {
            Pending::Path(path) => Some(path),
            Pending::Length(..) => None,
        }
    }

    fn is_path(&self, of: &Path) -> bool {
        matches!(self, Pending::Path(path) if path == of)
    }

    fn is_file(&self, of: &Arc<File>) -> bool {
        matches!(self, Pending::Length(file, _) if Arc::ptr_eq(file, of))
    }
}

fn pending() -> MutexGuard<'static, Vec<Pending>> {
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
    /// It is the real thing now: another may have the name already.
    is_committed: bool,
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
                    list.push(Pending::Path(path.clone()));
                    return Ok((Temporary { path, is_committed: false }, made));
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
    pub fn commit<T>(mut self, rename: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
        let mut list = pending();
        let done = rename(&self.path)?;
        list.retain(|pending| !pending.is_path(&self.path));
        self.is_committed = true;
        Ok(done)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if self.is_committed {
            return;
        }
        let mut list = pending();
        if let Some(at) = list.iter().position(|pending| pending.is_path(&self.path)) {
            list.swap_remove(at).undo();
        }
    }
}

/// A file that is appended to: what was appended is cut off again unless [`Appended::commit`] keeps it.
#[derive(Debug)]
pub struct Appended {
    file: Arc<File>,
}

impl Appended {
    /// A file that is appended to from byte `len` on.
    pub fn new(file: File, len: u64) -> Appended {
        let file = Arc::new(file);
        pending().push(Pending::Length(Arc::clone(&file), len));
        Appended { file }
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Puts bytes at a place. The list is locked, so that nothing is written any more after [`remove_all`] has cut.
    pub fn put(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let _list = pending();
        self.file.write_all_at(bytes, offset)
    }

    /// Gives the file a length, as [`put`](Appended::put) puts bytes.
    pub fn set_len(&self, len: u64) -> io::Result<()> {
        let _list = pending();
        self.file.set_len(len)
    }

    /// Keeps what was appended.
    pub fn commit(self) {
        pending().retain(|pending| !pending.is_file(&self.file));
    }
}

impl Drop for Appended {
    fn drop(&mut self) {
        let mut list = pending();
        if let Some(at) = list.iter().position(|pending| pending.is_file(&self.file)) {
            list.swap_remove(at).undo();
        }
    }
}

/// Removes the temporary files of processes that were killed from a folder: those that nobody has locked, and whose process is
/// gone. What cannot be removed stays, and hurts nobody.
pub fn remove_stale(folder: &Path) {
    let is_file = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_file());
    remove_unlocked(folder, is_file, is_of_the_dead);
}

/// [`remove_stale`], and folders of shard files that were not finished; also what an earlier process left that had the number
/// of this one, as the processes of containers often have.
pub fn remove_stale_outputs(folder: &Path) {
    let names: Vec<_> =
        pending().iter().filter_map(|pending| pending.path()?.file_name().map(ToOwned::to_owned)).collect();
    let is_earlier = |name: &[u8]| {
        pid_of(name) == Some(rustix::process::getpid()) && names.iter().all(|own| own.as_bytes() != name)
    };
    let is_output = |entry: &fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => is_shards_only(&entry.path()),
        kind => kind.is_ok_and(|kind| kind.is_file()),
    };
    remove_unlocked(folder, is_output, |name| is_of_the_dead(name) || is_earlier(name));
}

fn remove_unlocked(
    folder: &Path,
    is_meant: impl Fn(&fs::DirEntry) -> bool,
    is_stale: impl Fn(&[u8]) -> bool,
) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if is_stale(entry.file_name().as_bytes())
            && is_meant(&entry)
            && let Ok(file) = File::open(&path)
            && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
        {
            remove(&path);
        }
    }
}

/// Whether there is nothing in a folder but files with the names of shard files.
fn is_shards_only(folder: &Path) -> bool {
    let is_shard = |entry: fs::DirEntry| {
        entry.file_name().as_bytes().ends_with(b".shard")
            && entry.file_type().is_ok_and(|kind| kind.is_file())
    };
    fs::read_dir(folder).is_ok_and(|mut entries| entries.all(|entry| entry.is_ok_and(is_shard)))
}

/// Whether a name is that of a temporary file or folder.
pub fn is_temporary(name: &[u8]) -> bool {
    pid_of(name).is_some()
}

/// Whether a name is that of a temporary file or folder of a process that is gone.
pub fn is_of_the_dead(name: &[u8]) -> bool {
    pid_of(name).is_some_and(|pid| rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH))
}

/// The process that made a temporary file or folder, by its name.
fn pid_of(name: &[u8]) -> Option<Pid> {
    let name = std::str::from_utf8(name).ok()?;
    let (pid, attempt) = name.strip_prefix(".fec-")?.strip_suffix(".tmp")?.split_once('-')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let pid = if is_number(pid) && is_number(attempt) { pid.parse().ok()? } else { return None };
    Pid::from_raw(pid)
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
    list.iter().for_each(Pending::undo);
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
    list.iter().for_each(Pending::undo);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name is free again as soon as its file has another: whoever takes it next keeps it.
    #[test]
    fn names_that_are_used_again_at_once() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let folder = folder.path();
                scope.spawn(move || {
                    for nth in 0..500 {
                        let target = folder.join(format!("{thread}-{nth}"));
                        let (temporary, _) =
                            Temporary::beside(&target, |path| File::create_new(path)).expect("a name");
                        temporary.commit(|path| fs::rename(path, &target)).expect("it is still there");
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 2000);
    }
}

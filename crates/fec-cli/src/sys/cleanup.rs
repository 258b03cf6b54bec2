//! Nothing partial stays behind: temporary files and folders are removed when they are dropped, and
//! when a signal or a panic ends the process.

use super::sigbus::is_ignored;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// A first signal does not end the process, but is taken note of.
static DEFERRED: AtomicBool = AtomicBool::new(false);
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// From now on the first signal only sets what [`interrupted`] tells, so that a long run can print what it has;
/// the second one ends the process as always.
pub(crate) fn defer_signals() {
    DEFERRED.store(true, Ordering::Relaxed);
}

/// Whether a signal asked for the end.
pub(crate) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

static PENDING: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn pending() -> MutexGuard<'static, Vec<PathBuf>> {
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
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
pub(crate) struct Temporary {
    path: PathBuf,
}

impl Temporary {
    /// Makes a path next to `target` and has `create` make the file or folder there. The list is
    /// locked until the name is in it, so that a signal at any moment finds all that exists.
    pub(crate) fn beside<T>(
        target: &Path,
        create: impl Fn(&Path) -> io::Result<T>,
    ) -> io::Result<(Temporary, T)> {
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

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `rename` while no signal can come between it and the end of this guard's duty.
    pub(crate) fn commit<T>(self, rename: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
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
pub(crate) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// From now on SIGINT, SIGTERM, SIGHUP and SIGQUIT remove what is temporary and end the process with 130; but
/// not those that whoever started the process chose to ignore. A file size limit is an error like any other.
pub(crate) fn on_signals() -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};
    // Not the end: the write that went over the limit fails, and its error is reported.
    signal_hook::flag::register(SIGXFSZ, Arc::default())?;
    let wanted: Vec<i32> =
        [SIGINT, SIGTERM, SIGHUP, SIGQUIT].into_iter().filter(|s| !is_ignored(*s)).collect();
    let mut signals = signal_hook::iterator::Signals::new(wanted)?;
    std::thread::Builder::new().name("signals".into()).stack_size(128 << 10).spawn(move || {
        for _ in signals.forever() {
            if DEFERRED.load(Ordering::Relaxed) && !INTERRUPTED.swap(true, Ordering::Relaxed) {
                continue;
            }
            // Held until the end: nothing is created or renamed any more.
            let list = pending();
            list.iter().for_each(|path| remove(path));
            signal_hook::low_level::exit(130);
        }
    })?;
    Ok(())
}

/// From now on a panic in any thread, which is a fault of the program, is told as always, removes what is temporary and ends
/// the process with 101. So nothing unwinds, and builds for boards leave that out.
pub(crate) fn on_panics() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tell(panic);
        // This thread may hold the list itself; another one does so for a moment only.
        for _ in 0..100 {
            let list = match PENDING.try_lock() {
                Err(TryLockError::WouldBlock) => {
                    std::thread::sleep(Duration::from_millis(10));
                    continue;
                }
                Err(TryLockError::Poisoned(list)) => list.into_inner(),
                Ok(list) => list,
            };
            list.iter().for_each(|path| remove(path));
            signal_hook::low_level::exit(101);
        }
        signal_hook::low_level::exit(101);
    }));
}

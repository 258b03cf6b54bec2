//! Temporary files and folders, which are removed when dropped, and appended bytes, which are cut off when dropped. No
//! partial output stays behind. A program that ends by a signal or a panic drops nothing: its own handlers may call
//! [`remove_all`] or [`try_remove_all`].

use super::{list, remove_folder, system};
use crate::context::{Notice, Progress};
use crate::names::show;
use fec_core::digest::HashKind;
use fec_core::executor::lock;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, TryLockError};
use std::time::{Duration, SystemTime};

static PENDING: Mutex<Vec<Pending>> = Mutex::new(Vec::new());

/// A change that is undone unless it is committed.
#[derive(Debug)]
enum Pending {
    /// The path is removed.
    Path(PathBuf),
    /// The file is cut to this length.
    Length(Arc<File>, u64),
}

impl Pending {
    fn undo(&self) {
        match self {
            Pending::Path(path) => remove(path),
            // A failure here is ignored, because the operation's own error is the one to show.
            Pending::Length(file, len) => drop(file.set_len(*len)),
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

/// The list, with room for one more. Without memory the process ends while the list is free, so that its handler can
/// remove what is in it.
fn pending_with_room() -> MutexGuard<'static, Vec<Pending>> {
    let mut list = pending();
    if list.try_reserve(1).is_err() {
        drop(list);
        std::alloc::handle_alloc_error(std::alloc::Layout::new::<Pending>());
    }
    list
}

fn remove(path: &Path) {
    /// Other threads may go on making files in a folder while it is emptied, at most as many as there are shards.
    const ATTEMPTS: usize = 300;
    let is_dir = fs::symlink_metadata(path).is_ok_and(|m| m.is_dir());
    for _ in 0..ATTEMPTS {
        let removed = if is_dir { remove_folder(path) } else { fs::remove_file(path) };
        // Nothing can be done about another failure, and the operation's own error is the one to show.
        match removed {
            Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty => {}
            _ => return,
        }
    }
}

/// A temporary path, removed unless [`Temporary::commit`] has given it its final name.
#[derive(Debug)]
pub struct Temporary {
    path: PathBuf,
    /// The path has its final name, and another file may have the temporary name already.
    is_committed: bool,
}

impl Temporary {
    /// Makes a path next to `target`, and has `create` make the file or folder there. Leftovers of killed processes in
    /// the folder stay: [`remove_stale`]. The list is locked until the name is in it, so that a signal at any moment
    /// finds all existing files.
    pub fn beside<T>(target: &Path, create: impl Fn(&Path) -> io::Result<T>) -> io::Result<(Temporary, T)> {
        let folder = parent(target);
        let mut attempt = 0;
        loop {
            let path = folder.join(format!(".fec-{}-{}.tmp", system::process(), home() + attempt));
            let listed = Pending::Path(path.clone());
            // Once the file is there, nothing may fail before it is in the list: not for want of memory either, which
            // ends the process while the list is locked.
            let mut list = pending_with_room();
            match create(&path) {
                Ok(made) => {
                    list.push(listed);
                    drop(list);
                    tracing::debug!("{} is made", show(&path));
                    return Ok((Temporary { path, is_committed: false }, made));
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists && attempt < 1000 => attempt += 1,
                Err(e) => return Err(e),
            }
        }
    }

    /// The temporary path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `rename` and takes the path off the list under a single lock, so that [`remove_all`] cannot come between
    /// the two.
    pub fn commit<T>(mut self, rename: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
        let mut list = pending();
        let done = rename(&self.path)?;
        tracing::debug!("{} has its name now", show(&self.path));
        list.retain(|pending| !pending.is_path(&self.path));
        self.is_committed = true;
        Ok(done)
    }
}

/// Makes a change under the lock of the list, so that [`remove_all`] removes nothing in the middle of it.
pub fn undisturbed<T>(change: impl FnOnce() -> T) -> T {
    let _list = pending();
    change()
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

/// A file that is appended to. The appended bytes are cut off again unless [`Appended::commit`] keeps them.
#[derive(Debug)]
pub struct Appended {
    file: Arc<File>,
}

impl Appended {
    /// Appends to a file from byte `len` on.
    pub fn new(file: File, len: u64) -> Appended {
        let file = Arc::new(file);
        pending_with_room().push(Pending::Length(Arc::clone(&file), len));
        Appended { file }
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Writes bytes at an offset. The list is locked, so that nothing is written after [`remove_all`] has cut the file.
    pub fn put(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let _list = pending();
        system::write_all_at(&self.file, bytes, offset)
    }

    /// Sets the length of the file, under the same lock as [`put`](Appended::put).
    pub fn set_len(&self, len: u64) -> io::Result<()> {
        let _list = pending();
        self.file.set_len(len)
    }

    /// Keeps the appended bytes.
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

/// Removes leftovers of killed processes from a folder: temporary files, and unfinished folders of shard files, that
/// nobody has locked and whose process is gone. Those of other machines and containers, whose processes cannot be
/// checked here, are removed once nothing was written to them for a day. Those that cannot be removed do no harm.
/// `progress` gets a [`Notice::Removed`] of each. An operation calls this before it makes an output there.
pub fn remove_stale(folder: &Path, progress: &dyn Progress) {
    const LONG: Duration = Duration::from_secs(24 * 60 * 60);
    let is_output = |path: &Path| is_file(path) || is_folder(path) && is_shards_only(path);
    let is_stale =
        |name: &[u8], path: &Path| is_of_the_dead(name) || is_temporary(name) && is_untouched(path, LONG);
    for name in list(folder).unwrap_or_default() {
        let path = folder.join(&name);
        if !is_stale(name.as_encoded_bytes(), &path) || !is_output(&path) {
            continue;
        }
        // In a folder that everybody may write to, a FIFO may have taken its place, and opening that would block.
        let opened = system::open_unfollowed(&path).ok().flatten();
        if opened.is_some_and(|file| system::lock_alone(&file).is_ok()) {
            let bytes = bytes_of(&path);
            remove(&path);
            if fs::symlink_metadata(&path).is_err() {
                progress.note(Notice::Removed { path: &path, bytes });
            }
        }
    }
}

fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file())
}

fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir())
}

/// Paths of a folder's entries; none if it is no folder.
fn inside(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let names = if is_folder(folder) { list(folder).unwrap_or_default() } else { Vec::new() };
    names.into_iter().map(|name| folder.join(name))
}

/// Length in bytes of a file, or of the files in a folder.
fn bytes_of(path: &Path) -> u64 {
    let len = |path: &Path| {
        fs::symlink_metadata(path).map_or(0, |meta| if meta.is_file() { meta.len() } else { 0 })
    };
    len(path) + inside(path).map(|path| len(&path)).sum::<u64>()
}

/// Tells whether a folder has only files with names of shard files.
fn is_shards_only(folder: &Path) -> bool {
    inside(folder).all(|path| path.as_os_str().as_encoded_bytes().ends_with(b".shard") && is_file(&path))
}

/// Tells whether a file, or a folder and all its files, was not written to for this time.
fn is_untouched(path: &Path, time: Duration) -> bool {
    let is_old = |path: &Path| {
        let written = fs::symlink_metadata(path).and_then(|meta| meta.modified());
        written.is_ok_and(|written| written.elapsed().is_ok_and(|elapsed| elapsed > time))
    };
    is_old(path) && inside(path).all(|path| is_old(&path))
}

/// Tells whether a name is that of a temporary file or folder.
pub fn is_temporary(name: &[u8]) -> bool {
    parts_of(name).is_some()
}

/// Tells whether a name is that of a temporary file or folder of a process that is gone. False for a process of another
/// machine or container, about which nothing is known.
pub fn is_of_the_dead(name: &[u8]) -> bool {
    parts_of(name).is_some_and(|(pid, number)| {
        // Some names have no home in their number: those in a folder that is made for a single sidecar.
        let is_of_here = number >> 32 == 0 || number >> 32 == home() >> 32;
        is_of_here && system::is_gone(pid)
    })
}

/// The process that made a temporary file or folder, and its number, from the name.
fn parts_of(name: &[u8]) -> Option<(i32, u64)> {
    let name = std::str::from_utf8(name).ok()?;
    let (pid, number) = name.strip_prefix(".fec-")?.strip_suffix(".tmp")?.split_once('-')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let are_numbers = is_number(pid) && is_number(number);
    Some((pid.parse().ok().filter(|pid| are_numbers && *pid > 0)?, number.parse().ok()?))
}

/// The upper half of the numbers in all temporary names. It is the same where process numbers mean the same.
fn home() -> u64 {
    static HOME: OnceLock<u64> = OnceLock::new();
    *HOME.get_or_init(|| home_of(system::processes_here()))
}

/// The home where the system names the place of its processes. Without that, as on macOS, each process has a home of
/// its own: nothing is known of others, which may run on another machine that shares the storage.
fn home_of(place: Option<Vec<u8>>) -> u64 {
    let own = || format!("{} {:?}", system::process(), SystemTime::now()).into_bytes();
    let digest = HashKind::Blake3.digest(&place.unwrap_or_else(own));
    u64::from_le_bytes([0, 0, 0, 0, digest[0], digest[1], digest[2], digest[3] | 1])
}

/// The folder that holds `path`.
pub fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Removes all temporary files and folders of this process, then calls `end`, which should end the process. Until then
/// no temporary file is created or renamed.
pub fn remove_all(end: impl FnOnce()) {
    let list = pending();
    list.iter().for_each(Pending::undo);
    end();
}

/// As [`remove_all`], for a thread that may hold the list itself, such as a panicking one. False: the list is locked,
/// and nothing was removed.
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
    use crate::context::Meter;
    use crate::error::Action;

    /// The paths of removed leftovers.
    #[derive(Default)]
    struct Told(Mutex<Vec<PathBuf>>);

    impl Progress for Told {
        fn begin(&self, _action: Action, _total: Option<u64>) -> Box<dyn Meter + '_> {
            unreachable!("there is no action");
        }

        fn note(&self, notice: Notice<'_>) {
            if let Notice::Removed { path, .. } = notice {
                lock(&self.0).push(path.to_path_buf());
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_goes_away_with_all_in_it_and_nothing_that_links_in_it_lead_to() {
        let place = tempfile::tempdir().expect("a scratch folder");
        let (folder, outside) = (place.path().join("folder"), place.path().join("outside"));
        fs::create_dir_all(folder.join("deep/deeper")).expect("folders");
        fs::create_dir(&outside).expect("a folder");
        for file in [folder.join("a"), folder.join("deep/b"), outside.join("precious")] {
            fs::write(file, b"some").expect("a file");
        }
        std::os::unix::fs::symlink(&outside, folder.join("deep/link")).expect("a link");
        std::os::unix::fs::symlink(&outside, place.path().join("link")).expect("a link");
        remove_folder(&folder).expect("it is removed");
        remove_folder(&place.path().join("link")).expect_err("no folder");
        assert!(!folder.exists() && outside.join("precious").exists());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_system_that_does_not_tell_where_it_is_knows_nothing_of_other_processes() {
        assert_eq!(home_of(system::processes_here()), home());
        assert_ne!(home_of(None), home_of(None));
        assert!(home_of(None) >> 32 != 0, "a home of 0 means any machine");
    }

    /// On storage shared by machines and containers, a process that lives elsewhere must not lose its output.
    #[test]
    fn of_temporary_files_only_those_that_are_surely_stale_go_away() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let spawn = || {
            let mut command = std::process::Command::new(if cfg!(windows) { "cmd" } else { "true" });
            command.args(if cfg!(windows) { &["/c", "exit"][..] } else { &[] }).spawn().expect("a process")
        };
        let mut reaped = spawn();
        reaped.wait().expect("it has ended");
        let (dead, alive) = (reaped.id(), std::process::id());
        let mut child = spawn();
        let ended = child.id();
        while !system::is_gone(ended.cast_signed()) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let elsewhere = home() ^ 1 << 40;
        let old = std::time::SystemTime::now() - Duration::from_secs(2 * 24 * 60 * 60);
        let names = [
            (format!(".fec-{dead}-{}.tmp", home()), false, false),
            (format!(".fec-{alive}-{}.tmp", home() + 7), false, true),
            (format!(".fec-{ended}-{}.tmp", home()), false, false),
            (format!(".fec-{dead}-{elsewhere}.tmp"), false, true),
            (format!(".fec-{dead}-{}.tmp", elsewhere + 1), true, false),
            (format!(".fec-{alive}-{}.tmp", elsewhere + 2), true, false),
            (".fec-notes.tmp".to_owned(), true, true),
        ];
        for (name, is_old, _) in &names {
            let file = File::create_new(folder.path().join(name)).expect("a file");
            if *is_old {
                file.set_modified(old).expect("an old file");
            }
        }
        let locked = folder.path().join(format!(".fec-{dead}-{}.tmp", home() + 1));
        let holder = File::create_new(&locked).expect("a file");
        system::lock_alone(&holder).expect("a lock");
        let precious = folder.path().join(format!(".fec-{dead}-{}.tmp", home() + 2));
        fs::create_dir(&precious).expect("a folder");
        File::create_new(precious.join("letter")).expect("a file");
        let told = Told::default();
        remove_stale(folder.path(), &told);
        for (name, _, stays) in &names {
            assert_eq!(folder.path().join(name).exists(), *stays, "{name}");
        }
        child.wait().expect("it has ended");
        let told = fec_core::executor::into_value(told.0);
        for (name, _, stays) in &names {
            assert_eq!(told.contains(&folder.path().join(name)), !stays, "{name}");
        }
        assert!(locked.exists() && precious.join("letter").exists());
    }

    /// A temporary name is free as soon as its file has another name, and its next user must keep it.
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

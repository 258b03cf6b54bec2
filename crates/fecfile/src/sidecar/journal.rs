//! Which files a repair has begun to write to, so that one that was ended on the way can be run again: what is half mended
//! has another time, and would look like a file that somebody changed.

use super::Sidecar;
use super::error::SidecarError;
use crate::error::{Error, Result};
use crate::io::base::{Base, file_type};
use crate::io::output::{ANYBODY, Policy, write_text};
use crate::names::hex;
use rustix::fs::{FileType, Stat};
use std::cell::Cell;
use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// The list beside a sidecar.
pub(super) struct Journal {
    path: PathBuf,
    head: String,
    /// Files that are mended where they are.
    begun: HashSet<usize>,
    /// Folders and symbolic links that are made, and get their times and permissions at the end.
    made: HashSet<usize>,
    /// When it had its last beat.
    written: Option<SystemTime>,
    /// The root that a list that is there says it is of.
    of: Option<String>,
    /// The list is written.
    is_begun: Cell<bool>,
    /// When this repair gave it one.
    beat: Cell<Instant>,
}

/// What the list begins with; then comes the root.
const HEAD: &str = "fec repair of ";
/// How often the list gets a new time while files are written to.
const BEAT: Duration = Duration::from_millis(500);
/// How long after that time a file may have been written to, for the repair to know it as its own.
const SLACK: Duration = Duration::from_secs(2);
/// The longest list that is read.
const MOST: u64 = 64 << 20;

/// When a file was written to last.
fn modified(stat: &Stat) -> SystemTime {
    // Their types are others on other systems.
    #[allow(clippy::unnecessary_cast)]
    let (seconds, nanos) = (stat.st_mtime as i64, stat.st_mtime_nsec as u32);
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let time = match seconds < 0 {
        true => SystemTime::UNIX_EPOCH.checked_sub(whole),
        false => SystemTime::UNIX_EPOCH.checked_add(whole),
    };
    time.and_then(|time| time.checked_add(Duration::from_nanos(nanos.into())))
        .unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Where the list of a sidecar stands.
pub(super) fn path_of(sidecar: &Path) -> PathBuf {
    // Where it really stands: it may be named by a link.
    let place = fs::canonicalize(sidecar).unwrap_or_else(|_| sidecar.to_path_buf());
    let mut path = place.into_os_string();
    path.push(".repairing");
    path.into()
}

/// A list, and when it was written last; nothing, if there is none, or something that is none.
fn read(path: &Path) -> Result<(Option<SystemTime>, String)> {
    // Without waiting: it could be a FIFO, and whatever is no file is no list.
    let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
    let read = || -> std::io::Result<(Option<SystemTime>, String)> {
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        let meta = file.metadata()?;
        let mut text = String::new();
        if !meta.is_file() {
            return Ok((None, text));
        }
        file.take(MOST).read_to_string(&mut text)?;
        Ok((Some(meta.modified()?), text))
    };
    match read() {
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::InvalidData) => {
            Ok((None, String::new()))
        }
        Err(e) if matches!(e.raw_os_error(), Some(libc::ELOOP | libc::ENXIO)) => Ok((None, String::new())),
        read => read.map_err(|e| Error::io("read", path, e)),
    }
}

/// The root that a list says it is of.
fn root_of(text: &str) -> Option<&str> {
    text.lines().next()?.strip_prefix(HEAD)
}

/// Fails when a repair of the sidecar at `path` did not end: what it has half mended would be protected as it is.
pub(super) fn check_none(path: &Path, action: &'static str) -> Result<()> {
    let list = path_of(path);
    let (_, text) = read(&list)?;
    match root_of(&text) {
        Some(root) => Err(begun(path, root, list, action)),
        None => Ok(()),
    }
}

fn begun(sidecar: &Path, root: &str, list: PathBuf, action: &'static str) -> Error {
    Error::at(action, sidecar, SidecarError::RepairBegun { root: root.to_owned(), list })
}

impl Journal {
    /// The list of a repair of this sidecar that did not end, or an empty one.
    ///
    /// # Errors
    /// Those of the list: without it, what is half mended would pass for an edit.
    pub(super) fn of(sidecar: &Sidecar) -> Result<Journal> {
        let path = path_of(sidecar.path());
        let head = format!("{HEAD}{}", hex(&sidecar.root()));
        let mut journal = Journal {
            path,
            head,
            begun: HashSet::new(),
            made: HashSet::new(),
            written: None,
            of: None,
            is_begun: Cell::new(false),
            beat: Cell::new(Instant::now()),
        };
        let text;
        (journal.written, text) = read(&journal.path)?;
        journal.of = root_of(&text).map(str::to_owned);
        let mut lines = text.lines();
        if lines.next() == Some(&journal.head) {
            for line in lines {
                match line.strip_prefix('+') {
                    Some(made) => journal.made.extend(made.parse::<usize>().ok()),
                    None => journal.begun.extend(line.parse::<usize>().ok()),
                }
            }
        }
        Ok(journal)
    }

    /// Whether a repair that did not end wrote to a file, and nobody has since, as far as times tell.
    ///
    /// # Errors
    /// Those of the file.
    pub(super) fn has_begun(&self, entry: usize, base: &Base, path: &[u8]) -> Result<bool> {
        if !self.begun.contains(&entry) {
            return Ok(false);
        }
        match base.stat(path) {
            Ok(stat) => Ok(self.is_own(entry, &stat)),
            // Nothing is there.
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(false),
            Err(e) if e.raw_os_error() == Some(libc::ELOOP) => Ok(false),
            Err(e) => Err(Error::io("read", base.place(path).as_path(), e)),
        }
    }

    /// Whether a repair that did not end was the last to write to a file, as far as times tell.
    pub(super) fn is_own(&self, entry: usize, stat: &Stat) -> bool {
        let modified = modified(stat);
        // While it writes to a file it gives it back its time at once, so that one is left, at most, that has another: that of
        // the last write, which came soon after the last beat.
        let is_between = |written: SystemTime| {
            let end = written.checked_add(BEAT + SLACK).unwrap_or(written);
            let start = written.checked_sub(SLACK).unwrap_or(written);
            (start..=end).contains(&modified)
        };
        let is_file = file_type(stat) == FileType::RegularFile;
        is_file && self.begun.contains(&entry) && self.written.is_some_and(is_between)
    }

    /// Whether a repair that did not end made a folder or a symbolic link, which may not have its time and permissions yet.
    pub(super) fn has_made(&self, entry: usize) -> bool {
        self.made.contains(&entry)
    }

    /// Takes entries off the list.
    ///
    /// # Panics
    /// If they do not ascend.
    pub(super) fn forget(&mut self, entries: &[usize]) {
        assert!(entries.is_sorted(), "they are looked up by halves");
        self.begun.retain(|entry| entries.binary_search(entry).is_err());
    }

    /// Fails when a repair with another root did not end: what it has half mended would be lost sight of.
    pub(super) fn check(&self, sidecar: &Sidecar, action: &'static str) -> Result<()> {
        match self.of.as_deref().filter(|_| !self.is_there()) {
            Some(root) => Err(begun(sidecar.path(), root, self.path.clone(), action)),
            None => Ok(()),
        }
    }

    /// Whether a repair with the root of this sidecar did not end.
    pub(super) fn is_there(&self) -> bool {
        self.of.as_ref().is_some_and(|root| self.head.strip_prefix(HEAD) == Some(root))
    }

    /// Writes the list, before files are written to, and folders and links are made.
    pub(super) fn begin(&self, made: impl Iterator<Item = usize>) -> Result<()> {
        self.is_begun.set(true);
        let mended = self.begun.iter().copied().map(|entry| format!("{entry}\n"));
        let made = made.chain(self.made.iter().copied()).map(|entry| format!("+{entry}\n"));
        let lines: String = mended.chain(made).collect();
        write_text(
            &self.path,
            &format!("{}\n{lines}", self.head),
            Policy { force: true, sync: true, permissions: ANYBODY },
        )
    }

    /// Adds a file that is mended where it is, before it is written to. If the machine fails it may be missing from the list;
    /// then what is half mended counts as edited.
    pub(super) fn add(&self, entry: usize) -> Result<()> {
        if !self.is_begun.get() {
            return Ok(());
        }
        let flags = libc::O_NOFOLLOW;
        let list = OpenOptions::new().append(true).custom_flags(flags).open(&self.path);
        let added = list.and_then(|mut list| list.write_all(format!("{entry}\n").as_bytes()));
        added.map_err(|e| Error::io("write", self.path.as_path(), e))
    }

    /// Tells that files are being written to now.
    pub(super) fn beat(&self) {
        if self.beat.get().elapsed() >= BEAT {
            self.beat.set(Instant::now());
            // Without it a repair that is ended on the way takes more asking, and nothing else.
            let _ = OpenOptions::new()
                .write(true)
                .custom_flags(libc::O_NOFOLLOW)
                .open(&self.path)
                .and_then(|file| file.set_modified(SystemTime::now()));
        }
    }

    /// Removes the list: all is written.
    pub(super) fn end(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

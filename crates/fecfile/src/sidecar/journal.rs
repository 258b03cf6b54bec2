//! Which files a repair has begun to write to, so that one that was ended on the way can be run again: what is half mended
//! has another time, and would look like a file that somebody changed.

use super::Sidecar;
use crate::error::Result;
use crate::io::base::Base;
use crate::io::output::{Policy, write_text};
use crate::names::hex;
use std::cell::Cell;
use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// The list beside a sidecar.
pub(super) struct Journal {
    path: PathBuf,
    head: String,
    begun: HashSet<usize>,
    /// When it had its last beat.
    written: Option<SystemTime>,
    /// When this repair gave it one.
    beat: Cell<Instant>,
}

/// How often the list gets a new time while files are written to.
const BEAT: Duration = Duration::from_millis(500);
/// How long after that time a file may have been written to, for the repair to know it as its own.
const SLACK: Duration = Duration::from_secs(2);
/// The longest list that is read.
const MOST: u64 = 64 << 20;

/// Where the list of a sidecar stands.
pub(super) fn path_of(sidecar: &Path) -> PathBuf {
    let mut path = sidecar.as_os_str().to_os_string();
    path.push(".repairing");
    path.into()
}

impl Journal {
    /// The list of a repair of this sidecar that did not end, or an empty one.
    pub(super) fn of(sidecar: &Sidecar) -> Journal {
        let path = path_of(sidecar.path());
        let head = format!("fec repair of {}", hex(&sidecar.root()));
        let mut journal =
            Journal { path, head, begun: HashSet::new(), written: None, beat: Cell::new(Instant::now()) };
        let mut text = String::new();
        // Without waiting: it could be a FIFO, and whatever is no file is no list.
        let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
        let open = OpenOptions::new().read(true).custom_flags(flags).open(&journal.path);
        let read = open.and_then(|file| {
            if !file.metadata()?.is_file() {
                return Err(std::io::ErrorKind::InvalidInput.into());
            }
            journal.written = file.metadata().and_then(|meta| meta.modified()).ok();
            file.take(MOST).read_to_string(&mut text)
        });
        let mut lines = text.lines();
        if read.is_ok() && lines.next() == Some(&journal.head) {
            journal.begun = lines.filter_map(|line| line.parse().ok()).collect();
        }
        journal
    }

    /// Whether a repair that did not end wrote to a file, and nobody has since, as far as times tell.
    pub(super) fn has_begun(&self, entry: usize, base: &Base, path: &[u8]) -> bool {
        let modified = || base.read(path).and_then(|file| file.metadata()?.modified()).ok();
        self.begun.contains(&entry)
            && self.written.zip(modified()).is_some_and(|(written, modified)| modified <= written + SLACK)
    }

    /// Whether a repair of this sidecar did not end.
    pub(super) fn is_there(&self) -> bool {
        self.written.is_some()
    }

    /// Writes the list, before the files are written to.
    pub(super) fn begin(&self, entries: impl Iterator<Item = usize>) -> Result<()> {
        let all: Vec<usize> = entries.chain(self.begun.iter().copied()).collect();
        let lines: String = all.iter().map(|entry| format!("{entry}\n")).collect();
        write_text(&self.path, &format!("{}\n{lines}", self.head), Policy { force: true, sync: true })
    }

    /// Tells that files are being written to now.
    pub(super) fn beat(&self) {
        if self.beat.get().elapsed() >= BEAT {
            self.beat.set(Instant::now());
            // Without it a repair that is ended on the way takes more asking, and nothing else.
            let _ = OpenOptions::new()
                .write(true)
                .open(&self.path)
                .and_then(|file| file.set_modified(SystemTime::now()));
        }
    }

    /// Removes the list: all is written.
    pub(super) fn end(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

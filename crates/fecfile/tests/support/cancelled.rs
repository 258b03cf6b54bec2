//! Operations that are cancelled at several moments.

use fec_base::context::{Cancel, Context, Meter, Progress, Settings};
use fec_base::error::{Action, ErrorKind, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Cancels once this many bytes were reported.
pub(crate) struct After {
    left: AtomicU64,
    done: AtomicU64,
    largest: AtomicU64,
    pub(crate) cancel: Cancel,
}

impl After {
    pub(crate) fn new(bytes: u64) -> After {
        let (left, done, largest) = (AtomicU64::new(bytes), AtomicU64::new(0), AtomicU64::new(0));
        let after = After { left, done, largest, cancel: Cancel::default() };
        after.add(0);
        after
    }

    /// Bytes that were reported.
    #[allow(dead_code, reason = "not every crate asks")]
    pub(crate) fn bytes(&self) -> u64 {
        self.done.load(Ordering::SeqCst)
    }

    fn add(&self, bytes: u64) {
        self.largest.fetch_max(bytes, Ordering::SeqCst);
        let done = self.done.fetch_add(bytes, Ordering::SeqCst) + bytes;
        if done >= self.left.load(Ordering::SeqCst) {
            self.cancel.cancel();
        }
    }
}

impl Progress for After {
    fn begin(&self, _action: Action, _total: Option<u64>) -> Box<dyn Meter + '_> {
        Box::new(Of(self))
    }
}

struct Of<'a>(&'a After);

impl Meter for Of<'_> {
    fn add(&self, bytes: u64) {
        self.0.add(bytes);
    }
}

/// The paths below a folder, with their lengths.
fn all_below(folder: &Path) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let entry = entry.expect("an entry");
        let meta = entry.metadata().expect("metadata");
        if meta.is_dir() {
            found.extend(all_below(&entry.path()));
        }
        found.push((entry.path(), if meta.is_dir() { 0 } else { meta.len() }));
    }
    found.sort();
    found
}

/// Runs `work`, which writes to the path that it gets, to its end and cancelled at several moments.
pub(crate) fn ends(name: &str, folder: &Path, work: impl Fn(&Context<'_>, &Path) -> Result<()>) {
    let run = |bytes: u64| {
        let after = After::new(bytes);
        let settings = Settings { threads: 2, sync: false, ..Settings::new() };
        let context = Context::new(settings).with_progress(&after).with_cancel(&after.cancel);
        let done = work(&context, &folder.join("out"));
        (done, after.done.into_inner(), after.largest.into_inner())
    };
    let before = all_below(folder);
    let (done, all, largest) = run(u64::MAX);
    done.unwrap_or_else(|e| panic!("{name}: {e}"));
    assert!(all > 1_000_000, "{name}: {all} bytes were reported");
    let out = folder.join("out");
    let _ = fs::remove_file(&out).or_else(|_| fs::remove_dir_all(&out));
    // A group that waits in memory is reported as a whole.
    let moments = [0, all / 10, all / 3];
    for bytes in moments.into_iter().take(if largest < all / 8 { 3 } else { 1 }) {
        let (done, reported, _) = run(bytes);
        let error = done.expect_err(name);
        assert!(matches!(error.kind, ErrorKind::Cancelled), "{name} after {bytes}: {error}");
        assert!(reported <= bytes + all / 3, "{name}: {reported} bytes, cancelled after {bytes} of {all}");
        assert_eq!(all_below(folder), before, "{name} after {bytes}");
    }
}

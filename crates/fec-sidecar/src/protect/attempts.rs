//! Further attempts without the files that an earlier one could not read.

use crate::Sidecar;
use crate::catalog::moved::folders_of;
use crate::catalog::proof::Proof;
use crate::catalog::seen::{Failed, Reasons, reason_for};
use crate::catalog::tree::Kept;
use fec_base::error::{Action, Result};
use fec_core::format::sidecar::parts::Reason;
use fec_core::format::sidecar::{Entry, EntryKind};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The findings of all attempts so far.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    /// Paths that are left out.
    pub(crate) omitted: Reasons,
    /// Files that an update takes over from the old sidecar, if that is possible.
    pub(crate) kept: Reasons,
    /// Files that have changed once.
    changed: BTreeSet<Box<[u8]>>,
    pub(crate) failed: Arc<Failed>,
}

impl Attempts {
    /// Runs `once` until no file fails. A file that changes is tried once more, unless others were before. Any other is
    /// taken over from the old sidecar by an update, and left out if that fails, too.
    ///
    /// # Errors
    /// Those of `once` that are not of the files; that of a file, after many attempts.
    pub(crate) fn run<T>(is_update: bool, mut once: impl FnMut(&Attempts) -> Result<T>) -> Result<T> {
        /// In a folder where other files change each time, no attempt may succeed.
        const MOST: u32 = 8;
        let mut attempts = Attempts::default();
        for nth in 1..MOST {
            match once(&attempts) {
                Err(error) if error.action == Action::Read && attempts.learn(is_update, nth < 3) => {}
                done => return done,
            }
        }
        once(&attempts)
    }

    /// Takes over what has failed. Returns false if that says nothing new.
    fn learn(&mut self, is_update: bool, may_change: bool) -> bool {
        let mut is_new = false;
        for (path, reason) in self.failed.take() {
            is_new |= !self.omitted.contains_key(&path);
            if let Some(reason) = self.kept.remove(&path) {
                self.omitted.insert(path, reason);
            } else if may_change && reason == Reason::Changing && !self.changed.contains(&path) {
                self.changed.insert(path);
            } else if is_update {
                self.kept.insert(path, reason);
            } else {
                self.omitted.insert(path, reason);
            }
        }
        is_new
    }

    /// The files of the old sidecar that could not be taken over either, and would not be protected any more.
    pub(crate) fn given_up(&self, old: &Sidecar) -> Vec<Vec<u8>> {
        let is_given_up = |entry: &&Entry| {
            matches!(entry.kind, EntryKind::File(_)) && self.omitted.contains_key(&entry.path)
        };
        old.catalog.entries.iter().filter(is_given_up).map(|entry| entry.path.to_vec()).collect()
    }

    /// The entries of the old sidecar that an update takes over: the files that have failed, and what stands at or
    /// below the paths `omitted`, which cannot be looked at. Nothing is signed that only an unproved record tells.
    pub(crate) fn keep(&self, old: &Sidecar, omitted: &Reasons) -> Vec<Kept> {
        if old.proof() == Proof::Root {
            return Vec::new();
        }
        let entries = &old.catalog.entries;
        // Folders that are gone come back with the files in them.
        let around: BTreeSet<&[u8]> = self.kept.keys().flat_map(|path| folders_of(path)).collect();
        let reason_of = |entry: &Entry| {
            let own = match entry.kind {
                EntryKind::File(_) => self.kept.get(&entry.path).copied(),
                EntryKind::Folder => around.contains(&*entry.path).then_some(Reason::Unreadable),
                _ => None,
            };
            let reason = own.or_else(|| reason_for(omitted, &entry.path));
            reason.filter(|_| !self.omitted.contains_key(&entry.path))
        };
        let kept = |(nth, entry): (usize, &Entry)| {
            let first = match entry.kind {
                EntryKind::HardLink(of) => Some(entries[of as usize].path.clone()),
                _ => None,
            };
            Some(Kept {
                entry: entry.clone(),
                stat: old.stats.entries[nth],
                mark: old.recorded_mark(nth),
                reason: reason_of(entry)?,
                first,
            })
        };
        entries.iter().enumerate().filter_map(kept).collect()
    }
}

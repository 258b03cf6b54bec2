//! The result of an update, and the numbers in it.

use super::Held;
use super::compare::{Compare, Fate, file};
use crate::Sidecar;
use crate::catalog::moved::folders_of;
use crate::catalog::others::is_of_sidecar;
use crate::catalog::policy::Policy;
use crate::catalog::seen::{Reasons, error_of, reason_for};
use crate::error::SidecarError;
use crate::protect::{Protect, Protected, Prune};
use fec_base::error::{Action, Error, Result};
use fec_base::io::base::Base;
use fec_core::format::sidecar::EntryKind;
use fec_core::format::sidecar::parts::Omitted;
use fec_core::format::sidecar::policy::Words;
use std::collections::{BTreeMap, BTreeSet};

/// The result of an update.
#[must_use = "files may be left out or damaged"]
#[derive(Clone, Debug)]
pub struct Updated {
    /// The sidecar after the update.
    pub sidecar: Protected,
    /// The generation of the sidecar.
    pub generation: u64,
    /// True if the sidecar was written to; otherwise nothing had changed.
    pub written: bool,
    /// Why the sidecar was made anew, if it was.
    pub anew: Option<Anew>,
    /// True if the sidecar was written again, with the recovery shards that it kept.
    pub is_joined: bool,
    /// Unchanged files, without those that are held.
    pub unchanged: u64,
    /// Files with other bytes than before.
    pub changed: u64,
    /// Files that were not protected before.
    pub added: u64,
    /// Files that have other paths.
    pub moved: u64,
    /// Paths, relative to the base, of files that are gone.
    pub gone: Vec<Box<[u8]>>,
    /// Files that the policy holds, in the order of their paths: damaged ones, and some that are gone. They are
    /// protected as they were.
    pub held: Vec<Held>,
    /// Bytes of files that were coded.
    pub coded_len: u64,
    /// Bytes that have left, and were taken out of the recovery data.
    pub retired_len: u64,
    /// Why nothing was taken out, if something was to be.
    pub not_retired: Option<NotRetired>,
}

/// Why what has left cannot be taken out of the recovery data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotRetired {
    /// A file that has left, of this path, is not what was protected, or cannot be read.
    Other(Box<[u8]>),
    /// Recovery shards are damaged.
    Damaged,
    /// Too much is new, or has left: the sidecar is better extended or made anew.
    Much,
    /// Nothing has left, or the folder has none of it; the sidecar was not made anew.
    Nothing,
}

/// Why a sidecar is made anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anew {
    /// This many sets would have more than a quarter of their recovery shards used up by bytes that are gone.
    Weak(u64),
    /// The updated sidecar would be too long, and hardly anything of it could be kept.
    Long,
    /// The blocks are too small for the bytes of all files.
    SmallBlocks,
    /// SHA-256 is to be recorded, and was not before.
    Sha256,
}

/// The fates of files, in numbers.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    unchanged: u64,
    changed: u64,
    added: u64,
    moved: u64,
    gone: Vec<Box<[u8]>>,
    /// Bytes of the files that are gone.
    gone_len: u64,
    /// Those of them that are there and cannot be read: how many, and their bytes.
    unread: (u64, u64),
    /// Those that stay by the policy, and that the owner has let go: how many, and their bytes.
    let_go: (u64, u64),
    /// The paths of both, and of those that may go: they are no sign that a disk is missing.
    apart: BTreeSet<Box<[u8]>>,
    first_unread: Option<Omitted>,
    emptied: Option<Vec<u8>>,
}

impl Counts {
    pub(crate) fn of(compare: &Compare<'_>, fates: &[Fate], taken: &[bool], policy: &Policy<'_>) -> Counts {
        let mut counts = Counts::default();
        let (old, entries) = (compare.old, &compare.tree.entries);
        for (entry, fate) in entries.iter().zip(fates) {
            match fate {
                Fate::NoFile => {}
                Fate::Same(of) if compare.old_at(&entry.path) == Some(*of) => counts.unchanged += 1,
                Fate::Same(_) => counts.moved += 1,
                Fate::Changed(..) => counts.changed += 1,
                Fate::New => {
                    // An empty file is compared with nothing.
                    let was = compare.old_at(&entry.path).filter(|of| !taken[*of as usize]);
                    match was {
                        Some(of) => {
                            counts.changed += 1;
                            let is_empty = matches!(&entry.kind, EntryKind::File(file) if file.size == 0);
                            if is_empty && file(&old.catalog, of).size > 0 {
                                counts.emptied.get_or_insert_with(|| entry.path.to_vec());
                            }
                        }
                        None => counts.added += 1,
                    }
                }
            }
        }
        let is_there = |path: &[u8]| {
            let at = entries.binary_search_by(|entry| (*entry.path).cmp(path)).ok();
            at.is_some_and(|at| matches!(entries[at].kind, EntryKind::File(_) | EntryKind::HardLink(_)))
        };
        let path = |nth: usize| &old.catalog.entries[nth].path;
        // Other sidecars are left out now, and are not gone.
        let is_left_out = |nth: usize| is_of_sidecar(&compare.base.place(path(nth)));
        let gone = old.catalog.files().filter(|(nth, _)| !taken[*nth] && !is_left_out(*nth));
        for (nth, file) in gone.filter(|(nth, _)| !is_there(path(*nth))) {
            let path = path(nth);
            counts.gone.push(path.clone());
            counts.gone_len += file.size;
            if let Some(reason) = reason_for(&compare.tree.omitted, path) {
                counts.unread = (counts.unread.0 + 1, counts.unread.1 + file.size);
                counts.apart.insert(path.clone());
                counts.first_unread.get_or_insert_with(|| Omitted { path: path.clone(), reason });
                continue;
            }
            let words = policy.words(path, false);
            // The owner has let it go, or it would be held.
            if words.has(Words::STAYS) {
                counts.let_go = (counts.let_go.0 + 1, counts.let_go.1 + file.size);
            }
            if words.has(Words::STAYS) || words.has(Words::GOES) {
                counts.apart.insert(path.clone());
            }
        }
        counts
    }

    pub(crate) fn report(
        self,
        mut sidecar: Protected,
        generation: u64,
        written: bool,
        anew: Option<Anew>,
        coded_len: u64,
    ) -> Updated {
        let Counts { unchanged, changed, added, moved, mut gone, .. } = self;
        // A file that is there and cannot be read is told so.
        let mut omitted: Reasons = sidecar.omitted.drain(..).map(|of| (of.path, of.reason)).collect();
        gone.retain(|path| {
            let reason = reason_for(&omitted, path);
            reason.map(|reason| omitted.insert(path.clone(), reason));
            reason.is_none()
        });
        sidecar.omitted = omitted.into_iter().map(|(path, reason)| Omitted { path, reason }).collect();
        Updated {
            sidecar,
            generation,
            written,
            anew,
            is_joined: false,
            unchanged,
            changed,
            added,
            moved,
            gone,
            held: Vec::new(),
            coded_len,
            retired_len: 0,
            not_retired: None,
        }
    }

    /// Fails when the changes look like an accident, or too much cannot be read.
    pub(crate) fn check(&self, old: &Sidecar, job: &Protect<'_>, base: &Base) -> Result<()> {
        /// The most small files that may go without being counted.
        const MANY: u64 = 100;
        let (of, of_len) = (old.catalog.files().count() as u64, old.catalog.files_len());
        // Bytes decide. Small files count where they are many, and more than a sliver.
        let is_part = |len: u64, nth: u128| u128::from(len) * nth > u128::from(of_len);
        let is_many = |gone: u64, len: u64| {
            is_part(len, 10) || gone > MANY && gone * 10 > of && is_part(len, 100) || gone == of && gone > 0
        };
        let (unread, unread_len) = self.unread;
        let (let_go, let_go_len) = self.let_go;
        let gone = self.gone.len() as u64 - unread - let_go;
        let gone_len = self.gone_len - unread_len - let_go_len;
        let fail = |cause| Err(Error::at(Action::Update, job.output, cause));
        if let Some(path) = &self.emptied {
            return fail(SidecarError::Emptied(path.clone()));
        }
        // Whatever the owner has pruned may be much.
        if job.prune != Prune::Done {
            if is_many(gone, gone_len) {
                return fail(SidecarError::ManyGone { gone, of, gone_len, of_len });
            }
            if let Some(gone) = self.folder_gone(old) {
                return fail(gone);
            }
        }
        match &self.first_unread {
            Some(Omitted { path, reason }) if is_many(gone + unread, gone_len + unread_len) => {
                Err(error_of(base, path, *reason))
            }
            _ => Ok(()),
        }
    }

    /// The first folder of which most files are gone, if it had some: a small part of all files may be all of it.
    fn folder_gone(&self, old: &Sidecar) -> Option<SidecarError> {
        /// The fewest files that make a folder.
        const FEW: u64 = 10;
        let mut folders: BTreeMap<&[u8], (u64, u64)> = BTreeMap::new();
        let gone = self.gone.iter().filter(|path| !self.apart.contains(*path));
        for folder in gone.flat_map(|path| folders_of(path)) {
            folders.entry(folder).or_default().0 += 1;
        }
        for (nth, _) in old.catalog.files() {
            for folder in folders_of(&old.catalog.entries[nth].path) {
                folders.entry(folder).and_modify(|(_, of)| *of += 1);
            }
        }
        let mut most = folders.into_iter().filter(|(_, (gone, of))| *of >= FEW && gone * 2 > *of);
        most.next().map(|(folder, (gone, of))| SidecarError::FolderGone { folder: folder.to_vec(), gone, of })
    }
}

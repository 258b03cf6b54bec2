//! The result of an update, and the numbers in it.

use super::compare::{Compare, Fate, file};
use crate::Sidecar;
use crate::error::SidecarError;
use crate::protect::{Protect, Protected};
use fec_base::error::{Action, Error, Result};
use fec_core::format::sidecar::EntryKind;

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
    /// Unchanged files.
    pub unchanged: u64,
    /// Files with other bytes than before.
    pub changed: u64,
    /// Files that were not protected before.
    pub added: u64,
    /// Files that have other paths.
    pub moved: u64,
    /// Paths, relative to the base, of files that are gone.
    pub gone: Vec<Box<[u8]>>,
    /// Bytes of files that were coded.
    pub coded_len: u64,
}

/// Why a sidecar is made anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anew {
    /// This many sets would have more than a quarter of their recovery shards used up by bytes that are gone.
    Weak(u64),
    /// The updated sidecar would be more than twice as long as a new one.
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
    emptied: Option<Vec<u8>>,
}

impl Counts {
    pub(crate) fn of(compare: &Compare<'_>, fates: &[Fate], taken: &[bool]) -> Counts {
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
        let gone = old.catalog.files().filter(|(nth, _)| !taken[*nth]);
        for (nth, file) in gone.filter(|(nth, _)| !is_there(&old.catalog.entries[*nth].path)) {
            counts.gone.push(old.catalog.entries[nth].path.clone());
            counts.gone_len += file.size;
        }
        counts
    }

    pub(crate) fn report(
        self,
        sidecar: Protected,
        generation: u64,
        written: bool,
        anew: Option<Anew>,
        coded_len: u64,
    ) -> Updated {
        let Counts { unchanged, changed, added, moved, gone, .. } = self;
        Updated { sidecar, generation, written, anew, unchanged, changed, added, moved, gone, coded_len }
    }

    /// Fails when the changes look like an accident.
    pub(crate) fn check(&self, old: &Sidecar, job: &Protect<'_>) -> Result<()> {
        let of = old.catalog.files().count() as u64;
        let (gone, gone_len, of_len) = (self.gone.len() as u64, self.gone_len, old.catalog.files_len());
        let fail = |cause| Err(Error::at(Action::Update, job.output, cause));
        if let Some(path) = &self.emptied {
            return fail(SidecarError::Emptied(path.clone()));
        }
        if gone * 10 > of || u128::from(gone_len) * 10 > u128::from(of_len) {
            return fail(SidecarError::ManyGone { gone, of, gone_len, of_len });
        }
        Ok(())
    }
}

//! Files that an update holds, as the policy says: they keep their entries, and wait for a repair.

use super::{Compare, Fate};
use crate::catalog::hashing::hash_file;
use crate::catalog::policy::Policy;
use fec_base::error::Result;
use fec_core::format::sidecar::EntryKind;
use fec_core::format::sidecar::policy::Words;
use std::io;

/// A file that an update does not take as it is now: it stays protected as it was.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Held {
    /// The path relative to the base.
    pub path: Box<[u8]>,
    /// True if nothing stands at its path; otherwise it has other bytes.
    pub is_gone: bool,
}

impl Compare<'_> {
    /// Old files that are written once and are others now, and those that stay and are gone, unless `are_pruned`.
    ///
    /// # Errors
    /// Those of files that have to be read.
    pub(crate) fn find_held(
        &self,
        fates: &[Fate],
        policy: &Policy<'_>,
        are_pruned: bool,
    ) -> Result<Vec<Held>> {
        let mut held = Vec::new();
        for (of, _) in self.old.catalog.files() {
            let path = &self.old.catalog.entries[of].path;
            let words = || policy.words(path, false);
            let is_held = match self.file_at(path) {
                Some(nth) => {
                    !self.surely_is(nth, of, fates)
                        && words().has(Words::ONCE)
                        && self.differs(nth, of as u32)?
                }
                // A copy under another name is no pack.
                None => !are_pruned && words().has(Words::STAYS),
            };
            if is_held {
                held.push(Held { path: path.clone(), is_gone: self.file_at(path).is_none() });
            }
        }
        Ok(held)
    }

    /// The file at a path, or the one that it is a further name of.
    fn file_at(&self, path: &[u8]) -> Option<usize> {
        let entries = &self.tree.entries;
        let at = entries.binary_search_by(|entry| (*entry.path).cmp(path)).ok()?;
        match entries[at].kind {
            EntryKind::File(_) => Some(at),
            EntryKind::HardLink(first) => Some(first as usize),
            _ => None,
        }
    }

    /// Tells whether a file is known to have the bytes of an old one.
    fn surely_is(&self, nth: usize, of: usize, fates: &[Fate]) -> bool {
        let Fate::Same(is) = fates[nth] else { return false };
        let (is, of) = (self.old_file(is), self.old_file(of as u32));
        (is.size, is.blake3) == (of.size, of.blake3)
    }

    /// Tells whether a file has not the bytes of an old one, and has not grown from them either.
    fn differs(&self, nth: usize, of: u32) -> Result<bool> {
        let old = self.old_file(of);
        if self.size(nth) < old.size {
            return Ok(true);
        }
        let begins = || -> io::Result<bool> {
            let block = u64::from(self.old.catalog.block);
            Ok(hash_file(&self.open(nth)?, old.size, block, |_, _, _| ())?.digest == old.blake3)
        };
        let begins = self.all(std::iter::once((nth, begins())))?;
        Ok(!begins[0])
    }
}

//! Files that an update holds, by the policy or since they should only grow: they keep their entries, and wait for a
//! repair.

use super::{Compare, Fate};
use crate::catalog::hashing::hash_file;
use crate::catalog::policy::Policy;
use fec_base::error::Result;
use fec_base::io::ReadAt;
use fec_core::digest::blocks;
use fec_core::format::sidecar::EntryKind;
use fec_core::format::sidecar::catalog::shortened;
use fec_core::format::sidecar::policy::Words;
use std::io;

/// A file that an update does not take as it is now: it stays protected as it was.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Held {
    /// The path relative to the base.
    pub path: Box<[u8]>,
    /// Why it is held.
    pub why: Why,
}

/// Why a file is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// It stays by the policy, and nothing stands at its path.
    Gone,
    /// It is written once by the policy, and has other bytes.
    Rotten,
    /// It should only grow, and has other bytes in front of its old end.
    Rewritten,
}

/// Tells whether a file is known to have grown from the old one at its path.
fn continues(fate: &Fate) -> bool {
    matches!(fate, Fate::Changed(_, read) if read.continues)
}

impl Compare<'_> {
    /// Old files that are written once and are others now, and those that stay and are gone, unless `are_pruned`. Where
    /// files only grow, those too that did not grow from what they were, and whose bytes are not under a new name.
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
            let why = match self.file_at(path) {
                Some(nth) => {
                    let is_once = words().has(Words::ONCE);
                    let is_held = (is_once || self.appends)
                        && !self.surely_is(nth, of, fates)
                        && !continues(&fates[nth])
                        && self.differs(nth, of as u32)?
                        && (is_once || !self.is_rotated(of as u32, fates)?);
                    is_held.then_some(if is_once { Why::Rotten } else { Why::Rewritten })
                }
                // A copy under another name is no pack.
                None => (!are_pruned && words().has(Words::STAYS)).then_some(Why::Gone),
            };
            held.extend(why.map(|why| Held { path: path.clone(), why }));
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

    /// Tells whether a file that was not known begins with all bytes of an old one: a log that got another name.
    fn is_rotated(&self, of: u32, fates: &[Fate]) -> Result<bool> {
        let (block, old) = (self.old.catalog.block as usize, self.old_file(of));
        let first = self.old.digests_of_file(old, 0).next();
        let begins = |nth: usize| -> io::Result<bool> {
            let Some(Some(digest)) = first else { return Ok(true) };
            let mut bytes = vec![0; block];
            ReadAt::read_exact_at(&self.open(nth)?, 0, &mut bytes)?;
            let mut value = [[0; 32]];
            blocks::values(&bytes, block, 0, &mut value);
            Ok(shortened(&value[0]) == digest)
        };
        for (nth, fate) in fates.iter().enumerate() {
            let may_be = match fate {
                Fate::Same(is) if *is == of => return Ok(true),
                Fate::New => {
                    self.size(nth) >= old.size && self.old_at(&self.tree.entries[nth].path).is_none()
                }
                _ => false,
            };
            if may_be && self.all(std::iter::once((nth, begins(nth))))?[0] && !self.differs(nth, of)? {
                return Ok(true);
            }
        }
        Ok(false)
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

//! Files of which an update would protect damage.

use super::{Compare, Fate};
use crate::catalog::policy::Policy;
use crate::catalog::proof::Proof;
use crate::catalog::samples::Samples;
use crate::examine::verdict::{Alike, Facts, Once, Record, State, Traces, Writer, name_of};
use fec_base::error::Result;
use fec_core::format::sidecar::policy::Words;
use std::collections::HashMap;

/// Files of which an update would protect damage.
#[derive(Debug, Default)]
pub(crate) struct Doubts {
    /// Files that nobody wrote to.
    pub(crate) rotten: Vec<Vec<u8>>,
    /// Files that are damaged, or were edited by a program that puts times back, or in a copy that has other times.
    pub(crate) unclear: Vec<Vec<u8>>,
}

impl Compare<'_> {
    /// Files at their old paths, with their old sizes and other bytes: those that nobody wrote to, and those of which
    /// nothing tells damage from an edit.
    ///
    /// # Errors
    /// Those of files that have to be read.
    pub(crate) fn find_damage(&self, fates: &[Fate], traces: Traces) -> Result<Doubts> {
        let mut doubts = Doubts::default();
        for (nth, of) in self.with_other_bytes(fates)? {
            let facts = traces.read(Facts {
                is_file: true,
                has_size: true,
                has_bytes: false,
                has_mode: true,
                // Files that are written once are held before.
                once: Once::No,
                time: self.time(nth, of),
                // Under a root or a signature marks decide nothing that is recorded or signed.
                writer: match self.old.proof() {
                    Proof::Nothing => self.writer(nth, of),
                    _ => Writer::Unknown,
                },
                record: Record::Believed,
            });
            let path = || self.tree.entries[nth].path.to_vec();
            match facts.state() {
                State::Rotten => doubts.rotten.push(path()),
                State::Changed => doubts.unclear.push(path()),
                State::Edited if traces.is_copy => doubts.unclear.push(path()),
                _ => {}
            }
        }
        Ok(doubts)
    }

    /// Files with the path and the size of an old one, and other bytes. The old bytes may stand elsewhere, in a copy or
    /// under another name of the same file.
    fn with_other_bytes(&self, fates: &[Fate]) -> Result<Vec<(usize, u32)>> {
        let (mut changed, mut unclear) = (Vec::new(), Vec::new());
        for (nth, fate) in fates.iter().enumerate() {
            let path = &self.tree.entries[nth].path;
            match (fate, self.old_at(path)) {
                (Fate::Changed(of, _), _) => changed.push((nth, *of)),
                (Fate::New, Some(of)) if self.size(nth) > 0 => unclear.push((nth, of)),
                _ => {}
            }
        }
        let is_sized = |(nth, of): &(usize, u32)| self.old_file(*of).size == self.size(*nth);
        changed.retain(is_sized);
        unclear.retain(is_sized);
        let found = self.check(&unclear)?;
        changed
            .extend(unclear.into_iter().zip(found).filter(|(_, same)| same.is_none()).map(|(pair, _)| pair));
        Ok(changed)
    }

    /// The traces of writers in files at their old paths that have their bytes.
    pub(crate) fn traces(&self, fates: &[Fate]) -> Traces {
        let whole = fates.iter().enumerate().filter_map(|(nth, fate)| match fate {
            Fate::Same(of) if self.old_at(&self.tree.entries[nth].path) == Some(*of) => Some((nth, *of)),
            _ => None,
        });
        Traces::of(whole.map(|(nth, of)| (self.time(nth, of), self.writer(nth, of))))
    }

    /// A file in another place that passes for an old one that was moved, or copied, and then damaged; and that old
    /// file. It would be taken for a new one. A file that stays by the policy has one name for ever: no other file is
    /// it moved, or its copy.
    ///
    /// # Errors
    /// Those of files that have to be read.
    pub(crate) fn find_suspect(
        &self,
        fates: &[Fate],
        traces: Traces,
        policy: &Policy<'_>,
    ) -> Result<Option<(usize, u32)>> {
        /// The most old files that a file is compared with.
        const MOST: usize = 256;
        let mut is_there = vec![false; self.old.catalog.entries.len()];
        for fate in fates {
            if let Fate::Same(of) = fate {
                is_there[*of as usize] = true;
            }
        }
        let stays = |of: usize| policy.words(&self.old.catalog.entries[of].path, false).has(Words::STAYS);
        // Those that are gone come first.
        let mut alike: HashMap<u64, Vec<u32>> = HashMap::new();
        for wanted in [false, true] {
            let files = self.old.catalog.files();
            let files = files.filter(|(of, file)| is_there[*of] == wanted && file.size > 0);
            for (of, file) in files.filter(|(of, _)| !stays(*of)) {
                alike.entry(file.size).or_default().push(of as u32);
            }
        }
        let others = |(_, fate): &(usize, &Fate)| matches!(fate, Fate::New | Fate::Changed(..));
        for (nth, _) in fates.iter().enumerate().filter(others) {
            let own = self.old_at(&self.tree.entries[nth].path);
            let Some(alike) = alike.get(&self.size(nth)) else { continue };
            let mut samples = None;
            for of in alike.iter().take(MOST).filter(|of| own != Some(**of)) {
                let is_gone = !is_there[*of as usize];
                // A duplicate of a file that is there has its bytes.
                let is_other = || Ok(is_gone || self.check(&[(nth, *of)])?[0].is_none());
                if self.passes_for((nth, *of), is_gone, traces, &mut samples) && is_other()? {
                    return Ok(Some((nth, *of)));
                }
            }
        }
        Ok(None)
    }

    /// Tells whether an entry passes for an old file of its size that was moved and then damaged.
    fn passes_for(
        &self,
        (nth, of): (usize, u32),
        is_gone: bool,
        traces: Traces,
        samples: &mut Option<Samples>,
    ) -> bool {
        let path = &self.old.catalog.entries[of as usize].path;
        let alike = Alike {
            time: self.time(nth, of),
            // Two files that are there may have the same time.
            has_own_time: is_gone && self.tree.stats[nth].nanos != 0,
            has_name: name_of(&self.tree.entries[nth].path) == name_of(path),
        };
        let mut shares = || {
            let samples = samples.get_or_insert_with(|| {
                let block = self.old.catalog.block;
                let found = self.open(nth).and_then(|file| Samples::of(&file, self.size(nth), block));
                found.unwrap_or_default()
            });
            samples.same_as(self.old, self.old_file(of)) > 0
        };
        alike.passes(&mut shares) || is_gone && traces.is_copy && shares()
    }
}

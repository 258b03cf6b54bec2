//! The policy's say on files that are not as they were recorded.

use super::Files;
use crate::catalog::moved::folders_of;
use crate::catalog::patterns::Patterns;
use crate::catalog::policy::Policy;
use crate::examine::looker::{FileReport, Len};
use crate::examine::verdict::{Facts, Once, State};
use fec_core::format::sidecar::parts::Exclusion;
use fec_core::format::sidecar::policy::Words;
use fec_core::format::sidecar::{EntryKind, FileEntry};
use rustix::fs::FileType;
use std::collections::HashSet;

impl Files<'_> {
    /// A path in the folder of the policy that says that a program is at work.
    pub(super) fn busy(&self) -> Option<Box<[u8]>> {
        let (rules, exclusion) = (self.sidecar.believed_policy(), Exclusion::default());
        let patterns = Patterns::of(&exclusion, rules);
        // A folder that cannot be listed is told as an entry.
        let _ = self.base.visit(&rules.anchor, |path, kind| {
            patterns.leave_out(self.base, path, kind == FileType::Directory);
        });
        patterns.busy().map(Box::from)
    }

    /// Turns what is missing, and may go, into what is gone. A file that stays is missing though its bytes stand
    /// elsewhere, all of them or most: programs that write files once look for them by their names, and new packs may
    /// repeat nearly all of an old one.
    pub(super) fn let_go(&self, states: &mut [State], policy: &Policy<'_>) {
        let entries = &self.sidecar.catalog.entries;
        let is_away = |state: State| matches!(state, State::Missing | State::Moved | State::MovedDamaged);
        for (state, entry) in states.iter_mut().zip(entries).filter(|(state, _)| is_away(**state)) {
            let words = policy.words(&entry.path, entry.kind == EntryKind::Folder);
            *state = match *state {
                State::Moved | State::MovedDamaged if !words.has(Words::STAYS) => continue,
                _ if policy.may_be_pruned(&entry.path) => State::Gone,
                State::Missing if words.has(Words::GOES) => State::Gone,
                _ => State::Missing,
            };
        }
        // Whatever is made again needs its folders.
        let made = states.iter().zip(entries).filter(|(state, _)| state.is_damage());
        let needed: HashSet<&[u8]> = made.flat_map(|(_, entry)| folders_of(&entry.path)).collect();
        for (state, entry) in
            states.iter_mut().zip(entries).filter(|(state, _)| matches!(**state, State::Gone | State::Moved))
        {
            if entry.kind == EntryKind::Folder && needed.contains(&*entry.path) {
                *state = State::Missing;
            }
        }
    }

    /// Tells whether the policy makes damage of the differences of a file. A file that was not read, or not all of it,
    /// may have grown; or be whole, if it has its recorded size.
    pub(super) fn once(
        &self,
        (nth, file): (usize, &FileEntry),
        facts: Facts,
        report: &FileReport,
        policy: &Policy<'_>,
    ) -> Once {
        let path = &self.sidecar.catalog.entries[nth].path;
        let is_wrong = !report.is_clean() || report.is_right == Some(false);
        // The integer type differs between systems.
        #[allow(clippy::unnecessary_cast)]
        let is_longer = || {
            report.len == Len::More
                || report.len == Len::Same
                    && self.base.stat(path).is_ok_and(|stat| stat.st_size as u64 > file.size)
        };
        match facts.is_file && (is_wrong || !facts.has_size) && policy.is_once(path) {
            false => Once::No,
            true if !is_wrong && is_longer() => Once::Grown,
            true => Once::Yes,
        }
    }
}

//! Tails of files that share a block: only all of them together have a digest, unless a file is its tail.

use super::lacking::lacking;
use crate::Sidecar;
use crate::catalog::positions::{Any, PositionReader, Span};
use crate::catalog::proved::proved;
use crate::repair::task::{Damage, Task};
use fec_core::digest::HashKind;
use fec_core::format::sidecar::EntryKind;

/// Most combinations of versions that are tried for a block.
const MOST_COMBINATIONS: usize = 4096;

/// The lacking tails of a position, and the versions that were found.
pub(super) struct Tails {
    pub(super) position: u64,
    /// Versions of each tail, in the order of the spans; empty before the first answer.
    versions: Vec<Vec<Box<[u8]>>>,
}

/// The worth of a mirror's answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judged {
    /// They, or what was there before, make the block whole.
    Right,
    /// At least one of them is proved wrong.
    Wrong,
    /// Something else may be wrong, or lacking.
    Open,
}

impl Tails {
    pub(super) fn new(position: u64) -> Tails {
        Tails { position, versions: Vec::new() }
    }

    /// Bytes of all versions.
    pub(super) fn len(&self) -> usize {
        self.versions.iter().flatten().map(|version| version.len()).sum()
    }

    /// Forgets all versions.
    pub(super) fn forget(&mut self) {
        self.versions.clear();
    }

    /// Asks for each lacking tail, by `ask`, and tries what came of it. The block comes back if it is right.
    pub(super) fn ask(
        &mut self,
        (task, damage): (&Task<'_>, &Damage),
        mut ask: impl FnMut(&Span) -> Option<Box<[u8]>>,
    ) -> (Judged, Option<Vec<u8>>) {
        let spans: Vec<Span> = lacking(damage, self.position, task.how.only.is_some()).collect();
        self.versions.resize(spans.len(), Vec::new());
        let (mut answers, mut is_wrong) = (0, false);
        for (span, versions) in spans.iter().zip(&mut self.versions) {
            let is_proved = versions.len() == 1 && is_file(task.sidecar, span, &versions[0]);
            let Some(version) = (if is_proved { None } else { ask(span) }) else { continue };
            answers += 1;
            if is_whole_file(task.sidecar, span) {
                match is_file(task.sidecar, span, &version) {
                    true => *versions = vec![version],
                    false => is_wrong = true,
                }
            } else if !versions.contains(&version) {
                versions.push(version);
            }
        }
        if answers == 0 {
            return (Judged::Open, None);
        }
        match self.combined((task, damage), &spans) {
            Some(block) => (if is_wrong { Judged::Wrong } else { Judged::Right }, Some(block)),
            None if is_wrong || answers == spans.len() => (Judged::Wrong, None),
            None => (Judged::Open, None),
        }
    }

    /// The block, if some versions make it right, beside all that is there.
    fn combined(&self, (task, damage): (&Task<'_>, &Damage), spans: &[Span]) -> Option<Vec<u8>> {
        let Task { sidecar, base, .. } = *task;
        let (positions, catalog) = (&damage.positions, &sidecar.catalog);
        let block = u64::from(catalog.block);
        let mut bytes = vec![0; block as usize];
        let mut reader = PositionReader::new(base, catalog, positions, &Any).with(&damage.found.moved);
        // A tail that is there may be right although its file is not: the block is filled with it.
        let _ = reader.fill(self.position, &mut bytes, |_, _| Ok::<(), ()>(()));
        let there = bytes.clone();
        let at = |span: &Span| {
            let start = (span.at - self.position * block) as usize;
            start..start + span.len as usize
        };
        let ways = |versions: &Vec<Box<[u8]>>| versions.len() + 1;
        let all = self.versions.iter().try_fold(1usize, |all, versions| all.checked_mul(ways(versions)));
        for nth in 0..all.map_or(MOST_COMBINATIONS, |all| all.min(MOST_COMBINATIONS)) {
            // The last version of each tail comes first: the latest answers are whole more often than others.
            let mut rest = nth;
            for (span, versions) in spans.iter().zip(&self.versions) {
                let of = rest % ways(versions);
                rest /= ways(versions);
                let from =
                    versions.len().checked_sub(of + 1).map_or(&there[at(span)], |version| &versions[version]);
                bytes[at(span)].copy_from_slice(from);
            }
            if proved(sidecar, positions, self.position, &bytes)[0] {
                return Some(bytes);
            }
        }
        None
    }
}

/// Tells whether the span is all of its file.
fn is_whole_file(sidecar: &Sidecar, span: &Span) -> bool {
    matches!(&sidecar.catalog.entries[span.entry as usize].kind, EntryKind::File(file) if file.size == span.len)
}

/// Tells whether the bytes are all of the file of a span.
fn is_file(sidecar: &Sidecar, span: &Span, bytes: &[u8]) -> bool {
    let kind = &sidecar.catalog.entries[span.entry as usize].kind;
    matches!(kind, EntryKind::File(file) if file.size == bytes.len() as u64 && HashKind::Blake3.digest(bytes) == file.blake3)
}

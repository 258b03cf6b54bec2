//! Finds the difference between the metadata of a whole generation and that of an update, before the update has coded
//! anything: places depend on its length.

use fec_core::digest::Digest;
use fec_core::error::FormatError;
use fec_core::format::sidecar::difference::{Difference, Step, difference_bytes};
use fec_core::format::sidecar::piece::Generation;
use std::collections::HashMap;
use std::ops::Range;

/// Bytes that are compared to find out where two metadata go on alike.
const WINDOW: usize = 16;
/// The distance between the windows of the old metadata that are looked for.
const STRIDE: usize = 64;

/// The payload of an update that is a difference.
pub(crate) struct Payload {
    /// E of the whole generation.
    root: Digest,
    /// The metadata of the whole generation.
    whole: Vec<u8>,
    steps: Vec<Step>,
    /// Bytes of the payload.
    pub(crate) len: u64,
}

impl Payload {
    /// The difference that leads from the metadata of a whole generation to new metadata, of which two drafts are
    /// given: what differs between these is not known yet. `catalog_len` is that of the new catalog.
    pub(crate) fn between(
        (whole, metadata): (&Generation, Vec<u8>),
        catalog_len: u64,
        drafts: [&[u8]; 2],
    ) -> Payload {
        let steps = Search::new(&metadata, drafts[0], &unknown(drafts)).run();
        let len = difference_bytes(&whole.root, catalog_len, drafts[0], &steps).len() as u64;
        Payload { root: whole.root, whole: metadata, steps, len }
    }

    /// The bytes of the payload, for the new metadata.
    ///
    /// # Errors
    /// [`FormatError`] if these are not what the drafts said.
    pub(crate) fn bytes(&self, catalog_len: u64, metadata: &[u8]) -> Result<Vec<u8>, FormatError> {
        let bytes = difference_bytes(&self.root, catalog_len, metadata, &self.steps);
        let is_right = Difference::parse(&bytes)?.apply(&self.whole)? == metadata;
        is_right.then_some(bytes).ok_or(FormatError::Catalog("its difference gives other metadata"))
    }
}

/// The ranges in which two drafts of the same length differ.
fn unknown([first, second]: [&[u8]; 2]) -> Vec<Range<usize>> {
    assert_eq!(first.len(), second.len(), "the length of metadata is known");
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for (at, _) in first.iter().zip(second).enumerate().filter(|(_, (first, second))| first != second) {
        match ranges.last_mut() {
            Some(last) if last.end == at => last.end += 1,
            _ => ranges.push(at..at + 1),
        }
    }
    ranges
}

/// A search for what two byte strings have in common, in order.
struct Search<'a> {
    old: &'a [u8],
    new: &'a [u8],
    /// The ranges of the new bytes that are like no old ones.
    unknown: &'a [Range<usize>],
    /// The offsets of windows of the old bytes, the first of each content.
    windows: HashMap<&'a [u8; WINDOW], usize>,
}

impl<'a> Search<'a> {
    fn new(old: &'a [u8], new: &'a [u8], unknown: &'a [Range<usize>]) -> Search<'a> {
        let mut windows = HashMap::with_capacity(old.len() / STRIDE);
        for at in (0..old.len()).step_by(STRIDE) {
            // Digests of lost or empty positions stand everywhere.
            let window = old[at..].first_chunk::<WINDOW>().filter(|window| **window != [window[0]; WINDOW]);
            window.map(|window| windows.entry(window).or_insert(at));
        }
        Search { old, new, unknown, windows }
    }

    /// The steps from the old bytes to the new ones.
    fn run(&self) -> Vec<Step> {
        let (mut steps, mut old, mut new) = (Vec::new(), 0, 0);
        // The step whose added bytes are not all found yet.
        let mut open = Step { skip: 0, copy: 0, add: 0..0 };
        while let Some((old_at, new_at, len)) = self.next(old, new) {
            open.add = new..new_at;
            if open.copy > 0 || !open.add.is_empty() {
                steps.push(open);
            }
            open = Step { skip: (old_at - old) as u64, copy: len as u64, add: 0..0 };
            (old, new) = (old_at + len, new_at + len);
        }
        open.add = new..self.new.len();
        if open.copy > 0 || !open.add.is_empty() {
            steps.push(open);
        }
        steps
    }

    /// The next bytes that both have, from these offsets on: where they stand, and how many they are.
    fn next(&self, old: usize, new: usize) -> Option<(usize, usize, usize)> {
        let mut at = new;
        loop {
            let window: &[u8; WINDOW] = self.new.get(at..)?.first_chunk()?;
            let known = self.known_from(at);
            if known.start > at || known.len() < WINDOW {
                at = if known.start > at { known.start } else { self.known_from(known.end).start };
                continue;
            }
            // Bytes in place of as many others are most likely.
            let beside = old + (at - new);
            let is_beside = self.old.get(beside..).is_some_and(|old| old.starts_with(window));
            let found = match is_beside {
                true => Some(beside),
                false => self.windows.get(window).copied().filter(|found| *found >= old),
            };
            if let Some(found) = found {
                let back = self.old[old..found].iter().rev().zip(self.new[new..at].iter().rev());
                let limit = at - self.known_before(at).max(new);
                let back = back.take(limit).take_while(|(old, new)| old == new).count();
                let both = self.old[found..].iter().zip(&self.new[at..known.end]);
                let len = both.take_while(|(old, new)| old == new).count();
                return Some((found - back, at - back, len + back));
            }
            at += 1;
        }
    }

    /// The known bytes from an offset on: the first of them at or behind it, and the end of those in a row.
    fn known_from(&self, at: usize) -> Range<usize> {
        let next = self.unknown.partition_point(|range| range.end <= at);
        let (start, next) = match self.unknown.get(next) {
            Some(range) if range.start <= at => (range.end, next + 1),
            _ => (at, next),
        };
        start..self.unknown.get(next).map_or(self.new.len(), |range| range.start)
    }

    /// The start of the known bytes in a row that end before an offset, which is known.
    fn known_before(&self, at: usize) -> usize {
        let before = self.unknown.partition_point(|range| range.end <= at);
        before.checked_sub(1).map_or(0, |before| self.unknown[before].end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fec_core::digest::HashKind;

    /// Bytes that look like digests.
    fn digests(seed: u8, count: usize) -> Vec<u8> {
        (0..count)
            .flat_map(|nth| HashKind::Blake3.digest(&[&[seed], &nth.to_le_bytes()[..]].concat()))
            .collect()
    }

    /// The steps from `old` to `new`, and the bytes that they add.
    fn steps(old: &[u8], new: &[u8], unknown: &[Range<usize>]) -> (Vec<Step>, usize) {
        let steps = Search::new(old, new, unknown).run();
        let payload = difference_bytes(&[0; 32], 0, new, &steps);
        assert!(Difference::parse(&payload).unwrap().apply(old).unwrap() == new);
        for range in unknown {
            let mut at = 0;
            for step in &steps {
                let copied = at..at + step.copy as usize;
                assert!(copied.end <= range.start || range.end <= copied.start, "{range:?} is copied");
                at = copied.end + step.add.len();
            }
        }
        let added = steps.iter().map(|step| step.add.len()).sum();
        (steps, added)
    }

    #[test]
    fn few_changes_are_few_bytes() {
        let old = digests(1, 4000);
        assert_eq!(steps(&old, &old, &[]).1, 0);
        let mut new = old.clone();
        // A digest is marked as lost, a few bytes come in and others leave, and more follow at the end.
        new[32_000..32_016].fill(0xff);
        new.splice(50_000..50_000, *b"a new path");
        new.drain(80_000..81_000);
        new.extend_from_slice(&digests(2, 10));
        let (found, added) = steps(&old, &new, &[]);
        assert_eq!(added, 16 + 10 + 320, "{found:?}");
        assert_eq!(found.len(), 4);
        let behind = new.len() - 100..new.len();
        assert_eq!(steps(&old, &new, &[5000..5032, behind.clone()]).1, added + 32);
        assert_eq!(steps(&old, &old, std::slice::from_ref(&(0..old.len()))).1, old.len());
    }

    #[test]
    fn lost_digests_are_not_taken_for_each_other() {
        let mut old = digests(1, 4000);
        old[64_000..64_064].fill(0xff);
        let mut new = old.clone();
        new[640..656].fill(0xff);
        assert_eq!(steps(&old, &new, &[]).1, 16);
    }

    #[test]
    fn what_has_nothing_in_common_is_added() {
        for (old, new) in [(0, 0), (0, 10), (10, 0), (1, 1), (100, 90), (15, 3)] {
            let (old, new) = (digests(1, old), digests(2, new));
            assert_eq!(steps(&old, &new, &[]).1, new.len());
        }
    }

    #[test]
    fn what_drafts_do_not_agree_on_is_unknown() {
        assert_eq!(unknown([b"abcdef", b"aXXdeX"]), [1..3, 5..6]);
        assert_eq!(unknown([b"", b""]), []);
    }
}

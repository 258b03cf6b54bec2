//! Records lost originals of sets, in memory that grows with the findings and not with the claims of a header.

use crate::groups::Groups;
use crate::ranges::RangeList;
use std::collections::BTreeMap;
use std::ops::Range;

/// Originals of a set, one bit each.
pub(crate) type Originals = [u64; 4];

/// Every original.
pub(crate) const ALL: Originals = [u64::MAX; 4];

/// Lost originals of sets that cannot be decoded. Consecutive sets that lack the same originals share an entry.
#[derive(Debug, Default)]
pub(crate) struct Losses(BTreeMap<(u32, u32), (u32, Originals)>);

/// The set of originals with these numbers.
pub(crate) fn originals(numbers: impl Iterator<Item = u32>) -> Originals {
    let mut originals = [0; 4];
    numbers.for_each(|number| originals[number as usize / 64] |= 1 << (number % 64));
    originals
}

fn contains(originals: &Originals, number: u32) -> bool {
    originals[number as usize / 64] >> (number % 64) & 1 == 1
}

impl Losses {
    /// Adds sets of a group that were not added before, with the originals that they lack.
    pub(crate) fn add(&mut self, group: u32, sets: Range<u32>, lost: Originals) {
        if sets.is_empty() {
            return;
        }
        let (mut start, mut end) = (sets.start, sets.end);
        let before = self.0.range(..(group, start)).next_back().map(|(key, value)| (*key, *value));
        if let Some((key, (its_end, its_lost))) = before
            && (key.0, its_end, its_lost) == (group, start, lost)
        {
            self.0.remove(&key);
            start = key.1;
        }
        if let Some((its_end, its_lost)) = self.0.get(&(group, end)).copied()
            && its_lost == lost
        {
            self.0.remove(&(group, end));
            end = its_end;
        }
        self.0.insert((group, start), (end, lost));
    }

    /// Adds the losses of other sets.
    pub(crate) fn absorb(&mut self, other: Losses) {
        other.0.into_iter().for_each(|((group, start), (end, lost))| self.add(group, start..end, lost));
    }

    /// The number of sets.
    pub(crate) fn sets(&self) -> u64 {
        self.0.iter().map(|((_, start), (end, _))| u64::from(end - start)).sum()
    }

    /// The lost payload, and the proved payload of the same sets.
    pub(crate) fn payload(&self, groups: &Groups<'_>) -> (RangeList, RangeList) {
        let (mut lost, mut proved) = (RangeList::default(), RangeList::default());
        let mut entries = self.0.iter().peekable();
        while let Some(((group, ..), _)) = entries.peek() {
            let group = *group;
            let mut runs = Vec::new();
            while let Some(((_, start), (end, originals))) = entries.next_if(|((its, _), _)| *its == group) {
                runs.push((*start..*end, *originals));
            }
            let entry = groups.get((group - groups.first_number()) as usize);
            let geometry = &entry.geometry;
            for index in 0..geometry.shape().code.k() {
                for (sets, originals) in &runs {
                    let from = geometry.shard_offset(sets.start, index).min(geometry.payload_len());
                    let to = geometry.shard_offset(sets.start, index)
                        + u64::from(sets.end - sets.start) * geometry.shape().shard_len as u64;
                    let to = to.min(geometry.payload_len());
                    let list = if contains(originals, index as u32) { &mut lost } else { &mut proved };
                    list.add(entry.start + from, entry.start + to);
                }
            }
        }
        (lost, proved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fec_core::block::Code;
    use fec_core::digest::HashKind;
    use fec_core::params::{Form, GroupGeometry};

    /// Expected values for 3 + 1 shards in 5 sets come from a plain table of every set and original.
    #[test]
    fn losses_are_those_of_a_plain_table() {
        let code = Code::new(3, 1).unwrap();
        let geometry =
            GroupGeometry::whole(Form::Shards, HashKind::Blake3, code, 3 * 4096, 5 * 3 * 4096 - 9000)
                .unwrap();
        assert_eq!(geometry.shape().sets, 5);
        let groups = Groups::new(geometry, geometry, vec![[0; 32]]);
        let one = originals([1].into_iter());
        let mut losses = Losses::default();
        for (sets, lost) in [(3..4, ALL), (0..1, one), (4..5, ALL), (1..2, one)] {
            losses.add(0, sets, lost);
        }
        assert_eq!((losses.sets(), losses.0.len()), (4, 2));
        let (lost, proved) = losses.payload(&groups);
        let mut table = vec![0u8; geometry.payload_len() as usize];
        for set in [0, 1, 3, 4] {
            for index in 0..3 {
                let (at, len) = (geometry.shard_offset(set, index), geometry.shard_payload(set, index));
                let mark = if set > 2 || index == 1 { 1 } else { 2 };
                (at..at + len as u64).for_each(|byte| table[byte as usize] = mark);
            }
        }
        let count = |mark| table.iter().filter(|byte| **byte == mark).count() as u64;
        assert_eq!((lost.bytes(), proved.bytes()), (count(1), count(2)));
        for (list, mark) in [(&lost, 1), (&proved, 2)] {
            for range in list.list() {
                assert!(table[range.start as usize..range.end as usize].iter().all(|byte| *byte == mark));
            }
        }
    }
}

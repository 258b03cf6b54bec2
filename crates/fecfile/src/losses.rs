//! Records lost originals of sets, in memory that grows with the findings and not with the claims of a header.

use crate::groups::Groups;
use fec_base::ranges::{RangeList, Ranges};
use std::collections::BTreeMap;
use std::ops::Range;

/// Originals of a set, one bit each.
pub(crate) type Originals = [u64; 4];

/// Every original.
pub(crate) const ALL: Originals = [u64::MAX; 4];

/// Lost originals of sets that cannot be decoded. Consecutive sets that lack the same originals share an entry, and so
/// do consecutive groups without any record: an index may list a million of these.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    /// The group and the first set, to the set after the last and the originals that all of them lack.
    sets: BTreeMap<(u32, u32), (u32, Originals)>,
    /// The numbers of groups without any record.
    groups: Ranges,
    /// The sets of these groups.
    sets_of_groups: u64,
}

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
    /// Adds a group without any record, that was not added before.
    pub(crate) fn add_group(&mut self, group: u32, sets: u32) {
        self.groups.add(group.into(), u64::from(group) + 1);
        self.sets_of_groups += u64::from(sets);
    }

    /// Adds sets of a group that were not added before, with the originals that they lack.
    pub(crate) fn add(&mut self, group: u32, sets: Range<u32>, lost: Originals) {
        if sets.is_empty() {
            return;
        }
        let (mut start, mut end) = (sets.start, sets.end);
        let before = self.sets.range(..(group, start)).next_back().map(|(key, value)| (*key, *value));
        if let Some((key, (its_end, its_lost))) = before
            && (key.0, its_end, its_lost) == (group, start, lost)
        {
            self.sets.remove(&key);
            start = key.1;
        }
        if let Some((its_end, its_lost)) = self.sets.get(&(group, end)).copied()
            && its_lost == lost
        {
            self.sets.remove(&(group, end));
            end = its_end;
        }
        self.sets.insert((group, start), (end, lost));
    }

    /// Adds the losses of other sets.
    pub(crate) fn absorb(&mut self, other: Losses) {
        other.sets.into_iter().for_each(|((group, start), (end, lost))| self.add(group, start..end, lost));
        other.groups.iter().for_each(|(first, end)| self.groups.add(first, end));
        self.sets_of_groups += other.sets_of_groups;
    }

    /// The number of sets.
    pub(crate) fn sets(&self) -> u64 {
        self.sets.iter().map(|((_, start), (end, _))| u64::from(end - start)).sum::<u64>()
            + self.sets_of_groups
    }

    /// The lost payload, and the proved payload of the same sets.
    pub(crate) fn payload(&self, groups: &Groups<'_>) -> (RangeList, RangeList) {
        let (mut lost, mut proved) = (RangeList::default(), RangeList::default());
        let mut entries = self.sets.iter().peekable();
        let mut whole = self.groups.iter().flat_map(|(first, end)| first..end).peekable();
        loop {
            let next = entries.peek().map(|((group, _), _)| *group);
            while let Some(group) = whole.next_if(|group| next.is_none_or(|next| *group < u64::from(next))) {
                let entry = groups.get(group as usize - groups.first_number() as usize);
                lost.add(entry.start, entry.start + entry.geometry.payload_len());
            }
            let Some(group) = next else { break };
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
        assert_eq!((losses.sets(), losses.sets.len()), (4, 2));
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

    /// Groups of one set of 3 + 1 shards each, in number a hundred thousand, all without a record but for two sets.
    #[test]
    fn groups_without_records_share_an_entry() {
        let (code, capacity, groups) = (Code::new(3, 1).unwrap(), 3 * 4096, 100_000u64);
        let last = GroupGeometry::whole(Form::Container, HashKind::Blake3, code, capacity, capacity).unwrap();
        let mut bytes = last.to_bytes();
        bytes[24..].copy_from_slice(&(groups - 1).to_le_bytes());
        let last = GroupGeometry::parse(&bytes, Form::Container).unwrap();
        bytes[3] &= !1;
        bytes[24..].copy_from_slice(&0u64.to_le_bytes());
        let first = GroupGeometry::parse(&bytes, Form::Container).unwrap();
        let groups_of_file = Groups::new(first, last, vec![[0; 32]; groups as usize]);
        let (mut losses, mut others) = (Losses::default(), Losses::default());
        for group in (0..groups as u32).filter(|group| ![7, 500].contains(group)) {
            if group % 3 == 0 { &mut losses } else { &mut others }.add_group(group, 1);
        }
        others.add(7, 0..1, originals([1].into_iter()));
        losses.absorb(others);
        assert_eq!((losses.sets(), losses.sets.len(), losses.groups.len()), (groups - 1, 1, 3));
        let (lost, proved) = losses.payload(&groups_of_file);
        let pieces =
            |list: &RangeList| list.list().iter().map(|range| (range.start, range.end)).collect::<Vec<_>>();
        // Group 7 lacks its second original alone, and nothing of group 500 is lost.
        let (seven, end) = (7 * capacity, groups * capacity);
        let expected =
            [(0, seven), (seven + 4096, seven + 8192), (8 * capacity, 500 * capacity), (501 * capacity, end)];
        assert_eq!(pieces(&lost), expected);
        assert_eq!(lost.bytes(), expected.iter().map(|(start, end)| end - start).sum::<u64>());
        assert_eq!(pieces(&proved), [(seven, seven + 4096), (seven + 8192, seven + 12288)]);
    }
}

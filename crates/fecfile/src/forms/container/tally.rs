//! The intact records of a group of a container, in little memory. Consecutive records of the group are mostly
//! consecutive in the container too, so only such runs are kept: a whole group is a single run.

use super::copies::Copies;
use fec_base::ranges::joined;
use fec_core::digest::Digest;
use fec_core::format::container::GroupId;
use std::collections::BTreeMap;
use std::ops::Range;

/// The intact records of a group. Memory grows with the runs found, not with the number that a header claims; a single
/// run needs no allocation.
#[derive(Debug)]
pub(crate) struct Tally {
    pub id: GroupId,
    /// X, the tree of its sets.
    pub tree: Digest,
    /// Some of its records are outside of annexes.
    pub stands_by_itself: bool,
    runs: RecordRuns,
}

/// Records that are consecutive both in the group and in the container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RecordRun {
    count: u64,
    offset: u64,
}

/// Runs by the ordinal of their first record. The first run found is kept apart, so that a group in a single run needs
/// no memory of its own.
#[derive(Debug, Default)]
struct RecordRuns {
    first: Option<(u64, RecordRun)>,
    more: BTreeMap<u64, RecordRun>,
}

impl RecordRuns {
    /// The last run that starts at or before `ordinal`.
    fn before(&self, ordinal: u64) -> Option<(u64, RecordRun)> {
        let first = self.first.filter(|(start, _)| *start <= ordinal);
        let more = self.more.range(..=ordinal).next_back().map(|(start, run)| (*start, *run));
        first.into_iter().chain(more).max_by_key(|(start, _)| *start)
    }

    fn set(&mut self, start: u64, run: RecordRun) {
        match &mut self.first {
            None => self.first = Some((start, run)),
            Some((its_start, its_run)) if *its_start == start => *its_run = run,
            Some(_) => {
                self.more.insert(start, run);
            }
        }
    }

    fn iter(&self) -> impl Iterator<Item = (u64, RecordRun)> {
        self.first.into_iter().chain(self.more.iter().map(|(start, run)| (*start, *run)))
    }
}

impl Tally {
    /// An empty tally of a group.
    pub(crate) fn new(id: GroupId, tree: Digest) -> Tally {
        Tally { id, tree, stands_by_itself: false, runs: RecordRuns::default() }
    }

    /// Counts a record; false if the same record was counted before.
    pub(crate) fn add(&mut self, set: u32, index: u32, at: u64) -> bool {
        let len = self.id.record_len();
        if self.find(set, index).is_some() {
            return false;
        }
        let ordinal = self.id.ordinal(set, index);
        match self.runs.before(ordinal) {
            Some((start, run)) if start + run.count == ordinal && run.offset + run.count * len == at => {
                self.runs.set(start, RecordRun { count: run.count + 1, ..run });
            }
            _ => self.runs.set(ordinal, RecordRun { count: 1, offset: at }),
        }
        true
    }

    /// The runs of the whole group as they are written from `at` on, with `copies` between them.
    fn whole_runs(&self, at: u64, copies: Copies) -> impl Iterator<Item = (u64, RecordRun)> + use<> {
        let (sets, len) = (self.sets(), self.id.record_len());
        copies.stretches_of(self.n()).map(move |stretch| {
            let start = stretch.start * sets;
            let offset = at + copies.shift(stretch.start) + start * len;
            (start, RecordRun { count: (stretch.end - stretch.start) * sets, offset })
        })
    }

    /// Counts all records of the group at the places where they are written from `at` on, with `copies` between them.
    pub(crate) fn add_all(&mut self, at: u64, copies: Copies) {
        for (start, run) in self.whole_runs(at, copies) {
            self.runs.set(start, run);
        }
    }

    fn sets(&self) -> u64 {
        self.id.geometry.shape().sets.into()
    }

    fn n(&self) -> u64 {
        self.id.geometry.shape().code.n() as u64
    }

    /// Offset of the record of a shard.
    pub(crate) fn find(&self, set: u32, index: u32) -> Option<u64> {
        let ordinal = self.id.ordinal(set, index);
        let (start, run) = self.runs.before(ordinal)?;
        let nth = ordinal - start;
        (nth < run.count).then(|| run.offset + nth * self.id.record_len())
    }

    /// Tells whether all records were found in order from `at` on, with `copies` between them.
    pub(crate) fn is_whole_at(&self, at: u64, copies: Copies) -> bool {
        self.whole_runs(at, copies).all(|(start, run)| self.runs.before(start) == Some((start, run)))
    }

    /// Tells whether two consecutive runs are as far apart as if `copies` were between them.
    pub(crate) fn leaves_room_for(&self, copies: Copies) -> bool {
        let (sets, len) = (self.sets(), self.id.record_len());
        let mut runs: Vec<(u64, RecordRun)> = self.runs.iter().collect();
        runs.sort_by_key(|(start, _)| *start);
        runs.windows(2).any(|pair| {
            let [(a, first), (b, second)] = [pair[0], pair[1]];
            let room = copies.shift(b / sets) - copies.shift(a / sets);
            room > 0 && second.offset.checked_sub(first.offset) == Some((b - a) * len + room)
        })
    }

    /// The fewest intact shards of any set. Cost: a step for each record.
    pub(crate) fn weakest(&self) -> u32 {
        let records: u64 = self.runs.iter().map(|(_, run)| run.count).sum();
        if records == self.id.records() {
            return self.n() as u32;
        }
        // With fewer records than sets some set has none. The check also keeps the table below no larger than the
        // records found.
        if records < self.sets() {
            return 0;
        }
        let mut counts = vec![0u16; self.sets() as usize];
        for (start, run) in self.runs.iter() {
            (start..start + run.count).for_each(|ordinal| counts[(ordinal % self.sets()) as usize] += 1);
        }
        counts.into_iter().min().unwrap_or(0).into()
    }

    /// Number of records found of shard `index`.
    pub(crate) fn records_of(&self, index: u32) -> u64 {
        let (from, to) = (u64::from(index) * self.sets(), (u64::from(index) + 1) * self.sets());
        let overlap =
            |(start, run): (u64, RecordRun)| (start + run.count).min(to).saturating_sub(start.max(from));
        self.runs.iter().map(overlap).sum()
    }

    /// Ranges of sets with any record, in order.
    pub(crate) fn present(&self) -> Vec<Range<u32>> {
        let sets = self.sets();
        let mut ranges: Vec<Range<u32>> = Vec::new();
        for (start, run) in self.runs.iter() {
            let (first, count) = (start % sets, run.count);
            if count >= sets {
                return std::iter::once(0..sets as u32).collect();
            }
            let end = first + count;
            ranges.push(first as u32..end.min(sets) as u32);
            ranges.extend((end > sets).then(|| 0..(end - sets) as u32));
        }
        joined(ranges)
    }

    /// Ranges of sets with at least k records, in order. Cost: a few steps for each run.
    fn decodable(&self) -> Vec<Range<u32>> {
        let (sets, k) = (self.sets(), self.id.geometry.shape().code.k() as i64);
        // Full rounds of a run over all sets count for every set. For the rest of the run only start and end are noted.
        let (mut around, mut steps) = (0, BTreeMap::<u64, i64>::new());
        for (start, run) in self.runs.iter() {
            around += (run.count / sets) as i64;
            let (first, end) = (start % sets, start % sets + run.count % sets);
            for part in [first..end.min(sets), 0..end.saturating_sub(sets)] {
                *steps.entry(part.start).or_default() += 1;
                *steps.entry(part.end).or_default() -= 1;
            }
        }
        let (mut ranges, mut from) = (Vec::new(), 0);
        for (at, step) in steps.into_iter().chain([(sets, 0)]) {
            if around >= k && from < at {
                ranges.push(from as u32..at as u32);
            }
            (around, from) = (around + step, at);
        }
        joined(ranges)
    }

    /// Ranges of available originals, in the order of the payload: those found, and those of sets with k records. There
    /// are no more ranges than records.
    pub(crate) fn obtainable(&self) -> Vec<Range<u64>> {
        let (sets, k) = (self.sets(), self.id.geometry.shape().code.k() as u64);
        // Ordinals of records equal those of originals, which come first.
        let runs = self.runs.iter().map(|(start, run)| start..(start + run.count).min(k * sets));
        let mut ranges: Vec<Range<u64>> = runs.filter(|range| !range.is_empty()).collect();
        for range in self.decodable() {
            let (from, to) = (u64::from(range.start), u64::from(range.end));
            ranges.extend((0..k).map(|index| index * sets + from..index * sets + to));
        }
        joined(ranges)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fec_core::block::Code;
    use fec_core::digest::HashKind;
    use fec_core::params::ContainerLayout;

    /// A group of 3 sets of 2 + 2 shards.
    fn group() -> GroupId {
        let code = Code::new(2, 2).unwrap();
        let layout = ContainerLayout::new(HashKind::Blake3, code, 8192, Some(3)).unwrap();
        let geometry = layout.group(0, layout.piece_len(), false);
        GroupId { geometry, root: [1; 32], before: [0; 32] }
    }

    /// Compares a tally with a plain table of each record's first place.
    fn check(order: &[(u32, u32, u64)]) -> Tally {
        let mut tally = Tally::new(group(), [2; 32]);
        let mut table = BTreeMap::new();
        for (set, index, at) in order {
            let fresh = !table.contains_key(&(*set, *index));
            table.entry((*set, *index)).or_insert(*at);
            assert_eq!(tally.add(*set, *index, *at), fresh);
        }
        for set in 0..3 {
            for index in 0..4 {
                assert_eq!(
                    tally.find(set, index),
                    table.get(&(set, index)).copied(),
                    "{set} {index} {order:?}"
                );
            }
        }
        let of_set = |s: u32| table.keys().filter(|(set, _)| *set == s).count() as u32;
        assert_eq!(tally.weakest(), (0..3).map(of_set).min().unwrap());
        let there: Vec<u32> = (0..3).filter(|s| of_set(*s) > 0).collect();
        assert_eq!(tally.present().into_iter().flatten().collect::<Vec<_>>(), there, "{order:?}");
        for i in 0..4 {
            assert_eq!(tally.records_of(i), table.keys().filter(|(_, index)| *index == i).count() as u64);
        }
        let can_be_had = |original: &u64| {
            let (set, index) = ((original % 3) as u32, (original / 3) as u32);
            table.contains_key(&(set, index)) || of_set(set) >= 2
        };
        let originals: Vec<u64> = tally.obtainable().into_iter().flatten().collect();
        assert_eq!(originals, (0..6).filter(can_be_had).collect::<Vec<_>>(), "{order:?}");
        tally
    }

    #[test]
    fn runs_tell_what_a_table_tells() {
        let len = group().record_len();
        let in_order: Vec<(u32, u32, u64)> =
            (0..12u32).map(|i| (i % 3, i / 3, 1000 + u64::from(i) * len)).collect();
        let tally = check(&in_order);
        assert!(tally.is_whole_at(1000, Copies::NONE) && !tally.is_whole_at(1001, Copies::NONE));
        // Pseudorandom orders, with gaps, shifts and repetitions.
        let mut state = 1u32;
        for _ in 0..2000 {
            let mut order = Vec::new();
            for _ in 0..1 + state % 20 {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let (set, index, at) = in_order[(state >> 16) as usize % 12];
                order.push((set, index, at + u64::from(state >> 13 & 1)));
                // The neighbour often follows, as in a run.
                let next = (index * 3 + set + 1) as usize;
                if state >> 14 & 1 == 1 && next < 12 {
                    let (set, index, at) = in_order[next];
                    order.push((set, index, at + u64::from(state >> 13 & 1)));
                }
            }
            assert!(!check(&order).is_whole_at(1000, Copies::NONE) || order.len() >= 12);
        }
    }
}

//! The intact records of one group of a container, in little memory. Records that follow one another in the group
//! mostly do so in the container too, so only such runs are kept: a whole group is one run.

use fec_core::digest::Digest;
use fec_core::format::container::RecordHeader;
use fec_core::params::GroupGeometry;
use std::collections::BTreeMap;

/// The intact records of one group. Memory grows with the runs that are there, not with what a header
/// states; one run needs no allocation.
#[derive(Debug)]
pub(crate) struct Tally {
    pub geometry: GroupGeometry,
    pub root: Digest,
    /// The head that its first record states.
    head: Digest,
    /// Other heads that its records state, in order of appearance.
    other_heads: Vec<Digest>,
    runs: RecordRuns,
    head_len: usize,
}

/// Other heads that are kept; more are ignored.
const MAX_OTHER_HEADS: usize = 3;

/// Records that follow one another, in the group and in the container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RecordRun {
    count: u64,
    offset: u64,
}

/// RecordRuns by the ordinal of their first record. The first that was found is kept apart, so that a group in
/// one run takes no memory of its own.
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
    /// The tally of the group that a record belongs to; it does not count the record yet.
    pub(crate) fn new(header: &RecordHeader) -> Tally {
        Tally {
            geometry: header.group.geometry,
            root: header.group.root,
            head: header.group.head,
            other_heads: Vec::new(),
            runs: RecordRuns::default(),
            head_len: header.group.record_head_len(),
        }
    }

    /// Counts a record; false if the same one was counted before.
    pub(crate) fn add(&mut self, header: &RecordHeader, at: u64) -> bool {
        let head = header.group.head;
        if !self.heads().any(|h| *h == head) && self.other_heads.len() < MAX_OTHER_HEADS {
            self.other_heads.push(head);
        }
        let len = self.record_len();
        if self.find(header.set, header.index).is_some() {
            return false;
        }
        let ordinal = header.group.ordinal(header.set, header.index);
        match self.runs.before(ordinal) {
            Some((start, run)) if start + run.count == ordinal && run.offset + run.count * len == at => {
                self.runs.set(start, RecordRun { count: run.count + 1, ..run });
            }
            _ => self.runs.set(ordinal, RecordRun { count: 1, offset: at }),
        }
        true
    }

    /// The heads that its records state.
    pub(crate) fn heads(&self) -> impl Iterator<Item = &Digest> {
        std::iter::once(&self.head).chain(&self.other_heads)
    }

    /// Where the record of a shard stands.
    pub(crate) fn find(&self, set: u32, index: u32) -> Option<u64> {
        let ordinal = u64::from(index) * u64::from(self.geometry.shape().sets) + u64::from(set);
        let (start, run) = self.runs.before(ordinal)?;
        let nth = ordinal - start;
        (nth < run.count).then(|| run.offset + nth * self.record_len())
    }

    /// Bytes of a record up to its body.
    pub(crate) fn head_len(&self) -> usize {
        self.head_len
    }

    fn record_len(&self) -> u64 {
        (self.head_len + self.geometry.shape().shard_len) as u64
    }

    /// Records of the whole group.
    fn count(&self) -> u64 {
        let shape = self.geometry.shape();
        shape.code.n() as u64 * u64::from(shape.sets)
    }

    /// Whether every record is there, in order from `offset` on, and all state this head.
    pub(crate) fn is_whole_at(&self, offset: u64, head: &Digest) -> bool {
        let whole = RecordRun { count: self.count(), offset };
        self.runs.more.is_empty()
            && self.runs.first == Some((0, whole))
            && self.head == *head
            && self.other_heads.is_empty()
    }

    /// The fewest intact shards of any set. Cost: a step for each record.
    pub(crate) fn weakest(&self) -> u32 {
        let sets = u64::from(self.geometry.shape().sets);
        if self.runs.first.is_some_and(|(_, run)| run.count == self.count()) {
            return self.geometry.shape().code.n() as u32;
        }
        let mut counts = vec![0u32; sets as usize];
        for (start, run) in self.runs.iter() {
            (start..start + run.count).for_each(|ordinal| counts[(ordinal % sets) as usize] += 1);
        }
        counts.into_iter().min().unwrap_or(0)
    }

    /// Records of shard `index` that are there.
    pub(crate) fn records_of(&self, index: u32) -> u64 {
        let sets = u64::from(self.geometry.shape().sets);
        let (from, to) = (u64::from(index) * sets, (u64::from(index) + 1) * sets);
        let overlap =
            |(start, run): (u64, RecordRun)| (start + run.count).min(to).saturating_sub(start.max(from));
        self.runs.iter().map(overlap).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fec_core::block::Code;
    use fec_core::digest::HashKind;
    use fec_core::format::container::GroupId;
    use fec_core::params::ContainerLayout;

    fn header(set: u32, index: u32) -> RecordHeader {
        let layout =
            ContainerLayout::new(HashKind::Blake3, Code::new(2, 2).unwrap(), 128, Some(3), 1 << 20).unwrap();
        let geometry = layout.group(0, layout.piece_len(), false);
        RecordHeader { set, index, group: GroupId { geometry, root: [1; 32], head: [0; 32] } }
    }

    /// A plain table of where each record was found first.
    fn check(order: &[(u32, u32, u64)]) -> Tally {
        let mut tally = Tally::new(&header(0, 0));
        let mut table = BTreeMap::new();
        for (set, index, at) in order {
            let fresh = !table.contains_key(&(*set, *index));
            table.entry((*set, *index)).or_insert(*at);
            assert_eq!(tally.add(&header(*set, *index), *at), fresh);
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
        for i in 0..4 {
            assert_eq!(tally.records_of(i), table.keys().filter(|(_, index)| *index == i).count() as u64);
        }
        tally
    }

    #[test]
    fn runs_tell_what_a_table_tells() {
        let len = header(0, 0).group.record_len();
        let in_order: Vec<(u32, u32, u64)> =
            (0..12u32).map(|i| (i % 3, i / 3, 1000 + u64::from(i) * len)).collect();
        let tally = check(&in_order);
        assert!(tally.is_whole_at(1000, &[0; 32]));
        assert!(!tally.is_whole_at(1001, &[0; 32]) && !tally.is_whole_at(1000, &[1; 32]));
        // Every order that a small generator makes, with gaps, shifts and repetitions.
        let mut state = 1u32;
        for _ in 0..2000 {
            let mut order = Vec::new();
            for _ in 0..1 + state % 20 {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let (set, index, at) = in_order[(state >> 16) as usize % 12];
                order.push((set, index, at + u64::from(state >> 13 & 1)));
                // Often its neighbour follows, as in a run.
                let next = (index * 3 + set + 1) as usize;
                if state >> 14 & 1 == 1 && next < 12 {
                    let (set, index, at) = in_order[next];
                    order.push((set, index, at + u64::from(state >> 13 & 1)));
                }
            }
            assert!(!check(&order).is_whole_at(1000, &[0; 32]) || order.len() >= 12);
        }
    }
}

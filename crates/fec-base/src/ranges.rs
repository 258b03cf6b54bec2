//! Sorted lists of byte ranges, joined where they touch.

use crate::names::bytes;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

/// Bytes from `start` up to, but not including, `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// The first byte.
    pub start: u64,
    /// The byte after the last.
    pub end: u64,
}

/// A set of byte ranges.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    /// Start to end of each range; no two touch.
    ranges: BTreeMap<u64, u64>,
}

impl Ranges {
    /// Adds a range that overlaps none of the present ones.
    pub fn add(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let (mut start, mut end) = (start, end);
        if let Some((&before, &its_end)) = self.ranges.range(..start).next_back()
            && its_end >= start
        {
            self.ranges.remove(&before);
            start = before;
            end = end.max(its_end);
        }
        while let Some((&after, &its_end)) = self.ranges.range(start..=end).next() {
            self.ranges.remove(&after);
            end = end.max(its_end);
        }
        self.ranges.insert(start, end);
    }

    /// Tells whether there are no ranges.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Bytes in all ranges.
    pub fn total(&self) -> u64 {
        self.ranges.iter().map(|(start, end)| end - start).sum()
    }

    /// The number of ranges.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// The end of the last range.
    pub fn end(&self) -> Option<u64> {
        self.ranges.values().next_back().copied()
    }

    /// The parts of `start..end` that lie in these ranges, in order.
    pub fn within(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, u64)> {
        let before = self.ranges.range(..start).next_back();
        let overlapping = before.into_iter().chain(self.ranges.range(start..end));
        overlapping.map(move |(from, to)| (start.max(*from), end.min(*to))).filter(|(from, to)| from < to)
    }

    /// Start and end of each range, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.ranges.iter().map(|(&start, &end)| (start, end))
    }

    /// All ranges, in order.
    pub fn list(&self) -> Vec<ByteRange> {
        self.ranges.iter().map(|(&start, &end)| ByteRange { start, end }).collect()
    }

    /// Lines for people, one for each range, up to `most`.
    pub fn describe(&self, what: &str, most: usize, out: &mut String) {
        for (start, end) in self.ranges.iter().take(most) {
            out.push_str(&format!("  {what}: bytes {start} to {} ({})\n", end - 1, bytes(end - start)));
        }
        if self.len() > most {
            out.push_str(&format!("  {what}: {} more ranges\n", self.len() - most));
        }
    }
}

/// Ranges of numbers, sorted, and joined where they touch.
pub fn joined<T: Copy + Ord>(mut ranges: Vec<Range<T>>) -> Vec<Range<T>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<T>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// The number of bytes, and their ranges, of which up to [`RangeList::MOST`] are listed.
#[derive(Clone, Default)]
pub struct RangeList {
    listed: Ranges,
    bytes: u64,
}

/// The counts alone: thousands of ranges would hide everything else.
impl fmt::Debug for RangeList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes, {} ranges listed", self.bytes, self.listed.len())
    }
}

impl RangeList {
    /// The most ranges that are listed.
    pub const MOST: usize = 10_000;

    /// Adds a range that overlaps none of the present ones.
    pub fn add(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        self.bytes += end - start;
        if self.listed.len() < RangeList::MOST || self.listed.end() == Some(start) {
            self.listed.add(start, end);
        }
    }

    /// Adds all ranges of another list.
    pub fn absorb(&mut self, other: &RangeList) {
        let unlisted = other.bytes - other.listed.total();
        other.listed.iter().for_each(|(start, end)| self.add(start, end));
        self.bytes += unlisted;
    }

    /// Bytes of all ranges, listed or not.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Tells whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The listed ranges, in order.
    pub fn list(&self) -> Vec<ByteRange> {
        self.listed.list()
    }

    /// Lines for people, one for each range, up to `most`.
    pub fn describe(&self, what: &str, most: usize, out: &mut String) {
        self.listed.describe(what, most, out);
        let unlisted = self.bytes - self.listed.total();
        if unlisted > 0 {
            out.push_str(&format!("  {what}: {unlisted} more bytes elsewhere\n"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_join_where_they_touch() {
        let mut ranges = Ranges::default();
        for (start, end) in [(10, 20), (40, 50), (20, 30), (5, 5), (30, 40), (60, 61)] {
            ranges.add(start, end);
        }
        assert_eq!(ranges.list(), [ByteRange { start: 10, end: 50 }, ByteRange { start: 60, end: 61 }]);
        assert_eq!(ranges.total(), 41);
        let within = |start, end| ranges.within(start, end).collect::<Vec<_>>();
        assert_eq!(within(0, 100), [(10, 50), (60, 61)]);
        assert_eq!(within(20, 30), [(20, 30)]);
        assert_eq!(within(49, 61), [(49, 50), (60, 61)]);
        assert_eq!(within(50, 60), []);
    }
}

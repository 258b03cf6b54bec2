//! The lane sums of a sliding window (format specification, section 14).
//!
//! Every column is added to the three sums of its lane. The window's beginning moves by whole blocks. A *record* keeps
//! the sums that each block added, and is subtracted at once when the block leaves, so that no column is read twice.
//!
//! A record takes no work while its block grows. When the block begins, the total is copied to it. When the block is
//! complete, the total is added, and the difference is the block's own sums. This second step waits for the next
//! column: another block may be about to leave by then, and one walk over the sums does both.
//!
//! Blocks without columns have no record, and take no work: a single packet may pass over a whole window of columns
//! that were lost. The walks over the sums are therefore at most a few for each column that was added.

use super::operation::{Operation, Perform};
use super::row::{RepairRow, SUMS, Sources, column_values, lane_of};
use crate::gf256::kernel::{AlignedBytes, LINE};

/// The sums of the columns from `start` to `end` that were added.
#[derive(Debug)]
pub(super) struct LaneSums {
    lanes: usize,
    block: u64,
    /// Bytes of a sum.
    len: usize,
    /// Bytes of all sums.
    all: usize,
    total: AlignedBytes,
    /// The records of blocks, each in the place of its number modulo `places`. The record of the block that begins at
    /// `begun` is the total at its beginning.
    records: AlignedBytes,
    /// Places that hold the record of a complete block. Blocks without one have added nothing.
    is_kept: Vec<bool>,
    /// True if the newest block has its record: from its first column on, unless that was passed over.
    keeps_newest: bool,
    places: u64,
    /// The first column of the oldest block whose record is still there, if it has one: `start`, or one block less.
    oldest: u64,
    start: u64,
    end: u64,
    /// The first column of the newest block, which `end` lies in or ends.
    begun: u64,
}

impl LaneSums {
    /// Sums over windows of up to `window` columns, whose beginnings are multiples of `block`, with symbols of
    /// `symbol_len` bytes. The first begins at column 0.
    pub(super) fn new(lanes: usize, block: u16, window: u32, symbol_len: usize) -> LaneSums {
        let len = (symbol_len.div_ceil(LINE) | 1) * LINE;
        let all = lanes * SUMS * len;
        let places = u64::from(window.div_ceil(u32::from(block))) + 2;
        LaneSums {
            lanes,
            block: u64::from(block),
            len,
            all,
            total: AlignedBytes::zeroed(all),
            records: AlignedBytes::zeroed(all * places as usize),
            is_kept: vec![false; places as usize],
            // The record of the first block is the total at its beginning: zero.
            keeps_newest: true,
            places,
            oldest: 0,
            start: 0,
            end: 0,
            begun: 0,
        }
    }

    /// The first column of the window.
    pub(super) fn start(&self) -> u64 {
        self.start
    }

    /// The first column of the widest window that [`select`](Self::select) serves: the last block that left may still
    /// have its record.
    pub(super) fn oldest(&self) -> u64 {
        self.oldest
    }

    /// The first column of the block that the next column lies in.
    pub(super) fn current(&self) -> u64 {
        if self.is_full() { self.end } else { self.begun }
    }

    /// Tells whether the newest block with a record has all its columns.
    fn is_full(&self) -> bool {
        self.end == self.begun + self.block
    }

    /// The next column.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// The first column of the window, and the number of columns.
    pub(super) fn columns(&self) -> (u64, u32) {
        (self.start, (self.end - self.start) as u32)
    }

    /// Begins anew at column `start`, a multiple of the block.
    pub(super) fn reset(&mut self, start: u64, on: &mut impl Perform) {
        (self.oldest, self.start, self.end, self.begun) = (start, start, start, start);
        self.keeps_newest = false;
        on.perform(Operation::Clear { dst: &mut self.total });
    }

    /// Advances to the next column and adds its symbol.
    ///
    /// The window must not be full: the caller moves its beginning first.
    pub(super) fn push(&mut self, symbol: &[u8], on: &mut impl Perform) {
        if self.is_full() {
            self.begin(on);
        }
        self.keep_newest(on);
        spread(on, &mut self.total, self.lanes, self.len, self.end, symbol);
        self.end += 1;
    }

    /// Advances to column `end`, and adds nothing. The window must have room for that.
    pub(super) fn pass_over(&mut self, end: u64, on: &mut impl Perform) {
        while self.end < end {
            if self.is_full() {
                self.begin(on);
            }
            self.end = end.min(self.begun + self.block);
        }
    }

    /// Completes the record of the newest block, and turns to the block at `end`.
    fn begin(&mut self, on: &mut impl Perform) {
        let ended = self.record_at(self.begun);
        if self.keeps_newest {
            on.perform(Operation::Add { dst: &mut self.records[ended..][..self.all], src: &self.total });
        }
        self.turn_to_next(false);
    }

    /// Begins the record of the newest block, if it has none. The record is the total, since nothing was added after
    /// the block's beginning.
    fn keep_newest(&mut self, on: &mut impl Perform) {
        if !self.keeps_newest {
            let begun = self.record_at(self.begun);
            on.perform(Operation::Copy { dst: &mut self.records[begun..][..self.all], src: &self.total });
            self.keeps_newest = true;
        }
    }

    /// Makes the block at `end` the newest one.
    fn turn_to_next(&mut self, keeps_newest: bool) {
        let ended = self.place_of(self.begun);
        self.is_kept[ended] = self.keeps_newest;
        (self.begun, self.keeps_newest) = (self.end, keeps_newest);
    }

    /// Adds a column that was passed over.
    pub(super) fn add_late(&mut self, column: u64, symbol: &[u8], on: &mut impl Perform) {
        if !(self.start..self.end).contains(&column) {
            return;
        }
        if column >= self.begun {
            self.keep_newest(on);
        } else {
            let (place, at) = (self.place_of(column), self.record_at(column));
            if !std::mem::replace(&mut self.is_kept[place], true) {
                on.perform(Operation::Clear { dst: &mut self.records[at..][..self.all] });
            }
            let newest = self.keeps_newest.then(|| self.record_at(self.begun));
            for at in [Some(at), newest].into_iter().flatten() {
                let record = &mut self.records[at..][..self.all];
                spread(on, record, self.lanes, self.len, column, symbol);
            }
        }
        spread(on, &mut self.total, self.lanes, self.len, column, symbol);
    }

    /// Moves the window's beginning to `start`, a multiple of the block and not before the current one.
    pub(super) fn leave(&mut self, start: u64, on: &mut impl Perform) {
        if start > self.end {
            return self.reset(start, on);
        }
        while self.start < start {
            let has_both = self.start < self.begun && self.keeps_newest && self.keeps(self.start);
            if self.is_full() && has_both {
                self.begin_and_leave(on);
            } else {
                if self.is_full() {
                    self.begin(on);
                }
                self.leave_block(on);
            }
            self.oldest = self.start;
            self.start += self.block;
        }
    }

    /// Removes the first block.
    fn leave_block(&mut self, on: &mut impl Perform) {
        if !self.keeps(self.start) {
            return;
        }
        let all = self.all;
        let [left, begun] = [self.start, self.begun].map(|column| self.record_at(column));
        // A block that left is no part of the total at the beginning of the newest block either.
        let [left, begun] =
            self.records.get_disjoint_mut([left..left + all, begun..begun + all]).expect("two blocks");
        on.perform(Operation::Add { dst: &mut self.total, src: left });
        if self.keeps_newest {
            on.perform(Operation::Add { dst: begun, src: left });
        }
    }

    /// [`begin`](Self::begin), [`leave_block`](Self::leave_block) and [`keep_newest`](Self::keep_newest) in one walk,
    /// for blocks that have records.
    fn begin_and_leave(&mut self, on: &mut impl Perform) {
        let all = self.all;
        let ranges =
            [self.begun, self.end, self.start].map(|column| self.record_at(column)).map(|at| at..at + all);
        let [ended, begun, left] = self.records.get_disjoint_mut(ranges).expect("three blocks");
        on.perform(Operation::Turn { total: &mut self.total, ended, begun, left });
        self.turn_to_next(true);
    }

    /// Adds the lane sums of a row to the lists of terms of its classes. The row begins at `start` or at
    /// [`oldest`](Self::oldest).
    pub(super) fn select<'a>(&'a self, row: &RepairRow, classes: &mut Sources<'a>) {
        let has_left = row.first < self.start && self.keeps(row.first);
        let left = has_left.then(|| &self.records[self.record_at(row.first)..]);
        for sums in [Some(&self.total[..]), left].into_iter().flatten() {
            for (lane, sums) in sums.chunks_exact(SUMS * self.len).take(self.lanes).enumerate() {
                // All classes at once, a byte for each: most bits are 0.
                let mut chosen = u32::from_le_bytes(row.masks(lane));
                while chosen != 0 {
                    let bit = chosen.trailing_zeros() as usize;
                    classes[bit / 8].push(&sums[bit % 8 * self.len..][..self.len]);
                    chosen &= chosen - 1;
                }
            }
        }
    }

    /// The place of the block that holds a column.
    fn place_of(&self, column: u64) -> usize {
        (column / self.block % self.places) as usize
    }

    /// The position in `records` of the record of the block that holds a column.
    fn record_at(&self, column: u64) -> usize {
        self.place_of(column) * self.all
    }

    /// Tells whether the block that holds a column is complete and has a record.
    fn keeps(&self, column: u64) -> bool {
        self.is_kept[self.place_of(column)]
    }
}

/// Adds the symbol of a column to the three sums of its lane.
fn spread(on: &mut impl Perform, sums: &mut [u8], lanes: usize, len: usize, column: u64, symbol: &[u8]) {
    let [_, second_value, third_value] = column_values(lanes, column);
    let lane = &mut sums[lane_of(lanes, column) * SUMS * len..][..SUMS * len];
    let (first, rest) = lane.split_at_mut(len);
    let (second, third) = rest.split_at_mut(len);
    let dst = [first, second, third].map(|sum| &mut sum[..symbol.len()]);
    on.perform(Operation::Spread { dst, src: symbol, factors: [second_value, third_value] });
}

#[cfg(all(test, feature = "trace"))]
impl LaneSums {
    /// All sums.
    pub(super) fn memory(&self) -> [&[u8]; 2] {
        [&self.total, &self.records]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gf256::kernel::Backend;
    use crate::random::SplitMix64;
    use std::collections::BTreeMap;

    const LANES: usize = 8;
    const SYMBOL: usize = LINE;
    const BLOCK: u64 = 5;
    const WINDOW: u64 = 40;

    /// Counts the bytes of walks.
    struct Counter(Backend, usize);

    impl Perform for Counter {
        fn perform(&mut self, mut operation: Operation<'_>) {
            self.1 += match &operation {
                Operation::Clear { dst } | Operation::Copy { dst, .. } | Operation::Add { dst, .. } => {
                    dst.len()
                }
                Operation::Spread { src, .. } => 3 * src.len(),
                Operation::Turn { total, .. } => 3 * total.len(),
                _ => unreachable!("lane sums do nothing else"),
            };
            operation.run(self.0);
        }
    }

    /// The sums of the columns that were added from `first` on, by their definition.
    fn defined(added: &BTreeMap<u64, [u8; SYMBOL]>, first: u64) -> Vec<u8> {
        let len = SYMBOL;
        let mut sums = vec![0; LANES * SUMS * len];
        for (&column, symbol) in added.range(first..) {
            for (sum, value) in column_values(LANES, column).into_iter().enumerate() {
                let at = (lane_of(LANES, column) * SUMS + sum) * len;
                sums[at..at + len]
                    .iter_mut()
                    .zip(symbol)
                    .for_each(|(s, b)| *s ^= crate::gf256::mul(*b, value));
            }
        }
        sums
    }

    #[test]
    fn they_are_what_was_added_and_has_not_left() {
        for seed in 0..40 {
            let mut random = SplitMix64::new(seed);
            let mut on = Counter(Backend::best(), 0);
            let mut sums = LaneSums::new(LANES, BLOCK as u16, WINDOW as u32, SYMBOL);
            let mut added: BTreeMap<u64, [u8; SYMBOL]> = BTreeMap::new();
            let density = random.below(100);
            for _ in 0..400 {
                let room = sums.start() + WINDOW - sums.end();
                match random.below(4) {
                    0 | 1 if room > 0 => {
                        let column = sums.end() + u64::from(random.below(3)).min(room - 1);
                        sums.pass_over(column, &mut on);
                        if random.below(100) < density {
                            let symbol = [random.next() as u8; SYMBOL];
                            sums.push(&symbol, &mut on);
                            added.insert(column, symbol);
                        }
                    }
                    2 => {
                        let column = sums.start() + u64::from(random.below(WINDOW as u32));
                        if column < sums.end() && !added.contains_key(&column) {
                            let symbol = [random.next() as u8; SYMBOL];
                            sums.add_late(column, &symbol, &mut on);
                            added.insert(column, symbol);
                        }
                    }
                    _ => {
                        let most = if random.below(8) == 0 { 20 } else { 3 };
                        let blocks = u64::from(random.below(most));
                        let start = sums.start() + blocks * BLOCK;
                        sums.leave(start, &mut on);
                        added = added.split_off(&sums.oldest());
                    }
                }
                assert!(sums.total[..] == defined(&added, sums.start()), "seed {seed}");
                if sums.oldest() < sums.start() {
                    let mut wide = sums.total.to_vec();
                    if sums.keeps(sums.oldest()) {
                        let record = &sums.records[sums.record_at(sums.oldest())..][..sums.all];
                        wide.iter_mut().zip(record).for_each(|(sum, left)| *sum ^= left);
                    }
                    assert!(wide == defined(&added, sums.oldest()), "seed {seed}");
                }
            }
        }
    }

    #[test]
    fn columns_that_are_passed_over_take_no_work() {
        let mut on = Counter(Backend::best(), 0);
        let mut sums = LaneSums::new(LANES, BLOCK as u16, WINDOW as u32, SYMBOL);
        sums.push(&[1; SYMBOL], &mut on);
        let one = on.1;
        for window in 1..100 {
            sums.pass_over(window * WINDOW, &mut on);
            sums.leave(window * WINDOW, &mut on);
        }
        // The only column's block is completed and leaves.
        assert!(on.1 <= one + 3 * sums.all, "{} bytes", on.1);
    }
}

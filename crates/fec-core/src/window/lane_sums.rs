//! The lane sums of a window that slides (format specification, section 14).
//!
//! Every column is added to the three sums of its lane. The window's beginning moves by whole blocks: a *record* keeps
//! what each block added, and is subtracted in one go when the block leaves, so that no column is read twice.
//!
//! A record takes no work while its block grows. When the block begins, the total is copied to it; when the block is
//! complete, the total is added, and the difference is what the block added. This second step waits for the next
//! column: by then another block may be about to leave, and one walk over the sums does both.

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
    /// The records of blocks, each in the place of its number modulo `places`. That of the block which begins at
    /// `begun` is the total at its beginning.
    records: AlignedBytes,
    places: u64,
    /// The first column of the oldest record that is still there: `start`, or one block less.
    oldest: u64,
    start: u64,
    end: u64,
    /// The first column of the newest block that has a record: that which `end` lies in, or ends at.
    begun: u64,
}

impl LaneSums {
    /// Sums over windows of up to `window` columns, whose beginnings are multiples of `block`, with symbols of
    /// `symbol_len` bytes. They begin at column 0.
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

    /// The first column of the widest window that [`select`](Self::select) serves: one block may have left.
    pub(super) fn oldest(&self) -> u64 {
        self.oldest
    }

    /// The first column of the block that the next one lies in.
    pub(super) fn current(&self) -> u64 {
        if self.is_full() { self.end } else { self.begun }
    }

    /// Whether the newest block with a record has all its columns.
    fn is_full(&self) -> bool {
        self.end == self.begun + self.block
    }

    /// The column that comes next.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// The first column of the window, and how many there are.
    pub(super) fn columns(&self) -> (u64, u32) {
        (self.start, (self.end - self.start) as u32)
    }

    /// Begins anew at column `start`, a multiple of the block.
    pub(super) fn reset(&mut self, start: u64, on: &mut impl Perform) {
        (self.oldest, self.start, self.end, self.begun) = (start, start, start, start);
        on.perform(Operation::Clear { dst: &mut self.total });
        on.perform(Operation::Clear { dst: self.record(start / self.block) });
    }

    /// Goes on to the next column, and adds its symbol if there is one.
    ///
    /// The window must not be full: the caller moves its beginning first.
    pub(super) fn push(&mut self, symbol: Option<&[u8]>, on: &mut impl Perform) {
        if self.is_full() {
            self.begin(on);
        }
        if let Some(symbol) = symbol {
            spread(on, &mut self.total, self.lanes, self.len, self.end, symbol);
        }
        self.end += 1;
    }

    /// Begins the record of the block at `end`, and completes the one before.
    fn begin(&mut self, on: &mut impl Perform) {
        let [ended, begun] = [self.begun, self.end].map(|first| self.record_at(first / self.block));
        on.perform(Operation::Add { dst: &mut self.records[ended..][..self.all], src: &self.total });
        on.perform(Operation::Copy { dst: &mut self.records[begun..][..self.all], src: &self.total });
        self.begun = self.end;
    }

    /// Adds a column that was passed over.
    pub(super) fn add_late(&mut self, column: u64, symbol: &[u8], on: &mut impl Perform) {
        if !(self.start..self.end).contains(&column) {
            return;
        }
        spread(on, &mut self.total, self.lanes, self.len, column, symbol);
        if column < self.begun {
            for block in [column / self.block, self.begun / self.block] {
                let (at, all) = (self.record_at(block), self.all);
                let record = &mut self.records[at..at + all];
                spread(on, record, self.lanes, self.len, column, symbol);
            }
        }
    }

    /// Moves the window's beginning to `start`, a multiple of the block and not before where it is.
    pub(super) fn leave(&mut self, start: u64, on: &mut impl Perform) {
        if start > self.end {
            return self.reset(start, on);
        }
        while self.start < start {
            match (self.is_full(), self.start < self.begun) {
                (true, true) => self.begin_and_leave(on),
                (true, false) => {
                    self.begin(on);
                    self.leave_block(on);
                }
                (false, _) => self.leave_block(on),
            }
            self.oldest = self.start;
            self.start += self.block;
        }
    }

    /// Takes the first block away.
    fn leave_block(&mut self, on: &mut impl Perform) {
        let all = self.all;
        let [left, begun] = [self.start, self.begun].map(|first| self.record_at(first / self.block));
        // What left is no part of the total at the beginning of the newest block either.
        let [left, begun] =
            self.records.get_disjoint_mut([left..left + all, begun..begun + all]).expect("two blocks");
        on.perform(Operation::Add { dst: &mut self.total, src: left });
        on.perform(Operation::Add { dst: begun, src: left });
    }

    /// [`begin`](Self::begin) and then [`leave_block`](Self::leave_block), in one walk.
    fn begin_and_leave(&mut self, on: &mut impl Perform) {
        let all = self.all;
        let ranges = [self.begun, self.end, self.start]
            .map(|first| self.record_at(first / self.block))
            .map(|at| at..at + all);
        let [ended, begun, left] = self.records.get_disjoint_mut(ranges).expect("three blocks");
        on.perform(Operation::Turn { total: &mut self.total, ended, begun, left });
        self.begun = self.end;
    }

    /// Adds the lane sums of a row to the lists of what its classes are the sums of. The row begins at `start` or at
    /// [`oldest`](Self::oldest).
    pub(super) fn select<'a>(&'a self, row: &RepairRow, classes: &mut Sources<'a>) {
        let left = (row.first < self.start).then(|| &self.records[self.record_at(row.first / self.block)..]);
        for sums in [Some(&self.total[..]), left].into_iter().flatten() {
            for (lane, sums) in sums.chunks_exact(SUMS * self.len).take(self.lanes).enumerate() {
                // All classes at once, a byte for each: most bits are not set.
                let mut chosen = u32::from_le_bytes(row.masks(lane));
                while chosen != 0 {
                    let bit = chosen.trailing_zeros() as usize;
                    classes[bit / 8].push(&sums[bit % 8 * self.len..][..self.len]);
                    chosen &= chosen - 1;
                }
            }
        }
    }

    fn record_at(&self, block: u64) -> usize {
        (block % self.places) as usize * self.all
    }

    fn record(&mut self, block: u64) -> &mut [u8] {
        let at = self.record_at(block);
        &mut self.records[at..][..self.all]
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

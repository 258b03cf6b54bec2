//! Rows over a sliding window: the profiles *bounded* and *classic*.

use super::super::lane_sums::LaneSums;
use super::super::operation::{Operation, Perform};
use super::super::row::{GROUP, RepairRow, group_at, lanes, window_start};
use super::longest::LongestPayload;
use super::repair_rows::RepairRows;
use super::row_adder::RowAdder;
use super::sender::{Emit, Sender};
use crate::format::packet::{Parameters, Profile};

/// Packets this young are likely still in the second cache of a processor that gains by prefetching. (Measured with 2
/// MiB: prefetching younger ones cost more than it gave.)
const NEAR: u64 = 1200;

/// Rows at the end of a stream are as many as for this part of it, or for `TAIL_LEAST` packets if these are more.
const TAIL_SHARE: u64 = 12;
const TAIL_LEAST: u64 = 24;

/// The sums over the window, and the row that comes next.
#[derive(Debug)]
pub(super) struct SlidingRows {
    sums: LaneSums,
    longest: LongestPayload,
    /// The first packet that the receiver may still need.
    needed: u64,
    /// True if complete groups are mixed in their places, so that a tap is a sum of three packets.
    mixes: bool,
    /// The row that is expected next, or the last one if nothing is expected yet.
    row: RepairRow,
    /// Number of its taps that were prefetched.
    asked: usize,
    adder: RowAdder,
}

impl SlidingRows {
    /// Rows of a stream without packets.
    pub(super) fn new(parameters: &Parameters) -> SlidingRows {
        let &Parameters { profile, window, block, .. } = parameters;
        let symbol_len = parameters.symbol_len();
        SlidingRows {
            sums: LaneSums::new(lanes(profile), block, window, symbol_len),
            longest: LongestPayload::default(),
            needed: 0,
            mixes: profile == Profile::Bounded,
            row: RepairRow::default(),
            asked: 0,
            adder: RowAdder::new(symbol_len),
        }
    }

    /// The first packet that the next row covers.
    pub(super) fn start(&self) -> u64 {
        self.sums.start()
    }

    /// Prefetches some of the taps of the row that is expected next: they are far away, and there is time until then.
    /// Taps on packets that are not there yet are skipped.
    fn ask(&mut self, sender: &Sender) {
        let taps = &self.row.taps[self.asked..];
        let (repair, source) = (usize::from(sender.ratio.repair()), usize::from(sender.ratio.source()));
        let share = self.row.taps.len() * repair / source + 1;
        let near = sender.sent.saturating_sub(NEAR);
        let symbols = sender.store.symbols_from(self.row.first);
        for &(column, _) in taps.iter().take(share).filter(|&&(column, _)| column < near) {
            sender.backend.prefetch(symbols.symbol(column));
        }
        self.asked += share.min(taps.len());
    }
}

impl<P: Perform> RepairRows<P> for SlidingRows {
    fn absorb(&mut self, sender: &mut Sender, on: &mut P, _: &mut Emit<'_>) {
        let sums = &mut self.sums;
        let Parameters { window, block, .. } = sender.parameters;
        let step = u64::from(block);
        if sender.sent > sums.start() + u64::from(window) || self.needed >= sums.start() + step {
            let start = window_start(&sender.parameters, sender.sent).max(self.needed / step * step);
            sums.leave(start.min(sums.current()), on);
            self.longest.leave(sums.start());
        }
        let seq = sender.sent - 1;
        let place = seq - sums.current();
        sums.push(sender.store.short_symbol(seq), on);
        self.longest.push(seq, sender.store.payload(seq).len());
        if self.mixes {
            // This packet completes its group: rows take sums of three for its taps from now on.
            let group = group_at(block, seq, place).filter(|group| group[GROUP - 1] == seq);
            if let Some(group) = group {
                on.perform(Operation::Mix { rows: sender.store.symbols_mut(group) });
            }
        }
    }

    fn longest(&self) -> usize {
        self.longest.get()
    }

    fn emit_row(&mut self, sender: &mut Sender, on: &mut P, emit: &mut Emit<'_>) -> bool {
        let (first, count) = self.sums.columns();
        if count == 0 {
            return false;
        }
        if !self.row.is(sender.rows, first, count) {
            let (row, parameters, number) = (&mut self.row, &sender.parameters, sender.rows);
            on.perform(Operation::Generate { row, parameters, number, first, count });
        }
        self.asked = self.row.taps.len();
        self.adder.emit(&self.row, self.longest.get(), &self.sums, sender, on, emit);
        true
    }

    /// Generates the row that is expected next, if the last one was emitted, and prefetches its taps.
    fn look_ahead(&mut self, sender: &Sender, on: &mut P) {
        if self.row.number() < sender.rows {
            let end = sender.sent + sender.until_next_row(self.longest.get());
            let first = window_start(&sender.parameters, end).max(self.sums.start());
            let count = u32::try_from(end - first).unwrap_or(0);
            if (1..=sender.parameters.window).contains(&count) {
                let (row, parameters, number) = (&mut self.row, &sender.parameters, sender.rows);
                on.perform(Operation::Generate { row, parameters, number, first, count });
                self.asked = 0;
            }
        }
        self.ask(sender);
    }

    fn emit_early(&mut self, _: u64, sender: &mut Sender, on: &mut P, emit: &mut Emit<'_>) {
        // The row covers all packets.
        if self.emit_row(sender, on, emit) {
            sender.owed.spend(self.longest.get());
        }
    }

    fn finish(&mut self, sender: &mut Sender, on: &mut P, emit: &mut Emit<'_>) {
        let Parameters { window, block, .. } = sender.parameters;
        let most = u64::from(window / 4).max(block.into());
        let tail = (sender.sent / TAIL_SHARE).min(most).max(TAIL_LEAST).min(sender.sent);
        for _ in 0..sender.ratio.of(tail) {
            self.emit_row(sender, on, emit);
        }
    }

    fn acknowledge(&mut self, oldest_needed: u64) {
        self.needed = self.needed.max(oldest_needed);
    }
}

#[cfg(all(test, feature = "trace"))]
impl SlidingRows {
    /// All memory that holds bytes of packets.
    pub(super) fn memory(&self) -> Vec<&[u8]> {
        let [total, records] = self.sums.memory();
        vec![total, records, self.adder.memory()]
    }
}

//! Rows over one complete block after the other: the profile *classic-blocks*.

use super::super::lane_sums::LaneSums;
use super::super::operation::{Operation, Perform};
use super::super::row::{RepairRow, lanes};
use super::repair_rows::RepairRows;
use super::row_adder::RowAdder;
use super::sender::{Emit, Sender};
use crate::format::packet::Parameters;

/// The sums over the last complete block and over the one that grows.
#[derive(Debug)]
pub(super) struct BlockRows {
    closed: LaneSums,
    growing: LaneSums,
    /// The longest payloads of both, in bytes.
    closed_longest: usize,
    growing_longest: usize,
    /// Number of rows that the complete block still lacks.
    pending: u64,
    /// Number of rows that the growing block has got.
    early: u64,
    row: RepairRow,
    adder: RowAdder,
}

impl BlockRows {
    /// Rows of a stream without packets.
    pub(super) fn new(parameters: &Parameters) -> BlockRows {
        let &Parameters { profile, block, .. } = parameters;
        let symbol_len = parameters.symbol_len();
        let sums = || LaneSums::new(lanes(profile), block, block.into(), symbol_len);
        BlockRows {
            closed: sums(),
            growing: sums(),
            closed_longest: 0,
            growing_longest: 0,
            pending: 0,
            early: 0,
            row: RepairRow::default(),
            adder: RowAdder::new(symbol_len),
        }
    }

    /// Emits all rows that the complete block lacks.
    fn emit_pending<P: Perform>(&mut self, sender: &mut Sender, on: &mut P, emit: &mut Emit<'_>) {
        while self.emit_row(sender, on, emit) {}
    }

    /// Emits rows over the growing block, as many as the ratio gives for `sources` of its packets, rounded up. The
    /// block grows on. Returns their number.
    fn emit_of_growing<P: Perform>(
        &mut self,
        sources: u64,
        sender: &mut Sender,
        on: &mut P,
        emit: &mut Emit<'_>,
    ) -> u64 {
        let (_, grown) = self.growing.columns();
        let rows = sender.ratio.of(sources.min(grown.into()));
        self.swap();
        self.pending = rows;
        self.emit_pending(sender, on, emit);
        self.swap();
        rows
    }

    fn swap(&mut self) {
        std::mem::swap(&mut self.closed, &mut self.growing);
        std::mem::swap(&mut self.closed_longest, &mut self.growing_longest);
    }
}

impl<P: Perform> RepairRows<P> for BlockRows {
    fn absorb(&mut self, sender: &mut Sender, on: &mut P, emit: &mut Emit<'_>) {
        let seq = sender.sent - 1;
        self.growing.push(sender.store.short_symbol(seq), on);
        self.growing_longest = self.growing_longest.max(sender.store.payload(seq).len());
        let block = u64::from(sender.parameters.block);
        if sender.sent.is_multiple_of(block) {
            self.emit_pending(sender, on, emit);
            self.swap();
            self.growing.reset(self.closed.start() + block, on);
            self.growing_longest = 0;
            // At least one more row: it covers the packets behind the last early row.
            self.pending = sender.ratio.of(block).saturating_sub(std::mem::take(&mut self.early)).max(1);
        }
    }

    fn longest(&self) -> usize {
        self.closed_longest
    }

    fn emit_row(&mut self, sender: &mut Sender, on: &mut P, emit: &mut Emit<'_>) -> bool {
        if self.pending == 0 {
            return false;
        }
        self.pending -= 1;
        let (first, count) = self.closed.columns();
        let (row, parameters, number) = (&mut self.row, &sender.parameters, sender.rows);
        on.perform(Operation::Generate { row, parameters, number, first, count });
        self.adder.emit(&self.row, self.closed_longest, &self.closed, sender, on, emit);
        true
    }

    fn emit_early(&mut self, sources: u64, sender: &mut Sender, on: &mut P, emit: &mut Emit<'_>) {
        let before = sender.rows;
        self.emit_pending(sender, on, emit);
        self.early += self.emit_of_growing(sources, sender, on, emit);
        (before..sender.rows).for_each(|_| sender.owed.spend(0));
    }

    fn finish(&mut self, sender: &mut Sender, on: &mut P, emit: &mut Emit<'_>) {
        self.emit_pending(sender, on, emit);
        self.emit_of_growing(sender.parameters.block.into(), sender, on, emit);
    }
}

#[cfg(all(test, feature = "trace"))]
impl BlockRows {
    /// All memory that holds bytes of packets.
    pub(super) fn memory(&self) -> Vec<&[u8]> {
        let ([a, b], [c, d]) = (self.closed.memory(), self.growing.memory());
        vec![a, b, c, d, self.adder.memory()]
    }
}

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
    /// Rows that the complete block has not got yet.
    pending: u64,
    row: RepairRow,
    adder: RowAdder,
}

impl BlockRows {
    /// No packet yet.
    pub(super) fn new(parameters: &Parameters) -> BlockRows {
        let &Parameters { profile, block, .. } = parameters;
        let symbol_len = parameters.symbol_len();
        let sums = || LaneSums::new(lanes(profile), block, block.into(), symbol_len);
        BlockRows {
            closed: sums(),
            growing: sums(),
            pending: 0,
            row: RepairRow::default(),
            adder: RowAdder::new(symbol_len),
        }
    }

    /// Emits all rows that the complete block lacks.
    fn emit_pending<P: Perform>(&mut self, sender: &mut Sender, on: &mut P, emit: &mut Emit<'_>) {
        while self.emit_row(sender, on, emit) {}
    }
}

impl<P: Perform> RepairRows<P> for BlockRows {
    fn absorb(&mut self, sender: &mut Sender, on: &mut P, emit: &mut Emit<'_>) {
        self.growing.push(Some(sender.store.symbol(sender.sent - 1)), on);
        let block = u64::from(sender.parameters.block);
        if sender.sent.is_multiple_of(block) {
            self.emit_pending(sender, on, emit);
            std::mem::swap(&mut self.closed, &mut self.growing);
            self.growing.reset(self.closed.start() + block, on);
            self.pending = sender.ratio.of(block);
        }
    }

    fn emit_row(&mut self, sender: &mut Sender, on: &mut P, emit: &mut Emit<'_>) -> bool {
        if self.pending == 0 {
            return false;
        }
        self.pending -= 1;
        let (first, count) = self.closed.columns();
        let (row, parameters, number) = (&mut self.row, &sender.parameters, sender.rows);
        on.perform(Operation::Generate { row, parameters, number, first, count });
        self.adder.emit(&self.row, &self.closed, sender, on, emit);
        true
    }

    fn emit_extra(&mut self, sources: u64, sender: &mut Sender, on: &mut P, emit: &mut Emit<'_>) {
        self.emit_pending(sender, on, emit);
        // The block that grows lends itself for as many rows as it has earned, and grows on.
        let (_, grown) = self.growing.columns();
        self.pending = sender.ratio.of(sources.min(grown.into()));
        std::mem::swap(&mut self.closed, &mut self.growing);
        self.emit_pending(sender, on, emit);
        std::mem::swap(&mut self.closed, &mut self.growing);
    }

    fn finish(&mut self, sender: &mut Sender, on: &mut P, emit: &mut Emit<'_>) {
        self.emit_extra(sender.parameters.block.into(), sender, on, emit);
    }
}

#[cfg(all(test, feature = "trace"))]
impl BlockRows {
    /// All that holds bytes of packets.
    pub(super) fn memory(&self) -> Vec<&[u8]> {
        let ([a, b], [c, d]) = (self.closed.memory(), self.growing.memory());
        vec![a, b, c, d, self.adder.memory()]
    }
}

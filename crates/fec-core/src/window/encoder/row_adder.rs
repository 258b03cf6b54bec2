//! Adds up rows of lane sums and taps.

use super::super::lane_sums::LaneSums;
use super::super::operation::{Operation, Perform};
use super::super::row::{RepairRow, Sources, emptied};
use super::sender::{Emit, Sender};
use crate::format::packet::SYMBOL_OVERHEAD;
use crate::gf256::kernel::{AlignedBytes, LINE};

/// Memory for one row after the other.
#[derive(Debug)]
pub(super) struct RowAdder {
    /// Empty lists for the terms of a row.
    classes: Sources<'static>,
    /// The row's symbol, in whole lines.
    symbol: AlignedBytes,
}

impl RowAdder {
    /// An adder for symbols of `symbol_len` bytes.
    pub(super) fn new(symbol_len: usize) -> RowAdder {
        let symbol = AlignedBytes::zeroed(symbol_len.next_multiple_of(LINE));
        RowAdder { classes: Default::default(), symbol }
    }

    /// Adds up a row over the columns of `sums`, none of which has a longer payload than `longest` bytes, and emits it.
    pub(super) fn emit(
        &mut self,
        row: &RepairRow,
        longest: usize,
        sums: &LaneSums,
        sender: &mut Sender,
        on: &mut impl Perform,
        emit: &mut Emit<'_>,
    ) {
        let mut classes: Sources<'_> = std::mem::take(&mut self.classes);
        sums.select(row, &mut classes);
        let symbols = sender.store.symbols_from(row.first);
        for &(column, class) in &row.taps {
            classes[usize::from(class)].push(symbols.symbol(column));
        }
        sender.added += classes.iter().map(Vec::len).sum::<usize>() as u64;
        let sources = classes.each_ref().map(|class| &class[..]);
        let len = SYMBOL_OVERHEAD + longest;
        let dst = &mut self.symbol[..len.next_multiple_of(LINE)];
        on.perform(Operation::Gather { classes: &sources, factor: row.factor, dst });
        self.classes = emptied(classes);
        sender.emit_repair((row.first, row.count, 0), &self.symbol[..len], on, emit);
    }
}

#[cfg(all(test, feature = "trace"))]
impl RowAdder {
    /// The symbol.
    pub(super) fn memory(&self) -> &[u8] {
        &self.symbol
    }
}

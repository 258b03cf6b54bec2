//! Rows of lanes and taps at the receiver (format specification, sections 14.2 and 14.3): the known packets are taken
//! out of a row, and the rest of it is an equation over lost ones.

use super::lane_sums::LaneSums;
use super::row::{RepairRow, Sources, column_values, emptied, lanes};
use super::states::States;
use super::symbol_ring::SymbolRing;
use super::system::{Inserted, System};
use crate::format::packet::{Parameters, RowHeader};
use crate::gf256::kernel::{AlignedBytes, Backend, LINE};
use std::ops::Range;

/// Solves rows of lanes and taps.
pub(super) struct RowSolver {
    backend: Backend,
    pub(super) sums: LaneSums,
    pub(super) system: System,
    /// Lost packets below this are columns of the system.
    pub(super) columns_end: u64,
    lanes: usize,
    row: RepairRow,
    /// Scratch: empty lists, and a row's symbol in whole lines.
    classes: Sources<'static>,
    symbol: AlignedBytes,
}

impl RowSolver {
    /// A solver without rows, for windows of `unit` packets and at most `columns` lost ones.
    pub(super) fn new(backend: Backend, parameters: &Parameters, unit: u32, columns: usize) -> RowSolver {
        let padded = parameters.symbol_len().next_multiple_of(LINE);
        RowSolver {
            backend,
            sums: LaneSums::new(lanes(parameters.profile), parameters.block, unit, padded),
            system: System::new(backend, columns.min(unit as usize).max(1), padded),
            columns_end: 0,
            lanes: lanes(parameters.profile),
            row: RepairRow::default(),
            classes: Default::default(),
            symbol: AlignedBytes::zeroed(padded),
        }
    }

    /// Makes columns of the lost packets in `new`. Returns the newest packet that was given up because the system has
    /// room for no more.
    #[inline]
    pub(super) fn add_columns(&mut self, new: Range<u64>, states: &States) -> Option<u64> {
        let system = &mut self.system;
        // A packet that would be given up before the last of them is there does not become a column first.
        let mut given_up = states.lost(new.clone()).nth_back(system.most());
        let kept = given_up.map_or(new.start, |seq| seq + 1);
        if given_up.is_some() {
            system.give_up_before(kept);
        }
        for seq in states.lost(kept..new.end) {
            given_up = system.push_column(seq, column_values(self.lanes, seq)).or(given_up);
        }
        self.columns_end = new.end.max(self.columns_end);
        given_up
    }

    /// Moves the sums to a row's packets: the known ones of them are added, and older ones leave.
    #[inline]
    pub(super) fn sum_up(&mut self, packets: Range<u64>, store: &SymbolRing, states: &States) {
        let (sums, end) = (&mut self.sums, packets.end);
        sums.leave(packets.start.max(sums.start()), &mut self.backend);
        while sums.end() < end {
            match states.first_known(sums.end()..end) {
                Some(seq) => {
                    sums.pass_over(seq, &mut self.backend);
                    sums.push(store.symbol(seq), &mut self.backend);
                }
                None => sums.pass_over(end, &mut self.backend),
            }
        }
    }

    /// Takes the known packets out of a row, and inserts the equation that is left. The sums reach its end.
    #[inline]
    pub(super) fn insert(
        &mut self,
        parameters: &Parameters,
        header: &RowHeader,
        bytes: &[u8],
        store: &SymbolRing,
        states: &States,
    ) -> Inserted {
        let RowSolver { backend, sums, system, row, classes: lists, symbol, .. } = self;
        row.generate(parameters, header.row, header.first, header.count);
        symbol[..bytes.len()].copy_from_slice(bytes);
        symbol[bytes.len()..].fill(0);
        let mut classes: Sources<'_> = std::mem::take(lists);
        classes[0].push(symbol);
        sums.select(row, &mut classes);
        let mut open_taps: Vec<(u64, u8)> = Vec::new();
        let symbols = store.symbols_from(header.first);
        for (column, class) in row.tapped() {
            if states.is_lost(column) {
                open_taps.push((column, class));
            } else {
                classes[usize::from(class)].push(symbols.symbol(column));
            }
        }
        let coefficient = row.coefficients(&mut open_taps);
        let (backend, end, sums_end) = (*backend, header.first + u64::from(header.count), sums.end());
        let inserted = system.insert(coefficient, |payload| {
            backend.gather(&classes.each_ref().map(|class| &class[..]), row.factor, payload);
            // The sums have these columns beyond a late row.
            for seq in (end..sums_end).filter(|&seq| !states.is_lost(seq)) {
                backend.add_products(payload, &[store.symbol(seq)], &[row.dense(seq)]);
            }
        });
        *lists = emptied(classes);
        inserted
    }
}

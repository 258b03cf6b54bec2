//! Rows of Reed-Solomon sets over one window after the other: the profile *blocks* (format specification,
//! section 14.4).
//!
//! A window that fills slowly may need protection before it is full: its newest packets then form one more set, a
//! *tail*.

use super::super::deal::Deal;
use super::super::operation::{Operation, Perform};
use super::super::settings::Ratio;
use super::super::symbol_ring::SymbolRing;
use super::repair_rows::RepairRows;
use super::sender::{Emit, Sender};
use crate::block::{Code, Plan, ShardBuf};
use crate::format::packet::{Parameters, SYMBOL_OVERHEAD};
use crate::gf256::kernel::{Backend, LINE};

/// The repair packets of one window or tail after the other.
#[derive(Debug)]
pub(super) struct SetRows {
    backend: Backend,
    ratio: Ratio,
    window: u64,
    block: u16,
    /// The first packet of the window or tail.
    first: u64,
    deal: Deal,
    /// Repair packets of a set.
    repairs: u32,
    /// The next part.
    part: u32,
    /// The plan for sets of `most_packets` packets, and the plan for one packet less.
    plans: [Option<Plan>; 2],
    /// All repair symbols, a set after the other. A set's symbols are made when its first is asked for.
    symbols: ShardBuf,
    /// The longest payload of each set, in bytes. It is found when the set's first repair symbol is made.
    longest: Vec<usize>,
}

impl SetRows {
    /// Rows of a stream without a window.
    pub(super) fn new(backend: Backend, parameters: &Parameters, ratio: Ratio) -> SetRows {
        // A window that is cut short may have fuller sets than a whole one, but not more sets.
        let sets = Deal::new(parameters.window, parameters.block).sets as usize;
        let repairs = ratio.of(u64::from(parameters.block)) as usize;
        let symbol_len = parameters.symbol_len();
        SetRows {
            backend,
            ratio,
            window: parameters.window.into(),
            block: parameters.block,
            first: 0,
            deal: Deal { count: 0, sets: 0 },
            repairs: 0,
            part: 0,
            plans: [None, None],
            symbols: ShardBuf::new(repairs * sets, symbol_len.next_multiple_of(LINE)),
            longest: vec![0; sets],
        }
    }

    /// Turns to the window, or the tail, of `count` packets from `first` on, and forgets the rest of the one before.
    fn turn_to(&mut self, first: u64, count: u32) {
        self.first = first;
        let deal = Deal::new(count, self.block);
        if deal != self.deal {
            self.deal = deal;
            self.repairs = self.ratio.of(u64::from(deal.most_packets())) as u32;
            self.plans = [None, None];
        }
        self.part = 0;
    }

    /// Emits the rows that the last window still lacks, and turns to the one that ends here.
    fn close<P: Perform>(&mut self, sender: &mut Sender, on: &mut P, emit: &mut Emit<'_>) {
        self.emit_pending(sender, on, emit);
        let first = (sender.sent - 1) / self.window * self.window;
        self.turn_to(first, (sender.sent - first) as u32);
    }

    fn emit_pending<P: Perform>(&mut self, sender: &mut Sender, on: &mut P, emit: &mut Emit<'_>) {
        while self.emit_row(sender, on, emit) {}
    }

    /// Makes the repair symbols of a set.
    fn encode(&mut self, set: u32, store: &SymbolRing, on: &mut impl Perform) {
        let packets = self.deal.packets(set);
        let (backend, repairs) = (self.backend, self.repairs as usize);
        let plan = self.plans[(self.deal.most_packets() - packets) as usize].get_or_insert_with(|| {
            let code = Code::new(packets as usize, repairs).expect("the parameters were cut to fit");
            Plan::encode(code, backend)
        });
        let src: Vec<&[u8]> = (0..packets)
            .map(|position| store.symbol(self.first + u64::from(position * self.deal.sets + set)))
            .collect();
        self.longest[set as usize] = (0..packets)
            .map(|position| store.payload(self.first + u64::from(position * self.deal.sets + set)).len())
            .max()
            .unwrap_or(0);
        let from = set as usize * repairs;
        let mut dst: Vec<&mut [u8]> = self.symbols.iter_mut().skip(from).take(repairs).collect();
        on.perform(Operation::Encode { plan, src: &src, dst: &mut dst });
    }
}

impl<P: Perform> RepairRows<P> for SetRows {
    fn absorb(&mut self, sender: &mut Sender, on: &mut P, emit: &mut Emit<'_>) {
        if sender.sent.is_multiple_of(self.window) {
            self.close(sender, on, emit);
        }
    }

    fn longest(&self) -> usize {
        // Rows cost packets here, not bytes.
        0
    }

    fn emit_row(&mut self, sender: &mut Sender, on: &mut P, emit: &mut Emit<'_>) -> bool {
        let Deal { count, sets } = self.deal;
        if self.part == sets * self.repairs {
            return false;
        }
        let (set, index) = (self.part % sets, self.part / sets);
        if index == 0 {
            self.encode(set, &sender.store, on);
        }
        let len = SYMBOL_OVERHEAD + self.longest[set as usize];
        let symbol = &self.symbols.row((set * self.repairs + index) as usize)[..len];
        sender.emit_repair((self.first, count, self.part), symbol, on, emit);
        self.part += 1;
        true
    }

    fn emit_early(&mut self, sources: u64, sender: &mut Sender, on: &mut P, emit: &mut Emit<'_>) {
        let before = sender.rows;
        self.emit_pending(sender, on, emit);
        // The partly filled window becomes a set of its own.
        let tail = sources.min(sender.sent % self.window);
        if tail > 0 {
            self.turn_to(sender.sent - tail, tail as u32);
            self.emit_pending(sender, on, emit);
        }
        (before..sender.rows).for_each(|_| sender.owed.spend(0));
    }

    fn finish(&mut self, sender: &mut Sender, on: &mut P, emit: &mut Emit<'_>) {
        if !sender.sent.is_multiple_of(self.window) {
            self.close(sender, on, emit);
        }
        self.emit_pending(sender, on, emit);
    }
}

#[cfg(all(test, feature = "trace"))]
impl SetRows {
    /// All repair symbols.
    pub(super) fn memory(&self) -> Vec<&[u8]> {
        self.symbols.iter().collect()
    }
}

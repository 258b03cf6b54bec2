//! Independent windows on the Reed-Solomon code (format specification, section 14.4).
//!
//! A window is cut into sets by dealing its packets out in turn, so that a burst of losses is shared by all of
//! them; the repair packets are dealt in the same order. Of a window that fills slowly, the newest packets are made
//! one more set of their own when they have to be protected before it is full: a *tail*.

use super::settings::Ratio;
use super::symbol_ring::SymbolRing;
use super::trace::{Probe, Touch};
use crate::block::{Code, Plan, ShardBuf};
use crate::format::packet::{Parameters, RowHeader};
use crate::gf256::kernel::{AlignedBytes, Backend, LINE};

/// How a window of `count` packets is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deal {
    pub(super) count: u32,
    pub(super) sets: u32,
}

impl Deal {
    /// The cut into sets of at most `block` packets.
    pub(super) fn new(count: u32, block: u16) -> Deal {
        Deal { count, sets: count.div_ceil(u32::from(block)) }
    }

    /// Number of packets in a set.
    pub(super) fn packets(self, set: u32) -> u32 {
        (self.count - set).div_ceil(self.sets)
    }

    /// Number of packets in the largest set.
    pub(super) fn most_packets(self) -> u32 {
        self.packets(0)
    }
}

/// The repair packets of one window or tail after the other.
#[derive(Debug)]
pub(super) struct SetRows {
    backend: Backend,
    ratio: Ratio,
    block: u16,
    /// The first packet of the window or tail.
    first: u64,
    deal: Deal,
    /// Repair packets of a set.
    repairs: u32,
    /// The next part.
    part: u32,
    /// The plan for sets of so many packets: the largest ones and those with one less.
    plans: [Option<Plan>; 2],
    /// All repair symbols, a set after the other. Those of a set are made when its first is asked for.
    symbols: ShardBuf,
    symbol_len: usize,
}

impl SetRows {
    /// No window yet.
    pub(super) fn new(backend: Backend, parameters: &Parameters, ratio: Ratio) -> SetRows {
        // A window that is cut short may have fuller sets than a whole one, but not more of them.
        let sets = Deal::new(parameters.window, parameters.block).sets as usize;
        let repairs = ratio.of(u64::from(parameters.block)) as usize;
        let symbol_len = parameters.symbol_len();
        SetRows {
            backend,
            ratio,
            block: parameters.block,
            first: 0,
            deal: Deal { count: 0, sets: 0 },
            repairs: 0,
            part: 0,
            plans: [None, None],
            symbols: ShardBuf::new(repairs * sets, symbol_len.next_multiple_of(LINE)),
            symbol_len,
        }
    }

    /// Turns to the window, or the tail, of `count` packets from `first` on. What was left of the one before is
    /// forgotten.
    pub(super) fn turn_to(&mut self, first: u64, count: u32) {
        self.first = first;
        let deal = Deal::new(count, self.block);
        if deal != self.deal {
            self.deal = deal;
            self.repairs = self.ratio.of(u64::from(deal.most_packets())) as u32;
            self.plans = [None, None];
        }
        self.part = 0;
    }

    /// The next repair packet of the window, as row number `row`.
    pub(super) fn next(
        &mut self,
        row: u64,
        store: &SymbolRing,
        probe: &mut impl Probe,
    ) -> Option<(RowHeader, &[u8])> {
        let Deal { count, sets } = self.deal;
        if self.part == sets * self.repairs {
            return None;
        }
        let (set, index) = (self.part % sets, self.part / sets);
        if index == 0 {
            self.encode(set, store, probe);
        }
        let header = RowHeader { row, first: self.first, count, part: self.part };
        self.part += 1;
        let at = (set * self.repairs + index) as usize;
        Some((header, &self.symbols.row(at)[..self.symbol_len]))
    }

    fn encode(&mut self, set: u32, store: &SymbolRing, probe: &mut impl Probe) {
        let packets = self.deal.packets(set);
        let (backend, repairs) = (self.backend, self.repairs as usize);
        let plan = self.plans[(self.deal.most_packets() - packets) as usize].get_or_insert_with(|| {
            let code = Code::new(packets as usize, repairs).expect("the parameters were cut to fit");
            Plan::encode(code, backend)
        });
        let src: Vec<&[u8]> = (0..packets)
            .map(|position| store.symbol(self.first + u64::from(position * self.deal.sets + set)))
            .collect();
        let from = set as usize * repairs;
        let mut dst: Vec<&mut [u8]> = self.symbols.iter_mut().skip(from).take(repairs).collect();
        plan.run(&src, &mut dst);
        probe.touch(backend, Touch::Plan { plan, src: &src, dst: &dst });
    }
}

/// A set of a window or tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SetId {
    /// The first packet of the window or tail.
    pub(super) first: u64,
    pub(super) deal: Deal,
    pub(super) set: u32,
}

/// The repair packets that came of one window or tail.
#[derive(Debug)]
struct WindowRepairs {
    first: u64,
    deal: Deal,
    tail: bool,
    /// For each set the repair packets that may be of use: index and symbol.
    repairs: Vec<Vec<(u8, AlignedBytes)>>,
}

/// The receiver's side: keeps repair packets until a set has as many packets as it was made of.
#[derive(Debug)]
pub(super) struct SetSolver {
    backend: Backend,
    symbol_len: usize,
    window: u32,
    block: u16,
    /// At most two windows and two tails: packets of a third mean that the oldest gets none any more.
    windows: Vec<WindowRepairs>,
}

impl SetSolver {
    /// Nothing received yet.
    pub(super) fn new(backend: Backend, parameters: &Parameters) -> SetSolver {
        let Parameters { window, block, .. } = *parameters;
        SetSolver { backend, symbol_len: parameters.symbol_len(), window, block, windows: Vec::new() }
    }

    /// Takes a repair packet. `known` tells which packets of the window are. Returns the set it belongs to, or
    /// `None` when it is of no use.
    pub(super) fn take(
        &mut self,
        header: &RowHeader,
        symbol: &[u8],
        known: impl Fn(u64) -> bool,
    ) -> Option<SetId> {
        let RowHeader { first, count, part, .. } = *header;
        let deal = Deal::new(count, self.block);
        let at = match self.windows.iter().position(|window| (window.first, window.deal) == (first, deal)) {
            Some(at) => at,
            None => {
                let whole = first.is_multiple_of(u64::from(self.window)) && count == self.window;
                let tail = deal.sets == 1 && !whole;
                let mut alike = (0..self.windows.len()).filter(|&at| self.windows[at].tail == tail);
                if let (Some(oldest), Some(_)) = (alike.next(), alike.next()) {
                    self.windows.remove(oldest);
                }
                let repairs = (0..deal.sets).map(|_| Vec::new()).collect();
                self.windows.push(WindowRepairs { first, deal, tail, repairs });
                self.windows.len() - 1
            }
        };
        let window = &mut self.windows[at];
        let (set, index) = (part % deal.sets, (part / deal.sets) as u8);
        let missing = columns(first, deal, set).filter(|&column| !known(column)).count();
        let repairs = &mut window.repairs[set as usize];
        if repairs.len() >= missing || repairs.iter().any(|(taken, _)| *taken == index) {
            return None;
        }
        let mut copy = AlignedBytes::zeroed(self.symbol_len.next_multiple_of(LINE));
        copy[..symbol.len()].copy_from_slice(symbol);
        repairs.push((index, copy));
        Some(SetId { first, deal, set })
    }

    /// The sets that a packet belongs to and that have repair packets.
    pub(super) fn sets_of(&self, column: u64) -> impl Iterator<Item = SetId> + '_ {
        self.windows.iter().filter_map(move |&WindowRepairs { first, deal, ref repairs, .. }| {
            let position = column.checked_sub(first).filter(|&position| position < u64::from(deal.count))?;
            let set = (position % u64::from(deal.sets)) as u32;
            (!repairs[set as usize].is_empty()).then_some(SetId { first, deal, set })
        })
    }

    /// Rebuilds the lost packets of a set if enough of it is there: their numbers and symbols.
    pub(super) fn solve(
        &mut self,
        SetId { first, deal, set }: SetId,
        store: &SymbolRing,
        known: impl Fn(u64) -> bool,
    ) -> Vec<(u64, AlignedBytes)> {
        let Some(window) =
            self.windows.iter_mut().find(|window| (window.first, window.deal) == (first, deal))
        else {
            return Vec::new();
        };
        let repairs = &mut window.repairs[set as usize];
        let lost: Vec<u64> = columns(first, deal, set).filter(|&column| !known(column)).collect();
        if lost.is_empty() || repairs.len() < lost.len() {
            return Vec::new();
        }
        let packets = deal.packets(set) as usize;
        let (mut indices, mut wanted, mut src) = (Vec::new(), Vec::new(), Vec::new());
        for (position, column) in (0..).zip(columns(first, deal, set)) {
            if known(column) {
                indices.push(position);
                src.push(store.symbol(column));
            } else {
                wanted.push(position);
            }
        }
        for (index, symbol) in repairs.iter().take(lost.len()) {
            indices.push(packets as u8 + index);
            src.push(symbol);
        }
        let code = Code::new(packets, 256 - packets).expect("a row of this set was parsed");
        let plan = Plan::new(code, self.backend, &indices, &wanted).expect("k distinct shards of the set");
        let mut rebuilt: Vec<(u64, AlignedBytes)> = lost
            .into_iter()
            .map(|column| (column, AlignedBytes::zeroed(self.symbol_len.next_multiple_of(LINE))))
            .collect();
        let mut dst: Vec<&mut [u8]> = rebuilt.iter_mut().map(|(_, symbol)| &mut **symbol).collect();
        plan.run(&src, &mut dst);
        repairs.clear();
        rebuilt
    }
}

/// The packets of a set.
fn columns(first: u64, deal: Deal, set: u32) -> impl Iterator<Item = u64> {
    (0..deal.packets(set)).map(move |position| first + u64::from(position * deal.sets + set))
}

#[cfg(all(test, feature = "trace"))]
impl SetRows {
    /// All repair symbols.
    pub(super) fn memory(&self) -> Vec<&[u8]> {
        self.symbols.iter().collect()
    }
}

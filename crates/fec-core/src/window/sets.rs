//! Independent windows on the Reed-Solomon code (format specification, section 14.4).
//!
//! A window is cut into sets by dealing its packets out in turn, so that a burst of losses is shared by all of
//! them; the repair packets are dealt in the same order.

use super::settings::Ratio;
use super::store::Store;
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

/// The repair packets of one window after the other.
#[derive(Debug)]
pub(super) struct SetRows {
    backend: Backend,
    ratio: Ratio,
    window: u32,
    block: u16,
    /// The first packet of the last complete window.
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
            window: parameters.window,
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

    /// Turns to the window that ends before packet `end`.
    pub(super) fn close(&mut self, end: u64) {
        let window = u64::from(self.window);
        self.first = (end - 1) / window * window;
        let deal = Deal::new((end - self.first) as u32, self.block);
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
        store: &Store,
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

    fn encode(&mut self, set: u32, store: &Store, probe: &mut impl Probe) {
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

/// The repair packets that came of one window.
#[derive(Debug)]
struct Window {
    first: u64,
    deal: Deal,
    /// For each set the repair packets that may be of use: index and symbol.
    repairs: Vec<Vec<(u8, AlignedBytes)>>,
}

/// The receiver's side: keeps repair packets until a set has as many packets as it was made of.
#[derive(Debug)]
pub(super) struct SetSolver {
    backend: Backend,
    symbol_len: usize,
    /// At most two: packets of a third mean that the oldest gets none any more.
    windows: Vec<Window>,
}

impl SetSolver {
    /// Nothing received yet.
    pub(super) fn new(backend: Backend, symbol_len: usize) -> SetSolver {
        SetSolver { backend, symbol_len, windows: Vec::new() }
    }

    /// Takes a repair packet. `known` tells which packets of the window are. Returns the set it belongs to, or
    /// `None` when it is of no use.
    pub(super) fn take(
        &mut self,
        first: u64,
        deal: Deal,
        part: u32,
        symbol: &[u8],
        known: impl Fn(u64) -> bool,
    ) -> Option<u32> {
        let at = match self.windows.iter().position(|window| window.first == first) {
            Some(at) => at,
            None => {
                self.windows.retain(|window| window.first + 2 * u64::from(window.deal.count) > first);
                if self.windows.len() == 2 {
                    self.windows.remove(0);
                }
                let repairs = (0..deal.sets).map(|_| Vec::new()).collect();
                self.windows.push(Window { first, deal, repairs });
                self.windows.len() - 1
            }
        };
        let window = &mut self.windows[at];
        if window.deal != deal {
            return None;
        }
        let (set, index) = (part % deal.sets, (part / deal.sets) as u8);
        let missing = columns(first, deal, set).filter(|&column| !known(column)).count();
        let repairs = &mut window.repairs[set as usize];
        if repairs.len() >= missing || repairs.iter().any(|(taken, _)| *taken == index) {
            return None;
        }
        let mut copy = AlignedBytes::zeroed(self.symbol_len.next_multiple_of(LINE));
        copy[..symbol.len()].copy_from_slice(symbol);
        repairs.push((index, copy));
        Some(set)
    }

    /// The set of a packet, if repair packets of its window came.
    pub(super) fn set_of(&self, column: u64) -> Option<(u64, u32)> {
        let window = self
            .windows
            .iter()
            .find(|window| (window.first..window.first + u64::from(window.deal.count)).contains(&column))?;
        let set = ((column - window.first) % u64::from(window.deal.sets)) as u32;
        (!window.repairs[set as usize].is_empty()).then_some((window.first, set))
    }

    /// Rebuilds the lost packets of a set if enough of it is there: their numbers and symbols.
    pub(super) fn solve(
        &mut self,
        first: u64,
        set: u32,
        store: &Store,
        known: impl Fn(u64) -> bool,
    ) -> Vec<(u64, AlignedBytes)> {
        let Some(window) = self.windows.iter_mut().find(|window| window.first == first) else {
            return Vec::new();
        };
        let repairs = &mut window.repairs[set as usize];
        let lost: Vec<u64> = columns(first, window.deal, set).filter(|&column| !known(column)).collect();
        if lost.is_empty() || repairs.len() < lost.len() {
            return Vec::new();
        }
        let packets = window.deal.packets(set) as usize;
        let (mut indices, mut wanted, mut src) = (Vec::new(), Vec::new(), Vec::new());
        for (position, column) in (0..).zip(columns(first, window.deal, set)) {
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

#[cfg(test)]
impl SetRows {
    /// All repair symbols.
    pub(super) fn memory(&self) -> Vec<&[u8]> {
        self.symbols.iter().collect()
    }
}

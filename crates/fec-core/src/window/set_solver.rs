//! Windows of Reed-Solomon sets at the receiver (format specification, section 14.4): repair packets are kept until a
//! set has as many packets as originals.

use super::deal::Deal;
use super::symbol_ring::SymbolRing;
use crate::block::{Code, Plan};
use crate::format::packet::{Parameters, RowHeader};
use crate::gf256::kernel::{AlignedBytes, Backend, LINE};
use std::collections::BTreeMap;

/// A set of a window or tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SetId {
    /// The first packet of the window or tail.
    pub(super) first: u64,
    pub(super) deal: Deal,
    pub(super) set: u32,
}

/// The repair packets that have come for one window or tail.
#[derive(Debug)]
struct WindowRepairs {
    first: u64,
    deal: Deal,
    tail: bool,
    /// The useful repair packets of each set that has any: index and symbol. (There may be 65,536 sets, and any packet
    /// may begin a window.)
    repairs: BTreeMap<u32, Vec<(u8, AlignedBytes)>>,
}

/// Keeps repair packets and solves sets.
#[derive(Debug)]
pub(super) struct SetSolver {
    backend: Backend,
    symbol_len: usize,
    window: u32,
    block: u16,
    /// At most two windows and two tails: packets of a third mean that the oldest gets no more.
    windows: Vec<WindowRepairs>,
}

impl SetSolver {
    /// A solver without packets.
    pub(super) fn new(backend: Backend, parameters: &Parameters) -> SetSolver {
        let Parameters { window, block, .. } = *parameters;
        SetSolver { backend, symbol_len: parameters.symbol_len(), window, block, windows: Vec::new() }
    }

    /// Takes a repair packet. `known` tells whether a packet of the window is known. Returns the packet's set, or
    /// `None` if the packet is of no use.
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
                self.windows.push(WindowRepairs { first, deal, tail, repairs: BTreeMap::new() });
                self.windows.len() - 1
            }
        };
        let window = &mut self.windows[at];
        let (set, index) = (part % deal.sets, (part / deal.sets) as u8);
        let missing = columns(first, deal, set).filter(|&column| !known(column)).count();
        if missing == 0 {
            return None;
        }
        let repairs = window.repairs.entry(set).or_default();
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
            repairs.contains_key(&set).then_some(SetId { first, deal, set })
        })
    }

    /// Rebuilds the lost packets of a set if enough packets are there: their numbers and symbols.
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
        let Some(repairs) = window.repairs.get(&set) else { return Vec::new() };
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
        window.repairs.remove(&set);
        rebuilt
    }
}

/// The packets of a set.
fn columns(first: u64, deal: Deal, set: u32) -> impl Iterator<Item = u64> {
    (0..deal.packets(set)).map(move |position| first + u64::from(position * deal.sets + set))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::packet::Profile;

    const WINDOW: u32 = 20;
    const SYMBOL: usize = 64;

    fn solver() -> SetSolver {
        let parameters =
            Parameters { profile: Profile::Blocks, stream_id: 1, window: WINDOW, payload: 58, block: 24 };
        assert_eq!(parameters.symbol_len(), SYMBOL);
        SetSolver::new(Backend::best(), &parameters)
    }

    /// Packets 0 to 99, and 255 - `count` repair symbols of the `count` packets from `first` on.
    fn coded(first: u64, count: u32) -> (SymbolRing, Vec<Vec<u8>>) {
        let mut store = SymbolRing::new(100, SYMBOL);
        let symbols: Vec<Vec<u8>> = (0..100).map(|seq| vec![seq as u8 ^ 0x5A; SYMBOL]).collect();
        (0..).zip(&symbols).for_each(|(seq, symbol)| store.put_symbol(seq, symbol));
        let (first, count) = (first as usize, count as usize);
        let src: Vec<&[u8]> = symbols[first..first + count].iter().map(|symbol| &symbol[..]).collect();
        let mut repairs = vec![vec![0; SYMBOL]; 256 - count];
        let plan = Plan::encode(Code::new(count, 256 - count).unwrap(), Backend::best());
        plan.run(&src, &mut repairs.iter_mut().map(|symbol| &mut symbol[..]).collect::<Vec<_>>());
        (store, repairs)
    }

    fn header(first: u64, count: u32, part: u32) -> RowHeader {
        RowHeader { row: 0, first, count, part }
    }

    /// The first repair packet of a one-set window comes, then those of `others`, then the window's second. Returns
    /// which of two lost packets are rebuilt.
    fn rebuilt_beside(first: u64, count: u32, others: &[(u64, u32)]) -> Vec<u64> {
        let mut solver = solver();
        let (store, repairs) = coded(first, count);
        let lost = [first + 3, first + 4];
        let known = |seq: u64| !lost.contains(&seq);
        let set = solver.take(&header(first, count, 0), &repairs[0], known).expect("it is of use");
        assert!(
            solver.solve(set, &store, known).is_empty(),
            "two packets are lost and one repair packet is there"
        );
        for &(first, count) in others {
            solver.take(&header(first, count, 0), &[1; SYMBOL], |_| false).expect("it is of use");
        }
        let again = solver.take(&header(first, count, 1), &repairs[1], known);
        assert_eq!(again, Some(set));
        let found = solver.solve(set, &store, known);
        for (seq, symbol) in &found {
            assert_eq!(symbol[..SYMBOL], *store.symbol(*seq), "packet {seq}");
        }
        found.into_iter().map(|(seq, _)| seq).collect()
    }

    /// Two windows and two tails are kept, and a third of either kind replaces the oldest of its kind.
    #[test]
    fn windows_and_tails_give_way_to_their_own_kind() {
        let w = u64::from(WINDOW);
        // A window survives one other window, and any number of tails, at any beginning and at that of a window.
        assert_eq!(rebuilt_beside(0, WINDOW, &[(w, WINDOW)]), [3, 4]);
        assert_eq!(rebuilt_beside(0, WINDOW, &[(13, 9), (17, 9), (21, 9)]), [3, 4]);
        assert_eq!(rebuilt_beside(0, WINDOW, &[(w, 9), (2 * w, 9), (3 * w, 9)]), [3, 4]);
        assert_eq!(rebuilt_beside(0, WINDOW, &[(13, WINDOW), (17, WINDOW), (27, WINDOW)]), [3, 4]);
        assert!(rebuilt_beside(0, WINDOW, &[(w, WINDOW), (2 * w, WINDOW)]).is_empty());
        // A tail survives one other tail, and any number of windows.
        for (first, count) in [(20, 9), (23, 9), (23, WINDOW)] {
            assert_eq!(rebuilt_beside(first, count, &[(13, 9)]), [first + 3, first + 4]);
            let windows = [(0, WINDOW), (w, WINDOW), (2 * w, WINDOW)];
            assert_eq!(rebuilt_beside(first, count, &windows), [first + 3, first + 4]);
            assert!(rebuilt_beside(first, count, &[(13, 9), (14, 9)]).is_empty());
        }
    }
}

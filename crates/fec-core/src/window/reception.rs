//! A receiver's state of one stream: the packets of the window, and the equations over lost ones.

use super::row_solver::RowSolver;
use super::set_solver::{SetId, SetSolver};
use super::states::{PacketState, States};
use super::symbol_ring::SymbolRing;
use super::system::Inserted;
use crate::format::packet::{self, Parameters, Profile, RowHeader};
use crate::gf256::kernel::{Backend, LINE};

/// The fate of a repair packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowFate {
    /// It has new information.
    Useful,
    /// It has no new information.
    Redundant,
    /// It contradicts known packets.
    Contradiction,
    /// It covers packets that the equations cannot hold.
    Unusable,
}

/// The losses that a sliding window could stand, as the received rows tell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prospect {
    /// Packets of a window, as rows cover them.
    pub window: u32,
    /// Number of packets, from itself on, for which rows cover each packet: windows move by whole blocks.
    pub covered: u32,
    /// Rows for each source packet sent so far.
    pub rows_per_packet: f64,
    /// Rows that lost packets still wait for.
    pub lacking: u32,
    /// Number of lost packets that still fit the equations.
    pub room: u32,
}

/// Rows that may have no new information, or that the next packets have had before their turn.
const SPARE_ROWS: f64 = 4.0;

impl Prospect {
    /// The length of a burst of source packets that rows repair while it is in the window, if nothing else is lost:
    /// nearly the longest, and never longer.
    pub fn burst(&self) -> u64 {
        // Rows come after the burst, until its first packet leaves the window.
        let burst = self.rows(f64::from(self.covered)) / (1.0 + self.rows_per_packet);
        (burst as u64).min(self.room.into())
    }

    /// Number of lost packets that the rows of the next `packets` packets repair.
    pub fn rows(&self, packets: f64) -> f64 {
        (packets * self.rows_per_packet - f64::from(self.lacking) - SPARE_ROWS).max(0.0)
    }
}

/// Most blocks between the end of a late repair packet and that of the newest row. The packets between them may be no
/// more than the columns: each is work.
const LATE_BLOCKS: u64 = 2;

/// Number of later packets that have overtaken a packet that counts as lost instead of late.
const OVERTAKEN: u64 = 64;

/// The reach of rows into the past.
#[derive(Clone, Copy)]
struct Reach {
    /// Packets of a window, or of a block if blocks are independent.
    unit: u32,
    /// True if the window slides. Otherwise a row covers packets of one unit: the newest, or the one before.
    slides: bool,
}

impl Reach {
    /// The reach of a profile's rows.
    fn new(parameters: &Parameters) -> Reach {
        let &Parameters { profile, window, block, .. } = parameters;
        match profile {
            Profile::Bounded | Profile::Classic => Reach { unit: window, slides: true },
            Profile::ClassicBlocks => Reach { unit: block.into(), slides: false },
            Profile::Blocks => Reach { unit: window, slides: false },
        }
    }

    /// Most packets that rows may still cover.
    fn most(self) -> u64 {
        u64::from(self.unit) * if self.slides { 1 } else { 2 }
    }

    /// The first packet that later rows may cover, if there are `end` packets.
    fn start(self, end: u64) -> u64 {
        let unit = u64::from(self.unit);
        if self.slides {
            end.saturating_sub(unit)
        } else {
            (end.saturating_sub(1) / unit).saturating_sub(1) * unit
        }
    }
}

/// The window of one stream.
pub(super) struct Reception {
    pub(super) parameters: Parameters,
    reach: Reach,
    backend: Backend,
    pub(super) store: SymbolRing,
    states: States,
    /// The newest known packet plus one.
    pub(super) end: u64,
    /// No later row covers packets below this.
    start: u64,
    /// Rows that begin below this packet cannot be used.
    floor: u64,
    /// Lost packets from `start` on.
    missing: u64,
    /// Most packets by which a usable row may end before the newest packet.
    late: u64,
    solver: Solver,
    /// Rebuilt packets that were not asked for yet.
    pub(super) rebuilt: Vec<u64>,
    /// Rebuilt symbols that no sender would have made.
    pub(super) disbelieved: u64,
    /// Lost packets below this cannot be rebuilt by any row that comes soon.
    pub(super) hopeless: u64,
    /// True if more packets were lost than rows can repair, or rows reach back to packets that were never received.
    is_behind: bool,
    /// The prospect, as far as rows tell it.
    pub(super) prospect: Option<Prospect>,
    /// The newest row.
    newest_row: Option<RowHeader>,
    /// Number of packets, from itself on, for which rows covered the last packet that left the window.
    covered: Option<u64>,
}

enum Solver {
    Rows(Box<RowSolver>),
    Sets(SetSolver),
}

impl Reception {
    /// A stream that is received from packet 0 on.
    pub(super) fn new(backend: Backend, parameters: Parameters, columns: usize) -> Reception {
        let Parameters { profile, block, .. } = parameters;
        // Memory for the window, and for late rows.
        let slack = LATE_BLOCKS * u64::from(block) + LINE as u64;
        let reach = Reach::new(&parameters);
        let solver = match profile {
            Profile::Blocks => Solver::Sets(SetSolver::new(backend, &parameters)),
            _ => Solver::Rows(Box::new(RowSolver::new(backend, &parameters, reach.unit, columns))),
        };
        let places = reach.most() + slack;
        Reception {
            parameters,
            reach,
            backend,
            store: SymbolRing::new(places, parameters.symbol_len()),
            states: States::new(places),
            end: 0,
            start: 0,
            floor: 0,
            missing: 0,
            late: (LATE_BLOCKS * u64::from(block)).min(columns.max(1) as u64),
            solver,
            rebuilt: Vec::new(),
            disbelieved: 0,
            hopeless: 0,
            is_behind: false,
            prospect: None,
            newest_row: None,
            covered: None,
        }
    }

    /// Begins anew at packet `base`, beyond all others.
    pub(super) fn rebase(&mut self, base: u64) {
        (self.end, self.start, self.floor, self.missing) = (base, base, base, 0);
        (self.hopeless, self.is_behind) = (base, false);
        (self.newest_row, self.covered) = (None, None);
        // The places of packets before `base` hold other packets.
        self.states.clear();
        if let Solver::Rows(rows) = &mut self.solver {
            rows.system.clear();
            rows.columns_end = base;
        }
    }

    /// Lost packets from [`start`](Self::start) on, less the equations that there are for them.
    pub(super) fn lacking(&self) -> u64 {
        let equations = match &self.solver {
            Solver::Rows(rows) => rows.system.open() - rows.system.lacking(),
            Solver::Sets(_) => 0,
        };
        self.missing.saturating_sub(equations as u64)
    }

    /// The number of the newest row, where windows slide.
    pub(super) fn newest_row(&self) -> Option<u64> {
        self.newest_row.map(|header| header.row)
    }

    /// Number of places: packets this far below `end` are forgotten.
    pub(super) fn places(&self) -> u64 {
        self.store.places()
    }

    /// The state of a packet that is known and not forgotten.
    pub(super) fn state(&self, seq: u64) -> PacketState {
        debug_assert!(seq < self.end && seq + self.places() >= self.end);
        self.states.get(seq)
    }

    /// The first packet from `seq` to before `end` that is not lost, or else `end`. Both must be remembered.
    pub(super) fn end_of_gap(&self, seq: u64, end: u64) -> u64 {
        self.states.first_known(seq..end).unwrap_or(end)
    }

    /// Tells whether a packet's state is still known.
    pub(super) fn remembers(&self, seq: u64) -> bool {
        seq < self.end && seq + self.places() >= self.end
    }

    /// Notes the arrival of a known packet. Returns whether it was only rebuilt until now.
    pub(super) fn note_arrival(&mut self, seq: u64) -> bool {
        let is_first = self.state(seq) == PacketState::Rebuilt;
        self.states.set(seq, PacketState::Received);
        is_first
    }

    /// The first packet that later rows may cover, by the numbers of source packets.
    pub(super) fn reach(&self, end: u64) -> u64 {
        self.reach.start(end)
    }

    /// The first packet that is not lost for good.
    pub(super) fn start(&self) -> u64 {
        self.start
    }

    /// Most packets by which a packet may lie beyond the newest one.
    pub(super) fn span(&self) -> u64 {
        self.reach.unit.into()
    }

    /// Notes that all packets below `end` were sent, which is at most [`span`](Self::span) beyond the known ones.
    pub(super) fn advance(&mut self, end: u64) {
        if end <= self.end {
            return;
        }
        self.leave(self.reach(end));
        self.states.lose(self.end..end);
        self.missing += end - self.end;
        self.end = end;
    }

    /// Gives up lost packets below `start`.
    fn leave(&mut self, start: u64) {
        if start <= self.start {
            return;
        }
        if self.missing > 0 {
            self.missing -= self.states.lost(self.start..start.min(self.end)).count() as u64;
        }
        self.start = start;
        if let Solver::Rows(rows) = &mut self.solver {
            rows.system.give_up_before(start);
        }
    }

    /// Takes an unknown source packet that is not older than [`start`](Self::start).
    pub(super) fn source(&mut self, seq: u64, payload: &[u8], checksum: u32) {
        self.advance(seq + 1);
        self.store.put(seq, payload, checksum);
        // The next packet's place was last used a window ago.
        self.backend.prefetch(self.store.symbol(seq + 1));
        self.states.set(seq, PacketState::Received);
        self.missing -= 1;
        match &mut self.solver {
            Solver::Rows(rows) => {
                let symbol = self.store.symbol(seq);
                rows.sums.add_late(seq, symbol, &mut self.backend);
                if seq < rows.columns_end && rows.system.open() > 0 {
                    rows.system.learn(seq, symbol);
                    self.solve();
                }
            }
            Solver::Sets(solver) => {
                let sets = solver.sets_of(seq).collect();
                self.solve_sets(sets);
            }
        }
    }

    /// Takes a repair packet whose numbers fit the parameters and reach no further than [`span`](Self::span) beyond the
    /// known packets.
    pub(super) fn repair(&mut self, header: &RowHeader, bytes: &[u8]) -> RowFate {
        let end = header.first + u64::from(header.count);
        if header.first < self.floor || header.first + self.places() < self.end {
            if self.reach.slides {
                // Usable rows come once the window has left the packets below.
                self.is_behind = true;
                self.hopeless = self.hopeless.max(end.min(self.end).saturating_sub(OVERTAKEN));
            }
            return RowFate::Unusable;
        }
        self.advance(end);
        if self.reach.slides {
            self.leave(header.first);
        }
        match self.solver {
            Solver::Rows(_) => {
                let fate = self.lane_row(header, bytes);
                self.foresee(header);
                fate
            }
            Solver::Sets(_) => self.set_row(header, bytes),
        }
    }

    /// The window length of the sender of this row. A sender that lets go of packets after some time has shorter
    /// windows than allowed.
    fn window_of(&self, header: &RowHeader) -> u64 {
        let unit = u64::from(self.reach.unit);
        let block = u64::from(self.parameters.block);
        if header.first == 0 { unit } else { unit.min(u64::from(header.count) + block) }
    }

    /// The least number of packets, from itself on, for which rows cover each packet.
    fn covered(&mut self, header: &RowHeader) -> u64 {
        let block = u64::from(self.parameters.block);
        let last = self.newest_row.filter(|last| last.row < header.row);
        if let Some(last) = last
            && last.row + 1 == header.row
            && last.first < header.first
        {
            // These packets left the window after the row before.
            self.covered = Some((last.first + u64::from(last.count) + 1).saturating_sub(header.first));
        }
        if last.is_some() || self.newest_row.is_none() {
            self.newest_row = Some(*header);
        }
        let whole = u64::from(self.reach.unit) - block;
        match self.covered {
            Some(covered) if covered + block > whole => covered.min(whole),
            // The sender lets go of packets, and not all at the same age.
            Some(covered) => covered.saturating_sub(block),
            None => u64::from(header.count).saturating_sub(block),
        }
    }

    fn foresee(&mut self, header: &RowHeader) {
        let covered = self.covered(header) as u32;
        if let Solver::Rows(rows) = &self.solver
            && self.reach.slides
        {
            let end = header.first + u64::from(header.count);
            self.prospect = Some(Prospect {
                window: self.window_of(header) as u32,
                covered,
                rows_per_packet: (header.row + 1) as f64 / end as f64,
                lacking: rows.system.lacking() as u32,
                room: rows.system.room() as u32,
            });
        }
    }

    fn set_row(&mut self, header: &RowHeader, bytes: &[u8]) -> RowFate {
        if self.missing == 0 || header.first < self.start {
            return RowFate::Redundant;
        }
        let known = |seq: u64| !self.states.is_lost(seq);
        let Solver::Sets(solver) = &mut self.solver else { unreachable!("the profile has sets") };
        match solver.take(header, bytes, known) {
            Some(set) => {
                self.solve_sets(vec![set]);
                RowFate::Useful
            }
            None => RowFate::Redundant,
        }
    }

    /// Solves these sets if possible, and sets that are solvable after that.
    fn solve_sets(&mut self, mut sets: Vec<SetId>) {
        let Solver::Sets(solver) = &mut self.solver else { unreachable!("the profile has sets") };
        while let Some(set) = sets.pop() {
            if set.first < self.start {
                // A part of the set was given up.
                continue;
            }
            let known = |seq: u64| !self.states.is_lost(seq);
            for (seq, symbol) in solver.solve(set, &self.store, known) {
                let symbol = &symbol[..self.parameters.symbol_len()];
                if packet::open_symbol(self.parameters.stream_id, seq, symbol).is_some() {
                    self.store.put_symbol(seq, symbol);
                    self.states.set(seq, PacketState::Rebuilt);
                    self.missing -= 1;
                    self.rebuilt.push(seq);
                    sets.extend(solver.sets_of(seq));
                } else {
                    self.disbelieved += 1;
                }
            }
        }
    }

    fn lane_row(&mut self, header: &RowHeader, bytes: &[u8]) -> RowFate {
        let Solver::Rows(rows) = &mut self.solver else { unreachable!("the profile has lanes") };
        let end = header.first + u64::from(header.count);
        let new = rows.columns_end.max(self.start)..end;
        if self.missing == 0 || (rows.system.open() == 0 && self.states.lost(new.clone()).next().is_none()) {
            return RowFate::Redundant;
        }
        // A row may come after the first row of a later beginning, if nothing was given up in between.
        let given_up = self.states.lost(header.first..self.start).next().is_some();
        if header.first < rows.sums.oldest() || given_up || rows.sums.end() > end + self.late {
            return RowFate::Unusable;
        }
        if let Some(given_up) = rows.add_columns(new, &self.states) {
            self.floor = given_up + 1;
            self.leave(self.floor);
            return RowFate::Unusable;
        }
        rows.sum_up(header.first..end, &self.store, &self.states);
        let inserted = rows.insert(&self.parameters, header, bytes, &self.store, &self.states);
        self.note_backlog(header);
        match inserted {
            Inserted::Useful => {
                self.solve();
                RowFate::Useful
            }
            Inserted::Redundant => RowFate::Redundant,
            Inserted::Contradiction => RowFate::Contradiction,
        }
    }

    /// Notes whether more is lost than rows can repair until the oldest column leaves the window.
    #[inline]
    fn note_backlog(&mut self, header: &RowHeader) {
        let window = if self.reach.slides { self.window_of(header) } else { self.reach.unit.into() };
        let Solver::Rows(rows) = &self.solver else { return };
        let end = header.first + u64::from(header.count);
        // Rows to come until then, at the rate of the rows until now.
        let oldest = rows.system.oldest().unwrap_or(end);
        let left = (oldest + window).saturating_sub(end);
        let rows_left = u128::from(left) * u128::from(header.row + 1) / u128::from(end);
        let lacking = rows.system.lacking();
        // Once more is lost than rows can repair, they repair nothing until they have caught up.
        self.is_behind = lacking > 0 && (self.is_behind || lacking as u128 > rows_left);
        if self.is_behind {
            self.hopeless = self.hopeless.max(end.saturating_sub(OVERTAKEN));
        }
    }

    /// Takes over the packets that the equations determine by now.
    fn solve(&mut self) {
        let Solver::Rows(rows) = &mut self.solver else { return };
        let RowSolver { sums, system, .. } = &mut **rows;
        let stream_id = self.parameters.stream_id;
        let (store, states, rebuilt) = (&mut self.store, &mut self.states, &mut self.rebuilt);
        let symbol_len = self.parameters.symbol_len();
        let before = rebuilt.len();
        system.solve(|seq, symbol| {
            let symbol = &symbol[..symbol_len];
            if packet::open_symbol(stream_id, seq, symbol).is_none() {
                self.disbelieved += 1;
                return false;
            }
            store.put_symbol(seq, symbol);
            states.set(seq, PacketState::Rebuilt);
            self.missing -= 1;
            rebuilt.push(seq);
            true
        });
        // The system solves the newest first.
        rebuilt[before..].reverse();
        for &seq in &rebuilt[before..] {
            sums.add_late(seq, store.symbol(seq), &mut self.backend);
        }
    }
}

//! The equations over lost packets: Gaussian elimination on coefficients, with payloads to match.
//!
//! The unknowns are *columns*, ordered by sequence number. Rows are kept in echelon form: the *pivot* of a row is its
//! oldest column, where it has a 1 and the rows with newer pivots have 0. The window slides for free in this order: the
//! oldest column stands in one row at most, so giving it up drops that row and leaves the others as they are.
//!
//! A new row is reduced on coefficients first; its payload follows in one sum. A column is solved as soon as its row
//! has no other open column.
//!
//! With symbols of length 0 the same code simulates a decoder.

use super::payloads::{Payloads, multiply};
use super::row::SUMS;
use crate::gf256::inv;
use crate::gf256::kernel::{AlignedBytes, Backend, LINE};
use std::collections::VecDeque;

/// A lost packet.
struct PacketColumn {
    seq: u64,
    /// Its multipliers in the sums of its lane.
    values: [u8; SUMS],
    /// The row that has it as pivot.
    row: Option<usize>,
    /// True if it is known by now. If so, no row has a coefficient here.
    known: bool,
}

/// The left-hand side of an equation: Σ coefficient · symbol.
#[derive(Debug)]
struct Equation {
    /// A coefficient for each position, 0 where there is no column.
    coefficients: AlignedBytes,
    /// The last position whose coefficient is not 0, and 1. A row that was reduced covers few columns beyond its pivot:
    /// as many as lacked an equation when it came.
    end: usize,
}

impl Equation {
    /// Moves `end` back to the last coefficient that is not 0.
    fn find_end(&mut self) {
        self.end =
            self.coefficients[..self.end].iter().rposition(|factor| *factor != 0).map_or(0, |last| last + 1);
    }
}

/// Most rows that one call eliminates.
const STRETCH: usize = 64;

/// The fate of a new equation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inserted {
    /// It has new information.
    Useful,
    /// It follows from the others.
    Redundant,
    /// It contradicts the others: some packet differs from the sender's.
    Contradiction,
}

/// Lost packets and the equations over them.
pub(super) struct System {
    backend: Backend,
    /// The right-hand sides.
    payloads: Payloads,
    /// Most open columns: those that are not known.
    most: usize,
    /// Number of coefficients that fit a row.
    width: usize,
    /// Columns in order. The first stands at position `front` of the rows, the others follow.
    columns: VecDeque<PacketColumn>,
    front: usize,
    /// Number of columns that are not known.
    open: usize,
    rows: Vec<Equation>,
    /// Rows that are not in use.
    free: Vec<usize>,
    /// Scratch: at each position 255 where a column is open.
    mask: Vec<u8>,
}

impl System {
    /// A system of at most `most` columns, with payloads of `symbol_len` bytes. Memory grows with the open columns, up
    /// to `most` rows of 1.5 · `most` + `symbol_len` bytes and a little.
    pub(super) fn new(backend: Backend, most: usize, symbol_len: usize) -> System {
        let width = (most + (most / 2).max(LINE)).next_multiple_of(LINE);
        System {
            backend,
            payloads: Payloads::new(backend, symbol_len),
            most,
            width,
            columns: VecDeque::new(),
            front: 0,
            open: 0,
            rows: Vec::new(),
            free: Vec::new(),
            mask: vec![0; width],
        }
    }

    /// Number of columns that are not known.
    pub(super) fn open(&self) -> usize {
        self.open
    }

    /// The most open columns.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// Number of columns that may be added.
    pub(super) fn room(&self) -> usize {
        self.most - self.open
    }

    /// Number of equations that are lacking until all columns can be known.
    pub(super) fn lacking(&self) -> usize {
        let used = self.rows.len() - self.free.len();
        debug_assert_eq!(used, self.columns.iter().filter(|column| column.row.is_some()).count());
        self.open.saturating_sub(used)
    }

    /// The oldest column; it is open.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.columns.front().map(|column| column.seq)
    }

    /// The sequence numbers of the columns that are not known, ascending.
    pub(super) fn open_columns(&self) -> impl Iterator<Item = u64> + '_ {
        self.columns.iter().filter(|column| !column.known).map(|column| column.seq)
    }

    /// Adds a column newer than all others, with its multipliers in the sums of its lane. If there are too many, the
    /// oldest one is given up first, and returned.
    pub(super) fn push_column(&mut self, seq: u64, values: [u8; SUMS]) -> Option<u64> {
        debug_assert!(self.columns.back().is_none_or(|last| last.seq < seq));
        let given_up = (self.open == self.most).then(|| {
            let seq = self.open_columns().next().expect("there are `most` of them");
            self.give_up_before(seq + 1);
            seq
        });
        if self.front + self.columns.len() == self.width {
            self.compact();
        }
        self.columns.push_back(PacketColumn { seq, values, row: None, known: false });
        self.open += 1;
        given_up
    }

    /// Forgets all columns below `seq`, and the rows that have them as pivots.
    pub(super) fn give_up_before(&mut self, seq: u64) {
        while let Some(column) = self.columns.front()
            && (column.seq < seq || column.known)
        {
            if column.row.is_some() {
                self.payloads.finish();
            }
            let column = self.columns.pop_front().expect("a column");
            self.open -= usize::from(!column.known);
            self.free.extend(column.row);
            self.front += 1;
        }
        if self.columns.is_empty() {
            self.front = 0;
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.give_up_before(u64::MAX);
    }

    /// Moves the open columns to the front.
    fn compact(&mut self) {
        let from: Vec<usize> =
            (self.front..).zip(&self.columns).filter(|(_, column)| !column.known).map(|(at, _)| at).collect();
        self.columns.retain(|column| !column.known);
        for row in self.columns.iter().filter_map(|column| column.row) {
            let coefficients = &mut self.rows[row].coefficients;
            for (to, &from) in from.iter().enumerate() {
                coefficients[to] = coefficients[from];
            }
            coefficients[from.len()..].fill(0);
            let row = &mut self.rows[row];
            row.end = from.partition_point(|&position| position < row.end);
        }
        self.front = 0;
    }

    /// Adds an equation. `coefficient` is asked for each open column and its multipliers, in ascending order; `payload`
    /// fills the right-hand side, whose old content is arbitrary.
    pub(super) fn insert(
        &mut self,
        mut coefficient: impl FnMut(u64, [u8; SUMS]) -> u8,
        payload: impl FnOnce(&mut [u8]),
    ) -> Inserted {
        let row = self.free.pop().unwrap_or_else(|| {
            self.rows.push(Equation { coefficients: AlignedBytes::zeroed(self.width), end: 0 });
            self.payloads.push_row()
        });
        let buffer = &mut self.rows[row];
        buffer.coefficients.fill(0);
        for (at, column) in buffer.coefficients[self.front..].iter_mut().zip(&self.columns) {
            if !column.known {
                *at = coefficient(column.seq, column.values);
            }
        }
        buffer.end = self.front + self.columns.len();
        payload(self.payloads.unfinished(row));
        self.reduce(row, 0)
    }

    /// Reduces a row that no column has yet, from column `from` on, until it has a pivot of its own.
    fn reduce(&mut self, row: usize, from: usize) -> Inserted {
        let mut coefficients = std::mem::replace(&mut self.rows[row].coefficients, AlignedBytes::zeroed(0));
        let pivot = self.eliminate(&mut coefficients, from);
        let equation = &mut self.rows[row];
        equation.coefficients = coefficients;
        let Some(at) = pivot else {
            self.payloads.defer(row, 1);
            self.free.push(row);
            let is_zero = self.payloads.finished(row).iter().all(|byte| *byte == 0);
            return if is_zero { Inserted::Redundant } else { Inserted::Contradiction };
        };
        equation.end = self.front + self.columns.len();
        equation.find_end();
        let position = self.front + at;
        let scale = inv(equation.coefficients[position]);
        let lines = position / LINE * LINE..equation.end.next_multiple_of(LINE);
        multiply(self.backend, &mut equation.coefficients[lines], scale);
        self.columns[at].row = Some(row);
        self.payloads.defer(row, scale);
        Inserted::Useful
    }

    /// Takes the pivots of rows out of `coefficients`, from column `from` on, up to the first column without a row
    /// whose coefficient is not 0, which is returned. The terms are noted for the payload.
    fn eliminate(&mut self, coefficients: &mut [u8], from: usize) -> Option<usize> {
        let terms = self.payloads.new_terms();
        let mut columns = self.columns.iter().enumerate().skip(from).filter(|(_, column)| !column.known);
        loop {
            let (mut stretch, mut rows, mut factors) = ([(0, &[][..]); STRETCH], [0; STRETCH], [0; STRETCH]);
            let (mut len, mut next) = (0, None);
            while len < STRETCH {
                next = columns.next();
                let Some((at, &PacketColumn { row: Some(row), .. })) = next else { break };
                let position = self.front + at;
                let Equation { coefficients, end, .. } = &self.rows[row];
                stretch[len] = (position, &coefficients[position / LINE * LINE..end.next_multiple_of(LINE)]);
                rows[len] = row;
                len += 1;
            }
            self.backend.eliminate(coefficients, &stretch[..len], &mut factors[..len]);
            terms.extend(rows.into_iter().zip(factors).take(len).filter(|(_, factor)| *factor != 0));
            match next {
                Some((at, column)) if column.row.is_none() => {
                    if coefficients[self.front + at] != 0 {
                        return Some(at);
                    }
                }
                Some(_) => {}
                None => return None,
            }
        }
    }

    /// Tells the system the symbol of a column. Nothing happens when it has no such open column.
    pub(super) fn learn(&mut self, seq: u64, symbol: &[u8]) {
        if let Ok(at) = self.columns.binary_search_by_key(&seq, |column| column.seq)
            && !self.columns[at].known
        {
            self.substitute(at, symbol);
            self.give_up_before(0);
        }
    }

    /// Puts the symbol of column `at` into all equations that have it.
    fn substitute(&mut self, at: usize, symbol: &[u8]) {
        let position = self.front + at;
        for row in self.columns.range(..=at).filter_map(|column| column.row) {
            let equation = &mut self.rows[row];
            let factor = std::mem::take(&mut equation.coefficients[position]);
            if equation.end == position + 1 {
                equation.find_end();
            }
            if factor != 0 {
                self.payloads.add_symbol(row, symbol, factor);
            }
        }
        self.columns[at].known = true;
        self.open -= 1;
        if let Some(row) = self.columns[at].row.take() {
            self.reduce(row, at + 1);
        }
    }

    /// Solves all columns that can be solved. `accept` gets the number and symbol of each column that is now
    /// determined, in descending order, and says whether it believes them. A column that is not believed stays open,
    /// without the equation.
    pub(super) fn solve(&mut self, mut accept: impl FnMut(u64, &[u8]) -> bool) {
        let determined = self.determined();
        let mut terms = Vec::new();
        for &at in &determined {
            let row = self.columns[at].row.expect("a determined column has a row");
            // All other columns of the row were solved before: its payload is the symbol.
            terms.clear();
            let Equation { coefficients, end, .. } = &self.rows[row];
            for (column, &factor) in
                self.columns.range(at + 1..).zip(&coefficients[self.front + at + 1..*end])
            {
                if factor != 0 {
                    terms.push((column.row.expect("solved columns keep their rows"), factor));
                }
            }
            self.payloads.add_terms(row, &terms);
        }
        let rows: Vec<usize> = determined
            .iter()
            .map(|&at| self.columns[at].row.take().expect("a determined column has a row"))
            .collect();
        let others = self.columns.iter().any(|column| column.row.is_some());
        for (&at, row) in determined.iter().zip(rows) {
            let payload = self.payloads.take(row);
            if accept(self.columns[at].seq, &payload) {
                if others {
                    self.substitute(at, &payload);
                } else {
                    self.columns[at].known = true;
                    self.open -= 1;
                }
            }
            self.payloads.put_back(row, payload);
            self.free.push(row);
        }
        self.give_up_before(0);
    }

    /// The columns that the equations determine, newest first, by index.
    fn determined(&mut self) -> Vec<usize> {
        let mut found = Vec::new();
        let end = (self.front + self.columns.len()).next_multiple_of(LINE);
        self.mask[..end].fill(0);
        for (at, column) in self.columns.iter().enumerate().rev() {
            let position = self.front + at;
            if column.known {
                continue;
            }
            let solved = column.row.is_some_and(|row| {
                let row = &self.rows[row];
                if row.end > position && self.mask[row.end - 1] != 0 {
                    return false;
                }
                let (start, end) = (position / LINE * LINE, row.end.next_multiple_of(LINE));
                let coefficients = row.coefficients[start..end].as_chunks::<LINE>().0;
                let mask = self.mask[start..end].as_chunks::<LINE>().0;
                let meets = |(a, b): (&[u8; LINE], &[u8; LINE])| {
                    a.iter().zip(b).fold(0, |met, (a, b)| met | (a & b)) != 0
                };
                !coefficients.iter().zip(mask).any(meets)
            });
            if solved {
                found.push(at);
            } else {
                self.mask[position] = 255;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gf256::{kernel::work, mul};
    use crate::random::SplitMix64;

    const LEN: usize = 128;

    fn symbol(seq: u64) -> Vec<u8> {
        let mut noise = SplitMix64::new(seq);
        (0..LEN).map(|_| noise.next() as u8).collect()
    }

    /// Inserts a row with random coefficients for the open columns before `end`.
    fn insert(system: &mut System, noise: &mut SplitMix64, end: u64) -> Inserted {
        let mut payload = vec![0; LEN];
        let columns: Vec<u64> = system.open_columns().filter(|seq| *seq < end).collect();
        let mut factors = Vec::new();
        for &seq in &columns {
            let factor = noise.next() as u8;
            payload.iter_mut().zip(symbol(seq)).for_each(|(sum, byte)| *sum ^= mul(factor, byte));
            factors.push((seq, factor));
        }
        let coefficient = |seq, _| factors.iter().find(|(of, _)| *of == seq).map_or(0, |(_, factor)| *factor);
        system.insert(coefficient, |to| to.copy_from_slice(&payload))
    }

    /// Columns come, leave unsolved and are learned late while rows are deferred; the window outgrows the positions.
    /// All that is solved is right, and every backend solves the same.
    #[test]
    fn what_is_solved_is_right() {
        let runs: Vec<(u64, Vec<u64>)> = Backend::available()
            .map(|backend| {
                let (mut noise, mut system) = (SplitMix64::new(1), System::new(backend, 100, LEN));
                let (mut solved, mut next, mut vain) = (Vec::new(), 0, 0);
                for round in 0..900u64 {
                    if noise.index(100) < if round % 300 < 200 { 70 } else { 30 } {
                        system.push_column(next, [0; SUMS]);
                        next += 1 + u64::from(noise.below(3));
                    }
                    match noise.index(20) {
                        0 => system.give_up_before(next.saturating_sub(130)),
                        1 => {
                            let open: Vec<u64> = system.open_columns().collect();
                            if let Some(&seq) = open.get(noise.index(open.len().max(1))) {
                                system.learn(seq, &symbol(seq));
                            }
                        }
                        _ => {}
                    }
                    if noise.index(100) < 55 && system.open() > 0 {
                        let end = next.saturating_sub(noise.below(3).into());
                        let inserted = insert(&mut system, &mut noise, end);
                        assert_ne!(inserted, Inserted::Contradiction, "{backend:?} {round}");
                        vain += u64::from(inserted == Inserted::Redundant);
                    }
                    system.solve(|seq, bytes| {
                        assert_eq!(bytes, symbol(seq), "{backend:?} {round}: {seq}");
                        solved.push(seq);
                        true
                    });
                }
                (vain, solved)
            })
            .collect();
        assert!(runs[0].1.len() > 150, "{} were solved", runs[0].1.len());
        assert!(runs.iter().all(|run| *run == runs[0]));
    }

    #[test]
    fn a_row_that_contradicts_others_is_told_at_once() {
        let mut system = System::new(Backend::best(), 100, LEN);
        (0..20).for_each(|seq| assert_eq!(system.push_column(seq, [0; SUMS]), None));
        let mut noise = SplitMix64::new(5);
        for _ in 0..5 {
            assert_eq!(insert(&mut system, &mut noise, 6), Inserted::Useful);
        }
        let row = |seq, _| if seq < 3 { seq as u8 + 1 } else { 0 };
        assert_eq!(system.insert(row, |to| to.fill(7)), Inserted::Useful);
        assert_eq!(insert(&mut system, &mut noise, 6), Inserted::Contradiction, "one of the six was false");
    }

    /// As long as few columns lack an equation, a row costs each of the others a symbol and at most two lines of
    /// coefficients, not as many coefficients as there are columns.
    #[test]
    fn a_row_over_many_columns_costs_a_symbol_and_two_lines_for_each() {
        const COLUMNS: usize = 800;
        let (mut noise, mut system) = (SplitMix64::new(6), System::new(Backend::best(), 1000, LEN));
        for seq in 0..COLUMNS as u64 {
            system.push_column(seq, [0; SUMS]);
            if seq >= 10 {
                insert(&mut system, &mut noise, seq + 1);
            }
        }
        system.payloads.finish();
        assert_eq!(system.lacking(), 10);
        work::take();
        for _ in 0..5 {
            assert_eq!(insert(&mut system, &mut noise, COLUMNS as u64), Inserted::Useful);
        }
        system.payloads.finish();
        let each = work::take() / 5 / COLUMNS;
        assert!((LEN..LEN + 2 * LINE).contains(&each), "{each} bytes for each column");
    }
}

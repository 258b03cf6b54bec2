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

use crate::gf256::inv;
use crate::gf256::kernel::{AlignedBytes, Backend, LINE};
use std::collections::VecDeque;

/// A lost packet.
struct PacketColumn {
    seq: u64,
    /// The row that has it as pivot.
    row: Option<usize>,
    /// True if it is known by now. If so, no row has a coefficient here.
    known: bool,
}

/// An equation: Σ coefficient · symbol = payload.
#[derive(Debug)]
struct Equation {
    /// A coefficient for each position, 0 where there is no column.
    coefficients: AlignedBytes,
    payload: AlignedBytes,
}

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
    symbol_len: usize,
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
    /// Scratch: factors and rows of a reduction.
    terms: Vec<(usize, u8)>,
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
            symbol_len,
            most,
            width,
            columns: VecDeque::new(),
            front: 0,
            open: 0,
            rows: Vec::new(),
            free: Vec::new(),
            terms: Vec::new(),
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

    /// Adds a column newer than all others. If there are too many, the oldest one is given up first, and returned.
    pub(super) fn push_column(&mut self, seq: u64) -> Option<u64> {
        debug_assert!(self.columns.back().is_none_or(|last| last.seq < seq));
        let given_up = (self.open == self.most).then(|| {
            let seq = self.open_columns().next().expect("there are `most` of them");
            self.give_up_before(seq + 1);
            seq
        });
        if self.front + self.columns.len() == self.width {
            self.compact();
        }
        self.columns.push_back(PacketColumn { seq, row: None, known: false });
        self.open += 1;
        given_up
    }

    /// Forgets all columns below `seq`, and the rows that have them as pivots.
    pub(super) fn give_up_before(&mut self, seq: u64) {
        while let Some(column) = self.columns.front()
            && (column.seq < seq || column.known)
        {
            self.open -= usize::from(!column.known);
            self.free.extend(column.row);
            self.columns.pop_front();
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
        }
        self.front = 0;
    }

    /// Adds an equation. `coefficient` is asked for each open column, in ascending order; `payload` fills the
    /// right-hand side, whose old content is arbitrary.
    pub(super) fn insert(
        &mut self,
        mut coefficient: impl FnMut(u64) -> u8,
        payload: impl FnOnce(&mut [u8]),
    ) -> Inserted {
        let row = self.free.pop().unwrap_or_else(|| {
            self.rows.push(Equation {
                coefficients: AlignedBytes::zeroed(self.width),
                payload: AlignedBytes::zeroed(self.symbol_len),
            });
            self.rows.len() - 1
        });
        let buffer = &mut self.rows[row];
        buffer.coefficients.fill(0);
        for (at, column) in buffer.coefficients[self.front..].iter_mut().zip(&self.columns) {
            if !column.known {
                *at = coefficient(column.seq);
            }
        }
        payload(&mut buffer.payload);
        self.reduce(row, 0)
    }

    /// Reduces a row that no column has yet, from column `from` on, until it has a pivot of its own.
    fn reduce(&mut self, row: usize, from: usize) -> Inserted {
        let placeholder =
            Equation { coefficients: AlignedBytes::zeroed(0), payload: AlignedBytes::zeroed(0) };
        let mut reduced = std::mem::replace(&mut self.rows[row], placeholder);
        let end = (self.front + self.columns.len()).next_multiple_of(LINE);
        self.terms.clear();
        let mut pivot = None;
        for (at, column) in self.columns.iter().enumerate().skip(from) {
            let position = self.front + at;
            let factor = reduced.coefficients[position];
            if factor == 0 {
                continue;
            }
            match column.row {
                None => {
                    pivot = Some((at, factor));
                    break;
                }
                Some(other) => {
                    let start = position / LINE * LINE;
                    let source = &self.rows[other].coefficients[start..end];
                    self.backend.add_products(&mut reduced.coefficients[start..end], &[source], &[factor]);
                    self.terms.push((other, factor));
                }
            }
        }
        self.add_payloads(&mut reduced.payload);
        let inserted = match pivot {
            Some((at, factor)) => {
                let start = (self.front + at) / LINE * LINE;
                self.scale(&mut reduced.coefficients[start..end], inv(factor));
                self.scale(&mut reduced.payload, inv(factor));
                self.columns[at].row = Some(row);
                Inserted::Useful
            }
            None => {
                self.free.push(row);
                if reduced.payload.iter().all(|byte| *byte == 0) {
                    Inserted::Redundant
                } else {
                    Inserted::Contradiction
                }
            }
        };
        self.rows[row] = reduced;
        inserted
    }

    /// Adds the payloads of `terms` times their factors to `payload`.
    fn add_payloads(&self, payload: &mut [u8]) {
        const AT_ONCE: usize = 16;
        if self.symbol_len == 0 {
            return;
        }
        for terms in self.terms.chunks(AT_ONCE) {
            let mut sources: [&[u8]; AT_ONCE] = [&[]; AT_ONCE];
            let mut factors = [0; AT_ONCE];
            for ((source, factor), &(row, by)) in sources.iter_mut().zip(&mut factors).zip(terms) {
                (*source, *factor) = (&self.rows[row].payload, by);
            }
            self.backend.add_products(payload, &sources[..terms.len()], &factors[..terms.len()]);
        }
    }

    fn scale(&self, bytes: &mut [u8], factor: u8) {
        // x + (f + 1)·x = f·x, in pieces, because source and sum cannot be the same bytes.
        let mut copy = [0; 1024];
        for piece in bytes.chunks_mut(copy.len()) {
            let copy = &mut copy[..piece.len()];
            copy.copy_from_slice(piece);
            self.backend.add_products(piece, &[copy], &[factor ^ 1]);
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
            let row = &mut self.rows[row];
            let factor = std::mem::take(&mut row.coefficients[position]);
            if factor != 0 && self.symbol_len > 0 {
                self.backend.add_products(&mut row.payload, &[symbol], &[factor]);
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
        for &at in &determined {
            let row = self.columns[at].row.expect("a determined column has a row");
            let position = self.front + at;
            // All other columns of the row were solved before: its payload is the symbol.
            self.terms.clear();
            let rest = &self.rows[row].coefficients[position + 1..];
            for (column, &factor) in self.columns.range(at + 1..).zip(rest) {
                if factor != 0 {
                    self.terms.push((column.row.expect("solved columns keep their rows"), factor));
                }
            }
            let mut payload = std::mem::replace(&mut self.rows[row].payload, AlignedBytes::zeroed(0));
            self.add_payloads(&mut payload);
            self.rows[row].payload = payload;
        }
        let rows: Vec<usize> = determined
            .iter()
            .map(|&at| self.columns[at].row.take().expect("a determined column has a row"))
            .collect();
        let others = self.columns.iter().any(|column| column.row.is_some());
        for (&at, row) in determined.iter().zip(rows) {
            let payload = std::mem::replace(&mut self.rows[row].payload, AlignedBytes::zeroed(0));
            if accept(self.columns[at].seq, &payload) {
                if others {
                    self.substitute(at, &payload);
                } else {
                    self.columns[at].known = true;
                    self.open -= 1;
                }
            }
            self.rows[row].payload = payload;
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
                let start = position / LINE * LINE;
                let coefficients = self.rows[row].coefficients[start..end].as_chunks::<LINE>().0;
                let mask = self.mask[start..end].as_chunks::<LINE>().0;
                let meets = |(a, b): (&[u8; LINE], &[u8; LINE])| {
                    a.iter().zip(b).fold(0, |met, (a, b)| met | (a & b)) != 0
                };
                // From the newest on, where open columns are.
                !coefficients.iter().zip(mask).rev().any(meets)
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

//! What a kernel touches in memory, in its order: for models of caches.
//!
//! The same loops as the walk of the matrix kernels and the runner of programs, with addresses in place of loads
//! and stores. Registers, the stack and prefetches are left out; a stretch that is
//! touched again with hardly anything in between is told once.

use super::aligned::LINE;
use super::butterfly::tile_columns;
use super::program::{BLOCK, Factor, Pass, Program, Term};
use super::{AlignedBytes, Backend, groups, past_caches};
use crate::gf256::PRODUCTS;

/// One stretch of memory that a kernel touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Where it begins.
    pub address: usize,
    /// Its length in bytes, at least 1.
    pub len: usize,
    /// What is done to it.
    pub kind: AccessKind,
}

/// What a kernel does to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AccessKind {
    /// A load.
    Read,
    /// A store, by way of the caches.
    Write,
    /// A store past the caches.
    Stream,
}

/// Told of each access.
pub(crate) type Visitor<'a> = dyn FnMut(Access) + 'a;

pub(super) fn read(visit: &mut Visitor<'_>, bytes: &[u8], at: usize, len: usize) {
    let address = bytes.as_ptr().addr() + at;
    visit(Access { address, len, kind: AccessKind::Read });
}

pub(super) fn write(visit: &mut Visitor<'_>, bytes: &[u8], at: usize, len: usize, stream: bool) {
    let address = bytes.as_ptr().addr() + at;
    let kind = if stream { AccessKind::Stream } else { AccessKind::Write };
    visit(Access { address, len, kind });
}

/// The accesses of a matrix with these packed tables.
pub(crate) fn matrix(
    backend: Backend,
    tables: &AlignedBytes,
    src: &[&[u8]],
    dst: &[&[u8]],
    visit: &mut Visitor<'_>,
) {
    let kernel = backend.0;
    let (k, row_len) = (src.len(), src[0].len());
    let Some(step) = kernel.step else { return super::scalar::trace(tables, src, dst, visit) };
    let cut = super::walk::Cut::new(k, dst.len(), 1, row_len);
    for start in (0..row_len).step_by(cut.tile_len) {
        for group in groups(dst.len(), kernel.max_outputs) {
            let table_len = group.len() * kernel.table_len;
            for at in (start..row_len.min(start + cut.tile_len)).step_by(step) {
                for (j, row) in src.iter().enumerate() {
                    read(visit, row, at, step);
                    read(visit, tables, group.start * k * kernel.table_len + j * table_len, table_len);
                }
                for row in &dst[group.clone()] {
                    write(visit, row, at, step, cut.stream);
                }
            }
        }
    }
}

/// The accesses of a program with these packed tables. Its blocks, which each run allocates, are taken to stand
/// where an allocation of now stands.
pub(crate) fn program(
    backend: Backend,
    program: &Program,
    tables: &[u8],
    src: &[&[u8]],
    dst: &[&[u8]],
    visit: &mut Visitor<'_>,
) {
    let row_len = src[0].len();
    let columns = tile_columns(row_len);
    let blocks = AlignedBytes::zeroed(program.blocks * columns * BLOCK * LINE);
    let stream = past_caches(dst.len(), 1, row_len);
    for start in (0..row_len).step_by(columns * LINE) {
        let used = columns.min((row_len - start) / LINE);
        let tile = Tile { table_len: backend.0.table_len, tables, blocks: &blocks, columns, start, used };
        for pass in &program.passes {
            tile.pass(pass, src, dst, stream, visit);
        }
    }
}

/// Where a pass works, as in the runner.
struct Tile<'a> {
    table_len: usize,
    tables: &'a [u8],
    blocks: &'a [u8],
    columns: usize,
    start: usize,
    used: usize,
}

impl Tile<'_> {
    fn pass(&self, pass: &Pass, src: &[&[u8]], dst: &[&[u8]], stream: bool, visit: &mut Visitor<'_>) {
        for column in 0..self.used {
            let at = self.start + column * LINE;
            match pass {
                Pass::Inverse { first, to, skews, merge, .. } => {
                    src[*first..][..BLOCK].iter().for_each(|row| read(visit, row, at, LINE));
                    self.skews(*skews, visit);
                    if let Some(merge) = merge {
                        self.read(merge.low, column, BLOCK, visit);
                        if let Some(by) = merge.by {
                            self.factor(by, visit);
                            self.write(merge.low, column, BLOCK, visit);
                        }
                        for more in merge.more.into_iter().flatten() {
                            self.read(more, column, BLOCK, visit);
                        }
                        if merge.more.is_some() {
                            self.write(merge.low, column, BLOCK, visit);
                        }
                    }
                    self.write(*to, column, BLOCK, visit);
                }
                Pass::Sum { to, from, terms } => {
                    let rows = match terms.iter().map(|term| term.rows).max() {
                        Some(rows) if to == from => rows,
                        _ => BLOCK,
                    };
                    self.read(*from, column, rows, visit);
                    terms.iter().for_each(|term| self.term(term, column, visit));
                    self.write(*to, column, rows, visit);
                }
                Pass::Tail { to, residue, first, known, skews } => {
                    if let Some(residue) = residue {
                        self.read(*residue, column, BLOCK, visit);
                    }
                    src[*first..][..*known].iter().for_each(|row| read(visit, row, at, LINE));
                    self.skews(*skews, visit);
                    self.write(*to, column, BLOCK, visit);
                }
                Pass::Forward { from, plus, keep, skews, tap, out } => {
                    self.read(*from, column, BLOCK, visit);
                    if let Some(term) = plus {
                        self.term(term, column, visit);
                    }
                    if let Some([high, keep]) = keep {
                        self.read(*high, column, BLOCK, visit);
                        self.write(*keep, column, BLOCK, visit);
                    }
                    self.skews(*skews, visit);
                    if let Some(tap) = tap {
                        read(visit, src[tap.source], at, LINE);
                        self.write(tap.to, column, 1, visit);
                    }
                    for (_, row) in &out.rows {
                        write(visit, dst[usize::from(*row)], at, LINE, stream);
                    }
                }
            }
        }
    }

    fn term(&self, term: &Term, column: usize, visit: &mut Visitor<'_>) {
        self.factor(term.by, visit);
        self.read(term.block, column, term.rows, visit);
    }

    fn factor(&self, factor: Factor, visit: &mut Visitor<'_>) {
        if let Factor::Table(number) = factor {
            self.coefficients(number, 1, visit);
        }
    }

    fn skews(&self, first: usize, visit: &mut Visitor<'_>) {
        self.coefficients(first, BLOCK - 1, visit);
    }

    fn coefficients(&self, first: usize, count: usize, visit: &mut Visitor<'_>) {
        read(visit, self.tables, first * self.table_len, count * self.table_len);
        if self.table_len == 1 {
            // A coefficient by itself: the products are looked up in the table of all.
            for &coefficient in &self.tables[first..first + count] {
                read(visit, &PRODUCTS[usize::from(coefficient)], 0, 256);
            }
        }
    }

    fn read(&self, block: usize, column: usize, rows: usize, visit: &mut Visitor<'_>) {
        read(visit, self.blocks, self.place(block, column), rows * LINE);
    }

    fn write(&self, block: usize, column: usize, rows: usize, visit: &mut Visitor<'_>) {
        write(visit, self.blocks, self.place(block, column), rows * LINE, false);
    }

    fn place(&self, block: usize, column: usize) -> usize {
        (block * self.columns + column) * BLOCK * LINE
    }
}

//! What a kernel touches in memory, in its order: for models of caches.
//!
//! The same loops as the walk of the matrix kernels and the runner of programs, with addresses in place of loads
//! and stores. Each call of an inner function is taken to use
//! some lines of the stack, the same ones; prefetches are left out.

use super::aligned::LINE;
use super::butterfly::{Stage, tile_columns};
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

/// The stack that a call of an inner function uses: spilled registers, bounds, pointers.
#[repr(align(64))]
struct Frame([u8; FRAME]);

/// Bytes of it that are used, as another simulator counts them: see `scripts/check-model.sh`.
const FRAME: usize = 512;

impl Frame {
    fn new() -> Frame {
        Frame([0; FRAME])
    }

    fn enter(&self, visit: &mut Visitor<'_>) {
        read(visit, &self.0, 0, FRAME);
    }
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

/// A row's own bytes, behind the place where its address stands.
pub(super) fn row<'a>(visit: &mut Visitor<'_>, rows: &[&'a [u8]], i: usize) -> &'a [u8] {
    let address = std::ptr::from_ref(&rows[i]).addr();
    visit(Access { address, len: size_of::<&[u8]>(), kind: AccessKind::Read });
    rows[i]
}

/// A load from source row `i`.
fn source(visit: &mut Visitor<'_>, src: &[&[u8]], i: usize, at: usize, len: usize) {
    let row = row(visit, src, i);
    read(visit, row, at, len);
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
    let frame = Frame::new();
    let cut = super::walk::Cut::new(k, dst.len(), 1, row_len);
    for start in (0..row_len).step_by(cut.tile_len) {
        for group in groups(dst.len(), kernel.max_outputs) {
            frame.enter(visit);
            let table_len = group.len() * kernel.table_len;
            for at in (start..row_len.min(start + cut.tile_len)).step_by(step) {
                for j in 0..k {
                    source(visit, src, j, at, step);
                    read(visit, tables, group.start * k * kernel.table_len + j * table_len, table_len);
                }
                for i in group.clone() {
                    let to = row(visit, dst, i);
                    write(visit, to, at, step, cut.stream);
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
    let frame = Frame::new();
    let stage = Stage([[0; LINE]; BLOCK]);
    let stream = past_caches(dst.len(), 1, row_len);
    for start in (0..row_len).step_by(columns * LINE) {
        let used = columns.min((row_len - start) / LINE);
        let (vector, table_len) = (backend.0.vector, backend.0.table_len);
        let stage = stage.0.as_flattened();
        let tile = Tile { vector, table_len, tables, blocks: &blocks, stage, columns, start, used };
        for pass in &program.passes {
            frame.enter(visit);
            tile.pass(pass, src, dst, stream, visit);
        }
    }
}

/// Where a pass works, as in the runner.
struct Tile<'a> {
    /// Bytes of a vector; the parts of a line go through the registers one after the other.
    vector: usize,
    table_len: usize,
    tables: &'a [u8],
    blocks: &'a [u8],
    /// Where the lines of outputs are gathered.
    stage: &'a [u8],
    columns: usize,
    start: usize,
    used: usize,
}

impl Tile<'_> {
    fn pass(&self, pass: &Pass, src: &[&[u8]], dst: &[&[u8]], stream: bool, visit: &mut Visitor<'_>) {
        for column in 0..self.used {
            let at = self.start + column * LINE;
            for part in (0..LINE).step_by(self.vector) {
                self.part(pass, src, dst, column, part, stream, visit);
            }
            if let Pass::Forward { out, .. } = pass
                && !(self.vector == LINE && out.run.is_some())
            {
                for (output, to) in &out.rows {
                    read(visit, self.stage, usize::from(*output) * LINE, LINE);
                    let to = row(visit, dst, usize::from(*to));
                    write(visit, to, at, LINE, stream);
                }
            }
        }
    }

    /// What a pass does to one part of a column.
    #[allow(clippy::too_many_arguments)]
    fn part(
        &self,
        pass: &Pass,
        src: &[&[u8]],
        dst: &[&[u8]],
        column: usize,
        part: usize,
        stream: bool,
        visit: &mut Visitor<'_>,
    ) {
        let at = self.start + column * LINE + part;
        let v = self.vector;
        match pass {
            Pass::Inverse { first, to, skews, merge, .. } => {
                (*first..first + BLOCK).for_each(|i| source(visit, src, i, at, v));
                self.skews(*skews, visit);
                if let Some(merge) = merge {
                    self.read(merge.low, column, part, BLOCK, visit);
                    if let Some(by) = merge.by {
                        self.factor(by, visit);
                        self.write(merge.low, column, part, BLOCK, visit);
                    }
                    if let Some([to_low, to_high]) = merge.more {
                        for row in 0..BLOCK {
                            self.row(merge.low, column, part, row, false, visit);
                            self.row(to_low, column, part, row, false, visit);
                            self.row(merge.low, column, part, row, true, visit);
                            self.row(to_high, column, part, row, false, visit);
                        }
                    }
                }
                self.write(*to, column, part, BLOCK, visit);
            }
            Pass::Sum { to, from, terms } => {
                let rows = match terms.iter().map(|term| term.rows).max() {
                    Some(rows) if to == from => rows,
                    _ => BLOCK,
                };
                self.read(*from, column, part, rows, visit);
                terms.iter().for_each(|term| self.term(term, column, part, visit));
                self.write(*to, column, part, rows, visit);
            }
            Pass::Tail { to, residue, first, known, skews } => {
                if let Some(residue) = residue {
                    self.read(*residue, column, part, BLOCK, visit);
                }
                self.skews(*skews, visit);
                (*first..first + known).for_each(|i| source(visit, src, i, at, v));
                self.write(*to, column, part, BLOCK, visit);
            }
            Pass::Forward { from, plus, keep, skews, tap, out } => {
                self.read(*from, column, part, BLOCK, visit);
                if let Some(term) = plus {
                    self.term(term, column, part, visit);
                }
                if let Some([high, keep]) = keep {
                    for row in 0..BLOCK {
                        self.row(*high, column, part, row, false, visit);
                        self.row(*keep, column, part, row, true, visit);
                    }
                }
                self.skews(*skews, visit);
                if let Some(tap) = tap {
                    source(visit, src, tap.source, at, v);
                    self.row(tap.to, column, part, 0, true, visit);
                }
                if v == LINE && out.run.is_some() {
                    for (_, to) in &out.rows {
                        let to = row(visit, dst, usize::from(*to));
                        write(visit, to, at, LINE, stream);
                    }
                } else {
                    for output in 0..out.computed {
                        write(visit, self.stage, output * LINE + part, v, false);
                    }
                }
            }
        }
    }

    fn term(&self, term: &Term, column: usize, part: usize, visit: &mut Visitor<'_>) {
        self.factor(term.by, visit);
        self.read(term.block, column, part, term.rows, visit);
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

    fn read(&self, block: usize, column: usize, part: usize, rows: usize, visit: &mut Visitor<'_>) {
        (0..rows).for_each(|row| self.row(block, column, part, row, false, visit));
    }

    fn write(&self, block: usize, column: usize, part: usize, rows: usize, visit: &mut Visitor<'_>) {
        (0..rows).for_each(|row| self.row(block, column, part, row, true, visit));
    }

    /// The part of one row of a block's column.
    fn row(
        &self,
        block: usize,
        column: usize,
        part: usize,
        row: usize,
        store: bool,
        visit: &mut Visitor<'_>,
    ) {
        let at = ((block * self.columns + column) * BLOCK + row) * LINE + part;
        match store {
            false => read(visit, self.blocks, at, self.vector),
            true => write(visit, self.blocks, at, self.vector, false),
        }
    }
}

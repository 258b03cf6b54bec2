//! What a kernel touches in memory, in its order: for models of caches.
//!
//! The same loops as the walk of the matrix kernels and the runner of programs, with addresses in place of loads
//! and stores. Each call of an inner function is taken to use
//! some lines of the stack, the same ones; prefetches are left out.

use super::aligned::LINE;
use super::program::{BLOCK, Factor, Input, Merge, Outputs, Pass, Program, Tap, Term};
use super::{AlignedBytes, Backend, FEW, Store, groups};
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
    let kernel = backend.kernel;
    let (k, row_len) = (src.len(), src[0].len());
    let Some(step) = kernel.step else { return super::scalar::trace(tables, src, dst, visit) };
    let frame = Frame::new();
    let cut = super::walk::Cut::new(backend.tuning, k, row_len, row_len * dst.len());
    let stream = cut.store == Store::Stream;
    for start in (0..row_len).step_by(cut.tile_len) {
        for group in groups(dst.len(), backend.sums()) {
            frame.enter(visit);
            let table_len = group.len() * kernel.table_len;
            for at in (start..row_len.min(start + cut.tile_len)).step_by(step) {
                for j in 0..k {
                    source(visit, src, j, at, step);
                    read(visit, tables, group.start * k * kernel.table_len + j * table_len, table_len);
                }
                for i in group.clone() {
                    let to = row(visit, dst, i);
                    write(visit, to, at, step, stream);
                }
            }
        }
    }
}

/// The accesses of a program with these packed tables. Its blocks, which each thread keeps, are taken to stand
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
    let columns = backend.tuning.columns_of(program.blocks, row_len / LINE, backend.kernel.halves);
    let scratch = AlignedBytes::zeroed((program.blocks + 1) * columns * BLOCK * LINE);
    let (stage, blocks) = scratch.split_at(columns * BLOCK * LINE);
    let frame = Frame::new();
    let stream = backend.tuning.store_of(row_len * dst.len()) == Store::Stream;
    for start in (0..row_len).step_by(columns * LINE) {
        let used = columns.min((row_len - start) / LINE);
        let (halves, table_len) = (backend.kernel.halves, backend.kernel.table_len);
        let sources = &program.sources;
        let tile = Tile {
            halves,
            table_len,
            tables,
            sources,
            blocks,
            stage,
            columns,
            start,
            used,
            src,
            dst,
            stream,
        };
        for pass in &program.passes {
            frame.enter(visit);
            tile.pass(pass, visit);
        }
    }
}

/// Where a pass works, as in the runner.
struct Tile<'a> {
    /// Whether passes go over the tile twice.
    halves: bool,
    table_len: usize,
    tables: &'a [u8],
    sources: &'a [u8],
    blocks: &'a [u8],
    /// Where rows stand between the halves of a forward pass.
    stage: &'a [u8],
    columns: usize,
    start: usize,
    used: usize,
    src: &'a [&'a [u8]],
    dst: &'a [&'a [u8]],
    /// Whether outputs are stored past the caches.
    stream: bool,
}

impl Tile<'_> {
    fn pass(&self, pass: &Pass, visit: &mut Visitor<'_>) {
        match pass {
            Pass::Inverse { first, to, skews, merge, .. } if self.halves => {
                for g in 0..4 {
                    self.near(*skews, g, visit);
                    for column in 0..self.used {
                        (first + 4 * g..first + 4 * g + 4).for_each(|i| self.source(i, column, visit));
                        (4 * g..4 * g + 4).for_each(|row| self.row(*to, column, row, true, visit));
                    }
                }
                self.coefficients(*skews, 3, visit);
                for column in 0..self.used {
                    self.read(*to, column, BLOCK, visit);
                    self.inverse_rest(*to, merge.as_ref(), column, visit);
                }
            }
            Pass::Inverse { first, to, skews, merge, .. } => {
                for column in 0..self.used {
                    (*first..first + BLOCK).for_each(|i| self.source(i, column, visit));
                    self.skews(*skews, visit);
                    self.inverse_rest(*to, merge.as_ref(), column, visit);
                }
            }
            Pass::Sum { to, from, terms } => {
                let rows = match terms.iter().map(|term| term.rows).max() {
                    Some(rows) if to == from => rows,
                    _ => BLOCK,
                };
                for column in 0..self.used {
                    self.read(*from, column, rows, visit);
                    terms.iter().for_each(|term| self.term(term, column, visit));
                    self.write(*to, column, rows, visit);
                }
            }
            Pass::Tail { to, residue, first, known, skews } => {
                for column in 0..self.used {
                    if let Some(residue) = residue {
                        self.read(*residue, column, BLOCK, visit);
                    }
                    self.skews(*skews, visit);
                    (*first..first + known).for_each(|i| self.source(i, column, visit));
                    self.write(*to, column, BLOCK, visit);
                }
            }
            Pass::Forward { input, skews, tap, out } if self.halves => {
                if let Some(few) = &input.few {
                    for column in 0..self.used {
                        self.read(input.from, column, FEW, visit);
                        self.term(few, column, visit);
                        (0..FEW).for_each(|row| self.staged(column, row, true, visit));
                    }
                }
                self.coefficients(*skews, 3, visit);
                for column in 0..self.used {
                    if input.few.is_some() {
                        (0..FEW).for_each(|row| self.staged(column, row, false, visit));
                    }
                    self.input(&Input { few: None, ..*input }, column, visit);
                    (0..out.computed).for_each(|row| self.staged(column, row, true, visit));
                }
                for (g, rows) in out.rows[..out.computed].chunks(4).enumerate() {
                    self.near(*skews, g, visit);
                    self.four_outputs(tap.as_ref(), rows, g, visit);
                }
            }
            Pass::Forward { input, skews, tap, out } => {
                for column in 0..self.used {
                    self.input(input, column, visit);
                    self.skews(*skews, visit);
                    self.outputs(tap.as_ref(), out, column, visit);
                }
            }
        }
    }

    fn inverse_rest(&self, to: usize, merge: Option<&Merge>, column: usize, visit: &mut Visitor<'_>) {
        if let Some(Merge { low, by, more }) = merge {
            by.iter().for_each(|&number| self.coefficients(number, 1, visit));
            for row in 0..BLOCK {
                self.row(*low, column, row, false, visit);
                if by.is_some() || more.is_some() {
                    self.row(*low, column, row, true, visit);
                }
                more.iter().flatten().for_each(|&block| self.row(block, column, row, false, visit));
            }
        }
        self.write(to, column, BLOCK, visit);
    }

    fn input(&self, input: &Input, column: usize, visit: &mut Visitor<'_>) {
        self.read(input.from, column, BLOCK, visit);
        input.few.iter().for_each(|term| self.term(term, column, visit));
        if let Some((block, by)) = input.plus {
            self.term(&Term { block, by, rows: BLOCK }, column, visit);
        }
        if let Some([high, keep]) = input.keep {
            if input.plus.is_none() {
                self.read(high, column, BLOCK, visit);
            }
            self.write(keep, column, BLOCK, visit);
        }
    }

    fn outputs(&self, tap: Option<&Tap>, out: &Outputs, column: usize, visit: &mut Visitor<'_>) {
        if let Some(tap) = tap {
            self.source(tap.source, column, visit);
            self.row(tap.to, column, 0, true, visit);
        }
        out.rows.iter().for_each(|&row| self.output(row, column, visit));
    }

    /// Four outputs of a forward pass in halves: straight from the registers if all are wanted and nothing is added.
    fn four_outputs(&self, tap: Option<&Tap>, rows: &[Option<u8>], g: usize, visit: &mut Visitor<'_>) {
        let run = rows.windows(2).all(|pair| matches!(pair, [Some(a), Some(b)] if b.wrapping_sub(*a) == 1));
        let staged = 4 * g..4 * g + 4;
        for column in 0..self.used {
            staged.clone().for_each(|row| self.staged(column, row, false, visit));
            if run && tap.is_none() {
                rows.iter().for_each(|&row| self.output(row, column, visit));
                continue;
            }
            if let Some(tap) = tap {
                if g == 0 {
                    self.source(tap.source, column, visit);
                    self.row(tap.to, column, 0, true, visit);
                }
                self.row(tap.to, column, 0, false, visit);
            }
            staged.clone().for_each(|row| self.staged(column, row, true, visit));
        }
        if !run || tap.is_some() {
            for (row, output) in staged.zip(rows).filter(|(_, output)| output.is_some()) {
                for column in 0..self.used {
                    self.staged(column, row, false, visit);
                    self.output(*output, column, visit);
                }
            }
        }
    }

    fn output(&self, output: Option<u8>, column: usize, visit: &mut Visitor<'_>) {
        if let Some(to) = output {
            let to = row(visit, self.dst, usize::from(to));
            write(visit, to, self.start + column * LINE, LINE, self.stream);
        }
    }

    /// A load from source `i` of the program.
    fn source(&self, i: usize, column: usize, visit: &mut Visitor<'_>) {
        source(visit, self.src, usize::from(self.sources[i]), self.start + column * LINE, LINE);
    }

    fn term(&self, term: &Term, column: usize, visit: &mut Visitor<'_>) {
        if let Factor::Table(number) = term.by {
            self.coefficients(number, 1, visit);
        }
        self.read(term.block, column, term.rows, visit);
    }

    /// The three skews of four rows in the narrowest layers.
    fn near(&self, skews: usize, g: usize, visit: &mut Visitor<'_>) {
        self.coefficients(skews + 3 + g, 1, visit);
        self.coefficients(skews + 7 + 2 * g, 2, visit);
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
        (0..rows).for_each(|row| self.row(block, column, row, false, visit));
    }

    fn write(&self, block: usize, column: usize, rows: usize, visit: &mut Visitor<'_>) {
        (0..rows).for_each(|row| self.row(block, column, row, true, visit));
    }

    /// One row of a block's column.
    fn row(&self, block: usize, column: usize, row: usize, store: bool, visit: &mut Visitor<'_>) {
        let at = ((block * self.columns + column) * BLOCK + row) * LINE;
        match store {
            false => read(visit, self.blocks, at, LINE),
            true => write(visit, self.blocks, at, LINE, false),
        }
    }

    /// One row between the halves of a forward pass.
    fn staged(&self, column: usize, row: usize, store: bool, visit: &mut Visitor<'_>) {
        let at = (column * BLOCK + row) * LINE;
        match store {
            false => read(visit, self.stage, at, LINE),
            true => write(visit, self.stage, at, LINE, false),
        }
    }
}

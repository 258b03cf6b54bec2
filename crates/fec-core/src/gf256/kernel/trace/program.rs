//! The runner of programs, and the passes of kernels with and without halves.

use super::{Access, AccessKind, Frame, Visitor, read, row, value, write};
use crate::gf256::PRODUCTS;
use crate::gf256::kernel::aligned::LINE;
use crate::gf256::kernel::backend::Backend;
use crate::gf256::kernel::program::{
    BLOCK, FEW, Factor, Input, Merge, Outputs, Pass, Program, Tap, Term, tail_layers,
};
use crate::gf256::kernel::runner::Step;
use crate::gf256::kernel::scratch;
use crate::gf256::kernel::tuning::{MAX_COLUMNS, Store};
use std::ops::Range;

/// Lines that a kernel in halves sums at once; others take all of a block.
const SUMS: usize = 4;

/// The accesses of a program with these packed tables, on the blocks that this thread keeps.
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
    // The thread's own, as long as it needs no more room.
    let stage = scratch::with_columns((program.blocks + 1) * columns, |columns| columns.as_ptr().addr());
    let blocks = stage + columns * BLOCK * LINE;
    let here = 0_u64;
    let stack = Stack { top: std::ptr::from_ref(&here).addr() };
    let store = backend.tuning.store_of(row_len * dst.len());
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
            stream: store == Store::Stream,
            prefetch_outputs: store == Store::Prefetch,
            stack,
        };
        (0..used).for_each(|column| stack.place(column, visit));
        for pass in &program.passes {
            stack.runner(visit);
            CONSTANTS.enter(visit);
            fields(pass, visit);
            tile.pass(pass, visit);
        }
    }
}

/// The fields of a pass.
fn fields(pass: &Pass, visit: &mut Visitor<'_>) {
    match pass {
        Pass::Inverse { first, to, skews, origin, merge } => {
            [first, to, skews].into_iter().for_each(|number| value(visit, number));
            value(visit, origin);
            value(visit, merge);
        }
        Pass::Sum { to, from, terms } => {
            [to, from].into_iter().for_each(|number| value(visit, number));
            value(visit, terms);
        }
        Pass::Tail { to, residue, first, known, skews } => {
            [to, first, known, skews].into_iter().for_each(|number| value(visit, number));
            value(visit, residue);
        }
        Pass::Forward { input, skews, tap, out } => {
            value(visit, input);
            value(visit, skews);
            value(visit, tap);
            value(visit, out);
        }
    }
}

/// A line of a block.
fn line(visit: &mut Visitor<'_>, address: usize, store: bool) {
    visit(Access { address, len: LINE, kind: if store { AccessKind::Write } else { AccessKind::Read } });
}

/// The stack that a runner and its passes would use in place of this one. Where it stands decides what it competes with.
#[derive(Clone, Copy)]
struct Stack {
    /// Where the runner's begins, downwards.
    top: usize,
}

/// Bytes of the places of a runner, which it has first, and of what it keeps besides.
const PLACES: usize = MAX_COLUMNS * size_of::<Step>();
const RUNNER: usize = 256;

/// Bytes that a pass in halves uses for itself, downwards from the runner's: bounds, pointers, and room for what calls it.
const PASS: Range<usize> = 0..320;

/// What such a pass has no register for while it goes over a column.
const SPILLED: Range<usize> = PASS.end..448;

/// Those of the function for the half with four rows next to each other.
const NEAR: Range<usize> = SPILLED.end..640;

/// A column of a pass in kernels without halves: registers do not hold sixteen rows with their products.
const COLUMN: Range<usize> = 0..BLOCK * LINE + 256;

/// A group of rows of a sum in halves, and each term of it: four lines.
const SUM: Range<usize> = 0..384;

/// A column of a tail in halves, before and after its layers: sixteen rows, as much for what becomes of them, and bounds.
const TAIL: Range<usize> = 0..2 * BLOCK * LINE + 192;

/// The line with what the compiler takes for constants: masks, and where the code of each kind of pass begins.
static CONSTANTS: Frame<LINE> = Frame::new();

impl Stack {
    fn touch(address: usize, len: usize, visit: &mut Visitor<'_>) {
        visit(Access { address, len, kind: AccessKind::Stack });
    }

    /// What the runner keeps, and the slices of rows, which its callers have.
    fn runner(&self, visit: &mut Visitor<'_>) {
        Stack::touch(self.top - PLACES - RUNNER, RUNNER, visit);
        self.sets(visit);
    }

    fn sets(&self, visit: &mut Visitor<'_>) {
        Stack::touch(self.top, 2 * size_of::<&[&[u8]]>(), visit);
    }

    fn place(&self, column: usize, visit: &mut Visitor<'_>) {
        let step = size_of::<Step>();
        Stack::touch(self.top - PLACES + column * step, step, visit);
    }

    /// Bytes of the stack of a pass, which is below the runner's.
    fn pass(&self, bytes: Range<usize>, visit: &mut Visitor<'_>) {
        Stack::touch(self.top - PLACES - RUNNER - bytes.end, bytes.len(), visit);
    }
}

/// Where a pass works, as in the runner.
struct Tile<'a> {
    /// Whether passes go over the tile twice.
    halves: bool,
    table_len: usize,
    tables: &'a [u8],
    sources: &'a [u8],
    /// Addresses of blocks, and of where rows stand between the halves of a forward pass.
    blocks: usize,
    stage: usize,
    columns: usize,
    start: usize,
    used: usize,
    src: &'a [&'a [u8]],
    dst: &'a [&'a [u8]],
    /// Whether outputs are stored past the caches.
    stream: bool,
    /// Whether lines of outputs are prefetched too.
    prefetch_outputs: bool,
    stack: Stack,
}

impl Tile<'_> {
    fn pass(&self, pass: &Pass, visit: &mut Visitor<'_>) {
        match pass {
            Pass::Inverse { first, to, skews, origin, merge } if self.halves => {
                self.run(visit);
                for g in 0..4 {
                    let sources = first + 4 * g..first + 4 * g + 4;
                    let rows: Vec<&[u8]> = sources.map(|i| self.source_row(i, visit)).collect();
                    self.near(*skews, g, *origin && g == 0, visit);
                    for column in 0..self.used {
                        rows.iter().for_each(|row| read(visit, row, self.start + column * LINE, LINE));
                        (4 * g..4 * g + 4).for_each(|row| self.row(*to, column, row, true, visit));
                    }
                    self.ahead(visit);
                }
                let zeros = if *origin { 2 } else { 0 };
                self.coefficients(skews + zeros, 3 - zeros, visit);
                merge.iter().filter_map(|merge| merge.by).for_each(|by| self.coefficients(by, 1, visit));
                for column in 0..self.used {
                    self.stack.pass(SPILLED, visit);
                    self.inverse_rest(*to, merge.as_ref(), column, visit);
                }
            }
            Pass::Inverse { first, to, skews, merge, .. } => {
                for column in 0..self.used {
                    self.enter(column, visit);
                    (*first..first + BLOCK).for_each(|i| self.source(i, column, visit));
                    self.skews(*skews, visit);
                    merge.iter().filter_map(|merge| merge.by).for_each(|by| self.coefficients(by, 1, visit));
                    self.inverse_rest(*to, merge.as_ref(), column, visit);
                }
            }
            Pass::Sum { to, from, terms } => {
                let rows = match terms.iter().map(|term| term.rows).max() {
                    Some(rows) if to == from => rows,
                    _ => BLOCK,
                };
                let sums = if self.halves { SUMS } else { BLOCK };
                for column in 0..self.used {
                    for start in (0..rows).step_by(sums) {
                        let group = |rows: usize| start..rows.min(start + sums);
                        if self.halves {
                            self.stack.pass(SUM, visit);
                        } else {
                            self.enter(column, visit);
                        }
                        group(rows).for_each(|row| self.row(*from, column, row, false, visit));
                        for term in terms {
                            if self.halves {
                                self.stack.pass(SUM, visit);
                            }
                            value(visit, term);
                            if let Factor::Table(number) = term.by {
                                self.coefficients(number, 1, visit);
                            }
                            group(term.rows).for_each(|row| self.row(term.block, column, row, false, visit));
                        }
                        group(rows).for_each(|row| self.row(*to, column, row, true, visit));
                    }
                }
            }
            Pass::Tail { to, residue, first, known, skews } => {
                for column in 0..self.used {
                    if self.halves {
                        self.stack.place(column, visit);
                        self.stack.pass(TAIL, visit);
                    } else {
                        self.enter(column, visit);
                    }
                    if let Some(residue) = residue {
                        self.read(*residue, column, BLOCK, visit);
                    }
                    let mut at = *skews;
                    for (width, start) in tail_layers(*known) {
                        self.coefficients(at, if start + width < *known { width } else { 1 }, visit);
                        at += width;
                    }
                    (*first..first + known).for_each(|i| self.source(i, column, visit));
                    if self.halves {
                        self.stack.pass(TAIL, visit);
                    }
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
                self.stack.pass(PASS, visit);
                // The skew of the second half, for the outputs behind the first half.
                self.coefficients(*skews, if out.computed > BLOCK / 2 { 3 } else { 2 }, visit);
                if let Some((_, Factor::Table(number))) = input.plus {
                    self.coefficients(number, 1, visit);
                }
                for column in 0..self.used {
                    self.stack.pass(SPILLED, visit);
                    if input.few.is_some() {
                        (0..FEW).for_each(|row| self.staged(column, row, false, visit));
                    }
                    // The first rows were summed with the few, and are not read again.
                    let first = if input.few.is_some() { FEW } else { 0 };
                    (first..BLOCK).for_each(|row| self.row(input.from, column, row, false, visit));
                    if let Some((block, _)) = input.plus {
                        self.read(block, column, BLOCK, visit);
                    }
                    self.keep(input, column, visit);
                    (0..out.computed).for_each(|row| self.staged(column, row, true, visit));
                }
                self.run(visit);
                for (g, rows) in out.rows[..out.computed].chunks(4).enumerate() {
                    self.four_outputs(tap.as_ref(), rows, *skews, g, visit);
                    if self.prefetch_outputs {
                        self.ahead(visit);
                        rows.iter().flatten().for_each(|&to| _ = row(visit, self.dst, usize::from(to)));
                    }
                }
                if tap.is_some() {
                    self.ahead(visit);
                }
            }
            Pass::Forward { input, skews, tap, out } => {
                for column in 0..self.used {
                    self.enter(column, visit);
                    self.input(input, column, visit);
                    self.skews(*skews, visit);
                    self.outputs(tap.as_ref(), out, column, visit);
                }
            }
        }
    }

    /// What every column touches besides rows.
    fn enter(&self, column: usize, visit: &mut Visitor<'_>) {
        self.stack.place(column, visit);
        self.stack.pass(COLUMN, visit);
    }

    /// What a run of columns in halves touches besides rows: its first and last place.
    fn run(&self, visit: &mut Visitor<'_>) {
        for column in [0, self.used - 1] {
            self.stack.place(column, visit);
        }
    }

    /// The lines to be prefetched for a run of columns are looked up, whether there are any or not.
    fn ahead(&self, visit: &mut Visitor<'_>) {
        (0..self.used).for_each(|column| self.stack.place(column, visit));
    }

    /// The layer above an inverse pass. In halves, rows are stored one after the other, as soon as they are done.
    fn inverse_rest(&self, to: usize, merge: Option<&Merge>, column: usize, visit: &mut Visitor<'_>) {
        for row in 0..BLOCK {
            if self.halves {
                self.row(to, column, row, false, visit);
            }
            if let Some(Merge { low, by, more }) = merge {
                self.row(*low, column, row, false, visit);
                if by.is_some() || more.is_some() {
                    self.row(*low, column, row, true, visit);
                }
                more.iter().flatten().for_each(|&block| self.row(block, column, row, false, visit));
            }
            if self.halves {
                self.row(to, column, row, true, visit);
            }
        }
        if !self.halves {
            self.write(to, column, BLOCK, visit);
        }
    }

    fn input(&self, input: &Input, column: usize, visit: &mut Visitor<'_>) {
        self.read(input.from, column, BLOCK, visit);
        input.few.iter().for_each(|term| self.term(term, column, visit));
        if let Some((block, by)) = input.plus {
            self.term(&Term { block, by, rows: BLOCK }, column, visit);
        }
        self.keep(input, column, visit);
    }

    fn keep(&self, input: &Input, column: usize, visit: &mut Visitor<'_>) {
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
    fn four_outputs(
        &self,
        tap: Option<&Tap>,
        rows: &[Option<u8>],
        skews: usize,
        g: usize,
        visit: &mut Visitor<'_>,
    ) {
        let from = tap.map(|tap| (self.source_row(tap.source, visit), tap.to));
        self.near(skews, g, false, visit);
        let run = rows.windows(2).all(|pair| matches!(pair, [Some(a), Some(b)] if b.wrapping_sub(*a) == 1));
        let staged = 4 * g..4 * g + 4;
        if run && tap.is_none() {
            let to: Vec<&[u8]> =
                rows.iter().flatten().map(|&to| row(visit, self.dst, usize::from(to))).collect();
            for column in 0..self.used {
                staged.clone().for_each(|row| self.staged(column, row, false, visit));
                to.iter().for_each(|to| self.put(to, column, visit));
            }
            return;
        }
        for column in 0..self.used {
            staged.clone().for_each(|row| self.staged(column, row, false, visit));
            if let Some((source, to)) = from {
                if g == 0 {
                    read(visit, source, self.start + column * LINE, LINE);
                    self.row(to, column, 0, true, visit);
                }
                self.row(to, column, 0, false, visit);
            }
            staged.clone().for_each(|row| self.staged(column, row, true, visit));
        }
        for (staged, output) in staged.zip(rows) {
            if let Some(to) = *output {
                let to = row(visit, self.dst, usize::from(to));
                for column in 0..self.used {
                    self.staged(column, staged, false, visit);
                    self.put(to, column, visit);
                }
            }
        }
    }

    fn output(&self, output: Option<u8>, column: usize, visit: &mut Visitor<'_>) {
        if let Some(to) = output {
            let to = row(visit, self.dst, usize::from(to));
            self.put(to, column, visit);
        }
    }

    /// A line of an output.
    fn put(&self, to: &[u8], column: usize, visit: &mut Visitor<'_>) {
        write(visit, to, self.start + column * LINE, LINE, self.stream);
    }

    /// Source `i` of the program.
    fn source_row(&self, i: usize, visit: &mut Visitor<'_>) -> &[u8] {
        read(visit, self.sources, i, 1);
        row(visit, self.src, usize::from(self.sources[i]))
    }

    /// A load from it.
    fn source(&self, i: usize, column: usize, visit: &mut Visitor<'_>) {
        let row = self.source_row(i, visit);
        read(visit, row, self.start + column * LINE, LINE);
    }

    fn term(&self, term: &Term, column: usize, visit: &mut Visitor<'_>) {
        if let Factor::Table(number) = term.by {
            self.coefficients(number, 1, visit);
        }
        self.read(term.block, column, term.rows, visit);
    }

    /// The call for the half with four rows next to each other: its stack, the slices, and three skews, of which two
    /// are 0 at the origin.
    fn near(&self, skews: usize, g: usize, origin: bool, visit: &mut Visitor<'_>) {
        [PASS, NEAR].into_iter().for_each(|bytes| self.stack.pass(bytes, visit));
        self.stack.sets(visit);
        CONSTANTS.enter(visit);
        if !origin {
            self.coefficients(skews + 3 + g, 1, visit);
            self.coefficients(skews + 7 + 2 * g, 1, visit);
        }
        self.coefficients(skews + 8 + 2 * g, 1, visit);
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
        line(visit, self.blocks + at, store);
    }

    /// One row between the halves of a forward pass.
    fn staged(&self, column: usize, row: usize, store: bool, visit: &mut Visitor<'_>) {
        let at = (column * BLOCK + row) * LINE;
        line(visit, self.stage + at, store);
    }
}

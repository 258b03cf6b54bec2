//! Matrices and programs over the rows of a set: the loops of a tracing kernel, and the accesses that no load of a line
//! shows.

use super::access::{Access, AccessKind, Frame, Visitor};
use super::kernels;
use super::recorder::{StandIns, recorded};
use crate::gf256::kernel::aligned::{AlignedBytes, LINE};
use crate::gf256::kernel::backend::Backend;
use crate::gf256::kernel::contract::Matrix;
use crate::gf256::kernel::isa::scalar::CHUNK;
use crate::gf256::kernel::loops::runner::Step;
use crate::gf256::kernel::loops::{matrix, runner};
use crate::gf256::kernel::program::{BLOCK, Pass, Program};
use crate::gf256::kernel::scratch;
use crate::gf256::products_of;

/// Bytes of the stack that a group of outputs of a matrix uses.
const GROUP_FRAME: usize = 512;

/// The accesses of a matrix with these packed tables.
pub(crate) fn matrix(
    backend: Backend,
    tables: &AlignedBytes,
    src: &[&[u8]],
    dst: &[&[u8]],
    visit: &mut Visitor<'_>,
) {
    let Some(columns) = kernels::of(backend).columns else { return scalar_matrix(tables, src, dst, visit) };
    let mut tuning = backend.tuning;
    tuning.sums = backend.sums();
    let matrix = Matrix { k: src.len(), wanted: dst.len(), tables, tuning };
    let table_len = backend.kernel.table_len;
    let frame = Frame::<GROUP_FRAME>::new();
    let mut standing = StandIns::new(dst.len(), src[0].len());
    let rows = standing.rows(src, dst);
    matrix::tiles(matrix, &mut [(src, &mut standing.all())], |group, src, dst, tile, moves| {
        frame.enter(visit);
        let tables = &tables[group.start * matrix.k * table_len..group.end * matrix.k * table_len];
        recorded(&rows, None, visit, || columns(tables, src, dst, tile, moves));
    });
}

/// The accesses of the portable kernel's matrix, a line of each row at a time: that kernel is a loop over bytes, whose
/// loads tell nothing. Its lookups in a row of products depend on the data; all of the row is told.
fn scalar_matrix(tables: &[u8], src: &[&[u8]], dst: &[&[u8]], visit: &mut Visitor<'_>) {
    let row_len = src[0].len();
    for start in (0..row_len).step_by(CHUNK) {
        let lines = || (start..row_len.min(start + CHUNK)).step_by(LINE);
        for (coefficients, out) in tables.chunks_exact(src.len()).zip(dst) {
            lines().for_each(|at| visit(Access::of(&out[at..at + LINE], AccessKind::Write)));
            for (row, &coefficient) in src.iter().zip(coefficients) {
                visit(Access::of(row, AccessKind::Read));
                for at in lines() {
                    visit(Access::of(&row[at..at + LINE], AccessKind::Read));
                    visit(Access::of(products_of(coefficient), AccessKind::Read));
                    visit(Access::of(&out[at..at + LINE], AccessKind::Write));
                }
            }
        }
    }
}

/// The accesses of a program with these packed tables, on the blocks that this thread keeps.
pub(crate) fn program(
    backend: Backend,
    program: &Program,
    tables: &[u8],
    src: &[&[u8]],
    dst: &[&[u8]],
    visit: &mut Visitor<'_>,
) {
    let kernel = kernels::of(backend);
    let columns = backend.tuning.columns_of(program.blocks, src[0].len() / LINE, kernel.two_layers);
    let mut standing = StandIns::new(dst.len(), src[0].len());
    let rows = standing.rows(src, dst);
    let sets = &mut [(src, &mut standing.all()[..])];
    scratch::with_columns(columns * (program.blocks + 1), |scratch| {
        let (stage, blocks) = scratch.split_at_mut(columns);
        runner::tiles(program, columns, backend.tuning, sets, |sets, tile| {
            let stack = Stack { places: tile.places };
            for pass in &program.passes {
                stack.runner(visit);
                fields(pass, &program.sources, src, dst, visit);
                let frame = stack.pass(pass, kernel.two_layers);
                recorded(&rows, Some(frame), visit, || {
                    (kernel.pass)(pass, &program.sources, tables, blocks, stage, sets, tile);
                });
            }
        });
    });
}

/// The fields of a pass, the sources that it names, its terms, which are a list of their own, and the list entries of
/// its rows.
fn fields(pass: &Pass, sources: &[u8], src: &[&[u8]], dst: &[&[u8]], visit: &mut Visitor<'_>) {
    visit(Access::of(pass, AccessKind::Read));
    let mut from = |range: std::ops::Range<usize>| {
        visit(Access::of(&sources[range.clone()], AccessKind::Read));
        sources[range].iter().for_each(|row| visit(Access::of(&src[usize::from(*row)], AccessKind::Read)));
    };
    match pass {
        Pass::Inverse { first, .. } => from(*first..first + BLOCK),
        Pass::Tail { first, known, .. } => from(*first..first + known),
        Pass::Forward { tap, out, .. } => {
            tap.iter().for_each(|tap| from(tap.source..tap.source + 1));
            let rows = out.rows.iter().flatten();
            rows.for_each(|row| visit(Access::of(&dst[usize::from(*row)], AccessKind::Read)));
        }
        Pass::Sum { terms, .. } => {
            terms.iter().for_each(|term| visit(Access::of(term, AccessKind::Read)));
        }
    }
}

/// The stack of a runner and its passes, below the places of the tile, as if it stood here. Its address decides which
/// lines it competes with.
struct Stack<'a> {
    places: &'a [Step],
}

/// Bytes that a runner keeps besides the places.
const RUNNER: usize = 256;

/// Bytes of a pass that goes over its tile twice: bounds, pointers, and values that find no register. A forward pass
/// calls a function for each quarter of its outputs.
const INVERSE: usize = 320;
const FORWARD: usize = 448;

/// Bytes of a pass for all four layers: registers do not hold sixteen rows with their products.
const FOUR_LAYERS: usize = BLOCK * LINE + 256;

/// Bytes of a sum, where registers hold a few rows.
const SUM: usize = 384;

/// Bytes of a tail there: sixteen rows, as much again for their results, and bounds.
const TAIL: usize = 2 * BLOCK * LINE + 192;

/// The line with the compiler's constants: masks, and the addresses of the code for each kind of pass.
static CONSTANTS: Frame<LINE> = Frame::new();

impl Stack<'_> {
    /// A stretch that begins `above` bytes below the places.
    fn below(&self, above: usize, len: usize) -> Access {
        let address = self.places.as_ptr().addr() - above - len;
        Access { address, len, kind: AccessKind::Stack }
    }

    /// The data that the runner keeps and reads for a pass.
    fn runner(&self, visit: &mut Visitor<'_>) {
        visit(self.below(0, RUNNER));
        visit(Access::of(self.places, AccessKind::Stack));
        CONSTANTS.enter(visit);
    }

    /// The stack that a pass uses all the time.
    fn pass(&self, pass: &Pass, two_layers: bool) -> Access {
        let len = match pass {
            _ if !two_layers => FOUR_LAYERS,
            Pass::Sum { .. } => SUM,
            Pass::Tail { .. } => TAIL,
            Pass::Inverse { .. } => INVERSE,
            Pass::Forward { .. } => FORWARD,
        };
        self.below(RUNNER, len)
    }
}

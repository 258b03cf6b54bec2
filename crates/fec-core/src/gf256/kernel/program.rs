//! Programs: passes over blocks of sixteen rows, the form of a fast transform that kernels run.
//!
//! A matrix reads every source for every output. A program first turns the sources into a few blocks of
//! intermediate rows, which stay in the nearest caches, and makes the outputs from those. Blocks have sixteen
//! rows because four layers of butterflies on sixteen vectors fit the registers of AVX-512: a block is loaded
//! once and stored once for four layers.
//!
//! A butterfly takes two rows x and y and a skew s: forwards x += s·y, then y += x; inversely y += x, then
//! x += s·y. The fifteen skews of a block stand layer by layer, from the widest to the narrowest: one, two,
//! four and eight of them.
//!
//! A program knows nothing of points or codes; it sees rows, blocks and coefficients.

use super::aligned::LINE;

/// Rows of a block.
pub(crate) const BLOCK: usize = 16;

/// The sixteen rows of a block in one column.
pub(super) type Column = [[u8; LINE]; BLOCK];

/// Rows that may be added to the input of a forward pass on the way: those that its layers combine first.
pub(crate) const FEW: usize = 4;

/// The input of a forward pass: block `from` + `plus` (a block and a factor) + `few` (a block, a factor, and how many
/// of its rows are added, at most [`FEW`]). With `keep`, the second of its two blocks becomes that sum + the first
/// block, which is the one of `plus`, if there is one.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sum {
    pub(crate) from: usize,
    pub(crate) plus: Option<(usize, u8)>,
    pub(crate) few: Option<(usize, u8, usize)>,
    pub(crate) keep: Option<[usize; 2]>,
}

/// The skews of a block's four layers.
pub(crate) type Skews = [u8; BLOCK - 1];

/// A coefficient of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Factor {
    /// No multiplication.
    One,
    /// The table with this number.
    Table(usize),
}

/// A block to be multiplied and added.
#[derive(Debug, Clone, Copy)]
pub(super) struct Term {
    /// The block.
    pub(super) block: usize,
    /// The factor.
    pub(super) by: Factor,
    /// Number of rows to add, from the first.
    pub(super) rows: usize,
}

/// The layer above an inverse pass. Block `to` is the upper half of a node, `low` the lower one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Merge {
    /// The lower block: `to` += `low`, then `low` += factor · `to`, where `by` is the table of the factor, if there is
    /// one.
    pub(super) low: usize,
    pub(super) by: Option<usize>,
    /// Blocks that are added to `low` and to `to` after that.
    pub(super) more: Option<[usize; 2]>,
}

/// A source row that completes a forward pass.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tap {
    /// The source row, which output 0 must equal. The difference is added to all outputs.
    pub(super) source: usize,
    /// The block whose first row gets the difference.
    pub(super) to: usize,
}

/// The input of a forward pass: a sum of blocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Input {
    pub(super) from: usize,
    pub(super) plus: Option<(usize, Factor)>,
    /// A term of at most [`FEW`] rows.
    pub(super) few: Option<Term>,
    /// Two blocks: the second ← the sum + the first, which is the one of `plus`, if there is one.
    pub(super) keep: Option<[usize; 2]>,
}

/// The destinations of the outputs of a forward pass.
#[derive(Debug)]
pub(super) struct Outputs {
    /// The destination row of each output, if it is wanted.
    pub(super) rows: [Option<u8>; BLOCK],
    /// Outputs that are computed, from the first: 4, 8 or 16.
    pub(super) computed: usize,
    /// The destination row of output 0, if all computed outputs go unchanged (without a tap) to rows that follow each
    /// other.
    pub(super) run: Option<u8>,
    /// The same for the outputs 0 to 3, 4 to 7, and so on: the row of the first of four.
    pub(super) runs_of_four: [Option<u8>; BLOCK / 4],
}

impl Outputs {
    /// The outputs of these pairs of an output below 16 and a destination row.
    fn new(rows: impl Iterator<Item = (u8, u8)>, tapped: bool) -> Outputs {
        let mut out =
            Outputs { rows: [None; BLOCK], computed: 4, run: None, runs_of_four: [None; BLOCK / 4] };
        for (output, row) in rows {
            out.rows[usize::from(output)] = Some(row);
            out.computed = out.computed.max((usize::from(output) + 1).next_power_of_two());
        }
        if !tapped {
            out.run = run_of(&out.rows[..out.computed]);
            out.runs_of_four = std::array::from_fn(|g| run_of(&out.rows[4 * g..][..4]));
        }
        out
    }
}

/// The first of some rows, if all are wanted and follow each other.
fn run_of(rows: &[Option<u8>]) -> Option<u8> {
    let first = rows[0]?;
    let mut rows = rows.iter().zip(usize::from(first)..);
    rows.all(|(row, number)| row.map(usize::from) == Some(number)).then_some(first)
}

/// A pass over all columns of a tile. Fields are numbers of blocks unless they say otherwise.
#[derive(Debug)]
pub(super) enum Pass {
    /// `to` ← inverse butterflies of sixteen source rows from `first`, and the layer above.
    Inverse { first: usize, to: usize, skews: usize, origin: bool, merge: Option<Merge> },
    /// `to` ← `from` + the terms.
    Sum { to: usize, from: usize, terms: Vec<Term> },
    /// `to` ← g with `known` rows and zeros for the others. The block `residue` + g then has the first `known` of its
    /// outputs equal to the source rows from `first`.
    Tail { to: usize, residue: Option<usize>, first: usize, known: usize, skews: usize },
    /// Outputs ← forward butterflies of the input.
    Forward { input: Input, skews: usize, tap: Option<Tap>, out: Outputs },
}

/// Operations for each column of bytes.
///
/// The count is of executed operations: a multiplication by 0 or 1 counts only if the kernel executes it. Copies are
/// free.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Operations {
    /// Multiplications by a coefficient.
    pub multiplications: usize,
    /// Additions: exclusive ors of two bytes.
    pub additions: usize,
}

impl Operations {
    /// The operations of a matrix from `known` rows to `wanted` ones.
    pub(crate) fn of_matrix(known: usize, wanted: usize) -> Operations {
        Operations { multiplications: known * wanted, additions: known * wanted }
    }
}

/// The four layers of a tail with `known` known rows, 1 to 15: the width of each layer, and the start within the block
/// of its node, which is twice as wide. The first half of the node has all known rows that are left, or is known as a
/// whole.
///
/// The skews of a tail are, for each layer, the node's skew and then those of the inverse butterflies of its first
/// half, the widest first: 8, 4, 2 and 1 of them.
pub(crate) fn tail_layers(known: usize) -> [(usize, usize); 4] {
    [8, 4, 2, 1].map(|width| (width, (known - 1) / (2 * width) * (2 * width)))
}

/// A program under construction, and its counts.
#[derive(Debug, Default)]
pub(crate) struct Program {
    pub(super) passes: Vec<Pass>,
    /// The row that holds each source.
    pub(super) sources: Vec<u8>,
    /// The coefficients behind [`Factor::Table`] and the numbers of skews.
    pub(super) coefficients: Vec<u8>,
    /// Blocks that the passes name.
    pub(super) blocks: usize,
    operations: Operations,
}

impl Program {
    /// A program without passes, whose source i is row `sources[i]`.
    pub(crate) fn new(sources: Vec<u8>) -> Program {
        Program { sources, ..Program::default() }
    }

    /// Operations for each column of bytes.
    pub(crate) fn operations(&self) -> Operations {
        self.operations
    }

    /// Block `to` ← inverse butterflies of the source rows from `first`.
    ///
    /// `merge`, a block `low` and a factor, adds the layer above, in which `low` is the lower block: `to` += `low`,
    /// `low` += factor · `to`. The two blocks `more` are added to `low` and to `to` after that.
    pub(crate) fn inverse(
        &mut self,
        first: usize,
        to: usize,
        skews: Skews,
        merge: Option<(usize, u8)>,
        more: Option<[usize; 2]>,
    ) {
        // The first butterfly of every layer of the block at the origin has skew 0.
        let origin = skews[0] == 0 && skews[1] == 0 && skews[3] == 0 && skews[7] == 0;
        let multiplications = if origin { 17 } else { 32 };
        self.count(multiplications, multiplications + 32);
        let merge = merge.map(|(low, by)| {
            self.count(0, BLOCK + if more.is_some() { 2 * BLOCK } else { 0 });
            Merge { low, by: self.multiplier(by, BLOCK), more }
        });
        let skews = self.table(&skews);
        self.blocks = self.blocks.max(to + 1);
        self.passes.push(Pass::Inverse { first, to, skews, origin, merge });
    }

    /// Block `to` ← `from` + each of the terms: a block, a factor, and how many of its rows are added. Blocks may
    /// coincide.
    pub(crate) fn sum(&mut self, to: usize, from: usize, terms: &[(usize, u8, usize)]) {
        let terms: Vec<Term> =
            terms.iter().filter_map(|&(block, by, rows)| self.term(block, by, rows)).collect();
        if to != from || !terms.is_empty() {
            self.blocks = self.blocks.max(to + 1);
            self.passes.push(Pass::Sum { to, from, terms });
        }
    }

    /// Block `to` ← `known` rows, from 1 to 15, and zeros. The forward butterflies of `to` plus `residue`, if given,
    /// then begin with the source rows from `first`.
    ///
    /// [`tail_layers`] describes the skews.
    pub(crate) fn tail(
        &mut self,
        to: usize,
        residue: Option<usize>,
        first: usize,
        known: usize,
        skews: Skews,
    ) {
        for (width, start) in tail_layers(known) {
            self.count(width, width);
            if start + width < known {
                let layers = width.trailing_zeros() as usize;
                self.count(width / 2 * layers, width * layers);
                self.count(0, 2 * width);
                self.count(known - start - width, known - start - width);
            }
        }
        self.count(0, 1);
        let skews = self.table(&skews);
        self.blocks = self.blocks.max(to + 1);
        self.passes.push(Pass::Tail { to, residue, first, known, skews });
    }

    /// The destinations `rows` (pairs of an output below 16 and a destination row) ← forward butterflies of `sum`.
    /// `tap` is a source row, which output 0 must equal, and a block whose first row gets the difference, which is also
    /// added to all outputs.
    pub(crate) fn forward(
        &mut self,
        sum: Sum,
        skews: Skews,
        tap: Option<(usize, usize)>,
        rows: impl Iterator<Item = (u8, u8)>,
    ) {
        let out = Outputs::new(rows, tap.is_some());
        let computed = out.computed;
        for width in [8, 4, 2, 1] {
            let butterflies = width * computed.div_ceil(2 * width);
            self.count(butterflies, butterflies * if computed > width { 2 } else { 1 });
        }
        self.count(0, if sum.keep.is_some() { BLOCK } else { 0 });
        self.count(0, if tap.is_some() { computed } else { 0 });
        let plus = sum.plus.and_then(|(block, by)| Some((block, self.factor(by, BLOCK)?)));
        let few = sum.few.and_then(|(block, by, rows)| self.term(block, by, rows));
        let tap = tap.map(|(source, to)| Tap { source, to });
        let skews = self.table(&skews);
        let named = [sum.keep.map(|[_, keep]| keep), tap.map(|tap| tap.to)];
        self.blocks = named.into_iter().flatten().fold(self.blocks, |blocks, block| blocks.max(block + 1));
        let input = Input { from: sum.from, plus, few, keep: sum.keep };
        self.passes.push(Pass::Forward { input, skews, tap, out });
    }

    fn count(&mut self, multiplications: usize, additions: usize) {
        self.operations.multiplications += multiplications;
        self.operations.additions += additions;
    }

    /// A term, counted; `None` if its factor is 0.
    fn term(&mut self, block: usize, by: u8, rows: usize) -> Option<Term> {
        self.factor(by, rows).map(|by| Term { block, by, rows })
    }

    /// A factor of `rows` rows that are added, counted; `None` if it is 0.
    fn factor(&mut self, by: u8, rows: usize) -> Option<Factor> {
        match by {
            0 => None,
            1 => {
                self.count(0, rows);
                Some(Factor::One)
            }
            _ => self.multiplier(by, rows).map(Factor::Table),
        }
    }

    /// The table of a factor that is not 1, of `rows` rows that are added, counted; `None` if it is 0.
    fn multiplier(&mut self, by: u8, rows: usize) -> Option<usize> {
        if by == 0 {
            return None;
        }
        self.count(rows, rows);
        Some(self.table(&[by]))
    }

    fn table(&mut self, coefficients: &[u8]) -> usize {
        let at = self.coefficients.len();
        self.coefficients.extend_from_slice(coefficients);
        at
    }
}

//! The fast way: a truncated additive Fourier transform.
//!
//! If the known points are the first k, layers of butterflies turn the values into coefficients in a suitable basis
//! ([`basis`]). The same layers backwards give the values at other points (Gao and Mateer, Additive Fast Fourier
//! Transforms over Finite Fields, 2010): O(n log n) multiplications instead of k · m. Both directions are cut short: k
//! need not be a power of two, and only blocks of sixteen points with wanted ones among them are evaluated.
//!
//! Any k known points serve that are the first k after an exclusive or with one constant, since a shift of its argument
//! keeps a polynomial's degree. Points after that shift are called positions here.
//!
//! A node has 2h points, from `offset` on. There f = low + s · high: low and high have h coefficients each, and s is
//! the skew on the first h points and the skew plus one on the others. The planning needs only this:
//!
//! - Inverse, all points of the node known: by the butterflies of both halves, then of the node.
//! - Inverse, only the first r points known: f is `residue` + g, with r unknown coefficients of g. If r ≤ h, all of
//!   them stand in the first half, whose residue is low + s · high of the node's residue. If r > h, the coefficients of
//!   f in the first half follow. With high added, they are the residue of the second half.
//! - Forward: low + s · high on the first half; the second half is the first plus high.
//!
//! This module only plans. Its result is a [`Program`] of passes over blocks of sixteen rows. The block within which
//! the known points end is a pass of its own, which follows the same recursion down to one point.

mod basis;

use self::basis::{block_skews, skew, tail_skews};
use super::Code;
use crate::gf256::kernel::{BLOCK, FEW, Program, Sum};
use crate::gf256::mul;

/// Points of the field, and of the outermost node.
const POINTS: usize = 256;

/// The constant that maps positions 0..k to the points `known`, in any order, by exclusive or, if there is one.
pub(super) fn shift(known: &[u8]) -> Option<u8> {
    let mut is_known = [false; POINTS];
    known.iter().for_each(|&point| is_known[usize::from(point)] = true);
    // 0 is tried first, so that originals keep their places.
    let mut candidates: Vec<u8> = known.to_vec();
    candidates.sort_unstable();
    candidates.into_iter().find(|&shift| (0..known.len()).all(|i| is_known[i ^ usize::from(shift)]))
}

/// k intact shards, in ascending order, from which [`Engine::Fft`](super::Engine::Fft) can compute all others; `None`
/// if there are no such k.
///
/// If all originals are intact, the result is the originals. O(256 · k) at worst.
pub fn transformable(code: Code, is_intact: impl Fn(usize) -> bool) -> Option<Vec<u8>> {
    let serves = |shift: &usize| (0..code.k()).all(|i| i ^ shift < code.n() && is_intact(i ^ shift));
    let shift = (0..POINTS).find(serves)?;
    let mut known: Vec<u8> = (0..code.k()).map(|i| (i ^ shift) as u8).collect();
    known.sort_unstable();
    Some(known)
}

/// The program that computes the values at the positions `wanted` from those at 0..k. Wanted positions are distinct and
/// not below k. The value at position i is source row `sources[i]`, and destinations are in the order of `wanted`.
pub(super) fn program(sources: Vec<u8>, wanted: &[u8]) -> Program {
    let k = sources.len();
    let mut row_at = [None; POINTS];
    (0..=u8::MAX).zip(wanted).for_each(|(row, &position)| row_at[usize::from(position)] = Some(row));
    let mut planner = Planner { program: Program::new(sources), row_at, free: Vec::new(), blocks: 0 };
    let coefficients = planner.interpolate(0, POINTS, k, None);
    planner.evaluate(0, POINTS, &coefficients, k, None);
    planner.program
}

/// The residue of a block: a block of coefficients. In the first half of a node, the `high` and the skew of that node
/// are still to be added.
type Residue = (usize, Option<(usize, u8)>);

/// A block, the factor of its rows, and how many rows are to be added, at most [`FEW`].
type Few = Option<(usize, u8, usize)>;

struct Planner {
    program: Program,
    /// The destination row of each position that is still to be evaluated.
    row_at: [Option<u8>; POINTS],
    /// Blocks that are not in use, of all `blocks`.
    free: Vec<usize>,
    blocks: usize,
}

impl Planner {
    fn block(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.blocks += 1;
            self.blocks - 1
        })
    }

    fn any_wanted(&self, offset: usize, size: usize) -> bool {
        self.row_at[offset..offset + size].iter().any(Option::is_some)
    }

    /// The coefficients of f on the `size` points from `offset` on, all of them known. `more` names two blocks to be
    /// added to the result, and is only for nodes of two blocks.
    fn interpolate_all(&mut self, offset: usize, size: usize, more: Option<[usize; 2]>) -> Vec<usize> {
        if size == BLOCK {
            let to = self.block();
            self.program.inverse(offset, to, block_skews(offset), None, None);
            return vec![to];
        }
        let half = size / 2;
        let by = skew(half, offset);
        let mut low = self.interpolate_all(offset, half, None);
        if half == BLOCK {
            let to = self.block();
            let skews = block_skews(offset + half);
            self.program.inverse(offset + half, to, skews, Some((low[0], by)), more);
            low.push(to);
            return low;
        }
        let high = if half == 2 * BLOCK {
            self.interpolate_all(offset + half, half, Some([low[0], low[1]]))
        } else {
            let high = self.interpolate_all(offset + half, half, None);
            self.add(&high, &low, 1, half);
            high
        };
        self.add(&low, &high, by, half);
        low.extend(high);
        low
    }

    /// The coefficients of g in f = `residue` + g on the `size` points from `offset` on, of which the first `known` are
    /// known: `known` coefficients, in new blocks.
    fn interpolate(
        &mut self,
        offset: usize,
        size: usize,
        known: usize,
        residue: Option<&[usize]>,
    ) -> Vec<usize> {
        if size == BLOCK {
            return vec![self.interpolate_block(offset, known, residue.map(|residue| (residue[0], None)))];
        }
        let half = size / 2;
        let by = skew(half, offset);
        let residue = residue.map(|residue| residue.split_at(residue.len() / 2));
        if known <= half {
            let Some((low, high)) = residue else { return self.interpolate(offset, half, known, None) };
            if half == BLOCK {
                return vec![self.interpolate_block(offset, known, Some((low[0], Some((high[0], by)))))];
            }
            let reduced = self.sums(low, high, by);
            let coefficients = self.interpolate(offset, half, known, Some(&reduced));
            self.free.extend(reduced);
            return coefficients;
        }
        let mut coefficients = self.interpolate_all(offset, half, None);
        let upper = known - half;
        let Some((low, high)) = residue else {
            let above = self.interpolate(offset + half, half, upper, Some(&coefficients));
            self.add(&coefficients, &above, by, upper);
            coefficients.extend(above);
            return coefficients;
        };
        let residue = self.sums(&coefficients, high, 1);
        let above = self.interpolate(offset + half, half, upper, Some(&residue));
        self.free.extend(residue);
        for (i, &to) in coefficients.iter().enumerate() {
            let above = above.get(i).map(|&above| (above, by, BLOCK.min(upper - i * BLOCK)));
            let terms = [(low[i], 1, BLOCK), (high[i], by, BLOCK)].into_iter().chain(above);
            self.program.sum(to, to, &terms.collect::<Vec<_>>());
        }
        coefficients.extend(above);
        coefficients
    }

    /// [`interpolate`](Self::interpolate) for a single block. f on the block is at hand here, so wanted points of the
    /// block and of the one after it are evaluated at once.
    fn interpolate_block(&mut self, offset: usize, known: usize, residue: Option<Residue>) -> usize {
        let here = self.any_wanted(offset, BLOCK);
        // The node's `high`, with which f on the next block follows from f on this one.
        let high = residue.and_then(|(_, rest)| rest).map(|(high, _)| high);
        let high = high.filter(|_| self.any_wanted(offset + BLOCK, BLOCK));
        if let (1, true, Some(residue)) = (known, here, residue) {
            return self.interpolate_point(offset, residue, high);
        }
        let reduced = match residue {
            None => None,
            Some((low, None | Some((_, 0)))) => Some((low, false)),
            Some((low, Some((high, by)))) => {
                let reduced = self.block();
                self.program.sum(reduced, low, &[(high, by, BLOCK)]);
                Some((reduced, true))
            }
        };
        let wants_f = here || high.is_some();
        let (g, f) = self.coefficients_of_block(offset, known, reduced.map(|(block, _)| block), wants_f);
        let keep = high.map(|high| [high, self.block()]);
        if here {
            self.forward(offset, Sum { from: f, keep, ..Sum::default() }, None);
        } else if let Some([high, keep]) = keep {
            self.program.sum(keep, f, &[(high, 1, BLOCK)]);
        }
        if let Some([_, keep]) = keep {
            self.forward(offset + BLOCK, Sum { from: keep, ..Sum::default() }, None);
            self.free.push(keep);
        }
        self.free.extend(reduced.filter(|&(_, is_new)| is_new).map(|(block, _)| block));
        self.free.extend(Some(f).filter(|&f| f != g));
        g
    }

    /// [`interpolate_block`](Self::interpolate_block) with one known point, of a block with wanted points: g is a
    /// constant. The residue is evaluated anyway; its error at the known point is all of g.
    fn interpolate_point(&mut self, offset: usize, (low, rest): Residue, high: Option<usize>) -> usize {
        let g = self.block();
        let keep = high.map(|high| [high, self.block()]);
        self.forward(offset, Sum { from: low, plus: rest, few: None, keep }, Some((offset, g)));
        if let Some([_, keep]) = keep {
            let few = Some((g, 1, 1));
            self.forward(offset + BLOCK, Sum { from: keep, few, ..Sum::default() }, None);
            self.free.push(keep);
        }
        g
    }

    /// The coefficients of g, and those of f if they are wanted, of a single block. Both are in the same block if they
    /// are equal or f is not wanted.
    fn coefficients_of_block(
        &mut self,
        offset: usize,
        known: usize,
        residue: Option<usize>,
        wants_f: bool,
    ) -> (usize, usize) {
        if known == BLOCK {
            let f = self.interpolate_all(offset, BLOCK, None)[0];
            let Some(residue) = residue else { return (f, f) };
            let g = self.block();
            self.program.sum(g, f, &[(residue, 1, BLOCK)]);
            return (g, f);
        }
        let g = self.block();
        self.program.tail(g, residue, offset, known, tail_skews(offset, known));
        match residue {
            Some(residue) if wants_f => {
                let f = self.block();
                self.program.sum(f, residue, &[(g, 1, known)]);
                (g, f)
            }
            _ => (g, g),
        }
    }

    /// Evaluates f on the wanted points among the `size` points from `offset` on. `len` coefficients count there, and
    /// the others are zero. The rows in `few` are still to be added to the first of them. The coefficients stay as they
    /// were.
    fn evaluate(&mut self, offset: usize, size: usize, coefficients: &[usize], len: usize, few: Few) {
        if !self.any_wanted(offset, size) {
            return;
        }
        let from = coefficients[0];
        if size == BLOCK {
            return self.forward(offset, Sum { from, few, ..Sum::default() }, None);
        }
        let half = size / 2;
        if len <= half {
            self.evaluate(offset, half, coefficients, len, few);
            self.evaluate(offset + half, half, coefficients, len, few);
            return;
        }
        let wanted: Vec<usize> =
            (offset..offset + size).step_by(BLOCK).filter(|&block| self.any_wanted(block, BLOCK)).collect();
        if let [block] = wanted[..] {
            return self.evaluate_one(block, coefficients, len, few);
        }
        let (low, high) = coefficients.split_at(half / BLOCK);
        let skew = skew(half, offset);
        let more = len - half;
        if more <= FEW {
            // All coefficients of the lower half count, so none were left over further up.
            let few = |by| Some((high[0], by, more));
            self.evaluate(offset, half, low, half, few(skew));
            self.evaluate(offset + half, half, low, half, few(skew ^ 1));
            return;
        }
        let lower = self.any_wanted(offset, half);
        let upper = self.any_wanted(offset + half, half);
        let by = if lower { skew } else { skew ^ 1 };
        if size == 2 * BLOCK && more == BLOCK {
            let keep = self.block();
            self.forward(
                offset,
                Sum { from, plus: Some((high[0], by)), few, keep: Some([high[0], keep]) },
                None,
            );
            self.forward(offset + half, Sum { from: keep, ..Sum::default() }, None);
            self.free.push(keep);
            return;
        }
        let new = self.sums_of(low, high, by, more);
        let sums: Vec<usize> = new.iter().chain(&low[new.len()..]).copied().collect();
        if lower {
            self.evaluate(offset, half, &sums, half, few);
        }
        if lower && upper {
            self.add(&sums, high, 1, more);
        }
        if upper {
            self.evaluate(offset + half, half, &sums, half, few);
        }
        self.free.extend(new);
    }

    /// [`evaluate`](Self::evaluate) where only one block of the node is wanted. The factor of block i of the
    /// coefficients is the product of the skews that belong to the bits of i.
    fn evaluate_one(&mut self, offset: usize, coefficients: &[usize], len: usize, mut few: Few) {
        let mut terms = Vec::new();
        for (i, &block) in coefficients.iter().enumerate().take(len.div_ceil(BLOCK)).skip(1) {
            let bits = (0..4).filter(|bit| i >> bit & 1 == 1);
            let by = bits.fold(1, |by, bit| mul(by, skew(BLOCK << bit, offset)));
            match BLOCK.min(len - i * BLOCK) {
                _ if by == 0 => {}
                rows @ ..=FEW => few = Some((block, by, rows)),
                rows => terms.push((block, by, rows)),
            }
        }
        // A single full term costs only its operations; other terms go through another block.
        let full = terms.iter().position(|&(_, _, rows)| rows == BLOCK);
        let plus = full.map(|i| terms.remove(i)).map(|(block, by, _)| (block, by));
        let from = coefficients[0];
        if terms.is_empty() {
            return self.forward(offset, Sum { from, plus, few, keep: None }, None);
        }
        let sum = self.block();
        self.program.sum(sum, from, &terms);
        self.forward(offset, Sum { from: sum, plus, few, keep: None }, None);
        self.free.push(sum);
    }

    /// Evaluates f on the wanted points of a block, and marks them as done. See [`Program::forward`].
    fn forward(&mut self, offset: usize, sum: Sum, tap: Option<(usize, usize)>) {
        let mut places = [None; BLOCK];
        places.swap_with_slice(&mut self.row_at[offset..offset + BLOCK]);
        let rows = (0..).zip(places).filter_map(|(output, row)| Some((output, row?)));
        self.program.forward(sum, block_skews(offset), tap, rows);
    }

    /// Adds `by` · the first `len` rows of `plus` to `to`.
    fn add(&mut self, to: &[usize], plus: &[usize], by: u8, len: usize) {
        for (i, (&to, &plus)) in to.iter().zip(plus).enumerate() {
            self.program.sum(to, to, &[(plus, by, BLOCK.min(len - i * BLOCK))]);
        }
    }

    /// New blocks with `low` + `by` · `high`; copies of `low` where `high` ends.
    fn sums(&mut self, low: &[usize], high: &[usize], by: u8) -> Vec<usize> {
        let (with, without) = low.split_at(high.len().min(low.len()));
        let mut sums = self.sums_of(with, high, by, high.len() * BLOCK);
        for &low in without {
            let to = self.block();
            self.program.sum(to, low, &[]);
            sums.push(to);
        }
        sums
    }

    /// New blocks with `low` + `by` · the first `len` rows of `high`, as many as `high` has.
    fn sums_of(&mut self, low: &[usize], high: &[usize], by: u8, len: usize) -> Vec<usize> {
        let mut sums = Vec::with_capacity(high.len());
        for (i, (&low, &high)) in low.iter().zip(high).enumerate() {
            let to = self.block();
            self.program.sum(to, low, &[(high, by, BLOCK.min(len - i * BLOCK))]);
            sums.push(to);
        }
        sums
    }
}

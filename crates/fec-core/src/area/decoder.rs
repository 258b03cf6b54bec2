//! Lost blocks from all others, coset by coset.
//!
//! The decoder keeps sums of only as many rows as are lost, rounded up to a power of two. A single lost block is the
//! XOR of all others; up to 32 need fewer than the six layers of a group, and no far step.

use super::encoder::{PLACES, check_out, check_rows, note_added, sub_sums};
use super::locator::locator;
use super::sums::{AreaRoom, Bench, Shape, Sums};
use super::{AreaCode, AreaError};
use crate::executor::Executor;
use crate::gf256::kernel::{Backend, GROUP, Position, Sheet, Unit};
use std::ops::Range;

/// A decoder of one area, to which the blocks that are there are added coset by coset, in any order.
///
/// It reads each block once, and keeps no row. For e lost blocks of N it takes about N · (log e) / 2 products of
/// blocks; [`restore`](AreaSolution::restore) takes up to as many again.
#[derive(Debug)]
pub struct AreaDecoder<'r> {
    lost: Lost,
    sums: Sums<'r>,
    added: Vec<bool>,
}

/// The area, and what is lost of it.
#[derive(Debug)]
struct Lost {
    code: AreaCode,
    block_len: usize,
    backend: Backend,
    /// Ascending.
    positions: Vec<usize>,
    /// The values of Λ at the first two cosets of sums, and at least at one group.
    locator: Vec<u16>,
    /// 1 / Λ' at the lost positions.
    scale: Vec<u16>,
}

impl Lost {
    /// The numbers of the lost positions in a range.
    fn within(&self, positions: Range<usize>) -> Range<usize> {
        let below = |end: usize| self.positions.partition_point(|&position| position < end);
        below(positions.start)..below(positions.end)
    }
}

impl<'r> AreaDecoder<'r> {
    /// A decoder for blocks of `block_len` bytes, which works in `room`. `lost` are all positions whose blocks are not
    /// there, ascending, whether they are wanted or not. Set-up takes some milliseconds if many are lost.
    ///
    /// # Errors
    ///
    /// [`AreaError::TooManyLost`], [`AreaError::LostPosition`]; [`AreaError::BlockLen`] and [`AreaError::Room`] as
    /// [`AreaEncoder::new`](super::AreaEncoder::new).
    pub fn new(
        code: AreaCode,
        block_len: usize,
        lost: &[usize],
        backend: Backend,
        room: &'r mut AreaRoom,
    ) -> Result<AreaDecoder<'r>, AreaError> {
        let (n, m) = (code.n(), code.m());
        let is_wrong = |i: &usize| lost[*i] >= n || *i > 0 && lost[i - 1] >= lost[*i];
        if let Some(i) = (0..lost.len()).find(is_wrong) {
            return Err(AreaError::LostPosition { position: lost[i], n });
        }
        if lost.len() > m {
            return Err(AreaError::TooManyLost { lost: lost.len(), m });
        }
        let sums = Sums::new(lost.len().max(1), block_len, backend, room)?;
        let (mut locator, scale) = locator(lost, 2 * sums.shape.rows);
        locator.resize((2 * sums.shape.rows).max(GROUP), 0);
        let lost = Lost { code, block_len, backend, positions: lost.to_vec(), locator, scale };
        Ok(AreaDecoder { lost, sums, added: vec![false; code.cosets()] })
    }

    /// Adds the blocks of a coset that are there, or of several cosets that follow each other. `rows[i]` is the block
    /// at position `code.positions(coset).start` + i. `None` is a block of zeros, and stands at lost positions too. The
    /// threads of `executor` share the columns.
    ///
    /// # Errors
    ///
    /// [`AreaError::NoCoset`], [`AreaError::AddedTwice`], [`AreaError::RowCount`], [`AreaError::RowLen`], and
    /// [`AreaError::Unwanted`] for a lost position. Nothing was added then.
    pub fn add(
        &mut self,
        coset: usize,
        rows: &[Option<&[u8]>],
        executor: &dyn Executor,
    ) -> Result<(), AreaError> {
        let cosets = check_rows(self.lost.code, coset, rows, self.lost.block_len)?;
        let start = self.lost.code.positions(coset).start;
        let lost = &self.lost.positions[self.lost.within(start..start + rows.len())];
        if let Some(&position) = lost.iter().find(|&position| rows[position - start].is_some()) {
            return Err(AreaError::Unwanted { position });
        }
        note_added(&mut self.added, cosets)?;
        self.sums.add(executor, start, rows);
        Ok(())
    }

    /// Solves for what is lost, when all cosets are added.
    ///
    /// # Errors
    ///
    /// [`AreaError::NotAdded`] when a coset is missing.
    pub fn solve(mut self, executor: &dyn Executor) -> Result<AreaSolution<'r>, AreaError> {
        if let Some(coset) = self.added.iter().position(|added| !added) {
            return Err(AreaError::NotAdded { coset });
        }
        let (shape, lost) = (self.sums.shape, &self.lost);
        self.sums.for_each_strip(executor, &mut [], |sums, bench, _, _| match shape.groups() {
            1 if shape.rows < GROUP => solve_within_group(lost, shape, sums, bench),
            1 => solve_group(lost, sums, bench),
            _ => solve_cosets(lost, shape, sums, bench),
        });
        Ok(AreaSolution { lost: self.lost, sums: self.sums })
    }
}

/// The high half of S·Λ, by way of its values at two cosets of fewer than 64 positions: both are in the first group.
fn solve_within_group(lost: &Lost, shape: Shape, sums: &mut [Unit], bench: &mut Bench<'_>) {
    let (backend, at) = (lost.backend, Position { base: 0, layers: shape.layers() });
    sub_sums(sums, shape.rows);
    backend.near_forward(at, bench.near, sums);
    sums.chunks_exact_mut(GROUP).for_each(|unit| backend.scale(unit, &lost.locator[..GROUP]));
    backend.near_inverse(at, bench.near, sums);
    // Λ is taken as zero behind both cosets.
    sub_sums(sums, shape.rows);
}

/// The same for two groups.
fn solve_group(lost: &Lost, sums: &mut [Unit], bench: &mut Bench<'_>) {
    let backend = lost.backend;
    let spare = &mut bench.spare[..sums.len()];
    spare.copy_from_slice(sums);
    for (base, units) in [(0, &mut *sums), (GROUP, &mut *spare)] {
        let at = Position { base, layers: 6 };
        backend.near_forward(at, bench.near, units);
        units.chunks_exact_mut(GROUP).for_each(|unit| backend.scale(unit, &lost.locator[base..][..GROUP]));
        backend.near_inverse(at, bench.near, units);
    }
    add_units(sums, spare);
}

/// The same for two cosets of several groups.
fn solve_cosets(lost: &Lost, shape: Shape, sums: &mut [Unit], bench: &mut Bench<'_>) {
    let (backend, distance) = (lost.backend, shape.distance());
    let len = sums.len() / shape.groups();
    for coset in 0..2 {
        let base = coset * shape.rows;
        backend.far_forward(base, sums, bench.sheet());
        for (g, group) in bench.groups.chunks_exact_mut(distance).enumerate() {
            let (group, at) = (&mut group[..len], Position { base: base + g * GROUP, layers: 6 });
            backend.near_forward(at, bench.near, group);
            group
                .chunks_exact_mut(GROUP)
                .for_each(|unit| backend.scale(unit, &lost.locator[at.base..][..GROUP]));
            backend.near_inverse(at, bench.near, group);
        }
        let Bench { far, groups, spare, .. } = bench;
        let sheet = Sheet { tile: far, groups, distance };
        backend.far_inverse(base, sheet, &mut spare[..sums.len()], coset == 1);
    }
    sums.copy_from_slice(&bench.spare[..sums.len()]);
}

fn add_units(to: &mut [Unit], from: &[Unit]) {
    let (to, from) = (to.as_flattened_mut().as_flattened_mut(), from.as_flattened().as_flattened());
    to.iter_mut().zip(from).for_each(|(sum, byte)| *sum ^= byte);
}

/// The solution for an area, from which the lost blocks are computed coset by coset, in any order, as often as wanted.
#[derive(Debug)]
pub struct AreaSolution<'r> {
    lost: Lost,
    sums: Sums<'r>,
}

impl AreaSolution<'_> {
    /// The lost positions of a coset, ascending; none if there is no such coset.
    pub fn lost(&self, coset: usize) -> &[usize] {
        &self.lost.positions[self.lost.within(self.lost.code.positions(coset))]
    }

    /// Computes all lost blocks of a coset: `out[i]` becomes that of position `lost(coset)[i]`. The threads of
    /// `executor` share the columns.
    ///
    /// # Errors
    ///
    /// [`AreaError::RowCount`] and [`AreaError::RowLen`] when `out` is not a block for each of them.
    pub fn restore(
        &mut self,
        coset: usize,
        out: &mut [&mut [u8]],
        executor: &dyn Executor,
    ) -> Result<(), AreaError> {
        let (lost, shape) = (&self.lost, self.sums.shape);
        let numbers = lost.within(lost.code.positions(coset));
        check_out(coset, numbers.len(), out, lost.block_len)?;
        if numbers.is_empty() {
            return Ok(());
        }
        self.sums.for_each_strip(executor, out, |sums, bench, out, at| {
            let coset_len = shape.groups() * GROUP;
            let mut left = numbers.clone();
            while let Some(&position) = lost.positions[left.clone()].first() {
                let base = position / coset_len * coset_len;
                let here = left.start..lost.within(0..base + coset_len).end.min(left.end);
                let out = &mut out[here.start - numbers.start..here.end - numbers.start];
                restore_coset(lost, shape, (base, here.clone()), (&mut *sums, bench), out, at);
                left.start = here.end;
            }
        });
        Ok(())
    }
}

/// Lost rows, by their numbers, of the coset at `base`: ω / Λ' at their points.
fn restore_coset(
    lost: &Lost,
    shape: Shape,
    (base, numbers): (usize, Range<usize>),
    (sums, bench): (&mut [Unit], &mut Bench<'_>),
    out: &mut [&mut [u8]],
    at: usize,
) {
    let backend = lost.backend;
    let output = numbers.len() * lost.block_len;
    let len = sums.len() / shape.groups();
    if shape.groups() == 1 {
        bench.groups[..len].copy_from_slice(sums);
    } else {
        backend.far_forward(base, sums, bench.sheet());
    }
    let mut out = out.iter_mut();
    for (g, group) in bench.groups.chunks_exact_mut(shape.distance()).enumerate() {
        let base = base + g * GROUP;
        let here = lost.within(base..base + GROUP);
        let here = here.start.max(numbers.start)..here.end.min(numbers.end);
        if here.is_empty() {
            continue;
        }
        let group = &mut group[..len];
        backend.near_forward(Position { base, layers: shape.layers() }, bench.near, group);
        for (number, out) in here.zip(&mut out) {
            let row = lost.positions[number] - base;
            for unit in group.chunks_exact_mut(GROUP) {
                backend.scale(&mut unit[row..=row], &[lost.scale[number]]);
            }
            backend.put_rows(group, &PLACES[row..=row], std::slice::from_mut(out), at, output);
        }
    }
}

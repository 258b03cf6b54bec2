//! Recovery blocks from originals, coset by coset.

use super::fill::fill;
use super::sums::{AreaRoom, Sums};
use super::{AreaCode, AreaError};
use crate::executor::Executor;
use crate::gf256::kernel::{Backend, GROUP, Position, Unit};
use std::ops::Range;

/// The rows of a group.
pub(super) static PLACES: [u8; GROUP] = {
    let mut places = [0; GROUP];
    let mut i = 0;
    while i < GROUP {
        places[i] = i as u8;
        i += 1;
    }
    places
};

/// An encoder of one area, to which originals are added coset by coset, in any order.
///
/// It reads each original once, and keeps no row: the memory of a coset may be used again when [`add`](Self::add)
/// returns. For N blocks of B bytes with M positions to a coset a whole encode takes about N · (log M) / 2 products of
/// blocks.
#[derive(Debug)]
pub struct AreaEncoder<'r> {
    code: AreaCode,
    block_len: usize,
    backend: Backend,
    sums: Sums<'r>,
    added: Vec<bool>,
}

impl<'r> AreaEncoder<'r> {
    /// An encoder for blocks of `block_len` bytes, which works in `room`. Whatever was in there is forgotten.
    ///
    /// # Errors
    ///
    /// [`AreaError::BlockLen`] when `block_len` is no positive multiple of 128, [`AreaError::Room`] when `room` was
    /// made for a smaller area.
    pub fn new(
        code: AreaCode,
        block_len: usize,
        backend: Backend,
        room: &'r mut AreaRoom,
    ) -> Result<AreaEncoder<'r>, AreaError> {
        let sums = Sums::new(code.m(), block_len, backend, room)?;
        // A coset of recovery blocks alone has nothing to add.
        let added = (0..code.cosets()).map(|coset| code.positions(coset).end <= code.m()).collect();
        Ok(AreaEncoder { code, block_len, backend, sums, added })
    }

    /// Adds the originals of a coset, or of several that follow each other. `rows[i]` is the block at position
    /// `code.positions(coset).start` + i. `None` is a block of zeros, and stands at positions of recovery blocks too.
    /// Several cosets at once take less time, since the sums are read and written once. The threads of `executor` share
    /// the columns.
    ///
    /// A coset of recovery blocks alone need not be added, and may be.
    ///
    /// # Errors
    ///
    /// [`AreaError::NoCoset`], [`AreaError::AddedTwice`], [`AreaError::RowCount`], [`AreaError::RowLen`], and
    /// [`AreaError::Unwanted`] for a recovery block. Nothing was added then.
    pub fn add(
        &mut self,
        coset: usize,
        rows: &[Option<&[u8]>],
        executor: &dyn Executor,
    ) -> Result<(), AreaError> {
        let cosets = check_rows(self.code, coset, rows, self.block_len)?;
        let start = self.code.positions(coset).start;
        let recovery = self.code.m().saturating_sub(start);
        if let Some(row) = rows.iter().take(recovery).position(Option::is_some) {
            return Err(AreaError::Unwanted { position: start + row });
        }
        let has_originals = |coset: &usize| self.code.positions(*coset).end > self.code.m();
        note_added(&mut self.added, cosets.filter(has_originals))?;
        self.sums.add(executor, start, rows);
        Ok(())
    }

    /// Computes the recovery blocks: `out[i]` becomes recovery block i. The threads of `executor` share the columns.
    ///
    /// # Errors
    ///
    /// [`AreaError::NotAdded`] when originals are missing, [`AreaError::RowCount`] and [`AreaError::RowLen`] when `out`
    /// is not m blocks.
    pub fn finish(mut self, out: &mut [&mut [u8]], executor: &dyn Executor) -> Result<(), AreaError> {
        if let Some(coset) = self.added.iter().position(|added| !added) {
            return Err(AreaError::NotAdded { coset });
        }
        check_out(0, self.code.m(), out, self.block_len)?;
        let (backend, m, shape) = (self.backend, self.code.m(), self.sums.shape);
        let output = m * self.block_len;
        self.sums.for_each_strip(executor, out, |sums, bench, out, at| {
            if shape.groups() == 1 {
                sub_sums(sums, shape.rows);
                fill(backend, shape, sums, m);
                backend.near_forward(Position { base: 0, layers: shape.layers() }, bench.near, sums);
                backend.put_rows(sums, &PLACES, out, at, output);
            } else {
                fill(backend, shape, sums, m);
                backend.far_forward(0, sums, bench.sheet());
                let (near, len) = (&mut *bench.near, sums.len() / shape.groups());
                for ((g, group), out) in
                    bench.groups.chunks_mut(shape.distance()).enumerate().zip(out.chunks_mut(GROUP))
                {
                    let group = &mut group[..len];
                    backend.near_forward(Position { base: g * GROUP, layers: 6 }, near, group);
                    backend.put_rows(group, &PLACES, out, at, output);
                }
            }
        });
        Ok(())
    }
}

/// Adds up the transforms of `rows` rows that share a group: all become their sum.
pub(super) fn sub_sums(sums: &mut [Unit], rows: usize) {
    for group in sums.chunks_exact_mut(GROUP) {
        for row in 0..rows {
            let mut sum = group[row];
            for other in (row + rows..GROUP).step_by(rows) {
                for plane in 0..2 {
                    for (sum, byte) in sum[plane].iter_mut().zip(&group[other][plane]) {
                        *sum ^= byte;
                    }
                }
            }
            (row..GROUP).step_by(rows).for_each(|row| group[row] = sum);
        }
    }
}

/// The cosets that some rows are of, from `coset` on, if they are blocks of whole ones.
pub(super) fn check_rows(
    code: AreaCode,
    coset: usize,
    rows: &[Option<&[u8]>],
    block_len: usize,
) -> Result<Range<usize>, AreaError> {
    if coset >= code.cosets() {
        return Err(AreaError::NoCoset { coset, cosets: code.cosets() });
    }
    let positions = code.positions(coset);
    let end = positions.start + rows.len();
    if end < positions.end || end > code.n() || end < code.n() && !end.is_multiple_of(code.coset_len()) {
        return Err(AreaError::RowCount { coset, given: rows.len(), wanted: positions.len() });
    }
    let lens = rows.iter().map(|row| row.map_or(block_len, <[u8]>::len));
    match lens.enumerate().find(|&(_, len)| len != block_len) {
        Some((row, len)) => Err(AreaError::RowLen { coset, row, len, wanted: block_len }),
        None => Ok(coset..end.div_ceil(code.coset_len())),
    }
}

/// Marks cosets as added; none if one of them was added before.
pub(super) fn note_added(
    added: &mut [bool],
    cosets: impl Iterator<Item = usize> + Clone,
) -> Result<(), AreaError> {
    if let Some(coset) = cosets.clone().find(|&coset| added[coset]) {
        return Err(AreaError::AddedTwice { coset });
    }
    cosets.for_each(|coset| added[coset] = true);
    Ok(())
}

/// Refuses rows for results that are not `wanted` blocks.
pub(super) fn check_out(
    coset: usize,
    wanted: usize,
    out: &[&mut [u8]],
    block_len: usize,
) -> Result<(), AreaError> {
    if out.len() != wanted {
        return Err(AreaError::RowCount { coset, given: out.len(), wanted });
    }
    match out.iter().position(|row| row.len() != block_len) {
        Some(row) => Err(AreaError::RowLen { coset, row, len: out[row].len(), wanted: block_len }),
        None => Ok(()),
    }
}

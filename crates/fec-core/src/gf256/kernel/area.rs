//! The operations of the code of areas on a backend: the near and the far step, and products of rows.

// A loop may only run on a CPU that has its features. Each method below holds one such call.
#![allow(unsafe_code)]

use super::backend::Backend;
use super::loops::area::{Columns, GROUP, Sheet, Stretches, Unit};
use super::streams::note_work;
use super::tuning::Store;

/// The place of a near step in a transform.
#[derive(Clone, Copy)]
pub(crate) struct Position {
    /// The first position, a multiple of the rows of a transform.
    pub(crate) base: usize,
    /// Near layers, at most 6.
    pub(crate) layers: usize,
}

impl Backend {
    /// The inverse near layers of 64 rows, put into `to` or added there. `next` are the rows of the next call.
    ///
    /// # Panics
    ///
    /// When a row ends before the units that `to` has space for.
    pub(crate) fn near_rows(
        self,
        at: Position,
        rows: Columns<'_>,
        next: Columns<'_>,
        tile: &mut [Unit; GROUP],
        to: &mut [Unit],
        add: bool,
    ) {
        note_work(to.len() * at.layers);
        // SAFETY: a `Backend` is only made by detection, which has tested every feature this kernel needs.
        unsafe { (self.kernel.area.near_rows)([at.base, at.layers], rows, next, tile, to, add) }
    }

    /// The inverse near layers in place.
    pub(crate) fn near_inverse(self, at: Position, tile: &mut [Unit; GROUP], rows: &mut [Unit]) {
        note_work(rows.len() * at.layers);
        // SAFETY: as above.
        unsafe { (self.kernel.area.near_inverse)([at.base, at.layers], tile, rows) }
    }

    /// The near layers in place.
    pub(crate) fn near_forward(self, at: Position, tile: &mut [Unit; GROUP], rows: &mut [Unit]) {
        note_work(rows.len() * at.layers);
        // SAFETY: as above.
        unsafe { (self.kernel.area.near_forward)([at.base, at.layers], tile, rows) }
    }

    /// The inverse far layers of a sheet, put into `sums` or added there.
    ///
    /// # Panics
    ///
    /// When the sheet ends before the units that `sums` has space for.
    pub(crate) fn far_inverse(self, base: usize, sheet: Sheet<'_>, sums: &mut [Unit], add: bool) {
        note_work(sums.len() * sheet.tile.len().trailing_zeros() as usize);
        // SAFETY: as above.
        unsafe { (self.kernel.area.far_inverse)(base, sheet, sums, add) }
    }

    /// The far layers of `sums`, put into a sheet.
    ///
    /// # Panics
    ///
    /// As [`far_inverse`](Self::far_inverse).
    pub(crate) fn far_forward(self, base: usize, sums: &mut [Unit], sheet: Sheet<'_>) {
        note_work(sums.len() * sheet.tile.len().trailing_zeros() as usize);
        // SAFETY: as above.
        unsafe { (self.kernel.area.far_forward)(base, sums, sheet) }
    }

    /// Multiplies each unit by its factor.
    pub(crate) fn scale(self, units: &mut [Unit], factors: &[u16]) {
        note_work(2 * units.len());
        // SAFETY: as above.
        unsafe { (self.kernel.area.scale)(units, factors) }
    }

    /// Adds products of stretches to other stretches, or puts them there.
    ///
    /// # Panics
    ///
    /// When a stretch ends behind the units.
    pub(crate) fn add_multiples(self, units: &mut [Unit], stretches: Stretches, factor: u16, add: bool) {
        note_work(2 * stretches.len * stretches.count);
        // SAFETY: as above.
        unsafe { (self.kernel.area.add_multiples)(units, stretches, factor, add) }
    }

    /// Copies row `places[i]` of a group to `rows[i]`, from byte `at` on: a part of `output` bytes, which go past the
    /// caches if they are many.
    ///
    /// # Panics
    ///
    /// When a row ends before.
    pub(crate) fn put_rows(
        self,
        units: &[Unit],
        places: &[u8],
        rows: &mut [&mut [u8]],
        at: usize,
        output: usize,
    ) {
        let stream = self.tuning.store_of(output) == Store::Stream;
        // SAFETY: as above.
        unsafe { (self.kernel.area.put_rows)(units, places, rows, at, stream) }
    }
}

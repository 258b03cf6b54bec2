//! The contract of a kernel file, and the arguments of its calls.
//!
//! Kernels know this file and not the list of them, nor what backends are.

use super::loops::area::{Columns, GROUP, Sheet, Stretches, Unit};
use super::program::{Column, Program};
use super::tuning::{Tuning, Walk};

/// The rows of one set: the sources, shared, and the destinations, exclusive, all of one length in bytes.
///
/// The caller owns both; a kernel reads the first and overwrites the second.
pub type Rows<'a, 's, 'b, 'd> = (&'a [&'s [u8]], &'b mut [&'d mut [u8]]);

/// A kernel, as its file offers it.
pub(super) struct Kernel {
    /// The backend's name.
    pub(super) name: &'static str,
    /// The CPU features it needs.
    pub(super) features: &'static [Feature],
    /// Most outputs it sums at once; see [`groups`](super::loops::matrix::groups).
    pub(super) max_outputs: usize,
    /// Bytes of the packed table of one coefficient.
    pub(super) table_len: usize,
    /// True if a pass of a program goes over its tile twice, two layers at a time.
    pub(super) two_layers: bool,
    /// Cost of a multiplication and of an addition of a program, loads and stores included, in tenths of a
    /// multiplication of a matrix with its addition. Measured.
    pub(super) program_costs: (usize, usize),
    /// Writes the packed table of a coefficient, `table_len` bytes.
    pub(super) pack: fn(u8, &mut [u8]),
    /// Computes all sets. Calling it is sound exactly when the CPU has all of `features`; memory safety asks nothing
    /// else. Rows that do not fit the matrix panic.
    pub(super) run: unsafe fn(Matrix<'_>, &mut [Rows<'_, '_, '_, '_>]),
    /// Applies a program to all sets. Arguments are the program, the tables of its coefficients, and columns for its
    /// blocks and one more, the same number for each. It is sound under the same condition.
    pub(super) run_program: unsafe fn(&Program, &[u8], &mut [Column], Tuning, &mut [Rows<'_, '_, '_, '_>]),
    /// The loops of live streams.
    pub(super) stream: StreamLoops,
    /// The loops of areas.
    pub(super) area: AreaLoops,
}

/// A CPU feature that a kernel needs.
pub(super) struct Feature {
    pub(super) name: &'static str,
    /// The run-time test.
    pub(super) present: fn() -> bool,
}

/// A packed matrix as a kernel reads it.
#[derive(Clone, Copy)]
pub(super) struct Matrix<'a> {
    /// Number of source rows.
    pub(super) k: usize,
    /// Number of destination rows.
    pub(super) wanted: usize,
    /// For each group of outputs, for each source, the tables of the group's outputs.
    pub(super) tables: &'a [u8],
    /// The settings for cutting and moving rows.
    pub(super) tuning: Tuning,
}

/// The loops of one kernel over whole rows, for live streams. Calling one is sound exactly when the CPU has the
/// kernel's features; rows that are too short panic. Each does whole vectors only, and all but the last two return
/// how many bytes of every row they did.
#[allow(clippy::type_complexity)]
pub(super) struct StreamLoops {
    /// Bytes of a vector.
    pub(super) width: usize,
    /// `dst = Σ table^i · Σ classes[i]`; arguments are the classes, the table, `dst` and the walk.
    pub(super) sum: unsafe fn(&[&[&[u8]]], &[u8], &mut [u8], Walk) -> usize,
    /// `dst += src`; arguments are `dst`, `src` and the walk.
    pub(super) add: unsafe fn(&mut [u8], &[u8], Walk) -> usize,
    /// `dst[0] += src, dst[1] += table[0] · src, dst[2] += table[1] · src`; arguments are `dst`, `src` and the tables.
    pub(super) spread: unsafe fn([&mut [u8]; 3], &[u8], [&[u8]; 2]) -> usize,
    /// Each row becomes the sum of the three others.
    pub(super) mix: unsafe fn([&mut [u8]; 4]) -> usize,
    /// `rows[1] += rows[0], rows[0] += src, rows[2] = rows[0]`; arguments are `rows` and `src`.
    pub(super) turn: unsafe fn([&mut [u8]; 3], &[u8]) -> usize,
    /// `dst += Σ table[i] · src[i]`; arguments are `dst`, `src` and the tables.
    pub(super) add_products: unsafe fn(&mut [u8], &[&[u8]], &[u8]) -> usize,
    /// For each row in turn: `factors[i] = dst[position]`, `dst += factors[i] · row`. Arguments are `dst`, positions
    /// with their rows, which begin at the line of the position, and `factors`.
    pub(super) eliminate: unsafe fn(&mut [u8], &[(usize, &[u8])], &mut [u8]),
    /// Asks for the lines of a row.
    pub(super) prefetch: fn(&[u8]),
}

/// The loops of one kernel over rows of areas (`loops/area.rs`). Calling one is sound exactly when the CPU has the
/// kernel's features; rows that are too short panic.
#[allow(clippy::type_complexity)]
pub(super) struct AreaLoops {
    /// `to += T(rows)`, or `to = T(rows)`, with T the inverse near layers; arguments are the first position and the
    /// number of layers, `rows`, the rows of the next call, a tile, `to`, and whether to add.
    pub(super) near_rows:
        unsafe fn([usize; 2], Columns<'_>, Columns<'_>, &mut [Unit; GROUP], &mut [Unit], bool),
    /// `rows = T(rows)`; arguments are the first position and the number of layers, a tile and `rows`.
    pub(super) near_inverse: unsafe fn([usize; 2], &mut [Unit; GROUP], &mut [Unit]),
    /// `rows = T⁻¹(rows)`.
    pub(super) near_forward: unsafe fn([usize; 2], &mut [Unit; GROUP], &mut [Unit]),
    /// `sums += U(sheet)`, or `sums = U(sheet)`, with U the inverse far layers; arguments are the first position, the
    /// sheet, `sums`, and whether to add.
    pub(super) far_inverse: unsafe fn(usize, Sheet<'_>, &mut [Unit], bool),
    /// `sheet = U⁻¹(sums)`; arguments are the first position, `sums` and the sheet.
    pub(super) far_forward: unsafe fn(usize, &mut [Unit], Sheet<'_>),
    /// `units[i] *= factors[i]`.
    pub(super) scale: unsafe fn(&mut [Unit], &[u16]),
    /// `to += factor · from`, or `to = factor · from`, for stretches of one buffer.
    pub(super) add_multiples: unsafe fn(&mut [Unit], Stretches, u16, bool),
    /// Copies rows of a group; arguments are its units, which rows, where they go, the place there, and whether to
    /// store past the caches.
    pub(super) put_rows: unsafe fn(&[Unit], &[u8], &mut [&mut [u8]], usize, bool),
}

/// Bytes of output of all sets.
pub(super) fn output_bytes(sets: &[Rows<'_, '_, '_, '_>]) -> usize {
    sets.iter().map(|(src, dst)| src[0].len() * dst.len()).sum()
}

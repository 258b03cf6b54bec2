//! The loops of the code of areas: transforms of symbols of GF(2^16) whose bytes stand in two planes.
//!
//! A transform of 64 · G rows goes in two steps that meet in a *sheet*. The *near* step does layers 0 to 5 in groups of
//! 64 neighbouring rows, the *far* step layers 6 and up in *tiles* of the G rows that are 64 apart. Both work in the
//! first cache, in passes over 2, 4, 8 or 16 rows that are in registers.
//!
//! A layer joins the rows p and p + 2^i by a skew w. Inverse: y += x, x += w·y. Forward: x += w·y, y += x. In layers
//! from 8 on the skews are bytes, and the planes of a row do not meet. Passes over such layers take one plane at a
//! time, and twice as many rows.

use crate::gf256;
use crate::gf256::kernel::aligned::LINE;
use crate::gf65536::{LAMBDA, point};

/// 64 symbols: their low bytes, then their high bytes.
pub(crate) type Unit = [[u8; LINE]; 2];

/// Bytes of a unit.
pub(crate) const UNIT: usize = 2 * LINE;

/// Rows of a group, and units of a stretch of rows that the near step leaves in a sheet.
pub(crate) const GROUP: usize = 64;

/// Most rows of a tile.
pub(in crate::gf256::kernel) const MAX_TILE: usize = 512;

/// Most units of a row that go through a near step at once.
pub(crate) const MAX_UNITS: usize = 16;

/// In place of a row that is zero.
pub(in crate::gf256::kernel) static ZEROS: [Unit; MAX_UNITS] = [[[0; LINE]; 2]; MAX_UNITS];

/// Low bytes of the points of even positions: what the skews of a layer in a group have beside that of its first row.
pub(in crate::gf256::kernel) const EVEN_POINTS: [u8; GROUP / 2] = {
    let mut points = [0; GROUP / 2];
    let mut i = 0;
    while i < GROUP / 2 {
        points[i] = point(2 * i as u16) as u8;
        i += 1;
    }
    points
};

/// Rows of an area and the place in them where units are read.
#[derive(Clone, Copy)]
pub(crate) struct Columns<'a> {
    /// A row for each position; rows without bytes are zero.
    pub(crate) rows: &'a [Option<&'a [u8]>],
    /// The first unit, in bytes.
    pub(crate) at: usize,
}

impl<'a> Columns<'a> {
    /// `units` units of each of 64 rows.
    #[inline(always)]
    pub(in crate::gf256::kernel) fn units(self, units: usize) -> [&'a [Unit]; GROUP] {
        let mut out = [&ZEROS[..units]; GROUP];
        for (out, row) in out.iter_mut().zip(self.rows) {
            if let Some(row) = row {
                let bytes = &row[self.at..][..units * UNIT];
                *out = bytes.as_chunks::<LINE>().0.as_chunks::<2>().0;
            }
        }
        out
    }
}

/// A sheet: groups of rows that are `distance` units apart, and memory for a tile, which has a unit for each group.
pub(crate) struct Sheet<'a> {
    pub(crate) tile: &'a mut [Unit],
    pub(crate) groups: &'a mut [Unit],
    pub(crate) distance: usize,
}

/// Equal stretches of units in one buffer: `count` of them, `distance` apart.
#[derive(Clone, Copy)]
pub(crate) struct Stretches {
    pub(crate) to: usize,
    pub(crate) from: usize,
    pub(crate) len: usize,
    pub(crate) distance: usize,
    pub(crate) count: usize,
}

/// Packed skews w = c + d·θ of N − 1 joins, layer by layer, the narrowest first: N/2 of them, N/4, … 1.
///
/// The product of a + b·θ by w has the bytes a·c + b·(d·λ) and a·c + (a + b)·(c + d).
pub(in crate::gf256::kernel) struct Skews<const T: usize, const N: usize> {
    /// N rows.
    rows: usize,
    /// Tables of c.
    low: [[u8; T]; N],
    /// Tables of c + d.
    sum: [[u8; T]; N],
    /// Tables of d·λ.
    high: [[u8; T]; N],
}

/// Skews of a step in a group.
pub(in crate::gf256::kernel) type NearSkews<const T: usize> = Skews<T, GROUP>;

/// Skews of a step in a tile.
pub(in crate::gf256::kernel) type FarSkews<const T: usize> = Skews<T, MAX_TILE>;

/// The tables of `N` skews of one layer.
#[derive(Clone, Copy)]
pub(in crate::gf256::kernel) struct Layer<'a, const T: usize, const N: usize> {
    pub(in crate::gf256::kernel) low: &'a [[u8; T]; N],
    pub(in crate::gf256::kernel) sum: &'a [[u8; T]; N],
    pub(in crate::gf256::kernel) high: &'a [[u8; T]; N],
}

/// The bytes c, c + d and d·λ of w.
#[inline(always)]
pub(in crate::gf256::kernel) fn factors_of(w: u16) -> [u8; 3] {
    let [c, d] = w.to_le_bytes();
    [c, c ^ d, gf256::mul(d, LAMBDA)]
}

impl<const T: usize> NearSkews<T> {
    /// The skews of the group at `base`. `pack` gives a table, `even` holds those of [`EVEN_POINTS`].
    #[inline(always)]
    pub(in crate::gf256::kernel) fn near(
        base: u16,
        even: &[[u8; T]; GROUP / 2],
        pack: impl Fn(u8) -> [u8; T],
    ) -> Self {
        let mut skews =
            Skews { rows: GROUP, low: [[0; T]; GROUP], sum: [[0; T]; GROUP], high: [[0; T]; GROUP] };
        for layer in 0..6 {
            // Only the low byte changes within a group.
            let [low, sum, high] = factors_of(point(base >> layer)).map(&pack);
            let start = GROUP - (GROUP >> layer);
            for (i, even) in even.iter().enumerate().take((GROUP / 2) >> layer) {
                for byte in 0..T {
                    skews.low[start + i][byte] = even[byte] ^ low[byte];
                    skews.sum[start + i][byte] = even[byte] ^ sum[byte];
                }
                skews.high[start + i] = high;
            }
        }
        skews
    }
}

impl<const T: usize> FarSkews<T> {
    /// The skews of a tile of `rows` rows in the coset at `base`.
    #[inline(always)]
    pub(in crate::gf256::kernel) fn far(base: u16, rows: usize, pack: impl Fn(u8) -> [u8; T]) -> Self {
        let empty = [[0; T]; MAX_TILE];
        let mut skews = Skews { rows, low: empty, sum: empty, high: empty };
        for layer in 0..rows.trailing_zeros() {
            let start = rows - (rows >> layer);
            for i in 0..(rows / 2) >> layer {
                let w = point((base >> (6 + layer)) ^ (2 * i as u16));
                [skews.low[start + i], skews.sum[start + i], skews.high[start + i]] =
                    factors_of(w).map(&pack);
            }
        }
        skews
    }
}

impl<const T: usize, const N: usize> Skews<T, N> {
    /// The skews of `layer` for block `block` of a pass in which the layer has `K` of them.
    #[inline(always)]
    pub(in crate::gf256::kernel) fn layer<const K: usize>(
        &self,
        layer: usize,
        block: usize,
    ) -> Layer<'_, T, K> {
        let start = self.rows - (self.rows >> layer) + K * block;
        Layer {
            low: self.low[start..].first_chunk().expect("a skew for each join"),
            sum: self.sum[start..].first_chunk().expect("a skew for each join"),
            high: self.high[start..].first_chunk().expect("a skew for each join"),
        }
    }
}

/// Joins rows of registers by the skews of a layer, in both of which `$k` counts from 0.
macro_rules! joins {
    ($join:ident, $r:ident, $layer:expr, $symbols:expr, [$(($x:literal, $y:literal, $k:literal)),*]) => {{
        let layer = $layer;
        $( ($r[$x], $r[$y]) = $join($r[$x], $r[$y], [&layer.low[$k], &layer.sum[$k], &layer.high[$k]], $symbols); )*
    }};
}
pub(crate) use joins;

/// Joins planes of rows by tables: references, or what is loaded of them.
macro_rules! joins_by {
    ($join:ident, $r:ident, $tables:expr, [$(($x:literal, $y:literal, $k:literal)),*]) => {
        $( ($r[$x], $r[$y]) = $join($r[$x], $r[$y], &$tables[$k]); )*
    };
}
pub(crate) use joins_by;

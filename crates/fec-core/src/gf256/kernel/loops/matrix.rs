//! The loops of a matrix, which the SIMD kernels share.
//!
//! A kernel sums several outputs in registers over all sources, so a source is loaded once for each group of outputs
//! and an output is stored once. Three loops stand around these sums, from the outside:
//!
//! - tiles of columns, so short that the sources of a tile stay in the first cache while every group reads
//!   them; sets with short rows are taken several to a tile;
//! - groups of outputs: all columns of the tile read a group's tables while they are in the first cache;
//! - the sets of the tile, and their columns.
//!
//! The first group that reads a tile prefetches the next bytes of each row. Processors follow some thirty streams by
//! themselves; with more sources than that, those bytes would come with the full delay of memory.

use crate::gf256::kernel::contract::{Matrix, Rows, output_bytes};
use crate::gf256::kernel::tuning::{Store, Tuning};
use std::ops::Range;

/// The groups of outputs for a kernel that sums up to `max` of `wanted` outputs at once: as few as possible, their
/// sizes equal to within one.
pub(crate) fn groups(wanted: usize, max: usize) -> impl Iterator<Item = Range<usize>> {
    let count = wanted.div_ceil(max);
    (0..count).map(move |g| g * wanted / count..(g + 1) * wanted / count)
}

/// The cut of the sets of one call.
pub(crate) struct Cut {
    /// Sets that go through the groups together.
    pub(crate) sets: usize,
    /// Bytes of each row that go through the groups together: a multiple of 64.
    pub(crate) tile_len: usize,
    /// The kind of stores for outputs.
    pub(crate) store: Store,
}

impl Cut {
    /// The cut for sets with `k` rows in, the longest of `row_len` bytes, and `bytes` of output in all.
    pub(crate) fn new(tuning: Tuning, k: usize, row_len: usize, bytes: usize) -> Cut {
        let tile_len = (tuning.tile / k).clamp(256, 4096) / 64 * 64;
        Cut { sets: (tile_len / row_len.max(1)).max(1), tile_len, store: tuning.store_of(bytes) }
    }
}

/// The most rows that fit one set of the first cache, whatever their distance: the cache has 8 to 16 ways.
pub(crate) const FEW: usize = 12;

/// The moves of rows between memory and caches.
#[derive(Clone, Copy)]
pub(crate) struct RowMoves {
    /// Bytes by which sources are prefetched ahead, if they are.
    pub(crate) sources_ahead: Option<usize>,
    /// Bytes by which outputs are prefetched ahead, if they are.
    pub(crate) outputs_ahead: Option<usize>,
    /// True if outputs are stored past the caches.
    pub(crate) stream: bool,
}

/// Goes over the columns of all sets, and calls `columns` with a group of outputs, the rows of one set (those of the
/// group alone), and the columns. Returns how outputs are stored.
#[inline(always)]
pub(in crate::gf256::kernel) fn tiles(
    matrix: Matrix<'_>,
    sets: &mut [Rows<'_, '_, '_, '_>],
    mut columns: impl FnMut(Range<usize>, &[&[u8]], &mut [&mut [u8]], Range<usize>, RowMoves),
) -> Store {
    let row_len = sets.iter().map(|(src, _)| src[0].len()).max().unwrap_or(0);
    let cut = Cut::new(matrix.tuning, matrix.k, row_len, output_bytes(sets));
    for sets in sets.chunks_mut(cut.sets) {
        for start in (0..row_len).step_by(cut.tile_len) {
            for group in groups(matrix.wanted, matrix.tuning.sums) {
                let ahead =
                    Some(matrix.tuning.prefetch).filter(|&ahead| ahead > 0 && start + ahead < row_len);
                let moves = RowMoves {
                    sources_ahead: ahead.filter(|_| group.start == 0),
                    outputs_ahead: ahead.filter(|_| cut.store == Store::Prefetch),
                    stream: cut.store == Store::Stream,
                };
                for (src, dst) in sets.iter_mut() {
                    let end = src[0].len().min(start + cut.tile_len);
                    columns(group.clone(), src, &mut dst[group.clone()], start..end, moves);
                }
            }
        }
    }
    cut.store
}

/// Defines `run` and `MAX_OUTPUTS`. `step` is the bytes of a row that go through the registers at once, `outputs` lists
/// the numbers from 1 to the most outputs that they hold. `kernel/mod.rs` says what it needs.
macro_rules! matrix {
    (#[$features:meta] step: $step:expr, table_len: $table_len:expr, outputs: $outputs:tt) => {
        /// Most outputs that the registers hold.
        const MAX_OUTPUTS: usize = $outputs.len();

        #[$features]
        fn run(
            matrix: crate::gf256::kernel::contract::Matrix<'_>,
            sets: &mut [crate::gf256::kernel::contract::Rows<'_, '_, '_, '_>],
        ) {
            let store =
                crate::gf256::kernel::loops::matrix::tiles(matrix, sets, |outputs, src, dst, tile, moves| {
                    let tables = matrix.tables.as_chunks().0;
                    group(&tables[outputs.start * matrix.k..outputs.end * matrix.k], src, dst, tile, moves);
                });
            if store == crate::gf256::kernel::tuning::Store::Stream {
                fence();
            }
        }

        /// A group of outputs over the columns in `tile`.
        #[$features]
        fn group(
            tables: &[[u8; $table_len]],
            src: &[&[u8]],
            dst: &mut [&mut [u8]],
            tile: std::ops::Range<usize>,
            moves: crate::gf256::kernel::loops::matrix::RowMoves,
        ) {
            crate::gf256::kernel::loops::each::each!($outputs, |N| if dst.len() == N {
                return columns::<N>(tables, src, dst, tile, moves);
            });
            unreachable!("a group is never larger than MAX_OUTPUTS");
        }

        /// The same for `N` outputs.
        #[$features]
        fn columns<const N: usize>(
            tables: &[[u8; $table_len]],
            src: &[&[u8]],
            dst: &mut [&mut [u8]],
            tile: std::ops::Range<usize>,
            moves: crate::gf256::kernel::loops::matrix::RowMoves,
        ) {
            let tables = tables.as_chunks::<N>().0;
            let dst: &mut [&mut [u8]; N] = dst.first_chunk_mut().expect("a row for each output");
            let is_few = src.len() <= crate::gf256::kernel::loops::matrix::FEW;
            for at in tile.step_by($step) {
                let ahead = moves.sources_ahead.filter(|_| $step == 64 || at.is_multiple_of(64));
                let end = at + $step;
                let mut sums = [zero(); N];
                for (row, tables) in src.iter().zip(tables) {
                    match ahead {
                        Some(ahead) if is_few => prefetch(row, at + ahead),
                        Some(ahead) => prefetch_past_l1(row, at + ahead),
                        None => {}
                    }
                    let source = load(row[at..end].first_chunk::<{ $step }>().expect("rows have one length"));
                    for (sum, table) in sums.iter_mut().zip(tables) {
                        *sum = add(*sum, source, table);
                    }
                }
                if let Some(ahead) = moves.outputs_ahead {
                    dst.iter().for_each(|row| prefetch_write(row, at + ahead));
                }
                // The kind of store is a constant in each of the loops.
                if moves.stream {
                    for (row, sum) in dst.iter_mut().zip(sums) {
                        store(
                            row[at..end].first_chunk_mut::<{ $step }>().expect("rows have one length"),
                            sum,
                            true,
                        );
                    }
                } else {
                    for (row, sum) in dst.iter_mut().zip(sums) {
                        store(
                            row[at..end].first_chunk_mut::<{ $step }>().expect("rows have one length"),
                            sum,
                            false,
                        );
                    }
                }
            }
        }
    };
}
pub(crate) use matrix;

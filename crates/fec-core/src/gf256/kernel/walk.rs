//! The walk that the SIMD kernels share.
//!
//! A kernel sums several outputs in registers over all sources, so a source is loaded once for each group of
//! outputs and an output is stored once. Three loops stand around that, from the outside:
//!
//! - tiles of columns, so short that the sources of a tile stay in the first cache while every group reads
//!   them; sets with short rows are taken several to a tile;
//! - groups of outputs, whose tables are then read by all columns of the tile while they are in the first
//!   cache;
//! - the sets of the tile, and their columns.
//!
//! The first group that reads a tile prefetches what comes after: processors follow some thirty streams by
//! themselves, and with more sources than that each row's next piece would come as late as memory is far.
//!
//! The loops are a macro and not generic code, because a function with `#[target_feature]` is safe to call
//! only from one with the same features: each kernel file gets its own copy, and needs `unsafe` for loads and
//! stores alone.

use super::tuning::{Store, Tuning};

/// The groups into which a kernel that sums up to `max` outputs at once divides `wanted` outputs: as few as
/// possible, their sizes equal to within one.
pub(super) fn groups(wanted: usize, max: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let count = wanted.div_ceil(max);
    (0..count).map(move |g| g * wanted / count..(g + 1) * wanted / count)
}

/// How the sets of one call are cut.
pub(super) struct Cut {
    /// Sets that go through the groups together.
    pub(super) sets: usize,
    /// Bytes of each row that go through the groups together: a multiple of 64.
    pub(super) tile_len: usize,
    /// How outputs are stored.
    pub(super) store: Store,
}

impl Cut {
    /// The cut for sets with `k` rows in, the longest of `row_len` bytes, and `bytes` of output in all.
    pub(super) fn new(tuning: Tuning, k: usize, row_len: usize, bytes: usize) -> Cut {
        let tile_len = (tuning.tile / k).clamp(256, 4096) / 64 * 64;
        Cut { sets: (tile_len / row_len.max(1)).max(1), tile_len, store: tuning.store_of(bytes) }
    }
}

/// How rows are moved: how many bytes ahead sources and outputs are prefetched, if they are, and whether outputs
/// are stored past the caches.
#[derive(Clone, Copy)]
pub(super) struct Way {
    pub(super) sources: Option<usize>,
    pub(super) outputs: Option<usize>,
    pub(super) stream: bool,
}

/// Defines `run`, the kernel's walk.
///
/// The file provides, with the same `#[target_feature]`, `load(&[u8; STEP]) -> Source`, `zero() -> Sum`,
/// `add(Sum, Source, &[u8; TABLE_LEN]) -> Sum` (the sum plus the product) and `store(&mut [u8; STEP], Sum,
/// stream: bool)`; and, safe anywhere, `prefetch(row: &[u8], at: usize)` and `prefetch_write(row: &[u8], at:
/// usize)`, hints, and `fence()`, which orders streamed stores before later ones. STEP divides 64. `outputs` counts from 1 to the most outputs that the
/// registers hold.
macro_rules! walk {
    (features: $features:literal, step: $step:expr, table_len: $table_len:expr, outputs: $($n:literal)*) => {
        /// Most outputs that the registers hold.
        const MAX_OUTPUTS: usize = [$($n),*].len();

        /// Bytes of each row that go through the registers at once.
        const STEP: usize = $step;

        #[target_feature(enable = $features)]
        fn run(matrix: super::contract::Matrix<'_>, sets: &mut [super::contract::Rows<'_, '_, '_, '_>]) {
            let row_len = sets.iter().map(|(src, _)| src[0].len()).max().unwrap_or(0);
            let cut = super::walk::Cut::new(matrix.tuning, matrix.k, row_len, super::contract::output_bytes(sets));
            let tables = matrix.tables.as_chunks::<{ $table_len }>().0;
            for sets in sets.chunks_mut(cut.sets) {
                for start in (0..row_len).step_by(cut.tile_len) {
                    for group in super::walk::groups(matrix.wanted, matrix.tuning.sums) {
                        let ahead = Some(matrix.tuning.prefetch).filter(|&ahead| ahead > 0 && start + ahead < row_len);
                        let way = super::walk::Way {
                            sources: ahead.filter(|_| group.start == 0),
                            outputs: ahead.filter(|_| cut.store == super::tuning::Store::Prefetch),
                            stream: cut.store == super::tuning::Store::Stream,
                        };
                        let tables = &tables[group.start * matrix.k..group.end * matrix.k];
                        for (src, dst) in sets.iter_mut() {
                            let end = src[0].len().min(start + cut.tile_len);
                            let dst = &mut dst[group.clone()];
                            match group.len() {
                                $($n => columns::<$n>(tables, src, dst, start..end, way),)*
                                _ => unreachable!("a group is never larger than MAX_OUTPUTS"),
                            }
                        }
                    }
                }
            }
            if cut.store == super::tuning::Store::Stream {
                fence();
            }
        }

        /// One group of `N` outputs over the columns in `tile`.
        #[target_feature(enable = $features)]
        fn columns<const N: usize>(
            tables: &[[u8; $table_len]],
            src: &[&[u8]],
            dst: &mut [&mut [u8]],
            tile: std::ops::Range<usize>,
            way: super::walk::Way,
        ) {
            let tables = tables.as_chunks::<N>().0;
            let dst: &mut [&mut [u8]; N] = dst.first_chunk_mut().expect("a row for each output");
            for at in tile.step_by($step) {
                if let Some(ahead) = way.sources
                    && ($step == 64 || at.is_multiple_of(64))
                {
                    src.iter().for_each(|row| prefetch(row, at + ahead));
                }
                let end = at + $step;
                let mut sums = [zero(); N];
                for (row, tables) in src.iter().zip(tables) {
                    let source = load(row[at..end].first_chunk().expect("rows have one length"));
                    for (sum, table) in sums.iter_mut().zip(tables) {
                        *sum = add(*sum, source, table);
                    }
                }
                if let Some(ahead) = way.outputs {
                    dst.iter().for_each(|row| prefetch_write(row, at + ahead));
                }
                // The kind of store as a constant in each of the loops.
                if way.stream {
                    for (row, sum) in dst.iter_mut().zip(sums) {
                        store(row[at..end].first_chunk_mut().expect("rows have one length"), sum, true);
                    }
                } else {
                    for (row, sum) in dst.iter_mut().zip(sums) {
                        store(row[at..end].first_chunk_mut().expect("rows have one length"), sum, false);
                    }
                }
            }
        }
    };
}
pub(super) use walk;

//! The runner of programs that the kernels share.
//!
//! All passes go over one tile of columns, whose blocks stay in the nearest caches, before the next tile begins. A tile
//! takes columns from several sets, so a batch of sets with short rows pays for the beginning of each pass no more
//! often than one set with long rows. Memory holds a block as columns of 64 bytes, and the sixteen rows of a column
//! stand together: a pass over a column reads and writes one kilobyte at one address, and no two rows compete for a
//! place in the cache.

use std::ops::Range;

use crate::gf256::kernel::aligned::LINE;
use crate::gf256::kernel::contract::{Rows, output_bytes};
use crate::gf256::kernel::program::{Column, Program};
use crate::gf256::kernel::tuning::{MAX_COLUMNS, Store, Tuning};

/// A line of every row of one set.
#[derive(Clone, Copy, Default)]
pub(crate) struct Place {
    /// The set.
    pub(crate) set: usize,
    /// The line's first byte in each row.
    pub(crate) at: usize,
}

impl Place {
    /// Line `number` of sets with `lines` lines each, one set after the other.
    pub(crate) fn new(number: usize, lines: usize) -> Place {
        Place { set: number / lines, at: number % lines * LINE }
    }

    /// The line after this one.
    pub(crate) fn next(self, lines: usize) -> Place {
        if self.at + LINE < lines * LINE {
            Place { at: self.at + LINE, ..self }
        } else {
            Place { set: self.set + 1, at: 0 }
        }
    }
}

/// The line of `row` at byte `at`. The end is compared with the row's length in memory: with the number of the line,
/// each row's length would have to be loaded and divided first.
#[inline(always)]
pub(crate) fn line_at(row: &[u8], at: usize) -> &[u8; LINE] {
    row[..at + LINE].last_chunk().expect(END)
}

/// The same, to be written.
#[inline(always)]
pub(crate) fn line_at_mut(row: &mut [u8], at: usize) -> &mut [u8; LINE] {
    row[..at + LINE].last_chunk_mut().expect(END)
}

/// The bytes up to the end of a line hold that line.
const END: &str = "bytes that end with a line";

/// Passes borrow several blocks at a time; a program never names one twice in a pass that does.
const DISTINCT: &str = "the blocks of a pass are distinct";

/// A column of a tile: its line, and one to be prefetched.
pub(crate) type Step = (Place, Option<Place>);

/// The columns that a pass works on.
#[derive(Clone, Copy)]
pub(crate) struct Tile<'a> {
    /// Columns from one block to the next.
    pub(crate) columns: usize,
    /// The line of each column of this tile, and one to be prefetched.
    pub(crate) places: &'a [Step],
    /// True if outputs are stored past the caches.
    pub(crate) stream: bool,
    /// True if lines of outputs are prefetched too.
    pub(crate) prefetch_outputs: bool,
}

impl<'a> Tile<'a> {
    /// The columns of a block.
    #[inline]
    pub(crate) fn columns_of(&self, block: usize) -> Range<usize> {
        block * self.columns..block * self.columns + self.places.len()
    }

    /// The index of a column of a block.
    #[inline]
    pub(crate) fn place(&self, block: usize, column: usize) -> usize {
        block * self.columns + column
    }

    /// A column of each of these blocks, which must differ.
    #[inline]
    pub(crate) fn column<'b, const N: usize>(
        &self,
        blocks: &'b mut [Column],
        numbers: [usize; N],
        column: usize,
    ) -> [&'b mut Column; N] {
        blocks.get_disjoint_mut(numbers.map(|block| self.place(block, column))).expect(DISTINCT)
    }

    /// All columns of each of these blocks, which must differ.
    #[inline]
    pub(crate) fn all_columns<'b, const N: usize>(
        &self,
        blocks: &'b mut [Column],
        numbers: [usize; N],
    ) -> [&'b mut [Column]; N] {
        blocks.get_disjoint_mut(numbers.map(|block| self.columns_of(block))).expect(DISTINCT)
    }

    /// The columns of the tile, cut where one set ends and the next begins.
    #[inline]
    pub(crate) fn stretches(&self) -> impl Iterator<Item = Stretch<'a>> + use<'a> {
        let mut column = 0;
        let mut rest = self.places;
        std::iter::from_fn(move || {
            let (Place { set, at }, _) = *rest.first()?;
            // A tile mostly lies in one set.
            let count = if rest[rest.len() - 1].0.set == set {
                rest.len()
            } else {
                rest.iter().take_while(|(place, _)| place.set == set).count()
            };
            let places;
            (places, rest) = rest.split_at(count);
            let stretch = Stretch { column, set, at, places };
            column += count;
            Some(stretch)
        })
    }
}

/// Columns of a tile that follow each other in one set.
#[derive(Clone, Copy)]
pub(crate) struct Stretch<'a> {
    /// The first column.
    pub(crate) column: usize,
    /// The set.
    pub(crate) set: usize,
    /// The first byte, in each row, of the first column's line.
    pub(crate) at: usize,
    places: &'a [Step],
}

impl Stretch<'_> {
    /// Number of columns.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// The lines to be prefetched.
    #[inline]
    pub(crate) fn ahead(&self) -> impl Iterator<Item = Place> {
        self.places.iter().filter_map(|(_, next)| *next)
    }

    /// The columns' lines of `row`.
    #[inline]
    pub(crate) fn lines<'r>(&self, row: &'r [u8]) -> &'r [[u8; LINE]] {
        &row.as_chunks().0[self.at / LINE..][..self.len()]
    }

    /// The columns' lines of four rows.
    #[inline(always)]
    pub(crate) fn lines_of_four<'r>(&self, [a, b, c, d]: [&'r [u8]; 4]) -> [&'r [[u8; LINE]]; 4] {
        [self.lines(a), self.lines(b), self.lines(c), self.lines(d)]
    }

    /// The columns' lines of the first four of `rows`, to be written.
    #[inline(always)]
    pub(crate) fn lines_of_four_mut<'r>(&self, rows: &'r mut [&mut [u8]]) -> [&'r mut [[u8; LINE]]; 4] {
        let [a, b, c, d] = rows.first_chunk_mut().expect("a row for each output");
        [self.lines_mut(a), self.lines_mut(b), self.lines_mut(c), self.lines_mut(d)]
    }

    /// The columns' lines of `row`, to be written.
    #[inline]
    pub(crate) fn lines_mut<'r>(&self, row: &'r mut [u8]) -> &'r mut [[u8; LINE]] {
        &mut row.as_chunks_mut().0[self.at / LINE..][..self.len()]
    }
}

/// Goes over the columns of all sets, a tile at a time: `run` is called with the sets that the tile's places refer to.
/// Tiles have `columns` columns at most. Returns how outputs are stored.
#[inline(always)]
pub(crate) fn tiles(
    program: &Program,
    columns: usize,
    tuning: Tuning,
    sets: &mut [Rows<'_, '_, '_, '_>],
    mut run: impl FnMut(&mut [Rows<'_, '_, '_, '_>], Tile<'_>),
) -> Store {
    let store = tuning.store_of(output_bytes(sets));
    let ahead = tuning.prefetch.div_ceil(LINE);
    let mut places = [(Place::default(), None); MAX_COLUMNS];
    for sets in sets.chunk_by_mut(|(a, _), (b, _)| a[0].len() == b[0].len()) {
        let lines = sets[0].0[0].len() / LINE;
        let total = lines * sets.len();
        // Sets that fit the second cache together are not worth a look ahead from one to the next.
        let across = 2 * total * LINE * program.sources.len() > tuning.past;
        // A tile with several sets takes whole ones: a pass then looks each up once.
        let tile_columns = if lines < columns { columns / lines.max(1) * lines.max(1) } else { columns };
        for start in (0..total).step_by(tile_columns) {
            let used = tile_columns.min(total - start);
            let mut place = Place::new(start, lines);
            let mut next = Place::new(start + ahead, lines);
            for places in &mut places[..used] {
                let useful = next.set == place.set || across && next.set < sets.len();
                *places = (place, (ahead > 0 && useful).then_some(next));
                (place, next) = (place.next(lines), next.next(lines));
            }
            let (stream, prefetch_outputs) = (store == Store::Stream, store == Store::Prefetch);
            run(sets, Tile { columns, places: &places[..used], stream, prefetch_outputs });
        }
    }
    store
}

/// Defines `run_program`, which takes a tile through all passes. `kernel/mod.rs` says what it needs.
macro_rules! runner {
    (#[$features:meta] table_len: $table_len:expr) => {
        #[$features]
        fn run_program(
            program: &crate::gf256::kernel::program::Program,
            tables: &[u8],
            scratch: &mut [crate::gf256::kernel::program::Column],
            tuning: crate::gf256::kernel::tuning::Tuning,
            sets: &mut [crate::gf256::kernel::contract::Rows<'_, '_, '_, '_>],
        ) {
            let columns = scratch.len() / (program.blocks + 1);
            let (stage, blocks) = scratch.split_at_mut(columns);
            let tables = tables.as_chunks::<{ $table_len }>().0;
            let store =
                crate::gf256::kernel::loops::runner::tiles(program, columns, tuning, sets, |sets, tile| {
                    for pass in &program.passes {
                        run_pass(pass, &program.sources, tables, blocks, stage, sets, tile);
                    }
                });
            if store == crate::gf256::kernel::tuning::Store::Stream {
                fence();
            }
        }
    };
}
pub(crate) use runner;

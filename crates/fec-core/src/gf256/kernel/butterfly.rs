//! The runner of programs that the kernels share.
//!
//! Columns are taken in tiles: all passes go over one tile, whose blocks stay in the nearest caches, before
//! the next tile begins. In memory a block is cut into columns of 64 bytes, and the sixteen rows of a column
//! stand together: a pass over a column reads and writes one kilobyte at one address, and no two rows compete
//! for a place in the cache.
//!
//! Like the walk of the matrix kernels, and for the same reason, this is a macro: functions with
//! `#[target_feature]` are safe to call only from those with the same features.

use super::aligned::LINE;
use super::program::BLOCK;

/// The sixteen rows of a block in one column.
pub(super) type Column = [[u8; LINE]; BLOCK];

/// Most columns of a tile. With fewer, every pass takes long to begin; with more, blocks leave the first cache;
/// and with four or eight, equal rows of all blocks would compete for the same places in it.
const TILE_COLUMNS: usize = 6;

/// Columns of a tile on rows of `row_len` bytes.
pub(super) fn tile_columns(row_len: usize) -> usize {
    (row_len / LINE).clamp(1, TILE_COLUMNS)
}

/// Sixteen lines on their way to as many rows.
#[repr(align(64))]
pub(super) struct Stage(pub(super) Column);

/// Repeats a block for each number, as a constant: loops over registers must not be left to the optimiser.
/// Without numbers: for each row of a block.
macro_rules! each {
    ($i:ident => $body:block) => {
        super::butterfly::each!($i in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 => $body)
    };
    ($i:ident in $($n:literal)* => $body:block) => {{ $({ const $i: usize = $n; $body })* }};
}
pub(super) use each;

/// Defines `run_program`.
///
/// The file provides, with the same attributes, for `Vector`, a copyable vector of WIDTH bytes, where WIDTH
/// divides 64: `load_vector(&[u8; WIDTH]) -> Vector`, `store_vector(&mut [u8; WIDTH], Vector, stream: bool)`,
/// `zero_vector() -> Vector`, `xor(Vector, Vector) -> Vector`, `product(Vector, &[u8; TABLE_LEN]) -> Vector`;
/// and, safe anywhere, `prefetch(row: &[u8], at: usize)`, a hint, and `fence()`, which orders streamed stores
/// before later ones.
macro_rules! butterfly {
    ($(#[$features:meta])* width: $vector_len:literal, table_len: $table_len:expr) => {
        use super::butterfly::{Column, Stage, each, tile_columns};
        use super::program::{Factor, Merge, Outputs, Pass, Term};
        use super::{AlignedBytes, BLOCK, LINE, Program, past_caches};

        /// Bytes of a vector.
        const VECTOR: usize = $vector_len;

        /// Vectors of a line.
        const PARTS: usize = LINE / VECTOR;

        /// Rows that a sum takes at once: as many as registers hold.
        const SUMS: usize = if PARTS == 1 { 16 } else { 4 };

        type Table = [u8; $table_len];

        $(#[$features])*
        fn run_program(
            program: &Program,
            tables: &[u8],
            sets: &mut [super::Rows<'_, '_, '_, '_>],
        ) {
            let row_len = sets.iter().map(|(src, _)| src[0].len()).max().unwrap_or(0);
            let wanted = sets.first().map_or(0, |(_, dst)| dst.len());
            let columns = tile_columns(row_len);
            let stream = past_caches(wanted, sets.len(), row_len);
            let tables = tables.as_chunks::<{ $table_len }>().0;
            let mut bytes =
                AlignedBytes::zeroed(program.blocks * columns * size_of::<Column>());
            let blocks = bytes.as_chunks_mut().0.as_chunks_mut().0;
            for (src, dst) in sets {
                let row_len = src[0].len();
                let lines = row_len / LINE;
                for start in (0..lines).step_by(columns) {
                    let tile = Tile { columns, at: start * LINE, used: columns.min(lines - start), stream };
                    for pass in &program.passes {
                        run_pass(pass, tables, blocks, src, dst, tile);
                    }
                }
            }
            if stream {
                fence();
            }
        }

        /// Where a pass works.
        #[derive(Clone, Copy)]
        struct Tile {
            /// Columns from one block to the next.
            columns: usize,
            /// The first byte of the tile in each row.
            at: usize,
            /// Columns of this tile.
            used: usize,
            /// Whether outputs are stored past the caches.
            stream: bool,
        }

        $(#[$features])*
        fn run_pass(
            pass: &Pass,
            tables: &[Table],
            blocks: &mut [Column],
            src: &[&[u8]],
            dst: &mut [&mut [u8]],
            tile: Tile,
        ) {
            match pass {
                &Pass::Inverse { first, to, skews, origin, merge } => {
                    let rows = src[first..].first_chunk().expect("sixteen sources");
                    let skews = tables[skews..].first_chunk().expect("fifteen skews");
                    if origin {
                        inverse_pass::<true>(blocks, rows, to, skews, tables, merge, tile);
                    } else {
                        inverse_pass::<false>(blocks, rows, to, skews, tables, merge, tile);
                    }
                }
                Pass::Sum { to, from, terms } => sum_pass(blocks, *to, *from, terms, tables, tile),
                &Pass::Tail { to, residue, first, known, skews } => {
                    let skews = tables[skews..].first_chunk().expect("fifteen skews");
                    tail_pass(blocks, &src[first..first + known], to, residue, skews, tile);
                }
                Pass::Forward { from, plus, keep, skews, tap, out } => {
                    let skews = tables[*skews..].first_chunk().expect("fifteen skews");
                    let input = Input { from: *from, plus: *plus, tables, keep: *keep };
                    let tap = tap.map(|tap| (src[tap.source], tap.to));
                    match out.computed {
                        16 => forward_pass::<16>(blocks, input, skews, tap, dst, out, tile),
                        8 => forward_pass::<8>(blocks, input, skews, tap, dst, out, tile),
                        _ => forward_pass::<4>(blocks, input, skews, tap, dst, out, tile),
                    }
                }
            }
        }

        /// What a forward pass transforms.
        #[derive(Clone, Copy)]
        struct Input<'a> {
            from: usize,
            plus: Option<Term>,
            tables: &'a [Table],
            keep: Option<[usize; 2]>,
        }

        #[inline]
        $(#[$features])*
        fn get(line: &[u8; LINE], part: usize) -> Vector {
            load_vector(&line.as_chunks().0[part])
        }

        #[inline]
        $(#[$features])*
        fn put(line: &mut [u8; LINE], part: usize, vector: Vector) {
            store_vector(&mut line.as_chunks_mut().0[part], vector, false);
        }

        /// The line of `row` at byte `at`.
        #[inline]
        fn line(row: &[u8], at: usize) -> &[u8; LINE] {
            row[at..].first_chunk().expect("rows have one length")
        }

        $(#[$features])*
        fn inverse_pass<const ORIGIN: bool>(
            blocks: &mut [Column],
            rows: &[&[u8]; BLOCK],
            to: usize,
            skews: &[Table; BLOCK - 1],
            tables: &[Table],
            merge: Option<Merge>,
            tile: Tile,
        ) {
            for column in 0..tile.used {
                let at = tile.at + column * LINE;
                for part in 0..PARTS {
                    let mut r = [zero_vector(); BLOCK];
                    each!(I => {
                        r[I] = get(line(rows[I], at), part);
                    });
                    if part == 0 {
                        each!(I => {
                            prefetch(rows[I], at + tile.columns * LINE);
                        });
                    }
                    inverse::<ORIGIN>(&mut r, skews);
                    if let Some(merge) = merge {
                        let low = merge.low * tile.columns + column;
                        let place = &mut blocks[low];
                        each!(I => { r[I] = xor(r[I], get(&place[I], part)); });
                        match merge.by {
                            None => {}
                            Some(Factor::One) => each!(I => {
                                let sum = xor(get(&place[I], part), r[I]);
                                put(&mut place[I], part, sum);
                            }),
                            Some(Factor::Table(number)) => {
                                let table = &tables[number];
                                each!(I => {
                                    let sum = xor(get(&place[I], part), product(r[I], table));
                                    put(&mut place[I], part, sum);
                                });
                            }
                        }
                        if let Some(more) = merge.more {
                            let [to_low, to_high] = more.map(|block| block * tile.columns + column);
                            each!(I => {
                                let sum = xor(get(&blocks[low][I], part), get(&blocks[to_low][I], part));
                                put(&mut blocks[low][I], part, sum);
                                r[I] = xor(r[I], get(&blocks[to_high][I], part));
                            });
                        }
                    }
                    let to = &mut blocks[to * tile.columns + column];
                    each!(I => {
                        put(&mut to[I], part, r[I]);
                    });
                }
            }
        }

        #[inline(never)]
        $(#[$features])*
        fn sum_pass(
            blocks: &mut [Column],
            to: usize,
            from: usize,
            terms: &[Term],
            tables: &[Table],
            tile: Tile,
        ) {
            // In place, only the rows that change are touched.
            let rows = match terms.iter().map(|term| term.rows).max() {
                Some(rows) if to == from => rows,
                _ => BLOCK,
            };
            let groups = rows / SUMS * SUMS;
            for column in 0..tile.used {
                for start in (0..groups).step_by(SUMS) {
                    for part in 0..PARTS {
                        let from = group(&blocks[from * tile.columns + column], start);
                        let mut sums = [zero_vector(); SUMS];
                        each!(I => {
                            if I < SUMS {
                                sums[I % SUMS] = get(&from[I % SUMS], part);
                            }
                        });
                        for term in terms {
                            let plus = group(&blocks[term.block * tile.columns + column], start);
                            match term.by {
                                Factor::One => each!(I => {
                                    if I < SUMS && start + I < term.rows {
                                        sums[I % SUMS] = xor(sums[I % SUMS], get(&plus[I % SUMS], part));
                                    }
                                }),
                                Factor::Table(number) => {
                                    let table = &tables[number];
                                    each!(I => {
                                        if I < SUMS && start + I < term.rows {
                                            let more = product(get(&plus[I % SUMS], part), table);
                                            sums[I % SUMS] = xor(sums[I % SUMS], more);
                                        }
                                    });
                                }
                            }
                        }
                        let to = &mut blocks[to * tile.columns + column];
                        each!(I => {
                            if I < SUMS {
                                put(&mut to[start + I % SUMS], part, sums[I % SUMS]);
                            }
                        });
                    }
                }
                for row in groups..rows {
                    for part in 0..PARTS {
                        let mut sum = get(&blocks[from * tile.columns + column][row], part);
                        for term in terms.iter().filter(|term| row < term.rows) {
                            let more = get(&blocks[term.block * tile.columns + column][row], part);
                            sum = match term.by {
                                Factor::One => xor(sum, more),
                                Factor::Table(number) => xor(sum, product(more, &tables[number])),
                            };
                        }
                        put(&mut blocks[to * tile.columns + column][row], part, sum);
                    }
                }
            }
        }

        /// The rows of a column that are summed at once, from `start`.
        #[inline]
        fn group(column: &Column, start: usize) -> &[[u8; LINE]; SUMS] {
            column[start..].first_chunk().expect("groups divide a block")
        }

        $(#[$features])*
        fn tail_pass(
            blocks: &mut [Column],
            rows: &[&[u8]],
            to: usize,
            residue: Option<usize>,
            skews: &[Table; BLOCK - 1],
            tile: Tile,
        ) {
            let known = rows.len();
            for column in 0..tile.used {
                let at = tile.at + column * LINE;
                rows.iter().for_each(|row| prefetch(row, at + tile.columns * LINE));
                for part in 0..PARTS {
                    let mut x = [zero_vector(); BLOCK];
                    if let Some(residue) = residue {
                        let residue = &blocks[residue * tile.columns + column];
                        each!(I => {
                            x[I] = get(&residue[I], part);
                        });
                    }
                    // Downwards: a first half that is known as a whole is transformed, added to the rest of the
                    // residue, and left behind as far as the rows above it need not be known.
                    macro_rules! layer {
                        ($width:literal, $skews:expr) => {
                            let start = (known - 1) / (2 * $width) * (2 * $width);
                            let node: &mut [Vector; 2 * $width] =
                                x[start..].first_chunk_mut().expect("a node of the block");
                            for i in 0..$width {
                                node[i] = xor(node[i], product(node[i + $width], &skews[$skews]));
                            }
                            if start + $width < known {
                                let mut half = [node[0]; $width];
                                for i in 0..$width {
                                    half[i] = get(line(rows[start + i], at), part);
                                }
                                inverse_some(&mut half, &skews[$skews + 1..]);
                                for i in 0..$width {
                                    node[i] = xor(node[i], half[i]);
                                    node[i + $width] = xor(node[i + $width], half[i]);
                                }
                            }
                        };
                    }
                    layer!(8, 0);
                    layer!(4, 8);
                    layer!(2, 12);
                    layer!(1, 14);
                    x[known - 1] = xor(x[known - 1], get(line(rows[known - 1], at), part));
                    // And upwards: those rows are known now.
                    for (width, skew) in [(1, 14), (2, 12), (4, 8), (8, 0)] {
                        let start = (known - 1) / (2 * width) * (2 * width);
                        for i in start + width..known {
                            x[i - width] = xor(x[i - width], product(x[i], &skews[skew]));
                        }
                    }
                    let to = &mut blocks[to * tile.columns + column];
                    for (i, (line, row)) in to.iter_mut().zip(x).enumerate() {
                        put(line, part, if i < known { row } else { zero_vector() });
                    }
                }
            }
        }

        #[allow(clippy::too_many_arguments)]
        #[inline(never)]
        $(#[$features])*
        fn forward_pass<const OUTPUTS: usize>(
            blocks: &mut [Column],
            input: Input<'_>,
            skews: &[Table; BLOCK - 1],
            tap: Option<(&[u8], usize)>,
            dst: &mut [&mut [u8]],
            out: &Outputs,
            tile: Tile,
        ) {
            let mut stage = Stage([[0; LINE]; BLOCK]);
            for column in 0..tile.used {
                let at = tile.at + column * LINE;
                for part in 0..PARTS {
                    let from = &blocks[input.from * tile.columns + column];
                    let mut r = [zero_vector(); BLOCK];
                    each!(I => {
                        r[I] = get(&from[I], part);
                    });
                    if let Some(Term { block, by, .. }) = input.plus {
                        let line = &blocks[block * tile.columns + column];
                        match by {
                            Factor::One => each!(I => { r[I] = xor(r[I], get(&line[I], part)); }),
                            Factor::Table(number) => {
                                let table = &input.tables[number];
                                each!(I => { r[I] = xor(r[I], product(get(&line[I], part), table)); });
                            }
                        }
                    }
                    if let Some(keep) = input.keep {
                        let [high, keep] = keep.map(|block| block * tile.columns + column);
                        each!(I => {
                            let sum = xor(r[I], get(&blocks[high][I], part));
                            put(&mut blocks[keep][I], part, sum);
                        });
                    }
                    forward::<OUTPUTS>(&mut r, skews);
                    if let Some((row, to)) = tap {
                        let difference = xor(r[0], get(line(row, at), part));
                        if part == 0 {
                            prefetch(row, at + tile.columns * LINE);
                        }
                        put(&mut blocks[to * tile.columns + column][0], part, difference);
                        each!(I => {
                            r[I] = xor(r[I], difference);
                        });
                    }
                    if PARTS == 1 && let Some(first) = out.run {
                        let rows: &mut [&mut [u8]; OUTPUTS] =
                            dst[first..].first_chunk_mut().expect("a row for each output");
                        each!(I => {
                            if I < OUTPUTS {
                                let line = rows[I % OUTPUTS][at..].first_chunk_mut();
                                store_vector(line.expect("rows have one length"), r[I], tile.stream);
                            }
                        });
                    } else {
                        each!(I => {
                            if I < OUTPUTS {
                                put(&mut stage.0[I], part, r[I]);
                            }
                        });
                    }
                }
                if PARTS > 1 || out.run.is_none() {
                    // Whole lines one after the other: the processor gathers the parts of a line that are stored
                    // past the caches only while few lines are open.
                    for &(output, row) in &out.rows {
                        let line: &mut [u8; LINE] =
                            dst[usize::from(row)][at..].first_chunk_mut().expect("rows have one length");
                        for (part, place) in line.as_chunks_mut().0.iter_mut().enumerate() {
                            store_vector(place, get(&stage.0[usize::from(output)], part), tile.stream);
                        }
                    }
                }
            }
        }

        /// Four layers of inverse butterflies, the narrowest first; at the origin the first skew of every layer
        /// is 0.
        #[inline]
        $(#[$features])*
        fn inverse<const ORIGIN: bool>(r: &mut [Vector; BLOCK], skews: &[Table; BLOCK - 1]) {
            macro_rules! pair {
                ($x:expr, $y:expr, $skew:expr, $group:expr) => {
                    r[$y] = xor(r[$y], r[$x]);
                    if !ORIGIN || $group > 0 {
                        r[$x] = xor(r[$x], product(r[$y], &skews[$skew]));
                    }
                };
            }
            each!(G in 0 1 2 3 => {
                pair!(4 * G, 4 * G + 1, 7 + 2 * G, 2 * G);
                pair!(4 * G + 2, 4 * G + 3, 8 + 2 * G, 2 * G + 1);
                pair!(4 * G, 4 * G + 2, 3 + G, G);
                pair!(4 * G + 1, 4 * G + 3, 3 + G, G);
            });
            each!(I in 0 1 2 3 => {
                pair!(I, I + 4, 1, 0);
                pair!(I + 8, I + 12, 2, 1);
                pair!(I, I + 8, 0, 0);
                pair!(I + 4, I + 12, 0, 0);
            });
        }

        /// All layers of inverse butterflies of up to eight values; their skews are the widest layer's first.
        #[inline]
        $(#[$features])*
        fn inverse_some<const N: usize>(r: &mut [Vector; N], skews: &[Table]) {
            let mut width = 1;
            while width < N {
                let layer = &skews[N / (2 * width) - 1..];
                for group in 0..N / (2 * width) {
                    for x in 2 * width * group..2 * width * group + width {
                        r[x + width] = xor(r[x + width], r[x]);
                        r[x] = xor(r[x], product(r[x + width], &layer[group]));
                    }
                }
                width *= 2;
            }
        }

        /// Four layers of butterflies, the widest first, as far as the first `OUTPUTS` outputs need them.
        #[inline]
        $(#[$features])*
        fn forward<const OUTPUTS: usize>(r: &mut [Vector; BLOCK], skews: &[Table; BLOCK - 1]) {
            macro_rules! pair {
                ($x:expr, $y:expr, $skew:expr) => {
                    if ($x) / (2 * ($y - $x)) * (2 * ($y - $x)) < OUTPUTS {
                        r[$x] = xor(r[$x], product(r[$y], &skews[$skew]));
                        if OUTPUTS > $y - $x {
                            r[$y] = xor(r[$y], r[$x]);
                        }
                    }
                };
            }
            each!(I in 0 1 2 3 => {
                pair!(I, I + 8, 0);
                pair!(I + 4, I + 12, 0);
                pair!(I, I + 4, 1);
                pair!(I + 8, I + 12, 2);
            });
            each!(G in 0 1 2 3 => {
                pair!(4 * G, 4 * G + 2, 3 + G);
                pair!(4 * G + 1, 4 * G + 3, 3 + G);
                pair!(4 * G, 4 * G + 1, 7 + 2 * G);
                pair!(4 * G + 2, 4 * G + 3, 8 + 2 * G);
            });
        }
    };
}
pub(super) use butterfly;

//! The passes of a program over the columns of a tile: what is loaded and stored around the butterflies.
//!
//! Rows are loaded where they are first used and stored as soon as they are done. A kernel whose registers do
//! not hold a block of lines goes over the tile twice, with two layers each time: left to itself, the compiler
//! would move more between registers and memory than that.

/// Defines `run_pass`, and all that is needed below it.
///
/// The file provides, with the same attributes, for `Line`, a copyable line of 64 bytes in one register or more:
/// `load_line(&[u8; 64]) -> Line`, `store_line(&mut [u8; 64], Line, stream: bool)`, `zero_line() -> Line`,
/// `xor_lines(Line, Line) -> Line`, `multiply(Line, &[u8; TABLE_LEN]) -> Line`; and, safe anywhere,
/// `prefetch(row: &[u8], at: usize)` and `prefetch_write(row: &[u8], at: usize)`, hints, and `fence()`, which
/// orders streamed stores before later ones; and `each!`, of `layers.rs`. `sums` is how many vectors are summed at
/// once: a divisor of 16. With `halves`, a pass goes over its tile twice, with two layers each time, so that four
/// rows at a time have to be in registers. With `tails`, each length of a tail has code of its own.
macro_rules! passes {
    ($(#[$features:meta])* table_len: $table_len:expr, sums: $sums:literal, halves: $halves:literal,
        tails: $tails:literal) => {
        use super::passes::APART;
        use super::program::{Factor, Input, Merge, Outputs, Pass, Term};
        use super::runner::{Column, Place, Tile};
        use super::{BLOCK, FEW, LINE, Rows};

        super::layers::layers! { $(#[$features])* }

        super::forward::forward! { $(#[$features])* }

        super::runner::runner! { $(#[$features])* table_len: $table_len }

        type Table = [u8; $table_len];

        /// Whether a pass goes over its tile twice, with two layers each time.
        const HALVES: bool = $halves;

        /// Whether each length of a tail has code of its own.
        const TAILS: bool = $tails;

        /// Vectors that are summed at once.
        const SUMS: usize = $sums;

        $(#[$features])*
        fn run_pass(
            pass: &Pass,
            sources: &[u8],
            tables: &[Table],
            blocks: &mut [Column],
            stage: &mut [Column],
            sets: &mut [Rows<'_, '_, '_, '_>],
            tile: Tile<'_>,
        ) {
            let skews = |skews: usize| tables[skews..].first_chunk().expect("fifteen skews");
            match pass {
                &Pass::Inverse { first, to, skews: at, origin, merge } => {
                    let rows = sources[first..].first_chunk().expect("sixteen sources");
                    if origin {
                        inverse_pass::<true>(blocks, sets, rows, to, skews(at), tables, merge, tile);
                    } else {
                        inverse_pass::<false>(blocks, sets, rows, to, skews(at), tables, merge, tile);
                    }
                }
                Pass::Sum { to, from, terms } => sum_pass(blocks, *to, *from, terms, tables, tile),
                &Pass::Tail { to, residue, first, known, skews: at } => {
                    let rows = &sources[first..first + known];
                    let skews = skews(at);
                    if !TAILS {
                        return tail_pass::<0>(blocks, sets, rows, to, residue, skews, tile);
                    }
                    super::layers::each!(KNOWN in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 => {
                        if known == KNOWN {
                            tail_pass::<KNOWN>(blocks, sets, rows, to, residue, skews, tile);
                        }
                    });
                }
                Pass::Forward { input, skews: at, tap, out } => {
                    let tap = tap.map(|tap| (usize::from(sources[tap.source]), tap.to));
                    let skews = skews(*at);
                    match out.computed {
                        16 => forward_pass::<16>(blocks, stage, sets, *input, skews, tables, tap, out, tile),
                        8 => forward_pass::<8>(blocks, stage, sets, *input, skews, tables, tap, out, tile),
                        _ => forward_pass::<4>(blocks, stage, sets, *input, skews, tables, tap, out, tile),
                    }
                }
            }
        }

        /// The line of `row` at byte `at`.
        #[inline]
        $(#[$features])*
        fn get(row: &[u8], at: usize) -> Line {
            load_line(&row.as_chunks().0[at / LINE])
        }

        #[inline]
        $(#[$features])*
        fn put(line: &mut [u8; LINE], vector: Line) {
            store_line(line, vector, false);
        }

        #[inline(never)]
        #[allow(clippy::too_many_arguments)]
        $(#[$features])*
        fn inverse_pass<const ORIGIN: bool>(
            blocks: &mut [Column],
            sets: &[Rows<'_, '_, '_, '_>],
            sources: &[u8; BLOCK],
            to: usize,
            skews: &[Table; BLOCK - 1],
            tables: &[Table],
            merge: Option<Merge>,
            tile: Tile<'_>,
        ) {
            let mut rows = [&[][..]; BLOCK];
            let mut rows_of = None;
            for (column, &(Place { set, at }, next)) in tile.places.iter().enumerate() {
                if rows_of != Some(set) {
                    rows_of = Some(set);
                    rows = sources.map(|source| sets[set].0[usize::from(source)]);
                }
                let mut r = [zero_line(); BLOCK];
                each!(G in 0 1 2 3 => {
                    each!(J in 0 1 2 3 => {
                        r[4 * G + J] = get(rows[4 * G + J], at);
                    });
                    inverse_near::<ORIGIN>(&mut r, G, skews);
                    if HALVES {
                        let to = &mut blocks[to * tile.columns + column];
                        each!(J in 0 1 2 3 => { put(&mut to[4 * G + J], r[4 * G + J]); });
                    }
                });
                match next {
                    None => {}
                    Some(next) if next.set == set => each!(I => { prefetch(rows[I], next.at); }),
                    Some(next) => {
                        let src = sets[next.set].0;
                        sources.iter().for_each(|&source| prefetch(src[usize::from(source)], next.at));
                    }
                }
                if !HALVES {
                    inverse_rest::<ORIGIN>(blocks, r, to, skews, tables, merge, tile, column);
                }
            }
            if HALVES {
                for column in 0..tile.places.len() {
                    let r = [zero_line(); BLOCK];
                    inverse_rest::<ORIGIN>(blocks, r, to, skews, tables, merge, tile, column);
                }
            }
        }

        /// The second half of an inverse pass over one column: the two widest layers, and the layer above. With
        /// halves, the rows are those of block `to`.
        #[inline]
        #[allow(clippy::too_many_arguments)]
        $(#[$features])*
        fn inverse_rest<const ORIGIN: bool>(
            blocks: &mut [Column],
            mut r: [Line; BLOCK],
            to: usize,
            skews: &[Table; BLOCK - 1],
            tables: &[Table],
            merge: Option<Merge>,
            tile: Tile<'_>,
            column: usize,
        ) {
            // Rows in the order in which they are done, each stored at once.
            macro_rules! done {
                ($to:ident, |$row:ident, $value:ident| $store:expr) => {
                    each!(I in 0 1 2 3 => {
                        if HALVES {
                            each!(J in 0 4 8 12 => { r[I + J] = load_line(&$to[I + J]); });
                        }
                        inverse_far::<ORIGIN>(&mut r, I, skews);
                        each!(J in 0 4 8 12 => {
                            #[allow(non_snake_case)]
                            let $row: usize = I + J;
                            let $value = r[$row];
                            $store
                        });
                    })
                };
            }
            let place = |block| block * tile.columns + column;
            match merge {
                None => {
                    let to = &mut blocks[place(to)];
                    done!(to, |ROW, row| put(&mut to[ROW], row));
                }
                Some(Merge { low, by: None, more: None }) => {
                    let [to, low] = blocks.get_disjoint_mut([to, low].map(place)).expect(APART);
                    done!(to, |ROW, row| put(&mut to[ROW], xor_lines(row, load_line(&low[ROW]))));
                }
                Some(Merge { low, by: Some(by), more: None }) => {
                    let [to, low] = blocks.get_disjoint_mut([to, low].map(place)).expect(APART);
                    let by = &tables[by];
                    done!(to, |ROW, row| {
                        let lower = load_line(&low[ROW]);
                        let upper = xor_lines(row, lower);
                        put(&mut to[ROW], upper);
                        put(&mut low[ROW], xor_lines(lower, multiply(upper, by)));
                    });
                }
                Some(Merge { low, by, more: Some([to_low, to_high]) }) => {
                    let four = [to, low, to_low, to_high].map(place);
                    let [to, low, to_low, to_high] = blocks.get_disjoint_mut(four).expect(APART);
                    let by = by.map(|by| &tables[by]);
                    done!(to, |ROW, row| {
                        let mut lower = load_line(&low[ROW]);
                        let upper = xor_lines(row, lower);
                        if let Some(by) = by {
                            lower = xor_lines(lower, multiply(upper, by));
                        }
                        put(&mut low[ROW], xor_lines(lower, load_line(&to_low[ROW])));
                        put(&mut to[ROW], xor_lines(upper, load_line(&to_high[ROW])));
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
            tile: Tile<'_>,
        ) {
            // In place, only the rows that change are touched.
            let rows = match terms.iter().map(|term| term.rows).max() {
                Some(rows) if to == from => rows,
                _ => BLOCK,
            };
            for column in 0..tile.places.len() {
                let place = |block| block * tile.columns + column;
                for start in (0..rows).step_by(SUMS) {
                    let mut sums = [zero_line(); SUMS];
                    let group = rows_from(&blocks[place(from)], start);
                    each!(I => {
                        if I < SUMS {
                            sums[I % SUMS] = load_line(&group[I % SUMS]);
                        }
                    });
                    for term in terms {
                        let group = rows_from(&blocks[place(term.block)], start);
                        let all = start + SUMS <= term.rows;
                        match term.by {
                            Factor::One if all => each!(I => {
                                if I < SUMS {
                                    sums[I % SUMS] = xor_lines(sums[I % SUMS], load_line(&group[I % SUMS]));
                                }
                            }),
                            Factor::Table(number) if all => {
                                let table = &tables[number];
                                each!(I => {
                                    if I < SUMS {
                                        let more = multiply(load_line(&group[I % SUMS]), table);
                                        sums[I % SUMS] = xor_lines(sums[I % SUMS], more);
                                    }
                                });
                            }
                            by => {
                                let rows = term.rows.saturating_sub(start);
                                for (sum, line) in sums.iter_mut().zip(group).take(rows) {
                                    let line = load_line(line);
                                    *sum = xor_lines(*sum, match by {
                                        Factor::One => line,
                                        Factor::Table(number) => multiply(line, &tables[number]),
                                    });
                                }
                            }
                        }
                    }
                    let to = &mut blocks[place(to)];
                    each!(I => {
                        if I < SUMS {
                            put(&mut to[start + I % SUMS], sums[I % SUMS]);
                        }
                    });
                }
            }
        }

        /// The rows of a column that are summed at once, from `start`.
        #[inline]
        fn rows_from(column: &Column, start: usize) -> &[[u8; LINE]; SUMS] {
            column[start..].first_chunk().expect("groups divide a block")
        }

        /// A tail of `KNOWN` rows, or with 0 of as many as there are sources.
        #[inline(never)]
        $(#[$features])*
        fn tail_pass<const KNOWN: usize>(
            blocks: &mut [Column],
            sets: &[Rows<'_, '_, '_, '_>],
            sources: &[u8],
            to: usize,
            residue: Option<usize>,
            skews: &[Table; BLOCK - 1],
            tile: Tile<'_>,
        ) {
            let known = if KNOWN == 0 { sources.len() } else { KNOWN };
            let sources = &sources[..known];
            for (column, &(Place { set, at }, next)) in tile.places.iter().enumerate() {
                if let Some(next) = next {
                    let src = sets[next.set].0;
                    sources.iter().for_each(|&source| prefetch(src[usize::from(source)], next.at));
                }
                let src = sets[set].0;
                let mut x = [zero_line(); BLOCK];
                if let Some(residue) = residue {
                    let residue = &blocks[residue * tile.columns + column];
                    each!(I => {
                        x[I] = load_line(&residue[I]);
                    });
                }
                tail::<KNOWN>(&mut x, known, |i| get(src[usize::from(sources[i])], at), skews);
                let to = &mut blocks[to * tile.columns + column];
                each!(I => {
                    put(&mut to[I], if I < known { x[I] } else { zero_line() });
                });
            }
        }
    };
}
pub(super) use passes;

/// Why the blocks of a merge can be had at the same time.
pub(super) const APART: &str = "a merge names different blocks";

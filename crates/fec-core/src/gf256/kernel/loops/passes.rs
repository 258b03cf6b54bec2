//! The passes of a program over the columns of a tile: loads and stores around the butterflies.
//!
//! Rows are loaded where they are first used and stored as soon as they are done. A kernel whose registers hold a block
//! of lines takes all four layers at once (`four_layers.rs`). The others go over the tile twice, with two layers each
//! time (`two_layers.rs`).

use crate::gf256::kernel::program::{BLOCK, Term};

/// Defines `run_pass`, and `get`, `put`, `plus_few` and `prefetch_sources` for the passes in other files. `sums` is how
/// many lines are summed at once: a divisor of 16. With `tails`, each length of a tail has code of its own.
/// `kernel/mod.rs` says what it needs.
macro_rules! passes {
    (#[$features:meta] table_len: $table_len:expr, sums: $sums:literal, tails: $tails:literal) => {
        use crate::gf256::kernel::aligned::LINE;
        use crate::gf256::kernel::contract::Rows;
        use crate::gf256::kernel::loops::runner::{Place, Tile, line_at};
        use crate::gf256::kernel::program::{BLOCK, Column, FEW, Factor, Input, Merge, Outputs, Pass, Term};

        type Table = [u8; $table_len];

        /// True if each length of a tail has code of its own.
        const TAILS: bool = $tails;

        /// Vectors that are summed at once.
        const SUMS: usize = $sums;

        #[$features]
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
                    tail_of(blocks, sets, &sources[first..first + known], to, residue, skews(at), tile);
                }
                Pass::Forward { input, skews: at, tap, out } => {
                    let tap = tap.map(|tap| (usize::from(sources[tap.source]), tap.to));
                    let skews = skews(*at);
                    match out.computed {
                        16 => forward_pass::<4>(blocks, stage, sets, *input, skews, tables, tap, out, tile),
                        8 => forward_pass::<2>(blocks, stage, sets, *input, skews, tables, tap, out, tile),
                        _ => forward_pass::<1>(blocks, stage, sets, *input, skews, tables, tap, out, tile),
                    }
                }
            }
        }

        /// The line of `row` at byte `at`.
        #[inline]
        #[$features]
        fn get(row: &[u8], at: usize) -> Line {
            load_line(line_at(row, at))
        }

        #[inline]
        #[$features]
        fn put(line: &mut [u8; LINE], vector: Line) {
            store_line(line, vector, false);
        }

        /// `line` + a line of a term.
        #[inline]
        #[$features]
        fn plus(line: Line, term: &[u8; LINE], by: Factor, tables: &[Table]) -> Line {
            let term = load_line(term);
            match by {
                Factor::One => xor_lines(line, term),
                Factor::Table(number) => xor_lines(line, multiply(term, &tables[number])),
            }
        }

        /// Prefetches the line at `next` of some sources. `rows` are these of `set`.
        #[inline(always)]
        fn prefetch_sources(
            sets: &[Rows<'_, '_, '_, '_>],
            sources: &[u8],
            (set, rows): (usize, &[&[u8]]),
            next: Place,
        ) {
            if next.set == set {
                rows.iter().for_each(|row| prefetch_tile(row, next.at));
            } else {
                let src = sets[next.set].0;
                sources.iter().for_each(|&source| prefetch_tile(src[usize::from(source)], next.at));
            }
        }

        /// Prefetches the same of the destinations of some outputs.
        #[inline(always)]
        fn prefetch_outputs(sets: &[Rows<'_, '_, '_, '_>], rows: &[Option<u8>], next: Place) {
            let dst = &sets[next.set].1;
            rows.iter().flatten().for_each(|&row| prefetch_write(dst[usize::from(row)], next.at));
        }

        #[inline(never)]
        #[$features]
        fn sum_pass(
            blocks: &mut [Column],
            to: usize,
            from: usize,
            terms: &[Term],
            tables: &[Table],
            tile: Tile<'_>,
        ) {
            let rows = crate::gf256::kernel::loops::passes::rows_of_sum(to, from, terms);
            for column in 0..tile.places.len() {
                for start in (0..rows).step_by(SUMS) {
                    let mut sums = [zero_line(); SUMS];
                    let group = rows_from(&blocks[tile.place(from, column)], start);
                    each!(|I| if I < SUMS {
                        sums[I % SUMS] = load_line(&group[I % SUMS]);
                    });
                    for term in terms {
                        let group = rows_from(&blocks[tile.place(term.block, column)], start);
                        sums = plus_term(sums, group, term, start, tables);
                    }
                    let to = &mut blocks[tile.place(to, column)];
                    each!(|I| if I < SUMS {
                        put(&mut to[start + I % SUMS], sums[I % SUMS]);
                    });
                }
            }
        }

        /// The rows of a column that are summed at once, from `start`.
        #[inline]
        fn rows_from(column: &Column, start: usize) -> &[[u8; LINE]; SUMS] {
            column[start..].first_chunk().expect("groups divide a block")
        }

        /// `sums` + the lines of a term from row `start`, if it has them.
        #[inline]
        #[$features]
        fn plus_term(
            mut sums: [Line; SUMS],
            group: &[[u8; LINE]; SUMS],
            term: &Term,
            start: usize,
            tables: &[Table],
        ) -> [Line; SUMS] {
            let all = start + SUMS <= term.rows;
            match term.by {
                Factor::One if all => each!(|I| if I < SUMS {
                    sums[I % SUMS] = xor_lines(sums[I % SUMS], load_line(&group[I % SUMS]));
                }),
                Factor::Table(number) if all => {
                    let table = &tables[number];
                    each!(|I| if I < SUMS {
                        let more = multiply(load_line(&group[I % SUMS]), table);
                        sums[I % SUMS] = xor_lines(sums[I % SUMS], more);
                    });
                }
                by => {
                    let rows = term.rows.saturating_sub(start);
                    for (sum, line) in sums.iter_mut().zip(group).take(rows) {
                        *sum = plus(*sum, line, by, tables);
                    }
                }
            }
            sums
        }

        /// A tail, by the code for its number of sources.
        #[inline]
        #[$features]
        fn tail_of(
            blocks: &mut [Column],
            sets: &[Rows<'_, '_, '_, '_>],
            sources: &[u8],
            to: usize,
            residue: Option<usize>,
            skews: &[Table; BLOCK - 1],
            tile: Tile<'_>,
        ) {
            if !TAILS {
                return tail_pass::<0>(blocks, sets, sources, to, residue, skews, tile);
            }
            crate::gf256::kernel::loops::each::each!(
                [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
                |KNOWN| {
                    if sources.len() == KNOWN {
                        tail_pass::<KNOWN>(blocks, sets, sources, to, residue, skews, tile);
                    }
                }
            );
        }

        /// A tail of `KNOWN` rows; 0 stands for the number of sources.
        #[inline(never)]
        #[$features]
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
                    sources.iter().for_each(|&source| prefetch_tile(src[usize::from(source)], next.at));
                }
                let src = sets[set].0;
                let mut x = [zero_line(); BLOCK];
                if let Some(residue) = residue {
                    let residue = &blocks[tile.place(residue, column)];
                    each!(|I| x[I] = load_line(&residue[I]));
                }
                tail::<KNOWN>(&mut x, known, |i| get(src[usize::from(sources[i])], at), skews);
                let to = &mut blocks[tile.place(to, column)];
                each!(|I| put(&mut to[I], if I < known { x[I] } else { zero_line() }));
            }
        }
    };
}
pub(crate) use passes;

/// Number of rows of `to` that change when it becomes `from` + the terms: in place, only those are touched.
pub(in crate::gf256::kernel) fn rows_of_sum(to: usize, from: usize, terms: &[Term]) -> usize {
    match terms.iter().map(|term| term.rows).max() {
        Some(rows) if to == from => rows,
        _ => BLOCK,
    }
}

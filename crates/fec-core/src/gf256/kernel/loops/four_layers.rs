//! Inverse and forward passes of kernels whose registers hold a block of lines: each column is loaded once, goes
//! through all four layers, and is stored once. A part is all of a line.

/// Defines `inverse_pass`, `forward_pass` and `TWO_LAYERS`. `kernel/mod.rs` says what it needs.
macro_rules! four_layers {
    (#[$features:meta]) => {
        use crate::gf256::kernel::loops::runner::line_at_mut;

        /// True if a pass goes over its tile twice.
        const TWO_LAYERS: bool = false;

        #[inline(never)]
        #[allow(clippy::too_many_arguments)]
        #[$features]
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
                let r = inverse_near::<ORIGIN>(&rows, at, skews);
                if let Some(next) = next {
                    prefetch_sources(sets, sources, (set, &rows), next);
                }
                inverse_merged::<ORIGIN>(blocks, r, to, skews, tables, merge, tile, column);
            }
        }

        /// The line at `at` of sixteen rows after the two narrowest layers.
        #[inline]
        #[$features]
        fn inverse_near<const ORIGIN: bool>(
            rows: &[&[u8]; BLOCK],
            at: usize,
            skews: &[Table; BLOCK - 1],
        ) -> [Line; BLOCK] {
            let mut r = [zero_line(); BLOCK];
            each!([0, 1, 2, 3], |G| {
                let a = 4 * G;
                let four =
                    [get(rows[a], at), get(rows[a + 1], at), get(rows[a + 2], at), get(rows[a + 3], at)];
                let four = if ORIGIN && G == 0 {
                    inverse_four::<true>(four, near(skews, G))
                } else {
                    inverse_four::<false>(four, near(skews, G))
                };
                each!([0, 1, 2, 3], |J| r[4 * G + J] = four[J]);
            });
            r
        }

        /// The two widest layers; `done` gets each row and its line, as soon as it is done.
        #[inline]
        #[$features]
        fn inverse_far<const ORIGIN: bool>(
            r: [Line; BLOCK],
            skews: &[Table; BLOCK - 1],
            mut done: impl FnMut(usize, Line),
        ) {
            each!([0, 1, 2, 3], |I| {
                let four = [r[I], r[I + 4], r[I + 8], r[I + 12]];
                let four = inverse_four::<ORIGIN>(four, far(skews));
                each!([0, 1, 2, 3], |J| done(I + 4 * J, four[J]));
            });
        }

        /// The second half of an inverse pass over one column: the two widest layers, and the layer above.
        #[inline]
        #[allow(clippy::too_many_arguments)]
        #[$features]
        fn inverse_merged<const ORIGIN: bool>(
            blocks: &mut [Column],
            r: [Line; BLOCK],
            to: usize,
            skews: &[Table; BLOCK - 1],
            tables: &[Table],
            merge: Option<Merge>,
            tile: Tile<'_>,
            column: usize,
        ) {
            match merge {
                None => {
                    let to = &mut blocks[tile.place(to, column)];
                    inverse_far::<ORIGIN>(r, skews, |row, line| put(&mut to[row], line));
                }
                Some(Merge { low, by: None, more: None }) => {
                    let [to, low] = tile.column(blocks, [to, low], column);
                    inverse_far::<ORIGIN>(r, skews, |row, line| put_sum(&mut to[row], &low[row], 0, line));
                }
                Some(Merge { low, by: Some(by), more: None }) => {
                    let [to, low] = tile.column(blocks, [to, low], column);
                    let by = load_tables(&tables[by]);
                    inverse_far::<ORIGIN>(r, skews, |row, line| {
                        put_butterfly(&mut to[row], &mut low[row], 0, line, by);
                    });
                }
                Some(Merge { low, by, more: Some([to_low, to_high]) }) => {
                    let [to, low, to_low, to_high] = tile.column(blocks, [to, low, to_low, to_high], column);
                    let by = by.map(|by| &tables[by]);
                    inverse_far::<ORIGIN>(r, skews, |row, line| {
                        let more = [&to_low[row], &to_high[row]];
                        put_butterfly_and_more([&mut to[row], &mut low[row]], more, 0, line, by);
                    });
                }
            }
        }

        #[inline(never)]
        #[allow(clippy::too_many_arguments)]
        #[$features]
        fn forward_pass<const QUARTERS: usize>(
            blocks: &mut [Column],
            _stage: &mut [Column],
            sets: &mut [Rows<'_, '_, '_, '_>],
            input: Input,
            skews: &[Table; BLOCK - 1],
            tables: &[Table],
            tap: Option<(usize, usize)>,
            out: &Outputs,
            tile: Tile<'_>,
        ) {
            for (column, &(Place { set, at }, next)) in tile.places.iter().enumerate() {
                let r = forward_input::<QUARTERS>(blocks, input, skews, tables, tile, column);
                let (src, dst) = &mut sets[set];
                if let Some(row) = out.run {
                    put_run::<QUARTERS>(r, skews, &mut dst[usize::from(row)..], at, tile.stream);
                } else {
                    put_outputs::<QUARTERS>(r, skews, tap, blocks, (src, dst), &out.rows, tile, column);
                }
                if let Some(next) = next {
                    if let Some((source, _)) = tap {
                        prefetch(sets[next.set].0[source], next.at);
                    }
                    if tile.prefetch_outputs {
                        prefetch_outputs(sets, &out.rows, next);
                    }
                }
            }
        }

        /// A column of the input after the two widest layers.
        #[inline]
        #[$features]
        fn forward_input<const QUARTERS: usize>(
            blocks: &mut [Column],
            input: Input,
            skews: &[Table; BLOCK - 1],
            tables: &[Table],
            tile: Tile<'_>,
            column: usize,
        ) -> [Line; BLOCK] {
            let first = first_rows(blocks, input, tables, tile, column);
            let from = &blocks[tile.place(input.from, column)];
            match (input.plus, input.keep) {
                (None, None) => forward_far::<QUARTERS>(first, from, skews, |_, line| line),
                (Some((block, Factor::One)), None) => {
                    let plus = &blocks[tile.place(block, column)];
                    forward_far::<QUARTERS>(first, from, skews, |row, line| {
                        xor_lines(line, load_line(&plus[row]))
                    })
                }
                (Some((block, Factor::Table(number))), None) => {
                    let (plus, by) = (&blocks[tile.place(block, column)], &tables[number]);
                    forward_far::<QUARTERS>(first, from, skews, |row, line| {
                        xor_lines(line, multiply(load_line(&plus[row]), by))
                    })
                }
                (plus, Some([high, keep])) => {
                    let three = tile.column(blocks, [input.from, high, keep], column);
                    forward_kept::<QUARTERS>(first, three, plus, skews, tables)
                }
            }
        }

        /// A column of the input `from` + the factor of `plus`, if there is one, · `high`, after the two widest layers.
        /// The sum of that and `high` is kept.
        #[inline]
        #[$features]
        fn forward_kept<const QUARTERS: usize>(
            first: [Line; FEW],
            [from, high, keep]: [&mut Column; 3],
            plus: Option<(usize, Factor)>,
            skews: &[Table; BLOCK - 1],
            tables: &[Table],
        ) -> [Line; BLOCK] {
            match plus {
                None => forward_far::<QUARTERS>(first, from, skews, |row, line| {
                    keep_other(&mut keep[row], &high[row], 0, line)
                }),
                Some((_, Factor::One)) => forward_far::<QUARTERS>(first, from, skews, |row, line| {
                    keep_first(&mut keep[row], &high[row], 0, line)
                }),
                Some((_, Factor::Table(number))) => {
                    let by = load_tables(&tables[number]);
                    forward_far::<QUARTERS>(first, from, skews, |row, line| {
                        keep_sum(&mut keep[row], &high[row], 0, line, by)
                    })
                }
            }
        }

        /// The first rows of the input, with the few that are added to them.
        #[inline]
        #[$features]
        fn first_rows(
            blocks: &[Column],
            input: Input,
            tables: &[Table],
            tile: Tile<'_>,
            column: usize,
        ) -> [Line; FEW] {
            let mut first = [zero_line(); FEW];
            let from = &blocks[tile.place(input.from, column)];
            each!([0, 1, 2, 3], |I| first[I] = load_line(&from[I]));
            if let Some(Term { block, by, rows }) = input.few {
                let few = &blocks[tile.place(block, column)];
                each!([0, 1, 2, 3], |I| if I < rows {
                    first[I] = plus(first[I], &few[I], by, tables);
                });
            }
            first
        }

        /// Rows after the two widest layers, each completed by `sum` where it is loaded: `first`, then those of `from`.
        #[inline]
        #[$features]
        fn forward_far<const QUARTERS: usize>(
            first: [Line; FEW],
            from: &Column,
            skews: &[Table; BLOCK - 1],
            mut sum: impl FnMut(usize, Line) -> Line,
        ) -> [Line; BLOCK] {
            let mut r = [zero_line(); BLOCK];
            each!([0, 1, 2, 3], |I| {
                let mut four = [first[I]; 4];
                // Each line is loaded where it is summed, since `sum` may store. Across a store no load becomes an
                // operand of an addition, and each would be an instruction of its own.
                each!([0, 1, 2, 3], |J| {
                    let line = if J == 0 { first[I] } else { load_line(&from[I + 4 * J]) };
                    four[J] = sum(I + 4 * J, line);
                });
                four = forward_four::<QUARTERS>(four, far(skews));
                each!([0, 1, 2, 3], |J| r[I + 4 * J] = four[J]);
            });
            r
        }

        /// Four outputs, from 4 · `g`: rows of a column after the two narrowest layers.
        #[inline]
        #[$features]
        fn forward_near(r: &[Line; BLOCK], g: usize, skews: &[Table; BLOCK - 1]) -> [Line; 4] {
            forward_four::<4>([r[4 * g], r[4 * g + 1], r[4 * g + 2], r[4 * g + 3]], near(skews, g))
        }

        /// The last layers of a column, and its outputs into rows that follow each other: the first of `dst`.
        #[inline]
        #[$features]
        fn put_run<const QUARTERS: usize>(
            r: [Line; BLOCK],
            skews: &[Table; BLOCK - 1],
            dst: &mut [&mut [u8]],
            at: usize,
            stream: bool,
        ) {
            let rows: &mut [[&mut [u8]; 4]; QUARTERS] =
                dst.as_chunks_mut().0.first_chunk_mut().expect("a row for each output");
            each!([0, 1, 2, 3], |G| if G < QUARTERS {
                let four = forward_near(&r, G, skews);
                each!([0, 1, 2, 3], |J| {
                    store_line(line_at_mut(rows[G % QUARTERS][J], at), four[J], stream);
                });
            });
        }

        /// The last layers of a column, and its outputs into the rows that want them. With a tap, the difference
        /// between its source row, which output 0 must equal, and output 0 is added to all outputs, and goes to the
        /// first row of its block.
        #[inline]
        #[allow(clippy::too_many_arguments)]
        #[$features]
        fn put_outputs<const QUARTERS: usize>(
            r: [Line; BLOCK],
            skews: &[Table; BLOCK - 1],
            tap: Option<(usize, usize)>,
            blocks: &mut [Column],
            (src, dst): (&[&[u8]], &mut [&mut [u8]]),
            rows: &[Option<u8>; BLOCK],
            tile: Tile<'_>,
            column: usize,
        ) {
            let at = tile.places[column].0.at;
            let mut difference = zero_line();
            each!([0, 1, 2, 3], |G| if G < QUARTERS {
                let mut four = forward_near(&r, G, skews);
                if let Some((source, to)) = tap {
                    if G == 0 {
                        difference = xor_lines(four[0], get(src[source], at));
                        put(&mut blocks[tile.place(to, column)][0], difference);
                    }
                    each!([0, 1, 2, 3], |J| four[J] = xor_lines(four[J], difference));
                }
                each!([0, 1, 2, 3], |J| if let Some(row) = rows[4 * G + J] {
                    let line = line_at_mut(dst[usize::from(row)], at);
                    store_line(line, four[J], tile.stream);
                });
            });
        }
    };
}
pub(crate) use four_layers;

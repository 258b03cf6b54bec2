//! Inverse and forward passes of kernels whose registers hold a block of lines: each column is loaded once, goes
//! through all four layers, and is stored once.

/// Defines `inverse_pass`, `forward_pass` and `TWO_LAYERS`. For what it needs see the table in [`super`].
macro_rules! four_layers {
    ($(#[$features:meta])*) => {
        /// Whether a pass goes over its tile twice.
        const TWO_LAYERS: bool = false;

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
                });
                match next {
                    None => {}
                    Some(next) if next.set == set => each!(I => { prefetch(rows[I], next.at); }),
                    Some(next) => {
                        let src = sets[next.set].0;
                        sources.iter().for_each(|&source| prefetch(src[usize::from(source)], next.at));
                    }
                }
                inverse_rest::<ORIGIN>(blocks, r, to, skews, tables, merge, tile, column);
            }
        }

        /// The second half of an inverse pass over one column: the two widest layers, and the layer above.
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
                (|$row:ident, $value:ident| $store:expr) => {
                    each!(I in 0 1 2 3 => {
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
                    done!(|ROW, row| put(&mut to[ROW], row));
                }
                Some(Merge { low, by: None, more: None }) => {
                    let [to, low] = blocks.get_disjoint_mut([to, low].map(place)).expect(DISTINCT);
                    done!(|ROW, row| put(&mut to[ROW], xor_lines(row, load_line(&low[ROW]))));
                }
                Some(Merge { low, by: Some(by), more: None }) => {
                    let [to, low] = blocks.get_disjoint_mut([to, low].map(place)).expect(DISTINCT);
                    let by = &tables[by];
                    done!(|ROW, row| {
                        let lower = load_line(&low[ROW]);
                        let upper = xor_lines(row, lower);
                        put(&mut to[ROW], upper);
                        put(&mut low[ROW], xor_lines(lower, multiply(upper, by)));
                    });
                }
                Some(Merge { low, by, more: Some([to_low, to_high]) }) => {
                    let four = [to, low, to_low, to_high].map(place);
                    let [to, low, to_low, to_high] = blocks.get_disjoint_mut(four).expect(DISTINCT);
                    let by = by.map(|by| &tables[by]);
                    done!(|ROW, row| {
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
        #[allow(clippy::too_many_arguments)]
        $(#[$features])*
        fn forward_pass<const OUTPUTS: usize>(
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
            for column in 0..tile.places.len() {
                let place = |block| block * tile.columns + column;
                let mut first = [zero_line(); FEW];
                let from = &blocks[place(input.from)];
                each!(I in 0 1 2 3 => { first[I] = load_line(&from[I]); });
                if let Some(Term { block, by, rows }) = input.few {
                    let few = &blocks[place(block)];
                    each!(I in 0 1 2 3 => {
                        if I < rows {
                            let line = load_line(&few[I]);
                            first[I] = xor_lines(first[I], match by {
                                Factor::One => line,
                                Factor::Table(number) => multiply(line, &tables[number]),
                            });
                        }
                    });
                }
                let mut r = [zero_line(); BLOCK];
                // Every fourth row is loaded, added to, and goes through the widest layers.
                macro_rules! transformed {
                    ($from:ident, |$row:ident, $value:ident| $sum:expr) => {
                        each!(I in 0 1 2 3 => {
                            each!(J in 0 4 8 12 => {
                                #[allow(non_snake_case)]
                            let $row: usize = I + J;
                                let $value = if J == 0 { first[I] } else { load_line(&$from[$row]) };
                                r[$row] = $sum;
                            });
                            forward_far::<OUTPUTS>(&mut r, I, skews);
                        })
                    };
                }
                match (input.plus, input.keep) {
                    (None, None) => {
                        transformed!(from, |ROW, row| row);
                    }
                    (Some((block, Factor::One)), None) => {
                        let plus = &blocks[place(block)];
                        transformed!(from, |ROW, row| xor_lines(row, load_line(&plus[ROW])));
                    }
                    (Some((block, Factor::Table(number))), None) => {
                        let (plus, table) = (&blocks[place(block)], &tables[number]);
                        transformed!(from, |ROW, row| xor_lines(row, multiply(load_line(&plus[ROW]), table)));
                    }
                    (plus, Some([high, keep])) => {
                        let three = [input.from, high, keep].map(place);
                        let [from, high, keep] = blocks.get_disjoint_mut(three).expect(DISTINCT);
                        match plus {
                            Some((_, Factor::Table(number))) => {
                                let table = &tables[number];
                                transformed!(from, |ROW, row| {
                                    let high = load_line(&high[ROW]);
                                    let row = xor_lines(row, multiply(high, table));
                                    put(&mut keep[ROW], xor_lines(row, high));
                                    row
                                });
                            }
                            Some((_, Factor::One)) => {
                                transformed!(from, |ROW, row| {
                                    put(&mut keep[ROW], row);
                                    xor_lines(row, load_line(&high[ROW]))
                                });
                            }
                            None => {
                                transformed!(from, |ROW, row| {
                                    put(&mut keep[ROW], xor_lines(row, load_line(&high[ROW])));
                                    row
                                });
                            }
                        }
                    }
                }
                forward_rest::<OUTPUTS>(blocks, sets, r, skews, tap, out, tile, column);
            }
        }

        /// The second half of a forward pass over one column: the two narrowest layers, and the outputs.
        #[inline]
        #[allow(clippy::too_many_arguments)]
        $(#[$features])*
        fn forward_rest<const OUTPUTS: usize>(
            blocks: &mut [Column],
            sets: &mut [Rows<'_, '_, '_, '_>],
            mut r: [Line; BLOCK],
            skews: &[Table; BLOCK - 1],
            tap: Option<(usize, usize)>,
            out: &Outputs,
            tile: Tile<'_>,
            column: usize,
        ) {
            let (Place { set, at }, next) = tile.places[column];
            let place = |block| block * tile.columns + column;
            let (src, dst) = &mut sets[set];
            if let (None, Some(row)) = (tap, out.run) {
                let rows: &mut [&mut [u8]; OUTPUTS] =
                    dst[row..].first_chunk_mut().expect("a row for each output");
                each!(G in 0 1 2 3 => {
                    if 4 * G < OUTPUTS {
                        forward_near::<OUTPUTS>(&mut r, G, skews);
                        each!(J in 0 1 2 3 => {
                            let line = &mut rows[(4 * G + J) % OUTPUTS].as_chunks_mut().0[at / LINE];
                            store_line(line, r[4 * G + J], tile.stream);
                        });
                    }
                });
            } else {
                let mut difference = zero_line();
                each!(G in 0 1 2 3 => {
                    if 4 * G < OUTPUTS {
                        forward_near::<OUTPUTS>(&mut r, G, skews);
                        if let Some((source, to)) = tap {
                            if G == 0 {
                                difference = xor_lines(r[0], get(src[source], at));
                                put(&mut blocks[place(to)][0], difference);
                            }
                            each!(J in 0 1 2 3 => { r[4 * G + J] = xor_lines(r[4 * G + J], difference); });
                        }
                        each!(J in 0 1 2 3 => {
                            if let Some(row) = out.rows[4 * G + J] {
                                let line = &mut dst[usize::from(row)].as_chunks_mut().0[at / LINE];
                            store_line(line, r[4 * G + J], tile.stream);
                            }
                        });
                    }
                });
            }
            if let Some(next) = next {
                if let Some((source, _)) = tap {
                    prefetch(sets[next.set].0[source], next.at);
                }
                if tile.prefetch_outputs {
                    let dst = &sets[next.set].1;
                    out.rows.iter().flatten().for_each(|&row| prefetch_write(dst[usize::from(row)], next.at));
                }
            }
        }

        /// The two narrowest layers of inverse butterflies, the narrowest first, on the four rows from 4 · `g`.
        /// At the origin the first skew of every layer is 0.
        #[inline]
        $(#[$features])*
        fn inverse_near<const ORIGIN: bool>(r: &mut [Line; BLOCK], g: usize, skews: &[Table; BLOCK - 1]) {
            let a = 4 * g;
            r[a + 1] = xor_lines(r[a + 1], r[a]);
            r[a + 3] = xor_lines(r[a + 3], r[a + 2]);
            if !(ORIGIN && g == 0) {
                r[a] = xor_lines(r[a], multiply(r[a + 1], &skews[7 + 2 * g]));
            }
            r[a + 2] = xor_lines(r[a + 2], multiply(r[a + 3], &skews[8 + 2 * g]));
            for x in [a, a + 1] {
                r[x + 2] = xor_lines(r[x + 2], r[x]);
                if !(ORIGIN && g == 0) {
                    r[x] = xor_lines(r[x], multiply(r[x + 2], &skews[3 + g]));
                }
            }
        }

        /// The two widest layers of inverse butterflies, the narrower first, on every fourth row from `i`.
        #[inline]
        $(#[$features])*
        fn inverse_far<const ORIGIN: bool>(r: &mut [Line; BLOCK], i: usize, skews: &[Table; BLOCK - 1]) {
            r[i + 4] = xor_lines(r[i + 4], r[i]);
            r[i + 12] = xor_lines(r[i + 12], r[i + 8]);
            if !ORIGIN {
                r[i] = xor_lines(r[i], multiply(r[i + 4], &skews[1]));
            }
            r[i + 8] = xor_lines(r[i + 8], multiply(r[i + 12], &skews[2]));
            for x in [i, i + 4] {
                r[x + 8] = xor_lines(r[x + 8], r[x]);
                if !ORIGIN {
                    r[x] = xor_lines(r[x], multiply(r[x + 8], &skews[0]));
                }
            }
        }

        /// The butterfly of rows `x` and `y`, as far as the first `OUTPUTS` outputs need it.
        #[inline]
        $(#[$features])*
        fn pair<const OUTPUTS: usize>(r: &mut [Line; BLOCK], x: usize, y: usize, skew: &Table) {
            let width = y - x;
            if x / (2 * width) * (2 * width) < OUTPUTS {
                r[x] = xor_lines(r[x], multiply(r[y], skew));
                if OUTPUTS > width {
                    r[y] = xor_lines(r[y], r[x]);
                }
            }
        }

        /// The two widest layers of butterflies, the widest first, on every fourth row from `i`, as far as the
        /// first `OUTPUTS` outputs need them.
        #[inline]
        $(#[$features])*
        fn forward_far<const OUTPUTS: usize>(
            r: &mut [Line; BLOCK],
            i: usize,
            skews: &[Table; BLOCK - 1],
        ) {
            pair::<OUTPUTS>(r, i, i + 8, &skews[0]);
            pair::<OUTPUTS>(r, i + 4, i + 12, &skews[0]);
            pair::<OUTPUTS>(r, i, i + 4, &skews[1]);
            pair::<OUTPUTS>(r, i + 8, i + 12, &skews[2]);
        }

        /// The two narrowest layers of butterflies, the wider first, on the four rows from 4 · `g`, as far as
        /// the first `OUTPUTS` outputs need them.
        #[inline]
        $(#[$features])*
        fn forward_near<const OUTPUTS: usize>(
            r: &mut [Line; BLOCK],
            g: usize,
            skews: &[Table; BLOCK - 1],
        ) {
            let a = 4 * g;
            pair::<OUTPUTS>(r, a, a + 2, &skews[3 + g]);
            pair::<OUTPUTS>(r, a + 1, a + 3, &skews[3 + g]);
            pair::<OUTPUTS>(r, a, a + 1, &skews[7 + 2 * g]);
            pair::<OUTPUTS>(r, a + 2, a + 3, &skews[8 + 2 * g]);
        }
    };
}
pub(super) use four_layers;

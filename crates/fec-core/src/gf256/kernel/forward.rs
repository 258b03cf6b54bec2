//! The forward pass of a program: from coefficients to outputs.
//!
//! The input is a sum, made while its rows are loaded; the outputs go to wherever the destinations are, and only
//! those that are computed are stored.

/// Defines `forward_pass`. For what the file provides see [`passes!`](super::passes::passes).
macro_rules! forward {
    ($(#[$features:meta])*) => {
        #[inline(never)]
        #[allow(clippy::too_many_arguments)]
        $(#[$features])*
        fn forward_pass<const OUTPUTS: usize>(
            blocks: &mut [Column],
            stage: &mut [Column],
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
                            if HALVES {
                                each!(J in 0 4 8 12 => {
                                    if I + J < OUTPUTS {
                                        put(&mut stage[column][I + J], r[I + J]);
                                    }
                                });
                            }
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
                        let [from, high, keep] = blocks.get_disjoint_mut(three).expect(APART);
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
                if !HALVES {
                    forward_rest::<OUTPUTS>(blocks, stage, sets, r, skews, tap, out, tile, column);
                }
            }
            if HALVES {
                for column in 0..tile.places.len() {
                    let r = [zero_line(); BLOCK];
                    forward_rest::<OUTPUTS>(blocks, stage, sets, r, skews, tap, out, tile, column);
                }
            }
        }

        /// The second half of a forward pass over one column: the two narrowest layers, and the outputs. With
        /// halves, the rows are those of `stage`.
        #[inline]
        #[allow(clippy::too_many_arguments)]
        $(#[$features])*
        fn forward_rest<const OUTPUTS: usize>(
            blocks: &mut [Column],
            stage: &[Column],
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
            macro_rules! rows {
                ($g:ident) => {
                    if HALVES {
                        each!(J in 0 1 2 3 => { r[4 * $g + J] = load_line(&stage[column][4 * $g + J]); });
                    }
                };
            }
            let (src, dst) = &mut sets[set];
            if let (None, Some(row)) = (tap, out.run) {
                let rows: &mut [&mut [u8]; OUTPUTS] =
                    dst[row..].first_chunk_mut().expect("a row for each output");
                each!(G in 0 1 2 3 => {
                    if 4 * G < OUTPUTS {
                        rows!(G);
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
                        rows!(G);
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
    };
}
pub(super) use forward;

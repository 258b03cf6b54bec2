//! The near step of transforms of areas: layers 0 to 5 of groups of 64 rows.

/// Defines `near_rows`, `near_inverse` and `near_forward`. `first` is the layers of a pass over symbols, 2 or 3.
/// `kernel/mod.rs` says what it needs.
macro_rules! area_near {
    (#[$features:meta] first: $first:literal) => {
        /// A tile in the first cache, and the rows of a group where they come from, go to, or both.
        type Near<'n> = (&'n mut [Unit; GROUP], &'n mut [Unit]);

        /// Adds layers 0 to `layers` − 1 of units `rows`, from position `base` on, to `to`, or puts them there. `to`
        /// has 64 units for each unit of a row.
        #[$features]
        fn near_rows(
            [base, layers]: [usize; 2],
            rows: Columns<'_>,
            next: Columns<'_>,
            tile: &mut [Unit; GROUP],
            to: &mut [Unit],
            add: bool,
        ) {
            let units = to.len() / GROUP;
            let skews = NearSkews::near(base as u16, &EVEN_TABLES, pack_table);
            let rows = rows.units(units);
            for (unit, to) in to.chunks_exact_mut(GROUP).enumerate() {
                inverse_group(
                    &mut (tile, to),
                    [base, layers],
                    &skews,
                    |_, r| {
                        if let Some(Some(row)) = next.rows.get(r) {
                            prefetch_past_l1(row, next.at + unit * UNIT);
                            prefetch_past_l1(row, next.at + unit * UNIT + LINE);
                        }
                        &rows[r][unit]
                    },
                    add,
                );
            }
        }

        /// The same in place.
        #[$features]
        fn near_inverse([base, layers]: [usize; 2], tile: &mut [Unit; GROUP], rows: &mut [Unit]) {
            let skews = NearSkews::near(base as u16, &EVEN_TABLES, pack_table);
            for rows in rows.chunks_exact_mut(GROUP) {
                inverse_group(&mut (tile, rows), [base, layers], &skews, |b, r| &b.1[r], false);
            }
        }

        /// The same backwards, in place.
        #[$features]
        fn near_forward([base, layers]: [usize; 2], tile: &mut [Unit; GROUP], rows: &mut [Unit]) {
            let skews = NearSkews::near(base as u16, &EVEN_TABLES, pack_table);
            for rows in rows.chunks_exact_mut(GROUP) {
                forward_group(&mut (tile, rows), [base, layers], &skews);
            }
        }

        #[inline]
        #[$features]
        fn keep(buffer: &mut Near<'_>, r: usize, v: usize, pair: Pair) {
            store_pair(&mut buffer.0[r], v, pair);
        }

        #[inline]
        #[$features]
        fn place(buffer: &mut Near<'_>, r: usize, v: usize, pair: Pair) {
            store_pair(&mut buffer.1[r], v, pair);
        }

        #[inline]
        #[$features]
        fn add_to_place(buffer: &mut Near<'_>, r: usize, v: usize, pair: Pair) {
            let unit = &mut buffer.1[r];
            store_pair(unit, v, xor_pairs(pair, load_pair(unit, v)));
        }

        /// Inverse layers of a unit of a group, with loops for the layers that have symbols as skews.
        #[inline]
        #[$features]
        fn inverse_group<'n>(
            buffer: &mut Near<'n>,
            [base, layers]: [usize; 2],
            skews: &NearSkews<TABLE_LEN>,
            load: impl for<'b> Fn(&'b Near<'n>, usize) -> &'b Unit,
            add: bool,
        ) {
            let end = base + GROUP;
            match (layers, add) {
                (6, false) if end <= 1 << 10 => {
                    inverse_all::<2, 0, 0>(buffer, skews, load, |b, r, v, pair| place(b, r, v, pair))
                }
                (6, false) if end <= 1 << 13 => {
                    inverse_all::<3, 2, 1>(buffer, skews, load, |b, r, v, pair| place(b, r, v, pair))
                }
                (6, false) => {
                    inverse_all::<3, 3, 2>(buffer, skews, load, |b, r, v, pair| place(b, r, v, pair))
                }
                (6, true) => {
                    inverse_all::<3, 3, 2>(buffer, skews, load, |b, r, v, pair| add_to_place(b, r, v, pair))
                }
                (_, false) => {
                    inverse_fewer(buffer, layers, skews, load, |b, r, v, pair| place(b, r, v, pair))
                }
                (_, true) => {
                    inverse_fewer(buffer, layers, skews, load, |b, r, v, pair| add_to_place(b, r, v, pair))
                }
            }
        }

        /// Six layers. The first A of the first pass have symbols as skews, B of the second, and C of a third one.
        #[inline(never)]
        #[$features]
        fn inverse_all<'n, const A: usize, const B: usize, const C: usize>(
            buffer: &mut Near<'n>,
            skews: &NearSkews<TABLE_LEN>,
            load: impl for<'b> Fn(&'b Near<'n>, usize) -> &'b Unit,
            done: impl Fn(&mut Near<'n>, usize, usize, Pair),
        ) {
            inverse_symbols::<_, GROUP, $first, A>(buffer, GROUP, 0, skews, load, |b, r, v, pair| {
                keep(b, r, v, pair)
            });
            if $first == 2 {
                inverse_symbols::<_, GROUP, 2, B>(
                    buffer,
                    GROUP,
                    2,
                    skews,
                    |b, r| &b.0[r],
                    |b, r, v, pair| keep(b, r, v, pair),
                );
                inverse_symbols::<_, GROUP, 2, C>(buffer, GROUP, 4, skews, |b, r| &b.0[r], done);
            } else {
                inverse_symbols::<_, GROUP, 3, B>(buffer, GROUP, 3, skews, |b, r| &b.0[r], done);
            }
        }

        /// Fewer than six layers.
        #[inline(never)]
        #[$features]
        fn inverse_fewer<'n>(
            buffer: &mut Near<'n>,
            layers: usize,
            skews: &NearSkews<TABLE_LEN>,
            load: impl for<'b> Fn(&'b Near<'n>, usize) -> &'b Unit,
            done: impl Fn(&mut Near<'n>, usize, usize, Pair),
        ) {
            match layers {
                0 => pass_on(buffer, load, done),
                1 => inverse_symbols::<_, GROUP, 1, 1>(buffer, GROUP, 0, skews, load, done),
                2 => inverse_symbols::<_, GROUP, 2, 2>(buffer, GROUP, 0, skews, load, done),
                _ => {
                    inverse_symbols::<_, GROUP, 2, 2>(buffer, GROUP, 0, skews, load, |b, r, v, pair| {
                        keep(b, r, v, pair)
                    });
                    if layers == 3 {
                        inverse_symbols::<_, GROUP, 1, 1>(buffer, GROUP, 2, skews, |b, r| &b.0[r], done);
                        return;
                    }
                    if layers == 4 {
                        inverse_symbols::<_, GROUP, 2, 2>(buffer, GROUP, 2, skews, |b, r| &b.0[r], done);
                        return;
                    }
                    inverse_symbols::<_, GROUP, 2, 2>(
                        buffer,
                        GROUP,
                        2,
                        skews,
                        |b, r| &b.0[r],
                        |b, r, v, pair| keep(b, r, v, pair),
                    );
                    inverse_symbols::<_, GROUP, 1, 1>(buffer, GROUP, 4, skews, |b, r| &b.0[r], done);
                }
            }
        }

        /// No layer at all.
        #[inline]
        #[$features]
        fn pass_on<'n>(
            buffer: &mut Near<'n>,
            load: impl for<'b> Fn(&'b Near<'n>, usize) -> &'b Unit,
            done: impl Fn(&mut Near<'n>, usize, usize, Pair),
        ) {
            for r in 0..GROUP {
                for v in 0..VECTORS {
                    let pair = load_pair(load(buffer, r), v);
                    done(buffer, r, v, pair);
                }
            }
        }

        #[inline]
        #[$features]
        fn forward_group<'n>(
            buffer: &mut Near<'n>,
            [base, layers]: [usize; 2],
            skews: &NearSkews<TABLE_LEN>,
        ) {
            match base + GROUP {
                _ if layers < 6 => forward_fewer(buffer, layers, skews),
                end if end <= 1 << 10 => forward_all::<2, 0, 0>(buffer, skews),
                end if end <= 1 << 13 => forward_all::<3, 2, 1>(buffer, skews),
                _ => forward_all::<3, 3, 2>(buffer, skews),
            }
        }

        #[inline(never)]
        #[$features]
        fn forward_all<'n, const A: usize, const B: usize, const C: usize>(
            buffer: &mut Near<'n>,
            skews: &NearSkews<TABLE_LEN>,
        ) {
            if $first == 2 {
                forward_symbols::<_, GROUP, 2, C>(
                    buffer,
                    GROUP,
                    4,
                    skews,
                    |b, r| &b.1[r],
                    |b, r, v, pair| keep(b, r, v, pair),
                );
                forward_symbols::<_, GROUP, 2, B>(
                    buffer,
                    GROUP,
                    2,
                    skews,
                    |b, r| &b.0[r],
                    |b, r, v, pair| keep(b, r, v, pair),
                );
            } else {
                forward_symbols::<_, GROUP, 3, B>(
                    buffer,
                    GROUP,
                    3,
                    skews,
                    |b, r| &b.1[r],
                    |b, r, v, pair| keep(b, r, v, pair),
                );
            }
            forward_symbols::<_, GROUP, $first, A>(
                buffer,
                GROUP,
                0,
                skews,
                |b, r| &b.0[r],
                |b, r, v, pair| place(b, r, v, pair),
            );
        }

        /// Fewer than six layers, one at a time.
        #[inline(never)]
        #[$features]
        fn forward_fewer(buffer: &mut Near<'_>, layers: usize, skews: &NearSkews<TABLE_LEN>) {
            for layer in (0..layers).rev() {
                forward_symbols::<_, GROUP, 1, 1>(
                    buffer,
                    GROUP,
                    layer,
                    skews,
                    |b, r| &b.1[r],
                    |b, r, v, pair| place(b, r, v, pair),
                );
            }
        }
    };
}
pub(crate) use area_near;

//! The far step of transforms of areas: layers 6 and up in tiles of rows that are 64 apart.

/// Defines `far_inverse` and `far_forward`. `first` is the layers of a pass over symbols, `planes` those of a pass over
/// planes. `kernel/mod.rs` says what it needs.
macro_rules! area_far {
    (#[$features:meta] first: $first:literal, planes: $planes:literal) => {
        /// The rows of a tile on their way: in the first cache, in the sheet (the first row and their distance), and in
        /// a row of their own.
        struct Far<'f> {
            tile: &'f mut [Unit],
            sheet: &'f mut [Unit],
            distance: usize,
            row: &'f mut [Unit],
        }

        /// Adds the layers from 6 on of a sheet to `sums`, or puts them there. `base` is the first position. `sums` has
        /// a row of the tile for each unit of a group.
        #[$features]
        fn far_inverse(base: usize, sheet: Sheet<'_>, sums: &mut [Unit], add: bool) {
            let rows = sheet.tile.len();
            let skews = FarSkews::far(base as u16, rows, pack_table);
            for (i, row) in sums.chunks_exact_mut(rows).enumerate() {
                let far = &mut Far {
                    tile: sheet.tile,
                    sheet: &mut sheet.groups[i..],
                    distance: sheet.distance,
                    row,
                };
                match base + GROUP * rows {
                    end if end <= 1 << 14 => inverse_tile::<0>(far, rows, &skews, add),
                    end if end <= 1 << 15 => inverse_tile::<1>(far, rows, &skews, add),
                    _ => inverse_tile::<2>(far, rows, &skews, add),
                }
            }
        }

        /// The same backwards, from `sums` to the sheet.
        #[$features]
        fn far_forward(base: usize, sums: &mut [Unit], sheet: Sheet<'_>) {
            let rows = sheet.tile.len();
            let skews = FarSkews::far(base as u16, rows, pack_table);
            for (i, row) in sums.chunks_exact_mut(rows).enumerate() {
                let far = &mut Far {
                    tile: sheet.tile,
                    sheet: &mut sheet.groups[i..],
                    distance: sheet.distance,
                    row,
                };
                match base + GROUP * rows {
                    end if end <= 1 << 14 => forward_tile::<0>(far, rows, &skews),
                    end if end <= 1 << 15 => forward_tile::<1>(far, rows, &skews),
                    _ => forward_tile::<2>(far, rows, &skews),
                }
            }
        }

        #[inline]
        #[$features]
        fn keep_far(far: &mut Far<'_>, r: usize, v: usize, pair: Pair) {
            store_pair(&mut far.tile[r], v, pair);
        }

        #[inline]
        #[$features]
        fn keep_plane(far: &mut Far<'_>, r: usize, plane: usize, v: usize, vector: Vector) {
            store_plane(&mut far.tile[r], plane, v, vector);
        }

        #[inline]
        #[$features]
        fn put_plane(far: &mut Far<'_>, r: usize, plane: usize, v: usize, vector: Vector) {
            store_plane(&mut far.row[r], plane, v, vector);
        }

        #[inline]
        #[$features]
        fn add_plane(far: &mut Far<'_>, r: usize, plane: usize, v: usize, vector: Vector) {
            let unit = &mut far.row[r];
            store_plane(unit, plane, v, xor(vector, load_plane(unit, plane, v)));
        }

        #[inline]
        #[$features]
        fn put_row(far: &mut Far<'_>, r: usize, v: usize, pair: Pair, add: bool) {
            let unit = &mut far.row[r];
            let pair = if add { xor_pairs(pair, load_pair(unit, v)) } else { pair };
            store_pair(unit, v, pair);
        }

        /// A tile, of which the first `FULL` layers have symbols as skews.
        #[inline(never)]
        #[$features]
        fn inverse_tile<const FULL: usize>(
            far: &mut Far<'_>,
            rows: usize,
            skews: &FarSkews<TABLE_LEN>,
            add: bool,
        ) {
            const N: usize = MAX_TILE;
            let layers = rows.trailing_zeros() as usize;
            if layers <= $first {
                let done = |far: &mut Far<'_>, r: usize, v: usize, pair: Pair| put_row(far, r, v, pair, add);
                return match layers {
                    1 => inverse_symbols::<_, N, 1, 2>(
                        far,
                        rows,
                        0,
                        skews,
                        |f, r| &f.sheet[r * f.distance],
                        done,
                    ),
                    2 => inverse_symbols::<_, N, 2, 2>(
                        far,
                        rows,
                        0,
                        skews,
                        |f, r| &f.sheet[r * f.distance],
                        done,
                    ),
                    _ => inverse_symbols::<_, N, 3, 2>(
                        far,
                        rows,
                        0,
                        skews,
                        |f, r| &f.sheet[r * f.distance],
                        done,
                    ),
                };
            }
            inverse_symbols::<_, N, $first, FULL>(
                far,
                rows,
                0,
                skews,
                |f, r| {
                    let unit = &f.sheet[r * f.distance];
                    prefetch(unit.as_flattened(), 4 * UNIT);
                    prefetch(unit.as_flattened(), 4 * UNIT + LINE);
                    unit
                },
                |f, r, v, pair| keep_far(f, r, v, pair),
            );
            let mut layer = $first;
            while layer + $planes < layers {
                inverse_planes(
                    far,
                    [rows, layer, $planes],
                    skews,
                    |f, r| &f.tile[r],
                    |f, r, p, v, x| keep_plane(f, r, p, v, x),
                );
                layer += $planes;
            }
            if add {
                inverse_planes(
                    far,
                    [rows, layer, layers - layer],
                    skews,
                    |f, r| &f.tile[r],
                    |f, r, p, v, x| add_plane(f, r, p, v, x),
                );
            } else {
                inverse_planes(
                    far,
                    [rows, layer, layers - layer],
                    skews,
                    |f, r| &f.tile[r],
                    |f, r, p, v, x| put_plane(f, r, p, v, x),
                );
            }
        }

        #[inline]
        #[$features]
        fn to_sheet(far: &mut Far<'_>, r: usize, v: usize, pair: Pair) {
            store_pair(&mut far.sheet[r * far.distance], v, pair);
        }

        #[inline(never)]
        #[$features]
        fn forward_tile<const FULL: usize>(far: &mut Far<'_>, rows: usize, skews: &FarSkews<TABLE_LEN>) {
            const N: usize = MAX_TILE;
            let layers = rows.trailing_zeros() as usize;
            if layers <= $first {
                return match layers {
                    1 => forward_symbols::<_, N, 1, 2>(
                        far,
                        rows,
                        0,
                        skews,
                        |f, r| &f.row[r],
                        |f, r, v, pair| to_sheet(f, r, v, pair),
                    ),
                    2 => forward_symbols::<_, N, 2, 2>(
                        far,
                        rows,
                        0,
                        skews,
                        |f, r| &f.row[r],
                        |f, r, v, pair| to_sheet(f, r, v, pair),
                    ),
                    _ => forward_symbols::<_, N, 3, 2>(
                        far,
                        rows,
                        0,
                        skews,
                        |f, r| &f.row[r],
                        |f, r, v, pair| to_sheet(f, r, v, pair),
                    ),
                };
            }
            let mut layer = $first + (layers - $first - 1) / $planes * $planes;
            forward_planes(
                far,
                [rows, layer, layers - layer],
                skews,
                |f, r| &f.row[r],
                |f, r, p, v, x| keep_plane(f, r, p, v, x),
            );
            while layer > $first {
                layer -= $planes;
                forward_planes(
                    far,
                    [rows, layer, $planes],
                    skews,
                    |f, r| &f.tile[r],
                    |f, r, p, v, x| keep_plane(f, r, p, v, x),
                );
            }
            forward_symbols::<_, N, $first, FULL>(
                far,
                rows,
                0,
                skews,
                |f, r| &f.tile[r],
                |f, r, v, pair| to_sheet(f, r, v, pair),
            );
        }
    };
}
pub(crate) use area_far;

//! Passes over rows of areas: 2, 4, 8 or 16 rows are loaded, joined in registers, and handed on.

/// Defines passes on symbols and on planes. `width` is the bytes of a vector, `vectors` lists those of a plane from 0.
/// `kernel/mod.rs` says what it needs.
macro_rules! area_passes {
    (#[$features:meta] width: $width:literal, vectors: $vectors:tt) => {
        use crate::gf256::kernel::loops::area::{
            Columns, FarSkews, GROUP, MAX_TILE, NearSkews, Sheet, Skews, Stretches, UNIT, Unit, factors_of,
            joins, joins_by,
        };

        /// Vectors of a plane of a unit.
        const VECTORS: usize = $vectors.len();

        /// A vector of each plane.
        type Pair = [Vector; 2];

        #[inline]
        #[$features]
        fn load_plane(unit: &Unit, plane: usize, v: usize) -> Vector {
            load_vector(&unit[plane].as_chunks::<$width>().0[v])
        }

        #[inline]
        #[$features]
        fn store_plane(unit: &mut Unit, plane: usize, v: usize, vector: Vector) {
            store_vector(&mut unit[plane].as_chunks_mut::<$width>().0[v], vector, false);
        }

        #[inline]
        #[$features]
        fn load_pair(unit: &Unit, v: usize) -> Pair {
            [load_plane(unit, 0, v), load_plane(unit, 1, v)]
        }

        #[inline]
        #[$features]
        fn store_pair(unit: &mut Unit, v: usize, pair: Pair) {
            store_plane(unit, 0, v, pair[0]);
            store_plane(unit, 1, v, pair[1]);
        }

        #[inline]
        #[$features]
        fn xor_pairs(a: Pair, b: Pair) -> Pair {
            [xor(a[0], b[0]), xor(a[1], b[1])]
        }

        /// `x` + w·`y`, where w is a byte unless `symbols` is true.
        #[inline]
        #[$features]
        fn add_skewed(x: Pair, y: Pair, skew: [&[u8; TABLE_LEN]; 3], symbols: bool) -> Pair {
            if symbols {
                return add_symbol(x, y, skew);
            }
            let tables = load_tables(skew[0]);
            [xor(x[0], product_of_vector(y[0], tables)), xor(x[1], product_of_vector(y[1], tables))]
        }

        #[inline]
        #[$features]
        fn join_inverse(x: Pair, y: Pair, skew: [&[u8; TABLE_LEN]; 3], symbols: bool) -> (Pair, Pair) {
            let y = xor_pairs(y, x);
            (add_skewed(x, y, skew, symbols), y)
        }

        #[inline]
        #[$features]
        fn join_forward(x: Pair, y: Pair, skew: [&[u8; TABLE_LEN]; 3], symbols: bool) -> (Pair, Pair) {
            let x = add_skewed(x, y, skew, symbols);
            (x, xor_pairs(y, x))
        }

        /// `BITS` layers from `layer` on, of which the first `FULL` have symbols as skews and the others bytes. `load`
        /// gives row r as it was, `done` takes a vector of it.
        #[inline]
        #[$features]
        fn inverse_symbols<B, const N: usize, const BITS: usize, const FULL: usize>(
            buffer: &mut B,
            rows: usize,
            layer: usize,
            skews: &Skews<TABLE_LEN, N>,
            load: impl Fn(&B, usize) -> &Unit,
            mut done: impl FnMut(&mut B, usize, usize, Pair),
        ) {
            let step = 1 << layer;
            for block in 0..rows / (step << BITS) {
                for first in (block * step << BITS..).take(step) {
                    each!($vectors, |V| {
                        let mut r = [[zero_vector(); 2]; 8];
                        each!([0, 1, 2, 3, 4, 5, 6, 7], |I| if I < 1 << BITS {
                            r[I] = load_pair(load(buffer, first + I * step), V);
                        });
                        match BITS {
                            1 => {
                                joins!(join_inverse, r, skews.layer::<1>(layer, block), FULL > 0, [(0, 1, 0)])
                            }
                            2 => {
                                let narrow = skews.layer::<2>(layer, block);
                                joins!(join_inverse, r, narrow, FULL > 0, [(0, 1, 0), (2, 3, 1)]);
                                let wide = skews.layer::<1>(layer + 1, block);
                                joins!(join_inverse, r, wide, FULL > 1, [(0, 2, 0), (1, 3, 0)]);
                            }
                            _ => {
                                let narrow = skews.layer::<4>(layer, block);
                                joins!(
                                    join_inverse,
                                    r,
                                    narrow,
                                    FULL > 0,
                                    [(0, 1, 0), (2, 3, 1), (4, 5, 2), (6, 7, 3)]
                                );
                                let middle = skews.layer::<2>(layer + 1, block);
                                joins!(
                                    join_inverse,
                                    r,
                                    middle,
                                    FULL > 1,
                                    [(0, 2, 0), (1, 3, 0), (4, 6, 1), (5, 7, 1)]
                                );
                                let wide = skews.layer::<1>(layer + 2, block);
                                joins!(
                                    join_inverse,
                                    r,
                                    wide,
                                    FULL > 2,
                                    [(0, 4, 0), (1, 5, 0), (2, 6, 0), (3, 7, 0)]
                                );
                            }
                        }
                        each!([0, 1, 2, 3, 4, 5, 6, 7], |I| if I < 1 << BITS {
                            done(buffer, first + I * step, V, r[I]);
                        });
                    });
                }
            }
        }

        /// The same backwards, from the widest layer to the narrowest.
        #[inline]
        #[$features]
        fn forward_symbols<B, const N: usize, const BITS: usize, const FULL: usize>(
            buffer: &mut B,
            rows: usize,
            layer: usize,
            skews: &Skews<TABLE_LEN, N>,
            load: impl Fn(&B, usize) -> &Unit,
            mut done: impl FnMut(&mut B, usize, usize, Pair),
        ) {
            let step = 1 << layer;
            for block in 0..rows / (step << BITS) {
                for first in (block * step << BITS..).take(step) {
                    each!($vectors, |V| {
                        let mut r = [[zero_vector(); 2]; 8];
                        each!([0, 1, 2, 3, 4, 5, 6, 7], |I| if I < 1 << BITS {
                            r[I] = load_pair(load(buffer, first + I * step), V);
                        });
                        match BITS {
                            1 => {
                                joins!(join_forward, r, skews.layer::<1>(layer, block), FULL > 0, [(0, 1, 0)])
                            }
                            2 => {
                                let wide = skews.layer::<1>(layer + 1, block);
                                joins!(join_forward, r, wide, FULL > 1, [(0, 2, 0), (1, 3, 0)]);
                                let narrow = skews.layer::<2>(layer, block);
                                joins!(join_forward, r, narrow, FULL > 0, [(0, 1, 0), (2, 3, 1)]);
                            }
                            _ => {
                                let wide = skews.layer::<1>(layer + 2, block);
                                joins!(
                                    join_forward,
                                    r,
                                    wide,
                                    FULL > 2,
                                    [(0, 4, 0), (1, 5, 0), (2, 6, 0), (3, 7, 0)]
                                );
                                let middle = skews.layer::<2>(layer + 1, block);
                                joins!(
                                    join_forward,
                                    r,
                                    middle,
                                    FULL > 1,
                                    [(0, 2, 0), (1, 3, 0), (4, 6, 1), (5, 7, 1)]
                                );
                                let narrow = skews.layer::<4>(layer, block);
                                joins!(
                                    join_forward,
                                    r,
                                    narrow,
                                    FULL > 0,
                                    [(0, 1, 0), (2, 3, 1), (4, 5, 2), (6, 7, 3)]
                                );
                            }
                        }
                        each!([0, 1, 2, 3, 4, 5, 6, 7], |I| if I < 1 << BITS {
                            done(buffer, first + I * step, V, r[I]);
                        });
                    });
                }
            }
        }

        #[inline]
        #[$features]
        fn join_planes_inverse(x: Vector, y: Vector, tables: &Loaded) -> (Vector, Vector) {
            let y = xor(y, x);
            (xor(x, product_of_vector(y, *tables)), y)
        }

        #[inline]
        #[$features]
        fn join_planes_forward(x: Vector, y: Vector, tables: &Loaded) -> (Vector, Vector) {
            let x = xor(x, product_of_vector(y, *tables));
            (x, xor(y, x))
        }

        /// Loads the tables of `K` bytes.
        #[inline]
        #[$features]
        fn load_skews<const K: usize>(
            skews: &FarSkews<TABLE_LEN>,
            layer: usize,
            block: usize,
        ) -> [Loaded; K] {
            let layer = skews.layer::<K>(layer, block).low;
            let mut loaded = [load_tables(&layer[0]); K];
            for (loaded, table) in loaded.iter_mut().zip(layer).skip(1) {
                *loaded = load_tables(table);
            }
            loaded
        }

        /// Layers with bytes as skews, up to two, whose tables stay in registers.
        #[inline]
        #[$features]
        fn inverse_few_planes<B>(
            buffer: &mut B,
            [rows, layer, bits]: [usize; 3],
            skews: &FarSkews<TABLE_LEN>,
            load: impl Fn(&B, usize) -> &Unit,
            mut done: impl FnMut(&mut B, usize, usize, usize, Vector),
        ) {
            let step = 1 << layer;
            for block in 0..rows / (step << bits) {
                let first = block * step << bits;
                if bits == 1 {
                    let tables = load_skews::<1>(skews, layer, block);
                    for first in first..first + step {
                        each!([0, 1], |P| each!($vectors, |V| {
                            let mut r = [zero_vector(); 2];
                            each!([0, 1], |I| r[I] = load_plane(load(buffer, first + I * step), P, V));
                            joins_by!(join_planes_inverse, r, tables, [(0, 1, 0)]);
                            each!([0, 1], |I| done(buffer, first + I * step, P, V, r[I]));
                        }));
                    }
                    continue;
                }
                let narrow = load_skews::<2>(skews, layer, block);
                let wide = load_skews::<1>(skews, layer + 1, block);
                for first in first..first + step {
                    each!([0, 1], |P| each!($vectors, |V| {
                        let mut r = [zero_vector(); 4];
                        each!([0, 1, 2, 3], |I| r[I] = load_plane(load(buffer, first + I * step), P, V));
                        joins_by!(join_planes_inverse, r, narrow, [(0, 1, 0), (2, 3, 1)]);
                        joins_by!(join_planes_inverse, r, wide, [(0, 2, 0), (1, 3, 0)]);
                        each!([0, 1, 2, 3], |I| done(buffer, first + I * step, P, V, r[I]));
                    }));
                }
            }
        }

        /// The same backwards.
        #[inline]
        #[$features]
        fn forward_few_planes<B>(
            buffer: &mut B,
            [rows, layer, bits]: [usize; 3],
            skews: &FarSkews<TABLE_LEN>,
            load: impl Fn(&B, usize) -> &Unit,
            mut done: impl FnMut(&mut B, usize, usize, usize, Vector),
        ) {
            let step = 1 << layer;
            for block in 0..rows / (step << bits) {
                let first = block * step << bits;
                if bits == 1 {
                    let tables = load_skews::<1>(skews, layer, block);
                    for first in first..first + step {
                        each!([0, 1], |P| each!($vectors, |V| {
                            let mut r = [zero_vector(); 2];
                            each!([0, 1], |I| r[I] = load_plane(load(buffer, first + I * step), P, V));
                            joins_by!(join_planes_forward, r, tables, [(0, 1, 0)]);
                            each!([0, 1], |I| done(buffer, first + I * step, P, V, r[I]));
                        }));
                    }
                    continue;
                }
                let narrow = load_skews::<2>(skews, layer, block);
                let wide = load_skews::<1>(skews, layer + 1, block);
                for first in first..first + step {
                    each!([0, 1], |P| each!($vectors, |V| {
                        let mut r = [zero_vector(); 4];
                        each!([0, 1, 2, 3], |I| r[I] = load_plane(load(buffer, first + I * step), P, V));
                        joins_by!(join_planes_forward, r, wide, [(0, 2, 0), (1, 3, 0)]);
                        joins_by!(join_planes_forward, r, narrow, [(0, 1, 0), (2, 3, 1)]);
                        each!([0, 1, 2, 3], |I| done(buffer, first + I * step, P, V, r[I]));
                    }));
                }
            }
        }
    };
}
pub(crate) use area_passes;

//! Passes over planes of areas for kernels with registers for sixteen rows.

/// Defines `inverse_planes` and `forward_planes` of one to four layers. `kernel/mod.rs` says what it needs.
macro_rules! area_planes {
    (#[$features:meta] vectors: $vectors:tt) => {
        /// Layers from `layer` on whose skews are bytes, `bits` of them.
        #[inline]
        #[$features]
        fn inverse_planes<B>(
            buffer: &mut B,
            [rows, layer, bits]: [usize; 3],
            skews: &FarSkews<TABLE_LEN>,
            load: impl Fn(&B, usize) -> &Unit,
            done: impl FnMut(&mut B, usize, usize, usize, Vector),
        ) {
            match bits {
                1 | 2 => inverse_few_planes(buffer, [rows, layer, bits], skews, load, done),
                3 => inverse_many_planes::<B, 8>(buffer, [rows, layer], skews, load, done),
                _ => inverse_many_planes::<B, 16>(buffer, [rows, layer], skews, load, done),
            }
        }

        /// The same backwards.
        #[inline]
        #[$features]
        fn forward_planes<B>(
            buffer: &mut B,
            [rows, layer, bits]: [usize; 3],
            skews: &FarSkews<TABLE_LEN>,
            load: impl Fn(&B, usize) -> &Unit,
            done: impl FnMut(&mut B, usize, usize, usize, Vector),
        ) {
            match bits {
                1 | 2 => forward_few_planes(buffer, [rows, layer, bits], skews, load, done),
                3 => forward_many_planes::<B, 8>(buffer, [rows, layer], skews, load, done),
                _ => forward_many_planes::<B, 16>(buffer, [rows, layer], skews, load, done),
            }
        }

        #[inline]
        #[$features]
        fn join_inverse_by(x: Vector, y: Vector, table: &[u8; TABLE_LEN]) -> (Vector, Vector) {
            join_planes_inverse(x, y, &load_tables(table))
        }

        #[inline]
        #[$features]
        fn join_forward_by(x: Vector, y: Vector, table: &[u8; TABLE_LEN]) -> (Vector, Vector) {
            join_planes_forward(x, y, &load_tables(table))
        }

        /// Three or four layers on `R` rows.
        #[inline]
        #[$features]
        fn inverse_many_planes<B, const R: usize>(
            buffer: &mut B,
            [rows, layer]: [usize; 2],
            skews: &FarSkews<TABLE_LEN>,
            load: impl Fn(&B, usize) -> &Unit,
            mut done: impl FnMut(&mut B, usize, usize, usize, Vector),
        ) {
            let step = 1 << layer;
            for block in 0..rows / (step * R) {
                for first in (block * step * R..).take(step) {
                    each!([0, 1], |P| each!($vectors, |V| {
                        let mut r = [zero_vector(); 16];
                        each!(|I| if I < R {
                            r[I] = load_plane(load(buffer, first + I * step), P, V)
                        });
                        inverse_rows::<R>(&mut r, skews, layer, block);
                        each!(|I| if I < R {
                            done(buffer, first + I * step, P, V, r[I])
                        });
                    }));
                }
            }
        }

        #[inline]
        #[$features]
        fn inverse_rows<const R: usize>(
            r: &mut [Vector; 16],
            skews: &FarSkews<TABLE_LEN>,
            layer: usize,
            block: usize,
        ) {
            if R == 8 {
                let by = skews.layer::<4>(layer, block).low;
                joins_by!(join_inverse_by, r, by, [(0, 1, 0), (2, 3, 1), (4, 5, 2), (6, 7, 3)]);
                let by = skews.layer::<2>(layer + 1, block).low;
                joins_by!(join_inverse_by, r, by, [(0, 2, 0), (1, 3, 0), (4, 6, 1), (5, 7, 1)]);
                let by = skews.layer::<1>(layer + 2, block).low;
                joins_by!(join_inverse_by, r, by, [(0, 4, 0), (1, 5, 0), (2, 6, 0), (3, 7, 0)]);
                return;
            }
            let by = skews.layer::<8>(layer, block).low;
            joins_by!(join_inverse_by, r, by, [(0, 1, 0), (2, 3, 1), (4, 5, 2), (6, 7, 3)]);
            joins_by!(join_inverse_by, r, by, [(8, 9, 4), (10, 11, 5), (12, 13, 6), (14, 15, 7)]);
            let by = skews.layer::<4>(layer + 1, block).low;
            joins_by!(join_inverse_by, r, by, [(0, 2, 0), (1, 3, 0), (4, 6, 1), (5, 7, 1)]);
            joins_by!(join_inverse_by, r, by, [(8, 10, 2), (9, 11, 2), (12, 14, 3), (13, 15, 3)]);
            let by = skews.layer::<2>(layer + 2, block).low;
            joins_by!(join_inverse_by, r, by, [(0, 4, 0), (1, 5, 0), (2, 6, 0), (3, 7, 0)]);
            joins_by!(join_inverse_by, r, by, [(8, 12, 1), (9, 13, 1), (10, 14, 1), (11, 15, 1)]);
            let by = skews.layer::<1>(layer + 3, block).low;
            joins_by!(join_inverse_by, r, by, [(0, 8, 0), (1, 9, 0), (2, 10, 0), (3, 11, 0)]);
            joins_by!(join_inverse_by, r, by, [(4, 12, 0), (5, 13, 0), (6, 14, 0), (7, 15, 0)]);
        }

        #[inline]
        #[$features]
        fn forward_many_planes<B, const R: usize>(
            buffer: &mut B,
            [rows, layer]: [usize; 2],
            skews: &FarSkews<TABLE_LEN>,
            load: impl Fn(&B, usize) -> &Unit,
            mut done: impl FnMut(&mut B, usize, usize, usize, Vector),
        ) {
            let step = 1 << layer;
            for block in 0..rows / (step * R) {
                for first in (block * step * R..).take(step) {
                    each!([0, 1], |P| each!($vectors, |V| {
                        let mut r = [zero_vector(); 16];
                        each!(|I| if I < R {
                            r[I] = load_plane(load(buffer, first + I * step), P, V)
                        });
                        forward_rows::<R>(&mut r, skews, layer, block);
                        each!(|I| if I < R {
                            done(buffer, first + I * step, P, V, r[I])
                        });
                    }));
                }
            }
        }

        #[inline]
        #[$features]
        fn forward_rows<const R: usize>(
            r: &mut [Vector; 16],
            skews: &FarSkews<TABLE_LEN>,
            layer: usize,
            block: usize,
        ) {
            if R == 8 {
                let by = skews.layer::<1>(layer + 2, block).low;
                joins_by!(join_forward_by, r, by, [(0, 4, 0), (1, 5, 0), (2, 6, 0), (3, 7, 0)]);
                let by = skews.layer::<2>(layer + 1, block).low;
                joins_by!(join_forward_by, r, by, [(0, 2, 0), (1, 3, 0), (4, 6, 1), (5, 7, 1)]);
                let by = skews.layer::<4>(layer, block).low;
                joins_by!(join_forward_by, r, by, [(0, 1, 0), (2, 3, 1), (4, 5, 2), (6, 7, 3)]);
                return;
            }
            let by = skews.layer::<1>(layer + 3, block).low;
            joins_by!(join_forward_by, r, by, [(0, 8, 0), (1, 9, 0), (2, 10, 0), (3, 11, 0)]);
            joins_by!(join_forward_by, r, by, [(4, 12, 0), (5, 13, 0), (6, 14, 0), (7, 15, 0)]);
            let by = skews.layer::<2>(layer + 2, block).low;
            joins_by!(join_forward_by, r, by, [(0, 4, 0), (1, 5, 0), (2, 6, 0), (3, 7, 0)]);
            joins_by!(join_forward_by, r, by, [(8, 12, 1), (9, 13, 1), (10, 14, 1), (11, 15, 1)]);
            let by = skews.layer::<4>(layer + 1, block).low;
            joins_by!(join_forward_by, r, by, [(0, 2, 0), (1, 3, 0), (4, 6, 1), (5, 7, 1)]);
            joins_by!(join_forward_by, r, by, [(8, 10, 2), (9, 11, 2), (12, 14, 3), (13, 15, 3)]);
            let by = skews.layer::<8>(layer, block).low;
            joins_by!(join_forward_by, r, by, [(0, 1, 0), (2, 3, 1), (4, 5, 2), (6, 7, 3)]);
            joins_by!(join_forward_by, r, by, [(8, 9, 4), (10, 11, 5), (12, 13, 6), (14, 15, 7)]);
        }
    };
}
pub(crate) use area_planes;

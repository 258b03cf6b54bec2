//! Sums of many rows: the loops of live streams, where a kernel's work is loads and additions.
//!
//! A sum reads every source once, adds in registers, multiplies once and stores once. A
//! [`Walk`](crate::gf256::kernel::Walk) says how many bytes of a row are taken at a time, and whether the next ones are
//! prefetched. The fastest walk depends on the machine, so all of them are there to be measured. In each the loads of a
//! step come first, then the additions, then the stores: compilers turn that into pairs of loads, which in-order cores
//! need.

/// Bytes ahead that a walk with prefetching fetches.
pub(crate) const AHEAD: usize = 256;

/// Defines `STREAM_LOOPS`, the `StreamLoops` of a kernel (`contract.rs`). `width` is the bytes of a vector.
/// `kernel/mod.rs` says what it needs; with `four_loads: own` also `load_four`, which loads four vectors by one
/// instruction.
macro_rules! stream_loops {
    (#[$features:meta] width: $width:expr, table_len: $table_len:expr) => {
        crate::gf256::kernel::loops::stream_loops::stream_loops! { #[$features] width: $width, table_len: $table_len, four_loads: own }

        #[inline]
        #[$features]
        fn load_four(bytes: &[[u8; $width]; 4]) -> [Vector; 4] {
            let [a, b, c, d] = bytes;
            [load_vector(a), load_vector(b), load_vector(c), load_vector(d)]
        }
    };
    (#[$features:meta] width: $width:expr, table_len: $table_len:expr, four_loads: own) => {
        const STREAM_LOOPS: crate::gf256::kernel::contract::StreamLoops = crate::gf256::kernel::contract::StreamLoops {
            width: $width,
            sum: stream_sum,
            add: stream_add,
            spread: stream_spread,
            mix: stream_mix,
            turn: stream_turn,
            add_products: stream_add_products,
            eliminate: stream_eliminate,
            prefetch: prefetch_row,
        };

        #[$features]
        fn stream_sum(
            classes: &[&[&[u8]]],
            table: &[u8],
            dst: &mut [u8],
            walk: crate::gf256::kernel::tuning::Walk,
        ) -> usize {
            use crate::gf256::kernel::tuning::Walk;
            let table = table.first_chunk().expect("a packed table");
            let at = match walk {
                Walk::Line => sum_from::<{ 64 / $width }, false>(classes, table, dst, 0),
                Walk::LinePrefetch => sum_from::<{ 64 / $width }, true>(classes, table, dst, 0),
                Walk::TwoLines => sum_from::<{ 128 / $width }, true>(classes, table, dst, 0),
                Walk::FourLines => {
                    let at = sum_from::<{ 256 / $width }, true>(classes, table, dst, 0);
                    sum_from::<{ 128 / $width }, true>(classes, table, dst, at)
                }
                Walk::FourRegisters => sum_four(classes, table, dst),
            };
            sum_from::<1, false>(classes, table, dst, at)
        }

        /// Sums `N` vectors at a time, from byte `at` on. Returns the position at which fewer are left.
        #[inline]
        #[$features]
        fn sum_from<const N: usize, const PREFETCH: bool>(
            classes: &[&[&[u8]]],
            table: &[u8; $table_len],
            dst: &mut [u8],
            mut at: usize,
        ) -> usize {
            while at + N * $width <= dst.len() {
                let mut sums = [zero_vector(); N];
                for (power, class) in classes.iter().enumerate().rev() {
                    for row in *class {
                        sums = add_row::<N, PREFETCH>(sums, row, at);
                    }
                    if power > 0 {
                        for sum in &mut sums {
                            *sum = product(*sum, table);
                        }
                    }
                }
                let out = dst[at..].as_chunks_mut::<$width>().0;
                for (out, sum) in out.iter_mut().zip(sums) {
                    store_vector(out, sum, false);
                }
                at += N * $width;
            }
            at
        }

        #[inline]
        #[$features]
        fn add_row<const N: usize, const PREFETCH: bool>(
            sums: [Vector; N],
            row: &[u8],
            at: usize,
        ) -> [Vector; N] {
            if PREFETCH {
                for line in (0..N * $width).step_by(64) {
                    prefetch(row, at + crate::gf256::kernel::loops::stream_loops::AHEAD + line);
                }
            }
            add_bytes(sums, row[at..].as_chunks().0.first_chunk().expect("sources are as long as the sum"))
        }

        #[inline]
        #[$features]
        fn add_bytes<const N: usize>(mut sums: [Vector; N], bytes: &[[u8; $width]; N]) -> [Vector; N] {
            let mut loaded = [zero_vector(); N];
            for (vector, bytes) in loaded.iter_mut().zip(bytes) {
                *vector = load_vector(bytes);
            }
            for (sum, vector) in sums.iter_mut().zip(loaded) {
                *sum = xor(*sum, vector);
            }
            sums
        }

        #[inline]
        #[$features]
        fn sum_four(classes: &[&[&[u8]]], table: &[u8; $table_len], dst: &mut [u8]) -> usize {
            let (out, rest) = dst.as_chunks_mut::<{ 4 * $width }>();
            let done = out.len() * 4 * $width;
            let _ = rest;
            for (i, out) in out.iter_mut().enumerate() {
                let at = i * 4 * $width;
                let mut sums = [zero_vector(); 4];
                for (power, class) in classes.iter().enumerate().rev() {
                    for row in *class {
                        sums = add_four(sums, row, at);
                    }
                    if power > 0 {
                        for sum in &mut sums {
                            *sum = product(*sum, table);
                        }
                    }
                }
                for (out, sum) in out.as_chunks_mut::<$width>().0.iter_mut().zip(sums) {
                    store_vector(out, sum, false);
                }
            }
            done
        }

        #[inline]
        #[$features]
        fn add_four(mut sums: [Vector; 4], row: &[u8], at: usize) -> [Vector; 4] {
            let bytes = row[at..].as_chunks().0.first_chunk().expect("sources are as long as the sum");
            for (sum, vector) in sums.iter_mut().zip(load_four(bytes)) {
                *sum = xor(*sum, vector);
            }
            sums
        }

        #[$features]
        fn stream_add(dst: &mut [u8], src: &[u8], walk: crate::gf256::kernel::tuning::Walk) -> usize {
            use crate::gf256::kernel::tuning::Walk;
            assert!(src.len() >= dst.len(), "the source is as long as the sum");
            let at = match walk {
                Walk::Line => add_from::<{ 64 / $width }, false>(dst, src, 0),
                Walk::LinePrefetch => add_from::<{ 64 / $width }, true>(dst, src, 0),
                Walk::TwoLines => add_from::<{ 128 / $width }, true>(dst, src, 0),
                Walk::FourLines => add_from::<{ 256 / $width }, true>(dst, src, 0),
                Walk::FourRegisters => add_from_four(dst, src),
            };
            add_from::<1, false>(dst, src, at)
        }

        #[inline]
        #[$features]
        fn add_from<const N: usize, const PREFETCH: bool>(dst: &mut [u8], src: &[u8], at: usize) -> usize {
            let out = dst[at..].as_chunks_mut::<$width>().0.as_chunks_mut::<N>().0;
            let src = src[at..].as_chunks::<$width>().0.as_chunks::<N>().0;
            let end = at + out.len() * N * $width;
            for (out, bytes) in out.iter_mut().zip(src) {
                let mut sums = [zero_vector(); N];
                for (sum, bytes) in sums.iter_mut().zip(out.iter()) {
                    *sum = load_vector(bytes);
                }
                if PREFETCH {
                    for line in (0..N * $width).step_by(64) {
                        prefetch(bytes.as_flattened(), crate::gf256::kernel::loops::stream_loops::AHEAD + line);
                    }
                }
                sums = add_bytes(sums, bytes);
                for (out, sum) in out.iter_mut().zip(sums) {
                    store_vector(out, sum, false);
                }
            }
            end
        }

        #[inline]
        #[$features]
        fn add_from_four(dst: &mut [u8], src: &[u8]) -> usize {
            let (out, _) = dst.as_chunks_mut::<$width>();
            let (out, _) = out.as_chunks_mut::<4>();
            let done = out.len() * 4 * $width;
            for (i, out) in out.iter_mut().enumerate() {
                let sums = add_four(load_four(out), src, i * 4 * $width);
                for (out, sum) in out.iter_mut().zip(sums) {
                    store_vector(out, sum, false);
                }
            }
            done
        }

        #[$features]
        fn stream_spread(dst: [&mut [u8]; 3], src: &[u8], tables: [&[u8]; 2]) -> usize {
            // Copies, so that no store can change them: they stay in registers.
            let tables: [[u8; $table_len]; 2] =
                tables.map(|table| *table.first_chunk().expect("a packed table"));
            let (src, _) = src.as_chunks::<$width>();
            let [a, b, c] = dst.map(|row| row.as_chunks_mut::<$width>().0);
            for (((a, b), c), src) in a.iter_mut().zip(b).zip(c).zip(src) {
                let vector = load_vector(src);
                let one = xor(load_vector(a), vector);
                let two = xor(load_vector(b), product(vector, &tables[0]));
                let three = xor(load_vector(c), product(vector, &tables[1]));
                store_vector(a, one, false);
                store_vector(b, two, false);
                store_vector(c, three, false);
            }
            src.len() * $width
        }

        #[$features]
        fn stream_mix(rows: [&mut [u8]; 4]) -> usize {
            let [a, b, c, d] = rows.map(|row| row.as_chunks_mut::<$width>().0);
            let done = a.len() * $width;
            for (((a, b), c), d) in a.iter_mut().zip(b).zip(c).zip(d) {
                let [one, two, three, four] =
                    [load_vector(a), load_vector(b), load_vector(c), load_vector(d)];
                let (left, right) = (xor(one, two), xor(three, four));
                store_vector(a, xor(two, right), false);
                store_vector(b, xor(one, right), false);
                store_vector(c, xor(left, four), false);
                store_vector(d, xor(left, three), false);
            }
            done
        }

        #[$features]
        fn stream_turn(rows: [&mut [u8]; 3], src: &[u8]) -> usize {
            let (src, _) = src.as_chunks::<$width>();
            let [total, ended, begun] = rows.map(|row| row.as_chunks_mut::<$width>().0);
            for (((total, ended), begun), src) in total.iter_mut().zip(ended).zip(begun).zip(src) {
                let (before, old, left) = (load_vector(total), load_vector(ended), load_vector(src));
                let now = xor(before, left);
                store_vector(ended, xor(old, before), false);
                store_vector(total, now, false);
                store_vector(begun, now, false);
            }
            src.len() * $width
        }

        #[$features]
        fn stream_add_products(dst: &mut [u8], src: &[&[u8]], tables: &[u8]) -> usize {
            let tables = tables.as_chunks::<{ $table_len }>().0;
            let at = add_products_from::<4>(dst, src, tables, 0);
            add_products_from::<1>(dst, src, tables, at)
        }

        #[inline]
        #[$features]
        fn add_products_from<const N: usize>(
            dst: &mut [u8],
            src: &[&[u8]],
            tables: &[[u8; $table_len]],
            mut at: usize,
        ) -> usize {
            while at + N * $width <= dst.len() {
                let out: &mut [[u8; $width]; N] =
                    dst[at..].as_chunks_mut().0.first_chunk_mut().expect("so many are left");
                let mut sums = [zero_vector(); N];
                for (sum, bytes) in sums.iter_mut().zip(out.iter()) {
                    *sum = load_vector(bytes);
                }
                for (row, table) in src.iter().zip(tables) {
                    let bytes: &[[u8; $width]; N] =
                        row[at..].as_chunks().0.first_chunk().expect("sources are as long as the sum");
                    for (sum, bytes) in sums.iter_mut().zip(bytes) {
                        *sum = xor(*sum, product(load_vector(bytes), table));
                    }
                }
                for (out, sum) in out.iter_mut().zip(sums) {
                    store_vector(out, sum, false);
                }
                at += N * $width;
            }
            at
        }

        #[$features]
        fn stream_eliminate(dst: &mut [u8], rows: &[(usize, &[u8])], factors: &mut [u8]) {
            for (&(position, row), to) in rows.iter().zip(factors) {
                let factor = dst[position];
                *to = factor;
                if factor == 0 {
                    continue;
                }
                let table = pack_table(factor);
                let sums = dst[position / 64 * 64..].as_chunks_mut::<$width>().0;
                for (sum, bytes) in sums.iter_mut().zip(row.as_chunks::<$width>().0) {
                    let vector = xor(load_vector(sum), product(load_vector(bytes), &table));
                    store_vector(sum, vector, false);
                }
            }
        }

        fn prefetch_row(row: &[u8]) {
            (0..row.len()).step_by(64).for_each(|at| prefetch(row, at));
        }
    };
}
pub(crate) use stream_loops;

//! Products of single rows of areas, and their way out.

/// Defines `scale`, `add_products_of` and `put_rows`, and the list of all loops. `kernel/mod.rs` says what it needs.
macro_rules! area_rows {
    (#[$features:meta] width: $width:literal) => {
        /// Multiplies each unit by a factor of its own.
        #[$features]
        fn scale(units: &mut [Unit], factors: &[u16]) {
            for (unit, &factor) in units.iter_mut().zip(factors) {
                let [low, sum, high] = factors_of(factor).map(pack_table);
                for v in 0..VECTORS {
                    let product = add_symbol([zero_vector(); 2], load_pair(unit, v), [&low, &sum, &high]);
                    store_pair(unit, v, product);
                }
            }
        }

        /// Adds the products of stretches by `factor` to other stretches, or puts them there.
        #[$features]
        fn add_multiples(units: &mut [Unit], stretches: Stretches, factor: u16, add: bool) {
            let [low, sum, high] = factors_of(factor).map(pack_table);
            for i in 0..stretches.count {
                let start = i * stretches.distance;
                for (to, from) in (start + stretches.to..).zip(start + stretches.from..).take(stretches.len) {
                    for v in 0..VECTORS {
                        let before = if add { load_pair(&units[to], v) } else { [zero_vector(); 2] };
                        let sum = add_symbol(before, load_pair(&units[from], v), [&low, &sum, &high]);
                        store_pair(&mut units[to], v, sum);
                    }
                }
            }
        }

        /// Copies the units of row `places[i]` of a group to `rows[i]`, from byte `at` on.
        #[$features]
        fn put_rows(units: &[Unit], places: &[u8], rows: &mut [&mut [u8]], at: usize, stream: bool) {
            let count = units.len() / GROUP;
            for (&place, row) in places.iter().zip(rows) {
                let row = row[at..][..count * UNIT].as_chunks_mut::<UNIT>().0;
                for (to, from) in row.iter_mut().zip(units[usize::from(place)..].iter().step_by(GROUP)) {
                    let (from, to) = (from.as_flattened(), to.as_chunks_mut::<$width>().0);
                    for (to, from) in to.iter_mut().zip(from.as_chunks::<$width>().0) {
                        store_vector(to, load_vector(from), stream);
                    }
                }
            }
            if stream {
                fence();
            }
        }

        const AREA_LOOPS: crate::gf256::kernel::contract::AreaLoops =
            crate::gf256::kernel::contract::AreaLoops {
                near_rows,
                near_inverse,
                near_forward,
                far_inverse,
                far_forward,
                scale,
                add_multiples,
                put_rows,
            };
    };
}
pub(crate) use area_rows;

//! The work of a program's passes on parts of rows: the butterflies, and the sums on the way into a block and out of
//! it.
//!
//! In the two narrowest of a block's four layers the rows 4g to 4g + 3 meet each other, in the two widest the rows i,
//! i + 4, i + 8 and i + 12: either way four rows and three skews. All butterflies are therefore two layers of four
//! rows: `near` with the tables of the narrowest layers, `far` with those of the widest.
//!
//! A part is as much of a line as leaves registers for the tables of three skews, or all of it.

/// Defines the shared code of the passes: parts of lines, `near` and `far`, `inverse_four` and `forward_four`, and the
/// sums `put_…` and `keep_…`. `part` is the bytes of a `Part`. `kernel/mod.rs` says what it needs.
macro_rules! parts {
    (#[$features:meta] part: $part:literal) => {
        /// Bytes of a part of a line.
        const PART: usize = $part;

        /// Part `p` of a line.
        #[inline]
        #[$features]
        fn part(line: &[u8; LINE], p: usize) -> Part {
            load_part(&line.as_chunks::<PART>().0[p])
        }

        #[inline]
        #[$features]
        fn put_part(line: &mut [u8; LINE], p: usize, part: Part, stream: bool) {
            store_part(&mut line.as_chunks_mut::<PART>().0[p], part, stream);
        }

        /// The two narrowest layers, with the rows from 4 · `g`; the wider layer comes first.
        #[inline]
        #[$features]
        fn near(skews: &[Table; BLOCK - 1], g: usize) -> [Loaded; 3] {
            [load_tables(&skews[3 + g]), load_tables(&skews[7 + 2 * g]), load_tables(&skews[8 + 2 * g])]
        }

        /// The two widest layers.
        #[inline]
        #[$features]
        fn far(skews: &[Table; BLOCK - 1]) -> [Loaded; 3] {
            [load_tables(&skews[0]), load_tables(&skews[1]), load_tables(&skews[2])]
        }

        /// Two layers of inverse butterflies of four rows, the narrower first. At the origin the first skew of both is
        /// 0.
        #[inline]
        #[$features]
        fn inverse_four<const ORIGIN: bool>(
            mut r: [Part; 4],
            [wide, first, second]: [Loaded; 3],
        ) -> [Part; 4] {
            r[1] = xor_parts(r[1], r[0]);
            r[3] = xor_parts(r[3], r[2]);
            if !ORIGIN {
                r[0] = xor_parts(r[0], product_of(r[1], first));
            }
            r[2] = xor_parts(r[2], product_of(r[3], second));
            r[2] = xor_parts(r[2], r[0]);
            r[3] = xor_parts(r[3], r[1]);
            if !ORIGIN {
                r[0] = xor_parts(r[0], product_of(r[2], wide));
                r[1] = xor_parts(r[1], product_of(r[3], wide));
            }
            r
        }

        /// Two layers of butterflies of four rows, the wider first, as far as the first `WANTED` need them: 1, 2 or 4.
        #[inline]
        #[$features]
        fn forward_four<const WANTED: usize>(
            mut r: [Part; 4],
            [wide, first, second]: [Loaded; 3],
        ) -> [Part; 4] {
            r[0] = xor_parts(r[0], product_of(r[2], wide));
            r[1] = xor_parts(r[1], product_of(r[3], wide));
            if WANTED > 2 {
                r[2] = xor_parts(r[2], r[0]);
                r[3] = xor_parts(r[3], r[1]);
            }
            r[0] = xor_parts(r[0], product_of(r[1], first));
            if WANTED > 1 {
                r[1] = xor_parts(r[1], r[0]);
            }
            if WANTED > 2 {
                r[2] = xor_parts(r[2], product_of(r[3], second));
                r[3] = xor_parts(r[3], r[2]);
            }
            r
        }

        /// The layer above with a factor of 0, for a part of a row of the upper block: `to` ← `upper` + `low`.
        #[inline]
        #[$features]
        fn put_sum(to: &mut [u8; LINE], low: &[u8; LINE], p: usize, upper: Part) {
            put_part(to, p, xor_parts(upper, part(low, p)), false);
        }

        /// The layer above for a part of a row of the upper block: `to` ← `upper` + `low`, then `low` += `by` · `to`.
        #[inline]
        #[$features]
        fn put_butterfly(to: &mut [u8; LINE], low: &mut [u8; LINE], p: usize, upper: Part, by: Loaded) {
            let lower = part(low, p);
            let upper = xor_parts(upper, lower);
            put_part(to, p, upper, false);
            put_part(low, p, xor_parts(lower, product_of(upper, by)), false);
        }

        /// As above, if there is a factor; then `low` += `more[0]`, `to` += `more[1]`.
        #[inline]
        #[$features]
        fn put_butterfly_and_more(
            [to, low]: [&mut [u8; LINE]; 2],
            [to_low, to_high]: [&[u8; LINE]; 2],
            p: usize,
            upper: Part,
            by: Option<&Table>,
        ) {
            let mut lower = part(low, p);
            let upper = xor_parts(upper, lower);
            if let Some(by) = by {
                lower = xor_parts(lower, product_of(upper, load_tables(by)));
            }
            put_part(low, p, xor_parts(lower, part(to_low, p)), false);
            put_part(to, p, xor_parts(upper, part(to_high, p)), false);
        }

        /// A part of a row of the input `value`: returns it, and `keep` ← `value` + `high`.
        #[inline]
        #[$features]
        fn keep_other(keep: &mut [u8; LINE], high: &[u8; LINE], p: usize, value: Part) -> Part {
            put_part(keep, p, xor_parts(value, part(high, p)), false);
            value
        }

        /// The same for an input `value` + `high`: `keep` ← `value`.
        #[inline]
        #[$features]
        fn keep_first(keep: &mut [u8; LINE], high: &[u8; LINE], p: usize, value: Part) -> Part {
            put_part(keep, p, value, false);
            xor_parts(value, part(high, p))
        }

        /// The same for an input `value` + `by` · `high`: `keep` ← that input + `high`.
        #[inline]
        #[$features]
        fn keep_sum(keep: &mut [u8; LINE], high: &[u8; LINE], p: usize, value: Part, by: Loaded) -> Part {
            let high = part(high, p);
            let value = xor_parts(value, product_of(high, by));
            put_part(keep, p, xor_parts(value, high), false);
            value
        }
    };
}
pub(crate) use parts;

//! Butterflies in registers: the innermost part of the runner of programs.
//!
//! The four layers of a block fall into two halves of two layers each. In one half the rows 4g to 4g + 3 meet
//! each other, in the other half the rows i, i + 4, i + 8 and i + 12; so sixteen registers suffice for either,
//! and a kernel with more of them keeps all rows in place. A vector stands for a whole line: a kernel whose
//! registers are shorter takes several to a vector, and loads each table once for all of them.

/// Repeats a block for each number, as a constant: loops over registers must not be left to the optimiser.
/// Without numbers: for each row of a block.
macro_rules! each {
    ($i:ident => $body:block) => {
        super::layers::each!($i in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 => $body)
    };
    ($i:ident in $($n:literal)* => $body:block) => {{ $({ const $i: usize = $n; $body })* }};
}
pub(super) use each;

/// The same as a loop, for the portable kernel, whose lines are in memory anyway: it keeps that small.
macro_rules! looped {
    ($i:ident => $body:block) => {
        super::layers::looped!($i in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 => $body)
    };
    ($i:ident in $($n:literal)* => $body:block) => {{
        #[allow(non_snake_case)]
        for $i in [$($n),*] $body
    }};
}
pub(super) use looped;

/// Defines the butterflies. For what the file provides see [`passes!`](super::passes::passes).
macro_rules! layers {
    ($(#[$features:meta])*) => {
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

        /// All layers of inverse butterflies of up to eight values; their skews are the widest layer's first.
        #[inline]
        $(#[$features])*
        fn inverse_some<const N: usize>(r: &mut [Line; N], skews: &[Table]) {
            let mut width = 1;
            while width < N {
                let layer = &skews[N / (2 * width) - 1..];
                for group in 0..N / (2 * width) {
                    for x in 2 * width * group..2 * width * group + width {
                        r[x + width] = xor_lines(r[x + width], r[x]);
                        r[x] = xor_lines(r[x], multiply(r[x + width], &layer[group]));
                    }
                }
                width *= 2;
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

        /// A tail of `KNOWN` rows, or with 0 of `known`: `x`, the residue, becomes the rows of which the first so
        /// many are wanted. The source rows are `line(i)`.
        #[inline]
        $(#[$features])*
        fn tail<const KNOWN: usize>(
            x: &mut [Line; BLOCK],
            known: usize,
            line: impl Fn(usize) -> Line,
            skews: &[Table; BLOCK - 1],
        ) {
            let known = if KNOWN == 0 { known } else { KNOWN };
            // Downwards: a first half that is known as a whole is transformed, added to the rest of the residue,
            // and left behind as far as the rows above it need not be known.
            macro_rules! layer {
                ($width:literal, $skews:literal) => {
                    let start = (known - 1) / (2 * $width) * (2 * $width);
                    let node: &mut [Line; 2 * $width] =
                        x[start..].first_chunk_mut().expect("a node of the block");
                    for i in 0..$width {
                        node[i] = xor_lines(node[i], multiply(node[i + $width], &skews[$skews]));
                    }
                    if start + $width < known {
                        let mut half: [Line; $width] = std::array::from_fn(|i| line(start + i));
                        inverse_some(&mut half, &skews[$skews + 1..]);
                        for i in 0..$width {
                            node[i] = xor_lines(node[i], half[i]);
                            node[i + $width] = xor_lines(node[i + $width], half[i]);
                        }
                    }
                };
            }
            layer!(8, 0);
            layer!(4, 8);
            layer!(2, 12);
            layer!(1, 14);
            x[known - 1] = xor_lines(x[known - 1], line(known - 1));
            // And upwards: those rows are known now.
            for (width, skew) in [(1, 14), (2, 12), (4, 8), (8, 0)] {
                let start = (known - 1) / (2 * width) * (2 * width);
                for i in start + width..known {
                    x[i - width] = xor_lines(x[i - width], multiply(x[i], &skews[skew]));
                }
            }
        }
    };
}
pub(super) use layers;

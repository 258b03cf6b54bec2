//! The butterflies of a tail: a block in which only the first rows are known.
//!
//! They work on whole lines. A kernel with shorter registers takes several to a line, and loads each table once for all
//! of them.

/// Defines `tail`. `kernel/mod.rs` says what it needs.
macro_rules! tail {
    (#[$features:meta]) => {
        /// All layers of inverse butterflies of up to eight values; the skews of the widest layer come first.
        #[inline]
        #[$features]
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

        /// A tail of `KNOWN` rows, or of `known` if that is 0: the residue `x` becomes the rows, of which only the
        /// first so many are wanted. The source rows are `line(i)`.
        #[inline]
        #[$features]
        fn tail<const KNOWN: usize>(
            x: &mut [Line; BLOCK],
            known: usize,
            line: impl Fn(usize) -> Line,
            skews: &[Table; BLOCK - 1],
        ) {
            let known = if KNOWN == 0 { known } else { KNOWN };
            // Downwards: a first half that is known as a whole is transformed and added to the rest of the residue. It
            // then stays as it is, as far as the rows above it need not be known.
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
            // Upwards: those rows are known now.
            for (width, skew) in [(1, 14), (2, 12), (4, 8), (8, 0)] {
                let start = (known - 1) / (2 * width) * (2 * width);
                for i in start + width..known {
                    x[i - width] = xor_lines(x[i - width], multiply(x[i], &skews[skew]));
                }
            }
        }
    };
}
pub(crate) use tail;

//! Inverse and forward passes of kernels whose registers do not hold a block of lines.
//!
//! In the two narrowest of a block's four layers the rows 4g to 4g + 3 meet each other, in the two widest the rows i,
//! i + 4, i + 8 and i + 12: either way four rows and three skews. So a pass goes over its tile twice, once for each
//! pair of layers (`near` are the narrowest, `far` the widest), with four rows at a time in registers, a part of a line
//! each, and with the tables of their skews, which stay there for all columns.

use super::aligned::LINE;

/// Defines `inverse_pass`, `forward_pass` and `TWO_LAYERS`. `part` is the bytes of a `Part`. For what it needs see the
/// table in [`super`].
macro_rules! two_layers {
    ($(#[$features:meta])* part: $part:literal) => {
        use super::two_layers::{lines, lines_mut};

        /// Whether a pass goes over its tile twice.
        const TWO_LAYERS: bool = true;

        /// Bytes of a part of a line.
        const PART: usize = $part;

        /// Parts of a line.
        const PARTS: usize = LINE / PART;

        /// Four lines.
        type Four = [[u8; LINE]; 4];

        /// Part `p` of a line.
        #[inline]
        $(#[$features])*
        fn part(line: &[u8; LINE], p: usize) -> Part {
            load_part(&line.as_chunks().0[p])
        }

        #[inline]
        $(#[$features])*
        fn put_part(line: &mut [u8; LINE], p: usize, part: Part, stream: bool) {
            store_part(&mut line.as_chunks_mut().0[p], part, stream);
        }

        /// Part `p` of four lines.
        #[inline]
        $(#[$features])*
        fn four_parts([a, b, c, d]: &Four, p: usize) -> [Part; 4] {
            [part(a, p), part(b, p), part(c, p), part(d, p)]
        }

        /// The tables of three skews of a block.
        #[inline]
        $(#[$features])*
        fn three(skews: &[Table; BLOCK - 1], numbers: [usize; 3]) -> [Loaded; 3] {
            let [a, b, c] = numbers;
            [load_tables(&skews[a]), load_tables(&skews[b]), load_tables(&skews[c])]
        }

        /// The two narrowest layers, with the rows from 4 · `g`: the wider of the two comes first.
        #[inline]
        $(#[$features])*
        fn near(skews: &[Table; BLOCK - 1], g: usize) -> [Loaded; 3] {
            three(skews, [3 + g, 7 + 2 * g, 8 + 2 * g])
        }

        /// The two widest layers.
        #[inline]
        $(#[$features])*
        fn far(skews: &[Table; BLOCK - 1]) -> [Loaded; 3] {
            three(skews, [0, 1, 2])
        }

        /// Two layers of inverse butterflies of four rows, the narrower first. At the origin the first skew of both is
        /// 0.
        #[inline]
        $(#[$features])*
        fn inverse_four<const ORIGIN: bool>(mut r: [Part; 4], [wide, first, second]: [Loaded; 3]) -> [Part; 4] {
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
        $(#[$features])*
        fn forward_four<const WANTED: usize>(mut r: [Part; 4], [wide, first, second]: [Loaded; 3]) -> [Part; 4] {
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

        #[inline(never)]
        #[allow(clippy::too_many_arguments)]
        $(#[$features])*
        fn inverse_pass<const ORIGIN: bool>(
            blocks: &mut [Column],
            sets: &[Rows<'_, '_, '_, '_>],
            sources: &[u8; BLOCK],
            to: usize,
            skews: &[Table; BLOCK - 1],
            tables: &[Table],
            merge: Option<Merge>,
            tile: Tile<'_>,
        ) {
            let mut column = 0;
            while let Some((Place { set, at }, places)) = tile.run_from(column) {
                let (src, blocks) = (sets[set].0, &mut blocks[to * tile.columns + column..][..places.len()]);
                for (g, sources) in sources.as_chunks().0.iter().enumerate() {
                    let [a, b, c, d] = *sources;
                    let rows = [
                        src[usize::from(a)],
                        src[usize::from(b)],
                        src[usize::from(c)],
                        src[usize::from(d)],
                    ];
                    if ORIGIN && g == 0 {
                        inverse_near::<true>(blocks, rows, at, near(skews, g), g);
                    } else {
                        inverse_near::<false>(blocks, rows, at, near(skews, g), g);
                    }
                    for next in places.iter().filter_map(|(_, next)| *next) {
                        if next.set == set {
                            each!(J in 0 1 2 3 => { prefetch(rows[J], next.at); });
                        } else {
                            let src = sets[next.set].0;
                            sources.iter().for_each(|&source| prefetch(src[usize::from(source)], next.at));
                        }
                    }
                }
                column += places.len();
            }
            inverse_far::<ORIGIN>(blocks, to, far(skews), tables, merge, tile);
        }

        /// The first half of an inverse pass: rows of a block ← four sources after the two narrowest layers.
        #[inline]
        $(#[$features])*
        fn inverse_near<const ORIGIN: bool>(
            blocks: &mut [Column],
            [a, b, c, d]: [&[u8]; 4],
            at: usize,
            by: [Loaded; 3],
            g: usize,
        ) {
            let count = blocks.len();
            let [a, b, c, d] = [lines(a, at, count), lines(b, at, count), lines(c, at, count), lines(d, at, count)];
            for (i, block) in blocks.iter_mut().enumerate() {
                let to: &mut Four = block[4 * g..].first_chunk_mut().expect("four of sixteen rows");
                each!(P in 0 1 2 3 => {
                    if P < PARTS {
                        let r = [part(&a[i], P), part(&b[i], P), part(&c[i], P), part(&d[i], P)];
                        let r = inverse_four::<ORIGIN>(r, by);
                        each!(J in 0 1 2 3 => { put_part(&mut to[J], P, r[J], false); });
                    }
                });
            }
        }

        /// The second half of an inverse pass: the two widest layers in block `to`, and the layer above.
        #[inline]
        $(#[$features])*
        fn inverse_far<const ORIGIN: bool>(
            blocks: &mut [Column],
            to: usize,
            by: [Loaded; 3],
            tables: &[Table],
            merge: Option<Merge>,
            tile: Tile<'_>,
        ) {
            // Parts in the order in which they are done, each stored at once.
            macro_rules! done {
                ($to:ident, |$row:ident, $p:ident, $value:ident| $store:expr) => {
                    for i in 0..4 {
                        each!(P in 0 1 2 3 => {
                            if P < PARTS {
                                let mut r = [part(&$to[i], P); 4];
                                each!(J in 1 2 3 => { r[J] = part(&$to[i + 4 * J], P); });
                                let r = inverse_four::<ORIGIN>(r, by);
                                each!(J in 0 1 2 3 => {
                                    let ($row, $p, $value) = (i + 4 * J, P, r[J]);
                                    $store
                                });
                            }
                        });
                    }
                };
            }
            match merge {
                None => {
                    for to in &mut blocks[tile.columns_of(to)] {
                        done!(to, |row, p, value| put_part(&mut to[row], p, value, false));
                    }
                }
                Some(Merge { low, by: None, more: None }) => {
                    let two = [tile.columns_of(to), tile.columns_of(low)];
                    let [to, low] = blocks.get_disjoint_mut(two).expect(DISTINCT);
                    for (to, low) in to.iter_mut().zip(low) {
                        done!(to, |row, p, value| {
                            put_part(&mut to[row], p, xor_parts(value, part(&low[row], p)), false);
                        });
                    }
                }
                Some(Merge { low, by: Some(above), more: None }) => {
                    let above = load_tables(&tables[above]);
                    let two = [tile.columns_of(to), tile.columns_of(low)];
                    let [to, low] = blocks.get_disjoint_mut(two).expect(DISTINCT);
                    for (to, low) in to.iter_mut().zip(low) {
                        done!(to, |row, p, value| {
                            let lower = part(&low[row], p);
                            let upper = xor_parts(value, lower);
                            put_part(&mut to[row], p, upper, false);
                            put_part(&mut low[row], p, xor_parts(lower, product_of(upper, above)), false);
                        });
                    }
                }
                Some(Merge { low, by: above, more: Some([to_low, to_high]) }) => {
                    let four = [
                        tile.columns_of(to),
                        tile.columns_of(low),
                        tile.columns_of(to_low),
                        tile.columns_of(to_high),
                    ];
                    let [to, low, to_low, to_high] = blocks.get_disjoint_mut(four).expect(DISTINCT);
                    for (((to, low), to_low), to_high) in to.iter_mut().zip(low).zip(to_low).zip(to_high) {
                        done!(to, |row, p, value| {
                            let mut lower = part(&low[row], p);
                            let upper = xor_parts(value, lower);
                            if let Some(above) = above {
                                lower = xor_parts(lower, product_of(upper, load_tables(&tables[above])));
                            }
                            put_part(&mut low[row], p, xor_parts(lower, part(&to_low[row], p)), false);
                            put_part(&mut to[row], p, xor_parts(upper, part(&to_high[row], p)), false);
                        });
                    }
                }
            }
        }

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
            match OUTPUTS {
                16 => forward_far::<4>(blocks, stage, input, far(skews), tables, tile),
                8 => forward_far::<2>(blocks, stage, input, far(skews), tables, tile),
                _ => forward_far::<1>(blocks, stage, input, far(skews), tables, tile),
            }
            let mut column = 0;
            while let Some((Place { set, at }, places)) = tile.run_from(column) {
                let stage = &mut stage[column..][..places.len()];
                for (g, rows) in out.rows.as_chunks().0[..OUTPUTS / 4].iter().enumerate() {
                    let tap = tap.map(|(source, to)| {
                        let source = lines(sets[set].0[source], at, places.len());
                        (source, &mut blocks[to * tile.columns + column..][..places.len()])
                    });
                    forward_near(stage, sets[set].1, at, near(skews, g), tap, rows, g, tile.stream);
                    if tile.prefetch_outputs {
                        for next in places.iter().filter_map(|(_, next)| *next) {
                            let dst = &sets[next.set].1;
                            rows.iter().flatten().for_each(|&row| prefetch_write(dst[usize::from(row)], next.at));
                        }
                    }
                }
                if let Some((source, _)) = tap {
                    for next in places.iter().filter_map(|(_, next)| *next) {
                        prefetch(sets[next.set].0[source], next.at);
                    }
                }
                column += places.len();
            }
        }

        /// The first half of a forward pass: `stage` ← the input after the two widest layers, as far as the first
        /// `WANTED` quarters of outputs need them.
        #[inline]
        $(#[$features])*
        fn forward_far<const WANTED: usize>(
            blocks: &mut [Column],
            stage: &mut [Column],
            input: Input,
            by: [Loaded; 3],
            tables: &[Table],
            tile: Tile<'_>,
        ) {
            let stage = &mut stage[..tile.places.len()];
            // The sums with a few rows, where there are any, wait in `stage`.
            if let Some(Term { block, by, rows }) = input.few {
                let (from, few) = (&blocks[tile.columns_of(input.from)], &blocks[tile.columns_of(block)]);
                for ((stage, from), few) in stage.iter_mut().zip(from).zip(few) {
                    for i in 0..FEW {
                        let mut line = load_line(&from[i]);
                        if i < rows {
                            let few = load_line(&few[i]);
                            line = xor_lines(line, match by {
                                Factor::One => few,
                                Factor::Table(number) => multiply(few, &tables[number]),
                            });
                        }
                        put(&mut stage[i], line);
                    }
                }
            }
            // The rows i, i + 4, i + 8 and i + 12 are loaded, added to, and go through the layers.
            macro_rules! transformed {
                ($stage:ident, $from:ident, |$row:ident, $p:ident, $value:ident| $sum:expr) => {
                    for i in 0..4 {
                        each!(P in 0 1 2 3 => {
                            if P < PARTS {
                                let first = part(if input.few.is_some() { &$stage[i] } else { &$from[i] }, P);
                                let mut r = [first; 4];
                                each!(J in 0 1 2 3 => {
                                    let ($row, $p) = (i + 4 * J, P);
                                    let $value = if J == 0 { first } else { part(&$from[$row], P) };
                                    r[J] = $sum;
                                });
                                let r = forward_four::<WANTED>(r, by);
                                each!(J in 0 1 2 3 => {
                                    if J < WANTED {
                                        put_part(&mut $stage[i + 4 * J], P, r[J], false);
                                    }
                                });
                            }
                        });
                    }
                };
            }
            match (input.plus, input.keep) {
                (None, None) => {
                    for (stage, from) in stage.iter_mut().zip(&blocks[tile.columns_of(input.from)]) {
                        transformed!(stage, from, |_row, _p, value| value);
                    }
                }
                (Some((block, factor)), None) => {
                    let (from, plus) = (&blocks[tile.columns_of(input.from)], &blocks[tile.columns_of(block)]);
                    let all = stage.iter_mut().zip(from).zip(plus);
                    match factor {
                        Factor::One => {
                            for ((stage, from), plus) in all {
                                transformed!(stage, from, |row, p, value| xor_parts(value, part(&plus[row], p)));
                            }
                        }
                        Factor::Table(number) => {
                            let factor = load_tables(&tables[number]);
                            for ((stage, from), plus) in all {
                                transformed!(stage, from, |row, p, value| {
                                    xor_parts(value, product_of(part(&plus[row], p), factor))
                                });
                            }
                        }
                    }
                }
                (plus, Some([high, keep])) => {
                    let three = [tile.columns_of(input.from), tile.columns_of(high), tile.columns_of(keep)];
                    let [from, high, keep] = blocks.get_disjoint_mut(three).expect(DISTINCT);
                    let all = stage.iter_mut().zip(from).zip(high).zip(keep);
                    match plus {
                        Some((_, Factor::Table(number))) => {
                            let factor = load_tables(&tables[number]);
                            for (((stage, from), high), keep) in all {
                                transformed!(stage, from, |row, p, value| {
                                    let high = part(&high[row], p);
                                    let value = xor_parts(value, product_of(high, factor));
                                    put_part(&mut keep[row], p, xor_parts(value, high), false);
                                    value
                                });
                            }
                        }
                        Some((_, Factor::One)) => {
                            for (((stage, from), high), keep) in all {
                                transformed!(stage, from, |row, p, value| {
                                    put_part(&mut keep[row], p, value, false);
                                    xor_parts(value, part(&high[row], p))
                                });
                            }
                        }
                        None => {
                            for (((stage, from), high), keep) in all {
                                transformed!(stage, from, |row, p, value| {
                                    put_part(&mut keep[row], p, xor_parts(value, part(&high[row], p)), false);
                                    value
                                });
                            }
                        }
                    }
                }
            }
        }

        /// The second half of a forward pass: the two narrowest layers of the rows of `stage` from 4 · `g`, and the
        /// outputs, which go to `rows`.
        #[inline]
        #[allow(clippy::too_many_arguments)]
        $(#[$features])*
        fn forward_near(
            stage: &mut [Column],
            dst: &mut [&mut [u8]],
            at: usize,
            by: [Loaded; 3],
            tap: Option<(&[[u8; LINE]], &mut [Column])>,
            rows: &[Option<u8>; 4],
            g: usize,
            stream: bool,
        ) {
            let count = stage.len();
            // If all are wanted, follow each other, and nothing is added.
            if let (None, [Some(a), Some(b), Some(c), Some(d)]) = (&tap, *rows)
                && [b.wrapping_sub(a), c.wrapping_sub(b), d.wrapping_sub(c)] == [1; 3]
            {
                let rows: &mut [&mut [u8]; 4] =
                    dst[usize::from(a)..].first_chunk_mut().expect("a row for each output");
                let [a, b, c, d] = rows;
                let [a, b, c, d] = [
                    lines_mut(a, at, count),
                    lines_mut(b, at, count),
                    lines_mut(c, at, count),
                    lines_mut(d, at, count),
                ];
                macro_rules! outputs {
                    ($stream:literal) => {
                        for (i, stage) in stage.iter().enumerate() {
                            let four: &Four = stage[4 * g..].first_chunk().expect("four of sixteen rows");
                            each!(P in 0 1 2 3 => {
                                if P < PARTS {
                                    let r = forward_four::<4>(four_parts(four, P), by);
                                    put_part(&mut a[i], P, r[0], $stream);
                                    put_part(&mut b[i], P, r[1], $stream);
                                    put_part(&mut c[i], P, r[2], $stream);
                                    put_part(&mut d[i], P, r[3], $stream);
                                }
                            });
                        }
                    };
                }
                if stream {
                    outputs!(true);
                } else {
                    outputs!(false);
                }
                return;
            }
            // Otherwise by way of `stage`.
            if let Some((source, to)) = tap {
                for ((stage, source), to) in stage.iter_mut().zip(source).zip(to) {
                    let four: &mut Four = stage[4 * g..].first_chunk_mut().expect("four of sixteen rows");
                    let difference = &mut to[0];
                    each!(P in 0 1 2 3 => {
                        if P < PARTS {
                            let r = forward_four::<4>(four_parts(four, P), by);
                            if g == 0 {
                                put_part(difference, P, xor_parts(r[0], part(source, P)), false);
                            }
                            let difference = part(difference, P);
                            each!(J in 0 1 2 3 => {
                                put_part(&mut four[J], P, xor_parts(r[J], difference), false);
                            });
                        }
                    });
                }
            } else {
                for stage in stage.iter_mut() {
                    let four: &mut Four = stage[4 * g..].first_chunk_mut().expect("four of sixteen rows");
                    each!(P in 0 1 2 3 => {
                        if P < PARTS {
                            let r = forward_four::<4>(four_parts(four, P), by);
                            each!(J in 0 1 2 3 => { put_part(&mut four[J], P, r[J], false); });
                        }
                    });
                }
            }
            for (j, row) in (4 * g..).zip(rows) {
                if let Some(row) = *row {
                    for (line, stage) in lines_mut(dst[usize::from(row)], at, count).iter_mut().zip(&*stage) {
                        store_line(line, load_line(&stage[j]), stream);
                    }
                }
            }
        }
    };
}
pub(super) use two_layers;

/// `count` lines of `row` from byte `at`.
#[inline]
pub(super) fn lines(row: &[u8], at: usize, count: usize) -> &[[u8; LINE]] {
    &row.as_chunks().0[at / LINE..][..count]
}

/// The same to be written.
#[inline]
pub(super) fn lines_mut(row: &mut [u8], at: usize, count: usize) -> &mut [[u8; LINE]] {
    &mut row.as_chunks_mut().0[at / LINE..][..count]
}

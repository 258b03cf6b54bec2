//! Inverse and forward passes of kernels whose registers do not hold a block of lines.
//!
//! In each pair of a block's four layers, butterflies combine four rows by three skews (`parts.rs`). A pass therefore
//! goes over its tile twice, once for each pair of layers: `near` are the narrowest, `far` the widest. Registers hold a
//! part of a line of four rows, and the tables of their skews, which stay there for all columns.

use crate::gf256::kernel::aligned::LINE;
use crate::gf256::kernel::program::Column;

/// Defines `inverse_pass`, `forward_pass` and `TWO_LAYERS`. `kernel/mod.rs` says what it needs.
macro_rules! two_layers {
    (#[$features:meta]) => {
        use crate::gf256::kernel::loops::runner::Stretch;
        use crate::gf256::kernel::loops::two_layers::{Four, four_of, four_of_mut, four_rows};

        /// True if a pass goes over its tile twice.
        const TWO_LAYERS: bool = true;

        /// Parts of a line.
        const PARTS: usize = LINE / PART;

        #[inline(never)]
        #[allow(clippy::too_many_arguments)]
        #[$features]
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
            for stretch in tile.stretches() {
                let columns = &mut blocks[tile.place(to, stretch.column)..][..stretch.len()];
                for (g, sources) in sources.as_chunks().0.iter().enumerate() {
                    let rows = four_rows(sets[stretch.set].0, sources);
                    let lines = stretch.lines_of_four(rows);
                    if ORIGIN && g == 0 {
                        inverse_near::<true>(columns, lines, near(skews, g), g);
                    } else {
                        inverse_near::<false>(columns, lines, near(skews, g), g);
                    }
                    for next in stretch.ahead() {
                        prefetch_sources(sets, sources, (stretch.set, &rows), next);
                    }
                }
            }
            inverse_far::<ORIGIN>(blocks, to, far(skews), tables, merge, tile);
        }

        /// The first half of an inverse pass: rows of a block ← four sources after the two narrowest layers.
        #[inline]
        #[$features]
        fn inverse_near<const ORIGIN: bool>(
            columns: &mut [Column],
            [a, b, c, d]: [&[[u8; LINE]]; 4],
            by: [Loaded; 3],
            g: usize,
        ) {
            for (i, column) in columns.iter_mut().enumerate() {
                let to = four_of_mut(column, g);
                each!([0, 1, 2, 3], |P| if P < PARTS {
                    let r = [part(&a[i], P), part(&b[i], P), part(&c[i], P), part(&d[i], P)];
                    put_four(to, P, inverse_four::<ORIGIN>(r, by));
                });
            }
        }

        /// Part `p` of four rows that follow each other.
        #[inline]
        #[$features]
        fn part_of_four([a, b, c, d]: &Four, p: usize) -> [Part; 4] {
            [part(a, p), part(b, p), part(c, p), part(d, p)]
        }

        #[inline]
        #[$features]
        fn put_four(to: &mut Four, p: usize, parts: [Part; 4]) {
            each!([0, 1, 2, 3], |J| put_part(&mut to[J], p, parts[J], false));
        }

        /// The second half of an inverse pass: the two widest layers in block `to`, and the layer above.
        #[inline]
        #[$features]
        fn inverse_far<const ORIGIN: bool>(
            blocks: &mut [Column],
            to: usize,
            by: [Loaded; 3],
            tables: &[Table],
            merge: Option<Merge>,
            tile: Tile<'_>,
        ) {
            match merge {
                None => {
                    for to in &mut blocks[tile.columns_of(to)] {
                        inverse_column::<ORIGIN>(to, by, |to, row, p, part| {
                            put_part(&mut to[row], p, part, false)
                        });
                    }
                }
                Some(Merge { low, by: None, more: None }) => {
                    let [to, low] = tile.all_columns(blocks, [to, low]);
                    for (to, low) in to.iter_mut().zip(low) {
                        inverse_column::<ORIGIN>(to, by, |to, row, p, part| {
                            put_sum(&mut to[row], &low[row], p, part)
                        });
                    }
                }
                Some(Merge { low, by: Some(above), more: None }) => {
                    let above = load_tables(&tables[above]);
                    let [to, low] = tile.all_columns(blocks, [to, low]);
                    for (to, low) in to.iter_mut().zip(low) {
                        inverse_column::<ORIGIN>(to, by, |to, row, p, part| {
                            put_butterfly(&mut to[row], &mut low[row], p, part, above);
                        });
                    }
                }
                Some(Merge { low, by: above, more: Some([to_low, to_high]) }) => {
                    let four = tile.all_columns(blocks, [to, low, to_low, to_high]);
                    inverse_far_and_more::<ORIGIN>(four, by, above.map(|above| &tables[above]));
                }
            }
        }

        /// The same where blocks are added to both after the layer above, which has a factor or none.
        #[inline]
        #[$features]
        fn inverse_far_and_more<const ORIGIN: bool>(
            [to, low, to_low, to_high]: [&mut [Column]; 4],
            by: [Loaded; 3],
            above: Option<&Table>,
        ) {
            for (((to, low), to_low), to_high) in to.iter_mut().zip(low).zip(to_low).zip(to_high) {
                inverse_column::<ORIGIN>(to, by, |to, row, p, upper| {
                    let more = [&to_low[row], &to_high[row]];
                    put_butterfly_and_more([&mut to[row], &mut low[row]], more, p, upper, above);
                });
            }
        }

        /// The two widest layers in a column; `done` gets the column, and each part of each row as soon as it is done.
        #[inline]
        #[$features]
        fn inverse_column<const ORIGIN: bool>(
            to: &mut Column,
            by: [Loaded; 3],
            mut done: impl FnMut(&mut Column, usize, usize, Part),
        ) {
            for i in 0..4 {
                each!([0, 1, 2, 3], |P| if P < PARTS {
                    let r = [part(&to[i], P), part(&to[i + 4], P), part(&to[i + 8], P), part(&to[i + 12], P)];
                    let r = inverse_four::<ORIGIN>(r, by);
                    each!([0, 1, 2, 3], |J| done(to, i + 4 * J, P, r[J]));
                });
            }
        }

        #[inline(never)]
        #[allow(clippy::too_many_arguments)]
        #[$features]
        fn forward_pass<const QUARTERS: usize>(
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
            let stage = &mut stage[..tile.places.len()];
            forward_far::<QUARTERS>(blocks, stage, input, far(skews), tables, tile);
            for stretch in tile.stretches() {
                let stage = &mut stage[stretch.column..][..stretch.len()];
                for g in 0..QUARTERS {
                    let tap = tap.map(|(source, to)| {
                        let difference = &mut blocks[tile.place(to, stretch.column)..][..stretch.len()];
                        (stretch.lines(sets[stretch.set].0[source]), difference)
                    });
                    let dst = &mut *sets[stretch.set].1;
                    forward_near(stage, dst, stretch, near(skews, g), tap, out, g, tile.stream);
                    if tile.prefetch_outputs {
                        let rows = &out.rows[4 * g..][..4];
                        stretch.ahead().for_each(|next| prefetch_outputs(sets, rows, next));
                    }
                }
                if let Some((source, _)) = tap {
                    stretch.ahead().for_each(|next| prefetch(sets[next.set].0[source], next.at));
                }
            }
        }

        /// The first half of a forward pass: `stage` ← the input after the two widest layers, as far as the first
        /// `QUARTERS` quarters of outputs need them.
        #[inline]
        #[$features]
        fn forward_far<const QUARTERS: usize>(
            blocks: &mut [Column],
            stage: &mut [Column],
            input: Input,
            by: [Loaded; 3],
            tables: &[Table],
            tile: Tile<'_>,
        ) {
            let staged = input.few.is_some();
            if let Some(few) = input.few {
                let (from, lines) =
                    (&blocks[tile.columns_of(input.from)], &blocks[tile.columns_of(few.block)]);
                stage_few(stage, from, lines, few, tables);
            }
            if let Some([high, keep]) = input.keep {
                let three = tile.all_columns(blocks, [input.from, high, keep]);
                return forward_kept::<QUARTERS>(stage, three, input.plus, staged, by, tables);
            }
            let from = &blocks[tile.columns_of(input.from)];
            if let Some((block, factor)) = input.plus {
                let plus = &blocks[tile.columns_of(block)];
                return forward_plus::<QUARTERS>(stage, from, (plus, factor), staged, by, tables);
            }
            for (stage, from) in stage.iter_mut().zip(from) {
                forward_column::<QUARTERS>(stage, from, staged, by, |_, _, value| value);
            }
        }

        /// The same of an input `from` + a factor · `plus`.
        #[inline]
        #[$features]
        fn forward_plus<const QUARTERS: usize>(
            stage: &mut [Column],
            from: &[Column],
            (plus, factor): (&[Column], Factor),
            staged: bool,
            by: [Loaded; 3],
            tables: &[Table],
        ) {
            let all = stage.iter_mut().zip(from).zip(plus);
            match factor {
                Factor::One => {
                    for ((stage, from), plus) in all {
                        forward_column::<QUARTERS>(stage, from, staged, by, |row, p, value| {
                            xor_parts(value, part(&plus[row], p))
                        });
                    }
                }
                Factor::Table(number) => {
                    let factor = load_tables(&tables[number]);
                    for ((stage, from), plus) in all {
                        forward_column::<QUARTERS>(stage, from, staged, by, |row, p, value| {
                            xor_parts(value, product_of(part(&plus[row], p), factor))
                        });
                    }
                }
            }
        }

        /// The same of an input `from` + the factor of `plus`, if there is one, · `high`. The sum of that and `high` is
        /// kept.
        #[inline]
        #[$features]
        fn forward_kept<const QUARTERS: usize>(
            stage: &mut [Column],
            [from, high, keep]: [&mut [Column]; 3],
            plus: Option<(usize, Factor)>,
            staged: bool,
            by: [Loaded; 3],
            tables: &[Table],
        ) {
            let all = stage.iter_mut().zip(from).zip(high).zip(keep);
            match plus {
                None => {
                    for (((stage, from), high), keep) in all {
                        forward_column::<QUARTERS>(stage, from, staged, by, |row, p, value| {
                            keep_other(&mut keep[row], &high[row], p, value)
                        });
                    }
                }
                Some((_, Factor::One)) => {
                    for (((stage, from), high), keep) in all {
                        forward_column::<QUARTERS>(stage, from, staged, by, |row, p, value| {
                            keep_first(&mut keep[row], &high[row], p, value)
                        });
                    }
                }
                Some((_, Factor::Table(number))) => {
                    let factor = load_tables(&tables[number]);
                    for (((stage, from), high), keep) in all {
                        forward_column::<QUARTERS>(stage, from, staged, by, |row, p, value| {
                            keep_sum(&mut keep[row], &high[row], p, value, factor)
                        });
                    }
                }
            }
        }

        /// The first rows of the input, with the few that are added to them, wait in `stage`.
        #[inline]
        #[$features]
        fn stage_few(stage: &mut [Column], from: &[Column], few: &[Column], term: Term, tables: &[Table]) {
            for ((stage, from), few) in stage.iter_mut().zip(from).zip(few) {
                for i in 0..FEW {
                    let mut line = load_line(&from[i]);
                    if i < term.rows {
                        line = plus(line, &few[i], term.by, tables);
                    }
                    put(&mut stage[i], line);
                }
            }
        }

        /// A column of `stage` ← a column of the input after the two widest layers. Each part is completed by `sum`
        /// where it is loaded. The first few rows of `from` have been `staged`, if some were added to them.
        #[inline]
        #[$features]
        fn forward_column<const QUARTERS: usize>(
            stage: &mut Column,
            from: &Column,
            staged: bool,
            by: [Loaded; 3],
            mut sum: impl FnMut(usize, usize, Part) -> Part,
        ) {
            for i in 0..4 {
                each!([0, 1, 2, 3], |P| if P < PARTS {
                    let mut r = [part(if staged { &stage[i] } else { &from[i] }, P); 4];
                    r[0] = sum(i, P, r[0]);
                    each!([1, 2, 3], |J| r[J] = sum(i + 4 * J, P, part(&from[i + 4 * J], P)));
                    let r = forward_four::<QUARTERS>(r, by);
                    each!([0, 1, 2, 3], |J| if J < QUARTERS {
                        put_part(&mut stage[i + 4 * J], P, r[J], false);
                    });
                });
            }
        }

        /// The second half of a forward pass: the two narrowest layers of the rows of `stage` from 4 · `g`, and the
        /// outputs. A tap is the lines that output 0 must equal, and columns whose first rows get the difference.
        #[inline]
        #[allow(clippy::too_many_arguments)]
        #[$features]
        fn forward_near(
            stage: &mut [Column],
            dst: &mut [&mut [u8]],
            stretch: Stretch<'_>,
            by: [Loaded; 3],
            tap: Option<(&[[u8; LINE]], &mut [Column])>,
            out: &Outputs,
            g: usize,
            stream: bool,
        ) {
            if let Some(row) = out.runs_of_four[g] {
                let rows = stretch.lines_of_four_mut(&mut dst[usize::from(row)..]);
                return if stream {
                    put_run::<true>(stage, rows, by, g)
                } else {
                    put_run::<false>(stage, rows, by, g)
                };
            }
            match tap {
                None => forward_stage(stage, by, g),
                Some((source, to)) => forward_tapped(stage, source, to, by, g),
            }
            for (j, row) in (4 * g..).zip(&out.rows[4 * g..][..4]) {
                if let Some(row) = *row {
                    for (line, stage) in stretch.lines_mut(dst[usize::from(row)]).iter_mut().zip(&*stage) {
                        store_line(line, load_line(&stage[j]), stream);
                    }
                }
            }
        }

        /// The narrowest layers of four rows of `stage`; the results go into rows that follow each other.
        #[inline]
        #[$features]
        fn put_run<const STREAM: bool>(
            stage: &[Column],
            [a, b, c, d]: [&mut [[u8; LINE]]; 4],
            by: [Loaded; 3],
            g: usize,
        ) {
            for (i, stage) in stage.iter().enumerate() {
                let four = four_of(stage, g);
                each!([0, 1, 2, 3], |P| if P < PARTS {
                    let r = forward_four::<4>(part_of_four(four, P), by);
                    put_part(&mut a[i], P, r[0], STREAM);
                    put_part(&mut b[i], P, r[1], STREAM);
                    put_part(&mut c[i], P, r[2], STREAM);
                    put_part(&mut d[i], P, r[3], STREAM);
                });
            }
        }

        /// The narrowest layers of four rows of `stage`, in place.
        #[inline]
        #[$features]
        fn forward_stage(stage: &mut [Column], by: [Loaded; 3], g: usize) {
            for stage in stage {
                let four = four_of_mut(stage, g);
                each!([0, 1, 2, 3], |P| if P < PARTS {
                    put_four(four, P, forward_four::<4>(part_of_four(four, P), by));
                });
            }
        }

        /// The same with a tap.
        #[inline]
        #[$features]
        fn forward_tapped(
            stage: &mut [Column],
            source: &[[u8; LINE]],
            to: &mut [Column],
            by: [Loaded; 3],
            g: usize,
        ) {
            for ((stage, source), to) in stage.iter_mut().zip(source).zip(to) {
                let (four, difference) = (four_of_mut(stage, g), &mut to[0]);
                each!([0, 1, 2, 3], |P| if P < PARTS {
                    let mut r = forward_four::<4>(part_of_four(four, P), by);
                    if g == 0 {
                        put_part(difference, P, xor_parts(r[0], part(source, P)), false);
                    }
                    let difference = part(difference, P);
                    each!([0, 1, 2, 3], |J| r[J] = xor_parts(r[J], difference));
                    put_four(four, P, r);
                });
            }
        }
    };
}
pub(crate) use two_layers;

/// Four lines.
pub(crate) type Four = [[u8; LINE]; 4];

/// The rows of a column from 4 · `g`.
#[inline]
pub(crate) fn four_of(column: &Column, g: usize) -> &Four {
    column[4 * g..].first_chunk().expect("four of sixteen rows")
}

/// The same to be written.
#[inline]
pub(crate) fn four_of_mut(column: &mut Column, g: usize) -> &mut Four {
    column[4 * g..].first_chunk_mut().expect("four of sixteen rows")
}

/// Four rows of a set.
#[inline(always)]
pub(crate) fn four_rows<'s>(src: &[&'s [u8]], sources: &[u8; 4]) -> [&'s [u8]; 4] {
    sources.map(|source| src[usize::from(source)])
}

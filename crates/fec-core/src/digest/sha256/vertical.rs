//! SHA-256 with a row in each lane of vectors, in the words of the standard (FIPS 180-4, sections 4.1.2 and 6.2.2).
//!
//! A macro, because a function with `#[target_feature]` is safe to call only from one with the same features. Each
//! kernel file gets a copy with that attribute, and needs `unsafe` for loads and stores alone. The macro finds by name
//! in the file:
//!
//! | name | what it is |
//! |---|---|
//! | `each!` | repeats a block of code for constant numbers |
//! | `Vector` | a word of each of `LANES` rows |
//! | `ORDER: [usize; LANES]` | the row in each lane |
//! | `load_states(&[State; LANES]) -> [Vector; 8]` | each word of all rows, which are in that order |
//! | `store_states(&mut [State; LANES], [Vector; 8])` | the inverse |
//! | `splat(u32) -> Vector` | the same word in each lane |
//! | `load_blocks(&[&[u8; 64]; LANES]) -> [Vector; 16]` | the words of a block of each row, upper byte first |
//! | `then_add(a, b)`, `subtract` | `a + b`, where `a` is known early; `a - b` |
//! | `prefetch(row: &[u8], at: usize)` | asks for a line of a row, which need not lie within it |
//! | `add`, `xor3`, `choose` (Ch), `majority` (Maj), `rotate::<N>`, `shift::<N>` | of words, to the right |

macro_rules! vertical {
    (#[$features:meta] lanes: $lanes:literal) => {
        const LANES: usize = $lanes;

        /// Bytes between the byte hashed and the byte prefetched. Processors do not follow so many rows by themselves,
        /// where each is read for a few kilobytes.
        const AHEAD: usize = 512;

        #[$features]
        fn compress(states: &mut [State], rows: &[&[u8]]) {
            assert!(states.len() == rows.len() && (1..=LANES).contains(&rows.len()), "a row in each lane");
            // Lanes without a row repeat the first one, and their results are dropped.
            let mut blocks = [rows[0].as_chunks::<BLOCK>().0; LANES];
            for (blocks, row) in blocks.iter_mut().zip(ORDER) {
                *blocks = rows.get(row).unwrap_or(&rows[0]).as_chunks().0;
            }
            let mut all = [[0; 8]; LANES];
            all[..states.len()].copy_from_slice(states);
            let mut sums = load_states(&all);
            for nth in 0..blocks[0].len() {
                let mut now = [&blocks[0][nth]; LANES];
                for (now, blocks) in now.iter_mut().zip(&blocks) {
                    *now = &blocks[nth];
                    prefetch(*now, AHEAD);
                }
                let made = rounds(sums, load_blocks(&now));
                for (sum, made) in sums.iter_mut().zip(made) {
                    *sum = add(*sum, made);
                }
            }
            store_states(&mut all, sums);
            states.copy_from_slice(&all[..states.len()]);
        }

        /// All 64 rounds, from the words a to h and those of a block.
        #[inline]
        #[$features]
        fn rounds(mut s: [Vector; 8], mut w: [Vector; 16]) -> [Vector; 8] {
            let [first @ .., last] = &K;
            for k in first {
                each!([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15], |I| {
                    round::<I>(&mut s, w[I], k[I]);
                    extend::<I>(&mut w);
                });
            }
            each!([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15], |I| {
                round::<I>(&mut s, w[I], last[I]);
            });
            s
        }

        /// Turns word `I` of sixteen into the one sixteen later, long before a round waits for it.
        #[inline]
        #[$features]
        fn extend<const I: usize>(w: &mut [Vector; 16]) {
            let (early, late) = (w[(I + 1) % 16], w[(I + 14) % 16]);
            let early = xor3(rotate::<7>(early), rotate::<18>(early), shift::<3>(early));
            let late = xor3(rotate::<17>(late), rotate::<19>(late), shift::<10>(late));
            w[I] = add(add(w[I], w[(I + 9) % 16]), add(early, late));
        }

        /// Round `I` of sixteen. The words stay where they are, and their names go round.
        ///
        /// Rounds wait for each other through e and a, so these are added last: three operations lead from e to the
        /// next e, which is d + T1. T1 comes back from it for the next a.
        #[inline]
        #[$features]
        fn round<const I: usize>(s: &mut [Vector; 8], w: Vector, k: u32) {
            let at = |name: usize| (name + 16 - I) % 8;
            let (a, e) = (s[at(0)], s[at(4)]);
            let known = add(add(s[at(7)], add(w, splat(k))), s[at(3)]);
            let sum = xor3(rotate::<6>(e), rotate::<11>(e), rotate::<25>(e));
            let next_e = then_add(then_add(known, choose(e, s[at(5)], s[at(6)])), sum);
            let first = subtract(next_e, s[at(3)]);
            let sum = xor3(rotate::<2>(a), rotate::<13>(a), rotate::<22>(a));
            s[at(7)] = then_add(then_add(first, majority(a, s[at(1)], s[at(2)])), sum);
            s[at(3)] = next_e;
        }
    };
}

pub(super) use vertical;

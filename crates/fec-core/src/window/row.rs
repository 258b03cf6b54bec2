//! How a repair row is made of source packets (format specification, sections 14.2 and 14.3): from the
//! numbers in its packet alone.
//!
//! A row is a sum of *lane sums* and of single packets, the *taps*; each of them has a *class* k and is
//! multiplied by the power k of the row's factor. Column c, the source packet with that number, stands in one
//! lane, and the lane keeps three sums of its columns, each with other multipliers. Which sums a row takes, and
//! which columns are its taps, follows from its number.
//!
//! The sums mix everything with everything but are few: 48 of them cannot repair more than 48 losses. The taps
//! do the rest. Their ages are spread over the logarithm, because fresh losses are the ones that are repaired,
//! and they are dealt out so that every column gets its share: eight taps next to one another in age take
//! different ones of each eight columns, and the rows take turns over the groups of eight.
//!
//! Nothing here knows packets or bytes: it says coefficients, and encoder and decoder apply them.

use super::trace::{Probe, Span, Touch};
use crate::format::packet::Profile;
use crate::gf256::kernel::Backend;
use crate::gf256::{EXP, mul};

/// Sums that a lane keeps.
pub(super) const SUMS: usize = 3;
/// Classes of a row's terms: the power of the row's factor that multiplies them.
pub(super) const CLASSES: usize = 4;
/// Most lanes of any profile.
const MAX_LANES: usize = 16;
/// Taps of a bounded row over a window that is not small.
const DEGREE: u32 = 32;
/// The age at which the density of taps begins to fall.
const KNEE: u32 = 192;
/// Columns of which a tap takes one.
const GROUP: u32 = 8;

/// Number of lanes of a profile's rows.
pub(super) fn lanes(profile: Profile) -> usize {
    match profile {
        Profile::Bounded => 16,
        Profile::Classic | Profile::ClassicBlocks | Profile::Blocks => 8,
    }
}

/// The lane of a column, out of `lanes`.
pub(super) fn lane_of(lanes: usize, column: u64) -> usize {
    (column % lanes as u64) as usize
}

/// What a column is multiplied by in the three sums of its lane. None is 0.
pub(super) fn column_values(lanes: usize, column: u64) -> [u8; SUMS] {
    let index = column / lanes as u64;
    let power = |exponent: u64| EXP[(exponent % 255) as usize];
    [1, power(index), power(2 * index + index / 255)]
}

/// The output function of SplitMix64.
fn mix(z: u64) -> u64 {
    let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014), with the
/// row's number as its seed.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// A number below `bound`, by the high half of a product.
    fn below(&mut self, bound: u32) -> u32 {
        (((self.next() >> 32) * u64::from(bound)) >> 32) as u32
    }
}

/// The coefficients of a row.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    number: u64,
    /// The first column covered.
    pub(super) first: u64,
    /// Number of columns covered.
    pub(super) count: u32,
    /// The factor, never 0.
    pub(super) factor: u8,
    lanes: usize,
    /// For each lane and class the lane's sums in it, bit p for sum p.
    masks: [[u8; CLASSES]; MAX_LANES],
    /// The keys that the taps of the row before had, with what they were made from: the next row mostly has
    /// the same.
    keys: [(u64, u64); DEGREE as usize],
    /// The taps. A column may occur several times, which adds up as in the field: twice in one class is nothing.
    pub(super) taps: Vec<(u64, u8)>,
}

impl Row {
    /// Makes this the row with these numbers, in place of what it was.
    ///
    /// `profile` is one whose rows have lanes.
    pub(super) fn generate(&mut self, profile: Profile, number: u64, first: u64, count: u32) {
        let mut random = SplitMix64(number);
        self.number = number;
        self.first = first;
        self.count = count;
        self.lanes = lanes(profile);
        self.taps.clear();
        self.factor = 2 + random.below(254) as u8;
        match profile {
            Profile::Bounded => self.bounded(number, &mut random),
            _ => self.classic(&mut random),
        }
    }

    /// Tells that all of it was touched.
    pub(super) fn tell(&self, backend: Backend, probe: &mut impl Probe) {
        probe.touch(backend, Touch::Write(Span::of(std::slice::from_ref(self))));
        probe.touch(backend, Touch::Write(Span::of(&self.taps)));
    }

    /// Whether this is the row with these numbers.
    pub(super) fn is(&self, number: u64, first: u64, count: u32) -> bool {
        (self.number, self.first, self.count) == (number, first, count)
    }

    /// One sum of each lane, and taps whose ages are spread evenly over the logarithm.
    fn bounded(&mut self, number: u64, random: &mut SplitMix64) {
        let mut taken = [0; MAX_LANES];
        let lanes = self.masks.as_chunks_mut::<8>().0.iter_mut().zip(taken.as_chunks_mut::<8>().0);
        for (masks, taken) in lanes {
            let bits = random.next();
            for (lane, (masks, taken)) in masks.iter_mut().zip(taken).enumerate() {
                let choice = bits >> (8 * lane) & 255;
                *taken = choice & 3;
                *masks = [0; CLASSES];
                masks[*taken as usize] = 1 << ((choice >> 2) % 3);
            }
        }
        let ages = Ages::new(self.count);
        let end = self.first + u64::from(self.count);
        let mut near = 0;
        for tap in 0..ages.degree {
            let bits = random.next();
            let far = ages.of(tap + 1);
            let (first, width) = (end - u64::from(far), far - near);
            near = far;
            let groups = width / (2 * GROUP);
            let column = if tap + 1 == ages.degree || groups == 0 {
                first + u64::from(bits as u32 % width)
            } else {
                // The newest run of so many groups that lies in the stratum, at a multiple of its own length.
                let log = groups.ilog2();
                let run = ((first + u64::from(width)) >> (log + GROUP.ilog2())) - 1;
                let (of, key) = &mut self.keys[tap as usize];
                if *of != run << 8 | u64::from(tap) {
                    *of = run << 8 | u64::from(tap);
                    *key = mix(*of);
                }
                let turn = number.wrapping_mul(*key | 1).wrapping_add(*key >> 32);
                let group = run << log | turn & ((1 << log) - 1);
                group * u64::from(GROUP) + (u64::from(tap) + mix(group)) % u64::from(GROUP)
            };
            // Another class than the lane's, so that the two do not cancel.
            let class = (taken[lane_of(MAX_LANES, column)] + 1 + (bits >> 32) % 3) % CLASSES as u64;
            self.taps.push((column, class as u8));
        }
    }

    /// Any of the six sums of each lane, but not none; and pairs of taps anywhere in the window.
    fn classic(&mut self, random: &mut SplitMix64) {
        let bits = random.next();
        for (lane, masks) in self.masks[..8].iter_mut().enumerate() {
            let choice = (bits >> (6 * lane) & 63) as u8;
            *masks = if choice == 0 { [1 << 2, 0, 0, 0] } else { [choice & 7, choice >> 3, 0, 0] };
        }
        for _ in 0..self.count.div_ceil(16) {
            for class in [0, 1] {
                self.taps.push((self.first + u64::from(random.below(self.count)), class));
            }
        }
    }

    /// A list for each class, with room for all that will stand in it, or nearly.
    pub(super) fn room<'a>(&self) -> [Vec<&'a [u8]>; CLASSES] {
        std::array::from_fn(|_| Vec::with_capacity(self.taps.len() / 2 + MAX_LANES))
    }

    /// For each class the sums of lane `lane` that are in it, bit p for sum p.
    pub(super) fn masks(&self, lane: usize) -> [u8; CLASSES] {
        self.masks[lane]
    }

    /// The coefficient of a column, taps left out.
    pub(super) fn dense(&self, column: u64) -> u8 {
        let values = column_values(self.lanes, column);
        let sum = |mask: u8| (0..SUMS).filter(|p| mask >> p & 1 == 1).fold(0, |sum, p| sum ^ values[p]);
        let masks = &self.masks[lane_of(self.lanes, column)];
        masks.iter().rev().fold(0, |value, &mask| mul(value, self.factor) ^ sum(mask))
    }

    /// The coefficients of columns that are asked for in ascending order. `open_taps` are the taps among them; they are
    /// sorted here.
    pub(super) fn coefficients<'a>(&'a self, open_taps: &'a mut [(u64, u8)]) -> impl FnMut(u64) -> u8 + 'a {
        open_taps.sort_unstable_by_key(|&(column, _)| column);
        let mut taps = open_taps.iter().peekable();
        let columns = self.first..self.first + u64::from(self.count);
        move |column| {
            if !columns.contains(&column) {
                return 0;
            }
            let mut coefficient = self.dense(column);
            while let Some(&(at, class)) = taps.next_if(|&&(at, _)| at <= column) {
                if at == column {
                    coefficient ^= self.tap(class);
                }
            }
            coefficient
        }
    }

    /// What a tap of a class adds to the coefficient of its column.
    fn tap(&self, class: u8) -> u8 {
        (0..class).fold(1, |value, _| mul(value, self.factor))
    }
}

/// The ages at which the strata of a window begin.
struct Ages {
    /// Number of strata.
    degree: u32,
    low: u32,
    span: u32,
}

impl Ages {
    fn new(count: u32) -> Ages {
        let low = pseudo_log(KNEE);
        Ages { degree: DEGREE.min(count / 2), low, span: pseudo_log(count + KNEE) - low }
    }

    /// Where stratum `tap` begins.
    fn of(&self, tap: u32) -> u32 {
        // Nearly all windows have all strata: the compiler divides by a constant there.
        let part = self.span * tap;
        let part = if self.degree == DEGREE { part / DEGREE } else { part / self.degree };
        pseudo_exp(self.low + part) - KNEE
    }
}

/// A logarithm to base 2 with 16 bits of fraction, exact at powers of two and straight between them. `of` is
/// not 0 and at most 2^17.
fn pseudo_log(of: u32) -> u32 {
    let whole = of.ilog2();
    let fraction = (u64::from(of) << 16 >> whole) as u32 - (1 << 16);
    whole << 16 | fraction
}

/// The inverse of [`pseudo_log`], rounded down.
fn pseudo_exp(of: u32) -> u32 {
    ((1 << 16 | u64::from(of & 0xFFFF)) << (of >> 16) >> 16) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SplitMix64 as published: its first outputs from seed 1234567.
    #[test]
    fn generator_is_the_published_one() {
        let mut random = SplitMix64(1_234_567);
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([random.next(), random.next(), random.next()], expected);
    }

    #[test]
    fn logarithm_and_power_are_inverse() {
        for n in 1..=65_600 {
            assert_eq!(pseudo_exp(pseudo_log(n)), n);
            assert!(pseudo_exp(pseudo_log(n + 1) - 1) <= n, "{n}");
        }
    }

    #[test]
    fn no_stratum_is_empty() {
        for count in 2..=65_536 {
            let strata = Ages::new(count);
            let ages: Vec<u32> = (0..=strata.degree).map(|tap| strata.of(tap)).collect();
            assert!(ages.windows(2).all(|pair| pair[0] < pair[1]), "{count}");
            assert_eq!((ages[0], ages[strata.degree as usize]), (0, count));
        }
    }

    #[test]
    fn rows_stay_in_their_window() {
        let mut row = Row::default();
        for profile in [Profile::Bounded, Profile::Classic] {
            for count in (1..300).chain([1000, 6000, 65_536]) {
                for number in 0..20 {
                    row.generate(profile, number, 7 * 240, count);
                    let columns = row.first..row.first + u64::from(count);
                    assert!(row.taps.iter().all(|(column, _)| columns.contains(column)));
                    assert!(columns.clone().all(|c| row.dense(c) != 0) || profile != Profile::Bounded);
                }
            }
        }
    }
}

//! How a repair row is made of source packets (format specification, sections 14.2 and 14.3): from the
//! numbers in its packet alone.
//!
//! A row is A + r·B. Both are sums of *lane sums* and of single packets, the *taps*. Column c, the source
//! packet with that number, stands in one lane; the lane keeps Σx, Σv·x and Σv²·x of its columns x, where v
//! depends on c. Which sums go to A and B, and which columns are taps, follows from the row's number.
//!
//! Nothing here knows packets or bytes: it says coefficients, and encoder and decoder apply them.

use crate::format::packet::Profile;
use crate::gf256::mul;

/// Sums that a lane keeps: the powers 0, 1 and 2 of the column's value.
pub(super) const SUMS: usize = 3;
/// Most lanes of any profile.
pub(super) const MAX_LANES: usize = 16;
/// Taps of a bounded row over a window that is not small.
const DEGREE: u32 = 32;
/// The age at which the density of taps begins to fall.
const KNEE: u32 = 64;

/// One of the two sums of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Half {
    /// A: as it is.
    Plain,
    /// B: multiplied by the row's factor.
    Scaled,
}

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

/// The value v of a column. It is never 0.
pub(super) fn column_value(lanes: usize, column: u64) -> u8 {
    crate::gf256::EXP[(column / lanes as u64 % 255) as usize]
}

/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014), with the
/// row's number as its seed.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    /// A number below `bound`, by the high half of a product.
    fn below(&mut self, bound: u32) -> u32 {
        ((self.next() >> 32) * u64::from(bound) >> 32) as u32
    }
}

/// The coefficients of a row.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    /// The first column covered.
    pub(super) first: u64,
    /// Number of columns covered.
    pub(super) count: u32,
    /// The factor r of B, never 0.
    pub(super) factor: u8,
    lanes: usize,
    /// For each lane the sums in A and in B, bit p for power p.
    masks: [(u8, u8); MAX_LANES],
    /// The taps. A column may occur several times, which adds up as in the field: twice in one half is nothing.
    pub(super) taps: Vec<(u64, Half)>,
}

impl Row {
    /// Makes this the row with these numbers, in place of what it was.
    ///
    /// `profile` is one whose rows have lanes.
    pub(super) fn generate(&mut self, profile: Profile, number: u64, first: u64, count: u32) {
        let mut random = SplitMix64(number);
        self.first = first;
        self.count = count;
        self.lanes = lanes(profile);
        self.taps.clear();
        self.factor = 2 + random.below(254) as u8;
        match profile {
            Profile::Bounded => self.bounded(&mut random),
            _ => self.classic(&mut random),
        }
    }

    /// One sum of each lane, and taps whose ages are spread evenly over the logarithm.
    fn bounded(&mut self, random: &mut SplitMix64) {
        let bits = random.next();
        for (lane, masks) in self.masks.iter_mut().enumerate() {
            let choice = bits >> (4 * lane) & 15;
            let power = 1 << ((choice >> 1) % 3);
            *masks = if choice & 1 == 0 { (power, 0) } else { (0, power) };
        }
        let degree = DEGREE.min(self.count / 2);
        let low = pseudo_log(KNEE);
        let span = pseudo_log(self.count + KNEE) - low;
        for tap in 0..degree {
            let bits = random.next();
            let at = u64::from(tap) << 16 | bits & 0xFFFF;
            let age = pseudo_exp(low + (u64::from(span) * at / u64::from(degree << 16)) as u32) - KNEE;
            let half = if bits >> 63 == 0 { Half::Plain } else { Half::Scaled };
            self.taps.push((self.first + u64::from(self.count - 1 - age), half));
        }
    }

    /// Any of the six sums of each lane, but not none; and pairs of taps anywhere in the window.
    fn classic(&mut self, random: &mut SplitMix64) {
        let bits = random.next();
        for (lane, masks) in self.masks[..8].iter_mut().enumerate() {
            let choice = (bits >> (6 * lane) & 63) as u8;
            *masks = if choice == 0 { (1 << 2, 0) } else { (choice & 7, choice >> 3) };
        }
        for _ in 0..self.count.div_ceil(16) {
            for half in [Half::Plain, Half::Scaled] {
                self.taps.push((self.first + u64::from(random.below(self.count)), half));
            }
        }
    }

    /// The sums of lane `lane` in A and in B, bit p for power p.
    pub(super) fn masks(&self, lane: usize) -> (u8, u8) {
        self.masks[lane]
    }

    /// The coefficient of a column, taps left out.
    pub(super) fn dense(&self, column: u64) -> u8 {
        let (plain, scaled) = self.masks[lane_of(self.lanes, column)];
        let value = column_value(self.lanes, column);
        let powers = [1, value, mul(value, value)];
        let sum = |mask: u8| (0..SUMS).filter(|p| mask >> p & 1 == 1).fold(0, |sum, p| sum ^ powers[p]);
        sum(plain) ^ mul(self.factor, sum(scaled))
    }

    /// What a tap in `half` adds to the coefficient of its column.
    pub(super) fn tap(&self, half: Half) -> u8 {
        match half {
            Half::Plain => 1,
            Half::Scaled => self.factor,
        }
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

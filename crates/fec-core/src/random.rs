//! Numbers that look random and follow from a seed, the same on every machine: SplitMix64.
//!
//! Repair rows of live streams are drawn with it (format specification, section 14.1), so every change of a number is a
//! change of the format. Simulations and tests use it because it is small. It keeps no secret: a single number gives
//! away all others.
//!
//! Source: Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014.

/// 2^64 over the golden ratio, which each draw adds to the state.
pub(crate) const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The generator's output function: a permutation of 64 bits that lets each bit depend on all.
pub(crate) fn mix(z: u64) -> u64 {
    let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

/// The generator. Its period is 2^64, in which every number comes once.
///
/// ```
/// let mut random = fec_core::random::SplitMix64::new(1_234_567);
/// assert_eq!(random.next(), 6_457_827_717_110_365_317);
/// assert!(random.below(6) < 6);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// The generator with this seed. All seeds are good.
    pub fn new(seed: u64) -> SplitMix64 {
        SplitMix64(seed)
    }

    /// The next draw.
    #[allow(clippy::should_implement_trait, reason = "there is always a next one, so no iterator is needed")]
    #[inline]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// A number below `bound`, by the high half of a product; 0 if `bound` is 0. It takes a single draw. Each number
    /// comes as often as any other, but for one part in 2^32 / `bound`.
    #[inline]
    pub fn below(&mut self, bound: u32) -> u32 {
        (((self.next() >> 32) * u64::from(bound)) >> 32) as u32
    }

    /// An index into a list of this length, as [`below`](Self::below).
    ///
    /// # Panics
    /// When `len` is 0 or does not fit 32 bits.
    pub fn index(&mut self, len: usize) -> usize {
        let bound = u32::try_from(len).ok().filter(|&bound| bound > 0);
        self.below(bound.expect("there is something, and no more than 32 bits count")) as usize
    }

    /// True with this probability. It takes a single draw.
    pub fn chance(&mut self, probability: f64) -> bool {
        ((self.next() >> 11) as f64) < probability * (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published outputs for seed 1234567.
    #[test]
    fn generator_is_the_published_one() {
        let mut random = SplitMix64::new(1_234_567);
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(published.map(|_| random.next()), published);
    }

    #[test]
    fn numbers_below_a_bound_are_the_high_half_of_a_product() {
        let (mut random, mut draws) = (SplitMix64::new(7), SplitMix64::new(7));
        for bound in [0, 1, 2, 254, 65_536, u32::MAX] {
            let draw = u128::from(draws.next() >> 32);
            assert_eq!(u128::from(random.below(bound)), (draw * u128::from(bound)) >> 32);
        }
    }

    #[test]
    fn a_chance_comes_true_as_often_as_it_says() {
        let mut random = SplitMix64::new(8);
        let often = (0..100_000).filter(|_| random.chance(0.3)).count();
        assert!((29_500..30_500).contains(&often), "{often}");
        assert!((0..1000).all(|_| random.chance(1.0) && !random.chance(0.0)));
    }
}

//! The statistics of an audit: all bytes are cut into as many equal parts as there are looks, and each look is at a
//! byte of its part that is chosen at random.
//!
//! Let p_i be the lost share of part i, and p their mean. All looks miss with the probability Π (1 − p_i) ≤ (1 − p)^n.
//! That is no more than if each were drawn from all bytes, and 0 if the lost bytes are one stretch of two parts or
//! more.

use fec_core::random::SplitMix64;

/// The probability that one of `looks` meets the lost bytes, if their share is `lost`.
pub(super) fn shown(looks: u64, lost: f64) -> f64 {
    // As exact for a small share as for a large one.
    -(looks as f64 * (-lost).ln_1p()).exp_m1()
}

/// The fewest looks that meet lost bytes of this share with this probability, at most `most`.
pub(super) fn looks(confidence: f64, lost: f64, most: u64) -> u64 {
    let looks = (-confidence).ln_1p() / (-lost).ln_1p();
    if looks < most as f64 { (looks.ceil() as u64).max(1) } else { most }
}

/// The largest share of lost bytes at which so few of the looks are `wrong` with a probability of 1 − `confidence`:
/// the upper end of the one-sided interval of Clopper and Pearson (Biometrika 26, 1934). For looks in parts it holds
/// from (`wrong` + 1) / `looks` on (Hoeffding, Annals of Mathematical Statistics 27, 1956, theorem 4).
///
/// Cost: 60 sums of `wrong` terms.
pub(super) fn most_lost(looks: u64, wrong: u64, confidence: f64) -> f64 {
    if wrong >= looks {
        return 1.0;
    }
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if at_most(looks, wrong, middle) > 1.0 - confidence {
            low = middle;
        } else {
            high = middle;
        }
    }
    high.max((wrong + 1) as f64 / looks as f64)
}

/// The probability that at most `wrong` of `looks` meet lost bytes of this share.
fn at_most(looks: u64, wrong: u64, lost: f64) -> f64 {
    let odds = lost.ln() - (-lost).ln_1p();
    // The first terms may be too small for a number, so their logarithms are summed up.
    let mut term = looks as f64 * (-lost).ln_1p();
    let mut sum = term.exp();
    for met in 0..wrong {
        term += ((looks - met) as f64 / (met + 1) as f64).ln() + odds;
        sum += term.exp();
    }
    sum
}

/// A number of each of `count` equal parts of those below `all`, in order and without repetition. Parts may begin
/// within a number.
pub(super) fn drawn(all: u64, count: u64, random: &mut SplitMix64) -> Vec<u64> {
    let all = u128::from(all);
    let one = |part: u64| {
        // The high half of the product is uniform but for one part in 2^64 / `all`.
        let within = (u128::from(random.next()) * all) >> 64;
        ((u128::from(part) * all + within) / u128::from(count)) as u64
    };
    let mut drawn: Vec<u64> = (0..count).map(one).collect();
    drawn.dedup();
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of looks are those of tables for attribute sampling; the upper limits are those of the interval of
    /// Clopper and Pearson by `scipy.stats.beta.ppf(c, wrong + 1, looks - wrong)`.
    #[test]
    fn published_values() {
        for (confidence, lost, expected) in
            [(0.99, 0.01, 459), (0.95, 0.05, 59), (0.9, 0.1, 22), (0.999, 0.001, 6905), (0.5, 0.5, 1)]
        {
            assert_eq!(looks(confidence, lost, 1 << 20), expected, "{confidence} {lost}");
            assert!(shown(expected, lost) >= confidence && shown(expected - 1, lost) < confidence);
        }
        assert_eq!(looks(0.99, 1e-9, 1 << 20), 1 << 20);
        for (of, wrong, confidence, expected) in [
            (459, 0, 0.99, 0.009_983),
            (459, 2, 0.99, 0.018_186),
            (20, 5, 0.95, 0.455_582),
            (1000, 100, 0.99, 0.124_186),
            (100_000, 30_000, 0.99, 0.303_384),
            (5, 5, 0.99, 1.0),
        ] {
            let most = most_lost(of, wrong, confidence);
            assert!((most - expected).abs() < 2e-6, "{of} {wrong} {confidence}: {most}");
        }
    }

    #[test]
    fn each_part_has_a_draw() {
        let mut random = SplitMix64::new(7);
        for (all, count) in [(1u64 << 60, 4000), (1000, 7), (1000, 1000), (5, 3)] {
            for _ in 0..100 {
                let drawn = drawn(all, count, &mut random);
                assert!(drawn.is_sorted() && drawn.len() as u64 <= count);
                for part in 0..u128::from(count) {
                    let of = |number: u128| (number * u128::from(all) / u128::from(count)) as u64;
                    let (from, to) = (of(part), of(part + 1));
                    assert!(drawn.iter().any(|one| (from..=to).contains(one)), "{all} {count} {part}");
                }
            }
        }
        assert_eq!(drawn(3, 100, &mut random), [0, 1, 2]);
    }

    /// Every number comes as often, also where parts begin within numbers.
    #[test]
    fn draws_are_uniform() {
        let (mut random, mut of_each) = (SplitMix64::new(7), [0u32; 10]);
        for _ in 0..10_000 {
            drawn(10, 3, &mut random).into_iter().for_each(|one| of_each[one as usize] += 1);
        }
        // A number in two parts is drawn twice at times, and then counts once: at most one time in nine.
        assert!(of_each.iter().all(|count| (2500..3200).contains(count)), "{of_each:?}");
    }

    /// A hole that has two parts in it is always met, one of scattered bytes as often as by draws from all.
    #[test]
    fn no_kind_of_loss_is_met_less_often_than_promised() {
        let (all, count) = (1u64 << 30, looks(0.99, 0.01, 1 << 20));
        let lost = all / 100;
        let met = |is_lost: &dyn Fn(u64) -> bool, seed: u64| {
            drawn(all, count, &mut SplitMix64::new(seed)).into_iter().any(is_lost)
        };
        for seed in 0..500 {
            let start = SplitMix64::new(seed).next() % (all - lost);
            assert!(met(&|byte| (start..start + lost).contains(&byte), seed), "a hole at {start}");
        }
        let scattered = (0..5000).filter(|seed| met(&|byte| (byte >> 14) % 100 == seed % 100, *seed)).count();
        assert!(scattered >= 4925, "{scattered} of 5000");
    }
}

//! The statistics of an audit: each look is at a byte chosen at random.

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
/// the upper end of the one-sided interval of Clopper and Pearson (Biometrika 26, 1934).
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
    high
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

/// `count` numbers below `all`, each chosen by itself, in order and without repetition.
pub(super) fn drawn(all: u64, count: u64, random: &mut SplitMix64) -> Vec<u64> {
    // The high half of the product is uniform but for one part in 2^64 / `all`.
    let one = |_| ((u128::from(random.next()) * u128::from(all)) >> 64) as u64;
    let mut drawn: Vec<u64> = (0..count).map(one).collect();
    drawn.sort_unstable();
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
    fn draws_are_spread_over_all() {
        let mut random = SplitMix64::new(7);
        let all = 1 << 60;
        let drawn = drawn(all, 4000, &mut random);
        assert!(drawn.is_sorted() && drawn.len() == 4000 && drawn[3999] < all);
        let of_each: Vec<usize> =
            (0..4).map(|quarter| drawn.iter().filter(|one| **one >> 58 == quarter).count()).collect();
        assert!(of_each.iter().all(|count| (900..1100).contains(count)), "{of_each:?}");
        assert_eq!(super::drawn(3, 100, &mut random), [0, 1, 2]);
    }
}

//! Many times of the same work, and their summary.

use serde::{Deserialize, Serialize};

/// The summary of a figure that was measured many times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The median.
    pub median: f64,
    /// The smallest value.
    pub min: f64,
    /// The lower quartile.
    pub low: f64,
    /// The upper quartile.
    pub high: f64,
    /// Values that count.
    pub slices: u32,
    /// Values that do not count, because another task ran on the core meanwhile.
    pub discarded: u32,
    /// True if the values are times on the core instead of the wall: too few slices were undisturbed.
    pub on_core: bool,
    /// True if disturbed values may be among them: those of work on several threads cannot be told from others.
    #[serde(default)]
    pub unfiltered: bool,
}

/// Ratio of a median to the smallest value from which the work counts as disturbed.
const FAR: f64 = 3.0;

impl Summary {
    /// The summary of `values`; `None` if there are none.
    pub(crate) fn of(mut values: Vec<f64>, discarded: u32) -> Option<Summary> {
        values.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| values.get(((values.len() - 1) as f64 * share).round() as usize).copied();
        let (first, last) = (values.first()?, values.len());
        Some(Summary {
            median: if last.is_multiple_of(2) {
                (values[last / 2 - 1] + values[last / 2]) / 2.0
            } else {
                values[last / 2]
            },
            min: *first,
            low: at(0.25)?,
            high: at(0.75)?,
            slices: last as u32,
            discarded,
            on_core: false,
            unfiltered: false,
        })
    }

    /// The distance between the quartiles, relative to the median.
    pub fn spread(&self) -> f64 {
        if self.median > 0.0 { (self.high - self.low) / self.median } else { 0.0 }
    }

    /// Tells whether the median is so far from the smallest value that the work was mostly disturbed.
    pub fn is_far_from_min(&self) -> bool {
        self.min > 0.0 && self.median > FAR * self.min
    }

    /// Relative error of the median: its standard error for normally distributed values (1.25 σ / √n, and the quartiles
    /// are 1.35 σ apart), at least half a per cent.
    pub fn noise(&self) -> f64 {
        (self.spread() / 1.35 * 1.25 / f64::from(self.slices.max(1)).sqrt()).max(0.005)
    }

    /// The summary of the values times `factor`.
    pub(crate) fn scaled(&self, factor: f64) -> Summary {
        Summary {
            median: self.median * factor,
            min: self.min * factor,
            low: self.low * factor,
            high: self.high * factor,
            ..self.clone()
        }
    }
}

/// The medians of two groups of values, if they are at least 1.3 apart and each group has a fifth of the values: the
/// machine then ran at two speeds.
pub(crate) fn two_regimes(values: &[f64]) -> Option<(f64, f64)> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let n = sorted.len();
    let fifth = n.div_ceil(5);
    if n < 10 {
        return None;
    }
    let gap = |i: &usize| sorted[*i] / sorted[i - 1];
    let cut = (fifth..=n - fifth).max_by(|a, b| gap(a).total_cmp(&gap(b)))?;
    let (slow, fast) = (sorted[cut..][(n - cut) / 2], sorted[..cut][cut / 2]);
    // The difference must be a gap, not a slope: most of it lies between two neighbours.
    (slow / fast >= 1.3 && gap(&cut) >= 1.1).then_some((fast, slow))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_quartiles_are_those_of_the_sorted_values() {
        let summary = Summary::of(vec![5.0, 1.0, 4.0, 2.0, 3.0], 7).expect("there are values");
        assert_eq!((summary.median, summary.min, summary.low, summary.high), (3.0, 1.0, 2.0, 4.0));
        assert_eq!((summary.slices, summary.discarded), (5, 7));
        assert_eq!(Summary::of(vec![1.0, 2.0], 0).expect("two values").median, 1.5);
        assert_eq!(Summary::of(Vec::new(), 3), None);
    }

    #[test]
    fn two_speeds_are_told_from_noise() {
        let one: Vec<f64> = (0..40).map(|i| 1.0 + 0.01 * f64::from(i)).collect();
        assert_eq!(two_regimes(&one), None);
        let two: Vec<f64> = (0..40).map(|i| if i % 3 == 0 { 2.0 } else { 1.0 }).collect();
        assert_eq!(two_regimes(&two), Some((1.0, 2.0)));
        let outlier: Vec<f64> = (0..40).map(|i| if i == 3 { 9.0 } else { 1.0 }).collect();
        assert_eq!(two_regimes(&outlier), None);
    }
}

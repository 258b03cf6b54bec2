//! The delay of datagrams. The clocks of two machines are unrelated, so only differences count: the jitter of RFC 3550,
//! and delays beyond the quickest datagram of the test.

/// Most delays kept.
const MOST: usize = 1 << 16;

/// Times on the way, in ns, each off by the same unknown number.
#[derive(Debug)]
pub(super) struct Transits {
    kept: Vec<i64>,
    /// A single delay of this many is kept.
    step: u64,
    /// Number of all delays.
    count: u64,
    most: i64,
}

impl Transits {
    pub(super) fn new() -> Transits {
        Transits { kept: Vec::new(), step: 1, count: 0, most: i64::MIN }
    }

    pub(super) fn take(&mut self, transit: i64) {
        self.most = self.most.max(transit);
        if self.count.is_multiple_of(self.step) {
            if self.kept.len() == MOST {
                // Every second delay stays.
                let mut at = 0;
                self.kept.retain(|_| {
                    at += 1;
                    at % 2 == 1
                });
                self.step *= 2;
            }
            if self.count.is_multiple_of(self.step) {
                self.kept.push(transit);
            }
        }
        self.count += 1;
    }

    /// The median, the 99th percentile and the maximum beyond `least`; `None` without delays.
    pub(super) fn beyond(&self, least: i64) -> Option<[u64; 3]> {
        let mut sorted = self.kept.clone();
        sorted.sort_unstable();
        let last = sorted.len().checked_sub(1)?;
        let at = |share: f64| sorted[(last as f64 * share).round() as usize];
        Some([at(0.5), at(0.99), self.most].map(|transit| transit.saturating_sub(least).max(0) as u64))
    }
}

/// The interarrival jitter of RFC 3550, section 6.4.1, and the quickest datagram.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Jitter {
    last: Option<i64>,
    least: Option<i64>,
    jitter: f64,
}

impl Jitter {
    pub(super) fn take(&mut self, transit: i64) {
        if let Some(last) = self.last {
            self.jitter += (transit.abs_diff(last) as f64 - self.jitter) / 16.0;
        }
        self.last = Some(transit);
        self.least = Some(self.least.map_or(transit, |least| least.min(transit)));
    }

    /// The time on the way of the quickest datagram; 0 without any.
    pub(super) fn least(&self) -> i64 {
        self.least.unwrap_or(0)
    }

    /// In ns.
    pub(super) fn jitter(&self) -> u64 {
        self.jitter as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_is_that_of_the_rfc() {
        let mut jitter = Jitter::default();
        [1_000, 1_000, 1_000].iter().for_each(|transit| jitter.take(*transit));
        assert_eq!(jitter.jitter(), 0, "all are as quick");
        jitter.take(17_000);
        assert_eq!(jitter.jitter(), 1_000, "a sixteenth of the difference");
        jitter.take(1_000);
        assert_eq!(jitter.jitter(), 1_937, "1000 + (16000 - 1000) / 16");
        assert_eq!(jitter.least(), 1_000);
        let mut wild = Jitter::default();
        [i64::MIN, i64::MAX].iter().for_each(|transit| wild.take(*transit));
        assert_eq!(wild.least(), i64::MIN);
    }

    #[test]
    fn delays_are_those_beyond_the_quickest() {
        let mut transits = Transits::new();
        assert_eq!(transits.beyond(0), None);
        (0..=100).for_each(|delay| transits.take(delay - 50));
        assert_eq!(transits.beyond(-50), Some([50, 99, 100]));
        assert_eq!(transits.beyond(60), Some([0, 0, 0]), "never below");
        let mut many = Transits::new();
        (0..1_000_000).for_each(|delay| many.take(delay));
        let [median, high, most] = many.beyond(0).expect("there are some");
        assert!(median.abs_diff(500_000) < 5_000 && high.abs_diff(990_000) < 5_000, "{median} {high}");
        assert_eq!(most, 999_999);
        assert!(many.kept.len() <= MOST);
    }
}

//! The number of repair packets that the ratio owes.

use super::super::settings::Ratio;
use crate::format::packet::{Profile, REPAIR_OVERHEAD, SOURCE_OVERHEAD, SYMBOL_OVERHEAD};

/// Most bytes of repair packets while a stream runs, as a part of those that the ratio gives: numerator and
/// denominator. (With the end of the stream the part is below 5/4, unless the stream is short.)
const MOST: [i64; 2] = [9, 8];

/// The balance of rows: source packets earn them, and rows spend them (format specification, section 14.5).
///
/// The ratio says how many rows source packets earn. A row is as long as the longest payload, so rows over payloads of
/// different lengths may take more bytes than the source packets bring: rows then have to be paid for in bytes too.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owed {
    ratio: Ratio,
    /// Source packets times `ratio.repair()`, less rows times `ratio.source()`.
    packets: i64,
    /// The same for bytes, those of source packets 9/8 times, in eighths. `None` where a block or window gets a fixed
    /// number of rows, whatever their lengths.
    bytes: Option<i64>,
}

impl Owed {
    /// A balance of nothing.
    pub(super) fn new(ratio: Ratio, profile: Profile) -> Owed {
        let slides = matches!(profile, Profile::Bounded | Profile::Classic);
        Owed { ratio, packets: 0, bytes: slides.then_some(0) }
    }

    /// Goes on with another ratio. The balance until now keeps its worth in rows.
    pub(super) fn set_ratio(&mut self, ratio: Ratio) {
        let (before, now) = (i128::from(self.ratio.source()), i128::from(ratio.source()));
        let scaled = |balance: i64| (i128::from(balance) * now / before) as i64;
        (self.ratio, self.packets) = (ratio, scaled(self.packets));
        self.bytes = self.bytes.map(scaled);
    }

    fn source(&self) -> i64 {
        self.ratio.source().into()
    }

    fn repair(&self) -> i64 {
        self.ratio.repair().into()
    }

    /// Eighths of bytes that a payload of `payload` bytes brings.
    fn earned(&self, payload: usize) -> i64 {
        (SOURCE_OVERHEAD + payload) as i64 * MOST[0] * self.repair()
    }

    /// Eighths of bytes that a row takes over payloads of up to `longest` bytes.
    fn cost(&self, longest: usize) -> i64 {
        (REPAIR_OVERHEAD + SYMBOL_OVERHEAD + longest) as i64 * MOST[1] * self.source()
    }

    /// Notes a source packet with a payload of `payload` bytes.
    pub(super) fn earn(&mut self, payload: usize) {
        // Rows that bytes held back are not made up for when bytes suffice again, except one.
        self.packets = self.packets.min(self.source()) + self.repair();
        let earned = self.earned(payload);
        if let Some(bytes) = &mut self.bytes {
            *bytes = bytes.saturating_add(earned);
        }
    }

    /// Tells whether a row over payloads of up to `longest` bytes is owed.
    pub(super) fn is_due(&self, longest: usize) -> bool {
        self.packets >= self.source() && self.bytes.is_none_or(|bytes| bytes >= self.cost(longest))
    }

    /// Notes a row over payloads of up to `longest` bytes that was sent, or could have been.
    pub(super) fn spend(&mut self, longest: usize) {
        self.packets -= self.source();
        let cost = self.cost(longest);
        if let Some(bytes) = &mut self.bytes {
            *bytes -= cost;
        }
    }

    /// Number of rows over payloads of up to `longest` bytes that were sent before they were owed.
    pub(super) fn ahead(&self, longest: usize) -> f64 {
        let packets = -self.packets as f64 / self.source() as f64;
        let bytes = self.bytes.map_or(0.0, |bytes| -bytes as f64 / self.cost(longest) as f64);
        packets.max(bytes).max(0.0)
    }

    /// Number of source packets with payloads of `payload` bytes before the next row is due.
    pub(super) fn until_next_row(&self, payload: usize, longest: usize) -> u64 {
        let after = |lacking: i64, each: i64| u64::try_from(lacking).unwrap_or(0).div_ceil(each as u64);
        let packets = after(self.source() - self.packets, self.repair());
        let bytes = self.bytes.map_or(0, |bytes| after(self.cost(longest) - bytes, self.earned(payload)));
        packets.max(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends payloads of these lengths, again and again. Returns the rows, and the ratio of repair bytes to source
    /// bytes.
    fn rows(repair: u16, source: u16, lens: &[usize], count: usize) -> (usize, f64) {
        let longest = *lens.iter().max().expect("lengths");
        let mut owed = Owed::new(Ratio::new(repair, source).expect("neither is 0"), Profile::Bounded);
        let (mut rows, mut bytes, mut sent) = (0, 0, 0);
        for &len in lens.iter().cycle().take(count) {
            let expected = owed.until_next_row(len, longest);
            owed.earn(len);
            sent += SOURCE_OVERHEAD + len;
            assert!(lens.len() > 1 || (expected <= 1) == owed.is_due(longest));
            while owed.is_due(longest) {
                owed.spend(longest);
                rows += 1;
                bytes += REPAIR_OVERHEAD + SYMBOL_OVERHEAD + longest;
            }
        }
        (rows, bytes as f64 / sent as f64 / (f64::from(repair) / f64::from(source)))
    }

    #[test]
    fn rows_are_as_many_as_the_ratio_says_and_no_more_than_their_bytes_allow() {
        for (repair, source) in [(1, 6), (2, 7), (3, 1), (1, 100)] {
            let expected = 7000 * usize::from(repair) / usize::from(source);
            for len in [1350, 300, 86] {
                assert_eq!(rows(repair, source, &[len], 7000).0, expected);
            }
            // Most payloads are long: the ratio holds.
            assert_eq!(rows(repair, source, &[1350, 1350, 1350, 900], 7000).0, expected);
            for lens in [&[0][..], &[1], &[10, 1350], &[0, 0, 0, 0, 0, 0, 0, 0, 9000]] {
                let (rows, share) = rows(repair, source, lens, 7000);
                assert!(rows < expected && share <= 1.125 && share > 1.05, "{lens:?}: {rows} rows, {share}");
            }
        }
    }

    /// A row that was sent before it was owed counts as one row under any ratio.
    #[test]
    fn a_balance_keeps_its_worth_in_rows() {
        let ratio = |repair, source| Ratio::new(repair, source).expect("neither is 0");
        let mut owed = Owed::new(ratio(1, 6), Profile::Bounded);
        owed.earn(100);
        owed.spend(100);
        let ahead = owed.ahead(100);
        for of in [ratio(1, 60), ratio(65_535, 1), ratio(1, 65_535), ratio(1, 6)] {
            owed.set_ratio(of);
            assert!((owed.ahead(100) - ahead).abs() < 0.2, "{of:?}: {} and not {ahead}", owed.ahead(100));
        }
        // From now on the new ratio earns.
        let mut owed = Owed::new(ratio(1, 6), Profile::Bounded);
        owed.set_ratio(ratio(1, 50));
        let rows = (0..5000).filter(|_| {
            owed.earn(100);
            let is_due = owed.is_due(100);
            if is_due {
                owed.spend(100);
            }
            is_due
        });
        assert_eq!(rows.count(), 100);
    }

    #[test]
    fn what_was_sent_early_is_made_up_for() {
        let mut owed = Owed::new(Ratio::new(1, 6).expect("neither is 0"), Profile::Bounded);
        owed.earn(100);
        owed.spend(100);
        assert!(owed.ahead(100) > 0.8 && owed.ahead(100) < 0.9);
        let mut sent = 1;
        while !owed.is_due(100) {
            owed.earn(100);
            sent += 1;
        }
        assert_eq!(sent, 12);
        assert_eq!(owed.ahead(100), 0.0);
    }
}

//! The fates of numbered datagrams: which arrived, which are lost, and in which order and how often they came. Each of
//! the last four million has a bit; older ones are settled.

/// Datagrams that may still come out of order.
const WINDOW: u64 = 1 << 22;
const WORDS: usize = (WINDOW / 64) as usize;

/// Counts of datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Arrivals, without copies.
    pub(super) received: u64,
    /// Copies, and arrivals too old to tell.
    pub(super) doubled: u64,
    /// Arrivals behind a higher number.
    pub(super) reordered: u64,
    /// The largest distance of such an arrival, in numbers.
    pub(super) reordered_by: u64,
    /// Runs of lost datagrams, in the order of numbers.
    pub(super) bursts: u64,
    /// The longest run.
    pub(super) longest_burst: u64,
}

/// Takes the numbers in the order in which they come.
pub(super) struct Tracker {
    /// Bit n % WINDOW says whether number n arrived, from `base` on.
    bits: Vec<u64>,
    /// The first number that is not settled: a multiple of 64.
    base: u64,
    /// The highest number plus one.
    next: u64,
    counts: Counts,
    runs: Runs,
}

impl Tracker {
    pub(super) fn new() -> Tracker {
        Tracker { bits: vec![0; WORDS], base: 0, next: 0, counts: Counts::default(), runs: Runs::default() }
    }

    /// Notes a datagram. Returns whether it came for the first time.
    pub(super) fn take(&mut self, number: u64) -> bool {
        // No sender reaches these numbers.
        if number >= u64::MAX - WINDOW {
            return false;
        }
        if number >= self.base + WINDOW {
            self.settle((number - WINDOW) / 64 * 64 + 64);
        }
        let (word, bit) = (number / 64 % WORDS as u64, 1 << (number % 64));
        let word = &mut self.bits[word as usize];
        if number < self.base || *word & bit != 0 {
            self.counts.doubled += 1;
            return false;
        }
        *word |= bit;
        self.counts.received += 1;
        if number >= self.next {
            self.next = number + 1;
        } else {
            self.counts.reordered += 1;
            self.counts.reordered_by = self.counts.reordered_by.max(self.next - 1 - number);
        }
        true
    }

    /// Datagrams that arrived, without copies.
    pub(super) fn received(&self) -> u64 {
        self.counts.received
    }

    /// Datagrams known to have been sent: up to the highest number.
    pub(super) fn sent(&self) -> u64 {
        self.next
    }

    /// The counts over the first `sent` datagrams, or over the known ones.
    pub(super) fn finish(&mut self, sent: Option<u64>) -> Counts {
        let end = self.next.max(self.base);
        let mut runs = self.runs;
        let mut at = self.base;
        while at < end {
            let len = (end - at).min(64) as u32;
            runs.word(self.bits[(at / 64 % WORDS as u64) as usize], len);
            at += u64::from(len);
        }
        runs.gap(sent.unwrap_or(end).saturating_sub(end));
        runs.end();
        Counts { bursts: runs.bursts, longest_burst: runs.longest, ..self.counts }
    }

    /// Stops waiting for numbers below `base`.
    fn settle(&mut self, base: u64) {
        let words = ((base - self.base) / 64).min(WORDS as u64);
        for i in 0..words {
            let word = &mut self.bits[((self.base / 64 + i) % WORDS as u64) as usize];
            self.runs.word(std::mem::take(word), 64);
        }
        self.runs.gap(base - self.base - 64 * words);
        self.base = base;
    }
}

/// Runs of lost datagrams.
#[derive(Clone, Copy, Debug, Default)]
struct Runs {
    current: u64,
    bursts: u64,
    longest: u64,
}

impl Runs {
    /// The next `len` datagrams, the lowest bit first: 1 means that it arrived.
    fn word(&mut self, mut word: u64, mut len: u32) {
        while len > 0 {
            let lost = word.trailing_zeros().min(len);
            self.gap(lost.into());
            len -= lost;
            if len == 0 {
                return;
            }
            word >>= lost;
            let arrived = word.trailing_ones().min(len);
            self.end();
            len -= arrived;
            word = word.checked_shr(arrived).unwrap_or(0);
        }
    }

    fn gap(&mut self, lost: u64) {
        self.current = self.current.saturating_add(lost);
    }

    fn end(&mut self) {
        if self.current > 0 {
            self.bursts += 1;
            self.longest = self.longest.max(self.current);
            self.current = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(numbers: impl IntoIterator<Item = u64>, sent: Option<u64>) -> Counts {
        let mut tracker = Tracker::new();
        numbers.into_iter().for_each(|number| {
            tracker.take(number);
        });
        tracker.finish(sent)
    }

    #[test]
    fn a_sequence_written_by_hand() {
        // 0 and 5, 6 and 7 are lost, and 11 at the end; 3 and 4 change places, 2 comes late; 8 comes three times.
        let came = [1, 4, 3, 8, 2, 8, 9, 10, 8];
        let expected =
            Counts { received: 7, doubled: 2, reordered: 2, reordered_by: 6, bursts: 3, longest_burst: 3 };
        assert_eq!(counts(came, Some(12)), expected);
        assert_eq!(counts(came, None), Counts { bursts: 2, ..expected }, "nobody said that there was an 11");
        assert_eq!(counts([], Some(3)), Counts { bursts: 1, longest_burst: 3, ..Counts::default() });
        assert_eq!(counts([], None), Counts::default());
    }

    #[test]
    fn long_tests_are_settled_on_the_way() {
        let all = 3 * WINDOW + 17;
        let whole = counts(0..all, Some(all));
        assert_eq!(whole, Counts { received: all, ..Counts::default() });
        // Every 1000th is lost, and a run across the edges of words and of the window.
        let run = WINDOW - 100..WINDOW + 100;
        let is_lost = |n: &u64| n % 1000 == 7 || run.contains(n);
        let some = counts((0..all).filter(|n| !is_lost(n)), Some(all));
        let lost: Vec<u64> = (0..all).filter(is_lost).collect();
        let bursts = lost.iter().enumerate().filter(|(i, n)| *i == 0 || lost[i - 1] + 1 != **n).count();
        assert_eq!(some.received + lost.len() as u64, all);
        assert_eq!((some.bursts, some.longest_burst), (bursts as u64, 200));
        assert_eq!((some.reordered, some.doubled), (0, 0));
    }

    #[test]
    fn numbers_that_no_sender_has_do_no_harm() {
        let far = u64::MAX / 2;
        let jumped = counts([0, far, 1, far, u64::MAX, u64::MAX - 1], None);
        assert_eq!((jumped.received, jumped.doubled), (2, 2));
        assert_eq!((jumped.bursts, jumped.longest_burst), (1, far - 1));
        assert_eq!(counts([5], Some(u64::MAX)).longest_burst, u64::MAX - 6);
    }
}

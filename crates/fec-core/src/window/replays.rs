//! Numbers of packets that have come, so that a packet counts once (in the manner of RFC 6479): counters of sealed
//! packets, rows of repair packets.

use std::fmt;

/// Number of counters that are told apart. A counter further behind the newest is too old.
const SPAN: u64 = 1 << 16;
const BITS: u64 = 64;

/// The newest counters that were seen. It takes 8 KiB.
#[derive(Clone)]
pub struct Replays {
    newest: Option<u64>,
    /// A bit for each of the last [`SPAN`] counters, by the counter modulo that.
    seen: Vec<u64>,
}

impl fmt::Debug for Replays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replays").field("newest", &self.newest).finish_non_exhaustive()
    }
}

impl Default for Replays {
    fn default() -> Replays {
        Replays { newest: None, seen: vec![0; (SPAN / BITS) as usize] }
    }
}

fn place(counter: u64) -> (usize, u64) {
    ((counter % SPAN / BITS) as usize, 1 << (counter % BITS))
}

impl Replays {
    /// Tells whether a packet with this counter came before, or is so old that this cannot be told.
    pub fn is_known(&self, counter: u64) -> bool {
        let (word, bit) = place(counter);
        let back = self.newest.and_then(|newest| newest.checked_sub(counter));
        back.is_some_and(|back| back >= SPAN || self.seen[word] & bit != 0)
    }

    /// Notes a packet with this counter, which must not be known. The work grows with the counters that are passed
    /// over, up to 65,536 of them.
    pub fn note(&mut self, counter: u64) {
        match self.newest {
            Some(newest) if counter <= newest => {}
            Some(newest) if counter - newest < SPAN => {
                for passed in newest + 1..counter {
                    let (word, bit) = place(passed);
                    self.seen[word] &= !bit;
                }
                self.newest = Some(counter);
            }
            _ => {
                self.seen.fill(0);
                self.newest = Some(counter);
            }
        }
        let (word, bit) = place(counter);
        self.seen[word] |= bit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_counter_is_taken_once() {
        let mut replays = Replays::default();
        let (mut taken, mut end) = (HashSet::new(), 0u64);
        let mut state = 1u64;
        for step in 0..300_000u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let far = if step % 10_000 == 77 { SPAN * 3 / 2 } else { 0 };
            // Most come in order, some late, some twice, and some after a gap.
            let counter = (end + far + (state >> 33) % 40).saturating_sub((state >> 50) % 30 * (step % 100));
            let expected = taken.contains(&counter) || counter + SPAN < end;
            assert_eq!(replays.is_known(counter), expected, "{counter} of {end}");
            if !expected {
                replays.note(counter);
                taken.insert(counter);
                end = end.max(counter + 1);
            }
        }
        for counter in [u64::MAX - 1, u64::MAX, end - SPAN] {
            assert_eq!(replays.is_known(counter), counter <= end);
            if counter > end {
                replays.note(counter);
                assert!(replays.is_known(counter));
            }
        }
    }
}

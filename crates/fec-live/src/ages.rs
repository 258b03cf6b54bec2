//! The ages of a stream's packets.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Steps of the allowed age: the exactness of ages.
const STEPS: u32 = 32;

/// The sending times of packets, as exactly as needed.
#[derive(Debug)]
pub(super) struct Ages {
    most: Duration,
    /// Times, and the number of packets sent by then.
    sent: VecDeque<(Instant, u64)>,
}

impl Ages {
    /// Ages of packets that may be at most `most` old.
    pub(super) fn new(most: Duration) -> Ages {
        Ages { most, sent: VecDeque::new() }
    }

    /// Notes that `sent` packets have been sent. Returns the first packet that is not too old, if it has changed.
    pub(super) fn needed(&mut self, sent: u64, now: Instant) -> Option<u64> {
        let is_due = self.sent.back().is_none_or(|(at, _)| now >= *at + self.most / STEPS);
        if is_due {
            self.sent.push_back((now, sent));
        }
        let mut needed = None;
        while let Some((at, sent)) = self.sent.front()
            && *at + self.most <= now
        {
            needed = Some(*sent);
            self.sent.pop_front();
        }
        needed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_let_go_in_time_and_not_before() {
        let (start, ms) = (Instant::now(), Duration::from_millis(1));
        let mut ages = Ages::new(100 * ms);
        let mut needed = 0;
        for time in 0..5000u32 {
            // The stream has three packets a millisecond.
            let sent = 3 * u64::from(time);
            needed = ages.needed(sent, start + time * ms).unwrap_or(needed);
            assert!(needed <= sent.saturating_sub(300), "{needed} of {sent}: too soon");
            assert!(time < 120 || needed + 315 >= sent, "{needed} of {sent}: too late");
            assert!(ages.sent.len() <= 34);
        }
        // The next call comes after a pause.
        assert!(ages.needed(15_000, start + 60_000 * ms) > Some(14_980));
    }
}

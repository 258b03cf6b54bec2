//! How old the packets of a stream are.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Ages are known to this part of what is allowed.
const STEPS: u32 = 32;

/// Which packets were sent when, as exactly as it is needed.
#[derive(Debug)]
pub(super) struct Ages {
    most: Duration,
    /// At these times so many packets had been sent.
    sent: VecDeque<(Instant, u64)>,
}

impl Ages {
    /// Packets may have this age.
    pub(super) fn new(most: Duration) -> Ages {
        Ages { most, sent: VecDeque::new() }
    }

    /// Notes that so many packets have been sent, and tells the first that is not too old, if that has changed.
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
            // Three packets a millisecond.
            let sent = 3 * u64::from(time);
            needed = ages.needed(sent, start + time * ms).unwrap_or(needed);
            assert!(needed <= sent.saturating_sub(300), "{needed} of {sent}: too soon");
            assert!(time < 120 || needed + 315 >= sent, "{needed} of {sent}: too late");
            assert!(ages.sent.len() <= 34);
        }
        // After a pause.
        assert!(ages.needed(15_000, start + 60_000 * ms) > Some(14_980));
    }
}

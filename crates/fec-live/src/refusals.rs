//! Notices that packets come and none is accepted.

use super::LiveError;
use super::received::{Received, Refusals};
use std::time::{Duration, Instant};

/// Number of refused packets that is worth a notice.
const MANY: u64 = 8;
/// Time for which a stream with accepted packets may be quiet: a sender shows its presence every second.
const QUIET: Duration = Duration::from_millis(1500);

/// Watches the refused packets of a stream.
#[derive(Debug, Default)]
pub(super) struct RefusalWatch {
    /// Number of packets accepted until now, and the refusals before the last of them came.
    accepted: u64,
    before: Refusals,
    /// Time of the first refusal since then.
    since: Option<Instant>,
    is_told: bool,
    is_told_later: bool,
}

impl RefusalWatch {
    /// The reason why nothing is accepted, if it is worth a notice: once before any packet is accepted, and once after.
    pub(super) fn notice(&mut self, received: &Received, now: Instant) -> Option<LiveError> {
        let refusals = received.refusals();
        if received.arrived != self.accepted {
            (self.accepted, self.before, self.since) = (received.arrived, refusals, None);
        }
        let count = refusals.count() - self.before.count();
        if count == 0 {
            return None;
        }
        let since = *self.since.get_or_insert(now);
        let (is_told, quiet) = match self.accepted {
            0 => (&mut self.is_told, Duration::ZERO),
            _ => (&mut self.is_told_later, QUIET),
        };
        if *is_told || count < MANY || now.saturating_duration_since(since) < quiet {
            return None;
        }
        *is_told = true;
        received.why_refused(&self.before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seal::NotOpened;
    use fec_core::window::Received as Fate;

    #[test]
    fn that_nothing_is_accepted_is_told_once_before_and_once_after() {
        let (mut received, mut watch) = (Received::default(), RefusalWatch::default());
        let (start, ms) = (Instant::now(), Duration::from_millis(1));
        let mut refuse = |received: &mut Received, why, from: u32, until: u32| -> Vec<(u32, String)> {
            let refused = (from..until).step_by(100).filter_map(|time| {
                received.count_not_opened(why);
                Some((time, watch.notice(received, start + time * ms)?.to_string()))
            });
            refused.collect()
        };
        let told = refuse(&mut received, NotOpened::Unsealed, 0, 5000);
        assert_eq!(told, [(700, "no packet that came is of this key".to_owned())]);
        // Nothing is told as long as some packets are accepted.
        for second in 5..10 {
            received.count(Fate::Accepted);
            assert_eq!(refuse(&mut received, NotOpened::Forged, second * 1000, second * 1000 + 1000), []);
        }
        received.count(Fate::Accepted);
        // The first refusal came together with the last accepted packet.
        let told = refuse(&mut received, NotOpened::Stale(11), 10_000, 20_000);
        assert_eq!(told, [(11_600, "the packets that came were sealed 11 seconds ago".to_owned())]);
        received.count(Fate::Accepted);
        assert_eq!(refuse(&mut received, NotOpened::Stale(11), 20_000, 30_000), []);
    }
}

//! Pacing: a token bucket that sleeps.

use std::time::{Duration, Instant};

/// What may go out at once: bytes of so much time.
const BURST: Duration = Duration::from_millis(2);
/// Sleeping is not more exact than this.
const GRAIN: Duration = Duration::from_micros(200);

/// Says when bytes may be sent so that they do not exceed a rate.
#[derive(Debug)]
pub struct Pace {
    seconds_per_byte: f64,
    /// When all that was sent would have been sent at exactly the rate.
    due: Instant,
}

impl Pace {
    /// A rate in 10^6 bits a second, above 0.
    pub fn new(mbps: f64, now: Instant) -> Pace {
        Pace { seconds_per_byte: 8e-6 / mbps, due: now }
    }

    /// Counts bytes that are sent now, and tells how long to wait before the next.
    pub fn sent(&mut self, bytes: usize, now: Instant) -> Option<Duration> {
        // Time in which nothing was sent is not saved up, but for a burst.
        if let Some(earliest) = now.checked_sub(BURST) {
            self.due = self.due.max(earliest);
        }
        self.due += Duration::from_secs_f64(bytes as f64 * self.seconds_per_byte);
        let wait = self.due.saturating_duration_since(now);
        (wait >= GRAIN).then_some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_holds_and_silence_is_not_saved_up() {
        let start = Instant::now();
        let mut pace = Pace::new(8.0, start);
        let mut now = start;
        let mut send = |now: &mut Instant, packets: u32| {
            for _ in 0..packets {
                if let Some(wait) = pace.sent(1000, *now) {
                    assert!(wait < Duration::from_millis(5), "{wait:?}");
                    *now += wait;
                }
            }
        };
        // 1000 bytes a millisecond.
        send(&mut now, 5000);
        let took = (now - start).as_secs_f64();
        assert!((took - 5.0).abs() < 0.01, "{took}");
        now += Duration::from_secs(100);
        let again = now;
        send(&mut now, 1000);
        let took = (now - again).as_secs_f64();
        assert!((took - 1.0).abs() < 0.01, "{took}");
    }
}

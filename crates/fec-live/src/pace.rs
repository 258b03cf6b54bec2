//! Pacing: a token bucket that sleeps.

use std::time::{Duration, Instant};

/// The longest burst: bytes of this much time may go out at once.
const BURST: Duration = Duration::from_millis(2);
/// Exactness of sleeping.
const GRAIN: Duration = Duration::from_micros(200);

/// Tells when bytes may be sent without exceeding a rate.
#[derive(Debug)]
pub struct Pace {
    seconds_per_byte: f64,
    /// The time at which all bytes would have been sent at exactly the rate.
    due: Instant,
}

impl Pace {
    /// A pace of `mbps` Mb/s, above 0.
    pub fn new(mbps: f64, now: Instant) -> Pace {
        Pace { seconds_per_byte: 8e-6 / mbps, due: now }
    }

    /// Counts bytes that are sent now, and returns the time to wait before the next.
    pub fn sent(&mut self, bytes: usize, now: Instant) -> Option<Duration> {
        // Idle time is not saved up, except for a burst.
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
        // The rate is 1000 bytes a millisecond.
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

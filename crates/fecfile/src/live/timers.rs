//! What a receiver does by the clock: it gives packets up, notices silence, and tells how far it is.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Once the sender has said that it has ended, so much silence is enough.
const IDLE_AFTER_END: Duration = Duration::from_millis(500);
/// When all up to the end is there as well, so much without a packet that speaks against it.
const LINGER: Duration = Duration::from_millis(200);
/// Deadlines are kept with this precision.
const GRAIN: Duration = Duration::from_millis(1);

/// When a lost packet is given up, which repair packets might still mend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// So long after a later one came,
    pub after: Duration,
    /// and not before so many later ones were sent: repair packets come with them.
    pub packets: u32,
}

impl Deadline {
    /// For whoever watches or listens: a silence is at most a second longer than the outage that made it, with time to spare, and
    /// streams of few packets are mended all the same.
    pub const LIVE: Deadline = Deadline { after: Duration::from_millis(900), packets: 60 };
}

/// When lost packets are given up.
#[derive(Debug)]
pub(super) struct Deadlines {
    deadline: Option<Deadline>,
    /// How far the stream had come, and when.
    heard: VecDeque<(Instant, u64)>,
    /// How far it has come.
    end: u64,
}

impl Deadlines {
    /// `None`: they never are.
    pub(super) fn new(deadline: Option<Deadline>) -> Deadlines {
        Deadlines { deadline, heard: VecDeque::new(), end: 0 }
    }

    /// Notes how far the stream has come, if packets before are missing.
    pub(super) fn hear(&mut self, end: Option<u64>, now: Instant) {
        if let (Some(_), Some(end)) = (self.deadline, end) {
            self.end = end;
            let is_new = self.heard.back().is_none_or(|(at, heard)| *heard < end && now >= *at + GRAIN);
            if is_new {
                self.heard.push_back((now, end));
            }
        }
    }

    /// When the next packet is given up; `None`: not before more were sent.
    pub(super) fn next(&self) -> Option<Instant> {
        let deadline = self.deadline?;
        let (at, heard) = self.heard.front()?;
        (heard + u64::from(deadline.packets) <= self.end).then(|| *at + deadline.after)
    }

    /// Packets before this one are past their deadline.
    pub(super) fn due(&mut self, now: Instant) -> Option<u64> {
        let mut before = None;
        while self.next().is_some_and(|at| at <= now) {
            before = self.heard.pop_front().map(|(_, heard)| heard);
        }
        before
    }
}

/// Whether a source has been silent for so long that the stream has ended.
#[derive(Debug)]
pub(super) struct Silence {
    idle: Option<Duration>,
    /// How long the first packet may take, and since when.
    wait: Option<(Instant, Duration)>,
    is_network: bool,
    last_packet: Option<Instant>,
}

/// What is known of the end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Nothing.
    Unknown,
    /// The sender has said that it has ended; something before may be missing.
    Told,
    /// All before it is there, or named as lost.
    Reached,
}

impl Silence {
    /// The stream ends after `idle` without a packet; a network, of which the end is told, after less; and `wait` after now,
    /// if no packet comes at all.
    pub(super) fn new(
        idle: Option<Duration>,
        wait: Option<Duration>,
        is_network: bool,
        now: Instant,
    ) -> Silence {
        Silence { idle, wait: wait.map(|wait| (now, wait)), is_network, last_packet: None }
    }

    /// When a packet came last.
    pub(super) fn last_packet(&self) -> Option<Instant> {
        self.last_packet
    }

    /// A packet came.
    pub(super) fn ends(&mut self, now: Instant) {
        self.last_packet = Some(now);
    }

    /// When the stream has ended, unless a packet comes before.
    pub(super) fn deadline(&self, end: End) -> Option<Instant> {
        let Some(last) = self.last_packet else {
            return self.wait.map(|(since, wait)| since + wait);
        };
        let most = match end {
            // A pipe is read to its end.
            _ if !self.is_network => None,
            End::Unknown => None,
            End::Told => Some(IDLE_AFTER_END),
            End::Reached => Some(LINGER),
        };
        self.idle.into_iter().chain(most).min().map(|idle| last + idle)
    }

    /// Whether no packet came up to `deadline`, and that is past.
    pub(super) fn lasted(&self, deadline: Option<Instant>) -> bool {
        deadline.is_some_and(|at| Instant::now() >= at && self.last_packet <= Some(at))
    }
}

/// Something that happens again and again.
#[derive(Debug)]
pub(super) struct Every {
    interval: Option<Duration>,
    next: Option<Instant>,
}

impl Every {
    /// In so much time from now on; `None`: never.
    pub(super) fn new(interval: Option<Duration>, now: Instant) -> Every {
        Every { interval, next: interval.map(|interval| now + interval) }
    }

    /// When it is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Whether it is due now. A program that was stopped for a while does not make up for all it has missed.
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        let is_due = self.next.is_some_and(|at| now >= at);
        if is_due {
            self.next = self.interval.map(|interval| now + interval);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn packets_are_given_up_in_time() {
        let start = Instant::now();
        let mut deadlines = Deadlines::new(Some(Deadline { after: SECOND, packets: 0 }));
        deadlines.hear(None, start);
        assert_eq!(deadlines.next(), None, "nothing is missing");
        deadlines.hear(Some(5), start);
        deadlines.hear(Some(6), start + GRAIN / 2);
        deadlines.hear(Some(7), start + 2 * GRAIN);
        assert_eq!(deadlines.next(), Some(start + SECOND));
        assert_eq!(deadlines.due(start), None);
        assert_eq!(deadlines.due(start + SECOND), Some(5));
        assert_eq!(deadlines.due(start + 2 * SECOND), Some(7));
        assert_eq!(deadlines.next(), None);

        let mut slow = Deadlines::new(Some(Deadline { after: SECOND, packets: 3 }));
        slow.hear(Some(5), start);
        slow.hear(Some(7), start + 5 * SECOND);
        assert_eq!((slow.next(), slow.due(start + 6 * SECOND)), (None, None), "two packets later");
        slow.hear(Some(8), start + 9 * SECOND);
        assert_eq!(slow.next(), Some(start + SECOND));
        assert_eq!(slow.due(start + 9 * SECOND), Some(5));
    }

    #[test]
    fn silence_is_shorter_behind_an_end_that_was_told() {
        let now = Instant::now();
        let mut network = Silence::new(Some(SECOND), None, true, now);
        assert_eq!(network.deadline(End::Unknown), None, "before the first packet");
        network.ends(now);
        assert_eq!(network.deadline(End::Unknown), Some(now + SECOND));
        assert_eq!(network.deadline(End::Told), Some(now + IDLE_AFTER_END));
        assert_eq!(network.deadline(End::Reached), Some(now + LINGER));
        assert!(!network.lasted(Some(now + SECOND)) && network.lasted(Some(now)));
        let mut pipe = Silence::new(None, Some(2 * SECOND), false, now);
        assert_eq!(pipe.deadline(End::Unknown), Some(now + 2 * SECOND), "for the first packet");
        pipe.ends(now);
        assert_eq!(pipe.deadline(End::Reached), None);
    }

    #[test]
    fn what_was_missed_is_not_made_up_for() {
        let start = Instant::now();
        let mut every = Every::new(Some(SECOND), start);
        assert!(!every.is_due(start));
        assert!(every.is_due(start + 10 * SECOND));
        assert_eq!(every.next(), Some(start + 11 * SECOND));
        assert!(!Every::new(None, start).is_due(start + SECOND));
    }
}

//! A receiver's work by the clock: it gives packets up, notices silence, and tells its progress.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Silence that suffices once the sender has announced the end.
const IDLE_AFTER_END: Duration = Duration::from_millis(500);
/// Silence that suffices once all packets up to the end are there too, without a packet that contradicts it.
const LINGER: Duration = Duration::from_millis(200);
/// Delay of a look from which the process must have been stopped.
const STOPPED: Duration = Duration::from_secs(1);
/// Time for the reader of a byte stream to tell that data is there.
const LOOK: Duration = Duration::from_millis(100);
/// Time for which a flood of foreign packets, faster than they can be taken, is heard.
const FLOODED: Duration = Duration::from_secs(5);
/// Precision of deadlines.
const GRAIN: Duration = Duration::from_millis(1);

/// The time at which a lost packet is given up that repair packets might still rebuild.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// Least time since a later packet came.
    pub after: Duration,
    /// Least number of later packets sent, since repair packets come with them.
    pub packets: u32,
}

impl Deadline {
    /// The deadline for watching or listening: a silence is at most a second longer than the outage behind it, with
    /// time to spare, and streams of few packets are repaired all the same.
    pub const LIVE: Deadline = Deadline { after: Duration::from_millis(900), packets: 60 };
}

/// The times at which lost packets are given up.
#[derive(Debug)]
pub(super) struct Deadlines {
    deadline: Option<Deadline>,
    /// Times, and the progress of the stream at them.
    heard: VecDeque<(Instant, u64)>,
    /// The progress of the stream.
    end: u64,
}

impl Deadlines {
    /// `None` if they are never given up.
    pub(super) fn new(deadline: Option<Deadline>) -> Deadlines {
        Deadlines { deadline, heard: VecDeque::new(), end: 0 }
    }

    /// Notes the progress of the stream, if packets before it are missing.
    pub(super) fn hear(&mut self, end: Option<u64>, now: Instant) {
        if let (Some(_), Some(end)) = (self.deadline, end) {
            self.end = end;
            let is_new = self.heard.back().is_none_or(|(at, heard)| *heard < end && now >= *at + GRAIN);
            if is_new {
                self.heard.push_back((now, end));
            }
        }
    }

    /// The time at which the next packet is given up; `None` if not before more were sent.
    pub(super) fn next(&self) -> Option<Instant> {
        let deadline = self.deadline?;
        let (at, heard) = self.heard.front()?;
        (heard + u64::from(deadline.packets) <= self.end).then(|| *at + deadline.after)
    }

    /// Postpones the deadlines by a time in which nobody took packets.
    pub(super) fn postpone(&mut self, by: Duration) {
        self.heard.iter_mut().for_each(|(at, _)| *at += by);
    }

    /// Packets before the returned one are past their deadline.
    pub(super) fn due(&mut self, now: Instant) -> Option<u64> {
        let mut before = None;
        while self.next().is_some_and(|at| at <= now) {
            before = self.heard.pop_front().map(|(_, heard)| heard);
        }
        before
    }
}

/// Tells whether a source has been silent for so long that the stream has ended. Silence needs a listener: a process
/// that was stopped, or had no turn, has heard nothing, and packets from meanwhile wait in its socket.
#[derive(Debug)]
pub(super) struct Silence {
    idle: Option<Duration>,
    /// Time for the first packet.
    wait: Option<Duration>,
    is_network: bool,
    /// Time of the last packet.
    last_packet: Option<Instant>,
    /// Time from which the first packet is waited for.
    began: Instant,
    /// All packets that came before this moment were taken.
    empty_at: Option<Instant>,
    /// Time at which a deadline was seen to be past, without proof that all earlier packets were taken.
    overdue: Option<Instant>,
    /// Time at which the last wait ended.
    woke: Instant,
}

/// The knowledge about the end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Nothing.
    Unknown,
    /// The sender has announced the end; packets before it may be missing.
    Told,
    /// All packets before it are there, or named as lost.
    Reached,
}

impl Silence {
    /// A stream ends after `idle` without a packet, on a network with an announced end after less, and after `wait` if
    /// no packet comes at all.
    pub(super) fn new(
        idle: Option<Duration>,
        wait: Option<Duration>,
        is_network: bool,
        now: Instant,
    ) -> Silence {
        Silence {
            idle,
            wait,
            is_network,
            last_packet: None,
            began: now,
            empty_at: None,
            overdue: None,
            woke: now,
        }
    }

    /// Time of the last packet.
    pub(super) fn last_packet(&self) -> Option<Instant> {
        self.last_packet
    }

    /// Notes that a packet came.
    pub(super) fn ends(&mut self, now: Instant) {
        (self.last_packet, self.overdue) = (Some(now), None);
    }

    /// Notes that no more packets were there at this time than were taken by now.
    pub(super) fn was_empty(&mut self, at: Option<Instant>) {
        self.empty_at = self.empty_at.max(at);
    }

    /// Time of the next look, unless data comes before; `None` if the source tells that nothing came.
    pub(super) fn look_at(&self, end: End, now: Instant) -> Option<Instant> {
        let deadline = self.deadline(end).filter(|_| !self.is_network)?;
        Some(if now < deadline { deadline } else { now + LOOK })
    }

    /// The time between the last wait and the one that begins at `asked`, if it was long: whoever was stopped in it, or
    /// could not write, took no packets.
    pub(super) fn away(&self, asked: Instant) -> Option<Duration> {
        Some(asked.saturating_duration_since(self.woke)).filter(|away| *away >= STOPPED)
    }

    /// Notes a wait from `asked` on that was planned to end at `planned`, and ends now. Returns the time in which
    /// nobody could look, if it was long: silence then begins anew.
    pub(super) fn wakes(
        &mut self,
        asked: Instant,
        planned: Option<Instant>,
        now: Instant,
    ) -> Option<Duration> {
        self.woke = now;
        // Deadlines that are already past were planned for now.
        let late = now.saturating_duration_since(planned?.max(asked));
        if late < STOPPED {
            return None;
        }
        (self.began, self.overdue) = (now, None);
        self.last_packet = self.last_packet.map(|_| now);
        Some(late)
    }

    /// Notes that nothing came since `asked`. A byte stream does not tell that it is empty: its reader gets a turn to
    /// contradict.
    pub(super) fn heard_nothing(&mut self, asked: Instant, now: Instant) {
        if !self.is_network && now >= asked + LOOK {
            self.was_empty(Some(asked));
        }
    }

    /// Time at which the stream has ended, unless a packet comes before.
    fn deadline(&self, end: End) -> Option<Instant> {
        let Some(last) = self.last_packet else {
            return self.wait.map(|wait| self.began + wait);
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

    /// Tells whether no packet came up to the end of the stream's deadline.
    pub(super) fn is_over(&mut self, end: End, now: Instant) -> bool {
        self.deadline(end).is_some_and(|deadline| self.is_past(deadline, now))
    }

    /// Tells whether `deadline` is past, and no packet came up to it.
    pub(super) fn is_past(&mut self, deadline: Instant, now: Instant) -> bool {
        if now < deadline {
            return false;
        }
        // A flooded socket holds nothing up.
        let overdue = *self.overdue.get_or_insert(now);
        self.empty_at.is_some_and(|at| at >= deadline) || now >= overdue + FLOODED
    }
}

/// A recurring event.
#[derive(Debug)]
pub(super) struct Every {
    interval: Option<Duration>,
    next: Option<Instant>,
}

impl Every {
    /// An event after each `interval` from now on; `None` for never.
    pub(super) fn new(interval: Option<Duration>, now: Instant) -> Every {
        Every { interval, next: interval.map(|interval| now + interval) }
    }

    /// Time of the next event.
    pub(super) fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Tells whether it is due now. A program that was stopped for a while does not make up for all missed events.
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
        let mut pipe = Silence::new(None, Some(2 * SECOND), false, now);
        assert_eq!(pipe.deadline(End::Unknown), Some(now + 2 * SECOND), "for the first packet");
        pipe.ends(now);
        assert_eq!(pipe.deadline(End::Reached), None);
    }

    /// A time that is over proves nothing as long as packets from before may wait.
    #[test]
    fn silence_is_over_when_nothing_waits_that_came_before() {
        let start = Instant::now();
        for (wait, heard) in [(None, true), (Some(SECOND), false)] {
            let mut silence = Silence::new(Some(SECOND), wait, true, start);
            if heard {
                silence.ends(start);
            }
            silence.was_empty(Some(start + SECOND / 2));
            assert!(!silence.is_over(End::Unknown, start + SECOND / 2), "too early");
            assert!(
                !silence.is_over(End::Unknown, start + 2 * SECOND),
                "what came since the last look waits"
            );
            silence.was_empty(None);
            assert!(!silence.is_over(End::Unknown, start + 2 * SECOND), "there was something else");
            silence.was_empty(Some(start + SECOND));
            assert!(silence.is_over(End::Unknown, start + 2 * SECOND));
            // A packet was there after all.
            silence.ends(start + 2 * SECOND);
            assert!(!silence.is_over(End::Unknown, start + 2 * SECOND));
            silence.was_empty(Some(start + 3 * SECOND));
            assert!(silence.is_over(End::Unknown, start + 3 * SECOND));
        }
    }

    /// A stopped process hears nothing, which is no silence, and gives nothing up.
    #[test]
    fn time_without_a_turn_is_no_silence() {
        let start = Instant::now();
        for is_network in [true, false] {
            for heard in [true, false] {
                let mut silence = Silence::new(Some(2 * SECOND), Some(2 * SECOND), is_network, start);
                if heard {
                    silence.ends(start);
                }
                let planned = Some(start + SECOND / 10);
                assert_eq!(silence.wakes(start, planned, start + SECOND), None, "a busy machine");
                let overdue = silence.wakes(start + 8 * SECOND, planned, start + 8 * SECOND);
                assert_eq!(overdue, None, "it looked at once");
                let late = silence.wakes(start, planned, start + 9 * SECOND);
                assert_eq!(late, Some(9 * SECOND - SECOND / 10));
                silence.was_empty(Some(start + 9 * SECOND));
                assert!(!silence.is_over(End::Unknown, start + 9 * SECOND));
                assert_eq!(silence.last_packet().is_some(), heard);
                silence.was_empty(Some(start + 11 * SECOND));
                assert!(silence.is_over(End::Unknown, start + 11 * SECOND));
            }
        }
        // A process may be stopped between two waits, too.
        let mut silence = Silence::new(None, None, true, start);
        assert_eq!(silence.away(start + SECOND / 2), None, "a busy machine");
        assert_eq!(silence.away(start + 4 * SECOND), Some(4 * SECOND));
        silence.wakes(start + 4 * SECOND, None, start + 5 * SECOND);
        assert_eq!(silence.away(start + 5 * SECOND), None);
        let mut silence = Silence::new(None, None, false, start);
        assert_eq!(silence.wakes(start, None, start + 9 * SECOND), None, "nothing was planned");
        let mut deadlines = Deadlines::new(Some(Deadline { after: SECOND, packets: 0 }));
        deadlines.hear(Some(5), start);
        deadlines.postpone(9 * SECOND);
        assert_eq!((deadlines.due(start + 9 * SECOND), deadlines.due(start + 10 * SECOND)), (None, Some(5)));
    }

    /// A pipe does not tell that it is empty: its reader gets a turn after the deadline.
    #[test]
    fn a_pipe_is_asked_once_more() {
        let start = Instant::now();
        let mut pipe = Silence::new(Some(SECOND), None, false, start);
        assert_eq!(pipe.look_at(End::Unknown, start), None);
        pipe.ends(start);
        let deadline = start + SECOND;
        assert_eq!(pipe.look_at(End::Unknown, start), Some(deadline));
        pipe.heard_nothing(start, deadline);
        assert!(!pipe.is_over(End::Unknown, deadline));
        assert_eq!(pipe.look_at(End::Unknown, deadline), Some(deadline + LOOK));
        pipe.heard_nothing(deadline, deadline + LOOK / 2);
        assert!(!pipe.is_over(End::Unknown, deadline + LOOK / 2));
        pipe.heard_nothing(deadline, deadline + LOOK);
        assert!(pipe.is_over(End::Unknown, deadline + LOOK));
        let network = Silence::new(Some(SECOND), Some(SECOND), true, start);
        assert_eq!(network.look_at(End::Unknown, start), None, "it tells");
    }

    /// A sender that never lets the socket be empty holds nothing up.
    #[test]
    fn a_flood_is_no_packet() {
        let start = Instant::now();
        let mut silence = Silence::new(Some(SECOND), None, true, start);
        silence.ends(start);
        let over = (0..1000u32).find(|tenth| silence.is_over(End::Unknown, start + *tenth * SECOND / 10));
        assert_eq!(over, Some(60), "{FLOODED:?} after the deadline");
        // The time counts from the first look.
        silence.ends(start);
        assert!(!silence.is_over(End::Unknown, start + 60 * SECOND));
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

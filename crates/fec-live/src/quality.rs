//! The quality of a link, for its operator: losses before and after repair, the lengths of bursts, the delay, and the
//! settings that would have sufficed.

use super::timers::Deadline;
use fec_core::window::Prospect;
use hdrhistogram::Histogram;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The longest delay that is recorded, in microseconds.
const MOST_DELAY: u64 = 3_600_000_000;
/// The longest burst that is recorded.
const MOST_BURST: u64 = 1 << 20;
/// Parts in which a window is watched.
const PARTS: usize = 8;
/// Factor by which advised settings exceed those that would just have sufficed.
const RESERVE: f64 = 1.15;

/// The quality of a link, as far as source packets tell.
#[derive(Clone, Debug)]
pub struct Quality {
    /// Source packets that came, or were missing when they had to be given out.
    total: u64,
    /// Source packets that did not come.
    missing: u64,
    /// Source packets that were not repaired.
    lost: u64,
    /// Missing source packets that came after their repair.
    overtaken: u64,
    /// Losses behind the first window, which a longer one could have repaired.
    mendable: u64,
    /// Lost source packets that the clock gave up.
    overdue: u64,
    deadline: Option<Deadline>,
    pace: Pace,
    longest: u64,
    bursts: Histogram<u64>,
    /// Length of the current burst of missing packets.
    burst: u64,
    delays: Histogram<u64>,
    /// Times, and the end of the stream that was known at them, while packets were waited for.
    heard: VecDeque<(u64, Instant)>,
    worst: WorstWindow,
    /// The losses that the next packets could stand.
    prospect: Option<Prospect>,
}

/// The speed of the stream.
#[derive(Clone, Debug, Default)]
struct Pace {
    /// A time, and the end of the stream that was known at it.
    since: Option<(u64, Instant)>,
    packets_per_second: f64,
}

impl Pace {
    fn hear(&mut self, end: u64, now: Instant) {
        let (start, since) = *self.since.get_or_insert((end, now));
        let seconds = now.saturating_duration_since(since).as_secs_f64();
        if seconds >= 1.0 {
            self.packets_per_second = end.saturating_sub(start) as f64 / seconds;
            self.since = Some((end, now));
        }
    }
}

/// The most packets that were missing in any window.
#[derive(Clone, Debug, Default)]
struct WorstWindow {
    /// Missing packets and all packets, in parts of a window; the last one grows.
    parts: VecDeque<(u64, u64)>,
    missing: u64,
    /// Most packets missing in any window so far.
    worst: u64,
}

impl Default for Quality {
    fn default() -> Quality {
        let histogram = |most| Histogram::new_with_max(most, 2).expect("the bounds are in order");
        Quality {
            total: 0,
            missing: 0,
            lost: 0,
            overtaken: 0,
            mendable: 0,
            overdue: 0,
            deadline: None,
            pace: Pace::default(),
            longest: 0,
            bursts: histogram(MOST_BURST),
            burst: 0,
            delays: histogram(MOST_DELAY),
            heard: VecDeque::new(),
            worst: WorstWindow::default(),
            prospect: None,
        }
    }
}

/// Advice: a change that would have prevented the losses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Advice {
    /// A longer window, in packets.
    Window(u32),
    /// A longer protection of packets.
    Latency,
    /// A longer wait at the receiver.
    Patience,
    /// More repair packets: one for this many source packets; 0 for more than one each.
    Rate(u32),
}

impl Quality {
    /// A quality without packets, for a stream whose lost packets are given up by this deadline.
    pub(super) fn new(deadline: Option<Deadline>) -> Quality {
        Quality { deadline, ..Quality::default() }
    }

    pub(super) fn deadline(&self) -> Option<Deadline> {
        self.deadline
    }

    /// Notes that the stream is known up to `end`, and that packets before are waited for.
    pub(super) fn hear(&mut self, end: u64, now: Instant) {
        self.pace.hear(end, now);
        if self.heard.back().is_none_or(|(heard, _)| *heard < end) {
            self.heard.push_back((end, now));
        }
    }

    /// Notes the losses that the next packets could stand.
    pub(super) fn foresee(&mut self, prospect: Option<Prospect>, overtaken: u64) {
        self.prospect = prospect.or(self.prospect);
        self.overtaken = overtaken;
    }

    /// Notes a packet that is given out.
    pub(super) fn packet(&mut self, seq: u64, rebuilt: bool, now: Instant) {
        while self.heard.front().is_some_and(|(end, _)| *end <= seq) {
            self.heard.pop_front();
        }
        let delay =
            self.heard.front().map_or(Duration::ZERO, |(_, heard)| now.saturating_duration_since(*heard));
        self.delays.saturating_record(delay.as_micros() as u64);
        if rebuilt {
            self.miss(1);
        } else {
            self.end_burst();
            self.count(1, 0);
        }
    }

    /// Notes packets that are lost for good; `is_overdue` says that the deadline was the cause.
    pub(super) fn gap(&mut self, count: u64, is_overdue: bool) {
        self.lost += count;
        self.overdue += if is_overdue { count } else { 0 };
        if self.prospect.is_some_and(|prospect| self.total >= u64::from(prospect.window)) {
            self.mendable += count;
        }
        self.miss(count);
    }

    fn miss(&mut self, count: u64) {
        self.burst += count;
        self.longest = self.longest.max(self.burst);
        self.count(count, count);
    }

    fn end_burst(&mut self) {
        if self.burst > 0 {
            self.bursts.saturating_record(std::mem::take(&mut self.burst));
        }
    }

    fn count(&mut self, packets: u64, missing: u64) {
        self.total += packets;
        self.missing += missing;
        if let Some(prospect) = self.prospect {
            self.worst.count(packets, missing, u64::from(prospect.window));
        }
    }

    fn share(part: u64, total: u64) -> f64 {
        if total == 0 { 0.0 } else { part as f64 / total as f64 }
    }

    /// The share of source packets that did not come.
    pub fn loss_before(&self) -> f64 {
        Quality::share(self.missing.saturating_sub(self.overtaken), self.total)
    }

    /// The share of source packets that were not repaired.
    pub fn loss_after(&self) -> f64 {
        Quality::share(self.lost, self.total)
    }

    /// Number of runs of source packets that did not come.
    pub fn bursts(&self) -> u64 {
        self.bursts.len() + u64::from(self.burst > 0)
    }

    /// The most source packets in a row that did not come.
    pub fn longest_burst(&self) -> u64 {
        self.longest
    }

    /// The length, in source packets, that nine of ten bursts did not exceed; 0 if none was missing.
    pub fn usual_burst(&self) -> u64 {
        self.bursts.value_at_quantile(0.9)
    }

    /// The time that this part of all payloads did not exceed in waiting for packets before them, or for their own
    /// repair.
    pub fn delay(&self, part: f64) -> Duration {
        Duration::from_micros(self.delays.value_at_quantile(part))
    }

    /// The longest burst, in source packets, that would be repaired if it came now, nothing else was lost, and the
    /// stream went on as before; `None` if unknown.
    pub fn margin(&self) -> Option<u64> {
        let prospect = self.prospect?;
        let in_time = self.deadline.map(|deadline| {
            let later = deadline.after.as_secs_f64() * self.pace.packets_per_second;
            prospect.rows(later.max(deadline.packets.into())) as u64
        });
        Some(prospect.burst().min(in_time.unwrap_or(u64::MAX)))
    }

    /// A change that would have prevented the losses, in a stream with windows of up to `most` packets; `None` if
    /// nothing was lost, or nothing is known to help.
    pub fn advice(&self, most: u32) -> Option<Advice> {
        let prospect = self.prospect.filter(|_| self.mendable > 0)?;
        let (rows, window) = (prospect.rows_per_packet, f64::from(prospect.window));
        let worst = self.worst.worst.max(self.burst) as f64 * RESERVE;
        let on_the_whole = self.loss_before() * RESERVE;
        // This share of the rows is lost, too.
        let is_enough = |rows: f64, window: f64| rows * (1.0 - on_the_whole) * (window - worst) >= worst;
        if is_enough(rows, window) {
            // The packets were given up for another reason.
            return (self.overdue > 0).then_some(Advice::Patience);
        }
        if on_the_whole < rows * (1.0 - on_the_whole) {
            let mut windows = (3..=16).map(|times| window * f64::from(times) / 2.0);
            let longer = windows.find(|longer| is_enough(rows, *longer));
            if let Some(longer) = longer.map(|longer| (longer / 100.0).ceil() as u32 * 100)
                && longer <= 65_536
            {
                // The sender lets go of packets after some time, so the window is not too short.
                return Some(if prospect.window < most { Advice::Latency } else { Advice::Window(longer) });
            }
        }
        let more = (0..30).rev().find(|each| is_enough(1.0 / f64::from(*each).max(0.5), window));
        more.map(Advice::Rate)
    }
}

impl WorstWindow {
    fn count(&mut self, packets: u64, missing: u64, window: u64) {
        let part = (window / PARTS as u64).max(1);
        self.missing += missing;
        match self.parts.back_mut() {
            Some((all, of_them)) if *all < part => (*all, *of_them) = (*all + packets, *of_them + missing),
            _ => self.parts.push_back((packets, missing)),
        }
        if self.parts.len() > PARTS {
            self.missing -= self.parts.pop_front().map_or(0, |(_, missing)| missing);
        }
        self.worst = self.worst.max(self.missing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_deadline_leaves_time_for() {
        let (mut quality, start) = (Quality::new(Some(Deadline::LIVE)), Instant::now());
        quality.foresee(Some(PROSPECT), 0);
        assert_eq!(quality.margin(), Some(6), "60 packets later there are 10 rows");
        for second in [0, 2, 4] {
            quality.hear(1200 * second, start + Duration::from_secs(second));
        }
        assert_eq!(quality.margin(), Some(176), "0.9 s later there are 180");
    }

    const PROSPECT: Prospect =
        Prospect { window: 6000, covered: 5760, rows_per_packet: 1.0 / 6.0, lacking: 0, room: 2048 };

    /// A stream in which `state` says for each packet whether it came (0), was repaired (1) or is lost (2).
    fn quality(count: u64, state: impl Fn(u64) -> u8) -> Quality {
        let mut quality = Quality::default();
        quality.foresee(Some(PROSPECT), 0);
        let now = Instant::now();
        for seq in 0..count {
            match state(seq) {
                0 => quality.packet(seq, false, now),
                1 => quality.packet(seq, true, now),
                _ => quality.gap(1, false),
            }
        }
        quality
    }

    #[test]
    fn losses_and_bursts_are_counted() {
        let quality = quality(10_000, |seq| match seq % 1000 {
            0..10 => 1,
            500 => 2,
            _ => 0,
        });
        assert_eq!((quality.loss_before(), quality.loss_after()), (0.011, 0.001));
        assert_eq!((quality.longest_burst(), quality.usual_burst()), (10, 10));
        let none = Quality::default();
        assert_eq!(
            (none.loss_before(), none.longest_burst(), none.margin(), none.advice(6000)),
            (0.0, 0, None, None)
        );
    }

    /// Losses count together that one window covers.
    #[test]
    fn the_worst_window_is_no_longer_than_a_window() {
        for (apart, worst) in [(1, 2), (5999, 2), (6000, 1), (60_000, 1)] {
            let quality = quality(70_000, |seq| u8::from(seq == 0 || seq == apart));
            assert_eq!(quality.worst.worst, worst, "{apart}");
        }
    }

    #[test]
    fn delays_are_those_of_waiting() {
        let (mut quality, start, ms) = (Quality::default(), Instant::now(), Duration::from_millis(1));
        // Packet 0 is missing: 1 to 99 come, one a millisecond, and wait for its repair.
        (2..=100).for_each(|end| quality.hear(end, start + end as u32 * ms));
        let end = start + 150 * ms;
        quality.packet(0, true, end);
        (1..100).for_each(|seq| quality.packet(seq, false, end));
        (100..200).for_each(|seq| quality.packet(seq, false, end));
        assert_eq!(quality.delay(0.5), Duration::ZERO);
        let most = quality.delay(0.99);
        assert!(most > 140 * ms && most < 152 * ms, "{most:?}");
        assert!(quality.heard.is_empty());
    }

    #[test]
    fn advice_is_what_would_have_helped() {
        // A row for six packets would repair 857 of 6000 if windows did not move by blocks.
        assert_eq!(PROSPECT.burst(), 819);
        assert_eq!(quality(30_000, |seq| u8::from(seq % 20 == 3)).advice(6000), None, "all is mended");
        let burst =
            |len: u64| quality(60_000, move |seq| if (20_000..20_000 + len).contains(&seq) { 2 } else { 0 });
        assert_eq!(burst(1000).advice(6000), Some(Advice::Window(9000)));
        assert_eq!(burst(1000).advice(60_000), Some(Advice::Latency), "the sender lets go of packets");
        let mut overdue = quality(60_000, |seq| if (20_000..20_050).contains(&seq) { 2 } else { 0 });
        assert_eq!(overdue.advice(6000), None);
        overdue.gap(1, true);
        assert_eq!(overdue.advice(6000), Some(Advice::Patience), "it could have been mended later");
        let early = quality(60_000, |seq| if (2000..3000).contains(&seq) { 2 } else { 0 });
        assert_eq!(early.advice(6000), None, "before the first window");
        assert_eq!(
            quality(60_000, |seq| if seq == 20_000 { 2 } else { 0 }).advice(6000),
            None,
            "another reason"
        );
        assert!(
            matches!(burst(3000).advice(6000), Some(Advice::Window(24_000..=27_000))),
            "{:?}",
            burst(3000).advice(6000)
        );
        let random = quality(60_000, |seq| if seq % 6 == 0 { 2 } else { 0 });
        assert_eq!(random.advice(6000), Some(Advice::Rate(3)));
        assert_eq!(
            quality(60_000, |seq| if seq % 100 < 97 { 2 } else { 0 }).advice(6000),
            None,
            "nothing helps"
        );
    }
}

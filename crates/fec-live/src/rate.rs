//! A rate of repair packets that follows the loss: reports of receivers come in, a ratio and rows on demand come out.
//!
//! The ratio covers the loss of the last seconds, so that most lost packets are rebuilt without a round trip. A report
//! that lacks more rows than the ratio brings soon gets them at once. Both stay below the upper bound, since a loss may
//! come from a queue that is full. Nothing here has a clock or a socket.

use fec_core::format::report::Report;
use fec_core::window::Ratio;
use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// Time after which a receiver that does not report is no longer followed.
const STALE: Duration = Duration::from_secs(1);
/// Time over which loss is measured: the last moments, and the last seconds.
const MOMENTS: Duration = Duration::from_millis(500);
const SECONDS: Duration = Duration::from_secs(4);
/// Fewest packets that a measure of the last moments needs.
const FEW: u64 = 400;
/// Packets of which a receiver has to tell before the ratio falls below the fixed one.
const PROOF: u64 = 1000;
/// Standard deviations by which the loss of the last moments must be above that of the last seconds.
const CLEARLY: f64 = 2.0;
/// The highest loss that is reckoned with.
const MOST_LOSS: f64 = 0.9;
/// Shortest time between two samples.
const GRAIN: Duration = Duration::from_millis(20);
/// Most receivers that are followed. The first that report are, until they are stale.
const MOST_RECEIVERS: usize = 16;
/// Rows beyond those that loss asks for, for each source packet, at full loss and one packet a second. The number of
/// lost packets that wait is a random walk, which goes up by chance and down by these rows; the time until all are
/// repaired grows as the loss over their square. Random loss of 5 % then delays one payload in a hundred by 40 ms.
const SPARE: f64 = 11.2;
/// Bounds of the packets a second for it: bursts on a fast stream need spare rows too, and a slow one has no line to
/// waste.
const SPEEDS: RangeInclusive<f64> = 800.0..=8000.0;
/// Repair packets a second of a slow stream, as long as the fixed ratio brings as many: they cost nothing there.
const EACH_SECOND: f64 = 20.0;
/// Time in which the ratio may bring rows that a report lacks.
const PATIENCE: f64 = 0.025;
/// Part of the upper bound's rows for a window that may be sent before the first packets have earned them.
const ADVANCE: f64 = 1.0 / 8.0;
/// Denominator of the ratios that are set.
const PARTS: f64 = 10_000.0;
/// A ratio that is nearer than this to the one in use is not set.
const NOTICEABLE: f64 = 0.05;

/// The bounds of a rate that follows the loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateBounds {
    least: Ratio,
    most: Ratio,
}

impl RateBounds {
    /// The largest upper bound: repair packets for a source packet.
    pub const MOST: u16 = 6;

    /// Bounds of the ratio; `None` if `least` is above `most`, or `most` above [`MOST`](Self::MOST).
    pub fn new(least: Ratio, most: Ratio) -> Option<RateBounds> {
        (share(least) <= share(most) && share(most) <= Self::MOST.into())
            .then_some(RateBounds { least, most })
    }

    /// The least ratio.
    pub fn least(&self) -> Ratio {
        self.least
    }

    /// The highest ratio, which rows on demand keep too, over a window.
    pub fn most(&self) -> Ratio {
        self.most
    }
}

impl Default for RateBounds {
    /// From one repair packet for 50 source packets to one for two.
    fn default() -> RateBounds {
        let ratio = |repair, source| Ratio::new(repair, source).expect("neither is 0");
        RateBounds { least: ratio(1, 50), most: ratio(1, 2) }
    }
}

/// Repair packets for a source packet.
fn share(ratio: Ratio) -> f64 {
    f64::from(ratio.repair()) / f64::from(ratio.source())
}

/// Packets that a sender has sent so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// Source packets.
    pub(super) packets: u64,
    /// Repair packets.
    pub(super) rows: u64,
    /// The first packet that rows cover.
    pub(super) start: u64,
}

/// The state of a receiver, as its reports tell.
#[derive(Debug)]
struct Receiver {
    id: u64,
    /// The way over which the newest report came.
    way: usize,
    came: Instant,
    report: Report,
    /// Packets that were expected and that came, at these times.
    samples: VecDeque<(Instant, u64, u64)>,
}

impl Receiver {
    /// The share of packets that was lost since the newest sample that is `ago` old and `few` packets back, or older,
    /// and the packets since then.
    fn loss_since(&self, ago: Duration, few: u64) -> (f64, f64) {
        let Some(&(now, expected, received)) = self.samples.back() else { return (0.0, 0.0) };
        let is_old = |(at, before, _): &&(Instant, u64, u64)| {
            now.saturating_duration_since(*at) >= ago && expected.saturating_sub(*before) >= few
        };
        let since = self.samples.iter().rev().find(is_old).or(self.samples.front());
        let (sent, came) = since.map_or((0, 0), |(_, before, then)| {
            (expected.saturating_sub(*before), received.saturating_sub(*then))
        });
        let lost = sent.saturating_sub(came) as f64;
        (if sent == 0 { 0.0 } else { lost / sent as f64 }, sent as f64)
    }

    /// The share of packets that is lost: that of the last seconds, or of the last moments if it is clearly higher.
    fn loss(&self) -> f64 {
        let ((moments, packets), (seconds, _)) = (self.loss_since(MOMENTS, FEW), self.loss_since(SECONDS, 0));
        let chance = CLEARLY * (seconds * (1.0 - seconds) / packets.max(1.0)).sqrt();
        if moments > seconds + chance { moments.min(MOST_LOSS) } else { seconds.min(MOST_LOSS) }
    }

    fn sample(&mut self, now: Instant) {
        let (expected, received) = (self.report.heard - self.report.begin, self.report.received);
        let is_soon = self.samples.back().is_some_and(|(at, ..)| now < *at + GRAIN);
        if self.samples.len() > 1 && is_soon {
            return;
        }
        self.samples.push_back((now, expected, received));
        while self.samples.get(1).is_some_and(|(at, ..)| *at + SECONDS <= now) {
            self.samples.pop_front();
        }
    }
}

/// Follows the loss that receivers report.
#[derive(Debug)]
pub(super) struct RateControl {
    /// The ratio as long as nobody reports.
    fixed: Ratio,
    bounds: RateBounds,
    window: f64,
    receivers: Vec<Receiver>,
    /// Rows that the upper bound allows now.
    allowance: f64,
    /// The packets and rows that the allowance knows of.
    noted: Progress,
    /// Packets sent, at these times of the last second.
    pace: VecDeque<(Instant, u64)>,
    /// The ratio in use.
    ratio: Ratio,
    /// Rows that were sent on demand.
    demanded: u64,
}

impl RateControl {
    /// A control that starts with the ratio `fixed`, for a window of this many packets.
    pub(super) fn new(fixed: Ratio, bounds: RateBounds, window: u32) -> RateControl {
        let allowance = share(bounds.most) * f64::from(window) * ADVANCE;
        RateControl {
            fixed,
            bounds,
            window: window.into(),
            receivers: Vec::new(),
            allowance,
            noted: Progress::default(),
            pace: VecDeque::new(),
            ratio: fixed,
            demanded: 0,
        }
    }

    /// Takes a report that came over the way with this number, and returns the rows to be sent for it at once.
    pub(super) fn take(&mut self, way: usize, report: &Report, sent: Progress, now: Instant) -> u64 {
        self.note(sent, now);
        let known = self.receivers.iter().position(|receiver| receiver.id == report.receiver);
        let at = match known {
            Some(at) => at,
            None => {
                self.receivers.retain(|receiver| now < receiver.came + STALE);
                if self.receivers.len() == MOST_RECEIVERS {
                    return 0;
                }
                let samples = VecDeque::new();
                let id = report.receiver;
                self.receivers.push(Receiver { id, way, came: now, report: *report, samples });
                self.receivers.len() - 1
            }
        };
        let receiver = &mut self.receivers[at];
        (receiver.way, receiver.came, receiver.report) = (way, now, *report);
        receiver.sample(now);
        let rows = self.rows_for(at, sent).min(self.allowance.max(0.0) as u64);
        self.demanded += rows;
        rows
    }

    /// Rows that a receiver lacks beyond those that are on their way or come soon.
    fn rows_for(&self, at: usize, sent: Progress) -> u64 {
        let receiver = &self.receivers[at];
        let report = &receiver.report;
        if report.lacking == 0 || report.heard <= sent.start {
            return 0;
        }
        let loss = receiver.loss();
        let mut lacking = f64::from(report.lacking);
        if report.oldest < sent.start {
            // No row covers these any more.
            let covered = (report.heard - sent.start) as f64 / (report.heard - report.oldest) as f64;
            lacking *= covered;
        }
        let packets_away = sent.packets.saturating_sub(report.heard) as f64;
        let rows_away = sent.rows.saturating_sub(report.rows) as f64;
        let need = lacking + packets_away * loss - rows_away * (1.0 - loss);
        let soon = self.per_second() * PATIENCE * (share(self.ratio) * (1.0 - loss) - loss).max(0.0);
        if need <= soon.max(0.5) {
            return 0;
        }
        (need / (1.0 - loss) + (need * loss).sqrt()).ceil() as u64 + 1
    }

    /// Source packets a second, of late.
    fn per_second(&self) -> f64 {
        match (self.pace.front(), self.pace.back()) {
            (Some((from, before)), Some((to, packets))) if to > from => {
                (packets - before) as f64 / (*to - *from).as_secs_f64()
            }
            _ => 0.0,
        }
    }

    /// Notes what was sent.
    fn note(&mut self, sent: Progress, now: Instant) {
        let most = share(self.bounds.most);
        let packets = sent.packets.saturating_sub(self.noted.packets);
        let rows = sent.rows.saturating_sub(self.noted.rows);
        self.allowance = (self.allowance + packets as f64 * most - rows as f64).min(most * self.window);
        self.noted = sent;
        if self.pace.back().is_none_or(|(at, _)| now >= *at + GRAIN) {
            self.pace.push_back((now, sent.packets));
        }
        while self.pace.len() > 2 && self.pace.front().is_some_and(|(at, _)| *at + STALE < now) {
            self.pace.pop_front();
        }
    }

    /// The ratio from now on, if it changes, of a stream over this many ways.
    pub(super) fn changed(&mut self, ways: usize, sent: Progress, now: Instant) -> Option<Ratio> {
        self.note(sent, now);
        let wanted = self.wanted(ways, now);
        let (wanted_share, used) = (share(wanted), share(self.ratio));
        let is_bound = wanted_share <= share(self.bounds.least) || wanted_share >= share(self.bounds.most);
        let is_near = (wanted_share - used).abs() < NOTICEABLE * used;
        if wanted == self.ratio || is_near && !is_bound {
            return None;
        }
        self.ratio = wanted;
        Some(wanted)
    }

    fn wanted(&self, ways: usize, now: Instant) -> Ratio {
        let live = || self.receivers.iter().filter(|receiver| now < receiver.came + STALE);
        let loss = live().map(Receiver::loss).fold(0.0, f64::max);
        let fixed = share(self.fixed);
        let (least, most) = (share(self.bounds.least), share(self.bounds.most));
        let slow = fixed.min(EACH_SECOND / self.per_second().max(1.0));
        let speed = self.per_second().clamp(*SPEEDS.start(), *SPEEDS.end());
        let spare = SPARE * (loss / speed).sqrt();
        let mut wanted = (loss / (1.0 - loss) + spare).max(slow).max(least);
        let is_proof = |receiver: &Receiver| receiver.report.heard - receiver.report.begin >= PROOF;
        let is_told = (0..ways).all(|way| live().any(|receiver| receiver.way == way));
        if !is_told || !live().all(is_proof) {
            // Somebody may be there who cannot tell, or not yet.
            if wanted <= fixed {
                return self.fixed;
            }
            wanted = wanted.max(fixed);
        }
        let parts = (wanted.min(most) * PARTS).round().max(1.0);
        Ratio::new(parts as u16, PARTS as u16).expect("neither is 0")
    }

    /// The ratio in use.
    pub(super) fn ratio(&self) -> Ratio {
        self.ratio
    }

    /// Rows that were sent on demand.
    pub(super) fn demanded(&self) -> u64 {
        self.demanded
    }

    /// Tells whether anybody reported of late.
    pub(super) fn is_heard(&self, now: Instant) -> bool {
        self.receivers.iter().any(|receiver| now < receiver.came + STALE)
    }

    /// Tells whether all receivers that reported of late have all of `packets` packets, or have given up the others.
    pub(super) fn is_settled(&self, packets: u64, now: Instant) -> bool {
        let mut live = self.receivers.iter().filter(|receiver| now < receiver.came + STALE);
        live.all(|receiver| receiver.report.heard >= packets && receiver.report.oldest >= packets)
    }

    /// The newest reports, the most recent last.
    pub(super) fn reports(&self) -> impl Iterator<Item = &Report> {
        self.receivers.iter().map(|receiver| &receiver.report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn ratio(repair: u16, source: u16) -> Ratio {
        Ratio::new(repair, source).expect("neither is 0")
    }

    /// A control, and the times and numbers of a stream of 2000 packets a second.
    struct Tried {
        control: RateControl,
        start: Instant,
        sent: Progress,
        number: u64,
    }

    impl Tried {
        fn new(bounds: RateBounds) -> Tried {
            let control = RateControl::new(ratio(1, 6), bounds, 6000);
            Tried { control, start: Instant::now(), sent: Progress::default(), number: 0 }
        }

        fn now(&self) -> Instant {
            self.start + Duration::from_micros(self.sent.packets * 500)
        }

        fn report(&mut self, receiver: u64, received: u64) -> Report {
            self.number += 1;
            let heard = self.sent.packets;
            let (number, rows) = (self.number, self.sent.rows);
            Report { receiver, number, heard, oldest: heard, received, rows, ..Report::default() }
        }

        /// Sends for so long; of each 1000 packets `lost` are lost, and reports come every 100 ms if `reports`.
        fn runs(&mut self, seconds: f64, lost: u64, reports: bool) -> f64 {
            let mut missing = self.sent.packets - self.received();
            for _ in 0..(seconds * 10.0) as u64 {
                self.sent.packets += 200;
                missing += lost / 5;
                if reports {
                    let report = self.report(1, self.sent.packets - missing);
                    assert_eq!(self.control.take(0, &report, self.sent, self.now()), 0, "nothing is lacking");
                }
                let _ = self.control.changed(1, self.sent, self.now());
            }
            share(self.control.ratio())
        }

        fn received(&self) -> u64 {
            self.control.reports().map(|report| report.received).max().unwrap_or(0)
        }
    }

    #[test]
    fn the_ratio_follows_the_loss_within_a_second_and_within_its_bounds() {
        let mut tried = Tried::new(RateBounds::default());
        assert_eq!(tried.runs(1.0, 0, false), 1.0 / 6.0, "nobody reports");
        let calm = tried.runs(5.0, 0, true);
        assert_eq!(calm, 1.0 / 50.0);
        let risen = tried.runs(1.0, 100, true);
        assert!((0.15..0.25).contains(&risen), "{risen}");
        let settled = tried.runs(6.0, 100, true);
        assert!((0.19..0.23).contains(&settled), "{settled}");
        assert_eq!(tried.runs(6.0, 500, true), 0.5, "the upper bound");
        assert_eq!(tried.runs(10.0, 0, true), 1.0 / 50.0);
        let mut narrow = Tried::new(RateBounds::new(ratio(1, 8), ratio(1, 7)).expect("they fit"));
        assert_eq!(narrow.runs(5.0, 0, true), 0.125);
        assert!((narrow.runs(5.0, 300, true) - 1.0 / 7.0).abs() < 1e-3);
    }

    #[test]
    fn without_reports_the_ratio_is_at_least_the_fixed_one() {
        let mut tried = Tried::new(RateBounds::default());
        assert_eq!(tried.runs(5.0, 0, true), 1.0 / 50.0);
        assert_eq!(tried.runs(1.5, 0, false), 1.0 / 6.0);
        // A receiver at the other way does not tell.
        let report = tried.report(1, tried.sent.packets);
        let (sent, now) = (tried.sent, tried.now());
        tried.control.take(1, &report, sent, now);
        assert_eq!(tried.control.wanted(2, now), ratio(1, 6));
        let report = tried.report(2, tried.sent.packets);
        tried.control.take(0, &report, sent, now);
        assert!(share(tried.control.wanted(2, now)) < 0.1);
        assert_eq!(tried.control.wanted(3, now), ratio(1, 6));
    }

    /// A stream of few packets gets as many rows as the fixed ratio has: they are few too.
    #[test]
    fn a_slow_stream_is_no_worse_off_than_with_the_fixed_ratio() {
        let mut tried = Tried::new(RateBounds::default());
        for second in 0..10 {
            let now = tried.start + second * 1000 * MS;
            tried.sent.packets += 50;
            let report = tried.report(1, tried.sent.packets);
            tried.control.take(0, &report, tried.sent, now);
            let _ = tried.control.changed(1, tried.sent, now);
            assert!((share(tried.control.ratio()) - 1.0 / 6.0).abs() < 1e-3, "{second}");
        }
    }

    #[test]
    fn what_a_report_lacks_beyond_what_comes_is_sent_at_once() {
        let mut tried = Tried::new(RateBounds::default());
        tried.runs(5.0, 0, true);
        let lacking = |tried: &mut Tried, lacking: u32, behind: u64, rows_away: u64| {
            tried.number += 1;
            let rows = tried.sent.rows - rows_away;
            let heard = tried.sent.packets - behind;
            let oldest = heard - u64::from(lacking);
            let report = Report {
                receiver: 1,
                number: tried.number,
                heard,
                received: heard - 60,
                oldest,
                rows,
                lacking,
                ..Report::default()
            };
            tried.control.take(0, &report, tried.sent, tried.now())
        };
        tried.sent.rows = 100;
        let asked = lacking(&mut tried, 30, 100, 2);
        assert!((27..=34).contains(&asked), "{asked} for 30, of which 2 are on their way");
        tried.sent.rows += asked;
        assert_eq!(lacking(&mut tried, 30, 100, asked + 2), 0, "they are on their way");
        assert_eq!(lacking(&mut tried, 30, 50, 40), 0);
        // Rows that were lost are sent again.
        assert!(lacking(&mut tried, 30, 50, 10) >= 18);
        // No row covers what is before the window.
        tried.sent.start = tried.sent.packets - 10;
        assert_eq!(lacking(&mut tried, 30, 10, 0), 0);
    }

    /// A flood of reports that lack everything gets no more rows than the upper bound has for a window.
    #[test]
    fn no_report_moves_the_upper_bound() {
        let mut tried = Tried::new(RateBounds::default());
        tried.sent.packets = 10_000;
        let mut rows = 0;
        for receiver in 0..1000 {
            tried.sent.packets += 2;
            let heard = tried.sent.packets;
            let report = Report { receiver, lacking: 65_536, heard, rows: 0, number: 1, ..Report::default() };
            let asked = tried.control.take(0, &report, tried.sent, tried.now());
            (rows, tried.sent.rows) = (rows + asked, tried.sent.rows + asked);
            let _ = tried.control.changed(1, tried.sent, tried.now());
        }
        assert!(rows <= 3000 + 1000, "{rows}");
        assert!(tried.control.receivers.len() <= MOST_RECEIVERS);
        assert!(share(tried.control.ratio()) <= 0.5);
    }

    #[test]
    fn bounds_are_in_order() {
        assert!(RateBounds::new(ratio(1, 6), ratio(1, 6)).is_some());
        assert!(RateBounds::new(ratio(1, 5), ratio(1, 6)).is_none());
        assert!(RateBounds::new(ratio(1, 6), ratio(6, 1)).is_some());
        assert!(RateBounds::new(ratio(1, 6), ratio(7, 1)).is_none());
    }
}

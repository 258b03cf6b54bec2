//! A sender's conversation with its receivers: calls go out, reports come in, and the ratio follows them.

use super::calls::Calls;
use super::rate::{Progress, RateBounds, RateControl};
use super::seal::ReportOpener;
use fec_base::io::system::since_1970;
use fec_core::format::packet::Parameters;
use fec_core::format::report::Report;
use fec_core::window::{Encoder, Ratio};
use std::time::{Duration, Instant};

/// Shortest time between two looks for reports, while packets are sent.
const LOOK: Duration = Duration::from_millis(1);
/// Time between two looks while the input gives nothing, if anybody reports.
const HEED: Duration = Duration::from_millis(10);

/// The wish for reports.
pub(super) struct Wanted {
    /// The ratio as long as nobody reports.
    pub(super) fixed: Ratio,
    pub(super) bounds: RateBounds,
    /// The random number that reports have to name.
    pub(super) token: u64,
    /// The opening of reports, if they must be sealed.
    pub(super) opener: Option<ReportOpener>,
}

/// The conversation of one stream.
pub(super) struct Feedback {
    calls: Calls,
    control: RateControl,
    ways: usize,
    looked: Option<Instant>,
    /// Rows that the reports of this look asked for.
    extra: u64,
    /// The clocks of receivers ahead of this machine's, in microseconds, by their numbers.
    clocks: Vec<(u64, i64)>,
}

/// The outcome of calling for reports.
#[derive(Clone, Debug)]
pub struct FeedbackOutcome {
    /// Calls for reports.
    pub calls: u64,
    /// Reports that counted.
    pub reports: u64,
    /// Datagrams that came from where packets went, and were no reports that count.
    pub refused: u64,
    /// Repair packets that were sent because a report lacked them.
    pub demanded: u64,
    /// The ratio in the end.
    pub ratio: Ratio,
    /// The last measured time from this sender to a receiver and back.
    pub round_trip: Option<Duration>,
    /// The receivers that reported in the end.
    pub receivers: Vec<ReceiverOutcome>,
}

/// The last report of a receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReceiverOutcome {
    /// The random number of the receiver.
    pub receiver: u64,
    /// The share of source packets that did not come.
    pub loss_before: f64,
    /// Source packets that were lost for good.
    pub lost: u64,
    /// Runs of source packets that did not come, and the packets of the longest.
    pub bursts: u32,
    /// Source packets of the longest of them.
    pub longest_burst: u32,
    /// The time that 99 of 100 payloads did not exceed in waiting for packets before them or their own repair.
    pub delay: Duration,
    /// Microseconds by which the receiver's clock is ahead, as exactly as half the round trip.
    pub clock_ahead: i64,
}

impl Feedback {
    /// A conversation over this many ways.
    pub(super) fn new(wanted: Wanted, parameters: Parameters, ways: usize, now: Instant) -> Feedback {
        let Wanted { fixed, bounds, token, opener } = wanted;
        Feedback {
            calls: Calls::new(parameters, opener, token, now),
            control: RateControl::new(fixed, bounds, parameters.window),
            ways,
            looked: None,
            extra: 0,
            clocks: Vec::new(),
        }
    }

    /// Tells whether it is time to look for reports.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.looked.is_none_or(|looked| now >= looked + LOOK)
    }

    /// The time at which a sender without input looks for reports.
    pub(super) fn next(&self) -> Instant {
        let call = self.calls.next();
        let heed = self.looked.filter(|looked| self.control.is_heard(*looked)).map(|looked| looked + HEED);
        heed.map_or(call, |heed| heed.min(call))
    }

    /// Takes a datagram that came back over the way with this number.
    pub(super) fn take(&mut self, way: usize, datagram: &mut [u8], encoder: &Encoder, now: Instant) {
        let Some(report) = self.calls.take(datagram, now) else { return };
        let mut sent = progress(encoder);
        // Rows for the reports before are as good as sent.
        sent.rows += self.extra;
        self.extra += self.control.take(way, &report, sent, now);
        self.note_clock(&report);
    }

    fn note_clock(&mut self, report: &Report) {
        let here = since_1970().as_micros() as i64;
        let half = self.calls.round_trip().map_or(0, |round_trip| round_trip.as_micros() as i64 / 2);
        let ahead = (report.clock.min(i64::MAX as u64 / 2) as i64) + half - here;
        self.clocks.retain(|(receiver, _)| *receiver != report.receiver);
        if self.clocks.len() == MOST_CLOCKS {
            self.clocks.remove(0);
        }
        self.clocks.push((report.receiver, ahead));
    }

    /// The answer to the reports of this look: rows to be sent at once, a call that is due, and a new ratio.
    pub(super) fn answer(
        &mut self,
        encoder: &Encoder,
        now: Instant,
    ) -> (u64, Option<Vec<u8>>, Option<Ratio>) {
        self.looked = Some(now);
        let extra = std::mem::take(&mut self.extra);
        let ratio = self.control.changed(self.ways, progress(encoder), now);
        // A receiver knows no stream before its first packet.
        let call = if encoder.sent() > 0 { self.calls.due(now) } else { None };
        (extra, call, ratio)
    }

    /// Tells whether nobody who reports waits for any of `packets` packets.
    pub(super) fn is_settled(&self, packets: u64, now: Instant) -> bool {
        self.control.is_settled(packets, now)
    }

    /// The outcome until now.
    pub(super) fn outcome(&self) -> FeedbackOutcome {
        let (calls, reports, refused) = self.calls.counts();
        let receiver = |report: &Report| {
            let expected = report.heard - report.begin;
            let missing = expected - report.received;
            let clock = self.clocks.iter().find(|(receiver, _)| *receiver == report.receiver);
            ReceiverOutcome {
                receiver: report.receiver,
                loss_before: if expected == 0 { 0.0 } else { missing as f64 / expected as f64 },
                lost: report.lost,
                bursts: report.bursts,
                longest_burst: report.longest,
                delay: Duration::from_micros(report.delay.into()),
                clock_ahead: clock.map_or(0, |(_, ahead)| *ahead),
            }
        };
        FeedbackOutcome {
            calls,
            reports,
            refused,
            demanded: self.control.demanded(),
            ratio: self.control.ratio(),
            round_trip: self.calls.round_trip(),
            receivers: self.control.reports().map(receiver).collect(),
        }
    }
}

/// Most receivers whose clocks are known.
const MOST_CLOCKS: usize = 16;

/// The packets that an encoder has made.
fn progress(encoder: &Encoder) -> Progress {
    Progress { packets: encoder.sent(), rows: encoder.repaired(), start: encoder.covers_from() }
}

//! A sender's calls for reports, and the reports that answer them (format specification, section 13.4).
//!
//! A report counts that comes from where the packets go, names the token of the calls, and is newer than the last one
//! of its receiver; of a sealed stream, one that is sealed with the receiver's own key. Nothing here has a clock or a
//! socket.

use super::seal::ReportOpener;
use fec_core::format::packet::Parameters;
use fec_core::format::report::{self, Call, Control, MOST_ANSWERS, Report};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Interval of calls while nobody has answered, and the number of them.
const SEARCH: Duration = Duration::from_millis(100);
const SEARCHES: u64 = 20;
/// Interval of calls otherwise.
const KEEP_UP: Duration = Duration::from_secs(1);
/// Shortest time between calls that answer new receivers.
const SOON: Duration = Duration::from_millis(20);
/// Most receivers whose reports are told apart.
const MOST_RECEIVERS: usize = 64;

/// Most challenges that are known to be answered.
const MOST_ANSWERED: usize = 64;

/// A receiver that has reported.
#[derive(Debug)]
struct Known {
    id: u64,
    /// The number of its newest report.
    newest: u64,
}

/// The calls of one stream, and the answers to them.
pub(super) struct Calls {
    parameters: Parameters,
    opener: Option<ReportOpener>,
    token: u64,
    number: u64,
    started: Instant,
    called: Option<Instant>,
    /// The receivers, the one that reported last at the end.
    known: Vec<Known>,
    /// Challenges that the next call answers.
    challenges: VecDeque<u64>,
    /// Challenges that were answered once, the newest last.
    answered: VecDeque<u64>,
    /// True if a challenge waits for its first answer.
    is_new: bool,
    accepted: u64,
    refused: u64,
    /// Round trip of the last report that told it.
    round_trip: Option<Duration>,
}

impl Calls {
    /// Calls of a stream of these parameters, with a random `token` that is not 0. `opener` opens sealed reports; with
    /// one, others are refused.
    pub(super) fn new(
        parameters: Parameters,
        opener: Option<ReportOpener>,
        token: u64,
        now: Instant,
    ) -> Calls {
        Calls {
            parameters,
            opener,
            token,
            number: 0,
            started: now,
            called: None,
            known: Vec::new(),
            challenges: VecDeque::new(),
            answered: VecDeque::new(),
            is_new: false,
            accepted: 0,
            refused: 0,
            round_trip: None,
        }
    }

    /// The time of the next call.
    pub(super) fn next(&self) -> Instant {
        let Some(called) = self.called else { return self.started };
        let is_searching = self.accepted == 0 && self.number <= SEARCHES;
        called
            + if self.is_new {
                SOON
            } else if is_searching {
                SEARCH
            } else {
                KEEP_UP
            }
    }

    /// The call that is due, if one is.
    pub(super) fn due(&mut self, now: Instant) -> Option<Vec<u8>> {
        if now < self.next() {
            return None;
        }
        self.number += 1;
        (self.called, self.is_new) = (Some(now), false);
        let time = now.saturating_duration_since(self.started).as_micros() as u64;
        let answers = self.challenges.drain(..).collect();
        Some(Call { number: self.number, time, token: self.token, answers }.to_bytes(&self.parameters))
    }

    /// Takes a datagram that came from where packets go. Returns the report in it, if it counts.
    pub(super) fn take(&mut self, datagram: &mut [u8], now: Instant) -> Option<Report> {
        let report = self.open(datagram);
        match &report {
            Some(report) => {
                self.accepted += 1;
                self.answer(report.challenge);
                self.measure(report, now);
            }
            None => self.refused += 1,
        }
        report
    }

    fn open(&mut self, datagram: &mut [u8]) -> Option<Report> {
        let plain = match &mut self.opener {
            Some(opener) => opener.open(datagram)?,
            None => datagram,
        };
        let (parameters, control) = report::parse(plain).ok()?;
        let Control::Report(report) = control else { return None };
        if parameters != self.parameters || report.token != self.token {
            return None;
        }
        let newest = Known { id: report.receiver, newest: report.number };
        match self.known.iter().position(|known| known.id == report.receiver) {
            Some(at) if self.known[at].newest >= report.number => return None,
            Some(at) => drop(self.known.remove(at)),
            None if self.known.len() == MOST_RECEIVERS => drop(self.known.remove(0)),
            None => {}
        }
        self.known.push(newest);
        Some(report)
    }

    /// Keeps a challenge for the next call, which comes soon if the challenge is a new one.
    fn answer(&mut self, challenge: u64) {
        push_new(&mut self.challenges, challenge, MOST_ANSWERS);
        self.is_new |= push_new(&mut self.answered, challenge, MOST_ANSWERED);
    }

    /// Takes the round trip from a report, if it answers a call.
    fn measure(&mut self, report: &Report, now: Instant) {
        let since = now.saturating_duration_since(self.started);
        let away = Duration::from_micros(report.time).checked_add(Duration::from_micros(report.held.into()));
        if let Some(round_trip) = away.and_then(|away| since.checked_sub(away)) {
            self.round_trip = Some(round_trip);
        }
    }

    /// Calls, reports that counted, and datagrams that did not.
    pub(super) fn counts(&self) -> (u64, u64, u64) {
        (self.number, self.accepted, self.refused)
    }

    /// The time from a call to its report, less the time that the receiver kept it.
    pub(super) fn round_trip(&self) -> Option<Duration> {
        self.round_trip
    }
}

/// Adds a number to the end of a list of at most `most`, unless it is there. Returns whether it was not.
fn push_new(list: &mut VecDeque<u64>, number: u64, most: usize) -> bool {
    if list.contains(&number) {
        return false;
    }
    if list.len() == most {
        list.pop_front();
    }
    list.push_back(number);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use fec_core::format::packet::Profile;

    const MS: Duration = Duration::from_millis(1);

    fn parameters(stream_id: u64) -> Parameters {
        Parameters { profile: Profile::Bounded, stream_id, window: 600, payload: 100, block: 60 }
    }

    fn report(number: u64) -> Report {
        Report { receiver: 3, token: 7, challenge: 9, number, heard: 50, oldest: 50, ..Report::default() }
    }

    fn call(bytes: &[u8]) -> Call {
        match report::parse(bytes) {
            Ok((_, Control::Call(call))) => call,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_new_reports_with_the_token_of_this_stream_count() {
        let now = Instant::now();
        let mut calls = Calls::new(parameters(5), None, 7, now);
        let mut take = |report: Report, stream_id: u64| {
            calls.take(&mut report.to_bytes(&parameters(stream_id)), now).is_some()
        };
        assert!(take(report(5), 5));
        assert!(!take(report(5), 5) && !take(report(4), 5), "it came before");
        assert!(take(Report { receiver: 4, ..report(4) }, 5), "another receiver counts for itself");
        assert!(!take(report(6), 6), "another stream");
        assert!(!take(Report { token: 8, ..report(6) }, 5), "another sender's token");
        assert!(take(report(6), 5));
        for bytes in [&b""[..], b"x", &[0; 200], &report(9).to_bytes(&parameters(5))[..143]] {
            assert!(calls.take(&mut bytes.to_vec(), now).is_none());
        }
        let mut own = calls.due(now).expect("a call");
        assert!(calls.take(&mut own, now).is_none(), "a call is no report");
        assert_eq!(calls.counts(), (1, 3, 9));
    }

    /// Reports that a stranger recorded do not pass when many receivers came in between, each of which counts.
    #[test]
    fn many_receivers_are_told_apart_in_bounded_memory() {
        let now = Instant::now();
        let mut calls = Calls::new(parameters(5), None, 7, now);
        for receiver in 0..500 {
            let mut of = Report { receiver, challenge: receiver + 1, ..report(1) }.to_bytes(&parameters(5));
            assert!(calls.take(&mut of, now).is_some() && calls.take(&mut of, now).is_none());
        }
        assert_eq!((calls.known.len(), calls.answered.len()), (MOST_RECEIVERS, MOST_ANSWERED));
        assert_eq!(call(&calls.due(now).expect("a call")).answers, [497, 498, 499, 500]);
    }

    #[test]
    fn calls_come_often_until_somebody_answers_and_soon_for_somebody_new() {
        let start = Instant::now();
        let mut calls = Calls::new(parameters(5), None, 7, start);
        let times = |until: Duration, calls: &mut Calls| {
            let mut count = 0;
            let mut at = start;
            while calls.next() <= start + until {
                at = at.max(calls.next());
                count += u32::from(calls.due(at).is_some());
                assert!(calls.due(at).is_none(), "one at a time");
            }
            count
        };
        assert_eq!(times(1000 * MS, &mut calls), 11);
        let now = start + 1050 * MS;
        assert!(calls.take(&mut report(1).to_bytes(&parameters(5)), now).is_some());
        let bytes = calls.due(now).expect("it is new");
        assert_eq!((call(&bytes).answers, call(&bytes).time), (vec![9], 1_050_000));
        assert_eq!(times(4050 * MS, &mut calls), 3, "one a second");
        assert!(calls.take(&mut report(2).to_bytes(&parameters(5)), start + 4060 * MS).is_some());
        assert!(calls.due(start + 4080 * MS).is_none(), "it was answered");
        assert_eq!(call(&calls.due(start + 5100 * MS).expect("a call")).answers, [9], "and is again");
    }

    #[test]
    fn the_round_trip_leaves_out_what_the_receiver_waited() {
        let start = Instant::now();
        let mut calls = Calls::new(parameters(5), None, 7, start);
        let mut took = |time: u64, held: u32, number: u64| {
            let report = Report { time, held, ..report(number) };
            assert!(calls.take(&mut report.to_bytes(&parameters(5)), start + 500 * MS).is_some());
            calls.round_trip()
        };
        assert_eq!(took(u64::MAX, 0, 1), None, "from the future");
        assert_eq!(took(300_000, 150_000, 2), Some(50 * MS));
        assert_eq!(took(300_000, 250_000, 3), Some(50 * MS), "impossible");
    }
}

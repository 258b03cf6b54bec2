//! A receiver's reports to the senders that call for them (format specification, section 13.4).
//!
//! A report goes only to an address that packets of the stream and a call came from, from the address that the call
//! came to. Until that address has proved by the report's challenge that it receives, it gets one report a second;
//! always it gets fewer bytes than came from it. Nothing here has a clock or a socket.

use super::chunk::Arrival;
use super::seal::Sealer;
use fec_core::format::packet::Parameters;
use fec_core::format::report::{Call, REPORT, Report};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Interval of reports while nothing is missing, and while something is.
const QUIET: Duration = Duration::from_millis(100);
const LACKING: Duration = Duration::from_millis(40);
/// Shortest time between reports, when more is missing than before.
const URGENT: Duration = Duration::from_millis(10);
/// Interval of reports to an address that has not proved that it receives.
const UNPROVED: Duration = Duration::from_secs(1);
/// Time for which a proof lasts. Each call may renew it.
const PROVED: Duration = Duration::from_secs(5);
/// Time after which an address without calls makes room for another.
const SILENT: Duration = Duration::from_secs(10);
/// Most addresses that reports go to: the ways of a sender.
const MOST_PEERS: usize = 8;
/// Bytes that must come for each byte of a report.
const FOR_EACH_BYTE: u64 = 2;
/// Reports for which bytes are saved up: a receiver has to ask after the end too, when little comes.
const SAVED: u64 = 100;
/// Bytes of a report that is sealed, with headers of UDP and IPv6.
const REPORT_BYTES: u64 = REPORT as u64 + 24 + 48;
/// Bytes that a report takes of those that came.
const PRICE: u64 = FOR_EACH_BYTE * REPORT_BYTES;
/// Time for which a packet may only be late, before a report says that it is lacking.
const LATE: Duration = Duration::from_millis(8);

/// A number for identification, or a challenge, at random and not 0.
pub(super) type Draw<'a> = &'a mut dyn FnMut() -> u64;

/// The state of a stream, of which a report tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    /// Rows that lost packets wait for.
    pub(super) lacking: u64,
    pub(super) begin: u64,
    pub(super) heard: u64,
    pub(super) received: u64,
    pub(super) rows: u64,
    pub(super) oldest: u64,
    pub(super) lost: u64,
    pub(super) bursts: u64,
    pub(super) longest: u64,
    /// True if the stream has ended, and all of it was given out or named as lost.
    pub(super) is_over: bool,
}

/// A sender's address.
#[derive(Debug)]
struct Peer {
    at: Arrival,
    /// The newest call, and the time at which it came.
    call: (u64, u64),
    token: u64,
    came: Instant,
    challenge: u64,
    /// Time of the last proof that the address receives.
    proved: Option<Instant>,
    /// Bytes that came and were not answered yet.
    credit: u64,
    reported: Option<Instant>,
    /// The rows that the last report lacked.
    told: u64,
    /// True if the last report told that the stream is over.
    told_over: bool,
}

impl Peer {
    fn earn(&mut self, bytes: u64) {
        self.credit = (self.credit + bytes.min(SAVED * PRICE)).min(SAVED * PRICE);
    }

    fn is_proved(&self, now: Instant) -> bool {
        self.proved.is_some_and(|at| now < at + PROVED)
    }

    /// The time of the next report, if the stream's state stays so.
    fn next(&self, lacking: u64, is_over: bool, now: Instant) -> Option<Instant> {
        if self.credit < PRICE {
            return None;
        }
        let Some(reported) = self.reported else { return Some(now) };
        let interval = match lacking {
            _ if !self.is_proved(now) => UNPROVED,
            _ if is_over && !self.told_over => Duration::ZERO,
            0 => QUIET,
            more if more > self.told => URGENT,
            _ => LACKING,
        };
        Some(reported + interval)
    }
}

/// The least of a number in the last moments.
#[derive(Debug, Default)]
struct Least {
    last: u64,
    /// The least of the span that runs, and of the one before.
    spans: [u64; 2],
    since: Option<Instant>,
}

impl Least {
    fn note(&mut self, number: u64, now: Instant) {
        match self.since {
            Some(since) if now < since + LATE => {}
            Some(since) if now < since + 2 * LATE => {
                self.spans = [self.last, self.spans[0]];
                self.since = Some(since + LATE);
            }
            _ => {
                self.spans = [self.last; 2];
                self.since = Some(now);
            }
        }
        self.spans[0] = self.spans[0].min(number);
        self.last = number;
    }

    /// The least number since one or two spans ago.
    fn get(&self) -> u64 {
        self.spans[0].min(self.spans[1])
    }

    /// The time at which the number that was noted last counts, if it is higher.
    fn rises(&self) -> Option<Instant> {
        self.since.filter(|_| self.last > self.get()).map(|since| since + 2 * LATE)
    }
}

/// Writes the reports on one stream.
pub(super) struct Reporter {
    receiver: u64,
    number: u64,
    peers: Vec<Peer>,
    /// The addresses that packets of the stream came from, the latest first.
    sources: VecDeque<SocketAddr>,
    /// The sealing of reports; `None` as long as the stream is not sealed.
    sealer: Option<Sealer>,
    lacking: Least,
    state: State,
    /// The time that 99 of 100 payloads did not exceed in waiting.
    delay: Duration,
    sent: u64,
}

impl Reporter {
    /// A reporter that knows no sender.
    pub(super) fn new(draw: Draw<'_>) -> Reporter {
        Reporter {
            receiver: draw() >> 1,
            number: 0,
            peers: Vec::new(),
            sources: VecDeque::new(),
            sealer: None,
            lacking: Least::default(),
            state: State::default(),
            delay: Duration::ZERO,
            sent: 0,
        }
    }

    /// Seals the reports from now on, as the calls are sealed.
    pub(super) fn seal_with(&mut self, make: impl FnOnce(u64) -> Option<Sealer>) {
        if self.sealer.is_none() {
            self.sealer = make(self.receiver);
        }
    }

    /// Notes that packets of the stream came, of this many bytes in all.
    pub(super) fn hear(&mut self, from: SocketAddr, bytes: u64) {
        if self.sources.front() != Some(&from) {
            self.sources.retain(|source| *source != from);
            self.sources.truncate(MOST_PEERS - 1);
            self.sources.push_front(from);
        }
        if let Some(peer) = self.peers.iter_mut().find(|peer| peer.at.from == from) {
            peer.earn(bytes);
        }
    }

    /// Takes a call of the stream, in a packet of this many bytes. Calls from where no packet of the stream came do not
    /// count.
    pub(super) fn take(&mut self, at: &Arrival, call: &Call, bytes: u64, now: Instant, draw: Draw<'_>) {
        let known = self.peers.iter().position(|peer| peer.at.from == at.from);
        let peer = match known {
            Some(known) => &mut self.peers[known],
            None if !self.sources.contains(&at.from) => return,
            None => {
                self.peers.retain(|peer| now < peer.came + SILENT);
                if self.peers.len() == MOST_PEERS {
                    return;
                }
                self.peers.push(Peer {
                    at: *at,
                    call: (0, 0),
                    token: 0,
                    came: now,
                    challenge: draw(),
                    proved: None,
                    credit: 0,
                    reported: None,
                    told: 0,
                    told_over: false,
                });
                self.peers.last_mut().expect("one was added")
            }
        };
        peer.earn(bytes);
        if call.answers.contains(&peer.challenge) {
            peer.proved = Some(now);
        }
        // A call that was overtaken, or is repeated by somebody, is no news.
        if peer.token == 0 || call.number > peer.call.0 {
            (peer.call, peer.token, peer.came, peer.at) = ((call.number, call.time), call.token, now, *at);
        }
    }

    /// Notes the state of the stream.
    pub(super) fn note(&mut self, state: State, now: Instant) {
        self.lacking.note(state.lacking, now);
        self.state = state;
    }

    /// Notes the time that 99 of 100 payloads did not exceed in waiting.
    pub(super) fn note_delay(&mut self, delay: Duration) {
        self.delay = delay;
    }

    /// The time of the next report, if nothing changes; `None` if there is none to come.
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        let (lacking, is_over) = (self.lacking.get(), self.state.is_over);
        let next = self.peers.iter().filter_map(|peer| peer.next(lacking, is_over, now)).min()?;
        // More may be lacking soon than is known by now.
        Some(self.lacking.rises().map_or(next, |rises| next.min(rises.max(now + Duration::from_millis(1)))))
    }

    /// Hands the reports that are due to `send`, each with the address that it goes to.
    pub(super) fn send_due(
        &mut self,
        parameters: &Parameters,
        now: Instant,
        clock: Duration,
        mut send: impl FnMut(&Arrival, &[u8]),
    ) {
        self.lacking.note(self.state.lacking, now);
        let (lacking, is_over) = (self.lacking.get(), self.state.is_over);
        for peer in &mut self.peers {
            if peer.next(lacking, is_over, now).is_none_or(|at| at > now) {
                continue;
            }
            peer.credit -= PRICE;
            peer.reported = Some(now);
            (peer.told, peer.told_over) = (lacking, is_over);
            let state = &self.state;
            let short = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
            self.number += 1;
            let report = Report {
                receiver: self.receiver,
                token: peer.token,
                challenge: peer.challenge,
                number: self.number,
                time: peer.call.1,
                held: short(now.saturating_duration_since(peer.came).as_micros() as u64),
                lacking: lacking.min(parameters.window.into()) as u32,
                clock: clock.as_micros() as u64,
                begin: state.begin,
                heard: state.heard,
                received: state.received.min(state.heard - state.begin),
                rows: state.rows,
                oldest: state.oldest.clamp(state.begin, state.heard),
                lost: state.lost.min(state.heard),
                bursts: short(state.bursts),
                longest: short(state.longest),
                delay: short(self.delay.as_micros() as u64),
            };
            let bytes = report.to_bytes(parameters);
            self.sent += 1;
            match &mut self.sealer {
                Some(sealer) => send(&peer.at, sealer.seal(&bytes)),
                None => send(&peer.at, &bytes),
            }
        }
    }

    /// Tells whether a sender is known to get the reports.
    pub(super) fn is_heard(&self, now: Instant) -> bool {
        self.peers.iter().any(|peer| peer.is_proved(now))
    }

    /// Reports so far.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fec_core::format::packet::Profile;
    use fec_core::format::report::{self, Control};

    const MS: Duration = Duration::from_millis(1);
    const PARAMETERS: Parameters =
        Parameters { profile: Profile::Bounded, stream_id: 5, window: 600, payload: 100, block: 60 };
    const STATE: State = State {
        lacking: 0,
        begin: 0,
        heard: 100,
        received: 90,
        rows: 3,
        oldest: 100,
        lost: 10,
        bursts: 2,
        longest: 7,
        is_over: false,
    };

    fn arrival(port: u16) -> Arrival {
        Arrival { from: ([127, 0, 0, 1], port).into(), to: None, at: None }
    }

    /// A reporter whose challenges are 2, 3, … .
    struct Tried {
        reporter: Reporter,
        drawn: u64,
        start: Instant,
    }

    impl Tried {
        fn new() -> Tried {
            let start = Instant::now();
            Tried { reporter: Reporter::new(&mut || 1), drawn: 1, start }
        }

        fn call(&mut self, port: u16, number: u64, answers: &[u64], at: Duration) {
            // A packet of the stream came from there.
            self.reporter.hear(arrival(port).from, 0);
            let call = Call { number, time: 10 * number, token: 70 + number, answers: answers.to_vec() };
            let drawn = &mut self.drawn;
            let mut draw = || {
                *drawn += 1;
                *drawn
            };
            self.reporter.take(&arrival(port), &call, 56, self.start + at, &mut draw);
        }

        /// The ports and reports that are sent at a time, at which the stream is in this state.
        fn sent(&mut self, state: State, at: Duration) -> Vec<(u16, Report)> {
            self.reporter.note(state, self.start + at);
            let mut sent = Vec::new();
            self.reporter.send_due(&PARAMETERS, self.start + at, Duration::from_micros(77), |to, bytes| {
                match report::parse(bytes) {
                    Ok((parameters, Control::Report(report))) => {
                        assert_eq!(parameters, PARAMETERS);
                        sent.push((to.from.port(), report));
                    }
                    other => panic!("{other:?}"),
                }
            });
            sent
        }

        /// Times in milliseconds, up to `until`, at which reports go out while packets come.
        fn times(&mut self, state: State, from: u64, until: u64) -> Vec<u64> {
            let at = |ms: u64| Duration::from_millis(ms);
            let mut times = Vec::new();
            for ms in from..until {
                self.reporter.hear(arrival(9).from, 1350);
                times.extend(self.sent(state, at(ms)).iter().map(|_| ms));
            }
            times
        }
    }

    #[test]
    fn nobody_gets_a_report_who_did_not_call_or_sent_less_than_twice_of_it() {
        let mut tried = Tried::new();
        let call = Call { number: 1, token: 1, ..Call::default() };
        tried.reporter.take(&arrival(9), &call, 100_000, tried.start, &mut || 1);
        assert!(tried.sent(STATE, MS).is_empty(), "no packet came from there");
        tried.reporter.hear(arrival(9).from, 100_000);
        assert!(tried.sent(STATE, MS).is_empty(), "there was no call");
        tried.call(9, 1, &[], 2 * MS);
        assert!(tried.sent(STATE, 3 * MS).is_empty(), "the bytes before the call do not count");
        tried.reporter.hear(arrival(8).from, 100_000);
        assert!(tried.sent(STATE, 4 * MS).is_empty(), "others' bytes do not");
        tried.reporter.hear(arrival(9).from, PRICE - 57);
        assert!(tried.sent(STATE, 5 * MS).is_empty());
        tried.reporter.hear(arrival(9).from, 1);
        let sent = tried.sent(STATE, 6 * MS);
        let [(9, report)] = sent[..] else { panic!("{sent:?}") };
        assert_eq!((report.token, report.challenge, report.number), (71, 2, 1));
        assert_eq!((report.time, report.held, report.clock), (10, 4000, 77));
        assert_eq!((report.heard, report.received, report.oldest, report.rows), (100, 90, 100, 3));
        tried.reporter.hear(arrival(9).from, PRICE - 1);
        assert!(tried.sent(STATE, 5000 * MS).is_empty(), "each report has to be earned");
        // Bytes are saved, up to a bound.
        tried.reporter.hear(arrival(9).from, u64::MAX);
        let sent: usize = (6..300).map(|second| tried.sent(STATE, 1000 * second * MS).len()).sum();
        assert_eq!(sent as u64, SAVED);
    }

    #[test]
    fn an_address_that_proves_nothing_gets_one_report_a_second() {
        let mut tried = Tried::new();
        tried.call(9, 1, &[], Duration::ZERO);
        assert_eq!(tried.times(State { lacking: 5, ..STATE }, 0, 2500), [0, 1000, 2000]);
        tried.call(9, 2, &[3, 4], 2500 * MS);
        assert!(!tried.reporter.is_heard(tried.start + 2500 * MS), "these are not its challenges");
        tried.call(9, 3, &[3, 2], 2500 * MS);
        assert!(tried.reporter.is_heard(tried.start + 2500 * MS));
        assert_eq!(tried.times(STATE, 2500, 2820), [2500, 2600, 2700, 2800]);
        assert_eq!(tried.times(STATE, 8000, 9500), [8000, 9000], "a proof does not last");
        assert!(!tried.reporter.is_heard(tried.start + 9500 * MS));
    }

    /// A packet that is only late is not reported; more that is lacking is told soon, and then again.
    #[test]
    fn what_is_lacking_is_told_at_once_and_what_is_late_is_not() {
        let mut tried = Tried::new();
        tried.call(9, 1, &[], Duration::ZERO);
        tried.call(9, 2, &[2], Duration::ZERO);
        assert_eq!(tried.times(STATE, 0, 10), [0]);
        let lacking = State { lacking: 4, oldest: 90, ..STATE };
        assert!(tried.times(lacking, 10, 14).is_empty() && tried.times(STATE, 14, 20).is_empty());
        let told = tried.times(lacking, 20, 95);
        assert!((28..=36).contains(&told[0]) && told[1..] == [told[0] + 40], "{told:?}");
        let more = tried.times(State { lacking: 9, ..lacking }, 95, 120);
        assert!((103..=111).contains(&more[0]), "{more:?}");
        let sent = tried.sent(State { lacking: 1 << 40, oldest: 7, ..STATE }, 900 * MS);
        assert!(sent[0].1.lacking == 9 && sent[0].1.oldest == 7, "as many as were lacking for some time");
    }

    #[test]
    fn the_end_is_told_once_and_at_once() {
        let mut tried = Tried::new();
        tried.call(9, 1, &[2], Duration::ZERO);
        tried.call(9, 2, &[2], Duration::ZERO);
        assert_eq!(tried.times(STATE, 0, 20), [0]);
        let over = State { is_over: true, ..STATE };
        assert_eq!(tried.times(over, 20, 160), [20, 120]);
    }

    #[test]
    fn ways_are_few_and_a_call_that_was_overtaken_is_no_news() {
        let mut tried = Tried::new();
        for port in 1..=20 {
            tried.call(port, 5, &[], Duration::ZERO);
        }
        assert_eq!(tried.reporter.peers.len(), MOST_PEERS);
        tried.call(30, 5, &[], 11_000 * MS);
        assert_eq!(tried.reporter.peers.len(), 1, "the others have been silent");
        for (number, expected) in [(5, 75), (4, 75), (6, 76)] {
            tried.call(30, number, &[], 11_000 * MS);
            assert_eq!(tried.reporter.peers[0].token, expected);
        }
    }
}

//! Streams over simulated lines, in virtual time: what a rate that follows the loss costs, and what it saves.

use crate::chunk::Arrival;
use crate::feedback::{Feedback, Wanted};
use crate::loss::{Loss, LossModel};
use crate::rate::RateBounds;
use crate::reporter::{Reporter, State};
use fec_core::format::report::{self, Call, Control, Report};
use fec_core::gf256::kernel::Backend;
use fec_core::random::SplitMix64;
use fec_core::window::{Decoder, Encoder, Event, Limits, Profile, Ratio, StreamSettings, WINDOW_LIMIT};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

const MS: Duration = Duration::from_millis(1);

/// A line and a stream over it.
struct Line {
    /// The losses, each from this time on.
    losses: Vec<(Duration, Loss)>,
    /// Time of a packet on its way.
    one_way: Duration,
    /// Packets a second.
    packets: u32,
    seconds: u32,
    /// True if reports come through.
    reports: bool,
}

/// Ports of the sender and of a stranger.
const SENDER: u16 = 9;
const STRANGER: u16 = 8;

/// The way back of reports: it turns a report into datagrams, each with the time that it takes more than others.
type Back<'a> = &'a mut dyn FnMut(Vec<u8>) -> Vec<(Duration, Vec<u8>)>;

/// The outcome of a simulated stream.
#[derive(Debug, PartialEq)]
struct Outcome {
    sources: u64,
    rows: u64,
    calls: u64,
    reports: u64,
    /// Datagrams that the sender refused.
    refused: u64,
    /// Reports to others than the sender.
    astray: u64,
    /// Numbers of packets that were lost for good.
    lost: Vec<u64>,
    /// Time from sending to giving out, of each packet.
    delays: Vec<Duration>,
}

impl Outcome {
    /// Packets sent for a source packet.
    fn factor(&self) -> f64 {
        (self.sources + self.rows + self.calls) as f64 / self.sources as f64
    }

    fn delay(&self, part: f64) -> Duration {
        let mut sorted = self.delays.clone();
        sorted.sort_unstable();
        sorted[((sorted.len() - 1) as f64 * part) as usize]
    }
}

/// A datagram on its way: its time of arrival, an order among equals, and the port that it comes from, if it goes to
/// the receiver.
type OnTheWay = Reverse<(Instant, u64, Option<u16>, Vec<u8>)>;

struct Simulation<'a> {
    line: &'a Line,
    start: Instant,
    encoder: Encoder,
    feedback: Feedback,
    decoder: Decoder,
    reporter: Reporter,
    models: Vec<(Duration, LossModel)>,
    losses_back: LossModel,
    back: Back<'a>,
    on_the_way: BinaryHeap<OnTheWay>,
    order: u64,
    sent_at: Vec<Instant>,
    outcome: Outcome,
}

impl<'a> Simulation<'a> {
    fn new(line: &'a Line, seed: u64, back: Back<'a>) -> Simulation<'a> {
        let settings = StreamSettings {
            stream_id: 5,
            window: 6000,
            block: 240,
            payload: 400,
            profile: Profile::Bounded,
            ratio: Ratio::new(1, 6).expect("neither is 0"),
            limit: WINDOW_LIMIT,
        };
        let encoder = Encoder::new(&settings, Backend::best()).expect("good settings");
        let start = Instant::now();
        let mut drawn = seed;
        let wanted = Wanted { fixed: settings.ratio, bounds: RateBounds::default(), token: 7, opener: None };
        let models = line.losses.iter().map(|(from, loss)| (*from, loss.start(seed).expect("no file")));
        Simulation {
            line,
            start,
            feedback: Feedback::new(wanted, *encoder.parameters(), 1, start),
            encoder,
            decoder: Decoder::new(Limits { prompt: true, ..Limits::default() }, Backend::best()),
            reporter: Reporter::new(&mut || {
                drawn += 1;
                drawn
            }),
            models: models.collect(),
            losses_back: line.losses[0].1.start(seed ^ 77).expect("no file"),
            back,
            on_the_way: BinaryHeap::new(),
            order: 0,
            sent_at: Vec::new(),
            outcome: Outcome {
                sources: 0,
                rows: 0,
                calls: 0,
                reports: 0,
                refused: 0,
                astray: 0,
                lost: Vec::new(),
                delays: Vec::new(),
            },
        }
    }

    /// Puts packets on the way to the receiver.
    fn transmit(&mut self, packets: Vec<Vec<u8>>, now: Instant) {
        for packet in packets {
            match packet[5] {
                0 => self.outcome.sources += 1,
                1 => self.outcome.rows += 1,
                3 => self.outcome.calls += 1,
                _ => {}
            }
            let model = self.models.iter_mut().rev().find(|(from, _)| self.start + *from <= now);
            let is_lost = model.expect("a loss from the start on").1.next_is_lost();
            if !is_lost {
                self.send(now, Some(SENDER), packet);
            }
        }
    }

    /// Puts a datagram on its way, which nothing can lose any more.
    fn send(&mut self, at: Instant, from: Option<u16>, datagram: Vec<u8>) {
        self.order += 1;
        self.on_the_way.push(Reverse((at + self.line.one_way, self.order, from, datagram)));
    }

    fn converse(&mut self, now: Instant) {
        if !self.feedback.is_due(now) {
            return;
        }
        let (extra, call, ratio) = self.feedback.answer(&self.encoder, now);
        let mut packets = Vec::new();
        self.encoder.emit_extra(extra, &mut |packet| packets.push(packet.to_vec()));
        packets.extend(call);
        if let Some(ratio) = ratio {
            self.encoder.set_ratio(ratio);
        }
        self.transmit(packets, now);
    }

    /// Delivers what has arrived by `now`.
    fn deliver(&mut self, now: Instant) {
        while self.on_the_way.peek().is_some_and(|Reverse((at, ..))| *at <= now) {
            let Some(Reverse((at, _, from, mut packet))) = self.on_the_way.pop() else { break };
            match from {
                Some(port) => self.receive(&packet, port, at),
                None => {
                    self.feedback.take(0, &mut packet, &self.encoder, at);
                    self.converse(at);
                }
            }
        }
    }

    fn receive(&mut self, packet: &[u8], port: u16, now: Instant) {
        let arrival = Arrival { from: ([127, 0, 0, 1], port).into(), to: None, at: None };
        if report::is_call(packet) {
            let Ok((_, Control::Call(call))) = report::parse(packet) else { panic!("it is a call") };
            let mut drawn = 99;
            self.reporter.take(&arrival, &call, packet.len() as u64, now, &mut || {
                drawn += 1;
                drawn
            });
            if port == STRANGER {
                // The stream goes on by the clock that it has without him.
                return;
            }
        } else {
            let _ = self.decoder.receive(packet);
            self.reporter.hear(arrival.from, 1350);
            while let Some(event) = self.decoder.next() {
                match event {
                    Event::Packet { seq, payload, .. } => {
                        assert_eq!(payload, payload_of(seq));
                        self.outcome.delays.push(now - self.sent_at[seq as usize]);
                    }
                    Event::Gap { first, count } => self.outcome.lost.extend(first..first + count),
                    Event::End => {}
                }
            }
        }
        self.report(now);
    }

    fn report(&mut self, now: Instant) {
        let (heard, pending) = (self.decoder.heard().unwrap_or(0), self.decoder.pending());
        let state = State {
            lacking: pending.as_ref().map_or(0, |_| self.decoder.lacking()),
            begin: self.decoder.begins_at().unwrap_or(heard),
            heard,
            received: self.decoder.statistics().received,
            rows: self.decoder.newest_row().map_or(0, |row| row + 1),
            oldest: pending.map_or(heard, |pending| pending.start),
            lost: self.decoder.statistics().lost,
            bursts: 0,
            longest: 0,
            is_over: self.decoder.has_ended(),
        };
        self.reporter.note(state, now);
        let Some(parameters) = self.decoder.parameters() else { return };
        let mut reports = Vec::new();
        let astray = &mut self.outcome.astray;
        self.reporter.send_due(parameters, now, Duration::ZERO, |to, bytes| {
            *astray += u64::from(to.from.port() != SENDER);
            reports.push(bytes.to_vec());
        });
        for report in reports {
            self.outcome.reports += 1;
            if self.line.reports && !self.losses_back.next_is_lost() {
                for (more, datagram) in (self.back)(report) {
                    // Calls are for the receiver: they come from a stranger, who did not send the stream.
                    let from = report::is_call(&datagram).then_some(STRANGER);
                    self.send(now + more, from, datagram);
                }
            }
        }
        self.decoder.set_prompt(!self.reporter.is_heard(now));
    }

    fn run(mut self) -> Outcome {
        let interval = Duration::from_secs(1) / self.line.packets;
        for seq in 0..self.line.packets * self.line.seconds {
            let now = self.start + interval * seq;
            self.deliver(now);
            self.report(now);
            self.converse(now);
            let mut packets = Vec::new();
            self.sent_at.push(now);
            let payload = payload_of(seq.into());
            self.encoder.push(&payload, &mut |packet| packets.push(packet.to_vec())).expect("it fits");
            self.transmit(packets, now);
        }
        let mut now = self.start + interval * (self.line.packets * self.line.seconds);
        let mut packets = Vec::new();
        self.encoder.finish(&mut |packet| packets.push(packet.to_vec()));
        self.transmit(packets, now);
        for _ in 0..1000 {
            now += MS;
            self.deliver(now);
            self.report(now);
            self.converse(now);
        }
        self.outcome.refused = self.feedback.outcome().refused;
        self.outcome
    }
}

fn payload_of(seq: u64) -> [u8; 400] {
    [seq as u8; 400]
}

fn simulate(line: &Line, seed: u64) -> Outcome {
    simulate_with(line, seed, &mut |report| vec![(Duration::ZERO, report)])
}

fn simulate_with(line: &Line, seed: u64, back: Back<'_>) -> Outcome {
    Simulation::new(line, seed, back).run()
}

fn line(loss: &str, one_way: u32, seconds: u32) -> Line {
    let losses = vec![(Duration::ZERO, loss.parse().expect("a loss model"))];
    Line { losses, one_way: one_way * MS, packets: 1850, seconds, reports: true }
}

/// Sent packets for a source packet, and the delay of 99 of 100 payloads, at most; nothing is lost.
#[test]
fn the_cost_and_the_delay_follow_the_line() {
    for (loss, one_way, factor, delay) in [
        ("random:0.001", 25, 1.03, 70),
        ("random:0.05", 25, 1.12, 70),
        ("random:0.1", 25, 1.22, 85),
        ("ge:0.01,30", 50, 1.10, 350),
    ] {
        for seed in 1..4 {
            let of = simulate(&line(loss, one_way, 30), seed);
            let told = format!("{loss}, seed {seed}: {:.4} sent, {:?}", of.factor(), of.delay(0.99));
            assert!(of.lost.is_empty(), "{told}, {} lost", of.lost.len());
            assert_eq!(of.delays.len() as u64, of.sources, "{told}");
            assert!(of.factor() <= factor && of.delay(0.99) <= delay * MS, "{told}");
            assert!(of.calls < 60 && of.reports < 1000, "{told}: {} calls, {} reports", of.calls, of.reports);
        }
    }
}

/// A loss that sets in is mended by rows on demand until the ratio has followed.
#[test]
fn a_step_of_the_loss_loses_nothing() {
    for seed in 1..4 {
        let mut line = line("random:0", 25, 12);
        line.losses.push((5000 * MS, Loss::Random(0.1)));
        let of = simulate(&line, seed);
        assert!(of.lost.is_empty(), "seed {seed}: {} lost", of.lost.len());
        assert!(of.delay(0.99) < 400 * MS, "seed {seed}: {:?}", of.delay(0.99));
    }
}

/// An outage that the fixed ratio could not mend is, since all that is lacking is asked for.
#[test]
fn an_outage_is_mended_on_demand() {
    let mut line = line("random:0", 25, 12);
    line.losses.push((5000 * MS, Loss::Random(0.999_999)));
    line.losses.push((5800 * MS, Loss::Random(0.0)));
    let of = simulate(&line, 1);
    assert!(of.lost.is_empty(), "{} lost", of.lost.len());
    let without = simulate(&Line { reports: false, ..line }, 1);
    assert!(without.lost.len() > 500, "the line asks for it: {} lost", without.lost.len());
}

/// Where reports do not come through, all is as without them.
#[test]
fn reports_that_are_lost_change_nothing() {
    let of = simulate(&Line { reports: false, ..line("random:0.05", 25, 20) }, 1);
    assert!(of.lost.is_empty());
    assert!((1.16..1.18).contains(&of.factor()), "{}", of.factor());
    // Nobody proves that the address receives: one report a second goes there.
    assert!(of.reports <= 21, "{} reports", of.reports);
}

/// Datagrams that an attacker makes of a report without its token, or of old reports.
struct Forger {
    draw: SplitMix64,
    record: Vec<Vec<u8>>,
}

impl Forger {
    fn new() -> Forger {
        Forger { draw: SplitMix64::new(1), record: Vec::new() }
    }

    fn any(&mut self) -> Vec<u8> {
        let at = self.draw.index(self.record.len());
        self.record[at].clone()
    }

    /// A report with other numbers, and the token and the number of the receiver as they are given.
    fn exaggerated(&mut self, bytes: &[u8], token: Option<u64>, receiver: Option<u64>) -> Vec<u8> {
        let Ok((parameters, Control::Report(report))) = report::parse(bytes) else { panic!("a report") };
        let heard = self.draw.below(200_000).into();
        let begin = u64::from(self.draw.below(heard as u32 + 1));
        let of = Report {
            receiver: receiver.unwrap_or(report.receiver),
            token: token.unwrap_or(report.token),
            number: report.number + 1 + u64::from(self.draw.below(1000)),
            lacking: self.draw.below(65_537),
            begin,
            heard,
            received: begin.min(heard - begin) / 2,
            rows: self.draw.below(1 << 20).into(),
            oldest: begin,
            lost: begin,
            ..report
        };
        of.to_bytes(&parameters).to_vec()
    }

    fn forged(&mut self, report: &[u8]) -> Vec<u8> {
        let (one, other) = (self.any(), self.any());
        let cut = self.draw.index(one.len());
        match self.draw.below(7) {
            0 => one,
            1 => one[..cut].to_vec(),
            2 => [&one[..], &other[..cut]].concat(),
            3 => [&one[..cut], &other[cut..]].concat(),
            4 => {
                let mut damaged = report.to_vec();
                damaged[cut] ^= 1 << self.draw.below(8);
                damaged
            }
            5 => {
                let token = self.draw.next() | 1;
                self.exaggerated(report, Some(token), None)
            }
            _ => {
                let Ok((parameters, _)) = report::parse(report) else { panic!("a report") };
                let token = self.draw.next() | 1;
                let answers = vec![self.draw.next() | 1; 4];
                Call { number: self.draw.next() >> 1, time: 0, token, answers }.to_bytes(&parameters)
            }
        }
    }
}

/// Whoever does not know the token, because he is elsewhere or has no key, changes no packet of the stream: neither by
/// forged, replayed, mixed and damaged reports, nor by calls to the receiver.
#[test]
fn a_hundred_thousand_forged_reports_change_nothing() {
    let line = line("random:0.02", 25, 30);
    let expected = simulate(&line, 1);
    let (mut forger, mut made) = (Forger::new(), 0u64);
    let mut of = simulate_with(&line, 1, &mut |report| {
        forger.record.push(report.clone());
        let forged: Vec<_> = (0..300).map(|_| forger.forged(&report)).collect();
        made += forged.len() as u64;
        // The true report comes first: a copy of it is old behind it.
        std::iter::once(report).chain(forged).map(|datagram| (Duration::ZERO, datagram)).collect()
    });
    assert!(made >= 100_000 && of.refused >= made * 4 / 5, "{made} forged, {} refused", of.refused);
    of.refused = expected.refused;
    assert!(of == expected, "{} rows in place of {}, {} astray", of.rows, expected.rows, of.astray);
    assert_eq!((of.astray, of.lost.len()), (0, 0));
}

/// Whoever reads the packets of a stream that is not sealed knows its token. He too moves the rate within its bounds
/// only, and changes no payload.
#[test]
fn reports_of_whoever_knows_the_token_keep_the_rate_in_its_bounds() {
    let line = line("random:0.02", 25, 30);
    for strangers in [false, true] {
        let mut forger = Forger::new();
        let of = simulate_with(&line, 1, &mut |report| {
            let mut all = vec![(Duration::ZERO, report.clone())];
            for receiver in 0..100 {
                let receiver = strangers.then_some(receiver % 50);
                all.push((MS * (receiver.unwrap_or(0) as u32), forger.exaggerated(&report, None, receiver)));
            }
            all
        });
        // An eighth of a window in advance, and rows for a quarter of one at the end.
        let most = (of.sources + 6000 / 8 + 6000 / 4) / 2;
        assert!((of.sources / 50..=most).contains(&of.rows), "{} rows, at most {most}", of.rows);
        assert_eq!(of.delays.len() + of.lost.len(), of.sources as usize);
    }
}

/// Reports that come late, overtake each other or do not come cost rows, and no packet.
#[test]
fn reports_that_are_late_lose_nothing() {
    let mut draw = SplitMix64::new(1);
    for (kept, late) in [(10, 500), (5, 500), (2, 1500)] {
        let of = simulate_with(&line("random:0.05", 25, 30), 1, &mut |report| {
            let more = MS * draw.below(late);
            let comes = draw.below(10) < kept;
            comes.then_some((more, report)).into_iter().collect()
        });
        assert!(of.lost.is_empty(), "{kept} of 10, {late} ms: {} lost", of.lost.len());
        assert!(of.factor() <= 1.25, "{kept} of 10, {late} ms: {:.3} sent", of.factor());
    }
}

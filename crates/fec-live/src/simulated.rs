//! Streams over simulated lines, in virtual time: what a rate that follows the loss costs, and what it saves.

use crate::chunk::Arrival;
use crate::feedback::{Feedback, Wanted};
use crate::loss::{Loss, LossModel};
use crate::rate::RateBounds;
use crate::reporter::{Reporter, State};
use fec_core::format::report::{self, Control};
use fec_core::gf256::kernel::Backend;
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

/// The outcome of a simulated stream.
#[derive(Debug)]
struct Outcome {
    sources: u64,
    rows: u64,
    calls: u64,
    reports: u64,
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

/// A datagram on its way: its time of arrival, an order among equals, and whether it goes to the receiver.
type OnTheWay = Reverse<(Instant, u64, bool, Vec<u8>)>;

struct Simulation<'a> {
    line: &'a Line,
    start: Instant,
    encoder: Encoder,
    feedback: Feedback,
    decoder: Decoder,
    reporter: Reporter,
    models: Vec<(Duration, LossModel)>,
    back: LossModel,
    on_the_way: BinaryHeap<OnTheWay>,
    order: u64,
    sent_at: Vec<Instant>,
    outcome: Outcome,
}

impl<'a> Simulation<'a> {
    fn new(line: &'a Line, seed: u64) -> Simulation<'a> {
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
            back: line.losses[0].1.start(seed ^ 77).expect("no file"),
            on_the_way: BinaryHeap::new(),
            order: 0,
            sent_at: Vec::new(),
            outcome: Outcome {
                sources: 0,
                rows: 0,
                calls: 0,
                reports: 0,
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
                self.order += 1;
                self.on_the_way.push(Reverse((now + self.line.one_way, self.order, true, packet)));
            }
        }
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
            let Some(Reverse((at, _, to_receiver, mut packet))) = self.on_the_way.pop() else { break };
            if to_receiver {
                self.receive(&packet, at);
            } else {
                self.feedback.take(0, &mut packet, &self.encoder, at);
                self.converse(at);
            }
        }
    }

    fn receive(&mut self, packet: &[u8], now: Instant) {
        let arrival = Arrival { from: ([127, 0, 0, 1], 9).into(), to: None, at: None };
        if report::is_call(packet) {
            let Ok((_, Control::Call(call))) = report::parse(packet) else { panic!("it is a call") };
            let mut drawn = 99;
            self.reporter.take(&arrival, &call, packet.len() as u64, now, &mut || {
                drawn += 1;
                drawn
            });
        } else {
            let _ = self.decoder.receive(packet);
            self.reporter.hear(arrival.from, 1350);
            while let Some(event) = self.decoder.next() {
                match event {
                    Event::Packet { seq, .. } => {
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
        self.reporter.send_due(parameters, now, Duration::ZERO, |_, bytes| reports.push(bytes.to_vec()));
        for report in reports {
            self.outcome.reports += 1;
            if self.line.reports && !self.back.next_is_lost() {
                self.order += 1;
                self.on_the_way.push(Reverse((now + self.line.one_way, self.order, false, report)));
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
            self.encoder.push(&[7; 400], &mut |packet| packets.push(packet.to_vec())).expect("it fits");
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
        self.outcome
    }
}

fn simulate(line: &Line, seed: u64) -> Outcome {
    Simulation::new(line, seed).run()
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

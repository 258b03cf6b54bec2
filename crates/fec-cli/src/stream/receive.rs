//! `fec decode --stream`: from packets back to the payload.

use super::address::Address;
use super::args::{self, Gap, Stats};
use super::feed::{Chunk, Feed, Next};
use super::frame::Deframer;
use super::output::Output;
use super::report::{Arrived, Received, Sums};
use super::udp::{Drops, Receiver};
use crate::failure::{Exit, Failure, Result, say, show};
use crate::settings::Settings;
use fec_core::format::packet::{self, Body, MAGIC, MARK};
use fec_core::window::{self, Decoder, Event, Limits};
use std::collections::VecDeque;
use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A network stream that is silent for so long has ended, if nothing else was said.
const IDLE: Duration = Duration::from_secs(10);
/// Once the sender has said that it has ended, so much silence is enough.
const IDLE_AFTER_END: Duration = Duration::from_millis(500);
/// How often statistics are printed.
const STATS: Duration = Duration::from_secs(1);
/// Deadlines are kept with this precision.
const GRAIN: Duration = Duration::from_millis(1);
/// The longest gap that is filled with zeros, in packets: more would be a flood that one packet can cause.
const MOST_ZEROS: u64 = 1 << 20;

/// Where packets come from.
pub(crate) enum Source {
    /// A framed byte stream, of which `head` was read before.
    Bytes {
        path: PathBuf,
        head: Vec<u8>,
        input: File,
    },
    Udp(Address),
}

impl Source {
    fn name(&self) -> String {
        match self {
            Source::Bytes { path, .. } => show(path),
            Source::Udp(address) => address.to_string(),
        }
    }
}

/// What `decode` was asked for.
pub(crate) struct Job<'a> {
    pub(crate) source: Source,
    pub(crate) output: Output,
    pub(crate) options: &'a args::Receive,
    pub(crate) settings: &'a Settings,
}

pub(crate) fn run(job: Job<'_>) -> Result<Exit> {
    let Job { source, output, options, settings } = job;
    let input = source.name();
    let is_network = matches!(source, Source::Udp(_));
    let (feed, drops) = match source {
        Source::Bytes { path, head, input } => {
            (Feed::of_bytes(head, input).map_err(|e| Failure::io("read", &path, &e))?, None)
        }
        Source::Udp(address) => {
            let receiver = Receiver::open(&address, &options.interface())?;
            let drops = receiver.drops();
            let local = receiver.local_addr().map_or_else(|_| address.to_string(), |a| format!("udp://{a}"));
            match options.stats {
                Some(Stats::Json) => say(&super::report::listening(&local)),
                _ if settings.quiet || settings.json => {}
                _ => say(&format!("receiving on {local}")),
            }
            let feed = Feed::of_packets(receiver);
            (feed.map_err(|e| Failure::new(Exit::Io, format!("receive on {address}: {e}")))?, Some(drops))
        }
    };
    let now = Instant::now();
    let mut session = Session {
        decoder: Decoder::new(
            Limits { window_bytes: settings.max_window, ..Limits::default() },
            settings.backend,
        ),
        deframer: (!is_network).then(Deframer::new),
        options,
        output,
        arrived: Arrived::default(),
        heard: VecDeque::new(),
        ended: false,
        told_end: false,
        started: now,
    };
    let idle = match options.idle_ms {
        Some(0) => None,
        Some(ms) => Some(Duration::from_millis(ms.into())),
        None => is_network.then_some(IDLE),
    };
    let mut last_packet = None;
    let mut next_stats = options.stats.map(|_| now + STATS);
    let progress = settings.live_progress("decode");
    let mut written = 0;
    let failed = loop {
        let silence = match session.told_end && is_network {
            true => Some(idle.map_or(IDLE_AFTER_END, |idle| idle.min(IDLE_AFTER_END))),
            false => idle,
        };
        let silent_at = last_packet.zip(silence).map(|(at, silence): (Instant, _)| at + silence);
        let timers = [silent_at, session.deadline(), next_stats];
        let next = feed.next(timers.into_iter().flatten().min());
        let now = Instant::now();
        match next {
            Next::Chunk(chunk) => {
                if session.take(&chunk, now)? {
                    last_packet = Some(now);
                }
                feed.give_back(chunk);
            }
            Next::Nothing => {}
            Next::End => break None,
            Next::Failed(e) => break Some(e),
        }
        session.give_up(now)?;
        session.output.flush()?;
        progress.add(session.output.written() - written);
        written = session.output.written();
        if let Some(at) = next_stats.filter(|at| now >= *at) {
            // A program that was stopped for a while does not print all the lines it has missed.
            next_stats = Some(now.max(at) + STATS);
            session.print_stats(drops, now);
        }
        if session.is_over(is_network)
            || silent_at.is_some_and(|at| Instant::now() >= at && last_packet <= Some(at))
        {
            break None;
        }
    };
    session.finish()?;
    progress.finish();
    let sums = session.sums(drops.and_then(|d| d.count()));
    let stdout_is_data = session.output.is_stdout();
    // In a network anybody may send; in a file or pipe what is left out was meant for somebody.
    let foreign_is_loss = !is_network && options.stream_id.is_none();
    let (name, time) = (session.output.name(), now.elapsed());
    let report = Received::new(input, name, settings, &session.arrived, &sums, foreign_is_loss, time);
    if let Some(e) = failed {
        return Err(Failure::new(Exit::Io, format!("read {}: {e}", report.input)));
    }
    let exit = report.exit();
    if report.is_nothing() {
        let (cause, help) = report.why_nothing();
        return Err(Failure::new(exit, format!("decode {}: {cause}", report.input)).help(help));
    }
    // What came is kept even with gaps: they are what the exit code tells.
    session.output.commit()?;
    settings.report(&report, &report.describe(), stdout_is_data)?;
    if exit != Exit::Done && (settings.quiet || settings.json) {
        say(&format!("fec: decode {}: the stream is not whole", report.input));
    }
    Ok(exit)
}

struct Session<'a> {
    decoder: Decoder,
    deframer: Option<Deframer>,
    options: &'a args::Receive,
    output: Output,
    arrived: Arrived,
    /// How far the stream had come, and when: for packets that are lost.
    heard: VecDeque<(Instant, u64)>,
    /// The stream has ended, and everything before its end was delivered or named.
    ended: bool,
    /// The sender has said that it has ended; something before may be missing.
    told_end: bool,
    started: Instant,
}

impl Session<'_> {
    /// Takes packets; tells whether there was one of this stream.
    fn take(&mut self, chunk: &Chunk, now: Instant) -> Result<bool> {
        let before = self.arrived.of_stream;
        if let Some(mut deframer) = self.deframer.take() {
            for part in chunk.parts() {
                deframer.feed(part, |packet| self.packet(packet))?;
            }
            self.arrived.broken_frames = deframer.broken();
            self.deframer = Some(deframer);
        } else {
            for packet in chunk.parts() {
                self.packet(packet)?;
            }
        }
        if self.options.deadline_ms.is_some()
            && let Some(std::ops::Range { end, .. }) = self.decoder.pending()
        {
            let is_new = self.heard.back().is_none_or(|(at, heard)| *heard < end && now >= *at + GRAIN);
            if is_new {
                self.heard.push_back((now, end));
            }
        }
        Ok(self.arrived.of_stream > before)
    }

    fn packet(&mut self, packet: &[u8]) -> Result<()> {
        let id = packet.get(8..16).filter(|_| packet.starts_with(&MAGIC));
        let is_other = |wanted: u64| id.is_some_and(|id| id != wanted.to_le_bytes());
        if self.options.stream_id.is_some_and(is_other) {
            self.arrived.count_other();
            return Ok(());
        }
        let received = self.decoder.receive(packet);
        self.arrived.count(&received);
        if received == window::Received::Accepted {
            let is_end = |(_, body)| matches!(body, Body::Mark { end: true, .. });
            // Marks are few, and so short that parsing them again costs nothing.
            self.told_end |= packet.len() == MARK && packet::parse(packet).is_ok_and(is_end);
        }
        if let (Some(packets), Some(pending)) = (self.options.deadline_packets, self.decoder.pending()) {
            self.decoder.give_up_before(pending.end.saturating_sub(packets.into()));
        }
        self.drain()
    }

    /// Writes what is ready.
    fn drain(&mut self) -> Result<()> {
        while let Some(event) = self.decoder.next() {
            match event {
                Event::Packet { seq, payload, rebuilt } => {
                    self.arrived.packet(seq, payload.len(), rebuilt);
                    self.output.write(payload)?;
                }
                Event::Gap { first, count } => {
                    self.arrived.gap(first, count);
                    match self.options.gap.unwrap_or(Gap::Skip) {
                        Gap::Skip => {}
                        Gap::Zero if count > MOST_ZEROS => {
                            return Err(Failure::new(
                                Exit::Refused,
                                format!("decode: a gap of {count} packets is more than zeros are written for ({MOST_ZEROS})"),
                            )
                            .help("go on behind gaps with --gap skip"));
                        }
                        Gap::Zero => {
                            let payload = self.decoder.parameters().map_or(0, |p| u64::from(p.payload));
                            self.output.zeros(count * payload)?;
                        }
                        Gap::Fail => {
                            self.output.flush()?;
                            return Err(Failure::new(
                                Exit::Lost,
                                format!("decode: lost for good: {}", super::report::numbers(first, count)),
                            )
                            .help("--gap skip and --gap zero go on behind a gap"));
                        }
                    }
                }
                Event::End => self.ended = true,
            }
        }
        Ok(())
    }

    /// When the next packet is given up.
    fn deadline(&self) -> Option<Instant> {
        let wait = Duration::from_millis(self.options.deadline_ms?.into());
        self.heard.front().map(|(at, _)| *at + wait)
    }

    /// Gives up what is past the user's deadlines.
    fn give_up(&mut self, now: Instant) -> Result<()> {
        let mut before = None;
        while self.deadline().is_some_and(|at| at <= now) {
            before = self.heard.pop_front().map(|(_, heard)| heard);
        }
        if let Some(before) = before {
            self.decoder.give_up_before(before);
            self.drain()?;
        }
        Ok(())
    }

    /// Whether nothing more can come that is wanted. A pipe is read to its end.
    fn is_over(&self, is_network: bool) -> bool {
        is_network && self.ended
    }

    /// The input has ended: what is missing is lost.
    fn finish(&mut self) -> Result<()> {
        if let Some(deframer) = &mut self.deframer {
            deframer.finish();
            self.arrived.broken_frames = deframer.broken();
        }
        self.decoder.give_up_before(u64::MAX);
        self.drain()?;
        self.output.flush()
    }

    fn sums(&self, kernel_drops: Option<u64>) -> Sums {
        let (parameters, statistics) = (self.decoder.parameters().copied(), self.decoder.statistics());
        Sums { ended: self.ended, kernel_drops, parameters, statistics }
    }

    fn print_stats(&self, drops: Option<Drops>, now: Instant) {
        let time = now - self.started;
        let sums = self.sums(drops.and_then(|d| d.count()));
        match self.options.stats {
            Some(Stats::Json) => say(&self.arrived.line(&sums, time)),
            _ => say(&self.arrived.text(&sums, time)),
        }
    }
}

//! Cuts the input of a stream into payloads, watches the clock, and answers reports.

use super::LiveError;
use super::ages::Ages;
use super::chunk::Chunk;
use super::feedback::Feedback;
use super::sent::Sent;
use super::timers::Every;
use super::transmitter::Transmitter;
use fec_base::error::{Action, Error, Result};
use fec_core::window::{Encoder, Ratio};
use std::time::{Duration, Instant};

/// Repetitions of the end on a network, where every packet may be lost, and the pause before each.
const ENDS: u32 = 5;
const END_PAUSE: Duration = Duration::from_millis(20);
/// Interval of keep-alives on an idle stream.
const KEEP_ALIVE: Duration = Duration::from_secs(1);
/// Factor by which an early repair packet waits longer for each row that the ratio does not owe yet.
const PATIENCE: f64 = 4.0;
const SHORTEST_WAIT: Duration = Duration::from_millis(1);
const LONGEST_WAIT: Duration = Duration::from_secs(3600);
/// Longest time for which receivers that report are helped after the end, and the pause between looks.
const HELP: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(2);

/// Cuts the input into payloads and watches the clock.
pub(super) struct Packetizer<'a> {
    encoder: Encoder,
    pub(super) transmitter: Transmitter<'a>,
    /// The conversation with receivers; `None` if no reports are called for.
    feedback: Option<Feedback>,
    /// The ages of packets, which end their protection; `None` for endless protection.
    ages: Option<Ages>,
    /// Bytes that do not fill a packet yet.
    partial: Vec<u8>,
    /// The most bytes of a payload.
    payload: usize,
    payload_bytes: u64,
    wait: Duration,
    /// The time at which the oldest byte of `partial` came.
    partial_since: Option<Instant>,
    /// The sending time of the oldest packet that no repair packet covers.
    uncovered_since: Option<Instant>,
    /// The times at which the counts are told.
    telling: Every,
}

impl<'a> Packetizer<'a> {
    pub(super) fn new(
        encoder: Encoder,
        transmitter: Transmitter<'a>,
        feedback: Option<Feedback>,
        ages: Option<Ages>,
        wait: Duration,
    ) -> Packetizer<'a> {
        let payload = usize::from(encoder.parameters().payload);
        let partial = Vec::with_capacity(payload);
        Packetizer {
            encoder,
            transmitter,
            feedback,
            ages,
            partial,
            payload,
            payload_bytes: 0,
            wait,
            partial_since: None,
            uncovered_since: None,
            telling: Every::new(None, Instant::now()),
        }
    }

    /// Tells the watcher the counts in this interval; `None` for never.
    pub(super) fn tell_every(&mut self, interval: Option<Duration>) {
        self.telling = Every::new(interval, Instant::now());
    }

    /// Tells the watcher the counts until now, as often as asked.
    pub(super) fn tell(&mut self) {
        if self.telling.next().is_some() && self.telling.is_due(Instant::now()) {
            let sent = self.sent();
            self.transmitter.so_far(&sent);
        }
    }

    /// Sends the bytes of a chunk. Drops the rest if sending must end and would have to wait for its pace.
    pub(super) fn take(&mut self, chunk: &Chunk) -> Result<()> {
        for mut bytes in chunk.parts() {
            while !bytes.is_empty() {
                if self.transmitter.is_cut_short() {
                    return Ok(());
                }
                let room = self.payload - self.partial.len();
                let (piece, rest) = bytes.split_at(room.min(bytes.len()));
                bytes = rest;
                if self.partial.is_empty() && piece.len() == self.payload {
                    self.push(piece)?;
                    continue;
                }
                if self.partial.is_empty() {
                    self.partial_since = Some(Instant::now());
                }
                self.partial.extend_from_slice(piece);
                if self.partial.len() == self.payload {
                    self.push_partial()?;
                }
            }
        }
        if self.wait.is_zero() {
            self.push_partial()?;
        }
        Ok(())
    }

    fn push(&mut self, payload: &[u8]) -> Result<()> {
        // The pace may have spread a chunk over a long time.
        self.let_go();
        self.converse()?;
        self.tell();
        let transmitter = &mut self.transmitter;
        self.payload_bytes += payload.len() as u64;
        self.encoder
            .push(payload, &mut |packet| transmitter.send(packet))
            .map_err(|e| Error::new(Action::Encode, LiveError::from(e)))?;
        if !self.encoder.is_uncovered() {
            self.uncovered_since = None;
        } else if self.uncovered_since.is_none() {
            self.uncovered_since = Some(self.partial_since.unwrap_or_else(Instant::now));
        }
        transmitter.result()
    }

    fn push_partial(&mut self) -> Result<()> {
        if self.partial.is_empty() {
            return Ok(());
        }
        let partial = std::mem::take(&mut self.partial);
        let done = self.push(&partial);
        self.partial = partial;
        self.partial.clear();
        self.partial_since = None;
        done
    }

    /// The time at which uncovered packets get a repair packet early. The wait grows with the rows that are ahead of
    /// the ratio. A slow input therefore takes only a few more repair packets than a fast one, and the last packet
    /// before a long pause gets its own.
    fn early_at(&self) -> Option<Instant> {
        let ahead = self.encoder.ahead();
        let wait = if ahead > 0.0 {
            let seconds = self.wait.max(SHORTEST_WAIT).as_secs_f64() * PATIENCE.powf(ahead);
            Duration::from_secs_f64(seconds.min(LONGEST_WAIT.as_secs_f64()))
        } else {
            self.wait
        };
        self.uncovered_since.map(|since| since + wait)
    }

    /// Ends the protection of packets that are too old.
    fn let_go(&mut self) {
        if let Some(ages) = &mut self.ages
            && let Some(needed) = ages.needed(self.encoder.sent(), Instant::now())
        {
            self.encoder.acknowledge(needed);
        }
    }

    /// The time at which the timer is due.
    pub(super) fn deadline(&self) -> Instant {
        let partial = self.partial_since.map(|since| since + self.wait);
        let alive = self.transmitter.last_sent() + KEEP_ALIVE;
        let reports = self.feedback.as_ref().map(Feedback::next);
        partial.into_iter().chain(self.early_at()).chain(reports).fold(alive, Instant::min)
    }

    pub(super) fn timer(&mut self) -> Result<()> {
        self.let_go();
        self.converse()?;
        let now = Instant::now();
        if self.partial_since.is_some_and(|since| now >= since + self.wait) {
            self.push_partial()?;
            self.transmitter.release()?;
        }
        if self.early_at().is_some_and(|at| now >= at) {
            let transmitter = &mut self.transmitter;
            self.encoder.flush(&mut |packet| transmitter.send(packet));
            self.uncovered_since = None;
            transmitter.release()?;
        }
        let transmitter = &mut self.transmitter;
        if now >= transmitter.last_sent() + KEEP_ALIVE {
            self.encoder.keep_alive(&mut |packet| transmitter.send(packet));
        }
        transmitter.result()
    }

    /// Goes on with the ratio that somebody outside wants.
    pub(super) fn set_ratio(&mut self, ratio: Ratio) {
        self.encoder.set_ratio(ratio);
    }

    /// Hears the reports that came, answers them with rows and a new ratio, and calls for more.
    fn converse(&mut self) -> Result<()> {
        let Some(feedback) = &mut self.feedback else { return Ok(()) };
        let now = Instant::now();
        if !feedback.is_due(now) {
            return Ok(());
        }
        let (encoder, transmitter) = (&mut self.encoder, &mut self.transmitter);
        transmitter.receive(&mut |way, datagram| feedback.take(way, datagram, encoder, now));
        let (extra, call, ratio) = feedback.answer(encoder, now);
        if extra > 0 {
            encoder.emit_extra(extra, &mut |packet| transmitter.send(packet));
            self.uncovered_since = None;
        }
        if let Some(call) = &call {
            transmitter.send(call);
        }
        if let Some(ratio) = ratio {
            encoder.set_ratio(ratio);
        }
        if extra > 0 || call.is_some() { transmitter.flush() } else { Ok(()) }
    }

    /// Helps receivers that report, until they have all packets or time is up.
    fn help(&mut self) -> Result<()> {
        let until = Instant::now() + HELP;
        while let Some(feedback) = &self.feedback
            && !self.transmitter.is_stopped()
        {
            let now = Instant::now();
            if now >= until || feedback.is_settled(self.encoder.sent(), now) {
                break;
            }
            std::thread::sleep(LOOK);
            self.converse()?;
        }
        Ok(())
    }

    /// Ends the stream after its input.
    pub(super) fn finish(&mut self) -> Result<()> {
        self.push_partial()?;
        let transmitter = &mut self.transmitter;
        let mut end = Vec::new();
        self.encoder.finish(&mut |packet| {
            transmitter.send(packet);
            end.clear();
            end.extend_from_slice(packet);
        });
        transmitter.release()?;
        if transmitter.is_network() {
            for _ in 0..ENDS {
                std::thread::sleep(END_PAUSE);
                transmitter.send(&end);
                transmitter.release()?;
            }
            self.help()?;
        }
        self.transmitter.listen()
    }

    pub(super) fn sent(&self) -> Sent {
        let packets = self.transmitter.sent();
        Sent {
            parameters: *self.encoder.parameters(),
            payload_bytes: self.payload_bytes,
            source_packets: packets.source,
            repair_packets: packets.repair,
            marks: packets.marks,
            sent_bytes: packets.bytes,
            cipher: self.transmitter.cipher(),
            impaired_lost: self.transmitter.lost(),
            unsent: self.transmitter.unsent(),
            ways: self.transmitter.ways(),
            stopped: false,
            replies: self.transmitter.replies(),
            feedback: self.feedback.as_ref().map(Feedback::outcome),
        }
    }
}

//! The receiver's side: packets in, payloads and gaps out (format specification, section 15).
//!
//! `Stream` keeps the order, `Reception` removes the known packets from a row, and `System` solves for the rest. The
//! decoder has no clock: the caller owns deadlines and the silence of a network.

use super::events::{Event, Limits, Received, Statistics};
use super::reception::{Prospect, Reception};
use super::states::PacketState;
use super::stream::{NextAction, Stream};
use crate::format::packet::{self, Body, PacketError, Parameters};
use crate::gf256::kernel::Backend;
use std::ops::Range;

/// Receives one stream.
///
/// After each [`receive`](Self::receive) the caller asks [`next`](Self::next) until it gives `None`. The next packet
/// may drop events that the caller has not asked for, which are then counted in [`Statistics::overrun`].
///
/// # Guarantees
///
/// - Any bytes may be given to `receive`; none panic.
/// - A payload that is given out has the checksum that its sender computed over stream, number and bytes. A CRC keeps
///   out accidents, not forgers.
/// - Each number is either given out or named in a gap, and only once; in order if so requested.
/// - Memory and the work of a packet are bounded by [`Limits`], with n for [`Limits::columns`]. A packet adds up at
///   most n rows of 1.5 n coefficients, and a symbol for each of them and of the last eight rows (n² symbols when
///   everything is rebuilt at once), n symbols more for a late row, and six times the sums of a row, of which there
///   are 48, for each packet that came since the last repair packet. Each number that is passed over costs the reading
///   of a byte, and nothing more: a packet that never came costs nothing.
pub struct Decoder {
    limits: Limits,
    backend: Backend,
    stream: Option<Stream>,
    statistics: Statistics,
}

impl Decoder {
    /// A decoder that locks to the first stream it hears.
    pub fn new(limits: Limits, backend: Backend) -> Decoder {
        Decoder { limits, backend, stream: None, statistics: Statistics::default() }
    }

    /// Takes a packet: the whole of a datagram or frame.
    pub fn receive(&mut self, packet: &[u8]) -> Received {
        let (parameters, body) = match packet::parse(packet) {
            Ok(parsed) => parsed,
            Err(error) => {
                match error {
                    PacketError::Damaged => self.statistics.damaged += 1,
                    _ => self.statistics.rejected += 1,
                }
                return Received::Rejected(error);
            }
        };
        if let Err(refusal) = self.lock(&parameters) {
            return refusal;
        }
        while self.stream.as_ref().is_some_and(Stream::has_waiting) {
            match self.next() {
                Some(Event::Packet { .. }) => self.statistics.overrun += 1,
                Some(_) => {}
                None => break,
            }
        }
        self.take(packet, &body)
    }

    /// Locks to the packet's stream, or returns the reason why not.
    fn lock(&mut self, parameters: &Parameters) -> Result<(), Received> {
        if let Some(stream) = &self.stream {
            let known = &stream.reception.parameters;
            if known == parameters {
                return Ok(());
            }
            self.statistics.foreign += 1;
            let same = known.stream_id == parameters.stream_id;
            return Err(if same { Received::Mismatch } else { Received::Foreign });
        }
        let bytes = u64::from(parameters.window) * parameters.symbol_len() as u64;
        if bytes > self.limits.window_bytes {
            self.statistics.rejected += 1;
            return Err(Received::Refused { bytes });
        }
        let columns = usize::from(self.limits.columns);
        let reception = Reception::new(self.backend, *parameters, columns);
        self.stream = Some(Stream::new(reception));
        Ok(())
    }

    /// Takes a packet of the stream.
    fn take(&mut self, packet: &[u8], body: &Body<'_>) -> Received {
        let Some(stream) = &mut self.stream else { return Received::Foreign };
        stream.take(packet, body, &self.limits, &mut self.statistics)
    }

    /// The next payload, gap or end, if there is one by now.
    #[allow(clippy::should_implement_trait, reason = "an event borrows the decoder")]
    pub fn next(&mut self) -> Option<Event<'_>> {
        loop {
            match self.stream.as_mut()?.step(self.limits.order, &mut self.statistics) {
                NextAction::Packet(seq) => {
                    let reception = &self.stream.as_ref()?.reception;
                    let rebuilt = reception.state(seq) == PacketState::Rebuilt;
                    return Some(Event::Packet { seq, payload: reception.store.payload(seq), rebuilt });
                }
                NextAction::Gap(first, count) => {
                    self.statistics.lost += count;
                    return Some(Event::Gap { first, count });
                }
                NextAction::End => return Some(Event::End),
                NextAction::Take(packet) => {
                    // The packet was parsed when it came.
                    if let Ok((_, body)) = packet::parse(&packet) {
                        self.take(&packet, &body);
                    }
                }
                NextAction::Nothing => return None,
            }
        }
    }

    /// Gives up waiting for lost packets below `seq`: they are named as lost, and packets that waited behind them are
    /// given out. `u64::MAX` stands for the end of the input, where a single mark is enough for an end. The packets
    /// stay in the equations.
    pub fn give_up_before(&mut self, seq: u64) {
        if let Some(stream) = &mut self.stream {
            stream.give_up_before(seq);
        }
    }

    /// Tells whether the end was announced, and is believed; packets before it may be missing.
    pub fn is_told_end(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.total().is_some())
    }

    /// The first packet that is received. A late receiver gets nothing of the packets before, and they are in no gap.
    /// `None` as long as no packet tells it. A stream is whole when it [has ended](Self::has_ended), begins at 0, and
    /// no packet of it was lost, overrun or in conflict.
    pub fn begins_at(&self) -> Option<u64> {
        self.stream.as_ref()?.begin
    }

    /// Tells whether the end was announced, all packets from [`begins_at`](Self::begins_at) to there were given out or
    /// named, and nothing has contradicted it since. A single mark makes no end as long as packets may follow: it may
    /// be forged, or stray. Two marks are believed.
    pub fn has_ended(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.ended)
    }

    /// The numbers that are neither given out nor named yet: from the one waited for to the newest known. `None` if
    /// there are none.
    pub fn pending(&self) -> Option<Range<u64>> {
        let stream = self.stream.as_ref()?;
        Some(stream.next..stream.reception.end).filter(|range| !range.is_empty())
    }

    /// Number of repair packets that would let all packets be known that came or may still be rebuilt: of lost packets
    /// those that no equation determines yet.
    pub fn lacking(&self) -> u64 {
        self.stream.as_ref().map_or(0, |stream| stream.reception.lacking())
    }

    /// The newest packet that is known to have been sent, and 1; `None` before the first packet.
    pub fn heard(&self) -> Option<u64> {
        self.stream.as_ref().map(|stream| stream.reception.end)
    }

    /// The number of the newest repair packet; `None` before the first that a window that slides could use.
    pub fn newest_row(&self) -> Option<u64> {
        self.stream.as_ref()?.reception.newest_row()
    }

    /// Sets [`Limits::prompt`] from now on: a receiver that can ask for repair packets waits for them.
    pub fn set_prompt(&mut self, prompt: bool) {
        self.limits.prompt = prompt;
    }

    /// The parameters in the packets of the stream. `None` before the first packet.
    pub fn parameters(&self) -> Option<&Parameters> {
        Some(&self.stream.as_ref()?.reception.parameters)
    }

    /// Lets go of the stream, with all that was not given out: the next valid packet decides which stream is received.
    /// It is for a stream of which nothing has come for a while. The statistics go on.
    pub fn unlock(&mut self) {
        self.stream = None;
    }

    /// The losses that the stream's window could stand now. `None` before the first repair packet, and if windows do
    /// not slide.
    pub fn prospect(&self) -> Option<Prospect> {
        self.stream.as_ref()?.reception.prospect
    }

    /// Counts since the decoder was made.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }
}

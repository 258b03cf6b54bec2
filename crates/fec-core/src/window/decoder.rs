//! The receiver's side: packets in, payloads and gaps out (format specification, section 15).
//!
//! `Reception` removes the known packets from a row, and `System` solves for the rest. The decoder has no clock: the
//! caller owns deadlines and the silence of a network.

use super::events::{Event, Limits, Order, Received, Statistics};
use super::reception::{Prospect, Reception, RowFate};
use super::states::PacketState;
use crate::format::packet::{self, Body, PacketError, Parameters, RowHeader};
use crate::gf256::kernel::Backend;
use std::collections::VecDeque;
use std::ops::Range;

/// Packets far beyond the newest one that must agree before the receiver follows them.
const AGREE: usize = 16;

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
///   most n rows of 1.5 n coefficients and a symbol (n² symbols when everything is rebuilt at once), n symbols more for
///   a late row, and six times the sums of a row, of which there are 48, for each packet that came since the last
///   repair packet. Each number that is passed over costs the reading of a byte, and nothing more: a packet that never
///   came costs nothing.
pub struct Decoder {
    limits: Limits,
    backend: Backend,
    stream: Option<Stream>,
    statistics: Statistics,
}

/// The stream that the decoder is locked to.
struct Stream {
    reception: Reception,
    /// The first packet that is received; `None` if only marks came, since they do not tell it.
    begin: Option<u64>,
    /// The next number to be given out or named.
    next: u64,
    /// Lost packets below this one are named as lost.
    low: u64,
    /// Packets that came or were rebuilt and may be given out out of order.
    ready: VecDeque<u64>,
    /// The announced end, once a mark has come.
    told_end: Option<ToldEnd>,
    ended: bool,
    /// Packets that wait until the caller has asked for those before them.
    waiting: VecDeque<Vec<u8>>,
    /// The place where the stream goes on after the known packets were given out.
    jump: Option<u64>,
    /// Packets far beyond the newest.
    aside: Vec<(u64, Vec<u8>)>,
}

/// Number of marks that must agree before the end is believed, while packets may still come.
const BELIEVED: u32 = 2;

/// The end, as marks announce it.
#[derive(Clone, Copy)]
struct ToldEnd {
    /// The number of packets.
    total: u64,
    /// Number of marks that announced it; [`BELIEVED`] too if nothing more can come.
    times: u32,
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
        while self.stream.as_ref().is_some_and(|stream| stream.jump.is_some() || !stream.waiting.is_empty()) {
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
        self.stream = Some(Stream {
            reception: Reception::new(self.backend, *parameters, columns),
            begin: None,
            next: 0,
            low: 0,
            ready: VecDeque::new(),
            told_end: None,
            ended: false,
            waiting: VecDeque::new(),
            jump: None,
            aside: Vec::new(),
        });
        Ok(())
    }

    /// Takes a packet of the stream.
    fn take(&mut self, packet: &[u8], body: &Body<'_>) -> Received {
        let immediate = self.limits.order == Order::Immediate;
        let Some(stream) = &mut self.stream else { return Received::Foreign };
        let statistics = &mut self.statistics;
        if stream.begin.is_none() && !stream.begin_with(body) {
            if let Body::Mark { sent, end: true } = *body {
                stream.hear_end(sent, statistics);
            }
            return Received::Accepted;
        }
        let reception = &mut stream.reception;
        let end = match *body {
            Body::Source { seq, .. } => seq + 1,
            Body::Repair { first, count, .. } => first + u64::from(count),
            Body::Mark { sent, .. } => sent,
        };
        if end > reception.end + reception.span() {
            return stream.keep_aside(packet, body, statistics);
        }
        stream.aside.clear();
        let is_end = matches!(body, Body::Mark { end: true, .. });
        if !is_end && stream.told_end.is_some_and(|told| end > told.total) {
            // There is no end, or none at this place.
            stream.take_end_back(statistics);
        }
        let reception = &mut stream.reception;
        if end > stream.next + reception.places() {
            // The packet would take the place of a packet that was not given out yet.
            stream.low = stream.low.max(reception.reach(end)).min(reception.end);
            stream.waiting.push_back(packet.to_vec());
            return Received::Accepted;
        }
        let received = match *body {
            Body::Source { seq, payload, checksum } => {
                if reception.remembers(seq) && reception.state(seq) != PacketState::Lost {
                    if reception.store.payload(seq) == payload {
                        statistics.duplicates += 1;
                        statistics.overtaken += u64::from(reception.note_arrival(seq));
                        return Received::Duplicate;
                    }
                    statistics.conflicts += 1;
                    return Received::Conflict;
                }
                if seq < reception.start() {
                    statistics.late += 1;
                    return Received::Late;
                }
                reception.source(seq, payload, checksum);
                if seq < stream.next {
                    // The caller did not wait for it, but it helps to rebuild others.
                    statistics.late += 1;
                    Received::Late
                } else {
                    statistics.received += 1;
                    if immediate {
                        stream.ready.push_back(seq);
                    }
                    Received::Accepted
                }
            }
            Body::Repair { row, first, count, part, symbol } => {
                statistics.repairs += 1;
                match reception.repair(&RowHeader { row, first, count, part }, symbol) {
                    RowFate::Useful => {
                        statistics.useful_repairs += 1;
                        Received::Accepted
                    }
                    RowFate::Redundant => Received::Redundant,
                    RowFate::Unusable => {
                        statistics.unusable_repairs += 1;
                        Received::Unusable
                    }
                    RowFate::Contradiction => {
                        statistics.conflicts += 1;
                        Received::Conflict
                    }
                }
            }
            Body::Mark { sent, end } => {
                if end {
                    stream.hear_end(sent, statistics);
                } else {
                    reception.advance(sent);
                }
                Received::Accepted
            }
        };
        stream.low = stream.low.max(stream.reception.start());
        if self.limits.prompt {
            stream.low = stream.low.max(stream.reception.hopeless);
        }
        let next = stream.next;
        for seq in stream.reception.rebuilt.drain(..).filter(|&seq| seq >= next) {
            statistics.rebuilt += 1;
            if immediate {
                stream.ready.push_back(seq);
            }
        }
        statistics.disbelieved += std::mem::take(&mut stream.reception.disbelieved);
        received
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
            if let (Some(told), u64::MAX) = (&mut stream.told_end, seq) {
                told.times = told.times.max(BELIEVED);
                let total = told.total;
                if stream.begin.is_none() {
                    stream.begin_at(total);
                }
                stream.reach_end();
            }
            stream.low = stream.low.max(seq.min(stream.reception.end));
            if let Some(total) = stream.total()
                && stream.begin.is_some()
                && seq >= total
                && total > stream.reception.end
            {
                stream.jump.get_or_insert(total);
            }
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

/// The next action of [`Decoder::next`].
enum NextAction {
    Packet(u64),
    Gap(u64, u64),
    End,
    Take(Vec<u8>),
    Nothing,
}

impl Stream {
    fn step(&mut self, order: Order, statistics: &mut Statistics) -> NextAction {
        while let Some(seq) = self.ready.pop_front() {
            if self.reception.remembers(seq) && self.reception.state(seq) != PacketState::Lost {
                return NextAction::Packet(seq);
            }
            statistics.overrun += 1;
        }
        while self.next < self.reception.end {
            let seq = self.next;
            if self.known(seq) {
                self.next += 1;
                if order == Order::InOrder {
                    return NextAction::Packet(seq);
                }
            } else if seq < self.low || self.jump.is_some() {
                let until = if self.jump.is_some() { self.reception.end } else { self.low };
                self.next = self.reception.end_of_gap(seq, until);
                return NextAction::Gap(seq, self.next - seq);
            } else {
                return self.waiting_packet();
            }
        }
        if let Some(base) = self.jump.take() {
            let first = std::mem::replace(&mut self.next, base);
            self.reception.rebase(base);
            self.low = base;
            return NextAction::Gap(first, base - first);
        }
        match self.waiting_packet() {
            NextAction::Nothing if self.total() == Some(self.next) && !self.ended => {
                self.ended = true;
                NextAction::End
            }
            step => step,
        }
    }

    /// Begins where the first packet says. Returns false for a mark, which does not say it.
    fn begin_with(&mut self, body: &Body<'_>) -> bool {
        let block = u64::from(self.reception.parameters.block);
        let (is_early, base) = match *body {
            Body::Source { seq, .. } => (seq < block, Some(seq)),
            Body::Repair { first, count, .. } => {
                let end = first + u64::from(count);
                (end <= block, Some(end))
            }
            // A mark that an attacker moves to the front must not cut the packets behind it.
            Body::Mark { sent, .. } => (sent <= block, None),
        };
        match if is_early { Some(0) } else { base } {
            Some(base) => self.begin_at(base),
            None => return false,
        }
        true
    }

    fn begin_at(&mut self, base: u64) {
        self.begin = Some(base);
        self.reception.rebase(base);
        (self.next, self.low) = (base, base);
    }

    /// The number of packets, if it is believed.
    fn total(&self) -> Option<u64> {
        self.told_end.filter(|told| told.times >= BELIEVED).map(|told| told.total)
    }

    /// Notes a mark that announces `total` packets.
    fn hear_end(&mut self, total: u64, statistics: &mut Statistics) {
        let seen = self.reception.end;
        match &mut self.told_end {
            Some(told) if told.total == total => told.times += 1,
            None if total >= seen => self.told_end = Some(ToldEnd { total, times: 1 }),
            // Another end was announced, or more packets came.
            told => {
                statistics.conflicts += 1;
                if total >= seen {
                    *told = Some(ToldEnd { total, times: 1 });
                }
            }
        }
        self.reach_end();
    }

    /// Notes that all packets before the end were sent, once it is believed.
    fn reach_end(&mut self) {
        if let Some(total) = self.total()
            && self.begin.is_some()
            && total <= self.reception.end + self.reception.span()
        {
            self.reception.advance(total);
        }
    }

    /// Takes the announced end back, because a packet stands behind it.
    fn take_end_back(&mut self, statistics: &mut Statistics) {
        statistics.conflicts += 1;
        (self.told_end, self.ended) = (None, false);
    }

    /// Tells whether a packet at or after `next` is there. A packet that was given up and rebuilt later was named
    /// already, or will not be.
    fn known(&self, seq: u64) -> bool {
        self.reception.state(seq) != PacketState::Lost
    }

    fn waiting_packet(&mut self) -> NextAction {
        self.waiting.pop_front().map_or(NextAction::Nothing, NextAction::Take)
    }

    /// Keeps a packet far beyond the newest one, and follows when enough of them agree.
    fn keep_aside(&mut self, packet: &[u8], body: &Body<'_>, statistics: &mut Statistics) -> Received {
        let &Body::Source { seq, .. } = body else {
            if let Body::Mark { sent, end: true } = *body {
                self.hear_end(sent, statistics);
            }
            return Received::Ahead;
        };
        let span = self.reception.span();
        self.aside.retain(|&(other, _)| other != seq && other.abs_diff(seq) < span);
        self.aside.push((seq, packet.to_vec()));
        if self.aside.len() == AGREE {
            statistics.jumps += 1;
            if self.told_end.is_some_and(|told| self.aside.iter().any(|&(seq, _)| seq >= told.total)) {
                self.take_end_back(statistics);
            }
            self.aside.sort_unstable_by_key(|&(seq, _)| seq);
            self.jump = self.aside.first().map(|&(seq, _)| seq);
            self.waiting.extend(self.aside.drain(..).map(|(_, packet)| packet));
        }
        Received::Ahead
    }
}

//! The stream that a decoder is locked to: its beginning and end, the order in which packets are given out, and those
//! that wait for their turn.

use super::events::{Limits, Order, Received, Statistics};
use super::reception::{Reception, RowFate};
use super::replays::Replays;
use super::states::PacketState;
use crate::format::packet::{Body, RowHeader};
use std::collections::VecDeque;

/// Packets far beyond the newest one that must agree before the receiver follows them.
const AGREE: usize = 16;

/// The stream that the decoder is locked to.
pub(super) struct Stream {
    pub(super) reception: Reception,
    /// The first packet that is received; `None` if only marks came, since they do not tell it.
    pub(super) begin: Option<u64>,
    /// The next number to be given out or named.
    pub(super) next: u64,
    /// Lost packets below this one are named as lost.
    low: u64,
    /// Packets that came or were rebuilt and may be given out out of order.
    ready: VecDeque<u64>,
    /// The announced end, once a mark has come.
    told_end: Option<ToldEnd>,
    /// True if the end was given out, and nothing has contradicted it since.
    pub(super) ended: bool,
    /// Packets that wait until the caller has asked for those before them.
    waiting: VecDeque<Vec<u8>>,
    /// The place where the stream goes on after the known packets were given out.
    jump: Option<u64>,
    /// Packets far beyond the newest.
    aside: Vec<(u64, Vec<u8>)>,
    /// The rows that came.
    rows: Replays,
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

/// The next action of [`Decoder::next`](super::Decoder::next).
pub(super) enum NextAction {
    Packet(u64),
    Gap(u64, u64),
    End,
    Take(Vec<u8>),
    Nothing,
}

impl Stream {
    /// A stream of which no packet came yet.
    pub(super) fn new(reception: Reception) -> Stream {
        Stream {
            reception,
            begin: None,
            next: 0,
            low: 0,
            ready: VecDeque::new(),
            told_end: None,
            ended: false,
            waiting: VecDeque::new(),
            jump: None,
            aside: Vec::new(),
            rows: Replays::default(),
        }
    }

    /// Tells whether packets wait until the caller has asked for those before them.
    pub(super) fn has_waiting(&self) -> bool {
        self.jump.is_some() || !self.waiting.is_empty()
    }

    /// Gives out the next packet or gap, if it may, and tells the decoder what it is.
    #[inline]
    pub(super) fn step(&mut self, order: Order, statistics: &mut Statistics) -> NextAction {
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

    /// Gives up waiting for lost packets below `seq`; `u64::MAX` stands for the end of the input.
    pub(super) fn give_up_before(&mut self, seq: u64) {
        if let (Some(told), u64::MAX) = (&mut self.told_end, seq) {
            told.times = told.times.max(BELIEVED);
            let total = told.total;
            if self.begin.is_none() {
                self.begin_at(total);
            }
            self.reach_end();
        }
        self.low = self.low.max(seq.min(self.reception.end));
        if let Some(total) = self.total()
            && self.begin.is_some()
            && seq >= total
            && total > self.reception.end
        {
            self.jump.get_or_insert(total);
        }
    }

    /// Takes a packet of the stream.
    #[inline]
    pub(super) fn take(
        &mut self,
        packet: &[u8],
        body: &Body<'_>,
        limits: &Limits,
        statistics: &mut Statistics,
    ) -> Received {
        if let Some(received) = self.hold_back(packet, body, statistics) {
            return received;
        }
        let received = match *body {
            Body::Source { seq, payload, checksum } => {
                let received = self.take_source(seq, payload, checksum, statistics);
                if received == Received::Accepted && limits.order == Order::Immediate {
                    self.ready.push_back(seq);
                }
                received
            }
            Body::Repair { row, first, count, part, symbol } => {
                self.take_repair(&RowHeader { row, first, count, part }, symbol, statistics)
            }
            Body::Mark { sent, end } => {
                if end {
                    self.hear_end(sent, statistics);
                } else {
                    self.reception.advance(sent);
                }
                Received::Accepted
            }
        };
        self.settle(limits, statistics);
        received
    }

    /// Begins with the first packet, and keeps a packet for later that comes too early. Returns the answer to a packet
    /// that is not to be taken now.
    #[inline]
    fn hold_back(&mut self, packet: &[u8], body: &Body<'_>, statistics: &mut Statistics) -> Option<Received> {
        if self.begin.is_none() && !self.begin_with(body) {
            if let Body::Mark { sent, end: true } = *body {
                self.hear_end(sent, statistics);
            }
            return Some(Received::Accepted);
        }
        let end = match *body {
            Body::Source { seq, .. } => seq + 1,
            Body::Repair { first, count, .. } => first + u64::from(count),
            Body::Mark { sent, .. } => sent,
        };
        if end > self.reception.end + self.reception.span() {
            return Some(self.keep_aside(packet, body, statistics));
        }
        self.aside.clear();
        let is_end = matches!(body, Body::Mark { end: true, .. });
        if !is_end && self.told_end.is_some_and(|told| end > told.total) {
            // There is no end, or none at this place.
            self.take_end_back(statistics);
        }
        let reception = &self.reception;
        if end > self.next + reception.places() {
            // The packet would take the place of a packet that was not given out yet.
            self.low = self.low.max(reception.reach(end)).min(reception.end);
            self.waiting.push_back(packet.to_vec());
            return Some(Received::Accepted);
        }
        None
    }

    /// Takes a source packet. It is accepted if it is new, and the caller still waits for it.
    #[inline]
    fn take_source(
        &mut self,
        seq: u64,
        payload: &[u8],
        checksum: u32,
        statistics: &mut Statistics,
    ) -> Received {
        let reception = &mut self.reception;
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
        if seq < self.next {
            // The caller did not wait for it, but it helps to rebuild others.
            statistics.late += 1;
            return Received::Late;
        }
        statistics.received += 1;
        Received::Accepted
    }

    /// Takes a repair packet. A row with new information counts as one that did not come before: a forged number of a
    /// row makes others look old, and keeps none out.
    #[inline]
    fn take_repair(&mut self, header: &RowHeader, symbol: &[u8], statistics: &mut Statistics) -> Received {
        let is_known = self.rows.is_known(header.row);
        let fate = self.reception.repair(header, symbol);
        if is_known && matches!(fate, RowFate::Redundant | RowFate::Unusable) {
            statistics.duplicates += 1;
            return Received::Duplicate;
        }
        if !is_known {
            self.rows.note(header.row);
        }
        statistics.repairs += 1;
        match fate {
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

    /// Notes the packets that the last one rebuilt, and those that nothing rebuilds any more.
    #[inline]
    fn settle(&mut self, limits: &Limits, statistics: &mut Statistics) {
        self.low = self.low.max(self.reception.start());
        if limits.prompt {
            self.low = self.low.max(self.reception.hopeless);
        }
        let next = self.next;
        for seq in self.reception.rebuilt.drain(..).filter(|&seq| seq >= next) {
            statistics.rebuilt += 1;
            if limits.order == Order::Immediate {
                self.ready.push_back(seq);
            }
        }
        statistics.disbelieved += std::mem::take(&mut self.reception.disbelieved);
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
    pub(super) fn total(&self) -> Option<u64> {
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

//! Receiving: from packets back to the payload.
//!
//! Deadlines and the silence of a network are here (`timers`), since the codec has no clock.

mod options;
mod reporting;

pub use options::{
    GapPolicy, MAX_AGE, NETWORK_IDLE, Opening, PacketSource, ReceiveOptions, ReceptionWatcher,
};

use super::chunk::{Arrival, Chunk};
use super::follow::Follow;
use super::frame::Deframer;
use super::origins::Came;
use super::output::Output;
use super::reader_thread::{NOTICE, Next, ReaderThread};
use super::received::Received;
use super::refusals::RefusalWatch;
use super::reporter::State;
use super::seal::{NotOpened, Opener};
pub use super::timers::Deadline;
use super::timers::{Deadlines, End, Every, Silence};
use super::udp::{Drops, PacketReceiver};
use super::{LiveError, LostPackets};
use fec_base::context::{Context, Gauge, Settings};
use fec_base::error::{Action, Error, Result};
use fec_core::format::packet::MAGIC;
use fec_core::format::report;
use fec_core::gf256::kernel::Backend;
use fec_core::window::{self, Decoder, Event, Limits};
use reporting::Reporting;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest gap that is filled with zeros, in packets: a single packet could cause a flood of more.
const MOST_ZEROS: u64 = 1 << 20;
/// Receives a stream to its end. Its packets are written even if it has gaps, which [`Received`] tells.
///
/// # Errors
/// Those of source and output; [`LiveError::NothingCame`] and [`LiveError::NothingAccepted`] if no packet of a stream
/// came; [`LiveError::LongGap`] and [`LiveError::LostForGood`] by the options for gaps. A file does not appear then.
pub fn receive(
    source: PacketSource,
    output: Output<'_>,
    options: &ReceiveOptions,
    watcher: &mut dyn ReceptionWatcher,
    context: &Context<'_>,
) -> Result<Received> {
    let place = source.place();
    let intake = Intake::open(source, options, watcher)?;
    let meter = context.meter(Action::Decode, None);
    let Intake { reader, drops, reporting } = intake;
    let mut session = Session::new((drops, reporting), output, options, &context.settings);
    let failed = session.run(&reader, watcher, &meter)?;
    let (received, output) = session.finish()?;
    meter.finish();
    if let Some(e) = failed {
        return Err(Error::io(Action::Read, place, e));
    }
    if let Some(cause) = received.why_nothing() {
        return Err(Error::at(Action::Decode, place, cause));
    }
    output.commit()?;
    Ok(received)
}

/// An open source.
struct Intake {
    reader: ReaderThread,
    /// The kernel's count of dropped packets, for a network.
    drops: Option<Drops>,
    /// The reports to senders, for a network.
    reporting: Option<Reporting>,
}

impl Intake {
    fn open(
        source: PacketSource,
        options: &ReceiveOptions,
        watcher: &mut dyn ReceptionWatcher,
    ) -> Result<Intake> {
        match source {
            PacketSource::Bytes { place, head, input } => {
                let reader =
                    ReaderThread::of_bytes(head, input).map_err(|e| Error::io(Action::Read, place, e))?;
                Ok(Intake { reader, drops: None, reporting: None })
            }
            PacketSource::Udp { address, interface } => {
                let receiver = PacketReceiver::open(&address, &interface)?;
                let fail = |e| Error::io(Action::ReceiveOn, &address, e);
                watcher.listening(receiver.local_addr().map_err(fail)?);
                let (drops, receiver) = (receiver.drops(), Arc::new(receiver));
                // A group has many receivers, and a sender to it calls for no reports.
                let reports = options.reports && !address.local()?.is_some_and(|at| at.ip().is_multicast());
                let reporting = reports.then(|| Reporting::new(receiver.clone())).transpose()?;
                let reader = ReaderThread::of_packets(receiver).map_err(fail)?;
                Ok(Intake { reader, drops: Some(drops), reporting })
            }
        }
    }
}

/// The way of packets to the decoder and of its payloads to the output, with the clock.
struct Session<'a> {
    decoder: Decoder,
    limits: Limits,
    backend: Backend,
    follow: Follow,
    /// `None` for datagrams.
    deframer: Option<Deframer>,
    opener: Option<Opener>,
    drops: Option<Drops>,
    reporting: Option<Reporting>,
    options: &'a ReceiveOptions,
    output: Output<'a>,
    received: Received,
    deadlines: Deadlines,
    /// True if the clock gives up the packets that are lost now.
    is_overdue: bool,
    started: Instant,
    /// Time at which the packets came that are taken now.
    now: Instant,
    /// The origin of the packet that is taken now; `None` in a byte stream.
    arrival: Option<Arrival>,
}

impl<'a> Session<'a> {
    fn new(
        (drops, reporting): (Option<Drops>, Option<Reporting>),
        output: Output<'a>,
        options: &'a ReceiveOptions,
        settings: &Settings,
    ) -> Session<'a> {
        let is_network = drops.is_some();
        let limits = Limits { window_bytes: settings.max_window, prompt: is_network, ..Limits::default() };
        let foreign_is_loss = !is_network && options.stream_id.is_none();
        Session {
            decoder: Decoder::new(limits, settings.backend),
            limits,
            backend: settings.backend,
            follow: Follow::default(),
            deframer: (!is_network).then(Deframer::new),
            opener: options.opening.as_ref().map(|Opening { key, max_age }| {
                // Packets in a file may have been there for long.
                Opener::new(key.clone(), max_age.filter(|_| is_network))
            }),
            drops,
            reporting,
            options,
            output,
            received: Received::new(foreign_is_loss, options.deadline),
            is_overdue: false,
            deadlines: Deadlines::new(options.deadline),
            started: Instant::now(),
            now: Instant::now(),
            arrival: None,
        }
    }

    fn is_following(&self) -> bool {
        self.options.follow && self.is_network()
    }

    /// The knowledge about the stream's end.
    fn end(&self) -> End {
        match (self.decoder.has_ended(), self.decoder.is_told_end()) {
            (true, _) => End::Reached,
            (false, true) => End::Told,
            (false, false) => End::Unknown,
        }
    }

    fn is_network(&self) -> bool {
        self.drops.is_some()
    }

    /// Works until the stream or its source has ended. Returns the reason why the source cannot be read further, if
    /// there is one.
    fn run(
        &mut self,
        reader: &ReaderThread,
        watcher: &mut dyn ReceptionWatcher,
        meter: &Gauge<'_>,
    ) -> Result<Option<io::Error>> {
        let mut silence = Silence::new(self.options.idle, self.options.wait, self.is_network(), self.started);
        let mut telling = Every::new(self.options.tell_every, self.started);
        let mut written = 0;
        let mut refusals = RefusalWatch::default();
        loop {
            let (next, now) = self.listen(reader, &mut silence, telling.next());
            match next {
                Next::Chunk(mut chunk) => {
                    if self.take(&mut chunk, now)? {
                        silence.ends(now);
                    }
                    reader.give_back(chunk);
                    if self.is_network()
                        && let Some(why) = refusals.notice(&self.received, now)
                    {
                        watcher.not_accepted(&self.received, &why);
                    }
                }
                Next::Nothing => {}
                Next::End => return Ok(None),
                Next::Failed(e) => return Ok(Some(e)),
            }
            self.give_up_overdue(now)?;
            self.report(now);
            self.output.flush()?;
            meter.add(self.output.written() - written);
            written = self.output.written();
            if telling.is_due(now) {
                self.count_up(now);
                watcher.so_far(&self.received);
            }
            if watcher.is_stopped() {
                return Ok(None);
            }
            let has_ended = self.decoder.has_ended();
            let replaced_at = self.follow.deadline(silence.last_packet(), has_ended);
            let is_replaced = replaced_at.is_some_and(|at| has_ended || silence.is_past(at, now));
            let is_over = silence.is_over(self.end(), now);
            if is_over && !(self.is_following() && self.received.arrived > 0) {
                return Ok(None);
            }
            if is_over || is_replaced {
                self.next_stream(watcher)?;
                refusals = RefusalWatch::default();
                silence = Silence::new(self.options.idle, self.options.wait, true, now);
                if self.received.arrived > 0 {
                    silence.ends(now);
                }
            }
        }
    }

    /// Waits for the next result, and returns it with its time; `silence` gets its information.
    fn listen(
        &mut self,
        reader: &ReaderThread,
        silence: &mut Silence,
        tell_at: Option<Instant>,
    ) -> (Next, Instant) {
        let asked = Instant::now();
        if let Some(away) = silence.away(asked) {
            self.deadlines.postpone(away);
        }
        // The reading thread tells in time that nothing came, and with it when the socket was empty.
        let look_at =
            if self.is_network() { Some(asked + 2 * NOTICE) } else { silence.look_at(self.end(), asked) };
        let report_at = self.reporting.as_ref().and_then(|reporting| reporting.next(asked));
        let planned = [look_at, self.deadlines.next(), tell_at, report_at].into_iter().flatten().min();
        let next = reader.next(planned);
        let now = Instant::now();
        if let Some(late) = silence.wakes(asked, planned, now) {
            self.deadlines.postpone(late);
        }
        match &next {
            Next::Chunk(chunk) => silence.was_empty(chunk.empty_at),
            Next::Nothing => silence.heard_nothing(asked, now),
            _ => {}
        }
        (next, now)
    }

    /// Gives up packets past their deadline.
    fn give_up_overdue(&mut self, now: Instant) -> Result<()> {
        if let Some(before) = self.deadlines.due(now) {
            self.now = now;
            self.decoder.give_up_before(before);
            self.is_overdue = true;
            self.drain()?;
            self.is_overdue = false;
        }
        Ok(())
    }

    /// Ends the received stream, whose missing packets are lost, and turns to the next.
    fn next_stream(&mut self, watcher: &mut dyn ReceptionWatcher) -> Result<()> {
        self.give_up()?;
        let kept = self.follow.take();
        let now = Instant::now();
        self.received.foreign -= kept.len() as u64;
        self.count_up(now);
        watcher.over(&self.received);
        if let Some(parameters) = self.decoder.parameters()
            && self.decoder.is_told_end()
        {
            self.follow.note_end(parameters.stream_id);
        }
        self.decoder = Decoder::new(self.limits, self.backend);
        self.deadlines = Deadlines::new(self.options.deadline);
        self.received = self.received.next();
        if let Some(reporting) = &mut self.reporting {
            reporting.restart();
        }
        self.started = now;
        kept.iter().try_for_each(|(packet, arrival)| {
            self.arrival = *arrival;
            self.take_packet(packet)
        })
    }

    /// Gives up all missing packets.
    fn give_up(&mut self) -> Result<()> {
        self.decoder.give_up_before(u64::MAX);
        self.drain()?;
        self.output.flush()
    }

    /// Takes packets. Returns whether any was of this stream.
    fn take(&mut self, chunk: &mut Chunk, now: Instant) -> Result<bool> {
        self.now = now;
        let before = self.received.arrived;
        if let Some(mut deframer) = self.deframer.take() {
            for part in chunk.parts() {
                deframer.feed(part, |packet| self.packet(packet, None))?;
            }
            self.received.broken_frames = deframer.broken();
            self.deframer = Some(deframer);
        } else {
            for (arrival, packet) in chunk.datagrams_mut() {
                let (before, bytes) = (self.received.arrived, packet.len());
                self.arrival = Some(*arrival);
                self.packet(packet, arrival.at)?;
                if let Some(reporting) = &mut self.reporting
                    && self.received.arrived > before
                {
                    reporting.hear(arrival, bytes);
                }
            }
        }
        let heard = self.decoder.pending().map(|pending| pending.end);
        self.deadlines.hear(heard, now);
        if let Some(end) = heard {
            self.received.quality.hear(end, now);
        }
        self.received.quality.foresee(self.decoder.prospect(), self.decoder.statistics().overtaken);
        Ok(self.received.arrived > before)
    }

    /// Reports on the stream, if it is time. Where reports are heard, lost packets wait for rows that were asked for.
    fn report(&mut self, now: Instant) {
        let Some(reporting) = &mut self.reporting else { return };
        let (heard, pending) = (self.decoder.heard().unwrap_or(0), self.decoder.pending());
        let statistics = self.decoder.statistics();
        let quality = &self.received.quality;
        let state = State {
            lacking: pending.as_ref().map_or(0, |_| self.decoder.lacking()),
            begin: self.decoder.begins_at().unwrap_or(heard).min(heard),
            heard,
            received: statistics.received,
            rows: self.decoder.newest_row().map_or(0, |row| row + 1),
            oldest: pending.map_or(heard, |pending| pending.start),
            lost: statistics.lost,
            bursts: quality.bursts(),
            longest: quality.longest_burst(),
            is_over: self.decoder.has_ended(),
        };
        reporting.send(state, || quality.delay(0.99), &self.decoder, now);
        self.received.reports = reporting.sent();
        let is_heard = reporting.is_heard(now);
        self.decoder.set_prompt(!is_heard);
    }

    /// Takes a packet; a sealed one is opened in place. `came` is the time at which the system received it, since 1970,
    /// if it tells.
    fn packet(&mut self, packet: &mut [u8], came: Option<Duration>) -> Result<()> {
        let id = packet.get(8..16).filter(|_| packet.starts_with(&MAGIC));
        let is_other = |wanted: u64| id.is_some_and(|id| id != wanted.to_le_bytes());
        if self.options.stream_id.is_some_and(is_other) {
            self.received.foreign += 1;
            return Ok(());
        }
        let id: Option<[u8; 8]> = id.and_then(|id| id.try_into().ok());
        if id.is_some_and(|id| self.follow.is_of_ended(id)) {
            self.received.after_end += 1;
            return Ok(());
        }
        match &mut self.opener {
            None => self.take_opened(packet),
            Some(opener) => match opener.open(&mut *packet, came) {
                Ok(packet) => self.take_opened(packet),
                Err(why) => {
                    self.received.count_not_opened(why);
                    if let (NotOpened::Copy, Some(arrival)) = (why, &self.arrival) {
                        self.received.origins.note(arrival, packet, Came::Again);
                    }
                    Ok(())
                }
            },
        }
    }

    /// Takes a packet in the clear, which may be a call for reports.
    fn take_opened(&mut self, packet: &[u8]) -> Result<()> {
        let Some(arrival) = self.arrival.filter(|_| report::is_call(packet)) else {
            return self.take_packet(packet);
        };
        if let Some(reporting) = &mut self.reporting {
            reporting.take(packet, &arrival, &self.decoder, self.opener.as_ref(), self.now);
        }
        Ok(())
    }

    /// Takes a packet of a stream, in the clear.
    fn take_packet(&mut self, packet: &[u8]) -> Result<()> {
        let (fate, before) = (self.decoder.receive(packet), self.received.arrived);
        self.received.count(fate);
        if let Some(arrival) = self.arrival.as_ref().filter(|_| self.received.arrived > before) {
            let came = if fate == window::Received::Ahead { Came::Ahead } else { Came::First };
            self.received.origins.note(arrival, packet, came);
        }
        match fate {
            window::Received::Foreign if self.is_following() => self.follow.keep(packet, self.arrival),
            window::Received::Accepted => self.follow.forget(),
            _ => {}
        }
        if let (Some(packets), Some(pending)) = (self.options.deadline_packets, self.decoder.pending()) {
            self.decoder.give_up_before(pending.end.saturating_sub(packets.into()));
        }
        self.drain()
    }

    /// Writes the payloads that are ready.
    fn drain(&mut self) -> Result<()> {
        self.refuse_late_join()?;
        while let Some(event) = self.decoder.next() {
            match event {
                Event::Packet { seq, payload, rebuilt } => {
                    self.received.packet(seq, payload.len(), rebuilt, self.now);
                    self.output.write(payload)?;
                }
                Event::Gap { first, count } => self.gap(LostPackets { first, count })?,
                Event::End => {}
            }
        }
        Ok(())
    }

    /// Late joining is normal on a network. In a file or pipe a missing beginning is a gap like any other.
    fn refuse_late_join(&self) -> Result<()> {
        match self.decoder.begins_at() {
            Some(count @ 1..) if self.options.gaps == GapPolicy::Fail && !self.is_network() => {
                Err(Error::new(Action::Decode, LiveError::LostForGood(LostPackets { first: 0, count })))
            }
            _ => Ok(()),
        }
    }

    /// Goes on behind packets that are lost for good, if the options allow it.
    fn gap(&mut self, lost: LostPackets) -> Result<()> {
        self.received.gap(lost, self.is_overdue);
        match self.options.gaps {
            GapPolicy::Skip => Ok(()),
            GapPolicy::Zero if lost.count > MOST_ZEROS => {
                Err(Error::new(Action::Decode, LiveError::LongGap { count: lost.count, most: MOST_ZEROS }))
            }
            GapPolicy::Zero => {
                let payload = self.decoder.parameters().map_or(0, |p| u64::from(p.payload));
                self.output.zeros(lost.count * payload)
            }
            GapPolicy::Fail => {
                self.output.flush()?;
                Err(Error::new(Action::Decode, LiveError::LostForGood(lost)))
            }
        }
    }

    /// Updates the totals.
    fn count_up(&mut self, now: Instant) {
        self.received.parameters = self.decoder.parameters().copied();
        self.received.statistics = self.decoder.statistics();
        self.received.joined_at = self.decoder.begins_at();
        self.received.ended = self.decoder.has_ended();
        self.received.kernel_drops = self.drops.as_ref().and_then(Drops::count);
        self.received.time = now - self.started;
    }

    /// Ends the input: missing packets are lost.
    fn finish(mut self) -> Result<(Received, Output<'a>)> {
        if let Some(deframer) = &mut self.deframer {
            deframer.finish();
            self.received.broken_frames = deframer.broken();
        }
        self.give_up()?;
        self.count_up(Instant::now());
        Ok((self.received, self.output))
    }
}

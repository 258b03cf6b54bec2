//! The sender's side: payloads in, packets out.

use super::lane_sums::LaneSums;
use super::row::{GROUP, RepairRow, Sources, emptied, group_at, lanes, window_start};
use super::sets::SetRows;
use super::settings::{Ratio, SettingsError, StreamSettings};
use super::symbol_ring::SymbolRing;
#[cfg(feature = "trace")]
use super::trace::Trace;
use super::trace::{Probe, Silent, Span, Touch};
use crate::format::packet::{self, MAX_SEQ, Parameters, Profile, RowHeader};
use crate::gf256::kernel::{AlignedBytes, Backend, LINE};
use thiserror::Error;

/// Marks that end a stream: more than one, because packets get lost.
const END_MARKS: usize = 3;

/// Packets this young are likely still in the second cache of a processor that gains by asking ahead (measured with 2 MiB:
/// asking for younger ones cost more than it gave).
const NEAR: u64 = 1200;

/// Makes the packets of one stream.
///
/// # Guarantees
///
/// - A source packet is emitted before [`push`](Self::push) returns, and it is not changed by the code.
/// - With [`Profile::Bounded`] the work of a packet does not depend on the window.
/// - Memory is that of the window's symbols, of 48 sums for each block in it (24 with [`Profile::Classic`]), and a
///   mebibyte; symbols and sums take up to 192 bytes more than their own. It is allocated once.
///   [`Profile::Blocks`] keeps two windows and the repair symbols of one, [`Profile::ClassicBlocks`] two blocks.
#[derive(Debug)]
pub struct Encoder {
    parameters: Parameters,
    ratio: Ratio,
    backend: Backend,
    store: SymbolRing,
    /// Number of source packets so far.
    sent: u64,
    /// Number of rows so far.
    rows: u64,
    /// Number of sums and symbols that rows were added up from so far.
    added: u64,
    /// What the ratio owes, in repair packets times `ratio.source()`.
    owed: u32,
    /// Source packets since the last flush.
    unflushed: u64,
    generator: Generator,
    row: RepairRow,
    /// The row that is expected next, over a sliding window, and how many of its taps were asked for.
    ahead: RepairRow,
    asked: usize,
    /// Scratch: empty lists, a row's symbol, a packet.
    classes: Sources<'static>,
    symbol: AlignedBytes,
    out: Vec<u8>,
}

/// What rows are made from.
#[derive(Debug)]
enum Generator {
    /// Sums over the window, and the first packet that the receiver may still need.
    Sliding { sums: Box<LaneSums>, needed: u64 },
    /// Sums over the last complete block and over the one that grows; the rows that the former has not got yet.
    Blocks { closed: Box<LaneSums>, growing: Box<LaneSums>, pending: u64 },
    /// Reed-Solomon sets of the last complete window or tail.
    Sets(Box<SetRows>),
}

impl Encoder {
    /// An encoder for these settings.
    ///
    /// # Errors
    ///
    /// Those of [`StreamSettings::parameters`].
    pub fn new(settings: &StreamSettings, backend: Backend) -> Result<Encoder, SettingsError> {
        let parameters = settings.parameters()?;
        let Parameters { profile, window, block, .. } = parameters;
        let symbol_len = parameters.symbol_len();
        let sums = |window| LaneSums::new(backend, lanes(profile), block, window, symbol_len);
        let (generator, places) = match profile {
            Profile::Bounded | Profile::Classic => {
                (Generator::Sliding { sums: Box::new(sums(window)), needed: 0 }, u64::from(window))
            }
            Profile::ClassicBlocks => {
                let block = u32::from(block);
                let generator = Generator::Blocks {
                    closed: Box::new(sums(block)),
                    growing: Box::new(sums(block)),
                    pending: 0,
                };
                (generator, 2 * u64::from(block))
            }
            Profile::Blocks => (
                Generator::Sets(Box::new(SetRows::new(backend, &parameters, settings.ratio))),
                2 * u64::from(window),
            ),
        };
        Ok(Encoder {
            parameters,
            ratio: settings.ratio,
            backend,
            store: SymbolRing::new(places, symbol_len),
            sent: 0,
            rows: 0,
            added: 0,
            owed: 0,
            unflushed: 0,
            generator,
            row: RepairRow::default(),
            ahead: RepairRow::default(),
            asked: 0,
            classes: Default::default(),
            symbol: AlignedBytes::zeroed(symbol_len.next_multiple_of(LINE)),
            out: Vec::with_capacity(packet::REPAIR_OVERHEAD + symbol_len),
        })
    }

    /// What the packets say of the stream.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Number of source packets so far.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Number of repair packets so far.
    pub fn repaired(&self) -> u64 {
        self.rows
    }

    /// Number of packets, and sums of packets, that repair packets were added up from so far: what a repair packet
    /// costs, in packet additions. Not counted with [`Profile::Blocks`], whose repair packets are made a set at
    /// a time.
    pub fn added(&self) -> u64 {
        self.added
    }

    /// Takes the next payload; emits its source packet, then the repair packets that are due.
    ///
    /// # Errors
    ///
    /// [`PushError::TooLong`] when the payload is longer than the settings allow, [`PushError::Full`] after 2^63
    /// packets. Nothing is emitted then.
    pub fn push(&mut self, payload: &[u8], emit: &mut dyn FnMut(&[u8])) -> Result<(), PushError> {
        self.push_with(payload, emit, &mut Silent)
    }

    /// [`push`](Self::push) that also tells what it touches in memory: for models of caches.
    ///
    /// # Errors
    ///
    /// Those of `push`.
    #[cfg(feature = "trace")]
    pub fn push_traced(
        &mut self,
        payload: &[u8],
        emit: &mut dyn FnMut(&[u8]),
        trace: &mut Trace<'_>,
    ) -> Result<(), PushError> {
        self.push_with(payload, emit, trace)
    }

    pub(super) fn push_with(
        &mut self,
        payload: &[u8],
        emit: &mut dyn FnMut(&[u8]),
        probe: &mut impl Probe,
    ) -> Result<(), PushError> {
        let backend = self.backend;
        if payload.len() > self.store.full_payload() {
            return Err(PushError::TooLong { len: payload.len(), most: self.parameters.payload });
        }
        let seq = self.sent;
        if seq >= MAX_SEQ - u64::from(self.parameters.window) - 1 {
            return Err(PushError::Full);
        }
        probe.touch(backend, Touch::Read(Span::of(std::slice::from_ref(self))));
        let checksum = self.store.put_new(self.parameters.stream_id, seq, payload);
        probe.touch(backend, Touch::Copy { to: self.store.symbol(seq), from: payload });
        probe.touch(backend, Touch::Write(Span::of(self.store.front(seq))));
        probe.touch(backend, Touch::Read(Span::of(self.store.symbol(seq))));
        // The next packet's place was last used a window ago.
        self.backend.prefetch(self.store.symbol(seq + 1));
        self.sent += 1;
        self.unflushed += 1;
        if payload.len() == self.store.full_payload() {
            let header = packet::source_header(&self.parameters, seq);
            let packet = self.store.packet(seq, &header);
            probe.touch(backend, Touch::Write(Span::of(&packet[..header.len()])));
            emit(packet);
        } else {
            packet::write_source(&mut self.out, &self.parameters, seq, payload, checksum);
            probe.touch(backend, Touch::Copy { to: &self.out, from: payload });
            emit(&self.out);
        }
        self.absorb(emit, probe);
        self.owed += u32::from(self.ratio.repair());
        while self.owed >= u32::from(self.ratio.source()) {
            self.owed -= u32::from(self.ratio.source());
            self.emit_row(emit, probe);
            self.look_ahead(probe);
        }
        self.ask();
        Ok(())
    }

    /// Works out the row that is expected next.
    fn look_ahead(&mut self, probe: &mut impl Probe) {
        let Generator::Sliding { sums, .. } = &self.generator else { return };
        let left = u32::from(self.ratio.source()).saturating_sub(self.owed);
        let end = self.sent + u64::from(left.div_ceil(u32::from(self.ratio.repair())));
        let first = window_start(&self.parameters, end).max(sums.start());
        let count = u32::try_from(end - first).unwrap_or(0);
        if (1..=self.parameters.window).contains(&count) {
            self.ahead.generate(&self.parameters, self.rows, first, count);
            self.ahead.tell(self.backend, probe);
            self.asked = 0;
        }
    }

    /// Asks for some of the taps of the row that is expected next: they come from far away, and there is time until
    /// then. Those that are not there yet are passed over.
    fn ask(&mut self) {
        let taps = &self.ahead.taps[self.asked..];
        let share =
            self.ahead.taps.len() * usize::from(self.ratio.repair()) / usize::from(self.ratio.source()) + 1;
        let near = self.sent.saturating_sub(NEAR);
        let symbols = self.store.symbols_from(self.ahead.first);
        for &(column, _) in taps.iter().take(share).filter(|&&(column, _)| column < near) {
            self.backend.prefetch(symbols.symbol(column));
        }
        self.asked += share.min(taps.len());
    }

    /// Takes the newest symbol into the sums.
    fn absorb(&mut self, emit: &mut dyn FnMut(&[u8]), probe: &mut impl Probe) {
        let seq = self.sent - 1;
        let block = u64::from(self.parameters.block);
        match &mut self.generator {
            Generator::Sliding { sums, needed } => {
                let window = u64::from(self.parameters.window);
                if self.sent > sums.start() + window || *needed >= sums.start() + block {
                    let start = window_start(&self.parameters, self.sent).max(*needed / block * block);
                    sums.leave(start.min(sums.current()), probe);
                }
                let place = seq - sums.current();
                sums.push(Some(self.store.symbol(seq)), probe);
                if self.parameters.profile == Profile::Bounded {
                    self.mix(seq, place, probe);
                }
            }
            Generator::Blocks { growing, .. } => {
                growing.push(Some(self.store.symbol(seq)), probe);
                if self.sent.is_multiple_of(block) {
                    self.close(emit, probe);
                }
            }
            Generator::Sets(_) => {
                if self.sent.is_multiple_of(u64::from(self.parameters.window)) {
                    self.close(emit, probe);
                }
            }
        }
    }

    /// Mixes the group that packet `seq`, in this place of its block, is the last of, if it is: from now on rows take
    /// sums of three for taps there, and all its packets were sent.
    fn mix(&mut self, seq: u64, place: u64, probe: &mut impl Probe) {
        let group = group_at(self.parameters.block, seq, place);
        if let Some(group) = group.filter(|group| group[GROUP - 1] == seq) {
            let rows = self.store.symbols_mut(group);
            self.backend.mix(rows);
            probe.touch(self.backend, Touch::Mix { rows: group.map(|seq| self.store.symbol(seq)) });
        }
    }

    /// Ends the block or window that grows: emits what is left of the rows of the one before, and turns to it.
    fn close(&mut self, emit: &mut dyn FnMut(&[u8]), probe: &mut impl Probe) {
        while self.emit_row(emit, probe) {}
        match &mut self.generator {
            Generator::Sliding { .. } => {}
            Generator::Blocks { closed, growing, pending } => {
                std::mem::swap(closed, growing);
                growing.reset(closed.start() + u64::from(self.parameters.block), probe);
                *pending = self.ratio.of(closed.end() - closed.start());
            }
            Generator::Sets(rows) => {
                let window = u64::from(self.parameters.window);
                let first = (self.sent - 1) / window * window;
                rows.turn_to(first, (self.sent - first) as u32);
            }
        }
    }

    /// Emits the next row: of the sliding window, or of the last complete block or window if it lacks one.
    /// Returns whether there was one.
    fn emit_row(&mut self, emit: &mut dyn FnMut(&[u8]), probe: &mut impl Probe) -> bool {
        let backend = self.backend;
        let sums = match &mut self.generator {
            Generator::Sliding { sums, .. } => {
                if sums.start() == sums.end() {
                    return false;
                }
                sums
            }
            Generator::Blocks { closed, pending, .. } => {
                if *pending == 0 {
                    return false;
                }
                *pending -= 1;
                closed
            }
            Generator::Sets(rows) => {
                let Some((header, symbol)) = rows.next(self.rows, &self.store, probe) else {
                    return false;
                };
                self.rows += 1;
                packet::write_repair(&mut self.out, &self.parameters, &header, symbol);
                tell_packet(&self.out, symbol, backend, probe);
                emit(&self.out);
                return true;
            }
        };
        let (first, count) = (sums.start(), (sums.end() - sums.start()) as u32);
        if self.ahead.is(self.rows, first, count) {
            std::mem::swap(&mut self.row, &mut self.ahead);
            self.row.tell(backend, probe);
            self.ahead.tell(backend, probe);
        } else {
            self.row.generate(&self.parameters, self.rows, first, count);
            self.row.tell(backend, probe);
        }
        let mut classes: Sources<'_> = std::mem::take(&mut self.classes);
        sums.select(&self.row, &mut classes);
        let symbols = self.store.symbols_from(first);
        for &(column, class) in &self.row.taps {
            classes[usize::from(class)].push(symbols.symbol(column));
        }
        self.added += classes.iter().map(Vec::len).sum::<usize>() as u64;
        let (sources, factor) = (classes.each_ref().map(|class| &class[..]), self.row.factor);
        sources.iter().for_each(|class| probe.touch(backend, Touch::Write(Span::of(class))));
        backend.gather(&sources, factor, &mut self.symbol);
        probe.touch(backend, Touch::Gather { classes: &sources, factor, dst: &self.symbol });
        self.classes = emptied(classes);
        let header = RowHeader { row: self.rows, first, count, part: 0 };
        self.rows += 1;
        let symbol = &self.symbol[..self.parameters.symbol_len()];
        packet::write_repair(&mut self.out, &self.parameters, &header, symbol);
        tell_packet(&self.out, symbol, backend, probe);
        emit(&self.out);
        true
    }

    /// Emits repair packets beyond the ratio, so that a slow stream need not wait for the next payloads: for the
    /// packets since the last flush (one block of them at most) as many as the ratio gives, rounded up. With
    /// [`Profile::Blocks`] also those that the last complete window still lacks.
    pub fn flush(&mut self, emit: &mut dyn FnMut(&[u8])) {
        let sources = self.unflushed.min(u64::from(self.parameters.block));
        self.unflushed = 0;
        self.emit_extra(sources, emit);
    }

    fn emit_extra(&mut self, sources: u64, emit: &mut dyn FnMut(&[u8])) {
        if sources == 0 {
            return;
        }
        match &mut self.generator {
            Generator::Sliding { .. } => {
                for _ in 0..self.ratio.of(sources) {
                    self.emit_row(emit, &mut Silent);
                }
            }
            Generator::Blocks { .. } => {
                while self.emit_row(emit, &mut Silent) {}
                // The block that grows lends itself for as many rows as it has earned, and grows on.
                let Generator::Blocks { closed, growing, pending } = &mut self.generator else { return };
                *pending = self.ratio.of(sources.min(growing.end() - growing.start()));
                std::mem::swap(closed, growing);
                while self.emit_row(emit, &mut Silent) {}
                if let Generator::Blocks { closed, growing, .. } = &mut self.generator {
                    std::mem::swap(closed, growing);
                }
            }
            Generator::Sets(_) => {
                while self.emit_row(emit, &mut Silent) {}
                // What the window that fills has got since: one set more.
                let tail = sources.min(self.sent % u64::from(self.parameters.window));
                if tail > 0 {
                    if let Generator::Sets(rows) = &mut self.generator {
                        rows.turn_to(self.sent - tail, tail as u32);
                    }
                    while self.emit_row(emit, &mut Silent) {}
                }
            }
        }
    }

    /// Ends the stream: emits repair packets for the packets that fewer rows cover than the others, and the marks
    /// of the end.
    ///
    /// With a sliding window as many as the ratio gives for a quarter of the window (or one block, or all packets
    /// if they are fewer); otherwise all that the last blocks have not got yet.
    pub fn finish(&mut self, emit: &mut dyn FnMut(&[u8])) {
        let Parameters { window, block, .. } = self.parameters;
        match &mut self.generator {
            Generator::Sliding { .. } => {
                let tail = u64::from(window / 4).max(u64::from(block));
                self.emit_extra(tail.min(self.sent), emit);
            }
            Generator::Blocks { .. } => self.emit_extra(u64::from(block), emit),
            Generator::Sets(_) => {
                if !self.sent.is_multiple_of(u64::from(window)) {
                    self.close(emit, &mut Silent);
                }
                while self.emit_row(emit, &mut Silent) {}
            }
        }
        for _ in 0..END_MARKS {
            emit(&packet::mark(&self.parameters, self.sent, true));
        }
    }

    /// Emits a mark that says how many packets were sent, for when there is nothing else to send: the receiver
    /// learns that the last packets are missing.
    pub fn keep_alive(&self, emit: &mut dyn FnMut(&[u8])) {
        emit(&packet::mark(&self.parameters, self.sent, false));
    }

    /// Tells that the receiver needs nothing before packet `oldest_needed`: rows will not cover more than they
    /// must. Optional, and ignored where windows do not slide or the number is no news.
    pub fn acknowledge(&mut self, oldest_needed: u64) {
        if let Generator::Sliding { needed, .. } = &mut self.generator {
            *needed = oldest_needed.min(self.sent).max(*needed);
        }
    }
}

/// A repair packet was written and its checksum computed.
fn tell_packet(out: &[u8], symbol: &[u8], backend: Backend, probe: &mut impl Probe) {
    let (head, body) = out.split_at(out.len() - symbol.len());
    probe.touch(backend, Touch::Write(Span::of(head)));
    probe.touch(backend, Touch::Copy { to: body, from: symbol });
    probe.touch(backend, Touch::Read(Span::of(out)));
}

/// Why a payload is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PushError {
    /// It is longer than the settings allow.
    #[error("a payload of {len} bytes is longer than the stream's largest of {most}")]
    TooLong {
        /// Its length.
        len: usize,
        /// The most that is allowed.
        most: u16,
    },
    /// The stream has had all its numbers.
    #[error("the stream has no sequence number left")]
    Full,
}

#[cfg(all(test, feature = "trace"))]
impl Encoder {
    /// All that holds bytes of packets, by address.
    pub(super) fn memory(&self) -> Vec<&[u8]> {
        let mut parts = vec![self.store.memory(), &self.symbol];
        match &self.generator {
            Generator::Sliding { sums, .. } => parts.extend(sums.memory()),
            Generator::Blocks { closed, growing, .. } => {
                parts.extend(closed.memory().into_iter().chain(growing.memory()));
            }
            Generator::Sets(rows) => parts.extend(rows.memory()),
        }
        // Blocks change places.
        parts.sort_by_key(|part| part.as_ptr());
        parts
    }
}

//! The memory accesses of an encoder, in its order: for models of caches.
//!
//! The tracer is one more type that performs the operations of an encoder. It performs each, and tells the accesses
//! with the very rows that it worked on and with the loops of the kernels. The way of a payload into its source packet
//! is no operation: it is told from the place where its bytes will stand, before they do.

use super::super::operation::{Operation, Perform};
use super::{Encoder, PushError};
use crate::format::packet::HEADER;
use crate::gf256::EXP;
use crate::gf256::kernel::{Access, AccessKind, AlignedBytes, Backend, LINE, Walk, trace};

/// The part of an encoder's work that touches memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Packets: payloads come, checksums, headers, copies; and the choice of the next row.
    Packet,
    /// Sums of packets are kept up to date.
    Sums,
    /// A row is added up.
    Row,
}

impl Encoder {
    /// As [`push`](Self::push), and tells its memory accesses: for models of caches.
    ///
    /// # Errors
    ///
    /// Those of `push`.
    pub fn push_traced(
        &mut self,
        payload: &[u8],
        emit: &mut dyn FnMut(&[u8]),
        trace: &mut Trace<'_>,
    ) -> Result<(), PushError> {
        self.sender.admit(payload)?;
        self.tell_source(payload, trace);
        let mut tracer = Tracer { backend: self.sender.backend, trace };
        self.push_on(&mut tracer, payload, emit)
    }

    /// Tells the accesses by which the next source packet is made.
    fn tell_source(&mut self, payload: &[u8], trace: &mut Trace<'_>) {
        trace.packet(AccessKind::Read, Span::of(self));
        trace.packet(AccessKind::Read, Span::of(self.rows.get::<Backend>()));
        let store = &self.sender.store;
        let symbol = store.symbol(self.sender.sent);
        let in_front = |len| Span { address: symbol.as_ptr().addr() - len, len };
        trace.copy(symbol, payload);
        // The checksum also covers the stream's and the packet's number, which stand in the line in front.
        trace.packet(AccessKind::Write, in_front(LINE));
        trace.packet(AccessKind::Read, Span::of(symbol));
        trace.packet(AccessKind::Write, in_front(HEADER));
    }
}

/// Performs an encoder's operations, and tells of them.
struct Tracer<'t, 'v> {
    backend: Backend,
    trace: &'t mut Trace<'v>,
}

impl Perform for Tracer<'_, '_> {
    fn perform(&mut self, mut operation: Operation<'_>) {
        operation.run(self.backend);
        self.trace.tell(self.backend, &operation);
    }
}

/// A stretch of memory.
#[derive(Clone, Copy)]
struct Span {
    address: usize,
    len: usize,
}

impl Span {
    /// The memory of a value.
    fn of<T: ?Sized>(value: &T) -> Span {
        Span { address: std::ptr::from_ref(value).addr(), len: size_of_val(value) }
    }

    /// Its pieces of up to a line each.
    fn lines(self) -> impl Iterator<Item = Span> {
        (0..self.len)
            .step_by(LINE)
            .map(move |at| Span { address: self.address + at, len: LINE.min(self.len - at) })
    }

    fn tell(self, kind: AccessKind, visit: &mut dyn FnMut(Access)) {
        let Span { address, len } = self;
        if len > 0 {
            visit(Access { address, len, kind });
        }
    }
}

/// Tells each access of [`Encoder::push_traced`].
///
/// Told are payloads, symbols, sums, tables, rows and their lists, with their real addresses and in the order of the
/// backend's loops, and for each step the same few lines of the stack. Not told are registers, prefetches, the
/// allocator, constants of checksums, and the use of emitted packets.
pub struct Trace<'v> {
    visit: &'v mut dyn FnMut(Access, Stage),
    /// The sums of a row, one for each class but the first, if they are told as made in memory.
    in_memory: Option<AlignedBytes>,
    frame: trace::Frame<FRAME>,
}

/// Bytes of the stack that a step and its callers use.
const FRAME: usize = 1024;

impl<'v> Trace<'v> {
    /// A trace that tells `visit` each access.
    pub fn new(visit: &'v mut dyn FnMut(Access, Stage)) -> Trace<'v> {
        Trace { visit, in_memory: None, frame: trace::Frame::new() }
    }

    /// A trace that tells the accesses of the same additions made one at a time: each reads a packet and a sum in
    /// memory, and writes the sum. Encoders without sums of many rows do that. Nothing runs like that here; it is for
    /// comparison.
    pub fn one_at_a_time(visit: &'v mut dyn FnMut(Access, Stage)) -> Trace<'v> {
        Trace { visit, in_memory: Some(AlignedBytes::zeroed(0)), frame: trace::Frame::new() }
    }

    /// Tells of a step: lines of the stack, then the accesses that `accesses` tells.
    fn step(&mut self, stage: Stage, accesses: impl FnOnce(&mut dyn FnMut(Access))) {
        let visit = &mut |access| (self.visit)(access, stage);
        self.frame.enter(visit);
        accesses(visit);
    }

    /// Tells of bytes that were read or written outside of any walk over rows.
    fn packet(&mut self, kind: AccessKind, span: Span) {
        self.step(Stage::Packet, |visit| span.tell(kind, visit));
    }

    /// Tells of bytes that were copied.
    fn copy(&mut self, to: &[u8], from: &[u8]) {
        self.copy_spans(Span::of(to), Span::of(from));
    }

    fn copy_spans(&mut self, to: Span, from: Span) {
        self.step(Stage::Packet, |visit| {
            // A line of each at a time, as far as either goes.
            let (mut to, mut from) = (to.lines(), from.lines());
            loop {
                let (to, from) = (to.next(), from.next());
                from.into_iter().for_each(|from| from.tell(AccessKind::Read, visit));
                to.into_iter().for_each(|to| to.tell(AccessKind::Write, visit));
                if to.is_none() && from.is_none() {
                    break;
                }
            }
        });
    }

    /// Tells of an operation that has just been performed.
    fn tell(&mut self, backend: Backend, operation: &Operation<'_>) {
        match operation {
            Operation::Clear { dst } => self.packet(AccessKind::Write, Span::of(&**dst)),
            Operation::Copy { dst, src } => self.copy(dst, src),
            Operation::Add { dst, src } => {
                self.step(Stage::Sums, |visit| trace::add(backend, backend.walk(), dst, src, visit));
            }
            Operation::Spread { dst, src, factors } => {
                self.packet(AccessKind::Read, Span::of(&EXP));
                let (dst, one_at_a_time) = (dst.each_ref().map(|dst| &**dst), self.in_memory.is_some());
                self.step(Stage::Sums, |visit| match one_at_a_time {
                    false => trace::spread(backend, dst, src, *factors, visit),
                    true => dst.iter().for_each(|dst| trace::add(backend, Walk::Line, dst, src, visit)),
                });
            }
            Operation::Mix { rows } => {
                let rows = rows.each_ref().map(|row| &**row);
                self.step(Stage::Sums, |visit| trace::mix(backend, rows, visit));
            }
            Operation::Turn { total, ended, begun, left } => {
                self.step(Stage::Sums, |visit| trace::turn(backend, [total, ended, begun], left, visit));
            }
            Operation::Generate { row, .. } => {
                self.packet(AccessKind::Write, Span::of(&**row));
                self.packet(AccessKind::Write, Span::of(&row.taps[..]));
            }
            Operation::Gather { classes, factor, dst } => {
                classes.iter().for_each(|class| self.packet(AccessKind::Write, Span::of(*class)));
                let mut in_memory = self.in_memory.take();
                self.step(Stage::Row, |visit| match &mut in_memory {
                    None => trace::gather(backend, classes, *factor, dst, visit),
                    Some(sums) => one_at_a_time(sums, backend, classes, dst, visit),
                });
                self.in_memory = in_memory;
            }
            Operation::Encode { plan, src, dst } => {
                let dst: Vec<&[u8]> = dst.iter().map(|row| &**row).collect();
                self.step(Stage::Row, |visit| plan.trace(src, &dst, visit));
            }
            Operation::Write { out, symbol, .. } => {
                let (head, body) = out.split_at(out.len() - symbol.len());
                self.packet(AccessKind::Write, Span::of(head));
                self.copy(body, symbol);
                // The checksum reads these.
                self.packet(AccessKind::Read, Span::of(&out[..]));
            }
        }
    }
}
/// The accesses of a row whose classes are summed in memory: the first in `dst`, the others in `sums`.
fn one_at_a_time(
    sums: &mut AlignedBytes,
    backend: Backend,
    classes: &[&[&[u8]]],
    dst: &[u8],
    visit: &mut dyn FnMut(Access),
) {
    let stride = dst.len().next_multiple_of(LINE);
    if sums.len() != stride * (classes.len() - 1) {
        *sums = AlignedBytes::zeroed(stride * (classes.len() - 1));
    }
    let sums = sums.chunks_exact(stride).map(|sum| &sum[..dst.len()]);
    let sums: Vec<&[u8]> = std::iter::once(dst).chain(sums).collect();
    for (class, sum) in classes.iter().zip(&sums) {
        class.iter().for_each(|row| trace::add(backend, Walk::Line, sum, row, visit));
    }
    // Horner's rule goes from the highest class that is not empty.
    let used = classes.iter().rposition(|class| !class.is_empty()).unwrap_or(0);
    for pair in sums[..=used].windows(2).rev() {
        trace::add(backend, Walk::Line, pair[0], pair[1], visit);
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::settings::{Ratio, StreamSettings};
    use super::*;
    use crate::format::packet::Profile;
    use std::ops::Range;

    fn encoder(profile: Profile, backend: Backend) -> Encoder {
        let settings = StreamSettings {
            stream_id: 1,
            window: 200,
            block: 48,
            payload: 290,
            profile,
            ratio: Ratio::new(1, 4).expect("neither is 0"),
            limit: 1 << 20,
        };
        Encoder::new(&settings, backend).expect("valid settings")
    }

    fn payload(seq: usize) -> Vec<u8> {
        (0..if seq % 7 == 3 { 100 } else { 290 }).map(|i| (seq * 31 + i * 7 + i * i / 5) as u8).collect()
    }

    fn range(access: &Access) -> Range<usize> {
        access.address..access.address + access.len
    }

    fn within(all: &[Range<usize>], address: usize) -> bool {
        all.iter().any(|range| range.contains(&address))
    }

    /// Each changed byte of the encoder's memory was told as written, with its address; and the packets are the same.
    #[test]
    fn every_byte_that_changes_is_told() {
        for backend in Backend::available() {
            for profile in Profile::ALL {
                let (mut traced, mut plain) = (encoder(profile, backend), encoder(profile, backend));
                for seq in 0..600 {
                    let before: Vec<Vec<u8>> = traced.memory().iter().map(|part| part.to_vec()).collect();
                    let (mut writes, mut expected, mut packets) = (Vec::new(), Vec::new(), Vec::new());
                    let mut visit = |access: Access, _| {
                        if matches!(access.kind, AccessKind::Write | AccessKind::Stream) {
                            writes.push(range(&access));
                        }
                    };
                    let payload = payload(seq);
                    plain.push(&payload, &mut |packet| expected.push(packet.to_vec())).expect("it fits");
                    let mut emit = |packet: &[u8]| packets.push(packet.to_vec());
                    traced.push_traced(&payload, &mut emit, &mut Trace::new(&mut visit)).expect("it fits");
                    assert!(packets == expected);
                    for (part, before) in traced.memory().iter().zip(before) {
                        for (i, _) in
                            part.iter().zip(&before).enumerate().filter(|(_, (now, was))| now != was)
                        {
                            let address = part.as_ptr().addr() + i;
                            assert!(within(&writes, address), "{backend:?} {profile:?} {seq} {i}");
                        }
                    }
                }
            }
        }
    }

    /// The bytes from which rows are gathered are those of the additions that the encoder counts.
    #[test]
    fn additions_are_those_that_the_encoder_counts() {
        for backend in Backend::available() {
            for profile in [Profile::Bounded, Profile::Classic, Profile::ClassicBlocks] {
                let mut encoder = encoder(profile, backend);
                for seq in 0..600 {
                    let memory: Vec<Range<usize>> = encoder
                        .memory()
                        .iter()
                        .map(|part| part.as_ptr().addr()..part.as_ptr().addr() + part.len())
                        .collect();
                    let (mut gathered, mut one_by_one) = (0, 0);
                    let before = encoder.added();
                    let mut visit = |access: Access, stage| {
                        let read = stage == Stage::Row && access.kind == AccessKind::Read;
                        if read && within(&memory, access.address) {
                            gathered += access.len;
                        }
                    };
                    let symbol = (290 + 6usize).next_multiple_of(LINE);
                    let mut trace = Trace::new(&mut visit);
                    encoder.push_traced(&payload(seq), &mut |_| {}, &mut trace).expect("it fits");
                    assert_eq!(gathered as u64, (encoder.added() - before) * symbol as u64);
                    let before = (encoder.added(), encoder.repaired());
                    let mut visit = |access: Access, stage| {
                        let of_row = stage == Stage::Row && access.kind != AccessKind::Stack;
                        one_by_one += access.len * usize::from(of_row);
                    };
                    let mut trace = Trace::one_at_a_time(&mut visit);
                    encoder.push_traced(&payload(seq), &mut |_| {}, &mut trace).expect("it fits");
                    // Three rows for each addition, and for the products of the higher classes.
                    let rows = encoder.repaired() - before.1;
                    let products = if profile == Profile::Bounded { 3 } else { 1 };
                    let additions = encoder.added() - before.0 + products * rows;
                    assert_eq!(one_by_one as u64, additions * 3 * symbol as u64);
                }
            }
        }
    }

    #[test]
    fn a_copy_of_nothing_and_of_something_longer_is_told_whole() {
        let (long, short) = ([0u8; 150], [0u8; 10]);
        for (to, from) in [(&long[..], &short[..]), (&short, &long), (&long, &[])] {
            let mut told = [0; 2];
            let mut visit = |access: Access, _| match access.kind {
                AccessKind::Stack => {}
                kind => told[usize::from(kind == AccessKind::Write)] += access.len,
            };
            Trace::new(&mut visit).copy(to, from);
            assert_eq!(told, [from.len(), to.len()]);
        }
    }
}

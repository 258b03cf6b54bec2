//! What an encoder touches in memory, in its order: for models of caches.
//!
//! Encoder, sums and store tell a [`Probe`] of each step beside doing it, with the very rows that it worked on.
//! [`Silent`] hears nothing, and compiles to nothing; [`Trace`] turns steps into accesses, with the loops of the
//! kernels.

// Without the feature steps are told to nobody who reads them.
#![cfg_attr(not(feature = "trace"), allow(dead_code))]

use crate::block::Plan;
#[cfg(feature = "trace")]
use crate::gf256::kernel::{Access, AccessKind, AlignedBytes, LINE, trace};
use crate::gf256::kernel::{Backend, Walk};

/// One step of an encoder, just done.
pub(super) enum Touch<'a> {
    /// Bytes were read.
    Read(Span),
    /// Bytes were written.
    Write(Span),
    /// Bytes were written from others.
    Copy { to: &'a [u8], from: &'a [u8] },
    /// The sums of a row: [`Backend::gather`].
    Gather { classes: &'a [&'a [&'a [u8]]], factor: u8, dst: &'a [u8] },
    /// [`Backend::add`].
    Add { walk: Walk, dst: &'a [u8], src: &'a [u8] },
    /// [`Backend::spread`].
    Spread { dst: [&'a [u8]; 3], src: &'a [u8], factors: [u8; 2] },
    /// [`Backend::mix`].
    Mix { rows: [&'a [u8]; 4] },
    /// [`Backend::turn`] with the rows `total`, `ended` and `begun`.
    Turn { rows: [&'a [u8]; 3], left: &'a [u8] },
    /// [`Plan::run`].
    Plan { plan: &'a Plan, src: &'a [&'a [u8]], dst: &'a [&'a mut [u8]] },
}

/// A stretch of memory.
#[derive(Clone, Copy)]
pub(super) struct Span {
    address: usize,
    len: usize,
}

impl Span {
    /// Where these values stand.
    pub(super) fn of<T>(values: &[T]) -> Span {
        Span { address: values.as_ptr().addr(), len: size_of_val(values) }
    }

    #[cfg(feature = "trace")]
    fn tell(self, kind: AccessKind, visit: &mut dyn FnMut(Access)) {
        let Span { address, len } = self;
        if len > 0 {
            visit(Access { address, len, kind });
        }
    }
}

/// Told of each step, after it.
pub(super) trait Probe {
    fn touch(&mut self, backend: Backend, touch: Touch<'_>);
}

/// Hears nothing.
pub(super) struct Silent;

impl Probe for Silent {
    #[inline(always)]
    fn touch(&mut self, _: Backend, _: Touch<'_>) {}
}

/// What an encoder does when it touches memory.
#[cfg(feature = "trace")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Packets: payloads come, checksums, headers, copies; and which row is next.
    Packet,
    /// Sums of packets are kept up to date.
    Sums,
    /// A row is added up.
    Row,
}

#[cfg(feature = "trace")]
impl Touch<'_> {
    fn stage(&self) -> Stage {
        match self {
            Touch::Read(_) | Touch::Write(_) | Touch::Copy { .. } => Stage::Packet,
            Touch::Add { .. } | Touch::Spread { .. } | Touch::Mix { .. } | Touch::Turn { .. } => Stage::Sums,
            Touch::Gather { .. } | Touch::Plan { .. } => Stage::Row,
        }
    }
}

/// Tells each access of [`Encoder::push_traced`](super::Encoder::push_traced).
///
/// Payloads, symbols, sums, tables, rows and their lists are told, with their real addresses and in the order of the
/// backend's loops, and for each step some lines of the stack, the same ones; registers, prefetches, the allocator,
/// constants of checksums, and what becomes of emitted packets are not.
#[cfg(feature = "trace")]
pub struct Trace<'v> {
    visit: &'v mut dyn FnMut(Access, Stage),
    /// The sums of a row, one for each class but the first, where they are told as made in memory.
    in_memory: Option<AlignedBytes>,
    frame: trace::Frame<FRAME>,
}

/// Bytes of the stack that a step uses, and those around it.
#[cfg(feature = "trace")]
const FRAME: usize = 1024;

#[cfg(feature = "trace")]
impl<'v> Trace<'v> {
    /// Tells what the encoder does.
    pub fn new(visit: &'v mut dyn FnMut(Access, Stage)) -> Trace<'v> {
        Trace { visit, in_memory: None, frame: trace::Frame::new() }
    }

    /// Tells what the same additions touch if they are made one at a time, as encoders do that have no sums of many
    /// rows: each reads a packet and a sum in memory, and writes the sum. Nothing runs like that here; it is what
    /// others are compared with.
    pub fn one_at_a_time(visit: &'v mut dyn FnMut(Access, Stage)) -> Trace<'v> {
        Trace { visit, in_memory: Some(AlignedBytes::zeroed(0)), frame: trace::Frame::new() }
    }
}

#[cfg(feature = "trace")]
impl Probe for Trace<'_> {
    fn touch(&mut self, backend: Backend, touch: Touch<'_>) {
        let stage = touch.stage();
        let visit = &mut |access| (self.visit)(access, stage);
        self.frame.enter(visit);
        match touch {
            Touch::Read(span) => span.tell(AccessKind::Read, visit),
            Touch::Write(span) => span.tell(AccessKind::Write, visit),
            Touch::Copy { to, from } => {
                // Ahead or behind, a line of each at a time.
                let (mut to, mut from) = (to.chunks(LINE), from.chunks(LINE));
                loop {
                    let (to, from) = (to.next(), from.next());
                    from.into_iter().for_each(|from| Span::of(from).tell(AccessKind::Read, visit));
                    to.into_iter().for_each(|to| Span::of(to).tell(AccessKind::Write, visit));
                    if to.is_none() && from.is_none() {
                        break;
                    }
                }
            }
            Touch::Gather { classes, factor, dst } => match &mut self.in_memory {
                None => trace::gather(backend, classes, factor, dst, visit),
                Some(sums) => one_at_a_time(sums, backend, classes, dst, visit),
            },
            Touch::Add { walk, dst, src } => trace::add(backend, walk, dst, src, visit),
            Touch::Spread { dst, src, factors } if self.in_memory.is_none() => {
                trace::spread(backend, dst, src, factors, visit);
            }
            Touch::Spread { dst, src, .. } => {
                dst.iter().for_each(|dst| trace::add(backend, Walk::Line, dst, src, visit));
            }
            Touch::Mix { rows } => trace::mix(backend, rows, visit),
            Touch::Turn { rows, left } => trace::turn(backend, rows, left, visit),
            Touch::Plan { plan, src, dst } => {
                let dst: Vec<&[u8]> = dst.iter().map(|row| &**row).collect();
                plan.trace(src, &dst, visit);
            }
        }
    }
}

/// The accesses of a row whose classes are summed in memory: the first in `dst`, the others in `sums`.
#[cfg(feature = "trace")]
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
    // By Horner's rule, the highest first, as far as classes are not empty.
    let used = classes.iter().rposition(|class| !class.is_empty()).unwrap_or(0);
    for pair in sums[..=used].windows(2).rev() {
        trace::add(backend, Walk::Line, pair[0], pair[1], visit);
    }
}

#[cfg(all(test, feature = "trace"))]
mod tests {
    use super::super::encoder::Encoder;
    use super::super::{Profile, Ratio, StreamSettings};
    use super::*;
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

    /// What changed in the encoder's memory was told as written, with its address; and packets are the same.
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

    /// Passes on what rows are gathered from.
    struct Gathers<'v>(Trace<'v>);

    impl Probe for Gathers<'_> {
        fn touch(&mut self, backend: Backend, touch: Touch<'_>) {
            if let Touch::Gather { .. } = touch {
                self.0.touch(backend, touch);
            }
        }
    }

    /// The bytes that rows are gathered from are those of the additions that the encoder counts.
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
                    let mut visit = |access: Access, _| {
                        if access.kind == AccessKind::Read && within(&memory, access.address) {
                            gathered += access.len;
                        }
                    };
                    let symbol = (290 + 6usize).next_multiple_of(LINE);
                    let mut probe = Gathers(Trace::new(&mut visit));
                    encoder.push_with(&payload(seq), &mut |_| {}, &mut probe).expect("it fits");
                    assert_eq!(gathered as u64, (encoder.added() - before) * symbol as u64);
                    let before = (encoder.added(), encoder.repaired());
                    let mut visit = |access: Access, _| {
                        one_by_one += access.len * usize::from(access.kind != AccessKind::Stack);
                    };
                    let mut probe = Gathers(Trace::one_at_a_time(&mut visit));
                    encoder.push_with(&payload(seq), &mut |_| {}, &mut probe).expect("it fits");
                    // Three for each addition, and for the products of the higher classes.
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
            Trace::new(&mut visit).touch(Backend::best(), Touch::Copy { to, from });
            assert_eq!(told, [from.len(), to.len()]);
        }
    }
}

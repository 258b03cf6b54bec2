//! A sender, a lossy line and a receiver.

use fec_core::gf256::kernel::Backend;
use fec_core::random::SplitMix64;
use fec_core::window::{Decoder, Encoder, Event, Limits, Order, Profile, Ratio, StreamSettings};

pub(crate) fn settings(profile: Profile, window: u32, payload: u16) -> StreamSettings {
    StreamSettings {
        stream_id: 0x0123_4567_89AB_CDEF,
        window,
        block: 240,
        payload,
        profile,
        ratio: Ratio::new(1, 6).unwrap(),
        limit: 64 << 20,
    }
}

/// The payload of packet `seq`: its length varies, its bytes follow from the number. (If `most` is at least 400, the
/// ratio decides the number of rows although lengths differ.)
pub(crate) fn payload(seq: u64, most: u16) -> Vec<u8> {
    let mut noise = SplitMix64::new(seq);
    let len = if noise.index(16) == 0 { noise.index(usize::from(most) + 1) } else { usize::from(most) };
    (0..len.div_ceil(8)).flat_map(|_| noise.next().to_le_bytes()).take(len).collect()
}

/// All packets of a stream of `count` payloads.
pub(crate) fn packets(settings: &StreamSettings, backend: Backend, count: u64) -> Vec<Vec<u8>> {
    let mut encoder = Encoder::new(settings, backend).unwrap();
    let mut packets = Vec::new();
    for seq in 0..count {
        encoder.push(&payload(seq, settings.payload), &mut |p: &[u8]| packets.push(p.to_vec())).unwrap();
    }
    encoder.finish(&mut |p: &[u8]| packets.push(p.to_vec()));
    packets
}

/// The output of a receiver.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Output {
    /// Numbers of the payloads, in the order they came.
    pub(crate) delivered: Vec<u64>,
    pub(crate) rebuilt: usize,
    pub(crate) gaps: Vec<(u64, u64)>,
    pub(crate) ended: bool,
}

impl Output {
    pub(crate) fn lost(&self) -> u64 {
        self.gaps.iter().map(|(_, count)| count).sum()
    }

    /// Takes the decoder's events; every payload must be the one that was sent.
    pub(crate) fn drain(&mut self, decoder: &mut Decoder, most: u16) {
        while let Some(event) = decoder.next() {
            match event {
                Event::Packet { seq, payload: bytes, rebuilt } => {
                    assert!(bytes == payload(seq, most), "packet {seq} has other bytes");
                    self.delivered.push(seq);
                    self.rebuilt += usize::from(rebuilt);
                }
                // The decoder names a long gap in pieces, as the window leaves it.
                Event::Gap { first, count } => match self.gaps.last_mut() {
                    Some((start, len)) if *start + *len == first => *len += count,
                    _ => self.gaps.push((first, count)),
                },
                Event::End => {
                    assert!(!self.ended);
                    self.ended = true;
                }
            }
        }
    }

    /// Asserts that every number up to `count` was given out once or named once.
    pub(crate) fn assert_complete(&self, count: u64, order: Order) {
        let mut seen = vec![0u8; count as usize];
        let gaps = self.gaps.iter().flat_map(|&(first, count)| first..first + count);
        self.delivered.iter().copied().chain(gaps).for_each(|seq| seen[seq as usize] += 1);
        assert!(seen.iter().all(|times| *times == 1), "{:?}", seen.iter().position(|times| *times != 1));
        assert!(order == Order::Immediate || self.delivered.is_sorted());
        assert!(self.ended);
    }
}

/// Receives packets and gives up at the end.
pub(crate) fn receive<'a>(
    packets: impl Iterator<Item = &'a [u8]>,
    backend: Backend,
    order: Order,
    most: u16,
) -> (Output, Decoder) {
    let mut decoder = Decoder::new(Limits { order, ..Limits::default() }, backend);
    let mut output = Output::default();
    for packet in packets {
        decoder.receive(packet);
        output.drain(&mut decoder, most);
    }
    decoder.give_up_before(u64::MAX);
    output.drain(&mut decoder, most);
    (output, decoder)
}

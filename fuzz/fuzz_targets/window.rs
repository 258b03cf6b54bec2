//! The decoder of live streams, driven by actions.
//!
//! There are two worlds. In the honest one an encoder sends a stream, and the network only loses, repeats and delays
//! packets: every payload that comes out is the one that was sent, none comes twice, and missing ones are named. In the
//! hostile one packets with right checksums come from anybody: nothing panics, no number comes twice, and the numbers
//! of [`Statistics`] fit the events.
#![no_main]

use arbitrary::{Arbitrary, Unstructured};
use fec_core::format::packet::{self, Parameters, Profile, RowHeader, payload_checksum};
use fec_core::gf256::kernel::Backend;
use fec_core::window::{Decoder, Encoder, Event, Limits, Order, Ratio, Received, StreamSettings};
use libfuzzer_sys::fuzz_target;
use std::collections::{HashSet, VecDeque};

/// Bytes of a window that suffices to find the faults of larger ones.
const WINDOW_BYTES: u64 = 1 << 22;

#[derive(Debug, Arbitrary)]
struct Case {
    profile: u8,
    window: u16,
    huge: bool,
    block: u16,
    payload: u8,
    columns: u16,
    immediate: bool,
    prompt: bool,
    ratio: (u8, u8),
    start: u64,
}

#[derive(Debug, Arbitrary)]
enum Honest {
    /// Payloads to send: their length and number.
    Send {
        len: u8,
        count: u8,
    },
    /// The packets sent next are lost.
    Lose(u8),
    /// Packets sent next are lost by the bits of this.
    LoseSome(u32),
    /// The packet sent last comes once more.
    Repeat,
    /// The packets sent next come later, by this many packets.
    Delay(u8),
    /// The receiver stops waiting.
    GiveUp(u8),
    Flush,
}

#[derive(Debug, Arbitrary)]
enum Hostile {
    /// Numbers are near the ones before, or anywhere.
    Source {
        step: i16,
        len: u8,
        fill: u8,
    },
    SourceFar {
        seq: u64,
        fill: u8,
    },
    Repair {
        step: i16,
        count: u32,
        row: u64,
        part: u32,
        len: u8,
        fill: u8,
    },
    Mark {
        step: i16,
        end: bool,
    },
    MarkFar {
        sent: u64,
        end: bool,
    },
    Other,
    GiveUp(u64),
    Unlock,
    /// The receiver asks for nothing until the next event.
    Hold,
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Unstructured::new(bytes);
    let Ok(is_honest) = bool::arbitrary(&mut input) else { return };
    let Ok(case) = Case::arbitrary(&mut input) else { return };
    if is_honest { honest(&case, &mut input) } else { hostile(&case, &mut input) }
});

fn profile(case: &Case) -> Profile {
    Profile::ALL[usize::from(case.profile) % Profile::ALL.len()]
}

fn limits(case: &Case) -> Limits {
    Limits {
        window_bytes: WINDOW_BYTES,
        columns: case.columns % 300,
        order: if case.immediate { Order::Immediate } else { Order::InOrder },
        prompt: case.prompt,
    }
}

/// The output so far, to be compared with what may come out.
#[derive(Default)]
struct Seen {
    given: HashSet<u64>,
    gaps: Vec<(u64, u64)>,
    next: u64,
    lost: u64,
}

impl Seen {
    fn look(&mut self, event: &Event<'_>, in_order: bool) {
        match *event {
            Event::Packet { seq, .. } => {
                assert!(self.given.insert(seq), "packet {seq} came twice");
                assert!(
                    !self.gaps.iter().any(|&(first, count)| (first..first + count).contains(&seq)),
                    "{seq} was named"
                );
                if in_order {
                    assert!(seq >= self.next, "packet {seq} comes behind {}", self.next);
                    self.next = seq + 1;
                }
            }
            Event::Gap { first, count } => {
                assert!(count > 0 && first.checked_add(count).is_some());
                assert!(first >= self.next);
                self.lost += count;
                self.next = first + count;
                // An attacker can make gaps wide: only some packets can have been given out.
                assert!(
                    !self.given.iter().any(|seq| (first..first + count).contains(seq)),
                    "a gap over what came"
                );
                self.gaps.push((first, count));
            }
            Event::End => {}
        }
    }
}

/// The bytes of payloads, which differ from place to place.
static NOISE: [u8; 1024] = {
    let (mut noise, mut state) = ([0; 1024], 1u32);
    let mut at = 0;
    while at < noise.len() {
        state = state.wrapping_mul(0x0019_660D).wrapping_add(0x3C6E_F35F);
        noise[at] = (state >> 24) as u8;
        at += 1;
    }
    noise
};

/// A payload that tells its number.
fn payload(seq: u64, len: usize) -> Vec<u8> {
    let mut payload = NOISE[seq as usize % 509..][..len].to_vec();
    let number = seq.to_le_bytes();
    let told = len.min(number.len());
    payload[..told].copy_from_slice(&number[..told]);
    payload
}

/// About the most packets of an input: more take longer, and show nothing more.
const MOST_SENT: usize = 300;

fn honest(case: &Case, input: &mut Unstructured<'_>) {
    let most = 16 + u16::from(case.payload);
    let settings = StreamSettings {
        stream_id: case.start,
        window: u32::from(case.window) % 200 + 1,
        block: case.block % 120 + 1,
        payload: most,
        profile: profile(case),
        ratio: Ratio::new(u16::from(case.ratio.0) % 20 + 1, u16::from(case.ratio.1) % 20 + 1).expect("not 0"),
        limit: WINDOW_BYTES,
    };
    let Ok(mut encoder) = Encoder::new(&settings, Backend::best()) else { return };
    let mut decoder = Decoder::new(limits(case), Backend::best());
    let (mut seen, mut lens): (Seen, Vec<usize>) = Default::default();
    let (mut lose, mut pattern, mut delay) = (0u32, 0u32, 0usize);
    let mut delayed: VecDeque<(usize, Vec<u8>)> = VecDeque::new();
    let mut last = Vec::new();
    let mut packets: Vec<Vec<u8>> = Vec::new();
    let mut sent = 0usize;
    while sent < MOST_SENT && !input.is_empty() {
        let Ok(action) = Honest::arbitrary(input) else { break };
        match action {
            Honest::Send { len, count } => {
                for _ in 0..count {
                    if sent + packets.len() >= MOST_SENT {
                        break;
                    }
                    let len = usize::from(len).min(usize::from(most));
                    encoder
                        .push(&payload(lens.len() as u64, len), &mut |packet| packets.push(packet.to_vec()))
                        .expect("it fits");
                    lens.push(len);
                }
            }
            Honest::Lose(count) => lose = lose.max(count.into()),
            Honest::LoseSome(bits) => pattern = bits,
            Honest::Repeat => packets.push(last.clone()),
            Honest::Delay(by) => delay = by.into(),
            Honest::GiveUp(behind) => {
                decoder.give_up_before((lens.len() as u64).saturating_sub(behind.into()));
            }
            Honest::Flush => delayed.iter_mut().for_each(|(at, _)| *at = 0),
        }
        for packet in packets.drain(..) {
            sent += 1;
            last.clone_from(&packet);
            let is_lost = lose > 0 || pattern & 1 == 1;
            (lose, pattern) = (lose.saturating_sub(1), pattern >> 1);
            if !is_lost {
                delayed.push_back((sent + delay, packet));
            }
            while let Some(at) = delayed.iter().position(|&(at, _)| at <= sent) {
                let (_, packet) = delayed.remove(at).expect("it was found");
                take(&mut decoder, &packet);
                give_out(&mut decoder, &mut seen, &lens);
            }
        }
    }
    encoder.finish(&mut |packet: &[u8]| delayed.push_back((0, packet.to_vec())));
    for (_, packet) in delayed {
        take(&mut decoder, &packet);
        give_out(&mut decoder, &mut seen, &lens);
    }
    decoder.give_up_before(u64::MAX);
    give_out(&mut decoder, &mut seen, &lens);
    let statistics = decoder.statistics();
    assert_eq!(statistics.disbelieved, 0, "an honest stream has no symbol that its sender would not make");
    assert_eq!(statistics.damaged + statistics.rejected + statistics.foreign, 0);
    if decoder.has_ended() {
        assert_eq!(decoder.pending(), None, "nothing is left behind the end");
    }
}

fn take(decoder: &mut Decoder, packet: &[u8]) {
    if packet.is_empty() {
        return;
    }
    let received = decoder.receive(packet);
    assert!(
        !matches!(
            received,
            Received::Conflict | Received::Foreign | Received::Mismatch | Received::Rejected(_)
        ),
        "{received:?} of an honest packet: {:?}, {:?}",
        packet::parse(packet),
        decoder.statistics()
    );
}

fn give_out(decoder: &mut Decoder, seen: &mut Seen, lens: &[usize]) {
    let in_order = false;
    while let Some(event) = decoder.next() {
        seen.look(&event, in_order);
        if let Event::Packet { seq, payload: got, .. } = event {
            assert_eq!(got, payload(seq, lens[seq as usize]), "packet {seq}");
        }
    }
}

fn hostile(case: &Case, input: &mut Unstructured<'_>) {
    let payload = 16 + u16::from(case.payload);
    let parameters = Parameters {
        profile: profile(case),
        stream_id: case.start,
        window: if case.huge { u32::from(case.window) + 1 } else { u32::from(case.window) % 600 + 1 },
        payload,
        block: case.block % 600 + 1,
    };
    if parameters.check().is_err() {
        return;
    }
    let mut decoder = Decoder::new(limits(case), Backend::best());
    let mut seen = Seen::default();
    let mut at = case.start % packet::MAX_SEQ;
    let (mut packet, mut holds) = (Vec::new(), false);
    for _ in 0..200 {
        if input.is_empty() {
            break;
        }
        let Ok(action) = Hostile::arbitrary(input) else { break };
        let step = |by: i16| at.saturating_add_signed(by.into()).min(packet::MAX_SEQ - 1);
        packet.clear();
        let mut parameters = parameters;
        match action {
            Hostile::Source { step: by, len, fill } => {
                at = step(by);
                source(&mut packet, &parameters, at, len, fill);
            }
            Hostile::SourceFar { seq, fill } => {
                at = seq % packet::MAX_SEQ;
                source(&mut packet, &parameters, at, 16, fill);
            }
            Hostile::Repair { step: by, count, row, part, len, fill } => {
                let first = step(by) / u64::from(parameters.block) * u64::from(parameters.block);
                let count = count % parameters.window + 1;
                let len = (6 + usize::from(len)).min(parameters.symbol_len());
                let symbol = vec![fill; len];
                packet::write_repair(
                    &mut packet,
                    &parameters,
                    &RowHeader { row: row % packet::MAX_SEQ, first, count, part },
                    &symbol,
                );
            }
            Hostile::Mark { step: by, end } => {
                packet.extend_from_slice(&packet::mark(&parameters, step(by), end))
            }
            Hostile::MarkFar { sent, end } => {
                packet.extend_from_slice(&packet::mark(&parameters, sent % packet::MAX_SEQ, end))
            }
            Hostile::Other => {
                parameters.stream_id ^= 1;
                source(&mut packet, &parameters, at, 3, 3);
            }
            Hostile::GiveUp(seq) => decoder.give_up_before(seq),
            Hostile::Unlock => {
                decoder.unlock();
                seen = Seen::default();
            }
            Hostile::Hold => holds = true,
        }
        if !packet.is_empty() {
            decoder.receive(&packet);
        }
        while !holds && let Some(event) = decoder.next() {
            seen.look(&event, !case.immediate);
        }
        holds &= packet.is_empty();
    }
}

fn source(out: &mut Vec<u8>, parameters: &Parameters, seq: u64, len: u8, fill: u8) {
    let payload = vec![fill; usize::from(len).min(usize::from(parameters.payload))];
    packet::write_source(
        out,
        parameters,
        seq,
        &payload,
        payload_checksum(parameters.stream_id, seq, &payload),
    );
}

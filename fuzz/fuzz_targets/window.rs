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

/// An honest network that loses, repeats and delays packets, and the receiver behind it.
struct Network {
    decoder: Decoder,
    seen: Seen,
    /// Lengths of the payloads that were sent.
    lens: Vec<usize>,
    /// Packets that were sent.
    sent: usize,
    /// The packet that was sent last.
    last: Vec<u8>,
    /// Number of packets that are lost next.
    lose: u32,
    /// Packets that are lost next, by bits.
    pattern: u32,
    /// Number of packets by which the next ones come later.
    delay: usize,
    /// Packets on their way, and the number of sent packets at which each comes.
    delayed: VecDeque<(usize, Vec<u8>)>,
}

impl Network {
    fn new(decoder: Decoder) -> Network {
        Network {
            decoder,
            seen: Seen::default(),
            lens: Vec::new(),
            sent: 0,
            last: Vec::new(),
            lose: 0,
            pattern: 0,
            delay: 0,
            delayed: VecDeque::new(),
        }
    }

    /// Sends a packet; those whose time has come arrive.
    fn send(&mut self, packet: Vec<u8>) {
        self.sent += 1;
        self.last.clone_from(&packet);
        let is_lost = self.lose > 0 || self.pattern & 1 == 1;
        (self.lose, self.pattern) = (self.lose.saturating_sub(1), self.pattern >> 1);
        if !is_lost {
            self.delayed.push_back((self.sent + self.delay, packet));
        }
        while let Some(at) = self.delayed.iter().position(|&(at, _)| at <= self.sent) {
            let (_, packet) = self.delayed.remove(at).expect("it was found");
            self.arrive(&packet);
        }
    }

    /// Gives a packet to the receiver, which accepts it.
    fn arrive(&mut self, packet: &[u8]) {
        if !packet.is_empty() {
            let received = self.decoder.receive(packet);
            assert!(
                !matches!(
                    received,
                    Received::Conflict | Received::Foreign | Received::Mismatch | Received::Rejected(_)
                ),
                "{received:?} of an honest packet: {:?}, {:?}",
                packet::parse(packet),
                self.decoder.statistics()
            );
        }
        self.give_out();
    }

    /// Compares the payloads that come out with those that were sent.
    fn give_out(&mut self) {
        let in_order = false;
        while let Some(event) = self.decoder.next() {
            self.seen.look(&event, in_order);
            if let Event::Packet { seq, payload: got, .. } = event {
                assert_eq!(got, payload(seq, self.lens[seq as usize]), "packet {seq}");
            }
        }
    }

    /// Lets everything arrive that is on its way, and ends the stream.
    fn finish(mut self) {
        for (_, packet) in std::mem::take(&mut self.delayed) {
            self.arrive(&packet);
        }
        self.decoder.give_up_before(u64::MAX);
        self.give_out();
        let statistics = self.decoder.statistics();
        assert_eq!(
            statistics.disbelieved, 0,
            "an honest stream has no symbol that its sender would not make"
        );
        assert_eq!(statistics.damaged + statistics.rejected + statistics.foreign, 0);
        if self.decoder.has_ended() {
            assert_eq!(self.decoder.pending(), None, "nothing is left behind the end");
        }
    }
}

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
    let mut network = Network::new(Decoder::new(limits(case), Backend::best()));
    let mut packets: Vec<Vec<u8>> = Vec::new();
    while network.sent < MOST_SENT && !input.is_empty() {
        let Ok(action) = Honest::arbitrary(input) else { break };
        match action {
            Honest::Send { len, count } => {
                for _ in 0..count {
                    if network.sent + packets.len() >= MOST_SENT {
                        break;
                    }
                    let (seq, len) = (network.lens.len() as u64, usize::from(len).min(usize::from(most)));
                    encoder
                        .push(&payload(seq, len), &mut |packet| packets.push(packet.to_vec()))
                        .expect("it fits");
                    network.lens.push(len);
                }
            }
            Honest::Lose(count) => network.lose = network.lose.max(count.into()),
            Honest::LoseSome(bits) => network.pattern = bits,
            Honest::Repeat => packets.push(network.last.clone()),
            Honest::Delay(by) => network.delay = by.into(),
            Honest::GiveUp(behind) => {
                let before = (network.lens.len() as u64).saturating_sub(behind.into());
                network.decoder.give_up_before(before);
            }
            Honest::Flush => network.delayed.iter_mut().for_each(|(at, _)| *at = 0),
        }
        packets.drain(..).for_each(|packet| network.send(packet));
    }
    encoder.finish(&mut |packet: &[u8]| network.delayed.push_back((0, packet.to_vec())));
    network.finish();
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
        packet.clear();
        match action {
            Hostile::GiveUp(seq) => decoder.give_up_before(seq),
            Hostile::Unlock => {
                decoder.unlock();
                seen = Seen::default();
            }
            Hostile::Hold => holds = true,
            sent => forge(&sent, parameters, &mut at, &mut packet),
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

/// Writes the packet of an action with a right checksum; `at` is the number near which it is.
fn forge(action: &Hostile, mut parameters: Parameters, at: &mut u64, packet: &mut Vec<u8>) {
    let now = *at;
    let step = |by: i16| now.saturating_add_signed(by.into()).min(packet::MAX_SEQ - 1);
    match *action {
        Hostile::Source { step: by, len, fill } => {
            *at = step(by);
            source(packet, &parameters, *at, len, fill);
        }
        Hostile::SourceFar { seq, fill } => {
            *at = seq % packet::MAX_SEQ;
            source(packet, &parameters, *at, 16, fill);
        }
        Hostile::Repair { step: by, count, row, part, len, fill } => {
            let first = step(by) / u64::from(parameters.block) * u64::from(parameters.block);
            let count = count % parameters.window + 1;
            let len = (6 + usize::from(len)).min(parameters.symbol_len());
            let symbol = vec![fill; len];
            packet::write_repair(
                packet,
                &parameters,
                &RowHeader { row: row % packet::MAX_SEQ, first, count, part },
                &symbol,
            );
        }
        Hostile::Mark { step: by, end } => {
            packet.extend_from_slice(&packet::mark(&parameters, step(by), end));
        }
        Hostile::MarkFar { sent, end } => {
            packet.extend_from_slice(&packet::mark(&parameters, sent % packet::MAX_SEQ, end));
        }
        Hostile::Other => {
            parameters.stream_id ^= 1;
            source(packet, &parameters, now, 3, 3);
        }
        Hostile::GiveUp(_) | Hostile::Unlock | Hostile::Hold => {}
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

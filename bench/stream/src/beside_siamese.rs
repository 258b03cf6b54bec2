//! fec beside siamese, which takes part if a checkout of it is given: the same payloads, and the same transmissions
//! lost. Both send a source packet at once and a repair packet after every sixth.
//!
//! siamese is used one way, as fec is: the sender forgets packets as they leave the window, and nothing is
//! acknowledged. Its input and output are payloads and repair packets. The program around it would add headers with a
//! stream's number and checksums, which fec's times include.

use super::siamese;
use super::{BLOCK, Contender, PAYLOAD, SEND_RATIO, backend, decoder, encoder, race, settings, timed};
use fec_core::random::SplitMix64;
use fec_core::window::{Decoder, Encoder, Event, Limits, Profile};
use std::cell::Cell;
use std::collections::HashSet;
use std::hint::black_box;
use std::ops::Range;
use std::process::Command;
use std::time::Duration;

const WINDOWS: [u32; 3] = [1000, 6000, 12_000];
const LOSSES: [f64; 3] = [0.01, 0.05, 0.10];

/// A sender that keeps a window of packets.
struct Sender {
    encoder: siamese::Encoder,
    window: u32,
    sent: u64,
}

impl Sender {
    fn new(window: u32) -> Sender {
        Sender { encoder: siamese::Encoder::new(), window, sent: 0 }
    }

    fn add(&mut self, payload: &[u8]) -> u32 {
        let number = self.encoder.add(payload).expect("there is room for the packet");
        self.sent += 1;
        if self.sent > u64::from(self.window) {
            self.encoder.remove_before(number + 1 - self.window);
        }
        number
    }

    /// The repair packet that is due, if one is.
    fn repair(&mut self) -> Option<&[u8]> {
        self.sent.is_multiple_of(SEND_RATIO.into()).then(|| self.encoder.encode())
    }
}

fn siamese_encoder<'a>(window: u32, payloads: &'a [Vec<u8>], packets: usize) -> Contender<'a> {
    let mut sender = Sender::new(window);
    let mut payloads = payloads.iter().cycle();
    (0..window).for_each(|_| {
        sender.add(payloads.next().expect("endless"));
    });
    let mut push = move || {
        black_box(sender.add(payloads.next().expect("endless")));
        black_box(sender.repair());
    };
    Contender::new(format!("siamese, {window}"), packets, move || timed(|| (0..packets).for_each(|_| push())))
}

/// A packet on its way to siamese's receiver.
#[derive(Clone)]
struct Packet {
    /// The number of a source packet.
    number: Option<u32>,
    bytes: Vec<u8>,
}

impl Packet {
    fn give(&self, decoder: &mut siamese::Decoder) {
        match self.number {
            Some(number) => decoder.add_original(number, &self.bytes),
            None => decoder.add_recovery(&self.bytes),
        }
    }
}

/// The packets of both codes that arrive over a line that loses each transmission that `lost` names, and the number of
/// source packets lost.
fn arrived(
    window: u32,
    count: usize,
    payloads: &[Vec<u8>],
    mut lost: impl FnMut(usize) -> bool,
) -> (Vec<Vec<u8>>, Vec<Packet>, usize) {
    let mut encoder = Encoder::new(&settings(Profile::Bounded, window), backend()).expect("settings");
    let (mut sent, mut gone, mut packets) = (0, Vec::new(), Vec::new());
    for payload in payloads.iter().cycle().take(count) {
        let mut emit = |packet: &[u8]| {
            gone.push(lost(sent));
            if !gone[sent] {
                packets.push(packet.to_vec());
            }
            sent += 1;
        };
        encoder.push(payload, &mut emit).expect("a payload");
    }
    let (mut sender, mut others, mut sources) = (Sender::new(window), Vec::new(), 0);
    let mut gone = gone.into_iter();
    for payload in payloads.iter().cycle().take(count) {
        let number = sender.add(payload);
        if gone.next().expect("as many transmissions") {
            sources += 1;
        } else {
            others.push(Packet { number: Some(number), bytes: payload.clone() });
        }
        if let Some(bytes) = sender.repair()
            && !gone.next().expect("as many transmissions")
        {
            others.push(Packet { number: None, bytes: bytes.to_vec() });
        }
    }
    assert!(gone.next().is_none(), "both send as many packets");
    (packets, others, sources)
}

/// As [`decoder`], for siamese. `rebuilt` counts the packets that it rebuilds.
fn siamese_decoder<'a>(
    name: String,
    packets: &'a [Packet],
    count: usize,
    rounds: usize,
    rebuilt: &'a Cell<usize>,
) -> Contender<'a> {
    let mut decoder = siamese::Decoder::new();
    let mut parts = packets.chunks(packets.len().div_ceil(rounds + 1));
    let mut arrived = vec![Packet { number: None, bytes: Vec::new() }; BLOCK];
    Contender::new(name, count, move || {
        let mut time = Duration::ZERO;
        for packets in parts.next().expect("a part for each round").chunks(BLOCK) {
            for (to, packet) in arrived.iter_mut().zip(packets) {
                to.number = packet.number;
                to.bytes.clone_from(&packet.bytes);
            }
            time += timed(|| {
                for packet in &arrived[..packets.len()] {
                    packet.give(&mut decoder);
                    while let Some(packets) = decoder.decode() {
                        for packet in packets.packets() {
                            black_box(packet);
                            rebuilt.set(rebuilt.get() + 1);
                        }
                    }
                }
            });
        }
        time
    })
}

/// The packets that both codes rebuild of a stream with W = 6000 that loses the transmissions of `burst`. Every payload
/// that comes out is compared with the one sent.
fn rebuild(burst: Range<usize>) -> String {
    let payloads = payloads();
    let (ours, theirs, lost) = arrived(6000, 18_000, &payloads, |sent| burst.contains(&sent));
    let is_right = |number: u64, payload: &[u8]| {
        assert!(payload == payloads[number as usize % payloads.len()], "packet {number} is what was sent");
    };
    let (mut fec, mut other) = (0, 0);
    let mut decoder = Decoder::new(Limits::default(), backend());
    for packet in &ours {
        decoder.receive(packet);
        while let Some(event) = decoder.next() {
            if let Event::Packet { seq, payload, rebuilt } = event {
                is_right(seq, payload);
                fec += usize::from(rebuilt);
            }
        }
    }
    // Printed now, because the other code may end the process.
    println!("{lost} | {fec}");
    let mut decoder = siamese::Decoder::new();
    for packet in &theirs {
        packet.give(&mut decoder);
        while let Some(packets) = decoder.decode() {
            for (number, payload) in packets.packets() {
                is_right(number.into(), payload);
                other += 1;
            }
        }
    }
    other.to_string()
}

/// The argument that makes this program show one burst, in a process of its own: `1 siamese-burst KERNEL FIRST LEN`.
const BURST: &str = "siamese-burst";

/// Shows one burst, if the arguments ask for it.
pub fn show_burst() -> bool {
    let arguments: Vec<String> = std::env::args().skip(2).collect();
    let [part, _, first, len] = &arguments[..] else { return false };
    if part != BURST {
        return false;
    }
    let [first, len]: [usize; 2] = [first, len].map(|number| number.parse().expect("a number"));
    println!("{}", rebuild(first..first + len));
    true
}

/// Shows limits that no figure of speed shows.
fn limits() {
    println!("\n### beside siamese: one burst, W = 6000, nothing else lost\n");
    println!("| transmissions before it | lost | of them source packets | fec rebuilt | siamese rebuilt |");
    println!("|---|---|---|---|---|");
    let program = std::env::current_exe().expect("this program");
    for (first, len) in [(3000, 250), (3000, 290), (3000, 350), (3000, 700), (9000, 50)] {
        let numbers = [first, len].map(|number| number.to_string());
        let child = Command::new(&program).args(["1", BURST, backend().name()]).args(numbers).output();
        let child = child.expect("it runs");
        let said = String::from_utf8_lossy(&child.stdout);
        let mut lines = said.lines();
        let ours = lines.next().expect("fec ends first");
        let theirs = lines.next().map_or_else(|| format!("crashed ({})", child.status), str::to_owned);
        println!("| {first} | {len} | {ours} | {theirs} |");
    }
    let payloads = payloads();
    let mut encoder = siamese::Encoder::new();
    (0..3000).for_each(|i| assert!(encoder.add(&payloads[i % payloads.len()]).is_some()));
    let different: HashSet<Vec<u8>> = (0..500).map(|_| encoder.encode().to_vec()).collect();
    let mut encoder = siamese::Encoder::new();
    let most = (0..20_000).take_while(|i| encoder.add(&payloads[i % payloads.len()]).is_some()).count();
    println!("\nsiamese: of 500 repair packets over one window of 3000, {} are different;", different.len());
    println!("a window takes {most} packets at most.");
}

fn payloads() -> Vec<Vec<u8>> {
    let mut noise = SplitMix64::new(6);
    (0..480).map(|_| (0..PAYLOAD).map(|_| noise.next() as u8).collect()).collect()
}

/// All tables.
pub fn compare(rounds: usize) {
    let payloads = payloads();
    for window in WINDOWS {
        let settings = settings(Profile::Bounded, window);
        let contenders = vec![
            encoder(&format!("bounded, {window}"), settings, &payloads, 100 * BLOCK),
            siamese_encoder(window, &payloads, (BLOCK as u32 * 12_000 / window) as usize),
        ];
        race(&format!("beside siamese: encode, W = {window}"), rounds, contenders);
    }
    for window in WINDOWS {
        for loss in LOSSES {
            let count = (2 * window as usize).max(6000);
            let mut line = SplitMix64::new(7);
            let (ours, theirs, lost) =
                arrived(window, count * (rounds + 1), &payloads, |_| line.chance(loss));
            let rebuilt = [Cell::new(0), Cell::new(0)];
            let contenders = vec![
                decoder(format!("bounded, {window}"), &ours, count, rounds, &rebuilt[0]),
                siamese_decoder(format!("siamese, {window}"), &theirs, count, rounds, &rebuilt[1]),
            ];
            race(
                &format!("beside siamese: decode at {:.0} % loss, W = {window}", loss * 100.0),
                rounds,
                contenders,
            );
            let [fec, other] = rebuilt.map(Cell::into_inner);
            println!("\nof {lost} lost packets fec rebuilt {fec}, siamese {other}");
        }
    }
    limits();
}

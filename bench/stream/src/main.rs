//! fec's packet code against its classic form and against Reed-Solomon blocks. All contenders of a table take turns in
//! one process, on one core, over the same payloads; figures are medians of ratios of many rounds, in processor time.
//!
//! fec's side makes and reads whole packets, checksums and copies included. The block code of the crate
//! `reed-solomon-simd` only computes its repair symbols, once alone and once with a CRC32C over each packet, which a
//! packet format needs. A build with a checkout of siamese (`build.rs`) compares it too.

#[cfg(siamese)]
mod beside_siamese;
#[cfg(siamese)]
mod siamese;

use fec_core::block::ShardBuf;
use fec_core::gf256::kernel::{Backend, Walk};
use fec_core::random::SplitMix64;
use fec_core::window::{Decoder, Encoder, Event, Limits, Profile, Ratio, StreamSettings};
use rustix::time::{ClockId, clock_gettime};
use std::cell::Cell;
use std::hint::black_box;
use std::sync::OnceLock;
use std::time::Duration;

const PAYLOAD: u16 = 1350;
const SYMBOL: usize = 1356;
const BLOCK: usize = 240;
const REPAIR: usize = 40;
/// Source packets for each repair packet.
const SEND_RATIO: u16 = 6;

fn settings(profile: Profile, window: u32) -> StreamSettings {
    StreamSettings {
        stream_id: 1,
        window,
        block: BLOCK as u16,
        payload: PAYLOAD,
        profile,
        ratio: Ratio::new(1, SEND_RATIO).expect("a ratio"),
        limit: 128 << 20,
    }
}

/// The kernel that the arguments name, or else the fastest.
fn backend() -> Backend {
    static CHOSEN: OnceLock<Backend> = OnceLock::new();
    *CHOSEN.get_or_init(|| match std::env::args().nth(3) {
        Some(name) => Backend::by_name(&name).expect("a kernel of this machine"),
        None => Backend::best(),
    })
}

/// The processor time of this thread so far, without that of other programs.
fn now() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn timed(run: impl FnOnce()) -> Duration {
    let began = now();
    run();
    now() - began
}

/// A contender and its times, in nanoseconds for each source packet.
struct Contender<'a> {
    name: String,
    packets: usize,
    run: Box<dyn FnMut() -> Duration + 'a>,
    times: Vec<f64>,
}

impl<'a> Contender<'a> {
    fn new(name: impl Into<String>, packets: usize, run: impl FnMut() -> Duration + 'a) -> Contender<'a> {
        Contender { name: name.into(), packets, run: Box::new(run), times: Vec::new() }
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs all in turn, in another order in each round, after a round that does not count.
fn take_turns(rounds: usize, contenders: &mut [Contender]) {
    let mut dice = SplitMix64::new(8);
    let mut order: Vec<usize> = (0..contenders.len()).collect();
    for round in 0..=rounds {
        (1..order.len()).for_each(|last| order.swap(last, dice.index(last + 1)));
        for &at in &order {
            let contender = &mut contenders[at];
            let time = (contender.run)().as_secs_f64() * 1e9 / contender.packets as f64;
            if round > 0 {
                contender.times.push(time);
            }
        }
    }
}

/// Runs all in turn, and prints speeds and the ratio of the first one's speed to each.
fn race(title: &str, rounds: usize, mut contenders: Vec<Contender>) {
    take_turns(rounds, &mut contenders);
    println!("\n### {title}\n\n| | MB/s of payload | the first is so many times as fast |\n|---|---|---|");
    for contender in &contenders {
        let speed = f64::from(PAYLOAD) * 1e3 / median(contender.times.iter().copied());
        let ratio =
            median(contender.times.iter().zip(&contenders[0].times).map(|(other, first)| other / first));
        println!("| {} | {speed:.0} | {ratio:.2} |", contender.name);
    }
}

fn encoder<'a>(
    name: &str,
    settings: StreamSettings,
    payloads: &'a [Vec<u8>],
    packets: usize,
) -> Contender<'a> {
    let mut encoder = Encoder::new(&settings, backend()).expect("settings");
    let mut at = 0;
    let mut push = move || {
        encoder
            .push(&payloads[at], &mut |packet| {
                black_box(packet);
            })
            .expect("a payload");
        at = (at + 1) % payloads.len();
    };
    (0..settings.window + 2 * BLOCK as u32).for_each(|_| push());
    Contender::new(name, packets, move || timed(|| (0..packets).for_each(|_| push())))
}

fn block_encoder<'a>(payloads: &'a [Vec<u8>], packets: usize, checksums: bool) -> Contender<'a> {
    let mut encoder = reed_solomon_simd::ReedSolomonEncoder::new(BLOCK, REPAIR, SYMBOL).expect("an encoder");
    let mut symbol = vec![0; SYMBOL];
    let mut at = 0;
    let name =
        if checksums { "reed-solomon-simd 240+40, CRC of packets" } else { "reed-solomon-simd 240+40" };
    let mut run = move || {
        for _ in 0..packets / BLOCK {
            for _ in 0..BLOCK {
                symbol[2..2 + usize::from(PAYLOAD)].copy_from_slice(&payloads[at]);
                if checksums {
                    black_box(crc_fast::crc32_iscsi(&symbol));
                }
                encoder.add_original_shard(&symbol).expect("a shard");
                at = (at + 1) % payloads.len();
            }
            for repair in encoder.encode().expect("it encodes").recovery_iter() {
                if checksums {
                    black_box(crc_fast::crc32_iscsi(repair));
                }
                black_box(repair);
            }
        }
    };
    Contender::new(name, packets, move || timed(&mut run))
}

fn encode(rounds: usize) {
    let mut noise = SplitMix64::new(1);
    let payloads: Vec<Vec<u8>> =
        (0..480).map(|_| (0..PAYLOAD).map(|_| noise.next() as u8).collect()).collect();
    let packets = 100 * BLOCK;
    let mut contenders = vec![
        encoder("bounded, 6000", settings(Profile::Bounded, 6000), &payloads, packets),
        encoder("classic-blocks, 240", settings(Profile::ClassicBlocks, 240), &payloads, packets),
        encoder("classic, 6000", settings(Profile::Classic, 6000), &payloads, packets / 10),
        encoder("blocks, 240", settings(Profile::Blocks, 240), &payloads, packets),
        encoder("blocks, 6000", settings(Profile::Blocks, 6000), &payloads, packets),
    ];
    for checksums in [false, true] {
        contenders.push(block_encoder(&payloads, packets, checksums));
    }
    race("encode, 1350 B, one repair packet for six", rounds, contenders);
    let windows = [500, 1000, 2000, 6000, 15_000, 30_000, 60_000].map(|window| {
        encoder(&format!("bounded, {window}"), settings(Profile::Bounded, window), &payloads, packets)
    });
    race("encode by window", rounds, windows.into_iter().collect());
}

/// Taps of a row, which are single packets or groups of four, and thus come from anywhere in the window.
const TAPS: usize = 22;

/// Sums of `TAPS` rows from anywhere in a ring; the time is that of a line of 64 bytes.
fn sums_of(ring: &ShardBuf) -> Contender<'_> {
    let (sums, len) = (4000, SYMBOL.next_multiple_of(64));
    let mut noise = SplitMix64::new(9);
    let rows: Vec<&[u8]> = ring.iter().collect();
    let taps: Vec<&[u8]> = (0..sums * TAPS).map(|_| rows[noise.index(rows.len())]).collect();
    let mut sum = vec![0; len];
    let mut run = move || {
        for taps in taps.chunks_exact(TAPS) {
            backend().sum(Walk::FourLines, &[taps], 2, black_box(&mut sum));
        }
    };
    Contender::new(rows.len().to_string(), sums * TAPS * len / 64, move || timed(&mut run))
}

/// The lower bound of encoders: the time in which packets come from their memory.
fn memory(rounds: usize) {
    let rings = [240, 500, 1000, 2000, 6000, 15_000, 30_000, 60_000].map(|packets| {
        let mut ring = ShardBuf::new(packets, SYMBOL.next_multiple_of(64));
        ring.iter_mut().enumerate().for_each(|(seed, row)| row.fill(seed as u8));
        ring
    });
    let mut contenders: Vec<Contender> = rings.iter().map(sums_of).collect();
    take_turns(rounds, &mut contenders);
    println!("\n### sums of {TAPS} packets from anywhere in a ring\n");
    println!("| packets in the ring | ns for each line of 64 bytes: median | least |\n|---|---|---|");
    for contender in &contenders {
        let least = contender.times.iter().copied().fold(f64::INFINITY, f64::min);
        println!("| {} | {:.2} | {least:.2} |", contender.name, median(contender.times.iter().copied()));
    }
}

/// The packets of a stream that arrive.
fn arrived(profile: Profile, window: u32, count: usize, loss: f64) -> Vec<Vec<u8>> {
    let mut encoder = Encoder::new(&settings(profile, window), backend()).expect("settings");
    let (mut noise, mut line, mut packets) = (SplitMix64::new(2), SplitMix64::new(3), Vec::new());
    for _ in 0..count {
        let payload: Vec<u8> = (0..PAYLOAD).map(|_| noise.next() as u8).collect();
        let mut emit = |packet: &[u8]| {
            if !line.chance(loss) {
                packets.push(packet.to_vec());
            }
        };
        encoder.push(&payload, &mut emit).expect("a payload");
    }
    packets
}

/// Decodes one stream, a part in each round. Packets are copied before the time runs, a block's worth at once: a
/// receiver has just got them, so they are not far away in memory. `rebuilt` counts rebuilt packets.
fn decoder<'a>(
    name: String,
    packets: &'a [Vec<u8>],
    count: usize,
    rounds: usize,
    rebuilt: &'a Cell<usize>,
) -> Contender<'a> {
    let mut decoder = Decoder::new(Limits::default(), backend());
    let mut parts = packets.chunks(packets.len().div_ceil(rounds + 1));
    let mut arrived = vec![Vec::new(); BLOCK];
    Contender::new(name, count, move || {
        let mut time = Duration::ZERO;
        for packets in parts.next().expect("a part for each round").chunks(BLOCK) {
            for (to, packet) in arrived.iter_mut().zip(packets) {
                to.clone_from(packet);
            }
            time += timed(|| {
                for packet in &arrived[..packets.len()] {
                    decoder.receive(packet);
                    while let Some(event) = decoder.next() {
                        if let Event::Packet { payload, rebuilt: new, .. } = event {
                            black_box(payload);
                            rebuilt.set(rebuilt.get() + usize::from(new));
                        }
                    }
                }
            });
        }
        time
    })
}

/// Blocks with the originals that arrive, and as many repair symbols as are lost.
struct Blocks {
    symbols: Vec<Vec<u8>>,
    /// The originals and repair symbols of each block that arrive.
    arrived: Vec<(Vec<usize>, Vec<usize>)>,
}

fn block_decoder<'a>(blocks: &'a Blocks, repairs: &'a [Vec<u8>], count: usize) -> Contender<'a> {
    let mut decoder = reed_solomon_simd::ReedSolomonDecoder::new(BLOCK, REPAIR, SYMBOL).expect("a decoder");
    let mut run = move || {
        for (originals, recovery) in &blocks.arrived {
            if originals.len() == BLOCK {
                continue;
            }
            for &i in originals {
                decoder.add_original_shard(i, &blocks.symbols[i]).expect("a shard");
            }
            for &i in recovery {
                decoder.add_recovery_shard(i, &repairs[i]).expect("a shard");
            }
            let decoded = decoder.decode().expect("enough is there");
            for symbol in decoded.restored_original_iter() {
                black_box(symbol);
            }
        }
    };
    Contender::new("reed-solomon-simd 240+40", count, move || timed(&mut run))
}

fn decode(rounds: usize) {
    let mut noise = SplitMix64::new(4);
    let symbols: Vec<Vec<u8>> =
        (0..BLOCK).map(|_| (0..SYMBOL).map(|_| noise.next() as u8).collect()).collect();
    let repairs = reed_solomon_simd::encode(BLOCK, REPAIR, &symbols).expect("it encodes");
    for loss in [0.01, 0.05, 0.10, 0.13, 0.14] {
        let count = 100 * BLOCK;
        let packets = arrived(Profile::Bounded, 6000, count * (rounds + 1), loss);
        let blocks = arrived(Profile::Blocks, 6000, count * (rounds + 1), loss);
        let mut line = SplitMix64::new(5);
        let arrived = (0..count / BLOCK)
            .map(|_| {
                let originals: Vec<usize> = (0..BLOCK).filter(|_| !line.chance(loss)).collect();
                // A block that lost too much is decoded as if it had lost less: only the time counts.
                let originals =
                    if originals.len() < BLOCK - REPAIR { (REPAIR..BLOCK).collect() } else { originals };
                let recovery = (0..BLOCK - originals.len()).collect();
                (originals, recovery)
            })
            .collect();
        let rival = Blocks { symbols: symbols.clone(), arrived };
        let rebuilt = Cell::new(0);
        let contenders = vec![
            decoder("bounded, 6000".into(), &packets, count, rounds, &rebuilt),
            decoder("blocks, 6000".into(), &blocks, count, rounds, &rebuilt),
            block_decoder(&rival, &repairs, count),
        ];
        race(&format!("decode at {:.0} % loss", loss * 100.0), rounds, contenders);
    }
}

fn main() {
    #[cfg(siamese)]
    if beside_siamese::show_burst() {
        return;
    }
    let rounds = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(7);
    let part = std::env::args().nth(2);
    let takes_part = |name| part.as_deref().is_none_or(|part| part == "all" || part == name);
    if takes_part("encode") {
        encode(rounds);
    }
    if takes_part("memory") {
        memory(rounds);
    }
    if takes_part("decode") {
        decode(rounds);
    }
    #[cfg(siamese)]
    if takes_part("siamese") {
        beside_siamese::compare(rounds);
    }
}

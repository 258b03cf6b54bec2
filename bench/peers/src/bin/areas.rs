//! The code of areas against sets of 220 + 36, and against `reed-solomon-simd`: all contenders of a shape take turns in
//! one process, over the same blocks, in another random order each round.
//!
//!     areas [ROUNDS [K M BLOCK]]
//!
//! Times are those of the processor, so that other programs count little. Each result is compared with the encoded
//! blocks.

use fec_core::area::{AreaCode, AreaDecoder, AreaEncoder, AreaRoom};
use fec_core::block::{Code, Plan, ShardBuf};
use fec_core::executor::Inline;
use fec_core::gf256::kernel::Backend;
use fec_core::random::SplitMix64;
use reed_solomon_simd::{ReedSolomonDecoder, ReedSolomonEncoder};
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;

/// The sets of sidecars.
const SET: (usize, usize) = (220, 36);

struct Contender<'a> {
    name: String,
    /// Does the work once.
    run: Box<dyn FnMut() + 'a>,
    /// Seconds.
    times: Vec<f64>,
}

impl<'a> Contender<'a> {
    fn new(name: impl Into<String>, run: impl FnMut() + 'a) -> Contender<'a> {
        Contender { name: name.into(), run: Box::new(run), times: Vec::new() }
    }

    fn turn(&mut self) {
        let began = now();
        (self.run)();
        self.times.push(now() - began);
    }
}

fn now() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn noise(rows: usize, len: usize) -> ShardBuf {
    let (mut buf, mut random) = (ShardBuf::new(rows, len), SplitMix64::new(rows as u64));
    for row in buf.iter_mut() {
        row.as_chunks_mut::<8>().0.iter_mut().for_each(|bytes| *bytes = random.next().to_le_bytes());
    }
    buf
}

fn backends() -> impl Iterator<Item = Backend> {
    Backend::available().filter(|backend| backend.name() != "scalar")
}

/// An area in memory.
struct Area {
    code: AreaCode,
    len: usize,
    originals: ShardBuf,
    recovery: ShardBuf,
}

impl Area {
    fn new(k: usize, m: usize, len: usize) -> Area {
        let code = AreaCode::new(k, m).expect("a code");
        let mut area = Area { code, len, originals: noise(k, len), recovery: ShardBuf::new(m, len) };
        let mut recovery = ShardBuf::new(m, len);
        area.encode(1, Backend::best(), &mut recovery, &mut area.room());
        area.recovery = recovery;
        area
    }

    fn room(&self) -> AreaRoom {
        AreaRoom::new(self.code.m(), self.len, 1).expect("a length of blocks")
    }

    /// The rows of cosets `at_once` at a time, but those for which `is_there` is false.
    fn cosets(&self, at_once: usize, is_there: &[bool], mut add: impl FnMut(usize, &[Option<&[u8]>])) {
        let (code, m) = (self.code, self.code.m());
        let row = |p: usize| if p < m { self.recovery.row(p) } else { self.originals.row(p - m) };
        for coset in (0..code.cosets()).step_by(at_once) {
            let end = code.positions(code.cosets().min(coset + at_once) - 1).end;
            let positions = code.positions(coset).start..end;
            add(coset, &positions.map(|p| is_there[p].then(|| row(p))).collect::<Vec<_>>());
        }
    }

    fn encode(&self, at_once: usize, backend: Backend, out: &mut ShardBuf, room: &mut AreaRoom) {
        let is_there: Vec<bool> = (0..self.code.n()).map(|p| p >= self.code.m()).collect();
        let mut encoder = AreaEncoder::new(self.code, self.len, backend, room).expect("there is room");
        self.cosets(at_once, &is_there, |coset, rows| encoder.add(coset, rows, &Inline).expect("a coset"));
        encoder.finish(&mut out.iter_mut().collect::<Vec<_>>(), &Inline).expect("all is added");
    }

    fn decode(&self, lost: &[usize], backend: Backend, out: &mut ShardBuf, room: &mut AreaRoom) {
        let mut is_there = vec![true; self.code.n()];
        lost.iter().for_each(|&p| is_there[p] = false);
        let mut decoder = AreaDecoder::new(self.code, self.len, lost, backend, room).expect("there is room");
        self.cosets(1, &is_there, |coset, rows| decoder.add(coset, rows, &Inline).expect("a coset"));
        let mut solution = decoder.solve(&Inline).expect("all is added");
        let mut out = out.iter_mut();
        for coset in 0..self.code.cosets() {
            let count = solution.lost(coset).len();
            let mut out: Vec<&mut [u8]> = out.by_ref().take(count).collect();
            solution.restore(coset, &mut out, &Inline).expect("a row for each");
        }
    }

    /// The positions of some originals, ascending.
    fn some(&self, count: usize) -> Vec<usize> {
        let mut random = SplitMix64::new(count as u64);
        let mut positions: Vec<usize> = (self.code.m()..self.code.n()).collect();
        (0..count).for_each(|i| positions.swap(i, i + random.index(self.code.k() - i)));
        positions.truncate(count);
        positions.sort_unstable();
        positions
    }

    /// Recovery shards of sets whose blocks are dealt in turn.
    fn sets(&self, backend: Backend, out: &mut ShardBuf) {
        let (k, m) = SET;
        let plan = Plan::encode(Code::new(k, m).expect("a code"), backend);
        let count = self.code.k().div_ceil(k);
        let zero = vec![0; self.len];
        let mut recovery: Vec<Option<&mut [u8]>> = out.iter_mut().map(Some).collect();
        for set in 0..count {
            let block = |i: usize| if i < self.code.k() { self.originals.row(i) } else { &zero };
            let src: Vec<&[u8]> = (0..k).map(|i| block(i * count + set)).collect();
            let dst = (0..m).map(|i| recovery[i * count + set].take().expect("each once"));
            plan.run(&src, &mut dst.collect::<Vec<_>>());
        }
    }
}

/// Encoders and decoders of fec.
fn own<'a>(area: &'a Area, contenders: &mut Vec<Contender<'a>>) {
    let (k, m) = (area.code.k(), area.code.m());
    for (backend, at_once) in backends().flat_map(|backend| [(backend, area.code.cosets()), (backend, 1)]) {
        let (mut room, mut out) = (area.room(), ShardBuf::new(m, area.len));
        area.encode(at_once, backend, &mut out, &mut room);
        assert!(out.iter().eq(area.recovery.iter()), "{}", backend.name());
        let name = format!("area encode, {at_once} cosets at once, {}", backend.name());
        contenders.push(Contender::new(name, move || area.encode(at_once, backend, &mut out, &mut room)));
    }
    for backend in backends() {
        let mut out = ShardBuf::new(k.div_ceil(SET.0) * SET.1, area.len);
        let name = format!("sets of 220 + 36, {}", backend.name());
        contenders.push(Contender::new(name, move || area.sets(backend, &mut out)));
    }
    for count in [1, 20, 200, m.min(k)].into_iter().filter(|&count| count <= m.min(k)) {
        let lost = area.some(count);
        for backend in backends() {
            let (mut room, mut out, lost) = (area.room(), ShardBuf::new(count, area.len), lost.clone());
            area.decode(&lost, backend, &mut out, &mut room);
            assert!(lost.iter().map(|&p| area.originals.row(p - m)).eq(out.iter()), "{}", backend.name());
            let name = format!("area decode of {count}, {}", backend.name());
            contenders.push(Contender::new(name, move || area.decode(&lost, backend, &mut out, &mut room)));
        }
    }
}

/// Copying, and the peer, whose code is another one.
fn others<'a>(area: &'a Area, contenders: &mut Vec<Contender<'a>>) {
    let (k, m, len, originals) = (area.code.k(), area.code.m(), area.len, &area.originals);
    let mut copied = ShardBuf::new(k, len);
    contenders.push(Contender::new("copying the originals", move || {
        copied.iter_mut().zip(originals.iter()).for_each(|(to, from)| to.copy_from_slice(from));
        black_box(copied.row(0));
    }));
    let mut encoder = ReedSolomonEncoder::new(k, m, len).expect("an encoder");
    let mut out = ShardBuf::new(m, len);
    let mut encode = move |out: &mut ShardBuf| {
        originals.iter().for_each(|row| encoder.add_original_shard(row).expect("a shard"));
        let encoded = encoder.encode().expect("it encodes");
        out.iter_mut().zip(encoded.recovery_iter()).for_each(|(to, from)| to.copy_from_slice(from));
    };
    let mut recovery = ShardBuf::new(m, len);
    encode(&mut recovery);
    contenders.push(Contender::new("reed-solomon-simd encode", move || encode(&mut out)));
    let mut decoder = ReedSolomonDecoder::new(k, m, len).expect("a decoder");
    let lost = area.some(m.min(k));
    contenders.push(Contender::new(format!("reed-solomon-simd decode of {}", lost.len()), move || {
        for (i, row) in originals.iter().enumerate().filter(|(i, _)| lost.binary_search(&(i + m)).is_err()) {
            decoder.add_original_shard(i, row).expect("a shard");
        }
        recovery.iter().enumerate().for_each(|(i, row)| decoder.add_recovery_shard(i, row).expect("a shard"));
        black_box(decoder.decode().expect("it decodes").restored_original_iter().count());
    }));
}

fn race(rounds: usize, k: usize, m: usize, len: usize) {
    let area = Area::new(k, m, len);
    let mut contenders = Vec::new();
    own(&area, &mut contenders);
    others(&area, &mut contenders);
    let mut random = SplitMix64::new(rounds as u64);
    for _ in 0..rounds {
        let mut order: Vec<usize> = (0..contenders.len()).collect();
        (1..order.len()).rev().for_each(|i| order.swap(i, random.index(i + 1)));
        order.into_iter().for_each(|i| contenders[i].turn());
    }
    println!("\n### {k} + {m} x {len} B\n\n| | median ms (quartiles) | GB/s of originals |\n|---|---|---|");
    for contender in &mut contenders {
        contender.times.sort_by(f64::total_cmp);
        let quartile = |q| contender.times[contender.times.len() * q / 4] * 1e3;
        let [first, median, third] = [1, 2, 3].map(quartile);
        let speed = (k * len) as f64 / median / 1e6;
        println!("| {} | {median:.1} ({first:.1}–{third:.1}) | {speed:.2} |", contender.name);
    }
}

fn main() {
    let numbers: Vec<usize> = std::env::args().skip(1).map(|n| n.parse().expect("a number")).collect();
    let rounds = numbers.first().copied().unwrap_or(15);
    match numbers[..] {
        [_, k, m, len] => race(rounds, k, m, len),
        _ => {
            for (k, m, len) in [(50_000, 8192, 4096), (5000, 819, 4096), (500, 82, 4096)] {
                race(rounds, k, m, len);
            }
        }
    }
}

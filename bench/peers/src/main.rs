//! fec's block code against other codecs: all contenders of a table take turns in one process, on one core, over the
//! same bytes, in another random order each round. Every result is compared with fec's where the code is the same, so
//! no contender wins by computing less.
//!
//! Each is timed warm and cold. A warm contender has just done the same work three times, untimed, so that it does not
//! pay for the caches that the one before left. Before each cold turn all caches are filled with other bytes.
//! Contenders that take many times as long as the fastest have rounds of their own, since the clock and the machine's
//! other guests would change during every run of them.
//!
//! `scripts/bench/peers.sh` installs what ISA-L needs and runs this.

mod evict;
mod isal;
mod klauspost;

use evict::Evict;
use fec_core::block::{Code, Plan, ShardBuf};
use fec_core::gf256::kernel::Backend;
use fec_core::gf256::{inv, mul};
use fec_core::random::SplitMix64;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Columns for each call of ISA-L where it is called in tiles: its best case.
const TILE: usize = 4096;

/// Untimed runs before a warm one.
const WARMING: usize = 3;

/// A contender this many times as slow as the fastest is too slow for rounds with the others.
const SLOW: u32 = 6;

/// A contender of a table.
struct Contender<'a> {
    name: String,
    /// Does the work once and returns its time.
    run: Box<dyn FnMut() -> Duration + 'a>,
    warm: Vec<Duration>,
    cold: Vec<Duration>,
}

impl<'a> Contender<'a> {
    fn new(name: impl Into<String>, mut run: impl FnMut() + 'a) -> Contender<'a> {
        Contender::timing_itself(name, move || {
            let began = Instant::now();
            run();
            began.elapsed()
        })
    }

    fn timing_itself(name: impl Into<String>, run: impl FnMut() -> Duration + 'a) -> Contender<'a> {
        Contender { name: name.into(), run: Box::new(run), warm: Vec::new(), cold: Vec::new() }
    }

    /// A turn with the caches as the contender's own work leaves them.
    fn turn_warm(&mut self) {
        for _ in 0..WARMING {
            (self.run)();
        }
        self.warm.push((self.run)());
    }

    /// A turn with none of its data in the caches.
    fn turn_cold(&mut self, evict: &Evict) {
        evict.all();
        self.cold.push((self.run)());
    }
}

/// The quartiles of some times, in µs.
fn quartiles(times: &[Duration]) -> [f64; 3] {
    let mut times = times.to_vec();
    times.sort_unstable();
    [1, 2, 3].map(|quarter| times[times.len() * quarter / 4].as_secs_f64() * 1e6)
}

/// Lets the contenders take turns in rounds, each in another random order.
fn rounds_of<'a>(
    contenders: &mut [&mut Contender<'a>],
    rounds: usize,
    order: &mut SplitMix64,
    turn: impl Fn(&mut Contender<'a>),
) {
    for _ in 0..rounds {
        for last in (1..contenders.len()).rev() {
            contenders.swap(last, order.index(last + 1));
        }
        contenders.iter_mut().for_each(|contender| turn(contender));
    }
}

/// Prints a table with a row for each contender; the others are compared with the first.
fn race(title: &str, rounds: usize, mut contenders: Vec<Contender>) {
    let (mut order, evict) = (SplitMix64::new(rounds as u64), Evict::new());
    let alone: Vec<Duration> = contenders.iter_mut().map(|c| (c.run)().min((c.run)())).collect();
    let bound = *alone.iter().min().expect("somebody runs") * SLOW;
    let mut of_all = contenders.iter_mut().zip(&alone);
    let (mut fast, mut slow) = (Vec::new(), Vec::new());
    of_all.by_ref().for_each(|(c, time)| if *time > bound { slow.push(c) } else { fast.push(c) });
    for (contenders, rounds) in [(&mut fast, rounds), (&mut slow, rounds.div_ceil(3))] {
        // Warm turns come first: the caches stay full of other bytes for long after a fill.
        rounds_of(contenders, rounds, &mut order, Contender::turn_warm);
        rounds_of(contenders, rounds, &mut order, |contender| contender.turn_cold(&evict));
    }
    println!("\n### {title}\n");
    println!("| | warm: median µs (quartiles) | times fec's | cold: median µs (quartiles) | times fec's |");
    println!("|---|---|---|---|---|");
    let base = [&contenders[0].warm, &contenders[0].cold].map(|times| quartiles(times)[1]);
    for contender in &contenders {
        print!("| {}", contender.name);
        for (times, base) in [&contender.warm, &contender.cold].into_iter().zip(base) {
            let [first, median, third] = quartiles(times);
            print!(" | {median:.1} ({first:.1}–{third:.1}) | {:.2}", median / base);
        }
        println!(" |");
    }
}

fn filled(rows: usize, len: usize) -> ShardBuf {
    let mut buf = ShardBuf::new(rows, len);
    let mut state = 1u64;
    for row in buf.iter_mut() {
        for byte in row {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte = (state >> 56) as u8;
        }
    }
    buf
}

/// The coefficients of shards `wanted` from shards `known`, by Lagrange, row-major.
fn lagrange(known: &[u8], wanted: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for y in wanted {
        for (j, x) in known.iter().enumerate() {
            let others = known.iter().enumerate().filter(|(i, _)| *i != j);
            let (n, d) = others.fold((1, 1), |(n, d), (_, o)| (mul(n, y ^ o), mul(d, x ^ o)));
            out.push(mul(n, inv(d)));
        }
    }
    out
}

/// Runs a plan over rows of a buffer.
fn run_plan(plan: &Plan, src: &ShardBuf, dst: &mut ShardBuf) {
    let src: Vec<&[u8]> = src.iter().collect();
    let mut dst: Vec<&mut [u8]> = dst.iter_mut().collect();
    plan.run(&src, &mut dst);
}

fn encode(k: usize, m: usize, len: usize, rounds: usize) {
    let code = Code::new(k, m).expect("a code");
    let originals = filled(k, len);
    let mut expected = ShardBuf::new(m, len);
    run_plan(&Plan::encode(code, Backend::best()), &originals, &mut expected);

    let indices: Vec<u8> = (0..k + m).map(|i| i as u8).collect();
    let matrix = lagrange(&indices[..k], &indices[k..]);
    let tables = isal::Tables::new(k, m, &matrix, isal::Kernels::Best);
    let check = |name: &str, out: &ShardBuf| {
        for (i, (a, b)) in expected.iter().zip(out.iter()).enumerate() {
            assert!(a == b, "{name}: recovery shard {i} differs");
        }
    };
    let plans: Vec<Plan> =
        Backend::available().filter(|b| b.name() != "scalar").map(|b| Plan::encode(code, b)).collect();
    let mut outs: Vec<ShardBuf> = (0..plans.len() + 4).map(|_| ShardBuf::new(m, len)).collect();
    let mut free = outs.iter_mut();
    let mut contenders = Vec::new();
    for plan in &plans {
        let out = free.next().expect("buffers");
        run_plan(plan, &originals, out);
        check(plan.backend().name(), out);
        let originals = &originals;
        let name = format!("fec {}", plan.backend().name());
        contenders.push(Contender::new(name, move || run_plan(plan, originals, out)));
    }
    let out = free.next().expect("buffers");
    tables.run(&originals, out, TILE);
    check("ISA-L in tiles", out);
    let (tables, originals) = (&tables, &originals);
    contenders.push(Contender::new("ISA-L in tiles", move || tables.run(originals, out, TILE)));
    let out = free.next().expect("buffers");
    contenders.push(Contender::new("ISA-L", move || tables.run(originals, out, usize::MAX)));
    // This crate has no code of 256 shards.
    if let Ok(coder) = rusty_erasure::Matrix::cauchy(k, m).and_then(rusty_erasure::coder) {
        let out = free.next().expect("buffers");
        contenders.push(Contender::new("rusty_erasure", move || {
            let src: Vec<&[u8]> = originals.iter().collect();
            let mut dst: Vec<&mut [u8]> = out.iter_mut().collect();
            coder.encode(&src, &mut dst).expect("it encodes");
        }));
    }
    let mut simd = reed_solomon_simd::ReedSolomonEncoder::new(k, m, len).expect("an encoder");
    contenders.push(Contender::new("reed-solomon-simd", move || {
        originals.iter().for_each(|row| simd.add_original_shard(row).expect("a shard"));
        let encoded = simd.encode().expect("it encodes");
        black_box(encoded.recovery(0));
    }));
    let erasure = reed_solomon_erasure::galois_8::ReedSolomon::new(k, m).expect("an encoder");
    let out = free.next().expect("buffers");
    {
        let src: Vec<&[u8]> = originals.iter().collect();
        let mut dst: Vec<&mut [u8]> = out.iter_mut().collect();
        erasure.encode_sep(&src, &mut dst).expect("it encodes");
    }
    check("reed-solomon-erasure", out);
    contenders.push(Contender::new("reed-solomon-erasure", move || {
        let src: Vec<&[u8]> = originals.iter().collect();
        let mut dst: Vec<&mut [u8]> = out.iter_mut().collect();
        erasure.encode_sep(&src, &mut dst).expect("it encodes");
    }));
    if let Some(program) = klauspost::program() {
        let mut out = ShardBuf::new(m, len);
        let mut process = klauspost::Process::start(&program, originals, &mut out);
        check("klauspost/reedsolomon", &out);
        contenders.push(Contender::timing_itself("klauspost/reedsolomon", move || process.encode()));
    }
    if m >= k {
        let mut copied = ShardBuf::new(m, len);
        contenders.push(Contender::new("copying: payload read, recovery rows written", move || {
            for (i, row) in copied.iter_mut().enumerate() {
                row.copy_from_slice(originals.row(i % k));
            }
            black_box(copied.row(0));
        }));
    }
    race(&format!("encode {k} + {m} x {len} B"), rounds, contenders);
}

/// fec's and ISA-L's kernels for AVX2, which matter on processors without AVX-512.
#[cfg(target_arch = "x86_64")]
fn encode_avx2(k: usize, m: usize, len: usize, rounds: usize) {
    let Some(backend) = Backend::available().find(|backend| backend.name() == "avx2") else { return };
    let plan = Plan::encode(Code::new(k, m).expect("a code"), backend);
    let originals = &filled(k, len);
    let mut outs = [(); 3].map(|()| ShardBuf::new(m, len));
    let indices: Vec<u8> = (0..k + m).map(|i| i as u8).collect();
    let matrix = lagrange(&indices[..k], &indices[k..]);
    let tables = &isal::Tables::new(k, m, &matrix, isal::Kernels::Avx2);
    run_plan(&plan, originals, &mut outs[0]);
    tables.run(originals, &mut outs[1], TILE);
    assert!(outs[0].iter().eq(outs[1].iter()), "ISA-L with AVX2 makes other bytes");
    let [ours, tiled, whole] = &mut outs;
    let contenders = vec![
        Contender::new("fec avx2", || run_plan(&plan, originals, ours)),
        Contender::new("ISA-L AVX2 in tiles", || tables.run(originals, tiled, TILE)),
        Contender::new("ISA-L AVX2", || tables.run(originals, whole, usize::MAX)),
    ];
    race(&format!("encode {k} + {m} x {len} B, AVX2"), rounds, contenders);
}

/// Restores `lost` originals from the others and the first recovery shards; set-up included on both
/// sides.
fn decode(k: usize, m: usize, len: usize, lost: usize, rounds: usize) {
    let code = Code::new(k, m).expect("a code");
    let originals = filled(k, len);
    let mut recovery = ShardBuf::new(m, len);
    run_plan(&Plan::encode(code, Backend::best()), &originals, &mut recovery);
    let known: Vec<u8> = (lost..k + lost).map(|i| i as u8).collect();
    let wanted: Vec<u8> = (0..lost).map(|i| i as u8).collect();
    let mut have = ShardBuf::new(k, len);
    for (row, index) in have.iter_mut().zip(&known) {
        let index = usize::from(*index);
        row.copy_from_slice(if index < k { originals.row(index) } else { recovery.row(index - k) });
    }
    let check = |name: &str, out: &ShardBuf| {
        for (i, (a, b)) in originals.iter().zip(out.iter()).enumerate() {
            assert!(a == b, "{name}: original {i} differs");
        }
    };
    let (have, known, wanted) = (&have, &known, &wanted);
    let backend = Backend::best();
    let mut out = ShardBuf::new(lost, len);
    let mut fec = move || {
        let plan = Plan::new(code, backend, known, wanted).expect("a plan");
        run_plan(&plan, have, &mut out);
        black_box(out.row(0).as_ptr());
        out.row(0)[0]
    };
    black_box(fec());
    let indices: Vec<u8> = (0..k + m).map(|i| i as u8).collect();
    let generator = lagrange(&indices[..k], &indices[k..]);
    let mut out = ShardBuf::new(lost, len);
    isal::restore(k, &generator, known, wanted, have, &mut out, TILE);
    check("ISA-L", &out);
    let generator = &generator;
    let contenders = vec![
        Contender::new(format!("fec {}", backend.name()), move || {
            black_box(fec());
        }),
        Contender::new("ISA-L in tiles", move || {
            isal::restore(k, generator, known, wanted, have, &mut out, TILE)
        }),
    ];
    race(&format!("decode {k} + {m} x {len} B, {lost} originals lost, set-up included"), rounds, contenders);
}

/// The shards of klauspost/reedsolomon equal those of fec, for shapes of all kinds.
fn compare_with_klauspost() {
    let Some(program) = klauspost::program() else {
        println!("\nklauspost/reedsolomon is not here: no Go.");
        return;
    };
    let shapes =
        [(1, 1), (1, 255), (2, 1), (3, 4), (17, 3), (33, 67), (64, 64), (128, 128), (200, 56), (255, 1)];
    for (k, m) in shapes {
        let code = Code::new(k, m).expect("a code");
        let originals = filled(k, 1024);
        let (mut ours, mut theirs) = (ShardBuf::new(m, 1024), ShardBuf::new(m, 1024));
        run_plan(&Plan::encode(code, Backend::best()), &originals, &mut ours);
        drop(klauspost::Process::start(&program, &originals, &mut theirs));
        assert!(ours.iter().eq(theirs.iter()), "klauspost/reedsolomon: {k} + {m} differs");
    }
    println!("\nklauspost/reedsolomon makes the same shards as fec for {shapes:?}.");
}

fn main() {
    let rounds = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(31);
    compare_with_klauspost();
    let shard = |payload: usize, k: usize| payload.div_ceil(64 * k) * 64;
    let shapes =
        [(33, 67, 4 << 20), (86, 14, 4 << 20), (50, 50, 4 << 20), (100, 100, 4 << 20), (10, 4, 10 << 20)];
    for (k, m, payload) in shapes {
        encode(k, m, shard(payload, k), rounds);
    }
    encode(10, 4, 10 << 20, rounds);
    #[cfg(target_arch = "x86_64")]
    for (k, m, payload) in shapes {
        encode_avx2(k, m, shard(payload, k), rounds);
    }
    encode(33, 67, 256, 20 * rounds);
    // Shapes of a sidecar's group.
    for block in [4 << 10, 16 << 10, 64 << 10] {
        encode(220, 36, block, rounds);
    }
    for lost in [1, 8, 22, 33] {
        decode(33, 67, shard(4 << 20, 33), lost, rounds);
    }
    decode(33, 67, 256, 22, 20 * rounds);
    decode(86, 14, shard(4 << 20, 86), 14, rounds);
    for lost in [1, 36] {
        decode(220, 36, 16 << 10, lost, rounds);
    }
}

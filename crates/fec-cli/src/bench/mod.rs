//! `fec bench`: the reference workload in memory, phase by phase, through the product's own path.
//!
//! One set is encoded, hashed and put under a root; then k of its shards, a third of them originals,
//! are checked and decoded, everything else is computed again, and the root is compared. The codec
//! tells its phases to an observer, and the observer has the clock.

mod report;

use crate::args;
use crate::failure::{Exit, Failure, Result};
use crate::settings::{SCHEMA_VERSION, Settings, print_line};
use crate::sys::threads::Threads;
use fec_core::block::{Code, ShardBuf};
use fec_core::digest::HashKind;
use fec_core::merkle::Tree;
use fec_core::observe::{Observer, Phase};
use fec_core::params::{FileGeometry, GroupGeometry};
use fec_core::set::{PlanCache, SetDecoder, SetEncoder};
use report::{Report, Section};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Rounds before the first that counts.
const WARM_UP: u32 = 3;

/// Adds up the time of each phase in one round. The codec reports phases from one thread at a time.
#[derive(Default)]
struct Clock {
    state: Mutex<ClockState>,
}

#[derive(Default)]
struct ClockState {
    began: Option<Instant>,
    spent: BTreeMap<Phase, Duration>,
}

impl Clock {
    /// The times since the last call.
    fn take(&self) -> BTreeMap<Phase, Duration> {
        std::mem::take(&mut self.state.lock().unwrap_or_else(|e| e.into_inner()).spent)
    }
}

impl Observer for Clock {
    fn begin(&self, _: Phase) {
        self.state.lock().unwrap_or_else(|e| e.into_inner()).began = Some(Instant::now());
    }

    fn end(&self, phase: Phase, _: u64) {
        let mut state = self.state.lock().unwrap_or_else(|e| e.into_inner());
        let spent = state.began.take().map_or(Duration::ZERO, |began| began.elapsed());
        *state.spent.entry(phase).or_default() += spent;
    }
}

/// The times of many rounds: for each phase, and for the whole.
#[derive(Default)]
struct Rounds {
    phases: BTreeMap<Phase, Vec<Duration>>,
    totals: Vec<Duration>,
}

impl Rounds {
    fn add(&mut self, phases: BTreeMap<Phase, Duration>, total: Duration) {
        for (phase, time) in phases {
            self.phases.entry(phase).or_default().push(time);
        }
        self.totals.push(total);
    }
}

pub(crate) fn run(args: &args::Bench, settings: &Settings) -> Result<Exit> {
    let code = Code::new(args.data.into(), args.recovery.into())
        .map_err(|e| Failure::usage(format!("-k {} -m {}: {e}", args.data, args.recovery)))?;
    let hash = HashKind::from(args.hash);
    let refused = |e| Failure::new(Exit::Refused, format!("bench: {e}"));
    let geometry = FileGeometry::shard_files(hash, code, args.set_size, args.set_size).map_err(refused)?;
    let set_bytes = 2 * geometry.shape().set_bytes();
    if set_bytes > settings.max_memory {
        return Err(Failure::new(Exit::Refused, format!("bench: the set takes {set_bytes} bytes twice"))
            .help("allow more with --max-memory, or choose a smaller --set-size"));
    }
    let group = geometry.group(0);
    let threads = Threads(settings.threads);
    let began = Instant::now();
    let encoder = SetEncoder::new(code, hash, settings.backend);
    let encode_setup = began.elapsed();

    let mut set = Set::new(&group);
    let mut encoding = Rounds::default();
    let clock = Clock::default();
    let progress = settings.progress("bench", Some(u64::from(2 * (WARM_UP + args.rounds))));
    for round in 0..WARM_UP + args.rounds {
        let began = Instant::now();
        set.encode(&encoder, threads, &clock);
        let total = began.elapsed();
        let phases = clock.take();
        if round >= WARM_UP {
            encoding.add(phases, total);
        }
        progress.add(1);
    }

    let plans = PlanCache::new(settings.backend);
    let kept = kept_shards(code);
    let mut decoder = SetDecoder::new(group.shape());
    let mut decoding = Rounds::default();
    let mut decode_setup = Duration::ZERO;
    for round in 0..WARM_UP + args.rounds {
        let total = set.decode(&mut decoder, &kept, &plans, threads, &clock)?;
        let phases = clock.take();
        if round == 0 {
            // The first round makes the plan; the later ones find it.
            decode_setup = phases.get(&Phase::Plan).copied().unwrap_or_default();
        }
        if round >= WARM_UP {
            decoding.add(phases, total);
        }
        progress.add(1);
    }
    progress.finish();
    set.compare(&decoder)?;

    let payload = group.payload_len();
    let lost = code.k() - kept.iter().filter(|i| (**i as usize) < code.k()).count();
    let report = Report {
        schema_version: SCHEMA_VERSION,
        command: "bench",
        cpu: report::cpu_name(),
        backend: settings.backend.name(),
        engine: encoder.plan().engine().name(),
        multiplications_per_column: encoder.plan().operations().multiplications,
        additions_per_column: encoder.plan().operations().additions,
        threads: settings.threads,
        hash: hash.name(),
        k: code.k(),
        m: code.m(),
        payload_bytes: payload,
        shard_bytes: group.shape().shard_len,
        rounds: args.rounds,
        lost_originals: lost,
        encode: Section::new(&encoding, payload, encode_setup),
        decode: Section::new(&decoding, payload, decode_setup),
    };
    if settings.json {
        settings.report(&report, "", false)?;
    } else {
        print_line(report.table().trim_end())?;
    }
    Ok(Exit::Done)
}

/// The k shards that decoding starts from: a third of them originals, as when a random third of the
/// reference shape survives, the rest recovery shards, as far as there are enough.
fn kept_shards(code: Code) -> Vec<u32> {
    let originals = (code.k() / 3).max(code.k().saturating_sub(code.m()));
    let recovery = code.k() - originals;
    (0..originals).chain(code.k()..code.k() + recovery).map(|i| i as u32).collect()
}

/// One set in memory.
struct Set {
    group: GroupGeometry,
    originals: ShardBuf,
    recovery: ShardBuf,
    tree: Tree,
    group_root: [u8; 32],
}

impl Set {
    /// Originals filled with bytes that no code or hash can take a short cut on.
    fn new(group: &GroupGeometry) -> Set {
        let shape = group.shape();
        let mut originals = ShardBuf::new(shape.code.k(), shape.shard_len);
        let mut state = 1u64;
        for (i, row) in originals.iter_mut().enumerate() {
            let (bytes, padding) = row.split_at_mut(group.shard_payload(0, i));
            for byte in bytes {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                *byte = (state >> 56) as u8;
            }
            padding.fill(0);
        }
        let recovery = ShardBuf::new(shape.code.m(), shape.shard_len);
        Set { group: *group, originals, recovery, tree: Tree::new(), group_root: [0; 32] }
    }

    fn encode(&mut self, encoder: &SetEncoder, threads: Threads, clock: &Clock) {
        let rows: Vec<&[u8]> = self.originals.iter().collect();
        let set_root = encoder.encode(0, &rows, &mut self.recovery, &mut self.tree, &threads, clock);
        self.group_root = self.group.root(&set_root);
    }

    fn shard(&self, index: u32) -> &[u8] {
        let k = self.originals.rows();
        match (index as usize).checked_sub(k) {
            None => self.originals.row(index as usize),
            Some(recovery) => self.recovery.row(recovery),
        }
    }

    /// Checks and decodes; returns the time without that of bringing the shards in.
    fn decode(
        &self,
        decoder: &mut SetDecoder,
        kept: &[u32],
        plans: &PlanCache,
        threads: Threads,
        clock: &Clock,
    ) -> Result<Duration> {
        let mut proof = vec![0u8; self.group.shape().proof_len()];
        let mut total = Duration::ZERO;
        decoder.begin(&self.group, &self.group_root, 0);
        for index in kept {
            decoder.slot(*index).copy_from_slice(self.shard(*index));
            self.tree.write_path(*index as usize, &mut proof);
            let began = Instant::now();
            let intact = decoder.check(*index, &[&proof], clock);
            total += began.elapsed();
            if !intact {
                return Err(Failure::new(
                    Exit::Untrue,
                    format!("bench: shard {index} does not pass its check"),
                ));
            }
        }
        let began = Instant::now();
        decoder
            .decode(plans, &threads, clock)
            .map_err(|e| Failure::new(Exit::Untrue, format!("bench: {e}")))?;
        Ok(total + began.elapsed())
    }

    /// Every shard came out as it went in.
    fn compare(&self, decoder: &SetDecoder) -> Result<()> {
        let n = self.group.shape().code.n() as u32;
        match (0..n).find(|i| decoder.row(*i) != self.shard(*i)) {
            None => Ok(()),
            Some(i) => Err(Failure::new(Exit::Untrue, format!("bench: shard {i} was decoded wrongly"))),
        }
    }
}

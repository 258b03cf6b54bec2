//! The reference workload: one set in memory, phase by phase, through the product's own path.
//!
//! A set is encoded, hashed and put under a root; then k of its shards, a third of them originals, are checked and
//! decoded, everything else is computed again, and the root is compared. The codec tells its phases to an
//! observer, and the observer has the clocks.

use super::super::counters::{self, Counts};
use super::super::lab::Lab;
use super::super::report::{Cell, Column, Table, figure, key};
use super::super::slices::{Moment, Slice, Slices};
use super::rows::{aligned, fill};
use super::{Outcome, estimated_cycles, megabits};
use crate::failure::{Exit, Failure, Result};
use crate::stages::{self, Observed};
use crate::sys::threads::Threads;
use fec_core::block::{Code, ShardBuf};
use fec_core::digest::HashKind;
use fec_core::observe::{Observer, Phase};
use fec_core::params::{FileGeometry, GroupGeometry};
use fec_core::set::{Decoded, EncodedSet, PlanCache, Run, SetDecoder, SetEncoder};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Rounds before the first that counts.
const WARM_UP: usize = 3;

/// Adds up the time of each phase in one round, by the clock on the wall alone: the thread's own is a call of the
/// system each time, so only whole rounds read it. The codec reports phases from one thread.
#[derive(Default)]
struct PhaseClock {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    began: Option<Instant>,
    spent: BTreeMap<Phase, Duration>,
    reports: u32,
}

impl PhaseClock {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The times since the last call, and how often a phase ended.
    fn take(&self) -> State {
        std::mem::take(&mut *self.state())
    }

    /// Seconds that one phase's report takes: its begin and its end.
    fn cost() -> f64 {
        const REPORTS: u32 = 2000;
        let clock = PhaseClock::default();
        let observer: &dyn Observer = std::hint::black_box(&clock);
        let began = Instant::now();
        for _ in 0..REPORTS {
            observer.begin(Phase::Check);
            observer.end(Phase::Check, 0);
        }
        began.elapsed().as_secs_f64() / f64::from(REPORTS)
    }
}

impl Observer for PhaseClock {
    fn begin(&self, phase: Phase) {
        Observed.begin(phase);
        self.state().began = Some(Instant::now());
    }

    fn end(&self, phase: Phase, bytes: u64) {
        let mut state = self.state();
        let Some(began) = state.began.take() else { return };
        Observed.end(phase, bytes);
        *state.spent.entry(phase).or_default() += began.elapsed();
        state.reports += 1;
    }
}

/// The phases of many rounds.
struct Rounds {
    phases: BTreeMap<Phase, Slices>,
    other: Slices,
    total: Slices,
    spread: bool,
    /// Reports of phases in one round.
    reports: u32,
    /// Seconds of making the plan, which only the first round does.
    setup: f64,
    counts: Counts,
}

impl Rounds {
    fn new(spread: bool) -> Rounds {
        let slices = || Slices::new(1, spread);
        let (other, total) = (slices(), slices());
        let (phases, counts) = (BTreeMap::new(), Counts::default());
        Rounds { phases, other, total, spread, reports: 0, setup: 0.0, counts }
    }

    fn add(&mut self, state: State, total: Slice) {
        let mut rest = total.wall;
        for (phase, spent) in state.spent {
            rest = rest.saturating_sub(spent);
            self.phases.entry(phase).or_insert_with(|| Slices::new(1, self.spread)).add(total.part(spent));
        }
        self.reports = state.reports;
        self.other.add(total.part(rest));
        self.total.add(total);
    }
}

/// What is done again and again: a round of encoding or decoding.
type Round<'a> = dyn FnMut(&dyn Observer) -> Result<Slice> + 'a;

pub(super) fn run(lab: &mut Lab) -> Result<Outcome> {
    let code = super::code(lab)?;
    let hashes = match lab.args.hash {
        Some(hash) => vec![HashKind::from(hash)],
        None => vec![HashKind::Blake3, HashKind::Sha256],
    };
    let threads = thread_counts(lab);
    let mut encode = Table::new("encode", "", columns());
    let mut decode = Table::new("decode", "", columns());
    let mut notes = Vec::new();
    lab.plan(2 * hashes.len() * threads.len());
    for hash in hashes {
        let group = geometry(lab, code, hash)?;
        stages::tell_work(code, hash, lab.settings.backend);
        let payload = group.payload_len();
        let encoder = SetEncoder::new(code, hash, lab.settings.backend);
        let mut set = Set::new(&group);
        let lost = code.k() - kept_shards(code).iter().filter(|i| (**i as usize) < code.k()).count();
        encode.title = format!(
            "encode {} + {} shards of {} bytes, {payload} bytes of payload, {} engine ({} multiplications and {} additions a column)",
            code.k(),
            code.m(),
            group.shape().shard_len,
            encoder.plan().engine().name(),
            encoder.plan().operations().multiplications,
            encoder.plan().operations().additions,
        );
        decode.title = format!("decode from {} shards, {lost} of {} originals lost", code.k(), code.k());
        for &threads in &threads {
            let name = format!("encode, {}, {threads} threads", hash.name());
            let lent = Threads(threads);
            let began = Instant::now();
            std::hint::black_box(SetEncoder::new(code, hash, lab.settings.backend));
            let setup = began.elapsed().as_secs_f64();
            // Filled even where there is no time left for the figure: decoding needs it.
            set.encode(&encoder, lent, &PhaseClock::default());
            let rounds =
                measure(lab, &name, threads > 1, &mut |clock| Ok(set.encode(&encoder, lent, clock)))?;
            if let Some(rounds) = rounds {
                let rounds = Rounds { setup, ..rounds };
                fill_table(lab, &mut encode, hash, threads, &rounds, payload);
            }
            let name = format!("decode, {}, {threads} threads", hash.name());
            let plans = PlanCache::new(lab.settings.backend);
            let kept = kept_shards(code);
            let mut decoder = SetDecoder::for_payload(group.shape());
            let clock = PhaseClock::default();
            set.decode(&mut decoder, &kept, &plans, lent, &clock)?;
            let setup = clock.take().spent.get(&Phase::Plan).map_or(0.0, Duration::as_secs_f64);
            let rounds = measure(lab, &name, threads > 1, &mut |clock| {
                Ok(set.decode(&mut decoder, &kept, &plans, lent, clock)?.0)
            })?;
            let (_, decoded) = set.decode(&mut decoder, &kept, &plans, lent, &clock)?;
            set.compare(&decoded)?;
            if let Some(rounds) = rounds {
                let rounds = Rounds { setup, ..rounds };
                if let Some(total) = rounds.total.summary()
                    && notes.is_empty()
                {
                    notes.push(observing(&rounds, total.median));
                }
                fill_table(lab, &mut decode, hash, threads, &rounds, payload);
            }
        }
    }
    notes.push(
        "on several threads BLAKE3 digests run side by side with the kernel, and count as its phase"
            .to_owned(),
    );
    notes.push("Mb/s are payload bits; set-up is making the plan, once, and no part of the total".to_owned());
    Ok(Outcome { tables: vec![encode, decode], notes })
}

fn columns() -> Vec<Column> {
    let columns = [
        key("hash", "hash"),
        key("threads", "threads"),
        key("phase", "phase"),
        figure("time_ms", "median ms", 3),
        figure("share", "share", 3),
        figure("megabits_per_second", "Mb/s", 0),
        figure("estimated_cycles_per_byte", "est. c/B", 3),
    ];
    columns.into_iter().chain(counters::columns()).collect()
}

/// One, all, and the powers of two in between; or what was asked for.
fn thread_counts(lab: &Lab) -> Vec<usize> {
    if let Some(asked) = lab.settings.threads_asked {
        return vec![asked];
    }
    let all = lab.settings.threads;
    let mut counts: Vec<usize> = (0..).map(|i| 1 << i).take_while(|count| *count < all).collect();
    counts.push(all);
    counts
}

fn geometry(lab: &Lab, code: Code, hash: HashKind) -> Result<GroupGeometry> {
    let payload = lab.args.set_size.unwrap_or(4 << 20);
    let refused = |e| Failure::new(Exit::Refused, format!("bench: {e}"));
    let geometry = FileGeometry::shard_files(hash, code, payload, payload).map_err(refused)?;
    let bytes = 2 * geometry.shape().set_bytes();
    if bytes > lab.settings.max_memory {
        return Err(Failure::new(Exit::Refused, format!("bench: the set takes {bytes} bytes twice"))
            .help("allow more with --max-memory, or choose a smaller --set-size"));
    }
    Ok(geometry.group(0))
}

/// Rounds until the time is up.
fn measure(lab: &mut Lab, name: &str, spread: bool, round: &mut Round) -> Result<Option<Rounds>> {
    let Some(share) = lab.share(name) else { return Ok(None) };
    let clock = PhaseClock::default();
    for _ in 0..WARM_UP {
        round(&clock)?;
    }
    clock.take();
    let mut rounds = Rounds::new(spread);
    let began = Instant::now();
    while lab.goes_on(rounds.total.len(), began, share) {
        let total = round(&clock)?;
        rounds.add(clock.take(), total);
    }
    if lab.counters.any() && !lab.stopped() {
        let mut outcome = Ok(());
        rounds.counts = lab.counters.count(1, &mut || outcome = round(&clock).map(|_| ()));
        outcome?;
    }
    Ok(Some(rounds))
}

/// The rows of one hash and thread count: phases in the order of the work, what is left, the whole, the set-up.
fn fill_table(
    lab: &mut Lab,
    table: &mut Table,
    hash: HashKind,
    threads: usize,
    rounds: &Rounds,
    payload: u64,
) {
    // In the order of the enum but for the second digest and tree.
    const ORDER: [(Phase, &str); 6] = [
        (Phase::Check, "check"),
        (Phase::Encode, "encode"),
        (Phase::Decode, "decode"),
        (Phase::Reencode, "re-encode"),
        (Phase::Digest, "digests"),
        (Phase::Tree, "tree"),
    ];
    let Some(total) = lab.note(&rounds.total) else { return };
    let phases = ORDER.iter().filter_map(|(phase, name)| Some((*name, rounds.phases.get(phase)?)));
    for (name, slices) in phases.chain([("other", &rounds.other), ("total", &rounds.total)]) {
        let Some(time) = slices.summary() else { continue };
        let seconds = time.median;
        let cells: [(&'static str, Cell); 7] = [
            ("hash", hash.name().into()),
            ("threads", threads.into()),
            ("phase", name.into()),
            ("share", (seconds / total.median).into()),
            ("megabits_per_second", megabits(payload, seconds).into()),
            ("estimated_cycles_per_byte", estimated_cycles(lab, payload, seconds).into()),
            ("time_ms", time.scaled(1e3).into()),
        ];
        let counts = if name == "total" { rounds.counts.clone() } else { Counts::default() };
        table.row(cells.into_iter().chain(counters::cells(&counts, payload)));
    }
    table.row([
        ("hash", hash.name().into()),
        ("threads", threads.into()),
        ("phase", "set-up".into()),
        ("time_ms", (rounds.setup * 1e3).into()),
    ]);
}

/// What the observer's clocks cost, of a round of `total` seconds.
fn observing(rounds: &Rounds, total: f64) -> String {
    let cost = PhaseClock::cost();
    let share = cost * f64::from(rounds.reports) / total;
    format!(
        "observing: {} reports of phases in a round of decoding, {:.2} µs each, {:.2} % of it",
        rounds.reports,
        cost * 1e6,
        share * 100.0
    )
}

/// The k shards that decoding starts from: a third of them originals, as when a random third of the reference
/// shape survives, the rest recovery shards, as far as there are enough.
fn kept_shards(code: Code) -> Vec<u32> {
    let originals = (code.k() / 3).max(code.k().saturating_sub(code.m()));
    let recovery = code.k() - originals;
    (0..originals).chain(code.k()..code.k() + recovery).map(|i| i as u32).collect()
}

/// One set in memory.
struct Set {
    group: GroupGeometry,
    originals: ShardBuf,
    encoded: EncodedSet,
    group_root: [u8; 32],
}

impl Set {
    fn new(group: &GroupGeometry) -> Set {
        let shape = group.shape();
        let mut originals = aligned(shape.code.k(), shape.shard_len);
        for (i, row) in originals.iter_mut().enumerate() {
            let (bytes, padding) = row.split_at_mut(group.shard_payload(0, i));
            fill(bytes, i as u64 + 1);
            padding.fill(0);
        }
        Set { group: *group, originals, encoded: EncodedSet::new(shape), group_root: [0; 32] }
    }

    fn encode(&mut self, encoder: &SetEncoder, threads: Threads, observer: &dyn Observer) -> Slice {
        let began = Moment::now();
        let rows: Vec<&[u8]> = self.originals.iter().collect();
        let run = Run { executor: &threads, observer };
        let set_root = encoder.encode(0, &rows, &mut self.encoded, run);
        self.group_root = self.group.root(&set_root);
        began.until_now()
    }

    fn shard(&self, index: u32) -> &[u8] {
        let k = self.originals.rows();
        match (index as usize).checked_sub(k) {
            None => self.originals.row(index as usize),
            Some(recovery) => self.encoded.recovery().row(recovery),
        }
    }

    /// Checks and decodes; the time is without that of bringing the shards in.
    fn decode<'a>(
        &'a self,
        decoder: &'a mut SetDecoder,
        kept: &[u32],
        plans: &PlanCache,
        threads: Threads,
        observer: &dyn Observer,
    ) -> Result<(Slice, Decoded<'a>)> {
        let run = Run { executor: &threads, observer };
        let mut proof = vec![0u8; self.group.shape().proof_len()];
        let mut total = Slice { wall: Duration::ZERO, core: Duration::ZERO };
        let mut reading = decoder.begin(&self.group, &self.group_root, 0);
        for index in kept {
            reading.slot(*index).copy_from_slice(self.shard(*index));
            self.encoded.write_path(*index as usize, &mut proof);
            let began = Moment::now();
            let intact = reading.check(*index, &[&proof], run);
            total += began.until_now();
            if !intact {
                return Err(wrong(format!("bench: shard {index} does not pass its check")));
            }
        }
        let began = Moment::now();
        let decoded = reading.decode(plans, run).map_err(|e| wrong(format!("bench: {e}")))?;
        total += began.until_now();
        Ok((total, decoded))
    }

    /// Every original came out as it went in; recovery shards are computed, hashed and dropped.
    fn compare(&self, decoded: &Decoded<'_>) -> Result<()> {
        let k = self.group.shape().code.k() as u32;
        match (0..k).find(|i| decoded.row(*i) != self.shard(*i)) {
            None => Ok(()),
            Some(i) => Err(wrong(format!("bench: shard {i} was decoded wrongly"))),
        }
    }
}

fn wrong(message: String) -> Failure {
    Failure::new(Exit::Untrue, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a round of the reference workload, in which every one of 33 shards is checked by itself.
    #[test]
    fn observing_costs_next_to_nothing() {
        let reports = 33 + 6;
        let cost = (0..9).map(|_| PhaseClock::cost()).fold(f64::MAX, f64::min);
        // A round takes 1.5 ms or more on machines where clocks are fast; the bar is one per cent.
        assert!(cost * f64::from(reports) < 0.01 * 4e-3, "{} µs a report", cost * 1e6);
    }
}

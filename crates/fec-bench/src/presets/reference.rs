//! The reference workload: a set in memory, phase by phase, through the product's own path.
//!
//! A set is encoded, hashed and put under a root. Then k of its shards, a third of them originals, are checked and
//! decoded, all other shards are computed again, and the root is compared. The codec tells its phases to an observer,
//! and the observer has the clocks.

use crate::counters::{self, Counts};
use crate::error::{Error, Result};
use crate::lab::{Lab, megabits};
use crate::random::Mmix;
use crate::rows::aligned;
use crate::slices::{Moment, Slice, Slices};
use crate::table::{
    Cell, ESTIMATED_CYCLES, FigureColumn, FigureTable, Findings, estimated_cycles, figure, key,
};
use crate::words::{self, count};
use fec_base::program::stages::{self, Observed};
use fec_base::threads::Threads;
use fec_core::block::{Code, ShardBuf};
use fec_core::digest::HashKind;
use fec_core::observe::{Observer, Phase};
use fec_core::params::{Form, GroupGeometry, SHORT_SHARD};
use fec_core::set::{Decoded, EncodedSet, PlanCache, Run, SetDecoder, SetEncoder};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Rounds before the first that counts.
const WARM_UP: usize = 3;

/// Adds up the time of each phase in one round, by the clock on the wall alone: the thread's own clock is a system
/// call, so only whole rounds read it. The codec reports phases from one thread.
#[derive(Default)]
struct PhaseClock {
    state: Mutex<PhaseTimes>,
}

#[derive(Default)]
struct PhaseTimes {
    began: Option<Instant>,
    spent: BTreeMap<Phase, Duration>,
    reports: u32,
}

impl PhaseClock {
    fn state(&self) -> MutexGuard<'_, PhaseTimes> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The times since the last call, and the number of ends of phases.
    fn take(&self) -> PhaseTimes {
        std::mem::take(&mut *self.state())
    }

    /// Seconds that the report of a phase takes: its begin and its end.
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
    /// Seconds of making the plan, in the first round alone.
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

    fn add(&mut self, state: PhaseTimes, total: Slice) {
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

/// A round of encoding or decoding, to be repeated.
type Round<'a> = dyn FnMut(&dyn Observer) -> Result<Slice> + 'a;

pub(crate) fn run(lab: &mut Lab) -> Result<Findings> {
    let code = lab.options.code()?;
    let hashes = lab.options.hash.map_or(vec![HashKind::Blake3, HashKind::Sha256], |hash| vec![hash]);
    let threads = thread_counts(lab);
    let [mut encode, mut decode, mut strict] =
        ["encode", "decode", "decode_strict"].map(|name| FigureTable::new(name, "", columns()));
    let mut observing = None;
    lab.plan(3 * hashes.len() * threads.len());
    for hash in hashes {
        let group = geometry(lab, code, hash)?;
        stages::tell_work(code, hash, lab.settings.backend);
        let encoder = SetEncoder::new(code, hash, lab.settings.backend);
        let mut set = ReferenceSet::new(&group);
        [encode.title, decode.title, strict.title] = titles(&group, &encoder);
        for &threads in &threads {
            encode_rows(lab, &mut encode, &mut set, &encoder, threads)?;
            decode_rows(lab, &mut decode, &set, threads, Decoding::Payload)?;
            let note = decode_rows(lab, &mut strict, &set, threads, Decoding::Strict)?;
            observing = observing.or(note);
        }
    }
    let digests =
        "on several threads BLAKE3 digests run side by side with the kernel, and count as its phase";
    let setup = "Mb/s are payload bits; set-up is making the plan, once, and no part of the total";
    let notes = observing.into_iter().chain([digests.to_owned(), setup.to_owned()]).collect();
    Ok(Findings::new(vec![encode, decode, strict], notes))
}

/// The descriptions of encoding and of both decodings.
fn titles(group: &GroupGeometry, encoder: &SetEncoder) -> [String; 3] {
    let code = group.shape().code;
    let operations = encoder.plan().operations();
    let encode = format!(
        "encode {} + {} shards of {} bytes, {} bytes of payload, {} engine ({} multiplications and {} additions a column)",
        code.k(),
        code.m(),
        group.shape().shard_len,
        group.payload_len(),
        encoder.plan().engine().name(),
        operations.multiplications,
        operations.additions,
    );
    let kept_originals = kept_shards(code).iter().filter(|i| (**i as usize) < code.k()).count();
    let lost = code.k() - kept_originals;
    let decode = format!("decode from {} shards, {lost} of {} originals lost", code.k(), code.k());
    [encode, decode.clone(), format!("{decode}, and all recovery shards computed and compared")]
}

/// Measures encoding, and leaves the set encoded.
fn encode_rows(
    lab: &mut Lab,
    table: &mut FigureTable,
    set: &mut ReferenceSet,
    encoder: &SetEncoder,
    threads: usize,
) -> Result<()> {
    let name = format!("encode, {}, {}", set.hash().name(), words::threads(threads));
    let lent = Threads(threads);
    let began = Instant::now();
    std::hint::black_box(SetEncoder::new(set.group.shape().code, set.hash(), lab.settings.backend));
    let setup = began.elapsed().as_secs_f64();
    // The set is encoded even without time for the figure: decoding needs it.
    set.encode(encoder, lent, &PhaseClock::default());
    let rounds = measure(lab, &name, threads > 1, &mut |clock| Ok(set.encode(encoder, lent, clock)))?;
    if let Some(rounds) = rounds {
        fill_table(lab, table, set, threads, &Rounds { setup, ..rounds });
    }
    Ok(())
}

/// The way a set is decoded.
#[derive(Clone, Copy)]
enum Decoding {
    /// The originals are proved.
    Payload,
    /// The whole set is proved to be a codeword.
    Strict,
}

/// Measures decoding. Returns the cost of observing it.
fn decode_rows(
    lab: &mut Lab,
    table: &mut FigureTable,
    set: &ReferenceSet,
    threads: usize,
    decoding: Decoding,
) -> Result<Option<String>> {
    let how = match decoding {
        Decoding::Payload => "decode",
        Decoding::Strict => "decode strictly",
    };
    let name = format!("{how}, {}, {}", set.hash().name(), words::threads(threads));
    let lent = Threads(threads);
    let plans = PlanCache::new(lab.settings.backend);
    let kept = kept_shards(set.group.shape().code);
    let mut decoder = SetDecoder::for_payload(set.group.shape());
    let clock = PhaseClock::default();
    set.decode(&mut decoder, &kept, &plans, lent, (decoding, &clock))?;
    let setup = clock.take().spent.get(&Phase::Plan).map_or(0.0, Duration::as_secs_f64);
    let rounds = measure(lab, &name, threads > 1, &mut |clock| {
        Ok(set.decode(&mut decoder, &kept, &plans, lent, (decoding, clock))?.0)
    })?;
    let (_, decoded) = set.decode(&mut decoder, &kept, &plans, lent, (decoding, &clock))?;
    set.compare(&decoded)?;
    let Some(rounds) = rounds else { return Ok(None) };
    let rounds = Rounds { setup, ..rounds };
    fill_table(lab, table, set, threads, &rounds);
    Ok(rounds.total.summary().map(|total| observing(&rounds, total.median)))
}

fn columns() -> Vec<FigureColumn> {
    let columns = [
        key("hash", "hash"),
        key("threads", "threads"),
        key("phase", "phase"),
        figure("time_ms", "median ms", 3),
        figure("share", "share", 3),
        figure("megabits_per_second", "Mb/s", 0),
        estimated_cycles(),
    ];
    columns.into_iter().chain(counters::columns()).collect()
}

/// A single thread, all, and the powers of two in between; or the requested number.
fn thread_counts(lab: &Lab) -> Vec<usize> {
    let all = lab.settings.threads;
    if lab.options.only_these_threads {
        return vec![all];
    }
    let mut counts: Vec<usize> = (0..).map(|i| 1 << i).take_while(|count| *count < all).collect();
    counts.push(all);
    counts
}

fn geometry(lab: &Lab, code: Code, hash: HashKind) -> Result<GroupGeometry> {
    let payload = lab.options.set_size.unwrap_or(4 << 20);
    // A single set, however short.
    let set_size = payload.max(SHORT_SHARD * code.k() as u64);
    let geometry =
        GroupGeometry::whole(Form::Shards, hash, code, set_size, payload).map_err(Error::Geometry)?;
    let bytes = 2 * geometry.shape().set_bytes();
    if bytes > lab.settings.max_memory {
        return Err(Error::SetMemory(bytes));
    }
    Ok(geometry)
}

/// Runs rounds until the time is up.
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

/// The rows of a hash and thread count: phases in the order of the work, the rest, the whole, the set-up.
fn fill_table(lab: &mut Lab, table: &mut FigureTable, set: &ReferenceSet, threads: usize, rounds: &Rounds) {
    let (hash, payload) = (set.hash(), set.group.payload_len());
    // The order of the enum, except for the second digest and tree.
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
        // These do not go through the payload.
        let has_rate = !["tree", "other"].contains(&name);
        let rate = has_rate.then(|| megabits(payload, seconds));
        let cycles = lab.estimated_cycles(payload, seconds).filter(|_| has_rate);
        let cells: [(&'static str, Cell); 7] = [
            ("hash", hash.name().into()),
            ("threads", threads.into()),
            ("phase", name.into()),
            ("share", (seconds / total.median).into()),
            ("megabits_per_second", rate.into()),
            (ESTIMATED_CYCLES, cycles.into()),
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

/// The cost of the observer's clocks, in a round of `total` seconds.
fn observing(rounds: &Rounds, total: f64) -> String {
    let cost = PhaseClock::cost();
    let share = cost * f64::from(rounds.reports) / total;
    format!(
        "timing the phases takes {:.2} % of the time itself: {:.2} µs for each of {} in a round of decoding",
        share * 100.0,
        cost * 1e6,
        count(rounds.reports.into(), "phase", "phases")
    )
}

/// The k shards that decoding starts from. A third of them are originals, as when a random third of the reference shape
/// survives; the rest are recovery shards, if there are enough.
pub(super) fn kept_shards(code: Code) -> Vec<u32> {
    let originals = (code.k() / 3).max(code.k().saturating_sub(code.m()));
    let recovery = code.k() - originals;
    (0..originals).chain(code.k()..code.k() + recovery).map(|i| i as u32).collect()
}

/// A set in memory.
struct ReferenceSet {
    group: GroupGeometry,
    originals: ShardBuf,
    encoded: EncodedSet,
    /// X: the root of the only set.
    tree: [u8; 32],
}

impl ReferenceSet {
    fn new(group: &GroupGeometry) -> ReferenceSet {
        let shape = group.shape();
        let mut originals = aligned(shape.code.k(), shape.shard_len);
        for (i, row) in originals.iter_mut().enumerate() {
            let (bytes, padding) = row.split_at_mut(group.shard_payload(0, i));
            Mmix(i as u64 + 1).fill(bytes);
            padding.fill(0);
        }
        ReferenceSet { group: *group, originals, encoded: EncodedSet::new(shape), tree: [0; 32] }
    }

    fn hash(&self) -> HashKind {
        self.group.shape().hash
    }

    fn encode(&mut self, encoder: &SetEncoder, threads: Threads, observer: &dyn Observer) -> Slice {
        let began = Moment::now();
        let rows: Vec<&[u8]> = self.originals.iter().collect();
        let run = Run { executor: &threads, observer };
        self.tree = encoder.encode(0, &rows, &mut self.encoded, run);
        began.until_now()
    }

    fn shard(&self, index: u32) -> &[u8] {
        let k = self.originals.rows();
        match (index as usize).checked_sub(k) {
            None => self.originals.row(index as usize),
            Some(recovery) => self.encoded.recovery().row(recovery),
        }
    }

    /// Checks and decodes. The time does not include bringing the shards in.
    fn decode<'a>(
        &'a self,
        decoder: &'a mut SetDecoder,
        kept: &[u32],
        plans: &PlanCache,
        threads: Threads,
        (decoding, observer): (Decoding, &dyn Observer),
    ) -> Result<(Slice, Decoded<'a>)> {
        let run = Run { executor: &threads, observer };
        let mut proof = vec![0u8; self.group.shape().proof_len()];
        let mut total = Slice { wall: Duration::ZERO, core: Duration::ZERO };
        let mut reading = decoder.begin(&self.group, &self.tree, 0);
        for index in kept {
            reading.slot(*index).copy_from_slice(self.shard(*index));
            self.encoded.write_path(*index as usize, &mut proof);
            let began = Moment::now();
            let intact = reading.check(*index, &[&proof], run);
            total += began.until_now();
            if !intact {
                return Err(Error::Check(*index));
            }
        }
        let began = Moment::now();
        let decoded = match decoding {
            Decoding::Payload => reading.decode(plans, run),
            Decoding::Strict => reading.decode_strictly(plans, run),
        };
        let decoded = decoded.map_err(|undecoded| Error::Decode(undecoded.error))?;
        total += began.until_now();
        Ok((total, decoded))
    }

    /// Compares every original with its source; recovery shards are not kept.
    fn compare(&self, decoded: &Decoded<'_>) -> Result<()> {
        let k = self.group.shape().code.k() as u32;
        match (0..k).find(|i| decoded.row(*i) != self.shard(*i)) {
            None => Ok(()),
            Some(i) => Err(Error::WrongShard(i)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round of the reference workload, in which each of 33 shards is checked by itself.
    #[test]
    fn observing_costs_next_to_nothing() {
        let reports = 33 + 6;
        let cost = (0..9).map(|_| PhaseClock::cost()).fold(f64::MAX, f64::min);
        // A round takes 1.5 ms or more on machines with fast clocks; the bar is one per cent.
        assert!(cost * f64::from(reports) < 0.01 * 4e-3, "{} µs a report", cost * 1e6);
    }
}

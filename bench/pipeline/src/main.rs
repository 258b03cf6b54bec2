//! fec's whole work on a set, which is coding, hashing and proving, against its bounds and its rivals. All contenders
//! of a table take turns in one process, on one core, over the same bytes, in another random order each round. Each
//! runs once untimed before it is timed; medians are of many rounds.
//!
//! `scripts/bench/peers.sh` runs this: `pipeline ROUNDS [threads|commonware]`.

mod commonware;
mod set;

// The benchmarks of commonware-coding use this allocator: its results are allocated anew for each set.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use fec_core::random::SplitMix64;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// A contender of a table.
pub(crate) struct Contender<'a> {
    name: &'static str,
    /// Does the work once and returns its time.
    run: Box<dyn FnMut() -> Duration + 'a>,
    times: Vec<Duration>,
}

impl<'a> Contender<'a> {
    /// All of `run` is timed.
    pub(crate) fn new(name: &'static str, mut run: impl FnMut() + 'a) -> Contender<'a> {
        Contender::timing_itself(name, move || timed(&mut run).0)
    }

    /// `run` returns the time of the part that counts.
    pub(crate) fn timing_itself(name: &'static str, run: impl FnMut() -> Duration + 'a) -> Contender<'a> {
        Contender { name, run: Box::new(run), times: Vec::new() }
    }

    fn median(&self) -> f64 {
        let mut times = self.times.clone();
        times.sort_unstable();
        times[times.len() / 2].as_secs_f64() * 1e3
    }
}

/// The processor time that `work` takes on this thread, and its result. Other programs on the machine then count only
/// by their effect on the caches.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let now =
        || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).expect("processor time is positive");
    let began = now();
    let result = work();
    (now() - began, result)
}

/// Runs all contenders in turn and prints a row for each: its time, and the median of the ratios to the first's time in
/// the same round.
pub(crate) fn race(title: &str, rounds: usize, mut contenders: Vec<Contender>) {
    let mut random = SplitMix64::new(rounds as u64);
    let mut order: Vec<usize> = (0..contenders.len()).collect();
    for _ in 0..rounds {
        for last in (1..order.len()).rev() {
            order.swap(last, random.index(last + 1));
        }
        for at in &order {
            let contender = &mut contenders[*at];
            // The first run replaces the caches that the contender before left.
            (contender.run)();
            let time = (contender.run)();
            contender.times.push(time);
        }
    }
    println!("\n### {title}\n\n| | median ms | time relative to the first |\n|---|---|---|");
    for contender in &contenders {
        let pairs = contender.times.iter().zip(&contenders[0].times);
        let mut ratios: Vec<f64> =
            pairs.map(|(own, first)| own.as_secs_f64() / first.as_secs_f64()).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        println!("| {} | {:.3} | {:.2} |", contender.name, contender.median(), ratios[ratios.len() / 2]);
    }
}

fn main() {
    let rounds = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(31);
    match std::env::args().nth(2).as_deref() {
        Some("threads") => set::two_threads(rounds),
        Some("commonware") => commonware::races(rounds),
        _ => {
            set::against_hashing(rounds);
            commonware::races(rounds);
        }
    }
}

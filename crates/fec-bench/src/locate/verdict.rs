//! The resource that holds work back: the stages' shares of the time, against the best that this machine can do.

use super::limits::MachineLimits;
use crate::words::per_cent;
use fec_base::program::stages::{STAGES, Spent, Stage, Thread, Work};
use std::time::Duration;

/// Sums over threads, by stage.
pub(crate) struct StageSums {
    pub(crate) stages: [Spent; 8],
    /// Seconds of each stage in which another task had the core.
    queued: [f64; 8],
    pub(crate) threads: usize,
    /// Seconds of the command.
    pub(crate) wall: f64,
    /// Seconds of all threads together.
    pub(crate) all: f64,
}

impl StageSums {
    pub(crate) fn new(threads: &[Thread]) -> StageSums {
        let mut stages = [Spent::default(); 8];
        let mut queued = [0.0; 8];
        for thread in threads {
            let share = queued_share(thread);
            for stage in STAGES.into_iter().filter(|stage| *stage != Stage::Wait) {
                // Computing needs only a core.
                let share = if COMPUTING.contains(&stage) { 1.0 } else { share };
                queued[stage as usize] += off_core(thread.stages[stage as usize]) * share;
            }
            for (sum, spent) in stages.iter_mut().zip(&thread.stages) {
                sum.wall += spent.wall;
                sum.core += spent.core;
                sum.bytes += spent.bytes;
            }
        }
        let seconds = |thread: &Thread| thread.wall.as_secs_f64();
        StageSums {
            stages,
            queued,
            threads: threads.len(),
            wall: threads.iter().map(seconds).fold(0.0, f64::max),
            all: threads.iter().map(seconds).sum(),
        }
    }

    pub(crate) fn of(&self, stage: Stage) -> Spent {
        self.stages[stage as usize]
    }

    /// The same sums if every thread had had a core whenever it could run.
    fn undisturbed(&self) -> StageSums {
        let mut stages = self.stages;
        for (spent, queued) in stages.iter_mut().zip(&self.queued) {
            spent.wall = spent.wall.saturating_sub(Duration::from_secs_f64(*queued));
        }
        StageSums { stages, queued: [0.0; 8], all: self.all - self.queued.iter().sum::<f64>(), ..*self }
    }

    /// A stage's share of the time that threads did not spend waiting for each other.
    pub(crate) fn share(&self, stage: Stage) -> f64 {
        let busy = self.all - self.of(Stage::Wait).wall.as_secs_f64();
        self.of(stage).wall.as_secs_f64() / busy.max(1e-9)
    }
}

/// Shortest time of a stage that has a rate: a shorter one would measure caches and clocks.
const SHORTEST: Duration = Duration::from_millis(1);

/// Shortest work that has a verdict, in seconds.
const SHORT: f64 = 0.01;

/// Bytes per second.
pub(crate) fn rate(spent: Spent) -> Option<f64> {
    (spent.bytes > 0 && spent.wall >= SHORTEST).then(|| spent.bytes as f64 / spent.wall.as_secs_f64())
}

/// Time in a stage without a core.
pub(crate) fn off_core(spent: Spent) -> f64 {
    spent.wall.saturating_sub(spent.core).as_secs_f64()
}

/// The share of a thread's time off a core in which it could have run, without waits for other threads.
fn queued_share(thread: &Thread) -> f64 {
    let others = STAGES.into_iter().filter(|stage| *stage != Stage::Wait);
    let off: f64 = others.map(|stage| off_core(thread.stages[stage as usize])).sum();
    thread.queued.map_or(0.0, |queued| (queued.as_secs_f64() / off.max(1e-9)).min(1.0))
}

/// Share of its limit from which a stage is held back by it.
const NEAR: f64 = 0.6;

/// The stages that need only a core and memory.
const COMPUTING: [Stage; 3] = [Stage::Code, Stage::Hash, Stage::Tree];

/// A share of the time that is worth naming.
const MUCH: f64 = 0.4;

/// The resource that holds the work back; unknown if no measurement tells.
pub(crate) fn verdict(sums: &StageSums, limits: &MachineLimits, work: Option<Work>) -> String {
    let ranked = STAGES.iter().filter(|stage| **stage != Stage::Wait);
    let Some(top) = ranked.max_by(|a, b| sums.share(**a).total_cmp(&sums.share(**b))).copied() else {
        return "unknown: nothing was timed".to_owned();
    };
    if sums.wall < SHORT {
        let time = sums.wall * 1e3;
        return format!("too little work to tell what holds it back: most of {time:.0} ms is {}", top.name());
    }
    let busy = sums.all - sums.of(Stage::Wait).wall.as_secs_f64();
    let robbed: f64 = sums.queued.iter().sum();
    if robbed > 0.2 * busy {
        return format!(
            "the processor: {} of the time other work had the core; without it, {}",
            per_cent(robbed / busy),
            verdict(&sums.undisturbed(), limits, work)
        );
    }
    let (share, spent) = (sums.share(top), sums.of(top));
    let waiting = (off_core(spent) - sums.queued[top as usize]).max(0.0) / spent.wall.as_secs_f64().max(1e-9);
    let waits = waiting > 0.5 && share > MUCH;
    match top {
        Stage::Read if waits => {
            format!("the input: {} of the time is waiting for it", per_cent(share * waiting))
        }
        Stage::Write if waits => {
            format!("the output: {} of the time is waiting for it", per_cent(share * waiting))
        }
        Stage::Sync => {
            format!("the disk: {} of the time is waiting until it has everything", per_cent(share))
        }
        _ => against_limits(top, share, rate(spent), limits, work),
    }
}

/// The resource that holds back a stage with this share of the time and this rate in bytes per second, by the limits of
/// one core.
fn against_limits(
    top: Stage,
    share: f64,
    rate: Option<f64>,
    limits: &MachineLimits,
    work: Option<Work>,
) -> String {
    let near = |limit: Option<f64>| rate.zip(limit).map(|(rate, limit)| rate / limit);
    let (cached, memory) = match top {
        Stage::Code => (near(limits.code_cached), near(limits.code_memory)),
        _ => (near(limits.of(top)), None),
    };
    let what = match (top, work) {
        (Stage::Code, Some(work)) => format!("the kernel ({})", work.backend.name()),
        (Stage::Hash, Some(work)) => format!("the hash ({})", work.hash.name()),
        (Stage::Read, _) => "reading".to_owned(),
        (Stage::Write, _) => "writing".to_owned(),
        (stage, _) => stage.name().to_owned(),
    };
    let time = per_cent(share);
    match (cached, memory) {
        _ if share < MUCH => format!("unknown: nothing stands out; most is {what}, {time} of the time"),
        (Some(cached), _) if cached >= NEAR => {
            let at =
                if cached < 1.0 { format!("at {} of what", per_cent(cached)) } else { "all that".to_owned() };
            format!("{what}: {time} of the time, {at} one core can do")
        }
        (Some(cached), Some(memory)) if memory >= NEAR => format!(
            "memory: {what} takes {time} of the time, at {} of its rate in memory and {} of that in the cache",
            per_cent(memory),
            per_cent(cached)
        ),
        (Some(cached), _) => format!(
            "unknown: {what} takes {time} of the time, and reaches only {} of what one core can do",
            per_cent(cached)
        ),
        (None, _) => format!("unknown: {what} takes {time} of the time, and has no measured limit"),
    }
}

//! What `--where` prints: a table of stages, and one line that names what holds the work back.

use super::limits::Limits;
use super::{STAGES, Spent, Stage, Thread, Work};
use crate::bench::report::{Table, figure, key, terminal_table};
use crate::failure::say;
use serde::Serialize;
use std::time::Duration;

/// What `--where` tells.
#[derive(Debug, Serialize)]
pub(crate) struct Where {
    event: &'static str,
    seconds: f64,
    threads: usize,
    table: Table,
    /// Share of all threads' time that stages account for, working or waiting: 1 unless time was lost.
    accounted: f64,
    pub(crate) verdict: String,
}

/// Prints the table and the verdict, or one line of JSON, on standard error.
pub(crate) fn print(json: bool) {
    let (threads, work) = super::stop();
    let limits = Limits::measure(work);
    let told = Where::new(&threads, &limits, work);
    let text = match json {
        true => serde_json::to_string(&told).unwrap_or_default(),
        false => format!("\n{}{}", terminal_table(&told.table), told.verdict),
    };
    say(&text);
}

/// Sums over threads, by stage.
struct Sums {
    stages: [Spent; 8],
    /// Seconds of each stage in which something else had the core.
    queued: [f64; 8],
    threads: usize,
    /// Seconds of the command, and of all threads together.
    wall: f64,
    all: f64,
}

impl Sums {
    fn new(threads: &[Thread]) -> Sums {
        let mut stages = [Spent::default(); 8];
        let mut queued = [0.0; 8];
        for thread in threads {
            let share = queued_share(thread);
            for stage in STAGES.into_iter().filter(|stage| *stage != Stage::Wait) {
                // Computing needs nothing but a core.
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
        Sums {
            stages,
            queued,
            threads: threads.len(),
            wall: threads.iter().map(seconds).fold(0.0, f64::max),
            all: threads.iter().map(seconds).sum(),
        }
    }

    fn of(&self, stage: Stage) -> Spent {
        self.stages[stage as usize]
    }

    /// The same if every thread had had a core whenever it could run.
    fn undisturbed(&self) -> Sums {
        let mut stages = self.stages;
        for (spent, queued) in stages.iter_mut().zip(&self.queued) {
            spent.wall = spent.wall.saturating_sub(Duration::from_secs_f64(*queued));
        }
        Sums { stages, queued: [0.0; 8], all: self.all - self.queued.iter().sum::<f64>(), ..*self }
    }

    /// Share of the time that threads did not spend waiting for each other.
    fn share(&self, stage: Stage) -> f64 {
        let busy = self.all - self.of(Stage::Wait).wall.as_secs_f64();
        self.of(stage).wall.as_secs_f64() / busy.max(1e-9)
    }
}

/// Bytes in a second.
fn rate(spent: Spent) -> Option<f64> {
    (spent.bytes > 0 && !spent.wall.is_zero()).then(|| spent.bytes as f64 / spent.wall.as_secs_f64())
}

/// Time in a stage without a core.
fn off_core(spent: Spent) -> f64 {
    spent.wall.saturating_sub(spent.core).as_secs_f64()
}

/// The share of a thread's time off a core, waiting for other threads left out, in which it could have run.
fn queued_share(thread: &Thread) -> f64 {
    let others = STAGES.into_iter().filter(|stage| *stage != Stage::Wait);
    let off: f64 = others.map(|stage| off_core(thread.stages[stage as usize])).sum();
    thread.queued.map_or(0.0, |queued| (queued.as_secs_f64() / off.max(1e-9)).min(1.0))
}

impl Where {
    fn new(threads: &[Thread], limits: &Limits, work: Option<Work>) -> Where {
        let sums = Sums::new(threads);
        let mut table = Table::new(
            "where",
            format!(
                "where the time goes: {:.3} s, {} threads in all; shares are of the time that threads do not wait for each other",
                sums.wall, sums.threads
            ),
            [
                key("stage", "stage"),
                figure("share", "share %", 1),
                figure("seconds", "thread s", 3),
                figure("off_core_seconds", "of it off core", 3),
                figure("bytes", "bytes", 0),
                figure("megabytes_per_second", "MB/s a thread", 0),
                figure("limit_megabytes_per_second", "limit MB/s", 0),
                figure("share_of_limit", "% of limit", 0),
            ],
        );
        for stage in STAGES {
            let spent = sums.of(stage);
            if spent.wall.is_zero() {
                continue;
            }
            let (rate, limit) = (rate(spent), limits.of(stage));
            table.row([
                ("stage", stage.name().into()),
                ("share", (stage != Stage::Wait).then(|| sums.share(stage) * 100.0).into()),
                ("seconds", spent.wall.as_secs_f64().into()),
                ("off_core_seconds", off_core(spent).into()),
                ("bytes", (spent.bytes > 0).then_some(spent.bytes as usize).into()),
                ("megabytes_per_second", rate.map(|rate| rate / 1e6).into()),
                ("limit_megabytes_per_second", limit.map(|limit| limit / 1e6).into()),
                ("share_of_limit", rate.zip(limit).map(|(rate, limit)| rate / limit * 100.0).into()),
            ]);
        }
        let accounted: Duration = sums.stages.iter().map(|spent| spent.wall).sum();
        Where {
            event: "where",
            seconds: sums.wall,
            threads: sums.threads,
            table,
            accounted: accounted.as_secs_f64() / sums.all.max(1e-9),
            verdict: format!("verdict: {}", verdict(&sums, limits, work)),
        }
    }
}

/// A stage that reaches this share of its limit is held back by it.
const NEAR: f64 = 0.6;

/// The stages that need nothing but a core and memory.
const COMPUTING: [Stage; 3] = [Stage::Code, Stage::Hash, Stage::Tree];

/// A share of the time that is worth naming.
const MUCH: f64 = 0.4;

/// Which resource holds the work back; unknown where no measurement says so.
fn verdict(sums: &Sums, limits: &Limits, work: Option<Work>) -> String {
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let busy = sums.all - sums.of(Stage::Wait).wall.as_secs_f64();
    let robbed: f64 = sums.queued.iter().sum();
    if robbed > 0.2 * busy {
        return format!(
            "the processor: {} of the time other work had the core; without it, {}",
            percent(robbed / busy),
            verdict(&sums.undisturbed(), limits, work)
        );
    }
    let ranked = STAGES.iter().filter(|stage| **stage != Stage::Wait);
    let Some(top) = ranked.max_by(|a, b| sums.share(**a).total_cmp(&sums.share(**b))).copied() else {
        return "unknown: nothing was timed".to_owned();
    };
    let (share, spent) = (sums.share(top), sums.of(top));
    let waiting = (off_core(spent) - sums.queued[top as usize]).max(0.0) / spent.wall.as_secs_f64().max(1e-9);
    if top == Stage::Read && waiting > 0.5 && share > MUCH {
        return format!("the input: {} of the time is waiting for it", percent(share * waiting));
    }
    if top == Stage::Write && waiting > 0.5 && share > MUCH {
        return format!("the output: {} of the time is waiting for it", percent(share * waiting));
    }
    if top == Stage::Sync {
        return format!("the disk: {} of the time is waiting until it has everything", percent(share));
    }
    let near = |limit: Option<f64>| rate(spent).zip(limit).map(|(rate, limit)| rate / limit);
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
    match (cached, memory) {
        _ if share < MUCH => {
            format!("unknown: nothing stands out; most is {what}, {} of the time", percent(share))
        }
        (Some(cached), _) if cached >= NEAR => {
            format!("{what}: {} of the time, at {} of what one core can do", percent(share), percent(cached))
        }
        (Some(cached), Some(memory)) if memory >= NEAR => format!(
            "memory: {what} takes {} of the time, at {} of its rate in memory and {} of that in the cache",
            percent(share),
            percent(memory),
            percent(cached)
        ),
        (Some(cached), _) => format!(
            "unknown: {what} takes {} of the time, and reaches only {} of what one core can do",
            percent(share),
            percent(cached)
        ),
        (None, _) => {
            format!("unknown: {what} takes {} of the time, and has no measured limit", percent(share))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fec_core::block::Code;
    use fec_core::digest::HashKind;
    use fec_core::gf256::kernel::Backend;

    /// Milliseconds on the wall and on the core, and megabytes, of a stage.
    type Timed = (Stage, u64, u64, u64);

    /// What one thread with these stages is told.
    fn told(stages: &[Timed]) -> String {
        let mut thread = Thread { wall: Duration::ZERO, queued: None, stages: Default::default() };
        for &(stage, wall, core, megabytes) in stages {
            let [wall, core] = [wall, core].map(Duration::from_millis);
            thread.stages[stage as usize] = Spent { wall, core, bytes: megabytes * 1_000_000 };
            thread.wall += wall;
        }
        let code = Code::new(33, 67).expect("a code");
        let backend = Backend::by_name("scalar").expect("scalar");
        let work = Work { code, hash: HashKind::Sha256, backend };
        let limits = Limits {
            code_cached: Some(4e9),
            code_memory: Some(1e9),
            hash: Some(1e9),
            read: Some(9e9),
            write: Some(3e9),
        };
        let told = Where::new(&[thread], &limits, Some(work));
        assert!((told.accounted - 1.0).abs() < 1e-9);
        told.verdict
    }

    #[test]
    fn the_verdict_names_what_holds_the_work_back() {
        use Stage::{Code, Hash, Other, Read, Sync, Write};
        let cases: [(&[Timed], &str); 10] = [
            (&[(Read, 900, 20, 100), (Code, 50, 50, 100), (Hash, 50, 50, 50)], "the input: 88 %"),
            (&[(Write, 900, 20, 100), (Code, 50, 50, 100)], "the output"),
            (&[(Sync, 500, 5, 0), (Code, 100, 100, 100), (Hash, 100, 100, 90)], "the disk"),
            (&[(Code, 800, 800, 2800), (Hash, 100, 100, 90)], "the kernel (scalar): 89 %"),
            (&[(Hash, 800, 800, 750), (Code, 100, 100, 400)], "the hash (sha256): 89 %"),
            (&[(Code, 800, 800, 700), (Hash, 100, 100, 90)], "memory: the kernel (scalar)"),
            (&[(Code, 800, 400, 1300), (Hash, 100, 60, 40)], "the processor: 49 % of the time"),
            (&[(Code, 800, 400, 1300), (Hash, 100, 60, 40)], "without it, the kernel (scalar): 87 %"),
            (&[(Code, 800, 800, 100), (Hash, 100, 100, 90)], "unknown: the kernel"),
            (
                &[(Other, 100, 100, 0), (Code, 100, 100, 390), (Hash, 100, 100, 90)],
                "unknown: nothing stands out",
            ),
        ];
        for (stages, expected) in cases {
            let verdict = told(stages);
            assert!(verdict.contains(expected), "{verdict}, not {expected}");
        }
    }
}

//! Where the time of a command goes: a table of stages, and one line that names what holds the work back.
//!
//! Stages are timed by [`fecfile::stages`]; here they are added up over threads, and compared with what one core can
//! do.

mod limits;
mod verdict;

pub use limits::MachineLimits;

use crate::grid::terminal_table;
use crate::table::{FigureTable, figure, key};
use fecfile::stages::{self, STAGES, Stage, Thread, Work};
use serde::Serialize;
use std::fmt;
use std::time::Duration;
use verdict::{StageSums, off_core, rate, verdict};

/// Where the time went.
#[derive(Debug, Serialize)]
pub struct WhereTime {
    event: &'static str,
    /// How long the command took.
    pub seconds: f64,
    /// Its threads.
    pub threads: usize,
    /// Its stages.
    pub table: FigureTable,
    /// Share of all threads' time that stages account for, working or waiting: 1 unless time was lost.
    pub accounted: f64,
    /// What holds it back.
    pub verdict: String,
}

/// Ends the account of stages that [`fecfile::stages::start`] began, and tells where the time went: a table and a
/// verdict, or one line of JSON. Takes a tenth of a second, to see what this machine can do.
pub fn report(json: bool) -> String {
    let (threads, work) = stages::stop();
    let told = WhereTime::new(&threads, &MachineLimits::measure(work), work);
    match json {
        true => serde_json::to_string(&told).unwrap_or_default(),
        false => format!("\n{told}"),
    }
}

impl WhereTime {
    /// What the stages of these threads took, against what this machine can do.
    pub fn new(threads: &[Thread], limits: &MachineLimits, work: Option<Work>) -> WhereTime {
        let sums = StageSums::new(threads);
        let mut table = FigureTable::new(
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
        WhereTime {
            event: "where",
            seconds: sums.wall,
            threads: sums.threads,
            table,
            accounted: accounted.as_secs_f64() / sums.all.max(1e-9),
            verdict: format!("verdict: {}", verdict(&sums, limits, work)),
        }
    }
}

impl fmt::Display for WhereTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", terminal_table(&self.table), self.verdict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fec_core::block::Code;
    use fec_core::digest::HashKind;
    use fec_core::gf256::kernel::Backend;
    use fecfile::stages::Spent;

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
        let limits = MachineLimits {
            code_cached: Some(4e9),
            code_memory: Some(1e9),
            hash: Some(1e9),
            read: Some(9e9),
            write: Some(3e9),
        };
        let told = WhereTime::new(&[thread], &limits, Some(work));
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

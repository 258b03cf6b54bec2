//! The time of a command: a table of stages, and a line that names the resource that holds the work back.
//!
//! [`fec_base::program::stages`] times the stages; this module adds them up over threads, and compares them with the
//! limits of one core.

mod limits;
mod verdict;

pub use limits::MachineLimits;

use crate::grid::table_text;
use crate::table::{FigureColumn, FigureTable, figure, key};
use crate::words::wrap;
use fec_base::program::stages::{self, STAGES, Stage, Thread, Work};
use serde::Serialize;
use std::time::Duration;
use verdict::{StageSums, off_core, rate, verdict};

/// The distribution of a command's time.
#[derive(Debug, Serialize)]
pub struct WhereTime {
    event: &'static str,
    /// Seconds that the command took.
    pub seconds: f64,
    /// Number of threads that it started, one after the other or at the same time.
    pub threads: usize,
    /// Its stages.
    pub table: FigureTable,
    /// Share of all threads' time that stages account for, working or waiting: 1 unless time was lost.
    pub accounted: f64,
    /// The resource that holds the work back.
    pub verdict: String,
}

/// Ends the account of stages that [`fec_base::program::stages::start`] began, and returns where the time went: a table
/// and a verdict in lines of at most `width` columns, or a line of JSON. It takes a tenth of a second, in which it
/// measures this machine's limits.
pub fn report(json: bool, width: Option<usize>) -> String {
    let (threads, work) = stages::stop();
    let told = WhereTime::new(&threads, &MachineLimits::measure(work), work);
    match json {
        true => serde_json::to_string(&told).unwrap_or_default(),
        false => format!("\n{}", told.text(width)),
    }
}

impl WhereTime {
    /// The time of these threads' stages, against this machine's limits.
    pub fn new(threads: &[Thread], limits: &MachineLimits, work: Option<Work>) -> WhereTime {
        let sums = StageSums::new(threads);
        let mut table =
            FigureTable::new("where", title(&sums), [key("stage", "stage")].into_iter().chain(columns()));
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

    /// The table and the verdict, in lines of at most `width` columns.
    pub fn text(&self, width: Option<usize>) -> String {
        format!("{}{}", table_text(&self.table, width), wrap(&self.verdict, width))
    }
}

/// The time, the number of threads, and the meaning of each stage's figures.
fn title(sums: &StageSums) -> String {
    let waiting = sums.of(Stage::Wait).wall.as_secs_f64();
    let threads = (sums.all - waiting) / sums.wall.max(1e-9);
    format!("where the time goes: {:.3} s, {threads:.1} threads at work on the average; {MEANING}", sums.wall)
}

/// The meaning of the columns of stages.
pub(crate) const MEANING: &str = "seconds are of all threads, shares without the time in which they wait for each other; \
     MB/s are of one thread, and the best what this machine can do";

/// The figures of each stage; [`MEANING`] explains their labels.
pub(crate) fn columns() -> [FigureColumn; 7] {
    [
        figure("share", "share %", 1),
        figure("seconds", "seconds", 3),
        figure("off_core_seconds", "waiting", 3),
        figure("bytes", "bytes", 0),
        figure("megabytes_per_second", "MB/s", 0),
        figure("limit_megabytes_per_second", "best MB/s", 0),
        figure("share_of_limit", "% of best", 0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use fec_base::program::stages::Spent;
    use fec_core::block::Code;
    use fec_core::digest::HashKind;
    use fec_core::gf256::kernel::Backend;

    /// Milliseconds on the wall and on the core, and megabytes, of a stage.
    type Timed = (Stage, u64, u64, u64);

    /// The account of a single thread with these stages.
    fn told(stages: &[Timed]) -> WhereTime {
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
        told
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
            let verdict = told(stages).verdict;
            assert!(verdict.contains(expected), "{verdict}, not {expected}");
        }
    }

    #[test]
    fn the_table_fits_a_terminal_and_explains_itself() {
        use Stage::{Code, Hash, Wait, Write};
        let told =
            told(&[(Code, 800, 800, 2800), (Hash, 100, 100, 90), (Write, 1000, 20, 100), (Wait, 500, 0, 0)]);
        let wide = told.text(None);
        assert!(
            wide.starts_with("where the time goes: 2.400 s, 0.8 threads at work on the average"),
            "{wide}"
        );
        let narrow = told.text(Some(80));
        assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert!(words(&wide).iter().all(|word| words(&narrow).contains(word)), "{narrow}");
    }

    #[test]
    fn little_work_has_no_rates_and_no_verdict() {
        use Stage::{Hash, Write};
        let told = told(&[(Hash, 0, 0, 1), (Write, 4, 4, 0)]);
        assert_eq!(
            told.verdict,
            "verdict: too little work to tell what holds it back: most of 4 ms is write"
        );
        assert!(!told.text(None).contains('∞') && !told.text(None).contains("NaN"));
    }
}

//! The limits of a machine with `fec`, their causes, and whether a build became slower.
//!
//! A [`Preset`] is a kind of work; [`run`] measures it, and fills the tables of a [`BenchReport`]. A report prints as a
//! table, JSON, CSV or Markdown, can be saved, and can be compared with a later one. Its first line is a sentence for
//! everybody.
//!
//! ```
//! use fec_bench::{Format, Options, Preset, Unseen};
//! # fn main() -> fec_bench::Result<()> {
//! let options = Options { k: 10, m: 4, rounds: Some(1), ..Options::new(Preset::Model) };
//! let report = fec_bench::run(&options, &Unseen)?;
//! assert_eq!(report.tables[0].name, "model");
//! println!("{}", report.text(Some(80)));
//! println!("{}", report.render(Format::Json)?);
//! # Ok(())
//! # }
//! ```
//!
//! ```text
//! options ─▶ presets ─▶ lab: time, slices (two clocks), counters, model ─▶ report ─▶ table | JSON | CSV | Markdown
//!                                                                           └─▶ compare
//! ```
//!
//! # How it measures
//!
//! Work is repeated in short slices, each timed by the clock on the wall and by the thread's own. If the two differ,
//! another task ran meanwhile, and the slice does not count; the report tells the number of such slices, and other
//! disturbances of the run. Several ways of the same work take turns, slice by slice, so that disturbances of the
//! machine reach all of them. A figure is the median of its slices, with its quartiles; a comparison reports a
//! difference only if it is beyond the noise of both. Counters of the processor are read where the system allows it. A
//! model of caches stands beside them, which runs on the codec's own accesses. Figures come from the codec's own calls:
//! it tells its phases to an observer, and the observer has the clock. A wrong result is an error and no figure:
//! presets compare the bytes that come back.
//!
//! | module | tells |
//! |---|---|
//! | [`gates`] | whether this build is right on this machine, by values that others made |
//! | [`locate`] | where the time of an operation of `fecfile` goes, and what holds it back |
//! | [`link`] | what becomes of packets between two machines, with recovery and without |
//! | [`loopback`] | what the transport of live streams can do |

mod board;
mod clock;
mod compare;
mod counters;
mod error;
pub mod gates;
mod grid;
mod headline;
mod interference;
mod lab;
pub mod link;
pub mod locate;
pub mod loopback;
mod machine;
mod model;
mod options;
mod presets;
mod progress;
mod random;
mod render;
mod report;
mod rows;
mod slices;
mod stats;
mod system;
mod table;
mod ticks;
mod words;

pub use clock::Clocks;
pub use error::{Error, Result};
pub use interference::Interference;
pub use machine::{Caches, Machine};
pub use model::CacheHierarchy;
pub use options::{Format, Options, Preset};
pub use progress::{RunPoint, RunProgress, Unseen};
pub use report::{BenchReport, Comparison, GateVerdict};
pub use stats::Summary;
pub use table::{Cell, FigureColumn, FigureTable};

use lab::Lab;
use report::SCHEMA_VERSION;
use std::time::Instant;

/// Measures a preset. Takes about as long as the options say, less after a signal ([`fec_base::program::interrupt`]).
///
/// # Errors
/// Impossible options, files that cannot be written, and wrong results.
pub fn run(options: &Options, progress: &dyn RunProgress) -> Result<BenchReport> {
    let began = Instant::now();
    let machine = Machine::new();
    let mut lab = Lab::new(options, machine.clocks.core_mhz, progress);
    let findings = presets::run(&mut lab)?;
    lab.finish();
    let backend = options.settings.backend;
    let interference = lab.watch.end();
    // The model times nothing, so nothing can disturb it.
    let disturbed = options.preset != Preset::Model && !interference.causes().is_empty();
    let sentence = headline::headline(options.preset, &findings.tables);
    let headline = match &machine.emulated {
        // The model counts, and means the same wherever it runs.
        Some(by) if options.preset == Preset::Model => format!("emulated by {by}; {sentence}"),
        Some(by) => format!("emulated by {by}: no speed here means anything; it {sentence}"),
        None if disturbed => format!("{sentence} (other work disturbed it)"),
        None => sentence,
    };
    Ok(BenchReport {
        schema_version: SCHEMA_VERSION,
        command: "bench".to_owned(),
        preset: options.preset.name().to_owned(),
        headline,
        disturbed,
        arguments: options.arguments.clone(),
        backend: backend.name().to_owned(),
        tuning: backend.tuning().to_string(),
        tuning_is_kept: options.tuning_is_kept,
        better: findings.better.map(|tuning| tuning.to_string()),
        threads: options.settings.threads,
        counters: lab.counters.source.clone(),
        counter_status: lab.counters.status.clone(),
        model: options.model.to_string(),
        machine,
        seconds: began.elapsed().as_secs_f64(),
        interrupted: lab.stopped(),
        out_of_time: lab.out_of_time,
        interference,
        tables: findings.tables,
        notes: findings.notes,
        comparison: None,
    })
}

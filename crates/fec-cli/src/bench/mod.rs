//! `fec bench`: what this machine can do, what holds it back, and whether today's build is slower.
//!
//! A preset fills tables; everything is told from one struct ([`report`]), in any format. Figures come from the
//! codec's own calls: it tells its phases to an observer, and the observer has the clock.
//!
//! ```text
//! presets ─▶ lab: time left, slices (two clocks), counters, model ─▶ report ─▶ table | JSON | CSV | Markdown
//!                                                                     └─▶ compare ─▶ exit code
//! ```

mod clock;
mod compare;
mod counters;
mod gates;
mod interference;
mod lab;
mod machine;
mod model;
mod presets;
mod progress;
pub(crate) mod report;
mod slices;
pub(crate) mod stats;

use crate::args::{self, Format};
use crate::failure::{Exit, Failure, Result};
use crate::settings::{SCHEMA_VERSION, Settings, print_line};
use crate::sys::cleanup;
use compare::Comparison;
use lab::Lab;
use machine::Machine;
use report::Report;
use std::time::Instant;

pub(crate) fn run(args: &args::Bench, settings: &Settings) -> Result<Exit> {
    if let Some(name) = &args.require_backend
        && settings.backend.name() != name
    {
        let message = format!("--require-backend {name}: {} would run", settings.backend.name());
        return Err(Failure::usage(message).help("--backend chooses one that this machine has"));
    }
    if let Some(path) = &args.compare {
        // Before the work, not after it.
        compare::read(path)?;
    }
    let format = if settings.json { Format::Json } else { args.format };
    cleanup::defer_signals();
    if args.gates {
        return gates::run(settings, format);
    }
    let began = Instant::now();
    let machine = Machine::new();
    let mut lab = Lab::new(args, settings, machine.clocks.core_mhz)?;
    let outcome = presets::run(&mut lab)?;
    lab.finish();
    let interrupted = lab.stopped();
    let mut report = Report {
        schema_version: SCHEMA_VERSION,
        command: "bench".to_owned(),
        preset: presets::name(args.preset),
        arguments: std::env::args().skip(1).collect(),
        backend: settings.backend.name().to_owned(),
        tuning: settings.backend.tuning().to_string(),
        threads: settings.threads,
        counters: lab.counters.source.clone(),
        counter_status: lab.counters.status.clone(),
        model: lab.model.to_string(),
        machine,
        seconds: began.elapsed().as_secs_f64(),
        interrupted,
        out_of_time: lab.out_of_time,
        interference: lab.watch.end(),
        tables: outcome.tables,
        notes: outcome.notes,
        comparison: None,
    };
    if let Some(path) = &args.save {
        let text = report.print(Format::Json)?;
        std::fs::write(path, text + "\n").map_err(|e| Failure::io("write", path, &e))?;
    }
    if let Some(path) = &args.compare {
        report.comparison = Some(Comparison::new(path, &report, args.gate)?);
    }
    print_line(&report.print(format)?)?;
    Ok(match &report.comparison {
        _ if interrupted => Exit::Interrupted,
        Some(comparison) if comparison.fails() => Exit::Mendable,
        _ => Exit::Done,
    })
}

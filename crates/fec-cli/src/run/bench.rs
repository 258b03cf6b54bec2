//! `fec bench`: arguments become options of [`fec_bench`], and its reports text and exit codes.

use crate::line;
use crate::plan::bench::{Bench, caches};
use crate::plan::common;
use crate::run::link;
use crate::run::tuned;
use crate::say::failure::{Exit, Failure, Result, note_said};
use crate::say::terminal::{harmless, width};
use crate::settings::{Settings, json_of_bench, print_line};
use crate::system::progress::{Mode, remove_stale_beside, say_json};
use fec_base::names::show;
use fec_bench::{BenchReport, Error, Format, Options, Preset, RunPoint, RunProgress};
use fec_core::gf256::kernel::Backend;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use std::io::IsTerminal;
use std::time::Duration;

pub(crate) fn run(args: &line::Bench, settings: &Settings) -> Result<Exit> {
    let plan = Bench::of(args, settings.given, settings.library.backend.name())?;
    if let Bench::Link(args) = plan {
        return link::run(args, settings);
    }
    // A file that cannot be read fails before the work, not after it.
    if let Some(None) = args.save {
        tuned::place()?;
    }
    let saved = args.compare.as_deref().map(|path| Ok((path, BenchReport::read(path)?)));
    let saved = saved.transpose().map_err(failure)?;
    let format = if settings.json { Format::Json } else { args.format.into() };
    fec_base::program::interrupt::defer();
    let options = options(args, settings);
    if let Bench::Gates = plan {
        return gates(&options, format);
    }
    let options = Options { model: caches(&args.model)?, ..options };
    if matches!(args.preset, line::Preset::Files | line::Preset::Roof) {
        remove_stale_beside(&options.folder.join("bench"));
    }
    let bar = RunBar::new(settings, options.time());
    let mut report = fec_bench::run(&options, &bar).map_err(failure)?;
    drop(bar);
    if let Some(Some(path)) = &args.save {
        remove_stale_beside(path);
        report.save(path).map_err(failure)?;
    }
    if let Some(None) = args.save {
        let note = keep(&report, settings)?;
        report.notes.push(note);
    }
    if let Some((path, then)) = &saved {
        report.compare(path, then, args.gate).map_err(failure)?;
    }
    let exit = match &report.comparison {
        _ if report.interrupted => Exit::Interrupted,
        Some(comparison) if comparison.fails() => Exit::Mendable,
        _ => Exit::Done,
    };
    note_said();
    print_line(&match format {
        Format::Table => harmless(&report.text(width(&std::io::stdout()))),
        Format::Json => json_of_bench(&report, exit)?,
        other => report.render(other).map_err(failure)?,
    })?;
    Ok(exit)
}

/// Keeps the fastest settings that were found. Returns the line that says so.
fn keep(report: &BenchReport, settings: &Settings) -> Result<String> {
    if report.interrupted || report.machine.emulated.is_some() {
        return Ok("no settings were kept: this is no whole measurement of this machine".to_owned());
    }
    let backend = settings.library.backend;
    let best = match &report.better {
        Some(better) => common::tuning(backend.tuning(), better)?,
        None => backend.tuning(),
    };
    let path = tuned::keep(Backend::by_name(backend.name()).unwrap_or(backend), best)?;
    Ok(format!("commands of this user are set for {best} from now on: see {}", show(&path)))
}

fn gates(options: &Options, format: Format) -> Result<Exit> {
    let report = fec_bench::gates::run(options);
    let exit = match (report.passed, report.interrupted) {
        (_, true) => Exit::Interrupted,
        (true, _) => Exit::Done,
        (false, _) => Exit::Untrue,
    };
    note_said();
    print_line(&match format {
        Format::Table => harmless(&report.text(width(&std::io::stdout()))),
        Format::Json => json_of_bench(&report, exit)?,
        other => report.render(other).map_err(failure)?,
    })?;
    Ok(exit)
}

/// All options but the caches to model.
fn options(args: &line::Bench, settings: &Settings) -> Options {
    let usual = Options::new(args.preset.into());
    Options {
        settings: settings.library,
        only_this_backend: settings.backend_asked,
        only_these_threads: settings.threads_asked.is_some(),
        hash: args.hash.map(Into::into),
        k: args.data,
        m: args.recovery,
        set_size: args.set_size,
        rounds: args.rounds,
        budget: args.budget.unwrap_or(usual.budget),
        quick: args.quick,
        max_memory: settings.given.has("max-memory").then_some(settings.library.max_memory),
        profile: args.profile.map(Into::into),
        tuning_is_kept: settings.tuning_is_kept,
        folder: args.dir.clone().unwrap_or(usual.folder),
        losses: args.loss.clone(),
        arguments: std::env::args().skip(1).collect(),
        ..usual
    }
}

/// Puts an error into the words of the command's options.
fn failure(error: Error) -> Failure {
    let exit = error.class().into();
    let (message, help) = match error {
        Error::Library(error) => return error.into(),
        Error::Code { k, m, cause } => (format!("-k {k} -m {m}: {cause}"), None),
        Error::Loss { .. } => (format!("--loss {error}"), None),
        Error::NotAReport { .. } => {
            (error.to_string(), Some("write one with `fec bench --save FILE`".to_owned()))
        }
        Error::OtherPreset { ref now, .. } => (error.to_string(), Some(format!("this is {now}"))),
        Error::SetMemory(_) => {
            let help = "allow more with --max-memory, or choose a smaller --set-size";
            (format!("bench: {error}"), Some(help.to_owned()))
        }
        Error::Geometry(_)
        | Error::Check(_)
        | Error::Decode(_)
        | Error::WrongShard(_)
        | Error::Seal(_)
        | Error::NotAuthentic(_)
        | Error::WrongFile => (format!("bench: {error}"), None),
        _ => (error.to_string(), None),
    };
    Failure { help, ..Failure::new(exit, message) }
}

impl From<line::Preset> for Preset {
    fn from(preset: line::Preset) -> Preset {
        match preset {
            line::Preset::Reference => Preset::Reference,
            line::Preset::Kernels => Preset::Kernels,
            line::Preset::Batch => Preset::Batch,
            line::Preset::Sets => Preset::Sets,
            line::Preset::Tree => Preset::Tree,
            line::Preset::Files => Preset::Files,
            line::Preset::Roof => Preset::Roof,
            line::Preset::Model => Preset::Model,
            line::Preset::Tuning => Preset::Tuning,
            line::Preset::Window => Preset::Window,
            line::Preset::Stream => Preset::Stream,
            line::Preset::Seal => Preset::Seal,
            line::Preset::Kem => Preset::Kem,
        }
    }
}

impl From<line::Format> for Format {
    fn from(format: line::Format) -> Format {
        match format {
            line::Format::Table => Format::Table,
            line::Format::Json => Format::Json,
            line::Format::Csv => Format::Csv,
            line::Format::Markdown => Format::Markdown,
            line::Format::Board => Format::Board,
        }
    }
}

/// Shows how much of the planned time has passed.
enum RunBar {
    Nothing,
    Bar(ProgressBar),
    Json,
}

#[derive(Serialize)]
struct ProgressLine<'a> {
    event: &'static str,
    action: &'static str,
    figure: &'a str,
    done: usize,
    of: usize,
    seconds: f64,
    seconds_left: f64,
}

impl RunBar {
    fn new(settings: &Settings, planned: Duration) -> RunBar {
        match settings.progress {
            Mode::Json => RunBar::Json,
            Mode::Auto if !settings.quiet && std::io::stderr().is_terminal() => RunBar::Bar(bar(planned)),
            _ => RunBar::Nothing,
        }
    }
}

impl RunProgress for RunBar {
    fn next(&self, point: &RunPoint<'_>) {
        let RunPoint { figure, done, planned: of, elapsed, left } = *point;
        let (seconds, seconds_left) = (elapsed.as_secs_f64(), left.as_secs_f64());
        match self {
            RunBar::Nothing => {}
            RunBar::Bar(bar) => {
                bar.set_length((elapsed + left).as_millis().max(1) as u64);
                bar.set_position(elapsed.as_millis() as u64);
                bar.set_message(format!("{done}/{of} {figure}, about {} s left", seconds_left.ceil()));
            }
            RunBar::Json => {
                let (event, action) = ("progress", "bench");
                say_json(&ProgressLine { event, action, figure, done, of, seconds, seconds_left });
            }
        }
    }

    fn finish(&self, figures: usize, elapsed: Duration) {
        match self {
            RunBar::Nothing => {}
            RunBar::Bar(bar) => bar.finish_and_clear(),
            RunBar::Json => say_json(&ProgressLine {
                event: "finished",
                action: "bench",
                figure: "",
                done: figures,
                of: figures,
                seconds: elapsed.as_secs_f64(),
                seconds_left: 0.0,
            }),
        }
    }
}

impl Drop for RunBar {
    fn drop(&mut self) {
        if let RunBar::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

fn bar(planned: Duration) -> ProgressBar {
    let target = ProgressDrawTarget::stderr_with_hz(10);
    let bar = ProgressBar::with_draw_target(Some(planned.as_millis() as u64), target);
    if let Ok(style) = ProgressStyle::with_template("bench [{wide_bar}] {msg}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn presets_have_the_same_names_here_and_in_reports() {
        let here = line::Preset::value_variants().iter().map(|preset| {
            let name = preset.to_possible_value().expect("none is hidden").get_name().to_owned();
            (name, Preset::from(*preset))
        });
        let names: Vec<String> =
            here.inspect(|(name, preset)| assert_eq!(name, preset.name())).map(|(name, _)| name).collect();
        assert_eq!(names.len(), Preset::ALL.len());
    }
}

//! Progress: a bar on a terminal, lines of JSON if asked for, or nothing. Notices are kept until the command ends.

use fec_base::context::{Meter, Notice};
use fec_base::error::Action;
use fec_base::io::temporary::{parent, remove_stale};
use fec_core::executor::lock;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// When progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Mode {
    /// A bar, if standard error is a terminal.
    Auto,
    /// Nothing.
    Never,
    /// A JSON object a line on standard error.
    Json,
}

/// How often JSON lines are printed.
const INTERVAL: Duration = Duration::from_millis(500);

/// Notices of all operations of this run.
static NOTICES: Mutex<Notices> = Mutex::new(Notices { removed: Vec::new(), open_elsewhere: BTreeSet::new() });

/// Notices that are not printed yet.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    /// Removed leftovers of killed runs, and their bytes.
    pub(crate) removed: Vec<(PathBuf, u64)>,
    /// Inputs that were open for writing elsewhere.
    pub(crate) open_elsewhere: BTreeSet<PathBuf>,
}

impl Notices {
    /// The notices since the last call.
    pub(crate) fn take() -> Notices {
        std::mem::take(&mut *lock(&NOTICES))
    }
}

/// Removes leftovers of killed runs beside an output that is made without an operation of the library.
pub(crate) fn remove_stale_beside(output: &Path) {
    remove_stale(parent(output), &Bars { mode: Mode::Never, quiet: true, scan: "scan" });
}

/// Shows progress of the library's operations, and keeps their notices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bars {
    pub(crate) mode: Mode,
    pub(crate) quiet: bool,
    /// The name of the action "scan" in this command.
    pub(crate) scan: &'static str,
}

impl fec_base::context::Progress for Bars {
    fn begin(&self, action: Action, total: Option<u64>) -> Box<dyn Meter + '_> {
        let action = if action == Action::Scan { self.scan } else { action.as_str() };
        Box::new(Count::new(self.mode, self.quiet, action, total))
    }

    fn note(&self, notice: Notice<'_>) {
        /// Most inputs remembered.
        const MOST: usize = 1000;
        let mut noted = lock(&NOTICES);
        match notice {
            Notice::Removed { path, bytes } => noted.removed.push((path.to_path_buf(), bytes)),
            Notice::OpenElsewhere { path } if noted.open_elsewhere.len() < MOST => {
                noted.open_elsewhere.insert(path.to_path_buf());
            }
            _ => {}
        }
    }
}

/// Counts bytes and shows them. Shared by all threads.
pub(crate) struct Count {
    action: &'static str,
    total: Option<u64>,
    done: AtomicU64,
    started: Instant,
    /// The progress of each part.
    parts: Mutex<String>,
    show: Show,
}

enum Show {
    Nothing,
    Bar(ProgressBar),
    Json(Mutex<Instant>),
}

#[derive(Serialize)]
struct Line<'a> {
    event: &'static str,
    action: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    parts: &'a str,
    bytes: u64,
    total: Option<u64>,
    seconds: f64,
    bytes_per_second: f64,
    seconds_left: Option<f64>,
}

impl Count {
    /// Progress of `action` over `total` bytes. `None`: their number is not known.
    fn new(mode: Mode, quiet: bool, action: &'static str, total: Option<u64>) -> Count {
        let show = match mode {
            Mode::Json => Show::Json(Mutex::new(Instant::now())),
            Mode::Auto if !quiet && std::io::stderr().is_terminal() => Show::Bar(bar(action, total)),
            _ => Show::Nothing,
        };
        Count {
            action,
            total,
            done: AtomicU64::new(0),
            started: Instant::now(),
            parts: Mutex::default(),
            show,
        }
    }

    fn line(&self, event: &'static str) {
        let (bytes, seconds) = (self.done.load(Ordering::Relaxed), self.started.elapsed().as_secs_f64());
        let bytes_per_second = bytes as f64 / seconds.max(1e-9);
        let seconds_left = self.total.map(|t| t.saturating_sub(bytes) as f64 / bytes_per_second.max(1.0));
        let (action, parts) = (self.action, lock(&self.parts));
        let parts = parts.as_str();
        let line =
            Line { event, action, parts, bytes, total: self.total, seconds, bytes_per_second, seconds_left };
        say_json(&line);
    }
}

impl Meter for Count {
    fn add(&self, bytes: u64) {
        let done = self.done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        match &self.show {
            Show::Nothing => {}
            Show::Bar(bar) => bar.set_position(done),
            Show::Json(last) => {
                if let Ok(mut last) = last.try_lock()
                    && last.elapsed() >= INTERVAL
                {
                    *last = Instant::now();
                    self.line("progress");
                }
            }
        }
    }

    fn tell(&self, parts: &str) {
        match &self.show {
            Show::Nothing => {}
            Show::Bar(bar) => bar.set_message(format!("{} ({parts})", self.action)),
            Show::Json(_) => parts.clone_into(&mut lock(&self.parts)),
        }
    }

    fn finish(&self) {
        match &self.show {
            Show::Nothing => {}
            Show::Bar(bar) => bar.finish_and_clear(),
            Show::Json(_) => self.line("finished"),
        }
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        if let Show::Bar(bar) = &self.show {
            bar.finish_and_clear();
        }
    }
}

/// Prints a line of JSON on standard error. A failed write is ignored: the work goes on.
pub(crate) fn say_json(line: &impl Serialize) {
    if let Ok(text) = serde_json::to_string(line) {
        let _ = writeln!(std::io::stderr(), "{text}");
    }
}

/// Writes the remaining time, once the work done so far allows an estimate.
fn left(state: &ProgressState, out: &mut dyn std::fmt::Write) {
    let is_known = state.len().is_some_and(|len| is_telling(state.elapsed(), state.pos(), len));
    if is_known {
        // A failed write only loses the estimate.
        let _ = write!(out, ", {:#} left", HumanDuration(state.eta()));
    }
}

/// Tells whether the remaining time can be estimated: two seconds have passed, and a fiftieth of the work is done.
fn is_telling(elapsed: Duration, done: u64, all: u64) -> bool {
    elapsed >= Duration::from_secs(2) && done > 0 && done >= all / 50
}

fn bar(action: &'static str, total: Option<u64>) -> ProgressBar {
    let template = match total {
        Some(_) => "{msg} {bytes}/{total_bytes} [{wide_bar}] {bytes_per_sec}{left}",
        None => "{msg} {bytes} in {elapsed}, {bytes_per_sec} {spinner}",
    };
    let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr_with_hz(10));
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.with_key("left", left).progress_chars("=> "));
    }
    bar.set_message(action);
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_that_is_left_is_told_when_it_is_known() {
        let seconds = Duration::from_secs;
        assert!(!is_telling(seconds(1), 90, 100) && !is_telling(seconds(60), 1, 100));
        assert!(!is_telling(seconds(60), 0, 10) && is_telling(seconds(2), 2, 100));
    }
}

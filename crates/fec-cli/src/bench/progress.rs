//! How far a run is, and how long it still takes. A run is planned by time, so time is what is shown.

use crate::progress::{Mode, say_json};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Shows how much of the planned time is gone.
pub(crate) struct Progress {
    started: Instant,
    planned: Duration,
    show: Show,
}

enum Show {
    Nothing,
    Bar(ProgressBar),
    Json,
}

#[derive(Serialize)]
struct Line<'a> {
    event: &'static str,
    action: &'static str,
    figure: &'a str,
    done: usize,
    of: usize,
    seconds: f64,
    seconds_left: f64,
}

impl Progress {
    pub(crate) fn new(mode: Mode, quiet: bool, planned: Duration) -> Progress {
        let show = match mode {
            Mode::Json => Show::Json,
            Mode::Auto if !quiet && std::io::stderr().is_terminal() => Show::Bar(bar(planned)),
            _ => Show::Nothing,
        };
        Progress { started: Instant::now(), planned, show }
    }

    /// Figure number `done` of `of` comes next.
    pub(crate) fn next(&self, figure: &str, done: usize, of: usize) {
        let elapsed = self.started.elapsed();
        // Whichever is shorter: what is left of the planned time, or what the figures so far promise.
        let planned = self.planned.saturating_sub(elapsed);
        let promised =
            if done > 0 { elapsed / done as u32 * of.saturating_sub(done) as u32 } else { planned };
        let left = planned.min(promised);
        match &self.show {
            Show::Nothing => {}
            Show::Bar(bar) => {
                let whole = (elapsed + left).as_millis().max(1) as u64;
                bar.set_length(whole);
                bar.set_position(elapsed.as_millis() as u64);
                bar.set_message(format!("{done}/{of} {figure}, about {} s left", left.as_secs_f64().ceil()));
            }
            Show::Json => self.line("progress", figure, done, of, left.as_secs_f64()),
        }
    }

    /// Removes the bar, or prints the last line.
    pub(crate) fn finish(&self, of: usize) {
        match &self.show {
            Show::Nothing => {}
            Show::Bar(bar) => bar.finish_and_clear(),
            Show::Json => self.line("finished", "", of, of, 0.0),
        }
    }

    fn line(&self, event: &'static str, figure: &str, done: usize, of: usize, seconds_left: f64) {
        let seconds = self.started.elapsed().as_secs_f64();
        let line = Line { event, action: "bench", figure, done, of, seconds, seconds_left };
        say_json(&line);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Show::Bar(bar) = &self.show {
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

//! The progress of a run, for a caller that shows it. A run is planned by time, so progress is told as time.

use std::time::Duration;

/// Receives the progress of a run.
pub trait RunProgress {
    /// A figure comes next.
    fn next(&self, point: &RunPoint<'_>);

    /// All `figures` are done, or the run ends early.
    fn finish(&self, figures: usize, elapsed: Duration);
}

/// The state of a run.
#[derive(Clone, Copy, Debug)]
pub struct RunPoint<'a> {
    /// The next figure.
    pub figure: &'a str,
    /// Figures that are done.
    pub done: usize,
    /// Figures that are planned.
    pub planned: usize,
    /// Time since the run began.
    pub elapsed: Duration,
    /// Estimated time left.
    pub left: Duration,
}

/// Shows nothing.
#[derive(Clone, Copy, Debug)]
pub struct Unseen;

impl RunProgress for Unseen {
    fn next(&self, _point: &RunPoint<'_>) {}

    fn finish(&self, _figures: usize, _elapsed: Duration) {}
}

//! How far a run is, for somebody who shows it. A run is planned by time, so time is what is told.

use std::time::Duration;

/// Is told how far a run is.
pub trait RunProgress {
    /// A figure comes next.
    fn next(&self, point: &RunPoint<'_>);

    /// All `figures` are done, or the run ends early.
    fn finish(&self, figures: usize, elapsed: Duration);
}

/// Where a run stands.
#[derive(Clone, Copy, Debug)]
pub struct RunPoint<'a> {
    /// What is measured next.
    pub figure: &'a str,
    /// Figures that are done.
    pub done: usize,
    /// Figures that are planned.
    pub planned: usize,
    /// Since the run began.
    pub elapsed: Duration,
    /// How long it still takes.
    pub left: Duration,
}

/// Shows nothing.
#[derive(Clone, Copy, Debug)]
pub struct Unseen;

impl RunProgress for Unseen {
    fn next(&self, _point: &RunPoint<'_>) {}

    fn finish(&self, _figures: usize, _elapsed: Duration) {}
}

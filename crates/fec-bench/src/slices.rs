//! Slices: short stretches of work, each timed by two clocks, and dropped if another task ran meanwhile.
//!
//! The clock on the wall goes on while another task has the core; the thread's own clock does not. If they differ, the
//! slice was disturbed. A competitor on the same core therefore costs slices, and moves no median.

use crate::stats::Summary;
use crate::system::{TELLS_DISTURBANCES, thread_time};
use std::time::{Duration, Instant};

/// Longest slice of the thread's own work, unless a single call is longer.
const LONGEST: Duration = Duration::from_millis(1);

/// Shortest slice: the cost of reading the clocks does not count beside it.
const SHORTEST: Duration = Duration::from_micros(100);

/// Lead of the wall over the thread's clock in an undisturbed slice: the time of reading two clocks.
const SLACK: Duration = Duration::from_micros(4);

/// A reading of both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    wall: Instant,
    core: Option<Duration>,
}

impl Moment {
    pub(crate) fn now() -> Moment {
        Moment { wall: Instant::now(), core: thread_time() }
    }

    /// The slice from here to now.
    pub(crate) fn until_now(self) -> Slice {
        // By this order, the core's stretch encloses the wall's at one end and is enclosed at the other.
        let wall = self.wall.elapsed();
        let core = thread_time().zip(self.core).map(|(now, before)| now.saturating_sub(before));
        Slice { wall, core: core.unwrap_or(wall) }
    }
}

/// A stretch of work by both clocks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slice {
    pub(crate) wall: Duration,
    pub(crate) core: Duration,
}

impl Slice {
    /// A part of this slice that took `wall`, with the same share of time on the core.
    pub(crate) fn part(self, wall: Duration) -> Slice {
        let share = wall.as_secs_f64() / self.wall.as_secs_f64().max(1e-9);
        Slice { wall, core: self.core.mul_f64(share) }
    }

    fn is_clean(self) -> bool {
        self.wall.saturating_sub(self.core) <= SLACK.max(self.wall / 200)
    }
}

impl std::ops::AddAssign for Slice {
    fn add_assign(&mut self, other: Slice) {
        self.wall += other.wall;
        self.core += other.core;
    }
}

/// Slices of a figure.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slices {
    slices: Vec<Slice>,
    /// Calls of the work in each slice.
    calls: u32,
    /// True if the work runs on other threads too: their disturbances are unseen, so no slice is dropped. The same
    /// holds where the system tells of no thread's.
    spread: bool,
}

impl Slices {
    /// Slices for work that is called `calls` times in each; `spread` says that it runs on more threads than the
    /// caller's.
    pub(crate) fn new(calls: u32, spread: bool) -> Slices {
        Slices { slices: Vec::new(), calls: calls.max(1), spread: spread || !TELLS_DISTURBANCES }
    }

    pub(crate) fn add(&mut self, slice: Slice) {
        self.slices.push(slice);
    }

    /// Drops the first slice, which was a warm-up, unless it is the only one.
    pub(crate) fn forget_first(&mut self) {
        if self.slices.len() > 1 {
            self.slices.remove(0);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slices.len()
    }

    /// Runs the work as a slice.
    pub(crate) fn take(&mut self, work: &mut dyn FnMut()) {
        let began = Moment::now();
        for _ in 0..self.calls {
            work();
        }
        self.add(began.until_now());
    }

    /// Seconds per call, slice by slice in the order of time, of clean slices only.
    pub(crate) fn clean(&self) -> Vec<f64> {
        let clean = self.slices.iter().filter(|slice| self.spread || slice.is_clean());
        clean.map(|slice| slice.wall.as_secs_f64() / f64::from(self.calls)).collect()
    }

    /// Seconds per call. If fewer than a tenth of the slices were clean, times on the core are used.
    pub(crate) fn summary(&self) -> Option<Summary> {
        let clean = self.clean();
        let enough = clean.len() >= 3.max(self.slices.len() / 10) || clean.len() == self.slices.len();
        if enough {
            let discarded = (self.slices.len() - clean.len()) as u32;
            return Some(Summary { unfiltered: self.spread, ..Summary::of(clean, discarded)? });
        }
        Some(Summary { on_core: true, ..Summary::of(self.core().collect(), 0)? })
    }

    /// Seconds on the core for each call.
    fn core(&self) -> impl Iterator<Item = f64> + '_ {
        self.slices.iter().map(|slice| slice.core.as_secs_f64() / f64::from(self.calls))
    }

    /// The share of the time in which the thread had its core.
    pub(crate) fn share(&self) -> f64 {
        let mut all = Slice::default();
        self.slices.iter().for_each(|slice| all += *slice);
        all.core.as_secs_f64() / all.wall.as_secs_f64().max(1e-9)
    }

    /// The median of seconds on the core for each call.
    pub(crate) fn on_core(&self) -> Option<f64> {
        Summary::of(self.core().collect(), 0).map(|summary| summary.median)
    }

    /// Slices whose number of calls takes about half of [`LONGEST`]. The work runs to find out, which also warms it up.
    pub(crate) fn calibrated(spread: bool, work: &mut dyn FnMut()) -> Slices {
        let mut calls = 1u32;
        loop {
            let mut trial = Slices::new(calls, spread);
            trial.take(work);
            let core = trial.slices[0].core.min(trial.slices[0].wall).max(Duration::from_nanos(1));
            let wall = if spread { trial.slices[0].wall } else { core };
            if wall >= SHORTEST || calls >= 1 << 24 {
                let fit = (LONGEST / 2).as_secs_f64() / wall.as_secs_f64() * f64::from(calls);
                return Slices::new((fit as u32).clamp(1, 1 << 24), spread);
            }
            calls *= 4;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(wall: u64, core: u64) -> Slice {
        Slice { wall: Duration::from_micros(wall), core: Duration::from_micros(core) }
    }

    #[test]
    fn a_slice_in_which_something_else_ran_does_not_count() {
        let mut slices = Slices::new(2, false);
        let taken = [slice(1000, 999), slice(5000, 1000), slice(1002, 1002), slice(1004, 1001)];
        taken.into_iter().for_each(|slice| slices.add(slice));
        let summary = slices.summary().expect("there are clean ones");
        assert_eq!((summary.slices, summary.discarded, summary.on_core), (3, 1, false));
        assert!(!summary.unfiltered);
        assert!((summary.median - 501e-6).abs() < 1e-9, "{summary:?}");
    }

    #[test]
    fn a_part_of_a_slice_is_as_clean_as_the_whole() {
        let (clean, disturbed) = (slice(4000, 3999), slice(4000, 3000));
        let part = Duration::from_micros(1000);
        assert!(clean.part(part).is_clean() && !disturbed.part(part).is_clean());
        assert_eq!(disturbed.part(part).core, Duration::from_micros(750));
        assert_eq!(Slice::default().part(Duration::ZERO).core, Duration::ZERO);
    }

    #[test]
    fn where_hardly_any_slice_is_clean_the_time_on_the_core_counts() {
        let mut slices = Slices::new(1, false);
        (0..40).for_each(|i| slices.add(slice(2000 + i, 1000)));
        slices.add(slice(1000, 1000));
        let summary = slices.summary().expect("there are slices");
        assert!(summary.on_core && (summary.median - 1e-3).abs() < 1e-9, "{summary:?}");
        let mut spread = Slices::new(1, true);
        spread.add(slice(2000, 10));
        let summary = spread.summary().expect("one");
        assert!(summary.median == 2e-3 && summary.unfiltered, "{summary:?}");
    }
}

//! The tools with which every preset measures: the remaining time, the clocks, the counters and the model.
//!
//! Each preset has a file of its own, which fills tables of one struct.

use crate::clock::core_mhz;
use crate::counters::{Counters, Counts};
use crate::interference::Watch;
use crate::options::Options;
use crate::progress::{RunPoint, RunProgress};
use crate::slices::Slices;
use crate::stats::Summary;
use fec_base::program::interrupt::interrupted;
use fecfile::Settings;
use std::time::{Duration, Instant};

/// Fewest slices of a figure, however little time is left.
const FEWEST: usize = 5;

/// Most slices of a figure: more make no median better.
const MOST: usize = 2000;

/// Time for which the work of a figure is repeated for each pass of counters.
const COUNTED: Duration = Duration::from_millis(3);

/// A figure: its time and its counts.
pub(crate) struct Measured {
    /// Seconds per call.
    pub(crate) time: Summary,
    pub(crate) counts: Counts,
}

/// Megabits per second.
pub(crate) fn megabits(bytes: u64, seconds: f64) -> f64 {
    bytes as f64 * 8e-6 / seconds
}

/// The bench.
pub(crate) struct Lab<'a> {
    pub(crate) options: &'a Options,
    pub(crate) settings: &'a Settings,
    pub(crate) counters: Counters,
    pub(crate) watch: Watch,
    /// The core's clock when the run began, in MHz; `None` under emulation.
    pub(crate) core_mhz: Option<f64>,
    pub(crate) out_of_time: bool,
    progress: &'a dyn RunProgress,
    began: Instant,
    budget: Duration,
    /// Number of planned figures, and of finished ones.
    planned: usize,
    done: usize,
}

impl<'a> Lab<'a> {
    /// A bench whose time begins now.
    pub(crate) fn new(options: &'a Options, core_mhz: Option<f64>, progress: &'a dyn RunProgress) -> Lab<'a> {
        Lab {
            options,
            settings: &options.settings,
            counters: Counters::new(),
            watch: Watch::new(),
            core_mhz,
            out_of_time: false,
            progress,
            began: Instant::now(),
            budget: options.time(),
            planned: 0,
            done: 0,
        }
    }

    /// Announces the number of figures; the time is shared out among them.
    pub(crate) fn plan(&mut self, figures: usize) {
        self.planned += figures;
    }

    /// Tells whether a signal came and the run must stop.
    pub(crate) fn stopped(&self) -> bool {
        interrupted()
    }

    /// Begins a figure. Returns the time that it may take, or `None` if no time is left.
    pub(crate) fn share(&mut self, name: &str) -> Option<Duration> {
        self.tell(name);
        let figures_left = self.planned.saturating_sub(self.done).max(1);
        self.done += 1;
        if self.stopped() {
            return None;
        }
        let share = self.budget.saturating_sub(self.began.elapsed()) / figures_left as u32;
        if share.is_zero() {
            self.out_of_time = true;
            return None;
        }
        if self.core_mhz.is_some() {
            self.watch.core_mhz(core_mhz());
        }
        Some(share)
    }

    /// Tells whether a figure with `slices` slices, begun at `began`, should get another one.
    pub(crate) fn goes_on(&self, slices: usize, began: Instant, share: Duration) -> bool {
        let most = self.options.rounds.map_or(MOST, |rounds| rounds as usize);
        slices < most && !self.stopped() && (slices < FEWEST || began.elapsed() < share)
    }

    /// Times and counts one kind of work; `spread` says that it runs on other threads too.
    pub(crate) fn measure(&mut self, name: &str, spread: bool, mut work: impl FnMut()) -> Option<Measured> {
        let mut all = self.race(name, spread, &mut [&mut work])?;
        all.pop()
    }

    /// Times several ways of the same work in turn, so that disturbances of the machine reach all of them.
    pub(crate) fn race(
        &mut self,
        name: &str,
        spread: bool,
        works: &mut [&mut dyn FnMut()],
    ) -> Option<Vec<Measured>> {
        let share = self.share(name)?;
        let began = Instant::now();
        let mut slices: Vec<Slices> =
            works.iter_mut().map(|work| Slices::calibrated(spread, *work)).collect();
        // Warm-up: the first calls fill the caches and bring the core to its clock.
        let warm = (share / 10).min(Duration::from_millis(30));
        while began.elapsed() < warm && !self.stopped() {
            works.iter_mut().for_each(|work| work());
        }
        let mut round = 0;
        while self.goes_on(round, began, share) {
            for nth in 0..works.len() {
                // Each round begins with another way, so that none always runs behind the same neighbour.
                let at = (nth + round) % works.len();
                if works.len() > 1 {
                    // This untimed call replaces the caches that the way before left.
                    works[at]();
                }
                slices[at].take(works[at]);
            }
            round += 1;
        }
        slices.iter().zip(works).map(|(slices, work)| self.figure(slices, *work)).collect()
    }

    /// The figure of some slices, and the counts of more calls.
    fn figure(&mut self, slices: &Slices, work: &mut dyn FnMut()) -> Option<Measured> {
        let time = self.note(slices)?;
        let calls = (COUNTED.as_secs_f64() / time.median.max(1e-9)).clamp(1.0, 1e6) as u32;
        let counts = if self.counters.any() { self.counters.count(calls, work) } else { Counts::default() };
        Some(Measured { time, counts })
    }

    /// The summary of slices, which are also noted in the disturbances of the run.
    pub(crate) fn note(&mut self, slices: &Slices) -> Option<Summary> {
        let clean = slices.clean();
        self.watch.figure(&clean, slices.len() - clean.len());
        slices.summary()
    }

    /// Estimated cycles per byte, by the measured clock of the core: the clock may move.
    pub(crate) fn estimated_cycles(&self, bytes: u64, seconds: f64) -> Option<f64> {
        self.core_mhz.map(|mhz| seconds * mhz * 1e6 / bytes as f64)
    }

    /// Announces the next figure.
    fn tell(&self, figure: &str) {
        let (elapsed, done, planned) = (self.began.elapsed(), self.done, self.planned);
        // The shorter of two: the rest of the planned time, and the time that the figures so far promise.
        let left = self.budget.saturating_sub(elapsed);
        let promised =
            if done > 0 { elapsed / done as u32 * planned.saturating_sub(done) as u32 } else { left };
        self.progress.next(&RunPoint { figure, done, planned, elapsed, left: left.min(promised) });
    }

    /// Announces the end of the figures.
    pub(crate) fn finish(&self) {
        self.progress.finish(self.done, self.began.elapsed());
    }
}

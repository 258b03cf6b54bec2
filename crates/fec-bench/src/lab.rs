//! What every preset measures with: the time that is left, the clocks, the counters and the model.

use crate::clock::core_mhz;
use crate::counters::{Counters, Counts};
use crate::interference::Watch;
use crate::options::Options;
use crate::progress::{RunPoint, RunProgress};
use crate::slices::Slices;
use crate::stats::Summary;
use fecfile::Settings;
use fecfile::interrupt::interrupted;
use std::time::{Duration, Instant};

/// At least so many slices are taken of a figure, however little time is left.
const FEWEST: usize = 5;

/// At most so many: more make no median better.
const MOST: usize = 2000;

/// How long the work of one figure is repeated for each pass of counters.
const COUNTED: Duration = Duration::from_millis(3);

/// One figure: its time, and what was counted.
pub(crate) struct Measured {
    /// Seconds of one call.
    pub(crate) time: Summary,
    pub(crate) counts: Counts,
}

/// Millions of bits in a second.
pub(crate) fn megabits(bytes: u64, seconds: f64) -> f64 {
    bytes as f64 * 8e-6 / seconds
}

/// The bench.
pub(crate) struct Lab<'a> {
    pub(crate) options: &'a Options,
    pub(crate) settings: &'a Settings,
    pub(crate) counters: Counters,
    pub(crate) watch: Watch,
    /// The core's clock when the run began, in MHz; none under emulation.
    pub(crate) core_mhz: Option<f64>,
    pub(crate) out_of_time: bool,
    progress: &'a dyn RunProgress,
    began: Instant,
    budget: Duration,
    /// Figures that were planned, and those that are done.
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

    /// Says how many figures there will be; the time is shared out among them.
    pub(crate) fn plan(&mut self, figures: usize) {
        self.planned += figures;
    }

    /// Whether to stop: a signal came.
    pub(crate) fn stopped(&self) -> bool {
        interrupted()
    }

    /// Begins a figure: none if there is no time for it any more, otherwise how long it may take.
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

    /// Whether a figure that has `slices` slices should get another one, `began` being when it was begun.
    pub(crate) fn goes_on(&self, slices: usize, began: Instant, share: Duration) -> bool {
        let most = self.options.rounds.map_or(MOST, |rounds| rounds as usize);
        slices < most && !self.stopped() && (slices < FEWEST || began.elapsed() < share)
    }

    /// Times and counts one kind of work; `spread`: it runs on other threads too.
    pub(crate) fn measure(&mut self, name: &str, spread: bool, mut work: impl FnMut()) -> Option<Measured> {
        let mut all = self.race(name, spread, &mut [&mut work])?;
        all.pop()
    }

    /// Times several ways of the same work, in turn, so that whatever happens to the machine happens to all.
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
        // Warm: what the first calls fetched, and where the core's clock went with them.
        let warm = (share / 10).min(Duration::from_millis(30));
        while began.elapsed() < warm && !self.stopped() {
            works.iter_mut().for_each(|work| work());
        }
        let mut round = 0;
        while self.goes_on(round, began, share) {
            for nth in 0..works.len() {
                // Another one begins each round, so that nobody always runs behind the same neighbour.
                let at = (nth + round) % works.len();
                if works.len() > 1 {
                    // What the other one left in the caches, or pushed out of them, is not its own doing.
                    works[at]();
                }
                slices[at].take(works[at]);
            }
            round += 1;
        }
        slices.iter().zip(works).map(|(slices, work)| self.figure(slices, *work)).collect()
    }

    /// The figure of some slices, and what is counted of more calls.
    fn figure(&mut self, slices: &Slices, work: &mut dyn FnMut()) -> Option<Measured> {
        let time = self.note(slices)?;
        let calls = (COUNTED.as_secs_f64() / time.median.max(1e-9)).clamp(1.0, 1e6) as u32;
        let counts = if self.counters.any() { self.counters.count(calls, work) } else { Counts::default() };
        Some(Measured { time, counts })
    }

    /// The summary of slices, taken note of in what disturbed the run.
    pub(crate) fn note(&mut self, slices: &Slices) -> Option<Summary> {
        let clean = slices.clean();
        self.watch.figure(&clean, slices.len() - clean.len());
        slices.summary()
    }

    /// Cycles for each byte by the measured clock of the core: an estimate, since the clock may move.
    pub(crate) fn estimated_cycles(&self, bytes: u64, seconds: f64) -> Option<f64> {
        self.core_mhz.map(|mhz| seconds * mhz * 1e6 / bytes as f64)
    }

    /// Tells that a figure comes next.
    fn tell(&self, figure: &str) {
        let (elapsed, done, planned) = (self.began.elapsed(), self.done, self.planned);
        // Whichever is shorter: what is left of the planned time, or what the figures so far promise.
        let left = self.budget.saturating_sub(elapsed);
        let promised =
            if done > 0 { elapsed / done as u32 * planned.saturating_sub(done) as u32 } else { left };
        self.progress.next(&RunPoint { figure, done, planned, elapsed, left: left.min(promised) });
    }

    /// Tells that no figure comes any more.
    pub(crate) fn finish(&self) {
        self.progress.finish(self.done, self.began.elapsed());
    }
}

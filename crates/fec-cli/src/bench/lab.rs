//! What every preset measures with: the time that is left, the clocks, the counters and the model.

use super::clock::core_mhz;
use super::counters::{Counters, Counts};
use super::interference::Watch;
use super::model::Hierarchy;
use super::progress::Progress;
use super::slices::Slices;
use super::stats::Summary;
use crate::args;
use crate::failure::Result;
use crate::settings::Settings;
use crate::sys::cleanup::interrupted;
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

/// The bench.
pub(crate) struct Lab<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) args: &'a args::Bench,
    pub(crate) model: Hierarchy,
    pub(crate) counters: Counters,
    pub(crate) watch: Watch,
    /// The core's clock when the run began, in MHz; none under emulation.
    pub(crate) core_mhz: Option<f64>,
    pub(crate) out_of_time: bool,
    progress: Progress,
    deadline: Instant,
    /// Figures that were planned, and those that are done.
    planned: usize,
    done: usize,
}

impl<'a> Lab<'a> {
    pub(crate) fn new(args: &'a args::Bench, settings: &'a Settings, mhz: Option<f64>) -> Result<Lab<'a>> {
        // Five of the ten seconds that --quick promises: warming up and checking come on top.
        let seconds = if args.quick { 5 } else { args.budget.unwrap_or(30) };
        let budget = Duration::from_secs(seconds.into());
        Ok(Lab {
            settings,
            args,
            model: Hierarchy::parse(&args.model)?,
            counters: Counters::new(),
            watch: Watch::new(),
            core_mhz: mhz,
            out_of_time: false,
            progress: Progress::new(settings.progress, settings.quiet, budget),
            deadline: Instant::now() + budget,
            planned: 0,
            done: 0,
        })
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
        self.progress.next(name, self.done, self.planned);
        let left = self.planned.saturating_sub(self.done).max(1);
        self.done += 1;
        if self.stopped() {
            return None;
        }
        let share = self.deadline.saturating_duration_since(Instant::now()) / left as u32;
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
        let most = self.args.rounds.map_or(MOST, |rounds| rounds as usize);
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

    pub(crate) fn finish(&self) {
        self.progress.finish(self.done);
    }
}

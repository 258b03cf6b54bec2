//! The quality of the clocks: the timer's cost and resolution, the tick counter's rate, and the core's real clock.

use crate::ticks;
use fec_base::processor::line;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// The clocks of a machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Clocks {
    /// The source of the system's clock, as the system names it.
    pub source: Option<String>,
    /// The smallest step that the timer showed, in nanoseconds.
    pub timer_step_ns: f64,
    /// Cost of a reading of the timer, in nanoseconds.
    pub timer_cost_ns: f64,
    /// The name of the processor's tick counter.
    pub ticks: Option<String>,
    /// Its measured rate, which is not the core's clock: it never changes.
    pub ticks_mhz: Option<f64>,
    /// The core's clock, measured by a chain of operations that take one cycle each; `None` under emulation.
    pub core_mhz: Option<f64>,
}

impl Clocks {
    pub(crate) fn new(emulated: bool) -> Clocks {
        let (timer_step_ns, timer_cost_ns) = timer();
        let rate = tick_rate();
        Clocks {
            source: line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            timer_step_ns,
            timer_cost_ns,
            ticks: rate.map(|(name, _)| name.to_owned()),
            ticks_mhz: rate.map(|(_, mhz)| mhz),
            core_mhz: (!emulated).then(core_mhz),
        }
    }
}

/// The smallest step and the cost of a reading, in nanoseconds.
fn timer() -> (f64, f64) {
    const READINGS: u32 = 2000;
    let began = Instant::now();
    let mut step = Duration::MAX;
    let mut last = began;
    for _ in 0..READINGS {
        let now = Instant::now();
        if now > last {
            step = step.min(now - last);
        }
        last = now;
    }
    (step.as_nanos() as f64, began.elapsed().as_nanos() as f64 / f64::from(READINGS))
}

fn tick_rate() -> Option<(&'static str, f64)> {
    let began = Instant::now();
    let (first, name) = ticks::now()?;
    while began.elapsed() < Duration::from_millis(5) {}
    let (last, _) = ticks::now()?;
    Some((name, last.wrapping_sub(first) as f64 / began.elapsed().as_secs_f64() / 1e6))
}

/// Steps of the chain, and the cycles of each step: three shifts and three exclusive ors, each of which waits for the
/// one before.
const STEPS: u32 = 20_000;
const CYCLES: f64 = 6.0;

/// The core's clock in MHz: the best of some short runs.
///
/// Some cores shift and combine in one operation. If that takes them fewer cycles than two operations, this reads too
/// high, which a counter of cycles would show.
pub(crate) fn core_mhz() -> f64 {
    let mut best = f64::MAX;
    let mut x = black_box(0x9e37_79b9_7f4a_7c15u64);
    for _ in 0..12 {
        let began = Instant::now();
        for _ in 0..STEPS {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
        }
        x = black_box(x);
        best = best.min(began.elapsed().as_secs_f64());
    }
    CYCLES * f64::from(STEPS) / best / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_read_something_that_a_machine_can_have() {
        let clocks = Clocks::new(false);
        assert!(clocks.timer_step_ns >= 1.0 && clocks.timer_cost_ns > 0.0, "{clocks:?}");
        assert!(clocks.core_mhz.is_some_and(|mhz| (50.0..20_000.0).contains(&mhz)), "{clocks:?}");
        assert!(clocks.ticks_mhz.is_none_or(|mhz| (0.5..20_000.0).contains(&mhz)), "{clocks:?}");
    }
}

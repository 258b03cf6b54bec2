//! Signs that anything else ran on the machine meanwhile: the system's counts, and the slices.

use crate::machine::temperature;
use crate::stats::two_regimes;
use crate::words::count;
use serde::{Deserialize, Serialize};
use std::fs;
use std::time::Instant;

/// The disturbances of a run. An unreadable value is `None`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Interference {
    /// Share of the time in which the measuring thread could have run and did not, because another task had its core.
    pub run_queue_wait: Option<f64>,
    /// Share of the machine's time that the hypervisor gave to other machines.
    pub steal: Option<f64>,
    /// CPUs that other processes kept busy, on average.
    pub other_cpus: Option<f64>,
    /// Slices that were measured.
    pub slices: u64,
    /// Slices that do not count, because another task ran meanwhile.
    pub discarded_slices: u64,
    /// The slowest and the fastest core clock seen, in MHz.
    pub core_mhz: Option<(f64, f64)>,
    /// Figures whose slices fall into two groups of different speed.
    pub two_regimes: u64,
    /// The hottest sensor at the end.
    pub temperature_celsius: Option<f64>,
}

/// Watches a run from its beginning to its end.
#[derive(Debug)]
pub(crate) struct Watch {
    began: Instant,
    wait: Option<u64>,
    stat: Option<Stat>,
    seen: Interference,
}

impl Watch {
    pub(crate) fn new() -> Watch {
        Watch { began: Instant::now(), wait: queue_wait(), stat: Stat::read(), seen: Interference::default() }
    }

    /// Notes a figure: the values of its slices in the order of time, and the number of discarded ones.
    pub(crate) fn figure(&mut self, values: &[f64], discarded: usize) {
        self.seen.slices += (values.len() + discarded) as u64;
        self.seen.discarded_slices += discarded as u64;
        self.seen.two_regimes += u64::from(two_regimes(values).is_some());
    }

    /// Notes the core's clock.
    pub(crate) fn core_mhz(&mut self, mhz: f64) {
        let (low, high) = self.seen.core_mhz.unwrap_or((mhz, mhz));
        self.seen.core_mhz = Some((low.min(mhz), high.max(mhz)));
    }

    /// The disturbances until now.
    pub(crate) fn end(&self) -> Interference {
        let nanoseconds = self.began.elapsed().as_nanos() as f64;
        let waited = |then: u64| queue_wait().map(|now| (now - then) as f64 / nanoseconds.max(1.0));
        let spent = self.stat.as_ref().zip(Stat::read()).and_then(|(then, now)| now.since(then));
        Interference {
            run_queue_wait: self.wait.and_then(waited),
            steal: spent.map(|(steal, _)| steal),
            other_cpus: spent.map(|(_, others)| others),
            temperature_celsius: temperature(),
            ..self.seen.clone()
        }
    }
}

/// Nanoseconds that the calling thread stood in a run queue.
fn queue_wait() -> Option<u64> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().nth(1)?.parse().ok()
}

/// Clock ticks since the start of the system, of all CPUs and of this process.
#[derive(Debug)]
struct Stat {
    cpus: f64,
    all: f64,
    busy: f64,
    steal: f64,
    own: f64,
}

impl Stat {
    fn read() -> Option<Stat> {
        let text = fs::read_to_string("/proc/stat").ok()?;
        let cpus = text.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu ")).count();
        // user nice system idle iowait irq softirq steal; guest time is part of user time.
        let ticks: Vec<f64> =
            text.lines().next()?.split_whitespace().skip(1).take(8).flat_map(str::parse).collect();
        let [user, nice, system, idle, iowait, irq, softirq, steal] = ticks.try_into().ok()?;
        let busy = user + nice + system + irq + softirq;
        let own = fs::read_to_string("/proc/self/stat").ok()?;
        // The name, in parentheses, may hold any character; the times are fields 14 to 17 of the line.
        let own: Vec<f64> =
            own.rsplit_once(')')?.1.split_whitespace().skip(11).take(4).flat_map(str::parse).collect();
        Some(Stat {
            cpus: cpus as f64,
            all: busy + idle + iowait + steal,
            busy,
            steal,
            own: own.iter().sum(),
        })
    }

    /// The share of steal, and the CPUs that others used.
    fn since(&self, then: &Stat) -> Option<(f64, f64)> {
        let all = self.all - then.all;
        let others = (self.busy - then.busy) - (self.own - then.own);
        (all > 0.0).then(|| ((self.steal - then.steal) / all, (others / all * self.cpus).max(0.0)))
    }
}

impl Interference {
    /// Disturbances of the machine that may have moved all figures; empty if it was quiet.
    pub fn causes(&self) -> Vec<String> {
        let mut causes = Vec::new();
        if self.run_queue_wait.is_some_and(|share| share > 0.05) {
            causes.push("another task ran on the same core".to_owned());
        }
        if self.steal.is_some_and(|share| share > 0.01) {
            causes.push("the hypervisor took time away".to_owned());
        }
        if self.other_cpus.is_some_and(|cpus| cpus > 0.2) {
            causes.push("other processes shared caches and memory".to_owned());
        }
        if let Some((low, high)) = self.core_mhz
            && high > 1.15 * low
        {
            causes.push(format!("the core clock moved between {low:.0} and {high:.0} MHz"));
        }
        causes
    }

    /// A line of figures, and a line for each cause that may have moved them.
    pub(crate) fn lines(&self) -> Vec<String> {
        let percent =
            |share: Option<f64>| share.map_or("unknown".to_owned(), |s| format!("{:.1} %", s * 100.0));
        let mut lines = vec![format!(
            "run-queue wait {}, steal {}, other processes {} CPUs, {} of {} discarded",
            percent(self.run_queue_wait),
            percent(self.steal),
            self.other_cpus.map_or("unknown".to_owned(), |cpus| format!("{cpus:.2}")),
            self.discarded_slices,
            count(self.slices, "slice", "slices")
        )];
        lines.extend(self.causes().iter().map(|cause| format!("interference: {cause}")));
        if self.two_regimes > 0 {
            let figures = count(self.two_regimes, "figure shows", "figures show");
            lines.push(format!("interference: {figures} two speeds of the machine"));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_disturbs_is_said_and_nothing_else() {
        assert_eq!(Interference::default().lines().len(), 1);
        let noisy = Interference {
            run_queue_wait: Some(0.5),
            steal: Some(0.02),
            other_cpus: Some(1.0),
            core_mhz: Some((2000.0, 3000.0)),
            two_regimes: 1,
            ..Interference::default()
        };
        assert_eq!((noisy.lines().len(), noisy.causes().len()), (6, 4));
        assert!(noisy.lines()[5].contains("1 figure shows"), "{:?}", noisy.lines());
        // A figure with two speeds says nothing about the others.
        let one = Interference { two_regimes: 1, ..Interference::default() };
        assert!(one.causes().is_empty() && one.lines().len() == 2);
    }

    #[test]
    fn shares_follow_from_the_ticks() {
        let then = Stat { cpus: 2.0, all: 100.0, busy: 50.0, steal: 10.0, own: 20.0 };
        let now = Stat { cpus: 2.0, all: 300.0, busy: 150.0, steal: 30.0, own: 70.0 };
        assert_eq!(now.since(&then), Some((0.1, 0.5)));
        assert_eq!(now.since(&now), None);
    }
}

//! Two reports of the same preset, figure by figure: ratios, and a verdict only where they are beyond the noise.

use crate::error::{Error, Result};
use crate::report::{BenchReport, Comparison, GateVerdict};
use crate::stats::Summary;
use crate::table::{Cell, FigureTable, figure, key};
use crate::words::count;
use fec_base::names::show;
use std::collections::BTreeMap;
use std::path::Path;

/// Number of standard errors from which a difference is sure.
const SURE: f64 = 3.0;

impl BenchReport {
    /// Compares with a report that was saved at `path` before. `gate` is the share by which a figure may have become
    /// slower, 0.05 for five per cent.
    ///
    /// # Errors
    /// [`OtherPreset`](Error::OtherPreset).
    pub fn compare(&mut self, path: &Path, then: &BenchReport, gate: Option<f64>) -> Result<()> {
        if then.preset != self.preset {
            let (then, now) = (then.preset.clone(), self.preset.clone());
            return Err(Error::OtherPreset { path: path.into(), then, now });
        }
        let with = format!("{} (revision {}, {})", show(path), then.machine.revision, then.machine.date);
        let (comparison, beyond) = compared(then, self, gate);
        let judged = gate.map(|_| beyond.judge(then, self));
        let (verdict, reasons) =
            judged.map_or((None, Vec::new()), |(verdict, reasons)| (Some(verdict), reasons));
        self.comparison = Some(Comparison { with, gate, verdict, reasons, ..comparison });
        Ok(())
    }
}

/// A figure's place: the table, the keys of its row, and the column.
type FigurePlace = (String, Vec<String>, String);

/// The measured cells of a report.
fn figures(report: &BenchReport) -> BTreeMap<FigurePlace, &Summary> {
    let mut found = BTreeMap::new();
    for table in &report.tables {
        for row in &table.rows {
            let keys = table.columns.iter().filter(|column| column.key);
            let keys: Vec<String> = keys.map(|column| key_text(row.get(&column.name))).collect();
            for column in &table.columns {
                if let Some(Cell::Measured(summary)) = row.get(&column.name) {
                    let place = (table.name.clone(), keys.clone(), column.name.clone());
                    found.insert(place, summary);
                }
            }
        }
    }
    found
}

fn key_text(cell: Option<&Cell>) -> String {
    match cell {
        Some(Cell::Text(text)) => text.clone(),
        Some(Cell::Whole(number)) => number.to_string(),
        Some(Cell::Real(number)) => number.to_string(),
        _ => String::new(),
    }
}

/// The differences between the machines or the kernels of two runs.
fn differences(then: &BenchReport, now: &BenchReport) -> Vec<String> {
    let what = |report: &BenchReport| {
        [
            ("processor", report.machine.cpu.clone()),
            ("backend", report.backend.clone()),
            ("threads", report.threads.to_string()),
            ("compiler", report.machine.compiler.clone()),
            ("emulation", report.machine.emulated.clone().unwrap_or_default()),
        ]
    };
    let pairs = what(then).into_iter().zip(what(now)).filter(|((_, a), (_, b))| a != b);
    pairs.map(|((name, a), (_, b))| format!("{name}: {a} then, {b} now")).collect()
}

/// A comparison without figures.
fn nothing_compared() -> Comparison {
    let columns = [
        key("table", "table"),
        key("figure", "figure"),
        figure("ratio", "ratio", 3),
        figure("noise", "±", 3),
        figure("verdict", "verdict", 0),
    ];
    let title = "Against the saved result: time now / time then; ± is the noise of both";
    Comparison {
        with: String::new(),
        table: FigureTable::new("comparison", title, columns),
        faster: 0,
        slower: 0,
        same: 0,
        unmatched: 0,
        median_ratio: None,
        worst: 0.0,
        differences: Vec::new(),
        gate: None,
        verdict: None,
        reasons: Vec::new(),
    }
}

/// Counts of figures that became slower than the gate allows, beyond the noise, and of figures whose noise might hide
/// that.
#[derive(Debug, Default)]
struct Beyond {
    /// Figures in both reports.
    compared: u64,
    /// Compared figures whose noise may hide more than the gate allows.
    hidden: u64,
    /// Compared figures that became slower by more than the gate allows.
    all: u64,
    /// Slower figures whose spread alone does not explain the slowdown.
    clear: u64,
    /// Slower figures whose slowdown no disturbance explains.
    beyond_doubt: u64,
}

/// Clean slices become slower by this factor at most, through caches and memory that others use too, and a sibling on
/// the same core.
const SHARED: f64 = 4.0;

impl Beyond {
    /// Counts a figure.
    fn note(&mut self, now: &Summary, then: &Summary, gate: f64, steal: f64) {
        let (slower, spread) = (now.median / then.median - 1.0, now.spread().max(then.spread()));
        self.all += 1;
        let is_clear = spread <= gate || slower > gate + spread;
        self.clear += u64::from(is_clear);
        let explained = SHARED / (1.0 - steal).max(0.01);
        // A short phase spreads, and by as much may be slower than even the disturbance explains.
        let is_beyond = slower + 1.0 > explained * (1.0 + spread);
        self.beyond_doubt += u64::from(is_clear && !now.unfiltered && is_beyond);
    }

    /// A disturbed run can only be too slow. A disturbed current run therefore fails only if a figure slowed down by
    /// more than the disturbance explains; a disturbed baseline never passes.
    fn judge(&self, then: &BenchReport, now: &BenchReport) -> (GateVerdict, Vec<String>) {
        let disturbed = |report: &BenchReport, which: &str| {
            let causes = report.interference.causes();
            (!causes.is_empty()).then(|| format!("{which} run was disturbed ({})", causes.join(", ")))
        };
        if self.beyond_doubt > 0 {
            return (GateVerdict::Failed, Vec::new());
        }
        let reason = match (self.clear, self.all) {
            (1.., _) => disturbed(now, "this"),
            (0, 1..) => {
                let (them, spread) = if self.all == 1 { ("it", "spreads") } else { ("they", "spread") };
                let figures = count(self.all, "figure is slower", "figures are slower");
                Some(format!("{figures}, and {them} {spread} further than the gate"))
            }
            (0, 0) => disturbed(then, "the saved").or_else(|| {
                let figures = count(self.compared, "figure", "figures");
                let most = 2 * self.hidden > self.compared;
                most.then(|| format!("the noise of {} of {figures} is larger than the gate", self.hidden))
            }),
        };
        match (reason, self.clear) {
            (Some(reason), _) => (GateVerdict::Inconclusive, vec![reason]),
            (None, 1..) => (GateVerdict::Failed, Vec::new()),
            (None, 0) => (GateVerdict::Passed, Vec::new()),
        }
    }
}

fn compared(then: &BenchReport, now: &BenchReport, gate: Option<f64>) -> (Comparison, Beyond) {
    let mut all = Comparison { differences: differences(then, now), ..nothing_compared() };
    let mut beyond = Beyond::default();
    let steal = now.interference.steal.unwrap_or(0.0);
    let (old, new) = (figures(then), figures(now));
    all.unmatched = old.keys().filter(|place| !new.contains_key(*place)).count() as u64;
    let mut ratios = Vec::new();
    for (place, summary) in new {
        let Some(before) = old.get(&place).filter(|before| before.median > 0.0) else {
            all.unmatched += 1;
            continue;
        };
        let ratio = summary.median / before.median;
        let noise = SURE * ratio * summary.noise().hypot(before.noise());
        beyond.compared += 1;
        beyond.hidden += u64::from(gate.is_some_and(|gate| noise > gate && ratio + noise > 1.0 + gate));
        let verdict = if ratio - 1.0 > noise {
            all.slower += 1;
            all.worst = all.worst.max(ratio - 1.0);
            if let Some(gate) = gate.filter(|gate| ratio - 1.0 > *gate) {
                beyond.note(summary, before, gate, steal);
            }
            "slower"
        } else if 1.0 - ratio > noise {
            all.faster += 1;
            "faster"
        } else {
            all.same += 1;
            "same"
        };
        ratios.push(ratio);
        let (table, keys, column) = place;
        let name = format!("{} {column}", keys.join(" ")).trim().to_owned();
        all.table.row([
            ("table", table.into()),
            ("figure", name.into()),
            ("ratio", ratio.into()),
            ("noise", noise.into()),
            ("verdict", verdict.into()),
        ]);
    }
    ratios.sort_unstable_by(f64::total_cmp);
    all.median_ratio = ratios.get(ratios.len() / 2).copied();
    (all, beyond)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interference::Interference;
    use crate::options::{Options, Preset};
    use crate::progress::Unseen;
    use crate::table::FigureColumn;

    /// A report of a single figure, by the fast preset, with these values.
    fn report(values: &[f64], unfiltered: bool, interference: Interference) -> BenchReport {
        let options = Options { rounds: Some(1), ..Options::new(Preset::Model) };
        let mut report = crate::run(&options, &Unseen).expect("a report");
        let columns: [FigureColumn; 2] = [key("what", "what"), figure("time", "ms", 1)];
        let mut table = FigureTable::new("t", "", columns);
        let summary = Summary { unfiltered, ..Summary::of(values.to_vec(), 0).expect("values") };
        table.row([("what", "work".into()), ("time", summary.into())]);
        report.tables = vec![table];
        report.interference = interference;
        report
    }

    /// Many values around 1, times `factor`, with quartiles `spread` apart.
    fn values(factor: f64, spread: f64) -> Vec<f64> {
        (0..400).map(|i| factor * (1.0 + spread * (f64::from(i) / 200.0 - 1.0))).collect()
    }

    fn busy() -> Interference {
        Interference { run_queue_wait: Some(0.5), other_cpus: Some(1.0), ..Interference::default() }
    }

    fn judged(now: &BenchReport, then: &BenchReport, gate: f64) -> (GateVerdict, String) {
        let mut now = now.clone();
        now.compare(Path::new("then.json"), then, Some(gate)).expect("the same preset");
        let comparison = now.comparison.expect("a comparison");
        assert_eq!(comparison.fails(), comparison.verdict == Some(GateVerdict::Failed));
        (comparison.verdict.expect("a verdict"), comparison.lines().pop().expect("lines"))
    }

    #[test]
    fn a_quiet_machine_shuts_the_gate_for_what_became_slower() {
        let quiet = Interference::default;
        let then = report(&values(1.0, 0.01), false, quiet());
        for (factor, verdict) in [
            (1.0, GateVerdict::Passed),
            (1.04, GateVerdict::Passed),
            (0.5, GateVerdict::Passed),
            (1.08, GateVerdict::Failed),
            (3.0, GateVerdict::Failed),
        ] {
            let now = report(&values(factor, 0.01), false, quiet());
            assert_eq!(judged(&now, &then, 0.05).0, verdict, "{factor}");
        }
    }

    #[test]
    fn a_disturbed_run_is_no_reason_to_fail_unless_nothing_else_explains_it() {
        let then = report(&values(1.0, 0.01), false, Interference::default());
        for (factor, unfiltered, verdict) in [
            (1.0, false, GateVerdict::Passed),
            (2.5, false, GateVerdict::Inconclusive),
            (2.5, true, GateVerdict::Inconclusive),
            // Slices of a single thread that had the core to itself do not take twenty times as long; others may.
            (20.0, false, GateVerdict::Failed),
            (20.0, true, GateVerdict::Inconclusive),
        ] {
            let now = report(&values(factor, 0.01), unfiltered, busy());
            let (judged, line) = judged(&now, &then, 0.05);
            assert_eq!(judged, verdict, "{factor} {unfiltered}");
            if judged == GateVerdict::Inconclusive {
                assert!(
                    line.contains("inconclusive") && line.contains("another task ran on the same core"),
                    "{line}"
                );
            }
        }
    }

    #[test]
    fn what_spreads_may_be_slower_by_as_much_more_on_a_busy_machine() {
        let then = report(&values(1.0, 0.01), false, Interference::default());
        for (factor, noise, verdict) in [
            (4.3, 0.01, GateVerdict::Failed),
            (4.3, 0.45, GateVerdict::Inconclusive),
            (20.0, 0.45, GateVerdict::Failed),
        ] {
            let now = report(&values(factor, noise), false, busy());
            assert_eq!(judged(&now, &then, 0.05).0, verdict, "{factor} {noise}");
        }
    }

    #[test]
    fn what_was_saved_on_a_busy_machine_proves_nothing() {
        let then = report(&values(2.0, 0.01), false, busy());
        let now = report(&values(1.0, 0.01), false, Interference::default());
        let (verdict, line) = judged(&now, &then, 0.05);
        assert_eq!(verdict, GateVerdict::Inconclusive);
        assert!(line.contains("the saved run was disturbed"), "{line}");
        // A slowdown beyond even that fails.
        let slow = report(&values(3.0, 0.01), false, Interference::default());
        assert_eq!(judged(&slow, &then, 0.05).0, GateVerdict::Failed);
    }

    #[test]
    fn figures_that_spread_further_than_the_gate_do_not_shut_it_by_that() {
        let quiet = Interference::default;
        let then = report(&values(1.0, 0.3), false, quiet());
        let (verdict, line) = judged(&report(&values(1.3, 0.3), false, quiet()), &then, 0.05);
        assert_eq!(verdict, GateVerdict::Inconclusive);
        assert!(line.contains("1 figure is slower, and it spreads further than the gate"), "{line}");
        // A slowdown far beyond the spread fails all the same.
        assert_eq!(judged(&report(&values(2.0, 0.3), false, quiet()), &then, 0.05).0, GateVerdict::Failed);
    }

    #[test]
    fn noise_beyond_the_gate_hides_what_it_asks_for() {
        let quiet = Interference::default;
        let few = |factor: f64| [1.0, 1.2, 1.4, 1.6, 1.8].map(|value| value * factor);
        let then = report(&few(1.0), false, quiet());
        let (verdict, line) = judged(&report(&few(1.1), false, quiet()), &then, 0.05);
        assert_eq!(verdict, GateVerdict::Inconclusive);
        assert!(line.contains("the noise of 1 of 1 figure is larger than the gate"), "{line}");
        // A figure that became much faster hides nothing.
        assert_eq!(judged(&report(&few(0.3), false, quiet()), &then, 0.05).0, GateVerdict::Passed);
    }
}

//! Two results of the same preset, figure by figure: ratios, and a verdict only where they are beyond the noise.

use super::report::{Cell, Report, Table, figure, key};
use crate::failure::{Failure, Result, show};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// What became of a result that was saved.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Comparison {
    /// The file, and the revision and date of its run.
    pub(crate) with: String,
    pub(crate) table: Table,
    pub(crate) faster: u64,
    pub(crate) slower: u64,
    pub(crate) same: u64,
    /// Figures that only one of the two runs has.
    pub(crate) unmatched: u64,
    pub(crate) median_ratio: Option<f64>,
    /// The most that any figure became slower, beyond the noise; 0.05 is five per cent.
    pub(crate) worst: f64,
    /// What differs between the machines or the kernels of the two runs.
    pub(crate) differences: Vec<String>,
    pub(crate) gate: Option<f64>,
}

/// Reads a result that `--save` wrote.
pub(crate) fn read(path: &Path) -> Result<Report> {
    let text = std::fs::read_to_string(path).map_err(|e| Failure::io("read", path, &e))?;
    serde_json::from_str(&text).map_err(|e| {
        Failure::usage(format!("read {}: not a result of fec bench: {e}", show(path)))
            .help("write one with `fec bench --save FILE`")
    })
}

/// A figure's place: the table, and the keys of its row.
type Place = (String, Vec<String>, String);

/// The measured cells of a report.
fn figures(report: &Report) -> BTreeMap<Place, (f64, f64)> {
    let mut found = BTreeMap::new();
    for table in &report.tables {
        for row in &table.rows {
            let keys: Vec<String> = table
                .columns
                .iter()
                .filter(|column| column.key)
                .map(|column| match row.get(&column.name) {
                    Some(Cell::Text(text)) => text.clone(),
                    Some(Cell::Whole(number)) => number.to_string(),
                    Some(Cell::Real(number)) => number.to_string(),
                    _ => String::new(),
                })
                .collect();
            for column in &table.columns {
                if let Some(Cell::Measured(summary)) = row.get(&column.name) {
                    let place = (table.name.clone(), keys.clone(), column.name.clone());
                    found.insert(place, (summary.median, summary.noise()));
                }
            }
        }
    }
    found
}

/// How sure a difference must be: so many standard errors.
const SURE: f64 = 3.0;

impl Comparison {
    pub(crate) fn new(path: &Path, now: &Report, gate: Option<f64>) -> Result<Comparison> {
        let then = read(path)?;
        if then.preset != now.preset {
            let message = format!("compare with {}: it is of preset {}", show(path), then.preset);
            return Err(Failure::usage(message).help(format!("this is {}", now.preset)));
        }
        let mut all = Comparison::of(&then, now);
        all.with = format!("{} (revision {}, {})", show(path), then.machine.revision, then.machine.date);
        all.gate = gate;
        Ok(all)
    }

    fn of(then: &Report, now: &Report) -> Comparison {
        let table = Table::new(
            "comparison",
            "Against the saved result: time now / time then; ± is the noise of both",
            [
                key("table", "table"),
                key("figure", "figure"),
                figure("ratio", "ratio", 3),
                figure("noise", "±", 3),
                figure("verdict", "verdict", 0),
            ],
        );
        let what = |report: &Report| {
            [
                ("processor", report.machine.cpu.clone()),
                ("backend", report.backend.clone()),
                ("threads", report.threads.to_string()),
                ("compiler", report.machine.compiler.clone()),
                ("emulation", report.machine.emulated.clone().unwrap_or_default()),
            ]
        };
        let differences = what(then).into_iter().zip(what(now)).filter(|((_, a), (_, b))| a != b);
        let mut all = Comparison {
            with: String::new(),
            table,
            faster: 0,
            slower: 0,
            same: 0,
            unmatched: 0,
            median_ratio: None,
            worst: 0.0,
            differences: differences
                .map(|((name, a), (_, b))| format!("{name}: {a} then, {b} now"))
                .collect(),
            gate: None,
        };
        let (old, new) = (figures(then), figures(now));
        all.unmatched = old.keys().filter(|place| !new.contains_key(*place)).count() as u64;
        let mut ratios = Vec::new();
        for (place, (median, noise)) in new {
            let Some((before, noise_before)) = old.get(&place).filter(|(median, _)| *median > 0.0) else {
                all.unmatched += 1;
                continue;
            };
            let ratio = median / before;
            let noise = SURE * ratio * noise.hypot(*noise_before);
            let verdict = if ratio - 1.0 > noise {
                all.slower += 1;
                all.worst = all.worst.max(ratio - 1.0);
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
        all
    }

    /// Whether the gate is shut: something became slower by more than it lets through.
    pub(crate) fn fails(&self) -> bool {
        self.gate.is_some_and(|gate| self.worst > gate)
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let ratio =
            self.median_ratio.map_or("no figure in common".to_owned(), |r| format!("median ratio {r:.3}"));
        let mut lines = vec![format!(
            "compared with {}: {ratio}, {} slower, {} faster, {} the same within the noise, {} without a partner",
            self.with, self.slower, self.faster, self.same, self.unmatched
        )];
        lines.extend(self.differences.iter().map(|difference| format!("differs: {difference}")));
        if let Some(gate) = self.gate {
            let verdict = if self.fails() { "FAILED" } else { "passed" };
            lines.push(format!("gate {:.1} %: {verdict}, worst {:.1} %", gate * 100.0, self.worst * 100.0));
        }
        lines
    }
}

//! Two reports of the same preset, figure by figure: ratios, and a verdict only where they are beyond the noise.

use crate::error::{Error, Result};
use crate::report::{BenchReport, Comparison};
use crate::table::{Cell, FigureTable, figure, key};
use fecfile::names::show;
use std::collections::BTreeMap;
use std::path::Path;

/// How sure a difference must be: so many standard errors.
const SURE: f64 = 3.0;

impl BenchReport {
    /// Compares with a report that was saved at `path` before; `gate` is the share by which a figure may have become
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
        self.comparison = Some(Comparison { with, gate, ..compared(then, self) });
        Ok(())
    }
}

/// A figure's place: the table, the keys of its row, and the column.
type FigurePlace = (String, Vec<String>, String);

/// The measured cells of a report: medians, and how far they may be off.
fn figures(report: &BenchReport) -> BTreeMap<FigurePlace, (f64, f64)> {
    let mut found = BTreeMap::new();
    for table in &report.tables {
        for row in &table.rows {
            let keys = table.columns.iter().filter(|column| column.key);
            let keys: Vec<String> = keys.map(|column| key_text(row.get(&column.name))).collect();
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

fn key_text(cell: Option<&Cell>) -> String {
    match cell {
        Some(Cell::Text(text)) => text.clone(),
        Some(Cell::Whole(number)) => number.to_string(),
        Some(Cell::Real(number)) => number.to_string(),
        _ => String::new(),
    }
}

/// What differs between the machines or the kernels of two runs.
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

/// No figure yet.
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
    }
}

fn compared(then: &BenchReport, now: &BenchReport) -> Comparison {
    let mut all = Comparison { differences: differences(then, now), ..nothing_compared() };
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

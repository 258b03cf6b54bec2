//! A report for people, spreadsheets and documents.

use crate::error::{Error, Result};
use crate::grid::{Grid, table_text};
use crate::options::{Format, Preset};
use crate::report::BenchReport;
use crate::stats::Summary;
use crate::table::{Cell, ESTIMATED_CYCLES, FigureColumn, FigureTable};
use crate::words::{count, threads, wrap_all};
use std::collections::BTreeMap;

impl BenchReport {
    /// The report for people, in lines of at most `width` columns, or as wide as needed without a limit. A word that
    /// cannot be cut, such as a path, may still be longer.
    pub fn text(&self, width: Option<usize>) -> String {
        /// Lines after which the top of the report has left the screen when the run ends.
        const SCREEN: usize = 20;
        let mut out = wrap_all(&header(self), width);
        out.push('\n');
        for table in tables(self) {
            out.push('\n');
            out.push_str(&table_text(table, width));
        }
        out.push_str(&format!("\n{}", wrap_all(&footer(self), width)));
        // Whoever has a board may paste this; it is as wide as it is.
        if let Some(board) = self.board().filter(|_| !self.machine.target.starts_with("x86_64")) {
            out.push_str(&format!("\n\nFor docs/boards.md:\n{board}"));
        }
        let mut out = out.trim_end().to_owned();
        if out.lines().count() > SCREEN && !self.headline.is_empty() {
            out.push_str(&format!(
                "\n\n{}",
                wrap_all(std::slice::from_ref(&self.headline), width).trim_end()
            ));
        }
        out
    }

    /// The report in one of the formats. A table is as wide as needed ([`text`](Self::text) fits a terminal).
    ///
    /// # Errors
    /// [`Report`](Error::Report), which no report of a run gives.
    pub fn render(&self, format: Format) -> Result<String> {
        match format {
            Format::Json => serde_json::to_string(self).map_err(Error::Report),
            Format::Table => Ok(self.text(None)),
            Format::Csv => Ok(csv(self)),
            Format::Markdown => Ok(markdown(self)),
            Format::Board => Ok(self.board().unwrap_or_else(|| self.headline.clone())),
        }
    }
}

/// The lines above the tables.
fn header(report: &BenchReport) -> Vec<String> {
    let machine = &report.machine;
    let or_unknown = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
    let mut lines = vec![report.headline.clone()];
    // Reports that older versions saved have no headline.
    lines.retain(|line| !line.is_empty());
    lines.push(format!(
        "backend {} set for {}{}{}, {}; preset {}, {}",
        report.backend,
        report.tuning,
        if report.tuning_is_kept { " (kept by `fec bench tuning --save`)" } else { "" },
        machine
            .emulated
            .as_ref()
            .map_or(String::new(), |by| format!(" EMULATED by {by}: no speed here means anything")),
        threads(report.threads),
        report.preset,
        machine.date
    ));
    lines.push(format!(
        "{}, {}{}, microcode {}, {}",
        machine.cpu,
        count(machine.cpus as u64, "CPU", "CPUs"),
        if machine.virtual_machine { ", virtual machine" } else { "" },
        or_unknown(&machine.microcode),
        machine.flags.join(" ")
    ));
    lines.push(format!(
        "fec {} ({}), {}, {}; Linux {}",
        machine.version,
        machine.revision,
        machine.compiler,
        machine.target,
        or_unknown(&machine.kernel)
    ));
    let clocks = &machine.clocks;
    let mhz = |value: Option<f64>| value.map_or("unknown".to_owned(), |mhz| format!("{mhz:.0} MHz"));
    lines.push(format!(
        "core clock {}, {} {}, timer {} in steps of {:.0} ns, {:.0} ns a reading; governor {}, {}",
        mhz(clocks.core_mhz),
        clocks.ticks.as_deref().unwrap_or("tick counter"),
        mhz(clocks.ticks_mhz),
        or_unknown(&clocks.source),
        clocks.timer_step_ns,
        clocks.timer_cost_ns,
        or_unknown(&machine.governor),
        machine.temperature_celsius.map_or("temperature unknown".to_owned(), |t| format!("{t:.0} °C")),
    ));
    lines.push(format!("counters: {}; model: {}", report.counters, report.model));
    lines
}

/// The lines below the tables.
fn footer(report: &BenchReport) -> Vec<String> {
    // The model times nothing.
    let mut lines =
        if report.preset == Preset::Model.name() { Vec::new() } else { report.interference.lines() };
    let marked =
        |mark: fn(&Summary) -> bool| summaries(report).filter(|summary| mark(summary)).count() as u64;
    if marked(|summary| summary.on_core) > 0 {
        lines.push(
            "* other work had the core too often: these are times on the core, without those of waiting for it".to_owned(),
        );
    }
    let far = marked(Summary::is_far_from_min);
    if far > 0 {
        lines.push(format!(
            "! disturbed: the median of {} is more than three times the shortest time, which is nearer to what this machine can do",
            count(far, "figure", "figures")
        ));
    }
    if report.tables.iter().any(has_estimated_cycles) {
        lines.push(
            "~cycles/B: estimated from the time and the clock of the core, which was measured first"
                .to_owned(),
        );
    }
    lines.extend(report.notes.iter().cloned());
    if report.interrupted {
        lines.push("interrupted: this is what was measured until then".to_owned());
    } else if report.out_of_time {
        lines.push("the time was up: not all was measured; --budget gives more".to_owned());
    }
    if let Some(comparison) = &report.comparison {
        lines.extend(comparison.lines());
    }
    lines
}

/// The figures that were measured many times.
fn summaries(report: &BenchReport) -> impl Iterator<Item = &Summary> {
    let rows = report.tables.iter().flat_map(|table| &table.rows);
    rows.flat_map(BTreeMap::values).filter_map(|cell| match cell {
        Cell::Measured(summary) => Some(summary),
        _ => None,
    })
}

fn has_estimated_cycles(table: &FigureTable) -> bool {
    let is_there =
        |row: &BTreeMap<String, Cell>| row.get(ESTIMATED_CYCLES).is_some_and(|cell| *cell != Cell::Missing);
    table.rows.iter().any(is_there)
}

fn tables(report: &BenchReport) -> Vec<&FigureTable> {
    let comparison = report.comparison.as_ref().map(|comparison| &comparison.table);
    report.tables.iter().chain(comparison).filter(|table| !table.rows.is_empty()).collect()
}

/// For a document.
fn markdown(report: &BenchReport) -> String {
    let mut out = header(report).join("  \n");
    for table in tables(report) {
        let grid = Grid::new(table);
        out.push_str(&format!("\n\n### {}\n\n", table.title));
        let row = |cells: &[String]| {
            format!("| {} |\n", cells.iter().map(|c| c.replace('|', "\\|")).collect::<Vec<_>>().join(" | "))
        };
        out.push_str(&row(&grid.head));
        let rule: Vec<String> =
            grid.left.iter().map(|left| if *left { "---" } else { "---:" }.to_owned()).collect();
        out.push_str(&row(&rule));
        grid.rows.iter().for_each(|cells| out.push_str(&row(cells)));
    }
    out.push_str(&format!("\n{}", footer(report).join("  \n")));
    out.trim_end().to_owned()
}

/// For spreadsheets: a block for each table, `table` in front of every row, all columns, RFC 4180. The header is
/// comment lines that begin with #.
fn csv(report: &BenchReport) -> String {
    let mut out: String =
        header(report).iter().chain(&footer(report)).map(|line| format!("# {line}\r\n")).collect();
    for table in tables(report) {
        let measured: Vec<bool> = table
            .columns
            .iter()
            .map(|column| {
                table.rows.iter().any(|row| matches!(row.get(&column.name), Some(Cell::Measured(_))))
            })
            .collect();
        let mut head = vec!["table".to_owned()];
        for (column, measured) in table.columns.iter().zip(&measured) {
            head.extend(names(column, *measured));
        }
        out.push_str(&csv_row(&head));
        for row in &table.rows {
            let mut cells = vec![table.name.clone()];
            for (column, measured) in table.columns.iter().zip(&measured) {
                cells.extend(csv_cells(row.get(&column.name).unwrap_or(&Cell::Missing), *measured));
            }
            out.push_str(&csv_row(&cells));
        }
    }
    out.trim_end().to_owned()
}

const PARTS: [&str; 6] = ["median", "min", "low", "high", "slices", "discarded"];

fn names(column: &FigureColumn, measured: bool) -> Vec<String> {
    match measured {
        false => vec![column.name.clone()],
        true => PARTS.iter().map(|part| format!("{}_{part}", column.name)).collect(),
    }
}

fn csv_cells(cell: &Cell, measured: bool) -> Vec<String> {
    match (cell, measured) {
        (Cell::Measured(s), _) => {
            let times = [s.median, s.min, s.low, s.high].map(|value| value.to_string());
            times.into_iter().chain([s.slices.to_string(), s.discarded.to_string()]).collect()
        }
        (Cell::Missing, true) => vec![String::new(); PARTS.len()],
        (Cell::Missing, false) => vec![String::new()],
        (Cell::Text(text), _) => vec![text.clone()],
        (Cell::Whole(number), _) => vec![number.to_string()],
        (Cell::Real(number), _) => vec![number.to_string()],
    }
}

fn csv_row(cells: &[String]) -> String {
    let quoted = cells.iter().map(|cell| {
        if cell.contains(['"', ',', '\n', '\r']) {
            format!("\"{}\"", cell.replace('"', "\"\""))
        } else {
            cell.clone()
        }
    });
    format!("{}\r\n", quoted.collect::<Vec<_>>().join(","))
}

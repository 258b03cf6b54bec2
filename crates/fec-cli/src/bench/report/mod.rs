//! The one struct that every preset fills, and every format prints.

mod text;

pub(crate) use text::terminal_table;

use super::compare::Comparison;
use super::interference::Interference;
use super::machine::Machine;
use super::stats::Summary;
use crate::args::Format;
use crate::failure::{Exit, Failure, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything that a run of `fec bench` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) schema_version: u32,
    pub(crate) command: String,
    pub(crate) preset: String,
    /// The arguments, to run it again.
    pub(crate) arguments: Vec<String>,
    /// The kernel that ran.
    pub(crate) backend: String,
    /// The processor that the kernel is set for, and changed settings.
    pub(crate) tuning: String,
    pub(crate) threads: usize,
    /// Where figures of caches and cycles come from.
    pub(crate) counters: String,
    /// Each counter that was asked for, with `ok` or the reason that it is not there.
    pub(crate) counter_status: BTreeMap<String, String>,
    pub(crate) model: String,
    pub(crate) machine: Machine,
    pub(crate) seconds: f64,
    /// It ended before all was measured: by a signal, or because the time was up.
    pub(crate) interrupted: bool,
    pub(crate) out_of_time: bool,
    pub(crate) interference: Interference,
    pub(crate) tables: Vec<Table>,
    pub(crate) notes: Vec<String>,
    pub(crate) comparison: Option<Comparison>,
}

/// Rows of figures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<BTreeMap<String, Cell>>,
}

/// What one place of all rows means.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Column {
    /// In JSON and CSV.
    pub(crate) name: String,
    /// For people.
    pub(crate) label: String,
    /// Key columns tell rows apart; the others are figures.
    pub(crate) key: bool,
    /// Digits after the point.
    pub(crate) digits: usize,
}

/// A place in a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Cell {
    /// It could not be had; null in JSON, never 0.
    Missing,
    Whole(u64),
    Real(f64),
    Measured(Summary),
    Text(String),
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl From<usize> for Cell {
    fn from(number: usize) -> Cell {
        Cell::Whole(number as u64)
    }
}

impl From<f64> for Cell {
    fn from(number: f64) -> Cell {
        // JSON has no other numbers; a rate over no time is no figure either.
        if number.is_finite() { Cell::Real(number) } else { Cell::Missing }
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(cell: Option<T>) -> Cell {
        cell.map_or(Cell::Missing, Into::into)
    }
}

impl From<Summary> for Cell {
    fn from(summary: Summary) -> Cell {
        Cell::Measured(summary)
    }
}

/// A column that tells rows apart.
pub(crate) fn key(name: &str, label: &str) -> Column {
    Column { name: name.to_owned(), label: label.to_owned(), key: true, digits: 0 }
}

/// A column of figures.
pub(crate) fn figure(name: &str, label: &str, digits: usize) -> Column {
    Column { name: name.to_owned(), label: label.to_owned(), key: false, digits }
}

impl Table {
    pub(crate) fn new(
        name: &str,
        title: impl Into<String>,
        columns: impl IntoIterator<Item = Column>,
    ) -> Table {
        let columns = columns.into_iter().collect();
        Table { name: name.to_owned(), title: title.into(), columns, rows: Vec::new() }
    }

    /// Adds a row; columns that are not named are missing.
    ///
    /// # Panics
    /// If there is no such column: a mistake in a preset.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = (&'static str, Cell)>) {
        let mut row: BTreeMap<String, Cell> =
            self.columns.iter().map(|column| (column.name.clone(), Cell::Missing)).collect();
        for (name, cell) in cells {
            *row.get_mut(name).unwrap_or_else(|| panic!("no column {name}")) = cell;
        }
        self.rows.push(row);
    }
}

impl Report {
    /// The report in one of the formats.
    pub(crate) fn print(&self, format: Format) -> Result<String> {
        match format {
            Format::Json => serde_json::to_string(self)
                .map_err(|e| Failure::new(Exit::Io, format!("write the report: {e}"))),
            Format::Table => Ok(text::terminal(self)),
            Format::Csv => Ok(text::csv(self)),
            Format::Markdown => Ok(text::markdown(self)),
        }
    }
}

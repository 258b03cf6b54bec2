//! Tables of figures, which every preset fills and every format prints.

use crate::stats::Summary;
use fec_core::gf256::kernel::Tuning;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The findings of a preset.
pub(crate) struct Findings {
    /// The tables, in the order in which they are shown.
    pub(crate) tables: Vec<FigureTable>,
    pub(crate) notes: Vec<String>,
    /// Settings of the kernel that are faster than those in use, if a search found any.
    pub(crate) better: Option<Tuning>,
}

impl Findings {
    pub(crate) fn new(tables: Vec<FigureTable>, notes: Vec<String>) -> Findings {
        Findings { tables, notes, better: None }
    }
}

/// Rows of figures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FigureTable {
    /// Name in JSON and CSV.
    pub name: String,
    /// Title for people.
    pub title: String,
    /// The meaning of each place of a row.
    pub columns: Vec<FigureColumn>,
    /// Each row's cells, by the names of their columns.
    pub rows: Vec<BTreeMap<String, Cell>>,
}

/// The meaning of a place in all rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FigureColumn {
    /// Name in JSON and CSV.
    pub name: String,
    /// Label for people.
    pub label: String,
    /// True if the column identifies rows; the others are figures.
    pub key: bool,
    /// Digits after the point.
    pub digits: usize,
}

/// A place in a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Cell {
    /// No value could be had; null in JSON, never 0.
    Missing,
    /// A count.
    Whole(u64),
    /// A value computed from measurements.
    Real(f64),
    /// A value measured many times.
    Measured(Summary),
    /// Words.
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

/// A column that identifies rows.
pub(crate) fn key(name: &str, label: &str) -> FigureColumn {
    FigureColumn { name: name.to_owned(), label: label.to_owned(), key: true, digits: 0 }
}

/// A column of figures.
pub(crate) fn figure(name: &str, label: &str, digits: usize) -> FigureColumn {
    FigureColumn { name: name.to_owned(), label: label.to_owned(), key: false, digits }
}

/// Columns that people are not shown where all is 0.
const QUIET: [&str; 2] = ["page_faults_per_call", "context_switches_per_call"];

/// The column of cycles computed from a time and the clock of the core.
pub(crate) const ESTIMATED_CYCLES: &str = "estimated_cycles_per_byte";

pub(crate) fn estimated_cycles() -> FigureColumn {
    figure(ESTIMATED_CYCLES, "~cycles/B", 3)
}

impl FigureTable {
    pub(crate) fn new(
        name: &str,
        title: impl Into<String>,
        columns: impl IntoIterator<Item = FigureColumn>,
    ) -> FigureTable {
        let columns = columns.into_iter().collect();
        FigureTable { name: name.to_owned(), title: title.into(), columns, rows: Vec::new() }
    }

    /// Tells whether a column counts what never happened here.
    pub(crate) fn is_quiet(&self, column: &FigureColumn) -> bool {
        let mut cells =
            self.rows.iter().filter_map(|row| row.get(&column.name)).filter(|cell| **cell != Cell::Missing);
        QUIET.contains(&column.name.as_str())
            && cells.all(|cell| {
                matches!(cell, Cell::Whole(0)) || matches!(cell, Cell::Real(count) if *count == 0.0)
            })
    }

    /// Adds a row. Columns that are not named are missing.
    ///
    /// # Panics
    /// If a column does not exist: a mistake in a preset.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = (&'static str, Cell)>) {
        let mut row: BTreeMap<String, Cell> =
            self.columns.iter().map(|column| (column.name.clone(), Cell::Missing)).collect();
        for (name, cell) in cells {
            *row.get_mut(name).unwrap_or_else(|| panic!("no column {name}")) = cell;
        }
        self.rows.push(row);
    }
}

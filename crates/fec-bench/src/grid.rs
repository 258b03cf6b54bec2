//! A table as columns of text.

use crate::stats::Summary;
use crate::table::{Cell, FigureTable};

/// A table as text: head and rows.
pub(crate) struct Grid {
    pub(crate) head: Vec<String>,
    /// Whether a column is text, and so stands at the left.
    pub(crate) left: Vec<bool>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Grid {
    /// The cells for people. Columns without any figure are left out; a measured one becomes three.
    pub(crate) fn new(table: &FigureTable) -> Grid {
        let mut grid = Grid { head: Vec::new(), left: Vec::new(), rows: vec![Vec::new(); table.rows.len()] };
        for column in &table.columns {
            let cells: Vec<&Cell> =
                table.rows.iter().map(|row| row.get(&column.name).unwrap_or(&Cell::Missing)).collect();
            if cells.iter().all(|cell| matches!(cell, Cell::Missing)) {
                continue;
            }
            grid.head.push(column.label.clone());
            grid.left.push(cells.iter().all(|cell| matches!(cell, Cell::Text(_) | Cell::Missing)));
            cells.iter().zip(&mut grid.rows).for_each(|(cell, row)| row.push(shown(cell, column.digits)));
            if cells.iter().any(|cell| matches!(cell, Cell::Measured(_))) {
                grid.head.extend(["±".to_owned(), "min".to_owned()]);
                grid.left.extend([false, false]);
                for (cell, row) in cells.iter().zip(&mut grid.rows) {
                    let pair = match cell {
                        Cell::Measured(s) => [spread(s), format!("{:.1$}", s.min, column.digits)],
                        _ => Default::default(),
                    };
                    row.extend(pair);
                }
            }
        }
        grid
    }
}

fn spread(summary: &Summary) -> String {
    let percent = summary.spread() * 100.0;
    let digits = usize::from(percent < 9.95);
    format!("{percent:.digits$}%{}", if summary.on_core { "*" } else { "" })
}

fn shown(cell: &Cell, digits: usize) -> String {
    match cell {
        Cell::Missing => "–".to_owned(),
        Cell::Text(text) => text.clone(),
        Cell::Whole(number) => number.to_string(),
        Cell::Real(number) => format!("{number:.digits$}"),
        Cell::Measured(summary) => format!("{:.digits$}", summary.median),
    }
}

/// One table for a terminal, with its title.
pub(crate) fn terminal_table(table: &FigureTable) -> String {
    let mut out = format!("{}\n", table.title);
    let grid = Grid::new(table);
    let width = |i: usize| {
        let cells = grid.rows.iter().map(|row| row[i].chars().count());
        cells.chain([grid.head[i].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..grid.head.len()).map(width).collect();
    let keys = table.columns.iter().take_while(|column| column.key).count().saturating_sub(1);
    let mut above: Option<&Vec<String>> = None;
    let mut line = |cells: &[String]| {
        let padded = cells.iter().zip(&widths).zip(&grid.left).map(|((cell, &width), left)| {
            if *left { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        out.push_str(format!("  {}", padded.collect::<Vec<_>>().join("  ")).trim_end());
        out.push('\n');
    };
    line(&grid.head);
    for row in &grid.rows {
        let same = above.map_or(0, |above| {
            row.iter().zip(above).take(keys).take_while(|(cell, above)| cell == above).count()
        });
        let mut cells = row.clone();
        cells[..same].fill(String::new());
        line(&cells);
        above = Some(row);
    }
    out
}

//! A table as columns of text: at full width, or in blocks of columns that fit a terminal.

use crate::stats::Summary;
use crate::table::{Cell, FigureTable};
use crate::words::wrap;
use std::ops::Range;

/// A table as text: head and rows.
pub(crate) struct Grid {
    pub(crate) head: Vec<String>,
    /// Tells whether a column is text, and thus aligned to the left.
    pub(crate) left: Vec<bool>,
    pub(crate) rows: Vec<Vec<String>>,
    /// Columns of text that stay together: those of a column of the table.
    groups: Vec<Range<usize>>,
    /// Number of leftmost columns that identify a row.
    keys: usize,
}

impl Grid {
    /// The cells for people. Columns without any figure, and counts of what never happened, are left out; a measured
    /// column becomes three.
    pub(crate) fn new(table: &FigureTable) -> Grid {
        let rows = vec![Vec::new(); table.rows.len()];
        let mut grid = Grid { head: Vec::new(), left: Vec::new(), rows, groups: Vec::new(), keys: 0 };
        for column in &table.columns {
            let cells: Vec<&Cell> =
                table.rows.iter().map(|row| row.get(&column.name).unwrap_or(&Cell::Missing)).collect();
            if cells.iter().all(|cell| matches!(cell, Cell::Missing)) || table.is_quiet(column) {
                continue;
            }
            let start = grid.head.len();
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
            if column.key && grid.keys == grid.groups.len() {
                grid.keys += 1;
            }
            grid.groups.push(start..grid.head.len());
        }
        grid
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|row| row[column].chars().count());
        cells.chain([self.head[column].chars().count()]).max().unwrap_or(0)
    }

    /// The width of lines with these columns, each behind two spaces.
    fn line_width(&self, columns: &[usize]) -> usize {
        columns.iter().map(|column| 2 + self.width(*column)).sum()
    }

    /// The blocks of columns, one below the other: each has the keys, and as many other columns as fit.
    fn blocks(&self, keys: Range<usize>, width: usize) -> Vec<Vec<usize>> {
        let keys: Vec<usize> = self.groups[keys].iter().cloned().flatten().collect();
        let mut blocks = Vec::new();
        let mut block = keys.clone();
        for group in &self.groups[self.keys..] {
            let longer: Vec<usize> = block.iter().copied().chain(group.clone()).collect();
            if block.len() > keys.len() && self.line_width(&longer) > width {
                blocks
                    .push(std::mem::replace(&mut block, keys.iter().copied().chain(group.clone()).collect()));
            } else {
                block = longer;
            }
        }
        blocks.push(block);
        blocks
    }

    /// Lines of these columns. The first `keys` of them are blank where they repeat the row above, and rows with
    /// nothing in the others are left out. `heading` is a column that becomes a line of its own wherever it changes.
    fn lines(&self, columns: &[usize], keys: usize, heading: Option<usize>, out: &mut String) {
        let widths: Vec<usize> = columns.iter().map(|column| self.width(*column)).collect();
        let line = |cells: &[&str]| {
            let padded = cells.iter().zip(columns).zip(&widths).map(|((cell, column), &width)| {
                if self.left[*column] { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            });
            format!("  {}", padded.collect::<Vec<_>>().join("  ")).trim_end().to_owned() + "\n"
        };
        out.push_str(&line(&columns.iter().map(|column| self.head[*column].as_str()).collect::<Vec<_>>()));
        let mut above: Option<&Vec<String>> = None;
        let is_there =
            |row: &&Vec<String>| columns[keys..].iter().any(|column| !matches!(&row[*column][..], "" | "–"));
        for row in self.rows.iter().filter(is_there) {
            if let Some(heading) = heading
                && above.is_none_or(|above| above[heading] != row[heading])
            {
                out.push_str(&format!(" {}: {}\n", self.head[heading], row[heading]));
                above = None;
            }
            let is_same = |column: &&usize| above.is_some_and(|above| above[**column] == row[**column]);
            let same = columns.iter().take(keys.saturating_sub(1)).take_while(is_same).count();
            let cells = columns.iter().enumerate();
            let cells = cells.map(|(nth, column)| if nth < same { "" } else { row[*column].as_str() });
            out.push_str(&line(&cells.collect::<Vec<_>>()));
            above = Some(row);
        }
    }
}

fn spread(summary: &Summary) -> String {
    // A single value has no spread.
    if summary.slices < 2 {
        return format!("–{}", if summary.on_core { "*" } else { "" });
    }
    let percent = summary.spread() * 100.0;
    let digits = usize::from(percent < 9.95);
    let (on_core, far) =
        (if summary.on_core { "*" } else { "" }, if summary.is_far_from_min() { "!" } else { "" });
    format!("{percent:.digits$}%{on_core}{far}")
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

/// A table for people, with its title. If it is wider than `width`, its columns go into several blocks below one
/// another, each with the keys of the rows. Keys that would take half of the width give their first column to lines of
/// its own.
pub(crate) fn table_text(table: &FigureTable, width: Option<usize>) -> String {
    let mut out = wrap(&table.title, width) + "\n";
    let grid = Grid::new(table);
    let all: Vec<usize> = (0..grid.head.len()).collect();
    let Some(width) = width.filter(|width| grid.line_width(&all) > *width) else {
        grid.lines(&all, grid.keys, None, &mut out);
        return out;
    };
    let keys: Vec<usize> = grid.groups[..grid.keys].iter().cloned().flatten().collect();
    let is_wide = keys.len() > 1 && grid.line_width(&keys) > width / 2;
    let (first, heading) = if is_wide { (1, Some(keys[0])) } else { (0, None) };
    for (nth, block) in grid.blocks(first..grid.keys, width).iter().enumerate() {
        if nth > 0 {
            out.push('\n');
        }
        grid.lines(block, grid.keys - first, heading, &mut out);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{figure, key};

    fn table() -> FigureTable {
        let columns = [
            key("hash", "hash"),
            key("phase", "phase"),
            figure("time", "median ms", 1),
            figure("share", "share", 1),
            figure("none", "never", 0),
            figure("megabits", "Mb/s", 0),
        ];
        let mut table = FigureTable::new("t", "A title of some words", columns);
        for (hash, phase, time) in
            [("blake3", "encode", 2.0), ("blake3", "tree", 1.0), ("sha256", "encode", 4.0)]
        {
            let time = Summary::of(vec![time; 3], 0).expect("values");
            table.row([
                ("hash", hash.into()),
                ("phase", phase.into()),
                ("share", 0.5.into()),
                ("megabits", (time.median * 100.0).into()),
                ("time", time.into()),
            ]);
        }
        table
    }

    #[test]
    fn a_table_is_as_wide_as_it_takes_where_nobody_says_how_wide() {
        let expected = "\
A title of some words
  hash    phase   median ms     ±  min  share  Mb/s
  blake3  encode        2.0  0.0%  2.0    0.5   200
          tree          1.0  0.0%  1.0    0.5   100
  sha256  encode        4.0  0.0%  4.0    0.5   400
";
        assert_eq!(table_text(&table(), None), expected);
        assert_eq!(table_text(&table(), Some(52)), expected);
    }

    #[test]
    fn columns_that_do_not_fit_go_below_with_their_keys() {
        let expected = "\
A title of some words
  hash    phase   median ms     ±  min
  blake3  encode        2.0  0.0%  2.0
          tree          1.0  0.0%  1.0
  sha256  encode        4.0  0.0%  4.0

  hash    phase   share  Mb/s
  blake3  encode    0.5   200
          tree      0.5   100
  sha256  encode    0.5   400
";
        assert_eq!(table_text(&table(), Some(44)), expected);
    }

    #[test]
    fn rows_without_a_figure_of_a_block_are_left_out_of_it() {
        let mut table = table();
        table.row([("hash", "sha256".into()), ("phase", "set-up".into()), ("megabits", 7.0.into())]);
        let text = table_text(&table, Some(44));
        assert_eq!(text.matches("set-up").count(), 1, "{text}");
        assert_eq!(table_text(&table, None).matches("set-up").count(), 1);
    }

    #[test]
    fn wide_keys_become_lines_of_their_own() {
        let expected = "\
A title of some more words
  than fit
  phase   median ms     ±  min
 hash: blake3
  encode        2.0  0.0%  2.0
  tree          1.0  0.0%  1.0
 hash: sha256
  encode        4.0  0.0%  4.0

  phase   share  Mb/s
 hash: blake3
  encode    0.5   200
  tree      0.5   100
 hash: sha256
  encode    0.5   400
";
        let title = "A title of some more words than fit".to_owned();
        assert_eq!(table_text(&FigureTable { title, ..table() }, Some(30)), expected);
    }

    #[test]
    fn a_single_value_has_no_spread() {
        let of = |values: Vec<f64>| spread(&Summary::of(values, 0).expect("values"));
        assert_eq!((of(vec![2.0]), of(vec![2.0; 2])), ("–".to_owned(), "0.0%".to_owned()));
    }

    #[test]
    fn counts_of_what_never_happened_are_left_out() {
        let columns = || {
            [key("phase", "phase"), figure("lost", "lost", 0), figure("page_faults_per_call", "faults", 2)]
        };
        let mut table = FigureTable::new("t", "Counts", columns());
        table.row([("phase", "encode".into()), ("lost", 0.into()), ("page_faults_per_call", 0.0.into())]);
        assert_eq!(table_text(&table, None), "Counts\n  phase   lost\n  encode     0\n");
        table.row([("phase", "decode".into()), ("lost", 0.into()), ("page_faults_per_call", 1.0.into())]);
        assert!(table_text(&table, None).contains("faults"));
    }

    #[test]
    fn a_median_far_from_the_shortest_time_is_marked() {
        let far = Summary::of(vec![1.0, 18.0, 18.0, 18.0, 18.0], 0).expect("values");
        assert_eq!(spread(&far), "0.0%!");
        let on_core = Summary { on_core: true, ..Summary::of(vec![2.0; 3], 0).expect("values") };
        assert_eq!(spread(&on_core), "0.0%*");
    }
}

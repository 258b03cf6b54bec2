//! The result of a machine as a row of the table in docs/boards.md.

use crate::options::Preset;
use crate::report::BenchReport;
use crate::table::{Cell, FigureTable};
use crate::words::{count, scaled};
use std::collections::BTreeMap;

const HEAD: &str = "\
| machine | kernel | encodes, BLAKE3 | SHA-256 | decodes, BLAKE3 | SHA-256 | encodes on all CPUs | fec, date |
|---|---|---:|---:|---:|---:|---:|---|";

type Row = BTreeMap<String, Cell>;

impl BenchReport {
    /// A table of one row, with its head: what one core encodes and decodes of the reference workload, and all of them.
    /// `None` for other presets, and where encoding was not measured.
    pub fn board(&self) -> Option<String> {
        if self.preset != Preset::Reference.name() {
            return None;
        }
        let machine = &self.machine;
        let clock = machine.clocks.core_mhz.map(|mhz| format!(", {mhz:.0} MHz")).unwrap_or_default();
        let emulated = machine.emulated.as_ref().map(|_| ", EMULATED").unwrap_or_default();
        let disturbed = if self.disturbed { ", disturbed" } else { "" };
        let rate = |table: &str, hash: &str, is_all: bool| {
            let rates = totals(&self.tables, table, hash).filter(|(threads, _)| is_all || *threads == 1);
            rates.max_by_key(|(threads, _)| *threads).map(|(_, rate)| rate)
        };
        rate("encode", "blake3", true).or(rate("encode", "sha256", true))?;
        let shown = |rate: Option<f64>| rate.map_or("–".to_owned(), |rate| format!("{}b/s", scaled(rate)));
        let row = [
            format!(
                "{}, {}{clock}{emulated}{disturbed}",
                machine.cpu,
                count(machine.cpus as u64, "CPU", "CPUs")
            ),
            self.backend.clone(),
            shown(rate("encode", "blake3", false)),
            shown(rate("encode", "sha256", false)),
            shown(rate("decode", "blake3", false)),
            shown(rate("decode", "sha256", false)),
            shown(rate("encode", "blake3", true)),
            format!(
                "{} ({}), {}",
                machine.version,
                machine.revision,
                &machine.date[..machine.date.len().min(10)]
            ),
        ];
        Some(format!("{HEAD}\n| {} |", row.map(|cell| cell.replace('|', "/")).join(" | ")))
    }
}

/// The threads and the Mb/s of whole rounds with a hash.
fn totals<'a>(
    tables: &'a [FigureTable],
    table: &str,
    hash: &'a str,
) -> impl Iterator<Item = (u64, f64)> + 'a {
    let rows = tables.iter().find(|of| of.name == table).map_or(&[][..], |table| &table.rows);
    let is = |row: &Row, name: &str, text: &str| row.get(name) == Some(&Cell::Text(text.to_owned()));
    let whole = rows.iter().filter(move |row| is(row, "phase", "total") && is(row, "hash", hash));
    whole.filter_map(|row| match (row.get("threads")?, row.get("megabits_per_second")?) {
        (Cell::Whole(threads), Cell::Real(rate)) => Some((*threads, *rate)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use crate::options::{Format, Options, Preset};
    use crate::progress::Unseen;
    use fec_core::digest::HashKind;

    #[test]
    fn a_board_is_a_row_with_as_many_cells_as_its_head() {
        let options = Options {
            hash: Some(HashKind::Blake3),
            quick: true,
            rounds: Some(1),
            ..Options::new(Preset::Reference)
        };
        let report = crate::run(&options, &Unseen).expect("a report");
        let board = report.board().expect("a row");
        let cells: Vec<usize> = board.lines().map(|line| line.matches('|').count()).collect();
        assert_eq!(cells, [9, 9, 9], "{board}");
        let row = board.lines().last().expect("a row");
        assert!(
            row.starts_with(&format!("| {}, ", report.machine.cpu)) && row.contains("b/s | – | "),
            "{row}"
        );
        assert_eq!(report.render(Format::Board).expect("text"), board);
        assert_eq!(crate::BenchReport { preset: "roof".to_owned(), ..report }.board(), None);
    }
}

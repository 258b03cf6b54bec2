//! Checks whether this build is right on this machine: numbers of checked values, and of right ones.
//!
//! No expected byte comes from the code under test. Products follow from their definition, and shards from another
//! codec's digests; hashes, sums and ciphers come from publications and another implementation, and files from others.
//!
//! `outside.bin` has digests of 10,000 sets that `reed-solomon-erasure` coded; a unit test makes them anew.

mod age_files;
mod ciphers;
mod outside;
mod products;
mod seal;
mod trips;
mod vectors;

use crate::error::{Error, Result};
use crate::machine::Machine;
use crate::options::{Format, Options, Preset};
use crate::report::SCHEMA_VERSION;
use crate::words::wrap;
use fec_base::program::interrupt::interrupted;
use fec_core::gf256::kernel::Backend;
use serde::Serialize;

/// The subject of a check, the number of its cases, and how many of them are right.
type Check = (&'static str, u64, fn(Backend) -> u64);

/// The result of a kind of check.
#[derive(Debug, Serialize)]
pub struct Gate {
    /// The subject of the check.
    pub name: String,
    /// Number of right cases.
    pub right: u64,
    /// Number of all cases.
    pub of: u64,
}

/// The results of all gates.
#[derive(Debug, Serialize)]
pub struct GateReport {
    schema_version: u32,
    command: &'static str,
    /// All gates that were reached.
    pub gates: Vec<Gate>,
    /// True if all of them are open.
    pub passed: bool,
    /// True if a signal came before the last one.
    pub interrupted: bool,
    /// The machine and the build.
    pub machine: Machine,
}

/// Runs the gates: for [`Preset::Seal`] those of sealing, otherwise those of the codec, on all backends of this machine
/// or on the requested one.
pub fn run(options: &Options) -> GateReport {
    let gates = match options.preset {
        Preset::Seal => seal::right().into_iter().map(|(name, right, of)| Gate { name, right, of }).collect(),
        _ => of_codec(options),
    };
    GateReport {
        schema_version: SCHEMA_VERSION,
        command: "bench --gates",
        passed: gates.iter().all(|gate| gate.right == gate.of),
        gates,
        interrupted: interrupted(),
        machine: Machine::new(),
    }
}

fn of_codec(options: &Options) -> Vec<Gate> {
    let mut gates = Vec::new();
    for backend in options.backends() {
        let name = backend.name();
        let checks: [Check; 3] = [
            ("products of two bytes", products::ALL, products::right),
            ("encode, erase, decode, re-encode", trips::ALL, trips::right),
            ("random sets, as reed-solomon-erasure 6.0 codes them", outside::ALL, outside::right),
        ];
        for (what, of, check) in checks {
            if !interrupted() {
                gates.push(Gate { name: format!("{what}, {name}"), right: check(backend), of });
            }
        }
    }
    for (what, right, of) in vectors::right() {
        gates.push(Gate { name: what.to_owned(), right, of });
    }
    gates
}

impl GateReport {
    /// The report in one of the formats.
    ///
    /// # Errors
    /// [`Report`](Error::Report), which no report of a run gives.
    pub fn render(&self, format: Format) -> Result<String> {
        let rows =
            |line: &dyn Fn(&Gate) -> String| self.gates.iter().map(line).collect::<Vec<_>>().join("\n");
        Ok(match format {
            Format::Json => serde_json::to_string(self).map_err(Error::Report)?,
            Format::Csv => {
                format!(
                    "gate,right,of\r\n{}",
                    rows(&|gate| format!("\"{}\",{},{}\r", gate.name, gate.right, gate.of))
                )
            }
            Format::Markdown => format!(
                "| gate | right | of |\n|---|---:|---:|\n{}",
                rows(&|gate| format!("| {} | {} | {} |", gate.name, gate.right, gate.of))
            ),
            Format::Table | Format::Board => self.text(None),
        })
    }

    /// For people: a line for each gate, or more if the line would be longer than `width` columns.
    pub fn text(&self, width: Option<usize>) -> String {
        let longest = self.gates.iter().map(|gate| gate.name.len()).max().unwrap_or(0);
        // Behind the name: two spaces, two counts with ` of `, and the words for a shut gate.
        let room = width.map_or(longest, |width| longest.min(width.saturating_sub(26)));
        let mut lines = Vec::new();
        for gate in &self.gates {
            let name = wrap(&gate.name, Some(room));
            let (above, last) =
                name.rsplit_once('\n').map_or((None, &name[..]), |(above, last)| (Some(above), last));
            lines.extend(above.map(str::to_owned));
            let verdict = if gate.right == gate.of { "" } else { "  FAILED" };
            lines.push(format!("{last:room$}  {:>6} of {:>6}{verdict}", gate.right, gate.of));
        }
        lines.push(if self.passed { "all gates passed" } else { "a gate FAILED" }.to_owned());
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_gates_fit_a_terminal() {
        let name = "random sets, as reed-solomon-erasure 6.0 codes them, avx512-gfni".to_owned();
        let gates = vec![
            Gate { name, right: 9_999, of: 10_000 },
            Gate { name: "BLAKE3".to_owned(), right: 35, of: 35 },
        ];
        let report = GateReport {
            schema_version: SCHEMA_VERSION,
            command: "bench --gates",
            gates,
            passed: false,
            interrupted: false,
            machine: Machine::new(),
        };
        assert_eq!(report.text(None).lines().count(), 3);
        let narrow = report.text(Some(80));
        assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
        assert!(narrow.contains("9999 of  10000  FAILED") && narrow.contains("35 of     35\n"), "{narrow}");
    }
}

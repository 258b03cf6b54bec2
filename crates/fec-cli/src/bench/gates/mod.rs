//! `fec bench --gates`: is this binary right, on this machine? Counts, and exit code 5 if any is short.
//!
//! No expected byte comes from the code under test: products from their definition, shards from another codec's
//! digests, hashes and sums from their publications, files from the independent implementation's vectors.

mod outside;
mod products;
mod trips;
mod vectors;

use crate::args::Format;
use crate::bench::machine::Machine;
use crate::failure::{Exit, Failure, Result};
use crate::settings::{SCHEMA_VERSION, Settings, print_line};
use crate::sys::cleanup::interrupted;
use fec_core::gf256::kernel::Backend;
use serde::Serialize;

/// What is checked, how many there are, and how many are right.
type Check = (&'static str, u64, fn(Backend) -> u64);

/// How many of a kind were right.
#[derive(Debug, Serialize)]
struct Gate {
    name: String,
    right: u64,
    of: u64,
}

#[derive(Debug, Serialize)]
struct Report {
    schema_version: u32,
    command: &'static str,
    gates: Vec<Gate>,
    passed: bool,
    interrupted: bool,
    machine: Machine,
}

/// Runs the gates on all backends of this machine, or on the one that was asked for.
pub(super) fn run(settings: &Settings, format: Format) -> Result<Exit> {
    let backends: Vec<Backend> = match settings.backend_asked {
        true => vec![settings.backend],
        false => Backend::available().collect(),
    };
    let mut gates = Vec::new();
    for backend in backends {
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
    let passed = gates.iter().all(|gate| gate.right == gate.of);
    let interrupted = interrupted();
    let report = Report {
        schema_version: SCHEMA_VERSION,
        command: "bench --gates",
        gates,
        passed,
        interrupted,
        machine: Machine::new(),
    };
    print_line(&report.print(format)?)?;
    Ok(match (passed, interrupted) {
        (_, true) => Exit::Interrupted,
        (true, _) => Exit::Done,
        (false, _) => Exit::Untrue,
    })
}

impl Report {
    fn print(&self, format: Format) -> Result<String> {
        let rows =
            |line: &dyn Fn(&Gate) -> String| self.gates.iter().map(line).collect::<Vec<_>>().join("\n");
        Ok(match format {
            Format::Json => serde_json::to_string(self)
                .map_err(|e| Failure::new(Exit::Io, format!("write the report: {e}")))?,
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
            Format::Table => {
                let width = self.gates.iter().map(|gate| gate.name.len()).max().unwrap_or(0);
                let gates = rows(&|gate| {
                    let verdict = if gate.right == gate.of { "" } else { "  FAILED" };
                    format!("{:width$}  {:>6} of {:>6}{verdict}", gate.name, gate.right, gate.of)
                });
                format!("{gates}\n{}", if self.passed { "all gates passed" } else { "a gate FAILED" })
            }
        })
    }
}

/// Seeded numbers (the generator of the golden vectors: Knuth's MMIX constants, the upper half of the state).
#[derive(Clone, Debug)]
pub(super) struct Random(pub(super) u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }

    /// A number below `limit`.
    fn below(&mut self, limit: usize) -> usize {
        ((u64::from(self.next()) * limit as u64) >> 32) as usize
    }

    /// `count` different numbers below `limit`, ascending.
    fn some(&mut self, count: usize, limit: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..limit).collect();
        for i in 0..count {
            let other = i + self.below(limit - i);
            all.swap(i, other);
        }
        all.truncate(count);
        all.sort_unstable();
        all
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        bytes.iter_mut().for_each(|byte| *byte = (self.next() >> 24) as u8);
    }
}

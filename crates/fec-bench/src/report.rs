//! The report of a run: the one struct that formats print, and that is saved and compared.

use crate::error::{Error, Result};
use crate::interference::Interference;
use crate::machine::Machine;
use crate::table::FigureTable;
use fec_base::error::Action;
use fec_base::io::output::{Policy, write_text};
use fec_base::io::small;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The version of the fields of reports.
pub(crate) const SCHEMA_VERSION: u32 = 1;
/// The most bytes of a report in a file.
const LONGEST: usize = 64 << 20;

/// The report of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BenchReport {
    /// The version of these fields; it changes when a field changes its meaning.
    pub schema_version: u32,
    /// `bench`.
    pub command: String,
    /// The name of the preset.
    pub preset: String,
    /// The result in one sentence; empty in reports of older versions.
    #[serde(default)]
    pub headline: String,
    /// True if other work disturbed the run, so that the machine may do better.
    #[serde(default)]
    pub disturbed: bool,
    /// The command's arguments, for another run.
    pub arguments: Vec<String>,
    /// The kernel that ran.
    pub backend: String,
    /// The processor that the kernel is tuned for, and changed settings.
    pub tuning: String,
    /// True if an earlier run kept these settings, in place of the usual ones.
    #[serde(default)]
    pub tuning_is_kept: bool,
    /// Faster settings, in the form that the library reads, if they were looked for and found.
    #[serde(default)]
    pub better: Option<String>,
    /// The threads that were allowed.
    pub threads: usize,
    /// The source of figures of caches and cycles.
    pub counters: String,
    /// Each counter that was asked for, with `ok` or the reason why it is missing.
    pub counter_status: BTreeMap<String, String>,
    /// The caches that were modelled.
    pub model: String,
    /// The machine and the tools of the measurement.
    pub machine: Machine,
    /// Seconds that the run took.
    pub seconds: f64,
    /// True if a signal ended the run before all was measured.
    pub interrupted: bool,
    /// True if the run ended before all was measured, because its time was up.
    pub out_of_time: bool,
    /// Other work that disturbed the run.
    pub interference: Interference,
    /// The measured figures.
    pub tables: Vec<FigureTable>,
    /// Further remarks.
    pub notes: Vec<String>,
    /// The comparison with a saved report, if there was one.
    pub comparison: Option<Comparison>,
}

/// The comparison with a saved result.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Comparison {
    /// The file, and the revision and date of its run.
    pub with: String,
    /// The ratio of each figure.
    pub table: FigureTable,
    /// Figures that became faster, beyond the noise.
    pub faster: u64,
    /// Figures that became slower, beyond the noise.
    pub slower: u64,
    /// Figures that are the same within the noise.
    pub same: u64,
    /// Figures that only one of the two runs has.
    pub unmatched: u64,
    /// The median of all ratios; `None` without a common figure.
    pub median_ratio: Option<f64>,
    /// The largest slowdown of any figure beyond the noise; 0.05 is five per cent.
    pub worst: f64,
    /// Differences between the machines or the kernels of the two runs.
    pub differences: Vec<String>,
    /// The share by which a figure may have become slower.
    pub gate: Option<f64>,
    /// The verdict of the gate, if there is one.
    #[serde(default)]
    pub verdict: Option<GateVerdict>,
    /// The reasons why the verdict is inconclusive.
    #[serde(default)]
    pub reasons: Vec<String>,
}

/// The verdict of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateVerdict {
    /// No figure became slower by more than the gate allows.
    Passed,
    /// A figure became slower by more than the gate allows.
    Failed,
    /// The machine was too busy, or the figures were too spread, to tell.
    Inconclusive,
}

impl BenchReport {
    /// Reads a report that [`save`](Self::save) wrote.
    ///
    /// # Errors
    /// Those of the file; [`NotAReport`](Error::NotAReport).
    pub fn read(path: &Path) -> Result<BenchReport> {
        let text = small::read_text(path, LONGEST).map_err(|e| fecfile::Error::io(Action::Read, path, e))?;
        serde_json::from_str(&text).map_err(|cause| Error::NotAReport { path: path.into(), cause })
    }

    /// Writes the report to a file, as JSON.
    ///
    /// # Errors
    /// Those of the file.
    pub fn save(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string(self).map_err(Error::Report)?;
        let policy = Policy::new().with_force(true).with_sync(false);
        Ok(write_text(path, &(text + "\n"), policy)?)
    }
}

impl Comparison {
    /// Tells whether the gate is shut: a figure became slower by more than the gate allows, and nothing else explains
    /// that.
    pub fn fails(&self) -> bool {
        self.verdict == Some(GateVerdict::Failed)
    }

    /// The comparison in lines.
    pub(crate) fn lines(&self) -> Vec<String> {
        let ratio =
            self.median_ratio.map_or("no figure in common".to_owned(), |r| format!("median ratio {r:.3}"));
        let mut lines = vec![format!(
            "compared with {}: {ratio}, {} slower, {} faster, {} the same within the noise, {} without a partner",
            self.with, self.slower, self.faster, self.same, self.unmatched
        )];
        lines.extend(self.differences.iter().map(|difference| format!("differs: {difference}")));
        if let Some((gate, verdict)) = self.gate.zip(self.verdict) {
            let what = format!("gate {:.1} %", gate * 100.0);
            let worst = match self.worst {
                0.0 => "nothing slower beyond the noise".to_owned(),
                worst => format!("the worst slower by {:.1} %", worst * 100.0),
            };
            lines.push(match verdict {
                GateVerdict::Passed => format!("{what}: passed, {worst}"),
                GateVerdict::Failed => format!("{what}: FAILED, {worst}"),
                GateVerdict::Inconclusive => format!(
                    "{what}: inconclusive, {worst}: {}; measure again on a quiet machine",
                    self.reasons.join("; ")
                ),
            });
        }
        lines
    }
}

//! What is told of files and their sidecar.

use crate::settings::SCHEMA_VERSION;
use fecfile::names::{hex, show, show_bytes};
use fecfile::ranges::RangeList;
use fecfile::sidecar::Sidecar;
use fecfile::sidecar::examine::{Examined, Scope, State};
use serde::Serialize;
use std::time::Instant;

/// Entries that are listed before the rest is only counted.
const LINES: usize = 50;
/// Ranges of a file that are listed as text.
const RANGES: usize = 4;

/// What `verify` says of a sidecar, as text and JSON.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    schema_version: u32,
    command: &'static str,
    form: &'static str,
    /// What was looked at.
    scope: &'static str,
    sidecar: String,
    root: String,
    generation: u64,
    intact: bool,
    mendable: bool,
    entries: u64,
    files: Vec<Entry>,
    /// Recovery shards.
    recovery: u64,
    recovery_damaged: u64,
    sidecar_damage: Vec<String>,
    worst_set: WorstSet,
    /// Bytes of files that cannot be mended.
    lost_bytes: u64,
    seconds: f64,
}

/// The set that has the fewest recovery shards to spare.
#[derive(Debug, Serialize)]
struct WorstSet {
    used: u64,
    of: u64,
    /// Bytes that could be lost more in one piece.
    one_piece_bytes: u64,
}

/// An entry that is not what it was.
#[derive(Debug, Serialize)]
struct Entry {
    path: String,
    state: &'static str,
    damaged_bytes: u64,
    damage: Vec<(u64, u64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<String>,
    /// Where it is, if it was moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    moved_to: Option<String>,
}

/// The word for a state.
pub(super) fn word(state: State) -> &'static str {
    match state {
        State::Intact => "intact",
        State::Rotten => "rotten",
        State::Edited => "edited",
        State::Shifted => "shifted",
        State::Moved => "moved",
        State::Missing => "missing",
        State::Unreadable => "unreadable",
    }
}

impl Report {
    pub(super) fn new(sidecar: &Sidecar, examined: &Examined, scope: Scope, started: Instant) -> Report {
        let entry = |report: &fecfile::sidecar::examine::EntryReport| Entry {
            path: show_bytes(&sidecar.catalog().entries[report.entry].path),
            state: word(report.state),
            damaged_bytes: report.damage.bytes(),
            damage: report.damage.list().iter().map(|range| (range.start, range.end)).collect(),
            cause: report.cause.map(|cause| cause.to_string()),
            moved_to: report.moved_to.as_ref().map(|path| show_bytes(path)),
        };
        Report {
            schema_version: SCHEMA_VERSION,
            command: "verify",
            form: "sidecar",
            scope: match scope {
                Scope::All => "all",
                Scope::Quick => "quick",
                Scope::Sidecar => "sidecar",
            },
            sidecar: show(sidecar.path()),
            root: hex(&sidecar.root()),
            generation: sidecar.generation(),
            intact: examined.is_intact(),
            mendable: examined.is_mendable(),
            entries: sidecar.catalog().entries.len() as u64,
            files: examined.entries.iter().map(entry).collect(),
            recovery: examined.recovery,
            recovery_damaged: examined.recovery_damaged,
            sidecar_damage: examined.sidecar_damage.clone(),
            worst_set: WorstSet {
                used: examined.margin.used,
                of: examined.margin.of,
                one_piece_bytes: examined.margin.one_piece,
            },
            lost_bytes: examined.margin.lost_bytes,
            seconds: started.elapsed().as_secs_f64(),
        }
    }

    pub(super) fn describe(&self, examined: &Examined) -> String {
        let mut out = String::new();
        for (entry, report) in self.files.iter().zip(&examined.entries).take(LINES) {
            let place = match (&entry.cause, &entry.moved_to) {
                (Some(cause), _) => format!(": {cause}"),
                (None, Some(to)) => format!(": it is {to}"),
                (None, None) => ranges(&report.damage, entry.state),
            };
            out.push_str(&format!("  {:10} {}{place}\n", entry.state, entry.path));
        }
        if self.files.len() > LINES {
            out.push_str(&format!("  and {} more\n", self.files.len() - LINES));
        }
        let all = self.entries;
        out.push_str(&match self.files.len() {
            0 if self.scope == "sidecar" => String::new(),
            0 if self.scope == "quick" => {
                format!(
                    "all {all} entries are there, with their sizes and times; their contents were not read\n"
                )
            }
            0 => format!("all {all} entries are intact\n"),
            _ => {
                let states = [
                    State::Rotten,
                    State::Edited,
                    State::Shifted,
                    State::Moved,
                    State::Missing,
                    State::Unreadable,
                ];
                let counts = states.map(|state| (examined.count(state), word(state)));
                let counts: Vec<String> = counts
                    .iter()
                    .filter(|(count, _)| *count > 0)
                    .map(|(n, word)| format!("{n} {word}"))
                    .collect();
                format!("of {all} entries: {}\n", counts.join(", "))
            }
        });
        match (self.recovery_damaged, self.recovery) {
            _ if self.scope == "quick" => {}
            (0, all) => out.push_str(&format!("the sidecar's {all} recovery blocks are intact\n")),
            (damaged, all) => {
                out.push_str(&format!("of the sidecar's {all} recovery blocks {damaged} are damaged\n"))
            }
        }
        self.sidecar_damage.iter().for_each(|damage| out.push_str(&format!("the sidecar: {damage}\n")));
        if self.mendable {
            if !self.intact {
                out.push_str("all of it can be mended: fec repair\n");
            }
            out.push_str(&format!(
                "worst set: {} of {} used; {} bytes more could be lost in one piece\n",
                self.worst_set.used, self.worst_set.of, self.worst_set.one_piece_bytes
            ));
        } else {
            out.push_str(&format!("{} bytes of the files cannot be mended\n", self.lost_bytes));
        }
        out.push_str(&format!("root {}\n", self.root));
        out
    }
}

/// What is damaged of a file, in words.
fn ranges(damage: &RangeList, state: &str) -> String {
    let list = damage.list();
    if list.is_empty() || state == "missing" {
        return String::new();
    }
    let first: Vec<String> =
        list.iter().take(RANGES).map(|range| format!("{}..{}", range.start, range.end)).collect();
    match list.len().saturating_sub(RANGES) {
        0 => format!(": bytes {}", first.join(", ")),
        more => {
            format!(": bytes {} and {more} more places, {} bytes in all", first.join(", "), damage.bytes())
        }
    }
}

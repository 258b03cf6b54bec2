//! The generations of a sidecar, as text and JSON.

use crate::say::details::count;
use fec_base::names::{bytes, hex, show};
use fec_sidecar::{Recorded, Sidecar};
use serde::Serialize;
use std::time::{Duration, SystemTime};

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    sidecar: String,
    generations: Vec<Generation>,
}

/// A generation that can be restored by its root.
#[derive(Debug, Serialize)]
struct Generation {
    generation: u64,
    root: String,
    files: u64,
    bytes: u64,
    /// The latest time of modification of a file, in UTC. `None` without files, and for times that no calendar has.
    newest: Option<String>,
}

impl Report {
    pub(crate) fn new(sidecar: &Sidecar, recorded: Vec<Recorded>) -> Report {
        let generation = |of: Recorded| Generation {
            generation: of.generation,
            root: hex(&of.root),
            files: of.files,
            bytes: of.len,
            newest: of.newest.and_then(date),
        };
        Report { sidecar: show(sidecar.path()), generations: recorded.into_iter().map(generation).collect() }
    }

    /// A line for each, the newest first.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        self.generations.iter().map(|of| {
            let files = count(of.files, "file", "files");
            let newest =
                of.newest.as_ref().map_or_else(String::new, |time| format!(", the newest of {time}"));
            format!("{}  generation {}: {files}, {}{newest}", of.root, of.generation, bytes(of.bytes))
        })
    }
}

/// A time in seconds since 1970, in UTC. The years are those that four digits name.
fn date(seconds: i64) -> Option<String> {
    const YEAR_10000: u64 = 253_402_300_800;
    let seconds = u64::try_from(seconds).ok().filter(|seconds| *seconds < YEAR_10000)?;
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    Some(humantime::format_rfc3339_seconds(time).to_string())
}

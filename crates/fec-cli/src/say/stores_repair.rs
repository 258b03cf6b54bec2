//! The report of `repair --from`, as text and JSON.

use super::stores::{DENIED, Lacking, how_looked, list};
use fec_base::names::{bytes, counted, hex};
use fec_stores::mend::{StoredRepair, StoredRepaired};
use fec_stores::places::Places;
use fec_stores::stored::Stored;
use serde::Serialize;
use std::fmt::Write;
use std::time::Instant;

/// A shard that was made anew.
#[derive(Debug, Serialize)]
struct Made {
    segment: u32,
    shard: u32,
    place: String,
}

/// The outcome of `repair --from`.
#[derive(Debug, Serialize)]
pub(crate) struct RepairReport {
    root: String,
    /// True if the work was done; otherwise it was only reported.
    written: bool,
    /// True if every byte was read; otherwise only sizes and first bytes were.
    deep: bool,
    made: Vec<Made>,
    /// Damaged copies of shards that are intact elsewhere.
    removed: Vec<Made>,
    manifests: Vec<String>,
    /// Segments that lack something but have enough shards, with their margins.
    postponed: Vec<(u32, i64)>,
    missing: Vec<Lacking>,
    trouble: Vec<String>,
    #[serde(skip)]
    is_denied: bool,
    moved_bytes: u64,
    seconds: f64,
}

impl RepairReport {
    pub(crate) fn new(
        stored: &Stored<'_>,
        repaired: &StoredRepaired,
        places: &Places,
        how: &StoredRepair,
        started: Instant,
    ) -> RepairReport {
        let name = |place: usize| places.get(place).target.name();
        let made = |(segment, shard, place): &(u32, u32, usize)| Made {
            segment: *segment,
            shard: *shard,
            place: name(*place),
        };
        RepairReport {
            root: hex(&stored.root()),
            written: !how.dry_run,
            deep: how.deep,
            made: repaired.made.iter().map(made).collect(),
            removed: repaired.removed.iter().map(made).collect(),
            manifests: repaired.manifests.iter().map(|place| name(*place)).collect(),
            postponed: repaired.postponed.clone(),
            missing: repaired.missing.iter().map(|missing| Lacking::new(missing, places)).collect(),
            trouble: repaired.trouble.clone(),
            is_denied: repaired.is_denied,
            moved_bytes: repaired.moved_bytes,
            seconds: started.elapsed().as_secs_f64(),
        }
    }

    /// Tells whether anything was made anew or removed, or would be.
    pub(crate) fn has_work(&self) -> bool {
        !(self.made.is_empty() && self.removed.is_empty() && self.manifests.is_empty())
    }

    /// The reasons why something is left to do, in few lines: failed writes by place, and the rest.
    pub(crate) fn lines(&self, missing: Vec<String>) -> Vec<String> {
        let mut lines: Vec<String> =
            missing.into_iter().map(|line| format!("did not arrive at {line}")).collect();
        let would = self.made.len() + self.removed.len() + self.manifests.len();
        if !self.written && would > 0 {
            lines.push(format!("{} would be made anew or removed", counted(would, "object")));
        }
        if !self.postponed.is_empty() {
            let segments = counted(self.postponed.len(), "segment");
            lines.push(format!("{segments} with shards missing, and enough for now: --now makes them anew"));
        }
        lines.extend(self.trouble.iter().cloned());
        lines
    }

    pub(crate) fn describe(&self) -> String {
        let mut out = String::new();
        let does = if self.written { "made anew" } else { "would be made anew" };
        if !self.made.is_empty() {
            let _ = writeln!(out, "{} {does}:", counted(self.made.len(), "shard"));
            let line = |made: &Made| {
                format!("  shard {} of segment {} -> {}\n", made.shard, made.segment, made.place)
            };
            list(self.made.iter().map(line), &mut out);
        }
        if !self.removed.is_empty() {
            let does = if self.written { "removed" } else { "would be removed" };
            let _ = writeln!(
                out,
                "{} {does} that {} intact elsewhere",
                counted(self.removed.len(), "damaged object"),
                if self.removed.len() == 1 { "is" } else { "are" }
            );
        }
        if !self.manifests.is_empty() {
            let does = if self.written { "sent" } else { "would be sent" };
            let _ = writeln!(out, "the manifest {does} to {}", self.manifests.join(", "));
        }
        if !self.postponed.is_empty() {
            let margin = self.postponed.iter().map(|(_, margin)| *margin).min().unwrap_or(0);
            let _ = writeln!(
                out,
                "of {} shards are missing, and enough are there for now ({margin} or more may still be lost): --now makes them anew",
                counted(self.postponed.len(), "segment")
            );
        }
        if !self.missing.is_empty() {
            let _ = writeln!(out, "{} could not be sent:", counted(self.missing.len(), "object"));
            list(self.missing.iter().map(Lacking::describe), &mut out);
        }
        if !self.trouble.is_empty() {
            out.push_str("trouble on the way:\n");
            list(self.trouble.iter().map(|line| format!("  {line}\n")), &mut out);
            out.push_str(if self.is_denied { DENIED } else { "" });
        }
        if out.is_empty() {
            out.push_str(match self.deep {
                true => "nothing is missing\n",
                false => "nothing is missing, as far as sizes and first bytes tell\n",
            });
        }
        let how = how_looked(self.deep);
        let _ = write!(out, "{how}; {} moved, {:.2} s", bytes(self.moved_bytes), self.seconds);
        out
    }
}

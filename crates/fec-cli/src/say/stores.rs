//! Reports of the commands on stores, as text and JSON.

use crate::run::target::{Target, input_name, output_name};
use crate::say::failure::Exit;
use crate::say::state::Margin;
use crate::say::table::Row;
use crate::settings::Settings;
use fec_base::names::{bytes, counted, hex, show};
use fec_stores::places::Places;
use fec_stores::send::{Missing, Sent};
use fec_stores::stored::{Stored, StoredRestored};
use fec_stores::verify::StoredVerified;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

/// Advice if a place denies access.
pub(crate) const DENIED: &str =
    "what is not allowed may be intact: look as a user, or with credentials, that may\n";

/// The way that objects were looked at.
pub(crate) fn how_looked(deep: bool) -> &'static str {
    match deep {
        true => "every byte checked",
        false => "sizes and first bytes checked; --deep checks every byte",
    }
}

/// Most lines of a list. Further lines are only counted.
pub(crate) const LINES: usize = 20;

/// An object that is not where it belongs.
#[derive(Debug, Serialize)]
pub(crate) struct Lacking {
    /// `None` for the manifest.
    segment: Option<u32>,
    shard: Option<u32>,
    place: String,
    why: String,
}

impl Lacking {
    pub(crate) fn new(missing: &Missing, places: &Places) -> Lacking {
        Lacking {
            segment: missing.shard.map(|(segment, _)| segment),
            shard: missing.shard.map(|(_, shard)| shard),
            place: places.get(missing.place).target.name(),
            why: missing.why.to_string(),
        }
    }

    pub(crate) fn describe(&self) -> String {
        match (self.segment, self.shard) {
            (Some(segment), Some(shard)) => {
                format!("  shard {shard} of segment {segment} -> {}: {}\n", self.place, self.why)
            }
            _ => format!("  the manifest -> {}: {}\n", self.place, self.why),
        }
    }
}

/// The losses that a payload survives, as a sentence.
pub(crate) fn survives(what: &str, survival: &str) -> String {
    match survival {
        "nothing" => "nothing more may be lost".to_owned(),
        survival => format!("{what} survives the loss of {survival}"),
    }
}

pub(crate) fn list(lines: impl ExactSizeIterator<Item = String>, out: &mut String) {
    let count = lines.len();
    out.extend(lines.take(LINES));
    if count > LINES {
        let _ = writeln!(out, "  … and {} more", count - LINES);
    }
}

/// The outcome of `encode --to`.
#[derive(Debug, Serialize)]
pub(crate) struct SendReport {
    input: String,
    root: String,
    hash: &'static str,
    k: usize,
    m: usize,
    payload_bytes: u64,
    segments: usize,
    segment_roots: Vec<String>,
    targets: Vec<String>,
    /// The losses that the payload survives, once nothing is missing, and as it is.
    survives: String,
    survives_now: String,
    /// The number of objects that were sent, and that existed before.
    sent: u64,
    kept: u64,
    sent_bytes: u64,
    missing: Vec<Lacking>,
    /// The fewest shards that arrived of any segment.
    weakest: u32,
    margin: Margin,
    threads: usize,
    seconds: f64,
}

impl SendReport {
    pub(crate) fn new(
        sent: &Sent,
        places: &Places,
        input: &Path,
        settings: &Settings,
        started: Instant,
    ) -> SendReport {
        let manifest = &sent.manifest;
        SendReport {
            input: show(input),
            root: hex(&sent.root),
            hash: manifest.hash.name(),
            k: manifest.code.k(),
            m: manifest.code.m(),
            payload_bytes: manifest.payload_len(),
            segments: manifest.segments.len(),
            segment_roots: manifest.segments.iter().map(|segment| hex(&segment.root)).collect(),
            targets: places.iter().map(|place| place.target.name()).collect(),
            survives: sent.survival.to_string(),
            survives_now: sent.arrived.to_string(),
            sent: sent.created,
            kept: sent.kept,
            sent_bytes: sent.sent_bytes,
            missing: sent.missing.iter().map(|missing| Lacking::new(missing, places)).collect(),
            weakest: sent.weakest,
            margin: Margin::of_shards(Some(i64::from(sent.weakest) - manifest.code.k() as i64)),
            threads: settings.library.threads,
            seconds: started.elapsed().as_secs_f64(),
        }
    }

    pub(crate) fn describe(&self) -> String {
        let there = if self.kept > 0 {
            format!(", {} were there already, as sizes and first bytes tell", self.kept)
        } else {
            String::new()
        };
        let mut out = format!(
            "{}: {} in {} of {} + {} shards -> {}: {} sent ({}){there}\n",
            input_name(&self.input),
            bytes(self.payload_bytes),
            counted(self.segments, "segment"),
            self.k,
            self.m,
            counted(self.targets.len(), "place"),
            counted(self.sent, "object"),
            bytes(self.sent_bytes),
        );
        if self.missing.is_empty() {
            let _ = writeln!(out, "{}", survives("this", &self.survives));
        } else {
            let _ = writeln!(
                out,
                "{} did not arrive; at least {} of {} shards of each segment are there, and any {} restore it:",
                counted(self.missing.len(), "object"),
                self.weakest,
                self.k + self.m,
                self.k
            );
            list(self.missing.iter().map(Lacking::describe), &mut out);
            let _ = writeln!(out, "{}", survives("as it is, this", &self.survives_now));
            out.push_str("run the same command again, or fec repair --root ROOT --from …: only what is missing is sent\n");
        }
        let _ = write!(out, "{:.2} s; keep the root, and where the shards are:", self.seconds);
        out
    }
}

/// The outcome of `decode --from`.
#[derive(Debug, Serialize)]
pub(crate) struct DecodeReport {
    root: String,
    output: String,
    payload_bytes: u64,
    /// True if the payload is ciphertext.
    sealed: bool,
    /// Bytes that were opened and written, if the payload is sealed.
    opened_bytes: Option<u64>,
    segments: u64,
    fetched_bytes: u64,
    /// Shards, or records of them, by the place that they came from.
    came_from: BTreeMap<String, u64>,
    trouble: Vec<String>,
    seconds: f64,
}

impl DecodeReport {
    pub(crate) fn new(
        stored: &Stored<'_>,
        (restored, is_open): (&StoredRestored, bool),
        places: &Places,
        target: &Target,
        started: Instant,
    ) -> DecodeReport {
        let name = |place: &usize| places.get(*place).target.name();
        DecodeReport {
            root: hex(&stored.root()),
            output: target.to_string(),
            payload_bytes: restored.payload_bytes,
            sealed: stored.is_sealed(),
            opened_bytes: is_open.then_some(restored.payload_bytes),
            segments: restored.segments,
            fetched_bytes: restored.fetched_bytes,
            came_from: restored.came.iter().map(|(place, count)| (name(place), *count)).collect(),
            trouble: restored.trouble.clone(),
            seconds: started.elapsed().as_secs_f64(),
        }
    }

    pub(crate) fn describe(&self) -> String {
        let output = output_name(&self.output);
        let mut out = format!(
            "{} -> {output}, proved by root {}\n{} fetched from {}, {:.2} s",
            bytes(self.payload_bytes),
            self.root,
            bytes(self.fetched_bytes),
            counted(self.came_from.len(), "place"),
            self.seconds
        );
        match (self.sealed, self.opened_bytes) {
            (true, None) => out.push_str("\nthe payload is sealed: what was restored is ciphertext"),
            (true, Some(_)) => out.push_str("\nthe payload was sealed, and is open now"),
            (false, _) => {}
        }
        if !self.trouble.is_empty() {
            out.push_str("\nthat did no harm:\n");
            list(self.trouble.iter().map(|line| format!("  {line}\n")), &mut out);
            out.truncate(out.trim_end().len());
        }
        out
    }
}

/// A segment, as `verify --from` found it.
#[derive(Debug, Serialize)]
struct Segment {
    segment: usize,
    root: String,
    intact: usize,
    missing: Vec<u32>,
    damaged: Vec<(u32, String)>,
    /// Intact shards beyond the number needed. Negative if shards are lacking.
    margin: Margin,
    survives: String,
    held: BTreeMap<String, usize>,
}

/// The result of `verify --from`.
#[derive(Debug, Serialize)]
pub(crate) struct VerifyReport {
    root: String,
    payload_bytes: u64,
    k: usize,
    m: usize,
    /// True if every byte was read.
    deep: bool,
    /// True if every segment has enough intact shards.
    enough: bool,
    margin: Margin,
    manifests: Vec<String>,
    segments: Vec<Segment>,
    trouble: Vec<String>,
    #[serde(skip)]
    is_denied: bool,
    fetched_bytes: u64,
    seconds: f64,
    #[serde(skip)]
    places: usize,
    #[serde(skip)]
    is_bare: bool,
}

impl VerifyReport {
    pub(crate) fn new(
        stored: &Stored<'_>,
        verified: &StoredVerified,
        places: &Places,
        started: Instant,
    ) -> VerifyReport {
        let name = |place: usize| places.get(place).target.name();
        let manifest = stored.manifest();
        let segments = manifest.segments.iter().zip(&verified.segments).enumerate();
        VerifyReport {
            root: hex(&stored.root()),
            payload_bytes: manifest.payload_len(),
            k: manifest.code.k(),
            m: manifest.code.m(),
            deep: verified.deep,
            enough: verified.margin() >= 0,
            margin: Margin::of_shards(Some(verified.margin())),
            manifests: verified.manifests.iter().map(|place| name(*place)).collect(),
            segments: segments
                .map(|(nth, (encoding, state))| Segment {
                    segment: nth,
                    root: hex(&encoding.root),
                    intact: state.intact.len(),
                    missing: state.missing.clone(),
                    damaged: state.damaged.iter().map(|(shard, place)| (*shard, name(*place))).collect(),
                    margin: Margin::of_shards(Some(state.margin)),
                    survives: state.survival.to_string(),
                    held: state.held.clone(),
                })
                .collect(),
            trouble: verified.trouble.clone(),
            is_denied: verified.is_denied,
            fetched_bytes: verified.fetched_bytes,
            seconds: started.elapsed().as_secs_f64(),
            places: places.len(),
            is_bare: verified.is_bare,
        }
    }

    /// The report as a line of a table.
    pub(crate) fn row(&self, places: &Places, exit: Exit) -> Row {
        let names: Vec<String> = (0..places.len()).map(|place| places.get(place).target.name()).collect();
        let weakest = self.segments.iter().min_by_key(|segment| segment.margin.shards);
        let counts = weakest.map(|segment| {
            let damaged: BTreeSet<u32> = segment.damaged.iter().map(|(shard, _)| *shard).collect();
            let missing = (self.k + self.m).saturating_sub(segment.intact + damaged.len());
            [segment.intact, damaged.len(), missing]
        });
        let margin = weakest.map_or(self.margin, |segment| segment.margin);
        let row = Row::of_stores(
            names.join(", "),
            &self.root,
            (self.k, self.m),
            counts.unwrap_or_default(),
            (margin, self.deep, exit),
        );
        row.proved_by(Some("root".to_owned()))
    }

    pub(crate) fn describe(&self) -> String {
        let n = self.k + self.m;
        let mut out = format!(
            "{} in {} of {} + {} shards\n",
            bytes(self.payload_bytes),
            counted(self.segments.len(), "segment"),
            self.k,
            self.m,
        );
        let is_whole = |segment: &&Segment| segment.missing.is_empty() && segment.damaged.is_empty();
        let lines = self.segments.iter().filter(|segment| !is_whole(segment)).map(|segment| {
            let Segment { segment: nth, intact, damaged, margin, .. } = segment;
            let of = if damaged.is_empty() {
                String::new()
            } else {
                format!(", {} damaged", counted(damaged.len(), "object"))
            };
            let lost = match margin.shards.unwrap_or_default() {
                0.. => "",
                _ => ": it cannot be restored from here",
            };
            format!("  segment {nth}: {intact} of {n} shards intact{of}{lost}\n")
        });
        let lines: Vec<String> = lines.collect();
        list(lines.into_iter(), &mut out);
        if let Some(weakest) = self.segments.iter().min_by_key(|segment| segment.margin.shards) {
            for (domain, held) in &weakest.held {
                let _ = writeln!(out, "  {domain}: {}", counted(*held, "shard"));
            }
            match weakest.margin.shards.unwrap_or_default() {
                0.. => {
                    let far = if self.deep { "" } else { "as far as sizes and first bytes tell, " };
                    let _ = writeln!(
                        out,
                        "{far}it can be restored, and survives the loss of {}",
                        weakest.survives
                    );
                }
                margin => {
                    let few = counted(-margin, "shard");
                    let _ = writeln!(out, "it cannot be restored from these places: {few} too few");
                }
            }
        }
        if !self.is_bare && self.manifests.len() < self.places {
            let _ = writeln!(
                out,
                "{} of {} have the manifest, without which nobody finds the segments;\nfec repair sends it to the others",
                self.manifests.len(),
                counted(self.places, "place")
            );
        }
        if !self.trouble.is_empty() {
            out.push_str("not known:\n");
            list(self.trouble.iter().map(|line| format!("  {line}\n")), &mut out);
            out.push_str(if self.is_denied { DENIED } else { "" });
        }
        let how = how_looked(self.deep);
        let _ = write!(out, "{how}; {} fetched, {:.2} s", bytes(self.fetched_bytes), self.seconds);
        out
    }
}

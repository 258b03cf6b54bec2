//! The report of `list`, as text and JSON.

use super::stores::LINES;
use super::verify::spans;
use crate::say::failure::{Exit, plain};
use crate::say::state::{Margin, State};
use fec_base::names::{bytes, counted, hex, show_bytes};
use fec_stores::inventory::{Alone, Inventory, Lack, Listed, Summary};
use fec_stores::places::Places;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Instant;

/// Most characters of a name in the table: the line has 80 columns.
const NAME: usize = 22;
/// Segments whose missing shards are told without -v.
const FEW: usize = 3;

/// A segment that lacks shards.
#[derive(Debug, Serialize)]
struct Lacking {
    segment: usize,
    root: String,
    missing: Vec<u32>,
}

/// An encoding whose manifest is there.
#[derive(Debug, Serialize)]
struct Row {
    root: String,
    state: State,
    exit_code: u8,
    name: Option<String>,
    sealed: Option<bool>,
    hash: Option<&'static str>,
    k: Option<usize>,
    m: Option<usize>,
    payload_bytes: Option<u64>,
    segments: Option<usize>,
    /// Shards of all segments together.
    shards: Option<u64>,
    missing: Option<u64>,
    damaged: Option<u64>,
    margin: Margin,
    lacking: Vec<Lacking>,
    held: BTreeMap<String, u64>,
    manifests: Vec<String>,
    lack_manifest: Vec<String>,
    /// Places that the manifest names and that were not asked.
    elsewhere: usize,
    elsewhere_named: Vec<String>,
    error: Option<String>,
}

/// A root with shards and without a manifest.
#[derive(Debug, Serialize)]
struct AloneRow {
    root: String,
    shards: usize,
    places: Vec<String>,
}

/// The outcome of `list`.
#[derive(Debug, Serialize)]
pub(crate) struct ListReport {
    places: Vec<String>,
    encodings: Vec<Row>,
    alone: Vec<AloneRow>,
    trouble: Vec<String>,
    fetched_bytes: u64,
    seconds: f64,
    #[serde(skip)]
    is_verbose: bool,
}

impl Row {
    fn new(listed: &Listed, is_cut_off: bool, places: &Places) -> Row {
        let exit = listed.class(is_cut_off).map_or(Exit::Done, Exit::from);
        let names = |of: &[usize]| of.iter().map(|place| plain(&places.get(*place).target.name())).collect();
        let bare = Row {
            root: hex(&listed.root),
            state: exit.into(),
            exit_code: exit.code(),
            name: None,
            sealed: None,
            hash: None,
            k: None,
            m: None,
            payload_bytes: None,
            segments: None,
            shards: None,
            missing: None,
            damaged: None,
            margin: Margin::default(),
            lacking: Vec::new(),
            held: BTreeMap::new(),
            manifests: names(&listed.manifests),
            lack_manifest: Vec::new(),
            elsewhere: 0,
            elsewhere_named: Vec::new(),
            error: listed.summary.as_ref().err().map(ToString::to_string),
        };
        let Ok(summary) = &listed.summary else { return bare };
        let Summary { name, is_sealed, hash, code, payload_len, segments, missing, damaged, .. } = summary;
        let lacking = |Lack { segment, root, missing }: &Lack| Lacking {
            segment: *segment,
            root: hex(root),
            missing: missing.clone(),
        };
        Row {
            name: name.as_deref().map(show_bytes),
            sealed: Some(*is_sealed),
            hash: Some(hash.name()),
            k: Some(code.k()),
            m: Some(code.m()),
            payload_bytes: Some(*payload_len),
            segments: Some(*segments),
            shards: Some(*segments as u64 * code.n() as u64),
            missing: Some(*missing),
            damaged: Some(*damaged),
            margin: Margin::of_shards(Some(summary.margin)),
            lacking: summary.lacking.iter().map(lacking).collect(),
            held: summary
                .held
                .iter()
                .map(|(place, count)| (plain(&places.get(*place).target.name()), *count))
                .collect(),
            lack_manifest: names(&summary.lack_manifest),
            elsewhere: summary.elsewhere.0,
            elsewhere_named: summary.elsewhere.1.iter().map(|name| plain(name)).collect(),
            ..bare
        }
    }

    fn word(&self) -> &'static str {
        match self.state {
            State::Intact => "intact",
            State::Damaged => "damaged",
            State::Lost => "lost",
            State::Refused => "not known",
        }
    }

    /// Its line of the table, and its root below it.
    fn describe(&self, is_verbose: bool, out: &mut String) {
        let name = match (&self.name, self.sealed) {
            (_, None) => "(not read)".to_owned(),
            (Some(name), _) if is_verbose => name.clone(),
            (Some(name), _) => short(name),
            (None, Some(true)) => "(sealed)".to_owned(),
            (None, Some(false)) => "(no name)".to_owned(),
        };
        let number = |of: Option<u64>| of.map_or_else(|| "-".to_owned(), |of| of.to_string());
        let code = self.k.zip(self.m).map_or_else(|| "-".to_owned(), |(k, m)| format!("{k} + {m}"));
        let listed = self.shards.zip(self.missing).map(|(all, missing)| format!("{}/{all}", all - missing));
        let _ = writeln!(
            out,
            "{:>11}  {:>8}  {code:>9}  {:>11}  {:<9}  {name}",
            self.payload_bytes.map_or_else(|| "-".to_owned(), bytes),
            number(self.segments.map(|of| of as u64)),
            listed.unwrap_or_else(|| "-".to_owned()),
            self.word(),
        );
        let _ = writeln!(out, "  {}", self.root);
        self.details(is_verbose, out);
    }

    /// The lines on what is missing, and with -v on where the rest is.
    fn details(&self, is_verbose: bool, out: &mut String) {
        if let Some(error) = &self.error {
            let _ = writeln!(out, "    {error}");
            return;
        }
        let few = if is_verbose { self.lacking.len() } else { FEW };
        for Lacking { segment, missing, .. } in self.lacking.iter().take(few) {
            let _ = writeln!(out, "    missing of segment {segment}: shards {}", spans(missing, is_verbose));
        }
        if self.lacking.len() > few {
            out.push_str("    and of further segments; fec verify names all\n");
        }
        match self.damaged.unwrap_or_default() {
            0 => {}
            1 => out.push_str("    damaged: 1 object has another length than it should\n"),
            damaged => {
                let _ = writeln!(out, "    damaged: {damaged} objects have another length than they should");
            }
        }
        if !self.lack_manifest.is_empty() {
            let _ = writeln!(out, "    the manifest is missing at {}", self.lack_manifest.join(", "));
        }
        match self.margin.shards.unwrap_or_default() {
            margin if margin < 0 => {
                let _ = writeln!(out, "    {} too few to restore it", counted(-margin, "shard"));
            }
            margin if self.state != State::Intact || is_verbose => {
                let _ = writeln!(out, "    it can be restored, and {}", spare(margin));
            }
            _ => {}
        }
        if self.elsewhere > 0 && (self.state != State::Intact || is_verbose) {
            let more = self.elsewhere - self.elsewhere_named.len();
            let more = if more > 0 { format!(", and {more} more") } else { String::new() };
            let named = self.elsewhere_named.join(", ");
            let _ = writeln!(out, "    it was sent to other places too: {named}{more}");
        }
        if is_verbose {
            for (place, count) in &self.held {
                let manifest = if self.manifests.contains(place) { ", and the manifest" } else { "" };
                let _ = writeln!(out, "    {place}: {}{manifest}", counted(*count, "shard"));
            }
        }
    }
}

/// A name that fits the table.
fn short(name: &str) -> String {
    match name.chars().count() > NAME {
        true => name.chars().take(NAME - 1).chain(['…']).collect(),
        false => name.to_owned(),
    }
}

/// The shards that may still be lost.
fn spare(margin: i64) -> String {
    match margin {
        0 => "no further shard may be lost".to_owned(),
        margin => format!("any {margin} more of a segment may be lost"),
    }
}

impl ListReport {
    pub(crate) fn new(found: &Inventory, places: &Places, is_verbose: bool, started: Instant) -> ListReport {
        let name = |place: &usize| plain(&places.get(*place).target.name());
        let alone = |Alone { root, shards, places }: &Alone| AloneRow {
            root: hex(root),
            shards: *shards,
            places: places.iter().map(name).collect(),
        };
        let is_cut_off = !found.failed.is_empty();
        ListReport {
            places: places.iter().map(|place| plain(&place.target.name())).collect(),
            encodings: found.encodings.iter().map(|listed| Row::new(listed, is_cut_off, places)).collect(),
            alone: found.alone.iter().map(alone).collect(),
            trouble: found.failed.iter().map(|(place, why)| format!("{}: {why}", name(place))).collect(),
            fetched_bytes: found.fetched_bytes,
            seconds: started.elapsed().as_secs_f64(),
            is_verbose,
        }
    }

    /// The number of encodings in each state.
    pub(crate) fn summary(&self) -> String {
        let count = |state| self.encodings.iter().filter(|row| row.state == state).count();
        let states = [
            (State::Intact, "intact"),
            (State::Damaged, "damaged"),
            (State::Lost, "lost"),
            (State::Refused, "not known"),
        ];
        let named = states.iter().map(|(state, word)| (count(*state), word)).filter(|(count, _)| *count > 0);
        let named: Vec<String> = named.map(|(count, word)| format!("{count} {word}")).collect();
        let colon = if named.is_empty() { "" } else { ": " };
        let (all, places) = (counted(self.encodings.len(), "encoding"), counted(self.places.len(), "place"));
        format!("{all} in {places}{colon}{}", named.join(", "))
    }

    pub(crate) fn describe(&self) -> String {
        let mut out = String::new();
        if !self.encodings.is_empty() {
            let _ = writeln!(
                out,
                "{:>11}  {:>8}  {:>9}  {:>11}  {:<9}  name",
                "payload", "segments", "code", "shards", "state"
            );
        }
        self.encodings.iter().for_each(|row| row.describe(self.is_verbose, &mut out));
        let _ = writeln!(out, "{}", self.summary());
        self.describe_alone(&mut out);
        if !self.trouble.is_empty() {
            out.push_str("not asked, so nothing is known of what they hold:\n");
            self.trouble.iter().for_each(|line| out.extend(["  ", line, "\n"]));
        }
        if !self.encodings.is_empty() {
            out.push_str(
                "each manifest was read, and its root proves the facts; which shards are there is\nthe word of the places: fec verify --root ROOT --from PLACE reads them\n",
            );
        }
        let _ = write!(out, "{} fetched, {:.2} s", bytes(self.fetched_bytes), self.seconds);
        out
    }

    fn describe_alone(&self, out: &mut String) {
        if self.alone.is_empty() {
            return;
        }
        let _ = writeln!(
            out,
            "{} with shards and without a manifest, which never arrived, is lost, or is elsewhere:",
            counted(self.alone.len(), "root")
        );
        let few = if self.is_verbose { self.alone.len() } else { LINES };
        for AloneRow { root, shards, places } in self.alone.iter().take(few) {
            let _ = writeln!(out, "  {root}\n    {} at {}", counted(*shards, "shard"), places.join(", "));
        }
        if self.alone.len() > few {
            let _ = writeln!(out, "  … and {} more; -v lists all", self.alone.len() - few);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn long_names_are_cut_to_the_table() {
        assert_eq!(short("a.tar"), "a.tar");
        assert_eq!(short(&"x".repeat(23)), "x".repeat(21) + "…");
    }
}

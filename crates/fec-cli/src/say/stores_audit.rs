//! The words of `verify --audit`: what was shown of each place, and what was not.

use super::stores::{DENIED, LINES, list};
use crate::line::Verify;
use crate::run::target::quoted;
use crate::say::failure::plain;
use crate::say::state::Margin;
use fec_base::names::{bytes, counted, hex};
use fec_stores::StoreError;
use fec_stores::audit::{Audit, Audited, AuditedPlace};
use fec_stores::places::Places;
use fec_stores::stored::Stored;
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

/// The verdict on a place, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    /// Something is wrong or missing.
    Damaged,
    /// It did not answer.
    Failed,
    /// All looks were right.
    Shown,
    /// It holds nothing, and should not.
    Empty,
}

/// A look that proved nothing.
#[derive(Debug, Serialize)]
struct Wrong {
    segment: u32,
    shard: u32,
    set: u32,
    byte: u64,
}

/// A place.
#[derive(Debug, Serialize)]
struct Row {
    place: String,
    verdict: Verdict,
    objects: u64,
    /// Bytes of the shards in them.
    bytes: u64,
    /// Segments and shards: objects of a wrong length, and those that are nowhere and should be here.
    damaged: Vec<(u32, u32)>,
    missing: Vec<(u32, u32)>,
    looks: u64,
    wrong: u64,
    wrong_at: Vec<Wrong>,
    /// The confidence that no more than `rot` of its bytes are lost.
    shown: Option<f64>,
    /// With the asked confidence no more than this share of the bytes of its objects is lost.
    most_lost: f64,
    requests: u64,
    fetched_bytes: u64,
    why: Option<String>,
}

impl Row {
    fn new(of: &AuditedPlace, audit: &Audit, places: &Places) -> Row {
        let verdict = match of {
            _ if of.wrong > 0 || of.lacks() => Verdict::Damaged,
            _ if of.failed.is_some() => Verdict::Failed,
            _ if of.objects == 0 => Verdict::Empty,
            _ => Verdict::Shown,
        };
        let wrong = |&(segment, shard, set, byte): &(u32, u32, u32, u64)| Wrong { segment, shard, set, byte };
        Row {
            place: places.get(of.place).target.name(),
            verdict,
            objects: of.objects,
            bytes: of.bytes,
            damaged: of.damaged.clone(),
            missing: of.missing.clone(),
            looks: of.looks,
            wrong: of.wrong,
            wrong_at: of.wrong_at.iter().take(LINES).map(wrong).collect(),
            shown: of.shown(audit.rot).filter(|_| verdict == Verdict::Shown),
            most_lost: of.most_lost(audit.confidence),
            requests: of.requests,
            fetched_bytes: of.fetched_bytes,
            why: of.failed.as_ref().map(StoreError::to_string),
        }
    }

    /// The share of its bytes that seems to be lost.
    fn seems_lost(&self) -> f64 {
        self.wrong as f64 / self.looks.max(1) as f64
    }

    /// Its lines.
    fn describe(&self, rot: f64) -> String {
        let mut said = Vec::new();
        if let Some(shown) = self.shown {
            said.push(format!(
                "{} right: {}: no more than {} of {} is lost",
                counted(self.looks, "look"),
                percent(shown),
                percent(rot),
                bytes(self.bytes)
            ));
        }
        if !self.missing.is_empty() {
            said.push(format!("{} missing", counted(self.missing.len(), "object")));
        }
        if !self.damaged.is_empty() {
            said.push(format!("{} with a wrong length", counted(self.damaged.len(), "object")));
        }
        if self.wrong > 0 {
            said.push(format!(
                "{} of {} wrong: about {} of {} is lost, {} at most",
                self.wrong,
                counted(self.looks, "look"),
                percent(self.seems_lost()),
                bytes(self.bytes),
                at_most(self.most_lost)
            ));
        }
        if self.verdict == Verdict::Damaged && self.wrong == 0 && self.looks > 0 && self.why.is_none() {
            said.push(format!("{} at what is there right", counted(self.looks, "look")));
        }
        if let Some(why) = &self.why {
            said.push(format!("nothing is shown: {why}"));
        }
        if self.verdict == Verdict::Empty {
            said.push("it holds no shards".to_owned());
        }
        let mut out = format!("  {}: {}\n", plain(&self.place), said.join("; "));
        for Wrong { segment, shard, set, byte } in self.wrong_at.iter().take(3) {
            let _ = writeln!(out, "    segment {segment}, shard {shard}, set {set}, byte {byte}");
        }
        out
    }
}

/// The result of `verify --audit`.
#[derive(Debug, Serialize)]
pub(crate) struct AuditReport {
    root: String,
    payload_bytes: u64,
    k: usize,
    m: usize,
    confidence: f64,
    rot: f64,
    /// The confidence for all places that were looked at; `None`: it is not shown for all of them.
    shown: Option<f64>,
    seed: u64,
    /// True if every segment has enough shards, by their names and lengths.
    enough: bool,
    margin: Margin,
    places: Vec<Row>,
    /// Places that were found well lately, and not looked at.
    recent: Vec<String>,
    lack_manifest: Vec<String>,
    trouble: Vec<String>,
    requests: u64,
    fetched_bytes: u64,
    seconds: f64,
    #[serde(skip)]
    is_denied: bool,
    /// The command that mends.
    #[serde(skip)]
    repair: String,
    #[serde(skip)]
    is_cut_short: bool,
}

impl AuditReport {
    pub(crate) fn new(
        stored: &Stored<'_>,
        (audited, audit): (&Audited, &Audit),
        places: &Places,
        args: &Verify,
        started: Instant,
    ) -> AuditReport {
        let name = |place: &usize| places.get(*place).target.name();
        let mut rows: Vec<Row> = audited.places.iter().map(|of| Row::new(of, audit, places)).collect();
        let lacking = |row: &Row| row.missing.len() + row.damaged.len();
        rows.sort_by(|one, other| {
            let by_lacking = || lacking(other).cmp(&lacking(one));
            let by_lost = || other.most_lost.total_cmp(&one.most_lost);
            one.verdict.cmp(&other.verdict).then_with(by_lacking).then_with(by_lost)
        });
        let is_told = |place: &&usize| audited.places.iter().any(|of| of.place == **place);
        let recent = audit.left_out.iter().filter(|place| !is_told(place));
        let asked = || rows.iter().filter(|row| row.verdict != Verdict::Empty);
        let is_all = audited.class().is_none() && asked().next().is_some();
        let least = asked().filter_map(|row| row.shown).reduce(f64::min);
        let manifest = stored.manifest();
        let from = args.stores.from.iter().map(|place| format!(" --from {}", quoted(Path::new(place))));
        AuditReport {
            root: hex(&stored.root()),
            payload_bytes: manifest.payload_len(),
            k: manifest.code.k(),
            m: manifest.code.m(),
            confidence: audit.confidence,
            rot: audit.rot,
            shown: least.filter(|_| is_all),
            seed: audit.seed,
            enough: audited.margin() >= 0,
            margin: Margin::of_shards(Some(audited.margin())),
            recent: recent.map(name).collect(),
            lack_manifest: audited.lack_manifest.iter().map(name).collect(),
            trouble: audited.trouble.clone(),
            requests: rows.iter().map(|row| row.requests).sum(),
            fetched_bytes: audited.fetched_bytes,
            seconds: started.elapsed().as_secs_f64(),
            is_denied: audited.places.iter().any(|of| matches!(of.failed, Some(StoreError::Denied(_)))),
            repair: format!(
                "fec repair --deep --now --root {}{}",
                hex(&stored.root()),
                from.collect::<String>()
            ),
            is_cut_short: asked().any(|row| row.shown.is_some_and(|shown| shown < audit.confidence)),
            places: rows,
        }
    }

    fn is_damaged(&self) -> bool {
        self.places.iter().any(|row| row.verdict == Verdict::Damaged) || !self.lack_manifest.is_empty()
    }

    /// The verdict on all places, as a sentence.
    pub(crate) fn summary(&self) -> String {
        if !self.enough {
            let few = counted(-self.margin.shards.unwrap_or_default(), "shard");
            return format!("it cannot be restored from these places: {few} too few");
        }
        let asked: Vec<&Row> = self.places.iter().filter(|row| row.verdict != Verdict::Empty).collect();
        let shown: Vec<f64> = asked.iter().filter_map(|row| row.shown).collect();
        let (all, rot) = (asked.len(), percent(self.rot));
        let least = shown.iter().copied().reduce(f64::min).map(percent);
        match least {
            Some(least) if shown.len() == all => {
                let which = if self.recent.is_empty() { "" } else { " that was due" };
                format!("{least}: no place{which} has lost more than {rot} of what it should hold")
            }
            Some(least) => {
                let (of, count) = (counted(all, "place"), shown.len());
                let (have, they) = if count == 1 { ("has", "it") } else { ("have", "they") };
                format!("{least}: {count} of {of} {have} lost no more than {rot} of what {they} should hold")
            }
            None if all == 0 && !self.recent.is_empty() => "no place was due".to_owned(),
            None => "nothing is shown of any place".to_owned(),
        }
    }

    pub(crate) fn describe(&self) -> String {
        let mut out = format!("{} of {} + {} shards\n", bytes(self.payload_bytes), self.k, self.m);
        list(self.places.iter().map(|row| row.describe(self.rot)), &mut out);
        let recent =
            |name: &String| format!("  {}: it was found well lately, and is left out\n", plain(name));
        list(self.recent.iter().map(recent), &mut out);
        let lacks = |name: &String| format!("  {}: it lacks the manifest\n", plain(name));
        list(self.lack_manifest.iter().map(lacks), &mut out);
        let unplaced =
            self.trouble.len().saturating_sub(self.places.iter().filter(|row| row.why.is_some()).count());
        list(self.trouble.iter().take(unplaced).map(|line| format!("  {line}\n")), &mut out);
        out.push_str(if self.is_denied { DENIED } else { "" });
        let _ = writeln!(out, "{}", self.summary());
        if self.is_cut_short {
            out.push_str("more looks show more: a larger --budget-bytes, or --deep for every byte\n");
        }
        if self.enough && self.is_damaged() {
            let _ = writeln!(out, "what is damaged or missing is made anew by:\n  {}", self.repair);
        }
        let (requests, fetched) = (counted(self.requests, "request"), bytes(self.fetched_bytes));
        let _ = write!(
            out,
            "{fetched} and {requests}, {:.2} s; the same again: --seed {}",
            self.seconds, self.seed
        );
        out
    }
}

/// A share in per cent, never more than it is.
fn percent(share: f64) -> String {
    hundredths((share * 10_000.0 + 1e-6).floor())
}

/// A share in per cent, never less than it is.
fn at_most(share: f64) -> String {
    hundredths((share * 10_000.0 - 1e-6).ceil().max(0.0))
}

fn hundredths(parts: f64) -> String {
    let text = format!("{:.2}", parts / 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::{at_most, percent};

    #[test]
    fn shares_are_never_said_to_be_more_and_bounds_never_less() {
        let shares = [0.0, 0.01, 0.1, 1.0, 0.0125, 0.990_08, 0.999_999, 0.99, 0.123_456];
        let words = ["0 %", "1 %", "10 %", "100 %", "1.25 %", "99 %", "99.99 %", "99 %", "12.34 %"];
        assert_eq!(shares.map(percent), words);
        let words = ["0 %", "1 %", "10 %", "100 %", "1.25 %", "99.01 %", "100 %", "99 %", "12.35 %"];
        assert_eq!(shares.map(at_most), words);
    }
}

//! Reports about protected files and their sidecar.

use crate::say::advice::Advice;
use crate::say::details::Details;
use crate::say::failure::NOT_ALLOWED;
use crate::say::signed::SignedBy;
use crate::settings::SCHEMA_VERSION;
use fec_base::names::{counted, hex, show, show_bytes};
use fec_base::ranges::RangeList;
use fec_keys::sign::Signed;
use fec_sidecar::Sidecar;
use fec_sidecar::examine::{EntryReport, Examined, Scope, State};
use fec_sidecar::scrub::Scrubbed;
use serde::Serialize;
use std::time::Instant;

/// Most ranges of a file that the text lists.
const RANGES: usize = 4;

/// The final report of `verify` for a sidecar, as text and JSON.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    schema_version: u32,
    command: &'static str,
    form: &'static str,
    /// The part that was examined: `all`, `quick`, `sidecar` or `part`.
    scope: &'static str,
    sidecar: String,
    pub(crate) root: String,
    /// Who signed the root, if that was asked for.
    signed_by: Option<SignedBy>,
    generation: u64,
    intact: bool,
    mendable: bool,
    pub(crate) entries: u64,
    files: Vec<Entry>,
    /// Entries in `files` that count as edited but may be rotten: nothing proves which.
    unproved: u64,
    #[serde(skip)]
    advice: Advice,
    /// Files in the protected folders that are not protected.
    unprotected: u64,
    #[serde(skip)]
    unprotected_first: String,
    /// The number of recovery shards.
    recovery: u64,
    recovery_damaged: u64,
    /// Recovery shards that are intact, but not where they should be.
    recovery_displaced: u64,
    sidecar_damage: Vec<String>,
    worst_set: WorstSet,
    /// Bytes of files that cannot be mended.
    lost_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    scrub: Option<Scrub>,
    seconds: f64,
}

/// The extent of an examination that did not cover everything.
#[derive(Debug, Serialize)]
struct Scrub {
    looked_at_bytes: u64,
    /// Files that were read completely.
    looked_at_files: u64,
    /// Files that are due and were not read. Without a state file nothing is due.
    due_files: u64,
    /// Seconds since the oldest of the last checks. `None` if something was never checked.
    oldest_seconds: Option<u64>,
    /// Files that were damaged at their last check, before this run.
    damaged_before: u64,
    sidecar_was_damaged: bool,
}

impl Scrub {
    fn new(scrubbed: &Scrubbed) -> Scrub {
        Scrub {
            looked_at_bytes: scrubbed.looked_len,
            looked_at_files: scrubbed.looked_files,
            due_files: scrubbed.due_files,
            oldest_seconds: scrubbed.oldest.map(|oldest| oldest.as_secs()),
            damaged_before: scrubbed.damaged_before,
            sidecar_was_damaged: scrubbed.sidecar_was_damaged,
        }
    }
}

/// The set that has the fewest recovery shards to spare.
#[derive(Debug, Serialize)]
struct WorstSet {
    used: u64,
    of: u64,
    /// Further bytes that could be lost in one piece.
    one_piece_bytes: u64,
}

/// An entry that is not intact.
#[derive(Debug, Serialize)]
struct Entry {
    path: String,
    state: &'static str,
    damaged_bytes: u64,
    damage: Vec<(u64, u64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<String>,
    /// The new path of a moved entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    moved_to: Option<String>,
}

impl Entry {
    fn new(sidecar: &Sidecar, report: &EntryReport) -> Entry {
        Entry {
            path: show_bytes(&sidecar.catalog().entries[report.entry].path),
            state: word(report.state),
            damaged_bytes: report.damage.bytes(),
            damage: report.damage.list().iter().map(|range| (range.start, range.end)).collect(),
            cause: report.cause.map(|cause| cause.to_string()),
            moved_to: report.moved_to.as_ref().map(|path| show_bytes(path)),
        }
    }
}

/// The word for a state.
pub(crate) fn word(state: State) -> &'static str {
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
    pub(crate) fn new(
        (sidecar, signed, advice): (&Sidecar, Option<&Signed>, Advice),
        examined: &Examined,
        scope: Scope,
        scrubbed: Option<&Scrubbed>,
        started: Instant,
    ) -> Report {
        let container = examined.container_damaged;
        let container = container.then(|| "the container that it is sealed in is damaged".to_owned());
        Report {
            schema_version: SCHEMA_VERSION,
            command: "verify",
            form: "sidecar",
            scope: match scope {
                Scope::All => "all",
                Scope::Quick => "quick",
                Scope::Sidecar => "sidecar",
                Scope::Part => "part",
            },
            sidecar: show(sidecar.path()),
            root: hex(&sidecar.root()),
            signed_by: signed.map(SignedBy::new),
            generation: sidecar.generation(),
            intact: examined.is_intact(),
            mendable: examined.is_mendable(),
            entries: sidecar.catalog().entries.len() as u64,
            files: examined.entries.iter().map(|report| Entry::new(sidecar, report)).collect(),
            unproved: examined.unproved,
            advice,
            unprotected: examined.unprotected.count,
            unprotected_first: examined.unprotected.first.as_deref().map(show_bytes).unwrap_or_default(),
            recovery: examined.recovery,
            recovery_damaged: examined.recovery_damaged,
            recovery_displaced: examined.recovery_displaced,
            sidecar_damage: examined.sidecar_damage.iter().cloned().chain(container).collect(),
            worst_set: WorstSet {
                used: examined.margin.used,
                of: examined.margin.of,
                one_piece_bytes: examined.margin.one_piece,
            },
            lost_bytes: examined.margin.lost_bytes,
            scrub: scrubbed.map(Scrub::new),
            seconds: started.elapsed().as_secs_f64(),
        }
    }

    /// The verdict, the advice, and below them the entries: a few, or all.
    pub(crate) fn describe(&self, examined: &Examined, is_all: bool) -> String {
        let mut out = String::new();
        out.push_str(&self.counts(examined));
        if self.files.len() as u64 == self.entries && examined.count(State::Missing) == self.entries {
            out.push_str("nothing is there: if the files were moved, name their folder with --base\n");
        } else if examined.count(State::Missing) * 10 > self.entries {
            out.push_str("many files are missing: is the disk mounted?\n");
        }
        if self.unprotected > 0 {
            let (count, first) = (count(self.unprotected, "entry", "entries"), &self.unprotected_first);
            let update = &self.advice.update;
            out.push_str(&format!(
                "not protected, because new or left out: {count}, such as {first}; to add what is new:\n  {update}\n"
            ));
        }
        if let Some(scrub) = &self.scrub {
            out.push_str(&scrub.describe());
        }
        if self.scope == "all"
            || self.scope == "sidecar"
            || self.recovery_damaged + self.recovery_displaced > 0
        {
            let blocks = count(self.recovery, "recovery block", "recovery blocks");
            let damage = match (self.recovery_damaged, self.recovery_displaced) {
                (0, 0) => "all intact".to_owned(),
                (damaged, 0) => format!("{damaged} damaged"),
                (0, moved) => format!("{moved} not where they should be"),
                (damaged, moved) => format!("{damaged} damaged, {moved} not where they should be"),
            };
            out.push_str(&format!("the sidecar's {blocks}: {damage}\n"));
        }
        self.describe_what_to_do(examined, &mut out);
        out.push_str(&format!("root {}\n", self.root));
        self.signed_by.iter().for_each(|signed_by| out.push_str(&signed_by.describe()));
        out.push_str(&self.details(examined).describe(is_all));
        out
    }

    /// The verdict in a line.
    pub(crate) fn verdict(&self, examined: &Examined) -> String {
        format!("{}: {}", self.sidecar, self.found(examined))
    }

    /// The findings in one line.
    pub(crate) fn found(&self, examined: &Examined) -> String {
        let mut parts: Vec<String> = Vec::new();
        let counts = self.counts(examined).trim_end().to_owned();
        let is_bad = !self.files.is_empty() || examined.sidecar_is_intact();
        parts.extend((is_bad && !counts.is_empty()).then_some(counts));
        parts.extend((!examined.sidecar_is_intact()).then(|| "the sidecar is damaged".to_owned()));
        let before =
            self.scrub.as_ref().is_some_and(|scrub| scrub.damaged_before > 0 || scrub.sidecar_was_damaged);
        parts.extend(before.then(|| "damaged at the last check".to_owned()));
        parts.extend((!self.mendable).then(|| "not all of it can be mended".to_owned()));
        if parts.is_empty() {
            parts.push("the sidecar is intact; the files were not looked at".to_owned());
        }
        parts.join("; ")
    }

    /// How many entries are intact, and how many are in each other state.
    fn counts(&self, examined: &Examined) -> String {
        let all = count(self.entries, "entry", "entries");
        match self.files.len() {
            0 if self.scope == "sidecar" => String::new(),
            0 if self.scope == "quick" => {
                format!("{all}: all there, with their sizes and times; their contents were not read\n")
            }
            0 if self.scope == "part" => {
                format!("{all}: all there, with their sizes and times; what was read is intact\n")
            }
            0 => format!("{all}: all intact\n"),
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
                format!("{all}: {}\n", counts.join(", "))
            }
        }
    }

    fn details(&self, examined: &Examined) -> Details {
        let mut details = Details::default();
        details.add(self.files.iter().zip(&examined.entries).map(|(entry, report)| {
            let place = match (&entry.cause, &entry.moved_to) {
                (Some(cause), _) => format!(": {cause}"),
                (None, Some(to)) => format!(": it is {to}"),
                (None, None) => ranges(&report.damage, entry.state),
            };
            format!("{:10} {}{place}", entry.state, entry.path)
        }));
        details.add(self.sidecar_damage.iter().map(|damage| format!("the sidecar: {damage}")));
        details
    }

    fn describe_what_to_do(&self, examined: &Examined, out: &mut String) {
        let by_users = [State::Edited, State::Shifted, State::Moved].map(|state| examined.count(state));
        let by_users: u64 = by_users.iter().sum();
        let Advice { named: sidecar, update } = &self.advice;
        let denied = examined.denied().count();
        if denied > 0 {
            let entries = count(denied as u64, "entry", "entries");
            out.push_str(&format!("permission denied for {entries}; to look at all, {NOT_ALLOWED}\n"));
        }
        if !self.mendable {
            out.push_str(&format!(
                "{} bytes of the files cannot be mended; to mend what can be:\n  fec repair --partial {sidecar}\n",
                self.lost_bytes
            ));
            return;
        }
        let is_damaged =
            examined.entries.len() as u64 > by_users + denied as u64 || !examined.sidecar_is_intact();
        if is_damaged {
            out.push_str(&format!("what is damaged can be mended:\n  fec repair {sidecar}\n"));
        }
        out.push_str(&unproved(self.unproved));
        if by_users > 0 {
            // An update of what is missing gives up its protection.
            let when = if is_damaged { "when the rest is mended, " } else { "" };
            out.push_str(&format!(
                "what was edited or moved stays so; {when}to protect it as it is now:\n  {update}\n\
                 to make it what it was, and keep what that writes over:\n  fec repair --revert --undo FILE {sidecar}\n"
            ));
        }
        let WorstSet { used, of, one_piece_bytes } = self.worst_set;
        out.push_str(&format!(
            "about {one_piece_bytes} more bytes in a row could be lost and mended ({used} of {of} recovery blocks are needed \
             already where most is lost)\n"
        ));
    }
}

impl Scrub {
    fn describe(&self) -> String {
        let mut out = format!("checked {} bytes of the files and the sidecar", self.looked_at_bytes);
        if self.looked_at_files > 0 {
            out.push_str(&format!(", all of {}", count(self.looked_at_files, "file", "files")));
        }
        out.push('\n');
        if self.due_files > 0 {
            out.push_str(&format!("{} left to check\n", count(self.due_files, "file is", "files are")));
        }
        if let Some(oldest) = self.oldest_seconds {
            let (count_of, one, several) = match oldest {
                0..7200 => (oldest / 60 + 1, "minute", "minutes"),
                7200..172_800 => (oldest / 3600 + 1, "hour", "hours"),
                _ => (oldest / 86_400 + 1, "day", "days"),
            };
            let within = count(count_of, one, several);
            out.push_str(&format!("everything was checked within the last {within}\n"));
        }
        if self.damaged_before > 0 {
            let files = count(self.damaged_before, "file was", "files were");
            out.push_str(&format!("{files} damaged at the last check, and not checked now\n"));
        }
        if self.sidecar_was_damaged {
            out.push_str("the sidecar was damaged at the last check, and not checked now\n");
        }
        out
    }
}

/// The sentence about edited files that may be rotten instead.
pub(crate) fn unproved(count_of: u64) -> String {
    match count_of {
        0 => String::new(),
        some => format!(
            "{} the size and time that the sidecar records, and other bytes: damage, or an edit; nothing that was given \
             proves which\n",
            count(some, "edited file has", "edited files have")
        ),
    }
}

/// A number with its noun.
pub(crate) fn count(count: u64, one: &str, several: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {several}") }
}

/// The damaged ranges of a file, as text.
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
            format!(
                ": bytes {} and {}, {} in all",
                first.join(", "),
                counted(more, "more place"),
                counted(damage.bytes(), "byte")
            )
        }
    }
}

//! Reports about protected files and their sidecar.

use crate::say::advice::{Advice, describe_renamed, give_up};
use crate::say::details::{Details, count, ranges};
use crate::say::failure::NOT_ALLOWED;
use crate::say::not_protected::NotProtected;
use crate::say::policy::Policy;
use crate::say::protected::Protected;
use crate::say::scrub::Scrub;
use crate::say::signed::SignedBy;
use crate::say::spare::spare;
use crate::say::state::Margin;
use fec_base::names::{bytes, hex, show, show_bytes};
use fec_keys::sign::Signed;
use fec_sidecar::examine::{EntryReport, Examined, Scope, Selection, State};
use fec_sidecar::scrub::Scrubbed;
use fec_sidecar::{Proof, Sidecar};
use serde::Serialize;
use std::time::Instant;

/// The final report of `verify` for a sidecar, as text and JSON.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    form: &'static str,
    /// The part that was examined: `all`, `quick`, `sidecar`, `part`, or `selected` for paths that were named.
    scope: &'static str,
    sidecar: String,
    pub(crate) root: String,
    /// The signer of the root, if that was asked for.
    pub(crate) signed_by: Option<SignedBy>,
    generation: u64,
    intact: bool,
    mendable: bool,
    /// Folders that have other names now than the sidecar says, in pairs of the old and the new name.
    renamed: Vec<(String, String)>,
    pub(crate) entries: u64,
    #[serde(skip)]
    protected: Protected,
    /// True if a root or a signature was asked for.
    #[serde(skip)]
    is_proved: bool,
    files: Vec<Entry>,
    /// Entries that --ignore has left out of `files`. They are not intact, and do not count in `intact`.
    left_out: u64,
    /// Files with their bytes and another time, or other traces of a writer.
    touched: u64,
    /// Entries in `files` that count as edited but may be rotten: nothing proves which.
    unproved: u64,
    #[serde(skip)]
    advice: Advice,
    #[serde(flatten)]
    not_protected: NotProtected,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<Policy>,
    /// The option of an update that gives up what is missing.
    #[serde(skip)]
    pruned: &'static str,
    /// The number of recovery shards.
    recovery: u64,
    recovery_damaged: u64,
    /// Recovery shards that are intact, but not where they should be.
    recovery_displaced: u64,
    sidecar_damage: Vec<String>,
    worst_set: WorstSet,
    /// The piece that could be lost, and mended.
    margin: Margin,
    /// Bytes of damaged and missing files that cannot be mended.
    lost_bytes: u64,
    /// True if edited files could be made what they were, too.
    revertible: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    scrub: Option<Scrub>,
    seconds: f64,
}

/// The set that has the fewest recovery shards to spare.
#[derive(Debug, Serialize)]
struct WorstSet {
    used: u64,
    of: u64,
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
        State::Mode => "mode",
        State::Rotten => "rotten",
        State::Changed => "changed",
        State::Edited => "edited",
        State::Shifted => "shifted",
        State::Moved => "moved",
        State::MovedDamaged => "moved and damaged",
        State::Missing => "missing",
        State::Gone => "gone",
        State::Unreadable => "unreadable",
        State::Changing => "changing",
    }
}

/// The states of entries that are not intact, the worst first.
const STATES: [State; 11] = [
    State::Rotten,
    State::Unreadable,
    State::MovedDamaged,
    State::Missing,
    State::Changed,
    State::Changing,
    State::Edited,
    State::Shifted,
    State::Moved,
    State::Gone,
    State::Mode,
];

impl Report {
    pub(crate) fn new(
        (sidecar, signed, advice): (&Sidecar, Option<&Signed>, Advice),
        examined: &Examined,
        (scope, selection): (Scope, Option<&Selection>),
        scrubbed: Option<&Scrubbed>,
        started: Instant,
    ) -> Report {
        let protected = Protected::of(sidecar, selection);
        let container = examined.container_damaged;
        let container = container.then(|| "the container that it is sealed in is damaged".to_owned());
        Report {
            form: "sidecar",
            scope: match scope {
                _ if selection.is_some() => "selected",
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
            renamed: advice.renamed.clone(),
            entries: protected.entries(),
            protected,
            is_proved: sidecar.proof() != Proof::Nothing,
            left_out: examined.left_out,
            touched: examined.touched,
            files: examined.entries.iter().map(|report| Entry::new(sidecar, report)).collect(),
            unproved: examined.unproved,
            advice,
            not_protected: NotProtected::new(sidecar, examined),
            policy: Policy::of(sidecar),
            pruned: Policy::pruned(&sidecar.stats().policy),
            recovery: examined.recovery,
            recovery_damaged: examined.recovery_damaged,
            recovery_displaced: examined.recovery_displaced,
            sidecar_damage: examined.sidecar_damage.iter().cloned().chain(container).collect(),
            worst_set: WorstSet { used: examined.margin.used, of: examined.margin.of },
            margin: Margin::of_spare(&examined.margin.spare),
            lost_bytes: examined.margin.damaged_bytes,
            revertible: examined.is_revertible(),
            scrub: scrubbed.map(Scrub::new),
            seconds: started.elapsed().as_secs_f64(),
        }
    }

    /// The verdict, the advice, and below them the entries: a few, or all.
    pub(crate) fn describe(&self, examined: &Examined, is_all: bool) -> String {
        let mut out = String::new();
        out.push_str(&self.counts(examined));
        if self.scope == "selected" {
            // Few were named.
        } else if self.is_nothing_there(examined) {
            out.push_str(
                "nothing is there: is the disk mounted? if the files were moved or copied, name the folder that they are in \
                 with --base\n",
            );
        } else if examined.count(State::Missing) * 2 >= self.entries {
            out.push_str("many files are missing: is the disk mounted?\n");
        }
        out.push_str(&self.not_protected.describe(&self.advice.update, is_all));
        out.extend(self.policy.as_ref().map(|policy| policy.examined(is_all)));
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
        out.push_str(&self.list(examined, is_all));
        out
    }

    fn is_nothing_there(&self, examined: &Examined) -> bool {
        self.files.len() as u64 == self.entries && examined.count(State::Missing) == self.entries
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
        let renamed = self.advice.renamed.iter().map(|(from, to)| format!("{from} is {to} now"));
        parts.extend(renamed);
        let was_lost = self.scrub.as_ref().is_some_and(|scrub| scrub.lost_before > 0);
        parts.extend((!self.mendable || was_lost).then(|| "not all of it can be mended".to_owned()));
        parts.extend(self.not_protected.verdict());
        if parts.is_empty() {
            parts.push("the sidecar is intact; the files were not looked at".to_owned());
        }
        parts.join("; ")
    }

    /// How many entries are intact, and how many are in each other state.
    fn counts(&self, examined: &Examined) -> String {
        let all = &self.protected;
        let unsaid = match self.left_out {
            0 => "all there, with their sizes and times".to_owned(),
            left_out => format!("{left_out} left unsaid"),
        };
        match self.files.len() {
            0 if self.scope == "sidecar" => String::new(),
            0 if self.scope == "quick" => format!("{all}: {unsaid}; their contents were not read\n"),
            0 if self.scope == "part" => format!("{all}: {unsaid}; what was read is intact\n"),
            0 if self.scope == "selected" && self.left_out == 0 => {
                format!("{all}: all intact; nothing else was looked at\n")
            }
            0 if self.left_out > 0 => format!("{all}: {unsaid}; the others are intact\n"),
            0 => format!("{all}: all intact\n"),
            _ => {
                let counts = STATES.map(|state| (examined.count(state), word(state)));
                let counts: Vec<String> = counts
                    .iter()
                    .filter(|(count, _)| *count > 0)
                    .map(|(n, word)| format!("{n} {word}"))
                    .collect();
                format!("{all}: {}\n", counts.join(", "))
            }
        }
    }

    /// The entries that are not intact, the worst first, and what is wrong with the sidecar: ten of each, or all.
    fn list(&self, examined: &Examined, is_all: bool) -> String {
        let line = |(entry, report): (&Entry, &EntryReport)| {
            let place = match (&entry.cause, &entry.moved_to, report.state) {
                (Some(cause), ..) => format!(": {cause}"),
                (None, Some(to), State::MovedDamaged) => {
                    format!(": it is now {to}{}", ranges(&report.damage, entry.state).replacen(':', ",", 1))
                }
                (None, Some(to), _) => format!(": it is {to}"),
                (None, None, State::Changed) => {
                    format!(
                        "{}; somebody wrote to it, and kept its time",
                        ranges(&report.damage, entry.state)
                    )
                }
                (None, None, State::Rotten) if report.is_by_policy => {
                    format!("{}; it is written once", ranges(&report.damage, entry.state))
                }
                (None, None, State::Mode) => ": its owner's right to execute it is another".to_owned(),
                (None, None, _) if report.may_be_damage => {
                    format!("{}; it may be damage", ranges(&report.damage, entry.state))
                }
                (None, None, _) => ranges(&report.damage, entry.state),
            };
            format!("{:10} {}{place}", entry.state, entry.path)
        };
        let mut out = String::new();
        for state in STATES {
            let mut details = Details::default();
            let of_state =
                self.files.iter().zip(&examined.entries).filter(|(_, report)| report.state == state);
            details.add(
                of_state.filter(|_| state != State::Mode || !self.keeps_no_permissions(examined)).map(line),
            );
            out.push_str(&details.describe(is_all));
        }
        let mut details = Details::default();
        details.add(self.sidecar_damage.iter().map(|damage| format!("the sidecar: {damage}")));
        out + &details.describe(is_all)
    }

    /// Tells whether all files differ in the right to execute them: then their file system keeps no permissions.
    fn keeps_no_permissions(&self, examined: &Examined) -> bool {
        examined.count(State::Mode) == self.protected.files
    }

    fn describe_what_to_do(&self, examined: &Examined, out: &mut String) {
        let sidecar = &self.advice.named;
        let denied = examined.denied().count();
        if denied > 0 {
            let entries = count(denied as u64, "entry", "entries");
            out.push_str(&format!("permission denied for {entries}; to look at all, {NOT_ALLOWED}\n"));
        }
        out.push_str(&describe_renamed(&self.advice.renamed, &self.advice.update));
        if !self.mendable && self.is_nothing_there(examined) {
            return;
        }
        if !self.mendable {
            let lost = bytes(self.lost_bytes);
            out.push_str(&match examined.is_partly_mendable() {
                true => format!(
                    "{lost} of the files cannot be mended; to mend what can be:\n  fec repair --partial {sidecar}\n"
                ),
                false => format!(
                    "{lost} of the files cannot be mended; if there is a copy of them elsewhere, as they were:\n  \
                     fec repair --from URL {sidecar}\n"
                ),
            });
            out.push_str(&give_up(examined, &format!("{}{}", self.advice.update, self.pruned)));
            return;
        }
        let damaged =
            examined.entries.iter().filter(|report| report.state.is_damage() && !report.is_denied());
        let is_damaged = damaged.count() > 0 || !examined.sidecar_is_intact();
        if is_damaged {
            out.push_str(&format!("what is damaged can be mended:\n  fec repair {sidecar}\n"));
            out.push_str(&give_up(examined, &format!("{}{}", self.advice.update, self.pruned)));
        }
        out.push_str(&unproved(self.unproved));
        self.describe_edits(examined, is_damaged, out);
        self.describe_traces(examined, out);
        let is_read = self.scope == "all" || self.scope == "sidecar";
        if is_read && self.revertible {
            out.push_str(&format!("it can mend {}\n", spare(&examined.margin.spare, is_damaged)));
        }
    }

    /// Advice about entries that somebody changed, or seems to have changed.
    fn describe_edits(&self, examined: &Examined, is_damaged: bool, out: &mut String) {
        let update = &self.advice.update;
        let changing = examined.count(State::Changing);
        if changing > 0 {
            let files = count(changing, "file was", "files were");
            out.push_str(&format!("{files} written to while it was looked at: look again later\n"));
        }
        let slight = examined.entries.iter().filter(|report| report.may_be_damage).count() as u64;
        if slight > 0 {
            let files = count(slight, "edited file has its", "edited files have their");
            out.push_str(&format!("{files} size and may be damaged\n"));
        }
        // An update of what is missing gives up its protection.
        let when = if is_damaged { "when the rest is mended, " } else { "" };
        let changed = examined.count(State::Changed);
        if changed > 0 {
            let files = count(
                changed,
                "file was written to and has its old time",
                "files were written to and have their old times",
            );
            out.push_str(&format!("{files}: damage, or an edit that hides\n"));
        }
        let is_doubtful = |report: &EntryReport| report.state == State::Changed || report.is_unclear;
        if examined.entries.iter().any(is_doubtful) {
            out.push_str(&format!("look at it; {}", self.revert()));
            // An update takes on trust only what -f says. Under a root it takes no old time with other bytes, and
            // beside damage -f would give up what is missing.
            let (how, force) = match (examined.is_copy(), is_damaged || self.is_proved) {
                (true, _) => ("protect", " -f"),
                (false, true) => ("give it another time with touch, and then protect", ""),
                (false, false) => ("protect", " -f"),
            };
            out.push_str(&format!("if it is as it should be, {when}{how} it so:\n  {update}{force}\n"));
            return;
        }
        let gone = examined.count(State::Gone);
        if gone > 0 {
            let entries = count(gone, "entry is", "entries are");
            let sidecar = &self.advice.named;
            out.push_str(&format!(
                "{entries} gone, as the policy allows; {when}to take note of that:\n  {update}\nto bring one back, name \
                 it:\n  fec repair {sidecar} PATH\n"
            ));
        }
        let states = [State::Edited, State::Shifted, State::Moved];
        if states.into_iter().all(|state| examined.count(state) == 0) {
            return;
        }
        out.push_str(&format!(
            "what was edited or moved stays so; {when}to protect it as it is now:\n  {update}\n"
        ));
        out.push_str(&self.revert());
    }

    /// Advice on how to undo edits, if that can be done.
    fn revert(&self) -> String {
        match self.revertible {
            true => format!(
                "to make it what it was, and keep what that writes over:\n  fec repair --revert --undo FILE {}\n",
                self.advice.named
            ),
            false => "more was edited than could be made what it was\n".to_owned(),
        }
    }

    /// The traces in files with all their bytes that an update should record.
    fn describe_traces(&self, examined: &Examined, out: &mut String) {
        if self.keeps_no_permissions(examined) && self.protected.files > 0 {
            out.push_str(
                "this file system keeps no permissions: every file differs in the right to execute it\n",
            );
        }
        // An update is advised already where something else differs.
        if self.scope == "all" && self.touched > 0 && self.files.is_empty() && self.left_out == 0 {
            let files =
                count(self.touched, "file has another time or inode", "files have other times or inodes");
            out.push_str(&format!(
                "{files} and the same bytes; to record that, so that damage can be told from edits:\n  {}\n",
                self.advice.update
            ));
        }
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

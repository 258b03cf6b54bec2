//! The final report of `repair` for a sidecar, as text and JSON.

use crate::run::target::quoted;
use crate::say::advice::{Advice, describe_renamed};
use crate::say::details::count;
use crate::say::failure::{NOT_ALLOWED, help};
use crate::say::mirrors::Fetched;
use crate::say::sidecar::{unproved, word};
use crate::say::signed::SignedBy;
use fec_base::error::Error;
use fec_base::io::base::Base;
use fec_base::names::{hex, show, show_bytes};
use fec_keys::sign::Signed;
use fec_sidecar::examine::{EntryReport, State};
use fec_sidecar::repair::{LeftOut, Mend, Mended, Part};
use fec_sidecar::{Sidecar, SidecarError};
use serde::Serialize;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

/// Most entries that are listed. Further entries are only counted.
const LINES: usize = 50;
/// The words of a repair that finds no damage.
pub(crate) const NOTHING: &str = "all is intact: nothing to repair";

/// The entries that were mended, and those that were left.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    form: &'static str,
    pub(crate) sidecar: String,
    pub(crate) root: String,
    /// The signer of the root, if that was asked for.
    signed_by: Option<SignedBy>,
    /// True if anything was written; otherwise it only would be.
    written: bool,
    mended: Vec<Entry>,
    /// Entries that somebody edited or moved, and that stay so.
    left: Vec<Entry>,
    failed: Vec<Entry>,
    /// Entries, or attributes of entries, that the target's file system cannot hold.
    left_out: Vec<OutOf>,
    /// Why the system did not let the first failed entry be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<String>,
    #[serde(skip)]
    cause_help: Option<String>,
    #[serde(skip)]
    is_denied: bool,
    /// The sidecar and options of a command in advice, and whether everything is mended that can be. `None` if all was
    /// written to another folder.
    #[serde(skip)]
    again: Option<(String, bool)>,
    /// The command that protects what was edited, if more was edited than could be made what it was.
    #[serde(skip)]
    update: Option<String>,
    /// The command that records the inodes and times which mending gave to files, if all is mended now.
    #[serde(skip)]
    record: Option<String>,
    #[serde(skip)]
    renamed: String,
    /// Entries in `left` that may be rotten instead.
    unproved: u64,
    sidecar_mended: bool,
    /// The reason why a damaged sidecar was not mended.
    #[serde(skip_serializing_if = "Option::is_none")]
    sidecar_left: Option<String>,
    #[serde(skip)]
    sidecar_help: Option<String>,
    written_bytes: u64,
    /// The part of copies elsewhere, if any were named.
    #[serde(skip_serializing_if = "Option::is_none")]
    fetched: Option<Fetched>,
    /// The archive of overwritten files, if any were overwritten.
    #[serde(skip_serializing_if = "Option::is_none")]
    undo: Option<String>,
    #[serde(skip)]
    undo_with: Option<(String, String)>,
    /// Commands that put what was restored in the place of a damaged file that was moved.
    #[serde(skip)]
    put_in_place: Vec<String>,
    #[serde(skip)]
    entries: usize,
    seconds: f64,
}

#[derive(Debug, Serialize)]
struct Entry {
    path: String,
    was: &'static str,
}

/// An entry or attribute that the target's file system cannot hold.
#[derive(Debug, Serialize)]
struct OutOf {
    path: String,
    /// `entry`, `permissions` or `time`.
    what: &'static str,
    cause: String,
}

impl Entry {
    fn what_was_done(&self) -> &'static str {
        match self.was {
            "missing" | "moved and damaged" => "restored",
            "mode" | "changed" | "changing" | "edited" | "shifted" | "moved" => "reverted",
            _ => "mended",
        }
    }
}

/// Commands that move each restored file to where its damaged copy is.
fn put_in_place(sidecar: &Sidecar, base: &Base, mended: &Mended) -> Vec<String> {
    let found = &mended.found.entries;
    let is_restored = |entry: usize| mended.mended.binary_search(&entry).is_ok();
    let damaged =
        found.iter().filter(|report| report.state == State::MovedDamaged && is_restored(report.entry));
    let home = if base.path() == Path::new(".") { Path::new("") } else { base.path() };
    let path = |path: &[u8]| quoted(&home.join(OsStr::from_bytes(path)));
    let command = |report: &EntryReport| {
        let to = report.moved_to.as_deref()?;
        Some(format!("mv {} {}", path(&sidecar.catalog().entries[report.entry].path), path(to)))
    };
    damaged.filter_map(command).collect()
}

impl Report {
    /// Tells whether anything was mended, or would be.
    pub(crate) fn has_work(&self) -> bool {
        !self.mended.is_empty() || self.sidecar_mended
    }

    pub(crate) fn new(
        (sidecar, signed, advice): (&Sidecar, Option<&Signed>, Advice),
        base: &Base,
        mended: &Mended,
        how: &Mend<'_>,
        started: Instant,
    ) -> Report {
        let found = &mended.found.entries;
        let state = |nth: usize| {
            let at = found.binary_search_by_key(&nth, |report| report.entry).ok()?;
            Some(word(found[at].state))
        };
        let entry = |nth: &usize| Entry {
            path: show_bytes(&sidecar.catalog().entries[*nth].path),
            was: state(*nth).unwrap_or("intact"),
        };
        let out = |out: &LeftOut| OutOf {
            path: show_bytes(&sidecar.catalog().entries[out.entry].path),
            what: match out.what {
                Part::Entry => "entry",
                Part::Permissions => "permissions",
                Part::Time => "time",
            },
            cause: out.cause.to_string(),
        };
        let list = |entries: &[usize]| entries.iter().map(entry).collect();
        let undo = how.undo.filter(|undo| undo.exists());
        let is_whole = mended.failed.is_empty()
            && mended.left.is_empty()
            && mended.left_out.is_empty()
            && mended.sidecar_left.is_none();
        let has_marks = !mended.mended.is_empty() && !sidecar.stats().marks.is_empty();
        let is_recordable = is_whole && has_marks && how.out.is_none() && !how.dry_run;
        Report {
            record: is_recordable.then(|| advice.update.clone()),
            form: "sidecar",
            sidecar: show(sidecar.path()),
            root: hex(&sidecar.root()),
            signed_by: signed.map(SignedBy::new),
            written: !how.dry_run,
            mended: list(&mended.mended),
            left: list(&mended.left),
            failed: list(&mended.failed),
            left_out: mended.left_out.iter().map(out).collect(),
            cause: mended.cause.as_ref().map(ToString::to_string),
            cause_help: mended.cause.as_ref().and_then(|cause| cause_help(cause, sidecar, base, &advice)),
            is_denied: mended.is_denied,
            again: how.out.is_none().then_some((advice.named, how.partial)),
            // A revert would be refused.
            renamed: match how.out {
                None => describe_renamed(&advice.renamed, &advice.update),
                Some(_) => String::new(),
            },
            update: (!mended.found.is_revertible()).then_some(advice.update),
            unproved: if mended.left.is_empty() { 0 } else { mended.found.unproved },
            sidecar_mended: mended.sidecar,
            sidecar_left: mended.sidecar_left.as_ref().map(|error| error.kind.to_string()),
            sidecar_help: mended.sidecar_left.as_ref().and_then(help),
            written_bytes: mended.written,
            fetched: None,
            undo: undo.map(show),
            undo_with: undo.map(|undo| (quoted(undo), quoted(base.path()))),
            put_in_place: match how.out.is_none() && !how.dry_run {
                true => put_in_place(sidecar, base, mended),
                false => Vec::new(),
            },
            entries: sidecar.catalog().entries.len(),
            seconds: started.elapsed().as_secs_f64(),
        }
    }

    /// The report with what copies elsewhere gave.
    pub(crate) fn with(self, fetched: Option<Fetched>) -> Report {
        Report { fetched, ..self }
    }

    /// The entries that are not as they should be, counted in one line.
    pub(crate) fn found(&self) -> String {
        let would = if self.written { "" } else { "would be " };
        let counts = [
            (self.mended.len(), format!("{would}mended")),
            (self.failed.len(), "not mended".to_owned()),
            (self.left.len(), "left as edited, moved or gone".to_owned()),
            (self.left_out.len(), "left out, since the place cannot hold it".to_owned()),
        ];
        let told = counts.iter().filter(|(count, _)| *count > 0);
        let mut parts: Vec<String> = told.map(|(count, what)| format!("{count} {what}")).collect();
        parts.extend(self.sidecar_mended.then(|| format!("the sidecar {would}mended")));
        parts.extend(self.sidecar_left.as_ref().map(|why| format!("the sidecar was left as it is: {why}")));
        if parts.is_empty() { NOTHING.to_owned() } else { parts.join("; ") }
    }

    /// Tells whether anything was mended, or would be.
    pub(crate) fn did(&self) -> bool {
        !self.mended.is_empty() || self.sidecar_mended
    }

    fn list_left_out(&self, out: &mut String) {
        for OutOf { path, what, cause } in self.left_out.iter().take(LINES) {
            let what = if *what == "entry" { String::new() } else { format!("the {what} of ") };
            out.push_str(&format!("  left out {what}{path}: the place cannot hold it ({cause})\n"));
        }
        if self.left_out.len() > LINES {
            out.push_str(&format!("  and {} more left out\n", self.left_out.len() - LINES));
        }
    }

    pub(crate) fn describe(&self) -> String {
        let mut out = String::new();
        let mut list = |entries: &[Entry], what: &dyn Fn(&Entry) -> &'static str, would: &str| {
            for entry in entries.iter().take(LINES) {
                out.push_str(&format!("  {would}{} {} ({})\n", what(entry), entry.path, entry.was));
            }
            if entries.len() > LINES {
                out.push_str(&format!("  and {} more\n", entries.len() - LINES));
            }
        };
        let would = if self.written { "" } else { "would be " };
        list(&self.mended, &Entry::what_was_done, would);
        list(&self.failed, &|_| "not mended", "");
        list(&self.left, &|_| "left", "");
        self.list_left_out(&mut out);
        self.fetched.iter().for_each(|fetched| out.push_str(&fetched.describe()));
        self.describe_mended(would, &mut out);
        if let Some(record) = &self.record {
            out.push_str(&format!("so that the next damage can be told from edits:\n  {record}\n"));
        }
        self.describe_left(&mut out);
        out.push_str(&self.renamed);
        if let Some((undo, base)) = &self.undo_with {
            out.push_str(&format!(
                "what was written over is in {undo}; to put it back:\n  tar -xpf {undo} -C {base}\n"
            ));
        }
        out.push_str(&format!("root {}\n", self.root));
        self.signed_by.iter().for_each(|signed_by| out.push_str(&signed_by.describe()));
        out
    }

    fn describe_mended(&self, would: &str, out: &mut String) {
        let entries = match self.mended.len() as u64 {
            0 => None,
            mended => Some(count(mended, "entry", "entries")),
        };
        let sidecar = self.sidecar_mended.then(|| "the sidecar".to_owned());
        let mended: Vec<String> = entries.into_iter().chain(sidecar).collect();
        if !mended.is_empty() {
            out.push_str(&format!("{would}repaired: {}\n", mended.join(" and ")));
            let missing = self.mended.iter().filter(|entry| entry.was == word(State::Missing)).count();
            if !self.written && missing > 10 && missing * 10 > self.entries {
                out.push_str("many files are missing: is the disk mounted?\n");
            }
        } else if [self.failed.len(), self.left.len(), self.left_out.len()] == [0; 3]
            && self.sidecar_left.is_none()
        {
            out.push_str(NOTHING);
            out.push('\n');
        }
    }

    fn describe_left(&self, out: &mut String) {
        if !self.put_in_place.is_empty() {
            out.push_str(
                "where a file was moved and then damaged, the damaged one stays; if nobody edited it, put the whole one in \
                 its place:\n",
            );
            for command in self.put_in_place.iter().take(LINES) {
                out.push_str(&format!("  {command}\n"));
            }
            if self.put_in_place.len() > LINES {
                out.push_str(&format!("  and {} more\n", self.put_in_place.len() - LINES));
            }
        }
        if let Some(why) = &self.sidecar_left {
            out.push_str(&format!("the sidecar was left as it is: {why}\n"));
            out.extend(self.sidecar_help.as_ref().map(|help| format!("{help}\n")));
        }
        if let Some(cause) = &self.cause {
            out.push_str(&format!("{cause}\n"));
        }
        if let Some(help) = &self.cause_help {
            out.push_str(&format!("{help}\n"));
        } else if self.is_denied {
            out.push_str(&format!("what may not be read or written was left; {NOT_ALLOWED}\n"));
        }
        let gone = word(State::Gone);
        if let Some((named, _)) =
            self.again.as_ref().filter(|_| self.left.iter().any(|entry| entry.was == gone))
        {
            out.push_str(&format!(
                "what is gone, as the policy allows, was left so; to bring one back, name it:\n  fec repair {named} PATH\n"
            ));
        }
        if self.left.iter().any(|entry| entry.was != gone) {
            out.push_str(&unproved(self.unproved));
            let is_clear = self.left.iter().all(|entry| entry.was != word(State::Changed));
            if let (Some(update), Some((named, _))) = (&self.update, &self.again) {
                out.push_str(&match is_clear {
                    true => format!(
                        "more was edited than could be made what it was; to protect it as it is now:\n  {update}\n"
                    ),
                    false => format!("to see what can be done with what was left:\n  fec verify {named}\n"),
                });
            } else if let Some((named, is_partial)) = &self.again {
                let partial = if *is_partial { "--partial " } else { "" };
                out.push_str(&format!(
                    "what was edited or moved was left so; to make it what it was, and keep what that writes over:\n  \
                     fec repair --revert --undo FILE {partial}{named}\n"
                ));
            }
        }
    }
}

/// Advice for the cause why an entry was not mended.
fn cause_help(cause: &Error, sidecar: &Sidecar, base: &Base, advice: &Advice) -> Option<String> {
    if !matches!(cause.cause(), Some(SidecarError::NoList)) {
        return help(cause);
    }
    let copy = advice.named.replacen(&quoted(sidecar.path()), "COPY", 1);
    let base = match copy.contains(" --base ") {
        true => String::new(),
        false => format!(" --base {}", quoted(base.path())),
    };
    Some(format!("copy the sidecar to a folder of yours, and mend by the copy:\n  fec repair {copy}{base}"))
}

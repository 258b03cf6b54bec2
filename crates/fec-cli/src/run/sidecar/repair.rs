//! `fec repair` of a sidecar and what it protects.

use crate::line;
use crate::run::proofs::Proofs;
use crate::run::sidecar::open;
use crate::run::target::{is_dash, quoted};
use crate::say::failure::{Exit, Failure, NOT_ALLOWED, Result, help};
use crate::say::sidecar::{count, unproved, word};
use crate::say::signed::SignedBy;
use crate::settings::{SCHEMA_VERSION, Settings};
use fec_base::io::base::Base;
use fec_base::names::{hex, show, show_bytes};
use fec_keys::sign::Signed;
use fec_sidecar::examine::{State, base_of};
use fec_sidecar::repair::{LeftOut, Mend, Mended, Part, repair};
use fec_sidecar::{Sidecar, SidecarError};
use fecfile::Error;
use serde::Serialize;
use std::path::Path;
use std::time::Instant;

pub(crate) fn run(path: &Path, args: &line::Repair, settings: &Settings) -> Result<Exit> {
    let started = Instant::now();
    if args.undo.as_deref().is_some_and(is_dash) {
        return Err(Failure::usage("repair: --undo needs the name of a file"));
    }
    let bars = settings.bars("repair");
    let context = settings.context(&bars);
    let keys = args.open.keys()?;
    let (sidecar, signed) = open(path, args.root, &args.trusted, keys.as_ref(), settings)?;
    let base = base_of(&sidecar, args.base.as_deref())?;
    let how = Mend {
        revert: args.revert,
        partial: args.partial,
        out: args.output.as_deref(),
        undo: args.undo.as_deref(),
        dry_run: args.dry_run,
        sync: settings.library.sync,
    };
    let proofs = Proofs::of_repair(args, settings);
    let named = quoted(path) + &proofs.options(sidecar.was_sealed());
    let mended = repair(&sidecar, &base, &how, &context).map_err(|error| explain(error, &named, proofs))?;
    let report = Report::new((&sidecar, signed.as_ref(), named), &base, &mended, args, started);
    settings.report(&report, &report.describe(), false)?;
    if let Some(contradiction) = mended.contradiction {
        return Err(contradiction.into());
    }
    let is_mended = mended.failed.is_empty() && mended.found.is_mendable();
    let why_left = mended.sidecar_left.as_ref().filter(|_| is_mended);
    let exit = match (why_left, is_mended, mended.left.is_empty()) {
        (Some(why), ..) => why.class().into(),
        _ if mended.is_denied => Exit::Io,
        (_, false, _) => Exit::Lost,
        _ if !mended.left_out.is_empty() => Exit::Mendable,
        _ if args.dry_run && !mended.found.is_intact() => Exit::Mendable,
        (_, _, false) if args.output.is_none() => Exit::Mendable,
        _ => Exit::Done,
    };
    settings.report_damage(exit, || report.verdict());
    Ok(exit)
}

/// The failure of a repair, with advice that names the sidecar and its options.
fn explain(error: Error, named: &str, proofs: Proofs<'_>) -> Failure {
    let is_beyond = matches!(error.cause(), Some(SidecarError::BeyondRepair(_)));
    let failure = Failure::from(error);
    match is_beyond {
        true => failure.help(format!(
            "to see what is lost:\n  fec verify {named}\nto mend what can be mended:\n  \
             fec repair --partial{} {named}",
            proofs.how(&["--partial", "--dry-run"])
        )),
        false => failure,
    }
}

/// Most entries that are listed. Further entries are only counted.
const LINES: usize = 50;

/// The final report of `repair` for a sidecar, as text and JSON.
#[derive(Debug, Serialize)]
struct Report {
    schema_version: u32,
    command: &'static str,
    form: &'static str,
    sidecar: String,
    root: String,
    /// Who signed the root, if that was asked for.
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
    is_denied: bool,
    /// The sidecar and options of a command in advice, and whether everything is mended that can be. `None` if all was
    /// written to another folder.
    #[serde(skip)]
    again: Option<(String, bool)>,
    /// Entries in `left` that may be rotten instead.
    unproved: u64,
    sidecar_mended: bool,
    /// The reason why a damaged sidecar was not mended.
    #[serde(skip_serializing_if = "Option::is_none")]
    sidecar_left: Option<String>,
    #[serde(skip)]
    sidecar_help: Option<String>,
    written_bytes: u64,
    /// The archive of overwritten files, if any were overwritten.
    #[serde(skip_serializing_if = "Option::is_none")]
    undo: Option<String>,
    #[serde(skip)]
    undo_with: Option<(String, String)>,
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
            "missing" => "restored",
            "edited" | "shifted" | "moved" => "reverted",
            _ => "mended",
        }
    }
}

impl Report {
    fn new(
        (sidecar, signed, named): (&Sidecar, Option<&Signed>, String),
        base: &Base,
        mended: &Mended,
        args: &line::Repair,
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
        let undo = args.undo.as_ref().filter(|undo| undo.exists());
        Report {
            schema_version: SCHEMA_VERSION,
            command: "repair",
            form: "sidecar",
            sidecar: show(sidecar.path()),
            root: hex(&sidecar.root()),
            signed_by: signed.map(SignedBy::new),
            written: !args.dry_run,
            mended: list(&mended.mended),
            left: list(&mended.left),
            failed: list(&mended.failed),
            left_out: mended.left_out.iter().map(out).collect(),
            cause: mended.cause.as_ref().map(ToString::to_string),
            is_denied: mended.is_denied,
            again: args.output.is_none().then_some((named, args.partial)),
            unproved: if mended.left.is_empty() { 0 } else { mended.found.unproved },
            sidecar_mended: mended.sidecar,
            sidecar_left: mended.sidecar_left.as_ref().map(|error| error.kind.to_string()),
            sidecar_help: mended.sidecar_left.as_ref().and_then(help),
            written_bytes: mended.written,
            undo: undo.map(show),
            undo_with: undo.map(|undo| (quoted(undo), quoted(base.path()))),
            entries: sidecar.catalog().entries.len(),
            seconds: started.elapsed().as_secs_f64(),
        }
    }

    /// The entries that are not as they should be, counted in one line.
    fn verdict(&self) -> String {
        let would = if self.written { "" } else { "would be " };
        let counts = [
            (self.mended.len(), format!("{would}mended")),
            (self.failed.len(), "not mended".to_owned()),
            (self.left.len(), "left as edited or moved".to_owned()),
            (self.left_out.len(), "left out, since the place cannot hold it".to_owned()),
        ];
        let told = counts.iter().filter(|(count, _)| *count > 0);
        let mut parts: Vec<String> = told.map(|(count, what)| format!("{count} {what}")).collect();
        parts.extend(self.sidecar_mended.then(|| format!("the sidecar {would}mended")));
        parts.extend(self.sidecar_left.as_ref().map(|why| format!("the sidecar was left as it is: {why}")));
        format!("{}: {}", self.sidecar, parts.join("; "))
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

    fn describe(&self) -> String {
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
        self.describe_mended(would, &mut out);
        self.describe_left(&mut out);
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
            out.push_str("all is intact: nothing to repair\n");
        }
    }

    fn describe_left(&self, out: &mut String) {
        if let Some(why) = &self.sidecar_left {
            out.push_str(&format!("the sidecar was left as it is: {why}\n"));
            out.extend(self.sidecar_help.as_ref().map(|help| format!("{help}\n")));
        }
        if let Some(cause) = &self.cause {
            out.push_str(&format!("{cause}\n"));
        }
        if self.is_denied {
            out.push_str(&format!("what may not be read or written was left; {NOT_ALLOWED}\n"));
        }
        if !self.left.is_empty() {
            out.push_str(&unproved(self.unproved));
            if let Some((named, is_partial)) = &self.again {
                let partial = if *is_partial { "--partial " } else { "" };
                out.push_str(&format!(
                    "what was edited or moved was left so; to make it what it was, and keep what that writes over:\n  \
                     fec repair --revert --undo FILE {partial}{named}\n"
                ));
            }
        }
    }
}

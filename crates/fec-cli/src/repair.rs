//! `fec repair`: makes damaged and missing shard files, or a damaged container, anew.

use crate::args;
use crate::failure::{Exit, Failure, Result, misuse};
use crate::fits::mode_of;
use crate::fits::table::{CONTAINER, SHARDS, SIDECAR, STORES};
use crate::inputs::{Clue, Inputs, check_kinds, inputs};
use crate::settings::{SCHEMA_VERSION, Settings};
use crate::sidecar;
use crate::sign::SignedBy;
use crate::stores;
use crate::target::{is_dash, made_of_inputs, quoted};
use fecfile::Context;
use fecfile::archive::Archive;
use fecfile::forms::Beginning;
use fecfile::names::{hex, show};
use fecfile::repair::{Repair, Repaired};
use fecfile::sidecar::Sidecar;
use fecfile::sign::Signed;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Instant;

pub(crate) fn run(args: &args::Repair, settings: &Settings) -> Result<Exit> {
    if !args.stores.from.is_empty() {
        settings.given.check(STORES)?;
        return stores::repair(args, settings);
    }
    settings.given.only_for(&[SHARDS, CONTAINER, SIDECAR])?;
    if let Some(path) = sidecar::named(&args.inputs, &args.open)? {
        settings.given.check(SIDECAR)?;
        return sidecar::repair::run(path, args, settings);
    }
    let only = settings.given.only_for(&[SHARDS, CONTAINER]);
    only.map_err(|why| sidecar::refuse_options(&args.inputs, "repair", why))?;
    let started = Instant::now();
    let needs_files =
        || Failure::usage("repair: a pipe cannot be repaired").help("name files, or a folder of them");
    if args.inputs.iter().chain(&args.output).any(|path| is_dash(path)) {
        return Err(needs_files());
    }
    check_kinds(&args.inputs, "repair")?;
    check_sidecars(args)?;
    let Inputs::Objects(input) = inputs(&args.inputs, "repair")? else { return Err(needs_files()) };
    let bars = settings.bars("repair");
    let context = Context { settings: settings.library, progress: &bars };
    let found = match sidecar::trust(&args.inputs, &args.trusted)? {
        None => Archive::open(&input, args.root, &context),
        Some(trust) => Archive::open_signed(&input, args.root, &trust, &context),
    };
    let clue = Clue::of((&input, &args.inputs), Beginning::Other, "repair");
    let archive = found.map_err(|error| sidecar::meant(clue.explain(error), &args.inputs, "repair"))?;
    settings.given.check(mode_of(archive.form()))?;
    let policy = made_of_inputs(settings.policy(args.force), &args.inputs);
    let how = Repair { out: args.output.as_deref(), policy, dry_run: args.dry_run };
    let repaired = archive.repair(how, &context)?;
    let report = Report::new(&repaired, archive.signed(), started);
    settings.report(&report, &report.describe(), false)?;
    let exit = if args.dry_run && !repaired.files.is_empty() { Exit::Mendable } else { Exit::Done };
    settings.report_damage(exit, || format!("{}: {}", show(&args.inputs[0]), report.what()));
    Ok(exit)
}

/// Refuses folders that hold sidecars beside shard files, unless a root tells which is meant: the sidecars would be
/// ignored.
fn check_sidecars(args: &args::Repair) -> Result<()> {
    if args.root.is_some() {
        return Ok(());
    }
    for folder in args.inputs.iter().filter(|path| path.is_dir()) {
        let names = fecfile::io::list(folder).map_err(|e| Failure::io("read", folder, e))?;
        let is_named = |path: &PathBuf| path.extension().is_some_and(|ending| ending == sidecar::ENDING);
        let mut files = names.into_iter().map(|name| folder.join(name)).filter(is_named);
        if let Some(path) = files.find(|path| path.is_file() && Sidecar::starts(path).unwrap_or(false)) {
            let beside = sidecar::beside_folders(std::slice::from_ref(folder)).pop();
            let path = quoted(&beside.unwrap_or(path));
            return Err(misuse(
                "repair",
                folder,
                &format!("a sidecar is here, {path}, which is repaired by itself"),
            )
            .help(format!(
                "name what is meant: shard files by their root, with --root HEX, or\n  fec repair {path}"
            )));
        }
    }
    Ok(())
}

/// Most files that are listed. Further files are only counted.
const LINES: usize = 20;

/// The final report of `repair`, as text and JSON.
#[derive(Debug, Serialize)]
struct Report {
    schema_version: u32,
    command: &'static str,
    form: &'static str,
    root: String,
    /// Who signed the root, if that was asked for.
    signed_by: Option<SignedBy>,
    /// True if the files were written; otherwise they only would be.
    written: bool,
    files: Vec<String>,
    of: usize,
    seconds: f64,
}

impl Report {
    fn new(repaired: &Repaired, signed: Option<&Signed>, started: Instant) -> Report {
        Report {
            schema_version: SCHEMA_VERSION,
            command: "repair",
            form: repaired.form.name(),
            root: hex(&repaired.root),
            signed_by: signed.map(SignedBy::new),
            written: repaired.written,
            files: repaired.files.iter().map(show).collect(),
            of: repaired.of,
            seconds: started.elapsed().as_secs_f64(),
        }
    }

    /// The outcome in one line.
    fn what(&self) -> String {
        let what = match (self.form, self.of) {
            ("container", _) => "the container".to_owned(),
            (_, of) => format!("{} of {of} shard files", self.files.len()),
        };
        match (self.files.is_empty(), self.written) {
            (true, _) => "all is intact: nothing to repair".to_owned(),
            (false, true) => format!("made anew: {what}"),
            (false, false) => format!("would be made anew: {what}"),
        }
    }

    fn describe(&self) -> String {
        let mut out = self.what() + "\n";
        self.files.iter().take(LINES).for_each(|file| out.push_str(&format!("  {file}\n")));
        if self.files.len() > LINES {
            out.push_str(&format!("  and {} more\n", self.files.len() - LINES));
        }
        out.push_str(&format!("root {}\n", self.root));
        self.signed_by.iter().for_each(|signed_by| out.push_str(&signed_by.describe()));
        out
    }
}

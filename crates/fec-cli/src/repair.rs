//! `fec repair`: makes damaged and missing shard files, or a damaged container, anew.

use crate::args;
use crate::failure::{Exit, Failure, Result, misuse};
use crate::fits::mode_of;
use crate::fits::table::{CONTAINER, SHARDS, SIDECAR, STORES};
use crate::inputs::{Clue, Inputs, check_kinds, inputs};
use crate::proofs::{Proofs, has_root};
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
use fecfile::sign::Signed;
use fecfile::survey::survey;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Instant;

pub(crate) fn run(args: &args::Repair, settings: &Settings) -> Result<Exit> {
    if !args.stores.from.is_empty() {
        settings.given.check(STORES)?;
        return stores::repair(args, settings);
    }
    settings.given.only_for(&[SHARDS, CONTAINER, SIDECAR])?;
    let found = of_root(args, settings)?;
    let named = found.as_ref().map_or(&args.inputs[..], std::slice::from_ref);
    if let Some(path) = sidecar::named(named, &args.open)? {
        settings.given.check(SIDECAR)?;
        return sidecar::repair::run(path, args, settings);
    }
    let only = settings.given.only_for(&[SHARDS, CONTAINER]);
    only.map_err(|why| sidecar::refuse_options(named, "repair", why))?;
    let started = Instant::now();
    let needs_files =
        || Failure::usage("repair: a pipe cannot be repaired").help("name files, or a folder of them");
    if args.inputs.iter().chain(&args.output).any(|path| is_dash(path)) {
        return Err(needs_files());
    }
    let proofs = Proofs::of_repair(args, settings);
    check_kinds(named, "repair", proofs)?;
    check_sidecars(args, proofs)?;
    let Inputs::Objects(input) = inputs(named, "repair")? else { return Err(needs_files()) };
    let bars = settings.bars("repair");
    let context = Context { settings: settings.library, progress: &bars };
    let found = match sidecar::trust(named, &args.trusted)? {
        None => Archive::open(&input, args.root, &context),
        Some(trust) => Archive::open_signed(&input, args.root, &trust, &context),
    };
    let clue = Clue::of((&input, named), Beginning::Other, "repair", proofs);
    let archive = found.map_err(|error| sidecar::meant(clue.explain(error), named, "repair", proofs))?;
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

/// The sidecar with the root that was asked for, in a named folder or beside it.
fn of_root(args: &args::Repair, settings: &Settings) -> Result<Option<PathBuf>> {
    let Some(root) = args.root.filter(|_| args.inputs.iter().any(|path| path.is_dir())) else {
        return Ok(None);
    };
    // A path that is not there, or a folder that cannot be listed, has its own error later.
    let Ok(survey) = survey(&args.inputs) else { return Ok(None) };
    // The copy beside the files comes first: it needs no --base.
    let mut sidecars = sidecar::beside_folders(&args.inputs).into_iter().chain(survey.sidecars);
    match sidecars.find(|path| has_root(path, root, settings)) {
        Some(path) if args.inputs.len() > 1 => {
            let repair = Proofs::of_repair(args, settings).command("repair", &path);
            Err(misuse("repair", &path, "it is a sidecar with this root, and is named by itself")
                .help(format!("name nothing else:\n  {repair}")))
        }
        found => Ok(found),
    }
}

/// Refuses folders that hold sidecars beside shard files, unless a root tells which is meant: the sidecars would be
/// ignored.
fn check_sidecars(args: &args::Repair, proofs: Proofs<'_>) -> Result<()> {
    if args.root.is_some() {
        return Ok(());
    }
    for folder in args.inputs.iter().filter(|path| path.is_dir()) {
        let names = fecfile::io::list(folder).map_err(|e| Failure::io("read", folder, e))?;
        let is_named = |path: &PathBuf| path.extension().is_some_and(|ending| ending == sidecar::ENDING);
        let mut files = names.into_iter().map(|name| folder.join(name)).filter(is_named);
        if let Some(path) = files.find(|path| path.is_file() && sidecar::is_one(path).unwrap_or(false)) {
            let beside = sidecar::beside_folders(std::slice::from_ref(folder)).pop();
            let path = beside.unwrap_or(path);
            let why = format!("a sidecar is here, {}, which is repaired by itself", quoted(&path));
            let repair = proofs.command("repair", &path);
            return Err(misuse("repair", folder, &why).help(format!(
                "name what is meant: shard files by their root, with --root HEX, or\n  {repair}"
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

//! `fec repair`: makes damaged and missing shard files, or a damaged container, anew.

use crate::line;
use crate::plan::given::mode_of;
use crate::plan::options::{CONTAINER, SHARDS, SIDECAR, STORES};
use crate::run::inputs::{Clue, Inputs, check_kinds, inputs};
use crate::run::proofs::{Proofs, has_root};
use crate::run::sidecar;
use crate::run::stores;
use crate::run::survey::survey;
use crate::run::target::{ENDING, is_dash, made_of_inputs, quoted};
use crate::say::failure::{Exit, Failure, Result, misuse};
use crate::say::signed::SignedBy;
use crate::settings::{SCHEMA_VERSION, Settings};
use fec_base::error::Action;
use fec_base::names::{hex, show};
use fec_core::format::seal::SealedKind;
use fec_sidecar::Sidecar;

use fecfile::forms::Beginning;
use fecfile::{Archive, Repair, Repaired, Wanted};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Instant;

pub(crate) fn run(args: &line::Repair, settings: &Settings) -> Result<Exit> {
    if !args.stores.from.is_empty() {
        settings.given.check(STORES)?;
        return stores::repair(args, settings);
    }
    settings.given.only_for(&[SHARDS, CONTAINER, SIDECAR])?;
    let found = of_root(args, settings)?;
    let path = match &found {
        Some(path) => Some(path.as_path()),
        None => sidecar::named(&args.inputs, &args.open)?,
    };
    if let Some(path) = path {
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
    let proofs = Proofs::of_repair(args, settings);
    check_kinds(&args.inputs, "repair", proofs)?;
    check_sidecars(args, proofs)?;
    let Inputs::Objects(input) = inputs(&args.inputs, "repair")? else { return Err(needs_files()) };
    let bars = settings.bars("repair");
    let context = settings.context(&bars);
    let trust = sidecar::trust(&args.inputs, &args.trusted)?;
    let found = Archive::open(&input, Wanted::from(args.root).signed_by(trust.as_ref()), &context);
    let clue = Clue::of((&input, &args.inputs), Beginning::Other, "repair", proofs);
    let archive = found.map_err(|error| {
        let failure = sidecar::meant(clue.explain(error), &args.inputs, "repair", proofs);
        below(args, proofs, settings).unwrap_or(failure)
    })?;
    settings.given.check(mode_of(archive.form()))?;
    let policy = made_of_inputs(settings.policy(args.force), &args.inputs);
    let how = Repair { out: args.output.as_deref(), policy, dry_run: args.dry_run };
    let repaired = archive.repair(how, &context)?;
    let report = Report::new(&repaired, &archive, started);
    settings.report(&report, &report.describe(), false)?;
    let exit = if args.dry_run && !repaired.files.is_empty() { Exit::Mendable } else { Exit::Done };
    settings.report_damage(exit, || format!("{}: {}", show(&args.inputs[0]), report.what()));
    Ok(exit)
}

/// The sidecar with the root that was asked for, beside a named folder or directly in it.
fn of_root(args: &line::Repair, settings: &Settings) -> Result<Option<PathBuf>> {
    let Some(root) = args.root else { return Ok(None) };
    // A folder that cannot be listed has its own error later.
    let inside = args.inputs.iter().flat_map(|path| sidecars_in(path).unwrap_or_default());
    // The copy beside the files comes first: it needs no --base.
    let mut sidecars = sidecar::beside_folders(&args.inputs).into_iter().chain(inside);
    let is_it = |path: &PathBuf| has_root(path, root, settings) && sidecar::is_one(path).unwrap_or(false);
    let Some(path) = sidecars.find(is_it) else { return Ok(None) };
    let repair = || Proofs::of_repair(args, settings).command("repair", &path);
    if args.inputs.len() > 1 {
        return Err(misuse("repair", &path, "it is a sidecar with this root, and is named by itself")
            .help(format!("name nothing else:\n  {}", repair())));
    }
    if !args.open.is_given() && Sidecar::is_sealed(&path)? {
        let alone = format!("to mend the sidecar itself, and none of the files:\n  {}", repair());
        return Err(sidecar::needs_key(&path, "repair", Some(&alone)));
    }
    Ok(Some(path))
}

/// The refusal if the sidecar with the root that was asked for lies further down in a named folder.
fn below(args: &line::Repair, proofs: Proofs<'_>, settings: &Settings) -> Option<Failure> {
    let root = args.root?;
    let sidecars = survey(&args.inputs).ok()?.sidecars;
    let path = sidecars.into_iter().find(|path| has_root(path, root, settings))?;
    let repair = proofs.command("repair", &path);
    Some(
        misuse("repair", &path, "it is the sidecar with this root, and is named by itself")
            .help(format!("name it, and nothing else:\n  {repair}")),
    )
}

/// The files with the name of a sidecar that are directly in a folder, in order. None if the path is no folder.
fn sidecars_in(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(Vec::new());
    }
    let mut names = fec_base::io::list(path).map_err(|e| Failure::io(Action::Read, path, e))?;
    names.sort();
    let is_named = |path: &PathBuf| path.extension().is_some_and(|ending| ending == ENDING);
    Ok(names.into_iter().map(|name| path.join(name)).filter(is_named).filter(|path| path.is_file()).collect())
}

/// Refuses folders that hold sidecars beside shard files, unless a root tells which is meant: the sidecars would be
/// ignored.
fn check_sidecars(args: &line::Repair, proofs: Proofs<'_>) -> Result<()> {
    if args.root.is_some() {
        return Ok(());
    }
    for folder in &args.inputs {
        let mut files = sidecars_in(folder)?.into_iter();
        if let Some(path) = files.find(|path| sidecar::is_one(path).unwrap_or(false)) {
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
    /// True if the container is that of a sealed sidecar, whose files were not looked at.
    sealed_sidecar: bool,
    /// True if the files were written; otherwise they only would be.
    written: bool,
    files: Vec<String>,
    of: usize,
    seconds: f64,
}

impl Report {
    fn new(repaired: &Repaired, archive: &Archive, started: Instant) -> Report {
        Report {
            schema_version: SCHEMA_VERSION,
            command: "repair",
            form: repaired.form.name(),
            root: hex(&repaired.root),
            signed_by: archive.signed().map(SignedBy::new),
            sealed_sidecar: archive.sealed_kind() == Some(SealedKind::Sidecar),
            written: repaired.written,
            files: repaired.files.iter().map(show).collect(),
            of: repaired.of,
            seconds: started.elapsed().as_secs_f64(),
        }
    }

    /// The outcome in one line.
    fn what(&self) -> String {
        let what = match (self.form, self.of) {
            ("container", _) if self.sealed_sidecar => "the sidecar itself".to_owned(),
            ("container", _) => "the container".to_owned(),
            (_, of) => format!("{} of {of} shard files", self.files.len()),
        };
        match (self.files.is_empty(), self.written) {
            (true, _) if self.sealed_sidecar => {
                "the sidecar itself is intact; its files were not looked at".to_owned()
            }
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
        if self.sealed_sidecar {
            out.push_str("it is a sealed sidecar: with -i the files that it protects are mended too\n");
        }
        out.push_str(&format!("root {}\n", self.root));
        self.signed_by.iter().for_each(|signed_by| out.push_str(&signed_by.describe()));
        out
    }
}

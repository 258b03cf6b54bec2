//! `fec verify`: reports what is intact, damaged or missing, and which further losses the payload survives.

mod many;
mod outcome;

use crate::line::{self, VerifyFormat};
use crate::plan::check;
use crate::plan::given::mode_of;
use crate::plan::options::PIPE;
use crate::plan::verify::{Found, Verify, WRONG, Way, Wrong, check_options, way};
use crate::run::inputs::{Clue, Inputs, beginning, check_kinds, check_not_piped_shard, inputs};
use crate::run::proofs::{Proofs, has_root};
use crate::run::sidecar::{self, copies};
use crate::run::stores;
use crate::run::survey::{Place, Survey};
use crate::run::target::is_dash;
use crate::run::verify::outcome::{exit, find, opens};
use crate::say::failure::{Exit, Failure, Result};
use crate::say::signed::{SignedBy, proved_by};
use crate::say::table::{self, Row};
use crate::say::verify::{Asked, Report};
use crate::settings::{Settings, print_line};
use fec_base::error::Action;
use fec_base::io::temporary::parent;
use fec_base::names::{show, show_input};
use fec_core::format::seal::SealedKind;
use fec_core::format::shard_file;
use fec_core::params::Form;
use fec_live::detect;
use fec_sidecar::kind;
use fecfile::report::Verified;
use fecfile::{Archive, Context, EncodingError, Input, Wanted};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Instant;

pub(crate) fn run(args: &line::Verify, settings: &Settings) -> Result<Exit> {
    let done = examined(args, settings);
    if let (Err(failure), VerifyFormat::Markdown, false) =
        (&done, args.format, settings.json || settings.quiet)
        && failure.exit != Exit::Usage
    {
        // A summary says what failed as well.
        let names: Vec<String> = match &args.stores.from[..] {
            [] => args.inputs.iter().map(show_input).collect(),
            places => places.iter().map(|place| show(Path::new(place))).collect(),
        };
        print_line(table::markdown(&[Row::failed(names.join(" "), failure)]).trim_end())?;
    }
    done
}

fn examined(args: &line::Verify, settings: &Settings) -> Result<Exit> {
    match Verify::of(args, settings.given)? {
        Verify::Stores => return stores::verify(args, settings),
        Verify::Audit => return stores::audit(args, settings),
        Verify::List(list) => return many::listed(list, args, settings),
        Verify::Inputs => {}
    }
    if let Some(exit) = sidecar::verify::part(args, settings)? {
        return Ok(exit);
    }
    if let Some(path) = sidecar::named(&args.inputs, &args.open)? {
        return one_sidecar(&path, args, settings);
    }
    let started = Instant::now();
    let is_one_file = matches!(&args.inputs[..], [path] if !path.is_dir());
    if is_one_file || args.inputs.iter().any(|path| is_dash(path)) {
        check_not_for_sidecars(args, settings)?;
        return alone(&args.inputs, args, settings, started);
    }
    let mut survey = sidecar::survey(&args.inputs, &args.open)?;
    survey.sidecars.sort();
    match args.root {
        None => survey.sidecars = copies::without(survey.sidecars, &args.inputs, settings),
        Some(_) if !survey.sidecars.is_empty() => of_root(&mut survey, args, settings)?,
        Some(_) => {}
    }
    let checks = Several { survey: &survey, args, settings, started };
    checks.run()
}

/// Tells whether the files of a sidecar can be looked at: those of a sealed one need a key.
fn can_open(path: &Path, args: &line::Verify) -> bool {
    args.open.is_given() || !kind::is_sealed(path).unwrap_or(false)
}

fn one_sidecar(path: &Path, args: &line::Verify, settings: &Settings) -> Result<Exit> {
    check_options(args, settings.given, true)?;
    sidecar::verify::run(path, args, settings)
}

/// Refuses options that only sidecars have.
fn check_not_for_sidecars(args: &line::Verify, settings: &Settings) -> Result<()> {
    check_options(args, settings.given, false)
        .map_err(|why| sidecar::refuse_options(&args.inputs, "verify", why))
}

/// Leaves only those sidecars that have the root that was asked for. Without any, the root is that of an encoding.
fn of_root(survey: &mut Survey, args: &line::Verify, settings: &Settings) -> Result<()> {
    let proofs = Proofs::of_verify(args, settings);
    check_kinds(&args.inputs, "verify", proofs)?;
    let has_root = |path: &&PathBuf| args.root.is_some_and(|root| has_root(path, root, settings));
    let found: Vec<PathBuf> = survey.sidecars.iter().filter(has_root).cloned().collect();
    let found = copies::without(found, &args.inputs, settings);
    if found.is_empty() {
        check_not_for_sidecars(args, settings)?;
        check_belongs(survey, &args.inputs, proofs)?;
    }
    survey.sidecars = found;
    Ok(())
}

/// Refuses, among several paths, those that have sidecars and hold no encoding, if no sidecar has the root that was
/// asked for.
fn check_belongs(survey: &Survey, paths: &[PathBuf], proofs: Proofs<'_>) -> Result<()> {
    let has_encoding = |path: &Path| {
        survey.encodings.iter().flat_map(|place| &place.paths).any(|file| file.starts_with(path))
    };
    for path in paths.iter().filter(|path| paths.len() > 1 && !has_encoding(path)) {
        if let Some(sidecar) = survey.sidecars.iter().find(|sidecar| sidecar::is_of(sidecar, path)) {
            return check(&Wrong::OtherRoot, WRONG, |name| match name {
                "path" => show_input(path),
                "sidecar" => show(sidecar),
                _ => proofs.command("verify", sidecar),
            });
        }
    }
    Ok(())
}

/// The named places, with all that was found there.
struct Several<'a> {
    survey: &'a Survey,
    args: &'a line::Verify,
    settings: &'a Settings,
    started: Instant,
}

impl Several<'_> {
    fn found(&self) -> Found {
        let Several { survey, args, .. } = *self;
        let encodings = &survey.encodings;
        let shards = encodings.iter().filter(|place| place.form == Form::Shards).count();
        Found {
            places: args.inputs.len(),
            has_root: args.root.is_some(),
            sidecars: survey.sidecars.len(),
            is_open: survey.sidecars.first().is_some_and(|path| can_open(path, args)),
            shards,
            containers: encodings.len() - shards,
            are_together: encodings.iter().all(|place| place.root.is_some()),
            has_bare: many::has_bare(survey, &args.inputs),
        }
    }

    fn run(&self) -> Result<Exit> {
        let Several { survey, args, settings, started } = *self;
        if survey.sidecars.is_empty() {
            check_not_for_sidecars(args, settings)?;
        }
        match way(self.found()) {
            Way::Sidecar => one_sidecar(&survey.sidecars[0], args, settings),
            Way::SidecarsOfRoot => many::of_root(&survey.sidecars, args, settings, started),
            Way::RowsOfRoot => many::one_of_root(survey, args, settings, started),
            Way::OneOfRoot => {
                let home = home_of_root(survey, args, settings)?;
                alone(&home.unwrap_or_else(|| args.inputs.clone()), args, settings, started)
            }
            Way::Container => alone(&survey.encodings[0].paths, args, settings, started),
            Way::Alone => alone(&args.inputs, args, settings, started),
            Way::Together => match check_one(&args.inputs, args, settings, started) {
                Err(unopened) if unopened.is_several => many::surveyed(survey, args, settings, started),
                done => done.map_err(|unopened| untrue_alone(args, unopened)),
            },
            Way::Rows => many::surveyed(survey, args, settings, started),
        }
    }
}

/// The folders or the file of the encoding in a folder that has the root that was asked for. If no encoding has it,
/// those of one with another root.
fn home_of_root(survey: &Survey, args: &line::Verify, settings: &Settings) -> Result<Option<Vec<PathBuf>>> {
    let [folder] = &args.inputs[..] else { return Ok(None) };
    if !folder.is_dir() {
        return Ok(None);
    }
    let bars = settings.bars("verify");
    let context = settings.context(&bars);
    let trust = sidecar::trust(&args.inputs, &args.trusted)?;
    for place in &survey.encodings {
        // Links among the files may lead nowhere.
        let there: Vec<PathBuf> = place.paths.iter().filter(|path| path.exists()).cloned().collect();
        let input = Input::of_paths(&there)?;
        let input = if place.form == Form::Shards { input.as_several() } else { input };
        if find(&input, args.root, trust.as_ref(), &context).is_ok() {
            return Ok(Some(home_of(place)));
        }
    }
    Ok(survey.encodings.first().map(home_of))
}

fn home_of(place: &Place) -> Vec<PathBuf> {
    let mut home: Vec<PathBuf> = match place.form {
        Form::Shards => place.paths.iter().map(|path| parent(path).to_path_buf()).collect(),
        _ => place.paths.clone(),
    };
    home.dedup();
    home
}

/// Examines an encoding.
fn check_one(
    paths: &[PathBuf],
    args: &line::Verify,
    settings: &Settings,
    started: Instant,
) -> std::result::Result<Exit, Unopened> {
    let bars = settings.bars("verify");
    let context = settings.context(&bars);
    One { args, paths, settings, context: &context, started }.run()
}

/// Like [`check_one`], where only one encoding can be meant.
fn alone(paths: &[PathBuf], args: &line::Verify, settings: &Settings, started: Instant) -> Result<Exit> {
    check_one(paths, args, settings, started).map_err(|unopened| untrue_alone(args, unopened))
}

/// An encoding that is examined alone.
struct One<'a> {
    args: &'a line::Verify,
    paths: &'a [PathBuf],
    settings: &'a Settings,
    context: &'a Context<'a>,
    started: Instant,
}

impl One<'_> {
    fn run(&self) -> std::result::Result<Exit, Unopened> {
        let proofs = Proofs::of_verify(self.args, self.settings);
        let archive = self.open().map_err(|unopened| Unopened {
            failure: sidecar::meant(unopened.failure, self.paths, "verify", proofs),
            ..unopened
        })?;
        self.check(&archive).map_err(Unopened::other)
    }

    fn check(&self, archive: &Archive) -> Result<Exit> {
        let One { args, settings, context, started, .. } = *self;
        let is_pipe = matches!(self.paths, [path] if is_dash(path));
        settings.given.check(if is_pipe { PIPE } else { mode_of(archive.form()) })?;
        let keys = args.open.keys()?;
        let opener = match &keys {
            Some(_) => archive.opener(keys.as_ref())?,
            None => None,
        };
        let verified = archive.verify(args.deep, context)?;
        let opens = opens(archive, &verified, opener.as_ref(), context)?;
        let asked = Asked {
            root_was_given: args.root.is_some(),
            opens,
            files: self.are_files_asked_about(&verified),
            need: args.need,
            most_memory: settings.library.max_memory,
        };
        let is_unopened = keys.is_none() && archive.sealed_kind() == Some(SealedKind::Sidecar);
        let exit = match exit(&verified, &asked) {
            // A folder was named, and the files of the sealed sidecar in it were not looked at.
            Exit::Done if is_unopened && args.need.is_none() && self.paths != args.inputs => Exit::Mendable,
            exit => exit,
        };
        let report = Report::new(&verified, archive, &asked, started.elapsed());
        let name = self.paths.iter().map(show_input).collect::<Vec<_>>().join(" ");
        settings.report_damage(exit, || match report.verdict() {
            Some(verdict) => format!("{name}: {verdict}"),
            None => Row::new(name.clone(), &verified, exit).describe(),
        });
        match (args.format, verified.is_restorable) {
            (VerifyFormat::Markdown, _) => {
                let proved = proved_by(args.root.is_some(), archive.signed().map(SignedBy::new).as_ref());
                let row = Row::new(name, &verified, exit).proved_by(proved);
                settings.report_here(&report, exit, &table::markdown(&[row]))?;
            }
            (VerifyFormat::Text, None) => {
                settings.report_here(&report, exit, &report.describe_one(&name, settings.verbose))?
            }
            (VerifyFormat::Text, Some(_)) => {
                settings.report_here(
                    &report,
                    exit,
                    &report.describe(&verified.leftovers, settings.verbose),
                )?;
            }
        }
        Ok(exit)
    }

    /// Tells whether the question is if the named shard files are right, not if the payload can be restored. It is if
    /// the root or a signer is given and only some of the shard files are named, without folders.
    fn are_files_asked_about(&self, verified: &Verified) -> bool {
        let is_proved = self.args.root.is_some() || !self.args.trusted.signer.is_empty();
        is_proved
            && verified.form == Form::Shards
            && verified.is_restorable.is_some()
            && verified.given() < verified.found.shards.len()
            && self.paths.iter().all(|path| !path.is_dir())
    }

    fn open(&self) -> std::result::Result<Archive, Unopened> {
        let One { args, paths, context, settings, .. } = *self;
        let (root, proofs) = (args.root, Proofs::of_verify(args, settings));
        let trust = sidecar::trust(paths, &args.trusted).map_err(Unopened::other)?;
        let trust = trust.as_ref();
        match inputs(paths, "verify").map_err(Unopened::other)? {
            Inputs::Objects(input) => {
                let beginning = beginning(&input).map_err(|e| Unopened::other(e.into()))?;
                let clue = Clue::of((&input, paths), beginning, "verify", proofs);
                let archive = find(&input, root, trust, context).map_err(|e| {
                    let is_one_shard = matches!(&input, Input::One(_))
                        && matches!(e.cause(), Some(EncodingError::NothingFound(found)) if found.is_shard_file);
                    let is_several = matches!(e.cause(), Some(EncodingError::Ambiguous(_) | EncodingError::NoneWhole { .. }));
                    Unopened { failure: clue.explain(e), is_one_shard, is_several }
                })?;
                if !archive.is_one_shard() {
                    check_not_piped_shard(&paths[0], &archive).map_err(Unopened::other)?;
                }
                Ok(archive)
            }
            Inputs::Pipe(path, mut file) => {
                let (head, beginning) = detect::pipe(&mut file)
                    .map_err(|e| Unopened::other(Failure::io(Action::Read, &path, e)))?;
                let clue = Clue::of_head(&path, &head, beginning, "verify", proofs);
                let is_shard = shard_file::has_magic(&head);
                let input = io::Cursor::new(head).chain(file);
                let explain = |e| Unopened::other(clue.explain(e));
                // The proofs of a shard stand at both of its ends.
                if args.deep || args.open.is_given() || is_shard {
                    let input = Input::spooled(&path, input).map_err(explain)?;
                    let archive = find(&input, root, trust, context).map_err(|e| {
                        let is_one_shard =
                            matches!(e.cause(), Some(EncodingError::NothingFound(found)) if found.is_shard_file);
                        Unopened { is_one_shard, ..explain(e) }
                    })?;
                    if !archive.is_one_shard() {
                        check_not_piped_shard(&path, &archive).map_err(Unopened::other)?;
                    }
                    return Ok(archive);
                }
                let wanted = Wanted::from(root).signed_by(trust);
                Archive::in_pipe(input, &path, beginning, wanted, context).map_err(explain)
            }
        }
    }
}

/// The failure of opening an encoding, and its kind.
struct Unopened {
    failure: Failure,
    /// A single shard file was given with a root that nothing in it leads to.
    is_one_shard: bool,
    /// Several encodings are here, and none was asked for.
    is_several: bool,
}

impl Unopened {
    fn other(failure: Failure) -> Unopened {
        Unopened { failure, is_one_shard: false, is_several: false }
    }
}

/// Makes a single damaged or foreign shard count as "not what the root promises".
fn untrue_alone(args: &line::Verify, unopened: Unopened) -> Failure {
    let Unopened { mut failure, is_one_shard, .. } = unopened;
    if args.root.is_some() && is_one_shard && failure.exit == Exit::Lost {
        failure.exit = Exit::Untrue;
    }
    failure
}

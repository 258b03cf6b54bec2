//! `fec verify`: what is intact, damaged or missing, and what the payload can still stand.

mod many;
mod outcome;
mod report;
mod table;

use crate::args::{self, VerifyFormat};
use crate::failure::{Exit, Failure, Result};
use crate::inputs::{Clue, Inputs, check_not_piped_shard, inputs};
use crate::settings::Settings;
use crate::sidecar;
use crate::stores;
use crate::target::is_dash;
use fec_core::format::shard_file;
use fec_core::params::Form;
use fecfile::archive::{self, Archive};
use fecfile::error::Place;
use fecfile::live::detect;
use fecfile::names::show_input;
use fecfile::report::Verified;
use fecfile::restore::Wish;
use fecfile::survey::survey;
use fecfile::{Context, ErrorKind, Input};
use outcome::{exit, find};
use report::{Asked, Report};
use std::io::{self, Read};
use std::path::PathBuf;
use std::time::Instant;
use table::Row;

pub(crate) fn run(args: &args::Verify, settings: &Settings) -> Result<Exit> {
    if !args.stores.from.is_empty() {
        if !args.trusted.signer.is_empty() {
            return Err(
                Failure::usage("verify --signer: in stores nothing is signed").help("leave --signer out")
            );
        }
        return stores::verify(args, settings);
    }
    if let Some(list) = &args.roots {
        return many::listed(list, args, settings);
    }
    if let Some(path) = sidecar::named(&args.inputs, &args.open)? {
        if args.need.is_some() || args.format == VerifyFormat::Markdown {
            return Err(Failure::usage("verify: --need and --format are not for sidecars"));
        }
        return sidecar::verify::run(path, args, settings);
    }
    let is_for_sidecars = args.quick
        || args.sidecar_only
        || args.base.is_some()
        || args.state.is_some()
        || args.budget.is_some()
        || args.sample.is_some();
    if is_for_sidecars {
        let why = Failure::usage(
            "verify: --base, --quick, --sidecar-only, --state, --budget and --sample are for sidecars",
        )
        .help("shard files and containers are always checked whole");
        return Err(sidecar::refuse_options(&args.inputs, "verify", why));
    }
    let started = Instant::now();
    let bars = settings.bars("verify");
    let context = Context { settings: settings.library, progress: &bars };
    let check = |paths: &[PathBuf]| One { args, paths, settings, context: &context, started }.run();
    let alone = |unopened| untrue_alone(args, unopened);
    let is_one_file = matches!(&args.inputs[..], [path] if !path.is_dir());
    if args.root.is_some() || is_one_file || args.inputs.iter().any(|path| is_dash(path)) {
        return check(&args.inputs).map_err(alone);
    }
    let survey = survey(&args.inputs)?;
    match &survey.encodings[..] {
        // A folder in which a container lies.
        [found] if found.form == Form::Container && args.inputs.len() == 1 => {
            check(&found.paths).map_err(alone)
        }
        [] | [_] => check(&args.inputs).map_err(alone),
        // Shards of several lie together: often those of all but one are strays.
        several if several.iter().all(|place| place.root.is_some()) => match check(&args.inputs) {
            Err(unopened) if unopened.is_several => many::surveyed(&survey, args, settings, started),
            done => done.map_err(alone),
        },
        _ => many::surveyed(&survey, args, settings, started),
    }
}

/// One encoding that is looked at by itself.
struct One<'a> {
    args: &'a args::Verify,
    paths: &'a [PathBuf],
    settings: &'a Settings,
    context: &'a Context<'a>,
    started: Instant,
}

impl One<'_> {
    fn run(&self) -> std::result::Result<Exit, Unopened> {
        let archive = self.open().map_err(|unopened| Unopened {
            failure: sidecar::meant(unopened.failure, self.paths, "verify"),
            ..unopened
        })?;
        self.check(&archive).map_err(Unopened::other)
    }

    fn check(&self, archive: &Archive) -> Result<Exit> {
        let One { args, settings, context, started, .. } = *self;
        let keys = args.open.keys()?;
        let opener = match &keys {
            Some(_) => archive.opener(keys.as_ref())?,
            None => None,
        };
        let verified = archive.verify(args.deep, context)?;
        let opens = opener.is_some().then_some(verified.is_restorable == Some(true));
        if opens == Some(true) {
            let wish = Wish { opener: opener.as_ref(), ..Wish::default() };
            let opened =
                archive.restore_to_writer(&mut io::sink(), &Place::Nowhere, wish, &context.silent())?;
            debug_assert!(opened.is_whole());
        }
        let asked = Asked {
            root_was_given: args.root.is_some(),
            opens,
            files: self.are_files_asked_about(&verified),
            need: args.need,
            most_memory: settings.library.max_memory,
        };
        let exit = exit(&verified, &asked);
        let report = Report::new(&verified, archive, &asked, started.elapsed());
        let name = self.paths.iter().map(show_input).collect::<Vec<_>>().join(" ");
        settings.report_damage(exit, || match report.verdict() {
            Some(verdict) => format!("{name}: {verdict}"),
            None => Row::new(name.clone(), &verified, exit).describe(),
        });
        match (args.format, verified.is_restorable) {
            (VerifyFormat::Markdown, _) => {
                settings.report_here(&report, &table::markdown(&[Row::new(name, &verified, exit)]))?;
            }
            (VerifyFormat::Text, None) => {
                settings.report_here(&report, &report.describe_one(&name, settings.verbose))?
            }
            (VerifyFormat::Text, Some(_)) => {
                settings.report_here(&report, &report.describe(&verified.leftovers, settings.verbose))?;
            }
        }
        Ok(exit)
    }

    /// Whether the question is if the files that were named are right, not if the payload can be restored: some of its shard
    /// files were named, by themselves, and the root.
    fn are_files_asked_about(&self, verified: &Verified) -> bool {
        let is_proved = self.args.root.is_some() || !self.args.trusted.signer.is_empty();
        is_proved
            && verified.form == Form::Shards
            && verified.is_restorable.is_some()
            && verified.given() < verified.found.shards.len()
            && self.paths.iter().all(|path| !path.is_dir())
    }

    fn open(&self) -> std::result::Result<Archive, Unopened> {
        let One { args, paths, context, .. } = *self;
        let root = args.root;
        let trust = sidecar::trust(paths, &args.trusted).map_err(Unopened::other)?;
        let trust = trust.as_ref();
        match inputs(paths, "verify").map_err(Unopened::other)? {
            Inputs::Objects(input) => {
                let beginning = archive::beginning(&input).map_err(|e| Unopened::other(e.into()))?;
                let clue = Clue::of(&input, beginning, "verify");
                let archive = find(&input, root, trust, context).map_err(|e| {
                    let is_one_shard = matches!(&input, Input::One(_))
                        && matches!(&e.kind, ErrorKind::NothingFound(found) if found.is_shard_file);
                    let is_several = matches!(&e.kind, ErrorKind::Ambiguous(_) | ErrorKind::NoneWhole { .. });
                    Unopened { failure: clue.explain(e), is_one_shard, is_several }
                })?;
                if !archive.is_one_shard() {
                    check_not_piped_shard(&paths[0], &archive).map_err(Unopened::other)?;
                }
                Ok(archive)
            }
            Inputs::Pipe(path, mut file) => {
                let (head, beginning) =
                    detect::pipe(&mut file).map_err(|e| Unopened::other(Failure::io("read", &path, e)))?;
                let clue = Clue::of_head(&path, &head, beginning, "verify");
                let is_shard = shard_file::has_magic(&head);
                let input = io::Cursor::new(head).chain(file);
                let explain = |e| Unopened::other(clue.explain(e));
                // The proofs of a shard stand at both of its ends.
                if args.deep || args.open.is_given() || is_shard {
                    let input = Input::spooled(&path, input).map_err(explain)?;
                    let archive = find(&input, root, trust, context).map_err(|e| {
                        let is_one_shard =
                            matches!(&e.kind, ErrorKind::NothingFound(found) if found.is_shard_file);
                        Unopened { is_one_shard, ..explain(e) }
                    })?;
                    if !archive.is_one_shard() {
                        check_not_piped_shard(&path, &archive).map_err(Unopened::other)?;
                    }
                    return Ok(archive);
                }
                let found = match trust {
                    None => Archive::in_pipe(input, &path, beginning, root, context),
                    Some(trust) => Archive::in_pipe_signed(input, &path, beginning, (root, trust), context),
                };
                found.map_err(explain)
            }
        }
    }
}

/// What a failed opening means, and the failure.
struct Unopened {
    failure: Failure,
    /// One shard file was given with a root that nothing in it leads to.
    is_one_shard: bool,
    /// Several encodings are there, and none was asked for.
    is_several: bool,
}

impl Unopened {
    fn other(failure: Failure) -> Unopened {
        Unopened { failure, is_one_shard: false, is_several: false }
    }
}

/// A single shard that is damaged or foreign is not what the root promises.
fn untrue_alone(args: &args::Verify, unopened: Unopened) -> Failure {
    let Unopened { mut failure, is_one_shard, .. } = unopened;
    if args.root.is_some() && is_one_shard && failure.exit == Exit::Lost {
        failure.exit = Exit::Untrue;
    }
    failure
}

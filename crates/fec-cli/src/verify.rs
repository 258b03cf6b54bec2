//! `fec verify`: what is intact, damaged or missing, and what the payload can still stand.

mod report;

use crate::args;
use crate::failure::{Exit, Failure, Result};
use crate::inputs::{Inputs, check_not_piped_shard, inputs, live_error};
use crate::settings::Settings;
use crate::sidecar;
use crate::stores;
use fecfile::archive::{self, Archive};
use fecfile::error::Class;
use fecfile::error::Place;
use fecfile::live::detect;
use fecfile::names::show;
use fecfile::report::{Deep, Verified};
use fecfile::restore::Wish;
use fecfile::{Context, ErrorKind, Input};
use report::Report;
use std::io::{self, Read};
use std::time::Instant;

pub(crate) fn run(args: &args::Verify, settings: &Settings) -> Result<Exit> {
    if !args.stores.from.is_empty() {
        if !args.trusted.signer.is_empty() {
            return Err(
                Failure::usage("verify --signer: in stores nothing is signed").help("leave --signer out")
            );
        }
        return stores::verify(args, settings);
    }
    if let Some(path) = sidecar::named(&args.inputs, &args.open)? {
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
    let opened = open(args, &context);
    let archive = opened
        .map_err(|failure| sidecar::meant(one_shard_is_untrue(args, failure), &args.inputs, "verify"))?;
    let keys = args.open.keys()?;
    let opener = match &keys {
        Some(_) => archive.opener(keys.as_ref())?,
        None => None,
    };
    let verified = archive.verify(args.deep, &context)?;
    let opens = opener.is_some().then_some(verified.is_restorable == Some(true));
    if opens == Some(true) {
        let wish = Wish { opener: opener.as_ref(), ..Wish::default() };
        archive.restore_to_writer(&mut io::sink(), &Place::Nowhere, wish, &context.silent())?;
    }
    let report = Report::new(&verified, &archive, (args.root.is_some(), opens), started.elapsed());
    let text = match verified.is_restorable {
        None => report.describe_one(&show(&args.inputs[0])),
        Some(_) => report.describe(&verified.leftovers),
    };
    settings.report(&report, &text, false)?;
    Ok(exit(&verified))
}

/// What a failed opening means, and the failure.
struct Unopened {
    failure: Failure,
    /// One shard file was given with a root that nothing in it leads to.
    is_one_shard: bool,
}

fn open(args: &args::Verify, context: &Context<'_>) -> std::result::Result<Archive, Unopened> {
    let other = |failure| Unopened { failure, is_one_shard: false };
    let root = args.root;
    let trust = sidecar::trust(&args.inputs, &args.trusted).map_err(other)?;
    let find = |input: &Input| match &trust {
        None => Archive::open(input, root, context),
        Some(trust) => Archive::open_signed(input, root, trust, context),
    };
    match inputs(&args.inputs).map_err(other)? {
        Inputs::Objects(input) => {
            let beginning = archive::beginning(&input).map_err(|e| other(e.into()))?;
            let archive = find(&input).map_err(|e| {
                let is_one_shard = matches!(&input, Input::One(_))
                    && matches!(&e.kind, ErrorKind::NothingFound(found) if found.is_shard_file);
                Unopened { failure: live_error(e, beginning), is_one_shard }
            })?;
            check_not_piped_shard(&args.inputs[0], &archive).map_err(other)?;
            Ok(archive)
        }
        Inputs::Pipe(path, mut file) => {
            let (head, beginning) =
                detect::pipe(&mut file).map_err(|e| other(Failure::io("read", &path, e)))?;
            let input = io::Cursor::new(head).chain(file);
            if args.deep || args.open.is_given() {
                let input = Input::spooled(&path, input).map_err(|e| other(e.into()))?;
                return find(&input).map_err(|e| other(live_error(e, beginning)));
            }
            let found = match &trust {
                None => Archive::in_pipe(input, &path, beginning, root, context),
                Some(trust) => Archive::in_pipe_signed(input, &path, beginning, (root, trust), context),
            };
            found.map_err(|e| other(e.into()))
        }
    }
}

/// A single shard that is damaged or foreign is not what the root promises.
fn one_shard_is_untrue(args: &args::Verify, unopened: Unopened) -> Failure {
    let Unopened { mut failure, is_one_shard } = unopened;
    if args.root.is_some() && is_one_shard && failure.exit == Exit::Lost {
        failure.exit = Exit::Untrue;
    }
    failure
}

fn exit(verified: &Verified) -> Exit {
    match (verified.is_restorable, verified.is_intact()) {
        (None, true) => Exit::Done,
        (None, false) => Class::Untrue.into(),
        (Some(true), is_intact) if verified.deep != Deep::Failed => {
            if is_intact {
                Exit::Done
            } else {
                Exit::Mendable
            }
        }
        _ => verified.leftovers.class().into(),
    }
}

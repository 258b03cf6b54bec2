//! `fec repair`: makes damaged and missing shard files, or a damaged container, anew; mends files and their sidecars.

mod encoding;
mod many;

use crate::line;
use crate::plan::given::mode_of;
use crate::plan::repair::{FOUND, Found, Places, Repair as Plan, Way, check_options, names_pipe};
use crate::plan::{check, refused};
use crate::run::inputs::{Clue, Inputs, check_kinds, inputs};
use crate::run::own::{Own, check_own};
use crate::run::proofs::{Proofs, has_root};
use crate::run::sidecar::{self, copies};
use crate::run::stores;
use crate::run::target::beside;
use crate::say::failure::{Exit, Failure, Result};
use crate::say::mirrors::Fetched;
use crate::say::repair::Report;
use crate::say::state::Outcome;
use crate::settings::Settings;
use encoding::mend;
use fec_base::context::Context;
use fec_base::io::temporary::parent;
use fec_base::names::{show, show_input};
use fec_keys::sign::Trust;
use fec_sidecar::kind;
use fecfile::forms::Beginning;
use fecfile::{Archive, EncodingError, Input, Wanted};
use std::path::{Path, PathBuf};
use std::time::Instant;

pub(crate) fn run(args: &line::Repair, settings: &Settings) -> Result<Exit> {
    if Plan::of(args, settings.given)? == Plan::Stores {
        return stores::repair(args, settings);
    }
    if let Some(exit) = sidecar::repair::part(args, settings)? {
        return Ok(exit);
    }
    if let Some(path) = sidecar::named(&args.inputs, &args.open)? {
        // The sidecar may be the one beside the file that was named.
        return sidecar::repair::run(&path, &check_own(&path, args, settings)?, args, settings);
    }
    if names_pipe(args) {
        check_not_for_sidecars(args, settings)?;
        check(&Found::Pipe, FOUND, |_| String::new())?;
    }
    let started = Instant::now();
    if args.root.is_some() {
        return of_root(args, settings, started);
    }
    let mut survey = sidecar::survey(&args.inputs, &args.open)?;
    survey.sidecars = copies::without(survey.sidecars, &args.inputs, settings);
    let places = Places {
        named: args.inputs.len(),
        sidecars: survey.sidecars.len(),
        encodings: survey.encodings.len(),
        are_together: survey.encodings.iter().all(|place| place.root.is_some()),
    };
    match places.way() {
        Way::Together | Way::Rows if !args.from.urls.is_empty() => {
            Err(refused(&Found::Several, FOUND, |_| show_input(&args.inputs[0])))
        }
        Way::Sidecar => {
            let own = check_own(&survey.sidecars[0], args, settings)?;
            found_sidecar(&survey.sidecars[0], &own, (args, settings), started)
        }
        Way::One => Ok(one(args, settings, started)?),
        Way::Together => match one(args, settings, started) {
            Err(unopened) if unopened.is_several => many::run(&survey, args, settings, started),
            done => Ok(done?),
        },
        Way::Rows => many::run(&survey, args, settings, started),
    }
}

/// Repairs the only sidecar that was found. Without a key, a sealed one is mended itself only if it was named.
fn found_sidecar(
    path: &Path,
    own: &Own,
    (args, settings): (&line::Repair, &Settings),
    started: Instant,
) -> Result<Exit> {
    match !args.open.is_given() && kind::is_sealed(path)? {
        true if args.inputs[0] == path => Ok(one(args, settings, started)?),
        true => {
            let mend = Proofs::of_repair(args, settings).command("repair", path);
            Err(sidecar::needs_key(path, "repair", Some(mend)))
        }
        false => sidecar::repair::run(path, own, args, settings),
    }
}

/// Repairs the sidecar or the encoding with the root that was asked for. A sidecar is looked for beside the named
/// folder and directly in it.
fn of_root(args: &line::Repair, settings: &Settings, started: Instant) -> Result<Exit> {
    let survey = sidecar::survey(&args.inputs, &args.open)?;
    let is_it = |path: &&PathBuf| {
        args.root.is_some_and(|root| has_root(path, root, settings)) && sidecar::is_one(path).unwrap_or(false)
    };
    let is_near = |path: &&PathBuf| {
        let is_beside = |input: &PathBuf| beside(input).is_some_and(|beside| beside == **path);
        args.inputs.iter().any(|input| input == *path || parent(path) == input || is_beside(input))
    };
    let refuse = |found: Found, path: &Path| {
        let proofs = Proofs::of_repair(args, settings);
        refused(&found, FOUND, |name| match name {
            "path" => show_input(path),
            _ => proofs.command("repair", path),
        })
    };
    if let Some(path) = survey.sidecars.iter().filter(is_near).find(is_it) {
        return match args.inputs.len() {
            1 => found_sidecar(path, &Own::default(), (args, settings), started),
            _ => Err(refuse(Found::RootAmongOthers, path)),
        };
    }
    check_not_for_sidecars(args, settings)?;
    check_kinds(&args.inputs, "repair", Proofs::of_repair(args, settings))?;
    one(args, settings, started).map_err(|unopened| match survey.sidecars.iter().find(is_it) {
        Some(path) => refuse(Found::RootBelow, path),
        None => unopened.failure,
    })
}

/// Refuses options that only sidecars have.
fn check_not_for_sidecars(args: &line::Repair, settings: &Settings) -> Result<()> {
    check_options(args, settings.given, false)
        .map_err(|why| sidecar::refuse_options(&args.inputs, "repair", why))
}

/// The failure of opening an encoding.
struct Unopened {
    failure: Failure,
    /// Several encodings are here, and none was asked for.
    is_several: bool,
}

impl From<Unopened> for Failure {
    fn from(unopened: Unopened) -> Failure {
        unopened.failure
    }
}

impl From<Failure> for Unopened {
    fn from(failure: Failure) -> Unopened {
        Unopened { failure, is_several: false }
    }
}

/// Repairs the only encoding in the inputs, or the one with the root that was asked for.
fn one(args: &line::Repair, settings: &Settings, started: Instant) -> std::result::Result<Exit, Unopened> {
    check_not_for_sidecars(args, settings)?;
    let proofs = Proofs::of_repair(args, settings);
    let Inputs::Objects(input) = inputs(&args.inputs, "repair")? else {
        return Err(refused(&Found::Pipe, FOUND, |_| String::new()).into());
    };
    let bars = settings.bars("repair");
    let context = settings.context(&bars);
    let trust = sidecar::trust(&args.inputs, &args.trusted)?;
    let found = Archive::open(&input, Wanted::from(args.root).signed_by(trust.as_ref()), &context);
    let archive = found.map_err(|error| {
        let is_several =
            matches!(error.cause(), Some(EncodingError::Ambiguous(_) | EncodingError::NoneWhole { .. }));
        let clue = Clue::of((&input, &args.inputs), Beginning::Other, "repair", proofs);
        Unopened { failure: sidecar::meant(clue.explain(error), &args.inputs, "repair", proofs), is_several }
    })?;
    let done = match args.from.urls.is_empty() {
        true => {
            settings.given.check(mode_of(archive.form()))?;
            mend(&archive, args, settings, started)
        }
        false => completed(archive, args, trust.as_ref(), (settings, &context), started),
    };
    let (report, exit) = done?;
    let outcome = Outcome::mended(exit, report.has_work());
    settings.report(&report, outcome, &report.describe(), false)?;
    settings.report_damage(exit, || format!("{}: {}", show(&args.inputs[0]), report.what()));
    Ok(exit)
}

/// Repairs an encoding with the help of copies elsewhere.
fn completed(
    archive: Archive,
    args: &line::Repair,
    trust: Option<&Trust>,
    (settings, context): (&Settings, &Context<'_>),
    started: Instant,
) -> Result<(Report, Exit)> {
    let mended = mend(&archive, args, settings, started);
    // Copies are asked if that was for lack of shards.
    if mended.is_ok() {
        return mended.map(|(report, exit)| (report.with(Fetched::default(), None), exit));
    }
    let completed = stores::complete(&archive, args, (settings, context))?;
    let again = || -> Result<Archive> {
        let mut paths = args.inputs.clone();
        let is_in_first = |path: &&PathBuf| args.inputs[0] != **path && args.inputs[0] != parent(path);
        paths.extend(completed.files.iter().filter(is_in_first).cloned());
        let input = Input::of_paths(&paths)?;
        Ok(Archive::open(&input, Wanted::from(archive.root()).signed_by(trust), context)?)
    };
    let mended = match completed.files.is_empty() {
        true => mended,
        false => again().and_then(|archive| mend(&archive, args, settings, started)),
    };
    completed.end();
    let (fetched, aside) = (completed.fetched, completed.aside);
    match mended {
        Ok((report, exit)) => Ok((report.with(fetched, aside.as_deref()), exit)),
        Err(failure) if !fetched.was_needed() => Err(failure),
        Err(failure) => {
            let failure = failure.and_help(fetched.describe().trim_end());
            Err(failure.of_kind(fetched.kind()))
        }
    }
}

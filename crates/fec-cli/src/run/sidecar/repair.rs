//! `fec repair` of a sidecar and what it protects.

use crate::line;
use crate::plan::repair::check_options;
use crate::run::own::Own;
use crate::run::proofs::Proofs;
use crate::run::sidecar::opened::{Opened, Opening};
use crate::run::sidecar::parts;
use crate::run::stores;
use crate::say::failure::{Exit, Failure, Result};
use crate::say::mirrors::Fetched;
use crate::say::repair_table::{Done, Row};
use crate::say::sidecar_repair::Report;
use crate::say::state::Outcome;
use crate::settings::Settings;
use crate::system::signals;
use fec_base::error::Action;
use fec_base::io::base::{Base, Renamed};
use fec_base::names::show;
use fec_keys::age::Keys;
use fec_sidecar::SidecarError;
use fec_sidecar::examine::State;
use fec_sidecar::mirrors::{Mirror, Mirrors};
use fec_sidecar::repair::{Mend, list_path, repair};
use fecfile::error::{Error, ErrorKind, Place};
use rustix::process::geteuid;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Repairs the part of what the sidecar protects that is named first, if the others name one.
pub(crate) fn part(args: &line::Repair, settings: &Settings) -> Result<Option<Exit>> {
    let part = parts::of(&args.inputs, opening(args, None), &args.open, ("repair", settings))?;
    let Some(part) = part else { return Ok(None) };
    check_options(args, settings.given, true)?;
    tell(&part, args, settings).map(Some)
}

/// Repairs a sidecar and what it protects, and tells it in full.
pub(crate) fn run(path: &Path, own: &Own, args: &line::Repair, settings: &Settings) -> Result<Exit> {
    check_options(args, settings.given, true)?;
    let keys = args.open.keys()?;
    let opened = Opened::new(path, opening(args, keys.as_ref()), settings)?;
    own.check(&opened.sidecar, args, settings)?;
    tell(&opened, args, settings)
}

/// Repairs a sidecar and what it protects, and tells it in a row.
pub(crate) fn row(
    path: &Path,
    own: &Own,
    keys: Option<&Keys>,
    args: &line::Repair,
    settings: &Settings,
) -> Result<Row> {
    let opened = Opened::new(path, opening(args, keys), settings)?;
    own.check(&opened.sidecar, args, settings)?;
    let (report, exit) = mend(&opened, args, settings)?;
    let done = Done { form: "sidecar", root: report.root.clone(), did: report.did() };
    Ok(Row::new(&show(path), done, report.found(), exit?))
}

/// The options that a sidecar is opened by.
fn opening<'a>(args: &'a line::Repair, keys: Option<&'a Keys>) -> Opening<'a> {
    Opening { root: args.root, trusted: &args.trusted, keys, base: args.base.as_deref() }
}

/// Repairs what was opened, and tells it in full.
fn tell(opened: &Opened, args: &line::Repair, settings: &Settings) -> Result<Exit> {
    let (report, done) = mend(opened, args, settings)?;
    let exit = done.as_ref().map_or_else(|failure| failure.exit, |exit| *exit);
    let outcome = Outcome::mended(exit, report.has_work());
    settings.report(&report, outcome, &report.describe(), false)?;
    let exit = done?;
    settings.report_damage(exit, || format!("{}: {}", report.sidecar, report.found()));
    Ok(exit)
}

/// Repairs a sidecar and what it protects. Returns the report, with the exit code or the contradiction.
///
/// # Errors
/// Those after which there is nothing to report.
fn mend(opened: &Opened, args: &line::Repair, settings: &Settings) -> Result<(Report, Result<Exit>)> {
    let started = Instant::now();
    let bars = settings.bars("repair");
    let context = settings.context(&bars);
    let longest = opened.sidecar.catalog().files().map(|(_, file)| file.size).max().unwrap_or(0);
    let list = match args.from.urls.is_empty() {
        true => Vec::new(),
        false => stores::mirrors(args, longest, settings)?,
    };
    let list: Vec<&dyn Mirror> = list.iter().map(|mirror| &**mirror).collect();
    let mirrors = (!list.is_empty()).then(|| Mirrors::new(list, args.network.spool.clone()));
    let Opened { sidecar, signed, base, .. } = opened;
    let unrenamed = without_copies(base, &args.from.urls);
    let unrenamed = unrenamed.map_err(|e| Failure::io(Action::Read, base.path(), e))?;
    let base = unrenamed.as_ref().unwrap_or(base);
    let how = Mend {
        only: opened.selection(),
        revert: args.revert,
        partial: args.partial,
        out: args.output.as_deref(),
        undo: args.undo.as_deref(),
        dry_run: args.dry_run,
        sync: settings.library.sync,
        mirrors: mirrors.as_ref(),
        owner: args.owner,
    };
    if args.owner.is_some() && !geteuid().is_root() {
        return Err(Failure::usage("repair: --owner takes root, who alone may give files away".to_owned()));
    }
    let proofs = Proofs::of_repair(args, settings);
    let advice = opened.advice(proofs);
    signals::goes_on_by(list_path(sidecar.path()));
    let mended = repair(sidecar, base, &how, &context);
    let is_there = || sidecar.catalog().entries.iter().any(|entry| base.stat(&entry.path).is_ok());
    let fetched = mirrors.as_ref().map(|mirrors| Fetched::new(mirrors.fetched()));
    let mended =
        mended.map_err(|error| explain(error, (&advice.named, proofs), fetched.as_ref(), is_there))?;
    let report = Report::new((sidecar, signed.as_ref(), advice), base, &mended, &how, started).with(fetched);
    if let Some(contradiction) = mended.contradiction {
        return Ok((report, Err(contradiction.into())));
    }
    let is_mended = mended.failed.is_empty() && mended.found.is_mendable();
    let why_left = mended.sidecar_left.as_ref().filter(|_| is_mended);
    // Whatever may go is not missed.
    let is_missed = |nth: &usize| mended.found.state(*nth) != State::Gone;
    let exit = match (why_left, is_mended, !mended.left.iter().any(is_missed)) {
        (Some(why), ..) => why.class().into(),
        _ if mended.is_denied => Exit::Io,
        (_, false, _) => Exit::Lost,
        _ if !mended.left_out.is_empty() => Exit::Mendable,
        _ if args.dry_run && !mended.found.is_intact_but(State::Gone) => Exit::Mendable,
        (_, _, false) if args.output.is_none() => Exit::Mendable,
        _ if args.output.is_none() && base.renamed().next().is_some() => Exit::Mendable,
        _ => Exit::Done,
    };
    Ok((report, Ok(exit)))
}

/// The base without renamed folders, if one of those that seem to be is named as a copy.
fn without_copies(base: &Base, urls: &[String]) -> io::Result<Option<Base>> {
    let named: Vec<PathBuf> = urls.iter().filter_map(|url| Path::new(url).canonicalize().ok()).collect();
    let is_copy = |renamed: &Renamed| {
        let place = base.path().join(OsStr::from_bytes(&renamed.to)).canonicalize();
        place.is_ok_and(|place| named.contains(&place))
    };
    base.renamed().any(is_copy).then(|| Base::open(base.path())).transpose()
}

/// The failure of a repair, with advice that names the sidecar and its options, and what copies elsewhere gave.
fn explain(
    error: Error,
    (named, proofs): (&str, Proofs<'_>),
    fetched: Option<&Fetched>,
    is_there: impl Fn() -> bool,
) -> Failure {
    let is_partly_mendable = match error.cause() {
        Some(SidecarError::BeyondRepair { is_partly_mendable, .. }) => Some(*is_partly_mendable),
        _ => None,
    };
    // Its name is that of the sidecar, or of its root.
    let is_of_stash = matches!(&error.place, Place::Path(path) if path.extension().is_some_and(|end| end == "fetched"))
        && matches!(error.kind, ErrorKind::Io(_) | ErrorKind::NoRoom { .. });
    let failure = Failure::from(error);
    if is_of_stash {
        return failure.help("--spool FOLDER names another folder for what is fetched");
    }
    let Some(is_partly_mendable) = is_partly_mendable else { return failure };
    let partial = match is_partly_mendable {
        true => format!(
            "to mend what can be mended:\n  fec repair --partial{} {named}\n",
            proofs.how(&["--partial", "--dry-run"])
        ),
        false => String::new(),
    };
    let copies = match fetched {
        Some(fetched) => format!("{}{}", fetched.describe(), fetched.advice()),
        None => format!(
            "if there is a copy of the files elsewhere, as they were:\n  fec repair{} --from URL {named}",
            proofs.how(&["--dry-run"])
        ),
    };
    let failure = failure.of_kind(fetched.and_then(Fetched::kind));
    failure.help(match is_there() {
        false => format!("nothing is there; to see what to do:\n  fec verify {named}\n{copies}"),
        true => format!("to see what is lost:\n  fec verify {named}\n{partial}{copies}"),
    })
}

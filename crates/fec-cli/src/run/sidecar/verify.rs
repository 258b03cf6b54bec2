//! `fec verify` of a sidecar.

use crate::line::{self, Ignore};
use crate::plan::options::PART;
use crate::run::proofs::Proofs;
use crate::run::sidecar::opened::{Opened, Opening};
use crate::run::sidecar::parts;
use crate::say::failure::{Exit, Result};
use crate::say::sidecar::Report;
use crate::say::signed::proved_by;
use crate::say::table::Row;
use crate::settings::Settings;
use fec_base::error::Action;
use fec_base::names::show;
use fec_core::digest::Digest;
use fec_keys::age::Keys;
use fec_sidecar::examine::{Examined, Scope, State, examine, examine_deep, examine_selected};
use fec_sidecar::scrub::{Scrub, scrub};
use fecfile::Error;
use fecfile::seal::SealError;
use std::path::Path;
use std::time::Instant;

/// The result of examining a sidecar and the files it protects.
struct Looked {
    report: Report,
    examined: Examined,
    exit: Exit,
}

impl Looked {
    /// The root of the sidecar, in hexadecimal.
    fn root(&self) -> &str {
        &self.report.root
    }

    /// The proof of its root, if any.
    fn proved_by(&self, root_was_given: bool) -> Option<String> {
        proved_by(root_was_given, self.report.signed_by.as_ref())
    }

    /// The number of entries, and how many of them are intact.
    fn entries(&self) -> (usize, usize) {
        let all = self.report.entries as usize;
        (all, all.saturating_sub(self.examined.entries.len()))
    }

    /// The findings in one line, without the name of the sidecar.
    fn verdict(&self) -> String {
        self.report.found(&self.examined)
    }
}

pub(crate) fn run(path: &Path, args: &line::Verify, settings: &Settings) -> Result<Exit> {
    let keys = args.open.keys()?;
    tell(&look(path, args.root, keys.as_ref(), args, settings)?, settings)
}

/// Examines the part of what the sidecar protects that is named first, if the others name one.
pub(crate) fn part(args: &line::Verify, settings: &Settings) -> Result<Option<Exit>> {
    let opening = Opening { root: args.root, trusted: &args.trusted, keys: None, base: args.base.as_deref() };
    let part = parts::of(&args.inputs, opening, &args.open, ("verify", settings))?;
    let Some(part) = part else { return Ok(None) };
    settings.given.check(PART)?;
    tell(&look_at(&part, args.root, args, settings)?, settings).map(Some)
}

/// Examines a sidecar and the files it protects, and tells it in a row.
pub(crate) fn row(
    path: &Path,
    root: Option<Digest>,
    keys: Option<&Keys>,
    args: &line::Verify,
    settings: &Settings,
) -> Result<Row> {
    let looked = look(path, root, keys, args, settings)?;
    let row = Row::of_sidecar(show(path), looked.root(), looked.entries(), (looked.verdict(), looked.exit));
    Ok(row.proved_by(looked.proved_by(root.is_some())))
}

fn tell(looked: &Looked, settings: &Settings) -> Result<Exit> {
    let text = looked.report.describe(&looked.examined, settings.verbose);
    settings.report_here(&looked.report, looked.exit, &text)?;
    settings.report_damage(looked.exit, || looked.report.verdict(&looked.examined));
    Ok(looked.exit)
}

/// Examines a sidecar and the files it protects, as far as the options ask. `root`, if given, has to be its root.
/// `keys` open a sealed one.
fn look(
    path: &Path,
    root: Option<Digest>,
    keys: Option<&Keys>,
    args: &line::Verify,
    settings: &Settings,
) -> Result<Looked> {
    let opening = Opening { root, trusted: &args.trusted, keys, base: args.base.as_deref() };
    look_at(&Opened::new(path, opening, settings)?, root, args, settings)
}

fn look_at(
    opened: &Opened,
    root: Option<Digest>,
    args: &line::Verify,
    settings: &Settings,
) -> Result<Looked> {
    let started = Instant::now();
    let bars = settings.bars("verify");
    let context = settings.context(&bars);
    let Opened { sidecar, signed, base, .. } = opened;
    if sidecar.was_sealed() && args.state.is_some() {
        return Err(Error::at(Action::VerifyState, sidecar.path(), SealError::TellsNames).into());
    }
    let part = Scrub {
        state: args.state.as_deref(),
        older_than: args.older_than,
        budget: args.budget,
        sample: args.sample,
    };
    let (scope, mut examined, scrubbed) = match (opened.selection(), args.quick, args.sidecar_only) {
        (Some(part), ..) => (Scope::Part, examine_selected(sidecar, base, part, &context)?, None),
        _ if part.state.is_some() || part.sample.is_some() => {
            let (examined, scrubbed) = scrub(sidecar, base, &part, &context)?;
            (Scope::Part, examined, Some(scrubbed))
        }
        (_, true, _) => (Scope::Quick, examine(sidecar, base, Scope::Quick, &context)?, None),
        (_, _, true) => (Scope::Sidecar, examine(sidecar, base, Scope::Sidecar, &context)?, None),
        _ if args.deep => (Scope::All, examine_deep(sidecar, base, &context)?, None),
        _ => (Scope::All, examine(sidecar, base, Scope::All, &context)?, None),
    };
    let was_damaged =
        scrubbed.as_ref().is_some_and(|scrubbed| scrubbed.damaged_before > 0 || scrubbed.sidecar_was_damaged);
    examined.leave_out(args.ignore.iter().flat_map(|kind| states(*kind)), args.ignore.contains(&Ignore::New));
    let advice = opened.advice(Proofs::of_verify(args, settings).with_root(root));
    let is_renamed = base.renamed().next().is_some();
    let report = Report::new(
        (sidecar, signed.as_ref(), advice),
        &examined,
        (scope, opened.selection()),
        scrubbed.as_ref(),
        started,
    );
    let is_denied = examined.denied().next().is_some();
    let was_lost = scrubbed.as_ref().is_some_and(|scrubbed| scrubbed.lost_before > 0);
    let is_whole = examined.is_intact() && !was_damaged && examined.unprotected.omitted.is_empty();
    let exit = match (is_whole, examined.is_mendable() && !was_lost) {
        // An entry that this user may not read may be intact or damaged.
        _ if is_denied => Exit::Io,
        (true, _) if !is_renamed => Exit::Done,
        (true, _) => Exit::Mendable,
        (false, true) => Exit::Mendable,
        (false, false) => Exit::Lost,
    };
    Ok(Looked { report, examined, exit })
}

/// The states that are left unsaid.
fn states(ignored: Ignore) -> &'static [State] {
    match ignored {
        Ignore::Edited => &[State::Edited, State::Shifted, State::Changing],
        Ignore::Changed => &[State::Changed],
        Ignore::Moved => &[State::Moved],
        Ignore::Gone => &[State::Gone],
        Ignore::New => &[],
    }
}

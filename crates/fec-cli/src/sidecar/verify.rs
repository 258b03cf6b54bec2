//! `fec verify` of a sidecar.

use super::report::Report;
use super::{open, proof};
use crate::args;
use crate::failure::{Exit, Failure, Result};
use crate::settings::Settings;
use fecfile::seal::SealError;
use fecfile::sidecar::examine::{Scope, base_of, examine, examine_deep};
use fecfile::sidecar::scrub::{Scrub, scrub};
use fecfile::{Context, Error};
use std::path::Path;
use std::time::Instant;

pub(crate) fn run(path: &Path, args: &args::Verify, settings: &Settings) -> Result<Exit> {
    let started = Instant::now();
    let bars = settings.bars("verify");
    let context = Context { settings: settings.library, progress: &bars };
    let keys = args.open.keys()?;
    let (sidecar, signed) = open(path, args.root, &args.trusted, keys.as_ref(), settings)?;
    if sidecar.was_sealed() && args.state.is_some() {
        return Err(Error::at("verify --state", path, SealError::TellsNames).into());
    }
    let base = base_of(&sidecar, args.base.as_deref())?;
    let part = Scrub {
        state: args.state.as_deref(),
        older_than: args.older_than,
        budget: args.budget,
        sample: args.sample,
    };
    if part.budget.is_some() && part.state.is_none() && part.sample.is_none() {
        return Err(Failure::usage("verify: --budget needs --state or --sample")
            .help("with --state FILE the next run goes on with what was not looked at"));
    }
    let (scope, examined, scrubbed) = match (args.quick, args.sidecar_only) {
        _ if part.state.is_some() || part.sample.is_some() => {
            let (examined, scrubbed) = scrub(&sidecar, &base, &part, &context)?;
            (Scope::Part, examined, Some(scrubbed))
        }
        (true, _) => (Scope::Quick, examine(&sidecar, &base, Scope::Quick, &context)?, None),
        (_, true) => (Scope::Sidecar, examine(&sidecar, &base, Scope::Sidecar, &context)?, None),
        _ if args.deep => (Scope::All, examine_deep(&sidecar, &base, &context)?, None),
        _ => (Scope::All, examine(&sidecar, &base, Scope::All, &context)?, None),
    };
    let proof = proof(args.root, &args.trusted);
    let report =
        Report::new((&sidecar, signed.as_ref(), proof), &examined, scope, scrubbed.as_ref(), started);
    settings.report_here(&report, &report.describe(&examined, settings.verbose))?;
    let was_damaged =
        scrubbed.is_some_and(|scrubbed| scrubbed.damaged_before > 0 || scrubbed.sidecar_was_damaged);
    let exit = match (examined.is_intact() && !was_damaged, examined.is_mendable()) {
        (true, _) => Exit::Done,
        (false, true) => Exit::Mendable,
        (false, false) => Exit::Lost,
    };
    settings.report_damage(exit, || report.verdict(&examined));
    Ok(exit)
}

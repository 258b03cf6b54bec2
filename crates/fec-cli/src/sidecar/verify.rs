//! `fec verify` of a sidecar.

use super::report::Report;
use crate::args;
use crate::failure::{Exit, Result};
use crate::settings::Settings;
use fecfile::Context;
use fecfile::sidecar::Sidecar;
use fecfile::sidecar::examine::{Scope, base_of, examine};
use std::path::Path;
use std::time::Instant;

pub(crate) fn run(path: &Path, args: &args::Verify, settings: &Settings) -> Result<Exit> {
    let started = Instant::now();
    let bars = settings.bars("verify");
    let context = Context { settings: settings.library, progress: &bars };
    let sidecar = Sidecar::open(path, args.root, &settings.library)?;
    let base = base_of(&sidecar, args.base.as_deref())?;
    let scope = match (args.quick, args.sidecar_only) {
        (true, _) => Scope::Quick,
        (_, true) => Scope::Sidecar,
        _ => Scope::All,
    };
    let examined = examine(&sidecar, &base, scope, &context)?;
    let report = Report::new(&sidecar, &examined, scope, started);
    settings.report(&report, &report.describe(&examined), false)?;
    Ok(match (examined.is_intact(), examined.is_mendable()) {
        (true, _) => Exit::Done,
        (false, true) => Exit::Mendable,
        (false, false) => Exit::Lost,
    })
}

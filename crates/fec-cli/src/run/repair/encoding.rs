//! The repair of an encoding that was opened.

use crate::line;
use crate::run::target::made_of_inputs;
use crate::say::failure::{Exit, Failure, Result};
use crate::say::repair::Report;
use crate::settings::Settings;
use fecfile::{Archive, EncodingError, Error, Repair};
use std::time::Instant;

/// Repairs an encoding.
pub(crate) fn mend(
    archive: &Archive,
    args: &line::Repair,
    settings: &Settings,
    started: Instant,
) -> Result<(Report, Exit)> {
    let bars = settings.bars("repair");
    let policy = made_of_inputs(settings.policy(args.force), &args.inputs);
    let how = Repair { out: args.output.as_deref(), policy, dry_run: args.dry_run };
    let repaired =
        archive.repair(how, &settings.context(&bars)).map_err(|error| lost(error, archive, args))?;
    let exit = if args.dry_run && !repaired.files.is_empty() { Exit::Mendable } else { Exit::Done };
    Ok((Report::new(&repaired, archive, started), exit))
}

/// The failure of a repair. Where shard files are too few, it says how many more are needed.
fn lost(error: Error, archive: &Archive, args: &line::Repair) -> Failure {
    let is_lost = matches!(error.cause(), Some(EncodingError::Lost(_)));
    let failure = Failure::from(error);
    let code = archive.encoded().shape().code;
    // Shards that cannot be read may be there.
    let is_lost = is_lost && failure.exit == Exit::Lost;
    match archive.given().filter(|given| is_lost && *given < code.k()) {
        None => failure,
        Some(given) => failure.help(format!(
            "{given} of {} shards found; {} are needed: find {} more{}",
            code.n(),
            code.k(),
            code.k() - given,
            if args.from.urls.is_empty() { ", or name a copy elsewhere with --from" } else { "" }
        )),
    }
}

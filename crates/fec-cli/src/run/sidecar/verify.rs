//! `fec verify` of a sidecar.

use crate::line;
use crate::run::proofs::Proofs;
use crate::run::sidecar::open;
use crate::say::advice::Advice;
use crate::say::failure::{Exit, Failure, Result};
use crate::say::sidecar::Report;
use crate::settings::Settings;
use fec_base::error::Action;
use fec_core::digest::Digest;
use fec_keys::age::Keys;
use fec_sidecar::examine::{Examined, Scope, base_of, examine, examine_deep};
use fec_sidecar::scrub::{Scrub, scrub};
use fecfile::Error;
use fecfile::seal::SealError;
use std::path::Path;
use std::time::Instant;

/// The result of examining a sidecar and the files it protects.
pub(crate) struct Looked {
    report: Report,
    examined: Examined,
    pub(crate) exit: Exit,
}

impl Looked {
    /// The root of the sidecar, in hexadecimal.
    pub(crate) fn root(&self) -> &str {
        &self.report.root
    }

    /// The number of entries, and how many of them are intact.
    pub(crate) fn entries(&self) -> (usize, usize) {
        let all = self.report.entries as usize;
        (all, all.saturating_sub(self.examined.entries.len()))
    }

    /// The findings in one line, without the name of the sidecar.
    pub(crate) fn verdict(&self) -> String {
        self.report.found(&self.examined)
    }
}

pub(crate) fn run(path: &Path, args: &line::Verify, settings: &Settings) -> Result<Exit> {
    let keys = args.open.keys()?;
    let looked = look(path, args.root, keys.as_ref(), args, settings)?;
    let text = looked.report.describe(&looked.examined, settings.verbose);
    settings.report_here(&looked.report, &text)?;
    settings.report_damage(looked.exit, || looked.report.verdict(&looked.examined));
    Ok(looked.exit)
}

/// Examines a sidecar and the files it protects, as far as the options ask. `root`, if given, has to be its root.
/// `keys` open a sealed one.
pub(crate) fn look(
    path: &Path,
    root: Option<Digest>,
    keys: Option<&Keys>,
    args: &line::Verify,
    settings: &Settings,
) -> Result<Looked> {
    let started = Instant::now();
    let bars = settings.bars("verify");
    let context = settings.context(&bars);
    let (sidecar, signed) = open(path, root, &args.trusted, keys, settings)?;
    if sidecar.was_sealed() && args.state.is_some() {
        return Err(Error::at(Action::VerifyState, path, SealError::TellsNames).into());
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
    let advice = Advice::new(Proofs::of_verify(args, settings).with_root(root), &sidecar, &base);
    let report =
        Report::new((&sidecar, signed.as_ref(), advice), &examined, scope, scrubbed.as_ref(), started);
    let was_damaged =
        scrubbed.is_some_and(|scrubbed| scrubbed.damaged_before > 0 || scrubbed.sidecar_was_damaged);
    let is_denied = examined.denied().next().is_some();
    let exit = match (examined.is_intact() && !was_damaged, examined.is_mendable()) {
        // An entry that this user may not read may be intact or damaged.
        _ if is_denied => Exit::Io,
        (true, _) => Exit::Done,
        (false, true) => Exit::Mendable,
        (false, false) => Exit::Lost,
    };
    Ok(Looked { report, examined, exit })
}

//! `fec verify --audit`: how much places can have lost at most.

use super::commands::{defer, explain, open, root, targets};
use crate::line::Verify;
use crate::say::failure::{Exit, Result};
use crate::say::stores_audit::AuditReport;
use crate::settings::Settings;
use fec_base::error::Action;
use fec_base::io::system::random;
use fec_stores::audit::{Audit, AuditState};
use fec_stores::stored::Stored;
use fecfile::error::{Error, Place};
use std::collections::BTreeSet;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Bits of a number that every reader of JSON takes.
const SEED_BITS: u64 = (1 << 53) - 1;

/// Audits what the stores of --from hold.
pub(crate) fn audit(args: &Verify, settings: &Settings) -> Result<Exit> {
    let started = Instant::now();
    let root = root(args.root);
    let state = args.state.as_deref().map(|path| AuditState::load(path, root).map(|state| (path, state)));
    let state = state.transpose().map_err(explain("verify"))?;
    let places = open(targets(&args.stores.from)?, &args.network.limits, settings)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let mut audit = Audit {
        confidence: args.confidence,
        rot: args.rot,
        budget: args.budget_bytes,
        seed: args.seed.map_or_else(seed, Ok)?,
        left_out: BTreeSet::new(),
    };
    if let (Some((_, state)), Some(age)) = (&state, args.older_than) {
        audit.left_out = state.recent(&places, &audit, now, age);
    }
    defer("verify", settings, false);
    let stored = Stored::find_everywhere(&places, root, None).map_err(explain("verify"))?;
    let bars = settings.bars("verify");
    let context = settings.context(&bars);
    let audited = stored.audit(&audit, &context).map_err(explain("verify"))?;
    if let Some((path, mut state)) = state {
        state.note(&places, &audited, &audit, now);
        state.save(path, settings.library.sync)?;
    }
    let report = AuditReport::new(&stored, (&audited, &audit), &places, args, started);
    let exit = audited.class().map_or(Exit::Done, Exit::from);
    settings.report_here(&report, exit, &report.describe())?;
    settings.report_damage(exit, || report.summary());
    Ok(exit)
}

/// A number that no place knows beforehand.
fn seed() -> Result<u64> {
    let mut seed = [0; 8];
    random(&mut seed).map_err(|e| Error::io(Action::Read, Place::Nowhere, e))?;
    Ok(u64::from_le_bytes(seed) & SEED_BITS)
}

//! `fec rekey`: other recipients for a sealed payload.

use super::commands::{defer, explain, open, root, targets};
use crate::line::Rekey;
use crate::plan::options::STORES;
use crate::run::encode::root_file;
use crate::run::seal::keys::recipients;
use crate::say::failure::{Exit, Result};
use crate::say::stores_rekey::RekeyReport;
use crate::settings::{Settings, print_line};
use crate::system::border::no_core_dumps;
use fec_base::names::hex;
use fec_stores::send::causes;
use fec_stores::stored::Stored;
use fecfile::seal::SealedTo;
use std::time::Instant;

/// Seals a payload in stores for other recipients.
pub(crate) fn rekey(args: &Rekey, settings: &Settings) -> Result<Exit> {
    let started = Instant::now();
    settings.given.check(STORES)?;
    if let Some(path) = &args.root_file {
        root_file::check(path, settings.policy(args.force))?;
    }
    no_core_dumps();
    let to = recipients(&args.recipient, &args.recipients_file)?;
    let count = to.len();
    let places = open(targets(&args.from)?, &args.limits, settings)?;
    let keys = args.open.keys()?.expect("the parser asks for a key");
    defer("rekey", settings, false);
    let stored = Stored::find(&places, root(args.root), None).map_err(explain("rekey"))?;
    let bars = settings.bars("scan");
    let context = settings.context(&bars);
    let done = stored.rekey(&keys, &SealedTo::Recipients(to), &context).map_err(explain("rekey"))?;
    let new = hex(&done.root);
    if let Some(path) = &args.root_file {
        root_file::write(path, &new, settings.policy(args.force), settings)?;
    }
    let report = RekeyReport::new(&stored, (&done, count), &places, &args.from, started);
    let exit = done.class().map_or(Exit::Done, Exit::from);
    settings.report(&report, exit, &report.describe(), false)?;
    if exit != Exit::Done {
        settings.say_quietly("rekey", || {
            let lines = causes(done.missing.iter(), &places).into_iter();
            lines.map(|line| format!("the manifest did not arrive at {line}")).collect()
        });
    }
    if !settings.json {
        print_line(&new)?;
    }
    Ok(exit)
}

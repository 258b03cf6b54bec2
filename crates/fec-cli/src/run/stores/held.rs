//! `fec list` and `fec forget`: the encodings that places hold, and the removal of one.

use super::commands::{defer, explain, open, targets};
use crate::line::{Forget, List};
use crate::plan::check;
use crate::plan::forget::{CONSENT, Consent};
use crate::plan::list::{FILE, REFUSALS};
use crate::plan::options::STORES;
use crate::run::target::quoted;
use crate::say::failure::{Exit, Result, say};
use crate::say::stores_forget::{ForgetReport, intends};
use crate::say::stores_list::ListReport;
use crate::settings::Settings;
use crate::system::consent::asked;
use fec_base::names::{hex, show};
use fec_stores::forget::{Forget as Plan, Forgotten};
use fec_stores::inventory::inventory;
use fec_stores::target::{Scheme, Target};
use std::path::Path;
use std::time::Instant;

/// Lists the encodings in places.
pub(crate) fn list(args: &List, settings: &Settings) -> Result<Exit> {
    let started = Instant::now();
    settings.given.check(STORES)?;
    check(args, REFUSALS, str::to_owned)?;
    let named = targets(&[&args.places[..], &args.from[..]].concat())?;
    named.iter().try_for_each(check_no_file)?;
    let places = open(named, &args.limits, settings)?;
    defer("list", settings, false);
    let bars = settings.bars("scan");
    let found = inventory(&places, &settings.context(&bars)).map_err(explain("list"))?;
    let report = ListReport::new(&found, &places, settings.verbose, started);
    let exit = found.class().map_or(Exit::Done, Exit::from);
    settings.report_here(&report, exit, &report.describe())?;
    settings.report_damage(exit, || report.summary());
    Ok(exit)
}

/// Refuses a file: the habit of other programs names one.
fn check_no_file(target: &Target) -> Result<()> {
    let Scheme::Folder(path) = &target.scheme else { return Ok(()) };
    check(&path.is_file(), FILE, |name| if name == "quoted" { quoted(path) } else { show(path) })
}

/// Removes an encoding from places.
pub(crate) fn forget(args: &Forget, settings: &Settings) -> Result<Exit> {
    let started = Instant::now();
    settings.given.check(STORES)?;
    let root = args.root.expect("the parser asks for --root");
    let places = open(targets(&args.from)?, &args.limits, settings)?;
    defer("forget", settings, false);
    let bars = settings.bars("scan");
    let context = settings.context(&bars);
    let plan = Plan::plan(&places, root, args.partial, &context).map_err(explain("forget"))?;
    let forgotten = if plan.is_nothing() {
        Forgotten { unasked: plan.unasked().to_vec(), ..Forgotten::default() }
    } else {
        consented(&plan, args, intends(&plan, &places), settings)?;
        plan.run(&context).map_err(explain("forget"))?
    };
    let report = ForgetReport::new(&plan, &forgotten, &places, started);
    let exit = forgotten.class().map_or(Exit::Done, Exit::from);
    settings.report(&report, exit, &report.describe(), false)?;
    settings.say_quietly("forget", || if exit == Exit::Done { Vec::new() } else { report.lines() });
    Ok(exit)
}

/// Says what goes, and asks whether it may.
fn consented(plan: &Plan<'_>, args: &Forget, intends: String, settings: &Settings) -> Result<()> {
    let answer =
        if args.yes || settings.json { None } else { asked(&format!("{intends}\nremove it? (yes) ")) };
    let consent = match (args.yes, answer) {
        (true, _) | (false, Some(true)) => Consent::Given,
        (false, Some(false)) => Consent::Refused,
        (false, None) => Consent::NotAsked,
    };
    if answer.is_none() && !settings.json && !(args.yes && settings.quiet) {
        say(&intends);
    }
    check(&consent, CONSENT, |_| {
        let from: Vec<String> =
            args.from.iter().map(|place| format!("--from {}", quoted(Path::new(place)))).collect();
        let partial = if args.partial { " --partial" } else { "" };
        format!("fec forget --root {} {}{partial} --yes", hex(&plan.root()), from.join(" "))
    })
}

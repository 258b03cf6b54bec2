//! `fec protect --list`: the generations that a sidecar holds.

use crate::line;
use crate::line::seal::Open;
use crate::line::sign::Trusted;
use crate::run::sidecar::opened::{Opening, open};
use crate::run::sidecar::place::place_of;
use crate::say::failure::{Exit, Result};
use crate::say::generations::Report;
use crate::settings::{Settings, print_line};
use fec_sidecar::kind;

pub(crate) fn run(args: &line::Protect, settings: &Settings) -> Result<Exit> {
    let path = match &args.paths[..] {
        [path] if args.output.is_none() && path.is_file() && kind::starts(path)? => path.clone(),
        paths => place_of(args, paths)?,
    };
    let keys = Open { identity: args.identity.clone(), passphrase: args.seal.passphrase }.keys()?;
    let nobody = Trusted::default();
    let opening = Opening { root: None, trusted: &nobody, keys: keys.as_ref(), base: None };
    let (sidecar, _) = open(&path, opening, settings)?;
    let report = Report::new(&sidecar, sidecar.generations(&settings.library)?);
    match settings.json {
        true => settings.report(&report, Exit::Done, "", false)?,
        false => report.lines().try_for_each(|line| print_line(&line))?,
    }
    Ok(Exit::Done)
}

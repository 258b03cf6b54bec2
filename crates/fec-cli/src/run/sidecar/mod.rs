//! Files that stay where they are: `fec protect`, and `verify`, `repair` and `manifest` of a sidecar.
//!
//! A sidecar is recognized on every system, and its files are looked at on Unix alone: `elsewhere.rs` refuses to.

#[cfg(unix)]
pub(crate) mod copies;
#[cfg(not(unix))]
mod elsewhere;
#[cfg(unix)]
mod follow;
#[cfg(unix)]
mod known;
#[cfg(unix)]
mod list;
#[cfg(unix)]
pub(crate) mod manifest;
#[cfg(unix)]
mod opened;
#[cfg(unix)]
mod parts;
#[cfg(unix)]
mod place;
#[cfg(unix)]
mod policy;
#[cfg(unix)]
pub(crate) mod protect;
#[cfg(unix)]
pub(crate) mod repair;
#[cfg(unix)]
pub(crate) mod verify;

#[cfg(not(unix))]
pub(crate) use elsewhere::{copies, manifest, protect, repair, verify};

use crate::line::seal::Open;
use crate::line::sign::Trusted;
use crate::plan::named::{Found, INPUT, NOT_ENCODED};
use crate::plan::refused;
use crate::run::proofs::Proofs;
use crate::run::sign;
use crate::run::survey::{self, Survey, is_ours};
use crate::run::target::{ENDING, beside, is_dash, quoted};
use crate::say::failure::{Exit, Failure, Result};
use fec_base::error::Action;
use fec_base::names::{show, show_input};
use fec_keys::sign::Trust;
use fec_sidecar::kind;
use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The sidecar that a command line names, if it names one, known by its first bytes or its name; or the one beside the
/// file that it names. Without a key, a sealed sidecar counts as a container.
pub(crate) fn named(paths: &[PathBuf], open: &Open) -> Result<Option<PathBuf>> {
    let [path] = paths else { return Ok(None) };
    if is_dash(path) || !path.is_file() {
        return Ok(of_file(path, open));
    }
    let is_one = kind::starts(path)?
        || match (path.extension().is_some_and(|ending| ending == ENDING), open.is_given()) {
            (false, false) => false,
            (true, true) => true,
            (true, false) => !kind::is_sealed(path)?,
            (false, true) => kind::is_sealed(path)?,
        };
    Ok(if is_one { Some(path.clone()) } else { of_file(path, open) })
}

/// The sidecar beside a file that is no encoding, or that is gone. Without a key, a sealed one does not count.
pub(crate) fn of_file(path: &Path, open: &Open) -> Option<PathBuf> {
    let is_gone = || path.symlink_metadata().is_err_and(|e| e.kind() == ErrorKind::NotFound);
    if is_dash(path) || !(path.is_file() && !is_ours(path) || is_gone()) {
        return None;
    }
    let is_open = |sidecar: &PathBuf| open.is_given() || !kind::is_sealed(sidecar).unwrap_or(false);
    beside(path).filter(|sidecar| sidecar.is_file() && is_one(sidecar).unwrap_or(true)).filter(is_open)
}

/// Refuses options for sidecars with the failure `why`. A sealed sidecar gets advice to give its key instead. A path
/// that is not there may be one, of a disk that is not mounted.
pub(crate) fn refuse_options(paths: &[PathBuf], command: &str, why: Failure) -> Failure {
    let absent = |path: &&PathBuf| !is_dash(path) && path.symlink_metadata().is_err();
    if let Some((path, cause)) =
        paths.iter().find(absent).and_then(|path| Some((path, path.metadata().err()?)))
    {
        return Failure::io(Action::Read, path, cause);
    }
    match paths {
        [path] if !is_dash(path) && path.is_file() && kind::is_sealed(path).unwrap_or(false) => {
            needs_key(path, command, None)
        }
        _ => why,
    }
}

/// The failure where a sealed sidecar has to be opened and no key is given. `mend` is the command that mends it
/// unopened.
pub(crate) fn needs_key(path: &Path, command: &str, mend: Option<String>) -> Failure {
    refused(&Found::Sealed { is_all: mend.is_none() }, INPUT, |name| match name {
        "verb" => command.to_owned(),
        "path" => show_input(path),
        _ => mend.clone().unwrap_or_default(),
    })
}

/// The keys whose signatures count, if any were named. The signature of a sealed sidecar is a file beside it.
pub(crate) fn trust(paths: &[PathBuf], trusted: &Trusted) -> Result<Option<Trust>> {
    match paths {
        // This case comes first: telling whether a file is a sidecar may search all of it.
        _ if trusted.signer.is_empty() => Ok(None),
        [path] if !is_dash(path) && path.is_file() && kind::is_sealed(path)? => {
            sign::trust_of_sidecar(trusted, path)
        }
        _ => sign::trust(trusted),
    }
}

/// Names the sidecar that stands beside the named path, or beside a folder around it, if there is one.
pub(crate) fn meant(failure: Failure, paths: &[PathBuf], command: &str, proofs: Proofs<'_>) -> Failure {
    let [path] = paths else { return failure };
    let is_none_of_ours = failure.help.as_deref() == Some(NOT_ENCODED);
    if !(is_none_of_ours || matches!(failure.exit, Exit::Lost | Exit::Io | Exit::Usage)) {
        return failure;
    }
    let absolute = std::path::absolute(path).unwrap_or_default();
    let around = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
    let places = std::iter::once(path.as_path()).chain(around).chain(absolute.ancestors().skip(1));
    let mut sidecars = places.filter_map(|place| Some((place, beside(place)?)));
    let Some((place, sidecar)) = sidecars.find(|(_, sidecar)| sidecar.is_file()) else { return failure };
    let part = if place == path { String::new() } else { format!(" {}", quoted(path)) };
    let (name, command) = (show(place), proofs.command(command, &sidecar) + &part);
    let sidecar = show(&sidecar);
    failure.help(format!("{name} is protected by {sidecar}: name that\n  {command}"))
}

/// All that is in the named places, with the sidecars beside them, which come first. A file that is no encoding stands
/// for its sidecar.
pub(crate) fn survey(paths: &[PathBuf], open: &Open) -> Result<Survey> {
    let (mut others, mut sidecars) = (Vec::new(), beside_folders(paths));
    for path in paths {
        match of_file(path, open) {
            Some(sidecar) => sidecars.push(sidecar),
            None => others.push(path.clone()),
        }
    }
    let mut survey = survey::survey(&others)?;
    sidecars.append(&mut survey.sidecars);
    let mut seen = HashSet::new();
    sidecars.retain(|path| seen.insert(path.clone()));
    Ok(Survey { sidecars, ..survey })
}

/// The sidecars beside the named folders: whoever names a folder also means its sidecar.
fn beside_folders(paths: &[PathBuf]) -> Vec<PathBuf> {
    let folders = paths.iter().filter(|path| path.is_dir());
    let beside = folders.filter_map(|folder| beside(folder));
    beside.filter(|path| path.is_file() && is_one(path).unwrap_or(true)).collect()
}

/// Tells whether a file begins as a sidecar, or is a sealed one.
pub(crate) fn is_one(path: &Path) -> fecfile::Result<bool> {
    Ok(kind::starts(path)? || kind::is_sealed(path)?)
}

/// Tells whether a sidecar is the named path, lies in it, or stands beside it.
pub(crate) fn is_of(sidecar: &Path, path: &Path) -> bool {
    sidecar.starts_with(path) || beside(path).is_some_and(|beside| beside == sidecar)
}

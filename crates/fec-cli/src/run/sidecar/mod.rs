//! Files that stay where they are: `fec protect`, and `verify`, `repair` and `manifest` of a sidecar.

mod known;
pub(crate) mod manifest;
pub(crate) mod protect;
pub(crate) mod repair;
pub(crate) mod verify;

use crate::line::seal::Open;
use crate::line::sign::Trusted;
use crate::run::inputs::NOT_ENCODED;
use crate::run::proofs::Proofs;
use crate::run::sign;
use crate::run::target::{ENDING, beside, is_dash};
use crate::say::failure::{Exit, Failure, Result, misuse};
use crate::settings::Settings;
use fec_base::names::show;
use fec_core::digest::Digest;
use fec_keys::age::Keys;
use fec_keys::sign::{Signed, Trust};
use fec_sidecar::Sidecar;
use std::path::{Path, PathBuf};

/// The sidecar that a command line names, if it names one, known by its first bytes or its name. Without a key, a
/// sealed sidecar counts as a container.
pub(crate) fn named<'a>(paths: &'a [PathBuf], open: &Open) -> Result<Option<&'a Path>> {
    let [path] = paths else { return Ok(None) };
    if is_dash(path) || !path.is_file() {
        return Ok(None);
    }
    let is_one = Sidecar::starts(path)?
        || match (path.extension().is_some_and(|ending| ending == ENDING), open.is_given()) {
            (false, false) => false,
            (true, true) => true,
            (true, false) => !Sidecar::is_sealed(path)?,
            (false, true) => Sidecar::is_sealed(path)?,
        };
    Ok(is_one.then_some(path))
}

/// Refuses options for sidecars with the failure `why`. A sealed sidecar gets advice to give its key instead.
pub(crate) fn refuse_options(paths: &[PathBuf], command: &str, why: Failure) -> Failure {
    match paths {
        [path] if !is_dash(path) && path.is_file() && Sidecar::is_sealed(path).unwrap_or(false) => {
            needs_key(path, command, None)
        }
        _ => why,
    }
}

/// The failure where a sealed sidecar has to be opened and no key is given. `more` is further advice.
pub(crate) fn needs_key(path: &Path, command: &str, more: Option<&str>) -> Failure {
    let key = "give the file with your key: -i FILE, or --passphrase";
    misuse(command, path, "it is a sealed sidecar, and what is asked for needs its key")
        .help(more.map_or(key.to_owned(), |more| format!("{key};\n{more}")))
}

/// The keys whose signatures count, if any were named. The signature of a sealed sidecar is a file beside it.
pub(crate) fn trust(paths: &[PathBuf], trusted: &Trusted) -> Result<Option<Trust>> {
    match paths {
        // This case comes first: telling whether a file is a sidecar may search all of it.
        _ if trusted.signer.is_empty() => Ok(None),
        [path] if !is_dash(path) && path.is_file() && Sidecar::is_sealed(path)? => {
            sign::trust_of_sidecar(trusted, path)
        }
        _ => sign::trust(trusted),
    }
}

/// Opens a sidecar by its root or its signer, and a sealed one with these keys.
fn open(
    path: &Path,
    root: Option<Digest>,
    trusted: &Trusted,
    keys: Option<&Keys>,
    settings: &Settings,
) -> Result<(Sidecar, Option<Signed>)> {
    let trust = sign::trust_of_sidecar(trusted, path)?;
    if let Some(keys) = keys {
        return Ok(Sidecar::open_sealed(path, (root, trust.as_ref()), keys, &settings.library)?);
    }
    match trust {
        None => Ok((open_by_root(path, root, settings)?, None)),
        Some(trust) => {
            let (sidecar, signed) = Sidecar::open_signed(path, root, &trust, &settings.library)?;
            Ok((sidecar, Some(signed)))
        }
    }
}

/// Opens a sidecar by its root. If this user made it, the root also proves times and permissions.
fn open_by_root(path: &Path, root: Option<Digest>, settings: &Settings) -> Result<Sidecar> {
    let known = root.map_or_else(Vec::new, |root| known::of(&root));
    match root.filter(|_| !known.is_empty()) {
        Some(root) => Ok(Sidecar::open_known(path, root, &known, &settings.library)?),
        None => Ok(Sidecar::open(path, root, &settings.library)?),
    }
}

/// Names the sidecar that stands beside the named path, if there is one.
pub(crate) fn meant(failure: Failure, paths: &[PathBuf], command: &str, proofs: Proofs<'_>) -> Failure {
    let [path] = paths else { return failure };
    let is_none_of_ours = failure.help.as_deref() == Some(NOT_ENCODED);
    let may_be = is_none_of_ours || matches!(failure.exit, Exit::Lost | Exit::Io);
    match beside(path) {
        Some(sidecar) if may_be && sidecar.is_file() => {
            let (name, command) = (show(path), proofs.command(command, &sidecar));
            let sidecar = show(&sidecar);
            failure.help(format!("{name} is protected by {sidecar}: name that\n  {command}"))
        }
        _ => failure,
    }
}

/// The sidecars beside the named folders: whoever names a folder also means its sidecar.
pub(crate) fn beside_folders(paths: &[PathBuf]) -> Vec<PathBuf> {
    let folders = paths.iter().filter(|path| path.is_dir());
    let beside = folders.filter_map(|folder| beside(folder));
    beside.filter(|path| path.is_file() && is_one(path).unwrap_or(true)).collect()
}

/// Tells whether a file begins as a sidecar, or is a sealed one.
pub(crate) fn is_one(path: &Path) -> fecfile::Result<bool> {
    Ok(Sidecar::starts(path)? || Sidecar::is_sealed(path)?)
}

/// Tells whether a sidecar is the named path, lies in it, or stands beside it.
pub(crate) fn is_of(sidecar: &Path, path: &Path) -> bool {
    sidecar.starts_with(path) || beside(path).is_some_and(|beside| beside == sidecar)
}

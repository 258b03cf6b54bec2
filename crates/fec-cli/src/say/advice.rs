//! Commands in advice about a sidecar: they name it with the options that prove and open it.

use crate::run::proofs::Proofs;
use crate::run::target::beside;
use crate::run::target::quoted;
use fec_base::io::base::Base;
use fec_base::io::output::is_same;
use fec_sidecar::{Sidecar, signature_path};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The parts of commands in advice about a sidecar.
#[derive(Debug, Default)]
pub(crate) struct Advice {
    /// The sidecar, and the options again.
    pub(crate) named: String,
    /// The command that brings the sidecar up to date.
    pub(crate) update: String,
}

impl Advice {
    pub(crate) fn new(proofs: Proofs<'_>, sidecar: &Sidecar, base: &Base) -> Advice {
        let path = sidecar.path();
        let what = protected_paths(sidecar, base).unwrap_or_else(|| format!("PATH -o {}", quoted(path)));
        // A sealed sidecar is sealed anew for the recipients that are named, and a signature is made anew.
        let recipients = if proofs.has_identity() { " --recipient KEY" } else { "" };
        let place = proofs.signature().map_or_else(|| signature_path(path), Path::to_path_buf);
        let sign = if place.symlink_metadata().is_ok() { " --sign KEYFILE" } else { "" };
        let options = proofs.options(sidecar.was_sealed());
        Advice {
            named: quoted(path) + &options,
            update: format!("fec protect --update {what}{options}{recipients}{sign}"),
        }
    }
}

/// The paths that a sidecar protects, as an update names them, and the sidecar if it does not lie beside them. `None`
/// if they are too many to name, or one is not there: an update that does not name it would give up its protection.
pub(crate) fn protected_paths(sidecar: &Sidecar, base: &Base) -> Option<String> {
    /// Most paths of a command that somebody would type.
    const MOST: usize = 3;
    let mut tops: Vec<&[u8]> = Vec::new();
    for entry in &sidecar.catalog().entries {
        let is_below = |top: &&[u8]| entry.path.strip_prefix(*top).is_some_and(|rest| rest.starts_with(b"/"));
        // Entries are in the order of their bytes, where a name with a dot may stand between a folder and its content.
        if !tops.iter().any(is_below) {
            tops.push(&entry.path);
        }
        if tops.len() > MOST {
            return None;
        }
    }
    if tops.iter().any(|top| base.stat(top).is_err()) {
        return None;
    }
    let home = if base.path() == Path::new(".") { Path::new("") } else { base.path() };
    let paths: Vec<PathBuf> = tops.iter().map(|top| home.join(OsStr::from_bytes(top))).collect();
    let named: Vec<String> = paths.iter().map(|path| quoted(path)).collect();
    let path = sidecar.path();
    let is_beside = matches!(&paths[..], [of] if beside(of).is_some_and(|beside| is_same(&beside, path)));
    let output = if is_beside { String::new() } else { format!(" -o {}", quoted(path)) };
    (!named.is_empty()).then(|| named.join(" ") + &output)
}

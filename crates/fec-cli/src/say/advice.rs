//! Commands in advice about a sidecar: they name it with the options that prove and open it.

use crate::run::proofs::Proofs;
use crate::run::target::beside;
use crate::run::target::quoted;
use fec_base::io::base::Base;
use fec_base::io::output::is_same;
use fec_base::names::show_bytes;
use fec_sidecar::Sidecar;
use fec_sidecar::examine::{Examined, State};
use fec_sidecar::kind::signature_path;
use std::path::{Path, PathBuf};

/// The parts of commands in advice about a sidecar.
#[derive(Debug, Default)]
pub(crate) struct Advice {
    /// The sidecar, and the options again.
    pub(crate) named: String,
    /// The command that brings the sidecar up to date.
    pub(crate) update: String,
    /// Folders that were renamed: their names, and those that they have now.
    pub(crate) renamed: Vec<(String, String)>,
}

impl Advice {
    /// `part` has the paths that name a part of the files, each with a space before it.
    pub(crate) fn new<'a>(proofs: Proofs<'a>, (sidecar, base): (&Sidecar, &'a Base), part: &str) -> Advice {
        let path = sidecar.path();
        let what = protected_paths(sidecar, base).unwrap_or_else(|| format!("PATH -o {}", quoted(path)));
        // A sealed sidecar is sealed anew for the recipients that are named, and a signature is made anew.
        let recipients = if proofs.has_identity() { " --recipient KEY" } else { "" };
        let place = proofs.signature().map_or_else(|| signature_path(path), Path::to_path_buf);
        let sign = if place.symlink_metadata().is_ok() { " --sign KEYFILE" } else { "" };
        let options = proofs.options(sidecar.was_sealed());
        let around = proofs.around(base).options(sidecar.was_sealed());
        Advice {
            named: quoted(path) + part + &options,
            update: format!("fec protect --update {what}{around}{recipients}{sign}"),
            renamed: base
                .renamed()
                .map(|renamed| (show_bytes(&renamed.from), show_bytes(&renamed.to)))
                .collect(),
        }
    }
}

/// The advice to who has deleted on purpose what is missing: a repair would bring it back.
pub(crate) fn give_up(examined: &Examined, update: &str) -> String {
    let damage = examined.entries.iter().filter(|report| report.state.is_damage());
    let (missing, others): (Vec<_>, Vec<_>) = damage.partition(|report| report.state == State::Missing);
    let when = if others.is_empty() { "" } else { "when the rest is mended, " };
    match missing.len() {
        0 => String::new(),
        _ => format!("if you deleted what is missing, {when}to give it up:\n  {update}\n"),
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
    let place = |top: &&[u8]| {
        let place = base.place(top);
        place.strip_prefix(".").map_or(place.clone(), Path::to_path_buf)
    };
    let paths: Vec<PathBuf> = tops.iter().map(place).collect();
    let named: Vec<String> = paths.iter().map(|path| quoted(path)).collect();
    let path = sidecar.path();
    let is_beside = matches!(&paths[..], [of] if beside(of).is_some_and(|beside| is_same(&beside, path)));
    let output = if is_beside { String::new() } else { format!(" -o {}", quoted(path)) };
    (!named.is_empty()).then(|| named.join(" ") + &output)
}

/// The sentences about folders that have other names than the sidecar says, and the command that records the new ones.
pub(crate) fn describe_renamed(renamed: &[(String, String)], update: &str) -> String {
    let mut out = String::new();
    for (from, to) in renamed {
        out.push_str(&format!("{from} is {to} now, as the files in it tell\n"));
    }
    if !renamed.is_empty() {
        out.push_str(&format!("to protect it under its new name, when nothing is damaged:\n  {update}\n"));
    }
    out
}

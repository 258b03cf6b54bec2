//! The options of a command line that the commands in its advice need again.

use super::beside;
use crate::seal::args::Open;
use crate::sign::args::Trusted;
use crate::target::quoted;
use fec_core::digest::Digest;
use fecfile::io::base::Base;
use fecfile::io::output::is_same;
use fecfile::names::hex;
use fecfile::sidecar::{Sidecar, signature_path};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The options that prove and open a sidecar, and tell where its files lie. Without them a command in advice would
/// believe what is not proved, look at nothing of a sealed sidecar, or write to another tree.
pub(super) struct Again<'a> {
    pub(super) root: Option<Digest>,
    pub(super) trusted: &'a Trusted,
    pub(super) base: Option<&'a Path>,
    pub(super) open: &'a Open,
}

/// The parts of commands in advice about a sidecar.
#[derive(Debug, Default)]
pub(super) struct Advice {
    /// The sidecar, and the options again.
    pub(super) named: String,
    /// The command that brings the sidecar up to date.
    pub(super) update: String,
}

impl Again<'_> {
    fn options(&self) -> String {
        let root = self.root.map(|root| format!(" --root {}", hex(&root)));
        let signers = self.trusted.signer.iter().map(|signer| format!(" --signer {signer}"));
        let signature = self.trusted.signature.iter().map(|path| format!(" --signature {}", quoted(path)));
        let base = self.base.map(|base| format!(" --base {}", quoted(base)));
        let keys = self.open.identity.iter().map(|path| format!(" -i {}", quoted(path)));
        let passphrase = self.open.passphrase.then(|| " --passphrase".to_owned());
        let proof = root.into_iter().chain(signers).chain(signature);
        proof.chain(base).chain(keys).chain(passphrase).collect()
    }

    pub(super) fn advice(&self, sidecar: &Sidecar, base: &Base) -> Advice {
        let path = sidecar.path();
        let what = protected_paths(sidecar, base).unwrap_or_else(|| format!("PATH -o {}", quoted(path)));
        // A sealed sidecar is sealed anew for the recipients that are named, and a signature is made anew.
        let recipients = if self.open.identity.is_empty() { "" } else { " --recipient KEY" };
        let place = self.trusted.signature.clone().unwrap_or_else(|| signature_path(path));
        let sign = if place.symlink_metadata().is_ok() { " --sign KEYFILE" } else { "" };
        let options = self.options();
        Advice {
            named: quoted(path) + &options,
            update: format!("fec protect --update {what}{options}{recipients}{sign}"),
        }
    }
}

/// The paths that a sidecar protects, as an update names them, and the sidecar if it does not lie beside them. `None`
/// if they are too many to name, or none is there.
pub(super) fn protected_paths(sidecar: &Sidecar, base: &Base) -> Option<String> {
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
    tops.retain(|top| base.stat(top).is_ok());
    let home = if base.path() == Path::new(".") { Path::new("") } else { base.path() };
    let paths: Vec<PathBuf> = tops.iter().map(|top| home.join(OsStr::from_bytes(top))).collect();
    let named: Vec<String> = paths.iter().map(|path| quoted(path)).collect();
    let path = sidecar.path();
    let is_beside = matches!(&paths[..], [of] if beside(of).is_some_and(|beside| is_same(&beside, path)));
    let output = if is_beside { String::new() } else { format!(" -o {}", quoted(path)) };
    (!named.is_empty()).then(|| named.join(" ") + &output)
}

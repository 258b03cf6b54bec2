//! A sidecar that was opened, with its files.

use super::known;
use crate::line::sign::Trusted;
use crate::run::proofs::Proofs;
use crate::run::sign;
use crate::say::advice::Advice;
use crate::say::failure::Result;
use crate::settings::Settings;
use fec_base::io::base::Base;
use fec_core::digest::Digest;
use fec_keys::age::Keys;
use fec_keys::sign::Signed;
use fec_sidecar::Sidecar;
use fec_sidecar::examine::{Selection, base_of};
use std::path::Path;

/// The options that a sidecar is opened by.
#[derive(Clone, Copy)]
pub(crate) struct Opening<'a> {
    pub(crate) root: Option<Digest>,
    pub(crate) trusted: &'a Trusted,
    pub(crate) keys: Option<&'a Keys>,
    /// The folder of its files, if it was named.
    pub(crate) base: Option<&'a Path>,
}

/// A sidecar that was opened, and its files.
pub(crate) struct Opened {
    pub(crate) sidecar: Sidecar,
    pub(crate) signed: Option<Signed>,
    pub(crate) base: Base,
    /// The part that was asked about, and the paths that name it, for a shell; `None` stands for everything.
    pub(crate) part: Option<(Selection, String)>,
}

impl Opened {
    /// Opens a sidecar by its root or its signer, and a sealed one with its keys.
    pub(crate) fn new(path: &Path, opening: Opening<'_>, settings: &Settings) -> Result<Opened> {
        let (sidecar, signed) = open(path, opening, settings)?;
        let base = base_of(&sidecar, opening.base)?;
        Ok(Opened { sidecar, signed, base, part: None })
    }

    /// The part that was asked about, unless it is everything.
    pub(crate) fn selection(&self) -> Option<&Selection> {
        self.part.as_ref().map(|(selection, _)| selection)
    }

    /// The parts of commands in advice, which name the part too.
    pub(crate) fn advice(&self, proofs: Proofs<'_>) -> Advice {
        Advice::new(proofs, (&self.sidecar, &self.base), self.part.as_ref().map_or("", |(_, paths)| paths))
    }
}

/// Opens a sidecar alone.
pub(crate) fn open(
    path: &Path,
    opening: Opening<'_>,
    settings: &Settings,
) -> Result<(Sidecar, Option<Signed>)> {
    let Opening { root, trusted, keys, .. } = opening;
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

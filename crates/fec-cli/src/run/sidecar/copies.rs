//! Copies of sidecars in the folders that the sidecars protect. The names in a sidecar are relative to its place: a
//! copy elsewhere finds no file, which tells no loss.

use crate::run::proofs::container_root;
use crate::run::target;
use crate::say::failure::say;
use crate::settings::Settings;
use fec_base::io::base::Base;
use fec_base::names::show;
use fec_core::digest::Digest;
use fec_sidecar::Sidecar;
use fec_sidecar::examine::base_of;
use fec_sidecar::manifest::{Listed, digests};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Leaves out copies among sidecars, unless they are named, and tells which. Only those are compared of which one
/// stands beside a folder that the other lies in.
pub(crate) fn without(sidecars: Vec<PathBuf>, named: &[PathBuf], settings: &Settings) -> Vec<PathBuf> {
    let mut copies = BTreeSet::new();
    for (outer, inner) in nested(&sidecars) {
        let of = Found::open(outer, settings);
        let files = of.files();
        for path in inner {
            let Some((copy, original)) = of.copy((outer, &files), path, settings) else { continue };
            if !named.contains(copy) && copies.insert(copy.clone()) && !settings.quiet {
                let (copy, original) = (show(copy), show(original));
                say(&format!("fec: {copy} is a copy of {original} and finds no file from there: left out"));
            }
        }
    }
    sidecars.into_iter().filter(|path| !copies.contains(path)).collect()
}

/// Each sidecar that stands beside a folder, with those that lie in the folder or below it.
fn nested(sidecars: &[PathBuf]) -> BTreeMap<&PathBuf, Vec<&PathBuf>> {
    let all: BTreeSet<&PathBuf> = sidecars.iter().collect();
    let mut beside: BTreeMap<&Path, Option<&PathBuf>> = BTreeMap::new();
    let mut nested: BTreeMap<&PathBuf, Vec<&PathBuf>> = BTreeMap::new();
    for path in sidecars {
        for folder in path.ancestors().skip(1) {
            let find = || target::beside(folder).and_then(|outer| all.get(&outer).copied());
            if let Some(outer) = *beside.entry(folder).or_insert_with(find) {
                nested.entry(outer).or_default().push(path);
            }
        }
    }
    nested
}

/// The paths of files, with their digests.
type Files<'a> = HashSet<(&'a [u8], &'a Digest)>;

/// A sidecar, as far as it can be opened without a key.
enum Found {
    Open {
        sidecar: Box<Sidecar>,
        /// False if it names files, and no file is where it says.
        leads: bool,
    },
    /// The root of the container that it is sealed in.
    Sealed(Option<Digest>),
}

impl Found {
    fn open(path: &Path, settings: &Settings) -> Found {
        let Ok(sidecar) = Sidecar::open(path, None, &settings.library) else {
            return Found::Sealed(container_root(path, settings));
        };
        let files = digests(&sidecar, Listed::Blake3).unwrap_or_default();
        // Without a base nobody knows where it leads.
        let base = base_of(&sidecar, None).ok();
        let leads = match &base {
            Some(base) => files.is_empty() || files.iter().any(|(name, _)| may_be_there(base, name)),
            None => true,
        };
        Found::Open { sidecar: Box::new(sidecar), leads }
    }

    fn files(&self) -> Files<'_> {
        match self {
            Found::Open { sidecar, .. } => digests(sidecar, Listed::Blake3).into_iter().flatten().collect(),
            Found::Sealed(_) => HashSet::new(),
        }
    }

    /// The copy, and the original, if this sidecar, at `outer`, or the one at `inner` is a copy of the other or of an
    /// earlier generation.
    fn copy<'p>(
        &self,
        (outer, files): (&'p PathBuf, &Files<'_>),
        inner: &'p PathBuf,
        settings: &Settings,
    ) -> Option<(&'p PathBuf, &'p PathBuf)> {
        match (self, Found::open(inner, settings)) {
            (Found::Open { sidecar: of, leads }, Found::Open { sidecar, leads: inner_leads }) => {
                let (copy, original) = match (leads, inner_leads) {
                    (true, false) => (inner, outer),
                    (false, true) => (outer, inner),
                    _ => return None,
                };
                let shared = digests(&sidecar, Listed::Blake3).into_iter().flatten();
                let is_generation_of =
                    |path: &Path, root| Sidecar::open(path, Some(root), &settings.library).is_ok();
                let is_copy = shared.into_iter().any(|file| files.contains(&file))
                    || is_generation_of(outer, sidecar.root())
                    || is_generation_of(inner, of.root());
                is_copy.then_some((copy, original))
            }
            // The names are sealed, so nobody without the key knows where they lead.
            (Found::Sealed(Some(of)), Found::Sealed(Some(root))) => (*of == root).then_some((inner, outer)),
            _ => None,
        }
    }
}

/// Tells whether something may be where a sidecar names a file. Only a place that was seen to be empty is none.
fn may_be_there(base: &Base, name: &[u8]) -> bool {
    let place = base.place(name);
    let is_none = |e: std::io::Error| matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
    !std::fs::symlink_metadata(place).is_err_and(is_none)
}

//! Gives a sealed payload in stores to other recipients. The seal stands in the manifest alone, so the manifest is all
//! that is made anew; no shard is touched.
//!
//! The content key stays. Whoever could open the payload before still can, with the old manifest or the key that it
//! gave, as long as the shards can be had (format specification, section 20.4).

use super::error::{StoreError, StoresError};
use super::keys;
use super::object::Put;
use super::put::{Expected, put};
use super::send::{Missing, causes};
use super::stored::{Stored, failure};
use fec_base::context::Context;
use fec_base::error::{Action, Class, Error, Result};
use fec_base::threads::Threads;
use fec_core::digest::Digest;
use fec_core::executor::{Executor, into_value, lock};
use fec_core::format::manifest::Manifest;
use fec_core::format::meta::Meta;
use fec_keys::age::Keys;
use fecfile::seal::{SealError, SealedTo, reseal};
use std::sync::Mutex;

/// The result of giving a payload to other recipients.
#[must_use = "manifests may be missing"]
#[derive(Debug)]
pub struct Rekeyed {
    /// The root from now on.
    pub root: Digest,
    /// Bytes of the new manifest.
    pub manifest_bytes: u64,
    /// Places that have it.
    pub manifests: Vec<usize>,
    /// Places that it did not arrive at.
    pub missing: Vec<Missing>,
}

impl Rekeyed {
    /// Class of the missing manifests; `None`: none is missing.
    pub fn class(&self) -> Option<Class> {
        (!self.missing.is_empty()).then_some(Class::Mendable)
    }
}

impl Stored<'_> {
    /// Seals the payload, which `keys` open, for these recipients and nobody else, and puts its new manifest at all
    /// places that can be written to. The old manifest stays: [`Forget`](super::forget::Forget) removes it, and leaves
    /// the shards, which the new one needs.
    ///
    /// # Errors
    /// [`SealError::NotSealed`], and [`SealError::NoSeal`] for the root of a segment; those of [`reseal`];
    /// [`StoresError::ManySegments`] when the manifest has no room for so many recipients;
    /// [`StoresError::NoManifestLanded`].
    pub fn rekey(&self, keys: &Keys, to: &SealedTo, context: &Context<'_>) -> Result<Rekeyed> {
        let refused = |why: SealError| Error::new(Action::Seal, why);
        if !self.is_sealed() {
            return Err(refused(SealError::NotSealed));
        }
        let seal = self.manifest.meta.seal.as_deref().filter(|_| !self.is_bare);
        let seal = seal.ok_or_else(|| refused(SealError::NoSeal))?;
        let meta = Meta {
            seal: Some(reseal(seal, keys, to, context.settings.threads)?),
            ..self.manifest.meta.clone()
        };
        let most = Manifest::most_segments(&meta, &self.manifest.targets);
        let segments = self.manifest.segments.len() as u64;
        if segments > most {
            return Err(Error::new(Action::Seal, StoresError::ManySegments { segments, most }));
        }
        let manifest = Manifest { meta, ..self.manifest.clone() };
        let (bytes, root) = (manifest.to_bytes(), manifest.root());
        // Readers accept nothing else under this root, so the manifest has to be valid.
        Manifest::open(&root, &bytes).map_err(|e| Error::new(Action::Seal, StoresError::Manifest(e)))?;
        self.places.set_permissions(self.permissions());
        let (key, bytes) = (keys::manifest(&root), &bytes[..]);
        let places: Vec<usize> =
            (0..self.places.len()).filter(|place| !self.places.get(*place).target.is_read_only()).collect();
        let done: Mutex<Vec<(usize, std::result::Result<Put, StoreError>)>> = Mutex::default();
        Threads(places.len()).run(places.len(), &|nth| {
            self.places.get(places[nth]).remove_stale(&root, context.progress);
            let expected = Expected::manifest(&key, bytes);
            let put = put(self.places, places[nth], &bytes, expected, &self.places.cancel);
            lock(&done).push((places[nth], put));
        });
        if self.places.cancel.is_cancelled() {
            return Err(failure(&StoreError::Cancelled));
        }
        let (mut manifests, mut missing) = (Vec::new(), Vec::new());
        for (place, put) in into_value(done) {
            match put {
                Ok(_) => manifests.push(place),
                Err(why) => missing.push(Missing { shard: None, place, why }),
            }
        }
        manifests.sort_unstable();
        missing.sort_by_key(|missing| missing.place);
        if manifests.is_empty() {
            let causes = causes(missing.iter(), self.places);
            return Err(Error::new(Action::Seal, StoresError::NoManifestLanded(causes)));
        }
        Ok(Rekeyed { root, manifest_bytes: bytes.len() as u64, manifests, missing })
    }
}

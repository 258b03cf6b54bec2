//! Finds the manifest of a root. The shard files of a single segment suffice without one.
//!
//! The root of a segment binds the meta and not its length, which is a claim of each header. A good copy of the meta
//! proves the length, whichever object has it. Without any, a payload that is not sealed is restored by the claims,
//! since its shards are proved whatever the meta is. A sealed payload is refused then: its seal is lost, and a false
//! length of 0 must not make its ciphertext pass for something that others sealed.

use super::call::Cancel;
use super::error::{StoreError, StoresError};
use super::find::{Candidate, HEADS, Search, ask, locate_all, locate_by_key};
use super::keys;
use super::places::Places;
use fec_base::error::{Action, Error, ErrorKind, Result};
use fec_base::names::show;
use fec_base::threads::Threads;
use fec_core::digest::Digest;
use fec_core::error::{Class, FormatError};
use fec_core::executor::{Executor, into_value, lock};
use fec_core::format::manifest::{MAX_MANIFEST, Manifest};
use fec_core::format::meta::Meta;
use fec_core::format::shard_file::{Encoding, HEADER_LEN, ShardHeader};
use fecfile::seal::SealError;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Shards that are asked for first when only the root is known and no list names it.
const FIRST: u32 = 32;
/// Most shards of a set.
const MOST: u32 = 256;

/// A manifest that was found.
#[derive(Debug)]
pub(super) struct FoundManifest {
    pub(super) manifest: Manifest,
    /// The root is a segment's, and there is no manifest.
    pub(super) is_bare: bool,
    /// No copy of the segment's meta was found, so nothing proves the length of the meta.
    pub(super) is_meta_lost: bool,
    /// The places that have it.
    pub(super) places: Vec<usize>,
    /// How long the first place took to give it.
    pub(super) time: Duration,
}

/// Looks for the manifest with this root at all places at once, and takes the first intact copy. With `all` it waits
/// for the other places, to know which of them have it.
pub(super) fn find(places: &Places, root: &Digest, all: bool) -> Result<FoundManifest> {
    let start = Instant::now();
    let cancel = places.cancel.child();
    let found: Mutex<Option<FoundManifest>> = Mutex::default();
    let causes: Mutex<Vec<(usize, StoreError)>> = Mutex::default();
    let untrue: Mutex<Option<StoresError>> = Mutex::default();
    Threads(places.len()).run(places.len(), &|place| match manifest_at(places, place, root, &cancel) {
        Ok(Some(Ok(manifest))) => {
            let mut found = lock(&found);
            let time = start.elapsed();
            let new =
                || FoundManifest { manifest, is_bare: false, is_meta_lost: false, places: Vec::new(), time };
            found.get_or_insert_with(new).places.push(place);
            if !all {
                cancel.cancel();
            }
        }
        Ok(Some(Err(error))) => {
            // The root binds this manifest, so its maker made it wrong.
            lock(&untrue).get_or_insert(error);
            cancel.cancel();
        }
        Ok(None) | Err(StoreError::NotFound) => {}
        Err(error) => lock(&causes).push((place, error)),
    });
    if places.cancel.is_cancelled() {
        return Err(Error::new(Action::Read, ErrorKind::Cancelled));
    }
    if let Some(mut found) = into_value(found) {
        found.places.sort_unstable();
        return Ok(found);
    }
    if let Some(error) = into_value(untrue) {
        return Err(Error::new(Action::ReadManifest, error));
    }
    let mut causes = into_value(causes);
    if let Some(found) = bare(places, root, start, &mut causes)? {
        return Ok(found);
    }
    if places.cancel.is_cancelled() {
        return Err(Error::new(Action::Read, ErrorKind::Cancelled));
    }
    // A line for each place. Its last cause tells most: lists say more than single objects. "Given up" tells nothing.
    causes.retain(|(_, why)| why.leaves_open());
    causes.reverse();
    causes.sort_by_key(|(place, why)| (*place, *why == StoreError::GivenUp));
    causes.dedup_by_key(|(place, _)| *place);
    let causes =
        causes.iter().map(|(place, why)| format!("{}: {why}", show(places.get(*place).target.name())));
    let not_found = StoresError::NotFound { places: places.len(), causes: causes.collect() };
    Err(Error::new(Action::Read, not_found))
}

/// The manifest as a place has it. A manifest with this root that breaks a rule is its maker's error. A manifest with
/// another root counts as absent.
#[allow(clippy::type_complexity, reason = "three outcomes: nothing, a manifest, one that breaks a rule")]
fn manifest_at(
    places: &Places,
    place: usize,
    root: &Digest,
    cancel: &Cancel,
) -> std::result::Result<Option<std::result::Result<Manifest, StoresError>>, StoreError> {
    let key = keys::manifest(root);
    places.retry(place, cancel, |store, call| {
        let size = store.head(&key, call)?.size;
        if size > MAX_MANIFEST as u64 {
            return Ok(None);
        }
        let bytes = store.read(&key, 0..size, call)?;
        match Manifest::open(root, &bytes) {
            Ok(manifest) => Ok(Some(Ok(manifest))),
            Err(error) if error.class() == Class::Damaged => {
                Err(StoreError::Unavailable("the manifest that it gives is another, or damaged".into()))
            }
            Err(error) => Ok(Some(Err(StoresError::Manifest(error)))),
        }
    })
}

/// The claims of the headers of a segment's objects.
#[derive(Default)]
struct Claims {
    /// The encoding, with the length of the meta that was found.
    proved: Option<(Encoding, Meta)>,
    /// The rule that the meta breaks.
    broken: Option<FormatError>,
    /// An encoding whose length of the meta is a claim.
    claimed: Option<Encoding>,
    /// How many headers state each length of the meta.
    lengths: BTreeMap<u32, usize>,
    /// Why places do not give bytes.
    causes: Vec<(usize, StoreError)>,
}

/// Treats the root as that of a single segment. `causes` takes why places do not tell.
///
/// # Errors
/// A broken rule of the meta that the root binds, and [`SealError::Lost`].
fn bare(
    places: &Places,
    root: &Digest,
    start: Instant,
    causes: &mut Vec<(usize, StoreError)>,
) -> Result<Option<FoundManifest>> {
    let located = any_of_segment(places, root, causes);
    let claims = Mutex::new(Claims::default());
    let look = |candidate: &Candidate| {
        let is_over = lock(&claims).is_over() || places.cancel.is_cancelled();
        if !is_over {
            Object { places, root, candidate: *candidate, claims: &claims }.look();
        }
    };
    // The first object nearly always suffices.
    let (first, others) = located.split_at(located.len().min(1));
    first.iter().for_each(look);
    Threads(HEADS).run(others.len(), &|nth| look(&others[nth]));
    let mut claims = into_value(claims);
    causes.append(&mut claims.causes);
    if let Some(error) = claims.broken {
        return Err(Error::new(Action::Read, error));
    }
    let is_meta_lost = claims.proved.is_none();
    let Some((encoding, meta)) = claims.proved.take().or_else(|| claims.most_stated()) else {
        return Ok(None);
    };
    let shape = encoding.geometry.shape();
    if is_meta_lost && shape.is_sealed() {
        // A place that does not answer may have a copy.
        let is_open = causes.iter().any(|(_, why)| why.leaves_open());
        return if is_open { Ok(None) } else { Err(Error::new(Action::Read, SealError::Lost)) };
    }
    let manifest = Manifest {
        hash: shape.hash,
        code: shape.code,
        segment_len: encoding.geometry.payload_len().max(1),
        segments: vec![encoding],
        meta: Meta { seal: meta.seal.filter(|_| shape.is_sealed()), ..Meta::default() },
        targets: Vec::new(),
    };
    let time = start.elapsed();
    Ok(Some(FoundManifest { manifest, is_bare: true, is_meta_lost, places: Vec::new(), time }))
}

impl Claims {
    /// Tells whether further objects tell nothing new.
    fn is_over(&self) -> bool {
        self.proved.is_some() || self.broken.is_some()
    }

    /// Notes the claim of a header.
    fn note(&mut self, encoding: &Encoding) {
        self.claimed = Some(*encoding);
        *self.lengths.entry(encoding.meta_len).or_default() += 1;
    }

    /// The encoding with the length that most headers state; the longest of several, since it cuts off nothing.
    fn most_stated(&self) -> Option<(Encoding, Meta)> {
        let (meta_len, _) = self.lengths.iter().max_by_key(|(len, count)| (**count, **len))?;
        self.claimed.map(|encoding| (Encoding { meta_len: *meta_len, ..encoding }, Meta::default()))
    }
}

/// An object that may be a shard file of the segment.
struct Object<'a> {
    places: &'a Places,
    root: &'a Digest,
    candidate: Candidate,
    claims: &'a Mutex<Claims>,
}

impl Object<'_> {
    /// Reads the headers at both ends, and under each the copies of the meta, until one is good.
    fn look(&self) {
        // Some lists tell no lengths.
        let size = match self.candidate.size {
            0 => self.size(),
            size => Some(size),
        };
        let Some(size) = size else { return };
        let mut tried = BTreeSet::new();
        for at in [Some(0), size.checked_sub(HEADER_LEN as u64).filter(|at| *at > 0)].into_iter().flatten() {
            let header: Option<[u8; HEADER_LEN]> =
                self.read(at.into(), HEADER_LEN as u64, size).and_then(|bytes| bytes.try_into().ok());
            let header = header.and_then(|bytes| ShardHeader::parse(&bytes).ok());
            let Some(encoding) = header.map(|header| header.encoding).filter(|of| of.root == *self.root)
            else {
                continue;
            };
            lock(self.claims).note(&encoding);
            if self.prove(&encoding, size, &mut tried) {
                return;
            }
        }
    }

    /// Looks for a good copy of the meta by this header; tells whether the search is over. `tried` has the places
    /// that were looked at before.
    fn prove(&self, encoding: &Encoding, size: u64, tried: &mut BTreeSet<(i128, u32)>) -> bool {
        let hash = encoding.geometry.shape().hash;
        // The hash of no bytes proves the length 0, whatever the header says.
        if hash.digest(b"") == encoding.meta_hash {
            lock(self.claims).proved = Some((Encoding { meta_len: 0, ..*encoding }, Meta::default()));
            return true;
        }
        let layout = encoding.layout();
        // If bytes were lost or gained, each end of the object gives other places.
        let ends = [layout.file_len, encoding.outlined_len()].map(|len| i128::from(size) - i128::from(len));
        let bases = [0, ends[0], ends[1]];
        let places = bases.into_iter().flat_map(|base| layout.metas().map(|at| base + i128::from(at)));
        for at in places {
            if !tried.insert((at, encoding.meta_len)) {
                continue;
            }
            let Some(copy) = self.read(at, layout.padded_meta_len(), size) else { continue };
            let (meta, zeros) = copy.split_at((layout.meta_len as usize).min(copy.len()));
            if zeros.iter().any(|byte| *byte != 0) {
                continue;
            }
            match Meta::open(hash, &encoding.meta_hash, meta) {
                Ok(meta) => lock(self.claims).proved = Some((*encoding, meta)),
                Err(error) if error.class() == Class::Damaged => continue,
                Err(error) => lock(self.claims).broken = Some(error),
            }
            return true;
        }
        false
    }

    fn key(&self) -> String {
        keys::shard(self.root, self.candidate.index)
    }

    /// The length of the object.
    fn size(&self) -> Option<u64> {
        let (Candidate { place, .. }, key) = (self.candidate, self.key());
        let head = self.places.retry(place, &self.places.cancel, |store, call| store.head(&key, call));
        head.map_err(|error| lock(self.claims).causes.push((place, error))).ok().map(|info| info.size)
    }

    /// These bytes of the object, if they are inside it.
    fn read(&self, at: i128, len: u64, size: u64) -> Option<Vec<u8>> {
        let from =
            u64::try_from(at).ok().filter(|from| from.checked_add(len).is_some_and(|end| end <= size))?;
        let (Candidate { place, .. }, key) = (self.candidate, self.key());
        let read = self
            .places
            .retry(place, &self.places.cancel, |store, call| store.read(&key, from..from + len, call));
        read.map_err(|error| lock(self.claims).causes.push((place, error))).ok()
    }
}

/// Shard files of the segment with this root when nothing else about it is known: those that lists name, or else the
/// first that are found under their keys.
fn any_of_segment(places: &Places, root: &Digest, causes: &mut Vec<(usize, StoreError)>) -> Vec<Candidate> {
    let mut located = Vec::new();
    let search = Search { root, n: MOST, enough: 0, home: &BTreeMap::new(), is_hasty: false, lists: None };
    let mut told = locate_all(places, &search, |candidate| located.push(candidate));
    for indices in [0..FIRST, FIRST..MOST] {
        if !located.is_empty() || places.cancel.is_cancelled() {
            break;
        }
        let indices: Vec<u32> = indices.collect();
        let by_key = |place: &usize, cancel: &Cancel| locate_by_key(places, *place, root, &indices, cancel);
        let listed = told.listed.clone();
        ask(places, &listed, false, by_key, |found| {
            told.take(found, &mut |candidate| located.push(candidate))
        });
    }
    causes.extend(told.failed);
    causes.extend(told.unsure);
    located
}

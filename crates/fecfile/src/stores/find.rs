//! Finds the manifest of a root, and the shards of a segment.

use super::call::Cancel;
use super::error::{StoreError, StoresError};
use super::keys;
use super::places::Places;
use crate::error::{Error, Result};
use crate::names::show;
use crate::threads::{Threads, spawn_or_do};
use fec_core::digest::Digest;
use fec_core::error::Class;
use fec_core::executor::{Executor, into_value, lock};
use fec_core::format::manifest::{MAX_MANIFEST, Manifest};
use fec_core::format::meta::Meta;
use fec_core::format::shard_file::{HEADER_LEN, ShardHeader};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Other places are waited for this many times as long as the first answer took.
const PATIENCE: u32 = 10;
/// Shortest wait for other places.
const LEAST_PATIENCE: Duration = Duration::from_millis(300);
/// Objects that are asked for by their keys at the same time.
const HEADS: usize = 16;
/// After this many failures the other shards are not asked for. "Not found" and "denied" are no failures here.
const HEADS_FAILED: usize = 3;
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
    /// The places that have it.
    pub(super) places: Vec<usize>,
    /// How long the first place took to give it.
    pub(super) time: Duration,
}

/// An object that may be a shard file of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    pub(super) index: u32,
    pub(super) place: usize,
    pub(super) size: u64,
}

/// Looks for the manifest with this root at all places at once, and takes the first intact copy. With `all` it waits
/// for the other places, to know which of them have it.
pub(super) fn manifest(places: &Places, root: &Digest, all: bool) -> Result<FoundManifest> {
    let start = Instant::now();
    let cancel = places.cancel.child();
    let found: Mutex<Option<FoundManifest>> = Mutex::default();
    let causes: Mutex<Vec<(usize, StoreError)>> = Mutex::default();
    let untrue: Mutex<Option<StoresError>> = Mutex::default();
    Threads(places.len()).run(places.len(), &|place| match manifest_at(places, place, root, &cancel) {
        Ok(Some(Ok(manifest))) => {
            let mut found = lock(&found);
            let time = start.elapsed();
            let new = || FoundManifest { manifest, is_bare: false, places: Vec::new(), time };
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
        return Err(Error::new("read", StoresError::Stopped));
    }
    if let Some(mut found) = into_value(found) {
        found.places.sort_unstable();
        return Ok(found);
    }
    if let Some(error) = into_value(untrue) {
        return Err(Error::new("read the manifest", error));
    }
    let mut causes = into_value(causes);
    if let Some(found) = bare(places, root, start, &mut causes)? {
        return Ok(found);
    }
    if places.cancel.is_cancelled() {
        return Err(Error::new("read", StoresError::Stopped));
    }
    // A line for each place. Its last cause tells most: lists say more than single objects. "Given up" tells nothing.
    causes.retain(|(_, why)| why.leaves_open());
    causes.reverse();
    causes.sort_by_key(|(place, why)| (*place, *why == StoreError::GivenUp));
    causes.dedup_by_key(|(place, _)| *place);
    let causes =
        causes.iter().map(|(place, why)| format!("{}: {why}", show(places.get(*place).target.name())));
    let not_found = StoresError::NotFound { places: places.len(), causes: causes.collect() };
    Err(Error::new("read", not_found))
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

/// Treats the root as that of a single segment: its shards suffice without a manifest. `causes` takes why places do not
/// tell.
///
/// # Errors
/// A broken rule of the meta that the root binds.
fn bare(
    places: &Places,
    root: &Digest,
    start: Instant,
    causes: &mut Vec<(usize, StoreError)>,
) -> Result<Option<FoundManifest>> {
    for candidate in any_of_segment(places, root, causes) {
        let key = keys::shard(root, candidate.index);
        let mut get = |range: Range<u64>| {
            let read = places
                .retry(candidate.place, &places.cancel, |store, call| store.read(&key, range.clone(), call));
            read.map_err(|error| causes.push((candidate.place, error))).ok()
        };
        let Some(bytes) = get(0..HEADER_LEN as u64) else { continue };
        let header: Option<[u8; HEADER_LEN]> = bytes.try_into().ok();
        let header = header.and_then(|bytes| ShardHeader::parse(&bytes).ok());
        let Some(encoding) = header.map(|header| header.encoding).filter(|encoding| encoding.root == *root)
        else {
            continue;
        };
        let shape = encoding.geometry.shape();
        // The root binds the meta and not its length. A false length would place every shard wrong, and a false 0 would
        // hide the seal, without which this payload would pass for something that others sealed.
        let from = encoding.layout().head_meta;
        let Some(bytes) = get(from..from + u64::from(encoding.meta_len)) else { continue };
        let found = match Meta::open(shape.hash, &encoding.meta_hash, &bytes) {
            Ok(found) => found,
            Err(error) if error.class() == Class::Damaged => continue,
            Err(error) => return Err(Error::new("read", error)),
        };
        let manifest = Manifest {
            hash: shape.hash,
            code: shape.code,
            segment_len: encoding.geometry.payload_len().max(1),
            segments: vec![encoding],
            meta: Meta { seal: found.seal.filter(|_| shape.is_sealed()), ..Meta::default() },
            targets: Vec::new(),
        };
        let time = start.elapsed();
        return Ok(Some(FoundManifest { manifest, is_bare: true, places: Vec::new(), time }));
    }
    Ok(None)
}

/// Shard files of the segment with this root when nothing else about it is known: those that lists name, or else the
/// first that are found under their keys.
fn any_of_segment(places: &Places, root: &Digest, causes: &mut Vec<(usize, StoreError)>) -> Vec<Candidate> {
    let mut located = Vec::new();
    let search = Search { root, n: MOST, enough: 0, home: &BTreeMap::new(), is_hasty: false };
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

/// Shards of a segment at a place.
#[derive(Debug, Default)]
pub(super) struct Located {
    pub(super) place: usize,
    /// The place gave a list, which may be incomplete. Otherwise each shard was asked for by its key, or the place did
    /// not answer.
    pub(super) by_list: bool,
    pub(super) found: Vec<Candidate>,
    /// Why the place does not tell what else it has.
    pub(super) failed: Option<StoreError>,
    /// Why it is unknown whether an object is there: without the right to list, "denied" is also the answer for objects
    /// that are not there.
    pub(super) unsure: Option<StoreError>,
}

/// Asks a place for its list of a segment's shard files. If it gives no list, it is asked for each shard below `n` by
/// its key.
pub(super) fn locate(places: &Places, place: usize, root: &Digest, n: u32, cancel: &Cancel) -> Located {
    let listed =
        places.look(place, cancel, |store, call| store.list_wanted(&keys::prefix(root), keys::is_ours, call));
    let failed = |error| Located { place, failed: Some(error), ..Located::default() };
    let error = match listed {
        Ok(objects) => {
            let mut sizes = BTreeMap::new();
            for object in objects {
                if let Some(index) = keys::shard_index(root, &object.key).filter(|index| *index < n) {
                    sizes.insert(index, object.size);
                }
            }
            let found = sizes.into_iter().map(|(index, size)| Candidate { index, place, size }).collect();
            return Located { place, by_list: true, found, ..Located::default() };
        }
        Err(StoreError::NotFound) => return Located { by_list: true, ..failed(StoreError::Absent) },
        Err(error @ (StoreError::Cancelled | StoreError::GivenUp)) => return failed(error),
        Err(error) => error,
    };
    let is_down = error.is_worth_retrying() && !answers(places, place, root, cancel);
    if is_down {
        return failed(error);
    }
    let mut located = locate_by_key(places, place, root, &(0..n).collect::<Vec<_>>(), cancel);
    // Without any object and without a list, something is wrong at the place.
    let is_ill = !matches!(error, StoreError::Unsupported(_) | StoreError::Denied(_));
    if is_ill && located.found.is_empty() && located.unsure.is_none() {
        located.failed.get_or_insert_with(|| error.clone());
    }
    // The list was asked for first, and its error tells more.
    let says_more = !matches!(error, StoreError::Unsupported(_));
    for told in [&mut located.failed, &mut located.unsure] {
        if says_more && told.as_ref().is_some_and(|why| *why != StoreError::Cancelled) {
            *told = Some(error.clone());
        }
    }
    located
}

/// Tells whether a place that gives no list answers at all.
fn answers(places: &Places, place: usize, root: &Digest, cancel: &Cancel) -> bool {
    let head = places.get(place).store.head(&keys::shard(root, 0), &places.call(cancel));
    head.map_or_else(|error| !error.is_worth_retrying() && error != StoreError::Cancelled, |_| true)
}

/// Asks a place for these shards by their keys, some at a time. Lists may be denied, short or behind; keys follow from
/// root and index.
pub(super) fn locate_by_key(
    places: &Places,
    place: usize,
    root: &Digest,
    indices: &[u32],
    cancel: &Cancel,
) -> Located {
    let located = Mutex::new(Located { place, ..Located::default() });
    let failures = AtomicUsize::new(0);
    Threads(HEADS).run(indices.len(), &|nth| {
        if failures.load(Ordering::Relaxed) >= HEADS_FAILED {
            return;
        }
        let index = indices[nth];
        let key = keys::shard(root, index);
        let head = places.look(place, cancel, |store, call| store.head(&key, call));
        let mut located = lock(&located);
        match head {
            Ok(info) => located.found.push(Candidate { index, place, size: info.size }),
            Err(StoreError::NotFound) => {}
            Err(error @ StoreError::Denied(_)) => drop(located.unsure.get_or_insert(error)),
            Err(error) => {
                failures.fetch_add(1, Ordering::Relaxed);
                if located.failed.as_ref().is_none_or(|first| *first == StoreError::GivenUp) {
                    located.failed = Some(error);
                }
            }
        }
    });
    let mut located = into_value(located);
    located.found.sort_unstable();
    located
}

/// A search for shards of a segment.
pub(super) struct Search<'a> {
    pub(super) root: &'a Digest,
    /// Shards below this number are looked for.
    pub(super) n: u32,
    /// With this many different shards lists are believed. With fewer each place is asked for each shard by its key.
    pub(super) enough: usize,
    /// The home of each shard. If no list names a shard, its home is asked for it by key.
    pub(super) home: &'a BTreeMap<u32, usize>,
    /// Places that take much longer than the first are not waited for.
    pub(super) is_hasty: bool,
}

/// Answers of all places.
#[derive(Default)]
pub(super) struct Told {
    /// Why some places do not tell their shards.
    pub(super) failed: Vec<(usize, StoreError)>,
    /// Why some places do not tell whether they have the shards that were not found.
    pub(super) unsure: Vec<(usize, StoreError)>,
    /// All places have answered or failed.
    pub(super) is_complete: bool,
    found: BTreeSet<(u32, usize)>,
    /// Places that answered with a list.
    listed: Vec<usize>,
}

impl Told {
    fn take(&mut self, located: Located, on: &mut impl FnMut(Candidate)) {
        let Located { place, by_list, found, failed, unsure } = located;
        self.listed.extend(by_list.then_some(place));
        if !by_list && !found.is_empty() {
            // Objects are there, although the list said that the place is not.
            self.failed.retain(|(other, why)| *other != place || *why != StoreError::Absent);
        }
        for candidate in found {
            if self.found.insert((candidate.index, place)) {
                on(candidate);
            }
        }
        self.failed.extend(failed.map(|error| (place, error)));
        self.unsure.extend(unsure.map(|error| (place, error)));
    }

    /// Shards that lists did not name, by place: each at its home, or if too few were found, at every place.
    fn unnamed(&self, search: &Search<'_>) -> Vec<(usize, Vec<u32>)> {
        let found: BTreeSet<u32> = self.found.iter().map(|(index, _)| *index).collect();
        let is_few = found.len() < search.enough;
        let wanted = |place: usize| {
            let belongs = |index: u32| search.home.get(&index) == Some(&place) && !found.contains(&index);
            let all = (0..search.n).filter(|index| !self.found.contains(&(*index, place)));
            all.filter(|index| is_few || belongs(*index)).collect::<Vec<_>>()
        };
        let asked = self.listed.iter().map(|place| (*place, wanted(*place)));
        asked.filter(|(_, wanted)| !wanted.is_empty()).collect()
    }
}

/// Asks all places and hands on their shards as they come: first by lists, then by keys for shards that lists do not
/// name.
pub(super) fn locate_all(places: &Places, search: &Search<'_>, mut on: impl FnMut(Candidate)) -> Told {
    let Search { root, n, .. } = *search;
    let mut told = Told::default();
    let all: Vec<usize> = (0..places.len()).collect();
    let by_list = |place: &usize, cancel: &Cancel| locate(places, *place, root, n, cancel);
    told.is_complete = ask(places, &all, search.is_hasty, by_list, |located| told.take(located, &mut on));
    let unnamed = told.unnamed(search);
    let by_key = |(place, indices): &(usize, Vec<u32>), cancel: &Cancel| {
        locate_by_key(places, *place, root, indices, cancel)
    };
    told.is_complete &= ask(places, &unnamed, search.is_hasty, by_key, |located| told.take(located, &mut on));
    told
}

/// Asks places at the same time; tells whether all of them have answered or failed. A hasty search does not wait for
/// places that take much longer than the first.
fn ask<T: Sync>(
    places: &Places,
    asked: &[T],
    is_hasty: bool,
    question: impl Fn(&T, &Cancel) -> Located + Sync,
    mut on: impl FnMut(Located),
) -> bool {
    let (start, cancel) = (Instant::now(), places.cancel.child());
    let mut open = asked.len();
    std::thread::scope(|scope| {
        let (told, telling): (Sender<Located>, Receiver<Located>) = channel();
        for one in asked {
            let (told, cancel, question) = (told.clone(), &cancel, &question);
            spawn_or_do(scope, move || {
                // A failed send means that the receiver is gone.
                let _ = told.send(question(one, cancel));
            });
        }
        drop(told);
        let mut wait: Option<Duration> = None;
        loop {
            let located = match wait {
                Some(wait) => telling.recv_timeout(wait.saturating_sub(start.elapsed())),
                None => telling.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            let Ok(located) = located else { break };
            open -= 1;
            if is_hasty && located.failed.is_none() {
                wait.get_or_insert_with(|| patience(start.elapsed()));
            }
            on(located);
        }
        cancel.cancel();
    });
    open == 0
}

/// Longest wait for answers when the first one took `first`.
pub(super) fn patience(first: Duration) -> Duration {
    (first * PATIENCE).max(LEAST_PATIENCE)
}

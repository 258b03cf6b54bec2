//! What stands where: the manifest of a root, and the shards of a segment.

use super::call::Cancel;
use super::error::{StoreError, StoresError};
use super::keys;
use super::places::Places;
use crate::error::{Error, Result};
use crate::threads::{Threads, spawn_or_do};
use fec_core::digest::Digest;
use fec_core::executor::{Executor, into_value, lock};
use fec_core::format::manifest::{MAX_MANIFEST, Manifest};
use fec_core::format::meta::Meta;
use fec_core::format::shard_file::{HEADER_LEN, ShardHeader};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// How long other places are waited for, compared with the one that answered first, when what came does not suffice.
const PATIENCE: u32 = 10;
/// That is at least so long.
const LEAST_PATIENCE: Duration = Duration::from_millis(300);
/// Heads that are asked for at the same time, at a place that does not list.
const HEADS: usize = 16;

/// A manifest that was found.
#[derive(Debug)]
pub(super) struct FoundManifest {
    pub(super) manifest: Manifest,
    /// Its root is that of a segment, and no manifest is there.
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

/// Looks for the manifest with this root at all places at once, and takes the first one that is right. With `all` it waits for
/// the others, to know who has it.
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
            // Whoever made the root made this.
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
    if let Some(found) = bare(places, root, start, &mut causes) {
        return Ok(found);
    }
    if places.cancel.is_cancelled() {
        return Err(Error::new("read", StoresError::Stopped));
    }
    // A line for each place. What it said last tells most, lists more than single objects; that it is not asked any more tells
    // nothing.
    causes.retain(|(_, why)| why.leaves_open());
    causes.reverse();
    causes.sort_by_key(|(place, why)| (*place, *why == StoreError::GivenUp));
    causes.dedup_by_key(|(place, _)| *place);
    let causes = causes.iter().map(|(place, why)| format!("{}: {why}", places.get(*place).target.name()));
    let not_found = StoresError::NotFound { places: places.len(), causes: causes.collect() };
    Err(Error::new("read", not_found))
}

/// The manifest as a place has it; one with this root that breaks a rule is an error of whoever made it. What has another root
/// is as good as nothing.
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
        let mut bytes = Vec::with_capacity(size as usize);
        store.get(
            &key,
            0..size,
            &mut |part| {
                bytes.extend_from_slice(part);
                Ok(())
            },
            call,
        )?;
        match Manifest::open(root, &bytes) {
            Ok(manifest) => Ok(Some(Ok(manifest))),
            Err(error) if error.class() == fec_core::error::Class::Damaged => {
                Err(StoreError::Unavailable("the manifest that it gives is another, or damaged".into()))
            }
            Err(error) => Ok(Some(Err(StoresError::Manifest(error)))),
        }
    })
}

/// The root of a segment itself: its shards are there, and nothing else is needed. `causes` takes why places do not tell.
fn bare(
    places: &Places,
    root: &Digest,
    start: Instant,
    causes: &mut Vec<(usize, StoreError)>,
) -> Option<FoundManifest> {
    let mut located = Vec::new();
    let (failed, _) = locate_all(places, root, 256, false, |candidate| located.push(candidate));
    causes.extend(failed);
    for candidate in located {
        let key = keys::shard(root, candidate.index);
        let mut get = |range: Range<u64>| {
            let mut bytes = Vec::with_capacity((range.end - range.start) as usize);
            let read = places.retry(candidate.place, &places.cancel, |store, call| {
                bytes.clear();
                let mut take = |part: &[u8]| {
                    bytes.extend_from_slice(part);
                    Ok(())
                };
                store.get(&key, range.clone(), &mut take, call)
            });
            read.map_err(|error| causes.push((candidate.place, error))).ok().map(|()| bytes)
        };
        let Some(bytes) = get(0..HEADER_LEN as u64) else { continue };
        let header: Option<[u8; HEADER_LEN]> = bytes.try_into().ok();
        let header = header.and_then(|bytes| ShardHeader::parse(&bytes).ok());
        let Some(encoding) = header.map(|header| header.encoding).filter(|encoding| encoding.root == *root)
        else {
            continue;
        };
        let shape = encoding.geometry.shape();
        let mut meta = Meta::default();
        if shape.is_sealed() && encoding.meta_len > 0 {
            // What opens it stands there: without it, it would pass for something that others sealed.
            let start = encoding.layout().head_meta;
            let found = get(start..start + u64::from(encoding.meta_len));
            let found = found.filter(|bytes| shape.hash.digest(bytes) == encoding.meta_hash);
            let Some(found) = found.and_then(|bytes| Meta::parse(&bytes).ok()) else { continue };
            meta.seal = found.seal;
        }
        let manifest = Manifest {
            hash: shape.hash,
            code: shape.code,
            segment_len: encoding.geometry.payload_len().max(1),
            segments: vec![encoding],
            meta,
            targets: Vec::new(),
        };
        return Some(FoundManifest { manifest, is_bare: true, places: Vec::new(), time: start.elapsed() });
    }
    None
}

/// What a place has of a segment, as far as it tells; and why it does not tell all of it.
pub(super) struct Located {
    pub(super) place: usize,
    pub(super) found: Vec<Candidate>,
    pub(super) failed: Option<StoreError>,
}

/// Asks a place which shard files of a segment it has; where it cannot list, one by one, for shards below `n`.
pub(super) fn locate(places: &Places, place: usize, root: &Digest, n: u32, cancel: &Cancel) -> Located {
    let listed = places
        .retry(place, cancel, |store, call| store.list_wanted(&keys::prefix(root), keys::is_ours, call));
    let (found, failed) = match listed {
        Ok(objects) => {
            let mut sizes = BTreeMap::new();
            for object in objects {
                if let Some(index) = keys::shard_index(root, &object.key).filter(|index| *index < n) {
                    sizes.insert(index, object.size);
                }
            }
            (sizes.into_iter().map(|(index, size)| Candidate { index, place, size }).collect(), None)
        }
        Err(StoreError::Unsupported(_)) => heads(places, place, root, n, cancel),
        Err(StoreError::NotFound) => (Vec::new(), Some(StoreError::Absent)),
        Err(error) => (Vec::new(), Some(error)),
    };
    Located { place, found, failed }
}

/// Asks for one object after the other, some at a time.
fn heads(
    places: &Places,
    place: usize,
    root: &Digest,
    n: u32,
    cancel: &Cancel,
) -> (Vec<Candidate>, Option<StoreError>) {
    let found = Mutex::new(Vec::new());
    let failed: Mutex<Option<StoreError>> = Mutex::default();
    Threads(HEADS).run(n as usize, &|index| {
        let index = index as u32;
        let key = keys::shard(root, index);
        match places.retry(place, cancel, |store, call| store.head(&key, call)) {
            Ok(info) => lock(&found).push(Candidate { index, place, size: info.size }),
            Err(StoreError::NotFound) => {}
            Err(error) => {
                let mut failed = lock(&failed);
                if failed.as_ref().is_none_or(|first| *first == StoreError::GivenUp) {
                    *failed = Some(error);
                }
            }
        }
    });
    let mut found = into_value(found);
    found.sort_unstable();
    (found, into_value(failed))
}

/// Asks all places, and hands on what they have as they tell it; returns why some did not, and whether all of them have told or
/// failed: whoever is hasty does not wait for those that take much longer than the first one.
pub(super) fn locate_all(
    places: &Places,
    root: &Digest,
    n: u32,
    is_hasty: bool,
    mut on: impl FnMut(Candidate),
) -> (Vec<(usize, StoreError)>, bool) {
    let (start, cancel) = (Instant::now(), places.cancel.child());
    let mut failed = Vec::new();
    let mut asked = places.len();
    std::thread::scope(|scope| {
        let (told, telling): (Sender<Located>, Receiver<Located>) = channel();
        for place in 0..places.len() {
            let (told, cancel) = (told.clone(), &cancel);
            spawn_or_do(scope, move || {
                // Nobody waits for it any more if it cannot be told.
                let _ = told.send(locate(places, place, root, n, cancel));
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
            asked -= 1;
            if is_hasty && located.failed.is_none() {
                wait.get_or_insert_with(|| patience(start.elapsed()));
            }
            located.found.into_iter().for_each(&mut on);
            failed.extend(located.failed.map(|error| (located.place, error)));
        }
        cancel.cancel();
    });
    (failed, asked == 0)
}

/// How long to wait for places that have not told what they have, when the first one took `first`.
pub(super) fn patience(first: Duration) -> Duration {
    (first * PATIENCE).max(LEAST_PATIENCE)
}

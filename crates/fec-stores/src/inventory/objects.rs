//! The objects of places by their lists, as far as their keys follow our naming.

use crate::error::{StoreError, StoresError};
use crate::keys;
use crate::object::ObjectInfo;
use crate::places::Places;
use fec_base::error::{Action, Error, ErrorKind, Result};
use fec_base::threads::Threads;
use fec_core::digest::Digest;
use fec_core::executor::{Executor, into_value, lock};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Most objects of all places.
const MAX_OBJECTS: usize = 1_000_000;
/// An object by the list of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) place: usize,
    /// Index of the shard file; `None` for the manifest.
    pub(crate) shard: Option<u32>,
    /// Its length in bytes, as the list has it.
    pub(crate) size: u64,
}

/// The objects of all places that follow our naming, by root.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    pub(crate) of: BTreeMap<Digest, Vec<Held>>,
    /// Places that gave no list, with causes.
    pub(crate) failed: Vec<(usize, StoreError)>,
    /// Places whose lists tell lengths.
    sized: BTreeSet<usize>,
}

/// Asks each place for a list of all that it has.
pub(crate) fn objects(places: &Places) -> Result<Objects> {
    if places.is_empty() {
        return Err(Error::new(Action::List, StoresError::NoPlace));
    }
    let (count, found) = (AtomicUsize::new(0), Mutex::new(Objects::default()));
    Threads(places.len()).run(places.len(), &|place| {
        // A list that is asked for again starts anew.
        let listed = places.look(place, &places.cancel, |store, call| {
            let (mut held, mut counted) = (Vec::new(), 0);
            let mut each = |object: ObjectInfo| {
                if let Some((root, shard)) = keys::parsed(&object.key) {
                    held.push((root, Held { place, shard, size: object.size }));
                    counted += 1;
                }
                match count.load(Ordering::Relaxed) + counted > MAX_OBJECTS {
                    true => Err(StoreError::Unsupported("be listed: its objects are too many")),
                    false => Ok(()),
                }
            };
            store.walk("", keys::leads_to_ours, &mut each, call).map(|()| held)
        });
        let mut found = lock(&found);
        match listed {
            Ok(held) => {
                count.fetch_add(held.len(), Ordering::Relaxed);
                if held.iter().any(|(_, object)| object.size > 0) {
                    found.sized.insert(place);
                }
                held.into_iter().for_each(|(root, object)| found.of.entry(root).or_default().push(object));
            }
            Err(StoreError::NotFound) => found.failed.push((place, StoreError::Absent)),
            Err(why) => found.failed.push((place, why)),
        }
    });
    if places.cancel.is_cancelled() {
        return Err(Error::new(Action::List, ErrorKind::Cancelled));
    }
    let mut found = into_value(found);
    found.failed.sort_by_key(|(place, _)| *place);
    for held in found.of.values_mut() {
        held.sort_unstable_by_key(|object| (object.shard, object.place));
        held.dedup_by_key(|object| (object.shard, object.place));
    }
    Ok(found)
}

impl Objects {
    /// Tells whether an object may have a length that serves, as far as its list tells lengths.
    pub(super) fn may_have(&self, object: &Held, serves: impl FnOnce(u64) -> bool) -> bool {
        serves(object.size) || !self.sized.contains(&object.place)
    }
}

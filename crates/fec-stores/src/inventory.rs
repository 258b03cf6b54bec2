//! The encodings that places hold, by one list of each place and one small read of each manifest.
//!
//! A manifest is believed if its bytes have the root in its key: name, length and code are then those of this root,
//! whoever put it there. The list of a place is its word for which shards it has. No shard is read, and a list that is
//! behind leaves out what is there: [`verify`](super::verify) asks for it by its key.
//!
//! Whoever may write to a place decides how much is listed there, so objects, manifests and their bytes are bounded.

mod objects;
mod summary;

pub(super) use objects::{Held, Objects, objects};
pub use summary::{Lack, Summary};

use super::error::StoreError;
use super::keys;
use super::places::Places;
use fec_base::context::{Context, Gauge};
use fec_base::error::{Action, Class, Error, ErrorKind, Result};
use fec_base::threads::Threads;
use fec_core::digest::Digest;
use fec_core::executor::{Executor, into_value, lock};
use fec_core::format::manifest::{MAX_MANIFEST, Manifest};
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Most bytes of manifests that are read.
const MAX_READ: u64 = 1 << 30;
/// Manifests that are read at the same time.
const TOGETHER: usize = 16;
/// Larger manifests are read one after the other: they are held in memory.
const LARGE: u64 = 1 << 20;

/// Encodings in places.
#[must_use = "damage and losses are no errors"]
#[derive(Debug)]
pub struct Inventory {
    /// Encodings that have a manifest there, by root.
    pub encodings: Vec<Listed>,
    /// Roots with shards, of which no manifest there tells.
    pub alone: Vec<Alone>,
    /// Places that gave no list, with causes: nothing is known of what they hold.
    pub failed: Vec<(usize, StoreError)>,
    /// Bytes fetched.
    pub fetched_bytes: u64,
}

/// An encoding whose manifest is there.
#[derive(Debug)]
pub struct Listed {
    /// Its root.
    pub root: Digest,
    /// Places with a manifest under this root, by their lists.
    pub manifests: Vec<usize>,
    /// The facts; without an intact manifest the reason.
    pub summary: std::result::Result<Summary, Unread>,
}

/// The reason why nothing is known of an encoding but its root.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// No place gives its manifest intact.
    #[error("{why}")]
    NotGiven {
        /// The place that was asked last.
        place: usize,
        /// Why it does not.
        why: StoreError,
    },
    /// Each copy of the manifest has other bytes than its root.
    #[error("the manifest is damaged, or another, at every place")]
    Damaged,
    /// The manifest breaks a rule, so no reader takes it.
    #[error("the manifest breaks a rule: {0}")]
    Broken(fec_core::error::FormatError),
    /// The manifests in these places are too large to read all of them.
    #[error("more than {} MiB of manifests are here, and this one was not read", MAX_READ >> 20)]
    Many,
}

impl Unread {
    /// Its class.
    pub fn class(&self) -> Class {
        match self {
            Unread::NotGiven { why, .. } if why.leaves_open() => Class::Io,
            Unread::NotGiven { .. } | Unread::Damaged => Class::Lost,
            Unread::Broken(error) => fec_base::class::class_of(Some(error.class())),
            Unread::Many => Class::Refused,
        }
    }
}

/// A root with shards and no manifest: of a segment whose manifest is elsewhere, lost, or never arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alone {
    /// The root.
    pub root: Digest,
    /// Different shards.
    pub shards: usize,
    /// Places that list them.
    pub places: Vec<usize>,
}

impl Inventory {
    /// The gravest class of all that was found; `None`: every place was asked, and every encoding is whole by the
    /// lists.
    pub fn class(&self) -> Option<Class> {
        let failed = self.failed.iter().map(|_| Class::Io);
        let alone = self.alone.iter().map(|_| Class::Mendable);
        let encodings = self.encodings.iter().filter_map(|listed| listed.class(!self.failed.is_empty()));
        failed.chain(alone).chain(encodings).max()
    }
}

impl Listed {
    /// Class of its state. `is_cut_off`: a place was not asked, and may have what is missing.
    pub fn class(&self, is_cut_off: bool) -> Option<Class> {
        match &self.summary {
            Err(why) => Some(why.class()),
            Ok(summary) if summary.margin < 0 => Some(if is_cut_off { Class::Io } else { Class::Lost }),
            Ok(summary) => (!summary.is_whole()).then_some(Class::Mendable),
        }
    }
}

/// Lists the encodings in `places`.
///
/// # Errors
/// [`NoPlace`](super::error::StoresError::NoPlace) and [`ErrorKind::Cancelled`]. Places that give no list, or one of
/// too many objects, are in the result.
pub fn inventory(places: &Places, context: &Context<'_>) -> Result<Inventory> {
    let objects = objects(places)?;
    let meter = context.meter(Action::ReadManifest, None);
    let claimed = Mutex::new(BTreeSet::new());
    let encodings = Mutex::new(Vec::new());
    each_manifest(places, &objects, &meter, |root, manifests, opened| {
        let summary = opened.map(|manifest| {
            let known = manifest.segments.iter().map(|segment| segment.root);
            lock(&claimed).extend(known.filter(|root| objects.of.contains_key(root)));
            Summary::new(places, &objects, &root, &manifest)
        });
        lock(&encodings).push(Listed { root, manifests, summary });
    })?;
    meter.finish();
    let claimed = into_value(claimed);
    let mut encodings = into_value(encodings);
    encodings.sort_by_key(|listed| listed.root);
    let alone = objects
        .of
        .iter()
        .filter(|(root, held)| !claimed.contains(*root) && held.iter().all(|object| object.shard.is_some()));
    let alone = alone.map(|(root, held)| Alone {
        root: *root,
        shards: held.iter().map(|object| object.shard).collect::<BTreeSet<_>>().len(),
        places: held.iter().map(|object| object.place).collect::<BTreeSet<_>>().into_iter().collect(),
    });
    Ok(Inventory { alone: alone.collect(), encodings, failed: objects.failed, fetched_bytes: places.moved() })
}

/// Reads every manifest that is listed, several at a time, and gives it to `each` with its root and its places.
///
/// # Errors
/// [`ErrorKind::Cancelled`].
pub(super) fn each_manifest(
    places: &Places,
    objects: &Objects,
    meter: &Gauge<'_>,
    each: impl Fn(Digest, Vec<usize>, std::result::Result<Manifest, Unread>) + Sync,
) -> Result<()> {
    let has_manifest = |held: &Vec<Held>| held.iter().any(|object| object.shard.is_none());
    let roots = objects.of.iter().filter(|(_, held)| has_manifest(held)).map(|(root, _)| *root);
    let roots: Vec<Digest> = roots.collect();
    let read = Reader { places, left: AtomicU64::new(MAX_READ), large: Mutex::new(()) };
    Threads(TOGETHER).run(roots.len(), &|nth| {
        if places.cancel.is_cancelled() {
            return;
        }
        let root = roots[nth];
        let held: Vec<Held> =
            objects.of[&root].iter().filter(|object| object.shard.is_none()).copied().collect();
        let opened = read.any(&root, &held);
        each(root, held.iter().map(|object| object.place).collect(), opened);
        meter.add(1);
    });
    match places.cancel.is_cancelled() {
        true => Err(Error::new(Action::List, ErrorKind::Cancelled)),
        false => Ok(()),
    }
}

/// Reads manifests within a bound.
struct Reader<'a> {
    places: &'a Places,
    /// Bytes that may still be read.
    left: AtomicU64,
    /// Held while a large one is in memory.
    large: Mutex<()>,
}

impl Reader<'_> {
    /// The manifest with this root, from the first place that gives it intact.
    fn any(&self, root: &Digest, held: &[Held]) -> std::result::Result<Manifest, Unread> {
        let mut last = Unread::Damaged;
        for object in held {
            match self.one(root, object) {
                // Another place says more than one that gives other bytes.
                Err(Unread::Damaged) => {}
                Err(why @ Unread::NotGiven { .. }) => last = why,
                done => return done,
            }
        }
        Err(last)
    }

    fn one(&self, root: &Digest, object: &Held) -> std::result::Result<Manifest, Unread> {
        let Held { place, size: listed, .. } = *object;
        let key = keys::manifest(root);
        let not_given = |why| Unread::NotGiven { place, why };
        let cancel = &self.places.cancel;
        let size = match listed {
            // Some lists tell no lengths.
            0 => {
                self.places.look(place, cancel, |store, call| store.head(&key, call)).map_err(not_given)?.size
            }
            listed => listed,
        };
        if size > MAX_MANIFEST as u64 {
            return Err(Unread::Damaged);
        }
        if self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(size))
            .is_err()
        {
            return Err(Unread::Many);
        }
        let _alone = (size > LARGE).then(|| lock(&self.large));
        let read = |range: std::ops::Range<u64>| {
            self.places.look(place, cancel, |store, call| store.read(&key, range.clone(), call))
        };
        let bytes = read(0..size).map_err(not_given)?;
        Manifest::open(root, &bytes).map_err(|error| match error.class() {
            fec_core::error::Class::Damaged => Unread::Damaged,
            _ => Unread::Broken(error),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gravest_finding_counts() {
        let listed = |summary| Listed { root: [1; 32], manifests: vec![0], summary: Err(summary) };
        let all = |encodings, alone: usize, failed: usize| Inventory {
            encodings,
            alone: vec![Alone { root: [2; 32], shards: 1, places: vec![0] }; alone],
            failed: vec![(0, StoreError::Absent); failed],
            fetched_bytes: 0,
        };
        let denied = Unread::NotGiven { place: 0, why: StoreError::Denied("403".into()) };
        let gone = Unread::NotGiven { place: 0, why: StoreError::NotFound };
        for (found, class) in [
            (all(vec![], 0, 0), None),
            (all(vec![], 1, 0), Some(Class::Mendable)),
            (all(vec![listed(Unread::Damaged)], 1, 0), Some(Class::Lost)),
            (all(vec![listed(gone)], 0, 0), Some(Class::Lost)),
            (all(vec![listed(Unread::Many), listed(Unread::Damaged)], 0, 0), Some(Class::Refused)),
            (all(vec![listed(denied)], 0, 0), Some(Class::Io)),
            (all(vec![], 1, 1), Some(Class::Io)),
        ] {
            assert_eq!(found.class(), class, "{found:?}");
        }
    }
}

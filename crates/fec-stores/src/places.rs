//! The open places of an operation, each with its record of failures, speed and lies.

use super::call::{Call, CallOptions, Cancel, Pace};
use super::error::{StoreError, StoresError};
use super::keys;
use super::object::ObjectStore;
use super::open;
use super::target::{Scheme, Target};
use fec_base::context::Progress;
use fec_base::error::{Action, Error, Result};
use fec_base::io::output::OWNER_ALONE;
use fec_base::io::temporary::remove_stale;
use fec_core::digest::Digest;
use fec_core::executor::lock;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A place is given up after this many calls in a row that failed for good, so a place that is down costs a bounded
/// time.
const GIVEN_UP: u32 = 3;

/// An open place.
pub struct Place {
    /// The user's name of it.
    pub target: Target,
    /// The store behind it.
    pub store: Arc<dyn ObjectStore>,
    /// Calls in a row that failed despite repetition.
    failures: AtomicU32,
    /// Recent speed in bytes a second; `None`: nothing came from it yet.
    speed: Mutex<Option<f64>>,
    /// The place has given a wrong object.
    has_lied: AtomicBool,
    /// The place has given a shard that was found intact.
    has_proved: AtomicBool,
}

/// The places of an operation.
pub struct Places {
    places: Vec<Place>,
    /// Limits of calls.
    pub options: CallOptions,
    /// Stops all calls.
    pub cancel: Cancel,
    pace: Pace,
    permissions: AtomicU32,
}

impl Places {
    /// Opens places; nothing is sent yet.
    ///
    /// # Errors
    /// [`StoresError`] for a place that cannot be used, or that is named twice: two
    /// names of a single place would fail together.
    pub fn open(targets: &[Target], options: CallOptions, sync: bool) -> Result<Places> {
        let mut seen = BTreeSet::new();
        for target in targets {
            if !target.identities().into_iter().all(|identity| seen.insert(identity)) {
                return Err(Error::at(Action::Open, target, StoresError::Twice));
            }
        }
        let places = targets.iter().map(|target| {
            let store = open::open(target, &options, sync).map_err(|e| Error::at(Action::Open, target, e))?;
            Ok(Place::new(target.clone(), store))
        });
        Ok(Places::new(places.collect::<Result<_>>()?, options))
    }

    /// Takes stores that are open already.
    pub fn new(places: Vec<Place>, options: CallOptions) -> Places {
        Places {
            places,
            options,
            cancel: Cancel::default(),
            pace: Pace::default(),
            permissions: AtomicU32::new(OWNER_ALONE),
        }
    }

    /// Number of places.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Tells whether there are no places.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// A place, by its number.
    pub fn get(&self, place: usize) -> &Place {
        &self.places[place]
    }

    /// All places, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Place> {
        self.places.iter()
    }

    /// Bytes of bodies sent and received.
    pub fn moved(&self) -> u64 {
        self.pace.moved()
    }

    /// The settings of a call that `cancel` stops.
    pub fn call<'a>(&'a self, cancel: &'a Cancel) -> Call<'a> {
        let permissions = self.permissions.load(Ordering::Relaxed);
        Call { options: &self.options, cancel, pace: &self.pace, permissions }
    }

    /// Runs `attempt` at a place, and repeats it while that may help. At a place that is given up it is not run.
    ///
    /// # Errors
    /// The last one.
    pub fn retry<T>(
        &self,
        place: usize,
        cancel: &Cancel,
        mut attempt: impl FnMut(&dyn ObjectStore, &Call<'_>) -> std::result::Result<T, StoreError>,
    ) -> std::result::Result<T, StoreError> {
        let (call, place) = (self.call(cancel), &self.places[place]);
        if place.is_given_up() {
            return Err(StoreError::GivenUp);
        }
        let done = call.retry(|| attempt(place.store.as_ref(), &call));
        place.note(done.as_ref().err());
        done
    }

    /// As [`retry`](Places::retry) for calls that only look. "Denied" does not count against the place: without the
    /// right to list it is also the answer for missing objects.
    ///
    /// # Errors
    /// The last one.
    pub fn look<T>(
        &self,
        place: usize,
        cancel: &Cancel,
        mut attempt: impl FnMut(&dyn ObjectStore, &Call<'_>) -> std::result::Result<T, StoreError>,
    ) -> std::result::Result<T, StoreError> {
        let looked = self.retry(place, cancel, |store, call| match attempt(store, call) {
            Err(error @ StoreError::Denied(_)) => Ok(Err(error)),
            other => other.map(Ok),
        });
        looked?
    }

    /// From now on new objects that are files have these permissions, less those that the process's umask withholds.
    /// Before this call only the owner may read them.
    pub fn set_permissions(&self, permissions: u32) {
        self.permissions.store(permissions, Ordering::Relaxed);
    }
}

impl Place {
    /// A place without any record yet.
    pub fn new(target: Target, store: Arc<dyn ObjectStore>) -> Place {
        Place {
            target,
            store,
            failures: AtomicU32::new(0),
            speed: Mutex::default(),
            has_lied: AtomicBool::new(false),
            has_proved: AtomicBool::new(false),
        }
    }

    /// Removes leftovers of killed runs among the objects under a root, if the place is a folder.
    pub(super) fn remove_stale(&self, root: &Digest, progress: &dyn Progress) {
        if let Scheme::Folder(path) = &self.target.scheme {
            remove_stale(&path.join(keys::prefix(root)), progress);
        }
    }

    /// Removes the empty folder of a root, if the place is a folder. Anything in it keeps the folder.
    pub(super) fn remove_folder(&self, root: &Digest) {
        if let Scheme::Folder(path) = &self.target.scheme {
            let _ = std::fs::remove_dir(path.join(keys::prefix(root)));
        }
    }

    /// Tells whether it failed too often in a row.
    pub fn is_given_up(&self) -> bool {
        self.failures.load(Ordering::Relaxed) >= GIVEN_UP
    }

    /// Notes the end of a call.
    pub(super) fn note(&self, error: Option<&StoreError>) {
        match error {
            None | Some(StoreError::NotFound) => self.failures.store(0, Ordering::Relaxed),
            Some(error) if error.is_of_place() => {
                self.failures.fetch_add(1, Ordering::Relaxed);
            }
            Some(_) => {}
        }
    }

    /// Notes the duration of a transfer from it.
    pub(super) fn note_speed(&self, bytes: u64, time: Duration) {
        let now = bytes as f64 / time.as_secs_f64().max(1e-6);
        let mut speed = lock(&self.speed);
        *speed = Some(speed.map_or(now, |before| 0.7 * before + 0.3 * now));
    }

    /// Recent speed in bytes a second.
    pub(super) fn speed(&self) -> Option<f64> {
        *lock(&self.speed)
    }

    /// Notes that it gave a wrong object.
    pub(super) fn note_lie(&self) {
        self.has_lied.store(true, Ordering::Relaxed);
    }

    /// Notes that it gave a shard that was found intact.
    pub(super) fn note_proved(&self) {
        self.has_proved.store(true, Ordering::Relaxed);
    }

    /// Tells whether it ever gave a shard that was found intact.
    pub(super) fn has_proved(&self) -> bool {
        self.has_proved.load(Ordering::Relaxed)
    }

    /// Tells whether it ever gave a wrong object.
    pub(super) fn has_lied(&self) -> bool {
        self.has_lied.load(Ordering::Relaxed)
    }
}

//! The places of an operation: open, each with what was seen of it until now.

use super::call::{Call, CallOptions, Cancel, Pace};
use super::error::{StoreError, StoresError};
use super::object::ObjectStore;
use super::target::Target;
use crate::error::{Error, Result};
use crate::io::output::OWNER_ALONE;
use fec_core::executor::lock;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// So many calls in a row that failed for good are enough: a place that is down costs no more time than that.
const GIVEN_UP: u32 = 3;

/// A place that is open.
pub struct Place {
    /// How the user named it.
    pub target: Target,
    /// What is there.
    pub store: Arc<dyn ObjectStore>,
    /// Calls in a row that failed although they were repeated.
    failures: AtomicU32,
    /// Bytes a second of late; `None`: nothing came from it yet.
    speed: Mutex<Option<f64>>,
    /// Something that it gave was not what it had to be.
    has_lied: AtomicBool,
}

/// The places of an operation.
pub struct Places {
    places: Vec<Place>,
    /// What calls are held to.
    pub options: CallOptions,
    /// Stops them all.
    pub cancel: Cancel,
    pace: Pace,
    permissions: AtomicU32,
}

impl Places {
    /// Opens them; nothing is sent yet.
    ///
    /// # Errors
    /// [`ErrorKind::Stores`](crate::ErrorKind::Stores) for a place that cannot be used, or that is named twice: two domains that
    /// are one would fail together.
    pub fn open(targets: &[Target], options: CallOptions, sync: bool) -> Result<Places> {
        let mut seen = BTreeSet::new();
        for target in targets {
            if !target.identities().into_iter().all(|identity| seen.insert(identity)) {
                return Err(Error::at("open", target, StoresError::Twice));
            }
        }
        let places = targets.iter().map(|target| {
            let store = super::open(target, &options, sync).map_err(|e| Error::at("open", target, e))?;
            Ok(Place::new(target.clone(), store))
        });
        Ok(Places::new(places.collect::<Result<_>>()?, options))
    }

    /// Of stores that are open already.
    pub fn new(places: Vec<Place>, options: CallOptions) -> Places {
        Places {
            places,
            options,
            cancel: Cancel::default(),
            pace: Pace::default(),
            permissions: AtomicU32::new(OWNER_ALONE),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// One of them.
    pub fn get(&self, place: usize) -> &Place {
        &self.places[place]
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Place> {
        self.places.iter()
    }

    /// Bytes of bodies that went up or came down.
    pub fn moved(&self) -> u64 {
        self.pace.moved()
    }

    /// How a call is made that `cancel` stops.
    pub fn call<'a>(&'a self, cancel: &'a Cancel) -> Call<'a> {
        let permissions = self.permissions.load(Ordering::Relaxed);
        Call { options: &self.options, cancel, pace: &self.pace, permissions }
    }

    /// Does something at a place, and repeats it while that may help; at a place that is down, not at all.
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

    /// The same where it is only looked what is there: whoever may not list is refused what is not there, and that is an answer.
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

    /// What is put from now on where objects are files has these permissions, less those that the process withholds. Until this is
    /// called only their owner may read them.
    pub fn set_permissions(&self, permissions: u32) {
        self.permissions.store(permissions, Ordering::Relaxed);
    }
}

impl Place {
    /// A place of which nothing is known yet.
    pub fn new(target: Target, store: Arc<dyn ObjectStore>) -> Place {
        Place {
            target,
            store,
            failures: AtomicU32::new(0),
            speed: Mutex::default(),
            has_lied: AtomicBool::new(false),
        }
    }

    /// Whether it is down, as far as was seen.
    pub fn is_given_up(&self) -> bool {
        self.failures.load(Ordering::Relaxed) >= GIVEN_UP
    }

    /// Notes how a call ended.
    pub(super) fn note(&self, error: Option<&StoreError>) {
        match error {
            None | Some(StoreError::NotFound) => self.failures.store(0, Ordering::Relaxed),
            Some(error) if error.is_of_place() => {
                self.failures.fetch_add(1, Ordering::Relaxed);
            }
            Some(_) => {}
        }
    }

    /// Notes how long it took to get bytes from it.
    pub(super) fn note_speed(&self, bytes: u64, time: Duration) {
        let now = bytes as f64 / time.as_secs_f64().max(1e-6);
        let mut speed = lock(&self.speed);
        *speed = Some(speed.map_or(now, |before| 0.7 * before + 0.3 * now));
    }

    /// Bytes a second of late.
    pub(super) fn speed(&self) -> Option<f64> {
        *lock(&self.speed)
    }

    /// Notes that it gave something that is not what it has to be.
    pub(super) fn note_lie(&self) {
        self.has_lied.store(true, Ordering::Relaxed);
    }

    /// Whether it ever did.
    pub(super) fn has_lied(&self) -> bool {
        self.has_lied.load(Ordering::Relaxed)
    }
}

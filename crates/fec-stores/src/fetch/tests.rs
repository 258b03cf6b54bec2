//! The order of transfers, and what becomes of their bytes.

use super::*;
use crate::ObjectStore;
use crate::call::{Call, CallOptions};
use crate::object::{ObjectInfo, Put, Sink, Wanted};
use crate::places::Place;
use crate::target::Target;
use fec_base::context::Context;
use fec_base::error::Action;
use fec_base::io::ReadAt;
use fec_core::block::Code;
use fec_core::digest::HashKind;
use fec_core::params::{Form, GroupGeometry};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A store that gives a thousand bytes of each answer and falls silent.
#[derive(Default)]
pub(crate) struct Silent(AtomicU32);

impl ObjectStore for Silent {
    fn name(&self) -> &str {
        "silent"
    }

    fn list_wanted(&self, _: &str, _: Wanted, _: &Call<'_>) -> Result<Vec<ObjectInfo>, StoreError> {
        Err(StoreError::Unsupported("list what it has"))
    }

    fn head(&self, _: &str, _: &Call<'_>) -> Result<ObjectInfo, StoreError> {
        Err(StoreError::NotFound)
    }

    fn get(&self, _: &str, _: Range<u64>, sink: &mut Sink<'_>, _: &Call<'_>) -> Result<(), StoreError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        sink(&[7; 1000]).map_err(|e| StoreError::Sink(e.to_string()))?;
        Err(StoreError::Silent("no byte for the whole timeout".into()))
    }

    fn put(&self, _: &str, _: &dyn ReadAt, _: u64, _: &Call<'_>) -> Result<Put, StoreError> {
        Err(StoreError::Denied("it is only read".into()))
    }

    fn delete(&self, _: &str, _: &Call<'_>) -> Result<(), StoreError> {
        Err(StoreError::Denied("it is only read".into()))
    }
}

type Result<T, E = StoreError> = std::result::Result<T, E>;

const PLACES: usize = 3;

/// Runs `test` on a fetch from three places and the length of a shard file.
pub(crate) fn with_fetch(test: impl FnOnce(&mut Fetch<'_>, &Silent, u64)) {
    let store = Arc::new(Silent::default());
    let place = |nth: usize| {
        let target = Target::parse(&format!("s3://bucket/{nth}")).expect("a target");
        Place::new(target, store.clone())
    };
    let options = CallOptions { timeout: Duration::from_secs(30), retries: 5, rate: None };
    let places = Places::new((0..PLACES).map(place).collect(), options);
    let code = Code::new(3, 3).expect("a code");
    let geometry = GroupGeometry::whole(Form::Shards, HashKind::Blake3, code, 1 << 20, 300_000);
    let encoding = Encoding::new(geometry.expect("a geometry"), [7; 32], b"");
    let spool = tempfile::tempdir().expect("a folder");
    let meter = Context::default().meter(Action::Fetch, None);
    let fetch = Fetch::new(&places, &encoding, Some(spool.path()), &meter);
    test(&mut fetch.expect("a folder"), &store, encoding.layout().file_len);
}

/// A transfer that ended after `bytes` of its object.
fn came(done: Result<()>, bytes: u64) -> Came {
    Came { done, time: Duration::from_secs(1), moved: bytes, bytes, is_damaged: false }
}

/// Writes a body that is not whole, as a transfer does, and notes how the transfer ended.
fn left(fetch: &mut Fetch<'_>, key: Key, error: StoreError) {
    fs::write(fetch.room.partial(key.0, key.1), b"bytes").expect("a file");
    fetch.note_came(key, came(Err(error), 5));
}

fn cut() -> StoreError {
    StoreError::Unavailable("the connection broke".into())
}

/// The bytes of an object that is given up are of no use. Those of others are not fetched again if a shard that came
/// from elsewhere is a lie.
#[test]
fn bodies_are_kept_until_their_object_is_given_up() {
    with_fetch(|fetch, _, len| {
        let is_there = |fetch: &Fetch<'_>, key: Key| fetch.room.partial(key.0, key.1).exists();
        left(fetch, (0, 0), StoreError::Cancelled);
        left(fetch, (1, 0), cut());
        // The shard comes from another place before a third has stopped.
        fetch.note_came((0, 2), came(Ok(()), len));
        left(fetch, (0, 1), StoreError::Cancelled);
        let running = Running::default();
        assert!(!fetch.is_open((0, 0), &running), "the shard is here");
        fetch.is_damaged(0);
        for key in [(0, 0), (0, 1), (1, 0)] {
            assert!(is_there(fetch, key) && fetch.objects[&key].bytes == 5, "{key:?}");
            assert!(fetch.is_open(key, &running), "{key:?}");
        }
        // No further transfer of it begins.
        left(fetch, (1, 0), StoreError::Denied("403".into()));
        assert!(fetch.objects[&(1, 0)].is_out && !is_there(fetch, (1, 0)));
    });
}

/// Each silence takes the whole timeout.
#[test]
fn silence_is_met_three_times() {
    with_fetch(|fetch, store, _| {
        let key = (0, 0);
        for silences in 1..=SILENCES {
            assert!(!fetch.objects.get(&key).is_some_and(|object| object.is_out));
            let active = Active::new(Cancel::default(), 0);
            let source = Source {
                places: fetch.places,
                encoding: fetch.encoding,
                meter: fetch.meter,
                key,
                size: fetch.encoding.layout().file_len,
                len: fetch.encoding.layout().file_len,
                tries: 0,
                partial: fetch.room.partial(0, 0),
                path: fetch.room.shard_of(0),
            };
            let came = crate::transfer::transfer(&source, &active);
            assert!(matches!(came.done, Err(StoreError::Silent(_))) && came.bytes == 1000);
            assert_eq!(store.0.load(Ordering::Relaxed), silences, "it is not asked again at once");
            fetch.note_came(key, came);
        }
        assert!(fetch.objects[&key].is_out, "it is given up");
    });
}

/// A shard that was looked at and is damaged does not count, and its place is doubted at once.
#[test]
fn a_liar_is_known_when_its_first_shard_is_here() {
    with_fetch(|fetch, _, len| {
        for key in [(0, 0), (1, 0), (1, 1)] {
            add(fetch, key, 0, false);
        }
        fetch.note_came((0, 0), Came { is_damaged: true, ..came(Ok(()), len) });
        assert!(fetch.count() == 0 && fetch.has_damaged() && fetch.arrivals() == 1);
        assert_eq!(fetch.best(&Running::default()), Some((1, 1)));
    });
}

/// Adds an object to a fetch.
pub(crate) fn add(fetch: &mut Fetch<'_>, key: Key, bytes: u64, is_late: bool) {
    let size = fetch.encoding.layout().file_len;
    fetch.objects.insert(key, Object { size, bytes, is_late, ..Object::default() });
}

/// A fresh object of a slow place would cost a whole transfer beside one that is nearly here.
#[test]
fn advanced_objects_go_before_fresh_ones_of_their_place() {
    with_fetch(|fetch, _, len| {
        add(fetch, (0, 0), 0, false);
        add(fetch, (1, 0), len - 10, true);
        fetch.begun.insert(0);
        assert_eq!(fetch.best(&Running::default()), Some((1, 0)));
        // Another place comes before all of them.
        add(fetch, (2, 1), 0, false);
        assert_eq!(fetch.best(&Running::default()), Some((2, 1)));
        // Places that are not late: the object that will be whole first.
        add(fetch, (3, 2), len / 2, false);
        assert_eq!(fetch.best(&Running::default()), Some((3, 2)));
    });
}

#[test]
fn objects_of_its_own_place_do_not_replace_a_late_transfer() {
    for (place, expected) in [(0, false), (1, true)] {
        with_fetch(|fetch, _, _| {
            let mut running = Running::default();
            let long_ago = Instant::now().checked_sub(Duration::from_secs(100)).expect("a moment");
            let mut active = Active::new(Cancel::default(), 0);
            active.started = long_ago;
            running.active.insert((0, 0), active);
            fetch.times = vec![Duration::from_millis(10); 2];
            add(fetch, (0, 0), 0, false);
            add(fetch, (1, place), 0, false);
            fetch.hedge(&mut running, 1);
            let is_left = !running.active.contains_key(&(0, 0));
            assert_eq!((is_left, fetch.objects[&(0, 0)].is_late), (expected, expected));
        });
    }
}

//! A store in memory that counts its calls and misbehaves on demand.

use fec_base::io::ReadAt;
use fec_core::random::SplitMix64;
use fec_stores::call::Call;
use fec_stores::object::{ObjectInfo, Put, Removed, Sink, Wanted};
use fec_stores::{ObjectStore, StoreError};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// A place fails after this many calls, so that endless tests end.
const TOO_MANY: u64 = 20_000;
/// Bytes given at a time.
const PIECE: usize = 16 << 10;

/// Behaviours of lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Lists {
    #[default]
    Well,
    /// Lists are denied. With `absent_too` requests for missing objects are denied as well, as at S3.
    Denied { absent_too: bool },
    /// Lists are empty.
    Empty,
    /// Lists have every other object.
    Short,
    /// Lists always fail with a transient error.
    Broken,
    /// Lists never end.
    Endless,
    /// Lists say that there is no bucket.
    NoBucket,
    /// Lists say that all objects are empty.
    Sizeless,
    /// The store cannot list.
    None,
}

/// Chooses keys.
pub(crate) type OfKeys = fn(&str) -> bool;

/// Behaviour of a place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ways {
    pub(crate) lists: Lists,
    /// Wrong bits in each answer.
    pub(crate) flips: usize,
    /// Bytes a second; if `uneven`, up to four times as many, at random for each answer.
    pub(crate) speed: Option<u64>,
    pub(crate) uneven: bool,
    pub(crate) dead: bool,
    /// Requests for shards get no byte.
    pub(crate) silent: bool,
    /// Requests for shards are denied, and those for their first bytes are not.
    pub(crate) denies_shards: bool,
    /// The connection breaks after this many bytes of an answer.
    pub(crate) breaks_after: Option<usize>,
    pub(crate) read_only: bool,
    /// Puts of these keys are denied.
    pub(crate) refuses: Option<OfKeys>,
    /// Puts of these keys take so long.
    pub(crate) holds: Option<(OfKeys, Duration)>,
    /// The end of deletes.
    pub(crate) deletes: Deletes,
    /// The first put of each object fails.
    pub(crate) fails_first: bool,
    /// The first read of more than 4 KiB of each shard takes so long.
    pub(crate) straggles: Option<Duration>,
}

/// Behaviours of deletes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Deletes {
    #[default]
    Well,
    Denied,
    /// The store says that it did, and did nothing.
    Ignored,
    /// The store keeps what was there as an older version, and says so.
    Hidden,
}

/// Calls that a place got.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    pub(crate) lists: u64,
    pub(crate) heads: u64,
    pub(crate) puts: u64,
    pub(crate) deletes: u64,
    /// Shards read at the same time, and the most of them.
    pub(crate) reading: (u64, u64),
    /// Reads of shards, whole or in part.
    pub(crate) reads: u64,
    /// Reads of each object from its start, and bytes of it given.
    pub(crate) gets: BTreeMap<String, (u64, u64)>,
}

/// A store in memory.
pub(crate) struct Memory {
    pub(crate) nth: usize,
    name: String,
    objects: Mutex<BTreeMap<String, Vec<u8>>>,
    ways: Mutex<Ways>,
    calls: Mutex<Calls>,
    all: AtomicU64,
    /// Objects whose first put failed, or whose first read took long.
    failed: Mutex<BTreeSet<String>>,
    random: Mutex<SplitMix64>,
}

fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poison| poison.into_inner())
}

pub(crate) fn bytes_of(seed: u64, len: usize) -> Vec<u8> {
    let mut random = SplitMix64::new(seed);
    (0..len).map(|_| random.next() as u8).collect()
}

impl Memory {
    pub(crate) fn new(nth: usize, seed: u64) -> Memory {
        Memory {
            nth,
            name: format!("s3://bucket/{nth}"),
            objects: Mutex::default(),
            ways: Mutex::default(),
            calls: Mutex::default(),
            all: AtomicU64::new(0),
            failed: Mutex::default(),
            random: Mutex::new(SplitMix64::new(seed ^ (nth as u64) << 32)),
        }
    }

    pub(crate) fn set(&self, ways: Ways) {
        *hold(&self.ways) = ways;
    }

    pub(crate) fn objects(&self) -> MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
        hold(&self.objects)
    }

    /// Keys of its shard files.
    pub(crate) fn shards(&self) -> Vec<String> {
        self.objects().keys().filter(|key| key.ends_with(".shard")).cloned().collect()
    }

    pub(crate) fn calls(&self) -> Calls {
        hold(&self.calls).clone()
    }

    pub(crate) fn forget_calls(&self) {
        *hold(&self.calls) = Calls::default();
        self.all.store(0, Ordering::Relaxed);
    }

    pub(crate) fn given(&self) -> u64 {
        hold(&self.calls).gets.values().map(|(_, bytes)| *bytes).sum()
    }

    fn next(&self) -> u64 {
        hold(&self.random).next()
    }

    /// Counts a call; returns the current behaviour, or the error that answers every call.
    fn answers(&self, note: impl FnOnce(&mut Calls)) -> Result<Ways, StoreError> {
        if self.all.fetch_add(1, Ordering::Relaxed) >= TOO_MANY {
            return Err(StoreError::Failed("it is asked for ever".into()));
        }
        note(&mut hold(&self.calls));
        let ways = hold(&self.ways).clone();
        if ways.dead { Err(StoreError::Unavailable("connection refused".into())) } else { Ok(ways) }
    }

    fn find(&self, key: &str, ways: &Ways) -> Result<Vec<u8>, StoreError> {
        let absent = match ways.lists {
            Lists::Denied { absent_too: true } => StoreError::Denied("403 AccessDenied".into()),
            _ => StoreError::NotFound,
        };
        self.objects().get(key).cloned().ok_or(absent)
    }
}

/// A read of a shard, while it goes on.
struct Reading<'a>(&'a Mutex<Calls>);

impl Reading<'_> {
    fn new(calls: &Mutex<Calls>) -> Reading<'_> {
        let (now, most) = &mut hold(calls).reading;
        *now += 1;
        *most = (*most).max(*now);
        Reading(calls)
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        let now = &mut hold(self.0).reading.0;
        *now = now.saturating_sub(1);
    }
}

impl ObjectStore for Memory {
    fn name(&self) -> &str {
        &self.name
    }

    fn list_wanted(&self, prefix: &str, wanted: Wanted, _: &Call<'_>) -> Result<Vec<ObjectInfo>, StoreError> {
        let ways = self.answers(|calls| calls.lists += 1)?;
        let objects = self.objects();
        let all = objects.iter().filter(|(key, _)| key.starts_with(prefix) && wanted(key));
        let info = |(key, bytes): (&String, &Vec<u8>)| ObjectInfo {
            key: key.clone(),
            size: if ways.lists == Lists::Sizeless { 0 } else { bytes.len() as u64 },
            etag: None,
        };
        match ways.lists {
            Lists::Well | Lists::Sizeless => Ok(all.map(info).collect()),
            Lists::Short => Ok(all.step_by(2).map(info).collect()),
            Lists::Empty => Ok(Vec::new()),
            Lists::Denied { .. } => Err(StoreError::Denied("403 AccessDenied".into())),
            Lists::Broken => Err(StoreError::Unavailable("HTTP status 500".into())),
            Lists::Endless => Err(StoreError::Failed("its list does not come to an end".into())),
            Lists::NoBucket => Err(StoreError::NotFound),
            Lists::None => Err(StoreError::Unsupported("list what it has")),
        }
    }

    fn head(&self, key: &str, _: &Call<'_>) -> Result<ObjectInfo, StoreError> {
        let ways = self.answers(|calls| calls.heads += 1)?;
        let size = self.find(key, &ways)?.len() as u64;
        Ok(ObjectInfo { key: key.to_owned(), size, etag: None })
    }

    fn get(
        &self,
        key: &str,
        range: Range<u64>,
        sink: &mut Sink<'_>,
        call: &Call<'_>,
    ) -> Result<(), StoreError> {
        let is_start = u64::from(range.start == 0);
        let ways = self.answers(|calls| {
            calls.gets.entry(key.to_owned()).or_default().0 += is_start;
            calls.reads += u64::from(key.ends_with(".shard"));
        })?;
        let mut bytes = self.find(key, &ways)?;
        let len = bytes.len();
        for _ in 0..ways.flips.min(len) {
            let at = self.next();
            bytes[at as usize % len] ^= 1 << (at >> 60 & 7);
        }
        let part = bytes.get(range.start as usize..range.end as usize);
        let part = part.ok_or_else(|| StoreError::Failed("it is too short".into()))?;
        // Small answers come at once.
        let is_shard = key.ends_with(".shard") && part.len() > 4096;
        if ways.denies_shards && is_shard {
            return Err(StoreError::Denied("403 AccessDenied".into()));
        }
        let is_held = |time: Duration| is_shard && call.pause(time);
        let _reading = is_shard.then(|| Reading::new(&self.calls));
        let faster = if ways.uneven { 1 + self.next() % 4 } else { 1 };
        let started = Instant::now();
        if ways.silent && is_shard {
            return Err(match is_held(call.options.timeout) {
                true => StoreError::Silent("no answer".into()),
                false => StoreError::Cancelled,
            });
        }
        if let Some(time) = ways.straggles.filter(|_| is_shard && hold(&self.failed).insert(key.to_owned()))
            && !is_held(time)
        {
            return Err(StoreError::Cancelled);
        }
        let mut gone = 0;
        for piece in part.chunks(PIECE) {
            if ways.breaks_after.is_some_and(|most| gone >= most) {
                return Err(StoreError::Unavailable("the connection broke".into()));
            }
            gone += piece.len();
            if let Some(speed) = ways.speed {
                let due = Duration::from_secs_f64(gone as f64 / (speed * faster) as f64);
                if is_shard && !is_held(due.saturating_sub(started.elapsed())) {
                    return Err(StoreError::Cancelled);
                }
            }
            call.bytes(piece.len() as u64)?;
            hold(&self.calls).gets.entry(key.to_owned()).or_default().1 += piece.len() as u64;
            sink(piece).map_err(|e| StoreError::Sink(e.to_string()))?;
            if call.cancel.is_cancelled() {
                return Err(StoreError::Cancelled);
            }
        }
        Ok(())
    }

    fn put(&self, key: &str, body: &dyn ReadAt, len: u64, call: &Call<'_>) -> Result<Put, StoreError> {
        let ways = self.answers(|calls| calls.puts += 1)?;
        if ways.holds.is_some_and(|(holds, time)| holds(key) && !call.pause(time)) {
            return Err(StoreError::Cancelled);
        }
        if ways.read_only || ways.refuses.is_some_and(|refuses| refuses(key)) {
            return Err(StoreError::Denied("403 AccessDenied".into()));
        }
        if ways.fails_first && hold(&self.failed).insert(key.to_owned()) {
            return Err(StoreError::Unavailable("HTTP status 503".into()));
        }
        let mut objects = self.objects();
        if objects.contains_key(key) {
            return Ok(Put::Existed);
        }
        let mut bytes = vec![0; len as usize];
        body.read_exact_at(0, &mut bytes).map_err(|e| StoreError::Sink(e.to_string()))?;
        objects.insert(key.to_owned(), bytes);
        Ok(Put::Created)
    }

    fn delete(&self, key: &str, _: &Call<'_>) -> Result<(), StoreError> {
        match self.answers(|calls| calls.deletes += 1)?.deletes {
            Deletes::Well | Deletes::Hidden => drop(self.objects().remove(key)),
            Deletes::Denied => return Err(StoreError::Denied("403 AccessDenied".into())),
            Deletes::Ignored => {}
        }
        Ok(())
    }

    fn remove(&self, key: &str, call: &Call<'_>) -> Result<Removed, StoreError> {
        self.delete(key, call)?;
        let is_hidden = hold(&self.ways).deletes == Deletes::Hidden;
        Ok(if is_hidden { Removed::Hidden } else { Removed::Gone })
    }
}

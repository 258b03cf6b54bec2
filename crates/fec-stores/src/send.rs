//! Sends a payload to stores, segment by segment. Each segment is coded into a temporary folder and sent from there
//! while the next is coded.
//!
//! Shard files begin with proofs that need the root, so no byte of a segment can go out before the segment is coded.
//! The folder on the disk also lets a transfer be tried again.

mod coding;
mod options;
mod queue;
mod tail;

pub use options::{SEGMENT, SendOptions, needed};

use self::coding::{Coded, check_segments, code};
use self::queue::Queue;
use self::tail::gather;
use super::call::Cancel;
use super::error::{StoreError, StoresError};
use super::keys;
use super::lists::Lists;
use super::object::{ObjectInfo, Put};
use super::placement::{Placement, Survival};
use super::places::Places;
use super::put::{Expected, is_there, put};
use super::target::Target;
use fec_base::context::{Context, Gauge, Progress};
use fec_base::error::{Action, Class, Error, ErrorKind, Place, Result};
use fec_base::threads::{Threads, no_thread, spawn_or_do};
use fec_core::digest::Digest;
use fec_core::executor::{Executor, into_value, lock};
use fec_core::format::manifest::{MAX_TARGETS, Manifest, ManifestTarget};
use fec_core::format::meta::Meta;
use fec_core::format::seal::SealedKind;
use fec_core::format::shard_file::{Encoding, ShardHeader};
use fecfile::payload::Source;
use fecfile::within::Coded as CodedSource;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel, sync_channel};

/// Most characters of a domain's name in progress output.
const NAME: usize = 12;

/// The result of sending a payload.
#[must_use = "shards may be missing"]
#[derive(Debug)]
pub struct Sent {
    /// Root of the manifest.
    pub root: Digest,
    /// The manifest.
    pub manifest: Manifest,
    /// New objects.
    pub created: u64,
    /// Objects that were there already, with the expected size and first bytes.
    pub kept: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Objects that did not arrive.
    pub missing: Vec<Missing>,
    /// The smallest number of shards that arrived of any segment.
    pub weakest: u32,
    /// Failures that lose nothing once no object is missing.
    pub survival: Survival,
    /// Failures that lose nothing as it is.
    pub arrived: Survival,
}

/// An object that did not arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Segment and shard; `None`: it is the manifest.
    pub shard: Option<(u32, u32)>,
    /// Number of the place.
    pub place: usize,
    /// Cause.
    pub why: StoreError,
}

impl Sent {
    /// Class of the missing objects; `None`: none is missing but those that were not waited for, because enough had
    /// arrived.
    pub fn class(&self) -> Option<Class> {
        let is_missing = self.missing.iter().any(|missing| missing.why != StoreError::Slow);
        is_missing.then_some(Class::Mendable)
    }
}

/// Encodes a payload into shards at `places`, which record `name`.
///
/// # Errors
/// Those of the payload; [`StoresError::Crowded`], [`StoresError::FewLanded`], [`StoresError::NoManifestLanded`].
/// Missing objects are in the result if enough arrived.
pub fn send(
    source: Source<'_>,
    name: &[u8],
    places: &Places,
    options: &SendOptions,
    context: &Context<'_>,
) -> Result<Sent> {
    let placement = check(places, options)?;
    places.set_permissions(options.permissions);
    let sealer = options.encode.sealer(SealedKind::Payload, Some(name), context.settings.threads)?;
    let meta = match &sealer {
        Some(sealer) => sealer.meta(),
        None => Meta::with_name(name).map_err(|e| Error::at(Action::Encode, source.place(), e))?,
    };
    let mut coded = CodedSource::new(source, sealer.as_ref());
    let source = coded.source();
    let name = sealer.is_none().then_some(name);
    let targets: Vec<_> = places.iter().map(|place| recorded(&place.target)).collect();
    let most = Manifest::most_segments(&meta, &targets);
    if let Some(len) = source.size() {
        check_segments(len.div_ceil(options.segment_len), most)?;
    }
    let meter = context.meter(Action::Send, source.size());
    let mut sending = Sending::new(places, &placement, options, &meter, context.progress);
    // The length of a pipe is not known.
    sending.lists = Lists::of_count(places, source.size().map_or(0, |len| len.div_ceil(options.segment_len)));
    let (segments, arrived) = sending.code_and_send(source, (name, most), context)?;
    let manifest = Manifest {
        hash: options.encode.hash,
        code: options.encode.code,
        segment_len: options.segment_len,
        segments,
        meta,
        targets,
    };
    let (root, manifests) = sending.manifest(&manifest)?;
    meter.finish();
    let k = manifest.code.k();
    let survivals = arrived.iter().map(|held| Placement::survival_of(held.clone(), k, manifests - 1));
    let arrived_of_all = survivals.min_by_key(|survival| (survival.domains, survival.shards));
    let weakest = arrived.iter().map(|held| held.iter().sum::<usize>()).min();
    let mut missing = into_value(sending.missing);
    missing.sort_by_key(|missing| (missing.shard, missing.place));
    Ok(Sent {
        root,
        manifest,
        created: sending.created.into_inner(),
        kept: sending.kept.into_inner(),
        sent_bytes: sending.sent_bytes.into_inner(),
        missing,
        weakest: weakest.unwrap_or(0) as u32,
        survival: placement.survival(),
        arrived: arrived_of_all.unwrap_or_else(|| placement.survival()),
    })
}

/// Refuses unusable places before any work.
fn check(places: &Places, options: &SendOptions) -> Result<Placement> {
    let refused = |error: StoresError| Error::new(Action::Encode, error);
    if places.is_empty() {
        return Err(refused(StoresError::NoPlace));
    }
    if places.len() > MAX_TARGETS {
        return Err(refused(StoresError::ManyPlaces(MAX_TARGETS)));
    }
    for place in places.iter() {
        let cause = match () {
            () if place.target.is_read_only() => StoresError::ReadOnly,
            () if !recorded(&place.target).is_plain() => StoresError::Unrecordable,
            () => continue,
        };
        return Err(Error::at(Action::EncodeTo, &place.target, cause));
    }
    let targets: Vec<_> = places.iter().map(|place| place.target.clone()).collect();
    let placement = Placement::new(&targets, options.encode.code);
    if !options.crowded {
        placement.check().map_err(|crowded| refused(StoresError::Crowded(crowded)))?;
    }
    Ok(placement)
}

/// The manifest's record of a place.
fn recorded(target: &Target) -> ManifestTarget {
    ManifestTarget { url: target.name(), domain: target.domain.clone() }
}

/// Sends coded segments.
struct Sending<'a> {
    places: &'a Places,
    placement: &'a Placement,
    options: &'a SendOptions,
    cancel: Cancel,
    /// Whole lists of places, for many segments.
    lists: Option<Lists>,
    created: AtomicU64,
    kept: AtomicU64,
    sent_bytes: AtomicU64,
    missing: Mutex<Vec<Missing>>,
    /// Number of objects that arrived at each place.
    landed: Mutex<Vec<u64>>,
    meter: &'a Gauge<'a>,
    /// The receiver of notices.
    progress: &'a dyn Progress,
}

impl<'a> Sending<'a> {
    /// Nothing is sent yet.
    fn new(
        places: &'a Places,
        placement: &'a Placement,
        options: &'a SendOptions,
        meter: &'a Gauge<'a>,
        progress: &'a dyn Progress,
    ) -> Sending<'a> {
        Sending {
            places,
            placement,
            options,
            cancel: places.cancel.child(),
            lists: None,
            created: AtomicU64::new(0),
            kept: AtomicU64::new(0),
            sent_bytes: AtomicU64::new(0),
            missing: Mutex::default(),
            landed: Mutex::new(vec![0; places.len()]),
            meter,
            progress,
        }
    }

    /// Codes a source into at most `most` segments, which record `name`, and sends each while the next is coded.
    /// Returns them, and the shards of each that arrived in each domain.
    fn code_and_send(
        &self,
        source: Source<'_>,
        (name, most): (Option<&[u8]>, u64),
        context: &Context<'_>,
    ) -> Result<(Vec<Encoding>, Vec<Vec<usize>>)> {
        let (coded, to_send) = sync_channel(0);
        std::thread::scope(|scope| {
            let sender = std::thread::Builder::new()
                .spawn_scoped(scope, || self.segments(to_send))
                .map_err(no_thread)?;
            let coding = code(source, (name, most), self.options, &coded, context);
            drop(coded);
            let sent = sender.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            // A failure to send stops coding, so its error comes first.
            let sent = sent?;
            coding.map(|()| sent)
        })
    }

    /// Sends segments as they come; returns them, and the shards of each that arrived in each domain.
    fn segments(&self, coded: Receiver<Coded>) -> Result<(Vec<Encoding>, Vec<Vec<usize>>)> {
        let (mut segments, mut arrived) = (Vec::new(), Vec::new());
        for segment in coded {
            let held = self.segment(&segment)?;
            let (landed, needed) = (held.iter().sum::<usize>() as u32, needed(&self.options.encode));
            if landed < needed {
                let causes = self.causes(|missing| missing.shard.is_some_and(|(of, _)| of == segment.number));
                let n = self.options.encode.code.n() as u32;
                let few = StoresError::FewLanded { segment: segment.number, landed, n, needed, causes };
                return Err(Error::new(Action::Encode, few));
            }
            arrived.push(held);
            segments.push(segment.encoding);
        }
        Ok((segments, arrived))
    }

    /// Sends the shards of a segment; returns how many arrived in each domain.
    fn segment(&self, segment: &Coded) -> Result<Vec<usize>> {
        let n = self.options.encode.code.n();
        let used: BTreeSet<usize> = (0..n).map(|i| self.placement.target(segment.number.into(), i)).collect();
        let root = &segment.encoding.root;
        used.iter().for_each(|place| self.places.get(*place).remove_stale(root, self.progress));
        let there = self.there(&used, root);
        let queue = Mutex::new(Queue::new(self.placement, segment.number, n, self.places.len()));
        let (telling, told) = channel();
        let cancel = self.cancel.child();
        let mut held = vec![0; self.placement.domains().len()];
        let mut stopped: Option<Error> = None;
        std::thread::scope(|scope| {
            for _ in 0..self.options.uploads.clamp(1, n) {
                let (telling, queue, cancel, there) = (telling.clone(), &queue, &cancel, &there);
                spawn_or_do(scope, move || {
                    while let Some((place, index)) = next(queue) {
                        let sent = self.shard(segment, (place, index), there, cancel);
                        lock(queue).is_done(place);
                        // A failed send means that the receiver is gone.
                        let _ = telling.send((place, sent));
                    }
                });
            }
            drop(telling);
            gather(&told, &cancel, |(place, sent)| {
                match sent {
                    Ok(is_there) => held[self.placement.domain(place)] += usize::from(is_there),
                    Err(error) => {
                        stopped.get_or_insert(error);
                        self.cancel.cancel();
                    }
                }
                self.options.enough && self.is_enough(&held)
            });
        });
        match stopped {
            Some(error) => Err(error),
            None if self.cancel.is_cancelled() => Err(Error::new(Action::Encode, ErrorKind::Cancelled)),
            None => Ok(held),
        }
    }

    /// Tells whether what arrived of a segment is as much as is promised, and survives the loss of a domain if all of
    /// it does.
    fn is_enough(&self, held: &[usize]) -> bool {
        let survival = Placement::survival_of(held.to_vec(), self.options.encode.code.k(), held.len());
        let wanted = self.placement.survival().domains.min(1);
        held.iter().sum::<usize>() as u32 >= needed(&self.options.encode) && survival.domains >= wanted
    }

    /// Sizes of shards that are under a root already, by place and shard. Places without a list are skipped: a put
    /// tells what is there.
    fn there(&self, places: &BTreeSet<usize>, root: &Digest) -> BTreeMap<(usize, u32), u64> {
        let found = Mutex::new(BTreeMap::new());
        let places: Vec<usize> = places.iter().copied().collect();
        Threads(places.len()).run(places.len(), &|nth| {
            let place = places[nth];
            let lists = self.lists.as_ref();
            let shards = lists.and_then(|lists| lists.shards(self.places, place, root, &self.cancel));
            let shards = shards.unwrap_or_else(|| {
                let list = self.places.look(place, &self.cancel, |store, call| {
                    store.list_wanted(&keys::prefix(root), keys::is_ours, call)
                });
                let index = |object: &ObjectInfo| keys::shard_index(root, &object.key);
                let objects = list.unwrap_or_default().into_iter();
                objects.filter_map(|object| Some((index(&object)?, object.size))).collect()
            });
            lock(&found).extend(shards.into_iter().map(|(index, size)| ((place, index), size)));
        });
        into_value(found)
    }

    /// Sends a shard file unless it is there; tells whether it is there now. It fails only if the coded file cannot be
    /// read.
    fn shard(
        &self,
        segment: &Coded,
        (place, index): (usize, u32),
        there: &BTreeMap<(usize, u32), u64>,
        cancel: &Cancel,
    ) -> Result<bool> {
        let path = segment.room.shard(&segment.files, index as usize);
        let file = File::open(&path).map_err(|e| Error::io(Action::Read, Place::Temporary, e))?;
        let (key, len) = (keys::shard(&segment.encoding.root, index), segment.encoding.outlined_len());
        let header = ShardHeader { index, encoding: segment.encoding }.to_bytes();
        let expected = Expected::shard(&key, &segment.encoding, &header);
        let sent = || -> std::result::Result<Put, StoreError> {
            if there.contains_key(&(place, index)) && is_there(self.places, place, expected, cancel)? {
                return Ok(Put::Existed);
            }
            put(self.places, place, &file, expected, cancel)
        };
        let sent = sent();
        // The space serves the next segments.
        let _ = fs::remove_file(&path);
        let (payload, n) = (segment.encoding.geometry.payload_len(), self.options.encode.code.n() as u64);
        let share = |shards: u32| (u128::from(payload) * u128::from(shards) / u128::from(n)) as u64;
        self.meter.add(share(index + 1) - share(index));
        match sent {
            Ok(put) => self.landed(place, put, len),
            Err(StoreError::Sink(cause)) => {
                return Err(Error::io(Action::Read, Place::Temporary, std::io::Error::other(cause)));
            }
            Err(why) => {
                let why = self.slow(why);
                lock(&self.missing).push(Missing { shard: Some((segment.number, index)), place, why });
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The cause, where a transfer was stopped and the sending was not.
    fn slow(&self, why: StoreError) -> StoreError {
        if why == StoreError::Cancelled && !self.cancel.is_cancelled() { StoreError::Slow } else { why }
    }

    /// Counts an object that arrived.
    fn landed(&self, place: usize, put: Put, len: u64) {
        if put == Put::Created {
            self.created.fetch_add(1, Ordering::Relaxed);
            self.sent_bytes.fetch_add(len, Ordering::Relaxed);
        } else {
            self.kept.fetch_add(1, Ordering::Relaxed);
        }
        let mut landed = lock(&self.landed);
        landed[place] += 1;
        let parts = landed.iter().enumerate().map(|(place, count)| {
            // Long names differ at their ends.
            let name = &self.places.get(place).target.domain;
            let skip = name.chars().count().saturating_sub(NAME);
            format!(
                "{}{} {count}",
                if skip > 0 { "…" } else { "" },
                name.chars().skip(skip).collect::<String>()
            )
        });
        self.meter.tell(&parts.collect::<Vec<_>>().join(", "));
    }

    /// Sends the manifest to all places; returns its root, and the number of domains that have it. With `enough`
    /// two suffice.
    fn manifest(&self, manifest: &Manifest) -> Result<(Digest, usize)> {
        let (bytes, root) = (manifest.to_bytes(), manifest.root());
        // Readers accept nothing else under this root, so the manifest has to be valid.
        Manifest::open(&root, &bytes).map_err(|e| Error::new(Action::Encode, StoresError::Manifest(e)))?;
        self.places.iter().for_each(|place| place.remove_stale(&root, self.progress));
        let (key, bytes) = (keys::manifest(&root), &bytes[..]);
        let (telling, told) = channel();
        let cancel = self.cancel.child();
        let mut domains = BTreeSet::new();
        std::thread::scope(|scope| {
            for place in 0..self.places.len() {
                let (telling, key, cancel) = (telling.clone(), &key, &cancel);
                spawn_or_do(scope, move || {
                    let put = put(self.places, place, &bytes, Expected::manifest(key, bytes), cancel);
                    // A failed send means that the receiver is gone.
                    let _ = telling.send((place, put));
                });
            }
            drop(telling);
            gather(&told, &cancel, |(place, put)| {
                match put {
                    Ok(put) => {
                        let counter = if put == Put::Created { &self.created } else { &self.kept };
                        counter.fetch_add(1, Ordering::Relaxed);
                        domains.insert(self.placement.domain(place));
                    }
                    Err(why) => {
                        let why = self.slow(why);
                        lock(&self.missing).push(Missing { shard: None, place, why });
                    }
                }
                self.options.enough && domains.len() >= self.placement.domains().len().min(2)
            });
        });
        let domains = domains.len();
        if domains == 0 {
            let causes = self.causes(|missing| missing.shard.is_none());
            return Err(Error::new(Action::Encode, StoresError::NoManifestLanded(causes)));
        }
        Ok((root, domains))
    }

    /// The causes of missing objects, a line for each place.
    fn causes(&self, of: impl Fn(&Missing) -> bool) -> Vec<String> {
        let missing = lock(&self.missing);
        causes(missing.iter().filter(|missing| of(missing)), self.places)
    }
}

/// The next shard to send.
fn next(queue: &Mutex<Queue>) -> Option<(usize, u32)> {
    lock(queue).take()
}

/// A line for each place with missing objects: the cause, and their number.
pub fn causes<'a>(missing: impl Iterator<Item = &'a Missing>, places: &Places) -> Vec<String> {
    let mut causes: BTreeMap<usize, (usize, &StoreError)> = BTreeMap::new();
    for missing in missing {
        let (count, why) = causes.entry(missing.place).or_insert((0, &missing.why));
        *count += 1;
        if **why == StoreError::GivenUp {
            *why = &missing.why;
        }
    }
    let name = |place: usize| places.get(place).target.name();
    let line = |(place, (count, why)): (&usize, &(usize, &StoreError))| {
        let objects = if *count == 1 { "object" } else { "objects" };
        format!("{}: {why} ({count} {objects})", name(*place))
    };
    causes.iter().map(line).collect()
}

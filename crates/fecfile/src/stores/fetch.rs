//! Shard files of a segment, from whoever is fastest, into a temporary folder: one more than is needed at once, and another when
//! one is later than nearly all the others were.

use super::call::Cancel;
use super::error::{StoreError, note};
use super::find::{Candidate, Located, locate, patience};
use super::keys;
use super::places::Places;
use super::room::Room;
use crate::context::Meter;
use crate::error::{Error, Place, Result};
use crate::threads::spawn_or_do;
use fec_core::format::shard_file::Encoding;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Objects that come at the same time.
const TOGETHER: usize = 64;
/// How often it is looked whether one is late.
const TICK: Duration = Duration::from_millis(20);
/// Later than the others by less than this is not late.
const NOT_LATE: Duration = Duration::from_millis(50);
/// What is so many times slower than places that have enough is hopeless: another one is fetched in its place.
const HOPELESS: f64 = 4.0;
/// What would take longer than this crawls.
const CRAWL: Duration = Duration::from_secs(60);
/// How long a transfer runs before its speed is believed.
const WARM: Duration = Duration::from_secs(1);
/// Objects that may be fetched besides because others are late: so many at once, and one more for twenty that came. Otherwise
/// they would be a storm when everything is slow.
const TOKENS: f64 = 4.0;
const TOKEN_EACH: f64 = 0.05;

/// The shard files of a segment: which there are, and which have come.
pub(super) struct Fetch<'a> {
    places: &'a Places,
    encoding: &'a Encoding,
    room: Room,
    meter: &'a dyn Meter,
    /// What was found and not tried, but for those that were tried once and may be again.
    candidates: BTreeSet<Candidate>,
    tries: BTreeMap<(u32, usize), u32>,
    /// The places of shards that are in the folder, by index.
    came: BTreeMap<u32, usize>,
    /// Places whose shards were not what they had to be.
    liars: BTreeSet<usize>,
    damaged: usize,
    is_located: bool,
    failures: BTreeMap<usize, StoreError>,
    /// Why what comes cannot be kept here.
    sink_failed: Option<StoreError>,
    tokens: f64,
}

/// A shard file that is being fetched.
struct Active {
    started: Instant,
    cancel: Cancel,
    bytes: Arc<AtomicU64>,
    /// Another one was begun because this one is late.
    is_late: bool,
}

enum Told {
    Located(Located),
    Came(Candidate, std::result::Result<Duration, StoreError>),
}

impl<'a> Fetch<'a> {
    /// Nothing yet, into a folder in `spool`.
    pub(super) fn new(
        places: &'a Places,
        encoding: &'a Encoding,
        spool: Option<&Path>,
        meter: &'a dyn Meter,
    ) -> Result<Fetch<'a>> {
        let room = Room::new(spool)?;
        fs::create_dir(room.shards()).map_err(|e| Error::io("create", Place::Temporary, e))?;
        Ok(Fetch {
            places,
            encoding,
            room,
            meter,
            candidates: BTreeSet::new(),
            tries: BTreeMap::new(),
            came: BTreeMap::new(),
            liars: BTreeSet::new(),
            damaged: 0,
            is_located: false,
            failures: BTreeMap::new(),
            sink_failed: None,
            tokens: TOKENS,
        })
    }

    /// Where a shard file is, or would be.
    pub(super) fn path(&self, index: u32) -> PathBuf {
        self.room.shards().join(format!("{index:03}.shard"))
    }

    /// The folder of shard files that have come.
    pub(super) fn folder(&self) -> PathBuf {
        self.room.shards()
    }

    /// The places that shard files have come from.
    pub(super) fn sources(&self) -> impl Iterator<Item = usize> {
        self.came.values().copied()
    }

    /// How many have come.
    pub(super) fn count(&self) -> usize {
        self.came.len()
    }

    /// What went wrong, place by place.
    pub(super) fn causes(&self) -> Vec<String> {
        let name = |place: usize| self.places.get(place).target.name();
        let failures = self.failures.iter().map(|(place, why)| format!("{}: {why}", name(*place)));
        let liars = self.liars.iter().map(|place| format!("{}: it gives damaged shards", name(*place)));
        failures.chain(liars).collect()
    }

    /// Whether there may be more than is known, at places that did not answer.
    pub(super) fn is_cut_off(&self) -> bool {
        self.failures.values().any(StoreError::leaves_open)
    }

    /// Notes that a shard is damaged. The file stays: what is intact in it may be of use. It does not count any more.
    pub(super) fn is_damaged(&mut self, index: u32) {
        if let Some(place) = self.came.remove(&index) {
            self.damaged += 1;
            self.liars.insert(place);
        }
    }

    /// Notes that all that came is damaged.
    pub(super) fn are_damaged(&mut self) {
        self.damaged += self.came.len();
        self.liars.extend(std::mem::take(&mut self.came).into_values());
    }

    /// Whether something came that is damaged, and may be of use.
    pub(super) fn has_damaged(&self) -> bool {
        self.damaged > 0
    }

    /// Fetches until so many are there; tells whether they are.
    pub(super) fn until(&mut self, wanted: usize) -> std::result::Result<bool, StoreError> {
        if self.came.len() >= wanted {
            return Ok(true);
        }
        let all = self.places.cancel.child();
        let (telling, told): (Sender<Told>, Receiver<Told>) = channel();
        let done = std::thread::scope(|scope| {
            if !self.is_located {
                for place in 0..self.places.len() {
                    let (telling, places, all) = (telling.clone(), self.places, &all);
                    let (root, n) = (self.encoding.root, self.encoding.geometry.shape().code.n() as u32);
                    spawn_or_do(scope, move || {
                        let _ = telling.send(Told::Located(locate(places, place, &root, n, all)));
                    });
                }
            }
            let start = |fetch: &Fetch<'a>, candidate: Candidate| {
                let (telling, cancel) = (telling.clone(), all.child());
                let bytes: Arc<AtomicU64> = Arc::default();
                let active = Active {
                    started: Instant::now(),
                    cancel: cancel.clone(),
                    bytes: bytes.clone(),
                    is_late: false,
                };
                let path = fetch.path(candidate.index);
                let tries = fetch.tries.get(&(candidate.index, candidate.place)).copied().unwrap_or(0);
                let Fetch { places, encoding, meter, .. } = *fetch;
                let source = Source { places, encoding, path, meter };
                spawn_or_do(scope, move || {
                    let came = fetch_one(&source, candidate, tries, (&cancel, &bytes));
                    let _ = telling.send(Told::Came(candidate, came));
                });
                active
            };
            let mut active = BTreeMap::new();
            let done = self.run(wanted, &told, start, &mut active);
            all.cancel();
            // Those that were not waited for may be needed later.
            self.candidates.extend(active.into_keys());
            done
        });
        if done {
            Ok(true)
        } else if self.places.cancel.is_cancelled() {
            Err(StoreError::Cancelled)
        } else {
            // Another place would not help.
            self.sink_failed.take().map_or(Ok(false), Err)
        }
    }

    fn run(
        &mut self,
        wanted: usize,
        told: &Receiver<Told>,
        start: impl Fn(&Fetch<'a>, Candidate) -> Active,
        active: &mut BTreeMap<Candidate, Active>,
    ) -> bool {
        let begun = Instant::now();
        let mut asking = if self.is_located { 0 } else { self.places.len() };
        let mut first_answer: Option<Duration> = None;
        let mut times: Vec<Duration> = Vec::new();
        let mut extra = 0;
        loop {
            if self.came.len() >= wanted {
                self.is_located |= asking == 0;
                return true;
            }
            if self.places.cancel.is_cancelled() || self.sink_failed.is_some() {
                return false;
            }
            // One more than is needed, and one for each that is late.
            let lacking = wanted - self.came.len();
            // At first some wait for what others have: the fastest to list need not be the fastest to give.
            let is_soon =
                asking > 0 && first_answer.is_none_or(|first| begun.elapsed() < patience(first) / 4);
            while active.len() < (lacking + 1).min(TOGETHER) + extra
                && (!is_soon || self.candidates.len() > 2 * lacking)
                && let Some(candidate) = self.best(active)
            {
                self.candidates.remove(&candidate);
                active.insert(candidate, start(self, candidate));
            }
            if active.is_empty() && asking == 0 {
                self.is_located = true;
                return false;
            }
            match told.recv_timeout(TICK) {
                Ok(Told::Located(Located { place, found, failed })) => {
                    asking -= 1;
                    first_answer.get_or_insert_with(|| begun.elapsed());
                    self.candidates.extend(found);
                    if let Some(error) = failed {
                        self.note_failure(place, error);
                    }
                }
                Ok(Told::Came(candidate, came)) => {
                    if let Some(Active { is_late: true, .. }) = active.remove(&candidate) {
                        extra -= 1;
                    }
                    self.came(candidate, came, &mut times);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return false,
            }
            extra += self.late(active, &times) + self.hopeless(active, lacking);
        }
    }

    /// The candidate to fetch next: of a shard that nobody fetches yet, from the place that will probably be done first; and
    /// originals first, which are payload as they are.
    fn best(&self, active: &BTreeMap<Candidate, Active>) -> Option<Candidate> {
        let mut at_place: BTreeMap<usize, usize> = BTreeMap::new();
        active.keys().for_each(|candidate| *at_place.entry(candidate.place).or_default() += 1);
        let len = self.encoding.layout().file_len;
        let speeds: Vec<f64> = self.places.iter().filter_map(|place| place.speed()).collect();
        let usual = if speeds.is_empty() { 1.0 } else { speeds.iter().sum::<f64>() / speeds.len() as f64 };
        let known = self.speeds(active);
        let cost = |candidate: &Candidate| {
            let place = self.places.get(candidate.place);
            let speed = known.get(&candidate.place).copied().unwrap_or(usual);
            let waiting = at_place.get(&candidate.place).copied().unwrap_or(0) + 1;
            let tried = self.tries.get(&(candidate.index, candidate.place)).copied().unwrap_or(0);
            // Places that lie, or are down, and objects of another size come last.
            let doubts = u32::from(candidate.size != len)
                + u32::from(place.is_given_up())
                + 2 * u32::from(self.liars.contains(&candidate.place))
                + tried;
            (doubts, waiting as f64 * usual / speed.max(1.0))
        };
        let is_open = |candidate: &&Candidate| {
            !self.came.contains_key(&candidate.index)
                && active.keys().all(|other| other.index != candidate.index)
        };
        self.candidates
            .iter()
            .filter(is_open)
            .min_by(|a, b| {
                let ((doubts_a, cost_a), (doubts_b, cost_b)) = (cost(a), cost(b));
                doubts_a.cmp(&doubts_b).then(cost_a.total_cmp(&cost_b)).then(a.cmp(b))
            })
            .copied()
    }

    /// Bytes a second that each place gives just now, or gave at last, as far as that is known.
    fn speeds(&self, active: &BTreeMap<Candidate, Active>) -> BTreeMap<usize, f64> {
        let last = |place: usize| Some((place, self.places.get(place).speed()?));
        let mut speeds: BTreeMap<usize, f64> = (0..self.places.len()).filter_map(last).collect();
        let mut now: BTreeMap<usize, f64> = BTreeMap::new();
        for (candidate, active) in active {
            if let Some(speed) = active.speed() {
                let fastest = now.entry(candidate.place).or_insert(speed);
                *fastest = fastest.max(speed);
            }
        }
        speeds.extend(now);
        speeds
    }

    /// Looks which of those that are under way are much slower than places that have enough of the others; tells for how many
    /// another one may be begun. That is no storm: where all are slow alike, none of them is hopeless. Where nothing was asked of
    /// some places yet, they are taken to be as fast as the best of the others, and a few are tried when all others crawl.
    fn hopeless(&mut self, active: &mut BTreeMap<Candidate, Active>, lacking: usize) -> usize {
        let is_slow = |active: &Active| !active.is_late && active.speed().is_some();
        if !active.values().any(is_slow) {
            return 0;
        }
        let known = self.speeds(active);
        let best = known.values().copied().fold(0.0, f64::max);
        let speed = |place: usize| known.get(&place).copied().unwrap_or(best);
        let open = || {
            let all = self.candidates.iter().chain(active.keys());
            all.filter(|candidate| !self.came.contains_key(&candidate.index))
        };
        let mut by_speed: Vec<(f64, u32)> =
            open().map(|candidate| (speed(candidate.place), candidate.index)).collect();
        by_speed.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        let is_untried = open().any(|candidate| !known.contains_key(&candidate.place));
        let mut indices = BTreeSet::new();
        let enough = by_speed.iter().find(|(_, index)| indices.insert(*index) && indices.len() >= lacking);
        let reference = enough.map_or(0.0, |(speed, _)| *speed);
        let len = self.encoding.layout().file_len as f64;
        let mut more = 0;
        for active in active.values_mut().filter(|active| is_slow(active)) {
            let speed = active.speed().unwrap_or(0.0);
            let left = (len - active.bytes.load(Ordering::Relaxed) as f64) / speed;
            if speed * HOPELESS < reference && left > WARM.as_secs_f64() {
                // Enough others are there: it costs no token.
            } else if is_untried && left > CRAWL.as_secs_f64() && self.tokens >= 1.0 {
                self.tokens -= 1.0;
            } else {
                continue;
            }
            active.is_late = true;
            more += 1;
        }
        more
    }

    /// Notes how fetching a shard file ended.
    fn came(
        &mut self,
        candidate: Candidate,
        came: std::result::Result<Duration, StoreError>,
        times: &mut Vec<Duration>,
    ) {
        let place = self.places.get(candidate.place);
        match came {
            Ok(time) => {
                place.note(None);
                place.note_speed(self.encoding.layout().file_len, time);
                times.push(time);
                times.sort_unstable();
                self.tokens = (self.tokens + TOKEN_EACH).min(TOKENS);
                self.came.insert(candidate.index, candidate.place);
            }
            Err(StoreError::Cancelled) => drop(self.candidates.insert(candidate)),
            Err(error) => {
                place.note(Some(&error));
                let tries = self.tries.entry((candidate.index, candidate.place)).or_default();
                *tries += 1;
                if error.is_worth_retrying() && *tries <= self.places.options.retries {
                    self.candidates.insert(candidate);
                }
                self.note_failure(candidate.place, error);
            }
        }
    }

    /// Notes why a place does not give something, or why it cannot be kept here.
    fn note_failure(&mut self, place: usize, error: StoreError) {
        match error {
            StoreError::Sink(_) => self.sink_failed = Some(error),
            error => note(&mut self.failures, place, error),
        }
    }

    /// Looks which of those that are under way are later than 95 % of those that came; tells for how many another one may be
    /// begun.
    fn late(&mut self, active: &mut BTreeMap<Candidate, Active>, times: &[Duration]) -> usize {
        let Some(usual) = times.get((times.len() * 95 / 100).min(times.len().saturating_sub(1))) else {
            return 0;
        };
        if times.len() < 2 {
            return 0;
        }
        let mut more = 0;
        for (candidate, active) in active.iter_mut().filter(|(_, active)| !active.is_late) {
            if active.started.elapsed() < *usual + NOT_LATE.max(*usual / 4) {
                continue;
            }
            // Where nothing came from at all, it is not the network that is slow.
            let is_dead = active.bytes.load(Ordering::Relaxed) == 0
                && self.places.get(candidate.place).speed().is_none();
            if !is_dead && self.tokens < 1.0 {
                continue;
            }
            self.tokens -= if is_dead { 0.0 } else { 1.0 };
            active.is_late = true;
            more += 1;
        }
        more
    }
}

impl Active {
    /// Bytes a second; `None`: it is too early to tell.
    fn speed(&self) -> Option<f64> {
        let time = self.started.elapsed();
        (time >= WARM).then(|| self.bytes.load(Ordering::Relaxed) as f64 / time.as_secs_f64())
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// What a thread that fetches needs.
struct Source<'a> {
    places: &'a Places,
    encoding: &'a Encoding,
    path: PathBuf,
    meter: &'a dyn Meter,
}

/// Fetches a shard file that was tried so often; what came before an error that may pass is not fetched again.
fn fetch_one(
    fetch: &Source<'_>,
    candidate: Candidate,
    tries: u32,
    (cancel, bytes): (&Cancel, &AtomicU64),
) -> std::result::Result<Duration, StoreError> {
    let Source { places, encoding, path, meter } = fetch;
    let call = places.call(cancel);
    if tries > 0 && !call.pause_before(tries) {
        return Err(StoreError::Cancelled);
    }
    let started = Instant::now();
    let len = candidate.size.min(encoding.layout().file_len);
    let key = keys::shard(&encoding.root, candidate.index);
    // Two places may give the same shard one after the other: under its name it appears when it is whole.
    let partial = path.with_extension(format!("{}.part", candidate.place));
    let sink_failed = |e: std::io::Error| StoreError::Sink(e.to_string());
    let file = File::create(&partial).map_err(sink_failed)?;
    let (mut at, mut left) = (0, places.options.retries);
    let done = loop {
        let before = at;
        let done = places.get(candidate.place).store.get(
            &key,
            at..len,
            &mut |part| {
                file.write_all_at(part, at)?;
                at += part.len() as u64;
                bytes.store(at, Ordering::Relaxed);
                meter.add(part.len() as u64);
                Ok(())
            },
            &call,
        );
        match done {
            Err(error) if error.is_worth_retrying() && at > before && left > 0 => {
                if at == len {
                    break Ok(());
                }
                left -= 1;
            }
            done => break done,
        }
    };
    let renamed = done.and_then(|()| fs::rename(&partial, path).map_err(sink_failed));
    if renamed.is_err() {
        let _ = fs::remove_file(&partial);
    }
    renamed.map(|()| started.elapsed())
}

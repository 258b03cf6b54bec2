//! Fetches shard files of a segment from the fastest places into a temporary folder. At first one more shard comes than
//! is needed. Others replace those that are late or damaged.
//!
//! The first shard of each place is looked at when it has come, so that replacements of a liar's shards begin at once.
//! Later ones are looked at by who restores: checking each of them twice would cost a hash of all bytes.
//!
//! Each place is asked once for its list. An object is given up after a bounded number of failures, and after it came
//! damaged twice. Bytes that came before a transfer was left are kept until the object is given up or the fetch ends: a
//! shard that came from another place may be a lie. The bytes of a segment are therefore bounded: each object comes
//! once, a damaged object at most twice.

mod crew;
mod running;

pub(super) use running::{Key, Object, Running, Told};

use self::crew::{Crew, Sought};
use super::call::{Cancel, SILENCES};
use super::error::{StoreError, note};
use super::find::{Candidate, Located};
use super::lists::Lists;
use super::places::Places;
use super::room::Room;
use super::transfer::{Active, Came, Source};
use fec_base::context::Gauge;
use fec_base::error::Result;
use fec_base::names::show;
use fec_core::format::shard_file::Encoding;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Objects that come at the same time.
const TOGETHER: usize = 64;
/// Interval of the search for late transfers.
const TICK: Duration = Duration::from_millis(20);
/// An object that came damaged this often is given up.
const DAMAGED: u32 = 2;

/// The first transfers wait for other lists: twice as long as the first list took, or so long if that is more.
const OTHER_LISTS: Duration = Duration::from_millis(10);

/// Replacements of late shards are bounded: a spare shard for each this many needed ones,
const HEDGE_EACH: u64 = 4;
/// and at least this many.
const HEDGES: u64 = 2;

/// The shard files of a segment: those known, and those that came.
pub(super) struct Fetch<'a> {
    pub(super) places: &'a Places,
    pub(super) encoding: &'a Encoding,
    room: Room,
    meter: &'a Gauge<'a>,
    /// Stops it; the places go on.
    pub(super) cancel: Cancel,
    /// Whole lists of places, for an encoding of many segments.
    pub(super) lists: Option<&'a Lists>,
    /// Known objects.
    pub(super) objects: BTreeMap<Key, Object>,
    /// The places of shards that are in the folder, by index.
    pub(super) came: BTreeMap<u32, usize>,
    /// Shards that came, damaged ones included.
    arrivals: u64,
    /// Durations of their transfers, sorted.
    pub(super) times: Vec<Duration>,
    /// Places that gave damaged shards.
    pub(super) liars: BTreeSet<usize>,
    /// Places that gave nothing while others did.
    pub(super) mute: BTreeSet<usize>,
    /// Places with begun transfers that are late; nothing came from them since.
    pub(super) begun: BTreeSet<usize>,
    is_damaged: bool,
    /// Places whose list came or failed, and places that were asked for each shard by its key.
    located: BTreeSet<usize>,
    by_key: BTreeSet<usize>,
    failures: BTreeMap<usize, StoreError>,
    /// Why places do not tell whether they have more shards.
    unsure: BTreeMap<usize, StoreError>,
    /// Why bytes cannot be stored in the folder.
    sink_failed: Option<StoreError>,
    /// Bytes that may still be fetched twice because transfers are late.
    pub(super) spare: u64,
}

impl<'a> Fetch<'a> {
    /// Begins with an empty folder in `spool`.
    pub(super) fn new(
        places: &'a Places,
        encoding: &'a Encoding,
        spool: Option<&Path>,
        meter: &'a Gauge<'a>,
    ) -> Result<Fetch<'a>> {
        let room = Room::new(spool)?;
        room.make_for_shards()?;
        let hedges = (encoding.geometry.shape().code.k() as u64 / HEDGE_EACH).max(HEDGES);
        Ok(Fetch {
            places,
            encoding,
            room,
            meter,
            cancel: places.cancel.clone(),
            lists: None,
            objects: BTreeMap::new(),
            came: BTreeMap::new(),
            arrivals: 0,
            times: Vec::new(),
            liars: BTreeSet::new(),
            mute: BTreeSet::new(),
            begun: BTreeSet::new(),
            is_damaged: false,
            located: BTreeSet::new(),
            by_key: BTreeSet::new(),
            failures: BTreeMap::new(),
            unsure: BTreeMap::new(),
            sink_failed: None,
            spare: hedges * encoding.layout().file_len,
        })
    }

    /// Takes objects that a search has found. Their places are not asked for lists once more.
    pub(super) fn know(&mut self, found: impl Iterator<Item = Candidate>) {
        for Candidate { index, place, size } in found {
            self.objects.entry((index, place)).or_insert(Object { size, ..Object::default() });
            self.located.insert(place);
        }
    }

    /// The folder of shard files that have come.
    pub(super) fn folder(&self) -> PathBuf {
        self.room.shards()
    }

    /// The places that shard files have come from.
    pub(super) fn sources(&self) -> impl Iterator<Item = usize> {
        self.came.values().copied()
    }

    /// Shards in the folder, without those known to be damaged.
    pub(super) fn count(&self) -> usize {
        self.came.len()
    }

    /// Shards that came, damaged ones included.
    pub(super) fn arrivals(&self) -> u64 {
        self.arrivals
    }

    /// The cause at each place.
    pub(super) fn causes(&self) -> Vec<String> {
        self.told(&self.failures)
    }

    /// The causes when too little came: also why places do not tell whether they have more.
    pub(super) fn causes_of_few(&self) -> Vec<String> {
        let mut causes = self.unsure.clone();
        causes.extend(self.failures.iter().map(|(place, why)| (*place, why.clone())));
        self.told(&causes)
    }

    fn told(&self, causes: &BTreeMap<usize, StoreError>) -> Vec<String> {
        let name = |place: usize| show(self.places.get(place).target.name());
        let failures = causes.iter().map(|(place, why)| format!("{}: {why}", name(*place)));
        let liars = self.liars.iter().map(|place| format!("{}: it gives damaged shards", name(*place)));
        failures.chain(liars).collect()
    }

    /// Tells whether places that did not answer may have more shards.
    pub(super) fn is_cut_off(&self) -> bool {
        self.open_failures().next().is_some()
    }

    /// The failures of places that may have more shards.
    pub(super) fn open_failures(&self) -> impl Iterator<Item = (usize, &StoreError)> {
        let failures = self.failures.iter().filter(|(_, why)| why.leaves_open());
        self.unsure.iter().chain(failures).map(|(place, why)| (*place, why))
    }

    /// Notes that a shard is damaged: it does not count any more. The file stays, because its intact records may be of
    /// use.
    pub(super) fn is_damaged(&mut self, index: u32) {
        if let Some(place) = self.came.remove(&index) {
            self.is_damaged = true;
            self.liars.insert(place);
            self.places.get(place).note_lie();
            if let Some(object) = self.objects.get_mut(&(index, place)) {
                object.damaged += 1;
            }
        }
    }

    /// Notes that all shards that came are damaged.
    pub(super) fn are_damaged(&mut self) {
        let all: Vec<u32> = self.came.keys().copied().collect();
        all.into_iter().for_each(|index| self.is_damaged(index));
    }

    /// Tells whether a damaged shard came, whose intact records may be of use.
    pub(super) fn has_damaged(&self) -> bool {
        self.is_damaged
    }

    /// Fetches until `wanted` shards are there; tells whether they are. It also returns early, once new shards came,
    /// all others are late, and the shards may suffice together with intact records of damaged ones.
    pub(super) fn until(&mut self, wanted: usize) -> std::result::Result<bool, StoreError> {
        if self.came.len() >= wanted {
            return Ok(true);
        }
        let all = self.cancel.child();
        let (telling, told): (Sender<Told>, Receiver<Told>) = channel();
        let mut running = Running::default();
        std::thread::scope(|scope| {
            let crew = Crew { scope, telling, all: all.clone() };
            self.run(wanted, &told, &crew, &mut running);
            all.cancel();
        });
        // Bytes of abandoned transfers may be needed later.
        running.active.append(&mut running.leaving);
        told.try_iter().for_each(|told| self.take(told, &mut running));
        if self.cancel.is_cancelled() && self.came.len() < wanted {
            return Err(StoreError::Cancelled);
        }
        // The fault is in the local folder, so another place would not help.
        self.sink_failed.take().map_or(Ok(self.came.len() >= wanted), Err)
    }

    fn run<'scope>(
        &mut self,
        wanted: usize,
        told: &Receiver<Told>,
        crew: &Crew<'scope, '_>,
        running: &mut Running,
    ) where
        'a: 'scope,
    {
        let (begun, before) = (Instant::now(), self.arrivals);
        for place in (0..self.places.len()).filter(|place| !self.located.contains(place)) {
            running.asking += 1;
            crew.locate(self.sought(), place);
        }
        loop {
            let is_over = self.cancel.is_cancelled() || self.sink_failed.is_some();
            if self.came.len() >= wanted || is_over {
                return;
            }
            let lacking = wanted - self.came.len();
            // At first transfers wait for other lists: the fastest place to list need not be the fastest to give.
            let is_soon = running.asking > 0
                && running.first_answer.is_none_or(|first| begun.elapsed() < (first * 2).max(OTHER_LISTS));
            // A spare transfer, and another for each late one. A spare one of a liar would be followed by its next.
            let needed = |running: &Running| running.active.len() < lacking.min(TOGETHER) + running.extra;
            while running.active.len() < (lacking + 1).min(TOGETHER) + running.extra
                && (!is_soon || self.known() > 2 * lacking)
                && let Some(key) = self.best(running)
                && (needed(running) || !self.is_doubtful(key))
            {
                running.active.insert(key, self.begin(key, crew));
            }
            if running.is_idle() && !self.ask_by_key(crew, running) && !self.again(lacking, crew, running) {
                return;
            }
            match told.recv_timeout(TICK) {
                Ok(told) => {
                    if matches!(told, Told::Located(_)) {
                        running.first_answer.get_or_insert_with(|| begun.elapsed());
                    }
                    self.take(told, running);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.hedge(running, lacking);
            if self.arrivals > before && self.may_do(wanted) && self.are_late(running) {
                return;
            }
        }
    }

    /// Number of known objects at places that never lied.
    fn known(&self) -> usize {
        self.objects.keys().filter(|(_, place)| !self.places.get(*place).has_lied()).count()
    }

    /// Tells whether the shards here may suffice together with intact records of damaged ones.
    fn may_do(&self, wanted: usize) -> bool {
        let damaged =
            self.objects.iter().filter(|(_, object)| object.damaged > 0).map(|((index, _), _)| *index);
        self.is_damaged && self.came.keys().copied().chain(damaged).collect::<BTreeSet<_>>().len() >= wanted
    }

    /// Tells whether an object may be fetched now: its shard is neither here nor under way.
    pub(super) fn is_open(&self, key: Key, running: &Running) -> bool {
        !self.came.contains_key(&key.0)
            && !running.active.keys().any(|(index, _)| *index == key.0)
            && !running.leaving.contains_key(&key)
    }

    fn sought(&self) -> Sought<'a> {
        Sought { places: self.places, encoding: self.encoding, lists: self.lists }
    }

    /// Begins the transfer of an object.
    fn begin<'scope>(&self, (index, place): Key, crew: &Crew<'scope, '_>) -> Active
    where
        'a: 'scope,
    {
        let object = self.objects.get(&(index, place));
        let (size, bytes, tries) =
            object.map_or((0, 0, 0), |object| (object.size, object.bytes, object.failures));
        let source = Source {
            places: self.places,
            encoding: self.encoding,
            meter: self.meter,
            key: (index, place),
            size,
            len: self.encoding.layout().file_len,
            tries,
            partial: self.room.partial(index, place),
            path: self.room.shard_of(index),
        };
        crew.fetch(source, bytes)
    }

    /// Asks each place once for its unlisted shards by their keys; tells whether any place was asked.
    fn ask_by_key<'scope>(&mut self, crew: &Crew<'scope, '_>, running: &mut Running) -> bool
    where
        'a: 'scope,
    {
        let n = self.encoding.geometry.shape().code.n() as u32;
        for place in 0..self.places.len() {
            if !self.by_key.insert(place) {
                continue;
            }
            let unnamed: Vec<u32> = (0..n)
                .filter(|index| {
                    !self.objects.contains_key(&(*index, place)) && !self.came.contains_key(index)
                })
                .collect();
            running.asking += 1;
            crew.locate_by_key(self.sought(), place, unnamed);
        }
        running.asking > 0
    }

    /// As a last resort fetches damaged shards once more, because the way here may have damaged them. Tells whether
    /// there are any.
    fn again<'scope>(&mut self, lacking: usize, crew: &Crew<'scope, '_>, running: &mut Running) -> bool
    where
        'a: 'scope,
    {
        while running.active.len() < lacking {
            let is_next = |(key, object): &(&Key, &Object)| {
                !object.is_out && (1..DAMAGED).contains(&object.damaged) && self.is_open(**key, running)
            };
            let Some(key) = self.objects.iter().find(is_next).map(|(key, _)| *key) else { break };
            running.active.insert(key, self.begin(key, crew));
        }
        !running.active.is_empty()
    }

    /// Notes a thread's message.
    fn take(&mut self, told: Told, running: &mut Running) {
        match told {
            Told::Located(Located { place, by_list, found, failed, unsure }) => {
                running.asking = running.asking.saturating_sub(1);
                if !by_list && !found.is_empty() && self.failures.get(&place) == Some(&StoreError::Absent) {
                    // Objects are there, although the list said that the place is not.
                    self.failures.remove(&place);
                }
                for Candidate { index, place, size } in found {
                    self.objects.entry((index, place)).or_insert(Object { size, ..Object::default() });
                }
                if failed != Some(StoreError::Cancelled) {
                    self.located.insert(place);
                    if !by_list {
                        self.by_key.insert(place);
                    }
                } else {
                    self.by_key.remove(&place);
                }
                failed.into_iter().for_each(|error| self.note_failure(place, error));
                unsure.into_iter().for_each(|error| drop(self.unsure.insert(place, error)));
            }
            Told::Came(key, came) => {
                let active = running.active.remove(&key);
                // No late transfer gets more than one lie in its place.
                if came.is_damaged || active.as_ref().is_some_and(|active| active.is_late) {
                    running.extra = running.extra.saturating_sub(1);
                }
                running.leaving.remove(&key);
                self.note_came(key, came);
            }
        }
    }

    /// Notes how a transfer ended. Bytes that nobody needs any more go.
    fn note_came(&mut self, (index, at): Key, came: Came) {
        let place = self.places.get(at);
        let object = self.objects.entry((index, at)).or_default();
        object.bytes = came.bytes;
        match came.done {
            Ok(()) => {
                object.bytes = 0;
                place.note(None);
                // The rest of an abandoned transfer says little about the place's speed.
                if came.moved * 2 >= self.encoding.layout().file_len {
                    place.note_speed(came.moved, came.time);
                    self.times.push(came.time);
                    self.times.sort_unstable();
                }
                self.mute.remove(&at);
                self.begun.remove(&at);
                self.arrivals += 1;
                self.came.insert(index, at);
                if came.is_damaged {
                    self.is_damaged(index);
                }
                return;
            }
            Err(StoreError::Cancelled) => {}
            Err(error) => {
                place.note(Some(&error));
                object.failures += 1;
                object.silences += u32::from(matches!(error, StoreError::Silent(_)));
                object.is_out = !error.is_worth_retrying()
                    || object.failures > self.places.options.retries
                    || object.silences >= SILENCES;
                self.note_failure(at, error);
            }
        }
        if self.objects[&(index, at)].is_out {
            self.forget_part((index, at));
        }
    }

    /// Removes the bytes of an object that is not whole and not under way.
    fn forget_part(&mut self, (index, place): Key) {
        if let Some(object) = self.objects.get_mut(&(index, place)).filter(|object| object.bytes > 0) {
            object.bytes = 0;
            // Bytes that cannot be removed go with the folder, and the next transfer begins without them.
            let _ = fs::remove_file(self.room.partial(index, place));
        }
    }

    /// Notes why a place does not give an object, or why the folder cannot take it.
    fn note_failure(&mut self, place: usize, error: StoreError) {
        match error {
            StoreError::Sink(_) => self.sink_failed = Some(error),
            error => note(&mut self.failures, place, error),
        }
    }

    /// Rates the doubts about an object; the least comes first. Places that lied, are late or down, and objects of
    /// another size, come last.
    pub(super) fn doubts(&self, (_, place): Key, object: &Object) -> u32 {
        let at = self.places.get(place);
        u32::from(!self.encoding.has_len(object.size))
            + u32::from(at.has_lied())
            + u32::from(self.begun.contains(&place))
            + 2 * u32::from(at.is_given_up())
            + 2 * u32::from(self.liars.contains(&place))
            + 2 * u32::from(self.mute.contains(&place))
            + object.failures
    }

    /// Objects that may be fetched now and were not tried in vain.
    pub(super) fn open<'b>(&'b self, running: &'b Running) -> impl Iterator<Item = (Key, &'b Object)> {
        let is_open = |(key, object): &(&Key, &Object)| {
            object.damaged == 0 && !object.is_out && self.is_open(**key, running)
        };
        self.objects.iter().filter(is_open).map(|(key, object)| (*key, object))
    }
}

#[cfg(test)]
pub(crate) mod tests;

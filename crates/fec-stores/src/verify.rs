//! Verifies a payload in stores, by a few bytes of each object or by all.

use super::arrived::is_own_intact;
use super::error::{StoreError, StoresError, note};
use super::fetch::Fetch;
use super::find::{self, Candidate, Search, Told};
use super::keys;
use super::lists::Lists;
use super::placement::{Placement, Survival};
use super::places::Places;
use super::put::{Expected, is_ours};
use super::room::Room;
use super::stored::{Stored, failure};
use super::transfer::{Active, Source, transfer};
use fec_base::context::{Context, Gauge};
use fec_base::error::{Action, Class, Error, Place, Result};
use fec_base::names::show;
use fec_base::threads::Threads;
use fec_core::executor::{Executor, into_value, lock};
use fec_core::format::shard_file::{Encoding, ShardHeader};
use fecfile::error::EncodingError;
use fecfile::{Archive, Input};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

/// Objects checked at the same time.
const TOGETHER: usize = 16;

/// The state of a payload in stores.
#[must_use = "damage and losses are no errors"]
#[derive(Debug)]
pub struct StoredVerified {
    /// Segments, in order.
    pub segments: Vec<SegmentState>,
    /// Places that have the manifest.
    pub manifests: Vec<usize>,
    /// Writable places that lack the manifest.
    pub lack_manifest: Vec<usize>,
    /// The root is a segment's, and there is no manifest.
    pub is_bare: bool,
    /// True if every byte was read; otherwise only sizes and first bytes were.
    pub deep: bool,
    /// Bytes fetched.
    pub fetched_bytes: u64,
    /// No copy of the meta was found; `trouble` says so too. Without a manifest the segment is found all the same.
    pub is_meta_lost: bool,
    /// Places that did not tell their objects, with causes.
    pub trouble: Vec<String>,
    /// Some of these places refuse access, and may have intact objects.
    pub is_denied: bool,
}

/// The state of a segment.
#[derive(Clone, Debug)]
pub struct SegmentState {
    /// Shards intact as far as was checked, each with the places that have it.
    pub intact: BTreeMap<u32, Vec<usize>>,
    /// Damaged objects: shard and place.
    pub damaged: Vec<(u32, usize)>,
    /// Shards without an intact copy.
    pub missing: Vec<u32>,
    /// Intact shards beyond those needed. If too few are intact: 0 if it can be restored with the intact records of
    /// damaged ones, else negative.
    pub margin: i64,
    /// Number of shards that each domain holds.
    pub held: BTreeMap<String, usize>,
    /// Failures that lose nothing.
    pub survival: Survival,
}

impl SegmentState {
    /// The objects that a remake may take, of `len` bytes if they are intact. A damaged one counts where no copy is
    /// intact.
    pub(super) fn copies(&self, len: u64) -> impl Iterator<Item = Candidate> {
        let intact = self.intact.iter().flat_map(move |(index, places)| {
            places.iter().map(move |place| Candidate { index: *index, place: *place, size: len })
        });
        let damaged = self.damaged.iter().filter(|(index, _)| !self.intact.contains_key(index));
        intact.chain(damaged.map(|(index, place)| Candidate { index: *index, place: *place, size: 0 }))
    }
}

impl StoredVerified {
    /// Class of the state; `None`: all objects are there and intact.
    pub fn class(&self) -> Option<Class> {
        let is_cut_off = self.is_cut_off();
        if self.segments.iter().any(|segment| segment.margin < 0) {
            return Some(if is_cut_off { Class::Io } else { Class::Lost });
        }
        let is_whole = |segment: &SegmentState| segment.missing.is_empty() && segment.damaged.is_empty();
        let is_intact =
            !self.is_meta_lost && self.lack_manifest.is_empty() && self.segments.iter().all(is_whole);
        if self.is_denied && !is_intact {
            return Some(Class::Io);
        }
        (is_cut_off || !is_intact).then_some(Class::Mendable)
    }

    /// Tells whether a place did not tell its objects.
    pub(super) fn is_cut_off(&self) -> bool {
        self.trouble.len() > usize::from(self.is_meta_lost)
    }

    /// The smallest margin of any segment.
    pub fn margin(&self) -> i64 {
        self.segments.iter().map(|segment| segment.margin).min().unwrap_or(0)
    }
}

impl<'a> Stored<'a> {
    /// Finds a payload, and asks all places whether they have its manifest.
    ///
    /// # Errors
    /// As [`find`](Stored::find).
    pub fn find_everywhere(
        places: &'a Places,
        root: fec_core::digest::Digest,
        spool: Option<std::path::PathBuf>,
    ) -> Result<Stored<'a>> {
        Stored::found(places, root, spool, true)
    }

    /// Checks the objects of all segments: sizes and first bytes, or with `deep` every byte.
    ///
    /// # Errors
    /// Those of the temporary folder. Places that do not answer are in the result.
    pub fn verify(&self, deep: bool, context: &Context<'_>) -> Result<StoredVerified> {
        self.look(deep, true, context)
    }

    /// Checks the objects of all segments. With `does_suffice`, damaged objects are fetched of segments with too few
    /// intact ones, to tell whether their intact records suffice.
    pub(super) fn look(
        &self,
        deep: bool,
        does_suffice: bool,
        context: &Context<'_>,
    ) -> Result<StoredVerified> {
        let meter = context.meter(Action::Verify, Some(self.manifest.payload_len()));
        let mut trouble = BTreeMap::new();
        let mut segments = Vec::new();
        let lists = Lists::of_segments(self.places, &self.manifest.segments);
        for encoding in &self.manifest.segments {
            let (located, told) = self.located(segments.len(), lists.as_ref());
            told.failed.into_iter().for_each(|(place, why)| note(&mut trouble, place, why));
            let checked = match deep {
                false => self.heads(encoding, located, &mut trouble),
                true => self.bodies(encoding, located, &mut trouble, context)?,
            };
            if self.places.cancel.is_cancelled() {
                return Err(failure(&StoreError::Cancelled));
            }
            let mut state = self.state(checked);
            if does_suffice
                && state.margin < 0
                && self.does_with_damaged(segments.len(), &state, &mut trouble, context)?
            {
                state.margin = 0;
                state.survival.domains = 0;
            }
            if !state.missing.is_empty() {
                told.unsure.into_iter().for_each(|(place, why)| note(&mut trouble, place, why));
            }
            segments.push(state);
            meter.add(encoding.geometry.payload_len());
        }
        meter.finish();
        let name = |place: usize| show(self.places.get(place).target.name());
        Ok(StoredVerified {
            segments,
            manifests: self.has_manifest.clone(),
            lack_manifest: self.lack_manifest(),
            is_bare: self.is_bare,
            deep,
            fetched_bytes: self.places.moved(),
            is_denied: trouble.values().any(|why| matches!(why, StoreError::Denied(_))),
            is_meta_lost: self.is_meta_lost,
            trouble: self
                .lost_meta()
                .chain(trouble.into_iter().map(|(place, why)| format!("{}: {why}", name(place))))
                .collect(),
        })
    }

    /// Asks all places for the shards of a segment.
    pub(super) fn located(&self, segment: usize, lists: Option<&Lists>) -> (Vec<Candidate>, Told) {
        let mut located = Vec::new();
        let search = Search {
            root: &self.manifest.segments[segment].root,
            n: self.manifest.code.n() as u32,
            enough: self.manifest.code.k(),
            home: &self.home(segment),
            is_hasty: false,
            lists,
        };
        let told = find::locate_all(self.places, &search, |found| located.push(found));
        (located, told)
    }

    /// Writable places that lack the manifest. Places that are given up are not listed, because they are in `trouble`.
    pub(super) fn lack_manifest(&self) -> Vec<usize> {
        let lacks = |place: &usize| {
            let has_failed = self.places.get(*place).is_given_up();
            !self.is_bare
                && !self.has_manifest.contains(place)
                && !self.places.get(*place).target.is_read_only()
                && !has_failed
        };
        (0..self.places.len()).filter(lacks).collect()
    }

    /// Sums up the checked objects of a segment.
    fn state(&self, checked: Vec<(Candidate, bool)>) -> SegmentState {
        let mut intact: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        let mut damaged = Vec::new();
        // Domains without shards count too.
        let mut held: BTreeMap<String, usize> =
            self.domains.iter().map(|domain| (domain.clone(), 0)).collect();
        for (Candidate { index, place, .. }, is_intact) in checked {
            if is_intact {
                intact.entry(index).or_default().push(place);
            } else {
                damaged.push((index, place));
            }
        }
        for places in intact.values() {
            // A second copy is no further shard, so only the first place counts.
            if let Some(place) = places.first() {
                *held.entry(self.domains[*place].clone()).or_default() += 1;
            }
        }
        let code = self.manifest.code;
        // A copy of the manifest has to survive too, or nobody finds the segments.
        let with_manifest: BTreeSet<&String> =
            self.has_manifest.iter().map(|place| &self.domains[*place]).collect();
        let most = if self.is_bare { held.len() } else { with_manifest.len().saturating_sub(1) };
        let survival = Placement::survival_of(held.values().copied().collect(), code.k(), most);
        SegmentState {
            missing: (0..code.n() as u32).filter(|index| !intact.contains_key(index)).collect(),
            margin: intact.len() as i64 - code.k() as i64,
            damaged,
            intact,
            held,
            survival,
        }
    }

    /// Tells whether a segment can be restored with the intact records of damaged objects too, which are fetched. If it
    /// cannot, `trouble` takes the failures of places that may have more of it.
    fn does_with_damaged(
        &self,
        segment: usize,
        state: &SegmentState,
        trouble: &mut BTreeMap<usize, StoreError>,
        context: &Context<'_>,
    ) -> Result<bool> {
        let (encoding, k) = (&self.manifest.segments[segment], self.manifest.code.k());
        let copies: Vec<Candidate> = state.copies(encoding.layout().file_len).collect();
        let there = copies.iter().map(|copy| copy.index).collect::<BTreeSet<_>>().len();
        if there < k {
            return Ok(false);
        }
        let silent = context.silent();
        let meter = silent.meter(Action::Fetch, None);
        let mut fetch = Fetch::new(self.places, encoding, self.spool.as_deref(), &meter)?;
        fetch.know(copies.into_iter());
        let mut suffice = |archive: &Archive| Ok(archive.examine(&silent)?.weakest as usize >= k);
        match self.segment(segment, &mut fetch, &mut suffice, context) {
            Err(error) if matches!(error.cause(), Some(StoresError::FewLeft { .. })) => {
                fetch.open_failures().for_each(|(place, why)| note(trouble, place, why.clone()));
                Ok(false)
            }
            done => done.map(|()| true),
        }
    }

    /// Checks the sizes and first bytes of objects. `trouble` takes the failures.
    fn heads(
        &self,
        encoding: &Encoding,
        located: Vec<Candidate>,
        trouble: &mut BTreeMap<usize, StoreError>,
    ) -> Vec<(Candidate, bool)> {
        let checked = Mutex::new(Vec::new());
        let troubled = Mutex::new(trouble);
        Threads(TOGETHER).run(located.len(), &|nth| {
            let candidate = located[nth];
            let key = keys::shard(&encoding.root, candidate.index);
            let header = ShardHeader { index: candidate.index, encoding: *encoding }.to_bytes();
            let (expected, listed) = (Expected::shard(&key, encoding, &header), Some(candidate.size));
            match is_ours(self.places, candidate.place, expected, listed, &self.places.cancel) {
                Ok(is_ours) => lock(&checked).push((candidate, is_ours)),
                Err(StoreError::NotFound) => {}
                Err(error) => note(&mut lock(&troubled), candidate.place, error),
            }
        });
        let mut checked = into_value(checked);
        checked.sort_unstable();
        checked
    }

    /// Fetches all objects of each place and checks every byte.
    pub(super) fn bodies(
        &self,
        encoding: &Encoding,
        located: Vec<Candidate>,
        trouble: &mut BTreeMap<usize, StoreError>,
        context: &Context<'_>,
    ) -> Result<Vec<(Candidate, bool)>> {
        let mut checked = Vec::new();
        let silent = context.silent();
        let meter = silent.meter(Action::Fetch, None);
        for place in 0..self.places.len() {
            let room = Room::new(self.spool.as_deref())?;
            room.make_for_shards()?;
            let own: Vec<Candidate> = located.iter().filter(|of| of.place == place).copied().collect();
            let came: Mutex<Vec<(Candidate, Fetched)>> = Mutex::default();
            Threads(TOGETHER).run(own.len(), &|nth| {
                let fetched = self.body(encoding, own[nth], &room, &meter);
                lock(&came).push((own[nth], fetched));
            });
            let mut there = Vec::new();
            for (candidate, fetched) in into_value(came) {
                match fetched {
                    Ok(true) => there.push(candidate),
                    Ok(false) => checked.push((candidate, false)),
                    Err(StoreError::NotFound) => {}
                    Err(StoreError::Sink(why)) => {
                        return Err(Error::io(Action::Write, Place::Temporary, std::io::Error::other(why)));
                    }
                    Err(error) => note(trouble, place, error),
                }
            }
            if there.is_empty() {
                continue;
            }
            let input = Input::of_paths(&[room.shards()])?;
            let states = match Archive::open(&input, Some(encoding.root), &silent) {
                Ok(archive) => archive.examine(&silent)?.shards,
                Err(error) if matches!(error.cause(), Some(EncodingError::NothingFound(_))) => Vec::new(),
                Err(error) => return Err(error),
            };
            checked.extend(
                there.into_iter().map(|candidate| (candidate, is_own_intact(&states, candidate.index))),
            );
        }
        checked.sort_unstable();
        Ok(checked)
    }

    /// Fetches an object into a room. It is not fetched if it has the wrong length.
    fn body(&self, encoding: &Encoding, candidate: Candidate, room: &Room, meter: &Gauge<'_>) -> Fetched {
        let Candidate { index, place, mut size } = candidate;
        let key = keys::shard(&encoding.root, index);
        let cancel = &self.places.cancel;
        // A list may be out of date.
        if !encoding.has_len(size) {
            size = self.places.retry(place, cancel, |store, call| store.head(&key, call))?.size;
        }
        if !encoding.has_len(size) {
            return Ok(false);
        }
        let source = Source {
            places: self.places,
            encoding,
            meter,
            key: (index, place),
            size,
            len: size,
            tries: 0,
            partial: room.partial(index, place),
            path: room.shard_of(index),
        };
        // Bytes that came before an error are not fetched again.
        let mut bytes = 0;
        self.places.retry(place, cancel, |_, _| {
            let came = transfer(&source, &Active::new(cancel.child(), bytes));
            bytes = came.bytes;
            came.done.map(|()| true)
        })
    }
}

/// Tells whether an object was fetched; false if it has the wrong length.
type Fetched = std::result::Result<bool, StoreError>;

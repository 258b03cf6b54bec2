//! Removes an encoding from all places.
//!
//! Segments have keys by their content, so payloads that share some share objects. Segments that the
//! manifest of another encoding in these places names stay, and while a place or a manifest cannot be read nothing is
//! removed. An encoding that is sent meanwhile is not seen: it may count on objects that go.
//!
//! Shards go first, and the manifests once no shard is left. A run that is killed leaves an encoding that lacks shards,
//! which the next run finds and removes.

use super::call::Cancel;
use super::error::{StoreError, StoresError};
use super::find::locate_by_key;
use super::inventory::{Held, Objects, each_manifest, objects};
use super::keys;
use super::object::Removed;
use super::places::Places;
use super::send::Missing;
use super::stored::{Stored, failure};
use fec_base::context::{Context, Gauge};
use fec_base::error::{Action, Class, Error, Result};
use fec_base::names::{hex, show};
use fec_base::threads::Threads;
use fec_core::digest::Digest;
use fec_core::executor::{Executor, into_value, lock};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

/// Objects that are removed at the same time.
const TOGETHER: usize = 16;

/// An object that is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Doomed {
    /// The root in its key.
    root: Digest,
    segment: u32,
    held: Held,
}

impl Doomed {
    fn key(&self) -> String {
        match self.held.shard {
            Some(index) => keys::shard(&self.root, index),
            None => keys::manifest(&self.root),
        }
    }

    /// The object, and why it stays.
    fn stays(&self, why: StoreError) -> Missing {
        Missing { shard: self.held.shard.map(|index| (self.segment, index)), place: self.held.place, why }
    }
}

/// The share of an encoding that a place has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Objects: shards, and the manifest.
    pub objects: u64,
    /// Their bytes, as lists tell them.
    pub bytes: u64,
}

/// A segment that stays, because another encoding has it too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shared {
    /// Root of the segment.
    pub segment: Digest,
    /// Root of an encoding that needs it.
    pub needed_by: Digest,
    /// Its objects in these places.
    pub objects: u64,
}

/// The removal of an encoding, decided and not begun.
pub struct Forget<'a> {
    places: &'a Places,
    root: Digest,
    /// Shards, then manifests.
    shards: Vec<Doomed>,
    manifests: Vec<Doomed>,
    shared: Vec<Shared>,
    /// Places that were not asked, or not for everything, with causes.
    unasked: Vec<(usize, StoreError)>,
}

/// The result of a removal.
#[must_use = "something may still be there"]
#[derive(Debug, Default)]
pub struct Forgotten {
    /// Objects that went.
    pub removed: Share,
    /// Objects that places keep as older versions, behind a mark, by place. They are among those that went.
    pub hidden: BTreeMap<usize, u64>,
    /// Objects that are still there. If shards are among them, so are the manifests, so that the next run finds both.
    pub stays: Vec<Missing>,
    /// Places that were not asked, or not for everything, with causes.
    pub unasked: Vec<(usize, StoreError)>,
}

impl Forgotten {
    /// Class of what is left; `None`: nothing is.
    pub fn class(&self) -> Option<Class> {
        let is_down =
            |missing: &Missing| missing.why.is_of_place() && !matches!(missing.why, StoreError::Denied(_));
        if !self.unasked.is_empty() || self.stays.iter().any(is_down) {
            return Some(Class::Io);
        }
        (!self.stays.is_empty() || !self.hidden.is_empty()).then_some(Class::Mendable)
    }
}

impl<'a> Forget<'a> {
    /// Finds what the encoding with this root has in `places`, and what of it no other encoding there needs. With
    /// `partial`, places that give no list are left out, and manifests that cannot be read need nothing.
    ///
    /// # Errors
    /// [`StoresError::Unasked`] and [`StoresError::UnreadOthers`] without `partial`; [`StoresError::OfOther`] for the
    /// root of a segment of another encoding; [`StoresError::ReadOnly`]; [`StoresError::NotFound`] if nothing is found
    /// and a place does not tell; [`ErrorKind::Cancelled`](fec_base::error::ErrorKind::Cancelled).
    pub fn plan(
        places: &'a Places,
        root: Digest,
        partial: bool,
        context: &Context<'_>,
    ) -> Result<Forget<'a>> {
        if let Some(place) = places.iter().find(|place| place.target.is_read_only()) {
            return Err(Error::at(Action::Forget, &place.target, StoresError::ReadOnly));
        }
        let mut all = objects(places)?;
        if !all.failed.is_empty() && !partial {
            return Err(Error::new(Action::Forget, StoresError::Unasked(causes(places, &all.failed))));
        }
        let unasked = std::mem::take(&mut all.failed);
        let own = all.of.remove(&root).unwrap_or_default();
        let stored = match Stored::found(places, root, None, true) {
            Ok(stored) => Some(stored),
            // A root under which nothing can be read may still have objects.
            Err(error)
                if !own.is_empty() && (partial || !matches!(error.class(), Class::Io | Class::Cancelled)) =>
            {
                None
            }
            Err(error) => match error.cause() {
                Some(StoresError::NotFound { causes, .. }) if causes.is_empty() => None,
                _ => return Err(error),
            },
        };
        let mut forget =
            Forget { places, root, shards: Vec::new(), manifests: Vec::new(), shared: Vec::new(), unasked };
        let segments: Vec<Digest> = match &stored {
            Some(stored) if !stored.is_bare => stored.manifest.segments.iter().map(|of| of.root).collect(),
            _ if own.is_empty() && stored.is_none() => return Ok(forget),
            _ => vec![root],
        };
        let needed = forget.needed(&all, &segments.iter().copied().collect(), partial, context)?;
        if let Some(other) = needed.get(&root) {
            return Err(Error::new(Action::Forget, StoresError::OfOther(*other)));
        }
        all.of.insert(root, own);
        forget.choose(&all, &segments, stored.as_ref(), &needed);
        Ok(forget)
    }

    /// Segments that other encodings need too, each with one of them.
    fn needed(
        &self,
        others: &Objects,
        segments: &BTreeSet<Digest>,
        partial: bool,
        context: &Context<'_>,
    ) -> Result<BTreeMap<Digest, Digest>> {
        let (needed, unread) = (Mutex::new(BTreeMap::new()), Mutex::new(Vec::new()));
        let meter = context.meter(Action::ReadManifest, None);
        each_manifest(self.places, others, &meter, |root, _, opened| match opened {
            Ok(manifest) => {
                let shared = manifest.segments.iter().filter(|segment| segments.contains(&segment.root));
                lock(&needed).extend(shared.map(|segment| (segment.root, root)));
            }
            // A newer fec may have made a manifest that breaks a rule of this one.
            Err(why) => lock(&unread).push(format!("{}: {why}", hex(&root))),
        })?;
        meter.finish();
        let mut unread = into_value(unread);
        if !unread.is_empty() && !partial {
            unread.sort();
            return Err(Error::new(Action::Forget, StoresError::UnreadOthers(unread)));
        }
        Ok(into_value(needed))
    }

    /// Chooses the objects that go. Those of the manifest that no list names are asked for at their homes.
    fn choose(
        &mut self,
        all: &Objects,
        segments: &[Digest],
        stored: Option<&Stored<'_>>,
        needed: &BTreeMap<Digest, Digest>,
    ) {
        let n = stored.map_or(u32::MAX, |stored| stored.manifest.code.n() as u32);
        let mut seen = BTreeSet::new();
        for (number, root) in (0..).zip(segments) {
            let listed: Vec<Held> = all.of.get(root).into_iter().flatten().copied().collect();
            let shards = listed.iter().filter(|held| held.shard.is_some_and(|index| index < n));
            if let Some(other) = needed.get(root) {
                if seen.insert(*root) {
                    let objects = shards.count() as u64;
                    self.shared.push(Shared { segment: *root, needed_by: *other, objects });
                }
                continue;
            }
            if seen.insert(*root) {
                let doomed = shards.map(|held| Doomed { root: *root, segment: number, held: *held });
                self.shards.extend(doomed);
            }
            let home = stored.map(|stored| stored.home(number as usize)).unwrap_or_default();
            let is_listed = |index: &u32, place: &usize| {
                listed.iter().any(|held| held.shard == Some(*index) && held.place == *place)
            };
            self.ask(number, root, home.into_iter().filter(|(index, place)| !is_listed(index, place)));
        }
        let listed = all.of.get(&self.root).into_iter().flatten().filter(|held| held.shard.is_none());
        let mut copies: BTreeMap<usize, u64> = listed.map(|held| (held.place, held.size)).collect();
        for place in stored.iter().flat_map(|stored| &stored.has_manifest) {
            let len = stored.map_or(0, |stored| stored.manifest.to_bytes().len() as u64);
            copies.entry(*place).or_insert(len);
        }
        // Shards may be left at a place that was not asked, and its manifest leads to them.
        copies.retain(|place, _| !self.unasked.iter().any(|(unasked, _)| unasked == place));
        let root = self.root;
        let copies = copies.into_iter().map(|(place, size)| Held { place, shard: None, size });
        self.manifests = copies.map(|held| Doomed { root, segment: 0, held }).collect();
    }

    /// Asks homes for shards of a segment that their lists leave out.
    fn ask(&mut self, segment: u32, root: &Digest, shards: impl Iterator<Item = (u32, usize)>) {
        let mut of: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        shards.for_each(|(index, place)| of.entry(place).or_default().push(index));
        for (place, indices) in of {
            if self.unasked.iter().any(|(other, _)| *other == place) {
                continue;
            }
            let located = locate_by_key(self.places, place, root, &indices, &self.places.cancel);
            for found in located.found {
                let held = Held { place, shard: Some(found.index), size: found.size };
                let doomed = Doomed { root: *root, segment, held };
                if !self.shards.contains(&doomed) {
                    self.shards.push(doomed);
                }
            }
            let why = located.failed.or(located.unsure).filter(|why| *why != StoreError::Cancelled);
            self.unasked.extend(why.map(|why| (place, why)));
        }
    }

    /// The root.
    pub fn root(&self) -> Digest {
        self.root
    }

    /// Tells whether nothing is there that would go.
    pub fn is_nothing(&self) -> bool {
        self.shards.is_empty() && self.manifests.is_empty()
    }

    /// The share of each place that would go.
    pub fn shares(&self) -> BTreeMap<usize, Share> {
        let mut shares: BTreeMap<usize, Share> = BTreeMap::new();
        for Doomed { held, .. } in self.shards.iter().chain(&self.manifests) {
            let share = shares.entry(held.place).or_default();
            share.objects += 1;
            share.bytes = share.bytes.saturating_add(held.size);
        }
        shares
    }

    /// Segments that stay, because other encodings have them too.
    pub fn shared(&self) -> &[Shared] {
        &self.shared
    }

    /// Places that were not asked, or not for everything, with causes.
    pub fn unasked(&self) -> &[(usize, StoreError)] {
        &self.unasked
    }

    /// Removes the shards, and then the manifests if no shard is left. Objects that are said to be gone are asked for
    /// once more.
    ///
    /// # Errors
    /// [`ErrorKind::Cancelled`](fec_base::error::ErrorKind::Cancelled). Objects that stay are in the result.
    pub fn run(&self, context: &Context<'_>) -> Result<Forgotten> {
        let meter = context.meter(Action::Forget, None);
        let mut done = Forgotten { unasked: self.unasked.clone(), ..Forgotten::default() };
        let roots: BTreeSet<Digest> =
            self.shards.iter().chain(&self.manifests).map(|doomed| doomed.root).collect();
        let used: BTreeSet<usize> = self.shares().into_keys().collect();
        for (place, root) in used.iter().flat_map(|place| roots.iter().map(move |root| (place, root))) {
            self.places.get(*place).remove_stale(root, context.progress);
        }
        let gone = self.remove(&self.shards, &meter, &mut done);
        let listed = if gone.is_empty() { Objects::default() } else { objects(self.places)? };
        let again: Vec<Doomed> = gone.iter().filter(|doomed| is_listed(&listed, doomed)).copied().collect();
        let still = self.still(&again);
        self.settle(&gone, still, &mut done);
        if done.stays.is_empty() {
            let gone = self.remove(&self.manifests, &meter, &mut done);
            let still = self.still(&gone);
            self.settle(&gone, still, &mut done);
        } else {
            let why = || StoreError::Failed("the manifest stays while shards do".into());
            done.stays.extend(self.manifests.iter().map(|doomed| doomed.stays(why())));
        }
        if self.places.cancel.is_cancelled() {
            return Err(failure(&StoreError::Cancelled));
        }
        meter.finish();
        for (place, root) in used.iter().flat_map(|place| roots.iter().map(move |root| (place, root))) {
            self.places.get(*place).remove_folder(root);
        }
        // The cause that is told of a place is that of its shards: for their sake the manifest stays.
        done.stays.sort_by_key(|missing| (missing.place, missing.shard.is_none(), missing.shard));
        Ok(done)
    }

    /// Removes objects; returns those that places say are gone.
    fn remove(&self, doomed: &[Doomed], meter: &Gauge<'_>, done: &mut Forgotten) -> Vec<Doomed> {
        let cancel: &Cancel = &self.places.cancel;
        let (gone, told) = (Mutex::new(Vec::new()), Mutex::new(done));
        Threads(TOGETHER).run(doomed.len(), &|nth| {
            let doomed = &doomed[nth];
            let (key, place) = (doomed.key(), doomed.held.place);
            // A locked object is denied, and the next one need not be.
            let removed = self.places.look(place, cancel, |store, call| store.remove(&key, call));
            meter.add(doomed.held.size);
            let mut told = lock(&told);
            match removed {
                Ok(how) => {
                    lock(&gone).push(*doomed);
                    if how == Removed::Hidden {
                        *told.hidden.entry(place).or_default() += 1;
                    }
                }
                Err(why) => told.stays.push(doomed.stays(why)),
            }
        });
        into_value(gone)
    }

    /// Objects that are there although their places say that they are gone, or of which nobody knows, with causes.
    fn still(&self, gone: &[Doomed]) -> Vec<(Doomed, StoreError)> {
        let still = Mutex::new(Vec::new());
        Threads(TOGETHER).run(gone.len(), &|nth| {
            let doomed = gone[nth];
            let (key, place) = (doomed.key(), doomed.held.place);
            let head = self.places.look(place, &self.places.cancel, |store, call| store.head(&key, call));
            match head {
                Err(StoreError::NotFound) => {}
                Ok(_) => {
                    let why = "it is still there, although the place says that it is gone";
                    lock(&still).push((doomed, StoreError::Failed(why.into())));
                }
                Err(why) => lock(&still).push((doomed, why)),
            }
        });
        into_value(still)
    }

    /// Counts what is gone, and what is still there.
    fn settle(&self, gone: &[Doomed], still: Vec<(Doomed, StoreError)>, done: &mut Forgotten) {
        for doomed in gone.iter().filter(|doomed| !still.iter().any(|(other, _)| other == *doomed)) {
            done.removed.objects += 1;
            done.removed.bytes = done.removed.bytes.saturating_add(doomed.held.size);
        }
        done.stays.extend(still.into_iter().map(|(doomed, why)| doomed.stays(why)));
    }
}

/// Tells whether a list has an object, or its place gave none.
fn is_listed(objects: &Objects, doomed: &Doomed) -> bool {
    let held = objects.of.get(&doomed.root).into_iter().flatten();
    let place = doomed.held.place;
    objects.failed.iter().any(|(failed, _)| *failed == place)
        || held.into_iter().any(|held| held.place == place && held.shard == doomed.held.shard)
}

/// A line for each place.
fn causes(places: &Places, failed: &[(usize, StoreError)]) -> Vec<String> {
    let name = |place: usize| show(places.get(place).target.name());
    failed.iter().map(|(place, why)| format!("{}: {why}", name(*place))).collect()
}

//! Remakes lost shards of a payload in stores, at the places where they may stand from now on.

use super::error::StoreError;
use super::fetch::Fetch;
use super::find::Candidate;
use super::keys;
use super::object::Put;
use super::placement::Placement;
use super::put::{Expected, put};
use super::send::Missing;
use super::stored::{Stored, failure};
use super::target::Target;
use super::verify::SegmentState;
use fec_base::context::{Context, Gauge};
use fec_base::error::{Action, Class, Error, ErrorKind, Place, Result};
use fec_base::io::output::{OWNER_ALONE, Policy};
use fec_base::io::temporary::remove_stale;
use fec_base::io::{ReadAt, list};
use fec_core::format::outline;
use fec_core::format::shard_file::{Encoding, HEADER_LEN, ShardHeader};
use fecfile::error::EncodingError;
use fecfile::{Archive, Repair};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Options of the repair of a payload in stores.
#[derive(Clone, Debug)]
pub struct StoredRepair {
    /// Numbers of the places where shards may stand from now on. Shards at other places count as lost.
    pub to: BTreeSet<usize>,
    /// Repairs every segment that lacks shards, not only those that lost at least half of what they may lose.
    pub now: bool,
    /// Reads every byte, not only sizes and first bytes.
    pub deep: bool,
    /// Puts and removes nothing, and only tells what it would do. The shards needed for a remake are fetched all the
    /// same.
    pub dry_run: bool,
}

/// The result of a repair.
#[must_use = "something may still be missing"]
#[derive(Debug, Default)]
pub struct StoredRepaired {
    /// Shards that were remade, or would be: segment, shard and place.
    pub made: Vec<(u32, u32, usize)>,
    /// Damaged copies of shards that are intact elsewhere, removed or to be removed.
    pub removed: Vec<(u32, u32, usize)>,
    /// Some damaged copies could not be removed; `trouble` says why.
    pub left_damaged: bool,
    /// Manifests that were put, by place.
    pub manifests: Vec<usize>,
    /// Segments with missing shards that still have enough, with their margins.
    pub postponed: Vec<(u32, i64)>,
    /// Objects that could not be put.
    pub missing: Vec<Missing>,
    /// Failures that did no harm.
    pub trouble: Vec<String>,
    /// Some places refuse access, and may have intact objects.
    pub is_denied: bool,
    /// Bytes sent and received.
    pub moved_bytes: u64,
}

impl StoredRepaired {
    /// The class of what is still missing; `None`: nothing, as far as was checked.
    pub fn class(&self, dry_run: bool) -> Option<Class> {
        let would =
            dry_run && !(self.made.is_empty() && self.removed.is_empty() && self.manifests.is_empty());
        let is_left = would || self.left_damaged || !self.postponed.is_empty() || !self.missing.is_empty();
        let is_denied = self.is_denied && (is_left || !self.made.is_empty());
        if is_denied { Some(Class::Io) } else { is_left.then_some(Class::Mendable) }
    }
}

impl Stored<'_> {
    /// Remakes shards that are missing at the places where they may stand, and puts them so that domains are balanced.
    /// Damaged shards there are replaced.
    ///
    /// # Errors
    /// [`StoresError::FewLeft`](super::error::StoresError::FewLeft) for a segment that cannot be restored,
    /// [`EncodingError::MetaLost`] when every copy of its meta is lost, and those of temporary files. Objects that
    /// could not be put are in the result.
    pub fn repair(&self, how: &StoredRepair, context: &Context<'_>) -> Result<StoredRepaired> {
        self.places.set_permissions(self.permissions());
        // The remake tells from the same bytes whether damaged objects suffice.
        let found = self.look(how.deep, false, context)?;
        if found.is_meta_lost && !found.is_cut_off() {
            return Err(Error::new(Action::Repair, EncodingError::MetaLost));
        }
        let (trouble, is_denied) = (found.trouble.clone(), found.is_denied);
        let mut repaired = StoredRepaired { trouble, is_denied, ..StoredRepaired::default() };
        if !how.dry_run {
            self.folders().for_each(|folder| remove_stale(&folder, context.progress));
        }
        let meter = context.meter(Action::Repair, Some(self.manifest.payload_len()));
        for (segment, state) in (0..).zip(&found.segments) {
            let proved = self.proved(segment, state, how, context)?;
            self.mend(segment, proved.as_ref().unwrap_or(state), how, &mut repaired, &meter, context)?;
        }
        self.warn(how, &mut repaired);
        let lacking = how.to.iter().copied().filter(|place| !self.has_manifest.contains(place));
        if !self.is_bare {
            let bytes = self.manifest.to_bytes();
            let key = keys::manifest(&self.root);
            for place in lacking {
                let expected = Expected::manifest(&key, &bytes);
                let done = how.dry_run || {
                    let done = put(self.places, place, &&bytes[..], expected, &self.places.cancel);
                    done.map_err(|why| repaired.missing.push(Missing { shard: None, place, why })).is_ok()
                };
                if done {
                    repaired.manifests.push(place);
                }
            }
        }
        meter.finish();
        if self.places.cancel.is_cancelled() {
            return Err(failure(&StoreError::Cancelled));
        }
        repaired.moved_bytes = self.places.moved();
        Ok(repaired)
    }

    /// Permissions of new objects: those that all objects of the payload in folders have. Without any such object they
    /// are the owner's alone, because nobody here knows who may read the payload.
    pub(super) fn permissions(&self) -> u32 {
        let files = self.folders().flat_map(|folder| {
            let names = list(&folder).unwrap_or_default();
            names.into_iter().filter_map(move |name| std::fs::symlink_metadata(folder.join(name)).ok())
        });
        let modes = files.filter(|meta| meta.is_file()).map(|meta| fec_base::io::system::mode(&meta));
        modes.reduce(|all, mode| all & mode).map_or(OWNER_ALONE, |mode| {
            let policy = Policy::new().with_sync(false);
            policy.made_of(mode).permissions & (mode | OWNER_ALONE)
        })
    }

    /// The state of a segment after every byte was read of those shards that also have damaged copies: before the
    /// damaged copies go, an intact one must be certain. `None`: there are no such shards, or every byte was read
    /// before.
    fn proved(
        &self,
        segment: u32,
        state: &SegmentState,
        how: &StoredRepair,
        context: &Context<'_>,
    ) -> Result<Option<SegmentState>> {
        let doubtful: BTreeSet<u32> = state
            .damaged
            .iter()
            .map(|(index, _)| *index)
            .filter(|index| state.intact.contains_key(index))
            .collect();
        if how.deep || doubtful.is_empty() {
            return Ok(None);
        }
        let encoding = &self.manifest.segments[segment as usize];
        // No list has told the sizes.
        let size = 0;
        let copies =
            doubtful.iter().flat_map(|index| state.intact[index].iter().map(|place| (*index, *place)));
        let copies = copies.map(|(index, place)| Candidate { index, place, size }).collect();
        let mut trouble = BTreeMap::new();
        let checked = self.bodies(encoding, copies, &mut trouble, context)?;
        let mut state = state.clone();
        for index in doubtful {
            let places = checked.iter().filter(|(copy, _)| copy.index == index);
            let (intact, damaged): (Vec<_>, Vec<_>) = places.partition(|(_, is_intact)| *is_intact);
            state.damaged.extend(damaged.iter().map(|(copy, _)| (index, copy.place)));
            match intact.is_empty() {
                true => drop(state.intact.remove(&index)),
                false => {
                    drop(state.intact.insert(index, intact.iter().map(|(copy, _)| copy.place).collect()))
                }
            }
        }
        Ok(Some(state))
    }

    /// Warns if the loss of a single domain loses the payload.
    fn warn(&self, how: &StoredRepair, repaired: &mut StoredRepaired) {
        let domain = |place: &usize| Target {
            domain: self.domains[*place].clone(),
            ..self.places.get(*place).target.clone()
        };
        let targets: Vec<Target> = how.to.iter().map(domain).collect();
        let writes = !repaired.made.is_empty();
        if let Some(Err(crowded)) = writes.then(|| Placement::new(&targets, self.manifest.code).check()) {
            repaired
                .trouble
                .push(format!("{crowded}; until then the loss of one domain may be the loss of all"));
        }
    }

    /// The name of an object in messages.
    fn object(&self, place: usize, key: &str) -> String {
        format!("{}/{key}", self.places.get(place).target.url)
    }

    fn mend(
        &self,
        segment: u32,
        state: &SegmentState,
        how: &StoredRepair,
        repaired: &mut StoredRepaired,
        meter: &Gauge<'_>,
        context: &Context<'_>,
    ) -> Result<()> {
        let code = self.manifest.code;
        let encoding = &self.manifest.segments[segment as usize];
        let is_kept = |index: &u32| {
            state.intact.get(index).is_some_and(|places| places.iter().any(|place| how.to.contains(place)))
        };
        // A damaged copy beside an intact one is useless.
        for (index, place) in
            state.damaged.iter().filter(|(index, place)| is_kept(index) && how.to.contains(place))
        {
            let key = keys::shard(&encoding.root, *index);
            let removed = how.dry_run || {
                let done = self.delete(*place, &key);
                done.map_err(|why| repaired.trouble.push(format!("{}: {why}", self.object(*place, &key))))
                    .is_ok()
            };
            if removed {
                repaired.removed.push((segment, *index, *place));
            } else {
                repaired.left_damaged = true;
            }
        }
        let lacking: Vec<u32> = (0..code.n() as u32).filter(|index| !is_kept(index)).collect();
        meter.add(encoding.geometry.payload_len());
        if lacking.is_empty() {
            return Ok(());
        }
        let margin = code.m() as i64 - lacking.len() as i64;
        if !how.now && margin > code.m() as i64 / 2 {
            repaired.postponed.push((segment, margin));
            return Ok(());
        }
        // The fetch keeps the folder until all shards are put.
        let (_fetch, files) = self.make(segment, state, repaired, meter, context)?;
        let mut at = Spread::new(self, state, how);
        for index in lacking {
            let path = files.get(&index).ok_or_else(|| Error::new(Action::Repair, ErrorKind::Changed))?;
            let damaged: Vec<usize> =
                state.damaged.iter().filter(|(of, _)| *of == index).map(|(_, place)| *place).collect();
            if how.dry_run {
                let place = at.next(self, damaged.first().copied());
                repaired.made.extend(place.map(|place| (segment, index, place)));
                continue;
            }
            self.land((segment, index), path, (&mut at, &damaged), how, repaired)?;
        }
        Ok(())
    }

    /// Makes all shards of a segment in a folder, from those available.
    fn make<'b>(
        &'b self,
        segment: u32,
        state: &SegmentState,
        repaired: &mut StoredRepaired,
        meter: &'b Gauge<'b>,
        context: &Context<'_>,
    ) -> Result<(Fetch<'b>, BTreeMap<u32, PathBuf>)> {
        let encoding = &self.manifest.segments[segment as usize];
        let mut fetch = Fetch::new(self.places, encoding, self.spool.as_deref(), meter)?;
        fetch.know(state.copies(encoding.layout().file_len));
        fetch.until(self.manifest.code.k()).map_err(|error| failure(&error))?;
        let mut made = |archive: &Archive| {
            let policy = Policy::new().with_force(true).with_sync(false).with_permissions(OWNER_ALONE);
            let repaired = archive.repair(Repair { out: None, policy, dry_run: false }, &context.silent());
            match repaired {
                Ok(_) => Ok(true),
                Err(error) => match error.cause() {
                    Some(EncodingError::Lost(_) | EncodingError::MetaLost) => Ok(false),
                    _ => Err(error),
                },
            }
        };
        self.segment(segment as usize, &mut fetch, &mut made, context)?;
        repaired.trouble.extend(fetch.causes());
        let files = shard_files(&fetch.folder(), encoding)?;
        Ok((fetch, files))
    }

    /// Puts a shard at a place that may still take it; `damaged` are the places of its damaged copies.
    fn land(
        &self,
        (segment, index): (u32, u32),
        path: &Path,
        (at, damaged): (&mut Spread, &[usize]),
        how: &StoredRepair,
        repaired: &mut StoredRepaired,
    ) -> Result<()> {
        let encoding = &self.manifest.segments[segment as usize];
        let fail = |e| Error::io(Action::Read, Place::Temporary, e);
        let file = Outlined::new(File::open(path).map_err(fail)?, encoding).map_err(fail)?;
        let header = ShardHeader { index, encoding: *encoding }.to_bytes();
        let key = keys::shard(&encoding.root, index);
        let expected = Expected::shard(&key, encoding, &header);
        let mut why = StoreError::Failed("every domain holds as many shards of the segment as it may".into());
        let mut tried = how.to.first().copied().unwrap_or(0);
        let mut own = damaged.first().copied();
        let mut left = BTreeMap::new();
        while let Some(place) = at.next(self, own.take()) {
            tried = place;
            // A copy damaged deep inside has the right size and first bytes, so a put would keep it.
            let is_damaged = damaged.contains(&place);
            let removed = if is_damaged { self.delete(place, &key) } else { Ok(()) };
            match removed.and_then(|()| put(self.places, place, &file, expected, &self.places.cancel)) {
                Ok(Put::Created) => {
                    repaired.made.push((segment, index, place));
                    let others = damaged.iter().filter(|other| **other != place && how.to.contains(other));
                    self.clear(others, &key, left, repaired);
                    return Ok(());
                }
                // An intact copy was there that the search had not found.
                Ok(Put::Existed) if !is_damaged => return Ok(()),
                Ok(Put::Existed) => {
                    let back = StoreError::Failed("what is damaged comes back when it is removed".into());
                    left.insert(place, back.clone());
                    at.leave_out(place);
                    why = back;
                }
                Err(StoreError::Cancelled) => return Err(failure(&StoreError::Cancelled)),
                Err(error) => {
                    if is_damaged {
                        left.insert(place, error.clone());
                    }
                    at.leave_out(place);
                    why = error;
                }
            }
        }
        repaired.missing.push(Missing { shard: Some((segment, index)), place: tried, why });
        Ok(())
    }

    /// Removes damaged copies of a shard that was made anew elsewhere, and tells which are left; `left` has those that
    /// could not be removed before.
    fn clear<'b>(
        &self,
        damaged: impl Iterator<Item = &'b usize>,
        key: &str,
        mut left: BTreeMap<usize, StoreError>,
        repaired: &mut StoredRepaired,
    ) {
        for place in damaged {
            if !left.contains_key(place)
                && let Err(why) = self.delete(*place, key)
            {
                left.insert(*place, why);
            }
        }
        for (place, why) in left {
            repaired.left_damaged = true;
            repaired.trouble.push(format!("{}: {why}", self.object(place, key)));
        }
    }

    /// Removes a damaged object, and sees whether it is gone.
    fn delete(&self, place: usize, key: &str) -> std::result::Result<(), StoreError> {
        let cancel = &self.places.cancel;
        match self.places.retry(place, cancel, |store, call| store.delete(key, call)) {
            Ok(()) | Err(StoreError::NotFound) => {}
            failed => return failed,
        }
        // Without the right to list, "denied" is also the answer for what is not there.
        match self.places.look(place, cancel, |store, call| store.head(key, call)) {
            Ok(_) => Err(StoreError::Failed("it was removed, and is still there".into())),
            Err(_) => Ok(()),
        }
    }
}

/// Chooses the places of remade shards of a segment: the domain that holds the fewest, and in it the place that does.
struct Spread {
    /// Number of shards that each place and each domain holds.
    held: BTreeMap<usize, usize>,
    domains: BTreeMap<String, usize>,
    /// Most shards that a domain may hold.
    most: usize,
}

impl Spread {
    fn new(stored: &Stored<'_>, state: &SegmentState, how: &StoredRepair) -> Spread {
        let mut held: BTreeMap<usize, usize> = how.to.iter().map(|place| (*place, 0)).collect();
        let mut domains: BTreeMap<String, usize> = BTreeMap::new();
        let domain = |place: usize| stored.domains[place].clone();
        domains.extend(how.to.iter().map(|place| (domain(*place), 0)));
        for places in state.intact.values() {
            if let Some(place) = places.iter().find(|place| how.to.contains(place)) {
                *held.entry(*place).or_default() += 1;
                *domains.entry(domain(*place)).or_default() += 1;
            }
        }
        // With too few domains each takes an even share, although that is more than may be lost.
        let even = stored.manifest.code.n().div_ceil(domains.len().max(1));
        Spread { held, domains, most: even.max(stored.manifest.code.m()) }
    }

    /// The place for the next shard, which then counts as put there. `own` is preferred: the place of its damaged copy.
    fn next(&mut self, stored: &Stored<'_>, own: Option<usize>) -> Option<usize> {
        let domain = |place: usize| &stored.domains[place];
        let load = |place: usize| self.domains.get(domain(place)).copied().unwrap_or(0);
        let open = |place: &usize| self.held.contains_key(place) && load(*place) < self.most;
        let least =
            || self.held.keys().copied().filter(open).min_by_key(|place| (load(*place), self.held[place]));
        let place = own.filter(open).or_else(least)?;
        *self.held.entry(place).or_default() += 1;
        *self.domains.entry(domain(place).clone()).or_default() += 1;
        Some(place)
    }

    /// Bars a place from further shards.
    fn leave_out(&mut self, place: usize) {
        self.held.remove(&place);
    }
}

/// A shard file in the folder, and the outlines that stand behind it in a store.
struct Outlined {
    file: File,
    file_len: u64,
    outlines: Vec<u8>,
}

impl Outlined {
    fn new(file: File, encoding: &Encoding) -> io::Result<Outlined> {
        let layout = encoding.layout();
        let read = |at, out: &mut [u8]| file.read_exact_at(layout.body + at, out);
        let outlines = outline::annexes(encoding.geometry.shape(), read)?.unwrap_or_default();
        Ok(Outlined { file, file_len: layout.file_len, outlines })
    }
}

impl ReadAt for Outlined {
    fn read_at(&self, at: u64, out: &mut [u8]) -> io::Result<usize> {
        match at.checked_sub(self.file_len) {
            Some(at) => self.outlines.as_slice().read_at(at, out),
            None => {
                let len = (self.file_len - at).min(out.len() as u64) as usize;
                self.file.read_at(at, &mut out[..len])
            }
        }
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.file_len + self.outlines.len() as u64)
    }
}

/// Files of a folder that are whole shards of an encoding, by index.
fn shard_files(folder: &Path, encoding: &Encoding) -> Result<BTreeMap<u32, PathBuf>> {
    let fail = |e| Error::io(Action::Read, Place::Temporary, e);
    let mut files = BTreeMap::new();
    for name in list(folder).map_err(fail)? {
        let path = folder.join(name);
        let file = File::open(&path).map_err(fail)?;
        let mut bytes = [0; HEADER_LEN];
        let is_whole = file.size().map_err(fail)? == encoding.layout().file_len;
        if is_whole
            && file.read_exact_at(0, &mut bytes).is_ok()
            && let Ok(header) = ShardHeader::parse(&bytes)
            && header.encoding == *encoding
        {
            files.insert(header.index, path);
        }
    }
    Ok(files)
}

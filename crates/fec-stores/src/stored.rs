//! Finds a payload in stores by its root, and restores it.

use super::arrived::is_own_intact;
use super::error::StoresError;
use super::fetch::Fetch;
use super::keys;
use super::lists::Lists;
use super::manifest;
use super::placement::Placement;
use super::places::Places;
use super::target::{Scheme, Target};
use fec_base::context::{Context, Gauge};
use fec_base::error::{Action, Error, ErrorKind, Place, Result};
use fec_base::io::output::{Destination, FileOut, Policy, check_room};
use fec_base::io::spool::Spool;
use fec_base::io::temporary::{parent, remove_stale};
use fec_base::threads::no_thread;
use fec_core::digest::Digest;
use fec_core::format::manifest::{Manifest, ManifestTarget};
use fec_core::format::seal::SealedKind;
use fec_keys::age::Keys;
use fecfile::error::EncodingError;
use fecfile::report::Restored;
use fecfile::seal::Opener;
use fecfile::within::{End, Extent, Opening, PayloadPart, Unsealed, opener};
use fecfile::{Archive, Input, PayloadRange};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

/// Tells that the meta is lost.
const META_LOST: &str = "the recorded name, and what else was recorded, is lost: no copy of the meta is left";

/// A payload whose shards stand in stores.
pub struct Stored<'a> {
    pub(super) places: &'a Places,
    pub(super) root: Digest,
    pub(super) manifest: Manifest,
    /// There is no manifest: the root is the only segment's.
    pub(super) is_bare: bool,
    /// No copy of the segment's meta was found.
    pub(super) is_meta_lost: bool,
    /// Places that have the manifest; all of them only if that was asked.
    pub(super) has_manifest: Vec<usize>,
    /// Domain of each place: as the user named it, or else as the manifest records it.
    pub(super) domains: Vec<String>,
    /// Time that the manifest took: a measure of usual delays.
    pub(super) usual: Duration,
    /// Folder for the shards of a segment and the next one, and for a writer also for the payload of a segment.
    pub(super) spool: Option<PathBuf>,
}

/// The result of a restore.
#[must_use = "it says what went wrong at places"]
#[derive(Debug)]
pub struct StoredRestored {
    /// Payload bytes written.
    pub payload_bytes: u64,
    /// Segments that these bytes are from.
    pub segments: u64,
    /// Bytes of objects fetched.
    pub fetched_bytes: u64,
    /// Shards that came from each place; for a part of the payload, records of shards.
    pub came: BTreeMap<usize, u64>,
    /// Failures that did no harm, and the loss of the meta.
    pub trouble: Vec<String>,
}

impl<'a> Stored<'a> {
    /// Finds the payload with this root: its manifest, or the shards of a segment that has this root.
    ///
    /// # Errors
    /// [`StoresError::NotFound`], and [`StoresError::Manifest`] for a manifest that its maker made wrong.
    pub fn find(places: &'a Places, root: Digest, spool: Option<PathBuf>) -> Result<Stored<'a>> {
        Stored::found(places, root, spool, false)
    }

    pub(super) fn found(
        places: &'a Places,
        root: Digest,
        spool: Option<PathBuf>,
        all: bool,
    ) -> Result<Stored<'a>> {
        if places.is_empty() {
            return Err(Error::new(Action::Read, StoresError::NoPlace));
        }
        let found = manifest::find(places, &root, all)?;
        let domain = |target: &Target| {
            let name = target.name();
            let mut recorded = found.manifest.targets.iter().filter(|recorded| recorded.url == name);
            match recorded.next().filter(|_| !target.has_domain()) {
                Some(recorded) => recorded.domain.clone(),
                None => target.domain.clone(),
            }
        };
        Ok(Stored {
            domains: places.iter().map(|place| domain(&place.target)).collect(),
            places,
            root,
            manifest: found.manifest,
            is_bare: found.is_bare,
            is_meta_lost: found.is_meta_lost,
            has_manifest: found.places,
            usual: found.time,
            spool,
        })
    }

    /// A result of this many payload bytes, with nothing fetched yet.
    pub(super) fn nothing_yet(&self, payload_bytes: u64) -> StoredRestored {
        StoredRestored {
            payload_bytes,
            segments: 0,
            fetched_bytes: 0,
            came: BTreeMap::new(),
            trouble: self.lost_meta().collect(),
        }
    }

    /// A line for the user if every copy of the meta is lost.
    pub(super) fn lost_meta(&self) -> impl Iterator<Item = String> {
        self.is_meta_lost.then(|| META_LOST.to_owned()).into_iter()
    }

    /// The manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The root of the payload.
    pub fn root(&self) -> Digest {
        self.root
    }

    /// The opener of the payload, if it is sealed.
    ///
    /// # Errors
    /// Those of [`SealError`](fecfile::seal::SealError): these keys do not open the payload, or it is not sealed
    /// although keys are given.
    pub fn opener(&self, keys: Option<&Keys>) -> Result<Option<Opener>> {
        let opener = opener(self.is_sealed(), Some(&self.manifest.meta), keys, SealedKind::Payload);
        opener.map_err(|e| Error::new(Action::Open, e))
    }

    /// Tells whether a restore without a key yields ciphertext. For the root of a single segment of a sealed payload
    /// there may be no key at all: the seal is in the manifest of the whole.
    pub fn is_sealed(&self) -> bool {
        self.manifest.segments.iter().any(|segment| segment.geometry.shape().is_sealed())
    }

    /// The folders with objects of the payload, in places that are folders.
    pub(super) fn folders(&self) -> impl Iterator<Item = PathBuf> {
        let roots = self.manifest.segments.iter().map(|segment| segment.root).chain([self.root]);
        let keys: BTreeSet<String> = roots.map(|root| keys::prefix(&root)).collect();
        let below = move |place: &Path| keys.iter().map(|key| place.join(key)).collect::<Vec<_>>();
        self.place_folders().flat_map(below)
    }

    /// The places that are folders.
    fn place_folders(&self) -> impl Iterator<Item = &Path> {
        self.places.iter().filter_map(|place| match &place.target.scheme {
            Scheme::Folder(path) => Some(path.as_path()),
            _ => None,
        })
    }

    /// The policy for an output that is made of this payload: only those may read it who may read its objects in
    /// folders. Places elsewhere set no limit.
    pub fn made_of_objects(&self, policy: Policy) -> Policy {
        let places = self.place_folders().filter_map(|path| std::fs::metadata(path).ok());
        let policy = places.fold(policy, |policy, meta| policy.made_of_folder(&meta));
        let folders: Vec<PathBuf> = self.folders().collect();
        policy.made_of_paths(folders.iter().map(PathBuf::as_path))
    }

    /// Length of the sealed payload: a manifest knows all segments.
    pub(super) fn extent(&self) -> Extent {
        Extent { sealed_len: self.manifest.payload_len(), is_cut: false }
    }

    /// The recorded name, if the payload is not sealed.
    pub fn name(&self) -> Option<&[u8]> {
        self.manifest.meta.name.as_deref()
    }

    /// Home of each shard of a segment, as far as the manifest's places are among those given.
    pub(super) fn home(&self, segment: usize) -> BTreeMap<u32, usize> {
        let target = |target: &ManifestTarget| {
            let parsed = Target::parse(&target.url).ok()?;
            Some(Target { domain: target.domain.clone(), ..parsed })
        };
        let targets: Option<Vec<Target>> = self.manifest.targets.iter().map(target).collect();
        let Some(targets) = targets.filter(|targets| !targets.is_empty()) else { return BTreeMap::new() };
        let placement = Placement::new(&targets, self.manifest.code);
        let place = |index: usize| {
            let target = &targets[placement.target(segment as u64, index)];
            // The same bucket may be reached by another endpoint. A wrong match is harmless, because objects are
            // proved.
            let is =
                |same: &dyn Fn(&Target) -> bool| self.places.iter().position(|place| same(&place.target));
            is(&|other| other.name() == target.name()).or_else(|| is(&|other| other.url == target.url))
        };
        (0..self.manifest.code.n()).filter_map(|index| Some((index as u32, place(index)?))).collect()
    }

    /// Restores the payload: to a file, which appears once it is whole, or to a writer, segment after segment, each as
    /// soon as it is proved as a whole.
    ///
    /// # Errors
    /// [`StoresError::FewLeft`], and those of the destination.
    pub fn restore(
        &self,
        opener: Option<&Opener>,
        destination: Destination<'_>,
        context: &Context<'_>,
    ) -> Result<StoredRestored> {
        match destination {
            Destination::Writer(out, place) => self.to_writer(opener, (out, place), context),
            Destination::File(path, policy) => {
                check_room(path, self.manifest.payload_len())?;
                remove_stale(parent(path), context.progress);
                let out = FileOut::create(path, policy)?;
                let restored = self.segments(context, |archive, start, context| {
                    let put = |offset: u64, bytes: &[u8]| out.put(start + offset, bytes);
                    archive.restore_by(&put, context)
                })?;
                let wanted = PayloadPart::new(PayloadRange::ALL, opener, self.extent())?;
                wanted.open(out.file(), context, &|e| out.failure(e))?;
                out.commit(wanted.part_len())?;
                Ok(StoredRestored { payload_bytes: wanted.part_len(), ..restored })
            }
        }
    }

    fn to_writer(
        &self,
        opener: Option<&Opener>,
        (out, place): (&mut dyn Write, Place),
        context: &Context<'_>,
    ) -> Result<StoredRestored> {
        let fail = |e| Error::io(Action::Write, place.clone(), e);
        let len = self.manifest.payload_len();
        let mut opened = Unsealed::new(opener, out, Opening::default());
        let restored = self.segments(context, |archive, start, context| {
            let spool = Spool::within(self.spool.as_deref())?;
            let put = |offset: u64, bytes: &[u8]| spool.put(offset, bytes);
            let restored = archive.restore_by(&put, context)?;
            if restored.written {
                let segment = archive.encoded().known_len();
                let end = if start + segment == len { End::Payload } else { End::Nothing };
                opened.release(end, &mut |to| spool.copy_to(segment, to, &fail), &fail)?;
            }
            Ok(restored)
        })?;
        let payload_bytes = opened.plain_len().unwrap_or(restored.payload_bytes);
        out.flush().map_err(fail)?;
        Ok(StoredRestored { payload_bytes, ..restored })
    }

    /// Restores segments in order by `restore`, which gets the offset of each, and fetches the next one meanwhile.
    fn segments(
        &self,
        context: &Context<'_>,
        mut restore: impl FnMut(&Archive, u64, &Context<'_>) -> Result<Restored>,
    ) -> Result<StoredRestored> {
        let k = self.manifest.code.k();
        let meter = context.meter(Action::Fetch, None);
        let mut came: BTreeMap<usize, u64> = BTreeMap::new();
        let mut trouble: Vec<String> = self.lost_meta().collect();
        let lists = Lists::of_segments(self.places, &self.manifest.segments);
        let lists = lists.as_ref();
        std::thread::scope(|scope| {
            let (fetched, to_restore) = sync_channel::<Result<Fetch<'_>>>(0);
            let meter: &Gauge<'_> = &meter;
            let stop = self.places.cancel.child();
            let stopped = stop.clone();
            let fetching = std::thread::Builder::new().spawn_scoped(scope, move || {
                for encoding in &self.manifest.segments {
                    let fetch = Fetch::new(self.places, encoding, self.spool.as_deref(), meter);
                    let fetch = fetch.and_then(|mut fetch| {
                        fetch.cancel = stopped.clone();
                        fetch.lists = lists;
                        fetch.until(k).map_err(|error| failure(&error))?;
                        Ok(fetch)
                    });
                    // An error ends the restore, and a failed send means that it has ended.
                    let is_last = fetch.is_err();
                    if fetched.send(fetch).is_err() || is_last {
                        break;
                    }
                }
            });
            fetching.map_err(no_thread)?;
            let restored = (0..).zip(to_restore).try_for_each(|(segment, fetch)| {
                let mut fetch = fetch?;
                let start = self.manifest.segment_start(segment);
                let mut work = |archive: &Archive| {
                    let restored = restore(archive, start, &context.silent())?;
                    Ok(restored.is_whole() && restored.written)
                };
                self.segment(segment, &mut fetch, &mut work, context)?;
                fetch.sources().for_each(|place| *came.entry(place).or_default() += 1);
                trouble.extend(fetch.causes());
                Ok(())
            });
            if restored.is_err() {
                // The fetching thread may be waiting for bytes that are not needed any more.
                stop.cancel();
            }
            restored
        })?;
        meter.finish();
        trouble.sort();
        trouble.dedup();
        Ok(StoredRestored {
            payload_bytes: self.manifest.payload_len(),
            segments: self.manifest.segments.len() as u64,
            fetched_bytes: self.places.moved(),
            came,
            trouble,
        })
    }

    /// Runs `work` on the fetched shards of a segment, and fetches replacements for damaged ones, until `work` returns
    /// true.
    pub(super) fn segment(
        &self,
        segment: usize,
        fetch: &mut Fetch<'_>,
        work: &mut dyn FnMut(&Archive) -> Result<bool>,
        context: &Context<'_>,
    ) -> Result<()> {
        let context = context.silent();
        let encoding = &self.manifest.segments[segment];
        let k = self.manifest.code.k();
        loop {
            let there = fetch.count();
            let mut is_damaged = true;
            if there > 0 || fetch.has_damaged() {
                let input = Input::of_paths(&[fetch.folder()])?;
                match Archive::open(&input, Some(encoding.root), &context) {
                    Ok(archive) => {
                        if work(&archive)? {
                            return Ok(());
                        }
                        let shards = archive.examine(&context)?.shards;
                        let came: Vec<u32> = fetch.came.keys().copied().collect();
                        let damaged: Vec<u32> =
                            came.into_iter().filter(|index| !is_own_intact(&shards, *index)).collect();
                        is_damaged = !damaged.is_empty();
                        damaged.into_iter().for_each(|index| fetch.is_damaged(index));
                    }
                    // All of them are damaged.
                    Err(error) if matches!(error.cause(), Some(EncodingError::NothingFound(_))) => {
                        fetch.are_damaged();
                    }
                    Err(error) => return Err(error),
                }
            }
            // With k intact shards `work` would have succeeded, so the files differ from the fetched bytes.
            let is_stuck = !is_damaged && fetch.count() >= k;
            let came = fetch.arrivals();
            // Fewer than k may suffice together with intact records of damaged shards.
            if is_stuck || !fetch.until(k).map_err(|error| failure(&error))? && fetch.arrivals() == came {
                return Err(self.few_left(segment, fetch));
            }
        }
    }

    /// The error for too few shards of a segment.
    pub(super) fn few_left(&self, segment: usize, fetch: &Fetch<'_>) -> Error {
        let few = StoresError::FewLeft {
            segment: segment as u32,
            there: fetch.count() as u32,
            k: self.manifest.code.k() as u32,
            causes: if fetch.is_cut_off() { fetch.causes_of_few() } else { Vec::new() },
        };
        Error::new(Action::Decode, few)
    }
}

/// The error of an operation that a store's error ended.
pub(super) fn failure(error: &super::error::StoreError) -> Error {
    match error {
        super::error::StoreError::Cancelled => Error::new(Action::Decode, ErrorKind::Cancelled),
        super::error::StoreError::Sink(why) => {
            Error::io(Action::Write, Place::Temporary, std::io::Error::other(why.clone()))
        }
        error => Error::new(Action::Read, error.clone()),
    }
}

//! A part of a payload in stores: the records that it touches, and nothing else. A request that is later than usual is made
//! once more.

use super::error::StoreError;
use super::find;
use super::keys;
use super::placement::Placement;
use super::stored::{Stored, StoredRestored};
use super::target::Target;
use crate::context::Context;
use crate::error::{Error, ErrorKind, Place, Result};
use crate::forms::encoded::{Encoded, Load, Records};
use crate::groups::Groups;
use crate::io::output::{FileOut, Policy};
use crate::io::spool::Spool;
use crate::range::{PayloadRange, part};
use fec_core::executor::lock;
use fec_core::format::shard_file::{Encoding, Layout};
use fec_core::set::{PlanCache, Reading, Run};
use std::collections::BTreeMap;
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

/// A record is late after as long as it took to have the manifest, which was two requests one after the other; but not before
const LEAST_LATE: Duration = Duration::from_millis(10);

impl Stored<'_> {
    /// Restores a part of the payload to a file, which appears when all of the part is proved.
    ///
    /// # Errors
    /// [`OutOfPayload`](ErrorKind::OutOfPayload), [`FewLeft`](super::error::StoresError::FewLeft), and those of the file.
    pub fn range_to_file(
        &self,
        range: PayloadRange,
        path: &Path,
        policy: Policy,
        context: &Context<'_>,
    ) -> Result<StoredRestored> {
        let bytes = range.of(self.manifest.payload_len())?;
        let out = FileOut::create(path, policy)?;
        let restored = self.part(&bytes, &|at, part: &[u8]| out.put(at, part), context)?;
        out.commit(bytes.end - bytes.start)?;
        Ok(restored)
    }

    /// Restores a part of the payload to a writer, through a temporary file.
    ///
    /// # Errors
    /// As [`range_to_file`](Stored::range_to_file), and those of the writer, named `place`.
    pub fn range_to_writer(
        &self,
        range: PayloadRange,
        out: &mut dyn Write,
        place: &Place,
        context: &Context<'_>,
    ) -> Result<StoredRestored> {
        let bytes = range.of(self.manifest.payload_len())?;
        let spool = Spool::within(self.spool.as_deref())?;
        let restored = self.part(&bytes, &|at, part: &[u8]| spool.put(at, part), context)?;
        spool.copy_to(bytes.end - bytes.start, out, &|e| Error::io("write", place.clone(), e))?;
        Ok(restored)
    }

    fn part(
        &self,
        bytes: &Range<u64>,
        put: &(dyn Fn(u64, &[u8]) -> Result<()> + Sync),
        context: &Context<'_>,
    ) -> Result<StoredRestored> {
        let plans = PlanCache::new(context.settings.backend);
        let mut restored = StoredRestored::new(bytes.end - bytes.start);
        for (segment, encoding) in self.manifest.segments.iter().enumerate() {
            let start = self.manifest.segment_start(segment);
            let end = start + encoding.geometry.payload_len();
            let within = bytes.start.max(start)..bytes.end.min(end);
            if within.is_empty() {
                continue;
            }
            let records = StoreRecords::new(self, segment as u64, encoding);
            let encoded = Encoded {
                root: Some(encoding.root),
                groups: Groups::new(encoding.geometry, encoding.geometry, vec![encoding.tree]),
                payload_len: Some(encoding.geometry.payload_len()),
                meta: None,
                records: Box::new(&records),
            };
            let into = within.start - bytes.start;
            let put = |at: u64, part: &[u8]| put(into + at, part);
            let outcome = part(&encoded, &plans, &(within.start - start..within.end - start), &put, context)?;
            drop(encoded);
            if self.places.cancel.is_cancelled() {
                return Err(super::stored::failure(&StoreError::Cancelled));
            }
            if let Some(set) = outcome.untrue {
                return Err(crate::sets::untrue(set));
            }
            if !outcome.is_whole() {
                return Err(records.few_left(segment));
            }
            restored.segments += 1;
            records.tell(&mut restored);
        }
        restored.fetched_bytes = self.places.moved();
        Ok(restored)
    }
}

/// The records of a segment, as they stand in stores.
struct StoreRecords<'a> {
    stored: &'a Stored<'a>,
    encoding: &'a Encoding,
    layout: Layout,
    /// Where shards are said to be: by the manifest at first, and by the places when that does not suffice.
    places: Mutex<Known>,
    came: Mutex<BTreeMap<usize, u64>>,
    failures: Mutex<BTreeMap<usize, StoreError>>,
    late: Duration,
}

/// Where shards are said to be.
#[derive(Default)]
struct Known {
    of: BTreeMap<u32, Vec<usize>>,
    is_asked: bool,
}

/// A record and its proof.
type Record = (Vec<u8>, Vec<u8>);

impl<'a> StoreRecords<'a> {
    fn new(stored: &'a Stored<'a>, segment: u64, encoding: &'a Encoding) -> StoreRecords<'a> {
        let mut known = Known::default();
        let targets: Option<Vec<Target>> = stored
            .manifest
            .targets
            .iter()
            .map(|target| {
                let parsed = Target::parse(&target.url).ok()?;
                Some(Target { domain: target.domain.clone(), ..parsed })
            })
            .collect();
        if let Some(targets) = targets.filter(|targets| !targets.is_empty()) {
            let placement = Placement::new(&targets, stored.manifest.code);
            for index in 0..stored.manifest.code.n() {
                let target = &targets[placement.target(segment, index)];
                // The same bucket may be reached by another way: what comes from there is proved.
                let is = |same: &dyn Fn(&Target) -> bool| {
                    stored.places.iter().position(|place| same(&place.target))
                };
                let place = is(&|other| other.name() == target.name())
                    .or_else(|| is(&|other| other.url == target.url));
                known.of.entry(index as u32).or_default().extend(place);
            }
        }
        StoreRecords {
            stored,
            encoding,
            layout: encoding.layout(),
            places: Mutex::new(known),
            came: Mutex::default(),
            failures: Mutex::default(),
            late: stored.usual.max(LEAST_LATE),
        }
    }

    /// What came from where.
    fn tell(self, restored: &mut StoredRestored) {
        for (place, count) in fec_core::executor::into_value(self.came) {
            *restored.came.entry(place).or_default() += count;
        }
        for (place, why) in fec_core::executor::into_value(self.failures) {
            restored.trouble.push(format!("{}: {why}", self.stored.places.get(place).target.name()));
        }
    }

    fn few_left(self, segment: usize) -> Error {
        let failures = fec_core::executor::into_value(self.failures);
        let is_cut_off = failures.values().any(StoreError::leaves_open);
        let name = |place: usize| self.stored.places.get(place).target.name();
        let causes = failures.iter().map(|(place, why)| format!("{}: {why}", name(*place)));
        let k = self.stored.manifest.code.k() as u32;
        let there = fec_core::executor::into_value(self.places).of.len() as u32;
        let few = super::error::StoresError::FewLeft {
            segment: segment as u32,
            there: there.min(k.saturating_sub(1)),
            k,
            causes: if is_cut_off { causes.collect() } else { Vec::new() },
        };
        Error::new("decode", ErrorKind::from(few))
    }

    /// Asks all places what they have.
    fn ask(&self) {
        let mut known = lock(&self.places);
        if std::mem::replace(&mut known.is_asked, true) {
            return;
        }
        let n = self.stored.manifest.code.n() as u32;
        let mut of: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        let failed = find::locate_all(self.stored.places, &self.encoding.root, n, |found| {
            of.entry(found.index).or_default().push(found.place);
        });
        lock(&self.failures).extend(failed);
        known.of = of;
    }

    /// Loads a shard's record of a set, from whichever place has it intact.
    fn one(&self, set: u32, index: u32) -> Option<Record> {
        let mut tried = Vec::new();
        loop {
            let (places, is_asked) = {
                let known = lock(&self.places);
                let of = known.of.get(&index).cloned().unwrap_or_default();
                (of.into_iter().filter(|place| !tried.contains(place)).collect::<Vec<_>>(), known.is_asked)
            };
            match places.first() {
                None if is_asked => return None,
                None => self.ask(),
                Some(place) => {
                    tried.push(*place);
                    if let Some(record) = self.from(*place, set, index) {
                        return Some(record);
                    }
                }
            }
            if self.stored.places.cancel.is_cancelled() {
                return None;
            }
        }
    }

    /// A record and its proof from one place: asked for once more when they are late.
    fn from(&self, place: usize, set: u32, index: u32) -> Option<Record> {
        let cancel = self.stored.places.cancel.child();
        let found = std::thread::scope(|scope| {
            let (telling, told): (Sender<std::result::Result<Record, StoreError>>, _) = channel();
            let begin = || {
                let (telling, cancel) = (telling.clone(), &cancel);
                scope.spawn(move || {
                    let _ = telling.send(self.get(place, set, index, cancel));
                });
            };
            begin();
            let first = match told.recv_timeout(self.late) {
                Ok(first) => first,
                Err(_) => {
                    begin();
                    match told.recv() {
                        // One that fails at once is no reason not to wait for the other.
                        Ok(Err(_)) => told.recv().ok()?,
                        Ok(first) => first,
                        Err(_) => return None,
                    }
                }
            };
            cancel.cancel();
            match first {
                Ok(record) => Some(record),
                Err(error) => {
                    if error != StoreError::NotFound {
                        let mut failures = lock(&self.failures);
                        match error {
                            // That it is not asked any more is no reason.
                            StoreError::GivenUp => drop(failures.entry(place).or_insert(error)),
                            error => drop(failures.insert(place, error)),
                        }
                    }
                    None
                }
            }
        });
        if found.is_some() {
            *lock(&self.came).entry(place).or_default() += 1;
        }
        found
    }

    /// The record and its proof, at the same time.
    fn get(
        &self,
        place: usize,
        set: u32,
        index: u32,
        cancel: &super::call::Cancel,
    ) -> std::result::Result<Record, StoreError> {
        let key = keys::shard(&self.encoding.root, index);
        let fetch = |at: u64, len: u64| {
            self.stored.places.retry(place, cancel, |store, call| {
                let mut bytes = Vec::with_capacity(len as usize);
                let sink = &mut |part: &[u8]| {
                    bytes.extend_from_slice(part);
                    Ok(())
                };
                store.get(&key, at..at + len, sink, call).map(|()| bytes)
            })
        };
        let proof_at = self.layout.proofs(set)[0];
        std::thread::scope(|scope| {
            let proof = scope.spawn(|| fetch(proof_at, self.layout.proof_len));
            let record = fetch(self.layout.shard(set), self.layout.shard_len)?;
            let proof = proof.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok((record, proof))
        })
    }
}

impl Records for &StoreRecords<'_> {
    fn load(&self, _group: u32, set: u32, wanted: &[u32], reading: &mut Reading<'_>) -> Vec<Load> {
        let records: Vec<Mutex<Option<Record>>> = wanted.iter().map(|_| Mutex::default()).collect();
        std::thread::scope(|scope| {
            for (index, slot) in wanted.iter().zip(&records) {
                scope.spawn(move || *lock(slot) = self.one(set, *index));
            }
        });
        let load = |(index, slot): (&u32, Mutex<Option<Record>>)| {
            let Some((record, proof)) = fec_core::executor::into_value(slot) else { return Load::Missing };
            reading.slot(*index).copy_from_slice(&record);
            match reading.check(*index, &[proof], Run::default()) {
                true => Load::Intact,
                false => Load::Damaged,
            }
        };
        wanted.iter().zip(records).map(load).collect()
    }
}

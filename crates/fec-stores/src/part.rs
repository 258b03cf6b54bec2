//! Restores a part of a payload in stores from the records that it touches alone, or from a few leaves of them. A
//! request later than usual is made once more. If a place crawls, other records of the set are read. If records are
//! wrong or missing, whole shard files are searched.

use super::call::Cancel;
use super::error::{StoreError, note};
use super::fetch::Fetch;
use super::find::{self, Search};
use super::keys;
use super::stored::{Stored, StoredRestored, failure};
use fec_base::context::Context;
use fec_base::error::{Action, Error, Result};
use fec_base::io::output::{Destination, FileOut};
use fec_base::io::spool::Spool;
use fec_base::io::temporary::{parent, remove_stale};
use fec_base::names::show;
use fec_base::threads::{Threads, spawn_or_do};
use fec_core::executor::{Executor, into_value, lock};
use fec_core::format::outline::Outlines;
use fec_core::format::shard_file::{Encoding, Layout};
use fec_core::set::{PlanCache, Reading, Run};
use fecfile::forms::{Encoded, GroupEntry, Groups, Load, Records};
use fecfile::seal::Opener;
use fecfile::within::{PayloadPart, part};
use fecfile::{Archive, PayloadRange};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

/// A record is late after the time that the manifest took, which was two requests in a row, but never before this time.
const LEAST_LATE: Duration = Duration::from_millis(10);
/// Interval of the check whether a place crawls.
const TICK: Duration = Duration::from_millis(20);
/// Time that a record may take to begin: its speed is unknown before.
const WARM: Duration = Duration::from_secs(1);
/// A record that would take longer than this crawls.
const CRAWL: Duration = Duration::from_secs(5);

impl Stored<'_> {
    /// Restores a range of the payload: to a file, which appears once the whole range is proved, or through a temporary
    /// file to a writer.
    ///
    /// # Errors
    /// [`OutOfPayload`](fecfile::error::EncodingError::OutOfPayload),
    /// [`FewLeft`](super::error::StoresError::FewLeft), and those of the destination.
    pub fn restore_range(
        &self,
        range: PayloadRange,
        opener: Option<&Opener>,
        destination: Destination<'_>,
        context: &Context<'_>,
    ) -> Result<StoredRestored> {
        let wanted = PayloadPart::new(range, opener, self.extent())?;
        let restored = match destination {
            Destination::File(path, policy) => {
                remove_stale(parent(path), context.progress);
                let out = FileOut::create(path, policy)?;
                let restored = self.part(&wanted.encoded, &|at, part: &[u8]| out.put(at, part), context)?;
                wanted.open(out.file(), context, &|e| out.failure(e))?;
                out.commit(wanted.part_len())?;
                restored
            }
            Destination::Writer(out, place) => {
                let spool = Spool::within(self.spool.as_deref())?;
                let restored = self.part(&wanted.encoded, &|at, part: &[u8]| spool.put(at, part), context)?;
                wanted.copy(&spool, out, &|e| Error::io(Action::Write, place.clone(), e))?;
                restored
            }
        };
        Ok(StoredRestored { payload_bytes: wanted.part_len(), ..restored })
    }

    fn part(
        &self,
        bytes: &Range<u64>,
        put: &(dyn Fn(u64, &[u8]) -> Result<()> + Sync),
        context: &Context<'_>,
    ) -> Result<StoredRestored> {
        let plans = PlanCache::new(context.settings.backend);
        let mut restored = self.nothing_yet(bytes.end - bytes.start);
        for (segment, encoding) in self.manifest.segments.iter().enumerate() {
            let start = self.manifest.segment_start(segment);
            let end = start + encoding.geometry.payload_len();
            let within = bytes.start.max(start)..bytes.end.min(end);
            if within.is_empty() {
                continue;
            }
            let into = within.start - bytes.start;
            let put = |at: u64, part: &[u8]| put(into + at, part);
            let within = within.start - start..within.end - start;
            let records = StoreRecords::new(self, segment, encoding);
            if !records.part(&plans, &within, &put, context)? {
                self.part_of_whole(segment, &records, &within, &put, context)?;
            }
            restored.segments += 1;
            records.tell(&mut restored);
        }
        restored.fetched_bytes = self.places.moved();
        Ok(restored)
    }

    /// Restores a part of a segment whose records are not where they should be, from whole shard files.
    fn part_of_whole(
        &self,
        segment: usize,
        records: &StoreRecords<'_>,
        within: &Range<u64>,
        put: &(dyn Fn(u64, &[u8]) -> Result<()> + Sync),
        context: &Context<'_>,
    ) -> Result<()> {
        let k = self.manifest.code.k();
        let meter = context.meter(Action::Fetch, None);
        let encoding = &self.manifest.segments[segment];
        let mut fetch = Fetch::new(self.places, encoding, self.spool.as_deref(), &meter)?;
        fetch.until(k).map_err(|error| failure(&error))?;
        let put = |at: u64, bytes: &[u8]| {
            let (from, to) = (at.max(within.start), (at + bytes.len() as u64).min(within.end));
            if from >= to {
                return Ok(());
            }
            put(from - within.start, &bytes[(from - at) as usize..(to - at) as usize])
        };
        let mut work = |archive: &Archive| {
            let whole = archive.restore_by(&put, &context.silent())?;
            Ok(whole.is_whole() && whole.written)
        };
        self.segment(segment, &mut fetch, &mut work, context)?;
        fetch.sources().for_each(|place| records.note_came(place));
        meter.finish();
        Ok(())
    }
}

/// Records of a segment in stores.
struct StoreRecords<'a> {
    stored: &'a Stored<'a>,
    encoding: &'a Encoding,
    layout: Layout,
    /// Claimed places of shards: first by the manifest, then by the places if that does not suffice.
    places: Mutex<Known>,
    came: Mutex<BTreeMap<usize, u64>>,
    failures: Mutex<BTreeMap<usize, StoreError>>,
    late: Duration,
    /// Crawling places are not waited for, because other records of the set may come sooner.
    is_hasty: AtomicBool,
    /// Crawling places.
    crawling: Mutex<BTreeSet<usize>>,
    /// Places that gave no outline, or a wrong one, or wrong leaves: whole records are asked for there.
    plain: Mutex<BTreeSet<usize>>,
}

/// Claimed places of shards.
#[derive(Default)]
struct Known {
    of: BTreeMap<u32, Vec<usize>>,
    /// All places were asked. The second flag: all of them have answered or failed.
    is_asked: bool,
    is_complete: bool,
}

impl Known {
    /// Tells whether places were asked and some of them not waited for.
    fn is_cut(&self) -> bool {
        self.is_asked && !self.is_complete
    }
}

/// Ranges of a shard file that are fetched at the same time, and the bytes of each.
type Wanted = [Range<u64>];
type Piece = std::result::Result<Vec<u8>, StoreError>;
type Pieces = Vec<Vec<u8>>;

impl<'a> StoreRecords<'a> {
    fn new(stored: &'a Stored<'a>, segment: usize, encoding: &'a Encoding) -> StoreRecords<'a> {
        let home = stored.home(segment).into_iter().map(|(index, place)| (index, vec![place]));
        let known = Known { of: home.collect(), ..Known::default() };
        StoreRecords {
            stored,
            encoding,
            layout: encoding.layout(),
            places: Mutex::new(known),
            came: Mutex::default(),
            failures: Mutex::default(),
            late: stored.usual.max(LEAST_LATE),
            // A limited rate makes every place look slow.
            is_hasty: AtomicBool::new(stored.places.options.rate.is_none()),
            crawling: Mutex::default(),
            plain: Mutex::default(),
        }
    }

    /// Restores a part; false if too few records are where they should be.
    fn part(
        &self,
        plans: &PlanCache,
        within: &Range<u64>,
        put: &(dyn Fn(u64, &[u8]) -> Result<()> + Sync),
        context: &Context<'_>,
    ) -> Result<bool> {
        let Encoding { root, geometry, tree, .. } = self.encoding;
        let encoded = Encoded {
            root: Some(*root),
            groups: Groups::new(*geometry, *geometry, vec![*tree]),
            payload_len: Some(geometry.payload_len()),
            meta: None,
            records: Box::new(self),
        };
        loop {
            let outcome = part(&encoded, plans, within, put, context)?;
            if self.stored.places.cancel.is_cancelled() {
                return Err(failure(&StoreError::Cancelled));
            }
            if let Some(set) = outcome.untrue {
                return Err(fecfile::within::untrue(set));
            }
            // A second, patient round helps if slow places may have the records.
            let is_cut = !lock(&self.crawling).is_empty() || lock(&self.places).is_cut();
            if outcome.is_whole() || !is_cut || !self.is_hasty.swap(false, Relaxed) {
                return Ok(outcome.is_whole());
            }
        }
    }

    fn note_came(&self, place: usize) {
        *lock(&self.came).entry(place).or_default() += 1;
    }

    /// Notes why a place does not give a record. "Not found" is not noted, because the shard may have moved.
    fn note_failure(&self, place: usize, error: StoreError) {
        if error != StoreError::NotFound {
            note(&mut lock(&self.failures), place, error);
        }
    }

    /// Tells whether a place is not asked any more.
    fn is_left(&self, place: usize) -> bool {
        self.is_hasty.load(Relaxed) && lock(&self.crawling).contains(&place)
    }

    /// Tells whether a request that is `time` old and has brought `came` of `all` bytes is as good as lost.
    fn crawls(&self, time: Duration, came: u64, all: u64) -> bool {
        self.is_hasty.load(Relaxed)
            && time >= (self.late * 10).clamp(WARM, CRAWL)
            && time.as_secs_f64() * all as f64 > CRAWL.as_secs_f64() * came as f64
    }

    /// Adds the sources of records, and the failures, to the result.
    fn tell(self, restored: &mut StoredRestored) {
        for (place, count) in into_value(self.came) {
            *restored.came.entry(place).or_default() += count;
        }
        for (place, why) in into_value(self.failures) {
            restored.trouble.push(format!("{}: {why}", show(self.stored.places.get(place).target.name())));
        }
    }

    /// Tells whether asking the places would tell anything new.
    fn lacks(&self, known: &Known) -> bool {
        !known.is_asked || known.is_cut() && !self.is_hasty.load(Relaxed)
    }

    /// Asks all places for their shards. In haste slow places are not waited for.
    fn ask(&self) {
        let mut known = lock(&self.places);
        if !self.lacks(&known) {
            return;
        }
        let is_hasty = self.is_hasty.load(Relaxed);
        let mut of = std::mem::take(&mut known.of);
        // Homes were asked before, and lists tell what is elsewhere. The search for whole shards asks further.
        let search = Search {
            root: &self.encoding.root,
            n: self.stored.manifest.code.n() as u32,
            enough: 0,
            home: &BTreeMap::new(),
            is_hasty,
            lists: None,
        };
        let told = find::locate_all(self.stored.places, &search, |found| {
            of.entry(found.index).or_default().push(found.place);
        });
        told.failed.into_iter().for_each(|(place, error)| self.note_failure(place, error));
        *known = Known { of, is_asked: true, is_complete: told.is_complete };
    }

    /// Loads a shard's record of a set, and its proof, from any place that gives them.
    fn one(&self, set: u32, index: u32) -> Option<Pieces> {
        let start = self.layout.shard(set);
        let wanted = [start..start + self.layout.shard_len, self.proof(set)];
        let mut tried = Vec::new();
        loop {
            let (places, is_asked) = {
                let known = lock(&self.places);
                let of = known.of.get(&index).cloned().unwrap_or_default();
                let of = of.into_iter().filter(|place| !tried.contains(place) && !self.is_left(*place));
                (of.collect::<Vec<_>>(), !self.lacks(&known))
            };
            match places.first() {
                None if is_asked => return None,
                None => self.ask(),
                Some(place) => {
                    tried.push(*place);
                    match self.from(*place, index, &wanted) {
                        Ok(pieces) => {
                            self.note_came(*place);
                            return Some(pieces);
                        }
                        Err(error) => self.note_failure(*place, error),
                    }
                }
            }
            if self.stored.places.cancel.is_cancelled() {
                return None;
            }
        }
    }

    /// The first copy of the proof of a set in a shard file.
    fn proof(&self, set: u32) -> Range<u64> {
        let at = self.layout.proofs(set)[0];
        at..at + self.layout.proof_len
    }

    /// Bytes of a shard by its leaves, from a place that is known to have it and gives its outline.
    fn leaves(&self, of: &GroupEntry, set: u32, index: u32, bytes: &Range<usize>) -> Option<Vec<u8>> {
        let outlines = Outlines::new(of.geometry.shape())?;
        let (leaves, around) = outlines.around(bytes);
        let shard = self.layout.shard(set);
        let outline = self.layout.file_len + outlines.outline_at(set);
        let wanted = [
            shard + around.start as u64..shard + around.end as u64,
            self.proof(set),
            outline..outline + outlines.outline_len() as u64,
        ];
        let places = lock(&self.places).of.get(&index).cloned().unwrap_or_default();
        places.into_iter().find_map(|place| {
            if self.is_left(place) || lock(&self.plain).contains(&place) {
                return None;
            }
            // Why this fails is told if the whole record cannot be had either.
            let given = self.from(place, index, &wanted).ok();
            let proved = given.and_then(|pieces| {
                let [found, proof, outline] = <[Vec<u8>; 3]>::try_from(pieces).ok()?;
                let (group, at) = ((&of.geometry, &of.tree), (set, index));
                let is_proved = outlines.prove(group, at, (&outline, &proof), leaves.clone(), &found);
                is_proved.then(|| found[bytes.start - around.start..bytes.end - around.start].to_vec())
            });
            match proved.is_some() {
                true => self.note_came(place),
                false => drop(lock(&self.plain).insert(place)),
            }
            proved
        })
    }

    /// Ranges of a shard file from a place, at the same time.
    fn from(&self, place: usize, index: u32, wanted: &Wanted) -> std::result::Result<Pieces, StoreError> {
        let pieces: Vec<_> = wanted.iter().map(|_| Mutex::new(Err(StoreError::GivenUp))).collect();
        let range = |nth: usize| *lock(&pieces[nth]) = self.range(place, index, &wanted[nth]);
        Threads(wanted.len()).run(wanted.len(), &range);
        pieces.into_iter().map(into_value).collect()
    }

    /// A range of a shard file from a place. When it is late, it is requested a second time.
    fn range(&self, place: usize, index: u32, range: &Range<u64>) -> Piece {
        let (started, cancel) = (Instant::now(), self.stored.places.cancel.child());
        let came = [AtomicU64::new(0), AtomicU64::new(0)];
        let all = range.end - range.start;
        std::thread::scope(|scope| {
            let (telling, told): (Sender<Piece>, _) = channel();
            let ask = |came| {
                let (telling, cancel) = (telling.clone(), &cancel);
                spawn_or_do(scope, move || {
                    // A failed send means that the receiver is gone.
                    let _ = telling.send(self.get(place, index, range, cancel, came));
                });
            };
            ask(&came[0]);
            let (mut asked, mut failed) = (1, 0);
            loop {
                let time = started.elapsed();
                let wait = if asked == 1 { self.late.saturating_sub(time) } else { TICK };
                match told.recv_timeout(wait) {
                    // The other request may still succeed.
                    Ok(Err(_)) if failed + 1 < asked => failed += 1,
                    Ok(done) => {
                        cancel.cancel();
                        break done;
                    }
                    Err(_) if asked == 1 => {
                        ask(&came[1]);
                        asked = 2;
                    }
                    Err(_) if came.iter().all(|came| self.crawls(time, came.load(Relaxed), all)) => {
                        lock(&self.crawling).insert(place);
                        cancel.cancel();
                        break Err(StoreError::Unavailable("it is too slow to wait for".into()));
                    }
                    Err(_) => {}
                }
            }
        })
    }

    /// Fetches a range of a shard file.
    fn get(&self, place: usize, index: u32, range: &Range<u64>, cancel: &Cancel, came: &AtomicU64) -> Piece {
        let key = keys::shard(&self.encoding.root, index);
        self.stored.places.retry(place, cancel, |store, call| {
            let mut bytes = Vec::with_capacity((range.end - range.start) as usize);
            let sink = &mut |part: &[u8]| {
                bytes.extend_from_slice(part);
                came.fetch_add(part.len() as u64, Relaxed);
                Ok(())
            };
            store.get(&key, range.clone(), sink, call).map(|()| bytes)
        })
    }
}

impl Records for &StoreRecords<'_> {
    fn load(&self, _group: u32, set: u32, wanted: &[u32], reading: &mut Reading<'_>) -> Vec<Load> {
        let records: Vec<Mutex<Option<Pieces>>> = wanted.iter().map(|_| Mutex::default()).collect();
        let one = |nth: usize| *lock(&records[nth]) = self.one(set, wanted[nth]);
        Threads(wanted.len()).run(wanted.len(), &one);
        let load = |(index, slot): (&u32, Mutex<Option<Pieces>>)| {
            let Some(pieces) = into_value(slot) else { return Load::Missing };
            let (record, proof) = pieces.split_at(1);
            reading.slot(*index).copy_from_slice(&record[0]);
            match reading.check(*index, proof, Run::default()) {
                true => Load::Intact,
                false => Load::Damaged,
            }
        };
        wanted.iter().zip(records).map(load).collect()
    }

    fn load_part(&self, group: &GroupEntry, set: u32, index: u32, bytes: &Range<usize>) -> Option<Vec<u8>> {
        self.leaves(group, set, index, bytes)
    }
}

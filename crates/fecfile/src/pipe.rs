//! A container from a pipe, in constant memory: each group is released once it is proved.
//!
//! One group is open at a time, or two when the first lacks records and the next has begun. A group is decoded as soon
//! as every set has k records; its records that come later are only checked. The chain is that of the first group
//! found; its groups follow one another by their heads. At the end the index, or without one the chain itself, gives
//! the root. Unless a root was asked for, a census of all records that went by tells whether another chain could have
//! been restored as well.

use crate::choose::nothing_found;
use crate::context::Context;
use crate::error::{Error, ErrorKind, Place, Result, WriteFailure};
use crate::forms::container::census::{Census, may_follow};
use crate::forms::container::scan::{ScanEvent, Taken, scan};
use crate::forms::encoded::{GroupEntry, Load, Records};
use crate::io::output::{FileOut, Policy};
use crate::leftovers::Leftovers;
use crate::names::hex;
use crate::report::{Outcome, Restored};
use crate::restore::{PayloadOut, put_in_memory};
use crate::sets::{SetWalk, SpareDecoders, untrue};
use crate::stages::Observed;
use fec_core::digest::Digest;
use fec_core::error::FormatError;
use fec_core::executor::{into_value, lock};
use fec_core::format::container::{Index, RecordHeader};
use fec_core::merkle::Frontier;
use fec_core::params::{FileGeometry, GroupGeometry, Shape};
use fec_core::set::{PlanCache, Reading, Run};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Mutex;

/// A pipe to decode.
pub struct Pipe<'a, R> {
    /// Where bytes come from.
    pub input: R,
    /// What to call it.
    pub place: &'a Path,
    /// It starts like a live stream, which holds no encodings.
    pub is_live: bool,
    /// The root that is asked for. Whether it is there is known only at the end: what went out until then may be another's.
    pub wanted: Option<Digest>,
}

/// Decodes a container from a pipe to a file, which appears when all of it is proved.
///
/// # Errors
/// Those of pipe and file; [`NotWhole`](ErrorKind::NotWhole), [`Cut`](ErrorKind::Cut) and the like.
pub fn to_file<R: Read>(
    pipe: Pipe<'_, R>,
    path: &Path,
    policy: Policy,
    context: &Context<'_>,
) -> Result<Restored> {
    let out = FileOut::create(path, policy)?;
    let fail = |e| out.failure(e);
    let restored = Receiver::new(&pipe, &mut out.file(), &fail, context).run(pipe.input)?;
    out.commit(restored.payload_len.unwrap_or(0))?;
    Ok(restored)
}

/// Decodes a container from a pipe to a writer, named `place` in errors: each group goes out once it is proved by
/// itself, and what is wrong later is reported when it comes.
///
/// # Errors
/// As [`to_file`].
pub fn to_writer<R: Read>(
    pipe: Pipe<'_, R>,
    out: &mut dyn Write,
    place: &Place,
    context: &Context<'_>,
) -> Result<Restored> {
    let fail = |e| Error::io("write", place.clone(), e);
    Receiver::new(&pipe, out, &fail, context).run(pipe.input)
}

/// A group of which records are still wanted.
struct OpenGroup {
    geometry: GroupGeometry,
    root: Digest,
    head: Digest,
    /// k·G·L bytes: the shard kept in place p of set s starts at (p·G + s)·L. Originals stand where the
    /// payload has them, recovery shards where an original is not (yet).
    bytes: Mutex<Vec<u8>>,
    /// For each set and place: the shard that stands there, and its proof.
    kept: Vec<Vec<Option<Kept>>>,
    /// Sets that have fewer than k shards.
    lacking: u32,
}

struct Kept {
    index: u32,
    proof: Vec<u8>,
}

impl OpenGroup {
    fn new(header: &RecordHeader, mut bytes: Vec<u8>) -> OpenGroup {
        let geometry = header.group.geometry;
        let shape = geometry.shape();
        // Bounded by the scanner's limit on groups; pages are touched as records come.
        bytes.resize(shape.capacity() as usize, 0);
        let places = || (0..shape.code.k()).map(|_| None).collect();
        OpenGroup {
            geometry,
            root: header.group.root,
            head: header.group.head,
            bytes: Mutex::new(bytes),
            kept: (0..shape.sets).map(|_| places()).collect(),
            lacking: shape.sets,
        }
    }

    fn add(&mut self, header: &RecordHeader, proof: &[u8], body: &[u8]) {
        let shape = *self.geometry.shape();
        let places = &mut self.kept[header.set as usize];
        if places.iter().flatten().any(|kept| kept.index == header.index) {
            return;
        }
        let own = header.index as usize;
        let place = match places.get(own) {
            Some(None) => Some(own),
            _ => places.iter().rposition(Option::is_none),
        };
        let Some(place) = place else { return };
        places[place] = Some(Kept { index: header.index, proof: proof.to_vec() });
        self.lacking -= u32::from(places.iter().all(Option::is_some));
        let start = (place * shape.sets as usize + header.set as usize) * shape.shard_len;
        let bytes = self.bytes.get_mut().unwrap_or_else(|e| e.into_inner());
        bytes[start..start + shape.shard_len].copy_from_slice(body);
    }
}

impl OpenGroup {
    fn one(&self, set: u32, index: u32, reading: &mut Reading<'_>) -> Load {
        let shape = self.geometry.shape();
        let places = &self.kept[set as usize];
        let found = (0..)
            .zip(places)
            .find_map(|(p, kept)| kept.as_ref().filter(|k| k.index == index).map(|k| (p, k)));
        let Some((place, kept)) = found else { return Load::Missing };
        let start = (place * shape.sets as usize + set as usize) * shape.shard_len;
        reading.slot(index).copy_from_slice(&lock(&self.bytes)[start..start + shape.shard_len]);
        let run = Run { observer: &Observed, ..Run::default() };
        if reading.check(index, &[&kept.proof], run) { Load::Intact } else { Load::Damaged }
    }
}

impl Records for OpenGroup {
    fn load(&self, _group: u32, set: u32, wanted: &[u32], reading: &mut Reading<'_>) -> Vec<Load> {
        wanted.iter().map(|index| self.one(set, *index, reading)).collect()
    }
}

/// The state of one pipe.
struct Receiver<'a> {
    place: &'a Path,
    wanted: Option<Digest>,
    out: &'a mut dyn Write,
    write_failure: &'a WriteFailure<'a>,
    context: &'a Context<'a>,
    plans: PlanCache,
    open: Vec<OpenGroup>,
    /// Memory of the group before.
    spare: Vec<u8>,
    /// Its decoders.
    decoders: SpareDecoders,
    /// The groups that were released.
    released: Vec<Digest>,
    shape: Option<Shape>,
    last: Option<GroupGeometry>,
    heads: Option<Frontier>,
    index: Option<Index>,
    outcome: Outcome,
    leftovers: Leftovers,
    position: u64,
    /// All records and indexes; none when a root was asked for, since others do not matter then.
    census: Option<Census>,
    /// Roots of indexes that are not of this chain, up to [`MAX_OTHERS`].
    others: Vec<Digest>,
}

/// Roots of other chains that are named, at most.
const MAX_OTHERS: usize = 16;

impl<'a> Receiver<'a> {
    fn new<R>(
        pipe: &Pipe<'a, R>,
        out: &'a mut dyn Write,
        write_failure: &'a WriteFailure<'a>,
        context: &'a Context<'a>,
    ) -> Receiver<'a> {
        let mut leftovers = Leftovers::default();
        leftovers.is_live = pipe.is_live;
        Receiver {
            place: pipe.place,
            wanted: pipe.wanted,
            out,
            write_failure,
            context,
            plans: PlanCache::new(context.settings.backend),
            open: Vec::new(),
            spare: Vec::new(),
            decoders: SpareDecoders::default(),
            released: Vec::new(),
            shape: None,
            last: None,
            heads: None,
            index: None,
            outcome: Outcome::default(),
            leftovers,
            position: 0,
            census: pipe.wanted.is_none().then(Census::default),
            others: Vec::new(),
        }
    }

    fn run(mut self, input: impl Read) -> Result<Restored> {
        let meter = self.context.meter("decode", None);
        let (place, max_group) = (self.place, self.context.settings.max_group);
        scan(input, place, max_group, meter.as_ref(), |at, found| self.on(at, found))?;
        meter.finish();
        self.end()
    }

    fn on(&mut self, at: u64, found: ScanEvent<'_>) -> Result<Taken> {
        match found {
            ScanEvent::Record { header, proof, body } => {
                if let Some(census) = &mut self.census {
                    census.add_record(&header, at)?;
                }
                self.record(&header, proof, body).map(|()| Taken::Yes)
            }
            ScanEvent::Index(index) => {
                if let Some(census) = &mut self.census {
                    census.add_index((*index).clone());
                }
                self.index(*index);
                Ok(Taken::Yes)
            }
            ScanEvent::IndexHeader(header) => {
                let is_known = self.index.as_ref().is_some_and(|i| i.root == header.root);
                Ok(if is_known { Taken::Yes } else { Taken::No { hashed: 0 } })
            }
            ScanEvent::Rejected(error) => {
                self.leftovers.reject(|| format!("offset {at}"), error);
                Ok(Taken::No { hashed: 0 })
            }
        }
    }

    fn record(&mut self, header: &RecordHeader, proof: &[u8], body: &[u8]) -> Result<()> {
        let number = header.group.geometry.number();
        let is_same = |g: &OpenGroup| g.root == header.group.root && g.geometry == header.group.geometry;
        if let Some(place) = self.open.iter().position(is_same) {
            self.open[place].add(header, proof, body);
        } else if self.released.get(number as usize) != Some(&header.group.root) && self.continues(header) {
            if self.open.len() == 2 {
                // The first of two open groups lacked records all the while.
                self.release_first()?;
            }
            self.check_memory(header)?;
            let spare = std::mem::take(&mut self.spare);
            self.open.push(OpenGroup::new(header, spare));
            let newest = self.open.len() - 1;
            self.open[newest].add(header, proof, body);
        }
        while self.open.first().is_some_and(|g| g.lacking == 0) {
            self.release_first()?;
        }
        Ok(())
    }

    /// Refuses a group whose shards are so small that their proofs fill the memory.
    fn check_memory(&self, header: &RecordHeader) -> Result<()> {
        let shape = header.group.geometry.shape();
        let kept = shape.proof_len() + size_of::<Option<Kept>>();
        let shards = shape.capacity() / shape.shard_len as u64;
        let need = shape.capacity().saturating_add(shards.saturating_mul(kept as u64));
        let most = self.context.settings.max_memory;
        if need > most {
            return Err(Error::at("decode", self.place, ErrorKind::GroupMemory { need, most }));
        }
        Ok(())
    }

    /// Whether a record opens the next group of this chain.
    fn continues(&mut self, header: &RecordHeader) -> bool {
        let geometry = &header.group.geometry;
        let (next, expected_head) = match (self.open.last(), &self.heads) {
            (None, None) => (0, Some([0; 32])),
            (None, Some(heads)) => (self.released.len() as u32, heads.root()),
            (Some(open), heads) => {
                let hash = geometry.shape().hash;
                let mut heads = heads.clone().unwrap_or_else(|| Frontier::new(hash));
                self.open.iter().for_each(|g| heads.push(g.root));
                (open.geometry.number() + 1, heads.root())
            }
        };
        let after_last = self.last.is_some() || self.open.last().is_some_and(|g| g.geometry.is_last());
        let first_shape = self.shape.or(self.open.first().map(|g| *g.geometry.shape()));
        if geometry.number() != next || Some(header.group.head) != expected_head || after_last {
            return false;
        }
        let fits = first_shape.is_none_or(|shape| may_follow(&shape, geometry));
        if !fits {
            let error = FormatError::NotCanonical("a group is not what the geometry of the payload implies");
            self.leftovers.reject(|| format!("group {next}"), error);
        }
        fits
    }

    /// Decodes the first open group and writes it.
    fn release_first(&mut self) -> Result<()> {
        let group = self.open.remove(0);
        let start = self.shape.map_or(0, |s| u64::from(group.geometry.number()) * s.capacity());
        let entry = GroupEntry { geometry: group.geometry, root: group.root, start };
        let held = 2 * group.geometry.shape().capacity();
        let mut walk = SetWalk::new(self.context, &self.plans);
        walk.budget = walk.budget.saturating_sub(held);
        walk.spare = std::mem::take(&mut self.decoders);
        let put = |offset: u64, bytes: &[u8]| {
            put_in_memory(&group.bytes, offset - start, bytes);
            Ok(())
        };
        let visitor = PayloadOut { put: &put, partial: false };
        let mut done = walk.run(&group, std::slice::from_ref(&entry), &visitor)?;
        self.decoders = walk.spare;
        if let Some(set) = done.untrue.take() {
            return Err(untrue(set));
        }
        if !done.is_whole() {
            let (lost, leftovers) = (Box::new(done.lost), Box::new(self.leftovers.clone()));
            let position = self.position;
            return Err(Error::at("decode", self.place, ErrorKind::NotWhole { position, lost, leftovers }));
        }
        self.outcome.absorb(done);
        let bytes = into_value(group.bytes);
        let payload = &bytes[..group.geometry.payload_len() as usize];
        self.out.write_all(payload).map_err(self.write_failure)?;
        self.position += payload.len() as u64;
        self.shape.get_or_insert(*group.geometry.shape());
        self.heads.get_or_insert_with(|| Frontier::new(group.geometry.shape().hash)).push(group.root);
        self.released.push(group.root);
        if group.geometry.is_last() {
            self.last = Some(group.geometry);
        }
        tracing::debug!("group {} released, head {}", group.geometry.number(), hex(&group.head));
        self.spare = bytes;
        Ok(())
    }

    fn index(&mut self, index: Index) {
        let own = index.group_roots.starts_with(&self.released)
            && (self.released.len()..)
                .zip(&self.open)
                .all(|(i, g)| index.group_roots.get(i) == Some(&g.root));
        let nothing_yet = self.released.is_empty() && self.open.is_empty();
        let wanted = self.wanted;
        // Another index of the same groups never takes the place of one that was found, unless it is the one
        // asked for.
        let own =
            own && self.index.as_ref().is_none_or(|i| i.root == index.root || Some(index.root) == wanted);
        if own && !nothing_yet {
            self.index = Some(index);
        } else if self.others.len() < MAX_OTHERS && !self.others.contains(&index.root) {
            self.others.push(index.root);
        }
    }

    /// The end of the input: the last groups, and the root.
    fn end(mut self) -> Result<Restored> {
        while !self.open.is_empty() {
            self.release_first()?;
        }
        let (Some(shape), Some(last)) = (self.shape, self.last) else {
            if self.released.is_empty() {
                return Err(nothing_found(self.wanted, self.others, self.leftovers));
            }
            let (position, leftovers) = (self.position, Box::new(self.leftovers));
            return Err(Error::at("decode", self.place, ErrorKind::Cut { position, leftovers }));
        };
        let geometry = FileGeometry::of_chain(&shape, &last);
        let root = self.root(&geometry)?;
        if let Some(wanted) = self.wanted.filter(|w| *w != root) {
            return Err(nothing_found(Some(wanted), vec![root], self.leftovers));
        }
        if let Some(census) = &mut self.census {
            let chains = census.chains_found()?;
            let others = chains.iter().filter(|c| c.root != Some(root) && census.is_restorable(c));
            let mut roots = vec![Some(root)];
            roots.extend(others.map(|chain| chain.root));
            if roots.len() > 1 {
                return Err(Error::new("decode", ErrorKind::Ambiguous(roots)));
            }
        }
        let groups = (0..geometry.groups()).map(|g| u64::from(geometry.group(g).shape().sets));
        Ok(Restored {
            root: Some(root),
            name: None,
            payload_len: Some(geometry.payload_len()),
            sets: groups.sum(),
            outcome: self.outcome,
            leftovers: self.leftovers,
            others: self.others.into_iter().filter(|other| *other != root).collect(),
            written: true,
        })
    }

    /// The root of the groups that were released.
    fn root(&self, geometry: &FileGeometry) -> Result<Digest> {
        let tree = self.heads.as_ref().and_then(Frontier::root).unwrap_or([0; 32]);
        match &self.index {
            Some(index) if index.geometry == *geometry && index.group_roots == self.released => {
                Ok(index.root)
            }
            Some(index) => Err(Error::at("decode", self.place, ErrorKind::OtherIndex(index.root))),
            None => Ok(geometry.root(&tree, &[])),
        }
    }
}

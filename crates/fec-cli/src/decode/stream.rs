//! A container from a pipe, in constant memory: each group is released once it is proved.
//!
//! One group is open at a time, or two when the first lacks records and the next has begun. A group is
//! decoded as soon as every set has k records; what comes of it later is only checked. The stream is
//! that of the first group found, and its groups are chained by their heads. At the end the index, or without one the
//! chain itself, tells the root; and unless a root was asked for, the census of all records that went by tells whether
//! another stream could have been restored as well.

use super::{Decoding, MemorySink, Target, open_sequential};
use crate::archive::choose::{ambiguous, nothing_found};
use crate::archive::container::{Census, may_follow};
use crate::archive::scan::{Found, Taken, scan};
use crate::archive::{Encoded, GroupEntry, Leftovers, Load, Records};
use crate::failure::{Exit, Failure, Result, hex, show};
use crate::restore::{Outcome, SpareDecoders};
use crate::stages::Observed;
use crate::sys::output::FileOut;
use fec_core::digest::Digest;
use fec_core::error::FormatError;
use fec_core::format::container::{Index, RecordHeader};
use fec_core::merkle::Frontier;
use fec_core::params::{FileGeometry, GroupGeometry, Shape};
use fec_core::set::{PlanCache, Reading, Run};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Mutex;

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

impl Records for OpenGroup {
    fn load(&self, _group: u32, set: u32, index: u32, reading: &mut Reading<'_>) -> io::Result<Load> {
        let shape = self.geometry.shape();
        let places = &self.kept[set as usize];
        let found = (0..)
            .zip(places)
            .find_map(|(p, kept)| kept.as_ref().filter(|k| k.index == index).map(|k| (p, k)));
        let Some((place, kept)) = found else { return Ok(Load::Missing) };
        let start = (place * shape.sets as usize + set as usize) * shape.shard_len;
        let slot = reading.slot(index);
        {
            let bytes = self.bytes.lock().unwrap_or_else(|e| e.into_inner());
            slot.copy_from_slice(&bytes[start..start + shape.shard_len]);
        }
        let intact = reading.check(index, &[&kept.proof], Run { observer: &Observed, ..Run::default() });
        Ok(if intact { Load::Intact } else { Load::Damaged })
    }
}

/// Puts released groups out.
enum Out {
    File(FileOut),
    Sequential(File),
}

/// The state of one stream.
struct Receiver<'a> {
    decoding: &'a Decoding<'a>,
    path: &'a Path,
    target: &'a Target,
    out: Out,
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
    /// Roots of indexes that are not of this stream, up to [`MAX_OTHERS`].
    others: Vec<Digest>,
}

/// Roots of other streams that are named.
const MAX_OTHERS: usize = 16;

impl Decoding<'_> {
    /// Decodes a pipe as it comes.
    pub(super) fn stream(
        &self,
        path: &Path,
        input: impl Read,
        target: &Target,
        is_live: bool,
    ) -> Result<Exit> {
        let out = match target {
            Target::File(path) => Out::File(FileOut::create(path, self.policy)?),
            _ => Out::Sequential(open_sequential(target)?),
        };
        let mut receiver = Receiver {
            decoding: self,
            path,
            target,
            out,
            plans: PlanCache::new(self.settings.backend),
            open: Vec::new(),
            spare: Vec::new(),
            decoders: SpareDecoders::default(),
            released: Vec::new(),
            shape: None,
            last: None,
            heads: None,
            index: None,
            outcome: Outcome::default(),
            leftovers: Leftovers::default(),
            position: 0,
            census: self.args.root.is_none().then(Census::default),
            others: Vec::new(),
        };
        receiver.leftovers.is_live = is_live;
        let progress = self.settings.progress("decode", None);
        scan(input, path, self.settings.max_group, &progress, |at, found| receiver.on(at, found))?;
        progress.finish();
        receiver.end()
    }
}

impl Receiver<'_> {
    fn on(&mut self, at: u64, found: Found<'_>) -> Result<Taken> {
        match found {
            Found::Record { header, proof, body } => {
                if let Some(census) = &mut self.census {
                    census.add_record(&header, at)?;
                }
                self.record(&header, proof, body).map(|()| Taken::Yes)
            }
            Found::Index(index) => {
                if let Some(census) = &mut self.census {
                    census.add_index((*index).clone());
                }
                self.index(*index);
                Ok(Taken::Yes)
            }
            Found::IndexHeader(header) => {
                let is_known = self.index.as_ref().is_some_and(|i| i.root == header.root);
                Ok(if is_known { Taken::Yes } else { Taken::No { hashed: 0 } })
            }
            Found::Rejected(error) => {
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
        let most = self.decoding.settings.max_memory;
        if need > most {
            let message = format!(
                "decode {}: a group takes {need} bytes with its proofs, --max-memory is {most}",
                show(self.path)
            );
            return Err(Failure::new(Exit::Refused, message)
                .help("save the stream to a file, which takes less, or allow more with --max-memory"));
        }
        Ok(())
    }

    /// Whether a record opens the next group of this stream.
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

    /// Decodes the first open group and puts it out.
    fn release_first(&mut self) -> Result<()> {
        let group = self.open.remove(0);
        let start = self.shape.map_or(0, |s| u64::from(group.geometry.number()) * s.capacity());
        let entry = GroupEntry { geometry: group.geometry, root: group.root, start };
        let decoding = self.decoding;
        let held = 2 * group.geometry.shape().capacity();
        let budget = decoding.settings.max_memory.saturating_sub(held);
        let mut restorer = decoding.restorer(&self.plans, budget);
        restorer.spare = std::mem::take(&mut self.decoders);
        let sink = MemorySink { bytes: &group.bytes, start };
        let done = restorer.run(&group, std::slice::from_ref(&entry), &sink)?;
        self.decoders = restorer.spare;
        if let Some((group, set, error)) = done.untrue {
            return Err(crate::restore::untrue(group, set, error));
        }
        if !done.is_whole() {
            return Err(self.lost(done));
        }
        self.outcome.absorb(done);
        let bytes = group.bytes.into_inner().unwrap_or_else(|e| e.into_inner());
        let payload = &bytes[..group.geometry.payload_len() as usize];
        match &mut self.out {
            Out::File(out) => out.file().write_all(payload).map_err(|e| out.failure(&e))?,
            Out::Sequential(file) => file.write_all(payload).map_err(|e| match self.target {
                Target::Special(path) => Failure::io("write", path, &e),
                _ => Failure::stdout(&e),
            })?,
        }
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

    /// A group that cannot be decoded ends the stream.
    fn lost(&self, done: Outcome) -> Failure {
        let mut listed = String::new();
        done.lost.describe("lost", 20, &mut listed);
        self.leftovers.describe(&mut listed);
        let message = format!(
            "decode {}: the payload cannot be restored from byte {} on\n{listed}",
            show(self.path),
            self.position
        );
        Failure::new(self.leftovers.exit(), message.trim_end())
            .help("save the stream to a file: there --partial writes all that is left")
    }

    fn index(&mut self, index: Index) {
        let own = index.group_roots.starts_with(&self.released)
            && (self.released.len()..)
                .zip(&self.open)
                .all(|(i, g)| index.group_roots.get(i) == Some(&g.root));
        let nothing_yet = self.released.is_empty() && self.open.is_empty();
        let wanted = self.decoding.args.root;
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

    /// The end of the input: the last groups, the root, the report.
    fn end(mut self) -> Result<Exit> {
        while !self.open.is_empty() {
            self.release_first()?;
        }
        let wanted = self.decoding.args.root;
        let (Some(shape), Some(last)) = (self.shape, self.last) else {
            if self.released.is_empty() {
                return Err(nothing_found(wanted, &self.others, &self.leftovers));
            }
            let message = format!(
                "decode {}: it is cut: nothing follows after byte {}",
                show(self.path),
                self.position
            );
            return Err(Failure::new(self.leftovers.exit(), message)
                .help("save the stream to a file: there --partial writes all that is left"));
        };
        let geometry = FileGeometry::of_stream(&shape, &last);
        let tree = self.heads.as_ref().and_then(Frontier::root).unwrap_or([0; 32]);
        let root = match &self.index {
            Some(index) if index.geometry == geometry && index.group_roots == self.released => index.root,
            Some(index) => {
                let message = format!(
                    "decode {}: the index is of root {}, the groups are not",
                    show(self.path),
                    hex(&index.root)
                );
                return Err(Failure::new(Exit::Untrue, message));
            }
            None => geometry.root(&tree, &[]),
        };
        if let Some(wanted) = wanted.filter(|w| *w != root) {
            return Err(nothing_found(Some(wanted), &[root], &self.leftovers));
        }
        if let Some(census) = &mut self.census {
            let streams = census.streams()?;
            let others = streams.iter().filter(|s| s.root != Some(root) && census.is_restorable(s));
            let others: Vec<Option<Digest>> = others.map(|s| s.root).collect();
            if !others.is_empty() {
                return Err(ambiguous(std::iter::once(Some(root)).chain(others)));
            }
        }
        let encoded = Encoded {
            root: Some(root),
            groups: (0..geometry.groups())
                .zip(&self.released)
                .map(|(g, root)| GroupEntry {
                    geometry: geometry.group(g),
                    root: *root,
                    start: geometry.group_start(g),
                })
                .collect(),
            payload_len: Some(geometry.payload_len()),
            name: None,
            records: Box::new(Released),
        };
        if let Out::File(out) = self.out {
            out.commit(geometry.payload_len())?;
        }
        let others: Vec<Digest> = self.others.iter().filter(|r| **r != root).copied().collect();
        self.decoding.finish(&encoded, self.target, self.outcome, &self.leftovers, &others, true)
    }
}

/// The records of groups that were released are gone.
struct Released;

impl Records for Released {
    fn load(&self, _: u32, _: u32, _: u32, _: &mut Reading<'_>) -> io::Result<Load> {
        Ok(Load::Missing)
    }
}

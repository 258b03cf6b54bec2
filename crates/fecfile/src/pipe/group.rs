//! A group of a pipe that still needs records, and the memory or file that holds its shards.

use crate::error::{Action, Error, ErrorKind, Result};
use crate::forms::encoded::{Load, Records};
use crate::restore::put_in_memory;
use fec_base::io::spool::Spool;
use fec_base::program::stages::Observed;
use fec_core::digest::Digest;
use fec_core::executor::lock;
use fec_core::format::container::{GroupId, RecordHeader};
use fec_core::params::{BOUNDED_GROUP_BYTES, Shape};
use fec_core::set::{Reading, Run};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;

/// Storage for the shards of a group until it is decoded, and then for its payload.
pub(super) enum Room {
    /// k·G·L bytes.
    Memory(Mutex<Vec<u8>>),
    /// The same bytes, and behind them the proofs.
    File(Spool),
}

impl Room {
    /// Storage for a group; memory is not allocated yet.
    ///
    /// # Errors
    /// [`SetMemory`](ErrorKind::SetMemory) for sets of more than `most` bytes; those of a temporary file that cannot
    /// hold the group.
    pub(super) fn new(place: &Path, shape: &Shape, most: u64) -> Result<Room> {
        let need = shape.set_bytes();
        if need > most {
            return Err(Error::at(Action::Decode, place, ErrorKind::SetMemory { need, most }));
        }
        if need.saturating_mul(shape.sets.into()) <= BOUNDED_GROUP_BYTES {
            return Ok(Room::Memory(Mutex::default()));
        }
        let shards = u64::from(shape.sets) * shape.code.k() as u64;
        let proofs = shards.saturating_mul(shape.proof_len() as u64);
        let file = Spool::new()?;
        // A file system without enough room fails here, and not at the first record.
        file.set_len(shape.capacity().saturating_add(proofs))?;
        Ok(Room::File(file))
    }
}

/// A group that still needs records.
///
/// The shard kept in place p of set s starts at (p·G + s)·L. Originals stand where the payload has them, recovery
/// shards where an original is not (yet).
pub(super) struct OpenGroup {
    pub(super) id: GroupId,
    /// X, the tree of its sets.
    pub(super) tree: Digest,
    pub(super) room: Room,
    /// For each set with any record, and each place in it: the shard kept there.
    kept: BTreeMap<u32, Vec<Option<Kept>>>,
    /// Sets that have fewer than k shards.
    pub(super) lacking: u32,
}

/// A shard of an open group.
struct Kept {
    index: u8,
    /// Empty if the proof is in the file.
    proof: Box<[u8]>,
}

impl OpenGroup {
    /// A group without records; `spare` is memory that it may use.
    pub(super) fn new(id: GroupId, tree: Digest, mut room: Room, mut spare: Vec<u8>) -> OpenGroup {
        let shape = id.geometry.shape();
        if let Room::Memory(bytes) = &mut room {
            spare.clear();
            spare.resize(shape.capacity() as usize, 0);
            *bytes = Mutex::new(spare);
        }
        OpenGroup { id, tree, room, kept: BTreeMap::new(), lacking: shape.sets }
    }

    /// The number of a place, counted over all sets of the group.
    fn ordinal(&self, set: u32, place: usize) -> u64 {
        place as u64 * u64::from(self.id.geometry.shape().sets) + u64::from(set)
    }

    /// Keeps a shard, unless it is here already or its set needs no more.
    pub(super) fn add(&mut self, header: &RecordHeader, proof: &[u8], body: &[u8]) -> Result<()> {
        let shape = *self.id.geometry.shape();
        let k = shape.code.k();
        let places = self.kept.entry(header.set).or_insert_with(|| (0..k).map(|_| None).collect());
        if places.iter().flatten().any(|kept| u32::from(kept.index) == header.index) {
            return Ok(());
        }
        let own = header.index as usize;
        let place = match places.get(own) {
            Some(None) => Some(own),
            _ => places.iter().rposition(Option::is_none),
        };
        let Some(place) = place else { return Ok(()) };
        let in_memory = matches!(self.room, Room::Memory(_));
        let kept = if in_memory { proof.into() } else { Box::default() };
        places[place] = Some(Kept { index: header.index as u8, proof: kept });
        self.lacking -= u32::from(places.iter().all(Option::is_some));
        let ordinal = self.ordinal(header.set, place);
        let start = ordinal * shape.shard_len as u64;
        match &mut self.room {
            Room::Memory(bytes) => {
                let bytes = bytes.get_mut().unwrap_or_else(|e| e.into_inner());
                bytes[start as usize..][..shape.shard_len].copy_from_slice(body);
                Ok(())
            }
            Room::File(file) => {
                file.put(start, body)?;
                file.put(shape.capacity() + ordinal * proof.len() as u64, proof)
            }
        }
    }

    /// Loads a shard into its slot.
    fn one(&self, set: u32, index: u32, reading: &mut Reading<'_>) -> Load {
        let shape = self.id.geometry.shape();
        let Some(places) = self.kept.get(&set) else { return Load::Missing };
        let found = (0..)
            .zip(places)
            .find_map(|(p, kept)| kept.as_ref().filter(|k| u32::from(k.index) == index).map(|k| (p, k)));
        let Some((place, kept)) = found else { return Load::Missing };
        let ordinal = self.ordinal(set, place);
        let start = ordinal * shape.shard_len as u64;
        let mut from_file = Vec::new();
        let proof = match &self.room {
            Room::Memory(bytes) => {
                reading.slot(index).copy_from_slice(&lock(bytes)[start as usize..][..shape.shard_len]);
                &kept.proof[..]
            }
            Room::File(file) => {
                from_file.resize(shape.proof_len(), 0);
                let at = shape.capacity() + ordinal * shape.proof_len() as u64;
                let read = file.get(start, reading.slot(index)).and_then(|()| file.get(at, &mut from_file));
                if let Err(e) = read {
                    return Load::Unreadable(e);
                }
                &from_file
            }
        };
        let run = Run { observer: &Observed, ..Run::default() };
        if reading.check(index, &[proof], run) { Load::Intact } else { Load::Damaged }
    }

    /// Writes payload to its place in the group.
    pub(super) fn put(&self, at: u64, bytes: &[u8]) -> Result<()> {
        match &self.room {
            Room::Memory(room) => {
                put_in_memory(room, at, bytes);
                Ok(())
            }
            Room::File(file) => file.put(at, bytes),
        }
    }
}

impl Records for OpenGroup {
    fn load(&self, _group: u32, set: u32, wanted: &[u32], reading: &mut Reading<'_>) -> Vec<Load> {
        wanted.iter().map(|index| self.one(set, *index, reading)).collect()
    }

    fn present(&self, _group: u32, _sets: u32) -> Vec<Range<u32>> {
        self.kept.keys().map(|set| *set..*set + 1).collect()
    }
}

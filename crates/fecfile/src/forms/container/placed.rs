//! Writes a container of a single group, however large, to an object in which every record has its place.
//!
//! Workers put bodies and set paths at their places, in any order of sets. Once all sets are done, every record's
//! header gets the group path, the root and the checksum.

use super::copies::{Copies, annex_of};
use crate::error::{Action, Error, Result};
use crate::forms::encode_job::{
    EncodeJob, Nowhere, PayloadSets, SetSink, SetSource, ShardsOfSet, SpareRooms,
};
use crate::payload::Payload;
use fec_base::context::{Context, Gauge};
use fec_base::io::NewObjects;
use fec_base::program::stages::{self, Stage};
use fec_base::threads::Threads;
use fec_core::digest::Digest;
use fec_core::executor::{Executor, into_value, lock};
use fec_core::format::container::{GroupId, HEADER_LEN, Index, RecordHeader};
use fec_core::merkle::Tree;
use fec_core::params::{FileGeometry, GroupGeometry};
use std::io::{self, IoSlice};
use std::sync::Mutex;

/// Number of the written object.
const OBJECT: usize = 0;

/// A group whose records have their places.
struct PlacedGroup<'a> {
    out: &'a dyn NewObjects,
    /// Offset of the first record.
    start: u64,
    /// The group; its root is filled in last.
    id: GroupId,
    /// Copies of the meta between its records.
    copies: Copies,
}

impl PlacedGroup<'_> {
    fn place(&self, set: u32, index: usize) -> u64 {
        self.start
            + self.copies.shift(index as u64)
            + self.id.ordinal(set, index as u32) * self.id.record_len()
    }

    fn header(&self, set: u32, index: usize) -> RecordHeader {
        RecordHeader { set, index: index as u32, group: self.id }
    }

    /// Completes the header of a record. `head` is scratch space of the header's length.
    fn finish(&self, set: u32, index: usize, tree: &Tree, head: &mut [u8]) -> io::Result<()> {
        let shape = self.id.geometry.shape();
        let at = self.place(set, index);
        let read = self.out.read_back(OBJECT, at, head)?;
        if read < head.len() || !RecordHeader::is_sealed(head) {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "what was written is not there any more",
            ));
        }
        tree.write_path(
            set as usize,
            &mut head[HEADER_LEN + shape.set_path_len()..HEADER_LEN + shape.proof_len()],
        );
        self.header(set, index).seal(head);
        self.out.write_at(OBJECT, at, &mut [IoSlice::new(head)])
    }

    fn finish_all(&self, tree: &Tree, threads: Threads) -> Result<()> {
        let shape = self.id.geometry.shape();
        let first_error: Mutex<Option<io::Error>> = Mutex::new(None);
        threads.run(shape.code.n(), &|index| {
            let mut head = vec![0; self.id.record_head_len()];
            let mut finish = |set| self.finish(set, index, tree, &mut head);
            if let Err(e) = (0..shape.sets).try_for_each(&mut finish) {
                lock(&first_error).get_or_insert(e);
            }
        });
        into_value(first_error).map_or(Ok(()), |e| Err(Error::io(Action::Write, self.out.place(), e)))
    }
}

impl SetSink for PlacedGroup<'_> {
    /// Writes records with their set paths. The checksum of each preliminary header lets
    /// [`finish`](PlacedGroup::finish) detect changed bytes.
    fn write(&self, first: u32, sets: &[ShardsOfSet]) -> Result<()> {
        let shape = self.id.geometry.shape();
        let head_len = self.id.record_head_len();
        let mut heads = vec![0; sets.len() * head_len];
        for index in 0..shape.code.n() {
            for ((number, set), head) in (first..).zip(sets).zip(heads.chunks_exact_mut(head_len)) {
                head.fill(0);
                set.write_path(index, &mut head[HEADER_LEN..HEADER_LEN + shape.set_path_len()]);
                self.header(number, index).seal(head);
            }
            let records = sets.iter().zip(heads.chunks_exact(head_len));
            let mut parts: Vec<IoSlice> = records
                .flat_map(|(set, head)| [IoSlice::new(head), IoSlice::new(set.shard(index))])
                .collect();
            let _stage = stages::enter(Stage::Write, (sets.len() * shape.shard_len) as u64);
            self.out
                .write_at(OBJECT, self.place(first, index), &mut parts)
                .map_err(|e| Error::io(Action::Write, self.out.place(), e))?;
        }
        Ok(())
    }
}

/// Writes a whole container, with meta bytes `meta` and their frame `front`; returns its root and its length in bytes.
pub(crate) fn write(
    payload: &dyn Payload,
    geometry: &GroupGeometry,
    (meta, front): (&[u8], &[u8]),
    out: &dyn NewObjects,
    context: &Context<'_>,
) -> Result<(Digest, u64)> {
    let meter = context.meter(Action::Encode, Some(payload.size()));
    let id = GroupId { geometry: *geometry, root: [0; 32], before: geometry.shape().hash.digest(meta) };
    let source = PayloadSets { payload, group: *geometry, start: 0 };
    let place =
        GroupPlace { start: front.len() as u64, copies: Copies::of(geometry.shape(), meta, front.len()) };
    let (id, tree) = group((&source, &SpareRooms::default()), id, out, place, &meter, context)?;
    place.put_copies(&id, front, out)?;
    let end = place.end(&id);
    let len = ends(FileGeometry::of_only(geometry), vec![tree], (meta, front), out, end)?;
    // The payload must not have changed while the last sets were read.
    payload.check_unchanged()?;
    meter.finish();
    Ok((id.root, len))
}

/// The root and the length of what [`write`] would write, without writing it.
pub(crate) fn root(
    payload: &dyn Payload,
    geometry: &GroupGeometry,
    (meta, front): (&[u8], &[u8]),
    context: &Context<'_>,
) -> Result<(Digest, u64)> {
    let meter = context.meter(Action::Encode, Some(payload.size()));
    let before = geometry.shape().hash.digest(meta);
    let source = PayloadSets { payload, group: *geometry, start: 0 };
    let spare = SpareRooms::default();
    let tree = EncodeJob::new((&source, &spare), geometry, &Nowhere, &meter, context).run()?;
    payload.check_unchanged()?;
    meter.finish();
    let index = Index::new(FileGeometry::of_only(geometry), vec![tree.root()], meta);
    let id = GroupId { geometry: *geometry, root: index.header.root, before };
    let place =
        GroupPlace { start: front.len() as u64, copies: Copies::of(geometry.shape(), meta, front.len()) };
    let len = place.end(&id) + index.to_bytes(meta).len() as u64;
    Ok((index.header.root, len))
}

/// Place of a group.
#[derive(Clone, Copy)]
pub(super) struct GroupPlace {
    /// Offset of its first record.
    pub(super) start: u64,
    /// Copies of the meta between its records.
    pub(super) copies: Copies,
}

impl GroupPlace {
    /// The end of its last record.
    pub(super) fn end(&self, id: &GroupId) -> u64 {
        self.start + id.group_len() + self.copies.total()
    }

    /// Writes the copies of the meta frame `front`.
    pub(super) fn put_copies(&self, id: &GroupId, front: &[u8], out: &dyn NewObjects) -> Result<()> {
        let annex = annex_of(front);
        for nth in 1..=self.copies.count() {
            let index = self.copies.shard(nth);
            let at = self.start
                + id.ordinal(0, index as u32) * id.record_len()
                + (nth - 1) * self.copies.each_len();
            let written = out.write_at(OBJECT, at, &mut [IoSlice::new(&annex)]);
            written.map_err(|e| Error::io(Action::Write, out.place(), e))?;
        }
        Ok(())
    }
}

/// Writes the records of a group to their places. All of `id` but the root is known before; returns it with its root,
/// and X.
pub(super) fn group(
    source: (&dyn SetSource, &SpareRooms),
    id: GroupId,
    out: &dyn NewObjects,
    GroupPlace { start, copies }: GroupPlace,
    meter: &Gauge<'_>,
    context: &Context<'_>,
) -> Result<(GroupId, Digest)> {
    let geometry = id.geometry;
    let mut group = PlacedGroup { out, start, id, copies };
    let tree = EncodeJob::new(source, &geometry, &group, meter, context).run()?;
    group.id.root = geometry.root(&tree.root(), &id.before);
    let _stage = stages::enter(Stage::Write, 0);
    group.finish_all(&tree, Threads(context.settings.threads))?;
    Ok((group.id, tree.root()))
}

/// Writes the parts around the records, which end at `end`: the meta frame `front`, and the index over the groups with
/// these trees. Returns the length of the container in bytes.
pub(super) fn ends(
    geometry: FileGeometry,
    trees: Vec<Digest>,
    (meta, front): (&[u8], &[u8]),
    out: &dyn NewObjects,
    end: u64,
) -> Result<u64> {
    let index = Index::new(geometry, trees, meta).to_bytes(meta);
    let _stage = stages::enter(Stage::Write, index.len() as u64);
    let put = |at, bytes: &[u8]| out.write_at(OBJECT, at, &mut [IoSlice::new(bytes)]);
    put(end, &index).and_then(|()| put(0, front)).map_err(|e| Error::io(Action::Write, out.place(), e))?;
    Ok(end + index.len() as u64)
}

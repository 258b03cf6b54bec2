//! Writes a container from a payload or a pipe, in constant memory.
//!
//! Three stages pass two group buffers around: a reader fills one while the other is encoded and written. A group is
//! written when the next byte of the payload, or its end, was seen: only then is it known whether the group is the
//! last. So the bytes are the same for a pipe and a file.

use super::copies::{Copies, annex_of};
use crate::context::{Context, Meter};
use crate::error::{Error, ErrorKind, Result, WriteFailure};
use crate::payload::Source;
use crate::report::Written;
use crate::stages::{self, Observed, Stage};
use crate::threads::{Threads, no_thread};
use fec_core::block::ShardBuf;
use fec_core::digest::Digest;
use fec_core::format::container::{GroupId, HEADER_LEN, Index, MetaFrame, RecordHeader};
use fec_core::merkle::Tree;
use fec_core::params::{ContainerLayout, GroupGeometry, MAX_COUNT};
use fec_core::set::{EncodedSet, Run, SetEncoder};
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, channel};

/// One group on its way through the stages; its memory is used again for later groups.
struct Group {
    /// The piece of payload as one row: original i of set s starts at (i·G + s)·L.
    piece: ShardBuf,
    encoded: Vec<EncodedSet>,
    geometry: GroupGeometry,
}

impl Group {
    fn new(layout: &ContainerLayout) -> Group {
        let shape = layout.shape();
        Group {
            piece: ShardBuf::new(1, layout.piece_len() as usize),
            encoded: (0..shape.sets).map(|_| EncodedSet::new(shape)).collect(),
            geometry: layout.group(0, 0, true),
        }
    }
}

/// Encodes `source` to `out`.
pub(crate) fn write(
    mut source: Source<'_>,
    out: &mut (impl Write + Send),
    write_failure: &WriteFailure<'_>,
    layout: &ContainerLayout,
    meta: &[u8],
    context: &Context<'_>,
) -> Result<Written> {
    let (free_tx, free_rx) = channel();
    let (full_tx, full_rx) = channel();
    let (coded_tx, coded_rx) = channel();
    let (shape, settings) = (layout.shape(), &context.settings);
    stages::tell_work(shape.code, shape.hash, settings.backend);
    let encoder = SetEncoder::new(shape.code, shape.hash, settings.backend);
    let threads = Threads(settings.threads);
    let meter = context.meter("encode", source.size());
    let counter = meter.as_ref();
    let (read, written) = std::thread::scope(|scope| {
        // Buffers come back from the writer; the second is made only when there is a second group.
        let thread = || std::thread::Builder::new();
        let reader = thread().spawn_scoped(scope, move || {
            let _thread = stages::thread(Stage::Other);
            let result = read_groups(layout, &mut source, &free_rx, full_tx);
            result.and_then(|()| source.check_unchanged())
        });
        let reader = reader.map_err(no_thread)?;
        let writer = thread().spawn_scoped(scope, || {
            write_groups(layout, meta, coded_rx, free_tx, out, write_failure, counter)
        });
        // The reader ends too: nobody takes what it has read.
        let writer = writer.map_err(no_thread)?;
        for mut group in waited_for(&full_rx) {
            encode_group(&encoder, &mut group, threads);
            if coded_tx.send(group).is_err() {
                break;
            }
        }
        drop(coded_tx);
        let _stage = stages::enter(Stage::Wait, 0);
        Ok((join(reader), join(writer)))
    })?;
    // A writer that failed stops the reader too, which then has nothing to report.
    let ((geometry, trees), records_bytes) = match (read, written) {
        (Ok(()), Ok(written)) => written,
        (_, Err(Some(error))) | (Err(error), _) => return Err(error),
        (Ok(()), Err(None)) => return Err(write_failure(io::ErrorKind::Interrupted.into())),
    };
    let index = Index::new(geometry, trees, meta);
    let bytes = index.to_bytes(meta);
    out.write_all(&bytes).and_then(|()| out.flush()).map_err(write_failure)?;
    meter.finish();
    let output_bytes = records_bytes + bytes.len() as u64;
    Ok(Written { geometry: index.header.geometry, root: index.header.root, output_bytes })
}

/// What comes through a channel, until its other end is gone.
fn waited_for<T>(channel: &Receiver<T>) -> impl Iterator<Item = T> {
    std::iter::from_fn(|| {
        let _stage = stages::enter(Stage::Wait, 0);
        channel.recv().ok()
    })
}

fn join<T>(handle: std::thread::ScopedJoinHandle<'_, T>) -> T {
    handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Cuts the payload into groups.
fn read_groups(
    layout: &ContainerLayout,
    source: &mut Source<'_>,
    free: &Receiver<Group>,
    full: Sender<Group>,
) -> Result<()> {
    /// Groups in flight: one is filled while the other is encoded and written.
    const IN_FLIGHT: u64 = 2;
    let mut number = 0u64;
    // The byte that showed that the group before was not the last.
    let mut first = [0u8; 1];
    let mut offset = 0;
    let mut read = |out: &mut [u8]| -> Result<usize> {
        let _stage = stages::enter(Stage::Read, 0);
        let len = source.read(offset, out)?;
        // Not the room for them, which is that of a whole group.
        stages::add_bytes(len as u64);
        offset += len as u64;
        Ok(len)
    };
    let mut have = read(&mut first)?;
    loop {
        if number >= MAX_COUNT {
            return Err(Error::new("encode", ErrorKind::ManyGroups(MAX_COUNT)));
        }
        let mut group = match number {
            0..IN_FLIGHT => Group::new(layout),
            // The writer is gone when it failed, and reports why itself.
            _ => match waited_for(free).next() {
                Some(group) => group,
                None => return Ok(()),
            },
        };
        let piece = group.piece.row_mut(0);
        piece[..have].copy_from_slice(&first[..have]);
        let len = if have == 0 { 0 } else { have + read(&mut piece[have..])? };
        have = if len < piece.len() { 0 } else { read(&mut first)? };
        let last = have == 0;
        group.geometry = layout.group(number as u32, len as u64, last);
        // The padding ends with the capacity, which may lie behind what a short group uses.
        let capacity = (group.geometry.shape().capacity() as usize).min(piece.len());
        piece[len..capacity].fill(0);
        if full.send(group).is_err() || last {
            return Ok(());
        }
        number += 1;
    }
}

/// Fills recovery shards and trees.
fn encode_group(encoder: &SetEncoder, group: &mut Group, threads: Threads) {
    let shape = *group.geometry.shape();
    let (k, sets, len) = (shape.code.k(), shape.sets as usize, shape.shard_len);
    let piece = group.piece.row(0);
    let run = Run { executor: &threads, observer: &Observed };
    for (set, encoded) in group.encoded.iter_mut().take(sets).enumerate() {
        let originals: Vec<&[u8]> = (0..k).map(|i| &piece[(i * sets + set) * len..][..len]).collect();
        encoder.encode(set as u32, &originals, encoded, run);
    }
}

/// The meta frame, if there is meta.
pub(crate) fn front(layout: &ContainerLayout, meta: &[u8]) -> Vec<u8> {
    if meta.is_empty() { Vec::new() } else { MetaFrame::to_bytes(layout.shape(), meta) }
}

/// What the writer knows at the end: P, the trees of the groups, and the bytes written.
type Groups = ((fec_core::params::FileGeometry, Vec<Digest>), u64);

/// Writes the records of each group, in order.
///
/// # Errors
/// The error of a write; `None` when the stages before it ended without a last group.
fn write_groups(
    layout: &ContainerLayout,
    meta: &[u8],
    coded: Receiver<Group>,
    free: Sender<Group>,
    out: &mut impl Write,
    write_failure: &WriteFailure<'_>,
    meter: &dyn Meter,
) -> std::result::Result<Groups, Option<Error>> {
    let _thread = stages::thread(Stage::Other);
    let hash = layout.shape().hash;
    let mut before = hash.digest(meta);
    let mut trees = Vec::new();
    let front = front(layout, meta);
    out.write_all(&front).map_err(|e| Some(write_failure(e)))?;
    let mut written = front.len() as u64;
    let mut copies = Copies::of(layout.shape(), meta, front.len());
    let copy = annex_of(&front);
    let mut set_tree = Tree::new();
    let mut record = Vec::new();
    for group in waited_for(&coded) {
        let shape = group.geometry.shape();
        let sets = shape.sets as usize;
        set_tree.leaves_mut().extend(group.encoded[..sets].iter().map(EncodedSet::root));
        let tree = set_tree.build(hash);
        let id = GroupId { geometry: group.geometry, root: group.geometry.root(&tree, &before), before };
        let stage = stages::enter(Stage::Write, id.group_len());
        let mut put = |bytes: &[u8]| out.write_all(bytes).map_err(|e| Some(write_failure(e)));
        record.resize(id.record_head_len(), 0);
        for index in 0..shape.code.n() {
            if copies.is_before(index as u64) {
                put(&copy)?;
            }
            for set in 0..sets {
                let proof = &mut record[HEADER_LEN..][..shape.proof_len()];
                let (set_path, group_path) = proof.split_at_mut(shape.set_path_len());
                group.encoded[set].write_path(index, set_path);
                set_tree.write_path(set, group_path);
                RecordHeader { set: set as u32, index: index as u32, group: id }.seal(&mut record);
                put(&record)?;
                match index.checked_sub(shape.code.k()) {
                    None => {
                        put(&group.piece.row(0)[(index * sets + set) * shape.shard_len..][..shape.shard_len])?
                    }
                    Some(recovery) => put(group.encoded[set].recovery().row(recovery))?,
                }
            }
        }
        written += id.group_len() + copies.total();
        // Copies stand in group 0 alone: without that group nothing is whole.
        copies = Copies::NONE;
        before = id.root;
        trees.push(tree);
        out.flush().map_err(|e| Some(write_failure(e)))?;
        drop(stage);
        meter.add(group.geometry.payload_len());
        if group.geometry.is_last() {
            let refused = |e| Some(Error::new("encode", ErrorKind::Format(e)));
            return Ok(((layout.file(&group.geometry).map_err(refused)?, trees), written));
        }
        // The reader may have ended already.
        let _ = free.send(group);
    }
    Err(None)
}

//! A container from a file or a pipe, in constant memory.
//!
//! Three stages pass two group buffers around: a reader fills one while the other is encoded and
//! written. A group leaves when the next byte, or the end, of the payload is seen, so that it is known
//! whether it is the last; so the bytes are the same for a pipe and a file.

use super::{Work, Written, read_full};
use crate::failure::{Exit, Failure, Result};
use crate::progress::Progress;
use crate::stages::{self, Observed, Stage};
use crate::sys::source::Source;
use crate::sys::threads::Threads;
use fec_core::block::ShardBuf;
use fec_core::digest::Digest;
use fec_core::format::container::{GroupId, HEADER_LEN, Index, RecordHeader};
use fec_core::format::meta::Meta;
use fec_core::merkle::{Frontier, Tree};
use fec_core::params::{ContainerLayout, GroupGeometry, MAX_GROUPS};
use fec_core::set::{EncodedSet, Run, SetEncoder};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Bytes that small records are gathered in before they are written.
pub(super) const WRITE_BUFFER: usize = 256 << 10;

/// Where the payload comes from.
pub(super) enum Payload<'a> {
    File { source: &'a Source, at: u64 },
    Stream { file: &'a File, path: &'a Path },
}

impl Payload<'_> {
    /// Fills `out` as far as there are bytes.
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        let _stage = stages::enter(Stage::Read, out.len() as u64);
        match self {
            Payload::File { source, at } => {
                let len = (source.len() - *at).min(out.len() as u64) as usize;
                source.read_at(*at, &mut out[..len])?;
                *at += len as u64;
                Ok(len)
            }
            Payload::Stream { file, path } => read_full(file, out).map_err(|e| Failure::io("read", path, &e)),
        }
    }

    fn check_unchanged(&self) -> Result<()> {
        match self {
            Payload::File { source, .. } => source.check_unchanged(),
            Payload::Stream { .. } => Ok(()),
        }
    }
}

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

/// Encodes `payload` to `out`.
pub(super) fn write(
    work: &Work,
    layout: &ContainerLayout,
    mut payload: Payload,
    out: &mut (impl Write + Send),
    write_failure: &(dyn Fn(&io::Error) -> Failure + Sync),
    progress: &Progress,
) -> Result<Written> {
    let (free_tx, free_rx) = channel();
    let (full_tx, full_rx) = channel();
    let (coded_tx, coded_rx) = channel();
    stages::tell_work(work.code, work.hash, work.settings.backend);
    let encoder = SetEncoder::new(work.code, work.hash, work.settings.backend);
    let threads = Threads(work.settings.threads);
    let (read, written) = std::thread::scope(|scope| {
        // Buffers come back from the writer; the second is made only when there is a second group.
        let reader = scope.spawn(move || {
            let _thread = stages::thread(Stage::Other);
            let result = read_groups(layout, &mut payload, &free_rx, full_tx);
            result.and_then(|()| payload.check_unchanged())
        });
        let writer =
            scope.spawn(|| write_groups(work, layout, coded_rx, free_tx, out, write_failure, progress));
        for mut group in waited_for(&full_rx) {
            encode_group(&encoder, &mut group, threads);
            if coded_tx.send(group).is_err() {
                break;
            }
        }
        drop(coded_tx);
        let _stage = stages::enter(Stage::Wait, 0);
        (join(reader), join(writer))
    });
    // A writer that failed stops the reader too, which then has nothing to tell.
    let ((geometry, group_roots), records_bytes) = match (read, written) {
        (Ok(()), Ok(written)) => written,
        (_, Err(Some(failure))) | (Err(failure), _) => return Err(failure),
        (Ok(()), Err(None)) => return Err(write_failure(&io::ErrorKind::Interrupted.into())),
    };
    let index = Index::new(geometry, group_roots, Meta::default());
    let bytes = index.to_bytes();
    out.write_all(&bytes).and_then(|()| out.flush()).map_err(|e| write_failure(&e))?;
    let output_bytes = records_bytes + bytes.len() as u64;
    Ok(Written { geometry: index.geometry, root: index.root, output_bytes })
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
    payload: &mut Payload,
    free: &Receiver<Group>,
    full: Sender<Group>,
) -> Result<()> {
    /// Groups in flight: one is filled while the other is encoded and written.
    const IN_FLIGHT: u64 = 2;
    let mut number = 0u64;
    // The byte that showed that the group before was not the last.
    let mut first = [0u8; 1];
    let mut have = payload.read(&mut first)?;
    loop {
        if number >= MAX_GROUPS {
            let message = format!("encode: the payload has more than {MAX_GROUPS} groups");
            return Err(Failure::new(Exit::Refused, message).help("a larger --set-size makes fewer groups"));
        }
        let mut group = match number {
            0..IN_FLIGHT => Group::new(layout),
            // The writer is gone when it failed, and tells why itself.
            _ => match waited_for(free).next() {
                Some(group) => group,
                None => return Ok(()),
            },
        };
        let piece = group.piece.row_mut(0);
        piece[..have].copy_from_slice(&first[..have]);
        let len = if have == 0 { 0 } else { have + payload.read(&mut piece[have..])? };
        have = if len < piece.len() { 0 } else { payload.read(&mut first)? };
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

/// What the writer knows at the end: P, the group roots, and the bytes written.
type Stream = ((fec_core::params::FileGeometry, Vec<Digest>), u64);

/// Writes the records of each group, in order.
///
/// # Errors
/// The failure of a write; `None` when the stages before it ended without a last group.
fn write_groups(
    work: &Work,
    layout: &ContainerLayout,
    coded: Receiver<Group>,
    free: Sender<Group>,
    out: &mut impl Write,
    write_failure: &(dyn Fn(&io::Error) -> Failure + Sync),
    progress: &Progress,
) -> std::result::Result<Stream, Option<Failure>> {
    let _thread = stages::thread(Stage::Other);
    let mut heads = Frontier::new(work.hash);
    let mut roots = Vec::new();
    let mut written = 0;
    let mut set_tree = Tree::new();
    let mut record = Vec::new();
    for group in waited_for(&coded) {
        let shape = group.geometry.shape();
        let sets = shape.sets as usize;
        set_tree.leaves_mut().extend(group.encoded[..sets].iter().map(EncodedSet::root));
        let root = group.geometry.root(&set_tree.build(work.hash));
        let id = GroupId { geometry: group.geometry, root, head: heads.root().unwrap_or([0; 32]) };
        let stage = stages::enter(Stage::Write, id.group_len());
        let mut put = |bytes: &[u8]| out.write_all(bytes).map_err(|e| Some(write_failure(&e)));
        record.resize(id.record_head_len(), 0);
        for index in 0..shape.code.n() {
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
        written += id.group_len();
        heads.push(root);
        roots.push(root);
        out.flush().map_err(|e| Some(write_failure(&e)))?;
        drop(stage);
        progress.add(group.geometry.payload_len());
        if group.geometry.is_last() {
            return Ok(((layout.file(&group.geometry), roots), written));
        }
        // The reader may have ended already.
        let _ = free.send(group);
    }
    Err(None)
}

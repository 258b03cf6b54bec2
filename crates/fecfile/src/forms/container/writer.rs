//! Writes a container from a payload or a pipe, in constant memory.
//!
//! Three stages pass two group buffers around: a reader fills the first while the second is encoded and written. A
//! group is written only when the next byte or the end of the payload was seen, which shows whether the group is the
//! last. The bytes are therefore the same for a pipe and a file. With a single thread the stages take turns.
//!
//! The memory of the first group grows with what is read, so a small payload costs what it is; a payload of one group
//! is written without further threads for the stages.

use super::copies::{Copies, annex_of};
use crate::error::{Action, EncodingError, Error, ErrorKind, Result, WriteFailure};
use crate::payload::Source;
use crate::report::Written;
use fec_base::context::{Context, Gauge};
use fec_base::program::stages::{self, Observed, Stage};
use fec_base::threads::{Threads, no_thread};
use fec_core::block::ShardBuf;
use fec_core::digest::Digest;
use fec_core::format::container::{GroupId, HEADER_LEN, Index, MetaFrame, RecordHeader};
use fec_core::merkle::Tree;
use fec_core::params::{ContainerLayout, FileGeometry, GroupGeometry, LINE, MAX_COUNT};
use fec_core::set::{EncodedSet, Run, SetEncoder};
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, channel};

/// Bytes of payload for which a first group has room at first, if nobody knows how many there are.
const LEAST_ROOM: u64 = 32 << 10;
/// The first group's room grows by this factor: few bytes are copied, and little room is taken in vain.
const GROWTH: usize = 32;

/// A group on its way through the stages. Later groups reuse its memory.
struct Group {
    /// The piece of payload as one row: original i of set s starts at (i·G + s)·L.
    piece: ShardBuf,
    /// Made when the first group is encoded, for its shape: no later group has longer shards.
    encoded: Vec<EncodedSet>,
    geometry: GroupGeometry,
}

impl Group {
    fn new(layout: &ContainerLayout, room: usize) -> Group {
        Group { piece: ShardBuf::new(1, room), encoded: Vec::new(), geometry: layout.group(0, 0, true) }
    }

    /// Gives the piece more room, and keeps its first `len` bytes.
    fn grow(&mut self, len: usize, room: usize) {
        let mut grown = ShardBuf::new(1, room);
        grown.row_mut(0)[..len].copy_from_slice(&self.piece.row(0)[..len]);
        self.piece = grown;
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
    let (shape, settings) = (layout.shape(), &context.settings);
    stages::tell_work(shape.code, shape.hash, settings.backend);
    let encoder = SetEncoder::new(shape.code, shape.hash, settings.backend);
    let meter = context.meter(Action::Encode, source.size());
    let mut writer = Writer::new(layout, meta, out, write_failure, &meter)?;
    let mut reader = Reader::new(layout, &mut source, &meter);
    let room = reader.source.size().unwrap_or(LEAST_ROOM).clamp(1, layout.piece_len());
    let mut group = Group::new(layout, room.next_multiple_of(LINE) as usize);
    reader.fill(&mut group)?;
    if settings.threads > 1 && !reader.is_over {
        in_stages(group, reader, &mut writer, &encoder, Threads(settings.threads))?;
    } else {
        encode_group(&encoder, &mut group, Threads(settings.threads.max(1)), &meter)?;
        writer.write(&group)?;
        while !reader.is_over {
            reader.fill(&mut group)?;
            encode_group(&encoder, &mut group, Threads(1), &meter)?;
            writer.write(&group)?;
        }
        reader.source.check_unchanged()?;
    }
    let written = writer.finish(meta)?;
    meter.finish();
    Ok(written)
}

/// Reads, encodes and writes at the same time, from the second group on. `first` is filled already.
fn in_stages<W: Write + Send>(
    first: Group,
    reader: Reader<'_, '_>,
    writer: &mut Writer<'_, W>,
    encoder: &SetEncoder,
    threads: Threads,
) -> Result<()> {
    let meter = writer.meter;
    let (free_tx, free_rx) = channel();
    let (full_tx, full_rx) = channel();
    let (coded_tx, coded_rx) = channel();
    let (read, coded, written) = std::thread::scope(|scope| {
        // Buffers come back from the writer.
        let thread = || std::thread::Builder::new();
        let reader = thread().spawn_scoped(scope, move || {
            let _thread = stages::thread(Stage::Other);
            read_groups(first, reader, &free_rx, full_tx)
        });
        let reader = reader.map_err(no_thread)?;
        let writer = thread().spawn_scoped(scope, move || write_groups(writer, &coded_rx, &free_tx));
        // After an error here the reader ends too, because its receiver is gone.
        let writer = writer.map_err(no_thread)?;
        let coded = waited_for(&full_rx).try_for_each(|mut group| {
            encode_group(encoder, &mut group, threads, meter)?;
            // A failed writer is gone, and reports its own error.
            let _ = coded_tx.send(group);
            Ok(())
        });
        drop((coded_tx, full_rx));
        let _stage = stages::enter(Stage::Wait, 0);
        Ok((join(reader), coded, join(writer)))
    })?;
    // A stage that failed stops the others, which then have nothing to report.
    written.and(coded).and(read)
}

/// Iterates over the messages of a channel until its other end is gone.
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
struct Reader<'a, 'b> {
    layout: &'a ContainerLayout,
    source: &'a mut Source<'b>,
    meter: &'a Gauge<'a>,
    number: u64,
    offset: u64,
    /// The first byte of the next group, read to see whether there is one; `None` before the first look and at the end.
    ahead: Option<u8>,
    begun: bool,
    /// The last group was filled.
    is_over: bool,
}

impl<'a, 'b> Reader<'a, 'b> {
    fn new(layout: &'a ContainerLayout, source: &'a mut Source<'b>, meter: &'a Gauge<'a>) -> Reader<'a, 'b> {
        Reader { layout, source, meter, number: 0, offset: 0, ahead: None, begun: false, is_over: false }
    }

    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        /// Bytes between two questions whether to go on.
        const PIECE: usize = 1 << 20;
        let _stage = stages::enter(Stage::Read, 0);
        let mut all = 0;
        for piece in out.chunks_mut(PIECE) {
            self.meter.check()?;
            let len = self.source.read(self.offset, piece)?;
            // Only the bytes read count, not the space of a whole group.
            stages::add_bytes(len as u64);
            self.offset += len as u64;
            all += len;
            if len < piece.len() {
                break;
            }
        }
        Ok(all)
    }

    /// The next byte, if there is one.
    fn look_ahead(&mut self) -> Result<Option<u8>> {
        let mut byte = [0];
        let len = self.read(&mut byte)?;
        Ok((len > 0).then_some(byte[0]))
    }

    /// Fills the next group, and looks whether another group follows.
    fn fill(&mut self, group: &mut Group) -> Result<()> {
        if self.number >= MAX_COUNT {
            return Err(Error::new(Action::Encode, EncodingError::ManyGroups(MAX_COUNT)));
        }
        if !self.begun {
            self.ahead = self.look_ahead()?;
            self.begun = true;
        }
        let most = self.layout.piece_len() as usize;
        let mut len = 0;
        while let Some(first) = self.ahead {
            if len == group.piece.row_len() {
                group.grow(len, (GROWTH * len).min(most));
            }
            let room = &mut group.piece.row_mut(0)[len..];
            room[0] = first;
            let read = 1 + self.read(&mut room[1..])?;
            self.ahead = if read < room.len() { None } else { self.look_ahead()? };
            len += read;
            if len == most {
                break;
            }
        }
        self.is_over = self.ahead.is_none();
        group.geometry = self.layout.group(self.number as u32, len as u64, self.is_over);
        // A short group is padded up to its capacity.
        let capacity = group.geometry.shape().capacity() as usize;
        if capacity > group.piece.row_len() {
            group.grow(len, capacity);
        }
        group.piece.row_mut(0)[len..capacity].fill(0);
        self.number += 1;
        Ok(())
    }
}

/// Hands on the first group, then reads groups in order and hands them on.
fn read_groups(
    first: Group,
    mut reader: Reader<'_, '_>,
    free: &Receiver<Group>,
    full: Sender<Group>,
) -> Result<()> {
    let second = Group::new(reader.layout, reader.layout.piece_len() as usize);
    // Two groups are in flight: one is filled while the other is encoded and written.
    let (mut full_group, mut spare) = (first, Some(second));
    // A failed writer is gone, and reports its own error.
    while full.send(full_group).is_ok() && !reader.is_over {
        let Some(mut group) = spare.take().or_else(|| waited_for(free).next()) else { break };
        reader.fill(&mut group)?;
        full_group = group;
    }
    drop(full);
    reader.source.check_unchanged()
}

/// Fills recovery shards and trees.
fn encode_group(encoder: &SetEncoder, group: &mut Group, threads: Threads, meter: &Gauge<'_>) -> Result<()> {
    let shape = *group.geometry.shape();
    let (k, sets, len) = (shape.code.k(), shape.sets as usize, shape.shard_len);
    let piece = group.piece.row(0);
    let run = Run { executor: &threads, observer: &Observed };
    if group.encoded.is_empty() {
        group.encoded = (0..sets).map(|_| EncodedSet::new(&shape)).collect();
    }
    for (set, encoded) in group.encoded.iter_mut().take(sets).enumerate() {
        meter.check()?;
        let originals: Vec<&[u8]> = (0..k).map(|i| &piece[(i * sets + set) * len..][..len]).collect();
        encoder.encode(set as u32, &originals, encoded, run);
    }
    Ok(())
}

/// The meta frame, if there is meta.
pub(crate) fn front(layout: &ContainerLayout, meta: &[u8]) -> Vec<u8> {
    if meta.is_empty() { Vec::new() } else { MetaFrame::to_bytes(layout.shape(), meta) }
}

/// Writes the records of each group, in order.
struct Writer<'a, W> {
    layout: &'a ContainerLayout,
    out: &'a mut W,
    failure: &'a WriteFailure<'a>,
    meter: &'a Gauge<'a>,
    /// The root of the group before.
    before: Digest,
    trees: Vec<Digest>,
    bytes: u64,
    /// Copies of the meta still to be written, and the bytes of a copy.
    copies: Copies,
    copy: Vec<u8>,
    set_tree: Tree,
    record: Vec<u8>,
    /// The geometry of the whole, as soon as the last group is written.
    geometry: Option<FileGeometry>,
}

impl<'a, W: Write> Writer<'a, W> {
    fn new(
        layout: &'a ContainerLayout,
        meta: &[u8],
        out: &'a mut W,
        failure: &'a WriteFailure<'a>,
        meter: &'a Gauge<'a>,
    ) -> Result<Writer<'a, W>> {
        let front = front(layout, meta);
        out.write_all(&front).map_err(failure)?;
        Ok(Writer {
            layout,
            out,
            failure,
            meter,
            before: layout.shape().hash.digest(meta),
            trees: Vec::new(),
            bytes: front.len() as u64,
            copies: Copies::of(layout.shape(), meta, front.len()),
            copy: annex_of(&front),
            set_tree: Tree::new(),
            record: Vec::new(),
            geometry: None,
        })
    }

    fn write(&mut self, group: &Group) -> Result<()> {
        self.meter.check()?;
        let (shape, hash) = (group.geometry.shape(), self.layout.shape().hash);
        let sets = shape.sets as usize;
        self.set_tree.leaves_mut().extend(group.encoded[..sets].iter().map(EncodedSet::root));
        let (tree, before) = (self.set_tree.build(hash), self.before);
        let id = GroupId { geometry: group.geometry, root: group.geometry.root(&tree, &before), before };
        let stage = stages::enter(Stage::Write, id.group_len());
        self.put(group, id)?;
        self.bytes += id.group_len() + self.copies.total();
        // Only group 0 has copies: without that group nothing can be restored whole.
        self.copies = Copies::NONE;
        self.before = id.root;
        self.trees.push(tree);
        self.out.flush().map_err(self.failure)?;
        drop(stage);
        self.meter.add(group.geometry.payload_len());
        if group.geometry.is_last() {
            let geometry = self.layout.file(&group.geometry);
            self.geometry = Some(geometry.map_err(|e| Error::new(Action::Encode, ErrorKind::Format(e)))?);
        }
        Ok(())
    }

    /// Writes all records of a group.
    fn put(&mut self, group: &Group, id: GroupId) -> Result<()> {
        let (shape, record) = (group.geometry.shape(), &mut self.record);
        let sets = shape.sets as usize;
        let mut put = |bytes: &[u8]| self.out.write_all(bytes).map_err(self.failure);
        record.resize(id.record_head_len(), 0);
        for index in 0..shape.code.n() {
            if self.copies.is_before(index as u64) {
                put(&self.copy)?;
            }
            for set in 0..sets {
                let proof = &mut record[HEADER_LEN..][..shape.proof_len()];
                let (set_path, group_path) = proof.split_at_mut(shape.set_path_len());
                group.encoded[set].write_path(index, set_path);
                self.set_tree.write_path(set, group_path);
                RecordHeader { set: set as u32, index: index as u32, group: id }.seal(record);
                put(record)?;
                match index.checked_sub(shape.code.k()) {
                    None => {
                        put(&group.piece.row(0)[(index * sets + set) * shape.shard_len..][..shape.shard_len])?
                    }
                    Some(recovery) => put(group.encoded[set].recovery().row(recovery))?,
                }
            }
        }
        Ok(())
    }

    /// Writes the index behind all groups.
    fn finish(self, meta: &[u8]) -> Result<Written> {
        let Writer { out, failure, trees, bytes: records_bytes, geometry, .. } = self;
        // The stages before have ended without a last group and without an error.
        let geometry = geometry.ok_or_else(|| failure(io::ErrorKind::Interrupted.into()))?;
        let index = Index::new(geometry, trees, meta);
        let bytes = index.to_bytes(meta);
        out.write_all(&bytes).and_then(|()| out.flush()).map_err(failure)?;
        let output_bytes = records_bytes + bytes.len() as u64;
        Ok(Written { geometry: index.header.geometry, root: index.header.root, output_bytes })
    }
}

/// Writes groups in order.
fn write_groups<W: Write>(
    writer: &mut Writer<'_, W>,
    coded: &Receiver<Group>,
    free: &Sender<Group>,
) -> Result<()> {
    let _thread = stages::thread(Stage::Other);
    for group in waited_for(coded) {
        writer.write(&group)?;
        if group.geometry.is_last() {
            break;
        }
        // The reader may have ended already.
        let _ = free.send(group);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Place;
    use fec_base::context::Settings;
    use fec_core::block::Code;
    use fec_core::digest::HashKind;

    fn layout() -> ContainerLayout {
        ContainerLayout::new(HashKind::Blake3, Code::new(3, 2).unwrap(), 3 * 4096, Some(8)).unwrap()
    }

    fn context(threads: usize) -> Context<'static> {
        Context::new(Settings { threads, ..Settings::new() })
    }

    /// Lengths around those at which memory grows, and groups end.
    fn lengths() -> Vec<usize> {
        let (least, piece) = (LEAST_ROOM as usize, layout().piece_len() as usize);
        assert!(least < piece);
        let around = [least, least + 64, piece, 2 * piece, 3 * piece].into_iter();
        [0, 1, 64].into_iter().chain(around.flat_map(|len| [len - 1, len, len + 1])).collect()
    }

    /// Gives a few bytes at a time.
    struct Trickle<'a>(&'a [u8]);

    impl io::Read for Trickle<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let len = out.len().min(777);
            self.0.read(&mut out[..len])
        }
    }

    #[test]
    fn the_bytes_are_the_same_however_the_memory_grew() {
        for len in lengths() {
            let payload: Vec<u8> = (0..len).map(|i| (i / 7) as u8).collect();
            let written = |source: Source<'_>, threads| {
                let (mut out, fail) = (Vec::new(), |e| Error::io(Action::Write, Place::Nowhere, e));
                let written = write(source, &mut out, &fail, &layout(), &[], &context(threads)).unwrap();
                assert_eq!(written.output_bytes, out.len() as u64);
                out
            };
            let expected = written(Source::Payload(&payload), 1);
            for threads in [1, 2, 3] {
                assert!(written(Source::Payload(&payload), threads) == expected, "{len}, known");
                let mut pipe = Trickle(&payload);
                assert!(
                    written(Source::Pipe(&mut pipe, Place::Nowhere), threads) == expected,
                    "{len}, a pipe"
                );
            }
            let mut back = Vec::new();
            let _whole = crate::decode_reader(&expected[..], &mut back, None, &context(1)).unwrap();
            assert!(back == payload, "{len}");
        }
    }

    #[test]
    fn the_first_group_takes_the_memory_of_its_payload() {
        let context = context(1);
        let meter = context.meter(Action::Encode, None);
        for len in lengths() {
            let payload = vec![1; len];
            let mut pipe = &payload[..];
            let (layout, mut source) = (layout(), Source::Pipe(&mut pipe, Place::Nowhere));
            let mut reader = Reader::new(&layout, &mut source, &meter);
            let mut group = Group::new(&layout, LEAST_ROOM as usize);
            reader.fill(&mut group).unwrap();
            let most = (GROWTH * len).clamp(LEAST_ROOM as usize, layout.piece_len() as usize);
            assert!(group.piece.row_len() <= most, "{len}");
            assert!(group.geometry.payload_len() == len.min(layout.piece_len() as usize) as u64);
        }
    }
}

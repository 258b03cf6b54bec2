//! Writes shard files from a payload of known length.
//!
//! Each worker takes a few sets at a time. It reads their originals into its own buffers, encodes and hashes these
//! buffers, and writes every shard to its place in its file. Only the set roots are kept. Once all sets are done, the
//! group path is added to every proof, and the headers at both ends name the root.

use crate::error::{Action, Error, Result};
use crate::forms::annexes;
use crate::forms::encode_job::{
    EncodeJob, Nowhere, PayloadSets, SetSink, SetSource, ShardsOfSet, SpareRooms, check_memory,
};
use crate::payload::{Options, Payload};
use crate::report::Written;
use crate::seal::sealer::Sealer;
use fec_base::context::{Context, Gauge};
use fec_base::io::{NewObjects, Store};
use fec_base::names;
use fec_base::program::stages::{self, Stage};
use fec_base::threads::Threads;
use fec_core::executor::{Executor, into_value, lock};
use fec_core::format::meta::Meta;
use fec_core::format::outline::Outlines;
use fec_core::format::shard_file::{Encoding, Layout, ShardHeader};
use fec_core::format::{annex, checksum_of};
use fec_core::merkle::Tree;
use fec_core::params::{FileGeometry, Form, GroupGeometry, Shape};
use std::ffi::OsString;
use std::io::{self, IoSlice};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Proofs of a file are completed in pieces of about this many bytes.
const PROOF_PIECE: usize = 256 << 10;

/// Encodes `payload` into n shard files in `store`, which record `name`.
///
/// # Errors
/// Those of payload and store; [`SetMemory`](ErrorKind::SetMemory) and [`Format`](ErrorKind::Format) for
/// options beyond what the format allows.
pub(crate) fn write(
    payload: &dyn Payload,
    label: &Label,
    store: &dyn Store,
    options: &Options,
    context: &Context<'_>,
) -> Result<Written> {
    write_in(&SpareRooms::default(), payload, label, store, options, context)
}

/// As [`write`], with buffers that are kept for the next payload.
pub fn write_in(
    spare: &SpareRooms,
    payload: &dyn Payload,
    label: &Label,
    store: &dyn Store,
    options: &Options,
    context: &Context<'_>,
) -> Result<Written> {
    let Plan { geometry, meta, mut output_bytes } = Plan::new(payload, label, options, context)?;
    let n = options.code.n();
    let names: Vec<OsString> = (0..n).map(|i| file_name(&label.files, i)).collect();
    let out = store.create(&names, output_bytes, context.progress)?;
    let meter = context.meter(Action::Encode, Some(payload.size()));
    let indices: Vec<usize> = (0..n).collect();
    let outlines = outlines_of(&geometry, options);
    let files = NewShards { out: out.as_ref(), indices: &indices, outlines };
    let source = PayloadSets { payload, group: geometry, start: 0 };
    let encoding = files.write((&source, spare), &geometry, &meta, &meter, context)?;
    // The last check: the payload must not have changed while the last sets were read.
    payload.check_unchanged()?;
    if let Some(key) = &options.signing {
        let annex = annexes::of_signature(key.sign_root(&encoding.root).text());
        let end = if outlines.is_some() { encoding.outlined_len() } else { encoding.layout().file_len };
        let mut objects = 0..n;
        objects
            .try_for_each(|object| put(out.as_ref(), object, end, &annex))
            .map_err(|e| Error::io(Action::Write, out.place(), e))?;
        output_bytes += (n * annex.len()) as u64;
    }
    let _stage = stages::enter(Stage::Write, 0);
    out.commit()?;
    meter.finish();
    Ok(Written { geometry: FileGeometry::of_only(&geometry), root: encoding.root, output_bytes })
}

/// Computes the result of [`write`] without writing anything.
///
/// # Errors
/// As [`write`].
pub(crate) fn root(
    payload: &dyn Payload,
    label: &Label,
    options: &Options,
    context: &Context<'_>,
) -> Result<Written> {
    let Plan { geometry, meta, output_bytes } = Plan::new(payload, label, options, context)?;
    let meter = context.meter(Action::Encode, Some(payload.size()));
    let source = PayloadSets { payload, group: geometry, start: 0 };
    let spare = SpareRooms::default();
    let tree = EncodeJob::new((&source, &spare), &geometry, &Nowhere, &meter, context).run()?;
    payload.check_unchanged()?;
    meter.finish();
    let root = Encoding::new(geometry, tree.root(), &meta).root;
    Ok(Written { geometry: FileGeometry::of_only(&geometry), root, output_bytes })
}

/// Properties of shard files that are known before the work.
struct Plan {
    geometry: GroupGeometry,
    meta: Vec<u8>,
    /// Bytes of all files.
    output_bytes: u64,
}

impl Plan {
    fn new(payload: &dyn Payload, label: &Label, options: &Options, context: &Context<'_>) -> Result<Plan> {
        let Options { code, hash, .. } = *options;
        let refused = |e| Error::at(Action::Encode, payload.place(), crate::ErrorKind::Format(e));
        let set_size = options.set_size(Some(payload.size()));
        let mut geometry =
            GroupGeometry::whole(Form::Shards, hash, code, set_size, payload.size()).map_err(refused)?;
        if label.is_sealed {
            geometry = geometry.sealed();
        }
        let meta = options.meta(payload, label.meta.clone(), context)?.to_bytes();
        check_memory(geometry.shape(), &payload.place(), &context.settings)?;
        let outlines_len = outlines_of(&geometry, options).map_or(0, |outlines| outlines.annexes_len());
        let file_len = Layout::new(&geometry, meta.len() as u32).file_len + outlines_len;
        let output_bytes = file_len * code.n() as u64;
        Ok(Plan { geometry, meta, output_bytes })
    }
}

/// The outlines of the shard files, if they are wanted.
fn outlines_of(geometry: &GroupGeometry, options: &Options) -> Option<Outlines> {
    Outlines::new(geometry.shape()).filter(|_| options.outlines)
}

/// The recorded meta of shard files, and the name that their file names begin with.
pub struct Label {
    files: Vec<u8>,
    meta: Meta,
    is_sealed: bool,
}

impl Label {
    /// A label with a recorded name, which also begins the file names.
    ///
    /// # Errors
    /// [`Format`](crate::ErrorKind::Format) for an invalid name.
    pub fn named(name: &[u8]) -> Result<Label> {
        let meta =
            Meta::with_name(name).map_err(|e| Error::new(Action::Encode, crate::ErrorKind::Format(e)))?;
        Ok(Label { files: name.to_vec(), meta, is_sealed: false })
    }

    /// The label of a payload that this sealer seals: its name is inside the seal.
    pub fn sealed(sealer: &Sealer) -> Label {
        Label { files: NO_NAME.to_vec(), meta: sealer.meta(), is_sealed: true }
    }

    /// The label of a part of a sealed payload, whose seal is stored elsewhere.
    pub fn part_of_sealed() -> Label {
        Label { files: NO_NAME.to_vec(), meta: Meta::default(), is_sealed: true }
    }

    /// The name that the file names begin with.
    pub fn files(&self) -> &[u8] {
        &self.files
    }
}

/// Begins the names of files that record no name, as those of a sealed payload.
pub(crate) const NO_NAME: &[u8] = b"payload";

/// NAME.017.shard, with NAME cut if the file name would be too long; `payload.017.shard` if this system has no such
/// names.
pub fn file_name(name: &[u8], index: usize) -> OsString {
    const LONGEST: usize = 255 - ".000.shard".len();
    let mut end = name.len().min(LONGEST);
    // The cut never splits a UTF-8 character.
    while end < name.len() && end > LONGEST - 4 && name[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    let file = |name: &[u8]| names::of_file([name, format!(".{index:03}.shard").as_bytes()].concat());
    file(&name[..end]).or_else(|| file(NO_NAME)).expect("every system has names of ASCII")
}

/// Shard files that are being written.
pub(super) struct NewShards<'a> {
    pub(super) out: &'a dyn NewObjects,
    /// Shard index of each file.
    pub(super) indices: &'a [usize],
    /// The outlines that stand behind the files.
    pub(super) outlines: Option<Outlines>,
}

impl NewShards<'_> {
    /// Writes the files from the sets that `source` gives; returns the encoding.
    pub(super) fn write(
        &self,
        (source, spare): (&dyn SetSource, &SpareRooms),
        geometry: &GroupGeometry,
        meta: &[u8],
        meter: &Gauge<'_>,
        context: &Context<'_>,
    ) -> Result<Encoding> {
        let layout = Layout::new(geometry, meta.len() as u32);
        let sums = || self.indices.iter().map(|_| WrittenSum::default()).collect();
        let (paths, outlines) = (sums(), sums());
        let sink = ShardSink { files: self, layout, shape: *geometry.shape(), paths, outlines };
        let tree = EncodeJob::new((source, spare), geometry, &sink, meter, context).run()?;
        let encoding = Encoding::new(*geometry, tree.root(), meta);
        let _stage = stages::enter(Stage::Write, 0);
        self.finish(&encoding, meta, (&tree, &sink), Threads(context.settings.threads))?;
        Ok(encoding)
    }

    /// Completes the proofs, copies them to the end, and writes both headers of every file and of its annexes.
    fn finish(
        &self,
        encoding: &Encoding,
        meta: &[u8],
        (tree, sink): (&Tree, &ShardSink<'_>),
        threads: Threads,
    ) -> Result<()> {
        let first_error: Mutex<Option<io::Error>> = Mutex::new(None);
        threads.run(self.indices.len(), &|object| {
            let done = self.finish_file(object, encoding, meta, (tree, &sink.paths[object]));
            if let Err(e) = done.and_then(|()| self.finish_outlines(object, encoding, &sink.outlines[object]))
            {
                lock(&first_error).get_or_insert(e);
            }
        });
        into_value(first_error).map_or(Ok(()), |e| Err(Error::io(Action::Write, self.out.place(), e)))
    }

    fn finish_file(
        &self,
        object: usize,
        encoding: &Encoding,
        meta: &[u8],
        (tree, written): (&Tree, &WrittenSum),
    ) -> io::Result<()> {
        let (out, index) = (self.out, self.indices[object]);
        let layout = encoding.layout();
        let shape = encoding.geometry.shape();
        let (proof_len, set_path_len) = (shape.proof_len(), shape.set_path_len());
        if let Some(sets_in_piece) = PROOF_PIECE.checked_div(proof_len) {
            let sets_in_piece = sets_in_piece.max(1);
            let mut piece = Vec::new();
            let read = WrittenSum::default();
            for first in (0..shape.sets).step_by(sets_in_piece) {
                let count = sets_in_piece.min((shape.sets - first) as usize);
                piece.resize(count * proof_len, 0);
                let [head, tail] = layout.proofs(first);
                // The last proof was written without its group path, so the file may end before that.
                let known = piece.len() - (proof_len - set_path_len);
                if out.read_back(object, head, &mut piece)? < known {
                    return Err(not_there());
                }
                for (set, proof) in (first as usize..).zip(piece.chunks_exact_mut(proof_len)) {
                    read.add(set as u32, &proof[..set_path_len]);
                    tree.write_path(set, &mut proof[set_path_len..]);
                }
                put(out, object, head, &piece)?;
                put(out, object, tail, &piece)?;
            }
            if read.value() != written.value() {
                return Err(not_there());
            }
        }
        // The order is header, meta, zeros at the front, and meta, zeros, header at the end.
        let header = ShardHeader { index: index as u32, encoding: *encoding }.to_bytes();
        let mut padded = meta.to_vec();
        padded.resize(layout.padded_meta_len() as usize, 0);
        put(out, object, layout.tail_meta, &[&padded[..], &header].concat())?;
        put(out, object, 0, &[&header[..], &padded].concat())
    }

    /// Reads the outlines of a file back, and writes the headers of their annexes.
    fn finish_outlines(&self, object: usize, encoding: &Encoding, written: &WrittenSum) -> io::Result<()> {
        let Some(outlines) = self.outlines else { return Ok(()) };
        let (out, start) = (self.out, encoding.layout().file_len);
        let read = WrittenSum::default();
        let mut values = Vec::new();
        for nth in 0..outlines.annexes() {
            let sets = outlines.sets_of(nth);
            values.resize(sets.len() * outlines.outline_len(), 0);
            let at = start + outlines.outline_at(sets.start);
            if out.read_back(object, at, &mut values)? < values.len() {
                return Err(not_there());
            }
            sets.zip(values.chunks_exact(outlines.outline_len()))
                .for_each(|(set, outline)| read.add(set, outline));
            let head = outlines.head(nth);
            let header = annex::header(annex::OUTLINES, &[&head, &values]);
            put(out, object, start + outlines.annex_at(nth), &[&header[..], &head].concat())?;
            put(out, object, at + values.len() as u64, &header)?;
        }
        if read.value() == written.value() { Ok(()) } else { Err(not_there()) }
    }
}

fn not_there() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "what was written is not there any more")
}

/// Tells whether the set paths or outlines read back from a file are those that were written, in any order: the sum of
/// their CRC32C, each with the number of its set.
#[derive(Default)]
struct WrittenSum(AtomicU64);

impl WrittenSum {
    fn add(&self, set: u32, bytes: &[u8]) {
        self.0.fetch_add(checksum_of(&[&set.to_le_bytes(), bytes]).into(), Ordering::Relaxed);
    }

    fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Writes the shards of sets into the files.
struct ShardSink<'a> {
    files: &'a NewShards<'a>,
    layout: Layout,
    shape: Shape,
    /// Sums of the written set paths, by file.
    paths: Vec<WrittenSum>,
    /// Sums of the written outlines, by file.
    outlines: Vec<WrittenSum>,
}

impl ShardSink<'_> {
    /// Writes the outlines of the shards of a file, those side by side in one annex at once.
    fn write_outlines(&self, object: usize, first: u32, sets: &[ShardsOfSet]) -> io::Result<()> {
        let Some(outlines) = self.files.outlines else { return Ok(()) };
        let (mut start, mut piece) = (0, Vec::new());
        for (number, set) in (first..).zip(sets) {
            let outline = set.outline(self.files.indices[object]).as_flattened();
            self.outlines[object].add(number, outline);
            let at = self.layout.file_len + outlines.outline_at(number);
            if !piece.is_empty() && at != start + piece.len() as u64 {
                put(self.files.out, object, start, &piece)?;
                piece.clear();
            }
            if piece.is_empty() {
                start = at;
            }
            piece.extend_from_slice(outline);
        }
        put(self.files.out, object, start, &piece)
    }
}

impl SetSink for ShardSink<'_> {
    /// Writes the shards, and the known parts of their proofs.
    fn write(&self, first: u32, sets: &[ShardsOfSet]) -> Result<()> {
        let (proof_len, set_path_len) = (self.shape.proof_len(), self.shape.set_path_len());
        let mut proofs = vec![0; sets.len() * proof_len];
        // The group path of the last proof is added later, like those of the others.
        let known = proofs.len() - (proof_len - set_path_len);
        let out = self.files.out;
        for (object, &i) in self.files.indices.iter().enumerate() {
            let mut shards: Vec<IoSlice> = sets.iter().map(|set| IoSlice::new(set.shard(i))).collect();
            for ((number, set), proof) in (first..).zip(sets).zip(proofs.chunks_exact_mut(proof_len)) {
                set.write_path(i, &mut proof[..set_path_len]);
                self.paths[object].add(number, &proof[..set_path_len]);
            }
            let _stage = stages::enter(Stage::Write, (sets.len() * self.shape.shard_len) as u64);
            out.write_at(object, self.layout.shard(first), &mut shards)
                .and_then(|()| put(out, object, self.layout.proofs(first)[0], &proofs[..known]))
                .and_then(|()| self.write_outlines(object, first, sets))
                .map_err(|e| Error::io(Action::Write, out.place(), e))?;
        }
        Ok(())
    }
}

/// Writes bytes at a place of an object.
fn put(out: &dyn NewObjects, object: usize, at: u64, bytes: &[u8]) -> io::Result<()> {
    out.write_at(object, at, &mut [IoSlice::new(bytes)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Place;
    use fec_base::context::Progress;
    use fec_base::io::ReadAt;
    use fec_base::io::memory::MemoryStore;
    use fec_core::block::Code;
    use std::ffi::OsStr;

    /// A store whose disk reads back a wrong bit, or fewer bytes.
    struct BadStore(MemoryStore, Fault);

    #[derive(Clone, Copy)]
    enum Fault {
        None,
        Bit(usize),
        Short,
    }

    struct BadObjects(Box<dyn NewObjects>, Fault);

    impl Store for BadStore {
        fn list(&self) -> io::Result<Vec<OsString>> {
            self.0.list()
        }

        fn open(&self, name: &OsStr) -> io::Result<Box<dyn ReadAt>> {
            self.0.open(name)
        }

        fn create(
            &self,
            names: &[OsString],
            bytes: u64,
            progress: &dyn Progress,
        ) -> Result<Box<dyn NewObjects>> {
            Ok(Box::new(BadObjects(self.0.create(names, bytes, progress)?, self.1)))
        }
    }

    impl NewObjects for BadObjects {
        fn write_at(&self, object: usize, offset: u64, parts: &mut [IoSlice<'_>]) -> io::Result<()> {
            self.0.write_at(object, offset, parts)
        }

        fn place(&self) -> Place {
            self.0.place()
        }

        fn read_back(&self, object: usize, offset: u64, out: &mut [u8]) -> io::Result<usize> {
            let read = self.0.read_back(object, offset, out)?;
            match self.1 {
                Fault::Bit(at) if object == 3 && at / 8 < out.len() => out[at / 8] ^= 1 << (at % 8),
                Fault::Short if object == 3 => return Ok(0),
                _ => {}
            }
            Ok(read)
        }

        fn commit(self: Box<Self>) -> Result<()> {
            self.0.commit()
        }
    }

    #[test]
    fn proofs_are_what_was_written_or_nothing_is_made() {
        let payload: Vec<u8> = (0..55_000u32).flat_map(u32::to_le_bytes).collect();
        let options = Options { set_size: Some(12_288), ..Options::new(Code::new(3, 2).unwrap()) };
        let with = |options: &Options, fault| {
            let store = BadStore(MemoryStore::new(), fault);
            let label = Label::named(b"in").unwrap();
            let done = write(&payload, &label, &store, options, &Context::default());
            (done, store.0.list().unwrap().len())
        };
        let encode = |fault| with(&options, fault);
        let (done, files) = encode(Fault::None);
        let sets = done.expect("nothing is wrong").geometry.group(0).shape().sets;
        assert!(files == 5 && sets > 2);
        // The set path of five shards is three digests; the rest of a proof is unknown then.
        let faults = [0, 3 * 256 - 1, 300].map(Fault::Bit).into_iter().chain([Fault::Short]);
        for fault in faults {
            let (done, files) = encode(fault);
            let error = done.expect_err("what was read back is wrong").to_string();
            assert!(error.contains("not there any more") && files == 0, "{error}");
        }
        // The only proof has 96 bytes, and the outline of five leaves 160: the bit is one of the outline.
        let options = Options { set_size: None, outlines: true, ..options };
        let (done, files) = with(&options, Fault::Bit(8 * 100));
        assert!(done.is_err_and(|error| error.to_string().contains("not there any more")) && files == 0);
        assert!(with(&options, Fault::None).0.is_ok());
    }
}

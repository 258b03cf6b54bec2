//! Writes shard files from a payload of known length.
//!
//! Each worker takes a few sets at a time: reads their originals into its own buffers, encodes and hashes those
//! buffers, and writes every shard to its place in its file. Only the set roots are kept; when all sets
//! are done, the group path is added to every proof, and the headers at both ends name the root.

use crate::context::{Context, Meter};
use crate::error::{Error, ErrorKind, Result};
use crate::io::{NewObjects, Store};
use crate::payload::{Options, Payload};
use crate::report::Written;
use crate::stages::{self, Observed, Stage};
use crate::threads::{Threads, share};
use fec_core::block::ShardBuf;
use fec_core::digest::Digest;
use fec_core::executor::{Executor, into_value, lock};
use fec_core::format::meta::Meta;
use fec_core::format::shard_file::{Encoding, Layout, ShardHeader};
use fec_core::merkle::Tree;
use fec_core::params::{FileGeometry, GroupGeometry, Shape};
use fec_core::set::{EncodedSet, Run, SetEncoder};
use std::ffi::OsString;
use std::io::{self, IoSlice};
use std::os::unix::ffi::OsStringExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Most sets that a worker takes at a time. Their shards stand side by side in each file. Where the system caches files
/// in large pieces, one long write costs less for each byte than several short ones.
const RUN: u64 = 4;

/// Proofs of one file are completed in pieces of about this many bytes.
const PROOF_PIECE: usize = 256 << 10;

/// Encodes `payload` into n shard files in `store`, which record `name`.
///
/// # Errors
/// Those of payload and store; [`SetMemory`](ErrorKind::SetMemory) and [`Format`](ErrorKind::Format) for
/// options beyond what the format allows.
pub(crate) fn write(
    payload: &dyn Payload,
    name: &[u8],
    store: &dyn Store,
    options: &Options,
    context: &Context<'_>,
) -> Result<Written> {
    let Options { code, hash, .. } = *options;
    let settings = &context.settings;
    let refused = |e| Error::at("encode", payload.place(), ErrorKind::Format(e));
    let geometry =
        FileGeometry::shard_files(hash, code, options.set_size(), payload.size()).map_err(refused)?;
    let meta = Meta::with_name(name).map_err(refused)?;
    let shape = *geometry.shape();
    check_memory(&shape, payload, settings.max_memory)?;
    let layout = Layout::new(&geometry);
    let names: Vec<OsString> = (0..code.n()).map(|i| file_name(name, i)).collect();
    let output_bytes = layout.file_len * code.n() as u64;
    let out = store.create(&names, output_bytes)?;
    let meter = context.meter("encode", Some(payload.size()));
    let job = EncodeJob::new(payload, out.as_ref(), &geometry, meter.as_ref(), context);
    let tree = job.run()?;
    payload.check_unchanged()?;
    let group_root = geometry.group(0).root(&tree.root());
    let encoding = Encoding::new(geometry, group_root, meta);
    {
        let _stage = stages::enter(Stage::Write, 0);
        finish_files(out.as_ref(), &encoding, &tree, Threads(settings.threads))?;
    }
    // Once more: the payload must not have changed while the last sets were read.
    payload.check_unchanged()?;
    let _stage = stages::enter(Stage::Sync, 0);
    out.commit()?;
    meter.finish();
    Ok(Written { geometry, root: encoding.root, output_bytes })
}

/// Refuses sets that do not fit the memory allowed.
fn check_memory(shape: &Shape, payload: &dyn Payload, most: u64) -> Result<()> {
    let need = shape.set_bytes();
    if need > most {
        return Err(Error::at("encode", payload.place(), ErrorKind::SetMemory { need, most }));
    }
    Ok(())
}

/// NAME.017.shard, with the name cut where a file name would be too long.
fn file_name(name: &[u8], index: usize) -> OsString {
    const LONGEST: usize = 255 - ".000.shard".len();
    let mut end = name.len().min(LONGEST);
    // Not in the middle of a UTF-8 character, if it is one.
    while end < name.len() && end > LONGEST - 4 && name[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    let mut out = name[..end].to_vec();
    out.extend_from_slice(format!(".{index:03}.shard").as_bytes());
    OsString::from_vec(out)
}

struct EncodeJob<'a> {
    payload: &'a dyn Payload,
    out: &'a dyn NewObjects,
    layout: Layout,
    group: GroupGeometry,
    encoder: SetEncoder,
    /// Sets that a worker takes at a time.
    run: u32,
    inner: Threads,
    meter: &'a dyn Meter,
    workers: usize,
    next: AtomicU32,
    stop: AtomicBool,
    set_roots: Mutex<Vec<Digest>>,
}

/// How many sets each worker takes at a time: no more than memory allows, and than leaves work for all.
fn run_len(workers: usize, sets: u32, set_bytes: u64, budget: u64) -> u32 {
    let workers = workers as u64;
    let fit = budget / set_bytes.max(1) / workers;
    fit.min(RUN).min(u64::from(sets).div_ceil(workers)).max(1) as u32
}

/// A set and its shards.
struct Slot {
    originals: ShardBuf,
    encoded: EncodedSet,
}

impl<'a> EncodeJob<'a> {
    fn new(
        payload: &'a dyn Payload,
        out: &'a dyn NewObjects,
        geometry: &FileGeometry,
        meter: &'a dyn Meter,
        context: &Context<'_>,
    ) -> EncodeJob<'a> {
        let (settings, shape) = (&context.settings, geometry.shape());
        let (workers, inner) =
            share(settings.threads, shape.sets.into(), shape.set_bytes(), settings.max_memory);
        let run = run_len(workers, shape.sets, shape.set_bytes(), settings.max_memory);
        let (k, m) = (shape.code.k(), shape.code.m());
        let (sets, len) = (shape.sets, shape.shard_len);
        tracing::info!("{sets} sets of {k} + {m} shards of {len} bytes, {workers} times {run} at a time");
        stages::tell_work(shape.code, shape.hash, settings.backend);
        let encoder = SetEncoder::new(shape.code, shape.hash, settings.backend);
        tracing::info!(
            "{} engine: {:?} a column",
            encoder.plan().engine().name(),
            encoder.plan().operations()
        );
        EncodeJob {
            payload,
            out,
            layout: Layout::new(geometry),
            group: geometry.group(0),
            encoder,
            run,
            inner,
            meter,
            workers,
            next: AtomicU32::new(0),
            stop: AtomicBool::new(false),
            set_roots: Mutex::new(vec![[0; 32]; sets as usize]),
        }
    }

    /// Encodes and writes all sets; returns the tree over their roots.
    fn run(self) -> Result<Tree> {
        let first_error = Mutex::new(None);
        Threads(self.workers).run(self.workers, &|_| {
            if let Err(error) = self.work() {
                self.stop.store(true, Ordering::Relaxed);
                lock(&first_error).get_or_insert(error);
            }
        });
        into_value(first_error).map_or(Ok(()), Err)?;
        let mut tree = Tree::new();
        *tree.leaves_mut() = into_value(self.set_roots);
        tree.build(self.group.shape().hash);
        Ok(tree)
    }

    /// Takes sets until none is left.
    fn work(&self) -> Result<()> {
        let shape = self.group.shape();
        let slot = || Slot {
            originals: ShardBuf::new(shape.code.k(), shape.shard_len),
            encoded: EncodedSet::new(shape),
        };
        let mut slots: Vec<Slot> = (0..self.run).map(|_| slot()).collect();
        let mut proofs = vec![0; self.run as usize * shape.proof_len()];
        while !self.stop.load(Ordering::Relaxed) {
            let first = self.next.fetch_add(self.run, Ordering::Relaxed);
            if first >= shape.sets {
                break;
            }
            let sets = first..shape.sets.min(first + self.run);
            let mut payload = 0;
            for (set, slot) in sets.clone().zip(&mut slots) {
                payload += self.encode(set, slot)?;
            }
            self.write(first, &slots[..sets.len()], &mut proofs)?;
            self.meter.add(payload);
        }
        Ok(())
    }

    /// Reads a set and computes its shards; returns its bytes of payload.
    fn encode(&self, set: u32, slot: &mut Slot) -> Result<u64> {
        let mut payload = 0;
        for (i, row) in slot.originals.iter_mut().enumerate() {
            let (bytes, padding) = row.split_at_mut(self.group.shard_payload(set, i));
            let _stage = stages::enter(Stage::Read, bytes.len() as u64);
            if !bytes.is_empty() {
                self.payload.read_at(self.group.shard_offset(set, i), bytes)?;
            }
            padding.fill(0);
            payload += bytes.len() as u64;
        }
        let rows: Vec<&[u8]> = slot.originals.iter().collect();
        let run = Run { executor: &self.inner, observer: &Observed };
        let root = self.encoder.encode(set, &rows, &mut slot.encoded, run);
        lock(&self.set_roots)[set as usize] = root;
        Ok(payload)
    }

    /// Writes the shards of sets from `first` on, and what is known of their proofs. `proofs` is scratch.
    fn write(&self, first: u32, slots: &[Slot], proofs: &mut [u8]) -> Result<()> {
        let shape = self.group.shape();
        let (proof_len, set_path_len) = (shape.proof_len(), shape.set_path_len());
        // The group path of the last proof comes at the end, like those of the others.
        let known = slots.len() * proof_len - (proof_len - set_path_len);
        for i in 0..shape.code.n() {
            let mut shards: Vec<IoSlice> = slots
                .iter()
                .map(|Slot { originals, encoded }| {
                    IoSlice::new(if i < originals.rows() {
                        originals.row(i)
                    } else {
                        encoded.recovery().row(i - originals.rows())
                    })
                })
                .collect();
            for (n, slot) in slots.iter().enumerate() {
                slot.encoded.write_path(i, &mut proofs[n * proof_len..][..set_path_len]);
            }
            let _stage = stages::enter(Stage::Write, (slots.len() * shape.shard_len) as u64);
            self.out
                .write_at(i, self.layout.shard(first), &mut shards)
                .and_then(|()| put(self.out, i, self.layout.proofs(first)[0], &proofs[..known]))
                .map_err(|e| Error::io("write", self.out.place(), e))?;
        }
        Ok(())
    }
}

/// Writes bytes at a place of an object.
fn put(out: &dyn NewObjects, object: usize, at: u64, bytes: &[u8]) -> io::Result<()> {
    out.write_at(object, at, &mut [IoSlice::new(bytes)])
}

/// Completes the proofs, copies them to the end, and writes both headers of every file.
fn finish_files(out: &dyn NewObjects, encoding: &Encoding, tree: &Tree, threads: Threads) -> Result<()> {
    let first_error: Mutex<Option<io::Error>> = Mutex::new(None);
    threads.run(encoding.geometry.shape().code.n(), &|i| {
        if let Err(e) = finish_file(out, i, encoding, tree) {
            lock(&first_error).get_or_insert(e);
        }
    });
    into_value(first_error).map_or(Ok(()), |e| Err(Error::io("write", out.place(), e)))
}

fn finish_file(out: &dyn NewObjects, index: usize, encoding: &Encoding, tree: &Tree) -> io::Result<()> {
    let layout = encoding.layout();
    let shape = encoding.geometry.shape();
    let (proof_len, set_path_len) = (shape.proof_len(), shape.set_path_len());
    if let Some(sets_in_piece) = PROOF_PIECE.checked_div(proof_len) {
        let sets_in_piece = sets_in_piece.max(1);
        let mut piece = Vec::new();
        for first in (0..shape.sets).step_by(sets_in_piece) {
            let count = sets_in_piece.min((shape.sets - first) as usize);
            piece.resize(count * proof_len, 0);
            let [head, tail] = layout.proofs(first);
            // The set path of the last proof of all ends before its group path: so much must be there.
            let known = piece.len() - (proof_len - set_path_len);
            if out.read_back(index, head, &mut piece)? < known {
                return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "what was written is not there any more",
                ));
            }
            for (set, proof) in (first as usize..).zip(piece.chunks_exact_mut(proof_len)) {
                tree.write_path(set, &mut proof[set_path_len..]);
            }
            put(out, index, head, &piece)?;
            put(out, index, tail, &piece)?;
        }
    }
    let header = ShardHeader { index: index as u32, encoding: encoding.clone() }.to_bytes();
    put(out, index, layout.tail_header, &header)?;
    put(out, index, 0, &header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_fit_memory_and_leave_work_for_all() {
        assert_eq!(run_len(1, 1000, 12 << 20, 96 << 20), 4);
        assert_eq!(run_len(2, 1000, 13 << 20, 96 << 20), 3);
        assert_eq!(run_len(2, 3, 12 << 20, 96 << 20), 2);
        assert_eq!(run_len(7, 1000, 13 << 20, 96 << 20), 1);
        assert_eq!(run_len(1, 1, 200 << 20, 96 << 20), 1);
    }
}

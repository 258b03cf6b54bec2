//! Shard files from a file of known length.
//!
//! Each worker takes a few sets at a time: reads their originals into its own buffers, encodes and hashes those
//! buffers, and writes every shard to its place in its file. Only the set roots are kept; when all sets
//! are done, the group path is added to every proof, and the headers at both ends name the root.

use super::{Work, Written};
use crate::failure::{Failure, Result};
use crate::progress::Progress;
use crate::stages::{self, Observed, Stage};
use crate::sys::output::{self, FolderOut, Policy};
use crate::sys::source::Source;
use crate::sys::threads::{Threads, share};
use fec_core::block::ShardBuf;
use fec_core::digest::Digest;
use fec_core::executor::Executor;
use fec_core::format::meta::Meta;
use fec_core::format::shard_file::{Encoding, Layout, ShardHeader};
use fec_core::merkle::Tree;
use fec_core::params::{FileGeometry, GroupGeometry};
use fec_core::set::{EncodedSet, Run, SetEncoder};
use std::ffi::OsString;
use std::io::{self, IoSlice};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Most sets that a worker takes at a time. Their shards stand behind one another in each file, and systems that cache
/// files in large pieces take a long write at less for each byte than a short one.
const RUN: u64 = 4;

/// Proofs of one file are completed in pieces of about this many bytes.
const PROOF_PIECE: usize = 256 << 10;

/// Encodes `source` into the shard files of `folder`.
pub(super) fn write(
    work: &Work,
    source: &Source,
    folder: &Path,
    policy: Policy,
    meta: Meta,
    progress: &Progress,
) -> Result<Written> {
    let geometry = FileGeometry::shard_files(work.hash, work.code, work.set_size, source.len())
        .map_err(|e| super::failure(folder, &e).help("a larger --set-size makes fewer sets"))?;
    work.check_memory(geometry.shape(), folder)?;
    let layout = Layout::new(&geometry);
    let name = meta.name.clone().unwrap_or_default();
    let names: Vec<OsString> = (0..work.code.n()).map(|i| file_name(&name, i)).collect();
    let output_bytes = layout.file_len * work.code.n() as u64;
    FolderOut::check(folder, policy)?;
    output::check_room(folder, output_bytes)?;
    let out = FolderOut::create(folder, &names, policy)?;
    let shape = geometry.shape();
    let (workers, inner) =
        share(work.settings.threads, shape.sets.into(), shape.set_bytes(), work.settings.max_memory);
    let run = run_len(workers, shape.sets, shape.set_bytes(), work.settings.max_memory);
    tracing::info!(
        "{} sets of {} + {} shards of {} bytes, {workers} times {run} at a time",
        shape.sets,
        shape.code.k(),
        shape.code.m(),
        shape.shard_len
    );
    stages::tell_work(work.code, work.hash, work.settings.backend);
    let encoder = SetEncoder::new(work.code, work.hash, work.settings.backend);
    tracing::info!("{} engine: {:?} a column", encoder.plan().engine().name(), encoder.plan().operations());
    let job = Job {
        source,
        out: &out,
        layout,
        group: geometry.group(0),
        encoder,
        run,
        inner,
        progress,
        next: AtomicU32::new(0),
        stop: AtomicBool::new(false),
        set_roots: Mutex::new(vec![[0; 32]; shape.sets as usize]),
    };
    let results = Mutex::new(Vec::new());
    Threads(workers).run(workers, &|_| {
        let result = job.work();
        if let Err(failure) = result {
            job.stop.store(true, Ordering::Relaxed);
            results.lock().unwrap_or_else(|e| e.into_inner()).push(failure);
        }
    });
    if let Some(failure) = results.into_inner().unwrap_or_else(|e| e.into_inner()).into_iter().next() {
        return Err(failure);
    }
    source.check_unchanged()?;
    let mut tree = Tree::new();
    let set_roots = job.set_roots.into_inner().unwrap_or_else(|e| e.into_inner());
    *tree.leaves_mut() = set_roots;
    let group_root = geometry.group(0).root(&tree.build(work.hash));
    let encoding = Encoding::new(geometry, group_root, meta);
    {
        let _stage = stages::enter(Stage::Write, 0);
        finish_files(&out, &encoding, &tree, Threads(work.settings.threads))?;
    }
    // Once more: the file must not have changed while the last sets were read.
    source.check_unchanged()?;
    let _stage = stages::enter(Stage::Sync, 0);
    out.commit(Threads(work.settings.threads))?;
    Ok(Written { geometry, root: encoding.root, output_bytes })
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

struct Job<'a> {
    source: &'a Source,
    out: &'a FolderOut,
    layout: Layout,
    group: GroupGeometry,
    encoder: SetEncoder,
    /// Sets that a worker takes at a time.
    run: u32,
    inner: Threads,
    progress: &'a Progress,
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

impl Job<'_> {
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
            self.progress.add(payload);
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
                self.source.read_at(self.group.shard_offset(set, i), bytes)?;
            }
            padding.fill(0);
            payload += bytes.len() as u64;
        }
        let rows: Vec<&[u8]> = slot.originals.iter().collect();
        let run = Run { executor: &self.inner, observer: &Observed };
        let root = self.encoder.encode(set, &rows, &mut slot.encoded, run);
        self.set_roots.lock().unwrap_or_else(|e| e.into_inner())[set as usize] = root;
        Ok(payload)
    }

    /// Writes the shards of sets from `first` on, and what is known of their proofs. `proofs` is scratch.
    fn write(&self, first: u32, slots: &[Slot], proofs: &mut [u8]) -> Result<()> {
        let shape = self.group.shape();
        let (proof_len, set_path_len) = (shape.proof_len(), shape.set_path_len());
        // The group path of the last proof comes at the end, like those of the others.
        let known = slots.len() * proof_len - (proof_len - set_path_len);
        for (i, file) in self.out.files().iter().enumerate() {
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
            output::write_all_vectored_at(file, &mut shards, self.layout.shard(first))
                .and_then(|()| file.write_all_at(&proofs[..known], self.layout.proofs(first)[0]))
                .map_err(|e| self.out.failure(&e))?;
        }
        Ok(())
    }
}

/// Completes the proofs, copies them to the end, and writes both headers of every file.
fn finish_files(out: &FolderOut, encoding: &Encoding, tree: &Tree, threads: Threads) -> Result<()> {
    let first_error: Mutex<Option<Failure>> = Mutex::new(None);
    threads.run(out.files().len(), &|i| {
        if let Err(e) = finish_file(&out.files()[i], i as u32, encoding, tree) {
            let failure = out.failure(&e);
            first_error.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert(failure);
        }
    });
    first_error.into_inner().unwrap_or_else(|e| e.into_inner()).map_or(Ok(()), Err)
}

fn finish_file(file: &std::fs::File, index: u32, encoding: &Encoding, tree: &Tree) -> io::Result<()> {
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
            // The set path of the last proof ends before its group path, so the piece may end behind
            // what was written so far.
            read_at_most(file, &mut piece, head)?;
            for (set, proof) in (first as usize..).zip(piece.chunks_exact_mut(proof_len)) {
                tree.write_path(set, &mut proof[set_path_len..]);
            }
            file.write_all_at(&piece, head)?;
            file.write_all_at(&piece, tail)?;
        }
    }
    let header = ShardHeader { index, encoding: encoding.clone() }.to_bytes();
    file.write_all_at(&header, 0)?;
    file.write_all_at(&header, layout.tail_header)
}

/// Reads what is there of `out`; the rest stays as it is.
fn read_at_most(file: &std::fs::File, out: &mut [u8], at: u64) -> io::Result<()> {
    let mut filled = 0;
    while filled < out.len() {
        match file.read_at(&mut out[filled..], at + filled as u64) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
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

//! Shard files from a file of known length.
//!
//! Each worker takes a set at a time: reads its originals into its own buffer, encodes and hashes that
//! buffer, and writes every shard to its place in its file. Only the set roots are kept; when all sets
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
use fec_core::format::meta::Meta;
use fec_core::format::shard_file::{Encoding, Layout, ShardHeader};
use fec_core::merkle::Tree;
use fec_core::params::{FileGeometry, GroupGeometry};
use fec_core::set::SetEncoder;
use fec_core::spread::Spread;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

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
    tracing::info!(
        "{} sets of {} + {} shards of {} bytes, {workers} at a time",
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
    inner: Threads,
    progress: &'a Progress,
    next: AtomicU32,
    stop: AtomicBool,
    set_roots: Mutex<Vec<Digest>>,
}

impl Job<'_> {
    /// Takes sets until none is left.
    fn work(&self) -> Result<()> {
        let shape = self.group.shape();
        let (k, m) = (shape.code.k(), shape.code.m());
        let mut originals = ShardBuf::new(k, shape.shard_len);
        let mut recovery = ShardBuf::new(m, shape.shard_len);
        let mut tree = Tree::new();
        let mut path = vec![0u8; shape.set_path_len()];
        while !self.stop.load(Ordering::Relaxed) {
            let set = self.next.fetch_add(1, Ordering::Relaxed);
            if set >= shape.sets {
                break;
            }
            let mut payload = 0;
            for (i, row) in originals.iter_mut().enumerate() {
                let (bytes, padding) = row.split_at_mut(self.group.shard_payload(set, i));
                let _stage = stages::enter(Stage::Read, bytes.len() as u64);
                if !bytes.is_empty() {
                    self.source.read_at(self.group.shard_offset(set, i), bytes)?;
                }
                padding.fill(0);
                payload += bytes.len() as u64;
            }
            let rows: Vec<&[u8]> = originals.iter().collect();
            let root = self.encoder.encode(set, &rows, &mut recovery, &mut tree, &self.inner, &Observed);
            let shards = rows.into_iter().chain(recovery.iter());
            for (i, (file, shard)) in self.out.files().iter().zip(shards).enumerate() {
                tree.write_path(i, &mut path);
                let _stage = stages::enter(Stage::Write, shard.len() as u64);
                file.write_all_at(shard, self.layout.shard(set))
                    .and_then(|()| file.write_all_at(&path, self.layout.proofs(set)[0]))
                    .map_err(|e| self.out.failure(&e))?;
            }
            self.set_roots.lock().unwrap_or_else(|e| e.into_inner())[set as usize] = root;
            self.progress.add(payload);
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

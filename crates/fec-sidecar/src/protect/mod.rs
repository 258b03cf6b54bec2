//! Protects files: one pass reads them, hashes them and computes their recovery shards.
//!
//! Rows of several sets go through the kernel and the hash while they are in a cache.

pub(crate) mod coding;
pub(crate) mod outputs;

use crate::Sidecar;
use crate::catalog::bits::Bits;
use crate::catalog::hashing::FileTree;
use crate::catalog::journal;
use crate::catalog::metadata;
use crate::catalog::plan;
pub use crate::catalog::plan::Redundancy;
use crate::catalog::positions::Positions;
use crate::catalog::signature::signature_path;
use crate::catalog::tree::{Selection, Tree, base_of, denied_files, fingerprint_of, resolved};
use crate::error::SidecarError;
use crate::examine::margin;
use crate::protect::coding::{Coded, Coding, admit, failure};
use crate::protect::outputs::NewSidecar;
use fec_base::context::{Context, Gauge};
use fec_base::error::{Action, Error, ErrorKind, Result};
use fec_base::io::base::Base;
use fec_base::io::output::{Policy, check_absent, check_room};
use fec_base::io::temporary::{parent, remove_stale};
use fec_base::program::stages::{self, Stage};
use fec_base::threads::Threads;
use fec_core::digest::{Digest, HashKind, PlainHasher};
use fec_core::executor::{Executor, into_value, lock};
use fec_core::format::sidecar::catalog::{Catalog, ShortDigest};
use fec_core::format::sidecar::piece::Layout;
use fec_core::format::sidecar::stat::{Stat, Stats};
use fec_core::format::sidecar::{Entry, EntryKind, FileEntry};
use fec_keys::age::Keys;
use fecfile::report::Written;
use fecfile::seal::SealError;
use fecfile::seal::Sealing;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The files to protect, and the way to do it.
#[derive(Clone, Copy)]
pub struct Protect<'a> {
    /// Files and folders.
    pub paths: &'a [PathBuf],
    /// The path of the sidecar.
    pub output: &'a Path,
    /// The folder that names are relative to. `None` stands for the sidecar's folder if it holds all paths, or else for
    /// the deepest folder that does.
    pub base: Option<&'a Path>,
    /// Recovery bytes for each byte of the files. `None` stands for the default, or for the redundancy of the updated
    /// sidecar.
    pub redundancy: Option<Redundancy>,
    /// Patterns of excluded paths, relative to the base, or of names.
    pub exclude: &'a [String],
    /// True if file systems that are mounted below are left out.
    pub one_file_system: bool,
    /// True if SHA-256 of each file is recorded too, which reads the files once more.
    pub sha256: bool,
    /// The conditions for making the sidecar.
    pub policy: Policy,
    /// The recipients of a sealed sidecar; `None` leaves it unsealed.
    pub sealing: Option<&'a Arc<Sealing>>,
    /// The keys that open the updated sidecar, if it is sealed.
    pub keys: Option<&'a Keys>,
}

/// The protected files and their sidecar.
#[must_use = "files may be left out"]
#[derive(Clone, Debug)]
pub struct Protected {
    /// The root of the sidecar.
    pub root: Digest,
    /// E of the metadata, which binds times and permissions too; `None` for a sealed sidecar, whose root binds them.
    pub metadata: Option<Digest>,
    /// The folder that names are relative to.
    pub base: PathBuf,
    /// True if that is the folder of the sidecar.
    pub is_beside: bool,
    /// Regular files.
    pub files: u64,
    /// Folders.
    pub folders: u64,
    /// Symbolic links, and further names of files.
    pub links: u64,
    /// Bytes of all files.
    pub files_len: u64,
    /// Bytes of the recovery shards.
    pub recovery_len: u64,
    /// Bytes of the sidecar.
    pub sidecar_len: u64,
    /// Bytes that could be lost in one piece, anywhere.
    pub one_piece: u64,
    /// Bytes of a block.
    pub block: u32,
    /// k and m of the group with the most positions.
    pub code: (usize, usize),
    /// Sets of that group.
    pub sets: u32,
    /// Devices, sockets and FIFOs that were left out.
    pub skipped: Vec<PathBuf>,
}

impl Protected {
    /// The report with the root and length of the container, if the sidecar is sealed.
    pub(crate) fn sealed(self, container: Option<Written>) -> Protected {
        match container {
            None => self,
            Some(Written { root, output_bytes, .. }) => {
                Protected { root, metadata: None, sidecar_len: output_bytes, ..self }
            }
        }
    }
}

/// Protects files by a new sidecar, which appears when it is whole. The files are only read.
///
/// Memory: the buffers of sets, as the settings allow; 48 bytes for each block of the files, and about 200 for each
/// file.
///
/// # Errors
/// [`SidecarError`]; [`SealError::StaysSealed`]; [`ErrorKind::Changed`] when a file changes meanwhile; those of the
/// system.
pub fn protect(job: &Protect<'_>, context: &Context<'_>) -> Result<Protected> {
    protect_readable(job, context).map_err(|error| all_denied(job, error))
}

/// Replaces an error about a file that may not be read by one that lists all such files.
pub(crate) fn all_denied(job: &Protect<'_>, error: Error) -> Error {
    let is_it = |e: &io::Error| e.kind() == io::ErrorKind::PermissionDenied;
    if !matches!(&error.kind, ErrorKind::Io(e) if is_it(e)) || error.action != Action::Read {
        return error;
    }
    let Ok(found) = Found::of(job) else { return error };
    let denied = denied_files(&found.base_path, &found.tree.entries);
    if denied.is_empty() { error } else { Error::new(Action::Read, ErrorKind::NotAllowed(denied)) }
}

fn protect_readable(job: &Protect<'_>, context: &Context<'_>) -> Result<Protected> {
    check_absent(job.output, job.policy).map_err(|e| Error { action: Action::Protect, ..e })?;
    let is_there = job.output.exists();
    if is_there && !Sidecar::starts(job.output)? {
        if !Sidecar::is_sealed(job.output)? {
            return Err(Error::at(Action::Replace, job.output, SidecarError::NotASidecar));
        }
        // An unsealed sidecar would reveal names and digests that somebody wanted to hide.
        if job.sealing.is_none() {
            return Err(Error::at(Action::Replace, job.output, SealError::StaysSealed));
        }
    }
    let _lock = if is_there { Some(metadata::lock_file(job.output, Action::Protect)?) } else { None };
    journal::check_none(job.output, Action::Protect)?;
    remove_stale(parent(job.output));
    let found = Found::of(job)?;
    if is_there && found.tree.entries.iter().all(|entry| entry.kind == EntryKind::Folder) {
        return Err(Error::at(Action::Replace, job.output, SidecarError::NoFiles));
    }
    anew(job, found, job.redundancy.unwrap_or(Redundancy::DEFAULT), job.sha256, &|_| Ok(()), context)
}

/// The files to protect.
pub(crate) struct Found {
    /// The path of the sidecar, without links on the way.
    home: PathBuf,
    base_path: PathBuf,
    pub(crate) base: Base,
    pub(crate) tree: Tree,
}

impl Found {
    pub(crate) fn of(job: &Protect<'_>) -> Result<Found> {
        if job.paths.is_empty() {
            return Err(Error::new(Action::Protect, SidecarError::Nothing));
        }
        let home = resolved(job.output)?;
        let base_path = match job.base {
            Some(base) => std::fs::canonicalize(base).map_err(|e| Error::io(Action::Read, base, e))?,
            None => base_of(job.paths, job.output)?,
        };
        let selection =
            Selection { paths: job.paths, exclude: job.exclude, one_file_system: job.one_file_system };
        let beside = [journal::path_of(&home), signature_path(&home)];
        let is_own = |place: &Path| {
            place == home || beside.iter().any(|own| own == place) || is_temporary(place, &home)
        };
        let tree = Tree::find(&base_path, &selection, &is_own)?;
        if tree.entries.is_empty() {
            return Err(Error::new(Action::Protect, SidecarError::Nothing));
        }
        let base = Base::open(&base_path).map_err(|e| Error::io(Action::Read, base_path.as_path(), e))?;
        Ok(Found { home, base_path, base, tree })
    }

    /// The path from the folder of the sidecar to the base; empty if they are the same.
    pub(crate) fn way(&self) -> Vec<u8> {
        way_to(&self.home, &self.base_path)
    }

    /// The report of a sidecar with this root and this E.
    pub(crate) fn report(
        &self,
        catalog: &Catalog,
        (root, metadata): (Digest, Option<Digest>),
        one_piece: u64,
    ) -> Protected {
        let count = |is: fn(&EntryKind) -> bool| {
            catalog.entries.iter().filter(|entry| is(&entry.kind)).count() as u64
        };
        let block = u64::from(catalog.block);
        let group =
            catalog.groups.iter().max_by_key(|group| group.positions()).expect("a catalog has a group");
        let area = catalog.areas[catalog.areas.len() - 1];
        Protected {
            root,
            metadata,
            base: self.base_path.clone(),
            is_beside: self.way().is_empty(),
            files: count(|kind| matches!(kind, EntryKind::File(_))),
            folders: count(|kind| matches!(kind, EntryKind::Folder)),
            links: count(|kind| matches!(kind, EntryKind::Symlink(_) | EntryKind::HardLink(_))),
            files_len: catalog.files_len(),
            recovery_len: catalog.groups.iter().map(|group| group.recovery()).sum::<u64>() * block,
            sidecar_len: area.start + area.len(block).unwrap_or(u64::MAX),
            one_piece,
            block: catalog.block,
            code: (group.code.k(), group.code.m()),
            sets: group.sets,
            skipped: self.tree.skipped.clone(),
        }
    }
}

/// Makes a sidecar anew. `check` sees all digests of files before the sidecar appears.
pub(crate) fn anew(
    job: &Protect<'_>,
    mut found: Found,
    redundancy: Redundancy,
    sha256: bool,
    check: &dyn Fn(&Catalog) -> Result<()>,
    context: &Context<'_>,
) -> Result<Protected> {
    let refused = |e| Error::new(Action::Protect, ErrorKind::Format(e));
    let mut entries = std::mem::take(&mut found.tree.entries);
    if sha256 {
        // Room for SHA-256 comes first, so that all places are known before any digest is.
        make_room_for_sha256(&mut entries, |_| true);
    }
    let way = found.way();
    let (catalog, geometry) = plan::plan(entries, redundancy, &way).map_err(refused)?;
    let seen = &found.tree.seen;
    let area = catalog.areas[0];
    let sidecar_len = area.len(catalog.block.into()).unwrap_or(u64::MAX);
    check_room(job.output, sidecar_len)?;
    check_memory(&catalog, context)?;
    // Recovery shards reveal the content of files to somebody who has the others, so the sidecar is no more readable
    // than they are.
    let policy = readers(job, &found.base, &catalog, &found.tree.stats);
    let out = NewSidecar::new(job.output, policy, job.sealing)?;
    let meter = context.meter(Action::Protect, Some(catalog.files_len()));
    let coded = {
        let put = |at: u64, bytes: &[u8]| out.put(at, bytes);
        Coding::new(&found.base, &catalog, seen, &put, context, &meter).run()?
    };
    let Coded { values, digests, tails, mut anchors } = coded;
    // The order by position is the order by entry, since the whole blocks of all files come first, in order.
    anchors.sort_unstable();
    let anchors: Vec<u64> = anchors.into_iter().map(|(_, anchor)| anchor).collect();
    let mut catalog = catalog;
    for (entry, tail) in catalog.entries.iter_mut().zip(tails) {
        if let EntryKind::File(file) = &mut entry.kind {
            file.blake3 = digest_of(file, &values, 0, tail);
        }
    }
    if sha256 {
        add_sha256(&mut catalog, &found.base, seen, &|_| true, context)?;
    }
    check(&catalog)?;
    check_unchanged(&found.base, &catalog, seen)?;
    meter.finish();
    let stats = Stats { entries: std::mem::take(&mut found.tree.stats), base: way };
    let before = ([0; 32], 1);
    let (metadata, layout, root) = metadata_bytes(&catalog, (&digests, &anchors), &stats, before);
    let stage = stages::enter(Stage::Write, metadata.len() as u64);
    let put = |at: u64, piece: &[u8]| out.put(at, piece);
    let of = metadata::write(metadata, geometry, layout, &area, &context.settings, put)?;
    drop(stage);
    let sealed = out.finish(sidecar_len, job.output, policy, context)?;
    let nothing = Bits::new(catalog.positions());
    let margin = margin(&catalog, &Positions::of(&catalog), &nothing, None);
    Ok(found.report(&catalog, (root, Some(of.root)), margin.one_piece).sealed(sealed))
}

/// The policy of a sidecar that nobody can read who cannot read all of its files.
pub(crate) fn readers(job: &Protect<'_>, base: &Base, catalog: &Catalog, stats: &[Stat]) -> Policy {
    let entries = catalog.entries.iter().zip(stats).map(|(entry, stat)| {
        let is_file = matches!(entry.kind, EntryKind::File(_));
        (&*entry.path, is_file.then_some(stat.mode.into()))
    });
    job.policy.made_of_tree(base, entries, job.output)
}

/// Fails when a set does not fit into the allowed memory.
pub(crate) fn check_memory(catalog: &Catalog, context: &Context<'_>) -> Result<()> {
    let group = catalog.groups[catalog.groups.len() - 1];
    let need = group.code.n() as u64 * u64::from(catalog.block);
    let most = context.settings.max_memory;
    if need > most {
        return Err(Error::new(Action::Protect, ErrorKind::SetMemory { need, most }));
    }
    Ok(())
}

/// Tells whether a path is that of a temporary file of fec beside the sidecar.
fn is_temporary(place: &Path, home: &Path) -> bool {
    let name = place.file_name().map_or(&[][..], |name| name.as_bytes());
    place.parent() == home.parent() && name.starts_with(b".fec-") && name.ends_with(b".tmp")
}

/// The path from the folder of a sidecar to the base; empty if they are the same.
fn way_to(home: &Path, base: &Path) -> Vec<u8> {
    let folder = home.parent().unwrap_or(Path::new("/"));
    let shared = folder.components().zip(base.components()).take_while(|(a, b)| a == b).count();
    let up = folder.components().skip(shared).map(|_| std::path::Component::ParentDir);
    let way: PathBuf = up.chain(base.components().skip(shared)).collect();
    let way = way.into_os_string();
    // A path that is too long is not recorded. The user then names the base.
    if way.len() > usize::from(u16::MAX) { Vec::new() } else { way.as_bytes().to_vec() }
}

/// The metadata, with its predecessor's E and its own generation; its layout; and the root.
pub(crate) fn metadata_bytes(
    catalog: &Catalog,
    (digests, anchors): (&[ShortDigest], &[u64]),
    stats: &Stats,
    (before, generation): (Digest, u64),
) -> (Vec<u8>, Layout, Digest) {
    let mut bytes = catalog.head_bytes();
    bytes.extend_from_slice(digests.as_flattened());
    anchors.iter().for_each(|anchor| bytes.extend_from_slice(&anchor.to_le_bytes()));
    let root = Catalog::root(&bytes);
    let area = catalog.areas[catalog.areas.len() - 1];
    let layout = Layout {
        before,
        generation,
        start: area.start,
        blocks: area.blocks,
        catalog_len: bytes.len() as u64,
        block: catalog.block,
    };
    bytes.extend_from_slice(&stats.to_bytes());
    (bytes, layout, root)
}

/// Fails when an entry has changed since it was found.
pub(crate) fn check_unchanged(base: &Base, catalog: &Catalog, seen: &[u64]) -> Result<()> {
    for (entry, seen) in catalog.entries.iter().zip(seen) {
        // Only files were read. The times of folders change with their content.
        if !matches!(entry.kind, EntryKind::File(_)) {
            continue;
        }
        let place = base.place(&entry.path);
        let now =
            std::fs::symlink_metadata(&place).map_err(|e| Error::io(Action::Read, place.as_path(), e))?;
        if fingerprint_of(&now) != *seen {
            return Err(Error::at(Action::Read, place.as_path(), ErrorKind::Changed));
        }
    }
    Ok(())
}

/// Makes room for the SHA-256 of files.
pub(crate) fn make_room_for_sha256(entries: &mut [Entry], of: impl Fn(usize) -> bool) {
    for (_, entry) in entries.iter_mut().enumerate().filter(|(nth, _)| of(*nth)) {
        if let EntryKind::File(file) = &mut entry.kind {
            file.sha256 = Some(Box::new([0; 32]));
        }
    }
}

/// Reads files once more, for their SHA-256.
pub(crate) fn add_sha256(
    catalog: &mut Catalog,
    base: &Base,
    seen: &[u64],
    of: &dyn Fn(usize) -> bool,
    context: &Context<'_>,
) -> Result<()> {
    let files: Vec<usize> = catalog.files().map(|(nth, _)| nth).filter(|nth| of(*nth)).collect();
    let total = catalog.files().filter(|(nth, _)| of(*nth)).map(|(_, file)| file.size).sum();
    let meter = context.meter(Action::Sha256, Some(total));
    let found: Mutex<Vec<(usize, Result<Digest>)>> = Mutex::new(Vec::new());
    Threads(context.settings.threads).run(files.len(), &|job| {
        if meter.is_cancelled() {
            return;
        }
        let nth = files[job];
        let path = &catalog.entries[nth].path;
        let digest = sha256(base, path, (nth, seen), &meter);
        lock(&found).push((nth, digest.map_err(|e| failure(base, path, e))));
    });
    meter.check()?;
    for (nth, digest) in into_value(found) {
        if let EntryKind::File(file) = &mut catalog.entries[nth].kind {
            file.sha256 = Some(Box::new(digest?));
        }
    }
    meter.finish();
    Ok(())
}

fn sha256(base: &Base, path: &[u8], (nth, seen): (usize, &[u64]), meter: &Gauge<'_>) -> io::Result<Digest> {
    let mut file = base.read(path)?;
    admit(seen, nth as u32, &file, || base.place(path))?;
    let mut hasher = PlainHasher::new(HashKind::Sha256);
    let mut bytes = vec![0; 256 << 10];
    loop {
        match file.read(&mut bytes) {
            Ok(0) => return Ok(hasher.finish()),
            Ok(n) => {
                hasher.update(&bytes[..n]);
                meter.add(n as u64);
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// The BLAKE3 of a file, from its tail and the values of its whole blocks. `values` begins at position `first`.
pub(crate) fn digest_of(file: &FileEntry, values: &[Digest], first: u64, tail: Option<Digest>) -> Digest {
    match (&file.runs[..], tail) {
        ([], None) => HashKind::Blake3.digest(b""),
        ([], Some(digest)) => digest,
        (runs, tail) => {
            let mut tree = FileTree::default();
            for run in runs {
                let start = (run.start - first) as usize;
                tree.push(&values[start..start + run.count as usize]);
            }
            tail.iter().for_each(|tail| tree.push(&[*tail]));
            tree.finish()
        }
    }
}

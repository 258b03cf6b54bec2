//! Protecting files: one pass reads them, hashes them and computes their recovery shards.

use super::coding::{Coded, Coding, admit, failure};
use super::error::SidecarError;
use super::hashing::FileTree;
use super::plan;
pub use super::plan::Redundancy;
use super::tree::{Selection, Tree, base_of, fingerprint_of, resolved};
use super::{Sidecar, journal, metadata};
use crate::context::{Context, Meter};
use crate::error::{Error, ErrorKind, Result};
use crate::io::base::Base;
use crate::io::output::{FileOut, Policy, check_absent, check_room};
use crate::stages::{self, Stage};
use crate::threads::Threads;
use fec_core::digest::{Digest, HashKind, PlainHasher};
use fec_core::executor::{Executor, into_value, lock};
use fec_core::format::sidecar::EntryKind;
use fec_core::format::sidecar::catalog::{Catalog, ShortDigest};
use fec_core::format::sidecar::piece::Layout;
use fec_core::format::sidecar::stat::Stats;
use fec_core::params::GroupGeometry;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// What to protect, and how.
#[derive(Clone, Copy, Debug)]
pub struct Protect<'a> {
    /// Files and folders.
    pub paths: &'a [PathBuf],
    /// The sidecar.
    pub output: &'a Path,
    /// The folder that names are relative to; `None`: that of the sidecar, or else the one that holds all paths.
    pub base: Option<&'a Path>,
    /// Recovery bytes for each byte of the files.
    pub redundancy: Redundancy,
    /// Patterns of paths from the base, or of names, that are left out.
    pub exclude: &'a [String],
    /// Other file systems that are mounted below are left out.
    pub one_file_system: bool,
    /// SHA-256 of each file is recorded too, which reads the files once more.
    pub sha256: bool,
    /// How the sidecar may be made.
    pub policy: Policy,
}

/// What was protected.
#[derive(Clone, Debug)]
pub struct Protected {
    /// The root of the sidecar.
    pub root: Digest,
    /// The folder that names are relative to.
    pub base: PathBuf,
    /// Whether that is the folder of the sidecar.
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
    /// Bytes of a block.
    pub block: u32,
    /// k and m.
    pub code: (usize, usize),
    /// Sets.
    pub sets: u32,
    /// Devices, sockets and FIFOs that were left out.
    pub skipped: Vec<PathBuf>,
}

/// Protects files by a new sidecar, which appears when it is whole. The files are only read.
///
/// Memory: the buffers of sets, as the settings allow; 48 bytes for each block of the files, and about 200 for each file.
///
/// # Errors
/// [`SidecarError`]; [`ErrorKind::Changed`] when a file changes meanwhile; those of the system.
pub fn protect(job: &Protect<'_>, context: &Context<'_>) -> Result<Protected> {
    if job.paths.is_empty() {
        return Err(Error::new("protect", SidecarError::Nothing));
    }
    check_absent(job.output, job.policy)?;
    if job.output.exists() && !Sidecar::starts(job.output)? {
        return Err(Error::at("replace", job.output, SidecarError::NotASidecar));
    }
    let home = resolved(job.output)?;
    let base_path = match job.base {
        Some(base) => std::fs::canonicalize(base).map_err(|e| Error::io("read", base, e))?,
        None => base_of(job.paths, job.output)?,
    };
    let selection =
        Selection { paths: job.paths, exclude: job.exclude, one_file_system: job.one_file_system };
    let journal = journal::path_of(&home);
    let is_own = |place: &Path| place == home || place == journal || is_temporary(place, &home);
    let Tree { mut entries, stats, seen, skipped } = Tree::find(&base_path, &selection, &is_own)?;
    if job.sha256 {
        // Room for them, so that all places are known before any digest is.
        entries.iter_mut().for_each(|entry| {
            if let EntryKind::File(file) = &mut entry.kind {
                file.sha256 = Some(Box::new([0; 32]));
            }
        });
    }
    if entries.is_empty() {
        return Err(Error::new("protect", SidecarError::Nothing));
    }
    let base = Base::open(&base_path).map_err(|e| Error::io("read", base_path.as_path(), e))?;
    let way = way_to(&home, &base_path);
    let is_beside = way.is_empty();
    let (catalog, geometry) = plan::plan(entries, job.redundancy, &way)?;
    let area = catalog.areas[0];
    let sidecar_len = area.len(catalog.block.into()).unwrap_or(u64::MAX);
    check_room(job.output, sidecar_len)?;
    let need = catalog.groups[0].code.n() as u64 * u64::from(catalog.block);
    if need > context.settings.max_memory {
        let most = context.settings.max_memory;
        return Err(Error::new("protect", ErrorKind::SetMemory { need, most }));
    }
    let out = FileOut::create(job.output, job.policy)?;
    let meter = context.meter("protect", Some(catalog.files_len()));
    let coded = {
        let put = |at: u64, bytes: &[u8]| out.put(at, bytes);
        Coding::new(&base, &catalog, &seen, &put, context, meter.as_ref()).run()?
    };
    let (mut catalog, digests, anchors) = with_digests(coded, catalog);
    if job.sha256 {
        add_sha256(&mut catalog, &base, &seen, context)?;
    }
    check_unchanged(&base, &catalog, &seen)?;
    meter.finish();
    let root = write_metadata(
        &catalog,
        (&digests, &anchors),
        Stats { entries: stats, base: way },
        geometry,
        &out,
        context,
    )?;
    out.commit(sidecar_len)?;
    let count =
        |is: fn(&EntryKind) -> bool| catalog.entries.iter().filter(|entry| is(&entry.kind)).count() as u64;
    let group = catalog.groups[0];
    Ok(Protected {
        root,
        base: base_path,
        is_beside,
        files: count(|kind| matches!(kind, EntryKind::File(_))),
        folders: count(|kind| matches!(kind, EntryKind::Folder)),
        links: count(|kind| matches!(kind, EntryKind::Symlink(_) | EntryKind::HardLink(_))),
        files_len: catalog.files_len(),
        recovery_len: group.recovery() * u64::from(catalog.block),
        sidecar_len,
        block: catalog.block,
        code: (group.code.k(), group.code.m()),
        sets: group.sets,
        skipped,
    })
}

/// Whether a place is that of a file that fec writes beside the sidecar before it is whole.
fn is_temporary(place: &Path, home: &Path) -> bool {
    let name = place.file_name().map_or(&[][..], |name| name.as_bytes());
    place.parent() == home.parent() && name.starts_with(b".fec-") && name.ends_with(b".tmp")
}

/// The way from the folder of a sidecar to the base; empty if it is that folder.
fn way_to(home: &Path, base: &Path) -> Vec<u8> {
    let folder = home.parent().unwrap_or(Path::new("/"));
    let shared = folder.components().zip(base.components()).take_while(|(a, b)| a == b).count();
    let up = folder.components().skip(shared).map(|_| std::path::Component::ParentDir);
    let way: PathBuf = up.chain(base.components().skip(shared)).collect();
    let way = way.into_os_string();
    // What is too long to be recorded is not: the user names the base anyway.
    if way.len() > usize::from(u16::MAX) { Vec::new() } else { way.as_bytes().to_vec() }
}

/// Codes and writes the metadata; returns the root.
fn write_metadata(
    catalog: &Catalog,
    (digests, anchors): (&[ShortDigest], &[u64]),
    stats: Stats,
    geometry: GroupGeometry,
    out: &FileOut,
    context: &Context<'_>,
) -> Result<Digest> {
    let mut bytes = catalog.head_bytes();
    bytes.extend_from_slice(digests.as_flattened());
    anchors.iter().for_each(|anchor| bytes.extend_from_slice(&anchor.to_le_bytes()));
    let root = Catalog::root(&bytes);
    let area = catalog.areas[catalog.areas.len() - 1];
    let layout = Layout {
        before: [0; 32],
        generation: 1,
        start: area.start,
        blocks: area.blocks,
        catalog_len: bytes.len() as u64,
        block: catalog.block,
    };
    bytes.extend_from_slice(&stats.to_bytes());
    let _stage = stages::enter(Stage::Write, bytes.len() as u64);
    metadata::write(bytes, geometry, layout, &area, &context.settings, |at, piece| out.put(at, piece))?;
    Ok(root)
}

/// Fails when an entry is not what it was when it was found.
fn check_unchanged(base: &Base, catalog: &Catalog, seen: &[u64]) -> Result<()> {
    for (entry, seen) in catalog.entries.iter().zip(seen) {
        // Other names of a file, and folders, whose times change with what is in them, were not read.
        if !matches!(entry.kind, EntryKind::File(_)) {
            continue;
        }
        let place = base.place(&entry.path);
        let now = std::fs::symlink_metadata(&place).map_err(|e| Error::io("read", place.as_path(), e))?;
        if fingerprint_of(&now) != *seen {
            return Err(Error::at("read", place.as_path(), ErrorKind::Changed));
        }
    }
    Ok(())
}

/// Reads all files once more, for their SHA-256.
fn add_sha256(catalog: &mut Catalog, base: &Base, seen: &[u64], context: &Context<'_>) -> Result<()> {
    let meter = context.meter("sha256", Some(catalog.files_len()));
    let files: Vec<usize> = catalog.files().map(|(nth, _)| nth).collect();
    let found: Mutex<Vec<(usize, Result<Digest>)>> = Mutex::new(Vec::new());
    Threads(context.settings.threads).run(files.len(), &|job| {
        let nth = files[job];
        let digest = sha256(base, &catalog.entries[nth].path, (nth, seen), meter.as_ref());
        let digest = digest.map_err(|e| failure(base, catalog, nth as u32, e));
        lock(&found).push((nth, digest));
    });
    for (nth, digest) in into_value(found) {
        if let EntryKind::File(file) = &mut catalog.entries[nth].kind {
            file.sha256 = Some(Box::new(digest?));
        }
    }
    meter.finish();
    Ok(())
}

fn sha256(base: &Base, path: &[u8], (nth, seen): (usize, &[u64]), meter: &dyn Meter) -> io::Result<Digest> {
    let mut file = base.read(path)?;
    admit(seen, nth as u32, &file)?;
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

/// The catalog with the digests of all files; the digests of all shards; and the anchors.
fn with_digests(coded: Coded, mut catalog: Catalog) -> (Catalog, Vec<ShortDigest>, Vec<u64>) {
    let Coded { values, digests, tails, mut anchors } = coded;
    // By position, which is by entry: the whole blocks of all files come first, in order.
    anchors.sort_unstable();
    let anchors = anchors.into_iter().map(|(_, anchor)| anchor).collect();
    for (entry, tail) in catalog.entries.iter_mut().zip(tails) {
        let EntryKind::File(file) = &mut entry.kind else { continue };
        file.blake3 = match (&file.runs[..], tail) {
            ([], None) => HashKind::Blake3.digest(b""),
            ([], Some(digest)) => digest,
            (runs, tail) => {
                let mut tree = FileTree::default();
                for run in runs {
                    tree.push(&values[run.start as usize..(run.start + run.count) as usize]);
                }
                tail.iter().for_each(|tail| tree.push(&[*tail]));
                tree.finish()
            }
        };
    }
    (catalog, digests, anchors)
}

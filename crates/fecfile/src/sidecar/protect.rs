//! Protecting files: one pass reads them, hashes them and computes their recovery shards.

use super::error::SidecarError;
use super::hashing::{FileTree, plain_digests};
use super::plan;
pub use super::plan::Redundancy;
use super::positions::{Admit, PositionReader, Positions, Span};
use super::tree::{Selection, Tree, base_of, fingerprint_of, resolved};
use super::{Sidecar, journal, metadata};
use crate::context::{Context, Meter};
use crate::error::{Error, ErrorKind, Result};
use crate::io::base::Base;
use crate::io::output::{FileOut, Policy, check_absent, check_room};
use crate::stages::{self, Stage};
use crate::threads::Threads;
use fec_core::block::{Plan, ShardBuf};
use fec_core::digest::{Digest, HashKind, PlainHasher, blocks};
use fec_core::executor::{Executor, into_value, lock};
use fec_core::format::sidecar::anchor::Gear;
use fec_core::format::sidecar::catalog::{Catalog, ShortDigest, shortened};
use fec_core::format::sidecar::piece::Layout;
use fec_core::format::sidecar::stat::Stats;
use fec_core::format::sidecar::{EntryKind, has_anchor};
use fec_core::params::GroupGeometry;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

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
    let coded = Coding::new(&base, &catalog, &seen, &out, context, meter.as_ref()).run()?;
    let (mut catalog, digests, anchors) = coded.into_catalog(catalog);
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

/// The coding of all sets of a first generation.
struct Coding<'a> {
    base: &'a Base,
    catalog: &'a Catalog,
    positions: Positions,
    seen: &'a [u64],
    out: &'a FileOut,
    meter: &'a dyn Meter,
    plan: Plan,
    gear: Gear,
    /// Sets of which each is a column of a run.
    run_sets: u32,
    workers: usize,
    results: Mutex<Coded>,
}

/// What coding learns of the files.
struct Coded {
    /// The chaining values of whole blocks, by position.
    values: Vec<Digest>,
    /// Digests: of positions, then of recovery shards.
    digests: Vec<ShortDigest>,
    /// Of the bytes behind whole blocks: their chaining value, or the digest of a file that has no others.
    tails: Vec<Option<Digest>>,
    /// Positions with their anchors.
    anchors: Vec<(u64, u64)>,
}

impl<'a> Coding<'a> {
    fn new(
        base: &'a Base,
        catalog: &'a Catalog,
        seen: &'a [u64],
        out: &'a FileOut,
        context: &'a Context<'a>,
        meter: &'a dyn Meter,
    ) -> Coding<'a> {
        /// The most bytes of a row: as many as keep the hash busy, and few enough for all rows to stay in a cache.
        const ROW: u64 = 32 << 10;
        let group = catalog.groups[0];
        let settings = &context.settings;
        stages::tell_work(group.code, HashKind::Blake3, settings.backend);
        let set_bytes = group.code.n() as u64 * u64::from(catalog.block);
        // Two thirds of the memory: the rest is for digests.
        let budget = settings.max_memory / 3 * 2;
        let workers =
            settings.threads.min((budget / set_bytes).max(1) as usize).min(group.sets as usize).max(1);
        let run_sets = (budget / (workers as u64 * set_bytes))
            .min(ROW / u64::from(catalog.block))
            .min(u64::from(group.sets).div_ceil(workers as u64))
            .max(1) as u32;
        let results = Coded {
            values: vec![[0; 32]; group.positions() as usize],
            digests: vec![[0; 16]; (group.positions() + group.recovery()) as usize],
            tails: vec![None; catalog.entries.len()],
            anchors: Vec::new(),
        };
        Coding {
            base,
            catalog,
            positions: Positions::of(catalog),
            seen,
            out,
            meter,
            plan: Plan::encode(group.code, settings.backend),
            gear: Gear::default(),
            run_sets,
            workers,
            results: Mutex::new(results),
        }
    }

    fn run(self) -> Result<Coded> {
        let sets = self.catalog.groups[0].sets;
        let next = AtomicU64::new(0);
        let first_error: Mutex<Option<Error>> = Mutex::new(None);
        Threads(self.workers).run(self.workers, &|_| {
            let mut worker = Worker::new(&self);
            while lock(&first_error).is_none() {
                let first = next.fetch_add(self.run_sets.into(), Ordering::Relaxed);
                if first >= u64::from(sets) {
                    break;
                }
                let last = (first + u64::from(self.run_sets)).min(sets.into());
                if let Err(e) = worker.code(first as u32..last as u32) {
                    lock(&first_error).get_or_insert(e);
                }
            }
        });
        match into_value(first_error) {
            Some(error) => Err(error),
            None => Ok(into_value(self.results)),
        }
    }

    fn failure(&self, span: Span, cause: io::Error) -> Error {
        failure(self.base, self.catalog, span.entry, cause)
    }
}

/// Admits a file that is still what it was when it was found.
fn admit(seen: &[u64], entry: u32, file: &File) -> io::Result<()> {
    let meta = file.metadata()?;
    match fingerprint_of(&meta) == seen[entry as usize] {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "changed")),
    }
}

fn failure(base: &Base, catalog: &Catalog, entry: u32, cause: io::Error) -> Error {
    let place = base.place(&catalog.entries[entry as usize].path);
    match cause.kind() {
        // It is shorter than it was, or another.
        io::ErrorKind::UnexpectedEof => Error::at("read", place.as_path(), ErrorKind::Changed),
        _ => Error::io("read", place.as_path(), cause),
    }
}

/// The buffers of a thread.
struct Worker<'a> {
    coding: &'a Coding<'a>,
    rows: ShardBuf,
    files: PositionReader<'a>,
}

impl Admit for Coding<'_> {
    fn admit(&self, entry: u32, file: &File) -> io::Result<()> {
        admit(self.seen, entry, file)
    }
}

impl<'a> Worker<'a> {
    fn new(coding: &'a Coding<'a>) -> Worker<'a> {
        let code = coding.plan.code();
        let row_len = coding.run_sets as usize * coding.catalog.block as usize;
        Worker {
            coding,
            rows: ShardBuf::new(code.n(), row_len),
            files: PositionReader::new(coding.base, coding.catalog, &coding.positions, coding),
        }
    }

    /// Reads, hashes, codes and writes successive sets, which stand side by side in the rows.
    fn code(&mut self, sets: Range<u32>) -> Result<()> {
        let Coding { catalog, plan, .. } = self.coding;
        let group = catalog.groups[0];
        let (block, k) = (catalog.block as usize, plan.code().k());
        let count = (sets.end - sets.start) as usize;
        self.rows.set_row_len(count * block);
        let mut found = Found::default();
        for index in 0..k {
            let first = index as u64 * u64::from(group.sets) + u64::from(sets.start);
            let row = self.rows.row_mut(index);
            let bytes = row.len() as u64;
            let stage = stages::enter(Stage::Read, bytes);
            self.files.fill(first, row, |span, cause| Err(self.coding.failure(span, cause)))?;
            drop(stage);
            let _stage = stages::enter(Stage::Hash, bytes);
            found.look(self.coding, first, row);
        }
        let stage = stages::enter(Stage::Code, (count * block * k) as u64);
        let (known, mut wanted) = self.rows.split_rows(|index| index >= k);
        plan.run(&known, &mut wanted);
        drop(stage);
        for index in k..plan.code().n() {
            let nth = (index - k) as u64 * u64::from(group.sets) + u64::from(sets.start);
            let row = self.rows.row(index);
            let stage = stages::enter(Stage::Hash, row.len() as u64);
            found.digests.push((group.positions() + nth, plain_digests(row, block)));
            drop(stage);
            let _stage = stages::enter(Stage::Write, row.len() as u64);
            put_blocks(catalog, group.first + nth, row, |at, bytes| self.coding.out.put(at, bytes))?;
        }
        found.merge(&mut lock(&self.coding.results));
        self.coding.meter.add(found.bytes);
        Ok(())
    }
}

/// Hands blocks of the last area, from number `first` on, to `put` with their places.
fn put_blocks(
    catalog: &Catalog,
    first: u64,
    bytes: &[u8],
    mut put: impl FnMut(u64, &[u8]) -> Result<()>,
) -> Result<()> {
    let block = u64::from(catalog.block);
    let area = &catalog.areas[catalog.areas.len() - 1];
    let (mut nth, mut left) = (first, bytes);
    while !left.is_empty() {
        let (at, in_one_go) = area.block(nth, block);
        let now = left.len().min((in_one_go * block) as usize);
        put(at, &left[..now])?;
        left = &left[now..];
        nth += in_one_go;
    }
    Ok(())
}

/// What the rows of one run tell.
#[derive(Default)]
struct Found {
    values: Vec<(u64, Vec<Digest>)>,
    anchors: Vec<(u64, u64)>,
    digests: Vec<(u64, Vec<ShortDigest>)>,
    tails: Vec<(u32, Digest)>,
    bytes: u64,
}

impl Found {
    /// Hashes a row, which holds the positions from `first` on.
    fn look(&mut self, coding: &Coding<'_>, first: u64, row: &[u8]) {
        let Coding { catalog, positions, .. } = coding;
        let block = u64::from(catalog.block);
        let range = first..first + row.len() as u64 / block;
        let base = first * block;
        // Positions with packed bytes, from the first to the last in the row.
        let mut packed: Option<Range<u64>> = None;
        for span in positions.within(range) {
            let bytes = &row[(span.at - base) as usize..][..span.len as usize];
            self.bytes += span.len;
            if span.is_packed {
                let (start, end) = (span.at / block, (span.at + span.len).div_ceil(block));
                packed = Some(packed.map_or(start, |range| range.start)..end);
                self.tail(coding, &span, bytes);
                continue;
            }
            let mut values = vec![[0; 32]; bytes.len() / block as usize];
            blocks::values(bytes, block as usize, span.offset, &mut values);
            let offsets = (span.offset..).step_by(block as usize).zip(bytes.chunks_exact(block as usize));
            for (nth, (offset, bytes)) in (span.at / block..).zip(offsets) {
                if has_anchor(offset) {
                    self.anchors.push((nth, coding.gear.anchor(bytes)));
                }
            }
            self.digests.push((span.at / block, values.iter().map(shortened).collect()));
            self.values.push((span.at / block, values));
        }
        if let Some(packed) = packed {
            let bytes =
                &row[((packed.start - first) * block) as usize..((packed.end - first) * block) as usize];
            self.digests.push((packed.start, plain_digests(bytes, block as usize)));
        }
    }

    /// Hashes what is behind the whole blocks of a file.
    fn tail(&mut self, coding: &Coding<'_>, span: &Span, bytes: &[u8]) {
        let EntryKind::File(file) = &coding.catalog.entries[span.entry as usize].kind else { return };
        let digest = match file.runs[..] {
            [] => HashKind::Blake3.digest(bytes),
            _ => blocks::tail_value(bytes, span.offset),
        };
        self.tails.push((span.entry, digest));
    }

    fn merge(&self, coded: &mut Coded) {
        for (at, values) in &self.values {
            coded.values[*at as usize..][..values.len()].copy_from_slice(values);
        }
        for (at, digests) in &self.digests {
            coded.digests[*at as usize..][..digests.len()].copy_from_slice(digests);
        }
        coded.anchors.extend_from_slice(&self.anchors);
        for (entry, tail) in &self.tails {
            coded.tails[*entry as usize] = Some(*tail);
        }
    }
}

impl Coded {
    /// The catalog with the digests of all files; and the digests of all shards.
    fn into_catalog(self, mut catalog: Catalog) -> (Catalog, Vec<ShortDigest>, Vec<u64>) {
        let Coded { values, digests, tails, mut anchors } = self;
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
}

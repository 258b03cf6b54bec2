//! Protects files: one pass reads them, hashes them and computes their recovery shards.
//!
//! Rows of several sets go through the kernel and the hash while they are in a cache.

pub(crate) mod attempts;
pub(crate) mod coding;
pub(crate) mod content;
mod excluded;
pub(crate) mod outputs;
pub(crate) mod sha256;

use crate::Sidecar;
use crate::catalog::bits::Bits;
use crate::catalog::folder::{AROUND, Made, around};
use crate::catalog::journal;
use crate::catalog::metadata;
use crate::catalog::others::is_of_sidecar;
use crate::catalog::plan;
pub use crate::catalog::plan::Redundancy;
use crate::catalog::positions::{self, Positions};
use crate::catalog::seen::{Reasons, Seen, error_of, is_below};
use crate::catalog::signature::signature_path;
use crate::catalog::tree::{Selection, Tree, base_of, fingerprint_of, named, resolved};
use crate::catalog::wide;
use crate::error::SidecarError;
use crate::examine::{Spare, margin};
use crate::protect::attempts::Attempts;
use crate::protect::coding::{Coded, Coding, give_digests};
use crate::protect::content::Contents;
pub use crate::protect::excluded::Excluded;
use crate::protect::outputs::NewSidecar;
use crate::protect::sha256::{add_sha256, make_room_for_sha256};
use fec_base::context::Context;
use fec_base::error::{Action, Error, ErrorKind, Result};
use fec_base::io::base::Base;
use fec_base::io::output::{Policy, check_absent, check_folder, check_room};
use fec_base::io::temporary::{parent, remove_stale};
use fec_base::program::stages::{self, Stage};
use fec_core::digest::Digest;
use fec_core::format::sidecar::catalog::{Catalog, ShortDigest};
use fec_core::format::sidecar::group::GroupCode;
use fec_core::format::sidecar::parts::{Omitted, Reason, limit_omitted};
use fec_core::format::sidecar::piece::Layout;
use fec_core::format::sidecar::stat::{Stat, Stats};
use fec_core::format::sidecar::{Entry, EntryKind};
use fec_keys::age::Keys;
use fecfile::report::Written;
use fecfile::seal::SealError;
use fecfile::seal::Sealing;
use std::collections::HashMap;
use std::fs::Metadata;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
    /// Patterns of what is left out (docs/FORMAT.md, section 17.3). The sidecar remembers them, and an update adds
    /// them to those of before.
    pub exclude: &'a [String],
    /// True if folders that are tagged as caches are left out.
    pub exclude_caches: bool,
    /// True if an update uses the given patterns alone.
    pub forget_excludes: bool,
    /// True if file systems that are mounted below are left out.
    pub one_file_system: bool,
    /// True if SHA-256 of each file is recorded too, which reads the files once more.
    pub sha256: bool,
    /// True if the time of change and the inode of each file are recorded, by a mark that tells later whether somebody
    /// wrote to the file and kept its time. The sidecars of two copies of the same files differ then. An update does as
    /// the sidecar was made.
    pub marks: bool,
    /// The conditions for making the sidecar.
    pub policy: Policy,
    /// The recipients of a sealed sidecar; `None` leaves it unsealed.
    pub sealing: Option<&'a Arc<Sealing>>,
    /// The keys that open the updated sidecar, if it is sealed.
    pub keys: Option<&'a Keys>,
    /// Values of E, from [`Protected::metadata`], that are known to belong to the root that the updated sidecar must
    /// have.
    pub known: &'a [Digest],
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
    /// True if that is the folder of the sidecar, or the one around it if it is named `.fec`.
    pub is_beside: bool,
    /// Regular files.
    pub files: u64,
    /// Folders.
    pub folders: u64,
    /// Symbolic links, and further names of files.
    pub links: u64,
    /// Bytes of all files.
    pub files_len: u64,
    /// Those of them that take recovery data: neither zeros nor duplicates, as far as these were found.
    pub data_len: u64,
    /// Bytes of the recovery shards.
    pub recovery_len: u64,
    /// Bytes of the sidecar.
    pub sidecar_len: u64,
    /// The bytes that could be lost and mended.
    pub spare: Spare,
    /// Bytes of a block.
    pub block: u32,
    /// k and m of the group with the most positions.
    pub code: (usize, usize),
    /// Sets of that group.
    pub sets: u32,
    /// Devices, sockets and FIFOs that were left out.
    pub skipped: Vec<PathBuf>,
    /// Other sidecars in the folders, and their signatures and lists, that were left out.
    pub sidecars: Vec<PathBuf>,
    /// The patterns, and what they left out.
    pub excluded: Excluded,
    /// Paths that are not protected although they were named.
    pub omitted: Vec<Omitted>,
    /// Paths that an update could not look at, and that stay protected as they were.
    pub kept: Vec<Omitted>,
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
/// [`SidecarError`]; [`SealError::StaysSealed`]; those of the system. A file that cannot be read, or changes each time,
/// is part of the result, unless no file can be read.
pub fn protect(job: &Protect<'_>, context: &Context<'_>) -> Result<Protected> {
    let _made = Made::of(job.output).map_err(|e| Error::io(Action::Create, job.output, e))?;
    check_folder(job.output)?;
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
    remove_stale(parent(job.output), context.progress);
    Attempts::run(false, |attempts| {
        let found = Found::of(job, attempts, None)?;
        if is_there && found.tree.entries.iter().all(|entry| entry.kind == EntryKind::Folder) {
            return Err(Error::at(Action::Replace, job.output, SidecarError::NoFiles));
        }
        anew(job, found, job.redundancy.unwrap_or(Redundancy::DEFAULT), job.sha256, &|_| Ok(()), context)
    })
}

/// The files to protect.
pub(crate) struct Found {
    /// The path of the sidecar, without links on the way.
    home: PathBuf,
    base_path: PathBuf,
    pub(crate) base: Base,
    pub(crate) tree: Tree,
    excluded: Excluded,
}

impl Found {
    /// Finds what the next attempt protects. `old` is an updated sidecar.
    pub(crate) fn of(job: &Protect<'_>, attempts: &Attempts, old: Option<&Sidecar>) -> Result<Found> {
        if job.paths.is_empty() {
            return Err(Error::new(Action::Protect, SidecarError::Nothing));
        }
        let home = resolved(job.output)?;
        let base_path = match job.base {
            Some(base) => std::fs::canonicalize(base).map_err(|e| Error::io(Action::Read, base, e))?,
            None => base_of(job.paths, job.output)?,
        };
        let named = named(job.paths, &base_path)?;
        let base = Base::open(&base_path).map_err(|e| Error::io(Action::Read, base_path.as_path(), e))?;
        let old_patterns = old.filter(|_| !job.forget_excludes);
        let anchor = anchor(&named, &base_path);
        let mut excluded = Excluded::new((job.exclude, job.exclude_caches), anchor, old_patterns)?;
        let beside = [journal::path_of(&home), signature_path(&home)];
        let own_folder = around(&home).ok().flatten().and(home.parent());
        let is_own = |place: &Path| {
            place == home
                || Some(place) == own_folder
                || beside.iter().any(|own| own == place)
                || is_temporary(place, &home)
        };
        let mut tree = excluded.run(|patterns| {
            let Attempts { omitted, kept, .. } = attempts;
            let keep = |omitted: &_| old.map_or_else(Vec::new, |old| attempts.keep(old, omitted));
            let one_file_system = job.one_file_system;
            let selection =
                Selection { named: &named, patterns, one_file_system, omitted, kept, keep: &keep };
            Tree::find(&base, &selection, [&is_own, &is_of_sidecar])
        })?;
        tree.seen.failed = Arc::clone(&attempts.failed);
        if !job.marks {
            tree.marks.clear();
        }
        check_any(&tree, &base)?;
        Ok(Found { home, base_path, base, tree, excluded })
    }

    /// Tells whether the base is known by the place of the sidecar, in a folder `.fec`.
    fn is_around(&self) -> bool {
        around(&self.home).is_ok_and(|around| around.is_some())
    }

    /// The path from the folder of the sidecar to the base; empty if they are the same.
    pub(crate) fn way(&self) -> Vec<u8> {
        way_to(&self.home, &self.base_path)
    }

    /// The times and permissions of all entries, and what else stands behind the catalog.
    pub(crate) fn stats(&self) -> Stats {
        let Tree { stats, marks, .. } = &self.tree;
        Stats {
            entries: stats.clone(),
            base: self.way(),
            marks: marks.clone(),
            exclusion: self.excluded.by.clone(),
            omitted: self.omitted(),
        }
    }

    /// The paths that are not protected, as far as a sidecar records them: a folder stands for what is in it.
    fn omitted(&self) -> Vec<Omitted> {
        let mut omitted = listed(&self.tree.omitted);
        omitted.retain(|omitted| !is_below(&self.tree.omitted, &omitted.path));
        limit_omitted(&mut omitted);
        omitted
    }

    /// The report of a sidecar with this root and this E.
    pub(crate) fn report(
        &self,
        catalog: &Catalog,
        (root, metadata): (Digest, Option<Digest>),
        spare: Spare,
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
            is_beside: self.way().is_empty() || self.way() == AROUND && self.is_around(),
            files: count(|kind| matches!(kind, EntryKind::File(_))),
            folders: count(|kind| matches!(kind, EntryKind::Folder)),
            links: count(|kind| matches!(kind, EntryKind::Symlink(_) | EntryKind::HardLink(_))),
            files_len: catalog.files_len(),
            data_len: Positions::of(catalog).len(0..catalog.positions()),
            recovery_len: catalog.groups.iter().map(|group| group.recovery()).sum::<u64>() * block,
            sidecar_len: area.start + area.len(block).unwrap_or(u64::MAX),
            spare,
            block: catalog.block,
            code: (group.code.k() as usize, group.code.m() as usize),
            sets: group.sets,
            skipped: self.tree.skipped.clone(),
            sidecars: self.tree.sidecars.clone(),
            excluded: self.excluded.clone(),
            omitted: listed(&self.tree.omitted),
            kept: listed(&self.tree.kept),
        }
    }
}

/// The only folder that is protected, from which patterns count too; empty if there are several.
fn anchor(named: &[(PathBuf, Metadata)], base: &Path) -> Vec<u8> {
    match named {
        [(place, meta)] if meta.is_dir() => {
            place.strip_prefix(base).map_or_else(|_| Vec::new(), |path| path.as_os_str().as_bytes().to_vec())
        }
        _ => Vec::new(),
    }
}

/// Fails if nothing was found, or no file could be read.
fn check_any(tree: &Tree, base: &Base) -> Result<()> {
    let is_read =
        |(nth, entry): (usize, &Entry)| matches!(entry.kind, EntryKind::File(_)) && tree.seen.has(nth);
    let mut left = tree.omitted.iter().chain(&tree.kept);
    match left.clone().next() {
        None if tree.entries.is_empty() => Err(Error::new(Action::Protect, SidecarError::Nothing)),
        Some((path, reason)) if !tree.entries.iter().enumerate().any(is_read) => {
            match left.all(|(_, reason)| *reason == Reason::Denied) {
                true => {
                    let mut denied: Vec<PathBuf> =
                        tree.omitted.keys().chain(tree.kept.keys()).map(|path| base.place(path)).collect();
                    denied.sort_unstable();
                    Err(Error::new(Action::Read, ErrorKind::NotAllowed(denied)))
                }
                false => Err(error_of(base, path, *reason)),
            }
        }
        _ => Ok(()),
    }
}

/// Paths with their reasons.
fn listed(reasons: &Reasons) -> Vec<Omitted> {
    reasons.iter().map(|(path, reason)| Omitted { path: path.clone(), reason: *reason }).collect()
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
    let stats = found.stats();
    let stats_bytes = stats.to_bytes();
    let seen = &found.tree.seen;
    let block = block_of(&entries);
    let all: Vec<usize> = (0..entries.len()).collect();
    let contents = Contents { base: &found.base, entries: &entries, seen, block: block.into(), context };
    let content = contents.find(&all, &HashMap::new())?;
    let (mut catalog, geometry) =
        plan::plan(entries, redundancy, stats_bytes.len() as u64, (block, &content)).map_err(refused)?;
    let area = catalog.areas[0];
    let sidecar_len = area.len(catalog.block.into()).unwrap_or(u64::MAX);
    check_room(job.output, sidecar_len)?;
    check_memory(&catalog, context)?;
    // Recovery shards reveal the content of files to somebody who has the others, so the sidecar is no more readable
    // than they are.
    let policy = readers(job, &found.base, &catalog, &stats.entries);
    let out = NewSidecar::new(job.output, policy, job.sealing)?;
    let zeros = content.zeros.values().flatten().map(|zeros| (zeros.end - zeros.start) * u64::from(block));
    let data_len = Positions::of(&catalog).len(0..catalog.positions());
    let meter = context.meter(Action::Protect, Some(data_len + zeros.sum::<u64>()));
    let coded = {
        let put = |at: u64, bytes: &[u8]| out.put(at, bytes);
        Coding::new(&found.base, &catalog, seen, &put, context, &meter).run()?
    };
    let Coded { values, digests, tails, mut anchors } = coded;
    anchors.sort_unstable();
    let anchors = positions::anchors(&catalog, &anchors);
    give_digests(&mut catalog, &content.twins, (&values, 0), &tails, (&|_| true, &meter))?;
    if sha256 {
        add_sha256(&mut catalog, &found.base, seen, &|_| true, context)?;
    }
    seen.check(&found.base).or_else(|_| check_unchanged(&found.base, &catalog, seen))?;
    check(&catalog)?;
    check_unchanged(&found.base, &catalog, seen)?;
    meter.finish();
    let before = ([0; 32], 1);
    let (metadata, layout, root) = metadata_bytes(&catalog, (&digests, &anchors), &stats_bytes, before);
    let stage = stages::enter(Stage::Write, metadata.len() as u64);
    let put = |at: u64, piece: &[u8]| out.put(at, piece);
    let of = metadata::write(metadata, geometry, layout, &area, &context.settings, put)?;
    drop(stage);
    let sealed = out.finish(sidecar_len, job.output, policy, context)?;
    let nothing = Bits::new(catalog.positions());
    let margin = margin(&catalog, &Positions::of(&catalog), (&nothing, None), &|_| (0, 0));
    Ok(found.report(&catalog, (root, Some(of.root)), margin.spare).sealed(sealed))
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
    let block = u64::from(catalog.block);
    let need = match group.code {
        GroupCode::Small(code) => code.n() as u64 * block,
        GroupCode::Wide(code) => wide::memory(code, block),
    };
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
    stats: &[u8],
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
    bytes.extend_from_slice(stats);
    (bytes, layout, root)
}

/// Fails when an entry has changed since it was found.
pub(crate) fn check_unchanged(base: &Base, catalog: &Catalog, seen: &Seen) -> Result<()> {
    for (nth, entry) in catalog.entries.iter().enumerate() {
        // Only files were read. The times of folders change with their content.
        if !matches!(entry.kind, EntryKind::File(_)) || !seen.has(nth) || seen.is_settled(nth) {
            continue;
        }
        let changed = match std::fs::symlink_metadata(base.place(&entry.path)) {
            Ok(now) if fingerprint_of(&now) == seen.fingerprints[nth] => continue,
            Ok(_) => io::ErrorKind::UnexpectedEof.into(),
            Err(e) => e,
        };
        seen.pass(base, &entry.path, changed)?;
    }
    seen.check(base)
}

/// The block for these files.
fn block_of(entries: &[Entry]) -> u32 {
    let len = entries.iter().map(|entry| match &entry.kind {
        EntryKind::File(file) => file.size,
        _ => 0,
    });
    plan::block_len(len.sum())
}

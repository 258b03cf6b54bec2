//! Finds everything to protect: files, folders and links below a base, in the order of their paths.

use crate::catalog::fingerprint::{fingerprint_of, identity_of};
use crate::catalog::folder::around;
use crate::catalog::patterns::Patterns;
use crate::catalog::seen::{Reasons, Seen, UNSEEN, is_below, reason_of};
use crate::error::SidecarError;
use fec_base::error::{Action, Error, Result};
use fec_base::io::base::Base;
use fec_base::io::list;
use fec_base::io::temporary::parent;
use fec_core::format::sidecar::parts::Reason;
use fec_core::format::sidecar::stat::{Stat, mark};
use fec_core::format::sidecar::{Entry, EntryKind, FileEntry, is_path, most_paths};
use rustix::process::geteuid;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The choice of what to protect.
#[derive(Clone, Copy)]
pub(crate) struct Selection<'a> {
    /// Files and folders, without links in their paths.
    pub(crate) named: &'a [(PathBuf, Metadata)],
    /// Patterns of what is left out.
    pub(crate) patterns: &'a Patterns<'a>,
    /// True if file systems that are mounted below are left out.
    pub(crate) one_file_system: bool,
    /// True if files may grow while they are read.
    pub(crate) may_grow: bool,
    /// Paths that are left out, since they could not be read.
    pub(crate) omitted: &'a Reasons,
    /// Files that are not looked at, since they could not be read.
    pub(crate) kept: &'a Reasons,
    /// The entries of an old sidecar that stand for these files, and for what stands at or below other paths.
    pub(crate) keep: &'a dyn Fn(&Reasons) -> Vec<Kept>,
}

/// An entry of an old sidecar that stands for what cannot be looked at.
pub(crate) struct Kept {
    pub(crate) entry: Entry,
    pub(crate) stat: Stat,
    pub(crate) mark: u64,
    /// Why it is kept.
    pub(crate) reason: Reason,
    /// The path of the file that a hard link is a name of.
    pub(crate) first: Option<Box<[u8]>>,
}

/// The files, folders and links that were found, by path.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// Entries; files have no digests and no places yet.
    pub(crate) entries: Vec<Entry>,
    /// The stat of each entry.
    pub(crate) stats: Vec<Stat>,
    /// The mark of each entry, zero for what is no file.
    pub(crate) marks: Vec<u64>,
    /// The entries as they were found.
    pub(crate) seen: Seen,
    /// Devices, sockets and FIFOs, which hold nothing to protect.
    pub(crate) skipped: Vec<PathBuf>,
    /// Other sidecars in the folders, and their signatures and lists.
    pub(crate) sidecars: Vec<PathBuf>,
    /// Paths that are not protected, and entries that are kept as they were.
    pub(crate) omitted: Reasons,
    pub(crate) kept: Reasons,
}

/// The times and permissions that a catalog keeps.
pub(crate) fn stat_of(meta: &Metadata) -> Stat {
    Stat { seconds: meta.mtime(), nanos: meta.mtime_nsec() as u32, mode: (meta.mode() & 0o7777) as u16 }
}

/// A path without links on the way to its last part.
pub(crate) fn resolved(path: &Path) -> Result<PathBuf> {
    let fail = |e| Error::io(Action::Read, path, e);
    match path.file_name() {
        Some(name) => Ok(fs::canonicalize(parent(path)).map_err(fail)?.join(name)),
        // The path ends in `.` or `..`, or is the root.
        None => fs::canonicalize(path).map_err(fail),
    }
}

/// The base of paths: the folder of the sidecar if it holds all of them, or the one around a folder `.fec`, else the
/// deepest folder that does.
pub(crate) fn base_of(paths: &[PathBuf], output: &Path) -> Result<PathBuf> {
    let home = resolved(output)?.parent().map(Path::to_path_buf).unwrap_or_default();
    let paths: Vec<PathBuf> = paths.iter().map(|path| resolved(path)).collect::<Result<_>>()?;
    if paths.iter().all(|path| path.starts_with(&home)) {
        return Ok(home);
    }
    if let Some(around) = around(output).map_err(|e| Error::io(Action::Read, output, e))?
        && paths.iter().all(|path| path.starts_with(&around))
    {
        return Ok(around);
    }
    let mut base = paths[0].parent().map_or_else(|| paths[0].clone(), Path::to_path_buf);
    while !paths.iter().all(|path| path.starts_with(&base) && (*path != base || path.is_dir())) {
        if !base.pop() {
            break;
        }
    }
    Ok(base)
}

/// The files and folders that are named, without links in their paths.
///
/// # Errors
/// [`SidecarError::OutsideBase`], [`SidecarError::NotAFile`]; those of the system.
pub(crate) fn named(paths: &[PathBuf], base: &Path) -> Result<Vec<(PathBuf, Metadata)>> {
    let named = |path: &PathBuf| {
        let place = resolved(path)?;
        if !place.starts_with(base) {
            let outside = SidecarError::OutsideBase(base.to_path_buf());
            return Err(Error::at(Action::Protect, path.as_path(), outside));
        }
        let meta = fs::symlink_metadata(&place).map_err(|e| Error::io(Action::Read, path.as_path(), e))?;
        if !(meta.is_file() || meta.is_dir()) {
            return Err(Error::at(Action::Protect, path.as_path(), SidecarError::NotAFile));
        }
        Ok((place, meta))
    };
    paths.iter().map(named).collect()
}

impl Tree {
    /// Finds everything selected below `base`, which has no links in it. `is_own` tells which paths belong to the
    /// sidecar itself, `is_other` which belong to another one.
    pub(crate) fn find(
        base: &Base,
        selection: &Selection<'_>,
        [is_own, is_other]: [&dyn Fn(&Path) -> bool; 2],
    ) -> Result<Tree> {
        let (found, skipped, sidecars) = (Vec::new(), Vec::new(), Vec::new());
        let omitted = selection.omitted.clone();
        let mut walk = Walk { base, selection, is_own, is_other, found, skipped, sidecars, omitted };
        for (place, meta) in selection.named {
            walk.all(place.clone(), meta.clone())?;
        }
        let Walk { mut found, mut skipped, mut sidecars, mut omitted, .. } = walk;
        found.sort_unstable_by(|a, b| a.entry.path.cmp(&b.entry.path));
        found.dedup_by(|a, b| a.entry.path == b.entry.path);
        let kept = keep(&mut found, &mut omitted, selection);
        leave_out_deep(&mut found, &mut omitted);
        skipped.sort_unstable();
        skipped.dedup();
        // A sidecar that is named itself is protected like any other file.
        let is_found = |place: &PathBuf| {
            let path = place.strip_prefix(base.path()).unwrap_or(place).as_os_str().as_bytes();
            found.binary_search_by(|found| (*found.entry.path).cmp(path)).is_ok()
        };
        sidecars.retain(|place| !is_found(place));
        sidecars.sort_unstable();
        sidecars.dedup();
        let mut names: HashMap<(u64, u64), u32> = HashMap::new();
        for (nth, found) in (0..).zip(&mut found) {
            if let Some(names_of) = found.several_names.take() {
                let first = *names.entry(*names_of).or_insert(nth);
                if first != nth {
                    found.entry.kind = EntryKind::HardLink(first);
                }
            }
        }
        for nth in 0..found.len() {
            if let Some(first) = found[nth].first.take()
                && let Ok(first) = found.binary_search_by(|found| found.entry.path.cmp(&first))
            {
                found[nth].entry.kind = EntryKind::HardLink(first as u32);
            }
        }
        Ok(Tree { sidecars, omitted, kept, ..Tree::of(found, skipped, selection.may_grow) })
    }

    /// The tree of what was found, in this order.
    fn of(mut found: Vec<Found>, skipped: Vec<PathBuf>, may_grow: bool) -> Tree {
        let (mut tree, mut fingerprints) = (Tree { skipped, ..Tree::default() }, Vec::new());
        let size_of = |found: &Found| match &found.entry.kind {
            EntryKind::File(file) => file.size,
            _ => u64::MAX,
        };
        let sizes = |found: &Found| (found.identity, size_of(found));
        let growing = if may_grow { found.iter().map(sizes).collect() } else { Vec::new() };
        // Taking from the end frees memory on the way.
        while let Some(Found { entry, stat, mark, seen, .. }) = found.pop() {
            tree.entries.push(entry);
            tree.stats.push(stat);
            tree.marks.push(mark);
            fingerprints.push(seen);
            if found.len().is_multiple_of(1 << 16) {
                found.shrink_to_fit();
            }
        }
        tree.entries.reverse();
        tree.stats.reverse();
        tree.marks.reverse();
        fingerprints.reverse();
        // The vectors grew by doubling.
        tree.entries.shrink_to_fit();
        tree.stats.shrink_to_fit();
        tree.marks.shrink_to_fit();
        fingerprints.shrink_to_fit();
        Tree { seen: Seen::new(fingerprints, growing), ..tree }
    }
}

/// A file, folder or link that was found.
struct Found {
    entry: Entry,
    stat: Stat,
    mark: u64,
    seen: u64,
    identity: u64,
    /// Device and inode of a file with several names.
    several_names: Option<Box<(u64, u64)>>,
    /// The path of the file that a hard link of an old sidecar is a name of.
    first: Option<Box<[u8]>>,
}

impl Found {
    fn new(place: &Path, path: &[u8], meta: &Metadata) -> io::Result<Found> {
        let kind = if meta.is_dir() {
            EntryKind::Folder
        } else if meta.is_symlink() {
            let target = fs::read_link(place)?;
            EntryKind::Symlink(target.as_os_str().as_bytes().into())
        } else {
            EntryKind::File(FileEntry {
                size: meta.size(),
                blake3: [0; 32],
                sha256: None,
                is_executable: meta.mode() & 0o100 != 0,
                runs: Vec::new(),
                tail: 0,
            })
        };
        let has_several = meta.is_file() && meta.nlink() > 1;
        Ok(Found {
            entry: Entry { path: path.into(), kind },
            stat: stat_of(meta),
            mark: if meta.is_file() { mark((meta.ctime(), meta.ctime_nsec() as u32), meta.ino()) } else { 0 },
            seen: fingerprint_of(meta),
            identity: identity_of(meta),
            several_names: has_several.then(|| Box::new((meta.dev(), meta.ino()))),
            first: None,
        })
    }
}

/// Adds the entries of an old sidecar for what was not found. Returns why. An entry that cannot be kept is omitted.
fn keep(found: &mut Vec<Found>, omitted: &mut Reasons, selection: &Selection<'_>) -> Reasons {
    let mut all = (selection.keep)(omitted);
    all.retain(|kept| found.binary_search_by(|found| found.entry.path.cmp(&kept.entry.path)).is_err());
    let is_file = |kept: &Kept| matches!(kept.entry.kind, EntryKind::File(_));
    let files: BTreeSet<Box<[u8]>> =
        all.iter().filter(|kept| is_file(kept)).map(|kept| kept.entry.path.clone()).collect();
    let mut kept_for = Reasons::new();
    for Kept { entry, stat, mark, reason, first } in all {
        if first.as_ref().is_some_and(|first| !files.contains(first)) {
            omitted.insert(entry.path, reason);
            continue;
        }
        omitted.remove(&entry.path);
        kept_for.insert(entry.path.clone(), reason);
        found.push(Found { entry, stat, mark, seen: UNSEEN, identity: UNSEEN, several_names: None, first });
    }
    let left = selection.kept.iter().filter(|(path, _)| !kept_for.contains_key(*path));
    omitted.extend(left.map(|(path, reason)| (path.clone(), *reason)));
    found.sort_unstable_by(|a, b| a.entry.path.cmp(&b.entry.path));
    kept_for
}

/// Leaves out what lies deepest, if the paths together are too long for a catalog. Entries are in order.
fn leave_out_deep(found: &mut Vec<Found>, omitted: &mut Reasons) {
    let depth = |path: &[u8]| path.iter().filter(|byte| **byte == b'/').count();
    // The bytes of paths and of entries at each depth: those of an entry are at least so many.
    let mut at: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    let mut before: &[u8] = &[];
    for Found { entry, .. } in found.iter() {
        let shared = before.iter().zip(&entry.path).take_while(|(a, b)| a == b).count();
        let (paths, entries) = at.entry(depth(&entry.path)).or_default();
        *paths += entry.path.len();
        *entries += entry.path.len() - shared + if matches!(entry.kind, EntryKind::File(_)) { 36 } else { 3 };
        before = &entry.path;
    }
    let (mut paths, mut entries) = (0, 0);
    let deepest = at.into_iter().find(|(_, of)| {
        (paths, entries) = (paths + of.0, entries + of.1);
        paths > most_paths(entries)
    });
    let Some((deepest, _)) = deepest else { return };
    let mut tops = Reasons::new();
    found.retain(|found| {
        let path = &found.entry.path;
        let is_out = depth(path) >= deepest;
        if is_out && !is_below(&tops, path) {
            tops.insert(path.clone(), Reason::TooLong);
        }
        !is_out
    });
    omitted.retain(|path, _| !is_below(&tops, path));
    omitted.append(&mut tops);
}

/// Tells whether the permissions may keep this user from reading a file.
fn may_be_denied(meta: &Metadata) -> bool {
    let user = geteuid();
    let is_own = meta.uid() == user.as_raw() && meta.mode() & 0o400 != 0;
    !(user.is_root() || is_own || meta.mode() & 0o444 == 0o444)
}

struct Walk<'a> {
    base: &'a Base,
    selection: &'a Selection<'a>,
    is_own: &'a dyn Fn(&Path) -> bool,
    is_other: &'a dyn Fn(&Path) -> bool,
    found: Vec<Found>,
    skipped: Vec<PathBuf>,
    sidecars: Vec<PathBuf>,
    omitted: Reasons,
}

impl Walk<'_> {
    /// Adds a path, and everything below it.
    fn all(&mut self, place: PathBuf, meta: Metadata) -> Result<()> {
        let (device, named) = (meta.dev(), place.clone());
        let mut left = vec![(place, meta)];
        while let Some((place, meta)) = left.pop() {
            let path = place.strip_prefix(self.base.path()).unwrap_or(&place).as_os_str().as_bytes();
            if (self.is_own)(&place) || self.selection.patterns.leave_out(self.base, path, meta.is_dir()) {
                continue;
            }
            if self.selection.omitted.contains_key(path) || self.selection.kept.contains_key(path) {
                continue;
            }
            if !path.is_empty() && !is_path(path) {
                self.omitted.insert(path.into(), Reason::TooLong);
                continue;
            }
            if meta.is_dir() && !(self.selection.one_file_system && meta.dev() != device) {
                match list(&place) {
                    Ok(names) => {
                        names.into_iter().try_for_each(|name| self.push(place.join(name), &mut left))?
                    }
                    Err(e) => self.omit(&place, e)?,
                }
            }
            if !(meta.is_file() || meta.is_dir() || meta.is_symlink()) {
                self.skipped.push(place);
            } else if meta.is_file() && place != named && (self.is_other)(&place) {
                self.sidecars.push(place);
            } else if !path.is_empty() {
                let is_readable = if meta.is_file() && may_be_denied(&meta) {
                    self.base.read(path).map(drop)
                } else {
                    Ok(())
                };
                match is_readable.and_then(|()| Found::new(&place, path, &meta)) {
                    Ok(found) => self.found.push(found),
                    Err(e) => self.omit(&place, e)?,
                }
            }
        }
        Ok(())
    }

    /// Puts a path aside to be looked at, unless nothing stands there any more.
    fn push(&mut self, place: PathBuf, left: &mut Vec<(PathBuf, Metadata)>) -> Result<()> {
        match fs::symlink_metadata(&place) {
            Ok(meta) => left.push((place, meta)),
            Err(e) => self.omit(&place, e)?,
        }
        Ok(())
    }

    /// Notes why a path is not protected, unless it is gone.
    ///
    /// # Errors
    /// Those that are not of the path, or are of the base.
    fn omit(&mut self, place: &Path, error: io::Error) -> Result<()> {
        let path = place.strip_prefix(self.base.path()).unwrap_or(place).as_os_str().as_bytes();
        match reason_of(&error).filter(|_| !path.is_empty()) {
            None => return Err(Error::io(Action::Read, place, error)),
            Some(Reason::Changing) => {}
            Some(reason) => drop(self.omitted.insert(path.into(), reason)),
        }
        Ok(())
    }
}

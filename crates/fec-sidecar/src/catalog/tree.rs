//! Finds everything to protect: files, folders and links below a base, in the order of their paths.

use crate::error::SidecarError;
use fec_base::error::{Action, Error, ErrorKind, Result};
use fec_base::io::list;
use fec_base::io::own::open_regular;
use fec_base::io::temporary::parent;
use fec_core::format::sidecar::stat::Stat;
use fec_core::format::sidecar::{Entry, EntryKind, FileEntry};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The choice of what to protect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Selection<'a> {
    /// Files and folders.
    pub(crate) paths: &'a [PathBuf],
    /// Patterns of excluded paths, relative to the base, or of names.
    pub(crate) exclude: &'a [String],
    /// True if file systems that are mounted below are left out.
    pub(crate) one_file_system: bool,
}

/// The files, folders and links that were found, by path.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// Entries; files have no digests and no places yet.
    pub(crate) entries: Vec<Entry>,
    /// The stat of each entry.
    pub(crate) stats: Vec<Stat>,
    /// The fingerprint of each entry, to detect later changes.
    pub(crate) seen: Vec<u64>,
    /// Devices, sockets and FIFOs, which hold nothing to protect.
    pub(crate) skipped: Vec<PathBuf>,
}

/// A fingerprint that tells whether a file is still the same and unchanged.
pub(crate) fn fingerprint(of: (u64, u64, u64), modified: (i64, i64), changed: (i64, i64)) -> u64 {
    let mut hasher = DefaultHasher::new();
    (of, modified, changed).hash(&mut hasher);
    hasher.finish()
}

/// The fingerprint of a file by its metadata.
pub(crate) fn fingerprint_of(meta: &Metadata) -> u64 {
    let modified = (meta.mtime(), meta.mtime_nsec());
    fingerprint((meta.dev(), meta.ino(), meta.size()), modified, (meta.ctime(), meta.ctime_nsec()))
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

/// The base of paths: the folder of the sidecar if it holds all of them, else the deepest folder that does.
pub(crate) fn base_of(paths: &[PathBuf], output: &Path) -> Result<PathBuf> {
    let home = resolved(output)?.parent().map(Path::to_path_buf).unwrap_or_default();
    let paths: Vec<PathBuf> = paths.iter().map(|path| resolved(path)).collect::<Result<_>>()?;
    if paths.iter().all(|path| path.starts_with(&home)) {
        return Ok(home);
    }
    let mut base = paths[0].parent().map_or_else(|| paths[0].clone(), Path::to_path_buf);
    while !paths.iter().all(|path| path.starts_with(&base) && (*path != base || path.is_dir())) {
        if !base.pop() {
            break;
        }
    }
    Ok(base)
}

/// The regular files that may not be read.
pub(crate) fn denied_files<'a>(base: &Path, entries: impl IntoIterator<Item = &'a Entry>) -> Vec<PathBuf> {
    let files = entries.into_iter().filter(|entry| matches!(entry.kind, EntryKind::File(_)));
    let places = files.map(|entry| base.join(OsStr::from_bytes(&entry.path)));
    let is_denied = |place: &PathBuf| {
        open_regular(place).is_err_and(|e| e.kind() == std::io::ErrorKind::PermissionDenied)
    };
    places.filter(is_denied).collect()
}

impl Tree {
    /// Finds everything selected below `base`, which has no links in it. `is_own` tells which paths belong to the
    /// sidecar itself.
    pub(crate) fn find(
        base: &Path,
        selection: &Selection<'_>,
        is_own: &dyn Fn(&Path) -> bool,
    ) -> Result<Tree> {
        let (found, skipped, denied) = (Vec::new(), Vec::new(), Vec::new());
        let mut walk = Walk { base, selection, is_own, found, skipped, denied };
        for path in selection.paths {
            let place = resolved(path)?;
            if !place.starts_with(base) {
                let outside = SidecarError::OutsideBase(base.to_path_buf());
                return Err(Error::at(Action::Protect, path.as_path(), outside));
            }
            let meta =
                fs::symlink_metadata(&place).map_err(|e| Error::io(Action::Read, path.as_path(), e))?;
            if !(meta.is_file() || meta.is_dir()) {
                return Err(Error::at(Action::Protect, path.as_path(), SidecarError::NotAFile));
            }
            walk.all(place, meta)?;
        }
        let Walk { mut found, mut skipped, mut denied, .. } = walk;
        if !denied.is_empty() {
            denied.extend(denied_files(base, found.iter().map(|found| &found.entry)));
            denied.sort_unstable();
            denied.dedup();
            return Err(Error::new(Action::Read, ErrorKind::NotAllowed(denied)));
        }
        found.sort_unstable_by(|a, b| a.entry.path.cmp(&b.entry.path));
        found.dedup_by(|a, b| a.entry.path == b.entry.path);
        skipped.sort_unstable();
        skipped.dedup();
        let mut names: HashMap<(u64, u64), u32> = HashMap::new();
        for (nth, found) in (0..).zip(&mut found) {
            if let Some(names_of) = found.several_names.take() {
                let first = *names.entry(*names_of).or_insert(nth);
                if first != nth {
                    found.entry.kind = EntryKind::HardLink(first);
                }
            }
        }
        let mut tree = Tree { skipped, ..Tree::default() };
        // Taking from the end frees memory on the way.
        while let Some(Found { entry, stat, seen, .. }) = found.pop() {
            tree.entries.push(entry);
            tree.stats.push(stat);
            tree.seen.push(seen);
            if found.len().is_multiple_of(1 << 16) {
                found.shrink_to_fit();
            }
        }
        tree.entries.reverse();
        tree.stats.reverse();
        tree.seen.reverse();
        // The vectors grew by doubling.
        tree.entries.shrink_to_fit();
        tree.stats.shrink_to_fit();
        tree.seen.shrink_to_fit();
        Ok(tree)
    }
}

/// A file, folder or link that was found.
struct Found {
    entry: Entry,
    stat: Stat,
    seen: u64,
    /// Device and inode of a file with several names.
    several_names: Option<Box<(u64, u64)>>,
}

impl Found {
    fn new(place: &Path, path: &[u8], meta: &Metadata) -> Result<Found> {
        let kind = if meta.is_dir() {
            EntryKind::Folder
        } else if meta.is_symlink() {
            let target = fs::read_link(place).map_err(|e| Error::io(Action::Read, place, e))?;
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
            seen: fingerprint_of(meta),
            several_names: has_several.then(|| Box::new((meta.dev(), meta.ino()))),
        })
    }
}

struct Walk<'a> {
    base: &'a Path,
    selection: &'a Selection<'a>,
    is_own: &'a dyn Fn(&Path) -> bool,
    found: Vec<Found>,
    skipped: Vec<PathBuf>,
    /// Folders that may not be listed, and paths that may not be examined.
    denied: Vec<PathBuf>,
}

impl Walk<'_> {
    /// Adds a path, and everything below it.
    fn all(&mut self, place: PathBuf, meta: Metadata) -> Result<()> {
        let device = meta.dev();
        let mut left = vec![(place, meta)];
        while let Some((place, meta)) = left.pop() {
            let path = place.strip_prefix(self.base).unwrap_or(&place).as_os_str().as_bytes();
            if (self.is_own)(&place) || self.is_excluded(path) {
                continue;
            }
            if meta.is_dir() && !(self.selection.one_file_system && meta.dev() != device) {
                let names = list(&place);
                for name in self.allowed(names, &place)?.unwrap_or_default() {
                    let inner = place.join(name);
                    let meta = fs::symlink_metadata(&inner);
                    if let Some(meta) = self.allowed(meta, &inner)? {
                        left.push((inner, meta));
                    }
                }
            }
            if !(meta.is_file() || meta.is_dir() || meta.is_symlink()) {
                self.skipped.push(place);
            } else if !path.is_empty() {
                self.found.push(Found::new(&place, path, &meta)?);
            }
        }
        Ok(())
    }

    /// The answer of the system; `None` after noting the place, if permission is denied.
    fn allowed<T>(&mut self, given: std::io::Result<T>, place: &Path) -> Result<Option<T>> {
        match given {
            Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
                self.denied.push(place.to_path_buf());
                Ok(None)
            }
            given => given.map(Some).map_err(|e| Error::io(Action::Read, place, e)),
        }
    }

    fn is_excluded(&self, path: &[u8]) -> bool {
        let name = path.rsplit(|b| *b == b'/').next().unwrap_or(path);
        let matches = |pattern: &String| {
            let pattern = pattern.trim_end_matches('/');
            fast_glob::glob_match(pattern, path)
                || !pattern.contains('/') && fast_glob::glob_match(pattern, name)
        };
        !path.is_empty() && self.selection.exclude.iter().any(matches)
    }
}

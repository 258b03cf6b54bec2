//! Finds folders that were renamed as a whole: nothing stands at the path of the uppermost folder of a tree, and a
//! folder beside it, or the one that the caller named, has the files.

use crate::Sidecar;
use crate::examine::by_stat::{mark_of, modified};
use fec_base::io::base::{Base, Renamed, file_type};
use fec_base::io::temporary::parent;
use fec_core::format::sidecar::EntryKind;
use rustix::fs::{FileType, Stat};
use std::io::ErrorKind as IoKind;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Files of a folder that are looked for in another.
const SAMPLES: usize = 32;
/// The most files that are looked for, in all folders.
const MOST_LOOKS: usize = 20_000;

/// The folders below `base` that were renamed.
pub(crate) fn renamed(sidecar: &Sidecar, base: &Base) -> Vec<Renamed> {
    let entries = &sidecar.catalog.entries;
    let is_missing = |path: &[u8]| base.stat(path).is_err_and(|e| e.kind() == IoKind::NotFound);
    let tops: Vec<usize> = (0..entries.len()).filter(|nth| !entries[*nth].path.contains(&b'/')).collect();
    let is_folder = |nth: &&usize| entries[**nth].kind == EntryKind::Folder;
    let gone: Vec<usize> =
        tops.iter().filter(is_folder).copied().filter(|nth| is_missing(&entries[*nth].path)).collect();
    if gone.is_empty() {
        return Vec::new();
    }
    let is_top = |path: &[u8]| entries.binary_search_by(|entry| (*entry.path).cmp(path)).is_ok();
    let (_, folders, _) = base.list(b"").unwrap_or_default();
    let mut others: Vec<Box<[u8]>> = folders.into_iter().filter(|path| !is_top(path)).collect();
    others.sort_unstable();
    let mut looks = MOST_LOOKS;
    let mut found = Vec::new();
    for top in gone {
        let from = &entries[top].path;
        let samples = samples(sidecar, from);
        let mut is_it = |to: &[u8]| {
            let Some(left) = looks.checked_sub(samples.len()) else { return false };
            looks = left;
            // A copy of the files is no rename, so times and marks count too.
            2 * same(sidecar, base, (from, to), &samples, is_unchanged) > samples.len()
        };
        if let Some(at) = others.iter().position(|to| is_it(to)) {
            found.push(Renamed { from: from.clone(), to: others.remove(at), is_named: false });
        }
    }
    found
}

/// The base around a folder that the caller named as a base, if it is the protected folder itself under some name: a
/// copy, as likely as not. The sidecar protects one folder, nothing of its name stands in the named one, and files of
/// that folder do.
pub(crate) fn around_itself(sidecar: &Sidecar, base: &Base) -> Option<Base> {
    let [top, below @ ..] = &sidecar.catalog.entries[..] else { return None };
    let is_below = |path: &[u8]| path.strip_prefix(&*top.path).is_some_and(|rest| rest.starts_with(b"/"));
    let is_alone = top.kind == EntryKind::Folder && below.iter().all(|entry| is_below(&entry.path));
    if !is_alone || base.stat(&top.path).is_ok() {
        return None;
    }
    let is_plain = |path: &Path| path.file_name().is_some() && !path.is_symlink();
    let path = base.path();
    let path = if is_plain(path) { path.to_path_buf() } else { std::fs::canonicalize(path).ok()? };
    let around = Base::open(parent(&path)).ok()?;
    let to: Box<[u8]> = path.file_name()?.as_bytes().into();
    let samples = samples(sidecar, &top.path);
    let is_it = 2 * same(sidecar, &around, (&top.path, &to), &samples, |_, _| true) > samples.len();
    let renamed = Renamed { from: top.path.clone(), to, is_named: true };
    is_it.then(|| around.with_renamed(vec![renamed]))
}

/// Files with bytes below a folder, evenly chosen.
fn samples(sidecar: &Sidecar, folder: &[u8]) -> Vec<usize> {
    let below = |end: u8| [folder, &[end]].concat();
    let at = |path: Vec<u8>| sidecar.catalog.entries.partition_point(|entry| *entry.path < *path);
    let range: Range<usize> = at(below(b'/'))..at(below(b'/' + 1));
    let has_bytes = |nth: &usize| match &sidecar.catalog.entries[*nth].kind {
        EntryKind::File(of) => of.size > 0,
        _ => false,
    };
    let files: Vec<usize> = range.filter(has_bytes).collect();
    let step = files.len().div_ceil(SAMPLES).max(1);
    files.into_iter().step_by(step).collect()
}

/// Counts the files that stand in another folder with their sizes, and of which `is_too` holds.
fn same(
    sidecar: &Sidecar,
    base: &Base,
    (from, to): (&[u8], &[u8]),
    samples: &[usize],
    is_too: impl Fn((&Sidecar, usize), &Stat) -> bool,
) -> usize {
    let is_same = |nth: &&usize| {
        let entry = &sidecar.catalog.entries[**nth];
        let path = [to, &entry.path[from.len()..]].concat();
        let EntryKind::File(of) = &entry.kind else { return false };
        let Ok(stat) = base.stat(&path) else { return false };
        let is_file = file_type(&stat) == FileType::RegularFile;
        is_file && stat.st_size as u64 == of.size && is_too((sidecar, **nth), &stat)
    };
    samples.iter().filter(is_same).count()
}

/// Tells whether a file has its time to the nanosecond, and its mark if one was recorded.
fn is_unchanged((sidecar, nth): (&Sidecar, usize), stat: &Stat) -> bool {
    let recorded = &sidecar.stats.entries[nth];
    let has_mark = || sidecar.stats.marks.get(nth).is_none_or(|mark| *mark == mark_of(stat));
    modified(stat) == (recorded.seconds, recorded.nanos) && has_mark()
}

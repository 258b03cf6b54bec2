//! Fingerprints of files, by their stats.

use rustix::fs::Stat as SystemStat;
use std::fs::Metadata;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;

/// A fingerprint that tells whether a file is still the same and unchanged.
pub(crate) fn fingerprint(of: (u64, u64, u64), modified: (i64, i64), changed: (i64, i64)) -> u64 {
    let mut hasher = DefaultHasher::new();
    (of, modified, changed).hash(&mut hasher);
    hasher.finish()
}

/// The time of the last change of a file or of its metadata, which nobody can choose.
// The integer types differ between systems.
#[allow(clippy::unnecessary_cast)]
pub(crate) fn changed(stat: &SystemStat) -> (i64, i64) {
    (stat.st_ctime as i64, stat.st_ctime_nsec as i64)
}

/// The fingerprint of a file by its stat.
// The integer types differ between systems.
#[allow(clippy::unnecessary_cast)]
pub(crate) fn fingerprint_of_stat(stat: &SystemStat) -> u64 {
    let modified = (stat.st_mtime as i64, stat.st_mtime_nsec as i64);
    fingerprint((stat.st_dev as u64, stat.st_ino as u64, stat.st_size as u64), modified, changed(stat))
}

/// The fingerprint of a file by its metadata.
pub(crate) fn fingerprint_of(meta: &Metadata) -> u64 {
    let modified = (meta.mtime(), meta.mtime_nsec());
    fingerprint((meta.dev(), meta.ino(), meta.size()), modified, (meta.ctime(), meta.ctime_nsec()))
}

/// A fingerprint that a file keeps while it changes.
pub(crate) fn identity_of(meta: &Metadata) -> u64 {
    fingerprint((meta.dev(), meta.ino(), 0), (0, 0), (0, 0))
}

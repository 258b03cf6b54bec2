//! Files as the tests of sidecars see and change them, by calls and by the command.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The object at a path, as far as a sidecar records it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Folder,
    File { bytes: Vec<u8>, may_execute: bool },
    Link(PathBuf),
    Special,
}

/// The object at a path, with its mode, times and inode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) what: What,
    pub(crate) mode: u32,
    pub(crate) modified: SystemTime,
    pub(crate) changed: (i64, i64),
    pub(crate) inode: u64,
}

/// All entries of a folder by relative path, without following links. Empty if the folder does not exist.
pub(crate) fn seen(folder: &Path) -> BTreeMap<PathBuf, Seen> {
    let mut found = BTreeMap::new();
    let mut left = vec![folder.to_path_buf()];
    while let Some(place) = left.pop().filter(|place| place.exists()) {
        for entry in fs::read_dir(&place).expect("a folder") {
            let path = entry.expect("an entry").path();
            let meta = fs::symlink_metadata(&path).expect("it is there");
            let what = if meta.is_dir() {
                left.push(path.clone());
                What::Folder
            } else if meta.is_symlink() {
                What::Link(fs::read_link(&path).expect("a link"))
            } else if meta.is_file() {
                let bytes = fs::read(&path).expect("a file");
                What::File { bytes, may_execute: meta.mode() & 0o100 != 0 }
            } else {
                What::Special
            };
            let seen = Seen {
                what,
                mode: meta.mode() & 0o7777,
                modified: meta.modified().expect("a time"),
                changed: (meta.ctime(), meta.ctime_nsec()),
                inode: meta.ino(),
            };
            found.insert(path.strip_prefix(folder).expect("it lies in it").to_path_buf(), seen);
        }
    }
    found
}

/// All that a sidecar protects in a folder, without times and inodes.
pub(crate) fn tree(folder: &Path) -> BTreeMap<PathBuf, What> {
    seen(folder).into_iter().map(|(path, seen)| (path, seen.what)).collect()
}

/// Changes bytes of a file as a broken disk would: the file keeps its time.
pub(crate) fn rot(path: &Path, at: u64, bytes: &[u8]) {
    let file = File::options().read(true).write(true).open(path).expect("the file is there");
    let modified = file.metadata().and_then(|meta| meta.modified()).expect("a time");
    file.write_all_at(bytes, at).expect("the file can be written");
    file.set_modified(modified).expect("its time can be set");
}

/// Flips a bit of a file, which keeps its time.
pub(crate) fn flip(path: &Path, at: u64) {
    let mut byte = [0];
    File::open(path).and_then(|file| file.read_exact_at(&mut byte, at)).expect("the byte is there");
    rot(path, at, &[byte[0] ^ 0x10]);
}

/// Changes a file as a user would: its time changes.
pub(crate) fn edit(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).expect("the file can be written");
    age(path, 1000);
}

/// Sets the time of a file to some seconds after a fixed time in the past.
pub(crate) fn age(path: &Path, seconds: u64) {
    set_time(path, Duration::from_secs(1_600_000_000 + seconds));
}

/// Sets the time of a file to this long after 1970.
pub(crate) fn set_time(path: &Path, after: Duration) {
    let time = SystemTime::UNIX_EPOCH + after;
    File::open(path).and_then(|file| file.set_modified(time)).expect("its time can be set");
}

pub(crate) fn modified(path: &Path) -> SystemTime {
    fs::metadata(path).and_then(|meta| meta.modified()).expect("a time")
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its mode can be set");
}

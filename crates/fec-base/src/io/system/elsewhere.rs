//! The border on a system of which nothing is known but Rust's own library, such as WASI, where a page in a browser
//! opens objects of its own.
//!
//! Nobody knows there who owns a file, who else may read it, or whether another process has it. Files that stand there
//! are not replaced, and new ones cannot be kept from others: whatever would need that is refused.

pub(crate) use super::unmapped::FencedMap;

use crate::io::look::{Look, Over};
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, IoSlice, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// The right of everybody to read.
const ALL_READ: u32 = 0o444;

fn lacking<T>(what: &str) -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::Unsupported, format!("this system has no {what}")))
}

/// The name that these bytes are; `None` if the system has no such name.
pub(crate) fn name_of(bytes: Vec<u8>) -> Option<OsString> {
    String::from_utf8(bytes).ok().map(OsString::from)
}

/// The path that these bytes are; `None` if the system has no such path.
pub(crate) fn path_of(bytes: Vec<u8>) -> Option<PathBuf> {
    name_of(bytes).map(PathBuf::from)
}

/// Fails if the system would take this name for something else: no such name is known.
///
/// # Errors
/// None.
pub(crate) fn check_name(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// A name as it is compared: each byte counts.
pub fn folded(name: &OsStr) -> OsString {
    name.to_owned()
}

/// The names in a folder, in no order.
///
/// # Errors
/// Those of the system.
pub fn list(folder: &Path) -> io::Result<Vec<OsString>> {
    fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name())).collect()
}

/// Removes a folder and its contents; links in it are removed, not followed.
///
/// # Errors
/// Those of the system; part of the contents may be gone then.
pub fn remove_folder(path: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(path)?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    fs::remove_dir_all(path)
}

/// The type and permissions of an entry: those that Unix gives to entries of a file system without permissions.
pub fn mode(meta: &Metadata) -> u32 {
    if meta.is_dir() { 0o040_777 } else { 0o100_666 }
}

/// The device that an entry is on, and its number there: not known.
pub fn identity(_path: &Path) -> Option<(u64, u64)> {
    None
}

/// Tells whether a disk is surely mounted at a folder.
pub(crate) fn is_mount(_folder: &Path) -> bool {
    false
}

/// The times, in seconds and nanoseconds, of the last write to a file and of the last change of any kind.
///
/// # Errors
/// `Unsupported`: a file that changes while it is read could go unnoticed by the first alone.
pub(crate) fn times(_file: &File, _meta: &Metadata) -> io::Result<[(i64, i64); 2]> {
    lacking("time of the last change of a file")
}

/// The number of the user whose entry it is.
///
/// # Errors
/// `Unsupported`.
pub(crate) fn owner(_meta: &Metadata) -> io::Result<u32> {
    lacking("owners of files")
}

/// Tells whether a user is the same as this process's, or root, who may do anything anyway.
pub(crate) fn is_mine(_owner: u32) -> bool {
    false
}

/// Tells whether an entry belongs to this user.
///
/// # Errors
/// `Unsupported`.
pub(crate) fn is_own(_meta: &Metadata, _file: Option<&File>) -> io::Result<bool> {
    lacking("owners of files")
}

/// The number of names that a file has, as far as the system tells.
pub(crate) fn links(_meta: &Metadata, _file: Option<&File>) -> u64 {
    1
}

/// Tells whether an entry is a device, FIFO or socket, or anything else that is no file, folder or link.
pub(crate) fn is_special(meta: &Metadata) -> bool {
    !(meta.is_file() || meta.is_dir() || meta.is_symlink())
}

/// Tells whether an entry is surely a device.
pub(crate) fn is_device(_meta: &Metadata) -> bool {
    false
}

/// Tells whether an entry is surely a FIFO.
pub(crate) fn is_fifo(_meta: &Metadata) -> bool {
    false
}

/// Opens a regular file for reading.
///
/// # Errors
/// Those of the system; `Unsupported` for anything else, which may make its reader wait.
pub(crate) fn open_at_once(path: &Path) -> io::Result<File> {
    if !fs::metadata(path)?.is_file() {
        return lacking("way to open this without waiting");
    }
    File::open(path)
}

/// As [`open_at_once`]; a symbolic link is not followed.
///
/// # Errors
/// `Unsupported`: a link could take the place of a file before it is opened.
pub(crate) fn open_unfollowed(_path: &Path) -> io::Result<Option<File>> {
    lacking("way to open a file that is no link")
}

/// Makes reads of a file that was opened by [`open_at_once`] wait for bytes.
///
/// # Errors
/// None.
pub(crate) fn wait_from_now_on(_file: &File) -> io::Result<()> {
    Ok(())
}

/// Opens a device, FIFO or socket for writing.
///
/// # Errors
/// `Unsupported`.
pub(crate) fn open_special(_path: &Path) -> io::Result<File> {
    lacking("devices, FIFOs and sockets")
}

/// Opens a folder, and fails if another type of file or a link is there.
///
/// # Errors
/// `Unsupported`.
pub fn open_folder(_path: &Path) -> io::Result<File> {
    lacking("open folders")
}

/// Fails if these permissions keep an entry from anybody.
fn check_for_all(mode: u32) -> io::Result<()> {
    if mode & ALL_READ == ALL_READ {
        Ok(())
    } else {
        lacking("permissions, which would keep others from reading it")
    }
}

/// Makes a file, and opens it for reading and writing.
///
/// # Errors
/// Those of the system, and that the name is taken; `Unsupported` if not everybody may read it.
pub(crate) fn create_new(path: &Path, mode: u32) -> io::Result<File> {
    check_for_all(mode)?;
    OpenOptions::new().read(true).write(true).create_new(true).open(path)
}

/// Makes a folder.
///
/// # Errors
/// Those of [`create_new`].
pub fn create_folder(path: &Path, mode: u32) -> io::Result<()> {
    check_for_all(mode)?;
    DirBuilder::new().create(path)
}

/// Makes a folder and those around it, as far as they are missing.
///
/// # Errors
/// Those of [`create_new`].
pub fn create_folders(path: &Path, mode: u32) -> io::Result<()> {
    check_for_all(mode)?;
    DirBuilder::new().recursive(true).create(path)
}

/// Gives an open file these permissions.
///
/// # Errors
/// `Unsupported`.
pub(crate) fn set_mode(_file: &File, _mode: u32) -> io::Result<()> {
    lacking("permissions")
}

/// Gives a new file the permissions of the old one that it is to replace.
///
/// # Errors
/// `Unsupported`.
pub(crate) fn keep_mode(_new: &File, (_path, _old): (&Path, &Metadata)) -> io::Result<()> {
    lacking("permissions")
}

/// Tells whether files get their permissions from the folder that they are made in.
pub(crate) const FILES_INHERIT: bool = false;

/// Gives a new folder the permissions of the old one that it is to replace.
///
/// # Errors
/// `Unsupported`.
pub(crate) fn keep_mode_of_folder(_new: &Path, (_path, _old): (&Path, &Metadata)) -> io::Result<()> {
    lacking("permissions")
}

/// Tells whether an error means that a file system has no permissions, or lacks another feature.
pub(crate) fn is_missing_feature(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Unsupported
}

/// The blocks of the file system that a folder is on, and its free bytes.
///
/// # Errors
/// `Unsupported`.
pub(crate) fn room(_folder: &Path) -> io::Result<(u64, u64)> {
    lacking("count of free bytes")
}

/// A file whose position is this caller's as long as the lock lives. A file has a single position for all threads.
fn positioned(mut file: &File, at: u64) -> io::Result<(&File, MutexGuard<'static, ()>)> {
    static POSITIONS: Mutex<()> = Mutex::new(());
    let turn = POSITIONS.lock().unwrap_or_else(PoisonError::into_inner);
    file.seek(SeekFrom::Start(at))?;
    Ok((file, turn))
}

/// Reads some of the bytes of a file from `at` on; 0 at the end.
///
/// # Errors
/// Those of the system.
pub(crate) fn read_at(file: &File, out: &mut [u8], at: u64) -> io::Result<usize> {
    let (mut file, _turn) = positioned(file, at)?;
    file.read(out)
}

/// Writes some of `rows` in sequence from byte `at` on, and returns the number of bytes.
///
/// # Errors
/// Those of the system.
pub(crate) fn write_at(file: &File, rows: &[IoSlice<'_>], at: u64) -> io::Result<usize> {
    let (mut file, _turn) = positioned(file, at)?;
    file.write_vectored(rows)
}

/// Writes all of `bytes` from byte `at` on.
///
/// # Errors
/// Those of the system.
pub fn write_all_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    let (mut file, _turn) = positioned(file, at)?;
    file.write_all(bytes)
}

/// The next range of stored bytes of a file from `at` on, as [`ReadAt::next_data`](crate::io::ReadAt::next_data): no
/// hole is known.
pub(crate) fn next_data(_file: &File, at: u64) -> Option<Range<u64>> {
    Some(at..u64::MAX)
}

/// Makes a range of a file zeros that take no room. False: nothing changed.
pub fn make_hole(_file: &File, _at: u64, _len: u64) -> bool {
    false
}

/// Locks a file or a folder for this process alone, as long as it is open, without waiting.
///
/// # Errors
/// `Unsupported`.
pub fn lock_alone(_file: &File) -> io::Result<()> {
    lacking("locks")
}

/// Takes the lock off a file.
pub fn unlock(_file: &File) {}

/// A number that no other system takes for a process that is gone: that of its first one.
pub(crate) fn process() -> u32 {
    1
}

/// The place in which process numbers mean the same: not known.
pub(crate) fn processes_here() -> Option<Vec<u8>> {
    None
}

/// Tells whether a process is surely gone.
pub(crate) fn is_gone(_process: i32) -> bool {
    false
}

/// Gives a file another name, if that is free: a second name, in place of which the first goes.
///
/// # Errors
/// `AlreadyExists`, or `Unsupported` if `over` would give the name up: nothing promises that either file is there at
/// any time. Those of the system, such as that of a folder, which cannot have two names.
pub fn rename(from: &Path, to: &Path, over: Over) -> io::Result<()> {
    match fs::hard_link(from, to).and_then(|()| fs::remove_file(from)) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists && over != Over::Nothing => {
            lacking("safe way to replace a file")
        }
        done => done,
    }
}

/// Gives a folder another name, which may be that of an empty folder.
///
/// # Errors
/// `DirectoryNotEmpty`; those of the system.
pub(crate) fn rename_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)
}

/// The look of an open file: not known.
pub(crate) fn look(_file: &File) -> io::Result<Option<Look>> {
    Ok(None)
}

/// Moves files of these names from a folder to another, neither of them a link.
///
/// # Errors
/// `Unsupported`.
pub(crate) fn move_files(_names: &[OsString], _from: &Path, _to: &Path, _over: Over) -> io::Result<()> {
    lacking("open folders")
}

/// Exchanges two entries in a single step.
///
/// # Errors
/// `Unsupported`.
pub(crate) fn exchange(_a: &Path, _b: &Path) -> io::Result<()> {
    lacking("exchange of two folders")
}

/// Tells whether an error means that the system lacks a call for names.
pub(crate) fn is_lacking(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Unsupported
}

/// Waits until a file is on the disk.
///
/// # Errors
/// Those of the system.
pub fn sync(file: &File) -> io::Result<()> {
    file.sync_all()
}

/// Waits until the bytes of a file are on the disk, and of what is known of it, what it takes to read them.
///
/// # Errors
/// Those of the system.
pub fn sync_data(file: &File) -> io::Result<()> {
    file.sync_data()
}

/// Waits until the names in a folder are on the disk; `of` is a file on the same file system.
///
/// # Errors
/// `Unsupported`.
pub(crate) fn sync_names(_folder: &Path, _of: Option<&File>) -> io::Result<()> {
    lacking("way to wait for the names in a folder")
}

/// Closes a file. Only a sync tells of earlier writes that have failed.
///
/// # Errors
/// Those of the sync.
pub(crate) fn close(file: File) -> io::Result<()> {
    file.sync_all()
}

/// As [`close`], and the file stays open.
///
/// # Errors
/// Those of the sync.
pub(crate) fn close_copy(file: &File) -> io::Result<()> {
    file.sync_all()
}

/// Tells whether a read surely failed because of its place, so that other places may still be readable.
pub(crate) fn is_bad_place(_error: &io::Error) -> bool {
    false
}

/// Tells whether the process or the machine surely caused an error, and not the file.
pub fn is_shortage(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::OutOfMemory
}

/// A file without a name in this folder, or in [`temporary_folder`].
///
/// # Errors
/// `Unsupported`.
pub(crate) fn nameless_file(_folder: Option<&Path>) -> io::Result<File> {
    lacking("files without a name")
}

/// A file in memory.
///
/// # Errors
/// `Unsupported`.
pub fn memory_file(_name: &str) -> io::Result<File> {
    lacking("files in memory")
}

/// The system's folder for temporary files, if it has one.
pub(crate) fn temporary_folder() -> Option<PathBuf> {
    None
}

/// The time that has passed since the first call: the system does not tell when a core has worked for a thread.
pub(crate) fn thread_time() -> Duration {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    FIRST.get_or_init(Instant::now).elapsed()
}

/// The time since 1970, by the system's clock; zero before that.
pub fn since_1970() -> Duration {
    SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_refused<T>(done: io::Result<T>) -> bool {
        done.is_err_and(|e| e.kind() == io::ErrorKind::Unsupported)
    }

    #[test]
    fn nothing_is_replaced_and_nothing_is_made_that_others_must_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let [new, old, secret] = ["new", "old", "secret"].map(|name| folder.path().join(name));
        write_all_at(&create_new(&new, 0o666).unwrap(), b"new", 0).unwrap();
        fs::write(&old, b"precious").unwrap();
        assert_eq!(rename(&new, &old, Over::Nothing).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert!(is_refused(rename(&new, &old, Over::Anything)) && is_refused(exchange(&new, &old)));
        assert_eq!(
            (fs::read(&new).unwrap(), fs::read(&old).unwrap()),
            (b"new".to_vec(), b"precious".to_vec())
        );
        for mode in [0o600, 0o640, 0o700] {
            assert!(is_refused(create_new(&secret, mode)) && is_refused(create_folder(&secret, mode)));
            assert!(is_refused(create_folders(&secret, mode)));
        }
        rename(&new, &secret, Over::Anything).unwrap();
        assert_eq!(list(folder.path()).unwrap().len(), 2);
    }

    #[test]
    fn a_folder_goes_away_and_what_only_looks_like_one_does_not() {
        let place = tempfile::tempdir().unwrap();
        let (folder, file) = (place.path().join("folder"), place.path().join("file"));
        create_folders(&folder.join("deep/deeper"), 0o777).unwrap();
        fs::write(folder.join("deep/a"), b"a").unwrap();
        fs::write(&file, b"precious").unwrap();
        remove_folder(&folder).unwrap();
        remove_folder(&file).unwrap_err();
        assert!(!folder.exists() && file.exists());
        assert!(is_refused(open_at_once(place.path())), "it might make its reader wait");
    }

    /// All threads share the position of a file.
    #[test]
    fn threads_do_not_move_each_other_s_position() {
        let folder = tempfile::tempdir().unwrap();
        let file = create_new(&folder.path().join("file"), 0o666).unwrap();
        std::thread::scope(|scope| {
            for nth in 0..4u8 {
                let file = &file;
                scope.spawn(move || {
                    for at in (u64::from(nth)..4000).step_by(4) {
                        assert_eq!(write_at(file, &[IoSlice::new(&[nth])], at).unwrap(), 1);
                        let mut byte = [9];
                        assert_eq!(read_at(file, &mut byte, at).unwrap(), 1);
                        assert_eq!(byte, [nth]);
                    }
                });
            }
        });
        let mut all = vec![0; 5000];
        assert_eq!(read_at(&file, &mut all, 0).unwrap(), 4000);
        assert!(all[..4000].iter().zip((0..4).cycle()).all(|(byte, nth)| *byte == nth));
    }
}

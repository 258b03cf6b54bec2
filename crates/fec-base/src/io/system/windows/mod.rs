//! The border on Windows.
//!
//! | file | has |
//! |---|---|
//! | `handle.rs` | calls for open files, and paths as the system takes them |
//! | `machine.rs` | free bytes, holes, locks, processes, clocks, and the meaning of errors |
//! | `naming.rs` | names that are given, and entries that may lose theirs |
//! | `security.rs` | owners, and files for their owner alone |
//! | `tests.rs` | the tests |
//!
//! A new file has the permissions that its folder gives, as all files on Windows have; one that keeps others out by
//! its mode is made for its owner alone. There are no modes: [`mode`] tells those of Unix, as far as a read-only file
//! differs.
#![allow(unsafe_code)] // the system's calls have no safe interface

mod handle;
mod machine;
mod naming;
mod security;
#[cfg(test)]
mod tests;

pub(crate) use super::unmapped::FencedMap;
pub use handle::is_on_disk;
pub(crate) use machine::{is_bad_place, is_gone, next_data, process, processes_here, room, thread_time};
pub use machine::{is_shortage, lock_alone, make_hole, since_1970, unlock};
pub use naming::rename;
pub(crate) use naming::{exchange, move_files, rename_folder};

use super::reserved::why_not;
use crate::io::look::Look;
use handle::{ALL, handle, is_any, open_itself};
use std::ffi::{OsStr, OsString, c_void};
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, IoSlice};
use std::mem::size_of_val;
use std::os::windows::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use windows_sys::Win32::Foundation::{
    ERROR_ACCESS_DENIED, ERROR_CALL_NOT_IMPLEMENTED, ERROR_INVALID_FUNCTION, ERROR_INVALID_HANDLE,
    ERROR_INVALID_PARAMETER, ERROR_NOT_SUPPORTED, ERROR_SHARING_VIOLATION, GENERIC_READ, GENERIC_WRITE,
};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_ATTRIBUTE_REPARSE_POINT, FILE_ATTRIBUTE_TEMPORARY, FILE_FLAG_BACKUP_SEMANTICS,
    FILE_FLAG_DELETE_ON_CLOSE, FILE_READ_ATTRIBUTES, FILE_REMOTE_PROTOCOL_INFO, FileRemoteProtocolInfo,
    GetFileInformationByHandleEx, SYNCHRONIZE,
};

/// The right of everybody to read.
const ALL_READ: u32 = 0o444;

fn lacking<T>(what: &str) -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::Unsupported, format!("Windows has no {what}")))
}

/// The name that these bytes are; `None` if the system has no such name, or takes it for another.
pub(crate) fn name_of(bytes: Vec<u8>) -> Option<OsString> {
    String::from_utf8(bytes).ok().filter(|name| why_not(name).is_none()).map(OsString::from)
}

/// The path that these bytes are; `None` if the system has no such path.
pub(crate) fn path_of(bytes: Vec<u8>) -> Option<PathBuf> {
    String::from_utf8(bytes).ok().map(PathBuf::from)
}

/// Fails if nothing can be made under this name but a stream of another file, a device, or a file of another name.
///
/// # Errors
/// `InvalidInput`, with the reason.
pub(crate) fn check_name(path: &Path) -> io::Result<()> {
    match path.file_name().and_then(|name| why_not(&name.to_string_lossy())) {
        Some(why) => Err(io::Error::new(io::ErrorKind::InvalidInput, why)),
        None => Ok(()),
    }
}

/// A name as it is compared: names that differ in capitals alone lead to the same entry of a folder. Like the system's
/// own table, this knows no letter that has two as its capital.
pub fn folded(name: &OsStr) -> OsString {
    let single = |c: char| {
        let mut upper = c.to_uppercase();
        let first = upper.next().filter(|_| upper.next().is_none());
        first.unwrap_or(c)
    };
    name.to_str().map_or_else(|| name.to_owned(), |name| name.chars().map(single).collect::<String>().into())
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

/// The type and permissions of an entry, as Unix would give them to one that everybody may use.
pub fn mode(meta: &Metadata) -> u32 {
    let all = if meta.is_dir() { 0o040_777 } else { 0o100_666 };
    if meta.permissions().readonly() { all & !0o222 } else { all }
}

/// The volume that an entry is on, and its number there, through links; `None` if there is none.
pub fn identity(path: &Path) -> Option<(u64, u64)> {
    let mut options = OpenOptions::new();
    options.access_mode(FILE_READ_ATTRIBUTES).share_mode(ALL).custom_flags(FILE_FLAG_BACKUP_SEMANTICS);
    handle::facts(&options.open(path).ok()?).ok().map(|facts| handle::identity(&facts))
}

/// Tells whether a folder is a whole drive, or on another one than the folder around it.
pub(crate) fn is_mount(folder: &Path) -> bool {
    let is_drive = fs::canonicalize(folder).is_ok_and(|whole| whole.parent().is_none());
    let volume = |path: &Path| identity(path).map(|(volume, _)| volume);
    is_drive || volume(folder).is_some_and(|of| volume(&folder.join("..")).is_some_and(|above| above != of))
}

/// The times, in seconds and nanoseconds, of the last write to a file and of the last change of any kind.
///
/// # Errors
/// Those of the system.
pub(crate) fn times(file: &File, _meta: &Metadata) -> io::Result<[(i64, i64); 2]> {
    handle::times(file)
}

/// The number of the user whose entry it is.
///
/// # Errors
/// `Unsupported`: users have no numbers ([`is_own`]).
pub(crate) fn owner(_meta: &Metadata) -> io::Result<u32> {
    lacking("numbers of users")
}

/// Tells whether a user is the same as this process's, or root, who may do anything anyway.
pub(crate) fn is_mine(_owner: u32) -> bool {
    false
}

/// Tells whether an entry belongs to this user, to administrators, or to everybody, as on a file system without owners.
/// Only an open file tells; before, the answer is that nothing is known against it.
///
/// # Errors
/// Those of the system.
pub(crate) fn is_own(_meta: &Metadata, file: Option<&File>) -> io::Result<bool> {
    file.map_or(Ok(true), security::is_own)
}

/// The number of names that a file has, as far as is known before it is open.
pub(crate) fn links(_meta: &Metadata, file: Option<&File>) -> u64 {
    let facts = file.and_then(|file| handle::facts(file).ok());
    facts.map_or(1, |facts| u64::from(facts.nNumberOfLinks))
}

/// Tells whether an entry is anything that is no file, folder or link.
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

/// Opens a file for reading.
///
/// # Errors
/// Those of the system; `Unsupported` for a pipe or a device, which may make its reader wait.
pub(crate) fn open_at_once(path: &Path) -> io::Result<File> {
    // The path of a device is refused before it is opened.
    handle::wide(path)?;
    let file = File::open(path)?;
    if is_on_disk(&file) { Ok(file) } else { lacking("way to read pipes and devices without waiting") }
}

/// As [`open_at_once`], for folders too; `None` for a link or a mounted folder, which is not followed.
///
/// # Errors
/// Those of the system; `Unsupported` for a file that is stored elsewhere, whose bytes another program would have to
/// bring.
pub(crate) fn open_unfollowed(path: &Path) -> io::Result<Option<File>> {
    let file = open_itself(path, GENERIC_READ, ALL)?;
    if !is_on_disk(&file) {
        return lacking("way to read pipes and devices without waiting");
    }
    let meta = file.metadata()?;
    if meta.is_symlink() {
        return Ok(None);
    }
    if meta.file_attributes() & FILE_ATTRIBUTE_REPARSE_POINT != 0 {
        return lacking("way to open a file that is stored elsewhere, and surely no link");
    }
    Ok(Some(file))
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
    lacking("devices, FIFOs and sockets for output")
}

/// Opens a folder, and fails if another type of file or a link is there.
///
/// # Errors
/// Those of the system.
pub fn open_folder(path: &Path) -> io::Result<File> {
    open_folder_by(path, ALL)
}

fn open_folder_by(path: &Path, share: u32) -> io::Result<File> {
    let folder = open_itself(path, GENERIC_READ, share)?;
    match folder.metadata()? {
        meta if meta.is_symlink() || !meta.is_dir() => Err(io::ErrorKind::NotADirectory.into()),
        _ => Ok(folder),
    }
}

/// Tells whether these permissions keep an entry from anybody: from a group too, as there are none for files.
fn is_private(mode: u32) -> bool {
    mode & ALL_READ != ALL_READ
}

/// Makes a file, for this user alone unless everybody may read it, and opens it for reading and writing.
///
/// # Errors
/// Those of the system, and that the name is taken, or is none.
pub(crate) fn create_new(path: &Path, mode: u32) -> io::Result<File> {
    check_name(path)?;
    match is_private(mode) {
        true => security::create_private(path, ALL, 0),
        false => OpenOptions::new().read(true).write(true).create_new(true).open(path),
    }
}

/// Makes a folder with permissions as in [`create_new`].
///
/// # Errors
/// Those of [`create_new`].
pub fn create_folder(path: &Path, mode: u32) -> io::Result<()> {
    check_name(path)?;
    if is_private(mode) { security::create_private_folder(path) } else { fs::create_dir(path) }
}

/// Makes a folder and those around it, as far as they are missing, with permissions as in [`create_new`].
///
/// # Errors
/// Those of [`create_new`].
pub fn create_folders(path: &Path, mode: u32) -> io::Result<()> {
    for part in
        path.ancestors().filter(|part| matches!(part.components().next_back(), Some(Component::Normal(_))))
    {
        check_name(part)?;
    }
    if !is_private(mode) {
        return DirBuilder::new().recursive(true).create(path);
    }
    let mut missing: Vec<&Path> = path.ancestors().take_while(|part| !part.is_dir()).collect();
    missing.retain(|part| part.file_name().is_some());
    missing.into_iter().rev().try_for_each(|part| create_folder(part, mode))
}

/// Takes an open file away from others, as far as these permissions do.
///
/// # Errors
/// Those of the system; `Unsupported` for permissions that let everybody read, which only a folder gives.
pub(crate) fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    if is_private(mode) {
        security::keep_from_others(file)
    } else {
        lacking("permissions of single classes of users")
    }
}

/// Gives a new file the permissions of the old one that it is to replace.
///
/// # Errors
/// Those of the system; `PermissionDenied` for an old file that may only be read.
pub(crate) fn keep_mode(new: &File, (path, old): (&Path, &Metadata)) -> io::Result<()> {
    if old.permissions().readonly() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "the file that is there may only be read",
        ));
    }
    security::copy_permissions(&open_itself(path, FILE_READ_ATTRIBUTES, ALL)?, new)
}

/// Tells whether files get their permissions from the folder that they are made in.
pub(crate) const FILES_INHERIT: bool = true;

/// Gives a new folder the permissions of the old one that it is to replace.
///
/// # Errors
/// Those of the system.
pub(crate) fn keep_mode_of_folder(new: &Path, (path, _old): (&Path, &Metadata)) -> io::Result<()> {
    let new = open_itself(new, FILE_READ_ATTRIBUTES, ALL)?;
    security::copy_permissions(&open_itself(path, FILE_READ_ATTRIBUTES, ALL)?, &new)
}

/// Tells whether an error means that a file system has no permissions, or lacks another feature.
pub(crate) fn is_missing_feature(error: &io::Error) -> bool {
    const NONE: [u32; 3] = [ERROR_NOT_SUPPORTED, ERROR_INVALID_FUNCTION, ERROR_CALL_NOT_IMPLEMENTED];
    error.kind() == io::ErrorKind::Unsupported || is_any(error, &NONE)
}

/// Reads some of the bytes of a file from `at` on; 0 at the end. The file's own position is moved, which nobody uses
/// among several threads.
///
/// # Errors
/// Those of the system.
pub(crate) fn read_at(file: &File, out: &mut [u8], at: u64) -> io::Result<usize> {
    file.seek_read(out, at)
}

/// Writes some of `rows` in sequence from byte `at` on, and returns the number of bytes.
///
/// # Errors
/// Those of the system.
pub(crate) fn write_at(file: &File, rows: &[IoSlice<'_>], at: u64) -> io::Result<usize> {
    rows.iter().find(|row| !row.is_empty()).map_or(Ok(0), |row| file.seek_write(row, at))
}

/// Writes all of `bytes` from byte `at` on.
///
/// # Errors
/// Those of the system.
pub fn write_all_at(file: &File, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.seek_write(bytes, at) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => (bytes, at) = (&bytes[written..], at + written as u64),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// The look of an open file.
///
/// # Errors
/// Those of the system.
pub(crate) fn look(file: &File) -> io::Result<Option<Look>> {
    handle::look(file).map(Some)
}

/// Tells whether an error may mean that the system, or the file system, lacks a call for names.
pub(crate) fn is_lacking(error: &io::Error) -> bool {
    is_missing_feature(error)
}

/// Waits until a file is on the disk, and in no cache of the drive.
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

/// Waits until the names in a folder are on the disk, as far as the system can do that; `of` is a file on the same file
/// system.
///
/// Names are given by handles that write through, and NTFS has a journal of names. FAT has none: there a flush of the
/// folder is all there is. A folder that this user may not flush, and a file system that does not flush folders, are no
/// errors, as on Unix.
///
/// # Errors
/// Those of the disk.
pub(crate) fn sync_names(folder: &Path, _of: Option<&File>) -> io::Result<()> {
    const CANNOT: [u32; 6] = [
        ERROR_ACCESS_DENIED,
        ERROR_INVALID_FUNCTION,
        ERROR_INVALID_HANDLE,
        ERROR_INVALID_PARAMETER,
        ERROR_NOT_SUPPORTED,
        ERROR_SHARING_VIOLATION,
    ];
    match open_itself(folder, GENERIC_WRITE | SYNCHRONIZE, ALL).and_then(|folder| folder.sync_all()) {
        Err(e) if is_any(&e, &CANNOT) => Ok(()),
        done => done,
    }
}

/// Tells whether a file is on another machine, which may tell of failed writes only when they are flushed.
fn is_remote(file: &File) -> bool {
    let mut info = FILE_REMOTE_PROTOCOL_INFO::default();
    let (to, len) = ((&raw mut info).cast::<c_void>(), size_of_val(&info) as u32);
    // SAFETY: the handle is open as long as `file` is borrowed; `to` leads to `len` writable bytes of the structure of
    // this class.
    let told = unsafe { GetFileInformationByHandleEx(handle(file), FileRemoteProtocolInfo, to, len) };
    told != 0
}

/// Closes a file, and reports errors of earlier writes, as far as they are known before the bytes are on the disk.
///
/// # Errors
/// Those of writes that have failed by now.
pub(crate) fn close(file: File) -> io::Result<()> {
    close_copy(&file)
}

/// As [`close`], and the file stays open.
///
/// # Errors
/// As [`close`].
pub fn close_copy(file: &File) -> io::Result<()> {
    if is_remote(file) { file.sync_all() } else { Ok(()) }
}

/// A file in this folder, or in [`temporary_folder`], that nobody else can open, and that goes away when it is closed.
///
/// # Errors
/// Those of the system.
pub(crate) fn nameless_file(folder: Option<&Path>) -> io::Result<File> {
    let folder = folder.map_or_else(std::env::temp_dir, Path::to_path_buf);
    let mut number = [0; 16];
    super::random(&mut number)?;
    let path = folder.join(format!("fec-{:032x}.tmp", u128::from_le_bytes(number)));
    security::create_private(&path, 0, FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE)
}

/// A file in memory.
///
/// # Errors
/// `Unsupported`.
pub fn memory_file(_name: &str) -> io::Result<File> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no files in memory"))
}

/// The system's folder for temporary files, if it has one.
pub(crate) fn temporary_folder() -> Option<PathBuf> {
    Some(std::env::temp_dir())
}

//! Gives a file another name, never one that is taken, or one that has an entry which may be replaced.
//!
//! Everything is done through handles, so that the entry that was looked at is the one that gets a name or loses it.
//! Windows has no exchange of two entries. An entry that is known is therefore opened so that nobody else writes to it
//! or moves it, looked at, moved aside, and removed once the new one has its name. A crash in the middle leaves both:
//! the old one as NAME.fec-old, which nothing removes but its user.

use super::handle::{ALL, ITSELF, done, facts, handle, is_any, look, open_itself, wide};
use super::{check_name, open_folder_by};
use crate::io::look::{Look, Over};
use std::ffi::{OsString, c_void};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::mem::{offset_of, size_of};
use std::os::windows::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use windows_sys::Win32::Foundation::{
    ERROR_ACCESS_DENIED, ERROR_CALL_NOT_IMPLEMENTED, ERROR_INVALID_FUNCTION, ERROR_INVALID_LEVEL,
    ERROR_INVALID_PARAMETER, ERROR_NOT_SUPPORTED, ERROR_SHARING_VIOLATION,
};
use windows_sys::Win32::Storage::FileSystem::{
    DELETE, FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_READONLY, FILE_DISPOSITION_FLAG_DELETE,
    FILE_DISPOSITION_FLAG_POSIX_SEMANTICS, FILE_DISPOSITION_INFO, FILE_DISPOSITION_INFO_EX,
    FILE_FLAG_WRITE_THROUGH, FILE_READ_ATTRIBUTES, FILE_RENAME_INFO, FILE_SHARE_READ, FILE_SHARE_WRITE,
    FileDispositionInfo, FileDispositionInfoEx, FileRenameInfo, FileRenameInfoEx, SYNCHRONIZE,
    SetFileInformationByHandle,
};

/// Rights to look at an entry, to rename it and to remove it.
const MOVE: u32 = DELETE | FILE_READ_ATTRIBUTES | SYNCHRONIZE;
/// An entry that has the name loses it.
const REPLACE: u32 = 1;
/// It loses the name at once, although it may be open, as on Unix.
const AT_ONCE: u32 = 2;
/// Errors of systems before Windows 10, and of file systems, that lack a kind of renaming or removing.
const LACKING: [u32; 5] = [
    ERROR_INVALID_PARAMETER,
    ERROR_NOT_SUPPORTED,
    ERROR_INVALID_FUNCTION,
    ERROR_CALL_NOT_IMPLEMENTED,
    ERROR_INVALID_LEVEL,
];

/// Opens an entry to give it another name, which is on the disk as far as the system promises that.
fn open_new(path: &Path) -> io::Result<File> {
    let flags = ITSELF | FILE_FLAG_WRITE_THROUGH;
    patiently(|| OpenOptions::new().access_mode(MOVE).share_mode(ALL).custom_flags(flags).open(path))
}

/// Repeats what fails because somebody else has an entry open: virus scanners and indexers look at each new file. A
/// folder with such a file in it denies access.
fn patiently<T>(what: impl Fn() -> io::Result<T>) -> io::Result<T> {
    const ATTEMPTS: u32 = 8;
    for attempt in 0..ATTEMPTS {
        match what() {
            Err(e) if is_any(&e, &[ERROR_SHARING_VIOLATION, ERROR_ACCESS_DENIED]) => {
                std::thread::sleep(Duration::from_millis(10 << attempt.min(5)));
            }
            done => return done,
        }
    }
    what()
}

/// Gives an open entry another name: [`FILE_RENAME_INFO`] with these flags.
fn rename_open(entry: &File, to: &Path, flags: u32) -> io::Result<()> {
    let name = wide(to)?;
    let mut info = vec![0u8; offset_of!(FILE_RENAME_INFO, FileName)];
    info[..4].copy_from_slice(&flags.to_ne_bytes());
    let len_at = offset_of!(FILE_RENAME_INFO, FileNameLength);
    // The length leaves out the zero at the end.
    info[len_at..len_at + 4].copy_from_slice(&(2 * (name.len() as u32 - 1)).to_ne_bytes());
    name.iter().for_each(|unit| info.extend_from_slice(&unit.to_ne_bytes()));
    let len = info.len().max(size_of::<FILE_RENAME_INFO>());
    info.resize(len.next_multiple_of(8), 0);
    // The structure has the alignment of a handle.
    let words: Vec<u64> = info.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word)).collect();
    let class = if flags & AT_ONCE != 0 { FileRenameInfoEx } else { FileRenameInfo };
    // SAFETY: the handle is open as long as `entry` is borrowed. `words` is aligned for the structure of this class,
    // has its fields at their offsets and `len` bytes at least, and the name in it ends with a zero within them.
    let result = unsafe {
        SetFileInformationByHandle(handle(entry), class, words.as_ptr().cast::<c_void>(), len as u32)
    };
    done(result)
}

/// Removes an open entry: its name goes at once, or when the last who has it open closes it.
fn remove_open(entry: &File) -> io::Result<()> {
    let flags = FILE_DISPOSITION_FLAG_DELETE | FILE_DISPOSITION_FLAG_POSIX_SEMANTICS;
    let info = FILE_DISPOSITION_INFO_EX { Flags: flags };
    let (at, len) = ((&raw const info).cast::<c_void>(), size_of::<FILE_DISPOSITION_INFO_EX>() as u32);
    // SAFETY: the handle is open as long as `entry` is borrowed; `at` leads to `len` bytes of the class's structure.
    let result = unsafe { SetFileInformationByHandle(handle(entry), FileDispositionInfoEx, at, len) };
    match done(result) {
        Err(e) if is_any(&e, &LACKING) => {}
        done => return done,
    }
    let info = FILE_DISPOSITION_INFO { DeleteFile: true };
    let (at, len) = ((&raw const info).cast::<c_void>(), size_of::<FILE_DISPOSITION_INFO>() as u32);
    // SAFETY: as above.
    let result = unsafe { SetFileInformationByHandle(handle(entry), FileDispositionInfo, at, len) };
    done(result)
}

/// Gives an entry another name, in place of one that `over` gives up.
///
/// # Errors
/// `AlreadyExists` if another entry has the name; that somebody else writes to it; those of the system.
pub fn rename(from: &Path, to: &Path, over: Over) -> io::Result<()> {
    check_name(to)?;
    let new = open_new(from)?;
    match over {
        Over::Nothing => rename_open(&new, to, 0),
        Over::Known(look) => by_steps(&new, to, Some(look)),
        Over::Anything => match rename_open(&new, to, REPLACE | AT_ONCE) {
            Err(e) if is_any(&e, &LACKING) => match rename_open(&new, to, REPLACE) {
                // The older kind does not replace what is open.
                Err(e) if is_any(&e, &[ERROR_ACCESS_DENIED, ERROR_SHARING_VIOLATION]) => {
                    by_steps(&new, to, None)
                }
                done => done,
            },
            done => done,
        },
    }
}

/// Gives an open entry a name whose file is moved aside and then removed; only the `known` one, if there is such.
fn by_steps(new: &File, to: &Path, known: Option<Look>) -> io::Result<()> {
    // Nobody else can write to the file, move or remove it until the handle is closed.
    let old = match patiently(|| open_itself(to, MOVE, FILE_SHARE_READ)) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return rename_open(new, to, 0),
        opened => opened?,
    };
    let attributes = facts(&old)?.dwFileAttributes;
    if attributes & FILE_ATTRIBUTE_DIRECTORY != 0 {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    // It could be moved aside, and not removed.
    if attributes & FILE_ATTRIBUTE_READONLY != 0 {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    if let Some(known) = known
        && look(&old)? != known
    {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let aside = move_aside(&old, to)?;
    if let Err(e) = patiently(|| rename_open(new, to, 0)) {
        return Err(put_back(&old, to, &aside, e));
    }
    // The new file has its name: all that is wrong is a file too many.
    if let Err(e) = remove_open(&old) {
        tracing::warn!("{aside:?} stays: {e}");
    }
    Ok(())
}

/// Gives an open entry a name of its own beside the one that it had, and returns that. No process takes such a name for
/// that of a temporary file.
fn move_aside(entry: &File, was: &Path) -> io::Result<PathBuf> {
    /// Characters of the name that are kept, so that there is room for the rest.
    const KEPT: usize = 200;
    const ATTEMPTS: usize = 100;
    let name: String = was.file_name().unwrap_or_default().to_string_lossy().chars().take(KEPT).collect();
    let mut attempt = 1;
    loop {
        let ending = if attempt == 1 { String::new() } else { format!("-{attempt}") };
        let aside = was.with_file_name(format!("{name}.fec-old{ending}"));
        match rename_open(entry, &aside, 0) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && attempt < ATTEMPTS => attempt += 1,
            done => return done.map(|()| aside),
        }
    }
}

/// Gives an entry that was moved aside its name back, and returns the error that made this necessary. If the name is
/// taken meanwhile, the entry stays aside, and the error says where.
fn put_back(entry: &File, was: &Path, aside: &Path, cause: io::Error) -> io::Error {
    if patiently(|| rename_open(entry, was, 0)).is_ok() { cause } else { left_aside(aside, &cause) }
}

/// The error of an entry that is left aside. It has no kind of its own, for which callers would have words without the
/// place.
fn left_aside(aside: &Path, cause: &io::Error) -> io::Error {
    let name = aside.file_name().unwrap_or_default();
    io::Error::other(format!("{cause}; what was there before is now {name:?} beside it"))
}

/// Gives a folder another name, which may be that of an empty folder.
///
/// # Errors
/// `DirectoryNotEmpty`; those of the system.
pub(crate) fn rename_folder(from: &Path, to: &Path) -> io::Result<()> {
    check_name(to)?;
    let new = open_new(from)?;
    let is_taken = match fs::remove_dir(to) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => false,
        done => done.map(|()| true)?,
    };
    let renamed = patiently(|| rename_open(&new, to, 0));
    if renamed.is_err() && is_taken {
        // A failure here is ignored: the folder was empty, and the first error is the one to show.
        let _ = fs::create_dir(to);
    }
    renamed
}

/// Exchanges two entries, in three steps. A crash between them leaves the second as NAME.fec-old, and the first under
/// either name. After an error both have their own.
///
/// # Errors
/// Those of the system, such as that a file in one of them is open.
pub(crate) fn exchange(a: &Path, b: &Path) -> io::Result<()> {
    let (one, other) = (open_new(a)?, open_new(b)?);
    let aside = patiently(|| move_aside(&other, b))?;
    if let Err(e) = patiently(|| rename_open(&one, b, 0)) {
        return Err(put_back(&other, b, &aside, e));
    }
    if let Err(e) = rename_open(&other, a, 0) {
        return Err(match rename_open(&one, a, 0) {
            Ok(()) => put_back(&other, b, &aside, e),
            Err(_) => left_aside(&aside, &e),
        });
    }
    Ok(())
}

/// Moves files of these names from a folder to another, neither of them a link. Both keep their places meanwhile.
///
/// # Errors
/// Those of the system; some of the files may be moved then.
pub(crate) fn move_files(names: &[OsString], from: &Path, to: &Path, over: Over) -> io::Result<()> {
    let folder = |path| open_folder_by(path, FILE_SHARE_READ | FILE_SHARE_WRITE);
    let _places = (folder(from)?, folder(to)?);
    names.iter().try_for_each(|name| rename(&from.join(name), &to.join(name), over))
}

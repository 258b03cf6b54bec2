//! Calls for open files, and paths as the system takes them.

use crate::io::look::Look;
use std::ffi::c_void;
use std::fs::{File, OpenOptions};
use std::io;
use std::mem::size_of;
use std::os::windows::ffi::OsStrExt;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::{AsRawHandle, FromRawHandle};
use std::path::{Component, Path, Prefix};
use windows_sys::Win32::Foundation::{HANDLE, INVALID_HANDLE_VALUE};
use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, FILE_BASIC_INFO, FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_OPEN_REPARSE_POINT,
    FILE_SHARE_DELETE, FILE_SHARE_READ, FILE_SHARE_WRITE, FILE_TYPE_DISK, FileBasicInfo,
    GetFileInformationByHandle, GetFileInformationByHandleEx, GetFileType, ReOpenFile,
};

/// Others may do anything with the file meanwhile, as on Unix.
pub(super) const ALL: u32 = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
/// The entry itself is opened, be it a folder or a link.
pub(super) const ITSELF: u32 = FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT;

/// A path for the system's own calls: whole, so that no length limits it and no name in it means a device.
pub(in crate::io::system) fn wide(path: &Path) -> io::Result<Vec<u16>> {
    let whole = std::path::absolute(path)?;
    let mut units: Vec<u16> = whole.as_os_str().encode_wide().collect();
    let refused = |why: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    match whole.components().next() {
        Some(Component::Prefix(prefix)) => match prefix.kind() {
            Prefix::Disk(_) => units.splice(0..0, r"\\?\".encode_utf16()).for_each(drop),
            Prefix::UNC(..) => units.splice(0..2, r"\\?\UNC\".encode_utf16()).for_each(drop),
            Prefix::DeviceNS(_) => return refused("the path is that of a device"),
            Prefix::Verbatim(_) | Prefix::VerbatimUNC(..) | Prefix::VerbatimDisk(_) => {}
        },
        _ => return refused("the path is not whole"),
    }
    if units.contains(&0) {
        return refused("the path has a NUL");
    }
    // A folder may be named with a separator at its end; a drive has to be.
    if units.ends_with(&[u16::from(b'\\')]) && !units.ends_with(&[u16::from(b':'), u16::from(b'\\')]) {
        units.pop();
    }
    units.push(0);
    Ok(units)
}

/// Opens an entry itself for these rights, which others may use meanwhile as `share` says.
pub(super) fn open_itself(path: &Path, access: u32, share: u32) -> io::Result<File> {
    OpenOptions::new().access_mode(access).share_mode(share).custom_flags(ITSELF).open(path)
}

/// Opens an open file again, with other rights.
pub(in crate::io::system) fn open_again(file: &File, access: u32, share: u32) -> io::Result<File> {
    // SAFETY: the handle is open as long as `file` is borrowed, and the call takes no pointer.
    let opened = unsafe { ReOpenFile(handle(file), access, share, FILE_FLAG_BACKUP_SEMANTICS) };
    // SAFETY: the call has just opened it.
    unsafe { owned(opened) }
}

/// The handle of an open file.
pub(super) fn handle(file: &File) -> HANDLE {
    file.as_raw_handle()
}

/// The file of a handle that a call has just returned, or its error.
///
/// # Safety
/// If the handle is one, it is open, and nobody else has it.
pub(super) unsafe fn owned(opened: HANDLE) -> io::Result<File> {
    if opened == INVALID_HANDLE_VALUE || opened.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: as the caller promises.
    Ok(unsafe { File::from_raw_handle(opened) })
}

/// The result of a call that returns zero for an error.
pub(super) fn done(result: i32) -> io::Result<()> {
    if result == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Tells whether an error is one of these of the system.
pub(super) fn is_any(error: &io::Error, codes: &[u32]) -> bool {
    error.raw_os_error().is_some_and(|code| codes.contains(&code.cast_unsigned()))
}

/// Volume, number, length, names and attributes of an open file.
pub(super) fn facts(file: &File) -> io::Result<BY_HANDLE_FILE_INFORMATION> {
    let mut facts = BY_HANDLE_FILE_INFORMATION::default();
    // SAFETY: the handle is open as long as `file` is borrowed, and `facts` is writable and of the call's type.
    let result = unsafe { GetFileInformationByHandle(handle(file), &raw mut facts) };
    done(result).map(|()| facts)
}

/// The times, in seconds and nanoseconds since 1601, of the last write and of the last change of any kind. FAT knows no
/// changes but writes.
pub(super) fn times(file: &File) -> io::Result<[(i64, i64); 2]> {
    let mut basic = FILE_BASIC_INFO::default();
    let (to, len) = ((&raw mut basic).cast::<c_void>(), size_of::<FILE_BASIC_INFO>() as u32);
    // SAFETY: the handle is open as long as `file` is borrowed; `to` leads to `len` writable bytes of a structure that
    // is the one of this class.
    let result = unsafe { GetFileInformationByHandleEx(handle(file), FileBasicInfo, to, len) };
    done(result)?;
    const SECOND: i64 = 10_000_000;
    let split = |ticks: i64| (ticks.div_euclid(SECOND), ticks.rem_euclid(SECOND) * 100);
    let changed = if basic.ChangeTime == 0 { basic.LastWriteTime } else { basic.ChangeTime };
    Ok([split(basic.LastWriteTime), split(changed)])
}

/// The volume that an open file is on, and its number there.
pub(super) fn identity(facts: &BY_HANDLE_FILE_INFORMATION) -> (u64, u64) {
    let number = u64::from(facts.nFileIndexHigh) << 32 | u64::from(facts.nFileIndexLow);
    (u64::from(facts.dwVolumeSerialNumber), number)
}

/// The look of an open file. Both times are in it: some programs set the time of the last write back.
pub(super) fn look(file: &File) -> io::Result<Look> {
    let facts = facts(file)?;
    let size = u64::from(facts.nFileSizeHigh) << 32 | u64::from(facts.nFileSizeLow);
    let [written, changed] = times(file)?;
    let modified = (written.0 ^ changed.0.rotate_left(32), written.1 << 32 | changed.1);
    Ok(Look { place: identity(&facts), size, modified })
}

/// Tells whether an open file is on a disk: neither a pipe, nor a console, nor another device.
pub fn is_on_disk(file: &File) -> bool {
    // SAFETY: the handle is open as long as `file` is borrowed, and the call takes no pointer.
    let kind = unsafe { GetFileType(handle(file)) };
    kind == FILE_TYPE_DISK
}

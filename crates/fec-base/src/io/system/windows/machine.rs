//! Free bytes, holes in files, locks, processes and clocks, and the meaning of errors.

use super::handle::{done, handle, is_any, owned, wide};
use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::mem::size_of;
use std::ops::Range;
use std::os::windows::fs::MetadataExt;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use windows_sys::Win32::Foundation::{
    ERROR_COMMITMENT_LIMIT, ERROR_CRC, ERROR_DISK_OPERATION_FAILED, ERROR_INVALID_PARAMETER, ERROR_IO_DEVICE,
    ERROR_MORE_DATA, ERROR_NO_SYSTEM_RESOURCES, ERROR_NOT_ENOUGH_MEMORY, ERROR_OUTOFMEMORY, ERROR_READ_FAULT,
    ERROR_SECTOR_NOT_FOUND, ERROR_SEEK, ERROR_TOO_MANY_OPEN_FILES, ERROR_WORKING_SET_QUOTA, FILETIME, HANDLE,
    WAIT_OBJECT_0,
};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_ATTRIBUTE_SPARSE_FILE, GetDiskFreeSpaceExW, LOCKFILE_EXCLUSIVE_LOCK, LOCKFILE_FAIL_IMMEDIATELY,
    LockFileEx, UnlockFileEx,
};
use windows_sys::Win32::System::IO::{DeviceIoControl, OVERLAPPED};
use windows_sys::Win32::System::Ioctl::{
    FSCTL_QUERY_ALLOCATED_RANGES, FSCTL_SET_SPARSE, FSCTL_SET_ZERO_DATA,
};
use windows_sys::Win32::System::Registry::{HKEY_LOCAL_MACHINE, RRF_RT_REG_SZ, RegGetValueW};
use windows_sys::Win32::System::Threading::{
    GetCurrentThread, GetThreadTimes, OpenProcess, PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SYNCHRONIZE,
    WaitForSingleObject,
};

/// The bytes of the file system that a folder is on, and those that this user may still fill.
///
/// # Errors
/// Those of the system.
pub(crate) fn room(folder: &Path) -> io::Result<(u64, u64)> {
    let (folder, mut free, mut all) = (wide(folder)?, 0, 0);
    // SAFETY: `folder` ends with a zero; both numbers are writable, and the third may be left out.
    let told = unsafe { GetDiskFreeSpaceExW(folder.as_ptr(), &raw mut free, &raw mut all, null_mut()) };
    done(told).map(|()| (all, free))
}

/// Gives a file system an order about an open file, which takes and answers two numbers; the number of bytes that it
/// answered.
fn control(file: &File, code: u32, given: Option<[i64; 2]>, out: Option<&mut [i64; 2]>) -> io::Result<u32> {
    const LEN: u32 = size_of::<[i64; 2]>() as u32;
    let (from, from_len) = given.as_ref().map_or((null(), 0), |given| (given.as_ptr().cast::<c_void>(), LEN));
    let (to, to_len) = out.map_or((null_mut(), 0), |out| (out.as_mut_ptr().cast::<c_void>(), LEN));
    let mut answered = 0;
    // SAFETY: the handle is open as long as `file` is borrowed, and not overlapped; both pointers lead to as many bytes
    // as is said, the second to writable ones, or there are none.
    let result = unsafe {
        DeviceIoControl(handle(file), code, from, from_len, to, to_len, &raw mut answered, null_mut())
    };
    match done(result) {
        Err(e) if !is_any(&e, &[ERROR_MORE_DATA]) => Err(e),
        _ => Ok(answered),
    }
}

/// The next range of stored bytes of a file from `at` on, as [`ReadAt::next_data`](crate::io::ReadAt::next_data).
pub(crate) fn next_data(file: &File, at: u64) -> Option<Range<u64>> {
    let Ok(meta) = file.metadata() else { return Some(at..u64::MAX) };
    if at >= meta.len() {
        return None;
    }
    let Ok(from) = i64::try_from(at) else { return Some(at..u64::MAX) };
    if meta.file_attributes() & FILE_ATTRIBUTE_SPARSE_FILE == 0 {
        return Some(at..u64::MAX);
    }
    // Offset and length, as in FILE_ALLOCATED_RANGE_BUFFER.
    let mut range = [0; 2];
    match control(file, FSCTL_QUERY_ALLOCATED_RANGES, Some([from, i64::MAX - from]), Some(&mut range)) {
        // The file system does not tell.
        Err(_) => Some(at..u64::MAX),
        Ok(0) => None,
        Ok(_) => {
            let [start, len] = range.map(|number| number.max(0) as u64);
            Some(start.max(at)..start + len)
        }
    }
}

/// Makes a range of a file zeros that take no room. False: the file system has no holes, and no byte changed.
pub fn make_hole(file: &File, at: u64, len: u64) -> bool {
    let [Ok(from), Ok(end)] = [at, at.saturating_add(len)].map(i64::try_from) else { return false };
    // The second number is the end, as in FILE_ZERO_DATA_INFORMATION.
    control(file, FSCTL_SET_SPARSE, None, None).is_ok()
        && control(file, FSCTL_SET_ZERO_DATA, Some([from, end]), None).is_ok()
}

/// The byte that is locked: other processes cannot read or write the locked bytes of a file, and no file is as long.
fn lock_place() -> OVERLAPPED {
    let mut place = OVERLAPPED::default();
    place.Anonymous.Anonymous.OffsetHigh = 1 << 30;
    place
}

/// Locks a file for this process alone, as long as it is open, without waiting.
///
/// # Errors
/// Those of the system, and that another process has it; that of a folder, which cannot be locked.
pub fn lock_alone(file: &File) -> io::Result<()> {
    let (mut place, how) = (lock_place(), LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY);
    // SAFETY: the handle is open as long as `file` is borrowed, and not overlapped: the call ends before it returns.
    let locked = unsafe { LockFileEx(handle(file), how, 0, 1, 0, &raw mut place) };
    done(locked)
}

/// Takes the lock off a file.
pub fn unlock(file: &File) {
    let mut place = lock_place();
    // SAFETY: as in `lock_alone`.
    let _ = unsafe { UnlockFileEx(handle(file), 0, 1, 0, &raw mut place) };
}

/// The number of this process.
pub(crate) fn process() -> u32 {
    std::process::id()
}

/// The place in which process numbers mean the same: the number that this machine got when Windows was installed.
pub(crate) fn processes_here() -> Option<Vec<u8>> {
    let (key, name) = (utf16("SOFTWARE\\Microsoft\\Cryptography"), utf16("MachineGuid"));
    let mut number = [0u8; 128];
    let mut len = number.len() as u32;
    // SAFETY: both names end with a zero; `number` is writable and has `len` bytes, and the type need not be told.
    let code = unsafe {
        RegGetValueW(
            HKEY_LOCAL_MACHINE,
            key.as_ptr(),
            name.as_ptr(),
            RRF_RT_REG_SZ,
            null_mut(),
            number.as_mut_ptr().cast::<c_void>(),
            &raw mut len,
        )
    };
    (code == 0).then(|| number[..len as usize].to_vec())
}

/// A text as Windows reads it, with a zero behind it.
fn utf16(text: &str) -> Vec<u16> {
    text.encode_utf16().chain([0]).collect()
}

/// Tells whether a process is gone, or has ended while others still have it open.
pub(crate) fn is_gone(process: i32) -> bool {
    let Ok(process) = u32::try_from(process) else { return false };
    let rights = PROCESS_SYNCHRONIZE | PROCESS_QUERY_LIMITED_INFORMATION;
    // SAFETY: the call takes no pointer.
    let opened: HANDLE = unsafe { OpenProcess(rights, 0, process) };
    // SAFETY: the call has just opened it.
    match unsafe { owned(opened) } {
        Err(e) => is_any(&e, &[ERROR_INVALID_PARAMETER]),
        Ok(open) => {
            // SAFETY: the handle is open as long as `open` lives.
            let state = unsafe { WaitForSingleObject(handle(&open), 0) };
            state == WAIT_OBJECT_0
        }
    }
}

/// Tells whether a read failed because of its place, so that other places may still be readable.
pub(crate) fn is_bad_place(error: &io::Error) -> bool {
    const BAD: [u32; 6] = [
        ERROR_CRC,
        ERROR_SEEK,
        ERROR_SECTOR_NOT_FOUND,
        ERROR_READ_FAULT,
        ERROR_IO_DEVICE,
        ERROR_DISK_OPERATION_FAILED,
    ];
    is_any(error, &BAD)
}

/// Tells whether the process or the machine caused an error, and not the file.
pub fn is_shortage(error: &io::Error) -> bool {
    const SHORT: [u32; 6] = [
        ERROR_TOO_MANY_OPEN_FILES,
        ERROR_NOT_ENOUGH_MEMORY,
        ERROR_OUTOFMEMORY,
        ERROR_NO_SYSTEM_RESOURCES,
        ERROR_COMMITMENT_LIMIT,
        ERROR_WORKING_SET_QUOTA,
    ];
    is_any(error, &SHORT)
}

/// The time that a core has worked for the calling thread.
pub(crate) fn thread_time() -> Duration {
    let [mut made, mut ended, mut kernel, mut user] = [FILETIME::default(); 4];
    // SAFETY: the call takes no pointer and cannot fail; its handle needs no closing.
    let thread = unsafe { GetCurrentThread() };
    // SAFETY: the handle is that of this thread, and all four are writable.
    let _ = unsafe { GetThreadTimes(thread, &raw mut made, &raw mut ended, &raw mut kernel, &raw mut user) };
    let ticks = |time: FILETIME| u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime);
    let ticks = ticks(kernel) + ticks(user);
    Duration::new(ticks / 10_000_000, (ticks % 10_000_000) as u32 * 100)
}

/// The time since 1970, by the system's clock; zero before that.
pub fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

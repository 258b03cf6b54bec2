//! Holes: stretches of files that the file system keeps as zeros without room on the disk.

use std::fs::File;

/// The offset of the first byte at or behind `at` that may be no hole; `u64::MAX` if the rest of the file is one. The
/// position of the file moves.
#[cfg(target_os = "linux")]
pub(crate) fn next_data(file: &File, at: u64) -> u64 {
    use rustix::fs::{SeekFrom, seek};
    match seek(file, SeekFrom::Data(at)) {
        Ok(data) => data,
        Err(rustix::io::Errno::NXIO) => u64::MAX,
        Err(_) => at,
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn next_data(_file: &File, at: u64) -> u64 {
    at
}

/// The offset of the first byte behind `at` that is in a hole, or behind the end of the file. The position of the file
/// moves.
#[cfg(target_os = "linux")]
pub(crate) fn next_hole(file: &File, at: u64) -> u64 {
    use rustix::fs::{SeekFrom, seek};
    seek(file, SeekFrom::Hole(at)).unwrap_or(u64::MAX)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn next_hole(_file: &File, _at: u64) -> u64 {
    u64::MAX
}

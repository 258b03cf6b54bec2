//! Holes: stretches of files that the file system keeps as zeros without room on the disk.

use rustix::fs::{SeekFrom, seek};
use std::fs::File;

/// The offset of the first byte at or behind `at` that may be no hole; `u64::MAX` if the rest of the file is one. The
/// position of the file moves.
pub(crate) fn next_data(file: &File, at: u64) -> u64 {
    match seek(file, SeekFrom::Data(at)) {
        Ok(data) => data,
        Err(rustix::io::Errno::NXIO) => u64::MAX,
        Err(_) => at,
    }
}

/// The offset of the first byte behind `at` that is in a hole, or behind the end of the file. The position of the file
/// moves.
pub(crate) fn next_hole(file: &File, at: u64) -> u64 {
    seek(file, SeekFrom::Hole(at)).unwrap_or(u64::MAX)
}

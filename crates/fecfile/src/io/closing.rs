//! What a file system tells only when a file is closed: one over a network may find then that there is no room, or that the server has gone.
#![allow(unsafe_code)] // Closing that tells of errors has no safe interface.

use std::io;
use std::os::fd::{AsFd, IntoRawFd, OwnedFd};

/// Closes a file, and tells what the system says of what was written.
///
/// # Errors
/// Those of what was written and has failed by now.
pub fn close(file: impl Into<OwnedFd>) -> io::Result<()> {
    let descriptor = file.into().into_raw_fd();
    // SAFETY: its owner gave the descriptor up: nobody else has it, and nobody uses it afterwards.
    let closed = unsafe { libc::close(descriptor) };
    match closed {
        0 => Ok(()),
        _ => match io::Error::last_os_error() {
            // The descriptor is gone all the same, and nothing was said of the file.
            e if e.kind() == io::ErrorKind::Interrupted => Ok(()),
            e => Err(e),
        },
    }
}

/// The same with a second descriptor of the file, which stays open, with its locks. Where there is none to be had, nothing is told.
///
/// # Errors
/// As of [`close`].
pub fn close_copy(file: impl AsFd) -> io::Result<()> {
    file.as_fd().try_clone_to_owned().map_or(Ok(()), close)
}

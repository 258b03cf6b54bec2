//! Closes files and reports errors of the close. A network file system may only then find that there is no space, or
//! that the server has gone.
#![allow(unsafe_code)] // a close that reports errors has no safe interface

use std::io;
use std::os::fd::{AsFd, IntoRawFd, OwnedFd};

/// Closes a file, and reports errors of earlier writes.
///
/// # Errors
/// Those of writes that have failed by now.
pub fn close(file: impl Into<OwnedFd>) -> io::Result<()> {
    let descriptor = file.into().into_raw_fd();
    // SAFETY: its owner gave the descriptor up: nobody else has it, and nobody uses it afterwards.
    let closed = unsafe { libc::close(descriptor) };
    match closed {
        0 => Ok(()),
        _ => match io::Error::last_os_error() {
            // The descriptor is closed all the same, and the error says nothing about the file.
            e if e.kind() == io::ErrorKind::Interrupted => Ok(()),
            e => Err(e),
        },
    }
}

/// Closes a second descriptor of the file, which stays open with its locks. If no second descriptor can be made, no
/// error is reported.
///
/// # Errors
/// As [`close`].
pub fn close_copy(file: impl AsFd) -> io::Result<()> {
    file.as_fd().try_clone_to_owned().map_or(Ok(()), close)
}

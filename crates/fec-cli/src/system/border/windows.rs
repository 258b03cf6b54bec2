//! The border on Windows.

use fec_base::io::system::{close_copy, is_on_disk};
use std::fs::{File, Metadata};
use std::io::{self, IsTerminal, Write};
use std::os::windows::io::{AsHandle, AsRawHandle};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The terminal of this process, wherever its streams lead.
pub(crate) const TERMINAL: &str = "CONIN$";

/// Tells whether the caller had closed standard stream 0, 1 or 2: writes to one that is not there succeed in silence.
pub(crate) fn was_closed(stream: usize) -> bool {
    let handle = match stream {
        0 => io::stdin().as_raw_handle(),
        1 => io::stdout().as_raw_handle(),
        _ => io::stderr().as_raw_handle(),
    };
    // The system has both for a handle that is none.
    handle.is_null() || handle.addr() == usize::MAX
}

/// Standard input, as a file of its own. Nothing translates line ends, or ends it at a Ctrl-Z.
///
/// # Errors
/// Those of the system.
pub(crate) fn stdin() -> io::Result<File> {
    io::stdin().as_handle().try_clone_to_owned().map(File::from)
}

/// Standard output, as a file of its own.
///
/// # Errors
/// Those of the system.
pub(crate) fn stdout() -> io::Result<File> {
    io::stdout().as_handle().try_clone_to_owned().map(File::from)
}

/// The metadata of an open file; `None` for a pipe or a terminal, which have none.
///
/// # Errors
/// Those of the system.
pub(crate) fn metadata(file: &File) -> io::Result<Option<Metadata>> {
    if is_on_disk(file) { file.metadata().map(Some) } else { Ok(None) }
}

/// Flushes standard output where the file is on another machine, which tells only then of writes that have failed.
///
/// # Errors
/// Those of earlier writes.
pub(crate) fn close_stdout() -> io::Result<()> {
    stdout().map_or(Ok(()), |file| close_copy(&file))
}

/// The file that standard output was redirected to: not known.
pub(crate) fn redirected() -> Option<PathBuf> {
    None
}

/// Writes to standard error without its lock, whose holder may be waiting for a reader.
pub(crate) fn write_error(text: &[u8]) {
    let file = io::stderr().as_handle().try_clone_to_owned().map(File::from);
    let _ = file.and_then(|mut file| file.write_all(text));
}

/// A stream that may be a terminal.
pub(crate) trait Screen: IsTerminal {
    /// The columns of the terminal, if it tells them.
    fn columns(&self) -> Option<usize>;
}

impl<T: IsTerminal + AsHandle> Screen for T {
    fn columns(&self) -> Option<usize> {
        terminal_size::terminal_size_of(self).map(|(columns, _)| columns.0.into())
    }
}

/// Tells whether a file claims a length that it may not have: no system of files does.
pub(crate) fn has_no_length(_path: &Path) -> bool {
    false
}

/// Forbids core dumps of this process: the system makes none, unless an administrator has asked for them.
pub(crate) fn no_core_dumps() {}

/// Allows as many open files as the system does, which has no lower limit.
pub(crate) fn allow_many_files() {}

/// Calls `end` on a thread of its own for each Ctrl-C and Ctrl-Break. It is also called when the terminal is closed,
/// the user logs off or the machine ends, and then Windows may end the process before all is removed. Nothing tells of
/// a process that aborts itself.
///
/// # Errors
/// Those of the system.
pub(crate) fn watch(end: fn(), _cleaned: fn() -> bool, _code: i32) -> io::Result<()> {
    ctrlc::set_handler(end).map_err(io::Error::other)
}

/// Ends the process. Bytes in the buffer of standard output are written before.
pub(crate) fn exit(code: i32) -> ! {
    std::process::exit(code)
}

/// Ends without a message when the reader of standard output is gone, by the code that Unix has for that.
pub(crate) fn end_without_reader() -> ExitCode {
    ExitCode::from(141)
}

//! The standard streams: which of them the caller had closed (`fec decode x >&-`), and whether data went out. Output
//! to a closed one would be lost and input from it empty, both without an error.

use crate::system::border::was_closed;
use std::sync::atomic::{AtomicBool, Ordering};

fn check(stream: usize) -> std::io::Result<()> {
    match was_closed(stream) {
        true => Err(std::io::Error::other("it is closed")),
        false => Ok(()),
    }
}

/// Fails if standard input was closed.
pub(crate) fn check_stdin() -> std::io::Result<()> {
    check(0)
}

/// Fails if standard output was closed.
pub(crate) fn check_stdout() -> std::io::Result<()> {
    check(1)
}

/// True if data went to standard output, or is about to.
static STDOUT_TOOK_DATA: AtomicBool = AtomicBool::new(false);

/// Notes that data is about to go to standard output.
pub(crate) fn note_stdout_data() {
    STDOUT_TOOK_DATA.store(true, Ordering::Relaxed);
}

/// Tells whether an interruption leaves partial data behind standard output.
pub(crate) fn stdout_took_data() -> bool {
    STDOUT_TOOK_DATA.load(Ordering::Relaxed)
}

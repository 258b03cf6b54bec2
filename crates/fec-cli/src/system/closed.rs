//! The standard streams: which of them the caller had closed (`fec decode x >&-`), and whether data went out.
//!
//! Before `main`, Rust opens `/dev/null` in place of each closed one. Output there is lost and input is empty, both
//! without an error. The check therefore runs before Rust's start-up.
#![allow(unsafe_code)] // Code before `main`, and descriptors that nobody owns.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

// SAFETY: the loader calls the functions of this section once, before `main`, on one thread. `look` needs nothing that
// is set up later: it makes a system call, and writes to atomic variables.
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
#[used]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    for (fd, closed) in (0..).zip(&CLOSED) {
        // SAFETY: the descriptor is used for one call, which fails if it is not open. This is the only thread, so
        // nothing is closed meanwhile.
        let stream = unsafe { BorrowedFd::borrow_raw(fd) };
        closed.store(rustix::io::fcntl_getfd(stream).is_err(), Ordering::Relaxed);
    }
}

fn check(fd: usize) -> std::io::Result<()> {
    match CLOSED[fd].load(Ordering::Relaxed) {
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

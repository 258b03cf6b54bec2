//! The border on Unix.
#![allow(unsafe_code)] // Code before `main`, descriptors that nobody owns, and a handler of SIGABRT.

use fec_base::program::sigbus::{self, is_ignored};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::stdio;
use signal_hook::consts::{
    SIGABRT, SIGALRM, SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU,
    SIGXFSZ,
};
use signal_hook::{flag, iterator, low_level};
use std::fs::{File, Metadata};
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The terminal of this process, wherever its streams lead.
pub(crate) const TERMINAL: &str = "/dev/tty";

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

/// Tells whether the caller had closed standard stream 0, 1 or 2. Before `main`, Rust opens `/dev/null` in place of
/// each closed one, so the look comes before that.
pub(crate) fn was_closed(stream: usize) -> bool {
    CLOSED[stream].load(Ordering::Relaxed)
}

/// Standard input, as a file of its own.
///
/// # Errors
/// Those of the system.
pub(crate) fn stdin() -> io::Result<File> {
    io::stdin().as_fd().try_clone_to_owned().map(File::from)
}

/// Standard output, as a file of its own.
///
/// # Errors
/// Those of the system.
pub(crate) fn stdout() -> io::Result<File> {
    io::stdout().as_fd().try_clone_to_owned().map(File::from)
}

/// The metadata of an open file or stream.
///
/// # Errors
/// Those of the system.
pub(crate) fn metadata(file: &File) -> io::Result<Option<Metadata>> {
    file.metadata().map(Some)
}

/// Closes a copy of standard output: a network file system tells only then of writes that have failed.
///
/// # Errors
/// Those of earlier writes.
pub(crate) fn close_stdout() -> io::Result<()> {
    fec_base::program::closing::close_copy(io::stdout())
}

/// The file that standard output was redirected to, if the system tells its name.
pub(crate) fn redirected() -> Option<PathBuf> {
    std::fs::read_link("/proc/self/fd/1").ok()
}

/// Writes to standard error without its lock, whose holder may be waiting for a reader.
pub(crate) fn write_error(text: &[u8]) {
    let _ = rustix::io::write(stdio::stderr(), text);
}

/// A stream that may be a terminal.
pub(crate) trait Screen: IsTerminal {
    /// The columns of the terminal, if it tells them.
    fn columns(&self) -> Option<usize>;
}

impl<T: IsTerminal + AsFd> Screen for T {
    fn columns(&self) -> Option<usize> {
        rustix::termios::tcgetwinsize(self).ok().map(|size| size.ws_col.into())
    }
}

/// Tells whether a file claims a length that it may not have: a file of sysfs claims a page, and may end earlier.
pub(crate) fn has_no_length(path: &Path) -> bool {
    const SYSFS: u64 = 0x6265_6572;
    // `f_type` has other types on other systems.
    #[allow(clippy::unnecessary_cast)]
    rustix::fs::statfs(path).is_ok_and(|fs| fs.f_type as u64 == SYSFS)
}

/// Forbids core dumps of this process.
pub(crate) fn no_core_dumps() {
    // The limit is 1, not 0: with a core_pattern pipe, Linux ignores every limit but 1 (core(5)). No file of one byte
    // is written either.
    let limit = Rlimit { current: Some(1), maximum: Some(1) };
    if let Err(e) = setrlimit(Resource::Core, limit) {
        tracing::warn!("core dumps are not switched off: {e}");
    }
}

/// Allows as many open files as the system does: all shard files of a folder are open at the same time.
///
/// Also grows the table of descriptors while this process has one thread. If several threads share the table, Linux
/// waits for a grace period of RCU each time it grows (`expand_fdtable`): 7 to 14 ms at the 256th and the 512th file.
pub(crate) fn allow_many_files() {
    const ROOM: i32 = 1 << 10;
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::debug!("the limit of open files stays: {error}");
    }
    // The copy is closed at once, but the table keeps its size. If this fails, the table grows as needed.
    let _ = rustix::io::fcntl_dupfd_cloexec(stdio::stdin(), ROOM - 1);
}

/// Signals that end a process and may come from outside.
const ENDING: [i32; 10] =
    [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGABRT, SIGALRM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU];

/// Calls `end` on a thread of its own for each signal that ends a process, and `cleaned` where the process aborts
/// itself, which says whether nothing is left; then the process exits with `code`. Signals that the parent process
/// chose to ignore stay ignored. A file size limit and a shrinking mapped file become ordinary errors.
///
/// # Errors
/// Those of the system.
pub(crate) fn watch(end: fn(), cleaned: fn() -> bool, code: i32) -> io::Result<()> {
    sigbus::install()?;
    // SIGXFSZ must not end the process: the write over the limit fails, and its error is reported.
    flag::register(SIGXFSZ, Arc::default())?;
    let wanted: Vec<i32> = ENDING.into_iter().filter(|s| !is_ignored(*s)).collect();
    on_abort(cleaned, code)?;
    let mut signals = iterator::Signals::new(wanted)?;
    std::thread::Builder::new()
        .name("signals".into())
        .stack_size(128 << 10)
        .spawn(move || signals.forever().for_each(|_| end()))?;
    Ok(())
}

/// True if the process is aborting.
static ABORTS: AtomicBool = AtomicBool::new(false);

/// Cleans up when the process aborts itself for lack of memory. Rust has printed the reason.
fn on_abort(cleaned: fn() -> bool, code: i32) -> io::Result<()> {
    /// `asm-generic/siginfo.h`: sent by a thread of this process.
    const SI_TKILL: i32 = -6;
    let at_abort = move |info: &libc::siginfo_t| {
        // Signals from outside are left to the thread that watches.
        if info.si_code == SI_TKILL && ABORTS.swap(true, Ordering::SeqCst) {
            // Another thread is removing files, and ends the process.
            std::thread::sleep(Duration::from_secs(2));
        } else if info.si_code == SI_TKILL {
            write_error(match cleaned() {
                true => b"fec: it cannot go on: nothing partial was left\n",
                false => b"fec: it cannot go on: temporary files may be left\n",
            });
            exit(code);
        }
    };
    // SAFETY: if the signal comes from `abort` on a thread of this process, the handler runs as if called there. That
    // thread allocates nothing and holds no lock of this program but that of the list, which is tried for a second and
    // not waited for. For a signal from outside the handler reads two fields and returns.
    unsafe { signal_hook_registry::register_sigaction(SIGABRT, at_abort) }?;
    Ok(())
}

/// Ends the process at once: nothing that other code has left for its end is run.
pub(crate) fn exit(code: i32) -> ! {
    low_level::exit(code)
}

/// Ends as any command of a pipe does when the reader of standard output is gone: without a message.
pub(crate) fn end_without_reader() -> ExitCode {
    // The default action of SIGPIPE ends the process here.
    let _ = low_level::emulate_default_handler(SIGPIPE);
    ExitCode::from(128 + SIGPIPE as u8)
}

//! Signals and panics: no partial output stays behind, whatever ends the process.

use crate::say::failure::Exit;
use crate::system::closed::stdout_took_data;
use fec_base::io::temporary::{remove_all, try_remove_all};
use fec_base::program::guarded::is_guarded;
use fec_base::program::interrupt::{self, Unfinished};
use fec_base::program::sigbus::is_ignored;
use rustix::process::{Resource, getrlimit, setrlimit};
use signal_hook::consts::{
    SIGABRT, SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU, SIGXFSZ,
};
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Time that an interrupted run has to end by itself.
const MOMENT: Duration = Duration::from_millis(400);
/// Time that the clean-up of unfinished uploads at a store may take.
const LONGEST: Duration = Duration::from_secs(6);

/// Signals that end a process and may come from outside.
const ENDING: [i32; 10] =
    [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGABRT, SIGALRM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU];

/// Makes SIGINT, SIGTERM and other ending signals remove temporary files and exit with 130. Signals that the parent
/// process chose to ignore stay ignored. A file size limit and a shrinking mapped file become ordinary errors.
pub(crate) fn install() -> io::Result<()> {
    fec_base::program::sigbus::install()?;
    // SIGXFSZ must not end the process: the write over the limit fails, and its error is reported.
    signal_hook::flag::register(SIGXFSZ, Arc::default())?;
    let wanted: Vec<i32> = ENDING.into_iter().filter(|s| !is_ignored(*s)).collect();
    on_abort()?;
    let mut signals = signal_hook::iterator::Signals::new(wanted)?;
    std::thread::Builder::new().name("signals".into()).stack_size(128 << 10).spawn(move || {
        for _ in signals.forever() {
            if !interrupt::take_note() {
                remove_all(|| {
                    say_interrupted();
                    signal_hook::low_level::exit(130)
                });
            }
            if let Some(last_word) = interrupt::last_word() {
                let ending = std::thread::Builder::new().name("ending".into()).stack_size(128 << 10);
                // If the thread cannot start, a second signal ends the process.
                let _ = ending.spawn(move || end_soon(last_word));
            }
        }
    })?;
    Ok(())
}

/// Removes temporary files when the process aborts itself for lack of memory, and exits with the code of a system
/// error. Rust has printed the reason.
#[allow(unsafe_code)]
fn on_abort() -> io::Result<()> {
    /// `asm-generic/siginfo.h`: sent by a thread of this process.
    const SI_TKILL: i32 = -6;
    let at_abort = |info: &libc::siginfo_t| {
        // Signals from outside are left to the thread that watches.
        if info.si_code == SI_TKILL && ABORTS.swap(true, Ordering::SeqCst) {
            // Another thread is removing files, and ends the process.
            std::thread::sleep(Duration::from_secs(2));
        } else if info.si_code == SI_TKILL {
            let said: &[u8] = match remove_soon() {
                true => b"fec: it cannot go on: nothing partial was left\n",
                false => b"fec: it cannot go on: temporary files may be left\n",
            };
            let _ = rustix::io::write(rustix::stdio::stderr(), said);
            signal_hook::low_level::exit(i32::from(Exit::Io.code()));
        }
    };
    // SAFETY: if the signal comes from `abort` on a thread of this process, the handler runs as if called there. That
    // thread allocates nothing and holds no lock of this program but that of the list, which is tried for a second and
    // not waited for. For a signal from outside the handler reads two fields and returns.
    unsafe { signal_hook_registry::register_sigaction(SIGABRT, at_abort) }?;
    Ok(())
}

/// Removes all temporary files. False: within a second the list of them did not become free. The calling thread may
/// hold the list itself; any other thread holds it only briefly.
fn remove_soon() -> bool {
    for _ in 0..100 {
        if try_remove_all() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

/// True if the process is aborting.
static ABORTS: AtomicBool = AtomicBool::new(false);

/// The list by which another run goes on with what this one has begun.
static LIST: OnceLock<PathBuf> = OnceLock::new();

/// Notes the path of the list by which another run goes on with what this one has begun, if it is there at the end.
pub(crate) fn goes_on_by(list: PathBuf) {
    let _ = LIST.set(list);
}

/// Prints the reason for the end. On a terminal the cursor stands behind `^C`, or in the bar. The lock of standard
/// error is not used: its holder may be waiting for a reader.
fn say_interrupted() {
    let start = if io::stderr().is_terminal() { "\n" } else { "" };
    let is_begun = || LIST.get().is_some_and(|list| list.symlink_metadata().is_ok());
    let what = match stdout_took_data() {
        true => "standard output got only a part",
        false if is_begun() => "some of it is done; the same command goes on",
        false => "nothing partial was left",
    };
    let line = format!("{start}fec: interrupted: {what}\n");
    let _ = rustix::io::write(rustix::stdio::stderr(), line.as_bytes());
}

/// Ends the process after [`MOMENT`], or later if unfinished uploads would be left at a store.
fn end_soon(last_word: &dyn Fn()) {
    std::thread::sleep(MOMENT);
    let end = Instant::now() + LONGEST;
    while Unfinished::is_any() && Instant::now() < end {
        std::thread::sleep(MOMENT / 20);
    }
    if interrupt::may_speak() {
        last_word();
    } else {
        // Another thread is printing the last word.
        std::thread::sleep(MOMENT / 5);
    }
    remove_all(|| signal_hook::low_level::exit(130));
}

/// Makes a panic in any thread, which is a bug, print its report, remove temporary files and exit with 101. The process
/// does not unwind, so builds for boards leave unwinding out. Exceptions: guarded code unwinds silently, and a thread
/// that begins without memory for its signal stack, where the standard library panics, is a system error.
pub(crate) fn on_panics() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if is_guarded() {
            return;
        }
        tell(panic);
        remove_soon();
        let is_of_memory = panic.location().is_some_and(|at| at.file().ends_with("stack_overflow.rs"));
        signal_hook::low_level::exit(if is_of_memory { Exit::Io.code().into() } else { 101 });
    }));
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
    let _ = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), ROOM - 1);
}

//! Signals and panics: nothing partial stays behind, whatever ends the process.

use crate::failure::Exit;
use crate::target::stdout_took_data;
use fecfile::guarded::is_guarded;
use fecfile::interrupt::{self, Unfinished};
use fecfile::io::sigbus::is_ignored;
use fecfile::io::temporary::{remove_all, try_remove_all};
use rustix::process::{Resource, getrlimit, setrlimit};
use signal_hook::consts::{
    SIGABRT, SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU, SIGXFSZ,
};
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a run has to end by itself when it was interrupted.
const MOMENT: Duration = Duration::from_millis(400);
/// How long it may take to undo at a store what was not finished.
const LONGEST: Duration = Duration::from_secs(6);

/// Signals that end a process, and may come from outside.
const ENDING: [i32; 10] =
    [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGABRT, SIGALRM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU];

/// From now on SIGINT, SIGTERM and other signals that end a process remove what is temporary and end it with 130; but
/// not those that whoever started the process chose to ignore. A file size limit is an error like any other, and a mapped
/// file that shrinks too.
pub(crate) fn install() -> io::Result<()> {
    fecfile::io::sigbus::install()?;
    // Not the end: the write that went over the limit fails, and its error is reported.
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
                // Without it the second signal ends the process.
                let _ = ending.spawn(move || end_soon(last_word));
            }
        }
    })?;
    Ok(())
}

/// When the process aborts by itself, since there is no memory to be had, what is temporary is removed, and it ends with the exit
/// code of an error of the system. Rust has said why.
#[allow(unsafe_code)]
fn on_abort() -> io::Result<()> {
    /// `asm-generic/siginfo.h`: sent by a thread of this process.
    const SI_TKILL: i32 = -6;
    let at_abort = |info: &libc::siginfo_t| {
        // What comes from outside is left to the thread that watches.
        if info.si_code == SI_TKILL && !ABORTS.swap(true, Ordering::SeqCst) {
            try_remove_all();
            let _ = rustix::io::write(
                rustix::stdio::stderr(),
                b"fec: it cannot go on: nothing partial was left\n",
            );
            signal_hook::low_level::exit(i32::from(Exit::Io.code()));
        }
    };
    // SAFETY: where the signal comes from `abort` on a thread of this process, the handler runs as if called there: no allocation
    // and no lock of this program is under way on that thread but that of the list, which is tried and not waited for. For a
    // signal from outside it reads two fields and returns.
    unsafe { signal_hook_registry::register_sigaction(SIGABRT, at_abort) }?;
    Ok(())
}

/// The process is aborting.
static ABORTS: AtomicBool = AtomicBool::new(false);

/// Says why it is over. On a terminal the cursor stands behind `^C`, or in the bar. The lock of standard error may be held by who
/// is waiting for its reader, so that it is not used.
fn say_interrupted() {
    let start = if io::stderr().is_terminal() { "\n" } else { "" };
    let what =
        if stdout_took_data() { "standard output got only a part" } else { "nothing partial was left" };
    let line = format!("{start}fec: interrupted: {what}\n");
    let _ = rustix::io::write(rustix::stdio::stderr(), line.as_bytes());
}

/// Ends the process when it has had its moment, and longer only for what would be left over elsewhere.
fn end_soon(last_word: &dyn Fn()) {
    std::thread::sleep(MOMENT);
    let end = Instant::now() + LONGEST;
    while Unfinished::is_any() && Instant::now() < end {
        std::thread::sleep(MOMENT / 20);
    }
    if interrupt::may_speak() {
        last_word();
    } else {
        // Somebody else is just saying it.
        std::thread::sleep(MOMENT / 5);
    }
    remove_all(|| signal_hook::low_level::exit(130));
}

/// From now on a panic in any thread, which is a fault of the program, is reported as always, removes what is temporary
/// and ends the process with 101. So nothing unwinds, and builds for boards leave that out; but for what is guarded, which
/// unwinds in silence.
pub(crate) fn on_panics() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if is_guarded() {
            return;
        }
        tell(panic);
        // This thread may hold the list itself; another one does so for a moment only.
        for _ in 0..100 {
            if try_remove_all() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        signal_hook::low_level::exit(101);
    }));
}

/// Allows as many open files as the system does: every shard file of a folder is open at the same time.
///
/// Also makes room for them in the table of this process while it has one thread. When several share the table, Linux waits
/// for a grace period of RCU each time it grows (`expand_fdtable`), 7 to 14 ms at the 256th and the 512th file.
pub(crate) fn allow_many_files() {
    const ROOM: i32 = 1 << 10;
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::debug!("the limit of open files stays: {error}");
    }
    // The copy is closed at once; the room stays. Where fewer are allowed, or none is to be had, the table grows as needed.
    let _ = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), ROOM - 1);
}

//! Signals and panics: no partial output stays behind, whatever ends the process.

use crate::say::failure::Exit;
use crate::system::border::{self, exit, write_error};
use crate::system::closed::stdout_took_data;
use fec_base::io::temporary::{remove_all, try_remove_all};
use fec_base::program::guarded::is_guarded;
use fec_base::program::interrupt::{self, Unfinished};
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Time that an interrupted run has to end by itself.
const MOMENT: Duration = Duration::from_millis(400);
/// Time that the clean-up of unfinished uploads at a store may take.
const LONGEST: Duration = Duration::from_secs(6);

/// Makes SIGINT, SIGTERM and other ending signals, and Ctrl-C, remove temporary files and exit with 130.
///
/// # Errors
/// Those of the system.
pub(crate) fn install() -> io::Result<()> {
    border::watch(end, remove_soon, Exit::Io.code().into())
}

/// Ends the process for a signal: at once, or soon if an operation has a last word.
fn end() {
    if !interrupt::take_note() {
        remove_all(|| {
            say_interrupted();
            exit(130)
        });
    }
    if let Some(last_word) = interrupt::last_word() {
        let ending = std::thread::Builder::new().name("ending".into()).stack_size(128 << 10);
        // If the thread cannot start, a second signal ends the process.
        let _ = ending.spawn(move || end_soon(last_word));
    }
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

/// The list by which another run goes on with what this one has begun.
static LIST: OnceLock<PathBuf> = OnceLock::new();

/// Notes the path of the list by which another run goes on with what this one has begun, if it is there at the end.
pub(crate) fn goes_on_by(list: PathBuf) {
    let _ = LIST.set(list);
}

/// Prints the reason for the end. On a terminal the cursor stands behind `^C`, or in the bar.
fn say_interrupted() {
    let start = if io::stderr().is_terminal() { "\n" } else { "" };
    let is_begun = || LIST.get().is_some_and(|list| list.symlink_metadata().is_ok());
    let what = match stdout_took_data() {
        true => "standard output got only a part",
        false if is_begun() => "some of it is done; the same command goes on",
        false => "nothing partial was left",
    };
    let line = format!("{start}fec: interrupted: {what}\n");
    write_error(line.as_bytes());
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
    remove_all(|| exit(130));
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
        exit(if is_of_memory { Exit::Io.code().into() } else { 101 });
    }));
}

//! A long run that is interrupted ends as it should: it tells what it has, or sends its end. The program that runs it handles
//! signals, and asks here what the first one means.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

static DEFERRED: AtomicBool = AtomicBool::new(false);
static INTERRUPTED: AtomicBool = AtomicBool::new(false);
static UNFINISHED: AtomicUsize = AtomicUsize::new(0);
static LAST_WORD: OnceLock<Box<dyn Fn() + Send + Sync>> = OnceLock::new();
static IS_SPOKEN: AtomicBool = AtomicBool::new(false);

/// From now on the first signal only ends the run early ([`interrupted`]), so that it can do what belongs to its end; the
/// second one ends the process as always.
pub fn defer() {
    DEFERRED.store(true, Ordering::Relaxed);
}

/// As [`defer`], but the run has a moment only for what belongs to its end: it may be waiting for a pipe. When it has not ended
/// by then, the process ends, and says this.
pub fn defer_briefly(last_word: impl Fn() + Send + Sync + 'static) {
    let _ = LAST_WORD.set(Box::new(last_word));
    defer();
}

/// What is said when the moment is over; `None` if the run has as long as it takes.
pub fn last_word() -> Option<&'static (dyn Fn() + Send + Sync)> {
    LAST_WORD.get().map(Box::as_ref)
}

/// Whether nobody has said yet that the run was interrupted; from now on somebody has.
pub fn may_speak() -> bool {
    !IS_SPOKEN.swap(true, Ordering::Relaxed)
}

/// Something that has to be undone before the process ends, although there is but a moment for it.
#[derive(Debug)]
pub struct Unfinished(());

impl Unfinished {
    /// It begins.
    #[allow(clippy::new_without_default, reason = "it counts")]
    pub fn new() -> Unfinished {
        UNFINISHED.fetch_add(1, Ordering::SeqCst);
        Unfinished(())
    }

    /// Whether there is any.
    pub fn is_any() -> bool {
        UNFINISHED.load(Ordering::SeqCst) > 0
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        UNFINISHED.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Whether a signal asked for the end.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// A signal came. True if it is the first one after [`defer`]: the run is told, and the process goes on. False if the
/// process is to end.
pub fn take_note() -> bool {
    DEFERRED.load(Ordering::Relaxed) && !INTERRUPTED.swap(true, Ordering::Relaxed)
}

//! Lets a long run that is interrupted finish properly: it reports its result, or sends the end of its stream. The
//! program around it handles signals, and asks here how to treat the first one.

use crate::context::Cancel;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{LazyLock, OnceLock};

static DEFERRED: AtomicBool = AtomicBool::new(false);
/// Ended by the first signal after [`defer`].
static CANCEL: LazyLock<Cancel> = LazyLock::new(Cancel::default);
static UNFINISHED: AtomicUsize = AtomicUsize::new(0);
static LAST_WORD: OnceLock<Box<dyn Fn() + Send + Sync>> = OnceLock::new();
static IS_SPOKEN: AtomicBool = AtomicBool::new(false);

/// Makes the first signal end the run early ([`interrupted`]), so that the run can finish properly. The second signal
/// ends the process as always.
pub fn defer() {
    DEFERRED.store(true, Ordering::Relaxed);
}

/// As [`defer`], but with a short time limit, since the run may be waiting for a pipe. If the run has not ended by
/// then, the process says `last_word` and ends.
pub fn defer_briefly(last_word: impl Fn() + Send + Sync + 'static) {
    let _ = LAST_WORD.set(Box::new(last_word));
    defer();
}

/// The words for the end of the time limit; `None` if the run has no limit.
pub fn last_word() -> Option<&'static (dyn Fn() + Send + Sync)> {
    LAST_WORD.get().map(Box::as_ref)
}

/// True for the first caller only, who may report the interruption.
pub fn may_speak() -> bool {
    !IS_SPOKEN.swap(true, Ordering::Relaxed)
}

/// Work that has to be undone before the process ends, even within the time limit.
#[derive(Debug)]
pub struct Unfinished(());

impl Unfinished {
    /// Counts one more piece of unfinished work, until the value is dropped.
    #[allow(clippy::new_without_default, reason = "it counts")]
    pub fn new() -> Unfinished {
        UNFINISHED.fetch_add(1, Ordering::SeqCst);
        Unfinished(())
    }

    /// Tells whether any such work is unfinished.
    pub fn is_any() -> bool {
        UNFINISHED.load(Ordering::SeqCst) > 0
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        UNFINISHED.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Ends operations that get it in their context, by the first signal after [`defer`].
pub fn cancel() -> &'static Cancel {
    &CANCEL
}

/// Tells whether a signal asked for an early end.
pub fn interrupted() -> bool {
    CANCEL.is_cancelled()
}

/// Notes a signal. True for the first one after [`defer`]: the run is told, and the process goes on. False if the
/// process is to end. A single thread notes signals.
pub fn take_note() -> bool {
    let is_first = DEFERRED.load(Ordering::Relaxed) && !interrupted();
    if is_first {
        CANCEL.cancel();
    }
    is_first
}

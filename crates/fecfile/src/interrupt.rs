//! A long run that is interrupted ends as it should: it tells what it has, or sends its end. The program that runs it handles
//! signals, and asks here what the first one means.

use std::sync::atomic::{AtomicBool, Ordering};

static DEFERRED: AtomicBool = AtomicBool::new(false);
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// From now on the first signal only ends the run early ([`interrupted`]), so that it can do what belongs to its end; the
/// second one ends the process as always.
pub fn defer() {
    DEFERRED.store(true, Ordering::Relaxed);
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

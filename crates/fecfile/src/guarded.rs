//! Threads, and pieces of work, in which a panic is no fault of this program: code of others works there on what machines and
//! people far away have sent. What it says goes to nobody, and the process goes on. The program that has a hook for panics asks
//! here whether one is to end it.

use std::cell::Cell;
#[cfg(feature = "stores")]
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic of this thread is caught just now, and what becomes of it is cared for.
pub fn is_guarded() -> bool {
    // A thread that is just ending guards nothing.
    GUARDED.try_with(Cell::get).unwrap_or(false)
}

/// From now on panics of this thread are cared for by whoever waits for it.
#[cfg(feature = "stores")]
pub(crate) fn guard_thread() {
    GUARDED.set(true);
}

/// Does something; `None` if it panicked. What it changed until then may be half done: nobody may use it any more.
#[cfg(feature = "stores")]
pub(crate) fn catch<T>(work: impl FnOnce() -> T) -> Option<T> {
    let before = GUARDED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(before);
    done.ok()
}

#[cfg(all(test, feature = "stores"))]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_guarded_is() {
        assert_eq!(catch(|| catch(is_guarded)), Some(Some(true)));
        assert_eq!(catch(|| -> u32 { panic!("as expected") }), None);
        assert!(!is_guarded());
    }
}

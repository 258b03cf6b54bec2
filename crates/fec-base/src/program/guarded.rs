//! Runs third-party code on remote input. Its panics are caught in silence and do not end the process. A program with a
//! panic hook of its own asks here whether a panic is to end it.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Tells whether panics of this thread are caught just now.
pub fn is_guarded() -> bool {
    // The thread-local is gone while a thread ends; such a thread guards nothing.
    GUARDED.try_with(Cell::get).unwrap_or(false)
}

/// Marks this thread as guarded: whoever joins it deals with its panics.
pub fn guard_thread() {
    GUARDED.set(true);
}

/// Runs `work`; `None` if it panicked. A panic may leave values half changed, so callers never use them again.
pub fn catch<T>(work: impl FnOnce() -> T) -> Option<T> {
    let before = GUARDED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(before);
    done.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_guarded_is() {
        assert_eq!(catch(|| catch(is_guarded)), Some(Some(true)));
        assert_eq!(catch(|| -> u32 { panic!("as expected") }), None);
        assert!(!is_guarded());
    }
}

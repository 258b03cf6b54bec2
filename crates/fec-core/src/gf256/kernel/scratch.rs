//! Memory for the blocks of a program, kept by each thread.
//!
//! An allocation for each call would show on short rows. Each thread keeps one buffer, as large as the largest that it
//! ever needed: a megabyte at most.

use std::cell::RefCell;

use super::aligned::AlignedBytes;
use super::program::Column;

thread_local! {
    static SCRATCH: RefCell<AlignedBytes> = RefCell::new(AlignedBytes::zeroed(0));
}

/// Runs `body` with `columns` columns of a block, whose content is arbitrary.
///
/// # Panics
///
/// When `body` calls this again: the columns are lent.
pub(super) fn with_columns<T>(columns: usize, body: impl FnOnce(&mut [Column]) -> T) -> T {
    let len = columns * size_of::<Column>();
    SCRATCH.with_borrow_mut(|bytes| {
        if bytes.len() < len {
            *bytes = AlignedBytes::zeroed(len);
        }
        body(bytes[..len].as_chunks_mut().0.as_chunks_mut().0)
    })
}

//! Executors lend threads to the codec, which has none of its own.
//!
//! ```
//! use fec_core::executor::Executor;
//! use fec_core::set::Run;
//!
//! /// So many scoped threads for each call.
//! struct Scoped(usize);
//!
//! impl Executor for Scoped {
//!     fn width(&self) -> usize {
//!         self.0
//!     }
//!
//!     fn run(&self, count: usize, job: &(dyn Fn(usize) + Sync)) {
//!         std::thread::scope(|scope| {
//!             for first in 0..self.0.min(count) {
//!                 scope.spawn(move || (first..count).step_by(self.0).for_each(job));
//!             }
//!         });
//!     }
//! }
//!
//! // Encoding, checking and decoding take a `Run`.
//! let on_two_threads = Run { executor: &Scoped(2), ..Run::default() };
//! ```

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Runs independent jobs, in any order, on the threads of the implementor.
///
/// A job that panics ends the whole call: `run` passes the panic on, and does not return as if the job were done.
pub trait Executor: Sync {
    /// Number of jobs that run at the same time, at least 1.
    fn width(&self) -> usize;
    /// Calls `job(0)` … `job(count - 1)` and returns when all are done.
    fn run(&self, count: usize, job: &(dyn Fn(usize) + Sync));
}

/// Runs everything on the calling thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inline;

impl Executor for Inline {
    fn width(&self) -> usize {
        1
    }

    fn run(&self, count: usize, job: &(dyn Fn(usize) + Sync)) {
        (0..count).for_each(job);
    }
}

/// Locks a mutex that jobs share, poisoned or not.
///
/// A poisoned mutex says that a job panicked while it held the lock. That is no news here: such a panic ends the whole
/// call, and nobody uses the content of the mutex as a result.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The content of a mutex that nobody else holds any more; poison tells nothing, as with [`lock`].
pub fn into_value<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `job` once for each item, and hands the item over.
pub(crate) fn for_each<T: Send>(executor: &dyn Executor, items: Vec<T>, job: impl Fn(T) + Sync) {
    if executor.width() == 1 || items.len() == 1 {
        return items.into_iter().for_each(job);
    }
    let slots: Vec<Mutex<Option<T>>> = items.into_iter().map(|item| Mutex::new(Some(item))).collect();
    executor.run(slots.len(), &|i| {
        let item = lock(&slots[i]).take();
        item.into_iter().for_each(&job);
    });
}

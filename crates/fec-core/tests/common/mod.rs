//! Helpers for several kinds of tests.

use fec_core::executor::Executor;

/// Scoped threads, as a caller lends them; one after the other where there are none.
pub(crate) struct Lent(pub(crate) usize);

impl Executor for Lent {
    fn width(&self) -> usize {
        self.0
    }

    fn run(&self, count: usize, job: &(dyn Fn(usize) + Sync)) {
        if cfg!(target_family = "wasm") {
            return (0..count).for_each(job);
        }
        std::thread::scope(|scope| {
            for first in 0..self.0.min(count) {
                scope.spawn(move || (first..count).step_by(self.0).for_each(job));
            }
        });
    }
}

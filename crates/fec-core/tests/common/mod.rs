//! Helpers for several kinds of tests.

use fec_core::executor::Executor;

/// Scoped threads, as a caller lends them.
pub(crate) struct Lent(pub(crate) usize);

impl Executor for Lent {
    fn width(&self) -> usize {
        self.0
    }

    fn run(&self, count: usize, job: &(dyn Fn(usize) + Sync)) {
        std::thread::scope(|scope| {
            for first in 0..self.0.min(count) {
                scope.spawn(move || (first..count).step_by(self.0).for_each(job));
            }
        });
    }
}

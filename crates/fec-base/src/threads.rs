//! Threads that run jobs of the codec.

use crate::error::{Action, Error, Place};
use crate::program::stages::{self, Stage};
use fec_core::executor::{Executor, lock};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::Scope;

/// Scoped threads for the jobs of one call.
#[derive(Clone, Copy, Debug)]
pub struct Threads(pub usize);

impl Executor for Threads {
    fn width(&self) -> usize {
        self.0
    }

    fn run(&self, count: usize, job: &(dyn Fn(usize) + Sync)) {
        let next = AtomicUsize::new(0);
        let stage = stages::current();
        let work = || {
            loop {
                let i = next.fetch_add(1, Ordering::Relaxed);
                if i >= count {
                    break;
                }
                job(i);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.0.min(count) {
                let thread = std::thread::Builder::new().spawn_scoped(scope, || {
                    let _thread = stages::thread(stage);
                    work();
                });
                // If the system has no more threads, fewer do the work.
                if thread.is_err() {
                    break;
                }
            }
            work();
            // The scope waits for the others.
            stages::resume(Stage::Wait);
        });
        stages::resume(stage);
    }
}

/// Runs `work` on a thread of the scope, or on the calling thread if the system gives none.
pub fn spawn_or_do<'scope>(scope: &'scope Scope<'scope, '_>, work: impl FnOnce() + Send + 'scope) {
    let work = Arc::new(Mutex::new(Some(work)));
    let on_thread = work.clone();
    if std::thread::Builder::new().spawn_scoped(scope, move || do_once(&on_thread)).is_err() {
        do_once(&work);
    }
}

fn do_once(work: &Mutex<Option<impl FnOnce()>>) {
    let work = lock(work).take();
    if let Some(work) = work {
        work();
    }
}

/// The error when the system gives no thread for work that needs its own.
pub fn no_thread(cause: std::io::Error) -> Error {
    Error::io(Action::StartThread, Place::Nowhere, cause)
}

/// Splits `threads` when each set in flight takes `set_bytes` of at most `budget`: workers that take whole sets, and
/// the threads that each worker may use inside a set.
pub fn share(threads: usize, sets: u64, set_bytes: u64, budget: u64) -> (usize, Threads) {
    let most = (budget / set_bytes.max(1)).min(sets).max(1);
    let workers = (threads as u64).min(most) as usize;
    (workers, Threads((threads / workers).max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_runs_once_whatever_the_width() {
        for width in [1, 2, 4, 9] {
            let done: Vec<AtomicUsize> = (0..7).map(|_| AtomicUsize::new(0)).collect();
            Threads(width).run(done.len(), &|i| {
                done[i].fetch_add(1, Ordering::Relaxed);
            });
            assert!(done.iter().all(|d| d.load(Ordering::Relaxed) == 1));
        }
    }

    #[test]
    fn sets_in_flight_are_capped_by_bytes() {
        assert_eq!(share(8, 100, 16 << 20, 96 << 20).0, 6);
        assert_eq!(share(2, 100, 16 << 20, 96 << 20).0, 2);
        assert_eq!(share(8, 1, 16 << 20, 96 << 20).0, 1);
        assert_eq!(share(8, 1, 16 << 20, 96 << 20).1.0, 8);
        assert_eq!(share(4, 9, 200 << 20, 96 << 20).0, 1);
    }
}

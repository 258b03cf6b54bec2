//! The context of a call: the threads it may use, and the observer of its phases.

use crate::executor::{Executor, Inline};
use crate::observe::{Observer, Unobserved};

/// The way that a call on a set runs. The default is the calling thread, unobserved.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// The lender of threads. No choice changes a byte of any result.
    pub executor: &'a dyn Executor,
    /// The observer, which is told when phases of the work begin and end.
    pub observer: &'a dyn Observer,
}

impl Default for Run<'_> {
    fn default() -> Self {
        Run { executor: &Inline, observer: &Unobserved }
    }
}

impl std::fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").field("width", &self.executor.width()).finish_non_exhaustive()
    }
}

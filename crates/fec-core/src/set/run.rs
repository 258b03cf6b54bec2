//! The context of a call: whose threads it may use, and who is told of its phases.

use crate::executor::{Executor, Inline};
use crate::observe::{Observer, Unobserved};

/// How a call on a set runs. The default is on the calling thread, unobserved.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// Lends threads. No choice changes a byte of any result.
    pub executor: &'a dyn Executor,
    /// Is told when phases of the work begin and end.
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

//! Keeps secrets out of core dumps.

use rustix::process::{Resource, Rlimit, setrlimit};

/// Forbids core dumps of this process. Has to be called before anything secret is read.
pub(crate) fn no_core_dumps() {
    // The limit is 1, not 0: with a core_pattern pipe, Linux ignores every limit but 1 (core(5)). No file of one byte
    // is written either.
    let limit = Rlimit { current: Some(1), maximum: Some(1) };
    if let Err(e) = setrlimit(Resource::Core, limit) {
        tracing::warn!("core dumps are not switched off: {e}");
    }
}

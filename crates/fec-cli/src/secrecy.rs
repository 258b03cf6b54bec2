//! What is secret stays out of core dumps.

use rustix::process::{Resource, Rlimit, setrlimit};

/// From now on the system writes no core dump of this process. To be called before anything secret is read.
pub(crate) fn no_core_dumps() {
    // Not 0: Linux hands dumps to programs regardless of this limit, but for 1 (core(5)). No file of one byte is written either.
    let limit = Rlimit { current: Some(1), maximum: Some(1) };
    if let Err(e) = setrlimit(Resource::Core, limit) {
        tracing::warn!("core dumps are not switched off: {e}");
    }
}

//! The system: mapped and positioned reads, outputs that appear whole or not at all, signals.

use rustix::process::{Resource, getrlimit, setrlimit};

pub(crate) mod cleanup;
pub(crate) mod output;
pub(crate) mod processor;
pub(crate) mod salvage;
mod sigbus;
pub(crate) mod source;
pub(crate) mod threads;
pub(crate) mod ticks;

/// Allows as many open files as the system does: every shard file of a folder is open at the same time.
pub(crate) fn allow_many_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::debug!("the limit of open files stays: {error}");
    }
}

//! The mirrors of a repair, and what came of them.

mod mirror;

#[cfg(unix)]
pub(crate) use mirror::Way;
pub use mirror::{LocalMirror, Mirror, NoAnswer};

use fec_core::executor::lock;
use std::fmt;
use std::path::PathBuf;
use std::sync::Mutex;

/// Most mirrors of a repair. Memory: 8 MiB for each, or a block.
pub const MOST_MIRRORS: usize = 32;

/// The mirrors of a repair, and what came of them. The latter is there after a repair that failed too.
pub struct Mirrors<'a> {
    pub(crate) list: Vec<&'a dyn Mirror>,
    /// The folder for blocks that are fetched and not yet written, if it is not that of the sidecar.
    pub(crate) spool: Option<PathBuf>,
    fetched: Mutex<Fetched>,
}

impl fmt::Debug for Mirrors<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.list.iter().map(|mirror| mirror.name())).finish()
    }
}

impl<'a> Mirrors<'a> {
    /// Mirrors in the order in which they are asked. Fetched blocks are kept in a file beside the sidecar until the
    /// repair is done, or in the folder `spool`, so that an interrupted repair goes on.
    ///
    /// # Panics
    /// With more than [`MOST_MIRRORS`].
    pub fn new(list: Vec<&'a dyn Mirror>, spool: Option<PathBuf>) -> Mirrors<'a> {
        assert!(list.len() <= MOST_MIRRORS, "too many mirrors");
        Mirrors { list, spool, fetched: Mutex::default() }
    }

    /// Notes what was fetched.
    pub(crate) fn tell(&self, fetched: Fetched) {
        *lock(&self.fetched) = fetched;
    }

    /// The outcome of the last repair.
    pub fn fetched(&self) -> Fetched {
        lock(&self.fetched).clone()
    }
}

/// The bytes that a repair fetched, and the part of each mirror.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fetched {
    /// Bytes of blocks that the recovery data cannot mend. Fetching is left out where this is zero, and by a dry run.
    pub wanted: u64,
    /// Bytes of these that an interrupted repair had fetched.
    pub kept: u64,
    /// Bytes of blocks that no mirror had.
    pub lacking: u64,
    /// The part of each mirror, in the order of their naming.
    pub mirrors: Vec<OfMirror>,
}

/// The part of a mirror.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfMirror {
    /// The name of the mirror.
    pub name: String,
    /// Requests that were sent.
    pub requests: u64,
    /// Bytes that were received.
    pub received: u64,
    /// Bytes of blocks that were proved and taken.
    pub taken: u64,
    /// Answers without any right block.
    pub wrong: u64,
    /// Why the mirror was not asked any further.
    pub left: Option<String>,
}

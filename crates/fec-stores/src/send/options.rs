//! Options of sending a payload to stores.

use fecfile::payload::Options;
use std::path::PathBuf;

/// Payload bytes of a segment by default.
pub const SEGMENT: u64 = 1 << 30;

/// Options of sending a payload.
#[derive(Clone, Debug)]
pub struct SendOptions {
    /// Options of encoding a segment.
    pub encode: Options,
    /// Payload bytes of each segment but the last.
    pub segment_len: u64,
    /// Folder for the waiting shards of two segments; `None`: the system's folder for temporary files.
    pub spool: Option<PathBuf>,
    /// Number of concurrent uploads.
    pub uploads: usize,
    /// True if a domain may hold more shards than may be lost.
    pub crowded: bool,
    /// True if places that are slow are given up once enough has arrived: the shards that are [`needed`], without those
    /// of any one domain enough to restore, and the manifest in two domains. The others get half the time that these
    /// took, and at least a second.
    pub enough: bool,
    /// Permissions of objects that are files, less those that the process's umask withholds. Objects are readable only
    /// for those who may read the payload ([`Policy::made_of`](fec_base::io::output::Policy::made_of)).
    pub permissions: u32,
}

/// Shards of each segment that must arrive before the root is given out: enough to restore, and half of those that may
/// be lost.
pub fn needed(options: &Options) -> u32 {
    (options.code.k() + options.code.m().div_ceil(2)) as u32
}

//! The permissions of restored entries.

use crate::{Proof, Sidecar};
use fec_core::format::sidecar::EntryKind;

/// Permissions of owner, group and others. Bits beyond them are never restored.
const ANY: u32 = 0o777;
/// Permissions of a file that its owner has no right to execute, which the root binds.
const NOT_RUN: u32 = 0o666;

impl Sidecar {
    /// The permissions that an entry is restored with: the recorded ones, limited by `umask` if nothing proves the
    /// record.
    pub(crate) fn permissions(&self, entry: usize, umask: u32) -> u32 {
        let recorded = u32::from(self.stats.entries[entry].mode) & ANY;
        let may_run = match &self.catalog.entries[entry].kind {
            EntryKind::File(file) => file.is_executable,
            _ => true,
        };
        match (self.proof, may_run) {
            (Proof::Metadata, _) => recorded,
            (_, true) => recorded & !umask,
            (_, false) => recorded & !umask & NOT_RUN,
        }
    }
}

/// The permissions that new files of this process do not get. Reading them from `/proc` disturbs no other thread. Where
/// the system does not tell them there, only the owner gets any.
pub(crate) fn umask() -> u32 {
    const OWNER_ALONE: u32 = 0o077;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let told = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    told.and_then(|told| u32::from_str_radix(told.trim(), 8).ok()).unwrap_or(OWNER_ALONE)
}

//! What is proved of a sidecar, and what a reader may conclude from it (docs/FORMAT.md, section 17.9).
//!
//! Times and permissions stand behind the catalog, where the root does not bind them. Whoever can write to the sidecar can make an edit
//! look like rot, or a private file public, under the same root. So a reader that was given a root asks what proves them.

use super::Sidecar;
use fec_core::format::sidecar::EntryKind;
use rustix::fs::Stat;

/// What the root or the signature that a sidecar was opened by proves of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// No root and no signature was given.
    Nothing,
    /// What the files are: the root, or a signature that binds it alone.
    Root,
    /// Times, permissions and the base too: a signature that names E, or what proves the container of a sealed sidecar.
    Metadata,
}

/// Permissions of owner, group and others. Those beyond them are never restored.
const ANY: u32 = 0o777;
/// Permissions of a file that its owner has no right to execute, which the root binds.
const NOT_RUN: u32 = 0o666;

impl Sidecar {
    /// Whether a file with other bytes than it had, and with the size and time that the sidecar records, may have been edited for all that
    /// is proved. Where nothing was given the record is believed.
    pub(super) fn may_be_edit(&self, stat: &Stat) -> bool {
        // Their types are others on other systems.
        #[allow(clippy::unnecessary_cast)]
        let changed = (stat.st_ctime as i64, stat.st_ctime_nsec as i64);
        match self.proof {
            Proof::Nothing => false,
            Proof::Root => true,
            // Rot does not change it, and whoever keeps a time of modification cannot keep this one.
            Proof::Metadata => changed >= self.changed,
        }
    }

    /// The permissions that an entry is restored with: those of its record, and where nothing proves it no more than `umask` allows.
    pub(super) fn permissions(&self, entry: usize, umask: u32) -> u32 {
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

/// The permissions that new files of this process do not get. They are asked for where no other thread notices it; where the system does
/// not tell them so, nobody but the owner gets any.
pub(super) fn umask() -> u32 {
    const OWNER_ALONE: u32 = 0o077;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let told = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    told.and_then(|told| u32::from_str_radix(told.trim(), 8).ok()).unwrap_or(OWNER_ALONE)
}

//! A protection as it is asked for, and as it is told.

use super::excluded::Excluded;
use crate::examine::Spare;
use crate::redundancy::Redundancy;
use fec_base::io::output::Policy;
use fec_core::digest::Digest;
use fec_core::format::sidecar::parts::Omitted;
use fec_core::format::sidecar::policy::Rules;
use fec_keys::age::Keys;
use fecfile::report::Written;
use fecfile::seal::Sealing;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files to protect, and the way to do it.
#[derive(Clone, Copy)]
pub struct Protect<'a> {
    /// Files and folders.
    pub paths: &'a [PathBuf],
    /// The path of the sidecar.
    pub output: &'a Path,
    /// The folder that names are relative to. `None` stands for the sidecar's folder if it holds all paths, or else for
    /// the deepest folder that does.
    pub base: Option<&'a Path>,
    /// Recovery bytes for each byte of the files. `None` stands for the default, or for the redundancy of the updated
    /// sidecar.
    pub redundancy: Option<Redundancy>,
    /// Patterns of what is left out (docs/FORMAT.md, section 17.3). The sidecar remembers them, and an update adds
    /// them to those of before.
    pub exclude: &'a [String],
    /// True if folders that are tagged as caches are left out.
    pub exclude_caches: bool,
    /// True if an update uses the given patterns alone.
    pub forget_excludes: bool,
    /// The policy, whose anchor and announcement do not count; no rules stand for no policy. `None` stands for no
    /// policy too, or for that of the updated sidecar.
    pub rules: Option<&'a Rules>,
    /// The owner's word on a prune, for an update.
    pub prune: Prune,
    /// A folder with files that have left or changed, as they were, under the paths that they had relative to the base.
    /// An update takes them out of the recovery data then, in place of counting them as lost there.
    pub retired: Option<&'a Path>,
    /// True if files only grow, for an update: of one that is longer, no more than the old end is read in front of what
    /// is new, and one that has other bytes in front of it is held.
    pub appends: bool,
    /// True if file systems that are mounted below are left out.
    pub one_file_system: bool,
    /// True if SHA-256 of each file is recorded too, which reads the files once more.
    pub sha256: bool,
    /// True if the time of change and the inode of each file are recorded, by a mark that tells later whether somebody
    /// wrote to the file and kept its time. The sidecars of two copies of the same files differ then. An update does as
    /// the sidecar was made.
    pub marks: bool,
    /// The conditions for making the sidecar.
    pub policy: Policy,
    /// The recipients of a sealed sidecar; `None` leaves it unsealed.
    pub sealing: Option<&'a Arc<Sealing>>,
    /// The keys that open the updated sidecar, if it is sealed.
    pub keys: Option<&'a Keys>,
    /// Values of E, from [`Protected::metadata`], that are known to belong to the root that the updated sidecar must
    /// have.
    pub known: &'a [Digest],
}

impl<'a> Protect<'a> {
    /// The usual way to protect `paths` by a sidecar at `output`: nothing is left out, no marks are recorded, and the
    /// sidecar is not sealed.
    pub fn new(paths: &'a [PathBuf], output: &'a Path) -> Protect<'a> {
        Protect {
            paths,
            output,
            base: None,
            redundancy: None,
            exclude: &[],
            exclude_caches: false,
            forget_excludes: false,
            rules: None,
            prune: Prune::Nothing,
            retired: None,
            appends: false,
            one_file_system: false,
            sha256: false,
            marks: false,
            policy: Policy::new(),
            sealing: None,
            keys: None,
            known: &[],
        }
    }
}

/// The owner's word on what stays by the policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prune {
    /// Nothing was pruned that was not announced.
    #[default]
    Nothing,
    /// Whatever is gone was pruned, and no number of files is too many.
    Done,
    /// A prune is about to begin: until the next update, all in the folder of the policy may go.
    Announced,
}

/// The protected files and their sidecar.
#[must_use = "files may be left out"]
#[derive(Clone, Debug)]
pub struct Protected {
    /// The root of the sidecar.
    pub root: Digest,
    /// E of the metadata, which binds times and permissions too; `None` for a sealed sidecar, whose root binds them.
    pub metadata: Option<Digest>,
    /// The folder that names are relative to.
    pub base: PathBuf,
    /// True if that is the folder of the sidecar, or the one around it if it is named `.fec`.
    pub is_beside: bool,
    /// Regular files.
    pub files: u64,
    /// Folders.
    pub folders: u64,
    /// Symbolic links, and further names of files.
    pub links: u64,
    /// Bytes of all files.
    pub files_len: u64,
    /// Those of them that take recovery data: neither zeros nor duplicates, as far as these were found.
    pub data_len: u64,
    /// Bytes of the recovery shards.
    pub recovery_len: u64,
    /// Bytes of the sidecar.
    pub sidecar_len: u64,
    /// The bytes that could be lost and mended.
    pub spare: Spare,
    /// Bytes of a block.
    pub block: u32,
    /// k and m of the group with the most positions.
    pub code: (usize, usize),
    /// Sets of that group.
    pub sets: u32,
    /// Devices, sockets and FIFOs that were left out.
    pub skipped: Vec<PathBuf>,
    /// Other sidecars in the folders, and their signatures and lists, that were left out.
    pub sidecars: Vec<PathBuf>,
    /// The patterns, and what they left out.
    pub excluded: Excluded,
    /// The policy.
    pub rules: Rules,
    /// Paths that are not protected although they were named.
    pub omitted: Vec<Omitted>,
    /// Paths that an update could not look at, and that stay protected as they were.
    pub kept: Vec<Omitted>,
}

impl Protected {
    /// The report with the root and length of the container, if the sidecar is sealed.
    pub(crate) fn sealed(self, container: Option<Written>) -> Protected {
        match container {
            None => self,
            Some(Written { root, output_bytes, .. }) => {
                Protected { root, metadata: None, sidecar_len: output_bytes, ..self }
            }
        }
    }
}

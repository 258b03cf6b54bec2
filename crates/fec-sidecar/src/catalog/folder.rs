//! The folder that a sidecar lies in. A folder `.fec` keeps the sidecars of the folder around it, and moves with it
//! (docs/FORMAT.md, section 17.3).

use fec_base::io::temporary::parent;
use rustix::process::geteuid;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The name of such a folder.
const NAME: &str = ".fec";

/// The way from such a folder to the one around it, as a sidecar records it.
pub(crate) const AROUND: &[u8] = b"..";

/// The folder around that of a sidecar, if that is named `.fec`, and nobody can write to it who cannot write around
/// it: else a sidecar there could get files written where its maker may not.
///
/// # Errors
/// Those of the system.
pub(crate) fn around(sidecar: &Path) -> io::Result<Option<PathBuf>> {
    let folder = fs::canonicalize(parent(sidecar))?;
    let Some(around) = folder.parent().filter(|_| folder.file_name().is_some_and(|name| name == NAME)) else {
        return Ok(None);
    };
    let is_as_closed = is_as_closed(&fs::symlink_metadata(&folder)?, &fs::symlink_metadata(around)?);
    Ok(is_as_closed.then(|| around.to_path_buf()))
}

/// Tells whether nobody can write to a folder who cannot write to the one around it. Everybody may write to one with
/// the sticky bit, and yet replace nobody's files there.
fn is_as_closed(folder: &Metadata, around: &Metadata) -> bool {
    let is_of_same = [around.uid(), geteuid().as_raw(), 0].contains(&folder.uid());
    let open = |meta: &Metadata, class: u32| meta.mode() & class != 0 && meta.mode() & 0o1000 == 0;
    let is_of_group = folder.gid() == around.gid() && open(around, 0o020) || open(around, 0o002);
    is_of_same
        && (folder.mode() & 0o020 == 0 || is_of_group)
        && (folder.mode() & 0o002 == 0 || open(around, 0o002))
}

/// A folder `.fec` that was made for a sidecar, and is removed again if none comes to lie in it.
pub(crate) struct Made(PathBuf);

impl Made {
    /// Makes the folder for a sidecar if it is missing and named `.fec`. Others are the user's to make.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn of(sidecar: &Path) -> io::Result<Option<Made>> {
        let folder = parent(sidecar);
        let is_missing = folder.file_name().is_some_and(|name| name == NAME) && !folder.try_exists()?;
        if is_missing {
            fs::create_dir(folder)?;
        }
        Ok(is_missing.then(|| Made(folder.to_path_buf())))
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        // A folder that holds anything stays.
        let _ = fs::remove_dir(&self.0);
    }
}

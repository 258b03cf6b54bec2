//! The path of a sidecar's signature: a file beside the sidecar, which belongs to it.

use std::path::{Path, PathBuf};

/// The file of the signature over the root of the sidecar at `sidecar`: `NAME.fecp.minisig` (docs/FORMAT.md, section
/// 19.1).
pub fn signature_path(sidecar: &Path) -> PathBuf {
    let mut path = sidecar.as_os_str().to_owned();
    path.push(".minisig");
    path.into()
}

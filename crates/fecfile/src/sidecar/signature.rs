//! Where the signature of a sidecar stands: in a file beside it, which belongs to it as it does itself.

use std::path::{Path, PathBuf};

/// The file of the signature over the root of the sidecar at `sidecar`: `NAME.fecp.minisig` (docs/FORMAT.md, section 19.1).
pub fn signature_path(sidecar: &Path) -> PathBuf {
    let mut path = sidecar.as_os_str().to_owned();
    path.push(".minisig");
    path.into()
}

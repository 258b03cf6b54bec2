//! Other sidecars among the files that a sidecar protects. They are left out: of two that protect each other, each
//! would be an edit to the other for ever.

use crate::Sidecar;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Tells whether a file is a sidecar with its usual name, or the signature or the list of a repair of such a one. The
/// bytes count too: anybody may name a file so.
pub(crate) fn is_of_sidecar(place: &Path) -> bool {
    let name = place.file_name().unwrap_or_default().as_bytes();
    let of = [&b".minisig"[..], b".repairing"].into_iter().find_map(|ending| name.strip_suffix(ending));
    let sidecar = of.unwrap_or(name);
    if !sidecar.ends_with(b".fecp") {
        return false;
    }
    let place = place.with_file_name(OsStr::from_bytes(sidecar));
    place.symlink_metadata().is_ok_and(|meta| meta.is_file())
        && (Sidecar::starts(&place).unwrap_or(false) || Sidecar::is_sealed(&place).unwrap_or(false))
}

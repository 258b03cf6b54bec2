//! Other sidecars among the files that a sidecar protects. They are left out: of two that protect each other, each
//! would be an edit to the other for ever.

use crate::catalog::stash;
use crate::kind;
use fec_base::io::own::open_regular;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Tells whether a file is a sidecar with its usual name, or the signature, the list of a repair or the stash of such a
/// one. The bytes count too: anybody may name a file so.
pub(crate) fn is_of_sidecar(place: &Path) -> bool {
    if is_stash(place) {
        return true;
    }
    let name = place.file_name().unwrap_or_default().as_bytes();
    let of = [&b".minisig"[..], b".repairing"].into_iter().find_map(|ending| name.strip_suffix(ending));
    let sidecar = of.unwrap_or(name);
    if !sidecar.ends_with(b".fecp") {
        return false;
    }
    let place = place.with_file_name(OsStr::from_bytes(sidecar));
    place.symlink_metadata().is_ok_and(|meta| meta.is_file())
        && (kind::starts(&place).unwrap_or(false) || kind::is_sealed(&place).unwrap_or(false))
}

/// Tells whether a file holds the blocks that a repair has fetched, by its name and its bytes.
pub(crate) fn is_stash(place: &Path) -> bool {
    place.extension().is_some_and(|ending| ending == "fetched")
        && place.symlink_metadata().is_ok_and(|meta| meta.is_file())
        && open_regular(place).is_ok_and(|file| file.is_some_and(|file| stash::is_one(&file)))
}

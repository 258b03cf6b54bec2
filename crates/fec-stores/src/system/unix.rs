//! The border on Unix.

use fec_base::io::output::OWNER_ALONE;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// Lets files that are made with these options be read by their owner alone.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(OWNER_ALONE)
}

/// The path of a folder in a spelling that any other of the same folder has too, as far as the system's rules tell.
pub(crate) fn spelling(path: PathBuf) -> PathBuf {
    path
}

/// A place as the user writes it, without the slashes at its end.
pub(crate) fn without_end(place: &str) -> &str {
    place.trim_end_matches('/')
}

/// The path that stands behind `file://`, which begins with a slash.
pub(crate) fn path_of_url(behind: &str) -> &str {
    match without_end(behind) {
        "" => "/",
        path => path,
    }
}

//! Parts that the reports of several commands share: the library's values as JSON.

use crate::run::inputs::few;
use fec_base::ranges;
use fec_core::digest::Digest;
use fecfile::Archive;
use fecfile::forms::Leftovers;
use serde::Serialize;

/// The bytes from `start` up to, but not including, `end`.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct ByteRange {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

pub(crate) fn byte_ranges(list: &[ranges::ByteRange]) -> Vec<ByteRange> {
    list.iter().map(|range| ByteRange { start: range.start, end: range.end }).collect()
}

/// A rejected object.
#[derive(Debug, Serialize)]
pub(crate) struct Rejected {
    place: String,
    cause: String,
}

pub(crate) fn rejected(leftovers: &Leftovers) -> Vec<Rejected> {
    let rejected = leftovers.rejected.iter();
    rejected.map(|(place, e)| Rejected { place: place.clone(), cause: e.to_string() }).collect()
}

/// The files of an encoding that was not asked for, as text to follow its root: `: a, b, c and 2 more`.
pub(crate) fn strays(archive: Option<&Archive>, root: &Digest) -> String {
    match archive.map(|archive| archive.files_of(root)).unwrap_or_default() {
        files if files.is_empty() => String::new(),
        files => format!(": {}", few(&files)),
    }
}

//! What the reports of several commands share: values of the library as JSON.

use fecfile::forms::Leftovers;
use fecfile::ranges;
use serde::Serialize;

/// Bytes `start` up to, and not including, `end`.
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

//! Bytes of files that were found in other places.

use std::collections::HashSet;
use std::ops::Range;

/// Bytes that belong at an address (position · block, plus the byte in the block), and stand in a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MovedSpan {
    pub(crate) at: u64,
    pub(crate) len: u64,
    /// The number of the source.
    pub(crate) source: u32,
    pub(crate) offset: u64,
}

impl MovedSpan {
    pub(crate) fn end(&self) -> u64 {
        self.at + self.len
    }
}

/// All bytes found in other places. No two spans overlap.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moved {
    spans: Vec<MovedSpan>,
    /// Paths, relative to the base, of the files that the spans stand in.
    pub(crate) sources: Vec<Box<[u8]>>,
}

impl Moved {
    pub(crate) fn new(mut spans: Vec<MovedSpan>, sources: Vec<Box<[u8]>>) -> Moved {
        spans.sort_unstable_by_key(|span| span.at);
        Moved { spans, sources }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// All spans, by address.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &MovedSpan> {
        self.spans.iter()
    }

    /// The paths of the sources that spans use.
    pub(crate) fn used_sources(&self) -> HashSet<&[u8]> {
        self.spans.iter().map(|span| &*self.sources[span.source as usize]).collect()
    }

    /// The spans in this range of addresses, cut to it.
    pub(crate) fn within(&self, range: Range<u64>) -> impl Iterator<Item = MovedSpan> {
        let first = self.spans.partition_point(|span| span.end() <= range.start);
        let spans = self.spans[first..].iter().take_while(move |span| span.at < range.end);
        spans.map(move |span| {
            let (start, end) = (span.at.max(range.start), span.end().min(range.end));
            MovedSpan { at: start, len: end - start, offset: span.offset + (start - span.at), ..*span }
        })
    }
}

//! Bytes of files that stand in other places, or are known to be zeros.

use std::collections::HashSet;
use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

/// Bytes that belong at an address (position · block, plus the byte in the block), and stand in a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MovedSpan {
    pub(crate) at: u64,
    pub(crate) len: u64,
    /// The number of the source, or [`ZEROS`] or [`STASH`].
    pub(crate) source: u32,
    pub(crate) offset: u64,
    /// True if the source is another protected file, which has these bytes too, or is [`ZEROS`] or [`STASH`].
    pub(crate) is_twin: bool,
}

/// The source of zeros.
pub(crate) const ZEROS: u32 = u32::MAX;
/// The stash as a source.
pub(crate) const STASH: u32 = u32::MAX - 1;

impl MovedSpan {
    pub(crate) fn end(&self) -> u64 {
        self.at + self.len
    }

    /// Adds the span to others, or makes the last one longer if it goes on there.
    pub(crate) fn add_to(self, spans: &mut Vec<MovedSpan>) {
        let goes_on = |last: &MovedSpan| {
            let is_next = self.source == ZEROS || last.offset + last.len == self.offset;
            last.end() == self.at && (last.source, last.is_twin) == (self.source, self.is_twin) && is_next
        };
        match spans.last_mut().filter(|last| goes_on(last)) {
            Some(last) => last.len += self.len,
            None => spans.push(self),
        }
    }
}

/// All bytes found in other places. No two spans overlap.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moved {
    spans: Vec<MovedSpan>,
    /// Paths, relative to the base, of the files that the spans stand in.
    pub(crate) sources: Vec<Box<[u8]>>,
    /// The file of fetched blocks, if any were fetched.
    pub(crate) stash: Option<Arc<File>>,
}

impl Moved {
    pub(crate) fn new(spans: Vec<MovedSpan>, sources: Vec<Box<[u8]>>) -> Moved {
        let mut moved = Moved { spans: Vec::new(), sources, stash: None };
        moved.extend(spans);
        moved
    }

    /// Adds spans. Bytes that stand in several of them are taken from one.
    pub(crate) fn extend(&mut self, spans: Vec<MovedSpan>) {
        self.spans.extend(spans);
        self.spans.sort_unstable_by_key(|span| span.at);
        let mut end = 0;
        self.spans.retain_mut(|span| {
            let cut = end.max(span.at) - span.at;
            let is_new = cut < span.len;
            if is_new {
                end = span.end();
                (span.at, span.offset, span.len) = (span.at + cut, span.offset + cut, span.len - cut);
            }
            is_new
        });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The spans that were searched for and found, by address.
    pub(crate) fn found(&self) -> impl Iterator<Item = &MovedSpan> {
        self.spans.iter().filter(|span| !span.is_twin)
    }

    /// The paths of the sources that such spans use.
    pub(crate) fn used_sources(&self) -> HashSet<&[u8]> {
        self.found().map(|span| &*self.sources[span.source as usize]).collect()
    }

    /// The number of bytes in this range of addresses that stand elsewhere.
    pub(crate) fn len_within(&self, range: Range<u64>) -> u64 {
        self.within(range).map(|span| span.len).sum()
    }

    /// Tells whether all bytes in this range of addresses stand elsewhere.
    pub(crate) fn covers(&self, range: Range<u64>) -> bool {
        self.len_within(range.clone()) == range.end - range.start
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

/// The folders above a path, the nearest first.
pub(crate) fn folders_of(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let slashes = path.iter().enumerate().rev().filter(|(_, byte)| **byte == b'/');
    slashes.map(|(at, _)| &path[..at])
}

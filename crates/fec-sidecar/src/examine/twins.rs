//! Finds lost bytes that no recovery shard is needed for: zeros, and bytes that other protected files have too.
//!
//! Digests tell both. Equal blocks at the same offset of their files have equal digests, and equal files equal BLAKE3.

use crate::Sidecar;
use crate::catalog::bits::Bits;
use crate::catalog::hashing::plain_digests;
use crate::catalog::moved::{Moved, MovedSpan, ZEROS};
use crate::catalog::positions::{Any, PositionReader, Positions, Span, anchored};
use crate::examine::looker::FileReport;
use crate::examine::verdict::State;
use fec_base::io::base::Base;
use fec_core::digest::{Digest, HashKind, blocks};
use fec_core::format::sidecar::catalog::shortened;
use fec_core::format::sidecar::{ANCHOR_EVERY, EntryKind, FileEntry};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// The findings on all files, and where their bytes belong.
pub(crate) struct Twins<'a> {
    pub(crate) sidecar: &'a Sidecar,
    pub(crate) base: &'a Base,
    pub(crate) positions: &'a Positions,
    pub(crate) states: &'a [State],
    /// Reports of files that are not whole, by entry.
    pub(crate) reports: &'a [(usize, FileReport)],
}

impl Twins<'_> {
    /// Takes the known positions out of the lost ones, and adds to `moved` where their bytes stand. Returns them.
    pub(crate) fn find(&self, mut lost: [&mut Bits; 2], moved: &mut Moved) -> Bits {
        let mut known = Bits::new(self.sidecar.catalog.positions());
        let (mut whole, mut packed) = (Vec::new(), Vec::new());
        for position in lost.iter().flat_map(|lost| lost.ones()) {
            match self.positions.within(position..position + 1).next() {
                Some(span) if span.is_packed => packed.push(position),
                Some(_) => whole.push(position),
                None => {}
            }
        }
        let mut spans = Spans { all: Vec::new(), sources: HashMap::new() };
        self.find_zeros(&whole, &mut known, &mut spans);
        whole.retain(|position| !known.get(*position));
        self.find_blocks(&whole, &mut known, &mut spans, moved);
        self.find_tails(&packed, &mut spans, moved);
        moved.extend(spans.all);
        let mut zeros = Vec::new();
        for position in packed {
            if let Some(more) = self.complete(position, moved) {
                zeros.extend(more);
                known.set(position);
            }
        }
        moved.extend(zeros);
        lost.iter_mut().for_each(|lost| lost.subtract(&known));
        known
    }

    fn block(&self) -> u64 {
        self.sidecar.catalog.block.into()
    }

    fn report(&self, entry: u32) -> Option<&FileReport> {
        let at = self.reports.binary_search_by_key(&(entry as usize), |(nth, _)| *nth).ok()?;
        Some(&self.reports[at].1)
    }

    /// Tells whether nothing keeps an entry without a report from being read.
    fn is_there(&self, entry: u32) -> bool {
        !matches!(self.states[entry as usize], State::Missing | State::Unreadable)
    }

    /// Finds the whole blocks of zeros.
    fn find_zeros(&self, whole: &[u64], known: &mut Bits, spans: &mut Spans) {
        /// Bytes that are hashed at a time.
        const PIECE: u64 = 128 << 10;
        let block = self.block();
        let even = self.even_blocks();
        let may_be = |position: &&u64| even.as_ref().is_none_or(|even| even.get(**position));
        let candidates: Vec<u64> = whole.iter().filter(may_be).copied().collect();
        let most = (PIECE / block).max(1);
        let zeros = vec![0; (most * block) as usize];
        for run in candidates.chunk_by(|a, b| a + 1 == *b) {
            for span in self.positions.within(run[0]..run[run.len() - 1] + 1) {
                for at in (span.at..span.end()).step_by(zeros.len()) {
                    let part = span.within(&(at..at + zeros.len() as u64));
                    let mut values = vec![[0; 32]; (part.len / block) as usize];
                    blocks::values(&zeros[..part.len as usize], block as usize, part.offset, &mut values);
                    for (position, value) in (at / block..).zip(&values) {
                        if shortened(value) == self.sidecar.digest_of(position) {
                            known.set(position);
                            spans.add(position * block, block, ZEROS, 0);
                        }
                    }
                }
            }
        }
    }

    /// The blocks whose first bytes are all equal, by their anchors, if every block has one.
    fn even_blocks(&self) -> Option<Bits> {
        if self.block() < ANCHOR_EVERY {
            return None;
        }
        let mut even = Bits::new(self.sidecar.catalog.positions());
        let files = self.sidecar.catalog.files();
        let positions =
            files.flat_map(|(_, file)| anchored(file, self.block())).map(|(_, position)| position);
        let with_anchors = positions.zip(self.sidecar.anchors());
        with_anchors.filter(|(_, anchor)| *anchor == 0).for_each(|(position, _)| even.set(position));
        Some(even)
    }

    /// Finds lost whole blocks in positions of other files, or in other files of their positions.
    fn find_blocks(&self, lost: &[u64], known: &mut Bits, spans: &mut Spans, moved: &mut Moved) {
        let block = self.block();
        let random = RandomState::new();
        let key = |position: u64, offset: u64| random.hash_one((self.sidecar.digest_of(position), offset));
        let offset_of = |position: u64| self.positions.whole_block(position).unwrap_or(0);
        let keyed = |position: &u64| (key(*position, offset_of(*position)), *position);
        let mut lost: Vec<(u64, u64)> = lost.iter().map(keyed).collect();
        lost.sort_unstable();
        // Most positions are passed over without a search.
        let slots = lost.len() as u64 * 16;
        let mut filter = Bits::new(slots);
        lost.iter().for_each(|(key, _)| filter.set(key % slots));
        let blocks =
            self.positions.iter().filter(|span| !span.is_packed && !lost.is_empty()).flat_map(|span| {
                (span.at..span.end()).step_by(block as usize).map(|at| span.within(&(at..at + block)))
            });
        for span in blocks {
            let position = span.at / block;
            let key = key(position, span.offset);
            if !filter.get(key % slots) {
                continue;
            }
            let alike = &lost[lost.partition_point(|(of, _)| *of < key)..];
            if alike.first().is_none_or(|(of, first)| *of != key || known.get(*first)) {
                continue;
            }
            let Some((source, offset)) = self.stands(&span, self.has_block(&span), spans, moved) else {
                continue;
            };
            for (_, lost) in alike.iter().take_while(|(of, _)| *of == key) {
                known.set(*lost);
                spans.add(lost * block, block, source, offset);
            }
        }
    }

    /// The source and offset of a span: its own file, if that `has` it, or the place that it was found in.
    fn stands(&self, span: &Span, has: bool, spans: &mut Spans, moved: &mut Moved) -> Option<(u32, u64)> {
        if has {
            return Some((spans.source(span.entry, self.sidecar, moved), span.offset));
        }
        let part = moved.within(span.at..span.end()).next()?;
        (part.len == span.len && !part.is_twin).then_some((part.source, part.offset))
    }

    /// Tells whether a file has this block of its own.
    fn has_block(&self, block: &Span) -> bool {
        let Some(report) = self.report(block.entry) else { return self.is_there(block.entry) };
        let nth = block.offset / self.block();
        let next = report.bad.partition_point(|range| range.end <= nth);
        report.bad.get(next).is_none_or(|range| nth < range.start)
    }

    /// Finds lost tails: those of files of zeros, and those that equal files have.
    fn find_tails(&self, packed: &[u64], spans: &mut Spans, moved: &mut Moved) {
        let block = self.block();
        let mut wanted: HashMap<Digest, Vec<Span>> = HashMap::new();
        for span in packed.iter().flat_map(|position| self.positions.within(*position..position + 1)) {
            let EntryKind::File(file) = &self.sidecar.catalog.entries[span.entry as usize].kind else {
                continue;
            };
            if !self.lacks_tail(&span, moved) {
                continue;
            }
            let zeros = || HashKind::Blake3.digest(&vec![0; span.len as usize]);
            match span.offset == 0 && zeros() == file.blake3 {
                true => spans.add(span.at, span.len, ZEROS, 0),
                false => wanted.entry(file.blake3).or_default().push(span),
            }
        }
        if wanted.is_empty() {
            return;
        }
        for (nth, file) in self.sidecar.catalog.files() {
            let Some(alike) = wanted.get(&file.blake3) else { continue };
            let offset = FileEntry::whole_blocks(file.size, block) * block;
            let (entry, len) = (nth as u32, file.tail_len(block));
            let tail = Span { at: file.tail, len, entry, offset, is_packed: true };
            if (alike[0].offset, alike[0].len) != (offset, len) {
                continue;
            }
            let has = self.has_tail(entry);
            let Some((source, offset)) = self.stands(&tail, has, spans, moved) else { continue };
            alike.iter().for_each(|span| spans.add(span.at, span.len, source, offset));
            wanted.remove(&file.blake3);
        }
    }

    /// Tells whether the tail in this span may not be in its file, or anywhere else.
    fn lacks_tail(&self, tail: &Span, moved: &Moved) -> bool {
        let is_suspect = self.report(tail.entry).is_some_and(|report| report.is_right != Some(true));
        is_suspect && moved.len_within(tail.at..tail.end()) == 0
    }

    fn has_tail(&self, entry: u32) -> bool {
        self.report(entry)
            .map_or_else(|| self.is_there(entry), |report| report.is_right == Some(true) || report.has_tail)
    }

    /// The zeros that make a position with packed bytes right, beside all bytes that are there. `None`: it stays lost.
    fn complete(&self, position: u64, moved: &Moved) -> Option<Vec<MovedSpan>> {
        let block = self.block();
        let mut reader =
            PositionReader::new(self.base, &self.sidecar.catalog, self.positions, &Any).with(moved);
        let mut bytes = vec![0; block as usize];
        let _ = reader.fill(position, &mut bytes, |_, _| Ok::<(), ()>(()));
        let mut zeros = Spans { all: Vec::new(), sources: HashMap::new() };
        let lacking =
            self.positions.within(position..position + 1).filter(|span| self.lacks_tail(span, moved));
        let (unread, read): (Vec<Span>, Vec<Span>) =
            lacking.partition(|span| self.report(span.entry).is_none_or(|report| report.is_right.is_none()));
        for spans in [unread, read] {
            for span in spans {
                bytes[(span.at - position * block) as usize..][..span.len as usize].fill(0);
                zeros.add(span.at, span.len, ZEROS, 0);
            }
            if plain_digests(&bytes, block as usize)[0] == self.sidecar.digest_of(position) {
                return Some(zeros.all);
            }
        }
        None
    }
}

/// Spans of known bytes.
struct Spans {
    all: Vec<MovedSpan>,
    /// The sources in use, by entry.
    sources: HashMap<u32, u32>,
}

impl Spans {
    /// The source that an entry is.
    fn source(&mut self, entry: u32, sidecar: &Sidecar, moved: &mut Moved) -> u32 {
        *self.sources.entry(entry).or_insert_with(|| {
            moved.sources.push(sidecar.catalog.entries[entry as usize].path.clone());
            moved.sources.len() as u32 - 1
        })
    }

    /// Adds a span, or makes the last one longer.
    fn add(&mut self, at: u64, len: u64, source: u32, offset: u64) {
        MovedSpan { at, len, source, offset, is_twin: true }.add_to(&mut self.all);
    }
}

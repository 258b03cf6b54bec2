//! Maps positions to the bytes of files, and back.

use crate::catalog::bits::Bits;
use crate::catalog::moved::{Moved, STASH, ZEROS};
use fec_base::io::ReadAt;
use fec_base::io::base::Base;
use fec_core::format::sidecar::catalog::Catalog;
use fec_core::format::sidecar::{ANCHOR_EVERY, Entry, EntryKind, FileEntry, Run};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::ops::Range;

/// A span of a file: `len` bytes from `offset` on, at address `at` (position · block, plus the byte in the block).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) at: u64,
    pub(crate) len: u64,
    /// The number of the entry.
    pub(crate) entry: u32,
    pub(crate) offset: u64,
    /// True if the span is packed: the tail behind the whole blocks of its file.
    pub(crate) is_packed: bool,
}

impl Span {
    pub(crate) fn end(&self) -> u64 {
        self.at + self.len
    }

    /// The part of the span in this range of addresses.
    pub(crate) fn within(&self, range: &Range<u64>) -> Span {
        let (start, end) = (self.at.max(range.start), self.end().min(range.end));
        Span { at: start, len: end - start, offset: self.offset + (start - self.at), ..*self }
    }
}

/// All bytes of all files that have addresses, by these. Spans with common addresses are of files that share all of
/// them.
#[derive(Debug)]
pub(crate) struct Positions {
    spans: Vec<Span>,
    block: u64,
}

impl Positions {
    pub(crate) fn of(catalog: &Catalog) -> Positions {
        Positions::of_entries(&catalog.entries, catalog.block.into())
    }

    /// The positions of some entries, with blocks of `block` bytes.
    pub(crate) fn of_entries(entries: &[Entry], block: u64) -> Positions {
        let mut spans = Vec::new();
        for (entry, of) in (0..).zip(entries) {
            let EntryKind::File(file) = &of.kind else { continue };
            for run in &file.runs {
                let (at, len, offset) = (run.start * block, run.count * block, run.block * block);
                spans.push(Span { at, len, entry, offset, is_packed: false });
            }
            let len = file.tail_len(block);
            if len > 0 {
                let offset = file.size - len;
                spans.push(Span { at: file.tail, len, entry, offset, is_packed: true });
            }
        }
        spans.sort_unstable_by_key(|span| (span.at, span.entry));
        Positions { spans, block }
    }

    /// The spans that `keep` is true for.
    pub(crate) fn only(&self, keep: impl Fn(&Span) -> bool) -> Positions {
        Positions { spans: self.spans.iter().copied().filter(keep).collect(), block: self.block }
    }

    /// The spans in these positions alone.
    pub(crate) fn part(&self, positions: Range<u64>) -> Positions {
        Positions { spans: self.within(positions).collect(), block: self.block }
    }

    /// The spans, cut to the positions of these bits, which may be fewer than there are positions.
    pub(crate) fn cut_to(&self, positions: &Bits) -> Positions {
        let mut spans: Vec<Span> = Vec::new();
        for span in &self.spans {
            let mut start = None;
            let (first, end) = (span.at / self.block, span.end().div_ceil(self.block));
            for position in first..=end {
                match start {
                    None if position < end && positions.has(position) => start = Some(position),
                    Some(from) if position == end || !positions.has(position) => {
                        spans.push(span.within(&(from * self.block..position * self.block)));
                        start = None;
                    }
                    _ => {}
                }
            }
        }
        spans.sort_unstable_by_key(|span| (span.at, span.entry));
        Positions { spans, block: self.block }
    }

    /// The spans in these positions, cut to them.
    pub(crate) fn within(&self, positions: Range<u64>) -> impl Iterator<Item = Span> {
        let range = positions.start * self.block..positions.end * self.block;
        let first = self.spans.partition_point(|span| span.end() <= range.start);
        let end = range.end;
        let spans = self.spans[first..].iter().take_while(move |span| span.at < end);
        spans.map(move |span| span.within(&range))
    }

    /// The number of bytes of files that have these positions.
    pub(crate) fn len(&self, positions: Range<u64>) -> u64 {
        let mut end = 0;
        let spans = self.within(positions);
        spans.filter(|span| std::mem::replace(&mut end, span.end()) <= span.at).map(|span| span.len).sum()
    }

    /// All spans, by address.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Span> {
        self.spans.iter()
    }

    /// The positions that hold any bytes.
    pub(crate) fn covered(&self, positions: u64) -> Bits {
        let mut covered = Bits::new(positions);
        for span in &self.spans {
            (span.at / self.block..span.end().div_ceil(self.block))
                .for_each(|position| covered.set(position));
        }
        covered
    }

    /// The offset in its file of the whole block at a position, on which the digest depends; `None` for any other
    /// position.
    pub(crate) fn whole_block(&self, position: u64) -> Option<u64> {
        let span = self.within(position..position + 1).next()?;
        (!span.is_packed).then_some(span.offset)
    }
}

/// The positions of the blocks of a file that have an anchor, each with the number of the block.
pub(crate) fn anchored(file: &FileEntry, block: u64) -> impl Iterator<Item = (u64, u64)> {
    let step = (ANCHOR_EVERY / block).max(1);
    file.runs.iter().flat_map(move |run| {
        let numbers = (run.block.next_multiple_of(step)..run.block + run.count).step_by(step as usize);
        numbers.map(|nth| (nth, run.start + (nth - run.block)))
    })
}

/// The places of tails that several files share.
pub(crate) fn shared_tails(catalog: &Catalog) -> HashSet<u64> {
    let block = catalog.block.into();
    let mut seen = HashSet::new();
    let tails = catalog.files().filter(|(_, file)| file.tail_len(block) > 0).map(|(_, file)| file.tail);
    tails.filter(|tail| !seen.insert(*tail)).collect()
}

/// Cuts runs where a run of another file begins or ends within them, so that files share whole runs.
pub(crate) fn cut_shared(entries: &mut [Entry]) {
    let mut cuts: Vec<u64> = Vec::new();
    for entry in &*entries {
        if let EntryKind::File(file) = &entry.kind {
            cuts.extend(file.runs.iter().flat_map(|run| [run.start, run.start + run.count]));
        }
    }
    cuts.sort_unstable();
    cuts.dedup();
    for entry in entries {
        let EntryKind::File(file) = &mut entry.kind else { continue };
        let cut = |run: &Run| {
            let within = cuts.partition_point(|cut| *cut <= run.start);
            let end = run.start + run.count;
            let ends: Vec<u64> =
                cuts[within..].iter().copied().take_while(|cut| *cut < end).chain([end]).collect();
            let (mut start, run) = (run.start, *run);
            ends.into_iter().map(move |end| {
                let part = Run { block: run.block + (start - run.start), start, count: end - start };
                start = end;
                part
            })
        };
        file.runs = file.runs.iter().flat_map(cut).collect();
    }
}

/// The anchors of all files. `of_blocks` has those of all positions with one, in order.
pub(crate) fn anchors(catalog: &Catalog, of_blocks: &[(u64, u64)]) -> Vec<u64> {
    let positions = catalog.files().flat_map(|(_, file)| anchored(file, catalog.block.into()));
    let anchor = |(_, position): (u64, u64)| {
        let at = of_blocks.binary_search_by_key(&position, |(position, _)| *position);
        of_blocks[at.expect("each block that should have an anchor got one")].1
    };
    positions.map(anchor).collect()
}

/// The position of a whole block of a file; `None` for zeros.
pub(crate) fn position_of(file: &FileEntry, nth: u64) -> Option<u64> {
    runs_of(file, nth..nth + 1).next().map(|run| run.start)
}

/// The runs of some whole blocks of a file.
pub(crate) fn runs_of(file: &FileEntry, numbers: Range<u64>) -> impl Iterator<Item = Run> {
    let first = file.runs.partition_point(|run| run.block + run.count <= numbers.start);
    let runs = file.runs[first..].iter().take_while(move |run| run.block < numbers.end);
    runs.map(move |run| {
        let (start, end) = (numbers.start.max(run.block), numbers.end.min(run.block + run.count));
        Run { block: start, start: run.start + (start - run.block), count: end - start }
    })
}

/// The most files that a reader keeps open: a few more than a set has shards.
const OPEN: usize = 300;
/// The most that one of several readers keeps open.
const FEW: usize = 8;

/// Reads positions from the files at a base.
pub(crate) struct PositionReader<'a> {
    base: &'a Base,
    catalog: &'a Catalog,
    positions: &'a Positions,
    /// Open files, by the number of the entry, or by that of a source counted behind all entries.
    open: HashMap<u32, File>,
    /// The most files that it keeps open.
    most: usize,
    admit: &'a dyn Admit,
    moved: Option<&'a Moved>,
}

/// Decides whether an opened file may be read.
pub(crate) trait Admit: Sync {
    fn admit(&self, entry: u32, file: &File) -> io::Result<()>;

    /// The folder that has a file, if that is another one than the base.
    fn base(&self, _entry: u32) -> Option<&Base> {
        None
    }
}

/// Admits every file.
pub(crate) struct Any;

impl Admit for Any {
    fn admit(&self, _entry: u32, _file: &File) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> PositionReader<'a> {
    pub(crate) fn new(
        base: &'a Base,
        catalog: &'a Catalog,
        positions: &'a Positions,
        admit: &'a dyn Admit,
    ) -> PositionReader<'a> {
        PositionReader { base, catalog, positions, open: HashMap::new(), most: OPEN, admit, moved: None }
    }

    /// Keeps few files open: several readers in a thread share its descriptors.
    pub(crate) fn of_few(self) -> PositionReader<'a> {
        PositionReader { most: FEW, ..self }
    }

    /// Reads `moved` bytes from their sources, and counts bytes behind the end of a file as zeros, since only digests
    /// decide.
    pub(crate) fn with(self, moved: &'a Moved) -> PositionReader<'a> {
        PositionReader { moved: Some(moved), ..self }
    }

    pub(crate) fn file(&mut self, entry: u32) -> io::Result<&File> {
        if !self.open.contains_key(&entry) {
            if self.open.len() >= self.most {
                self.open.clear();
            }
            let entries = &self.catalog.entries;
            let path = match entries.get(entry as usize) {
                Some(entry) => &entry.path,
                None => &self.moved.expect("it is a source").sources[entry as usize - entries.len()],
            };
            let base = self.admit.base(entry).unwrap_or(self.base);
            let file = match base.read(path) {
                // The system, or another user of descriptors, allows fewer open files.
                Err(e) if e.raw_os_error() == Some(libc::EMFILE) && !self.open.is_empty() => {
                    self.open.clear();
                    base.read(path)?
                }
                opened => opened?,
            };
            self.admit.admit(entry, &file)?;
            self.open.insert(entry, file);
        }
        Ok(&self.open[&entry])
    }

    /// Tells whether all bytes at these addresses stand elsewhere than in their own files.
    pub(crate) fn has_elsewhere(&self, at: Range<u64>) -> bool {
        self.moved.is_some_and(|moved| moved.covers(at))
    }

    /// Reads a span of a file, each part from where it stands.
    ///
    /// # Errors
    /// Those of the files.
    pub(crate) fn read(&mut self, span: &Span, out: &mut [u8]) -> io::Result<()> {
        let mut at = span.at;
        let elsewhere = self.moved.filter(|moved| !moved.is_empty());
        for moved in elsewhere.into_iter().flat_map(|moved| moved.within(span.at..span.end())) {
            self.read_here(span, at..moved.at, out)?;
            let part = &mut out[(moved.at - span.at) as usize..][..moved.len as usize];
            if moved.source == ZEROS {
                part.fill(0);
            } else if moved.source == STASH {
                let stash = self.moved.and_then(|all| all.stash.as_ref()).expect("its blocks were fetched");
                stash.read_exact_at(moved.offset, part)?;
            } else {
                let source = self.catalog.entries.len() as u32 + moved.source;
                let file = self.file(source)?;
                match file.read_exact_at(moved.offset, part) {
                    Err(e) if moved.is_twin && e.kind() == io::ErrorKind::UnexpectedEof => {
                        read_as_far_as_it_goes(file, moved.offset, part)?;
                    }
                    read => read?,
                }
            }
            at = moved.end();
        }
        self.read_here(span, at..span.end(), out)
    }

    /// Reads the bytes of a span that are in their own file.
    fn read_here(&mut self, span: &Span, range: Range<u64>, out: &mut [u8]) -> io::Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let start = range.start - span.at;
        let part = &mut out[start as usize..(range.end - span.at) as usize];
        let is_lenient = self.moved.is_some();
        let file = self.file(span.entry)?;
        match file.read_exact_at(span.offset + start, part) {
            Err(e) if is_lenient && e.kind() == io::ErrorKind::UnexpectedEof => {
                read_as_far_as_it_goes(file, span.offset + start, part)
            }
            read => read,
        }
    }

    /// Fills `out` with the positions from `first` on, and with zeros where no bytes are. Bytes that cannot be read are
    /// zeros and are reported to `failed`, whose error ends the reading.
    pub(crate) fn fill<E>(
        &mut self,
        first: u64,
        out: &mut [u8],
        mut failed: impl FnMut(Span, io::Error) -> Result<(), E>,
    ) -> Result<(), E> {
        let block = self.positions.block;
        let base = first * block;
        let end = first + (out.len() as u64).div_ceil(block);
        let mut filled = 0;
        let positions = self.positions;
        for span in positions.within(first..end) {
            let start = (span.at - base) as usize;
            // Another file has given the bytes.
            if start < filled {
                continue;
            }
            out[filled..start].fill(0);
            filled = start + span.len as usize;
            let piece = &mut out[start..filled];
            if self.read(&span, piece).is_ok() {
                continue;
            }
            // Reads block by block, to keep all readable blocks.
            let mut at = span.at;
            while at < span.end() {
                let end = (at / block + 1) * block;
                let part = span.within(&(at..end));
                let bytes = &mut piece[(part.at - span.at) as usize..][..part.len as usize];
                if let Err(e) = self.read(&part, bytes) {
                    bytes.fill(0);
                    failed(part, e)?;
                }
                at = part.end();
            }
        }
        out[filled..].fill(0);
        Ok(())
    }
}

/// Fills `out` with the bytes from `offset` on, and with zeros behind the end.
fn read_as_far_as_it_goes(file: &File, offset: u64, out: &mut [u8]) -> io::Result<()> {
    let there = file.size()?.saturating_sub(offset).min(out.len() as u64) as usize;
    let (there, behind) = out.split_at_mut(there);
    behind.fill(0);
    file.read_exact_at(offset, there)
}

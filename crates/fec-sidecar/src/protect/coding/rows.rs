//! Reads and hashes rows of positions, and hashes and writes recovery shards, for the codings of sets.

use crate::catalog::fingerprint::fingerprint_of_stat;
use crate::catalog::hashing::plain_digests;
use crate::catalog::positions::{Admit, PositionReader, Positions, Span};
use crate::catalog::seen::Seen;
use crate::catalog::sources::Sources;
use fec_base::context::{Context, Gauge, Notice, Progress, Settings};
use fec_base::error::Result;
use fec_base::io::base::Base;
use fec_base::program::lease::is_open_for_writing;
use fec_base::program::stages::{self, Stage};
use fec_core::digest::{Digest, HashKind, blocks};
use fec_core::executor::lock;
use fec_core::format::sidecar::anchor::Gear;
use fec_core::format::sidecar::catalog::{Catalog, ShortDigest, shortened};
use fec_core::format::sidecar::group::SidecarGroup;
use fec_core::format::sidecar::has_anchor;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Mutex;

/// Takes bytes of a sidecar, and their offset.
pub(crate) type Put<'a> = dyn Fn(u64, &[u8]) -> Result<()> + Sync + 'a;

/// The coding of all sets of the last group of a catalog.
pub(crate) struct Coding<'a> {
    base: &'a Base,
    pub(super) catalog: &'a Catalog,
    positions: Positions,
    source: Source<'a>,
    put: &'a Put<'a>,
    pub(super) meter: &'a Gauge<'a>,
    /// The receiver of notices.
    progress: &'a dyn Progress,
    pub(super) settings: &'a Settings,
    pub(super) group: SidecarGroup,
    /// First position of the group.
    pub(super) first: u64,
    /// Another coding of the same sets, whose originals are added to these.
    plus: Option<&'a Coding<'a>>,
    gear: Gear,
    pub(super) results: Mutex<Coded>,
}

/// The files that are coded.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    /// Those that were found.
    Found(&'a Seen),
    /// Those that were protected, as far as they are there.
    Old(&'a Sources),
}

/// The digests and anchors that coding collects.
pub(crate) struct Coded {
    /// The chaining values of whole blocks, by position in the group.
    pub(crate) values: Vec<Digest>,
    /// Digests: first of positions, then of recovery shards.
    pub(crate) digests: Vec<ShortDigest>,
    /// For each entry, the bytes behind its whole blocks: their chaining value, or the file's digest if it has no whole
    /// block.
    pub(crate) tails: Vec<Option<Digest>>,
    /// Positions with their anchors.
    pub(crate) anchors: Vec<(u64, u64)>,
}

impl Coded {
    /// The result without any position.
    pub(crate) fn nothing(entries: usize) -> Coded {
        Coded { values: Vec::new(), digests: Vec::new(), tails: vec![None; entries], anchors: Vec::new() }
    }
}

impl<'a> Coding<'a> {
    pub(crate) fn new(
        base: &'a Base,
        catalog: &'a Catalog,
        seen: &'a Seen,
        put: &'a Put<'a>,
        context: &'a Context<'a>,
        meter: &'a Gauge<'a>,
    ) -> Coding<'a> {
        let positions = Positions::of(catalog);
        Coding::of((base, Source::Found(seen)), (catalog, positions), put, context, meter)
    }

    /// The coding of some positions, with zeros in place of all others.
    pub(crate) fn of(
        (base, source): (&'a Base, Source<'a>),
        (catalog, positions): (&'a Catalog, Positions),
        put: &'a Put<'a>,
        context: &'a Context<'a>,
        meter: &'a Gauge<'a>,
    ) -> Coding<'a> {
        let (group, before) = catalog.groups.split_last().expect("a catalog has a group");
        let group = *group;
        let results = Coded {
            values: vec![[0; 32]; group.positions() as usize],
            digests: vec![[0; 16]; (group.positions() + group.recovery()) as usize],
            tails: vec![None; catalog.entries.len()],
            anchors: Vec::new(),
        };
        Coding {
            base,
            catalog,
            positions,
            source,
            put,
            meter,
            progress: context.progress,
            settings: &context.settings,
            group,
            first: before.iter().map(SidecarGroup::positions).sum(),
            plus: None,
            gear: Gear::default(),
            results: Mutex::new(results),
        }
    }

    /// Adds the originals of another coding, which has sets of the same shape and gets its own digests.
    pub(crate) fn with(self, plus: &'a Coding<'a>) -> Coding<'a> {
        Coding { plus: Some(plus), ..self }
    }

    /// A reader of positions that notes files which fail.
    pub(super) fn reader(&self) -> Reader<'_> {
        let files = PositionReader::new(self.base, self.catalog, &self.positions, self);
        match self.plus {
            None => Reader { files, plus: None, bytes: Vec::new() },
            Some(plus) => {
                let mut with = plus.reader();
                with.files = with.files.of_few();
                Reader { files: files.of_few(), plus: Some(Box::new(with)), bytes: Vec::new() }
            }
        }
    }

    /// Reads the positions from `first` on into `row`, and hashes them.
    pub(super) fn read(
        &self,
        first: u64,
        row: &mut [u8],
        reader: &mut Reader<'_>,
        found: &mut Found,
    ) -> Result<()> {
        let bytes = row.len() as u64;
        let stage = stages::enter(Stage::Read, bytes);
        reader.files.fill(first, row, |span, cause| self.pass(span, cause))?;
        drop(stage);
        let stage = stages::enter(Stage::Hash, bytes);
        found.look(self, first, row);
        drop(stage);
        if let (Some(plus), Some(with)) = (self.plus, &mut reader.plus) {
            reader.bytes.resize(row.len(), 0);
            let of_plus = found.plus.get_or_insert_default();
            plus.read(plus.first + (first - self.first), &mut reader.bytes, with, of_plus)?;
            found.bytes += std::mem::take(&mut of_plus.bytes);
            row.iter_mut().zip(&reader.bytes).for_each(|(byte, plus)| *byte ^= plus);
        }
        Ok(())
    }

    /// Keeps what was found.
    pub(super) fn keep(&self, found: &Found) {
        found.merge(&mut lock(&self.results));
        if let (Some(plus), Some(found)) = (self.plus, &found.plus) {
            plus.keep(found);
        }
    }

    /// Hashes recovery shards and writes them: those of the group from number `first` on, or every `step`th.
    pub(super) fn write(&self, (first, step): (u64, u64), shards: &[u8], found: &mut Found) -> Result<()> {
        let block = self.catalog.block as usize;
        let stage = stages::enter(Stage::Hash, shards.len() as u64);
        let digests = plain_digests(shards, block);
        drop(stage);
        let _stage = stages::enter(Stage::Write, shards.len() as u64);
        if step == 1 {
            found.digests.push((self.group.positions() + first, digests));
            return put_blocks(self.catalog, self.group.first + first, shards, self.put);
        }
        let numbers = (first..).step_by(step as usize);
        for (number, (digest, shard)) in numbers.zip(digests.into_iter().zip(shards.chunks_exact(block))) {
            found.digests.push((self.group.positions() + number, vec![digest]));
            put_blocks(self.catalog, self.group.first + number, shard, self.put)?;
        }
        Ok(())
    }

    /// Notes that a file was read in one go, unless it has changed.
    fn settle(&self, entry: u32) {
        let Source::Found(seen) = self.source else { return };
        let (nth, path) = (entry as usize, &self.catalog.entries[entry as usize].path);
        let is_same = |stat| fingerprint_of_stat(&stat) == seen.fingerprints[nth];
        if self.base.stat(path).is_ok_and(is_same) {
            seen.settle(nth);
        }
    }

    fn pass(&self, span: Span, cause: io::Error) -> Result<()> {
        match self.source {
            Source::Found(seen) => {
                seen.pass(self.base, &self.catalog.entries[span.entry as usize].path, cause)
            }
            // Zeros in its place have another digest.
            Source::Old(_) => Ok(()),
        }
    }
}

/// Admits a file that is as it was found. `progress` gets a notice if somebody has it open for writing, unless files
/// may grow.
pub(crate) fn admit(
    seen: &Seen,
    entry: u32,
    file: &File,
    place: impl FnOnce() -> PathBuf,
    progress: &dyn Progress,
) -> io::Result<()> {
    if !seen.may_grow() && is_open_for_writing(file) {
        progress.note(Notice::OpenElsewhere { path: &place() });
    }
    match seen.is_as_found(entry as usize, &file.metadata()?) {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "changed")),
    }
}

impl Admit for Coding<'_> {
    fn admit(&self, entry: u32, file: &File) -> io::Result<()> {
        let place = || self.base.place(&self.catalog.entries[entry as usize].path);
        match self.source {
            Source::Found(seen) => admit(seen, entry, file, place, self.progress),
            Source::Old(sources) => sources.admit(entry, file),
        }
    }

    fn base(&self, entry: u32) -> Option<&Base> {
        match self.source {
            Source::Found(_) => None,
            Source::Old(sources) => sources.base(entry),
        }
    }
}

/// Hands blocks of the last extent, from number `first` on, to `put` with their offsets.
fn put_blocks(catalog: &Catalog, first: u64, bytes: &[u8], put: &Put<'_>) -> Result<()> {
    let block = u64::from(catalog.block);
    let extent = &catalog.extents[catalog.extents.len() - 1];
    let (mut nth, mut left) = (first, bytes);
    while !left.is_empty() {
        let (at, in_one_go) = extent.block(nth, block);
        let now = left.len().min((in_one_go * block) as usize);
        put(at, &left[..now])?;
        left = &left[now..];
        nth += in_one_go;
    }
    Ok(())
}

/// A reader of the originals of a coding.
pub(super) struct Reader<'a> {
    files: PositionReader<'a>,
    /// That of the coding which is added, with room for a row.
    plus: Option<Box<Reader<'a>>>,
    bytes: Vec<u8>,
}

/// Digests and anchors of some rows.
#[derive(Default)]
pub(super) struct Found {
    values: Vec<(u64, Vec<Digest>)>,
    anchors: Vec<(u64, u64)>,
    pub(super) digests: Vec<(u64, Vec<ShortDigest>)>,
    tails: Vec<(u32, Digest)>,
    pub(super) bytes: u64,
    /// Those of the coding which is added.
    plus: Option<Box<Found>>,
}

impl Found {
    /// Hashes a row, which holds the positions from `first` on.
    pub(super) fn look(&mut self, coding: &Coding<'_>, first: u64, row: &[u8]) {
        let Coding { catalog, positions, .. } = coding;
        let block = u64::from(catalog.block);
        let range = first..first + row.len() as u64 / block;
        let base = first * block;
        // Positions with packed bytes that follow each other.
        let mut packed: Option<Range<u64>> = None;
        let hash_packed = |digests: &mut Vec<(u64, Vec<ShortDigest>)>, packed: Range<u64>| {
            let bytes =
                &row[((packed.start - first) * block) as usize..((packed.end - first) * block) as usize];
            digests.push((packed.start - coding.first, plain_digests(bytes, block as usize)));
        };
        let mut end = base;
        for span in positions.within(range) {
            // Another file has the same bytes here.
            let is_shared = span.at < end;
            end = span.end();
            let bytes = &row[(span.at - base) as usize..][..span.len as usize];
            self.bytes += if is_shared { 0 } else { span.len };
            if span.is_packed {
                let (start, end) = (span.at / block, (span.at + span.len).div_ceil(block));
                packed = Some(packed.map_or(start, |range| range.start)..end);
                self.tail(coding, &span, bytes);
                continue;
            }
            if is_shared {
                continue;
            }
            packed.take().into_iter().for_each(|packed| hash_packed(&mut self.digests, packed));
            let mut values = vec![[0; 32]; bytes.len() / block as usize];
            blocks::values(bytes, block as usize, span.offset, &mut values);
            let offsets = (span.offset..).step_by(block as usize).zip(bytes.chunks_exact(block as usize));
            for (nth, (offset, bytes)) in (span.at / block..).zip(offsets) {
                if has_anchor(offset) {
                    self.anchors.push((nth, coding.gear.anchor(bytes)));
                }
            }
            self.digests.push((span.at / block - coding.first, values.iter().map(shortened).collect()));
            self.values.push((span.at / block - coding.first, values));
        }
        packed.into_iter().for_each(|packed| hash_packed(&mut self.digests, packed));
    }

    /// Hashes the bytes behind the whole blocks of a file.
    fn tail(&mut self, coding: &Coding<'_>, span: &Span, bytes: &[u8]) {
        let digest = match span.offset {
            0 => {
                coding.settle(span.entry);
                HashKind::Blake3.digest(bytes)
            }
            offset => blocks::tail_value(bytes, offset),
        };
        self.tails.push((span.entry, digest));
    }

    fn merge(&self, coded: &mut Coded) {
        for (at, values) in &self.values {
            coded.values[*at as usize..][..values.len()].copy_from_slice(values);
        }
        for (at, digests) in &self.digests {
            coded.digests[*at as usize..][..digests.len()].copy_from_slice(digests);
        }
        coded.anchors.extend_from_slice(&self.anchors);
        for (entry, tail) in &self.tails {
            coded.tails[*entry as usize] = Some(*tail);
        }
    }
}

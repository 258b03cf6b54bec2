//! Reads chunks of files and compares them with their digests, in one pass.

use crate::Sidecar;
use crate::catalog::hashing::is_zeros;
use crate::catalog::holes::next_data;
use crate::catalog::plan::add_blocks;
use crate::catalog::positions::{position_of, runs_of};
use crate::examine::findings::Cause;
use fec_base::context::Gauge;
use fec_base::io::bad_blocks::fill_readable;
use fec_base::io::base::Base;
use fec_base::program::stages::{self, Stage};
use fec_core::digest::{Digest, HashKind, blocks};
use fec_core::format::sidecar::FileEntry;
use fec_core::format::sidecar::catalog::shortened;
use std::cmp::Ordering;
use std::fs::File;
use std::io;
use std::ops::Range;

/// Bytes of a chunk of a file. Its number of blocks is a power of two.
pub(crate) const CHUNK: u64 = 4 << 20;

/// Bytes that are read and hashed at a time: they stay in the cache on the way.
const PIECE: u64 = 128 << 10;

/// A chunk of a file, or all of a small one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub(crate) entry: u32,
    pub(crate) chunk: u64,
    /// The chunks of the file that are examined.
    pub(crate) chunks: u64,
}

impl Job {
    /// Tells whether the file has no further chunk.
    pub(crate) fn is_last(&self) -> bool {
        self.chunk + 1 == self.chunks
    }
}

/// The findings on a file's bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileReport {
    /// Damaged whole blocks, by number in the file.
    pub(crate) bad: Vec<Range<u64>>,
    /// True if the tail behind the whole blocks must be checked by its position.
    pub(crate) is_tail_unknown: bool,
    /// True if the tail was seen, and is right.
    pub(crate) has_tail: bool,
    pub(crate) cause: Option<Cause>,
    /// The length of the file compared with its recorded one.
    pub(crate) len: Len,
    /// True if only some chunks were examined.
    pub(crate) is_part: bool,
    /// Tells whether the bytes up to the recorded length have the file's digest; `None` if it was not computed.
    pub(crate) is_right: Option<bool>,
}

/// The length of a file compared with its recorded one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Len {
    #[default]
    Same,
    More,
    Fewer,
}

impl FileReport {
    /// Tells whether the reader lacks permission.
    pub(crate) fn is_denied(&self) -> bool {
        self.cause.is_some_and(Cause::is_denied)
    }

    /// Tells whether none of the blocks is damaged.
    pub(crate) fn is_clean(&self) -> bool {
        self.bad.is_empty() && !self.is_tail_unknown && self.cause.is_none()
    }

    /// Tells whether the file is right, and the sidecar agrees with itself about it.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_right == Some(true) && self.len == Len::Same && self.bad.is_empty()
    }

    /// Tells whether the findings contradict each other: all blocks have their digests but the file does not, or the
    /// reverse.
    pub(crate) fn contradicts(&self) -> bool {
        match self.is_right {
            Some(false) => self.is_clean() && self.len != Len::Fewer,
            Some(true) => !self.bad.is_empty() && self.cause.is_none(),
            None => false,
        }
    }
}

/// Reads and hashes on one thread.
pub(crate) struct Looker<'a> {
    sidecar: &'a Sidecar,
    base: &'a Base,
    meter: &'a Gauge<'a>,
    buffer: Vec<u8>,
    open: Option<(u32, File)>,
    /// Bytes of the buffer that could not be read, and are zeros. Bytes behind the end of a file count as zeros that
    /// were read: the length shows that they are missing.
    unread: Vec<Range<usize>>,
}

impl<'a> Looker<'a> {
    pub(crate) fn new(sidecar: &'a Sidecar, base: &'a Base, meter: &'a Gauge<'a>) -> Looker<'a> {
        Looker { sidecar, base, meter, buffer: Vec::new(), open: None, unread: Vec::new() }
    }

    /// Examines a chunk. Returns its value in the file's tree, unless the chunk is the whole file.
    pub(crate) fn look(&mut self, job: &Job, file: &FileEntry) -> (Option<Digest>, FileReport) {
        let block = u64::from(self.sidecar.catalog.block);
        let start = job.chunk * CHUNK;
        let len = (file.size - start).min(CHUNK);
        let whole = (FileEntry::whole_blocks(file.size, block) * block).clamp(start, start + len) - start;
        let mut report = FileReport::default();
        self.buffer.resize(PIECE.max(block).min(file.size.next_multiple_of(64)) as usize, 0);
        let mut values = vec![[0; 32]; (whole / block) as usize];
        let mut expected = self.sidecar.digests_of_file(file, start / block);
        let mut cause = None;
        for at in (0..whole).step_by(self.buffer.len().max(1)) {
            let piece = (whole - at).min(self.buffer.len() as u64);
            let may_skip = position_of(file, (start + at) / block).is_none();
            let error = self.read(job.entry, start + at, piece as usize, may_skip);
            cause = cause.or(error);
            let _stage = stages::enter(Stage::Hash, piece);
            let values = &mut values[(at / block) as usize..][..(piece / block) as usize];
            blocks::values(&self.buffer[..piece as usize], block as usize, start + at, values);
            for (nth, value) in ((start + at) / block..).zip(&*values) {
                let at = (nth * block - start - at) as usize;
                let is_read = self.unread.iter().all(|gap| gap.end <= at || at + block as usize <= gap.start);
                let is_right = match expected.next() {
                    Some(Some(digest)) => digest == shortened(value),
                    expected => expected.is_some() && is_zeros(&self.buffer[at..at + block as usize]),
                };
                if !is_right || !is_read {
                    add_blocks(&mut report.bad, nth..nth + 1);
                }
            }
        }
        drop(expected);
        let tail_len = (len - whole) as usize;
        let has_rest = tail_len > 0 || len == 0;
        cause = cause.or(has_rest.then(|| self.read(job.entry, start + whole, tail_len, false)).flatten());
        self.meter.add(len);
        let _stage = stages::enter(Stage::Hash, tail_len as u64);
        let tail = &self.buffer[..tail_len];
        report.cause = cause.as_ref().map(Cause::from);
        report.len = len_of(self.open.as_ref(), file.size);
        let is_read = report.cause.is_none() && report.len != Len::Fewer;
        if job.is_last() {
            // Zeros behind the end need not be written.
            let end = runs_of(file, (start + len) / block..FileEntry::whole_blocks(file.size, block));
            report.bad.extend(end.map(|run| run.block..run.block + run.count));
        }
        let is_all = job.chunks == 1;
        if !(tail.is_empty() || values.is_empty() && is_all) {
            values.push(blocks::tail_value(tail, start + whole));
        }
        if is_all {
            let digest = match values.len() {
                0 => HashKind::Blake3.digest(tail),
                _ => blocks::root(&values),
            };
            report.is_right = Some(is_read && digest == file.blake3);
            return (None, report);
        }
        let value = is_read.then(|| blocks::subtree(&values));
        (value, report)
    }

    /// Reads all readable bytes into the buffer; the rest is zeros. Returns the first error other than an early end,
    /// which the digests tell. A hole is not read if it may be skipped.
    fn read(&mut self, entry: u32, start: u64, len: usize, may_skip: bool) -> Option<io::Error> {
        let _stage = stages::enter(Stage::Read, len as u64);
        self.unread.clear();
        let bytes = &mut self.buffer[..len];
        if self.open.as_ref().is_none_or(|(of, _)| *of != entry) {
            let path = &self.sidecar.catalog.entries[entry as usize].path;
            match self.base.read(path) {
                Ok(file) => self.open = Some((entry, file)),
                Err(e) => {
                    self.open = None;
                    bytes.fill(0);
                    self.unread.push(0..len);
                    return Some(e);
                }
            }
        }
        let (_, file) = self.open.as_ref()?;
        if may_skip && next_data(file, start) >= start + len as u64 {
            bytes.fill(0);
            return None;
        }
        let mut error = None;
        let unread = &mut self.unread;
        let filled = fill_readable(file, start, bytes, |lost, e| {
            unread.push(lost);
            error.get_or_insert(e);
        });
        bytes[filled..].fill(0);
        error
    }
}

/// The length of a file compared with its recorded one.
fn len_of(open: Option<&(u32, File)>, size: u64) -> Len {
    let len = open.and_then(|(_, file)| file.metadata().ok()).map_or(size, |meta| meta.len());
    match len.cmp(&size) {
        Ordering::Equal => Len::Same,
        Ordering::Greater => Len::More,
        Ordering::Less => Len::Fewer,
    }
}

//! Entries of a catalog: files, folders and links, and the positions of the files' bytes.

use super::varint::{Bytes, put, put_step};
use crate::digest::{Digest, HashKind};
use crate::error::FormatError;
use std::ops::Range;

/// The most bytes of a path.
pub(super) const MAX_PATH: u64 = 4096;
/// The most bytes of a part of a path.
const MAX_PART: usize = 255;
/// The most bytes of the target of a link.
const MAX_TARGET: u64 = 4095;

/// The most bytes of paths for each byte of entries in a catalog: more than trees of files have, and too few for a
/// small catalog to fill a reader's memory.
const PATHS_FACTOR: usize = 32;
/// Bytes of paths that are always allowed.
const PATHS_LEAST: usize = 1 << 16;

const KIND_MASK: u8 = 0x0f;
const FLAG_EXECUTABLE: u8 = 0x10;
const FLAG_SHA256: u8 = 0x20;
const FLAG_ZEROS: u8 = 0x40;
/// The most bytes of zeros without positions in all files: work on them follows no bytes of the catalog.
pub const MOST_ZEROS: u64 = 1 << 46;

/// A protected file, folder or link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The path relative to the base, with `/` between its parts; any bytes but NUL.
    pub path: Box<[u8]>,
    /// The kind of the entry.
    pub kind: EntryKind,
}

/// The kind of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File(FileEntry),
    /// A folder.
    Folder,
    /// A symbolic link and its target.
    Symlink(Box<[u8]>),
    /// Another name of the file with this entry number.
    HardLink(u32),
}

/// A regular file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEntry {
    /// Bytes of the file.
    pub size: u64,
    /// The digest that `b3sum` prints.
    pub blake3: Digest,
    /// The digest that `sha256sum` prints, if it was asked for.
    pub sha256: Option<Box<Digest>>,
    /// True if the owner may execute the file.
    pub is_executable: bool,
    /// The positions of the whole blocks, in order. A block that is in no run is zeros.
    pub runs: Vec<Run>,
    /// The address, in the packed space, of the tail behind the whole blocks; 0 without a tail.
    pub tail: u64,
}

/// Successive blocks of a file at successive positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Run {
    /// The number of the first block in the file.
    pub block: u64,
    /// The first position.
    pub start: u64,
    /// The number of positions, at least 1.
    pub count: u64,
}

/// Bytes of a file for each anchor, unless a block has more.
pub const ANCHOR_EVERY: u64 = 1 << 16;

/// Tells whether the whole block at this offset of a file has an anchor.
pub fn has_anchor(offset: u64) -> bool {
    offset.is_multiple_of(ANCHOR_EVERY)
}

impl FileEntry {
    /// The number of whole blocks with an anchor.
    pub fn anchors(&self, block: u64) -> u64 {
        let step = (ANCHOR_EVERY / block).max(1);
        self.runs.iter().map(|run| (run.block + run.count).div_ceil(step) - run.block.div_ceil(step)).sum()
    }

    /// The whole blocks by their numbers, in order, each part with its first position; `None` for zeros.
    pub fn parts(&self, block: u64) -> impl Iterator<Item = (Range<u64>, Option<u64>)> {
        let end = Run { block: FileEntry::whole_blocks(self.size, block), start: 0, count: 0 };
        let mut next = 0;
        let parts = self.runs.iter().copied().chain([end]).flat_map(move |run| {
            let zeros = next..run.block;
            next = run.block + run.count;
            [(zeros, None), (run.block..next, Some(run.start))]
        });
        parts.filter(|(blocks, _)| !blocks.is_empty())
    }

    /// The numbers of the whole blocks that are zeros, without positions.
    pub fn zeros(&self, block: u64) -> impl Iterator<Item = Range<u64>> {
        self.parts(block).filter(|(_, start)| start.is_none()).map(|(blocks, _)| blocks)
    }

    /// The number of whole blocks of a file of `size` bytes.
    pub fn whole_blocks(size: u64, block: u64) -> u64 {
        if size > block { size / block } else { 0 }
    }

    /// Bytes behind the whole blocks.
    pub fn tail_len(&self, block: u64) -> u64 {
        self.size - FileEntry::whole_blocks(self.size, block) * block
    }
}

/// The state that the next entry continues: the last path, and the ends of the last run and of the last tail.
#[derive(Debug, Default)]
pub(super) struct Cursor<'a> {
    path: &'a [u8],
    whole: u64,
    packed: u64,
}

/// The expected starts of the next run and of the next tail.
struct Cursors<'a>(&'a mut u64, &'a mut u64);

impl<'a> Cursor<'a> {
    /// Appends an entry.
    pub(super) fn put(&mut self, entry: &'a Entry, block: u64, out: &mut Vec<u8>) {
        let shared = self.path.iter().zip(&entry.path).take_while(|(a, b)| a == b).count();
        self.path = &entry.path;
        put(out, shared as u64);
        put(out, (entry.path.len() - shared) as u64);
        out.extend_from_slice(&entry.path[shared..]);
        match &entry.kind {
            EntryKind::File(file) => {
                let executable = if file.is_executable { FLAG_EXECUTABLE } else { 0 };
                let has_zeros = file.zeros(block).next().is_some();
                let zeros = if has_zeros { FLAG_ZEROS } else { 0 };
                out.push(executable | zeros | if file.sha256.is_some() { FLAG_SHA256 } else { 0 });
                put(out, file.size);
                out.extend_from_slice(&file.blake3);
                file.sha256.iter().for_each(|digest| out.extend_from_slice(digest.as_slice()));
                if FileEntry::whole_blocks(file.size, block) > 0 {
                    put(out, file.parts(block).count() as u64);
                }
                for (blocks, start) in file.parts(block) {
                    let count = blocks.end - blocks.start;
                    let Some(start) = start else {
                        put(out, count * 2 + 1);
                        continue;
                    };
                    if has_zeros {
                        put(out, count * 2);
                    }
                    put_step(out, self.whole, start);
                    if !has_zeros {
                        put(out, count);
                    }
                    self.whole = start + count;
                }
                let tail = file.tail_len(block);
                if tail > 0 {
                    put_step(out, self.packed, file.tail);
                    self.packed = file.tail + tail;
                }
            }
            EntryKind::Folder => out.push(1),
            EntryKind::Symlink(target) => {
                out.push(2);
                put(out, target.len() as u64);
                out.extend_from_slice(target);
            }
            EntryKind::HardLink(of) => {
                out.push(3);
                put(out, u64::from(*of));
            }
        }
    }
}

/// The most bytes of all paths in a catalog with so many bytes of entries.
pub fn most_paths(entries: usize) -> usize {
    entries.saturating_mul(PATHS_FACTOR).saturating_add(PATHS_LEAST)
}

/// Tells whether an entry may have this path.
pub fn is_path(path: &[u8]) -> bool {
    path.len() as u64 <= MAX_PATH && check_path(path, b"").is_ok()
}

/// Reads all entries, and checks each by itself.
pub(super) fn parse(bytes: &[u8], count: u32, block: u64) -> Result<Vec<Entry>, FormatError> {
    let (mut whole, mut packed) = (0, 0);
    let mut paths_left = most_paths(bytes.len());
    let mut zeros_left = MOST_ZEROS;
    let mut rest = Bytes(bytes);
    let mut entries: Vec<Entry> = Vec::new();
    for _ in 0..count {
        let before = entries.last().map_or(&[][..], |entry| &entry.path);
        let path = path(&mut rest, before)?;
        paths_left = paths_left.checked_sub(path.len()).ok_or(FormatError::CriticalCatalog {
            what: "paths that take more bytes than",
            value: (bytes.len() as u64).saturating_mul(PATHS_FACTOR as u64),
        })?;
        let [kind] = rest.array()?;
        // The kind is checked before the path: a kind of a later version is no damage.
        if !is_known(kind) {
            return Err(FormatError::CriticalCatalog { what: "an entry of kind", value: kind.into() });
        }
        check_path(&path, before)?;
        let kind = match kind & KIND_MASK {
            0 => {
                let file = file(&mut rest, kind, Cursors(&mut whole, &mut packed), block)?;
                let zeros: u64 = file.zeros(block).map(|zeros| (zeros.end - zeros.start) * block).sum();
                zeros_left = zeros_left.checked_sub(zeros).ok_or(FormatError::CriticalCatalog {
                    what: "zeros of more bytes than",
                    value: MOST_ZEROS,
                })?;
                EntryKind::File(file)
            }
            1 => EntryKind::Folder,
            2 => {
                let len = rest.count(MAX_TARGET)?;
                let target = rest.take(len)?;
                if target.is_empty() || target.contains(&0) {
                    return Err(FormatError::Catalog("the target of a link is none"));
                }
                EntryKind::Symlink(target.into())
            }
            _ => {
                let of = rest.varint()?;
                let file = usize::try_from(of).ok().and_then(|of| entries.get(of));
                if !matches!(file, Some(Entry { kind: EntryKind::File(_), .. })) {
                    return Err(FormatError::Catalog("a hard link leads to no file before it"));
                }
                EntryKind::HardLink(of as u32)
            }
        };
        entries.push(Entry { path, kind });
    }
    if !rest.0.is_empty() {
        return Err(FormatError::Catalog("bytes are left behind the last entry"));
    }
    // The vector grew by doubling.
    entries.shrink_to_fit();
    Ok(entries)
}

/// Tells whether version 1 has this kind, with these flags.
fn is_known(kind: u8) -> bool {
    match kind & KIND_MASK {
        0 => kind & !(FLAG_EXECUTABLE | FLAG_SHA256 | FLAG_ZEROS) == 0,
        _ => kind <= 3,
    }
}

/// The path of the entry that follows the path `before`, unchecked.
fn path(rest: &mut Bytes<'_>, before: &[u8]) -> Result<Box<[u8]>, FormatError> {
    let shared = rest.count(before.len() as u64)?;
    let len = rest.count(MAX_PATH - shared as u64)?;
    Ok([&before[..shared], rest.take(len)?].concat().into())
}

/// Checks that a path consists of names within the base, and comes after `before`.
pub(super) fn check_path(path: &[u8], before: &[u8]) -> Result<(), FormatError> {
    check_names(path, MAX_PART, before)
}

/// As [`check_path`], with names of up to `most` bytes.
pub(super) fn check_names(path: &[u8], most: usize, before: &[u8]) -> Result<(), FormatError> {
    let is_part = |part: &[u8]| !matches!(part, b"" | b"." | b"..") && part.len() <= most;
    if path.contains(&0) || !path.split(|b| *b == b'/').all(is_part) {
        return Err(FormatError::Catalog("a path is not one of names within the base"));
    }
    if path <= before {
        return Err(FormatError::Catalog("the paths are not in order"));
    }
    Ok(())
}

fn file(rest: &mut Bytes<'_>, kind: u8, cursors: Cursors<'_>, block: u64) -> Result<FileEntry, FormatError> {
    let Cursors(whole, packed) = cursors;
    let size = rest.varint()?;
    let blake3 = rest.array()?;
    let sha256 = if kind & FLAG_SHA256 != 0 { Some(Box::new(rest.array()?)) } else { None };
    let is_executable = kind & FLAG_EXECUTABLE != 0;
    let blocks = FileEntry::whole_blocks(size, block);
    let runs = if blocks > 0 { runs(rest, kind, whole, blocks)? } else { Vec::new() };
    let mut file = FileEntry { size, blake3, sha256, is_executable, runs, tail: 0 };
    if kind & FLAG_ZEROS != 0 && file.zeros(block).next().is_none() {
        return Err(FormatError::Catalog("a file has no zeros where it should"));
    }
    if size == 0 && blake3 != HashKind::Blake3.digest(b"") {
        return Err(FormatError::Catalog("an empty file has the digest of another"));
    }
    let tail = file.tail_len(block);
    if tail > 0 {
        file.tail = rest.step(*packed)?;
        *packed = file.tail.checked_add(tail).filter(|end| *end < 1 << 62).ok_or(RUNS)?;
        if file.tail / block != (*packed - 1) / block {
            return Err(FormatError::Catalog("a tail lies in two positions"));
        }
    }
    Ok(file)
}

/// Reads the runs of `blocks` whole blocks.
fn runs(rest: &mut Bytes<'_>, kind: u8, whole: &mut u64, blocks: u64) -> Result<Vec<Run>, FormatError> {
    let may_be_zeros = kind & FLAG_ZEROS != 0;
    // A run takes at least two bytes, one of zeros at least one.
    let most = rest.0.len() as u64 / if may_be_zeros { 1 } else { 2 };
    let count = rest.count(most.min(blocks))?;
    let mut block = 0;
    let mut runs = Vec::new();
    if !may_be_zeros {
        runs.reserve_exact(count);
    }
    for _ in 0..count {
        let (is_zeros, start, count) = if may_be_zeros {
            let count = rest.varint()?;
            let is_zeros = count % 2 == 1;
            (is_zeros, if is_zeros { *whole } else { rest.step(*whole)? }, count / 2)
        } else {
            (false, rest.step(*whole)?, rest.varint()?)
        };
        if count == 0 || count > blocks - block {
            return Err(RUNS);
        }
        if !is_zeros {
            *whole = start.checked_add(count).filter(|end| *end < 1 << 62).ok_or(RUNS)?;
            runs.push(Run { block, start, count });
        }
        block += count;
    }
    // Without the flag all blocks have positions.
    if block < blocks {
        return Err(RUNS);
    }
    runs.shrink_to_fit();
    Ok(runs)
}

const RUNS: FormatError = FormatError::Catalog("the runs of a file are not its blocks");

//! Finds what takes no positions: whole blocks of zeros, and files that have the bytes of others.

use crate::catalog::hashing::{hash_file, is_zeros};
use crate::catalog::holes::{next_data, next_hole};
use crate::catalog::plan::{Content, add_blocks};
use crate::catalog::samples;
use crate::catalog::seen::Seen;
use crate::protect::coding::admit;
use fec_base::context::Context;
use fec_base::error::{Action, Result};
use fec_base::io::ReadAt;
use fec_base::io::base::Base;
use fec_base::threads::Threads;
use fec_core::digest::{Digest, HashKind};
use fec_core::executor::{Executor, into_value, lock};
use fec_core::format::sidecar::{Entry, EntryKind, FileEntry, MOST_ZEROS};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Mutex;

/// Files below this size are searched only for holes.
const LARGE: u64 = 1 << 20;
/// Bytes that are read at a time.
const PIECE: u64 = 1 << 20;
/// The largest files that are not worth a comparison.
const SMALL: u64 = 4096;
/// The first bytes of files, which tell most of them apart.
const BEGINNING: u64 = 64 << 10;

/// The search in files that were found.
pub(crate) struct Contents<'a> {
    pub(crate) base: &'a Base,
    pub(crate) entries: &'a [Entry],
    /// The entries as they were found. Those that fail are noted there, and left as they are.
    pub(crate) seen: &'a Seen,
    pub(crate) block: u64,
    pub(crate) context: &'a Context<'a>,
}

impl Contents<'_> {
    /// Searches these files. They may have the bytes of each other, and of `old` ones, whose digests are known.
    pub(crate) fn find(&self, files: &[usize], old: &HashMap<(u64, Digest), usize>) -> Result<Content> {
        let files: Vec<usize> = files.iter().copied().filter(|nth| self.seen.has(*nth)).collect();
        Ok(Content { zeros: self.zeros(&files)?, twins: self.twins(&files, old)?, ..Content::default() })
    }

    fn file(&self, nth: usize) -> Option<&FileEntry> {
        match &self.entries[nth].kind {
            EntryKind::File(file) => Some(file),
            _ => None,
        }
    }

    fn size(&self, nth: usize) -> u64 {
        self.file(nth).map_or(0, |file| file.size)
    }

    fn zeros(&self, files: &[usize]) -> Result<HashMap<usize, Vec<Range<u64>>>> {
        let has_blocks = |nth: &usize| FileEntry::whole_blocks(self.size(*nth), self.block) > 0;
        let files: Vec<usize> = files.iter().copied().filter(has_blocks).collect();
        let mut left = MOST_ZEROS;
        let mut all = HashMap::new();
        for (nth, mut zeros) in self.on_all(&files, |nth| self.zeros_of(nth))? {
            // Zeros that a reader would refuse take positions.
            zeros.retain(|range| {
                let rest = left.checked_sub((range.end - range.start) * self.block);
                left = rest.unwrap_or(left);
                rest.is_some()
            });
            if !zeros.is_empty() {
                all.insert(nth, zeros);
            }
        }
        Ok(all)
    }

    /// The whole blocks of zeros of a file: its holes, and all others if one of a few blocks is of zeros.
    // The integer types differ between systems.
    #[allow(clippy::unnecessary_cast)]
    fn zeros_of(&self, nth: usize) -> io::Result<Vec<Range<u64>>> {
        let (size, block) = (self.size(nth), self.block);
        let on_disk = (self.base.stat(&self.entries[nth].path)?.st_blocks as u64).saturating_mul(512);
        if on_disk >= size && size < LARGE {
            return Ok(Vec::new());
        }
        let file = self.open(nth)?;
        let whole = FileEntry::whole_blocks(size, block);
        let holes = if on_disk < size { holes(&file, whole, block) } else { Vec::new() };
        let mut bytes = vec![0; block as usize];
        for nth in samples::numbers(if size >= LARGE { whole } else { 0 }) {
            let hole = holes.partition_point(|hole: &Range<u64>| hole.end <= nth);
            if holes.get(hole).is_some_and(|hole| hole.start <= nth) {
                continue;
            }
            file.read_exact_at(nth * block, &mut bytes)?;
            if is_zeros(&bytes) {
                return self.all_zeros(&file, whole);
            }
        }
        Ok(holes)
    }

    /// The whole blocks of zeros of a file, all of which is read.
    fn all_zeros(&self, file: &File, whole: u64) -> io::Result<Vec<Range<u64>>> {
        let block = self.block;
        let together = (PIECE / block).max(1);
        let mut bytes = vec![0; (together * block) as usize];
        let mut zeros = Vec::new();
        for first in (0..whole).step_by(together as usize) {
            let count = together.min(whole - first);
            let bytes = &mut bytes[..(count * block) as usize];
            if self.context.is_cancelled() {
                break;
            }
            if next_data(file, first * block) >= (first + count) * block {
                add_blocks(&mut zeros, first..first + count);
                continue;
            }
            file.read_exact_at(first * block, bytes)?;
            for (nth, bytes) in (first..).zip(bytes.chunks_exact(block as usize)) {
                if is_zeros(bytes) {
                    add_blocks(&mut zeros, nth..nth + 1);
                }
            }
        }
        Ok(zeros)
    }

    fn twins(&self, files: &[usize], old: &HashMap<(u64, Digest), usize>) -> Result<BTreeMap<usize, usize>> {
        let of_old: HashSet<u64> = old.keys().map(|(size, _)| *size).collect();
        let mut by_size: HashMap<u64, Vec<usize>> = HashMap::new();
        for nth in files.iter().filter(|nth| self.size(**nth) > SMALL) {
            by_size.entry(self.size(*nth)).or_default().push(*nth);
        }
        let is_alike = |size: u64, files: &[usize]| files.len() > 1 || of_old.contains(&size);
        by_size.retain(|size, files| is_alike(*size, files));
        let (long, mut alike): (Vec<_>, Vec<_>) =
            by_size.into_iter().partition(|(size, _)| *size > BEGINNING && !of_old.contains(size));
        let mut by_beginning: HashMap<(u64, Digest), Vec<usize>> = HashMap::new();
        let long: Vec<usize> = long.into_iter().flat_map(|(_, files)| files).collect();
        for (nth, digest) in self.on_all(&long, |nth| self.beginning(nth))? {
            by_beginning.entry((self.size(nth), digest)).or_default().push(nth);
        }
        by_beginning.retain(|_, files| files.len() > 1);
        alike.extend(by_beginning.into_iter().map(|((size, _), files)| (size, files)));
        let mut alike: Vec<usize> = alike.into_iter().flat_map(|(_, files)| files).collect();
        alike.sort_unstable();
        let mut first = old.clone();
        let mut twins = BTreeMap::new();
        let total = alike.iter().map(|nth| self.size(*nth)).sum();
        let meter = self.context.meter(Action::Compare, Some(total));
        let digest = |nth: usize| {
            let count = |_, bytes: &[u8], _: &[Digest]| meter.add(bytes.len() as u64);
            Ok(hash_file(&self.open(nth)?, self.size(nth), self.block, count)?.digest)
        };
        for (nth, digest) in self.on_all(&alike, digest)? {
            let of = *first.entry((self.size(nth), digest)).or_insert(nth);
            if of != nth {
                twins.insert(nth, of);
            }
        }
        meter.finish();
        Ok(twins)
    }

    fn beginning(&self, nth: usize) -> io::Result<Digest> {
        let mut bytes = vec![0; BEGINNING as usize];
        self.open(nth)?.read_exact_at(0, &mut bytes)?;
        Ok(HashKind::Blake3.digest(&bytes))
    }

    fn open(&self, nth: usize) -> io::Result<File> {
        let path = &self.entries[nth].path;
        let file = self.base.read(path)?;
        let silent = self.context.silent();
        admit(self.seen, nth as u32, &file, || self.base.place(path), silent.progress)?;
        Ok(file)
    }

    /// Does a job for each of these files, on all threads. The results come in the order of the entries.
    fn on_all<T: Send>(
        &self,
        files: &[usize],
        job: impl Fn(usize) -> io::Result<T> + Sync,
    ) -> Result<Vec<(usize, T)>> {
        let done: Mutex<Vec<(usize, io::Result<T>)>> = Mutex::default();
        Threads(self.context.settings.threads).run(files.len(), &|at| {
            if !self.context.is_cancelled() {
                let result = job(files[at]);
                lock(&done).push((files[at], result));
            }
        });
        self.context.check(Action::Protect)?;
        let mut done = into_value(done);
        done.sort_unstable_by_key(|(nth, _)| *nth);
        let path = |nth: usize| &self.entries[nth].path;
        let passed = done.into_iter().filter_map(|(nth, done)| match done {
            Ok(done) => Some(Ok((nth, done))),
            Err(e) => self.seen.pass(self.base, path(nth), e).err().map(Err),
        });
        passed.collect()
    }
}

/// The whole blocks in holes of a file.
fn holes(file: &File, whole: u64, block: u64) -> Vec<Range<u64>> {
    let (mut zeros, mut at) = (Vec::new(), 0);
    while at < whole * block {
        let data = next_data(file, at).min(whole * block);
        add_blocks(&mut zeros, at.div_ceil(block)..data / block);
        at = next_hole(file, data).max(data + 1);
    }
    zeros
}

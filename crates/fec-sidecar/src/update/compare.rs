//! Compares each file with the record of it in the old sidecar.

mod doubts;
mod grown;
pub(crate) mod held;

use crate::catalog::hashing::{Hashed, hash_file, hash_on, is_zeros};
use crate::catalog::metadata::Sidecar;
use crate::catalog::plan::add_blocks;
use crate::catalog::proof::Proof;
use crate::catalog::samples::Samples;
use crate::catalog::tree::Tree;
use crate::examine::verdict::{Time, Writer, recorded_time, time_of, writer_of};
use crate::protect::coding::admit;
use fec_base::context::{Context, Gauge};
use fec_base::error::{Action, Result};
use fec_base::io::base::Base;
use fec_base::threads::Threads;
use fec_core::digest::{Digest, HashKind, PlainHasher};
use fec_core::executor::{Executor, into_value, lock};
use fec_core::format::sidecar::catalog::{Catalog, shortened};
use fec_core::format::sidecar::{EntryKind, FileEntry};
use grown::{Start, grown};
use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Mutex;

/// The relation of an entry to the old files.
#[derive(Debug)]
pub(crate) enum Fate {
    /// The entry is no file.
    NoFile,
    /// The entry is this old file, byte for byte as far as times and digests tell.
    Same(u32),
    /// The entry has the path of this old file, and other bytes.
    Changed(u32, Box<Read>),
    /// The entry is none of the old files.
    New,
}

/// Hashes of a file that was compared with an old one.
#[derive(Debug)]
pub(crate) struct Read {
    /// The BLAKE3 of the file.
    pub(crate) digest: Digest,
    /// Whole blocks that have the positions of the old file, by number.
    pub(crate) kept: Vec<Range<u64>>,
    /// Other whole blocks that are zeros.
    pub(crate) zeros: Vec<Range<u64>>,
    /// A hash over the digests of the other whole blocks.
    pub(crate) check: Digest,
    /// The tail, as in [`Hashed`].
    pub(crate) tail: Option<Digest>,
    /// The stack, as in [`Hashed`].
    pub(crate) stack: Vec<Digest>,
    /// True if the file is known to begin with all bytes of the old one.
    pub(crate) continues: bool,
}

/// Compares the present files with the old sidecar.
pub(crate) struct Compare<'a> {
    pub(crate) old: &'a Sidecar,
    pub(crate) base: &'a Base,
    pub(crate) tree: &'a Tree,
    /// True if files only grow: what stands in front of an old end is not read.
    pub(crate) appends: bool,
    pub(crate) context: &'a Context<'a>,
}

/// The size of a file, and its time.
type Looks = (u64, i64, u32);

impl Compare<'_> {
    /// The fates of all entries, and for each old entry whether a present entry is the same. With a root or a
    /// signature, no file in another place is recognized by its time.
    ///
    /// # Errors
    /// Those of files that have to be read.
    pub(crate) fn run(&self) -> Result<(Vec<Fate>, Vec<bool>)> {
        let old = &self.old.catalog.entries;
        let mut taken = vec![false; old.len()];
        let mut fates: Vec<Fate> = Vec::with_capacity(self.tree.entries.len());
        // Files with their old path, size and time.
        for (nth, entry) in self.tree.entries.iter().enumerate() {
            let EntryKind::File(file) = &entry.kind else {
                fates.push(Fate::NoFile);
                continue;
            };
            let is_same = |of: &u32| {
                let looks_same = file.size == 0 || self.looks_unwritten(nth, *of);
                !taken[*of as usize] && self.old_file(*of).size == file.size && looks_same
            };
            match self.old_at(&entry.path).filter(is_same) {
                Some(of) => {
                    taken[of as usize] = true;
                    fates.push(Fate::Same(of));
                }
                None => fates.push(Fate::New),
            }
        }
        self.find_empty(&mut fates, &mut taken);
        if self.old.proof() == Proof::Nothing {
            self.find_by_time(&mut fates, &mut taken)?;
        }
        self.find_by_content(&mut fates, &mut taken)?;
        Ok((fates, taken))
    }

    /// Files with their old path, size and time, but other bytes. All of them are read.
    ///
    /// # Errors
    /// Those of the files.
    pub(crate) fn find_rotten(&self, fates: &[Fate]) -> Result<Vec<Vec<u8>>> {
        let unread = |(nth, fate): (usize, &Fate)| match fate {
            Fate::Same(of)
                if self.size(nth) > 0 && self.tree.seen.has(nth) && self.looks_unwritten(nth, *of) =>
            {
                Some((nth, *of))
            }
            _ => None,
        };
        let unread: Vec<(usize, u32)> = fates.iter().enumerate().filter_map(unread).collect();
        let found = self.check(&unread)?;
        let rotten = unread.iter().zip(found).filter(|(_, tail)| tail.is_none());
        Ok(rotten.map(|((nth, _), _)| self.tree.entries[*nth].path.to_vec()).collect())
    }

    fn old_file(&self, of: u32) -> &FileEntry {
        file(&self.old.catalog, of)
    }

    /// The old file at a path, or the one that a hard link there led to.
    pub(crate) fn old_at(&self, path: &[u8]) -> Option<u32> {
        let entries = &self.old.catalog.entries;
        let at = entries.binary_search_by(|entry| (*entry.path).cmp(path)).ok()?;
        match entries[at].kind {
            EntryKind::File(_) => Some(at as u32),
            EntryKind::HardLink(of) => Some(of),
            _ => None,
        }
    }

    /// Tells whether an entry has the time of an old one, and nothing tells that somebody wrote to it.
    fn looks_unwritten(&self, nth: usize, of: u32) -> bool {
        self.time(nth, of) == Time::Same && self.writer(nth, of) != Writer::Somebody
    }

    /// The time of an entry against that of an old one. A sidecar without marks is taken exactly.
    fn time(&self, nth: usize, of: u32) -> Time {
        let (now, then) = (self.tree.stats[nth], self.old.stats.entries[of as usize]);
        time_of(recorded_time(now), recorded_time(then), !self.old.stats.marks.is_empty())
    }

    /// The traces of a writer in an entry that was an old one. Without a mark on either side there are none.
    fn writer(&self, nth: usize, of: u32) -> Writer {
        self.tree
            .marks
            .get(nth)
            .map_or(Writer::Unknown, |mark| writer_of(|| *mark, self.old.recorded_mark(of as usize)))
    }

    fn looks(&self, nth: usize) -> Looks {
        let stat = self.tree.stats[nth];
        (self.size(nth), stat.seconds, stat.nanos)
    }

    fn old_looks(&self, of: usize) -> Looks {
        let stat = self.old.stats.entries[of];
        (self.old_file(of as u32).size, stat.seconds, stat.nanos)
    }

    /// Old files with bytes that were not found yet.
    fn not_found<'b>(&'b self, taken: &'b [bool]) -> impl Iterator<Item = (usize, &'b FileEntry)> {
        self.old.catalog.files().filter(|(of, file)| !taken[*of] && file.size > 0)
    }

    fn size(&self, nth: usize) -> u64 {
        match &self.tree.entries[nth].kind {
            EntryKind::File(file) => file.size,
            _ => 0,
        }
    }

    /// Takes new empty files for old empty ones that are gone, as far as there are any: all are alike.
    fn find_empty(&self, fates: &mut [Fate], taken: &mut [bool]) {
        let is_gone = |of: &usize| {
            let path = &self.old.catalog.entries[*of].path;
            self.tree.entries.binary_search_by(|entry| entry.path.cmp(path)).is_err()
        };
        let empty = self.old.catalog.files().filter(|(_, file)| file.size == 0).map(|(of, _)| of);
        let left: Vec<usize> = empty.filter(|of| !taken[*of] && is_gone(of)).collect();
        let mut left = left.into_iter();
        for (nth, fate) in fates.iter_mut().enumerate().filter(|(_, fate)| matches!(fate, Fate::New)) {
            if self.size(nth) == 0 && self.old_at(&self.tree.entries[nth].path).is_none() {
                let Some(of) = left.next() else { return };
                taken[of] = true;
                *fate = Fate::Same(of as u32);
            }
        }
    }

    /// Takes a large new file for the only old one with its size and its time to the nanosecond, if it is the only such
    /// new file. The file was moved if blocks from all of it have their digests.
    fn find_by_time(&self, fates: &mut [Fate], taken: &mut [bool]) -> Result<()> {
        /// Smaller files are read whole.
        const LARGE: u64 = 1 << 20;
        /// Old files and new ones with the same size and time.
        type Alike = (Vec<u32>, Vec<usize>);
        let mut alike: HashMap<Looks, Alike> = HashMap::new();
        // All old files count, since an unmoved one may be the source of a copy.
        for (of, _) in self.old.catalog.files().filter(|(_, file)| file.size > LARGE) {
            alike.entry(self.old_looks(of)).or_default().0.push(of as u32);
        }
        for (nth, _) in fates.iter().enumerate().filter(|(_, fate)| !matches!(fate, Fate::NoFile)) {
            if let Some((_, by)) = alike.get_mut(&self.looks(nth)) {
                by.push(nth);
            }
        }
        // Many files may share a time of whole seconds.
        alike.retain(|(_, _, nanos), _| *nanos != 0);
        let only = |(of, by): &Alike| match (&of[..], &by[..]) {
            ([of], [nth]) if !taken[*of as usize] && matches!(fates[*nth], Fate::New) => Some((*of, *nth)),
            _ => None,
        };
        let claims: Vec<(u32, usize)> = alike.values().filter_map(only).collect();
        let found = self.on_all(&claims, |(of, nth)| {
            let file = self.open(*nth)?;
            self.has_blocks_of(&file, self.old_file(*of))
        })?;
        let found = self.all(claims.iter().map(|(_, nth)| *nth).zip(found))?;
        for ((of, nth), is_it) in claims.into_iter().zip(found) {
            if is_it {
                taken[of as usize] = true;
                fates[nth] = Fate::Same(of);
            }
        }
        Ok(())
    }

    /// Reads files that have the path of an old file, or the size of one that was not found.
    fn find_by_content(&self, fates: &mut [Fate], taken: &mut [bool]) -> Result<()> {
        let sizes: HashSet<u64> = self.not_found(taken).map(|(_, file)| file.size).collect();
        let mut jobs: Vec<(usize, Option<u32>)> = Vec::new();
        for (nth, _) in fates.iter().enumerate().filter(|(_, fate)| matches!(fate, Fate::New)) {
            let at = self.old_at(&self.tree.entries[nth].path).filter(|of| !taken[*of as usize]);
            if self.size(nth) > 0 && (at.is_some() || sizes.contains(&self.size(nth))) {
                jobs.push((nth, at));
            }
        }
        if jobs.is_empty() {
            return Ok(());
        }
        let total = jobs.iter().map(|(nth, _)| self.size(*nth)).sum();
        let meter = self.context.meter(Action::Compare, Some(total));
        let found = self.on_all(&jobs, |(nth, at)| self.read(*nth, *at, &meter))?;
        meter.finish();
        let found = self.all(jobs.iter().map(|(nth, _)| *nth).zip(found))?;
        // Digests decide, first for files with their old paths.
        let mut left = Vec::new();
        for ((nth, at), read) in jobs.into_iter().zip(found) {
            match at.filter(|of| self.old_file(*of).blake3 == read.digest && !taken[*of as usize]) {
                Some(of) => {
                    taken[of as usize] = true;
                    fates[nth] = Fate::Same(of);
                }
                None => left.push((nth, at, read)),
            }
        }
        // Files with equal bytes are matched in the order of their paths.
        let mut by_digest: HashMap<Digest, VecDeque<u32>> = HashMap::new();
        for (of, file) in self.not_found(taken) {
            by_digest.entry(file.blake3).or_default().push_back(of as u32);
        }
        let mut changed = Vec::new();
        for (nth, at, read) in left {
            match by_digest.get_mut(&read.digest).and_then(VecDeque::pop_front) {
                Some(of) => {
                    taken[of as usize] = true;
                    fates[nth] = Fate::Same(of);
                }
                None => changed.push((nth, at, read)),
            }
        }
        for (nth, at, read) in changed {
            if let Some(of) = at.filter(|of| !taken[*of as usize]) {
                taken[of as usize] = true;
                fates[nth] = Fate::Changed(of, Box::new(read));
            }
        }
        Ok(())
    }

    /// Tells whether blocks from all of a file are those of an old one.
    fn has_blocks_of(&self, file: &File, of: &FileEntry) -> io::Result<bool> {
        let samples = Samples::of(file, of.size, self.old.catalog.block)?;
        Ok(samples.same_as(self.old, of) == samples.len())
    }

    /// Reads a file, and compares it block by block with an old one.
    fn read(&self, nth: usize, at: Option<u32>, meter: &Gauge<'_>) -> io::Result<Read> {
        let block = u64::from(self.old.catalog.block);
        let file = self.open(nth)?;
        let old = at.map(|of| self.old_file(of));
        let grown = match at.filter(|of| self.appends && self.old_file(*of).size < self.size(nth)) {
            Some(of) => grown(self.old, &file, of)?,
            None => None,
        };
        let continues = grown.is_some();
        let Start { first, tree, mut kept, mut zeros } = grown.unwrap_or_default();
        meter.add(first * block);
        let mut expected = old.map(|old| self.old.digests_of_file(old, first)).into_iter().flatten();
        let mut others = PlainHasher::new(HashKind::Blake3);
        let size = (self.size(nth), block);
        let Hashed { digest, tail, stack } = hash_on(&file, size, tree, |first, bytes, values| {
            let blocks = values.iter().zip(bytes.chunks_exact(block as usize));
            for (nth, (value, bytes)) in (first..).zip(blocks) {
                let value = shortened(value);
                if expected.next() == Some(Some(value)) {
                    add_blocks(&mut kept, nth..nth + 1);
                } else if is_zeros(bytes) {
                    add_blocks(&mut zeros, nth..nth + 1);
                } else {
                    others.update(&value);
                }
            }
            meter.add(bytes.len() as u64);
        })?;
        meter.add(self.size(nth) % block);
        Ok(Read { digest, kept, zeros, check: others.finish(), tail, stack, continues })
    }

    /// Hashes files that should be unchanged. Returns the tail of each unchanged file, and `None` for the others.
    pub(crate) fn check(&self, entries: &[(usize, u32)]) -> Result<Vec<Option<Option<Digest>>>> {
        let block = u64::from(self.old.catalog.block);
        let found = self.on_all(entries, |(nth, of)| {
            let hashed = hash_file(&self.open(*nth)?, self.size(*nth), block, |_, _, _| ())?;
            Ok((hashed.digest == self.old_file(*of).blake3).then_some(hashed.tail))
        })?;
        self.all(entries.iter().map(|(nth, _)| *nth).zip(found))
    }

    fn open(&self, nth: usize) -> io::Result<File> {
        let path = &self.tree.entries[nth].path;
        let file = self.base.read(path)?;
        admit(&self.tree.seen, nth as u32, &file, || self.base.place(path), self.context.progress)?;
        Ok(file)
    }

    /// The results for all entries. Those that failed are noted.
    ///
    /// # Errors
    /// That of the last entry that failed.
    fn all<T>(&self, found: impl Iterator<Item = (usize, io::Result<T>)>) -> Result<Vec<T>> {
        let (mut all, mut failed) = (Vec::new(), Ok(()));
        for (nth, found) in found {
            match found {
                Ok(found) => all.push(found),
                Err(e) => failed = Err(self.tree.seen.fail(self.base, &self.tree.entries[nth].path, e)),
            }
        }
        failed.map(|()| all)
    }

    /// Does a job for each item, on all threads.
    fn on_all<J: Sync, T: Send>(
        &self,
        jobs: &[J],
        job: impl Fn(&J) -> io::Result<T> + Sync,
    ) -> Result<Vec<io::Result<T>>> {
        let done: Mutex<Vec<(usize, io::Result<T>)>> = Mutex::default();
        Threads(self.context.settings.threads).run(jobs.len(), &|nth| {
            if self.context.is_cancelled() {
                return;
            }
            let result = job(&jobs[nth]);
            lock(&done).push((nth, result));
        });
        self.context.check(Action::Update)?;
        let mut done = into_value(done);
        done.sort_unstable_by_key(|(nth, _)| *nth);
        Ok(done.into_iter().map(|(_, result)| result).collect())
    }
}

/// The file of an entry.
///
/// # Panics
/// If the entry is no file.
pub(crate) fn file(catalog: &Catalog, nth: u32) -> &FileEntry {
    match &catalog.entries[nth as usize].kind {
        EntryKind::File(file) => file,
        _ => unreachable!("only files are compared"),
    }
}

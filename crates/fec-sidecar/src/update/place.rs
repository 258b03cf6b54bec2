//! The assignment of bytes to shards after an update: unchanged bytes keep their positions, and the others get new ones
//! behind all old ones.

use super::compare::{Fate, file};
use super::kept::Kept;
use crate::catalog::bits::Bits;
use crate::catalog::hashing::plain_digests;
use crate::catalog::metadata::Sidecar;
use crate::catalog::plan::{Bins, COMPANIES, Content, runs_between, share};
use crate::catalog::positions::{
    self, Any, PositionReader, Positions, anchored, cut_shared, runs_of, shared_tails,
};
use crate::catalog::sources::Sources;
use fec_base::io::base::Base;
use fec_core::digest::{Digest, HashKind, blocks};
use fec_core::format::sidecar::catalog::{Catalog, ShortDigest};
use fec_core::format::sidecar::{Entry, EntryKind, FileEntry, Run};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

/// The tails that have to be coded anew, and those that need not be.
#[derive(Debug, Default)]
pub(crate) struct Tails {
    /// Entries of changed files whose tails are unchanged.
    pub(crate) kept: HashSet<usize>,
    /// Unchanged files whose tails share a position with lost bytes, or lie in one that is given up: the entries, and
    /// the old files. These have to be read.
    pub(crate) displaced: Vec<(usize, u32)>,
    /// Such files whose old position still has all of its bytes, which proves their tails: the entries, with the values
    /// of the tails.
    pub(crate) proved: Vec<(usize, Digest)>,
}

/// The old positions, as they stand at the old paths now, or where their files have gone.
struct Standing<'a> {
    old: &'a Sidecar,
    reader: PositionReader<'a>,
    bytes: Vec<u8>,
    /// The position that is in `bytes`, and has its digest.
    at: Option<u64>,
    broken: HashSet<u64>,
}

impl Standing<'_> {
    /// The bytes of a position, if they have its digest. Many tails may share a position, and follow each other.
    fn intact(&mut self, position: u64) -> Option<&[u8]> {
        if self.broken.contains(&position) {
            return None;
        }
        if self.at != Some(position) {
            let read = self.reader.fill(position, &mut self.bytes, |_, e| Err(e));
            let block = self.bytes.len();
            if read.is_err() || plain_digests(&self.bytes, block)[0] != self.old.digest_of(position) {
                self.broken.insert(position);
                self.at = None;
                return None;
            }
            self.at = Some(position);
        }
        Some(&self.bytes)
    }

    /// The value of the tail of an old file, if its position is intact.
    fn tail(&mut self, file: &FileEntry) -> Option<Digest> {
        let block = self.bytes.len() as u64;
        let bytes = self.intact(file.tail / block)?;
        let len = file.tail_len(block);
        let tail = &bytes[(file.tail % block) as usize..][..len as usize];
        Some(match file.size - len {
            0 => HashKind::Blake3.digest(tail),
            offset => blocks::tail_value(tail, offset),
        })
    }
}

impl Tails {
    /// Finds the tails that change their positions, and those that could but do not. `entries` are the present ones,
    /// and the positions `weak` are given up.
    pub(crate) fn of(
        old: &Sidecar,
        (base, sources): (&Base, &Sources),
        fates: &[Fate],
        entries: &[Entry],
        weak: &[Range<u64>],
    ) -> Tails {
        let (mut tails, catalog) = (Tails::default(), &old.catalog);
        let positions = Positions::of(catalog);
        let standing = |places| {
            let reader = PositionReader::new(base, catalog, &positions, places);
            let bytes = vec![0; catalog.block as usize];
            Standing { old, reader, bytes, at: None, broken: HashSet::new() }
        };
        // A changed file has its tail only if that stands at its path. The tail of an unchanged one may be proved by
        // others that have left.
        let lives = tails.find_kept(catalog, fates, entries, &mut standing(&Any));
        tails.find_displaced(catalog, fates, (&lives, weak), &mut standing(sources));
        tails
    }

    /// Finds the changed files with unchanged tails. Returns the old files whose tails are still there.
    fn find_kept(
        &mut self,
        catalog: &Catalog,
        fates: &[Fate],
        entries: &[Entry],
        standing: &mut Standing<'_>,
    ) -> HashSet<u32> {
        let block = u64::from(catalog.block);
        let shared = shared_tails(catalog);
        let mut lives = HashSet::new();
        for (nth, fate) in fates.iter().enumerate() {
            match fate {
                Fate::Same(of) => {
                    lives.insert(*of);
                }
                Fate::Changed(of, _) => {
                    let old = file(catalog, *of);
                    // The tail is read at the old path, where another name of the file may not be.
                    let stands_there = entries[nth].path == catalog.entries[*of as usize].path;
                    let has_size =
                        matches!(&entries[nth].kind, EntryKind::File(file) if file.size == old.size);
                    // Another file gives the bytes of a shared position, and tells nothing of this one.
                    let is_alone = old.tail_len(block) > 0 && !shared.contains(&old.tail);
                    let is_there = stands_there && has_size && is_alone;
                    if is_there && standing.intact(old.tail / block).is_some() {
                        self.kept.insert(nth);
                        lives.insert(*of);
                    }
                }
                _ => {}
            }
        }
        lives
    }

    /// Finds the tails whose positions have lost bytes, or are given up. `lives` has the old files whose tails are
    /// still there.
    fn find_displaced(
        &mut self,
        catalog: &Catalog,
        fates: &[Fate],
        (lives, weak): (&HashSet<u32>, &[Range<u64>]),
        standing: &mut Standing<'_>,
    ) {
        let block = u64::from(catalog.block);
        let tails = catalog.files().filter(|(_, file)| file.tail_len(block) > 0);
        let (living, gone): (Vec<_>, Vec<_>) = tails.partition(|(nth, _)| lives.contains(&(*nth as u32)));
        // The bytes of a file that is gone are there while another one has them.
        let living: HashSet<u64> = living.into_iter().map(|(_, file)| file.tail).collect();
        let gone = gone.into_iter().filter(|(_, file)| !living.contains(&file.tail));
        let broken: HashSet<u64> = gone.map(|(_, file)| file.tail / block).collect();
        for (nth, fate) in fates.iter().enumerate() {
            let is_displaced = |of: u32| {
                let file = file(catalog, of);
                let position = file.tail / block;
                file.tail_len(block) > 0 && (broken.contains(&position) || is_in(weak, position))
            };
            match fate {
                Fate::Same(of) if is_displaced(*of) => match standing.tail(file(catalog, *of)) {
                    Some(tail) => self.proved.push((nth, tail)),
                    None => self.displaced.push((nth, *of)),
                },
                Fate::Changed(of, _) if is_displaced(*of) => {
                    self.kept.remove(&nth);
                }
                _ => {}
            }
        }
    }
}

/// Hashes that coding must find again, to prove that it reads the same bytes as the comparison.
#[derive(Debug, Default)]
pub(crate) struct Expected {
    /// The hash over the digests of the new blocks, if some blocks of the file are old.
    pub(crate) check: Option<Digest>,
    /// Old blocks that get new positions, by number, with their digests.
    pub(crate) displaced: HashMap<u64, ShortDigest>,
    /// The hash of the tail.
    pub(crate) tail: Option<Digest>,
}

/// Entries with all their positions.
pub(crate) struct Placed {
    pub(crate) entries: Vec<Entry>,
    /// The number of new positions.
    pub(crate) positions: u64,
    /// The expected hashes, by entry.
    pub(crate) expected: HashMap<usize, Expected>,
}

/// Files that go on sharing their places: each entry, and the first one with these.
pub(crate) fn shared(old: &Catalog, fates: &[Fate]) -> BTreeMap<usize, usize> {
    let block = old.block.into();
    let mut first: HashMap<(Option<u64>, u64), (usize, &FileEntry)> = HashMap::new();
    let mut shared = BTreeMap::new();
    for (nth, fate) in fates.iter().enumerate() {
        let Fate::Same(of) = fate else { continue };
        let file = file(old, *of);
        let start = file.runs.first().map(|run| run.start);
        if start.is_none() && file.tail_len(block) == 0 {
            continue;
        }
        let (twin, of) = *first.entry((start, file.tail)).or_insert((nth, file));
        if twin != nth && (of.size, &of.runs) == (file.size, &file.runs) {
            shared.insert(nth, twin);
        }
    }
    shared
}

/// Tells whether a position lies in one of these ranges, which ascend.
fn is_in(ranges: &[Range<u64>], position: u64) -> bool {
    touches(ranges, &Run { block: 0, start: position, count: 1 })
}

/// Tells whether any position of a run lies in one of these ranges, which ascend.
fn touches(ranges: &[Range<u64>], run: &Run) -> bool {
    let at = ranges.partition_point(|range| range.end <= run.start);
    ranges.get(at).is_some_and(|range| range.start < run.start + run.count)
}

/// Assigns positions to all bytes of files. `displaced` has the tails of unchanged files that need new positions, by
/// entry. No byte stays in the positions `weak`.
pub(crate) fn place(
    old: &Sidecar,
    mut entries: Vec<Entry>,
    fates: &[Fate],
    tails: &Tails,
    (displaced, content): (&HashMap<usize, Option<Digest>>, &Content),
    weak: &[Range<u64>],
) -> Placed {
    let block = u64::from(old.catalog.block);
    let first = old.catalog.positions();
    let mut placing = Placing { old, tails, displaced, content, weak, next: first };
    let mut expected: HashMap<usize, Expected> = HashMap::new();
    for (nth, (entry, fate)) in entries.iter_mut().zip(fates).enumerate() {
        if let EntryKind::File(file) = &mut entry.kind {
            expected.extend(placing.place_blocks(nth, file, fate).map(|expect| (nth, expect)));
        }
    }
    for company in COMPANIES {
        let mut bins = Bins::new(block, placing.next, company);
        for (nth, (entry, fate)) in entries.iter_mut().zip(fates).enumerate() {
            let EntryKind::File(file) = &mut entry.kind else { continue };
            let is_new = !content.twins.contains_key(&nth)
                && match fate {
                    Fate::NoFile => false,
                    Fate::Same(_) => displaced.contains_key(&nth),
                    Fate::Changed(..) => !tails.kept.contains(&nth),
                    Fate::New => true,
                };
            let len = file.tail_len(block);
            if is_new && len > 0 && content.apart.get(&nth).copied() == company {
                file.tail = bins.take(len);
            }
        }
        placing.next += bins.filled.len() as u64;
    }
    share(&mut entries, &content.twins);
    cut_shared(&mut entries);
    Placed { entries, positions: placing.next - first, expected }
}

/// The assignment of positions to whole blocks.
struct Placing<'a> {
    old: &'a Sidecar,
    tails: &'a Tails,
    displaced: &'a HashMap<usize, Option<Digest>>,
    content: &'a Content,
    weak: &'a [Range<u64>],
    /// The first position that holds nothing yet.
    next: u64,
}

impl Placing<'_> {
    /// Assigns positions to the whole blocks of a file, and takes over what the old sidecar has of it. Returns the
    /// hashes that coding must find again, if it comes to the file.
    fn place_blocks(&mut self, nth: usize, new: &mut FileEntry, fate: &Fate) -> Option<Expected> {
        let old = &self.old.catalog;
        let whole = FileEntry::whole_blocks(new.size, old.block.into());
        match fate {
            Fate::NoFile => None,
            Fate::Same(of) => {
                let was = file(old, *of);
                *new = FileEntry { is_executable: new.is_executable, ..was.clone() };
                if self.content.twins.contains_key(&nth) {
                    return None;
                }
                let tail = self.displaced.get(&nth).copied().flatten();
                let mut expect = Expected { tail, ..Expected::default() };
                if was.runs.iter().any(|run| touches(self.weak, run)) {
                    new.runs = self.runs(was, std::slice::from_ref(&(0..whole)), &[], whole, &mut expect);
                }
                let is_coded = self.displaced.contains_key(&nth) || !expect.displaced.is_empty();
                is_coded.then_some(expect)
            }
            Fate::Changed(of, read) => {
                let was = file(old, *of);
                new.blake3 = read.digest;
                let mut expect = Expected::default();
                new.runs = self.runs(was, &read.kept, &read.zeros, whole, &mut expect);
                if self.tails.kept.contains(&nth) {
                    new.tail = was.tail;
                }
                let tail = read.tail.filter(|_| !self.tails.kept.contains(&nth));
                Some(Expected { check: Some(read.check), tail, ..expect })
            }
            Fate::New => {
                if !self.content.twins.contains_key(&nth) {
                    let zeros = self.content.zeros.get(&nth).map_or(&[][..], |zeros| zeros);
                    new.runs = runs_between(whole, zeros, &mut self.next);
                }
                None
            }
        }
    }

    /// The runs of a file of `whole` whole blocks. Blocks in `kept` stay in their positions, except in weak ones:
    /// `expect` gets the numbers and digests of those.
    fn runs(
        &mut self,
        was: &FileEntry,
        kept: &[Range<u64>],
        zeros: &[Range<u64>],
        whole: u64,
        expect: &mut Expected,
    ) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        let mut push = |block: u64, start: u64, count: u64| match runs.last_mut() {
            Some(last) if last.start + last.count == start && last.block + last.count == block => {
                last.count += count;
            }
            _ => runs.push(Run { block, start, count }),
        };
        let kept = kept.iter().map(|range| (range, true));
        let mut parts: Vec<_> = kept.chain(zeros.iter().map(|range| (range, false))).collect();
        parts.sort_unstable_by_key(|(range, _)| range.start);
        let end = whole..whole;
        let mut at = 0;
        for (range, is_kept) in parts.into_iter().chain([(&end, false)]) {
            if at < range.start {
                push(at, self.next, range.start - at);
                self.next += range.start - at;
            }
            at = range.end;
            for old in runs_of(was, range.clone()).filter(|_| is_kept) {
                if !touches(self.weak, &old) {
                    push(old.block, old.start, old.count);
                    continue;
                }
                for (nth, position) in (old.block..).zip(old.start..old.start + old.count) {
                    if is_in(self.weak, position) {
                        expect.displaced.insert(nth, self.old.digest_of(position));
                        push(nth, self.next, 1);
                        self.next += 1;
                    } else {
                        push(nth, position, 1);
                    }
                }
            }
        }
        runs
    }
}

/// The anchors of all files. Those of old blocks in groups that are kept come from the old sidecar, those of new blocks
/// from `coded`, by position: those at positions that are `filled` too.
pub(super) fn anchors(
    old: &Sidecar,
    (kept, filled): (&Kept, &Bits),
    catalog: &Catalog,
    coded: &[(u64, u64)],
) -> Vec<u64> {
    let files = old.catalog.files().flat_map(|(_, file)| anchored(file, catalog.block.into()));
    let all = files.zip(old.anchors());
    let mut all: Vec<(u64, u64)> =
        all.filter_map(|((_, position), anchor)| Some((kept.position(position)?, anchor))).collect();
    all.retain(|(position, _)| !filled.has(*position));
    all.extend(coded);
    all.sort_unstable();
    positions::anchors(catalog, &all)
}

//! Finds moved bytes: those behind inserted, deleted or cut-off bytes, those of joined files, and files with other
//! names.
//!
//! In a file that grew or shrank, the bytes behind the last change are first sought where the change of length puts
//! them. The anchors of blocks find the rest at any byte offset. A block counts only if it has its digest.

use crate::Sidecar;
use crate::catalog::hashing::digest_of_file;
use crate::catalog::moved::{Moved, MovedSpan};
use crate::catalog::others::is_stash;
use crate::catalog::positions::{anchored, runs_of};
use crate::catalog::samples::Samples;
use crate::examine::verdict::{Alike, name_of};
use fec_base::io::ReadAt;
use fec_base::io::base::Base;
use fec_core::digest::blocks;
use fec_core::format::sidecar::anchor::{Gear, WINDOW};
use fec_core::format::sidecar::catalog::shortened;
use fec_core::format::sidecar::{Entry, EntryKind, FileEntry};
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::ops::Range;

/// A file with whole blocks that are not in place.
pub(crate) struct Wanted {
    pub(crate) entry: usize,
    /// Numbers of blocks, ascending.
    pub(crate) blocks: Vec<Range<u64>>,
    /// True if the path of the file is empty.
    pub(crate) is_missing: bool,
}

/// The result of a search.
#[derive(Default)]
pub(crate) struct FoundElsewhere {
    pub(crate) moved: Moved,
    /// Files that hold their own blocks in other places.
    pub(crate) shifted: HashSet<usize>,
    /// Files that are whole under another name: the entry, and the path.
    pub(crate) renamed: HashMap<usize, Box<[u8]>>,
    /// Missing files that seem to be damaged under another name: the entry, and the path.
    pub(crate) damaged: HashMap<usize, Box<[u8]>>,
}

pub(crate) struct Search<'a> {
    sidecar: &'a Sidecar,
    base: &'a Base,
    block: u64,
    /// The position of each whole block that is still wanted, by file and number.
    wanted: HashMap<(usize, u64), u64>,
    spans: Vec<MovedSpan>,
    /// Blocks that are compared.
    buffer: Vec<u8>,
    sources: Vec<Box<[u8]>>,
    found: FoundElsewhere,
    /// Bytes of other files that may still be read.
    budget: u64,
}

/// The content of a file, beside files that are looked for.
enum Content {
    /// It is that of an entry.
    Of(usize),
    /// It is that of none of the entries with its size, which is given.
    OfNone(u64),
    /// No entry of its size is looked for, or it cannot be read.
    Unread,
}

/// The most unknown files that are searched.
const MOST_STRANGERS: usize = 100_000;

impl<'a> Search<'a> {
    pub(crate) fn new(sidecar: &'a Sidecar, base: &'a Base) -> Search<'a> {
        Search {
            sidecar,
            base,
            block: sidecar.catalog.block.into(),
            wanted: HashMap::new(),
            spans: Vec::new(),
            buffer: Vec::new(),
            sources: Vec::new(),
            found: FoundElsewhere::default(),
            budget: sidecar.catalog.files_len().saturating_mul(2).saturating_add(1 << 30),
        }
    }

    /// Adds missing files that are whole under another of their names.
    pub(crate) fn with_names(mut self, names: &[(usize, Box<[u8]>)]) -> Search<'a> {
        names.iter().for_each(|(entry, path)| self.stands_at(*entry, path));
        self
    }

    /// Searches for all wanted blocks: first in the file itself and then, for files without any block found, in others.
    pub(crate) fn run(mut self, files: &[Wanted]) -> FoundElsewhere {
        let has_name: HashSet<u64> = self.spans.iter().map(|span| span.at / self.block).collect();
        for file in files {
            let EntryKind::File(of) = &self.entry(file.entry).kind else { continue };
            for run in file.blocks.iter().flat_map(|range| runs_of(of, range.clone())) {
                let all = (run.block..).zip(run.start..run.start + run.count);
                let wanted = all.filter(|(_, position)| !has_name.contains(position));
                self.wanted.extend(wanted.map(|(block, position)| ((file.entry, block), position)));
            }
        }
        let mut nowhere: Vec<&Wanted> = Vec::new();
        for file in files {
            let before = self.wanted.len();
            if !file.is_missing {
                let path = self.entry(file.entry).path.clone();
                self.in_file(&path, Some(file));
            }
            if self.wanted.len() < before {
                self.found.shifted.insert(file.entry);
            } else {
                let EntryKind::File(of) = &self.entry(file.entry).kind else { continue };
                let all = FileEntry::whole_blocks(of.size, self.block);
                let bad: u64 = file.blocks.iter().map(|range| range.end - range.start).sum();
                if of.size > 0 && bad == all {
                    nowhere.push(file);
                }
            }
        }
        if !nowhere.is_empty() {
            self.elsewhere(files, &nowhere);
        }
        FoundElsewhere { moved: Moved::new(self.spans, self.sources), ..self.found }
    }

    fn entry(&self, nth: usize) -> &'a Entry {
        &self.sidecar.catalog.entries[nth]
    }

    /// Searches changed files, and files that are not in the catalog.
    fn elsewhere(&mut self, files: &[Wanted], nowhere: &[&Wanted]) {
        let mut missing = self.by_size(nowhere.iter().filter(|file| file.is_missing));
        let mut changed = self.by_size(nowhere.iter().filter(|file| !file.is_missing));
        let is_missing: HashSet<usize> = missing.values().flatten().copied().collect();
        let strangers = self.strangers();
        let mut whole = HashSet::new();
        let mut others = Vec::new();
        for path in &strangers {
            match self.whole_at(path, [&mut missing, &mut changed]) {
                Content::Of(entry) if whole.insert(entry) && is_missing.contains(&entry) => {
                    self.found.renamed.insert(entry, path.clone());
                }
                Content::Of(_) | Content::Unread => {}
                Content::OfNone(size) => others.push((path, size)),
            }
        }
        let changed_paths: Vec<Box<[u8]>> = files
            .iter()
            .filter(|file| !file.is_missing)
            .map(|file| self.entry(file.entry).path.clone())
            .collect();
        for path in &changed_paths {
            // Two files that were swapped, or a file that was moved over another one.
            if let Content::Of(entry) = self.whole_at(path, [&mut changed, &mut missing]) {
                whole.insert(entry);
            }
        }
        for (path, size) in others {
            self.find_damaged(path, missing.entry(size).or_default());
        }
        if nowhere.iter().any(|file| !whole.contains(&file.entry) && !file.blocks.is_empty()) {
            let renamed: HashSet<Box<[u8]>> = self.found.renamed.values().cloned().collect();
            for path in changed_paths.iter().chain(strangers.iter().filter(|path| !renamed.contains(*path))) {
                self.in_file(path, None);
            }
        }
    }

    /// Files by their sizes.
    fn by_size<'f>(&self, files: impl Iterator<Item = &'f &'f Wanted>) -> HashMap<u64, Vec<usize>> {
        let mut by_size: HashMap<u64, Vec<usize>> = HashMap::new();
        for file in files {
            if let EntryKind::File(of) = &self.entry(file.entry).kind {
                by_size.entry(of.size).or_default().push(file.entry);
            }
        }
        by_size
    }

    /// Takes the first of these files whose content a file has. It is taken out of its list.
    fn whole_at(&mut self, path: &[u8], lists: [&mut HashMap<u64, Vec<usize>>; 2]) -> Content {
        let Ok(file) = self.base.read(path) else { return Content::Unread };
        let Ok(size) = file.size() else { return Content::Unread };
        let lists = lists.map(|list| list.get_mut(&size).filter(|entries| !entries.is_empty()));
        let first = lists.iter().flatten().find_map(|entries| entries.first());
        let Some(EntryKind::File(of)) = first.map(|nth| &self.sidecar.catalog.entries[*nth].kind) else {
            return Content::Unread;
        };
        if !self.may_read(size) {
            return Content::Unread;
        }
        // Files of the same size have the same shape, so one pass serves all of them.
        let Ok(digest) = digest_of_file(&file, of, self.block) else { return Content::Unread };
        let is_it = |nth: &usize| matches!(&self.sidecar.catalog.entries[*nth].kind, EntryKind::File(of) if of.blake3 == digest);
        for entries in lists.into_iter().flatten() {
            if let Some(at) = entries.iter().position(is_it) {
                let entry = entries.swap_remove(at);
                self.stands_at(entry, path);
                return Content::Of(entry);
            }
        }
        Content::OfNone(size)
    }

    /// Takes one of these missing files, of the size of a stranger that passes for it or has most of its blocks.
    fn find_damaged(&mut self, path: &[u8], entries: &mut Vec<usize>) {
        /// The most missing files that a stranger is compared with.
        const MOST: usize = 256;
        let Some(EntryKind::File(first)) = entries.first().map(|nth| &self.entry(*nth).kind) else { return };
        let (Ok(file), Ok(stat)) = (self.base.read(path), self.base.stat(path)) else { return };
        let Ok(samples) = Samples::of(&file, first.size, self.sidecar.catalog.block) else { return };
        let rank = |nth: &usize| {
            let EntryKind::File(of) = &self.entry(*nth).kind else { return None };
            let same = samples.same_as(self.sidecar, of);
            let alike = Alike {
                time: self.sidecar.time_of(*nth, &stat),
                has_own_time: stat.st_mtime_nsec != 0,
                has_name: name_of(path) == name_of(&self.entry(*nth).path),
            };
            (same * 2 > samples.len() || alike.passes(|| same > 0)).then_some(same)
        };
        let ranks = entries.iter().take(MOST).map(rank).enumerate();
        let best = ranks.filter_map(|(at, rank)| Some((rank?, Reverse(at)))).max();
        let Some((_, Reverse(at))) = best else { return };
        let entry = entries.swap_remove(at);
        let mut place = Place { file: &file, len: first.size, source: self.source(path) };
        for block in 0..FileEntry::whole_blocks(first.size, self.block) {
            self.take_forwards(&mut place, entry, block, block * self.block);
        }
        self.found.damaged.insert(entry, path.into());
    }

    /// Takes a file that stands whole at another path.
    fn stands_at(&mut self, entry: usize, path: &[u8]) {
        let EntryKind::File(of) = &self.entry(entry).kind else { return };
        let source = self.source(path);
        for run in &of.runs {
            let (at, len, offset) = (run.start * self.block, run.count * self.block, run.block * self.block);
            self.spans.push(MovedSpan { at, len, source, offset, is_twin: false });
            for block in run.block..run.block + run.count {
                self.wanted.remove(&(entry, block));
            }
        }
        let (at, len) = (of.tail, of.tail_len(self.block));
        if len > 0 {
            self.spans.push(MovedSpan { at, len, source, offset: of.size - len, is_twin: false });
        }
    }

    /// Tells whether `bytes` more of other files may be read, since other files may be of any size.
    fn may_read(&mut self, bytes: u64) -> bool {
        let left = self.budget.checked_sub(bytes);
        self.budget = left.unwrap_or(self.budget);
        left.is_some()
    }

    fn source(&mut self, path: &[u8]) -> u32 {
        if self.sources.last().is_none_or(|last| **last != *path) {
            self.sources.push(path.into());
        }
        self.sources.len() as u32 - 1
    }

    /// Unknown files in the folders of the catalog, and in unknown folders below those.
    fn strangers(&self) -> Vec<Box<[u8]>> {
        let entries = &self.sidecar.catalog.entries;
        let is_known = |path: &[u8]| entries.binary_search_by(|entry| (*entry.path).cmp(path)).is_ok();
        // The blocks in a stash were fetched, and go with it.
        let is_none = |path: &[u8]| is_known(path) || is_stash(&self.base.place(path));
        let mut left: Vec<Box<[u8]>> =
            entries.iter().filter(|e| e.kind == EntryKind::Folder).map(|entry| entry.path.clone()).collect();
        let mut found = Vec::new();
        // The folder of a single file is searched too, but not the folders below it.
        let lone = entries
            .iter()
            .filter(|e| matches!(e.kind, EntryKind::File(_)))
            .map(|entry| folder_of(&entry.path));
        let lone: HashSet<&[u8]> = lone.filter(|folder| folder.is_empty() || !is_known(folder)).collect();
        for folder in lone {
            let (files, _, _) = self.base.list(folder).unwrap_or_default();
            found.extend(files.into_iter().filter(|path| !is_none(path)));
        }
        while let Some(folder) = left.pop() {
            if found.len() >= MOST_STRANGERS {
                break;
            }
            let (files, folders, _) = self.base.list(&folder).unwrap_or_default();
            found.extend(files.into_iter().filter(|path| !is_none(path)));
            left.extend(folders.into_iter().filter(|path| !is_known(path)));
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Searches a file for all wanted blocks. `own` has the wanted blocks of this very file.
    fn in_file(&mut self, path: &[u8], own: Option<&Wanted>) {
        let Ok(file) = self.base.read(path) else { return };
        let Ok(len) = file.size() else { return };
        if len < self.block || self.wanted.is_empty() || (own.is_none() && !self.may_read(len)) {
            return;
        }
        let source = self.source(path);
        let mut place = Place { file: &file, len, source };
        if let Some(own) = own
            && let EntryKind::File(of) = &self.entry(own.entry).kind
            && len != of.size
        {
            // Blocks behind the last change have moved by as much as the file has grown.
            for range in own.blocks.iter().rev() {
                for block in [range.end - 1, range.start] {
                    let at = (block * self.block).checked_add(len).and_then(|at| at.checked_sub(of.size));
                    self.take(&mut place, own.entry, block, at);
                }
            }
        }
        let is_own = |entry: usize| own.is_none_or(|own| own.entry == entry);
        let mut anchors: HashMap<u64, Vec<(usize, u64)>> = HashMap::new();
        for ((entry, block), anchor) in self.anchors() {
            if is_own(entry) && anchor != 0 && self.wanted.contains_key(&(entry, block)) {
                let of_one = anchors.entry(anchor).or_default();
                if of_one.len() < 4 {
                    of_one.push((entry, block));
                }
            }
        }
        if !anchors.is_empty() {
            self.scan(&mut place, &anchors);
        }
    }

    /// All anchors, with their files and blocks.
    fn anchors(&self) -> Vec<((usize, u64), u64)> {
        let mut anchors = self.sidecar.anchors();
        let mut found = Vec::new();
        for (nth, file) in self.sidecar.catalog.files() {
            let with_anchor = anchored(file, self.block).zip(&mut anchors);
            found.extend(with_anchor.map(|((block, _), anchor)| ((nth, block), anchor)));
        }
        found
    }

    /// Searches a file byte by byte.
    fn scan(&mut self, place: &mut Place<'_>, anchors: &HashMap<u64, Vec<(usize, u64)>>) {
        const PIECE: usize = 1 << 20;
        const BITS: u32 = 18;
        let gear = Gear::default();
        let mut filter = vec![0u64; 1 << (BITS - 6)];
        for anchor in anchors.keys() {
            let bit = anchor >> (64 - BITS);
            filter[(bit / 64) as usize] |= 1 << (bit % 64);
        }
        // The most blocks that may be hashed in vain: twice as many as the file has, and a few.
        let mut vain = 2 * place.len / self.block + 64;
        let (mut hash, mut at) = (0, 0u64);
        let mut bytes = vec![0; PIECE];
        while at < place.len {
            let count = PIECE.min((place.len - at) as usize);
            if place.file.read_exact_at(at, &mut bytes[..count]).is_err() {
                // Unreadable bytes are passed over.
                at += count as u64;
                continue;
            }
            for (nth, byte) in (0..).zip(&bytes[..count]) {
                hash = gear.step(hash, *byte);
                let bit = hash >> (64 - BITS);
                if filter[(bit / 64) as usize] >> (bit % 64) & 1 == 0 {
                    continue;
                }
                let Some(of_one) = anchors.get(&hash) else { continue };
                let Some(start) = (at + nth + 1).checked_sub(WINDOW as u64) else { continue };
                for (entry, block) in of_one {
                    if vain > 0 && !self.take(place, *entry, *block, Some(start)) {
                        vain -= 1;
                    }
                }
            }
            at += count as u64;
        }
    }

    /// Takes a wanted block, and matching blocks around it, if it stands at `at`. Returns whether it does.
    fn take(&mut self, place: &mut Place<'_>, entry: usize, block: u64, at: Option<u64>) -> bool {
        let Some(at) = at else { return false };
        if !self.take_forwards(place, entry, block, at) {
            return false;
        }
        // The steps backwards become longer, and each is read from its front.
        let (mut first, mut step) = (block, 1);
        while first > 0 {
            // No more blocks than fit in front of this one.
            let start = first.saturating_sub(step).max(block.saturating_sub(at / self.block));
            if start == first {
                break;
            }
            let from = at - (block - start) * self.block;
            let count = self.matching(place, entry, start..first, from);
            let taken = count.iter().rev().take_while(|is| **is).count() as u64;
            (first - taken..first)
                .for_each(|nth| self.found_at(place, entry, nth, at - (block - nth) * self.block));
            if taken < first - start {
                break;
            }
            first = start;
            step = (step * 2).min(self.most());
        }
        true
    }

    /// Blocks that are read together: as many as stay in a cache.
    fn most(&self) -> u64 {
        ((128 << 10) / self.block).max(1)
    }

    fn take_forwards(&mut self, place: &mut Place<'_>, entry: usize, block: u64, at: u64) -> bool {
        let (mut next, mut step, mut any) = (block, 1, false);
        loop {
            let from = at + (next - block) * self.block;
            let found = self.matching(place, entry, next..next + step, from);
            let taken = found.iter().take_while(|is| **is).count() as u64;
            (next..next + taken)
                .for_each(|nth| self.found_at(place, entry, nth, at + (nth - block) * self.block));
            any |= taken > 0;
            next += taken;
            if taken < step {
                return any;
            }
            step = (step * 2).min(self.most());
        }
    }

    /// For each of successive blocks, whether it is wanted and stands in its place in a row that begins at `at`.
    fn matching(&mut self, place: &Place<'_>, entry: usize, numbers: Range<u64>, at: u64) -> Vec<bool> {
        let there = place.len.saturating_sub(at) / self.block;
        let count = (numbers.end - numbers.start).min(there);
        let is_wanted = |nth: &u64| self.wanted.contains_key(&(entry, *nth));
        if count == 0 || !numbers.clone().any(|nth| is_wanted(&nth)) {
            return vec![false; (numbers.end - numbers.start) as usize];
        }
        let mut values = vec![[0; 32]; count as usize];
        self.buffer.resize((self.most() * self.block) as usize, 0);
        let bytes = &mut self.buffer[..(count * self.block) as usize];
        if place.file.read_exact_at(at, bytes).is_ok() {
            blocks::values(bytes, self.block as usize, numbers.start * self.block, &mut values);
        }
        let is = |nth: u64| {
            let value = values.get((nth - numbers.start) as usize).map(shortened);
            let position = self.wanted.get(&(entry, nth));
            position.is_some_and(|position| value == Some(self.sidecar.digest_of(*position)))
        };
        numbers.clone().map(is).collect()
    }

    fn found_at(&mut self, place: &Place<'_>, entry: usize, block: u64, offset: u64) {
        if let Some(position) = self.wanted.remove(&(entry, block)) {
            let (at, len) = (position * self.block, self.block);
            self.spans.push(MovedSpan { at, len, source: place.source, offset, is_twin: false });
        }
    }
}

/// A file that is searched.
struct Place<'a> {
    file: &'a File,
    len: u64,
    source: u32,
}

fn folder_of(path: &[u8]) -> &[u8] {
    path.iter().rposition(|b| *b == b'/').map_or(&b""[..], |slash| &path[..slash])
}

//! What is left of files and of their sidecar: each file compared with its digests, in one pass.

use super::Sidecar;
use super::bits::Bits;
use super::error::SidecarError;
use super::hashing::{FileTree, plain_digests};
use super::positions::{Any, PositionReader, Positions};
use crate::context::{Context, Meter};
use crate::error::{Error, Result};
use crate::io::ReadAt;
use crate::io::base::{Base, file_type};
use crate::io::temporary::parent;
use crate::ranges::RangeList;
use crate::stages::{self, Stage};
use crate::threads::Threads;
use fec_core::digest::{Digest, HashKind, blocks};
use fec_core::executor::{Executor, into_value, lock};
use fec_core::format::sidecar::catalog::shortened;
use fec_core::format::sidecar::stat::Stat;
use fec_core::format::sidecar::{EntryKind, FileEntry};
use rustix::fs::FileType;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The digest of a position whose bytes are lost for good.
pub(super) const LOST: [u8; 16] = [0xff; 16];
/// The digest of a position with nothing in it.
pub(super) const NOTHING: [u8; 16] = [0; 16];

/// What became of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// It is what it was.
    Intact,
    /// Its bytes are others, and nobody wrote to it: its size and time are those of old.
    Rotten,
    /// It was changed by somebody: its time, its size or its kind are others, and what is in it too.
    Edited,
    /// Nothing is there.
    Missing,
    /// It cannot be read.
    Unreadable,
}

/// An entry that is not what it was.
#[derive(Clone, Debug)]
pub struct EntryReport {
    /// The number of the entry in the catalog.
    pub entry: usize,
    /// What became of it.
    pub state: State,
    /// Bytes of it, as it was, that are not there any more.
    pub damage: RangeList,
    /// Why it cannot be opened or read.
    pub cause: Option<io::ErrorKind>,
}

/// How much of what was lost could be mended, and what more.
#[derive(Clone, Debug, Default)]
pub struct Margin {
    /// Recovery shards of the set that has the fewest to spare, and how many of them are needed, or lost themselves.
    pub of: u64,
    /// Those that are used.
    pub used: u64,
    /// So many bytes more could be lost in one piece, wherever.
    pub one_piece: u64,
    /// Sets that have lost more than they can stand.
    pub lost_sets: u64,
    /// Bytes of files in them that are lost.
    pub lost_bytes: u64,
}

/// What was found of files and sidecar.
#[derive(Debug)]
pub struct Examined {
    /// Entries that are not intact, in order.
    pub entries: Vec<EntryReport>,
    /// Entries whose bytes are intact and whose time or permissions are others.
    pub touched: u64,
    /// Recovery shards.
    pub recovery: u64,
    /// Those of them that are not intact, or not in their place.
    pub recovery_damaged: u64,
    /// What can be mended.
    pub margin: Margin,
    /// Damage of the sidecar beside lost recovery shards and pieces.
    pub sidecar_damage: Vec<String>,
    /// Positions of the files that are not there, or not intact.
    pub(super) erased: Bits,
    /// Recovery shards that are not there or not intact, over all groups.
    pub(super) recovery_erased: Bits,
    /// Recovery shards that stand elsewhere than they should.
    pub(super) recovery_displaced: Bits,
    /// What each entry is now, by number.
    pub(super) states: Vec<State>,
}

impl Examined {
    /// Whether everything is as it was, the sidecar too.
    pub fn is_intact(&self) -> bool {
        self.entries.is_empty() && self.sidecar_is_intact()
    }

    /// Whether the sidecar itself is as it was.
    pub fn sidecar_is_intact(&self) -> bool {
        self.recovery_damaged == 0 && self.sidecar_damage.is_empty()
    }

    /// Whether all that is lost can be computed from what is left.
    pub fn is_mendable(&self) -> bool {
        self.margin.lost_sets == 0
    }

    /// Entries in this state.
    pub fn count(&self, state: State) -> u64 {
        self.entries.iter().filter(|report| report.state == state).count() as u64
    }
}

/// The folder that a sidecar's names are relative to: the one that is named, or that of the sidecar.
///
/// # Errors
/// [`SidecarError::BaseNeeded`] when it has to be named; those of the system.
pub fn base_of(sidecar: &Sidecar, named: Option<&Path>) -> Result<Base> {
    let path = match named {
        Some(path) => path.to_path_buf(),
        None if sidecar.stats.base.is_empty() => parent(sidecar.path()).to_path_buf(),
        None => {
            let needed = SidecarError::BaseNeeded(sidecar.stats.base.clone());
            return Err(Error::at("read", sidecar.path(), needed));
        }
    };
    Base::open(&path).map_err(|e| Error::io("read", path.as_path(), e))
}

/// Bytes of a file that are looked at in one go: a number of blocks that is a power of two.
const CHUNK: u64 = 4 << 20;

/// A chunk of a file, or all of a small one.
#[derive(Clone, Copy, Debug)]
struct Job {
    entry: u32,
    chunk: u64,
}

/// What is known of a file whose chunks are looked at one by one.
struct Pending {
    left: u64,
    /// The value of each chunk.
    values: Vec<Option<Digest>>,
    report: FileReport,
}

/// What was found of a file's bytes.
#[derive(Clone, Debug, Default)]
struct FileReport {
    /// Whole blocks that are not intact: by number in the file.
    bad: Vec<Range<u64>>,
    /// Whether what is behind the whole blocks has to be looked at by its position.
    is_tail_unknown: bool,
    cause: Option<io::ErrorKind>,
    /// Whether the file's own digest is right; `None` if it was not computed.
    is_whole: Option<bool>,
}

/// Looks at everything, and changes nothing.
///
/// Memory: a few megabytes for each thread, and a bit for each block.
///
/// # Errors
/// Those of the base; a file that cannot be read is part of the result.
pub fn examine(sidecar: &Sidecar, base: &Base, context: &Context<'_>) -> Result<Examined> {
    let catalog = &sidecar.catalog;
    let recovery: u64 = catalog.groups.iter().map(|group| group.recovery()).sum();
    let total = catalog.files_len() + recovery * u64::from(catalog.block);
    let meter = context.meter("verify", Some(total));
    let positions = Positions::of(catalog);
    let mut examined = Files { sidecar, base, positions: &positions, meter: meter.as_ref() }.look(context);
    let (recovery_erased, recovery_displaced) = Recovery { sidecar, meter: meter.as_ref() }.look(context);
    meter.finish();
    examined.recovery = recovery;
    examined.recovery_damaged = recovery_erased.count() + recovery_displaced.count();
    examined.recovery_erased = recovery_erased;
    examined.recovery_displaced = recovery_displaced;
    examined.sidecar_damage = sidecar_damage(sidecar);
    examined.margin = margin(sidecar, &positions, &examined);
    Ok(examined)
}

/// What is wrong with the sidecar beside its recovery shards.
fn sidecar_damage(sidecar: &Sidecar) -> Vec<String> {
    let mut damage = Vec::new();
    let pieces = &sidecar.pieces;
    if pieces.intact < pieces.all {
        let lost = pieces.all - pieces.intact;
        damage.push(format!("{lost} of {} pieces of its index are lost; it could stand {} more", pieces.all, pieces.spare));
    } else if !pieces.displaced.is_empty() {
        damage.push(format!("{} of {} pieces of its index have moved", pieces.displaced.len(), pieces.all));
    }
    let block = sidecar.catalog.block.into();
    let last = sidecar.catalog.areas.last();
    let end = last.and_then(|area| area.start.checked_add(area.len(block)?));
    if end != Some(sidecar.len) {
        damage.push(format!("it has {} bytes and should have {}", sidecar.len, end.unwrap_or(0)));
    }
    damage
}

/// Looks at all files.
struct Files<'a> {
    sidecar: &'a Sidecar,
    base: &'a Base,
    positions: &'a Positions,
    meter: &'a dyn Meter,
}

impl Files<'_> {
    fn look(&self, context: &Context<'_>) -> Examined {
        let catalog = &self.sidecar.catalog;
        let mut states = vec![State::Intact; catalog.entries.len()];
        let mut touched = 0;
        let mut reports: Vec<(usize, FileReport)> = Vec::new();
        let mut jobs = Vec::new();
        for (nth, entry) in catalog.entries.iter().enumerate() {
            let (state, is_touched) = self.state_by_stat(nth);
            states[nth] = state;
            touched += u64::from(is_touched);
            if let EntryKind::File(file) = &entry.kind {
                match state {
                    State::Missing => reports.push((nth, self.all_lost(file))),
                    _ => jobs.extend((0..self.chunks(file)).map(|chunk| Job { entry: nth as u32, chunk })),
                }
            }
        }
        reports.extend(self.look_at(&jobs, context));
        reports.sort_unstable_by_key(|(nth, _)| *nth);
        let mut erased = Bits::new(catalog.positions());
        self.erase_lost(&mut erased);
        self.settle(&mut reports, &mut erased);
        let mut entries = Vec::new();
        let mut of_files = reports.into_iter().peekable();
        for (nth, entry) in catalog.entries.iter().enumerate() {
            let report = of_files.next_if(|(of, _)| *of == nth).map(|(_, report)| report);
            let Some(report) = self.entry_report(nth, &entry.kind, states[nth], report) else {
                states[nth] = State::Intact;
                continue;
            };
            states[nth] = report.state;
            entries.push(report);
        }
        Examined {
            entries,
            touched,
            recovery: 0,
            recovery_damaged: 0,
            margin: Margin::default(),
            sidecar_damage: Vec::new(),
            erased,
            recovery_erased: Bits::default(),
            recovery_displaced: Bits::default(),
            states,
        }
    }

    /// Whether an entry is there and looks as it did: `Edited` if its time, size or kind are others, whatever is in it; and
    /// whether only its time or permissions are.
    fn state_by_stat(&self, nth: usize) -> (State, bool) {
        let entry = &self.sidecar.catalog.entries[nth];
        let stat = match self.base.stat(&entry.path) {
            Ok(stat) => stat,
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return (State::Missing, false);
            }
            Err(e) if e.raw_os_error() == Some(libc::ELOOP) => return (State::Missing, false),
            Err(_) => return (State::Unreadable, false),
        };
        let kind = file_type(&stat);
        let is_same = |is: bool| if is { State::Intact } else { State::Edited };
        match &entry.kind {
            EntryKind::Folder => (is_same(kind == FileType::Directory), false),
            EntryKind::Symlink(target) => {
                let is_same_target = || self.base.link_target(&entry.path).is_ok_and(|found| found == **target);
                (is_same(kind == FileType::Symlink && is_same_target()), false)
            }
            EntryKind::HardLink(_) | EntryKind::File(_) if kind != FileType::RegularFile => (State::Edited, false),
            EntryKind::HardLink(of) => {
                let first = self.base.stat(&self.sidecar.catalog.entries[*of as usize].path);
                // Where the file itself is not there, what this is cannot be compared.
                let is_one = first.map_or(true, |first| (first.st_dev, first.st_ino) == (stat.st_dev, stat.st_ino));
                (is_same(is_one), false)
            }
            EntryKind::File(file) => {
                let recorded = self.sidecar.stats.entries[nth];
                let found = Stat {
                    seconds: stat.st_mtime as i64,
                    nanos: stat.st_mtime_nsec as u32,
                    mode: (stat.st_mode & 0o7777) as u16,
                };
                let is_executable = stat.st_mode & 0o100 != 0;
                let is_same_time = (found.seconds, found.nanos) == (recorded.seconds, recorded.nanos);
                let is_same_size = stat.st_size as u64 == file.size;
                let looks_same = is_same_time && is_same_size && is_executable == file.is_executable;
                (is_same(looks_same), found != recorded)
            }
        }
    }

    fn chunks(&self, file: &FileEntry) -> u64 {
        file.size.div_ceil(CHUNK).max(1)
    }

    fn block(&self) -> u64 {
        self.sidecar.catalog.block.into()
    }

    fn all_lost(&self, file: &FileEntry) -> FileReport {
        let blocks = FileEntry::whole_blocks(file.size, self.block());
        let bad = if blocks > 0 { vec![0..blocks] } else { Vec::new() };
        FileReport { bad, is_tail_unknown: false, cause: None, is_whole: Some(false) }
    }

    /// Looks at chunks on all threads.
    fn look_at(&self, jobs: &[Job], context: &Context<'_>) -> Vec<(usize, FileReport)> {
        let next = AtomicUsize::new(0);
        let done: Mutex<Vec<(usize, FileReport)>> = Mutex::new(Vec::new());
        let pending: Mutex<std::collections::HashMap<u32, Pending>> = Mutex::default();
        let workers = context.settings.threads.min(jobs.len()).max(1);
        Threads(workers).run(workers, &|_| {
            let mut looker = Looker { files: self, buffer: Vec::new(), open: None };
            while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                let EntryKind::File(file) = &self.sidecar.catalog.entries[job.entry as usize].kind else { continue };
                let chunks = self.chunks(file);
                let (value, report) = looker.look(job, file, chunks == 1);
                if chunks == 1 {
                    if report.is_whole != Some(true) {
                        lock(&done).push((job.entry as usize, report));
                    }
                    continue;
                }
                let mut pending = lock(&pending);
                let of_file = pending.entry(job.entry).or_insert_with(|| Pending {
                    left: chunks,
                    values: vec![None; chunks as usize],
                    report: FileReport::default(),
                });
                of_file.values[job.chunk as usize] = value;
                of_file.report.bad.extend(report.bad);
                of_file.report.cause = of_file.report.cause.or(report.cause);
                of_file.left -= 1;
                if of_file.left == 0 {
                    let Some(Pending { values, mut report, .. }) = pending.remove(&job.entry) else { continue };
                    drop(pending);
                    let values: Option<Vec<Digest>> = values.into_iter().collect();
                    report.is_whole = Some(values.is_some_and(|values| blocks::root(&values) == file.blake3));
                    if report.is_whole != Some(true) {
                        report.bad.sort_unstable_by_key(|range| range.start);
                        lock(&done).push((job.entry as usize, report));
                    }
                }
            }
        });
        into_value(done)
    }

    /// Positions that were lost before.
    fn erase_lost(&self, erased: &mut Bits) {
        let mut first = 0;
        for (nth, group) in self.sidecar.catalog.groups.iter().enumerate() {
            for position in 0..group.positions() {
                if self.sidecar.position_digest(nth, position) == LOST {
                    erased.set(first + position);
                }
            }
            first += group.positions();
        }
    }

    /// Marks the positions of what is not intact. Where only the whole of a file is known to be wrong, its tail's position
    /// tells whether the tail is.
    fn settle(&self, reports: &mut Vec<(usize, FileReport)>, erased: &mut Bits) {
        let block = self.block();
        let mut reader = PositionReader::new(self.base, &self.sidecar.catalog, self.positions, &Any);
        let mut position = vec![0; block as usize];
        for (nth, report) in reports.iter_mut() {
            let EntryKind::File(file) = &self.sidecar.catalog.entries[*nth].kind else { continue };
            for range in &report.bad {
                let bytes = range.start * block..range.end * block;
                let positions = self.positions.of_bytes(&self.sidecar.catalog, *nth, bytes);
                positions.into_iter().flatten().for_each(|position| erased.set(position));
            }
            let tail = file.tail_len(block);
            if tail == 0 {
                continue;
            }
            let at = file.tail / block;
            let mut is_there = true;
            let _ = reader.fill(at, &mut position, |_, _| -> std::result::Result<(), ()> {
                is_there = false;
                Ok(())
            });
            let found = plain_digests(&position, block as usize)[0];
            report.is_tail_unknown = !(is_there && found == self.digest_of(at));
            if report.is_tail_unknown {
                erased.set(at);
            }
        }
    }

    fn digest_of(&self, position: u64) -> [u8; 16] {
        digest_of(self.sidecar, position)
    }

    /// What to tell of an entry; `None` if it is intact.
    fn entry_report(
        &self,
        nth: usize,
        kind: &EntryKind,
        state: State,
        report: Option<FileReport>,
    ) -> Option<EntryReport> {
        let mut damage = RangeList::default();
        let EntryKind::File(file) = kind else {
            return (state != State::Intact).then_some(EntryReport { entry: nth, state, damage, cause: None });
        };
        // Its bytes are right, whatever its time says; its owner's right to execute it is bound by the root.
        let report = match report {
            Some(report) => report,
            None if state == State::Edited && !self.may_execute_as_before(nth, file) => FileReport::default(),
            None => return None,
        };
        let block = self.block();
        for range in &report.bad {
            damage.add(range.start * block, (range.end * block).min(file.size));
        }
        let whole = FileEntry::whole_blocks(file.size, block) * block;
        if report.is_tail_unknown && whole < file.size {
            damage.add(whole, file.size);
        }
        let state = match state {
            State::Intact if report.cause.is_some() => State::Unreadable,
            State::Intact => State::Rotten,
            other => other,
        };
        Some(EntryReport { entry: nth, state, damage, cause: report.cause })
    }

    fn may_execute_as_before(&self, nth: usize, file: &FileEntry) -> bool {
        let stat = self.base.stat(&self.sidecar.catalog.entries[nth].path);
        stat.is_ok_and(|stat| (stat.st_mode & 0o100 != 0) == file.is_executable)
    }
}

/// The digest of a position, over all groups.
pub(super) fn digest_of(sidecar: &Sidecar, position: u64) -> [u8; 16] {
    let mut first = 0;
    for (nth, group) in sidecar.catalog.groups.iter().enumerate() {
        if position < first + group.positions() {
            return sidecar.position_digest(nth, position - first);
        }
        first += group.positions();
    }
    LOST
}

/// Reads and hashes on one thread.
struct Looker<'a> {
    files: &'a Files<'a>,
    buffer: Vec<u8>,
    open: Option<(u32, File)>,
}

impl Looker<'_> {
    /// Looks at a chunk; returns its value in the file's tree, unless it is all of the file.
    fn look(&mut self, job: &Job, file: &FileEntry, is_all: bool) -> (Option<Digest>, FileReport) {
        let block = self.files.block();
        let start = job.chunk * CHUNK;
        let len = (file.size - start).min(CHUNK);
        let whole = (FileEntry::whole_blocks(file.size, block) * block).clamp(start, start + len) - start;
        let mut report = FileReport::default();
        self.buffer.resize(CHUNK.min(file.size.next_multiple_of(64)) as usize, 0);
        let stage = stages::enter(Stage::Read, len);
        let unread = self.read(job.entry, start, len as usize);
        drop(stage);
        let _stage = stages::enter(Stage::Hash, len);
        let (first, bytes) = (start / block, &self.buffer[..len as usize]);
        let mut values = vec![[0; 32]; (whole / block) as usize];
        blocks::values(&bytes[..whole as usize], block as usize, start, &mut values);
        let mut expected = self.digests(file, first);
        for (nth, value) in (first..).zip(&values) {
            if expected.next() != Some(shortened(value)) {
                match report.bad.last_mut() {
                    Some(last) if last.end == nth => last.end += 1,
                    _ => report.bad.push(nth..nth + 1),
                }
            }
        }
        self.files.meter.add(len);
        let tail = &bytes[whole as usize..];
        let has_rest = is_longer(self.open.as_ref(), file.size);
        report.cause = unread.map(|e| e.kind());
        if is_all {
            report.is_whole = Some(report.cause.is_none() && !has_rest && {
                let digest = if values.is_empty() {
                    HashKind::Blake3.digest(tail)
                } else {
                    let mut tree = FileTree::default();
                    tree.push(&values);
                    if !tail.is_empty() {
                        tree.push(&[blocks::tail_value(tail, start + whole)]);
                    }
                    tree.finish()
                };
                digest == file.blake3
            });
            return (None, report);
        }
        if !tail.is_empty() {
            values.push(blocks::tail_value(tail, start + whole));
        }
        let value = (report.cause.is_none() && !has_rest).then(|| blocks::subtree(&values));
        (value, report)
    }

    /// Reads what can be read; the rest is zeros. Returns the first error other than an early end, which the digests tell.
    fn read(&mut self, entry: u32, start: u64, len: usize) -> Option<io::Error> {
        let bytes = &mut self.buffer[..len];
        if self.open.as_ref().is_none_or(|(of, _)| *of != entry) {
            let path = &self.files.sidecar.catalog.entries[entry as usize].path;
            match self.files.base.read(path) {
                Ok(file) => self.open = Some((entry, file)),
                Err(e) => {
                    self.open = None;
                    bytes.fill(0);
                    return Some(e);
                }
            }
        }
        let (_, file) = self.open.as_ref()?;
        let (mut filled, mut error) = (0, None);
        while filled < len {
            match file.read_at(start + filled as u64, &mut bytes[filled..]) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => {
                    // A sector that cannot be read is lost; what is behind it may not be.
                    let lost = (4096 - (start as usize + filled) % 4096).min(len - filled);
                    bytes[filled..filled + lost].fill(0);
                    filled += lost;
                    error.get_or_insert(e);
                }
            }
        }
        bytes[filled..].fill(0);
        error
    }

    /// The digests of a file's whole blocks, from number `first` on.
    fn digests<'b>(&'b self, file: &'b FileEntry, first: u64) -> impl Iterator<Item = [u8; 16]> + 'b {
        let mut before = 0;
        let runs = file.runs.iter().filter_map(move |run| {
            let skipped = first.saturating_sub(before).min(run.count);
            before += run.count;
            (skipped < run.count).then_some(run.start + skipped..run.start + run.count)
        });
        runs.flatten().map(|position| self.files.digest_of(position))
    }
}

/// Whether a file has more bytes than it had.
fn is_longer(open: Option<&(u32, File)>, size: u64) -> bool {
    open.is_some_and(|(_, file)| file.metadata().is_ok_and(|meta| meta.len() > size))
}

/// Looks at the recovery shards.
struct Recovery<'a> {
    sidecar: &'a Sidecar,
    meter: &'a dyn Meter,
}

impl Recovery<'_> {
    /// Those that are not there, and those that stand elsewhere.
    fn look(&self, context: &Context<'_>) -> (Bits, Bits) {
        const BLOCKS: u64 = 1 << 20;
        let catalog = &self.sidecar.catalog;
        let block = u64::from(catalog.block);
        let total = catalog.groups.iter().map(|group| group.recovery()).sum();
        let erased = Mutex::new((Bits::new(total), Bits::new(total)));
        let mut jobs = Vec::new();
        let mut before = 0;
        for (nth, group) in catalog.groups.iter().enumerate() {
            let step = (BLOCKS / block).max(1);
            let starts = (0..group.recovery()).step_by(step as usize);
            jobs.extend(starts.map(|start| (nth, before, start..(start + step).min(group.recovery()))));
            before += group.recovery();
        }
        Threads(context.settings.threads).run(jobs.len(), &|job| {
            let (nth, before, ref range) = jobs[job];
            let group = catalog.groups[nth];
            let area = &catalog.areas[group.area as usize];
            let mut bytes = vec![0; ((range.end - range.start) * block) as usize];
            let stage = stages::enter(Stage::Read, bytes.len() as u64);
            let mut at = range.start;
            while at < range.end {
                let (place, in_one_go) = area.block(group.first + at, block);
                let count = in_one_go.min(range.end - at);
                let part = &mut bytes[((at - range.start) * block) as usize..][..(count * block) as usize];
                if self.sidecar.file.read_exact_at(place, part).is_err() {
                    // Block by block: what can be read of them counts.
                    for (nth, part) in part.chunks_exact_mut(block as usize).enumerate() {
                        if self.sidecar.file.read_exact_at(place + nth as u64 * block, part).is_err() {
                            part.fill(0);
                        }
                    }
                }
                at += count;
            }
            drop(stage);
            let stage = stages::enter(Stage::Hash, bytes.len() as u64);
            let found = plain_digests(&bytes, block as usize);
            drop(stage);
            self.meter.add(bytes.len() as u64);
            let wrong = (range.start..).zip(found).filter(|(shard, digest)| {
                *digest != self.sidecar.recovery_digest(nth, *shard)
            });
            for (shard, _) in wrong {
                let elsewhere = self.find(nth, shard).is_some();
                let mut erased = lock(&erased);
                if elsewhere { erased.1.set(before + shard) } else { erased.0.set(before + shard) }
            }
        });
        into_value(erased)
    }

    fn find(&self, group: usize, shard: u64) -> Option<Vec<u8>> {
        if self.sidecar.shifts.is_empty() { None } else { read_recovery(self.sidecar, group, shard) }
    }
}

/// A recovery shard, from wherever it stands; `None` if it is not intact.
pub(super) fn read_recovery(sidecar: &Sidecar, group: usize, shard: u64) -> Option<Vec<u8>> {
    let catalog = &sidecar.catalog;
    let of = catalog.groups[group];
    let area = &catalog.areas[of.area as usize];
    let mut bytes = vec![0; catalog.block as usize];
    let places = sidecar.shifts.places(area, of.first + shard, catalog.block.into());
    let expected = sidecar.recovery_digest(group, shard);
    places.into_iter().find_map(|place| {
        sidecar.file.read_exact_at(place, &mut bytes).ok()?;
        (plain_digests(&bytes, bytes.len())[0] == expected).then(|| bytes.clone())
    })
}

/// What can be mended, set by set.
fn margin(sidecar: &Sidecar, positions: &Positions, examined: &Examined) -> Margin {
    let block = u64::from(sidecar.catalog.block);
    let mut margin = Margin { one_piece: u64::MAX, ..Margin::default() };
    let (mut first, mut first_recovery) = (0, 0);
    let mut least_spare = u64::MAX;
    for group in &sidecar.catalog.groups {
        let (sets, m) = (u64::from(group.sets), group.code.m() as u64);
        let mut used = vec![0u64; sets as usize];
        for index in 0..group.positions() {
            used[(index % sets) as usize] += u64::from(examined.erased.get(first + index));
        }
        for index in 0..group.recovery() {
            used[(index % sets) as usize] += u64::from(examined.recovery_erased.get(first_recovery + index));
        }
        let mut least = m;
        for (set, used) in used.iter().enumerate() {
            if *used > m {
                margin.lost_sets += 1;
                let lost = (0..group.code.k() as u64).map(|index| first + index * sets + set as u64);
                let lost = lost.filter(|position| examined.erased.get(*position));
                let bytes = lost.flat_map(|position| positions.within(position..position + 1)).map(|span| span.len);
                margin.lost_bytes += bytes.sum::<u64>();
            }
            let spare = m.saturating_sub(*used);
            least = least.min(spare);
            if spare < least_spare || (spare == least_spare && *used > margin.used) {
                (least_spare, margin.of, margin.used) = (spare, m, *used);
            }
        }
        margin.one_piece = margin.one_piece.min(least * sets * block);
        first += group.positions();
        first_recovery += group.recovery();
    }
    margin
}

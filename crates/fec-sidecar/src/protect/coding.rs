//! Reads, hashes and codes the sets of one group, in one pass.

use crate::catalog::hashing::plain_digests;
use crate::catalog::positions::{Admit, PositionReader, Positions, Span};
use crate::catalog::tree::fingerprint_of;
use fec_base::context::{Context, Gauge};
use fec_base::error::{Action, Error, ErrorKind, Result};
use fec_base::io::base::Base;
use fec_base::program::lease::{is_open_for_writing, note_open_elsewhere};
use fec_base::program::stages::{self, Stage};
use fec_base::threads::Threads;
use fec_core::block::{Plan, ShardBuf};
use fec_core::digest::{Digest, HashKind, blocks};
use fec_core::executor::{Executor, into_value, lock};
use fec_core::format::sidecar::anchor::Gear;
use fec_core::format::sidecar::catalog::{Catalog, ShortDigest, SidecarGroup, shortened};
use fec_core::format::sidecar::{EntryKind, has_anchor};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Takes bytes of a sidecar, and their offset.
pub(crate) type Put<'a> = dyn Fn(u64, &[u8]) -> Result<()> + Sync + 'a;

/// The coding of all sets of the last group of a catalog.
pub(crate) struct Coding<'a> {
    base: &'a Base,
    catalog: &'a Catalog,
    positions: Positions,
    seen: &'a [u64],
    put: &'a Put<'a>,
    meter: &'a Gauge<'a>,
    plan: Plan,
    group: SidecarGroup,
    /// First position of the group.
    first: u64,
    gear: Gear,
    /// Sets that are coded together, side by side in the rows.
    run_sets: u32,
    workers: usize,
    results: Mutex<Coded>,
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

impl<'a> Coding<'a> {
    pub(crate) fn new(
        base: &'a Base,
        catalog: &'a Catalog,
        seen: &'a [u64],
        put: &'a Put<'a>,
        context: &'a Context<'a>,
        meter: &'a Gauge<'a>,
    ) -> Coding<'a> {
        /// The most bytes of a row: enough to keep the hash busy, and few enough for all rows to stay in a cache.
        const ROW: u64 = 32 << 10;
        let (group, before) = catalog.groups.split_last().expect("a catalog has a group");
        let group = *group;
        let settings = &context.settings;
        stages::tell_work(group.code, HashKind::Blake3, settings.backend);
        let set_bytes = group.code.n() as u64 * u64::from(catalog.block);
        // Two thirds of the memory, since the rest is for digests.
        let budget = settings.max_memory / 3 * 2;
        let workers =
            settings.threads.min((budget / set_bytes).max(1) as usize).min(group.sets as usize).max(1);
        let run_sets = (budget / (workers as u64 * set_bytes))
            .min(ROW / u64::from(catalog.block))
            .min(u64::from(group.sets).div_ceil(workers as u64))
            .max(1) as u32;
        let results = Coded {
            values: vec![[0; 32]; group.positions() as usize],
            digests: vec![[0; 16]; (group.positions() + group.recovery()) as usize],
            tails: vec![None; catalog.entries.len()],
            anchors: Vec::new(),
        };
        Coding {
            base,
            catalog,
            positions: Positions::of(catalog),
            seen,
            put,
            meter,
            plan: Plan::encode(group.code, settings.backend),
            group,
            first: before.iter().map(SidecarGroup::positions).sum(),
            gear: Gear::default(),
            run_sets,
            workers,
            results: Mutex::new(results),
        }
    }

    pub(crate) fn run(self) -> Result<Coded> {
        let sets = self.group.sets;
        let next = AtomicU64::new(0);
        let first_error: Mutex<Option<Error>> = Mutex::new(None);
        Threads(self.workers).run(self.workers, &|_| {
            let mut worker = Worker::new(&self);
            while lock(&first_error).is_none() {
                let first = next.fetch_add(self.run_sets.into(), Ordering::Relaxed);
                if first >= u64::from(sets) {
                    break;
                }
                let last = (first + u64::from(self.run_sets)).min(sets.into());
                let coded = self.meter.check().and_then(|()| worker.code(first as u32..last as u32));
                if let Err(e) = coded {
                    lock(&first_error).get_or_insert(e);
                }
            }
        });
        match into_value(first_error) {
            Some(error) => Err(error),
            None => Ok(into_value(self.results)),
        }
    }

    fn failure(&self, span: Span, cause: io::Error) -> Error {
        failure(self.base, &self.catalog.entries[span.entry as usize].path, cause)
    }
}

/// Admits a file that is unchanged since it was found; notes if somebody has it open for writing.
pub(crate) fn admit(
    seen: &[u64],
    entry: u32,
    file: &File,
    place: impl FnOnce() -> PathBuf,
) -> io::Result<()> {
    if is_open_for_writing(file) {
        note_open_elsewhere(&place());
    }
    let meta = file.metadata()?;
    match fingerprint_of(&meta) == seen[entry as usize] {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "changed")),
    }
}

/// The error of a file that cannot be read or has changed.
pub(crate) fn failure(base: &Base, path: &[u8], cause: io::Error) -> Error {
    let place = base.place(path);
    match cause.kind() {
        // The file is shorter than before, or another one.
        io::ErrorKind::UnexpectedEof => Error::at(Action::Read, place.as_path(), ErrorKind::Changed),
        _ => Error::io(Action::Read, place.as_path(), cause),
    }
}

/// The buffers of a thread.
struct Worker<'a> {
    coding: &'a Coding<'a>,
    rows: ShardBuf,
    files: PositionReader<'a>,
}

impl Admit for Coding<'_> {
    fn admit(&self, entry: u32, file: &File) -> io::Result<()> {
        admit(self.seen, entry, file, || self.base.place(&self.catalog.entries[entry as usize].path))
    }
}

impl<'a> Worker<'a> {
    fn new(coding: &'a Coding<'a>) -> Worker<'a> {
        let code = coding.plan.code();
        let row_len = coding.run_sets as usize * coding.catalog.block as usize;
        Worker {
            coding,
            rows: ShardBuf::new(code.n(), row_len),
            files: PositionReader::new(coding.base, coding.catalog, &coding.positions, coding),
        }
    }

    /// Reads, hashes, codes and writes successive sets, which stand side by side in the rows.
    fn code(&mut self, sets: Range<u32>) -> Result<()> {
        let Coding { catalog, plan, group, .. } = self.coding;
        let (block, k) = (catalog.block as usize, plan.code().k());
        let count = (sets.end - sets.start) as usize;
        self.rows.set_row_len(count * block);
        let mut found = Found::default();
        for index in 0..k {
            let first = self.coding.first + index as u64 * u64::from(group.sets) + u64::from(sets.start);
            let row = self.rows.row_mut(index);
            let bytes = row.len() as u64;
            let stage = stages::enter(Stage::Read, bytes);
            self.files.fill(first, row, |span, cause| Err(self.coding.failure(span, cause)))?;
            drop(stage);
            let _stage = stages::enter(Stage::Hash, bytes);
            found.look(self.coding, first, row);
        }
        let stage = stages::enter(Stage::Code, (count * block * k) as u64);
        let (known, mut wanted) = self.rows.split_rows(|index| index >= k);
        plan.run(&known, &mut wanted);
        drop(stage);
        for index in k..plan.code().n() {
            let nth = (index - k) as u64 * u64::from(group.sets) + u64::from(sets.start);
            let row = self.rows.row(index);
            let stage = stages::enter(Stage::Hash, row.len() as u64);
            found.digests.push((group.positions() + nth, plain_digests(row, block)));
            drop(stage);
            let _stage = stages::enter(Stage::Write, row.len() as u64);
            put_blocks(catalog, group.first + nth, row, self.coding.put)?;
        }
        found.merge(&mut lock(&self.coding.results));
        self.coding.meter.add(found.bytes);
        Ok(())
    }
}

/// Hands blocks of the last area, from number `first` on, to `put` with their offsets.
fn put_blocks(catalog: &Catalog, first: u64, bytes: &[u8], put: &Put<'_>) -> Result<()> {
    let block = u64::from(catalog.block);
    let area = &catalog.areas[catalog.areas.len() - 1];
    let (mut nth, mut left) = (first, bytes);
    while !left.is_empty() {
        let (at, in_one_go) = area.block(nth, block);
        let now = left.len().min((in_one_go * block) as usize);
        put(at, &left[..now])?;
        left = &left[now..];
        nth += in_one_go;
    }
    Ok(())
}

/// Digests and anchors of one run of sets.
#[derive(Default)]
struct Found {
    values: Vec<(u64, Vec<Digest>)>,
    anchors: Vec<(u64, u64)>,
    digests: Vec<(u64, Vec<ShortDigest>)>,
    tails: Vec<(u32, Digest)>,
    bytes: u64,
}

impl Found {
    /// Hashes a row, which holds the positions from `first` on.
    fn look(&mut self, coding: &Coding<'_>, first: u64, row: &[u8]) {
        let Coding { catalog, positions, .. } = coding;
        let block = u64::from(catalog.block);
        let range = first..first + row.len() as u64 / block;
        let base = first * block;
        // Positions with packed bytes, from the first to the last in the row.
        let mut packed: Option<Range<u64>> = None;
        for span in positions.within(range) {
            let bytes = &row[(span.at - base) as usize..][..span.len as usize];
            self.bytes += span.len;
            if span.is_packed {
                let (start, end) = (span.at / block, (span.at + span.len).div_ceil(block));
                packed = Some(packed.map_or(start, |range| range.start)..end);
                self.tail(coding, &span, bytes);
                continue;
            }
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
        if let Some(packed) = packed {
            let bytes =
                &row[((packed.start - first) * block) as usize..((packed.end - first) * block) as usize];
            self.digests.push((packed.start - coding.first, plain_digests(bytes, block as usize)));
        }
    }

    /// Hashes the bytes behind the whole blocks of a file.
    fn tail(&mut self, coding: &Coding<'_>, span: &Span, bytes: &[u8]) {
        let EntryKind::File(file) = &coding.catalog.entries[span.entry as usize].kind else { return };
        let digest = match file.runs[..] {
            [] => HashKind::Blake3.digest(bytes),
            _ => blocks::tail_value(bytes, span.offset),
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

//! Examines recovery shards, wherever they stand.

use crate::Sidecar;
use crate::catalog::bits::Bits;
use crate::catalog::hashing::plain_digests;
use crate::catalog::metadata::NOTHING;
use crate::catalog::positions::Positions;
use fec_base::context::{Context, Gauge};
use fec_base::io::ReadAt;
use fec_base::program::stages::{self, Stage};
use fec_base::threads::Threads;
use fec_core::executor::{Executor, lock};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// The examination of recovery shards.
pub(crate) struct Recovery<'a> {
    sidecar: &'a Sidecar,
    meter: &'a Gauge<'a>,
    serves: Bits,
}

/// The recovery shards that serve a purpose. The others belong to sets whose originals are all gone: nobody could
/// compute or miss them.
pub(crate) fn serving(sidecar: &Sidecar, positions: &Positions) -> Bits {
    let catalog = &sidecar.catalog;
    let covered = positions.covered(catalog.positions());
    let mut serves = Bits::new(catalog.groups.iter().map(|group| group.recovery()).sum());
    let (mut first, mut first_recovery) = (0, 0);
    for (nth, group) in catalog.groups.iter().enumerate() {
        let sets = group.sets as usize;
        let (mut lives, mut had) = (vec![false; sets], vec![false; sets]);
        for index in 0..group.positions() {
            let set = group.original(index).0 as usize;
            lives[set] |= covered.get(first + index);
            had[set] |= sidecar.position_digest(nth, index) != NOTHING;
        }
        for index in 0..group.recovery() {
            let set = group.set_of_shard(index) as usize;
            if lives[set] || !had[set] {
                serves.set(first_recovery + index);
            }
        }
        first += group.positions();
        first_recovery += group.recovery();
    }
    serves
}

/// Recovery shards of a group that are examined together.
#[derive(Clone, Debug)]
pub(crate) struct RecoveryJob {
    group: usize,
    /// Recovery shards of the groups before.
    before: u64,
    range: Range<u64>,
}

impl RecoveryJob {
    /// The number of recovery shards.
    pub(crate) fn shards(&self) -> u64 {
        self.range.end - self.range.start
    }
}

/// Recovery shards that are missing or displaced.
#[derive(Debug)]
pub(crate) struct RecoveryFound {
    /// Missing or damaged recovery shards.
    pub(crate) erased: Bits,
    /// Intact recovery shards in other places.
    pub(crate) displaced: Bits,
}

impl RecoveryFound {
    /// Findings without any fault, for `total` recovery shards.
    pub(crate) fn new(total: u64) -> RecoveryFound {
        RecoveryFound { erased: Bits::new(total), displaced: Bits::new(total) }
    }
}

impl<'a> Recovery<'a> {
    pub(crate) fn new(sidecar: &'a Sidecar, positions: &Positions, meter: &'a Gauge<'a>) -> Recovery<'a> {
        Recovery { sidecar, meter, serves: serving(sidecar, positions) }
    }

    /// Jobs for all recovery shards.
    pub(crate) fn jobs(&self) -> Vec<RecoveryJob> {
        /// Bytes that are read and hashed at a time: they stay in the cache on the way.
        const PIECE: u64 = 128 << 10;
        let catalog = &self.sidecar.catalog;
        let mut jobs = Vec::new();
        let mut before = 0;
        for (nth, group) in catalog.groups.iter().enumerate() {
            let (total, step) = (group.recovery(), (PIECE / u64::from(catalog.block)).max(1));
            let starts = (0..total).step_by(step as usize);
            jobs.extend(starts.map(|start| {
                let range = start..(start + step).min(total);
                RecoveryJob { group: nth, before, range }
            }));
            before += total;
        }
        jobs
    }

    /// Examines jobs until the time is over, and adds faults to `found`. Returns how many jobs, from the first on, were
    /// done.
    pub(crate) fn look_at(
        &self,
        jobs: &[RecoveryJob],
        until: Option<Instant>,
        found: &mut RecoveryFound,
        context: &Context<'_>,
    ) -> usize {
        let catalog = &self.sidecar.catalog;
        let block = u64::from(catalog.block);
        let wrong_ones = Mutex::new(found);
        let done = AtomicUsize::new(jobs.len());
        Threads(context.settings.threads).run(jobs.len(), &|job| {
            if self.meter.is_cancelled() || until.is_some_and(|until| Instant::now() >= until) {
                done.fetch_min(job, Ordering::Relaxed);
                return;
            }
            let RecoveryJob { group: nth, before, ref range } = jobs[job];
            let group = catalog.groups[nth];
            let extent = &catalog.extents[group.extent as usize];
            let mut bytes = vec![0; ((range.end - range.start) * block) as usize];
            let stage = stages::enter(Stage::Read, bytes.len() as u64);
            let mut unread = Vec::new();
            let mut at = range.start;
            while at < range.end {
                let (place, in_one_go) = extent.block(group.first + at, block);
                let count = in_one_go.min(range.end - at);
                let part = &mut bytes[((at - range.start) * block) as usize..][..(count * block) as usize];
                if self.sidecar.file.read_exact_at(place, part).is_err() {
                    // Reads block by block, to keep all readable blocks.
                    for (nth, part) in part.chunks_exact_mut(block as usize).enumerate() {
                        if self.sidecar.file.read_exact_at(place + nth as u64 * block, part).is_err() {
                            part.fill(0);
                            unread.push(at + nth as u64);
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
                *digest != self.sidecar.recovery_digest(nth, *shard) || unread.contains(shard)
            });
            for (shard, _) in wrong.filter(|(shard, _)| self.serves.get(before + shard)) {
                let elsewhere = self.find(nth, shard).is_some();
                let mut found = lock(&wrong_ones);
                if elsewhere { found.displaced.set(before + shard) } else { found.erased.set(before + shard) }
            }
        });
        done.into_inner()
    }

    fn find(&self, group: usize, shard: u64) -> Option<Vec<u8>> {
        if self.sidecar.shifts.is_empty() { None } else { read_recovery(self.sidecar, group, shard) }
    }
}

/// A recovery shard, from wherever it stands; `None` if it is not intact.
pub(crate) fn read_recovery(sidecar: &Sidecar, group: usize, shard: u64) -> Option<Vec<u8>> {
    let catalog = &sidecar.catalog;
    let of = catalog.groups[group];
    let extent = &catalog.extents[of.extent as usize];
    let mut bytes = vec![0; catalog.block as usize];
    let places = sidecar.shifts.places(extent, of.first + shard, catalog.block.into());
    let expected = sidecar.recovery_digest(group, shard);
    places.into_iter().find_map(|place| {
        sidecar.file.read_exact_at(place, &mut bytes).ok()?;
        (plain_digests(&bytes, bytes.len())[0] == expected).then(|| bytes.clone())
    })
}

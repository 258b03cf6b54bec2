//! Looks at recovery shards, wherever they stand.

use super::Sidecar;
use super::bits::Bits;
use super::hashing::plain_digests;
use crate::context::{Context, Meter};
use crate::io::ReadAt;
use crate::stages::{self, Stage};
use crate::threads::Threads;
use fec_core::executor::{Executor, into_value, lock};
use std::sync::Mutex;

/// Looks at the recovery shards.
pub(super) struct Recovery<'a> {
    pub(super) sidecar: &'a Sidecar,
    pub(super) meter: &'a dyn Meter,
}

impl Recovery<'_> {
    /// Those that are not there, and those that stand elsewhere.
    pub(super) fn look(&self, context: &Context<'_>) -> (Bits, Bits) {
        /// Bytes that are read and hashed at a time: they stay in the cache on the way.
        const PIECE: u64 = 128 << 10;
        let catalog = &self.sidecar.catalog;
        let block = u64::from(catalog.block);
        let total = catalog.groups.iter().map(|group| group.recovery()).sum();
        let erased = Mutex::new((Bits::new(total), Bits::new(total)));
        let mut jobs = Vec::new();
        let mut before = 0;
        for (nth, group) in catalog.groups.iter().enumerate() {
            let step = (PIECE / block).max(1);
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
            let mut unread = Vec::new();
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

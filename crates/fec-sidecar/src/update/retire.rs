//! Takes what has left out of the recovery data, while a folder elsewhere still has its bytes.
//!
//! A recovery shard is a sum over the originals of its set. With zeros in place of some originals it is the old shard
//! plus what these contribute, since addition is its own inverse. Neither what stays nor what was lost before is read:
//! the cost is that of what has left, and of the recovery shards of its groups.

use super::compare::Fate;
use super::layout::Extension;
use super::leaving::Leaving;
use super::updated::NotRetired;
use super::updating::Update;
use crate::catalog::bits::Bits;
use crate::catalog::hashing::plain_digests;
use crate::catalog::positions::Positions;
use crate::catalog::sources::Sources;
use crate::error::SidecarError;
use crate::examine::recovery::read_recovery;
use crate::protect::check_memory;
use crate::protect::coding::{Coded, Coding, Put, Source};
use fec_base::error::{Action, Error, Result};
use fec_core::digest::Digest;
use fec_core::executor::lock;
use fec_core::format::sidecar::Entry;
use fec_core::format::sidecar::catalog::{Catalog, ShortDigest};
use fec_core::format::sidecar::extent::Extent;
use fec_core::format::sidecar::group::SidecarGroup;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Mutex;

/// The bytes that were coded at positions of old groups.
#[derive(Default)]
pub(super) struct Filled {
    /// Bytes of files there.
    pub(super) len: u64,
    /// Their chaining values, by position; of no use for those with tails.
    pub(super) values: HashMap<u64, Digest>,
    /// The tails among them, by entry.
    pub(super) tails: Vec<(usize, Digest)>,
    /// Positions with their anchors.
    pub(super) anchors: Vec<(u64, u64)>,
}

impl Filled {
    /// Takes what was coded at these positions, those that are `filled`, and gives them their digests.
    fn take(&mut self, coded: Coded, of: (Range<u64>, &mut [ShortDigest]), filled: &Bits) {
        let Coded { values, digests, tails, anchors } = coded;
        self.anchors.extend(anchors);
        let tails = (0..).zip(tails).filter_map(|(entry, tail)| Some((entry, tail?)));
        self.tails.extend(tails);
        let (positions, now) = of;
        for ((position, now), (digest, value)) in positions.zip(now).zip(digests.into_iter().zip(values)) {
            if filled.has(position) {
                *now = digest;
                self.values.insert(position, value);
            }
        }
    }
}

impl Update<'_> {
    /// Writes the recovery shards of the groups that positions leave or come to, by `put`, and gives them and these
    /// positions their digests.
    ///
    /// # Errors
    /// Those of the sidecar; any, with [`NotRetired`] noted, if a recovery shard is damaged or a file is another one.
    pub(super) fn retire(&self, new: &mut Extension, put: &Put<'_>) -> Result<Filled> {
        let (Some(leaving), old) = (&self.leaving, self.old) else { return Ok(Filled::default()) };
        let (base, seen, block) = (&self.found.base, &self.found.tree.seen, old.catalog.block);
        let left =
            Positions::of(&old.catalog).only(|span| self.sources.have(span)).cut_to(&leaving.positions);
        let come = Positions::of(&new.catalog).cut_to(&new.filled);
        let mut filled = Filled { len: come.len(0..new.catalog.positions()), ..Filled::default() };
        let meter = self.context.meter(Action::Update, Some(leaving.len + filled.len));
        // The sums of a group stand one behind the other, as if they were an extent.
        let bare = |entries: &[Entry]| {
            let (extents, groups) =
                (vec![Extent { start: 0, blocks: 1, pieces: 2, piece_len: 0 }], Vec::new());
            Catalog { block, extents, groups, entries: entries.to_vec() }
        };
        let (mut was, mut now) = (bare(&old.catalog.entries), bare(&new.catalog.entries));
        let target = new.catalog.extents[0];
        let (mut first, mut first_digest) = (0, 0);
        let groups = new.kept.groups.iter().zip(&new.catalog.groups).zip(&new.summed);
        for (nth, ((kept, group), is_summed)) in groups.enumerate() {
            let (at, positions) = (first_digest, first..first + group.positions());
            (first, first_digest) = (positions.end, at + (group.positions() + group.recovery()) as usize);
            if !is_summed {
                continue;
            }
            let groups = [&old.catalog.groups[..kept.nth], &new.catalog.groups[..nth]];
            for (catalog, before) in [&mut was, &mut now].into_iter().zip(groups) {
                catalog.extents[0].blocks = group.recovery();
                catalog.groups = before.to_vec();
                catalog.groups.push(SidecarGroup { extent: 0, first: 0, ..*group });
            }
            let (of_positions, of_shards) =
                new.digests[at..first_digest].split_at_mut(group.positions() as usize);
            check_memory(&was, self.context)?;
            let of_shards = Mutex::new(of_shards);
            let add = |offset: u64, sums: &[u8]| {
                for (shard, sum) in (offset / u64::from(block)..).zip(sums.chunks_exact(block as usize)) {
                    let Some(mut bytes) = read_recovery(old, kept.nth, shard) else {
                        return Err(self.not_retired(NotRetired::Damaged));
                    };
                    bytes.iter_mut().zip(sum).for_each(|(byte, sum)| *byte ^= sum);
                    lock(&of_shards)[shard as usize] = plain_digests(&bytes, bytes.len())[0];
                    put(target.block(group.first + shard, block.into()).0, &bytes)?;
                }
                Ok(())
            };
            let come = come.part(positions.clone());
            let coming = Coding::of((base, Source::Found(seen)), (&now, come), &add, self.context, &meter);
            let source = (base, Source::Old(&self.sources));
            let left = left.part(kept.was.clone());
            let coded = Coding::of(source, (&was, left), &add, self.context, &meter).with(&coming).run()?;
            self.check_retired(leaving, (&was, kept.was.start), &coded)?;
            filled.take(coming.into_coded(), (positions, of_positions), &new.filled);
        }
        meter.finish();
        Ok(filled)
    }

    /// Fails unless what was taken out is what was protected.
    fn check_retired(
        &self,
        leaving: &Leaving,
        (catalog, first): (&Catalog, u64),
        coded: &Coded,
    ) -> Result<()> {
        let group = catalog.groups[catalog.groups.len() - 1];
        let is_other = |(position, digest): &(u64, &ShortDigest)| {
            leaving.has(*position) && **digest != self.old.digest_of(*position)
        };
        let of_group = &coded.digests[..group.positions() as usize];
        let Some((position, _)) = (first..).zip(of_group).find(is_other) else { return Ok(()) };
        let span = Positions::of(&self.old.catalog).within(position..position + 1).next();
        let entry = span.expect("only what had bytes leaves").entry;
        Err(self.not_retired(NotRetired::Other(self.old.catalog.entries[entry as usize].path.clone())))
    }

    /// Notes why nothing can be taken out, which ends the attempt.
    fn not_retired(&self, why: NotRetired) -> Error {
        *lock(&self.notes.not_retired) = Some(why);
        Error::at(Action::Update, self.job.output, SidecarError::Displaced)
    }

    /// The places of what was protected.
    ///
    /// # Errors
    /// That of opening the folder with what has left.
    pub(super) fn sources(&self) -> Result<Sources> {
        let old = &self.old.catalog;
        let mut stays = Bits::new(old.entries.len() as u64);
        for (entry, fate) in self.found.tree.entries.iter().zip(&self.fates) {
            if let Fate::Same(of) = fate
                && old.entries[*of as usize].path == entry.path
            {
                stays.set((*of).into());
            }
        }
        let folder = self.notes.folder(self.job);
        Sources::of(old, |nth| stays.get(nth as u64), folder)
            .map_err(|e| Error::io(Action::Read, folder.unwrap_or(self.job.output), e))
    }
}

//! Sets of at most 256 shards: several are read side by side, and each is computed by a matrix.

use super::{Group, Rebuild, Sink, Wants};
use crate::catalog::hashing::plain_digests;
use crate::error::SidecarError;
use crate::examine::recovery::read_recovery;
use fec_base::error::Result;
use fec_base::program::stages::{self, Stage};
use fec_core::block::{Code, Plan, ShardBuf};
use fec_core::gf256::kernel::Backend;

/// Rows of sets: their originals side by side, and the computed shards.
type Rows<'a> = (&'a mut ShardBuf, &'a mut ShardBuf);

/// Sets that are read together.
struct Sets {
    first: u64,
    count: u64,
}

impl Rebuild<'_> {
    /// Computes the sets of a group in which anything is wanted.
    pub(super) fn small_sets(
        &self,
        (group, code): (&Group, Code),
        is_wanted: &[bool],
        wants: &Wants<'_>,
        sink: &mut dyn Sink,
    ) -> Result<Option<SidecarError>> {
        let sets = u64::from(group.of.sets);
        let block = u64::from(self.sidecar.catalog.block);
        let k = code.k();
        // The budget covers the rows of all originals, and the computed shards of one set.
        let budget = self.context.settings.max_memory / 2;
        let most = (budget / (k as u64 * block)).min((128 << 10) / block).clamp(1, sets);
        let mut rows = ShardBuf::new(k, (most * block) as usize);
        let mut computed = ShardBuf::new(code.n(), block as usize);
        let mut plans = Plans { code, backend: self.context.settings.backend, last: None };
        let mut contradiction = None;
        let mut set = 0;
        while set < sets {
            self.meter.check()?;
            if !is_wanted[set as usize] {
                set += 1;
                continue;
            }
            let count =
                is_wanted[set as usize..].iter().take(most as usize).take_while(|is| **is).count() as u64;
            let these = Sets { first: set, count };
            self.read(group, &these, &mut rows);
            for nth in 0..count {
                let found =
                    self.set(group, &these, nth, (&mut rows, &mut computed), &mut plans, wants, sink)?;
                contradiction = contradiction.or(found);
            }
            self.meter.add(count * k as u64 * block);
            set += count;
        }
        Ok(contradiction)
    }

    /// Reads the originals of sets, side by side. Unreadable bytes were already found by the examination.
    fn read(&self, group: &Group, sets: &Sets, rows: &mut ShardBuf) {
        let block = u64::from(self.sidecar.catalog.block);
        let _stage = stages::enter(Stage::Read, sets.count * block * rows.rows() as u64);
        let mut reader = self.reader();
        rows.set_row_len((sets.count * block) as usize);
        for index in 0..rows.rows() {
            let first = group.first + group.of.position(sets.first, index as u64);
            let _ = reader.fill(first, rows.row_mut(index), |_, _| Ok::<(), ()>(()));
        }
    }

    /// Computes set number `nth` of the sets that were read.
    #[allow(clippy::too_many_arguments)]
    fn set(
        &self,
        group: &Group,
        sets: &Sets,
        nth: u64,
        (rows, computed): Rows<'_>,
        plans: &mut Plans,
        wants: &Wants<'_>,
        sink: &mut dyn Sink,
    ) -> Result<Option<SidecarError>> {
        let block = self.sidecar.catalog.block as usize;
        let code = plans.code;
        let set = Set { group, k: code.k() as u64, nth: sets.first + nth };
        let mine = nth as usize * block..(nth as usize + 1) * block;
        let (lost, known) = self.shards_of(&set, code, computed);
        let originals = known.iter().filter(|index| usize::from(**index) < code.k()).count();
        if known.len() < code.k() {
            // The set cannot be mended, which the examination reported, so nothing is handed over.
            return Ok(None);
        }
        if !lost.is_empty() {
            let _stage = stages::enter(Stage::Code, (code.k() * block) as u64);
            let plan = plans.get(&known, &lost);
            let (sources, mut wanted) = computed.split_rows(|index| lost.contains(&(index as u8)));
            // Rows of `computed` that are no destination, by their index.
            let free: Vec<usize> = (0..code.n()).filter(|index| !lost.contains(&(*index as u8))).collect();
            let recovered = |index: u8| sources[free.partition_point(|at| *at < usize::from(index))];
            let known_rows: Vec<&[u8]> = known
                .iter()
                .enumerate()
                .map(|(at, index)| match at < originals {
                    true => &rows.row(usize::from(*index))[mine.clone()],
                    false => recovered(*index),
                })
                .collect();
            plan.run(&known_rows, &mut wanted);
        }
        let known = &known[..originals];
        let mut wrong = None;
        for index in &lost {
            let position = set.position(*index);
            let bytes = computed.row(usize::from(*index));
            if self.is_right(position, bytes) {
                sink.position(position, bytes)?;
            } else if wants.check || (wants.position)(position) {
                wrong.get_or_insert(position);
            }
        }
        if let Some(position) = wrong {
            let row = |index: u8| &rows.row(usize::from(index))[mine.clone()];
            let mut wrong = known.iter().filter(|index| !self.is_right(set.position(**index), row(**index)));
            let wrong = wrong.next().map(|index| set.position(*index));
            return self.verdict(wrong, Some(position)).map(Some);
        }
        for index in &lost {
            rows.row_mut(usize::from(*index))[mine.clone()]
                .copy_from_slice(computed.row(usize::from(*index)));
        }
        self.recovery(&set, known, (rows, nth), computed, plans, wants, sink)
    }

    /// Computes the recovery shards of a set whose originals are all known.
    #[allow(clippy::too_many_arguments)]
    fn recovery(
        &self,
        set: &Set<'_>,
        known: &[u8],
        (rows, nth): (&ShardBuf, u64),
        computed: &mut ShardBuf,
        plans: &mut Plans,
        wants: &Wants<'_>,
        sink: &mut dyn Sink,
    ) -> Result<Option<SidecarError>> {
        let (code, block) = (plans.code, self.sidecar.catalog.block as usize);
        let is_lost = |index: u8| self.examined.recovery_erased.get(set.recovery(index));
        let of_set = (code.k()..code.n()).map(|index| index as u8);
        let computes: Vec<u8> =
            of_set.filter(|index| wants.check || wants.recovery && is_lost(*index)).collect();
        if computes.is_empty() {
            return Ok(None);
        }
        let row = |index: u8| &rows.row(usize::from(index))[nth as usize * block..][..block];
        let all: Vec<u8> = (0..code.k()).map(|index| index as u8).collect();
        let plan = plans.get(&all, &computes);
        let sources: Vec<&[u8]> = all.iter().map(|index| row(*index)).collect();
        let (_, mut wanted) = computed.split_rows(|index| computes.contains(&(index as u8)));
        plan.run(&sources, &mut wanted);
        let digest = |index: u8| plain_digests(computed.row(usize::from(index)), block)[0];
        let expected = |index: u8| self.sidecar.recovery_digest(set.group.nth, set.shard(index));
        let mut is_wrong = false;
        for index in &computes {
            if digest(*index) != expected(*index) {
                is_wrong = true;
            } else if wants.recovery && is_lost(*index) {
                sink.recovery(set.group.nth, set.shard(*index), computed.row(usize::from(*index)))?;
            }
        }
        let first_wrong = |unseen: bool| {
            let mut positions = known.iter().map(|index| (set.position(*index), row(*index)));
            let is_wrong = |(position, bytes): &(u64, &[u8])| {
                (!unseen || self.is_unseen(*position)) && !self.is_right(*position, bytes)
            };
            positions.find(is_wrong).map(|(position, _)| position)
        };
        if is_wrong || wants.check && first_wrong(true).is_some() {
            return self.verdict(first_wrong(false), None).map(Some);
        }
        Ok(None)
    }

    /// The lost originals of a set, and up to k known shards, originals first. Recovery shards are read into
    /// `computed`; unreadable ones are passed over.
    fn shards_of(&self, set: &Set<'_>, code: Code, computed: &mut ShardBuf) -> (Vec<u8>, Vec<u8>) {
        let (lost, mut known): (Vec<u8>, Vec<u8>) = (0..code.k())
            .map(|index| index as u8)
            .partition(|index| self.examined.erased.get(set.position(*index)));
        for index in (code.k()..code.n()).map(|index| index as u8) {
            if known.len() == code.k() {
                break;
            }
            if !self.examined.recovery_erased.get(set.recovery(index))
                && let Some(bytes) = read_recovery(self.sidecar, set.group.nth, set.shard(index))
            {
                computed.row_mut(usize::from(index)).copy_from_slice(&bytes);
                known.push(index);
            }
        }
        (lost, known)
    }
}

/// A set of a group.
struct Set<'a> {
    group: &'a Group,
    k: u64,
    nth: u64,
}

impl Set<'_> {
    /// The position of an original, over all groups.
    fn position(&self, index: u8) -> u64 {
        self.group.first + self.group.of.position(self.nth, index.into())
    }

    /// The number of a recovery shard in its group.
    fn shard(&self, index: u8) -> u64 {
        self.group.of.shard(self.nth, u64::from(index) - self.k)
    }

    /// The number of a recovery shard, over all groups.
    fn recovery(&self, index: u8) -> u64 {
        self.group.first_recovery + self.shard(index)
    }
}

/// The plan that was used last, since neighbouring sets have often lost the same shards.
struct Plans {
    code: Code,
    backend: Backend,
    last: Option<(Vec<u8>, Vec<u8>, Plan)>,
}

impl Plans {
    fn get(&mut self, known: &[u8], wanted: &[u8]) -> &Plan {
        let is_last = self.last.as_ref().is_some_and(|(k, w, _)| k == known && w == wanted);
        if !is_last {
            let plan =
                Plan::new(self.code, self.backend, known, wanted).expect("k distinct shards are known");
            self.last = Some((known.to_vec(), wanted.to_vec(), plan));
        }
        &self.last.as_ref().expect("it was just made").2
    }
}

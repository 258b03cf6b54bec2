//! Computes what is lost: originals from what is intact of their sets, and recovery shards from the originals.

use super::Sidecar;
use super::examine::Examined;
use super::hashing::plain_digests;
use super::metadata::LOST;
use super::positions::{Any, PositionReader, Positions};
use super::recovery::read_recovery;
use crate::context::{Context, Meter};
use crate::error::{Error, ErrorKind, Result};
use crate::io::base::Base;
use crate::stages::{self, Stage};
use fec_core::block::{Code, Plan, ShardBuf};
use fec_core::digest::blocks;
use fec_core::format::sidecar::catalog::{SidecarGroup, shortened};
use fec_core::gf256::kernel::Backend;

/// Takes what was computed, each proved by its digest.
pub(super) trait Sink {
    /// The bytes of a position, over all groups.
    fn position(&mut self, position: u64, bytes: &[u8]) -> Result<()>;

    /// Recovery shard `shard` of a group.
    fn recovery(&mut self, group: usize, shard: u64, bytes: &[u8]) -> Result<()>;
}

/// Computes all that is erased of the sets in which something is wanted.
pub(super) struct Rebuild<'a> {
    pub(super) sidecar: &'a Sidecar,
    pub(super) base: &'a Base,
    pub(super) positions: &'a Positions,
    pub(super) examined: &'a Examined,
    pub(super) context: &'a Context<'a>,
    pub(super) meter: &'a dyn Meter,
}

/// The group that is worked on.
struct Group {
    nth: usize,
    of: SidecarGroup,
    /// Its first position, and its first recovery shard, over all groups.
    first: u64,
    first_recovery: u64,
}

/// Sets that are read together.
struct Sets {
    first: u64,
    count: u64,
}

impl Rebuild<'_> {
    /// Hands all that is wanted to `sink`.
    ///
    /// # Errors
    /// [`ErrorKind::Changed`] when what is computed has not its digest: somebody wrote to the files meanwhile. Those of the
    /// sink.
    pub(super) fn run(
        &self,
        wants_position: &dyn Fn(u64) -> bool,
        wants_recovery: bool,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let block = u64::from(self.sidecar.catalog.block);
        let need = self.sidecar.catalog.groups.iter().map(|of| (of.code.k() + of.code.n()) as u64 * block);
        let (need, most) = (need.max().unwrap_or(0), self.context.settings.max_memory);
        if need > most {
            return Err(Error::at("repair", self.sidecar.path(), ErrorKind::SetMemory { need, most }));
        }
        let (mut first, mut first_recovery) = (0, 0);
        for (nth, of) in self.sidecar.catalog.groups.iter().enumerate() {
            let group = Group { nth, of: *of, first, first_recovery };
            self.group(&group, wants_position, wants_recovery, sink)?;
            first += of.positions();
            first_recovery += of.recovery();
        }
        Ok(())
    }

    fn group(
        &self,
        group: &Group,
        wants_position: &dyn Fn(u64) -> bool,
        wants_recovery: bool,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let sets = u64::from(group.of.sets);
        let mut is_wanted = vec![false; sets as usize];
        for index in 0..group.of.positions() {
            let position = group.first + index;
            if self.examined.erased.get(position) && wants_position(position) {
                is_wanted[(index % sets) as usize] = true;
            }
        }
        if wants_recovery {
            let erased = &self.examined.recovery_erased;
            let of_group = (0..group.of.recovery()).filter(|index| erased.get(group.first_recovery + index));
            of_group.for_each(|index| is_wanted[(index % sets) as usize] = true);
        }
        if !is_wanted.contains(&true) {
            return Ok(());
        }
        let block = u64::from(self.sidecar.catalog.block);
        let k = group.of.code.k();
        // Rows of all originals, and what is computed of one set.
        let budget = self.context.settings.max_memory / 2;
        let most = (budget / (k as u64 * block)).min((128 << 10) / block).clamp(1, sets);
        let mut rows = ShardBuf::new(k, (most * block) as usize);
        let mut computed = ShardBuf::new(group.of.code.n(), block as usize);
        let mut plans = Plans { backend: self.context.settings.backend, last: None };
        let mut set = 0;
        while set < sets {
            if !is_wanted[set as usize] {
                set += 1;
                continue;
            }
            let count =
                is_wanted[set as usize..].iter().take(most as usize).take_while(|is| **is).count() as u64;
            let these = Sets { first: set, count };
            self.read(group, &these, &mut rows);
            for nth in 0..count {
                self.set(group, &these, nth, (&mut rows, &mut computed), (&mut plans, wants_recovery), sink)?;
            }
            self.meter.add(count * k as u64 * block);
            set += count;
        }
        Ok(())
    }

    /// Reads the originals of sets, side by side; what cannot be read was found to be so before.
    fn read(&self, group: &Group, sets: &Sets, rows: &mut ShardBuf) {
        let block = u64::from(self.sidecar.catalog.block);
        let _stage = stages::enter(Stage::Read, sets.count * block * rows.rows() as u64);
        let mut reader = PositionReader::new(self.base, &self.sidecar.catalog, self.positions, &Any)
            .with(&self.examined.moved);
        rows.set_row_len((sets.count * block) as usize);
        for index in 0..rows.rows() {
            let first = group.first + index as u64 * u64::from(group.of.sets) + sets.first;
            let _ = reader.fill(first, rows.row_mut(index), |_, _| Ok::<(), ()>(()));
        }
    }

    /// Computes one set of those that were read: number `nth` of them.
    fn set(
        &self,
        group: &Group,
        sets: &Sets,
        nth: u64,
        (rows, computed): (&mut ShardBuf, &mut ShardBuf),
        (plans, wants_recovery): (&mut Plans, bool),
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let block = self.sidecar.catalog.block as usize;
        let (code, set) = (group.of.code, sets.first + nth);
        let all_sets = u64::from(group.of.sets);
        let position = |index: u8| group.first + u64::from(index) * all_sets + set;
        let shard = |index: u8| (u64::from(index) - code.k() as u64) * all_sets + set;
        let (lost, left): (Vec<u8>, Vec<u8>) = (0..code.k())
            .map(|index| index as u8)
            .partition(|index| self.examined.erased.get(position(*index)));
        let is_erased = |index: &u8| self.examined.recovery_erased.get(group.first_recovery + shard(*index));
        let (lost_recovery, left_recovery): (Vec<u8>, Vec<u8>) =
            (code.k()..code.n()).map(|index| index as u8).partition(is_erased);
        // The recovery shards that take the place of what is lost; one that cannot be read any more is passed over.
        let mut known = left;
        let originals = known.len();
        for index in left_recovery {
            if known.len() == code.k() {
                break;
            }
            if let Some(bytes) = read_recovery(self.sidecar, group.nth, shard(index)) {
                computed.row_mut(usize::from(index)).copy_from_slice(&bytes);
                known.push(index);
            }
        }
        if known.len() < code.k() {
            // The set cannot be mended, which the examination said; there is nothing to hand over.
            return Ok(());
        }
        if !lost.is_empty() {
            let _stage = stages::enter(Stage::Code, (code.k() * block) as u64);
            let plan = plans.get(code, &known, &lost);
            let (sources, mut wanted) = computed.split_rows(|index| lost.contains(&(index as u8)));
            // Rows of `computed` that are no destination, by their index.
            let free: Vec<usize> = (0..code.n()).filter(|index| !lost.contains(&(*index as u8))).collect();
            let recovered = |index: u8| sources[free.partition_point(|at| *at < usize::from(index))];
            let known_rows: Vec<&[u8]> = known
                .iter()
                .enumerate()
                .map(|(at, index)| match at < originals {
                    true => &rows.row(usize::from(*index))[nth as usize * block..][..block],
                    false => recovered(*index),
                })
                .collect();
            plan.run(&known_rows, &mut wanted);
        }
        for index in &lost {
            let bytes = computed.row(usize::from(*index));
            self.check(position(*index), bytes)?;
            sink.position(position(*index), bytes)?;
            rows.row_mut(usize::from(*index))[nth as usize * block..][..block].copy_from_slice(bytes);
        }
        if wants_recovery && !lost_recovery.is_empty() {
            let all: Vec<u8> = (0..code.k()).map(|index| index as u8).collect();
            let plan = plans.get(code, &all, &lost_recovery);
            let sources: Vec<&[u8]> =
                (0..code.k()).map(|index| &rows.row(index)[nth as usize * block..][..block]).collect();
            let (_, mut wanted) = computed.split_rows(|index| lost_recovery.contains(&(index as u8)));
            plan.run(&sources, &mut wanted);
            for index in &lost_recovery {
                let bytes = computed.row(usize::from(*index));
                if plain_digests(bytes, block)[0] != self.sidecar.recovery_digest(group.nth, shard(*index)) {
                    return Err(self.changed());
                }
                sink.recovery(group.nth, shard(*index), bytes)?;
            }
        }
        Ok(())
    }

    /// Fails when bytes have not the digest of their position. What was lost for good has none.
    fn check(&self, position: u64, bytes: &[u8]) -> Result<()> {
        let expected = self.sidecar.digest_of(position);
        if expected == LOST {
            return Ok(());
        }
        let found = match self.positions.whole_block(position) {
            Some(offset) => {
                let mut value = [[0; 32]];
                blocks::values(bytes, bytes.len(), offset, &mut value);
                shortened(&value[0])
            }
            None => plain_digests(bytes, bytes.len())[0],
        };
        if found == expected { Ok(()) } else { Err(self.changed()) }
    }

    fn changed(&self) -> Error {
        Error::at("repair", self.base.path(), ErrorKind::Changed)
    }
}

/// The plan that was used last: neighbouring sets have often lost the same shards.
struct Plans {
    backend: Backend,
    last: Option<(Vec<u8>, Vec<u8>, Plan)>,
}

impl Plans {
    fn get(&mut self, code: Code, known: &[u8], wanted: &[u8]) -> &Plan {
        let is_last = self.last.as_ref().is_some_and(|(k, w, _)| k == known && w == wanted);
        if !is_last {
            let plan = Plan::new(code, self.backend, known, wanted).expect("k distinct shards are known");
            self.last = Some((known.to_vec(), wanted.to_vec(), plan));
        }
        &self.last.as_ref().expect("it was just made").2
    }
}

//! Computes lost shards: originals from the intact shards of their sets, and recovery shards from the originals.
//!
//! A shard that is computed from intact shards but lacks its digest proves that the set is no codeword: the maker of
//! the sidecar erred. Hashing the sources again tells this from files that change meanwhile.

use crate::Sidecar;
use crate::catalog::hashing::{digest_of_file, plain_digests};
use crate::catalog::metadata::{LOST, NOTHING};
use crate::catalog::positions::{Any, PositionReader, Positions, Span};
use crate::error::SidecarError;
use crate::examine::Examined;
use crate::examine::recovery::{read_recovery, serving};
use fec_base::context::{Context, Gauge};
use fec_base::error::{Action, Error, ErrorKind, Result};
use fec_base::io::base::Base;
use fec_base::program::stages::{self, Stage};
use fec_core::block::{Code, Plan, ShardBuf};
use fec_core::digest::blocks;
use fec_core::format::sidecar::EntryKind;
use fec_core::format::sidecar::catalog::{ShortDigest, SidecarGroup, shortened};
use fec_core::gf256::kernel::Backend;

/// Takes computed shards, each proved by its digest.
pub(crate) trait Sink {
    /// Takes the bytes of a position, over all groups.
    fn position(&mut self, position: u64, bytes: &[u8]) -> Result<()>;

    /// Takes recovery shard `shard` of a group.
    fn recovery(&mut self, group: usize, shard: u64, bytes: &[u8]) -> Result<()>;
}

/// Computes all erased shards of the sets in which anything is wanted.
pub(crate) struct Rebuild<'a> {
    pub(crate) sidecar: &'a Sidecar,
    pub(crate) base: &'a Base,
    pub(crate) positions: &'a Positions,
    pub(crate) examined: &'a Examined,
    pub(crate) context: &'a Context<'a>,
    pub(crate) meter: &'a Gauge<'a>,
}

/// The shards to compute.
pub(crate) struct Wants<'a> {
    /// Tells whether a lost position is wanted.
    pub(crate) position: &'a dyn Fn(u64) -> bool,
    /// True if lost recovery shards are wanted.
    pub(crate) recovery: bool,
    /// True if every set that can mend anything is computed in full, only to compare it with its digests.
    pub(crate) check: bool,
}

/// Rows of sets: their originals side by side, and the computed shards.
type Rows<'a> = (&'a mut ShardBuf, &'a mut ShardBuf);

/// The group under work.
struct Group {
    nth: usize,
    of: SidecarGroup,
    /// The first position and the first recovery shard of the group, over all groups.
    first: u64,
    first_recovery: u64,
}

/// Sets that are read together.
struct Sets {
    first: u64,
    count: u64,
}

impl Rebuild<'_> {
    /// Hands all wanted shards to `sink`. A set that is no codeword hands over no wrong shard. The first such set is
    /// returned, since it means that the sidecar contradicts itself.
    ///
    /// Memory: at most half of what the settings allow, but no less than one set.
    ///
    /// # Errors
    /// [`ErrorKind::Changed`] when the bytes read differ from those examined, because somebody wrote to the files
    /// meanwhile. Those of the sink.
    pub(crate) fn run(&self, wants: &Wants<'_>, sink: &mut dyn Sink) -> Result<Option<SidecarError>> {
        let block = u64::from(self.sidecar.catalog.block);
        let need = self.sidecar.catalog.groups.iter().map(|of| (of.code.k() + of.code.n()) as u64 * block);
        let (need, most) = (need.max().unwrap_or(0), self.context.settings.max_memory);
        if need > most {
            return Err(Error::at(Action::Repair, self.sidecar.path(), ErrorKind::SetMemory { need, most }));
        }
        let serves = serving(self.sidecar, self.positions);
        let (mut first, mut first_recovery) = (0, 0);
        let mut contradiction = None;
        for (nth, of) in self.sidecar.catalog.groups.iter().enumerate() {
            let group = Group { nth, of: *of, first, first_recovery };
            let serves = |set: u64| serves.get(first_recovery + set);
            let found = self.group(&group, wants, &serves, sink)?;
            contradiction = contradiction.or(found);
            first += of.positions();
            first_recovery += of.recovery();
        }
        Ok(contradiction)
    }

    /// The sets of a group in which anything is wanted.
    fn wanted_sets(&self, group: &Group, wants: &Wants<'_>, serves: &dyn Fn(u64) -> bool) -> Vec<bool> {
        let sets = u64::from(group.of.sets);
        let mut is_wanted: Vec<bool> = (0..sets).map(|set| wants.check && serves(set)).collect();
        for index in 0..group.of.positions() {
            let position = group.first + index;
            if self.examined.erased.get(position) && (wants.position)(position) {
                is_wanted[(index % sets) as usize] = true;
            }
        }
        if wants.recovery {
            let erased = &self.examined.recovery_erased;
            let of_group = (0..group.of.recovery()).filter(|index| erased.get(group.first_recovery + index));
            of_group.for_each(|index| is_wanted[(index % sets) as usize] = true);
        }
        is_wanted
    }

    fn group(
        &self,
        group: &Group,
        wants: &Wants<'_>,
        serves: &dyn Fn(u64) -> bool,
        sink: &mut dyn Sink,
    ) -> Result<Option<SidecarError>> {
        let sets = u64::from(group.of.sets);
        let is_wanted = self.wanted_sets(group, wants, serves);
        if !is_wanted.contains(&true) {
            return Ok(None);
        }
        let block = u64::from(self.sidecar.catalog.block);
        let k = group.of.code.k();
        // The budget covers the rows of all originals, and the computed shards of one set.
        let budget = self.context.settings.max_memory / 2;
        let most = (budget / (k as u64 * block)).min((128 << 10) / block).clamp(1, sets);
        let mut rows = ShardBuf::new(k, (most * block) as usize);
        let mut computed = ShardBuf::new(group.of.code.n(), block as usize);
        let mut plans = Plans { backend: self.context.settings.backend, last: None };
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
        let mut reader = PositionReader::new(self.base, &self.sidecar.catalog, self.positions, &Any)
            .with(&self.examined.moved);
        rows.set_row_len((sets.count * block) as usize);
        for index in 0..rows.rows() {
            let first = group.first + index as u64 * u64::from(group.of.sets) + sets.first;
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
        let code = group.of.code;
        let set = Set { group, nth: sets.first + nth };
        let mine = nth as usize * block..(nth as usize + 1) * block;
        let (lost, known) = self.shards_of(&set, computed);
        let originals = known.iter().filter(|index| usize::from(**index) < code.k()).count();
        if known.len() < code.k() {
            // The set cannot be mended, which the examination reported, so nothing is handed over.
            return Ok(None);
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
            return self.verdict(&set, known, &row, Some(position)).map(Some);
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
        let (code, block) = (set.group.of.code, self.sidecar.catalog.block as usize);
        let is_lost = |index: u8| self.examined.recovery_erased.get(set.recovery(index));
        let of_set = (code.k()..code.n()).map(|index| index as u8);
        let computes: Vec<u8> =
            of_set.filter(|index| wants.check || wants.recovery && is_lost(*index)).collect();
        if computes.is_empty() {
            return Ok(None);
        }
        let row = |index: u8| &rows.row(usize::from(index))[nth as usize * block..][..block];
        let all: Vec<u8> = (0..code.k()).map(|index| index as u8).collect();
        let plan = plans.get(code, &all, &computes);
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
        // Bytes that were not compared block by block: packed ones, and files that stand elsewhere as a whole.
        let was_unseen = |index: &&u8| {
            let position = set.position(**index);
            let block = block as u64;
            let is_elsewhere = || self.examined.moved.within(position * block..(position + 1) * block).next();
            self.positions.whole_block(position).is_none() || is_elsewhere().is_some()
        };
        let has_wrong_ones =
            || known.iter().filter(was_unseen).any(|index| !self.is_right(set.position(*index), row(*index)));
        if is_wrong || wants.check && has_wrong_ones() {
            return self.verdict(set, known, &row, None).map(Some);
        }
        Ok(None)
    }

    /// The lost originals of a set, and up to k known shards, originals first. Recovery shards are read into
    /// `computed`; unreadable ones are passed over.
    fn shards_of(&self, set: &Set<'_>, computed: &mut ShardBuf) -> (Vec<u8>, Vec<u8>) {
        let code = set.group.of.code;
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

    /// Tells whether bytes have the digest of their position. A position that was lost for good has no digest.
    fn is_right(&self, position: u64, bytes: &[u8]) -> bool {
        let expected = self.sidecar.digest_of(position);
        expected == LOST || expected == self.digest(position, bytes)
    }

    fn digest(&self, position: u64, bytes: &[u8]) -> ShortDigest {
        if let Some(offset) = self.positions.whole_block(position) {
            let mut value = [[0; 32]];
            blocks::values(bytes, bytes.len(), offset, &mut value);
            return shortened(&value[0]);
        }
        let is_nothing = self.positions.within(position..position + 1).next().is_none();
        match is_nothing && bytes.iter().all(|byte| *byte == 0) {
            true => NOTHING,
            false => plain_digests(bytes, bytes.len())[0],
        }
    }

    /// The meaning of a computed shard without its digest, perhaps at `needed`: the sidecar contradicts itself, unless
    /// an original has changed since it was found intact.
    fn verdict<'r>(
        &self,
        set: &Set<'_>,
        known: &[u8],
        row: &dyn Fn(u8) -> &'r [u8],
        needed: Option<u64>,
    ) -> Result<SidecarError> {
        let entries = &self.sidecar.catalog.entries;
        for index in known {
            let position = set.position(*index);
            if self.is_right(position, row(*index)) {
                continue;
            }
            // The files are whole although a digest of their bytes is wrong: the sidecar contradicts itself.
            let spans = || self.positions.within(position..position + 1);
            let first = spans().next().filter(|_| spans().all(|span| self.is_right_file(&span)));
            return first
                .map(|span| SidecarError::Contradiction(entries[span.entry as usize].path.to_vec()))
                .ok_or_else(|| Error::at(Action::Repair, self.base.path(), ErrorKind::Changed));
        }
        let needs = needed.and_then(|position| self.positions.within(position..position + 1).next());
        Ok(SidecarError::NotACodeword(needs.map(|span| entries[span.entry as usize].path.to_vec())))
    }

    /// Tells whether the file behind a span has the digest of its entry: the entry's own file, or the source that all
    /// of it stands in.
    fn is_right_file(&self, span: &Span) -> bool {
        let entry = &self.sidecar.catalog.entries[span.entry as usize];
        let moved = &self.examined.moved;
        let elsewhere = moved.within(span.at..span.end()).next();
        let path = elsewhere.map_or(&entry.path, |part| &moved.sources[part.source as usize]);
        match &entry.kind {
            EntryKind::File(file) => {
                let block = self.sidecar.catalog.block.into();
                let digest = self.base.read(path).and_then(|found| digest_of_file(&found, file, block));
                digest.is_ok_and(|digest| digest == file.blake3)
            }
            _ => false,
        }
    }
}

/// A set of a group.
struct Set<'a> {
    group: &'a Group,
    nth: u64,
}

impl Set<'_> {
    /// The position of an original, over all groups.
    fn position(&self, index: u8) -> u64 {
        self.group.first + u64::from(index) * u64::from(self.group.of.sets) + self.nth
    }

    /// The number of a recovery shard in its group.
    fn shard(&self, index: u8) -> u64 {
        (u64::from(index) - self.group.of.code.k() as u64) * u64::from(self.group.of.sets) + self.nth
    }

    /// The number of a recovery shard, over all groups.
    fn recovery(&self, index: u8) -> u64 {
        self.group.first_recovery + self.shard(index)
    }
}

/// The plan that was used last, since neighbouring sets have often lost the same shards.
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

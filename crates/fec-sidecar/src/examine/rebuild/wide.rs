//! Sets of up to 65,536 blocks: what is there is read once, coset by coset, and gives what is lost.

use super::{Group, Rebuild, Sink, Wants};
use crate::catalog::hashing::plain_digests;
use crate::catalog::positions::PositionReader;
use crate::catalog::wide::{WideBuffers, on_each, parts};
use crate::error::SidecarError;
use crate::examine::recovery::read_recovery;
use fec_base::error::Result;
use fec_base::program::stages::{self, Stage};
use fec_base::threads::Threads;
use fec_core::area::{AreaCode, AreaDecoder, AreaEncoder, AreaSolution};
use fec_core::executor::{into_value, lock};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Mutex;

/// Originals of a set that were computed, by their numbers.
type Computed = HashMap<u64, Box<[u8]>>;

impl Rebuild<'_> {
    /// Computes the sets of a group in which anything is wanted.
    pub(super) fn wide_sets(
        &self,
        (group, code): (&Group, AreaCode),
        is_wanted: &[bool],
        wants: &Wants<'_>,
        sink: &mut dyn Sink,
    ) -> Result<Option<SidecarError>> {
        let settings = &self.context.settings;
        let block = self.sidecar.catalog.block;
        let mut buffers = WideBuffers::new(code, block, settings);
        let mut contradiction = None;
        for (nth, _) in is_wanted.iter().enumerate().filter(|(_, is)| **is) {
            let mut set = Set { of: self, group, code, nth: nth as u64, lost: Vec::new() };
            set.lost = (0..code.n()).filter(|position| set.is_lost(*position)).collect();
            let found = set.compute(&mut buffers, wants, sink)?;
            contradiction = contradiction.or(found);
            self.meter.add(code.k() as u64 * u64::from(block));
        }
        Ok(contradiction)
    }
}

/// A set of a group. Its positions are those of section 22: recovery shards, and then originals.
struct Set<'a> {
    of: &'a Rebuild<'a>,
    group: &'a Group,
    code: AreaCode,
    nth: u64,
    /// Lost positions, in order.
    lost: Vec<usize>,
}

impl Set<'_> {
    /// The number of an original among those of its set, if the position is one.
    fn original(&self, position: usize) -> Option<u64> {
        position.checked_sub(self.code.m()).map(|original| original as u64)
    }

    /// The position of an original, over all groups.
    fn place(&self, original: u64) -> u64 {
        self.group.first + self.group.of.position(self.nth, original)
    }

    fn is_lost(&self, position: usize) -> bool {
        match self.original(position) {
            Some(original) => self.of.examined.erased.get(self.place(original)),
            None => {
                let shard = self.group.of.shard(self.nth, position as u64);
                self.of.examined.recovery_erased.get(self.group.first_recovery + shard)
            }
        }
    }

    /// Computes what is wanted of the set.
    fn compute(
        &mut self,
        buffers: &mut WideBuffers,
        wants: &Wants<'_>,
        sink: &mut dyn Sink,
    ) -> Result<Option<SidecarError>> {
        let mut computed = Computed::new();
        let has_lost_originals = self.lost.last().is_some_and(|last| *last >= self.code.m());
        if has_lost_originals {
            let Some(found) = self.decode(buffers, wants, &mut computed, sink)? else {
                // The set cannot be mended, which the examination reported, so nothing is handed over.
                return Ok(None);
            };
            if let Some(position) = found {
                return self.of.verdict(self.first_wrong(false)?, Some(position)).map(Some);
            }
        }
        match wants.check || !has_lost_originals && wants.recovery {
            true => self.encode(buffers, wants, &computed, sink),
            false => Ok(None),
        }
    }

    /// Computes what is lost. Returns a position that was computed and has not its digest, if there is one; `None` when
    /// too much is lost. Originals go to `computed` too if they will be coded again.
    fn decode(
        &mut self,
        buffers: &mut WideBuffers,
        wants: &Wants<'_>,
        computed: &mut Computed,
        sink: &mut dyn Sink,
    ) -> Result<Option<Option<u64>>> {
        let code = self.code;
        let WideBuffers { blocks, room, threads } = buffers;
        let solution = 'all: loop {
            if self.lost.len() > code.m() {
                return Ok(None);
            }
            let block = self.of.sidecar.catalog.block as usize;
            let backend = self.of.context.settings.backend;
            let mut decoder =
                AreaDecoder::new(code, block, &self.lost, backend, room).expect("not too much is lost");
            for coset in 0..code.cosets() {
                let unread = self.read(code.positions(coset), blocks.row_mut(0))?;
                if !unread.is_empty() {
                    // A recovery shard that became unreadable is one more that is lost.
                    self.lost.extend(unread);
                    self.lost.sort_unstable();
                    continue 'all;
                }
                let rows = self.rows(code.positions(coset), blocks.row(0));
                let _stage = stages::enter(Stage::Code, (rows.len() * block) as u64);
                decoder.add(coset, &rows, threads).expect("each coset is added once");
            }
            let _stage = stages::enter(Stage::Code, 0);
            break decoder.solve(threads).expect("all cosets are added");
        };
        self.hand_over(solution, (blocks.row_mut(0), threads), wants, computed, sink).map(Some)
    }

    /// Computes lost blocks from a solution, and hands over those that have their digests.
    fn hand_over(
        &self,
        mut solution: AreaSolution<'_>,
        (blocks, threads): (&mut [u8], &Threads),
        wants: &Wants<'_>,
        computed: &mut Computed,
        sink: &mut dyn Sink,
    ) -> Result<Option<u64>> {
        let block = self.of.sidecar.catalog.block as usize;
        let mut wrong = None;
        for coset in 0..self.code.cosets() {
            self.of.meter.check()?;
            let lost = solution.lost(coset).to_vec();
            let mut out: Vec<&mut [u8]> = blocks.chunks_exact_mut(block).take(lost.len()).collect();
            let stage = stages::enter(Stage::Code, (lost.len() * block) as u64);
            solution.restore(coset, &mut out, threads).expect("there is a row for each");
            drop(stage);
            for (position, bytes) in lost.into_iter().zip(blocks.chunks_exact(block)) {
                let Some(original) = self.original(position) else {
                    // A set that is coded again gives its recovery shards then.
                    if wants.recovery && !wants.check {
                        self.recovery(position as u64, bytes, wants, sink)?;
                    }
                    continue;
                };
                let place = self.place(original);
                if self.of.is_right(place, bytes) {
                    sink.position(place, bytes)?;
                } else if wants.check || (wants.position)(place) {
                    wrong.get_or_insert(place);
                }
                if wants.check {
                    computed.insert(original, bytes.into());
                }
            }
        }
        Ok(wrong)
    }

    /// Codes the originals again, compares the recovery shards with their digests, and hands over those that are lost.
    fn encode(
        &self,
        buffers: &mut WideBuffers,
        wants: &Wants<'_>,
        computed: &Computed,
        sink: &mut dyn Sink,
    ) -> Result<Option<SidecarError>> {
        let code = self.code;
        let block = self.of.sidecar.catalog.block as usize;
        let WideBuffers { blocks, room, threads } = buffers;
        let mut encoder = AreaEncoder::new(code, block, self.of.context.settings.backend, room)
            .expect("it was made for this code");
        for coset in 0..code.cosets() {
            let positions = code.positions(coset);
            let originals = positions.start.max(code.m())..positions.end.max(code.m());
            self.read(originals.clone(), blocks.row_mut(0))?;
            for (nth, bytes) in computed.iter().filter_map(|(original, bytes)| {
                let position = *original as usize + code.m();
                originals.contains(&position).then(|| (position - originals.start, bytes))
            }) {
                blocks.row_mut(0)[nth * block..][..block].copy_from_slice(bytes);
            }
            let none = std::iter::repeat_n(None, positions.len() - originals.len());
            let known = blocks.row(0).chunks_exact(block).take(originals.len()).map(Some);
            let rows: Vec<Option<&[u8]>> = none.chain(known).collect();
            let _stage = stages::enter(Stage::Code, (originals.len() * block) as u64);
            encoder.add(coset, &rows, threads).expect("each coset is added once");
        }
        let mut out: Vec<&mut [u8]> = blocks.row_mut(0).chunks_exact_mut(block).take(code.m()).collect();
        encoder.finish(&mut out, threads).expect("all cosets are added");
        let mut is_wrong = false;
        for (shard, bytes) in blocks.row(0).chunks_exact(block).take(code.m()).enumerate() {
            is_wrong |= !self.recovery(shard as u64, bytes, wants, sink)?;
        }
        let unseen = if wants.check { self.first_wrong(true)? } else { None };
        match is_wrong || unseen.is_some() {
            true => self.of.verdict(self.first_wrong(false)?, None).map(Some),
            false => Ok(None),
        }
    }

    /// Compares a recovery shard that was computed with its digest. It is handed over if it is right, lost and wanted.
    fn recovery(&self, shard: u64, bytes: &[u8], wants: &Wants<'_>, sink: &mut dyn Sink) -> Result<bool> {
        let nth = self.group.of.shard(self.nth, shard);
        let is_lost = self.of.examined.recovery_erased.get(self.group.first_recovery + nth);
        if !is_lost && !wants.check {
            return Ok(true);
        }
        let expected = self.of.sidecar.recovery_digest(self.group.nth, nth);
        let is_right = plain_digests(bytes, bytes.len())[0] == expected;
        if is_right && is_lost && wants.recovery {
            sink.recovery(self.group.nth, nth, bytes)?;
        }
        Ok(is_right)
    }

    /// Positions with their blocks, and without those that are lost.
    fn rows<'r>(&self, positions: Range<usize>, blocks: &'r [u8]) -> Vec<Option<&'r [u8]>> {
        let block = self.of.sidecar.catalog.block as usize;
        let is_there = |position: &usize| self.lost.binary_search(position).is_err();
        let rows = positions.zip(blocks.chunks_exact(block));
        rows.map(|(position, bytes)| is_there(&position).then_some(bytes)).collect()
    }

    /// Reads positions of the set, but for those that are lost. Returns recovery shards that cannot be read; unreadable
    /// bytes of originals were already found by the examination.
    fn read(&self, positions: Range<usize>, blocks: &mut [u8]) -> Result<Vec<usize>> {
        let block = self.of.sidecar.catalog.block;
        let (m, run) = (self.code.m() as u64, self.group.of.run);
        let _stage = stages::enter(Stage::Read, positions.len() as u64 * u64::from(block));
        // A part has recovery shards alone, or originals of one run.
        let end = |next: u64| if next < m { m } else { next + run - (next - m) % run };
        let parts = parts(positions.start as u64..positions.end as u64, blocks, block, end);
        let threads = Threads(self.of.context.settings.threads);
        let readers: Vec<Mutex<PositionReader<'_>>> =
            (0..threads.0.min(parts.len())).map(|_| Mutex::new(self.of.reader())).collect();
        let unread = Mutex::new(Vec::new());
        on_each(threads, parts, |worker, (first, blocks)| {
            if self.of.meter.is_cancelled() {
                return;
            }
            match self.original(first as usize) {
                Some(original) => {
                    let place = self.place(original);
                    let _ = lock(&readers[worker]).fill(place, blocks, |_, _| Ok::<(), ()>(()));
                }
                None => self.read_recovery(first as usize, blocks, &unread),
            }
        });
        self.of.meter.check()?;
        Ok(into_value(unread))
    }

    fn read_recovery(&self, first: usize, blocks: &mut [u8], unread: &Mutex<Vec<usize>>) {
        let block = self.of.sidecar.catalog.block as usize;
        for (position, out) in (first..).zip(blocks.chunks_exact_mut(block)) {
            if self.lost.binary_search(&position).is_ok() {
                continue;
            }
            let shard = self.group.of.shard(self.nth, position as u64);
            match read_recovery(self.of.sidecar, self.group.nth, shard) {
                Some(bytes) => out.copy_from_slice(&bytes),
                None => lock(unread).push(position),
            }
        }
    }

    /// The position of the first original that is there and has other bytes than its digest says; or of those that the
    /// examination did not compare block by block.
    fn first_wrong(&self, unseen: bool) -> Result<Option<u64>> {
        let mut reader = self.of.reader();
        let mut bytes = vec![0; self.of.sidecar.catalog.block as usize];
        for position in self.code.m()..self.code.n() {
            let place = self.place((position - self.code.m()) as u64);
            if self.lost.binary_search(&position).is_ok() || unseen && !self.of.is_unseen(place) {
                continue;
            }
            self.of.meter.check()?;
            let _ = reader.fill(place, &mut bytes, |_, _| Ok::<(), ()>(()));
            if !self.of.is_right(place, &bytes) {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }
}

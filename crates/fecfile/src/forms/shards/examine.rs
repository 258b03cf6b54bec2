//! Checks every byte of shard files: both headers, both proofs of every set, the body, the zeros between them, the
//! length, and the annexes.

use super::gather::{Member, Position, ShardFile, ShardSet, read_at};
use crate::error::Action;
use crate::forms::annexes;
use crate::report::{Damage, Examination, ShardReport, ShardState};
use fec_base::context::{Context, Gauge};
use fec_base::names::show;
use fec_base::program::stages::{self, Stage};
use fec_base::ranges::Ranges;
use fec_base::threads::{Threads, share};
use fec_core::block::ShardBuf;
use fec_core::digest::{Digest, Digests, HashKind};
use fec_core::executor::{Executor, into_value, lock};
use fec_core::format::shard_file::{Encoding, HEADER_LEN, Layout, ShardHeader};
use fec_core::set::leaf_is_proved;
use std::io;
use std::ops::Range;
use std::sync::Mutex;

/// Shards of a file that are read and hashed together, piece by piece: a shard for each lane of the widest vectors.
const SHARDS_TOGETHER: usize = 16;

/// Sets that are checked in all files before the next sets: the number of counts held.
const SETS_TOGETHER: u32 = 1 << 20;

/// Checks all files of an encoding.
pub(super) fn all(set: &ShardSet, context: &Context<'_>) -> Examination {
    let indices: Vec<u32> = (0..set.members.len() as u32).collect();
    let (shards, weakest) = check(set, &indices, context);
    Examination { shards, weakest, damage: Vec::new(), gaps: Vec::new(), seal_places: set.seal_places() }
}

/// Checks the only file of an encoding.
pub(super) fn one(set: &ShardSet, context: &Context<'_>) -> Examination {
    let (index, _) = set.only_member().expect("one file has one index under one root");
    let (shards, _) = check(set, &[index], context);
    Examination { shards, weakest: 0, damage: Vec::new(), gaps: Vec::new(), seal_places: set.seal_places() }
}

/// Checks all files that claim any of these shards. Returns a report for each shard, and the smallest number of intact
/// shards of any set.
fn check(set: &ShardSet, indices: &[u32], context: &Context<'_>) -> (Vec<ShardReport>, u32) {
    let (layout, shape) = (set.encoding.layout(), set.encoding.geometry.shape());
    let settings = &context.settings;
    stages::tell_work(shape.code, shape.hash, settings.backend);
    let checks: Vec<Mutex<IndexCheck>> =
        indices.iter().map(|index| Mutex::new(IndexCheck::new(set, *index))).collect();
    let present: u64 = checks.iter().map(|check| lock(check).present()).sum();
    let meter = context.meter(Action::Verify, Some(present * layout.shard_len));
    let buffer = SHARDS_TOGETHER * Digests::PIECE_LEN;
    let (workers, _) = share(settings.threads, checks.len() as u64, buffer as u64, settings.max_memory);
    let mut weakest = u16::MAX;
    let mut first = 0;
    while first < shape.sets && !meter.is_cancelled() {
        let sets = first..first.saturating_add(SETS_TOGETHER).min(shape.sets);
        if checks.iter().all(|check| !lock(check).has_any(&sets)) {
            checks.iter().for_each(|check| lock(check).pass_by(&sets));
            (weakest, first) = (0, sets.end);
            continue;
        }
        let counts: Mutex<Vec<u16>> = Mutex::new(vec![0; sets.len()]);
        Threads(workers).run(checks.len(), &|nth| {
            let intact = lock(&checks[nth]).sets(sets.clone(), &meter);
            lock(&counts).iter_mut().zip(&intact).for_each(|(count, is)| *count += u16::from(*is));
        });
        weakest = weakest.min(into_value(counts).into_iter().min().unwrap_or(0));
        first = sets.end;
    }
    meter.finish();
    let reports = checks.into_iter().map(|check| into_value(check).into_report());
    (reports.collect(), weakest.into())
}

/// The check of a shard, in all files that claim it.
struct IndexCheck<'a> {
    index: u32,
    files: Vec<FileCheck<'a>>,
    intact_sets: u64,
    sets: u32,
}

impl<'a> IndexCheck<'a> {
    fn new(set: &'a ShardSet, index: u32) -> IndexCheck<'a> {
        let files = set.members[index as usize].iter().map(|member| FileCheck::new(set, index, member));
        let sets = set.encoding.geometry.shape().sets;
        IndexCheck { index, files: files.collect(), intact_sets: 0, sets }
    }

    /// Shards that its files may have.
    fn present(&self) -> u64 {
        let of_file = |file: &FileCheck<'_>| {
            file.present.iter().map(|sets| u64::from(sets.end - sets.start)).sum::<u64>()
        };
        self.files.iter().map(of_file).sum()
    }

    /// Tells whether any file may have any of these sets.
    fn has_any(&self, sets: &Range<u32>) -> bool {
        self.files.iter().any(|file| file.has_any(sets))
    }

    /// Notes that no file has any of these sets.
    fn pass_by(&mut self, sets: &Range<u32>) {
        self.files.iter_mut().for_each(|file| file.absent(sets.clone()));
    }

    /// Checks the shards of these sets; tells for each set whether its shard is intact.
    fn sets(&mut self, sets: Range<u32>, meter: &Gauge<'_>) -> Vec<bool> {
        let mut intact = vec![false; sets.len()];
        for file in &mut self.files {
            file.sets(sets.clone(), &mut intact, meter);
        }
        self.intact_sets += intact.iter().filter(|is| **is).count() as u64;
        intact
    }

    fn into_report(self) -> ShardReport {
        let IndexCheck { index, files, intact_sets, sets } = self;
        let places: Vec<String> = files.iter().map(|check| show(&check.member.file.place)).collect();
        let mut damage = Vec::new();
        for mut check in files {
            check.headers_meta_and_zeros();
            check.annexes();
            damage.extend(check.into_damage());
        }
        let state = match (places.is_empty(), damage.is_empty()) {
            (true, _) => ShardState::Missing,
            (false, true) => ShardState::Intact,
            (false, false) => ShardState::Damaged,
        };
        ShardReport { index, state, files: places, intact_sets, sets: sets.into(), damage }
    }
}

/// Shards of consecutive sets in a file, and their proofs.
struct Batch {
    /// A piece of each shard.
    pieces: ShardBuf,
    /// For each position and each of its two copies, the proofs of all shards.
    proofs: Vec<Vec<u8>>,
    proof_len: usize,
    /// For each of those copies, which proofs could be read.
    is_there: Vec<Vec<bool>>,
}

impl Batch {
    fn new(layout: &Layout, sets: usize, positions: usize) -> Batch {
        let together = SHARDS_TOGETHER.min(sets);
        let proof_len = layout.proof_len as usize;
        Batch {
            pieces: ShardBuf::new(together, Digests::PIECE_LEN.min(layout.shard_len as usize)),
            proofs: vec![vec![0; together * proof_len]; 2 * positions],
            proof_len,
            is_there: Vec::new(),
        }
    }

    /// Reads all copies of the proofs of `count` sets from set `first` on.
    fn read_proofs(
        &mut self,
        positions: &[Position],
        first: usize,
        count: usize,
        is_read: &mut dyn FnMut(i128, &mut [u8]) -> bool,
    ) {
        let places = positions.iter().flat_map(|position| position.proofs(first as u32));
        self.is_there.clear();
        for (at, proofs) in places.zip(&mut self.proofs) {
            // The proofs are side by side, so they are read at once, and one by one only if that fails.
            let all = &mut proofs[..count * self.proof_len];
            let is_whole = is_read(at, all);
            let mut there = vec![is_whole; count];
            if !is_whole && self.proof_len > 0 {
                let each = (at..).step_by(self.proof_len).zip(all.chunks_mut(self.proof_len));
                there = each.map(|(at, proof)| is_read(at, proof)).collect();
            }
            self.is_there.push(there);
        }
    }

    /// Digests of the shards at these places; `None` for unreadable ones.
    fn digests(
        &mut self,
        shard_len: usize,
        hash: HashKind,
        places: &[i128],
        is_read: &mut dyn FnMut(i128, &mut [u8]) -> bool,
    ) -> Vec<Option<Digest>> {
        if places.is_empty() {
            return Vec::new();
        }
        let mut digests = Digests::new(hash, places.len(), shard_len);
        let mut are_whole = vec![true; places.len()];
        for start in (0..shard_len).step_by(Digests::PIECE_LEN) {
            self.pieces.set_row_len(Digests::PIECE_LEN.min(shard_len - start));
            for ((at, is_whole), piece) in places.iter().zip(&mut are_whole).zip(self.pieces.iter_mut()) {
                *is_whole = *is_whole && is_read(at + start as i128, piece);
            }
            let _stage = stages::enter(Stage::Hash, (places.len() * self.pieces.row_len()) as u64);
            digests.update(&self.pieces.iter().take(places.len()).collect::<Vec<_>>());
        }
        let found = digests.finish().into_iter().zip(are_whole);
        found.map(|(digest, is_whole)| is_whole.then_some(digest)).collect()
    }

    /// For each copy of the proof of the batch's shard `i`, whether it holds.
    fn proved(&self, i: usize, holds: impl Fn(&[u8]) -> bool) -> Vec<bool> {
        let proof = |copy: usize| &self.proofs[copy][i * self.proof_len..][..self.proof_len];
        let mut proved: Vec<bool> = Vec::new();
        for copy in 0..self.proofs.len() {
            // Equal copies are checked once.
            let same = (0..copy).find(|other| self.is_there[*other][i] && proof(*other) == proof(copy));
            let follow = || same.map_or_else(|| holds(proof(copy)), |other| proved[other]);
            let is_proved = self.is_there[copy][i] && follow();
            proved.push(is_proved);
        }
        proved
    }
}

/// The check of a file.
struct FileCheck<'a> {
    set: &'a ShardSet,
    index: u32,
    member: &'a Member,
    encoding: Encoding,
    layout: Layout,
    /// Positions at which the shard may stand; that of an intact file comes first.
    positions: Vec<Position>,
    /// Sets whose proof may be there.
    present: Vec<Range<u32>>,
    /// The error of the first unreadable place.
    error: Option<io::Error>,
    damaged_headers: Ranges,
    damaged_meta: Ranges,
    damaged_proofs: Ranges,
    damaged_shards: Ranges,
    damaged_zeros: Ranges,
    damaged_annexes: Ranges,
}

/// Reads a file. Unreadable bytes count as absent, so a bad sector costs only what it hits; the error is noted.
fn reader<'a>(
    file: &'a ShardFile,
    error: &'a mut Option<io::Error>,
) -> impl FnMut(i128, &mut [u8]) -> bool + 'a {
    move |at, out| {
        let read = read_at(file, at, out).unwrap_or_else(|e| {
            error.get_or_insert(e);
            None
        });
        read.is_some()
    }
}

impl<'a> FileCheck<'a> {
    fn new(set: &'a ShardSet, index: u32, member: &'a Member) -> FileCheck<'a> {
        // If bytes were lost or gained, each end of the file gives different positions. That of an intact file is
        // checked in any case, for the list of damage.
        let encoding = set.encoding_of(member);
        let layout = encoding.layout();
        let in_place = Position { base: 0, layout };
        let mut positions = vec![in_place];
        positions.extend(member.positions.iter().filter(|position| **position != in_place));
        FileCheck {
            set,
            index,
            member,
            encoding,
            layout,
            present: member.present(set.encoding.geometry.shape().sets),
            positions,
            error: None,
            damaged_headers: Ranges::default(),
            damaged_meta: Ranges::default(),
            damaged_proofs: Ranges::default(),
            damaged_shards: Ranges::default(),
            damaged_zeros: Ranges::default(),
            damaged_annexes: Ranges::default(),
        }
    }

    /// Checks the shards of these sets and both copies of their proofs. Sets with a usable shard are marked in
    /// `intact`.
    fn sets(&mut self, sets: Range<u32>, intact: &mut [bool], meter: &Gauge<'_>) {
        let mut batch = Batch::new(&self.layout, sets.len(), self.positions.len());
        let mut passed = sets.start;
        for present in self.present.clone() {
            let present = present.start.max(sets.start)..present.end.min(sets.end);
            if present.is_empty() {
                continue;
            }
            self.absent(passed..present.start);
            for first in present.clone().step_by(SHARDS_TOGETHER).take_while(|_| !meter.is_cancelled()) {
                let count = SHARDS_TOGETHER.min((present.end - first) as usize);
                let intact = &mut intact[(first - sets.start) as usize..][..count];
                self.shards(&mut batch, first as usize, intact);
                meter.add(count as u64 * self.layout.shard_len);
            }
            passed = present.end;
        }
        self.absent(passed..sets.end);
    }

    /// Tells whether a proof of any of these sets may be there.
    fn has_any(&self, sets: &Range<u32>) -> bool {
        self.present.iter().any(|present| present.start < sets.end && sets.start < present.end)
    }

    /// Notes sets without a stored proof as damaged.
    fn absent(&mut self, sets: Range<u32>) {
        let layout = self.layout;
        if sets.is_empty() {
            return;
        }
        self.damaged_shards.add(layout.shard(sets.start), layout.shard(sets.end - 1) + layout.shard_len);
        for (from, to) in layout.proofs(sets.start).into_iter().zip(layout.proofs(sets.end - 1)) {
            self.damaged_proofs.add(from, to + layout.proof_len);
        }
    }

    /// Checks the shards of the sets from `first` on, one for each entry of `intact`, and both copies of their proofs.
    fn shards(&mut self, batch: &mut Batch, first: usize, intact: &mut [bool]) {
        let (layout, encoding) = (self.layout, self.encoding);
        let (group, hash, count) = (encoding.geometry, encoding.geometry.shape().hash, intact.len());
        let mut is_read = reader(&self.member.file, &mut self.error);
        batch.read_proofs(&self.positions, first, count, &mut is_read);
        // For each shard of an intact file, which copies of its proof hold.
        let mut in_place = vec![vec![false; 2 * self.positions.len()]; count];
        for (nth_position, position) in self.positions.iter().enumerate() {
            // Holes read as zeros, so their digest is known.
            let place = |i: usize| position.shard((first + i) as u32);
            let is_hole = |i: &usize| self.member.file.is_hole(place(*i), layout.shard_len);
            let (holes, stored): (Vec<usize>, Vec<usize>) = (0..count).partition(is_hole);
            let places: Vec<i128> = stored.iter().map(|i| place(*i)).collect();
            let mut digests = vec![None; count];
            let read = batch.digests(layout.shard_len as usize, hash, &places, &mut is_read);
            stored.into_iter().zip(read).for_each(|(i, digest)| digests[i] = digest);
            holes.into_iter().for_each(|i| digests[i] = Some(*self.set.zeros()));
            for (i, digest) in digests.into_iter().enumerate() {
                let (Some(digest), nth) = (digest, (first + i) as u32) else { continue };
                let leaf = hash.leaf(&digest, nth, self.index);
                let holds =
                    |proof: &[u8]| leaf_is_proved(&group, &encoding.tree, nth, self.index, &leaf, proof);
                let proved = batch.proved(i, holds);
                // Only shards that a decode would use count: a header gives the positions of shard and proof.
                let claimed = &self.member.positions;
                let mut by_position = self.positions.iter().zip(proved.chunks(2));
                let is_usable =
                    |(from, copies): (&Position, &[bool])| claimed.contains(from) && copies.contains(&true);
                intact[i] |= claimed.contains(position) && by_position.any(is_usable);
                if nth_position == 0 {
                    in_place[i] = proved;
                }
            }
        }
        drop(is_read);
        for (nth, in_place) in (first as u32..).zip(&in_place) {
            if !in_place.contains(&true) {
                self.damaged_shards.add(layout.shard(nth), layout.shard(nth) + layout.shard_len);
                continue;
            }
            for (at, _) in layout.proofs(nth).into_iter().zip(in_place).filter(|(_, good)| !**good) {
                self.damaged_proofs.add(at, at + layout.proof_len);
            }
        }
    }

    /// Checks both headers, both copies of the meta, and the zeros between proofs and body.
    fn headers_meta_and_zeros(&mut self) {
        let layout = self.layout;
        let mut is_read = reader(&self.member.file, &mut self.error);
        let header = ShardHeader { index: self.index, encoding: self.encoding }.to_bytes();
        for at in [0, layout.tail_header] {
            let mut copy = [0u8; HEADER_LEN];
            if !is_read(at.into(), &mut copy) || copy != header {
                self.damaged_headers.add(at, at + HEADER_LEN as u64);
            }
        }
        let hash = self.encoding.geometry.shape().hash;
        for at in layout.metas() {
            let mut copy = vec![0; layout.padded_meta_len() as usize];
            let is_there = is_read(at.into(), &mut copy);
            let (meta, zeros) = copy.split_at(layout.meta_len as usize);
            let is_right =
                hash.digest(meta) == self.encoding.meta_hash && zeros.iter().all(|byte| *byte == 0);
            if !is_there || !is_right {
                self.damaged_meta.add(at, at + layout.padded_meta_len());
            }
        }
        let filler = layout.head_proofs + layout.proofs_len;
        let mut gap = vec![0u8; (layout.body - filler) as usize];
        if !is_read(filler.into(), &mut gap) || gap.iter().any(|b| *b != 0) {
            self.damaged_zeros.add(filler, layout.body);
        }
    }

    /// Checks the annexes behind the file.
    fn annexes(&mut self) {
        let file = &self.member.file;
        let mut at = file.len;
        while at < file.end {
            let annex = annexes::annex_at(file.bytes.as_ref(), at, file.end).unwrap_or_else(|e| {
                self.error.get_or_insert(e);
                None
            });
            // Without a header nobody knows where the next annex begins.
            let place = annex.as_ref().map_or(at..file.end, |annex| annex.place.clone());
            if annex.is_none_or(|annex| annex.whole.is_none()) {
                self.damaged_annexes.add(place.start, place.end);
            }
            at = place.end;
        }
    }

    fn into_damage(self) -> Vec<Damage> {
        let file = &self.member.file;
        let damage = |what, bytes| Damage { file: show(&file.place), what, bytes };
        let parts = [
            ("header", &self.damaged_headers),
            ("meta", &self.damaged_meta),
            ("proofs", &self.damaged_proofs),
            ("a record, or both of its proofs,", &self.damaged_shards),
            ("zeros", &self.damaged_zeros),
            ("an annex", &self.damaged_annexes),
        ];
        let parts = parts.into_iter().filter(|(_, ranges)| !ranges.is_empty());
        let mut out: Vec<Damage> =
            parts.map(|(what, ranges)| damage(format!("{what} damaged"), ranges.list())).collect();
        if file.len != self.layout.file_len {
            let what = format!("it has {} bytes and should have {}", file.len, self.layout.file_len);
            out.push(damage(what, Vec::new()));
        }
        if let Some(error) = &self.error {
            out.push(damage(format!("it cannot be read everywhere: {error}"), Vec::new()));
        }
        out
    }
}

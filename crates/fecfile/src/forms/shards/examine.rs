//! Checks every byte of shard files: both headers, both proofs of every set, the body, the zeros
//! between them, and the length.

use super::gather::{Member, ShardFile, ShardSet, read_at};
use crate::context::{Context, Meter};
use crate::names::show;
use crate::ranges::Ranges;
use crate::report::{Damage, Examination, ShardReport, ShardState};
use crate::stages::{self, Stage};
use crate::threads::{Threads, share};
use fec_core::block::ShardBuf;
use fec_core::digest::{Digest, Digests, HashKind};
use fec_core::executor::{Executor, into_value, lock};
use fec_core::format::shard_file::{HEADER_LEN, Layout, ShardHeader};
use fec_core::set::leaf_is_proved;
use std::io;
use std::sync::Mutex;

/// Shards of one file that are read and hashed together, piece by piece: one in each lane of the widest vectors.
const SHARDS_TOGETHER: usize = 16;

/// Checks all files of a set.
pub(super) fn all(set: &ShardSet, context: &Context<'_>) -> Examination {
    let layout = set.encoding.layout();
    let settings = &context.settings;
    let sets = set.encoding.geometry.shape().sets as usize;
    let files: u64 = set.members.iter().map(|m| m.len() as u64).sum();
    let shape = set.encoding.geometry.shape();
    stages::tell_work(shape.code, shape.hash, settings.backend);
    let meter = context.meter("verify", Some(files * layout.body_len));
    let counts: Mutex<Vec<u16>> = Mutex::new(vec![0; sets]);
    let reports: Mutex<Vec<Option<ShardReport>>> = Mutex::new((0..set.members.len()).map(|_| None).collect());
    let buffer = SHARDS_TOGETHER * Digests::PIECE_LEN;
    let (workers, _) = share(settings.threads, set.members.len() as u64, buffer as u64, settings.max_memory);
    Threads(workers).run(set.members.len(), &|index| {
        let mut intact = vec![false; sets];
        let report = check_index(set, index as u32, &set.members[index], &mut intact, meter.as_ref());
        lock(&counts).iter_mut().zip(&intact).for_each(|(count, is)| *count += u16::from(*is));
        lock(&reports)[index] = Some(report);
    });
    meter.finish();
    let weakest = into_value(counts).into_iter().min().unwrap_or(0).into();
    let shards = into_value(reports).into_iter().flatten().collect();
    Examination { shards, weakest, damage: Vec::new(), gaps: Vec::new() }
}

/// Checks the only file of a set.
pub(super) fn one(set: &ShardSet, context: &Context<'_>) -> Examination {
    let meter = context.meter("verify", Some(set.encoding.layout().body_len));
    let mut intact = vec![false; set.encoding.geometry.shape().sets as usize];
    let (index, member) = set.only_member().expect("one file has one index under one root");
    let report = check_index(set, index, std::slice::from_ref(member), &mut intact, meter.as_ref());
    meter.finish();
    Examination { shards: vec![report], weakest: 0, damage: Vec::new(), gaps: Vec::new() }
}

/// Checks all files that claim one index.
fn check_index(
    set: &ShardSet,
    index: u32,
    members: &[Member],
    intact: &mut [bool],
    meter: &dyn Meter,
) -> ShardReport {
    let mut damage = Vec::new();
    for member in members {
        damage.extend(check_file(set, index, member, intact, meter));
    }
    if members.len() > 1 {
        let what = format!("{} files claim this shard", members.len());
        damage.push(Damage { file: show(&members[1].file.place), what, bytes: Vec::new() });
    }
    let state = match (members.is_empty(), damage.is_empty()) {
        (true, _) => ShardState::Missing,
        (false, true) => ShardState::Intact,
        (false, false) => ShardState::Damaged,
    };
    ShardReport {
        index,
        state,
        files: members.iter().map(|m| show(&m.file.place)).collect(),
        intact_sets: intact.iter().filter(|is| **is).count() as u64,
        sets: intact.len() as u64,
        damage,
    }
}

/// Shards of successive sets in one file, and their proofs.
struct Batch {
    /// A piece of each shard.
    pieces: ShardBuf,
    /// For each base and each of its two copies, the proofs of all shards.
    proofs: Vec<Vec<u8>>,
    proof_len: usize,
    /// For each of those, which proofs could be read.
    is_there: Vec<Vec<bool>>,
}

impl Batch {
    fn new(layout: &Layout, sets: usize, bases: usize) -> Batch {
        let together = SHARDS_TOGETHER.min(sets);
        let proof_len = layout.proof_len as usize;
        Batch {
            pieces: ShardBuf::new(together, Digests::PIECE_LEN.min(layout.shard_len as usize)),
            proofs: vec![vec![0; together * proof_len]; 2 * bases],
            proof_len,
            is_there: Vec::new(),
        }
    }

    /// Reads all copies of the proofs of `count` sets from set `first` on.
    fn read_proofs(
        &mut self,
        layout: &Layout,
        bases: &[i128],
        first: usize,
        count: usize,
        is_read: &mut dyn FnMut(i128, &mut [u8]) -> bool,
    ) {
        let places =
            bases.iter().flat_map(|base| layout.proofs(first as u32).map(|at| base + i128::from(at)));
        self.is_there.clear();
        for (at, proofs) in places.zip(&mut self.proofs) {
            // They stand side by side, so they are read at once; one by one only if that fails.
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

    /// The digests of the shards of `count` sets from set `first` on; none for those that cannot be read.
    fn digests(
        &mut self,
        layout: &Layout,
        hash: HashKind,
        base: i128,
        first: usize,
        count: usize,
        is_read: &mut dyn FnMut(i128, &mut [u8]) -> bool,
    ) -> Vec<Option<Digest>> {
        let shard_len = layout.shard_len as usize;
        let mut digests = Digests::new(hash, count, shard_len);
        let mut are_whole = vec![true; count];
        for start in (0..shard_len).step_by(Digests::PIECE_LEN) {
            self.pieces.set_row_len(Digests::PIECE_LEN.min(shard_len - start));
            for ((nth, is_whole), piece) in (first..).zip(&mut are_whole).zip(self.pieces.iter_mut()) {
                let at = base + i128::from(layout.shard(nth as u32)) + start as i128;
                *is_whole = *is_whole && is_read(at, piece);
            }
            let _stage = stages::enter(Stage::Hash, (count * self.pieces.row_len()) as u64);
            digests.update(&self.pieces.iter().take(count).collect::<Vec<_>>());
        }
        let found = digests.finish().into_iter().zip(are_whole);
        found.map(|(digest, is_whole)| is_whole.then_some(digest)).collect()
    }

    /// Which copies of the proof of the batch's shard `i` hold.
    fn proved(&self, i: usize, holds: impl Fn(&[u8]) -> bool) -> Vec<bool> {
        let proof = |copy: usize| &self.proofs[copy][i * self.proof_len..][..self.proof_len];
        let mut proved: Vec<bool> = Vec::new();
        for copy in 0..self.proofs.len() {
            // Equal copies are followed once.
            let same = (0..copy).find(|other| self.is_there[*other][i] && proof(*other) == proof(copy));
            let follow = || same.map_or_else(|| holds(proof(copy)), |other| proved[other]);
            let is_proved = self.is_there[copy][i] && follow();
            proved.push(is_proved);
        }
        proved
    }
}

/// Checks every byte of a file; sets whose shard is usable are marked in `intact`.
fn check_file(
    set: &ShardSet,
    index: u32,
    member: &Member,
    intact: &mut [bool],
    meter: &dyn Meter,
) -> Vec<Damage> {
    let mut check = FileCheck::new(set, index, member);
    let mut batch = Batch::new(&check.layout, intact.len(), check.bases.len());
    for (nth, intact) in intact.chunks_mut(SHARDS_TOGETHER).enumerate() {
        check.shards(&mut batch, nth * SHARDS_TOGETHER, intact);
        meter.add(intact.len() as u64 * check.layout.shard_len);
    }
    check.headers_and_zeros();
    check.into_damage()
}

/// What is found of one file.
struct FileCheck<'a> {
    set: &'a ShardSet,
    index: u32,
    member: &'a Member,
    layout: Layout,
    /// Positions at which the layout may start, 0 the first.
    bases: Vec<i128>,
    /// The first place that could not be read.
    error: Option<io::Error>,
    damaged_headers: Ranges,
    damaged_proofs: Ranges,
    damaged_shards: Ranges,
    damaged_zeros: Ranges,
}

/// Reads a file; what cannot be read is not there: a bad sector costs what it hits, and is noted.
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
        // Where bytes were lost or gained, each end of the file gives positions of its own; the positions of an intact
        // file are checked in any case, for the list of damage.
        let mut bases = vec![0];
        bases.extend(member.bases.iter().filter(|base| **base != 0));
        FileCheck {
            set,
            index,
            member,
            layout: set.encoding.layout(),
            bases,
            error: None,
            damaged_headers: Ranges::default(),
            damaged_proofs: Ranges::default(),
            damaged_shards: Ranges::default(),
            damaged_zeros: Ranges::default(),
        }
    }

    /// The shards of the sets from `first` on, one for each of `intact`, and both copies of their proofs.
    fn shards(&mut self, batch: &mut Batch, first: usize, intact: &mut [bool]) {
        let (layout, encoding) = (self.layout, &self.set.encoding);
        let (group, hash, count) = (encoding.group(), encoding.geometry.shape().hash, intact.len());
        let mut is_read = reader(&self.member.file, &mut self.error);
        batch.read_proofs(&layout, &self.bases, first, count, &mut is_read);
        // Of each shard of an intact file, which copies of its proof hold.
        let mut in_place = vec![vec![false; 2 * self.bases.len()]; count];
        for base in &self.bases {
            let digests = batch.digests(&layout, hash, *base, first, count, &mut is_read);
            for (i, digest) in digests.into_iter().enumerate() {
                let (Some(digest), nth) = (digest, (first + i) as u32) else { continue };
                let leaf = hash.leaf(&digest, nth, self.index);
                let holds =
                    |proof: &[u8]| leaf_is_proved(&group, &encoding.tree, nth, self.index, &leaf, proof);
                let proved = batch.proved(i, holds);
                // Only what a decode would use counts: shard and proof at positions that a header gives.
                let bases = &self.member.bases;
                let mut by_base = self.bases.iter().zip(proved.chunks(2));
                let is_usable =
                    |(from, copies): (&i128, &[bool])| bases.contains(from) && copies.contains(&true);
                intact[i] |= bases.contains(base) && by_base.any(is_usable);
                if *base == 0 {
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

    /// Both headers, and the zeros between proofs and body.
    fn headers_and_zeros(&mut self) {
        let layout = self.layout;
        let mut is_read = reader(&self.member.file, &mut self.error);
        let header = ShardHeader { index: self.index, encoding: self.set.encoding.clone() }.to_bytes();
        for at in [0, layout.tail_header] {
            let mut copy = [0u8; HEADER_LEN];
            if !is_read(at.into(), &mut copy) || copy != header {
                self.damaged_headers.add(at, at + HEADER_LEN as u64);
            }
        }
        let filler = layout.head_proofs + layout.proofs_len;
        let mut gap = vec![0u8; (layout.body - filler) as usize];
        if !is_read(filler.into(), &mut gap) || gap.iter().any(|b| *b != 0) {
            self.damaged_zeros.add(filler, layout.body);
        }
    }

    fn into_damage(self) -> Vec<Damage> {
        let file = &self.member.file;
        let damage = |what, bytes| Damage { file: show(&file.place), what, bytes };
        let parts = [
            ("header", &self.damaged_headers),
            ("proofs", &self.damaged_proofs),
            ("shards, or both of their proofs,", &self.damaged_shards),
            ("zeros", &self.damaged_zeros),
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

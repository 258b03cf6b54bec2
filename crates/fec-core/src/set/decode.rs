//! Decoding a set of which enough shards are checked, and checking that it is a codeword.
//!
//! A decode computes the missing originals alone: the root stands for the originals, so an intact one costs its check.
//! A strict decode also computes the recovery shards, in the memory of a piece, where they are hashed and dropped.
//! These follow from the complete originals, by a plan like that of an encode.

use super::pass::{Original, PassRows, Scratch, SetPass};
use super::places::Places;
use super::plans::PlanCache;
use super::proof::ProofClimber;
use super::run::Run;
use super::tree::SetTree;
use crate::block::{Code, transformable};
use crate::digest::{Digest, HashKind};
use crate::observe::Phase;
use crate::params::{GroupGeometry, Shape};

/// The reason why a set cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetError {
    /// Fewer than k shards are intact.
    #[error("only {intact} intact shards where {needed} are needed")]
    TooFew {
        /// Shards that passed their check.
        intact: usize,
        /// k.
        needed: usize,
    },
    /// The shards lead to the root and still are not one codeword, in any choice that was tried.
    #[error(
        "the shards are proved by the root but are not one codeword: whoever encoded them cheated or erred"
    )]
    NotACodeword,
    /// The bytes after the payload's end are not zero.
    #[error("the padding after the payload is not zero: whoever encoded it cheated or erred")]
    Padding,
}

/// The shards that a decoder has after decoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keeps {
    /// All n shards, computed and compared: every decoding is strict.
    All,
    /// The originals.
    Originals,
}

/// Most choices of recovery shards that are tried before a set counts as untrue.
const MAX_CHOICES: usize = 16;

/// Decodes one set at a time in a buffer of its own, only from rows that were read and checked there. It is reused from
/// set to set.
#[derive(Debug)]
pub struct SetDecoder {
    pub(super) code: Code,
    pub(super) keeps: Keeps,
    pub(super) places: Places,
    /// The leaf of each row that was checked.
    pub(super) checked: Vec<Option<Digest>>,
    pub(super) climber: ProofClimber,
    tree: SetTree,
    scratch: Scratch,
}

impl SetDecoder {
    /// A decoder for sets up to this shape that has all n shards after decoding, and always decodes strictly. Memory:
    /// n·L bytes and a little.
    pub fn new(largest: &Shape) -> SetDecoder {
        let n = largest.code.n();
        SetDecoder::with_places(largest, Places::new(n, n, 0, largest.shard_len), Keeps::All)
    }

    /// A decoder for sets up to this shape that has only the originals after decoding. Only a strict decoding computes
    /// recovery shards that were not read, and it does not keep them. Memory: as in
    /// [`payload_bytes`](SetDecoder::payload_bytes).
    pub fn for_payload(largest: &Shape) -> SetDecoder {
        let (code, shared) = (largest.code, SetDecoder::shared_rows(largest));
        let places = Places::new(code.n(), code.k(), shared, largest.shard_len);
        SetDecoder::with_places(largest, places, Keeps::Originals)
    }

    /// As [`for_payload`](SetDecoder::for_payload), with rows for all recovery shards at once. If
    /// [`SetError::NotACodeword`] came of wrongly encoded ones, others may serve. Memory: n·L bytes and a little.
    pub fn for_payload_from_all(largest: &Shape) -> SetDecoder {
        let n = largest.code.n();
        SetDecoder::with_places(largest, Places::new(n, n, 0, largest.shard_len), Keeps::Originals)
    }

    /// Bytes, about, that a decoder [`for_payload`](SetDecoder::for_payload) takes with one thread. Each thread more
    /// takes at most 8 KiB for each recovery shard.
    pub fn payload_bytes(largest: &Shape) -> u64 {
        let rows = largest.code.k() + SetDecoder::shared_rows(largest);
        (rows * largest.shard_len) as u64 + Scratch::bytes(largest.code.m())
    }

    /// Number of recovery shards that can take the place of originals.
    fn shared_rows(largest: &Shape) -> usize {
        largest.code.k().min(largest.code.m())
    }

    fn with_places(largest: &Shape, places: Places, keeps: Keeps) -> SetDecoder {
        SetDecoder {
            code: largest.code,
            keeps,
            places,
            checked: vec![None; largest.code.n()],
            climber: ProofClimber::default(),
            tree: SetTree::default(),
            scratch: Scratch::default(),
        }
    }

    /// Computes the missing originals from the checked shards, and compares their tree and the padding.
    pub(super) fn decode_originals(
        &mut self,
        geometry: &GroupGeometry,
        set: u32,
        originals_root: &Digest,
        plans: &PlanCache,
        run: Run<'_>,
    ) -> Result<(), SetError> {
        let k = self.code.k();
        let first = self.choose_known()?;
        if (0..k).any(|i| self.checked[i].is_none()) {
            let choices = self.choices(&first);
            let is_proved =
                |known: &Vec<u8>| self.restore_originals(geometry, set, known, plans, run) == *originals_root;
            if !choices.iter().any(is_proved) {
                return Err(SetError::NotACodeword);
            }
        }
        self.check_padding(geometry, set)
    }

    /// The shards to decode from, one choice after the other: `first`, then other choices of the intact recovery shards
    /// (specification, section 10).
    fn choices(&self, first: &[u8]) -> Vec<Vec<u8>> {
        let (k, n) = (self.code.k(), self.code.n());
        let (originals, chosen) = first.split_at(first.partition_point(|i| usize::from(*i) < k));
        let there: Vec<u8> = (k..n).filter(|i| self.checked[*i].is_some()).map(|i| i as u8).collect();
        let mut choices = vec![first.to_vec()];
        if there.len() > chosen.len() {
            let tries = there.len().min(MAX_CHOICES);
            for nth in 0..tries {
                let start = nth * there.len() / tries;
                let window = there.iter().cycle().skip(start).take(chosen.len());
                let mut known: Vec<u8> = originals.iter().chain(window).copied().collect();
                known.sort_unstable();
                if !choices.contains(&known) {
                    choices.push(known);
                }
            }
        }
        choices
    }

    /// Computes the originals that are not known. Returns O over all originals.
    fn restore_originals(
        &mut self,
        geometry: &GroupGeometry,
        set: u32,
        known: &[u8],
        plans: &PlanCache,
        run: Run<'_>,
    ) -> Digest {
        let (hash, k) = (geometry.shape().hash, self.code.k());
        run.observer.begin(Phase::Plan);
        let plan = plans.get(self.code, known);
        run.observer.end(Phase::Plan, 0);
        let pass = SetPass {
            hash,
            restore: Some(&plan.originals),
            extend: None,
            hash_known: false,
            keeps_recovery: false,
            phase: Phase::Decode,
        };
        let digests = self.run_pass(&pass, known, run);
        run.observer.begin(Phase::Tree);
        let leaves = self.leaves(hash, set, known, k, digests);
        let root = self.tree.build_originals(hash, leaves.into_iter());
        run.observer.end(Phase::Tree, (k * self.places.row_len()) as u64);
        root
    }

    /// Computes all shards that are not known, and compares the root of the set and the padding.
    pub(super) fn decode_all(
        &mut self,
        geometry: &GroupGeometry,
        set: u32,
        set_root: &Digest,
        plans: &PlanCache,
        run: Run<'_>,
    ) -> Result<(), SetError> {
        let (code, hash) = (self.code, geometry.shape().hash);
        let known = self.choose_known()?;
        run.observer.begin(Phase::Plan);
        let plan = plans.get(code, &known);
        let recovery = plan.recovery();
        run.observer.end(Phase::Plan, 0);
        let keeps_recovery = self.keeps == Keeps::All;
        let pass = SetPass {
            hash,
            restore: Some(&plan.originals).filter(|plan| !plan.wanted().is_empty()),
            extend: Some(recovery),
            hash_known: false,
            keeps_recovery,
            phase: Phase::Reencode,
        };
        let is_known = flags(&known);
        if keeps_recovery {
            // These rows are computed again.
            (code.k()..code.n()).filter(|i| !is_known[*i]).for_each(|i| self.checked[i] = None);
        }
        let digests = self.run_pass(&pass, &known, run);
        run.observer.begin(Phase::Tree);
        let leaves = self.leaves(hash, set, &known, code.n(), digests);
        let root = self.tree.build(hash, code, leaves.into_iter());
        run.observer.end(Phase::Tree, (code.n() * self.places.row_len()) as u64);
        if root != *set_root {
            return Err(SetError::NotACodeword);
        }
        self.check_padding(geometry, set)
    }

    /// The leaves of the first `count` shards, from those of the known ones, and from the digests of all others in
    /// order.
    fn leaves(
        &self,
        hash: HashKind,
        set: u32,
        known: &[u8],
        count: usize,
        digests: Vec<Digest>,
    ) -> Vec<Digest> {
        let is_known = flags(known);
        let fresh = (0..count).filter(|i| !is_known[*i]).map(|i| i as u32);
        let mut leaves = Vec::with_capacity(count);
        hash.leaves(set, fresh.zip(digests), &mut leaves);
        let mut fresh = leaves.into_iter();
        let leaf = |i: usize| match self.checked[i] {
            Some(leaf) if is_known[i] => leaf,
            _ => fresh.next().expect("one digest for each new shard"),
        };
        (0..count).map(leaf).collect()
    }

    fn run_pass(&mut self, pass: &SetPass<'_>, known: &[u8], run: Run<'_>) -> Vec<Digest> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let is_known = flags(known);
        let digests = pass.run(self.pass_rows(|i| is_known[i]), &mut scratch, None, run);
        self.scratch = scratch;
        digests
    }

    fn check_padding(&self, geometry: &GroupGeometry, set: u32) -> Result<(), SetError> {
        let padding_is_zero = (0..self.code.k())
            .all(|i| self.kept_row(i as u32)[geometry.shard_payload(set, i)..].iter().all(|byte| *byte == 0));
        if padding_is_zero { Ok(()) } else { Err(SetError::Padding) }
    }

    /// The k intact shards to decode from, in order.
    fn choose_known(&self) -> Result<Vec<u8>, SetError> {
        let code = self.code;
        let is_intact = |i: usize| self.checked[i].is_some();
        let known: Vec<u8> =
            (0..code.n()).filter(|i| is_intact(*i)).take(code.k()).map(|i| i as u8).collect();
        if known.len() < code.k() {
            return Err(SetError::TooFew { intact: known.len(), needed: code.k() });
        }
        if usize::from(known[0]) < code.k() {
            return Ok(known);
        }
        // If all originals are lost, some recovery shards give them back by transform.
        Ok(transformable(code, is_intact).unwrap_or(known))
    }

    /// The rows in the form that a pass takes.
    fn pass_rows(&mut self, is_known: impl Fn(usize) -> bool) -> PassRows<'_> {
        let keeps_recovery = self.keeps == Keeps::All;
        let mut take = self.places.take_rows();
        let k = self.code.k();
        let (mut known, mut originals, mut recovery) =
            (Vec::with_capacity(k), Vec::with_capacity(k), Vec::new());
        for i in 0..k {
            let row = take(i).expect("every original has a row");
            if is_known(i) {
                known.push(&*row);
                originals.push(Original::Known(known[known.len() - 1]));
            } else {
                originals.push(Original::Missing(row));
            }
        }
        for i in k..self.code.n() {
            match take(i) {
                Some(row) if is_known(i) => known.push(&*row),
                Some(row) if keeps_recovery => recovery.push(row),
                _ => {}
            }
        }
        PassRows { known, originals, recovery: keeps_recovery.then_some(recovery) }
    }

    /// Number of shards that the decoder has after decoding, from the first.
    pub(super) fn kept(&self) -> usize {
        match self.keeps {
            Keeps::All => self.code.n(),
            Keeps::Originals => self.code.k(),
        }
    }

    /// The row of a shard that the decoder keeps.
    pub(super) fn kept_row(&self, index: u32) -> &[u8] {
        assert!((index as usize) < self.kept(), "a decoder for the payload keeps no recovery shards");
        self.places.row(index).expect("a shard that is kept has a row of its own")
    }
}

/// Tells of each index whether it is among `known`.
fn flags(known: &[u8]) -> [bool; 256] {
    let mut flags = [false; 256];
    known.iter().for_each(|index| flags[usize::from(*index)] = true);
    flags
}

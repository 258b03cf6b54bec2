//! Decoding a set, and checking that it is a codeword.

use super::climb_to_group;
use super::pass::{Original, Pass, Rows, Scratch};
use super::plans::PlanCache;
use crate::block::{Code, ShardBuf, transformable};
use crate::digest::Digest;
use crate::executor::Executor;
use crate::merkle::Tree;
use crate::observe::{Observer, Phase};
use crate::params::{GroupGeometry, Shape};

/// Why a set cannot be decoded.
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
    /// The shards lead to the root and still are not one codeword, whichever k are taken.
    #[error(
        "the shards are proved by the root but are not one codeword: whoever encoded them cheated or erred"
    )]
    NotACodeword,
    /// The bytes after the payload's end are not zero.
    #[error("the padding after the payload is not zero: whoever encoded it cheated or erred")]
    Padding,
}

/// Decodes one set at a time in a buffer of its own, from rows that were read there and checked, and from no
/// others.
#[derive(Debug)]
pub struct SetDecoder {
    code: Code,
    rows: ShardBuf,
    /// Where each shard's row is, if it has one.
    places: Vec<Option<usize>>,
    /// Rows that no shard has.
    free: Vec<usize>,
    keeps_recovery: bool,
    group: Option<(GroupGeometry, Digest, u32)>,
    /// The leaf of each row that was checked.
    checked: Vec<Option<Digest>>,
    set_root: Digest,
    tree: Tree,
    scratch: Scratch,
}

impl SetDecoder {
    /// A decoder for sets up to this shape, that has all n shards after decoding. Memory: n·L bytes and a little.
    pub fn new(largest: &Shape) -> SetDecoder {
        SetDecoder::with_rows(largest, largest.code.n(), true)
    }

    /// A decoder for sets up to this shape, that has only the originals after decoding. Recovery shards that were
    /// not read are computed for the check of the codeword, and not kept. Memory: as in
    /// [`payload_bytes`](SetDecoder::payload_bytes).
    pub fn for_payload(largest: &Shape) -> SetDecoder {
        SetDecoder::with_rows(largest, SetDecoder::payload_rows(largest), false)
    }

    /// About how many bytes a decoder [`for_payload`](SetDecoder::for_payload) takes with one thread; each more
    /// that it is lent takes at most 8 KiB for each recovery shard.
    pub fn payload_bytes(largest: &Shape) -> u64 {
        let rows = (SetDecoder::payload_rows(largest) * largest.shard_len) as u64;
        rows + Scratch::bytes(largest.code.m())
    }

    /// All originals, and as many recovery shards as can take the place of some.
    fn payload_rows(largest: &Shape) -> usize {
        largest.code.k() + largest.code.k().min(largest.code.m())
    }

    fn with_rows(largest: &Shape, rows: usize, keeps_recovery: bool) -> SetDecoder {
        let n = largest.code.n();
        SetDecoder {
            code: largest.code,
            rows: ShardBuf::new(rows, largest.shard_len),
            places: vec![None; n],
            free: Vec::new(),
            keeps_recovery,
            group: None,
            checked: vec![None; n],
            set_root: [0; 32],
            tree: Tree::new(),
            scratch: Scratch::default(),
        }
    }

    /// Starts on set `set` of the group with this geometry and root; forgets the set before.
    ///
    /// # Panics
    /// If the code differs from the decoder's, or the shards are longer.
    pub fn begin(&mut self, geometry: &GroupGeometry, group_root: &Digest, set: u32) {
        let code = geometry.shape().code;
        assert_eq!(code, self.code, "a decoder serves one code");
        self.rows.set_row_len(geometry.shape().shard_len);
        let own_rows = if self.keeps_recovery { code.n() } else { code.k() };
        (0..).zip(&mut self.places).for_each(|(i, place)| *place = Some(i).filter(|i| *i < own_rows));
        self.free.clear();
        self.free.extend(own_rows..self.rows.rows());
        self.checked.fill(None);
        self.group = Some((*geometry, *group_root, set));
    }

    /// The row to read shard `index` into; until it is checked it does not count.
    ///
    /// A decoder for the payload has room for k recovery shards. When all of it is taken, this takes the room of
    /// one that was read and is not intact.
    ///
    /// # Panics
    /// If such a decoder holds k intact recovery shards already.
    pub fn slot(&mut self, index: u32) -> &mut [u8] {
        let index = index as usize;
        self.checked[index] = None;
        let place = self.places[index].or_else(|| self.free.pop()).unwrap_or_else(|| self.take_place());
        self.places[index] = Some(place);
        self.rows.row_mut(place)
    }

    /// Takes a place from a shard that is not intact.
    fn take_place(&mut self) -> usize {
        let is_unchecked = |i: &usize| self.places[*i].is_some() && self.checked[*i].is_none();
        let loser = (self.code.k()..self.code.n()).find(is_unchecked);
        self.places[loser.expect("fewer than k recovery shards are intact")].take().expect("it has a place")
    }

    /// Hashes the row of shard `index` and follows the proofs, any of which may serve. True: the shard
    /// counts from now on.
    pub fn check(&mut self, index: u32, proofs: &[&[u8]], observer: &dyn Observer) -> bool {
        self.check_all(&[(index, proofs)], observer)[0]
    }

    /// The same for several shards, whose rows are hashed together: with BLAKE3 that is faster.
    pub fn check_all(&mut self, shards: &[(u32, &[&[u8]])], observer: &dyn Observer) -> Vec<bool> {
        let (geometry, group_root, set) = self.group.as_ref().expect("begin was called");
        let hash = geometry.shape().hash;
        observer.begin(Phase::Check);
        // A shard without a row was never read, or lost its room to another.
        let places = shards.iter().map(|(index, _)| self.places[*index as usize]);
        let rows: Vec<&[u8]> = places.clone().flatten().map(|place| self.rows.row(place)).collect();
        let mut digests = hash.digests(&rows).into_iter();
        let mut found = Vec::with_capacity(shards.len());
        for ((index, proofs), place) in shards.iter().zip(places) {
            let digest = place.and_then(|_| digests.next());
            found.push(digest.and_then(|digest| {
                let leaf = hash.leaf(&digest, *set, *index);
                let climb = |proof: &&[u8]| climb_to_group(geometry, group_root, *set, *index, leaf, proof);
                proofs.iter().find_map(climb).map(|set_root| (leaf, set_root))
            }));
        }
        observer.end(Phase::Check, rows.iter().map(|row| row.len() as u64).sum());
        for ((index, _), found) in shards.iter().zip(&found) {
            if let Some((leaf, set_root)) = found {
                self.set_root = *set_root;
                self.checked[*index as usize] = Some(*leaf);
            }
        }
        found.iter().map(Option::is_some).collect()
    }

    /// How many shards passed their check.
    pub fn intact(&self) -> usize {
        self.checked.iter().flatten().count()
    }

    /// Whether shard `index` passed its check.
    pub fn is_intact(&self, index: u32) -> bool {
        self.checked[index as usize].is_some()
    }

    /// The bytes of shard `index`: checked ones as read; after [`SetDecoder::decode`] all originals, and all
    /// recovery shards too unless the decoder is for the payload.
    ///
    /// # Panics
    /// If the decoder does not have that shard.
    pub fn row(&self, index: u32) -> &[u8] {
        self.rows.row(self.places[index as usize].expect("a shard that was read or is kept"))
    }

    /// Computes all other shards from k of the checked ones: first the missing originals, then from all originals
    /// the missing recovery shards. Hashes them and compares the set's root; checks that the padding is zero.
    /// Afterwards every shard is proved by the codeword.
    ///
    /// # Errors
    /// [`SetError`]; the rows that were not checked then hold nothing that may be used.
    pub fn decode(
        &mut self,
        plans: &PlanCache,
        executor: &dyn Executor,
        observer: &dyn Observer,
    ) -> Result<(), SetError> {
        let (geometry, _, set) = self.group.expect("begin was called");
        let code = geometry.shape().code;
        let hash = geometry.shape().hash;
        let mut known: Vec<u8> =
            (0..code.n()).filter(|i| self.checked[*i].is_some()).take(code.k()).map(|i| i as u8).collect();
        if known.len() < code.k() {
            return Err(SetError::TooFew { intact: known.len(), needed: code.k() });
        }
        if usize::from(known[0]) >= code.k()
            && let Some(better) = transformable(code, |i| self.checked[i].is_some())
        {
            // All originals are lost, and these recovery shards give them back by transform.
            known = better;
        }
        observer.begin(Phase::Plan);
        let plan = plans.get(code, &known);
        observer.end(Phase::Plan, 0);
        let pass = Pass {
            hash,
            restore: Some(&plan.originals).filter(|plan| !plan.wanted().is_empty()),
            extend: &plan.recovery,
            hash_known: false,
            keeps_recovery: self.keeps_recovery,
            phase: Phase::Reencode,
        };
        let is_known = |i: usize| known.contains(&(i as u8));
        let mut scratch = std::mem::take(&mut self.scratch);
        let digests = pass.run(self.pass_rows(code, is_known), &mut scratch, executor, observer);
        self.scratch = scratch;
        observer.begin(Phase::Tree);
        // Digests come in the order of the shards.
        let mut digests = digests.iter();
        let mut leaf = |i: usize| match self.checked[i] {
            Some(leaf) if is_known(i) => leaf,
            _ => hash.leaf(digests.next().expect("one digest for each new shard"), set, i as u32),
        };
        self.tree.leaves_mut().extend((0..code.n()).map(&mut leaf));
        let root = self.tree.build(hash);
        observer.end(Phase::Tree, (code.n() * self.rows.row_len()) as u64);
        if root != self.set_root {
            return Err(SetError::NotACodeword);
        }
        let padding_is_zero = (0..code.k())
            .all(|i| self.row(i as u32)[geometry.shard_payload(set, i)..].iter().all(|byte| *byte == 0));
        if !padding_is_zero {
            return Err(SetError::Padding);
        }
        Ok(())
    }

    /// The rows as a pass takes them.
    fn pass_rows(&mut self, code: Code, is_known: impl Fn(usize) -> bool) -> Rows<'_> {
        let mut rows: Vec<Option<&mut [u8]>> = self.rows.iter_mut().map(Some).collect();
        let mut take = |i: usize| self.places[i].and_then(|place| rows[place].take());
        let (mut known, mut originals, mut recovery) = (Vec::new(), Vec::new(), Vec::new());
        for i in 0..code.k() {
            let row = take(i).expect("every original has a row");
            if is_known(i) {
                known.push(&*row);
                originals.push(Original::Known(known[known.len() - 1]));
            } else {
                originals.push(Original::Missing(row));
            }
        }
        for i in code.k()..code.n() {
            match take(i) {
                Some(row) if is_known(i) => known.push(&*row),
                Some(row) if self.keeps_recovery => recovery.push(row),
                _ => {}
            }
        }
        Rows { known, originals, recovery: self.keeps_recovery.then_some(recovery) }
    }
}

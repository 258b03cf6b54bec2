//! One set: encoding it into leaves, and decoding it from shards that were checked in place.
//!
//! The decoder owns the buffer that shards are read into, and computes their digests there: what was
//! checked is what is decoded, and nothing else can be.

use crate::block::{Code, Plan, ShardBuf, transformable};
use crate::digest::{Digest, HashKind};
use crate::gf256::kernel::Backend;
use crate::merkle::{Tree, climb};
use crate::observe::{Observer, Phase};
use crate::params::{GroupGeometry, Shape};
use crate::spread::{Spread, for_each, run_plan};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The root of the set that a leaf belongs to, if the proof leads from it to the group's root.
fn climb_to_group(
    geometry: &GroupGeometry,
    group_root: &Digest,
    set: u32,
    index: u32,
    leaf: Digest,
    proof: &[u8],
) -> Option<Digest> {
    let shape = geometry.shape();
    let (set_path, group_path) = proof.split_at_checked(shape.set_path_len())?;
    let set_root = climb(shape.hash, leaf, index.into(), shape.code.n() as u64, set_path)?;
    let tree = climb(shape.hash, set_root, set.into(), shape.sets.into(), group_path)?;
    (geometry.root(&tree) == *group_root).then_some(set_root)
}

/// Whether `body` is shard `index` of set `set` of the group with this geometry and root.
///
/// Cost: one digest of the body and a few node hashes.
pub fn shard_is_proved(
    geometry: &GroupGeometry,
    group_root: &Digest,
    set: u32,
    index: u32,
    body: &[u8],
    proof: &[u8],
) -> bool {
    let hash = geometry.shape().hash;
    let leaf = hash.leaf(&hash.digest(body), set, index);
    body.len() == geometry.shape().shard_len && leaf_is_proved(geometry, group_root, set, index, &leaf, proof)
}

/// Whether `proof` leads from a leaf to the group's root: for bytes whose leaf was computed already.
pub fn leaf_is_proved(
    geometry: &GroupGeometry,
    group_root: &Digest,
    set: u32,
    index: u32,
    leaf: &Digest,
    proof: &[u8],
) -> bool {
    climb_to_group(geometry, group_root, set, index, *leaf, proof).is_some()
}

/// The leaves of some rows of a set, computed on the lent threads.
fn leaves(hash: HashKind, set: u32, rows: &[(u32, &[u8])], spread: &dyn Spread) -> Vec<Digest> {
    let mut out = vec![[0u8; 32]; rows.len()];
    let chunk = rows.len().div_ceil(4 * spread.width()).max(1);
    let jobs: Vec<_> = rows.chunks(chunk).zip(out.chunks_mut(chunk)).collect();
    for_each(spread, jobs, |(rows, out)| {
        for ((index, row), leaf) in rows.iter().zip(out) {
            *leaf = hash.leaf(&hash.digest(row), set, *index);
        }
    });
    out
}

/// Encodes the sets of one code and hash.
#[derive(Debug)]
pub struct SetEncoder {
    plan: Plan,
    hash: HashKind,
}

impl SetEncoder {
    /// An encoder that runs on `backend`. Cost: one encode plan.
    pub fn new(code: Code, hash: HashKind, backend: Backend) -> SetEncoder {
        SetEncoder { plan: Plan::encode(code, backend), hash }
    }

    /// The plan that it encodes with: which engine runs, and how many operations that takes.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Overwrites `recovery` with the m recovery shards of `originals`, fills `tree` with the n leaves
    /// and returns the set's root.
    ///
    /// # Panics
    /// If there are not k originals and m recovery rows of one length.
    pub fn encode(
        &self,
        set: u32,
        originals: &[&[u8]],
        recovery: &mut ShardBuf,
        tree: &mut Tree,
        spread: &dyn Spread,
        observer: &dyn Observer,
    ) -> Digest {
        let shard_len = originals[0].len();
        let bytes = ((originals.len() + recovery.rows()) * shard_len) as u64;
        observer.begin(Phase::Encode);
        run_plan(spread, &self.plan, originals.to_vec(), recovery.iter_mut().collect());
        observer.end(Phase::Encode, bytes);
        observer.begin(Phase::Digest);
        let all: Vec<(u32, &[u8])> = (0..).zip(originals.iter().copied().chain(recovery.iter())).collect();
        let leaves = leaves(self.hash, set, &all, spread);
        observer.end(Phase::Digest, bytes);
        observer.begin(Phase::Tree);
        tree.leaves_mut().extend_from_slice(&leaves);
        let root = tree.build(self.hash);
        observer.end(Phase::Tree, bytes);
        root
    }
}

/// The two halves of a decode plan: what the payload needs, then what only the check needs.
///
/// The check's recovery shards come from all originals, when those that were missing are there: whatever was
/// lost, that is encoding, and mostly cheaper than the way from the shards that were read. The bytes are the
/// same, since any k shards of a codeword fix it.
#[derive(Debug)]
struct DecodePlan {
    /// From the k shards that were read to the missing originals.
    originals: Plan,
    /// From the k originals to the recovery shards that were not read.
    recovery: Plan,
}

/// A code and which of its shards a set is decoded from, one bit each.
type Pattern = (Code, [u64; 4]);

/// Decode plans by loss pattern, shared by all threads: sets with the same losses share one plan.
#[derive(Debug)]
pub struct PlanCache {
    backend: Backend,
    plans: Mutex<HashMap<Pattern, Arc<DecodePlan>>>,
}

/// Plans kept at the same time: at most about half a megabyte each.
const MAX_PLANS: usize = 16;

impl PlanCache {
    /// An empty cache of plans for `backend`.
    pub fn new(backend: Backend) -> PlanCache {
        PlanCache { backend, plans: Mutex::default() }
    }

    fn get(&self, code: Code, known: &[u8]) -> Arc<DecodePlan> {
        let mut pattern = [0u64; 4];
        known.iter().for_each(|i| pattern[usize::from(*i) / 64] |= 1 << (i % 64));
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plan) = plans.get(&(code, pattern)) {
            return plan.clone();
        }
        let missing = |range: std::ops::Range<usize>| -> Vec<u8> {
            range.map(|i| i as u8).filter(|i| !known.contains(i)).collect()
        };
        let plan = |known: &[u8], wanted: &[u8]| {
            Plan::new(code, self.backend, known, wanted).expect("k distinct shards of the code are known")
        };
        let originals: Vec<u8> = (0..code.k()).map(|i| i as u8).collect();
        let built = Arc::new(DecodePlan {
            originals: plan(known, &missing(0..code.k())),
            recovery: plan(&originals, &missing(code.k()..code.n())),
        });
        if plans.len() >= MAX_PLANS {
            plans.clear();
        }
        plans.insert((code, pattern), built.clone());
        built
    }
}

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

/// Decodes one set at a time in a buffer of its own: n rows, of which those that were read and
/// checked are the only ones it decodes from.
#[derive(Debug)]
pub struct SetDecoder {
    rows: ShardBuf,
    group: Option<(GroupGeometry, Digest, u32)>,
    /// The leaf of each row that was checked.
    checked: Vec<Option<Digest>>,
    set_root: Digest,
    tree: Tree,
}

impl SetDecoder {
    /// A decoder for sets up to this shape. Memory: n·L bytes and a little.
    pub fn new(largest: &Shape) -> SetDecoder {
        SetDecoder {
            rows: ShardBuf::new(largest.code.n(), largest.shard_len),
            group: None,
            checked: vec![None; largest.code.n()],
            set_root: [0; 32],
            tree: Tree::new(),
        }
    }

    /// Starts on set `set` of the group with this geometry and root; forgets the set before.
    ///
    /// # Panics
    /// If the code differs from the decoder's, or the shards are longer.
    pub fn begin(&mut self, geometry: &GroupGeometry, group_root: &Digest, set: u32) {
        assert_eq!(geometry.shape().code.n(), self.rows.rows(), "a decoder serves one code");
        self.rows.set_row_len(geometry.shape().shard_len);
        self.checked.fill(None);
        self.group = Some((*geometry, *group_root, set));
    }

    /// The row to read shard `index` into; until [`SetDecoder::check`] it does not count.
    pub fn slot(&mut self, index: u32) -> &mut [u8] {
        self.checked[index as usize] = None;
        self.rows.row_mut(index as usize)
    }

    /// Hashes the row of shard `index` and follows the proofs, any of which may serve. True: the shard
    /// counts from now on.
    pub fn check(&mut self, index: u32, proofs: &[&[u8]], observer: &dyn Observer) -> bool {
        let (geometry, group_root, set) = self.group.as_ref().expect("begin was called");
        let hash = geometry.shape().hash;
        let row = self.rows.row(index as usize);
        observer.begin(Phase::Check);
        let leaf = hash.leaf(&hash.digest(row), *set, index);
        let set_root =
            proofs.iter().find_map(|proof| climb_to_group(geometry, group_root, *set, index, leaf, proof));
        observer.end(Phase::Check, row.len() as u64);
        let Some(set_root) = set_root else { return false };
        self.set_root = set_root;
        self.checked[index as usize] = Some(leaf);
        true
    }

    /// How many shards passed their check.
    pub fn intact(&self) -> usize {
        self.checked.iter().flatten().count()
    }

    /// Whether shard `index` passed its check.
    pub fn is_intact(&self, index: u32) -> bool {
        self.checked[index as usize].is_some()
    }

    /// The bytes of shard `index`: checked ones as read, after [`SetDecoder::decode`] all of them.
    pub fn row(&self, index: u32) -> &[u8] {
        self.rows.row(index as usize)
    }

    /// Computes all other rows from k of the checked ones: first the missing originals, then from all originals
    /// the missing recovery shards. Hashes them and compares the set's root; checks that the padding is zero.
    /// Afterwards every row is proved by the codeword.
    ///
    /// # Errors
    /// [`SetError`]; the rows that were not checked then hold nothing that may be used.
    pub fn decode(
        &mut self,
        plans: &PlanCache,
        spread: &dyn Spread,
        observer: &dyn Observer,
    ) -> Result<(), SetError> {
        let (geometry, _, set) = self.group.as_ref().expect("begin was called");
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
        for (phase, plan) in [(Phase::Decode, &plan.originals), (Phase::Reencode, &plan.recovery)] {
            observer.begin(phase);
            let (is_known, is_wanted) = (indices(plan.known()), indices(plan.wanted()));
            let (src, dst) = split(&mut self.rows, |i| is_known[i], |i| is_wanted[i]);
            run_plan(spread, plan, src, dst);
            observer.end(phase, (plan.wanted().len() * self.rows.row_len()) as u64);
        }
        observer.begin(Phase::Digest);
        let fresh: Vec<(u32, &[u8])> =
            (0u32..).zip(self.rows.iter()).filter(|(i, _)| !known.contains(&(*i as u8))).collect();
        let fresh_leaves = leaves(hash, *set, &fresh, spread);
        observer.end(Phase::Digest, (fresh.len() * self.rows.row_len()) as u64);
        observer.begin(Phase::Tree);
        let mut fresh_leaves = fresh_leaves.into_iter();
        let all = (0..code.n()).map(|i| match self.checked[i] {
            Some(leaf) if known.contains(&(i as u8)) => leaf,
            _ => fresh_leaves.next().expect("one leaf for each row that is not known"),
        });
        let tree_leaves = self.tree.leaves_mut();
        tree_leaves.extend(all);
        let root = self.tree.build(hash);
        observer.end(Phase::Tree, (code.n() * self.rows.row_len()) as u64);
        if root != self.set_root {
            return Err(SetError::NotACodeword);
        }
        let padding_is_zero = (0..code.k())
            .all(|i| self.rows.row(i)[geometry.shard_payload(*set, i)..].iter().all(|byte| *byte == 0));
        if !padding_is_zero {
            return Err(SetError::Padding);
        }
        Ok(())
    }
}

/// Which indices are in a list.
fn indices(list: &[u8]) -> [bool; 256] {
    let mut found = [false; 256];
    list.iter().for_each(|&i| found[usize::from(i)] = true);
    found
}

/// Known rows as sources and wanted rows as destinations, both in row order.
fn split(
    rows: &mut ShardBuf,
    is_known: impl Fn(usize) -> bool,
    is_wanted: impl Fn(usize) -> bool,
) -> (Vec<&[u8]>, Vec<&mut [u8]>) {
    let mut known = Vec::new();
    let mut wanted = Vec::new();
    for (i, row) in rows.iter_mut().enumerate() {
        if is_wanted(i) {
            wanted.push(row);
        } else if is_known(i) {
            known.push(&*row);
        }
    }
    (known, wanted)
}

//! Encoding a set.
//!
//! An encode keeps all rows. It codes them in one go, past the caches, and then hashes all of them together.

use super::pass::{Original, PassRows, Scratch, SetPass};
use super::run::Run;
use super::tree::SetTree;
use crate::block::{Code, Plan, ShardBuf};
use crate::digest::{Digest, HashKind};
use crate::gf256::kernel::Backend;
use crate::observe::Phase;
use crate::params::Shape;

/// Encodes the sets of one code and hash.
#[derive(Debug)]
pub struct SetEncoder {
    plan: Plan,
    hash: HashKind,
}

/// The result of encoding a set: its recovery shards, and the tree over all its shards. It is reused from set to set.
#[derive(Debug)]
pub struct EncodedSet {
    recovery: ShardBuf,
    tree: SetTree,
    /// The values of all leaves, shard after shard.
    leaves: Vec<Digest>,
    shards: usize,
}

impl EncodedSet {
    /// Memory for the encoding of sets up to this shape. It takes m·L bytes and a little.
    pub fn new(largest: &Shape) -> EncodedSet {
        EncodedSet {
            recovery: ShardBuf::new(largest.code.m(), largest.shard_len),
            tree: SetTree::default(),
            leaves: Vec::new(),
            shards: largest.code.n(),
        }
    }

    /// The m recovery shards: row i is shard k + i.
    pub fn recovery(&self) -> &ShardBuf {
        &self.recovery
    }

    /// The set's root; zero bytes if nothing was encoded yet.
    pub fn root(&self) -> Digest {
        self.tree.root()
    }

    /// The [outline](crate::format::outline) of shard `index`: the values of its leaves. It is empty if the shard has
    /// no outline, and if nothing was encoded yet.
    ///
    /// # Panics
    /// If there is no such shard.
    pub fn outline(&self, index: usize) -> &[Digest] {
        let each = self.leaves.len() / self.shards;
        &self.leaves[index * each..][..each]
    }

    /// Writes the set path of the proof of shard `index` into `out`, which has
    /// [`set_path_len`](crate::params::Shape::set_path_len) bytes or more; the rest of it becomes zero.
    ///
    /// # Panics
    /// If nothing was encoded yet, there is no such shard, or `out` is shorter.
    pub fn write_path(&self, index: usize, out: &mut [u8]) {
        self.tree.write_path(index, out);
    }
}

impl SetEncoder {
    /// An encoder that runs on `backend`. Cost: one encode plan.
    pub fn new(code: Code, hash: HashKind, backend: Backend) -> SetEncoder {
        SetEncoder { plan: Plan::encode(code, backend), hash }
    }

    /// The plan of the encoder, with its engine and operations.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Encodes set number `set` of its group: overwrites `encoded` with the recovery shards of `originals`, which are
    /// in order and of one length, and with the tree over all n shards. Returns the set's root.
    ///
    /// Cost: the plan's operations for each column of bytes, n digests, and 2·n − 1 node hashes.
    ///
    /// # Panics
    /// If there are not k originals of one length, a multiple of 64 and more than 0; or if `encoded` was made for
    /// another m or for shorter shards.
    pub fn encode(&self, set: u32, originals: &[&[u8]], encoded: &mut EncodedSet, run: Run<'_>) -> Digest {
        let EncodedSet { recovery, tree, leaves, .. } = encoded;
        assert_eq!((originals.len(), recovery.rows()), (self.plan.code().k(), self.plan.code().m()));
        let shard_len = originals[0].len();
        assert!(shard_len > 0 && originals.iter().all(|row| row.len() == shard_len), "shards of one length");
        recovery.set_row_len(shard_len);
        let bytes = ((originals.len() + recovery.rows()) * shard_len) as u64;
        let pass = SetPass {
            hash: self.hash,
            restore: None,
            extend: Some(&self.plan),
            hash_known: true,
            keeps_recovery: true,
            phase: Phase::Encode,
        };
        let rows = PassRows {
            known: Vec::new(),
            originals: originals.iter().map(|row| Original::Known(row)).collect(),
            recovery: Some(recovery.iter_mut().collect()),
        };
        let digests = pass.run(rows, &mut Scratch::default(), Some(leaves), run);
        run.observer.begin(Phase::Tree);
        let root = tree.build_from_digests(self.hash, self.plan.code(), set, digests);
        run.observer.end(Phase::Tree, bytes);
        root
    }
}

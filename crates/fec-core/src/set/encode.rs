//! Encoding a set.

use super::pass::{Original, Pass, Rows, Scratch};
use crate::block::{Code, Plan, ShardBuf};
use crate::digest::{Digest, HashKind};
use crate::executor::Executor;
use crate::gf256::kernel::Backend;
use crate::merkle::Tree;
use crate::observe::{Observer, Phase};

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
        executor: &dyn Executor,
        observer: &dyn Observer,
    ) -> Digest {
        let shard_len = originals[0].len();
        assert_eq!((originals.len(), recovery.rows()), (self.plan.code().k(), self.plan.code().m()));
        let all = originals.iter().copied().chain(recovery.iter());
        assert!(all.into_iter().all(|row| row.len() == shard_len), "rows of one length");
        let bytes = ((originals.len() + recovery.rows()) * shard_len) as u64;
        let pass = Pass {
            hash: self.hash,
            restore: None,
            extend: &self.plan,
            hash_known: true,
            keeps_recovery: true,
            phase: Phase::Encode,
        };
        let rows = Rows {
            known: Vec::new(),
            originals: originals.iter().map(|row| Original::Known(row)).collect(),
            recovery: Some(recovery.iter_mut().collect()),
        };
        let digests = pass.run(rows, &mut Scratch::default(), executor, observer);
        observer.begin(Phase::Tree);
        let leaf = |(index, digest)| self.hash.leaf(digest, set, index);
        tree.leaves_mut().extend((0..).zip(&digests).map(leaf));
        let root = tree.build(self.hash);
        observer.end(Phase::Tree, bytes);
        root
    }
}

//! Decode plans, found again by what was lost.

use crate::block::{Code, Plan};
use crate::executor::lock;
use crate::gf256::kernel::Backend;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// The two halves of a decode plan: what the payload needs, then what only the check needs.
///
/// The check's recovery shards come from all originals, when those that were missing are there: whatever was
/// lost, that is encoding, and mostly cheaper than the way from the shards that were read. The bytes are the
/// same, since any k shards of a codeword fix it.
#[derive(Debug)]
pub(super) struct DecodePlan {
    /// From the k shards that were read to the missing originals.
    pub(super) originals: Plan,
    /// From the k originals to the recovery shards that were not read.
    pub(super) recovery: Plan,
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

    pub(super) fn get(&self, code: Code, known: &[u8]) -> Arc<DecodePlan> {
        let mut pattern = [0u64; 4];
        known.iter().for_each(|i| pattern[usize::from(*i) / 64] |= 1 << (i % 64));
        let mut plans = lock(&self.plans);
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

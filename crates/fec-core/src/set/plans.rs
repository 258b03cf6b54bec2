//! Decode plans, found again by loss pattern.

use crate::block::{Code, Plan};
use crate::executor::lock;
use crate::gf256::kernel::Backend;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

/// The two halves of a decode plan: the one that the payload needs, then the one that only a strict decoder needs.
///
/// Recovery shards come from all originals, once the missing ones are restored: this is encoding, whatever was lost,
/// and mostly cheaper than the way from the shards that were read. The bytes are the same, since any k shards of a
/// codeword fix it.
#[derive(Debug)]
pub(super) struct DecodePlan {
    code: Code,
    backend: Backend,
    known: Vec<u8>,
    /// From the k shards that were read to the missing originals.
    pub(super) originals: Plan,
    recovery: OnceLock<Plan>,
}

impl DecodePlan {
    fn new(code: Code, backend: Backend, known: &[u8]) -> DecodePlan {
        let originals = plan(code, backend, known, &missing(known, 0..code.k()));
        DecodePlan { code, backend, known: known.to_vec(), originals, recovery: OnceLock::new() }
    }

    /// From the k originals to the recovery shards that were not read; made by the first call.
    pub(super) fn recovery(&self) -> &Plan {
        let originals: Vec<u8> = (0..self.code.k()).map(|i| i as u8).collect();
        let wanted = || missing(&self.known, self.code.k()..self.code.n());
        self.recovery.get_or_init(|| plan(self.code, self.backend, &originals, &wanted()))
    }
}

/// The shards of a range that are not known.
fn missing(known: &[u8], range: std::ops::Range<usize>) -> Vec<u8> {
    range.map(|i| i as u8).filter(|i| !known.contains(i)).collect()
}

fn plan(code: Code, backend: Backend, known: &[u8], wanted: &[u8]) -> Plan {
    Plan::new(code, backend, known, wanted).expect("k distinct shards of the code are known")
}

/// A code and the shards from which a set is decoded, one bit each.
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
        let built = Arc::new(DecodePlan::new(code, self.backend, known));
        if plans.len() >= MAX_PLANS {
            plans.clear();
        }
        plans.insert((code, pattern), built.clone());
        built
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An input chooses its losses: plans for them must not pile up.
    #[test]
    fn plans_are_found_again_and_their_number_is_bounded() {
        let cache = PlanCache::new(Backend::best());
        let code = Code::new(2, 30).unwrap();
        let first = cache.get(code, &[1, 2]);
        for lost in 3..=17 {
            cache.get(code, &[1, lost]);
            assert!(Arc::ptr_eq(&first, &cache.get(code, &[1, 2])), "{lost}");
        }
        assert_eq!(lock(&cache.plans).len(), MAX_PLANS);
        for lost in 18..32 {
            cache.get(code, &[1, lost]);
            assert!(lock(&cache.plans).len() <= MAX_PLANS);
        }
    }
}

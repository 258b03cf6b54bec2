//! The block code, seen from outside. Every test walks [`Backend::available`], so a new kernel is tested by
//! being listed.

mod engines;
mod errors;
mod losses;
mod peer;
mod products;
mod rows;
mod tuning;

use fec_core::block::{Code, Engine, Plan, ShardBuf};
use fec_core::gf256::kernel::Backend;
use fec_core::random::SplitMix64;

/// The readable backend, the reference of the others.
fn scalar() -> Backend {
    Backend::by_name("scalar").expect("scalar is always there")
}

/// Bytes without pattern, the same in every run.
struct Noise(SplitMix64);

impl Noise {
    fn new(seed: u64) -> Noise {
        Noise(SplitMix64::new(seed))
    }

    fn next(&mut self) -> u64 {
        self.0.next()
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0.index(bound)
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes()[..chunk.len()]);
        }
    }

    fn shuffle(&mut self, items: &mut [u8]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

/// The plans of both engines, if a transform can serve: the matrix first.
fn plans(code: Code, backend: Backend, known: &[u8], wanted: &[u8]) -> Vec<Plan> {
    let plan = |engine| Plan::with_engine(code, backend, known, wanted, engine);
    let matrix = plan(Engine::Matrix).unwrap();
    [matrix].into_iter().chain(plan(Engine::Fft)).collect()
}

/// The originals and the recovery shards.
fn originals_and_recovery(code: Code) -> (Vec<u8>, Vec<u8>) {
    (0..code.n()).map(|i| i as u8).partition(|&i| usize::from(i) < code.k())
}

/// A set of `code` with originals of noise and recovery shards by the matrix of `backend`. The matrix of [`scalar`] is
/// the oracle of all else.
fn encoded(code: Code, row_len: usize, backend: Backend) -> ShardBuf {
    let mut set = ShardBuf::new(code.n(), row_len);
    let mut noise = Noise::new(row_len as u64);
    set.iter_mut().take(code.k()).for_each(|row| noise.fill(row));
    let (originals, mut recovery) = set.split_rows(|i| i >= code.k());
    let (known, wanted) = originals_and_recovery(code);
    plans(code, backend, &known, &wanted)[0].run(&originals, &mut recovery);
    set
}

/// The wanted rows of `plan`, computed from the whole set.
fn computed(plan: &Plan, set: &ShardBuf) -> ShardBuf {
    let mut out = ShardBuf::new(plan.wanted().len(), set.row_len());
    // The old bytes must be overwritten and never read.
    out.iter_mut().for_each(|row| row.fill(0xA5));
    let known: Vec<&[u8]> = plan.known().iter().map(|&i| set.row(usize::from(i))).collect();
    let (_, mut dst) = out.split_rows(|_| true);
    plan.run(&known, &mut dst);
    out
}

/// Fails unless `plan` gives back the rows of `set`.
fn assert_restores(plan: &Plan, set: &ShardBuf) {
    for (&index, row) in plan.wanted().iter().zip(computed(plan, set).iter()) {
        assert!(row == set.row(usize::from(index)), "shard {index} by {plan:?}");
    }
}

//! Random sets whose shards another codec computed.
//!
//! The binary does not carry that codec, only its results: for each of 10,000 seeds, the first two bytes of the BLAKE3
//! digest of all shards of the seed's set. The test below wrote the file with `reed-solomon-erasure`, and compares it
//! with that codec's current results. A wrong set goes unnoticed once in 65,536 times.

use crate::random::Mmix;
use fec_core::block::{Code, Plan, ShardBuf};
use fec_core::gf256::kernel::Backend;

pub(crate) const ALL: u64 = 10_000;

/// Two bytes for each seed.
static DIGESTS: &[u8; 2 * ALL as usize] = include_bytes!("outside.bin");

/// The set of a seed: shape, length, the originals, and which shards are left.
struct SeededSet {
    k: usize,
    m: usize,
    originals: Vec<Vec<u8>>,
    left: Vec<usize>,
}

impl SeededSet {
    fn new(seed: u64) -> SeededSet {
        let mut random = Mmix(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x6f75_7473_6964_6521);
        // Every size is as likely as its double: mostly small sets, and some of each size up to the largest.
        let k = 1 + random.below(2 << random.clone().below(7)).min(254);
        let most = (256 - k).min(2 << random.clone().below(8));
        let m = 1 + random.below(most);
        let len = 64 * (1 + random.below(8));
        let mut originals = vec![vec![0; len]; k];
        originals.iter_mut().for_each(|row| random.fill(row));
        let left = random.some(k, k + m);
        SeededSet { k, m, originals, left }
    }
}

/// The first two bytes of the digest of all shards.
fn mark<'a>(shards: impl Iterator<Item = &'a [u8]>) -> [u8; 2] {
    let mut hasher = blake3::Hasher::new();
    shards.for_each(|shard| {
        hasher.update(shard);
    });
    let [a, b, ..] = *hasher.finalize().as_bytes();
    [a, b]
}

/// Number of sets that equal the other codec's, both encoded and restored from the remaining shards.
pub(crate) fn right(backend: Backend) -> u64 {
    let marks = DIGESTS.as_chunks::<2>().0;
    (0..ALL).zip(marks).filter(|(seed, mark)| is_right(backend, &SeededSet::new(*seed), **mark)).count()
        as u64
}

fn is_right(backend: Backend, case: &SeededSet, expected: [u8; 2]) -> bool {
    let Ok(code) = Code::new(case.k, case.m) else { return false };
    let len = case.originals[0].len();
    let originals: Vec<&[u8]> = case.originals.iter().map(Vec::as_slice).collect();
    let mut recovery = ShardBuf::new(case.m, len);
    Plan::encode(code, backend).run(&originals, &mut recovery.iter_mut().collect::<Vec<_>>());
    if mark(originals.iter().copied().chain(recovery.iter())) != expected {
        return false;
    }
    let shard = |i: usize| if i < case.k { originals[i] } else { recovery.row(i - case.k) };
    let known: Vec<u8> = case.left.iter().map(|i| *i as u8).collect();
    let lost: Vec<u8> = (0..code.n()).filter(|i| !case.left.contains(i)).map(|i| i as u8).collect();
    let mut restored = ShardBuf::new(lost.len(), len);
    let Ok(plan) = Plan::new(code, backend, &known, &lost) else { return false };
    let src: Vec<&[u8]> = case.left.iter().map(|i| shard(*i)).collect();
    plan.run(&src, &mut restored.iter_mut().collect::<Vec<_>>());
    let mut all: Vec<&[u8]> = vec![&[]; code.n()];
    case.left.iter().for_each(|i| all[*i] = shard(*i));
    lost.iter().zip(restored.iter()).for_each(|(i, row)| all[usize::from(*i)] = row);
    mark(all.into_iter()) == expected
}

#[cfg(test)]
mod tests {
    use super::*;
    use reed_solomon_erasure::galois_8::ReedSolomon;
    use std::collections::HashMap;

    /// The other codec's results for every seed. Making a coder is slow, so coders are kept.
    fn made_by_the_other_codec() -> Vec<u8> {
        let mut coders = HashMap::new();
        let mut marks = Vec::new();
        for seed in 0..ALL {
            let case = SeededSet::new(seed);
            let coder = coders
                .entry((case.k, case.m))
                .or_insert_with(|| ReedSolomon::new(case.k, case.m).expect("a coder"));
            let mut shards = case.originals.clone();
            shards.resize(case.k + case.m, vec![0; case.originals[0].len()]);
            coder.encode(&mut shards).expect("it encodes");
            marks.extend(mark(shards.iter().map(Vec::as_slice)));
        }
        marks
    }

    /// `FEC_WRITE_OUTSIDE=1` writes the file anew, which is only right after the seeds' sets have changed.
    #[test]
    fn the_file_is_what_reed_solomon_erasure_makes() {
        let made = made_by_the_other_codec();
        if std::env::var_os("FEC_WRITE_OUTSIDE").is_some() {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/gates/outside.bin");
            std::fs::write(path, &made).expect("the file can be written");
        } else {
            assert!(made == DIGESTS, "outside.bin is not what the other codec makes");
        }
    }

    #[test]
    fn the_sets_are_of_all_shapes() {
        let cases: Vec<SeededSet> = (0..ALL).map(SeededSet::new).collect();
        assert!(cases.iter().any(|c| c.k == 1) && cases.iter().any(|c| c.k > 120));
        assert!(cases.iter().any(|c| c.m == 1) && cases.iter().any(|c| c.m > 120));
        assert!(cases.iter().any(|c| c.left.iter().all(|i| *i >= c.k)), "all originals lost");
        assert!(cases.iter().all(|c| c.k + c.m <= 256 && c.left.len() == c.k));
    }
}

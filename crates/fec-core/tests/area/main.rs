//! The code of areas, seen from outside. Expected blocks come from the definition (Σ x_p^i · v_p = 0), or from the
//! vectors that `scripts/oracle area` wrote. Every test walks [`Backend::available`], so a new kernel is tested by
//! being listed.

#[path = "../common/mod.rs"]
mod common;
mod definition;
mod errors;
mod losses;
mod vectors;

use fec_core::area::{AreaCode, AreaDecoder, AreaEncoder, AreaRoom};
use fec_core::executor::{Executor, Inline};
use fec_core::gf256::kernel::Backend;
use fec_core::random::SplitMix64;
use std::ops::Range;

fn scalar() -> Backend {
    Backend::by_name("scalar").expect("scalar is always there")
}

fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut random = SplitMix64::new(seed);
    (0..len.div_ceil(8)).flat_map(|_| random.next().to_le_bytes()).take(len).collect()
}

/// All blocks of an area by position: originals of noise, and recovery blocks by an encoder that gets its cosets in an
/// order of the seed's.
fn encoded(code: AreaCode, block_len: usize, backend: Backend, seed: u64) -> Vec<Vec<u8>> {
    let originals = (0..code.k()).map(|i| noise(block_len, seed + i as u64)).collect();
    encode(code, originals, backend, seed, &Inline)
}

fn encode(
    code: AreaCode,
    originals: Vec<Vec<u8>>,
    backend: Backend,
    seed: u64,
    executor: &dyn Executor,
) -> Vec<Vec<u8>> {
    let block_len = originals[0].len();
    let mut all = vec![vec![0xA5; block_len]; code.m()];
    all.extend(originals);
    let mut room = AreaRoom::new(code.m(), block_len, executor.width()).unwrap();
    let mut encoder = AreaEncoder::new(code, block_len, backend, &mut room).unwrap();
    for cosets in stretches(code, seed) {
        let row = |p: usize| (p >= code.m()).then(|| &all[p][..]);
        let rows: Vec<Option<&[u8]>> =
            cosets.clone().flat_map(|coset| code.positions(coset)).map(row).collect();
        encoder.add(cosets.start, &rows, executor).unwrap();
    }
    let mut recovery = all[..code.m()].to_vec();
    encoder.finish(&mut recovery.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>(), executor).unwrap();
    all[..code.m()].clone_from_slice(&recovery);
    all
}

/// All cosets, one to three of them at once, in an order of the seed's.
fn stretches(code: AreaCode, seed: u64) -> Vec<Range<usize>> {
    let (mut random, mut start, mut stretches) = (SplitMix64::new(seed), 0, Vec::new());
    while start < code.cosets() {
        let end = code.cosets().min(start + 1 + random.index(3));
        stretches.push(start..end);
        start = end;
    }
    shuffled(stretches.len(), seed).into_iter().map(|i| stretches[i].clone()).collect()
}

fn shuffled(len: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..len).collect();
    let mut random = SplitMix64::new(seed);
    (1..len).rev().for_each(|i| order.swap(i, random.index(i + 1)));
    order
}

/// Fails unless the lost blocks come back from the others.
fn assert_restores(
    code: AreaCode,
    all: &[Vec<u8>],
    lost: &[usize],
    backend: Backend,
    executor: &dyn Executor,
) {
    let block_len = all[0].len();
    let mut room = AreaRoom::new(lost.len(), block_len, executor.width()).unwrap();
    let mut decoder = AreaDecoder::new(code, block_len, lost, backend, &mut room).unwrap();
    for cosets in stretches(code, lost.len() as u64) {
        let row = |p: usize| lost.binary_search(&p).is_err().then(|| &all[p][..]);
        let rows: Vec<Option<&[u8]>> =
            cosets.clone().flat_map(|coset| code.positions(coset)).map(row).collect();
        decoder.add(cosets.start, &rows, executor).unwrap();
    }
    let mut solution = decoder.solve(executor).unwrap();
    let mut restored = 0;
    for coset in shuffled(code.cosets(), 1) {
        let positions = solution.lost(coset).to_vec();
        let mut out = vec![vec![0xA5; block_len]; positions.len()];
        solution
            .restore(coset, &mut out.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>(), executor)
            .unwrap();
        for (position, block) in positions.iter().zip(out) {
            assert!(
                block == all[*position],
                "{position} of {code:?}, {} lost, {}",
                lost.len(),
                backend.name()
            );
        }
        restored += positions.len();
    }
    assert_eq!(restored, lost.len());
}

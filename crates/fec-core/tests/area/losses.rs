//! Blocks that are lost come back.

use crate::common::Lent;
use crate::{assert_restores, encode, encoded, noise};
use fec_core::area::AreaCode;
use fec_core::executor::Inline;
use fec_core::gf256::kernel::Backend;
use fec_core::random::SplitMix64;

#[test]
fn every_loss_of_small_areas() {
    for (k, m) in [(1, 1), (1, 3), (4, 2), (3, 4), (5, 5), (9, 3)] {
        let code = AreaCode::new(k, m).unwrap();
        let all = encoded(code, 128, Backend::best(), 9);
        for pattern in 0..1u32 << code.n() {
            if pattern.count_ones() as usize <= m {
                let lost: Vec<usize> = (0..code.n()).filter(|p| pattern >> p & 1 == 1).collect();
                assert_restores(code, &all, &lost, Backend::best(), &Inline);
            }
        }
    }
}

/// `count` positions of an area, ascending.
fn some(code: AreaCode, count: usize, random: &mut SplitMix64) -> Vec<usize> {
    let mut positions: Vec<usize> = (0..code.n()).collect();
    (0..count).for_each(|i| positions.swap(i, i + random.index(code.n() - i)));
    positions.truncate(count);
    positions.sort_unstable();
    positions
}

#[test]
fn random_losses_of_larger_areas_on_all_kernels() {
    let mut random = SplitMix64::new(4);
    for (k, m, counts) in [
        (200, 40, &[1, 2, 3, 4, 7, 16, 17, 31, 32, 33, 40][..]),
        (1000, 300, &[1, 8, 63, 64, 65, 128, 129, 255, 257, 300]),
        (3000, 1100, &[20, 600, 1025, 1100]),
        (17_500, 100, &[9, 100]),
        (64_000, 130, &[1, 5, 70, 130]),
    ] {
        let code = AreaCode::new(k, m).unwrap();
        let all = encoded(code, 128, Backend::best(), 13);
        for &count in counts {
            let lost = some(code, count, &mut random);
            Backend::available().for_each(|backend| assert_restores(code, &all, &lost, backend, &Inline));
        }
    }
}

#[test]
fn all_that_can_be_lost_in_one_piece() {
    for (k, m) in [(700, 129), (100, 500), (9000, 1600), (50, 64)] {
        let code = AreaCode::new(k, m).unwrap();
        let all = encoded(code, 256, Backend::best(), 21);
        for start in [0, k.min(1), k.min(m / 2), k] {
            let lost: Vec<usize> = (start..start + m).collect();
            assert_restores(code, &all, &lost, Backend::best(), &Inline);
        }
    }
}

#[test]
fn threads_and_strips_change_nothing() {
    let mut random = SplitMix64::new(8);
    for (k, m, block_len) in [(300, 33, 4096 + 128), (2500, 900, 1280), (10, 4, 8192)] {
        let code = AreaCode::new(k, m).unwrap();
        let all = encoded(code, block_len, Backend::best(), 2);
        let originals: Vec<Vec<u8>> = (0..k).map(|i| noise(block_len, 2 + i as u64)).collect();
        for threads in [2, 3] {
            assert!(encode(code, originals.clone(), Backend::best(), 5, &Lent(threads)) == all);
            for count in [1, m / 2, m] {
                assert_restores(code, &all, &some(code, count, &mut random), Backend::best(), &Lent(threads));
            }
        }
    }
}

#[test]
fn nothing_lost_is_nothing_to_do() {
    let code = AreaCode::new(10, 3).unwrap();
    assert_restores(code, &encoded(code, 128, Backend::best(), 1), &[], Backend::best(), &Inline);
}

//! Any k shards give back all others.

use fec_core::block::{Code, Plan};
use fec_core::gf256::kernel::Backend;

use super::{Noise, assert_restores, encoded, plans, scalar};

/// All subsets of k survivors of all codes with up to twelve shards: 8,178 of them.
#[test]
fn every_loss_pattern_up_to_twelve_shards() {
    let mut patterns = 0;
    for n in 1..=12 {
        for k in 1..=n {
            let code = Code::new(k, n - k).unwrap();
            let set = encoded(code, 64, scalar());
            for survivors in (0u16..1 << n).filter(|survivors| survivors.count_ones() as usize == k) {
                let (known, lost): (Vec<u8>, Vec<u8>) = (0..n as u8).partition(|i| survivors >> i & 1 == 1);
                for backend in Backend::available() {
                    for plan in plans(code, backend, &known, &lost) {
                        assert_restores(&plan, &set);
                    }
                }
                patterns += 1;
            }
        }
    }
    assert_eq!(patterns, 8178);
}

/// 33 random survivors of 100, in random order; the others are wanted in random order too. FEC_PATTERNS sets the number
/// of patterns for each backend; the scalar one, ten times slower, takes a tenth.
#[test]
fn random_loss_patterns_at_33_of_100() {
    let patterns: usize = std::env::var("FEC_PATTERNS").map_or(100_000, |number| number.parse().unwrap());
    let code = Code::new(33, 67).unwrap();
    let set = encoded(code, 64, scalar());
    for backend in Backend::available() {
        let mut noise = Noise::new(33);
        let mut indices: Vec<u8> = (0..100).collect();
        for _ in 0..if backend == scalar() { patterns / 10 } else { patterns } {
            noise.shuffle(&mut indices);
            let (known, lost) = indices.split_at(33);
            assert_restores(&Plan::new(code, backend, known, lost).unwrap(), &set);
        }
    }
}

/// Other large codes: k random survivors, the others wanted, as minors of the matrix that must have inverses.
#[test]
fn random_loss_patterns_of_large_codes() {
    for (k, m) in [(86, 14), (50, 50), (100, 100), (220, 36), (36, 220), (128, 128), (255, 1), (2, 254)] {
        let code = Code::new(k, m).unwrap();
        let set = encoded(code, 64, scalar());
        let mut noise = Noise::new((k * 256 + m) as u64);
        let mut indices: Vec<u8> = (0..k + m).map(|index| index as u8).collect();
        for backend in Backend::available() {
            for _ in 0..if backend == scalar() { 5 } else { 40 } {
                noise.shuffle(&mut indices);
                let (known, lost) = indices.split_at(k);
                assert_restores(&Plan::new(code, backend, known, lost).unwrap(), &set);
            }
        }
    }
}

/// The corners of the field: all points in use.
#[test]
fn originals_from_recovery_alone_at_128_of_256() {
    let code = Code::new(128, 128).unwrap();
    let set = encoded(code, 128, scalar());
    let all: Vec<u8> = (0..=255).collect();
    let (originals, recovery) = all.split_at(128);
    for backend in Backend::available() {
        for plan in plans(code, backend, recovery, originals) {
            assert_restores(&plan, &set);
        }
    }
}

#[test]
fn known_shards_may_be_wanted_and_wanted_twice() {
    let code = Code::new(3, 2).unwrap();
    let set = encoded(code, 64, scalar());
    for backend in Backend::available() {
        assert_restores(&Plan::new(code, backend, &[4, 0, 2], &[2, 3, 3, 1, 4, 0]).unwrap(), &set);
    }
}

//! Matrix and transform are two ways to the same bytes.

use fec_core::block::{Code, Engine, Plan, PlanError, ShardBuf, transformable};
use fec_core::gf256::kernel::Backend;

use super::{Noise, assert_restores, encoded, originals_and_recovery, scalar};

fn oracle(code: Code, row_len: usize) -> ShardBuf {
    encoded(code, row_len, scalar())
}

fn fft(code: Code, backend: Backend, known: &[u8], wanted: &[u8]) -> Plan {
    let plan = Plan::with_engine(code, backend, known, wanted, Engine::Fft).unwrap();
    assert_eq!(plan.engine(), Engine::Fft);
    plan
}

/// Every number of originals, with all other points of the field as recovery shards.
#[test]
fn transforms_of_every_k_equal_the_scalar_matrix() {
    for k in 1..=255 {
        let code = Code::new(k, 256 - k).unwrap();
        let set = oracle(code, 192);
        let (known, wanted) = originals_and_recovery(code);
        for backend in Backend::available() {
            assert_restores(&fft(code, backend, &known, &wanted), &set);
        }
    }
}

/// Subsets of the recovery shards, few and many, in any order.
#[test]
fn transforms_to_any_wanted_shards() {
    let mut noise = Noise::new(5);
    for k in [1, 2, 7, 15, 16, 17, 31, 32, 33, 48, 50, 63, 64, 65, 86, 100, 127, 128, 129, 200, 240] {
        let code = Code::new(k, 256 - k).unwrap();
        let set = oracle(code, 64 * 5);
        let (known, recovery) = originals_and_recovery(code);
        for round in 0..20 {
            let mut wanted = recovery.clone();
            if round % 4 == 0 {
                let from = noise.below(wanted.len());
                wanted.drain(..from);
                wanted.truncate(1 + noise.below(40));
            } else {
                noise.shuffle(&mut wanted);
                wanted.truncate(noise.below(wanted.len() + 1));
            }
            for backend in Backend::available() {
                assert_restores(&fft(code, backend, &known, &wanted), &set);
            }
        }
    }
}

/// Known shards that are the originals shifted, in any order, originals among the wanted ones.
#[test]
fn transforms_from_shifted_points() {
    let mut noise = Noise::new(6);
    for k in [1, 3, 8, 16, 20, 32, 33, 50, 64, 86, 100, 128] {
        let code = Code::new(k, 256 - k).unwrap();
        let set = oracle(code, 128);
        for shift in [0, 1, 16, 32, 64, 67, 128, 200, 255] {
            let mut known: Vec<u8> = (0..k as u8).map(|i| i ^ shift).collect();
            noise.shuffle(&mut known);
            let mut wanted: Vec<u8> = (0..=255).filter(|i| !known.contains(i)).collect();
            noise.shuffle(&mut wanted);
            for backend in Backend::available() {
                assert_restores(&fft(code, backend, &known, &wanted), &set);
            }
        }
    }
}

/// Finds the intact shards that a transform can start from, and no others.
#[test]
fn shards_that_a_transform_can_start_from() {
    let code = Code::new(33, 67).unwrap();
    let found = |intact: std::ops::Range<usize>| transformable(code, |i| intact.contains(&i));
    assert_eq!(found(0..100), Some((0..33).collect()));
    assert_eq!(found(64..97), Some((64..97).collect()));
    assert_eq!(found(34..97), Some((64..97).collect()));
    assert_eq!(found(34..96), None);
    assert_eq!(found(65..100), None);
    let known = transformable(code, |i| i > 32 && i != 96).unwrap();
    assert_eq!(known, (64..96).chain([97]).collect::<Vec<u8>>());
    let plan = fft(code, Backend::best(), &known, &[0, 1, 98, 32, 96]);
    assert_restores(&plan, &oracle(code, 64));
}

/// Lengths around every size of tile, and long enough to be stored past the caches.
#[test]
fn transforms_of_every_length_equal_the_scalar_matrix() {
    for (k, m, lines) in [
        (1, 30, 0..40),
        (33, 67, 0..70),
        (50, 50, 0..40),
        (86, 14, 0..40),
        (33, 67, 1000..1002),
        (100, 100, 700..702),
    ] {
        let code = Code::new(k, m).unwrap();
        let (known, wanted) = originals_and_recovery(code);
        for lines in lines {
            let set = oracle(code, lines * 64);
            for backend in Backend::available() {
                assert_restores(&fft(code, backend, &known, &wanted), &set);
            }
        }
    }
}

#[test]
fn transforms_need_a_shift_of_the_originals() {
    let code = Code::new(4, 8).unwrap();
    let plan = |known: &[u8], wanted: &[u8]| {
        Plan::with_engine(code, Backend::best(), known, wanted, Engine::Fft).map(|plan| plan.engine())
    };
    assert_eq!(plan(&[8, 9, 10, 11], &[0, 1]), Ok(Engine::Fft));
    assert_eq!(plan(&[0, 1, 2, 4], &[3]), Err(PlanError::NoTransform));
    assert_eq!(plan(&[0, 1, 2, 3], &[3]), Err(PlanError::NoTransform));
    assert_eq!(plan(&[0, 1, 2, 3], &[5, 5]), Err(PlanError::NoTransform));
    assert_eq!(plan(&[0, 1, 2], &[5]), Err(PlanError::WrongCount { known: 3, k: 4 }));
}

/// The counts of the shapes in use, and the engine that each chooses. The counts may only fall.
#[test]
fn operations_of_the_hot_shapes() {
    for (k, m, multiplications, additions) in
        [(33, 67, 243, 504), (86, 14, 339, 668), (50, 50, 277, 560), (100, 100, 640, 1308)]
    {
        let code = Code::new(k, m).unwrap();
        let (known, wanted) = originals_and_recovery(code);
        for backend in Backend::available() {
            let counted = fft(code, backend, &known, &wanted).operations();
            assert_eq!((counted.multiplications, counted.additions), (multiplications, additions), "{k}+{m}");
            let matrix = Plan::with_engine(code, backend, &known, &wanted, Engine::Matrix).unwrap();
            assert_eq!((matrix.engine(), matrix.multiplications()), (Engine::Matrix, k * m));
            let chosen = Plan::new(code, backend, &known, &wanted).unwrap().engine();
            let few = (k, m) == (86, 14) && backend.name() == "avx512-gfni";
            assert_eq!(chosen, if few { Engine::Matrix } else { Engine::Fft }, "{k}+{m} by {backend:?}");
            assert_eq!(matrix.operations().additions, k * m);
        }
    }
}

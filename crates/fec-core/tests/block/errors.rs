//! Refusals and their errors.

use fec_core::block::{Code, CodeError, Plan, PlanError};
use fec_core::gf256::kernel::{Backend, BackendError};

#[test]
fn codes_have_an_original_and_at_most_256_shards() {
    assert_eq!(Code::new(0, 5), Err(CodeError::NoOriginals));
    assert_eq!(Code::new(200, 57), Err(CodeError::TooManyShards { k: 200, m: 57 }));
    assert!(Code::new(usize::MAX, usize::MAX).is_err());
    assert!(Code::new(1, usize::MAX).is_err());
    for (k, m) in [(1, 0), (256, 0), (1, 255), (255, 1)] {
        let code = Code::new(k, m).unwrap();
        assert_eq!((code.k(), code.m(), code.n()), (k, m, k + m));
    }
}

#[test]
fn plans_need_k_distinct_shards_of_the_set() {
    let code = Code::new(3, 2).unwrap();
    let plan = |known: &[u8], wanted: &[u8]| Plan::new(code, Backend::best(), known, wanted).unwrap_err();
    assert_eq!(plan(&[0, 1], &[2]), PlanError::WrongCount { known: 2, k: 3 });
    assert_eq!(plan(&[0, 1, 2, 3], &[]), PlanError::WrongCount { known: 4, k: 3 });
    assert_eq!(plan(&[0, 1, 5], &[2]), PlanError::OutOfRange { index: 5, n: 5 });
    assert_eq!(plan(&[0, 1, 2], &[255]), PlanError::OutOfRange { index: 255, n: 5 });
    assert_eq!(plan(&[4, 1, 4], &[2]), PlanError::Duplicate { index: 4 });
}

#[test]
fn a_plan_tells_what_it_was_made_for() {
    let code = Code::new(3, 2).unwrap();
    let plan = Plan::new(code, Backend::best(), &[4, 0, 3], &[1, 2]).unwrap();
    assert_eq!((plan.code(), plan.backend()), (code, Backend::best()));
    assert_eq!((plan.known(), plan.wanted(), plan.multiplications()), (&[4, 0, 3][..], &[1, 2][..], 6));
}

#[test]
#[should_panic(expected = "number of source rows")]
fn a_missing_source_row_panics() {
    Plan::encode(Code::new(2, 1).unwrap(), Backend::best()).run(&[&[0; 64]], &mut [&mut [0; 64]]);
}

#[test]
#[should_panic(expected = "number of destination rows")]
fn a_missing_destination_row_panics() {
    Plan::encode(Code::new(1, 2).unwrap(), Backend::best()).run(&[&[0; 64]], &mut [&mut [0; 64]]);
}

#[test]
#[should_panic(expected = "all rows of a set have one length")]
fn rows_of_two_lengths_panic() {
    Plan::encode(Code::new(1, 1).unwrap(), Backend::best()).run(&[&[0; 128]], &mut [&mut [0; 64]]);
}

#[test]
#[should_panic(expected = "row length 65 is no multiple of 64")]
fn rows_of_broken_lines_panic() {
    Plan::encode(Code::new(1, 1).unwrap(), Backend::best()).run(&[&[0; 65]], &mut [&mut [0; 65]]);
}

#[test]
fn backends_are_known_by_name() {
    let known: Vec<_> = Backend::known_names().collect();
    let available: Vec<_> = Backend::available().collect();
    assert_eq!(available.first(), Some(&Backend::best()));
    assert_eq!(available.last().map(|backend| backend.name()), Some("scalar"));
    // NEON is part of the architecture: an ARM run without it would test nothing.
    assert_eq!(available[0].name() == "neon", cfg!(target_arch = "aarch64"));
    for name in &known {
        match Backend::by_name(name) {
            Ok(backend) => assert!(backend.name() == *name && available.contains(&backend)),
            Err(BackendError::Unavailable { name: lacking, missing }) => {
                assert!(lacking == *name && !missing.is_empty());
                assert!(available.iter().all(|backend| backend.name() != *name));
            }
            Err(other) => panic!("{other}"),
        }
    }
    let error = Backend::by_name("abacus").unwrap_err();
    assert_eq!(error, BackendError::Unknown { name: "abacus".into(), known });
    assert!(error.to_string().starts_with("no backend is called \"abacus\"; this build has "));
}

#[test]
fn plans_are_shared_by_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Plan>();
}

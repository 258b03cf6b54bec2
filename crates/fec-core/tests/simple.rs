//! Encoding and decoding in one call: against another implementation, and every error.

use fec_core::block::CodeError;
use fec_core::{CodingError, decode, encode};
use proptest::prelude::*;
use reed_solomon_erasure::galois_8::ReedSolomon;
use std::sync::Arc;

fn originals(k: usize, len: usize, seed: u64) -> Vec<Vec<u8>> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..k).map(|_| (0..len).map(|_| next()).collect()).collect()
}

/// All n shards, made by the other implementation.
fn shards_of_the_peer(originals: &[Vec<u8>], m: usize) -> Vec<Vec<u8>> {
    let mut shards = originals.to_vec();
    shards.resize(originals.len() + m, vec![0; originals[0].len()]);
    ReedSolomon::new(originals.len(), m).unwrap().encode(&mut shards).unwrap();
    shards
}

#[test]
fn recovery_shards_are_those_of_reed_solomon_erasure() {
    for (k, m) in [(1, 1), (2, 1), (3, 4), (10, 4), (33, 67), (128, 128), (1, 255), (255, 1)] {
        for len in [1, 2, 63, 64, 65, 127, 128, 1000] {
            let originals = originals(k, len, (k * 1000 + len) as u64);
            let expected = shards_of_the_peer(&originals, m);
            assert_eq!(encode(k, m, &originals).unwrap(), expected[k..], "{k} + {m} shards of {len}");
        }
    }
}

#[test]
fn every_loss_of_a_small_set_is_restored() {
    for len in [1, 64, 77] {
        let shards = shards_of_the_peer(&originals(3, len, 5), 3);
        for lost in 0u32..1 << 6 {
            let is_lost = |i: usize| lost >> i & 1 == 1;
            let mut left: Vec<Option<Vec<u8>>> =
                shards.iter().enumerate().map(|(i, shard)| (!is_lost(i)).then(|| shard.clone())).collect();
            let before = left.clone();
            let result = decode(3, 3, &mut left);
            if lost.count_ones() <= 3 {
                assert_eq!(result, Ok(()));
                assert!(left.into_iter().map(Option::unwrap).eq(shards.iter().cloned()), "{lost:b}");
            } else {
                let present = 6 - lost.count_ones() as usize;
                assert_eq!(result, Err(CodingError::TooFew { present, needed: 3 }));
                assert_eq!(left, before, "an error changes nothing");
            }
        }
    }
}

/// Any type that is made of bytes and can be viewed as bytes.
#[test]
fn shards_of_other_types() {
    assert_eq!(encode(2, 1, &["ab", "cd"]), encode(2, 1, &[*b"ab", *b"cd"]));
    let recovery = encode(2, 1, &["ab", "cd"]).unwrap();
    let mut boxed: [Option<Box<[u8]>>; 3] = [None, Some((*b"cd").into()), Some(recovery[0][..].into())];
    decode(2, 1, &mut boxed).unwrap();
    assert_eq!(boxed[0].as_deref(), Some(&b"ab"[..]));
    let mut shared: [Option<Arc<[u8]>>; 3] = [Some((*b"ab").into()), Some((*b"cd").into()), None];
    decode(2, 1, &mut shared).unwrap();
    assert_eq!(shared[2].as_deref(), Some(&recovery[0][..]));
}

#[test]
fn a_code_without_recovery_shards() {
    assert_eq!(encode(2, 0, &["ab", "cd"]), Ok(vec![]));
    let mut shards = [Some(b"ab".to_vec()), Some(b"cd".to_vec())];
    assert_eq!(decode(2, 0, &mut shards), Ok(()));
    shards[0] = None;
    assert_eq!(decode(2, 0, &mut shards), Err(CodingError::TooFew { present: 1, needed: 2 }));
}

#[test]
fn every_error_of_encoding() {
    let two = ["ab", "cd"];
    assert_eq!(encode(0, 1, &two), Err(CodeError::NoOriginals.into()));
    assert_eq!(encode(2, 255, &two), Err(CodeError::TooManyShards { k: 2, m: 255 }.into()));
    assert_eq!(
        encode(usize::MAX, usize::MAX, &two).map_err(|e| matches!(e, CodingError::Code(_))),
        Err(true)
    );
    for k in [1, 3] {
        assert_eq!(encode(k, 1, &two), Err(CodingError::WrongCount { given: 2, expected: k }));
    }
    let unequal = CodingError::UnequalLengths { index: 1, len: 3, expected: 2 };
    assert_eq!(encode(2, 1, &["ab", "cde"]), Err(unequal));
    assert_eq!(encode(2, 1, &["", ""]), Err(CodingError::Empty));
}

#[test]
fn every_error_of_decoding() {
    let shards =
        |present: [Option<&str>; 3]| present.map(|shard| shard.map(|shard| shard.as_bytes().to_vec()));
    let result = |k, m, present| decode(k, m, &mut shards(present));
    let all = [Some("ab"), Some("cd"), Some("ef")];
    assert_eq!(result(0, 3, all), Err(CodeError::NoOriginals.into()));
    assert_eq!(result(200, 57, all), Err(CodeError::TooManyShards { k: 200, m: 57 }.into()));
    assert_eq!(result(2, 2, all), Err(CodingError::WrongCount { given: 3, expected: 4 }));
    assert_eq!(result(2, 0, all), Err(CodingError::WrongCount { given: 3, expected: 2 }));
    let unequal = CodingError::UnequalLengths { index: 2, len: 1, expected: 2 };
    assert_eq!(result(2, 1, [Some("ab"), None, Some("e")]), Err(unequal));
    assert_eq!(result(2, 1, [Some(""), None, Some("")]), Err(CodingError::Empty));
    for present in [[None, Some("cd"), None], [None, Some(""), None]] {
        assert_eq!(result(2, 1, present), Err(CodingError::TooFew { present: 1, needed: 2 }));
    }
    assert_eq!(result(2, 1, [None; 3]), Err(CodingError::TooFew { present: 0, needed: 2 }));
}

/// The limit of these functions, as their documentation says.
#[test]
fn a_damaged_shard_goes_unnoticed() {
    let mut recovery = encode(2, 1, &["ab", "cd"]).unwrap();
    recovery[0][0] ^= 1;
    let mut shards = [None, Some(b"cd".to_vec()), Some(recovery.remove(0))];
    assert_eq!(decode(2, 1, &mut shards), Ok(()));
    assert_ne!(shards[0].as_deref(), Some(&b"ab"[..]));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any code, any length, any choice of k shards: the result equals the other implementation's.
    #[test]
    fn any_k_shards_give_back_all(k in 1usize..=60, m in 0usize..=60, len in 1usize..300, seed: u64) {
        let originals = originals(k, len, seed);
        let shards = match m {
            // The other implementation has no such code.
            0 => originals.clone(),
            _ => shards_of_the_peer(&originals, m),
        };
        prop_assert_eq!(&encode(k, m, &originals).unwrap()[..], &shards[k..]);
        // The m shards with the least noise are lost.
        let noise = |i: &usize| {
            (*i as u64 + 1).wrapping_mul(seed | 1).rotate_left(29).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        };
        let mut order: Vec<usize> = (0..k + m).collect();
        order.sort_by_key(noise);
        let mut left: Vec<Option<Vec<u8>>> = shards.iter().cloned().map(Some).collect();
        order[..m].iter().for_each(|i| left[*i] = None);
        prop_assert_eq!(decode(k, m, &mut left), Ok(()));
        prop_assert!(left.into_iter().flatten().eq(shards));
    }
}

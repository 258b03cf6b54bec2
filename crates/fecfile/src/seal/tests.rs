//! The golden vectors, which the independent implementation in `scripts/oracle` wrote from the specification:
//! this crate makes the same seals and chunks, and opens them.

use super::open::{Opened, Opener};
use super::sealed::SealedPayload;
use super::sealer::{Sealer, resealed};
use crate::payload::Payload;
use fec_core::format::meta::Meta;
use fec_core::format::seal::SealedKind;
use fec_keys::age::{Keys, identities_of};
use fec_keys::cipher::Cipher;
use serde_json::Value;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn unhex(digits: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal digits");
    (0..digits.len()).step_by(2).map(byte).collect()
}

/// The payload of a vector.
fn generate(mut x: u64, len: usize) -> Vec<u8> {
    let mut byte = || {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (x >> 56) as u8
    };
    (0..len).map(|_| byte()).collect()
}

fn vectors() -> (Value, Keys) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/sealed.json");
    let vectors: Value = serde_json::from_slice(&std::fs::read(path).expect("the vectors")).expect("JSON");
    let identity = vectors["identity"].as_str().expect("an identity");
    let keys = Keys::Identities(identities_of(identity.as_bytes(), &mut || None).expect("an identity"));
    (vectors, keys)
}

#[test]
fn seals_and_chunks_are_those_of_the_vectors() {
    let (vectors, keys) = vectors();
    let vectors = vectors["valid"].as_array().expect("a list");
    assert!(vectors.len() >= 19, "only {}", vectors.len());
    for vector in vectors {
        let text = |field: &str| vector[field].as_str().unwrap_or_else(|| panic!("{vector}: {field}"));
        let number = |field: &str| vector[field].as_u64().unwrap_or_else(|| panic!("{vector}: {field}"));
        let name = vector["file_name"].as_str().map(str::as_bytes);
        let cipher = Cipher::from_number(number("cipher") as u8).expect("a cipher");
        let content_key = unhex(text("content_key")).try_into().expect("32 bytes");
        let sealer = Sealer::with(&content_key, cipher, SealedKind::Payload, &unhex(text("age")), name)
            .expect("a seal");
        let seal = sealer.meta().seal.expect("a seal");
        assert_eq!(hex(&seal), text("seal"), "{}", text("name"));
        let plain = generate(number("seed"), number("payload_len") as usize);
        let payload = SealedPayload::new(&plain, &sealer);
        let mut sealed = vec![0; payload.size() as usize];
        payload.read_at(0, &mut sealed).expect("it is in memory");
        assert_eq!(hex(&Sha256::digest(&sealed)), text("sealed_sha256"), "{}", text("name"));
        if vector["passphrase"] != true {
            let opener = Opener::new(&seal, &keys).expect("the key fits");
            assert_eq!(opener.name(), name, "{}", text("name"));
            let len = sealed.len() as u64;
            let opened = opener.open_chunks(0, len, Zeroizing::new(sealed)).expect("it is authentic");
            assert!(*opened == plain, "{}", text("name"));
        }
    }
}

/// Seals that replace another: the chunks stay those of the first.
#[test]
fn seals_that_replace_others_are_those_of_the_vectors() {
    let (vectors, keys) = vectors();
    let vectors = vectors["again"].as_array().expect("a list");
    assert!(vectors.len() >= 3, "only {}", vectors.len());
    for vector in vectors {
        let text = |field: &str| vector[field].as_str().unwrap_or_else(|| panic!("{vector}: {field}"));
        let number = |field: &str| vector[field].as_u64().unwrap_or_else(|| panic!("{vector}: {field}"));
        let name = text("file_name").as_bytes();
        let first = unhex(text("first"));
        let opened = Opened {
            cipher: Cipher::from_number(number("cipher") as u8).expect("a cipher"),
            content: SealedKind::Payload,
            content_key: Zeroizing::new(unhex(text("content_key")).try_into().expect("32 bytes")),
            private: Meta::with_name(name).expect("a name"),
            first: Sha256::digest(&first).into(),
        };
        let salt = unhex(text("salt")).try_into().expect("32 bytes");
        let seal = resealed(&opened, &unhex(text("age")), salt).expect("a seal");
        assert_eq!(hex(&seal), text("seal"), "{}", text("name"));
        if vector["passphrase"] == true {
            continue;
        }
        // Whoever opens it can replace it once more, with the same chunks.
        let again = Opened::new(&seal, &keys).expect("the key fits");
        assert_eq!((again.first, &again.content_key[..]), (opened.first, &opened.content_key[..]));
        let opener = Opener::new(&seal, &keys).expect("the key fits");
        assert_eq!(opener.name(), Some(name));
        let sealer = Sealer::new_of(&opened, &first);
        let plain = generate(number("seed"), number("payload_len") as usize);
        let payload = SealedPayload::new(&plain, &sealer);
        let mut sealed = vec![0; payload.size() as usize];
        payload.read_at(0, &mut sealed).expect("it is in memory");
        let len = sealed.len() as u64;
        assert!(*opener.open_chunks(0, len, Zeroizing::new(sealed)).expect("it is authentic") == plain);
    }
}

impl Sealer {
    /// The sealer of the first seal.
    fn new_of(opened: &Opened, first: &[u8]) -> Sealer {
        let age_file = fec_core::format::seal::Seal::parse(first).expect("a seal").age_file.to_vec();
        let name = opened.private.name.as_deref();
        Sealer::with(&opened.content_key, opened.cipher, opened.content, &age_file, name).expect("a seal")
    }
}

//! The data that opens a sealed payload: the entry of the meta, the padding of its private part, and the age file in
//! it.
#![no_main]

use fec_core::format::seal::{Seal, padded, plain_len, sealed_len, unpadded};
use fec_keys::age::{self, Identity, KeyKind, Keys, Recipient};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

/// The key for which this target makes age files.
static IDENTITY: LazyLock<(Keys, Recipient)> = LazyLock::new(|| {
    let identity = Identity::generate(KeyKind::X25519).expect("the system has random bytes");
    let recipient = identity.recipient();
    (Keys::Identities(vec![identity]), recipient)
});

fuzz_target!(|bytes: &[u8]| {
    match Seal::parse(bytes) {
        Ok(seal) => {
            let mut written = Seal::public(seal.cipher, seal.content, seal.age_file, seal.again.as_ref())
                .unwrap_or_default();
            if !written.is_empty() {
                assert_eq!(written, seal.public, "written as it was read");
                written.extend_from_slice(seal.private);
                assert_eq!(written, bytes);
            }
            open(seal.age_file);
        }
        Err(error) => fec_fuzz::look_at(&error),
    }
    if let Ok(meta) = unpadded(bytes)
        && meta.len() <= 510
    {
        assert_eq!(padded(meta), bytes, "written as it was read");
    }
    if let Some(sealed) = bytes.first_chunk().map(|bytes| u64::from_le_bytes(*bytes) >> 2)
        && let Some(plain) = plain_len(sealed)
    {
        assert_eq!(sealed_len(plain), sealed);
    }
    open(bytes);
    // Our own file, with bytes changed as the input says: it opens to the sealed text, or not at all.
    if let [at, len, changes @ ..] = bytes
        && changes.len() < 64
    {
        let plain = b"content key";
        let mut file = age::seal(std::slice::from_ref(&IDENTITY.1), plain).expect("a key and a few bytes");
        let at = usize::from(*at) % file.len();
        let end = (at + usize::from(*len % 64)).min(file.len());
        file.splice(at..end, changes.iter().copied());
        if let Ok(opened) = age::open(&file, &IDENTITY.0) {
            assert_eq!(&opened[..], plain);
        }
    }
});

fn open(file: &[u8]) {
    match age::recipients_in(file) {
        Ok(kinds) => assert!(!kinds.is_empty()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    assert!(age::open(file, &IDENTITY.0).is_err(), "nobody can have made a file for this key");
}

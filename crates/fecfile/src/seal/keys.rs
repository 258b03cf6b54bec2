//! The keys and nonces that follow from a content key.

use fec_keys::cipher::{AeadKey, Cipher, KEY, NONCE, derive};
use sha2::{Digest, Sha256};

/// The salt of all keys that are derived from a content key.
const SALT: &[u8] = b"fec sealed payload";

/// The key of the chunks.
pub(super) fn chunk_key(cipher: Cipher, content_key: &[u8; KEY]) -> AeadKey {
    AeadKey::new(cipher, &derive(SALT, content_key, &[b"fec seal 1, chunks", &[cipher.number()]]))
}

/// The key of the private part of the seal, which is all that it ever encrypts.
pub(super) fn private_key(cipher: Cipher, content_key: &[u8; KEY]) -> AeadKey {
    AeadKey::new(cipher, &derive(SALT, content_key, &[b"fec seal 1, private part", &[cipher.number()]]))
}

/// The nonce of chunk `number`, which also tells whether it is the last.
pub(super) fn nonce(number: u64, is_last: bool) -> [u8; NONCE] {
    let mut nonce = [0; NONCE];
    nonce[..8].copy_from_slice(&number.to_le_bytes());
    nonce[NONCE - 1] = is_last.into();
    nonce
}

/// The associated data of each chunk: the SHA-256 of the whole seal.
pub(super) fn associated(seal: &[u8]) -> [u8; 32] {
    Sha256::digest(seal).into()
}

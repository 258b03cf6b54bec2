//! The keys and nonces that follow from a content key.

use fec_core::format::seal::Again;
use fec_keys::cipher::{AeadKey, Cipher, KEY, NONCE, derive};
use sha2::{Digest, Sha256};

/// The salt of all keys that are derived from a content key.
const SALT: &[u8] = b"fec sealed payload";

/// The key of the chunks.
pub(super) fn chunk_key(cipher: Cipher, content_key: &[u8; KEY]) -> AeadKey {
    AeadKey::new(cipher, &derive(SALT, content_key, &[b"fec seal 1, chunks", &[cipher.number()]]))
}

/// The key of the private part of a seal, which is all that it ever encrypts. Each seal that replaces another has a
/// salt, so no two private parts of a payload have the same key.
pub(super) fn private_key(cipher: Cipher, content_key: &[u8; KEY], again: Option<&Again>) -> AeadKey {
    let number = &[cipher.number()];
    let key = match again {
        None => derive(SALT, content_key, &[b"fec seal 1, private part", number]),
        Some(again) => derive(SALT, content_key, &[b"fec seal 2, private part", number, &again.salt]),
    };
    AeadKey::new(cipher, &key)
}

/// The nonce of chunk `number`, which also tells whether it is the last.
pub(super) fn nonce(number: u64, is_last: bool) -> [u8; NONCE] {
    let mut nonce = [0; NONCE];
    nonce[..8].copy_from_slice(&number.to_le_bytes());
    nonce[NONCE - 1] = is_last.into();
    nonce
}

/// The associated data of each chunk: the SHA-256 of the whole first seal.
pub(super) fn associated(seal: &[u8], again: Option<&Again>) -> [u8; 32] {
    again.map_or_else(|| Sha256::digest(seal).into(), |again| again.first)
}

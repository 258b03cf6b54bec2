//! The parts of all kinds of recipients: randomness, HKDF and the sealing of a file key.

use super::error::AgeError;
use chacha20poly1305::aead::{AeadInOut, KeyInit, inout::InOutBuf};
use chacha20poly1305::{ChaCha20Poly1305, Key, Nonce, Tag};
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::{Zeroize, Zeroizing};

/// Bytes of a file key.
pub(super) const FILE_KEY_LEN: usize = 16;
/// Bytes of the tag of ChaCha20-Poly1305.
pub(super) const TAG_LEN: usize = 16;
/// Bytes of the body of every known kind of stanza.
pub(super) const BODY_LEN: usize = FILE_KEY_LEN + TAG_LEN;

/// The key that encrypts the payload, and that each stanza holds for one recipient.
pub(super) type FileKey = Zeroizing<[u8; FILE_KEY_LEN]>;
/// A secret of 32 bytes.
pub(super) type Secret = Zeroizing<[u8; 32]>;

/// New bytes from the system's source of randomness.
pub(super) fn random<const N: usize>() -> Result<Zeroizing<[u8; N]>, AgeError> {
    crate::random::random().map_err(AgeError::Random)
}

/// HKDF-SHA-256 (RFC 5869) of 32 bytes.
pub(super) fn hkdf(secret: &[u8], salt: &[u8], info: &[u8]) -> Secret {
    let (mut prk, hkdf) = Hkdf::<Sha256>::extract(Some(salt), secret);
    prk.zeroize();
    let mut key = Zeroizing::new([0; 32]);
    hkdf.expand(info, &mut key[..]).expect("32 bytes are allowed");
    key
}

/// ChaCha20-Poly1305 (RFC 8439) in place, without associated data. Returns the tag.
pub(super) fn encrypt(key: &Secret, nonce: &[u8; 12], data: &mut [u8]) -> [u8; TAG_LEN] {
    ChaCha20Poly1305::new(&Key::from(**key))
        .encrypt_inout_detached(&Nonce::from(*nonce), &[], InOutBuf::from(data))
        .expect("no more than a chunk")
        .into()
}

/// Undoes [`encrypt`]. Returns false, and leaves the data unchanged, if the tag is not that of the data.
#[must_use]
pub(super) fn decrypt(key: &Secret, nonce: &[u8; 12], data: &mut [u8], tag: &[u8; TAG_LEN]) -> bool {
    ChaCha20Poly1305::new(&Key::from(**key))
        .decrypt_inout_detached(&Nonce::from(*nonce), &[], InOutBuf::from(data), &Tag::from(*tag))
        .is_ok()
}

/// The body of a stanza: the file key under a key that is used once, and its nonce.
pub(super) fn wrap(key: &Secret, nonce: &[u8; 12], file_key: &FileKey) -> [u8; BODY_LEN] {
    let mut body = [0; BODY_LEN];
    let (data, tag) = body.split_at_mut(FILE_KEY_LEN);
    data.copy_from_slice(&file_key[..]);
    tag.copy_from_slice(&encrypt(key, nonce, data));
    body
}

/// Undoes [`wrap`]. `None` if the body is for another key.
pub(super) fn unwrap(key: &Secret, nonce: &[u8; 12], body: &[u8; BODY_LEN]) -> Option<FileKey> {
    let (data, tag) = body.split_at(FILE_KEY_LEN);
    let mut file_key = Zeroizing::new(<[u8; FILE_KEY_LEN]>::try_from(data).ok()?);
    let tag = tag.try_into().ok()?;
    decrypt(key, nonce, &mut file_key[..], tag).then_some(file_key)
}

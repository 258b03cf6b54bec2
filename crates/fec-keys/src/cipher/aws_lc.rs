//! The ciphers of AWS-LC.

use super::kind::{Cipher, KEY, NONCE, NotAuthentic, TAG};
use aws_lc_rs::aead::{AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};

pub(super) const NAME: &str = "aws-lc";

pub(super) struct Key(LessSafeKey);

impl Key {
    pub(super) fn new(cipher: Cipher, key: &[u8; KEY]) -> Key {
        let algorithm = match cipher {
            Cipher::Aes256Gcm => &AES_256_GCM,
            Cipher::ChaCha20Poly1305 => &CHACHA20_POLY1305,
        };
        Key(LessSafeKey::new(UnboundKey::new(algorithm, key).expect("keys of both ciphers have 32 bytes")))
    }

    pub(super) fn seal(&self, nonce: &[u8; NONCE], associated: &[u8], data: &mut [u8]) -> [u8; TAG] {
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let tag = self.0.seal_in_place_separate_tag(nonce, Aad::from(associated), data);
        let tag = tag.expect("the data is not too long");
        tag.as_ref().try_into().expect("tags of both ciphers have 16 bytes")
    }

    pub(super) fn open<'a>(
        &self,
        nonce: &[u8; NONCE],
        associated: &[u8],
        data: &'a mut [u8],
    ) -> Result<&'a mut [u8], NotAuthentic> {
        let nonce = Nonce::assume_unique_for_key(*nonce);
        self.0.open_in_place(nonce, Aad::from(associated), data).map_err(|_| NotAuthentic)
    }
}

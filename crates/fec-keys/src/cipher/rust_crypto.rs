//! The ciphers of RustCrypto: no C, no assembly.

use super::kind::{Cipher, KEY, NONCE, NotAuthentic, TAG};
use aes_gcm::Aes256Gcm;
use chacha20poly1305::aead::{AeadInOut, KeyInit};
use chacha20poly1305::{ChaCha20Poly1305, Tag};

pub(super) const NAME: &str = "RustCrypto";

pub(super) enum Key {
    Aes(Box<Aes256Gcm>),
    ChaCha(Box<ChaCha20Poly1305>),
}

impl Key {
    pub(super) fn new(cipher: Cipher, key: &[u8; KEY]) -> Key {
        match cipher {
            Cipher::Aes256Gcm => Key::Aes(Box::new(Aes256Gcm::new(key.into()))),
            Cipher::ChaCha20Poly1305 => Key::ChaCha(Box::new(ChaCha20Poly1305::new(key.into()))),
        }
    }

    pub(super) fn seal(&self, nonce: &[u8; NONCE], associated: &[u8], data: &mut [u8]) -> [u8; TAG] {
        let nonce = nonce.into();
        let tag = match self {
            Key::Aes(key) => key.encrypt_inout_detached(nonce, associated, data.into()),
            Key::ChaCha(key) => key.encrypt_inout_detached(nonce, associated, data.into()),
        };
        tag.expect("the data is not too long").into()
    }

    pub(super) fn open<'a>(
        &self,
        nonce: &[u8; NONCE],
        associated: &[u8],
        data: &'a mut [u8],
    ) -> Result<&'a mut [u8], NotAuthentic> {
        let nonce = nonce.into();
        let (data, tag) = data.split_last_chunk_mut::<TAG>().ok_or(NotAuthentic)?;
        let tag = Tag::from(*tag);
        let opened = match self {
            Key::Aes(key) => key.decrypt_inout_detached(nonce, associated, (&mut *data).into(), &tag),
            Key::ChaCha(key) => key.decrypt_inout_detached(nonce, associated, (&mut *data).into(), &tag),
        };
        opened.map(|()| data).map_err(|_| NotAuthentic)
    }
}

//! Authenticated encryption and the derivation of keys: one interface, and one engine behind it, chosen at build time.
//!
//! AWS-LC is the fastest engine; ring is half as large and builds for more machines. Without either, the ciphers are
//! those of RustCrypto, which need no C compiler. All give the same bytes.

#[cfg(feature = "aws-lc")]
mod aws_lc;
mod kind;
#[cfg(all(feature = "ring", not(feature = "aws-lc")))]
mod ring;
#[cfg(not(any(feature = "ring", feature = "aws-lc")))]
mod rust_crypto;

#[cfg(feature = "aws-lc")]
use aws_lc as engine;
pub use kind::{Cipher, KEY, NONCE, NotAuthentic, TAG};

use hkdf::Hkdf;
#[cfg(all(feature = "ring", not(feature = "aws-lc")))]
use ring as engine;
#[cfg(not(any(feature = "ring", feature = "aws-lc")))]
use rust_crypto as engine;
use sha2::Sha256;
use zeroize::Zeroizing;

/// The name of the engine.
pub const ENGINE: &str = engine::NAME;

/// A key of a cipher, ready for use.
pub struct AeadKey(engine::Key);

impl AeadKey {
    /// Prepares a key.
    pub fn new(cipher: Cipher, key: &[u8; KEY]) -> AeadKey {
        AeadKey(engine::Key::new(cipher, key))
    }

    /// Encrypts `data` in place, and returns the tag over it and `associated`. No two calls of a key may have one
    /// nonce, unless all other arguments are the same too.
    ///
    /// # Panics
    /// If `data` is longer than the cipher allows, 2^36 − 32 bytes.
    pub fn seal(&self, nonce: &[u8; NONCE], associated: &[u8], data: &mut [u8]) -> [u8; TAG] {
        self.0.seal(nonce, associated, data)
    }

    /// Decrypts `data`, which is ciphertext and then the tag, in place, and returns the plaintext.
    ///
    /// # Errors
    /// [`NotAuthentic`]; the content of `data` must not be used then.
    pub fn open<'a>(
        &self,
        nonce: &[u8; NONCE],
        associated: &[u8],
        data: &'a mut [u8],
    ) -> Result<&'a mut [u8], NotAuthentic> {
        if data.len() < TAG {
            return Err(NotAuthentic);
        }
        self.0.open(nonce, associated, data)
    }
}

/// HKDF-SHA256 (RFC 5869) of a secret: 32 bytes for `info`, whose parts are joined.
pub fn derive(salt: &[u8], secret: &[u8], info: &[&[u8]]) -> Zeroizing<[u8; KEY]> {
    let mut out = Zeroizing::new([0; KEY]);
    let expanded = Hkdf::<Sha256>::new(Some(salt), secret).expand_multi_info(info, &mut out[..]);
    expanded.expect("HKDF gives up to 8160 bytes");
    out
}

#[cfg(test)]
mod tests;

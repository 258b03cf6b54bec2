//! Authenticated encryption and the derivation of keys: one interface, and one engine behind it that is chosen when this is built.
//!
//! AWS-LC is the fastest, ring is half as large and builds for more machines; without either the ciphers are those of RustCrypto,
//! which need no C compiler. All give the same bytes.

#[cfg(feature = "aws-lc")]
#[path = "aws_lc.rs"]
mod engine;
#[cfg(all(feature = "ring", not(feature = "aws-lc")))]
#[path = "ring.rs"]
mod engine;
#[cfg(not(any(feature = "ring", feature = "aws-lc")))]
#[path = "rust_crypto.rs"]
mod engine;

use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

/// Bytes of a key.
pub const KEY: usize = 32;
/// Bytes of a nonce.
pub const NONCE: usize = 12;
/// Bytes of a tag.
pub const TAG: usize = 16;

/// The name of what computes the ciphers.
pub const ENGINE: &str = engine::NAME;

/// What seals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cipher {
    /// AES-256-GCM (NIST SP 800-38D): fast where the processor has instructions for it.
    Aes256Gcm,
    /// ChaCha20-Poly1305 (RFC 8439): faster where it has none, as on a Raspberry Pi 4.
    ChaCha20Poly1305,
}

impl Cipher {
    /// All of them.
    pub const ALL: [Cipher; 2] = [Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305];

    /// The faster one on this machine.
    pub fn best() -> Cipher {
        #[cfg(target_arch = "x86_64")]
        let has_aes = is_x86_feature_detected!("aes") && is_x86_feature_detected!("pclmulqdq");
        #[cfg(target_arch = "aarch64")]
        let has_aes = std::arch::is_aarch64_feature_detected!("aes");
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let has_aes = false;
        if has_aes { Cipher::Aes256Gcm } else { Cipher::ChaCha20Poly1305 }
    }

    /// Its name in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            Cipher::Aes256Gcm => "aes-256-gcm",
            Cipher::ChaCha20Poly1305 => "chacha20-poly1305",
        }
    }

    /// Its number in the formats.
    pub fn number(self) -> u8 {
        match self {
            Cipher::Aes256Gcm => 1,
            Cipher::ChaCha20Poly1305 => 2,
        }
    }

    /// That of a number in the formats.
    pub fn from_number(number: u8) -> Option<Cipher> {
        Cipher::ALL.into_iter().find(|cipher| cipher.number() == number)
    }
}

/// A key of a cipher, made ready.
pub struct AeadKey(engine::Key);

/// Bytes that were not sealed with this key, nonce and associated data, or were changed since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAuthentic;

impl AeadKey {
    /// Makes a key ready.
    pub fn new(cipher: Cipher, key: &[u8; KEY]) -> AeadKey {
        AeadKey(engine::Key::new(cipher, key))
    }

    /// Encrypts `data` where it stands, and gives the tag over it and `associated`. No two calls of a key may have one nonce,
    /// unless all else is the same too.
    ///
    /// # Panics
    /// If `data` is longer than the cipher can take, 2^36 − 32 bytes.
    pub fn seal(&self, nonce: &[u8; NONCE], associated: &[u8], data: &mut [u8]) -> [u8; TAG] {
        self.0.seal(nonce, associated, data)
    }

    /// Decrypts what stands in `data`, ciphertext and behind it the tag, where it stands, and gives the plaintext.
    ///
    /// # Errors
    /// [`NotAuthentic`]; what `data` holds then is not to be used.
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

//! The ciphers, and the sizes that all engines share.

/// Bytes of a key.
pub const KEY: usize = 32;
/// Bytes of a nonce.
pub const NONCE: usize = 12;
/// Bytes of a tag.
pub const TAG: usize = 16;

/// A cipher for sealing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cipher {
    /// AES-256-GCM (NIST SP 800-38D): fast where the processor has instructions for it.
    Aes256Gcm,
    /// ChaCha20-Poly1305 (RFC 8439): faster where the processor has none, as on a Raspberry Pi 4.
    ChaCha20Poly1305,
}

impl Cipher {
    /// All ciphers.
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

    /// The cipher with this number in the formats.
    pub fn from_number(number: u8) -> Option<Cipher> {
        Cipher::ALL.into_iter().find(|cipher| cipher.number() == number)
    }
}

/// The error for bytes that were not sealed with this key, nonce and associated data, or were changed since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAuthentic;

//! The lengths of ML-KEM-768's keys and ciphertexts, and the types of secrets.

use zeroize::Zeroizing;

/// Bytes of a public key of ML-KEM-768.
pub const PUBLIC_LEN: usize = 1184;
/// Bytes of a ciphertext of ML-KEM-768.
pub const CIPHERTEXT_LEN: usize = 1088;

/// The seed of a key of ML-KEM-768: d and z of FIPS 203, section 7.1.
pub type Seed = Zeroizing<[u8; 64]>;
/// A ciphertext of ML-KEM-768.
pub type Ciphertext = [u8; CIPHERTEXT_LEN];
/// A secret that two sides share.
pub type SharedSecret = Zeroizing<[u8; 32]>;

//! Key encapsulation with ML-KEM-768 (FIPS 203), and key agreement with X25519 (RFC 7748): one interface, and one
//! engine behind it, chosen at build time.
//!
//! AWS-LC has both in assembly, and takes a fraction of the time. Without it, they are those of RustCrypto and dalek.
//! Both give the same bytes, and accept the same keys.
//!
//! ```
//! use fec_keys::kem::{DecapsulationKey, decapsulate, encapsulate, generate};
//!
//! let (seeds, keys): (Vec<_>, Vec<DecapsulationKey>) = generate(3)?.into_iter().unzip();
//! let public: Vec<_> = keys.iter().map(DecapsulationKey::encapsulation_key).collect();
//! let (ciphertexts, secrets): (Vec<_>, Vec<_>) = encapsulate(&public)?.into_iter().unzip();
//! assert_eq!(decapsulate(keys.iter().zip(&ciphertexts)), secrets);
//! // A seed is the whole key.
//! assert_eq!(DecapsulationKey::from_seed(&seeds[0]).decapsulate(&ciphertexts[0]), secrets[0]);
//! # Ok::<(), std::io::Error>(())
//! ```

#[cfg(feature = "aws-lc")]
mod aws_lc;
mod kind;
#[cfg(any(test, not(feature = "aws-lc")))]
mod rust_crypto;
#[cfg(test)]
mod tests;

use crate::random::random;
#[cfg(feature = "aws-lc")]
use aws_lc as engine;
pub use kind::{CIPHERTEXT_LEN, Ciphertext, PUBLIC_LEN, Seed, SharedSecret};

#[cfg(not(feature = "aws-lc"))]
use rust_crypto as engine;
use std::io;

/// The name of the engine.
pub const ENGINE: &str = engine::NAME;

/// A public key of ML-KEM-768, to which secrets are sent.
#[derive(Clone)]
pub struct EncapsulationKey(engine::EncapsulationKey);

impl EncapsulationKey {
    /// The key of these bytes. `None` if a coefficient is not reduced (FIPS 203, section 7.2).
    pub fn from_bytes(bytes: &[u8; PUBLIC_LEN]) -> Option<EncapsulationKey> {
        engine::EncapsulationKey::from_bytes(bytes).map(EncapsulationKey)
    }

    /// Its bytes.
    pub fn to_bytes(&self) -> [u8; PUBLIC_LEN] {
        self.0.to_bytes()
    }

    /// A new secret, and the ciphertext that takes it to the holder of the key.
    ///
    /// # Errors
    /// No randomness can be had.
    pub fn encapsulate(&self) -> io::Result<(Ciphertext, SharedSecret)> {
        self.0.encapsulate()
    }
}

/// A secret key of ML-KEM-768.
pub struct DecapsulationKey(engine::DecapsulationKey);

impl DecapsulationKey {
    /// The key of a seed (FIPS 203, algorithm 16).
    pub fn from_seed(seed: &Seed) -> DecapsulationKey {
        DecapsulationKey(engine::DecapsulationKey::from_seed(seed))
    }

    /// Its public key.
    pub fn encapsulation_key(&self) -> EncapsulationKey {
        EncapsulationKey(self.0.encapsulation_key())
    }

    /// The secret in a ciphertext. A ciphertext for another key gives a secret that nobody knows.
    pub fn decapsulate(&self, ciphertext: &Ciphertext) -> SharedSecret {
        self.0.decapsulate(ciphertext)
    }
}

/// Makes `count` keys, each with its seed, one after the other.
///
/// # Errors
/// No randomness can be had.
pub fn generate(count: usize) -> io::Result<Vec<(Seed, DecapsulationKey)>> {
    let one = |_| random().map(|seed| (seed.clone(), DecapsulationKey::from_seed(&seed)));
    (0..count).map(one).collect()
}

/// A new secret for each of these keys, and the ciphertext that takes it there, one after the other.
///
/// # Errors
/// No randomness can be had.
pub fn encapsulate(keys: &[EncapsulationKey]) -> io::Result<Vec<(Ciphertext, SharedSecret)>> {
    keys.iter().map(EncapsulationKey::encapsulate).collect()
}

/// The secret in each of these ciphertexts, by the key beside it, one after the other.
pub fn decapsulate<'a>(
    pairs: impl IntoIterator<Item = (&'a DecapsulationKey, &'a Ciphertext)>,
) -> Vec<SharedSecret> {
    pairs.into_iter().map(|(key, ciphertext)| key.decapsulate(ciphertext)).collect()
}

/// A secret key of X25519.
pub(crate) struct X25519Key(engine::X25519Key);

impl X25519Key {
    pub(crate) fn new(secret: &SharedSecret) -> X25519Key {
        X25519Key(engine::X25519Key::new(secret))
    }

    /// The public key (section 5).
    pub(crate) fn public(&self) -> [u8; 32] {
        self.0.public()
    }

    /// The secret shared with the holder of a public key (section 6.1). `None` if it is zero, because the point has a
    /// low order.
    pub(crate) fn agree(&self, public: &[u8; 32]) -> Option<SharedSecret> {
        self.0.agree(public)
    }
}

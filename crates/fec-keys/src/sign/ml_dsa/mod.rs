//! ML-DSA-65 (FIPS 204) without a context: one interface, and one engine behind it, chosen at build time.
//!
//! A secret key is its seed. A signature takes a fraction of a millisecond.

#[cfg(feature = "aws-lc")]
mod aws_lc;
mod kind;
#[cfg(any(test, not(feature = "aws-lc")))]
mod rust_crypto;
#[cfg(test)]
mod tests;

#[cfg(feature = "aws-lc")]
use aws_lc as engine;
pub(super) use kind::{PUBLIC_LEN, PublicKey, SIGNATURE_LEN, Seed, Signature};
#[cfg(not(feature = "aws-lc"))]
use rust_crypto as engine;
use std::io;

/// The public key of a seed.
pub(super) fn public_key(seed: &Seed) -> Box<PublicKey> {
    engine::public_key(seed)
}

/// Signs a message (algorithm 2). AWS-LC takes randomness for it.
///
/// # Errors
/// No randomness can be had.
pub(super) fn sign(seed: &Seed, message: &[u8]) -> io::Result<Box<Signature>> {
    engine::sign(seed, message)
}

/// Tells whether the holder of a key has signed a message (algorithm 3).
pub(super) fn verifies(key: &PublicKey, message: &[u8], signature: &Signature) -> bool {
    engine::verifies(key, message, signature)
}

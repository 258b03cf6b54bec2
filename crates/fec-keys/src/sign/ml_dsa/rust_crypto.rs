//! ML-DSA-65 of RustCrypto.

use super::kind::{PublicKey, Seed, Signature};
use ml_dsa::{B32, EncodedVerifyingKey, KeyExport, MlDsa65, SigningKey, VerifyingKey};
use std::io;
use zeroize::Zeroize;

fn key(seed: &Seed) -> SigningKey<MlDsa65> {
    let mut seed = B32::from(**seed);
    let key = SigningKey::from_seed(&seed);
    seed.zeroize();
    key
}

pub(super) fn public_key(seed: &Seed) -> Box<PublicKey> {
    Box::new(key(seed).expanded_key().verifying_key().to_bytes().into())
}

/// Signs in the deterministic variant (section 3.4): the same signature each time.
pub(super) fn sign(seed: &Seed, message: &[u8]) -> io::Result<Box<Signature>> {
    let signature = key(seed).expanded_key().sign_deterministic(message, &[]);
    Ok(Box::new(signature.expect("a context of no bytes is not too long").encode().into()))
}

pub(super) fn verifies(key: &PublicKey, message: &[u8], signature: &Signature) -> bool {
    let key = VerifyingKey::<MlDsa65>::decode(&EncodedVerifyingKey::<MlDsa65>::from(*key));
    let signature = ml_dsa::Signature::try_from(&signature[..]);
    signature.is_ok_and(|signature| key.verify_with_context(message, &[], &signature))
}

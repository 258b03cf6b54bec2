//! ML-DSA-65 of AWS-LC.

use super::kind::{PublicKey, SIGNATURE_LEN, Seed, Signature};
use aws_lc_rs::signature::{KeyPair, ML_DSA_65, ML_DSA_65_SIGNING, PqdsaKeyPair, UnparsedPublicKey};
use std::io;

fn pair(seed: &Seed) -> PqdsaKeyPair {
    PqdsaKeyPair::from_seed(&ML_DSA_65_SIGNING, &seed[..]).expect("a seed has 32 bytes")
}

pub(super) fn public_key(seed: &Seed) -> Box<PublicKey> {
    Box::new(pair(seed).public_key().as_ref().try_into().expect("1952 bytes"))
}

pub(super) fn sign(seed: &Seed, message: &[u8]) -> io::Result<Box<Signature>> {
    let mut signature = Box::new([0; SIGNATURE_LEN]);
    let failed = |_| io::Error::other("AWS-LC has no randomness");
    pair(seed).sign(message, &mut signature[..]).map_err(failed)?;
    Ok(signature)
}

pub(super) fn verifies(key: &PublicKey, message: &[u8], signature: &Signature) -> bool {
    UnparsedPublicKey::new(&ML_DSA_65, key).verify(message, signature).is_ok()
}

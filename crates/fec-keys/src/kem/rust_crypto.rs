//! ML-KEM-768 of RustCrypto, and X25519 of dalek.

use super::kind::{Ciphertext, PUBLIC_LEN, Seed, SharedSecret};
use crate::random::random;
use curve25519_dalek::MontgomeryPoint;
use ml_kem::kem::{Decapsulate, KeyExport};
use ml_kem::{B32, DecapsulationKey768, EncapsulationKey768};
use std::io;
use zeroize::{Zeroize, Zeroizing};

#[cfg_attr(feature = "aws-lc", allow(dead_code))]
pub(super) const NAME: &str = "rust-crypto";

#[derive(Clone)]
pub(super) struct EncapsulationKey(EncapsulationKey768);

impl EncapsulationKey {
    pub(super) fn from_bytes(bytes: &[u8; PUBLIC_LEN]) -> Option<EncapsulationKey> {
        EncapsulationKey768::new(bytes.into()).ok().map(EncapsulationKey)
    }

    pub(super) fn to_bytes(&self) -> [u8; PUBLIC_LEN] {
        self.0.to_bytes().into()
    }

    pub(super) fn encapsulate(&self) -> io::Result<(Ciphertext, SharedSecret)> {
        let message: SharedSecret = random()?;
        let mut message = B32::from(*message);
        let (ciphertext, mut secret) = self.0.encapsulate_deterministic(&message);
        message.zeroize();
        let shared = Zeroizing::new(secret.into());
        secret.zeroize();
        Ok((ciphertext.into(), shared))
    }
}

pub(super) struct DecapsulationKey(DecapsulationKey768);

impl DecapsulationKey {
    pub(super) fn from_seed(seed: &Seed) -> DecapsulationKey {
        let mut seed = ml_kem::Seed::from(**seed);
        let key = DecapsulationKey768::from_seed(seed);
        seed.zeroize();
        DecapsulationKey(key)
    }

    pub(super) fn encapsulation_key(&self) -> EncapsulationKey {
        EncapsulationKey(self.0.encapsulation_key().clone())
    }

    pub(super) fn decapsulate(&self, ciphertext: &Ciphertext) -> SharedSecret {
        let mut secret = self.0.decapsulate(&ml_kem::array::Array::from(*ciphertext));
        let shared = Zeroizing::new(secret.into());
        secret.zeroize();
        shared
    }
}

pub(super) struct X25519Key(SharedSecret);

impl X25519Key {
    pub(super) fn new(secret: &SharedSecret) -> X25519Key {
        X25519Key(secret.clone())
    }

    pub(super) fn public(&self) -> [u8; 32] {
        MontgomeryPoint::mul_base_clamped(*self.0).to_bytes()
    }

    pub(super) fn agree(&self, public: &[u8; 32]) -> Option<SharedSecret> {
        let mut point = MontgomeryPoint(*public).mul_clamped(*self.0);
        let shared = Zeroizing::new(point.to_bytes());
        point.zeroize();
        (shared.iter().fold(0, |all, byte| all | byte) != 0).then_some(shared)
    }
}

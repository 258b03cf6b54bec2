//! ML-KEM-768 and X25519 of AWS-LC.

use super::kind::{Ciphertext, PUBLIC_LEN, Seed, SharedSecret};
use aws_lc_rs::agreement::{PrivateKey, UnparsedPublicKey, X25519, agree};
use aws_lc_rs::kem::{self, AlgorithmId, ML_KEM_768};
use ml_kem::DecapsulationKey768;
#[allow(deprecated, reason = "AWS-LC takes keys in this form alone")]
use ml_kem::ExpandedKeyEncoding;
use ml_kem::kem::KeyExport;
use std::io;
use zeroize::{Zeroize, Zeroizing};

pub(super) const NAME: &str = "aws-lc";

/// The modulus of ML-KEM's coefficients.
const Q: u16 = 3329;

#[derive(Clone)]
pub(super) struct EncapsulationKey(Box<[u8; PUBLIC_LEN]>);

impl EncapsulationKey {
    pub(super) fn from_bytes(bytes: &[u8; PUBLIC_LEN]) -> Option<EncapsulationKey> {
        // Two coefficients of 12 bits in three bytes, and a seed behind them all.
        let (pairs, _) = bytes[..PUBLIC_LEN - 32].as_chunks::<3>();
        let is_reduced = |[low, middle, high]: &[u8; 3]| {
            let first = u16::from(*low) | u16::from(middle & 15) << 8;
            let second = u16::from(middle >> 4) | u16::from(*high) << 4;
            first < Q && second < Q
        };
        pairs.iter().all(is_reduced).then(|| EncapsulationKey(Box::new(*bytes)))
    }

    pub(super) fn to_bytes(&self) -> [u8; PUBLIC_LEN] {
        *self.0
    }

    pub(super) fn encapsulate(&self) -> io::Result<(Ciphertext, SharedSecret)> {
        let failed = |_| io::Error::other("AWS-LC has no randomness");
        let key = kem::EncapsulationKey::new(&ML_KEM_768, &self.0[..]).expect("1184 bytes");
        let (ciphertext, secret) = key.encapsulate().map_err(failed)?;
        Ok((ciphertext.as_ref().try_into().expect("1088 bytes"), shared(&secret)))
    }
}

fn shared(secret: &kem::SharedSecret) -> SharedSecret {
    Zeroizing::new(secret.as_ref().try_into().expect("32 bytes"))
}

pub(super) struct DecapsulationKey {
    key: kem::DecapsulationKey<AlgorithmId>,
    public: EncapsulationKey,
}

impl DecapsulationKey {
    /// AWS-LC's documented interface takes no seed: RustCrypto expands it, once for each key.
    pub(super) fn from_seed(seed: &Seed) -> DecapsulationKey {
        let mut seed = ml_kem::Seed::from(**seed);
        let expanded = DecapsulationKey768::from_seed(seed);
        seed.zeroize();
        #[allow(deprecated, reason = "as above")]
        let mut bytes = expanded.to_expanded_bytes();
        let key = kem::DecapsulationKey::new(&ML_KEM_768, &bytes).expect("2400 bytes");
        bytes.zeroize();
        let public = EncapsulationKey(Box::new(expanded.encapsulation_key().to_bytes().into()));
        DecapsulationKey { key, public }
    }

    pub(super) fn encapsulation_key(&self) -> EncapsulationKey {
        self.public.clone()
    }

    pub(super) fn decapsulate(&self, ciphertext: &Ciphertext) -> SharedSecret {
        shared(&self.key.decapsulate(ciphertext[..].into()).expect("a key of its seed, and 1088 bytes"))
    }
}

pub(super) struct X25519Key(PrivateKey);

impl X25519Key {
    pub(super) fn new(secret: &SharedSecret) -> X25519Key {
        X25519Key(PrivateKey::from_private_key(&X25519, &secret[..]).expect("32 bytes"))
    }

    pub(super) fn public(&self) -> [u8; 32] {
        let public = self.0.compute_public_key().expect("a key has a public key");
        public.as_ref().try_into().expect("32 bytes")
    }

    pub(super) fn agree(&self, public: &[u8; 32]) -> Option<SharedSecret> {
        let copy = |secret: &[u8]| Ok(Zeroizing::new(secret.try_into().expect("32 bytes")));
        agree(&self.0, UnparsedPublicKey::new(&X25519, public), (), copy).ok()
    }
}

//! Post-quantum keys: `age1pq1…` and `AGE-SECRET-KEY-PQ-1…` (C2SP age.md, "The MLKEM768-X25519 hybrid recipient type").
//!
//! HPKE (RFC 9180) in its base mode, with a KEM of ML-KEM-768 and X25519 (X-Wing, draft-ietf-hpke-pq): an attacker who
//! breaks one of the two has nothing yet. Each key encrypts a single message, so HPKE's key schedule only gives a key
//! and its first nonce.

use super::bech32;
use super::error::AgeError;
use super::header::{HYBRID_SHARE_LEN, Sealed};
use super::primitives::{BODY_LEN, FileKey, Secret, random, unwrap, wrap};
use super::x25519::is_of_high_order;
use crate::kem::{CIPHERTEXT_LEN, Ciphertext, DecapsulationKey, EncapsulationKey, PUBLIC_LEN, X25519Key};
use hkdf::Hkdf;
use sha2::Sha256;
use sha3::{Digest, Sha3_256};
use shake::{ExtendableOutput, Shake256, Update, XofReader};
use zeroize::{Zeroize, Zeroizing};

const PREFIX: &str = "age1pq";
const SECRET_PREFIX: &str = "age-secret-key-pq-";
const INFO: &[u8] = b"age-encryption.org/mlkem768x25519";
/// Bytes of both public keys.
const KEY_LEN: usize = PUBLIC_LEN + 32;
/// The end of X-Wing's combination of two secrets.
const COMBINER_LABEL: &[u8; 6] = br"\.//^\";
/// HPKE with KEM 0x647a (MLKEM768-X25519), KDF 1 (HKDF-SHA256) and AEAD 3 (ChaCha20Poly1305).
const SUITE: &[u8; 10] = b"HPKE\x64\x7a\x00\x01\x00\x03";

/// A recipient of a file.
#[derive(Clone)]
pub struct HybridRecipient {
    kem: EncapsulationKey,
    point: [u8; 32],
}

impl HybridRecipient {
    /// `None` for malformed text, for a key of ML-KEM that is not reduced, and for a point of low order.
    pub(super) fn from_text(text: &str) -> Option<HybridRecipient> {
        let key = bech32::decode(PREFIX, text)?;
        let key = <&[u8; KEY_LEN]>::try_from(key.as_slice()).ok()?;
        let (kem, point) = key.split_last_chunk::<32>()?;
        let kem = EncapsulationKey::from_bytes(kem.try_into().ok()?)?;
        is_of_high_order(point).then_some(HybridRecipient { kem, point: *point })
    }

    pub(super) fn to_text(&self) -> String {
        bech32::encode(PREFIX, &self.bytes()).to_string()
    }

    /// Both public keys.
    pub(super) fn bytes(&self) -> Vec<u8> {
        [&self.kem.to_bytes()[..], &self.point].concat()
    }

    pub(super) fn seal(&self, file_key: &FileKey) -> Result<(Sealed, [u8; BODY_LEN]), AgeError> {
        let ephemeral = X25519Key::new(&random()?);
        let (ciphertext, kem_secret) = self.kem.encapsulate().map_err(AgeError::Random)?;
        let their_share = ephemeral.public();
        let secret = ephemeral.agree(&self.point).ok_or(AgeError::Recipient("it is a point of low order"))?;
        let shared = combined(&kem_secret, &secret, &their_share, &self.point);
        let mut share = Box::new([0; HYBRID_SHARE_LEN]);
        share[..CIPHERTEXT_LEN].copy_from_slice(&ciphertext);
        share[CIPHERTEXT_LEN..].copy_from_slice(&their_share);
        let (key, nonce) = schedule(&shared);
        Ok((Sealed::Hybrid { share }, wrap(&key, &nonce, file_key)))
    }
}

/// A key that opens files.
pub(super) struct HybridIdentity {
    seed: Secret,
    kem: DecapsulationKey,
    key: X25519Key,
    point: [u8; 32],
}

impl HybridIdentity {
    pub(super) fn generate() -> Result<HybridIdentity, AgeError> {
        random().map(HybridIdentity::new)
    }

    /// The keys of a seed (draft-ietf-hpke-pq, "expandDecapsulationKey").
    fn new(seed: Secret) -> HybridIdentity {
        let mut expanded = Zeroizing::new([0; 96]);
        let mut shake = Shake256::default();
        shake.update(&seed[..]);
        shake.finalize_xof().read(&mut expanded[..]);
        let (kem_seed, scalar) = expanded.split_first_chunk().expect("96 bytes");
        let kem = DecapsulationKey::from_seed(&Zeroizing::new(*kem_seed));
        let key = X25519Key::new(&Zeroizing::new(scalar.try_into().expect("32 bytes")));
        HybridIdentity { point: key.public(), seed, kem, key }
    }

    pub(super) fn from_text(text: &str) -> Option<HybridIdentity> {
        let seed = bech32::decode(SECRET_PREFIX, text)?;
        Some(HybridIdentity::new(Zeroizing::new(seed.as_slice().try_into().ok()?)))
    }

    pub(super) fn to_text(&self) -> Zeroizing<String> {
        let mut text = bech32::encode(SECRET_PREFIX, &self.seed[..]);
        text.make_ascii_uppercase();
        text
    }

    pub(super) fn recipient(&self) -> HybridRecipient {
        HybridRecipient { kem: self.kem.encapsulation_key(), point: self.point }
    }

    /// `None` if the stanza is for somebody else.
    ///
    /// # Errors
    /// [`AgeError::Header`] for a share of low order, whose secret everybody knows.
    pub(super) fn open(
        &self,
        share: &[u8; HYBRID_SHARE_LEN],
        body: &[u8; BODY_LEN],
    ) -> Result<Option<FileKey>, AgeError> {
        let (ciphertext, their_share) = share.split_last_chunk::<32>().expect("it is longer");
        let secret =
            self.key.agree(their_share).ok_or(AgeError::Header("a share is a point of low order"))?;
        let ciphertext: &Ciphertext = ciphertext.try_into().expect("1088 bytes");
        let kem_secret = self.kem.decapsulate(ciphertext);
        let shared = combined(&kem_secret, &secret, their_share, &self.point);
        let (key, nonce) = schedule(&shared);
        Ok(unwrap(&key, &nonce, body))
    }
}

/// The combination of the secrets of ML-KEM and X25519.
fn combined(kem: &Secret, secret: &Secret, share: &[u8; 32], point: &[u8; 32]) -> Secret {
    let mut hash = Sha3_256::new();
    for part in [&kem[..], &secret[..], share, point, COMBINER_LABEL] {
        Digest::update(&mut hash, part);
    }
    Zeroizing::new(hash.finalize().into())
}

/// The key and the first nonce, from a shared secret (RFC 9180, section 5.1, mode_base).
fn schedule(shared: &Secret) -> (Secret, [u8; 12]) {
    let extract = |salt: &[u8], label: &[u8], secret: &[u8]| {
        let labelled = Zeroizing::new([b"HPKE-v1", &SUITE[..], label, secret].concat());
        Hkdf::<Sha256>::extract(Some(salt), &labelled)
    };
    let context =
        [&[0], &extract(&[], b"psk_id_hash", &[]).0[..], &extract(&[], b"info_hash", INFO).0[..]].concat();
    let (mut prk, secret) = extract(&shared[..], b"secret", &[]);
    prk.zeroize();
    let expand = |label: &[u8], out: &mut [u8]| {
        let len = [0, out.len() as u8];
        let info: [&[u8]; 5] = [&len, b"HPKE-v1", SUITE, label, &context];
        secret.expand_multi_info(&info, out).expect("a few bytes are allowed");
    };
    let (mut key, mut nonce) = (Zeroizing::new([0; 32]), [0; 12]);
    expand(b"key", &mut key[..]);
    expand(b"base_nonce", &mut nonce);
    (key, nonce)
}

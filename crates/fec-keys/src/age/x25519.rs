//! Keys of X25519: `age1…` and `AGE-SECRET-KEY-1…` (C2SP age.md, "The X25519 recipient type").

use super::bech32;
use super::error::AgeError;
use super::header::Sealed;
use super::primitives::{BODY_LEN, FileKey, Secret, hkdf, random, unwrap, wrap};
use crate::kem::X25519Key;
use zeroize::Zeroizing;

const PREFIX: &str = "age";
const SECRET_PREFIX: &str = "age-secret-key-";
const LABEL: &[u8] = b"age-encryption.org/v1/X25519";
/// Each stanza's key is used once.
const NONCE: [u8; 12] = [0; 12];

/// A recipient of a file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct X25519Recipient([u8; 32]);

impl X25519Recipient {
    pub(super) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// `None` for malformed text, and for a point of low order, to which no secret can be sent.
    pub(super) fn from_text(text: &str) -> Option<X25519Recipient> {
        let key = <[u8; 32]>::try_from(bech32::decode(PREFIX, text)?.as_slice()).ok()?;
        is_of_high_order(&key).then_some(X25519Recipient(key))
    }

    pub(super) fn to_text(&self) -> String {
        bech32::encode(PREFIX, &self.0).to_string()
    }

    pub(super) fn seal(&self, file_key: &FileKey) -> Result<(Sealed, [u8; BODY_LEN]), AgeError> {
        let ephemeral = X25519Key::new(&random()?);
        let share = ephemeral.public();
        let shared = ephemeral.agree(&self.0).ok_or(AgeError::Recipient("it is a point of low order"))?;
        Ok((Sealed::X25519 { share }, wrap(&wrapping_key(&shared, &share, &self.0), &NONCE, file_key)))
    }
}

/// Tells whether a secret can be sent to this point.
pub(super) fn is_of_high_order(point: &[u8; 32]) -> bool {
    X25519Key::new(&Zeroizing::new([1; 32])).agree(point).is_some()
}

/// A key that opens files.
pub(super) struct X25519Identity {
    secret: Secret,
    key: X25519Key,
    public: [u8; 32],
}

impl X25519Identity {
    pub(super) fn generate() -> Result<X25519Identity, AgeError> {
        random().map(X25519Identity::new)
    }

    fn new(secret: Secret) -> X25519Identity {
        let key = X25519Key::new(&secret);
        X25519Identity { public: key.public(), key, secret }
    }

    pub(super) fn from_text(text: &str) -> Option<X25519Identity> {
        let secret = bech32::decode(SECRET_PREFIX, text)?;
        Some(X25519Identity::new(Zeroizing::new(secret.as_slice().try_into().ok()?)))
    }

    pub(super) fn to_text(&self) -> Zeroizing<String> {
        let mut text = bech32::encode(SECRET_PREFIX, &self.secret[..]);
        text.make_ascii_uppercase();
        text
    }

    pub(super) fn recipient(&self) -> X25519Recipient {
        X25519Recipient(self.public)
    }

    /// `None` if the stanza is for somebody else.
    ///
    /// # Errors
    /// [`AgeError::Header`] for a share of low order, whose secret everybody knows.
    pub(super) fn open(&self, share: &[u8; 32], body: &[u8; BODY_LEN]) -> Result<Option<FileKey>, AgeError> {
        let shared = self.key.agree(share).ok_or(AgeError::Header("a share is a point of low order"))?;
        Ok(unwrap(&wrapping_key(&shared, share, &self.public), &NONCE, body))
    }
}

fn wrapping_key(shared: &Secret, share: &[u8; 32], public: &[u8; 32]) -> Secret {
    hkdf(&shared[..], &[*share, *public].concat(), LABEL)
}

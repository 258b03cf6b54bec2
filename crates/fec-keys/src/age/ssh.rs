//! Ed25519 keys of SSH, for which age has a kind of stanza too (`ssh-ed25519`, as in Go's age and in rage).
//!
//! The map between the two forms of the curve turns the signature key into a key of X25519. A hash of the key in SSH's
//! form tweaks the shared secret.

use super::error::AgeError;
use super::header::{SSH_TAG_LEN, Sealed};
use super::primitives::{BODY_LEN, FileKey, Secret, hkdf, random, unwrap, wrap};
use super::x25519::is_of_high_order;
use crate::kem::X25519Key;
use base64ct::{Base64, Encoding};
use curve25519_dalek::edwards::{CompressedEdwardsY, EdwardsPoint};
use sha2::{Digest, Sha256, Sha512};
use zeroize::{Zeroize, Zeroizing};

/// The name of the kind, in all places.
pub(super) const KIND: &str = "ssh-ed25519";
const LABEL: &[u8] = b"age-encryption.org/v1/ssh-ed25519";
/// Each stanza's key is used once.
const NONCE: [u8; 12] = [0; 12];
/// Bytes of a public key in SSH's form: two strings behind their lengths.
const BLOB_LEN: usize = 4 + KIND.len() + 4 + 32;

/// A recipient of a file.
#[derive(Clone)]
pub struct SshRecipient {
    /// The key in SSH's form.
    ed25519: [u8; 32],
    /// The same point for X25519.
    point: [u8; 32],
}

impl SshRecipient {
    /// `None` for bytes that are no point, and for a point to which no secret can be sent.
    pub(super) fn new(ed25519: [u8; 32]) -> Option<SshRecipient> {
        let compressed = CompressedEdwardsY(ed25519);
        let edwards = compressed.decompress()?;
        let point = edwards.to_montgomery().to_bytes();
        (edwards.compress() == compressed && is_of_high_order(&point))
            .then_some(SshRecipient { ed25519, point })
    }

    /// Reads a line as in `id_ed25519.pub`: the kind, the key, and perhaps a comment.
    pub(super) fn from_text(text: &str) -> Option<SshRecipient> {
        let mut words = text.split([' ', '\t']).filter(|word| !word.is_empty());
        let (KIND, key) = (words.next()?, words.next()?) else { return None };
        SshRecipient::from_blob(&Base64::decode_vec(key).ok()?)
    }

    /// Reads a key in SSH's form.
    pub(super) fn from_blob(blob: &[u8]) -> Option<SshRecipient> {
        let key = blob.strip_prefix(&[0, 0, 0, KIND.len() as u8])?.strip_prefix(KIND.as_bytes())?;
        SshRecipient::new(key.strip_prefix(&[0, 0, 0, 32])?.try_into().ok()?)
    }

    /// The line without a comment.
    pub(super) fn to_text(&self) -> String {
        format!("{KIND} {}", Base64::encode_string(&self.blob()))
    }

    /// The key in SSH's form.
    pub(super) fn blob(&self) -> [u8; BLOB_LEN] {
        let blob = [&[0, 0, 0, KIND.len() as u8], KIND.as_bytes(), &[0, 0, 0, 32], &self.ed25519].concat();
        blob.try_into().expect("its length is fixed")
    }

    fn tag(&self) -> [u8; SSH_TAG_LEN] {
        *Sha256::digest(self.blob()).first_chunk().expect("it has 32 bytes")
    }

    /// The wrapping key that both sides derive from their shared secret.
    fn wrapping_key(&self, shared: &Secret, share: &[u8; 32]) -> Option<Secret> {
        let tweak = hkdf(&[], &self.blob(), LABEL);
        let shared = X25519Key::new(&tweak).agree(shared)?;
        Some(hkdf(&shared[..], &[*share, self.point].concat(), LABEL))
    }

    pub(super) fn seal(&self, file_key: &FileKey) -> Result<(Sealed, [u8; BODY_LEN]), AgeError> {
        let ephemeral = X25519Key::new(&random()?);
        let share = ephemeral.public();
        let key = ephemeral.agree(&self.point).and_then(|shared| self.wrapping_key(&shared, &share));
        let key = key.ok_or(AgeError::Recipient("it is a point of low order"))?;
        Ok((Sealed::SshEd25519 { tag: self.tag(), share }, wrap(&key, &NONCE, file_key)))
    }
}

/// A key that opens files.
pub(super) struct SshIdentity {
    key: X25519Key,
    recipient: SshRecipient,
}

impl SshIdentity {
    /// The identity of a seed, from which RFC 8032 makes a key.
    pub(super) fn new(seed: &Secret) -> Option<SshIdentity> {
        let mut hash = Sha512::digest(&seed[..]);
        let scalar = Zeroizing::new(*hash.first_chunk().expect("it has 64 bytes"));
        hash.zeroize();
        let recipient = SshRecipient::new(EdwardsPoint::mul_base_clamped(*scalar).compress().to_bytes())?;
        Some(SshIdentity { key: X25519Key::new(&scalar), recipient })
    }

    pub(super) fn recipient(&self) -> &SshRecipient {
        &self.recipient
    }

    /// `None` if the stanza is for somebody else.
    ///
    /// # Errors
    /// [`AgeError::Header`] for a share of low order, whose secret everybody knows.
    pub(super) fn open(
        &self,
        tag: &[u8; SSH_TAG_LEN],
        share: &[u8; 32],
        body: &[u8; BODY_LEN],
    ) -> Result<Option<FileKey>, AgeError> {
        if *tag != self.recipient.tag() {
            return Ok(None);
        }
        let key = self.key.agree(share).and_then(|shared| self.recipient.wrapping_key(&shared, share));
        let key = key.ok_or(AgeError::Header("a share is a point of low order"))?;
        Ok(unwrap(&key, &NONCE, body))
    }
}

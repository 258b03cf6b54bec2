//! Public keys, whose signatures count.

use super::error::SignError;
use super::id::KeyId;
use super::ml_dsa;
use super::signature::{Signature, hashed, post_quantum_message};
use super::text;
use ed25519_dalek::VerifyingKey;
use fec_base::error::{Action, Error, Result};
use fec_core::digest::Digest;
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

/// The first bytes of public keys and of secret keys.
pub(super) const ALGORITHM: [u8; 2] = *b"Ed";
/// The same of hybrid keys.
pub(super) const HYBRID: [u8; 2] = *b"EM";
/// Bytes of a public key of Ed25519: algorithm, number and key.
const CLASSIC_LEN: usize = 42;
/// Most bytes of a file with a public key.
const LONGEST_FILE: usize = 4096;

/// A public key of minisign, or a hybrid one, whose signatures count.
#[derive(Clone, PartialEq, Eq)]
pub struct Signer {
    pub(super) id: KeyId,
    pub(super) key: [u8; 32],
    /// The key of ML-DSA-65 that has to sign too.
    pub(super) post_quantum: Option<Arc<ml_dsa::PublicKey>>,
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_hybrid() { ", hybrid" } else { "" };
        write!(f, "Signer({}{kind})", self.id)
    }
}

impl fmt::Display for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::encoded(&self.bytes()))
    }
}

impl FromStr for Signer {
    type Err = SignError;

    /// Parses the 56 characters of a public key, `RW…`, or the 2660 of a hybrid one, `RU…`.
    fn from_str(line: &str) -> std::result::Result<Signer, SignError> {
        const WRONG: SignError =
            SignError::NotAPublicKey("a public key has 56 characters, RW… (base64), or 2660, RU…");
        let classic = text::decoded::<CLASSIC_LEN>(line).map(|bytes| bytes.to_vec());
        let hybrid =
            || text::decoded::<{ CLASSIC_LEN + ml_dsa::PUBLIC_LEN }>(line).map(|bytes| bytes.to_vec());
        let bytes = classic.or_else(hybrid).ok_or(WRONG)?;
        let (head, post_quantum) = bytes.split_at(CLASSIC_LEN);
        let (algorithm, rest) = head.split_at(2);
        let (id, key) = rest.split_at(8);
        let id = KeyId(id.try_into().expect("eight bytes"));
        let key = key.try_into().expect("32 bytes");
        match (<[u8; 2]>::try_from(algorithm).expect("two bytes"), post_quantum.try_into().ok()) {
            (ALGORITHM, None) => Ok(Signer { id, key, post_quantum: None }),
            (HYBRID, Some(post_quantum)) => {
                Ok(Signer { id, key, post_quantum: Some(Arc::new(post_quantum)) })
            }
            _ => Err(SignError::NotAPublicKey("its algorithm is not Ed25519, nor that with ML-DSA-65")),
        }
    }
}

impl Signer {
    /// Reads a file with a public key: a comment and the key.
    ///
    /// # Errors
    /// Those of the file; [`SignError::NotAPublicKey`].
    pub fn read(path: &Path) -> Result<Signer> {
        let fail = |cause| Error::at(Action::ReadPublicKey, path, cause);
        let file = text::read(path, LONGEST_FILE).map_err(|e| Error::io(Action::ReadPublicKey, path, e))?;
        let lines = file.as_deref().and_then(|file| text::lines::<2>(file));
        let Some([comment, key]) = lines.filter(|[comment, _]| text::is_untrusted(comment)) else {
            return Err(fail(SignError::NotAPublicKey(
                "its file should have a line of comment and a line of base64",
            )));
        };
        debug_assert!(!comment.is_empty());
        key.parse().map_err(fail)
    }

    /// The text of the key's file.
    pub fn to_text(&self) -> String {
        let kind = if self.is_hybrid() { "fec (Ed25519 and ML-DSA-65)" } else { "minisign" };
        text::commented(&format!("{kind} public key {}", self.id), &self.bytes()).to_string()
    }

    /// Algorithm, key number, and the keys.
    fn bytes(&self) -> Vec<u8> {
        let (algorithm, post_quantum) = match &self.post_quantum {
            None => (ALGORITHM, &[][..]),
            Some(key) => (HYBRID, &key[..]),
        };
        [&algorithm[..], &self.id.0, &self.key, post_quantum].concat()
    }

    /// Tells whether a key of ML-DSA-65 has to sign too.
    pub fn is_hybrid(&self) -> bool {
        self.post_quantum.is_some()
    }

    /// The part that minisign knows: its signatures count without those of ML-DSA-65.
    pub fn classic(&self) -> Signer {
        Signer { post_quantum: None, ..self.clone() }
    }

    /// The name of the key in signatures.
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// Tells whether the key's owner made a signature over any message, with its trusted comment.
    pub(super) fn made(&self, signature: &Signature) -> bool {
        signature.id() == self.id && self.verifies(&signature.vouched_for(), &signature.global)
    }

    /// Tells whether a signature, with its trusted comment, is of this key and over `root`.
    pub fn has_signed(&self, root: &Digest, signature: &Signature) -> bool {
        self.made(signature) && self.signs(root, signature)
    }

    /// Tells whether a signature, known to come from the key's owner, is over `root`.
    pub(super) fn signs(&self, root: &Digest, signature: &Signature) -> bool {
        self.signs_classically(root, signature)
            && self.post_quantum.as_ref().is_none_or(|key| {
                let message = post_quantum_message(root, signature.trusted_comment());
                signature
                    .post_quantum()
                    .is_some_and(|signature| ml_dsa::verifies(key, message.as_bytes(), &signature))
            })
    }

    /// Like [`Signer::signs`], but by Ed25519 alone.
    pub(super) fn signs_classically(&self, root: &Digest, signature: &Signature) -> bool {
        self.verifies(&hashed(root), &signature.signed)
    }

    fn verifies(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        let key = VerifyingKey::from_bytes(&self.key);
        key.is_ok_and(|key| key.verify_strict(message, &signature.into()).is_ok())
    }
}

//! Public keys, whose signatures count.

use super::error::SignError;
use super::id::KeyId;
use super::signature::{Signature, hashed};
use super::text;
use ed25519_dalek::VerifyingKey;
use fec_base::error::{Action, Error, Result};
use fec_core::digest::Digest;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// The first bytes of public keys and of secret keys.
pub(super) const ALGORITHM: [u8; 2] = *b"Ed";
/// Most bytes of a file with a public key.
const LONGEST_FILE: usize = 4096;

/// A public key of minisign, whose signatures count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signer {
    pub(super) id: KeyId,
    pub(super) key: [u8; 32],
}

impl fmt::Display for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = [&ALGORITHM[..], &self.id.0, &self.key].concat();
        f.write_str(&text::encoded(&bytes))
    }
}

impl FromStr for Signer {
    type Err = SignError;

    /// Parses the 56 characters of a public key, `RW…`.
    fn from_str(line: &str) -> std::result::Result<Signer, SignError> {
        let bytes = text::decoded::<42>(line)
            .ok_or(SignError::NotAPublicKey("a public key has 56 characters, RW… (base64)"))?;
        let (algorithm, rest) = bytes.split_at(2);
        let (id, key) = rest.split_at(8);
        if algorithm != ALGORITHM {
            return Err(SignError::NotAPublicKey("its algorithm is not Ed25519"));
        }
        let id = KeyId(id.try_into().expect("eight bytes"));
        Ok(Signer { id, key: key.try_into().expect("32 bytes") })
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
        let bytes = [&ALGORITHM[..], &self.id.0, &self.key].concat();
        text::commented(&format!("minisign public key {}", self.id), &bytes).to_string()
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
        self.verifies(&hashed(root), &signature.signed)
    }

    fn verifies(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        let key = VerifyingKey::from_bytes(&self.key);
        key.is_ok_and(|key| key.verify_strict(message, &signature.into()).is_ok())
    }
}

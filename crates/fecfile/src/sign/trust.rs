//! Whose signatures count, and which roots they are over.

use super::error::{SignError, Unsigned};
use super::id::KeyId;
use super::public::Signer;
use super::signature::Signature;
use super::signatures::Signatures;
use fec_core::digest::Digest;
use std::collections::BTreeSet;

/// Signatures that are tried with encodings, at most: a few seconds of work.
const MOST_TRIED: usize = 1 << 16;

/// Whose signatures count.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    /// Their public keys: one of them is enough.
    pub signers: Vec<Signer>,
    /// Signatures from elsewhere, beside those that stand in the input.
    pub detached: Vec<Signature>,
}

/// Who signed a root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// The root.
    pub root: Digest,
    /// The key.
    pub key: KeyId,
    /// What the key's owner says of it.
    pub trusted_comment: String,
    /// E of the metadata of a sidecar with this root, as its signatures name it: usually one, and none where a signature binds the
    /// root alone (docs/FORMAT.md, section 19).
    pub metadata: Vec<Digest>,
}

impl Trust {
    /// The roots among `roots` that a signer has signed, each once, in that order.
    ///
    /// # Errors
    /// [`SignError::Unsigned`] when there is none, [`SignError::TooMany`].
    pub fn check(&self, roots: &[Digest], found: &Signatures) -> Result<Vec<Signed>, SignError> {
        // Only the owner of a key can make what says that it is its own, whatever it is of.
        let all = || self.detached.iter().chain(found.iter());
        let made: Vec<(&Signer, &Signature)> = all()
            .flat_map(|signature| self.signers.iter().map(move |signer| (signer, signature)))
            .filter(|(signer, signature)| signer.made(signature))
            .collect();
        if made.len().saturating_mul(roots.len()) > MOST_TRIED {
            return Err(SignError::TooMany { signatures: made.len(), roots: roots.len() });
        }
        let signed = roots.iter().filter_map(|root| {
            let over_it: Vec<_> =
                made.iter().filter(|(signer, signature)| signer.signs(root, signature)).collect();
            let (signer, signature) = over_it.first()?;
            let trusted_comment = signature.trusted_comment().to_owned();
            let metadata = over_it.iter().flat_map(|(_, signature)| signature.metadata()).collect();
            Some(Signed { root: *root, key: signer.id(), trusted_comment, metadata })
        });
        let signed: Vec<Signed> = signed.collect();
        if signed.is_empty() {
            return Err(SignError::Unsigned(Box::new(self.unsigned(found))));
        }
        Ok(signed)
    }

    /// What is there in place of a signature that counts.
    fn unsigned(&self, found: &Signatures) -> Unsigned {
        let ids: BTreeSet<KeyId> = self.detached.iter().chain(found.iter()).map(Signature::id).collect();
        let signers: BTreeSet<KeyId> = self.signers.iter().map(Signer::id).collect();
        Unsigned {
            wrong: ids.intersection(&signers).copied().collect(),
            others: ids.difference(&signers).copied().take(MOST_NAMED).collect(),
            signers: signers.into_iter().collect(),
            legacy: found.legacy,
            malformed: found.malformed,
        }
    }
}

/// Other keys that are named.
const MOST_NAMED: usize = 20;

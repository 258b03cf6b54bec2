//! Trusted keys, and the roots that they signed.

use super::error::{SignError, Unsigned};
use super::id::KeyId;
use super::public::Signer;
use super::signature::Signature;
use super::signatures::Signatures;
use fec_core::digest::Digest;
use std::collections::BTreeSet;

/// The most pairs of a signature and an encoding that are tried: a few seconds of work.
const MOST_TRIED: usize = 1 << 16;

/// The keys whose signatures count.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    /// The public keys: a signature by any of them is enough.
    pub signers: Vec<Signer>,
    /// Signatures from elsewhere, beside those in the input.
    pub detached: Vec<Signature>,
}

/// A signed root, with its signer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// The root.
    pub root: Digest,
    /// The key.
    pub key: KeyId,
    /// The comment of the key's owner, which the signature covers.
    pub trusted_comment: String,
    /// E of the metadata of a sidecar with this root, as the signatures name it: usually one; none if a signature binds
    /// only the root (docs/FORMAT.md, section 19).
    pub metadata: Vec<Digest>,
}

impl Trust {
    /// The roots among `roots` that a signer signed, each once, in that order.
    ///
    /// # Errors
    /// [`SignError::Unsigned`] when no root is signed, [`SignError::TooMany`].
    pub fn check(&self, roots: &[Digest], found: &Signatures) -> Result<Vec<Signed>, SignError> {
        // Only the owner of a key can make a signature that covers its own comment, over whatever root.
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
            let halved = made.iter().filter(|(signer, signature)| {
                roots.iter().any(|root| signer.signs_classically(root, signature))
            });
            let halved = halved.map(|(signer, _)| signer.id()).collect();
            return Err(SignError::Unsigned(Box::new(self.unsigned(found, halved))));
        }
        Ok(signed)
    }

    /// The findings, when no signature counts.
    fn unsigned(&self, found: &Signatures, halved: BTreeSet<KeyId>) -> Unsigned {
        let ids: BTreeSet<KeyId> = self.detached.iter().chain(found.iter()).map(Signature::id).collect();
        let signers: BTreeSet<KeyId> = self.signers.iter().map(Signer::id).collect();
        Unsigned {
            wrong: ids.intersection(&signers).filter(|id| !halved.contains(id)).copied().collect(),
            halved: halved.into_iter().collect(),
            others: ids.difference(&signers).copied().take(MOST_NAMED).collect(),
            signers: signers.into_iter().collect(),
            legacy: found.legacy,
            malformed: found.malformed,
        }
    }
}

/// The most other keys that an error names.
const MOST_NAMED: usize = 20;

//! Errors of keys and signatures.

use super::id::KeyId;
use crate::passphrases::NoMemory;
use fec_base::class::Class;
use fec_base::error::Cause;
use fec_base::names::bytes;
use std::fmt;

/// The most memory for a key's passphrase, in bytes, as in minisign.
pub(super) const MOST_MEMORY: u64 = 1 << 30;
/// The most blocks of 1 KiB for a key's passphrase: four times as many as in minisign.
pub(super) const MOST_BLOCKS: u64 = 1 << 22;

/// Reason why a key or a signature is of no use.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SignError {
    /// Text that is no public key.
    #[error("not a minisign public key: {0}")]
    NotAPublicKey(&'static str),
    /// Text that is no secret key. The error reveals nothing of the text.
    #[error("not a minisign secret key: {0}")]
    NotASecretKey(&'static str),
    /// Text that is no signature.
    #[error("not a minisign signature: {0}")]
    NotASignature(&'static str),
    /// A signature of the old kind, over the bytes themselves.
    #[error("it is a minisign signature of the old kind (Ed), and only the prehashed kind (ED) is accepted")]
    Legacy,
    /// A secret key whose passphrase takes more memory or work than allowed.
    #[error(
        "its passphrase takes {} of memory and {blocks} blocks of work; at most {} and {} are allowed",
        bytes(*memory),
        bytes(MOST_MEMORY),
        MOST_BLOCKS
    )]
    Costly {
        /// Bytes of memory that the file asks for.
        memory: u64,
        /// Blocks of scrypt that it asks for, of 1 KiB each.
        blocks: u64,
    },
    /// The system does not have the memory that its passphrase takes.
    #[error(transparent)]
    Memory(#[from] NoMemory),
    /// A secret key is encrypted, and no passphrase was given.
    #[error("the secret key is encrypted, and no passphrase was given")]
    PassphraseNeeded,
    /// The passphrase does not open the secret key.
    #[error("the passphrase is wrong, or the file of the secret key is damaged")]
    Passphrase,
    /// No available encoding is signed by a key that counts.
    #[error("{0}")]
    Unsigned(Box<Unsigned>),
    /// More signatures of the right keys, and more encodings for them, than are tried.
    #[error("{signatures} signatures and {roots} encodings are here: too many to try every pair")]
    TooMany {
        /// Signatures of keys that count.
        signatures: usize,
        /// Encodings.
        roots: usize,
    },
}

/// The findings in place of a signature that counts.
#[derive(Debug, Default)]
pub struct Unsigned {
    /// The keys that count.
    pub signers: Vec<KeyId>,
    /// Keys that count and have signatures here: of other roots, or forged.
    pub wrong: Vec<KeyId>,
    /// Hybrid keys that count, of whose two signatures over a root here one is missing or wrong: that of ML-DSA-65.
    pub halved: Vec<KeyId>,
    /// Other keys with signatures here.
    pub others: Vec<KeyId>,
    /// Signatures of minisign's old kind.
    pub legacy: usize,
    /// Malformed signatures.
    pub malformed: usize,
}

impl fmt::Display for Unsigned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids = |ids: &[KeyId]| ids.iter().map(KeyId::to_string).collect::<Vec<_>>().join(", ");
        write!(f, "no encoding here is signed by key {}", ids(&self.signers))?;
        if !self.wrong.is_empty() {
            write!(f, "\n  wrong: a signature of key {} is not of this root", ids(&self.wrong))?;
        }
        if !self.halved.is_empty() {
            write!(
                f,
                "\n  wrong: key {} has signed it with Ed25519 alone; its signature of ML-DSA-65 is missing or wrong",
                ids(&self.halved)
            )?;
        }
        if !self.others.is_empty() {
            write!(f, "\n  found: signatures by other keys: {}", ids(&self.others))?;
        }
        if self.legacy > 0 {
            write!(f, "\n  found: signatures of minisign's old kind (Ed), which do not count")?;
        }
        if self.malformed > 0 {
            write!(f, "\n  found: something in the place of signatures that is not a signature")?;
        }
        if self.wrong.is_empty()
            && self.halved.is_empty()
            && self.others.is_empty()
            && self.legacy + self.malformed == 0
        {
            write!(f, ": there is no signature at all")?;
        }
        Ok(())
    }
}

impl Cause for SignError {
    fn class(&self) -> Class {
        match self {
            SignError::Unsigned(_) | SignError::NotASignature(_) | SignError::Legacy => Class::Untrue,
            SignError::Costly { .. } | SignError::Memory(_) | SignError::TooMany { .. } => Class::Refused,
            SignError::NotAPublicKey(_)
            | SignError::NotASecretKey(_)
            | SignError::PassphraseNeeded
            | SignError::Passphrase => Class::Usage,
        }
    }
}

//! Reasons why a sealed payload is not opened, or not made.

use fec_base::class::{Class, class_of};
use fec_base::error::Cause;
use fec_core::error::FormatError;
use fec_keys::age::AgeError;
use fec_keys::passphrases::ShortPassphrase;

/// Reason why a sealed payload is not opened, or not made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// The payload is sealed, and no key was given.
    #[error("it is sealed, and no key was given")]
    NoKey,
    /// A key was given for a payload that is not sealed.
    #[error("it is not sealed, although a key was given")]
    NotSealed,
    /// The payload is marked as sealed but has no seal.
    #[error("it is sealed, but the seal that a key would open is not in it")]
    NoSeal,
    /// Every copy of the seal is lost.
    #[error("it is sealed, and every copy of its seal is lost")]
    Lost,
    /// The seal breaks a rule of the format.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The seal would have more recipients than fit.
    #[error("{0}")]
    TooLong(FormatError),
    /// The content key cannot be read, or cannot be sealed for a recipient.
    #[error(transparent)]
    Age(#[from] AgeError),
    /// A passphrase that is too short to seal with.
    #[error(transparent)]
    Passphrase(#[from] ShortPassphrase),
    /// The seal opens to bytes that are no content key.
    #[error("the key in it is not 32 bytes long")]
    ContentKey,
    /// The private part of the seal was not made with the content key.
    #[error("the private part of the seal is not authentic")]
    PrivatePart,
    /// No sealed payload has this many bytes.
    #[error("a sealed payload cannot be {0} bytes long")]
    Length(u64),
    /// A chunk that was not sealed at this position with this key.
    #[error("chunk {0} is not authentic: the root binds something that was not sealed with this key")]
    Chunk(u64),
    /// A chunk whose end is lost, with everything behind it.
    #[error("chunk {0} is cut short: its end and what follows are lost")]
    CutChunk(u64),
    /// A sidecar where a payload is expected.
    #[error("what is sealed is a sidecar, not a payload")]
    IsSidecar,
    /// A payload where a sidecar is expected.
    #[error("what is sealed is a payload, not a sidecar")]
    IsPayload,
    /// A sealed sidecar would be written anew, and no recipients are named.
    #[error("it is sealed, and no recipients are named to seal it for again")]
    NobodyNamed,
    /// An update would seal a sidecar that is not sealed.
    #[error("it is not sealed, and an update does not change that")]
    StaysPlain,
    /// A sealed sidecar would be replaced by an unsealed one.
    #[error("it is sealed, and what would replace it is not")]
    StaysSealed,
    /// A sealed sidecar has lost more than its container can repair.
    #[error("more of it is lost than it can mend by itself")]
    BeyondContainer,
    /// Names of files would be written in the clear.
    #[error("the list would show everybody the names that the sidecar is sealed to hide")]
    TellsNames,
    /// Digests of the payload were requested, which everybody could read.
    #[error("digests of the payload would tell everybody what it is")]
    Digests,
    /// A sealed payload cannot be kept, since each run makes it anew.
    #[error("each run seals with a new key, so what is there is never the same")]
    Kept,
}

impl Cause for SealError {
    fn class(&self) -> Class {
        match self {
            SealError::NoKey
            | SealError::IsSidecar
            | SealError::IsPayload
            | SealError::NobodyNamed
            | SealError::Passphrase(_)
            | SealError::StaysSealed
            | SealError::StaysPlain
            | SealError::TellsNames
            | SealError::Digests
            | SealError::Kept => Class::Usage,
            SealError::NotSealed
            | SealError::NoSeal
            | SealError::ContentKey
            | SealError::PrivatePart
            | SealError::Length(_)
            | SealError::Chunk(_) => Class::Untrue,
            SealError::Lost | SealError::CutChunk(_) | SealError::BeyondContainer => Class::Lost,
            SealError::Format(error) | SealError::TooLong(error) => class_of(Some(error.class())),
            SealError::Age(error) => match error {
                AgeError::MuchWork(_) | AgeError::Memory(_) => Class::Refused,
                AgeError::NoMatch | AgeError::Header(_) | AgeError::Damaged(_) => Class::Untrue,
                _ => Class::Usage,
            },
        }
    }
}

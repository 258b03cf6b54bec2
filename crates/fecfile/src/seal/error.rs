//! Why a sealed payload is not opened, or not made.

use crate::age::AgeError;
use crate::class::{Class, class_of};
use crate::passphrases::ShortPassphrase;
use fec_core::error::FormatError;

/// Why a sealed payload is not opened, or not made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// It is sealed, and no key was given.
    #[error("it is sealed, and no key was given")]
    NoKey,
    /// A key was given for what is not sealed.
    #[error("it is not sealed, although a key was given")]
    NotSealed,
    /// It is marked as sealed, and nothing says for whom.
    #[error("it is sealed, but the seal that a key would open is not in it")]
    NoSeal,
    /// What would open it is lost.
    #[error("it is sealed, and every copy of its seal is lost")]
    Lost,
    /// What would open it breaks a rule of the format.
    #[error("{0}")]
    Format(#[from] FormatError),
    /// It would be for more recipients than there is room for.
    #[error("{0}")]
    TooLong(FormatError),
    /// The content key cannot be had, or not be given to somebody.
    #[error("{0}")]
    Age(#[from] AgeError),
    /// A passphrase that is too short to seal with.
    #[error("{0}")]
    Passphrase(#[from] ShortPassphrase),
    /// What opens is no content key.
    #[error("the key in it is not 32 bytes long")]
    ContentKey,
    /// Its private part was not made with the content key.
    #[error("the private part of the seal is not authentic")]
    PrivatePart,
    /// No sealed payload has this many bytes.
    #[error("a sealed payload cannot be {0} bytes long")]
    Length(u64),
    /// A chunk was not sealed in this place with this key.
    #[error("chunk {0} is not authentic: the root binds something that was not sealed with this key")]
    Chunk(u64),
    /// A chunk of which the end is lost, with all that follows.
    #[error("chunk {0} is cut short: its end and what follows are lost")]
    CutChunk(u64),
    /// It is a sidecar where a payload is wanted.
    #[error("what is sealed is a sidecar, not a payload")]
    IsSidecar,
    /// It is a payload where a sidecar is wanted.
    #[error("what is sealed is a payload, not a sidecar")]
    IsPayload,
    /// A sealed sidecar is to be written anew, and nobody is named to seal it for.
    #[error("it is sealed, and no recipients are named to seal it for again")]
    NobodyNamed,
    /// A sidecar is to be sealed that is not.
    #[error("it is not sealed, and an update does not change that")]
    StaysPlain,
    /// A sealed sidecar would be replaced by one that is not.
    #[error("it is sealed, and what would replace it is not")]
    StaysSealed,
    /// Of a sealed sidecar something is lost that cannot be mended by itself.
    #[error("more of it is lost than it can mend by itself")]
    BeyondContainer,
    /// Names of files would be written in the clear.
    #[error("the list would show everybody the names that the sidecar is sealed to hide")]
    TellsNames,
    /// Digests of the payload were asked for, which everybody could read.
    #[error("digests of the payload would tell everybody what it is")]
    Digests,
    /// What is made anew each time cannot be kept.
    #[error("each run seals with a new key, so what is there is never the same")]
    Kept,
}

impl SealError {
    /// What it means for the caller.
    pub fn class(&self) -> Class {
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

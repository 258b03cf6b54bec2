//! Why a sealed payload is not opened, or not made.

use crate::age::AgeError;
use crate::class::{Class, class_of};
use fec_core::error::FormatError;

/// Why a sealed payload is not opened, or not made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// It is sealed, and no key was given.
    #[error("it is sealed: a key opens it, and none was given")]
    NoKey,
    /// A key was given for what is not sealed.
    #[error("it is not sealed, although a key was given")]
    NotSealed,
    /// It is marked as sealed, and nothing says for whom.
    #[error("it is sealed by something else: it records nothing that a key of fec could open")]
    NoSeal,
    /// What would open it is lost.
    #[error("it is sealed, and no copy is left of what a key opens")]
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
    /// What opens is no content key.
    #[error("the key that it holds has another length than 32 bytes")]
    ContentKey,
    /// Its private part was not made with the content key.
    #[error("the private part of the seal is not authentic")]
    PrivatePart,
    /// No sealed payload has this many bytes.
    #[error("no sealed payload has {0} bytes")]
    Length(u64),
    /// A chunk was not sealed in this place with this key.
    #[error("chunk {0} is not authentic: the root binds something that was not sealed with this key")]
    Chunk(u64),
    /// A chunk of which the end is lost, with all that follows.
    #[error("chunk {0} is cut short: its end is lost, with what follows")]
    CutChunk(u64),
    /// It is a sidecar where a payload is wanted.
    #[error("what is sealed is a sidecar, not a payload")]
    IsSidecar,
    /// It is a payload where a sidecar is wanted.
    #[error("what is sealed is a payload, not a sidecar")]
    IsPayload,
    /// A sealed sidecar is to be written anew, and nobody is named to seal it for.
    #[error("it is sealed, and it is not said for whom it is to be sealed again")]
    NobodyNamed,
    /// A sidecar is to be sealed that is not.
    #[error("it is not sealed, and an update does not change that")]
    StaysPlain,
    /// Of a sealed sidecar something is lost that cannot be mended by itself.
    #[error("more of it is lost than can be mended by itself")]
    BeyondContainer,
    /// Names of files would be written in the clear.
    #[error("it would tell everybody what the sidecar is sealed for")]
    TellsNames,
    /// Digests of the payload were asked for, which everybody could read.
    #[error("digests of the payload would tell everybody what it is")]
    Digests,
    /// What is made anew each time cannot be kept.
    #[error("each run seals with a new key, so nothing that is there is the same")]
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
                AgeError::MuchWork(_) => Class::Refused,
                AgeError::NoMatch | AgeError::Header(_) | AgeError::Damaged(_) => Class::Untrue,
                _ => Class::Usage,
            },
        }
    }
}

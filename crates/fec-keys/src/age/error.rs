//! Errors of age files and keys. No error holds any part of a secret, or of a line that may be a secret.

use crate::passphrases::NoMemory;
use std::io;

/// Why an age file cannot be opened or made, or a key not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgeError {
    /// None of the keys opens any stanza of the header.
    #[error("no key or passphrase that was given opens it")]
    NoMatch,
    /// The header breaks a rule of the format, or it is no age file.
    #[error("it is not a well-formed age file: {0}")]
    Header(&'static str),
    /// A passphrase whose work factor, log N, is above [`MOST_WORK`](super::limits::MOST_WORK).
    #[error("its passphrase takes too much work: its work factor is {0}, and at most {most} is allowed", most = super::limits::MOST_WORK)]
    MuchWork(u8),
    /// The system does not have the memory that its passphrase takes.
    #[error(transparent)]
    Memory(#[from] NoMemory),
    /// A key fits, but this part has changed since the file was made.
    #[error("{0} is damaged, or was changed")]
    Damaged(Part),
    /// The file is for a passphrase, and keys were given.
    #[error("it is sealed with a passphrase, not for keys")]
    NeedsPassphrase,
    /// The file is for keys, and a passphrase was given.
    #[error("it is sealed for keys, not with a passphrase")]
    NeedsIdentity,
    /// A passphrase without a character.
    #[error("the passphrase is empty")]
    EmptyPassphrase,
    /// A passphrase of this work factor cannot be made: 1 to [`MOST_WORK`](super::limits::MOST_WORK) are allowed.
    #[error("the work factor {0} is not between 1 and {most}", most = super::limits::MOST_WORK)]
    WorkFactor(u8),
    /// A file without recipients.
    #[error("it names no recipients")]
    NoRecipients,
    /// More recipients than readers accept.
    #[error("{0} recipients are too many: at most {most} are allowed", most = super::limits::MOST_STANZAS)]
    TooManyRecipients(usize),
    /// Post-quantum recipients beside others, whose weaker keys would undo their protection.
    #[error("post-quantum recipients cannot be mixed with others")]
    Mixed,
    /// Text that is no recipient.
    #[error("not a valid recipient: {0}")]
    Recipient(&'static str),
    /// A line of a list of recipients that is no recipient.
    #[error("line {line} is not a valid recipient: {why}")]
    RecipientLine {
        /// The number of the line, from 1.
        line: usize,
        /// The reason.
        why: &'static str,
    },
    /// Text that is no file of identities.
    #[error("it has no usable identity: {0}")]
    Identity(&'static str),
    /// A line of a file of identities that is no identity.
    #[error("line {line} is not a valid identity: {why}")]
    IdentityLine {
        /// The number of the line, from 1.
        line: usize,
        /// The reason.
        why: &'static str,
    },
    /// An SSH key has a passphrase, and none was given.
    #[error("the SSH key is protected by a passphrase, and none was given")]
    KeyNeedsPassphrase,
    /// An SSH key has another passphrase.
    #[error("the passphrase of the SSH key is wrong, or the key is damaged")]
    WrongPassphrase,
    /// The system's source of randomness fails.
    #[error("no random bytes: {0}")]
    Random(io::Error),
}

/// A part of an age file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// The text before the payload: the keys for those who can open the file.
    Header,
    /// The encrypted text.
    Payload,
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Part::Header => "its header",
            Part::Payload => "its payload",
        })
    }
}

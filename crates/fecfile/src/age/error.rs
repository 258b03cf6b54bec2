//! What goes wrong with age files and keys. No error has anything of a secret in it, nor of a line that may be one.

use std::io;

/// Why an age file cannot be opened or made, or a key not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgeError {
    /// None of the keys opens any stanza of the header.
    #[error("none of the keys opens it")]
    NoMatch,
    /// The header breaks a rule of the format, or it is no age file.
    #[error("it is not a well-formed age file: {0}")]
    Header(&'static str),
    /// The passphrase's work factor: log N is above [`MOST_WORK`](super::limits::MOST_WORK).
    #[error("its passphrase asks for too much work: a work factor of {0}, and {most} is the most that is done", most = super::limits::MOST_WORK)]
    MuchWork(u8),
    /// A key fits, and this part is not what it was when the file was made.
    #[error("{0} is damaged, or somebody changed it")]
    Damaged(Part),
    /// The file is for a passphrase, and keys were given.
    #[error("it is protected by a passphrase, and not for keys")]
    NeedsPassphrase,
    /// The file is for keys, and a passphrase was given.
    #[error("it is for the holders of keys, and has no passphrase")]
    NeedsIdentity,
    /// A passphrase without a character.
    #[error("the passphrase is empty")]
    EmptyPassphrase,
    /// A passphrase of this work factor cannot be made: 1 to [`MOST_WORK`](super::limits::MOST_WORK) are allowed.
    #[error("a work factor of {0} is none from 1 to {most}", most = super::limits::MOST_WORK)]
    WorkFactor(u8),
    /// A file for nobody.
    #[error("it has no recipients")]
    NoRecipients,
    /// More recipients than readers take.
    #[error("it would have {0} recipients, and {most} are the most that a file has", most = super::limits::MOST_STANZAS)]
    TooManyRecipients(usize),
    /// Post-quantum recipients beside others, who would undo what the former are for.
    #[error("post-quantum recipients cannot be mixed with others")]
    Mixed,
    /// No recipient.
    #[error("it is no recipient: {0}")]
    Recipient(&'static str),
    /// A line of a list of recipients is none.
    #[error("line {line} is no recipient: {why}")]
    RecipientLine {
        /// The number of the line, from 1.
        line: usize,
        /// The reason.
        why: &'static str,
    },
    /// No file of identities.
    #[error("it holds no identity that can be used: {0}")]
    Identity(&'static str),
    /// A line of a file of identities is none.
    #[error("line {line} is no identity: {why}")]
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
    #[error("the SSH key has another passphrase, or is damaged")]
    WrongPassphrase,
    /// The system's source of randomness fails.
    #[error("no random bytes: {0}")]
    Random(#[source] io::Error),
}

/// A part of an age file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// The text before the payload: who can open the file.
    Header,
    /// What was encrypted.
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

//! Recipients, who can open a file. Their keys are public.

use super::error::AgeError;
use super::header::Sealed;
use super::hybrid::HybridRecipient;
use super::limits::{LONGEST_LINE, MOST_KEYS};
use super::primitives::{BODY_LEN, FileKey};
use super::ssh::{self, SshRecipient};
use super::x25519::X25519Recipient;
use std::collections::HashSet;
use std::str::FromStr;

/// A person who can open a file. Two are equal if they have the same key.
#[derive(Clone)]
#[non_exhaustive]
pub enum Recipient {
    /// `age1…`
    X25519(X25519Recipient),
    /// `age1pq1…`, which holds against quantum computers as well.
    Hybrid(Box<HybridRecipient>),
    /// `age1pq1…`, which resists quantum computers as well.
    SshEd25519(SshRecipient),
}

impl Recipient {
    /// Tells whether files for this recipient are safe from quantum computers.
    pub fn is_post_quantum(&self) -> bool {
        matches!(self, Recipient::Hybrid(_))
    }

    /// The kind, and the bytes of the key.
    pub(super) fn bytes(&self) -> (u8, Vec<u8>) {
        match self {
            Recipient::X25519(recipient) => (0, recipient.bytes().to_vec()),
            Recipient::Hybrid(recipient) => (1, recipient.bytes()),
            Recipient::SshEd25519(recipient) => (2, recipient.blob().to_vec()),
        }
    }

    pub(super) fn seal(&self, file_key: &FileKey) -> Result<(Sealed, [u8; BODY_LEN]), AgeError> {
        match self {
            Recipient::X25519(recipient) => recipient.seal(file_key),
            Recipient::Hybrid(recipient) => recipient.seal(file_key),
            Recipient::SshEd25519(recipient) => recipient.seal(file_key),
        }
    }
}

impl PartialEq for Recipient {
    fn eq(&self, other: &Recipient) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for Recipient {}

impl FromStr for Recipient {
    type Err = AgeError;

    /// Reads `age1…`, `age1pq1…`, or a line as in `id_ed25519.pub`.
    ///
    /// # Errors
    /// [`AgeError::Recipient`], which reveals nothing of the text.
    fn from_str(text: &str) -> Result<Recipient, AgeError> {
        read(text).map_err(AgeError::Recipient)
    }
}

/// The canonical text; a key of SSH has no comment in it.
impl std::fmt::Display for Recipient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&match self {
            Recipient::X25519(recipient) => recipient.to_text(),
            Recipient::Hybrid(recipient) => recipient.to_text(),
            Recipient::SshEd25519(recipient) => recipient.to_text(),
        })
    }
}

impl std::fmt::Debug for Recipient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Recipient({self})")
    }
}

/// Reads a list of recipients, one on each line. Empty lines, lines that begin with `#`, and keys that were listed
/// before are ignored.
///
/// # Errors
/// [`AgeError::RecipientLine`], which reveals nothing of the line: it may be a secret. [`AgeError::NoRecipients`],
/// [`AgeError::TooManyRecipients`].
pub fn recipients_of(text: &str) -> Result<Vec<Recipient>, AgeError> {
    let (mut recipients, mut known) = (Vec::new(), HashSet::new());
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
    {
        let recipient = read(line).map_err(|why| AgeError::RecipientLine { line: at + 1, why })?;
        if known.insert(recipient.bytes()) {
            recipients.push(recipient);
        }
        if recipients.len() > MOST_KEYS {
            return Err(AgeError::TooManyRecipients(recipients.len()));
        }
    }
    if recipients.is_empty() { Err(AgeError::NoRecipients) } else { Ok(recipients) }
}

/// A recipient, or the reason why the text is none.
fn read(text: &str) -> Result<Recipient, &'static str> {
    let lower = text.as_bytes().get(..15.min(text.len())).unwrap_or_default().to_ascii_lowercase();
    let begins = |prefix: &str| lower.starts_with(prefix.as_bytes());
    if text.len() > LONGEST_LINE {
        Err("it is too long")
    } else if begins("age-secret-key-") || begins("age-plugin-") {
        Err(
            "it is a secret key, which is for its owner alone; a recipient is the public key that belongs to it",
        )
    } else if text.starts_with("-----BEGIN") {
        Err("it is the beginning of a private key; a recipient is the public key that belongs to it")
    } else if begins("age1pq1") {
        let recipient = HybridRecipient::from_text(text).ok_or("its public key is malformed")?;
        Ok(Recipient::Hybrid(Box::new(recipient)))
    } else if begins("age1") && text[4..].contains('1') {
        Err("recipients of plugins are not supported")
    } else if begins("age1") {
        X25519Recipient::from_text(text).map(Recipient::X25519).ok_or("its public key is malformed")
    } else if begins(ssh::KIND) {
        SshRecipient::from_text(text).map(Recipient::SshEd25519).ok_or("its SSH key is malformed")
    } else if begins("ssh-rsa") {
        Err("RSA keys of SSH are not supported; Ed25519 keys are")
    } else if begins("ssh-") || begins("ecdsa-sha2-") || begins("sk-") {
        Err("of SSH keys, only Ed25519 keys are supported")
    } else {
        Err("it begins with none of age1, age1pq1 and ssh-ed25519")
    }
}

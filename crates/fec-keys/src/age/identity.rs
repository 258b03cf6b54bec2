//! Identities: the secret keys that open files.

use super::error::AgeError;
use super::header::{Sealed, Stanza};
use super::hybrid::HybridIdentity;
use super::limits::{LONGEST_LINE, MOST_KEYS};
use super::openssh;
use super::passphrase::Passphrase;
use super::primitives::FileKey;
use super::recipient::Recipient;
use super::ssh::SshIdentity;
use super::x25519::X25519Identity;
use std::io;
use zeroize::Zeroizing;

/// The kinds of keys that this library makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// X25519: short, and known to every age.
    X25519,
    /// ML-KEM-768 and X25519 together, which resist quantum computers as well. Known to age since 1.3.
    Hybrid,
}

/// A secret key, which is overwritten when it is dropped.
pub struct Identity(Inner);

enum Inner {
    X25519(X25519Identity),
    Hybrid(Box<HybridIdentity>),
    Ssh(SshIdentity),
}

impl Identity {
    /// A new identity, from the system's source of randomness.
    ///
    /// # Errors
    /// Those of that source.
    pub fn generate(kind: KeyKind) -> io::Result<Identity> {
        let identity = match kind {
            KeyKind::X25519 => X25519Identity::generate().map(Inner::X25519),
            KeyKind::Hybrid => HybridIdentity::generate().map(|identity| Inner::Hybrid(Box::new(identity))),
        };
        identity.map(Identity).map_err(|error| match error {
            AgeError::Random(error) => error,
            error => io::Error::other(error),
        })
    }

    /// The recipient with this identity.
    pub fn recipient(&self) -> Recipient {
        match &self.0 {
            Inner::X25519(identity) => Recipient::X25519(identity.recipient()),
            Inner::Hybrid(identity) => Recipient::Hybrid(Box::new(identity.recipient())),
            Inner::Ssh(identity) => Recipient::SshEd25519(identity.recipient().clone()),
        }
    }

    /// `AGE-SECRET-KEY-…`, in one line without its end. `None` for a key of SSH, which has no such text.
    pub fn to_text(&self) -> Option<Zeroizing<String>> {
        match &self.0 {
            Inner::X25519(identity) => Some(identity.to_text()),
            Inner::Hybrid(identity) => Some(identity.to_text()),
            Inner::Ssh(_) => None,
        }
    }

    /// `None` if the stanza is for somebody else.
    pub(super) fn open(&self, stanza: &Stanza) -> Result<Option<FileKey>, AgeError> {
        let Stanza::Known { sealed, body } = stanza else { return Ok(None) };
        match (&self.0, sealed) {
            (Inner::X25519(identity), Sealed::X25519 { share }) => identity.open(share, body),
            (Inner::Hybrid(identity), Sealed::Hybrid { share }) => identity.open(share, body),
            (Inner::Ssh(identity), Sealed::SshEd25519 { tag, share }) => identity.open(tag, share, body),
            _ => Ok(None),
        }
    }
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Identity(…)")
    }
}

/// Reads a file of identities. It holds keys of age, one on each line, with empty lines and lines that begin with `#`
/// ignored; or a single private key of OpenSSH, for whose passphrase `ask` is called, at most once.
///
/// # Errors
/// [`AgeError::IdentityLine`] and [`AgeError::Identity`], which reveal nothing of the text;
/// [`AgeError::KeyNeedsPassphrase`] if `ask` has none, and [`AgeError::WrongPassphrase`].
pub fn identities_of(
    text: &[u8],
    ask: &mut dyn FnMut() -> Option<Passphrase>,
) -> Result<Vec<Identity>, AgeError> {
    let trimmed = text.trim_ascii_start();
    if trimmed.starts_with(openssh::BEGIN) {
        return Ok(vec![Identity(Inner::Ssh(openssh::read(text, ask)?))]);
    }
    if trimmed.starts_with(b"age-encryption.org/")
        || trimmed.starts_with(b"-----BEGIN AGE ENCRYPTED FILE-----")
    {
        return Err(AgeError::Identity("it is encrypted itself; decrypt it with age first"));
    }
    if trimmed.starts_with(b"-----BEGIN") {
        return Err(AgeError::Identity("private keys are supported only in OpenSSH's own format"));
    }
    let text = std::str::from_utf8(text).map_err(|_| AgeError::Identity("it is not text (UTF-8)"))?;
    let mut identities = Vec::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
    {
        identities.push(read(line).map_err(|why| AgeError::IdentityLine { line: at + 1, why })?);
        if identities.len() > MOST_KEYS {
            return Err(AgeError::Identity("it has too many identities"));
        }
    }
    if identities.is_empty() { Err(AgeError::Identity("it is empty")) } else { Ok(identities) }
}

/// An identity of age, or the reason why the text is none.
fn read(text: &str) -> Result<Identity, &'static str> {
    const MALFORMED: &str = "its secret key is malformed";
    let begins = |prefix: &str| {
        text.as_bytes().get(..prefix.len()).is_some_and(|s| s.eq_ignore_ascii_case(prefix.as_bytes()))
    };
    if text.len() > LONGEST_LINE {
        Err("it is too long")
    } else if begins("AGE-SECRET-KEY-PQ-1") {
        let identity = HybridIdentity::from_text(text).ok_or(MALFORMED)?;
        Ok(Identity(Inner::Hybrid(Box::new(identity))))
    } else if begins("AGE-SECRET-KEY-1") {
        X25519Identity::from_text(text).map(|identity| Identity(Inner::X25519(identity))).ok_or(MALFORMED)
    } else if begins("AGE-PLUGIN-") {
        Err("identities of plugins are not supported")
    } else if begins("age1") || begins("ssh-") {
        Err("it is a recipient; the identity is the secret key that belongs to it")
    } else {
        Err("it begins with neither AGE-SECRET-KEY-1 nor AGE-SECRET-KEY-PQ-1")
    }
}

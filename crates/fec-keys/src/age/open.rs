//! Opening age files.

use super::error::{AgeError, Part};
use super::header::{Header, Sealed, Stanza, StanzaKind};
use super::identity::Identity;
use super::passphrase::Passphrase;
use super::primitives::FileKey;
use super::stream;
use zeroize::Zeroizing;

/// The means to open a file.
#[derive(Debug)]
pub enum Keys {
    /// Secret keys, which are tried in this order.
    Identities(Vec<Identity>),
    /// A passphrase.
    Passphrase(Passphrase),
}

/// The plaintext of an age file; `file` holds all of the file. It takes as much memory again, and 4 GiB for a
/// passphrase of the highest work factor. Every stanza is tried with every identity, until one fits.
///
/// # Errors
/// [`AgeError::Header`] and [`AgeError::MuchWork`], which need no key, [`AgeError::NeedsPassphrase`],
/// [`AgeError::NeedsIdentity`], [`AgeError::NoMatch`], [`AgeError::Memory`], and [`AgeError::Damaged`].
pub fn open(file: &[u8], keys: &Keys) -> Result<Zeroizing<Vec<u8>>, AgeError> {
    let header = Header::read(file)?;
    let file_key = match keys {
        Keys::Identities(identities) => by_identities(&header, identities)?,
        Keys::Passphrase(passphrase) => by_passphrase(&header, passphrase)?,
    };
    if !header.is_of(&file_key) {
        return Err(AgeError::Damaged(Part::Header));
    }
    stream::read(&file_key, header.payload)
}

/// The kinds of an age file's stanzas, in their order. Only a holder of a key can know whether they are what they
/// claim.
///
/// # Errors
/// [`AgeError::Header`], [`AgeError::MuchWork`].
pub fn recipients_in(file: &[u8]) -> Result<Vec<StanzaKind>, AgeError> {
    Ok(Header::read(file)?.stanzas.iter().map(Stanza::kind).collect())
}

fn by_identities(header: &Header, identities: &[Identity]) -> Result<FileKey, AgeError> {
    for identity in identities {
        for stanza in &header.stanzas {
            if let Some(file_key) = identity.open(stanza)? {
                return Ok(file_key);
            }
        }
    }
    let is_for_passphrase = header.stanzas.iter().any(|stanza| stanza.kind() == StanzaKind::Passphrase);
    Err(if is_for_passphrase { AgeError::NeedsPassphrase } else { AgeError::NoMatch })
}

fn by_passphrase(header: &Header, passphrase: &Passphrase) -> Result<FileKey, AgeError> {
    match &header.stanzas[..] {
        [Stanza::Known { sealed: Sealed::Passphrase { salt, log_n }, body }] => {
            passphrase.open(salt, *log_n, body)?.ok_or(AgeError::NoMatch)
        }
        _ => Err(AgeError::NeedsIdentity),
    }
}

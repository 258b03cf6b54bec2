//! The sealer of a payload: its key, and the seal that its recipients open.

use super::error::SealError;
use super::keys::{associated, chunk_key, nonce, private_key};
use super::open::Opened;
use fec_base::error::{Action, Error, Place, Result};
use fec_base::io::system;
use fec_core::format::meta::Meta;
use fec_core::format::seal::{self, Again, Seal, SealedKind};
use fec_keys::age::{self, Keys, Passphrase, Recipient};
use fec_keys::cipher::{AeadKey, Cipher, KEY, NONCE};
use std::num::NonZeroUsize;
use zeroize::Zeroizing;

/// The recipients of sealed payloads, and the cipher.
#[derive(Clone, Debug)]
pub struct Sealing {
    /// The people who can open them.
    pub to: SealedTo,
    /// The cipher of the chunks.
    pub cipher: Cipher,
}

/// The people who can open a sealed payload.
#[derive(Clone, Debug)]
pub enum SealedTo {
    /// Holders of the identity of any of these.
    Recipients(Vec<Recipient>),
    /// Everybody who knows this passphrase.
    Passphrase(Passphrase),
}

/// The work of making a key from a passphrase: scrypt with N = 2^18, 256 MiB and a second.
const LOG_N: u8 = 18;

/// Seals one payload, with a key that seals nothing else.
pub struct Sealer {
    key: AeadKey,
    associated: [u8; 32],
    seal: Vec<u8>,
}

impl Sealer {
    /// A sealer with a new key, given to all recipients on up to `threads` threads, and with `name` inside the seal.
    ///
    /// # Errors
    /// Those of the source of randomness; [`SealError::Age`]; [`SealError::Passphrase`]; [`SealError::TooLong`] for
    /// more recipients than fit the meta; [`SealError::Format`] for a name that is not allowed.
    pub fn new(
        sealing: &Sealing,
        content: SealedKind,
        name: Option<&[u8]>,
        threads: usize,
    ) -> Result<Sealer> {
        let mut content_key = Zeroizing::new([0; KEY]);
        system::random(&mut content_key[..]).map_err(|e| Error::io(Action::MakeKey, Place::Nowhere, e))?;
        let age_file = age_file(&sealing.to, &content_key, threads)?;
        let fail = |e: SealError| Error::new(Action::Seal, e);
        Sealer::with(&content_key, sealing.cipher, content, &age_file, name).map_err(fail)
    }

    pub(crate) fn with(
        content_key: &[u8; KEY],
        cipher: Cipher,
        content: SealedKind,
        age_file: &[u8],
        name: Option<&[u8]>,
    ) -> std::result::Result<Sealer, SealError> {
        let meta = match name {
            Some(name) => Meta::with_name(name)?,
            None => Meta::default(),
        };
        let public = Seal::public(cipher.number(), content, age_file, None).map_err(SealError::TooLong)?;
        let seal = closed(public, &private_key(cipher, content_key, None), &meta);
        Ok(Sealer { key: chunk_key(cipher, content_key), associated: associated(&seal, None), seal })
    }

    /// The meta of the encoding: the seal alone.
    pub fn meta(&self) -> Meta {
        Meta { seal: Some(self.seal.clone()), ..Meta::default() }
    }

    /// Seals chunk `number`: `bytes` are its plaintext and space for the tag.
    pub(super) fn seal_chunk(&self, number: u64, is_last: bool, bytes: &mut [u8]) {
        let (data, tag) = bytes.split_last_chunk_mut().expect("there is room for the tag");
        *tag = self.key.seal(&nonce(number, is_last), &self.associated, data);
    }
}

/// A seal for other recipients in the place of `seal`, which `keys` open. The payload and its content key stay as they
/// are: who could open it before can still open what it is sealed with, wherever the old seal or the key was kept.
///
/// # Errors
/// Those of [`Opener::new`](super::Opener::new) and of [`Sealer::new`]; [`SealError::IsSidecar`].
pub fn reseal(seal: &[u8], keys: &Keys, to: &SealedTo, threads: usize) -> Result<Vec<u8>> {
    let fail = |e: SealError| Error::new(Action::Seal, e);
    let opened = Opened::new(seal, keys).map_err(|e| Error::new(Action::Open, e))?;
    if opened.content == SealedKind::Sidecar {
        return Err(Error::new(Action::Open, SealError::IsSidecar));
    }
    let mut salt = [0; 32];
    system::random(&mut salt).map_err(|e| Error::io(Action::MakeKey, Place::Nowhere, e))?;
    resealed(&opened, &age_file(to, &opened.content_key, threads)?, salt).map_err(fail)
}

/// The seal that follows from what was opened, the new age file, and a salt.
pub(super) fn resealed(
    opened: &Opened,
    age_file: &[u8],
    salt: [u8; 32],
) -> std::result::Result<Vec<u8>, SealError> {
    let again = Again { first: opened.first, salt };
    let public = Seal::public(opened.cipher.number(), opened.content, age_file, Some(&again));
    let key = private_key(opened.cipher, &opened.content_key, Some(&again));
    Ok(closed(public.map_err(SealError::TooLong)?, &key, &opened.private))
}

/// An age file that gives a content key to all recipients.
fn age_file(to: &SealedTo, content_key: &[u8; KEY], threads: usize) -> Result<Vec<u8>> {
    let fail = |e: SealError| Error::new(Action::Seal, e);
    let age_file = match to {
        SealedTo::Recipients(recipients) => {
            let threads = NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN);
            age::seal_on(threads, recipients, &content_key[..])
        }
        SealedTo::Passphrase(passphrase) => {
            passphrase.check_new().map_err(|e| fail(e.into()))?;
            age::seal_with_passphrase(passphrase, LOG_N, &content_key[..])
        }
    };
    age_file.map_err(|e| fail(e.into()))
}

/// A seal with its private part.
fn closed(mut seal: Vec<u8>, key: &AeadKey, meta: &Meta) -> Vec<u8> {
    let mut private = Zeroizing::new(seal::padded(&meta.to_bytes()));
    let tag = key.seal(&[0; NONCE], &seal, &mut private);
    seal.extend_from_slice(&private);
    seal.extend_from_slice(&tag);
    seal
}

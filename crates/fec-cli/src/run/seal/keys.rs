//! Turns options into recipients and identities. No message repeats a key or a line of a key file: it may be secret.

use crate::line::seal::{Open, Seal};
use crate::plan::keys;
use crate::say::failure::{Failure, Result};
use crate::system::border::no_core_dumps;
use crate::system::passphrase;
use fec_base::io::small;
use fec_base::names::show;
use fec_keys::age::{self, AgeError, Identity, Keys, Passphrase, Recipient};
use fec_keys::cipher::Cipher;
use fecfile::error::{Action, Error};
use fecfile::seal::{SealError, SealedTo, Sealing};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Most bytes of a file of keys.
const MOST: usize = 16 << 20;

impl Seal {
    /// Tells whether anything is to be sealed.
    pub(crate) fn is_asked_for(&self) -> bool {
        !self.recipient.is_empty() || !self.recipients_file.is_empty() || self.passphrase
    }

    /// The recipients and the cipher, if anybody is named.
    pub(crate) fn sealing(&self) -> Result<Option<Sealing>> {
        if self.is_asked_for() {
            no_core_dumps();
        }
        let recipients = recipients(&self.recipient, &self.recipients_file)?;
        keys::check_sealed(self, &recipients)?;
        if !self.is_asked_for() {
            return Ok(None);
        }
        let to = match self.passphrase {
            true => {
                let text = passphrase::of_sealed("what is sealed", true, "--recipient")?;
                SealedTo::Passphrase(Passphrase::new(text).map_err(failure)?)
            }
            false => SealedTo::Recipients(recipients),
        };
        Ok(Some(Sealing { to, cipher: self.cipher.map_or_else(Cipher::best, Cipher::from) }))
    }
}

/// The recipients that options and files name.
pub(crate) fn recipients(named: &[String], files: &[PathBuf]) -> Result<Vec<Recipient>> {
    let count = named.len();
    let named = (1..).zip(named);
    let named = named.map(|(nth, text)| keys::recipient(text, (nth, count), Path::new(text).is_file()));
    let mut recipients = named.collect::<Result<Vec<Recipient>>>()?;
    for path in files {
        recipients.extend(keys::recipients(path, &read(path)?)?);
    }
    Ok(recipients)
}

impl Open {
    /// Tells whether a key is given.
    pub(crate) fn is_given(&self) -> bool {
        !self.identity.is_empty() || self.passphrase
    }

    /// The keys, if any are given.
    pub(crate) fn keys(&self) -> Result<Option<Keys>> {
        if !self.is_given() {
            return Ok(None);
        }
        no_core_dumps();
        if self.passphrase {
            let text = passphrase::of_sealed("what is sealed", false, "-i")?;
            return Ok(Some(Keys::Passphrase(Passphrase::new(text).map_err(failure)?)));
        }
        let mut identities: Vec<Identity> = Vec::new();
        for path in &self.identity {
            let bytes = read(path)?;
            let mut asked = None;
            let found = age::identities_of(&bytes, &mut || {
                let text = passphrase::of_sealed(&format!("the key {}", show(path)), false, "another key");
                match text.and_then(|text| Passphrase::new(text).map_err(failure)) {
                    Ok(passphrase) => Some(passphrase),
                    Err(failure) => {
                        asked = Some(failure);
                        None
                    }
                }
            });
            match (found, asked) {
                (Ok(found), _) => identities.extend(found),
                (Err(AgeError::KeyNeedsPassphrase), Some(failure)) => return Err(failure),
                (Err(e), _) => return Err(keys::no_keys(path, e)),
            }
        }
        Ok(Some(Keys::Identities(identities)))
    }
}

fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>> {
    let bytes = small::read(path, MOST).map_err(|e| Failure::io(Action::Read, path, e))?;
    keys::short(path, bytes)
}

fn failure(error: AgeError) -> Failure {
    Error::new(Action::Seal, SealError::Age(error)).into()
}

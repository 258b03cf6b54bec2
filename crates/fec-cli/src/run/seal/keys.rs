//! Turns options into recipients and identities. No message repeats a key or a line of a key file: it may be secret.

use crate::line::seal::{Open, Seal};
use crate::say::failure::{Failure, Result};
use crate::system::passphrase;
use crate::system::secrecy::no_core_dumps;
use fec_base::io::small;
use fec_base::names::show;
use fec_keys::age::{self, AgeError, Identity, Keys, Passphrase, Recipient};
use fec_keys::cipher::Cipher;
use fecfile::error::{Action, Error};
use fecfile::seal::{SealError, SealedTo, Sealing};
use std::path::Path;
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
        let cipher = self.cipher.map(Cipher::from);
        if !self.is_asked_for() {
            return match cipher {
                None => Ok(None),
                Some(_) => Err(Failure::usage("--cipher is for sealing, and no recipient is named")
                    .help("name a key with --recipient, or give --passphrase")),
            };
        }
        no_core_dumps();
        let to = match (self.passphrase, self.recipients()?) {
            (true, recipients) if recipients.is_empty() => {
                let text = passphrase::of_sealed("what is sealed", true, "--recipient")?;
                SealedTo::Passphrase(Passphrase::new(text).map_err(failure)?)
            }
            (true, _) => {
                return Err(Failure::usage("--passphrase cannot be combined with recipients")
                    .help("age files are for keys or for one passphrase"));
            }
            (false, recipients) if recipients.is_empty() => {
                return Err(Failure::usage("the files of --recipients-file name no recipients"));
            }
            (false, recipients) => SealedTo::Recipients(recipients),
        };
        Ok(Some(Sealing { to, cipher: cipher.unwrap_or_else(Cipher::best) }))
    }

    fn recipients(&self) -> Result<Vec<Recipient>> {
        let mut recipients = Vec::new();
        for (nth, text) in (1..).zip(&self.recipient) {
            let recipient = text.parse::<Recipient>();
            recipients.push(recipient.map_err(|e| {
                let nth = if self.recipient.len() > 1 { format!(" number {nth}") } else { String::new() };
                let failure = Failure::usage(format!("--recipient{nth}: {e}"));
                match Path::new(text).is_file() {
                    true => failure.help("it is a file: name it with -R"),
                    false => failure.help("a recipient begins with age1, age1pq1 or ssh-ed25519"),
                }
            })?);
        }
        for path in &self.recipients_file {
            let bytes = read(path)?;
            let text = std::str::from_utf8(&bytes)
                .map_err(|_| Failure::usage(format!("read {}: it is not text (UTF-8)", show(path))))?;
            let listed = age::recipients_of(text);
            recipients.extend(listed.map_err(|e| Failure::usage(format!("read {}: {e}", show(path))))?);
        }
        Ok(recipients)
    }
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
                (Err(e), _) => return Err(Failure::usage(format!("read {}: {e}", show(path)))),
            }
        }
        Ok(Some(Keys::Identities(identities)))
    }
}

fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>> {
    let bytes = small::read(path, MOST).map_err(|e| Failure::io(Action::Read, path, e))?;
    bytes.ok_or_else(|| Failure::usage(format!("read {}: it is too large for a file of keys", show(path))))
}

fn failure(error: AgeError) -> Failure {
    Error::new(Action::Seal, SealError::Age(error)).into()
}

//! Passphrases (C2SP age.md, "The scrypt recipient type").

use super::error::AgeError;
use super::header::{SALT_LEN, Sealed};
use super::limits::MOST_WORK;
use super::primitives::{BODY_LEN, FileKey, Secret, random, unwrap, wrap};
use crate::passphrases::{NoMemory, ShortPassphrase, check_new, make_key};
use zeroize::Zeroizing;

const LABEL: &[u8] = b"age-encryption.org/v1/scrypt";
const R: u32 = 8;
const P: u32 = 1;
/// Each stanza's key is used once.
const NONCE: [u8; 12] = [0; 12];

/// A secret that people remember, which is overwritten when it is dropped.
#[derive(Clone)]
pub struct Passphrase(Zeroizing<String>);

impl Passphrase {
    /// # Errors
    /// [`AgeError::EmptyPassphrase`].
    pub fn new(text: Zeroizing<String>) -> Result<Passphrase, AgeError> {
        if text.is_empty() { Err(AgeError::EmptyPassphrase) } else { Ok(Passphrase(text)) }
    }

    /// Tells whether a new payload may be sealed with it.
    ///
    /// # Errors
    /// [`ShortPassphrase`].
    pub fn check_new(&self) -> Result<(), ShortPassphrase> {
        check_new(&self.0)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    pub(super) fn seal(&self, log_n: u8, file_key: &FileKey) -> Result<(Sealed, [u8; BODY_LEN]), AgeError> {
        if !(1..=MOST_WORK).contains(&log_n) {
            return Err(AgeError::WorkFactor(log_n));
        }
        let salt = *random()?;
        Ok((Sealed::Passphrase { salt, log_n }, wrap(&self.wrapping_key(&salt, log_n)?, &NONCE, file_key)))
    }

    /// `None` if the stanza is for another passphrase. It takes 2^`log_n` KiB of memory.
    pub(super) fn open(
        &self,
        salt: &[u8; SALT_LEN],
        log_n: u8,
        body: &[u8; BODY_LEN],
    ) -> Result<Option<FileKey>, NoMemory> {
        Ok(unwrap(&self.wrapping_key(salt, log_n)?, &NONCE, body))
    }

    fn wrapping_key(&self, salt: &[u8; SALT_LEN], log_n: u8) -> Result<Secret, NoMemory> {
        let params = scrypt::Params::new(log_n, R, P).expect("work factors from 1 to 22 are allowed");
        let mut key = Zeroizing::new([0; 32]);
        make_key(self.bytes(), &[LABEL, salt].concat(), &params, &mut key[..])?;
        Ok(key)
    }
}

impl std::fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Passphrase(…)")
    }
}

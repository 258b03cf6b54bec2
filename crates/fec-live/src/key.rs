//! The key that senders and receivers of sealed streams share.

use super::LiveError;
use fec_base::error::{Action, Error, Place, Result};
use fec_base::io::output::write_secret;
use fec_base::io::{small, system};
use fec_keys::passphrases::make_key;
use std::path::Path;
use zeroize::Zeroizing;

/// Bytes of a key.
pub const KEY_LEN: usize = 32;

/// The work of making a key from a passphrase (RFC 7914): 64 MiB, and a fifth of a second or more.
const LOG_N: u8 = 16;
const R: u32 = 8;
const P: u32 = 1;
/// The salt is the same everywhere: sender and receiver share only the passphrase.
const SALT: &[u8] = b"fec stream passphrase 1";

/// The fewest characters of a passphrase for a new stream. Whoever records a packet tries guesses offline, and the salt
/// makes one table of guesses serve against all streams. By the estimate of NIST SP 800-63 (2006) for words that people
/// choose, 12 characters are worth 24 bits, 39 days of one core at a fifth of a second a guess; 20 are worth 36 bits,
/// 435 years. Five words drawn by dice from 7776 are worth 64 bits, and have more characters.
pub const SHORTEST_PASSPHRASE: usize = 20;

/// 32 secret bytes. They are overwritten when the key is dropped.
#[derive(Clone)]
pub struct StreamKey(Zeroizing<[u8; KEY_LEN]>);

impl std::fmt::Debug for StreamKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StreamKey(…)")
    }
}

impl StreamKey {
    /// A key of these bytes.
    pub fn new(bytes: [u8; KEY_LEN]) -> StreamKey {
        StreamKey(Zeroizing::new(bytes))
    }

    /// A new key, from the system's source of randomness.
    ///
    /// # Errors
    /// Those of that source.
    pub fn generate() -> Result<StreamKey> {
        let mut bytes = Zeroizing::new([0; KEY_LEN]);
        system::random(&mut bytes[..]).map_err(|e| Error::io(Action::MakeKey, Place::Nowhere, e))?;
        Ok(StreamKey(bytes))
    }

    /// The key of a passphrase for a new stream, made as by [`from_passphrase`](StreamKey::from_passphrase); those with
    /// fewer characters than [`SHORTEST_PASSPHRASE`] are refused.
    ///
    /// # Errors
    /// [`LiveError::ShortPassphrase`], [`LiveError::Memory`].
    pub fn from_new_passphrase(passphrase: &str) -> Result<StreamKey> {
        if passphrase.chars().count() < SHORTEST_PASSPHRASE {
            return Err(Error::new(
                Action::MakeKey,
                LiveError::ShortPassphrase { least: SHORTEST_PASSPHRASE },
            ));
        }
        StreamKey::from_passphrase(passphrase)
    }

    /// The key of a passphrase: scrypt with N = 2^16, r = 8, p = 1. Everybody who knows or guesses the passphrase has
    /// it. It takes 64 MiB of memory, and a fifth of a second or more.
    ///
    /// # Errors
    /// [`LiveError::Memory`].
    pub fn from_passphrase(passphrase: &str) -> Result<StreamKey> {
        let params = fec_keys::passphrases::Params::new(LOG_N, R, P).expect("the numbers are allowed");
        let mut bytes = Zeroizing::new([0; KEY_LEN]);
        make_key(passphrase.as_bytes(), SALT, &params, &mut bytes[..])
            .map_err(|e| Error::new(Action::MakeKey, LiveError::from(e)))?;
        Ok(StreamKey(bytes))
    }

    /// Reads a key file: the 32 bytes and nothing else.
    ///
    /// # Errors
    /// Those of the file; [`LiveError::KeyFile`] when it is longer or shorter.
    pub fn read(path: &Path) -> Result<StreamKey> {
        let fail = |e| Error::io(Action::ReadKey, path, e);
        let bytes = small::read(path, KEY_LEN).map_err(fail)?;
        let key = bytes.and_then(|bytes| bytes.as_slice().try_into().ok());
        key.map(StreamKey::new).ok_or_else(|| Error::at(Action::ReadKey, path, LiveError::KeyFile))
    }

    /// Writes a key file that only its owner may read.
    ///
    /// # Errors
    /// Those of the file, also if it exists.
    pub fn write(&self, path: &Path) -> Result<()> {
        write_secret(path, &self.0[..])
    }

    pub(super) fn bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// The bytes are those of Python's `hashlib.scrypt`, which is OpenSSL's.
    #[test]
    fn the_key_of_a_passphrase() {
        let key = StreamKey::from_passphrase("correct horse battery").expect("it is long enough");
        let hex: String = key.bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "d534676cef3d22d1bdecb94fb2c589c3cf81d71ce37311d451d12ab8ddc8fda4");
        let new = StreamKey::from_new_passphrase("correct horse battery").expect("it is long enough");
        assert_eq!(new.bytes(), key.bytes());
        for short in ["", "twelve chars", "nineteen characters", "ééééééééééééééééééé"] {
            let refused = StreamKey::from_new_passphrase(short).expect_err(short);
            assert!(matches!(refused.cause(), Some(LiveError::ShortPassphrase { least: 20 })), "{refused}");
        }
    }

    #[test]
    fn key_files_have_32_bytes_and_are_for_their_owner() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("key");
        let key = StreamKey::generate().expect("a key");
        assert_ne!(key.bytes(), StreamKey::generate().expect("a key").bytes());
        key.write(&path).expect("it is written");
        assert_eq!(std::fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o600);
        assert_eq!(StreamKey::read(&path).expect("it is read").bytes(), key.bytes());
        assert!(key.write(&path).is_err(), "no key is overwritten");
        for bytes in [&b""[..], &[7; 31], &[7; 33]] {
            std::fs::write(&path, bytes).expect("it is written");
            assert!(StreamKey::read(&path).is_err(), "{}", bytes.len());
        }
        assert_eq!(format!("{key:?}"), "StreamKey(…)");
    }
}

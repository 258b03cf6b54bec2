//! An encrypted temporary file, for data that must be whole before it is sealed.

use chacha20::cipher::{KeyIvInit, StreamCipher, StreamCipherSeek};
use chacha20::{ChaCha20Legacy, Key, LegacyNonce};
use fec_base::error::{Action, Error, Place, Result};
use fec_base::io::spool::Spool;
use fec_base::io::system;
use fec_core::executor::lock;
use fec_keys::cipher::KEY;
use std::io;
use std::path::Path;
use std::sync::Mutex;
use zeroize::Zeroizing;

/// Bytes encrypted at a time.
const PIECE: usize = 256 << 10;

/// A temporary file without a name, encrypted with a key that only this process has, and only while it runs. A person
/// who reads the disk afterwards learns nothing. The file is not authentic, and a person who sees the disk before and
/// after bytes are overwritten learns how they differ: it keeps out finders of the disk, not watchers.
pub struct SecretSpool {
    spool: Spool,
    key: Zeroizing<[u8; KEY]>,
    /// Unused buffers.
    spare: Mutex<Vec<Vec<u8>>>,
}

impl SecretSpool {
    /// An empty spool in this folder.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn within(folder: &Path) -> Result<SecretSpool> {
        let mut key = Zeroizing::new([0; KEY]);
        system::random(&mut key[..]).map_err(|e| Error::io(Action::MakeKey, Place::Nowhere, e))?;
        Ok(SecretSpool { spool: Spool::within(Some(folder))?, key, spare: Mutex::default() })
    }

    /// Writes bytes at `offset`.
    ///
    /// # Errors
    /// Those of the file.
    pub fn put(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let mut buffer = lock(&self.spare).pop().unwrap_or_default();
        let mut at = offset;
        let put = bytes.chunks(PIECE).try_for_each(|piece| {
            buffer.clear();
            buffer.extend_from_slice(piece);
            self.apply(at, &mut buffer);
            at += piece.len() as u64;
            self.spool.put(at - piece.len() as u64, &buffer)
        });
        lock(&self.spare).push(buffer);
        put
    }

    /// Fills `out` with the bytes at `offset`; bytes that were never written are arbitrary.
    ///
    /// # Errors
    /// Errors of the file, and of its early end.
    pub fn get(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.spool.bytes().read_exact_at(offset, out)?;
        self.apply(offset, out);
        Ok(())
    }

    /// Applies the key stream of `offset`.
    fn apply(&self, offset: u64, bytes: &mut [u8]) {
        let mut cipher = ChaCha20Legacy::new(&Key::from(*self.key), &LegacyNonce::default());
        cipher.seek(offset);
        cipher.apply_keystream(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_is_had_back_and_is_not_on_the_disk() {
        let folder = tempfile::tempdir().expect("a folder");
        let spool = SecretSpool::within(folder.path()).expect("a spool");
        let bytes: Vec<u8> = (0..700_000u32).map(|i| (i >> 8) as u8).collect();
        // The spool takes far offsets, in any order.
        for offset in [1 << 40, 77, 3] {
            spool.put(offset, &bytes).expect("it is written");
            let mut back = vec![0; 1000];
            spool.get(offset + 65, &mut back).expect("it is read");
            assert!(back == bytes[65..1065], "{offset}");
            let mut raw = vec![0; 1000];
            spool.spool.bytes().read_exact_at(offset + 65, &mut raw).expect("it is read");
            assert!(raw != back);
        }
    }
}

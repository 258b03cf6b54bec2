//! Passphrases: the shortest length of new ones, and the keys that scrypt (RFC 7914) derives from them.

use fec_base::names::bytes;
use scrypt::errors::InvalidOutputLen;
use std::hint::black_box;

pub use scrypt::Params;

/// The fewest characters of a passphrase that seals something new. Opening tries any passphrase.
pub const SHORTEST_PASSPHRASE: usize = 12;

/// A passphrase that is too short to seal something new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a new passphrase needs at least {SHORTEST_PASSPHRASE} characters")]
pub struct ShortPassphrase;

/// The system lacks the memory, in bytes, that scrypt needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the passphrase takes {} of memory, and the system does not have that much free", bytes(*.0))]
pub struct NoMemory(pub u64);

/// Checks a passphrase that is to seal something new.
///
/// # Errors
/// [`ShortPassphrase`].
pub fn check_new(passphrase: &str) -> Result<(), ShortPassphrase> {
    if passphrase.chars().count() < SHORTEST_PASSPHRASE { Err(ShortPassphrase) } else { Ok(()) }
}

/// Derives a key from a passphrase. Memory: 128·r·(N + p + 1) bytes. A file may dictate that number, and running out of
/// memory would end the process, so the memory is reserved first as a test.
///
/// # Errors
/// [`NoMemory`].
///
/// # Panics
/// If scrypt cannot derive a key of that length: 1 byte to 128 GiB are possible.
pub fn make_key(passphrase: &[u8], salt: &[u8], params: &Params, key: &mut [u8]) -> Result<(), NoMemory> {
    let blocks = params.n().saturating_add(params.p().into()).saturating_add(1);
    let need = blocks.saturating_mul(128 * u64::from(params.r()));
    let mut room = Vec::<u8>::new();
    let len = usize::try_from(need).map_err(|_| NoMemory(need))?;
    room.try_reserve_exact(len).map_err(|_| NoMemory(need))?;
    // The compiler would remove an allocation that nothing writes to.
    drop(black_box(room));
    let made: Result<(), InvalidOutputLen> = scrypt::scrypt(passphrase, salt, params, key);
    made.expect("scrypt makes keys of that length");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_nobody_has_is_refused() {
        // 2^40 blocks of 128·8 bytes: 1 PiB.
        let params = Params::new(40, 8, 1).expect("scrypt allows it");
        let refused =
            make_key(b"passphrase", b"salt", &params, &mut [0; 32]).expect_err("there is not so much");
        assert!(refused.0 >= 1 << 50 && refused.to_string().contains("1024 TiB"), "{refused}");
    }

    #[test]
    fn characters_count_and_not_bytes() {
        assert_eq!(check_new("eleven char"), Err(ShortPassphrase));
        assert_eq!(check_new("ééééééééééé"), Err(ShortPassphrase));
        assert_eq!(check_new("twelve chars"), Ok(()));
    }
}

//! Passphrases: how long new ones have to be, and the keys that scrypt (RFC 7914) makes of them.

use crate::names::bytes;
use scrypt::Params;
use scrypt::errors::InvalidOutputLen;
use std::hint::black_box;

/// Characters that a passphrase needs at least, when something is sealed with it. To open, any is tried.
pub const SHORTEST_PASSPHRASE: usize = 12;

/// A passphrase that is too short for something new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a new passphrase needs at least {SHORTEST_PASSPHRASE} characters")]
pub struct ShortPassphrase;

/// The system does not have the memory, in bytes, that scrypt takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the passphrase takes {} of memory, and the system does not have that much free", bytes(*.0))]
pub struct NoMemory(pub u64);

/// Checks a passphrase that something new is to be sealed with.
///
/// # Errors
/// [`ShortPassphrase`].
pub fn check_new(passphrase: &str) -> Result<(), ShortPassphrase> {
    if passphrase.chars().count() < SHORTEST_PASSPHRASE { Err(ShortPassphrase) } else { Ok(()) }
}

/// Makes a key of a passphrase. Memory: 128·r·(N + p + 1) bytes. How much that is a file may say, and where it cannot be had the
/// process would end: so it is asked for first.
///
/// # Errors
/// [`NoMemory`].
///
/// # Panics
/// If scrypt makes no keys of that length: it makes those of 1 byte to 128 GiB.
pub(crate) fn make_key(
    passphrase: &[u8],
    salt: &[u8],
    params: &Params,
    key: &mut [u8],
) -> Result<(), NoMemory> {
    let blocks = params.n().saturating_add(params.p().into()).saturating_add(1);
    let need = blocks.saturating_mul(128 * u64::from(params.r()));
    let mut room = Vec::<u8>::new();
    let len = usize::try_from(need).map_err(|_| NoMemory(need))?;
    room.try_reserve_exact(len).map_err(|_| NoMemory(need))?;
    // Nothing is written there, and the compiler would leave it out.
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

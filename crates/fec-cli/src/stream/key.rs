//! The key of a sealed stream: from a file, or from a passphrase that is asked for.

use crate::failure::{Exit, Failure, Result};
use fecfile::live::key::StreamKey;
use std::env::VarError;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use zeroize::Zeroizing;

/// Holds the passphrase where nobody can be asked for it.
const VARIABLE: &str = "FEC_PASSPHRASE";

/// The key that the options name, if they name one.
pub(super) fn key(file: Option<&Path>, is_passphrase: bool) -> Result<Option<StreamKey>> {
    match file {
        Some(path) => Ok(Some(StreamKey::read(path)?)),
        None if is_passphrase => Ok(Some(StreamKey::from_passphrase(&passphrase()?)?)),
        None => Ok(None),
    }
}

fn passphrase() -> Result<Zeroizing<String>> {
    match std::env::var(VARIABLE) {
        Ok(passphrase) => return Ok(Zeroizing::new(passphrase)),
        Err(VarError::NotPresent) => {}
        Err(VarError::NotUnicode(passphrase)) => {
            drop(Zeroizing::new(passphrase.into_vec()));
            return Err(Failure::usage(format!("read the passphrase: {VARIABLE} is not UTF-8"))
                .help("both ends have to give the same characters as UTF-8; or use --key-file"));
        }
    }
    // Asks at the terminal: standard input and output may be the payload.
    rpassword::prompt_password("passphrase of the stream: ").map(Zeroizing::new).map_err(|e| {
        Failure::new(Exit::Usage, format!("read the passphrase: {e}"))
            .help(format!("without a terminal, set {VARIABLE}, or use --key-file"))
    })
}

//! The key of a sealed stream: from a file, or from a passphrase that is asked for.

use crate::failure::{Exit, Failure, Result};
use fecfile::live::key::StreamKey;
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
    if let Ok(passphrase) = std::env::var(VARIABLE) {
        return Ok(Zeroizing::new(passphrase));
    }
    // Asks at the terminal: standard input and output may be the payload.
    rpassword::prompt_password("passphrase of the stream: ").map(Zeroizing::new).map_err(|e| {
        Failure::new(Exit::Usage, format!("read the passphrase: {e}"))
            .help(format!("without a terminal, set {VARIABLE}, or use --key-file"))
    })
}

//! The key of a sealed stream: from a file, or from a passphrase that is asked for.

use crate::failure::Result;
use crate::passphrase;
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
    let as_utf8 = "both ends have to give the same characters as UTF-8; or use --key-file";
    if let Some(passphrase) = passphrase::of_variable(VARIABLE, as_utf8)? {
        return Ok(passphrase);
    }
    let help = format!("without a terminal, set {VARIABLE}, or use --key-file");
    passphrase::asked("passphrase of the stream: ", &help)
}

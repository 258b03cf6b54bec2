//! Passphrases: asked for at the terminal, or taken from a variable where nobody can be asked.

use crate::failure::{Exit, Failure, Result};
use std::env::VarError;
use std::os::unix::ffi::OsStringExt;
use zeroize::Zeroizing;

/// Holds the passphrase where nobody can be asked for it.
pub(crate) const VARIABLE: &str = "FEC_PASSPHRASE";

/// The passphrase `of` something: from the variable, or from the terminal. A new one is asked for twice there. `instead` says what
/// else there is to give.
pub(crate) fn ask(of: &str, is_new: bool, instead: &str) -> Result<Zeroizing<String>> {
    match std::env::var(VARIABLE) {
        Ok(passphrase) => return Ok(Zeroizing::new(passphrase)),
        Err(VarError::NotPresent) => {}
        Err(VarError::NotUnicode(passphrase)) => {
            drop(Zeroizing::new(passphrase.into_vec()));
            return Err(Failure::usage(format!("read the passphrase: {VARIABLE} is not UTF-8"))
                .help(format!("both ends have to give the same characters as UTF-8; or use {instead}")));
        }
    }
    // Asks at the terminal: standard input and output may be the payload.
    let prompt = |text: String| {
        rpassword::prompt_password(text).map(Zeroizing::new).map_err(|e| {
            Failure::new(Exit::Usage, format!("read the passphrase: {e}"))
                .help(format!("without a terminal, set {VARIABLE}, or use {instead}"))
        })
    };
    let passphrase = prompt(format!("passphrase of {of}: "))?;
    if is_new && prompt("the same again: ".to_owned())? != passphrase {
        return Err(Failure::usage("read the passphrase: the two are not the same"));
    }
    Ok(passphrase)
}

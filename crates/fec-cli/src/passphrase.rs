//! Passphrases: from a variable of the environment, or asked for at the terminal.

use crate::failure::{Exit, Failure, Result};
use std::env::VarError;
use std::os::unix::ffi::OsStringExt;
use zeroize::Zeroizing;

/// The passphrase that the variable holds, if it is set. `help` says what to do when it is not UTF-8.
pub(crate) fn of_variable(variable: &str, help: &str) -> Result<Option<Zeroizing<String>>> {
    match std::env::var(variable) {
        Ok(passphrase) => Ok(Some(Zeroizing::new(passphrase))),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(passphrase)) => {
            drop(Zeroizing::new(passphrase.into_vec()));
            Err(Failure::usage(format!("read the passphrase: {variable} is not UTF-8")).help(help))
        }
    }
}

/// Asks at the terminal: standard input and output may be the payload. `help` says what to do without a terminal.
pub(crate) fn asked(prompt: &str, help: &str) -> Result<Zeroizing<String>> {
    rpassword::prompt_password(prompt)
        .map(Zeroizing::new)
        .map_err(|e| Failure::new(Exit::Usage, format!("read the passphrase: {e}")).help(help))
}

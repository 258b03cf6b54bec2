//! Passphrases: from a variable of the environment, or asked for at the terminal.

use crate::failure::{Exit, Failure, Result};
use fecfile::passphrases::check_new;
use std::env::VarError;
use std::fs::OpenOptions;
use std::os::unix::ffi::OsStringExt;
use zeroize::Zeroizing;

/// Holds the passphrase of what is sealed where nobody can be asked for it.
const VARIABLE: &str = "FEC_PASSPHRASE";

/// The passphrase of what is sealed, `of`: from the variable, or from the terminal, where a new one is asked for twice; a new one
/// is not short. `instead` says what else there is to give.
pub(crate) fn of_sealed(of: &str, is_new: bool, instead: &str) -> Result<Zeroizing<String>> {
    let as_utf8 = format!("both ends have to give the same characters as UTF-8; or use {instead}");
    let check = |passphrase: &str| match check_new(passphrase) {
        Err(e) if is_new => Err(Failure::usage(format!("read the passphrase: {e}"))),
        _ => Ok(()),
    };
    if let Some(passphrase) = of_variable(VARIABLE, &as_utf8)? {
        check(&passphrase)?;
        return Ok(passphrase);
    }
    let help = format!("without a terminal, set {VARIABLE}, or use {instead}");
    let passphrase = asked(&format!("passphrase of {of}: "), &help)?;
    check(&passphrase)?;
    if is_new {
        confirm(&passphrase)?;
    }
    Ok(passphrase)
}

/// Asks for a new passphrase once more.
pub(crate) fn confirm(passphrase: &str) -> Result<()> {
    if *asked("once more: ", "")? != *passphrase {
        return Err(Failure::usage("read the passphrase: the two differ"));
    }
    Ok(())
}

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

/// Whether there is a terminal to ask at.
pub(crate) fn has_terminal() -> bool {
    OpenOptions::new().read(true).write(true).open("/dev/tty").is_ok()
}

/// Asks at the terminal: standard input and output may be the payload. `help` says what to do without a terminal.
pub(crate) fn asked(prompt: &str, help: &str) -> Result<Zeroizing<String>> {
    rpassword::prompt_password(prompt)
        .map(Zeroizing::new)
        .map_err(|e| Failure::new(Exit::Usage, format!("read the passphrase: {e}")).help(help))
}

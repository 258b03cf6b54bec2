//! Passphrases: from a variable of the environment, or asked for at the terminal.

use crate::say::failure::{Exit, Failure, Result};
use fec_keys::passphrases::check_new;
use std::env::VarError;
use std::fs::OpenOptions;
use std::os::unix::ffi::OsStringExt;
use zeroize::Zeroizing;

/// The variable with the passphrase of sealed data, for runs that can ask nobody.
const VARIABLE: &str = "FEC_PASSPHRASE";

/// The passphrase of `of`, from the variable or else from the terminal. A new passphrase must not be short, and the
/// terminal asks for it twice. `instead` names the alternative in advice.
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

/// The passphrase in the variable, if it is set. `help` is the advice if it is not UTF-8.
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

/// Tells whether there is a terminal to ask at.
pub(crate) fn has_terminal() -> bool {
    OpenOptions::new().read(true).write(true).open("/dev/tty").is_ok()
}

/// Asks at the terminal itself: standard input and output may carry the payload. `help` is the advice without a
/// terminal.
pub(crate) fn asked(prompt: &str, help: &str) -> Result<Zeroizing<String>> {
    rpassword::prompt_password(prompt)
        .map(Zeroizing::new)
        .map_err(|e| Failure::new(Exit::Usage, format!("read the passphrase: {e}")).help(help))
}

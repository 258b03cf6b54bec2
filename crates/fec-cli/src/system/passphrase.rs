//! Passphrases: from a variable of the environment, or asked for at the terminal.

use crate::plan::keys::{check_passphrase, check_same, no_passphrase, passphrase_of};
use crate::say::failure::Result;
use crate::system::border::TERMINAL;
use std::fs::OpenOptions;
use zeroize::Zeroizing;

/// The variable with the passphrase of sealed data, for runs that can ask nobody.
const VARIABLE: &str = "FEC_PASSPHRASE";

/// The passphrase of `of`, from the variable or else from the terminal. A new passphrase must not be short, and the
/// terminal asks for it twice. `instead` names the alternative in advice.
pub(crate) fn of_sealed(of: &str, is_new: bool, instead: &str) -> Result<Zeroizing<String>> {
    let as_utf8 = format!("both ends have to give the same characters as UTF-8; or use {instead}");
    if let Some(passphrase) = of_variable(VARIABLE, &as_utf8)? {
        check_passphrase(&passphrase, is_new)?;
        return Ok(passphrase);
    }
    let help = format!("without a terminal, set {VARIABLE}, or use {instead}");
    let passphrase = asked(&format!("passphrase of {of}: "), &help)?;
    check_passphrase(&passphrase, is_new)?;
    if is_new {
        confirm(&passphrase)?;
    }
    Ok(passphrase)
}

/// Asks for a new passphrase once more.
pub(crate) fn confirm(passphrase: &str) -> Result<()> {
    check_same(passphrase, &asked("once more: ", "")?)
}

/// The passphrase in the variable, if it is set. `help` is the advice if it is not UTF-8.
pub(crate) fn of_variable(variable: &str, help: &str) -> Result<Option<Zeroizing<String>>> {
    passphrase_of(variable, std::env::var(variable), help)
}

/// Tells whether there is a terminal to ask at.
pub(crate) fn has_terminal() -> bool {
    OpenOptions::new().read(true).write(true).open(TERMINAL).is_ok()
}

/// Asks at the terminal itself: standard input and output may carry the payload. `help` is the advice without a
/// terminal.
pub(crate) fn asked(prompt: &str, help: &str) -> Result<Zeroizing<String>> {
    rpassword::prompt_password(prompt).map(Zeroizing::new).map_err(|e| no_passphrase(e).help(help))
}

//! Keys and passphrases, as options and files give them. No message repeats a key, or a line of a file of keys: it may
//! be secret.

use super::{Table, check, refusals};
use crate::line::seal::Seal;
use crate::say::failure::{Exit, Failure, Result, misuse};
use fec_base::names::show;
use fec_keys::age::{self, Recipient};
use fec_keys::passphrases::check_new;
use std::env::VarError;
use std::fmt::Display;
use std::path::Path;
use zeroize::Zeroizing;

/// The options of sealing, and how many recipients they name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sealed {
    is_asked_for: bool,
    has_cipher: bool,
    has_passphrase: bool,
    recipients: usize,
}

const SEALED: Table<Sealed> = refusals! {
    |of| of.has_cipher && !of.is_asked_for => "--cipher is for sealing, and no recipient is named",
        "name a key with --recipient, or give --passphrase";
    |of| of.has_passphrase && of.recipients > 0 => "--passphrase cannot be combined with recipients",
        "age files are for keys or for one passphrase";
    |of| of.is_asked_for && !of.has_passphrase && of.recipients == 0 =>
        "the files of --recipients-file name no recipients", "";
};

/// Refuses to seal for these recipients, by the options.
///
/// # Errors
/// Wrong use.
pub(crate) fn check_sealed(seal: &Seal, recipients: &[Recipient]) -> Result<()> {
    let (has_cipher, has_passphrase) = (seal.cipher.is_some(), seal.passphrase);
    let recipients = recipients.len();
    let of = Sealed { is_asked_for: seal.is_asked_for(), has_cipher, has_passphrase, recipients };
    check(&of, SEALED, |_| String::new())
}

/// The recipient that stands in the option with this number, of `count`. `is_file` tells whether it is a path.
///
/// # Errors
/// Wrong use.
pub(crate) fn recipient(text: &str, (nth, count): (usize, usize), is_file: bool) -> Result<Recipient> {
    text.parse().map_err(|e| {
        let nth = if count > 1 { format!(" number {nth}") } else { String::new() };
        Failure::usage(format!("--recipient{nth}: {e}")).help(match is_file {
            true => "it is a file: name it with -R",
            false => "a recipient begins with age1, age1pq1 or ssh-ed25519",
        })
    })
}

/// The recipients that the file at `path` lists.
///
/// # Errors
/// Wrong use.
pub(crate) fn recipients(path: &Path, bytes: &[u8]) -> Result<Vec<Recipient>> {
    let text = std::str::from_utf8(bytes).map_err(|_| no_keys(path, "it is not text (UTF-8)"))?;
    age::recipients_of(text).map_err(|e| no_keys(path, e))
}

/// The failure of a file that holds no keys.
pub(crate) fn no_keys(path: &Path, why: impl Display) -> Failure {
    Failure::usage(format!("read {}: {why}", show(path)))
}

/// The content of a file of keys, if it was short enough to be read.
///
/// # Errors
/// Wrong use.
pub(crate) fn short<T>(path: &Path, bytes: Option<T>) -> Result<T> {
    bytes.ok_or_else(|| no_keys(path, "it is too large for a file of keys"))
}

/// The passphrase in a file, which is one line. `None`: the file is longer.
///
/// # Errors
/// Wrong use.
pub(crate) fn passphrase_in(path: &Path, bytes: Option<&[u8]>) -> Result<Zeroizing<String>> {
    let line = bytes.map(|bytes| {
        let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        // On Windows lines end in two characters, and the passphrase is the same everywhere.
        line.strip_suffix(b"\r").filter(|_| line.len() < bytes.len()).unwrap_or(line)
    });
    let text = line.and_then(|line| std::str::from_utf8(line).ok()).filter(|text| !text.contains('\n'));
    text.map(|text| Zeroizing::new(text.to_owned()))
        .ok_or_else(|| misuse("read the passphrase", path, "it is not a single line of text"))
}

/// The passphrase in a variable, if it is set. `help` is the advice if it is not UTF-8.
///
/// # Errors
/// Wrong use.
pub(crate) fn passphrase_of(
    variable: &str,
    value: std::result::Result<String, VarError>,
    help: &str,
) -> Result<Option<Zeroizing<String>>> {
    match value {
        Ok(passphrase) => Ok(Some(Zeroizing::new(passphrase))),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(passphrase)) => {
            drop(Zeroizing::new(passphrase.into_encoded_bytes()));
            Err(no_passphrase(format!("{variable} is not UTF-8")).help(help))
        }
    }
}

/// Refuses a passphrase that is made now and is too short.
///
/// # Errors
/// Wrong use.
pub(crate) fn check_passphrase(passphrase: &str, is_new: bool) -> Result<()> {
    match check_new(passphrase) {
        Err(e) if is_new => Err(no_passphrase(e)),
        _ => Ok(()),
    }
}

/// Refuses a passphrase that was typed twice, and not in the same way.
///
/// # Errors
/// Wrong use.
pub(crate) fn check_same(first: &str, again: &str) -> Result<()> {
    if first == again { Ok(()) } else { Err(no_passphrase("the two differ")) }
}

/// The failure of a passphrase that cannot be had.
pub(crate) fn no_passphrase(why: impl Display) -> Failure {
    Failure::new(Exit::Usage, format!("read the passphrase: {why}"))
}

/// Refuses a signature that nobody named, by whether something else than a regular file is there: reading a FIFO would
/// never end.
pub(crate) const SIGNATURE: Table<bool> = refusals! {
    |is_other| *is_other => "read the signature {path}: it is not a regular file", "";
};

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj";

    #[test]
    fn every_row_refuses_its_options() {
        let asked = Sealed { is_asked_for: true, has_cipher: true, has_passphrase: false, recipients: 1 };
        let seen = [
            Sealed { is_asked_for: false, recipients: 0, ..asked },
            Sealed { has_passphrase: true, ..asked },
            Sealed { recipients: 0, ..asked },
        ];
        crate::plan::assert_rows(SEALED, &seen);
        crate::plan::assert_rows(SIGNATURE, &[true]);
        for fine in [asked, Sealed { has_passphrase: true, recipients: 0, ..asked }] {
            assert!(check(&fine, SEALED, str::to_owned).is_ok(), "{fine:?}");
        }
    }

    #[test]
    fn what_is_no_recipient_is_not_repeated() {
        assert!(recipient(KEY, (1, 1), false).is_ok());
        for (text, is_file, help) in [("AGE-SECRET-KEY-1", false, "begins with"), ("keys", true, "with -R")] {
            let refused = recipient(text, (2, 3), is_file).expect_err(text);
            assert!(refused.message.starts_with("--recipient number 2: "), "{refused}");
            assert!(!refused.message.contains(text) && refused.help.expect("advice").contains(help));
        }
        let path = Path::new("keys");
        assert_eq!(recipients(path, format!("# mine\n{KEY}\n").as_bytes()).expect("a key").len(), 1);
        for bytes in [&b"\xff"[..], b"AGE-SECRET-KEY-1\n"] {
            let refused = recipients(path, bytes).expect_err("no keys").message;
            assert!(refused.starts_with("read keys: ") && !refused.contains("SECRET"), "{refused}");
        }
        assert!(short(path, Some(1)).is_ok() && short::<u8>(path, None).is_err());
    }

    #[test]
    fn passphrases_are_one_line_and_new_ones_are_long() {
        let path = Path::new("p");
        for (bytes, expected) in
            [("a b\n", "a b"), ("a b\r\n", "a b"), ("a b", "a b"), ("a b\r", "a b\r"), ("a\r\r\n", "a\r")]
        {
            assert_eq!(*passphrase_in(path, Some(bytes.as_bytes())).expect("a line"), expected);
        }
        for bytes in [None, Some(&b"a\nb\n"[..]), Some(b"\xff")] {
            assert!(passphrase_in(path, bytes).is_err(), "{bytes:?}");
        }
        #[cfg(unix)]
        {
            use std::os::unix::ffi::OsStringExt;
            let not_text = VarError::NotUnicode(std::ffi::OsString::from_vec(vec![0xff]));
            assert!(passphrase_of("V", Err(not_text), "").is_err());
        }
        assert!(passphrase_of("V", Err(VarError::NotPresent), "").expect("nothing").is_none());
        assert!(check_passphrase("short", true).is_err() && check_passphrase("short", false).is_ok());
        assert!(check_same("a", "a").is_ok() && check_same("a", "b").is_err());
    }
}

//! The plan of `fec keygen`.

use super::given::Given;
use super::options::KEYS;
use super::{Table, check, refusals};
use crate::line;
use crate::say::failure::Result;
use std::path::Path;

/// The kind of key that is made.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Keygen<'a> {
    /// A key of live streams.
    Stream,
    /// A pair of signing keys. The passphrase may stand in a file.
    Pair { is_hybrid: bool, passphrase: Option<&'a Path> },
    /// An identity of age.
    Identity { is_hybrid: bool },
}

const REFUSALS: Table<line::Keygen> = refusals! {
    |line| line.output.as_os_str() == "-" => "keygen: a key is written to a file: name one with -o", "";
};

/// Refuses the file of a key, by whether something is there.
pub(crate) const FOUND: Table<bool> = refusals! {
    |is_there| *is_there => "write {path}: it exists", "choose another name with -o: no key is overwritten";
};

/// Refuses a secret key without a passphrase that nobody asked for, by whether nobody can be asked.
pub(crate) const UNASKED: Table<bool> = refusals! {
    |is_mute| *is_mute => "keygen --sign: there is no terminal to ask for a passphrase at",
        "give --sign-passphrase-file, or the variable FEC_SIGN_PASSPHRASE; empty, it makes a key without one";
};

impl Keygen<'_> {
    /// The plan of a command line.
    ///
    /// # Errors
    /// Wrong use: options without effect, and the table of refusals.
    pub(crate) fn of(line: &line::Keygen, given: Given) -> Result<Keygen<'_>> {
        given.check(KEYS)?;
        check(line, REFUSALS, |_| String::new())?;
        Ok(match (line.stream, line.sign) {
            (true, _) => Keygen::Stream,
            (false, true) => {
                Keygen::Pair { is_hybrid: line.pq, passphrase: line.sign_passphrase_file.as_deref() }
            }
            (false, false) => Keygen::Identity { is_hybrid: line.pq },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::Command;

    fn parsed(words: &str) -> (line::Keygen, Given) {
        match crate::plan::parsed("keygen", words) {
            (Command::Keygen(line), given) => (line, given),
            (other, _) => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_line_tells_the_kind_of_key() {
        let plans = [
            ("-o k", Keygen::Identity { is_hybrid: false }),
            ("-o k --pq", Keygen::Identity { is_hybrid: true }),
            ("-o k --stream", Keygen::Stream),
            ("-o k --sign", Keygen::Pair { is_hybrid: false, passphrase: None }),
            ("-o k --sign --pq", Keygen::Pair { is_hybrid: true, passphrase: None }),
            (
                "-o k --sign --sign-passphrase-file p",
                Keygen::Pair { is_hybrid: false, passphrase: Some(Path::new("p")) },
            ),
        ];
        for (words, plan) in plans {
            let (line, given) = parsed(words);
            assert_eq!(Keygen::of(&line, given).unwrap_or_else(|e| panic!("{words}: {e}")), plan, "{words}");
        }
    }

    #[test]
    fn every_row_refuses_its_line() {
        let (line, given) = parsed("-o -");
        assert_eq!(Keygen::of(&line, given).expect_err("a dash").message, REFUSALS[0].what);
        crate::plan::assert_rows(FOUND, &[true]);
        crate::plan::assert_rows(UNASKED, &[true]);
    }
}

//! The refusals of `fec attest`.

use super::{Table, refusals};
use crate::line;

/// The bytes of a file that is attested, or of a statement, as far as they were looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Something else than roots.
    NoRoots,
    /// A file of roots that has more bytes than a statement is signed for.
    TooManyRoots,
    /// Something else than a statement, and why.
    NoStatement,
}

const MADE_BY: &str = "make one:\n  fec encode FILE --root-file FILE.root";

/// The refusals of a command line.
pub(crate) const REFUSALS: Table<line::Attest> = refusals! {
    |line| line.roots.as_os_str() == "-" => "attest -: the bytes of a file are attested, and have to be kept", MADE_BY;
};

/// The refusals of what was found. The value `{why}` says what is wrong with a statement.
pub(crate) const FOUND: Table<Found> = refusals! {
    |found| *found == Found::NoRoots => "attest {path}: it is no file of roots", MADE_BY;
    |found| *found == Found::TooManyRoots => "attest {path}: it is no file of roots, or one of more than 1 MiB", "attest the file that --root-file or > made, or shorter lists";
    |found| *found == Found::NoStatement => "read {path}: it is no statement of fec attest: {why}",
        "of a bundle it is the payload:\n  jq -r .dsseEnvelope.payload BUNDLE | base64 -d > STATEMENT";
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::Command;

    #[test]
    fn every_row_refuses() {
        let (Command::Attest(line), _) = crate::plan::parsed("attest", "-") else {
            panic!("another command")
        };
        crate::plan::assert_rows(REFUSALS, &[line]);
        crate::plan::assert_rows(FOUND, &[Found::NoRoots, Found::TooManyRoots, Found::NoStatement]);
    }
}

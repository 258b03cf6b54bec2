//! The plan of `fec protect`.

use super::given::Given;
use super::options::{GENERATIONS, NEW, UPDATE};
use super::{Table, check, refusals};
use crate::line;
use crate::line::seal::Seal;
use crate::say::failure::Result;

/// The work of a protect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protect {
    /// A sidecar is made.
    New,
    /// A sidecar that is there is brought up to date.
    Update,
    /// The generations of a sidecar are listed.
    List,
}

const REFUSALS: Table<line::Protect> = refusals! {
    |line| line.signature.is_some() && line.secret.sign.is_none() && line.signer.is_empty() =>
        "protect: --signature is for --sign and --signer", "";
    |line| line.follow && (line.root.is_some() || !line.signer.is_empty() || line.secret.sign.is_some()) =>
        "protect --follow: with --root, --signer and --sign an update reads everything",
        "update it from time to time, with them and --append";
    |line| line.follow && line.seal != Seal::default() =>
        "protect --follow: each update of a sealed sidecar seals all of it again",
        "update it from time to time, with them and --append";
};

/// The state of the paths, and of the places of the sidecar and its signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The only path is a sidecar. `has_command`: the command is known that brings it up to date.
    Sidecar { has_command: bool },
    /// Several paths, and no name for the sidecar.
    Several,
    /// A path that nothing lies beside.
    Top,
    /// The files of the sidecar and of its signature.
    Signature { is_sidecar: bool, are_there: bool, is_signed_anew: bool, is_forced: bool },
}

/// `{command}` is the command that was meant.
pub(crate) const FOUND: Table<Found> = refusals! {
    |found| *found == Found::Sidecar { has_command: true } => "protect {path}: it is a sidecar",
        "to bring it up to date, name what it protects:\n  {command}";
    |found| *found == Found::Sidecar { has_command: false } => "protect {path}: it is a sidecar",
        "name the files or folders that it protects; it is PATH.fecp, or the one named with -o";
    |found| *found == Found::Several => "protect: several files or folders have no name in common",
        "name the sidecar with -o";
    |found| *found == Found::Top => "protect /: nothing lies beside it", "name the sidecar with -o";
    |found| matches!(found, Found::Signature { are_there: true, is_signed_anew: false, is_forced: false, .. }) =>
        "protect {path}: the sidecar is signed, and the signature would not fit it any more",
        "sign it again with --sign, or go on with -f, which leaves the signature as it is";
    |found| matches!(found, Found::Signature { is_sidecar: true, .. }) => "write {path}: it is the sidecar",
        "choose another --signature";
};

impl Protect {
    /// The plan of a command line.
    ///
    /// # Errors
    /// Wrong use: options without effect, and the table of refusals.
    pub(crate) fn of(line: &line::Protect, given: Given) -> Result<Protect> {
        let (plan, mode) = match (line.update, line.list) {
            (_, true) => (Protect::List, GENERATIONS),
            (true, false) => (Protect::Update, UPDATE),
            (false, false) => (Protect::New, NEW),
        };
        given.check(mode)?;
        check(line, REFUSALS, |_| String::new()).map(|()| plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::Command;

    fn plan(words: &str) -> Result<Protect> {
        match crate::plan::parsed("protect", words) {
            (Command::Protect(line), given) => Protect::of(&line, given),
            (other, _) => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_line_tells_the_work_and_is_refused_by_its_rows() {
        assert_eq!(plan("a").expect("a plan"), Protect::New);
        assert_eq!(plan("a --list").expect("a plan"), Protect::List);
        assert!(plan("a --list --portable").is_err());
        assert_eq!(plan("a -u --sign key --signature s").expect("a plan"), Protect::Update);
        for (row, words) in
            REFUSALS.iter().zip(["a --signature s", "a --follow --sign k", "a --follow --passphrase"])
        {
            assert_eq!(plan(words).expect_err("a refusal").message, row.what);
        }
    }

    #[test]
    fn every_row_refuses_what_was_found() {
        let signature = |is_sidecar, is_signed_anew, is_forced| Found::Signature {
            is_sidecar,
            are_there: true,
            is_signed_anew,
            is_forced,
        };
        let found = [
            Found::Sidecar { has_command: true },
            Found::Sidecar { has_command: false },
            Found::Several,
            Found::Top,
            signature(false, false, false),
            signature(true, true, false),
        ];
        crate::plan::assert_rows(FOUND, &found);
        for fine in [signature(false, true, false), signature(false, false, true)] {
            assert!(check(&fine, FOUND, str::to_owned).is_ok(), "{fine:?}");
        }
    }
}

//! The plan of `fec repair`.

use super::given::Given;
use super::options::{CONTAINER, COPIES, MIRRORS, SEVERAL, SHARDS, SIDECAR, SIDECARS, STORES};
use super::{Table, check, refusals};
use crate::line;
use crate::say::failure::Result;

/// The work of a repair, as far as the command line tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repair {
    /// Lost objects in stores are made anew.
    Stores,
    /// A sidecar or an encoding, with copies elsewhere.
    Copies,
    /// A sidecar, or an encoding: it depends on what the inputs hold.
    Inputs,
}

/// Refuses places without a root.
const OF_STORES: Table<line::Repair> = refusals! {
    |line| line.root.is_none() =>
        "repair --from: it takes --root, or a PATH in front",
        "of shards in stores: fec repair --from URL --root HEX\nfrom copies of what is lost: fec repair PATH --from URL";
};

/// Refuses a repair of a sidecar and what it protects.
const OF_SIDECAR: Table<line::Repair> = refusals! {
    |line| line.undo.as_ref().is_some_and(|undo| undo.as_os_str() == "-") =>
        "repair: --undo needs the name of a file", "";
};

/// An input that is not repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The input or the output is a pipe.
    Pipe,
    /// The sidecar with the root that was asked for, beside other inputs.
    RootAmongOthers,
    /// The sidecar with the root that was asked for, further down in an input: it may be a copy, whose files are not
    /// there.
    RootBelow,
    /// Several things, where copies of one are named.
    Several,
    /// Another user's sidecar or container, or a link to one, that was found in a named folder, or beside it.
    NotOwn,
}

/// `{command}` repairs what was found.
pub(crate) const FOUND: Table<Found> = refusals! {
    |found| *found == Found::Pipe => "repair: a pipe cannot be repaired", "name files, or a folder of them";
    |found| *found == Found::RootAmongOthers =>
        "repair {path}: it is a sidecar with this root, and is named by itself",
        "name nothing else:\n  {command}";
    |found| *found == Found::RootBelow =>
        "repair {path}: it is the sidecar with this root, and is named by itself",
        "name it, and nothing else:\n  {command}";
    |found| *found == Found::Several =>
        "repair --from: {path}: copies elsewhere serve one sidecar or one encoding", "name it alone, or with its --root";
    |found| *found == Found::NotOwn =>
        "repair {path}: it was not named, and is not your own file: what it says would be written over files",
        "if you trust whoever made it, name it:\n  {command}";
};

/// The finds in the named places, where no root was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places {
    /// Places that are named.
    pub(crate) named: usize,
    pub(crate) sidecars: usize,
    pub(crate) encodings: usize,
    /// The shard files of all encodings lie together.
    pub(crate) are_together: bool,
}

/// The way to repair what was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// A sidecar, in full.
    Sidecar,
    /// The only encoding, in full.
    One,
    /// The only encoding that is whole, in full, or else a line for each.
    Together,
    /// A line for each.
    Rows,
}

impl Places {
    pub(crate) fn way(self) -> Way {
        match (self.sidecars, self.encodings) {
            (0, 0 | 1) => Way::One,
            (0, _) if self.are_together => Way::Together,
            (1, 0) if self.named == 1 => Way::Sidecar,
            _ => Way::Rows,
        }
    }
}

impl Repair {
    /// The plan of a command line.
    ///
    /// # Errors
    /// Wrong use: options without effect.
    pub(crate) fn of(line: &line::Repair, given: Given) -> Result<Repair> {
        match (line.from.urls.is_empty(), line.inputs.is_empty()) {
            (false, true) => {
                given.check(STORES)?;
                check(line, OF_STORES, |_| String::new()).map(|()| Repair::Stores)
            }
            (false, false) => given.only_for(&[MIRRORS, COPIES]).map(|()| Repair::Copies),
            (true, _) => {
                given.only_for(&[SHARDS, CONTAINER, SIDECAR, SEVERAL, SIDECARS]).map(|()| Repair::Inputs)
            }
        }
    }
}

/// Refuses options that do nothing for what was found: a sidecar, or something else.
///
/// # Errors
/// Wrong use.
pub(crate) fn check_options(line: &line::Repair, given: Given, is_sidecar: bool) -> Result<()> {
    if !is_sidecar {
        return match line.from.urls.is_empty() {
            true => given.only_for(&[SHARDS, CONTAINER]),
            false => given.check(COPIES),
        };
    }
    given.check(if line.from.urls.is_empty() { SIDECAR } else { MIRRORS })?;
    check(line, OF_SIDECAR, |_| String::new())
}

/// Tells whether the line names a pipe.
pub(crate) fn names_pipe(line: &line::Repair) -> bool {
    line.inputs.iter().chain(&line.output).any(|path| path.as_os_str() == "-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::Command;

    fn parsed(words: &str) -> (line::Repair, Given) {
        match crate::plan::parsed("repair", words) {
            (Command::Repair(line), given) => (line, given),
            (other, _) => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_line_tells_the_work() {
        let root = "00000000000000000000000000000000000000000000000000000000000000aa";
        let stored = format!("--from one --root {root} --to two");
        for (words, plan) in [
            ("a", Repair::Inputs),
            ("a.fecp -n", Repair::Inputs),
            ("a.fecp --from one", Repair::Copies),
            (&stored, Repair::Stores),
        ] {
            let (line, given) = parsed(words);
            assert_eq!(Repair::of(&line, given).unwrap_or_else(|e| panic!("{words}: {e}")), plan, "{words}");
        }
        for words in ["a --now", "--from one", "a --from one --to two", "a --from one --deep"] {
            let (line, given) = parsed(words);
            assert!(Repair::of(&line, given).is_err(), "{words}");
        }
    }

    #[test]
    fn options_act_on_sidecars_or_on_encodings() {
        for (words, of_sidecar, of_encoding) in [
            ("a", true, true),
            ("a --undo u", true, false),
            ("a --undo -", false, false),
            ("a --revert", true, false),
            ("a -f", false, true),
            ("a --from one", true, true),
            ("a --from one -n", true, false),
            ("a --from one --revert", true, false),
        ] {
            let (line, given) = parsed(words);
            assert_eq!(check_options(&line, given, true).is_ok(), of_sidecar, "{words}");
            assert_eq!(check_options(&line, given, false).is_ok(), of_encoding, "{words}");
        }
        assert!(names_pipe(&parsed("-").0) && names_pipe(&parsed("a -o -").0) && !names_pipe(&parsed("a").0));
    }

    #[test]
    fn what_was_found_tells_the_way() {
        let none = Places { named: 1, ..Places::default() };
        for (places, way) in [
            (none, Way::One),
            (Places { encodings: 1, named: 3, ..none }, Way::One),
            (Places { encodings: 2, are_together: true, ..none }, Way::Together),
            (Places { encodings: 2, ..none }, Way::Rows),
            (Places { sidecars: 1, ..none }, Way::Sidecar),
            (Places { sidecars: 1, named: 2, ..none }, Way::Rows),
            (Places { sidecars: 1, encodings: 1, ..none }, Way::Rows),
            (Places { sidecars: 2, ..none }, Way::Rows),
        ] {
            assert_eq!(places.way(), way, "{places:?}");
        }
    }

    #[test]
    fn every_row_refuses_what_was_found() {
        crate::plan::assert_rows(OF_SIDECAR, &[parsed("a.fecp --undo -").0]);
        crate::plan::assert_rows(OF_STORES, &[parsed("--from one").0]);
        let found = [Found::Pipe, Found::RootAmongOthers, Found::RootBelow, Found::Several, Found::NotOwn];
        crate::plan::assert_rows(FOUND, &found);
    }
}

//! The plan of `fec verify`.

use super::given::Given;
use super::options::{AUDIT, CONTAINER, LIST, PART, PIPE, SEVERAL, SHARDS, SIDECAR, SIDECARS, STORES};
use super::{Table, check, refusals};
use crate::line;
use crate::say::failure::Result;
use std::path::Path;

/// The question of a verify, as far as the command line tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verify<'a> {
    /// Shards in stores.
    Stores,
    /// Some bytes of shards in stores.
    Audit,
    /// Each line of this list of roots.
    List(&'a Path),
    /// The inputs, whatever they hold: [`way`] decides how they are examined.
    Inputs,
}

/// The finds in the named places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// Places that are named.
    pub(crate) places: usize,
    /// A root was asked for. Only sidecars that have it count then.
    pub(crate) has_root: bool,
    pub(crate) sidecars: usize,
    /// The first sidecar is not sealed, or a key is given.
    pub(crate) is_open: bool,
    /// Encodings of shard files, and containers.
    pub(crate) shards: usize,
    pub(crate) containers: usize,
    /// The shard files of all encodings lie together.
    pub(crate) are_together: bool,
    /// A folder among several places holds nothing: it may be a disk that is not mounted.
    pub(crate) has_bare: bool,
}

/// The way to examine what was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// A sidecar, in full.
    Sidecar,
    /// The sidecars that have the root, a line each.
    SidecarsOfRoot,
    /// The encoding that has the root, with a line for each place that does not have it.
    RowsOfRoot,
    /// The encoding that has the root, in full.
    OneOfRoot,
    /// The container in a folder, in full.
    Container,
    /// The only encoding, in full.
    Alone,
    /// The only encoding that is whole, in full, or else a line for each.
    Together,
    /// A line for each.
    Rows,
}

/// The way to examine what was found.
pub(crate) fn way(found: Found) -> Way {
    let Found { places, has_root, sidecars, is_open, shards, containers, .. } = found;
    let is_one = sidecars == 1 && places == 1 && is_open;
    match (sidecars, shards, containers) {
        // A folder holds one sidecar and no encoding.
        (1.., 0, 0) if is_one => Way::Sidecar,
        (1.., ..) if is_one && has_root => Way::Sidecar,
        (1.., ..) if has_root => Way::SidecarsOfRoot,
        (1.., ..) => Way::Rows,
        (0, 1.., _) if found.has_bare && has_root => Way::RowsOfRoot,
        (0, 1.., _) if found.has_bare => Way::Rows,
        _ if has_root => Way::OneOfRoot,
        (0, 0, 1) if places == 1 => Way::Container,
        (0, 0 | 1, 0) => Way::Alone,
        // Often all but one encoding are strays.
        _ if found.are_together => Way::Together,
        _ => Way::Rows,
    }
}

/// Refuses the examination of a sidecar and what it protects.
const OF_SIDECAR: Table<line::Verify> = refusals! {
    |line| line.budget.is_some() && line.state.is_none() && line.sample.is_none() =>
        "verify: --budget needs --state or --sample",
        "with --state FILE the next run goes on with what was not looked at";
};

/// An input that cannot be examined as it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// A sidecar, where shards are counted.
    Shardless,
    /// A place whose sidecar has another root than the one that was asked for.
    OtherRoot,
}

/// `{sidecar}` is the sidecar, and `{command}` examines it.
pub(crate) const WRONG: Table<Wrong> = refusals! {
    |wrong| *wrong == Wrong::Shardless => "verify --need {path}: it is a sidecar, which has no shards",
        "name the shard files and containers alone";
    |wrong| *wrong == Wrong::OtherRoot => "verify {path}: its sidecar is {sidecar}, which has another root",
        "leave it out here, and then:\n  {command}";
};

/// Most wrong lines of a list that are reported one by one.
pub(crate) const MOST_WRONG: u64 = 10;
const MADE_BY: &str = "such lines are printed by:\n  fec encode FILE... -o '{}.shards/'";

/// The lines of a list of roots, as far as it was read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Roots {
    /// As many bytes were read as a list may have.
    pub(crate) is_full: bool,
    /// The list was read to its end.
    pub(crate) is_over: bool,
    pub(crate) wrong: u64,
    pub(crate) right: usize,
}

pub(crate) const ROOTS: Table<Roots> = refusals! {
    |roots| roots.is_full => "read {path}: the list is too long, or never ends", MADE_BY;
    |roots| roots.right == 0 && (roots.wrong == MOST_WRONG || (roots.is_over && roots.wrong > 0)) =>
        "read {path}: it is no list of roots", MADE_BY;
    |roots| roots.right == 0 && roots.is_over => "read {path}: it lists nothing", MADE_BY;
};

impl Verify<'_> {
    /// The plan of a command line.
    ///
    /// # Errors
    /// Wrong use: options without effect.
    pub(crate) fn of(line: &line::Verify, given: Given) -> Result<Verify<'_>> {
        if line.audit {
            return given.check(AUDIT).map(|()| Verify::Audit);
        }
        if !line.stores.from.is_empty() {
            return given.check(STORES).map(|()| Verify::Stores);
        }
        given.check_format()?;
        match &line.roots {
            Some(list) => given.check(LIST).map(|()| Verify::List(list)),
            None => {
                let modes = [SHARDS, CONTAINER, PIPE, SIDECAR, PART, SEVERAL, SIDECARS];
                given.only_for(&modes).map(|()| Verify::Inputs)
            }
        }
    }
}

/// Refuses options that do nothing for what was found: one sidecar, or no sidecar.
///
/// # Errors
/// Wrong use.
pub(crate) fn check_options(line: &line::Verify, given: Given, is_sidecar: bool) -> Result<()> {
    if !is_sidecar {
        return given.only_for(&[SHARDS, CONTAINER, PIPE, SEVERAL]);
    }
    given.check(SIDECAR)?;
    check(line, OF_SIDECAR, |_| String::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::Command;

    fn parsed(words: &str) -> (line::Verify, Given) {
        match crate::plan::parsed("verify", words) {
            (Command::Verify(line), given) => (line, given),
            (other, _) => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_line_tells_the_question() {
        let root = "00000000000000000000000000000000000000000000000000000000000000aa";
        let stored = format!("--from one --root {root}");
        for (words, plan) in [
            ("", Verify::Inputs),
            ("a b --need 3", Verify::Inputs),
            ("--roots list", Verify::List(Path::new("list"))),
            (&stored, Verify::Stores),
        ] {
            let (line, given) = parsed(words);
            assert_eq!(Verify::of(&line, given).unwrap_or_else(|e| panic!("{words}: {e}")), plan, "{words}");
        }
        for words in ["a --json --format text", "--roots list --need 3 --quick"] {
            let (line, given) = parsed(words);
            assert!(Verify::of(&line, given).is_err(), "{words}");
        }
    }

    #[test]
    fn what_was_found_tells_the_way() {
        let none = Found { places: 1, is_open: true, ..Found::default() };
        let sidecar = Found { sidecars: 1, ..none };
        let shards = Found { shards: 1, ..none };
        let rooted = |found| Found { has_root: true, ..found };
        let bare = |found| Found { has_bare: true, places: 2, ..found };
        for (found, expected) in [
            (sidecar, Way::Sidecar),
            (Found { is_open: false, ..sidecar }, Way::Rows),
            (Found { places: 2, ..sidecar }, Way::Rows),
            (Found { sidecars: 2, ..sidecar }, Way::Rows),
            (Found { shards: 1, ..sidecar }, Way::Rows),
            (rooted(Found { shards: 1, ..sidecar }), Way::Sidecar),
            (rooted(Found { is_open: false, ..sidecar }), Way::SidecarsOfRoot),
            (rooted(Found { places: 2, ..sidecar }), Way::SidecarsOfRoot),
            (bare(shards), Way::Rows),
            (rooted(bare(shards)), Way::RowsOfRoot),
            (rooted(bare(none)), Way::OneOfRoot),
            (rooted(Found { shards: 3, ..none }), Way::OneOfRoot),
            (Found { containers: 1, ..none }, Way::Container),
            (Found { containers: 1, places: 2, ..none }, Way::Rows),
            (none, Way::Alone),
            (shards, Way::Alone),
            (Found { shards: 2, are_together: true, ..none }, Way::Together),
            (Found { shards: 2, ..none }, Way::Rows),
            (Found { containers: 2, ..none }, Way::Rows),
        ] {
            assert_eq!(way(found), expected, "{found:?}");
        }
    }

    #[test]
    fn every_row_refuses_what_was_found() {
        crate::plan::assert_rows(OF_SIDECAR, &[parsed("a.fecp --budget 2h").0]);
        crate::plan::assert_rows(WRONG, &[Wrong::Shardless, Wrong::OtherRoot]);
        let read = Roots { is_over: true, ..Roots::default() };
        let full = Roots { is_full: true, ..Roots::default() };
        crate::plan::assert_rows(ROOTS, &[full, Roots { wrong: 1, ..read }, read]);
        for fine in
            [Roots { right: 1, wrong: 99, ..read }, Roots { wrong: MOST_WRONG - 1, ..Roots::default() }]
        {
            assert!(check(&fine, ROOTS, str::to_owned).is_ok(), "{fine:?}");
        }
    }

    #[test]
    fn options_act_on_sidecars_or_on_encodings() {
        for (words, of_sidecar, of_encoding) in
            [("a", true, true), ("a --quick", true, false), ("a --need 3", false, true)]
        {
            let (line, given) = parsed(words);
            assert_eq!(check_options(&line, given, true).is_ok(), of_sidecar, "{words}");
            assert_eq!(check_options(&line, given, false).is_ok(), of_encoding, "{words}");
        }
    }
}

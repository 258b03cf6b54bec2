//! The work that a command line asks for, decided before any of it is done: an enum of what can be asked of a command,
//! the options that act on each, and one table of refusals. Nothing here looks at a file. Where the way depends on what
//! the inputs hold, `run` finds that out, and hands over what was found as a value.

pub(crate) mod attest;
pub(crate) mod bench;
pub(crate) mod common;
pub(crate) mod decode;
pub(crate) mod encode;
#[cfg(feature = "stores")]
pub(crate) mod forget;
pub(crate) mod given;
pub(crate) mod keygen;
pub(crate) mod keys;
#[cfg(feature = "stores")]
pub(crate) mod list;
pub(crate) mod lists;
pub(crate) mod manifest;
pub(crate) mod named;
pub(crate) mod options;
pub(crate) mod protect;
pub(crate) mod repair;
pub(crate) mod stdout;
#[cfg(feature = "stores")]
pub(crate) mod stores;
pub(crate) mod verify;

use crate::say::failure::{Failure, Result};

/// Wrong use that a command line tells, or what was found where it leads. In the words, `{path}` and other names in
/// braces stand for what is refused.
pub(crate) struct Refusal<Seen: 'static> {
    /// Tells whether what is seen is refused.
    applies: fn(&Seen) -> bool,
    /// The message.
    what: &'static str,
    /// Advice; may be empty.
    help: &'static str,
}

/// The refusals of what is seen. The first row that applies counts.
pub(crate) type Table<Seen> = &'static [Refusal<Seen>];

/// A table of refusals, a row each: `condition => message, advice;`.
macro_rules! refusals {
    ($($applies:expr => $what:expr, $help:expr;)*) => {
        &[$(crate::plan::Refusal { applies: $applies, what: $what, help: $help },)*]
    };
}
use refusals;

/// Refuses what is seen by the first row of the table that applies. `value` has the values of the names in its words.
///
/// # Errors
/// Wrong use.
pub(crate) fn check<Seen>(seen: &Seen, table: Table<Seen>, value: impl Fn(&str) -> String) -> Result<()> {
    match table.iter().find(|row| (row.applies)(seen)) {
        None => Ok(()),
        Some(row) if row.help.is_empty() => Err(Failure::usage(filled_in(row.what, &value))),
        Some(row) => Err(Failure::usage(filled_in(row.what, &value)).help(filled_in(row.help, &value))),
    }
}

/// The failure of [`check`], where a row applies to all that is seen.
pub(crate) fn refused<Seen>(seen: &Seen, table: Table<Seen>, value: impl Fn(&str) -> String) -> Failure {
    check(seen, table, value).expect_err("a row for each")
}

/// Words with the values of the names that stand in braces.
fn filled_in(words: &str, value: &impl Fn(&str) -> String) -> String {
    let mut parts = words.split('{');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once('}') {
            Some((name, rest)) if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase()) => {
                out += &value(name);
                out += rest;
            }
            _ => out.extend(["{", part]),
        }
    }
    out
}

/// The line of a command, and the options that stand in it.
#[cfg(test)]
fn parsed(command: &str, words: &str) -> (crate::line::Command, given::Given) {
    use crate::line::Cli;
    use clap::{CommandFactory, FromArgMatches};
    let mut fec = Cli::command();
    let words = ["fec", command].into_iter().chain(words.split_whitespace());
    let matches = fec.try_get_matches_from_mut(words).unwrap_or_else(|e| panic!("{e}"));
    let given = given::Given::new(&fec, &matches);
    (Cli::from_arg_matches(&matches).expect("a line").command, given)
}

/// Checks that the row with each number is the first of a table to refuse what stands there.
#[cfg(test)]
fn assert_rows<Seen: std::fmt::Debug>(table: Table<Seen>, seen: &[Seen]) {
    assert_eq!(table.len(), seen.len());
    for (nth, seen) in seen.iter().enumerate() {
        let first = table.iter().position(|row| (row.applies)(seen));
        assert_eq!(first, Some(nth), "{seen:?}");
        let refused = check(seen, table, |name| format!("<{name}>")).expect_err("a refusal");
        assert!(!refused.message.is_empty() && refused.exit == crate::say::failure::Exit::Usage);
    }
}

#[cfg(test)]
mod tests {
    use super::filled_in;

    #[test]
    fn names_in_braces_have_values_and_other_braces_stay() {
        let words = "write {path}: {} or {/}, '{}.shards/' of {command}";
        let filled = filled_in(words, &|name: &str| format!("<{name}>"));
        assert_eq!(filled, "write <path>: {} or {/}, '{}.shards/' of <command>");
    }
}

//! The work that a command line asks for, decided before any of it is done: an enum of what can be asked of a command,
//! the options that act on each, and one table of refusals. Nothing here looks at a file.

pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod given;
pub(crate) mod options;

use crate::say::failure::{Failure, Result};

/// Wrong use that the command line alone tells.
pub(crate) struct Refusal<Line: 'static> {
    /// Tells whether the line is refused.
    applies: fn(&Line) -> bool,
    /// The message.
    what: &'static str,
    /// Advice; may be empty.
    help: &'static str,
}

/// Refuses a command line by the first row of the table that applies.
///
/// # Errors
/// Wrong use.
fn check<Line>(line: &Line, table: &[Refusal<Line>]) -> Result<()> {
    match table.iter().find(|row| (row.applies)(line)) {
        None => Ok(()),
        Some(row) if row.help.is_empty() => Err(Failure::usage(row.what)),
        Some(row) => Err(Failure::usage(row.what).help(row.help)),
    }
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

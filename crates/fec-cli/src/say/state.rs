//! The words that the JSON objects of all commands share: docs/schema has them all.

use crate::say::failure::Exit;
use serde::Serialize;

/// The version of all JSON objects that fec prints. It changes when a field changes its meaning.
pub(crate) const SCHEMA_VERSION: u32 = 1;

/// The findings on all that was asked for, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    Intact,
    /// Damaged, missing, edited or left as it was; or it was, and is mended now.
    Damaged,
    /// Not all of it can be restored.
    Lost,
    /// Not looked at, or not what was asked for.
    Refused,
}

impl From<Exit> for State {
    fn from(exit: Exit) -> State {
        match exit {
            Exit::Done => State::Intact,
            Exit::Mendable => State::Damaged,
            Exit::Lost => State::Lost,
            Exit::Untrue | Exit::Refused | Exit::Io | Exit::Usage | Exit::Interrupted => State::Refused,
        }
    }
}

/// The end of a command: its exit code, and what was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    exit: Exit,
    state: State,
}

impl From<Exit> for Outcome {
    fn from(exit: Exit) -> Outcome {
        Outcome { exit, state: exit.into() }
    }
}

impl Outcome {
    /// The end of a command that has mended something, or would mend it, if `is_mended`.
    pub(crate) fn mended(exit: Exit, is_mended: bool) -> Outcome {
        let state = if is_mended { State::Damaged } else { State::Intact };
        Outcome { exit, state: state.max(exit.into()) }
    }
}

/// The fields that every JSON object begins with.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Head<'a> {
    schema_version: u32,
    command: &'a str,
    exit_code: u8,
    state: State,
}

/// An object with its first fields.
#[derive(Debug, Serialize)]
pub(crate) struct Headed<'a, R> {
    #[serde(flatten)]
    head: Head<'a>,
    #[serde(flatten)]
    report: &'a R,
}

impl<'a> Head<'a> {
    pub(crate) fn new(command: &'a str, outcome: impl Into<Outcome>) -> Head<'a> {
        let Outcome { exit, state } = outcome.into();
        Head { schema_version: SCHEMA_VERSION, command, exit_code: exit.code(), state }
    }

    pub(crate) fn with<R>(self, report: &'a R) -> Headed<'a, R> {
        Headed { head: self, report }
    }
}

/// An object that begins with the version and the command already, with the other fields that all have.
#[derive(Debug, Serialize)]
pub(crate) struct Ended<'a, R> {
    exit_code: u8,
    state: State,
    #[serde(flatten)]
    report: &'a R,
}

impl<'a, R> Ended<'a, R> {
    pub(crate) fn new(report: &'a R, exit: Exit) -> Ended<'a, R> {
        Ended { exit_code: exit.code(), state: exit.into(), report }
    }
}

/// How much more may be lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Margin {
    /// Shards of any set; negative if so many are lacking.
    pub(crate) shards: Option<i64>,
    /// Bytes in a row.
    pub(crate) gap_bytes: Option<u64>,
    /// Bytes of blocks, whichever these are.
    pub(crate) any_bytes: Option<u64>,
    /// Bytes of blocks that are lost at random, in 999 of 1,000 cases.
    pub(crate) scattered_bytes: Option<u64>,
    /// Packets in a row, of a live stream.
    pub(crate) packets: Option<u64>,
}

impl Margin {
    #[cfg(unix)]
    pub(crate) fn of_spare(spare: &fec_sidecar::examine::Spare) -> Margin {
        Margin {
            gap_bytes: Some(spare.one_piece),
            any_bytes: Some(spare.anywhere),
            scattered_bytes: Some(spare.scattered),
            ..Margin::default()
        }
    }

    pub(crate) fn of_shards(shards: Option<impl Into<i64>>) -> Margin {
        Margin { shards: shards.map(Into::into), ..Margin::default() }
    }
}

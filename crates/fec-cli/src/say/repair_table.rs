//! A line for each of several repairs, and a summary.

use crate::say::failure::{Exit, Failure};
use crate::say::state;
use serde::Serialize;
use std::time::Instant;

/// The outcome of a repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// There was nothing to repair.
    Intact,
    /// All is as it should be now, or would be.
    Repaired,
    /// Something was left as it is: an edit, or what a place cannot hold.
    Left,
    /// A sidecar is sealed and no key is given: its files were not looked at.
    Unopened,
    /// Something could not be repaired.
    Failed,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            State::Intact => "intact",
            State::Repaired => "repaired",
            State::Left => "left",
            State::Unopened => "not looked at",
            State::Failed => "failed",
        }
    }
}

/// A repair that has ended.
pub(crate) struct Done {
    pub(crate) form: &'static str,
    pub(crate) root: String,
    /// Something was repaired, or would be.
    pub(crate) did: bool,
}

/// An encoding or a sidecar, and what was done with it.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    path: String,
    form: &'static str,
    #[serde(skip)]
    state: State,
    /// The findings, in the word that all have for them.
    #[serde(rename = "state")]
    found: state::State,
    root: Option<String>,
    /// The outcome in words.
    verdict: Option<String>,
    /// The reason why nothing was repaired.
    error: Option<String>,
    exit_code: u8,
    #[serde(skip)]
    pub(crate) exit: Exit,
}

impl Row {
    pub(crate) fn new(path: &str, done: Done, verdict: String, exit: Exit) -> Row {
        let Done { form, root, did } = done;
        let state = match (exit, did) {
            (Exit::Done, false) => State::Intact,
            (Exit::Done | Exit::Mendable, true) => State::Repaired,
            (Exit::Mendable, false) => State::Left,
            _ => State::Failed,
        };
        let found = if state == State::Repaired { state::State::Damaged } else { exit.into() };
        let (root, verdict, exit_code) = (Some(root), Some(verdict), exit.code());
        Row { path: path.to_owned(), form, state, found, root, verdict, error: None, exit_code, exit }
    }

    /// The row of the container of a sealed sidecar.
    pub(crate) fn unopened(self) -> Row {
        let exit = if self.exit == Exit::Done { Exit::Mendable } else { self.exit };
        let found = state::State::Refused;
        Row { form: "sidecar", state: State::Unopened, found, exit_code: exit.code(), exit, ..self }
    }

    pub(crate) fn failed(path: &str, failure: &Failure) -> Row {
        // The first line is the reason. The other lines list what is there.
        let error = failure.message.lines().next().map(str::to_owned);
        let (exit, exit_code) = (failure.exit, failure.exit.code());
        let (form, state, found) = ("unknown", State::Failed, exit.into());
        Row { path: path.to_owned(), form, state, found, root: None, verdict: None, error, exit_code, exit }
    }

    /// Tells whether anything was repaired, or would be.
    pub(crate) fn has_work(&self) -> bool {
        self.state == State::Repaired
    }

    pub(crate) fn describe(&self) -> String {
        let why = match self.state {
            State::Intact => "nothing to repair",
            _ => self.verdict.as_deref().or(self.error.as_deref()).unwrap_or_default(),
        };
        format!("{}: {}: {why}", self.path, self.state.word())
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct Report<'a> {
    encodings: &'a [Row],
    seconds: f64,
}

impl Report<'_> {
    pub(crate) fn new(rows: &[Row], started: Instant) -> Report<'_> {
        let seconds = started.elapsed().as_secs_f64();
        Report { encodings: rows, seconds }
    }

    /// The number of rows in each state.
    pub(crate) fn describe(&self) -> String {
        let states = [State::Intact, State::Repaired, State::Left, State::Unopened, State::Failed];
        let count = |state: State| self.encodings.iter().filter(|row| row.state == state).count();
        let counts = states.into_iter().map(|state| (count(state), state.word()));
        let named: Vec<String> =
            counts.filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
        format!("{} in all: {}", self.encodings.len(), named.join(", "))
    }
}

//! A line for each of several encodings, as text, or as a Markdown table for the summary of a job.

use crate::say::failure::{Exit, Failure};
use crate::say::state::{self, Margin};
use fec_base::names::{counted, hex};
use fecfile::report::{ShardState, Verified};
use serde::Serialize;

/// The state of an encoding, as its line says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Intact,
    Damaged,
    Lost,
    /// The encoding could not be examined, or is not the one that was asked for.
    Failed,
    /// A sidecar is sealed and no key is given: its files were not looked at.
    Unopened,
}

/// An encoding and its findings.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    path: String,
    form: &'static str,
    #[serde(skip)]
    pub(crate) state: State,
    #[serde(rename = "state")]
    found: state::State,
    root: Option<String>,
    /// The proof that it is what was asked for: `root`, or the key that signed it.
    proved_by: Option<String>,
    /// The findings in words, the number of entries, and how many are intact: for sidecars only.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    entries: Option<usize>,
    k: usize,
    m: usize,
    intact: usize,
    damaged: usize,
    missing: usize,
    margin: Margin,
    /// The number of places with an intact copy of the seal, if the payload is sealed.
    seal_places: Option<u32>,
    /// The reason why the encoding could not be examined.
    error: Option<String>,
    exit_code: u8,
    #[serde(skip)]
    pub(crate) exit: Exit,
    /// True if sizes and first bytes were all that was looked at.
    #[serde(skip)]
    is_glance: bool,
}

impl Row {
    pub(crate) fn new(path: String, verified: &Verified, exit: Exit) -> Row {
        let code = verified.shape.code;
        let count = |state| verified.found.shards.iter().filter(|shard| shard.state == state).count();
        let state = match verified.is_restorable {
            _ if verified.is_intact() => State::Intact,
            Some(false) => State::Lost,
            Some(true) | None => State::Damaged,
        };
        Row {
            path,
            form: verified.form.name(),
            state,
            found: exit.into(),
            verdict: None,
            entries: None,
            root: verified.root.map(|root| hex(&root)),
            proved_by: None,
            k: code.k(),
            m: code.m(),
            intact: count(ShardState::Intact),
            damaged: count(ShardState::Damaged),
            missing: count(ShardState::Missing),
            margin: Margin::of_shards(verified.may_still_lose()),
            seal_places: verified.found.seal_places,
            error: None,
            exit_code: exit.code(),
            exit,
            is_glance: false,
        }
    }

    /// A row without shards.
    fn bare(path: String, form: &'static str, state: State, exit: Exit) -> Row {
        Row {
            path,
            form,
            state,
            found: exit.into(),
            root: None,
            proved_by: None,
            verdict: None,
            entries: None,
            k: 0,
            m: 0,
            intact: 0,
            damaged: 0,
            missing: 0,
            margin: Margin::default(),
            seal_places: None,
            error: None,
            exit_code: exit.code(),
            exit,
            is_glance: false,
        }
    }

    /// A row for a sidecar and the files it protects: how many there are, and how many are intact.
    pub(crate) fn of_sidecar(
        path: String,
        root: &str,
        (entries, intact): (usize, usize),
        (verdict, exit): (String, Exit),
    ) -> Row {
        let state = match exit {
            Exit::Done => State::Intact,
            Exit::Mendable => State::Damaged,
            _ => State::Lost,
        };
        Row {
            root: Some(root.to_owned()),
            verdict: Some(verdict),
            entries: Some(entries),
            intact,
            ..Row::bare(path, "sidecar", state, exit)
        }
    }

    /// A row for shards in stores: those of the segment that has the fewest to spare.
    #[cfg(feature = "stores")]
    pub(crate) fn of_stores(
        path: String,
        root: &str,
        (k, m): (usize, usize),
        [intact, damaged, missing]: [usize; 3],
        (margin, deep, exit): (Margin, bool, Exit),
    ) -> Row {
        let state = match (exit, margin.shards) {
            (Exit::Done, _) => State::Intact,
            (_, Some(0..)) => State::Damaged,
            _ => State::Lost,
        };
        Row {
            root: Some(root.to_owned()),
            is_glance: !deep,
            k,
            m,
            intact,
            damaged,
            missing,
            margin,
            ..Row::bare(path, "stores", state, exit)
        }
    }

    /// The same row with the proof of its root.
    pub(crate) fn proved_by(self, proved_by: Option<String>) -> Row {
        Row { proved_by, ..self }
    }

    /// The row of the container of a sealed sidecar. Its files were not looked at, and may have been asked about.
    pub(crate) fn of_sealed(self, is_all_asked: bool) -> Row {
        if is_all_asked {
            return Row { form: "sidecar", ..self };
        }
        let (state, found, exit) = match self.exit {
            Exit::Done => (State::Unopened, state::State::Refused, Exit::Mendable),
            _ => (self.state, self.found, self.exit),
        };
        let what = "it is sealed, and looking at its files takes its key: -i FILE, or --passphrase";
        let verdict = Some(format!("{}; {what}", self.shards()));
        Row { form: "sidecar", state, found, verdict, exit, exit_code: exit.code(), ..self }
    }

    pub(crate) fn failed(path: String, failure: &Failure) -> Row {
        // The first line is the reason. The others list what is there: another root is that of what took the place.
        let mut lines = failure.message.lines();
        let found = |line: &str| line.trim_start().starts_with("found: root ");
        let error = lines.next().map(|reason| match lines.next().filter(|line| found(line)) {
            Some(other) => format!("{reason}; {}", other.trim_start()),
            None => reason.to_owned(),
        });
        Row { error, ..Row::bare(path, "unknown", State::Failed, failure.exit) }
    }

    fn shards(&self) -> String {
        let mut out = format!("{} of {} shards intact", self.intact, self.k + self.m);
        for (count, what) in [(self.damaged, "damaged"), (self.missing, "missing")] {
            if count > 0 {
                out.push_str(&format!(", {count} {what}"));
            }
        }
        out
    }

    pub(crate) fn describe(&self) -> String {
        let word = match self.state {
            State::Intact => "intact",
            State::Damaged => "damaged",
            State::Lost => "lost",
            State::Failed => "failed",
            State::Unopened => "not looked at",
        };
        if let Some(verdict) = &self.verdict {
            return format!("{}: {word}: {verdict}", self.path);
        }
        let what = match (self.state, self.margin.shards) {
            (State::Intact, _) => format!("intact: {}", self.shards()),
            (State::Damaged, Some(0)) => format!("damaged: {}; no further one may be lost", self.shards()),
            (State::Damaged, Some(spare)) => {
                format!("damaged: {}; any {spare} more may be lost", self.shards())
            }
            (State::Damaged, None) => format!("damaged: {}", self.shards()),
            (State::Lost, _) if self.seal_places == Some(0) => {
                format!("lost: {}; every copy of the seal is lost", self.shards())
            }
            (State::Lost, _) => format!("lost: {}; {} are needed", self.shards(), self.k),
            (State::Failed | State::Unopened, _) => {
                format!("{word}: {}", self.error.as_deref().unwrap_or_default())
            }
        };
        format!("{}: {what}", self.path)
    }
}

/// The number of encodings in each state.
pub(crate) fn summary(rows: &[Row]) -> String {
    let count = |state| rows.iter().filter(|row| row.state == state).count();
    let states = [
        (State::Intact, "intact"),
        (State::Damaged, "damaged"),
        (State::Lost, "lost"),
        (State::Failed, "failed"),
        (State::Unopened, "not looked at"),
    ];
    let counts = states.map(|(state, name)| (count(state), name));
    let named: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, name)| format!("{count} {name}"))
        .collect();
    let sidecars = rows.iter().filter(|row| row.form == "sidecar").count();
    let what = match (rows.len() - sidecars, sidecars) {
        (encodings, 0) => counted(encodings, "encoding"),
        (0, sidecars) => counted(sidecars, "sidecar"),
        (encodings, sidecars) => {
            format!("{} and {}", counted(encodings, "encoding"), counted(sidecars, "sidecar"))
        }
    };
    format!("{what}: {}", named.join(", "))
}

/// The rows as a Markdown table.
pub(crate) fn markdown(rows: &[Row]) -> String {
    let mut out = "| encoding | state | intact | damaged | missing | may still be lost | proved by | root |\n|---|---|--:|--:|--:|--:|---|---|\n"
        .to_owned();
    for row in rows {
        let state = match row.state {
            State::Intact => "intact".to_owned(),
            State::Damaged => "**damaged**, can be restored".to_owned(),
            State::Lost => "**lost**".to_owned(),
            State::Failed => format!("**failed**: {}", cell(row.error.as_deref().unwrap_or_default())),
            State::Unopened => "**not looked at**: sealed".to_owned(),
        };
        let state = if row.is_glance { state + ", by sizes and first bytes" } else { state };
        let numbers = match (row.state, row.entries) {
            (State::Failed, _) => [String::new(), String::new(), String::new()],
            (_, Some(all)) => [format!("{} of {all}", row.intact), String::new(), String::new()],
            _ => [
                format!("{} of {}", row.intact, row.k + row.m),
                row.damaged.to_string(),
                row.missing.to_string(),
            ],
        };
        let spare = row.margin.shards.map(|spare| spare.to_string()).unwrap_or_default();
        let root = row.root.as_ref().map(|root| format!("`{root}`")).unwrap_or_default();
        out.push_str(&format!(
            "| {} | {state} | {} | {spare} | {} | {root} |\n",
            cell(&row.path),
            numbers.join(" | "),
            row.proved_by.as_deref().unwrap_or(if row.state == State::Failed { "" } else { "nothing" })
        ));
    }
    out.push_str(&format!("\n{}\n", summary(rows)));
    out
}

/// Text for a table cell. Characters with a meaning in Markdown or HTML are escaped.
fn cell(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' => out.extend(['\\', c]),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::cell;

    #[test]
    fn names_cannot_leave_their_cell() {
        assert_eq!(cell("a|b<img>`c`"), "a\\|b&lt;img>\\`c\\`");
    }
}

//! `fec verify` of several encodings: one line for each, and a summary.

use super::outcome::{exit, find};
use super::report::Asked;
use super::table::{Row, State, markdown, summary};
use crate::args::{self, VerifyFormat};
use crate::failure::{Exit, Failure, Result, misuse, say};
use crate::fits::table::{LIST, SEVERAL, SIDECARS};
use crate::inputs::{MOST_LISTED, open_list};
use crate::settings::{SCHEMA_VERSION, Settings, print_line};
use crate::sidecar;
use crate::sign;
use crate::target::{check_stdin, is_dash};
use fec_core::digest::Digest;
use fec_core::params::Form;
use fecfile::names::show;
use fecfile::roots::parse_line;
use fecfile::sidecar::Sidecar;
use fecfile::survey::Survey;
use fecfile::{Context, Input};
use serde::Serialize;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Most bytes of a list line: a root, and a path with every byte escaped.
const LONGEST_LINE: u64 = 1 + 64 + 2 + 2 * 4096 + 1;
/// Most wrong lines of a list that are reported one by one.
const MOST_WRONG: u64 = 10;
const MADE_BY: &str = "fec encode FILE FILE ... prints such lines";

#[derive(Serialize)]
struct Report<'a> {
    schema_version: u32,
    command: &'static str,
    encodings: &'a [Row],
    intact: usize,
    damaged: usize,
    lost: usize,
    failed: usize,
    seconds: f64,
}

/// Examines each encoding in the named places.
pub(super) fn surveyed(
    survey: &Survey,
    args: &args::Verify,
    settings: &Settings,
    started: Instant,
) -> Result<Exit> {
    let are_sidecars = survey.encodings.is_empty() && survey.unknown.is_empty();
    settings.given.check(if are_sidecars { SIDECARS } else { SEVERAL })?;
    if let Some(sidecar) = survey.sidecars.first().filter(|_| args.need.is_some()) {
        return Err(misuse("verify --need", sidecar, "it is a sidecar, which has no shards")
            .help("name the shard files and containers alone"));
    }
    let mut checks = Checks { args, settings, rows: Vec::new() };
    if !survey.sidecars.is_empty() && checks.together(survey)? {
        // Shards of several encodings lie together, and all but one encoding are strays.
    } else {
        for place in &survey.encodings {
            let input = Input::of_paths(&place.paths);
            // A single shard file counts as an encoding that has lost the others, not as one shard to check.
            let input = if place.form == Form::Shards { input.map(Input::as_several) } else { input };
            checks.check(&place.name, input, place.root)?;
        }
    }
    for path in &survey.sidecars {
        checks.sidecar(path, None)?;
    }
    for path in &survey.unknown {
        checks.add(Row::failed(show(path), &not_encoded()))?;
    }
    checks.finish(started)
}

/// The failure for a named file in which nothing was found.
fn not_encoded() -> Failure {
    Failure::new(Exit::Lost, "no shard or record was found in it")
}

/// Examines each encoding of a list of roots.
pub(super) fn listed(list: &Path, args: &args::Verify, settings: &Settings) -> Result<Exit> {
    let started = Instant::now();
    if is_dash(list) {
        check_stdin("verify --roots")?;
    }
    settings.given.check(LIST)?;
    let mut input = BufReader::new(open_list(list)?.take(MOST_LISTED));
    let mut checks = Checks { args, settings, rows: Vec::new() };
    let mut wrong = 0;
    let mut line = Vec::new();
    for number in 1u64.. {
        if input.get_ref().limit() == 0 {
            return Err(misuse("read", list, "the list is too long, or never ends").help(MADE_BY));
        }
        line.clear();
        let read = (&mut input).take(LONGEST_LINE).read_until(b'\n', &mut line);
        if read.map_err(|e| Failure::io("read", list, e))? == 0 {
            break;
        }
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        if text.trim_ascii().is_empty() {
            continue;
        }
        match parse_line(text).map(|line| (line.root, line.path)) {
            Some((root, Some(path))) if is_sidecar(&path) => checks.sidecar(&path, Some(root))?,
            Some((root, Some(path))) => checks.check(&show(&path), Input::of_paths(&[path]), Some(root))?,
            Some((_, None)) | None => {
                wrong += 1;
                if wrong == MOST_WRONG && checks.rows.is_empty() {
                    return Err(misuse("read", list, "it is no list of roots").help(MADE_BY));
                }
                if wrong <= MOST_WRONG {
                    let list = show(list);
                    say(&format!("fec: read {list}: line {number} is not a root, two spaces and a path"));
                }
            }
        }
    }
    if checks.rows.is_empty() {
        let what = if wrong > 0 { "it is no list of roots" } else { "it lists nothing" };
        return Err(misuse("read", list, what).help(MADE_BY));
    }
    if wrong > MOST_WRONG {
        say(&format!("fec: read {}: {wrong} lines are wrong", show(list)));
    }
    let exit = checks.finish(started)?;
    Ok(if wrong > 0 { exit.max(Exit::Usage) } else { exit })
}

struct Checks<'a> {
    args: &'a args::Verify,
    settings: &'a Settings,
    rows: Vec<Row>,
}

/// Tells whether a path is a sidecar that can be examined without a key.
fn is_sidecar(path: &Path) -> bool {
    path.is_file() && Sidecar::starts(path).unwrap_or(false)
}

impl Checks<'_> {
    /// Examines shards of several encodings as if they were named alone. Returns whether exactly one encoding can be
    /// restored.
    fn together(&mut self, survey: &Survey) -> Result<bool> {
        let places = &survey.encodings;
        if places.len() < 2 || places.iter().any(|place| place.root.is_none()) {
            return Ok(false);
        }
        let paths: Vec<PathBuf> = places.iter().flat_map(|place| place.paths.iter().cloned()).collect();
        let Ok(row) = self.row(&places[0].name, Input::of_paths(&paths), None) else { return Ok(false) };
        self.add(row).map(|()| true)
    }

    /// Examines a sidecar and the files it protects. Without a key, a sealed one counts as a container.
    fn sidecar(&mut self, path: &Path, root: Option<Digest>) -> Result<()> {
        if Sidecar::is_sealed(path).unwrap_or(false) {
            return self.check(&show(path), Input::of_paths(&[path.to_path_buf()]), root);
        }
        self.add(match sidecar::verify::look(path, root, self.args, self.settings) {
            Ok(looked) => Row::of_sidecar(show(path), &looked),
            Err(failure) => Row::failed(show(path), &failure),
        })
    }

    fn check(&mut self, name: &str, input: fecfile::Result<Input>, root: Option<Digest>) -> Result<()> {
        let row =
            self.row(name, input, root).unwrap_or_else(|failure| Row::failed(name.to_owned(), &failure));
        self.add(row)
    }

    fn row(&self, name: &str, input: fecfile::Result<Input>, root: Option<Digest>) -> Result<Row> {
        let Checks { args, settings, .. } = *self;
        let bars = settings.bars("verify");
        let context = Context { settings: settings.library, progress: &bars };
        let trust = sign::trust(&args.trusted)?;
        let input = input?;
        let archive = find(&input, root, trust.as_ref(), &context)?;
        let verified = archive.verify(args.deep, &context)?;
        let asked = Asked { need: args.need, ..Asked::default() };
        Ok(Row::new(name.to_owned(), &verified, exit(&verified, &asked)))
    }

    /// Prints the row at once: later ones may take long.
    fn add(&mut self, row: Row) -> Result<()> {
        if !self.settings.quiet && !self.settings.json && self.args.format == VerifyFormat::Text {
            print_line(&row.describe())?;
        }
        self.settings.report_damage(row.exit, || row.describe());
        self.rows.push(row);
        Ok(())
    }

    fn finish(self, started: Instant) -> Result<Exit> {
        let Checks { args, settings, rows } = self;
        let count = |state| rows.iter().filter(|row| row.state == state).count();
        let report = Report {
            schema_version: SCHEMA_VERSION,
            command: "verify",
            encodings: &rows,
            intact: count(State::Intact),
            damaged: count(State::Damaged),
            lost: count(State::Lost),
            failed: count(State::Failed),
            seconds: started.elapsed().as_secs_f64(),
        };
        let text = match args.format {
            VerifyFormat::Text => summary(&rows),
            VerifyFormat::Markdown => markdown(&rows),
        };
        settings.report_here(&report, &text)?;
        Ok(rows.iter().map(|row| row.exit).max().unwrap_or(Exit::Done))
    }
}

//! `fec verify` of several encodings: one line for each, and a summary.

use super::outcome::{exit, find};
use super::report::Asked;
use super::table::{Row, State, markdown, summary};
use crate::args::{self, VerifyFormat};
use crate::failure::{Exit, Failure, Result, misuse, say};
use crate::settings::{SCHEMA_VERSION, Settings, print_line};
use crate::sign;
use crate::target::{check_stdin, is_dash, open_input};
use fec_core::digest::Digest;
use fec_core::params::Form;
use fecfile::names::show;
use fecfile::roots::parse_line;
use fecfile::survey::Survey;
use fecfile::{Context, Input};
use serde::Serialize;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::time::Instant;

/// Bytes of a line of a list: a root, and a path of which every byte is escaped.
const LONGEST_LINE: u64 = 1 + 64 + 2 + 2 * 4096 + 1;
/// Wrong lines of a list that are told one by one.
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

/// Looks at each encoding that lies in the places that were named.
pub(super) fn surveyed(
    survey: &Survey,
    args: &args::Verify,
    settings: &Settings,
    started: Instant,
) -> Result<Exit> {
    if args.open.is_given() {
        return Err(Failure::usage("verify: -i and --passphrase are for one encoding").help("name it alone"));
    }
    let mut checks = Checks { args, settings, rows: Vec::new() };
    for place in &survey.encodings {
        let input = Input::of_paths(&place.paths);
        // Of an encoding of which one shard is left, too little is left.
        let input = if place.form == Form::Shards { input.map(Input::as_several) } else { input };
        checks.check(&place.name, input, place.root)?;
    }
    for path in &survey.unknown {
        checks
            .add(Row::failed(show(path), &Failure::new(Exit::Lost, "no shard or record was found in it")))?;
    }
    let exit = checks.finish(started)?;
    if !survey.sidecars.is_empty() && !settings.quiet && !settings.json {
        let names: Vec<String> = survey.sidecars.iter().map(show).collect();
        say(&format!("not checked, since a sidecar is named alone: {}", names.join(", ")));
    }
    Ok(exit)
}

/// Looks at each encoding of a list of roots.
pub(super) fn listed(list: &Path, args: &args::Verify, settings: &Settings) -> Result<Exit> {
    let started = Instant::now();
    if is_dash(list) {
        check_stdin("verify --roots")?;
    }
    let mut input = BufReader::new(open_input(list)?);
    let mut checks = Checks { args, settings, rows: Vec::new() };
    let mut wrong = 0;
    let mut line = Vec::new();
    for number in 1u64.. {
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

impl Checks<'_> {
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

    /// Tells it at once: more may take long.
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

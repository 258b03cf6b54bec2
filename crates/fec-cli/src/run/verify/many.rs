//! `fec verify` of several encodings: one line for each, and a summary.

use crate::line::{self, VerifyFormat};
use crate::plan::check;
use crate::plan::lists::MOST_LISTED;
use crate::plan::options::{SEVERAL, SHARDS, SIDECARS};
use crate::plan::verify::{MOST_WRONG, ROOTS, Roots, WRONG, Wrong};
use crate::run::inputs::open_list;
use crate::run::sidecar;
use crate::run::sign;
use crate::run::survey::{Survey, is_plain};
use crate::run::target::{check_stdin, is_dash};
use crate::run::verify::outcome::{exit, find, opens};
use crate::say::failure::{Exit, Failure, Result, gravest, say};
use crate::say::signed::{SignedBy, proved_by};
use crate::say::table::{Row, State, markdown, summary};
use crate::say::verify::Asked;
use crate::settings::{Settings, print_line};
use fec_base::error::Action;
use fec_base::names::{show, show_input};
use fec_base::roots::parse_line;
use fec_core::digest::Digest;
use fec_core::format::seal::SealedKind;
use fec_core::params::Form;
use fec_keys::age::Keys;
use fec_sidecar::kind;
use fecfile::{Archive, Input};
use serde::Serialize;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Most bytes of a list line: a root, and a path with every byte escaped.
const LONGEST_LINE: u64 = 1 + 64 + 2 + 2 * 4096 + 1;

#[derive(Serialize)]
struct Report<'a> {
    encodings: &'a [Row],
    intact: usize,
    damaged: usize,
    lost: usize,
    failed: usize,
    unopened: usize,
    seconds: f64,
}

/// Examines each encoding in the named places.
pub(crate) fn surveyed(
    survey: &Survey,
    args: &line::Verify,
    settings: &Settings,
    started: Instant,
) -> Result<Exit> {
    let are_sidecars = survey.encodings.is_empty() && survey.unknown.is_empty();
    settings.given.check(if are_sidecars { SIDECARS } else { SEVERAL })?;
    if let Some(sidecar) = survey.sidecars.first().filter(|_| args.need.is_some()) {
        check(&Wrong::Shardless, WRONG, |_| show_input(sidecar))?;
    }
    let mut checks = Checks::new(args, settings)?;
    let are_more = !survey.sidecars.is_empty() || has_bare(survey, &args.inputs);
    // Shards of several encodings may lie together, and all but one encoding be strays.
    let is_together = are_more && checks.together(survey)?;
    if !is_together {
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
    for path in survey.unknown.iter().filter(|path| !lies_beside(survey, path)) {
        let failure = if is_plain(path) { foreign() } else { not_encoded() };
        checks.add(Row::failed(show(path), &failure))?;
    }
    let is_one = is_together || matches!(&survey.encodings[..], [place] if place.form == Form::Shards);
    checks.bare(survey, is_one && survey.sidecars.is_empty() && survey.unknown.is_empty())?;
    checks.finish(started)
}

/// Examines the encoding with the root that was asked for, where a named folder holds nothing.
pub(crate) fn one_of_root(
    survey: &Survey,
    args: &line::Verify,
    settings: &Settings,
    started: Instant,
) -> Result<Exit> {
    settings.given.check(SHARDS)?;
    let mut checks = Checks::new(args, settings)?;
    let files = files_of_root(args, settings);
    let named = args.inputs.iter().filter(|path| !is_bare(survey, path));
    // All paths are told by the failure if nothing has the root.
    let (homes, others): (Vec<&PathBuf>, Vec<&PathBuf>) =
        named.partition(|path| files.is_empty() || files.iter().any(|file| file.starts_with(path)));
    let name = homes.into_iter().map(show).collect::<Vec<_>>().join(" ");
    checks.check(&name, Input::of_paths(&args.inputs), args.root)?;
    for path in others {
        let failure = Failure::new(Exit::Mendable, "no shard in it has the root that was asked for");
        checks.add(Row::failed(show(path), &failure))?;
    }
    checks.bare(survey, true)?;
    checks.finish(started)
}

/// The shard files that have the root that was asked for.
fn files_of_root(args: &line::Verify, settings: &Settings) -> Vec<PathBuf> {
    let context = settings.context(&fec_base::context::Silent);
    let archive = Input::of_paths(&args.inputs).and_then(|input| Archive::open(&input, args.root, &context));
    args.root.zip(archive.ok()).map_or_else(Vec::new, |(root, archive)| archive.files_of(&root))
}

/// The failure for a named file or folder in which nothing was found.
fn not_encoded() -> Failure {
    Failure::new(Exit::Lost, "no shard or record was found in it")
}

/// The failure for a named file of another kind, or a folder of such files.
fn foreign() -> Failure {
    Failure { exit: Exit::Usage, ..not_encoded() }
}

/// Tells whether a folder has files of other kinds, and none that is empty or has a name of ours.
fn has_plain(folder: &Path) -> bool {
    let mut files = fec_base::io::list(folder).unwrap_or_default().into_iter().map(|name| folder.join(name));
    files.next().is_some_and(|first| is_plain(&first)) && files.all(|file| is_plain(&file))
}

/// Tells whether a named path is a folder in which nothing was found.
fn is_bare(survey: &Survey, path: &Path) -> bool {
    path.is_dir() && !holds(survey, path)
}

/// Tells whether nothing was found in one of several named places.
pub(crate) fn has_bare(survey: &Survey, paths: &[PathBuf]) -> bool {
    let has_unknown = || survey.unknown.iter().any(|path| !lies_beside(survey, path));
    paths.len() > 1 && (paths.iter().any(|path| is_bare(survey, path)) || has_unknown())
}

/// Tells whether a named file in which nothing was found lies among the shard files of an encoding, as where all files
/// of a folder are named: it may be a damaged one.
fn lies_beside(survey: &Survey, path: &Path) -> bool {
    let mut shards = survey.encodings.iter().filter(|place| place.form == Form::Shards);
    shards.any(|place| place.paths.iter().any(|file| file.parent() == path.parent()))
}

/// Tells whether a named folder holds an encoding or a sidecar, or has a sidecar.
fn holds(survey: &Survey, folder: &Path) -> bool {
    let mut files = survey.encodings.iter().flat_map(|place| &place.paths);
    files.any(|file| file.starts_with(folder))
        || survey.sidecars.iter().any(|path| sidecar::is_of(path, folder))
}

/// Examines the sidecars `found`, which have the root that was asked for. Each named path has to have one of them.
pub(crate) fn of_root(
    found: &[PathBuf],
    args: &line::Verify,
    settings: &Settings,
    started: Instant,
) -> Result<Exit> {
    settings.given.check(SIDECARS)?;
    let mut checks = Checks::new(args, settings)?;
    for path in found {
        checks.sidecar(path, args.root)?;
    }
    let is_foreign = |path: &&PathBuf| !found.iter().any(|of| sidecar::is_of(of, path));
    for path in args.inputs.iter().filter(is_foreign) {
        match is_sidecar(path) {
            true => checks.sidecar(path, args.root)?,
            false => checks.check(&show(path), Input::of_paths(std::slice::from_ref(path)), args.root)?,
        }
    }
    checks.finish(started)
}

/// Examines each encoding of a list of roots.
pub(crate) fn listed(list: &Path, args: &line::Verify, settings: &Settings) -> Result<Exit> {
    let started = Instant::now();
    if is_dash(list) {
        check_stdin("verify --roots")?;
    }
    let mut input = BufReader::new(open_list(list)?.take(MOST_LISTED));
    let mut checks = Checks::new(args, settings)?;
    let mut wrong = 0;
    let check_roots = |roots: Roots| check(&roots, ROOTS, |_| show_input(list));
    let mut line = Vec::new();
    for number in 1u64.. {
        check_roots(Roots { is_full: input.get_ref().limit() == 0, ..Roots::default() })?;
        line.clear();
        let read = (&mut input).take(LONGEST_LINE).read_until(b'\n', &mut line);
        if read.map_err(|e| Failure::io(Action::Read, list, e))? == 0 {
            break;
        }
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        if text.trim_ascii().is_empty() {
            continue;
        }
        let parsed = parse_line(text);
        let is_bare = parsed.as_ref().is_some_and(|line| line.path.is_none());
        match parsed.map(|line| (line.root, line.path)) {
            Some((root, Some(path))) if is_sidecar(&path) => checks.sidecar(&path, Some(root))?,
            Some((root, Some(path))) => checks.check(&show(&path), Input::of_paths(&[path]), Some(root))?,
            Some((_, None)) | None => {
                wrong += 1;
                check_roots(Roots { wrong, right: checks.rows.len(), ..Roots::default() })?;
                if wrong <= MOST_WRONG {
                    let list = show(list);
                    let why = if is_bare {
                        "is a root without a path"
                    } else {
                        "is not a root, two spaces and a path"
                    };
                    say(&format!("fec: read {list}: line {number} {why}"));
                }
            }
        }
    }
    check_roots(Roots { is_over: true, wrong, right: checks.rows.len(), ..Roots::default() })?;
    if wrong > MOST_WRONG {
        say(&format!("fec: read {}: {wrong} lines are wrong", show(list)));
    }
    let exit = checks.finish(started)?;
    Ok(if wrong > 0 && exit == Exit::Done { Exit::Usage } else { exit })
}

struct Checks<'a> {
    args: &'a line::Verify,
    settings: &'a Settings,
    keys: Option<Keys>,
    rows: Vec<Row>,
}

/// Tells whether a path is a sidecar that is not sealed.
fn is_sidecar(path: &Path) -> bool {
    path.is_file() && kind::starts(path).unwrap_or(false)
}

impl<'a> Checks<'a> {
    fn new(args: &'a line::Verify, settings: &'a Settings) -> Result<Checks<'a>> {
        Ok(Checks { args, settings, keys: args.open.keys()?, rows: Vec::new() })
    }

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

    /// Examines a sidecar and the files it protects. Without a key, only the container of a sealed one is examined.
    fn sidecar(&mut self, path: &Path, root: Option<Digest>) -> Result<()> {
        if self.keys.is_none() && kind::is_sealed(path).unwrap_or(false) {
            return self.check(&show(path), Input::of_paths(&[path.to_path_buf()]), root);
        }
        let row = self.opened_sidecar(path, root).unwrap_or_else(|failure| Row::failed(show(path), &failure));
        self.add(row)
    }

    fn opened_sidecar(&self, path: &Path, root: Option<Digest>) -> Result<Row> {
        sidecar::verify::row(path, root, self.keys.as_ref(), self.args, self.settings)
    }

    /// Adds a row for each named folder in which nothing was found. A file that may not be read may hold something.
    /// Nothing is lost by an empty folder beside the shard files of a single encoding: their row tells whether they
    /// suffice.
    fn bare(&mut self, survey: &Survey, is_beside_shards: bool) -> Result<()> {
        for path in self.args.inputs.iter().filter(|path| is_bare(survey, path)) {
            let denied = self.row("", Input::of_paths(std::slice::from_ref(path)), None).err();
            let nothing = || match is_beside_shards {
                true => Failure::new(Exit::Mendable, "no shard was found in it"),
                false if has_plain(path) => foreign(),
                false => not_encoded(),
            };
            let failure = denied.filter(|failure| failure.exit == Exit::Io).unwrap_or_else(nothing);
            self.add(Row::failed(show(path), &failure))?;
        }
        Ok(())
    }

    fn check(&mut self, name: &str, input: fecfile::Result<Input>, root: Option<Digest>) -> Result<()> {
        let row =
            self.row(name, input, root).unwrap_or_else(|failure| Row::failed(name.to_owned(), &failure));
        self.add(row)
    }

    fn row(&self, name: &str, input: fecfile::Result<Input>, root: Option<Digest>) -> Result<Row> {
        let Checks { args, settings, .. } = *self;
        let bars = settings.bars("verify");
        let context = settings.context(&bars);
        let trust = sign::trust(&args.trusted)?;
        let input = input?;
        let archive = find(&input, root, trust.as_ref(), &context)?;
        let is_sidecar = archive.sealed_kind() == Some(SealedKind::Sidecar);
        if let (true, Some(_), Input::One(object)) = (is_sidecar, &self.keys, &input) {
            return self.opened_sidecar(&object.place, root);
        }
        let opener = match &self.keys {
            Some(_) => archive.opener(self.keys.as_ref())?,
            None => None,
        };
        let verified = archive.verify(args.deep, &context)?;
        opens(&archive, &verified, opener.as_ref(), &context)?;
        let asked = Asked { need: args.need, ..Asked::default() };
        let proved = proved_by(root.is_some(), archive.signed().map(SignedBy::new).as_ref());
        let row = Row::new(name.to_owned(), &verified, exit(&verified, &asked)).proved_by(proved);
        let is_all_asked = args.need.is_some() || args.sidecar_only;
        Ok(if is_sidecar { row.of_sealed(is_all_asked) } else { row })
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
        let Checks { args, settings, rows, .. } = self;
        let count = |state| rows.iter().filter(|row| row.state == state).count();
        let report = Report {
            encodings: &rows,
            intact: count(State::Intact),
            damaged: count(State::Damaged),
            lost: count(State::Lost),
            failed: count(State::Failed),
            unopened: count(State::Unopened),
            seconds: started.elapsed().as_secs_f64(),
        };
        let text = match args.format {
            VerifyFormat::Text => summary(&rows),
            VerifyFormat::Markdown => markdown(&rows),
        };
        let exit = gravest(rows.iter().map(|row| row.exit));
        settings.report_here(&report, exit, &text)?;
        Ok(exit)
    }
}

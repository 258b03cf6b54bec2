//! `fec encode FILE FILE …` and `--files-from`: one report line per file, in the order of the list.

use crate::line;
use crate::plan::check;
use crate::plan::encode::{CLASHES, Clash, Kind, check_below};
use crate::run::encode::task::{Input, Task, options};
use crate::run::inputs::output_meant;
use crate::run::target::{Target, is_dash};
use crate::say::encode::Report;
use crate::say::failure::{Exit, Failure, Result, misuse, plain, say};
use crate::settings::{Settings, print_line, print_lines};
use fec_base::io::system::{folded, identity};
use fec_base::io::temporary::parent;
use fec_base::names::{counted, of_path, show, show_input};
use fec_base::roots::put_line;
use fec_base::threads::Threads;
use fec_core::executor::{Executor, into_value, lock};
use fec_keys::sign::SecretKey;
use fecfile::payload::Options;
use serde::Serialize;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Most small files that are encoded at the same time.
const AT_ONCE: usize = 16;

/// Most bytes of a small file.
const SMALL: u64 = 1 << 20;

/// A file that could not be encoded.
#[derive(Serialize)]
struct Failed<'a> {
    input: String,
    error: &'a str,
    help: Option<&'a str>,
}

/// Encodes every file of a list. A failed file does not stop the others. Returns the gravest exit code.
pub(crate) fn run(
    files: &[PathBuf],
    key: Option<Arc<SecretKey>>,
    args: &line::Encode,
    settings: &Settings,
) -> Result<Exit> {
    let options = options(args, key.clone())?;
    let output = args.outputs.first();
    let mut outputs = Outputs::new(files);
    let are_alone = output.is_none() && args.files_from.is_none();
    let mut tally =
        Tally { files, are_alone, settings, started: Instant::now(), worst: Exit::Done, kept: 0, failed: 0 };
    // Each passphrase is hardened separately, which takes 256 MiB of memory.
    let at_once =
        if args.seal.passphrase { 1 } else { settings.threads_asked.unwrap_or(AT_ONCE).min(AT_ONCE) };
    for batch in batches(files, at_once) {
        // In a list, `-` is a file of that name, not standard input.
        let inputs: Vec<&Path> =
            batch.iter().map(|file| if is_dash(file) { Path::new("./-") } else { file }).collect();
        let place = |input: &&Path| output.map(|output| filled_in(output, input)).transpose();
        let places: Vec<Option<PathBuf>> = inputs.iter().map(place).collect::<Result<_>>()?;
        let begun = inputs.iter().zip(&places).map(|(input, place)| {
            let task = Task { input, output: place.as_deref(), key: key.as_deref(), args, settings };
            begin(task, &mut outputs)
        });
        let begun: Vec<Result<Begun<'_>>> = begun.collect();
        for ((input, file), done) in inputs.iter().zip(batch).zip(at_the_same_time(begun, &options)) {
            match done {
                Ok((report, target)) => tally.done(input, &report, &target)?,
                Err(failure) => tally.failed(input, file, failure)?,
            }
        }
    }
    tally.say();
    Ok(tally.worst)
}

/// The files so far, which are told one by one and summed up at the end.
struct Tally<'a> {
    files: &'a [PathBuf],
    /// The files stand on the command line, without -o.
    are_alone: bool,
    settings: &'a Settings,
    started: Instant,
    worst: Exit,
    kept: usize,
    failed: usize,
}

impl Tally<'_> {
    fn done(&mut self, input: &Path, report: &Report, target: &Target) -> Result<()> {
        self.kept += usize::from(report.kept);
        self.settings.report(report, Exit::Done, &report.brief(), false)?;
        if self.settings.json {
            return Ok(());
        }
        let mut line = Vec::new();
        put_line(&mut line, &report.digest, target.path().unwrap_or(input));
        print_lines(&line)
    }

    fn failed(&mut self, input: &Path, file: &PathBuf, mut failure: Failure) -> Result<()> {
        if self.are_alone && self.files.last() == Some(file) {
            failure = output_meant(failure, self.files, self.settings);
        }
        self.failed += 1;
        self.worst = self.worst.max(failure.exit);
        say(&failure.to_string());
        if self.settings.json { tell(input, &failure, self.settings) } else { Ok(()) }
    }

    fn say(&self) {
        if self.settings.quiet || self.settings.json {
            return;
        }
        let Tally { kept, failed, .. } = self;
        let made = self.files.len() - kept - failed;
        let seconds = self.started.elapsed().as_secs_f64();
        let files = counted(self.files.len(), "file");
        say(&format!("{files}: {made} encoded, {kept} kept, {failed} failed; {seconds:.2} s"));
    }
}

/// Splits the files into batches, in order. Small files share a batch: most of their time is waiting for the disk.
fn batches(files: &[PathBuf], at_once: usize) -> impl Iterator<Item = &[PathBuf]> {
    let is_small = |file: &PathBuf| std::fs::metadata(file).is_ok_and(|meta| meta.len() <= SMALL);
    let mut rest = files;
    std::iter::from_fn(move || {
        let small = rest.iter().take(at_once).take_while(|file| is_small(file)).count();
        let batch;
        (batch, rest) = rest.split_at_checked(small.max(1))?;
        Some(batch)
    })
}

/// A file with its input open and its target checked.
struct Begun<'a> {
    task: Task<'a>,
    input: Input,
    target: Target,
    started: Instant,
}

fn begin<'a>(task: Task<'a>, outputs: &mut Outputs) -> Result<Begun<'a>> {
    let started = Instant::now();
    // Opening a FIFO could wait for ever.
    if std::fs::metadata(task.input).is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
        task.check_found(Kind::Pipe, None)?;
    }
    if let Some(output) = task.args.outputs.first() {
        check_below(output, task.input)?;
    }
    let input = task.open()?;
    let target = task.target(&input);
    task.check_found(input.kind(), Some(&target))?;
    task.check_outputs(&input, &target)?;
    outputs.take(&target)?;
    Ok(Begun { task, input, target, started })
}

impl Begun<'_> {
    fn encode(self, options: &Options) -> Result<(Report, Target)> {
        let (written, fate) = self.task.encode(self.input, &self.target, options)?;
        let report = Report::new(
            self.task.named(),
            &self.target,
            options,
            (&written, &fate),
            self.task.settings,
            self.started,
        );
        Ok((report, self.target))
    }
}

/// Encodes the files of a batch at the same time, on as many threads as can be had, up to one for each.
fn at_the_same_time(begun: Vec<Result<Begun<'_>>>, options: &Options) -> Vec<Result<(Report, Target)>> {
    let count = begun.len();
    let begun: Vec<_> = begun.into_iter().map(|begun| Mutex::new(Some(begun))).collect();
    let done: Vec<_> = (0..count).map(|_| Mutex::new(None)).collect();
    Threads(count).run(count, &|nth| {
        let begun = lock(&begun[nth]).take().expect("each is taken once");
        *lock(&done[nth]) = Some(begun.and_then(|begun| begun.encode(options)));
    });
    done.into_iter().map(|done| into_value(done).expect("each was encoded")).collect()
}

/// Reports a failed file in one line.
fn tell(input: &Path, failure: &Failure, settings: &Settings) -> Result<()> {
    let failed =
        Failed { input: plain(&show(input)), error: &failure.message, help: failure.help.as_deref() };
    print_line(&settings.json_line(&failed, failure.exit)?)
}

/// Paths that must not be written over: inputs of the list, and earlier outputs.
struct Outputs {
    inputs: HashSet<Entry>,
    folders: HashSet<Entry>,
    taken: HashSet<PathBuf>,
}

/// The entry at a path, the same for every name that leads there: its device and its number there, or where the system
/// does not tell these, its whole path.
#[derive(PartialEq, Eq, Hash)]
enum Entry {
    Numbered(u64, u64),
    At(PathBuf),
}

fn place(path: &Path) -> Option<Entry> {
    match identity(path) {
        Some((device, number)) => Some(Entry::Numbered(device, number)),
        None => std::fs::canonicalize(path).ok().map(Entry::At),
    }
}

impl Outputs {
    fn new(files: &[PathBuf]) -> Outputs {
        Outputs {
            inputs: files.iter().filter_map(|file| place(file)).collect(),
            folders: files.iter().filter_map(|file| place(parent(file))).collect(),
            taken: HashSet::new(),
        }
    }

    /// Refuses a target that is or holds an input of the list, or that an earlier file has taken.
    fn take(&mut self, target: &Target) -> Result<()> {
        let Some(path) = target.path() else { return Ok(()) };
        let holds_input = matches!(target, Target::Folder(_))
            && place(path).is_some_and(|place| self.folders.contains(&place));
        let folder = std::fs::canonicalize(parent(path)).unwrap_or_else(|_| parent(path).to_path_buf());
        let clash = if holds_input || place(path).is_some_and(|place| self.inputs.contains(&place)) {
            Clash::WithInputs
        } else if self.taken.insert(folder.join(folded(path.file_name().unwrap_or_default()))) {
            Clash::No
        } else {
            Clash::WithOutput
        };
        check(&clash, CLASHES, |_| show_input(path))
    }
}

/// -o with each `{}` replaced by a file's path, and each `{/}` by its last component.
///
/// # Errors
/// Wrong use: on Windows, a path that is not text.
fn filled_in(output: &Path, input: &Path) -> Result<PathBuf> {
    let path = input.as_os_str().as_encoded_bytes();
    let last = input.file_name().map(OsStr::as_encoded_bytes).unwrap_or_default();
    let mut out = Vec::new();
    let mut rest = output.as_os_str().as_encoded_bytes();
    while let Some((first, behind)) = rest.split_first() {
        rest = match (rest.strip_prefix(b"{}"), rest.strip_prefix(b"{/}")) {
            (Some(rest), _) => {
                out.extend_from_slice(path);
                rest
            }
            (_, Some(rest)) => {
                out.extend_from_slice(last);
                rest
            }
            _ => {
                out.push(*first);
                behind
            }
        };
    }
    of_path(out).ok_or_else(|| misuse("encode", input, "the name of its output would not be text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_have_the_paths_of_their_inputs() {
        let cases = [
            ("{}.fec", "a/b", "a/b.fec"),
            ("safe/{/}.fec", "/a/b c", "safe/b c.fec"),
            ("{/}/{/}.shards/", "a/{}", "{}/{}.shards/"),
            ("{{}}", "a", "{a}"),
        ];
        for (output, input, expected) in cases {
            let found = filled_in(Path::new(output), Path::new(input)).expect("a path");
            assert_eq!(found, Path::new(expected), "{output}");
        }
    }
}

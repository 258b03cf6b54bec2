//! The inputs of commands that restore or verify.

use crate::run::proofs::Proofs;
use crate::run::survey::survey;
use crate::run::target::{check_stdin, is_dash, open_input, quoted};
use crate::say::failure::{Exit, Failure, Result, misuse};
use crate::settings::Settings;
use crate::system::secrets::hides;
use fec_base::error::Action;
use fec_base::io::small;
use fec_base::names::{counted, hex, show};
use fec_base::roots::{self, Line};
use fec_core::params::Form;
use fec_live::detect;
use fec_sidecar::Sidecar;
use fecfile::forms::Beginning;
use fecfile::{Archive, Content, EncodingError, Error, Input};
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The kind of input that the paths of a command line name, as far as the system tells.
pub(crate) enum Inputs {
    /// Standard input, or a pipe or device with this path.
    Pipe(PathBuf, File),
    /// Files and folders.
    Objects(Input),
}

/// Opens what a command line names.
pub(crate) fn inputs(paths: &[PathBuf], command: &'static str) -> Result<Inputs> {
    let [path] = paths else {
        if paths.iter().any(|path| is_dash(path)) {
            return Err(Failure::usage("read standard input: it stands alone"));
        }
        return Ok(Inputs::Objects(Input::of_paths(paths)?));
    };
    if path.is_dir() {
        return Ok(Inputs::Objects(Input::of_paths(paths)?));
    }
    if is_dash(path) {
        check_stdin(command)?;
    }
    let file = open_input(path)?;
    let fail = |e| Failure::io(Action::Read, path, e);
    let meta = file.metadata().map_err(fail)?;
    if meta.is_dir() {
        // The path became a folder meanwhile, or the system did not tell before.
        let is_named = !is_dash(path);
        let is_stdin = || Failure::usage("read standard input: it is a folder");
        return if is_named { Ok(Inputs::Objects(Input::of_paths(paths)?)) } else { Err(is_stdin()) };
    }
    // Another program has read a part of standard input: the rest is treated as a pipe.
    let is_rest = is_dash(path) && (&file).stream_position().is_ok_and(|position| position > 0);
    if !meta.is_file() || is_rest {
        return Ok(Inputs::Pipe(path.clone(), file));
    }
    let object = fecfile::Object::new(path, Arc::new(file)).map_err(fail)?;
    Ok(Inputs::Objects(Input::One(object)))
}

/// Advises -o when the last of several inputs does not exist: commands like `cp` take the output there.
/// The command is told where it has no options, which would be missing in it.
pub(crate) fn output_meant(failure: Failure, paths: &[PathBuf], settings: &Settings) -> Failure {
    let command = settings.given.command();
    let Some((last, [first, more @ ..])) = paths.split_last() else { return failure };
    let is_it = failure.help.is_none() && !last.exists() && first.exists();
    match more {
        [] if is_it && settings.given.is_bare() => {
            let advice = format!("fec {command} {} -o {}", quoted(first), quoted(last));
            failure.help(match hides(&advice) {
                true => "an output is named with -o".to_owned(),
                false => format!("an output is named with -o:\n  {advice}"),
            })
        }
        [..] if is_it => failure.help("an output is named with -o"),
        [..] => failure,
    }
}

/// The longest path that the system takes, in bytes.
const LONGEST_PATH: usize = 4095;
/// Most bytes of a list.
pub(crate) const MOST_LISTED: u64 = 256 << 20;
/// Most paths in a list.
const MOST_PATHS: usize = 4 << 20;

/// Opens a list, which may be a pipe. A FIFO without a writer is an error.
pub(crate) fn open_list(path: &Path) -> Result<Box<dyn Read>> {
    if is_dash(path) {
        return Ok(Box::new(open_input(path)?));
    }
    Ok(Box::new(small::open(path).map_err(|e| Failure::io(Action::Read, path, e))?))
}

/// Reads paths from a file: zero-terminated if `is_null` or if there is a zero byte, else one per line.
pub(crate) fn listed(list: &Path, is_null: bool) -> Result<Vec<PathBuf>> {
    let mut bytes = Vec::new();
    let read = open_list(list)?.take(MOST_LISTED + 1).read_to_end(&mut bytes);
    read.map_err(|e| Failure::io(Action::Read, list, e))?;
    if bytes.len() as u64 > MOST_LISTED {
        let why = format!("it never ends, or has more than {} MiB", MOST_LISTED >> 20);
        return Err(misuse("read", list, &why).help("name a list of files, a line each"));
    }
    let separator = if is_null || bytes.contains(&0) { 0 } else { b'\n' };
    let lines = || bytes.split(|b| *b == separator);
    if let Some(nth) = lines().position(|path| path.len() > LONGEST_PATH) {
        return Err(misuse("read", list, &format!("entry {} is longer than a path may be", nth + 1)));
    }
    let paths = || lines().filter(|path| !path.is_empty());
    if paths().nth(MOST_PATHS).is_some() {
        return Err(misuse("read", list, &format!("it has more than {MOST_PATHS} entries")));
    }
    if paths().next().is_none() {
        return Err(misuse("read", list, "it lists nothing").help("name a list of files, a line each"));
    }
    Ok(paths().map(|path| OsString::from_vec(path.to_vec()).into()).collect())
}

/// Refuses a shard file on standard input: it has no name and no neighbours.
pub(crate) fn check_not_piped_shard(path: &Path, archive: &Archive) -> Result<()> {
    if is_dash(path) && archive.form() == Form::Shards {
        return Err(Error::at(Action::Read, path, EncodingError::ShardFileAlone).into());
    }
    Ok(())
}

/// Refuses containers and sidecars among several inputs of a command that looks at one encoding, where they would be
/// ignored. The file's name must agree with its content: a file that somebody puts among shards, whatever it holds,
/// must not stop a command.
pub(crate) fn check_kinds(paths: &[PathBuf], command: &str, proofs: Proofs<'_>) -> Result<()> {
    // A missing path gets its own error.
    if paths.len() < 2 || !paths.iter().all(|path| is_dash(path) || path.exists()) {
        return Ok(());
    }
    let kinds: Vec<Option<&str>> = paths.iter().map(|path| kind_alone(path)).collect();
    // If every path is of such a kind, a later error names them.
    if kinds.iter().all(Option::is_some) {
        return Ok(());
    }
    match paths.iter().zip(kinds).find_map(|(path, kind)| Some((path, kind?))) {
        Some((path, kind)) => Err(misuse(command, path, &format!("it is a {kind}, and is named by itself"))
            .help(format!("leave it out here, and then:\n  {}", proofs.command(command, path)))),
        None => Ok(()),
    }
}

/// The kind of a file that has to be named alone.
fn kind_alone(path: &Path) -> Option<&'static str> {
    let is_named = path.extension().is_some_and(|ending| ending == "fec" || ending == "fecp");
    if !is_named || !path.is_file() {
        return None;
    }
    let found = survey(&[path.to_path_buf()]).ok()?;
    if !found.sidecars.is_empty() {
        return Some("sidecar");
    }
    found.encodings.iter().any(|place| place.form == Form::Container).then_some("container")
}

/// Advice for an input that holds no encoding.
pub(crate) const NOT_ENCODED: &str = "name what fec encode or fec protect made;\nof a live stream whose beginning is damaged:\n  fec decode --stream PATH";

/// The beginning of an input, which tells why nothing was found in it.
pub(crate) struct Clue<'a> {
    place: &'a Path,
    /// The paths that the user named.
    named: &'a [PathBuf],
    /// The files that were searched for shards.
    files: Vec<PathBuf>,
    beginning: Beginning,
    /// The lines, if the input is a text that holds nothing but roots.
    roots: Option<Vec<Line>>,
    command: &'static str,
    proofs: Proofs<'a>,
    is_one: bool,
}

/// The files of an input.
fn files_of(input: &Input) -> Vec<PathBuf> {
    let Input::Several(objects) = input else { return Vec::new() };
    let files = objects.iter().filter(|object| matches!(object.content, Content::Bytes(..)));
    files.map(|file| file.place.clone()).collect()
}

/// The first three paths, and the number of the others.
pub(crate) fn few(paths: &[PathBuf]) -> String {
    const NAMED: usize = 3;
    let named = paths.iter().take(NAMED).map(show).collect::<Vec<_>>().join(", ");
    match paths.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

impl<'a> Clue<'a> {
    /// The clue from an input that can be read at any position.
    pub(crate) fn of(
        (input, named): (&'a Input, &'a [PathBuf]),
        beginning: Beginning,
        command: &'static str,
        proofs: Proofs<'a>,
    ) -> Clue<'a> {
        /// Most bytes read of a text: the beginning is enough.
        const MOST: u64 = 64 << 10;
        let Input::One(object) = input else {
            let place = Path::new("-");
            let files = files_of(input);
            return Clue { place, named, files, beginning, roots: None, command, proofs, is_one: false };
        };
        let roots = match &object.content {
            Content::Bytes(bytes, len) => {
                let mut text = vec![0; (*len).min(MOST) as usize];
                let is_read = bytes.read_exact_at(0, &mut text).is_ok();
                is_read.then(|| roots::parse(&text, *len > MOST)).flatten()
            }
            Content::NoFile | Content::Unreadable(_) => None,
        };
        let files = Vec::new();
        Clue { place: &object.place, named, files, beginning, roots, command, proofs, is_one: true }
    }

    /// The clue from the first bytes of a pipe.
    pub(crate) fn of_head(
        place: &'a Path,
        head: &[u8],
        beginning: Beginning,
        command: &'static str,
        proofs: Proofs<'a>,
    ) -> Clue<'a> {
        let roots = roots::parse(head, false);
        Clue { place, named: &[], files: Vec::new(), beginning, roots, command, proofs, is_one: true }
    }

    /// Tells whether the input begins as a live stream.
    pub(crate) fn is_stream(&self) -> bool {
        self.beginning == Beginning::Stream
    }

    /// The error if no shard was found, but containers or sidecars were. Naming nothing else is wrong use. Beside other
    /// files they are foreign, and the shards are lost (docs/FORMAT.md, section 9.3): the exit code is then `lost`.
    fn other_kind(&self, lost: Exit) -> Option<Failure> {
        let command = self.command;
        if self.is_one {
            let is_file = !is_dash(self.place) && self.place.is_file();
            return (is_file && Sidecar::starts(self.place).unwrap_or(false)).then(|| {
                let repair = self.proofs.command("repair", self.place);
                misuse(command, self.place, "it is a sidecar, which holds no payload")
                    .help(format!("to mend the files that it protects:\n  {repair}"))
            });
        }
        let survey = survey(&self.files).ok()?;
        let containers = survey.encodings.into_iter().filter(|place| place.form == Form::Container);
        let containers: Vec<PathBuf> = containers.flat_map(|place| place.paths).collect();
        let (what, found, command) = match (&containers[..], &survey.sidecars[..]) {
            ([], []) => return None,
            ([], sidecars) => ("sidecar", sidecars, if command == "verify" { command } else { "repair" }),
            (containers, _) => ("container", containers, command),
        };
        let is_or_are = if found.len() == 1 { "is" } else { "are" };
        let (count, names) = (counted(found.len(), what), few(found));
        let why = format!("{}: {count} {is_or_are} here, and no shard files: {names}", self.command);
        let is_alone = |path: &PathBuf| containers.contains(path) || survey.sidecars.contains(path);
        let exit = if self.named.iter().all(is_alone) { Exit::Usage } else { lost };
        Some(Failure::new(exit, why).help(match self.proofs.meant(found) {
            Some(path) => format!("name one by itself:\n  {}", self.proofs.command(command, path)),
            None => "none of them has the root that was asked for".to_owned(),
        }))
    }

    /// The error. If nothing was found, it tells whether the input is a live stream, or a root in place of an encoding.
    pub(crate) fn explain(&self, mut error: Error) -> Failure {
        let class = error.class();
        let Some(EncodingError::NothingFound(found)) = error.cause_mut() else { return error.into() };
        found.leftovers.beginning = self.beginning;
        let command = self.command;
        let given = if is_dash(self.place) { "HEX".to_owned() } else { format!("@{}", quoted(self.place)) };
        let is_bare = found.wanted.is_none() && found.is_bare() && self.is_one;
        if found.others.is_empty()
            && let Some(meant) = self.other_kind(class.into())
        {
            return meant;
        }
        match self.roots.as_deref() {
            None | Some([]) if is_bare => {
                let why = misuse(command, self.place, "it holds no shard and no record of a container");
                // Damage may have left nothing else.
                Failure { exit: class.into(), ..why }.help(NOT_ENCODED)
            }
            None | Some([]) => error.into(),
            Some([line]) if line.path.is_none() => misuse(
                command,
                self.place,
                &format!("it holds only a root: {}", hex(&line.root)),
            )
            .help(format!(
                "name the shard files or the container that has this root:\n  fec {command} PATH --root {given}"
            )),
            Some(_) => misuse(command, self.place, "it is a list of roots").help(match command {
                "verify" => {
                    format!("to check what it lists:\n  {}", self.proofs.command_of_list(self.place))
                }
                _ => format!("name one of what it lists, with its root: fec {command} PATH --root HEX"),
            }),
        }
    }
}

/// Tells whether an input starts like a live stream, sealed or not.
pub(crate) fn beginning(input: &Input) -> fecfile::Result<Beginning> {
    let Input::One(object) = input else { return Ok(Beginning::Other) };
    let Content::Bytes(bytes, _) = &object.content else { return Ok(Beginning::Other) };
    detect::object(bytes.as_ref()).map_err(|e| Error::io(Action::Read, object.place.as_path(), e))
}

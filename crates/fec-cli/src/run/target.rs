//! Destinations of output and sources of input: paths of the command line, `-`, and the files behind them.

use crate::plan::check;
use crate::plan::encode::Kind;
use crate::plan::named::{OUTPUT, REDIRECTED, Redirected, STREAM, Stream};
use crate::say::failure::{Failure, Result};
use crate::system::secrets::hides;
use crate::system::{border, closed};
use fec_base::io::output::{Destination, Policy, is_same, is_shard_file, is_special, open_special};
use fec_base::io::system::mode;
use fec_base::io::temporary::parent;
use fec_base::names::{of_path, show, show_input};
use fecfile::error::{Action, Place};
use std::fs::{File, Metadata};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf, is_separator};

/// The destination of output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Standard output.
    Stdout,
    /// A device, FIFO or socket: written from front to back.
    Special(PathBuf),
    /// A file that appears when it is whole.
    File(PathBuf),
    /// A folder of files that appears when all are whole.
    Folder(PathBuf),
}

impl Target {
    /// The target that `path` names: `-`, a folder (it exists as one, or ends in a slash), a device, or a file.
    pub(crate) fn of(path: &Path) -> Target {
        let bytes = path.as_os_str().as_encoded_bytes();
        if is_dash(path) {
            Target::Stdout
        } else if bytes.last().is_some_and(|last| is_separator((*last).into())) || path.is_dir() {
            Target::Folder(without_slashes(path))
        } else if is_special(path) {
            Target::Special(path.into())
        } else {
            Target::File(path.into())
        }
    }

    /// The path, if output there could replace another file.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Target::File(path) | Target::Folder(path) => Some(path),
            Target::Stdout | Target::Special(_) => None,
        }
    }

    pub(crate) fn is_stdout(&self) -> bool {
        *self == Target::Stdout
    }

    /// Tells whether the output ends up in a file, which may be one that standard output was redirected to.
    pub(crate) fn is_file(&self) -> bool {
        match self {
            Target::File(_) | Target::Folder(_) => true,
            Target::Stdout => border::stdout().is_ok_and(|stdout| file_behind(&stdout).is_some()),
            Target::Special(_) => false,
        }
    }

    /// Opens a target that is written from front to back. Also returns its name for errors.
    ///
    /// # Errors
    /// When standard output is a terminal, or a device cannot be opened.
    pub(crate) fn sequential(&self) -> Result<(File, Place)> {
        match self {
            Target::Stdout => Ok((stdout_for_data()?, Place::Output)),
            Target::Special(path) | Target::File(path) | Target::Folder(path) => {
                Ok((open_special(path)?, Place::Path(path.clone())))
            }
        }
    }

    /// Opens the target.
    ///
    /// # Errors
    /// As [`sequential`](Target::sequential).
    pub(crate) fn open(&self) -> Result<OpenTarget<'_>> {
        Ok(match self {
            Target::File(path) | Target::Folder(path) => OpenTarget::File(path),
            Target::Stdout | Target::Special(_) => {
                let (file, place) = self.sequential()?;
                OpenTarget::Writer(file, place)
            }
        })
    }

    /// Refuses an output that would replace an input, or a shard in an input folder.
    ///
    /// # Errors
    /// Wrong use.
    pub(crate) fn check_inputs<'a>(&self, inputs: impl IntoIterator<Item = &'a Path>) -> Result<()> {
        let Some(path) = self.path() else { return Ok(()) };
        let is_folder = matches!(self, Target::Folder(_));
        for input in inputs.into_iter().filter(|input| !is_dash(input)) {
            let is_its_folder = || is_folder && is_same(path, parent(input));
            let is_shard_in_it = || is_shard_file(path).unwrap_or(false) && is_same(parent(path), input);
            let is_input = is_same(path, input) || is_its_folder() || is_shard_in_it();
            check(&is_input, OUTPUT, |_| show_input(path))?;
        }
        Ok(())
    }
}

/// A target that is ready for a payload.
pub(crate) enum OpenTarget<'a> {
    File(&'a Path),
    Writer(File, Place),
}

impl OpenTarget<'_> {
    /// The library's destination; a file is made by `policy`.
    pub(crate) fn destination(&mut self, policy: Policy) -> Destination<'_> {
        match self {
            OpenTarget::File(path) => Destination::File(path, policy),
            OpenTarget::Writer(file, place) => Destination::Writer(file, place.clone()),
        }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Target::Stdout => f.write_str("-"),
            Target::Special(path) | Target::File(path) => f.write_str(&show(path)),
            Target::Folder(path) => write!(f, "{}/", show(path).trim_end_matches('/')),
        }
    }
}

/// A path, quoted for a shell. A name that begins like an option gets its folder in front, and bytes that are not shown
/// are escaped as shells other than the plainest read it.
pub(crate) fn quoted(path: &Path) -> String {
    let (shown, bytes) = (show(path), path.as_os_str().as_encoded_bytes());
    let front = if bytes.starts_with(b"-") && !is_dash(path) { "./" } else { "" };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%".contains(c);
    if shown.chars().all(is_plain) {
        format!("{front}{shown}")
    } else if shown.as_bytes() == bytes || hides(&shown) {
        format!("'{front}{}'", shown.replace('\'', "'\\''"))
    } else {
        format!("$'{front}{}'", escaped(bytes))
    }
}

/// Bytes as they stand between `$'` and `'`.
fn escaped(bytes: &[u8]) -> String {
    let mut out = String::new();
    let escape = |out: &mut String, bytes: &[u8]| {
        bytes.iter().for_each(|byte| out.push_str(&format!("\\x{byte:02x}")));
    };
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            let mut utf8 = [0; 4];
            let utf8 = &*c.encode_utf8(&mut utf8);
            match c {
                '\'' | '\\' => out.extend(['\\', c]),
                _ if show(utf8) == utf8 => out.push(c),
                _ => escape(&mut out, utf8.as_bytes()),
            }
        }
        escape(&mut out, chunk.invalid());
    }
    out
}

/// Tells whether a path stands for standard input or output.
pub(crate) fn is_dash(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The kind of an input, as far as its path tells.
pub(crate) fn kind(path: &Path) -> Kind {
    match std::fs::metadata(path) {
        Ok(meta) if meta.is_file() && !is_dash(path) => Kind::File,
        Ok(meta) if meta.is_dir() && !is_dash(path) => Kind::Folder,
        _ => Kind::Pipe,
    }
}

/// The name of an input in a report for people.
pub(crate) fn input_name(input: &str) -> &str {
    if input == "-" { "standard input" } else { input }
}

/// The name of an output in a report for people.
pub(crate) fn output_name(output: &str) -> &str {
    if output == "-" { "standard output" } else { output }
}

/// The regular file that standard output was redirected to, where the system tells its name.
fn redirected() -> Option<PathBuf> {
    let path = Target::Stdout.is_file().then(border::redirected).flatten()?;
    let here = std::env::current_dir().unwrap_or_default();
    Some(path.strip_prefix(here).map(Path::to_path_buf).unwrap_or(path))
}

/// Refuses roots alone in a redirected file that is named as a container. `root_file` is a name for a file of the root,
/// and `input` the only input, where no other options stand on the command line.
///
/// # Errors
/// Wrong use.
pub(crate) fn check_no_container(several: bool, input: Option<&Path>) -> Result<()> {
    let Some(path) = redirected().filter(|path| path.extension().is_some_and(|ending| ending == "fec"))
    else {
        return Ok(());
    };
    let found = match (several, input) {
        (true, _) => Redirected::Roots,
        (false, None) => Redirected::Root,
        (false, Some(_)) => Redirected::RootOf,
    };
    check(&found, REDIRECTED, |name| match name {
        "input" => input.map(quoted).unwrap_or_default(),
        "root" => quoted(&path.with_extension("root")),
        // The content of the file stays.
        "there" if std::fs::metadata(&path).is_ok_and(|meta| meta.len() > 0) => {
            format!(">> {}", quoted(&path))
        }
        "there" => format!("> {}", quoted(&path)),
        _ => show_input(&path),
    })
}

/// Tells apart from any file that exists the one that a shell made for `> NAME`, which is also the default output.
///
/// # Errors
/// Wrong use: standard output was redirected to `path`.
pub(crate) fn check_not_redirected(path: &Path) -> Result<()> {
    let is_it = redirected().is_some_and(|there| is_same(&there, path));
    let found = if is_it { Redirected::Payload } else { Redirected::No };
    check(&found, REDIRECTED, |_| show_input(path))
}

/// Refuses to wait for somebody to type a command's input.
///
/// # Errors
/// Wrong use: standard input is a terminal.
pub(crate) fn check_stdin(command: &str) -> Result<()> {
    let stream = Stream { is_typed: io::stdin().is_terminal(), ..Stream::default() };
    check(&stream, STREAM, |_| command.to_owned())
}

/// Standard input, as a separate file.
pub(crate) fn stdin() -> Result<File> {
    closed::check_stdin().map_err(|e| Failure::io(Action::Read, Path::new("-"), e))?;
    border::stdin().map_err(|e| Failure::io(Action::Read, Path::new("-"), e))
}

/// Standard input for `-`, otherwise the file.
pub(crate) fn open_input(path: &Path) -> Result<File> {
    if is_dash(path) { stdin() } else { File::open(path).map_err(|e| Failure::io(Action::Read, path, e)) }
}

/// The metadata of the regular file behind a stream, if there is one.
pub(crate) fn file_behind(stream: &File) -> Option<Metadata> {
    border::metadata(stream).ok().flatten().filter(Metadata::is_file)
}

/// The policy for outputs made from an open file. A pipe sets no limit on who may read them.
pub(crate) fn made_of_file(policy: Policy, file: &File) -> Policy {
    file_behind(file).map_or(policy, |meta| policy.made_of(mode(&meta)))
}

/// The policy for outputs made from these inputs. `-` is standard input.
pub(crate) fn made_of_inputs(policy: Policy, inputs: &[PathBuf]) -> Policy {
    let is_stdin_read = inputs.is_empty() || inputs.iter().any(|path| is_dash(path));
    let policy = match border::stdin() {
        Ok(stdin) if is_stdin_read => made_of_file(policy, &stdin),
        _ => policy,
    };
    policy.made_of_paths(inputs.iter().map(PathBuf::as_path).filter(|path| !is_dash(path)))
}

/// Standard output for payload bytes.
pub(crate) fn stdout_for_data() -> Result<File> {
    closed::check_stdout().map_err(Failure::stdout)?;
    let stdout = io::stdout();
    let stream = Stream { is_shown: stdout.is_terminal(), ..Stream::default() };
    check(&stream, STREAM, |_| String::new())?;
    closed::note_stdout_data();
    border::stdout().map_err(Failure::stdout)
}

/// The path without trailing slashes. The root folder stays.
fn without_slashes(path: &Path) -> PathBuf {
    let bytes = path.as_os_str().as_encoded_bytes();
    let end = bytes.iter().rposition(|byte| !is_separator((*byte).into())).map_or(1, |last| last + 1);
    // A drive without its slash would be the folder that the process last was in there.
    let is_drive = path.parent().is_none() && path.has_root() && end > 1;
    match is_drive {
        true => path.to_path_buf(),
        false => of_path(bytes[..end.min(bytes.len())].to_vec()).unwrap_or_else(|| path.to_path_buf()),
    }
}

/// The file name extension of sidecars.
pub(crate) const ENDING: &str = "fecp";

/// The default place of the sidecar of a file or folder. `None` if nothing can lie beside the path.
pub(crate) fn beside(path: &Path) -> Option<PathBuf> {
    let place = match path.file_name() {
        Some(_) => path.to_path_buf(),
        // The path ends in `.` or `..`.
        None => std::fs::canonicalize(path).ok()?,
    };
    let mut name = place.file_name()?.to_os_string();
    name.push(".");
    name.push(ENDING);
    Some(place.with_file_name(name))
}

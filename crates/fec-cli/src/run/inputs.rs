//! The inputs of commands that restore or verify.

use crate::plan::lists::{MOST_LISTED, paths};
use crate::plan::named::{Found, INPUT, STREAM, Stream};
use crate::plan::{check, refused};
use crate::run::proofs::Proofs;
use crate::run::survey::{is_plain, survey};
use crate::run::target::{check_stdin, is_dash, open_input, quoted};
use crate::say::failure::{Exit, Failure, Result};
use crate::settings::Settings;
use crate::system::border;
use crate::system::secrets::hides;
use fec_base::error::Action;
use fec_base::io::small;
use fec_base::names::{counted, hex, show, show_input};
use fec_base::roots::{self, Line};
use fec_core::params::Form;
use fec_live::detect;
use fec_sidecar::kind;
use fecfile::forms::Beginning;
use fecfile::{Archive, Content, EncodingError, Error, Input};
use std::fs::File;
use std::io::{Read, Seek};
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
        let has_company = paths.iter().any(|path| is_dash(path));
        check(&Stream { has_company, ..Stream::default() }, STREAM, |_| String::new())?;
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
    let Some(meta) = border::metadata(&file).map_err(fail)? else {
        return Ok(Inputs::Pipe(path.clone(), file));
    };
    if meta.is_dir() {
        // The path became a folder meanwhile, or the system did not tell before.
        check(&Stream { is_folder: is_dash(path), ..Stream::default() }, STREAM, |_| String::new())?;
        return Ok(Inputs::Objects(Input::of_paths(paths)?));
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

/// Opens a list, which may be a pipe. A FIFO without a writer is an error.
pub(crate) fn open_list(path: &Path) -> Result<Box<dyn Read>> {
    if is_dash(path) {
        return Ok(Box::new(open_input(path)?));
    }
    Ok(Box::new(small::open(path).map_err(|e| Failure::io(Action::Read, path, e))?))
}

/// Reads paths from a list.
pub(crate) fn listed(list: &Path, is_null: bool) -> Result<Vec<PathBuf>> {
    let mut bytes = Vec::new();
    let read = open_list(list)?.take(MOST_LISTED + 1).read_to_end(&mut bytes);
    read.map_err(|e| Failure::io(Action::Read, list, e))?;
    paths(list, &bytes, is_null)
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
        Some((path, kind)) => check(&Found::NotAlone, INPUT, |name| match name {
            "verb" => command.to_owned(),
            "path" => show_input(path),
            "kind" => kind.to_owned(),
            _ => proofs.command(command, path),
        }),
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
    /// The program that compressed the input, and the command that unpacks it.
    packer: Option<(&'static str, &'static str)>,
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
            let (roots, packer) = (None, None);
            return Clue { place, named, files, beginning, roots, packer, command, proofs, is_one: false };
        };
        let (roots, packer) = match &object.content {
            Content::Bytes(bytes, len) => {
                let mut text = vec![0; (*len).min(MOST) as usize];
                let is_read = bytes.read_exact_at(0, &mut text).is_ok();
                let text = if is_read { &text[..] } else { &[] };
                (roots::parse(text, *len > MOST), packer(text))
            }
            Content::NoFile | Content::Unreadable(_) => (None, None),
        };
        let files = Vec::new();
        Clue { place: &object.place, named, files, beginning, roots, packer, command, proofs, is_one: true }
    }

    /// The clue from the first bytes of a pipe.
    pub(crate) fn of_head(
        place: &'a Path,
        head: &[u8],
        beginning: Beginning,
        command: &'static str,
        proofs: Proofs<'a>,
    ) -> Clue<'a> {
        let (roots, packer) = (roots::parse(head, false), packer(head));
        Clue { place, named: &[], files: Vec::new(), beginning, roots, packer, command, proofs, is_one: true }
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
            let is_sidecar = is_file && kind::starts(self.place).unwrap_or(false);
            return is_sidecar.then(|| self.refused(Found::Sidecar));
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
        let is_bare = found.wanted.is_none() && found.is_bare() && self.is_one;
        let is_foreign = found.wanted.is_none() && found.is_foreign() && self.is_plain();
        if found.others.is_empty()
            && let Some(meant) = self.other_kind(class.into())
        {
            return meant;
        }
        match self.roots.as_deref() {
            _ if self.packer.is_some() => self.refused(Found::Compressed),
            None | Some([]) => {
                let failure = match is_bare {
                    true => Failure { exit: class.into(), ..self.refused(Found::Nothing) },
                    false => error.into(),
                };
                // Damage may have left nothing else of an encoding. A file of another kind was none.
                Failure { exit: if is_foreign { Exit::Usage } else { failure.exit }, ..failure }
            }
            Some([line]) if line.path.is_none() => self.refused(Found::Root),
            Some(_) => self.refused(Found::Roots { is_checked: self.command == "verify" }),
        }
    }

    /// Tells whether the input is only files of other kinds.
    fn is_plain(&self) -> bool {
        match self.is_one {
            true => !is_dash(self.place) && is_plain(self.place),
            false => !self.files.is_empty() && self.files.iter().all(|file| is_plain(file)),
        }
    }

    fn refused(&self, found: Found) -> Failure {
        let (place, proofs) = (self.place, self.proofs);
        refused(&found, INPUT, |name| match name {
            "verb" => self.command.to_owned(),
            "path" => show_input(place),
            "root" => self.roots.iter().flatten().map(|line| hex(&line.root)).collect(),
            "kind" => self.packer.map_or("", |packer| packer.0).to_owned(),
            "command" if found == Found::Compressed => self.packer.map_or("", |packer| packer.1).to_owned(),
            "given" if is_dash(place) => "HEX".to_owned(),
            "given" => format!("@{}", quoted(place)),
            _ if found == Found::Sidecar => proofs.command("repair", place),
            _ => proofs.command_of_list(place),
        })
    }
}

/// The program that compressed a file, by its first bytes, and the command that unpacks it.
fn packer(head: &[u8]) -> Option<(&'static str, &'static str)> {
    const KNOWN: [(&[u8], &str, &str); 7] = [
        (b"\x1f\x8b", "gzip", "gzip -d"),
        (b"\x28\xb5\x2f\xfd", "zstd", "zstd -d"),
        (b"\xfd7zXZ\0", "xz", "xz -d"),
        (b"BZh", "bzip2", "bzip2 -d"),
        (b"\x04\x22\x4d\x18", "lz4", "lz4 -d"),
        (b"PK\x03\x04", "zip", "unzip"),
        (b"7z\xbc\xaf\x27\x1c", "7-Zip", "7z x"),
    ];
    KNOWN.iter().find(|known| head.starts_with(known.0)).map(|known| (known.1, known.2))
}

/// Tells whether an input starts like a live stream, sealed or not.
pub(crate) fn beginning(input: &Input) -> fecfile::Result<Beginning> {
    let Input::One(object) = input else { return Ok(Beginning::Other) };
    let Content::Bytes(bytes, _) = &object.content else { return Ok(Beginning::Other) };
    detect::object(bytes.as_ref()).map_err(|e| Error::io(Action::Read, object.place.as_path(), e))
}

//! A single file to encode: its input, its target, and the work.

use crate::line;
use crate::plan::check;
use crate::plan::encode::{CLASHES, Clash, FOUND, Found, Kind, code, is_listed};
use crate::run::encode::root_file;
use crate::run::sign::Detached;
use crate::run::target::{Target, check_stdin, is_dash, made_of_file, open_input, quoted};
use crate::say::failure::{Failure, Result};
use crate::settings::Settings;
use crate::system::border;
use fec_base::io::folder::Folder;
use fec_base::io::output::{self, is_same};
use fec_base::io::source::SourceFile;
use fec_base::names::show_input;
use fec_core::error::FormatError;
use fec_keys::sign::SecretKey;
use fecfile::Context;
use fecfile::encode;
use fecfile::error::{Action, Error, ErrorKind, Place};
use fecfile::keep::{self, Fate, Output};
use fecfile::payload::{Grouping, Options, Payload, PayloadDigests, Source};
use fecfile::report::Written;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// The input of an encoding.
pub(crate) enum Input {
    Regular(SourceFile),
    Pipe(File),
}

impl Input {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Input::Regular(_) => Kind::File,
            Input::Pipe(_) => Kind::Pipe,
        }
    }
}

/// A single file to encode.
#[derive(Clone, Copy)]
pub(crate) struct Task<'a> {
    pub(crate) input: &'a Path,
    /// -o.
    pub(crate) output: Option<&'a Path>,
    /// --sign.
    pub(crate) key: Option<&'a SecretKey>,
    pub(crate) args: &'a line::Encode,
    pub(crate) settings: &'a Settings,
}

pub(crate) fn options(args: &line::Encode, key: Option<Arc<SecretKey>>) -> Result<Options> {
    Ok(Options {
        code: code(args)?,
        hash: args.hash.into(),
        set_size: args.set_size,
        grouping: args.group_size.map_or(Grouping::Auto, Grouping::Sets),
        payload_digests: PayloadDigests {
            sha256: args.payload_digest.contains(&line::Hash::Sha256),
            blake3: args.payload_digest.contains(&line::Hash::Blake3),
        },
        sealing: args.seal.sealing()?.map(Arc::new),
        signing: key.filter(|_| args.signature.is_none()),
        outlines: args.outlines,
    })
}

impl<'a> Task<'a> {
    /// The input and the key that signs, for the report.
    pub(crate) fn named(&self) -> (&'a Path, Option<&'a SecretKey>) {
        (self.input, self.key)
    }

    pub(crate) fn open(&self) -> Result<Input> {
        let path = self.input;
        if is_dash(path) {
            check_stdin("encode")?;
            return open_input(path).map(Input::Pipe);
        }
        let meta = std::fs::metadata(path).map_err(|e| Failure::io(Action::Read, path, e))?;
        if meta.is_dir() {
            self.check_found(Kind::Folder, None)?;
        }
        // Files of /proc claim to be empty and are not: their length is unknown.
        let has_bytes = || File::open(path).and_then(|mut f| f.read(&mut [0; 1])).map(|n| n > 0);
        let is_empty = || has_bytes().map(|has| !has).map_err(|e| Failure::io(Action::Read, path, e));
        if meta.is_file() && !border::has_no_length(path) && (meta.len() > 0 || is_empty()?) {
            // Sending to stores keeps memory bounded, and the pages of a map would count.
            let library = self.settings.library;
            let library = fecfile::Settings { map: library.map && self.args.stores.to.is_empty(), ..library };
            let bars = self.settings.bars("scan");
            let context = self.settings.context(&bars).with_settings(library);
            return Ok(Input::Regular(SourceFile::open(path, &context)?));
        }
        open_input(path).map(Input::Pipe)
    }

    /// Refuses what an input of this kind cannot become.
    pub(crate) fn check_found(&self, input: Kind, target: Option<&Target>) -> Result<()> {
        let args = self.args;
        let found = Found {
            is_listed: is_listed(args),
            keep: args.keep,
            has_group_size: args.group_size.is_some(),
            has_outlines: args.outlines,
            input,
            to_folder: matches!(target, Some(Target::Folder(_))),
            to_pipe: target.is_some_and(|target| target.path().is_none()),
        };
        check(&found, FOUND, |name| {
            let path = show_input(self.input);
            let folder = path.trim_end_matches('/');
            match name {
                "path" if input == Kind::Folder => folder.to_owned(),
                "path" => path,
                "folder" => quoted(Path::new(folder)),
                "archive" => quoted(Path::new(&format!("{folder}.tar.fec"))),
                _ => target.map(Target::to_string).unwrap_or_default(),
            }
        })
    }

    /// -o, or FILE.shards/ for a file and standard output for a pipe.
    pub(crate) fn target(&self, input: &Input) -> Target {
        match (self.output, input) {
            (Some(path), _) => Target::of(path),
            (None, Input::Regular(_)) => {
                let mut name = self.input.as_os_str().to_owned();
                name.push(".shards");
                Target::Folder(name.into())
            }
            (None, Input::Pipe(_)) => Target::Stdout,
        }
    }

    /// Refuses outputs that cannot be made, before any work.
    pub(crate) fn check_outputs(&self, input: &Input, target: &Target) -> Result<()> {
        let policy = self.settings.policy(self.args.force || self.args.keep);
        let root_file = self.args.root_file.as_deref();
        let signature = self.args.signature.as_deref();
        if let (Some(one), Some(other)) = (root_file, signature)
            && is_same(one, other)
        {
            check(&Clash::RootAndSignature, CLASHES, |_| show_input(one))?;
        }
        let both = [(root_file, "--root-file"), (signature, "--signature")];
        for (path, option) in both.into_iter().filter_map(|(path, option)| Some((path?, option))) {
            if output::is_special(path) {
                continue;
            }
            match option {
                "--root-file" => root_file::check(path, policy)?,
                _ => output::check_absent(path, policy)?,
            }
            output::check_folder(path)?;
            let mut others = target.path().into_iter().chain([self.input]);
            let clash = if others.any(|other| is_same(path, other)) { Clash::Beside } else { Clash::No };
            let value = |name: &str| if name == "path" { show_input(path) } else { option.to_owned() };
            check(&clash, CLASHES, value)?;
        }
        // The output cannot replace an input that is not a regular file.
        if let Input::Regular(_) = input {
            target.check_inputs([self.input])?;
        }
        Ok(())
    }

    /// The signature, if it goes to its own file.
    pub(crate) fn detached(&self) -> Option<Detached<'a>> {
        let policy = self.settings.policy(self.args.force);
        self.key.zip(self.args.signature.as_deref()).map(|(key, path)| Detached { key, path, policy })
    }

    /// Encodes the input. With --keep, only what is missing or damaged.
    pub(crate) fn encode(&self, input: Input, target: &Target, options: &Options) -> Result<(Written, Fate)> {
        let (args, settings) = (self.args, self.settings);
        let policy = match &input {
            Input::Regular(source) => settings.policy(args.force).made_of(source.mode()),
            Input::Pipe(pipe) => made_of_file(settings.policy(args.force), pipe),
        };
        let bars = settings.bars("scan");
        let context = settings.context(&bars);
        self.check_found(input.kind(), Some(target))?;
        let name = self.input.file_name().map(OsStr::as_encoded_bytes).unwrap_or_default();
        let made = |written| (written, Fate::Made);
        match (input, target) {
            (Input::Regular(source), Target::Folder(path) | Target::File(path)) if args.keep => {
                let output = match target {
                    Target::Folder(_) => Output::Folder(path, name),
                    _ => Output::File(path),
                };
                keep::encode(&source, output, policy, options, &context).map_err(|e| too_large(e, target))
            }
            (Input::Regular(source), Target::Folder(folder)) => {
                let store = Folder::new(folder, policy);
                encode::to_store(&source, name, &store, options, &context)
                    .map(made)
                    .map_err(|e| too_large(e, target))
            }
            (Input::Regular(source), _) => {
                let source = Source::Payload(&source as &dyn Payload);
                container(source, target, policy, options, &context).map(made)
            }
            (Input::Pipe(mut pipe), _) => {
                let source = Source::Pipe(&mut pipe, Place::Path(self.input.to_path_buf()));
                container(source, target, policy, options, &context).map(made)
            }
        }
    }
}

fn container(
    source: Source<'_>,
    target: &Target,
    policy: output::Policy,
    options: &Options,
    context: &Context<'_>,
) -> Result<Written> {
    let written = match target {
        Target::File(path) | Target::Folder(path) => encode::to_file(source, path, policy, options, context),
        Target::Stdout | Target::Special(_) => {
            let (out, place) = target.sequential()?;
            encode::to_writer(source, out, &place, options, context)
        }
    };
    written.map_err(|e| too_large(e, target))
}

/// Turns an error into a failure, with advice where an option breaks a rule of the formats.
fn too_large(error: Error, target: &Target) -> Failure {
    let help = match &error.kind {
        ErrorKind::Format(FormatError::Meta(_)) => None,
        ErrorKind::Format(FormatError::SmallSet { .. }) => {
            Some("choose a larger --set-size, or fewer shards")
        }
        ErrorKind::Format(_) if matches!(target, Target::Folder(_)) => {
            Some("a larger --set-size makes fewer sets")
        }
        ErrorKind::Format(_) => Some("a smaller --set-size makes smaller sets"),
        _ => None,
    };
    let failure = Failure::from(error);
    match help {
        Some(help) => failure.help(help),
        None => failure,
    }
}

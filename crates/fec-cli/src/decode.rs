//! `fec decode`: from shard files, a container or a live stream back to the payload.

mod report;

use crate::args;
use crate::failure::{Exit, Failure, Result, misuse, say};
use crate::fits::mode_of;
use crate::fits::table::{CONTAINER, NETWORK, PIPE, SHARDS, STORES, STREAM};
use crate::inputs::{self, Clue, Inputs, check_not_piped_shard, inputs, output_meant};
use crate::proofs::Proofs;
use crate::settings::Settings;
use crate::sidecar;
use crate::sign;
use crate::stores;
use crate::stream;
use crate::target::{Target, is_dash, made_of_inputs, open_input, payload_output};
use fec_base::error::Action;
use fec_base::io::output::{self, Policy, is_special};
use fec_base::names::{is_plain, show_bytes};
use fec_core::params::Form;
use fec_keys::age::Keys;
use fec_keys::sign::Trust;
use fec_live::address::Address;
use fec_live::detect;
use fecfile::archive::{Archive, Wanted, check_only_stream};
use fecfile::forms::Beginning;
use fecfile::pipe::{self, Pipe};
use fecfile::range::PayloadRange;
use fecfile::report::Restored;
use fecfile::restore::Wish;
use fecfile::seal::Opener;
use fecfile::{Context, EncodingError, Error, Input};
use report::{Asked, Report};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

pub(crate) fn run(args: &args::Decode, settings: &Settings) -> Result<Exit> {
    if !args.stores.from.is_empty() {
        settings.given.check(STORES)?;
        return stores::decode(args, settings);
    }
    let is_told_stream = args.live.is_told() || args.inputs.iter().any(|input| Address::is_one(input));
    settings.given.only_for(match is_told_stream {
        true => &[STREAM, NETWORK],
        false => &[SHARDS, CONTAINER, PIPE, STREAM],
    })?;
    if args.early && !args.trusted.signer.is_empty() {
        return Err(Failure::usage(
            "decode --signer: with --early the payload would go out before the signature came",
        )
        .help("leave --signer out"));
    }
    let started = Instant::now();
    let trust = sign::trust(&args.trusted)?;
    let policy = made_of_inputs(settings.policy(args.force), &args.inputs);
    let output = payload_output(args.output.as_deref(), settings.json);
    let mut decoding = Decoding { args, output, settings, trust, policy, keys: None, started };
    if is_told_stream {
        return decoding.told_stream();
    }
    let opened = inputs(&args.inputs, "decode").map_err(|failure| match args.output {
        None => output_meant(failure, &args.inputs, settings),
        Some(_) => failure,
    });
    match opened? {
        Inputs::Pipe(path, file) => decoding.pipe(&path, file),
        Inputs::Objects(input) => decoding.objects(&input),
    }
}

/// Takes a lost payload as a result too: the report tells how much of it was restored.
fn or_lost(restored: fecfile::Result<Restored>) -> Result<Restored> {
    let restored = restored.or_else(|error| {
        let (action, place) = (error.action, error.place.clone());
        match error.into_cause()? {
            EncodingError::Lost(lost) => Ok(*lost),
            other => Err(Error::at(action, place, other)),
        }
    });
    Ok(restored?)
}

struct Decoding<'a> {
    args: &'a args::Decode,
    /// -o, or `-` where standard output was redirected to a new file.
    output: Option<&'a Path>,
    settings: &'a Settings,
    /// The keys whose signatures count, if --signer is given.
    trust: Option<Trust>,
    policy: Policy,
    /// The keys that open sealed payloads.
    keys: Option<Keys>,
    started: Instant,
}

impl<'a> Decoding<'a> {
    fn proofs(&self) -> Proofs<'a> {
        Proofs::of_decode(self.args, self.settings)
    }

    fn objects(&mut self, input: &Input) -> Result<Exit> {
        let path = &self.args.inputs[0];
        let bars = self.settings.bars("scan");
        let context = self.settings.context(&bars);
        let beginning = inputs::beginning(input)?;
        if beginning == Beginning::Stream && !self.wants_proofs() && !self.args.open.is_given() {
            check_only_stream(input, &context)?;
            self.settings.given.check(STREAM)?;
            let target = self.container_target(path)?;
            return stream::receive_bytes(
                path,
                Vec::new(),
                open_input(path)?,
                &target,
                self.args,
                self.settings,
            );
        }
        if beginning == Beginning::Sealed && self.args.open.passphrase && !self.wants_proofs() {
            return self.told_stream();
        }
        self.settings.given.only_for(&[SHARDS, CONTAINER, PIPE])?;
        self.keys = self.args.open.keys()?;
        let early = self.early_target(input)?;
        let clue = Clue::of((input, &self.args.inputs), beginning, "decode", self.proofs());
        if let Some(range) = self.args.range {
            return self.range(range, (input, &clue), path, early, &context);
        }
        let archive = self.open(input, &context).map_err(|e| {
            sidecar::meant(self.explain(&clue, e), &self.args.inputs, "repair", self.proofs())
        })?;
        check_not_piped_shard(path, &archive)?;
        self.settings.given.check(mode_of(archive.form()))?;
        let opener = self.opener(&archive)?;
        let target = match early {
            Some(target) => target,
            None => self.archive_target(&archive, opener.as_ref(), path)?,
        };
        let wish = self.wish(opener.as_ref());
        let restored = archive.restore(target.open()?.destination(self.policy), wish, &context);
        self.finish(&target, &or_lost(restored)?, Some(&archive))
    }

    /// Finds the encoding by its root or by its signer, or takes the only one.
    fn open(&self, input: &Input, context: &Context<'_>) -> fecfile::Result<Archive> {
        Archive::open(input, Wanted::from(self.args.root).signed_by(self.trust.as_ref()), context)
    }

    /// Restores a range of the payload. Reads only where the index points. If that is not enough, searches the whole
    /// input.
    fn range(
        &self,
        range: PayloadRange,
        (input, clue): (&Input, &Clue<'_>),
        path: &Path,
        early: Option<Target>,
        context: &Context<'_>,
    ) -> Result<Exit> {
        let mut archive = match &self.trust {
            None => {
                Archive::open_by_index(input, self.args.root, context).map_err(|e| self.explain(clue, e))?
            }
            Some(_) => self.open(input, context)?,
        };
        self.settings.given.check(mode_of(archive.form()))?;
        let mut opener = self.opener(&archive)?;
        let target = match early {
            Some(target) => target,
            None => self.archive_target(&archive, opener.as_ref(), path)?,
        };
        let mut restored = self.range_of(&archive, range, opener.as_ref(), &target, context)?;
        // A written range is final, even if the input is cut off elsewhere.
        if !restored.written {
            archive = self.open(input, context)?;
            opener = self.opener(&archive)?;
            restored = self.range_of(&archive, range, opener.as_ref(), &target, context)?;
        }
        self.finish(&target, &restored, Some(&archive))
    }

    fn range_of(
        &self,
        archive: &Archive,
        range: PayloadRange,
        opener: Option<&Opener>,
        target: &Target,
        context: &Context<'_>,
    ) -> Result<Restored> {
        let mut out = target.open()?;
        or_lost(archive.restore_range(range, opener, out.destination(self.policy), context))
    }

    fn pipe(&mut self, path: &Path, mut file: File) -> Result<Exit> {
        let (head, beginning) = detect::pipe(&mut file).map_err(|e| Failure::io(Action::Read, path, e))?;
        let is_stream = match beginning {
            Beginning::Stream => !self.args.open.is_given(),
            Beginning::Sealed => self.args.open.passphrase,
            Beginning::Other => false,
        };
        if is_stream && !self.wants_proofs() {
            self.settings.given.check(STREAM)?;
            let target = self.container_target(path)?;
            return stream::receive_bytes(path, head, file, &target, self.args, self.settings);
        }
        self.settings.given.check(PIPE)?;
        self.keys = self.args.open.keys()?;
        let target = self.container_target(path)?;
        let bars = self.settings.bars("scan");
        let context = self.settings.context(&bars);
        let clue = Clue::of_head(path, &head, beginning, "decode", self.proofs());
        let input = io::Cursor::new(head).chain(file);
        // These options need the whole input: the path to a root may stand anywhere, a signature stands at the end, and
        // a partial result takes all that is left. The pipe is therefore stored first and read like a file.
        let needs_all = self.args.partial
            || self.args.deep
            || self.args.range.is_some()
            || self.args.root.is_some()
            || self.trust.is_some();
        if needs_all && !self.args.early {
            let input = Input::spooled(path, input)?;
            if let Some(range) = self.args.range {
                return self.range(range, (&input, &clue), path, Some(target), &context);
            }
            let archive = self.open(&input, &context).map_err(|e| self.explain(&clue, e))?;
            let opener = self.opener(&archive)?;
            let wish = self.wish(opener.as_ref());
            let restored = archive.restore(target.open()?.destination(self.policy), wish, &context);
            return self.finish(&target, &or_lost(restored)?, Some(&archive));
        }
        let pipe = Pipe { input, place: path, beginning, wanted: self.args.root, keys: self.keys.as_ref() };
        let restored = pipe::restore(pipe, target.open()?.destination(self.policy), &context);
        self.finish(&target, &restored.map_err(|e| self.explain(&clue, e))?, None)
    }

    fn wish<'o>(&self, opener: Option<&'o Opener>) -> Wish<'o> {
        Wish { partial: self.args.partial, strict: self.args.deep, opener }
    }

    /// The opener of a sealed archive, from the keys that were given.
    fn opener(&self, archive: &Archive) -> Result<Option<Opener>> {
        Ok(archive.opener(self.keys.as_ref())?)
    }

    /// Prints the report and returns the exit code of the outcome.
    fn finish(&self, target: &Target, restored: &Restored, archive: Option<&Archive>) -> Result<Exit> {
        let exit = match (&restored.outcome.unreadable, restored.is_whole()) {
            (_, true) => Exit::Done,
            (Some(_), false) => Exit::Io,
            (None, false) => restored.leftovers.class().into(),
        };
        let asked = Asked {
            root_was_given: self.args.root.is_some(),
            signed: archive.and_then(Archive::signed),
            shards: archive.and_then(|archive| Some((archive.given()?, archive.encoded().shape().code))),
            archive,
        };
        let report = Report::new(target, restored, asked, self.settings, self.started);
        let text = report.describe(restored);
        self.settings.report(&report, &text, !matches!(target, Target::File(_)))?;
        if exit != Exit::Done && (self.settings.quiet || self.settings.json) {
            say("fec: decode: the payload cannot be restored whole");
        }
        Ok(exit)
    }

    /// Receives the live stream that --stream or udp:// names.
    fn told_stream(&self) -> Result<Exit> {
        let path = match &self.args.inputs[..] {
            [path] => path,
            _ => {
                return Err(
                    Failure::usage("decode: a stream stands alone").help("name one file or one address")
                );
            }
        };
        self.settings.given.check(if Address::is_one(path) { NETWORK } else { STREAM })?;
        if Address::is_one(path) {
            let target = self.container_target(Path::new("-"))?;
            return stream::receive_udp(path, &target, self.args, self.settings);
        }
        let input = open_input(path)?;
        if input.metadata().is_ok_and(|meta| meta.is_dir()) {
            return Err(
                misuse("read", path, "it is a folder").help("name a file that fec encode --stream wrote")
            );
        }
        let target = self.container_target(path)?;
        stream::receive_bytes(path, Vec::new(), input, &target, self.args, self.settings)
    }

    /// Tells whether an option asks for proofs, which live streams do not have: a root, a signer, or proved parts.
    fn wants_proofs(&self) -> bool {
        self.args.root.is_some()
            || self.trust.is_some()
            || self.args.partial
            || self.args.early
            || self.args.range.is_some()
    }

    /// The failure of an input in which nothing was found. Options that a live stream has no use for made fec look for
    /// an encoding in one.
    fn explain(&self, clue: &Clue<'_>, error: fecfile::Error) -> Failure {
        let is_stream = matches!(error.cause(), Some(EncodingError::NothingFound(_))) && clue.is_stream();
        match self.settings.given.check(STREAM) {
            Err(refusal) if is_stream => refusal,
            _ => clue.explain(error),
        }
    }

    /// The target, checked before any work. `None` if the name depends on what the input holds.
    fn early_target(&self, input: &Input) -> Result<Option<Target>> {
        match (self.output, input) {
            (Some(path), _) => match Target::of(path) {
                // The name in the folder is the recorded one, or the container's: both are not known yet.
                Target::Folder(_) => Ok(None),
                target => self.check_target(target).map(Some),
            },
            (None, Input::One(_)) if is_dash(&self.args.inputs[0]) => {
                self.check_target(Target::Stdout).map(Some)
            }
            (None, _) => Ok(None),
        }
    }

    /// The target for an opened archive. Shard files record a name; a container's name loses its `.fec`.
    fn archive_target(&self, archive: &Archive, opener: Option<&Opener>, path: &Path) -> Result<Target> {
        if archive.form() == Form::Container {
            return self.container_target(path);
        }
        let target = self.named_target(|| {
            // The format's reader has checked that the name is one path component.
            let sealed = || opener.and_then(Opener::name).map(<[u8]>::to_vec);
            let name = archive.name().or_else(sealed).ok_or_else(|| {
                Failure::usage("decode: no name is recorded").help("name the output with -o")
            })?;
            if !is_plain(&name) {
                let what = format!("decode: the recorded name \"{}\" is not a plain one", show_bytes(&name));
                return Err(Failure::usage(what).help("name the output with -o"));
            }
            Ok(PathBuf::from(OsString::from_vec(name)))
        })?;
        self.check_target(target)
    }

    fn container_target(&self, input: &Path) -> Result<Target> {
        let is_pipe = || is_dash(input) || !std::fs::metadata(input).is_ok_and(|meta| meta.is_file());
        if self.output.is_none() && is_pipe() {
            return self.check_target(Target::Stdout);
        }
        let target = self.named_target(|| {
            let stem = input.as_os_str().as_bytes().strip_suffix(b".fec");
            let stem = stem.filter(|s| !s.is_empty() && !s.ends_with(b"/"));
            stem.map(|s| PathBuf::from(OsString::from_vec(s.to_vec()))).ok_or_else(|| {
                misuse("decode", input, "the output has no name, since this one does not end in .fec")
                    .help("name it with -o")
            })
        })?;
        self.check_target(target)
    }

    /// The target of -o, or the default that `name` gives. In a folder, the last component of the default.
    fn named_target(&self, name: impl Fn() -> Result<PathBuf>) -> Result<Target> {
        let Some(path) = self.output else { return Ok(Target::File(name()?)) };
        match Target::of(path) {
            Target::Folder(_) => {
                let name = name()?;
                let last = name.file_name().ok_or_else(|| Failure::usage("decode: no name is recorded"))?;
                Ok(Target::File(path.join(last)))
            }
            target => Ok(target),
        }
    }

    /// Refuses an output that cannot be made, before any work.
    fn check_target(&self, target: Target) -> Result<Target> {
        match &target {
            Target::File(path) | Target::Folder(path) => {
                output::check_absent(path, self.policy)?;
                target.check_inputs(self.args.inputs.iter().map(PathBuf::as_path))?;
            }
            Target::Stdout => drop(target.sequential()?),
            Target::Special(path) => debug_assert!(is_special(path)),
        }
        Ok(target)
    }
}

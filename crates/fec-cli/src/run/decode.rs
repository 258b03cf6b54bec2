//! `fec decode`: from shard files, a container or a live stream back to the payload.

use crate::line;
use crate::line::seal::Open;
use crate::line::stream::Receive;
use crate::plan::check;
use crate::plan::decode::{self as plan, Decode, Way};
use crate::plan::encode::Kind;
use crate::plan::given::mode_of;
use crate::plan::options::{CONTAINER, PIPE, SHARDS, STREAM};
use crate::run::inputs::{self, Clue, Inputs, check_not_piped_shard, output_meant};
use crate::run::proofs::Proofs;
use crate::run::sidecar;
use crate::run::sign;
use crate::run::stores;
use crate::run::stream::{self, Reception};
use crate::run::target::{Target, check_not_redirected, is_dash, kind, made_of_inputs, open_input};
use crate::say::decode::{Asked, Report};
use crate::say::failure::{Exit, Failure, Result, say};
use crate::say::state::Outcome;
use crate::settings::Settings;
use fec_base::error::Action;
use fec_base::io::output::{self, Policy, is_special};
use fec_base::names::show_input;
use fec_core::params::Form;
use fec_keys::age::Keys;
use fec_keys::sign::Trust;
use fec_live::detect;
use fecfile::forms::Beginning;
use fecfile::pipe::{self, Pipe};
use fecfile::report::Restored;
use fecfile::seal::Opener;
use fecfile::{Archive, Context, EncodingError, Error, Input, PayloadRange, Wanted, Wish, check_only_stream};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Instant;

pub(crate) fn run(args: &line::Decode, settings: &Settings) -> Result<Exit> {
    let plan = Decode::of(args, settings.given)?;
    if plan == Decode::Stores {
        return stores::decode(args, settings);
    }
    let started = Instant::now();
    let trust = sign::trust(&args.trusted)?;
    let policy = made_of_inputs(settings.policy(args.force), &args.inputs);
    let output = args.output.as_deref();
    let (inputs, open, live) = (&args.inputs[..], &args.open, &args.live);
    let (asked, proofs) = (plan::Asked::of(args), Proofs::of_decode(args, settings));
    let mut decoding =
        Decoding { asked, inputs, open, live, proofs, output, settings, trust, policy, keys: None, started };
    match plan {
        Decode::Network(address) => {
            let target = decoding.container_target(Path::new("-"))?;
            return stream::receive_udp(address, &decoding.reception(&target), settings);
        }
        Decode::Stream(path) => return decoding.stream(path),
        Decode::Stores | Decode::Inputs => {}
    }
    let opened = inputs::inputs(inputs, "decode").map_err(|failure| match args.output {
        None => output_meant(failure, inputs, settings),
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
    asked: plan::Asked,
    inputs: &'a [PathBuf],
    open: &'a Open,
    live: &'a Receive,
    proofs: Proofs<'a>,
    /// -o.
    output: Option<&'a Path>,
    settings: &'a Settings,
    /// The keys whose signatures count, if --signer is given.
    trust: Option<Trust>,
    policy: Policy,
    /// The keys that open sealed payloads.
    keys: Option<Keys>,
    started: Instant,
}

/// An input that can be read at any position, and the circumstances of its encoding.
struct Encoding<'a> {
    input: &'a Input,
    clue: &'a Clue<'a>,
    path: &'a Path,
    /// The target, if it does not depend on the encoding.
    target: Option<Target>,
    /// The input was a pipe that is stored now.
    is_pipe: bool,
}

impl<'a> Decoding<'a> {
    fn objects(&mut self, input: &Input) -> Result<Exit> {
        let path = &self.inputs[0];
        let bars = self.settings.bars("scan");
        let context = self.settings.context(&bars);
        let beginning = inputs::beginning(input)?;
        let way = self.asked.way(beginning, false);
        if way == Way::Stream {
            if beginning == Beginning::Stream {
                check_only_stream(input, &context)?;
            }
            self.settings.given.check(STREAM)?;
            return self.stream(path);
        }
        self.settings.given.only_for(&[SHARDS, CONTAINER, PIPE])?;
        self.keys = self.open.keys()?;
        let target = self.early_target(input)?;
        let clue = Clue::of((input, self.inputs), beginning, "decode", self.proofs);
        self.encoding(way, Encoding { input, clue: &clue, path, target, is_pipe: false }, &context)
    }

    /// Restores from an input that can be read at any position.
    fn encoding(&self, way: Way, of: Encoding<'_>, context: &Context<'_>) -> Result<Exit> {
        if let Way::Range(range) = way {
            return self.range(range, of, context);
        }
        let archive = self.open(of.input, context).map_err(|e| {
            let failure = self.explain(of.clue, e);
            if of.is_pipe {
                return failure;
            }
            sidecar::meant(failure, self.inputs, "repair", self.proofs)
        })?;
        if !of.is_pipe {
            check_not_piped_shard(of.path, &archive)?;
            self.settings.given.check(mode_of(archive.form()))?;
        }
        let opener = self.opener(&archive)?;
        let target = self.target(&archive, opener.as_ref(), &of)?;
        let wish = self.wish(opener.as_ref());
        let restored = archive.restore(target.open()?.destination(self.policy), wish, context);
        self.finish(&target, &or_lost(restored)?, Some(&archive))
    }

    /// Finds the encoding by its root or by its signer, or takes the only one.
    fn open(&self, input: &Input, context: &Context<'_>) -> fecfile::Result<Archive> {
        Archive::open(input, Wanted::from(self.asked.root).signed_by(self.trust.as_ref()), context)
    }

    /// Restores a range of the payload. Reads only where the index points. If that is not enough, searches the whole
    /// input.
    fn range(&self, range: PayloadRange, of: Encoding<'_>, context: &Context<'_>) -> Result<Exit> {
        let mut archive = match &self.trust {
            None => Archive::open_by_index(of.input, self.asked.root, context)
                .map_err(|e| self.explain(of.clue, e))?,
            Some(_) => self.open(of.input, context)?,
        };
        if !of.is_pipe {
            self.settings.given.check(mode_of(archive.form()))?;
        }
        let mut opener = self.opener(&archive)?;
        let target = self.target(&archive, opener.as_ref(), &of)?;
        let mut restored = self.range_of(&archive, range, opener.as_ref(), &target, context)?;
        // A written range is final, even if the input is cut off elsewhere.
        if !restored.written {
            archive = self.open(of.input, context)?;
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
        let way = self.asked.way(beginning, true);
        if way == Way::Stream {
            self.settings.given.check(STREAM)?;
            let target = self.container_target(path)?;
            return stream::receive_bytes(path, head, file, &self.reception(&target), self.settings);
        }
        self.settings.given.check(PIPE)?;
        self.keys = self.open.keys()?;
        let target = self.container_target(path)?;
        let bars = self.settings.bars("scan");
        let context = self.settings.context(&bars);
        let clue = Clue::of_head(path, &head, beginning, "decode", self.proofs);
        let input = io::Cursor::new(head).chain(file);
        if way != Way::AsItComes {
            let input = &Input::spooled(path, input)?;
            let of = Encoding { input, clue: &clue, path, target: Some(target), is_pipe: true };
            return self.encoding(way, of, &context);
        }
        let pipe = Pipe { input, place: path, beginning, wanted: self.asked.root, keys: self.keys.as_ref() };
        let restored = pipe::restore(pipe, target.open()?.destination(self.policy), &context);
        self.finish(&target, &restored.map_err(|e| self.explain(&clue, e))?, None)
    }

    fn wish<'o>(&self, opener: Option<&'o Opener>) -> Wish<'o> {
        Wish { partial: self.asked.partial, strict: self.asked.deep, opener }
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
            root_was_given: self.asked.root.is_some(),
            signed: archive.and_then(Archive::signed),
            shards: archive.and_then(|archive| Some((archive.given()?, archive.encoded().shape().code))),
            archive,
        };
        let report = Report::new(target, restored, asked, self.settings, self.started);
        let text = report.describe(restored);
        let outcome = Outcome::mended(exit, report.was_damaged());
        self.settings.report(&report, outcome, &text, !matches!(target, Target::File(_)))?;
        if exit != Exit::Done && (self.settings.quiet || self.settings.json) {
            say("fec: decode: the payload cannot be restored whole");
        }
        Ok(exit)
    }

    fn reception<'t>(&'t self, target: &'t Target) -> Reception<'t> {
        let Decoding { live, policy, .. } = *self;
        Reception { live, has_passphrase: self.open.passphrase, target, policy }
    }

    /// Receives the live stream in a file or pipe.
    fn stream(&self, path: &Path) -> Result<Exit> {
        let input = open_input(path)?;
        let is_folder = input.metadata().is_ok_and(|meta| meta.is_dir());
        check(&is_folder, plan::STREAM_INPUT, |_| show_input(path))?;
        let target = self.container_target(path)?;
        stream::receive_bytes(path, Vec::new(), input, &self.reception(&target), self.settings)
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
            (None, Input::One(_)) if is_dash(&self.inputs[0]) => self.check_target(Target::Stdout).map(Some),
            (None, _) => Ok(None),
        }
    }

    /// The target that is known already, or that the archive names.
    fn target(&self, archive: &Archive, opener: Option<&Opener>, of: &Encoding<'_>) -> Result<Target> {
        of.target.clone().map_or_else(|| self.archive_target(archive, opener, of.path), Ok)
    }

    /// The target for an opened archive. Shard files record a name; a container's name loses its `.fec`.
    fn archive_target(&self, archive: &Archive, opener: Option<&Opener>, path: &Path) -> Result<Target> {
        if archive.form() == Form::Container {
            return self.container_target(path);
        }
        let name = archive.name();
        let name = name.as_deref().or_else(|| opener.and_then(Opener::name));
        let target = self.named_target(|| plan::recorded(name))?;
        self.check_target(target)
    }

    fn container_target(&self, input: &Path) -> Result<Target> {
        if self.output.is_none() && kind(input) != Kind::File {
            return self.check_target(Target::Stdout);
        }
        let target = self.named_target(|| plan::stem(input))?;
        self.check_target(target)
    }

    /// The target of -o, or the default that `name` gives. In a folder, the last component of the default.
    fn named_target(&self, name: impl Fn() -> Result<PathBuf>) -> Result<Target> {
        let Some(path) = self.output else { return Ok(Target::File(name()?)) };
        match Target::of(path) {
            Target::Folder(_) => Ok(Target::File(plan::in_folder(path, &name()?)?)),
            target => Ok(target),
        }
    }

    /// Refuses an output that cannot be made, before any work.
    fn check_target(&self, target: Target) -> Result<Target> {
        match &target {
            Target::File(path) | Target::Folder(path) => {
                check_not_redirected(path)?;
                output::check_absent(path, self.policy)?;
                target.check_inputs(self.inputs.iter().map(PathBuf::as_path))?;
            }
            Target::Stdout => drop(target.sequential()?),
            Target::Special(path) => debug_assert!(is_special(path)),
        }
        Ok(target)
    }
}

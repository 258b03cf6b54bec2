//! `fec decode`: from shard files or a container back to the payload.

mod live;
mod report;
mod stream;

use crate::archive::container::Census;
use crate::archive::inputs::{ContainerFile, Inputs, classify, spool};
use crate::archive::shards::gather;
use crate::archive::{Encoded, Leftovers, choose};
use crate::args;
use crate::failure::{Exit, Failure, Result, say, show, show_bytes};
use crate::restore::{Nowhere, Outcome, Restorer, Sink, SpareDecoders};
use crate::settings::Settings;
use crate::stages::{self, Stage};
use crate::stream::address::Address;
use crate::stream::detect;
use crate::stream::receive::Source;
use crate::sys::cleanup::parent;
use crate::sys::output::{self, FileOut, Policy};
use fec_core::digest::Digest;
use fec_core::set::PlanCache;
use report::Report;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

/// Where the payload goes.
enum Target {
    File(PathBuf),
    /// A device, FIFO or socket: written from front to back.
    Special(PathBuf),
    Stdout,
}

pub(crate) fn run(args: &args::Decode, settings: &Settings) -> Result<Exit> {
    let decoding = Decoding { args, settings, policy: settings.policy(args.force), started: Instant::now() };
    if args.live.stream || args.inputs.iter().any(|input| Address::is_one(input)) {
        return decoding.live(decoding.live_source()?);
    }
    match classify(&args.inputs, args.root, settings)? {
        Inputs::Shards(paths) => {
            decoding.not_live(&paths[0])?;
            decoding.shards(&paths)
        }
        Inputs::Container(input) => {
            let is_live = detect::file(&input.file).map_err(|e| Failure::io("read", &input.path, &e))?;
            if is_live && !decoding.wants_proofs() {
                decoding.only_live(&input)?;
                return decoding.live(Source::Bytes {
                    path: input.path,
                    head: Vec::new(),
                    input: input.file,
                });
            }
            decoding.not_live(&input.path)?;
            let target = decoding.container_target(&input.path)?;
            decoding.container(&input, &target, is_live)
        }
        Inputs::Pipe(path, file) => {
            let (head, is_live) = detect::pipe(&file).map_err(|e| Failure::io("read", &path, &e))?;
            if is_live && !decoding.wants_proofs() {
                return decoding.live(Source::Bytes { path, head, input: file });
            }
            decoding.not_live(&path)?;
            let file = io::Cursor::new(head).chain(file);
            let target = decoding.container_target(&path)?;
            let to_stdout = !matches!(target, Target::File(_));
            // A root must be proved before bytes go out, and a partial result needs all that is left.
            if args.partial || (args.root.is_some() && to_stdout && !args.early) {
                return decoding.container(&spool(&path, file)?, &target, is_live);
            }
            decoding.stream(&path, file, &target, is_live)
        }
    }
}

struct Decoding<'a> {
    args: &'a args::Decode,
    settings: &'a Settings,
    policy: Policy,
    started: Instant,
}

impl Decoding<'_> {
    fn restorer<'a>(&'a self, plans: &'a PlanCache, budget: u64) -> Restorer<'a> {
        Restorer {
            settings: self.settings,
            plans,
            budget,
            partial: self.args.partial,
            progress: None,
            spare: SpareDecoders::default(),
        }
    }

    fn shards(&self, paths: &[PathBuf]) -> Result<Exit> {
        let gathered = gather(paths)?;
        let plans = PlanCache::new(self.settings.backend);
        let root =
            choose::shards(&gathered, self.args.root, &self.restorer(&plans, self.settings.max_memory))?;
        let set = &gathered.sets[&root];
        let encoded = set.encoded();
        let target = self.shards_target(&encoded)?;
        let others: Vec<Digest> = gathered.sets.keys().filter(|r| **r != root).copied().collect();
        self.restore(&encoded, &target, &plans, &gathered.leftovers, &others)
    }

    fn container(&self, input: &ContainerFile, target: &Target, is_live: bool) -> Result<Exit> {
        let max_group = self.settings.max_group;
        let len = input.file.metadata().ok().map(|m| m.len());
        let progress = self.settings.progress("scan", len);
        let mut census = Census::of_file(input, max_group, self.args.root, &progress)?;
        progress.finish();
        census.leftovers.is_live = is_live;
        let streams = census.streams()?;
        let stream = choose::stream(&census, &streams, self.args.root)?;
        let others: Vec<Digest> =
            streams.iter().filter_map(|s| s.root).filter(|r| Some(*r) != stream.root).collect();
        let encoded = census.encoded(&stream, Some(&input.file), max_group);
        let plans = PlanCache::new(self.settings.backend);
        if !census.is_restorable(&stream) && !self.args.partial {
            // Decode to nowhere, for the list of what is lost: nothing is written.
            let restorer = self.restorer(&plans, self.settings.max_memory);
            let outcome = restorer.run(encoded.records.as_ref(), &encoded.groups, &Nowhere)?;
            return self.finish(&encoded, target, outcome, &census.leftovers, &others, false);
        }
        self.restore(&encoded, target, &plans, &census.leftovers, &others)
    }

    /// Restores an encoding to its target and reports.
    fn restore(
        &self,
        encoded: &Encoded,
        target: &Target,
        plans: &PlanCache,
        leftovers: &Leftovers,
        others: &[Digest],
    ) -> Result<Exit> {
        encoded.check_memory(self.settings)?;
        let len = encoded.known_len();
        let progress = self.settings.progress("decode", Some(len));
        let mut restorer = self.restorer(plans, self.settings.max_memory);
        restorer.progress = Some(&progress);
        match target {
            Target::File(path) => {
                output::check_room(path, len)?;
                let out = FileOut::create(path, self.policy)?;
                let sink = FileSink { file: out.file(), failure: &|e| out.failure(e) };
                let outcome = restorer.run(encoded.records.as_ref(), &encoded.groups, &sink)?;
                let keep = outcome.untrue.is_none() && (outcome.is_whole() || self.args.partial);
                progress.finish();
                if keep {
                    let _stage = stages::enter(Stage::Sync, 0);
                    out.commit(len)?;
                }
                self.finish(encoded, target, outcome, leftovers, others, keep)
            }
            Target::Stdout | Target::Special(_) => {
                let failure = |e: &io::Error| match target {
                    Target::Special(path) => Failure::io("write", path, e),
                    _ => Failure::stdout(e),
                };
                let mut out = open_sequential(target)?;
                let (outcome, written) = if encoded.groups.len() == 1 {
                    self.spooled(encoded, &restorer, &mut out, &failure)?
                } else {
                    self.by_group(encoded, &mut restorer, &mut out, &failure)?
                };
                progress.finish();
                self.finish(encoded, target, outcome, leftovers, others, written)
            }
        }
    }

    /// One group, of any size: its first bytes need every set, so it goes through a temporary file.
    fn spooled(
        &self,
        encoded: &Encoded,
        restorer: &Restorer,
        out: &mut File,
        failure: &dyn Fn(&io::Error) -> Failure,
    ) -> Result<(Outcome, bool)> {
        let here = Path::new("the temporary file");
        let mut spool = tempfile::tempfile().map_err(|e| Failure::io("create", here, &e))?;
        let sink = FileSink { file: &spool, failure: &|e| Failure::io("write", here, e) };
        let outcome = restorer.run(encoded.records.as_ref(), &encoded.groups, &sink)?;
        let keep = outcome.untrue.is_none() && (outcome.is_whole() || self.args.partial);
        if keep {
            spool.set_len(encoded.known_len()).map_err(|e| Failure::io("write", here, &e))?;
            spool.rewind().map_err(|e| Failure::io("read", here, &e))?;
            io::copy(&mut spool, out).map_err(|e| failure(&e))?;
        }
        Ok((outcome, keep))
    }

    /// Group after group, each from memory, as soon as it is proved.
    fn by_group(
        &self,
        encoded: &Encoded,
        restorer: &mut Restorer,
        out: &mut File,
        failure: &dyn Fn(&io::Error) -> Failure,
    ) -> Result<(Outcome, bool)> {
        restorer.budget = self.settings.max_memory.saturating_sub(encoded.shape().capacity());
        let mut outcome = Outcome::default();
        let buffer = Mutex::new(Vec::new());
        for group in &encoded.groups {
            let len = group.geometry.payload_len() as usize;
            {
                let mut bytes = buffer.lock().unwrap_or_else(|e| e.into_inner());
                bytes.clear();
                bytes.resize(len, 0);
            }
            let sink = MemorySink { bytes: &buffer, start: group.start };
            let done = restorer.run(encoded.records.as_ref(), std::slice::from_ref(group), &sink)?;
            let stop = done.untrue.is_some() || !(done.is_whole() || self.args.partial);
            outcome.absorb(done);
            if stop {
                return Ok((outcome, false));
            }
            let bytes = buffer.lock().unwrap_or_else(|e| e.into_inner());
            out.write_all(&bytes).map_err(|e| failure(&e))?;
        }
        Ok((outcome, true))
    }

    /// The report, and the exit code that the outcome means.
    fn finish(
        &self,
        encoded: &Encoded,
        target: &Target,
        outcome: Outcome,
        leftovers: &Leftovers,
        others: &[Digest],
        written: bool,
    ) -> Result<Exit> {
        if let Some((group, set, error)) = outcome.untrue {
            return Err(crate::restore::untrue(group, set, error));
        }
        let whole = outcome.is_whole() && encoded.payload_len.is_some();
        let exit = match (&outcome.unreadable, whole) {
            (_, true) => Exit::Done,
            (Some(_), false) => Exit::Io,
            (None, false) => leftovers.exit(),
        };
        let report = Report::new(self, encoded, target, &outcome, leftovers, others, written);
        let text = report.describe(&outcome, leftovers, self.args.root.is_some());
        self.settings.report(&report, &text, !matches!(target, Target::File(_)))?;
        if !whole && (self.settings.quiet || self.settings.json) {
            say("fec: decode: the payload cannot be restored whole");
        }
        Ok(exit)
    }

    fn shards_target(&self, encoded: &Encoded) -> Result<Target> {
        let name = encoded.name.as_deref();
        let target = self.target(|| {
            // The name is one path component: the reader of the format saw to that.
            name.map(|name| PathBuf::from(OsString::from_vec(name.to_vec())))
                .ok_or_else(|| Failure::usage("decode: no name is recorded").help("name the output with -o"))
        })?;
        self.check_target(target)
    }

    fn container_target(&self, input: &Path) -> Result<Target> {
        let target = match (&self.args.output, std::fs::metadata(input)) {
            (None, Err(_)) => Target::Stdout,
            (None, Ok(_)) if input.as_os_str() == "-" => Target::Stdout,
            (None, Ok(meta)) if !meta.is_file() => Target::Stdout,
            _ => self.target(|| {
                let stem = input.as_os_str().as_bytes().strip_suffix(b".fec");
                let stem = stem.filter(|s| !s.is_empty() && !s.ends_with(b"/"));
                stem.map(|s| PathBuf::from(OsString::from_vec(s.to_vec()))).ok_or_else(|| {
                    Failure::usage(format!("decode {}: its name does not end in .fec", show(input)))
                        .help("name the output with -o")
                })
            })?,
        };
        self.check_target(target)
    }

    /// -o, or the default that `name` gives; in a folder, the last component of that default.
    fn target(&self, name: impl Fn() -> Result<PathBuf>) -> Result<Target> {
        let Some(path) = &self.args.output else { return Ok(Target::File(name()?)) };
        if path.as_os_str() == "-" {
            return Ok(Target::Stdout);
        }
        if path.is_dir() || path.as_os_str().as_bytes().ends_with(b"/") {
            let name = name()?;
            let last = name.file_name().ok_or_else(|| Failure::usage("decode: no name is recorded"))?;
            return Ok(Target::File(path.join(last)));
        }
        if output::is_special(path) {
            return Ok(Target::Special(path.clone()));
        }
        Ok(Target::File(path.clone()))
    }

    /// Refuses, before any work, an output that cannot be made.
    fn check_target(&self, target: Target) -> Result<Target> {
        match &target {
            Target::File(path) => {
                output::check_absent(path, self.policy)?;
                // With -f it would be replaced: the input itself, or a shard in a folder of them.
                let is_input = |input: &PathBuf| {
                    let in_folder = || output::is_shard_file(path) && output::is_same(parent(path), input);
                    input.as_os_str() != "-" && (output::is_same(path, input) || in_folder())
                };
                if self.args.inputs.iter().any(is_input) {
                    return Err(Failure::usage(format!(
                        "write {}: it is, or is among, the input",
                        show(path)
                    ))
                    .help("choose another output with -o"));
                }
            }
            Target::Stdout => drop(output::stdout_for_data()?),
            Target::Special(_) => {}
        }
        Ok(target)
    }
}

/// Opens a target that is written from front to back.
fn open_sequential(target: &Target) -> Result<File> {
    match target {
        Target::Special(path) | Target::File(path) => output::open_special(path),
        Target::Stdout => output::stdout_for_data(),
    }
}

/// The target in words.
fn show_target(target: &Target) -> String {
    match target {
        Target::File(path) | Target::Special(path) => show(path),
        Target::Stdout => "-".to_owned(),
    }
}

struct FileSink<'a> {
    file: &'a File,
    failure: &'a (dyn Fn(&io::Error) -> Failure + Sync),
}

impl Sink for FileSink<'_> {
    fn put(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.file.write_all_at(bytes, offset).map_err(|e| (self.failure)(&e))
    }
}

/// One group's payload in memory.
struct MemorySink<'a> {
    bytes: &'a Mutex<Vec<u8>>,
    start: u64,
}

impl Sink for MemorySink<'_> {
    fn put(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let at = (offset - self.start) as usize;
        self.bytes.lock().unwrap_or_else(|e| e.into_inner())[at..at + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
}

/// A recorded name for people.
fn show_name(name: &Option<Vec<u8>>) -> Option<String> {
    name.as_deref().map(show_bytes)
}

//! `fec encode`: from arguments to shard files or a container.

use crate::args;
use crate::failure::{Exit, Failure, Result, misuse, say};
use crate::settings::{SCHEMA_VERSION, Settings, print_line};
use crate::stores;
use crate::stream;
use crate::target::{Target, is_dash, open_input};
use fec_core::block::Code;
use fec_core::error::FormatError;
use fecfile::Context;
use fecfile::encode;
use fecfile::error::{Error, ErrorKind, Place};
use fecfile::io::folder::Folder;
use fecfile::io::output::{self, is_same};
use fecfile::io::source::SourceFile;
use fecfile::names::{hex, show};
use fecfile::payload::{Grouping, Options, Payload, PayloadDigests, Source};
use fecfile::report::Written;
use serde::Serialize;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

/// What `encode` did.
#[derive(Debug, Serialize)]
struct Report {
    schema_version: u32,
    command: &'static str,
    input: String,
    output: String,
    form: &'static str,
    root: String,
    hash: &'static str,
    k: usize,
    m: usize,
    payload_bytes: u64,
    output_bytes: u64,
    shard_bytes: usize,
    sets: u64,
    groups: u32,
    /// Bytes of a container that may be lost in one piece, wherever that is.
    survives_gap_bytes: Option<u64>,
    backend: &'static str,
    threads: usize,
    seconds: f64,
}

/// What is encoded.
enum Input {
    Regular(SourceFile),
    Pipe(File),
}

pub(crate) fn run(args: &args::Encode, settings: &Settings) -> Result<Exit> {
    if args.live.stream {
        return stream::send(args, settings);
    }
    if args.outputs.len() > 1 {
        return Err(Failure::usage("encode: several -o are for --stream")
            .help("shards may be moved to other places afterwards"));
    }
    let started = Instant::now();
    let options = options(args)?;
    let input = open(&args.input, settings)?;
    if !args.stores.to.is_empty() {
        return to_stores(args, input, &options, settings, started);
    }
    let target = target(args, &input);
    check_outputs(args, &input, &target, settings)?;
    let written = write(args, input, &target, &options, settings)?;
    let root = hex(&written.root);
    if let Some(path) = &args.root_file {
        output::write_text(path, &format!("{root}\n"), settings.policy(args.force))
            .map_err(|e| Failure::from(e).help(format!("the encoding is complete; its root is {root}")))?;
    }
    let report = report(args, &target, &options, &written, settings, started);
    let stdout_is_data = target.is_stdout();
    settings.report(&report, &describe(&report), stdout_is_data)?;
    match (settings.json, stdout_is_data) {
        (false, false) => print_line(&report.root)?,
        (false, true) => say(&report.root),
        (true, _) => {}
    }
    Ok(Exit::Done)
}

fn options(args: &args::Encode) -> Result<Options> {
    let (k, m) = args.redundancy.unwrap_or((args.data, args.recovery));
    let code = Code::new(k.into(), m.into()).map_err(|e| {
        Failure::usage(format!("-k {k} -m {m}: {e}")).help("k is at least 1 and k + m at most 256")
    })?;
    Ok(Options {
        code,
        hash: args.hash.into(),
        set_size: args.set_size,
        grouping: args.group_size.map_or(Grouping::Auto, Grouping::Sets),
        payload_digests: PayloadDigests {
            sha256: args.payload_digest.contains(&args::Hash::Sha256),
            blake3: args.payload_digest.contains(&args::Hash::Blake3),
        },
    })
}

fn open(path: &Path, settings: &Settings) -> Result<Input> {
    if is_dash(path) {
        return open_input(path).map(Input::Pipe);
    }
    let meta = std::fs::metadata(path).map_err(|e| Failure::io("read", path, e))?;
    if meta.is_dir() {
        let name = show(path);
        let name = name.trim_end_matches('/');
        return Err(Failure::usage(format!("read {name}: it is a folder"))
            .help(format!("pack it first: tar c {name} | fec encode - -o {name}.tar.fec")));
    }
    // Files of the system (/proc) say they are empty and are not: their length is not known.
    let has_bytes = || File::open(path).and_then(|mut f| f.read(&mut [0; 1])).is_ok_and(|n| n > 0);
    if meta.is_file() && (meta.len() > 0 || !has_bytes()) {
        return Ok(Input::Regular(SourceFile::open(path, settings.library.map)?));
    }
    open_input(path).map(Input::Pipe)
}

/// -o, or FILE.shards/ for a file and standard output for a pipe.
fn target(args: &args::Encode, input: &Input) -> Target {
    match (args.outputs.first(), input) {
        (Some(path), _) => Target::of(path),
        (None, Input::Regular(_)) => {
            let mut name = args.input.clone().into_os_string();
            name.push(".shards");
            Target::Folder(name.into())
        }
        (None, Input::Pipe(_)) => Target::Stdout,
    }
}

/// Refuses, before any work, outputs that cannot be made.
fn check_outputs(args: &args::Encode, input: &Input, target: &Target, settings: &Settings) -> Result<()> {
    let policy = settings.policy(args.force);
    if let Some(path) = args.root_file.as_deref().filter(|p| !output::is_special(p)) {
        output::check_absent(path, policy)?;
        output::check_folder(path)?;
        if target.path().into_iter().chain([args.input.as_path()]).any(|other| is_same(path, other)) {
            return Err(
                misuse("write", path, "it is the input or the output").help("choose another --root-file")
            );
        }
    }
    // What is not a regular file cannot be replaced by the output.
    if let Input::Regular(_) = input {
        target.check_inputs([args.input.as_path()])?;
    }
    Ok(())
}

fn write(
    args: &args::Encode,
    input: Input,
    target: &Target,
    options: &Options,
    settings: &Settings,
) -> Result<Written> {
    let policy = settings.policy(args.force);
    let bars = settings.bars("scan");
    let context = Context { settings: settings.library, progress: &bars };
    let mut pipe;
    let source = match (input, target) {
        (Input::Regular(source), Target::Folder(folder)) => {
            if args.group_size.is_some() {
                return Err(Failure::usage("--group-size is for containers: shard files are one group"));
            }
            let name = args.input.file_name().map(OsStrExt::as_bytes).unwrap_or_default();
            let store = Folder::new(folder, policy);
            return encode::to_store(&source, name, &store, options, &context)
                .map_err(|e| too_large(e, "a larger --set-size makes fewer sets"));
        }
        (Input::Pipe(_), Target::Folder(_)) => {
            return Err(misuse("read", &args.input, "its length is not known, shard files need it")
                .help("make a container: -o NAME.fec or -o -"));
        }
        (Input::Regular(source), _) => {
            return container(Source::Payload(&source as &dyn Payload), target, policy, options, &context);
        }
        (Input::Pipe(file), _) => {
            pipe = file;
            Source::Pipe(&mut pipe, Place::Path(args.input.clone()))
        }
    };
    container(source, target, policy, options, &context)
}

/// Sends the shards to stores.
fn to_stores(
    args: &args::Encode,
    input: Input,
    options: &Options,
    settings: &Settings,
    started: Instant,
) -> Result<Exit> {
    check_outputs(args, &input, &Target::Stdout, settings)?;
    match input {
        Input::Regular(source) => {
            let name = args.input.file_name().map(OsStrExt::as_bytes).unwrap_or_default();
            stores::send(Source::Payload(&source), name, options, args, settings, started)
        }
        Input::Pipe(mut pipe) => {
            let name = args.input.file_name().map(OsStrExt::as_bytes).filter(|_| !is_dash(&args.input));
            let source = Source::Pipe(&mut pipe, Place::Path(args.input.clone()));
            stores::send(source, name.unwrap_or(b"payload"), options, args, settings, started)
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
    written.map_err(|e| too_large(e, "a smaller --set-size makes smaller sets"))
}

/// Adds what to do when what was asked for breaks a rule of the formats.
fn too_large(error: Error, help: &str) -> Failure {
    let help = match &error.kind {
        ErrorKind::Format(FormatError::Meta(_)) => None,
        ErrorKind::Format(FormatError::SmallSet { .. }) => {
            Some("choose a larger --set-size, or fewer shards")
        }
        ErrorKind::Format(_) => Some(help),
        _ => None,
    };
    let failure = Failure::from(error);
    match help {
        Some(help) => failure.help(help),
        None => failure,
    }
}

fn report(
    args: &args::Encode,
    target: &Target,
    options: &Options,
    written: &Written,
    settings: &Settings,
    started: Instant,
) -> Report {
    let geometry = &written.geometry;
    let sets = (0..geometry.groups()).next_back().map_or(0, |last| {
        u64::from(last) * u64::from(geometry.shape().sets) + u64::from(geometry.group(last).shape().sets)
    });
    Report {
        schema_version: SCHEMA_VERSION,
        command: "encode",
        input: show(&args.input),
        output: target.to_string(),
        form: if matches!(target, Target::Folder(_)) { "shards" } else { "container" },
        root: hex(&written.root),
        hash: options.hash.name(),
        k: options.code.k(),
        m: options.code.m(),
        payload_bytes: geometry.payload_len(),
        output_bytes: written.output_bytes,
        shard_bytes: geometry.shape().shard_len,
        sets,
        groups: geometry.groups(),
        survives_gap_bytes: match target {
            Target::Folder(_) => None,
            _ => Some(fecfile::encode::survives_gap(geometry)),
        },
        backend: settings.library.backend.name(),
        threads: settings.library.threads,
        seconds: started.elapsed().as_secs_f64(),
    }
}

/// A number of bytes as people say it: never more than it is.
fn in_units(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{} KB", bytes / 1000),
        10_000_000..10_000_000_000 => format!("{} MB", bytes / 1_000_000),
        _ => format!("{} GB", bytes / 1_000_000_000),
    }
}

fn describe(report: &Report) -> String {
    let what = match report.form {
        "shards" => format!("{} shard files in {}", report.k + report.m, report.output),
        _ if report.output == "-" => "a container on standard output".to_owned(),
        _ => format!("the container {}", report.output),
    };
    let stands = match (report.m, report.survives_gap_bytes) {
        (0, _) => "nothing can be lost".to_owned(),
        (m, None) => format!("any {m} of {} shards may be lost", report.k + m),
        (m, Some(gap)) => {
            format!("any {m} of {} shards may be lost, or {} in one piece", report.k + m, in_units(gap))
        }
    };
    format!(
        "{}: {} bytes -> {what} ({} bytes): {stands}\n{:.2} s, {} kernel, {} threads; keep the root:",
        report.input,
        report.payload_bytes,
        report.output_bytes,
        report.seconds,
        report.backend,
        report.threads
    )
}

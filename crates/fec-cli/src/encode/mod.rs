//! `fec encode`: from arguments to shard files or a container.

mod container;
mod shards;

use crate::args;
use crate::failure::{Exit, Failure, Result, hex, say, show};
use crate::settings::{SCHEMA_VERSION, Settings, print_line};
use crate::stages::{self, Stage};
use crate::stream;
use crate::sys::cleanup::parent;
use crate::sys::output::{self, FileOut};
use crate::sys::source::Source;
use fec_core::block::Code;
use fec_core::digest::{Digest, HashKind};
use fec_core::error::FormatError;
use fec_core::format::meta::Meta;
use fec_core::params::{ContainerLayout, FileGeometry, Shape, default_set_size};
use serde::Serialize;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
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
    backend: &'static str,
    threads: usize,
    seconds: f64,
}

/// What both forms tell of what they wrote.
struct Written {
    geometry: FileGeometry,
    root: Digest,
    output_bytes: u64,
}

/// Where the result goes.
enum Target {
    Folder(PathBuf),
    File(PathBuf),
    Stream(PathBuf),
    Stdout,
}

/// What is encoded.
enum Input {
    Regular(Source),
    Stream(File),
}

pub(crate) fn run(args: &args::Encode, settings: &Settings) -> Result<Exit> {
    if args.live.stream {
        let (input, output) = (args.input.as_path(), args.output.as_deref());
        return stream::send::run(&stream::send::Job {
            input,
            output,
            force: args.force,
            options: &args.live,
            settings,
        });
    }
    let started = Instant::now();
    let (k, m) = args.redundancy.unwrap_or((args.data, args.recovery));
    let code = Code::new(k.into(), m.into()).map_err(|e| {
        Failure::usage(format!("-k {k} -m {m}: {e}")).help("k is at least 1 and k + m at most 256")
    })?;
    let hash = HashKind::from(args.hash);
    let set_size = args.set_size.unwrap_or_else(|| default_set_size(code));

    let input = open_input(&args.input, settings)?;
    let target = choose_target(args, &input)?;
    let policy = settings.policy(args.force);
    if let Some(path) = args.root_file.as_deref().filter(|p| !output::is_special(p)) {
        output::check_absent(path, policy)?;
        output::check_folder(path)?;
        let own = match &target {
            Target::Folder(path) | Target::File(path) => Some(path.as_path()),
            Target::Stream(_) | Target::Stdout => None,
        };
        if own.into_iter().chain([args.input.as_path()]).any(|other| output::is_same(path, other)) {
            return Err(Failure::usage(format!("write {}: it is the input or the output", show(path)))
                .help("choose another --root-file"));
        }
    }
    // What is not a regular file cannot be replaced by the output.
    if let (Input::Regular(_), Target::Folder(path) | Target::File(path)) = (&input, &target) {
        let own_folder = || matches!(target, Target::Folder(_)).then(|| parent(&args.input));
        if output::is_same(path, &args.input) || own_folder().is_some_and(|own| output::is_same(path, own)) {
            return Err(Failure::usage(format!("write {}: it is or holds the input", show(path)))
                .help("choose another output with -o"));
        }
    }
    let total = match &input {
        Input::Regular(source) => Some(source.len()),
        Input::Stream(_) => None,
    };
    let work = Work { code, hash, set_size, settings };
    let progress = settings.progress("encode", total);
    let written = match (&target, input) {
        (Target::Folder(folder), Input::Regular(source)) => {
            if args.group_size.is_some() {
                return Err(Failure::usage("--group-size is for containers: shard files are one group"));
            }
            let name = args.input.file_name().map(OsStrExt::as_bytes).unwrap_or_default();
            let meta = Meta::with_name(name).map_err(|e| failure(&args.input, &e))?;
            shards::write(&work, &source, folder, policy, meta, &progress)?
        }
        (Target::Folder(_), Input::Stream(_)) => {
            return Err(Failure::usage(format!(
                "read {}: its length is not known, shard files need it",
                show(&args.input)
            ))
            .help("make a container: -o NAME.fec or -o -"));
        }
        (target, input) => {
            let most = fec_core::params::CONTAINER_GROUP_BYTES.min(settings.max_memory / 2);
            let layout = ContainerLayout::new(hash, code, set_size, args.group_size, most)
                .map_err(|e| failure(&args.input, &e).help("a smaller --set-size makes smaller sets"))?;
            let source = match &input {
                Input::Regular(source) => container::Payload::File { source, at: 0 },
                Input::Stream(file) => container::Payload::Stream { file, path: &args.input },
            };
            match target {
                Target::Stdout => {
                    let mut out =
                        BufWriter::with_capacity(container::WRITE_BUFFER, output::stdout_for_data()?);
                    container::write(&work, &layout, source, &mut out, &|e| Failure::stdout(e), &progress)?
                }
                Target::Stream(path) => {
                    let mut out =
                        BufWriter::with_capacity(container::WRITE_BUFFER, output::open_special(path)?);
                    container::write(
                        &work,
                        &layout,
                        source,
                        &mut out,
                        &|e| Failure::io("write", path, e),
                        &progress,
                    )?
                }
                Target::File(path) | Target::Folder(path) => {
                    let file = FileOut::create(path, policy)?;
                    let mut out = BufWriter::with_capacity(container::WRITE_BUFFER, file.file());
                    let written =
                        container::write(&work, &layout, source, &mut out, &|e| file.failure(e), &progress)?;
                    out.flush().map_err(|e| file.failure(&e))?;
                    drop(out);
                    let _stage = stages::enter(Stage::Sync, 0);
                    file.commit(written.output_bytes)?;
                    written
                }
            }
        }
    };
    progress.finish();
    let root = hex(&written.root);
    if let Some(path) = &args.root_file {
        output::write_text(path, &format!("{root}\n"), policy)
            .map_err(|failure| failure.help(format!("the encoding is complete; its root is {root}")))?;
    }
    let geometry = &written.geometry;
    let sets = (0..geometry.groups()).next_back().map_or(0, |last| {
        u64::from(last) * u64::from(geometry.shape().sets) + u64::from(geometry.group(last).shape().sets)
    });
    let (form, to, stdout_is_data) = match &target {
        Target::Folder(path) => ("shards", format!("{}/", show(path).trim_end_matches('/')), false),
        Target::File(path) | Target::Stream(path) => ("container", show(path), false),
        Target::Stdout => ("container", "-".into(), true),
    };
    let report = Report {
        schema_version: SCHEMA_VERSION,
        command: "encode",
        input: show(&args.input),
        output: to,
        form,
        root,
        hash: hash.name(),
        k: code.k(),
        m: code.m(),
        payload_bytes: geometry.payload_len(),
        output_bytes: written.output_bytes,
        shard_bytes: geometry.shape().shard_len,
        sets,
        groups: geometry.groups(),
        backend: settings.backend.name(),
        threads: settings.threads,
        seconds: started.elapsed().as_secs_f64(),
    };
    settings.report(&report, &describe(&report), stdout_is_data)?;
    match (settings.json, stdout_is_data) {
        (false, false) => print_line(&report.root)?,
        (false, true) => say(&report.root),
        (true, _) => {}
    }
    Ok(Exit::Done)
}

fn describe(report: &Report) -> String {
    let what = match report.form {
        "shards" => format!("{} shard files in {}", report.k + report.m, report.output),
        _ if report.output == "-" => "a container on standard output".to_owned(),
        _ => format!("the container {}", report.output),
    };
    let stands = match report.m {
        0 => "nothing can be lost".to_owned(),
        m => format!("any {} of {} shards restore it, {m} may be lost", report.k, report.k + m),
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

/// A rule of the formats stands against what was asked for.
fn failure(path: &Path, cause: &FormatError) -> Failure {
    Failure::new(Exit::Refused, format!("encode {}: {cause}", show(path)))
}

fn open_input(path: &Path, settings: &Settings) -> Result<Input> {
    if path.as_os_str() == "-" {
        use std::os::fd::AsFd;
        let fd = std::io::stdin().as_fd().try_clone_to_owned();
        return Ok(Input::Stream(fd.map_err(|e| Failure::io("read", path, &e))?.into()));
    }
    let meta = std::fs::metadata(path).map_err(|e| Failure::io("read", path, &e))?;
    if meta.is_dir() {
        let name = show(path);
        let name = name.trim_end_matches('/');
        return Err(Failure::usage(format!("read {name}: it is a folder"))
            .help(format!("pack it first: tar c {name} | fec encode - -o {name}.tar.fec")));
    }
    // Files of the system (/proc) say they are empty and are not: their length is not known.
    let has_bytes = || File::open(path).and_then(|mut f| f.read(&mut [0; 1])).is_ok_and(|n| n > 0);
    if meta.is_file() && (meta.len() > 0 || !has_bytes()) {
        return Ok(Input::Regular(Source::open(path, settings.map)?));
    }
    Ok(Input::Stream(File::open(path).map_err(|e| Failure::io("read", path, &e))?))
}

fn choose_target(args: &args::Encode, input: &Input) -> Result<Target> {
    let Some(path) = &args.output else {
        return Ok(match input {
            Input::Regular(_) => {
                let mut name = args.input.clone().into_os_string();
                name.push(".shards");
                Target::Folder(name.into())
            }
            Input::Stream(_) => Target::Stdout,
        });
    };
    let bytes = path.as_os_str().as_bytes();
    if bytes == b"-" {
        return Ok(Target::Stdout);
    }
    if bytes.ends_with(b"/") || path.is_dir() {
        let trimmed = trim_slashes(bytes);
        return Ok(Target::Folder(OsString::from_vec(trimmed.to_vec()).into()));
    }
    if output::is_special(path) {
        return Ok(Target::Stream(path.clone()));
    }
    Ok(Target::File(path.clone()))
}

/// A path without the slashes at its end, except that the root folder stays.
fn trim_slashes(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|b| *b != b'/').map_or(1, |last| last + 1);
    &path[..end.min(path.len())]
}

/// What an encoder works with.
struct Work<'a> {
    code: Code,
    hash: HashKind,
    set_size: u64,
    settings: &'a Settings,
}

impl Work<'_> {
    /// Refuses sets that do not fit the memory allowed.
    fn check_memory(&self, shape: &Shape, input: &Path) -> Result<()> {
        let (need, most) = (shape.set_bytes(), self.settings.max_memory);
        if need > most {
            let message =
                format!("encode {}: one set takes {need} bytes, --max-memory is {most}", show(input));
            return Err(
                Failure::new(Exit::Refused, message).help("choose a smaller --set-size or allow more memory")
            );
        }
        Ok(())
    }
}

/// Reads until `out` is full or the input ends; returns how many bytes came.
fn read_full(mut file: &File, out: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < out.len() {
        match file.read(&mut out[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}

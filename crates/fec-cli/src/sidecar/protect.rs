//! `fec protect`: a sidecar for files that stay where they are.

use super::ENDING;
use crate::args;
use crate::failure::{Exit, Failure, Result};
use crate::settings::{SCHEMA_VERSION, Settings, print_line};
use fecfile::Context;
use fecfile::names::{hex, show};
use fecfile::sidecar::protect::{Protect, Protected, protect};
use serde::Serialize;
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

pub(crate) fn run(args: &args::Protect, settings: &Settings) -> Result<Exit> {
    let started = Instant::now();
    let mut paths = args.paths.clone();
    if let Some(list) = &args.files_from {
        paths.extend(listed(list)?);
    }
    let output = output(args, &paths)?;
    let bars = settings.bars("protect");
    let context = Context { settings: settings.library, progress: &bars };
    let job = Protect {
        paths: &paths,
        output: &output,
        base: args.base.as_deref(),
        redundancy: args.redundancy,
        exclude: &args.exclude,
        one_file_system: args.one_file_system,
        sha256: args.sha256,
        policy: settings.policy(args.force),
    };
    let protected = protect(&job, &context)?;
    let report = Report::new(&protected, &output, started);
    settings.report(&report, &report.describe(&protected), false)?;
    if !settings.json {
        print_line(&report.root)?;
    }
    Ok(Exit::Done)
}

/// The sidecar's path: beside what it protects, if that is one file or folder.
fn output(args: &args::Protect, paths: &[PathBuf]) -> Result<PathBuf> {
    if let Some(output) = &args.output {
        return Ok(output.clone());
    }
    let [path] = paths else {
        return Err(Failure::usage("protect: several files or folders have no name in common")
            .help("name the sidecar with -o"));
    };
    let place = match path.file_name() {
        Some(_) => path.clone(),
        // It ends in `.` or `..`.
        None => std::fs::canonicalize(path).map_err(|e| Failure::io("read", path, e))?,
    };
    let Some(name) = place.file_name() else {
        return Err(Failure::usage("protect /: nothing lies beside it").help("name the sidecar with -o"));
    };
    let mut name = name.to_os_string();
    name.push(".");
    name.push(ENDING);
    Ok(place.with_file_name(name))
}

/// The paths in a file: a line each, or with a zero byte behind each.
fn listed(list: &Path) -> Result<Vec<PathBuf>> {
    let mut bytes = Vec::new();
    let read = crate::target::open_input(list)?.read_to_end(&mut bytes);
    read.map_err(|e| Failure::io("read", list, e))?;
    let separator = if bytes.contains(&0) { 0 } else { b'\n' };
    let paths = bytes.split(|b| *b == separator).filter(|path| !path.is_empty());
    Ok(paths.map(|path| OsString::from_vec(path.to_vec()).into()).collect())
}

/// What `protect` says at the end, as text and JSON.
#[derive(Debug, Serialize)]
struct Report {
    schema_version: u32,
    command: &'static str,
    root: String,
    sidecar: String,
    base: String,
    files: u64,
    folders: u64,
    links: u64,
    payload_bytes: u64,
    recovery_bytes: u64,
    sidecar_bytes: u64,
    block_bytes: u32,
    data: usize,
    recovery: usize,
    sets: u32,
    /// Devices, sockets and FIFOs, which hold nothing to protect.
    skipped: Vec<String>,
    seconds: f64,
}

impl Report {
    fn new(protected: &Protected, output: &Path, started: Instant) -> Report {
        Report {
            schema_version: SCHEMA_VERSION,
            command: "protect",
            root: hex(&protected.root),
            sidecar: show(output),
            base: show(&protected.base),
            files: protected.files,
            folders: protected.folders,
            links: protected.links,
            payload_bytes: protected.files_len,
            recovery_bytes: protected.recovery_len,
            sidecar_bytes: protected.sidecar_len,
            block_bytes: protected.block,
            data: protected.code.0,
            recovery: protected.code.1,
            sets: protected.sets,
            skipped: protected.skipped.iter().map(show).collect(),
            seconds: started.elapsed().as_secs_f64(),
        }
    }

    fn describe(&self, protected: &Protected) -> String {
        let (m, n) = (self.recovery, self.data + self.recovery);
        let files = if self.files == 1 { "1 file".to_owned() } else { format!("{} files", self.files) };
        let mut out = format!(
            "{}: protects {files} of {} bytes with {} bytes; any {m} of {n} blocks of a set may be lost\n",
            self.sidecar, self.payload_bytes, self.sidecar_bytes
        );
        if !protected.skipped.is_empty() {
            out.push_str(&format!(
                "left out, because they are devices, sockets or pipes: {}\n",
                self.skipped.join(", ")
            ));
        }
        out
    }
}

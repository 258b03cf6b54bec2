//! Real files through the product's own commands: this very binary encodes, verifies and decodes a file in a
//! temporary folder, and its `--where` tells the stages.

use super::super::lab::Lab;
use super::super::report::{Cell, Table, figure, key};
use super::super::slices::Slices;
use super::rows::fill;
use super::{Outcome, megabits};
use crate::failure::{Exit, Failure, Result};
use crate::sys::cleanup::Temporary;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// The figures of `--where`, as far as they are shown.
#[derive(serde::Deserialize)]
struct Where {
    table: Table,
    verdict: String,
}

pub(super) fn run(lab: &mut Lab) -> Result<Outcome> {
    let code = super::code(lab)?;
    let payload = lab.args.set_size.unwrap_or(64 << 20);
    let folder = lab.args.dir.clone().unwrap_or_else(|| ".".into());
    let failed = |e: std::io::Error| Failure::io("write files in", &folder, &e);
    let (guard, ()) =
        Temporary::beside(&folder.join("bench"), |path| fs::create_dir(path)).map_err(failed)?;
    let at = |name: &str| guard.path().join(name);
    let mut bytes = vec![0; 1 << 20];
    let mut file = fs::File::create(at("payload")).map_err(failed)?;
    for start in (0..payload).step_by(bytes.len()) {
        let len = bytes.len().min((payload - start) as usize);
        fill(&mut bytes[..len], start + 1);
        std::io::Write::write_all(&mut file, &bytes[..len]).map_err(failed)?;
    }
    file.sync_all().map_err(failed)?;
    drop(bytes);
    let mut table = Table::new(
        "files",
        format!(
            "{payload} bytes as {} + {} shards: whole commands, the first third of the shards lost before decoding",
            code.k(),
            code.m()
        ),
        [
            key("command", "command"),
            figure("time_ms", "median ms", 1),
            figure("megabits_per_second", "Mb/s", 0),
        ],
    );
    let mut stages = Table::new(
        "stages",
        "Stages of the last run of each: shares are of the time that threads do not wait for each other",
        [
            key("command", "command"),
            key("stage", "stage"),
            figure("share", "share %", 1),
            figure("seconds", "thread s", 3),
            figure("off_core_seconds", "of it off core", 3),
            figure("megabytes_per_second", "MB/s a thread", 0),
            figure("share_of_limit", "% of limit", 0),
        ],
    );
    let (k, m) = (code.k().to_string(), code.m().to_string());
    let shape = ["-k", k.as_str(), "-m", m.as_str()];
    let encode = |output: &'static str| {
        let mut args = vec!["encode", "payload", "-o", output, "--force"];
        args.extend(shape);
        args
    };
    let unsynced = |mut args: Vec<&'static str>| {
        args.push("--no-sync");
        args
    };
    let container: Vec<&str> = encode("payload.fec");
    let shards: Vec<&str> = encode("shards/");
    let mut cached = shards.clone();
    cached.push("--no-sync");
    let decode = vec!["decode", "shards", "-o", "back", "--force"];
    let commands: [(&str, Vec<&str>); 7] = [
        ("encode to shard files", shards),
        ("encode to shard files, no sync", cached),
        ("encode to a container", container),
        ("verify shard files", vec!["verify", "shards"]),
        ("decode shard files", decode.clone()),
        ("decode shard files, no sync", unsynced(decode)),
        ("decode a container", vec!["decode", "payload.fec", "-o", "back", "--force"]),
    ];
    lab.plan(commands.len());
    let mut notes = Vec::new();
    for (name, args) in commands {
        if name == "decode shard files" {
            lose(&at("shards"), code.n() / 3).map_err(failed)?;
        }
        let Some(share) = lab.share(name) else { continue };
        let began = Instant::now();
        let mut slices = Slices::new(1, true);
        let mut told = None;
        // Once at least, whatever the time: later commands read what earlier ones wrote. The first is no figure
        // if there is another.
        while told.is_none() || (began.elapsed() < share && !lab.stopped()) {
            let mut outcome = None;
            let mut timed = Slices::new(1, true);
            timed.take(&mut || outcome = Some(fec(lab, guard.path(), &args)));
            told = outcome.transpose()?.or(told);
            slices.absorb(timed);
        }
        slices.forget_first();
        let Some(time) = lab.note(&slices) else { continue };
        let seconds = time.median;
        table.row([
            ("command", name.into()),
            ("time_ms", time.scaled(1e3).into()),
            ("megabits_per_second", megabits(payload, seconds).into()),
        ]);
        let Some(told) = told else { continue };
        notes.push(format!("{name}: {}", told.verdict));
        for row in told.table.rows {
            let cell = |name: &str| row.get(name).cloned().unwrap_or(Cell::Missing);
            stages.row([
                ("command", name.into()),
                ("stage", cell("stage")),
                ("share", cell("share")),
                ("seconds", cell("seconds")),
                ("off_core_seconds", cell("off_core_seconds")),
                ("megabytes_per_second", cell("megabytes_per_second")),
                ("share_of_limit", cell("share_of_limit")),
            ]);
        }
    }
    if fs::read(at("back")).ok() != fs::read(at("payload")).ok() && fs::exists(at("back")).unwrap_or(false) {
        return Err(Failure::new(Exit::Untrue, "bench: the file did not come back as it was"));
    }
    Ok(Outcome { tables: vec![table, stages], notes })
}

/// Removes so many of the shard files.
fn lose(folder: &Path, count: usize) -> std::io::Result<()> {
    let mut files: Vec<_> = fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
    files.sort_unstable();
    files.iter().take(count).try_for_each(fs::remove_file)
}

/// Runs this binary; what `--where` told.
fn fec(lab: &Lab, folder: &Path, args: &[&str]) -> Result<Where> {
    let failed = |what: String| Failure::new(Exit::Io, format!("bench: run fec {}: {what}", args.join(" ")));
    let binary = std::env::current_exe().map_err(|e| failed(e.to_string()))?;
    let output = Command::new(binary)
        .args(args)
        .args(["--where", "--json", "--progress", "never"])
        .args(["--backend", lab.settings.backend.name(), "-j", &lab.settings.threads.to_string()])
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| failed(e.to_string()))?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(failed(format!("{}, {}", output.status, text.trim())));
    }
    let told = text.lines().filter_map(|line| serde_json::from_str(line).ok()).next_back();
    told.ok_or_else(|| failed("it did not tell its stages".to_owned()))
}

//! Reports of `fec bench` and `--where` under planted disturbances.
//!
//! Machines that run tests have other work too. Each case may try a few times, and has to report the truth once.

mod common;

use common::{expect, fec, pipe, run, scratch, text};
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const ATTEMPTS: usize = 10;

/// The tests take turns, because they disturb each other.
static ALONE: Mutex<()> = Mutex::new(());

/// Busy loops that all run on the first core, until dropped.
struct Competitors(Vec<Child>);

impl Competitors {
    fn start(count: usize) -> Competitors {
        let start = || Command::new("taskset").args(["-c", "0", "sh", "-c", "while :; do :; done"]).spawn();
        Competitors((0..count).map(|_| start().expect("taskset starts")).collect())
    }
}

impl Competitors {
    /// Starts a loop for each core, on any core.
    fn everywhere() -> Competitors {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let start = || Command::new("sh").args(["-c", "while :; do :; done"]).spawn();
        Competitors((0..cores).map(|_| start().expect("sh starts")).collect())
    }
}

impl Drop for Competitors {
    fn drop(&mut self) {
        for child in &mut self.0 {
            child.kill().expect("a competitor can be ended");
            child.wait().expect("it ends");
        }
    }
}

/// `fec` on the first core only.
fn pinned(folder: &Path, args: &[&str]) -> std::process::Output {
    let fec = fec();
    let mut command = Command::new("taskset");
    command.args(["-c", "0"]).arg(fec.get_program()).args(args).current_dir(folder).stdin(Stdio::null());
    command.output().expect("taskset starts")
}

fn tries(what: &str, mut attempt: impl FnMut() -> Result<(), String>) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut told = Vec::new();
    for _ in 0..ATTEMPTS {
        match attempt() {
            Ok(()) => return,
            Err(error) => told.push(error),
        }
    }
    panic!("{what}: {told:#?}");
}

/// The JSON line of `--where`.
fn told(stderr: &[u8]) -> Value {
    let text = text(stderr);
    let line =
        text.lines().find(|line| line.contains("\"event\":\"where\"")).unwrap_or_else(|| panic!("{text}"));
    serde_json::from_str(line).expect("JSON")
}

fn verdict_contains(output: &std::process::Output, expected: &str) -> Result<(), String> {
    expect(output, 0);
    let told = told(&output.stderr);
    // Working and waiting add up to the threads' whole time.
    let accounted = told["accounted"].as_f64().expect("a share");
    assert!((0.97..=1.03).contains(&accounted), "{told}");
    let verdict = told["verdict"].as_str().expect("a verdict").to_owned();
    if verdict.contains(expected) { Ok(()) } else { Err(verdict) }
}

#[test]
fn a_busy_loop_on_the_core_moves_no_median_by_a_tenth() {
    let (folder, _) = scratch("unused", b"");
    let args =
        ["bench", "--hash", "blake3", "-j", "1", "--budget", "4", "--set-size", "1M", "--format", "json"];
    let median = |report: &Value| {
        let rows = report["tables"][0]["rows"].as_array().expect("rows");
        let total = rows.iter().find(|row| row["phase"] == "total").expect("the total");
        total["time_ms"]["median"].as_f64().expect("a time")
    };
    let measure = || {
        let output = pinned(folder.path(), &args);
        expect(&output, 0);
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")
    };
    tries("a median moved", || {
        let alone = measure();
        let competitors = Competitors::start(1);
        let disturbed = measure();
        drop(competitors);
        let wait = disturbed["interference"]["run_queue_wait"].as_f64().expect("a share");
        assert!(wait > 0.05, "the competitor was not seen: {}", disturbed["interference"]);
        let ratio = median(&disturbed) / median(&alone);
        if (0.9..=1.1).contains(&ratio) { Ok(()) } else { Err(format!("ratio {ratio}")) }
    });
}

#[test]
fn a_busy_machine_shuts_no_gate() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (folder, _) = scratch("unused", b"");
    let args = ["bench", "--quick", "--hash", "blake3", "--set-size", "1M", "--json"];
    let run = |more: &[&str]| run(folder.path(), args.iter().chain(more));
    expect(&run(&["--save", "then.json"]), 0);
    let competitors = Competitors::everywhere();
    for _ in 0..2 {
        let output = run(&["--compare", "then.json", "--gate", "5%"]);
        expect(&output, 0);
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(report["disturbed"], true, "the competitors were not seen: {}", report["interference"]);
        let comparison = &report["comparison"];
        match comparison["verdict"].as_str() {
            Some("passed") => assert!(comparison["worst"].as_f64() <= Some(0.05), "{comparison}"),
            Some("inconclusive") => assert!(comparison["reasons"][0].is_string(), "{comparison}"),
            _ => panic!("{comparison}"),
        }
    }
    drop(competitors);
}

#[test]
fn a_small_file_has_sensible_lines() {
    let (folder, _) = scratch("payload", &common::payload(1, 10_000));
    let payload = std::fs::read(folder.path().join("payload")).expect("the payload");
    let read_of = |args: &[&str], input: &[u8]| {
        let output = pipe(folder.path(), args.iter().chain(&["--where", "--json"]), input);
        expect(&output, 0);
        let told = told(&output.stderr);
        let rows = told["table"]["rows"].as_array().expect("rows");
        let read = rows.iter().find(|row| row["stage"] == "read").expect("it reads");
        read["bytes"].as_u64().expect("bytes")
    };
    assert_eq!(read_of(&["encode", "payload", "-o", "a/"], b""), 10_000);
    assert_eq!(read_of(&["encode", "-", "-o", "b.fec"], &payload), 10_000);
    let container = std::fs::read(folder.path().join("b.fec")).expect("a container");
    // The payload is read once from the pipe, and perhaps once more to restore it.
    let (read, len) = (read_of(&["decode", "-", "-o", "c"], &container), container.len() as u64);
    assert!((len..=2 * len).contains(&read), "{read} of {len}");
    let mut command = fec();
    command.current_dir(folder.path()).env("COLUMNS", "80");
    let output =
        command.args(["encode", "payload", "-o", "d.fec", "-q", "--where"]).output().expect("fec starts");
    expect(&output, 0);
    let told = text(&output.stderr);
    assert!(told.contains("threads at work on the average") && told.contains("verdict: "), "{told}");
    assert!(told.lines().all(|line| line.chars().count() <= 80), "{told}");
}

#[test]
fn a_slow_pipe_is_the_input() {
    let (folder, path) = scratch("out.fec", b"");
    tries("a slow pipe", || {
        let _ = std::fs::remove_file(&path);
        let mut command = fec();
        command.current_dir(folder.path()).args([
            "encode",
            "-",
            "-o",
            "out.fec",
            "--where",
            "--json",
            "--no-sync",
        ]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("fec starts");
        let mut stdin = child.stdin.take().expect("it is piped");
        for _ in 0..10 {
            std::io::Write::write_all(&mut stdin, &[7; 100_000]).expect("it reads");
            std::thread::sleep(Duration::from_millis(60));
        }
        drop(stdin);
        verdict_contains(&child.wait_with_output().expect("it ends"), "the input")
    });
}

#[test]
fn a_slow_kernel_and_a_slow_hash_are_named() {
    let (folder, _) = scratch("payload", &common::payload(1, 48 << 20));
    // The output goes to /dev/null, because a disk would be the bottleneck.
    tries("the scalar kernel", || {
        let args = ["encode", "payload", "-o", "/dev/null", "-k", "20", "-m", "20", "--backend", "scalar"];
        let output = run(folder.path(), args.iter().chain(&["-j", "1", "--no-sync", "--where", "--json"]));
        verdict_contains(&output, "the kernel (scalar)")
    });
    tries("SHA-256", || {
        let args = ["encode", "payload", "-o", "/dev/null", "-k", "30", "-m", "3", "--hash", "sha256"];
        let output = run(folder.path(), args.iter().chain(&["-j", "1", "--no-sync", "--where", "--json"]));
        verdict_contains(&output, "the hash (sha256)")
    });
}

#[test]
fn a_competitor_on_the_core_is_the_processor() {
    let (folder, _) = scratch("payload", &common::payload(1, 12 << 20));
    tries("competitors", || {
        let competitors = Competitors::start(2);
        let args = ["encode", "payload", "-o", "a/", "-f", "-k", "20", "-m", "20", "--backend", "scalar"];
        let all: Vec<&str> = args.into_iter().chain(["-j", "1", "--no-sync", "--where", "--json"]).collect();
        let output = pinned(folder.path(), &all);
        drop(competitors);
        verdict_contains(&output, "the processor")
    });
}

#[test]
fn every_command_tells_where_the_time_goes() {
    let (folder, _) = scratch("payload", &common::payload(1, 3 << 20));
    let run = |args: &[&str]| run(folder.path(), args.iter().chain(&["--where", "--json"]));
    for args in [
        &["encode", "payload", "-o", "set/"][..],
        &["encode", "payload", "-o", "payload.fec"],
        &["verify", "set"],
        &["verify", "--deep", "payload.fec"],
        &["decode", "set", "-o", "back"],
        &["decode", "payload.fec", "-o", "back2"],
        &["bench", "--quick", "-j", "1", "--hash", "blake3"],
    ] {
        verdict_contains(&run(args), "verdict: ").unwrap_or_else(|verdict| panic!("{args:?}: {verdict}"));
    }
    let container = std::fs::read(folder.path().join("payload.fec")).expect("the container");
    let output = pipe(folder.path(), ["decode", "-", "-o", "back3", "--where", "--json"], &container);
    verdict_contains(&output, "verdict: ").expect("a verdict");
}

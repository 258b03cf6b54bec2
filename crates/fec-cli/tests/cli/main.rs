//! The command line: inputs and outputs, default names, options, reports.

#[path = "../common/mod.rs"]
mod common;
mod files;
mod restoring;

use common::{Arena, LIMIT, code, expect, finish, listing, make_fifo, payload, root, text, wait_until};
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::{Output, Stdio};

/// An arena with a file `input` of `len` bytes.
fn with_input(len: usize) -> (Arena, Vec<u8>) {
    let arena = Arena::new();
    let bytes = payload(1, len);
    arena.write("input", &bytes);
    (arena, bytes)
}

fn says(output: &Output, words: &[&str]) {
    let said = [text(&output.stdout), text(&output.stderr)].concat();
    for word in words {
        assert!(said.contains(word), "{word:?} is not in {said:?}");
    }
}

/// The single JSON object in a stream.
#[track_caller]
fn json(stream: &[u8]) -> Value {
    let said = text(stream);
    assert_eq!(said.lines().count(), 1, "one object: {said}");
    let value: Value = serde_json::from_str(&said).unwrap_or_else(|e| panic!("{e}: {said}"));
    assert_eq!(value["schema_version"], 1);
    value
}

#[test]
fn code_parameters() {
    let (arena, _) = with_input(200_000);
    for (percent, k) in [("17%", 85), ("200%", 33), ("0%", 100), ("12.5%", 88), ("100%", 50)] {
        let output = arena.expect(["encode", "input", "-o", "-", "-r", percent, "--json"], 0);
        let report = json(&output.stderr);
        assert_eq!((&report["k"], &report["m"]), (&Value::from(k), &Value::from(100 - k)), "{percent}");
    }
    let report = |options: &[&str]| {
        let output = arena.run([&["encode", "input", "-o", "/dev/null", "--json"], options].concat());
        expect(&output, 0);
        json(&output.stdout)
    };
    let default = report(&[]);
    assert_eq!((&default["k"], &default["m"], &default["hash"]), (&33.into(), &67.into(), &"blake3".into()));
    assert_eq!(report(&["-k", "256", "-m", "0"])["m"], 0);
    assert_eq!(report(&["-k", "1", "-m", "255"])["k"], 1);
    let sha = report(&["--hash", "sha256"]);
    assert_eq!(sha["hash"], "sha256");
    assert_ne!(sha["root"], default["root"]);
    let small = report(&["-k", "4", "-m", "2", "--set-size", "16K"]);
    assert_eq!((&small["shard_bytes"], &small["sets"]), (&3904.into(), &13.into()));
    let grouped = report(&["-k", "4", "-m", "2", "--set-size", "16KiB", "--group-size", "2"]);
    assert_eq!(grouped["groups"], 7);
    for bad in [
        &["-k", "0"][..],
        &["-k", "200", "-m", "57"],
        &["-k", "-1"],
        &["-r", "17"],
        &["-r", "17%", "-k", "3"],
        &["-r", "10000%"],
        &["--set-size", "0"],
        &["--set-size", "4X"],
        &["--group-size", "0"],
        &["--hash", "md5"],
        &["-j", "0"],
        &["--backend", "nosuch"],
        &["--max-memory", "-1"],
        &["--progress", "often"],
        &["--nosuch"],
    ] {
        arena.refuses([&["encode", "input", "-o", "c.fec"], bad].concat(), 2);
    }
    arena.refuses(["encode", "input", "--group-size", "3"], 2);
    // A pipe needs memory for a set of that size. For a file, the set is only as large as the file.
    arena.refuses_pipe(["encode", "-", "-o", "c.fec", "--set-size", "1G"], b"x", 6);
    arena.refuses(["encode", "input", "-o", "c.fec", "--set-size", "1G", "--group-size", "1"], 6);
    arena.expect(["encode", "input", "-o", "whole.fec", "--set-size", "1G"], 0);
    arena.refuses(["encode", "input", "-o", "c.fec", "--set-size", "1G", "--max-memory", "100K"], 6);
    // Shards of a set have at least 4096 bytes.
    for output in ["c.fec", "s/", "-"] {
        arena.refuses(["encode", "input", "-o", output, "-k", "4", "-m", "2", "--set-size", "16128"], 6);
        arena.refuses(["encode", "input", "-o", output, "-k", "4", "-m", "2", "--set-size", "1K"], 6);
    }
    arena.expect(["encode", "input", "-o", "least.fec", "-k", "4", "-m", "2", "--set-size", "16129"], 0);
    arena.refuses(["encode", "input", "-o", "s/", "--set-size", "17179869183G"], 6);
    let said = arena.refuses(["encode", "input", "-o", "c.fec", "--backend", "nosuch"], 2);
    assert!(said.contains("scalar"), "the backends are listed");
    arena.refuses(["decode"], 3);
    arena.refuses(["nosuch"], 2);
}

#[test]
fn roots() {
    let (arena, bytes) = with_input(5000);
    let root = root(&arena.expect(["encode", "input", "-o", "c.fec", "--root-file", "root"], 0));
    assert_eq!(text(&arena.read("root")), format!("{root}\n"));
    arena.write("sum", format!("{root}  c.fec\n").as_bytes());
    for given in [&root, "@root", "@sum", &root.to_uppercase()] {
        let output = arena.expect(["decode", "c.fec", "-o", "out", "-f", "--root", given], 0);
        says(&output, &[&root, "asked for"]);
        assert!(arena.read("out") == bytes);
        arena.expect(["verify", "c.fec", "--root", given], 0);
    }
    says(&arena.expect(["decode", "c.fec", "-o", "out", "-f"], 0), &[&root, "no --root given"]);
    let said = arena.refuses(["decode", "c.fec", "-o", "x", "--root", &"ab".repeat(32)], 5);
    assert!(said.contains(&root), "the root that is there is named");
    for bad in ["", "12", "@nosuch", "@input", &"zz".repeat(32)] {
        arena.refuses(["decode", "c.fec", "-o", "x", "--root", bad], 2);
    }
}

#[test]
fn one_json_object() {
    let (arena, _) = with_input(5000);
    let encoded = json(&arena.expect(["encode", "input", "-k", "3", "-m", "2", "--json"], 0).stdout);
    assert_eq!((&encoded["command"], &encoded["form"]), (&"encode".into(), &"shards".into()));
    let root = encoded["root"].as_str().unwrap();
    let output = arena.expect(["encode", "input", "-k", "3", "-m", "2", "-o", "-", "--json"], 0);
    assert_eq!(json(&output.stderr)["form"], "container");
    arena.write("c.fec", &output.stdout);
    let decode = ["decode", "input.shards", "--json", "-f", "--root", root];
    let decoded = json(&arena.expect(decode, 0).stdout);
    assert_eq!((&decoded["whole"], &decoded["root_was_given"]), (&true.into(), &true.into()));
    assert_eq!((&decoded["payload_bytes"], &decoded["recorded_name"]), (&5000.into(), &"input".into()));
    let output = arena.expect(["decode", "c.fec", "-o", "-", "--json"], 0);
    assert_eq!((output.stdout.len(), &json(&output.stderr)["written"]), (5000, &true.into()));
    let verified = json(&arena.expect(["verify", "input.shards", "--json"], 0).stdout);
    assert_eq!((&verified["intact"], &verified["margin"]["shards"]), (&5.into(), &2.into()));
    common::flip(&arena.path("input.shards/input.001.shard"), 1000);
    let verified = arena.run(["verify", "input.shards", "--json"]);
    expect(&verified, 1);
    let verified = json(&verified.stdout);
    assert_eq!((&verified["damaged"], &verified["restorable"]), (&1.into(), &true.into()));
    assert_eq!(verified["shards"][1]["state"], "damaged");
}

#[test]
fn quiet() {
    let (arena, _) = with_input(5000);
    let output = arena.expect(["encode", "input", "-o", "c.fec", "-q"], 0);
    assert_eq!((output.stdout.len(), text(&output.stderr).as_str()), (65, ""));
    for args in [&["decode", "c.fec", "-o", "out", "-q"][..], &["verify", "c.fec", "-q"]] {
        let output = arena.expect(args, 0);
        assert_eq!((text(&output.stdout).as_str(), text(&output.stderr).as_str()), ("", ""));
    }
    arena.write("c.fec", &arena.read("c.fec")[..1000]);
    arena.refuses(["decode", "c.fec", "-o", "x", "-q"], 3);
}

#[test]
fn progress_as_json_lines() {
    let (arena, _) = with_input(500_000);
    let encode = ["encode", "input", "-o", "-", "--progress", "json", "-k", "4", "-m", "2"];
    let encoded = arena.expect(encode.into_iter().chain(["-q"]), 0);
    arena.write("c.fec", &encoded.stdout);
    let decoded = arena.expect(["decode", "c.fec", "-o", "out", "--progress", "json", "-q"], 0);
    let verified = arena.expect(["verify", "c.fec", "--progress", "json", "-q"], 0);
    for (output, action) in [(&encoded, "encode"), (&decoded, "decode"), (&verified, "verify")] {
        let lines: Vec<Value> = text(&output.stderr)
            .lines()
            .filter(|line| line.starts_with('{'))
            .map(|line| serde_json::from_str(line).expect("a JSON object"))
            .collect();
        let last = lines.last().expect("there is a last line");
        assert_eq!((&last["event"], &last["action"]), (&"finished".into(), &action.into()));
        assert!(last["bytes"].as_u64().unwrap() >= 500_000);
    }
    let never = arena.expect(["encode", "input", "-o", "x.fec", "--progress", "never", "-q"], 0);
    assert_eq!(text(&never.stderr), "");
}

#[test]
fn help_and_version() {
    let arena = Arena::new();
    for command in ["encode", "decode", "verify"] {
        let help = arena.expect([command, "--help"], 0);
        says(&help, &["--json", "--backend", "Usage"]);
    }
    says(&arena.expect(["--help"], 0), &["Exit codes", "130"]);
    says(&arena.expect(["--version"], 0), &["fec"]);
    let none = arena.run([] as [&str; 0]);
    expect(&none, 2);
}

/// Binary data does not go to a terminal.
#[test]
fn standard_output_is_a_terminal() {
    let (arena, _) = with_input(5000);
    arena.expect(["encode", "input", "-o", "c.fec", "-q"], 0);
    let Ok(mut script) = std::process::Command::new("script")
        .args(["-qec", &format!("{} decode c.fec -o - ; echo code $?", common::fec_words()), "/dev/null"])
        .current_dir(&arena.work)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
    else {
        println!("skipped: there is no command to make a terminal");
        return;
    };
    wait_until(|| script.try_wait().unwrap().is_some());
    let output = script.wait_with_output().unwrap();
    says(&output, &["terminal", "code 2"]);
}

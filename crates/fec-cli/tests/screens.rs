//! The first screens that people see, line by line, as files in `screens/`: the help of each command, and the reports
//! of a session. SNAPSHOTS=overwrite writes them anew. Read them as a stranger would before you commit them.

mod common;

use common::{Arena, flip, payload, text};
use snapbox::{Data, assert_data_eq};
use std::path::Path;
use std::process::Output;

fn file(name: &str) -> Data {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/screens").join(name);
    Data::read_from(&path, Some(snapbox::data::DataFormat::Text))
}

/// Replaces times, kernels and threads, which differ from machine to machine.
fn steady(line: &str) -> String {
    let is_number = |word: &str| word.bytes().all(|b| b.is_ascii_digit() || b == b'.') && word.contains('.');
    let mut words: Vec<&str> = line.split(' ').collect();
    for at in 1..words.len() {
        if words[at].trim_end_matches([',', ';']) == "s" && is_number(words[at - 1]) {
            words[at - 1] = "0.00";
        }
        if words[at].starts_with("kernel") {
            words[at - 1] = "KERNEL";
        }
        if words[at].starts_with("thread") {
            (words[at - 1], words[at]) = ("N", "threads;");
        }
    }
    words.join(" ")
}

/// A command and its output: standard error first, because it tells what the command does.
fn screen(args: &[&str], output: &Output) -> String {
    let said = [text(&output.stderr), text(&output.stdout)].concat();
    let lines: Vec<String> = said.lines().map(steady).collect();
    let code = output.status.code().unwrap();
    let code = if code == 0 { String::new() } else { format!("exit code {code}\n") };
    format!("$ fec {}\n{}\n{code}\n", args.join(" "), lines.join("\n"))
}

#[test]
fn help_fits_80_columns_and_is_as_it_was_read() {
    let arena = Arena::new();
    let commands = [
        "encode",
        "decode",
        "verify",
        "repair",
        "protect",
        "list",
        "forget",
        "rekey",
        "manifest",
        "attest",
        "keygen",
        "completions",
        "man",
        "bench",
    ];
    for command in [""].into_iter().chain(commands) {
        let args: Vec<&str> = [command, "--help"].into_iter().filter(|word| !word.is_empty()).collect();
        let help = text(&arena.expect(&args, 0).stdout);
        for line in help.lines() {
            assert!(line.chars().count() <= 80, "{command}: {line}");
        }
        assert!(help.contains("Examples:\n  "), "{command}");
        let name = if command.is_empty() { "fec" } else { command };
        assert_data_eq!(help, file(&format!("help-{name}.txt")).raw());
        // The manual page has the same examples.
        let page: Vec<&str> = ["man", command].into_iter().filter(|word| !word.is_empty()).collect();
        assert!(text(&arena.expect(page, 0).stdout).contains("Examples:"), "{command}");
    }
}

/// Typing the name alone shows its purpose, without scrolling.
#[test]
fn the_name_alone_says_what_it_is_for_on_one_screen() {
    let arena = Arena::new();
    let output = arena.expect(&[] as &[&str], 2);
    let said = text(&output.stderr);
    assert!(output.stdout.is_empty() && said.lines().count() <= 20, "{said}");
    assert!(said.contains("\n  fec help\n  fec COMMAND --help\n"), "{said}");
    assert_data_eq!(said, file("alone.txt").raw());
}

/// The root of `a` as 100 shard files.
const ROOT: &str = "@root";

#[test]
fn a_session_says_what_it_did() {
    let arena = Arena::new();
    for (seed, name) in ["a", "b"].into_iter().enumerate() {
        arena.write(name, &payload(seed as u64, 100_000));
    }
    let mut said = String::new();
    let mut run = |args: &[&str]| said.push_str(&screen(args, &arena.run(args)));
    run(&["encode", "a", "--root-file", "root"]);
    run(&["encode", "a", "b", "-r", "17%", "-o", "{}.fec"]);
    run(&["verify", "a.fec"]);
    run(&["verify", "a.shards", "a.fec", "b.fec"]);
    (50..90).for_each(|i| std::fs::remove_file(arena.path(format!("a.shards/a.0{i}.shard"))).unwrap());
    flip(&arena.path("a.shards/a.007.shard"), 2000);
    flip(&arena.path("b.fec"), 2000);
    run(&["verify", "a.shards"]);
    run(&["decode", "a.shards", "-o", "back"]);
    run(&["verify", "a.shards", "a.fec", "b.fec", "--format", "markdown"]);
    run(&["verify", "a.shards/a.001.shard", "a.shards/a.002.shard", "--root", ROOT]);
    run(&["verify", "a.shards", "--need", "60"]);
    run(&["repair", "a.shards", "--root", ROOT, "-n"]);
    run(&["repair", "a.shards", "--root", ROOT]);
    assert_data_eq!(said, file("session.txt").raw());
}

#[test]
fn errors_say_what_is_wrong_and_what_to_do() {
    let arena = Arena::new();
    arena.write("a", &payload(0, 100_000));
    arena.write("noise", &payload(9, 5000));
    let root = text(&arena.run(["encode", "a", "-q"]).stdout);
    arena.write("root", root.as_bytes());
    arena.expect(["encode", "a", "-o", "unnamed", "-q"], 0);
    let mut said = String::new();
    let mut run = |args: &[&str]| said.push_str(&screen(args, &arena.run(args)));
    run(&["encode", "none"]);
    run(&["encode", "a", "-o", "unnamed"]);
    run(&["encode", "a", "-o", "x.fec", "--forse"]);
    run(&["encode", "a", "-o", "x.fec", "--max-memory", "1K"]);
    run(&["encode", "a", "-o", "x.fec", "--max-memory", "1 lot"]);
    run(&["encode", "a", "-o", "x.fec", "-r", "17"]);
    run(&["encode", "a", "b", "-o", "x.fec"]);
    run(&["encode", "--stream", "a", "-o", "tcp://10.0.0.1:99"]);
    run(&["encode", "--stream", "a", "-o", "udp://127.0.0.1:99999"]);
    run(&["decode", "noise"]);
    run(&["decode", "unnamed"]);
    run(&["decode", "root"]);
    run(&["decode", "a.shards"]);
    run(&["decode", "a.shards/a.000.shard", "-o", "out"]);
    run(&["decode", "unnamed", "-o", "out", "--root", &"ab".repeat(32)]);
    run(&["verify", "noise"]);
    run(&["verify", "root"]);
    run(&["repir", "a"]);
    // No line end breaks a command that somebody may copy.
    for line in said.lines().filter(|line| !line.starts_with("$ ") && line.contains(" fec ")) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert_data_eq!(said, file("errors.txt").raw());
}

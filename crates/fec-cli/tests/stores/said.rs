//! Messages about stores, and options that are refused because they would do nothing.

use crate::common::{Arena, expect, text};
use crate::{PLACES, Sent, encode};
use std::collections::BTreeSet;
use std::fs;

/// The options of each command that act on stores. All others are refused.
const OF_USE: [(&str, &[&str]); 4] = [
    (
        "encode",
        &[
            "--cipher",
            "--crowded",
            "--enough",
            "--data",
            "--hash",
            "--limit",
            "--passphrase",
            "--recipient",
            "--recipients-file",
            "--recovery",
            "--redundancy",
            "--retries",
            "--root-file",
            "--segment-size",
            "--set-size",
            "--spool",
            "--timeout",
            "--to",
            "--uploads",
        ],
    ),
    (
        "decode",
        &[
            "--force",
            "--from",
            "--identity",
            "--limit",
            "--output",
            "--passphrase",
            "--range",
            "--retries",
            "--root",
            "--spool",
            "--timeout",
        ],
    ),
    (
        "verify",
        &[
            "--audit",
            "--deep",
            "--format",
            "--from",
            "--limit",
            "--retries",
            "--root",
            "--spool",
            "--timeout",
        ],
    ),
    (
        "repair",
        &[
            "--deep",
            "--dry-run",
            "--from",
            "--limit",
            "--now",
            "--retries",
            "--root",
            "--spool",
            "--timeout",
            "--to",
        ],
    ),
];
/// Options of every command.
const OF_ALL: [&str; 12] = [
    "--backend",
    "--help",
    "--json",
    "--max-memory",
    "--no-mmap",
    "--no-sync",
    "--progress",
    "--quiet",
    "--threads",
    "--tuning",
    "--verbose",
    "--where",
];
/// Options that require another one, which is given with them.
const TOGETHER: [(&str, &[&str]); 4] = [
    ("--older-than", &["--state", "s"]),
    ("--signature", &["--signer", "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"]),
    ("--sign-passphrase-file", &["--sign", "k"]),
    ("--null", &["--files-from", "l"]),
];

/// The options in a command's help, each with an example value if it takes one.
fn options(arena: &Arena, command: &str) -> Vec<(String, Option<&'static str>)> {
    let help = text(&arena.expect([command, "--help"], 0).stdout);
    let lines = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    let option = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let word = words.iter().find(|word| word.starts_with("--"))?;
        let name: String = word.chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
        let takes = line.contains('<') && !word.contains("[=");
        let value = match name.as_str() {
            "--budget" | "--older-than" => "1h",
            "--sample" => "10%",
            "--format" => "text",
            "--gap" => "zeros",
            "--rate" => "1/6",
            "--profile" => "bounded",
            "--stats" => "json",
            "--signer" => TOGETHER[1].1[1],
            "--impair" => "dup:1",
            _ => "1",
        };
        (name.len() > 2).then_some((name, takes.then_some(value)))
    };
    lines.filter_map(option).collect()
}

#[test]
fn options_that_do_nothing_with_stores_are_refused() {
    let sent = Sent::new(&[]);
    let before = sent.arena.state();
    for (command, of_use) in OF_USE {
        let known: BTreeSet<&str> = of_use.iter().chain(&OF_ALL).copied().collect();
        let all = options(&sent.arena, command);
        assert!(all.len() > of_use.len(), "the help of {command} is read");
        let places =
            PLACES.iter().flat_map(|place| [if command == "encode" { "--to" } else { "--from" }, place]);
        let mut base: Vec<&str> = vec![command];
        base.extend(match command {
            "encode" => ["in", "-m", "90"],
            _ => ["--root", &sent.root, "-q"],
        });
        base.extend(places);
        for (option, value) in all.iter().filter(|(option, _)| !known.contains(option.as_str())) {
            let with = TOGETHER.iter().find(|(of, _)| of == option).map_or(&[][..], |(_, with)| with);
            let args =
                base.iter().copied().chain([option.as_str()]).chain(*value).chain(with.iter().copied());
            let output = sent.arena.run(args);
            assert_eq!(output.status.code(), Some(2), "{command} {option}: {}", text(&output.stderr));
        }
    }
    // Options for stores are refused without stores.
    for command in ["encode", "decode", "verify", "repair"] {
        for (option, value) in [("--spool", "."), ("--timeout", "1s"), ("--retries", "1"), ("--limit", "1M")]
        {
            let said = sent.arena.refuses([command, "in", option, value], 2);
            assert!(said.contains("is missing"), "{command} {option}: {said}");
        }
    }
    sent.arena.unchanged(&before);
}

/// The parser does not ask for an option that another one excludes.
#[test]
fn what_requires_an_option_that_is_excluded_is_refused_too() {
    let arena = Arena::new();
    arena.write("in", b"bytes");
    arena.expect(["encode", "in", "-o", "in.fec", "-q"], 0);
    let before = arena.state();
    for (args, missing) in [
        (&["encode", "in", "-k", "3", "-o", "x", "--rate", "1/6"][..], "--stream"),
        (&["encode", "in", "-o", "x", "--segment-size", "1M"], "--to"),
        (&["encode", "in", "-o", "x", "--crowded"], "--to"),
        (&["repair", "in.fec", "--now"], "--from"),
        (&["repair", "in.fec", "--deep"], "--from"),
        (&["repair", "in.fec", "--to", "x"], "--from"),
        (&["verify", "in.fec", "--deep", "--older-than", "1h"], "--state"),
        (&["keygen", "--stream", "-o", "k", "--sign-passphrase-file", "in"], "--sign"),
        (&["bench", "--gates", "--gate", "5%"], "--compare"),
        (&["decode", "in.fec", "-o", "x", "--timeout", "1s"], "--from"),
    ] {
        let said = arena.refuses(args, 2);
        assert!(said.contains(&format!(": {missing} ")) && said.contains(" is missing"), "{args:?}: {said}");
    }
    arena.unchanged(&before);
}

#[test]
fn what_would_be_left_unsaid_is_told_in_a_line() {
    let sent = Sent::new(&[]);
    let base =
        ["--root", &sent.root, "-q"].into_iter().chain(PLACES.iter().flat_map(|place| ["--from", place]));
    let base: Vec<&str> = base.collect();
    for options in [["--quick"].as_slice(), &["--sample", "100%"], &["--sample", "1%", "--budget", "1h"]] {
        let said = sent.arena.refuses(["verify"].iter().chain(&base).chain(options), 2);
        assert!(said.contains("does nothing with stores") && said.contains("leave --"), "{said}");
    }
    // A place that is a file takes nothing: a line tells so, with -q too.
    fs::remove_dir_all(sent.arena.path("p2")).unwrap();
    sent.arena.write("p2", b"");
    let output = encode(&sent.arena, &["-q"]);
    expect(&output, 1);
    assert_eq!(text(&output.stdout).trim(), sent.root);
    let said = text(&output.stderr);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with("fec: encode: did not arrive at p2: it is no folder (9 objects)"), "{said}");
    fs::remove_file(sent.arena.path("p2")).unwrap();
    fs::create_dir(sent.arena.path("p2")).unwrap();
    // Leftovers of a repair are reported in the same way, with -n too.
    let left = |options: &[&str], told: &str| {
        let output = sent.fec("repair", options);
        expect(&output, 1);
        let said = text(&output.stderr);
        assert!(said.contains("fec: repair: ") && said.contains(told), "{options:?}: {said}");
    };
    left(&["-q", "-n"], "would be made anew");
    let output = sent.fec("repair", &["-q"]);
    expect(&output, 0);
    assert_eq!(text(&output.stderr), "");
    fs::remove_file(sent.shards("p2").remove(0)).unwrap();
    left(&["-q"], "--now makes them anew");
    expect(&sent.fec("repair", &["-q", "--now"]), 0);
}

/// The command that a message advises is run.
#[test]
fn the_same_command_may_be_run_again() {
    let sent = Sent::new(&[]);
    fs::remove_dir_all(sent.arena.path("p2")).unwrap();
    sent.arena.write("p2", b"");
    let output = encode(&sent.arena, &["--root-file", "r"]);
    expect(&output, 1);
    assert!(text(&output.stderr).contains("run the same command again"), "{}", text(&output.stderr));
    fs::remove_file(sent.arena.path("p2")).unwrap();
    for _ in 0..2 {
        expect(&encode(&sent.arena, &["--root-file", "r"]), 0);
        assert_eq!(text(&sent.arena.read("r")).trim(), sent.root);
    }
    // Another payload has another root, and the old one is not lost.
    sent.arena.write("in", b"another payload");
    let output = encode(&sent.arena, &["--root-file", "r"]);
    expect(&output, 2);
    let said = text(&output.stderr);
    assert!(said.contains("it holds another root") && said.contains("its root is"), "{said}");
    assert_eq!(text(&sent.arena.read("r")).trim(), sent.root);
    expect(&encode(&sent.arena, &["--root-file", "r", "-f"]), 0);
    assert_ne!(text(&sent.arena.read("r")).trim(), sent.root);
    // A file that is no root is not touched, and no work is done for it.
    for bytes in [&b"precious"[..], b"", &[b'a'; 100]] {
        sent.arena.write("r", bytes);
        let before = sent.arena.state();
        expect(&encode(&sent.arena, &["--root-file", "r"]), 2);
        sent.arena.unchanged(&before);
    }
}

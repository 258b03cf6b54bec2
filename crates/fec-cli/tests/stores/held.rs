//! `fec list` and `fec forget`: words, exit codes, and the commands that messages advise.

use crate::common::{Arena, expect, text};
use crate::{PLACES, Sent, encode};
use serde_json::Value;
use std::fs;
use std::process::Output;

fn list(sent: &Sent, options: &[&str]) -> Output {
    sent.arena.fec(["list"].iter().chain(&PLACES).chain(options)).output().expect("fec starts")
}

/// The lines of a list, of which the table has 80 columns.
fn lines(output: &Output) -> Vec<String> {
    let said = text(&output.stdout);
    assert!(said.lines().all(|line| line.chars().count() <= 80), "{said}");
    said.lines().map(str::to_owned).collect()
}

#[test]
fn a_lost_root_is_found_again() {
    let sent = Sent::new(&[]);
    let output = list(&sent, &[]);
    expect(&output, 0);
    let lines = lines(&output);
    assert!(lines[1].contains("6 + 4") && lines[1].ends_with("40/40  intact     in"), "{lines:?}");
    assert_eq!(lines[2].trim(), sent.root);
    assert_eq!(lines[3], "1 encoding in 5 places: 1 intact");
    let report: Value = serde_json::from_slice(&list(&sent, &["--json"]).stdout).expect("a report");
    let root = report["encodings"][0]["root"].as_str().expect("a root").to_owned();
    let from = PLACES.iter().flat_map(|place| ["--from", place]);
    sent.arena.expect(["decode", "--root", &root, "-o", "back", "-q"].into_iter().chain(from), 0);
    assert!(sent.arena.read("back") == sent.bytes);
    // A list of places, as other commands take it, and beside a place that is named.
    sent.arena.write("places", b"p1\np2\np3\np4\n");
    sent.arena.expect(["list", "@places", "--from", "p0", "-q"], 0);
}

#[test]
fn what_is_missing_is_told_with_the_exit_code_for_it() {
    let sent = Sent::new(&[]);
    fs::remove_file(sent.shards("p1").remove(0)).unwrap();
    let output = list(&sent, &[]);
    expect(&output, 1);
    let said = text(&output.stdout);
    assert!(said.contains("39/40  damaged"), "{said}");
    assert!(said.contains("it can be restored, and any 3 more of a segment may be lost"), "{said}");
    let quiet = list(&sent, &["-q"]);
    expect(&quiet, 1);
    assert_eq!(text(&quiet.stderr), "fec: list 1 encoding in 5 places: 1 damaged\n");
    // A single place of five, and a place that is not there.
    let said = text(&sent.arena.expect(["list", "p0"], 3).stdout);
    assert!(said.contains("it was sent to other places too: p1, p2, p3, p4"), "{said}");
    let output = sent.arena.expect(["list", "p0", "p1", "p2", "p3", "gone/p4"], 4);
    assert!(text(&output.stdout).contains("  gone/p4: the place is not there"), "{output:?}");
    let verbose = text(&list(&sent, &["-v"]).stdout);
    assert!(verbose.contains("    p0: 8 shards, and the manifest\n"), "{verbose}");
    let found = text(&sent.arena.expect(["list", "."], 0).stdout);
    assert!(found.starts_with("0 encodings in 1 place\n"), "{found}");
    assert!(sent.arena.refuses(["list"], 2).contains("fec list s3://BUCKET/PREFIX FOLDER"));
}

/// Whoever may write to a place gives names, which no terminal obeys.
#[test]
fn names_with_tricks_are_escaped() {
    let arena = Arena::new();
    arena.write("a\u{1b}[2J\u{202e}b", b"payload");
    let to = PLACES.iter().flat_map(|place| ["--to", place]);
    arena.expect(["encode", "a\u{1b}[2J\u{202e}b", "-k", "6", "-m", "4", "-q"].into_iter().chain(to), 0);
    for option in ["-v", "--json"] {
        let said = text(&arena.expect(["list", option].iter().chain(&PLACES), 0).stdout);
        let is_harmless = |c: char| c == '\n' || !(c.is_control() || c == '\u{202e}');
        assert!(said.contains("[2J") && said.chars().all(is_harmless), "{said:?}");
    }
}

/// Without a terminal and without --yes nothing goes, and the command that is printed removes it.
#[test]
fn a_removal_is_consented_to() {
    let sent = Sent::new(&[]);
    let before = sent.arena.state();
    let output = sent.fec("forget", &[]);
    expect(&output, 2);
    sent.arena.unchanged(&before);
    let said = text(&output.stderr);
    assert!(said.contains("to be removed: 45 objects") && said.contains("  p2: 9 objects, "), "{said}");
    let command = said.lines().find(|line| line.trim().starts_with("fec forget --root")).expect("a command");
    sent.arena.expect(command.split_whitespace().skip(1), 0);
    let listing = |place: &str| fs::read_dir(sent.arena.path(place)).unwrap().count();
    assert_eq!(PLACES.map(listing), [0; 5], "folders of roots go too");
    let again = sent.fec("forget", &["--yes"]);
    expect(&again, 0);
    assert!(text(&again.stderr).starts_with("nothing of this root is there\n"), "{again:?}");
    expect(&list(&sent, &[]), 0);
}

#[test]
fn what_others_need_stays_and_a_silent_place_stops_all() {
    let sent = Sent::new(&[]);
    let to = PLACES[..4].iter().flat_map(|place| ["--to", place]);
    let shape = ["encode", "in", "-k", "6", "-m", "4", "--segment-size", "300K", "-q"];
    let other = text(&sent.arena.expect(shape.into_iter().chain(to), 0).stdout);
    let away = |from: &str, to: &str| fs::rename(sent.arena.path(from), sent.arena.path(to)).unwrap();
    away("p4", "elsewhere");
    let output = sent.fec("forget", &["--yes"]);
    expect(&output, 4);
    let said = text(&output.stderr);
    assert!(said.contains("nothing was removed\n  p4: ") && said.contains("--partial"), "{said}");
    away("elsewhere", "p4");
    let output = sent.fec("forget", &["--yes"]);
    expect(&output, 0);
    let said = text(&output.stderr);
    assert!(said.contains("4 segments stay, because other encodings need them:"), "{said}");
    assert!(said.contains(other.trim()) && said.contains("5 objects removed"), "{said}");
    let from = PLACES[..4].iter().flat_map(|place| ["--from", place]);
    sent.arena.expect(["verify", "-q", "--root", other.trim()].into_iter().chain(from), 0);
    // A place for reading holds nothing that can go.
    let url = ["forget", "--yes", "--root", other.trim(), "--from", "https://example.org/shards"];
    assert!(sent.arena.refuses(url, 2).contains("only for reading"));
}

/// The same command twice: the file of the root is there with this root, and stays.
#[test]
fn a_root_file_with_the_same_root_is_told() {
    let sent = Sent::new(&[]);
    for is_there in [false, true] {
        let output = encode(&sent.arena, &["--root-file", "r"]);
        expect(&output, 0);
        let said = text(&output.stderr);
        assert_eq!(said.contains("r was there already, with this root"), is_there, "{said}");
    }
    // Containers and pipes do the same.
    for output in ["one.fec", "two.fec"] {
        sent.arena.expect(["encode", "in", "-o", output, "--root-file", "c", "-q"], 0);
    }
    sent.arena.write("other", b"another payload");
    let said = sent.arena.expect(["encode", "other", "-o", "other.fec", "--root-file", "c"], 2);
    assert!(text(&said.stderr).contains("it holds another root, and is replaced with -f"), "{said:?}");
}

/// A spool without room is named, and the option for another one.
#[test]
fn a_full_spool_is_named() {
    let sent = Sent::new(&[]);
    fs::create_dir(sent.arena.path("spool")).unwrap();
    let from: Vec<String> = PLACES.iter().map(|place| format!("--from {place}")).collect();
    for (command, more) in [("decode", "-o out"), ("verify", "--deep")] {
        let fec = sent.arena.fec([] as [&str; 0]);
        let program = fec.get_program().to_str().expect("UTF-8").to_owned();
        let line = format!(
            "trap '' XFSZ; ulimit -f 20; exec {program} {command} --root {} {} {more} --spool spool",
            sent.root,
            from.join(" ")
        );
        let mut shell = std::process::Command::new("bash");
        let output = shell.args(["-c", &line]).current_dir(&sent.arena.work).output().expect("a shell");
        expect(&output, 4);
        let said = text(&output.stderr);
        assert!(said.contains("write the temporary file: File too large"), "{said}");
        assert!(said.contains("are kept in spool: --spool FOLDER names another, with more room"), "{said}");
    }
}

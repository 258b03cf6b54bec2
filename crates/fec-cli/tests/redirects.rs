//! The work does not depend on what standard output is: a file becomes shard files, or a payload of its name, and data
//! goes through standard output where -o says so or standard input is read.

mod common;

use common::{Arena, listing, payload, root, text};
use std::fs::{self, OpenOptions};
use std::process::{Command, Output, Stdio};

fn arena() -> (Arena, Vec<u8>) {
    let arena = Arena::new();
    let bytes = payload(1, 30_000);
    arena.write("input", &bytes);
    (arena, bytes)
}

/// Runs a shell command, in which `fec` is the binary under test.
fn shell(arena: &Arena, command: &str) -> Output {
    let script = format!("fec() {{ {} \"$@\"; }}; {command}", common::fec_words());
    Command::new("sh").args(["-c", &script]).current_dir(&arena.work).stdin(Stdio::null()).output().unwrap()
}

/// Asserts the exit code, and returns what was said on standard error.
fn expect(output: &Output, exit: i32) -> String {
    common::expect(output, exit);
    text(&output.stderr)
}

/// The commands that a message advises.
fn advice(said: &str) -> Vec<String> {
    let lines = said.lines().filter_map(|line| line.strip_prefix("       fec "));
    lines.map(|line| format!("fec {line}")).collect()
}

/// A new file, a file that is appended to, one that is written to already, and a pipe.
const SINKS: [&str; 4] = ["> out", ">> out", "> out 2>&1", "| cat > out"];

#[test]
fn a_file_becomes_shard_files_wherever_standard_output_goes() {
    for sink in SINKS {
        let (arena, _) = arena();
        expect(&shell(&arena, &format!("fec encode input -q {sink}")), 0);
        assert_eq!(listing(&arena.work), ["input", "input.shards", "out"], "{sink}");
        expect(&shell(&arena, "fec verify input.shards --root @out"), 0);
        // In a job's log stands what the job said, and the root.
        let job = format!("{{ echo begun; fec encode input -q -f; }} {}", sink.replace("out", "log"));
        expect(&shell(&arena, &job), 0);
        let log = text(&arena.read("log"));
        assert!(log.starts_with("begun\n") && log.len() == 6 + 65, "{sink}: {log}");
    }
}

#[test]
fn a_payload_gets_its_own_name_wherever_standard_output_goes() {
    for sink in SINKS {
        let (arena, bytes) = arena();
        arena.expect(["encode", "input", "-o", "back.fec", "-q"], 0);
        expect(&shell(&arena, &format!("fec decode back.fec -q {sink}")), 0);
        assert!(arena.read("back") == bytes && arena.read("out").is_empty(), "{sink}");
    }
    let (arena, bytes) = arena();
    arena.expect(["encode", "input", "-o", "back.fec", "-q"], 0);
    // The shell has made the very file that the payload would get.
    let said = expect(&shell(&arena, "fec decode back.fec > back"), 2);
    assert!(
        said.contains("standard output goes there already") && said.contains("\n       -o -\n"),
        "{said}"
    );
    expect(&shell(&arena, "fec decode back.fec -o - > back"), 0);
    assert!(arena.read("back") == bytes);
}

/// A file with the name of a container would hold 64 digits, and be somebody's only copy.
#[test]
fn a_redirected_container_that_would_get_only_a_root_is_refused_with_both_commands() {
    for redirect in ["> c.fec", ">> c.fec"] {
        let (arena, bytes) = arena();
        let said = expect(&shell(&arena, &format!("fec encode input {redirect}")), 2);
        assert_eq!(listing(&arena.work), ["c.fec", "input"], "{redirect}: nothing is written");
        assert!(said.starts_with("fec: write c.fec: "), "the file is named as it was: {said}");
        let commands = advice(&said);
        assert_eq!(commands.len(), 2, "{said}");
        for command in commands {
            expect(&shell(&arena, &command), 0);
        }
        expect(&shell(&arena, "fec decode c.fec -o - | cmp - input"), 0);
        expect(&shell(&arena, "fec verify input.shards --root @c.root"), 0);
        assert!(arena.read("input") == bytes);
    }
    let (arena, _) = arena();
    for line in ["fec encode input -k 4 > c.fec", "fec encode input input > c.fec"] {
        let said = expect(&shell(&arena, line), 2);
        assert!(said.contains("c.fec: it is named as a container") && said.contains(" add:\n"), "{said}");
    }
    // With an output named, the file that the root goes to may have any name.
    expect(&shell(&arena, "fec encode input -o - > c.fec && fec encode input -o d.fec > root.fec"), 0);
    expect(&shell(&arena, "fec verify d.fec --root @root.fec && fec encode input --json > json.fec"), 0);
}

/// A pattern of the shell may stand for one file.
#[test]
fn one_file_or_several_make_no_difference() {
    let (arena, bytes) = arena();
    let line = "fec encode *.iso -o 'safe/{/}.shards/' > roots && fec verify --roots roots";
    for names in [&["a.iso"][..], &["b.iso"]] {
        for name in names {
            arena.write(name, &bytes);
        }
        fs::create_dir_all(arena.path("safe")).unwrap();
        expect(&shell(&arena, line), 0);
        let roots = text(&arena.read("roots"));
        assert!(
            roots.lines().all(|line| line.contains("  safe/") && line.ends_with(".iso.shards")),
            "{roots}"
        );
        fs::remove_dir_all(arena.path("safe")).unwrap();
    }
    assert_eq!(text(&arena.read("roots")).lines().count(), 2);
    let said = expect(&shell(&arena, "fec encode input > root; fec verify --roots root"), 2);
    assert!(said.contains("line 1 is a root without a path"), "{said}");
}

#[test]
fn standard_input_is_what_is_read_unless_a_file_is_named() {
    let (arena, bytes) = arena();
    expect(
        &shell(&arena, "fec encode < input > f.fec && fec verify < f.fec && fec decode < f.fec > back"),
        0,
    );
    assert!(arena.read("back") == bytes);
    expect(&shell(&arena, "cat input | fec encode | cat | fec decode | cmp - input"), 0);
}

#[test]
fn a_pipe_gets_the_root_unless_it_is_said_otherwise() {
    let (arena, bytes) = arena();
    let root = root(&arena.expect(["encode", "input"], 0));
    assert_eq!(listing(&arena.work), ["input", "input.shards"]);
    expect(&shell(&arena, &format!("R=$(fec encode input -f) && test $R = {root}")), 0);
    expect(&arena.run(["verify", "input.shards", "--root", &root]), 0);
    let piped = arena.expect(["encode", "input", "-o", "-"], 0);
    let back = arena.pipe(["decode"], &piped.stdout);
    assert!(back.stdout == bytes);
    // If -o names a target for the data, standard output can only be for the root.
    expect(&shell(&arena, "fec encode input -o c.fec > root && fec verify c.fec --root @root"), 0);
    // A payload that is asked for goes into a log like anything else.
    let log = OpenOptions::new().create(true).append(true).open(arena.path("log")).unwrap();
    expect(&arena.fec(["decode", "c.fec", "-o", "-"]).stdout(log).output().unwrap(), 0);
    assert!(arena.read("log") == bytes);
}

#[test]
fn json_is_what_standard_output_gets_when_it_is_asked_for() {
    let (arena, bytes) = arena();
    expect(
        &shell(&arena, "fec encode input --json > report && fec decode input.shards -f --json > report2"),
        0,
    );
    assert!(arena.read("report").starts_with(b"{") && arena.read("report2").starts_with(b"{"));
    assert!(arena.read("input") == bytes);
}

#[test]
fn a_root_in_place_of_an_encoding_is_recognised() {
    let (arena, _) = arena();
    let root = root(&arena.expect(["encode", "input"], 0));
    let line = format!("{root}\n");
    arena.write("data.fec", line.as_bytes());
    for command in ["decode", "verify", "repair"] {
        let said = arena.refuses([command, "data.fec"], 2);
        let right = format!("fec {command} PATH --root @data.fec");
        assert!(said.contains(&format!("it holds only a root: {root}")) && said.contains(&right), "{said}");
    }
    for command in ["decode", "verify"] {
        let said = arena.refuses_pipe([command], line.as_bytes(), 2);
        assert!(said.contains(&root), "{said}");
    }
    let list = format!("{root}  input.shards/\n{root}  b\n");
    arena.write("list", list.as_bytes());
    assert!(arena.refuses(["verify", "list"], 2).contains("fec verify --roots list"));
    // In front of a container, a root is ordinary junk.
    arena.expect(["encode", "input", "-o", "c.fec"], 0);
    let joined = [line.as_bytes(), &arena.read("c.fec")].concat();
    expect(&arena.pipe(["decode"], &joined), 0);
}

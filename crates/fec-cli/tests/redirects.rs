//! Redirected standard output gets data, or whatever an option asks for, and never a root in place of data.

mod common;

use common::{Arena, expect, listing, payload, root, text};
use std::fs::{self, File, OpenOptions};
use std::process::{Command, Output, Stdio};

fn arena() -> (Arena, Vec<u8>) {
    let arena = Arena::new();
    let bytes = payload(1, 30_000);
    arena.write("input", &bytes);
    (arena, bytes)
}

/// Runs a shell command, in which `fec` is the binary under test.
fn shell(arena: &Arena, command: &str) -> Output {
    let words = std::env::var("FEC_UNDER_TEST").unwrap_or_else(|_| env!("CARGO_BIN_EXE_fec").to_owned());
    let script = format!("fec() {{ {words} \"$@\"; }}; {command}");
    Command::new("sh").args(["-c", &script]).current_dir(&arena.work).stdin(Stdio::null()).output().unwrap()
}

#[test]
fn a_new_file_gets_a_container_and_the_payload() {
    let (arena, bytes) = arena();
    expect(&shell(&arena, "fec encode input > data.fec"), 0);
    assert!(!arena.path("input.shards").exists(), "nothing is written beside it");
    expect(&shell(&arena, "fec verify data.fec"), 0);
    fs::rename(arena.path("data.fec"), arena.path("real.fec")).unwrap();
    expect(&shell(&arena, "fec decode real.fec > out"), 0);
    assert!(arena.read("out") == bytes && !arena.path("real").exists());
    // Shard files record a name, but the redirected file takes precedence.
    arena.expect(["encode", "input", "-o", "s/", "-q"], 0);
    expect(&shell(&arena, "fec decode s > again"), 0);
    assert!(arena.read("again") == bytes);
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

/// The reader of the pipe may be `$(…)`. A root that ends up as somebody's backup is recognized when it is read, as the
/// test below shows.
#[test]
fn a_pipe_gets_the_root_unless_it_is_said_otherwise() {
    let (arena, bytes) = arena();
    let piped = arena.expect(["encode", "input"], 0);
    let said = text(&piped.stderr);
    assert!(said.contains("-o -"), "it says how a pipe gets the container: {said}");
    assert_eq!(listing(&arena.work), ["input", "input.shards"]);
    let root = root(&piped);
    expect(&shell(&arena, &format!("R=$(fec encode input -f) && test $R = {root}")), 0);
    expect(&arena.run(["verify", "input.shards", "--root", &root]), 0);
    let piped = arena.expect(["encode", "input", "-o", "-"], 0);
    let back = arena.pipe(["decode"], &piped.stdout);
    assert!(back.stdout == bytes);
    expect(
        &shell(&arena, "fec encode input -f --print-root > root && fec verify input.shards --root @root"),
        0,
    );
    // If -o names a target for the data, standard output can only be for the root.
    expect(&shell(&arena, "fec encode input -o c.fec > root && fec verify c.fec --root @root"), 0);
    arena.refuses(["encode", "input", "-o", "-", "--print-root"], 2);
}

/// A log gets no data: a file that is appended to, that is not empty, or that also takes errors.
#[test]
fn a_log_gets_no_data() {
    let (arena, _) = arena();
    arena.write("log", b"");
    let appended = OpenOptions::new().append(true).open(arena.path("log")).unwrap();
    expect(&arena.fec(["encode", "input"]).stdout(appended).output().unwrap(), 0);
    let both = File::create(arena.path("both")).unwrap();
    let output =
        arena.fec(["encode", "input"]).stdout(both.try_clone().unwrap()).stderr(both).output().unwrap();
    expect(&output, 2);
    expect(&shell(&arena, "{ echo begun; fec encode input -f; } > begun"), 0);
    let both = text(&arena.read("both"));
    assert!(both.contains("not empty"), "{both}");
    let root_line = text(&arena.read("log"));
    assert_eq!((root_line.len(), arena.read("begun")), (65, format!("begun\n{root_line}").into_bytes()));
    // The payload goes to a file of its own name instead.
    arena.expect(["encode", "input", "-o", "c.fec"], 0);
    expect(&shell(&arena, "fec decode c.fec >> log"), 0);
    assert!(arena.read("c") == arena.read("input") && arena.read("log").len() == 65);
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

//! What people who are new to the command line trip over: what it says then.

mod common;

use common::{Arena, payload, text};

fn arena() -> Arena {
    let arena = Arena::new();
    for (seed, name) in ["a", "b"].into_iter().enumerate() {
        arena.write(name, &payload(seed as u64, 100_000));
    }
    arena
}

/// `-` is how it is written, and not what it is called.
#[test]
fn standard_input_and_output_are_called_so() {
    let arena = arena();
    let container = arena.pipe(["encode"], &arena.read("a"));
    assert!(
        text(&container.stderr).starts_with("standard input: 100000 bytes -> a container on standard output")
    );
    let decoded = arena.pipe(["decode"], &container.stdout);
    assert!(text(&decoded.stderr).starts_with("standard output: 100000 bytes restored"), "{decoded:?}");
    let lost = arena.pipe(["decode"], &container.stdout[..50_000]);
    assert!(text(&lost.stderr).starts_with("fec: decode standard input: "), "{lost:?}");
    // Programs are told what was written.
    let decoded = arena.pipe(["decode", "--json"], &container.stdout);
    assert!(text(&decoded.stderr).contains("\"output\":\"-\""));
}

/// Whoever copies a command from a terminal of 80 columns gets all of it.
#[test]
fn commands_stand_on_lines_of_their_own() {
    let arena = arena();
    arena.write("d/photo", b"a photo");
    arena.expect(["protect", "d"], 0);
    arena.write("d/photo", b"another photo");
    arena.write("d/new", b"a new one");
    let report = text(&arena.expect(["verify", "d.fecp"], 1).stdout);
    for command in ["  fec protect --update PATH", "  fec repair --revert --undo FILE d.fecp"] {
        assert!(report.lines().any(|line| line == command), "{command}: {report}");
    }
    let said = arena.refuses(["encode", "d"], 2);
    assert!(said.lines().any(|line| line.trim() == "tar c d | fec encode - -o d.tar.fec"), "{said}");
}

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

/// A root, or an output, where neither is looked for.
#[test]
fn what_stands_in_a_wrong_place_is_recognised() {
    let arena = arena();
    let root = text(&arena.expect(["encode", "a", "--root-file", "root.txt"], 0).stdout);
    let root = root.trim();
    for command in ["decode", "verify", "repair"] {
        let said = arena.refuses([command, "a.shards", root], 4);
        assert!(said.lines().any(|line| line.trim() == format!("--root {root}")), "{said}");
        let said = arena.refuses([command, "a.shards", "--root", "root.txt"], 2);
        assert!(said.contains("--root @root.txt"), "{said}");
    }
    assert!(arena.refuses(["verify", "a.shards", "--root", "none.txt"], 2).contains("64 hexadecimal digits"));
    let said = arena.refuses(["decode", "a.shards", "out"], 4);
    assert!(said.lines().any(|line| line.trim() == "fec decode a.shards -o out"), "{said}");
    let said = text(&arena.expect(["encode", "b", "my output.fec"], 4).stderr);
    assert!(said.lines().any(|line| line.trim() == "fec encode b -o 'my output.fec'"), "{said}");
    // What is not there is not an output if one is named, or stands in a list.
    assert!(!arena.refuses(["decode", "a.shards", "none", "-o", "out"], 4).contains("-o"));
    arena.write("list", b"b\nnone\n");
    assert!(!text(&arena.expect(["encode", "--files-from", "list", "-f"], 4).stderr).contains("-o"));
}

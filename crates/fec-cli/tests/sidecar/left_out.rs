//! Words and exit codes about what is left out.

use super::*;

/// A run of `protect`, and what it says.
#[track_caller]
fn said(arena: &Arena, args: &[&str], exit: i32) -> String {
    let output = arena.run([&["protect", "d"], args].concat());
    expect(&output, exit);
    text(&output.stderr).replace("\n  ", " ")
}

#[test]
fn patterns_are_told_remembered_and_forgotten() {
    let arena = Arena::new();
    for name in ["d/a", "d/b.tmp", "d/sub/c", "d/sub/e.tmp"] {
        arena.write(name, name.as_bytes());
    }
    let made = said(&arena, &["--exclude", "*.tmp", "--exclude", "./none"], 0);
    assert!(made.contains("left out by --exclude '*.tmp' --exclude none: 2 paths"), "{made}");
    assert!(made.contains("warning: --exclude none matched nothing\n"), "{made}");
    let updated = said(&arena, &["--update", "--exclude", "/c"], 0);
    let from = format!("paths count from {0} or {0}/d", arena.path("").canonicalize().unwrap().display());
    let from = from.replace("/ ", " ").replace("//", "/");
    assert!(updated.contains("warning: --exclude /c matched nothing; "), "{updated}");
    assert!(updated.replace('\n', " ").contains(&from), "{from}: {updated}");
    assert!(updated.contains("the sidecar remembers --exclude '*.tmp' --exclude none; "), "{updated}");
    let report = json(&arena.expect(["protect", "--update", "d", "--json"], 0));
    assert_eq!(report["left_out"]["remembered"].as_array().map(Vec::len), Some(3), "{report}");
    assert_eq!(report["left_out"]["paths"], 2, "{report}");
    // The advised option protects the rest.
    assert!(updated.contains("to protect that too, add --forget-excludes"), "{updated}");
    let forgotten = said(&arena, &["--update", "--forget-excludes"], 0);
    assert!(forgotten.contains("2 new") && !forgotten.contains("left out"), "{forgotten}");
    for (wrong, why) in [("/", "it names nothing"), ("[a", "[")] {
        let refused = said(&arena, &["-f", "--exclude", wrong], 2);
        assert!(refused.contains(why) && refused.contains(wrong), "{refused}");
    }
    assert!(said(&arena, &["-f", "--forget-excludes"], 2).contains("--forget-excludes"));
}

/// Under a root of another user nothing proves the patterns.
#[test]
fn patterns_that_no_proof_binds_are_told() {
    let arena = Arena::new();
    for name in ["d/a", "d/b.tmp", "d/sub/c"] {
        arena.write(name, name.as_bytes());
    }
    let root = protect(&arena, &["d", "--exclude", "*.tmp"]);
    let elsewhere = arena.path("nobody");
    let output = arena
        .fec(["protect", "-u", "d", "--root", &root])
        .env("XDG_STATE_HOME", &elsewhere)
        .output()
        .expect("it runs");
    expect(&output, 0);
    let said = text(&output.stderr).replace('\n', " ").replace("  ", " ");
    assert!(said.contains("1 new"), "{said}");
    assert!(said.contains("not used: --exclude '*.tmp', which the sidecar remembers"), "{said}");
}

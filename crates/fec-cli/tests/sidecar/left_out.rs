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

/// The end of a file that cannot be read shares a block with a file that was edited: all that is advised works, and
/// nothing else gives up its protection.
#[test]
fn what_cannot_be_read_is_not_given_up_unasked() {
    if !common::can_trace() {
        return;
    }
    for forced in [false, true] {
        let arena = Arena::new();
        age(&arena.write("d/large", &payload(1, 20_481)), 1);
        age(&arena.write("d/small", &payload(2, 700)), 2);
        protect(&arena, &["d", "-r", "100%"]);
        edit(&arena.path("d/small"), b"edited");
        let large = arena.path("d/large");
        let bad = ["-e", "inject=pread64,preadv,read:error=EIO", "-P", large.to_str().expect("UTF-8")];
        let update = |options: &[&str]| {
            let args = [&["protect", "--update", "d"], options].concat();
            common::traced(&arena, &bad, &args).output().expect("strace starts")
        };
        let before = arena.read("d.fecp");
        let refused = update(&[]);
        expect(&refused, 4);
        let said = text(&refused.stderr).replace("\n  ", " ");
        assert!(said.contains("they cannot be read, and could not stay protected: d/large"), "{said}");
        assert!(said.contains("make them readable, or mend them with fec repair SIDECAR"), "{said}");
        assert!(said.contains("to go on, and give up their protection, with -f"), "{said}");
        assert!(arena.read("d.fecp") == before && text(&refused.stdout).is_empty());
        if forced {
            let given_up = update(&["-f"]);
            expect(&given_up, 1);
            assert!(text(&given_up.stderr).contains("d/large"), "{}", text(&given_up.stderr));
            // The edit is protected, and the file is new as soon as it can be read.
            assert_eq!(states(&arena, &["d.fecp"], 1), []);
        } else {
            // The disk has another sector in the place of the bad one.
            rot(&large, 4096, &[0; 4096]);
            make_younger(&arena, "d.fecp", "d");
            expect(&arena.run(["repair", "d.fecp"]), 1);
            assert!(arena.read("d/large") == payload(1, 20_481));
        }
        arena.expect(["protect", "--update", "d"], 0);
        is_intact(&arena, "d.fecp");
    }
}

//! `fec rekey`: words, exit codes, and the commands that messages advise.

use crate::common::{Arena, expect, payload, root, text};
use crate::{LEN, PLACES};
use std::fs;
use std::process::Output;

/// A payload that was sealed for `one` and sent to five folders, with the keys `one` and `two`.
struct Sealed {
    arena: Arena,
    root: String,
}

impl Sealed {
    fn new() -> Sealed {
        let arena = Arena::new();
        arena.write("in", &payload(7, LEN));
        for name in ["one", "two"] {
            let made = arena.expect(["keygen", "-o", name, "-q"], 0);
            arena.write(format!("{name}.pub"), &made.stdout);
        }
        let to = PLACES.iter().flat_map(|place| ["--to", place]);
        let args = ["encode", "in", "-k", "6", "-m", "4", "-R", "one.pub", "-q"].into_iter().chain(to);
        let root = root(&arena.expect(args, 0));
        Sealed { arena, root }
    }

    fn run(&self, command: &str, root: &str, options: &[&str]) -> Output {
        let from = PLACES.iter().flat_map(|place| ["--from", place]);
        let args = [command, "--root", root].into_iter().chain(from).chain(options.iter().copied());
        self.arena.fec(args).output().expect("fec starts")
    }

    fn opens(&self, root: &str, key: &str) -> Option<i32> {
        self.run("decode", root, &["-i", key, "-o", "back", "-f", "-q"]).status.code()
    }
}

#[test]
fn others_open_it_with_the_new_root_and_the_advice_removes_the_old_one() {
    let sealed = Sealed::new();
    let output = sealed.run("rekey", &sealed.root, &["-i", "one", "-R", "two.pub", "--root-file", "new"]);
    expect(&output, 0);
    let said = text(&output.stderr);
    assert!(said.starts_with("sealed for 1 recipient: a manifest of "), "{said}");
    assert!(said.contains(" bytes at 5 places, and no shard sent\n"), "{said}");
    let new = text(&output.stdout).trim().to_owned();
    assert_eq!(text(&sealed.arena.read("new")).trim(), new);
    assert_eq!((sealed.opens(&new, "two"), sealed.opens(&new, "one")), (Some(0), Some(5)));
    assert!(sealed.arena.read("back") == sealed.arena.read("in"));
    assert_eq!(sealed.opens(&sealed.root, "one"), Some(0));
    let command = said.lines().find(|line| line.trim().starts_with("fec forget")).expect("a command");
    let consent = ["--yes", "-q"];
    sealed.arena.expect(command.split_whitespace().skip(1).chain(consent), 0);
    assert_eq!((sealed.opens(&sealed.root, "one"), sealed.opens(&new, "two")), (Some(3), Some(0)));
    expect(&sealed.run("verify", &new, &["--deep", "-q"]), 0);
}

#[test]
fn what_it_cannot_do_is_refused_and_changes_nothing() {
    let sealed = Sealed::new();
    let before = sealed.arena.state();
    for (options, exit, says) in [
        (&["-i", "two", "-R", "two.pub"][..], 5, "no key fits"),
        (&["-i", "one"], 2, "--recipient"),
        (&["-R", "two.pub"], 2, "--identity"),
        (&["-i", "one", "-R", "two.pub", "--root-file", "in"], 2, "exists"),
    ] {
        let output = sealed.run("rekey", &sealed.root, options);
        expect(&output, exit);
        let said = text(&output.stderr);
        assert!(said.contains(says) || says == "no key fits", "{options:?}: {said}");
        sealed.arena.unchanged(&before);
    }
    // A place that is away is told, and the advice sends the manifest there.
    fs::rename(sealed.arena.path("p1"), sealed.arena.path("away")).expect("it was there");
    sealed.arena.write("p1", b"");
    let output = sealed.run("rekey", &sealed.root, &["-i", "one", "-R", "two.pub"]);
    expect(&output, 1);
    assert!(text(&output.stderr).contains("  the manifest -> p1: "), "{output:?}");
    let new = text(&output.stdout).trim().to_owned();
    fs::remove_file(sealed.arena.path("p1")).expect("a file");
    fs::rename(sealed.arena.path("away"), sealed.arena.path("p1")).expect("it was there");
    expect(&sealed.run("repair", &new, &["-q"]), 0);
    assert!(sealed.arena.path(format!("p1/{new}/manifest")).exists());
}

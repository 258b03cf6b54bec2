//! Mistakes of people who are new to the command line, and the messages for them.

mod common;

use common::{Arena, payload, text};

fn arena() -> Arena {
    let arena = Arena::new();
    for (seed, name) in ["a", "b"].into_iter().enumerate() {
        arena.write(name, &payload(seed as u64, 100_000));
    }
    arena
}

/// Messages call `-` standard input or standard output.
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
    // Programs get the name as it was written.
    let decoded = arena.pipe(["decode", "--json"], &container.stdout);
    assert!(text(&decoded.stderr).contains("\"output\":\"-\""));
}

/// A command can be copied in one piece from a terminal of 80 columns.
#[test]
fn commands_stand_on_lines_of_their_own() {
    let arena = arena();
    arena.write("d/photo", b"a photo");
    arena.expect(["protect", "d"], 0);
    arena.write("d/photo", b"another photo");
    arena.write("d/new", b"a new one");
    let report = text(&arena.expect(["verify", "d.fecp"], 1).stdout);
    for command in ["  fec protect --update d", "  fec repair --revert --undo FILE d.fecp"] {
        assert!(report.lines().any(|line| line == command), "{command}: {report}");
    }
    let said = arena.refuses(["encode", "d"], 2);
    assert!(said.lines().any(|line| line.trim() == "tar c d | fec encode - -o d.tar.fec"), "{said}");
}

/// The parser's own words for wrong use are replaced.
#[test]
fn wrong_use_is_told_in_plain_words() {
    let arena = arena();
    for (args, says) in [
        (&["repair"][..], "fec: fec repair: PATH is missing"),
        (&["protect"], "fec: fec protect: PATH is missing"),
        (&["--root", "x", "decode"], "put it behind a command, as in: fec decode --root"),
        (&["encode", "a", "--recovery=60%"], "it is a number of shards; for per cent there is -r"),
    ] {
        let said = arena.refuses(args, 2);
        assert!(said.contains(says), "{args:?}: {said}");
    }
}

/// A pipe in which the first command failed.
#[test]
fn nothing_from_a_pipe_is_told() {
    let arena = arena();
    let warning = "warning: nothing came from standard input";
    assert!(text(&arena.pipe(["encode", "-", "-o", "none.fec"], b"").stderr).starts_with(warning));
    arena.write("empty", b"");
    let file = arena.expect(["encode", "empty", "-o", "empty.fec"], 0);
    assert!(!text(&file.stderr).contains("warning"));
}

/// A root or an output in the wrong place.
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
    // A missing file is not taken for an output if one is named, or if the file stands in a list.
    assert!(!arena.refuses(["decode", "a.shards", "none", "-o", "out"], 4).contains("-o"));
    arena.write("list", b"b\nnone\n");
    assert!(!text(&arena.expect(["encode", "--files-from", "list", "-f"], 4).stderr).contains("-o"));
}

/// Containers or a sidecar stand where shard files are looked for.
#[test]
fn containers_and_sidecars_are_named_with_the_command_for_them() {
    let arena = arena();
    for name in ["safe/a.fec", "safe/b.fec", "safe/c.fec", "safe/d.fec"] {
        std::fs::create_dir_all(arena.path("safe")).unwrap();
        arena.expect(["encode", "a", "-o", name], 0);
    }
    for command in ["decode", "repair"] {
        let said = arena.refuses([command, "safe"], 3);
        assert!(
            said.contains(
                "4 containers are here, and no shard files: safe/a.fec, safe/b.fec, safe/c.fec and 1 more"
            ),
            "{said}"
        );
        assert!(said.lines().any(|line| line.trim() == format!("fec {command} safe/a.fec")), "{said}");
    }
    let said = arena.refuses(["decode", "safe/a.fec", "safe/b.fec"], 2);
    assert!(said.contains("2 containers are here"), "{said}");
    arena.write("photos/one", b"a photo");
    arena.expect(["protect", "photos"], 0);
    arena.expect(["protect", "a", "b", "-o", "two.fecp"], 0);
    let said = arena.refuses(["decode", "photos.fecp"], 2);
    assert!(said.contains("it is a sidecar") && said.contains("\n       fec repair photos.fecp"), "{said}");
    let said = arena.refuses(["decode", "photos"], 3);
    assert!(said.contains("\n       fec repair photos.fecp"), "{said}");
    for (sidecar, command) in
        [("photos.fecp", "fec protect --update photos"), ("two.fecp", "fec protect --update a b -o two.fecp")]
    {
        let said = arena.refuses(["protect", "--update", sidecar], 2);
        assert!(said.lines().any(|line| line.trim() == command), "{said}");
        arena.expect(command.split(' ').skip(1), 0);
    }
}

/// A report names the files of another encoding in a folder.
#[test]
fn strays_are_named() {
    let arena = arena();
    arena.expect(["encode", "a"], 0);
    arena.expect(["encode", "b"], 0);
    for nth in 10..15 {
        let name = format!("b.0{nth}.shard");
        std::fs::copy(arena.path(format!("b.shards/{name}")), arena.path(format!("a.shards/{name}")))
            .unwrap();
    }
    let named = ": a.shards/b.010.shard, a.shards/b.011.shard, a.shards/b.012.shard and 2 more";
    assert!(text(&arena.expect(["verify", "a.shards"], 0).stdout).contains(named));
    assert!(text(&arena.expect(["decode", "a.shards", "-o", "out"], 0).stderr).contains(named));
}

/// However great the damage, the first line is the verdict and few lines follow. -v lists all.
#[test]
fn the_verdict_stands_first_and_what_follows_is_short() {
    let arena = arena();
    arena.expect(["encode", "a", "-o", "a.fec"], 0);
    arena.expect(["encode", "a"], 0);
    let len = arena.read("a.fec").len();
    (0..50).for_each(|nth| common::flip(&arena.path("a.fec"), nth * len / 100 * 2 + 1000));
    (0..50).for_each(|nth| common::flip(&arena.path(format!("a.shards/a.0{nth:02}.shard")), 2000));
    for nth in 0..100 {
        arena.write(format!("d/{nth}"), format!("number {nth}").as_bytes());
    }
    arena.expect(["protect", "d", "-r", "100%"], 0);
    (10..60).for_each(|nth| std::fs::remove_file(arena.path(format!("d/{nth}"))).unwrap());
    for (name, verdict, damage) in [
        ("a.fec", "50 of 100 shards intact, 0 damaged, 50 missing", "  rejected: "),
        ("a.shards", "50 of 100 shards intact, 50 damaged, 0 missing", "  damaged: shard "),
        ("d.fecp", "101 entries: 50 missing", "  missing    d/"),
    ] {
        let report = |args: &[&str]| text(&arena.expect([&["verify", name], args].concat(), 1).stdout);
        let told = |report: &str| report.lines().filter(|line| line.starts_with(damage)).count();
        let short = report(&[]);
        assert_eq!(short.lines().next(), Some(verdict));
        assert!(short.lines().count() <= 20 && short.ends_with(" more; -v lists all\n"), "{short}");
        assert!((1..=10).contains(&told(&short)), "{short}");
        let all = report(&["-v"]);
        assert!(all.starts_with(verdict) && !all.contains("lists all"), "{all}");
        assert_eq!(told(&all), 50, "{all}");
    }
}

/// With -q, nothing is printed while all is well, and otherwise a line on standard error. Standard output gets nothing.
#[test]
fn damage_is_told_in_a_line_where_quiet_was_asked_for() {
    let arena = arena();
    arena.expect(["encode", "a", "-o", "a.fec"], 0);
    arena.expect(["encode", "b", "-o", "b.fec"], 0);
    arena.write("d/one", b"one");
    arena.expect(["protect", "d"], 0);
    let quiet = |args: &[&str], exit: i32| {
        let output = arena.expect([&["verify", "-q"], args].concat(), exit);
        assert!(output.stdout.is_empty(), "{output:?}");
        text(&output.stderr)
    };
    for args in [&["a.fec"][..], &["a.fec", "b.fec"], &["d.fecp"], &["a.fec", "--need", "100"]] {
        assert_eq!(quiet(args, 0), "", "{args:?}");
    }
    common::flip(&arena.path("a.fec"), 2000);
    std::fs::remove_file(arena.path("d/one")).unwrap();
    let damaged = "fec: verify a.fec: damaged: 99 of 100 shards intact, 1 missing; any 66 more may be lost\n";
    assert_eq!(quiet(&["a.fec"], 1), damaged);
    assert_eq!(quiet(&["a.fec", "b.fec"], 1), damaged);
    assert_eq!(quiet(&["d.fecp"], 1), "fec: verify d.fecp: 2 entries: 1 missing\n");
    assert_eq!(quiet(&["a.fec", "--need", "99"], 0), "");
    assert!(
        quiet(&["a.fec", "--need", "100"], 3).starts_with("fec: verify a.fec: not enough: 100 of each set")
    );
    let repaired = arena.expect(["repair", "-q", "d.fecp"], 0);
    assert!(repaired.stdout.is_empty() && repaired.stderr.is_empty(), "{repaired:?}");
    let json = arena.expect(["verify", "-q", "--json", "a.fec"], 1);
    assert!(json.stderr.is_empty() && json.stdout.starts_with(b"{"));
}

/// A name that begins with a dash stands behind `--`, or has its folder in front.
#[test]
fn names_may_begin_with_a_dash() {
    let arena = Arena::new();
    arena.write("-rf", b"payload");
    arena.refuses(["encode", "-rf", "-o", "x.fec"], 2);
    arena.expect(["encode", "-o", "x.fec", "-q", "--", "-rf"], 0);
    arena.expect(["encode", "-o", "y.fec", "-q", "./-rf"], 0);
    assert!(arena.read("x.fec") == arena.read("y.fec"));
    arena.expect(["decode", "x.fec", "-o", "out", "-q"], 0);
    assert_eq!(arena.read("out"), b"payload");
}

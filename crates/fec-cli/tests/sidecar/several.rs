//! `verify` and `repair` where sidecars are among several paths, or lie in the named folder: every path that is named
//! is looked at, or the command says which was not.

use super::*;

/// Folders `d` and `e`, each with its sidecar; a copy of the first sidecar; a container; and a file that only has the
/// name of one. Returns the root of `d.fecp`.
fn shelf() -> (Arena, String) {
    let arena = Arena::new();
    for (seed, name) in ["d/one", "e/two", "p"].into_iter().enumerate() {
        arena.write(name, &payload(seed as u64, 20_000));
    }
    let root = protect(&arena, &["d"]);
    protect(&arena, &["e"]);
    fs::copy(arena.path("d.fecp"), arena.path("copy.fecp")).unwrap();
    arena.expect(["encode", "p", "-o", "p.fec", "-q"], 0);
    arena.write("broken.fec", b"no container");
    (arena, root)
}

/// The line of a report that begins with this path.
#[track_caller]
fn line_of(output: &Output, path: &str) -> String {
    let said = text(&output.stdout);
    let line = said.lines().find(|line| line.starts_with(&format!("{path}: ")));
    line.unwrap_or_else(|| panic!("{path} is not told: {said}")).to_owned()
}

/// Exit code 0 says that all that was named was looked at, and has the root.
#[test]
fn each_of_several_paths_has_the_root_that_was_asked_for() {
    let (arena, root) = shelf();
    for (other, exit) in [("broken.fec", 3), ("p.fec", 5), ("e.fecp", 5)] {
        let output = arena.expect(["verify", "d.fecp", other, "--root", &root], exit);
        assert!(line_of(&output, "d.fecp").contains("intact"), "{other}");
        assert!(line_of(&output, other).contains("failed: "), "{other}");
    }
    let output = arena.expect(["verify", "d", "e", "--root", &root], 3);
    assert!(line_of(&output, "e").contains("failed: "));
    let output = arena.expect(["verify", "d.fecp", "copy.fecp", "--root", &root], 0);
    assert!(text(&output.stdout).ends_with("2 sidecars: 2 intact\n"));
}

/// The names in a sidecar are relative to its place: a copy inside the folder finds no file.
#[test]
fn a_copy_of_a_sidecar_in_its_own_folder_tells_no_loss() {
    let (arena, root) = shelf();
    fs::create_dir(arena.path("d/backup")).unwrap();
    for copy in ["d/d.fecp", "d/backup/copy"] {
        fs::copy(arena.path("d.fecp"), arena.path(copy)).unwrap();
        for line in [&["d"][..], &["d", "--root", &root], &["d", "d.fecp"], &["d", "e"]] {
            let output = arena.expect([&["verify"], line].concat(), 0);
            assert!(
                !text(&output.stdout).contains(&format!("{copy}: ")),
                "{line:?}: {}",
                text(&output.stdout)
            );
        }
        // A copy that is named is looked at, and so is one beside which no other stands.
        let output = arena.expect(["verify", "d", copy], 3);
        line_of(&output, copy);
    }
    arena.expect(["verify", ".", "--root", &root], 0);
    // Another sidecar in the folder is no copy.
    fs::copy(arena.path("e.fecp"), arena.path("d/e.fecp")).unwrap();
    line_of(&arena.expect(["verify", "d"], 3), "d/e.fecp");
    fs::remove_file(arena.path("d/e.fecp")).unwrap();
    common::flip(&arena.path("d/one"), 500);
    arena.expect(["verify", "d", "--root", &root], 1);
    fs::remove_file(arena.path("d.fecp")).unwrap();
    arena.expect(["verify", "d", "--root", &root], 3);
    // The same for a sealed one.
    let (arena, _) = sealed_shelf();
    let key = text(&arena.read("key"));
    let key = key.lines().find_map(|line| line.strip_prefix("# public key: ")).unwrap();
    let root = protect(&arena, &["d", "-f", "--recipient", key]);
    fs::copy(arena.path("d.fecp"), arena.path("d/d.fecp")).unwrap();
    for line in [&["d", "-i", "key"][..], &["d", "--root", &root, "-i", "key"]] {
        arena.expect([&["verify"], line].concat(), 0);
    }
    assert!(!text(&arena.expect(["verify", "d"], 1).stdout).contains("d/d.fecp: "));
}

/// The one of two sidecars of the same files that finds them counts, wherever it lies. A sidecar that finds no file and
/// shares none with another is a loss.
#[test]
fn which_of_two_sidecars_is_the_copy_is_told_by_the_files() {
    let arena = Arena::new();
    let told = |exit| {
        let output = arena.expect(["verify", "."], exit);
        (text(&output.stdout), text(&output.stderr))
    };
    // A copy beside the folder of the original.
    arena.write("photos/x", &payload(1, 20_000));
    protect(&arena, &["photos/x", "-o", "photos/all.fecp"]);
    fs::copy(arena.path("photos/all.fecp"), arena.path("photos.fecp")).unwrap();
    let (found, said) = told(0);
    assert!(found.starts_with("1 file: all intact"), "{found}");
    assert_eq!(
        said,
        "fec: ./photos.fecp is a copy of ./photos/all.fecp and finds no file from there: left out\n"
    );
    arena.expect(["verify", "photos.fecp"], 3);
    assert!(arena.expect(["verify", "photos", "-q"], 0).stderr.is_empty());
    fs::remove_dir_all(arena.path("photos")).unwrap();
    fs::remove_file(arena.path("photos.fecp")).unwrap();
    // A copy of an earlier generation: with a file in common, and with none.
    for kept in [&["a", "b"][..], &["a"]] {
        arena.write("album/a", &payload(2, 20_000));
        for name in &kept[1..] {
            arena.write(format!("album/{name}"), &payload(3, 20_000));
        }
        protect(&arena, &["album"]);
        fs::copy(arena.path("album.fecp"), arena.path("album/old.fecp")).unwrap();
        arena.write("album/a", &payload(4, 20_000));
        arena.write("album/new", &payload(7, 30_000));
        arena.expect(["protect", "--update", "album", "-q"], 0);
        let (found, said) = told(0);
        assert!(found.contains(": all intact"), "{found}");
        assert!(said.contains("album/old.fecp is a copy of"), "{said}");
        fs::remove_dir_all(arena.path("album")).unwrap();
        fs::remove_file(arena.path("album.fecp")).unwrap();
    }
    // A lost folder in a protected one, whose sidecar is left.
    arena.write("home/mail/x", &payload(5, 20_000));
    arena.write("home/y", &payload(6, 20_000));
    protect(&arena, &["home/mail"]);
    fs::rename(arena.path("home/mail"), arena.path("mail")).unwrap();
    protect(&arena, &["home"]);
    let (found, said) = told(3);
    assert!(found.contains("home/mail.fecp: lost: ") && said.is_empty(), "{found}{said}");
}

/// A folder that has a sidecar of another root is no folder of shards.
#[test]
fn a_folder_with_a_sidecar_beside_shards_is_told() {
    let (arena, _) = shelf();
    let root = text(&arena.expect(["encode", "p", "-q"], 0).stdout).trim().to_owned();
    arena.expect(["verify", "p.shards", "--root", &root], 0);
    let said = arena.refuses(["verify", "p.shards", "e", "--root", &root], 2);
    assert!(said.contains("verify e: its sidecar is e.fecp, which has another root"), "{said}");
    arena.expect(["verify", "e.fecp"], 0);
}

/// An empty folder beside what is intact may be a disk that is not mounted.
#[test]
fn a_folder_that_holds_nothing_is_told() {
    let (arena, _) = shelf();
    fs::create_dir(arena.path("empty")).unwrap();
    let output = arena.expect(["verify", "p.fec", "empty", "d.fecp"], 3);
    assert!(line_of(&output, "empty").contains("failed: no shard or record"));
    arena.expect(["verify", "p.fec", "d", "e"], 0);
    // Shard files are examined together.
    let root = text(&arena.expect(["encode", "p", "-q"], 0).stdout).trim().to_owned();
    for folder in ["empty", "e/inner"] {
        arena.write("e/inner/ordinary", b"no shard");
        for more in [&[][..], &["--root", &root], &["--need", "2"], &["--root", &root, "--deep"]] {
            let output = arena.expect([&["verify", "p.shards", folder], more].concat(), 1);
            assert!(line_of(&output, "p.shards").contains("intact: 100 of 100 shards"), "{more:?}");
            assert!(line_of(&output, folder).contains("failed: no shard was found"), "{more:?}");
        }
        let report = json(&arena.expect(["verify", "p.shards", folder, "--json", "--root", &root], 1));
        let codes = report["encodings"].as_array().unwrap().iter().map(|row| &row["exit_code"]);
        assert_eq!(codes.collect::<Vec<_>>(), [0, 1]);
        let said = text(&arena.expect(["verify", folder, "p.shards", "-q", "--root", &root], 1).stderr);
        assert!(said.contains(&format!("{folder}: failed")) && said.lines().count() == 1, "{said}");
        arena.expect(["verify", "p.shards", folder, "--root", &"ab".repeat(32)], 5);
    }
    // A folder of another encoding is none of those that were looked at; and it may be that of the empty folder.
    arena.expect(["encode", "d/one", "-o", "other.shards/", "-q"], 0);
    let output = arena.expect(["verify", "p.shards", "other.shards", "empty", "--root", &root], 1);
    assert!(line_of(&output, "p.shards").contains("intact: 100 of 100"));
    assert!(line_of(&output, "other.shards").contains("failed: no shard in it has the root"));
    let output = arena.expect(["verify", "p.shards", "other.shards", "empty"], 3);
    assert!(line_of(&output, "empty").contains("failed: no shard or record was found in it"));
    arena.expect(["verify", "p.shards", "p.fec", "empty"], 3);
    // Shards of an encoding lie in several folders, with a stray one of another.
    fs::create_dir(arena.path("more")).unwrap();
    fs::rename(arena.path("p.shards/p.001.shard"), arena.path("more/p.001.shard")).unwrap();
    arena.expect(["encode", "d/one", "-q"], 0);
    fs::copy(arena.path("d/one.shards/one.000.shard"), arena.path("more/stray")).unwrap();
    for more in [&[][..], &["--root", &root]] {
        arena.expect([&["verify", "p.shards", "more"], more].concat(), 0);
        let output = arena.expect([&["verify", "p.shards", "more", "empty"], more].concat(), 1);
        assert!(
            text(&output.stdout).ends_with("2 encodings: 1 intact, 1 failed\n"),
            "{}",
            text(&output.stdout)
        );
    }
}

/// A folder `s` that holds `x` and its sealed sidecar, beside a plain sidecar. Returns the root of the sealed one.
fn sealed_shelf() -> (Arena, String) {
    let (arena, _) = shelf();
    let key = text(&arena.expect(["keygen", "-o", "key"], 0).stdout).trim().to_owned();
    arena.write("s/x", &payload(9, 30_000));
    arena.expect(["protect", "s/x", "-q", "--recipient", &key], 0);
    let root = json(&arena.expect(["verify", "s/x.fecp", "--json"], 0))["root"].as_str().unwrap().to_owned();
    (arena, root)
}

/// The container of a sealed sidecar says nothing of the files.
#[test]
fn a_sealed_sidecar_is_not_intact_until_its_files_were_looked_at() {
    let (arena, root) = sealed_shelf();
    arena.write("roots", format!("{root}  s/x.fecp\n").as_bytes());
    fs::copy(arena.path("s/x.fecp"), arena.path("s/no-ending")).unwrap();
    let lines: [&[&str]; 5] =
        [&["s"], &["s/x.fecp", "d.fecp"], &["s", "p.fec"], &["--roots", "roots"], &["s", "--root", &root]];
    for line in lines {
        let args = [&["verify"], line].concat();
        assert!(line_of(&arena.expect(&args, 1), "s/x.fecp").contains("not looked at"), "{line:?}");
        let report = json(&arena.expect([&args[..], &["--json"]].concat(), 1));
        let rows = report["encodings"].as_array().unwrap();
        let row = rows.iter().find(|row| row["path"] == "s/x.fecp").unwrap();
        assert_eq!(["form", "state"].map(|key| row[key].as_str().unwrap()), ["sidecar", "refused"]);
    }
    let output = arena.expect(["verify", "s"], 1);
    assert!(line_of(&output, "s/no-ending").contains("not looked at"));
    fs::remove_file(arena.path("s/no-ending")).unwrap();
    // The sidecar alone is what --sidecar-only asks about.
    arena.expect(["verify", "s/x.fecp", "d.fecp", "--sidecar-only"], 0);
    // The key opens it.
    fs::copy(arena.path("s/x.fecp"), arena.path("s/y.fecp")).unwrap();
    for line in [&["s"][..], &["s/x.fecp", "s/y.fecp"], &["--roots", "roots"], &["s", "--root", &root]] {
        let args = [&["verify"], line, &["-i", "key"]].concat();
        assert!(line_of(&arena.expect(&args, 0), "s/x.fecp").contains("1 file: all intact"), "{line:?}");
    }
    fs::remove_file(arena.path("s/x")).unwrap();
    for line in [&["s"][..], &["s/x.fecp", "s/y.fecp"], &["--roots", "roots"], &["s", "--root", &root]] {
        arena.expect([&["verify"], line, &["-i", "key"]].concat(), 3);
    }
    // A plain sidecar where a sealed one is expected is invalid.
    arena.expect(["verify", "s", "d.fecp", "-i", "key"], 5);
}

/// A container beside sealed sidecars is opened by the same key.
#[test]
fn a_key_opens_each_of_several() {
    let (arena, _) = sealed_shelf();
    arena.expect(["keygen", "-o", "other"], 0);
    let key = text(&arena.read("key"));
    let key = key.lines().find_map(|line| line.strip_prefix("# public key: ")).unwrap();
    arena.expect(["encode", "p", "-o", "sealed.fec", "-q", "--recipient", key], 0);
    arena.expect(["verify", "sealed.fec", "s", "-i", "key"], 0);
    arena.expect(["verify", "sealed.fec", "s", "-i", "other"], 5);
    arena.expect(["verify", "s/x.fecp", "sealed.fec"], 1);
    // Whatever is not sealed may have taken the place of what was.
    let output = arena.expect(["verify", "sealed.fec", "p.fec", "-i", "key"], 5);
    assert!(line_of(&output, "p.fec").contains("it is not sealed, although a key was given"));
}

/// The sidecar of a folder stands beside it, and is sealed.
#[test]
fn a_sealed_sidecar_beside_a_folder_is_found() {
    let (arena, _) = sealed_shelf();
    let key = text(&arena.read("key"));
    let key = key.lines().find_map(|line| line.strip_prefix("# public key: ")).unwrap();
    arena.write("f/x", &payload(3, 5000));
    arena.expect(["protect", "f", "-q", "--recipient", key], 0);
    assert!(line_of(&arena.expect(["verify", "f"], 1), "f.fecp").contains("not looked at"));
    arena.expect(["verify", "f", "-i", "key"], 0);
    let output = arena.expect(["verify", "f", "p.fec"], 1);
    line_of(&output, "f.fecp");
}

/// Runs the command on the last line of advice, unchanged.
#[track_caller]
fn follow(arena: &Arena, said: &str, exit: i32) -> Output {
    let command = said.lines().rev().find_map(|line| line.trim_start().strip_prefix("fec "));
    let command = command.unwrap_or_else(|| panic!("no command: {said}"));
    arena.expect(command.split(' '), exit)
}

/// `repair` finds a sidecar by its root, as `verify` does.
#[test]
fn repair_finds_a_sidecar_by_its_root() {
    let (arena, root) = shelf();
    let one = arena.read("d/one");
    fs::rename(arena.path("copy.fecp"), arena.path("d/copy.fecp")).unwrap();
    for place in ["d", "."] {
        common::flip(&arena.path("d/one"), 500);
        arena.expect(["repair", place, "--root", &root, "--revert", "--base", "."], 0);
        assert!(arena.read("d/one") == one);
    }
    // Only one encoding or sidecar is repaired at a time.
    let said = arena.refuses(["repair", "d", "e", "--root", &root], 2);
    follow(&arena, &said, 0);
    arena.expect(["repair", "e", "--root", &root], 3);
}

#[test]
fn repair_finds_a_sealed_sidecar_by_its_root() {
    let (arena, root) = sealed_shelf();
    let whole = arena.read("s/x.fecp");
    common::flip(&arena.path("s/x.fecp"), whole.len() / 2);
    // Without the key its files cannot be looked at, and they are what a folder means.
    let said = arena.refuses(["repair", "s", "--root", &root], 2);
    assert!(said.contains("-i FILE"), "{said}");
    follow(&arena, &said, 0);
    assert!(arena.read("s/x.fecp") == whole);
    let said = arena.refuses(["repair", "s", "--root", &root, "--revert"], 2);
    assert!(said.contains("-i FILE"), "{said}");
    let x = arena.read("s/x");
    common::flip(&arena.path("s/x"), 100);
    arena.expect(["repair", "s", "--root", &root, "--revert", "-i", "key"], 0);
    assert!(arena.read("s/x") == x);
    // A sealed sidecar beside shards is no foreign file.
    arena.expect(["encode", "p", "-q"], 0);
    fs::copy(arena.path("s/x.fecp"), arena.path("p.shards/x.fecp")).unwrap();
    let output = arena.expect(["repair", "p.shards"], 1);
    assert!(line_of(&output, "p.shards").contains("nothing to repair"));
    assert!(line_of(&output, "p.shards/x.fecp").contains("not looked at"));
}

/// A sealed sidecar whose files are lost is not told as intact because its container is.
#[test]
fn repair_without_a_key_does_not_tell_files_as_intact() {
    let (arena, _) = sealed_shelf();
    let key = text(&arena.read("key"));
    let key = key.lines().find_map(|line| line.strip_prefix("# public key: ")).unwrap();
    arena.write("f/x", &payload(3, 5000));
    arena.write("f/y", &payload(4, 5000));
    let root = protect(&arena, &["f", "--recipient", key]);
    fs::remove_file(arena.path("f/y")).unwrap();
    arena.write("f/x", b"other bytes");
    fs::create_dir(arena.path("away")).unwrap();
    fs::copy(arena.path("f.fecp"), arena.path("away/f.fecp")).unwrap();
    for (place, dry) in [("f", false), ("f", true), (".", false), ("away", false)] {
        let args = [&["repair", place, "--root", &root][..], if dry { &["-n"] } else { &[] }].concat();
        let said = arena.refuses(&args, 2);
        assert!(said.contains("it is a sealed sidecar") && said.contains("-i FILE"), "{said}");
        let output = follow(&arena, &said, 0);
        let told = text(&output.stderr);
        assert!(!told.contains("all is intact") && told.contains("were not looked at"), "{told}");
        assert!(told.contains("with -i the files"), "{told}");
    }
    arena.expect(["repair", "f", "--root", &root, "-i", "key"], 3);
    let report = json(&arena.expect(["repair", "f.fecp", "--json"], 0));
    assert!(report["sealed_sidecar"] == true && report["files"].as_array().unwrap().is_empty());
    arena.expect(["repair", "p.fec"], 0);
}

/// A copy deep in a folder would be repaired relative to its own place.
#[test]
fn repair_looks_for_a_sidecar_beside_the_folder_and_directly_in_it() {
    let (arena, root) = shelf();
    fs::create_dir(arena.path("d/backup")).unwrap();
    fs::rename(arena.path("copy.fecp"), arena.path("d/backup/d.fecp")).unwrap();
    fs::rename(arena.path("d.fecp"), arena.path("e/d.fecp")).unwrap();
    common::flip(&arena.path("d/one"), 500);
    let before = (seen(&arena.path("d")), seen(&arena.path("e")));
    for place in ["d", "."] {
        arena.expect(["repair", place, "--root", &root, "--partial"], 2);
        let said = arena.refuses(["repair", place, "--root", &root], 2);
        assert!(said.contains("d.fecp: it is the sidecar with this root, and is named by itself"), "{said}");
    }
    assert!((seen(&arena.path("d")), seen(&arena.path("e"))) == before);
    // A sidecar that lies further down is named with the command for it.
    for nth in 0..9 {
        arena.write(format!("outer/inner/f/{nth}"), &payload(nth, 3000));
    }
    let root = protect(&arena, &["outer/inner/f"]);
    fs::remove_file(arena.path("outer/inner/f/8")).unwrap();
    let said = arena.refuses(["repair", "outer", "--root", &root], 2);
    assert!(said.ends_with(&format!("fec repair outer/inner/f.fecp --root {root}\n")), "{said}");
    follow(&arena, &said, 0);
    assert!(arena.read("outer/inner/f/8") == payload(8, 3000));
    arena.expect(["repair", "outer", "--root", &"ab".repeat(32)], 3);
}

/// A command in advice names the file that has the root, with the options that prove and open it.
#[test]
fn advice_keeps_what_proves_and_opens() {
    let (arena, sealed) = sealed_shelf();
    let root = |args: &[&str]| text(&arena.expect(args, 0).stdout).trim().to_owned();
    let plain = json(&arena.expect(["verify", "d.fecp", "--json"], 0))["root"].as_str().unwrap().to_owned();
    fs::remove_file(arena.path("p.fec")).unwrap();
    let container = root(&["encode", "d/one", "-o", "q.fec", "-q"]);
    arena.expect(["encode", "p", "-o", "a.fec", "-q"], 0);
    let shards = root(&["encode", "p", "-q"]);
    // The root is that of the second, and stays.
    for command in ["verify", "repair"] {
        let said = arena.refuses([command, "a.fec", "q.fec", "--root", &container], 2);
        assert!(said.contains(&format!("fec {command} q.fec --root {container}")), "{said}");
        follow(&arena, &said, 0);
    }
    let said = arena.refuses(["decode", "a.fec", "q.fec", "--root", &container], 2);
    follow(&arena, &said, 0);
    let said = arena.refuses(["verify", "a.fec", "q.fec", "--root", &"ab".repeat(32)], 2);
    assert!(said.contains("none of them has the root") && !said.contains("fec verify a"), "{said}");
    // A root that is not that of the file is left out.
    let said = arena.refuses(["verify", "p.shards", "d.fecp", "--root", &shards], 2);
    assert!(said.ends_with("fec verify d.fecp\n"), "{said}");
    follow(&arena, &said, 0);
    let said = arena.refuses(["verify", "p.shards", "d.fecp", "--root", &plain], 2);
    assert!(said.ends_with(&format!("fec verify d.fecp --root {plain}\n")), "{said}");
    follow(&arena, &said, 0);
    let said = arena.refuses(["decode", "d.fecp", "--root", &plain], 2);
    assert!(said.ends_with(&format!("fec repair d.fecp --root {plain}\n")), "{said}");
    follow(&arena, &said, 0);
    // The key of what is not sealed is left out too.
    let said = arena.refuses(["verify", "p.shards", "s/x.fecp", "--root", &sealed, "-i", "key"], 2);
    assert!(said.ends_with(&format!("fec verify s/x.fecp --root {sealed} -i key\n")), "{said}");
    follow(&arena, &said, 0);
    let said = arena.refuses(["verify", "p.shards", "d.fecp", "--root", &plain, "-i", "key"], 2);
    assert!(said.ends_with(&format!("fec verify d.fecp --root {plain}\n")), "{said}");
    // The sidecar of a file that was named in its place.
    let file = protect(&arena, &["p"]);
    for command in ["verify", "repair"] {
        arena.expect([command, "p", "--root", &file], 0);
    }
    let said = text(&arena.run(["decode", "p", "--root", &file]).stderr);
    assert!(said.ends_with(&format!("fec repair p.fecp --root {file}\n")), "{said}");
    follow(&arena, &said, 0);
    arena.expect(["verify", "s/x", "--root", &sealed, "-i", "key"], 0);
    // A list of roots.
    arena.write("roots", format!("{container}  q.fec\n").as_bytes());
    let said = arena.refuses(["verify", "roots"], 2);
    follow(&arena, &said, 0);
}

/// The command that names an output is told only where it would do the same.
#[test]
fn an_output_is_advised_without_a_command_where_there_are_options() {
    let (arena, _) = sealed_shelf();
    let said = arena.refuses(["decode", "p.fec", "out"], 4);
    follow(&arena, &said, 0);
    let key = text(&arena.read("key"));
    let key = key.lines().find_map(|line| line.strip_prefix("# public key: ")).unwrap();
    let said = text(&arena.run(["encode", "p", "new.fec", "--recipient", key]).stderr);
    assert!(said.contains("an output is named with -o") && !said.contains("fec encode"), "{said}");
}

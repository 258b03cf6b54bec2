//! Every named path is examined or refused.

use crate::common::{Arena, flip, payload, text};
use serde_json::Value;
use std::fs;

/// A folder `n` with a container, shard files, and two sidecars with the files they protect.
fn arena() -> Arena {
    let arena = Arena::new();
    for (name, seed) in [("n/y", 1), ("n/x", 2)] {
        arena.write(name, &payload(seed, 50_000));
    }
    for nth in 0..8 {
        arena.write(format!("n/photos/{nth}"), &payload(10 + nth, 30_000));
        arena.write(format!("n/notes/{nth}"), format!("note {nth}").as_bytes());
    }
    arena.expect(["encode", "n/x", "-o", "n/x.fec", "-q"], 0);
    arena.expect(["encode", "n/y", "-q"], 0);
    arena.expect(["protect", "n/photos", "-q"], 0);
    arena.expect(["protect", "n/notes", "-q"], 0);
    for name in ["n/x", "n/y"] {
        fs::remove_file(arena.path(name)).unwrap();
    }
    arena
}

/// Damages the photos beyond repair.
fn lose_photos(arena: &Arena) {
    (0..3).for_each(|nth| fs::remove_file(arena.path(format!("n/photos/{nth}"))).unwrap());
}

fn told(arena: &Arena, args: &[&str], exit: i32) -> String {
    text(&arena.expect([&["verify"], args].concat(), exit).stdout)
}

/// Verify finds the damage of a sidecar's files however the sidecar is named.
#[test]
fn sidecars_are_checked_beside_encodings() {
    let arena = arena();
    let all = [&["n"][..], &["n/y.shards", "n/x.fec", "n/photos.fecp", "n/notes.fecp"]];
    for args in all {
        let told = told(&arena, args, 0);
        assert!(told.contains("n/photos.fecp: intact: 8 files, 1 folder: all intact\n"), "{told}");
        assert!(told.ends_with("2 encodings and 2 sidecars: 4 intact\n"), "{told}");
    }
    let told_of_two = told(&arena, &["n/photos.fecp", "n/notes.fecp"], 0);
    assert!(told_of_two.ends_with("2 sidecars: 2 intact\n"), "{told_of_two}");
    fs::remove_file(arena.path("n/notes/1")).unwrap();
    for args in all.into_iter().chain([&["n/x.fec", "n/notes.fecp"][..], &["n/notes.fecp", "n/photos.fecp"]])
    {
        let told = told(&arena, args, 1);
        assert!(told.contains("n/notes.fecp: damaged: 8 files, 1 folder: 1 missing\n"), "{told}");
    }
    lose_photos(&arena);
    let lost = "n/photos.fecp: lost: 8 files, 1 folder: 3 missing; not all of it can be mended";
    for args in all.into_iter().chain([&["n/x.fec", "n/photos.fecp"][..], &["n/notes.fecp", "n/photos.fecp"]])
    {
        assert!(told(&arena, args, 3).contains(lost), "{args:?}");
        let table = told(&arena, &[args, &["--format", "markdown"]].concat(), 3);
        assert!(table.contains("| n/photos.fecp | **lost** | 6 of 9 |"), "{table}");
        let quiet = arena.expect([&["verify", "-q"], args].concat(), 3);
        assert!(text(&quiet.stderr).contains(&format!("fec: verify {lost}")), "{quiet:?}");
    }
    let json = arena.expect(["verify", "n", "--json"], 3);
    let report: Value = serde_json::from_slice(&json.stdout).unwrap();
    let row =
        report["encodings"].as_array().unwrap().iter().find(|row| row["path"] == "n/photos.fecp").unwrap();
    assert_eq!(
        (&row["form"], &row["state"], &row["exit_code"]),
        (&"sidecar".into(), &"lost".into(), &3.into())
    );
    assert_eq!((&row["entries"], &row["intact"]), (&9.into(), &6.into()));
}

/// The gravest exit code is the run's, whether it comes from an encoding or a sidecar.
#[test]
fn damage_of_an_encoding_counts_beside_a_sidecar() {
    let arena = arena();
    flip(&arena.path("n/x.fec"), 2000);
    assert!(told(&arena, &["n"], 1).contains("n/x.fec: damaged"));
    assert!(told(&arena, &["n/notes.fecp", "n/x.fec"], 1).contains("n/x.fec: damaged"));
    (0..80).for_each(|nth| fs::remove_file(arena.path(format!("n/y.shards/y.0{nth:02}.shard"))).unwrap());
    assert!(told(&arena, &["n/notes.fecp", "n/y.shards"], 3).contains("n/y.shards: lost"));
}

/// A folder that holds a single sidecar is examined like that sidecar.
#[test]
fn a_sidecar_alone_in_a_folder_is_told_as_by_itself() {
    let arena = Arena::new();
    arena.write("f/d/one", b"one");
    arena.expect(["protect", "f/d", "-q"], 0);
    let steady =
        |told: String| told.lines().filter(|line| !line.contains(" s,")).collect::<Vec<_>>().join("\n");
    assert_eq!(steady(told(&arena, &["f"], 0)), steady(told(&arena, &["f/d.fecp"], 0)));
    told(&arena, &["f", "--quick"], 0);
    fs::remove_file(arena.path("f/d/one")).unwrap();
    assert_ne!(arena.run(["verify", "f"]).status.code(), Some(0));
}

/// Naming a folder includes the sidecar beside it. A sidecar that happens to lie in the folder does not replace that
/// one.
#[test]
fn the_sidecar_beside_a_folder_is_checked_with_it() {
    let arena = Arena::new();
    for (seed, name) in (1..).zip(["d/one", "d/two", "d/three"]) {
        arena.write(name, &payload(seed, 40_000));
    }
    arena.expect(["protect", "d", "-q"], 0);
    told(&arena, &["d"], 0);
    arena.expect(["protect", "d/one", "-q"], 0);
    told(&arena, &["d"], 0);
    fs::remove_file(arena.path("d/two")).unwrap();
    fs::remove_file(arena.path("d/three")).unwrap();
    told(&arena, &["d/one.fecp"], 0);
    assert!(told(&arena, &["d"], 3).contains("d.fecp: lost"));
    assert!(told(&arena, &["d/"], 3).contains("d.fecp: lost"));
    fs::remove_file(arena.path("d/one.fecp")).unwrap();
    assert!(told(&arena, &["d"], 3).contains("2 missing"));
}

/// An option for sidecars applies to each of several sidecars, or is refused.
#[test]
fn options_of_sidecars_go_with_several() {
    let arena = arena();
    let both = ["n/photos.fecp", "n/notes.fecp"];
    for options in [&["--quick"][..], &["--sidecar-only"], &["--sample", "100%"], &["--base", "n"]] {
        told(&arena, &[&both[..], options].concat(), 0);
    }
    lose_photos(&arena);
    told(&arena, &[&both[..], &["--quick"]].concat(), 3);
    told(&arena, &[&both[..], &["--sidecar-only"]].concat(), 0);
    for options in [&["--state", "state"][..], &["--sample", "5%", "--budget", "1h"], &["--need", "1"]] {
        arena.refuses([&["verify"], &both[..], options].concat(), 2);
    }
    for options in [&["--quick"][..], &["--need", "1"], &["--state", "state"]] {
        arena.refuses([&["verify", "n"], options].concat(), 2);
    }
}

/// With a root, verify examines whatever has it. A named file that cannot belong to it is refused.
#[test]
fn a_root_chooses_among_sidecars_and_encodings() {
    let arena = arena();
    let root = |args: &[&str]| {
        let report: Value = serde_json::from_slice(&arena.run([args, &["--json"]].concat()).stdout).unwrap();
        report["root"].as_str().unwrap().to_owned()
    };
    let (photos, shards) = (root(&["verify", "n/photos.fecp"]), root(&["verify", "n/y.shards"]));
    assert!(told(&arena, &["n", "--root", &photos], 0).contains("8 files, 1 folder: all intact"));
    assert!(told(&arena, &["n", "--root", &shards], 0).contains("100 of 100 shards intact"));
    lose_photos(&arena);
    told(&arena, &["n", "--root", &photos], 3);
    told(&arena, &["n", "--root", &shards], 0);
    let said = arena.refuses(["verify", "n/y.shards", "n/photos.fecp", "--root", &shards], 2);
    assert!(said.contains("fec verify n/photos.fecp"), "{said}");
    arena.refuses(["verify", "n", "--root", &"ab".repeat(32)], 5);
    // A list may name sidecars too.
    arena.write("roots", format!("{shards}  n/y.shards\n{photos}  n/photos.fecp\n").as_bytes());
    assert!(told(&arena, &["--roots", "roots"], 3).contains("n/photos.fecp: lost"));
    arena.write("roots", format!("{shards}  n/photos.fecp\n").as_bytes());
    assert!(told(&arena, &["--roots", "roots"], 5).contains("n/photos.fecp: failed"));
}

/// Repair does as verify: a line for each, and the gravest code.
#[test]
fn everything_that_is_named_is_repaired() {
    let arena = arena();
    let before = arena.read("n/photos/1");
    fs::remove_file(arena.path("n/photos/1")).unwrap();
    fs::remove_file(arena.path("n/y.shards/y.007.shard")).unwrap();
    flip(&arena.path("n/x.fec"), 20_000);
    let names = ["n/y.shards", "n/x.fec", "n/photos", "n/notes.fecp"];
    let told = |args: &[&str], exit: i32| text(&arena.expect([&["repair"], args].concat(), exit).stdout);
    for args in [&names[..], &["n"]] {
        let dry = told(&[args, &["-n"]].concat(), 1);
        for line in [
            "n/x.fec: repaired: would be made anew: the container\n",
            "n/y.shards: repaired: would be made anew: 1 of 100 shard files\n",
            "n/photos.fecp: repaired: 1 would be mended\n",
            "n/notes.fecp: intact: nothing to repair\n",
        ] {
            assert!(dry.contains(line), "{args:?}: {dry}");
        }
    }
    let output = arena.expect([&["repair", "--json"], &names[..]].concat(), 0);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = report["encodings"].as_array().unwrap();
    let states: Vec<&str> = rows.iter().map(|row| row["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["damaged", "damaged", "damaged", "intact"], "{report}");
    assert!(arena.read("n/photos/1") == before);
    arena.expect(["verify", "n"], 0);
    // A loss hides nothing else, and is not hidden.
    lose_photos(&arena);
    fs::remove_file(arena.path("n/y.shards/y.007.shard")).unwrap();
    assert!(told(&["n"], 3).contains("n/photos.fecp: failed: "));
    assert!(arena.path("n/y.shards/y.007.shard").exists());
    arena.refuses(["repair", "n", "-o", "out"], 2);
    arena.refuses(["repair", "n/photos", "n/notes", "-f"], 2);
}

/// A file or folder stands for the sidecar beside it, also when it is gone.
#[test]
fn a_path_stands_for_its_sidecar() {
    let arena = arena();
    arena.write("one", &payload(4, 40_000));
    arena.expect(["protect", "one", "-q"], 0);
    for command in ["verify", "repair"] {
        for (path, other) in [("one", "n/notes"), ("n/notes", "one")] {
            arena.expect([command, path], 0);
            arena.expect([command, path, other], 0);
            arena.expect([command, "n/x.fec", path], 0);
        }
    }
    let notes = arena.read("n/notes/3");
    fs::remove_file(arena.path("n/notes/3")).unwrap();
    flip(&arena.path("one"), 30_000);
    let said = told(&arena, &["one", "n/notes", "n/x.fec"], 1);
    assert!(said.ends_with("1 encoding and 2 sidecars: 1 intact, 2 damaged\n"), "{said}");
    arena.expect(["repair", "n/notes", "-q"], 0);
    assert!(arena.read("n/notes/3") == notes);
    fs::remove_file(arena.path("one")).unwrap();
    let said = told(&arena, &["one"], 3);
    assert!(said.contains("missing"), "{said}");
    // Decode takes no sidecar, and an encoding stands for itself.
    arena.refuses(["decode", "one"], 4);
    arena.expect(["protect", "n/x.fec", "-q"], 0);
    assert!(told(&arena, &["n/x.fec"], 0).contains("100 of 100"));
}

/// Whoever can write to a folder can put a sidecar there that says what files should be.
#[test]
fn what_another_user_may_have_put_there_mends_nothing() {
    let arena = arena();
    flip(&arena.path("n/notes/1"), 2);
    let before = arena.read("n/notes/1");
    fs::create_dir(arena.path("away")).unwrap();
    fs::rename(arena.path("n/notes.fecp"), arena.path("away/s")).unwrap();
    std::os::unix::fs::symlink("../away/s", arena.path("n/notes.fecp")).unwrap();
    for args in [&["repair", "n/notes"][..], &["repair", "n"], &["repair", "n/notes", "n/photos"]] {
        let output = arena.run(args);
        let said = text(&output.stderr) + &text(&output.stdout);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("n/notes.fecp: it was not named, and is not your own file"), "{said}");
        assert!(arena.read("n/notes/1") == before);
    }
    let said = arena.refuses(["repair", "n/notes"], 2);
    assert!(said.contains("\n       fec repair n/notes.fecp\n"), "{said}");
    assert!([0, 1].contains(&arena.run(["repair", "n/notes.fecp"]).status.code().unwrap()));
    // The same beside a file, whether it is there or gone.
    arena.write("one", &payload(4, 40_000));
    arena.expect(["protect", "one", "-o", "away/one", "--base", ".", "-q"], 0);
    std::os::unix::fs::symlink("away/one", arena.path("one.fecp")).unwrap();
    for is_gone in [false, true] {
        if is_gone {
            fs::remove_file(arena.path("one")).unwrap();
        }
        let said = arena.refuses(["repair", "one"], 2);
        assert!(said.contains("one.fecp: it was not named, and is not your own file"), "{said}");
    }
    // A container that was found is not made anew through a link either.
    flip(&arena.path("n/x.fec"), 20_000);
    fs::rename(arena.path("n/x.fec"), arena.path("away/x")).unwrap();
    std::os::unix::fs::symlink("../away/x", arena.path("n/x.fec")).unwrap();
    let before = arena.read("away/x");
    let said = text(&arena.expect(["repair", "n"], 2).stdout);
    assert!(said.contains("n/x.fec: failed: repair n/x.fec: it was not named"), "{said}");
    assert!(arena.read("away/x") == before && arena.path("n/x.fec").is_symlink());
}

/// An unreadable sidecar counts as not examined.
#[test]
fn what_cannot_be_opened_is_told() {
    let arena = arena();
    fs::remove_file(arena.path("n/photos.fecp")).unwrap();
    std::os::unix::fs::symlink("nowhere", arena.path("n/photos.fecp")).unwrap();
    let output = arena.run(["verify", "n"]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(text(&output.stdout).contains("n/photos.fecp: failed: "), "{output:?}");
}

/// Wrong use is 2. A file with our name, or an empty one, may be all that damage has left: 3.
#[test]
fn wrong_use_is_told_from_loss() {
    let arena = arena();
    arena.write("README.md", b"# A text\n\nof no encoding\n");
    arena.write("Makefile", "all:\n\techo größe\n".as_bytes());
    arena.write("album.par2", b"PAR2\0PKT\x01\x02\x03");
    arena.write("plain/rot", &payload(3, 5000));
    for name in ["README.md", "Makefile", "album.par2", "plain", "plain/rot"] {
        for command in ["verify", "decode", "repair"] {
            arena.refuses([command, name], 2);
        }
        let told = told(&arena, &["n/x.fec", name], 2);
        assert!(told.contains(&format!("{name}: failed")), "{told}");
        assert!(told.contains("n/x.fec: intact"), "{told}");
    }
    for args in [
        &["decode", "n/photos.fecp"][..],
        &["decode", "n/photos.fecp", "n/notes.fecp"],
        &["decode", "n/x.fec", "n/x.fec"],
        &["manifest", "n/x.fec"],
        &["manifest", "n/y.shards/y.000.shard"],
    ] {
        arena.refuses(args, 2);
    }
    let said = arena.refuses(["manifest", "n/x.fec"], 2);
    assert!(said.contains("it is shard files or a container") && !said.contains("remove"), "{said}");
    arena.expect(["verify", "n/x.fec"], 0);
    // If a named file is protected, the message names its sidecar.
    for (path, advice) in [
        ("n/notes/1", "fec verify n/notes.fecp n/notes/1"),
        ("n/photos/2", "fec verify n/photos.fecp n/photos/2"),
    ] {
        let said = arena.refuses(["verify", path], 2);
        assert!(said.contains(advice), "{said}");
        arena.expect(advice.split(' ').skip(1), 0);
    }
    // These files may have been encodings, but nothing of one is left.
    for (name, bytes) in [
        ("gone.fec", vec![0; 5000]),
        ("gone.fecp", vec![0; 5000]),
        ("gone.001.shard", payload(3, 5000)),
        ("empty", Vec::new()),
        ("folder/x.007.shard", vec![0; 500]),
    ] {
        arena.write(name, &bytes);
        arena.refuses(["verify", name], 3);
    }
    fs::create_dir(arena.path("bare")).unwrap();
    for folder in ["folder", "bare"] {
        arena.refuses(["verify", folder], 3);
    }
    arena.refuses(["manifest", "gone.fecp"], 3);
}

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
        assert!(told.contains("n/photos.fecp: intact: 9 entries: all intact\n"), "{told}");
        assert!(told.ends_with("2 encodings and 2 sidecars: 4 intact\n"), "{told}");
    }
    let told_of_two = told(&arena, &["n/photos.fecp", "n/notes.fecp"], 0);
    assert!(told_of_two.ends_with("2 sidecars: 2 intact\n"), "{told_of_two}");
    fs::remove_file(arena.path("n/notes/1")).unwrap();
    for args in all.into_iter().chain([&["n/x.fec", "n/notes.fecp"][..], &["n/notes.fecp", "n/photos.fecp"]])
    {
        let told = told(&arena, args, 1);
        assert!(told.contains("n/notes.fecp: damaged: 9 entries: 1 missing\n"), "{told}");
    }
    lose_photos(&arena);
    let lost = "n/photos.fecp: lost: 9 entries: 3 missing; not all of it can be mended";
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
    for name in ["d/one", "d/two", "d/three"] {
        arena.write(name, &payload(1, 40_000));
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
    assert!(told(&arena, &["n", "--root", &photos], 0).contains("9 entries: all intact"));
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

/// A file that has to be named alone is refused among others, because it would be ignored.
#[test]
fn a_file_of_another_kind_is_not_passed_over() {
    let arena = arena();
    for (command, other, says) in
        [("repair", "n/photos.fecp", "fec repair n/photos.fecp"), ("repair", "n/x.fec", "fec repair n/x.fec")]
    {
        let said = arena.refuses([command, "n/y.shards", other], 2);
        assert!(said.lines().any(|line| line.trim() == says), "{said}");
    }
    // Decode restores from any k shards: other files among them are strays.
    for stray in ["n/photos.fecp", "n/x.fec"] {
        arena.expect(["decode", "n/y.shards", stray, "-o", "out", "-f", "-q"], 0);
    }
    fs::copy(arena.path("n/notes.fecp"), arena.path("n/y.shards/notes.fecp")).unwrap();
    let said = arena.refuses(["repair", "n/y.shards"], 2);
    assert!(said.contains("fec repair n/y.shards/notes.fecp"), "{said}");
    let root = text(&arena.run(["verify", "n/y.shards", "--json"]).stdout);
    assert!(root.contains("notes.fecp"), "{root}");
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

/// Wrong use is 2 where it is certain. A file that holds nothing may be all that damage has left: 3.
#[test]
fn wrong_use_is_told_from_loss() {
    let arena = arena();
    arena.write("README.md", b"# A text\n\nof no encoding\n");
    arena.write("Makefile", "all:\n\techo größe\n".as_bytes());
    arena.write("album.par2", b"PAR2\0PKT\x01\x02\x03");
    for name in ["README.md", "Makefile", "album.par2"] {
        for command in ["verify", "decode", "repair"] {
            arena.refuses([command, name], 3);
        }
        let told = told(&arena, &["n/x.fec", name], 3);
        assert!(told.contains(&format!("{name}: failed")), "{told}");
        assert!(told.contains("n/x.fec: intact"), "{told}");
    }
    for args in [
        &["decode", "n/photos.fecp"][..],
        &["decode", "n/photos.fecp", "n/notes.fecp"],
        &["decode", "n/x.fec", "n/x.fec"],
        &["repair", "n/photos.fecp", "n/notes.fecp"],
        &["manifest", "n/x.fec"],
        &["manifest", "n/y.shards/y.000.shard"],
    ] {
        arena.refuses(args, 2);
    }
    let said = arena.refuses(["manifest", "n/x.fec"], 2);
    assert!(said.contains("it is shard files or a container") && !said.contains("remove"), "{said}");
    arena.expect(["verify", "n/x.fec"], 0);
    // If a named file is protected, the message names its sidecar.
    arena.expect(["protect", "README.md", "-q"], 0);
    for command in ["verify", "repair"] {
        let said = arena.refuses([command, "README.md"], 3);
        assert!(said.contains(&format!("fec {command} README.md.fecp")), "{said}");
    }
    // These files may have been encodings, but nothing of one is left.
    for (name, bytes) in
        [("gone.fec", vec![0; 5000]), ("gone.fecp", vec![0; 5000]), ("rot", payload(3, 5000))]
    {
        arena.write(name, &bytes);
        arena.refuses(["verify", name], 3);
    }
    arena.refuses(["manifest", "gone.fecp"], 3);
}

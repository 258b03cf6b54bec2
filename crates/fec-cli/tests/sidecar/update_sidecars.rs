//! `fec protect --update` of sidecars that are damaged, cut short, or written to by others.

use super::forge::Forged;
use super::update::{appended, is_protected, note, protected, report};
use super::update_limits::refused;
use super::*;

/// The remains of a generation that was once whole are not cut off unasked: a copy of the sidecar may have the rest.
#[test]
fn a_newer_generation_that_is_lost_is_not_forgotten_unseen() {
    let (arena, old) = protected(&[]);
    edit(&arena.path(note(3)), b"edited");
    appended(&arena, &[]);
    let new = arena.read("d.fecp");
    // The head of the first piece is there, and not its body.
    let part = old.len() + 448;
    let damaged = |bytes: &[u8]| [&new[..part], bytes].concat();
    for rest in [&[][..], &vec![7; new.len() - part], &vec![0; new.len() - part]] {
        arena.write("d.fecp", &damaged(rest));
        refused(&arena, &[], 1, "newer generation, 2");
        let said = changes_nothing(&arena, &["repair", "d.fecp", "--no-sync"], 1);
        assert!(said.contains("newer generation, 2") && said.contains("--update -f"), "{said}");
        // The files are mended all the same.
        let before = arena.read("d/big");
        flip(&arena.path("d/big"), 70_000);
        arena.expect(["repair", "d.fecp", "--no-sync"], 1);
        assert!(arena.read("d/big") == before && arena.read("d.fecp") == damaged(rest));
        report(&arena, &["-f"]);
        assert!(arena.read("d.fecp") == new, "{} bytes behind it", rest.len());
    }
    is_protected(&arena);
}

/// Without a root, a forged generation behind an honest one counts. With the honest root nothing of it stays.
#[test]
fn a_forged_generation_is_not_built_upon_with_a_root() {
    let arena = Arena::new();
    arena.write("a", b"alpha");
    let (honest, before) = Forged::new().file(b"a", b"alpha").build();
    arena.write("a.fecp", &honest);
    let root = json(&arena.run(["verify", "a.fecp", "--json"]))["root"].as_str().unwrap().to_owned();
    let start = honest.len() as u64;
    let (forged, _) = Forged { before, start, ..Forged::new().file(b"a", b"evil!") }.build();
    let both = [&honest[..], &forged].concat();
    for (edited, options) in [(&b"alpha"[..], &["-f"][..]), (b"other", &[]), (b"other", &["--sha256"])] {
        arena.write("a", edited);
        arena.write("a.fecp", &both);
        let args = [&["protect", "--update", "a", "--root", &root], options].concat();
        let output = arena.run(args);
        let left = arena.read("a.fecp");
        match common::code(&output) {
            0 => {
                assert!(!left.windows(forged.len()).any(|window| window == forged));
                is_intact(&arena, "a.fecp");
            }
            exit => assert!([1, 2, 5].contains(&exit) && left == both, "{exit}"),
        }
        arena.nothing_temporary();
    }
}

/// An older state that is asked for does not count as intact if its sidecar is damaged.
#[test]
fn a_damaged_sidecar_is_told_of_with_an_older_root_too() {
    let (arena, _) = protected(&[]);
    let first = json(&arena.expect(["verify", "d.fecp", "--json"], 0))["root"].as_str().unwrap().to_owned();
    fs::create_dir(arena.path("d/empty folder")).unwrap();
    appended(&arena, &[]);
    let sidecar = arena.read("d.fecp");
    rot(&arena.path("d.fecp"), 30_000, b"ROT");
    let said = changes_nothing(&arena, &["repair", "d.fecp", "--root", &first], 1);
    assert!(said.contains("older generation") && !said.contains("all is intact"), "{said}");
    arena.expect(["repair", "d.fecp", "--no-sync"], 0);
    assert!(arena.read("d.fecp") == sidecar);
}

/// The roots that are listed bring back what they name.
#[test]
fn generations_are_listed() {
    let arena = Arena::new();
    arena.write("d/one", &payload(1, 200_000));
    arena.write("d/two", &payload(2, 2000));
    age(&arena.path("d/one"), 0);
    age(&arena.path("d/two"), 3600);
    let first = protect(&arena, &["d", "-r", "100%"]);
    edit(&arena.path("d/two"), &payload(3, 2000));
    arena.expect(["protect", "--update", "d", "-q"], 0);
    for args in [&["protect", "--list", "d"][..], &["protect", "--list", "d.fecp"]] {
        let said = text(&arena.expect(args, 0).stdout);
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines.len(), 2, "{said}");
        let was = format!("{first}  generation 1: 2 files, 197.2 KiB, the newest of 2020-09-13T13:26:40Z");
        assert_eq!(lines[1], was);
        assert!(lines[0].contains("  generation 2: 2 files, "), "{said}");
    }
    let report = json(&arena.expect(["protect", "--list", "d", "--json"], 0));
    assert_eq!(report["generations"][1]["root"], first.as_str());
    arena.expect(["repair", "d.fecp", "--root", &first, "-o", "old"], 0);
    assert_eq!(arena.read("old/d/two"), payload(2, 2000));
    arena.refuses(["protect", "--list", "--update", "d"], 2);
    arena.refuses(["protect", "--list", "none"], 4);
}

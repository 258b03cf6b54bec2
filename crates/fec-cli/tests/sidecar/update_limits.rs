//! `fec protect --update`: its options, its refusals, and the reasons for a new sidecar.

use super::update::{BLOCK, FILES, appended, counts, is_protected, note, plant, protected, report};
use super::*;

/// Asserts that the update is refused with this code and this word in the reason, and changes nothing.
#[track_caller]
pub(super) fn refused(arena: &Arena, options: &[&str], exit: i32, word: &str) {
    let said = changes_nothing(arena, &[&["protect", "--update", "d"], options].concat(), exit);
    assert!(said.contains(word), "{said}");
    arena.nothing_temporary();
}

#[test]
fn there_has_to_be_a_sidecar() {
    let arena = Arena::new();
    plant(&arena);
    refused(&arena, &[], 2, "--update");
    refused(&arena, &["-f"], 2, "--update");
    arena.write("d.fecp", b"something else");
    assert_ne!(common::code(&arena.run(["protect", "--update", "d"])), 0);
    assert_ne!(common::code(&arena.run(["protect", "--update", "d", "-f"])), 0);
    assert_eq!(arena.read("d.fecp"), b"something else");
    let (arena, _) = protected(&[]);
    changes_nothing(&arena, &["protect", "--update", "absent"], 2);
    changes_nothing(&arena, &["protect", "--update"], 2);
}

/// Bytes decide, and a folder that is not mounted is much.
#[test]
fn more_than_a_tenth_may_not_vanish_unseen() {
    let (arena, _) = protected(&[]);
    (0..3).for_each(|nth| fs::remove_file(arena.path(note(nth))).unwrap());
    fs::rename(arena.path("d/notes"), arena.path("d/moved")).unwrap();
    let [.., gone] = counts(&report(&arena, &[])["update"]);
    assert_eq!(gone, 3, "what was moved is there");
    is_protected(&arena);
    for way_on in ["--pruned", "-f"] {
        let (arena, _) = protected(&[]);
        fs::remove_dir_all(arena.path("d/notes")).unwrap();
        refused(&arena, &[], 2, "--pruned");
        assert_eq!(counts(&report(&arena, &[way_on])["update"]), [FILES - 16, 0, 0, 0, 16]);
        is_protected(&arena);
        fs::remove_dir_all(arena.path("d")).unwrap();
        fs::create_dir(arena.path("d")).unwrap();
        refused(&arena, &[], 2, "--pruned");
        report(&arena, &[way_on]);
        is_protected(&arena);
    }
}

#[test]
fn what_is_empty_now_has_to_be_meant() {
    for path in ["d/notes/03", "d/sub/tool"] {
        let (arena, _) = protected(&[]);
        edit(&arena.path(path), b"");
        refused(&arena, &[], 2, "-f");
        assert_eq!(counts(&appended(&arena, &["-f"])), [FILES - 1, 1, 0, 0, 0]);
        is_protected(&arena);
        refused(&arena, &["--root", &"07".repeat(32)], 5, "");
        edit(&arena.path(path), b"full again");
        appended(&arena, &[]);
        is_protected(&arena);
    }
}

/// The paths, base and exclusions are the same as before.
#[test]
fn it_takes_what_protect_takes() {
    let arena = Arena::new();
    plant(&arena);
    let options = ["d/big", "d/notes", "-o", "d/x.fecp", "--base", "d", "--exclude", "1*"];
    protect(&arena, &options);
    edit(&arena.path(note(3)), b"edited");
    edit(&arena.path(note(13)), b"left out");
    let update = |options: &[&str]| {
        json(&arena.expect([&["protect", "--update", "--json"], options].concat(), 0))["update"].clone()
    };
    assert_eq!(counts(&update(&options)), [10, 1, 0, 0, 0]);
    assert_eq!(states(&arena, &["d/x.fecp"], 0), []);
    // The sidecar is inside the folder: neither it nor anything beside it is included.
    let within = ["d", "-o", "d/within.fecp"];
    fs::remove_file(arena.path("d/x.fecp")).unwrap();
    protect(&arena, &within);
    assert_eq!(update(&within)["written"], false);
    edit(&arena.path(note(3)), b"edited again");
    assert_eq!(counts(&update(&within)), [FILES - 1, 1, 0, 0, 0]);
    is_intact(&arena, "d/within.fecp");
    assert_eq!(update(&within)["written"], false);
    // A list, and a named base.
    arena.write("list", b"d/big\nd/middle\n");
    fs::create_dir(arena.path("away")).unwrap();
    let listed = ["--files-from", "list", "-o", "away/y.fecp", "--base", "."];
    protect(&arena, &listed);
    edit(&arena.path("d/middle"), &payload(2, 100 * BLOCK + 999));
    assert_eq!(counts(&update(&listed)), [1, 1, 0, 0, 0]);
    assert_eq!(states(&arena, &["away/y.fecp", "--base", "."], 0), []);
    // A new pattern that excludes protected files drops them, unless they are too many.
    let (arena, _) = protected(&[]);
    refused(&arena, &["--exclude", "notes"], 2, "--pruned");
    assert_eq!(
        counts(&appended(&arena, &["--exclude", "notes/../*3", "--exclude", "03"])),
        [FILES - 1, 0, 0, 0, 1]
    );
}

/// If a root is given, the sidecar has to have it now.
#[test]
fn a_root_has_to_be_that_of_the_sidecar() {
    let arena = Arena::new();
    plant(&arena);
    let old = protect(&arena, &["d"]);
    edit(&arena.path(note(3)), b"edited");
    refused(&arena, &["--root", &"07".repeat(32)], 5, "");
    let said = report(&arena, &["--root", &old]);
    let new = said["root"].as_str().unwrap();
    assert_ne!(new, old);
    let first = arena.read("d.fecp");
    edit(&arena.path(note(3)), b"edited again");
    arena.write("root", new.as_bytes());
    report(&arena, &["--root", "@root"]);
    is_protected(&arena);
    // The root of an earlier generation is not the current one, and nothing of the newer generation is cut off.
    edit(&arena.path(note(3)), b"edited once more");
    for before in [&old, new] {
        refused(&arena, &["--root", before], 5, "");
        let kept = arena.read("d.fecp");
        arena.run(["repair", "d.fecp", "--root", before]);
        assert!(arena.read("d.fecp") == kept);
    }
    // An earlier sidecar does not have that root.
    arena.write("d.fecp", &first);
    refused(&arena, &["--root", &"08".repeat(32)], 5, "");
}

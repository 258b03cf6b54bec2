//! Verdicts and their advice, on sidecars that record times of change and inodes, as `fec protect` makes them.

use super::advice::run_printed;
use super::*;

/// Ten files, protected as a user does.
fn marked() -> Arena {
    let arena = Arena::new();
    for nth in 0..10 {
        arena.write(format!("d/{nth}"), &payload(nth, 30_000 + nth as usize));
        age(&arena.path(format!("d/{nth}")), nth);
    }
    // `Arena::fec` would make it portable.
    let output = common::fec().current_dir(&arena.work).args(["protect", "d", "-q"]).output().unwrap();
    expect(&output, 0);
    arena
}

fn verify(arena: &Arena, options: &[&str], exit: i32) -> String {
    text(&arena.expect([&["verify", "d.fecp"], options].concat(), exit).stdout)
}

#[test]
fn what_was_written_with_its_time_is_named_and_both_ways_out_work() {
    let arena = marked();
    rot(&arena.path("d/4"), 5000, b"by a program that puts times back");
    let found = arena.read("d/4");
    let said = verify(&arena, &[], 1);
    assert!(said.starts_with("10 files, 1 folder: 1 changed\n"), "{said}");
    let line = "  changed    d/4: bytes 4096..8192; somebody wrote to it, and kept its time\n";
    assert!(said.contains(line) && !said.contains("fec repair d.fecp"), "{said}");
    changes_nothing(&arena, &["repair", "d.fecp"], 1);
    // The file is not protected unasked.
    let refused = arena.expect(["protect", "--update", "d"], 1);
    assert!(text(&refused.stderr).contains("go on with -f"), "{refused:?}");
    run_printed(&arena, &said, "to make it what it was", "", 0);
    assert!(arena.read("d/4") == payload(4, 30_004) && arena.path("undo.tar").exists());
    arena.write("d/4", &found);
    age(&arena.path("d/4"), 4);
    let said = verify(&arena, &[], 1);
    run_printed(&arena, &said, "if it is as it should be", "", 0);
    assert!(arena.read("d/4") == found);
    assert!(verify(&arena, &[], 0).starts_with("10 files, 1 folder: all intact\n"));
}

#[test]
fn times_that_are_others_are_told_and_recorded() {
    let arena = marked();
    (0..10).for_each(|nth| age(&arena.path(format!("d/{nth}")), 3600 + nth));
    let said = verify(&arena, &[], 0);
    assert!(said.contains("10 files have other times or inodes and the same bytes"), "{said}");
    // Rot in such a tree is mended, and never protected.
    rot(&arena.path("d/4"), 5000, b"rot");
    assert!(verify(&arena, &[], 1).starts_with("10 files, 1 folder: 1 rotten\n"));
    arena.expect(["protect", "--update", "-f", "d"], 1);
    let said = verify(&arena, &[], 1);
    let mended = run_printed(&arena, &said, "what is damaged can be mended", "", 0);
    let said = verify(&arena, &[], 0);
    run_printed(&arena, &said, "have other times or inodes", "", 0);
    // The repair has named the same command, which changes nothing any more.
    run_printed(&arena, &mended, "so that the next damage can be told from edits", "", 0);
    assert!(!verify(&arena, &[], 0).contains("other times"));
}

#[test]
fn edits_are_not_lost_whatever_their_share() {
    let arena = marked();
    for nth in 0..6 {
        edit(&arena.path(format!("d/{nth}")), &payload(100 + nth, 31_000));
    }
    let said = verify(&arena, &[], 1);
    assert!(said.starts_with("10 files, 1 folder: 6 edited\n") && !said.contains("--partial"), "{said}");
    assert!(said.contains("more was edited than could be made what it was\n"), "{said}");
    let left = changes_nothing(&arena, &["repair", "d.fecp"], 1);
    assert!(left.contains("more was edited than could be made what it was"), "{left}");
    run_printed(&arena, &left, "to protect it as it is now", "", 0);
    verify(&arena, &[], 0);
}

#[test]
fn the_worst_stands_first_and_edits_hide_nothing() {
    let arena = Arena::new();
    (100..140).for_each(|nth| drop(arena.write(format!("d/{nth}"), &payload(nth, 5000))));
    arena.expect(["protect", "d", "-q", "-r", "100%"], 0);
    (100..120).for_each(|nth| edit(&arena.path(format!("d/{nth}")), b"edited"));
    flip(&arena.path("d/139"), 3);
    fs::remove_file(arena.path("d/138")).unwrap();
    let said = verify(&arena, &[], 1);
    assert!(said.starts_with("40 files, 1 folder: 1 rotten, 1 missing, 20 edited\n"), "{said}");
    let lines: Vec<&str> =
        said.lines().filter(|line| line.starts_with("  ") && line.contains(" d/1")).collect();
    assert!(lines[0].contains("d/139") && lines[1].contains("d/138") && lines.len() == 12, "{said}");
    assert!(said.contains("  and 10 more; -v lists all\n"), "{said}");
}

#[test]
fn a_nightly_run_may_leave_edits_unsaid_and_never_damage() {
    let arena = marked();
    let nightly = ["--ignore", "edited,moved,new", "-q"];
    edit(&arena.path("d/1"), b"edited");
    fs::rename(arena.path("d/2"), arena.path("d/other")).unwrap();
    arena.write("d/new", b"new");
    verify(&arena, &[], 1);
    let output = arena.expect([&["verify", "d.fecp"][..], &nightly].concat(), 0);
    assert!(output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
    let said = verify(&arena, &nightly[..2], 0);
    assert!(!said.contains("d/1") && !said.contains("not protected"), "{said}");
    // Damage, and possible damage, is said.
    rot(&arena.path("d/4"), 5000, b"rot");
    verify(&arena, &nightly, 1);
    let arena = Arena::new();
    arena.write("d/a", &payload(1, 20_000));
    let root = protect(&arena, &["d"]);
    flip(&arena.path("d/a"), 3);
    fs::remove_dir_all(arena.user_state()).ok();
    let said = verify(&arena, &["--root", &root, "--ignore", "edited"], 1);
    assert!(said.contains("1 edited"), "under a root nothing tells it from damage: {said}");
}

#[test]
fn a_file_system_without_permissions_is_told_once() {
    let arena = marked();
    (0..10).for_each(|nth| set_mode(&arena.path(format!("d/{nth}")), 0o755));
    let said = verify(&arena, &[], 0);
    assert!(said.contains("this file system keeps no permissions") && !said.contains("  mode "), "{said}");
    set_mode(&arena.path("d/0"), 0o644);
    let said = verify(&arena, &[], 0);
    assert!(said.contains("  mode       d/1: its owner's right to execute it is another\n"), "{said}");
}

#[test]
fn under_a_root_and_beside_damage_the_ways_out_work_too() {
    let arena = marked();
    let root = text(&arena.expect(["manifest", "d.fecp", "--json"], 0).stdout);
    let root = serde_json::from_str::<Value>(&root).unwrap()["root"].as_str().unwrap().to_owned();
    rot(&arena.path("d/4"), 5000, b"by a program that puts times back");
    let said = verify(&arena, &["--root", &root], 1);
    assert!(
        said.contains("if it is as it should be, give it another time with touch, and then protect it so"),
        "{said}"
    );
    age(&arena.path("d/4"), 999);
    run_printed(&arena, &said, "if it is as it should be", "", 0);
    // A missing file is brought back first.
    let arena = marked();
    rot(&arena.path("d/4"), 5000, b"by a program that puts times back");
    fs::remove_file(arena.path("d/5")).unwrap();
    let said = verify(&arena, &[], 1);
    assert!(
        said.contains("if it is as it should be, when the rest is mended, give it another time"),
        "{said}"
    );
    run_printed(&arena, &said, "what is damaged can be mended", "", 1);
    age(&arena.path("d/4"), 999);
    run_printed(&arena, &said, "if it is as it should be", "", 0);
    assert!(arena.read("d/5") == payload(5, 30_005));
}

/// Nothing tells damage from an edit in a copy without its times, and without a proof of times under a root.
#[test]
fn what_nothing_tells_from_damage_has_ways_out() {
    let copy = |arena: &Arena| {
        for nth in 0..10 {
            let path = arena.path(format!("d/{nth}"));
            let bytes = fs::read(&path).unwrap();
            fs::remove_file(&path).unwrap();
            fs::write(&path, bytes).unwrap();
        }
    };
    let arena = marked();
    copy(&arena);
    rot(&arena.path("d/4"), 5000, b"rot");
    let said = verify(&arena, &["--ignore", "edited,moved,new"], 1);
    run_printed(&arena, &said, "to make it what it was", "", 0);
    assert!(arena.read("d/4") == payload(4, 30_004));
    edit(&arena.path("d/4"), &payload(9, 30_004));
    let said = verify(&arena, &[], 1);
    run_printed(&arena, &said, "if it is as it should be", "", 0);
    verify(&arena, &[], 0);
    // Under a root alone an old time proves nothing.
    let arena = Arena::new();
    arena.write("d/a", &payload(1, 20_000));
    let root = protect(&arena, &["d", "-r", "60%"]);
    fs::remove_dir_all(arena.user_state()).ok();
    flip(&arena.path("d/a"), 3);
    let said = verify(&arena, &["--root", &root], 1);
    age(&arena.path("d/a"), 999);
    run_printed(&arena, &said, "if it is as it should be", "", 0);
}

/// A renamed folder with rot in it ends whole and protected under its new name, by what is printed alone.
#[test]
fn a_renamed_folder_with_rot_in_it_comes_through() {
    let arena = Arena::new();
    (0..40).for_each(|nth| drop(arena.write(format!("d/{}/{nth}", nth / 20), &payload(nth, 9000))));
    arena.expect(["protect", "d", "-q"], 0);
    fs::rename(arena.path("d/1"), arena.path("d/a name")).unwrap();
    rot(&arena.path("d/a name/33"), 5000, b"rot");
    let said = verify(&arena, &[], 1);
    assert!(said.starts_with("40 files, 3 folders: 1 moved and damaged, 1 missing, 19 moved\n"), "{said}");
    let line = "  moved and damaged d/1/33: it is now d/a name/33, bytes 4096..8192\n";
    assert!(said.contains(line) && !said.contains("not protected"), "{said}");
    let left = run_printed(&arena, &said, "what is damaged can be mended", "", 1);
    assert!(left.contains("  restored d/1/33 (moved and damaged)\n"), "{left}");
    let refused = text(&arena.expect(["protect", "--update", "d"], 1).stderr);
    assert!(refused.contains("d/a name/33") && refused.contains("go on with -f"), "{refused}");
    let command = left.lines().find(|line| line.starts_with("  mv ")).unwrap_or_else(|| panic!("{left}"));
    assert_eq!(command, "  mv d/1/33 'd/a name/33'");
    let moved = std::process::Command::new("sh").args(["-c", command]).current_dir(&arena.work).status();
    assert!(moved.unwrap().success());
    let said = verify(&arena, &[], 1);
    assert!(said.starts_with("40 files, 3 folders: 20 moved\n"), "{said}");
    run_printed(&arena, &said, "to protect it as it is now", "", 0);
    verify(&arena, &[], 0);
    assert!(arena.read("d/a name/33") == payload(33, 9000));
}

#[test]
fn a_folder_that_was_deleted_on_purpose_is_given_up_when_that_is_said() {
    let arena = Arena::new();
    (0..400).for_each(|nth| drop(arena.write(format!("d/{}/{nth}", nth / 20), &payload(nth, 900))));
    arena.expect(["protect", "d", "-q"], 0);
    fs::remove_dir_all(arena.path("d/7")).unwrap();
    let refused = text(&arena.expect(["protect", "--update", "d"], 2).stderr);
    assert!(refused.contains("20 of the 20 files that it protects in d/7 are gone"), "{refused}");
    assert!(refused.contains("if they were deleted on purpose, go on with --pruned"), "{refused}");
    arena.expect(["protect", "--update", "--pruned", "d"], 0);
    verify(&arena, &[], 0);
}

/// An owner who deleted files is told how to give them up, whether they could be mended or not.
#[test]
fn what_was_deleted_on_purpose_is_given_up_by_what_is_printed() {
    let arena = marked();
    fs::remove_file(arena.path("d/4")).unwrap();
    let said = verify(&arena, &[], 1);
    run_printed(&arena, &said, "if you deleted what is missing", "", 0);
    verify(&arena, &[], 0);
    let arena = Arena::new();
    (0..200).for_each(|nth| drop(arena.write(format!("d/{}/{nth}", nth / 40), &payload(nth, 9000))));
    arena.expect(["protect", "d", "-q", "-r", "10%"], 0);
    fs::remove_dir_all(arena.path("d/3")).unwrap();
    let said = verify(&arena, &[], 3);
    let refused = run_printed(&arena, &said, "if you deleted what is missing, to give it up", "", 2);
    assert!(refused.contains("go on with --pruned"), "{refused}");
    arena.expect(["protect", "--update", "d", "--pruned"], 0);
    verify(&arena, &[], 0);
}

/// No revert removes a folder that took the place of a file: it says what to do, and has mended the rest.
#[test]
fn a_folder_in_the_place_of_a_file_is_moved_away_first() {
    let arena = Arena::new();
    (0..10).for_each(|nth| drop(arena.write(format!("d/{nth}"), &payload(nth, 30_000 + nth as usize))));
    arena.expect(["protect", "d", "-q", "-r", "100%"], 0);
    fs::remove_file(arena.path("d/4")).unwrap();
    arena.write("d/4/inside", b"of a new folder");
    edit(&arena.path("d/5"), &payload(50, 30_005));
    let said = verify(&arena, &[], 1);
    let refused = run_printed(&arena, &said, "to make it what it was", "", 2);
    assert!(
        refused.contains("d/4: it is a folder\n") && refused.contains("move it away, and run it again"),
        "{refused}"
    );
    assert!(arena.read("d/5") == payload(5, 30_005) && arena.path("d/4/inside").exists());
    fs::rename(arena.path("d/4"), arena.path("away")).unwrap();
    run_printed(&arena, &verify(&arena, &[], 1), "what is damaged can be mended", "", 0);
    verify(&arena, &[], 0);
}

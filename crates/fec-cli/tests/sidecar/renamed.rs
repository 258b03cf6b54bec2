//! Folders that were renamed as a whole, in words and exit codes.

use super::advice::run_printed;
use super::*;

#[test]
fn a_renamed_folder_is_named_and_every_command_works() {
    for sidecar in ["photos.fecp", "pictures.fecp"] {
        let arena = Arena::new();
        (1..6).for_each(|nth| age(&arena.write(format!("photos/{nth}"), &payload(nth, 20_000)), nth));
        protect(&arena, &["photos", "-r", "60%"]);
        fs::rename(arena.path("photos"), arena.path("pictures")).unwrap();
        fs::rename(arena.path("photos.fecp"), arena.path(sidecar)).unwrap();
        fs::remove_file(arena.path("pictures/2")).unwrap();
        let output = arena.expect(["verify", sidecar, "--ignore", "moved"], 1);
        let said = text(&output.stdout);
        assert!(said.contains("photos is pictures now"), "{said}");
        // An update would give up the lost file.
        let refused = arena.refuses(["protect", "--update", "pictures", "-o", sidecar], 2);
        assert!(refused.contains("are gone"), "{refused}");
        let mended = run_printed(&arena, &said, "what is damaged can be mended", "", 1);
        assert!(arena.read("pictures/2") == payload(2, 20_000) && !arena.path("photos").exists());
        let updated = run_printed(&arena, &mended, "to protect it under its new name", "", 0);
        assert!(updated.contains("5 moved") || updated.contains("4 moved"), "{updated}");
        is_intact(&arena, sidecar);
    }
}

/// No command that mends nothing is named when nothing is there.
#[test]
fn nothing_is_offered_where_nothing_is_there() {
    let arena = Arena::new();
    arena.write("d/a", &payload(1, 20_000));
    protect(&arena, &["d"]);
    fs::remove_dir_all(arena.path("d")).unwrap();
    let said = text(&arena.expect(["verify", "d.fecp"], 3).stdout);
    assert!(said.contains("nothing is there: is the disk mounted?") && !said.contains("--partial"), "{said}");
    let said = changes_nothing(&arena, &["repair", "d.fecp"], 3);
    assert!(said.contains("nothing is there") && !said.contains("--partial"), "{said}");
}

/// A copy of another name, on another disk, is verified and mended where it is; a good one ends with 0.
#[test]
fn a_copy_of_another_name_is_the_base_that_is_named() {
    let arena = Arena::new();
    (1..6).for_each(|nth| age(&arena.write(format!("photos/{nth}"), &payload(nth, 20_000)), nth));
    protect(&arena, &["photos", "-r", "60%"]);
    fs::create_dir(arena.path("disk")).unwrap();
    fs::rename(arena.path("photos"), arena.path("disk/copy")).unwrap();
    let said = text(&arena.expect(["verify", "photos.fecp"], 3).stdout);
    assert!(said.contains("name the folder that they are in with --base"), "{said}");
    for base in ["disk/copy", "disk/copy/", "disk/../disk/copy/."] {
        let said = text(&arena.expect(["verify", "photos.fecp", "--base", base], 0).stdout);
        assert!(!said.contains(" now"), "{said}");
    }
    fs::remove_file(arena.path("disk/copy/2")).unwrap();
    let said = text(&arena.expect(["verify", "photos.fecp", "--base", "disk/copy"], 1).stdout);
    run_printed(&arena, &said, "what is damaged can be mended", "", 0);
    assert!(arena.read("disk/copy/2") == payload(2, 20_000) && !arena.path("photos").exists());
    let names: Vec<_> =
        fs::read_dir(arena.path("disk")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["copy"]);
}

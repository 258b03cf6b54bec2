//! Links in place of files and folders: nothing outside is read in their place, and nothing outside is written.

use super::*;

/// A furnished folder with its sidecar, and a folder `outside` with files of the same names.
fn with_outside() -> Arena {
    let arena = Arena::new();
    furnish(&arena);
    arena.write("outside/small", b"outside");
    arena.write("outside/tool", b"outside");
    arena.write("outside/deep/nested", b"outside");
    protect(&arena, &["d", "-r", "100%"]);
    arena
}

#[test]
fn a_link_in_place_of_a_file_is_not_followed() {
    for target in ["../outside/small", "../outside/absent", "large", "/dev/zero"] {
        let arena = with_outside();
        let (outside, before) = (seen(&arena.path("outside")), tree(&arena.path("d")));
        fs::remove_file(arena.path("d/small")).unwrap();
        symlink(target, arena.path("d/small")).unwrap();
        assert_eq!(states(&arena, &["d.fecp"], 1), [pair("d/small", "edited")]);
        changes_nothing(&arena, &["repair", "d.fecp"], 1);
        arena.expect(["repair", "d.fecp", "--revert"], 0);
        assert!(seen(&arena.path("outside")) == outside, "{target}: something outside was touched");
        assert!(tree(&arena.path("d")) == before, "{target}");
        is_intact(&arena, "d.fecp");
    }
}

/// Files in a folder that became a link count as missing. Whatever repair can do, nothing outside changes.
#[test]
fn a_link_in_place_of_a_folder_is_not_followed() {
    for target in ["../outside", "/dev", "void", "sub"] {
        let arena = with_outside();
        let outside = seen(&arena.path("outside"));
        fs::remove_dir_all(arena.path("d/sub")).unwrap();
        symlink(target, arena.path("d/sub")).unwrap();
        let found = states(&arena, &["d.fecp"], 1);
        assert!(found.contains(&pair("d/sub", "edited")), "{target}: {found:?}");
        for path in ["d/sub/tool", "d/sub/twin", "d/sub/deep", "d/sub/deep/nested"] {
            assert!(found.contains(&pair(path, "missing")), "{target}: {found:?}");
        }
        for options in [&["-n"][..], &[], &["--partial"], &["--revert"], &["--revert", "--partial"]] {
            let output = arena.run([&["repair", "d.fecp"], options].concat());
            assert!([0, 1, 4].contains(&common::code(&output)), "{target}: {options:?}");
            assert!(options.contains(&"--revert") || common::code(&output) != 0, "the link stays");
            assert!(seen(&arena.path("outside")) == outside, "{target}: something outside was touched");
            assert!(common::listing(&arena.path("d/void")).is_empty(), "{target}");
            arena.nothing_temporary();
        }
        arena.expect(["repair", "d.fecp", "-o", "new"], 0);
        assert!(arena.read("new/d/sub/deep/nested") == payload(3, 5000));
        assert!(seen(&arena.path("outside")) == outside);
    }
}

/// The path to the base may lead through links, because the user named it.
#[test]
fn a_base_may_be_reached_through_a_link() {
    let arena = with_outside();
    symlink(".", arena.path("here")).unwrap();
    is_intact(&arena, "here/d.fecp");
    flip(&arena.path("d/large"), 100);
    arena.expect(["repair", "here/d.fecp"], 0);
    assert!(arena.read("d/large") == payload(1, 20_481));
    symlink("d.fecp", arena.path("other.fecp")).unwrap();
    is_intact(&arena, "other.fecp");
}

/// Both names lead to the mended file.
#[test]
fn a_file_with_two_names_keeps_them() {
    let arena = Arena::new();
    furnish(&arena);
    fs::hard_link(arena.path("d/large"), arena.path("d/void/again")).unwrap();
    protect(&arena, &["d", "-r", "100%"]);
    let before = tree(&arena.work);
    let inodes = |paths: [&str; 2]| paths.map(|path| fs::metadata(arena.path(path)).unwrap().ino());
    let names = ["d/large", "d/void/again"];
    flip(&arena.path("d/void/again"), 4444);
    assert_eq!(states(&arena, &["d.fecp"], 1), [pair("d/large", "rotten")]);
    let inodes_before = inodes(names);
    arena.expect(["repair", "d.fecp"], 0);
    assert!(tree(&arena.work) == before && inodes(names) == inodes_before);
    // Only the second name is missing.
    fs::remove_file(arena.path("d/void/again")).unwrap();
    assert_eq!(states(&arena, &["d.fecp"], 1), [pair("d/void/again", "missing")]);
    arena.expect(["repair", "d.fecp"], 0);
    assert_eq!(inodes(names), inodes_before);
    // Both names are missing.
    fs::remove_file(arena.path("d/large")).unwrap();
    fs::remove_file(arena.path("d/void/again")).unwrap();
    arena.expect(["repair", "d.fecp"], 0);
    assert!(tree(&arena.work) == before);
    let [first, second] = inodes(names);
    assert_eq!(first, second);
    // Another file has the second name.
    fs::remove_file(arena.path("d/void/again")).unwrap();
    arena.write("d/void/again", b"another");
    assert_eq!(states(&arena, &["d.fecp"], 1), [pair("d/void/again", "edited")]);
    changes_nothing(&arena, &["repair", "d.fecp"], 1);
    arena.expect(["repair", "d.fecp", "--revert"], 0);
    assert!(tree(&arena.work) == before);
    is_intact(&arena, "d.fecp");
    arena.nothing_temporary();
}

/// The first name was moved and stays where it is, and the second is gone. Other files are mended all the same.
#[test]
fn a_name_of_a_file_that_was_moved_hinders_nothing() {
    let arena = Arena::new();
    furnish(&arena);
    fs::hard_link(arena.path("d/small"), arena.path("d/zoo")).unwrap();
    protect(&arena, &["d"]);
    let before = tree(&arena.path("d"));
    fs::rename(arena.path("d/small"), arena.path("d/moved")).unwrap();
    fs::remove_file(arena.path("d/zoo")).unwrap();
    flip(&arena.path("d/large"), 5);
    let output = arena.run(["repair", "d.fecp"]);
    assert!([0, 1].contains(&common::code(&output)), "{}", text(&output.stderr));
    assert_eq!(arena.read("d/large"), payload(1, 20_481));
    arena.expect(["repair", "d.fecp", "--revert"], 0);
    fs::remove_file(arena.path("d/moved")).ok();
    assert!(tree(&arena.path("d")) == before);
    arena.nothing_temporary();
}

/// Whatever the first name has become, the second has the old bytes, and perhaps the only ones.
#[test]
fn a_name_keeps_its_bytes_when_the_other_is_edited() {
    type Change<'a> = (&'a str, &'a dyn Fn(&Path));
    let changes: [Change<'_>; 4] = [
        ("a file", &|path| edit(path, b"another")),
        ("a file of this size", &|path| edit(path, &payload(9, 700))),
        ("a link", &|path| symlink("large", path).unwrap()),
        ("a folder", &|path| fs::create_dir(path).unwrap()),
    ];
    for (name, change) in changes {
        for options in [&[][..], &["--partial"], &["--revert"]] {
            let arena = Arena::new();
            furnish(&arena);
            fs::hard_link(arena.path("d/small"), arena.path("d/zoo")).unwrap();
            protect(&arena, &["d"]);
            fs::remove_file(arena.path("d/small")).unwrap();
            change(&arena.path("d/small"));
            let output = arena.run([&["repair", "d.fecp"], options].concat());
            assert!([0, 1].contains(&common::code(&output)), "{name}: {options:?}: {}", text(&output.stderr));
            let is_file = fs::symlink_metadata(arena.path("d/zoo")).unwrap().is_file();
            assert!(
                is_file && arena.read("d/zoo") == payload(2, 700),
                "{name}: {options:?}: its bytes are gone"
            );
        }
    }
}

/// Another kind of object replaces a file: no command waits for it, and without --revert it is not lost.
#[test]
fn what_is_no_file_any_more_is_edited() {
    let arena = with_outside();
    let before = tree(&arena.work);
    fs::remove_file(arena.path("d/small")).unwrap();
    common::make_fifo(&arena.path("d/small"));
    assert_eq!(states(&arena, &["d.fecp"], 1), [pair("d/small", "edited")]);
    changes_nothing(&arena, &["repair", "d.fecp"], 1);
    arena.expect(["repair", "d.fecp", "--revert"], 0);
    assert!(tree(&arena.work) == before);
    fs::remove_file(arena.path("d/small")).unwrap();
    arena.write("d/small/mine", b"mine");
    assert_eq!(states(&arena, &["d.fecp"], 1), [pair("d/small", "edited")]);
    changes_nothing(&arena, &["repair", "d.fecp"], 1);
    // A folder that is not empty is never removed.
    arena.run(["repair", "d.fecp", "--revert"]);
    assert_eq!(arena.read("d/small/mine"), b"mine");
    arena.nothing_temporary();
    // A file replaces a folder.
    fs::remove_dir_all(arena.path("d/sub")).unwrap();
    arena.write("d/sub", b"mine too");
    let found = states(&arena, &["d.fecp"], 1);
    assert!(found.contains(&pair("d/sub", "edited")) && found.contains(&pair("d/sub/tool", "missing")));
    let output = arena.run(["repair", "d.fecp"]);
    assert_ne!(common::code(&output), 0);
    assert_eq!(arena.read("d/sub"), b"mine too");
    arena.nothing_temporary();
}

/// The folder for the copy contains a link that leads elsewhere.
#[test]
fn a_copy_does_not_lead_through_links() {
    let arena = with_outside();
    let outside = seen(&arena.path("outside"));
    fs::create_dir_all(arena.path("new/d")).unwrap();
    symlink("../../outside", arena.path("new/d/sub")).unwrap();
    assert_ne!(common::code(&arena.run(["repair", "d.fecp", "-o", "new"])), 0);
    assert!(seen(&arena.path("outside")) == outside);
    // Nothing existing is replaced, not even by its old content.
    for folder in [".", "d/.."] {
        edit(&arena.path("d/small"), b"mine");
        let before = seen(&arena.path("d"));
        assert_ne!(common::code(&arena.run(["repair", "d.fecp", "-o", folder])), 0);
        assert!(seen(&arena.path("d")) == before, "{folder}");
        arena.nothing_temporary();
    }
}

/// A further name that became a separate file of another size is an edit, whatever its time.
#[test]
fn another_file_under_a_further_name_is_an_edit() {
    let arena = Arena::new();
    age(&arena.write("d/a", &payload(1, 5000)), 1);
    fs::hard_link(arena.path("d/a"), arena.path("d/b")).unwrap();
    protect(&arena, &["d"]);
    fs::remove_file(arena.path("d/b")).unwrap();
    age(&arena.write("d/b", b"much shorter"), 1);
    assert_eq!(states(&arena, &["d.fecp"], 1), [pair("d/b", "edited")]);
    arena.expect(["repair", "d.fecp"], 1);
    assert_eq!(arena.read("d/b"), b"much shorter");
}

/// An entry that cannot be made does not keep others from being mended.
#[test]
fn what_is_in_the_way_of_one_is_not_in_that_of_others() {
    let arena = Arena::new();
    // A further name of a file that is beyond repair.
    arena.write("d/a", &payload(1, 3_000_000));
    fs::hard_link(arena.path("d/a"), arena.path("d/b")).unwrap();
    arena.write("d/m", &payload(2, 200_000));
    (0..3).for_each(|nth| drop(arena.write(format!("d/z{nth}"), &payload(10 + nth, 20_000))));
    protect(&arena, &["d", "-r", "10%"]);
    fs::remove_file(arena.path("d/a")).unwrap();
    fs::remove_file(arena.path("d/b")).unwrap();
    arena.expect(["repair", "--partial", "-o", "out", "d.fecp"], 3);
    assert_eq!(arena.read("out/d/m"), payload(2, 200_000));
    assert_eq!(arena.read("out/d/z2"), payload(12, 20_000));
    // A folder that became a link.
    let arena = Arena::new();
    let files = ["d/aa", "d/sub/m", "d/zz"];
    files.iter().for_each(|name| drop(arena.write(name, name.as_bytes())));
    protect(&arena, &[&files[..], &["-o", "d.fecp", "-r", "200%"]].concat());
    fs::rename(arena.path("d/sub"), arena.path("e")).unwrap();
    symlink("../e", arena.path("d/sub")).unwrap();
    fs::remove_file(arena.path("d/aa")).unwrap();
    fs::remove_file(arena.path("d/zz")).unwrap();
    let exit = common::code(&arena.run(["repair", "d.fecp"]));
    assert!(exit != 0, "one of them cannot be made");
    assert_eq!((arena.read("d/aa"), arena.read("d/zz")), (b"d/aa".to_vec(), b"d/zz".to_vec()));
    // A file in place of a folder.
    let arena = Arena::new();
    arena.write("d/full/x", b"x");
    arena.write("d/zz", b"zz");
    protect(&arena, &["d", "-r", "200%"]);
    fs::remove_dir_all(arena.path("d/full")).unwrap();
    arena.write("d/full", b"precious");
    set_mode(&arena.path("d/full"), 0o600);
    edit(&arena.path("d/zz"), b"edited");
    arena.expect(["repair", "d.fecp"], 1);
    assert_eq!(arena.read("d/full"), b"precious");
    assert_eq!(fs::metadata(arena.path("d/full")).unwrap().mode() & 0o777, 0o600);
    arena.expect(["repair", "--revert", "--undo", "undo.tar", "d.fecp"], 0);
    assert_eq!((arena.read("d/full/x"), arena.read("d/zz")), (b"x".to_vec(), b"zz".to_vec()));
    is_intact(&arena, "d.fecp");
}

//! Links in place of files and folders: nothing outside is read in their place, and nothing outside is written.

use crate::arena::*;
use fec_sidecar::SidecarError;
use fec_sidecar::examine::{Scope, State, base_of, examine};
use fec_sidecar::repair::{Mend, repair};
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

/// A furnished folder with its sidecar, and a folder `outside` with files of the same names.
fn with_outside() -> Arena {
    let arena = Arena::furnished();
    for name in ["small", "tool", "deep/nested"] {
        arena.write(format!("outside/{name}"), b"outside");
    }
    arena.protect(&How::of_percent(100));
    arena
}

fn partial() -> Mend<'static> {
    Mend { partial: true, ..Mend::default() }
}

#[test]
fn a_link_in_place_of_a_file_is_not_followed() {
    for target in ["../outside/small", "../outside/absent", "large", "/dev/zero"] {
        let arena = with_outside();
        let (outside, before) = (seen(&arena.path("outside")), tree(&arena.path("d")));
        fs::remove_file(arena.path("d/small")).unwrap();
        symlink(target, arena.path("d/small")).unwrap();
        assert_eq!(arena.states(), [pair("d/small", State::Edited)]);
        assert_eq!(arena.leaves(&Mend::default()).left.len(), 1);
        arena.mend(&reverting());
        assert!(seen(&arena.path("outside")) == outside, "{target}: something outside was touched");
        assert!(tree(&arena.path("d")) == before, "{target}");
        arena.is_intact();
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
        let found = arena.states();
        assert!(found.contains(&pair("d/sub", State::Edited)), "{target}: {found:?}");
        for path in ["d/sub/tool", "d/sub/twin", "d/sub/deep", "d/sub/deep/nested"] {
            assert!(found.contains(&pair(path, State::Missing)), "{target}: {found:?}");
        }
        let dry_run = Mend { dry_run: true, ..Mend::default() };
        for how in [dry_run, Mend::default(), partial(), reverting(), Mend { partial: true, ..reverting() }] {
            let mended = arena.try_mend(&how);
            let is_whole = mended.is_ok_and(|mended| mended.failed.is_empty() && mended.left.is_empty());
            assert!(how.revert || !is_whole, "{target}: the link stays");
            assert!(seen(&arena.path("outside")) == outside, "{target}: something outside was touched");
            assert_eq!(fs::read_dir(arena.path("d/void")).unwrap().count(), 0, "{target}");
            arena.nothing_temporary();
        }
        let out = arena.path("new");
        arena.mend(&Mend { out: Some(&out), ..Mend::default() });
        assert!(arena.read("new/d/sub/deep/nested") == payload(3, 5000));
        assert!(seen(&arena.path("outside")) == outside);
    }
}

/// Both names lead to the mended file.
#[test]
fn a_file_with_two_names_keeps_them() {
    let arena = Arena::furnished();
    fs::hard_link(arena.path("d/large"), arena.path("d/void/again")).unwrap();
    arena.protect(&How::of_percent(100));
    let before = tree(arena.home.path());
    let names = ["d/large", "d/void/again"];
    let inodes = || names.map(|path| fs::metadata(arena.path(path)).unwrap().ino());
    let first = inodes();
    flip(&arena.path("d/void/again"), 4444);
    assert_eq!(arena.states(), [pair("d/large", State::Rotten)]);
    arena.mend_all();
    assert!(tree(arena.home.path()) == before && inodes() == first);
    // Only the second name is missing.
    fs::remove_file(arena.path("d/void/again")).unwrap();
    assert_eq!(arena.states(), [pair("d/void/again", State::Missing)]);
    arena.mend_all();
    assert_eq!(inodes(), first);
    // Both names are missing.
    names.iter().for_each(|name| fs::remove_file(arena.path(name)).unwrap());
    arena.mend_all();
    assert!(tree(arena.home.path()) == before);
    let [one, two] = inodes();
    assert_eq!(one, two);
    // Another file has the second name.
    fs::remove_file(arena.path("d/void/again")).unwrap();
    arena.write("d/void/again", b"another");
    assert_eq!(arena.states(), [pair("d/void/again", State::Edited)]);
    assert_eq!(arena.leaves(&Mend::default()).left.len(), 1);
    arena.mend(&reverting());
    assert!(tree(arena.home.path()) == before);
    arena.is_intact();
}

/// The first name was moved and stays where it is, and the second is gone. Other files are mended all the same.
#[test]
fn a_name_of_a_file_that_was_moved_hinders_nothing() {
    let arena = Arena::furnished();
    fs::hard_link(arena.path("d/small"), arena.path("d/zoo")).unwrap();
    arena.protect(&How::default());
    let before = tree(&arena.path("d"));
    fs::rename(arena.path("d/small"), arena.path("d/moved")).unwrap();
    fs::remove_file(arena.path("d/zoo")).unwrap();
    flip(&arena.path("d/large"), 5);
    arena.mend(&Mend::default());
    assert_eq!(arena.read("d/large"), payload(1, 20_481));
    arena.mend(&reverting());
    fs::remove_file(arena.path("d/moved")).ok();
    assert!(tree(&arena.path("d")) == before);
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
        for how in [Mend::default(), partial(), reverting()] {
            let arena = Arena::furnished();
            fs::hard_link(arena.path("d/small"), arena.path("d/zoo")).unwrap();
            arena.protect(&How::default());
            fs::remove_file(arena.path("d/small")).unwrap();
            change(&arena.path("d/small"));
            arena.mend(&how);
            let is_file = fs::symlink_metadata(arena.path("d/zoo")).unwrap().is_file();
            let is_kept = is_file && arena.read("d/zoo") == payload(2, 700);
            assert!(is_kept, "{name}: revert {}: its bytes are gone", how.revert);
        }
    }
}

/// Another kind of object replaces a file: nothing waits for it, and without a revert it is not lost.
#[test]
fn what_is_no_file_any_more_is_edited() {
    let arena = with_outside();
    let before = tree(arena.home.path());
    fs::remove_file(arena.path("d/small")).unwrap();
    make_fifo(&arena.path("d/small"));
    assert_eq!(arena.states(), [pair("d/small", State::Edited)]);
    arena.leaves(&Mend::default());
    arena.mend(&reverting());
    assert!(tree(arena.home.path()) == before);
    fs::remove_file(arena.path("d/small")).unwrap();
    arena.write("d/small/mine", b"mine");
    assert_eq!(arena.states(), [pair("d/small", State::Edited)]);
    arena.leaves(&Mend::default());
    // A folder that is not empty is never removed.
    assert!(arena.try_mend(&reverting()).is_err());
    assert_eq!(arena.read("d/small/mine"), b"mine");
    arena.nothing_temporary();
    // A file replaces a folder.
    fs::remove_dir_all(arena.path("d/sub")).unwrap();
    arena.write("d/sub", b"mine too");
    let found = arena.states();
    assert!(
        found.contains(&pair("d/sub", State::Edited)) && found.contains(&pair("d/sub/tool", State::Missing))
    );
    let is_whole = arena.try_mend(&Mend::default()).is_ok_and(|mended| mended.left.is_empty());
    assert!(!is_whole && arena.read("d/sub") == b"mine too");
    arena.nothing_temporary();
}

/// The folder for the copy contains a link that leads elsewhere.
#[test]
fn a_copy_does_not_lead_through_links() {
    let arena = with_outside();
    let outside = seen(&arena.path("outside"));
    fs::create_dir_all(arena.path("new/d")).unwrap();
    symlink("../../outside", arena.path("new/d/sub")).unwrap();
    // Nothing existing is replaced, not even by its old content.
    edit(&arena.path("d/small"), b"mine");
    let before = seen(&arena.path("d"));
    for folder in ["new", ".", "d/.."] {
        let out = arena.path(folder);
        let error = arena.try_mend(&Mend { out: Some(&out), ..Mend::default() }).expect_err("it is full");
        assert!(matches!(error.cause(), Some(SidecarError::OutputNotEmpty)), "{folder}: {error}");
        assert!(seen(&arena.path("d")) == before && seen(&arena.path("outside")) == outside, "{folder}");
        arena.nothing_temporary();
    }
}

/// A further name that became a separate file of another size is an edit, whatever its time.
#[test]
fn another_file_under_a_further_name_is_an_edit() {
    let arena = Arena::new();
    age(&arena.write("d/a", &payload(1, 5000)), 1);
    fs::hard_link(arena.path("d/a"), arena.path("d/b")).unwrap();
    arena.protect(&How::default());
    fs::remove_file(arena.path("d/b")).unwrap();
    age(&arena.write("d/b", b"much shorter"), 1);
    assert_eq!(arena.states(), [pair("d/b", State::Edited)]);
    assert_eq!(arena.leaves(&Mend::default()).left.len(), 1);
    assert_eq!(arena.read("d/b"), b"much shorter");
}

/// An entry that cannot be made does not keep others from being mended.
#[test]
fn what_is_in_the_way_of_one_is_not_in_that_of_others() {
    // A further name of a file that is beyond repair.
    let arena = Arena::new();
    arena.write("d/a", &payload(1, 3_000_000));
    fs::hard_link(arena.path("d/a"), arena.path("d/b")).unwrap();
    arena.write("d/m", &payload(2, 200_000));
    (0..3).for_each(|nth| drop(arena.write(format!("d/z{nth}"), &payload(10 + nth, 20_000))));
    arena.protect(&How::of_percent(10));
    fs::remove_file(arena.path("d/a")).unwrap();
    fs::remove_file(arena.path("d/b")).unwrap();
    let out = arena.path("out");
    let mended = arena.try_mend(&Mend { out: Some(&out), ..partial() }).unwrap();
    assert_eq!(mended.failed.len(), 2);
    assert_eq!(arena.read("out/d/m"), payload(2, 200_000));
    assert_eq!(arena.read("out/d/z2"), payload(12, 20_000));
    // A folder that became a link.
    let arena = Arena::new();
    let files = ["d/aa", "d/sub/m", "d/zz"];
    files.iter().for_each(|name| drop(arena.write(name, name.as_bytes())));
    arena.protect(&How { paths: &files, ..How::of_percent(200) });
    fs::rename(arena.path("d/sub"), arena.path("e")).unwrap();
    symlink("../e", arena.path("d/sub")).unwrap();
    fs::remove_file(arena.path("d/aa")).unwrap();
    fs::remove_file(arena.path("d/zz")).unwrap();
    assert!(arena.try_mend(&Mend::default()).is_err(), "one of them cannot be made");
    assert_eq!((arena.read("d/aa"), arena.read("d/zz")), (b"d/aa".to_vec(), b"d/zz".to_vec()));
    // A file in place of a folder.
    let arena = Arena::new();
    arena.write("d/full/x", b"x");
    arena.write("d/zz", b"zz");
    arena.protect(&How::of_percent(200));
    fs::remove_dir_all(arena.path("d/full")).unwrap();
    arena.write("d/full", b"precious");
    set_mode(&arena.path("d/full"), 0o600);
    edit(&arena.path("d/zz"), b"edited");
    let _ = arena.try_mend(&Mend::default());
    assert_eq!(arena.read("d/full"), b"precious");
    assert_eq!(fs::metadata(arena.path("d/full")).unwrap().mode() & 0o777, 0o600);
    let undo = arena.path("undo.tar");
    arena.mend(&Mend { undo: Some(&undo), ..reverting() });
    assert_eq!((arena.read("d/full/x"), arena.read("d/zz")), (b"x".to_vec(), b"zz".to_vec()));
    arena.is_intact();
}

/// The path to the base may lead through links, because the user named it.
#[test]
fn a_base_may_be_reached_through_a_link() {
    let arena = with_outside();
    symlink(".", arena.path("here")).unwrap();
    symlink("d.fecp", arena.path("other.fecp")).unwrap();
    for name in ["here/d.fecp", "other.fecp"] {
        let sidecar = arena.open_at(name, None).unwrap();
        let base = base_of(&sidecar, None).unwrap();
        assert!(examine(&sidecar, &base, Scope::All, &context()).unwrap().is_intact(), "{name}");
        flip(&arena.path("d/large"), 100);
        let _ = repair(&sidecar, &base, &Mend::default(), &context()).unwrap();
        assert!(arena.read("d/large") == payload(1, 20_481), "{name}");
    }
}

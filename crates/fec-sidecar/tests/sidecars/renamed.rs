//! Folders that were renamed as a whole.

use crate::arena::*;
use fec_base::io::base::Base;
use fec_sidecar::Sidecar;
use fec_sidecar::examine::{Examined, Scope, State, base_of, examine};
use fec_sidecar::repair::{Mend, repair};
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

fn look(arena: &Arena, sidecar: &str) -> (Sidecar, Base, Examined) {
    let sidecar = arena.open_at(sidecar, None).unwrap();
    let base = base_of(&sidecar, None).unwrap();
    let found = examine(&sidecar, &base, Scope::All, &context()).unwrap();
    (sidecar, base, found)
}

fn names(base: &Base) -> Vec<(&[u8], &[u8])> {
    base.renamed().map(|renamed| (&*renamed.from, &*renamed.to)).collect()
}

/// Copies the folder, with its times (`-a`) or without (`-r`).
fn copy(arena: &Arena, how: &str) {
    let mut cp = Command::new("cp");
    assert!(cp.args([how, "d", "copy"]).current_dir(arena.home.path()).status().unwrap().success());
}

/// With its sidecar and without; with marks, and without.
#[test]
fn a_renamed_folder_is_found_and_mended_where_it_is() {
    for (marks, to) in [(true, "d.fecp"), (true, "new.fecp"), (false, "new.fecp")] {
        let arena = Arena::furnished();
        arena.protect(&How { marks, ..How::of_percent(100) });
        let before = tree(&arena.path("d"));
        // Neither a copy nor a link is what was renamed.
        copy(&arena, "-r");
        fs::rename(arena.path("d"), arena.path("new")).unwrap();
        symlink("new", arena.path("a link")).unwrap();
        fs::rename(arena.path("d.fecp"), arena.path(to)).unwrap();
        let (_, base, found) = look(&arena, to);
        assert_eq!(names(&base), [(&b"d"[..], &b"new"[..])]);
        assert!(found.is_intact() && found.unprotected.count == 0);
        // Damage to it is mended where it is.
        fs::remove_file(arena.path("new/sub/tool")).unwrap();
        fs::remove_dir(arena.path("new/void")).unwrap();
        edit(&arena.path("new/small"), b"edited");
        let (sidecar, base, found) = look(&arena, to);
        let missing = [
            pair("d/small", State::Edited),
            pair("d/sub/tool", State::Missing),
            pair("d/void", State::Missing),
        ];
        assert_eq!(states_of(&sidecar, &found), missing);
        let mended = repair(&sidecar, &base, &reverting(), &context()).unwrap();
        assert!(mended.failed.is_empty() && mended.left.is_empty());
        assert!(tree(&arena.path("new")) == before && !arena.path("d").exists());
        let how = How { paths: &["new"], output: to, ..How::default() };
        let updated = arena.try_update(&how).unwrap();
        assert_eq!((updated.moved, updated.coded_len, updated.gone.len()), (6, 0, 0));
        let (_, base, found) = look(&arena, to);
        assert!(found.is_intact() && base.renamed().next().is_none());
    }
}

/// A backup beside a lost folder is not the folder: the loss is told, and mended.
#[test]
fn a_copy_beside_a_lost_folder_does_not_hide_the_loss() {
    let arena = Arena::furnished();
    arena.protect(&How { marks: true, ..How::of_percent(200) });
    let before = tree(&arena.path("d"));
    copy(&arena, "-a");
    fs::remove_dir_all(arena.path("d")).unwrap();
    let (sidecar, base, found) = look(&arena, "d.fecp");
    assert!(
        base.renamed().next().is_none() && found.entries.iter().all(|report| report.state == State::Missing)
    );
    assert!(repair(&sidecar, &base, &Mend::default(), &context()).unwrap().failed.is_empty());
    assert!(tree(&arena.path("d")) == before);
}

/// Something else under the old name is not passed over, and a folder that is protected by itself is none that was
/// renamed.
#[test]
fn what_stands_under_the_old_name_is_looked_at() {
    let arena = Arena::furnished();
    arena.write("other/file", &payload(9, 5000));
    arena.protect(&How { paths: &["d", "other"], marks: true, ..How::of_percent(100) });
    fs::rename(arena.path("d"), arena.path("new")).unwrap();
    symlink("new", arena.path("d")).unwrap();
    let (sidecar, base, found) = look(&arena, "d.fecp");
    assert!(base.renamed().next().is_none());
    assert!(states_of(&sidecar, &found).contains(&pair("d", State::Edited)));
    // Both are renamed, to each other's names.
    fs::remove_file(arena.path("d")).unwrap();
    fs::rename(arena.path("other"), arena.path("d")).unwrap();
    fs::rename(arena.path("new"), arena.path("other")).unwrap();
    assert!(look(&arena, "d.fecp").1.renamed().next().is_none());
    fs::rename(arena.path("other"), arena.path("one")).unwrap();
    fs::rename(arena.path("d"), arena.path("two")).unwrap();
    let (_, base, found) = look(&arena, "d.fecp");
    assert_eq!(names(&base), [(&b"d"[..], &b"one"[..]), (b"other", b"two")]);
    assert!(found.is_intact());
}

/// A copy under another name is examined and mended where it is, if the caller names it.
#[test]
fn a_copy_of_another_name_is_the_folder_if_it_is_named() {
    let arena = Arena::furnished();
    arena.protect(&How { marks: true, ..How::of_percent(100) });
    let before = tree(&arena.path("d"));
    copy(&arena, "-r");
    fs::remove_dir_all(arena.path("d")).unwrap();
    fs::remove_file(arena.path("copy/sub/tool")).unwrap();
    symlink("copy", arena.path("a link")).unwrap();
    let sidecar = arena.open_at("d.fecp", None).unwrap();
    for named in ["copy", "copy/.", "copy/sub/..", "a link"] {
        let base = base_of(&sidecar, Some(&arena.path(named))).unwrap();
        assert_eq!(names(&base), [], "nobody need be told");
        let found = examine(&sidecar, &base, Scope::All, &context()).unwrap();
        assert_eq!(found.count(State::Missing), 1, "{named}");
    }
    // Nothing is made outside of the named folder.
    fs::remove_file(arena.path("a link")).unwrap();
    let around = fs::metadata(arena.home.path()).unwrap().modified().unwrap();
    let base = base_of(&sidecar, Some(&arena.path("copy"))).unwrap();
    assert!(repair(&sidecar, &base, &Mend::default(), &context()).unwrap().failed.is_empty());
    assert!(fs::read(arena.path("copy/sub/tool")).is_ok() && !arena.path("d").exists());
    assert_eq!(fs::metadata(arena.home.path()).unwrap().modified().unwrap(), around);
    assert_eq!(tree(&arena.path("copy")).len(), before.len());
    // A folder of other files is a base like any other.
    arena.write("others/small", b"of another length");
    let base = base_of(&sidecar, Some(&arena.path("others"))).unwrap();
    let found = examine(&sidecar, &base, Scope::All, &context()).unwrap();
    assert!(found.entries.iter().all(|report| report.state == State::Missing));
}

/// In a folder that is not new, because something was moved there, the rest is new, at any depth.
#[test]
fn what_is_new_beside_what_was_moved_is_counted() {
    for (at, new) in
        [("d/to/small", "d/to/new"), ("d/to/far/small", "d/to/far/new"), ("d/to/far/small", "d/to/new/a")]
    {
        let arena = Arena::furnished();
        arena.protect(&How::of_percent(100));
        fs::create_dir_all(arena.path(at).parent().unwrap()).unwrap();
        fs::rename(arena.path("d/small"), arena.path(at)).unwrap();
        assert_eq!(look(&arena, "d.fecp").2.unprotected.count, 0, "{at}");
        arena.write(new, b"new");
        let (_, _, found) = look(&arena, "d.fecp");
        let first = if new == "d/to/new/a" { "d/to/new" } else { new };
        assert_eq!(
            (found.unprotected.count, found.unprotected.first.as_deref()),
            (1, Some(first.as_bytes()))
        );
    }
}

//! Selections of entries: what is examined and repaired alone, and what stays as it is.

use crate::arena::*;
use crate::lists::{LIST, leave_list, line, touch};
use fec_base::context::Context;
use fec_sidecar::examine::{Examined, Selection, State, examine_selected};
use fec_sidecar::repair::Mend;
use fec_sidecar::{Sidecar, SidecarError};
use fecfile::Class;
use std::fs;

fn selected(sidecar: &Sidecar, paths: &[&str]) -> Selection {
    let paths = paths.iter().map(|path| path.as_bytes());
    Selection::of(sidecar, paths).unwrap_or_else(|error| panic!("they are protected: {error}"))
}

#[track_caller]
fn examined(arena: &Arena, paths: &[&str], context: &Context<'_>) -> (Sidecar, Examined) {
    let sidecar = arena.open(None).expect("it opens");
    let found = examine_selected(&sidecar, &arena.base(), &selected(&sidecar, paths), context);
    (sidecar, found.unwrap_or_else(|error| panic!("they are examined: {error}")))
}

#[track_caller]
fn states(arena: &Arena, paths: &[&str]) -> Vec<(String, State)> {
    let (sidecar, found) = examined(arena, paths, &context());
    states_of(&sidecar, &found)
}

/// Repairs the entries at these paths, and all that has to be with them.
#[track_caller]
fn mend(arena: &Arena, paths: &[&str], how: &Mend<'_>) {
    let sidecar = arena.open(None).expect("it opens");
    let selection = selected(&sidecar, paths);
    arena.mend(&Mend { only: Some(&selection), ..*how });
}

#[test]
fn a_path_selects_itself_what_is_below_and_what_both_need() {
    let arena = Arena::furnished();
    for name in ["d-x", "d.x", "d/sub-x", "d/sub.x/y"] {
        arena.write(name, name.as_bytes());
    }
    fs::hard_link(arena.path("d/sub/tool"), arena.path("d/zz")).unwrap();
    arena.protect(&How { paths: &["d", "d-x", "d.x"], ..How::default() });
    let sidecar = arena.open(None).unwrap();
    let names = |paths: &[&str]| -> Vec<String> {
        selected(&sidecar, paths).entries().map(|nth| path_of(&sidecar, nth)).collect()
    };
    assert_eq!(names(&["d-x"]), ["d-x"]);
    assert_eq!(names(&["d/small", "d/empty"]), ["d", "d/empty", "d/small"]);
    let sub = ["d", "d/sub", "d/sub/deep", "d/sub/deep/nested", "d/sub/tool", "d/sub/twin"];
    assert_eq!(names(&["d/sub"]), sub);
    assert_eq!(names(&["d/zz"]), ["d", "d/sub", "d/sub/tool", "d/zz"]);
    assert!(selected(&sidecar, &[""]).is_all() && selected(&sidecar, &["d", "d-x", "d.x"]).is_all());
    assert!(!selected(&sidecar, &["d"]).is_all());
    for unknown in ["d/su", "d/small/x", "x", "d/sub/", "/", "d//small"] {
        let error = Selection::of(&sidecar, [unknown.as_bytes()]).unwrap_err();
        assert!(matches!(error.cause(), Some(SidecarError::NoEntry(_))), "{unknown}: {error}");
    }
}

/// An intact part reads no other file.
#[test]
fn a_part_is_what_it_is_in_the_whole() {
    let arena = Arena::furnished();
    arena.protect(&How::default());
    rot(&arena.path("d/large"), 5000, b"rot");
    fs::remove_file(arena.path("d/sub/tool")).unwrap();
    edit(&arena.path("d/small"), b"an edit");
    let all = arena.states();
    assert_eq!(all.len(), 3);
    for (path, state) in all {
        assert_eq!(states(&arena, &[&path]), [(path.clone(), state)]);
    }
    for intact in ["d/sub/deep", "d/sub/twin", "d/empty", "d/link", "d/void"] {
        assert_eq!(states(&arena, &[intact]), []);
    }
    // Nothing that was lost elsewhere is the loss of this part.
    for lost in ["d/sub/twin", "d/sub/deep/nested"] {
        fs::remove_file(arena.path(lost)).unwrap();
    }
    let (_, found) = examined(&arena, &["d/small"], &context());
    assert!(found.is_mendable() && !found.is_intact());
    let (_, found) = examined(&arena, &["d/sub"], &context());
    assert!(!found.is_mendable());
}

#[test]
fn a_part_is_mended_and_nothing_else() {
    let arena = Arena::furnished();
    arena.protect(&How::of_percent(60));
    let before = tree(&arena.path("d"));
    rot(&arena.path("d/large"), 5000, b"rot");
    rot(&arena.path("d/sub/tool"), 10, b"rot");
    fs::remove_file(arena.path("d/sub/deep/nested")).unwrap();
    fs::remove_dir(arena.path("d/sub/deep")).unwrap();
    flip(&arena.path("d.fecp"), fs::metadata(arena.path("d.fecp")).unwrap().len() / 2);
    let sidecar = arena.read("d.fecp");
    mend(&arena, &["d/sub/deep/nested"], &Mend::default());
    let left = [pair("d/large", State::Rotten), pair("d/sub/tool", State::Rotten)];
    assert_eq!(arena.states(), left);
    mend(&arena, &["d/sub"], &Mend::default());
    assert_eq!(arena.states(), left[..1]);
    assert!(arena.read("d.fecp") == sidecar, "the sidecar is no part");
    let out = arena.path("out");
    mend(&arena, &["d/large"], &Mend { out: Some(&out), ..Mend::default() });
    assert_eq!(
        tree(&out).keys().map(|path| path.display().to_string()).collect::<Vec<_>>(),
        ["d", "d/large"]
    );
    assert_eq!(arena.states(), left[..1]);
    mend(&arena, &["d/large"], &Mend::default());
    assert!(tree(&arena.path("d")) == before);
    arena.mend_all();
    arena.is_intact();
}

/// Losses elsewhere do not stop a part that can be mended.
#[test]
fn losses_beside_a_part_do_not_stop_it() {
    let arena = Arena::new();
    arena.write("d/big", &payload(1, 250 * 1024));
    arena.protect(&How::default());
    let other = "d/small";
    arena.write(other, &payload(2, 700));
    arena.update(&How::default());
    let sidecar = arena.open(None).unwrap();
    let before = arena.read(other);
    // An update gives new bytes a group of their own.
    (0..=sidecar.catalog().groups[0].code.m()).for_each(|nth| flip(&arena.path("d/big"), nth * 1024));
    flip(&arena.path(other), 9);
    arena.refuses(Class::Lost, || arena.try_mend(&Mend::default()));
    let big = arena.read("d/big");
    mend(&arena, &[other], &Mend::default());
    assert!(arena.read(other) == before && arena.read("d/big") == big);
    let selection = selected(&sidecar, &["d/big"]);
    let how = Mend { only: Some(&selection), ..Mend::default() };
    arena.refuses(Class::Lost, || arena.try_mend(&how));
}

/// A part ends what an interrupted repair has begun elsewhere: its list would stay, and stop updates.
#[test]
fn a_part_ends_what_a_repair_has_begun() {
    let arena = Arena::new();
    age(&arena.write("d/a", &payload(1, 100_000)), 1);
    arena.write("d/z", &payload(2, 3000));
    let root = arena.protect(&How::default()).root;
    flip(&arena.path("d/a"), 9);
    flip(&arena.path("d/a"), 5000);
    let lines = line(1, &arena.read("d/a"), &[0, 4], 1024);
    leave_list(&arena, &root, &lines);
    flip(&arena.path("d/a"), 9);
    touch(&arena, "d/a");
    mend(&arena, &["d/z"], &Mend::default());
    assert!(arena.read("d/a") == payload(1, 100_000) && !arena.path(LIST).exists());
    // A list may name what the sidecar has not.
    leave_list(&arena, &root, "9999999 0:0123456789abcdef\n+18446744073709551615\n");
    mend(&arena, &["d/z"], &Mend::default());
    arena.is_intact();
}

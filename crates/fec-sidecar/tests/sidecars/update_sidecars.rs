//! Updates of sidecars that are damaged, cut short, or written to by others.

use crate::arena::*;
use crate::update::{BLOCK, appended, is_protected, note, plant, protected};
use fec_sidecar::SidecarError;
use fec_sidecar::repair::Mend;
use fecfile::Class;
use std::fs;
use std::time::SystemTime;

/// The offsets of all pieces of metadata.
fn pieces(bytes: &[u8]) -> Vec<usize> {
    (0..bytes.len() - 8).filter(|at| bytes[*at..].starts_with(b"\x89fecP\r\n\x1a")).collect()
}

/// A sidecar of several generations is mended to its old bytes, like any other.
#[test]
fn a_repair_keeps_the_generations_before() {
    let arena = Arena::new();
    plant(&arena);
    let old = arena.protect(&How::default()).root;
    arena.write("d/new", &payload(33, 20_000));
    appended(&arena);
    let whole = arena.read("d.fecp");
    for damaged in [&whole[..whole.len() - 1], &[&whole[..], b"x"].concat(), &[b"x", &whole[..]].concat()] {
        arena.write("d.fecp", damaged);
        assert!(arena.mend_all().sidecar);
        assert_eq!(arena.open(Some(old)).unwrap().generation(), 1);
        assert!(arena.read("d.fecp") == whole);
    }
}

/// Recovery blocks for files that are completely gone cannot be computed again, and need not be.
#[test]
fn recovery_blocks_that_serve_nothing_are_no_damage_for_ever() {
    let (arena, _) = protected(&How::default());
    arena.write("d/new", &payload(33, 3 * BLOCK));
    appended(&arena);
    let second = arena.read("d.fecp").len();
    edit(&arena.path("d/new"), &payload(34, 3 * BLOCK));
    appended(&arena);
    // Between the pieces stand only recovery blocks of the first bytes of `d/new`.
    let third = arena.read("d.fecp");
    let last = pieces(&third).into_iter().rfind(|at| *at < second - 8).unwrap();
    (1..40).for_each(|nth| flip(&arena.path("d.fecp"), (last - nth * 1000) as u64));
    arena.mend_all();
    is_protected(&arena);
}

/// The nearest piece with a header tells how far a block has moved, even if it belongs to the next generation.
#[test]
fn pieces_of_any_extent_tell_where_blocks_are() {
    let (arena, first) = protected(&How::default());
    arena.write("d/new", &payload(33, 20_000));
    appended(&arena);
    let mut damaged = arena.read("d.fecp");
    let pieces = pieces(&first);
    assert_eq!(pieces.len(), 5);
    // Three of them tell what the sidecar protects.
    pieces[3..].iter().for_each(|at| damaged[*at..at + 8].fill(0));
    damaged.insert(0, b'x');
    arena.write("d.fecp", &damaged);
    let (_, found) = arena.examine();
    assert_eq!((found.recovery_damaged, found.recovery_displaced), (0, found.recovery));
    flip(&arena.path("d/big"), 5);
    arena.mend_all();
    is_protected(&arena);
}

/// Bytes behind the sidecar are cut off, whatever they are. The sidecar is then as without them.
#[test]
fn garbage_behind_a_sidecar_is_cut_off() {
    let (arena, old) = protected(&How::default());
    edit(&arena.path(note(3)), b"edited");
    appended(&arena);
    let new = arena.read("d.fecp");
    for garbage in [vec![0; 1], payload(1, 5000), vec![0; 100_000], old[..4096].to_vec()] {
        arena.write("d.fecp", &[&old[..], &garbage].concat());
        arena.update(&How::default());
        assert!(arena.read("d.fecp") == new, "{} bytes of garbage", garbage.len());
    }
    is_protected(&arena);
}

/// The remains of a generation that was once whole are not cut off unasked: a copy of the sidecar may have the rest.
#[test]
fn a_newer_generation_that_is_lost_is_not_forgotten_unseen() {
    let (arena, old) = protected(&How::default());
    edit(&arena.path(note(3)), b"edited");
    appended(&arena);
    let new = arena.read("d.fecp");
    // The head of the first piece is there, and not its body.
    let part = old.len() + 448;
    let damaged = |bytes: &[u8]| [&new[..part], bytes].concat();
    for rest in [&[][..], &vec![7; new.len() - part], &vec![0; new.len() - part]] {
        arena.write("d.fecp", &damaged(rest));
        arena.refuses_update(&How::default(), Class::Mendable);
        let is_named = |error: &fecfile::Error| {
            matches!(error.cause(), Some(SidecarError::NewerLost { newer: 2, this: 1 }))
        };
        assert!(is_named(&arena.try_update(&How::default()).unwrap_err()));
        // The files are mended all the same.
        let before = arena.read("d/big");
        flip(&arena.path("d/big"), 70_000);
        let mended = arena.try_mend(&Mend::default()).unwrap();
        assert!(!mended.sidecar && mended.sidecar_left.as_ref().is_some_and(is_named), "{mended:?}");
        assert!(arena.read("d/big") == before && arena.read("d.fecp") == damaged(rest));
        arena.update(&How::forced());
        assert!(arena.read("d.fecp") == new, "{} bytes behind it", rest.len());
    }
    is_protected(&arena);
}

/// A generation that has lost its end is mended first if it can be read. Otherwise the previous generation counts.
#[test]
fn a_sidecar_that_is_cut_short_is_not_built_upon() {
    let (arena, first) = protected(&How::default());
    edit(&arena.path(note(3)), b"edited");
    arena.write("d/new", &payload(1, 9 * BLOCK));
    appended(&arena);
    let second = arena.read("d.fecp");
    // Its old bytes stand in the first extent.
    edit(&arena.path(note(15)), b"edited");
    let mut mended = 0;
    for cut in (1..second.len() - first.len()).step_by((second.len() - first.len()) / 12) {
        arena.write("d.fecp", &second[..second.len() - cut]);
        let is_second = arena.open(None).unwrap().generation() == 2;
        if is_second {
            arena.refuses_update(&How::default(), Class::Mendable);
            mended += 1;
            assert!(arena.mend(&Mend::default()).sidecar);
            assert!(arena.read("d.fecp") == second, "mended");
        }
        arena.update(&How { force: !is_second, ..How::default() });
        let len = if is_second { second.len() } else { first.len() };
        assert!(arena.read("d.fecp").len() > len, "{cut} bytes less");
        arena.is_intact();
    }
    assert!(mended > 0);
    is_protected(&arena);
}

#[test]
fn a_sidecar_whose_bytes_have_shifted_is_mended_first() {
    let (arena, whole) = protected(&How::default());
    let (bytes, time) = (arena.read(note(3)), modified(&arena.path(note(3))));
    let middle = whole.len() / 2;
    for damaged in [
        [&b"x"[..], &whole].concat(),
        whole[1..].to_vec(),
        [&whole[..middle], &[7; 100], &whole[middle..]].concat(),
        [&whole[..middle], &whole[middle + 100..]].concat(),
        whole[..whole.len() - 1].to_vec(),
    ] {
        arena.write("d.fecp", &damaged);
        edit(&arena.path(note(3)), b"edited");
        for force in [false, true] {
            let how = How { force, ..How::default() };
            arena.refuses_update(&how, Class::Mendable);
            let error = arena.try_update(&how).unwrap_err();
            assert!(matches!(error.cause(), Some(SidecarError::Displaced)), "{error}");
        }
        arena.write(note(3), &bytes);
        set_time(&arena.path(note(3)), time.duration_since(SystemTime::UNIX_EPOCH).unwrap());
        arena.mend_all();
        assert!(arena.read("d.fecp") == whole);
    }
    // Changed bytes in place do not hinder an update: repair mends them before and after.
    flip(&arena.path("d.fecp"), middle as u64);
    edit(&arena.path(note(3)), b"edited");
    let updated = arena.try_update(&How::default());
    assert_eq!(arena.mend(&Mend::default()).left.is_empty(), updated.is_ok());
    arena.update(&How::default());
    is_protected(&arena);
}

/// Whoever can write to the sidecar can append an old generation. An update builds on the newest one that was written.
#[test]
fn an_old_generation_appended_again_is_not_believed() {
    let (arena, first) = protected(&How::default());
    edit(&arena.path(note(3)), b"edited");
    appended(&arena);
    let second = arena.read("d.fecp");
    edit(&arena.path(note(4)), b"edited");
    let by_root = How { root: Some(appended(&arena).sidecar.root), ..How::default() };
    let third = arena.read("d.fecp");
    edit(&arena.path(note(5)), b"edited");
    arena.update(&by_root);
    let fourth = arena.read("d.fecp");
    for old in [&first[..], &second[first.len()..], &second, &third[second.len()..]] {
        arena.write("d.fecp", &[&third[..], old].concat());
        let (sidecar, found) = arena.examine();
        assert_eq!((sidecar.generation(), found.sidecar_is_intact()), (3, false));
        for how in [by_root, How::default()] {
            arena.write("d.fecp", &[&third[..], old].concat());
            arena.update(&how);
            assert!(arena.read("d.fecp") == fourth);
        }
    }
    // The old sidecar replaces the current one: only the root can tell.
    for old in [&first, &second] {
        arena.write("d.fecp", old);
        arena.refuses_update(&by_root, Class::Untrue);
    }
}

/// Two generations follow the same one: neither is known to be meant, and no update builds on them.
#[test]
fn a_forked_sidecar_is_ambiguous() {
    let (arena, first) = protected(&How::default());
    let fork = |bytes: &[u8]| {
        arena.write("d.fecp", &first);
        edit(&arena.path(note(3)), bytes);
        (arena.update(&How::default()).sidecar.root, arena.read("d.fecp"))
    };
    let ((_, one), (root, two)) = (fork(b"one"), fork(b"two"));
    arena.write("d.fecp", &[&two[..], &one[first.len()..]].concat());
    edit(&arena.path(note(4)), b"edited");
    arena.refuses_update(&How::default(), Class::Usage);
    let error = arena.try_update(&How::default()).unwrap_err();
    assert!(matches!(error.cause(), Some(SidecarError::Ambiguous(roots)) if roots.len() == 2), "{error}");
    arena.update(&How { root: Some(root), ..How::default() });
    assert!(arena.read("d.fecp").starts_with(&two));
    is_protected(&arena);
}

/// An older state that is asked for does not count as intact if its sidecar is damaged.
#[test]
fn a_damaged_sidecar_is_told_of_with_an_older_root_too() {
    let (arena, _) = protected(&How::default());
    let first = arena.root();
    fs::create_dir(arena.path("d/empty folder")).unwrap();
    appended(&arena);
    let sidecar = arena.read("d.fecp");
    rot(&arena.path("d.fecp"), 30_000, b"ROT");
    let before = seen(arena.home.path());
    let mended = arena.try_mend_at(Some(first), &Mend::default()).unwrap();
    let left = mended.sidecar_left.expect("it is left alone");
    assert!(matches!(left.cause(), Some(SidecarError::Older)), "{left}");
    assert!(seen(arena.home.path()) == before);
    arena.mend_all();
    assert!(arena.read("d.fecp") == sidecar);
}

/// Each generation that the list names is brought back by its root, as it was.
#[test]
fn generations_are_listed_with_their_roots() {
    let arena = Arena::furnished();
    arena.protect(&How::of_percent(100));
    let mut was = vec![tree(&arena.path("d"))];
    for nth in 0..2u8 {
        edit(&arena.path("d/small"), &payload((90 + nth).into(), 800));
        age(&arena.path("d/small"), 5000 + u64::from(nth));
        arena.update(&How::default());
        was.push(tree(&arena.path("d")));
    }
    let sidecar = arena.open(None).unwrap();
    let listed = sidecar.generations(&context().settings).unwrap();
    let numbers: Vec<u64> = listed.iter().map(|of| of.generation).collect();
    assert_eq!((numbers, listed[0].root), (vec![3, 2, 1], sidecar.root()));
    assert_eq!(
        listed.iter().map(|of| of.newest).collect::<Vec<_>>()[..2],
        [Some(1_600_005_001), Some(1_600_005_000)]
    );
    assert!(listed.iter().all(|of| of.files == sidecar.catalog().files().count() as u64));
    for (of, was) in listed.iter().rev().zip(was) {
        let out = arena.path(format!("out{}", of.generation));
        arena.try_mend_at(Some(of.root), &Mend { out: Some(&out), ..Mend::default() }).unwrap();
        assert!(tree(&out.join("d")) == was, "generation {}", of.generation);
    }
    let old = arena.open(Some(listed[1].root)).unwrap();
    assert_eq!(old.generations(&context().settings).unwrap(), listed[1..]);
}

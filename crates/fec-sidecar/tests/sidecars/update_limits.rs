//! Updates that are refused, and the reasons for a new sidecar.

use crate::arena::*;
use crate::update::{
    BLOCK, FILES, anew, appended, appended_by, counts, is_protected, note, plant, protected, state,
};
use fec_core::digest::HashKind;
use fec_core::random::SplitMix64;
use fec_sidecar::manifest::{Listed, digests, manifest};
use fec_sidecar::protect::Prune;
use fec_sidecar::repair::Mend;
use fec_sidecar::update::Anew;
use fec_sidecar::{Sidecar, SidecarError};
use fecfile::Class;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

/// Asserts that an update is refused for too many lost files.
#[track_caller]
fn refuses_many_gone(arena: &Arena, how: &How<'_>, expected: (u64, u64)) {
    arena.refuses_update(how, Class::Usage);
    let error = arena.try_update(how).unwrap_err();
    let (Some(SidecarError::ManyGone { gone, of, .. }) | Some(SidecarError::FolderGone { gone, of, .. })) =
        error.cause()
    else {
        panic!("{error}")
    };
    assert_eq!((*gone, *of), expected);
}

/// Asserts that the sidecar equals a new one of the current files.
#[track_caller]
fn is_fresh(arena: &Arena, how: &How<'_>) {
    arena.protect(&How { output: "fresh.fecp", ..*how });
    assert!(arena.read("d.fecp") == arena.read("fresh.fecp"), "it is another than a new one");
}

#[test]
fn there_has_to_be_a_sidecar() {
    let arena = Arena::new();
    plant(&arena);
    for force in [false, true] {
        let how = How { force, ..How::default() };
        arena.refuses_update(&how, Class::Usage);
        let error = arena.try_update(&how).unwrap_err();
        assert!(matches!(error.cause(), Some(SidecarError::NothingToUpdate)), "{error}");
        arena.write("d.fecp", b"something else");
        assert!(arena.try_update(&how).is_err());
        assert_eq!(arena.read("d.fecp"), b"something else");
        fs::remove_file(arena.path("d.fecp")).unwrap();
    }
    arena.protect(&How::default());
    arena.refuses_update(&How { paths: &["absent"], ..How::default() }, Class::Io);
    arena.refuses_update(&How { paths: &[], ..How::default() }, Class::Usage);
}

#[test]
fn what_was_deleted_is_let_go() {
    let (arena, _) = protected(&How::default());
    for nth in [2, 9] {
        fs::remove_file(arena.path(note(nth))).unwrap();
    }
    let updated = appended(&arena);
    assert_eq!(counts(&updated), [FILES - 2, 0, 0, 0, 2]);
    assert_eq!(updated.gone, [note(2), note(9)].map(|name| name.into_bytes().into_boxed_slice()));
    is_protected(&arena);
    fs::remove_file(arena.path("d/sub/tool")).unwrap();
    assert_eq!(counts(&appended(&arena)), [FILES - 3, 0, 0, 0, 1]);
    is_protected(&arena);
}

/// A folder that is gone may be a small part of all files.
#[test]
fn most_files_of_a_folder_may_not_vanish_unseen() {
    let arena = Arena::new();
    for (folder, files) in [("d/few", 9), ("d/some/deep", 10), ("d/many", 300)] {
        for nth in 0..files {
            arena.write(format!("{folder}/{nth}"), &payload(nth + files * 1000, 500));
        }
    }
    arena.protect(&How::default());
    let remove = |nth: u64| fs::remove_file(arena.path(format!("d/some/deep/{nth}"))).unwrap();
    (0..6).for_each(remove);
    arena.refuses_update(&How::default(), Class::Usage);
    let error = arena.try_update(&How::default()).unwrap_err();
    let Some(SidecarError::FolderGone { folder, gone: 6, of: 10 }) = error.cause() else { panic!("{error}") };
    assert_eq!(folder, b"d/some", "the outermost folder is named");
    // Moved files are not gone; half of a folder may be, and so may all of a smaller one.
    fs::rename(arena.path("d/some/deep"), arena.path("d/away")).unwrap();
    arena.refuses_update(&How::default(), Class::Usage);
    arena.write("d/away/5", &payload(10_005, 500));
    fs::remove_dir_all(arena.path("d/few")).unwrap();
    assert_eq!(counts(&arena.update(&How::default())), [300, 0, 0, 5, 14]);
    fs::remove_dir_all(arena.path("d/away")).unwrap();
    (0..20).for_each(|nth| fs::remove_file(arena.path(format!("d/many/{nth}"))).unwrap());
    assert_eq!(counts(&arena.update(&How::default()))[4], 25);
}

#[test]
fn a_folder_that_is_gone_on_purpose_is_let_go() {
    let arena = Arena::new();
    (0..200).for_each(|nth| drop(arena.write(format!("d/{}/{nth}", nth / 20), &payload(nth, 500))));
    arena.protect(&How::default());
    fs::remove_dir_all(arena.path("d/3")).unwrap();
    assert!(
        arena
            .refuses_update(&How::default(), Class::Usage)
            .contains("20 of the 20 files that it protects in d/3")
    );
    assert_eq!(counts(&arena.update(&How::forced())), [180, 0, 0, 0, 20]);
}

/// Bytes decide: a large file is much, and small ones are little, until they are many. A folder that is not mounted is
/// more.
#[test]
fn more_than_a_tenth_may_not_vanish_unseen() {
    let (arena, _) = protected(&How::default());
    (0..3).for_each(|nth| fs::remove_file(arena.path(note(nth))).unwrap());
    fs::rename(arena.path("d/notes"), arena.path("d/moved")).unwrap();
    assert_eq!(counts(&arena.update(&How::default()))[4], 3, "what was moved is there");
    is_protected(&arena);
    fs::remove_file(arena.path("d/big")).unwrap();
    refuses_many_gone(&arena, &How::default(), (1, FILES - 3));
    let pruned = How { prune: Prune::Done, ..How::default() };
    assert_eq!(counts(&arena.update(&pruned))[4], 1, "the owner says so");
    // A tenth of 1,100 small files is many, if it is more than a hundredth of the bytes.
    for (large, is_refused) in [(1_000_000, true), (12_000_000, false)] {
        let arena = Arena::new();
        arena.write("d/large", &payload(1, large));
        (0..1100).for_each(|nth| drop(arena.write(format!("d/small/{nth}"), &payload(nth, 700))));
        arena.protect(&How::default());
        (0..115).for_each(|nth| fs::remove_file(arena.path(format!("d/small/{nth}"))).unwrap());
        match is_refused {
            true => refuses_many_gone(&arena, &How::default(), (115, 1101)),
            false => assert_eq!(counts(&arena.update(&How::default()))[4], 115),
        }
    }
    let (arena, _) = protected(&How::default());
    fs::remove_dir_all(arena.path("d/notes")).unwrap();
    refuses_many_gone(&arena, &How::default(), (16, FILES));
    assert_eq!(counts(&arena.update(&How::forced())), [FILES - 16, 0, 0, 0, 16]);
    is_protected(&arena);
    fs::remove_dir_all(arena.path("d")).unwrap();
    fs::create_dir(arena.path("d")).unwrap();
    arena.refuses_update(&How::default(), Class::Usage);
    arena.update(&How::forced());
    is_protected(&arena);
}

/// A single file that holds more than a tenth of all bytes may not vanish unseen either.
#[test]
fn more_than_a_tenth_of_the_bytes_may_not_vanish_unseen() {
    for (len, is_refused) in [(2000, false), (2001, true)] {
        let arena = Arena::new();
        arena.write("d/a", &payload(1, len));
        (0..18).for_each(|nth| drop(arena.write(format!("d/b{nth}"), &payload(nth, 1000))));
        arena.protect(&How::default());
        fs::remove_file(arena.path("d/a")).unwrap();
        match arena.try_update(&How::default()) {
            Ok(updated) => assert_eq!((updated.gone.len(), is_refused), (1, false)),
            Err(_) => {
                assert!(is_refused, "{len}");
                refuses_many_gone(&arena, &How::default(), (1, 19));
            }
        }
    }
}

#[test]
fn what_is_empty_now_has_to_be_meant() {
    for path in ["d/notes/03", "d/sub/tool"] {
        let (arena, _) = protected(&How::default());
        edit(&arena.path(path), b"");
        let said = arena.refuses_update(&How::default(), Class::Usage);
        assert!(said.contains(&format!("{path} has become empty")), "{said}");
        assert_eq!(counts(&appended_by(&arena, &How::forced())), [FILES - 1, 1, 0, 0, 0]);
        is_protected(&arena);
        arena.refuses_update(&How { root: Some([7; 32]), ..How::default() }, Class::Untrue);
        edit(&arena.path(path), b"full again");
        appended(&arena);
        is_protected(&arena);
    }
}

#[test]
fn too_many_changes_make_it_anew() {
    for (redundancy, blocks) in [(16, 60), (100, 300)] {
        let how = How::of_percent(redundancy);
        let (arena, _) = protected(&how);
        edit(&arena.path("d/other"), &payload(70, blocks * BLOCK));
        if blocks > 200 {
            edit(&arena.path("d/big"), &payload(71, blocks * BLOCK));
        }
        assert!(matches!(anew(&arena, &How::default()), Anew::Weak(1..) | Anew::Long));
        is_fresh(&arena, &how);
        is_protected(&arena);
    }
}

#[test]
fn a_sidecar_is_never_more_than_twice_as_large_as_a_new_one() {
    let how = How::of_percent(1);
    let (arena, _) = protected(&how);
    let (mut made_anew, mut most) = (0, 0);
    for nth in 0..40 {
        edit(&arena.path(note(nth % 16)), &payload(nth as u64, 290 + nth));
        made_anew += u32::from(arena.update(&How::default()).anew.is_some());
        most = arena.read("d.fecp").len().max(most);
        arena.is_intact();
    }
    arena.protect(&How { output: "fresh.fecp", ..how });
    assert!(made_anew > 0 && most <= 2 * arena.read("fresh.fecp").len() + 1000, "{made_anew}, {most}");
    is_protected(&arena);
}

#[test]
fn blocks_that_are_too_small_make_it_anew() {
    let arena = Arena::new();
    arena.write("d/small", &payload(1, 9000));
    arena.protect(&How::default());
    arena.write("d/large", &payload(2, 5_000_000));
    let updated = arena.update(&How::default());
    assert!(matches!(updated.anew, Some(Anew::SmallBlocks | Anew::Long)), "{:?}", updated.anew);
    assert_eq!((updated.sidecar.block, updated.generation), (BLOCK as u32, 1));
    is_fresh(&arena, &How::default());
    is_protected(&arena);
}

/// Edits a few blocks of alternating files: at any moment a tenth of the folder may be lost.
#[test]
fn what_may_be_lost_stays_about_as_much() {
    let (arena, _) = protected(&How::default());
    let mut random = SplitMix64::new(5);
    for nth in 0..12 {
        let path = arena.path(["d/big", "d/other"][nth % 2]);
        rot(&path, (random.index(140) * BLOCK) as u64, &payload(200 + nth as u64, 5 * BLOCK));
        age(&path, 2000 + nth as u64);
        arena.update(&How::default());
        arena.is_intact();
        let before = state(&arena);
        // 40 of 504 blocks are lost, and at most five of them belong to a younger group.
        rot(&arena.path("d/middle"), (random.index(60) * BLOCK) as u64, &vec![0x77; 40 * BLOCK]);
        arena.mend_all();
        assert!(state(&arena) == before);
    }
}

#[test]
fn redundancy_is_that_of_the_sidecar_or_what_is_asked_for() {
    let grown = |blocks: usize, made: &How<'_>, updated: &How<'_>| {
        let (arena, _) = protected(made);
        arena.write("d/new", &payload(30, blocks * BLOCK));
        let recovery = arena.update(updated).sidecar.recovery_len;
        is_protected(&arena);
        recovery / BLOCK as u64
    };
    // 16 % means 81 blocks for 504 blocks, and 100 % means 504. Another 200 blocks get as many as 704 blocks together,
    // if there is room.
    let (same, double) = (How::default(), How::of_percent(100));
    let default = grown(200, &same, &same);
    assert_eq!(default, grown(200, &same, &How::of_percent(16)));
    assert!((81 + 32..81 + 116).contains(&default), "{default}");
    assert_eq!(grown(200, &same, &double), 81 + 200);
    assert_eq!(grown(200, &double, &same), 504 + 200);
    // The redundancy is far below the existing one: the sidecar is made anew.
    assert_eq!(grown(200, &double, &How::of_percent(5)), 36);
}

/// The redundancy applies to the whole tree: a few added files are protected as well as they would be among the others.
#[test]
fn what_was_added_may_be_lost_whole() {
    let (arena, _) = protected(&How::default());
    arena.write("d/new", &payload(30, 15 * BLOCK + 100));
    arena.update(&How::default());
    let before = state(&arena);
    fs::remove_file(arena.path("d/new")).unwrap();
    arena.mend_all();
    assert!(state(&arena) == before);
}

/// Asserts that the sidecar lists the digests of all files, and that they are those of SHA-256.
#[track_caller]
fn has_sha256(arena: &Arena) {
    let sidecar = arena.open(None).unwrap();
    let listed = digests(&sidecar, Listed::Sha256).expect("it has SHA-256");
    let files = seen(&arena.path("d")).into_values().filter(|seen| matches!(seen.what, What::File { .. }));
    assert_eq!(listed.len(), files.count());
    for (path, digest) in listed {
        let bytes = arena.read(OsStr::from_bytes(path));
        assert_eq!(*digest, HashKind::Sha256.digest(&bytes), "{}", String::from_utf8_lossy(path));
    }
    let lines = manifest(&sidecar, Listed::Sha256).unwrap();
    assert!(
        lines.ends_with(b"  d/sub/tool\n") && lines.split(|byte| *byte == b'\n').all(|line| line.len() != 64)
    );
}

#[test]
fn sha256_is_kept_for_all_files() {
    let with = How { sha256: true, ..How::default() };
    let (arena, _) = protected(&with);
    edit(&arena.path("d/big"), &[payload(1, 199 * BLOCK), payload(2, 50)].concat());
    edit(&arena.path(note(1)), b"edited");
    age(&arena.path(note(2)), 7777);
    fs::rename(arena.path("d/other"), arena.path("d/moved")).unwrap();
    arena.write("d/new", &payload(40, 5000));
    appended(&arena);
    has_sha256(&arena);
    rot(&arena.path("d/big"), 0, b"edited");
    age(&arena.path("d/big"), 8888);
    appended_by(&arena, &with);
    has_sha256(&arena);
    is_protected(&arena);
    edit(&arena.path("d/moved"), &payload(41, 200 * BLOCK));
    anew(&arena, &How::default());
    has_sha256(&arena);
    // A sidecar without SHA-256 digests is made anew to have them.
    let (arena, _) = protected(&How::default());
    assert!(digests(&arena.open(None).unwrap(), Listed::Sha256).is_none());
    edit(&arena.path(note(1)), b"edited");
    assert_eq!(anew(&arena, &with), Anew::Sha256);
    is_fresh(&arena, &with);
    has_sha256(&arena);
}

/// The paths, base and exclusions are the same as before.
#[test]
fn it_takes_what_protect_takes() {
    let arena = Arena::new();
    plant(&arena);
    let within = How {
        paths: &["d/big", "d/notes"],
        output: "d/x.fecp",
        base: Some("d"),
        exclude: &["1*"],
        ..How::default()
    };
    arena.protect(&within);
    edit(&arena.path(note(3)), b"edited");
    edit(&arena.path(note(13)), b"left out");
    assert_eq!(counts(&arena.try_update(&within).unwrap()), [10, 1, 0, 0, 0]);
    assert!(!arena.try_update(&within).unwrap().written);
    // The sidecar is inside the folder: neither it nor anything beside it is included.
    let inside = How { output: "d/within.fecp", ..How::default() };
    fs::remove_file(arena.path("d/x.fecp")).unwrap();
    assert_eq!(arena.protect(&inside).files, FILES);
    assert!(!arena.try_update(&inside).unwrap().written);
    edit(&arena.path(note(3)), b"edited again");
    assert_eq!(counts(&arena.try_update(&inside).unwrap()), [FILES - 1, 1, 0, 0, 0]);
    assert!(!arena.try_update(&inside).unwrap().written);
    // A named base.
    fs::create_dir(arena.path("away")).unwrap();
    let listed =
        How { paths: &["d/big", "d/middle"], output: "away/y.fecp", base: Some("."), ..How::default() };
    assert!(!arena.protect(&listed).is_beside);
    edit(&arena.path("d/middle"), &payload(2, 100 * BLOCK + 999));
    assert_eq!(counts(&arena.try_update(&listed).unwrap()), [1, 1, 0, 0, 0]);
    // A new pattern that excludes protected files drops them, unless they are too many.
    let (arena, _) = protected(&How::default());
    refuses_many_gone(&arena, &How { exclude: &["notes"], ..How::default() }, (16, FILES));
    let without = How { exclude: &["notes/../*3", "03"], ..How::default() };
    assert_eq!(counts(&appended_by(&arena, &without)), [FILES - 1, 0, 0, 0, 1]);
}

/// The sidecar lists names that not everybody may know.
#[test]
fn a_sidecar_keeps_its_permissions() {
    let (arena, _) = protected(&How::default());
    let mode = || seen(arena.home.path())[std::path::Path::new("d.fecp")].mode;
    set_mode(&arena.path("d.fecp"), 0o600);
    edit(&arena.path(note(1)), b"edited");
    appended(&arena);
    assert_eq!(mode(), 0o600);
    anew(&arena, &How { sha256: true, ..How::default() });
    assert_eq!(mode(), 0o600, "made anew");
}

/// If a root is given, the sidecar has to have it now.
#[test]
fn a_root_has_to_be_that_of_the_sidecar() {
    let arena = Arena::new();
    plant(&arena);
    let by = |root| How { root: Some(root), ..How::default() };
    let old = arena.protect(&How::default()).root;
    edit(&arena.path(note(3)), b"edited");
    arena.refuses_update(&by([7; 32]), Class::Untrue);
    let new = arena.update(&by(old)).sidecar.root;
    assert_ne!(new, old);
    let first = arena.read("d.fecp");
    edit(&arena.path(note(3)), b"edited again");
    let newest = arena.update(&by(new)).sidecar.root;
    is_protected(&arena);
    // The root of an earlier generation is not the current one, and nothing of the newer generation is cut off.
    edit(&arena.path(note(3)), b"edited once more");
    for before in [old, new] {
        let error = arena.try_update(&by(before)).unwrap_err();
        assert!(
            matches!(error.cause(), Some(SidecarError::OtherRoot(roots)) if *roots == [newest]),
            "{error}"
        );
        arena.refuses_update(&by(before), Class::Untrue);
        let kept = arena.read("d.fecp");
        let _ = arena.try_mend_at(Some(before), &Mend::default());
        assert!(arena.read("d.fecp") == kept);
    }
    // An earlier sidecar does not have that root.
    arena.write("d.fecp", &first);
    arena.refuses_update(&by([8; 32]), Class::Untrue);
    assert!(Sidecar::open(&arena.path("d.fecp"), Some(newest), &context().settings).is_err());
}

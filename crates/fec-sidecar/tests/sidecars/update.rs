//! Updates: only changes are coded, and the new state is protected.

#[path = "../support/planted.rs"]
mod planted;

use crate::arena::*;
use fec_core::digest::HashKind;
use fec_core::format::sidecar::catalog::Catalog;
use fec_sidecar::manifest::{Listed, digests};
use fec_sidecar::update::{Anew, Updated};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

pub(crate) use planted::{BLOCK, FILES, every_third_comes_back, note, plant, state};

/// A planted folder and its sidecar.
pub(crate) fn protected(how: &How<'_>) -> (Arena, Vec<u8>) {
    let arena = Arena::new();
    plant(&arena);
    arena.protect(how);
    let sidecar = arena.read("d.fecp");
    (arena, sidecar)
}

/// Runs an update, which must only append to the sidecar.
#[track_caller]
pub(crate) fn appended_by(arena: &Arena, how: &How<'_>) -> Updated {
    let before = arena.read("d.fecp");
    let updated = arena.update(how);
    assert_eq!((updated.written, updated.anew), (true, None));
    let after = arena.read("d.fecp");
    assert!(after.len() > before.len() && after.starts_with(&before), "nothing old is written again");
    assert!(after.len() < before.len() + before.len() / 4, "{} -> {}", before.len(), after.len());
    assert_eq!(updated.sidecar.sidecar_len, after.len() as u64);
    updated
}

#[track_caller]
pub(crate) fn appended(arena: &Arena) -> Updated {
    appended_by(arena, &How::default())
}

/// Runs an update that makes the sidecar anew. Returns the reason.
#[track_caller]
pub(crate) fn anew(arena: &Arena, how: &How<'_>) -> Anew {
    let updated = arena.update(how);
    assert_eq!((updated.written, updated.generation), (true, 1));
    updated.anew.expect("it is made anew")
}

/// The numbers of files that are unchanged, changed, added, moved and gone.
pub(crate) fn counts(updated: &Updated) -> [u64; 5] {
    let Updated { unchanged, changed, added, moved, .. } = *updated;
    [unchanged, changed, added, moved, updated.gone.len() as u64]
}

/// The files of the catalog, as a report names them.
fn files_in(catalog: &Catalog) -> u64 {
    catalog.files().count() as u64
}

/// Asserts that all files are intact, and that every third file comes back with its mode and time: small files from
/// nothing, others from rot.
#[track_caller]
pub(crate) fn is_protected(arena: &Arena) {
    arena.is_intact();
    every_third_comes_back(arena, |_| drop(arena.mend_all()));
    arena.is_intact();
}

/// Asserts that the sidecar has the BLAKE3 of each file.
#[track_caller]
fn has_digests(arena: &Arena) {
    for (path, digest) in digests(&arena.open(None).unwrap(), Listed::Blake3).unwrap() {
        assert_eq!(*digest, HashKind::Blake3.digest(&arena.read(OsStr::from_bytes(path))), "{path:?}");
    }
}

#[test]
fn nothing_changed_leaves_every_byte() {
    let (arena, _) = protected(&How::default());
    let root = arena.root();
    let before = seen(arena.home.path());
    let updated = arena.update(&How::default());
    assert!(seen(arena.home.path()) == before);
    assert_eq!((updated.sidecar.root, updated.written, updated.generation), (root, false, 1));
    assert_eq!((counts(&updated), updated.coded_len), ([FILES, 0, 0, 0, 0], 0));
    edit(&arena.path(note(3)), b"edited");
    appended(&arena);
    let before = seen(arena.home.path());
    let again = arena.update(&How::default());
    assert!(seen(arena.home.path()) == before);
    assert_eq!((again.written, again.generation), (false, 2));
}

#[test]
fn what_it_reports_is_what_protect_reports() {
    let (arena, _) = protected(&How::default());
    edit(&arena.path(note(3)), b"edited");
    let updated = arena.update(&How::default()).sidecar;
    let fresh = arena.protect(&How { output: "fresh.fecp", ..How::default() });
    let of = |p: &fec_sidecar::protect::Protected| {
        (p.files, p.folders, p.links, p.files_len, p.block, p.is_beside)
    };
    assert_eq!(of(&updated), of(&fresh));
    assert_eq!((updated.base.clone(), updated.skipped.len()), (fresh.base, 0));
    assert_eq!(updated.sidecar_len, arena.read("d.fecp").len() as u64);
    assert!(updated.recovery_len > fresh.recovery_len && updated.spare.one_piece > 0);
    let sidecar = arena.open(Some(updated.root)).unwrap();
    assert_eq!((sidecar.root(), sidecar.metadata_root()), (updated.root, updated.metadata));
    assert_eq!(files_in(sidecar.catalog()), FILES);
}

/// The same bytes at another time are no change. Repair restores the new time.
#[test]
fn what_was_touched_is_unchanged_and_has_its_new_time() {
    let (arena, _) = protected(&How::default());
    for path in ["d/big", "d/notes/03", "d/sub/empty"] {
        age(&arena.path(path), 5000);
    }
    let updated = appended(&arena);
    assert_eq!((updated.generation, counts(&updated), updated.coded_len), (2, [FILES, 0, 0, 0, 0], 0));
    is_protected(&arena);
}

#[test]
fn an_edit_costs_the_blocks_that_it_hits() {
    let (arena, before) = protected(&How::default());
    for (nth, block) in [7, 90, 150, 199].into_iter().enumerate() {
        let bytes = payload(9, if block == 90 { 2 * BLOCK } else { 10 });
        rot(&arena.path("d/big"), (block * BLOCK) as u64, &bytes);
        age(&arena.path("d/big"), 1000 + nth as u64);
        let updated = appended(&arena);
        let blocks = if block == 90 { 2 } else { 1 };
        assert_eq!(counts(&updated), [FILES - 1, 1, 0, 0, 0]);
        assert_eq!(updated.coded_len, blocks * BLOCK as u64, "block {block}");
        assert_eq!(updated.generation, nth as u64 + 2);
    }
    let most = before.len() + 4 * (6 * BLOCK + 20_000);
    assert!(arena.read("d.fecp").len() < most, "the index, and the blocks");
    is_protected(&arena);
}

/// Only tails that share a block with a changed file are coded anew.
#[test]
fn what_is_appended_or_cut_off_costs_no_more() {
    let (arena, _) = protected(&How::default());
    let grown = [arena.read("d/big"), payload(8, BLOCK + 900)].concat();
    edit(&arena.path("d/big"), &grown);
    assert_eq!(appended(&arena).coded_len, (BLOCK + 900) as u64);
    for (path, bytes, least) in [
        ("d/middle", [arena.read("d/middle"), payload(8, 10)].concat(), 1010),
        ("d/other", arena.read("d/other")[..148 * BLOCK + 7].to_vec(), 7),
    ] {
        edit(&arena.path(path), &bytes);
        let updated = appended(&arena);
        assert_eq!(counts(&updated), [FILES - 1, 1, 0, 0, 0]);
        assert!((least..=BLOCK as u64).contains(&updated.coded_len), "{path}: {}", updated.coded_len);
    }
    // The file shrinks to less than a tail, and to whole blocks.
    for len in [10, 4096] {
        edit(&arena.path("d/sub/tool"), &payload(5, 5000)[..len]);
        appended(&arena);
    }
    is_protected(&arena);
}

#[test]
fn small_files_share_blocks_and_change_apart() {
    let (arena, _) = protected(&How::default());
    for nth in [0, 5, 15] {
        edit(&arena.path(note(nth)), &payload(9, 200 + nth));
        let updated = appended(&arena);
        assert_eq!(counts(&updated), [FILES - 1, 1, 0, 0, 0]);
        assert!(updated.coded_len <= BLOCK as u64, "{}", updated.coded_len);
        arena.is_intact();
    }
    (0..16).for_each(|nth| edit(&arena.path(note(nth)), &payload(50 + nth as u64, 310)));
    assert_eq!(counts(&appended(&arena)), [FILES - 16, 16, 0, 0, 0]);
    is_protected(&arena);
}

#[test]
fn what_is_new_is_added() {
    let (arena, _) = protected(&How::default());
    arena.write("d/new/whole", &payload(20, 8 * BLOCK));
    arena.write("d/new/small", b"small");
    arena.write("d/new/empty", b"");
    fs::create_dir(arena.path("d/new/folder")).unwrap();
    symlink("whole", arena.path("d/new/link")).unwrap();
    fs::hard_link(arena.path("d/new/whole"), arena.path("d/new/again")).unwrap();
    let updated = arena.update(&How::default());
    assert_eq!(counts(&updated), [FILES, 0, 3, 0, 0]);
    assert_eq!(updated.coded_len, 8 * BLOCK as u64 + 5);
    assert_eq!((updated.sidecar.folders, updated.sidecar.links), (6, 4));
    has_digests(&arena);
    is_protected(&arena);
    // Only links and folders change.
    fs::remove_file(arena.path("d/link")).unwrap();
    symlink("other", arena.path("d/link")).unwrap();
    fs::remove_dir(arena.path("d/void")).unwrap();
    assert_eq!(appended(&arena).coded_len, 0);
    is_protected(&arena);
}

#[test]
fn what_was_moved_keeps_its_blocks() {
    let (arena, _) = protected(&How::default());
    let rename = |from: &str, to: &str| fs::rename(arena.path(from), arena.path(to)).unwrap();
    rename("d/big", "d/renamed");
    rename("d/notes/03", "d/sub/03");
    let updated = appended(&arena);
    assert_eq!((counts(&updated), updated.coded_len), ([FILES - 2, 0, 0, 2, 0], 0));
    is_protected(&arena);
    // A folder moves with all that is in it.
    rename("d/notes", "d/void/notes");
    let updated = appended(&arena);
    assert_eq!((counts(&updated), updated.coded_len), ([FILES - 15, 0, 0, 15, 0], 0));
    is_protected(&arena);
}

/// Losses in the blocks that an update added count in the sets of those blocks.
#[test]
fn the_margin_counts_each_group_by_itself() {
    let (arena, _) = protected(&How::default());
    let new = payload(40, 20 * BLOCK);
    arena.write("d/new", &new);
    let updated = arena.update(&How::default());
    let one_piece = arena.examine().1.margin.spare.one_piece;
    assert_eq!(updated.sidecar.spare.one_piece, one_piece);
    (0..3).for_each(|nth| flip(&arena.path("d/new"), nth * BLOCK as u64));
    let margin = arena.examine().1.margin;
    assert_eq!((margin.used, margin.lost_sets), (3, 0));
    assert!(margin.of >= 3 && margin.spare.one_piece < one_piece, "{margin:?}");
    rot(&arena.path("d/new"), 0, &vec![0x77; new.len()]);
    rot(&arena.path("d.fecp"), updated.sidecar.sidecar_len - 8 * BLOCK as u64, &vec![0; 8 * BLOCK]);
    let (_, found) = arena.examine();
    assert_eq!(
        (found.margin.lost_sets, found.margin.lost_bytes),
        (1, new.len() as u64),
        "{:?}",
        found.margin
    );
}

/// A folder with empty files may be moved like any other.
#[test]
fn empty_files_that_were_moved_are_not_gone() {
    let arena = Arena::new();
    plant(&arena);
    (0..10).for_each(|nth| drop(arena.write(format!("d/package/{nth}/empty"), b"")));
    arena.protect(&How::default());
    fs::rename(arena.path("d/package"), arena.path("d/renamed")).unwrap();
    assert_eq!(counts(&appended(&arena))[4], 0);
    is_protected(&arena);
}

/// A new empty file is an old one that was moved only if that one is gone.
#[test]
fn an_empty_file_beside_one_that_was_filled_is_new() {
    let (arena, _) = protected(&How::default());
    edit(&arena.path("d/sub/empty"), b"full");
    arena.write("d/fresh", b"");
    assert_eq!(counts(&appended(&arena)), [FILES - 1, 1, 1, 0, 0]);
    // Nothing but empty files is new, so nothing is coded.
    arena.write("d/hollow", b"");
    let updated = appended(&arena);
    assert_eq!((counts(&updated), updated.coded_len), ([FILES + 1, 0, 1, 0, 0], 0));
    has_digests(&arena);
    is_protected(&arena);
}

#[test]
fn names_may_be_swapped() {
    let (arena, _) = protected(&How::default());
    for (one, two) in [("d/big", "d/other"), ("d/notes/01", "d/notes/02")] {
        fs::rename(arena.path(one), arena.path("d/x")).unwrap();
        fs::rename(arena.path(two), arena.path(one)).unwrap();
        fs::rename(arena.path("d/x"), arena.path(two)).unwrap();
        let updated = appended(&arena);
        assert_eq!((counts(&updated), updated.coded_len), ([FILES - 2, 0, 0, 2, 0], 0));
        is_protected(&arena);
    }
}

#[test]
fn logs_are_rotated() {
    let (arena, _) = protected(&How::default());
    for (nth, log) in ["d/sub/one", "d/notes/07", "d/sub/one"].into_iter().enumerate() {
        (0..nth).rev().for_each(|old| {
            fs::rename(arena.path(format!("{log}.{old}")), arena.path(format!("{log}.{}", old + 1))).ok();
        });
        fs::rename(arena.path(log), arena.path(format!("{log}.0"))).unwrap();
        fs::write(arena.path(log), payload(60 + nth as u64, 700)).unwrap();
        age(&arena.path(log), 1000 + nth as u64);
        let updated = appended(&arena);
        assert!(updated.coded_len <= 700, "{}", updated.coded_len);
        let [_, changed, added, moved, gone] = counts(&updated);
        assert!(changed + added == 1 && moved >= 1 && gone == 0, "{:?}", counts(&updated));
        is_protected(&arena);
    }
}

/// A file becomes a folder, a link and another name of a file. Each becomes a file again.
#[test]
fn what_changes_its_kind_is_protected_as_what_it_is() {
    let (arena, _) = protected(&How::default());
    let path = arena.path("d/notes/04");
    let (bytes, time) = (arena.read("d/notes/04"), modified(&path));
    let kinds: [&dyn Fn(); 3] = [
        &|| fs::create_dir(&path).and_then(|()| fs::write(path.join("inside"), b"inside")).unwrap(),
        &|| symlink("../big", &path).unwrap(),
        &|| fs::hard_link(arena.path("d/other"), &path).unwrap(),
    ];
    for (nth, kind) in kinds.iter().enumerate() {
        fs::remove_file(&path).unwrap();
        kind();
        arena.update(&How::default());
        is_protected(&arena);
        if path.is_dir() {
            fs::remove_dir_all(&path).unwrap()
        } else {
            fs::remove_file(&path).unwrap()
        }
        arena.write("d/notes/04", &bytes);
        set_time(&path, time.duration_since(SystemTime::UNIX_EPOCH).unwrap());
        arena.update(&How::default());
        is_protected(&arena);
        assert_eq!(arena.read("d/notes/04"), bytes, "kind {nth}");
    }
}

#[test]
fn a_file_with_two_names_may_lose_the_first() {
    let arena = Arena::new();
    plant(&arena);
    for (name, again) in [("d/big", "d/void/big"), ("d/notes/02", "d/void/02")] {
        fs::hard_link(arena.path(name), arena.path(again)).unwrap();
    }
    arena.protect(&How::default());
    fs::remove_file(arena.path("d/big")).unwrap();
    fs::remove_file(arena.path("d/notes/02")).unwrap();
    assert_eq!(appended(&arena).coded_len, 0, "its bytes are there");
    is_protected(&arena);
    // A name is added before it, and a name behind it.
    fs::hard_link(arena.path("d/void/big"), arena.path("d/a")).unwrap();
    fs::hard_link(arena.path("d/void/big"), arena.path("d/zoo")).unwrap();
    assert_eq!(appended(&arena).coded_len, 0);
    is_protected(&arena);
    assert_eq!(fs::metadata(arena.path("d/zoo")).unwrap().nlink(), 3);
}

#[test]
fn permissions_are_recorded_anew() {
    let (arena, _) = protected(&How::default());
    set_mode(&arena.path("d/notes/01"), 0o600);
    set_mode(&arena.path("d/big"), 0o640);
    assert_eq!(appended(&arena).coded_len, 0);
    is_protected(&arena);
    // Only the right to execute changes.
    set_mode(&arena.path("d/notes/01"), 0o700);
    set_mode(&arena.path("d/sub/tool"), 0o640);
    assert_eq!(appended(&arena).coded_len, 0);
    is_protected(&arena);
}

#[test]
fn names_may_be_any_bytes() {
    let (arena, _) = protected(&How::default());
    let odd = [&b"caf\xe9"[..], b"\xff\xfe\n", b"a\\b", b" "]
        .map(|name| arena.path("d/notes").join(OsStr::from_bytes(name)));
    for (nth, path) in odd.iter().enumerate() {
        fs::write(path, payload(80 + nth as u64, 3000 * nth + 10)).unwrap();
    }
    assert_eq!(counts(&appended(&arena)), [FILES, 0, 4, 0, 0]);
    is_protected(&arena);
    fs::write(&odd[0], b"edited").unwrap();
    fs::rename(&odd[1], arena.path("d").join(OsStr::from_bytes(b"\x80"))).unwrap();
    fs::remove_file(&odd[2]).unwrap();
    let updated = arena.update(&How::default());
    assert_eq!(counts(&updated), [FILES + 1, 1, 0, 1, 1]);
    assert_eq!(updated.gone, [Box::from(&b"d/notes/a\\b"[..])]);
    is_protected(&arena);
}

/// Files that are too large to be read for nothing. Times are compared to the nanosecond.
#[test]
fn a_large_file_that_was_moved_is_known_again_and_another_in_its_place_is_not() {
    let arena = Arena::new();
    plant(&arena);
    let put = |name: &str, bytes: &[u8]| {
        set_time(&arena.write(name, bytes), Duration::new(1_500_000_000, 123_456_789));
    };
    let len = 400 * BLOCK;
    put("d/huge", &payload(90, len));
    arena.write("d/mass", &payload(91, 6_000_000));
    arena.protect(&How::of_percent(100));
    fs::create_dir(arena.path("d/deep")).unwrap();
    fs::rename(arena.path("d/huge"), arena.path("d/deep/huge")).unwrap();
    let updated = appended(&arena);
    assert_eq!((counts(&updated), updated.coded_len), ([FILES + 1, 0, 0, 1, 0], 0));
    is_protected(&arena);
    // Another file of this size and time may be the old one, renamed and then damaged: the user has to say that it is
    // new.
    fs::remove_file(arena.path("d/deep/huge")).unwrap();
    put("d/impostor", &payload(92, len));
    let said = arena.refuses_update(&How::default(), fecfile::Class::Mendable);
    assert!(said.contains("d/impostor has the size and the time that d/deep/huge had"), "{said}");
    let updated = arena.update(&How::forced());
    assert_eq!((counts(&updated), updated.coded_len), ([FILES + 1, 0, 1, 0, 1], len as u64));
    is_protected(&arena);
    // A file that differs in one byte lies beside the moved one. It may be a copy that is damaged.
    fs::rename(arena.path("d/impostor"), arena.path("d/sub/honest")).unwrap();
    let mut bytes = payload(92, len);
    bytes[len / 2] ^= 1;
    put("d/a", &bytes);
    arena.refuses_update(&How::default(), fecfile::Class::Mendable);
    assert_eq!(counts(&arena.update(&How::forced())), [FILES + 1, 0, 1, 1, 0]);
    is_protected(&arena);
}

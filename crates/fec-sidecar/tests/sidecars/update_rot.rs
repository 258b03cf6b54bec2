//! Updates amid rot: nothing that rotted is recorded as an edit.

use crate::arena::*;
use crate::update::{BLOCK, FILES, anew, appended, counts, is_protected, note, plant, protected, state};
use fec_core::random::SplitMix64;
use fec_sidecar::SidecarError;
use fec_sidecar::examine::State;
use fec_sidecar::repair::Mend;
use fecfile::Class;
use rustix::fs::{FlockOperation, flock};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Edits a block of one file.
fn edit_a_block(arena: &Arena, name: &str, nth: u64) {
    rot(&arena.path(name), nth * BLOCK as u64, &payload(nth, 100));
    age(&arena.path(name), 4000 + nth);
}

/// Asserts that an update is refused, forced or not, since this file is rotten.
#[track_caller]
fn refuses_rot(arena: &Arena, path: &str) {
    for force in [false, true] {
        let how = How { force, ..How::default() };
        arena.refuses_update(&how, Class::Mendable);
        let error = arena.try_update(&how).unwrap_err();
        let Some(SidecarError::Rotten(rotten)) = error.cause() else { panic!("{error}") };
        assert_eq!(rotten, &[path.as_bytes()]);
    }
}

#[test]
fn rot_is_not_blessed() {
    let (arena, _) = protected(&How::default());
    let before = state(&arena);
    flip(&arena.path("d/big"), 70_000);
    flip(&arena.path("d/middle"), 70_000);
    edit_a_block(&arena, "d/other", 5);
    edit_a_block(&arena, "d/big", 120);
    fs::rename(arena.path("d/sub/one"), arena.path("d/sub/moved")).unwrap();
    // An edited file counts as it is now: nobody can tell rot in it from the edit.
    assert_eq!(counts(&appended(&arena)), [FILES - 3, 2, 0, 1, 0]);
    assert_eq!(arena.states(), [pair("d/middle", State::Rotten)]);
    let kept = state(&arena);
    arena.mend_all();
    let middle = Path::new("middle");
    assert!(state(&arena)[middle] == before[middle], "the bytes of old");
    let others = |mut all: BTreeMap<PathBuf, _>| all.remove(middle).map(|_| all);
    assert!(others(state(&arena)) == others(kept));
    is_protected(&arena);
}

/// A file that is coded anew with its neighbour is compared first.
#[test]
fn rot_beside_what_changes_is_refused() {
    for (rotten, at, edited) in
        [("d/notes/03", 5, "d/notes/04"), ("d/middle", 100 * BLOCK as u64 + 3, "d/notes/00")]
    {
        let (arena, _) = protected(&How::default());
        let before = arena.read(rotten);
        flip(&arena.path(rotten), at);
        edit(&arena.path(edited), b"edited");
        refuses_rot(&arena, rotten);
        fs::remove_file(arena.path(edited)).unwrap();
        refuses_rot(&arena, rotten);
        arena.write(edited, b"edited");
        assert_eq!(arena.mend(&Mend::default()).left.len(), 1);
        assert_eq!(arena.read(rotten), before);
        assert_eq!(counts(&appended(&arena)), [FILES - 1, 1, 0, 0, 0]);
        is_protected(&arena);
    }
}

#[test]
fn rot_is_not_blessed_by_a_sidecar_that_is_made_anew() {
    for (path, at) in [("d/big", 70_000), ("d/notes/03", 5), ("d/sub/one", 50 * BLOCK as u64 + 1)] {
        let (arena, _) = protected(&How::of_percent(20));
        let before = arena.read(path);
        flip(&arena.path(path), at);
        arena.refuses_update(&How { sha256: true, ..How::default() }, Class::Mendable);
        edit(&arena.path("d/other"), &payload(9, 150 * BLOCK));
        refuses_rot(&arena, path);
        edit(&arena.path("d/other"), &payload(3, 150 * BLOCK + 500));
        arena.mend_all();
        assert_eq!(arena.read(path), before);
        edit(&arena.path("d/other"), &payload(9, 150 * BLOCK));
        anew(&arena, &How::default());
        is_protected(&arena);
    }
}

/// A moved file that rotted on the way is not the earlier file.
#[test]
fn a_damaged_copy_is_not_what_was_moved() {
    let (arena, _) = protected(&How::default());
    fs::rename(arena.path("d/sub/tool"), arena.path("d/sub/copy")).unwrap();
    flip(&arena.path("d/sub/copy"), 100);
    assert_eq!(counts(&arena.update(&How::default())), [FILES - 1, 0, 1, 0, 1]);
    is_protected(&arena);
}

/// Changes a random file, which stays small. Its name is an old or a new one.
fn change(arena: &Arena, random: &mut SplitMix64) {
    let name = match random.index(3) {
        0 => note(random.index(20)),
        1 => ["d/big", "d/other"][random.index(2)].to_owned(),
        _ => format!("d/sub/new {}", random.index(4)),
    };
    let path = arena.path(&name);
    let mut bytes = fs::read(&path).unwrap_or_default();
    match random.index(6) {
        _ if bytes.is_empty() => bytes = payload(random.next(), 1 + random.index(9000)),
        0 if bytes.len() < 10_000 => return fs::remove_file(&path).unwrap(),
        1 if bytes.len() < 10_000 => {
            return fs::rename(&path, arena.path(format!("d/void/{}", random.next()))).unwrap();
        }
        2 => bytes.truncate(bytes.len() - random.index(bytes.len().min(9000))),
        3 => bytes.extend(payload(random.next(), 1 + random.index(6000))),
        _ => {
            let at = random.index(bytes.len());
            bytes[at] ^= 1;
        }
    }
    fs::write(&path, bytes).unwrap();
    age(&path, 10_000 + random.next() % 100_000);
}

/// Ten generations follow each other. After each one, the tree comes back from damage to files and sidecar.
#[test]
fn an_update_of_an_update_of_an_update() {
    let mut appends = 0;
    for seed in 0..2 {
        let (arena, random) = (protected(&How::of_percent(30)).0, &mut SplitMix64::new(seed));
        for generation in 2..=11 {
            (0..1 + random.index(3)).for_each(|_| change(&arena, random));
            let updated = arena.update(&How::forced());
            appends += u32::from(updated.generation > 1 && updated.written);
            arena.is_intact();
            let (before, sidecar) = (state(&arena), arena.read("d.fecp"));
            // Damages 20 blocks of the first group at once, and then a bit of the sidecar.
            rot(&arena.path("d/middle"), (random.index(70) * BLOCK) as u64, &vec![0x66; 20 * BLOCK]);
            arena.mend_all();
            assert!(state(&arena) == before, "seed {seed}, generation {generation}");
            flip(&arena.path("d.fecp"), random.index(sidecar.len()) as u64);
            arena.mend_all();
            assert!(arena.read("d.fecp").len() == sidecar.len(), "seed {seed}, generation {generation}");
            arena.is_intact();
        }
        is_protected(&arena);
    }
    assert!(appends > 10, "{appends} of 20 updates were appended");
}

/// Nothing of the previous generation goes away: its root names the old files, and restores them.
#[test]
fn the_root_of_before_is_readable() {
    let arena = Arena::new();
    plant(&arena);
    let old = arena.protect(&How::default()).root;
    let (before, sidecar) = (tree(&arena.path("d")), arena.read("d.fecp"));
    arena.write("d/new", &payload(33, 20_000));
    appended(&arena);
    edit_a_block(&arena, "d/big", 44);
    edit(&arena.path(note(2)), b"edited");
    let new = arena.update(&How::default()).sidecar.root;
    is_protected(&arena);
    assert_eq!(arena.open(Some(new)).unwrap().generation(), 3);
    let dry = arena.try_mend_at(Some(old), &Mend { dry_run: true, ..reverting() }).unwrap();
    let edited = ["d/big", "d/notes/02"].map(|path| pair(path, State::Edited));
    assert_eq!(states_of(&arena.open(Some(old)).unwrap(), &dry.found), edited);
    let _ = arena.try_mend_at(Some(old), &reverting()).unwrap();
    fs::remove_file(arena.path("d/new")).unwrap();
    assert!(tree(&arena.path("d")) == before && arena.read("d.fecp") == sidecar);
    is_protected(&arena);
}

#[test]
fn a_sidecar_that_somebody_works_on_is_left_alone() {
    let (arena, _) = protected(&How::default());
    edit(&arena.path(note(3)), b"edited");
    flip(&arena.path("d/big"), 70_000);
    let other = File::open(arena.path("d.fecp")).unwrap();
    flock(&other, FlockOperation::LockExclusive).unwrap();
    arena.refuses_update(&How::default(), Class::Usage);
    arena.refuses_update(&How { sha256: true, ..How::forced() }, Class::Usage);
    arena.refuses(Class::Usage, || arena.try_protect(&How::forced()));
    arena.refuses(Class::Usage, || arena.try_mend(&Mend::default()));
    // Looking is always allowed.
    assert_eq!(arena.leaves(&Mend { dry_run: true, ..Mend::default() }).mended.len(), 1);
    flock(&other, FlockOperation::Unlock).unwrap();
    assert_eq!(arena.mend(&Mend::default()).mended.len(), 1);
    appended(&arena);
}

/// A file that was renamed and then rotted is no new file.
#[test]
fn rot_is_not_blessed_by_another_name() {
    let (arena, _) = protected(&How::default());
    let was = arena.read("d/big");
    flip(&arena.path("d/big"), 70_000);
    fs::rename(arena.path("d/big"), arena.path("d/renamed")).unwrap();
    assert!(arena.refuses_update(&How::default(), Class::Mendable).contains("d/big"));
    fs::rename(arena.path("d/renamed"), arena.path("d/big")).unwrap();
    arena.mend_all();
    assert!(arena.read("d/big") == was);
}

/// A file that was moved and then rotted does not pass for new content, even if its old name is in use again.
#[test]
fn rot_is_not_blessed_where_names_are_used_again() {
    let nanos = |arena: &Arena, name: &str, nanos: u32| {
        set_time(&arena.path(name), Duration::new(1_500_000_000, nanos));
    };
    let moves: [fn(&Arena) -> &'static str; 3] = [
        |arena| {
            fs::rename(arena.path("d/big"), arena.path("d/x")).unwrap();
            fs::rename(arena.path("d/other"), arena.path("d/big")).unwrap();
            fs::rename(arena.path("d/x"), arena.path("d/other")).unwrap();
            "d/other"
        },
        |arena| {
            fs::rename(arena.path("d/big"), arena.path("d/big.1")).unwrap();
            edit(&arena.path("d/big"), b"a new log");
            "d/big.1"
        },
        |arena| {
            fs::rename(arena.path("d/big"), arena.path("d/x")).unwrap();
            fs::hard_link(arena.path("d/other"), arena.path("d/big")).unwrap();
            "d/x"
        },
    ];
    for moves in moves {
        for time in [123, 0] {
            let arena = Arena::new();
            plant(&arena);
            // Two files have the same size and time.
            arena.write("d/twin", &payload(7, 200 * BLOCK));
            ["d/big", "d/twin"].iter().for_each(|name| nanos(&arena, name, time));
            nanos(&arena, "d/other", 500);
            arena.protect(&How::default());
            let moved = moves(&arena);
            flip(&arena.path(moved), 70_000);
            assert!(arena.refuses_update(&How::default(), Class::Mendable).contains(moved));
        }
    }
}

/// A copy with the time of its source is no new file if it rotted, and is one if it did not.
#[test]
fn rot_is_not_blessed_in_a_copy_of_what_is_there() {
    let (arena, _) = protected(&How::default());
    let copy = |to: &str| {
        fs::copy(arena.path("d/big"), arena.path(to)).unwrap();
        let time = modified(&arena.path("d/big"));
        File::open(arena.path(to)).and_then(|file| file.set_modified(time)).unwrap();
    };
    copy("d/copy");
    flip(&arena.path("d/copy"), 70_000);
    assert!(arena.refuses_update(&How::default(), Class::Mendable).contains("d/copy"));
    copy("d/copy");
    assert_eq!(counts(&arena.update(&How::default())), [FILES, 0, 1, 0, 0]);
    // Somebody has edited this one.
    copy("d/edited");
    flip(&arena.path("d/edited"), 70_000);
    age(&arena.path("d/edited"), 5000);
    assert_eq!(counts(&arena.update(&How::default())), [FILES + 1, 0, 1, 0, 0]);
}

/// The tail of a changed file keeps its place only if it was read there.
#[test]
fn a_tail_is_kept_only_where_it_was_read() {
    let arena = Arena::new();
    arena.write("d/a", &payload(1, 3000));
    fs::hard_link(arena.path("d/a"), arena.path("d/b")).unwrap();
    arena.write("d/z", &payload(2, 200_000));
    arena.protect(&How::default());
    // The old file has another name and other bytes, and another file has its name with bytes of its own.
    fs::copy(arena.path("d/a"), arena.path("d/0")).unwrap();
    rot(&arena.path("d/0"), 10, b"four");
    fs::remove_file(arena.path("d/a")).unwrap();
    fs::remove_file(arena.path("d/b")).unwrap();
    fs::hard_link(arena.path("d/0"), arena.path("d/a")).unwrap();
    arena.write("d/b", &payload(9, 3000));
    arena.update(&How::forced());
    flip(&arena.path("d/b"), 2900);
    flip(&arena.path("d/a"), 2900);
    arena.mend_all();
    assert!(arena.read("d/b") == payload(9, 3000));
    assert!(arena.read("d/a") == [&payload(1, 3000)[..10], b"four", &payload(1, 3000)[14..]].concat());
}

/// An update writes to the named file, never through a link in its place.
#[test]
fn a_link_in_place_of_the_sidecar_is_not_followed() {
    let (arena, _) = protected(&How::default());
    fs::rename(arena.path("d.fecp"), arena.path("elsewhere")).unwrap();
    symlink("elsewhere", arena.path("d.fecp")).unwrap();
    edit(&arena.path(note(3)), b"edited");
    assert!(arena.refuses_update(&How::default(), Class::Usage).contains("symbolic link"));
}

/// A copy of a file, with its time, does not pass for another old file of this size and time.
#[test]
fn a_copy_is_not_the_file_that_is_gone() {
    let arena = Arena::new();
    let put = |name: &str, bytes: &[u8]| {
        set_time(&arena.write(name, bytes), Duration::new(1_500_000_000, 123_456_789));
    };
    let bytes = payload(1, 8_000_000);
    let mut other = bytes.clone();
    other[5_100_000..5_100_009].copy_from_slice(b"different");
    put("d/a1", &bytes);
    put("d/a2", &other);
    arena.write("d/pad", &payload(3, 9_000_000));
    arena.protect(&How::default());
    fs::remove_file(arena.path("d/a2")).unwrap();
    put("d/b", &bytes);
    let updated = arena.update(&How::forced());
    assert_eq!((counts(&updated)[2], counts(&updated)[4]), (1, 1));
    arena.is_intact();
    arena.mend_all();
    assert!(arena.read("d/b") == bytes);
}

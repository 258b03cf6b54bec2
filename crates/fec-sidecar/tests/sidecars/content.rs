//! Holes, other zeros, and duplicates, which take no recovery data.

use crate::arena::*;
use fec_sidecar::examine::{State, examine_deep};
use fec_sidecar::protect::Protected;
use fec_sidecar::repair::Mend;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

const MB: u64 = 1 << 20;

/// Bytes that a file takes on the disk.
fn on_disk(path: &Path) -> u64 {
    fs::metadata(path).unwrap().blocks() * 512
}

/// Makes a file of holes, with these bytes in it.
fn sparse(path: &Path, len: u64, parts: &[(u64, &[u8])]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let file = File::options().write(true).create(true).truncate(true).open(path).unwrap();
    file.set_len(len).unwrap();
    parts.iter().for_each(|(at, bytes)| file.write_all_at(bytes, *at).unwrap());
    drop(file);
    age(path, len);
}

/// The tree is as the sidecar has it, and each set is what it should be.
#[track_caller]
fn is_right(arena: &Arena) {
    arena.is_intact();
    let found = examine_deep(&arena.open(None).unwrap(), &arena.base(), &context()).unwrap();
    assert!(found.is_intact());
}

/// Everything comes back from nothing but the sidecar.
fn comes_back(arena: &Arena) {
    let before = tree(&arena.path("d"));
    fs::rename(arena.path("d"), arena.path("e")).unwrap();
    arena.mend_all();
    assert!(tree(&arena.path("d")) == before);
    fs::remove_dir_all(arena.path("e")).unwrap();
    is_right(arena);
}

#[cfg(target_os = "linux")]
#[test]
fn a_sidecar_of_holes_is_as_large_as_the_data() {
    let arena = Arena::new();
    let (path, len) = (arena.path("d/image"), 120 * MB);
    let (first, last) = (payload(1, 2 << 20), payload(2, (2 << 20) + 5));
    sparse(&path, len + 5, &[(40 * MB + 4096, &first), (len - 2 * MB, &last)]);
    let protected = arena.protect(&How::of_percent(100));
    assert_eq!(protected.files_len, len + 5);
    assert!(protected.data_len < 4 * MB + 3 * u64::from(protected.block), "{protected:?}");
    assert!(protected.sidecar_len < 6 * MB, "{protected:?}");
    is_right(&arena);
    let is_back = |path: &Path, what: &str| {
        let file = File::open(path).unwrap();
        assert_eq!(file.metadata().unwrap().len(), len + 5, "{what}");
        assert!(on_disk(path) < 6 * MB, "{what}: {} bytes on the disk", on_disk(path));
        let mut bytes = vec![0; last.len()];
        file.read_exact_at(&mut bytes, len - 2 * MB).unwrap();
        assert!(bytes == last, "{what}");
    };
    fs::remove_file(&path).unwrap();
    arena.mend_all();
    is_back(&path, "restored");
    rot(&path, 80 * MB, &[1; 9000]);
    rot(&path, 40 * MB + 5000, &[1; 9000]);
    assert_eq!(arena.states(), [pair("d/image", State::Rotten)]);
    arena.mend_all();
    is_back(&path, "mended");
    File::options().write(true).open(&path).unwrap().set_len(5).unwrap();
    assert_eq!(arena.states(), [pair("d/image", State::Edited)]);
    arena.mend(&reverting());
    is_back(&path, "cut off");
    let out = arena.path("out");
    arena.mend(&Mend { out: Some(&out), ..Mend::default() });
    is_back(&out.join("d/image"), "copied");
    is_right(&arena);
}

/// Zeros that take room are found too, in large files.
#[test]
fn zeros_that_are_no_holes_take_no_recovery_data() {
    let arena = Arena::new();
    let mut bytes = payload(3, 3 << 20);
    bytes[200_000..2_500_000].fill(0);
    arena.write("d/zeros", &bytes);
    arena.write("d/none", &payload(4, 2 << 20));
    let protected = arena.protect(&How::of_percent(300));
    assert!(protected.data_len < protected.files_len - 2_200_000, "{protected:?}");
    is_right(&arena);
    rot(&arena.path("d/zeros"), 199_000, &[9; 500_000]);
    arena.mend_all();
    comes_back(&arena);
}

fn recovery_of(protected: &Protected) -> (u64, u64) {
    (protected.data_len, protected.recovery_len)
}

#[test]
fn duplicates_take_no_recovery_data() {
    let arena = Arena::new();
    arena.write("d/one", &payload(1, 300_500));
    arena.write("d/other", &payload(2, 300_500));
    arena.write("d/small", &payload(3, 5000));
    let alone = recovery_of(&arena.protect(&How::of_percent(300)));
    for name in ["d/a", "d/sub/two", "d/three"] {
        fs::create_dir_all(arena.path("d/sub")).unwrap();
        fs::copy(arena.path("d/one"), arena.path(name)).unwrap();
    }
    fs::copy(arena.path("d/small"), arena.path("d/tiny")).unwrap();
    let together = arena.protect(&How { force: true, ..How::of_percent(300) });
    assert_eq!(recovery_of(&together), alone);
    is_right(&arena);
    // Each of them, then all of them.
    for names in [&["d/a"][..], &["d/three", "d/one"], &["d/tiny"], &["d/a", "d/one", "d/sub/two", "d/three"]]
    {
        let before = tree(&arena.path("d"));
        names.iter().for_each(|name| fs::remove_file(arena.path(name)).unwrap());
        arena.mend_all();
        assert!(tree(&arena.path("d")) == before);
    }
    // The same block, other blocks and the tails of several, where they are.
    for (name, at) in
        [("d/a", 5), ("d/one", 6), ("d/one", 80_000), ("d/three", 300_499), ("d/sub/two", 200_000)]
    {
        flip(&arena.path(name), at);
    }
    arena.mend_all();
    is_right(&arena);
    flip(&arena.path("d/a"), 300_499);
    arena.mend_all();
    comes_back(&arena);
}

/// Duplicates may be edited, deleted and added apart from each other.
#[test]
fn duplicates_are_updated_apart() {
    let arena = Arena::new();
    arena.write("d/large", &payload(9, 2_000_000));
    for name in ["d/a", "d/b", "d/c"] {
        arena.write(name, &payload(1, 100_700));
        age(&arena.path(name), 1);
    }
    arena.protect(&How::of_percent(100));
    let write = |name: &str, at: u64, bytes: &[u8]| {
        File::options().write(true).open(arena.path(name)).unwrap().write_all_at(bytes, at).unwrap();
        age(&arena.path(name), at + 10);
    };
    let update = |what: &str, coded: u64| {
        let updated = arena.update(&How::forced());
        assert!(updated.anew.is_none() && updated.coded_len <= coded, "{what}: {updated:?}");
        is_right(&arena);
        updated
    };
    write("d/b", 50_000, &[1; 3000]);
    update("a block in the middle of the second", 8192);
    write("d/a", 20_000, &[1; 3000]);
    write("d/c", 100_699, &[1]);
    update("other blocks of the others", 20_000);
    fs::remove_file(arena.path("d/a")).unwrap();
    fs::copy(arena.path("d/c"), arena.path("d/d")).unwrap();
    fs::copy(arena.path("d/large"), arena.path("d/0")).unwrap();
    fs::copy(arena.path("d/large"), arena.path("d/sub")).unwrap();
    let updated = update("copies of what is there", 10_000);
    assert_eq!(updated.added, 3);
    fs::remove_file(arena.path("d/0")).unwrap();
    fs::remove_file(arena.path("d/large")).unwrap();
    update("a copy is left", 10_000);
    for (name, seed) in [("d/x", 5), ("d/y", 5), ("d/z", 6)] {
        arena.write(name, &payload(seed, 50_300));
        age(&arena.path(name), 90);
    }
    update("new copies of each other", 105_000);
    let before = tree(&arena.path("d"));
    for name in ["d/x", "d/sub", "d/c"] {
        fs::remove_file(arena.path(name)).unwrap();
    }
    arena.mend_all();
    assert!(tree(&arena.path("d")) == before);
}

/// An edited duplicate keeps its new bytes, wherever the edit is and whichever of them it hits, through this update and
/// the next, and when it is lost.
#[test]
fn an_edited_duplicate_is_no_duplicate_any_more() {
    // A block and a tail; a tail alone, in a file of one block; whole blocks alone.
    for (len, at) in
        [(11_229u64, 11_228), (11_229, 8192), (11_229, 5), (4900, 4899), (4900, 5), (12_288, 12_287)]
    {
        for edited in [&["d/a"][..], &["d/b"], &["d/c"], &["d/a", "d/c"], &["d/a", "d/b", "d/c"]] {
            let arena = Arena::new();
            arena.write("d/z", &payload(9, 500_000));
            for name in ["d/a", "d/b", "d/c"] {
                arena.write(name, &payload(1, len as usize));
                age(&arena.path(name), 1);
            }
            arena.protect(&How::of_percent(100));
            for (nth, name) in edited.iter().enumerate() {
                flip(&arena.path(name), at - nth as u64);
                age(&arena.path(name), 10 + nth as u64);
            }
            let after = tree(&arena.path("d"));
            let updated = arena.update(&How::forced());
            assert_eq!((updated.changed, updated.anew.is_some()), (edited.len() as u64, false));
            is_right(&arena);
            arena.write("d/new", &payload(7, 3000));
            arena.update(&How::forced());
            is_right(&arena);
            fs::remove_file(arena.path("d/new")).unwrap();
            for names in [edited, &["d/a"], &["d/b", "d/c"]] {
                names.iter().for_each(|name| fs::remove_file(arena.path(name)).unwrap());
                arena.mend_all();
                fs::remove_file(arena.path("d/new")).unwrap();
                assert!(tree(&arena.path("d")) == after, "{len} {at} {edited:?} {names:?}");
            }
        }
    }
}

/// An update of a file of holes codes what is written, and lets go what becomes zeros.
#[cfg(target_os = "linux")]
#[test]
fn holes_are_updated() {
    let arena = Arena::new();
    let path = arena.path("d/image");
    sparse(&path, 40 * MB, &[(10 * MB, &payload(1, 1 << 20)), (30 * MB, &payload(2, 1 << 20))]);
    arena.write("d/other", &payload(3, 3 << 20));
    arena.protect(&How::of_percent(50));
    let file = File::options().write(true).open(&path).unwrap();
    file.write_all_at(&payload(4, 100_000), 20 * MB).unwrap();
    file.write_all_at(&[0; 100_000], 30 * MB + 4096).unwrap();
    age(&path, 7);
    sparse(&arena.path("d/new"), 90 * MB, &[(0, &[1])]);
    sparse(&arena.path("d/nothing"), 100 * MB, &[]);
    let updated = arena.update(&How::forced());
    assert!(updated.anew.is_none() && updated.coded_len < 200_000, "{updated:?}");
    is_right(&arena);
    file.set_len(15 * MB).unwrap();
    age(&path, 8);
    arena.update(&How::forced());
    is_right(&arena);
    for name in ["d/image", "d/new", "d/nothing"] {
        fs::remove_file(arena.path(name)).unwrap();
    }
    arena.mend_all();
    assert!(on_disk(&arena.path("d/new")) < MB && on_disk(&arena.path("d/nothing")) < MB);
    is_right(&arena);
}

/// A catalog of a few bytes may speak of endless zeros. Looking for them is no work.
#[test]
fn endless_zeros_are_no_work() {
    let arena = Arena::new();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/sidecar-errors");
    fs::copy(golden.join("good-zeros-most.fecp"), arena.path("d.fecp")).unwrap();
    assert!(arena.states().contains(&pair("b/c", State::Missing)));
    for bytes in [&b""[..], &[1; 5], &[0; 3000]] {
        arena.write("b/c", bytes);
        assert!(arena.states().contains(&pair("b/c", State::Edited)), "{bytes:?}");
    }
}

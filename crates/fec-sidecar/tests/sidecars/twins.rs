//! Zeros and duplicates, which no recovery data is needed for.

use crate::arena::*;
use fec_sidecar::examine::{Scope, examine};
use fec_sidecar::repair::Mend;
use fecfile::Class;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

/// A tree with zeros and duplicates, and almost no recovery data.
fn sparse() -> Arena {
    let arena = Arena::new();
    arena.write("d/zeros", &vec![0; 200_000]);
    arena.write("d/few zeros", &[0; 300]);
    let mut holed = payload(5, 90_000);
    holed[10_240..60_000].fill(0);
    arena.write("d/holed", &holed);
    arena.write("d/one", &payload(6, 70_300));
    arena.write("d/sub/two", &payload(6, 70_300));
    arena.write("d/small", &payload(7, 333));
    arena.write("d/sub/small", &payload(7, 333));
    arena.protect(&How::of_percent(1));
    arena
}

/// Lost files of zeros, and those whose duplicates are there, come back without any recovery shard.
#[test]
fn zeros_and_duplicates_come_back_without_recovery_data() {
    let arena = sparse();
    let before = tree(&arena.path("d"));
    rot(&arena.path("d.fecp"), 6000, &[7; 20_000]);
    for lost in
        [&["d/zeros"][..], &["d/one"], &["d/sub/two", "d/zeros"], &["d/small", "d/few zeros", "d/one"]]
    {
        lost.iter().for_each(|path| fs::remove_file(arena.path(path)).unwrap());
        for scope in [Scope::All, Scope::Quick] {
            let sidecar = arena.open(None).unwrap();
            let found = examine(&sidecar, &arena.base(), scope, &context()).unwrap();
            assert!(found.is_mendable(), "{lost:?}: {:?}", found.margin);
        }
        let mended = arena.mend_all();
        assert_eq!(mended.mended.len(), lost.len());
        assert!(tree(&arena.path("d")) == before, "{lost:?}");
    }
}

/// Blocks that rotted are written where they are, from a duplicate or as zeros.
#[test]
fn rotten_zeros_and_duplicates_are_mended_in_place() {
    let arena = sparse();
    let before = seen(&arena.path("d"));
    rot(&arena.path("d/zeros"), 5000, &[1; 100_000]);
    rot(&arena.path("d/holed"), 11_000, &[1; 40_000]);
    rot(&arena.path("d/one"), 3, &[1; 50_000]);
    rot(&arena.path("d/one"), 70_290, &[1; 10]);
    rot(&arena.path("d/sub/two"), 60_000, &[1; 5000]);
    arena.mend_all();
    rot(&arena.path("d/few zeros"), 0, &[1; 300]);
    arena.mend_all();
    let now = seen(&arena.path("d"));
    for (path, seen) in &before {
        assert!(now[path].what == seen.what && now[path].inode == seen.inode, "{}", path.display());
    }
    arena.is_intact();
}

/// A duplicate that is damaged in the same blocks is no help, and nothing is written then.
#[test]
fn what_no_file_has_any_more_is_lost() {
    let arena = sparse();
    for path in ["d/one", "d/sub/two"] {
        rot(&arena.path(path), 3, &[1; 20_000]);
    }
    arena.refuses(Class::Lost, || arena.try_mend(&Mend::default()));
    fs::remove_file(arena.path("d/one")).unwrap();
    arena.refuses(Class::Lost, || arena.try_mend(&Mend::default()));
}

/// A small file whose duplicate is there comes back although another one in the same block is lost.
#[test]
fn a_small_duplicate_comes_back_beside_a_lost_file() {
    let arena = sparse();
    arena.write("d/lone", &payload(9, 400));
    arena.protect(&How { force: true, ..How::of_percent(1) });
    let inode = fs::metadata(arena.path("d/sub/small")).unwrap().ino();
    // More than the few recovery shards can give.
    rot(&arena.path("d/holed"), 0, &[1; 8000]);
    fs::remove_file(arena.path("d/lone")).unwrap();
    fs::remove_file(arena.path("d/small")).unwrap();
    let _ = arena.try_mend(&Mend { partial: true, ..Mend::default() });
    assert_eq!(arena.read("d/small"), payload(7, 333));
    assert_eq!(fs::metadata(arena.path("d/sub/small")).unwrap().ino(), inode);
}

/// Bytes that a file takes on the disk.
#[cfg(target_os = "linux")]
fn on_disk(path: &Path) -> u64 {
    fs::metadata(path).unwrap().blocks() * 512
}

/// Zeros of files that are restored, mended or copied are holes.
#[cfg(target_os = "linux")]
#[test]
fn holes_stay_holes() {
    let arena = Arena::new();
    let path = arena.write("d/image", &payload(1, 1 << 20));
    let file = File::options().write(true).open(&path).unwrap();
    file.set_len(40 << 20).unwrap();
    file.write_all_at(&payload(2, 1 << 20), 20 << 20).unwrap();
    age(&path, 0);
    let (before, most) = (arena.read("d/image"), (2 << 20) + (256 << 10));
    assert!(on_disk(&path) <= most, "this file system has no holes");
    arena.protect(&How::of_percent(100));
    let is_sparse = |path: &Path, what: &str| {
        assert!(fs::read(path).unwrap() == before, "{what}");
        assert!(on_disk(path) <= most, "{what}: {} bytes on the disk", on_disk(path));
    };
    // Rot in a hole goes, and the hole is back.
    rot(&path, 5 << 20, &[1; 3 << 20]);
    arena.mend_all();
    is_sparse(&path, "mended");
    File::options().write(true).open(&path).unwrap().set_len(30 << 20).unwrap();
    arena.mend(&reverting());
    is_sparse(&path, "cut off");
    arena.mend(&Mend { out: Some(&arena.path("out")), ..Mend::default() });
    is_sparse(&arena.path("out/d/image"), "copied");
    fs::remove_file(&path).unwrap();
    arena.mend_all();
    is_sparse(&path, "restored");
}

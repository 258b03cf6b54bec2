//! Archives of everything that a repair writes over, which any tar restores.

use crate::arena::*;
use fec_sidecar::repair::Mend;
use fecfile::Class;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

/// A folder with its sidecar, edited in every way that repair writes over.
fn edited() -> Arena {
    let arena = Arena::furnished();
    arena.protect(&How::of_percent(100));
    edit(&arena.path("d/large"), &[&b"in front"[..], &payload(1, 20_481)].concat());
    edit(&arena.path("d/sub/tool"), b"shorter");
    set_mode(&arena.path("d/sub/tool"), 0o600);
    set_time(&arena.path("d/sub/tool"), std::time::Duration::new(1_600_000_000, 123_456_789));
    flip(&arena.path("d/sub/deep/nested"), 77);
    fs::remove_file(arena.path("d/small")).unwrap();
    fs::remove_file(arena.path("d/link")).unwrap();
    symlink("somewhere else", arena.path("d/link")).unwrap();
    arena
}

#[test]
fn an_archive_puts_back_what_was_written_over() {
    let arena = edited();
    let (before, undo) = (seen(&arena.path("d")), arena.path("undo.tar"));
    arena.mend(&Mend { undo: Some(&undo), ..reverting() });
    arena.is_intact();
    let reverted = seen(&arena.path("d"));
    let mut archive = tar::Archive::new(fs::File::open(&undo).unwrap());
    archive.set_preserve_permissions(true);
    archive.set_overwrite(true);
    let names: Vec<_> =
        archive.entries().unwrap().map(|entry| entry.unwrap().path().unwrap().into_owned()).collect();
    let expected = ["d/large", "d/link", "d/sub/deep/nested", "d/sub/tool"];
    assert_eq!(names, expected.map(std::path::PathBuf::from), "the missing file was made, not written over");
    let mut archive = tar::Archive::new(fs::File::open(&undo).unwrap());
    archive.set_preserve_permissions(true);
    archive.unpack(arena.home.path()).unwrap();
    for (path, was) in before.iter().filter(|(_, was)| was.what != What::Folder) {
        let is = &seen(&arena.path("d"))[path];
        assert_eq!(is.what, was.what, "{}", path.display());
        assert!(is.mode == was.mode || matches!(was.what, What::Link(_)), "{}", path.display());
    }
    assert!(reverted != before && arena.path("d/small").exists());
    // Times are recorded to the nanosecond.
    let bytes = arena.read("undo.tar");
    assert!(bytes.windows(26).any(|window| window == b"mtime=1600000000.123456789"));
    assert_eq!(fs::metadata(&undo).unwrap().mode() & 0o077, 0, "no more open than the least open file in it");
}

#[test]
fn an_archive_is_never_written_over() {
    let arena = edited();
    let undo = arena.write("undo.tar", b"of another repair");
    arena.refuses(Class::Usage, || arena.try_mend(&Mend { undo: Some(&undo), ..reverting() }));
}

/// If nothing is written over, no archive is kept. If the archive cannot be kept, nothing is written over.
#[test]
fn what_cannot_be_kept_is_not_written_over() {
    let arena = edited();
    let nowhere = arena.path("nowhere/undo.tar");
    arena.refuses(Class::Io, || arena.try_mend(&Mend { undo: Some(&nowhere), ..reverting() }));
    arena.mend(&reverting());
    fs::remove_file(arena.path("d/small")).unwrap();
    let undo = arena.path("undo.tar");
    arena.mend(&Mend { undo: Some(&undo), ..Mend::default() });
    assert!(!undo.exists() && arena.read("d/small") == payload(2, 700));
}

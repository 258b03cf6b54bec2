//! The owners of what root restores.

use crate::arena::*;
use crate::denied::{as_nobody, give_away};
use fec_sidecar::repair::Mend;
use rustix::process::geteuid;
use std::fs;
use std::os::unix::fs::{MetadataExt, chown};

const NOBODY: (u32, u32) = (65_534, 65_534);

fn owner(arena: &Arena, path: &str) -> (u32, u32) {
    let meta = fs::symlink_metadata(arena.path(path)).unwrap();
    (meta.uid(), meta.gid())
}

/// A folder of somebody's, of which a file, a link, an empty folder and a folder with a file are lost.
fn lost() -> Option<Arena> {
    if !geteuid().is_root() {
        println!("skipped: only root gives files away");
        return None;
    }
    let arena = Arena::furnished();
    arena.protect(&How::of_percent(200));
    give_away(&arena);
    for path in ["d/large", "d/link"] {
        fs::remove_file(arena.path(path)).unwrap();
    }
    for path in ["d/void", "d/sub/deep"] {
        fs::remove_dir_all(arena.path(path)).unwrap();
    }
    Some(arena)
}

const MADE: [&str; 5] = ["d/large", "d/link", "d/void", "d/sub/deep", "d/sub/deep/nested"];

#[test]
fn what_root_restores_belongs_to_the_owner_of_its_folder() {
    for (asked, expected) in
        [(None, NOBODY), (Some((1234, None)), (1234, 65_534)), (Some((1234, Some(567))), (1234, 567))]
    {
        let Some(arena) = lost() else { return };
        let was = seen(&arena.path("d"));
        // A folder of root's within.
        chown(arena.path("d/sub"), Some(0), Some(7)).unwrap();
        arena.mend(&Mend { owner: asked, ..Mend::default() });
        arena.is_intact();
        for path in MADE {
            let of_root = path == "d/sub/deep" || path == "d/sub/deep/nested";
            let expected = match asked {
                None if of_root => (0, 7),
                Some((user, None)) if path == "d/sub/deep" || path == "d/sub/deep/nested" => (user, 7),
                _ => expected,
            };
            assert_eq!(owner(&arena, path), expected, "{path} {asked:?}");
        }
        assert_eq!(owner(&arena, "d/small"), NOBODY, "what is there keeps its owner");
        assert!(was.keys().all(|path| seen(&arena.path("d")).contains_key(path)));
    }
}

/// A file that is replaced keeps its owner and permissions, without set-id bits.
#[test]
fn what_is_replaced_keeps_its_owner() {
    let Some(arena) = lost() else { return };
    edit(&arena.path("d/small"), b"edited");
    fs::hard_link(arena.path("d/small"), arena.path("another name")).unwrap();
    chown(arena.path("d/small"), Some(1234), Some(567)).unwrap();
    set_mode(&arena.path("d/small"), 0o6640);
    arena.mend(&reverting());
    assert_eq!(owner(&arena, "d/small"), (1234, 567));
    assert_eq!(fs::metadata(arena.path("d/small")).unwrap().mode() & 0o7777, 0o640);
    assert_eq!(arena.read("another name"), b"edited");
}

/// Another folder gets the owner of the one around it when it is made, and all in it that of the folder.
#[test]
fn a_copy_belongs_to_the_owner_of_the_folder_around() {
    let Some(arena) = lost() else { return };
    fs::create_dir(arena.path("own")).unwrap();
    chown(arena.path("own"), Some(1234), Some(567)).unwrap();
    for (out, expected) in [("copy", NOBODY), ("own/copy", (1234, 567))] {
        let out = arena.path(out);
        arena.mend(&Mend { out: Some(&out), ..Mend::default() });
        for path in seen(&out).into_keys() {
            let meta = fs::symlink_metadata(out.join(&path)).unwrap();
            assert_eq!((meta.uid(), meta.gid()), expected, "{}", path.display());
        }
        let meta = fs::metadata(&out).unwrap();
        assert_eq!((meta.uid(), meta.gid()), expected);
    }
    assert_eq!(owner(&arena, "own"), (1234, 567));
}

/// A user other than root gives nothing away.
#[test]
fn without_root_nothing_is_given_away() {
    let Some(arena) = lost() else { return };
    as_nobody(|| drop(arena.mend_all()));
    MADE.iter().for_each(|path| assert_eq!(owner(&arena, path), NOBODY, "{path}"));
}

//! Read-only files and folders: their owner mends them, and they are read-only again.

use crate::arena::*;
use crate::denied::{as_nobody, give_away};
use fec_base::io::base::Base;
use fec_base::names::hex;
use fec_sidecar::SidecarError;
use fec_sidecar::repair::{Mend, repair};
use rustix::process::geteuid;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::time::Duration;

/// An arena of somebody's with a rotten file, a missing one and a missing folder, in folders of which all is read-only.
fn archive() -> Arena {
    let arena = Arena::furnished();
    arena.write("d/sub/deep/more/lost", &payload(9, 3000));
    arena.protect(&How::of_percent(100));
    flip(&arena.path("d/large"), 5000);
    fs::remove_file(arena.path("d/sub/tool")).unwrap();
    fs::remove_dir_all(arena.path("d/sub/deep/more")).unwrap();
    give_away(&arena);
    close(&arena, "d");
    arena
}

fn close(arena: &Arena, folder: &str) {
    set_mode(&arena.path(folder), 0o555);
    for (path, seen) in seen(&arena.path(folder)) {
        match seen.what {
            What::Folder => set_mode(&arena.path(folder).join(path), 0o555),
            What::File { .. } => set_mode(&arena.path(folder).join(path), 0o444),
            _ => {}
        }
    }
}

/// The paths that are not closed, but for those in `made`.
fn open_ones(arena: &Arena, folder: &str, made: &[&str]) -> Vec<String> {
    let is_open = |seen: &Seen| !matches!(seen.what, What::Link(_)) && seen.mode & 0o222 != 0;
    let found = seen(&arena.path(folder)).into_iter().filter(|(_, seen)| is_open(seen));
    let names = found.map(|(path, _)| path.to_str().unwrap().to_owned());
    names.filter(|name| !made.contains(&name.as_str())).collect()
}

const MADE: [&str; 3] = ["sub/tool", "sub/deep/more", "sub/deep/more/lost"];

#[test]
fn the_owner_mends_what_is_read_only() {
    let arena = archive();
    as_nobody(|| {
        arena.mend_all();
        assert!(arena.read("d/large") == payload(1, 20_481) && arena.read("d/sub/tool") == payload(4, 1024));
        assert_eq!(open_ones(&arena, "d", &MADE), [""; 0]);
        arena.is_intact();
        assert!(!arena.path("d.fecp.repairing").exists());
    });
}

/// The sidecar and its list lie in a folder that is read-only too.
#[test]
fn a_sidecar_that_is_read_only_is_mended_by_its_owner() {
    let arena = Arena::furnished();
    let within = How { output: "d/x.fecp", base: Some("d"), ..How::of_percent(100) };
    arena.protect(&within);
    let before = (arena.read("d/x.fecp"), tree(&arena.path("d")));
    flip(&arena.path("d/large"), 5000);
    flip(&arena.path("d/x.fecp"), 9000);
    fs::remove_file(arena.path("d/small")).unwrap();
    give_away(&arena);
    close(&arena, "d");
    as_nobody(|| {
        let sidecar = arena.open_at("d/x.fecp", None).unwrap();
        let base = Base::open(&arena.path("d")).unwrap();
        let mended = repair(&sidecar, &base, &Mend::default(), &context()).unwrap();
        assert!(mended.sidecar && mended.sidecar_left.is_none() && mended.failed.is_empty());
    });
    assert_eq!(open_ones(&arena, "d", &["small"]), [""; 0]);
    assert_eq!(fs::metadata(arena.path("d")).unwrap().permissions().mode() & 0o777, 0o555);
    let bare = |(sidecar, tree): (Vec<u8>, std::collections::BTreeMap<_, What>)| {
        let of = |what| match what {
            What::File { bytes, .. } => What::File { bytes, may_execute: false },
            what => what,
        };
        (sidecar, tree.into_iter().map(|(path, what)| (path, of(what))).collect::<Vec<_>>())
    };
    assert!(bare((arena.read("d/x.fecp"), tree(&arena.path("d")))) == bare(before));
}

/// A folder of another user's keeps nothing else from being mended.
#[test]
fn what_is_not_ones_own_is_named() {
    if !geteuid().is_root() {
        return println!("skipped: only root gives files away");
    }
    let arena = archive();
    chown(arena.path("d/sub"), Some(0), Some(0)).unwrap();
    as_nobody(|| {
        for dry_run in [true, false] {
            let mended = arena.try_mend(&Mend { dry_run, ..Mend::default() }).unwrap();
            assert_eq!((mended.mended.len(), mended.failed.len(), mended.is_denied), (3, 1, true));
            let cause = mended.cause.unwrap();
            assert!(matches!(cause.cause(), Some(SidecarError::ReadOnly)), "{cause}");
            assert!(cause.to_string().contains("d/sub: "), "{cause}");
        }
        assert!(arena.read("d/large") == payload(1, 20_481) && !arena.path("d/sub/tool").exists());
        assert!(arena.path("d/sub/deep/more/lost").exists());
        assert_eq!(open_ones(&arena, "d", &MADE), [""; 0]);
        assert!(!arena.path("d.fecp.repairing").exists());
    });
}

/// A sidecar of another user's is left as it is, and the files are mended by it.
#[test]
fn a_sidecar_that_may_not_be_written_mends_the_files() {
    if !geteuid().is_root() {
        return println!("skipped: only root gives files away");
    }
    for cut in [false, true] {
        let arena = archive();
        flip(&arena.path("d.fecp"), 9000);
        let damaged = arena.read("d.fecp");
        if cut {
            arena.write("d.fecp", &damaged[..damaged.len() - 10]);
            // Whoever may not write to the folder cannot make the sidecar anew.
            set_mode(arena.home.path(), 0o555);
            chown(arena.home.path(), Some(0), Some(0)).unwrap();
        }
        chown(arena.path("d.fecp"), Some(0), Some(0)).unwrap();
        set_mode(&arena.path("d.fecp"), 0o444);
        let before = arena.read("d.fecp");
        as_nobody(|| {
            let mended = arena.try_mend(&Mend::default()).unwrap();
            let left = mended.sidecar_left.expect("it is left");
            assert!(matches!(left.cause(), Some(SidecarError::ReadOnly)), "{left}");
            assert!(!mended.sidecar && arena.read("d.fecp") == before);
            // Without a list what is read-only is left.
            assert_eq!((mended.failed.is_empty(), arena.path("d/sub/tool").exists()), (!cut, !cut));
        });
    }
}

/// Files are replaced in one step where no list can be written. A file that this would change otherwise is left.
#[test]
fn without_a_list_files_are_replaced() {
    if !geteuid().is_root() {
        return println!("skipped: only root gives files away");
    }
    let arena = Arena::furnished();
    arena.protect(&How::of_percent(100));
    for path in ["d/large", "d/sub/twin", "d/sub/deep/nested"] {
        flip(&arena.path(path), 4100);
    }
    fs::remove_file(arena.path("d/sub/tool")).unwrap();
    give_away(&arena);
    fs::hard_link(arena.path("d/sub/twin"), arena.path("d/void/another name")).unwrap();
    set_mode(&arena.path("d/sub/deep"), 0o555);
    chown(arena.home.path(), Some(0), Some(0)).unwrap();
    set_mode(arena.home.path(), 0o755);
    let was = seen(&arena.path("d"));
    as_nobody(|| {
        let mended = arena.try_mend(&Mend::default()).unwrap();
        assert_eq!((mended.mended.len(), mended.failed.len(), mended.is_denied), (2, 2, true));
        let cause = mended.cause.unwrap();
        assert!(matches!(cause.cause(), Some(SidecarError::NoList)), "{cause}");
    });
    let now = seen(&arena.path("d"));
    let large = Path::new("large");
    assert!(arena.read("d/large") == payload(1, 20_481) && arena.read("d/sub/tool") == payload(4, 1024));
    assert!(now[large].inode != was[large].inode && now[large].modified == was[large].modified);
    for path in ["sub/twin", "sub/deep/nested", "sub/deep"] {
        assert_eq!(now[Path::new(path)], was[Path::new(path)], "{path}");
    }
    arena.nothing_temporary();
}

/// A repair that was killed left a folder and a file writable. The next one closes them, and nothing else.
#[test]
fn what_a_killed_repair_left_writable_is_closed() {
    let arena = archive();
    let sidecar = arena.open(None).unwrap();
    let entry = |path: &str| {
        sidecar.catalog().entries.iter().position(|entry| *entry.path == *path.as_bytes()).expect("an entry")
    };
    let sub = entry("d/sub");
    let (large, small) = (entry("d/large"), entry("d/small"));
    // Somebody opened this one before.
    set_mode(&arena.path("d/small"), 0o644);
    std::thread::sleep(Duration::from_millis(20));
    // A folder is named by an entry in it, too; the others name no path, or nothing.
    let lines = [
        format!("-{sub}:5:555"),
        format!("-{}:1:555", entry("d/void")),
        format!("-{large}:7:444"),
        format!("-{small}:7:444"),
        format!("-{}:9:500", entry("d/sub/twin")),
        format!("-{sub}:3:400"),
        format!("-{sub}:99:400"),
        "-99999:1:400".to_owned(),
    ];
    let list = format!("fec repair of {}\n{}\n", hex(&arena.root()), lines.join("\n"));
    arena.write("d.fecp.repairing", list.as_bytes());
    if geteuid().is_root() {
        chown(arena.path("d.fecp.repairing"), Some(65_534), None).unwrap();
    }
    std::thread::sleep(Duration::from_millis(20));
    for (path, mode) in [("d", 0o755), ("d/sub", 0o755), ("d/large", 0o644), ("d/sub/twin", 0o777)] {
        fs::set_permissions(arena.path(path), Permissions::from_mode(mode)).unwrap();
    }
    as_nobody(|| {
        arena.try_mend(&Mend { dry_run: true, ..Mend::default() }).unwrap();
        arena.mend_all();
    });
    let mode = |path: &str| fs::metadata(arena.path(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("d"), mode("d/sub"), mode("d/large")), (0o555, 0o555, 0o444));
    assert_eq!((mode("d/small"), mode("d/sub/twin")), (0o644, 0o777));
    assert!(!arena.path("d.fecp.repairing").exists());
}

/// A link in the place of a folder is not followed, and what it leads to keeps its permissions.
#[test]
fn nothing_is_opened_through_a_link() {
    let arena = archive();
    let victim = arena.path("victim");
    fs::create_dir(&victim).unwrap();
    fs::remove_dir_all(arena.path("d/sub")).unwrap();
    symlink("../victim", arena.path("d/sub")).unwrap();
    if geteuid().is_root() {
        chown(&victim, Some(65_534), None).unwrap();
    }
    set_mode(&victim, 0o555);
    as_nobody(|| drop(arena.try_mend(&Mend::default())));
    assert_eq!(fs::metadata(&victim).unwrap().permissions().mode() & 0o777, 0o555);
    assert_eq!(fs::read_dir(&victim).unwrap().count(), 0);
}

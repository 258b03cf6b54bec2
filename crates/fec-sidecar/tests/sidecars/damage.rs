//! Files that rot, vanish or are edited: the findings, and the result of repair.

use crate::arena::*;
use fec_base::io::base::Base;
use fec_sidecar::examine::{Examined, Scope, State, examine};
use fec_sidecar::repair::Mend;
use fec_sidecar::{Sidecar, SidecarError};
use fecfile::{Class, Context, Settings};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// All entries without their change times, which only the system can set.
fn lasting(folder: &Path) -> BTreeMap<PathBuf, Seen> {
    let mut all = seen(folder);
    all.values_mut().for_each(|seen| seen.changed = (0, 0));
    all
}

/// The findings with this number of threads.
fn examined_by(arena: &Arena, threads: usize) -> (Sidecar, Examined) {
    let sidecar = arena.open(None).expect("it opens");
    let context = Context::new(Settings { threads, ..context().settings });
    let found = examine(&sidecar, &arena.base(), Scope::All, &context).expect("it is examined");
    (sidecar, found)
}

/// A bit flips without a write: repair computes the block and writes it in place, and nothing else.
#[test]
fn rot_is_mended_where_it_is() {
    for (path, at, len) in [
        ("d/large", 0, 1024),
        ("d/large", 19 * 1024 + 1023, 1024),
        ("d/large", 20_480, 1),
        ("d/small", 699, 700),
        ("d/sub/deep/nested", 4999, 904),
        ("d/sub/tool", 0, 1024),
    ] {
        let arena = Arena::furnished();
        arena.protect(&How::default());
        let before = lasting(arena.home.path());
        flip(&arena.path(path), at);
        assert_eq!(arena.states(), [pair(path, State::Rotten)]);
        let start = at / 1024 * 1024;
        assert_eq!(arena.damage(path), [(start, start + len)]);
        let would = arena.leaves(&Mend { dry_run: true, ..Mend::default() });
        let mended = arena.mend_all();
        assert_eq!((mended.written, &mended.mended), (len, &would.mended), "{path}");
        assert_eq!(path_of(&arena.open(None).unwrap(), mended.mended[0]), path);
        assert!(lasting(arena.home.path()) == before, "{path}: content, mode, time or inode is another");
        arena.is_intact();
    }
}

/// Permissions that a user changed since stay when a rotten file is mended in place.
#[test]
fn rot_is_mended_under_the_permissions_of_today() {
    let arena = Arena::furnished();
    arena.protect(&How::default());
    for (path, mode) in [("d/large", 0o600), ("d/sub/tool", 0o711)] {
        set_mode(&arena.path(path), mode);
        flip(&arena.path(path), 5);
        arena.mend_all();
        assert_eq!(fs::metadata(arena.path(path)).unwrap().mode() & 0o7777, mode, "{path}");
    }
    // Only the owner's right to execute is recorded as content, and comes back with a revert.
    set_mode(&arena.path("d/sub/tool"), 0o640);
    flip(&arena.path("d/sub/tool"), 5);
    arena.mend(&reverting());
    assert_eq!(fs::metadata(arena.path("d/sub/tool")).unwrap().mode() & 0o100, 0o100);
    arena.is_intact();
}

/// The ends of two files share a block. When one file is gone, the other's end cannot be checked and is not called
/// damaged.
#[test]
fn the_end_of_a_file_is_not_blamed_for_what_shares_its_block() {
    let arena = Arena::new();
    arena.write("d/one", &payload(1, 100 * 1024 + 300));
    arena.write("d/two", &payload(2, 80 * 1024 + 400));
    // With as many recovery shards as originals, all originals may be lost at once.
    let protected = arena.protect(&How::of_percent(200));
    assert_eq!(protected.spare.one_piece, protected.code.0 as u64 * u64::from(protected.sets) * 1024);
    flip(&arena.path("d/one"), 20);
    fs::remove_file(arena.path("d/two")).unwrap();
    assert_eq!(arena.damage("d/one"), [(0, 1024)]);
    arena.mend_all();
    // If the other file is intact, the end can be checked.
    flip(&arena.path("d/one"), 20);
    flip(&arena.path("d/one"), 100 * 1024 + 5);
    assert_eq!(arena.damage("d/one"), [(0, 1024), (102_400, 102_700)]);
    // If both ends are damaged, the file without other damage is named.
    flip(&arena.path("d/two"), 80 * 1024);
    assert_eq!(arena.damage("d/one"), [(0, 1024)]);
    assert_eq!(arena.damage("d/two"), [(81_920, 82_320)]);
    arena.mend_all();
    arena.is_intact();
}

/// Deleted entries come back: bytes, kinds, permissions, times, and the names of empty folders.
#[test]
fn what_was_deleted_comes_back() {
    let arena = Arena::furnished();
    for (path, mode) in [("d/void", 0o700), ("d/small", 0o640), ("d/large", 0o400)] {
        set_mode(&arena.path(path), mode);
    }
    age(&arena.path("d/void"), 5);
    age(&arena.path("d"), 6);
    arena.protect(&How::of_percent(100));
    let forget_inodes = |mut all: BTreeMap<PathBuf, Seen>| {
        all.values_mut().for_each(|seen| (seen.inode, seen.changed) = (0, (0, 0)));
        all
    };
    let before = forget_inodes(seen(&arena.path("d")));
    for gone in [&["d/small"][..], &["d/sub"], &["d/void", "d/link", "d/empty"], &["d"]] {
        for path in gone.iter().map(|path| arena.path(path)) {
            if path.is_dir() { fs::remove_dir_all(&path).unwrap() } else { fs::remove_file(&path).unwrap() }
        }
        let found = arena.states();
        assert!(found.iter().all(|(_, state)| *state == State::Missing), "{found:?}");
        assert!(gone.iter().all(|gone| found.contains(&pair(gone, State::Missing))), "{found:?}");
        arena.mend_all();
        let mut after = forget_inodes(seen(&arena.path("d")));
        // A folder that stayed gets the time at which entries were made in it.
        for folder in ["", "sub"] {
            after.entry(folder.into()).and_modify(|seen| seen.modified = before[Path::new("sub")].modified);
        }
        assert!(after == before, "{gone:?}");
        arena.is_intact();
    }
}

/// An edit is not damage: it stays until a repair reverts it.
#[test]
fn what_was_edited_stays_until_it_is_reverted() {
    let longer = [payload(2, 700), payload(8, 3000)].concat();
    type Change<'a> = (&'a str, &'a dyn Fn(&Path));
    let changes: [Change<'_>; 6] = [
        ("same length", &|path| edit(path, &payload(9, 700))),
        ("shorter", &|path| edit(path, b"")),
        ("longer", &|path| edit(path, &longer)),
        ("cut, at the time of old", &|path| {
            let modified = modified(path);
            let file = File::options().write(true).open(path).unwrap();
            file.set_len(300).and_then(|()| file.set_modified(modified)).unwrap();
        }),
        ("longer, at the time of old", &|path| {
            let modified = modified(path);
            fs::write(path, &longer).unwrap();
            File::open(path).and_then(|file| file.set_modified(modified)).unwrap();
        }),
        ("another file", &|path| {
            fs::remove_file(path).unwrap();
            edit(path, b"another");
        }),
    ];
    for (name, change) in changes {
        let arena = Arena::furnished();
        arena.protect(&How::default());
        let (before, time) = (tree(arena.home.path()), modified(&arena.path("d/small")));
        change(&arena.path("d/small"));
        assert_eq!(arena.states(), [pair("d/small", State::Edited)], "{name}");
        assert_eq!(arena.leaves(&Mend::default()).left.len(), 1, "{name}");
        // Damage beside the edit is mended all the same.
        flip(&arena.path("d/large"), 3);
        let left = tree(&arena.path("d"))[Path::new("small")].clone();
        let mended = arena.mend(&Mend::default());
        assert_eq!((mended.left.len(), mended.mended.len()), (1, 1), "{name}");
        assert!(arena.read("d/large") == payload(1, 20_481));
        assert!(tree(&arena.path("d"))[Path::new("small")] == left, "{name}");
        assert_eq!(arena.leaves(&Mend { dry_run: true, ..reverting() }).mended.len(), 1, "{name}");
        assert!(arena.mend(&reverting()).left.is_empty());
        assert!(tree(arena.home.path()) == before, "{name}");
        assert_eq!(modified(&arena.path("d/small")), time, "{name}");
        arena.is_intact();
    }
}

/// Changed times and permissions are no damage, and stay.
#[test]
fn what_was_only_touched_is_intact() {
    let arena = Arena::furnished();
    arena.protect(&How::default());
    assert_eq!(arena.examine().1.touched, 0);
    age(&arena.path("d/small"), 999);
    set_mode(&arena.path("d/large"), 0o600);
    arena.is_intact();
    assert_eq!(arena.examine().1.touched, 1, "permissions beyond the right to execute are not compared");
    age(&arena.path("d/sub"), 999);
    let mended = arena.leaves(&reverting());
    assert!(mended.mended.is_empty() && mended.left.is_empty());
}

#[test]
fn files_that_changed_places_are_put_back() {
    let arena = Arena::furnished();
    arena.protect(&How::of_percent(50));
    let before = tree(arena.home.path());
    fs::rename(arena.path("d/small"), arena.path("d/x")).unwrap();
    fs::rename(arena.path("d/sub/tool"), arena.path("d/small")).unwrap();
    fs::rename(arena.path("d/x"), arena.path("d/sub/tool")).unwrap();
    let edited = ["d/small", "d/sub/tool"].map(|path| pair(path, State::Edited));
    assert_eq!(arena.states(), edited);
    assert_eq!(arena.leaves(&Mend::default()).left.len(), 2);
    arena.mend(&reverting());
    assert!(tree(arena.home.path()) == before);
    arena.is_intact();
}

/// Inserted or removed bytes move the rest of the file. The moved blocks are found and count as intact: only the blocks
/// that were hit are lost, with any number of threads.
#[test]
fn what_has_shifted_is_found_where_it_is() {
    let bytes = payload(1, 150 * 1024);
    let insert = |at: usize, len: usize| [&bytes[..at], &payload(7, len), &bytes[at..]].concat();
    let cut = |at: usize, len: usize| [&bytes[..at], &bytes[at + len..]].concat();
    let longer = insert(20_000, 3);
    let both = [&longer[..100_003], &longer[100_008..]].concat();
    for (name, changed, lost) in [
        ("a byte in front", insert(0, 1), 0),
        ("1000 bytes within", insert(50_000, 1000), 1),
        ("700 bytes cut out", cut(70_000, 700), 2),
        ("the first byte cut off", cut(0, 1), 1),
        ("inserted and cut out", both, 2),
    ] {
        let arena = Arena::new();
        arena.write("d/f", &bytes);
        // Eight of 150 blocks may be lost, and many more have moved.
        arena.protect(&How::of_percent(5));
        edit(&arena.path("d/f"), &changed);
        for threads in [1, 4] {
            let (sidecar, found) = examined_by(&arena, threads);
            assert_eq!(states_of(&sidecar, &found), [pair("d/f", State::Shifted)], "{name}");
            assert_eq!(found.margin.used, lost, "{name}, {threads} threads");
        }
        assert_eq!(arena.leaves(&Mend::default()).left.len(), 1);
        arena.mend(&reverting());
        assert!(arena.read("d/f") == bytes, "{name}");
        arena.is_intact();
    }
}

/// A renamed file is known by its content. It keeps its new name, and helps to mend other files.
#[test]
fn what_was_renamed_is_known_again() {
    let arena = Arena::new();
    arena.write("d/a", &payload(1, 30 * 1024 + 300));
    arena.write("d/b", &payload(2, 30 * 1024));
    // Four of 61 blocks may be lost.
    arena.protect(&How::of_percent(5));
    fs::rename(arena.path("d/a"), arena.path("d/away")).unwrap();
    flip(&arena.path("d/b"), 100);
    flip(&arena.path("d/b"), 20_000);
    for threads in [1, 4] {
        let (sidecar, found) = examined_by(&arena, threads);
        assert_eq!(
            states_of(&sidecar, &found),
            [pair("d/a", State::Moved), pair("d/b", State::Rotten)],
            "{threads} threads"
        );
        assert_eq!(found.entries[0].moved_to.as_deref(), Some(&b"d/away"[..]));
        assert_eq!((found.margin.used, found.unprotected.count), (2, 0), "it is known, and so protected");
    }
    assert_eq!(arena.mend(&Mend::default()).left.len(), 1);
    assert!(arena.read("d/b") == payload(2, 30 * 1024) && !arena.path("d/a").exists());
    arena.mend(&reverting());
    assert!(arena.read("d/a") == payload(1, 30 * 1024 + 300));
    arena.is_intact();
}

/// A file was cut into two: its parts are enough to make it again.
#[test]
fn a_file_is_made_of_its_parts() {
    let arena = Arena::new();
    let bytes = payload(1, 150 * 1024);
    arena.write("d/f", &bytes);
    arena.protect(&How::of_percent(5));
    fs::remove_file(arena.path("d/f")).unwrap();
    arena.write("d/f.001", &bytes[..65_536]);
    arena.write("d/f.002", &bytes[65_536..]);
    assert_eq!(arena.states(), [pair("d/f", State::Missing)]);
    arena.mend_all();
    assert!(arena.read("d/f") == bytes);
    arena.is_intact();
}

/// All blocks of the file are equal, but none is mistaken for another: a flipped bit is found and mended.
#[test]
fn one_bit_of_a_file_of_equal_bytes_is_mended() {
    let arena = Arena::new();
    let bytes = vec![0xff; 150 * 1024];
    arena.write("d/f", &bytes);
    arena.protect(&How::of_percent(5));
    flip(&arena.path("d/f"), 20_000);
    assert_eq!(arena.states(), [pair("d/f", State::Rotten)]);
    assert_eq!(arena.damage("d/f"), [(19_456, 20_480)]);
    arena.mend_all();
    assert!(arena.read("d/f") == bytes);
    arena.is_intact();
}

/// A set of 40 originals and 20 recovery shards: any 20 of them may be lost, in files and sidecar. With one more lost,
/// nothing is changed.
#[test]
fn as_much_as_was_promised_may_be_lost_and_no_more() {
    for (name, lost, is_file_gone) in [
        ("rot", 20, false),
        ("half rot, and a file of ten blocks", 10, true),
        ("nothing but the file", 0, true),
    ] {
        let arena = Arena::new();
        arena.write("d/a", &payload(1, 30 * 1024));
        arena.write("d/b", &payload(2, 10 * 1024));
        let protected = arena.protect(&How::of_percent(50));
        assert_eq!((protected.spare.one_piece, protected.recovery_len), (20 * 1024, 20 * 1024));
        let before = tree(arena.home.path());
        let damage = |nth: u64| flip(&arena.path("d/a"), nth * 7 % 30 * 1024);
        (0..lost).for_each(damage);
        if is_file_gone {
            fs::remove_file(arena.path("d/b")).unwrap();
        }
        let used = lost + if is_file_gone { 10 } else { 0 };
        let margin = arena.examine().1.margin;
        assert_eq!(
            (margin.used, margin.of, margin.spare.one_piece),
            (used, 20, (20 - used) * 1024),
            "{name}"
        );
        arena.leaves(&Mend { dry_run: true, ..Mend::default() });
        // Enough further blocks rot to exceed the limit by one.
        let rotten = arena.read("d/a");
        (lost..21 - used + lost).for_each(damage);
        let (_, found) = arena.examine();
        assert!(!found.is_mendable(), "{name}");
        assert_eq!((found.margin.lost_bytes, found.margin.spare.one_piece), (21 * 1024, 0), "{name}");
        let out = arena.path("new");
        for how in [
            Mend::default(),
            reverting(),
            Mend { dry_run: true, ..Mend::default() },
            Mend { out: Some(&out), ..Mend::default() },
        ] {
            let said = arena.refuses(Class::Lost, || arena.try_mend(&how));
            assert!(said.contains("21 KiB are lost beyond repair"), "{name}: {said}");
        }
        rot(&arena.path("d/a"), 0, &rotten);
        arena.mend_all();
        assert!(tree(arena.home.path()) == before, "{name}");
        arena.is_intact();
    }
}

/// The first of two groups has lost too much. Files in the other one are mended, and the rest stays as it is.
#[test]
fn what_can_be_mended_is_with_partial() {
    let arena = Arena::new();
    arena.write("d/a", &payload(1, 125 * 1024));
    let protected = arena.protect(&How::default());
    assert_eq!((protected.code, protected.sets), ((125, 20), 1));
    arena.write("d/b", &payload(2, 15 * 1024));
    arena.write("d/c", &payload(3, 9 * 1024 + 100));
    symlink("a", arena.path("d/link")).unwrap();
    arena.update(&How::default());
    (0..21).for_each(|nth| flip(&arena.path("d/a"), nth * 2 * 1024));
    let rotten = arena.read("d/a");
    let before = seen(&arena.path("d"));
    flip(&arena.path("d/b"), 100);
    fs::remove_file(arena.path("d/link")).unwrap();
    arena.refuses(Class::Lost, || arena.try_mend(&Mend::default()));
    let partial = Mend { partial: true, ..Mend::default() };
    let mended = arena.try_mend(&partial).unwrap();
    let names: Vec<_> =
        mended.failed.iter().map(|entry| path_of(&arena.open(None).unwrap(), *entry)).collect();
    assert_eq!((names, mended.found.margin.lost_sets), (vec!["d/a".to_owned()], 1));
    assert!(arena.read("d/a") == rotten, "what is not mended stays as it is");
    let after = seen(&arena.path("d"));
    assert_eq!(after[Path::new("a")], before[Path::new("a")], "its times too: rot is no edit");
    assert!(!arena.path("d.fecp.repairing").exists(), "nothing is half mended");
    assert!(arena.read("d/b") == payload(2, 15 * 1024));
    assert_eq!(fs::read_link(arena.path("d/link")).unwrap(), Path::new("a"));
    assert_eq!(arena.states(), [pair("d/a", State::Rotten)]);
    // A file that is gone and cannot be made whole does not appear.
    fs::remove_file(arena.path("d/a")).unwrap();
    assert_eq!(arena.try_mend(&partial).unwrap().failed.len(), 1);
    assert!(!arena.path("d/a").exists());
    arena.nothing_temporary();
}

/// A file that is mended in part stays known as such: a later repair ends it, and takes it for no edit.
#[test]
fn what_is_mended_in_part_is_no_edit() {
    let arena = Arena::new();
    let whole = payload(1, 135 * 1024);
    arena.write("d/a", &whole[..125 * 1024]);
    arena.protect(&How::default());
    arena.write("d/a", &whole);
    age(&arena.path("d/a"), 1);
    let root = arena.update(&How::default()).sidecar.root;
    // The first group has lost 21 blocks of 20, and the second, of what was added, a single one.
    (0..21).for_each(|nth| flip(&arena.path("d/a"), nth * 2 * 1024));
    flip(&arena.path("d/a"), 130 * 1024);
    let known = |how: &Mend<'_>| {
        let e = arena.open(None).unwrap().metadata_root().expect("it is not sealed");
        let sidecar =
            Sidecar::open_known(&arena.path("d.fecp"), root, &[e], &context().settings).expect("it opens");
        fec_sidecar::repair::repair(&sidecar, &arena.base(), how, &context())
    };
    let tick = || std::thread::sleep(Duration::from_millis(20));
    tick();
    set_mode(&arena.path("d.fecp"), 0o644);
    for turn in 0..2 {
        tick();
        let mended = known(&Mend { partial: true, ..Mend::default() }).unwrap();
        assert_eq!(mended.failed.len(), 1, "turn {turn}");
        assert!(arena.read("d/a")[130 * 1024..][..1024] == whole[130 * 1024..][..1024]);
        assert!(arena.path("d.fecp.repairing").exists(), "turn {turn}");
        // An update takes it for no edit either.
        arena.refuses_update(&How::forced(), Class::Mendable);
    }
    // Enough of it comes back from elsewhere.
    tick();
    flip(&arena.path("d/a"), 0);
    assert!(known(&Mend::default()).unwrap().failed.is_empty());
    assert!(arena.read("d/a") == whole && !arena.path("d.fecp.repairing").exists());
}

/// The copy is written elsewhere in its old state, and nothing changes in place.
#[test]
fn a_whole_copy_can_be_made_elsewhere() {
    let arena = Arena::furnished();
    fs::hard_link(arena.path("d/large"), arena.path("d/void/again")).unwrap();
    arena.protect(&How::of_percent(100));
    let before = tree(&arena.path("d"));
    flip(&arena.path("d/large"), 2000);
    edit(&arena.path("d/small"), &payload(9, 5000));
    fs::remove_dir_all(arena.path("d/sub/deep")).unwrap();
    fs::remove_file(arena.path("d/way")).unwrap();
    let damaged = seen(&arena.path("d"));
    let sidecar = arena.read("d.fecp");
    let out = arena.path("new");
    let elsewhere = Mend { out: Some(&out), ..Mend::default() };
    let mended = arena.mend(&elsewhere);
    assert!(mended.left_out.is_empty());
    assert!(seen(&arena.path("d")) == damaged && arena.read("d.fecp") == sidecar);
    assert!(tree(&arena.path("new/d")) == before);
    let inode = |path: &str| fs::metadata(arena.path(path)).unwrap().ino();
    assert_eq!(inode("new/d/large"), inode("new/d/void/again"), "one file, two names");
    let base = Base::open(&out).unwrap();
    let found = examine(&arena.open(None).unwrap(), &base, Scope::All, &context()).unwrap();
    assert!(found.is_intact());
    assert_eq!(fs::read_dir(&out).unwrap().count(), 1);
    // A folder that holds something already is not written into.
    let error = arena.try_mend(&elsewhere).expect_err("it is full");
    assert!(matches!(error.cause(), Some(SidecarError::OutputNotEmpty)), "{error}");
}

/// Empty files, and entries without bytes, come back without recovery data.
#[test]
fn what_holds_no_bytes_is_mended_too() {
    let arena = Arena::new();
    arena.write("d/empty", b"");
    fs::create_dir(arena.path("d/void")).unwrap();
    symlink("void", arena.path("d/link")).unwrap();
    arena.protect(&How::default());
    let before = tree(arena.home.path());
    fs::remove_dir_all(arena.path("d")).unwrap();
    arena.mend_all();
    assert!(tree(arena.home.path()) == before);
    edit(&arena.path("d/empty"), b"full");
    fs::remove_file(arena.path("d/link")).unwrap();
    symlink("elsewhere", arena.path("d/link")).unwrap();
    assert_eq!(arena.states(), ["d/empty", "d/link"].map(|path| pair(path, State::Edited)));
    arena.mend(&reverting());
    assert!(tree(arena.home.path()) == before);
    arena.is_intact();
}

/// A file that is examined in several parts, with damage at their borders and with added bytes.
#[test]
fn a_large_file_is_mended_anywhere() {
    let arena = Arena::new();
    let (part, len) = (4 << 20, (8 << 20) + 5001);
    let bytes = payload(1, len as usize);
    let path = arena.write("d/f", &bytes);
    arena.protect(&How::of_percent(2));
    for at in [0, part - 1, part, 2 * part - 1, 2 * part, len - 1] {
        flip(&path, at);
        let start = at / 4096 * 4096;
        assert_eq!(arena.states(), [pair("d/f", State::Rotten)]);
        assert_eq!(arena.damage("d/f"), [(start, (start + 4096).min(len))]);
        arena.mend_all();
        assert!(arena.read("d/f") == bytes, "{at}");
    }
    File::options().write(true).open(&path).and_then(|file| file.write_all_at(b"more", len)).unwrap();
    assert_eq!(arena.states(), [pair("d/f", State::Edited)]);
    arena.mend(&reverting());
    assert!(arena.read("d/f") == bytes);
}

/// Whole files go to the copy, even if a file that shares a block with them is lost.
#[test]
fn a_copy_has_all_that_is_whole() {
    let arena = Arena::furnished();
    arena.protect(&How::of_percent(1));
    for path in ["d/large", "d/sub/twin", "d/sub/deep/nested"] {
        fs::remove_file(arena.path(path)).unwrap();
    }
    let whole = tree(&arena.path("d"));
    let out = arena.path("out");
    let mended = arena.try_mend(&Mend { out: Some(&out), partial: true, ..Mend::default() }).unwrap();
    assert_eq!(mended.failed.len(), 3);
    let copied = tree(&arena.path("out/d"));
    assert!(whole.iter().all(|(path, what)| copied.get(path) == Some(what)));
    assert!(!copied.contains_key(Path::new("large")));
}

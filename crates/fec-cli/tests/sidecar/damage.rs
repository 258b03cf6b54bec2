//! Files that rot, vanish or are edited: the report of verify, and the result of repair.

use super::*;

/// All entries without their change times, which only the system can set.
fn lasting(folder: &Path) -> BTreeMap<PathBuf, Seen> {
    let mut all = seen(folder);
    all.values_mut().for_each(|seen| seen.changed = (0, 0));
    all
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
        let arena = Arena::new();
        furnish(&arena);
        protect(&arena, &["d"]);
        let before = lasting(&arena.work);
        flip(&arena.path(path), at);
        assert_eq!(states(&arena, &["d.fecp"], 1), [pair(path, "rotten")]);
        let report = json(&arena.expect(["verify", "d.fecp", "--json"], 1));
        let (start, end) = (at / 1024 * 1024, at / 1024 * 1024 + len);
        assert_eq!(report["files"][0]["damage"], serde_json::json!([[start, end]]));
        let report = json(&arena.expect(["repair", "d.fecp", "--json"], 0));
        assert_eq!((&report["written_bytes"], &report["mended"][0]["path"]), (&len.into(), &path.into()));
        assert!(lasting(&arena.work) == before, "{path}: content, mode, time or inode is another");
        is_intact(&arena, "d.fecp");
    }
}

/// The ends of two files share a block. When one file is gone, the other's end cannot be checked and is not called
/// damaged.
#[test]
fn the_end_of_a_file_is_not_blamed_for_what_shares_its_block() {
    let arena = Arena::new();
    arena.write("d/one", &payload(1, 100 * 1024 + 300));
    arena.write("d/two", &payload(2, 80 * 1024 + 400));
    protect(&arena, &["d", "-r", "200%"]);
    let damage = |path: &str| {
        let report = json(&arena.expect(["verify", "d.fecp", "--json"], 1));
        let files = report["files"].as_array().unwrap();
        files.iter().find(|file| file["path"] == path).map(|file| file["damage"].clone())
    };
    flip(&arena.path("d/one"), 20);
    fs::remove_file(arena.path("d/two")).unwrap();
    assert_eq!(damage("d/one"), Some(serde_json::json!([[0, 1024]])));
    arena.expect(["repair", "d.fecp"], 0);
    // If the other file is intact, the end can be checked.
    flip(&arena.path("d/one"), 20);
    flip(&arena.path("d/one"), 100 * 1024 + 5);
    assert_eq!(damage("d/one"), Some(serde_json::json!([[0, 1024], [102_400, 102_700]])));
    // If both ends are damaged, the file without other damage is named.
    flip(&arena.path("d/two"), 80 * 1024);
    assert_eq!(damage("d/one"), Some(serde_json::json!([[0, 1024]])));
    assert_eq!(damage("d/two"), Some(serde_json::json!([[81_920, 82_320]])));
    arena.expect(["repair", "d.fecp"], 0);
    is_intact(&arena, "d.fecp");
}

/// Deleted entries come back: bytes, kinds, permissions, times, and the names of empty folders.
#[test]
fn what_was_deleted_comes_back() {
    let arena = Arena::new();
    furnish(&arena);
    set_mode(&arena.path("d/void"), 0o700);
    set_mode(&arena.path("d/small"), 0o640);
    set_mode(&arena.path("d/large"), 0o400);
    age(&arena.path("d/void"), 5);
    age(&arena.path("d"), 6);
    protect(&arena, &["d", "-r", "100%"]);
    let forget_inodes = |mut all: BTreeMap<PathBuf, Seen>| {
        all.retain(|_, seen| {
            (seen.inode, seen.changed) = (0, (0, 0));
            true
        });
        all
    };
    let before = forget_inodes(seen(&arena.path("d")));
    for gone in [&["d/small"][..], &["d/sub"], &["d/void", "d/link", "d/empty"], &["d"]] {
        for path in gone.iter().map(|path| arena.path(path)) {
            if path.is_dir() { fs::remove_dir_all(&path).unwrap() } else { fs::remove_file(&path).unwrap() }
        }
        let found = states(&arena, &["d.fecp"], 1);
        assert!(found.iter().all(|(_, state)| state == "missing"), "{found:?}");
        assert!(gone.iter().all(|gone| found.contains(&pair(gone, "missing"))), "{found:?}");
        arena.expect(["repair", "d.fecp"], 0);
        let mut after = forget_inodes(seen(&arena.path("d")));
        // A folder that stayed gets the time at which entries were made in it.
        for folder in ["", "sub"] {
            after.entry(folder.into()).and_modify(|seen| seen.modified = before[Path::new("sub")].modified);
        }
        assert!(after == before, "{gone:?}");
        is_intact(&arena, "d.fecp");
        arena.nothing_temporary();
    }
}

/// An edit is not damage: it stays until --revert undoes it.
#[test]
fn what_was_edited_stays_until_it_is_reverted() {
    let longer = [payload(2, 700), payload(8, 3000)].concat();
    type Change<'a> = (&'a str, &'a dyn Fn(&Path));
    let changes: [Change<'_>; 6] = [
        ("same length", &|path| edit(path, &payload(9, 700))),
        ("shorter", &|path| edit(path, b"")),
        ("longer", &|path| edit(path, &longer)),
        ("cut, at the time of old", &|path| {
            let modified = fs::metadata(path).unwrap().modified().unwrap();
            let file = File::options().write(true).open(path).unwrap();
            file.set_len(300).unwrap();
            file.set_modified(modified).unwrap();
        }),
        ("executable", &|path| set_mode(path, 0o744)),
        ("another file", &|path| {
            fs::remove_file(path).unwrap();
            edit(path, b"another");
        }),
    ];
    for (name, change) in changes {
        let arena = Arena::new();
        furnish(&arena);
        protect(&arena, &["d"]);
        let (before, time) =
            (tree(&arena.work), fs::metadata(arena.path("d/small")).unwrap().modified().unwrap());
        change(&arena.path("d/small"));
        assert_eq!(states(&arena, &["d.fecp"], 1), [pair("d/small", "edited")], "{name}");
        let said = changes_nothing(&arena, &["repair", "d.fecp"], 1);
        assert!(said.contains("--revert"), "{name}: {said}");
        // Damage beside the edit is mended all the same.
        flip(&arena.path("d/large"), 3);
        let left = tree(&arena.path("d"))[Path::new("small")].clone();
        arena.expect(["repair", "d.fecp"], 1);
        assert!(arena.read("d/large") == payload(1, 20_481));
        assert!(tree(&arena.path("d"))[Path::new("small")] == left, "{name}");
        changes_nothing(&arena, &["repair", "d.fecp", "--revert", "-n"], 1);
        arena.expect(["repair", "d.fecp", "--revert"], 0);
        assert!(tree(&arena.work) == before, "{name}");
        assert_eq!(fs::metadata(arena.path("d/small")).unwrap().modified().unwrap(), time, "{name}");
        is_intact(&arena, "d.fecp");
    }
}

/// Changed times and permissions are no damage, and stay.
#[test]
fn what_was_only_touched_is_intact() {
    let arena = Arena::new();
    furnish(&arena);
    protect(&arena, &["d"]);
    age(&arena.path("d/small"), 999);
    set_mode(&arena.path("d/large"), 0o600);
    age(&arena.path("d/sub"), 999);
    is_intact(&arena, "d.fecp");
    changes_nothing(&arena, &["repair", "d.fecp", "--revert"], 0);
}

#[test]
fn files_that_changed_places_are_put_back() {
    let arena = Arena::new();
    furnish(&arena);
    protect(&arena, &["d", "-r", "50%"]);
    let before = tree(&arena.work);
    fs::rename(arena.path("d/small"), arena.path("d/x")).unwrap();
    fs::rename(arena.path("d/sub/tool"), arena.path("d/small")).unwrap();
    fs::rename(arena.path("d/x"), arena.path("d/sub/tool")).unwrap();
    assert_eq!(states(&arena, &["d.fecp"], 1), [pair("d/small", "edited"), pair("d/sub/tool", "edited")]);
    changes_nothing(&arena, &["repair", "d.fecp"], 1);
    arena.expect(["repair", "d.fecp", "--revert"], 0);
    assert!(tree(&arena.work) == before);
    is_intact(&arena, "d.fecp");
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
        arena.write("f", &bytes);
        // Eight of 150 blocks may be lost, and many more have moved.
        protect(&arena, &["f", "-r", "5%"]);
        edit(&arena.path("f"), &changed);
        for threads in ["1", "4"] {
            assert_eq!(states(&arena, &["f.fecp", "-j", threads], 1), [pair("f", "shifted")], "{name}");
            let report = json(&arena.expect(["verify", "f.fecp", "--json", "-j", threads], 1));
            assert_eq!(report["worst_set"]["used"], lost, "{name}, -j {threads}");
        }
        changes_nothing(&arena, &["repair", "f.fecp"], 1);
        arena.expect(["repair", "f.fecp", "--revert"], 0);
        assert!(arena.read("f") == bytes, "{name}");
        is_intact(&arena, "f.fecp");
    }
}

/// A renamed file is known by its content. It keeps its new name, and helps to mend other files.
#[test]
fn what_was_renamed_is_known_again() {
    let arena = Arena::new();
    arena.write("d/a", &payload(1, 30 * 1024));
    arena.write("d/b", &payload(2, 30 * 1024));
    // Three of 60 blocks may be lost.
    protect(&arena, &["d", "-r", "5%"]);
    fs::rename(arena.path("d/a"), arena.path("d/away")).unwrap();
    flip(&arena.path("d/b"), 100);
    flip(&arena.path("d/b"), 20_000);
    for threads in ["1", "4"] {
        let found = states(&arena, &["d.fecp", "-j", threads], 1);
        assert_eq!(found, [pair("d/a", "moved"), pair("d/b", "rotten")], "-j {threads}");
    }
    let report = json(&arena.expect(["verify", "d.fecp", "--json"], 1));
    assert_eq!(report["files"][0]["moved_to"], "d/away");
    assert_eq!(report["worst_set"]["used"], 2);
    arena.expect(["repair", "d.fecp"], 1);
    assert!(arena.read("d/b") == payload(2, 30 * 1024) && !arena.path("d/a").exists());
    arena.expect(["repair", "d.fecp", "--revert"], 0);
    assert!(arena.read("d/a") == payload(1, 30 * 1024));
    is_intact(&arena, "d.fecp");
}

/// A file was cut into two: its parts are enough to make it again.
#[test]
fn a_file_is_made_of_its_parts() {
    let arena = Arena::new();
    let bytes = payload(1, 150 * 1024);
    arena.write("d/f", &bytes);
    protect(&arena, &["d", "-r", "5%"]);
    fs::remove_file(arena.path("d/f")).unwrap();
    arena.write("d/f.001", &bytes[..65_536]);
    arena.write("d/f.002", &bytes[65_536..]);
    assert_eq!(states(&arena, &["d.fecp"], 1), [pair("d/f", "missing")]);
    arena.expect(["repair", "d.fecp"], 0);
    assert!(arena.read("d/f") == bytes);
    is_intact(&arena, "d.fecp");
}

/// All blocks of the file are equal, but none is mistaken for another: a flipped bit is found and mended.
#[test]
fn one_bit_of_a_file_of_equal_bytes_is_mended() {
    let arena = Arena::new();
    let bytes = vec![0xff; 150 * 1024];
    arena.write("f", &bytes);
    protect(&arena, &["f", "-r", "5%"]);
    flip(&arena.path("f"), 20_000);
    let report = json(&arena.expect(["verify", "f.fecp", "--json"], 1));
    let file = &report["files"][0];
    assert_eq!((&file["state"], &file["damage"]), (&"rotten".into(), &serde_json::json!([[19_456, 20_480]])));
    arena.expect(["repair", "f.fecp"], 0);
    assert!(arena.read("f") == bytes);
    is_intact(&arena, "f.fecp");
}

/// A set of 40 originals and 20 recovery shards: any 20 of them may be lost, in files and sidecar. With one more lost,
/// nothing is changed.
#[test]
fn as_much_as_was_promised_may_be_lost_and_no_more() {
    let of_files = |lost: u64| (0..lost).map(|nth| (nth * 7 % 30 * 1024, false)).collect::<Vec<_>>();
    for (name, lost, is_file_gone) in [
        ("rot", 20, false),
        ("half rot, and a file of ten blocks", 10, true),
        ("nothing but the file", 0, true),
    ] {
        let arena = Arena::new();
        arena.write("d/a", &payload(1, 30 * 1024));
        arena.write("d/b", &payload(2, 10 * 1024));
        protect(&arena, &["d", "-r", "50%"]);
        let before = tree(&arena.work);
        for (at, _) in of_files(lost) {
            flip(&arena.path("d/a"), at);
        }
        if is_file_gone {
            fs::remove_file(arena.path("d/b")).unwrap();
        }
        let used = lost + if is_file_gone { 10 } else { 0 };
        let report = json(&arena.expect(["verify", "d.fecp", "--json"], 1));
        let worst = &report["worst_set"];
        assert_eq!((&worst["used"], &worst["of"]), (&used.into(), &20.into()), "{name}");
        assert_eq!(worst["one_piece_bytes"], (20 - used) * 1024, "{name}");
        changes_nothing(&arena, &["repair", "d.fecp", "-n"], 1);
        // Enough further blocks rot to exceed the limit by one.
        let rotten = arena.read("d/a");
        for nth in of_files(21 - used + lost).into_iter().skip(lost as usize) {
            flip(&arena.path("d/a"), nth.0);
        }
        let report = json(&arena.expect(["verify", "d.fecp", "--json"], 3));
        assert_eq!(
            (&report["mendable"], &report["lost_bytes"]),
            (&false.into(), &(21 * 1024).into()),
            "{name}"
        );
        for options in [&[][..], &["--revert"], &["-n"], &["-o", "new"]] {
            let said = changes_nothing(&arena, &[&["repair", "d.fecp"], options].concat(), 3);
            assert!(said.contains("lost beyond repair"), "{name}: {said}");
        }
        rot(&arena.path("d/a"), 0, &rotten);
        arena.expect(["repair", "d.fecp"], 0);
        assert!(tree(&arena.work) == before, "{name}");
        is_intact(&arena, "d.fecp");
    }
}

/// The first of two sets has lost too much. Files in the other set are mended, and the rest stays as it is.
#[test]
fn what_can_be_mended_is_with_partial() {
    let arena = Arena::new();
    arena.write("d/a", &payload(1, 125 * 1024));
    arena.write("d/b", &payload(2, 115 * 1024));
    arena.write("d/c", &payload(3, 9 * 1024 + 100));
    symlink("a", arena.path("d/link")).unwrap();
    let report = json(&arena.expect(["protect", "d", "--json"], 0));
    assert_eq!((&report["data"], &report["recovery"], &report["sets"]), (&125.into(), &20.into(), &2.into()));
    (0..21).for_each(|nth| flip(&arena.path("d/a"), nth * 2 * 1024));
    let rotten = arena.read("d/a");
    let before = seen(&arena.path("d"));
    // Position 125 lies in the second set.
    flip(&arena.path("d/b"), 100);
    fs::remove_file(arena.path("d/link")).unwrap();
    changes_nothing(&arena, &["repair", "d.fecp"], 3);
    let report = json(&arena.expect(["repair", "d.fecp", "--partial", "--json"], 3));
    assert_eq!(report["failed"], serde_json::json!([{"path": "d/a", "was": "rotten"}]));
    assert!(arena.read("d/a") == rotten, "what is not mended stays as it is");
    assert_eq!(
        seen(&arena.path("d"))[Path::new("a")],
        before[Path::new("a")],
        "its times too: rot is no edit"
    );
    assert!(!arena.path("d.fecp.repairing").exists(), "nothing is half mended");
    assert!(arena.read("d/b") == payload(2, 115 * 1024));
    assert_eq!(fs::read_link(arena.path("d/link")).unwrap(), Path::new("a"));
    assert_eq!(states(&arena, &["d.fecp"], 3), [pair("d/a", "rotten")]);
    // A file that is gone and cannot be made whole does not appear.
    fs::remove_file(arena.path("d/a")).unwrap();
    arena.expect(["repair", "d.fecp", "--partial"], 3);
    assert!(!arena.path("d/a").exists());
    arena.nothing_temporary();
}

/// A file that is mended in part stays known as such: a later repair ends it, and takes it for no edit.
#[test]
fn what_is_mended_in_part_is_no_edit() {
    let arena = Arena::new();
    arena.write("d/a", &payload(1, 125 * 1024));
    arena.write("d/b", &payload(2, 125 * 1024));
    let root = protect(&arena, &["d"]);
    // The first set of two has lost 21 blocks of 20, and the second a single one.
    (0..21).for_each(|nth| flip(&arena.path("d/a"), nth * 2 * 1024));
    flip(&arena.path("d/a"), 3 * 1024);
    make_younger(&arena, "d.fecp", "d");
    for turn in 0..2 {
        doors::tick();
        let report = json(&arena.expect(["repair", "d.fecp", "--partial", "--root", &root, "--json"], 3));
        assert_eq!(report["failed"][0]["path"], "d/a", "turn {turn}");
        assert!(arena.read("d/a")[3 * 1024..4096] == payload(1, 125 * 1024)[3 * 1024..4096]);
        assert!(arena.path("d.fecp.repairing").exists(), "turn {turn}");
    }
    // Enough of it comes back from elsewhere.
    doors::tick();
    flip(&arena.path("d/a"), 0);
    arena.expect(["repair", "d.fecp", "--root", &root], 0);
    assert!(arena.read("d/a") == payload(1, 125 * 1024) && !arena.path("d.fecp.repairing").exists());
}

/// The copy is written elsewhere in its old state, and nothing changes in place.
#[test]
fn a_whole_copy_can_be_made_elsewhere() {
    let arena = Arena::new();
    furnish(&arena);
    fs::hard_link(arena.path("d/large"), arena.path("d/void/again")).unwrap();
    protect(&arena, &["d", "-r", "100%"]);
    let before = tree(&arena.path("d"));
    flip(&arena.path("d/large"), 2000);
    edit(&arena.path("d/small"), &payload(9, 5000));
    fs::remove_dir_all(arena.path("d/sub/deep")).unwrap();
    fs::remove_file(arena.path("d/way")).unwrap();
    let damaged = seen(&arena.path("d"));
    let sidecar = arena.read("d.fecp");
    arena.expect(["repair", "d.fecp", "-o", "new"], 0);
    assert!(seen(&arena.path("d")) == damaged && arena.read("d.fecp") == sidecar);
    assert!(tree(&arena.path("new/d")) == before);
    let inode = |path: &str| fs::metadata(arena.path(path)).unwrap().ino();
    assert_eq!(inode("new/d/large"), inode("new/d/void/again"), "one file, two names");
    assert_eq!(states(&arena, &["d.fecp", "--base", "new"], 0), []);
    assert_eq!(common::listing(&arena.path("new")), ["d"]);
    arena.nothing_temporary();
}

/// Empty files, and entries without bytes, come back without recovery data.
#[test]
fn what_holds_no_bytes_is_mended_too() {
    let arena = Arena::new();
    arena.write("d/empty", b"");
    fs::create_dir(arena.path("d/void")).unwrap();
    symlink("void", arena.path("d/link")).unwrap();
    protect(&arena, &["d"]);
    let before = tree(&arena.work);
    fs::remove_dir_all(arena.path("d")).unwrap();
    arena.expect(["repair", "d.fecp"], 0);
    assert!(tree(&arena.work) == before);
    edit(&arena.path("d/empty"), b"full");
    fs::remove_file(arena.path("d/link")).unwrap();
    symlink("elsewhere", arena.path("d/link")).unwrap();
    assert_eq!(states(&arena, &["d.fecp"], 1), [pair("d/empty", "edited"), pair("d/link", "edited")]);
    arena.expect(["repair", "d.fecp", "--revert"], 0);
    assert!(tree(&arena.work) == before);
    is_intact(&arena, "d.fecp");
}

/// A file that is examined in several parts, with damage at their borders and with added bytes.
#[test]
fn a_large_file_is_mended_anywhere() {
    let arena = Arena::new();
    let (part, len) = (4 << 20, (8 << 20) + 5001);
    let bytes = payload(1, len as usize);
    let path = arena.write("f", &bytes);
    protect(&arena, &["f", "-r", "2%"]);
    for at in [0, part - 1, part, 2 * part - 1, 2 * part, len - 1] {
        flip(&path, at);
        let report = json(&arena.expect(["verify", "f.fecp", "--json"], 1));
        let (start, end) = (at / 4096 * 4096, (at / 4096 * 4096 + 4096).min(len));
        let file = &report["files"][0];
        assert_eq!((&file["state"], &file["damage"]), (&"rotten".into(), &serde_json::json!([[start, end]])));
        arena.expect(["repair", "f.fecp", "--no-sync"], 0);
        assert!(arena.read("f") == bytes, "{at}");
    }
    File::options().write(true).open(&path).and_then(|file| file.write_all_at(b"more", len)).unwrap();
    assert_eq!(states(&arena, &["f.fecp"], 1), [pair("f", "edited")]);
    arena.expect(["repair", "f.fecp", "--revert", "--no-sync"], 0);
    assert!(arena.read("f") == bytes);
}

/// Whole files go to the copy, even if a file that shares a block with them is lost.
#[test]
fn a_copy_has_all_that_is_whole() {
    let arena = Arena::new();
    furnish(&arena);
    protect(&arena, &["-r", "1%", "d"]);
    ["d/large", "d/sub/twin", "d/sub/deep/nested"]
        .iter()
        .for_each(|path| fs::remove_file(arena.path(path)).unwrap());
    let whole = tree(&arena.path("d"));
    expect(&arena.run(["repair", "d.fecp", "-o", "out", "--partial"]), 3);
    let copied = tree(&arena.path("out/d"));
    assert!(whole.iter().all(|(path, what)| copied.get(path) == Some(what)));
    assert!(!copied.contains_key(Path::new("large")));
}

/// A sidecar is neither replaced by one of an empty folder, where a disk may be missing, nor protected itself.
#[test]
fn what_protects_files_is_not_replaced_by_nothing() {
    let arena = Arena::new();
    furnish(&arena);
    protect(&arena, &["d"]);
    fs::rename(arena.path("d"), arena.path("away")).unwrap();
    fs::create_dir(arena.path("d")).unwrap();
    assert!(changes_nothing(&arena, &["protect", "-f", "d"], 2).contains("mounted"));
    assert!(changes_nothing(&arena, &["protect", "--update", "d"], 2).contains("mounted"));
    assert!(changes_nothing(&arena, &["protect", "d.fecp"], 2).contains("is a sidecar"));
    assert!(changes_nothing(&arena, &["protect", "d"], 2).contains("--update"));
}

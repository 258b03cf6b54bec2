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

/// An edit is not damage: it stays until --revert undoes it.
#[test]
fn what_was_edited_stays_until_it_is_reverted() {
    let longer = [payload(2, 700), payload(8, 3000)].concat();
    type Change<'a> = (&'a str, &'a dyn Fn(&Path));
    let changes: [Change<'_>; 5] = [
        ("same length", &|path| edit(path, &payload(9, 700))),
        ("shorter", &|path| edit(path, b"")),
        ("longer", &|path| edit(path, &longer)),
        ("cut, at the time of old", &|path| {
            let modified = modified(path);
            let file = File::options().write(true).open(path).unwrap();
            file.set_len(300).unwrap();
            file.set_modified(modified).unwrap();
        }),
        ("another file", &|path| {
            fs::remove_file(path).unwrap();
            edit(path, b"another");
        }),
    ];
    for (name, change) in changes {
        let arena = Arena::new();
        furnish(&arena);
        protect(&arena, &["d"]);
        let (before, time) = (tree(&arena.work), modified(&arena.path("d/small")));
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
        assert_eq!(modified(&arena.path("d/small")), time, "{name}");
        is_intact(&arena, "d.fecp");
    }
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
        assert_eq!(report["margin"]["gap_bytes"], (20 - used) * 1024, "{name}");
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

/// The first of two groups has lost too much. Files in the other one are mended, and the rest stays as it is.
#[test]
fn what_can_be_mended_is_with_partial() {
    let arena = Arena::new();
    arena.write("d/a", &payload(1, 125 * 1024));
    let report = json(&arena.expect(["protect", "d", "--json"], 0));
    assert_eq!((&report["data"], &report["recovery"], &report["sets"]), (&125.into(), &20.into(), &1.into()));
    arena.write("d/b", &payload(2, 15 * 1024));
    arena.write("d/c", &payload(3, 9 * 1024 + 100));
    symlink("a", arena.path("d/link")).unwrap();
    arena.expect(["protect", "--update", "d"], 0);
    (0..21).for_each(|nth| flip(&arena.path("d/a"), nth * 2 * 1024));
    let rotten = arena.read("d/a");
    let before = seen(&arena.path("d"));
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
    assert!(arena.read("d/b") == payload(2, 15 * 1024));
    assert_eq!(fs::read_link(arena.path("d/link")).unwrap(), Path::new("a"));
    assert_eq!(states(&arena, &["d.fecp"], 3), [pair("d/a", "rotten")]);
    // A file that is gone and cannot be made whole does not appear.
    fs::remove_file(arena.path("d/a")).unwrap();
    arena.expect(["repair", "d.fecp", "--partial"], 3);
    assert!(!arena.path("d/a").exists());
    arena.nothing_temporary();
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

//! Protecting: the entries that are included, those that are left out, and that protected files are only read.

use super::*;
use rustix::fs::inotify;
use std::ffi::OsStr;

/// The sidecar of a file stands beside it, tells its kind, and is replaced only on request.
#[test]
fn a_file_is_protected_by_a_sidecar_beside_it() {
    let arena = Arena::new();
    arena.write("photo.jpg", &payload(7, 30_000));
    let report = json(&arena.expect(["protect", "photo.jpg", "--json"], 0));
    assert_eq!((&report["files"], &report["payload_bytes"]), (&1.into(), &30_000.into()));
    assert_eq!(common::listing(&arena.work), ["photo.jpg", "photo.jpg.fecp"]);
    assert_eq!(report["sidecar_bytes"], arena.read("photo.jpg.fecp").len());
    is_intact(&arena, "photo.jpg.fecp");
    assert!(changes_nothing(&arena, &["protect", "photo.jpg"], 2).contains("-f"));
    let root = protect(&arena, &["photo.jpg", "-f"]);
    assert_eq!(report["root"], root);
    arena.expect(["verify", "photo.jpg.fecp", "--root", &root], 0);
    assert!(changes_nothing(&arena, &["repair", "photo.jpg.fecp"], 0).contains("nothing to repair"));
}

/// Zeros and duplicates take no recovery data, and a sidecar that is larger than the data says so.
#[test]
fn zeros_and_duplicates_are_told() {
    let arena = Arena::new();
    arena.write("d/data", &payload(1, 50_000));
    arena.write("d/copy", &payload(1, 50_000));
    File::create(arena.path("d/image")).unwrap().set_len(64 << 20).unwrap();
    let said = text(&arena.expect(["protect", "d", "-r", "200%"], 0).stderr);
    assert!(said.contains("64 MiB are zeros or duplicates"), "{said}");
    assert!(said.contains("d.fecp is larger than the 48.8 KiB that it has recovery data for"), "{said}");
    let said = text(&arena.expect(["protect", "d", "-r", "10%", "-f"], 0).stderr);
    assert!(!said.contains("larger"), "{said}");
    for gone in ["d/image", "d/copy"] {
        fs::remove_file(arena.path(gone)).unwrap();
    }
    arena.expect(["verify", "d.fecp"], 1);
    arena.expect(["repair", "d.fecp"], 0);
    is_intact(&arena, "d.fecp");
}

/// Links are recorded as links, without their targets. Further names of a file take no further bytes.
#[test]
fn a_folder_is_protected_with_all_that_is_in_it() {
    let arena = Arena::new();
    furnish(&arena);
    fs::hard_link(arena.path("d/large"), arena.path("d/void/again")).unwrap();
    arena.write("d/sub/copy", &arena.read("d/large"));
    arena.write("outside/secret", b"not mine");
    symlink("../outside", arena.path("d/leads out")).unwrap();
    let odd = arena.path("d").join(OsStr::from_bytes(b"caf\xe9 \xff\n"));
    fs::write(&odd, payload(9, 1500)).unwrap();
    let sparse = File::create(arena.path("d/sparse")).unwrap();
    sparse.set_len(100_000).unwrap();
    sparse.write_all_at(b"end", 99_000).unwrap();
    common::make_fifo(&arena.path("d/fifo"));
    let report = json(&arena.expect(["protect", "d", "-r", "200%", "--json"], 0));
    let lens = [20_481, 700, 0, 5000, 1024, 20_481, 20_481, 1500, 100_000];
    assert_eq!(report["payload_bytes"], lens.iter().sum::<u64>());
    assert_eq!((&report["files"], &report["folders"]), (&lens.len().into(), &4.into()));
    assert_eq!(report["links"], 5, "link, dangling, way, leads out, again");
    assert!(report["skipped"].as_array().unwrap()[0].as_str().unwrap().ends_with("d/fifo"));
    let names: Vec<u8> = arena.read("d.fecp");
    assert!(!names.windows(6).any(|name| name == b"secret"), "a link was followed");
    is_intact(&arena, "d.fecp");
    let whole = tree(&arena.path("d"));
    for path in [&odd, &arena.path("d/sparse"), &arena.path("d/dangling"), &arena.path("d/leads out")] {
        fs::remove_file(path).unwrap();
    }
    arena.expect(["repair", "d.fecp"], 0);
    assert!(tree(&arena.path("d")) == whole);
    is_intact(&arena, "d.fecp");
}

/// A sidecar inside the folder it protects does not cover itself, nor the files that repair leaves beside it.
#[test]
fn a_sidecar_does_not_protect_itself() {
    let arena = Arena::new();
    furnish(&arena);
    let root = protect(&arena, &["d", "-o", "d/x.fecp"]);
    assert_eq!(protect(&arena, &["d", "-o", "d/x.fecp", "-f"]), root, "the sidecar of before was protected");
    is_intact(&arena, "d/x.fecp");
    let mut within = arena.fec(["protect", ".", "-o", "x.fecp", "-f", "-q"]);
    let output = within.current_dir(arena.path("d")).output().unwrap();
    assert_eq!(common::root(&output), root);
    let entries = json(&arena.expect(["verify", "d/x.fecp", "--json"], 0))["entries"].clone();
    assert_eq!(entries, 12, "six files, three folders, three links");
}

/// Several files and folders need a name for their sidecar. The sidecar may lie anywhere, and then needs --base.
#[test]
fn several_paths_have_one_sidecar() {
    let arena = Arena::new();
    furnish(&arena);
    arena.write("e/other", &payload(5, 3000));
    arena.write("mine", b"left out");
    assert!(changes_nothing(&arena, &["protect", "d", "e"], 2).contains("-o"));
    let beside = protect(&arena, &["d", "e", "-o", "x.fecp"]);
    assert_eq!(protect(&arena, &["e/", "./d", "e/other", "-o", "x.fecp", "-f"]), beside, "in any order");
    is_intact(&arena, "x.fecp");
    fs::create_dir(arena.path("away")).unwrap();
    assert_eq!(protect(&arena, &["d", "e", "-o", "away/y.fecp"]), beside, "where it lies is not in the root");
    for command in ["verify", "repair"] {
        assert!(changes_nothing(&arena, &[command, "away/y.fecp"], 2).contains("do not lie in its folder"));
        changes_nothing(&arena, &[command, "away/y.fecp", "--base", "."], 0);
    }
    assert_ne!(protect(&arena, &["e", "-o", "z.fecp", "--base", "e"]), beside);
    assert_eq!(states(&arena, &["z.fecp", "--base", "e"], 0), []);
    let said = changes_nothing(&arena, &["protect", "d", "--base", "e", "-o", "w.fecp"], 2);
    assert!(said.contains("does not lie in the base"), "{said}");
}

#[test]
fn what_is_excluded_is_left_out() {
    let arena = Arena::new();
    furnish(&arena);
    let entries = |args: &[&str]| {
        protect(&arena, &[&["d", "-f"], args].concat());
        json(&arena.expect(["verify", "d.fecp", "--json"], 0))["entries"].as_u64().unwrap()
    };
    // The folder itself and twelve entries in it.
    assert_eq!(entries(&[]), 13);
    assert_eq!(entries(&["--exclude", "twin"]), 12, "by name");
    assert_eq!(entries(&["--exclude", "d/sub/t*"]), 11, "by path");
    assert_eq!(entries(&["--exclude", "sub/twin"]), 12, "by path from the folder");
    assert_eq!(entries(&["--exclude", "/twin"]), 13, "there is none in the folder itself");
    assert_eq!(entries(&["--exclude", "sub"]), 8, "with all that is in it");
    assert_eq!(entries(&["--exclude", "sub/"]), 8);
    assert_eq!(entries(&["--exclude", "*a*", "--exclude", "link"]), 8, "large, nested, dangling, way, link");
    changes_nothing(&arena, &["protect", "d", "-o", "e.fecp", "--exclude", "d"], 2);
}

/// A list of paths is separated by lines or NULs, and comes from a file or standard input.
#[test]
fn paths_may_be_listed() {
    let arena = Arena::new();
    furnish(&arena);
    let root = protect(&arena, &["d/small", "d/sub", "-o", "x.fecp"]);
    arena.write("lines", b"d/sub\nd/small\n\n");
    arena.write("nuls", b"d/sub\0d/small");
    for list in ["lines", "nuls"] {
        let args = ["--files-from", list, "-o", "x.fecp", "-f"];
        assert_eq!(protect(&arena, &args), root, "{list}");
        let piped =
            arena.pipe([&["protect", "-q"], &args[..1], &["-"], &args[2..]].concat(), &arena.read(list));
        assert_eq!(common::root(&piped), root, "{list}");
    }
    assert_eq!(protect(&arena, &["d/small", "--files-from", "lines", "-o", "x.fecp", "-f"]), root);
    let odd = b"d/a\nb";
    fs::write(arena.path(OsStr::from_bytes(odd)), b"odd").unwrap();
    arena.write("odd", &[&odd[..], b"\0"].concat());
    protect(&arena, &["--files-from", "odd", "-o", "odd.fecp"]);
    is_intact(&arena, "odd.fecp");
    arena.write("none", b"\n\n");
    changes_nothing(&arena, &["protect", "--files-from", "none", "-o", "y.fecp"], 2);
    arena.write("absent", b"d/small\nd/absent\n");
    changes_nothing(&arena, &["protect", "--files-from", "absent", "-o", "y.fecp"], 4);
}

#[test]
fn what_moves_with_its_sidecar_stays_protected() {
    let arena = Arena::new();
    furnish(&arena);
    fs::create_dir(arena.path("here")).unwrap();
    fs::rename(arena.path("d"), arena.path("here/d")).unwrap();
    protect(&arena, &["here/d"]);
    fs::rename(arena.path("here"), arena.path("there")).unwrap();
    is_intact(&arena, "there/d.fecp");
    fs::remove_file(arena.path("there/d/small")).unwrap();
    flip(&arena.path("there/d/large"), 5000);
    arena.expect(["repair", "there/d.fecp"], 0);
    is_intact(&arena, "there/d.fecp");
    assert_eq!(arena.read("there/d/small"), payload(2, 700));
    assert!(!arena.path("here").exists());
    // If files and sidecar lie apart, --base is needed.
    fs::rename(arena.path("there/d.fecp"), arena.path("x.fecp")).unwrap();
    assert_eq!(states(&arena, &["x.fecp", "--base", "there"], 0), []);
}

/// An absolute path, and a path through a link, give the same sidecar.
#[test]
fn paths_may_be_absolute_and_lead_through_a_link() {
    let arena = Arena::new();
    arena.write("real/folder/file", &payload(1, 5000));
    symlink("real/folder", arena.path("way")).unwrap();
    let root = protect(&arena, &["real/folder/file"]);
    let sidecar = arena.read("real/folder/file.fecp");
    let absolute = arena.path("way/file");
    let absolute = absolute.to_str().unwrap();
    for (folder, path) in [(".", absolute), ("way", "file"), ("way", absolute)] {
        let output = arena.fec(["protect", "-q", "-f", path]).current_dir(arena.path(folder)).output();
        assert_eq!(common::root(&output.unwrap()), root, "{path} in {folder}");
        assert!(arena.read("real/folder/file.fecp") == sidecar, "{path} in {folder}");
    }
    flip(Path::new(absolute), 20);
    let repaired = arena.fec(["repair", "file.fecp"]).current_dir(arena.path("way")).output();
    expect(&repaired.unwrap(), 0);
    assert!(arena.read("real/folder/file") == payload(1, 5000));
}

/// There are more files than a set has blocks, and several files share each block.
#[test]
fn thousands_of_files_have_one_sidecar() {
    let arena = Arena::new();
    (0..2500).for_each(|nth| drop(arena.write(format!("d/{nth:04}"), &payload(nth, 100))));
    let report = json(&arena.expect(["protect", "d", "--json", "--no-sync"], 0));
    assert_eq!(report["files"], 2500);
    flip(&arena.path("d/0007"), 50);
    fs::remove_file(arena.path("d/2001")).unwrap();
    assert_eq!(states(&arena, &["d.fecp"], 1), [pair("d/0007", "rotten"), pair("d/2001", "missing")]);
    arena.expect(["repair", "d.fecp", "--no-sync"], 0);
    assert!(arena.read("d/0007") == payload(7, 100) && arena.read("d/2001") == payload(2001, 100));
    is_intact(&arena, "d.fecp");
}

/// The root covers names, contents, kinds and the right to execute, but neither times nor other permissions.
#[test]
fn a_sidecar_is_reproducible() {
    let arena = Arena::new();
    furnish(&arena);
    let root = protect(&arena, &["d"]);
    let bytes = arena.read("d.fecp");
    for threads in ["1", "2", "7"] {
        assert_eq!(protect(&arena, &["d", "-f", "-j", threads]), root);
        assert!(arena.read("d.fecp") == bytes, "-j {threads}");
    }
    age(&arena.path("d/small"), 77);
    set_mode(&arena.path("d/small"), 0o604);
    assert_eq!(protect(&arena, &["d", "-f"]), root);
    assert!(arena.read("d.fecp") != bytes, "times and permissions are kept");
    set_mode(&arena.path("d/small"), 0o704);
    assert_ne!(protect(&arena, &["d", "-f"]), root);
    set_mode(&arena.path("d/small"), 0o614);
    assert_eq!(protect(&arena, &["d", "-f"]), root, "only the owner's right counts");
    fs::rename(arena.path("d/small"), arena.path("d/smaller")).unwrap();
    assert_ne!(protect(&arena, &["d", "-f"]), root);
    fs::rename(arena.path("d/smaller"), arena.path("d/small")).unwrap();
    fs::remove_file(arena.path("d/link")).unwrap();
    symlink("large", arena.path("d/link")).unwrap();
    assert_ne!(protect(&arena, &["d", "-f"]), root, "the target of a link is in it");
}

/// No file is opened for writing, and none changes its time, mode or inode.
#[test]
fn protecting_and_verifying_only_read() {
    let arena = Arena::new();
    furnish(&arena);
    // Processes that other tests start may hold recently written files open for a moment.
    std::thread::sleep(Duration::from_millis(500));
    let watcher = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
    let flags = inotify::WatchFlags::CLOSE_WRITE
        | inotify::WatchFlags::MODIFY
        | inotify::WatchFlags::ATTRIB
        | inotify::WatchFlags::CREATE
        | inotify::WatchFlags::DELETE;
    for folder in ["d", "d/sub", "d/sub/deep", "d/void"] {
        inotify::add_watch(&watcher, arena.path(folder), flags).unwrap();
    }
    let before = seen(&arena.path("d"));
    protect(&arena, &["d"]);
    is_intact(&arena, "d.fecp");
    arena.expect(["repair", "d.fecp"], 0);
    arena.expect(["repair", "d.fecp", "-n"], 0);
    assert!(seen(&arena.path("d")) == before);
    let mut event = [0; 4096];
    assert!(rustix::io::read(&watcher, &mut event).is_err(), "something was written to");
}

/// The recovery data has the size that was asked for, and not much more.
#[test]
fn redundancy_is_what_was_asked_for() {
    let arena = Arena::new();
    arena.write("f", &payload(3, 200_000));
    for (redundancy, least, most) in [
        ("5%", 10_000, 14_000),
        ("12.5%", 25_000, 28_000),
        ("100%", 200_000, 210_000),
        ("200%", 400_000, 420_000),
    ] {
        let report = json(&arena.expect(["protect", "f", "-f", "-r", redundancy, "--json"], 0));
        let recovery = report["recovery_bytes"].as_u64().unwrap();
        assert!((least..=most).contains(&recovery), "{redundancy}: {recovery}");
        is_intact(&arena, "f.fecp");
        // The file survives a gap of at least half of `least`. The damage is a block shorter than the longest such gap.
        let worst = json(&arena.expect(["verify", "f.fecp", "--json"], 0))["margin"].clone();
        let len = worst["gap_bytes"].as_u64().unwrap().min(200_000);
        assert!(len >= least / 2, "{redundancy}: {worst}");
        rot(&arena.path("f"), 0, &vec![0x55; (len - 1024) as usize]);
        arena.expect(["repair", "f.fecp"], 0);
        assert!(arena.read("f") == payload(3, 200_000), "{redundancy}");
    }
    for redundancy in ["0%", "-5%", "13000%", "5", "%", "NaN%"] {
        expect(&arena.run(["protect", "f", "-f", &format!("--redundancy={redundancy}")]), 2);
    }
}

#[test]
fn what_cannot_be_protected_is_refused() {
    let arena = Arena::new();
    furnish(&arena);
    common::make_fifo(&arena.path("fifo"));
    arena.write("full", b"here");
    symlink("full", arena.path("linked.fecp")).unwrap();
    for (args, exit, word) in [
        (&["d", "-o", "full"][..], 2, "it exists"),
        (&["fifo"], 2, "neither a file nor a folder"),
        (&["/dev/null", "-o", "x.fecp"], 2, "neither a file nor a folder"),
        (&["absent"], 4, "absent"),
        (&["d/absent"], 4, "absent"),
        (&["d", "-o", "absent/x.fecp"], 4, "absent"),
        (&["full", "--base", "d", "-o", "x.fecp"], 2, "does not lie in the base"),
        (&["d", "--base", "absent", "-o", "x.fecp"], 4, "absent"),
        (&["d", "--base", "full", "-o", "x.fecp"], 2, "does not lie in the base"),
        (&["d", "-o", "linked.fecp"], 2, ""),
        (&["full", "full", "-o", "full"], 2, ""),
        (&[][..], 2, ""),
    ] {
        let said = changes_nothing(&arena, &[&["protect"], args].concat(), exit);
        assert!(said.contains(word), "{args:?}: {said}");
    }
    // A named link is refused: the user may mean its target or the link itself.
    assert!(changes_nothing(&arena, &["protect", "d/way"], 2).contains("a link"));
}

/// Times before 1970 work. A missing folder that merely contains protected files is made.
#[test]
fn a_file_in_a_folder_that_is_not_protected() {
    let arena = Arena::new();
    let path = arena.write("a/b/old", &payload(1, 3000));
    let time = SystemTime::UNIX_EPOCH - Duration::new(300_000_000, 123_456_789);
    File::open(&path).unwrap().set_modified(time).unwrap();
    protect(&arena, &["a/b/old", "-o", "x.fecp", "-r", "100%"]);
    assert_eq!(json(&arena.expect(["verify", "x.fecp", "--json"], 0))["entries"], 1);
    flip(&path, 10);
    assert_eq!(states(&arena, &["x.fecp"], 1), [pair("a/b/old", "rotten")]);
    fs::remove_dir_all(arena.path("a")).unwrap();
    arena.expect(["repair", "x.fecp"], 0);
    assert!(arena.read("a/b/old") == payload(1, 3000));
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), time);
}

/// New entries in protected folders are reported, and are no damage.
#[test]
fn what_is_not_protected_is_counted() {
    let arena = Arena::new();
    furnish(&arena);
    protect(&arena, &["d", "-o", "d/own.fecp", "--exclude", "tool"]);
    arena.write("d/own.fecp.repairing", b"");
    let unprotected = |options: &[&str]| {
        let output = arena.run([&["verify", "d/own.fecp", "--json"], options].concat());
        expect(&output, 0);
        json(&output)["unprotected"].as_u64().unwrap()
    };
    assert_eq!(unprotected(&[]), 0, "it was left out");
    let said = text(&arena.expect(["verify", "d/own.fecp"], 0).stdout);
    assert!(said.contains("left out by --exclude tool, as the sidecar remembers: 1 path"), "{said}");
    arena.write("d/sub/new/inside", b"1");
    arena.write("d/void/new", b"2");
    symlink("small", arena.path("d/other link")).unwrap();
    assert_eq!([unprotected(&[]), unprotected(&["--quick"]), unprotected(&["--sidecar-only"])], [2, 2, 0]);
    let said = text(&arena.expect(["verify", "d/own.fecp"], 0).stdout);
    assert!(said.contains("2 paths, such as ") && said.contains("--update"), "{said}");
    // The base may not be meant as a whole, so new entries directly in it are not counted. A new name of a protected
    // file is not counted either.
    fs::rename(arena.path("d/large"), arena.path("d/renamed")).unwrap();
    assert_eq!(json(&arena.expect(["verify", "d/own.fecp", "--json"], 1))["unprotected"], 2);
}

/// A file or folder stands for the sidecar beside it. A file in a protected folder is a part of it.
#[test]
fn the_sidecar_of_what_is_named_is_told() {
    let arena = Arena::new();
    furnish(&arena);
    fs::remove_file(arena.path("d/dangling")).unwrap();
    protect(&arena, &["d"]);
    protect(&arena, &["d/large"]);
    // A folder is checked by the sidecar beside it and by those inside it.
    let said = text(&arena.expect(["verify", "d"], 0).stdout);
    assert!(said.contains("d.fecp: intact") && said.contains("d/large.fecp: intact"), "{said}");
    for (command, name) in [("repair", "d"), ("verify", "d/large"), ("repair", "d/large")] {
        changes_nothing(&arena, &[command, name], 0);
    }
    for command in ["verify", "repair"] {
        let said = changes_nothing(&arena, &[command, "d/small"], 2);
        assert!(said.contains(&format!("fec {command} d.fecp d/small\n")), "{said}");
        arena.expect([command, "d.fecp", "d/small"], 0);
    }
}

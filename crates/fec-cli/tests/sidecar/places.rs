//! Places that cannot hold what a repair restores: file systems without some calls, and files that only others may read
//! or write.

use super::*;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Runs `fec` with some system calls always failing.
fn without(arena: &Arena, calls: &[&str], args: &[&str]) -> Output {
    let fec = common::fec();
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o", "/dev/null", "-e", "signal=none"]);
    let names: Vec<&str> = calls.iter().filter_map(|call| call.split(':').next()).collect();
    command.arg(format!("-etrace={}", names.join(",")));
    for call in calls {
        command.arg(format!("-einject={call}"));
    }
    command.arg(fec.get_program()).args(fec.get_args()).args(args).current_dir(&arena.work);
    command.output().expect("strace starts")
}

/// Acts like exFAT through FUSE, and like file systems that cannot rename without replacing, or have no hard links.
#[test]
fn lost_files_come_back_where_there_are_no_links() {
    if !common::can_trace() {
        return;
    }
    for (rename, link) in [
        ("EINVAL", "EPERM"),
        ("ENOSYS", "EOPNOTSUPP"),
        ("EPERM", "EIO"),
        ("EIO", "ENOSYS"),
        ("EOPNOTSUPP", "EINVAL"),
    ] {
        let calls = [format!("renameat2:error={rename}"), format!("linkat:error={link}")];
        let calls = [&*calls[0], &*calls[1]];
        let arena = Arena::new();
        furnish(&arena);
        protect(&arena, &["d", "-r", "200%"]);
        let before = tree(&arena.path("d"));
        fs::remove_file(arena.path("d/large")).unwrap();
        fs::remove_dir_all(arena.path("d/sub/deep")).unwrap();
        flip(&arena.path("d/sub/twin"), 77);
        edit(&arena.path("d/small"), b"edited");
        expect(&without(&arena, &calls, &["repair", "d.fecp", "--revert", "--undo", "undo.tar"]), 0);
        assert!(tree(&arena.path("d")) == before && arena.path("undo.tar").exists());
        expect(&without(&arena, &calls, &["repair", "d.fecp", "-o", "out"]), 0);
        assert!(tree(&arena.path("out/d")) == before);
        expect(&without(&arena, &calls, &["protect", "d", "-o", "new.fecp"]), 0);
        // Existing files are never replaced.
        let taken = without(&arena, &calls, &["encode", "d/large", "-o", "new.fecp"]);
        expect(&taken, 2);
        expect(&without(&arena, &calls, &["encode", "d/large", "-k", "3", "-m", "2", "-o", "s/"]), 0);
        fs::remove_file(arena.path("s/large.001.shard")).unwrap();
        expect(&without(&arena, &calls, &["repair", "s"]), 0);
        expect(&without(&arena, &calls, &["decode", "s", "-o", "back"]), 0);
        assert!(arena.read("back") == arena.read("d/large"));
        arena.nothing_temporary();
    }
}

/// A folder may lie on another file system, which new files and links cannot be renamed to.
#[test]
fn what_comes_from_another_file_system_comes_back() {
    if !common::can_trace() {
        return;
    }
    for call in ["renameat2:error=EXDEV:when=1+2", "renameat:error=EXDEV:when=1+2"] {
        let arena = Arena::new();
        furnish(&arena);
        protect(&arena, &["d", "-r", "200%"]);
        let before = seen(&arena.path("d"));
        // A file is missing, and another is replaced.
        fs::remove_file(arena.path("d/sub/tool")).unwrap();
        edit(&arena.path("d/large"), &[&b"in front"[..], &payload(1, 20_481)].concat());
        fs::remove_file(arena.path("d/link")).unwrap();
        symlink("elsewhere", arena.path("d/link")).unwrap();
        expect(&without(&arena, &[call], &["repair", "d.fecp", "--revert"]), 0);
        let after = seen(&arena.path("d"));
        assert!(after.keys().eq(before.keys()), "{call}: something temporary is left");
        for (path, was) in &before {
            let is = &after[path];
            assert_eq!((&is.what, is.mode), (&was.what, was.mode), "{call}: {}", path.display());
            assert!(is.modified == was.modified || was.what == What::Folder, "{call}: {}", path.display());
        }
        arena.nothing_temporary();
    }
}

/// Links, names, permissions and times that are left out are named, and all else is restored.
#[test]
fn what_the_place_cannot_hold_is_left_out() {
    if !common::can_trace() {
        return;
    }
    type Case<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)]);
    let cases: [Case<'_>; 8] = [
        (&["symlinkat:error=ENOSYS"], &[("d/dangling", "entry"), ("d/link", "entry"), ("d/way", "entry")]),
        (&["symlinkat:error=EPERM"], &[("d/dangling", "entry"), ("d/link", "entry"), ("d/way", "entry")]),
        (
            &["symlinkat:error=EOPNOTSUPP"],
            &[("d/dangling", "entry"), ("d/link", "entry"), ("d/way", "entry")],
        ),
        (&["symlinkat:error=EIO"], &[("d/dangling", "entry"), ("d/link", "entry"), ("d/way", "entry")]),
        (&["linkat:error=EPERM"], &[("d/sub/other name", "entry")]),
        (
            &["mkdirat:error=EILSEQ:when=4+"],
            &[("d/sub/deep", "entry"), ("d/sub/deep/nested", "entry"), ("d/void", "entry")],
        ),
        (&["fchmod:error=EPERM"], &[("d/sub/tool", "permissions")]),
        (&["utimensat:error=EPERM"], &[("d/large", "time"), ("d/sub/tool", "time")]),
    ];
    let arena = Arena::new();
    furnish(&arena);
    fs::hard_link(arena.path("d/small"), arena.path("d/sub/other name")).unwrap();
    protect(&arena, &["d", "-r", "200%"]);
    for in_place in [false, true] {
        for (calls, expected) in cases {
            let before = tree(&arena.path("d"));
            let args: &[&str] = match in_place {
                false => &["repair", "d.fecp", "-o", "out", "--json"],
                true => {
                    fs::remove_dir_all(arena.path("d")).unwrap();
                    &["repair", "d.fecp", "--json"]
                }
            };
            let output = without(&arena, calls, args);
            expect(&output, 1);
            let report = json(&output);
            let left_out = report["left_out"].as_array().expect("a list");
            let word = |out: &Value, key: &str| out[key].as_str().expect("a word").to_owned();
            let found: Vec<_> = left_out.iter().map(|out| (word(out, "path"), word(out, "what"))).collect();
            for (path, what) in expected {
                assert!(found.contains(&pair(path, what)), "{calls:?}: {found:?}");
            }
            let is_out = |path: &Path| {
                let path = path.to_str().unwrap();
                found.iter().any(|(out, what)| what == "entry" && out.strip_prefix("d/") == Some(path))
            };
            let mut wanted = before.clone();
            wanted.retain(|path, _| !is_out(path));
            let made = tree(&arena.path(if in_place { "d" } else { "out/d" }));
            let bare = |tree: BTreeMap<PathBuf, What>| -> BTreeMap<PathBuf, What> {
                let bare = |what| match what {
                    What::File { bytes, .. } => What::File { bytes, may_execute: false },
                    what => what,
                };
                tree.into_iter().map(|(path, what)| (path, bare(what))).collect()
            };
            assert!(bare(made) == bare(wanted), "{calls:?} {in_place}");
            arena.nothing_temporary();
            assert!(!arena.path("d.fecp.repairing").exists());
            fs::remove_dir_all(arena.path("out")).ok();
            // On a file system that can hold them, they come back.
            arena.expect(["repair", "d.fecp", "--revert"], 0);
            assert!(tree(&arena.path("d")) == before);
        }
    }
    fs::remove_file(arena.path("d/link")).unwrap();
    let said = text(&without(&arena, &["symlinkat:error=ENOSYS"], &["repair", "d.fecp"]).stderr);
    assert!(said.contains("left out d/link: the place cannot hold it (Function not implemented"), "{said}");
}

/// Runs `fec` as the user nobody.
fn nobody(arena: &Arena, args: &[&str]) -> Output {
    let mut command = common::fec();
    command.args(args).current_dir(&arena.work).uid(65_534).gid(65_534);
    command.output().expect("fec starts")
}

/// An arena that belongs to nobody, with ten files, of which root alone may read a single one. `None` without root.
fn another_users() -> Option<Arena> {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root gives files away");
        return None;
    }
    let arena = Arena::new();
    for nth in 0..10 {
        age(&arena.write(format!("d/f{nth}"), &payload(nth, 30_000)), nth);
    }
    protect(&arena, &["d", "-r", "40%"]);
    let give = |path: &Path| chown(path, Some(65_534), Some(65_534)).unwrap();
    give(&arena.path("d"));
    seen(&arena.work).keys().for_each(|path| give(&arena.path(path)));
    // Opens the way to the arena.
    for folder in arena.work.ancestors().take_while(|folder| *folder != std::env::temp_dir()) {
        set_mode(folder, 0o777);
    }
    if common::code(&nobody(&arena, &["verify", "d.fecp", "-q"])) != 0 {
        println!("skipped: nobody cannot run fec here");
        return None;
    }
    chown(arena.path("d/f3"), Some(0), Some(0)).unwrap();
    set_mode(&arena.path("d/f3"), 0o600);
    Some(arena)
}

/// A user who may not read a file cannot know whether it is damaged.
#[test]
fn what_may_not_be_read_is_no_damage() {
    let Some(arena) = another_users() else { return };
    let before = seen(&arena.work);
    for args in [
        &["verify", "d.fecp"][..],
        &["repair", "d.fecp"],
        &["repair", "d.fecp", "-n"],
        &["repair", "d.fecp", "--revert"],
    ] {
        let output = nobody(&arena, args);
        expect(&output, 4);
        let said = text(&output.stderr) + &text(&output.stdout);
        assert!(
            said.contains("d/f3") && said.contains("owner, or root") || said.contains("owner or root"),
            "{said}"
        );
        assert!(!said.contains("can be mended") && !said.contains("lost beyond"), "{said}");
        assert!(seen(&arena.work) == before, "{args:?}");
    }
    let report = json(&nobody(&arena, &["verify", "d.fecp", "--json"]));
    assert_eq!((&report["mendable"], &report["lost_bytes"]), (&true.into(), &0.into()));
    // --partial mends the others.
    flip(&arena.path("d/f5"), 100);
    age(&arena.path("d/f5"), 5);
    let output = nobody(&arena, &["repair", "d.fecp", "--partial"]);
    expect(&output, 4);
    assert!(arena.read("d/f5") == payload(5, 30_000));
    let f3 = fs::metadata(arena.path("d/f3")).unwrap();
    assert_eq!((f3.uid(), f3.mode() & 0o777), (0, 0o600));
    arena.expect(["verify", "d.fecp", "-q"], 0);
    // The whole folder is unreadable: its other entries would be lost with it.
    set_mode(&arena.path("d"), 0o700);
    chown(arena.path("d"), Some(0), Some(0)).unwrap();
    for args in [
        &["verify", "d.fecp"][..],
        &["verify", "d.fecp", "--quick"],
        &["repair", "d.fecp"],
        &["repair", "d.fecp", "-o", "out"],
    ] {
        expect(&nobody(&arena, args), 4);
    }
    assert!(!arena.path("out").exists());
}

/// Files that may not be read use up recovery blocks. If too few are left for files that were edited, the edits stay.
#[test]
fn what_cannot_be_reverted_is_not_cut_off() {
    let Some(arena) = another_users() else { return };
    // The folder has about 80 blocks, of which 32 may be lost: about 28 are edited, and 8 may not be read.
    edit(&arena.path("d/f0"), &payload(90, 50_000));
    edit(&arena.path("d/f1"), &payload(91, 200));
    edit(&arena.path("d/f2"), b"");
    edit(&arena.path("d/f4"), &payload(4, 30_000)[..15 * 1024]);
    let before = seen(&arena.path("d"));
    for _ in 0..2 {
        expect(&nobody(&arena, &["repair", "d.fecp", "--revert", "--partial"]), 4);
        assert!(seen(&arena.path("d")) == before);
    }
    chown(arena.path("d/f3"), Some(65_534), None).unwrap();
    expect(&nobody(&arena, &["repair", "d.fecp", "--revert"]), 0);
    assert!((0..10).all(|nth| arena.read(format!("d/f{nth}")) == payload(nth, 30_000)));
}

/// The list of an interrupted repair keeps what could not be looked at.
#[test]
fn what_may_not_be_read_stays_half_mended() {
    let Some(arena) = another_users() else { return };
    let report = json(&arena.expect(["verify", "d.fecp", "--json"], 0));
    let root = report["root"].as_str().unwrap();
    let right = payload(3, 30_000);
    let mut now = right.clone();
    [100, 5000].into_iter().for_each(|at: usize| now[at] ^= 1);
    let line = doors::line(4, &now, &[0, 1], 4096).replace(" 4096:", "");
    let list = arena.write("d.fecp.repairing", format!("fec repair of {root}\n{line}").as_bytes());
    chown(&list, Some(65_534), Some(65_534)).unwrap();
    doors::tick();
    now[100] ^= 1;
    fs::write(arena.path("d/f3"), &now).unwrap();
    for turn in 0..2 {
        if turn == 1 {
            rot(&arena.path("d/f5"), 100, b"rotten");
        }
        expect(&nobody(&arena, &["repair", "d.fecp", "--partial"]), 4);
        assert!(arena.read("d/f5") == payload(5, 30_000));
        assert!(text(&arena.read("d.fecp.repairing")).contains(&line), "turn {turn}");
    }
    chown(arena.path("d/f3"), Some(65_534), None).unwrap();
    expect(&nobody(&arena, &["repair", "d.fecp"]), 0);
    assert!(arena.read("d/f3") == right && !arena.path("d.fecp.repairing").exists());
}

/// A file in a closed folder, which an interrupted repair has begun, is mended once the folder opens. Meanwhile no
/// other list takes the place of the one that proves it.
#[test]
fn what_lies_in_a_closed_folder_stays_half_mended() {
    let Some(arena) = another_users() else { return };
    let right = payload(30, 30_000);
    arena.write("d/sub/file", &right);
    let root = protect(&arena, &["d", "-r", "40%", "-f"]);
    let mut now = right.clone();
    [100, 5000].into_iter().for_each(|at: usize| now[at] ^= 1);
    let line = doors::line(12, &now, &[0, 1], 4096).replace(" 4096:", "");
    arena.write("d.fecp.repairing", format!("fec repair of {root}\n{line}").as_bytes());
    for name in ["d.fecp", "d.fecp.repairing", "d/sub", "d/sub/file", "d/f3"] {
        chown(arena.path(name), Some(65_534), Some(65_534)).unwrap();
    }
    doors::tick();
    now[100] ^= 1;
    fs::write(arena.path("d/sub/file"), &now).unwrap();
    set_mode(&arena.path("d/sub"), 0);
    rot(&arena.path("d/f5"), 100, b"rotten");
    // Nothing is begun: no archive of what was there is written either.
    for more in [&["--undo", "undo.tar"][..], &["--dry-run"]] {
        let output = nobody(&arena, &[&["repair", "d.fecp", "--partial"], more].concat());
        expect(&output, 4);
        let said = text(&output.stderr);
        assert!(
            said.contains("d/sub/file: an interrupted repair may have mended it in part, as its list"),
            "{said}"
        );
        assert!(said.contains("open the folder that it lies in, and run fec repair again"), "{said}");
        assert!(!arena.path("undo.tar").exists() && arena.read("d/f5") != payload(5, 30_000));
    }
    set_mode(&arena.path("d/sub"), 0o755);
    expect(&nobody(&arena, &["repair", "d.fecp"]), 0);
    assert!(arena.read("d/sub/file") == right && arena.read("d/f5") == payload(5, 30_000));
    assert!(!arena.path("d.fecp.repairing").exists());
}

/// The last name of a file may be whole although it may not be read.
#[test]
fn a_further_name_that_may_not_be_read_is_no_damage() {
    let Some(arena) = another_users() else { return };
    fs::hard_link(arena.path("d/f3"), arena.path("d/z3")).unwrap();
    protect(&arena, &["d", "-r", "40%", "-f"]);
    chown(arena.path("d.fecp"), Some(65_534), None).unwrap();
    fs::remove_file(arena.path("d/f3")).unwrap();
    let before = seen(&arena.path("d"))[Path::new("z3")].clone();
    let report = json(&nobody(&arena, &["verify", "d.fecp", "--json"]));
    let files = report["files"].as_array().unwrap();
    assert_eq!((&files[1]["path"], &files[1]["state"]), (&"d/z3".into(), &"unreadable".into()));
    expect(&nobody(&arena, &["repair", "d.fecp"]), 4);
    expect(&nobody(&arena, &["repair", "d.fecp", "--partial"]), 4);
    assert!(seen(&arena.path("d"))[Path::new("z3")] == before);
}

/// With --partial too the cause is told.
#[test]
fn what_may_not_be_written_is_told_with_its_cause() {
    let Some(arena) = another_users() else { return };
    chown(arena.path("d/f3"), Some(65_534), None).unwrap();
    arena.write("d/sub/file", &payload(7, 3000));
    protect(&arena, &["d", "-r", "40%", "-f"]);
    chown(arena.path("d.fecp"), Some(65_534), None).unwrap();
    fs::remove_file(arena.path("d/sub/file")).unwrap();
    set_mode(&arena.path("d/sub"), 0o755);
    rot(&arena.path("d/f5"), 100, b"rotten");
    let output = nobody(&arena, &["repair", "d.fecp", "--partial"]);
    expect(&output, 4);
    let said = text(&output.stderr) + &text(&output.stdout);
    assert!(said.contains("d/sub/file: ") && said.contains("ermission denied"), "{said}");
    assert!(arena.read("d/f5") == payload(5, 30_000));
}

/// A running program cannot be written to: it is made anew, and keeps no other file from being mended.
#[test]
fn a_program_that_runs_is_made_anew() {
    let arena = Arena::new();
    let sleep = ["/usr/bin/sleep", "/bin/sleep"].iter().find_map(|path| fs::read(path).ok()).expect("sleep");
    let tool = arena.write("d/tool", &sleep);
    set_mode(&tool, 0o755);
    arena.write("d/z", &payload(1, 5000));
    protect(&arena, &["d", "-r", "50%"]);
    // The end of a program names its sections, which nothing needs that runs it.
    flip(&tool, sleep.len() as u64 - 3);
    flip(&arena.path("d/z"), 7);
    // A process that another test is starting may hold the file a moment longer.
    let mut running = loop {
        match Command::new(&tool).arg("60").spawn() {
            Err(e) if e.kind() == std::io::ErrorKind::ExecutableFileBusy => {}
            spawned => break spawned.expect("it runs"),
        }
    };
    let output = arena.run(["repair", "d.fecp"]);
    running.kill().unwrap();
    running.wait().unwrap();
    expect(&output, 0);
    assert!(arena.read("d/tool") == sleep && arena.read("d/z") == payload(1, 5000));
    is_intact(&arena, "d.fecp");
}

/// A scrub records nothing about files that it could not read, neither as damaged nor as intact.
#[test]
fn what_may_not_be_read_stays_due() {
    let Some(arena) = another_users() else { return };
    let args = ["verify", "d.fecp", "--state", "state", "--older-than", "30d"];
    expect(&nobody(&arena, &args), 4);
    let state = text(&arena.read("state"));
    assert!(!state.contains("d/f3") && !state.contains("damaged"), "{state}");
    expect(&nobody(&arena, &args), 4);
    chown(arena.path("d/f3"), Some(65_534), None).unwrap();
    expect(&nobody(&arena, &args), 0);
}

/// Unwritable files are named before anything is written.
#[test]
fn what_may_not_be_written_to_is_told_at_once() {
    let Some(arena) = another_users() else { return };
    for nth in [3, 5, 7] {
        let path = arena.path(format!("d/f{nth}"));
        rot(&path, 100, b"rotten");
        chown(&path, Some(if nth == 5 { 65_534 } else { 0 }), None).unwrap();
        set_mode(&path, 0o444);
        age(&path, nth);
    }
    let before = seen(&arena.path("d"));
    let output = nobody(&arena, &["repair", "d.fecp"]);
    expect(&output, 4);
    let said = text(&output.stderr);
    assert!(said.contains("d/f3") && said.contains("d/f7") && !said.contains("d/f5"), "{said}");
    assert!(seen(&arena.path("d")) == before);
    // The user's own read-only file is mended, and stays read-only.
    expect(&nobody(&arena, &["repair", "d.fecp", "--partial"]), 4);
    assert!(arena.read("d/f5") == payload(5, 30_000));
    assert_eq!(fs::metadata(arena.path("d/f5")).unwrap().mode() & 0o777, 0o444);
    assert_eq!(states(&arena, &["d.fecp"], 1), [pair("d/f3", "rotten"), pair("d/f7", "rotten")]);
}

#[test]
fn protect_names_all_that_may_not_be_read() {
    let Some(arena) = another_users() else { return };
    chown(arena.path("d/f7"), Some(0), None).unwrap();
    set_mode(&arena.path("d/f7"), 0o600);
    let said = |args: &[&str]| {
        let output = nobody(&arena, args);
        expect(&output, 4);
        assert!(text(&output.stderr).contains("--exclude"), "{}", text(&output.stderr));
        text(&output.stderr)
    };
    let files = said(&["protect", "d", "-o", "new.fecp"]);
    assert!(files.contains("d/f3\n") && files.contains("d/f7\n"), "{files}");
    for (folder, mode) in [("locked", 0o700), ("hidden", 0o644)] {
        arena.write(format!("d/{folder}/in"), b"in");
        set_mode(&arena.path(format!("d/{folder}")), mode);
    }
    let all = said(&["protect", "d", "-o", "new.fecp"]);
    for path in ["d/f3\n", "d/f7\n", "d/locked\n", "d/hidden/in\n"] {
        assert!(all.contains(path), "{all}");
    }
    let exclude = ["--exclude", "f3", "--exclude", "f7", "--exclude", "locked", "--exclude", "hidden"];
    let output = nobody(&arena, &[&["protect", "d", "-o", "new.fecp"], &exclude[..]].concat());
    expect(&output, 0);
}

/// A shard that may not be read may be intact.
#[test]
fn a_shard_file_that_may_not_be_read_is_not_replaced() {
    let Some(arena) = another_users() else { return };
    expect(&nobody(&arena, &["encode", "d/f1", "-k", "3", "-m", "2", "-o", "s/", "-q"]), 0);
    let deny = |nth: usize| {
        let path = arena.path(format!("s/f1.00{nth}.shard"));
        chown(&path, Some(0), None).unwrap();
        set_mode(&path, 0o600);
    };
    deny(1);
    let before = seen(&arena.path("s"));
    expect(&nobody(&arena, &["decode", "s", "-o", "back", "-q"]), 0);
    for args in [&["verify", "s"][..], &["repair", "s"], &["repair", "s", "-f"], &["repair", "s", "-n"]] {
        let output = nobody(&arena, args);
        expect(&output, 4);
        let said = text(&output.stderr) + &text(&output.stdout);
        assert!(said.contains("f1.001.shard") && said.contains("permission denied"), "{args:?}: {said}");
        assert!(said.contains("run it as a user who may"), "{args:?}: {said}");
        assert!(!said.contains("fec repair"), "{args:?}: {said}");
    }
    [0, 2].into_iter().for_each(deny);
    for args in [&["verify", "s"][..], &["repair", "s"], &["decode", "s", "-o", "again"]] {
        let output = nobody(&arena, args);
        expect(&output, 4);
        let said = text(&output.stderr) + &text(&output.stdout);
        assert!(said.contains("root"), "{args:?}: {said}");
    }
    set_mode(&arena.path("s/f1.000.shard"), 0o644);
    set_mode(&arena.path("s/f1.001.shard"), 0o600);
    assert_eq!(seen(&arena.path("s")).len(), before.len());
    // The same for a container, and for a folder.
    expect(&nobody(&arena, &["encode", "d/f1", "-o", "c.fec", "-q"]), 0);
    chown(arena.path("c.fec"), Some(0), None).unwrap();
    set_mode(&arena.path("c.fec"), 0o600);
    chown(arena.path("s"), Some(0), None).unwrap();
    set_mode(&arena.path("s"), 0o700);
    for args in [
        &["verify", "c.fec"][..],
        &["decode", "c.fec", "-o", "x"],
        &["repair", "c.fec"],
        &["verify", "s"],
        &["repair", "s"],
    ] {
        let output = nobody(&arena, args);
        expect(&output, 4);
        assert!(text(&output.stderr).contains("root"), "{args:?}: {}", text(&output.stderr));
    }
}

/// An object in an unreadable folder of a store may be intact too.
#[cfg(feature = "stores")]
#[test]
fn an_object_that_may_not_be_read_is_not_lost() {
    let Some(arena) = another_users() else { return };
    for place in ["a", "b"] {
        fs::create_dir(arena.path(place)).unwrap();
        set_mode(&arena.path(place), 0o777);
    }
    let args = ["encode", "d/f1", "-k", "2", "-m", "2", "--to", "a,domain=a", "--to", "b,domain=b", "-q"];
    let root = common::root(&nobody(&arena, &args));
    let of_store = |command: &[&str]| {
        nobody(&arena, &[command, &["--from", "a", "--from", "b", "--root", &root]].concat())
    };
    let mut shards = seen(&arena.path("a")).into_keys().filter(|path| path.extension().is_some());
    let shard = arena.path("a").join(shards.next().expect("a shard"));
    chown(&shard, Some(0), None).unwrap();
    set_mode(&shard, 0o600);
    let before = seen(&arena.path("a"));
    expect(&of_store(&["decode", "-o", "back", "-q"]), 0);
    for command in [&["verify"][..], &["verify", "--deep"], &["repair"]] {
        let output = of_store(command);
        expect(&output, 4);
        let said = text(&output.stderr) + &text(&output.stdout);
        assert!(said.contains("what is not allowed may be intact"), "{command:?}: {said}");
    }
    assert!(seen(&arena.path("a")) == before);
    set_mode(&shard, 0o644);
    expect(&of_store(&["verify"]), 0);
}

//! Places that cannot hold what a repair restores: file systems without some calls, and full ones.

use super::*;
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
    // New names are given by this call, and those of what is replaced are exchanged by it: each fails once.
    for call in ["renameat2:error=EXDEV:when=1+2", "renameat2:error=EXDEV:when=3+2"] {
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

/// On a full disk what needs no room is mended, and the rest when there is some.
#[test]
fn a_full_disk_keeps_nothing_from_being_mended_in_place() {
    let arena = Arena::new();
    fs::create_dir(arena.path("disk")).unwrap();
    let script = "mount -t tmpfs -o size=1m none disk || exit 77
        mkdir disk/d && seq 1 40000 >disk/d/a && seq 1 50000 >disk/d/b && seq 1 60000 >disk/d/z
        $FEC protect disk/d -r 60% --portable -o x.fecp --base disk -q || exit 1
        time=$(stat -c %y disk/d/z)
        printf XX | dd of=disk/d/z bs=1 seek=3000 conv=notrunc status=none && touch -d \"$time\" disk/d/z
        rm disk/d/b; head -c 1000000 /dev/zero >disk/filler
        $FEC repair x.fecp --base disk; echo code $?
        seq 1 60000 | cmp - disk/d/z || exit 1
        rm disk/filler && $FEC repair x.fecp --base disk -q && $FEC verify x.fecp --base disk -q";
    let mut shell = Command::new("unshare");
    shell.args(["--mount", "sh", "-c", script]).env("FEC", common::fec_words()).current_dir(&arena.work);
    let Ok(output) = shell.output() else { return println!("skipped: there is no unshare") };
    let said = text(&output.stdout) + &text(&output.stderr);
    match output.status.code() {
        Some(77) => return println!("skipped: nothing can be mounted"),
        code if said.contains("unshare failed") => return println!("skipped: {code:?}"),
        code => assert_eq!(code, Some(0), "{said}"),
    }
    assert!(said.contains("code 4") && said.contains("not mended d/b (missing)"), "{said}");
    assert!(said.contains("are needed and") && said.contains("make room"), "{said}");
}

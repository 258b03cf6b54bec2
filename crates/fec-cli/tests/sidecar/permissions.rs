//! Files, folders and sidecars that only others may read or write.

use super::*;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;

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

/// A file that is gone from a folder of another user's is told with the cause, and the rest is mended.
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
    let output = nobody(&arena, &["repair", "d.fecp"]);
    expect(&output, 4);
    let said = text(&output.stderr) + &text(&output.stdout);
    assert!(
        said.contains("d/sub: it is read-only, and not yours\nrun it as its owner, or as root\n"),
        "{said}"
    );
    assert!(arena.read("d/f5") == payload(5, 30_000));
}

/// The list of a repair cannot be written beside the sidecar. A copy of that elsewhere mends what needs the list.
#[test]
fn a_copy_of_a_sidecar_mends_where_no_list_can_be_written() {
    let Some(arena) = another_users() else { return };
    chown(arena.path("d/f3"), Some(65_534), None).unwrap();
    rot(&arena.path("d/f5"), 100, b"rotten");
    set_mode(&arena.path("d/f5"), 0o444);
    fs::create_dir(arena.path("own")).unwrap();
    chown(arena.path("own"), Some(65_534), None).unwrap();
    chown(&arena.work, Some(0), None).unwrap();
    set_mode(&arena.work, 0o755);
    let output = nobody(&arena, &["repair", "d.fecp"]);
    expect(&output, 4);
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(said.contains("d/f5: the list of the repair cannot be written beside the sidecar"), "{said}");
    let (_, command) = said.split_once("mend by the copy:\n  fec ").expect("advice");
    let command = command.lines().next().unwrap().replace("COPY", "own/copy.fecp");
    fs::copy(arena.path("d.fecp"), arena.path("own/copy.fecp")).unwrap();
    expect(&nobody(&arena, &command.split(' ').collect::<Vec<_>>()), 0);
    assert!(arena.read("d/f5") == payload(5, 30_000));
    assert_eq!(fs::metadata(arena.path("d/f5")).unwrap().mode() & 0o777, 0o444);
}

/// A repair that is killed leaves nothing writable that was not, once the next one has ended.
#[test]
fn what_is_read_only_is_closed_after_a_kill() {
    let Some(arena) = another_users() else { return };
    let give = |path: &Path| chown(path, Some(65_534), Some(65_534)).unwrap();
    arena.write("d/sub/file", &payload(30, 100_000));
    protect(&arena, &["d", "-r", "200%", "-f"]);
    [Path::new("d.fecp"), Path::new("d/f3"), Path::new("d/sub"), Path::new("d/sub/file")]
        .into_iter()
        .for_each(|name| give(&arena.path(name)));
    let modes = || {
        let modes = seen(&arena.path("d")).into_iter().map(|(path, seen)| (path, seen.mode & 0o777));
        modes.collect::<BTreeMap<_, _>>()
    };
    let mut killed = 0;
    for nth in 0..10u32 {
        set_mode(&arena.path("d/sub"), 0o755);
        fs::remove_file(arena.path("d/sub/file")).unwrap();
        rot(&arena.path("d/f5"), 100, &[nth as u8; 9000]);
        set_mode(&arena.path("d/f5"), 0o444);
        set_mode(&arena.path("d/sub"), 0o555);
        let mut command = common::fec();
        command.args(["repair", "d.fecp", "-q"]).current_dir(&arena.work).uid(65_534).gid(65_534);
        let mut child = command.spawn().unwrap();
        std::thread::sleep(Duration::from_micros(u64::from(nth) * 2500));
        child.kill().unwrap();
        killed += u32::from(!child.wait().unwrap().success());
        expect(&nobody(&arena, &["repair", "d.fecp", "-q"]), 0);
        assert_eq!((modes()[Path::new("sub")], modes()[Path::new("f5")]), (0o555, 0o444), "turn {nth}");
        assert!(arena.read("d/sub/file") == payload(30, 100_000) && arena.read("d/f5") == payload(5, 30_000));
        assert!(!arena.path("d.fecp.repairing").exists());
        arena.nothing_temporary();
    }
    assert!(killed > 0, "each was faster than the first kill");
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

/// Read-only files are named, and keep no other from being mended.
#[test]
fn what_may_not_be_written_to_is_told() {
    let Some(arena) = another_users() else { return };
    for nth in [3, 5, 7] {
        let path = arena.path(format!("d/f{nth}"));
        rot(&path, 100, b"rotten");
        chown(&path, Some(if nth == 5 { 65_534 } else { 0 }), None).unwrap();
        set_mode(&path, 0o444);
        age(&path, nth);
    }
    let output = nobody(&arena, &["repair", "d.fecp"]);
    expect(&output, 4);
    let said = text(&output.stderr) + &text(&output.stdout);
    for line in
        ["not mended d/f3 (rotten)", "not mended d/f7 (rotten)", "d/f3: it is read-only, and not yours"]
    {
        assert!(said.contains(line), "{said}");
    }
    // The user's own read-only file is mended, and stays read-only.
    assert!(arena.read("d/f5") == payload(5, 30_000));
    assert_eq!(fs::metadata(arena.path("d/f5")).unwrap().mode() & 0o777, 0o444);
    assert_eq!(states(&arena, &["d.fecp"], 1), [pair("d/f3", "rotten"), pair("d/f7", "rotten")]);
}

/// Nothing stops at the first: the rest is protected, and all that is not is told, by verify too.
#[test]
fn protect_names_all_that_may_not_be_read() {
    let Some(arena) = another_users() else { return };
    chown(arena.path("d/f7"), Some(0), None).unwrap();
    set_mode(&arena.path("d/f7"), 0o600);
    for (folder, mode) in [("locked", 0o700), ("hidden", 0o644)] {
        arena.write(format!("d/{folder}/in"), b"in");
        set_mode(&arena.path(format!("d/{folder}")), mode);
    }
    let unfolded = |output: &Output| text(&output.stderr) + &text(&output.stdout);
    let output = nobody(&arena, &["protect", "d", "-o", "new.fecp"]);
    expect(&output, 1);
    let said = unfolded(&output);
    assert!(said.contains("not protected: 4 paths") && said.contains("--exclude"), "{said}");
    for path in ["d/f3", "d/f7", "d/locked", "d/hidden/in"] {
        assert!(said.contains(&format!("  {path}: permission denied\n")), "{said}");
    }
    let report = json(&nobody(&arena, &["protect", "-u", "d", "-o", "new.fecp", "--json"]));
    assert_eq!(report["not_protected"].as_array().map(Vec::len), Some(4), "{report}");
    assert_eq!(report["not_protected"][0]["reason"], "permission denied", "{report}");
    let quiet = nobody(&arena, &["protect", "-u", "d", "-o", "new.fecp", "-q"]);
    assert!(text(&quiet.stderr).contains("4 paths not protected"), "{}", text(&quiet.stderr));
    // verify tells them, with the command that protects them, once somebody may read them.
    let output = nobody(&arena, &["verify", "new.fecp"]);
    expect(&output, 1);
    let said = unfolded(&output);
    assert!(said.contains("4 paths") && said.contains("  d/locked: permission denied\n"), "{said}");
    assert!(said.contains("  fec protect --update d -o new.fecp\n"), "{said}");
    expect(&nobody(&arena, &["verify", "new.fecp", "--ignore", "new"]), 0);
    let report = json(&nobody(&arena, &["verify", "new.fecp", "--json"]));
    assert_eq!((&report["unprotected"], &report["intact"]), (&0.into(), &true.into()), "{report}");
    arena.expect(["protect", "--update", "d", "-o", "new.fecp"], 0);
    is_intact(&arena, "new.fecp");
    chown(arena.path("new.fecp"), Some(65_534), None).unwrap();
    // An update that may not read the files keeps them: nothing gives up what is protected.
    let output = nobody(&arena, &["protect", "--update", "d", "-o", "new.fecp"]);
    expect(&output, 1);
    let said = unfolded(&output);
    assert!(said.contains("as protected before, because it cannot be looked at: 4 paths"), "{said}");
    expect(&nobody(&arena, &["verify", "new.fecp"]), 4);
    // Nothing is written if nothing can be read.
    let output = nobody(&arena, &["protect", "d/locked", "d/f3", "-o", "none.fecp"]);
    expect(&output, 4);
    assert!(!arena.path("none.fecp").exists());
    assert!(unfolded(&output).contains("permission denied, 2 times"), "{}", unfolded(&output));
    let exclude = ["--exclude", "f3", "--exclude", "f7", "--exclude", "locked", "--exclude", "hidden"];
    expect(&nobody(&arena, &[&["protect", "d", "-o", "other.fecp"], &exclude[..]].concat()), 0);
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

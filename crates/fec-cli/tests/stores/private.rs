//! Whoever may not read a payload must not read its shards either.

use crate::common::{self, Arena, expect, listing, payload};
use crate::{PLACES, Sent};
use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The permissions of all files below a folder, and of all folders.
fn modes(folder: &Path) -> (Vec<u32>, Vec<u32>) {
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    for name in listing(folder) {
        let path = folder.join(name);
        let meta = fs::symlink_metadata(&path).unwrap();
        let mode = meta.permissions().mode() & 0o7777;
        if meta.is_dir() {
            folders.push(mode);
            let (more, more_folders) = modes(&path);
            files.extend(more);
            folders.extend(more_folders);
        } else {
            files.push(mode);
        }
    }
    (files, folders)
}

fn octal(modes: &[u32]) -> String {
    modes.iter().map(|mode| format!("{mode:o} ")).collect()
}

#[track_caller]
fn all_have(arena: &Arena, places: &[&str], mode: u32) {
    for place in places {
        let (files, folders) = modes(&arena.path(place));
        assert!(
            !files.is_empty() && files.iter().all(|of| *of == mode),
            "{place}: {}, not {mode:o}",
            octal(&files)
        );
        let folder = mode | mode >> 2 & 0o111 | 0o700;
        assert!(folders.iter().all(|of| *of == folder), "{place}: {}", octal(&folders));
    }
}

/// Runs a shell script with a umask. FEC stands for the command, TO for the places.
fn with_umask(arena: &Arena, umask: &str, script: &str) -> Output {
    let fec = common::fec();
    let words = [fec.get_program()].into_iter().chain(fec.get_args());
    let fec: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let to: Vec<String> = PLACES.iter().map(|place| format!("--to {place}")).collect();
    let script = script.replace("FEC", &fec.join(" ")).replace("TO", &format!("-k 6 -m 4 {}", to.join(" ")));
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("umask {umask}; {script}")]).current_dir(arena.path("."));
    shell.output().unwrap()
}

/// An arena with an input of these permissions.
fn arena_with(mode: u32) -> Arena {
    let arena = Arena::new();
    arena.write("in", &payload(3, 100_000));
    fs::set_permissions(arena.path("in"), Permissions::from_mode(mode)).unwrap();
    arena
}

#[test]
fn objects_are_for_those_who_may_read_the_input() {
    let cases = [
        (0o600, "000", 0o600),
        (0o640, "000", 0o640),
        (0o644, "022", 0o644),
        (0o644, "077", 0o600),
        (0o604, "000", 0o604),
    ];
    for (mode, umask, expected) in cases {
        for input in ["in", "- < in"] {
            let arena = arena_with(mode);
            let (name, redirection) = input.split_at(input.find(' ').unwrap_or(input.len()));
            let output = with_umask(&arena, umask, &format!("exec FEC encode {name} TO {redirection}"));
            let root = common::root(&output);
            all_have(&arena, &PLACES, expected);
            // Objects that are made anew get the permissions of existing ones.
            fs::remove_dir_all(arena.path("p1")).unwrap();
            fs::create_dir(arena.path("p1")).unwrap();
            let sent = Sent { root, arena, bytes: payload(3, 100_000) };
            expect(&sent.fec("repair", &["--now"]), 0);
            let (files, _) = modes(&sent.arena.path("p1"));
            assert!(
                !files.is_empty() && files.iter().all(|of| of & !expected == 0),
                "{}: {expected:o}",
                octal(&files)
            );
        }
    }
}

#[test]
fn what_is_restored_is_for_those_who_may_read_the_objects() {
    // Permissions of the input, those of the folders of all places if they change, and those of the payload.
    let cases =
        [(0o644, None, 0o644), (0o600, None, 0o600), (0o640, None, 0o640), (0o644, Some(0o700), 0o600)];
    for (mode, folders, expected) in cases {
        let arena = arena_with(mode);
        let root = common::root(&with_umask(&arena, "022", "exec FEC encode in TO"));
        for place in PLACES.iter().filter(|_| folders.is_some()) {
            fs::set_permissions(arena.path(place), Permissions::from_mode(folders.unwrap())).unwrap();
        }
        let from: Vec<String> = PLACES.iter().map(|place| format!("--from {place}")).collect();
        let decode = format!("FEC decode --root {root} {}", from.join(" "));
        let script = format!("{decode} -o all && {decode} --range 10..100 -o part");
        expect(&with_umask(&arena, "022", &script), 0);
        for name in ["all", "part"] {
            let now = fs::metadata(arena.path(name)).unwrap().permissions().mode() & 0o7777;
            assert_eq!(now, expected, "{name}: {mode:o}");
        }
    }
}

/// A pipe does not tell who may read its content.
#[test]
fn what_comes_from_a_pipe_is_its_owners_alone() {
    let arena = arena_with(0o644);
    let output = with_umask(&arena, "000", "cat in | FEC encode - TO");
    common::root(&output);
    all_have(&arena, &PLACES, 0o600);
}

#[test]
fn what_waits_is_its_owners_alone() {
    let arena = Arena::new();
    fs::create_dir(arena.path("spool")).unwrap();
    let to = PLACES.iter().flat_map(|place| ["--to", place]);
    let args = ["encode", "-", "-k", "6", "-m", "4", "--segment-size", "300K", "--spool", "spool"];
    let mut command = arena.fec(args.into_iter().chain(to));
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&payload(4, 100_000)).unwrap();
    let spool = arena.path("spool");
    common::wait_until(|| !modes(&spool).0.is_empty());
    let (files, folders) = modes(&spool);
    assert!(files.iter().all(|mode| *mode == 0o600), "{}", octal(&files));
    assert!(folders.iter().all(|mode| *mode == 0o700), "{}", octal(&folders));
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

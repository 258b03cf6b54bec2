//! Files that only grow: `protect --append`, and `--follow` as a process.

use super::*;
use rustix::fs::{FlockOperation, flock};
use rustix::process::Signal;
use std::io::Write;
use std::process::Child;

fn append(arena: &Arena, name: &str, bytes: &[u8]) {
    File::options().append(true).open(arena.path(name)).unwrap().write_all(bytes).unwrap();
}

/// The command follows: it has said so.
fn follow(arena: &Arena, words: &[&str]) -> (Child, PathBuf) {
    let said = arena.path("said");
    let mut command = arena.fec([&["protect", "--follow"], words].concat());
    command.stdout(std::process::Stdio::piped()).stderr(File::create(&said).unwrap());
    let child = command.spawn().unwrap();
    common::wait_until(|| fs::read_to_string(&said).unwrap().contains("follows what is written"));
    (child, said)
}

/// Ends it by a signal. Returns the exit code, the root, and what was said.
fn end(child: Child, said: &Path, signal: Signal) -> (i32, String, String) {
    common::signal(&child, signal);
    let output = child.wait_with_output().unwrap();
    (common::code(&output), text(&output.stdout).trim().to_owned(), fs::read_to_string(said).unwrap())
}

/// The size of a file, as the sidecar records it, though the command is at work.
fn recorded(arena: &Arena, name: &str) -> u64 {
    let opened = fec_sidecar::Sidecar::open(&arena.path("d.fecp"), None, &fecfile::Settings::new());
    // An update may be at work.
    let Ok(sidecar) = opened else { return 0 };
    let files = sidecar.catalog().files();
    let mut of_name = files.filter(|(nth, _)| &*sidecar.catalog().entries[*nth].path == name.as_bytes());
    of_name.next().map_or(0, |(_, file)| file.size)
}

#[test]
fn what_is_written_is_protected_soon_and_a_signal_ends_it() {
    for signal in [Signal::INT, Signal::TERM] {
        let arena = Arena::new();
        arena.write("d/log", &payload(1, 300_000));
        arena.write("d/other", &payload(2, 100_000));
        let (child, said) = follow(&arena, &["d"]);
        for nth in 1..=4u64 {
            append(&arena, "d/log", &payload(nth, 10_000));
            common::wait_until(|| recorded(&arena, "d/log") == 300_000 + nth * 10_000);
        }
        // A new file is found, and a log that gets another name goes on under its own.
        arena.write("d/new", b"new");
        fs::rename(arena.path("d/log"), arena.path("d/log.1")).unwrap();
        arena.write("d/log", b"again");
        common::wait_until(|| recorded(&arena, "d/new") == 3 && recorded(&arena, "d/log.1") == 340_000);
        // Rot in front of the old end is not read, and is not taken for good.
        flip(&arena.path("d/log.1"), 1000);
        append(&arena, "d/log.1", b"the last words");
        let (exit, root, told) = end(child, &said, signal);
        assert_eq!((exit, root.len()), (0, 64), "{told}");
        assert_eq!(recorded(&arena, "d/log.1"), 340_014, "the last update comes behind the signal");
        let report = json(&arena.expect(["verify", "d.fecp", "--json", "--root", &root], 1));
        assert_eq!(
            (&report["files"][0]["path"], &report["files"][0]["state"]),
            (&"d/log.1".into(), &"rotten".into())
        );
        arena.expect(["repair", "d.fecp", "--root", &root], 0);
        is_intact(&arena, "d.fecp");
        // A service that is started again goes on, and finds what was written meanwhile.
        append(&arena, "d/other", b"meanwhile");
        let (child, said) = follow(&arena, &["d"]);
        assert_eq!(recorded(&arena, "d/other"), 100_009);
        assert_eq!(end(child, &said, signal).0, 0);
    }
}

#[test]
fn a_file_that_was_rewritten_is_told_once_while_it_follows() {
    let arena = Arena::new();
    arena.write("d/log", &payload(1, 300_000));
    arena.write("d/other", &payload(2, 300_000));
    let (child, said) = follow(&arena, &["d"]);
    let edited = [b"another beginning", &payload(1, 300_000)[17..280_000]].concat();
    arena.write("d/log", &edited);
    common::wait_until(|| {
        fs::read_to_string(&said).unwrap().contains("warning: not protected as it is now: d/log")
    });
    append(&arena, "d/other", b"more");
    common::wait_until(|| recorded(&arena, "d/other") == 300_004);
    assert_eq!(recorded(&arena, "d/log"), 300_000);
    let (exit, _, told) = end(child, &said, Signal::INT);
    assert_eq!((exit, told.matches("warning").count()), (1, 1), "{told}");
    assert!(told.contains("held, because it does not begin with what it was: 1 file"), "{told}");
    // The advice: the old state comes back, and the new one is kept.
    assert!(told.contains("fec repair d.fecp --revert --undo FILE"), "{told}");
    arena.expect(["repair", "d.fecp", "--revert", "--undo", "kept.fec"], 0);
    assert_eq!(arena.read("d/log"), payload(1, 300_000));
    is_intact(&arena, "d.fecp");
    assert!(arena.path("kept.fec").exists());
    // Or it was changed on purpose.
    arena.write("d/log", &edited);
    arena.expect(["protect", "--update", "--append", "d"], 1);
    arena.expect(["protect", "--update", "d"], 0);
    is_intact(&arena, "d.fecp");
}

#[test]
fn a_repair_at_work_is_waited_for() {
    let arena = Arena::new();
    arena.write("d/log", &payload(1, 300_000));
    let (child, said) = follow(&arena, &["d"]);
    let other = File::open(arena.path("d.fecp")).unwrap();
    flock(&other, FlockOperation::LockExclusive).unwrap();
    append(&arena, "d/log", b"more");
    std::thread::sleep(Duration::from_millis(900));
    assert_eq!(recorded(&arena, "d/log"), 300_000);
    common::signal(&child, Signal::INT);
    std::thread::sleep(Duration::from_millis(300));
    flock(&other, FlockOperation::Unlock).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(common::code(&output), 0, "{}", fs::read_to_string(said).unwrap());
    assert_eq!(recorded(&arena, "d/log"), 300_004);
}

#[test]
fn what_stays_away_ends_it() {
    let arena = Arena::new();
    arena.write("log", &payload(1, 300_000));
    let (child, said) = follow(&arena, &["log", "-o", "d.fecp", "-r", "200%"]);
    fs::remove_file(arena.path("log")).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(common::code(&output), 4);
    assert!(fs::read_to_string(said).unwrap().contains("log"));
    arena.expect(["repair", "d.fecp"], 0);
    assert_eq!(arena.read("log"), payload(1, 300_000));
}

#[test]
fn a_rewritten_file_that_is_all_there_is_is_refused_with_advice() {
    let arena = Arena::new();
    arena.write("log", &payload(1, 300_000));
    arena.expect(["protect", "--append", "log"], 0);
    let edited = [b"another beginning", &payload(1, 300_000)[17..290_000]].concat();
    arena.write("log", &edited);
    let said = text(&arena.expect(["protect", "-u", "--append", "log"], 1).stderr);
    assert!(said.contains("fec repair --revert --undo FILE SIDECAR"), "{said}");
    arena.expect(["repair", "--revert", "--undo", "kept.fec", "log.fecp"], 0);
    assert_eq!(arena.read("log"), payload(1, 300_000));
    arena.write("log", &edited);
    arena.expect(["protect", "-u", "log"], 0);
    is_intact(&arena, "log.fecp");
}

//! Repairs that end early, or meet another repair.

use super::*;
use rustix::fs::{FlockOperation, flock};

/// A repair that was killed at any moment can be run again. It finishes what it had begun without --revert.
#[test]
fn a_repair_that_was_killed_can_be_run_again() {
    let arena = Arena::new();
    (0..6).for_each(|nth| age(&arena.write(format!("d/{nth}"), &payload(nth, 100_000)), nth));
    protect(&arena, &["d", "-r", "200%"]);
    let (before, sidecar) = (tree(&arena.path("d")), arena.read("d.fecp"));
    let mut killed = 0;
    for nth in 0..12u32 {
        for file in 0..5 {
            let path = arena.path(format!("d/{file}"));
            rot(&path, 7000, &[0xee; 80_000]);
            age(&path, file);
        }
        fs::remove_file(arena.path("d/5")).unwrap();
        arena.write("d.fecp", &sidecar[5000..]);
        let mut child = arena.spawn(["repair", "d.fecp"]);
        std::thread::sleep(Duration::from_micros(u64::from(nth) * 1500));
        child.kill().unwrap();
        killed += u32::from(!child.wait().unwrap().success());
        // No file is undone, and none is half there.
        assert!(!arena.path("d/5").exists() || arena.read("d/5") == payload(5, 100_000));
        arena.expect(["repair", "d.fecp"], 0);
        assert!(tree(&arena.path("d")) == before, "killed after {nth} steps");
        assert!(arena.read("d.fecp") == sidecar);
        is_intact(&arena, "d.fecp");
        fs::remove_file(arena.path("d.fecp.repairing")).ok();
    }
    assert!(killed > 0, "each was faster than the first kill");
}

/// A repair that is interrupted says that the same command goes on, where a list of what it has begun is left. The list
/// may come or go while it says so, hardly ever.
#[test]
fn an_interrupted_repair_tells_what_it_leaves() {
    let arena = Arena::new();
    age(&arena.write("d/large", &payload(1, 4_000_000)), 1);
    protect(&arena, &["d", "-r", "100%"]);
    let (mut begun, mut unsaid) = (0, 0);
    for nth in 0..40u64 {
        rot(&arena.path("d/large"), 1000, &vec![0xee; 1_500_000]);
        age(&arena.path("d/large"), 1);
        let mut child = arena.spawn(["repair", "d.fecp", "-q"]);
        std::thread::sleep(Duration::from_millis(10) + Duration::from_micros(nth * 700));
        let process = rustix::process::Pid::from_child(&child);
        let _ = rustix::process::kill_process(process, rustix::process::Signal::INT);
        let mut said = String::new();
        std::io::Read::read_to_string(child.stderr.as_mut().unwrap(), &mut said).unwrap();
        let is_interrupted = child.wait().unwrap().code() == Some(130);
        if arena.path("d.fecp.repairing").exists() {
            begun += 1;
            unsaid += u32::from(said != "fec: interrupted: some of it is done; the same command goes on\n");
        } else if is_interrupted {
            assert!(said.starts_with("fec: interrupted: "), "{said}");
        }
        arena.expect(["repair", "d.fecp", "-q"], 0);
        assert!(arena.read("d/large") == payload(1, 4_000_000));
    }
    assert!(unsaid * 10 <= begun, "{unsaid} of {begun} did not say it");
}

/// Two repairs never write to one sidecar. Verifying it is always allowed.
#[test]
fn a_sidecar_that_somebody_works_on_is_left_alone() {
    let arena = Arena::new();
    furnish(&arena);
    protect(&arena, &["d"]);
    flip(&arena.path("d/large"), 0);
    let other = File::open(arena.path("d.fecp")).unwrap();
    flock(&other, FlockOperation::LockExclusive).unwrap();
    assert!(changes_nothing(&arena, &["repair", "d.fecp"], 2).contains("somebody else works on it"));
    changes_nothing(&arena, &["repair", "d.fecp", "-n"], 1);
    changes_nothing(&arena, &["verify", "d.fecp"], 1);
    // A process that another test is starting may hold the file a moment longer.
    flock(&other, FlockOperation::Unlock).unwrap();
    arena.expect(["repair", "d.fecp"], 0);
    is_intact(&arena, "d.fecp");
}

/// The list of a finished repair does not block an update.
#[test]
fn a_list_of_what_is_done_goes() {
    let arena = Arena::new();
    furnish(&arena);
    let root = protect(&arena, &["d"]);
    let list = format!("fec repair of {root}\nsince 1\n0\n1\n2\n3\n");
    arena.write("d.fecp.repairing", list.as_bytes());
    changes_nothing(&arena, &["repair", "-n", "d.fecp"], 0);
    changes_nothing(&arena, &["protect", "--update", "d"], 1);
    edit(&arena.path("d/small"), b"edited");
    arena.expect(["repair", "d.fecp"], 1);
    assert!(!arena.path("d.fecp.repairing").exists());
    assert_eq!(arena.read("d/small"), b"edited");
    arena.expect(["protect", "--update", "d"], 0);
    is_intact(&arena, "d.fecp");
}

/// A file that somebody edited after a repair had begun on it stays theirs, however often later repairs are killed.
#[test]
fn an_edit_never_becomes_what_a_repair_had_begun() {
    let arena = Arena::new();
    age(&arena.write("d/a", &payload(1, 100_000)), 1);
    age(&arena.write("d/z", &payload(2, 3_000_000)), 2);
    let root = protect(&arena, &["d"]);
    // A repair of `a` was killed. Then somebody edited `a`, and the other file rotted.
    let rotten = [&[0xee; 1024][..], &payload(1, 100_000)[1024..]].concat();
    let line = doors::line(1, &rotten, &[0], 4096);
    arena.write("d.fecp.repairing", format!("fec repair of {root}\n{line}").as_bytes());
    doors::tick();
    fs::write(arena.path("d/a"), b"edited").unwrap();
    for turn in 0..3 {
        rot(&arena.path("d/z"), 2_500_000, &[0xee; 10_000]);
        age(&arena.path("d/z"), 2);
        // The process may write no file longer than a megabyte, and dies of the attempt.
        let limited = format!("ulimit -f 1024; exec {} repair d.fecp --no-sync", common::fec_words());
        let killed =
            std::process::Command::new("sh").args(["-c", &limited]).current_dir(&arena.work).output();
        assert_ne!(killed.unwrap().status.code(), Some(0), "turn {turn}");
        assert!(arena.path("d.fecp.repairing").exists(), "it was killed while it wrote");
        assert_eq!(arena.read("d/a"), b"edited");
    }
    arena.expect(["repair", "d.fecp"], 1);
    assert_eq!(arena.read("d/a"), b"edited");
    assert_eq!(arena.read("d/z"), payload(2, 3_000_000));
}

/// Bytes that somebody appends while a file is being mended stay, and so does their time.
#[test]
fn what_somebody_writes_meanwhile_stays() {
    let arena = Arena::new();
    let len = 40_000_000;
    age(&arena.write("d/large", &payload(1, len)), 1);
    protect(&arena, &["d", "--no-sync"]);
    let large = arena.path("d/large");
    for turn in 0..4u64 {
        (0..40).for_each(|nth| rot(&large, nth * 1_000_000, &[0xee; 5000]));
        age(&large, 1);
        let then = fs::metadata(&large).unwrap().modified().unwrap();
        let changed = || fs::metadata(&large).map(|meta| (meta.ctime(), meta.ctime_nsec())).unwrap();
        let before = changed();
        let mut child = arena.spawn(["repair", "d.fecp", "--no-sync"]);
        // The repair begins to write, and reads the whole file again at the end.
        while child.try_wait().unwrap().is_none() && changed() == before {
            std::hint::spin_loop();
        }
        std::thread::sleep(Duration::from_millis(5 * turn));
        let mut file = File::options().append(true).open(&large).unwrap();
        std::io::Write::write_all(&mut file, b"appended").unwrap();
        child.wait().unwrap();
        let (bytes, now) = (arena.read("d/large"), fs::metadata(&large).unwrap().modified().unwrap());
        assert!(bytes.ends_with(b"appended") && bytes.len() == len + 8, "turn {turn}");
        assert!(now != then, "it does not look as if nobody had written to it");
        file.set_len(len as u64).unwrap();
        age(&large, 1);
        arena.expect(["repair", "d.fecp", "--no-sync"], 0);
        assert!(arena.read("d/large") == payload(1, len));
    }
}

/// The list of a repair for another state stays known, and so do its half-mended files.
#[test]
fn a_repair_of_another_state_is_finished_first() {
    let arena = Arena::new();
    furnish(&arena);
    let first = protect(&arena, &["d"]);
    arena.write("d/new", b"new");
    arena.expect(["protect", "--update", "d", "-q"], 0);
    let list = |root: &str| format!("fec repair of {root}\n1\n");
    arena.write("d.fecp.repairing", list(&first).as_bytes());
    flip(&arena.path("d/large"), 0);
    for args in [
        &["repair", "d.fecp"][..],
        &["repair", "d.fecp", "--revert"],
        &["protect", "--update", "d"],
        &["protect", "-f", "d"],
    ] {
        let said = changes_nothing(&arena, args, 1);
        assert!(said.contains(&first) && said.contains("d.fecp.repairing"), "{args:?}: {said}");
    }
    // The list is found under any name of the sidecar.
    symlink("d.fecp", arena.path("link.fecp")).unwrap();
    assert!(changes_nothing(&arena, &["repair", "link.fecp"], 1).contains(&first));
    fs::remove_file(arena.path("d.fecp.repairing")).unwrap();
    arena.expect(["repair", "d.fecp"], 0);
    // A list with an impossible time.
    let list = arena.write("d.fecp.repairing", list(&first).as_bytes());
    let ever = SystemTime::UNIX_EPOCH + Duration::from_secs(i64::MAX as u64);
    if File::open(&list).and_then(|file| file.set_modified(ever)).is_ok() {
        changes_nothing(&arena, &["repair", "d.fecp", "--root", &first, "-n"], 1);
    }
}

/// A file that somebody saves under the name of one being made anew stays.
#[test]
fn what_is_saved_meanwhile_is_not_replaced() {
    let arena = Arena::new();
    for turn in 0..6 {
        age(&arena.write("d/a", &payload(1, 20_000_000)), 1);
        fs::remove_file(arena.path("d/b")).ok();
        fs::hard_link(arena.path("d/a"), arena.path("d/b")).unwrap();
        protect(&arena, &["d", "-f", "--no-sync", "-r", "200%"]);
        fs::remove_file(arena.path("d/a")).unwrap();
        let mut child = arena.spawn(["repair", "d.fecp", "--no-sync"]);
        std::thread::sleep(Duration::from_millis(15 * turn));
        arena.write("saved", b"my new text");
        fs::rename(arena.path("saved"), arena.path("d/b")).unwrap();
        child.wait().unwrap();
        // The save came before or after the end of the repair: either way the file is there.
        assert!(arena.read("d/b") == b"my new text" || fs::metadata(arena.path("d/b")).unwrap().len() == 11);
    }
}

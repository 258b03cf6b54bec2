//! Repairs that end on the way, or meet another one.

use super::*;
use rustix::fs::{FlockOperation, flock};

/// A repair that was killed at any moment can be run again, and mends what it had begun without being told to revert it.
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
        // Nothing is undone, and nothing is half there.
        assert!(!arena.path("d/5").exists() || arena.read("d/5") == payload(5, 100_000));
        arena.expect(["repair", "d.fecp"], 0);
        assert!(tree(&arena.path("d")) == before, "killed after {nth} steps");
        assert!(arena.read("d.fecp") == sidecar);
        is_intact(&arena, "d.fecp");
        fs::remove_file(arena.path("d.fecp.repairing")).ok();
    }
    assert!(killed > 0, "each was faster than the first kill");
}

/// Two repairs do not write to one sidecar; looking at it is free.
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

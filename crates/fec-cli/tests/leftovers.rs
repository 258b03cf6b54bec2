//! Runs that end early, and how the next run deals with their leftovers.

mod common;

use common::{Arena, finish, payload, signal, text};
use rustix::process::{Pid, Signal, test_kill_process};
use std::fs;
use std::io::Write;
use std::process::Output;

/// The number of a process that does not exist.
fn nobody() -> u32 {
    let is_gone = |pid: &i32| Pid::from_raw(*pid).is_some_and(|pid| test_kill_process(pid).is_err());
    (4_000_000..).find(is_gone).unwrap() as u32
}

fn said(output: &Output) -> String {
    text(&output.stderr)
}

#[test]
fn what_a_killed_run_left_is_removed_by_the_next_one_there_and_named() {
    let arena = Arena::new();
    arena.write("a", &payload(1, 50_000));
    arena.write("photos/1.jpg", &payload(2, 50_000));
    let (dead, alive) = (format!(".fec-{}-0.tmp", nobody()), format!(".fec-{}-0.tmp", std::process::id()));
    arena.write(&alive, b"of a process that is there");
    let runs: [&[&str]; 5] = [
        &["encode", "a", "-o", "a.fec"],
        &["encode", "a"],
        &["decode", "a.fec", "-o", "back"],
        &["protect", "photos"],
        &["protect", "--update", "photos"],
    ];
    for args in runs {
        arena.write(&dead, &[1; 2048]);
        let output = arena.expect(args, 0);
        assert!(!arena.path(&dead).exists(), "{args:?}");
        let line = format!("{dead} (2 KiB), which a killed run had left");
        assert!(said(&output).contains(&line), "{args:?}: {}", said(&output));
    }
    // An unfinished folder of shard files is removed, and with -q without a message.
    fs::create_dir(arena.path(&dead)).unwrap();
    arena.write(format!("{dead}/a.000.shard"), b"half");
    let output = arena.expect(["encode", "a", "-o", "b.fec", "-q"], 0);
    assert!(!arena.path(&dead).exists() && output.stderr.is_empty());
    // A folder that merely has such a name stays.
    fs::create_dir(arena.path(&dead)).unwrap();
    arena.write(format!("{dead}/letter"), b"precious");
    arena.expect(["encode", "a", "-o", "c.fec"], 0);
    assert!(arena.path(&dead).join("letter").exists() && arena.path(&alive).exists());
}

/// A killed repair may leave whole files under temporary names. The next run removes them: they do not count as shards.
#[test]
fn shards_that_a_killed_repair_left_are_missing_and_made_anew() {
    let arena = Arena::new();
    arena.write("a", &payload(1, 50_000));
    arena.expect(["encode", "a", "-k", "3", "-m", "2"], 0);
    let shard = |n: u32| arena.path(format!("a.shards/a.00{n}.shard"));
    let whole = fs::read(shard(1)).unwrap();
    let left = arena.path(format!("a.shards/.fec-{}-0.tmp", nobody()));
    fs::rename(shard(1), &left).unwrap();
    let verified = arena.expect(["verify", "a.shards"], 1);
    assert!(text(&verified.stdout).contains("missing: shards 1"), "{}", text(&verified.stdout));
    arena.expect(["repair", "a.shards"], 0);
    assert_eq!(fs::read(shard(1)).unwrap(), whole);
    assert!(!left.exists());
    // The leftovers are removed even if nothing is left to repair.
    fs::write(&left, &whole).unwrap();
    arena.expect(["repair", "-n", "a.shards"], 0);
    assert!(left.exists());
    let repaired = arena.expect(["repair", "a.shards"], 0);
    assert!(!left.exists() && said(&repaired).contains("which a killed run had left"), "{}", said(&repaired));
}

/// Two runs in one folder: neither removes a file that the other is writing.
#[test]
fn what_a_running_process_writes_is_left() {
    let arena = Arena::new();
    arena.write("a", &payload(1, 50_000));
    let mut first = arena.spawn(["encode", "-", "-o", "slow.fec"]);
    let mut input = first.stdin.take().unwrap();
    input.write_all(&payload(2, 1000)).unwrap();
    arena.wait_for_temporary();
    let second = arena.expect(["encode", "a", "-o", "a.fec"], 0);
    assert!(!said(&second).contains("removed"), "{}", said(&second));
    drop(input);
    let first = finish(first, b"", common::LIMIT).expect("it ends");
    assert!(first.status.success(), "{}", said(&first));
    arena.expect(["verify", "slow.fec"], 0);
}

#[test]
fn an_interrupted_run_says_so_in_one_line() {
    let arena = Arena::new();
    let mut child = arena.spawn(["encode", "-", "-o", "a.fec"]);
    let input = child.stdin.take();
    arena.wait_for_temporary();
    signal(&child, Signal::INT);
    let output = finish(child, b"", common::LIMIT).expect("it ends");
    drop(input);
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(said(&output), "fec: interrupted: nothing partial was left\n");
    arena.nothing_temporary();
}

#[test]
fn more_is_told_when_it_is_asked_for_twice() {
    let arena = Arena::new();
    arena.write("a", &payload(1, 50_000));
    arena.expect(["encode", "a", "-o", "a.fec"], 0);
    let lines =
        |more: &str| said(&arena.expect(["decode", "a.fec", "-o", "out", "-f", more], 0)).lines().count();
    let (once, twice) = (lines("-v"), lines("-vv"));
    assert!(twice > once + 1, "{once} and {twice}");
}

//! The examples of the guide, and what no caller should do.

use crate::calls::{command, compiled};
use std::io::Write;
use std::process::{Output, Stdio};

fn run(program: &std::path::Path, args: &[&str], input: &[u8]) -> Output {
    let mut command = command(program);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().expect("a process");
    let mut stdin = process.stdin.take().expect("it is piped");
    std::thread::scope(|scope| {
        // Who ends early reads not all of it.
        scope.spawn(move || drop(stdin.write_all(input)));
        process.wait_with_output().expect("it ends")
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_example_protects_and_restores() {
    let place = tempfile::tempdir().expect("a scratch folder");
    let done = run(&compiled("examples/protect.c", place.path()), &[], b"");
    let (said, why) = (text(&done.stdout), text(&done.stderr));
    assert!(done.status.success() && why.is_empty(), "{said}{why}");
    for line in [
        "14 shards, payload.000.shard and others",
        "shard 13 of 10 + 4 is intact",
        "status 1: 10 of 14 shards intact, 1 damaged, 3 missing",
        "0 more may be lost",
        "27 bytes restored: the only copy of something",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
}

/// A container of several groups through pipes, with damage, with another root, and cut.
#[test]
fn the_example_of_streams_carries_bytes_through_a_pipe() {
    let place = tempfile::tempdir().expect("a scratch folder");
    let pipe = compiled("examples/pipe.c", place.path());
    let payload: Vec<u8> = (0..60_000_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 23) as u8).collect();
    let encoded = run(&pipe, &["encode"], &payload);
    assert!(encoded.status.success(), "{}", text(&encoded.stderr));
    let (root, container) = (text(&encoded.stderr), encoded.stdout);
    let root = root.trim();
    let mut damaged = container.clone();
    damaged[30_000_000..30_400_000].fill(0);
    let decoded = run(&pipe, &["decode", root], &damaged);
    assert!(decoded.status.success(), "{}", text(&decoded.stderr));
    assert!(decoded.stdout == payload);
    let other = root.replace(&root[..1], if root.starts_with('0') { "1" } else { "0" });
    for (args, input, status) in [
        (&["decode", &other][..], &container[..], 5),
        (&["decode", root], &container[..container.len() / 2], 3),
        (&["decode", "no root"], &container, 2),
        (&[], &[], 2),
    ] {
        let refused = run(&pipe, args, input);
        let why = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(status), "{args:?}: {why}");
        assert!(why.starts_with(&format!("status {status}: ")), "{why}");
    }
}

#[test]
fn misuse_has_a_status_and_leaks_nothing() {
    let place = tempfile::tempdir().expect("a scratch folder");
    let done = run(&compiled("tests/programs/misuse.c", place.path()), &[], b"");
    assert!(done.status.success(), "{}{}", text(&done.stdout), text(&done.stderr));
}

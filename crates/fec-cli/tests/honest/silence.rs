//! A run that does not end with 0 gives a reason on standard error, in one line with -q.

use super::furnished;
use crate::common::{Arena, flip, text};
use std::fs;

fn arena() -> Arena {
    let arena = furnished();
    let root = text(&arena.expect(["encode", "a", "--to", "p", "--crowded", "-q"], 0).stdout);
    arena.write("root", root.as_bytes());
    arena
}

/// The lines on standard error.
fn said(arena: &Arena, args: &[&str], exit: i32) -> String {
    let output = arena.expect([args, &["-q"]].concat(), exit);
    let said = text(&output.stderr);
    assert!(said.starts_with("fec: "), "{args:?}: {said:?}");
    said
}

#[test]
fn every_exit_code_has_a_reason_that_is_said() {
    let arena = arena();
    flip(&arena.path("a.fec"), 2000);
    (0..3).for_each(|nth| fs::remove_file(arena.path(format!("a.shards/a.00{nth}.shard"))).unwrap());
    fs::remove_file(arena.path("d/1")).unwrap();
    let stored: Vec<_> = fs::read_dir(arena.path("p")).unwrap().collect();
    assert!(!stored.is_empty());
    for (args, exit) in [
        (&["verify", "a.fec"][..], 1),
        (&["verify", "a.fec", "a.shards", "d.fecp"], 1),
        (&["verify", "a.fec", "--need", "100"], 3),
        (&["verify", "d.fecp"], 1),
        (&["verify", "d.fecp", "--quick"], 1),
        (&["repair", "a.fec", "-n"], 1),
        (&["repair", "a.shards", "-n"], 1),
        (&["repair", "d.fecp", "-n"], 1),
        (&["verify", "none"], 4),
        (&["decode", "none"], 4),
        (&["repair", "none"], 4),
        (&["manifest", "none"], 4),
        (&["attest", "none"], 4),
        (&["protect", "none"], 4),
        (&["list", "none"], 4),
        (&["encode", "none"], 4),
        (&["verify", "--need", "x"], 2),
    ] {
        said(&arena, args, exit);
    }
    // The damage is repaired, and then a file is edited.
    arena.expect(["repair", "d.fecp", "-q"], 0);
    std::thread::sleep(std::time::Duration::from_millis(50));
    arena.write("d/2", b"edited");
    assert!(said(&arena, &["repair", "d.fecp"], 1).contains("1 left as edited, moved or gone"));
    assert!(said(&arena, &["repair", "d.fecp", "-n"], 1).contains("1 left as edited, moved or gone"));
    (0..4).for_each(|nth| fs::remove_file(arena.path(format!("d/{nth}"))).unwrap());
    let bytes = arena.read("d.fecp");
    arena.write(
        "d.fecp",
        &[&bytes[..bytes.len() / 3], &vec![0; bytes.len() / 3], &bytes[bytes.len() * 2 / 3..]].concat(),
    );
    let output = arena.run(["repair", "--partial", "-q", "d.fecp"]);
    assert!(output.status.code() == Some(0) || text(&output.stderr).starts_with("fec: "), "{output:?}");
    let cut = arena.read("s.stream");
    arena.write("cut.stream", &cut[..cut.len() / 2]);
    said(&arena, &["decode", "cut.stream", "-o", "out"], 3);
    arena.write("cut.fec", &arena.read("a.fec")[..20_000]);
    said(&arena, &["decode", "cut.fec", "-o", "other"], 3);
}

/// The rule holds for stores too.
#[test]
fn what_stores_have_lost_is_said() {
    let arena = arena();
    let mut shards = Vec::new();
    let mut open = vec![arena.path("p")];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if fs::metadata(&path).unwrap().len() > 1000 {
                shards.push(path);
            }
        }
    }
    shards.sort();
    shards.iter().take(20).for_each(|path| fs::remove_file(path).unwrap());
    said(&arena, &["verify", "--from", "p", "--root", "@root"], 1);
    said(&arena, &["repair", "--from", "p", "--root", "@root", "--now", "-n"], 1);
}

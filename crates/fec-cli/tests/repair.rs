//! `fec repair` as users meet it: missing, flipped, cut or joined files become what they were.

mod common;

use common::{Arena, expect, payload, text};
use std::fs;

/// Repairs each kind of damage at a small size: missing, flipped, cut and joined files become what they were, and
/// nothing else changes.
#[test]
fn repair_makes_anew_what_is_damaged() {
    let arena = Arena::new();
    arena.write("in", &payload(81, 200_000));
    let shape = ["-k", "5", "-m", "4", "--set-size", "20K", "-q"];
    arena.expect([&["encode", "in", "-o", "s/"], &shape[..]].concat(), 0);
    let original: Vec<Vec<u8>> = (0..9).map(|i| arena.read(format!("s/in.{i:03}.shard"))).collect();
    let annex = fec_core::format::annex::write(1 << 31, b"signed");
    let shard = |i: usize| format!("s/in.{i:03}.shard");
    let hurt = || {
        fs::remove_file(arena.path(shard(0))).unwrap();
        let mut flipped = original[3].clone();
        let middle = flipped.len() / 2;
        flipped[middle] ^= 1;
        arena.write(shard(3), &[flipped, annex.clone()].concat());
        arena.write(shard(5), &original[5][..500]);
        arena.write("s/notes", b"mine");
    };
    hurt();
    let before = arena.state();
    assert!(text(&arena.expect(["repair", "s", "-n"], 1).stderr).contains("3 of 9 shard files"));
    arena.unchanged(&before);
    arena.expect(["repair", "s", "-o", "new"], 0);
    assert_eq!(common::listing(&arena.path("new")).len(), 3);
    assert!(arena.read("new/in.000.shard") == original[0]);
    fs::remove_dir_all(arena.path("new")).unwrap();
    arena.unchanged(&before);
    let report: serde_json::Value =
        serde_json::from_slice(&arena.expect(["repair", "s", "--json"], 0).stdout).unwrap();
    assert_eq!((report["files"].as_array().unwrap().len(), &report["written"]), (3, &true.into()));
    for (i, bytes) in original.iter().enumerate() {
        let kept = if i == 3 { &annex[..] } else { b"" };
        assert!(arena.read(shard(i)) == [bytes, kept].concat(), "{i}");
    }
    assert_eq!(arena.read("s/notes"), b"mine");
    assert!(text(&arena.expect(["repair", "s"], 0).stderr).contains("nothing to repair"));
    // A foreign file with the name of a missing shard is replaced only with -f.
    arena.write(shard(7), b"not a shard");
    let before = arena.state();
    arena.refuses(["repair", "s"], 2);
    arena.unchanged(&before);
    arena.expect(["repair", "s", "-f"], 0);
    assert!(arena.read(shard(7)) == original[7]);
    // Too little is left: nothing changes.
    (0..5).for_each(|i| fs::remove_file(arena.path(shard(i))).unwrap());
    let before = arena.state();
    arena.refuses(["repair", "s"], 3);
    arena.unchanged(&before);
    for groups in [&[][..], &["--group-size", "2"]] {
        arena.expect([&["encode", "in", "-o", "c.fec", "-f"], &shape[..], groups].concat(), 0);
        let whole = arena.read("c.fec");
        let mut gap = whole.clone();
        gap[3000..9000].fill(0);
        let cut = [&whole[..2000], &whole[2100..]].concat();
        let joined = [&whole[..], b"something else"].concat();
        for damaged in [gap, cut, joined, whole[..whole.len() - 1].to_vec(), [&whole[..9], &whole].concat()] {
            arena.write("c.fec", &damaged);
            arena.expect(["repair", "c.fec", "--no-sync", "-q"], 0);
            assert!(arena.read("c.fec") == whole);
        }
        // An annex behind the container stays, and another encoding in the same file is not lost.
        arena.write("c.fec", &[&whole[..5000], &[0; 64], &whole[5064..], &annex].concat());
        arena.expect(["repair", "c.fec", "-q"], 0);
        assert!(arena.read("c.fec") == [&whole[..], &annex].concat());
        arena.write("p", b"another");
        let root = common::root(&arena.run(["encode", "p", "-o", "p.fec", "-q", "-f"]));
        let two = [&whole[..5000], &[0; 64], &whole[5064..], &arena.read("p.fec")].concat();
        arena.write("c.fec", &two);
        arena.refuses(["repair", "c.fec"], 2);
        arena.refuses(["repair", "c.fec", "--root", &root], 2);
        assert!(arena.read("c.fec") == two);
        arena.expect(["repair", "c.fec", "--root", &root, "-o", "one.fec"], 0);
        assert!(arena.read("one.fec") == arena.read("p.fec"));
        fs::remove_file(arena.path("one.fec")).unwrap();
    }
    expect(&arena.pipe(["repair", "-"], &arena.read("p.fec")), 2);
    arena.nothing_temporary();
}

/// A container of one set is cut in the middle: the k records that are left are enough, and one fewer is not.
#[test]
fn a_container_that_was_cut_short_is_made_whole() {
    let arena = Arena::new();
    arena.write("in", &payload(82, 20_000));
    arena.expect(["encode", "in", "-o", "c.fec", "-k", "5", "-m", "4", "-q"], 0);
    let whole = arena.read("c.fec");
    let is_record = |at: &usize| whole[*at..].starts_with(b"\x89fecR\r\n\x1a");
    let records: Vec<usize> = (0..whole.len()).filter(is_record).collect();
    assert_eq!(records.len(), 9, "one set");
    for len in [records[5], records[6] + 100, records[8], whole.len() - 1] {
        arena.write("c.fec", &whole[..len]);
        arena.expect(["verify", "c.fec"], 1);
        arena.expect(["repair", "c.fec", "--no-sync", "-q"], 0);
        assert!(arena.read("c.fec") == whole, "{len} of {} bytes", whole.len());
    }
    arena.write("c.fec", &whole[..records[5] - 1]);
    arena.refuses(["repair", "c.fec"], 3);
}

//! `fec repair PATH --from`: shard files and containers come back from copies elsewhere.

use crate::common::{Arena, expect, flip, payload, shard_files, text};
use crate::mirrors::{Conduct, json, serve};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// An encoding of 10 + 4 shard files in `a.shards`, and a copy of it in `copy/a.shards`.
fn encoded() -> Arena {
    let arena = Arena::new();
    arena.write("a", &payload(1, 300_000));
    arena.expect(["encode", "a", "-k", "10", "-m", "4", "-q"], 0);
    copy(&arena, "copy/a.shards", |_| true);
    arena
}

/// Copies shard files whose numbers are wanted to another folder.
fn copy(arena: &Arena, to: &str, is_wanted: impl Fn(usize) -> bool) {
    fs::create_dir_all(arena.path(to)).unwrap();
    let files = shard_files(&arena.path("a.shards"));
    for file in files.iter().enumerate().filter(|(nth, _)| is_wanted(*nth)).map(|(_, file)| file) {
        fs::copy(file, arena.path(to).join(file.file_name().unwrap())).unwrap();
    }
}

/// Loses the shard files whose numbers are not kept.
fn keep(arena: &Arena, is_kept: impl Fn(usize) -> bool) {
    copy_back(arena);
    let files = shard_files(&arena.path("a.shards"));
    for (nth, file) in files.iter().enumerate() {
        if !is_kept(nth) {
            fs::remove_file(file).unwrap();
        }
    }
}

fn copy_back(arena: &Arena) {
    for file in shard_files(&arena.path("copy/a.shards")) {
        fs::copy(&file, arena.path("a.shards").join(file.file_name().unwrap())).unwrap();
    }
}

#[track_caller]
fn is_whole(arena: &Arena) {
    let files = shard_files(&arena.path("copy/a.shards"));
    assert_eq!(files.len(), 14);
    for file in files {
        let name = file.file_name().unwrap();
        assert!(fs::read(&file).unwrap() == arena.read(Path::new("a.shards").join(name)), "{name:?}");
    }
    arena.nothing_temporary();
}

#[test]
fn as_many_shard_files_are_fetched_as_are_lacking() {
    let arena = encoded();
    let (server, _) = serve(arena.path("copy/a.shards"), Conduct::Ranges, Duration::ZERO);
    let (around, _) = serve(arena.path("copy"), Conduct::NoRanges, Duration::ZERO);
    for from in ["copy/a.shards", "copy", &server, &around] {
        keep(&arena, |nth| nth % 2 == 1);
        arena.expect(["repair", "a.shards"], 3);
        let report = json(&arena, &["repair", "a.shards", "--from", from], 0);
        // Three of seven, and the others are computed.
        let one = fs::metadata(&shard_files(&arena.path("copy/a.shards"))[0]).unwrap().len();
        assert_eq!(report["fetched"]["mirrors"][0]["taken_bytes"], 3 * one, "{report}");
        assert_eq!(report["files"].as_array().map(Vec::len), Some(4), "{report}");
        is_whole(&arena);
    }
    // Nothing is asked for where enough is left.
    let (idle, count) = serve(arena.path("copy"), Conduct::Ranges, Duration::ZERO);
    keep(&arena, |nth| nth > 3);
    arena.expect(["repair", "a.shards", "--from", &idle], 0);
    assert_eq!(count.load(Ordering::SeqCst), 0);
    is_whole(&arena);
}

#[test]
fn copies_of_shard_files_lie_lack_and_complete_each_other() {
    let arena = encoded();
    let (liar, lies) = serve(arena.path("copy/a.shards"), Conduct::Lies, Duration::ZERO);
    let (closed, _) = serve(arena.path("copy/a.shards"), Conduct::Refuses, Duration::ZERO);
    copy(&arena, "odd", |nth| nth == 1 || nth == 3);
    copy(&arena, "even", |nth| nth == 2 || nth == 4);
    // Another encoding with the same names.
    arena.write("a", &payload(2, 300_000));
    arena.expect(["encode", "a", "-k", "10", "-m", "4", "-o", "other", "-q"], 0);
    keep(&arena, |nth| !(1..=6).contains(&nth));
    let all = ["--from", &liar, "--from", &closed, "--from", "other", "--from", "odd", "--from", "even"];
    let args = ["repair", "a.shards", "--retries", "0"];
    let report = json(&arena, &[&args[..], &all[..]].concat(), 0);
    assert_eq!(report["fetched"]["mirrors"][0]["taken_bytes"], 0, "{report}");
    assert!(lies.load(Ordering::SeqCst) < 20, "{report}");
    is_whole(&arena);
    // Proved files stay, and the failure tells the part of each copy.
    keep(&arena, |nth| nth > 6);
    let output = arena.expect(["repair", "a.shards", "--from", "odd", "--from", &liar], 3);
    let said = text(&output.stderr);
    assert!(said.contains("fetched 60.3 KiB from odd") && said.contains("no copy has"), "{said}");
    assert_eq!(shard_files(&arena.path("a.shards")).len(), 9);
    arena.expect(["repair", "a.shards", "--from", "even"], 0);
    is_whole(&arena);
}

/// A copy has just enough shard files, and the first ones are not among them.
#[test]
fn the_last_shard_files_of_a_copy_are_found() {
    let arena = encoded();
    copy(&arena, "last", |nth| (5..8).contains(&nth));
    for _ in 0..5 {
        keep(&arena, |nth| nth > 9 || nth == 8 || nth == 9 || nth == 4);
        arena.expect(["repair", "a.shards", "--from", "last"], 0);
        is_whole(&arena);
    }
}

/// Damaged shard files are made anew, and what stands in the way of one shard is none of the others.
#[test]
fn damaged_files_are_made_anew_and_those_of_others_stay() {
    let arena = encoded();
    for (nth, file) in shard_files(&arena.path("a.shards")).iter().enumerate() {
        if nth < 8 {
            flip(file, 9000);
        }
    }
    arena.expect(["repair", "a.shards"], 3);
    arena.expect(["repair", "a.shards", "--from", "copy"], 0);
    is_whole(&arena);
    keep(&arena, |nth| nth > 5);
    arena.write("a.shards/a.000.shard", b"somebody's own");
    fs::create_dir(arena.path("a.shards/a.001.shard")).unwrap();
    symlink("/nowhere", arena.path("a.shards/a.002.shard")).unwrap();
    arena.run(["repair", "a.shards", "--from", "copy"]);
    assert_eq!(arena.read("a.shards/a.000.shard"), b"somebody's own");
    assert!(arena.path("a.shards/a.001.shard").is_dir() && arena.path("a.shards/a.003.shard").is_file());
    arena.nothing_temporary();
}

/// Files may be named in place of their folder.
#[test]
fn files_that_are_named_are_completed() {
    let arena = encoded();
    keep(&arena, |nth| nth == 13);
    let report = json(&arena, &["repair", "a.shards/a.013.shard", "--from", "copy"], 0);
    assert!(report["written"] == true && report["state"] != "lost", "{report}");
    is_whole(&arena);
}

/// A lie that is larger than the encoding is not written to the disk.
#[test]
fn objects_that_are_too_long_are_not_fetched() {
    let arena = encoded();
    for file in shard_files(&arena.path("a.shards")) {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        let long = arena.write(format!("long/{name}"), b"");
        fs::File::options().write(true).open(long).unwrap().set_len(1 << 40).unwrap();
    }
    keep(&arena, |nth| nth > 6);
    let said = text(&arena.expect(["repair", "a.shards", "--from", "long"], 3).stderr);
    assert!(said.contains("left: 1099511627776 bytes are too many"), "{said}");
    arena.expect(["repair", "a.shards", "--from", "long", "--from", "copy"], 0);
    is_whole(&arena);
}

/// Signatures that are here stay, although the copies have none.
#[test]
fn signatures_stay() {
    let arena = Arena::new();
    arena.write("passphrase", b"\n");
    arena.expect(["keygen", "--sign", "-o", "sk", "-q", "--sign-passphrase-file", "passphrase"], 0);
    arena.write("a", &payload(1, 300_000));
    let sign = ["-k", "10", "-m", "4", "-q", "--sign", "sk", "--sign-passphrase-file", "passphrase"];
    for (output, copy) in [("signed/", "plain/"), ("signed.fec", "plain.fec")] {
        arena.expect([&["encode", "a", "-o", output][..], &sign].concat(), 0);
        arena.expect([&["encode", "a", "-o", copy][..], &sign[..5]].concat(), 0);
    }
    for (nth, file) in shard_files(&arena.path("signed")).iter().enumerate() {
        match nth {
            0..5 => flip(file, 9000),
            5..9 => fs::remove_file(file).unwrap(),
            _ => {}
        }
    }
    arena.expect(["repair", "signed", "--signer", "sk.pub", "--from", "plain"], 0);
    // Each file has the signature.
    for file in shard_files(&arena.path("signed")) {
        arena.expect(["verify".as_ref(), file.as_os_str(), "--signer".as_ref(), "sk.pub".as_ref()], 0);
    }
    let mut bytes = arena.read("signed.fec");
    let len = bytes.len();
    bytes[len / 5..len - len / 8].fill(7);
    arena.write("signed.fec", &bytes);
    arena.expect(["verify", "signed.fec", "--signer", "sk.pub"], 3);
    arena.expect(["repair", "signed.fec", "--signer", "sk.pub", "--from", "plain.fec"], 0);
    arena.expect(["verify", "signed.fec", "--signer", "sk.pub"], 0);
}

/// A file that holds another encoding too is moved aside.
#[test]
fn an_encoding_beside_in_a_container_is_moved_aside_with_it() {
    let arena = Arena::new();
    arena.write("a", &payload(1, 300_000));
    arena.write("b", &payload(2, 3000));
    let root = text(&arena.expect(["encode", "a", "-o", "a.fec", "-q"], 0).stdout);
    arena.expect(["encode", "b", "-o", "b.fec", "-q"], 0);
    let mut both = arena.read("a.fec");
    both.truncate(both.len() / 4);
    both.extend_from_slice(&arena.read("b.fec"));
    arena.write("both.fec", &both);
    let args = ["repair", "both.fec", "--root", root.trim(), "--from", "a.fec"];
    let output = arena.run(args);
    expect(&output, 0);
    assert!(text(&output.stderr).contains("the damaged container is both.fec.damaged now"));
    assert!(arena.read("both.fec.damaged") == both && arena.read("both.fec") == arena.read("a.fec"));
    // An older one aside is not written over either.
    arena.write("both.fec", &both);
    let said = arena.refuses(args, 2);
    assert!(said.contains("both.fec.damaged is in the way"), "{said}");
}

#[test]
fn a_container_comes_back_whole() {
    let arena = Arena::new();
    arena.write("a", &payload(1, 300_000));
    arena.expect(["encode", "a", "-o", "a.fec", "-q"], 0);
    let whole = arena.read("a.fec");
    arena.write("copy/a.fec", &whole);
    let (server, _) = serve(arena.path("copy"), Conduct::Ranges, Duration::ZERO);
    let file = format!("{server}/a.fec");
    let mut damaged = whole.clone();
    damaged[whole.len() / 5..whole.len() - 4096].fill(7);
    for from in ["copy", "copy/a.fec", &server, &file] {
        arena.write("a.fec", &damaged);
        arena.expect(["repair", "a.fec"], 3);
        arena.expect(["repair", "a.fec", "--from", from], 0);
        assert!(arena.read("a.fec") == whole && arena.read("a.fec.damaged") == damaged, "{from}");
        fs::remove_file(arena.path("a.fec.damaged")).unwrap();
        arena.nothing_temporary();
    }
    // A copy with damage of its own is mended; one that lies is left, and nothing changes.
    let mut worn = whole.clone();
    worn[20_000..30_000].fill(1);
    arena.write("copy/a.fec", &worn);
    arena.write("a.fec", &damaged);
    arena.expect(["repair", "a.fec", "--from", "copy"], 0);
    assert!(arena.read("a.fec") == whole);
    fs::remove_file(arena.path("a.fec.damaged")).unwrap();
    let (liar, _) = serve(arena.path("copy"), Conduct::Lies, Duration::ZERO);
    arena.write("a.fec", &damaged);
    let before = arena.state();
    let output = arena.run(["repair", "a.fec", "--from", &liar]);
    expect(&output, 3);
    arena.unchanged(&before);
}

/// Options for other repairs are refused before anything is asked for.
#[test]
fn options_that_copies_do_not_take_are_refused() {
    let arena = encoded();
    keep(&arena, |nth| nth > 6);
    let before = arena.state();
    for option in [&["-n"][..], &["-o", "out"], &["-f"], &["--spool", "."], &["--revert"], &["--to", "p"]] {
        let args = ["repair", "a.shards", "--from", "copy"].into_iter().chain(option.iter().copied());
        assert!(arena.refuses(args, 2).contains("repair"), "{option:?}");
    }
    arena.unchanged(&before);
}

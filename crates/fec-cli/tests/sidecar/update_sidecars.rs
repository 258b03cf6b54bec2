//! `fec protect --update` of sidecars that are damaged, cut short, or written to by others.

use super::forge::Forged;
use super::update::{BLOCK, appended, is_protected, note, plant, protected, report};
use super::update_limits::refused;
use super::*;

/// A sidecar of several generations is mended to its old bytes, like any other.
#[test]
fn a_repair_keeps_the_generations_before() {
    let arena = Arena::new();
    plant(&arena);
    let old = protect(&arena, &["d"]);
    arena.write("d/new", &payload(33, 20_000));
    appended(&arena, &[]);
    let whole = arena.read("d.fecp");
    for damaged in [&whole[..whole.len() - 1], &[&whole[..], b"x"].concat(), &[b"x", &whole[..]].concat()] {
        arena.write("d.fecp", damaged);
        arena.expect(["repair", "d.fecp", "--no-sync"], 0);
        assert_eq!(states(&arena, &["d.fecp", "--root", &old], 1), []);
        assert!(arena.read("d.fecp") == whole);
    }
}

/// Recovery blocks for files that are completely gone cannot be computed again, and need not be.
#[test]
fn recovery_blocks_that_serve_nothing_are_no_damage_for_ever() {
    let (arena, _) = protected(&[]);
    arena.write("d/new", &payload(33, 3 * BLOCK));
    appended(&arena, &[]);
    let second = arena.read("d.fecp").len();
    edit(&arena.path("d/new"), &payload(34, 3 * BLOCK));
    appended(&arena, &[]);
    // Between the pieces stand only recovery blocks of the first bytes of `d/new`.
    let third = arena.read("d.fecp");
    let starts = |at: &usize| third[*at..].starts_with(b"\x89fecP\r\n\x1a");
    let last = (0..second - 8).rfind(starts).unwrap();
    (1..40).for_each(|nth| flip(&arena.path("d.fecp"), (last - nth * 1000) as u64));
    let output = arena.run(["repair", "d.fecp", "--no-sync"]);
    expect(&output, 0);
    is_protected(&arena);
}

/// The nearest piece with a header tells how far a block has moved, even if it belongs to the next generation.
#[test]
fn pieces_of_any_area_tell_where_blocks_are() {
    let (arena, first) = protected(&[]);
    arena.write("d/new", &payload(33, 20_000));
    appended(&arena, &[]);
    let mut damaged = arena.read("d.fecp");
    let pieces: Vec<usize> =
        (0..first.len() - 8).filter(|at| damaged[*at..].starts_with(b"\x89fecP\r\n\x1a")).collect();
    assert_eq!(pieces.len(), 5);
    pieces.iter().for_each(|at| damaged[*at..at + 8].fill(0));
    damaged.insert(0, b'x');
    arena.write("d.fecp", &damaged);
    let report = json(&arena.run(["verify", "d.fecp", "--json"]));
    assert_eq!(
        (&report["recovery_damaged"], &report["recovery_displaced"]),
        (&0.into(), &report["recovery"])
    );
    flip(&arena.path("d/big"), 5);
    arena.expect(["repair", "d.fecp", "--no-sync"], 0);
    is_protected(&arena);
}

/// Bytes behind the sidecar are cut off, whatever they are. The sidecar is then as without them.
#[test]
fn garbage_behind_a_sidecar_is_cut_off() {
    let (arena, old) = protected(&[]);
    edit(&arena.path(note(3)), b"edited");
    appended(&arena, &[]);
    let new = arena.read("d.fecp");
    for garbage in [vec![0; 1], payload(1, 5000), vec![0; 100_000], old[..4096].to_vec()] {
        arena.write("d.fecp", &[&old[..], &garbage].concat());
        report(&arena, &[]);
        assert!(arena.read("d.fecp") == new, "{} bytes of garbage", garbage.len());
    }
    is_protected(&arena);
}

/// The remains of a generation that was once whole are not cut off unasked: a copy of the sidecar may have the rest.
#[test]
fn a_newer_generation_that_is_lost_is_not_forgotten_unseen() {
    let (arena, old) = protected(&[]);
    edit(&arena.path(note(3)), b"edited");
    appended(&arena, &[]);
    let new = arena.read("d.fecp");
    let part = old.len() + (new.len() - old.len()) / 8;
    let damaged = |bytes: &[u8]| [&new[..part], bytes].concat();
    for rest in [&[][..], &vec![7; new.len() - part], &vec![0; new.len() - part]] {
        arena.write("d.fecp", &damaged(rest));
        refused(&arena, &[], 1, "newer generation, 2");
        let said = changes_nothing(&arena, &["repair", "d.fecp", "--no-sync"], 1);
        assert!(said.contains("newer generation, 2") && said.contains("--update -f"), "{said}");
        // The files are mended all the same.
        let before = arena.read("d/big");
        flip(&arena.path("d/big"), 70_000);
        arena.expect(["repair", "d.fecp", "--no-sync"], 1);
        assert!(arena.read("d/big") == before && arena.read("d.fecp") == damaged(rest));
        report(&arena, &["-f"]);
        assert!(arena.read("d.fecp") == new, "{} bytes behind it", rest.len());
    }
    is_protected(&arena);
}

/// A generation that has lost its end is mended first if it can be read. Otherwise the previous generation counts.
#[test]
fn a_sidecar_that_is_cut_short_is_not_built_upon() {
    let (arena, first) = protected(&[]);
    edit(&arena.path(note(3)), b"edited");
    arena.write("d/new", &payload(1, 9 * BLOCK));
    appended(&arena, &[]);
    let second = arena.read("d.fecp");
    edit(&arena.path(note(4)), b"edited");
    let mut mended = 0;
    for cut in (1..second.len() - first.len()).step_by((second.len() - first.len()) / 12) {
        arena.write("d.fecp", &second[..second.len() - cut]);
        let generation = json(&arena.run(["verify", "d.fecp", "--json"]))["generation"].as_u64().unwrap();
        if generation == 2 {
            refused(&arena, &[], 1, "repair");
            mended += 1;
            arena.expect(["repair", "d.fecp", "--no-sync"], 1);
        }
        report(&arena, if generation == 2 { &[] } else { &["-f"] });
        let len = if generation == 2 { second.len() } else { first.len() };
        assert!(arena.read("d.fecp").len() > len, "{cut} bytes less");
        is_intact(&arena, "d.fecp");
    }
    assert!(mended > 0);
    is_protected(&arena);
}

#[test]
fn a_sidecar_whose_bytes_have_shifted_is_mended_first() {
    let (arena, whole) = protected(&[]);
    let notes = (arena.read(note(3)), fs::metadata(arena.path(note(3))).unwrap().modified().unwrap());
    let middle = whole.len() / 2;
    for damaged in [
        [&b"x"[..], &whole].concat(),
        whole[1..].to_vec(),
        [&whole[..middle], &[7; 100], &whole[middle..]].concat(),
        [&whole[..middle], &whole[middle + 100..]].concat(),
        whole[..whole.len() - 1].to_vec(),
    ] {
        arena.write("d.fecp", &damaged);
        edit(&arena.path(note(3)), b"edited");
        refused(&arena, &[], 1, "repair");
        refused(&arena, &["-f"], 1, "repair");
        arena.write(note(3), &notes.0);
        File::open(arena.path(note(3))).and_then(|file| file.set_modified(notes.1)).unwrap();
        arena.expect(["repair", "d.fecp", "--no-sync"], 0);
        assert!(arena.read("d.fecp") == whole);
    }
    // Changed bytes in place do not hinder an update: repair mends them before and after.
    flip(&arena.path("d.fecp"), middle as u64);
    edit(&arena.path(note(3)), b"edited");
    let exit = common::code(&arena.run(["protect", "--update", "d"]));
    assert!([0, 1].contains(&exit));
    arena.expect(["repair", "d.fecp", "--no-sync"], exit);
    appended_or_nothing(&arena);
    is_protected(&arena);
}

fn appended_or_nothing(arena: &Arena) {
    report(arena, &[]);
    is_intact(arena, "d.fecp");
}

/// Whoever can write to the sidecar can append an old generation. An update builds on the newest one that was written.
#[test]
fn an_old_generation_appended_again_is_not_believed() {
    let (arena, first) = protected(&[]);
    edit(&arena.path(note(3)), b"edited");
    appended(&arena, &[]);
    let second = arena.read("d.fecp");
    edit(&arena.path(note(4)), b"edited");
    let root = report(&arena, &[])["root"].as_str().unwrap().to_owned();
    let third = arena.read("d.fecp");
    edit(&arena.path(note(5)), b"edited");
    report(&arena, &["--root", &root]);
    let fourth = arena.read("d.fecp");
    for old in [&first[..], &second[first.len()..], &second, &third[second.len()..]] {
        arena.write("d.fecp", &[&third[..], old].concat());
        let output = arena.run(["verify", "d.fecp", "--json"]);
        assert_eq!((common::code(&output), &json(&output)["generation"]), (1, &3.into()));
        report(&arena, &["--root", &root]);
        assert!(arena.read("d.fecp") == fourth);
        arena.write("d.fecp", &[&third[..], old].concat());
        report(&arena, &[]);
        assert!(arena.read("d.fecp") == fourth);
    }
    // The old sidecar replaces the current one: only the root can tell.
    for old in [&first, &second] {
        arena.write("d.fecp", old);
        refused(&arena, &["--root", &root], 5, "");
    }
}

/// Two generations follow the same one: neither is known to be meant, and no update builds on them.
#[test]
fn a_forked_sidecar_is_ambiguous() {
    let (arena, first) = protected(&[]);
    let fork = |bytes: &[u8]| {
        arena.write("d.fecp", &first);
        edit(&arena.path(note(3)), bytes);
        let root = report(&arena, &[])["root"].as_str().unwrap().to_owned();
        (root, arena.read("d.fecp"))
    };
    let ((_, one), (root, two)) = (fork(b"one"), fork(b"two"));
    arena.write("d.fecp", &[&two[..], &one[first.len()..]].concat());
    edit(&arena.path(note(4)), b"edited");
    refused(&arena, &[], 2, "");
    report(&arena, &["--root", &root]);
    assert!(arena.read("d.fecp").starts_with(&two));
    is_protected(&arena);
}

/// Without a root, a forged generation behind an honest one counts. With the honest root nothing of it stays.
#[test]
fn a_forged_generation_is_not_built_upon_with_a_root() {
    let arena = Arena::new();
    arena.write("a", b"alpha");
    let (honest, before) = Forged::new().file(b"a", b"alpha").build();
    arena.write("a.fecp", &honest);
    let root = json(&arena.run(["verify", "a.fecp", "--json"]))["root"].as_str().unwrap().to_owned();
    let start = honest.len() as u64;
    let (forged, _) = Forged { before, start, ..Forged::new().file(b"a", b"evil!") }.build();
    let both = [&honest[..], &forged].concat();
    for (edited, options) in [(&b"alpha"[..], &["-f"][..]), (b"other", &[]), (b"other", &["--sha256"])] {
        arena.write("a", edited);
        arena.write("a.fecp", &both);
        let args = [&["protect", "--update", "a", "--root", &root], options].concat();
        let output = arena.run(args);
        let left = arena.read("a.fecp");
        match common::code(&output) {
            0 => {
                assert!(!left.windows(forged.len()).any(|window| window == forged));
                is_intact(&arena, "a.fecp");
            }
            exit => assert!([1, 2, 5].contains(&exit) && left == both, "{exit}"),
        }
        arena.nothing_temporary();
    }
}

/// An older state that is asked for does not count as intact if its sidecar is damaged.
#[test]
fn a_damaged_sidecar_is_told_of_with_an_older_root_too() {
    let (arena, _) = protected(&[]);
    let first = json(&arena.expect(["verify", "d.fecp", "--json"], 0))["root"].as_str().unwrap().to_owned();
    fs::create_dir(arena.path("d/empty folder")).unwrap();
    appended(&arena, &[]);
    let sidecar = arena.read("d.fecp");
    rot(&arena.path("d.fecp"), 30_000, b"ROT");
    let said = changes_nothing(&arena, &["repair", "d.fecp", "--root", &first], 1);
    assert!(said.contains("older generation") && !said.contains("all is intact"), "{said}");
    arena.expect(["repair", "d.fecp", "--no-sync"], 0);
    assert!(arena.read("d.fecp") == sidecar);
}

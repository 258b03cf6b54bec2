//! Damage to the sidecar itself is found, and mended byte for byte as long as enough of it or of the files is left.

use super::*;
use common::Random;

/// A furnished folder with 120 more small files, so the index of the sidecar takes several pieces. Also returns the
/// sidecar and its root.
fn protected(redundancy: &str) -> (Arena, Vec<u8>, String) {
    let arena = Arena::new();
    furnish(&arena);
    arena.write("d/long", &payload(6, 60_000));
    (0..120).for_each(|nth| drop(arena.write(format!("d/many/{nth}"), &payload(nth, 40 + nth as usize))));
    let root = protect(&arena, &["d", "-r", redundancy]);
    let sidecar = arena.read("d.fecp");
    (arena, sidecar, root)
}

/// The offsets of `what`.
fn places_of<'a>(bytes: &'a [u8], what: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    bytes.windows(what.len()).enumerate().filter(move |(_, window)| *window == what).map(|(at, _)| at)
}

/// Writes a damaged sidecar: the files stay whole, verify reports damage, and repair restores the sidecar.
#[track_caller]
fn becomes_whole_again(arena: &Arena, whole: &[u8], damaged: &[u8], name: &str) {
    assert!(damaged != whole, "{name}");
    arena.write("d.fecp", damaged);
    let before = seen(&arena.path("d"));
    let verified = arena.run(["verify", "d.fecp", "--json"]);
    assert_eq!(common::code(&verified), 1, "{name}: {}", text(&verified.stderr));
    let report = json(&verified);
    assert_eq!((&report["files"], &report["intact"]), (&serde_json::json!([]), &false.into()), "{name}");
    changes_nothing(arena, &["repair", "d.fecp", "-n"], 1);
    arena.expect(["repair", "d.fecp", "--no-sync"], 0);
    assert!(arena.read("d.fecp") == whole, "{name}: the sidecar is another");
    assert!(seen(&arena.path("d")) == before, "{name}: a file was touched");
}

#[test]
fn a_hole_anywhere_is_mended() {
    let (arena, whole, _) = protected("16%");
    let mut random = Random::new(1);
    let len = whole.len() / 10;
    for nth in 0..20 {
        let at = random.below(whole.len() - len + 1);
        let mut damaged = whole.clone();
        if nth % 2 == 0 {
            damaged[at..at + len].fill(0);
        } else {
            let noise = random.bytes(len);
            damaged[at..at + len].copy_from_slice(&noise);
        }
        becomes_whole_again(&arena, &whole, &damaged, &format!("a hole of {len} bytes at {at}"));
    }
}

#[test]
fn what_was_cut_off_or_moved_is_mended() {
    let (arena, whole, _) = protected("16%");
    let twentieth = whole.len() / 20;
    let cut = |at: usize, len: usize| [&whole[..at], &whole[at + len..]].concat();
    let insert = |at: usize, bytes: &[u8]| [&whole[..at], bytes, &whole[at..]].concat();
    let noise = payload(5, 1000);
    becomes_whole_again(&arena, &whole, &cut(0, twentieth), "the first 5 % cut off");
    becomes_whole_again(&arena, &whole, &cut(whole.len() - twentieth, twentieth), "the last 5 % cut off");
    becomes_whole_again(&arena, &whole, &insert(whole.len(), b"x"), "a byte behind it");
    becomes_whole_again(&arena, &whole, &cut(whole.len() - 1, 1), "a byte less");
    becomes_whole_again(&arena, &whole, &insert(whole.len(), &[0; 5000]), "zeros behind it");
    let mut random = Random::new(2);
    for _ in 0..5 {
        let at = random.below(whole.len() - 1000);
        becomes_whole_again(&arena, &whole, &insert(at, &noise), &format!("1000 bytes inserted at {at}"));
        becomes_whole_again(&arena, &whole, &cut(at, 1000), &format!("1000 bytes deleted at {at}"));
        let moved = [&cut(at, 1000)[..], &noise].concat();
        becomes_whole_again(&arena, &whole, &moved, &format!("1000 bytes from {at} on are at the end"));
        let again = insert(at, &whole[at..at + 1000]);
        becomes_whole_again(&arena, &whole, &again, &format!("1000 bytes at {at} twice"));
    }
}

/// The flips are few enough to leave most pieces of the index whole.
#[test]
fn flips_are_mended() {
    let (arena, whole, _) = protected("16%");
    let mut random = Random::new(3);
    for flips in [1, 1, 1, 2, 2, 3] {
        let mut damaged = whole.clone();
        (0..flips).for_each(|_| damaged[random.below(whole.len())] ^= 1 << random.below(8));
        becomes_whole_again(&arena, &whole, &damaged, &format!("{flips} flips"));
    }
}

/// A tenth of a 50 % sidecar and a tenth of the protected bytes are damaged.
#[test]
fn files_and_sidecar_are_mended_together() {
    let (arena, whole, root) = protected("50%");
    let before = tree(&arena.work);
    let mut random = Random::new(4);
    for nth in 0..8 {
        let len = whole.len() / 10;
        let at = random.below(whole.len() - len);
        let damaged = match nth % 2 {
            0 => [&whole[..at], &vec![0; len], &whole[at + len..]].concat(),
            _ => [&whole[..at], &payload(1, 777), &whole[at + len..]].concat(),
        };
        arena.write("d.fecp", &damaged);
        rot(&arena.path("d/long"), random.below(50_000) as u64, &payload(1, 5000));
        flip(&arena.path("d/large"), random.below(20_000) as u64);
        let small = random.below(120);
        fs::remove_file(arena.path(format!("d/many/{small}"))).unwrap();
        make_younger(&arena, "d.fecp", "d");
        assert_eq!(
            states(&arena, &["d.fecp", "--root", &root], 1),
            [
                pair("d/large", "rotten"),
                pair("d/long", "rotten"),
                pair(&format!("d/many/{small}"), "missing")
            ]
        );
        arena.expect(["repair", "d.fecp", "--root", &root, "--no-sync"], 0);
        assert!(tree(&arena.work) == before, "{nth}: a hole at {at}");
        is_intact(&arena, "d.fecp");
    }
}

/// A damaged sidecar can also make a whole copy, and then stays as it is.
#[test]
fn a_damaged_sidecar_stays_when_a_copy_is_made() {
    let (arena, whole, _) = protected("16%");
    let before = tree(&arena.path("d"));
    arena.write("d.fecp", &whole[whole.len() / 20..]);
    flip(&arena.path("d/long"), 0);
    arena.expect(["repair", "d.fecp", "-o", "new"], 0);
    assert!(tree(&arena.path("new/d")) == before);
    assert!(arena.read("d.fecp") == whole[whole.len() / 20..]);
}

#[test]
fn too_little_of_a_sidecar_says_so() {
    let (arena, whole, root) = protected("16%");
    let pieces: Vec<usize> = places_of(&whole, b"\x89fecP\r\n\x1a").collect();
    assert!(pieces.len() == 5 && pieces[1] > whole.len() / 10, "{pieces:?}");
    for (left, word) in [
        (&whole[..pieces[2]], "too few of its pieces are left"),
        (&whole[pieces[pieces.len() - 2] - 2000..], "too few of its pieces are left"),
        (&whole[..whole.len() / 10], "no piece of a sidecar was found"),
    ] {
        arena.write("d.fecp", left);
        for args in [&["verify", "d.fecp"][..], &["repair", "d.fecp"], &["repair", "d.fecp", "--root", &root]]
        {
            let said = changes_nothing(&arena, args, 3);
            assert!(said.contains(word), "{args:?}: {said}");
        }
    }
    for nothing in [&b""[..], &[0; 5000], b"\x89fecP\r\n\x1a", &payload(1, 5000)] {
        arena.write("d.fecp", nothing);
        for command in ["verify", "repair"] {
            let said = changes_nothing(&arena, &[command, "d.fecp"], 3);
            assert!(said.contains("no piece of a sidecar was found"), "{said}");
        }
    }
}

#[test]
fn a_root_names_what_the_files_are() {
    let (arena, _, root) = protected("16%");
    arena.write("root", root.as_bytes());
    for root in [&root, "@root"] {
        changes_nothing(&arena, &["verify", "d.fecp", "--root", root], 0);
        changes_nothing(&arena, &["repair", "d.fecp", "--root", root], 0);
    }
    let wrong = "07".repeat(32);
    flip(&arena.path("d/large"), 9);
    for command in ["verify", "repair"] {
        let said = changes_nothing(&arena, &[command, "d.fecp", "--root", &wrong], 5);
        assert!(said.contains(&root), "{said}");
    }
    make_younger(&arena, "d.fecp", "d");
    arena.expect(["repair", "d.fecp", "--root", &root], 0);
}

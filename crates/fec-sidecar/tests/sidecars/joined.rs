//! Updates that write differences of the metadata, and those that write the sidecar again with what it keeps.

use crate::arena::*;
use fec_base::error::Class;
use fec_sidecar::SidecarError;
use std::fs;

const PIECE: &[u8] = b"\x89fecP\r\n\x1a";

/// A tree of many small files and a large one, whose catalog is long; and its sidecar.
fn many() -> Arena {
    let arena = Arena::new();
    for nth in 0..600 {
        arena.write(format!("d/{}/{nth:03}", nth % 7), &payload(nth as u64, 3000 + nth));
    }
    arena.write("d/big", &payload(601, 12_000_000));
    arena.protect(&How::default());
    arena
}

/// The offsets of all pieces of metadata.
fn pieces(bytes: &[u8]) -> Vec<usize> {
    (0..bytes.len() - 8).filter(|at| bytes[*at..].starts_with(PIECE)).collect()
}

#[test]
fn an_edit_costs_what_it_changed() {
    let arena = many();
    let first = arena.read("d.fecp");
    let roots: Vec<_> = (0..5)
        .map(|nth| {
            let before = arena.read("d.fecp").len();
            edit(&arena.path(format!("d/3/{:03}", 3 + 7 * nth)), b"a line");
            let updated = arena.update(&How::default());
            assert!(!updated.is_joined && updated.anew.is_none());
            let added = arena.read("d.fecp").len() - before;
            assert!(added < 40_000, "{added} bytes for a line; the first generation has {}", first.len());
            arena.is_intact();
            updated.sidecar.root
        })
        .collect();
    assert!(arena.read("d.fecp").starts_with(&first));
    // Each generation is read by its root, and listed.
    for (nth, root) in roots.iter().enumerate() {
        assert_eq!(arena.open(Some(*root)).unwrap().generation(), nth as u64 + 2);
    }
    let settings = &context().settings;
    assert_eq!(arena.open(None).unwrap().generations(settings).unwrap().len(), 6);
    flip(&arena.path("d/big"), 7_000_000);
    fs::remove_file(arena.path("d/3/003")).unwrap();
    arena.mend_all();
    assert_eq!(arena.read("d/3/003"), b"a line");
    arena.is_intact();
}

/// The pieces of the whole generation count as those of the difference.
#[test]
fn damage_of_the_whole_generation_is_found_and_mended() {
    let arena = many();
    let first = pieces(&arena.read("d.fecp"));
    edit(&arena.path("d/3/003"), b"a line");
    arena.update(&How::default());
    let good = arena.read("d.fecp");
    // A third of its pieces may be lost.
    let hit = &first[..first.len() / 5];
    let mut bad = good.clone();
    hit.iter().for_each(|at| bad[at + 9] ^= 1);
    arena.write("d.fecp", &bad);
    let (sidecar, found) = arena.examine();
    assert_eq!(sidecar.pieces().all - sidecar.pieces().intact, hit.len() as u64);
    assert_eq!(found.recovery_damaged, 0);
    assert!(arena.mend_all().sidecar);
    assert!(arena.read("d.fecp") == good);
    // An update that finds nothing to do mends them too.
    arena.write("d.fecp", &bad);
    assert!(!arena.update(&How::default()).written);
    assert!(arena.read("d.fecp") == good);
    // Without them nothing is known, and the difference is told by nobody.
    first.iter().for_each(|at| bad[at + 9] ^= 2);
    arena.write("d.fecp", &bad);
    let error = arena.open(None).unwrap_err();
    assert!(matches!(error.cause(), Some(SidecarError::TooFewPieces)), "{error}");
    arena.refuses_update(&How::default(), Class::Lost);
}

/// A difference that is lost leaves the generation before, and says so.
#[test]
fn a_lost_difference_is_reported() {
    let arena = many();
    let first = arena.read("d.fecp");
    edit(&arena.path("d/3/003"), b"a line");
    arena.update(&How::default());
    let mut bad = arena.read("d.fecp");
    let new: Vec<usize> = pieces(&bad).into_iter().filter(|at| *at >= first.len()).collect();
    assert!(new.len() > 8, "{} pieces", new.len());
    let (last, others) = new.split_last().unwrap();
    others.iter().for_each(|at| bad[at + 9] ^= 1);
    arena.write("d.fecp", &bad);
    assert_eq!(arena.open(None).unwrap().generation(), 2, "a piece is enough");
    // The body of the last is rotten, and its head is right.
    bad[last + 600] ^= 1;
    arena.write("d.fecp", &bad);
    let (sidecar, found) = arena.examine();
    assert_eq!(sidecar.generation(), 1);
    assert!(found.sidecar_damage.iter().any(|said| said.contains("generation 2")), "{found:?}");
    arena.refuses_update(&How::default(), Class::Mendable);
}

/// Many nights: the sidecar stays about as long as a new one, little is read again, and all can be restored.
#[test]
fn a_growing_tree_is_read_about_once() {
    let arena = Arena::new();
    let mut len = 0;
    let mut put = |nth: u64, size: usize| {
        len += size;
        arena.write(format!("d/{nth:03}"), &payload(nth, size));
        len as u64
    };
    for nth in 0..20 {
        put(nth, 1_000_000);
    }
    arena.protect(&How::default());
    let (mut added, mut coded, mut joined) = (0, 0, 0);
    for night in 0..40 {
        let size = 150_000 + night as usize * 3000;
        let all = put(100 + night, size);
        added += size as u64;
        let updated = arena.update(&How::default());
        assert_eq!(updated.anew, None, "night {night}");
        joined += u32::from(updated.is_joined);
        coded += updated.coded_len;
        let share = arena.read("d.fecp").len() as f64 / all as f64;
        assert!(share < 0.199, "night {night}: {share}");
    }
    assert!(joined > 1 && coded < added * 5 / 2, "{joined} times, {coded} of {added}");
    arena.is_intact();
    let before: Vec<_> = (100..140).map(|nth| arena.read(format!("d/{nth}"))).collect();
    // Runs in old and in new files.
    flip(&arena.path("d/003"), 5);
    rot(&arena.path("d/011"), 100_000, &payload(7, 800_000));
    rot(&arena.path("d/120"), 8192, &payload(7, 4096 * 4));
    rot(&arena.path("d/139"), 8192, &payload(7, 4096 * 4));
    arena.mend_all();
    arena.is_intact();
    assert!((100..140).zip(before).all(|(nth, before)| arena.read(format!("d/{nth}")) == before));
}

/// Each generation is read when a sidecar is opened, and there are never many.
#[test]
fn many_small_updates_leave_few_generations() {
    let arena = many();
    arena.write("d/more", &payload(602, 36_000_000));
    arena.update(&How::default());
    let generations = (0..68).map(|nth| {
        age(&arena.path("d/3/003"), 2000 + nth);
        let updated = arena.update(&How::default());
        assert_eq!((updated.anew, updated.coded_len), (None, 0));
        assert_eq!(updated.is_joined, updated.generation == 1);
        updated.generation
    });
    assert_eq!(generations.max(), Some(64));
    arena.is_intact();
}

/// A recovery block that rotted is not copied, and not forgotten.
#[test]
fn rot_in_the_sidecar_outlives_no_writing_again() {
    let arena = many();
    let mut night = 0;
    loop {
        night += 1;
        let longer = [&arena.read("d/big")[..], &payload(700 + night, 300_000)].concat();
        arena.write("d/big", &longer);
        if night == 3 {
            // Recovery blocks are between the pieces.
            let place = pieces(&arena.read("d.fecp"))[4] as u64;
            flip(&arena.path("d.fecp"), place - 5000);
        }
        if arena.update(&How::default()).is_joined && night >= 3 {
            break;
        }
        assert!(night < 40);
    }
    let (_, found) = arena.examine();
    assert_eq!((found.recovery_damaged, found.recovery_displaced), (1, 0));
    assert!(arena.mend_all().sidecar);
    arena.is_intact();
}

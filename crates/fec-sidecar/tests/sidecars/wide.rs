//! Sets of more than 256 blocks: any m of their blocks may be lost.

use crate::arena::*;
use fec_base::error::Class;
use fec_sidecar::examine::examine_deep;
use fec_sidecar::repair::Mend;
use std::fs;

const BLOCK: usize = 4096;

/// Different numbers below `of`, from a seed.
fn some(seed: u64, count: usize, of: usize) -> Vec<usize> {
    let mut all: Vec<usize> = (0..of).collect();
    let mut state = seed;
    for nth in 0..count {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        all.swap(nth, nth + (state >> 33) as usize % (of - nth));
    }
    all.truncate(count);
    all
}

/// Rots a byte in each of these blocks.
fn hit(arena: &Arena, name: &str, blocks: &[usize]) {
    blocks.iter().for_each(|block| flip(&arena.path(name), (block * BLOCK + block % BLOCK) as u64));
}

#[test]
fn any_blocks_of_a_set_may_be_lost_up_to_its_recovery_blocks() {
    let arena = Arena::new();
    let whole = payload(1, 600 * BLOCK + 77);
    arena.write("d/a", &whole);
    let protected = arena.protect(&How::default());
    assert_eq!((protected.code, protected.sets), ((601, 97), 1));
    assert_eq!(protected.spare.anywhere, 97 * BLOCK as u64);
    assert_eq!(protected.spare.scattered, protected.spare.anywhere);
    for (seed, count) in [(1, 1), (2, 2), (3, 20), (4, 64), (5, 97)] {
        hit(&arena, "d/a", &some(seed, count, 600));
        assert_eq!(arena.examine().1.margin.spare.anywhere, (97 - count) as u64 * BLOCK as u64);
        arena.mend_all();
        assert!(arena.read("d/a") == whole, "{count} of 600");
        arena.is_intact();
    }
    // Ninety-eight are too many: nothing is written.
    hit(&arena, "d/a", &some(6, 98, 600));
    let rotten = arena.read("d/a");
    arena.refuses(Class::Lost, || arena.try_mend(&Mend::default()));
    assert!(arena.read("d/a") == rotten);
}

/// Files and recovery blocks are mended together, and recovery blocks alone.
#[test]
fn a_set_and_its_recovery_blocks_are_mended() {
    let arena = Arena::new();
    let whole = payload(1, 500 * BLOCK);
    arena.write("d/a", &whole);
    arena.protect(&How::default());
    let sidecar = arena.read("d.fecp");
    let middle = sidecar.len() as u64 / 2;
    for count in [0, 30] {
        rot(&arena.path("d.fecp"), middle, &vec![9; 40 * BLOCK]);
        hit(&arena, "d/a", &some(7, count, 500));
        arena.mend_all();
        assert!(arena.read("d/a") == whole && arena.read("d.fecp") == sidecar, "{count}");
        let found = examine_deep(&arena.open(None).unwrap(), &arena.base(), &context()).unwrap();
        assert!(found.is_intact());
    }
}

/// Positions are dealt to several sets in runs: a gap of as many blocks as all may lose hits all alike.
#[test]
fn several_sets_are_mended_and_updated() {
    let arena = Arena::new();
    let whole = payload(1, 150_000);
    arena.write("d/a", &whole);
    let protected = arena.protect(&How::of_percent(6000));
    assert_eq!((protected.code, protected.sets, protected.block), ((128, 7680), 2, 1024));
    fs::remove_file(arena.path("d/a")).unwrap();
    arena.mend_all();
    assert!(arena.read("d/a") == whole);
    arena.write("d/b", &payload(2, 3000));
    arena.update(&How::default());
    fs::remove_file(arena.path("d/a")).unwrap();
    fs::remove_file(arena.path("d/b")).unwrap();
    arena.mend_all();
    assert!(arena.read("d/a") == whole && arena.read("d/b") == payload(2, 3000));
    let found = examine_deep(&arena.open(None).unwrap(), &arena.base(), &context()).unwrap();
    assert!(found.is_intact());
}

/// Sets of at most 256 blocks, several side by side, as sidecars have had for long.
#[test]
fn small_sets_side_by_side_are_mended_and_updated() {
    let arena = Arena::new();
    let whole = payload(1, 70_000);
    arena.write("d/a", &whole);
    let protected = arena.protect(&How::of_percent(12_700));
    assert_eq!((protected.code, protected.sets), ((2, 254), 35));
    arena.write("d/b", &payload(2, 3000));
    arena.update(&How::default());
    for name in ["d/a", "d/b"] {
        fs::remove_file(arena.path(name)).unwrap();
    }
    arena.mend_all();
    assert!(arena.read("d/a") == whole && arena.read("d/b") == payload(2, 3000));
    arena.is_intact();
}

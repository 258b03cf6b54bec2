//! The model against results of pen and paper, and against another simulator's published figures.

use super::*;

/// 4 KiB and 64 KiB, each of four ways.
fn tiny() -> CacheHierarchy {
    CacheHierarchy::new("tiny", (4 << 10, 4), (64 << 10, 4)).expect("whole sets")
}

fn misses(caches: &CacheHierarchy, trace: impl Fn(&mut dyn FnMut(Access))) -> Misses {
    Pair::new(caches, LINE as usize).of_second(trace)
}

fn reads(lines: impl Iterator<Item = usize> + Clone) -> impl Fn(&mut dyn FnMut(Access)) {
    move |visit| {
        for line in lines.clone() {
            visit(Access { address: line * 64, len: 64, kind: AccessKind::Read });
        }
    }
}

#[test]
fn what_fits_misses_nothing_and_one_line_more_misses_everything() {
    let caches = tiny();
    // LRU's worst case is a cyclic walk over one line more than the ways of a set.
    let all = misses(&caches, reads(0..64));
    assert_eq!((all.l1, all.l2), (0, 0));
    let one_set = |count: usize| reads((0..count).map(|i| i * 16));
    assert_eq!(misses(&caches, one_set(4)).l1, 0);
    assert_eq!(misses(&caches, one_set(5)).l1, 5);
    assert_eq!(misses(&caches, one_set(5)).l2, 0);
}

#[test]
fn a_stream_misses_every_line_and_none_behind_an_ideal_prefetcher() {
    let stream = misses(&tiny(), reads(0..10_000));
    assert_eq!((stream.l1, stream.l2), (10_000, 10_000));
    assert_eq!((stream.l1_prefetched, stream.l2_prefetched), (1, 1));
}

#[test]
fn stores_past_the_caches_touch_none() {
    let trace = |visit: &mut dyn FnMut(Access)| {
        for line in 0..1000 {
            visit(Access { address: line * 64, len: 64, kind: AccessKind::Stream });
        }
    };
    assert_eq!(misses(&tiny(), trace).l1, 0);
}

#[test]
fn an_access_across_two_lines_uses_both() {
    let trace = |visit: &mut dyn FnMut(Access)| {
        (0..1000).for_each(|i| visit(Access { address: i * 128 + 60, len: 8, kind: AccessKind::Write }));
    };
    assert_eq!(misses(&tiny(), trace).l1, 2000);
}

/// The caches of a small core: what is measured elsewhere does not count.
#[test]
fn a_plan_has_the_same_misses_each_time() {
    let caches = CacheHierarchy::named("cortex-a72").expect("a known one");
    let plan = Plan::encode(fec_core::block::Code::new(10, 4).expect("a code"), Backend::best());
    let mut first = None;
    for nth in 0..4 {
        // Another heap each time.
        let between = vec![1u8; 1000 * nth];
        let (src, dst) = (crate::rows::filled(10, 6400), crate::rows::aligned(4, 6400));
        let rows: [Vec<&[u8]>; 2] = [src.iter().collect(), dst.iter().collect()];
        let misses = of_plan(&caches, &plan, &rows[0], &rows[1]);
        assert!(misses.l1 > 1000, "{misses:?}");
        assert_eq!(*first.get_or_insert(misses), misses, "{}", between.len());
    }
}

#[test]
fn caches_have_names_or_numbers() {
    assert_eq!(CacheHierarchy::named("cortex-a53").expect("a known one").l2, shape(512, 16));
    assert_eq!(CacheHierarchy::named("cortex-a99"), None);
    let [k, m, g] = [1 << 10, 1 << 20, 1 << 30];
    assert_eq!(CacheHierarchy::new("", (48 * k, 12), (2 * m, 16)).expect("whole sets").l1, shape(48, 12));
    assert!(CacheHierarchy::host().l1.bytes >= 4096);
    for (l1, l2) in [((32 * k, 0), (512 * k, 16)), ((100, 3), (512 * k, 16)), ((32 * k, 4), (2 * g, 16))] {
        assert!(CacheHierarchy::new("", l1, l2).is_err(), "{l1:?} {l2:?}");
    }
}

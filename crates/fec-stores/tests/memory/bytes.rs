//! Bounds on the fetched bytes.

use crate::store::Ways;
use crate::{How, Sent, class};
use fecfile::error::Class;
use std::time::Instant;

/// Two good places hold k - 1 shards. The set is the whole segment, so a shard with a wrong bit is useless.
const FIVE: How = How { places: 5, code: (7, 8), len: 600_000, segment: 200_000, set_size: Some(1 << 20) };

fn liar() -> Ways {
    Ways { flips: 40, ..Ways::default() }
}

fn slow(speed: u64) -> Ways {
    Ways { speed: Some(speed), ..Ways::default() }
}

fn dead() -> Ways {
    Ways { dead: true, ..Ways::default() }
}

/// Each object of a place comes at most `times` times, and each segment's list is read once.
fn are_bounded(sent: &Sent, times: u64) {
    for store in &sent.stores {
        let calls = store.calls();
        for (key, (count, bytes)) in &calls.gets {
            // A transfer that was left before its first byte begins anew.
            assert!(*count <= 8, "place {}: {key} was begun {count} times", store.nth);
            assert!(*bytes <= times * sent.shard, "place {}: {key}: {bytes} bytes", store.nth);
        }
        // A dead place's error is transient, so it is asked again until it is given up.
        let most = sent.segments.len() as u64 * if calls.gets.is_empty() { 30 } else { 1 };
        assert!(calls.lists <= most, "place {}: {} lists", store.nth, calls.lists);
    }
}

#[test]
fn two_good_places_a_liar_a_slow_one_and_a_dead_one_end_and_are_cheap() {
    for seed in 0..10 {
        let sent = Sent::new(seed, &FIVE);
        let started = Instant::now();
        let _ = sent.restore().expect("it can be restored");
        let well = started.elapsed();
        sent.stores.iter().for_each(|store| store.forget_calls());
        // The bad places differ by seed.
        let at = |nth: usize| &sent.stores[(seed as usize + nth) % 5];
        at(2).set(liar());
        at(3).set(slow(100_000));
        at(4).set(dead());
        let started = Instant::now();
        let restored = sent.restore().expect("it can be restored");
        let factor = sent.given() as f64 / sent.payload.len() as f64;
        println!("seed {seed}: {factor:.2} of the payload, {:?}; all well {well:?}", started.elapsed());
        assert!(factor <= 3.0, "seed {seed}: {factor:.2} times the payload");
        assert_eq!(restored.fetched_bytes, sent.given());
        are_bounded(&sent, 1);
    }
}

/// Single wrong bits leave most records of a liar's shards intact. Together they suffice, and the slow place is not
/// waited for.
#[test]
fn what_is_intact_at_a_liar_is_used() {
    for seed in 0..10 {
        let sent = Sent::new(seed, &How { len: 1_200_000, segment: 1 << 21, set_size: Some(28_672), ..FIVE });
        sent.stores[2].set(Ways { flips: 1, ..Ways::default() });
        sent.stores[3].set(slow(2_000));
        sent.stores[4].set(dead());
        let started = Instant::now();
        let _ = sent.restore().expect("it can be restored");
        println!("seed {seed}: {:?}", started.elapsed());
        assert!(sent.stores[3].given() < sent.shard, "the slow place was waited for");
    }
}

#[test]
fn where_one_more_shard_is_missing_it_ends_too() {
    for seed in 0..3 {
        let sent = Sent::new(seed, &How { len: 200_000, ..FIVE });
        for (nth, ways) in [(2, liar()), (3, liar()), (4, dead())] {
            sent.stores[nth].set(ways);
        }
        let (class, words) = class(&sent.restore().expect_err("too few are right"));
        assert_eq!(class, Class::Io, "what does not answer may have it: {words}");
        assert!(words.contains("s3://bucket/2: it gives damaged shards"), "{words}");
        // The bound: all shards of two good places and two liars, and the liars' shards once more.
        assert!(sent.given() <= 18 * sent.shard + 10_000, "{} bytes", sent.given());
        are_bounded(&sent, 2);
    }
}

#[test]
fn what_came_before_an_answer_broke_is_not_fetched_again() {
    let sent = Sent::new(1, &How { segment: 1 << 20, ..FIVE });
    for nth in 0..5 {
        sent.stores[nth].set(Ways { breaks_after: Some(40_000), ..Ways::default() });
    }
    let _ = sent.restore().expect("it can be restored");
    let most = (7 + 1 + 2) * sent.shard + 10_000;
    assert!(sent.given() <= most, "{} bytes, {most} at most", sent.given());
}

/// Hedges are no storm when all speeds vary: at most k + 1 shards, plus a quarter of k or two, whichever is more.
#[test]
fn hedges_have_a_bound() {
    let how = How { places: 7, code: (10, 11), len: 1_000_000, segment: 1 << 20, set_size: None };
    for seed in 0..10 {
        let sent = Sent::new(seed, &how);
        for (nth, store) in sent.stores.iter().enumerate() {
            store.set(Ways { uneven: true, ..slow(30_000 << (nth % 3)) });
        }
        let _ = sent.restore().expect("it can be restored");
        let most = (10 + 1 + 2) * sent.shard + 20_000;
        println!("seed {seed}: {:.2} shards", sent.given() as f64 / sent.shard as f64);
        assert!(sent.given() <= most, "seed {seed}: {} bytes, {most} at most", sent.given());
    }
}

/// A silent place costs no bytes and little time.
#[test]
fn places_that_say_nothing_cost_no_bytes() {
    let how = How { places: 5, code: (6, 4), len: 600_000, segment: 1 << 20, set_size: None };
    for seed in 0..3 {
        let sent = Sent::new(seed, &how);
        for nth in [seed as usize, seed as usize + 1] {
            sent.stores[nth].set(Ways { silent: true, ..Ways::default() });
        }
        let started = Instant::now();
        let _ = sent.restore().expect("it can be restored");
        println!("seed {seed}: {:?}", started.elapsed());
        assert!(sent.given() <= 6 * sent.shard + 20_000, "{} bytes", sent.given());
    }
}

/// Liars may claim to have every shard.
#[test]
fn liars_that_claim_everything_cost_what_they_sent() {
    for seed in 0..3 {
        let sent = Sent::new(seed, &How { code: (4, 6), ..FIVE });
        for nth in [0, 1] {
            let lies = sent.segments.iter().flat_map(|root| {
                let name = fec_base::names::hex(root);
                (0..10).map(move |index| format!("{name}/{index:03}.shard"))
            });
            let mut objects = sent.stores[nth].objects();
            lies.for_each(|key| drop(objects.insert(key, vec![7; sent.shard as usize])));
        }
        let _ = sent.restore().expect("it can be restored");
        let factor = sent.given() as f64 / sent.payload.len() as f64;
        assert!(factor <= 3.0, "seed {seed}: {factor:.2} times the payload");
        are_bounded(&sent, 1);
    }
}

//! Parts of a payload by leaves: what they cost, and places that lie about them.

use crate::forged::key;
use crate::store::Ways;
use crate::{How, Sent};
use fec_base::io::output::Destination;
use fec_core::format::annex::{self, AnnexHeader};
use fec_core::format::outline::LEAF;
use fec_core::random::SplitMix64;
use fec_stores::mend::StoredRepair;
use fec_stores::stored::{Stored, StoredRestored};
use fecfile::{Context, PayloadRange};
use std::ops::Range;
use std::time::{Duration, Instant};

/// Restores a part, and compares it.
fn part(sent: &Sent, bytes: Range<usize>) -> StoredRestored {
    let (places, mut out) = (sent.places(), Vec::new());
    let stored = Stored::find(&places, sent.root, None).expect("it is found");
    let range = PayloadRange { start: bytes.start as u64, end: Some(bytes.end as u64) };
    let restored = stored
        .restore_range(range, None, Destination::writer(&mut out), &Context::default())
        .expect("a part");
    assert!(out == sent.payload[bytes.clone()], "other bytes of {bytes:?}");
    restored
}

/// All copies of shards and what they hold.
fn objects(sent: &Sent) -> Vec<(usize, String)> {
    let keys = |nth: usize| sent.stores[nth].objects().keys().cloned().collect::<Vec<_>>();
    let shards = (0..sent.stores.len()).flat_map(|nth| keys(nth).into_iter().map(move |key| (nth, key)));
    shards.filter(|(_, key)| key.ends_with(".shard")).collect()
}

/// Changes the first copy of a shard of the first segment; returns the object as it was.
fn change(sent: &Sent, index: usize, change: impl FnOnce(&mut Vec<u8>)) -> (usize, String, Vec<u8>) {
    let key = key(&sent.segments[0], index);
    let place = (0..sent.stores.len()).find(|nth| sent.stores[*nth].objects().contains_key(&key));
    let place = place.expect("it is there");
    let mut objects = sent.stores[place].objects();
    let object = objects.get_mut(&key).expect("it is there");
    let before = object.clone();
    change(object);
    drop(objects);
    (place, key, before)
}

#[test]
fn four_kib_cost_their_leaves() {
    for (code, places) in [((10, 4), 5), ((33, 67), 5), ((10, 4), 14)] {
        let how = How { places, code, len: 9 << 20, segment: 5 << 20, set_size: None };
        let sent = Sent::new(3, &how);
        let row = (how.segment as usize).div_ceil(2 * code.0);
        let starts = [0, 5000, LEAF - 2000, 3 << 20, row - 2000, (5 << 20) - 2000, (9 << 20) - 4096];
        for start in starts {
            sent.stores.iter().for_each(|store| store.forget_calls());
            let restored = part(&sent, start..start + 4096);
            assert_eq!((restored.trouble.len(), restored.fetched_bytes), (0, sent.given()));
            // Two leaves, the path, the outline, and the manifest; a part across two rows or segments takes both.
            let ends =
                [row, 2 * row, 5 << 20].into_iter().filter(|end| (start..start + 4096).contains(end)).count();
            let most = 40_000 * (1 + ends as u64);
            assert!(sent.given() <= most, "{code:?}, byte {start}: {} bytes", sent.given());
        }
    }
}

/// A late answer is asked for again alone, not with all that is here already. On a busy machine others are late too, so
/// one of several tries has to show it.
#[test]
fn what_came_is_not_asked_for_again() {
    let how = How { places: 5, code: (10, 4), len: 4 << 20, segment: 5 << 20, set_size: None };
    let reads = |seed: u64| {
        let sent = Sent::new(seed, &how);
        let straggles = Some(Duration::from_secs(20));
        sent.stores.iter().for_each(|store| store.set(Ways { straggles, ..Ways::default() }));
        sent.stores.iter().for_each(|store| store.forget_calls());
        let started = Instant::now();
        let _ = part(&sent, 5000..9096);
        assert!(started.elapsed() < Duration::from_secs(10));
        sent.stores.iter().map(|store| store.calls().reads).sum::<u64>()
    };
    // The leaf twice, the proof, and the outline.
    assert!((0..10).any(|seed| reads(seed) == 4));
}

/// A place that gives wrong leaves, outlines or proofs gives no byte of the part: it comes from other shards.
#[test]
fn no_lie_about_leaves_passes() {
    let how = How { places: 7, code: (3, 4), len: 600_000, segment: 1 << 20, set_size: Some(300_000) };
    let sent = Sent::new(5, &how);
    let other = Sent::new(6, &how);
    let mut random = SplitMix64::new(7);
    let below = |random: &mut SplitMix64, most: usize| (random.next() % most as u64) as usize;
    let mut tried = 0;
    while tried < 2000 {
        let index = below(&mut random, 3);
        let start = below(&mut random, 590_000);
        let lie = tried % 8;
        tried += 1;
        // Another shard of the same encoding, and the same shard of another.
        let beside = change(&sent, (index + 1) % 3, |_| {}).2;
        let stale = change(&other, index, |_| {}).2;
        let (place, key, before) = change(&sent, index, |object| {
            let (len, body) = (object.len(), sent.shard as usize);
            let at = below(&mut random, len);
            match lie {
                0 => *object = beside,
                1 => *object = stale,
                2 => object.truncate(at),
                3 => drop(object.splice(at..at, [0; 64])),
                4 => object[body..].copy_from_slice(&beside[body..]),
                5 => object[..body].copy_from_slice(&beside[..body]),
                6 => object[body..].fill(0),
                _ => {
                    for _ in 0..20 {
                        object[below(&mut random, len)] ^= 1 << below(&mut random, 8);
                    }
                }
            }
        });
        let _ = part(&sent, start..start + 1 + below(&mut random, 9000));
        sent.stores[place].objects().insert(key, before);
    }
}

/// Answers that are wrong on their way, or break.
#[test]
fn places_that_lie_stall_or_break_are_gone_around() {
    let how = How { places: 7, code: (3, 4), len: 600_000, segment: 1 << 20, set_size: Some(300_000) };
    for ways in [
        Ways { flips: 1, ..Ways::default() },
        Ways { dead: true, ..Ways::default() },
        Ways { denies_shards: true, ..Ways::default() },
        Ways { breaks_after: Some(100), ..Ways::default() },
    ] {
        let sent = Sent::new(8, &how);
        sent.stores[0].set(ways);
        for start in (0..590_000).step_by(59_000) {
            let _ = part(&sent, start..start + 7000);
        }
    }
}

/// Objects that were put without outlines are whole, and give their records.
#[test]
fn objects_without_outlines_serve_as_before() {
    let how = How { places: 5, code: (10, 4), len: 5 << 20, segment: 5 << 20, set_size: None };
    let sent = Sent::new(9, &how);
    for (place, key) in objects(&sent) {
        sent.stores[place].objects().get_mut(&key).expect("it is there").truncate(sent.shard as usize);
    }
    let restored = part(&sent, 1_000_000..1_004_096);
    assert!(restored.trouble.is_empty() && sent.given() > 200_000);
    let places = sent.places();
    let stored = Stored::find_everywhere(&places, sent.root, None).expect("it is found");
    for deep in [false, true] {
        assert_eq!(stored.verify(deep, &Context::default()).expect("it is verified").class(), None);
    }
    let again = Sent::to(&sent.stores, 9, &how);
    assert!(
        objects(&again)
            .iter()
            .all(|(place, key)| { sent.stores[*place].objects()[key].len() as u64 == sent.shard }),
        "what is whole is not sent again"
    );
}

/// An outline that rots is damage, which a deep verify sees and a repair mends; what is missing comes back with its
/// outlines.
#[test]
fn a_repair_makes_outlines_too() {
    let how = How { places: 7, code: (3, 4), len: 600_000, segment: 1 << 20, set_size: Some(300_000) };
    let sent = Sent::new(10, &how);
    let all: Vec<_> = objects(&sent);
    let before: Vec<Vec<u8>> =
        all.iter().map(|(nth, key)| sent.stores[*nth].objects()[key].clone()).collect();
    for object in &before {
        let header = AnnexHeader::read(object[sent.shard as usize..].first_chunk().expect("an annex"));
        assert!(header.is_some_and(|header| header.kind == annex::OUTLINES));
    }
    let (rotten, key, _) = change(&sent, 1, |object| object[sent.shard as usize + 100] ^= 1);
    assert!(sent.stores[rotten].objects().contains_key(&key));
    let gone = all.iter().position(|(nth, _)| *nth != rotten).expect("another place");
    sent.stores[all[gone].0].objects().remove(&all[gone].1);
    let places = sent.places();
    let stored = Stored::find(&places, sent.root, None).expect("it is found");
    let verified = stored.verify(true, &Context::default()).expect("it is verified");
    let state = &verified.segments[0];
    assert_eq!((&state.damaged[..], state.missing.len()), (&[(1, rotten)][..], 2));
    let how = StoredRepair { deep: true, now: true, to: (0..7).collect(), dry_run: false };
    let repaired = stored.repair(&how, &Context::default()).expect("it is mended");
    assert!(repaired.missing.is_empty());
    for ((place, key), before) in all.iter().zip(&before) {
        assert!(sent.stores[*place].objects()[key] == *before, "{key} at {place}");
    }
}

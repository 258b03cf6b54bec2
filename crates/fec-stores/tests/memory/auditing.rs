//! Audits: what a few looks show, what they cost, and places that lie about them.

use crate::forged::key;
use crate::store::{Lists, Ways};
use crate::{How, Sent};
use fec_core::format::outline::LEAF;
use fec_core::random::SplitMix64;
use fec_stores::audit::{Audit, Audited};
use fec_stores::stored::Stored;
use fecfile::Context;
use fecfile::error::Class;
use std::collections::BTreeSet;

const HOW: How = How { places: 5, code: (10, 4), len: 24 << 20, segment: 9 << 20, set_size: None };

fn asked(seed: u64) -> Audit {
    Audit { confidence: 0.99, rot: 0.05, budget: None, seed, left_out: BTreeSet::new() }
}

fn audited(sent: &Sent, audit: &Audit) -> Audited {
    let places = sent.places();
    let stored = Stored::find_everywhere(&places, sent.root, None).expect("it is found");
    stored.audit(audit, &Context::default()).expect("it is audited")
}

/// Changes bytes of the shards of a place: of each object, from a share of its length to another.
fn rot(sent: &Sent, place: usize, from: f64, to: f64) {
    for (key, object) in sent.stores[place].objects().iter_mut() {
        if key.ends_with(".shard") {
            let at = |share: f64| (object.len() as f64 * share) as usize;
            let bytes = at(from)..at(to);
            object[bytes].iter_mut().for_each(|byte| *byte ^= 0x55);
        }
    }
}

#[test]
fn what_is_whole_is_shown_at_each_place() {
    let sent = Sent::new(30, &HOW);
    let audited = audited(&sent, &asked(1));
    assert_eq!((audited.class(), audited.places.len()), (None, 5));
    let bytes: u64 = audited.places.iter().map(|place| place.fetched_bytes).sum();
    // The manifest comes on top.
    assert!(audited.fetched_bytes == sent.given() && bytes < audited.fetched_bytes);
    for place in &audited.places {
        assert_eq!((place.looks, place.wrong), (90, 0));
        assert!(place.shown(0.05).is_some_and(|shown| (0.99..0.991).contains(&shown)));
        // A leaf for each look, and less than 2 KiB of what proves it; bytes in one leaf are one look.
        assert!(place.fetched_bytes <= 90 * (LEAF as u64 + 2048), "{}", place.fetched_bytes);
        assert!(place.requests <= 90 + 2 * place.objects * 3, "{}", place.requests);
    }
    let held: u64 = audited.places.iter().map(|place| place.objects).sum();
    assert_eq!(held, 3 * 14);
}

/// The same seed looks at the same bytes, another one at others; and no place at what another one shows.
#[test]
fn a_seed_says_what_is_looked_at() {
    let sent = Sent::new(31, &HOW);
    // A third of the looks tell where they were.
    rot(&sent, 0, 0.5, 0.83);
    rot(&sent, 1, 0.5, 0.83);
    let at = |seed: u64, place: usize| audited(&sent, &asked(seed)).places[place].wrong_at.clone();
    assert!(at(5, 0).len() > 3 && at(5, 0) == at(5, 0));
    assert!(at(5, 0) != at(6, 0) && at(5, 0) != at(5, 1));
}

/// Rot of the share that was asked about is found with the probability that was asked for: as one hole, as one byte of
/// each of some leaves, and as whole objects.
#[test]
fn rot_is_found_as_often_as_it_says() {
    let sent = Sent::new(32, &HOW);
    let whole: Vec<_> = sent.stores[2].objects().clone().into_iter().collect();
    let mut found = [0; 2];
    for seed in 0..60 {
        let mut random = SplitMix64::new(seed);
        for (way, found) in found.iter_mut().enumerate() {
            match way {
                // 6 % of each object, so more than 5 % of its shards.
                0 => {
                    let from = 0.01 + 0.9 * random.index(1000) as f64 / 1000.0;
                    rot(&sent, 2, from, from + 0.06);
                }
                // A bit of one leaf in sixteen.
                _ => {
                    let mut objects = sent.stores[2].objects();
                    for (_, object) in objects.iter_mut().filter(|(key, _)| key.ends_with(".shard")) {
                        for leaf in (0..object.len() / LEAF).filter(|_| random.below(16) == 0) {
                            object[leaf * LEAF + 9000] ^= 1;
                        }
                    }
                }
            }
            let audited = audited(&sent, &asked(seed));
            let place = &audited.places[2];
            *found += u32::from(place.wrong > 0);
            assert_eq!(place.wrong > 0, audited.class() == Some(Class::Mendable));
            assert!(place.wrong == 0 || place.shown(0.05).is_none() && place.most_lost(0.99) > 0.05);
            assert!(audited.places.iter().all(|other| other.place == 2 || other.wrong == 0));
            sent.stores[2].objects().extend(whole.iter().cloned());
        }
    }
    assert!(found.iter().all(|found| *found >= 57), "{found:?} of 60");
}

/// Bytes of other shards, older objects, cut, padded and zeroed ones show nothing.
#[test]
fn no_lie_passes() {
    let sent = Sent::new(33, &HOW);
    let other = Sent::new(34, &HOW);
    let segment = sent.segments[0];
    let index = (0..14).find(|index| sent.stores[3].objects().contains_key(&key(&segment, *index)));
    let key = key(&segment, index.expect("it holds some"));
    let before = sent.stores[3].objects()[&key].clone();
    let others: Vec<Vec<u8>> = [&sent, &other]
        .iter()
        .flat_map(|sent| sent.stores.iter())
        .flat_map(|store| store.objects().clone())
        .filter(|(name, object)| {
            name.ends_with(".shard") && object.len() == before.len() && *object != before
        })
        .map(|(_, object)| object)
        .collect();
    let mut random = SplitMix64::new(9);
    let mut lies: Vec<Vec<u8>> = (0..40).map(|_| others[random.index(others.len())].clone()).collect();
    // The beginning of the right one with the rest of another, and the other way round.
    let half = before.len() / 2;
    lies.push([&before[..half], &others[0][half..]].concat());
    lies.push([&others[1][..half], &before[half..]].concat());
    lies.push([&before[..2000], &others[0][2000..]].concat());
    lies.push(vec![0; before.len()]);
    lies.push(before[..before.len() - 1].to_vec());
    lies.push([&before[..], &[0]].concat());
    lies.push(Vec::new());
    for (nth, lie) in (0..).zip(lies) {
        sent.stores[3].objects().insert(key.clone(), lie);
        let audited = audited(&sent, &asked(nth));
        assert_eq!(audited.class(), Some(Class::Mendable), "lie {nth}");
        assert!(audited.places[3].wrong > 0 || audited.places[3].lacks(), "lie {nth}");
        assert_eq!(audited.places[3].shown(0.05), None);
        sent.stores[3].objects().insert(key.clone(), before.clone());
    }
    // A proof or an outline that rots is not had when it is needed.
    for at in [4096, sent.shard as usize + 60] {
        let mut lie = before.clone();
        lie[at] ^= 1;
        sent.stores[3].objects().insert(key.clone(), lie);
        let _ = audited(&sent, &asked(1)).class();
    }
}

#[test]
fn what_is_missing_counts_without_a_look() {
    let sent = Sent::new(35, &HOW);
    let gone: Vec<String> = sent.stores[1].shards();
    sent.stores[1].objects().remove(&gone[0]);
    let audited = audited(&sent, &asked(1));
    let place = &audited.places[1];
    assert_eq!((place.missing.len(), place.wrong, audited.margin()), (1, 0, 3));
    assert_eq!((audited.class(), place.shown(0.05)), (Some(Class::Mendable), None));
    // Five shards fewer cannot be made good.
    for store in &sent.stores[2..5] {
        store.objects().retain(|key, _| !key.ends_with(".shard"));
    }
    assert_eq!(crate::auditing::audited(&sent, &asked(1)).class(), Some(Class::Lost));
}

/// Nothing is shown of a place that does not answer, however it fails, and the others are shown all the same.
#[test]
fn places_that_fail_show_nothing() {
    let sent = Sent::new(36, &HOW);
    let ways = [
        Ways { dead: true, ..Ways::default() },
        Ways { denies_shards: true, ..Ways::default() },
        Ways { breaks_after: Some(100), ..Ways::default() },
        Ways { lists: Lists::Broken, dead: true, ..Ways::default() },
    ];
    for way in ways {
        sent.stores[4].set(way.clone());
        let audited = audited(&sent, &asked(3));
        let place = audited.places.iter().find(|place| place.place == 4).expect("it is told");
        assert!(
            place.failed.is_some() && place.shown(0.05).is_none() && place.most_lost(0.99) == 1.0,
            "{way:?}"
        );
        assert_eq!(audited.class(), Some(Class::Io), "{way:?}");
        assert_eq!(audited.places.iter().filter(|place| place.shown(0.05).is_some()).count(), 4);
        assert!(!audited.trouble.is_empty());
    }
    // Bits that break on the way are asked for again, and still break: the place is found out.
    sent.stores[4].set(Ways { flips: 400, ..Ways::default() });
    assert_eq!(audited(&sent, &asked(3)).class(), Some(Class::Mendable));
    // Without a list shards are asked for by name.
    for lists in [Lists::None, Lists::Denied { absent_too: false }, Lists::Short, Lists::Empty] {
        sent.stores[4].set(Ways { lists, ..Ways::default() });
        let audited = audited(&sent, &asked(3));
        assert!(audited.places[4].shown(0.05).is_some(), "{lists:?}");
    }
}

#[test]
fn a_budget_is_kept_and_shows_less() {
    let sent = Sent::new(37, &HOW);
    let mut before = 0.0;
    for budget in [0, 100_000, 1_000_000, 4_000_000] {
        let audited = audited(&sent, &Audit { budget: Some(budget), ..asked(3) });
        let bytes: u64 = audited.places.iter().map(|place| place.fetched_bytes).sum();
        assert!(bytes <= budget, "{bytes} of {budget}");
        let shown = audited.places[0].shown(0.05).expect("all is well");
        assert!(budget == 0 || shown > before, "{budget}: {shown}");
        before = shown;
    }
    assert!(before > 0.8);
}

/// Shards without outlines are looked at record by record, and so are those of other writers.
#[test]
fn records_serve_where_there_are_no_outlines() {
    let sent = Sent::new(38, &How { set_size: Some(1 << 20), ..HOW });
    for store in &sent.stores {
        for (key, object) in store.objects().iter_mut() {
            if key.ends_with(".shard") && object.len() as u64 > sent.shard {
                object.truncate(sent.shard as usize);
            }
        }
    }
    // Those of the last segment are shorter, and keep theirs.
    let audited = audited(&sent, &asked(3));
    assert_eq!(audited.class(), None);
    rot(&sent, 2, 0.01, 0.5);
    assert!(crate::auditing::audited(&sent, &asked(3)).places[2].wrong > 10);
}

/// Places that are left out are not asked for bytes, and nothing is said of them.
#[test]
fn places_can_be_left_out() {
    let sent = Sent::new(39, &HOW);
    rot(&sent, 1, 0.01, 0.5);
    sent.stores.iter().for_each(|store| store.forget_calls());
    let audited = audited(&sent, &Audit { left_out: BTreeSet::from([1]), ..asked(3) });
    assert_eq!(audited.places.iter().map(|place| place.place).collect::<Vec<_>>(), [0, 2, 3, 4]);
    assert_eq!(audited.class(), None);
    assert!(sent.stores[1].calls().gets.keys().all(|key| !key.ends_with(".shard")));
    // Objects that its list lacks are told all the same, and so is a place that does not answer.
    let gone = sent.stores[1].shards().remove(0);
    sent.stores[1].objects().remove(&gone);
    let found = crate::auditing::audited(&sent, &Audit { left_out: BTreeSet::from([1]), ..asked(3) });
    let place = found.places.iter().find(|of| of.place == 1).expect("it is told");
    assert_eq!((place.missing.len(), place.looks, found.class()), (1, 0, Some(Class::Mendable)));
    sent.stores[1].set(Ways { dead: true, ..Ways::default() });
    let found = crate::auditing::audited(&sent, &Audit { left_out: BTreeSet::from([1]), ..asked(3) });
    assert_eq!((found.places.len(), found.class()), (5, Some(Class::Io)));
}

/// Copies of what others hold do not hide what a place has lost of its own.
#[test]
fn copies_of_others_do_not_count() {
    let sent = Sent::new(40, &HOW);
    let before = audited(&sent, &asked(3)).places[1].clone();
    for nth in [0, 2, 3, 4] {
        let others = sent.stores[nth].objects().clone();
        sent.stores[1].objects().extend(others);
    }
    let after = audited(&sent, &asked(3)).places[1].clone();
    assert_eq!(
        (after.objects, after.bytes, after.fetched_bytes),
        (before.objects, before.bytes, before.fetched_bytes)
    );
    // A shard that is only there counts there.
    let moved = sent.stores[0].shards().remove(0);
    sent.stores[0].objects().remove(&moved);
    let after = audited(&sent, &asked(3));
    assert_eq!((after.places[1].objects, after.class()), (before.objects + 1, None));
}

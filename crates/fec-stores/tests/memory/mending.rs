//! A dry run of a repair tells exactly the work of the repair.

use crate::store::{Deletes, Lists, Ways};
use crate::{How, Sent};
use fec_stores::mend::{StoredRepair, StoredRepaired};
use fec_stores::stored::Stored;
use fecfile::Context;
use fecfile::error::{Class, Error};

const HOW: How = How { places: 5, code: (10, 4), len: 200_000, segment: 120_000, set_size: None };

fn repair(sent: &Sent, deep: bool, dry_run: bool) -> Result<StoredRepaired, Error> {
    let places = sent.places();
    let stored = Stored::find_everywhere(&places, sent.root, None)?;
    let how = StoredRepair { to: (0..5).collect(), now: true, deep, dry_run };
    stored.repair(&how, &Context::default())
}

/// A fault: its name, a function that causes it, and whether it can be mended.
type Wrong = (&'static str, fn(&Sent), bool);

fn lose(sent: &Sent, count: usize) {
    let prefix = fec_base::names::hex(&sent.segments[0]);
    for index in 0..count {
        let key = format!("{prefix}/{index:03}.shard");
        sent.stores.iter().for_each(|store| drop(store.objects().remove(&key)));
    }
}

fn rot(sent: &Sent, count: usize, at: usize) {
    let prefix = fec_base::names::hex(&sent.segments[0]);
    for index in 13 - count..13 {
        let key = format!("{prefix}/{index:03}.shard");
        for store in &sent.stores {
            if let Some(bytes) = store.objects().get_mut(&key) {
                bytes[at] ^= 1;
            }
        }
    }
}

const WRONG: [Wrong; 8] = [
    ("nothing", |_| {}, true),
    ("a place is empty", |sent| sent.stores[1].objects().clear(), true),
    ("two places are empty", |sent| [1, 2].iter().for_each(|nth| sent.stores[*nth].objects().clear()), false),
    ("four shards", |sent| lose(sent, 4), true),
    ("five shards", |sent| lose(sent, 5), false),
    (
        "four shards, and one is rotten inside",
        |sent| {
            lose(sent, 4);
            rot(sent, 1, 2000)
        },
        false,
    ),
    (
        "three shards, and headers are damaged",
        |sent| {
            lose(sent, 3);
            rot(sent, 1, 10)
        },
        true,
    ),
    (
        "all, as lists say",
        |sent| {
            lose(sent, 2);
            sent.stores.iter().for_each(|store| store.set(Ways { lists: Lists::Empty, ..Ways::default() }));
        },
        true,
    ),
];

#[test]
fn a_repair_says_before_what_it_does() {
    for (what, wrong, can_be_mended) in WRONG {
        for deep in [false, true] {
            let sent = Sent::new(8, &HOW);
            wrong(&sent);
            let before: Vec<_> = sent.stores.iter().map(|store| store.objects().clone()).collect();
            let told = repair(&sent, deep, true);
            let unchanged =
                sent.stores.iter().zip(&before).all(|(store, before)| *store.objects() == *before);
            assert!(unchanged, "{what}: it was only asked");
            let done = repair(&sent, deep, false);
            match (told, done) {
                (Ok(told), Ok(done)) => {
                    assert!(can_be_mended, "{what}");
                    assert_eq!(told.made, done.made, "{what}");
                    assert_eq!(told.removed, done.removed, "{what}");
                    assert_eq!(told.manifests, done.manifests, "{what}");
                    assert_eq!(done.class(false), None, "{what}");
                    let would = !(done.made.is_empty() && done.manifests.is_empty());
                    assert_eq!(told.class(true), would.then_some(Class::Mendable), "{what}");
                    let _ = sent.restore().expect("it is mended");
                }
                (Err(told), Err(done)) => {
                    assert!(!can_be_mended, "{what}: {told}");
                    assert_eq!((told.class(), done.class()), (Class::Lost, Class::Lost), "{what}");
                }
                (told, done) => panic!("{what}: {told:?} and {done:?}"),
            }
        }
    }
}

/// Damaged headers leave too few intact shards, and too few of the damaged ones can be had. The place that denies its
/// shards may have enough.
#[test]
fn a_place_that_denies_shards_may_have_them() {
    let sent = Sent::new(11, &HOW);
    lose(&sent, 3);
    rot(&sent, 5, 10);
    let class = |sent: &Sent| {
        let places = sent.places();
        let stored = Stored::find_everywhere(&places, sent.root, None).expect("the manifest");
        let verified = stored.verify(false, &Context::default()).expect("it is looked at");
        (verified.class(), verified.trouble)
    };
    assert_eq!(class(&sent).0, Some(Class::Mendable));
    sent.stores[0].set(Ways { denies_shards: true, ..Ways::default() });
    let (class, trouble) = class(&sent);
    assert_eq!(class, Some(Class::Io), "{trouble:?}");
    assert!(trouble.iter().any(|line| line.contains("403 AccessDenied")), "{trouble:?}");
    assert_eq!(sent.restore().expect_err("too few can be had").class(), Class::Io);
    assert_eq!(repair(&sent, false, true).expect_err("too few can be had").class(), Class::Io);
}

/// A remake takes each object once: what damaged ones are worth is not asked before.
#[test]
fn a_repair_fetches_damaged_shards_once() {
    let sent = Sent::new(12, &HOW);
    lose(&sent, 2);
    rot(&sent, 5, 10);
    sent.stores.iter().for_each(|store| store.forget_calls());
    let repaired = repair(&sent, false, false).expect("it is repaired");
    assert_eq!(repaired.made.len(), 7, "{:?}", repaired.trouble);
    // Once for its first bytes, and once for all.
    for store in &sent.stores {
        let calls = store.calls();
        assert!(calls.gets.values().all(|(count, _)| *count <= 2), "place {}: {:?}", store.nth, calls.gets);
    }
    let _ = sent.restore().expect("it is mended");
}

/// A repair does not claim to have made an object that a list hid.
#[test]
fn what_is_there_is_not_made_anew() {
    let sent = Sent::new(9, &HOW);
    // The object is moved away from its home, so no request by key goes there.
    let key = sent.stores[0].shards().remove(0);
    let object = sent.stores[0].objects().remove(&key).expect("it is there");
    sent.stores[1].objects().insert(key.clone(), object);
    sent.stores.iter().for_each(|store| store.set(Ways { lists: Lists::Short, ..Ways::default() }));
    let repaired = repair(&sent, false, false).expect("it is repaired");
    assert!(repaired.made.len() <= 1 && repaired.class(false).is_none(), "{:?}", repaired.made);
    let _ = sent.restore().expect("all is there");
}

/// Objects of a place are read side by side: each answer takes its time.
#[test]
fn a_deep_look_reads_several_objects_at_once() {
    let sent = Sent::new(10, &HOW);
    sent.stores.iter().for_each(|store| store.set(Ways { speed: Some(60_000), ..Ways::default() }));
    sent.stores.iter().for_each(|store| store.forget_calls());
    let places = sent.places();
    let stored = Stored::find_everywhere(&places, sent.root, None).expect("the manifest");
    let verified = stored.verify(true, &Context::default()).expect("it is looked at");
    assert_eq!(verified.class(), None, "{:?}", verified.trouble);
    for store in &sent.stores {
        let calls = store.calls();
        assert!(calls.reading.1 > 1, "place {}: one after the other", store.nth);
        assert!(calls.gets.values().all(|(count, _)| *count == 1), "each comes once: {:?}", calls.gets);
    }
}

/// Lists are long, and a repair has read them when it begins to remake.
#[test]
fn a_repair_lists_each_segment_once() {
    let sent = Sent::new(10, &HOW);
    lose(&sent, 3);
    rot(&sent, 1, 10);
    sent.stores.iter().for_each(|store| store.forget_calls());
    let repaired = repair(&sent, false, false).expect("it is repaired");
    assert_eq!((repaired.made.len(), repaired.class(false)), (4, None), "{:?}", repaired.trouble);
    for store in &sent.stores {
        assert_eq!(store.calls().lists, sent.segments.len() as u64, "place {}", store.nth);
    }
    let _ = sent.restore().expect("it is mended");
}

/// Without the right to delete, what is rotten inside stays, and its shard is made anew elsewhere; both are told.
#[test]
fn what_cannot_be_removed_is_made_anew_elsewhere_and_told() {
    for deletes in [Deletes::Denied, Deletes::Ignored] {
        let how = How { places: 7, code: (6, 7), ..HOW };
        let sent = Sent::new(12, &how);
        rot(&sent, 2, 2000);
        sent.stores.iter().for_each(|store| store.set(Ways { deletes, ..Ways::default() }));
        let run = || {
            let places = sent.places();
            let stored = Stored::find_everywhere(&places, sent.root, None).expect("it is found");
            let how = StoredRepair { to: (0..7).collect(), now: true, deep: true, dry_run: false };
            let repaired = stored.repair(&how, &Context::default()).expect("it is mended");
            let verified = stored.verify(true, &Context::default()).expect("it is verified");
            let segment = &verified.segments[0];
            (repaired, segment.missing.len(), segment.damaged.len())
        };
        let (repaired, missing, damaged) = run();
        assert_eq!(
            (repaired.made.len(), repaired.missing.len(), missing, damaged),
            (2, 0, 0, 2),
            "{deletes:?}"
        );
        assert!(repaired.left_damaged && repaired.class(false) == Some(Class::Mendable), "{deletes:?}");
        assert_eq!(repaired.trouble.len(), 2, "{:?}", repaired.trouble);
        // Another run has nothing to make, and says what is left.
        let (again, ..) = run();
        assert_eq!((again.made.len(), again.class(false)), (0, Some(Class::Mendable)), "{deletes:?}");
        // Once they go, they go.
        sent.stores.iter().for_each(|store| store.set(Ways::default()));
        let (last, missing, damaged) = run();
        assert_eq!((last.removed.len(), last.class(false), missing, damaged), (2, None, 0, 0), "{deletes:?}");
    }
    // No place is left for them: they are missing.
    let sent = Sent::new(13, &HOW);
    rot(&sent, 1, 2000);
    let denied =
        Ways { deletes: Deletes::Denied, refuses: Some(|key| key.ends_with(".shard")), ..Ways::default() };
    sent.stores.iter().for_each(|store| store.set(denied.clone()));
    let repaired = repair(&sent, true, false).expect("it is told");
    assert_eq!(
        (repaired.made.len(), repaired.missing.len(), repaired.class(false)),
        (0, 1, Some(Class::Mendable))
    );
}

//! Removals: what is ours goes, what others need stays, and what is left is found again.

use crate::store::{Deletes, Lists, Ways};
use crate::{How, Sent, class};
use fec_base::names::hex;
use fec_core::digest::Digest;
use fec_core::format::manifest::Manifest;
use fec_stores::forget::{Forget, Forgotten};
use fec_stores::inventory::inventory;
use fecfile::Context;
use fecfile::error::{Class, Error};

/// Two segments of 14 shards, and five copies of the manifest.
const HOW: How = How { places: 5, code: (10, 4), len: 300_000, segment: 160_000, set_size: None };
const OBJECTS: u64 = 2 * 14 + 5;

fn forget(sent: &Sent, root: Digest, partial: bool) -> Result<Forgotten, Error> {
    let (places, context) = (sent.places(), Context::default());
    let plan = Forget::plan(&places, root, partial, &context)?;
    let count: u64 = plan.shares().values().map(|share| share.objects).sum();
    assert_eq!(plan.is_nothing(), count == 0);
    plan.run(&context)
}

fn objects(sent: &Sent) -> usize {
    sent.stores.iter().map(|store| store.objects().len()).sum()
}

#[test]
fn all_of_it_goes_and_nothing_else() {
    let sent = Sent::new(70, &HOW);
    let other = Sent::to(&sent.stores, 71, &HOW);
    let segment = hex(&sent.segments[0]);
    let foreign = ["x", "y/manifest", &format!("{segment}/notes"), &format!("{segment}/200.shard")];
    for key in foreign {
        sent.stores[3].objects().insert(key.to_owned(), vec![1]);
    }
    let done = forget(&sent, sent.root, false).expect("it is removed");
    assert_eq!((done.class(), done.removed.objects), (None, OBJECTS), "{done:?}");
    assert!(foreign.iter().all(|key| sent.stores[3].objects().contains_key(*key)), "a foreign object went");
    let _ = other.restore().expect("the other is whole");
    assert_eq!(class(&sent.restore().expect_err("it is gone")).0, Class::Lost);
    let again = forget(&sent, sent.root, false).expect("nothing is there");
    assert_eq!((again.class(), again.removed.objects), (None, 0));
    assert_eq!(objects(&sent), OBJECTS as usize + foreign.len());
}

/// A manifest that breaks a rule may be that of a newer version, and need the same segments.
#[test]
fn nothing_goes_while_a_manifest_is_not_understood() {
    let sent = Sent::new(77, &HOW);
    let key = format!("{}/manifest", hex(&sent.root));
    let good = sent.stores[0].objects()[&key].clone();
    let newer = Manifest { segment_len: 7, ..Manifest::open(&sent.root, &good).expect("it is good") };
    sent.stores[2].objects().insert(format!("{}/manifest", hex(&newer.root())), newer.to_bytes());
    let (is, words) = class(&forget(&sent, sent.root, false).expect_err("it may need the same"));
    assert!(is == Class::Io && words.contains("breaks a rule"), "{words}");
    assert_eq!(objects(&sent), OBJECTS as usize + 1);
}

/// The same payload at other places has the same segments, and another manifest.
#[test]
fn what_another_manifest_names_stays() {
    let sent = Sent::new(72, &HOW);
    let other = Sent::to(&sent.stores, 72, &How { places: 4, ..HOW });
    assert!(other.root != sent.root && other.segments == sent.segments);
    let places = sent.places();
    let plan = Forget::plan(&places, sent.root, false, &Context::default()).expect("a plan");
    let needed: Vec<_> = plan.shared().iter().map(|shared| (shared.segment, shared.needed_by)).collect();
    assert_eq!(needed, sent.segments.iter().map(|root| (*root, other.root)).collect::<Vec<_>>());
    let done = forget(&sent, sent.root, false).expect("it is removed");
    assert_eq!((done.class(), done.removed.objects), (None, 5), "the manifests alone");
    let _ = other.restore().expect("the other is whole");
    // The last that needs them takes them along, wherever they stand.
    let done = forget(&sent, other.root, false).expect("it is removed");
    assert_eq!((done.class(), objects(&sent)), (None, 0), "{done:?}");
}

/// A segment by its own root goes if no manifest names it.
#[test]
fn a_segment_goes_by_its_root_when_it_stands_alone() {
    let sent = Sent::new(73, &HOW);
    let (is, words) = class(&forget(&sent, sent.segments[1], false).expect_err("it is needed"));
    assert!(is == Class::Usage && words.contains(&hex(&sent.root)), "{words}");
    assert_eq!(objects(&sent), OBJECTS as usize);
    let key = format!("{}/manifest", hex(&sent.root));
    sent.stores.iter().for_each(|store| drop(store.objects().remove(&key)));
    for segment in &sent.segments {
        let done = forget(&sent, *segment, false).expect("it is removed");
        assert_eq!((done.class(), done.removed.objects), (None, 14));
    }
    assert_eq!(objects(&sent), 0);
}

/// While a place cannot be asked, nobody knows what needs what.
#[test]
fn nothing_goes_while_a_place_is_silent() {
    for lists in [Lists::Denied { absent_too: false }, Lists::Broken, Lists::NoBucket, Lists::None] {
        let sent = Sent::new(74, &HOW);
        sent.stores[2].set(Ways { lists, ..Ways::default() });
        let (is, words) = class(&forget(&sent, sent.root, false).expect_err("a place is not asked"));
        assert!(is == Class::Io && words.contains("nothing was removed\n  s3://bucket/2: "), "{words}");
        assert_eq!(objects(&sent), OBJECTS as usize, "{lists:?}");
        let done = forget(&sent, sent.root, true).expect("the rest is removed");
        assert_eq!(done.class(), Some(Class::Io), "{lists:?}: {done:?}");
        // The next run finds what is left by its manifest.
        sent.stores[2].set(Ways::default());
        let done = forget(&sent, sent.root, false).expect("the rest is removed");
        assert_eq!((done.class(), objects(&sent)), (None, 0), "{lists:?}");
    }
}

#[test]
fn nothing_goes_while_another_manifest_cannot_be_read() {
    let sent = Sent::new(75, &HOW);
    let other = Sent::to(&sent.stores, 76, &HOW);
    let key = format!("{}/manifest", hex(&other.root));
    let broken = |bytes: &mut Vec<u8>| bytes[100] ^= 1;
    sent.stores.iter().for_each(|store| broken(store.objects().get_mut(&key).expect("it is there")));
    let (is, words) = class(&forget(&sent, sent.root, false).expect_err("it may need the same"));
    assert!(is == Class::Io && words.contains(&hex(&other.root)), "{words}");
    assert_eq!(objects(&sent), 2 * OBJECTS as usize);
    let done = forget(&sent, sent.root, true).expect("it is removed");
    assert_eq!((done.class(), done.removed.objects), (None, OBJECTS));
    // A damaged manifest tells of no segment: it alone goes.
    assert_eq!(class(&forget(&sent, other.root, false).expect_err("it is damaged")).0, Class::Io);
    let done = forget(&sent, other.root, true).expect("it is removed");
    assert_eq!((done.class(), done.removed.objects), (None, 5));
}

/// The manifest goes last: an encoding of which something stays looks like what it is, and the next run goes on.
#[test]
fn the_manifest_stays_while_shards_do() {
    for deletes in [Deletes::Denied, Deletes::Ignored] {
        let sent = Sent::new(77, &HOW);
        sent.stores[1].set(Ways { deletes, ..Ways::default() });
        let done = forget(&sent, sent.root, false).expect("the others are removed");
        assert_eq!(done.class(), Some(Class::Mendable), "{deletes:?}: {done:?}");
        let stays = |place: usize| done.stays.iter().filter(|missing| missing.place == place).count();
        assert_eq!((stays(0), stays(1)), (1, sent.stores[1].objects().len()), "{deletes:?}");
        let found = inventory(&sent.places(), &Context::default()).expect("a list");
        assert_eq!((found.class(), found.alone.len()), (Some(Class::Lost), 0), "{deletes:?}");
        sent.stores[1].set(Ways::default());
        let done = forget(&sent, sent.root, false).expect("the rest is removed");
        assert_eq!((done.class(), objects(&sent)), (None, 0), "{deletes:?}");
    }
}

#[test]
fn versions_that_a_place_keeps_are_counted() {
    let sent = Sent::new(78, &HOW);
    let there = sent.stores[1].objects().len() as u64;
    sent.stores[1].set(Ways { deletes: Deletes::Hidden, ..Ways::default() });
    let done = forget(&sent, sent.root, false).expect("it is removed");
    assert_eq!((done.class(), done.removed.objects), (Some(Class::Mendable), OBJECTS), "{done:?}");
    assert_eq!(done.hidden.into_iter().collect::<Vec<_>>(), [(1, there)]);
    assert_eq!(forget(&sent, sent.root, false).expect("nothing is there").class(), None);
}

/// A list that is behind leaves out shards, which are asked for at their homes.
#[test]
fn what_lists_leave_out_goes_too() {
    for lists in [Lists::Short, Lists::Empty, Lists::Sizeless] {
        let sent = Sent::new(79, &HOW);
        sent.stores.iter().for_each(|store| store.set(Ways { lists, ..Ways::default() }));
        let done = forget(&sent, sent.root, false).expect("it is removed");
        assert_eq!((done.class(), objects(&sent)), (None, 0), "{lists:?}: {done:?}");
    }
}

/// A dead place, and a root of which no place knows.
#[test]
fn what_nobody_knows_is_no_success() {
    let sent = Sent::new(80, &HOW);
    sent.stores[0].set(Ways { dead: true, ..Ways::default() });
    for partial in [false, true] {
        assert_eq!(class(&forget(&sent, [7; 32], partial).expect_err("a place is dead")).0, Class::Io);
    }
    sent.stores[0].set(Ways::default());
    let done = forget(&sent, [7; 32], false).expect("nothing is there");
    assert_eq!((done.class(), done.removed.objects), (None, 0));
}

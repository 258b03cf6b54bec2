//! Lists of the encodings in places: what a manifest proves, what only a list says, and what it costs.

use crate::store::{Lists, Ways};
use crate::{How, Sent};
use fec_base::names::hex;
use fec_stores::StoreError;
use fec_stores::inventory::{Inventory, Lack, Summary, Unread, inventory};
use fecfile::Context;
use fecfile::error::Class;

/// Two segments of 14 shards: two or three of each at a place.
const HOW: How = How { places: 5, code: (10, 4), len: 300_000, segment: 160_000, set_size: None };

fn listed(sent: &Sent) -> Inventory {
    inventory(&sent.places(), &Context::default()).expect("a list")
}

/// The facts of the only encoding.
fn only(found: &Inventory) -> &Summary {
    assert_eq!(found.encodings.len(), 1, "{found:?}");
    found.encodings[0].summary.as_ref().expect("its manifest")
}

#[test]
fn one_list_of_each_place_and_one_read_of_each_manifest_tell_all() {
    let sent = Sent::new(50, &HOW);
    let other = Sent::to(&sent.stores, 51, &How { places: 4, code: (3, 3), len: 0, ..HOW });
    sent.stores.iter().for_each(|store| store.forget_calls());
    let found = listed(&sent);
    assert_eq!((found.class(), found.alone.len(), found.failed.len()), (None, 0, 0));
    let calls: Vec<_> = sent.stores.iter().map(|store| store.calls()).collect();
    assert!(calls.iter().all(|calls| calls.lists == 1 && calls.heads == 0), "{calls:?}");
    let reads = || calls.iter().flat_map(|calls| &calls.gets);
    assert!(reads().all(|(key, _)| key.ends_with("/manifest")) && reads().count() == 2, "{calls:?}");
    let of = |root| found.encodings.iter().find(|listed| listed.root == root).expect("it is listed");
    let summary = of(sent.root).summary.as_ref().expect("its manifest");
    assert_eq!(summary.name.as_deref(), Some(&b"payload"[..]));
    let facts = (summary.payload_len, summary.segments, summary.code.k(), summary.code.m(), summary.margin);
    assert_eq!(facts, (300_000, 2, 10, 4, 4));
    assert_eq!((summary.held.values().sum::<u64>(), summary.elsewhere.0), (28, 0));
    let summary = of(other.root).summary.as_ref().expect("its manifest");
    assert_eq!((summary.payload_len, summary.margin, summary.held[&4]), (0, 3, 0));
    assert_eq!(of(other.root).manifests, [0, 1, 2, 3]);
}

#[test]
fn what_is_lost_is_told_as_the_lists_have_it() {
    let sent = Sent::new(52, &HOW);
    let [first, second] = [0, 1].map(|nth| hex(&sent.segments[nth]));
    let key = |root: &str, index: u32| format!("{root}/{index:03}.shard");
    let drop_shard = |root: &str, index: u32| {
        sent.stores.iter().for_each(|store| drop(store.objects().remove(&key(root, index))));
    };
    drop_shard(&second, 3);
    // An object of no bytes stands for a shard, and is none.
    let home = sent.stores.iter().find(|store| store.objects().contains_key(&key(&first, 5)));
    home.expect("its home").objects().insert(key(&first, 5), Vec::new());
    let found = listed(&sent);
    let summary = only(&found);
    assert_eq!((found.class(), summary.missing, summary.damaged), (Some(Class::Mendable), 2, 1));
    assert_eq!(summary.margin, 3);
    let lack =
        |segment, missing: &[u32]| Lack { segment, root: sent.segments[segment], missing: missing.to_vec() };
    assert_eq!(summary.lacking, [lack(0, &[5]), lack(1, &[3])]);
    sent.stores[2].objects().remove(&format!("{}/manifest", hex(&sent.root)));
    assert_eq!(only(&listed(&sent)).lack_manifest, [2]);
    (4..8).for_each(|index| drop_shard(&second, index));
    let found = listed(&sent);
    assert_eq!((found.class(), only(&found).margin), (Some(Class::Lost), -1));
    // A place that gives no list may have the rest.
    sent.stores[4].set(Ways { dead: true, ..Ways::default() });
    let found = listed(&sent);
    assert_eq!((found.class(), found.failed.len()), (Some(Class::Io), 1));
    assert_eq!(found.encodings[0].class(true), Some(Class::Io));
}

/// A single place of five does not restore it, and the manifest tells of the others.
#[test]
fn a_part_of_the_places_tells_of_the_others() {
    let sent = Sent::new(53, &HOW);
    let found = inventory(&crate::places(&sent.stores[..1], 0), &Context::default()).expect("a list");
    let summary = only(&found);
    assert_eq!((found.class(), summary.margin), (Some(Class::Lost), 2 - 10));
    assert_eq!((summary.elsewhere.0, summary.elsewhere.1[0].as_str()), (4, "s3://bucket/1"));
}

#[test]
fn shards_without_a_manifest_are_told_by_their_roots() {
    let sent = Sent::new(54, &HOW);
    let key = format!("{}/manifest", hex(&sent.root));
    sent.stores.iter().for_each(|store| drop(store.objects().remove(&key)));
    let found = listed(&sent);
    assert_eq!((found.class(), found.encodings.len()), (Some(Class::Mendable), 0));
    let mut alone: Vec<_> = found.alone.iter().map(|alone| (alone.root, alone.shards)).collect();
    alone.sort_unstable();
    let mut expected: Vec<_> = sent.segments.iter().map(|root| (*root, 14)).collect();
    expected.sort_unstable();
    assert_eq!(alone, expected);
    assert_eq!(found.alone[0].places, [0, 1, 2, 3, 4]);
}

/// Whoever may write to a place puts other bytes under the key of a manifest, and keys that look like ours.
#[test]
fn a_forged_manifest_proves_nothing() {
    let sent = Sent::new(55, &HOW);
    let key = format!("{}/manifest", hex(&sent.root));
    let other = Sent::new(56, &HOW);
    let theirs = other.stores[0].objects()[&format!("{}/manifest", hex(&other.root))].clone();
    sent.stores[0].objects().insert(key.clone(), theirs.clone());
    for name in ["manifest", "x/manifest", &key.to_uppercase(), &format!("{key}.old"), "a\u{1b}[2J/manifest"]
    {
        sent.stores[1].objects().insert(name.to_owned(), theirs.clone());
    }
    let found = listed(&sent);
    assert_eq!(only(&found).payload_len, 300_000, "from a place that has it");
    sent.stores.iter().for_each(|store| drop(store.objects().insert(key.clone(), theirs.clone())));
    let found = listed(&sent);
    assert_eq!(found.encodings[0].summary.as_ref().err(), Some(&Unread::Damaged));
    assert_eq!((found.class(), found.alone.len()), (Some(Class::Lost), 2));
    // A manifest that is too long to be one is not read.
    sent.stores.iter().for_each(|store| {
        store.objects().insert(key.clone(), vec![0; (16 << 20) + 1]);
        store.forget_calls();
    });
    let found = listed(&sent);
    assert_eq!(found.encodings[0].summary.as_ref().err(), Some(&Unread::Damaged));
    assert_eq!(sent.given(), 0);
}

/// A list that fails leaves its place out, and what the others say is told.
#[test]
fn a_place_without_a_list_is_named_and_the_others_are_told() {
    for (lists, is_told) in [
        (Lists::Well, true),
        (Lists::Sizeless, true),
        (Lists::Denied { absent_too: true }, false),
        (Lists::Broken, false),
        (Lists::Endless, false),
        (Lists::NoBucket, false),
        (Lists::None, false),
    ] {
        let sent = Sent::new(57, &HOW);
        sent.stores[1].set(Ways { lists, ..Ways::default() });
        let found = listed(&sent);
        let failed: Vec<usize> = found.failed.iter().map(|(place, _)| *place).collect();
        assert_eq!(
            (found.class(), failed.is_empty()),
            (if is_told { None } else { Some(Class::Io) }, is_told)
        );
        let summary = only(&found);
        assert!(is_told || failed == [1], "{lists:?}");
        assert_eq!((summary.held[&1] > 0, summary.margin >= 0), (is_told, true), "{lists:?}");
        assert!(summary.lack_manifest.is_empty(), "nobody knows whether it lacks: {lists:?}");
        assert!(lists != Lists::NoBucket || found.failed[0].1 == StoreError::Absent);
    }
}

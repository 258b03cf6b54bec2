//! Lists that are denied, empty, short or broken. Objects are found all the same, because keys follow from the root.

use crate::store::{Lists, Ways};
use crate::{How, Sent, class, places};
use fec_base::io::output::Destination;
use fec_core::block::Code;
use fec_core::digest::Digest;
use fec_stores::mend::StoredRepair;
use fec_stores::send::{SendOptions, send};
use fec_stores::stored::Stored;
use fecfile::error::Class;
use fecfile::payload::{Options, Source};
use fecfile::{Context, PayloadRange};
use std::collections::BTreeSet;

const HOW: How = How { places: 5, code: (10, 4), len: 300_000, segment: 160_000, set_size: None };

const LISTS: [Lists; 9] = [
    Lists::Denied { absent_too: true },
    Lists::Denied { absent_too: false },
    Lists::Empty,
    Lists::Short,
    Lists::Broken,
    Lists::Endless,
    Lists::NoBucket,
    Lists::Sizeless,
    Lists::None,
];

fn set(sent: &Sent, lists: Lists) {
    sent.stores.iter().for_each(|store| store.set(Ways { lists, ..Ways::default() }));
}

fn restore(sent: &Sent, root: Digest) -> Result<Vec<u8>, fecfile::Error> {
    let places = sent.places();
    let mut out = Vec::new();
    let stored = Stored::find(&places, root, None)?;
    let _ = stored.restore(None, Destination::writer(&mut out), &Context::default())?;
    Ok(out)
}

/// Runs all operations on an encoding without losses.
fn all_is_well(sent: &Sent, lists: Lists) {
    let _ = sent.restore().unwrap_or_else(|e| panic!("{lists:?}: {e}"));
    // The root of a segment leads to that segment alone.
    let first = restore(sent, sent.segments[0]).unwrap_or_else(|e| panic!("{lists:?}: {e}"));
    assert!(first == sent.payload[..160_000], "{lists:?}");
    let places = sent.places();
    let stored = Stored::find_everywhere(&places, sent.root, None).expect("the manifest");
    let mut part = Vec::new();
    let range = PayloadRange { start: 150_000, end: Some(170_000) };
    let _ = stored
        .restore_range(range, None, Destination::writer(&mut part), &Context::default())
        .unwrap_or_else(|e| panic!("{lists:?}: {e}"));
    assert!(part == sent.payload[150_000..170_000], "{lists:?}");
    for deep in [false, true] {
        let verified = stored.verify(deep, &Context::default()).expect("it is looked at");
        assert_eq!((verified.class(), verified.margin()), (None, 4), "{lists:?}: {:?}", verified.trouble);
    }
    for dry_run in [true, false] {
        let how = StoredRepair { to: (0..5).collect(), now: true, deep: false, dry_run };
        let repaired = stored.repair(&how, &Context::default()).expect("there is nothing to do");
        assert_eq!((repaired.class(dry_run), repaired.made.len()), (None, 0), "{lists:?}");
    }
}

#[test]
fn what_is_there_is_found_whatever_lists_say() {
    for lists in LISTS {
        let sent = Sent::new(3, &HOW);
        set(&sent, lists);
        all_is_well(&sent, lists);
        // Encoding finds the same objects as decoding.
        let encode = Options::new(Code::new(10, 4).expect("a code"));
        let options = SendOptions {
            encode,
            segment_len: HOW.segment,
            spool: None,
            uploads: 4,
            crowded: false,
            enough: false,
            permissions: 0o600,
        };
        let places = places(&sent.stores, 1);
        let again = send(Source::Payload(&sent.payload), b"payload", &places, &options, &Context::default());
        let again = again.expect("it is sent");
        assert_eq!((again.root, again.created, again.kept), (sent.root, 0, 2 * 14 + 5), "{lists:?}");
        assert!(sent.stores.iter().all(|store| store.calls().deletes == 0));
    }
}

/// Shards may stand at any place after a repair.
#[test]
fn what_moved_is_found_whatever_lists_say() {
    for lists in LISTS {
        let sent = Sent::new(4, &HOW);
        for nth in [0, 3] {
            for key in sent.stores[nth].shards() {
                let object = sent.stores[nth].objects().remove(&key).expect("it is there");
                sent.stores[(nth + 1) % 5].objects().insert(key, object);
            }
        }
        set(&sent, lists);
        let _ = sent.restore().unwrap_or_else(|e| panic!("{lists:?}: {e}"));
        let places = sent.places();
        let stored = Stored::find(&places, sent.root, None).expect("the manifest");
        let verified = stored.verify(false, &Context::default()).expect("it is looked at");
        assert!(verified.margin() >= 0, "{lists:?}: {}", verified.margin());
    }
}

/// Only answers about objects themselves prove a loss. If a place denies missing objects to clients that may not list,
/// the loss is not certain.
#[test]
fn a_loss_is_told_on_the_word_of_objects() {
    for lists in LISTS {
        let sent = Sent::new(5, &HOW);
        // Five lost shards of the first segment are more than the code allows.
        let prefix = fec_base::names::hex(&sent.segments[0]);
        let gone: BTreeSet<String> = (0..5).map(|index| format!("{prefix}/{index:03}.shard")).collect();
        sent.stores.iter().for_each(|store| store.objects().retain(|key, _| !gone.contains(key)));
        set(&sent, lists);
        let expected = match lists {
            Lists::Denied { absent_too: true } => Class::Io,
            _ => Class::Lost,
        };
        let (is, words) = class(&sent.restore().expect_err("too few are left"));
        assert_eq!(is, expected, "{lists:?}: {words}");
        let places = sent.places();
        let stored = Stored::find_everywhere(&places, sent.root, None).expect("the manifest");
        let verified = stored.verify(false, &Context::default()).expect("it is looked at");
        assert_eq!(verified.class(), Some(expected), "{lists:?}: {:?}", verified.trouble);
        let mut out = Vec::new();
        let range = PayloadRange { start: 0, end: Some(150_000) };
        let part = stored.restore_range(range, None, Destination::writer(&mut out), &Context::default());
        assert_eq!(class(&part.expect_err("too few are left")).0, expected, "{lists:?}");
        for dry_run in [true, false] {
            let how = StoredRepair { to: (0..5).collect(), now: true, deep: false, dry_run };
            let error = stored.repair(&how, &Context::default()).expect_err("too few are left");
            assert_eq!(class(&error).0, expected, "{lists:?}, -n {dry_run}");
        }
        // Another root has no objects. Only answers about objects prove that, unless something is wrong with the
        // places.
        let expected = match lists {
            Lists::NoBucket | Lists::Broken | Lists::Endless => Class::Io,
            _ => expected,
        };
        let (is, words) = class(&restore(&sent, [7; 32]).expect_err("nothing is there"));
        assert_eq!(is, expected, "{lists:?}: {words}");
    }
}

/// Complete lists make requests by key unnecessary.
#[test]
fn lists_that_tell_all_are_enough() {
    let sent = Sent::new(6, &HOW);
    let _ = sent.restore().expect("it can be restored");
    for store in &sent.stores {
        // The only HEAD request is for the manifest.
        assert!(store.calls().heads <= 1, "{} heads", store.calls().heads);
    }
}

/// An encoding of many segments takes one list of each place, whether it is verified, restored or sent again.
#[test]
fn one_list_of_a_place_tells_of_all_segments() {
    let how = How { segment: 15_000, ..HOW };
    let sent = Sent::new(8, &how);
    assert_eq!(sent.segments.len(), 20);
    let asked = |what: &str| {
        for store in &sent.stores {
            let calls = store.calls();
            assert!(
                calls.lists == 1 && calls.heads <= 1,
                "{what}: {} lists, {} heads",
                calls.lists,
                calls.heads
            );
            store.forget_calls();
        }
    };
    let places = sent.places();
    let stored = Stored::find_everywhere(&places, sent.root, None).expect("the manifest");
    let verified = stored.verify(false, &Context::default()).expect("it is looked at");
    assert_eq!((verified.class(), verified.margin()), (None, 4), "{:?}", verified.trouble);
    // The list, the manifest twice, and the first bytes of its 56 shards.
    let requests = |calls: &crate::store::Calls| {
        calls.lists + calls.heads + calls.gets.values().map(|(count, _)| count).sum::<u64>()
    };
    assert!(sent.stores.iter().all(|store| requests(&store.calls()) == 59));
    asked("verify");
    let _ = sent.restore().expect("it can be restored");
    asked("decode");
    let again = Sent::to(&sent.stores, 8, &how);
    assert_eq!(again.root, sent.root);
}

/// A place that holds much else is asked for each segment, as is one that gives no whole list.
#[test]
fn a_place_with_much_else_is_asked_for_each_segment() {
    let sent = Sent::new(9, &How { segment: 40_000, ..HOW });
    assert_eq!(sent.segments.len(), 8);
    for nth in 0..4001u32 {
        let root = fec_base::names::hex(&[9; 32]).replace("09090909", &format!("{nth:08x}"));
        sent.stores[0].objects().insert(format!("{root}/000.shard"), Vec::new());
    }
    let places = sent.places();
    let stored = Stored::find_everywhere(&places, sent.root, None).expect("the manifest");
    let verified = stored.verify(false, &Context::default()).expect("it is looked at");
    assert_eq!((verified.class(), verified.margin()), (None, 4), "{:?}", verified.trouble);
    let lists: Vec<u64> = sent.stores.iter().map(|store| store.calls().lists).collect();
    assert_eq!(lists, [9, 1, 1, 1, 1]);
}

/// A reader that was given enough names asks for a shard that no list names at its home alone.
#[test]
fn the_home_is_asked_for_what_its_list_leaves_out() {
    let sent = Sent::new(7, &HOW);
    sent.stores[2].set(Ways { lists: Lists::Short, ..Ways::default() });
    let places = sent.places();
    let stored = Stored::find_everywhere(&places, sent.root, None).expect("the manifest");
    sent.stores.iter().for_each(|store| store.forget_calls());
    let verified = stored.verify(false, &Context::default()).expect("it is looked at");
    assert_eq!((verified.class(), verified.margin()), (None, 4), "{:?}", verified.trouble);
    let heads: Vec<u64> = sent.stores.iter().map(|store| store.calls().heads).collect();
    assert!(heads[2] >= 2 && heads.iter().sum::<u64>() == heads[2], "{heads:?}");
}

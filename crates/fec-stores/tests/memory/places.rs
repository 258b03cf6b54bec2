//! Repairs by the places that shards may stand at, the state by domains, and folders as places.

use crate::store::{Deletes, Memory, Ways, bytes_of};
use crate::{How, Sent, class, forged, places};
use fec_base::io::output::{Destination, OWNER_ALONE, Policy};
use fec_core::block::Code;
use fec_core::format::manifest::Manifest;
use fec_stores::StoreError;
use fec_stores::call::CallOptions;
use fec_stores::error::StoresError;
use fec_stores::mend::{StoredRepair, StoredRepaired};
use fec_stores::places::{Place, Places};
use fec_stores::send::{SendOptions, send};
use fec_stores::stored::Stored;
use fec_stores::target::Target;
use fec_stores::verify::StoredVerified;
use fecfile::error::{Class, Error};
use fecfile::payload::{Options, Source};
use fecfile::{Context, PayloadRange};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Two segments; five places with a shard or two of each.
const HOW: How = How { places: 5, code: (4, 4), len: 90_000, segment: 50_000, set_size: None };

fn how(to: &[usize]) -> StoredRepair {
    StoredRepair { to: to.iter().copied().collect(), now: true, deep: false, dry_run: false }
}

fn repair(sent: &Sent, how: &StoredRepair) -> Result<StoredRepaired, Error> {
    let places = sent.places();
    Stored::find_everywhere(&places, sent.root, None)?.repair(how, &Context::default())
}

fn verify(sent: &Sent) -> StoredVerified {
    let places = sent.places();
    let stored = Stored::find_everywhere(&places, sent.root, None).expect("it is found");
    stored.verify(false, &Context::default()).expect("it is looked at")
}

/// Loses shards of the first segment, wherever they are.
fn lose(sent: &Sent, indices: &[usize]) {
    for index in indices {
        let key = forged::key(&sent.segments[0], *index);
        sent.stores.iter().for_each(|store| drop(store.objects().remove(&key)));
    }
}

/// Shards of a segment at each place.
fn held(sent: &Sent, segment: usize) -> Vec<usize> {
    let prefix = fec_base::names::hex(&sent.segments[segment]);
    let of = |store: &Arc<Memory>| store.shards().iter().filter(|key| key.starts_with(&prefix)).count();
    sent.stores.iter().map(of).collect()
}

/// A repair each night would put single shards for ever; the half that may still be lost is enough until then.
#[test]
fn a_few_lost_shards_can_wait() {
    for (lost, margin, waits) in [(1, 3, true), (2, 2, false), (4, 0, false)] {
        let sent = Sent::new(31, &HOW);
        lose(&sent, &[0, 1, 2, 3][..lost]);
        let later = StoredRepair { now: false, ..how(&[0, 1, 2, 3, 4]) };
        let repaired = repair(&sent, &later).expect("it is looked at");
        assert_eq!(repaired.postponed, if waits { vec![(0, margin)] } else { vec![] }, "{lost}");
        assert_eq!(repaired.made.len(), if waits { 0 } else { lost }, "{lost}");
        assert_eq!(repaired.class(false), waits.then_some(Class::Mendable), "{lost}");
        assert_eq!(verify(&sent).margin(), if waits { margin } else { 4 }, "{lost}");
        let repaired = repair(&sent, &how(&[0, 1, 2, 3, 4])).expect("it is repaired");
        assert_eq!((repaired.made.len(), verify(&sent).margin()), (if waits { lost } else { 0 }, 4));
    }
}

/// A place that is given up gives its shards to the others, in turn, and keeps what it has.
#[test]
fn shards_move_to_the_places_that_are_left() {
    let sent = Sent::new(32, &HOW);
    assert_eq!((held(&sent, 0), held(&sent, 1)), (vec![2, 2, 2, 1, 1], vec![1, 2, 2, 2, 1]));
    let repaired = repair(&sent, &how(&[0, 1, 2])).expect("it is repaired");
    let made: Vec<(u32, u32)> = repaired.made.iter().map(|(segment, shard, _)| (*segment, *shard)).collect();
    assert_eq!(made, [(0, 3), (0, 4), (1, 2), (1, 3), (1, 7)]);
    assert!(repaired.made.iter().all(|(_, _, place)| *place <= 2), "{:?}", repaired.made);
    assert_eq!((held(&sent, 0), held(&sent, 1)), (vec![3, 3, 2, 1, 1], vec![3, 3, 2, 2, 1]));
    assert_eq!((repaired.class(false), repaired.trouble.len()), (None, 0), "{:?}", repaired.trouble);
    sent.stores[3].objects().clear();
    sent.stores[4].objects().clear();
    assert_eq!(verify(&sent).margin(), 4);
    // Two places hold four each: the loss of one is the loss of all that may be lost, and no more.
    let repaired = repair(&sent, &how(&[0, 1])).expect("it is repaired");
    assert_eq!(
        (held(&sent, 0)[..2].to_vec(), repaired.trouble.len()),
        (vec![4, 4], 0),
        "{:?}",
        repaired.trouble
    );
    // A single one is told to be too few.
    let repaired = repair(&sent, &how(&[0])).expect("it is repaired");
    assert_eq!((held(&sent, 0)[0], repaired.class(false)), (8, None));
    assert_eq!(repaired.trouble.len(), 1);
    assert!(repaired.trouble[0].contains("until then the loss of one domain may be the loss of all"));
    // Nothing is written then, and nothing is warned of.
    let repaired = repair(&sent, &how(&[0])).expect("there is nothing to do");
    assert_eq!((repaired.made.len(), repaired.trouble.len(), repaired.moved_bytes > 0), (0, 0, true));
}

/// A place that takes nothing is no reason to leave shards unmade, and what arrived nowhere is named.
#[test]
fn a_place_that_refuses_is_replaced_by_another() {
    let sent = Sent::new(33, &HOW);
    lose(&sent, &[0, 5]);
    sent.stores[0].set(Ways { read_only: true, ..Ways::default() });
    let repaired = repair(&sent, &how(&[0, 1, 2, 3, 4])).expect("it is repaired");
    assert_eq!((repaired.made.len(), repaired.missing.len()), (2, 0), "{:?}", repaired.missing);
    assert!(repaired.made.iter().all(|(_, _, place)| *place != 0), "{:?}", repaired.made);
    assert_eq!(verify(&sent).margin(), 4);
    lose(&sent, &[1, 6]);
    sent.stores.iter().for_each(|store| store.set(Ways { read_only: true, ..Ways::default() }));
    let repaired = repair(&sent, &how(&[0, 1])).expect("it is tried");
    let missing: Vec<_> = repaired.missing.iter().filter_map(|missing| missing.shard).collect();
    assert!(missing.contains(&(0, 1)) && missing.contains(&(0, 6)) && repaired.made.is_empty());
    assert!(repaired.missing.iter().all(|missing| missing.place <= 1), "{:?}", repaired.missing);
    assert!(
        repaired.missing.iter().any(|missing| missing.why == StoreError::Denied("403 AccessDenied".into()))
    );
    assert_eq!(repaired.class(false), Some(Class::Mendable));
}

/// Places without the manifest get it. Places for reading need none.
#[test]
fn manifests_come_back() {
    let sent = Sent::new(34, &HOW);
    let key = format!("{}/manifest", fec_base::names::hex(&sent.root));
    let copy = sent.stores[0].objects()[&key].clone();
    [1, 3].iter().for_each(|nth| drop(sent.stores[*nth].objects().remove(&key)));
    sent.stores[4].objects().get_mut(&key).expect("it is there")[70] ^= 1;
    let verified = verify(&sent);
    assert_eq!((verified.manifests, verified.lack_manifest), (vec![0, 2], vec![1, 3, 4]));
    let dry = StoredRepair { dry_run: true, ..how(&[0, 1, 2, 3, 4]) };
    let told = repair(&sent, &dry).expect("it is looked at");
    assert_eq!((told.manifests, told.made.len()), (vec![1, 3, 4], 0));
    sent.stores[3].set(Ways { read_only: true, ..Ways::default() });
    let repaired = repair(&sent, &how(&[0, 1, 3])).expect("it is repaired");
    assert_eq!(repaired.manifests, [1]);
    assert_eq!((repaired.missing.len(), repaired.missing[0].place, repaired.missing[0].shard), (1, 3, None));
    assert_eq!(repaired.class(false), Some(Class::Mendable));
    let _ = repair(&sent, &how(&[4])).expect("it is repaired");
    assert!([1, 4].iter().all(|nth| sent.stores[*nth].objects()[&key] == copy));
    assert_eq!(verify(&sent).lack_manifest, [3]);
}

/// A damaged copy goes only if another is whole to its last byte. A copy that cannot go is told.
#[test]
fn damaged_copies_go_when_another_is_whole() {
    // Each case names the damage of the copy, that of the other, and how many are removed and made.
    for (first, second, removed, made) in [(10, None, 1, 0), (10, Some(2000), 0, 1), (2000, None, 0, 0)] {
        let sent = Sent::new(35, &HOW);
        let key = forged::key(&sent.segments[0], 0);
        let mut copy = sent.stores[0].objects()[&key].clone();
        if let Some(at) = second {
            sent.stores[0].objects().get_mut(&key).expect("it is there")[at] ^= 1;
        }
        copy[first] ^= 1;
        sent.stores[1].objects().insert(key.clone(), copy);
        let repaired = repair(&sent, &how(&[0, 1, 2, 3, 4])).expect("it is repaired");
        let what = format!("{first} {second:?}: {repaired:?}");
        assert_eq!((repaired.removed.len(), repaired.made.len()), (removed, made), "{what}");
        assert_eq!(repaired.removed, if removed > 0 { vec![(0, 0, 1)] } else { vec![] }, "{what}");
        assert_eq!(
            sent.stores[1].objects().contains_key(&key),
            removed == 0 && made == 0 || second.is_some(),
            "{what}"
        );
        let _ = sent.restore().expect("it is whole");
    }
    let sent = Sent::new(36, &HOW);
    let key = forged::key(&sent.segments[0], 0);
    sent.stores[1].objects().insert(key.clone(), vec![7; 100]);
    sent.stores[1].set(Ways { deletes: Deletes::Denied, ..Ways::default() });
    let repaired = repair(&sent, &how(&[0, 1, 2, 3, 4])).expect("it is repaired");
    assert_eq!((repaired.left_damaged, repaired.removed.len()), (true, 0));
    assert_eq!(repaired.class(false), Some(Class::Mendable));
    assert_eq!(repaired.trouble, [format!("s3://bucket/1/{key}: not allowed: 403 AccessDenied")]);
    // A place that may not be written to is left as it is.
    let repaired = repair(&sent, &how(&[0, 2, 3, 4])).expect("it is repaired");
    assert!(!repaired.left_damaged && sent.stores[1].objects().contains_key(&key));
}

/// The shard that was damaged is made where it stood, though another place holds fewer.
#[test]
fn a_damaged_shard_is_replaced_where_it_stands() {
    for deep in [false, true] {
        let sent = Sent::new(37, &HOW);
        let key = forged::key(&sent.segments[0], 1);
        let good = sent.stores[1].objects()[&key].clone();
        sent.stores[1].objects().get_mut(&key).expect("it is there")[if deep { 2000 } else { 10 }] ^= 1;
        let repaired =
            repair(&sent, &StoredRepair { deep, ..how(&[0, 1, 2, 3, 4]) }).expect("it is repaired");
        assert_eq!((repaired.made, repaired.missing.len()), (vec![(0, 1, 1)], 0), "{deep}");
        assert!(sent.stores[1].objects()[&key] == good, "{deep}");
    }
}

/// A single good copy of each shard counts once, for the domain of its place, and so does what may fail.
#[test]
fn the_state_tells_what_may_fail() {
    let sent = Sent::new(38, &HOW);
    let key = forged::key(&sent.segments[0], 0);
    let copy = sent.stores[0].objects()[&key].clone();
    sent.stores[4].objects().insert(key, copy);
    lose(&sent, &[7]);
    let verified = verify(&sent);
    let [first, second] = &verified.segments[..] else { panic!("two segments") };
    let domain = |nth: usize, count: usize| (format!("s3://bucket/{nth}"), count);
    let expected: BTreeMap<_, _> =
        [2, 2, 1, 1, 1].into_iter().enumerate().map(|(nth, of)| domain(nth, of)).collect();
    assert_eq!(first.held, expected);
    assert_eq!((first.intact[&0].as_slice(), &first.missing[..], first.margin), (&[0, 4][..], &[7][..], 3));
    assert_eq!(
        (first.survival.to_string(), second.survival.to_string()),
        ("any 1 of 5 domains, plus 1 shard".to_owned(), "any 2 of 5 domains".to_owned())
    );
    assert_eq!((verified.margin(), verified.class(), verified.deep), (3, Some(Class::Mendable), false));
    assert!(verified.fetched_bytes > 0 && !verified.is_bare && !verified.is_denied);
    // A copy of the manifest has to survive too.
    let manifest = format!("{}/manifest", fec_base::names::hex(&sent.root));
    sent.stores[1..].iter().for_each(|store| drop(store.objects().remove(&manifest)));
    assert_eq!(verify(&sent).segments[1].survival.domains, 0);
    // A place that does not answer may have what is missing.
    sent.stores[2].set(Ways { dead: true, ..Ways::default() });
    let verified = verify(&sent);
    assert_eq!(
        (verified.class(), verified.trouble.len()),
        (Some(Class::Mendable), 1),
        "{:?}",
        verified.trouble
    );
    assert!(verified.trouble[0].starts_with("s3://bucket/2: "), "{:?}", verified.trouble);
    assert_eq!(verified.lack_manifest, [1, 3, 4], "who does not answer is in trouble, and lacks nothing");
    sent.stores[3].objects().clear();
    sent.stores[4].objects().clear();
    assert_eq!(verify(&sent).class(), Some(Class::Io), "it may have enough");
    sent.stores[2].set(Ways::default());
    sent.stores[2].objects().clear();
    assert_eq!(verify(&sent).class(), Some(Class::Lost));
}

/// The manifest remembers the domains. Whoever names one anew is right.
#[test]
fn domains_are_those_of_the_manifest_unless_named() {
    let stores: Vec<Arc<Memory>> = (0..4).map(|nth| Arc::new(Memory::new(nth, 1))).collect();
    let at = |domains: [&str; 4]| {
        let place = |(store, domain): (&Arc<Memory>, &str)| {
            let text = format!("s3://bucket/{}{domain}", store.nth);
            Place::new(Target::parse(&text).expect("a target"), store.clone())
        };
        Places::new(stores.iter().zip(domains).map(place).collect(), CallOptions::default())
    };
    let options = SendOptions {
        encode: Options::new(Code::new(2, 2).expect("a code")),
        segment_len: 1 << 20,
        spool: None,
        uploads: 4,
        crowded: false,
        enough: false,
        permissions: OWNER_ALONE,
    };
    let payload = bytes_of(41, 10_000);
    let sender = at([",domain=a", ",domain=a", ",domain=b", ",domain=b"]);
    let sent = send(Source::Payload(&payload), b"name", &sender, &options, &Context::default());
    let root = sent.expect("it is sent").root;
    let held = |places: Places| -> Vec<(String, usize)> {
        let stored = Stored::find_everywhere(&places, root, None).expect("it is found");
        let verified = stored.verify(false, &Context::default()).expect("it is looked at");
        verified.segments[0].held.clone().into_iter().collect()
    };
    let of = |pairs: &[(&str, usize)]| -> Vec<(String, usize)> {
        pairs.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    };
    // Within a domain the places take their turns.
    stores[..2].iter().for_each(|store| store.objects().retain(|key, _| key.ends_with("manifest")));
    let places = at([""; 4]);
    let stored = Stored::find_everywhere(&places, root, None).expect("it is found");
    let repaired = stored.repair(&how(&[0, 1, 2, 3]), &Context::default()).expect("it is repaired");
    assert_eq!((repaired.made.len(), stores[0].shards().len(), stores[1].shards().len()), (2, 1, 1));
    assert_eq!(held(at([""; 4])), of(&[("a", 2), ("b", 2)]));
    assert_eq!(held(at(["", "", "", ",domain=c"])), of(&[("a", 2), ("b", 1), ("c", 1)]));
}

/// Sends to folders.
fn to_folders(home: &Path, permissions: u32) -> (Vec<Target>, Vec<u8>, [u8; 32]) {
    let target = |nth: usize| Target::parse(&format!("{}/{nth}", home.display())).expect("a target");
    let targets: Vec<Target> = (0..4).map(target).collect();
    let payload = bytes_of(42, 60_000);
    let options = SendOptions {
        encode: Options::new(Code::new(2, 2).expect("a code")),
        segment_len: 1 << 20,
        spool: None,
        uploads: 4,
        crowded: false,
        enough: false,
        permissions,
    };
    let places = Places::open(&targets, CallOptions::default(), false).expect("they open");
    let sent = send(Source::Payload(&payload), b"name", &places, &options, &Context::default());
    (targets, payload, sent.expect("it is sent").root)
}

fn modes(folder: &Path) -> Vec<u32> {
    let mut modes = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            modes.extend(self::modes(&path));
        } else {
            modes.push(fs::metadata(&path).expect("a file").permissions().mode() & 0o777);
        }
    }
    modes
}

/// Whoever may not read the payload may not read its shards, those that are remade, and what is restored from them.
#[test]
fn what_is_made_of_a_payload_is_for_its_readers() {
    for permissions in [0o600, 0o640, 0o644] {
        let home = tempfile::tempdir().expect("a folder");
        let (targets, payload, root) = to_folders(home.path(), permissions);
        assert_eq!(modes(home.path()), vec![permissions; 2 * 4]);
        fs::remove_dir_all(home.path().join("3")).expect("it goes");
        let places = Places::open(&targets, CallOptions::default(), false).expect("they open");
        let stored = Stored::find_everywhere(&places, root, None).expect("it is found");
        let repaired = stored.repair(&how(&[0, 1, 2, 3]), &Context::default()).expect("it is repaired");
        assert_eq!((repaired.made.len(), repaired.manifests), (1, vec![3]));
        assert_eq!(modes(&home.path().join("3")), [permissions; 2]);
        let out = home.path().join("out");
        let policy = stored.made_of_objects(Policy::new().with_sync(false).with_permissions(0o666));
        let restored = stored.restore(None, Destination::File(&out, policy), &Context::default());
        assert_eq!(restored.expect("it is restored").payload_bytes, 60_000);
        assert!(fs::read(&out).expect("it is there") == payload);
        let mode = fs::metadata(&out).expect("it is there").permissions().mode() & 0o777;
        assert_eq!(mode & !permissions & 0o077, 0, "{mode:o} of {permissions:o}");
    }
}

/// An output has its name when it is whole, and none of what stood there goes otherwise.
#[test]
fn outputs_appear_whole_or_not_at_all() {
    let home = tempfile::tempdir().expect("a folder");
    let (targets, payload, root) = to_folders(home.path(), 0o600);
    let places = Places::open(&targets, CallOptions { retries: 0, ..CallOptions::default() }, false).unwrap();
    let stored = Stored::find(&places, root, None).expect("it is found");
    let out = home.path().join("out");
    let restore = |force: bool| {
        let policy = Policy::new().with_sync(false).with_force(force);
        stored.restore(None, Destination::File(&out, policy), &Context::default())
    };
    fs::write(&out, b"before").expect("it is written");
    let _ = restore(false).expect_err("it is there");
    for gone in 1..4 {
        fs::remove_dir_all(home.path().join(gone.to_string())).expect("it goes");
    }
    let error = restore(true).expect_err("too little is left");
    // The folders are gone, as a disk is that is not mounted.
    assert_eq!(class(&error).0, Class::Io, "{error}");
    assert_eq!(fs::read(&out).expect("it is there"), b"before");
    assert_eq!(fs::read_dir(home.path()).expect("a folder").count(), 2, "nothing is left behind");
    let (_, _, again) = to_folders(home.path(), 0o600);
    assert_eq!(again, root);
    let _ = restore(true).expect("it is restored");
    assert!(fs::read(&out).expect("it is there") == payload);
}

/// Two names of one place would fail together.
#[test]
fn a_place_is_named_once() {
    let home = tempfile::tempdir().expect("a folder");
    let open = |texts: [String; 2]| {
        let targets = texts.map(|text| Target::parse(&text).expect("a target"));
        Places::open(&targets, CallOptions::default(), false)
    };
    let here = home.path().display();
    for (one, other) in [("a", "./a"), ("a", "b/../a")] {
        fs::create_dir_all(home.path().join("b")).expect("a folder");
        let error = open([format!("{here}/{one}"), format!("{here}/{other}")]).map(drop).expect_err("twice");
        assert!(matches!(error.cause(), Some(StoresError::Twice)), "{error}");
        assert_eq!(error.class(), Class::Usage);
    }
    let opened = open([format!("{here}/a"), format!("{here}/b")]).expect("they are two");
    assert_eq!((opened.len(), opened.is_empty(), opened.iter().count()), (2, false, 2));
    assert_eq!(opened.get(1).target.url, format!("{here}/b"));
    let none = Places::new(Vec::new(), CallOptions::default());
    assert!(none.is_empty());
    let error = Stored::find(&none, [1; 32], None).map(drop).expect_err("nowhere");
    assert!(matches!(error.cause(), Some(StoresError::NoPlace)) && error.class() == Class::Usage);
}

/// A place that is down is asked a bounded number of times, and its failures are told in words.
#[test]
fn a_place_that_is_down_is_left_alone() {
    let sent = Sent::new(43, &HOW);
    sent.stores[2].set(Ways { dead: true, ..Ways::default() });
    let restored = sent.restore().expect("the others suffice");
    assert_eq!(restored.segments, 2);
    assert_eq!(
        restored.came.values().sum::<u64>(),
        restored.came.iter().filter(|(place, _)| **place != 2).map(|(_, count)| count).sum::<u64>()
    );
    assert!(restored.came.values().sum::<u64>() >= 8);
    let all: Vec<Arc<Memory>> = sent.stores.clone();
    all.iter().for_each(|store| store.set(Ways { dead: true, ..Ways::default() }));
    let places = places(&all, 0);
    let error = Stored::find(&places, sent.root, None).map(drop).expect_err("nobody answers");
    let Some(StoresError::NotFound { places: 5, causes }) = error.cause() else { panic!("{error}") };
    assert_eq!(causes.len(), 5, "a line for each: {causes:?}");
    assert!(
        causes[0].starts_with("s3://bucket/0: ") && causes[0].contains("connection refused"),
        "{causes:?}"
    );
    assert_eq!(error.class(), Class::Io);
}

/// A range takes the records that it touches alone. A place that crawls, is silent or lies is left for others, and
/// told.
#[test]
fn a_range_does_not_wait_for_bad_places() {
    let one = How { places: 6, code: (3, 3), len: 90_000, segment: 1 << 20, set_size: None };
    let crawls = Ways { speed: Some(100), ..Ways::default() };
    let silent = Ways { silent: true, ..Ways::default() };
    let lies = Ways { flips: 40, ..Ways::default() };
    let dead = Ways { dead: true, ..Ways::default() };
    let look = |seed: u64, ways: Ways, told: bool| {
        let sent = Sent::new(seed, &one);
        // The first original is at the first place.
        let home = sent
            .stores
            .iter()
            .position(|store| store.objects().contains_key(&forged::key(&sent.segments[0], 0)));
        sent.stores[home.expect("it is there")].set(ways.clone());
        let places = sent.places();
        let stored = Stored::find(&places, sent.root, None).expect("it is found");
        let mut out = Vec::new();
        let range = PayloadRange { start: 10, end: Some(20_000) };
        let begun = Instant::now();
        let done = stored.restore_range(range, None, Destination::writer(&mut out), &Context::default());
        let done = done.unwrap_or_else(|e| panic!("{ways:?}: {e}"));
        assert!(out == sent.payload[10..20_000], "{ways:?}");
        assert!(begun.elapsed() < Duration::from_secs(25), "{ways:?}: {:?}", begun.elapsed());
        assert_eq!((done.payload_bytes, done.segments), (19_990, 1));
        assert_eq!(done.trouble.len(), usize::from(told), "{ways:?}: {:?}", done.trouble);
        assert!(done.came.values().sum::<u64>() >= if ways.dead || told { 3 } else { 1 }, "{:?}", done.came);
        let given: u64 = sent.given();
        assert!(given < 7 * sent.shard, "{ways:?}: {given} of {}", sent.shard);
    };
    let look = &look;
    std::thread::scope(|scope| {
        scope.spawn(|| look(51, crawls, true));
        scope.spawn(|| look(52, silent, true));
        scope.spawn(|| look(53, lies, false));
        scope.spawn(|| look(54, dead, true));
        scope.spawn(|| look(55, Ways::default(), false));
    });
}

/// A manifest is believed by its root alone. Too long a one is not read, and one that its maker made wrong is told.
#[test]
fn manifests_are_proved_bounded_and_strict() {
    let sent = Sent::new(56, &HOW);
    let key = |root: &[u8; 32]| format!("{}/manifest", fec_base::names::hex(root));
    let good = sent.stores[0].objects()[&key(&sent.root)].clone();
    let find = |root: [u8; 32]| {
        let places = sent.places();
        Stored::find(&places, root, None).map(drop)
    };
    // Four of five places have something else under its key.
    for (nth, bytes) in [good[..good.len() - 1].to_vec(), vec![0; (16 << 20) + 1], Vec::new(), vec![7; 64]]
        .into_iter()
        .enumerate()
    {
        sent.stores[nth].objects().insert(key(&sent.root), bytes);
    }
    find(sent.root).expect("the fifth has it");
    assert!(!sent.stores[1].calls().gets.contains_key(&key(&sent.root)), "it is too long to be one");
    // The root binds these bytes, which break a rule.
    let good = Manifest::open(&sent.root, &good).expect("it is good");
    let wrong = Manifest { segment_len: 7, ..good };
    let root = wrong.root();
    sent.stores[2].objects().insert(key(&root), wrong.to_bytes());
    let error = find(root).expect_err("it breaks a rule");
    assert!(matches!(error.cause(), Some(StoresError::Manifest(_))), "{error}");
    assert!(matches!(error.class(), Class::Untrue | Class::Refused), "{error}");
}

/// Leftovers of killed runs go with the next run that writes there. Those of a process that may live stay.
#[test]
fn leftovers_of_killed_runs_go() {
    let mut child = std::process::Command::new("true").spawn().expect("a process");
    child.wait().expect("it ends");
    let home = tempfile::tempdir().expect("a folder");
    let (targets, _, root) = to_folders(home.path(), 0o600);
    let places = Places::open(&targets, CallOptions::default(), false).expect("they open");
    let stored = Stored::find(&places, root, None).expect("it is found");
    let segment = stored.manifest().segments[0].root;
    let left = |root: &[u8; 32], pid: u32| {
        let folder = home.path().join("0").join(fec_base::names::hex(root));
        folder.join(format!(".fec-{pid}-0.tmp"))
    };
    let ways: [&dyn Fn(); 2] = [&|| drop(to_folders(home.path(), 0o600)), &|| {
        let repaired = stored.repair(&how(&[0, 1, 2, 3]), &Context::default());
        assert_eq!(repaired.expect("there is nothing to do").made.len(), 0);
    }];
    for way in ways {
        let (dead, alive) = ([left(&segment, child.id()), left(&root, child.id())], left(&segment, 1));
        dead.iter().chain([&alive]).for_each(|path| fs::write(path, b"half").expect("it is written"));
        way();
        assert!(alive.exists() && dead.iter().all(|path| !path.exists()), "{dead:?}");
    }
}

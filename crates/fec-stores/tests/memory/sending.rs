//! Sending to places that refuse, fail or have something else there: what arrived is told, and so is what did not.

use crate::store::{Deletes, Memory, OfKeys, Ways, bytes_of};
use crate::{class, places};
use fec_base::context::{Meter, Progress};
use fec_base::error::{Action, ErrorKind, Place as Where};
use fec_base::io::output::{Destination, Policy};
use fec_core::block::Code;
use fec_keys::age::{Identity, KeyKind, Keys};
use fec_keys::cipher::Cipher;
use fec_stores::StoreError;
use fec_stores::error::StoresError;
use fec_stores::places::{Place, Places};
use fec_stores::send::{Missing, SendOptions, Sent, causes, needed, send};
use fec_stores::stored::Stored;
use fec_stores::target::Target;
use fecfile::error::{Class, Error};
use fecfile::payload::{Options, Payload, Source};
use fecfile::seal::{SealedTo, Sealing};
use fecfile::{Context, PayloadRange};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// 4 + 4 shards, of which 6 have to arrive.
fn options() -> SendOptions {
    SendOptions {
        encode: Options::new(Code::new(4, 4).expect("a code")),
        segment_len: 50_000,
        spool: None,
        uploads: 3,
        crowded: false,
        enough: false,
        permissions: 0o600,
    }
}

fn stores(count: usize) -> Vec<Arc<Memory>> {
    (0..count).map(|nth| Arc::new(Memory::new(nth, 7))).collect()
}

fn sent(places: &Places, payload: &Vec<u8>, options: &SendOptions) -> Result<Sent, Error> {
    send(Source::Payload(payload), b"name", places, options, &Context::default())
}

fn restored(stores: &[Arc<Memory>], sent: &Sent) -> Vec<u8> {
    let (places, mut out) = (places(stores, 0), Vec::new());
    let stored = Stored::find(&places, sent.root, None).expect("it is found");
    let done = stored.restore(None, Destination::writer(&mut out), &Context::default());
    let _ = done.expect("it is restored");
    out
}

/// Everything that went out is counted, and is there: each shard once, at the place of its turn.
#[test]
fn what_arrived_is_counted() {
    let (stores, payload) = (stores(4), bytes_of(1, 120_000));
    let first = sent(&places(&stores, 0), &payload, &options()).expect("it is sent");
    let segments = &first.manifest.segments;
    let lens: Vec<u64> = segments.iter().map(|segment| segment.geometry.payload_len()).collect();
    assert_eq!(lens, [50_000, 50_000, 20_000]);
    assert_eq!((first.created, first.kept, first.weakest, first.class()), (3 * 8 + 4, 0, 8, None));
    let bytes: u64 = segments.iter().map(|segment| 8 * segment.layout().file_len).sum();
    assert_eq!(first.sent_bytes, bytes, "of shards");
    assert_eq!(first.survival.to_string(), "any 2 of 4 domains");
    assert!(stores.iter().all(|store| store.shards().len() == 6), "two of each segment");
    assert_eq!(first.manifest.meta.name.as_deref(), Some(&b"name"[..]));
    assert_eq!(first.manifest.targets[2].url, "s3://bucket/2");
    // Once more: all of it is there.
    let again = sent(&places(&stores, 0), &payload, &options()).expect("it is sent");
    assert_eq!((again.root, again.created, again.kept), (first.root, 0, 3 * 8 + 4));
    assert_eq!((again.sent_bytes, again.weakest), (0, 8));
    // A missing one comes anew.
    let key = stores[1].shards()[0].clone();
    stores[1].objects().remove(&key);
    let third = sent(&places(&stores, 0), &payload, &options()).expect("it is sent");
    assert_eq!((third.created, third.kept), (1, 3 * 8 + 3));
    assert!(stores[1].objects().contains_key(&key) && restored(&stores, &third) == payload);
}

/// A pipe is cut as a payload of known length is, whatever its length: the same shards, under other names.
#[test]
fn pipes_are_cut_like_files() {
    for len in [0, 1, 49_999, 50_000, 50_001, 100_000, 100_001] {
        let (stores, payload) = (stores(4), bytes_of(2, len));
        let known = sent(&places(&stores, 0), &payload, &options()).expect("it is sent");
        let mut pipe = &payload[..];
        let source = Source::Pipe(&mut pipe, Where::Nowhere);
        let piped = send(source, b"name", &places(&stores, 0), &options(), &Context::default());
        let piped = piped.expect("it is sent");
        let lens = |sent: &Sent| -> Vec<u64> {
            sent.manifest.segments.iter().map(|segment| segment.geometry.payload_len()).collect()
        };
        assert_eq!(lens(&piped), lens(&known), "{len}");
        assert_eq!(lens(&piped).len(), len.div_ceil(50_000).max(1), "{len}");
        assert!(restored(&stores, &piped) == payload && restored(&stores, &known) == payload, "{len}");
    }
}

/// Places that take nothing are named, each with its cause and the number of objects that it lacks.
#[test]
fn what_did_not_arrive_is_named() {
    let (stores, payload) = (stores(4), bytes_of(3, 70_000));
    stores[2].set(Ways { read_only: true, ..Ways::default() });
    let places = places(&stores, 0);
    let sent = sent(&places, &payload, &options()).expect("six of eight shards arrived");
    assert_eq!((sent.class(), sent.weakest), (Some(Class::Mendable), 6));
    assert_eq!((sent.created, sent.kept), (2 * 6 + 3, 0));
    let why = StoreError::Denied("403 AccessDenied".into());
    assert!(sent.missing.iter().all(|one| one.place == 2) && sent.missing.iter().any(|one| one.why == why));
    assert_eq!(sent.missing.len(), 5, "two of each segment, and the manifest: {:?}", sent.missing);
    assert!(sent.missing.is_sorted_by_key(|missing| missing.shard) && sent.missing[0].shard.is_none());
    let told = causes(sent.missing.iter(), &places);
    assert_eq!(told, ["s3://bucket/2: not allowed: 403 AccessDenied (5 objects)"]);
    assert!(restored(&stores, &sent) == payload);
    let given_up = Missing { why: StoreError::GivenUp, ..sent.missing[0].clone() };
    let one = Missing { why: StoreError::NotFound, place: 1, ..given_up.clone() };
    let told = causes([given_up, one.clone(), Missing { place: 2, ..one }].iter(), &places);
    assert_eq!(
        told,
        ["s3://bucket/1: it is not there (1 object)", "s3://bucket/2: it is not there (2 objects)"]
    );
}

/// No root is given out for what could not be restored after the loss of half of what may be lost.
#[test]
fn too_few_that_arrive_are_an_error() {
    assert_eq!(needed(&options().encode), 6);
    assert_eq!(needed(&Options::new(Code::new(10, 5).expect("a code"))), 13);
    let payload = bytes_of(4, 70_000);
    for (refuse, landed) in [(2, 4), (3, 2)] {
        let stores = stores(4);
        stores[..refuse].iter().for_each(|store| store.set(Ways { read_only: true, ..Ways::default() }));
        let error = sent(&places(&stores, 0), &payload, &options()).expect_err("too few arrived");
        let Some(StoresError::FewLanded { segment: 0, landed: told, n: 8, needed: 6, causes }) =
            error.cause()
        else {
            panic!("{error}")
        };
        assert_eq!((*told, causes.len(), error.class()), (landed, refuse, Class::Io), "{error}");
        assert!(error.to_string().contains("\n  s3://bucket/0: not allowed: 403 AccessDenied (2 objects)"));
        assert!(stores.iter().all(|store| !store.objects().keys().any(|key| key.ends_with("manifest"))));
    }
}

/// Without a manifest nobody would find the segments.
#[test]
fn a_manifest_has_to_arrive() {
    let (stores, payload) = (stores(4), bytes_of(5, 70_000));
    let refuses = Some((|key: &str| key.ends_with("manifest")) as fn(&str) -> bool);
    stores[1..].iter().for_each(|store| store.set(Ways { refuses, ..Ways::default() }));
    let one = sent(&places(&stores, 0), &payload, &options()).expect("one has it");
    let lacking: Vec<_> = one.missing.iter().map(|missing| (missing.shard, missing.place)).collect();
    assert_eq!(lacking, [(None, 1), (None, 2), (None, 3)]);
    assert_eq!((one.weakest, one.class()), (8, Some(Class::Mendable)));
    assert!(restored(&stores, &one) == payload);
    stores[0].objects().clear();
    stores[0].set(Ways { refuses, ..Ways::default() });
    let error = sent(&places(&stores, 0), &payload, &options()).expect_err("none has it");
    let Some(StoresError::NoManifestLanded(causes)) = error.cause() else { panic!("{error}") };
    assert_eq!((causes.len(), error.class()), (4, Class::Io), "{error}");
    assert_eq!(causes[3], "s3://bucket/3: not allowed: 403 AccessDenied (1 object)");
}

/// The key determines the contents, so what else stands there is replaced. If it comes back, that is told.
#[test]
fn another_object_under_a_key_is_replaced() {
    let (stores, payload) = (stores(4), bytes_of(6, 40_000));
    let first = sent(&places(&stores, 0), &payload, &options()).expect("it is sent");
    let spoil = |bytes: &mut Vec<u8>, way: usize| match way {
        0 => bytes.truncate(7),
        1 => bytes[0] ^= 1,
        2 => bytes.push(0),
        _ => bytes.clear(),
    };
    let manifest = format!("{}/manifest", fec_base::names::hex(&first.root));
    for way in 0..4 {
        let shard = stores[1].shards()[0].clone();
        for key in [&shard, &manifest] {
            spoil(stores[1].objects().get_mut(key).expect("it is there"), way);
        }
        let again = sent(&places(&stores, 0), &payload, &options()).expect("it is sent");
        assert_eq!((again.created, again.kept, again.class()), (2, 10, None), "{way}");
        assert_eq!(stores[1].objects()[&shard].len() as u64, again.manifest.segments[0].layout().file_len);
        assert!(restored(&stores, &again) == payload);
    }
    spoil(stores[1].objects().get_mut(&manifest).expect("it is there"), 1);
    for (deletes, why) in [(Deletes::Ignored, "comes back"), (Deletes::Denied, "403 AccessDenied")] {
        stores[1].set(Ways { deletes, ..Ways::default() });
        let again = sent(&places(&stores, 0), &payload, &options()).expect("three have it");
        assert_eq!((again.missing.len(), again.missing[0].place), (1, 1), "{:?}", again.missing);
        assert!(again.missing[0].why.to_string().contains(why), "{:?}", again.missing);
    }
}

/// A failure that passes costs another attempt, if there may be one.
#[test]
fn failures_that_pass_are_no_losses() {
    let payload = bytes_of(7, 40_000);
    for retries in [1, 0] {
        let stores = stores(4);
        stores[1].set(Ways { fails_first: true, ..Ways::default() });
        let sent = sent(&places(&stores, retries), &payload, &options()).expect("it is sent");
        assert_eq!(sent.missing.is_empty(), retries == 1, "{:?}", sent.missing);
        assert!(restored(&stores, &sent) == payload);
    }
}

/// A place that cannot be used is refused before anything is read or sent.
#[test]
fn places_that_cannot_be_used_are_refused_first() {
    let payload = bytes_of(8, 40_000);
    let at = |texts: &[String]| {
        let store = Arc::new(Memory::new(0, 1));
        let place = |text: &String| Place::new(Target::parse(text).expect("a target"), store.clone());
        (Places::new(texts.iter().map(place).collect(), Default::default()), store.clone())
    };
    let three = |other: &str| vec!["s3://a".to_owned(), "s3://b".to_owned(), other.to_owned()];
    let many: Vec<String> = (0..1025).map(|nth| format!("s3://bucket/{nth}")).collect();
    type Is = fn(&StoresError) -> bool;
    let refused: [(Vec<String>, Is, Class); 6] = [
        (Vec::new(), |why| matches!(why, StoresError::NoPlace), Class::Usage),
        (many, |why| matches!(why, StoresError::ManyPlaces(1024)), Class::Usage),
        (three("https://host/x"), |why| matches!(why, StoresError::ReadOnly), Class::Usage),
        (
            three(&format!("/{}", "long/".repeat(500))),
            |why| matches!(why, StoresError::Unrecordable),
            Class::Usage,
        ),
        (
            vec!["s3://a".to_owned(), "s3://b,domain=s3://a".to_owned()],
            |why| matches!(why, StoresError::Crowded(crowded) if (crowded.domains, crowded.holds) == (1, 8)),
            Class::Usage,
        ),
        (vec!["s3://a".to_owned()], |why| matches!(why, StoresError::Crowded(_)), Class::Usage),
    ];
    for (texts, is, expected) in refused {
        let (places, store) = at(&texts);
        let error = sent(&places, &payload, &options()).expect_err("it is refused");
        assert!(error.cause().is_some_and(is), "{error}");
        assert_eq!((error.class(), store.calls().puts), (expected, 0), "{error}");
    }
    // Whoever knows what a single domain means may have it so; 1024 places are not too many.
    let alone = SendOptions { crowded: true, ..options() };
    let (places, store) = at(&["s3://a".to_owned()]);
    let sent_alone = sent(&places, &payload, &alone).expect("it was asked for");
    assert_eq!(
        (store.shards().len(), sent_alone.survival.to_string().as_str()),
        (8, "any 4 shards, but no whole domain")
    );
}

/// A payload with more segments than a manifest names is refused before it is read.
#[test]
fn more_segments_than_a_manifest_has_room_for_are_refused() {
    let stores = stores(4);
    let error =
        send(Source::Payload(&Endless), b"name", &places(&stores, 0), &options(), &Context::default());
    let error = error.expect_err("it is refused");
    let Some(StoresError::ManySegments { segments: 1_000_000, most }) = error.cause() else {
        panic!("{error}")
    };
    assert!((10_000..1_000_000).contains(most) && error.class() == Class::Usage, "{error}");
    assert!(stores.iter().all(|store| store.calls().puts == 0));
    // A segment that the folder for waiting shards has no room for is refused too; its name there says nothing.
    let large = SendOptions { segment_len: 1 << 60, ..options() };
    let error = send(Source::Payload(&Huge), b"name", &places(&stores, 0), &large, &Context::default());
    let error = error.expect_err("there is no room");
    assert!(matches!(error.kind, ErrorKind::NoRoom { needed, .. } if needed > 1 << 60), "{error}");
    assert!(matches!(error.place, Where::Temporary), "{error}");
}

/// A payload that no disk holds.
struct Huge;

impl Payload for Huge {
    fn size(&self) -> u64 {
        1 << 60
    }

    fn read_at(&self, _: u64, _: &mut [u8]) -> Result<(), Error> {
        panic!("it is read")
    }
}

/// A payload of a million segments, which nobody may read.
struct Endless;

impl Payload for Endless {
    fn size(&self) -> u64 {
        50_000 * 1_000_000
    }

    fn read_at(&self, _: u64, _: &mut [u8]) -> Result<(), Error> {
        panic!("it is read")
    }
}

/// Bytes and words of progress.
#[derive(Default)]
struct Watch(AtomicU64, Mutex<Vec<String>>);

impl Progress for Watch {
    fn begin(&self, action: Action, total: Option<u64>) -> Box<dyn Meter + '_> {
        assert!(action != Action::Send || total == Some(70_000), "{action:?} {total:?}");
        Box::new(Counting(self))
    }
}

struct Counting<'a>(&'a Watch);

impl Meter for Counting<'_> {
    fn add(&self, bytes: u64) {
        self.0.0.fetch_add(bytes, Ordering::Relaxed);
    }

    fn tell(&self, parts: &str) {
        self.0.1.lock().expect("no panic").push(parts.to_owned());
    }
}

/// Progress reaches the length of the payload, and says where how many shards are. Long names are told by their ends.
#[test]
fn progress_tells_how_many_arrived_where() {
    let payload = bytes_of(10, 70_000);
    let store = Arc::new(Memory::new(0, 1));
    let texts = ["s3://a,domain=north", "s3://b,domain=a-very-long-name", "s3://c,domain=twelve-chars"];
    let place = |text: &&str| Place::new(Target::parse(text).expect("a target"), store.clone());
    let places = Places::new(texts.iter().map(place).collect(), Default::default());
    let watch = Watch::default();
    let context = Context::default().with_progress(&watch);
    let sent = send(Source::Payload(&payload), b"name", &places, &options(), &context).expect("it is sent");
    assert_eq!((watch.0.into_inner(), sent.weakest), (70_000, 8));
    let told = watch.1.into_inner().expect("no panic");
    let expected = ["north 5, …ry-long-name 6, twelve-chars 5", "north 6, …ry-long-name 5, twelve-chars 5"];
    assert!(expected.contains(&told.last().expect("it was told").as_str()), "{told:?}");
    assert_eq!(told.len(), 16);
}

/// A stop ends it, and no root is given out.
#[test]
fn a_stop_ends_sending() {
    let (stores, payload) = (stores(4), bytes_of(11, 70_000));
    let places = places(&stores, 0);
    places.cancel.cancel();
    let error = sent(&places, &payload, &options()).expect_err("it was stopped");
    assert_eq!(class(&error).0, Class::Cancelled, "{error}");
    assert!(stores.iter().all(|store| store.objects().is_empty()));
}

/// A range is exactly those bytes, from the segments that have them and from no others.
#[test]
fn a_part_of_what_was_sent_is_that_part() {
    let (stores, payload) = (stores(4), bytes_of(12, 120_000));
    let sent = sent(&places(&stores, 0), &payload, &options()).expect("it is sent");
    let places = places(&stores, 0);
    let stored = Stored::find(&places, sent.root, None).expect("it is found");
    for (start, end) in [(0, Some(1)), (49_999, Some(50_001)), (99_000, None), (0, None), (120_000, None)] {
        let mut out = Vec::new();
        let range = PayloadRange { start, end };
        let done = stored.restore_range(range, None, Destination::writer(&mut out), &Context::default());
        let done = done.unwrap_or_else(|e| panic!("{start}: {e}"));
        let wanted = start as usize..end.unwrap_or(120_000) as usize;
        assert!(out == payload[wanted.clone()], "{wanted:?}");
        let touched = (0..3)
            .filter(|at| wanted.start < 50_000 * (at + 1) && wanted.end > 50_000 * at && !wanted.is_empty());
        assert_eq!((done.payload_bytes, done.segments), (wanted.len() as u64, touched.count() as u64));
        assert_eq!(done.came.values().sum::<u64>() > 0, !wanted.is_empty(), "{wanted:?}: {:?}", done.came);
        assert_eq!(done.trouble, Vec::<String>::new());
    }
    let beyond = PayloadRange { start: 120_001, end: None };
    let mut out = Vec::new();
    let error = stored.restore_range(beyond, None, Destination::writer(&mut out), &Context::default());
    assert_eq!(class(&error.expect_err("it is no part")).0, Class::Usage);
}

/// A sealed payload goes over segments as one: it comes back whole, in part and into a file, to whoever has the key.
#[test]
fn a_sealed_payload_comes_back_from_its_segments() {
    let (stores, payload) = (stores(4), bytes_of(13, 200_000));
    let identity = Identity::generate(KeyKind::X25519).expect("a key");
    let to = SealedTo::Recipients(vec![identity.recipient()]);
    let keys = Keys::Identities(vec![identity]);
    let sealing = Some(Arc::new(Sealing { to, cipher: Cipher::best() }));
    let sealed = SendOptions { encode: Options { sealing, ..options().encode }, ..options() };
    let sent = sent(&places(&stores, 0), &payload, &sealed).expect("it is sent");
    assert_eq!((sent.manifest.segments.len(), sent.manifest.meta.name.is_none()), (5, true));
    let places = places(&stores, 0);
    let stored = Stored::find(&places, sent.root, None).expect("it is found");
    assert!(stored.is_sealed() && stored.name().is_none());
    let opener = stored.opener(Some(&keys)).expect("the key fits").expect("it is sealed");
    assert_eq!(opener.name(), Some(&b"name"[..]));
    let _ = stored.opener(None).map(drop).expect_err("a key is needed");
    let other = Keys::Identities(vec![Identity::generate(KeyKind::X25519).expect("a key")]);
    let _ = stored.opener(Some(&other)).map(drop).expect_err("another key");
    let mut out = Vec::new();
    let done = stored.restore(Some(&opener), Destination::writer(&mut out), &Context::default());
    assert_eq!((done.expect("it opens").payload_bytes, out == payload), (200_000, true));
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().join("out");
    let policy = Policy::new().with_sync(false);
    let done = stored.restore(Some(&opener), Destination::File(&path, policy), &Context::default());
    assert_eq!(done.expect("it opens").payload_bytes, 200_000);
    assert!(std::fs::read(&path).expect("it is there") == payload);
    for (start, end) in [(0, 1), (65_535, 65_537), (140_000, 199_999)] {
        let (mut out, range) = (Vec::new(), PayloadRange { start, end: Some(end) });
        let path = home.path().join(format!("{start}"));
        for to in [Destination::writer(&mut out), Destination::File(&path, policy)] {
            let done = stored.restore_range(range, Some(&opener), to, &Context::default());
            assert_eq!(done.expect("it opens").payload_bytes, end - start);
        }
        assert!(out == payload[start as usize..end as usize], "{start}");
        assert!(std::fs::read(&path).expect("it is there") == out);
    }
}

/// Slow places are given up once enough has arrived, and what is there restores without any of the others.
#[test]
fn slow_places_are_given_up_when_enough_is_there() {
    let (stores, payload) = (stores(5), bytes_of(9, 45_000));
    let all = Some((is_any as OfKeys, Duration::from_secs(60)));
    stores[4].set(Ways { holds: all, ..Ways::default() });
    let enough = SendOptions { enough: true, uploads: 8, ..options() };
    let done = sent(&places(&stores, 0), &payload, &enough).expect("enough arrived");
    assert!(done.missing.iter().all(|missing| missing.place == 4 && missing.why == StoreError::Slow));
    assert_eq!((done.missing.len(), done.weakest, done.class()), (2, 7, None));
    assert_eq!((done.arrived.domains, done.survival.domains), (1, 2));
    for gone in 0..4 {
        let left: Vec<_> = (0..4).filter(|nth| *nth != gone).map(|nth| stores[nth].clone()).collect();
        assert!(restored(&left, &done) == payload);
    }
    // The same again sends what is missing, and nothing else.
    stores[4].set(Ways::default());
    let again = sent(&places(&stores, 0), &payload, &enough).expect("it is sent");
    assert_eq!((again.created, again.missing.len(), again.arrived), (2, 0, again.survival));
    // A place that fails is told as ever.
    stores[3].objects().clear();
    stores[3].set(Ways { dead: true, ..Ways::default() });
    let failed = sent(&places(&stores, 0), &payload, &enough).expect("enough is there");
    assert_eq!(failed.class(), Some(Class::Mendable));
}

/// Enough means that one domain may fail, too: with fewer the slow ones are waited for.
#[test]
fn enough_survives_the_loss_of_a_domain() {
    let (stores, payload) = (stores(2), bytes_of(10, 45_000));
    let late = Some((is_of_the_last as OfKeys, Duration::from_millis(2500)));
    stores.iter().for_each(|store| store.set(Ways { holds: late, ..Ways::default() }));
    let enough = SendOptions { enough: true, uploads: 8, ..options() };
    let done = sent(&places(&stores, 0), &payload, &enough).expect("all arrived");
    assert_eq!((done.missing.len(), done.weakest), (0, 8));
}

fn is_any(_: &str) -> bool {
    true
}

/// Without these two six shards are there, three in each of two domains, and any four restore.
fn is_of_the_last(key: &str) -> bool {
    key.ends_with("006.shard") || key.ends_with("007.shard")
}

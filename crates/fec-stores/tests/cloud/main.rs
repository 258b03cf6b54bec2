//! Services of object stores, tested through the trait alone. scripts/checks/test-stores.sh starts servers and runs
//! this. Without servers each test says that it was skipped.
//!
//! FEC_TEST_S3 is a service's address, FEC_TEST_KIND its kind, FEC_TEST_PROXY a
//! scripts/campaigns/store_proxy.py in front of it, FEC_TEST_HTTP a folder of a web server with the file `object`,
//! FEC_TEST_UNTRUSTED a service over TLS with an untrusted certificate.

mod made_up;

use fec_base::io::ReadAt;
use fec_stores::call::{Call, CallOptions, Cancel, Pace};
use fec_stores::object::{ObjectInfo, Put};
use fec_stores::target::Target;
use fec_stores::{self, ObjectStore, StoreError};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(20);
/// Well below [`PATIENCE`], even on a busy machine.
const SOON: Duration = Duration::from_secs(15);

/// A store, and the limits of its calls.
struct Place {
    store: Arc<dyn ObjectStore>,
    options: CallOptions,
    cancel: Cancel,
    pace: Pace,
}

impl Place {
    fn new(target: &str) -> Place {
        let target = Target::parse(target).expect("a target");
        let options = CallOptions { timeout: PATIENCE, retries: 3, rate: None };
        let store = fec_stores::open(&target, &options, false).expect("a store");
        Place { store, options, cancel: Cancel::default(), pace: Pace::default() }
    }

    fn call(&self) -> Call<'_> {
        Call { options: &self.options, cancel: &self.cancel, pace: &self.pace, permissions: 0o666 }
    }

    fn put(&self, key: &str, bytes: &[u8]) -> Result<Put, StoreError> {
        self.store.put(key, &bytes, bytes.len() as u64, &self.call())
    }

    fn get(&self, key: &str, range: Range<u64>) -> Result<Vec<u8>, StoreError> {
        let mut out = Vec::new();
        let mut sink = |bytes: &[u8]| out.write_all(bytes);
        self.store.get(key, range, &mut sink, &self.call()).map(|()| out)
    }

    fn get_with_retries(&self, key: &str, range: Range<u64>) -> Result<Vec<u8>, StoreError> {
        self.call().retry(|| self.get(key, range.clone()))
    }

    fn head(&self, key: &str) -> Result<ObjectInfo, StoreError> {
        self.store.head(key, &self.call())
    }

    fn keys(&self, prefix: &str) -> Vec<String> {
        let listed = self.store.list(prefix, &self.call()).expect("a list");
        let mut keys: Vec<String> = listed.into_iter().map(|object| object.key).collect();
        keys.sort();
        keys
    }
}

/// The address in an environment variable; without it the test is skipped.
fn address(variable: &str) -> Option<String> {
    let address = std::env::var(variable).ok().filter(|address| !address.is_empty());
    if address.is_none() {
        println!("skipped: {variable} is not set; scripts/checks/test-stores.sh sets it");
    }
    address
}

fn kind() -> String {
    std::env::var("FEC_TEST_KIND").unwrap_or_default()
}

/// A place with its own prefix for each test.
fn s3(variable: &str, test: &str, options: &str) -> Option<Place> {
    let endpoint = address(variable)?;
    // The environment has the address of Azurite.
    Some(Place::new(&match kind().as_str() {
        "azurite" => format!("az://bucket/{test}/x"),
        _ => format!("s3://bucket/{test}/x,endpoint={endpoint}{options}"),
    }))
}

fn bytes_of(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut step = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    let mut out: Vec<u8> = (0..len.div_ceil(8)).flat_map(|_| step()).collect();
    out.truncate(len);
    out
}

/// Sends the proxy a request and returns its answer.
fn tell(proxy: &str, request: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(proxy.trim_start_matches("http://")).expect("the proxy");
    let len = body.len();
    write!(
        stream,
        "{request} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: {len}\r\n\r\n{body}"
    )
    .expect("a request");
    // A proxy that closes its door cuts connections, so this one may be gone already.
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}

fn faults(faults: &str) {
    let proxy = address("FEC_TEST_PROXY").expect("a proxy");
    assert!(tell(&proxy, "PUT /-/faults", faults).starts_with("HTTP/1.1 200"), "{faults}");
}

/// The tests share a single proxy, whose faults hit the next request of any of them.
fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let guard = ALONE.lock().unwrap_or_else(|poison| poison.into_inner());
    if std::env::var_os("FEC_TEST_PROXY").is_some() {
        faults("");
    }
    guard
}

#[test]
fn the_six_verbs() {
    let Some(place) = s3("FEC_TEST_S3", "verbs", "") else { return };
    let small = bytes_of(1, 100_000);
    assert_eq!(place.head("a/small"), Err(StoreError::NotFound));
    assert_eq!(place.get("a/small", 0..1), Err(StoreError::NotFound));
    assert_eq!(place.keys(""), Vec::<String>::new());
    assert_eq!(place.put("a/small", &small), Ok(Put::Created));
    assert_eq!(place.put("a/small", b"other"), Ok(Put::Existed), "nothing is replaced");
    assert_eq!(place.head("a/small").map(|info| (info.key, info.size)), Ok(("a/small".into(), 100_000)));
    for range in [0..1, 0..100_000, 1000..2000, 99_999..100_000, 65_535..65_538, 7..7] {
        let expected = &small[range.start as usize..range.end as usize];
        assert!(place.get("a/small", range.clone()).expect("the range") == expected, "{range:?}");
    }
    for range in [99_990..100_010, 100_000..100_001, 200_000..200_001] {
        let error = place.get("a/small", range.clone());
        // Azurite claims to have the range right behind the end.
        let other = kind() == "azurite" && matches!(error, Err(StoreError::WrongRange(_)));
        assert!(
            other || matches!(error, Err(StoreError::Short(end)) if end == range.end),
            "{range:?}: {error:?}"
        );
    }
    assert_eq!(place.put("a/none", b""), Ok(Put::Created));
    assert_eq!(place.head("a/none").map(|info| info.size), Ok(0));
    for key in ["b/c/d", "ab", "a b/ü+%&="] {
        assert_eq!(place.put(key, b"x"), Ok(Put::Created), "{key}");
        assert_eq!(place.get(key, 0..1).as_deref(), Ok(&b"x"[..]), "{key}");
    }
    assert_eq!(place.keys(""), ["a b/ü+%&=", "a/none", "a/small", "ab", "b/c/d"]);
    assert_eq!(place.keys("a/"), ["a/none", "a/small"]);
    assert_eq!(place.keys("nothing/"), Vec::<String>::new());
    assert_eq!(place.store.delete("a/small", &place.call()), Ok(()));
    assert_eq!(place.store.delete("a/small", &place.call()), Ok(()), "one that is not there is no error");
    assert_eq!(place.head("a/small"), Err(StoreError::NotFound));
    for key in ["", "/a", "a//b", "../a", "a/./b", "a\n"] {
        assert!(matches!(place.head(key), Err(StoreError::Failed(_))), "{key:?}");
    }
    let endpoint = address("FEC_TEST_S3").expect("a service");
    let nowhere = Place::new(&match kind().as_str() {
        "azurite" => "az://no-such-bucket".to_owned(),
        _ => format!("s3://no-such-bucket,endpoint={endpoint}"),
    });
    assert_eq!(nowhere.store.list("", &nowhere.call()), Err(StoreError::NotFound));
    assert_eq!(nowhere.put("x", b"x"), Err(StoreError::NotFound));
}

#[test]
fn large_objects_go_in_parts() {
    let Some(place) = s3("FEC_TEST_S3", "parts", "") else { return };
    for len in [16 * MIB, 16 * MIB + 1, 25 * MIB + 12_345] {
        let key = format!("large-{len}");
        let bytes = bytes_of(len, len as usize);
        let before = place.pace.moved();
        assert_eq!(place.put(&key, &bytes), Ok(Put::Created));
        // Azure also gets a list of the parts.
        let moved = place.pace.moved() - before;
        assert!((len..len + 1000).contains(&moved), "{moved} bytes went up, of {len}");
        assert_eq!(place.put(&key, &bytes), Ok(Put::Existed));
        assert_eq!(place.head(&key).map(|info| info.size), Ok(len));
        assert!(place.get(&key, 0..len).expect("all of it") == bytes);
        let middle = 8 * MIB - 1..8 * MIB + 2;
        let expected = &bytes[middle.start as usize..middle.end as usize];
        assert!(place.get(&key, middle.clone()).expect("across parts") == expected);
    }
}

#[test]
fn long_lists_come_in_pages() {
    let Some(place) = s3("FEC_TEST_S3", "pages", "") else { return };
    let key = |i: usize| format!("{:02}/{i:04}", i % 16);
    thread::scope(|scope| {
        for lane in 0..4 {
            let place = &place;
            scope.spawn(move || {
                for i in (lane..1100).step_by(4) {
                    assert_eq!(place.put(&key(i), b"x"), Ok(Put::Created));
                }
            });
        }
    });
    assert_eq!(place.keys("").len(), 1100);
    assert_eq!(place.keys("03/").len(), 69);
}

#[test]
fn odd_keys_do_not_spoil_a_list() {
    let Some(place) = s3("FEC_TEST_S3", "odd", "") else { return };
    if kind() != "moto" {
        println!("skipped: only moto takes unsigned requests for odd keys");
        return;
    }
    assert_eq!(place.put("good", b"x"), Ok(Put::Created));
    let endpoint = address("FEC_TEST_S3").expect("a service");
    for key in ["a//b", "folder/", "a/../b"] {
        let answer = tell(&endpoint, &format!("PUT /bucket/odd/x/{key}"), "x");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    assert_eq!(place.keys(""), ["good"]);
}

/// Each fault, as a client sees it at first and after a repetition.
#[test]
fn faults_of_reads() {
    let _alone = alone();
    let Some(mut place) = s3("FEC_TEST_PROXY", "reads", "") else { return };
    let bytes = bytes_of(2, 300_000);
    assert_eq!(place.put("object", &bytes), Ok(Put::Created));
    let range = 100_000..250_000;
    let expected = &bytes[100_000..250_000];
    place.options.timeout = Duration::from_millis(400);
    for fault in ["refuse", "reset", "lost", "silent", "500", "503", "429", "cut", "truncate", "stall"] {
        // A new place makes a new connection, which can be refused.
        let new = s3("FEC_TEST_PROXY", "reads", "").expect("a place");
        let place = Place { options: place.options.clone(), ..new };
        faults(&format!("{fault}@1"));
        let start = Instant::now();
        let error = place.get("object", range.clone());
        let is_told = match &error {
            Err(StoreError::Silent(text)) => ["silent", "stall"].contains(&fault) && !text.contains('\n'),
            Err(StoreError::Unavailable(text)) => !text.contains('\n'),
            _ => false,
        };
        assert!(is_told, "{fault}: {error:?}");
        assert!(start.elapsed() < SOON, "{fault} took {:?}", start.elapsed());
        println!("{fault}: {}", error.expect_err("an error"));
        faults(&format!("{fault}@1"));
        assert!(place.get_with_retries("object", range.clone()).expect("the bytes") == expected, "{fault}");
    }
    for fault in ["shorten", "lengthen", "endless", "range"] {
        faults(&format!("{fault}@1"));
        let error = place.get("object", range.clone());
        assert!(matches!(error, Err(StoreError::WrongRange(_))), "{fault}: {error:?}");
        println!("{fault}: {}", error.expect_err("an error"));
        assert!(place.get_with_retries("object", range.clone()).expect("the bytes") == expected, "{fault}");
    }
    for fault in ["whole", "delay"] {
        for range in [0..10, 100_000..250_000, 299_999..300_000] {
            place.options.timeout = PATIENCE;
            faults(&format!("{fault}@1"));
            let expected = &bytes[range.start as usize..range.end as usize];
            assert!(place.get("object", range).expect("the bytes") == expected, "{fault}");
        }
    }
    faults("deny@1");
    assert_eq!(place.get("object", range.clone()), Err(StoreError::NotFound));
    // A store cannot notice these faults; only proofs of the bytes can.
    faults("flip@1");
    let flipped = place.get("object", range.clone()).expect("bytes");
    let differ: u32 = flipped.iter().zip(expected).map(|(a, b)| (a ^ b).count_ones()).sum();
    assert_eq!((flipped.len(), differ), (expected.len(), 1));
    faults("swap@2");
    place.get("object", 0..150_000).expect("bytes");
    let swapped = place.get("object", range.clone()).expect("bytes");
    assert!(swapped.len() == expected.len() && swapped != expected);
}

#[test]
fn faults_of_writes() {
    let _alone = alone();
    let Some(mut place) = s3("FEC_TEST_PROXY", "writes", "") else { return };
    place.options.timeout = Duration::from_millis(700);
    let small = bytes_of(3, 300_000);
    let large = bytes_of(4, 17 << 20);
    // The requests for a large object: look for it, begin, three parts, complete. Each is repeated alone. (If the
    // answer to "begin" is lost, an upload without a known name is left.)
    for (fault, of_large) in [("reset", 2), ("lost", 3), ("silent", 4), ("500", 1), ("503", 5), ("429", 6)] {
        // Services other than Amazon's are asked first whether the object is there.
        for request in [1, 2] {
            let key = format!("{fault}-{request}");
            faults(&format!("{fault}@{request}"));
            let error = place.put(&key, &small);
            assert!(error.as_ref().is_err_and(StoreError::is_worth_retrying), "{key}: {error:?}");
            let put = place.call().retry(|| place.put(&key, &small));
            // The object was put, but the answer was lost.
            let done_before = request == 2 && matches!(fault, "lost" | "silent");
            assert_eq!(put, Ok(if done_before { Put::Existed } else { Put::Created }), "{key}");
            assert!(place.get(&key, 0..300_000).expect("the object") == small, "{key}");
        }
        place.options.timeout = Duration::from_secs(3);
        faults(&format!("{fault}@{of_large}"));
        let key = format!("large-{fault}");
        assert_eq!(place.put(&key, &large), Ok(Put::Created), "{key}");
        assert!(place.get(&key, 0..17 * MIB).expect("the object") == large, "{key}");
        place.options.timeout = Duration::from_millis(700);
    }
    place.options.timeout = Duration::from_secs(3);
    faults("lost@6");
    assert_eq!(place.put("completed", &large), Ok(Put::Created), "its last answer was lost");
    faults("500:1");
    let error = place.store.list("", &place.call());
    assert!(matches!(error, Err(StoreError::Unavailable(_))), "{error:?}");
}

/// scripts/campaigns/store_servers.py checks that no uploads are left.
#[test]
fn what_was_begun_is_dropped() {
    let _alone = alone();
    let Some(mut place) = s3("FEC_TEST_PROXY", "dropped", "") else { return };
    place.options.retries = 0;
    let large = bytes_of(5, 17 << 20);
    faults("silent@4");
    let start = Instant::now();
    let error = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(700));
            place.cancel.cancel();
        });
        place.put("cancelled", &large)
    });
    assert_eq!(error, Err(StoreError::Cancelled));
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
    assert_eq!(place.head("cancelled"), Err(StoreError::Cancelled));
    place.cancel = Cancel::default();
    assert_eq!(place.head("cancelled"), Err(StoreError::NotFound));

    faults("500@4");
    let error = place.put("failed", &large);
    assert!(matches!(error, Err(StoreError::Unavailable(_))), "{error:?}");
    assert_eq!(place.head("failed"), Err(StoreError::NotFound));

    /// A body that cannot be read behind its middle.
    struct Torn;
    impl ReadAt for Torn {
        fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
            if offset >= 8 * MIB { Err(io::Error::other("torn")) } else { Ok(out.len()) }
        }
        fn size(&self) -> io::Result<u64> {
            Ok(17 * MIB)
        }
    }
    let error = place.store.put("torn", &Torn, 17 * MIB, &place.call());
    assert_eq!(error, Err(StoreError::Sink("torn".into())));
    assert_eq!(place.head("torn"), Err(StoreError::NotFound));
}

#[test]
fn calls_end_when_they_are_cancelled() {
    let _alone = alone();
    let Some(place) = s3("FEC_TEST_PROXY", "cancelled", "") else { return };
    assert_eq!(place.put("object", &bytes_of(6, 100_000)), Ok(Put::Created));
    for fault in ["silent@1", "stall@1"] {
        faults(fault);
        let child =
            Place { cancel: place.cancel.child(), ..s3("FEC_TEST_PROXY", "cancelled", "").expect("a place") };
        let cancel = child.cancel.clone();
        let start = Instant::now();
        let ended = thread::scope(|scope| {
            let ended = scope.spawn(|| child.get("object", 0..100_000));
            thread::sleep(Duration::from_millis(300));
            cancel.cancel();
            ended.join().expect("it does not panic")
        });
        assert_eq!(ended, Err(StoreError::Cancelled), "{fault}");
        assert!(start.elapsed() < SOON, "{fault}: {:?}", start.elapsed());
    }
}

#[test]
fn rates_are_held() {
    let Some(mut place) = s3("FEC_TEST_S3", "rates", "") else { return };
    place.options.rate = Some(2 * MIB);
    // A wait for the rate must not count as silence of the service.
    place.options.timeout = Duration::from_millis(500);
    let bytes = bytes_of(7, 3 << 20);
    for what in ["up", "down"] {
        let start = Instant::now();
        match what {
            "up" => assert_eq!(place.put("object", &bytes), Ok(Put::Created)),
            _ => assert!(place.get("object", 0..3 * MIB).expect("bytes") == bytes),
        }
        let took = start.elapsed().as_secs_f64();
        println!("{what} took {took} s");
        assert!(took >= 1.3, "{what} took {took} s");
    }
    assert_eq!(place.pace.moved(), 6 * MIB);
}

#[test]
fn doors_that_are_closed() {
    let _alone = alone();
    let Some(mut place) = s3("FEC_TEST_PROXY", "doors", "") else { return };
    assert_eq!(place.put("object", b"bytes"), Ok(Put::Created));
    let proxy = address("FEC_TEST_PROXY").expect("a proxy");
    tell(&proxy, "DELETE /-/listen", "0.7");
    let error = place.get("object", 0..5);
    assert!(matches!(error, Err(StoreError::Unavailable(_))), "{error:?}");
    let error = place.get("object", 0..5).expect_err("it is closed").to_string();
    assert!(error.contains("refused"), "{error}");
    place.options.retries = 6;
    assert_eq!(place.get_with_retries("object", 0..5).as_deref(), Ok(&b"bytes"[..]));
}

/// This test needs no service.
#[test]
fn nobody_is_there() {
    if is_amazon() {
        return;
    }
    if ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"]
        .into_iter()
        .any(|name| std::env::var_os(name).is_some())
    {
        println!("skipped: a proxy would answer");
        return;
    }
    let mut silent = Vec::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its number").port();
    thread::spawn(move || {
        // Connections are accepted and never answered.
        for stream in listener.incoming() {
            silent.push(stream);
        }
    });
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its number").port();
    for (endpoint, says) in [
        (format!("http://127.0.0.1:{port}"), "no answer for 0.3 s"),
        (format!("http://127.0.0.1:{closed}"), "refused"),
        ("http://no-such-host.invalid".to_owned(), "cannot connect"),
        (format!("https://127.0.0.1:{port}"), "no answer for 0.3 s"),
        // Packets to this address are lost, or there is no route to it.
        ("http://192.0.2.1".to_owned(), ""),
    ] {
        let mut place = Place::new(&format!("s3://bucket,endpoint={endpoint}"));
        place.options.timeout = Duration::from_millis(300);
        let start = Instant::now();
        let error = place.get("object", 0..1);
        // A name lookup may take longer than the call's timeout.
        let known = |text: &str| text.contains(says) || endpoint.contains("invalid");
        let is_told = match &error {
            Err(StoreError::Silent(text)) => says.is_empty() || known(text),
            Err(StoreError::Unavailable(text)) => known(text),
            _ => false,
        };
        assert!(is_told, "{endpoint}: {error:?}");
        assert!(start.elapsed() < SOON, "{endpoint}: {:?}", start.elapsed());
        println!("{endpoint}: {}", error.expect_err("an error"));
    }
}

#[test]
fn credentials() {
    if kind() != "versitygw" || std::env::var_os("AWS_SHARED_CREDENTIALS_FILE").is_none() {
        println!("skipped: only versitygw looks at signatures");
        return;
    }
    for (profile, says) in [("wrong", "SignatureDoesNotMatch"), ("nobody", "set AWS_ACCESS_KEY_ID")] {
        let place = s3("FEC_TEST_S3", "credentials", &format!(",profile={profile}")).expect("a place");
        for error in [place.put("x", b"x").err(), place.store.list("", &place.call()).err()] {
            println!("{profile}: {error:?}");
            let Some(StoreError::Denied(text)) = error else { panic!("{profile}: {error:?}") };
            assert!(text.contains(says) && !text.contains("testkey"), "{text}");
        }
    }
    let place = s3("FEC_TEST_S3", "credentials", ",profile=right").expect("a place");
    assert_eq!(place.put("x", b"x"), Ok(Put::Created));
    let target = Target::parse("s3://bucket,profile=none").expect("a target");
    let error = fec_stores::open(&target, &CallOptions::default(), false).err();
    assert!(matches!(error, Some(StoreError::Denied(_))), "{error:?}");
}

#[test]
fn folders_of_web_servers_are_for_reading() {
    let Some(url) = address("FEC_TEST_HTTP") else { return };
    let place = Place::new(&url);
    let size = place.head("object").expect("the object").size;
    let all = place.get("object", 0..size).expect("all of it");
    assert_eq!(place.get("object", 1000..2000).expect("a range"), all[1000..2000]);
    assert_eq!(place.head("none"), Err(StoreError::NotFound));
    assert_eq!(place.get("none", 0..1), Err(StoreError::NotFound));
    assert!(matches!(
        place.get("object", size..size + 1),
        Err(StoreError::WrongRange(_) | StoreError::Failed(_))
    ));
    let unsupported = |error| assert!(matches!(error, Some(StoreError::Unsupported(_))), "{error:?}");
    unsupported(place.store.list("", &place.call()).err());
    unsupported(place.put("x", b"x").err());
    unsupported(place.store.delete("x", &place.call()).err());
}

#[test]
fn certificates_that_nobody_vouches_for() {
    let Some(endpoint) = address("FEC_TEST_UNTRUSTED") else { return };
    let place = Place::new(&format!("s3://bucket,endpoint={endpoint}"));
    let error = place.head("object");
    assert!(matches!(&error, Err(StoreError::Failed(text)) if text.starts_with("TLS")), "{error:?}");
    println!("{}", error.expect_err("an error"));
}

/// Tells whether calls would ask an Amazon machine for its credentials first.
fn is_amazon() -> bool {
    let maker = std::fs::read_to_string("/sys/class/dmi/id/sys_vendor").unwrap_or_default();
    let is_amazon = maker.trim() == "Amazon EC2" && std::env::var_os("AWS_ACCESS_KEY_ID").is_none();
    if is_amazon {
        println!("skipped: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to anything");
    }
    is_amazon
}

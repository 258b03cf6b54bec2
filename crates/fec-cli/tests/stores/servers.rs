//! Servers with answers that no store should give.

use crate::common::{self, Arena, expect, payload, text};
use crate::{PLACES, Sent};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A server that answers each request with a status, headers and a body. `answer` gets the first line of the request.
fn serve(answer: impl Fn(&str) -> (u16, String, Vec<u8>) + Send + Sync + 'static) -> String {
    serve_heads(move |head| answer(&head[0]))
}

/// As [`serve`], with an `answer` that gets all lines of the head of a request.
pub(crate) fn serve_heads(
    answer: impl Fn(&[String]) -> (u16, String, Vec<u8>) + Send + Sync + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, answer) = (stream.unwrap(), answer.clone());
            std::thread::spawn(move || {
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let mut head = vec![lines.next().and_then(Result::ok).unwrap_or_default()];
                head.extend(lines.map_while(Result::ok).take_while(|line| !line.is_empty()));
                let (status, headers, body) = answer(&head);
                let len = body.len();
                let is_head = head[0].starts_with("HEAD");
                let head = format!(
                    "HTTP/1.1 {status} X\r\nConnection: close\r\n{headers}Content-Length: {len}\r\n\r\n"
                );
                // A client that has enough may be gone.
                let _ = stream.write_all(head.as_bytes());
                if !is_head {
                    let _ = stream.write_all(&body);
                }
            });
        }
    });
    address
}

/// Sets credentials that nobody checks.
fn with_keys(command: &mut Command) -> &mut Command {
    command.env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", "hunter2")
}

#[test]
fn what_cannot_be_in_a_request_is_told_when_a_place_is_opened() {
    let arena = Arena::new();
    arena.write("in", b"bytes");
    let root = "00".repeat(32);
    let check = |place: &str, variables: &[(&str, &str)], exit: i32, said: &str| {
        for args in [
            &["encode", "in", "-k", "1", "-m", "1", "--to", place, "--to", "p0"][..],
            &["verify", "--root", &root, "--from", place],
            &["decode", "--root", &root, "--from", place, "-o", "out"],
        ] {
            if args[0] == "encode" && place.starts_with("http") {
                continue;
            }
            let mut command = arena.fec(args.iter().copied());
            with_keys(&mut command).envs(variables.iter().copied());
            let output = command.output().unwrap();
            let stderr = text(&output.stderr);
            assert_eq!(output.status.code(), Some(exit), "{place} {variables:?}: {stderr}");
            let bare = place.split(',').next().unwrap();
            assert!(stderr.contains(bare) && stderr.contains(said), "{place} {variables:?}: {stderr}");
            assert!(!stderr.contains("hunter2") && !stderr.contains("panicked"), "{stderr}");
        }
    };
    for endpoint in [
        "localhost:9000",
        "x",
        "http://[::1",
        "http://127.0.0.1:99999",
        "http://é.example",
        "http://{x}",
        "https:/x",
    ] {
        for scheme in ["s3", "gs", "az"] {
            check(
                &format!("{scheme}://bucket/a,endpoint={endpoint}"),
                &[("AZURE_STORAGE_ACCOUNT_NAME", "a")],
                2,
                "endpoint",
            );
        }
    }
    check("s3://bucket/a,region=a b", &[], 2, "region");
    check("s3://{b}/a", &[], 2, "bucket");
    check("https://host:99999/x", &[], 2, "address");
    for (variable, value) in [
        ("AWS_SESSION_TOKEN", "hunter2\n"),
        ("AWS_ACCESS_KEY_ID", "hunter2\nx"),
        ("AWS_REGION", "a b\n"),
        ("AWS_ENDPOINT_URL", "localhost:9000"),
    ] {
        check("s3://bucket/a", &[(variable, value)], 4, variable);
    }
    check("gs://bucket/a", &[("GOOGLE_BEARER_TOKEN", "hunter2\n")], 4, "GOOGLE_BEARER_TOKEN");
    let azure = [("AZURE_STORAGE_ACCOUNT_NAME", "a"), ("AZURE_STORAGE_TOKEN", "hunter2\n")];
    check("az://bucket/a", &azure, 4, "AZURE_STORAGE_TOKEN");
}

/// Such credentials cannot be checked before. The crate that signs requests panics, which ends only the request.
#[test]
fn credentials_that_a_service_tells_and_that_are_none_end_nothing_else() {
    let sent = Sent::new(&[]);
    let teller = serve(|_| {
        let body = r#"{"AccessKeyId":"a","SecretAccessKey":"b","Token":"hunter2\n","Expiration":"2099-01-01T00:00:00Z"}"#;
        (200, String::new(), body.into())
    });
    sent.arena.write("token", b"t");
    let verify = |places: &[&str]| {
        let from = places.iter().flat_map(|place| ["--from", place]);
        let args = ["verify", "--root", &sent.root, "-vv"].into_iter().chain(from);
        let mut command = sent.arena.fec(args);
        command.env_remove("AWS_ACCESS_KEY_ID").env("AWS_CONTAINER_CREDENTIALS_FULL_URI", &teller);
        command.env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", sent.arena.path("token"));
        command.output().unwrap()
    };
    let place = "s3://bucket/x,endpoint=http://127.0.0.1:9";
    for (places, exit) in [(&[place][..], 4), (&["p0", "p1", "p2", "p3", "p4", place], 1)] {
        let output = verify(places);
        let told = text(&output.stdout) + &text(&output.stderr);
        expect(&output, exit);
        assert!(told.contains("is something wrong with the endpoint"), "{told}");
        assert!(!told.contains("hunter2") && !told.contains("panicked"), "{told}");
    }
}

#[test]
fn lists_that_never_end_are_left() {
    let sent = Sent::new(&[]);
    for is_same in [true, false] {
        let asked = Arc::new(AtomicU64::new(0));
        let pages = asked.clone();
        let server = serve(move |request| {
            if !request.contains("list-type") {
                return (404, String::new(), Vec::new());
            }
            let page = pages.fetch_add(1, Ordering::Relaxed);
            let next = if is_same { 7 } else { page };
            let page = format!(
                "<ListBucketResult><IsTruncated>true</IsTruncated>\
                 <NextContinuationToken>{next}</NextContinuationToken></ListBucketResult>"
            );
            (200, String::new(), page.into())
        });
        let place = format!("s3://bucket/x,endpoint={server}");
        let places = ["p0", "p1", "p2", "p3", "p4", &place];
        let from = places.iter().flat_map(|place| ["--from", place]);
        let mut command =
            sent.arena.fec(["verify", "--root", &sent.root, "--timeout", "5s"].into_iter().chain(from));
        let started = Instant::now();
        let output = with_keys(&mut command).output().unwrap();
        expect(&output, 1);
        assert!(text(&output.stdout).contains("does not come to an end"), "{}", text(&output.stdout));
        assert!(started.elapsed() < Duration::from_secs(40), "{:?}", started.elapsed());
        let (asked, most) = (asked.load(Ordering::Relaxed), if is_same { 2 } else { 200 });
        // The lists of segments are read one after the other, until the server is given up.
        assert!(asked <= 4 * most, "{asked} pages");
    }
}

/// Exit code 3 means loss. Data that cannot be asked for, or cannot be kept here, may exist.
#[test]
fn what_cannot_be_asked_is_not_said_to_be_lost() {
    let sent = Sent::new(&[]);
    // The spool takes no file of that size.
    let from = PLACES.map(|place| format!("--from {place}")).join(" ");
    for command in ["decode -o -", "repair --now"] {
        if command.starts_with("repair") {
            fs::remove_file(&sent.shards("p0")[0]).unwrap();
        }
        let fec = common::fec_words();
        let line = format!("ulimit -f 16; exec {fec} {command} --root {} {from}", sent.root);
        let output =
            Command::new("sh").args(["-c", &line]).current_dir(sent.arena.path(".")).output().unwrap();
        expect(&output, 4);
        assert!(text(&output.stderr).contains("temporary file"), "{}", text(&output.stderr));
    }
    // Places that are files or do not exist, alone and where the others have too little.
    fs::write(sent.arena.path("file"), b"").unwrap();
    let refusing = serve(|_| {
        let error =
            "<Error><Code>AuthorizationHeaderMalformed</Code><Message>the region is wrong</Message></Error>";
        (400, String::new(), error.into())
    });
    let wrong_region = format!("s3://bucket/x,endpoint={refusing}");
    let no_bucket = serve(|_| (404, String::new(), "<Error><Code>NoSuchBucket</Code></Error>".into()));
    let no_bucket = format!("s3://bucket/y,endpoint={no_bucket}");
    let path = sent.arena.path(".");
    let root = sent.root.clone();
    let web = serve(move |request| {
        let mut words = request.split(' ');
        let (method, key) = (words.next().unwrap(), words.next().unwrap());
        if method == "HEAD" && key.ends_with(".shard") {
            return (503, String::new(), Vec::new());
        }
        match fs::read(path.join("p4").join(key.trim_start_matches("/web/"))) {
            Ok(bytes) if key.contains(&root) => (200, String::new(), bytes),
            _ => (404, String::new(), Vec::new()),
        }
    });
    let web = format!("{web}/web");
    for (place, said) in [
        ("file", "it is no folder"),
        ("nowhere", "the place is not there"),
        (&wrong_region, "the region is wrong"),
        (&no_bucket, "the place is not there"),
        (&web, "503"),
    ] {
        for places in [&[place][..], &["p0", place]] {
            for command in
                [&["decode", "-o", "never"][..], &["decode", "-o", "-", "--range", "0..100000"], &["verify"]]
            {
                if command.contains(&"--range") && place != "file" {
                    continue;
                }
                let from = places.iter().flat_map(|place| ["--from", place]);
                let args =
                    command.iter().copied().chain(["--root", &sent.root, "--retries", "0"]).chain(from);
                let output = with_keys(&mut sent.arena.fec(args)).output().unwrap();
                let told = text(&output.stdout) + &text(&output.stderr);
                assert_eq!(output.status.code(), Some(4), "{places:?} {command:?}: {told}");
                assert!(
                    told.lines().any(|line| line.contains(place) && line.contains(said)),
                    "{places:?} {command:?}: {told}"
                );
            }
        }
    }
    expect(&sent.fec_at("decode", &["p0"], &["-o", "never"]), 3);
}

/// A store keeps and bills the parts of an unfinished object. The run drops them, even if it has only a moment left.
#[test]
fn a_signal_leaves_no_parts_of_objects_at_a_store() {
    let arena = Arena::new();
    let (begun, dropped) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (is_begun, is_dropped) = (begun.clone(), dropped.clone());
    let server = serve(move |request| {
        if request.starts_with("POST") {
            let made =
                "<InitiateMultipartUploadResult><UploadId>7</UploadId></InitiateMultipartUploadResult>";
            return (200, String::new(), made.into());
        }
        if request.starts_with("PUT") && request.contains("uploadId") {
            is_begun.store(true, Ordering::Relaxed);
            std::thread::sleep(Duration::from_secs(30));
        }
        if request.starts_with("DELETE") && request.contains("uploadId=7") {
            std::thread::sleep(Duration::from_secs(1));
            is_dropped.store(true, Ordering::Relaxed);
            return (204, String::new(), Vec::new());
        }
        let list = "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>";
        if request.contains("list-type") {
            (200, String::new(), list.into())
        } else {
            (404, String::new(), Vec::new())
        }
    });
    let place = format!("s3://bucket/x,endpoint={server}");
    let mut command = arena.fec([
        "encode",
        "-",
        "-k",
        "1",
        "-m",
        "1",
        "--segment-size",
        "8M",
        "--to",
        "p0",
        "--to",
        &place,
    ]);
    with_keys(&mut command).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The run waits for the rest of the second segment while it sends the first.
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&payload(5, 9 << 20)).unwrap();
    common::wait_until(|| begun.load(Ordering::Relaxed));
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), common::signals()[0]).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(dropped.load(Ordering::Relaxed), "what was sent of an object stays");
    arena.nothing_temporary();
}

/// With --enough a service that takes its time with uploads is given up; the same command sends what it lacks.
#[test]
fn enough_does_not_wait_for_a_slow_service() {
    let arena = Arena::new();
    arena.write("in", &payload(3, 300_000));
    let slow = serve(|request| {
        if request.starts_with("PUT") {
            std::thread::sleep(Duration::from_secs(60));
        }
        let body = if request.contains("list-type=2") { "<ListBucketResult/>" } else { "" };
        (if body.is_empty() { 404 } else { 200 }, String::new(), body.into())
    });
    let slow = format!("s3://bucket/x,endpoint={slow}");
    let to = PLACES[..4].iter().copied().chain([slow.as_str()]).flat_map(|place| ["--to", place]);
    let args: Vec<&str> = ["encode", "in", "-k", "6", "-m", "4", "--enough"].into_iter().chain(to).collect();
    let started = Instant::now();
    let output = with_keys(&mut arena.fec(args.iter().copied())).output().unwrap();
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    expect(&output, 0);
    let said = text(&output.stderr);
    assert!(said.contains("3 objects did not arrive; at least 8 of 10 shards"), "{said}");
    assert!(said.contains(": it was too slow to wait for, and enough had arrived\n"), "{said}");
    assert!(said.contains("as it is, this survives the loss of any 1 of 5 domains\n"), "{said}");
    let root = common::root(&output);
    let from = PLACES[1..4].iter().flat_map(|place| ["--from", place]);
    arena.expect(["decode", "--root", &root, "-o", "back", "-q"].into_iter().chain(from), 0);
    assert!(arena.read("back") == arena.read("in"));
    let quiet = args.iter().copied().chain(["-q"]);
    let quiet = with_keys(&mut arena.fec(quiet)).output().unwrap();
    expect(&quiet, 0);
    assert_eq!(text(&quiet.stderr), "");
}

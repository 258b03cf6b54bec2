//! Streams that end early, are ended by somebody who must not, begin anew, or do not begin.

use super::hostile::Forger;
use super::network::{Listening, send_to};
use super::*;
use common::signal;
use rustix::process::Signal;
use std::io::Read;
use std::net::UdpSocket;
use std::process::Child;
use std::thread::sleep;

const MS: Duration = Duration::from_millis(1);

/// A sender that was given some bytes and waits for more.
fn sender(arena: &Arena, to: &str, options: &[&str], bytes: &[u8]) -> Child {
    let args = ["encode", "--stream", "-o", to, "-q"].into_iter().chain(options.iter().copied());
    let mut child = arena.spawn(args);
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), bytes).unwrap();
    child
}

/// A socket that sends to a receiver.
fn socket_to(receiver: &Listening) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(receiver.address.strip_prefix("udp://").unwrap()).unwrap();
    socket
}

/// Packets of stream 7 with these numbers. The payload of each is its number.
fn numbered(forger: &Forger, seqs: std::ops::Range<u64>) -> Vec<Vec<u8>> {
    seqs.map(|seq| forger.source(seq, format!("{seq} ").as_bytes())).collect()
}

const FORGER: Forger = Forger { profile: 1, window: 6000, payload: 64, block: 240 };

/// Ending the sender by a signal ends its stream. The receiver knows that it has everything and waits for no silence.
#[test]
fn a_signal_ends_the_stream() {
    let arena = Arena::new();
    let bytes = payload(1, 100_000);
    for end in [Signal::INT, Signal::TERM] {
        let mut receiver = Listening::start(&arena, "udp://127.0.0.1:0", &["--idle-ms", "0"]);
        let mut child = sender(&arena, &receiver.address, &[], &bytes);
        assert!(receiver.payload(bytes.len()) == bytes);
        signal(&child, end);
        let output = receiver.end();
        expect(&output, 0);
        assert!(output.stdout.is_empty());
        assert_eq!(child.wait().unwrap().code(), Some(130));
    }
    // The same in a pipe.
    let mut child = sender(&arena, "-", &[], &bytes);
    let stdin = child.stdin.take();
    let mut stream = Vec::new();
    let mut stdout = child.stdout.take().unwrap();
    // The last packet is not full, and comes after a moment without input.
    while stream.len() < 2 || frames(&stream).iter().filter(|frame| kind(frame) == 0).count() < 75 {
        let mut piece = vec![0; 65_536];
        let len = stdout.read(&mut piece).unwrap();
        assert!(len > 0);
        stream.extend_from_slice(&piece[..len]);
    }
    signal(&child, Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    drop(stdin);
    stdout.read_to_end(&mut stream).unwrap();
    let back = receive(&arena, &[], &stream);
    expect(&back, 0);
    assert!(back.stdout == bytes);
}

/// At any pace, the packets sent so far are whole, and the sender does not send the rest of its input.
#[test]
fn a_signal_ends_a_slow_stream_at_once() {
    let arena = Arena::new();
    let bytes = payload(2, 500_000);
    for (end, mbps, rate) in
        [(Signal::INT, "0.1", "1/6"), (Signal::TERM, "0.02", "2/1"), (Signal::INT, "1", "1/6")]
    {
        let mut receiver = Listening::start(&arena, "udp://127.0.0.1:0", &["--idle-ms", "0"]);
        let child = sender(&arena, &receiver.address, &["--mbps", mbps, "--rate", rate], &bytes);
        let first = receiver.payload(1000);
        let ended = Instant::now();
        signal(&child, end);
        // Sending the rest would take 40 s, minutes, and 4 s.
        expect(&finish(child, b"", LIMIT).expect("it does not send the rest"), 130);
        println!("{mbps} Mb/s: {:?}", ended.elapsed());
        let output = receiver.end();
        expect(&output, 0);
        let got = [first, output.stdout].concat();
        assert!(got.len() < 300_000 && bytes.starts_with(&got), "{} bytes", got.len());
    }
}

/// False end marks: packets after them still come out, and the user is told.
#[test]
fn a_forged_end_cuts_nothing_silently() {
    let arena = Arena::new();
    for (times, at) in [(1, 100), (1, 3000), (1, 40), (8, 100), (8, 150), (8, 3000)] {
        let receiver = Listening::start(&arena, "udp://127.0.0.1:0", &["--idle-ms", "700"]);
        let socket = socket_to(&receiver);
        let send = |packets: &[Vec<u8>]| packets.iter().for_each(|p| assert!(socket.send(p).is_ok()));
        receiver.while_stopped(|| {
            send(&numbered(&FORGER, 0..100));
            send(&vec![FORGER.mark(at, true); times]);
            send(&numbered(&FORGER, 100..200));
            send(&vec![FORGER.mark(200, true); 4]);
        });
        let output = receiver.end();
        let all: String = (0..200).map(|seq| format!("{seq} ")).collect();
        assert!(output.stdout == all.as_bytes(), "{times} at {at}: {}", text(&output.stderr));
        expect(&output, 3);
        assert!(text(&output.stderr).contains("contradict"), "{}", text(&output.stderr));
    }
    // A single mark during a pause of the stream is no end.
    let receiver = Listening::start(&arena, "udp://127.0.0.1:0", &["--idle-ms", "30000"]);
    let socket = socket_to(&receiver);
    numbered(&FORGER, 0..10).iter().for_each(|p| assert!(socket.send(p).is_ok()));
    socket.send(&FORGER.mark(10, true)).unwrap();
    sleep(1000 * MS);
    numbered(&FORGER, 10..20).iter().for_each(|p| assert!(socket.send(p).is_ok()));
    (0..3).for_each(|_| assert!(socket.send(&FORGER.mark(20, true)).is_ok()));
    let output = receiver.end();
    expect(&output, 3);
    assert!(output.stdout.ends_with(b"18 19 "));
}

/// Two contents under one number never make a whole stream.
#[test]
fn another_run_under_the_same_number_is_noticed() {
    let arena = Arena::new();
    for options in [&[][..], &["--window", "5000"]] {
        let mut receiver = Listening::start(&arena, "udp://127.0.0.1:0", &["--idle-ms", "700"]);
        let mut first = sender(&arena, &receiver.address, &["--stream-id", "77"], &payload(1, 50_000));
        receiver.payload(1000);
        receiver.while_stopped(|| {
            signal(&first, Signal::KILL);
            first.wait().unwrap();
            let args = [&["--stream-id", "77", "-q"], options].concat();
            send_to(&arena, &receiver.address, &args, &payload(2, 100_000));
        });
        let output = receiver.end();
        expect(&output, 3);
        assert!(text(&output.stderr).contains("contradict"), "{}", text(&output.stderr));
    }
    // The same in a pipe.
    let streams = [1, 2].map(|seed| send(&arena, &["--stream-id", "77"], &payload(seed, 50_000))).concat();
    expect(&receive(&arena, &[], &streams), 3);
}

/// Streams that follow each other go into one output, whatever ended the stream before.
#[test]
fn a_sender_that_begins_anew_is_followed() {
    let arena = Arena::new();
    let bytes = [1, 2, 3, 4].map(|seed| payload(seed, 60_000));
    let options = ["--follow", "--json", "--stats", "json"];
    let mut receiver = Listening::start(&arena, "udp://127.0.0.1:0", &options);
    // The first sender reaches its end.
    send_to(&arena, &receiver.address, &["-q"], &bytes[0]);
    let mut said = receiver.says(OVER);
    // The second sender is ended by a signal.
    let mut second = sender(&arena, &receiver.address, &[], &bytes[1]);
    let mut out = receiver.payload(120_000);
    signal(&second, Signal::INT);
    second.wait().unwrap();
    said += &receiver.says(OVER);
    // The third sender dies, and another takes its place at once.
    let mut third = sender(&arena, &receiver.address, &[], &bytes[2]);
    out.extend(receiver.payload(60_000));
    signal(&third, Signal::KILL);
    third.wait().unwrap();
    send_to(&arena, &receiver.address, &["-q"], &bytes[3]);
    said += &receiver.says(OVER);
    said += &receiver.says(OVER);
    signal(&receiver.child, Signal::INT);
    let output = receiver.end();
    expect(&output, 3);
    out.extend(&output.stdout);
    assert!(out == bytes.concat(), "all of what was sent comes out, in order");
    let report = report(&output);
    assert_eq!((&report["streams_before"], &report["not_whole_before"]), (&4.into(), &1.into()));
    let over: Vec<Value> = said
        .lines()
        .filter(|line| line.contains(OVER))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(over.iter().map(|line| line["whole"] == true).collect::<Vec<_>>(), [true, true, false, true]);
}

/// A part of the line about a stream that is over.
const OVER: &str = r#""event":"over""#;

#[test]
fn streams_that_are_followed_are_whole_if_all_are() {
    let arena = Arena::new();
    let receiver = Listening::start(&arena, "udp://127.0.0.1:0", &["--follow", "--wait-ms", "700"]);
    receiver.while_stopped(|| {
        for seed in 0..3 {
            send_to(&arena, &receiver.address, &["-q"], &payload(seed, 20_000));
        }
    });
    let output = receiver.end();
    expect(&output, 0);
    assert!(output.stdout == [0, 1, 2].map(|seed| payload(seed, 20_000)).concat());
    // An interrupted receiver keeps what came.
    let mut receiver = Listening::start(&arena, "udp://127.0.0.1:0", &["--follow", "-o", "kept"]);
    send_to(&arena, &receiver.address, &["-q"], &payload(9, 50_000));
    receiver.says("the next one is waited for");
    signal(&receiver.child, Signal::INT);
    expect(&receiver.end(), 0);
    assert!(arena.read("kept") == payload(9, 50_000));
    let said = arena.refuses(["decode", "--follow", "--stream", "-"], 2);
    assert!(said.contains("udp://"), "{said}");
}

/// A stream of which only the end is heard is not whole, whether another follows or none.
#[test]
fn an_end_alone_is_no_stream() {
    let arena = Arena::new();
    let receiver = Listening::start(&arena, "udp://127.0.0.1:0", &["--json", "--stats", "json"]);
    let socket = socket_to(&receiver);
    (0..3).for_each(|_| assert!(socket.send(&FORGER.mark(5000, true)).is_ok()));
    let output = receiver.end();
    expect(&output, 3);
    let said = report(&output);
    let told = ["whole", "ended", "joined_at", "packets", "lost"].map(|name| said[name].clone());
    assert_eq!(serde_json::json!(told), serde_json::json!([false, true, 5000, 0, 0]));
    let options = ["--follow", "--wait-ms", "1000", "--stats", "json"];
    let mut receiver = Listening::start(&arena, "udp://127.0.0.1:0", &options);
    let socket = socket_to(&receiver);
    (0..3).for_each(|_| assert!(socket.send(&FORGER.mark(5000, true)).is_ok()));
    assert!(receiver.says(OVER).contains(r#""whole":false"#));
    expect(&receiver.end(), 3);
    // Marks that overtake all packets cut nothing.
    let receiver = Listening::start(&arena, "udp://127.0.0.1:0", &[]);
    let socket = socket_to(&receiver);
    receiver.while_stopped(|| {
        (0..3).for_each(|_| assert!(socket.send(&FORGER.mark(500, true)).is_ok()));
        numbered(&FORGER, 0..500).iter().for_each(|p| assert!(socket.send(p).is_ok()));
    });
    let output = receiver.end();
    expect(&output, 0);
    assert!(output.stdout.starts_with(b"0 1 2 ") && output.stdout.ends_with(b"498 499 "));
}

#[test]
fn a_stream_that_does_not_begin_is_not_waited_for() {
    let arena = Arena::new();
    let started = Instant::now();
    let said = arena.refuses(["decode", "udp://127.0.0.1:0", "--wait-ms", "300"], 3);
    assert!(said.contains("no packet of a stream came"), "{said}");
    assert!(started.elapsed() >= 300 * MS, "{:?}", started.elapsed());
    let mut receiver = Listening::start(&arena, "udp://127.0.0.1:0", &["--wait-ms", "2500"]);
    let mut child = sender(&arena, &receiver.address, &[], &payload(1, 10_000));
    receiver.payload(10_000);
    sleep(3000 * MS);
    signal(&child, Signal::INT);
    child.wait().unwrap();
    expect(&receiver.end(), 0);
}

/// A stream that was silent for longer than --idle-ms is received again.
#[test]
fn a_stream_that_comes_back_is_followed() {
    let arena = Arena::new();
    let options = ["--follow", "--idle-ms", "300", "--stats", "json"];
    let mut receiver = Listening::start(&arena, "udp://127.0.0.1:0", &options);
    let socket = socket_to(&receiver);
    for seqs in [0..20, 30..60] {
        receiver.while_stopped(|| {
            numbered(&FORGER, seqs).iter().for_each(|packet| assert!(socket.send(packet).is_ok()));
        });
        receiver.says(OVER);
    }
    signal(&receiver.child, Signal::INT);
    let output = receiver.end();
    expect(&output, 3);
    let expected: String = (0..20).chain(30..60).map(|seq| format!("{seq} ")).collect();
    assert_eq!(text(&output.stdout), expected);
}

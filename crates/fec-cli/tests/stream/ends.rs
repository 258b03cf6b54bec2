//! Streams that end early, are told to end by whom they should not, begin anew, or do not begin.

use super::hostile::Forger;
use super::network::{Listening, send_to};
use super::*;
use rustix::process::{Pid, Signal, kill_process};
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

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// A socket that sends to a receiver.
fn socket_to(receiver: &Listening) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(receiver.address.strip_prefix("udp://").unwrap()).unwrap();
    socket
}

/// Packets of stream 7 with these numbers, each with its number as payload.
fn numbered(forger: &Forger, seqs: std::ops::Range<u64>) -> Vec<Vec<u8>> {
    seqs.map(|seq| forger.source(seq, format!("{seq} ").as_bytes())).collect()
}

const FORGER: Forger = Forger { profile: 1, window: 6000, payload: 64, block: 240 };

/// Whoever ends the sender by a signal ends its stream, and the receiver knows at once that it has everything.
#[test]
fn a_signal_ends_the_stream() {
    let arena = Arena::new();
    let bytes = payload(1, 100_000);
    for end in [Signal::INT, Signal::TERM] {
        let receiver = Listening::start(&arena, "udp://127.0.0.1:0", &[]);
        let mut child = sender(&arena, &receiver.address, &[], &bytes);
        sleep(400 * MS);
        signal(&child, end);
        let ended = Instant::now();
        let output = receiver.end();
        assert!(ended.elapsed() < 2000 * MS, "{:?}", ended.elapsed());
        expect(&output, 0);
        assert!(output.stdout == bytes);
        assert_eq!(child.wait().unwrap().code(), Some(130));
    }
    // In a pipe too.
    let mut child = sender(&arena, "-", &[], &bytes);
    let stdin = child.stdin.take();
    sleep(300 * MS);
    signal(&child, Signal::INT);
    sleep(300 * MS);
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let back = receive(&arena, &[], &output.stdout);
    expect(&back, 0);
    assert!(back.stdout == bytes);
}

/// However slow the pace: what was sent until then is whole, and nobody waits for the rest of what was read.
#[test]
fn a_signal_ends_a_slow_stream_at_once() {
    let arena = Arena::new();
    let bytes = payload(2, 500_000);
    for (end, mbps, rate) in
        [(Signal::INT, "0.1", "1/6"), (Signal::TERM, "0.02", "2/1"), (Signal::INT, "1", "1/6")]
    {
        let receiver = Listening::start(&arena, "udp://127.0.0.1:0", &[]);
        let mut child = sender(&arena, &receiver.address, &["--mbps", mbps, "--rate", rate], &bytes);
        sleep(1200 * MS);
        let ended = Instant::now();
        signal(&child, end);
        assert_eq!(child.wait().unwrap().code(), Some(130));
        let sender_took = ended.elapsed();
        let output = receiver.end();
        // Half of it would do on a machine that is not busy.
        assert!(
            sender_took < 600 * MS && ended.elapsed() < 1200 * MS,
            "{sender_took:?}, {:?}",
            ended.elapsed()
        );
        expect(&output, 0);
        assert!(
            !output.stdout.is_empty() && output.stdout.len() < 300_000 && bytes.starts_with(&output.stdout)
        );
    }
}

/// Marks of an end that is none: what comes after them comes out, and somebody is told.
#[test]
fn a_forged_end_cuts_nothing_silently() {
    let arena = Arena::new();
    for (times, at) in [(1, 100), (1, 3000), (1, 40), (8, 100), (8, 150), (8, 3000)] {
        let receiver = Listening::start(&arena, "udp://127.0.0.1:0", &["--idle-ms", "700"]);
        let socket = socket_to(&receiver);
        let send = |packets: &[Vec<u8>]| packets.iter().for_each(|p| assert!(socket.send(p).is_ok()));
        send(&numbered(&FORGER, 0..100));
        send(&vec![FORGER.mark(at, true); times]);
        sleep(50 * MS);
        send(&numbered(&FORGER, 100..200));
        send(&vec![FORGER.mark(200, true); 4]);
        let output = receiver.end();
        let all: String = (0..200).map(|seq| format!("{seq} ")).collect();
        assert!(output.stdout == all.as_bytes(), "{times} at {at}: {}", text(&output.stderr));
        expect(&output, 3);
        assert!(text(&output.stderr).contains("contradict"), "{}", text(&output.stderr));
    }
    // A single mark in a pause of the stream is no end.
    let receiver = Listening::start(&arena, "udp://127.0.0.1:0", &["--idle-ms", "5000"]);
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

/// Two contents for one number are never a whole stream.
#[test]
fn another_run_under_the_same_number_is_noticed() {
    let arena = Arena::new();
    for options in [&[][..], &["--window", "5000"]] {
        let receiver = Listening::start(&arena, "udp://127.0.0.1:0", &["--idle-ms", "700"]);
        let mut first = sender(&arena, &receiver.address, &["--stream-id", "77"], &payload(1, 50_000));
        sleep(200 * MS);
        signal(&first, Signal::KILL);
        first.wait().unwrap();
        let args = [&["--stream-id", "77", "-q"], options].concat();
        send_to(&arena, &receiver.address, &args, &payload(2, 100_000));
        let output = receiver.end();
        expect(&output, 3);
        assert!(text(&output.stderr).contains("contradict"), "{}", text(&output.stderr));
    }
    // In a pipe too.
    let streams = [1, 2].map(|seed| send(&arena, &["--stream-id", "77"], &payload(seed, 50_000))).concat();
    expect(&receive(&arena, &[], &streams), 3);
}

/// One stream after another goes into one output, whatever ended the one before.
#[test]
fn a_sender_that_begins_anew_is_followed() {
    let arena = Arena::new();
    let bytes = [1, 2, 3, 4].map(|seed| payload(seed, 60_000));
    let receiver = Listening::start(
        &arena,
        "udp://127.0.0.1:0",
        &["--follow", "--json", "-o", "out", "--wait-ms", "1500", "--stats", "json"],
    );
    // It ends.
    send_to(&arena, &receiver.address, &["-q"], &bytes[0]);
    // It is told to.
    let mut second = sender(&arena, &receiver.address, &[], &bytes[1]);
    sleep(200 * MS);
    signal(&second, Signal::INT);
    second.wait().unwrap();
    // It dies, and another takes its place at once.
    let mut third = sender(&arena, &receiver.address, &[], &bytes[2]);
    sleep(200 * MS);
    signal(&third, Signal::KILL);
    third.wait().unwrap();
    send_to(&arena, &receiver.address, &["-q"], &bytes[3]);
    let output = receiver.end();
    expect(&output, 3);
    assert!(arena.read("out") == bytes.concat(), "all of what was sent comes out, in order");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["streams_before"], &report["not_whole_before"]), (&4.into(), &1.into()));
    let over: Vec<Value> = text(&output.stderr)
        .lines()
        .filter(|line| line.contains(r#""event":"over""#))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(over.iter().map(|line| line["whole"] == true).collect::<Vec<_>>(), [true, true, false, true]);
}

#[test]
fn streams_that_are_followed_are_whole_if_all_are() {
    let arena = Arena::new();
    let receiver = Listening::start(&arena, "udp://127.0.0.1:0", &["--follow", "--wait-ms", "700"]);
    for seed in 0..3 {
        send_to(&arena, &receiver.address, &["-q", "--mbps", "50"], &payload(seed, 50_000));
    }
    let output = receiver.end();
    expect(&output, 0);
    assert!(output.stdout == [0, 1, 2].map(|seed| payload(seed, 50_000)).concat());
    // Whoever stops it has what came.
    let receiver = Listening::start(&arena, "udp://127.0.0.1:0", &["--follow", "-o", "kept"]);
    send_to(&arena, &receiver.address, &["-q"], &payload(9, 50_000));
    sleep(600 * MS);
    signal(&receiver.child, Signal::INT);
    expect(&receiver.end(), 0);
    assert!(arena.read("kept") == payload(9, 50_000));
    let said = arena.refuses(["decode", "--follow", "--stream", "-"], 2);
    assert!(said.contains("udp://"), "{said}");
}

#[test]
fn a_stream_that_does_not_begin_is_not_waited_for() {
    let arena = Arena::new();
    let started = Instant::now();
    let said = arena.refuses(["decode", "udp://127.0.0.1:0", "--wait-ms", "300"], 3);
    assert!(said.contains("no packet of a stream came"), "{said}");
    assert!((300 * MS..5000 * MS).contains(&started.elapsed()), "{:?}", started.elapsed());
    let receiver = Listening::start(&arena, "udp://127.0.0.1:0", &["--wait-ms", "300"]);
    let mut child = sender(&arena, &receiver.address, &[], &payload(1, 10_000));
    sleep(900 * MS);
    signal(&child, Signal::INT);
    child.wait().unwrap();
    expect(&receiver.end(), 0);
}

/// A stream that was away for longer than --idle-ms is heard again.
#[test]
fn a_stream_that_comes_back_is_followed() {
    let arena = Arena::new();
    let options = ["--follow", "--idle-ms", "300", "--wait-ms", "1500"];
    let receiver = Listening::start(&arena, "udp://127.0.0.1:0", &options);
    let socket = socket_to(&receiver);
    for seqs in [0..20, 30..60] {
        for packet in numbered(&FORGER, seqs) {
            socket.send(&packet).unwrap();
        }
        sleep(900 * MS);
    }
    let output = receiver.end();
    expect(&output, 3);
    let expected: String = (0..20).chain(30..60).map(|seq| format!("{seq} ")).collect();
    assert_eq!(text(&output.stdout), expected);
}

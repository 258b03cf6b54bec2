//! Streams through pipes and files: the output equals the input, and losses are named.

use super::*;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;

const PROFILES: [&str; 4] = ["bounded", "classic", "classic-blocks", "blocks"];

#[test]
fn payloads_come_back() {
    let arena = Arena::new();
    for len in [0, 1, 16, 1349, 1350, 1351, 2700, 100_000, 3_000_000] {
        let bytes = payload(len as u64, len);
        for profile in PROFILES {
            let stream = send(&arena, &["--profile", profile, "--window", "600"], &bytes);
            let output = receive(&arena, &[], &stream);
            expect(&output, 0);
            assert!(output.stdout == bytes, "{profile} {len}");
        }
    }
    for (packet, window) in [("16", "65536"), ("17", "1"), ("65535", "100"), ("9000", "2")] {
        let bytes = payload(7, 500_000);
        let stream = send(&arena, &["--packet", packet, "--window", window], &bytes);
        assert!(receive(&arena, &[], &stream).stdout == bytes, "{packet} {window}");
    }
}

#[test]
fn impaired_pipes_deliver_everything() {
    let arena = Arena::new();
    let bytes = payload(1, 6_000_000);
    for (profile, impair) in [
        ("bounded", "random:0.05,reorder:16,dup:0.01,seed:1"),
        ("bounded", "ge:0.03,20,seed:2"),
        ("bounded", "burst:41"),
        ("bounded", "burst:257"),
        ("bounded", "burst:500,1200,reorder:100"),
        ("bounded", "burst:80,0"),
        ("classic", "random:0.05,reorder:16,dup:0.01,seed:1"),
        ("classic-blocks", "random:0.03,reorder:8,dup:0.1,seed:3"),
        ("blocks", "random:0.05,reorder:8,dup:0.1,seed:4"),
    ] {
        let stream = send(&arena, &["--profile", profile, "--impair", impair], &bytes);
        let output = receive(&arena, &["--json"], &stream);
        expect(&output, 0);
        assert!(output.stdout == bytes, "{profile} {impair}");
        let report = report(&output);
        assert!(report["rebuilt"].as_u64() > Some(10), "{impair}: {report}");
        assert_eq!(report["lost"], 0);
    }
}

#[test]
fn an_impairment_is_the_same_each_time() {
    let arena = Arena::new();
    let bytes = payload(1, 300_000);
    let with = |seed: u32| {
        let impair = format!("random:0.1,ge:0.05,5,reorder:9,dup:0.1,seed:{seed}");
        send(&arena, &["--impair", &impair, "--stream-id", "1"], &bytes)
    };
    assert!(with(5) == with(5));
    assert!(with(5) != with(6));
}

#[test]
fn files_are_known_by_their_first_packet() {
    let arena = Arena::new();
    let bytes = payload(3, 200_000);
    arena.write("in", &bytes);
    let json = arena.expect(["encode", "--stream", "in", "-o", "in.fec", "--json"], 0);
    let sent: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(
        (&sent["form"], &sent["payload_bytes"], &sent["source_packets"]),
        (&"stream".into(), &200_000.into(), &149.into())
    );
    fs::remove_file(arena.path("in")).unwrap();
    arena.expect(["decode", "in.fec"], 0);
    assert!(arena.read("in") == bytes, "the suffix is taken off");
    let said = arena.refuses(["decode", "in.fec"], 2);
    assert!(said.contains("exists"), "{said}");
    let piped = arena.pipe(["decode", "-"], &arena.read("in.fec"));
    assert!(piped.stdout == bytes);
    // The first packet is damaged: the rest could be anything, until --stream says so.
    let cut = &arena.read("in.fec")[1000..];
    arena.write("cut.fec", cut);
    assert!(arena.refuses(["decode", "cut.fec", "-o", "cut"], 3).contains("--stream"));
    assert!(arena.refuses_pipe(["decode", "-"], cut, 3).contains("--stream"));
    arena.expect(["decode", "--stream", "cut.fec", "-o", "cut"], 0);
    assert!(arena.read("cut") == bytes);
    assert!(arena.pipe(["decode", "--stream", "-"], cut).stdout == bytes);
    // A container of a stream is a container, and a stream of a container is a stream.
    arena.expect(["encode", "in.fec", "-o", "box", "-k", "2", "-m", "1"], 0);
    arena.expect(["decode", "box", "-o", "unboxed"], 0);
    assert!(arena.read("unboxed") == arena.read("in.fec"));
    arena.expect(["encode", "--stream", "box", "-o", "sent"], 0);
    arena.expect(["decode", "sent", "-o", "received"], 0);
    assert!(arena.read("received") == arena.read("box"));
    let said = arena.refuses(["decode", "box", "-o", "x", "--gap", "skip"], 2);
    assert!(said.contains("no stream") && said.contains("--gap"), "{said}");
}

#[test]
fn usage_is_checked_before_work() {
    let arena = Arena::new();
    arena.write("in", b"x");
    let cases: [(&[&str], i32, &str); 20] = [
        (&["encode", "--stream", "in", "-k", "3"], 2, "--data"),
        (&["encode", "--stream", "in", "--root-file", "r"], 2, "--root-file"),
        (&["encode", "in", "--window", "5"], 2, "--stream"),
        (&["encode", "--stream", "in", "--rate", "0/1"], 2, "R/S"),
        (&["encode", "--stream", "in", "--impair", "random:2"], 2, "below 1"),
        (&["encode", "--stream", "in", "--impair", "trace:none"], 4, "none"),
        (&["encode", "--stream", "none"], 4, "none"),
        (&["encode", "--stream", "."], 2, "folder"),
        (&["encode", "--stream", "in", "-o", "in", "-f"], 2, "is the input"),
        (&["encode", "--stream", "in", "--window", "65537", "-o", "x"], 6, "65,536"),
        (&["encode", "--stream", "in", "--packet", "15", "-o", "x"], 6, "16"),
        (&["encode", "--stream", "in", "--block", "0", "-o", "x"], 6, "--block"),
        (
            &["encode", "--stream", "in", "--window", "60000", "--packet", "1350", "-o", "x"],
            6,
            "--max-memory",
        ),
        (&["encode", "--stream", "in", "--profile", "blocks", "--rate", "256/1", "-o", "x"], 6, "--rate"),
        (&["encode", "--stream", "in", "-o", "udp://127.0.0.1"], 2, "udp://HOST:PORT"),
        (&["encode", "--stream", "in", "-o", "udp://:5000"], 2, "host"),
        (
            &["encode", "--stream", "in", "--packet", "65535", "--window", "9", "-o", "udp://127.0.0.1:9"],
            2,
            "--packet",
        ),
        (&["decode", "udp://127.0.0.1:0", "--root", "00"], 2, "64"),
        (&["decode", "--stream", "in", "other"], 2, "alone"),
        (&["decode", "--stream", "--partial", "in"], 2, "--partial"),
    ];
    for (args, exit, word) in cases {
        let said = arena.refuses(args, exit);
        assert!(said.contains(word), "{args:?}: {said}");
    }
    arena.expect(["encode", "--stream", "in", "--window", "60000", "--max-memory", "90MiB", "-o", "x"], 0);
}

/// If every packet claims a window with more memory than the receiver allows, the stream is refused.
#[test]
fn a_window_beyond_the_limit_is_refused_by_the_receiver() {
    let arena = Arena::new();
    let stream = send(&arena, &["--window", "60000", "--max-memory", "90MiB"], &payload(1, 20_000));
    let output = receive(&arena, &[], &stream);
    expect(&output, 6);
    assert!(text(&output.stderr).contains("--max-memory") && output.stdout.is_empty());
    assert!(receive(&arena, &["--max-memory", "90MiB"], &stream).stdout == payload(1, 20_000));
}

#[test]
fn gaps_are_skipped_filled_or_the_end() {
    let arena = Arena::new();
    let bytes = payload(5, 1000 * 100);
    let stream = send(&arena, &["--packet", "100", "--rate", "1/500"], &bytes);
    let lost = |i: usize| (40..60).contains(&i) || i == 900;
    let mut number = 0;
    let kept: Vec<Vec<u8>> = frames(&stream)
        .into_iter()
        .filter(|frame| {
            let is_source = kind(frame) == 0;
            number += usize::from(is_source);
            !(is_source && lost(number - 1)) && kind(frame) != 1
        })
        .collect();
    let stream = joined(&kept);
    for options in [&[][..], &["--gap", "skip"]] {
        let output = receive(&arena, options, &stream);
        expect(&output, 3);
        assert!(output.stdout == without(&bytes, 100, lost));
        let said = text(&output.stderr);
        assert!(said.contains("packets 40 to 59") && said.contains("packet 900"), "{said}");
    }
    let output = receive(&arena, &["--gap", "zero", "--json"], &stream);
    expect(&output, 3);
    let mut zeroed = bytes.clone();
    zeroed[4000..6000].fill(0);
    zeroed[90_000..90_100].fill(0);
    assert!(output.stdout == zeroed);
    let gaps = serde_json::json!([{"first": 40, "count": 20}, {"first": 900, "count": 1}]);
    assert_eq!((&report(&output)["gaps"], &report(&output)["whole"]), (&gaps, &false.into()));
    let output = receive(&arena, &["--gap", "fail"], &stream);
    expect(&output, 3);
    assert!(output.stdout == bytes[..4000]);
    // The file holds what came, and the exit code tells that it is not all.
    arena.write("s", &stream);
    expect(&arena.run(["decode", "s", "-o", "out"]), 3);
    assert!(arena.read("out") == without(&bytes, 100, lost));
    expect(&arena.run(["decode", "s", "-o", "none", "--gap", "fail"]), 3);
    assert!(!arena.path("none").exists());
}

/// Packets 100 to 119 come 300 packets late: with a deadline they are given up, without one they are not.
#[test]
fn deadlines_in_packets() {
    let arena = Arena::new();
    let bytes = payload(6, 1000 * 100);
    let stream = send(&arena, &["--packet", "100", "--rate", "1/500"], &bytes);
    let mut sources: Vec<Vec<u8>> = frames(&stream).into_iter().filter(|frame| kind(frame) == 0).collect();
    let end = frames(&stream).pop().unwrap();
    let late: Vec<Vec<u8>> = sources.drain(100..120).collect();
    sources.splice(400..400, late);
    sources.push(end);
    let stream = joined(&sources);
    assert!(receive(&arena, &[], &stream).stdout == bytes);
    assert!(receive(&arena, &["--deadline-packets", "400"], &stream).stdout == bytes);
    let output = receive(&arena, &["--deadline-packets", "200", "--json"], &stream);
    expect(&output, 3);
    assert!(output.stdout == without(&bytes, 100, |i| (100..120).contains(&i)));
    assert_eq!((&report(&output)["lost"], &report(&output)["late"]), (&20.into(), &20.into()));
}

/// A lost packet holds up the rest for the deadline, and no longer.
#[test]
fn deadlines_in_time() {
    let arena = Arena::new();
    let bytes = payload(6, 100 * 100);
    let stream = send(&arena, &["--packet", "100", "--rate", "1/500"], &bytes);
    let mut sources: Vec<Vec<u8>> = frames(&stream).into_iter().filter(|frame| kind(frame) == 0).collect();
    sources.remove(50);
    for latency in ["300", "30000"] {
        let mut child = arena.spawn(["decode", "--stream", "--latency", latency]);
        let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let started = Instant::now();
        stdin.write_all(&joined(&sources)).unwrap();
        let mut first = vec![0; 5000];
        stdout.read_exact(&mut first).unwrap();
        assert!(first == bytes[..5000]);
        if latency == "30000" {
            assert!(started.elapsed() < Duration::from_secs(30), "what is in order does not wait");
        } else {
            let mut rest = vec![0; 4900];
            stdout.read_exact(&mut rest).unwrap();
            assert!(rest == bytes[5100..]);
            assert!(started.elapsed() >= Duration::from_millis(300), "{:?}", started.elapsed());
        }
        drop(stdin);
        expect(&finish(child, b"", LIMIT).expect("it ends"), 3);
    }
}

/// A slow stream is not held back until a packet is full, and its packets are protected in time.
#[test]
fn slow_streams_are_flushed() {
    let arena = Arena::new();
    let mut child = arena.spawn(["encode", "--stream", "--flush-ms", "30", "--json"]);
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut receiver = arena.spawn(["decode", "--stream"]);
    let (mut to, mut from) = (receiver.stdin.take().unwrap(), receiver.stdout.take().unwrap());
    let mut seen = Vec::new();
    let mut buffer = vec![0; 65_536];
    for word in ["one", "two", "three"] {
        stdin.write_all(word.as_bytes()).unwrap();
        // The source packet comes, and at the same timer its repair packet.
        let before = frames_in(&seen, 1);
        while frames_in(&seen, 1) == before {
            let n = stdout.read(&mut buffer).unwrap();
            assert!(n > 0);
            seen.extend_from_slice(&buffer[..n]);
            to.write_all(&buffer[..n]).unwrap();
        }
        let mut said = vec![0; word.len()];
        from.read_exact(&mut said).unwrap();
        assert_eq!(said, word.as_bytes());
    }
    drop(stdin);
    stdout.read_to_end(&mut seen).unwrap();
    assert_eq!(frames_in(&seen, 0), 3, "a packet for each word");
    drop(to);
    expect(&finish(child, b"", LIMIT).expect("it ends"), 0);
    finish(receiver, b"", LIMIT).expect("it ends");
}

fn frames_in(stream: &[u8], wanted: u8) -> usize {
    if stream.len() < 2 { 0 } else { frames(stream).iter().filter(|frame| kind(frame) == wanted).count() }
}

#[test]
fn pacing_keeps_the_rate() {
    let arena = Arena::new();
    let started = Instant::now();
    // 250,000 bytes and a sixth more of packets take 0.4 s at 6 Mb/s.
    send(&arena, &["--mbps", "6"], &payload(1, 250_000));
    let took = started.elapsed().as_secs_f64();
    println!("{took} s");
    assert!(took >= 0.39, "{took}");
}

#[test]
fn interrupted_streams_leave_nothing() {
    let arena = Arena::new();
    let stream = send(&arena, &[], &payload(1, 500_000));
    for args in [&["encode", "--stream", "-o", "out"][..], &["decode", "--stream", "-o", "out"]] {
        let mut child = arena.spawn(args);
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(&stream).unwrap();
        arena.wait_for_temporary();
        common::signal(&child, common::signals()[0]);
        let output = finish(child, b"", LIMIT).expect("it ends");
        expect(&output, 130);
        drop(stdin);
        arena.nothing_temporary();
        assert!(!arena.path("out").exists(), "{args:?}");
    }
}

#[test]
fn a_reader_that_goes_away_ends_both_quietly() {
    let arena = Arena::new();
    let bytes = payload(1, 8_000_000);
    let stream = send(&arena, &[], &bytes);
    for (args, input) in [(["encode", "--stream"], &bytes), (["decode", "--stream"], &stream)] {
        let mut child = arena.spawn(args);
        drop(child.stdout.take());
        let output = finish(child, input, LIMIT).expect("it ends");
        assert_eq!(output.status.signal(), Some(13), "{args:?}");
        assert_eq!(text(&output.stderr), "");
    }
}

#[test]
fn statistics_come_while_it_runs() {
    let arena = Arena::new();
    let stream = send(&arena, &[], &payload(1, 100_000));
    let mut child = arena.spawn(["decode", "--stream", "--stats", "json", "--json"]);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&stream).unwrap();
    let mut out = vec![0; 100_000];
    child.stdout.as_mut().unwrap().read_exact(&mut out).unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = || -> Value {
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        serde_json::from_str(&line).expect("every line is JSON")
    };
    // On a busy machine, lines may come before all bytes have arrived.
    let mut told = line();
    for _ in 0..20 {
        assert_eq!(told["event"], "statistics");
        if told["payload_bytes"] == 100_000 {
            break;
        }
        told = line();
    }
    assert_eq!(told["payload_bytes"], 100_000);
    drop(stdin);
    let last = std::iter::repeat_with(line).find(|line| line["event"] != "statistics").unwrap();
    assert_eq!(last["whole"], true);
    expect(&finish(child, b"", LIMIT).expect("it ends"), 0);
}

#[test]
fn a_silent_pipe_ends_when_asked_to() {
    let arena = Arena::new();
    let bytes = payload(1, 100_000);
    let stream = send(&arena, &[], &bytes);
    let mut child = arena.spawn(["decode", "--stream", "--idle-ms", "200"]);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&stream[..50_000]).unwrap();
    let output = finish(child, b"", LIMIT).expect("it ends by itself");
    expect(&output, 3);
    assert!(output.stdout.len() > 30_000 && bytes.starts_with(&output.stdout));
    drop(stdin);
}

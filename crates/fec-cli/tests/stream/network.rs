//! Streams over UDP on the loopback interface.

use super::*;
use common::signal;
use rustix::process::Signal;
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::process::{Child, ChildStderr};

/// A receiver that listens.
pub(super) struct Listening {
    pub(super) child: Child,
    stderr: BufReader<ChildStderr>,
    /// The address to send to.
    pub(super) address: String,
}

impl Listening {
    pub(super) fn start(arena: &Arena, place: &str, options: &[&str]) -> Listening {
        let mut child = arena.spawn(["decode", place].into_iter().chain(options.iter().copied()));
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        // With -v the settings are told first.
        while line.trim_start().starts_with("INFO") || line.is_empty() {
            line.clear();
            assert!(stderr.read_line(&mut line).unwrap() > 0, "it ends");
        }
        let address = match line.trim().strip_prefix("receiving on ") {
            Some(address) => address.to_owned(),
            None => serde_json::from_str::<Value>(&line).unwrap()["address"].as_str().unwrap().to_owned(),
        };
        Listening { child, stderr, address }
    }

    /// Runs `work` while the receiver is stopped. Packets wait for the receiver, however busy the machine is.
    pub(super) fn while_stopped<T>(&self, work: impl FnOnce() -> T) -> T {
        signal(&self.child, Signal::STOP);
        let done = work();
        signal(&self.child, Signal::CONT);
        done
    }

    /// Waits for this many bytes of payload, and takes them.
    #[track_caller]
    pub(super) fn payload(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.child.stdout.as_mut().expect("a pipe").read_exact(&mut bytes).expect("it comes out");
        bytes
    }

    /// Waits until the receiver prints these words on standard error. Returns the lines up to there.
    #[track_caller]
    pub(super) fn says(&mut self, words: &str) -> String {
        let mut said = String::new();
        while !said.contains(words) {
            assert!(self.stderr.read_line(&mut said).unwrap() > 0, "it ends without {words}: {said}");
        }
        said
    }

    /// Waits for the end of the receiver.
    #[track_caller]
    pub(super) fn end(mut self) -> Output {
        let mut output = finish(self.child, b"", LIMIT).expect("it ends in time");
        self.stderr.read_to_end(&mut output.stderr).unwrap();
        output
    }
}

pub(super) fn send_to(arena: &Arena, address: &str, options: &[&str], bytes: &[u8]) -> Output {
    let args = ["encode", "--stream", "-o", address].into_iter().chain(options.iter().copied());
    let output = arena.pipe(args, bytes);
    expect(&output, 0);
    output
}

#[test]
fn loopback_with_loss_loses_nothing() {
    let arena = Arena::new();
    let bytes = payload(1, 8_000_000);
    let impair = ["--mbps", "300", "--impair", "random:0.05,reorder:16,dup:0.01,seed:1"];
    for (place, profile) in [
        ("udp://127.0.0.1:0", "bounded"),
        ("udp://[::1]:0", "bounded"),
        ("udp://127.0.0.1:0", "classic"),
        ("udp://127.0.0.1:0", "blocks"),
    ] {
        let receiver = Listening::start(&arena, place, &[]);
        send_to(
            &arena,
            &receiver.address,
            &[&impair[..], &["--profile", profile, "--window", "3000"]].concat(),
            &bytes,
        );
        let output = receiver.end();
        expect(&output, 0);
        assert!(output.stdout == bytes, "{place} {profile}");
    }
}

/// Without an address, the receiver listens on all addresses, over IPv4 and IPv6.
#[test]
fn any_address_is_all_of_them() {
    let arena = Arena::new();
    let bytes = payload(2, 100_000);
    for host in ["127.0.0.1", "[::1]"] {
        let receiver = Listening::start(&arena, "udp://:0", &[]);
        let port = receiver.address.rsplit(':').next().unwrap().to_owned();
        send_to(&arena, &format!("udp://{host}:{port}"), &["--mbps", "100"], &bytes);
        assert!(receiver.end().stdout == bytes, "{host}");
    }
}

#[test]
fn a_multicast_group_reaches_all_receivers() {
    let arena = Arena::new();
    let bytes = payload(3, 400_000);
    let lo = ["--interface", "lo"];
    // A free port, which the receivers share.
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let group = format!("udp://239.255.77.7:{port}");
    let receivers = [(); 2].map(|()| Listening::start(&arena, &group, &lo));
    send_to(&arena, &group, &[&lo[..], &["--ttl", "0", "--mbps", "100"]].concat(), &bytes);
    for receiver in receivers {
        let output = receiver.end();
        expect(&output, 0);
        assert!(output.stdout == bytes);
    }
}

#[test]
fn places_that_are_not_there() {
    let arena = Arena::new();
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let taken = format!("udp://{}", taken.local_addr().unwrap());
    let said = arena.refuses(["decode", &taken], 4);
    assert!(said.contains("another port"), "{said}");
    let said = arena.refuses(["decode", "udp://127.0.0.1:0", "--interface", "none0"], 4);
    assert!(said.contains("none0"), "{said}");
    let said = arena.refuses(["decode", "udp://192.0.2.77:0"], 4);
    assert!(said.contains("no address of this machine"), "{said}");
}

/// A foreign packet, noise, and an end that never comes.
#[test]
fn a_silent_network_is_the_end() {
    let arena = Arena::new();
    let receiver =
        Listening::start(&arena, "udp://127.0.0.1:0", &["--idle-ms", "400", "--json", "--stats", "json"]);
    let to = receiver.address.strip_prefix("udp://").unwrap().to_owned();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let bytes = payload(4, 20_000);
    let stream = send(&arena, &["--stream-id", "1"], &bytes);
    let other = send(&arena, &["--stream-id", "2"], b"other");
    // Unframes packets without FE FD in them: one byte in front and two behind, and two more with a second run.
    let packet = |frame: &[u8]| -> Option<Vec<u8>> {
        let (first, rest) = (usize::from(frame[0]), &frame[1..frame.len() - 2]);
        let packet = if first < 252 { rest.to_vec() } else { [&rest[..252], &rest[254..]].concat() };
        (first == 252 || first == rest.len()).then_some(packet)
    };
    let sources: Vec<Vec<u8>> =
        frames(&stream).iter().filter(|f| kind(f) == 0).filter_map(|f| packet(f)).collect();
    assert_eq!(sources.len(), 15);
    receiver.while_stopped(|| {
        for source in &sources {
            socket.send_to(source, &to).unwrap();
            socket.send_to(b"noise", &to).unwrap();
            socket.send_to(&[], &to).unwrap();
            socket.send_to(&packet(&frames(&other)[0]).unwrap(), &to).unwrap();
        }
    });
    let output = receiver.end();
    expect(&output, 3);
    assert!(output.stdout == bytes);
    let report = report(&output);
    assert_eq!(
        (&report["ended"], &report["lost"], &report["foreign"]),
        (&false.into(), &0.into(), &15.into())
    );
    assert!(report["damaged"].as_u64() >= Some(15), "{report}");
}

/// The last packets are lost beyond repair, but the end marks arrive: the receiver does not wait for more.
#[test]
fn an_end_with_gaps_is_an_end() {
    let arena = Arena::new();
    let bytes = payload(6, 200_000);
    let receiver = Listening::start(&arena, "udp://127.0.0.1:0", &["--idle-ms", "0"]);
    let options = ["--rate", "1/6", "--packet", "1000", "--mbps", "100", "--impair", "burst:150,60"];
    send_to(&arena, &receiver.address, &options, &bytes);
    let output = receiver.end();
    expect(&output, 3);
    assert!(text(&output.stderr).contains("lost: packet"), "{}", text(&output.stderr));
    assert!(!text(&output.stderr).contains("its end did not come"), "{}", text(&output.stderr));
}

/// `FEC_PACKETS` and `FEC_MBPS` set more packets and a higher rate.
#[test]
fn packets_over_a_bad_line_all_come_out() {
    let number = |name, default| {
        std::env::var(name)
            .map_or(default, |value| value.parse().unwrap_or_else(|_| panic!("{name}: {value}")))
    };
    let arena = Arena::new();
    let bytes = payload(5, number("FEC_PACKETS", 20_000) * 1350);
    arena.write("in", &bytes);
    let receiver = Listening::start(&arena, "udp://127.0.0.1:0", &["-o", "out", "--json", "--stats", "json"]);
    let rate = number("FEC_MBPS", 200).to_string();
    let impair = ["--mbps", &rate, "--impair", "random:0.05,reorder:16,dup:0.01,seed:1", "in", "--json"];
    let args = ["encode", "--stream", "-o", &receiver.address].into_iter().chain(impair);
    let sent = arena.fec(args).output().expect("it starts");
    expect(&sent, 0);
    println!("{}", text(&sent.stdout));
    let output = receiver.end();
    println!("{}\n{}", text(&output.stdout), text(&output.stderr));
    expect(&output, 0);
    assert!(arena.read("out") == bytes);
}

/// A missing receiver is reported once and changes nothing: a receiver may come later.
#[test]
fn that_nobody_receives_is_told() {
    let arena = Arena::new();
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for host in ["127.0.0.1", "[::1]"] {
        let to = format!("udp://{host}:{port}");
        let output = send_to(&arena, &to, &["--mbps", "20"], &payload(1, 300_000));
        let said = text(&output.stderr);
        assert_eq!(said.matches("nobody receives there yet").count(), 1, "{said}");
        let output = send_to(&arena, &to, &["--mbps", "20", "--json"], &payload(1, 300_000));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(report["refused"].as_u64() > Some(0), "{report}");
        assert_eq!(report["packet"], 1174, "what passes nearly everywhere");
    }
    let piped = arena.pipe(["encode", "--stream", "-", "--json"], b"x");
    assert_eq!(report(&piped)["packet"], 1350);
    assert!(arena.refuses(["encode", "--stream", "-", "--packet", "much"], 2).contains("auto"));
}

/// The same packets go over two ways: packets lost on one come over the other, and nothing comes out twice.
#[test]
fn two_ways_are_one_stream() {
    let arena = Arena::new();
    let bytes = payload(7, 400_000);
    let receiver = Listening::start(&arena, "udp://:0", &["--json", "--stats", "json", "-o", "out"]);
    let port = receiver.address.rsplit(':').next().unwrap().to_owned();
    let (one, other) = (format!("udp://127.0.0.1:{port}"), format!("udp://[::1]:{port}"));
    send_to(&arena, &one, &["-o", &other, "--mbps", "50", "-q"], &bytes);
    let output = receiver.end();
    expect(&output, 0);
    assert!(arena.read("out") == bytes);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packets = report["packets"].as_u64().unwrap();
    assert!(report["duplicates"].as_u64().unwrap() > packets / 2, "{report}");
    // A way without a receiver does not hinder the others.
    let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let receiver = Listening::start(&arena, "udp://[::1]:0", &[]);
    let sent = send_to(
        &arena,
        &format!("udp://{closed}"),
        &["-o", &receiver.address, "--mbps", "50", "--interface", "lo", "--interface", "lo"],
        &bytes,
    );
    assert!(text(&sent.stderr).contains("nobody receives"), "{}", text(&sent.stderr));
    let output = receiver.end();
    expect(&output, 0);
    assert!(output.stdout == bytes);
    for wrong in [
        &["encode", "--stream", "-", "-o", &one, "-o", "file"][..],
        &["encode", "--stream", "-", "-o", "a", "-o", "b"],
        &["encode", "--stream", "-", "-o", &one, "--interface", "lo", "--interface", "lo"],
        &["encode", "out", "-o", "a", "-o", "b"],
    ] {
        arena.refuses(wrong.iter(), 2);
    }
}

/// A watcher waits for not quite a second. A file waits for repair packets that may still come.
#[test]
fn a_pipe_waits_for_not_quite_a_second_and_a_file_for_repair_packets() {
    let arena = Arena::new();
    let bytes = payload(7, 200 * 100);
    let stream = send(&arena, &["--packet", "100", "--rate", "1/150"], &bytes);
    let mut packets: Vec<Vec<u8>> = frames(&stream).iter().map(|frame| unframed(frame)).collect();
    let end = packets.last().unwrap().clone();
    packets.retain(|packet| packet[5] == 0);
    packets.remove(50);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    // How long the rest waits. If the deadline releases it, silence never does.
    let waits = |options: &[&str], is_file: bool, by_deadline: bool| {
        let idle = if by_deadline { "0" } else { "3000" };
        let arguments = ["decode", "udp://127.0.0.1:0", "--idle-ms", idle];
        let mut command = arena.fec(arguments.iter().chain(options));
        command.stdout(if is_file {
            std::fs::File::create(arena.path("kept")).unwrap().into()
        } else {
            std::process::Stdio::piped()
        });
        let mut child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("receiving on udp://").unwrap().to_owned();
        let started = Instant::now();
        for packet in &packets {
            socket.send_to(packet, &address).unwrap();
        }
        let rest = || 100 * 199;
        match child.stdout.take() {
            Some(mut stdout) => stdout.read_exact(&mut vec![0; rest()]).unwrap(),
            None => common::wait_until(|| arena.read("kept").len() >= rest()),
        }
        let elapsed = started.elapsed();
        if by_deadline {
            (0..3).for_each(|_| assert!(socket.send_to(&end, &address).is_ok()));
        }
        expect(&finish(child, b"", LIMIT).expect("it ends"), 3);
        elapsed.as_secs_f64()
    };
    let times =
        [waits(&[], false, true), waits(&["--latency", "none"], false, false), waits(&[], true, false)];
    println!("{times:?}");
    assert!(times[0] >= 0.9 && times[1] >= 2.9 && times[2] >= 2.9, "{times:?}");
}

/// A receiver that is stopped for longer than a stream may be silent (Ctrl-Z, a closed lid, a busy machine) goes on
/// with the waiting packets, both at the first packet and at later ones.
#[test]
fn whoever_was_stopped_has_heard_no_silence() {
    let arena = Arena::new();
    let bytes = payload(8, 150_000);
    let stream = send(&arena, &[], &bytes);
    let packets: Vec<Vec<u8>> = frames(&stream).iter().map(|frame| unframed(frame)).collect();
    let (first, second) = packets.split_at(50);
    // Packet 30 is lost, and nothing has mended it yet.
    let first: Vec<Vec<u8>> = first.iter().filter(|packet| packet[5] == 0).cloned().collect();
    let first = [&first[..30], &first[31..]].concat();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let play = |receiver: &Listening, packets: &[Vec<u8>]| {
        let to = receiver.address.strip_prefix("udp://").unwrap();
        packets.iter().for_each(|packet| assert!(socket.send_to(packet, to).is_ok()));
    };
    // (options, whether it heard the stream before it is stopped)
    let cases: [(&[&str], bool); 4] = [
        (&["--wait-ms", "2000"], false),
        (&["--idle-ms", "2000", "--latency", "none"], true),
        (&["--latency", "3000"], true),
        (&["--idle-ms", "2000", "--latency", "none", "--follow", "--wait-ms", "2000"], true),
    ];
    let mut stopped = Vec::new();
    for (options, has_begun) in cases {
        let mut receiver = Listening::start(&arena, "udp://127.0.0.1:0", options);
        let mut out = Vec::new();
        if has_begun {
            play(&receiver, &first);
            out = receiver.payload(30 * 1350);
        }
        signal(&receiver.child, Signal::STOP);
        play(&receiver, if has_begun { second } else { &packets });
        stopped.push((receiver, out));
    }
    // A pipe holds waiting bytes, as a socket does.
    let mut piped = arena.spawn(["decode", "--stream", "--idle-ms", "2000"]);
    let mut stdin = piped.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, &stream[..stream.len() / 2]).unwrap();
    let mut out = vec![0; 50_000];
    piped.stdout.as_mut().unwrap().read_exact(&mut out).unwrap();
    signal(&piped, Signal::STOP);
    // The pipe may be full before it has all of this, so that somebody else waits for it.
    let rest = stream[stream.len() / 2..].to_vec();
    let writer = std::thread::spawn(move || std::io::Write::write_all(&mut stdin, &rest));
    std::thread::sleep(Duration::from_millis(3500));
    for ((receiver, out), (options, _)) in stopped.into_iter().zip(cases) {
        signal(&receiver.child, Signal::CONT);
        let output = receiver.end();
        expect(&Output { stdout: Vec::new(), ..output.clone() }, 0);
        let got = [out, output.stdout].concat();
        assert!(got == bytes, "{options:?}: {} bytes", got.len());
    }
    signal(&piped, Signal::CONT);
    let output = finish(piped, b"", LIMIT).expect("it ends");
    writer.join().unwrap().unwrap();
    expect(&Output { stdout: Vec::new(), ..output.clone() }, 0);
    assert!([out, output.stdout].concat() == bytes);
}

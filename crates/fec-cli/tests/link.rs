//! `fec bench link`: two processes over loopback, and strangers that send anything.

mod common;

use common::{Arena, LIMIT, Random, code, expect, finish, text};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::process::{Child, ChildStderr, Output};
use std::time::Duration;

/// A listener that waits for a test.
struct Listening {
    child: Child,
    stderr: BufReader<ChildStderr>,
    /// HOST:PORT.
    address: String,
}

impl Listening {
    fn start(arena: &Arena, place: &str, options: &[&str]) -> Listening {
        let words = ["bench", "link", "--wait-ms", "20000", "--listen", place];
        let mut child = arena.spawn(words.iter().chain(options));
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("{line}"));
        Listening { child, stderr, address: address.to_owned() }
    }

    /// Waits until a test has begun.
    #[track_caller]
    fn has_begun(&mut self) {
        let mut line = String::new();
        self.stderr.read_line(&mut line).unwrap();
        assert!(line.starts_with("testing the link with"), "{line}");
    }

    #[track_caller]
    fn end(mut self) -> Output {
        let mut output = finish(self.child, b"", LIMIT).expect("it ends in time");
        self.stderr.read_to_end(&mut output.stderr).unwrap();
        assert!(!text(&output.stderr).contains("panicked"), "{}", text(&output.stderr));
        output
    }
}

/// Less time than a test of a minute, or its limits, would take.
const SOON: Duration = Duration::from_secs(40);

#[track_caller]
fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", text(&output.stdout)))
}

/// Runs a test against a listener. Returns both reports.
#[track_caller]
fn test(arena: &Arena, listener: Listening, options: &[&str]) -> (Value, Value) {
    let words = ["bench", "link", &listener.address, "--json", "-q"];
    let sent = arena.run(words.iter().chain(options));
    expect(&sent, 0);
    let listened = listener.end();
    expect(&listened, 0);
    (json(&sent), json(&listened))
}

fn number(report: &Value, name: &str) -> f64 {
    report[name].as_f64().unwrap_or_else(|| panic!("{name}: {report}"))
}

/// Losses on purpose are counted and mended, and both sides report the same.
#[test]
fn losses_are_counted_and_mended() {
    let arena = Arena::new();
    for place in ["127.0.0.1:0", "[::1]:0"] {
        let listener = Listening::start(&arena, place, &["--json"]);
        let (sent, listened) = test(&arena, listener, &["-t", "2", "--mbps", "40", "--loss", "5%"]);
        let count = number(&sent, "sent");
        assert!(count > 500.0, "{sent}");
        let lost = number(&sent, "lost");
        assert_eq!(number(&sent, "received") + lost, count);
        // A busy machine may lose more.
        let on_purpose = number(&sent, "lost_on_purpose");
        assert!(lost >= on_purpose && (0.03..0.07).contains(&(on_purpose / count)), "{sent}");
        assert_eq!((number(&sent, "reordered"), number(&sent, "doubled")), (0.0, 0.0), "{sent}");
        assert_eq!(
            (number(&sent, "payloads_lost_after"), number(&sent, "payloads_wrong")),
            (0.0, 0.0),
            "{sent}"
        );
        assert!(number(&sent, "payloads_lost_before") > 0.0, "{sent}");
        assert!(number(&sent, "goodput_after_mbps") > number(&sent, "goodput_before_mbps"), "{sent}");
        assert!(number(&sent, "largest_datagram") > 60_000.0, "loopback: {sent}");
        // A busy machine sends less.
        let rate = number(&sent, "sent_mbps");
        println!("{rate} of 40 Mb/s");
        assert!(rate > 0.0 && rate <= 41.0, "{sent}");
        for figure in ["jitter_ms", "round_trip_ms", "sender_cpu_us", "listener_cpu_us", "longest_burst"] {
            assert!(number(&sent, figure) >= 0.0, "{figure}");
        }
        for delays in ["delay_before_ms", "delay_after_ms"] {
            assert!(sent[delays]["median"].as_f64() <= sent[delays]["max"].as_f64(), "{sent}");
            assert!(sent[delays]["p99"].is_number(), "{sent}");
        }
        assert_eq!((&sent["role"], &listened["role"]), (&"sender".into(), &"listener".into()));
        for same in
            ["sent", "received", "lost", "payloads_lost_before", "largest_datagram", "jitter_ms", "rate"]
        {
            assert_eq!(sent[same], listened[same], "{same}");
        }
        assert_eq!((&sent["complete"], &sent["interrupted"]), (&true.into(), &false.into()));
    }
}

#[test]
fn order_and_copies_are_told() {
    let arena = Arena::new();
    let listener = Listening::start(&arena, "127.0.0.1:0", &["--json"]);
    let impair = ["-t", "1", "--mbps", "30", "--impair", "reorder:16,dup:0.1"];
    let (sent, _) = test(&arena, listener, &impair);
    let count = number(&sent, "sent");
    assert!((0.07..0.13).contains(&(number(&sent, "doubled") / count)), "{sent}");
    assert!(number(&sent, "reordered") > 0.3 * count, "{sent}");
    assert!((1.0..=16.0).contains(&number(&sent, "reordered_by")), "{sent}");
}

#[test]
fn without_recovery_payloads_stay_lost() {
    let arena = Arena::new();
    let listener = Listening::start(&arena, "127.0.0.1:0", &[]);
    let words = ["bench", "link", &listener.address, "-t", "1", "--mbps", "20", "--packet", "1000"];
    let sent = arena.run(words.iter().chain(&["--no-recovery", "--loss", "burst:100"]));
    expect(&sent, 0);
    expect(&listener.end(), 0);
    let said = text(&sent.stdout);
    assert!(said.contains("without recovery") && said.contains("in one run of 100"), "{said}");
    assert!(said.contains("as they came") && !said.contains("after recovery"), "{said}");
    assert!(said.contains("payloads of 1000 bytes"), "{said}");
}

/// A port at which nobody listens.
fn closed() -> String {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

#[test]
fn nobody_there_is_an_error_in_time() {
    let arena = Arena::new();
    let said = arena.refuses(["bench", "link", &closed()], 4);
    assert!(said.contains("nobody listens") && said.contains("--listen"), "{said}");
    // The machine is there but does not answer.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = silent.local_addr().unwrap().to_string();
    let said = arena.refuses(["bench", "link", &to, "--wait-ms", "500"], 4);
    assert!(said.contains("no answer within 0.5 s"), "{said}");
    let said = arena.refuses(["bench", "link", "--listen", "127.0.0.1:0", "-q", "--wait-ms", "300"], 4);
    assert!(said.contains("nobody came within 0.3 s"), "{said}");
    // The sender asked only a few questions.
    silent.set_nonblocking(true).unwrap();
    let mut asked = 0;
    while silent.recv(&mut [0; 2048]).is_ok() {
        asked += 1;
    }
    assert!((1..=5).contains(&asked), "{asked}");
}

#[test]
fn only_one_machine_is_tested() {
    let arena = Arena::new();
    for group in
        ["239.1.2.3", "255.255.255.255", "127.255.255.255", "0.0.0.0", "[ff02::1]:5205", "::ffff:239.1.2.3"]
    {
        let said = arena.refuses(["bench", "link", group], 2);
        assert!(said.contains("never to a group or a broadcast address"), "{said}");
    }
    arena.refuses(["bench", "link", "--listen", "239.1.2.3:0"], 2);
    arena.refuses(["bench", "link"], 2);
    arena.refuses(["bench", "link", "127.0.0.1", "-t", "3601"], 2);
    arena.refuses(["bench", "link", "127.0.0.1", "--packet", "8"], 6);
}

/// With --wait-ms the listener may start later.
#[test]
fn a_sender_can_wait() {
    let arena = Arena::new();
    let to = closed();
    let words = ["bench", "link", &to, "--wait-ms", "20000", "-t", "0.2", "--mbps", "5", "-q"];
    let sender = arena.spawn(words);
    std::thread::sleep(Duration::from_millis(300));
    let listener = Listening::start(&arena, &to, &[]);
    expect(&finish(sender, b"", LIMIT).expect("it ends"), 0);
    expect(&listener.end(), 0);
}

/// Strangers send anything, before and during a test. They get fewer bytes than they sent, and change nothing.
#[test]
fn strangers_do_no_harm_and_gain_nothing() {
    let arena = Arena::new();
    let listener = Listening::start(&arena, "127.0.0.1:0", &["--json"]);
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.connect(&listener.address).unwrap();
    stranger.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let mut random = Random::new(7);
    let mut gained = 0i64;
    let mut buffer = [0; 65_536];
    let mut annoy = |rounds: usize| {
        for _ in 0..rounds {
            // Every type of message with random content in all usual lengths, and noise.
            let mut bytes = [0x89, 0x66, 0x65, 0x6C, 1, random.below(30) as u8, 0, 0].to_vec();
            let len = [8, 16, 24, 32, 48, 512, 513, 1400][random.below(8)];
            bytes.extend(random.bytes(len));
            if random.chance(50) {
                // A valid request, except for the cookie.
                bytes.truncate(24);
                bytes.resize(512, 0);
                bytes[5] = 16 + random.below(11) as u8;
            }
            if random.chance(10) {
                bytes[random.below(8)] ^= 1 << random.below(8);
            }
            bytes.truncate(random.below(20 * bytes.len()).max(1));
            stranger.send(&bytes).unwrap();
            gained -= bytes.len() as i64;
        }
        let mut at_once = Vec::new();
        while let Ok(len) = stranger.recv(&mut buffer) {
            gained += len as i64;
            at_once.push(len);
        }
        assert!(at_once.iter().all(|len| *len <= 32), "answers are short: {at_once:?}");
        !at_once.is_empty()
    };
    assert!(annoy(500), "some of it was a question");
    let words =
        ["bench", "link", &listener.address, "-t", "1", "--mbps", "20", "--loss", "5%", "--json", "-q"];
    let sender = arena.spawn(words);
    (0..10).for_each(|_| {
        annoy(50);
    });
    let sent = finish(sender, b"", LIMIT).expect("it ends");
    expect(&sent, 0);
    let (sent, listened) = (json(&sent), listener.end());
    expect(&listened, 0);
    assert_eq!(number(&sent, "payloads_lost_after"), 0.0, "{sent}");
    assert!(number(&sent, "received") > 1000.0, "{sent}");
    assert!(gained < 0, "{gained}");
}

/// A listener that lies as it likes: the sender still ends in time, and prints what it was told.
#[test]
fn a_listener_that_lies_is_believed_and_nothing_worse() {
    let arena = Arena::new();
    let liar = UdpSocket::bind("127.0.0.1:0").unwrap();
    liar.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let to = liar.local_addr().unwrap().to_string();
    let words = ["bench", "link", &to, "-t", "0.5", "--mbps", "10", "--packet", "300", "--json", "-q"];
    let sender = arena.spawn(words);
    let mut random = Random::new(11);
    let mut buffer = [0; 65_536];
    while let Ok((len, from)) = liar.recv_from(&mut buffer) {
        let answer = |kind: u8, words: &[u64]| {
            let mut bytes = buffer[..5].to_vec();
            bytes.extend([kind, 0, 0]);
            bytes.extend_from_slice(&buffer[8..16]);
            words.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
            liar.send_to(&bytes, from).unwrap();
        };
        let mut wild = || [0, 1, random.next() >> 32, random.next(), u64::MAX][random.below(5)];
        match buffer[5] {
            16 => answer(17, &[7]),
            18 => answer(19, &[]),
            21 => {
                answer(22, &[wild()]);
                answer(22, &[len as u64]);
            }
            24 => answer(25, &[(); 22].map(|()| wild())),
            26 => break,
            _ => answer(23, &[(); 4].map(|()| wild())),
        }
    }
    let output = finish(sender, b"", LIMIT).expect("it ends in time");
    assert!(matches!(code(&output), 0 | 5), "{}", text(&output.stderr));
    assert!(!text(&output.stderr).contains("panicked"), "{}", text(&output.stderr));
    assert_eq!(json(&output)["role"], "sender");
}

/// A second sender is told that the listener is busy.
#[test]
fn one_test_at_a_time() {
    let arena = Arena::new();
    let mut listener = Listening::start(&arena, "127.0.0.1:0", &[]);
    let words = ["bench", "link", &listener.address, "-t", "60", "--mbps", "5", "-q"];
    let first = arena.spawn(words);
    listener.has_begun();
    let said = arena.refuses(["bench", "link", &listener.address, "-t", "1", "--mbps", "5", "-q"], 4);
    assert!(said.contains("busy"), "{said}");
    interrupt(&first);
    expect(&finish(first, b"", LIMIT).expect("it ends"), 130);
    expect(&listener.end(), 0);
}

/// Neither side goes on after the other is gone.
#[test]
fn nobody_sends_or_waits_for_ever() {
    let arena = Arena::new();
    let mut listener = Listening::start(&arena, "127.0.0.1:0", &[]);
    let sender = arena.spawn(["bench", "link", &listener.address, "-t", "600", "--mbps", "5"]);
    listener.has_begun();
    std::thread::sleep(Duration::from_millis(1500));
    listener.child.kill().unwrap();
    listener.child.wait().unwrap();
    let output = finish(sender, b"", SOON).expect("it ends soon");
    assert_eq!(code(&output), 4);
    let said = text(&output.stderr);
    // On a busy machine the sender may not have sent anything yet.
    assert!(said.contains("fell silent") || said.contains("nobody listens"), "{said}");

    let mut listener = Listening::start(&arena, "127.0.0.1:0", &["--json"]);
    let mut sender = arena.spawn(["bench", "link", &listener.address, "-t", "600", "--mbps", "5"]);
    listener.has_begun();
    // Some packets arrive before the sender dies.
    std::thread::sleep(Duration::from_millis(2000));
    sender.kill().unwrap();
    sender.wait().unwrap();
    let output = listener.end();
    assert_eq!(code(&output), 4);
    let report = json(&output);
    assert_eq!(report["complete"], false);
    assert!(number(&report, "received") > 0.0, "{report}");
}

/// An impossible test is called off, and the listener waits for the next one.
#[test]
fn packets_that_do_not_fit_are_refused() {
    let arena = Arena::new();
    let listener = Listening::start(&arena, "127.0.0.1:0", &["--json"]);
    let words = ["bench", "link", &listener.address, "--packet", "65535", "--window", "10", "-q"];
    let said = arena.refuses(words, 4);
    assert!(said.contains("do not fit") && said.contains("choose a --packet of at most"), "{said}");
    let (sent, _) = test(&arena, listener, &["-t", "0.2", "--mbps", "5"]);
    assert_eq!(sent["complete"], true);
}

fn interrupt(child: &Child) {
    common::signal(child, common::signals()[0]);
}

/// If either side is interrupted, both report their figures so far.
#[test]
fn an_interruption_is_an_end_with_a_report() {
    let arena = Arena::new();
    for is_sender in [true, false] {
        let mut listener = Listening::start(&arena, "127.0.0.1:0", &["--json"]);
        let words =
            ["bench", "link", &listener.address, "-t", "60", "--mbps", "20", "--loss", "5%", "--json", "-q"];
        let sender = arena.spawn(words);
        listener.has_begun();
        std::thread::sleep(Duration::from_millis(1200));
        interrupt(if is_sender { &sender } else { &listener.child });
        let sent = finish(sender, b"", SOON).expect("it ends soon");
        let listened = listener.end();
        let expected = if is_sender { (130, 0) } else { (0, 130) };
        assert_eq!((code(&sent), code(&listened)), expected, "{}", text(&sent.stderr));
        for output in [&sent, &listened] {
            let report = json(output);
            assert_eq!(report["interrupted"], true);
            assert!(number(&report, "received") > 0.0, "{report}");
        }
    }
    // The interruption comes before any sender.
    let listener = Listening::start(&arena, "127.0.0.1:0", &[]);
    interrupt(&listener.child);
    assert_eq!(code(&listener.end()), 130);
}

/// Time in which a listener was stopped does not count as waiting.
#[test]
fn whoever_was_stopped_has_not_waited() {
    let arena = Arena::new();
    let to = closed();
    let words = ["bench", "link", "--listen", &to, "--wait-ms", "4000"];
    let mut child = arena.spawn(words);
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    stderr.read_line(&mut String::new()).unwrap();
    common::signal(&child, rustix::process::Signal::STOP);
    std::thread::sleep(Duration::from_millis(5500));
    let sender = arena.spawn(["bench", "link", &to, "--wait-ms", "20000", "-t", "0.2", "--mbps", "5", "-q"]);
    common::signal(&child, rustix::process::Signal::CONT);
    expect(&finish(sender, b"", LIMIT).expect("it ends"), 0);
    expect(&finish(child, b"", LIMIT).expect("it ends"), 0);
}

/// Two tests come one after the other, and then no more.
#[test]
fn a_listener_can_go_on() {
    let arena = Arena::new();
    let to = closed();
    let words = ["bench", "link", "--listen", &to, "--keep", "--wait-ms", "3000", "--json", "-q"];
    let listener = arena.spawn(words);
    for _ in 0..2 {
        let words = ["bench", "link", &to, "--wait-ms", "20000", "-t", "0.2", "--mbps", "5", "-q"];
        expect(&arena.run(words), 0);
    }
    let output = finish(listener, b"", LIMIT).expect("it ends");
    assert_eq!(code(&output), 4);
    let reports = text(&output.stdout);
    assert_eq!(reports.lines().filter(|line| line.contains("\"complete\":true")).count(), 2, "{reports}");
}

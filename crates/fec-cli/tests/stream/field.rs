//! Streams in the field: addresses as others write them, networks that come later, several ways, statistics for others.

use super::network::{Listening, send_to};
use super::*;
use std::net::UdpSocket;
use std::os::unix::fs::symlink;
use std::process::Command;

/// The command that a piece of advice has in this line.
#[track_caller]
fn advised(said: &str, beginning: &str) -> String {
    let line = said.lines().map(str::trim).find(|line| line.starts_with(beginning));
    line.unwrap_or_else(|| panic!("{beginning}: {said}")).to_owned()
}

/// A port that nobody has.
fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// An address without its beginning is no file, and a file of that name is one.
#[test]
fn an_address_without_its_beginning_is_asked_about() {
    let arena = Arena::new();
    arena.write("in", &payload(1, 5000));
    let port = free_port();
    for name in [format!("127.0.0.1:{port}"), format!("localhost:{port}"), format!("[::1]:{port}")] {
        let said = arena.refuses(["encode", "--stream", "in", "-o", &name], 2);
        assert!(said.contains("reads as an address"), "{said}");
        // A shell would read brackets, which the advice quotes.
        let quote = if name.starts_with('[') { "'" } else { "" };
        let word = advised(&said, &format!("-o {quote}udp://")).replace("-o ", "").replace('\'', "");
        arena.expect(["encode", "--stream", "in", "-q", "--mbps", "20", "-o", &word], 0);
        let word = advised(&said, &format!("-o {quote}./"));
        let word = word.replace("-o ", "").replace('\'', "");
        arena.expect(["encode", "--stream", "in", "-q", "-o", &word], 0);
        // A file that is there stays one, for both ends.
        arena.expect(["encode", "--stream", "in", "-q", "-f", "-o", &name], 0);
        arena.expect(["decode", &name, "-q", "-f", "-o", "out"], 0);
        assert_eq!(arena.read("out"), arena.read("in"));
        std::fs::remove_file(arena.path(&name)).unwrap();
    }
    let said = arena.refuses(["encode", "--stream", "in", "-o", ":5000"], 2);
    assert!(said.contains("-o udp://HOST:5000"), "{said}");
    let said = arena.refuses(["encode", "--stream", "in", "-o", "a:1", "-o", "b:2"], 2);
    assert!(said.contains("write -o udp://HOST:PORT for each"), "{said}");
    // Nothing else goes to a network: a name with a time is a name.
    arena.expect(["encode", "in", "-q", "-o", "backup-12:30"], 0);
    arena.expect(["decode", "backup-12:30", "-q", "-o", "back:22"], 0);
    assert_eq!(arena.read("back:22"), arena.read("in"));
}

#[test]
fn an_address_in_the_place_of_a_file_is_told() {
    let arena = Arena::new();
    arena.write("in", &payload(1, 5000));
    let port = free_port();
    for (name, address) in [
        (format!("127.0.0.1:{port}"), format!("udp://127.0.0.1:{port}")),
        (format!(":{port}"), format!("udp://:{port}")),
    ] {
        for command in ["decode", "verify", "repair"] {
            let said = arena.refuses([command, &name], 4);
            assert_eq!(advised(&said, "fec decode"), format!("fec decode {address}"), "{command}: {said}");
        }
        let said = arena.refuses(["decode", "--stream", &name], 4);
        assert!(said.contains(&format!("fec decode {address}")), "{said}");
    }
    let output = arena.run(["decode", &format!("udp://127.0.0.1:{port}"), "--wait-ms", "100"]);
    assert_eq!(code(&output), 3, "the advice receives: {}", text(&output.stderr));
    let said = arena.refuses(["verify", "udp://:5000"], 4);
    assert!(said.contains("fec decode udp://:5000"), "{said}");
    let said = arena.refuses(["encode", "in", "-o", "udp://127.0.0.1:9"], 2);
    assert!(said.contains("--stream is missing"), "{said}");
    let said = arena.refuses(["decode", "in", "-o", "udp://127.0.0.1:9"], 2);
    assert!(said.contains("not to an address"), "{said}");
}

/// VLC, ffmpeg and SRT have other ways of writing: each is understood, or answered.
#[test]
fn addresses_as_others_write_them() {
    let arena = Arena::new();
    let bytes = payload(2, 50_000);
    let receiver = Listening::start(&arena, "udp://@127.0.0.1:0", &[]);
    send_to(&arena, &receiver.address, &["--mbps", "50"], &bytes);
    assert!(receiver.end().stdout == bytes);
    arena.write("in", &bytes);
    let said = arena.refuses(["encode", "--stream", "in", "-o", "udp://@127.0.0.1:5000"], 2);
    assert!(said.contains("a place to receive at") && said.contains("-o udp://HOST:PORT"), "{said}");
    for args in [
        &["decode", "udp://@:5000?pkt_size=1316&fifo_size=99"][..],
        &["encode", "--stream", "in", "-o", "udp://127.0.0.1:9?pkt_size=1316&ttl=3"],
    ] {
        let said = arena.refuses(args, 2);
        assert!(said.contains("options do not stand in an address: pkt_size"), "{said}");
        assert!(said.contains("pkt_size: --packet BYTES"), "{said}");
    }
    let said = arena.refuses(["encode", "--stream", "in", "-o", "udp://[fe80::1]:5000"], 2);
    assert!(said.contains("udp://[fe80::1]:5000") && said.contains("--interface eth0"), "{said}");
    let said = arena.refuses(["decode", "udp://[ff02::9]:5000"], 2);
    assert!(said.contains("no interface is named") && said.contains("%eth0"), "{said}");
    let said = arena.refuses(["encode", "--stream", "in", "-o", "udp://[fe80::1%none0]:5000"], 4);
    assert!(
        said.contains("udp://[fe80::1%none0]:5000") && said.contains("is there an interface none0?"),
        "{said}"
    );
    let said = arena.refuses(["decode", "udp://[ff02::9%lo]:5000", "--interface", "eth0"], 2);
    assert!(said.contains("leave --interface out"), "{said}");
}

/// A shell without networks, in which the loopback interface is down; `None` where the system makes none.
fn without_network(arena: &Arena, script: &str) -> Option<Output> {
    let unshare = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["-rn", "sh", "-c", script]).current_dir(arena.path("")).env("FEC", common::fec_words());
        command.output().ok()
    };
    unshare("ip link show lo").filter(|output| output.status.success())?;
    unshare(script)
}

/// A sender without a network at its start waits for one, tells it once, and goes on when it is there.
#[test]
fn a_network_that_comes_later_is_waited_for() {
    let arena = Arena::new();
    let script = "(sleep 2; ip link set lo up) & $FEC decode udp://0.0.0.0:5000 --idle-ms 4000 -o out & \
                  (for i in 1 2 3 4 5 6 7 8; do sleep 0.5; echo line $i; done) | \
                  $FEC encode --stream -o udp://127.0.0.1:5000 --json > report 2> said; echo $? > code; wait";
    let Some(_) = without_network(&arena, script) else { return eprintln!("skipped: no namespaces here") };
    let (said, report) = (text(&arena.read("said")), text(&arena.read("report")));
    assert_eq!(arena.read("code"), b"0\n", "{said}{report}");
    let report: Value = serde_json::from_str(&report).expect("a report");
    assert!(
        report["unsent"].as_u64() > Some(0) && report["ways"][0]["unsent"] == report["unsent"],
        "{report}"
    );
    assert!(text(&arena.read("out")).ends_with("line 7\nline 8\n"), "{said}");
    // It is told once, and an end without any network is an error.
    let script = "(echo a; sleep 1; echo b; sleep 1) | $FEC encode --stream -o udp://127.0.0.1:5000 2> said; \
                  echo $? > code";
    without_network(&arena, script);
    let said = text(&arena.read("said"));
    assert_eq!(
        (arena.read("code"), said.matches("the network is away").count()),
        (b"4\n".to_vec(), 1),
        "{said}"
    );
    assert!(
        said.contains("Network is unreachable") && said.contains("there is no way to that address"),
        "{said}"
    );
    // An unknown interface is no matter of time.
    without_network(
        &arena,
        "echo a | $FEC encode --stream -o udp://127.0.0.1:5000 --interface none0 2> said; echo $? > code",
    );
    let said = text(&arena.read("said"));
    assert!(arena.read("code") == b"4\n" && said.contains("is there an interface none0?"), "{said}");
}

/// A repair packet that comes twice counts once.
#[test]
fn copies_of_repair_packets_count_once() {
    let arena = Arena::new();
    let sent = arena
        .pipe(["encode", "--stream", "-", "--json", "--impair", "dup:0.5,seed:1"], &payload(3, 3_000_000));
    let told = report(&sent);
    let received = report(&receive(&arena, &["--json"], &sent.stdout));
    assert_eq!(received["repair_packets"], told["repair_packets"], "{received}");
    assert!(received["duplicates"].as_u64() > told["source_packets"].as_u64().map(|count| count / 3));
    assert_eq!(received["packets"], told["source_packets"]);
}

/// A user of several ways sees which of them is bad.
#[test]
fn each_way_is_told_at_the_end() {
    let arena = Arena::new();
    let bytes = payload(4, 300_000);
    let receiver = Listening::start(&arena, "udp://:0", &["-o", "out"]);
    let port = receiver.address.rsplit(':').next().unwrap().to_owned();
    let (one, other) = (format!("udp://127.0.0.1:{port}"), format!("udp://[::1]:{port}"));
    let sent = send_to(&arena, &one, &["-o", &other, "--mbps", "50", "-v"], &bytes);
    let said = text(&sent.stdout) + &text(&sent.stderr);
    for way in [&one, &other] {
        assert!(said.contains(&format!("way to {way}: 0 packets not sent")), "{said}");
    }
    let output = receiver.end();
    expect(&output, 0);
    let said = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(said.matches("of the stream did not come by it").count(), 2, "{said}");
    assert!(said.contains("way from 127.0.0.1:") && said.contains("to ::1: "), "{said}");
    // A single way is told to those who ask alone.
    for (options, count) in [(&[][..], 0), (&["-v"], 1)] {
        let receiver = Listening::start(&arena, "udp://127.0.0.1:0", options);
        send_to(&arena, &receiver.address, &["--mbps", "50"], &bytes);
        let said = text(&receiver.end().stderr);
        assert_eq!(said.matches("did not come by it").count(), count, "{said}");
    }
}

/// The value of a sample.
#[track_caller]
fn sample(text: &str, name: &str) -> f64 {
    let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {text}"));
    line.rsplit(' ').next().and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{line}"))
}

/// Both ends keep statistics in a file, which says at the end that they are the last.
#[test]
fn statistics_for_other_programs_stay_in_a_file() {
    let arena = Arena::new();
    let bytes = payload(5, 300_000);
    let mut receiver = Listening::start(
        &arena,
        "udp://127.0.0.1:0",
        &["--metrics", "in.prom", "--stats", "text", "-o", "out"],
    );
    assert_eq!(
        sample(&text(&arena.read("in.prom")), "fec_receive_ended"),
        0.0,
        "it is there before a packet"
    );
    send_to(&arena, &receiver.address.clone(), &["--mbps", "2", "--metrics", "out.prom"], &bytes);
    receiver.says(" s: ");
    expect(&receiver.end(), 0);
    let (sent, received) = (text(&arena.read("out.prom")), text(&arena.read("in.prom")));
    for (text, name, value) in [
        (&sent, "fec_send_payload_bytes_total", 300_000.0),
        (&sent, "fec_send_ended", 1.0),
        (&received, "fec_receive_payload_bytes_total", 300_000.0),
        (&received, "fec_receive_lost_packets_total", 0.0),
        (&received, "fec_receive_way_loss_ratio", 0.0),
        (&received, "fec_receive_ended", 1.0),
        (&received, "fec_receive_whole", 1.0),
    ] {
        assert_eq!(sample(text, name), value, "{name}");
        assert!(text.lines().any(|line| line.starts_with(name) && line.contains("stream_id=\"")), "{text}");
    }
    arena.nothing_temporary();
    // The next run takes the name over.
    arena.expect(["decode", "udp://127.0.0.1:0", "--wait-ms", "100", "--metrics", "in.prom"], 3);
    assert_eq!(sample(&text(&arena.read("in.prom")), "fec_receive_packets_total"), 0.0);
}

/// The file takes the place of nothing else, and follows no link; a failure later ends nothing.
#[test]
fn statistics_take_the_place_of_nothing() {
    let arena = Arena::new();
    let bytes = payload(6, 50_000);
    arena.write("in", &bytes);
    arena.write("letter", b"dear");
    symlink("letter", arena.path("link")).unwrap();
    common::make_fifo(&arena.path("fifo"));
    expect(&arena.run(["keygen", "--stream", "-o", "key"]), 0);
    for (file, words) in [
        ("letter", "holds something else"),
        ("in", "the input, the output or the key"),
        ("out", "the input, the output or the key"),
        ("key", "the input, the output or the key"),
        ("-", "name one"),
        ("link", "it is a symbolic link"),
        ("fifo", "it is no regular file"),
    ] {
        let said = arena
            .refuses(["encode", "--stream", "in", "-o", "out", "--key-file", "key", "--metrics", file], 2);
        assert!(said.contains(words), "{file}: {said}");
    }
    // Its folder goes away meanwhile: it is told once.
    let output = arena.pipe(["encode", "--stream", "-", "--metrics", "none/file"], &bytes);
    expect(&output, 0);
    let said = text(&output.stderr);
    assert_eq!(said.matches("the stream goes on without").count(), 1, "{said}");
    let back = receive(&arena, &[], &output.stdout);
    assert!(back.stdout == bytes);
}
